/* Which seats of an event are free on the worker's side of the view, and where they stand together:
 * an index (seat_index.h) for each kind of seats and each set of lines that somebody asked for.
 * Runs on the worker's thread; before an event is installed, on the thread that loads it.
 *
 * A change of a seat is O(1): it flips a bit and marks the row in each index, and the next question
 * looks again at marked rows, so holds that name their seats pay next to nothing.  The first
 * question about a kind of seats, or by category, is O(seats + rows log rows).  Memory: one bit per
 * seat and 64 to 104 bytes per row; as much again, and 4 bytes per seat, once somebody asked by
 * category; 12 bytes per seat where seats have positions. */
#ifndef HF_VIEW_FREE_SEATS_H
#define HF_VIEW_FREE_SEATS_H

#include "view/seat_index.h"

/* Which seats an index knows.  A seat that is neither accessible nor a companion's is ordinary. */
enum seat_kind { SEATS_ORDINARY, SEATS_ACCESSIBLE, SEATS_WITH_COMPANIONS, SEAT_KINDS };

struct event;
struct free_seats;
struct venue;

bool seat_is_of_kind(const struct venue *v, uint32_t seat, enum seat_kind kind); /* v: or NULL */

/* Assumes that every seat is free.  Of `e` only the layout (def, rows) has to be there yet. */
struct free_seats *free_seats_new(const struct event *e);
void free_seats_close(struct free_seats *f); /* accepts NULL */
/* To be called after a seat became free or stopped being free; harmless when it did neither.
 * O(1). */
void free_seats_changed(struct event *e, uint32_t seat);
/* The index of the seats of this kind, over whole rows or over lines of one category, up to date
 * until the next change.  An event without a venue has one kind of seats and one set of lines.
 * The index of WITH_COMPANIONS counts only runs with an ACCESSIBLE seat. */
const struct index *free_seats_index(const struct event *e, enum seat_kind kind, bool by_category);

/* A category, and what it costs by the worker's terms. */
struct category_price {
    int64_t price;
    uint32_t category;
};
/* The categories of seats, the dearest first, and those of one price as they are numbered.  Kept
 * until the terms change.  O(1), but O(categories log categories) for the first question. */
const struct category_price *free_seats_by_price(const struct event *e, uint32_t *ret_n);
/* To be called when the worker's terms change.  O(1). */
void free_seats_repriced(struct event *e);

#endif
