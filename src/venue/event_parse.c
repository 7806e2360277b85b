/* The terms of an event, and the whole of its definition, from JSON; see event_parse.h.  The layout
 * is read by layout_parse.c and plan_parse.c. */
#include "venue/event_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_zone.h"
#include "venue/reader.h"

#define EVENT_NAME_CHARS_MAX 255
#define VENUE_ADDRESS_CHARS_MAX 255
#define DESCRIPTION_CHARS_MAX 2000
#define IMAGE_CHARS_MAX 2000
#define HOLD_TTL_MS_DEFAULT 480000
#define HOLD_MAX_MS_MAX (7 * INT64_C(86400000))
#define HOLD_MAX_MS_DEFAULT 1200000
#define MAX_PER_HOLD_DEFAULT 10
#define OFFER_TTL_MS_DEFAULT 600000
#define WAIT_ALIVE_MS_DEFAULT (3 * INT64_C(86400000))
#define WAIT_PER_OWNER_DEFAULT 1

static bool read_currency(const struct fields *f, char out[4])
{
    const char *text;
    size_t len;
    if (!field_text(f, "currency", REQUIRED, 1, 3, &text, &len))
        return false;
    bool ok = len == 3;
    for (size_t i = 0; i < len; i++)
        ok = ok && text[i] >= 'a' && text[i] <= 'z';
    if (!ok)
        return field_fail(f, "currency", "must be three lower-case letters");
    memcpy(out, text, 4);
    return true;
}

/* ---- terms, of a new event or of one that is changed ---- */

/* Reads a text and keeps a copy. */
static bool read_text(const struct fields *f, const char *name, enum need need, size_t chars_max,
                      char **ret)
{
    const char *text = NULL;
    size_t len = 0;
    if (!field_text(f, name, need, 1, chars_max, &text, &len))
        return false;
    if (text)
        *ret = hf_strndup(text, len);
    return true;
}

static bool read_timezone(const struct fields *f, char **ret)
{
    return read_text(f, "timezone", NULLABLE, TIME_ZONE_LEN_MAX, ret) &&
           (!*ret || time_zone_exists(TIME_ZONE_DATABASE, *ret) ||
            field_fail(f, "timezone", "must be the IANA name of a time zone, as Europe/Berlin"));
}

static bool read_image(const struct fields *f, char **ret)
{
    return read_text(f, "image", NULLABLE, IMAGE_CHARS_MAX, ret) &&
           (!*ret || text_is_link(*ret) ||
            field_fail(f, "image",
                       "must be an https URL, or a path of this server such as /a.jpg"));
}

static bool read_texts(const struct fields *f, enum need name_need, struct event_terms *terms)
{
    return read_text(f, "name", name_need, EVENT_NAME_CHARS_MAX, &terms->name) &&
           read_text(f, "venue", NULLABLE, EVENT_NAME_CHARS_MAX, &terms->venue) &&
           read_text(f, "venue_address", NULLABLE, VENUE_ADDRESS_CHARS_MAX,
                     &terms->venue_address) &&
           read_text(f, "description", NULLABLE, DESCRIPTION_CHARS_MAX, &terms->description) &&
           read_timezone(f, &terms->timezone) && read_image(f, &terms->image) &&
           (json_is_null(json_object_get(f->object, "metadata")) ||
            field_metadata(f, "metadata", &terms->metadata));
}

static bool read_times(const struct fields *f, struct event_terms *terms)
{
    return field_local_time(f, "starts_at", &terms->starts_at.ms, &terms->starts_at.offset_min) &&
           field_local_time(f, "doors_at", &terms->doors_at.ms, &terms->doors_at.offset_min) &&
           field_time(f, "sales_open_at", &terms->sales_open_at) &&
           field_time(f, "sales_close_at", &terms->sales_close_at);
}

static bool read_lone_seats(const struct fields *f, int64_t *ret)
{
    const char *text = NULL, *known;
    size_t len;
    if (!field_text(f, "lone_seats", OPTIONAL, 1, NAME_CHARS_MAX, &text, &len))
        return false;
    for (int64_t rule = 0; text && (known = lone_seats_text(rule)); rule++)
        if (strlen(known) == len && memcmp(known, text, len) == 0) {
            *ret = rule;
            return true;
        }
    return !text || field_fail(f, "lone_seats", "must be allow, hint or refuse");
}

