/* Lone seats: which seats a choice of seats would leave single, where an event has the term
 * `lone_seats`.  Works on the worker's side of the view, before anything changes.
 *
 * Seats are neighbours as best available knows them (view/seat_index.h): they stand beside each
 * other in their row, with no aisle between.  A stretch is free seats that are neighbours, one
 * after another; those that the hold has already count as free.  Categories make no difference.
 * Places for wheelchairs and the seats of companions end a stretch, as a taken seat does, and are
 * never lone themselves.
 *
 * A seat is lone if it is free and has no free neighbour.  A choice leaves it single if it was not
 * lone before and is lone afterwards, unless it is all that is left of its stretch: then any choice
 * of as many seats of the stretch would leave one, as any choice of two seats of three does. */
#ifndef HF_RULES_LONE_H
#define HF_RULES_LONE_H

#include "view/view.h"

/* What becomes of a hold.  Seats are valid and distinct; those that are added are free. */
struct lone_choice {
    int64_t hold;                 /* its key; 0: it is new */
    const uint32_t *add, *remove; /* seats that it gets, and gives back */
    uint32_t n_add, n_remove;
};

/* Lists the seats that the choice would leave single, ascending, in `ret`, which has room for two
 * per seat that is added or removed.  Returns how many there are.  O(n log n). */
uint32_t lone_seats(const struct event *e, const struct lone_choice *choice, uint32_t *ret);

#endif
