/* Queue: buyers of one seat stand in one line, and the first of it does a plain transaction.  The
 * articles give each key a worker with an inbox; here each buyer's own worker takes the place of
 * that one while it is at the head, so the order and the one-at-a-time are the same.
 *
 * The lines are in the memory of this process: a second one has lines of its own and sells the same
 * seat again. */
#include "lab/desk.h"
#include "lab/line.h"

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
    uint64_t mine = lines_enter(want);
    bool won = sell(d, want);
    desk_end(d); /* the transaction must be over before the next may begin one */
    lines_leave(mine);
    return won;
}

const struct strategy strategy_queue = {
    .name = "queue",
    .summary = "Lets the buyers of a seat through one at a time, in a line in this process.",
    .correct = true,
    .unless = "a second process sells the same seats",
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
