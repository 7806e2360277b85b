/* Events as JSON; see render.h. */
#include <string.h>

#include "api/render.h"
#include "base/clock.h"
#include "json/fields.h"

/* A listed seat: its label, or an object if there is more to say of it. */
static void put_seat(const struct event_def *def, const struct section_def *s, uint32_t seat,
                     struct buf *out)
{
    const struct venue *v = def->venue;
    hf_check(v); /* an event that lists seats has a venue */
    unsigned flags = v->flags[seat];
    const char *label = venue_label(v, seat);
    bool is_own = v->categories[seat] != s->category;
    if (!flags && !is_own) {
        buf_json(out, label, strlen(label));
        return;
    }
    buf_char(out, '{');
    json_put_text(out, "label", label);
    if (is_own)
        json_put_text(out, "category", def->categories.v[v->categories[seat]].name);
    buf_str(out, flags & SEAT_ACCESSIBLE ? ",\"accessible\":true" : "");
    buf_str(out, flags & SEAT_COMPANION ? ",\"companion\":true" : "");
    buf_str(out, flags & SEAT_RESTRICTED_VIEW ? ",\"restricted_view\":true" : "");
    if (flags & SEAT_PLACED) {
        json_put_name(out, "x");
        put_real(out, v->x[seat]);
        json_put_name(out, "y");
        put_real(out, v->y[seat]);
    }
    buf_char(out, '}');
}

