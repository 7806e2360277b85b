/* A seating plan in pretix's open format, as it stands in the body of a POST /v1/events, with what
 * the format cannot say beside it: prices, accessible seats, the focus, areas that are sold.
 *
 * Zones become sections, and positions add up: zone, row, seat.  What Holdfast has no use for
 * (uuids, labels of rows, radius, start_direction) is kept as JSON text and comes back in the
 * plan's document. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "venue/plan_reader.h"

#define SIZE_MAX_UNITS 1000000

/* Appends the members and returns a copy of the text; NULL if there is none of them. */
static char *kept(struct buf *out, const json_t *object, const char *const *names)
{
    out->len = 0;
    for (; *names; names++)
        plan_keep(out, object, *names);
    return out->len ? hf_strndup(out->data, out->len) : NULL;
}

static bool read_size(const struct fields *f, const char *name, double *ret)
{
    if (!field_number(f, name, REQUIRED, ret))
        return false;
    return (*ret > 0 && *ret <= SIZE_MAX_UNITS) ||
           field_fail(f, name, "must be more than 0 and at most 1000000");
}

/* ---- zones, rows, seats ---- */

static bool read_plan_seat(struct plan_reader *p, const struct fields *f, const struct point *row)
{
    static const char *const known[] = {"seat_guid", "seat_number", "position",        "category",
                                        "uuid",      "radius",      "start_direction", NULL};
    static const char *const verbatim[] = {"radius", "start_direction", "uuid", NULL};
    struct venue_seat seat = {.flags = SEAT_PLACED};
    struct point at;
    const char *category;
    if (!fields_known(f, known) || !read_opaque(f, "seat_guid", REQUIRED, 1, &seat.id) ||
        !read_opaque(f, "seat_number", REQUIRED, 0, &seat.label) ||
        !read_point(f, "position", REQUIRED, &at) ||
        !read_opaque(f, "category", REQUIRED, 1, &category) ||
        !read_opaque(f, "uuid", OPTIONAL, 0, NULL) ||
        !read_opaque(f, "start_direction", NULLABLE, 0, NULL) || !read_radius(f, OPTIONAL))
        return false;
    int found = find_category(p->def, category);
    if (found < 0)
        return field_fail(f, "category", "is no category of the plan");
    seat.category = (uint32_t)found;
    seat.x = row->x + at.x;
    seat.y = row->y + at.y;
    if (!(fabs(seat.x) <= POSITION_MAX) || !(fabs(seat.y) <= POSITION_MAX))
        return field_fail(f, "position", "is too far from the origin");
    p->extra.len = 0;
    for (const char *const *name = verbatim; *name; name++)
        plan_keep(&p->extra, f->object, *name);
    buf_char(&p->extra, '\0');
    seat.extra = p->extra.data;
    venue_add(p->def->venue, &seat);
    return true;
}

static bool read_row_number_position(const struct fields *f)
{
    const char *side = NULL;
    if (!read_opaque(f, "row_number_position", NULLABLE, 0, &side))
        return false;
    return !side || strcmp(side, "start") == 0 || strcmp(side, "end") == 0 ||
           strcmp(side, "both") == 0 ||
           field_fail(f, "row_number_position", "must be start, end, both or null");
}

