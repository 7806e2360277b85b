/* Naive: read the seat and, if it is free, take it.  If two buyers read before either of them
 * writes, both find the seat free, both write, and both are told that it is theirs; the row keeps
 * the second buyer.
 *
 *   SELECT status            -- AVAILABLE
 *                                    SELECT status            -- AVAILABLE
 *   UPDATE ... holder = ann  -- won
 *                                    UPDATE ... holder = bob  -- won */
#include "lab/runner.h"

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    if (!runner_all_available(r, want->n_seats,
                              "SELECT status FROM seats WHERE event = $1 AND id = ANY ($2)",
                              want->event, r->ids.data, NULL))
        return false;
    runner_window(r);
    return runner_change(r,
                         "UPDATE seats SET status = 'HELD', holder = $3,"
                         " held_until = now() + $4::int * interval '1 second'"
                         " WHERE event = $1 AND id = ANY ($2)",
                         want->event, r->ids.data, want->user, r->hold_s,
                         NULL) == (long)want->n_seats;
}

const struct strategy strategy_naive = {
    .name = "naive",
    .summary = "Reads the seat, checks it in code and writes it, with nothing in between.",
    .correct = false,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
