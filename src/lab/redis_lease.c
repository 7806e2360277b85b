/* Redis lease: one lock per seat in Redis, with a token and a TTL of 30 s, around a plain
 * transaction.  A buyer who finds the seat locked tries again three times, 100 ms apart, and then
 * gives up; with retries_max 0 it gives up at once (fail-fast).  The release compares the token
 * first, so that it never deletes a lock that has passed to another buyer.
 *
 * The database checks nothing.  A pause longer than the lease (a stopped process, a slow disk) lets
 * two buyers in at once; only a fence that the UPDATE compares would prevent that. */
#include <inttypes.h>
#include <stdio.h>

#include "lab/runner.h"

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

static bool lock(struct runner *r, const char *event, const char *seat, const char *token)
{
    for (int i = 0; !runner_failed(r) && i <= r->settings.retries_max; i++) {
        if (i > 0)
            runner_retry(r, r->settings.retry_pause_ms);
        if (runner_redis_set(r, "SET lock:%s:%s %s NX PX %d", event, seat, token,
                             r->settings.lease_ms))
            return true;
    }
    return false;
}

static bool sell(struct runner *r, const struct strategy_want *want)
{
    if (!runner_do(r, "BEGIN") ||
        !runner_all_available(r, want->n_seats,
                              "SELECT status FROM seats WHERE event = $1 AND id = ANY ($2)",
                              want->event, r->ids.data, NULL))
        return false;
    runner_window(r);
    return runner_change(r,
                         "UPDATE seats SET status = 'HELD', holder = $3,"
                         " held_until = now() + $4::int * interval '1 second'"
                         " WHERE event = $1 AND id = ANY ($2)",
                         want->event, r->ids.data, want->user, r->hold_s,
                         NULL) == (long)want->n_seats &&
           runner_do(r, "COMMIT");
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    char token[17];
    snprintf(token, sizeof token, "%016" PRIx64, random_u64(&r->random));
    size_t locked = 0;
    while (locked < want->n_seats && lock(r, want->event, r->seats[locked], token))
        locked++;
    bool won = locked == want->n_seats && sell(r, want);
    if (!won)
        runner_end(r); /* ends the transaction before the lock is released */
    while (locked > 0)
        (void)runner_redis_number(r, "EVAL %s 1 lock:%s:%s %s", compare_and_delete, want->event,
                                  r->seats[--locked], token);
    return won;
}

const struct strategy strategy_redis_lease = {
    .name = "redis-lease",
    .summary = "Takes a lock with a TTL in Redis around a plain transaction.",
    .correct = true,
    .several = true,
    .unless = "a pause outlasts the lease, or Redis loses the lock",
    .needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS,
    .retries = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
