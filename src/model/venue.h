/* What an event has beyond counted rows: seats with ids, labels, categories, flags and positions of
 * their own, and the plan that they were drawn on.  It never changes once the event exists, and is
 * stored as one packed block (venue_pack), whatever its size.
 *
 * An event whose rows are all counted, and whose sections each have a price, has no venue: its
 * seats are named by section, row and number, and each section is a category. */
#ifndef HF_MODEL_VENUE_H
#define HF_MODEL_VENUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/limits.h"

struct event_def;

enum seat_flag {
    SEAT_ACCESSIBLE = 1, /* a place for a wheelchair */
    SEAT_COMPANION = 2,  /* beside such a place */
    SEAT_RESTRICTED_VIEW = 4,
    SEAT_PLACED = 8 /* the creator gave its position */
};

struct venue {
    /* Of each seat, by its index.  Texts are offsets into `text`, where each ends in NUL. */
    uint32_t *ids, *labels;
    uint32_t *extras;    /* further members of the seat in the plan as JSON, such as
                            `,"radius":12`; "" if it has none.  NULL: no seat has any */
    uint8_t *categories; /* indexes in event_def.categories */
    uint8_t *flags;      /* enum seat_flag */
    double *x, *y;       /* NULL: no seat has a position */
    struct buf text;     /* begins with "" */
    uint32_t n_seats, cap;

    /* Seats by id, open-addressed: 1 + seat.  venue_index makes it once, for all seats; a table of
     * base/table.h would take six times the memory. */
    uint32_t *index;
    uint32_t index_mask;

    bool is_plan;   /* the seats came from a seating plan, not from listed rows */
    bool is_placed; /* every seat has a position: best available goes by distance to the focus */
    bool has_focus; /* the creator gave it; otherwise it is the middle of the upper edge */
    char *name;     /* the plan's; NULL: none */
    double width, height; /* of the plan */
    double focus_x, focus_y;
    char *areas; /* the plan's areas as a JSON list, for the plan's document; NULL: none */
};

/* No seat is farther from the origin than this, in either direction. */
#define POSITION_MAX 1e7
/* Plan and focus may be larger or farther than the outermost seat, by a margin. */
#define EXTENT_MAX (POSITION_MAX + 100)

struct venue *venue_new(void);
void venue_free(struct venue *v); /* accepts NULL */

/* A seat to be added. */
struct venue_seat {
    const char *section, *row; /* NULL: `label` is not a part of the id, and `id` is given */
    const char *id, *label;    /* NUL-terminated */
    const char *extra;         /* NULL: none */
    uint32_t category;
    unsigned flags;
    double x, y; /* if flags has SEAT_PLACED */
};
/* Appends a seat.  Without an id of its own it is named `<section>-<row>-<label>`.  Amortised O(1).
 */
void venue_add(struct venue *v, const struct venue_seat *seat);

/* Indexes the ids.  Returns false if two seats have the same; *ret_first and *ret_second are then
 * their indexes.  O(seats). */
bool venue_index(struct venue *v, uint32_t *ret_first, uint32_t *ret_second);
/* The seat of that id; false if there is none, or the venue is not indexed.  O(1). */
bool venue_find(const struct venue *v, const char *id, size_t len, uint32_t *ret);

static inline const char *venue_id(const struct venue *v, uint32_t seat)
{
    return v->text.data + v->ids[seat];
}
static inline const char *venue_label(const struct venue *v, uint32_t seat)
{
    return v->text.data + v->labels[seat];
}
static inline const char *venue_extra(const struct venue *v, uint32_t seat)
{
    return v->extras ? v->text.data + v->extras[seat] : "";
}

/* Finds the rows whose seats are not those that counting makes: numbers from 1 as labels, no flags,
 * and the category of their section.  O(seats). */
void venue_find_listed(struct event_def *def);

/* Packs the venue of `def`, its categories' names and colours, and the names and extras of its
 * sections and rows.  O(seats), with compression: some milliseconds per ten thousand seats. */
void venue_pack(const struct event_def *def, struct buf *out);
/* Reads what venue_pack wrote into `def`, which has its sections and rows already, and its seats
 * numbered.  Returns false if the bytes are damaged or do not fit the rows. */
bool venue_unpack(struct event_def *def, const void *data, size_t len);

#endif
