/* Showing changes to other threads.  Everything of an event that changed, its seats, areas, status
 * and seq, is shown under the event's lock as one step, so that no map and no stream is of two
 * moments (I13).  Used for a batch of our own and for what other servers wrote.  On the worker's
 * thread: publish_begin, any number of seats and areas, publish_end. */
#ifndef HF_VIEW_PUBLISH_H
#define HF_VIEW_PUBLISH_H

#include "view/view.h"

void publish_begin(struct event *e);
/* Shows the seat as it was decided; `until_ms` is when its hold expires, 0 if it is not held.
 * Streams are told if `seq` is not 0: the seq of the last row of the batch. */
void publish_seat(struct event *e, uint32_t index, int64_t until_ms, int64_t seq);
void publish_area(struct event *e, uint32_t index, int64_t seq);
/* Tells streams that the event's status or terms have changed. */
void publish_terms(struct event *e, int64_t seq);
/* The event now stands at `clock`, with the status and terms that were decided. */
void publish_end(struct event *e, const struct clock_row *clock);

#endif
