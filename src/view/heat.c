/* See heat.h.  Pure but for the counters, which are atomics. */
#include "view/heat.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/status.h"

void heat_close(struct heat *heat)
{
    free((void *)atomic_load_explicit(&heat->counts, memory_order_relaxed));
    atomic_store_explicit(&heat->counts, NULL, memory_order_relaxed);
}

/* The counters, made if this is the first refusal.  Of threads that race, one makes them. */
static _Atomic uint32_t *counters(struct heat *heat, uint32_t n_seats)
{
    _Atomic uint32_t *counts = atomic_load_explicit(&heat->counts, memory_order_acquire);
    if (counts)
        return counts;
    _Atomic uint32_t *fresh = hf_alloc(n_seats * sizeof *fresh);
    if (atomic_compare_exchange_strong_explicit(&heat->counts, &counts, fresh, memory_order_acq_rel,
                                                memory_order_acquire))
        return fresh;
    free((void *)fresh);
    return counts;
}

void heat_note(struct heat *heat, uint32_t n_seats, const uint32_t *seats, uint32_t n)
{
    if (!n)
        return;
    _Atomic uint32_t *counts = counters(heat, n_seats);
    for (uint32_t i = 0; i < n; i++) {
        hf_check(seats[i] < n_seats);
        /* Threads that race at the maximum are fewer than what is left above it. */
        if (atomic_load_explicit(&counts[seats[i]], memory_order_relaxed) < UINT32_MAX - 65536)
            atomic_fetch_add_explicit(&counts[seats[i]], 1, memory_order_relaxed);
    }
}

/* Does `a` come before `b` in the list? */
static bool is_hotter(const struct heat_seat *a, const struct heat_seat *b)
{
    return a->refusals != b->refusals ? a->refusals > b->refusals : a->seat < b->seat;
}

static int hotter_first(const void *a, const void *b) { return is_hotter(a, b) ? -1 : 1; }

/* Puts `seat` into the place of the root of a heap whose root is the coolest. */
static void sift_down(struct heat_seat *heap, size_t n, struct heat_seat seat)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_hotter(&heap[child], &heap[child + 1]))
            child++;
        if (!is_hotter(&seat, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = seat;
}

static void sift_up(struct heat_seat *heap, size_t at, struct heat_seat seat)
{
    for (; at && is_hotter(&heap[(at - 1) / 2], &seat); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = seat;
}

size_t heat_hottest(const struct heat *heat, uint32_t n_seats, size_t limit,
                    struct heat_seat *ret_seats, uint64_t *ret_total)
{
    _Atomic uint32_t *counts = atomic_load_explicit(&heat->counts, memory_order_acquire);
    size_t n = 0;
    uint64_t total = 0;
    for (uint32_t i = 0; counts && i < n_seats; i++) {
        const struct heat_seat seat = {
            .seat = i, .refusals = atomic_load_explicit(&counts[i], memory_order_relaxed)};
        total += seat.refusals;
        if (!seat.refusals)
            continue;
        if (n < limit)
            sift_up(ret_seats, n++, seat);
        else if (is_hotter(&seat, &ret_seats[0]))
            sift_down(ret_seats, n, seat);
    }
    if (n > 1)
        qsort(ret_seats, n, sizeof *ret_seats, hotter_first);
    *ret_total = total;
    return n;
}
