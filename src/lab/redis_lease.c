/* Redis lease: one lock per seat in Redis, with a token and a TTL of 30 s, around a plain
 * transaction.  A buyer who finds the seat locked tries again three times, 100 ms apart, and then
 * gives up; with retries_max 0 it gives up at once (fail-fast).  The release compares the token
 * first, so that it never deletes a lock that has passed to another buyer.
 *
 * The database checks nothing.  A pause longer than the lease (a stopped process, a slow disk) lets
 * two buyers in at once; only a fence that the UPDATE compares would prevent that. */
#include <inttypes.h>
#include <stdio.h>

#include "lab/desk.h"

static const char compare_and_delete[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

static bool lock(struct desk *d, const char *event, const char *seat, const char *token)
{
    for (int i = 0; !desk_failed(d) && i <= d->settings.retries_max; i++) {
        if (i > 0)
            desk_retry(d, d->settings.retry_pause_ms);
        if (desk_redis_set(d, "SET lock:%s:%s %s NX PX %d", event, seat, token,
                           d->settings.lease_ms))
            return true;
    }
    return false;
}

static bool sell(struct desk *d, const struct strategy_want *want)
{
    if (!desk_do(d, "BEGIN") ||
        !desk_all_available(d, want->n_seats,
                            "SELECT status FROM seats WHERE event = $1 AND id = ANY ($2)",
                            want->event, d->ids.data, NULL))
        return false;
    desk_window(d);
    return desk_change(d,
                       "UPDATE seats SET status = 'HELD', holder = $3,"
                       " held_until = now() + $4::int * interval '1 second'"
                       " WHERE event = $1 AND id = ANY ($2)",
                       want->event, d->ids.data, want->user, d->hold_s,
                       NULL) == (long)want->n_seats &&
           desk_do(d, "COMMIT");
}

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    char token[17];
    snprintf(token, sizeof token, "%016" PRIx64, random_u64(&d->random));
    size_t locked = 0;
    while (locked < want->n_seats && lock(d, want->event, d->seats[locked], token))
        locked++;
    bool won = locked == want->n_seats && sell(d, want);
    if (!won)
        desk_end(d); /* ends the transaction before the lock is released */
    while (locked > 0)
        (void)desk_redis_number(d, "EVAL %s 1 lock:%s:%s %s", compare_and_delete, want->event,
                                d->seats[--locked], token);
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
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
