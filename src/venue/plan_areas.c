/* The areas of a seating plan, their shapes and texts, and the readers of members that all parts of
 * a plan have; see plan_reader.h.  Areas are turned into the list of the plan's document here: what
 * is sold gets its name and capacity, everything else is decoration. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "venue/plan_reader.h"

#define AREAS_MAX 10000  /* in the plan, all zones together */
#define POINTS_MAX 10000 /* of a polygon */
#define AREA_TEXT_CHARS_MAX 1000

/* ---- JSON as it was ---- */

static void put_json(struct buf *out, const json_t *value)
{
    json_t *any = (json_t *)(uintptr_t)value; /* jansson's iterators take no const */
    if (json_is_object(value)) {
        buf_char(out, '{');
        for (void *it = json_object_iter(any); it; it = json_object_iter_next(any, it)) {
            json_put_text(out, NULL, json_object_iter_key(it));
            buf_char(out, ':');
            put_json(out, json_object_iter_value(it));
        }
        buf_char(out, '}');
    } else if (json_is_array(value)) {
        buf_char(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            json_put_name(out, NULL);
            put_json(out, json_array_get(value, i));
        }
        buf_char(out, ']');
    } else {
        put_scalar(out, value);
    }
}

void plan_keep(struct buf *out, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!value)
        return;
    buf_lit(out, ",\"");
    buf_str(out, name);
    buf_lit(out, "\":");
    put_json(out, value);
}

/* ---- members ---- */

bool zone_complaint_kept(struct plan_reader *p)
{
    if (!p->rd->complaints)
        return false;
    (void)fail_under(p->err, "plan.zones", p->zone);
    return complaint_kept(p->rd);
}

/* A number that says where something is drawn, or how large: no map could show more. */
static bool read_extent(const struct fields *f, const char *name, enum need need, double *ret)
{
    if (!field_number(f, name, need, ret))
        return false;
    return fabs(*ret) <= POSITION_MAX || field_fail(f, name, "must be from -10000000 to 10000000");
}

bool read_point(const struct fields *f, const char *name, enum need need, struct point *ret)
{
    static const char *const known[] = {"x", "y", NULL};
    const json_t *object = json_object_get(f->object, name);
    char path[64];
    (void)snprintf(path, sizeof path, "%.30s%.30s.", f->path, name);
    const struct fields p = {.object = object, .path = path, .err = f->err};
    if (!object && need == OPTIONAL)
        return true;
    if (!object)
        return field_fail(f, name, "is required");
    if (!json_is_object(object))
        return field_fail(f, name, "must be an object with x and y");
    return fields_known(&p, known) && read_extent(&p, "x", REQUIRED, &ret->x) &&
           read_extent(&p, "y", REQUIRED, &ret->y);
}

bool read_opaque(const struct fields *f, const char *name, enum need need, size_t chars_min,
                 const char **ret)
{
    const char *text = NULL;
    size_t len = 0;
    if (!field_text(f, name, need, chars_min, PLAN_TEXT_CHARS_MAX, &text, &len))
        return false;
    if (text && has_control(text, len))
        return field_fail(f, name, "must not contain control characters");
    if (ret)
        *ret = text;
    return true;
}

const json_t *inner_object(const struct fields *f, const char *name)
{
    const json_t *object = json_object_get(f->object, name);
    if (!json_is_object(object)) {
        (void)field_fail(f, name, object ? "must be an object" : "is required");
        return NULL;
    }
    return object;
}

/* ---- areas ---- */

static bool check_extent(const struct fields *f, const char *name, enum need need)
{
    double value = 0;
    return read_extent(f, name, need, &value);
}

bool read_radius(const struct fields *f, enum need need)
{
    double radius = 1;
    if (!field_number(f, "radius", need, &radius))
        return false;
    return (radius >= 0 && radius <= RADIUS_MAX) ||
           field_fail(f, "radius", "must be from 0 to 100000");
}

