/* The plan of an event as clients read it (GET /v1/events/{e}/plan): categories, sections, rows and
 * seats with their positions, and areas.  Seats come in the order of the map.  It never changes. */
#ifndef HF_VENUE_PLAN_DOCUMENT_H
#define HF_VENUE_PLAN_DOCUMENT_H

#include "base/buf.h"
#include "model/rows.h"

/* Appends the document to `out`.  Whenever `out` has become long, and at the end, calls `flush`, if
 * there is one, which takes what is there and empties `out`: a document of a million seats is more
 * than a hundred megabytes.  `event_id` NULL: a plan that is not an event's yet.  O(seats). */
struct plan_sink {
    void (*flush)(void *context, struct buf *out); /* NULL: the whole document stays in `out` */
    void *context;
};
void plan_document(const struct event_def *def, const char *event_id, const struct plan_sink *sink,
                   struct buf *out);

#endif
