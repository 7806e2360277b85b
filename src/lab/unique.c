/* Unique constraint: a hold is a row of its own, and the table's key allows one row per seat.  One
 * statement, without reading or locking first: the database refuses the second buyer.  Several
 * seats are inserted in the order of their ids, because an insert waits for an uncommitted insert
 * of the same key. */
#include "lab/desk.h"

#define UNIQUE_VIOLATION "23505"

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    desk_window(d);
    long n = desk_change(d,
                         "INSERT INTO holds (event, seat, holder, held_until)"
                         " SELECT $1, id, $3, now() + $4::int * interval '1 second'"
                         " FROM unnest($2::text[]) AS id ORDER BY id",
                         want->event, d->ids.data, want->user, d->hold_s, NULL);
    return !desk_refused(d, UNIQUE_VIOLATION) && n == (long)want->n_seats;
}

const struct strategy strategy_unique = {
    .name = "unique",
    .summary = "Inserts one row per seat into a table whose key allows only one.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
