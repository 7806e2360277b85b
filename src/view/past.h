/* The map of an event at a past moment, from the map that the view shows and the rows of the log in
 * between.
 *
 * A row tells the status before and after it.  So a seat was what its first row after the moment
 * says it had been before, or, if there is no such row, what it is now.  Rows can thus be read in
 * ascending order, one after another, and one bit per seat is all that has to be remembered.  A
 * hold that was due at the moment had expired, though the row that says so came later (I4).
 *
 * Pure; owned by one thread.  9 bits per seat. */
#ifndef HF_VIEW_PAST_H
#define HF_VIEW_PAST_H

#include "view/view.h"

struct past_map {
    const struct event *event;
    struct seat_map map;      /* map.at is the moment */
    uint8_t *seen;            /* one bit per seat: a row after the moment was about it */
    bool event_seen;          /* likewise for the event's status */
    int64_t hold, hold_until; /* of the last row about a hold: its key and its expiry */
};

/* Begins with what the view shows, up to p->map.seq.  O(seats). */
void past_map_begin(struct past_map *p, struct event *e, int64_t at);
/* Takes back a row between the moment and what the view showed.  Rows come in ascending order.
 * Returns false if the event has no such place. */
bool past_map_undo(struct past_map *p, const struct audit_row *row);
/* Adds a row that was logged until the moment and that the view did not show yet. */
bool past_map_redo(struct past_map *p, const struct audit_row *row);
void past_map_close(struct past_map *p); /* accepts a zeroed struct */

#endif
