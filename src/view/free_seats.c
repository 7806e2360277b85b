/* See free_seats.h. */
#include "view/free_seats.h"

#include <stdlib.h>

#include "view/view.h"

struct free_seats {
    struct lines lines;
    /* Indexes of all categories, and of one category each.  All but the first are made on demand.
     */
    struct index *any[SEAT_KINDS], **of_category[SEAT_KINDS];
    uint32_t *by_category;    /* seats, by category; made on demand */
    uint32_t *category_first; /* where each category begins there, and the end of the last */
};

static bool belongs(const struct venue *v, uint32_t seat, enum seat_kind kind)
{
    unsigned flags = v ? v->flags[seat] : 0;
    switch (kind) {
    case SEATS_ORDINARY:
        return !(flags & (SEAT_ACCESSIBLE | SEAT_COMPANION));
    case SEATS_ACCESSIBLE:
        return flags & SEAT_ACCESSIBLE;
    default:
        return flags & (SEAT_ACCESSIBLE | SEAT_COMPANION);
    }
}

static uint32_t slot_of(const struct free_seats *f, uint32_t seat)
{
    return f->lines.slot_of ? f->lines.slot_of[seat] : seat;
}

static void set_in(struct free_seats *f, enum seat_kind kind, uint32_t category, uint32_t slot,
                   bool is_free)
{
    if (f->any[kind])
        index_set(f->any[kind], slot, is_free);
    if (f->of_category[kind] && f->of_category[kind][category])
        index_set(f->of_category[kind][category], slot, is_free);
}

void free_seats_changed(struct event *e, uint32_t seat)
{
    const struct venue *v = e->def->venue;
    bool is_free = e->seats[seat].status == SEAT_AVAILABLE;
    uint32_t slot = slot_of(e->free_seats, seat);
    if (!v) {
        index_set(e->free_seats->any[SEATS_ORDINARY], slot, is_free);
        return;
    }
    for (enum seat_kind kind = SEATS_ORDINARY; kind < SEAT_KINDS; kind++)
        if (belongs(v, seat, kind))
            set_in(e->free_seats, kind, v->categories[seat], slot, is_free);
}

/* Lists the seats of each category.  O(seats), once. */
static void sort_by_category(const struct event *e, struct free_seats *f)
{
    const uint8_t *categories = e->def->venue->categories;
    size_t n = e->def->categories.n;
    uint32_t *next = hf_alloc((n + 1) * sizeof *next);
    f->category_first = hf_alloc((n + 1) * sizeof *f->category_first);
    f->by_category = hf_alloc(((size_t)e->def->n_seats + 1) * sizeof *f->by_category);
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        f->category_first[categories[i] + 1]++;
    for (size_t c = 0; c < n; c++)
        next[c + 1] = f->category_first[c + 1] += f->category_first[c];
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        f->by_category[next[categories[i]]++] = i;
    free(next);
}

static void add_free(const struct event *e, const struct free_seats *f, enum seat_kind kind,
                     uint32_t seat, struct index *x)
{
    if (belongs(e->def->venue, seat, kind) && e->seats[seat].status == SEAT_AVAILABLE)
        index_set(x, slot_of(f, seat), true);
}

/* `category` -1: all.  O(seats that qualify + slots / 64 + lines). */
static struct index *build(const struct event *e, struct free_seats *f, enum seat_kind kind,
                           int64_t category)
{
    struct index *x = index_new(&f->lines);
    if (category < 0) {
        for (uint32_t i = 0; i < e->def->n_seats; i++)
            add_free(e, f, kind, i, x);
        return x;
    }
    if (!f->by_category)
        sort_by_category(e, f);
    for (uint32_t i = f->category_first[category]; i < f->category_first[category + 1]; i++)
        add_free(e, f, kind, f->by_category[i], x);
    return x;
}

const struct index *free_seats_index(const struct event *e, enum seat_kind kind, uint32_t category)
{
    struct free_seats *f = e->free_seats;
    struct index **place = &f->any[kind];
    if (category && e->def->venue) {
        if (!f->of_category[kind])
            f->of_category[kind] = hf_alloc(e->def->categories.n * sizeof *f->of_category[kind]);
        place = &f->of_category[kind][category - 1];
    }
    if (!*place) {
        *place = build(e, f, kind, place == &f->any[kind] ? -1 : (int64_t)category - 1);
        if (kind == SEATS_WITH_COMPANIONS)
            (*place)->needs = free_seats_index(e, SEATS_ACCESSIBLE, category);
    }
    index_refresh(*place);
    return *place;
}

struct free_seats *free_seats_new(const struct event *e)
{
    struct free_seats *f = hf_alloc(sizeof *f);
    lines_init(&f->lines, e);
    if (e->def->venue) {
        f->any[SEATS_ORDINARY] = build(e, f, SEATS_ORDINARY, -1);
    } else {
        f->any[SEATS_ORDINARY] = index_new(&f->lines);
        index_fill(f->any[SEATS_ORDINARY]);
    }
    index_refresh(f->any[SEATS_ORDINARY]);
    return f;
}

void free_seats_close(struct free_seats *f, const struct event_def *def)
{
    if (!f)
        return;
    for (enum seat_kind kind = SEATS_ORDINARY; kind < SEAT_KINDS; kind++) {
        index_free(f->any[kind]);
        for (size_t i = 0; f->of_category[kind] && i < def->categories.n; i++)
            index_free(f->of_category[kind][i]);
        free(f->of_category[kind]);
    }
    lines_close(&f->lines);
    free(f->by_category);
    free(f->category_first);
    free(f);
}
