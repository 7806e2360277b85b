/* Naive, on SQLite; see naive.c.  SQLite's single writer does not help: each buyer reads before it
 * writes, and another buyer's write fits in between. */
#include "lab/runner.h"

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    if (!runner_all_available(r, want->n_seats,
                              "SELECT status FROM seats"
                              " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
                              want->event, r->ids.data, NULL))
        return false;
    runner_window(r);
    return runner_change(
               r,
               "UPDATE seats SET status = 'HELD', holder = ?3, held_until = unixepoch() + ?4"
               " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
               want->event, r->ids.data, want->user, r->hold_s, NULL) == (long)want->n_seats;
}

const struct strategy strategy_naive_sqlite = {
    .name = "naive",
    .summary = "Reads the seat, checks it in code and writes it, with nothing in between.",
    .correct = false,
    .needs = STRATEGY_NEEDS_SQLITE,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
