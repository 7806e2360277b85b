/* Unique constraint: a hold is a row of its own, and the table's key allows one row per seat.  One
 * statement, without reading or locking first: the database refuses the second buyer.  Several
 * seats are inserted in the order of their ids, because an insert waits for an uncommitted insert
 * of the same key. */
#include "lab/runner.h"

#define UNIQUE_VIOLATION "23505"

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    runner_window(r);
    long n = runner_change(r,
                           "INSERT INTO holds (event, seat, holder, held_until)"
                           " SELECT $1, id, $3, now() + $4::int * interval '1 second'"
                           " FROM unnest($2::text[]) AS id ORDER BY id",
                           want->event, r->ids.data, want->user, r->hold_s, NULL);
    return !runner_refused(r, UNIQUE_VIOLATION) && n == (long)want->n_seats;
}

const struct strategy strategy_unique = {
    .name = "unique",
    .summary = "Inserts one row per seat into a table whose key allows only one.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
