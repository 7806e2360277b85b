/* Best available: which free seats a buyer gets who leaves the choice to us.  On the worker's side
 * of the view, by its thread alone; deterministic.
 *
 * Rank: sections as listed, then rows as listed, then distance of the group's middle from the row's
 * middle, then the lower seat number.  In this order of preference, each looked for in all sections
 * that qualify before the next:
 *
 *   1. together in one row, leaving no orphan, best rank; an orphan is a free seat that had a free
 *      neighbour in its row before and has none afterwards
 *   2. together in one row, with an orphan, best rank
 *   3. only if they need not be adjacent: in the best-ranked row that has enough free seats, those
 *      with the smallest span, then nearest the row's middle, then the lower numbers
 *   4. likewise, and no row has enough: all of the row with the most free seats (the best-ranked
 *      such row), then of the nearest rows around it, those of its section before others and of two
 *      at the same distance the better-ranked; of the last row only as many as needed, as in 3
 *
 * Cost: O(row / 64 + free runs of the row + log rows + sections), whatever the size of the venue; 4
 * adds log rows for each row it draws on.  A change of a seat is O(1): it flips a bit and marks
 * it, and the next best_find looks again at rows with marks; so explicit holds pay next to nothing.
 * Memory: a bit a seat and 32 to 64 bytes a row. */
#ifndef HF_RULES_BEST_H
#define HF_RULES_BEST_H

#include "rules/view.h"

struct best_want {
    uint32_t quantity; /* >= 1 */
    int64_t section;   /* index; -1: any */
    const char *tier;  /* only sections of this tier; NULL: any; need not end in NUL */
    size_t tier_len;
    bool adjacent; /* false: may be split */
};

/* Every seat is free, unseen.  Of `e` only the layout (def, rows) has to be there yet. */
struct best *best_new(const struct event *e);
void best_free(struct best *b); /* accepts NULL */
/* After a seat became free or stopped being free; harmless when it did neither.  O(1). */
void best_changed(struct event *e, uint32_t seat);

/* Fills ret_seats[quantity], ascending, with seats that are SEAT_AVAILABLE on the worker's side;
 * false when none fit, and ret_seats is as it was.  *ret_available, either way: free seats in the
 * sections that qualify (with both a section and a tier: that section, if it is of that tier). */
bool best_find(struct event *e, const struct best_want *want, uint32_t *ret_seats,
               uint32_t *ret_available);

#endif