static bool read_limits(const struct fields *f, struct event_terms *terms)
{
    return field_int(f, "hold_ttl_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_TTL_MS_MAX,
                     &terms->hold_ttl_ms) &&
           field_int(f, "hold_max_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_MAX_MS_MAX,
                     &terms->hold_max_ms) &&
           field_int(f, "max_per_hold", OPTIONAL, 1, HOLD_PLACES_MAX, &terms->max_per_hold) &&
           field_int(f, "max_per_owner", NULLABLE, 1, MAX_PER_OWNER_MAX, &terms->max_per_owner) &&
           read_lone_seats(f, &terms->lone_seats);
}

/* The object stands for the whole of the waiting list's terms: a member that is absent is the usual
 * one, also where the event has another already.  Without the object, or with null, there is no
 * list. */
static bool read_waitlist(const struct fields *f, struct event_terms *terms)
{
    static const char *const known[] = {"offer_ttl_ms", "alive_ms", "per_owner", NULL};
    const json_t *list = json_object_get(f->object, "waitlist");
    if (!list || json_is_null(list))
        return true;
    if (!json_is_object(list))
        return field_fail(f, "waitlist", "must be an object or null");
    const struct fields w = {.object = list, .path = "waitlist.", .err = f->err};
    terms->offer_ttl_ms = OFFER_TTL_MS_DEFAULT;
    terms->wait_alive_ms = WAIT_ALIVE_MS_DEFAULT;
    terms->wait_per_owner = WAIT_PER_OWNER_DEFAULT;
    return fields_known(&w, known) &&
           field_int(&w, "offer_ttl_ms", OPTIONAL, OFFER_TTL_MS_MIN, HOLD_TTL_MS_MAX,
                     &terms->offer_ttl_ms) &&
           field_int(&w, "alive_ms", OPTIONAL, WAIT_ALIVE_MS_MIN, WAIT_ALIVE_MS_MAX,
                     &terms->wait_alive_ms) &&
           field_int(&w, "per_owner", OPTIONAL, 1, WAIT_PER_OWNER_MAX, &terms->wait_per_owner);
}

static bool read_terms(const struct fields *f, struct event_terms *terms)
{
    return read_texts(f, OPTIONAL, terms) && read_times(f, terms) && read_limits(f, terms) &&
           read_waitlist(f, terms);
}

/* Where hold_max_ms is absent it follows hold_ttl_ms. */
static bool read_new_terms(struct reader *rd, const struct fields *f, struct event_terms *terms)
{
    terms->hold_ttl_ms = HOLD_TTL_MS_DEFAULT;
    terms->max_per_hold = MAX_PER_HOLD_DEFAULT;
    if ((!read_texts(f, REQUIRED, terms) && !complaint_kept(rd)) ||
        (!read_times(f, terms) && !complaint_kept(rd)) ||
        (!read_limits(f, terms) && !complaint_kept(rd)) ||
        (!read_waitlist(f, terms) && !complaint_kept(rd)))
        return false;
    if (has_complaints(rd))
        return true;
    if (!terms->hold_max_ms)
        terms->hold_max_ms =
            terms->hold_ttl_ms > HOLD_MAX_MS_DEFAULT ? terms->hold_ttl_ms : HOLD_MAX_MS_DEFAULT;
    const char *conflict = event_terms_conflict(terms);
    if (conflict)
        (void)hf_err_set(f->err, HF_INVALID_REQUEST, "%s", conflict);
    return !conflict;
}

/* In the order of the bits of enum event_field, as far as a field has one of its own. */
#define TERM_NAME(name, bit, kind) #name,
#define TERMS_FIELDS EVENT_PLAIN_TERM_LIST(TERM_NAME) "waitlist",

/* A name may be that of a category and that of an area: then both get the price.  A null is the
 * price `none`, unless that is TYPE_PRICE_KEPT: then there must be a price. */
static bool add_prices(const struct fields *p, const struct event_def *def, const char *name,
                       int64_t none, struct event_change *ret)
{
    size_t n_categories = event_def_categories(def), before = ret->prices.n;
    enum need need = none == TYPE_PRICE_KEPT ? REQUIRED : NULLABLE;
    int64_t price = none;
    if (!field_int(p, name, need, 0, PRICE_MAX, &price))
        return false;
    for (size_t i = 0; i < n_categories + def->areas.n; i++) {
        const char *has = i < n_categories ? event_def_category_name(def, i)
                                           : def->areas.v[i - n_categories].name;
        if (strcmp(has, name) == 0)
            *vec_push(&ret->prices) = (struct price_change){.index = (uint32_t)i, .price = price};
    }
    return ret->prices.n > before ||
           field_fail(p, name, "is no category, section or area of the event with a price");
}

