/* See plan_names.h. */
#include "cli/plan_names.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 1.1 /* of a row's name, in radiuses of its seats */
#define NAME_GAP 1.7  /* from the middle of the seat beside it, in radiuses */
#define NAME_NEAR 0.8 /* a name at an end may come so near to the middle of a seat, in radiuses */
#define ROUND_GAP                                                                                  \
    1.7 /* of the first gap of a row: the least gap between its ends, or it has none */
#define TABLE_REACH 6.0 /* from a name in the middle of a row to its first seat, in radiuses */

/* ---- what a name would cover ---- */

static int compare_by_x(const void *a, const void *b)
{
    const struct plan_seat *one = a, *other = b;
    return (one->at.x > other->at.x) - (one->at.x < other->at.x);
}

void plan_names_prepare(struct plan_names *n)
{
    if (!n->seats.n)
        return;
    n->by_x = hf_alloc(n->seats.n * sizeof *n->by_x);
    memcpy(n->by_x, n->seats.v, n->seats.n * sizeof *n->by_x);
    qsort(n->by_x, n->seats.n, sizeof *n->by_x, compare_by_x);
    for (size_t i = 0; i < n->seats.n; i++)
        n->radius_max = fmax(n->radius_max, n->seats.v[i].radius);
}

void plan_names_close(struct plan_names *n)
{
    vec_close(&n->seats);
    vec_close(&n->texts);
    free(n->by_x);
    n->by_x = NULL;
}

/* The first of the seats from left to right that is not left of x. */
static size_t find_by_x(const struct plan_names *n, double x)
{
    size_t low = 0, high = n->seats.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (n->by_x[middle].at.x < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double middle_of(const struct plan_text *text)
{
    return text->at.x + text->side * text->width / 2;
}

/* Returns whether a seat is nearer to the name than `near` of its radius. */
static bool covers_seat(const struct plan_names *n, const struct plan_text *name, double near)
{
    double middle = middle_of(name), reach = name->width / 2 + n->radius_max;
    for (size_t i = find_by_x(n, middle - reach);
         i < n->seats.n && n->by_x[i].at.x <= middle + reach; i++) {
        const struct plan_seat *seat = &n->by_x[i];
        double x = fmax(0, fabs(seat->at.x - middle) - name->width / 2);
        double y = fmax(0, fabs(seat->at.y - name->at.y) - name->size / 2);
        if (hypot(x, y) < near * seat->radius)
            return true;
    }
    return false;
}

static bool overlap(const struct plan_text *one, const struct plan_text *other)
{
    return fabs(middle_of(one) - middle_of(other)) < (one->width + other->width) / 2 &&
           fabs(one->at.y - other->at.y) < (one->size + other->size) / 2;
}

/* Returns whether the name covers a text; with `words`, one of these words. */
static bool covers_text(const struct plan_names *n, const struct plan_text *name, const char *words)
{
    for (size_t i = 0; i < n->texts.n; i++)
        if (overlap(&n->texts.v[i], name) && (!words || strcmp(n->texts.v[i].words, words) == 0))
            return true;
    return false;
}

/* ---- places ---- */

/* The name beside a seat, in a direction of length 1.  A long name grows away from the seats. */
static struct plan_text beside(const struct plan_seat *seat, struct plan_point to, size_t chars)
{
    double size = NAME_SIZE * seat->radius, gap = NAME_GAP * seat->radius;
    return (struct plan_text){.at = {seat->at.x + to.x * gap, seat->at.y + to.y * gap},
                              .side = fabs(to.x) < 0.5 ? 0
                                      : to.x > 0       ? 1
                                                       : -1,
                              .size = size,
                              .width = PLAN_CHAR_WIDTH * size * (double)chars};
}

/* The direction from the seat `from` to the seat `to`, which is at an end of the row. */
static struct plan_point way_out(const struct plan_seat *from, const struct plan_seat *to)
{
    double length = hypot(to->at.x - from->at.x, to->at.y - from->at.y);
    if (length <= 0)
        length = 1;
    return (struct plan_point){(to->at.x - from->at.x) / length, (to->at.y - from->at.y) / length};
}

static struct plan_text in_middle(const struct plan_seat *seats, size_t n, size_t chars)
{
    struct plan_point sum = {0, 0};
    for (size_t i = 0; i < n; i++)
        sum = (struct plan_point){sum.x + seats[i].at.x, sum.y + seats[i].at.y};
    double size = NAME_SIZE * seats[0].radius;
    return (struct plan_text){.at = {sum.x / (double)n, sum.y / (double)n},
                              .size = size,
                              .width = PLAN_CHAR_WIDTH * size * (double)chars};
}

static bool is_free(const struct plan_names *n, const struct plan_text *name)
{
    return !covers_seat(n, name, 1) && !covers_text(n, name, NULL);
}

/* Returns whether the row comes back to where it began, as around a table, and so has no ends. */
static bool is_round(const struct plan_seat *seats, size_t n)
{
    if (n < 3)
        return false;
    double ends = hypot(seats[n - 1].at.x - seats[0].at.x, seats[n - 1].at.y - seats[0].at.y);
    double first = hypot(seats[1].at.x - seats[0].at.x, seats[1].at.y - seats[0].at.y);
    return ends <= ROUND_GAP * first;
}

/* Where a row has no ends, or no room there for its name: in the middle of a small row, unless a
 * text of the same words stands there, or beside the first seat in another direction, or nowhere.
 */
static size_t place_elsewhere(struct plan_names *n, const struct plan_seat *seats, size_t n_seats,
                              const struct plan_words *words, struct plan_text *ret)
{
    static const struct plan_point ways[] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    struct plan_text name = in_middle(seats, n_seats, words->chars);
    double distance = hypot(name.at.x - seats[0].at.x, name.at.y - seats[0].at.y);
    bool is_near = distance <= TABLE_REACH * seats[0].radius;
    if (is_near && covers_text(n, &name, words->text))
        return 0;
    bool is_good = is_near && is_free(n, &name);
    for (size_t i = 0; !is_good && i < sizeof ways / sizeof *ways; i++) {
        name = beside(&seats[0], ways[i], words->chars);
        is_good = is_free(n, &name);
    }
    if (!is_good)
        return 0;
    name.words = words->text;
    *vec_push(&n->texts) = name;
    *ret = name;
    return 1;
}

size_t plan_names_place(struct plan_names *n, size_t first, size_t end, const char *where,
                        const struct plan_words *words, struct plan_text ret[2])
{
    size_t count = 0, n_seats = end - first;
    if (!n_seats || !words->chars || !*where)
        return 0;
    const struct plan_seat *seats = &n->seats.v[first], *last = &seats[n_seats - 1];
    const struct plan_point left = {-1, 0}, right = {1, 0};
    const struct plan_text at_start =
        beside(seats, n_seats > 1 ? way_out(seats + 1, seats) : left, words->chars);
    const struct plan_text at_end =
        beside(last, n_seats > 1 ? way_out(last - 1, last) : right, words->chars);
    bool has_ends = !is_round(seats, n_seats);
    if (has_ends && strcmp(where, "end") != 0 && !covers_seat(n, &at_start, NAME_NEAR))
        ret[count++] = at_start;
    if (has_ends && strcmp(where, "start") != 0 && !covers_seat(n, &at_end, NAME_NEAR))
        ret[count++] = at_end;
    return count ? count : place_elsewhere(n, seats, n_seats, words, ret);
}
