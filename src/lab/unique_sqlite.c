/* Unique constraint, on SQLite; see unique.c.  The order of the rows does not matter, because
 * SQLite has one writer at a time. */
#include "lab/runner.h"

#define PRIMARY_KEY_VIOLATION "1555" /* SQLITE_CONSTRAINT_PRIMARYKEY */

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    runner_window(r);
    long n = runner_change(r,
                           "INSERT INTO holds (event, seat, holder, held_until)"
                           " SELECT ?1, value, ?3, unixepoch() + ?4 FROM json_each(?2)",
                           want->event, r->ids.data, want->user, r->hold_s, NULL);
    return !runner_refused(r, PRIMARY_KEY_VIOLATION) && n == (long)want->n_seats;
}

const struct strategy strategy_unique_sqlite = {
    .name = "unique",
    .summary = "Inserts one row per seat into a table whose key allows only one.",
    .correct = true,
    .needs = STRATEGY_NEEDS_SQLITE,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
