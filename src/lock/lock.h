/* A held lock: see lock.c.  Any thread. */
#ifndef HF_LOCK_LOCK_H
#define HF_LOCK_LOCK_H

#include "lock/locks.h"

/* The largest number of locks in one exchange. */
#define LOCK_BATCH_MAX 64

/* The pause after a request without an answer, doubled each time. */
#define SILENT_PAUSE_US INT64_C(10000)
#define SILENT_PAUSE_MAX_US INT64_C(250000)

static inline int64_t min_us(int64_t a, int64_t b) { return a < b ? a : b; }

/* By how much a deadline lies before the end of its lease. */
int64_t lock_margin_us(int64_t ttl_ms);
/* Releases and frees n <= LOCK_BATCH_MAX locks in one exchange.  Returns the first result that is
 * not HF_DONE. */
HF_MUST_USE enum hf_result lock_release(struct hf_locks *locks, struct hf_lock **locked, size_t n,
                                        struct hf_fault *fault);

#endif
