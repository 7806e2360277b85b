/* The drawer: the one thread that renders seat maps, for GET /v1/events/{e}/seats, but for those of
 * past moments (past.h).  What a map looks like is decided by a function that the engine's user
 * hands over.
 *
 * A request for a map that is not rendered yet waits for it, so no client reads a map older than an
 * answer it got before.  An event is drawn at most ten times in any second: five times at
 * once, and once more every 200 ms.  While slow readers keep the last few maps of an event alive,
 * the next one waits until the oldest of them has been read or its readers have been cut off (see
 * view/snapshot.h), which takes at most a few seconds. */
#ifndef HF_ENGINE_DRAWER_H
#define HF_ENGINE_DRAWER_H

#include "view/snapshot.h"
#include "view/view.h"

/* Appends the event's map to `out`. */
typedef void (*render_map_fn)(const struct event *e, const struct seat_map *map, struct buf *out);

/* Renders the event as it is now and keeps the result as its newest snapshot.  O(seats). */
void drawer_draw(struct event *e, render_map_fn render, int64_t now_us);
/* Compresses the newest snapshot if that has not been done. */
void drawer_pack(struct event *e);

void *drawer_main(void *engine);

#endif
