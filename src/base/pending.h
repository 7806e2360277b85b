/* What a waiter leaves with the thread that works for it.  The engine, the payment thread, the lock
 * service and the sandbox all answer the same way: they call pending_done once, on a thread of
 * theirs, and do not touch the pending again.  A struct with a pending in it is lent from the
 * moment it is handed over until then.
 *
 * A thread that ends many pendings at once puts pending_batch_begin and pending_batch_end around
 * them.  The waiters' threads are then woken at the end, once each, and not once for each pending.
 */
#ifndef HF_BASE_PENDING_H
#define HF_BASE_PENDING_H

#include <stddef.h>

struct pending {
    void (*done)(struct pending *pending); /* called on the worker's thread, must not block */
    void *waiter;                          /* for `done`, which alone looks at it */
};

static inline void pending_done(struct pending *pending) { pending->done(pending); }

/* A thread that waits for pendings.  It must exist until every batch that woke it has ended. */
struct waker {
    void (*wake)(struct waker *waker); /* from any thread */
};

/* For `done`: wakes now, or at the end of the calling thread's batch. */
void pending_wake(struct waker *waker);
void pending_batch_begin(void);
void pending_batch_end(void);

#endif
