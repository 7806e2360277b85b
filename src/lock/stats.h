/* The counters behind hf_stats.  Any thread. */
#ifndef HF_LOCK_STATS_H
#define HF_LOCK_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "holdfast.h"

enum lock_stat {
    STAT_GRANTED,
    STAT_TAKEN,
    STAT_TIMED_OUT,
    STAT_LOST,
    STAT_UNKNOWN,
    STAT_FAILED,
    STAT_WAITS,
    STAT_RENEWALS,
    STAT_RENEWAL_FAILURES,
    STAT_RELEASES,
    STAT_WAIT_US,
    STAT_LATENCY_US,
    STAT_COUNT
};

struct stats {
    _Atomic uint64_t counts[STAT_COUNT];
    _Atomic uint64_t latency[HF_LATENCY_BUCKETS];
};

void stats_add(struct stats *stats, enum lock_stat stat, uint64_t n);
/* A grant took this long, waiting included. */
void stats_add_latency(struct stats *stats, int64_t us);

#endif
