/* Waiting lists as parts of the view: when a worker has to look at one, and what becomes of them
 * when events are loaded, loaded again or leave.  Part of the view; the worker's thread only, but
 * for event_load_*. */
#ifndef HF_VIEW_VIEW_WAITS_H
#define HF_VIEW_VIEW_WAITS_H

#include "base/heap.h"
#include "view/waitlist.h"

struct view;

/* The lists that a worker has to look at some time, by when. */
struct wait_lists {
    struct heap by_time;
};
struct wait_lists *view_wait_lists(struct view *v); /* view.c */

/* To be called when the event's list or terms have changed: notes when its worker has to look at it
 * next, which is now if it is unsettled. */
void view_waits_schedule(struct view *v, struct event *e);
/* When that is for the first list; INT64_MAX: never. */
int64_t view_waits_next(struct view *v);
/* Lists up to `max` events whose lists are to be looked at by `now`; returns how many. */
size_t view_waits_due(struct view *v, int64_t now, struct event **ret, size_t max);
/* How many entries wait, and how many are offered a hold, in loaded events.  O(lists). */
struct wait_totals {
    int64_t waiting, offered;
};
struct wait_totals view_waits_count(struct view *v);

/* While the event is loaded: a live entry, and the number of the newest entry, live or not.  The
 * latter also where the view catches up. */
void event_load_wait(struct event *e, const struct wait_row *row);
void event_load_wait_number(struct event *e, int64_t number);
/* The event enters the view, once its holds are there: offered holds know their entries. */
void view_waits_enter(struct view *v, struct event *e);
/* The event leaves the view, or is loaded again: it has no list any more. */
void view_waits_drop(struct view *v, struct event *e);

#endif
