/* Names of seats and areas in requests: from names to indexes, names that are given twice, and the
 * refusals that list names. */
#ifndef HF_API_SEAT_NAMES_H
#define HF_API_SEAT_NAMES_H

#include "api/call.h"

/* The first name that appears twice (I6), or NULL.  O(n). */
const struct text *find_duplicate(const struct text *names, size_t n);
/* Returns true if no name appears twice.  Otherwise the call has been refused with the name, or its
 * key is being looked up. */
bool seat_names_distinct(struct call *c, const struct text *names, size_t n);

/* Puts the indexes of the named seats into c->places.seats, with room for twice as many
 * in c->places.taken.  Returns false if the event has no seats of some of the names: the call has been
 * refused with these names, or its key is being looked up. */
bool seat_names_find(struct call *c, const struct event *e, const struct text *names, uint32_t n);
/* The same for one name of a path or query, which need not be UTF-8; for requests without a key. */
bool seat_name_find(struct call *c, const struct event *e, struct text name, uint32_t *ret);

/* Fills ret[n].  Returns false if the call has been refused because the event has no area of one of
 * the names, or its key is being looked up. */
bool area_names_find(struct call *c, const struct event *e, const struct area_text *names, size_t n,
                     struct area_claim *ret);
/* Answers that the event has no place of that name, unless the call's key is being looked up. */
void refuse_no_such_place(struct call *c, const char *what, const struct text *name);
/* Answers that a hold may have at most `max` places, unless the call's key is being looked up. */
void refuse_too_many(struct call *c, int64_t max);

#endif
