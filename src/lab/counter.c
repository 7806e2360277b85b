/* Counter: general admission.  A number in Redis says how many places are left.  A request that
 * takes it below zero adds its places back and is refused; any other request then takes whichever
 * rows are free.
 *
 * If a process dies between the two steps, number and rows differ, and places are lost until
 * counter_reconcile counts them again.  Between the DECRBY and the INCRBY of a large request, a
 * small request that would fit is refused. */
#include <stdio.h>

#include "lab/counter.h"
#include "lab/desk.h"

static bool take_rows(struct desk *d, const struct strategy_want *want)
{
    char n[16];
    snprintf(n, sizeof n, "%zu", want->n_seats);
    return desk_do(d, "BEGIN") &&
           desk_change(d,
                       "WITH free AS (SELECT id FROM seats"
                       "  WHERE event = $1 AND status = 'AVAILABLE'"
                       "  LIMIT $2::int FOR UPDATE SKIP LOCKED)"
                       " UPDATE seats SET status = 'HELD', holder = $3,"
                       " held_until = now() + $4::int * interval '1 second'"
                       " FROM free WHERE seats.event = $1 AND seats.id = free.id",
                       want->event, n, want->user, d->hold_s, NULL) == (long)want->n_seats &&
           desk_do(d, "COMMIT");
}

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    long long left = desk_redis_number(d, "DECRBY stock:%s %d", want->event, (int)want->n_seats);
    if (desk_failed(d))
        return false;
    desk_window(d);
    if (left >= 0 && take_rows(d, want))
        return true;
    desk_end(d);
    (void)desk_redis_number(d, "INCRBY stock:%s %d", want->event, (int)want->n_seats);
    return false;
}

bool counter_reconcile(const struct strategy_settings *settings, const char *event,
                       struct hf_err *err)
{
    struct desk *d = NULL;
    struct strategy_outcome outcome = {0};
    if (!desk_open(&strategy_counter, settings, &d, err))
        return false;
    d->outcome = &outcome;
    PGresult *rows = desk_sql(d,
                              "SELECT count(*) FROM seats"
                              " WHERE event = $1 AND status = 'AVAILABLE'",
                              event, NULL);
    if (rows)
        (void)desk_redis_set(d, "SET stock:%s %s", event, PQgetvalue(rows, 0, 0));
    PQclear(rows);
    bool good = !desk_failed(d);
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", outcome.why);
    desk_close(d);
    return good;
}

const struct strategy strategy_counter = {
    .name = "counter",
    .summary = "Counts places down in Redis, back up if too few are left, then takes rows.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS,
    .chooses = true,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
