/* What a waiter leaves with the thread that works for it.  The engine, the payment thread and the
 * lock service all answer the same way: they call pending_done once, on a thread of theirs, and do
 * not touch the pending again.  A struct with a pending in it is lent from the moment it is handed
 * over until then. */
#ifndef HF_BASE_PENDING_H
#define HF_BASE_PENDING_H

#include <stddef.h>

struct pending {
    void (*done)(struct pending *pending); /* called on the worker's thread, must not block */
    void *waiter;                          /* for `done`, which alone looks at it */
};

static inline void pending_done(struct pending *pending) { pending->done(pending); }

#endif