static bool read_plan_row(struct plan_reader *p, const struct fields *f, const struct point *zone,
                          struct section_def *s)
{
    static const char *const known[] = {"row_number", "row_label",           "seat_label", "uuid",
                                        "seats",      "row_number_position", "position",   NULL};
    static const char *const verbatim[] = {"uuid", "row_label", "seat_label", "row_number_position",
                                           NULL};
    struct point at = {0};
    const json_t *seats = NULL;
    const char *name;
    if (!fields_known(f, known) || !read_opaque(f, "row_number", REQUIRED, 0, &name) ||
        !read_opaque(f, "row_label", NULLABLE, 0, NULL) ||
        !read_opaque(f, "seat_label", NULLABLE, 0, NULL) || !read_row_number_position(f) ||
        !read_opaque(f, "uuid", OPTIONAL, 0, NULL) || !read_point(f, "position", OPTIONAL, &at) ||
        !field_array(f, "seats", REQUIRED, &seats))
        return false;
    size_t n = json_array_size(seats);
    if (n == 0)
        return true;
    if (n > ROW_SEATS_MAX)
        return field_fail(f, "seats", "must be at most 100000");
    if (!count_rows(p->rd, f, "seats", 1, (int64_t)n))
        return false;
    struct row_def *row = vec_push(&s->rows);
    row->name = hf_strndup(name, strlen(name));
    row->extra = kept(&p->extra, f->object, verbatim);
    row->seats = (uint32_t)n;
    at.x += zone->x;
    at.y += zone->y;
    for (size_t i = 0; i < n; i++) {
        const struct fields seat = {.object = json_array_get(seats, i), .path = "", .err = f->err};
        if (read_plan_seat(p, &seat, &at))
            continue;
        (void)fail_under(f->err, "seats", i);
        if (!p->rd->complaints)
            return false;
        (void)fail_under(f->err, "rows", p->places.v[p->places.n - 1].row);
        if (!zone_complaint_kept(p))
            return false;
    }
    return true;
}

/* Reads the `n`th row of a zone.  Returns true, too, if what is wrong with it was kept. */
static bool read_nth_row(struct plan_reader *p, const json_t *object, const struct point *zone,
                         struct section_def *s, size_t n)
{
    const struct fields f = {.object = object, .path = "", .err = p->err};
    *vec_push(&p->places) = (struct row_place){
        .first = p->def->venue->n_seats, .zone = (uint32_t)p->zone, .row = (uint32_t)n};
    return read_plan_row(p, &f, zone, s) || fail_under(p->err, "rows", n) || zone_complaint_kept(p);
}

/* The same of a row that was cut out of the body. */
static bool read_cut_row(struct plan_reader *p, const struct row_text *row,
                         const struct point *zone, struct section_def *s, size_t n)
{
    const struct fields f = {.path = "", .err = p->err};
    json_error_t error;
    if (!json_is_moderate(row->text, row->len, JSON_CONTAINERS_MAX)) {
        (void)field_fail(
            &f, "", "has more than 1000000 objects and lists, or a text of more than a megabyte");
        return fail_under(p->err, "rows", n) || zone_complaint_kept(p);
    }
    json_t *json =
        json_loadb(row->text, row->len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!json) {
        (void)field_fail(&f, "", json_fault(&error));
        return fail_under(p->err, "rows", n) || zone_complaint_kept(p);
    }
    bool ok = read_nth_row(p, json, zone, s, n);
    json_decref(json);
    return ok;
}

/* Reads the zone's rows that were cut out of the body, one at a time.  Those of a zone that was
 * refused before its rows are skipped. */
static bool read_cut_rows(struct plan_reader *p, const struct point *zone, struct section_def *s)
{
    const struct rows_cut *cut = p->rd->cut;
    while (p->n_cut < cut->rows.n && cut->rows.v[p->n_cut].zone < p->zone)
        p->n_cut++;
    for (size_t n = 0; p->n_cut < cut->rows.n && cut->rows.v[p->n_cut].zone == p->zone; n++)
        if (!read_cut_row(p, &cut->rows.v[p->n_cut++], zone, s, n))
            return false;
    return true;
}

static bool read_plan_rows(struct plan_reader *p, const struct fields *f, const struct point *zone,
                           struct section_def *s)
{
    const json_t *rows = NULL;
    if (!field_array(f, "rows", REQUIRED, &rows))
        return false;
    if (p->rd->cut && json_array_size(rows) == 0) /* otherwise they were not cut */
        return read_cut_rows(p, zone, s);
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!read_nth_row(p, json_array_get(rows, i), zone, s, i))
            return false;
    return true;
}

/* The category that all seats from `first` on have; -1: they have several. */
static int16_t common_category(const struct venue *v, uint32_t first)
{
    for (uint32_t i = first + 1; i < v->n_seats; i++)
        if (v->categories[i] != v->categories[first])
            return -1;
    return (int16_t)v->categories[first];
}

