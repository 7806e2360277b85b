/* Helpers of the row structs: names of rows and statuses, numbering of seats, freeing.  Pure. */
#include "model/rows.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_OF(texts, i) ((unsigned)(i) < sizeof(texts) / sizeof *(texts) ? (texts)[i] : NULL)

const char *lone_seats_text(int64_t rule)
{
    static const char *const rules[] = {
        [LONE_SEATS_ALLOW] = "allow", [LONE_SEATS_HINT] = "hint", [LONE_SEATS_REFUSE] = "refuse"};
    return rule >= 0 && rule <= LONE_SEATS_REFUSE ? rules[rule] : NULL;
}

const char *status_text(enum audit_object object, int status)
{
    static const char *const seats[] = {"available", "held", "booked", "blocked"};
    static const char *const events[] = {[EVENT_OPEN] = "open",
                                         [EVENT_CLOSED] = "closed",
                                         [EVENT_ARCHIVED] = "archived",
                                         [EVENT_CANCELLED] = "cancelled"};
    static const char *const holds[] = {[HOLD_ACTIVE] = "active",
                                        [HOLD_EXPIRED] = "expired",
                                        [HOLD_RELEASED] = "released",
                                        [HOLD_CONFIRMED] = "confirmed"};
    static const char *const bookings[] = {[BOOKING_PENDING] = "pending",
                                           [BOOKING_CONFIRMED] = "confirmed",
                                           [BOOKING_FAILED] = "failed",
                                           [BOOKING_CANCELLED] = "cancelled"};
    static const char *const payments[] = {[PAYMENT_CREATING] = "creating",
                                           [PAYMENT_REQUIRES_PAYMENT] = "requires_payment",
                                           [PAYMENT_REQUIRES_ACTION] = "requires_action",
                                           [PAYMENT_PROCESSING] = "processing",
                                           [PAYMENT_AUTHORIZED] = "authorized",
                                           [PAYMENT_CAPTURING] = "capturing",
                                           [PAYMENT_SUCCEEDED] = "succeeded",
                                           [PAYMENT_CANCELED] = "canceled",
                                           [PAYMENT_REFUNDING] = "refunding",
                                           [PAYMENT_REFUNDED] = "refunded",
                                           [PAYMENT_REFUND_FAILED] = "refund_failed"};
    switch (object) {
    case AUDIT_EVENT:
        return TEXT_OF(events, status);
    case AUDIT_SEAT:
    case AUDIT_AREA:
        return TEXT_OF(seats, status);
    case AUDIT_HOLD:
        return TEXT_OF(holds, status);
    case AUDIT_BOOKING:
        return TEXT_OF(bookings, status);
    case AUDIT_PAYMENT:
        return TEXT_OF(payments, status);
    case AUDIT_WAIT:
        return wait_status_text((enum wait_status)status);
    }
    return NULL;
}

void row_name(uint32_t index, char out[ROW_NAME_SIZE])
{
    char text[ROW_NAME_SIZE];
    size_t at = sizeof text;
    text[--at] = '\0';
    for (uint32_t n = index + 1; n > 0; n = (n - 1) / 26)
        text[--at] = (char)('A' + (n - 1) % 26);
    memcpy(out, text + at, sizeof text - at);
}

bool event_def_number(struct event_def *def)
{
    uint64_t next = 0;
    for (size_t s = 0; s < def->sections.n; s++) {
        struct section_def *section = &def->sections.v[s];
        for (size_t r = 0; r < section->rows.n; r++) {
            section->rows.v[r].first = (uint32_t)next;
            next += section->rows.v[r].seats;
            if (next > EVENT_SEATS_MAX)
                return false;
        }
    }
    def->n_seats = (uint32_t)next;
    return true;
}

int64_t event_def_capacity(const struct event_def *def)
{
    int64_t capacity = def->n_seats;
    for (size_t i = 0; i < def->areas.n; i++)
        capacity += def->areas.v[i].capacity;
    return capacity;
}

size_t event_def_categories(const struct event_def *def)
{
    return def->categories.n ? def->categories.n : def->sections.n;
}

const char *event_def_category_name(const struct event_def *def, size_t category)
{
    return def->categories.n ? def->categories.v[category].name : def->sections.v[category].name;
}

bool event_def_has_wish(const struct event_def *def, const struct wait_wish *wish)
{
    return wait_wish_is_sound(wish, def->sections.n, event_def_categories(def), def->areas.n);
}