static bool check_polygon(const struct fields *f)
{
    static const char *const known[] = {"points", NULL};
    static const char *const coordinates[] = {"x", "y", NULL};
    const json_t *points = NULL;
    if (!fields_known(f, known) || !field_array(f, "points", REQUIRED, &points))
        return false;
    if (json_array_size(points) > POINTS_MAX)
        return field_fail(f, "points", "must be at most 10000");
    for (size_t i = 0; i < json_array_size(points); i++) {
        const struct fields p = {.object = json_array_get(points, i), .path = "", .err = f->err};
        if (!(json_is_object(p.object) || field_fail(&p, "", "must be an object with x and y")) ||
            !fields_known(&p, coordinates) || !check_extent(&p, "x", REQUIRED) ||
            !check_extent(&p, "y", REQUIRED))
            return fail_under(f->err, "polygon.points", i);
    }
    return true;
}

static bool check_rectangle(const struct fields *f)
{
    static const char *const known[] = {"width", "height", NULL};
    return fields_known(f, known) && check_extent(f, "width", REQUIRED) &&
           check_extent(f, "height", REQUIRED);
}

static bool check_ellipse(const struct fields *f)
{
    static const char *const known[] = {"radius", NULL};
    struct point radius;
    return fields_known(f, known) && read_point(f, "radius", REQUIRED, &radius);
}

static bool check_circle(const struct fields *f)
{
    static const char *const known[] = {"radius", NULL};
    return fields_known(f, known) && read_radius(f, REQUIRED);
}

static bool check_text(const struct fields *f)
{
    static const char *const known[] = {"text", "color", "size", "position", NULL};
    const char *text;
    size_t len;
    struct point at;
    return fields_known(f, known) &&
           field_text(f, "text", REQUIRED, 0, AREA_TEXT_CHARS_MAX, &text, &len) &&
           field_text(f, "color", OPTIONAL, 0, COLOR_CHARS_MAX, &text, &len) &&
           check_extent(f, "size", OPTIONAL) && read_point(f, "position", REQUIRED, &at);
}

static const struct shape {
    const char *name;
    bool (*check)(const struct fields *f);
} shapes[] = {{"polygon", check_polygon},
              {"rectangle", check_rectangle},
              {"ellipse", check_ellipse},
              {"circle", check_circle},
              {"text", check_text}};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* Checks the members that describe shapes, and finds the name of the area's own: the one that
 * `shape` names, or else the first that is described; NULL: none. */
static bool read_shape(const struct fields *f, const char **ret)
{
    const char *named = NULL, *found = NULL;
    size_t len;
    if (!field_text(f, "shape", OPTIONAL, 0, 20, &named, &len))
        return false;
    for (size_t i = 0; i < N_SHAPES; i++) {
        const struct shape *shape = &shapes[i];
        char path[16];
        (void)snprintf(path, sizeof path, "%s.", shape->name);
        if (named && strcmp(named, shape->name) == 0)
            found = shape->name;
        if (!json_object_get(f->object, shape->name))
            continue;
        const struct fields inner = {
            .object = inner_object(f, shape->name), .path = path, .err = f->err};
        if (!inner.object || !shape->check(&inner))
            return false;
        if (!named && !found)
            found = shape->name;
    }
    if (named && !found)
        return field_fail(f, "shape", "must be polygon, rectangle, ellipse, circle or text");
    *ret = found;
    return true;
}

/* By plan_area; of two that name the same, the first listed comes first. */
static int by_plan_area(const void *a, const void *b)
{
    const struct area_def *x = *(const struct area_def *const *)a;
    const struct area_def *y = *(const struct area_def *const *)b;
    int order = strcmp(x->plan_area, y->plan_area);
    return order ? order : (x > y) - (x < y);
}

void sort_sold_areas(struct plan_reader *p)
{
    size_t n = p->def->areas.n;
    p->shown = hf_alloc(n + 1);
    p->by_uuid = hf_alloc((n + 1) * sizeof(struct area_def *));
    for (size_t i = 0; i < n; i++)
        if (p->def->areas.v[i].plan_area)
            p->by_uuid[p->n_by_uuid++] = &p->def->areas.v[i];
    qsort(p->by_uuid, p->n_by_uuid, sizeof(struct area_def *), by_plan_area);
}

