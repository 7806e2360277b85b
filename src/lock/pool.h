/* The handles to a back end.  A handle belongs to the call that took it.  Handles are opened when
 * they are needed, kept until hf_close, and limited in number.  Any thread. */
#ifndef HF_LOCK_POOL_H
#define HF_LOCK_POOL_H

#include <pthread.h>

#include "lease/lease.h"

/* Calls that expect an answer soon, and calls that wait in a queue, have separate limits: waiting
 * calls must not use up the handles that a release needs, since it is what they wait for. */
#define POOL_SHORT_MAX 32
#define POOL_WAITING_MAX 128
#define POOL_WAITING_LIGHT_MAX 4096 /* where the driver has light_waits */

struct pool {
    struct lease *first; /* the handle that others are cloned from; also in `idle` */
    int64_t timeout_ms;
    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t freed;
    size_t n_short, n_waiting, n_idle;
    size_t n_polling;    /* calls that found too many others waiting, and ask again by themselves */
    struct lease **idle; /* as many as there may be handles; the last one used is taken first */
};

/* Takes ownership of `first`. */
void pool_init(struct pool *pool, struct lease *first, int64_t timeout_ms);
void pool_close(struct pool *pool);
/* A handle for one exchange, after at most timeout_ms; HF_UNREACHABLE if none was free. */
HF_MUST_USE enum hf_result pool_take(struct pool *pool, struct lease **ret, struct hf_fault *fault);
/* Gives a handle back; `waiting` if pool_begin_waiting has returned true for it. */
void pool_give(struct pool *pool, struct lease *handle, bool waiting);
/* From now on the taken handle counts as that of a waiting call.  Returns false, and changes
 * nothing, if there are too many of those. */
bool pool_begin_waiting(struct pool *pool);
/* Adds to the number of calls that poll; returns it. */
size_t pool_add_polling(struct pool *pool, int change);

#endif