int64_t event_def_section_category(const struct event_def *def, size_t section)
{
    return def->categories.n ? def->sections.v[section].category : (int64_t)section;
}

void event_def_free(struct event_def *def)
{
    if (!def)
        return;
    for (size_t s = 0; s < def->sections.n; s++) {
        struct section_def *section = &def->sections.v[s];
        for (size_t r = 0; r < section->rows.n; r++) {
            free(section->rows.v[r].name);
            free(section->rows.v[r].extra);
        }
        free(section->name);
        free(section->tier);
        free(section->extra);
        vec_close(&section->rows);
    }
    for (size_t a = 0; a < def->areas.n; a++) {
        free(def->areas.v[a].name);
        free(def->areas.v[a].plan_area);
    }
    for (size_t c = 0; c < def->categories.n; c++) {
        free(def->categories.v[c].name);
        free(def->categories.v[c].color);
    }
    venue_free(def->venue);
    buf_close(&def->packed);
    vec_close(&def->categories);
    vec_close(&def->sections);
    vec_close(&def->areas);
    event_terms_close(&def->terms);
    free(def);
}

static char *copy_text(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

static struct ticket_type copy_type(const struct ticket_type *from)
{
    struct ticket_type copy = {.id = copy_text(from->id), .name = copy_text(from->name)};
    for (size_t i = 0; i < from->prices.n; i++)
        *vec_push(&copy.prices) = from->prices.v[i];
    return copy;
}

void ticket_type_close(struct ticket_type *type)
{
    free(type->id);
    free(type->name);
    vec_close(&type->prices);
}

void event_terms_copy(const struct event_terms *from, struct event_terms *ret)
{
    *ret = *from;
#define COPY_TEXT(name) ret->name = copy_text(from->name);
#define COPY_INT(name)
#define COPY_LOCAL(name)
#define COPY(name, bit, kind) COPY_##kind(name)
    EVENT_TERM_LIST(COPY)
    memset(&ret->prices, 0, sizeof ret->prices);
    memset(&ret->types, 0, sizeof ret->types);
    memset(&ret->channels, 0, sizeof ret->channels);
    for (size_t i = 0; i < from->prices.n; i++)
        *vec_push(&ret->prices) = from->prices.v[i];
    for (size_t i = 0; i < from->types.n; i++)
        *vec_push(&ret->types) = copy_type(&from->types.v[i]);
    for (size_t i = 0; i < from->channels.n; i++)
        *vec_push(&ret->channels) = copy_text(from->channels.v[i]);
}

void event_terms_close(struct event_terms *terms)
{
#define FREE_TEXT(name) free(terms->name);
#define FREE_INT(name)
#define FREE_LOCAL(name)
#define FREE(name, bit, kind) FREE_##kind(name)
    EVENT_TERM_LIST(FREE)
    vec_close(&terms->prices);
    for (size_t i = 0; i < terms->types.n; i++)
        ticket_type_close(&terms->types.v[i]);
    vec_close(&terms->types);
    for (size_t i = 0; i < terms->channels.n; i++)
        free(terms->channels.v[i]);
    vec_close(&terms->channels);
    *terms = (struct event_terms){0};
}

static bool same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static int64_t type_price(const struct ticket_type *type, size_t index)
{
    return index < type->prices.n ? type->prices.v[index] : TYPE_PRICE_NONE;
}

static bool same_type(const struct ticket_type *a, const struct ticket_type *b)
{
    bool same = same_text(a->id, b->id) && same_text(a->name, b->name);
    for (size_t i = 0; same && (i < a->prices.n || i < b->prices.n); i++)
        same = type_price(a, i) == type_price(b, i);
    return same;
}

bool event_terms_equal(const struct event_terms *a, const struct event_terms *b)
{
    bool same =
        a->prices.n == b->prices.n && a->types.n == b->types.n && a->channels.n == b->channels.n;
#define SAME_TEXT(name) same_text(a->name, b->name)
#define SAME_INT(name) (a->name == b->name)
#define SAME_LOCAL(name) (a->name.ms == b->name.ms && a->name.offset_min == b->name.offset_min)
#define SAME(name, bit, kind) same = same && SAME_##kind(name);
    EVENT_TERM_LIST(SAME)
    for (size_t i = 0; same && i < a->prices.n; i++)
        same = a->prices.v[i] == b->prices.v[i];
    for (size_t i = 0; same && i < a->types.n; i++)
        same = same_type(&a->types.v[i], &b->types.v[i]);
    for (size_t i = 0; same && i < a->channels.n; i++)
        same = same_text(a->channels.v[i], b->channels.v[i]);
    return same;
}

static void replace_text(char **text, const char *by)
{
    free(*text);
    *text = copy_text(by);
}

void event_terms_change(struct event_terms *terms, unsigned given, const struct event_terms *from)
{
#define CHANGE_TEXT(name) replace_text(&terms->name, from->name);
#define CHANGE_INT(name) terms->name = from->name;
#define CHANGE_LOCAL(name) terms->name = from->name;
#define CHANGE(name, bit, kind)                                                                    \
    if (given & bit) {                                                                             \
        CHANGE_##kind(name)                                                                        \
    }
    EVENT_TERM_LIST(CHANGE)
}

int64_t event_terms_sales_end(const struct event_terms *terms)
{
    return terms->sales_close_at ? terms->sales_close_at : terms->starts_at.ms;
}

const char *event_terms_conflict(const struct event_terms *terms)
{
    if (terms->hold_max_ms < terms->hold_ttl_ms)
        return "hold_max_ms must not be less than hold_ttl_ms";
    if (terms->sales_close_at && terms->sales_close_at <= terms->sales_open_at)
        return "sales_close_at must be after sales_open_at";
    return NULL;
}

int event_terms_type(const struct event_terms *terms, const char *id, size_t len)
{
    for (size_t i = 0; i < terms->types.n; i++)
        if (strlen(terms->types.v[i].id) == len && memcmp(terms->types.v[i].id, id, len) == 0)
            return (int)i;
    return -1;
}

int64_t event_terms_price(const struct event_terms *terms, size_t index, uint32_t type)
{
    int64_t price = TYPE_PRICE_NONE;
    if (type < terms->types.n)
        price = type_price(&terms->types.v[type], index);
    return price == TYPE_PRICE_NONE ? terms->prices.v[index] : price;
}

bool event_terms_put_type(struct event_terms *terms, const struct ticket_type *change)
{
    int found = event_terms_type(terms, change->id, strlen(change->id));
    if (found < 0 && terms->types.n == TYPES_MAX)
        return false;
    struct ticket_type *type = found < 0 ? vec_push(&terms->types) : &terms->types.v[found];
    if (found < 0) {
        type->id = copy_text(change->id);
        type->name = copy_text(change->id);
    }
    if (change->name)
        replace_text(&type->name, change->name);
    for (size_t i = 0; i < change->prices.n; i++) {
        if (i == type->prices.n)
            *vec_push(&type->prices) = TYPE_PRICE_NONE;
        if (change->prices.v[i] != TYPE_PRICE_KEPT)
            type->prices.v[i] = change->prices.v[i];
    }
    return true;
}

uint32_t event_terms_channel(const struct event_terms *terms, const char *name, size_t len)
{
    for (size_t i = 0; i < terms->channels.n; i++)
        if (strlen(terms->channels.v[i]) == len && memcmp(terms->channels.v[i], name, len) == 0)
            return (uint32_t)i + 1;
    return 0;
}

uint32_t price_reader_next(struct price_reader *r, uint32_t n, int64_t *ret_price,
                           uint32_t *ret_type)
{
    while (r->run < r->end && r->used == r->run->n) {
        r->run++;
        r->used = 0;
    }
    if (r->run == r->end)
        return 0;
    uint32_t left = r->run->n - r->used, taken = n < left ? n : left;
    *ret_price = r->run->price;
    *ret_type = r->run->type;
    r->used += taken;
    return taken;
}

uint32_t area_claim_of(const struct area_claim *areas, uint32_t n, uint32_t area)
{
    for (uint32_t i = 0; i < n; i++)
        if (areas[i].area == area)
            return areas[i].quantity;
    return 0;
}

uint32_t places_count(uint32_t n_seats, const struct area_claim *areas, uint32_t n_areas)
{
    uint32_t n = n_seats;
    for (uint32_t i = 0; i < n_areas; i++)
        n += areas[i].quantity;
    return n;
}

void hold_row_close(struct hold_row *row)
{
    free(row->owned);
    *row = (struct hold_row){0};
}

void booking_row_close(struct booking_row *row)
{
    free(row->owned);
    *row = (struct booking_row){0};
}

void key_row_close(struct key_row *row)
{
    free(row->owned);
    *row = (struct key_row){0};
}
