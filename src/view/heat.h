/* The heat of the fight: how often each seat of an event was the reason why this server refused
 * somebody, since it started.  An event gets its counters with its first refusal: 4 bytes per seat.
 * Any thread counts, with one relaxed addition per refused seat, and any thread reads; a counter
 * that has reached its maximum stays there. */
#ifndef HF_VIEW_HEAT_H
#define HF_VIEW_HEAT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct heat {
    _Atomic(_Atomic uint32_t *) counts; /* one per seat; NULL: nothing has been refused yet */
    int64_t since; /* ledger time when the event came back to memory; 0: it never left */
};

void heat_close(struct heat *heat); /* accepts a zeroed struct */
/* Counts a refusal because of these seats of an event that has `n_seats`. */
void heat_note(struct heat *heat, uint32_t n_seats, const uint32_t *seats, uint32_t n);

struct heat_seat {
    uint32_t seat, refusals;
};
/* Lists up to `limit` seats that were refused, the most refused first, and those that were refused
 * equally often in the order of the seats; returns how many there are.  *ret_total is the sum over
 * all seats.  O(seats * log limit). */
size_t heat_hottest(const struct heat *heat, uint32_t n_seats, size_t limit,
                    struct heat_seat *ret_seats, uint64_t *ret_total);

#endif
