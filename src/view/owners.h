/* What each owner of an event has: its live holds, and how many places it holds and has booked.
 * A table by the hash of the owner (owner_hash in view.h), part of the view.  Only the worker's
 * thread calls these. */
#ifndef HF_VIEW_OWNERS_H
#define HF_VIEW_OWNERS_H

#include <stdint.h>

#include "base/slots.h"

struct hold;

struct owner_slot {
    uint64_t owner;
    int64_t event;
    int64_t held, booked; /* places */
    struct hold *holds;   /* live ones, linked by owner_next */
};

struct owners {
    struct slots slots;
};

/* Adds a live hold, or takes one out again; `places` is what it has.  Does nothing if the hold has
 * no owner.  Adding is O(1) amortised, taking out O(live holds of the owner). */
void owners_add(struct owners *o, struct hold *h, uint32_t places);
void owners_remove(struct owners *o, struct hold *h, uint32_t places);
/* Counts places that are booked, or no longer booked if `places` is negative. */
void owners_book(struct owners *o, int64_t event, uint64_t owner, int64_t places);
/* Returns NULL if the owner has nothing.  The slot is valid until the next change. */
const struct owner_slot *owners_find(const struct owners *o, uint64_t owner);
/* Forgets what owners of this event have booked.  O(n). */
void owners_forget(struct owners *o, int64_t event);
void owners_close(struct owners *o); /* accepts a zeroed struct */

#endif