/* The sold area that the plan's area shows; NULL: it is decoration.  O(log areas). */
static const struct area_def *sold_area(const struct plan_reader *p, const char *uuid)
{
    size_t low = 0, high = p->n_by_uuid;
    while (uuid && low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(p->by_uuid[middle]->plan_area, uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (!uuid || low == p->n_by_uuid || strcmp(p->by_uuid[low]->plan_area, uuid) != 0)
        return NULL;
    uint8_t *shown = &p->shown[p->by_uuid[low] - p->def->areas.v];
    *shown = *shown < 2 ? (uint8_t)(*shown + 1) : 2;
    return p->by_uuid[low];
}

static void put_area(struct plan_reader *p, const json_t *object, const char *shape,
                     const struct area_def *sold, const struct point *at)
{
    static const char *const verbatim[] = {"rotation",  "color",   "border_color", "polygon",
                                           "rectangle", "ellipse", "circle",       "text",
                                           "uuid",      NULL};
    struct buf *out = &p->areas;
    json_open(out, NULL, '{');
    json_put_text(out, "name", sold ? sold->name : NULL);
    json_put_text(out, "shape", shape);
    json_put_name(out, "x");
    put_real(out, at->x);
    json_put_name(out, "y");
    put_real(out, at->y);
    for (const char *const *name = verbatim; *name; name++)
        plan_keep(out, object, *name);
    if (sold)
        json_put_int(out, "capacity", sold->capacity);
    buf_char(out, '}');
}

static bool read_plan_area(struct plan_reader *p, const struct fields *f, const struct point *zone)
{
    static const char *const known[] = {"color",   "border_color", "rotation", "position",
                                        "uuid",    "shape",        "polygon",  "rectangle",
                                        "ellipse", "circle",       "text",     NULL};
    struct point at = {0};
    const char *uuid = NULL, *shape = NULL, *color;
    size_t len;
    if (!fields_known(f, known) || !read_point(f, "position", OPTIONAL, &at) ||
        !read_opaque(f, "uuid", OPTIONAL, 0, &uuid) || !check_extent(f, "rotation", OPTIONAL) ||
        !field_text(f, "color", OPTIONAL, 0, COLOR_CHARS_MAX, &color, &len) ||
        !field_text(f, "border_color", OPTIONAL, 0, COLOR_CHARS_MAX, &color, &len) ||
        !read_shape(f, &shape))
        return false;
    if (++p->n_areas > AREAS_MAX)
        return field_fail(f, "", "is one area too many: a plan has at most 10000");
    at.x += zone->x;
    at.y += zone->y;
    put_area(p, f->object, shape, sold_area(p, uuid), &at);
    return true;
}

bool read_plan_areas(struct plan_reader *p, const struct fields *f, const struct point *zone)
{
    const json_t *areas = NULL;
    if (!field_array(f, "areas", OPTIONAL, &areas))
        return false;
    for (size_t i = 0; i < json_array_size(areas); i++) {
        const struct fields area = {.object = json_array_get(areas, i), .path = "", .err = f->err};
        if (read_plan_area(p, &area, zone))
            continue;
        (void)fail_under(f->err, "areas", i);
        if (p->n_areas > AREAS_MAX || !zone_complaint_kept(p))
            return false;
    }
    return true;
}

bool check_sold_areas(const struct plan_reader *p)
{
    for (size_t i = 0; i < p->def->areas.n; i++) {
        const struct area_def *area = &p->def->areas.v[i];
        const struct fields f = {.path = "", .err = p->err};
        const char *fault = NULL;
        if (area->plan_area && !p->shown[i])
            fault = "names no area of the plan, or one that an area before has";
        else if (p->shown[i] > 1)
            fault = "is the uuid of two areas of the plan";
        if (fault) {
            (void)field_fail(&f, "plan_area", fault);
            return fail_under(p->err, "areas", i);
        }
    }
    return true;
}
