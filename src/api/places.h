/* Places in the bodies of requests: {"seats":["Stalls-A-1"],"areas":{"Floor":2}}.  They are read
 * here; seat_names.h finds what they name.  On HTTP threads. */
#ifndef HF_API_PLACES_H
#define HF_API_PLACES_H

#include "api/hold_parse.h"
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

#endif
