/* Queue, on SQLite; see queue.c.  BEGIN IMMEDIATE takes the write lock at the start.  After a plain
 * BEGIN, buyers from two lines could both read, and both would then be refused the write lock. */
#include "lab/line.h"
#include "lab/runner.h"

static bool sell(struct runner *r, const struct strategy_want *want)
{
    if (!runner_do(r, "BEGIN IMMEDIATE") ||
        !runner_all_available(r, want->n_seats,
                              "SELECT status FROM seats"
                              " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
                              want->event, r->ids.data, NULL))
        return false;
    runner_window(r);
    return runner_change(
               r,
               "UPDATE seats SET status = 'HELD', holder = ?3, held_until = unixepoch() + ?4"
               " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
               want->event, r->ids.data, want->user, r->hold_s, NULL) == (long)want->n_seats &&
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

const struct strategy strategy_queue_sqlite = {
    .name = "queue",
    .summary = "Lets the buyers of a seat through one at a time, in a line in this process.",
    .correct = true,
    .unless = "a second process sells the same seats",
    .needs = STRATEGY_NEEDS_SQLITE,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
