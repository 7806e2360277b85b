/* A program that takes a shared lock again and again, from its cache if it can, and writes down
 * when it had it, for tests/fault/cell.test.mjs:
 *
 *   reader URL NAME TTL_MS
 *
 * Each line of its output is a moment, in microseconds of CLOCK_MONOTONIC, at which hf_lock_held
 * said that it had the lock.  The moment is read before hf_lock_held is called, so a process that
 * is stopped in between writes down a moment that is rather too early than too late.  It ends when
 * its input does, and says then how many of its locks came from the cache:
 *
 *   cached N */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/wait.h"
#include "holdfast.h"

#define PAUSE_US 2000 /* between two locks */

static bool input_has_ended(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char c;
    return poll(&in, 1, 0) == 1 && read(STDIN_FILENO, &c, 1) <= 0;
}

static void hold(struct hf_lock *lock)
{
    for (int i = 0; i < 3; i++) {
        int64_t at_us = clock_monotonic_us(&clock_system);
        if (hf_lock_held(lock))
            printf("%" PRId64 "\n", at_us);
        wait_sleep_us(PAUSE_US);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct hf_locks *locks;
    struct hf_fault fault = {0};
    struct hf_stats stats = HF_STATS_INIT;
    if (argc < 4)
        return 64;
    const struct hf_options options = HF_OPTIONS(.timeout_ms = 500);
    const struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = (int)strtol(argv[3], NULL, 10), .mode = HF_SHARED);
    while (hf_open(argv[1], &options, &locks, &fault) != HF_DONE) { /* a server may stand still */
        fprintf(stderr, "hf_open: %s\n", fault.msg);
        if (input_has_ended())
            return 1;
        wait_sleep_us(PAUSE_US);
    }
    while (!input_has_ended()) {
        struct hf_lock *lock;
        if (hf_lock(locks, argv[2], &want, &lock, NULL) == HF_DONE) {
            hold(lock);
            (void)!hf_unlock(lock, NULL);
        }
        wait_sleep_us(PAUSE_US);
    }
    if (hf_stats(locks, &stats, &fault) != HF_DONE)
        return 1;
    printf("cached %" PRIu64 "\n", stats.cache_hits);
    hf_close(locks);
    return 0;
}
