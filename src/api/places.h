/* Places in the bodies of requests: {"seats":["Stalls-A-1"],"areas":{"Floor":2}}.  They are read
 * here; seat_names.h finds what they name.  Ticket types of seats are {"Stalls-A-1":"reduced"},
 * those of an area {"Floor":{"full":1,"reduced":1}} in place of a number.  On HTTP threads. */
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
/* Reads the optional fields `seats` and `areas`, and appends the types of the areas' places to
 * `types` (NULL: they must have none).  `ret` is closed by the caller in any case. */
HF_MUST_USE bool place_names_read(const struct fields *f, struct place_names *ret,
                                  struct type_names *types);
void place_names_close(struct place_names *p);          /* accepts a zeroed struct */
int64_t place_names_count(const struct place_names *p); /* seats and places of areas */

/* Reads the optional field `areas`, as memory for free(); types as above. */
HF_MUST_USE bool area_names_read(const struct fields *f, struct area_text **ret, size_t *ret_n,
                                 struct type_names *types);

/* ---- ticket types; their texts are borrowed from the body ---- */

/* Appends `n` places, 0 of which are none.  `id` NULL: of no named type. */
void type_names_add(struct type_names *types, const char *id, uint32_t n);
/* Reads {"full":1,"reduced":2}, the field `name`, and appends it.  *ret_n is the sum. */
HF_MUST_USE bool type_counts_read(const struct fields *f, const char *name, const json_t *counts,
                                  struct type_names *types, uint32_t *ret_n);
/* Finds the optional field `types` of seats, an object of names and ids.  *ret is NULL if there is
 * none. */
HF_MUST_USE bool seat_types_open(const struct fields *f, const json_t **ret);
/* Appends the types of these seats, and counts those that are named in *ret_n. */
void seat_types_put(const json_t *types, const struct text *seats, size_t n, struct type_names *ret,
                    size_t *ret_n);

#endif
