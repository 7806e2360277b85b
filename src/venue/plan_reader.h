/* What the readers of a seating plan share.  Internal to src/venue. */
#ifndef HF_VENUE_PLAN_READER_H
#define HF_VENUE_PLAN_READER_H

#include "venue/reader.h"

#define RADIUS_MAX 1e5

struct point {
    double x, y;
};

/* Where the first seat of a row stood in the plan. */
struct row_place {
    uint32_t first, zone, row;
};

/* The plan as far as it has been read. */
struct plan_reader {
    struct reader *rd;
    struct event_def *def;
    struct hf_err *err;
    struct buf areas;                /* of the plan, as JSON, without the brackets */
    struct buf extra;                /* scratch */
    uint8_t *shown;                  /* of each sold area: the plan has its shape */
    const struct area_def **by_uuid; /* the sold areas that name one of the plan, sorted by it */
    size_t n_by_uuid;
    size_t n_areas;
    size_t n_cut; /* rows of reader.cut that have been read */
    size_t zone;  /* the one that is being read, by its place in the list */
    VEC(struct row_place) places;
};

/* ---- plan_areas.c ---- */

/* complaint_kept, for a part of the zone that is being read. */
bool zone_complaint_kept(struct plan_reader *p);

/* Appends `,"name":value` if the object has the member, as it was. */
void plan_keep(struct buf *out, const json_t *object, const char *name);
/* Reads an object of x and y.  `ret` is left alone if it is absent and may be. */
HF_MUST_USE bool read_point(const struct fields *f, const char *name, enum need need,
                            struct point *ret);
/* Reads a text that Holdfast attaches no meaning to.  `ret` may be NULL. */
HF_MUST_USE bool read_opaque(const struct fields *f, const char *name, enum need need,
                             size_t chars_min, const char **ret);
HF_MUST_USE bool read_radius(const struct fields *f, enum need need);
/* The object of that name; NULL, after a failure, if it is absent or something else. */
const json_t *inner_object(const struct fields *f, const char *name);

/* Reads the areas of a zone that stands at `zone`. */
HF_MUST_USE bool read_plan_areas(struct plan_reader *p, const struct fields *f,
                                 const struct point *zone);
/* To be called before the first area is read, when all sold ones are known.  The caller frees
 * `shown` and `by_uuid`. */
void sort_sold_areas(struct plan_reader *p);
/* When all zones have been read: does the plan have an area for each that is sold and names one? */
HF_MUST_USE bool check_sold_areas(const struct plan_reader *p);

#endif
