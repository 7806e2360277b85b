/* Which seats of an event are free on the worker's side of the view, and where they stand together:
 * an index (seat_index.h) for each kind and category of seats that somebody asked for.  Runs on the
 * worker's thread; before an event is installed, on the thread that loads it.
 *
 * A change of a seat is O(1): it flips a bit and marks the row, and the next question looks again at
 * marked rows, so holds that name their seats pay next to nothing.  The first question for a
 * category is O(its seats + seats / 64 + rows), but O(seats) for the first category of all, and for
 * accessible places.  Memory: one bit per seat and 32 to 64 bytes per row, as much again for each
 * category that was asked for, 4 bytes per seat once one was, and 12 bytes per seat where seats have
 * positions. */
#ifndef HF_VIEW_FREE_SEATS_H
#define HF_VIEW_FREE_SEATS_H

#include "view/seat_index.h"

/* Which seats an index knows.  A seat that is neither accessible nor a companion's is ordinary. */
enum seat_kind { SEATS_ORDINARY, SEATS_ACCESSIBLE, SEATS_WITH_COMPANIONS, SEAT_KINDS };

struct event;
struct event_def;
struct free_seats;

/* Assumes that every seat is free.  Of `e` only the layout (def, rows) has to be there yet. */
struct free_seats *free_seats_new(const struct event *e);
void free_seats_close(struct free_seats *f, const struct event_def *def); /* accepts NULL */
/* To be called after a seat became free or stopped being free; harmless when it did neither.
 * O(1). */
void free_seats_changed(struct event *e, uint32_t seat);
/* The index of this kind and category (1 + its number; 0: all), up to date until the next change.
 * An event without a venue has one kind, and no categories.  That of WITH_COMPANIONS needs one of
 * ACCESSIBLE in each run. */
const struct index *free_seats_index(const struct event *e, enum seat_kind kind, uint32_t category);

#endif