/* A zone without seats, such as one that holds the stage, becomes no section. */
static bool read_zone(struct plan_reader *p, const struct fields *f)
{
    static const char *const known[] = {"name", "zone_id", "uuid", "position",
                                        "rows", "areas",   NULL};
    static const char *const verbatim[] = {"uuid", "zone_id", NULL};
    struct point at;
    const char *name = NULL;
    uint32_t first = p->def->venue->n_seats;
    char number[32];
    if (!fields_known(f, known) || !read_opaque(f, "name", OPTIONAL, 0, &name) ||
        !read_opaque(f, "zone_id", OPTIONAL, 0, NULL) ||
        !read_opaque(f, "uuid", OPTIONAL, 0, NULL) || !read_point(f, "position", REQUIRED, &at))
        return false;
    struct section_def *s = vec_push(&p->def->sections);
    (void)snprintf(number, sizeof number, "Zone %zu", p->zone + 1);
    s->name = name && *name ? hf_strndup(name, strlen(name)) : hf_strndup(number, strlen(number));
    s->listed = true;
    if (!read_plan_rows(p, f, &at, s) || !read_plan_areas(p, f, &at))
        return false;
    if (p->def->venue->n_seats > first) {
        s->extra = kept(&p->extra, f->object, verbatim);
        s->category = common_category(p->def->venue, first);
    } else if (!s->rows.n) { /* otherwise every seat was refused, and the section is thrown away */
        free(s->name);
        vec_close(&s->rows);
        p->def->sections.n--;
    }
    return true;
}

static bool read_zones(struct plan_reader *p, const struct fields *plan)
{
    const json_t *zones = NULL;
    if (!field_array(plan, "zones", REQUIRED, &zones))
        return false;
    for (size_t i = 0; i < json_array_size(zones); i++) {
        const struct fields f = {.object = json_array_get(zones, i), .path = "", .err = p->err};
        p->zone = i;
        if (read_zone(p, &f))
            continue;
        (void)fail_under(p->err, "plan.zones", i);
        if (!complaint_kept(p->rd))
            return false;
    }
    return true;
}

/* ---- categories, prices and what stands beside the plan ---- */

static bool read_plan_category(const struct fields *f, const char **ret_name,
                               const char **ret_color)
{
    static const char *const known[] = {"name", "color", NULL};
    size_t len;
    return fields_known(f, known) && read_opaque(f, "name", REQUIRED, 1, ret_name) &&
           field_text(f, "color", OPTIONAL, 0, COLOR_CHARS_MAX, ret_color, &len);
}

static bool read_plan_price(const struct fields *prices, const char *name, int64_t *ret)
{
    if (!json_object_get(prices->object, name))
        return field_fail(prices, name, "is required: the plan has a category of that name");
    return field_int(prices, name, REQUIRED, 0, PRICE_MAX, ret);
}

static bool read_plan_categories(struct plan_reader *p, const struct fields *f,
                                 const struct fields *plan)
{
    const json_t *list = NULL;
    json_t *object = json_object_get(f->object, "prices");
    const struct fields prices = {.object = object, .path = "prices.", .err = p->err};
    if (object && !json_is_object(object))
        return field_fail(f, "prices", "must be an object of categories and amounts");
    if (!field_array(plan, "categories", REQUIRED, &list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct fields c = {.object = json_array_get(list, i), .path = "", .err = p->err};
        const char *name = NULL, *color = NULL;
        int64_t price = 0;
        bool ok = read_plan_category(&c, &name, &color);
        if (ok && !read_plan_price(&prices, name, &price) && !complaint_kept(p->rd))
            return false;
        if (ok && add_category(p->rd, &c, name, color, price, false))
            continue;
        (void)fail_under(p->err, "plan.categories", i);
        if (!complaint_kept(p->rd))
            return false;
    }
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *name = json_object_iter_key(it);
        if (find_category(p->def, name) < 0 &&
            !(field_fail(&prices, name, "is no category of the plan") || complaint_kept(p->rd)))
            return false;
    }
    return true;
}

