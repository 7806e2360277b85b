/* Queue: the buyers of a seat wait in one line, and the buyer at its head runs a plain transaction.
 * The articles give each key a worker with an inbox.  Here the worker of the buyer at the head does
 * the work itself; requests are still served in order and one at a time.
 *
 * The lines are in the memory of this process.  A second process has lines of its own and sells the
 * same seat again. */
#include "lab/line.h"
#include "lab/runner.h"

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
    uint64_t entered = lines_enter(want);
    bool won = sell(r, want);
    runner_end(r); /* ends the transaction before the next buyer begins one */
    lines_leave(entered);
    return won;
}

const struct strategy strategy_queue = {
    .name = "queue",
    .summary = "Lets the buyers of a seat through one at a time, in a line in this process.",
    .correct = true,
    .unless = "a second process sells the same seats",
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