static bool read_prices(const struct fields *f, const struct event_def *def, int64_t none,
                        struct event_change *ret)
{
    json_t *prices = json_object_get(f->object, "prices");
    if (!prices)
        return true;
    if (!json_is_object(prices))
        return field_fail(f, "prices", "must be an object of names and amounts");
    const struct fields p = {.object = prices, .path = "prices.", .err = f->err};
    for (void *it = json_object_iter(prices); it; it = json_object_iter_next(prices, it))
        if (!add_prices(&p, def, json_object_iter_key(it), none, ret))
            return false;
    return true;
}

/* ---- ticket types ---- */

/* The id is a key of JSON objects, and a part of the options of the command line. */
static bool read_type_id(const struct fields *f, char **ret)
{
    const char *text;
    size_t len;
    if (!field_text(f, "id", REQUIRED, 1, TYPE_ID_LEN_MAX, &text, &len))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
            return field_fail(f, "id", "must be of the characters A-Z, a-z, 0-9, - and _");
    *ret = hf_strndup(text, len);
    return true;
}

static bool read_type_name(const struct fields *f, char **ret)
{
    return read_text(f, "name", OPTIONAL, TYPE_NAME_CHARS_MAX, ret) &&
           (!*ret || !has_control(*ret, strlen(*ret)) ||
            field_fail(f, "name", "must not contain control characters"));
}

static bool read_type(const struct fields *f, const struct event_def *def, struct ticket_type *ret)
{
    static const char *const known[] = {"id", "name", "prices", NULL};
    struct event_change change = {0}; /* for its prices */
    bool ok = fields_known(f, known) && read_type_id(f, &ret->id) &&
              read_type_name(f, &ret->name) && read_prices(f, def, TYPE_PRICE_NONE, &change);
    for (size_t i = 0; ok && i < change.prices.n; i++) {
        while (ret->prices.n <= change.prices.v[i].index)
            *vec_push(&ret->prices) = TYPE_PRICE_KEPT;
        ret->prices.v[change.prices.v[i].index] = change.prices.v[i].price;
    }
    vec_close(&change.prices);
    return ok;
}

/* Reads `types` into ret->types, which the caller closes in any case. */
static bool read_types(const struct fields *f, const struct event_def *def,
                       struct event_change *ret)
{
    const json_t *list = NULL;
    if (!field_array(f, "types", OPTIONAL, &list))
        return false;
    size_t n = list ? json_array_size(list) : 0;
    if (n > TYPES_MAX)
        return field_fail(f, "types", "must have at most 16 entries");
    for (size_t i = 0; i < n; i++) {
        struct fields one = {.object = json_array_get(list, i), .path = "", .err = f->err};
        struct ticket_type *type = vec_push(&ret->types);
        bool ok = read_type(&one, def, type);
        for (size_t k = 0; ok && k < i; k++)
            ok = strcmp(ret->types.v[k].id, type->id) != 0 ||
                 field_fail(&one, "id", "is that of another type, too");
        if (!ok)
            return fail_under(f->err, "types", i);
    }
    return true;
}

/* The types of a new event, whose categories and areas have been read. */
static bool read_new_types(const struct fields *f, struct event_def *def)
{
    struct event_change change = {0}; /* for its types */
    bool ok = read_types(f, def, &change);
    for (size_t i = 0; i < change.types.n; i++) {
        if (ok)
            ok = event_terms_put_type(&def->terms, &change.types.v[i]);
        ticket_type_close(&change.types.v[i]);
    }
    vec_close(&change.types);
    return ok;
}

/* ---- a change ---- */

/* The bits of the fields that are given.  A list that is switched off is not paused any more. */
static unsigned fields_given(const json_t *json, const char *const *names)
{
    const json_t *list = json_object_get(json, "waitlist");
    unsigned given = 0;
    for (size_t i = 0; i < EVENT_PLAIN_FIELDS_N; i++)
        if (json_object_get(json, names[i]))
            given |= 1u << i;
    if (list)
        given |= EVENT_OFFER_TTL | EVENT_WAIT_ALIVE | EVENT_WAIT_PER_OWNER;
    if (json_is_null(list))
        given |= EVENT_WAIT_PAUSED;
    return given;
}

