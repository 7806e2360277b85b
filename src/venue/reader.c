/* What the readers of layouts and of plans share: names, counts, categories and areas, and the venue
 * when its seats are known.  See reader.h. */
#include "venue/reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEAT_MARGIN 20 /* between the outermost seats and the edge */

bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            return true;
        if (c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0)
            return true;
    }
    return false;
}

bool fail_under(struct hf_err *err, const char *list, size_t index)
{
    char message[sizeof err->msg];
    memcpy(message, err->msg, sizeof message);
    const char *dot = *message == ' ' || *message == '[' ? "" : ".";
    (void)hf_err_set(err, HF_INVALID_REQUEST, "%s[%zu]%s%.*s", list, index, dot,
                     (int)(sizeof message - 40), message);
    return false;
}

/* ---- complaints ---- */

bool complaint_kept(struct reader *rd)
{
    struct complaints *c = rd->complaints;
    if (!c || c->list.n == COMPLAINTS_MAX)
        return false;
    *vec_push(&c->list) = hf_strndup(rd->err->msg, strlen(rd->err->msg));
    *rd->err = (struct hf_err){0};
    return true;
}

void complaints_close(struct complaints *c)
{
    for (size_t i = 0; i < c->list.n; i++)
        free(c->list.v[i]);
    vec_close(&c->list);
}

/* ---- names ---- */

bool read_name(const struct fields *f, char **ret)
{
    const char *text;
    size_t len;
    if (!field_text(f, "name", REQUIRED, 1, NAME_CHARS_MAX, &text, &len))
        return false;
    if (memchr(text, '-', len))
        return field_fail(f, "name", "must not contain `-`");
    if (has_control(text, len))
        return field_fail(f, "name", "must not contain control characters");
    *ret = hf_strndup(text, len);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool names_differ(const struct reader *rd, const char *path, const char *what, char **names,
                  size_t n)
{
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0) {
            (void)hf_err_set(rd->err, HF_INVALID_REQUEST, "%.80s%s have the name %.132s twice",
                             path, what, names[i]);
            return false;
        }
    return true;
}

/* Sections and areas have no name in common, since prices and places are named by either.  The
 * zones and categories of a plan are named by its author, so an area may have the name of one. */
static bool check_names(const struct reader *rd, bool has_plan)
{
    const struct event_def *def = rd->def;
    size_t n = 0, n_sections = has_plan ? 0 : def->sections.n;
    char **names = hf_alloc((n_sections + def->areas.n + 1) * sizeof *names);
    for (size_t i = 0; i < n_sections; i++)
        names[n++] = def->sections.v[i].name;
    for (size_t i = 0; i < def->areas.n; i++)
        names[n++] = def->areas.v[i].name;
    bool ok = names_differ(rd, "", has_plan ? "areas" : "sections and areas", names, n);
    free(names);
    return ok;
}

/* ---- categories, rows ---- */

int find_category(const struct event_def *def, const char *name)
{
    for (size_t i = 0; i < def->categories.n; i++)
        if (strcmp(def->categories.v[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool add_category(struct reader *rd, const struct fields *f, const char *name, const char *color,
                  int64_t price, bool of_section)
{
    struct event_def *def = rd->def;
    if (find_category(def, name) >= 0)
        return field_fail(f, of_section ? "price" : "name",
                          of_section ? "belongs to a section that has the name of a category; give "
                                       "the section that category instead"
                                     : "is the name of another category");
    if (def->categories.n == CATEGORIES_MAX)
        return field_fail(f, of_section ? "price" : "name",
                          "would make more than 250 categories in the event");
    struct category_def *category = vec_push(&def->categories);
    category->name = hf_strndup(name, strlen(name));
    category->color = color ? hf_strndup(color, strlen(color)) : NULL;
    category->of_section = of_section;
    *vec_push(&def->terms.prices) = price;
    return true;
}

bool count_rows(struct reader *rd, const struct fields *f, const char *name, int64_t rows,
                int64_t seats)
{
    rd->n_rows += rows;
    rd->n_seats += rows * seats;
    if (rd->n_seats > EVENT_SEATS_MAX)
        return field_fail(f, name, "would make more than 2000000 seats in the event");
    if (rd->n_rows > ROWS_MAX)
        return field_fail(f, name, "would make more than 100000 rows in the event");
    return true;
}

/* ---- areas ---- */

static bool read_area(struct reader *rd, const struct fields *f, bool has_plan, struct area_def *a)
{
    static const char *const known[] = {"name", "price", "capacity", NULL};
    static const char *const known_with_plan[] = {"name", "price", "capacity", "plan_area", NULL};
    const char *plan_area = NULL;
    size_t len;
    if (!fields_known(f, has_plan ? known_with_plan : known) || !read_name(f, &a->name) ||
        !field_int(f, "price", REQUIRED, 0, PRICE_MAX, vec_push(&rd->def->terms.prices)) ||
        !field_int(f, "capacity", REQUIRED, 1, AREA_CAPACITY_MAX, &a->capacity) ||
        !field_text(f, "plan_area", NULLABLE, 1, PLAN_TEXT_CHARS_MAX, &plan_area, &len))
        return false;
    a->plan_area = plan_area ? hf_strndup(plan_area, len) : NULL;
    return true;
}

bool read_areas(struct reader *rd, const struct fields *f, bool has_plan)
{
    const json_t *list = NULL;
    if (!field_array(f, "areas", OPTIONAL, &list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct fields area = {.object = json_array_get(list, i), .path = "", .err = rd->err};
        if (read_area(rd, &area, has_plan, vec_push(&rd->def->areas)))
            continue;
        (void)fail_under(rd->err, "areas", i);
        if (!complaint_kept(rd))
            return false;
    }
    return has_complaints(rd) || check_names(rd, has_plan);
}

/* ---- the whole venue ---- */

/* Without a plan, size and focus follow from the seats: the stage is taken to be above them. */
static void measure(struct venue *v)
{
    double left = v->x[0], right = v->x[0], top = v->y[0], bottom = v->y[0];
    for (uint32_t i = 0; i < v->n_seats; i++) {
        left = fmin(left, v->x[i]);
        right = fmax(right, v->x[i]);
        top = fmin(top, v->y[i]);
        bottom = fmax(bottom, v->y[i]);
    }
    v->width = fmax(1, ceil(right + SEAT_MARGIN));
    v->height = fmax(1, ceil(bottom + SEAT_MARGIN));
    v->focus_x = (left + right) / 2;
    v->focus_y = top - SEAT_MARGIN;
}

bool finish_venue(struct event_def *def, uint32_t *ret_twice)
{
    struct venue *v = def->venue;
    uint32_t first;
    if (!venue_index(v, &first, ret_twice))
        return false;
    v->is_placed = v->n_seats > 0;
    for (uint32_t i = 0; i < v->n_seats && v->is_placed; i++)
        v->is_placed = v->flags[i] & SEAT_PLACED;
    if (v->is_placed && !v->is_plan) {
        measure(v);
    } else if (!v->has_focus) {
        v->focus_x = v->width / 2;
        v->focus_y = 0;
    }
    return true;
}
