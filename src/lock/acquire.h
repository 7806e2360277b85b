/* Acquiring a lock: see acquire.c.  Runs on the caller's thread. */
#ifndef HF_LOCK_ACQUIRE_H
#define HF_LOCK_ACQUIRE_H

#include "lock/locks.h"

/* When a call stops trying.  All locks of a set share one. */
struct wait_limit {
    int64_t wait_us;  /* how long it may wait; INT64_MAX: no limit */
    int64_t until_us; /* 0 until the first request is sent; INT64_MAX: no limit */
    int retries;      /* that are left */
    const struct hf_cancel *cancel;
};
void wait_limit_init(struct wait_limit *limit, const struct hf_lock_options *options);

/* `options` and `name` have been checked. */
HF_MUST_USE enum hf_result lock_acquire(struct hf_locks *locks, const char *name,
                                        const struct hf_lock_options *options,
                                        struct wait_limit *limit, struct hf_lock **ret,
                                        struct hf_fault *fault);

#endif
