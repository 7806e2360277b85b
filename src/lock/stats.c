/* See stats.h. */
#include "lock/stats.h"

#include "lock/locks.h"
#include "lock/sized.h"

void stats_add(struct stats *stats, enum lock_stat stat, uint64_t n)
{
    atomic_fetch_add_explicit(&stats->counts[stat], n, memory_order_relaxed);
}

void stats_add_latency(struct stats *stats, int64_t us)
{
    size_t i = 0;
    while (i < HF_LATENCY_BUCKETS - 1 && us >= INT64_C(16) << i)
        i++;
    atomic_fetch_add_explicit(&stats->latency[i], 1, memory_order_relaxed);
    stats_add(stats, STAT_LATENCY_US, us > 0 ? (uint64_t)us : 0);
}

enum hf_result hf_stats(const struct hf_locks *locks, struct hf_stats *ret, struct hf_fault *fault)
{
    uint64_t n[STAT_COUNT];
    enum hf_result r = sized_check(&sized_stats, ret, fault);
    if (r != HF_DONE)
        return r;
    for (size_t i = 0; i < STAT_COUNT; i++)
        n[i] = atomic_load_explicit(&locks->stats.counts[i], memory_order_relaxed);
    struct hf_stats stats = {
        .granted = n[STAT_GRANTED],
        .taken = n[STAT_TAKEN],
        .timed_out = n[STAT_TIMED_OUT],
        .lost = n[STAT_LOST],
        .unknown = n[STAT_UNKNOWN],
        .failed = n[STAT_FAILED],
        .waits = n[STAT_WAITS],
        .renewals = n[STAT_RENEWALS],
        .renewal_failures = n[STAT_RENEWAL_FAILURES],
        .releases = n[STAT_RELEASES],
        .wait_us = n[STAT_WAIT_US],
        .latency_us = n[STAT_LATENCY_US],
    };
    for (size_t i = 0; i < HF_LATENCY_BUCKETS; i++)
        stats.latency[i] = atomic_load_explicit(&locks->stats.latency[i], memory_order_relaxed);
    if (locks->driver->count_cache && !locks_is_forked(locks)) /* any thread may count */
        locks->driver->count_cache(locks->pool.first, &stats.cache_hits, &stats.cache_misses);
    sized_write(&sized_stats, ret, &stats);
    return HF_DONE;
}
