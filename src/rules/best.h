/* Best available: which free seats a buyer gets who leaves the choice to us.  Works on the worker's
 * side of the view, on the worker's thread; deterministic.
 *
 * Rank, where every seat has a position: the distances of the group's seats to the plan's focus,
 * added up.  Seats are adjacent if they stand beside each other in their row, with no aisle
 * between.  (The search for the nearest group ends after some thousand seats; see best.c.)
 *
 * Rank elsewhere: sections as listed, then rows as listed, then distance of the group's middle from
 * the row's middle, then the lower seat number.
 *
 * Prices go before rank where the event's creator named categories (sections alone rank as listed,
 * whatever they cost): if categories differ in price, a group of one category is better the more it
 * costs, and any such group is better than one with seats of several categories.  If all cost the
 * same, categories make no difference.  A buyer who names a category gets seats of that one.
 *
 * Accessible places and the seats of companions are kept for those who ask for them.  They get
 * accessible places alone if enough are there, and otherwise at least one with companions' seats
 * beside it.
 *
 * The choices in order of preference; each is looked for at all prices and in all sections that
 * qualify before the next is considered:
 *
 *   1. together in one row, leaving no orphan, best price, best rank; an orphan is a free seat that
 *      had a free neighbour in its row before and has none afterwards
 *   2. together in one row, with an orphan, best price, best rank
 *   3. only if they need not be adjacent: in the best-ranked row that has enough free seats at the
 *      best price, those with the smallest span, then nearest the row's middle, then the lower
 *      numbers; if orphans are to be avoided, first in the rows where those can be
 *   4. only if they need not be adjacent, and no row has enough: at the best price that has enough,
 *      all of the row with the most free seats (the best-ranked such row), then of the nearest rows
 *      around it, those of its section before others and of two at the same distance the
 *      better-ranked; of the last row only as many as needed, as in 3
 *
 * Cost: O(row / 64 + free runs of the row + log rows + sections), whatever the size of the venue,
 * and log rows more for each category that is dearer and has no room; 4 adds log rows for each row
 * it draws on.  By distance, and in rows with seats of several categories, it is O(row + log rows +
 * sections) for each row that is looked at.  What it costs to know which seats are free is said in
 * free_seats.h. */
#ifndef HF_RULES_BEST_H
#define HF_RULES_BEST_H

#include "view/view.h"

struct best_want {
    uint32_t quantity; /* >= 1 */
    int64_t section;   /* index; -1: any */
    const char *tier;  /* only sections of this tier; NULL: any; need not end in NUL */
    size_t tier_len;
    uint32_t category;   /* 1 + index: only seats of this category; 0: any */
    bool accessible;     /* places for wheelchairs, and seats beside them; false: neither */
    bool adjacent;       /* false: may be split */
    bool avoids_orphans; /* also where it is split, as far as the choice within a row allows */
};

/* Fills ret_seats[quantity], ascending, with seats that are SEAT_AVAILABLE on the worker's side.
 * Returns false, with ret_seats unchanged, if none fit.  Either way *ret_available is the number of
 * free seats in the sections that qualify (with both a section and a tier: in that section, if it
 * is of that tier). */
bool best_find(const struct event *e, const struct best_want *want, uint32_t *ret_seats,
               uint32_t *ret_available);

#endif
