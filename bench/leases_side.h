/* What leases.c measures: one way to take and give back a lease, the driver's or one by hand. */
#ifndef HF_BENCH_LEASES_SIDE_H
#define HF_BENCH_LEASES_SIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TTL_MS 30000
#define OWNER_SIZE 16

/* A handle belongs to one thread.  `first`: the handle of the main thread, NULL for itself. */
struct side {
    const char *name;
    void *(*open)(const char *url, void *first);
    void (*close)(void *handle);
    /* Acquire and release a lock that nobody else wants. */
    void (*pair)(void *handle, const uint8_t *owner);
    /* Wait in line for the lock that everybody wants; false: stopped before it came. */
    bool (*take)(void *handle, const uint8_t *owner, atomic_bool *stop);
    /* Give it back, or the place in line. */
    void (*give)(void *handle, const uint8_t *owner);
};

static inline void die(const char *what)
{
    fprintf(stderr, "leases: %s\n", what);
    exit(1);
}

#endif