static bool read_accessible(struct plan_reader *p, const struct fields *f)
{
    struct venue *v = p->def->venue;
    const json_t *list = NULL;
    if (!field_array(f, "accessible", OPTIONAL, &list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        const struct fields item = {.path = "", .err = p->err};
        uint32_t seat;
        bool is_seat = json_is_string(id) &&
                       venue_find(v, json_string_value(id), json_string_length(id), &seat);
        if (is_seat) {
            v->flags[seat] |= SEAT_ACCESSIBLE;
            continue;
        }
        (void)field_fail(&item, "",
                         json_is_string(id) ? "is no seat of the plan" : "must be a seat's id");
        (void)fail_under(p->err, "accessible", i);
        if (!complaint_kept(p->rd))
            return false;
    }
    return true;
}

static bool read_head(struct plan_reader *p, const struct fields *plan)
{
    static const char *const known[] = {"name", "zones", "categories", "size", NULL};
    static const char *const size_known[] = {"width", "height", NULL};
    struct venue *v = p->def->venue;
    const char *name = NULL;
    if (!fields_known(plan, known) || !read_opaque(plan, "name", REQUIRED, 0, &name))
        return false;
    const struct fields size = {
        .object = inner_object(plan, "size"), .path = "plan.size.", .err = p->err};
    if (!size.object || !fields_known(&size, size_known) || !read_size(&size, "width", &v->width) ||
        !read_size(&size, "height", &v->height))
        return false;
    v->name = hf_strndup(name, strlen(name));
    v->is_plan = true;
    return true;
}

static bool read_focus(struct plan_reader *p, const struct fields *f)
{
    struct point focus;
    if (!json_object_get(f->object, "focus"))
        return true;
    if (!read_point(f, "focus", REQUIRED, &focus))
        return false;
    p->def->venue->has_focus = true;
    p->def->venue->focus_x = focus.x;
    p->def->venue->focus_y = focus.y;
    return true;
}

static bool refuse_duplicate(const struct plan_reader *p, uint32_t seat)
{
    size_t i = p->places.n - 1;
    while (i > 0 && p->places.v[i].first > seat)
        i--;
    const struct row_place *place = &p->places.v[i];
    (void)hf_err_set(p->err, HF_INVALID_REQUEST, "seat_guid is that of another seat, too: %.120s",
                     venue_id(p->def->venue, seat));
    (void)fail_under(p->err, "seats", seat - place->first);
    (void)fail_under(p->err, "rows", place->row);
    return fail_under(p->err, "plan.zones", place->zone);
}

static bool read_parts(struct plan_reader *p, const struct fields *f, const struct fields *plan)
{
    struct event_def *def = p->def;
    if ((!read_head(p, plan) && !complaint_kept(p->rd)) || !read_plan_categories(p, f, plan) ||
        !read_areas(p->rd, f, true))
        return false;
    sort_sold_areas(p);
    if (!read_zones(p, plan))
        return false;
    if (has_complaints(p->rd))
        return false;
    if (!check_sold_areas(p))
        return false;
    if (!def->sections.n && !def->areas.n)
        return field_fail(f, "plan", "has no seats, and no areas are named beside it");
    if (!event_def_number(def))
        return field_fail(f, "plan", "has more than 2000000 seats");
    uint32_t twice;
    if (!read_focus(p, f))
        return false;
    if (!finish_venue(def, &twice))
        return refuse_duplicate(p, twice);
    return read_accessible(p, f);
}

bool read_plan(struct reader *rd, const struct fields *f)
{
    const json_t *object = json_object_get(f->object, "plan");
    struct plan_reader p = {.rd = rd, .def = rd->def, .err = rd->err};
    const struct fields plan = {.object = object, .path = "plan.", .err = rd->err};
    if (!json_is_object(object))
        return field_fail(f, "plan", "must be an object");
    rd->def->venue = venue_new();
    bool ok = read_parts(&p, f, &plan);
    if (ok && p.areas.len)
        rd->def->venue->areas = hf_strndup(p.areas.data, p.areas.len);
    buf_close(&p.areas);
    buf_close(&p.extra);
    free(p.shown);
    free(p.by_uuid);
    vec_close(&p.places);
    return ok;
}
