/* Places in the bodies of requests: {"seats":["Stalls-A-1"],"areas":{"Floor":2}}.  Reading them,
 * and finding the areas that they name; seat_names.h finds the seats.  On HTTP threads. */
#ifndef HF_API_PLACES_H
#define HF_API_PLACES_H

#include "api/call.h"
#include "json/fields.h"

/* The places that an object names.  The texts are borrowed from it. */
struct place_names {
    struct text *seats;
    struct area_text *areas;
    size_t n_seats, n_areas;
};
/* Reads the optional fields `seats` and `areas`.  `ret` is closed by the caller in any case. */
HF_MUST_USE bool place_names_read(const struct fields *f, struct place_names *ret);
void place_names_close(struct place_names *p);          /* accepts a zeroed struct */
int64_t place_names_count(const struct place_names *p); /* seats and places of areas */

/* Reads the optional field `areas`, as memory for free(). */
HF_MUST_USE bool area_names_read(const struct fields *f, struct area_text **ret, size_t *ret_n);
/* Fills ret[n].  Returns false if the call has been refused because the event has no area of one of
 * the names, or its key is being looked up. */
bool area_names_find(struct call *c, const struct event *e, const struct area_text *names, size_t n,
                     struct area_claim *ret);
/* Answers that the event has no place of that name, unless the call's key is being looked up. */
void refuse_no_such_place(struct call *c, const char *what, const struct text *name);
/* Answers that a hold may have at most `max` places, unless the call's key is being looked up. */
void refuse_too_many(struct call *c, int64_t max);

#endif
