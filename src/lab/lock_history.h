/* What the grants of one lock say, taken together: did two clients hold it at once, did fences
 * grow, how long was it with nobody, how long did a hand-over take and in which order.
 *
 * A client holds a lock from the moment at which it was told so until it began to release it, was
 * told that it had lost it, died, or its deadline came, whichever was first.  No thread owns this
 * file; it has no state. */
#ifndef HF_LAB_LOCK_HISTORY_H
#define HF_LAB_LOCK_HISTORY_H

#include "base/vec.h"
#include "lab/lock_board.h"

struct history_grant {
    int64_t start_us, end_us, fence;
    size_t client;
    bool is_first; /* of this client */
    bool was_lost; /* the client was told so, or its deadline came */
};

struct history {
    VEC(struct history_grant) grants; /* by start_us, once history_sort was called */
};

/* Adds the grants of a client.  `died_us` is when it was killed, 0 if it was not; `now_us` ends
 * what it still holds. */
void history_add(struct history *h, const struct board_page *page, size_t client, int64_t died_us,
                 int64_t now_us);
void history_sort(struct history *h);
void history_close(struct history *h); /* accepts a zeroed struct; zeroes it */

/* The rest is for a history that is sorted. */

/* Grants that began while an earlier one had not ended. */
uint64_t history_overlaps(const struct history *h);
/* Grants whose fence is not larger than that of every earlier grant. */
uint64_t history_fences_fell(const struct history *h);
/* The longest time between two moments during which no client held the lock. */
int64_t history_gap_us(const struct history *h, int64_t from_us, int64_t to_us);
/* The first grants of two clients that came one after another: how many, and how many of these
 * went to the client with the smaller number first. */
void history_order(const struct history *h, uint64_t *ret_pairs, uint64_t *ret_in_order);
/* Appends the times from the end of each grant to the beginning of the next to `ret`, without the
 * first `skip` grants. */
struct history_times {
    VEC(int64_t) us;
};
void history_hand_overs(const struct history *h, size_t skip, struct history_times *ret);

/* The value below which the share `q` lies; sorts the times.  0 if there are none. */
double history_quantile(struct history_times *times, double q);
void history_times_close(struct history_times *times);

#endif
