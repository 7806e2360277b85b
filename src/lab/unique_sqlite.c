/* Unique constraint, on SQLite; see unique.c.  The order of the rows does not matter, because
 * SQLite has one writer at a time. */
#include "lab/desk.h"

#define PRIMARY_KEY_VIOLATION "1555" /* SQLITE_CONSTRAINT_PRIMARYKEY */

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    desk_window(d);
    long n = desk_change(d,
                         "INSERT INTO holds (event, seat, holder, held_until)"
                         " SELECT ?1, value, ?3, unixepoch() + ?4 FROM json_each(?2)",
                         want->event, d->ids.data, want->user, d->hold_s, NULL);
    return !desk_refused(d, PRIMARY_KEY_VIOLATION) && n == (long)want->n_seats;
}

const struct strategy strategy_unique_sqlite = {
    .name = "unique",
    .summary = "Inserts one row per seat into a table whose key allows only one.",
    .correct = true,
    .needs = STRATEGY_NEEDS_SQLITE,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
