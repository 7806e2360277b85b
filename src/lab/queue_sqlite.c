/* Queue, on SQLite: as queue.c.  BEGIN IMMEDIATE has the lock for writing from the start: with a
 * plain BEGIN, buyers in two lines would both read and then both be refused the lock. */
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
    uint64_t mine = lines_enter(want);
    bool won = sell(d, want);
    desk_end(d); /* the transaction must be over before the next may begin one */
    lines_leave(mine);
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
