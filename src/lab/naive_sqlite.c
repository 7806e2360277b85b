/* Naive, on SQLite; see naive.c.  SQLite's single writer does not help: each buyer reads before it
 * writes, and another buyer's write fits in between. */
#include "lab/desk.h"

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    if (!desk_all_available(d, want->n_seats,
                            "SELECT status FROM seats"
                            " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
                            want->event, d->ids.data, NULL))
        return false;
    desk_window(d);
    return desk_change(
               d,
               "UPDATE seats SET status = 'HELD', holder = ?3, held_until = unixepoch() + ?4"
               " WHERE event = ?1 AND id IN (SELECT value FROM json_each(?2))",
               want->event, d->ids.data, want->user, d->hold_s, NULL) == (long)want->n_seats;
}

const struct strategy strategy_naive_sqlite = {
    .name = "naive",
    .summary = "Reads the seat, checks it in code and writes it, with nothing in between.",
    .correct = false,
    .needs = STRATEGY_NEEDS_SQLITE,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
