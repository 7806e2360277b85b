/* How often one process takes and releases a shared lock of the lock service that it caches,
 * through libholdfast, on one thread.
 *
 *   build/bench/cached URL SECONDS
 *
 * URL is that of a lock service with a cache: holdfast://HOST:PORT?cache=shared.  One line of JSON
 * goes to stdout.  The program exits with 1 if a lock was not granted, or not from the cache after
 * the first one. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "holdfast.h"

#define SECONDS_MAX 60
#define AT_ONCE 1000 /* pairs between two looks at the clock */

_Noreturn static void give_up(const char *what, const struct hf_fault *fault)
{
    (void)fprintf(stderr, "cached: %s %s\n", what, fault->msg);
    exit(1);
}

static int64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static void one_pair(struct hf_locks *locks, const struct hf_lock_options *want)
{
    struct hf_fault fault = {0};
    struct hf_lock *lock;
    if (hf_lock(locks, "bench-cached", want, &lock, &fault) != HF_DONE)
        give_up("the lock was not granted:", &fault);
    if (hf_unlock(lock, &fault) != HF_DONE)
        give_up("the lock was not released:", &fault);
}

int main(int argc, char **argv)
{
    const struct hf_lock_options want = HF_LOCK_OPTIONS(.mode = HF_SHARED, .wait_ms = 5000);
    struct hf_fault fault = {.msg = ""};
    struct hf_stats stats = HF_STATS_INIT;
    struct hf_locks *locks;
    int seconds = argc == 3 ? atoi(argv[2]) : 0;
    uint64_t n = 0;
    if (seconds < 1 || seconds > SECONDS_MAX)
        give_up("usage: cached URL SECONDS", &fault);
    if (hf_open(argv[1], NULL, &locks, &fault) != HF_DONE)
        give_up("cannot open:", &fault);
    one_pair(locks, &want);
    const int64_t begun_us = clock_monotonic_us(&clock_system), cpu_begun_us = cpu_us();
    int64_t now_us = begun_us;
    while (now_us < begun_us + seconds * INT64_C(1000000)) {
        for (int i = 0; i < AT_ONCE; i++)
            one_pair(locks, &want);
        n += AT_ONCE;
        now_us = clock_monotonic_us(&clock_system);
    }
    const int64_t spent_us = cpu_us() - cpu_begun_us;
    if (hf_stats(locks, &stats, &fault) != HF_DONE)
        give_up("no statistics:", &fault);
    hf_close(locks);
    if (stats.cache_hits < n)
        give_up("not every lock came from the cache", &fault);
    printf("{\"requests\":%llu,\"per_second\":%.0f,\"process_cpu_us\":%.3f,\"hits\":%llu,"
           "\"misses\":%llu}\n",
           (unsigned long long)n, 1e6 * (double)n / (double)(now_us - begun_us),
           (double)spent_us / (double)n, (unsigned long long)stats.cache_hits,
           (unsigned long long)stats.cache_misses);
    return 0;
}
