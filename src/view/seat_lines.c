/* The lines of an event; see seat_index.h.  Where every seat has a position, the plan decides who
 * sits beside whom: seats of a row are put in the order in which they stand, and a gap that is
 * clearly wider than those around it is an aisle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "view/seat_index.h"
#include "view/view.h"

/* An aisle is this much wider than the distance of neighbours. */
#define AISLE_FACTOR 1.7

/* A seat of the row at hand: its index, and how far along the row it stands. */
struct spot {
    double along;
    uint32_t seat;
};

/* Scratch for one row. */
struct row_order {
    VEC(struct spot) spots;
    VEC(double) gaps;
};

static double distance(const struct venue *v, uint32_t a, uint32_t b)
{
    return hypot(v->x[a] - v->x[b], v->y[a] - v->y[b]);
}

static int by_along(const void *a, const void *b)
{
    const struct spot *p = a, *q = b;
    if (p->along != q->along)
        return p->along < q->along ? -1 : 1;
    return (p->seat > q->seat) - (p->seat < q->seat);
}

static int by_size(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static double path_length(const struct venue *v, const struct spot *spots, size_t n)
{
    double length = 0;
    for (size_t i = 1; i < n; i++)
        length += distance(v, spots[i - 1].seat, spots[i].seat);
    return length;
}

/* The direction in which the row runs: that of its greatest spread. */
static void find_direction(const struct venue *v, const struct row *row, double *ret_x,
                           double *ret_y)
{
    double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
    for (uint32_t i = row->first; i < row->first + row->n_seats; i++) {
        mx += v->x[i] / row->n_seats;
        my += v->y[i] / row->n_seats;
    }
    for (uint32_t i = row->first; i < row->first + row->n_seats; i++) {
        double dx = v->x[i] - mx, dy = v->y[i] - my;
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    double angle = atan2(2 * xy, xx - yy) / 2;
    *ret_x = cos(angle);
    *ret_y = sin(angle);
}

/* Puts the row's seats into the order in which they stand: as listed, unless sorting them along the
 * row makes the way from the first to the last shorter.  So a row that is bent into a horseshoe, or
 * runs from right to left, stays as it was listed, and one that lists odd numbers before even ones
 * does not. */
static void put_in_order(const struct venue *v, const struct row *row, struct row_order *o)
{
    double dx, dy;
    find_direction(v, row, &dx, &dy);
    vec_clear(&o->spots);
    for (uint32_t i = row->first; i < row->first + row->n_seats; i++)
        *vec_push(&o->spots) = (struct spot){.seat = i, .along = v->x[i] * dx + v->y[i] * dy};
    if (!o->spots.v)
        return;
    double listed = path_length(v, o->spots.v, o->spots.n);
    qsort(o->spots.v, o->spots.n, sizeof *o->spots.v, by_along);
    if (path_length(v, o->spots.v, o->spots.n) < listed * 0.999)
        return;
    for (uint32_t i = 0; i < row->n_seats; i++)
        o->spots.v[i].seat = row->first + i;
}

/* The usual distance of neighbours: the lower median of `gaps`; 0: there are none. */
static double usual_gap(struct row_order *o)
{
    if (!o->gaps.n)
        return 0;
    qsort(o->gaps.v, o->gaps.n, sizeof *o->gaps.v, by_size);
    return o->gaps.v[(o->gaps.n - 1) / 2];
}

static void add_gaps(const struct venue *v, struct row_order *o)
{
    for (size_t i = 1; i < o->spots.n; i++)
        *vec_push(&o->gaps) = distance(v, o->spots.v[i - 1].seat, o->spots.v[i].seat);
}

/* The usual distance of neighbours in a whole section, for rows of two seats, which cannot tell. */
static double section_gap(const struct event *e, uint32_t first_row, uint32_t end,
                          struct row_order *o)
{
    vec_clear(&o->gaps);
    for (uint32_t r = first_row; r < end; r++) {
        put_in_order(e->def->venue, &e->rows.list[r], o);
        add_gaps(e->def->venue, o);
    }
    return usual_gap(o);
}

/* Appends the row as a line.  Room for a slot per seat and an aisle behind each is there. */
static void add_line(struct lines *lines, const struct event *e, uint32_t r, double section_usual,
                     struct row_order *o)
{
    const struct venue *v = e->def->venue;
    const struct row *row = &e->rows.list[r];
    struct index_line *line = &lines->list[lines->n++];
    *line = (struct index_line){.first = lines->n_slots,
                                .block = row->section,
                                .row_first = lines->n_slots,
                                .nearest = INFINITY};
    put_in_order(v, row, o);
    vec_clear(&o->gaps);
    add_gaps(v, o);
    double usual = row->n_seats > 2 ? usual_gap(o) : section_usual;
    for (size_t i = 0; i < o->spots.n; i++) {
        uint32_t seat = o->spots.v[i].seat;
        if (i && usual > 0 && distance(v, o->spots.v[i - 1].seat, seat) > AISLE_FACTOR * usual) {
            lines->distances[lines->n_slots] = INFINITY;
            lines->seat_of[lines->n_slots++] = NO_SEAT;
        }
        float d = (float)hypot(v->x[seat] - v->focus_x, v->y[seat] - v->focus_y);
        line->nearest = fminf(line->nearest, d);
        lines->distances[lines->n_slots] = d;
        lines->slot_of[seat] = lines->n_slots;
        lines->seat_of[lines->n_slots++] = seat;
    }
    line->n_slots = lines->n_slots - line->first;
}

/* A row and its smallest distance to the focus. */
struct near_row {
    double nearest;
    uint32_t row;
};

static int by_nearest(const void *a, const void *b)
{
    const struct near_row *p = a, *q = b;
    if (p->nearest != q->nearest)
        return p->nearest < q->nearest ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

static void add_section(struct lines *lines, const struct event *e, uint32_t first, uint32_t end,
                        struct near_row *near, struct row_order *o)
{
    const struct venue *v = e->def->venue;
    double usual = section_gap(e, first, end, o);
    for (uint32_t r = first; r < end; r++) {
        near[r - first] = (struct near_row){.nearest = INFINITY, .row = r};
        for (uint32_t i = e->rows.list[r].first;
             i < e->rows.list[r].first + e->rows.list[r].n_seats; i++)
            near[r - first].nearest =
                fmin(near[r - first].nearest, hypot(v->x[i] - v->focus_x, v->y[i] - v->focus_y));
    }
    qsort(near, end - first, sizeof *near, by_nearest);
    for (uint32_t i = 0; i < end - first; i++)
        add_line(lines, e, near[i].row, usual, o);
}

/* Lines by the positions of seats. */
static void place_lines(struct lines *lines, const struct event *e)
{
    struct row_order o = {0};
    struct near_row *near = hf_alloc(((size_t)e->rows.n + 1) * sizeof *near);
    size_t room = 2 * (size_t)e->def->n_seats + 1;
    lines->slot_of = hf_alloc(((size_t)e->def->n_seats + 1) * sizeof *lines->slot_of);
    lines->seat_of = hf_alloc(room * sizeof *lines->seat_of);
    lines->distances = hf_alloc(room * sizeof *lines->distances);
    for (uint32_t s = 0; s < lines->n_blocks; s++)
        add_section(lines, e, lines->block_first[s], lines->block_first[s + 1], near, &o);
    lines->seat_of = hf_realloc(lines->seat_of, (lines->n_slots + 1) * sizeof *lines->seat_of);
    lines->distances =
        hf_realloc(lines->distances, (lines->n_slots + 1) * sizeof *lines->distances);
    free(near);
    vec_close(&o.spots);
    vec_close(&o.gaps);
}

void lines_init(struct lines *lines, const struct event *e)
{
    const struct event_def *def = e->def;
    *lines = (struct lines){.n_blocks = (uint32_t)def->sections.n};
    lines->list = hf_alloc(((size_t)e->rows.n + 1) * sizeof *lines->list);
    lines->block_first = hf_alloc((def->sections.n + 1) * sizeof *lines->block_first);
    for (size_t s = 0; s < def->sections.n; s++)
        lines->block_first[s + 1] = lines->block_first[s] + (uint32_t)def->sections.v[s].rows.n;
    if (def->venue && def->venue->is_placed) {
        place_lines(lines, e);
        return;
    }
    lines->n = e->rows.n;
    lines->n_slots = def->n_seats;
    for (uint32_t r = 0; r < e->rows.n; r++)
        lines->list[r] = (struct index_line){.first = e->rows.list[r].first,
                                             .n_slots = e->rows.list[r].n_seats,
                                             .block = e->rows.list[r].section,
                                             .row_first = e->rows.list[r].first,
                                             .nearest = (float)r};
}

/* ---- lines of one category ---- */

/* The seats of one category in one row. */
struct row_part {
    uint32_t category, section, line; /* of whole rows */
    float nearest;
    bool is_part;
};

typedef VEC(struct row_part) part_list;

static int by_block(const void *a, const void *b)
{
    const struct row_part *p = a, *q = b;
    if (p->category != q->category)
        return p->category < q->category ? -1 : 1;
    if (p->section != q->section)
        return p->section < q->section ? -1 : 1;
    if (p->nearest != q->nearest)
        return p->nearest < q->nearest ? -1 : 1;
    return (p->line > q->line) - (p->line < q->line);
}

static uint32_t seat_at(const struct lines *whole, uint32_t slot)
{
    return whole->seat_of ? whole->seat_of[slot] : slot;
}

/* Appends a part for each category of the row.  `place` has, by category, 1 + where its last part
 * is in the list. */
static void add_parts(part_list *parts, const struct venue *v, const struct lines *whole,
                      uint32_t l, size_t *place)
{
    const struct index_line *line = &whole->list[l];
    size_t first = parts->n;
    for (uint32_t i = line->first; i < line->first + line->n_slots; i++) {
        uint32_t seat = seat_at(whole, i);
        if (seat == NO_SEAT)
            continue;
        uint32_t category = v->categories[seat];
        float rank = whole->distances ? whole->distances[i] : line->nearest;
        if (place[category] <= first) {
            *vec_push(parts) = (struct row_part){
                .category = category, .section = line->block, .line = l, .nearest = rank};
            place[category] = parts->n;
        }
        struct row_part *part = &parts->v[place[category] - 1];
        part->nearest = fminf(part->nearest, rank);
    }
    for (size_t i = first; i < parts->n; i++)
        parts->v[i].is_part = parts->n - first > 1;
}

/* Appends the part as a line, and a block before it if it is the first of one. */
static void add_part(struct lines *lines, const struct venue *v, const struct lines *whole,
                     const struct row_part *part, bool begins_block)
{
    const struct index_line *row = &whole->list[part->line];
    if (begins_block) {
        lines->block_section[lines->n_blocks] = part->section;
        lines->block_first[lines->n_blocks++] = lines->n;
    }
    for (uint32_t i = 0; i < row->n_slots; i++) {
        uint32_t seat = seat_at(whole, row->first + i);
        if (seat != NO_SEAT && v->categories[seat] == part->category)
            lines->slot_of[seat] = lines->n_slots + i;
    }
    lines->list[lines->n++] = (struct index_line){.first = lines->n_slots,
                                                  .n_slots = row->n_slots,
                                                  .block = lines->n_blocks - 1,
                                                  .row_first = row->first,
                                                  .is_part = part->is_part,
                                                  .nearest = part->nearest};
    lines->n_slots += row->n_slots;
}

void lines_init_by_category(struct lines *lines, const struct event *e, const struct lines *whole)
{
    const struct venue *v = e->def->venue;
    size_t n_categories = e->def->categories.n;
    size_t *place = hf_alloc((n_categories + 1) * sizeof *place);
    part_list parts = {0};
    for (uint32_t l = 0; l < whole->n; l++)
        add_parts(&parts, v, whole, l, place);
    free(place);
    if (parts.n)
        qsort(parts.v, parts.n, sizeof *parts.v, by_block);
    *lines = (struct lines){0};
    lines->list = hf_alloc((parts.n + 1) * sizeof *lines->list);
    lines->block_first = hf_alloc((parts.n + 1) * sizeof *lines->block_first);
    lines->block_section = hf_alloc((parts.n + 1) * sizeof *lines->block_section);
    lines->category_first = hf_alloc((n_categories + 1) * sizeof *lines->category_first);
    lines->slot_of = hf_alloc(((size_t)e->def->n_seats + 1) * sizeof *lines->slot_of);
    size_t next = 0; /* category whose first block is not known yet */
    for (size_t i = 0; i < parts.n; i++) {
        const struct row_part *part = &parts.v[i];
        while (next <= part->category)
            lines->category_first[next++] = lines->n_blocks;
        add_part(lines, v, whole, part,
                 i == 0 || part[-1].category != part->category ||
                     part[-1].section != part->section);
    }
    while (next <= n_categories)
        lines->category_first[next++] = lines->n_blocks;
    lines->block_first[lines->n_blocks] = lines->n;
    vec_close(&parts);
}

void lines_close(struct lines *lines)
{
    free(lines->list);
    free(lines->block_first);
    free(lines->block_section);
    free(lines->category_first);
    free(lines->slot_of);
    free(lines->seat_of);
    free(lines->distances);
    *lines = (struct lines){0};
}
