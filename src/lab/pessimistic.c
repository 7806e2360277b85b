/* Pessimistic: lock the rows, then read them.  The second buyer waits in its SELECT until the first
 * has committed, and then reads what the first wrote.  Several seats are locked in the order of
 * their ids, so that two buyers of the same seats cannot wait for each other.  Every loser costs a
 * transaction, and losers wait in a line behind each other. */
#include "lab/runner.h"

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    if (!runner_do(r, "BEGIN") ||
        !runner_all_available(r, want->n_seats,
                              "SELECT status FROM seats WHERE event = $1 AND id = ANY ($2)"
                              " ORDER BY id FOR UPDATE",
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

const struct strategy strategy_pessimistic = {
    .name = "pessimistic",
    .summary = "Locks the rows with SELECT ... FOR UPDATE, checks and writes them, and commits.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
