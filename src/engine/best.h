/* Best available: which free seats a buyer gets who leaves the choice to us.  On the worker's side
 * of the view, by its thread alone; deterministic.
 *
 * Rank: sections as listed, then rows as listed, then distance of the group's middle from the row's
 * middle, then the lower seat number.  In this order of preference:
 *   1 together in one row, leaving no orphan (a free seat with no free neighbour left beside it
 * that had one before), best rank 2 together in one row, with an orphan, best rank 3 only if they
 * need not be adjacent: in the best-ranked row that has enough free seats, those with the smallest
 * span, then nearest the middle; else the row with the most free seats and then the nearest rows
 * around it (of the same section before others), until there are enough
 *
 * An index of rows (a tree of which run lengths and how many free seats there are below each node)
 * makes this O(row + log rows), whatever the size of the venue.  A change of a seat marks its row;
 * marked rows are looked at again by the next best_find, so explicit holds pay next to nothing. */
#ifndef HF_ENGINE_BEST_H
#define HF_ENGINE_BEST_H

#include "engine/view.h"

struct best_want {
    uint32_t quantity; /* >= 1 */
    int64_t section;   /* index; -1: any */
    const char *tier;  /* only sections of this tier; NULL: any; need not end in NUL */
    size_t tier_len;
    bool adjacent; /* false: may be split */
};

struct best *best_new(const struct event *e); /* every seat free */
void best_free(struct best *b);               /* accepts NULL */
/* A seat became free or stopped being free.  O(log rows). */
void best_changed(struct event *e, uint32_t seat);

/* Fills ret_seats[quantity], ascending, with seats that are SEAT_AVAILABLE on the worker's side;
 * false when none fit.  *ret_available, either way: free seats in the sections that qualify. */
bool best_find(struct event *e, const struct best_want *want, uint32_t *ret_seats,
               uint32_t *ret_available);

#endif