/* Appends the rows in the form in which the event's creator gave them. */
static void put_rows(const struct event_def *def, size_t section, struct buf *out)
{
    const struct section_def *s = &def->sections.v[section];
    if (!s->listed) {
        json_put_int(out, "rows", (int64_t)s->rows.n);
        json_put_int(out, "seats_per_row", s->rows.n ? s->rows.v[0].seats : 0);
        return;
    }
    json_open(out, "rows", '[');
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct row_def *row = &s->rows.v[i];
        json_open(out, NULL, '{');
        json_put_text(out, "name", row->name);
        json_put_name(out, "seats");
        if (!row->listed)
            buf_int(out, row->seats);
        for (uint32_t k = 0; row->listed && k < row->seats; k++) {
            buf_char(out, k ? ',' : '[');
            put_seat(def, s, row->first + k, out);
            if (k + 1 == row->seats)
                buf_char(out, ']');
        }
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* The section's price, or the category that it was given instead. */
static void put_section_price(const struct event_def *def, const struct event_terms *terms,
                              size_t section, struct buf *out)
{
    int64_t category = event_def_section_category(def, section);
    if (category < 0)
        return;
    if (def->categories.n && !def->categories.v[category].of_section) {
        json_put_text(out, "category", def->categories.v[category].name);
        return;
    }
    json_put_int(out, "price", terms->prices.v[category]);
}

static void put_sections(const struct event_def *def, const struct event_terms *terms,
                         struct buf *out)
{
    json_open(out, "sections", '[');
    for (size_t i = 0; i < def->sections.n; i++) {
        const struct section_def *s = &def->sections.v[i];
        json_open(out, NULL, '{');
        json_put_text(out, "name", s->name);
        if (s->tier)
            json_put_text(out, "tier", s->tier);
        put_section_price(def, terms, i, out);
        put_rows(def, i, out);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* The zones of a plan, without its seats. */
static void put_zones(const struct event_def *def, struct buf *out)
{
    json_open(out, "sections", '[');
    for (size_t i = 0; i < def->sections.n; i++) {
        const struct section_def *s = &def->sections.v[i];
        const struct row_def *last = &s->rows.v[s->rows.n - 1];
        json_open(out, NULL, '{');
        json_put_text(out, "name", s->name);
        json_put_int(out, "rows", (int64_t)s->rows.n);
        json_put_int(out, "seats", (int64_t)last->first + last->seats - s->rows.v[0].first);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_categories(const struct event_def *def, const struct event_terms *terms,
                           struct buf *out)
{
    json_open(out, "categories", '[');
    for (size_t i = 0; i < def->categories.n; i++) {
        const struct category_def *c = &def->categories.v[i];
        if (c->of_section)
            continue;
        json_open(out, NULL, '{');
        json_put_text(out, "name", c->name);
        json_put_int(out, "price", terms->prices.v[i]);
        if (c->color)
            json_put_text(out, "color", c->color);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* What stood beside the plan. */
static void put_beside_plan(const struct event_def *def, const struct event_terms *terms,
                            struct buf *out)
{
    const struct venue *v = def->venue;
    json_open(out, "prices", '{');
    for (size_t i = 0; i < def->categories.n; i++) {
        json_put_text(out, NULL, def->categories.v[i].name);
        buf_char(out, ':');
        buf_int(out, terms->prices.v[i]);
    }
    buf_lit(out, "},\"focus\":{\"x\":");
    put_real(out, v->focus_x);
    json_put_name(out, "y");
    put_real(out, v->focus_y);
    buf_lit(out, "},\"accessible\":[");
    for (uint32_t i = 0; i < v->n_seats; i++)
        if (v->flags[i] & SEAT_ACCESSIBLE)
            json_put_text(out, NULL, venue_id(v, i));
    buf_char(out, ']');
}

/* The layout in the form in which the event's creator gave it. */
static void put_layout(const struct event_def *def, const struct event_terms *terms,
                       struct buf *out)
{
    if (def->venue && def->venue->is_plan) {
        put_beside_plan(def, terms, out);
        put_zones(def, out);
        return;
    }
    if (def->venue)
        put_categories(def, terms, out);
    put_sections(def, terms, out);
}

static void put_areas(const struct event_def *def, const struct event_terms *terms, struct buf *out)
{
    json_open(out, "areas", '[');
    for (size_t i = 0; i < def->areas.n; i++) {
        const struct area_def *a = &def->areas.v[i];
        json_open(out, NULL, '{');
        json_put_text(out, "name", a->name);
        json_put_int(out, "price", terms->prices.v[event_def_categories(def) + i]);
        json_put_int(out, "capacity", a->capacity);
        if (a->plan_area)
            json_put_text(out, "plan_area", a->plan_area);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_counts(const struct event_counts *counts, struct buf *out)
{
    json_put_int(out, "available", counts->available);
    json_put_int(out, "held", counts->held);
    json_put_int(out, "booked", counts->booked);
    json_put_int(out, "blocked", counts->blocked);
}

/* What the price with this index is called; NULL: it is that of an area which has the name of a
 * category, and the category's price says it. */
static const char *price_name(const struct event_def *def, size_t index)
{
    size_t n_categories = event_def_categories(def);
    if (index < n_categories)
        return event_def_category_name(def, index);
    const char *name = def->areas.v[index - n_categories].name;
    for (size_t k = 0; def->categories.n && k < n_categories; k++)
        if (strcmp(def->categories.v[k].name, name) == 0)
            return NULL;
    return name;
}

void render_prices(const struct event_def *def, const struct event_terms *terms, struct buf *out)
{
    buf_char(out, '{');
    for (size_t i = 0; i < terms->prices.n; i++) {
        const char *name = price_name(def, i);
        if (!name)
            continue;
        json_put_text(out, NULL, name);
        buf_char(out, ':');
        buf_int(out, terms->prices.v[i]);
    }
    buf_char(out, '}');
}

/* The prices that the type has of its own. */
static void put_type_prices(const struct event_def *def, const struct ticket_type *type,
                            struct buf *out)
{
    json_open(out, "prices", '{');
    for (size_t i = 0; i < type->prices.n; i++) {
        const char *name = type->prices.v[i] == TYPE_PRICE_NONE ? NULL : price_name(def, i);
        if (!name)
            continue;
        json_put_text(out, NULL, name);
        buf_char(out, ':');
        buf_int(out, type->prices.v[i]);
    }
    buf_char(out, '}');
}

void render_types(const struct event_def *def, const struct event_terms *terms, struct buf *out)
{
    if (!terms->types.n)
        return;
    json_open(out, "types", '[');
    for (size_t i = 0; i < terms->types.n; i++) {
        json_open(out, NULL, '{');
        json_put_text(out, "id", terms->types.v[i].id);
        json_put_text(out, "name", terms->types.v[i].name);
        put_type_prices(def, &terms->types.v[i], out);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_local_time(const char *name, const struct local_time *at, struct buf *out)
{
    char text[CLOCK_LOCAL_SIZE];
    json_put_bytes(out, name, at->ms ? text : NULL,
                   at->ms ? clock_format_local(at->ms, at->offset_min, text) : 0);
}

static void put_waitlist(const struct event_terms *terms, struct buf *out)
{
    if (!terms->offer_ttl_ms) {
        json_put_text(out, "waitlist", NULL);
        return;
    }
    json_open(out, "waitlist", '{');
    json_put_int(out, "offer_ttl_ms", terms->offer_ttl_ms);
    json_put_int(out, "alive_ms", terms->wait_alive_ms);
    json_put_int(out, "per_owner", terms->wait_per_owner);
    json_put_bool(out, "paused", terms->wait_paused);
    buf_char(out, '}');
}

/* What the event's admin may change. */
static void put_terms(const struct event_terms *terms, struct buf *out)
{
    json_put_text(out, "venue", terms->venue);
    json_put_text(out, "venue_address", terms->venue_address);
    json_put_text(out, "timezone", terms->timezone);
    put_local_time("starts_at", &terms->starts_at, out);
    put_local_time("doors_at", &terms->doors_at, out);
    json_put_time_or_null(out, "sales_open_at", terms->sales_open_at);
    json_put_time_or_null(out, "sales_close_at", terms->sales_close_at);
    json_put_int(out, "hold_ttl_ms", terms->hold_ttl_ms);
    json_put_int(out, "hold_max_ms", terms->hold_max_ms);
    json_put_int(out, "max_per_hold", terms->max_per_hold);
    json_put_int_or_null(out, "max_per_owner", terms->max_per_owner);
    json_put_text(out, "lone_seats", lone_seats_text(terms->lone_seats));
    put_waitlist(terms, out);
    json_put_text(out, "image", terms->image);
    json_put_text(out, "description", terms->description);
    json_put_name(out, "metadata");
    buf_str(out, terms->metadata ? terms->metadata : "null");
}

/* What an event has in a list and by itself, up to the counts. */
static void put_fields(const struct event_def *def, const struct event_terms *terms, int status,
                       int64_t capacity, struct buf *out)
{
    buf_lit(out, "{\"object\":\"event\"");
    json_put_id(out, "id", "evt_", &def->id);
    json_put_text(out, "name", terms->name);
    json_put_text(out, "status", status_text(AUDIT_EVENT, status));
    json_put_text(out, "currency", def->currency);
    put_terms(terms, out);
    json_put_time(out, "created_at", def->created_at);
    json_put_int(out, "capacity", capacity);
}

void render_event_summary(const struct event_summary *s, struct buf *out)
{
    const struct event_counts *c = &s->counts;
    put_fields(s->def, &s->def->terms, (int)s->def->status,
               c->available + c->held + c->booked + c->blocked, out);
    put_counts(c, out);
    buf_char(out, '}');
}

void render_event(const struct event_def *def, const struct event_terms *terms, struct event *e,
                  int status, struct buf *out)
{
    struct event_counts counts;
    if (!status)
        status =
            e ? atomic_load_explicit(&e->shown.status, memory_order_relaxed) : (int)def->status;
    put_fields(def, terms, status, event_def_capacity(def), out);
    if (e) {
        event_read_counts(e, &counts);
        put_counts(&counts, out);
    }
    put_layout(def, terms, out);
    put_areas(def, terms, out);
    render_types(def, terms, out);
    buf_char(out, '}');
}
