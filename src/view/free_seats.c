/* See free_seats.h. */
#include "view/free_seats.h"

#include <stdlib.h>

#include "view/view.h"

struct free_seats {
    struct lines whole, by_category; /* the second on demand: it has no list until then */
    /* Over each set of lines.  All but the index of ordinary seats in whole rows are made on
     * demand. */
    struct index *of_rows[SEAT_KINDS], *of_categories[SEAT_KINDS];
    struct category_price *by_price; /* on demand; NULL: to be sorted */
};

bool seat_is_of_kind(const struct venue *v, uint32_t seat, enum seat_kind kind)
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

static void set_in(struct index *x, uint32_t seat, bool is_free)
{
    if (x)
        index_set(x, x->lines->slot_of ? x->lines->slot_of[seat] : seat, is_free);
}

/* Where the seats of a run stand beside those of another category, it matters to both whether the
 * nearest two are free. */
static void mark_beside(const struct free_seats *f, const struct venue *v, uint32_t seat,
                        struct index *x)
{
    const struct lines *whole = &f->whole;
    uint32_t slot = whole->slot_of ? whole->slot_of[seat] : seat;
    for (int step = -2; step <= 2; step++) {
        uint32_t at = slot + (uint32_t)step;
        uint32_t other = at >= whole->n_slots ? NO_SEAT : whole->seat_of ? whole->seat_of[at] : at;
        if (other != NO_SEAT && v->categories[other] != v->categories[seat])
            index_mark(x, f->by_category.slot_of[other]);
    }
}

void free_seats_changed(struct event *e, uint32_t seat)
{
    struct free_seats *f = e->free_seats;
    bool is_free = e->seats[seat].status == SEAT_AVAILABLE;
    for (enum seat_kind kind = SEATS_ORDINARY; kind < SEAT_KINDS; kind++)
        if (seat_is_of_kind(e->def->venue, seat, kind)) {
            set_in(f->of_rows[kind], seat, is_free);
            set_in(f->of_categories[kind], seat, is_free);
            if (f->of_categories[kind])
                mark_beside(f, e->def->venue, seat, f->of_categories[kind]);
        }
}

/* O(seats + slots / 64 + lines). */
static struct index *build(const struct event *e, const struct lines *lines, enum seat_kind kind)
{
    struct index *x = index_new(lines);
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        if (seat_is_of_kind(e->def->venue, i, kind) && e->seats[i].status == SEAT_AVAILABLE)
            set_in(x, i, true);
    return x;
}

static const struct index *of_rows(const struct event *e, enum seat_kind kind)
{
    struct free_seats *f = e->free_seats;
    struct index **x = &f->of_rows[kind];
    if (!*x) {
        *x = build(e, &f->whole, kind);
        if (kind == SEATS_WITH_COMPANIONS)
            (*x)->needs = of_rows(e, SEATS_ACCESSIBLE);
    }
    index_refresh(*x);
    return *x;
}

static const struct index *of_categories(const struct event *e, enum seat_kind kind)
{
    struct free_seats *f = e->free_seats;
    struct index **x = &f->of_categories[kind];
    if (!f->by_category.list)
        lines_init_by_category(&f->by_category, e, &f->whole);
    if (!*x) {
        *x = build(e, &f->by_category, kind);
        (*x)->rows = of_rows(e, kind);
        if (kind == SEATS_WITH_COMPANIONS)
            (*x)->needs = of_categories(e, SEATS_ACCESSIBLE);
    }
    index_refresh(*x);
    return *x;
}

const struct index *free_seats_index(const struct event *e, enum seat_kind kind, bool by_category)
{
    return by_category && e->def->venue ? of_categories(e, kind) : of_rows(e, kind);
}

/* ---- prices ---- */

static int dearest_first(const void *a, const void *b)
{
    const struct category_price *p = a, *q = b;
    if (p->price != q->price)
        return p->price > q->price ? -1 : 1;
    return (p->category > q->category) - (p->category < q->category);
}

const struct category_price *free_seats_by_price(const struct event *e, uint32_t *ret_n)
{
    struct free_seats *f = e->free_seats;
    uint32_t n = (uint32_t)event_def_categories(e->def);
    if (!f->by_price) {
        f->by_price = hf_alloc(((size_t)n + 1) * sizeof *f->by_price);
        for (uint32_t i = 0; i < n; i++)
            f->by_price[i] = (struct category_price){.price = e->terms->prices.v[i], .category = i};
        qsort(f->by_price, n, sizeof *f->by_price, dearest_first);
    }
    *ret_n = n;
    return f->by_price;
}

void free_seats_repriced(struct event *e)
{
    free(e->free_seats->by_price);
    e->free_seats->by_price = NULL;
}

/* ---- an event ---- */

struct free_seats *free_seats_new(const struct event *e)
{
    struct free_seats *f = hf_alloc(sizeof *f);
    lines_init(&f->whole, e);
    if (e->def->venue) {
        f->of_rows[SEATS_ORDINARY] = build(e, &f->whole, SEATS_ORDINARY);
    } else {
        f->of_rows[SEATS_ORDINARY] = index_new(&f->whole);
        index_fill(f->of_rows[SEATS_ORDINARY]);
    }
    index_refresh(f->of_rows[SEATS_ORDINARY]);
    return f;
}

void free_seats_close(struct free_seats *f)
{
    if (!f)
        return;
    for (enum seat_kind kind = SEATS_ORDINARY; kind < SEAT_KINDS; kind++) {
        index_free(f->of_rows[kind]);
        index_free(f->of_categories[kind]);
    }
    lines_close(&f->whole);
    lines_close(&f->by_category);
    free(f->by_price);
    free(f);
}
