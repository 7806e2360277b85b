/* What leases.c measures: one way to acquire and release a lease, the driver's or one by hand; and
 * the clocks by which a program of the bench measures itself. */
#ifndef HF_BENCH_LEASES_SIDE_H
#define HF_BENCH_LEASES_SIDE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define TTL_MS 30000
/* Servers that have just started take no part in redlock for as long as its max_ttl. */
#define REDLOCK_TTL_MS 2000
#define OWNER_SIZE 16

/* A handle belongs to one thread.  `first` is the handle of the main thread, NULL for itself. */
struct side {
    const char *name;
    void *(*open)(const char *url, void *first);
    void (*close)(void *handle);
    /* Acquires and releases an uncontended lock. */
    void (*pair)(void *handle, const uint8_t *owner);
    /* take and give are NULL for a primitive that has no queue.
     * Waits in line for the contended lock.  Returns false if stopped before it was granted. */
    bool (*take)(void *handle, const uint8_t *owner, atomic_bool *stop);
    /* Releases the lock or leaves the line. */
    void (*give)(void *handle, const uint8_t *owner);
};

static inline void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline double cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return 1e6 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

#endif
