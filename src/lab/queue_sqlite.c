/* Queue, on SQLite; see queue.c.  BEGIN IMMEDIATE takes the write lock at the start.  After a plain
 * BEGIN, buyers from two lines could both read, and both would then be refused the write lock. */
#include "lab/desk.h"
#include "lab/line.h"

static bool sell(struct desk *d, const struct strategy_want *want)
{
    if (!desk_do(d, "BEGIN IMMEDIATE") ||
        !desk_all_available(d, want->n_seats,
                            "SELECT status FROM seats"
                            " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
                            want->event, d->ids.data, NULL))
        return false;
    desk_window(d);
    return desk_change(
               d,
               "UPDATE seats SET status = 'HELD', holder = ?3, held_until = unixepoch() + ?4"
               " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
               want->event, d->ids.data, want->user, d->hold_s, NULL) == (long)want->n_seats &&
           desk_do(d, "COMMIT");
}

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    uint64_t entered = lines_enter(want);
    bool won = sell(d, want);
    desk_end(d); /* ends the transaction before the next buyer begins one */
    lines_leave(entered);
    return won;
}

const struct strategy strategy_queue_sqlite = {
    .name = "queue",
    .summary = "Lets the buyers of a seat through one at a time, in a line in this process.",
    .correct = true,
    .unless = "a second process sells the same seats",
    .needs = STRATEGY_NEEDS_SQLITE,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
