/* Idle events leave memory; the next request that names one has it loaded again.  A worker looks at
 * its events between two batches:
 *
 *   - An event that no request, stream or command has asked for during event_idle_ms leaves.
 *   - If the events of all workers together take more than event_memory_max, those leave that were
 *     asked for least recently, and of these the ones that were asked for least, until seven
 *     eighths of that are left.
 *
 * An event stays while it is pinned (view/registry.h), while a hold in it is live, since its
 * worker ends the hold and counts its places, and while the ledger does not answer, from which it
 * could not be loaded again.  Hence the memory of events is bounded by event_memory_max, the events
 * that have live holds, and those that are being asked for at the same time.
 *
 * What the server counts of an event and the ledger does not know begins anew when the event comes
 * back: the heat, and the changes that streams can resume from.
 *
 * On the worker's thread.  Looking costs O(events of the worker), a few times per event_idle_ms; a
 * turn frees events for a few milliseconds at most. */
#ifndef HF_ENGINE_IDLE_H
#define HF_ENGINE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct worker;

struct idle {
    int64_t next_us; /* when to look again */
    int64_t full_us; /* when to look again if there is too little room */
    bool has_more;   /* events are left that the last turn had no time to free */
    int64_t n;       /* the worker's events */
    int64_t bytes;   /* what they take, as last counted */
};

/* Has to be called for each event that enters the view. */
void idle_installed(struct worker *w, struct event *e);
/* Lets events leave if it is time to look, or if there is too little room. */
void idle_turn(struct worker *w);
/* How long the worker may sleep before there are events to free; INT64_MAX: until it is woken. */
int64_t idle_sleep_us(const struct worker *w);

#endif