bool parse_event_change(const json_t *json, const struct event_def *def, struct event_change *ret,
                        struct hf_err *err)
{
    static const char *const known[] = {TERMS_FIELDS "prices", "types", NULL};
    const struct fields f = {.object = json, .path = "", .err = err};
    ret->given |= fields_given(json, known);
    if (!fields_known(&f, known) || !read_terms(&f, &ret->terms) ||
        !read_prices(&f, def, TYPE_PRICE_KEPT, ret) || !read_types(&f, def, ret))
        return false;
    if (!ret->given && !ret->prices.n && !ret->types.n)
        return field_fail(&f, "the body", "must name at least one field to change");
    return true;
}

/* ---- the whole of it ---- */

static bool read_event(struct reader *rd, const struct fields *f)
{
    static const char *const known[] = {
        TERMS_FIELDS "currency", "sections", "categories", "areas", "types", NULL};
    static const char *const known_with_plan[] = {
        TERMS_FIELDS "currency", "plan", "prices", "accessible", "focus", "areas", "types", NULL};
    struct event_def *def = rd->def;
    bool has_plan = json_object_get(f->object, "plan");
    if (has_plan && json_object_get(f->object, "sections"))
        return field_fail(f, "sections", "go without a plan, whose zones are the sections");
    if ((!fields_known(f, has_plan ? known_with_plan : known) && !complaint_kept(rd)) ||
        (!read_new_terms(rd, f, &def->terms) && !complaint_kept(rd)) ||
        (!read_currency(f, def->currency) && !complaint_kept(rd)))
        return false;
    def->status = EVENT_OPEN;
    return (has_plan ? read_plan(rd, f) : read_layout(rd, f)) && read_new_types(f, def);
}

static bool parse_with_rows(const json_t *json, const struct rows_cut *cut,
                            struct complaints *complaints, struct event_def **ret,
                            struct hf_err *err)
{
    struct reader rd = {
        .def = hf_alloc(sizeof *rd.def), .err = err, .cut = cut, .complaints = complaints};
    struct fields f = {.object = json, .path = "", .err = err};
    bool ok = read_event(&rd, &f);
    if (!ok && err->msg[0]) /* otherwise what is wrong has been kept */
        (void)complaint_kept(&rd);
    if (!ok || has_complaints(&rd)) {
        event_def_free(rd.def);
        return false;
    }
    if (rd.def->venue) {
        venue_find_listed(rd.def);
        venue_pack(rd.def, &rd.def->packed);
    }
    *ret = rd.def;
    return true;
}

bool parse_event(const json_t *json, struct event_def **ret, struct hf_err *err)
{
    return parse_with_rows(json, NULL, NULL, ret, err);
}

static bool parse_text(const struct buf *body, bool *ret_lacks_plan, struct complaints *complaints,
                       struct event_def **ret, struct hf_err *err)
{
    struct rows_cut cut = {0};
    bool is_cut = rows_cut_init(&cut, body);
    if (cut.is_too_long) {
        *ret_lacks_plan = false;
        (void)hf_err_set(err, HF_INVALID_REQUEST, "plan.zones have more than 100000 rows");
        return false;
    }
    const struct buf *rest = is_cut ? &cut.rest : body;
    json_t *json = NULL;
    if (!json_is_moderate(rest->data, rest->len, JSON_CONTAINERS_MAX))
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "body has more than 1000000 objects and lists, or 4000000 values, or a "
                         "text of more than a megabyte");
    else
        json = parse_body(rest, false, err);
    *ret_lacks_plan = json ? !json_object_get(json, "plan")
                           : !body->len || !memmem(body->data, body->len, "\"plan\"", 6);
    bool ok = json && parse_with_rows(json, is_cut ? &cut : NULL, complaints, ret, err);
    json_decref(json);
    rows_cut_close(&cut);
    return ok;
}

bool parse_event_body(const struct buf *body, bool *ret_lacks_plan, struct event_def **ret,
                      struct hf_err *err)
{
    return parse_text(body, ret_lacks_plan, NULL, ret, err);
}

bool parse_event_complaints(const struct buf *body, bool *ret_lacks_plan,
                            struct complaints *complaints, struct event_def **ret)
{
    struct hf_err err = {0};
    bool ok = parse_text(body, ret_lacks_plan, complaints, ret, &err);
    if (!ok && !complaints->list.n) /* the body could not be read at all */
        *vec_push(&complaints->list) = hf_strndup(err.msg, strlen(err.msg));
    return ok;
}
