/* A mutex around data that threads share, held for a few instructions: to copy, to look up, to show
 * a change as one step.  Code that only protects data uses this and stays free of threads; code
 * that waits for other threads uses pthread and base/wait.h.  A zeroed lock is an initialised one
 * (on Linux). */
#ifndef HF_BASE_LOCK_H
#define HF_BASE_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
};

static inline void lock_init(struct lock *l) { pthread_mutex_init(&l->mutex, NULL); }
static inline void lock_close(struct lock *l) { pthread_mutex_destroy(&l->mutex); }
static inline void lock_take(struct lock *l) { pthread_mutex_lock(&l->mutex); }
static inline void lock_give(struct lock *l) { pthread_mutex_unlock(&l->mutex); }

#endif
