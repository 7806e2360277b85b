/* Events as JSON; see render.h. */
#include <string.h>

#include "api/render.h"
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
    buf_lit(out, "{\"label\":");
    buf_json(out, label, strlen(label));
    if (is_own) {
        const char *category = def->categories.v[v->categories[seat]].name;
        buf_lit(out, ",\"category\":");
        buf_json(out, category, strlen(category));
    }
    buf_str(out, flags & SEAT_ACCESSIBLE ? ",\"accessible\":true" : "");
    buf_str(out, flags & SEAT_COMPANION ? ",\"companion\":true" : "");
    buf_str(out, flags & SEAT_RESTRICTED_VIEW ? ",\"restricted_view\":true" : "");
    if (flags & SEAT_PLACED) {
        buf_lit(out, ",\"x\":");
        put_real(out, v->x[seat]);
        buf_lit(out, ",\"y\":");
        put_real(out, v->y[seat]);
    }
    buf_char(out, '}');
}

/* Appends the rows in the form in which the event's creator gave them. */
static void put_rows(const struct event_def *def, size_t section, struct buf *out)
{
    const struct section_def *s = &def->sections.v[section];
    if (!s->listed) {
        buf_lit(out, ",\"rows\":");
        buf_int(out, (int64_t)s->rows.n);
        buf_lit(out, ",\"seats_per_row\":");
        buf_int(out, s->rows.n ? s->rows.v[0].seats : 0);
        return;
    }
    buf_lit(out, ",\"rows\":[");
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct row_def *row = &s->rows.v[i];
        buf_str(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json(out, row->name, strlen(row->name));
        buf_lit(out, ",\"seats\":");
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

static void put_name(struct buf *out, const char *member, const char *name)
{
    buf_str(out, member);
    buf_json(out, name, strlen(name));
}

/* The section's price, or the category that it was given instead. */
static void put_section_price(const struct event_def *def, const struct event_terms *terms,
                              size_t section, struct buf *out)
{
    int64_t category = event_def_section_category(def, section);
    if (category < 0)
        return;
    if (def->categories.n && !def->categories.v[category].of_section) {
        put_name(out, ",\"category\":", def->categories.v[category].name);
        return;
    }
    buf_lit(out, ",\"price\":");
    buf_int(out, terms->prices.v[category]);
}

static void put_sections(const struct event_def *def, const struct event_terms *terms,
                         struct buf *out)
{
    buf_lit(out, ",\"sections\":[");
    for (size_t i = 0; i < def->sections.n; i++) {
        const struct section_def *s = &def->sections.v[i];
        put_name(out, i ? ",{\"name\":" : "{\"name\":", s->name);
        if (s->tier)
            put_name(out, ",\"tier\":", s->tier);
        put_section_price(def, terms, i, out);
        put_rows(def, i, out);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* The zones of a plan, without its seats. */
static void put_zones(const struct event_def *def, struct buf *out)
{
    buf_lit(out, ",\"sections\":[");
    for (size_t i = 0; i < def->sections.n; i++) {
        const struct section_def *s = &def->sections.v[i];
        const struct row_def *last = &s->rows.v[s->rows.n - 1];
        put_name(out, i ? ",{\"name\":" : "{\"name\":", s->name);
        buf_lit(out, ",\"rows\":");
        buf_int(out, (int64_t)s->rows.n);
        buf_lit(out, ",\"seats\":");
        buf_int(out, (int64_t)last->first + last->seats - s->rows.v[0].first);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_categories(const struct event_def *def, const struct event_terms *terms,
                           struct buf *out)
{
    bool any = false;
    buf_lit(out, ",\"categories\":[");
    for (size_t i = 0; i < def->categories.n; i++) {
        const struct category_def *c = &def->categories.v[i];
        if (c->of_section)
            continue;
        put_name(out, any ? ",{\"name\":" : "{\"name\":", c->name);
        buf_lit(out, ",\"price\":");
        buf_int(out, terms->prices.v[i]);
        if (c->color)
            put_name(out, ",\"color\":", c->color);
        buf_char(out, '}');
        any = true;
    }
    buf_char(out, ']');
}

/* What stood beside the plan. */
static void put_beside_plan(const struct event_def *def, const struct event_terms *terms,
                            struct buf *out)
{
    const struct venue *v = def->venue;
    bool any = false;
    buf_lit(out, ",\"prices\":{");
    for (size_t i = 0; i < def->categories.n; i++) {
        put_name(out, i ? "," : "", def->categories.v[i].name);
        buf_char(out, ':');
        buf_int(out, terms->prices.v[i]);
    }
    buf_lit(out, "},\"focus\":{\"x\":");
    put_real(out, v->focus_x);
    buf_lit(out, ",\"y\":");
    put_real(out, v->focus_y);
    buf_lit(out, "},\"accessible\":[");
    for (uint32_t i = 0; i < v->n_seats; i++)
        if (v->flags[i] & SEAT_ACCESSIBLE) {
            put_name(out, any ? "," : "", venue_id(v, i));
            any = true;
        }
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
    buf_lit(out, ",\"areas\":[");
    for (size_t i = 0; i < def->areas.n; i++) {
        const struct area_def *a = &def->areas.v[i];
        buf_str(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json(out, a->name, strlen(a->name));
        buf_lit(out, ",\"price\":");
        buf_int(out, terms->prices.v[event_def_categories(def) + i]);
        buf_lit(out, ",\"capacity\":");
        buf_int(out, a->capacity);
        if (a->plan_area)
            put_name(out, ",\"plan_area\":", a->plan_area);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_counts(const struct event_counts *counts, struct buf *out)
{
    buf_lit(out, ",\"available\":");
    buf_int(out, counts->available);
    buf_lit(out, ",\"held\":");
    buf_int(out, counts->held);
    buf_lit(out, ",\"booked\":");
    buf_int(out, counts->booked);
    buf_lit(out, ",\"blocked\":");
    buf_int(out, counts->blocked);
}

/* An area that has the name of a category is left out, since it has its price with its name. */
void render_prices(const struct event_def *def, const struct event_terms *terms, struct buf *out)
{
    size_t n_categories = event_def_categories(def);
    bool any = false;
    buf_char(out, '{');
    for (size_t i = 0; i < terms->prices.n; i++) {
        bool is_area = i >= n_categories;
        const char *name =
            is_area ? def->areas.v[i - n_categories].name : event_def_category_name(def, i);
        bool is_double = false;
        for (size_t k = 0; is_area && def->categories.n && k < n_categories; k++)
            is_double |= strcmp(def->categories.v[k].name, name) == 0;
        if (is_double)
            continue;
        put_name(out, any ? "," : "", name);
        buf_char(out, ':');
        buf_int(out, terms->prices.v[i]);
        any = true;
    }
    buf_char(out, '}');
}

/* What the event's admin may change. */
static void put_terms(const struct event_terms *terms, struct buf *out)
{
    buf_lit(out, ",\"venue\":");
    render_text(out, terms->venue, terms->venue ? strlen(terms->venue) : 0);
    buf_lit(out, ",\"starts_at\":");
    render_time(out, terms->starts_at);
    buf_lit(out, ",\"sales_open_at\":");
    render_time(out, terms->sales_open_at);
    buf_lit(out, ",\"sales_close_at\":");
    render_time(out, terms->sales_close_at);
    buf_lit(out, ",\"hold_ttl_ms\":");
    buf_int(out, terms->hold_ttl_ms);
    buf_lit(out, ",\"hold_max_ms\":");
    buf_int(out, terms->hold_max_ms);
    buf_lit(out, ",\"max_per_hold\":");
    buf_int(out, terms->max_per_hold);
    buf_lit(out, ",\"max_per_owner\":");
    if (terms->max_per_owner)
        buf_int(out, terms->max_per_owner);
    else
        buf_lit(out, "null");
    buf_lit(out, ",\"metadata\":");
    buf_str(out, terms->metadata ? terms->metadata : "null");
}

/* What an event has in a list and by itself, up to the counts. */
static void put_fields(const struct event_def *def, const struct event_terms *terms, int status,
                       int64_t capacity, struct buf *out)
{
    buf_lit(out, "{\"object\":\"event\",\"id\":");
    render_id("evt_", &def->id, false, out);
    buf_lit(out, ",\"name\":");
    buf_json(out, terms->name, strlen(terms->name));
    buf_lit(out, ",\"status\":\"");
    buf_str(out, status_text(AUDIT_EVENT, status));
    buf_lit(out, "\",\"currency\":\"");
    buf_str(out, def->currency);
    buf_char(out, '"');
    put_terms(terms, out);
    buf_lit(out, ",\"created_at\":");
    buf_json_time(out, def->created_at);
    buf_lit(out, ",\"capacity\":");
    buf_int(out, capacity);
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
        status = e ? atomic_load_explicit(&e->status, memory_order_relaxed) : (int)def->status;
    put_fields(def, terms, status, event_def_capacity(def), out);
    if (e) {
        event_read_counts(e, &counts);
        put_counts(&counts, out);
    }
    put_layout(def, terms, out);
    put_areas(def, terms, out);
    buf_char(out, '}');
}
