/* See lone.h.  On the worker's thread. */
#include "rules/lone.h"

#include <stdlib.h>

#include "view/free_seats.h"

/* What a slot is to the choice.  Beyond the end of a row everything is a wall. */
enum lone_place {
    WALL, /* an aisle, a seat that somebody else has, or one for wheelchairs */
    MINE, /* the hold has the seat afterwards */
    FREE  /* the seat is free afterwards */
};

/* Slots, ascending. */
struct slot_list {
    uint32_t *list;
    uint32_t n;
};

struct lone_search {
    const struct event *e;
    const struct index *x; /* of ordinary seats in whole rows */
    int64_t hold;
    struct slot_list add, remove;
};

/* A row, as slots from `first` to `end`. */
struct bounds {
    uint32_t first, end;
};

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool has_slot(const struct slot_list *slots, uint32_t slot)
{
    return slots->n && bsearch(&slot, slots->list, slots->n, sizeof slot, ascending);
}

/* The slots of those seats that are ordinary. */
static struct slot_list slots_of(const struct lone_search *s, const uint32_t *seats, uint32_t n)
{
    const struct lines *lines = s->x->lines;
    struct slot_list slots = {.list = hf_alloc(((size_t)n + 1) * sizeof *slots.list)};
    for (uint32_t i = 0; i < n; i++)
        if (seat_is_of_kind(s->e->def->venue, seats[i], SEATS_ORDINARY))
            slots.list[slots.n++] = lines->slot_of ? lines->slot_of[seats[i]] : seats[i];
    qsort(slots.list, slots.n, sizeof *slots.list, ascending);
    return slots;
}

static uint32_t seat_of(const struct lone_search *s, uint32_t slot)
{
    const struct lines *lines = s->x->lines;
    return lines->seat_of ? lines->seat_of[slot] : slot;
}

static bool is_held(const struct lone_search *s, uint32_t slot)
{
    uint32_t seat = seat_of(s, slot);
    return s->hold && seat != NO_SEAT && s->e->seats[seat].status == SEAT_HELD &&
           seat_hold(s->e, seat) == s->hold &&
           seat_is_of_kind(s->e->def->venue, seat, SEATS_ORDINARY);
}

static enum lone_place place_at(const struct lone_search *s, const struct bounds *row,
                                uint32_t slot)
{
    if (slot < row->first || slot >= row->end)
        return WALL;
    if (has_slot(&s->remove, slot))
        return FREE;
    if (has_slot(&s->add, slot))
        return MINE;
    if (bits_has(s->x->free, slot))
        return FREE;
    return is_held(s, slot) ? MINE : WALL;
}

static bool was_free(const struct lone_search *s, const struct bounds *row, uint32_t slot)
{
    return slot >= row->first && slot < row->end && bits_has(s->x->free, slot);
}

/* The slot before slot 0 is beyond the end of any row. */
static bool was_lone(const struct lone_search *s, const struct bounds *row, uint32_t slot)
{
    return was_free(s, row, slot) && !was_free(s, row, slot - 1) && !was_free(s, row, slot + 1);
}

/* Does the stretch have another free seat in this direction, which is -1 or 1? */
static bool goes_on(const struct lone_search *s, const struct bounds *row, uint32_t slot, int step)
{
    enum lone_place place;
    do
        place = place_at(s, row, slot += (uint32_t)step);
    while (place == MINE);
    return place == FREE;
}

static bool is_left_single(const struct lone_search *s, uint32_t slot)
{
    const struct index_line *line = &s->x->lines->list[lines_find(s->x->lines, slot)];
    const struct bounds row = {.first = line->first, .end = line->first + line->n_slots};
    return place_at(s, &row, slot) == FREE && place_at(s, &row, slot - 1) != FREE &&
           place_at(s, &row, slot + 1) != FREE && !was_lone(s, &row, slot) &&
           (goes_on(s, &row, slot, -1) || goes_on(s, &row, slot, 1));
}

uint32_t lone_seats(const struct event *e, const struct lone_choice *choice, uint32_t *ret)
{
    struct lone_search s = {
        .e = e, .x = free_seats_index(e, SEATS_ORDINARY, false), .hold = choice->hold};
    uint32_t n = 0, n_slots = s.x->lines->n_slots;
    s.add = slots_of(&s, choice->add, choice->n_add);
    s.remove = slots_of(&s, choice->remove, choice->n_remove);
    for (uint32_t i = 0; i < s.remove.n; i++)
        if (is_left_single(&s, s.remove.list[i]))
            ret[n++] = seat_of(&s, s.remove.list[i]);
    for (uint32_t i = 0; i < s.add.n; i++) {
        uint32_t slot = s.add.list[i];
        if (slot > 0 && is_left_single(&s, slot - 1))
            ret[n++] = seat_of(&s, slot - 1);
        if (slot + 1 < n_slots && is_left_single(&s, slot + 1))
            ret[n++] = seat_of(&s, slot + 1);
    }
    uint32_t kept = 0;
    qsort(ret, n, sizeof *ret, ascending);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || ret[i] != ret[i - 1])
            ret[kept++] = ret[i];
    free(s.add.list);
    free(s.remove.list);
    return kept;
}
