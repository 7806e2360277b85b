/* Counter: general admission.  A number in Redis says how many places are left.  A request that
 * takes it below zero adds its places back and is refused; any other request then takes whichever
 * rows are free.
 *
 * If a process dies between the two steps, number and rows differ, and places are lost until
 * counter_reconcile counts them again.  Between the DECRBY and the INCRBY of a large request, a
 * small request that would fit is refused. */
#include <stdio.h>

#include "lab/counter.h"
#include "lab/runner.h"

static bool take_rows(struct runner *r, const struct strategy_want *want)
{
    char n[16];
    snprintf(n, sizeof n, "%zu", want->n_seats);
    return runner_do(r, "BEGIN") &&
           runner_change(r,
                         "WITH free AS (SELECT id FROM seats"
                         "  WHERE event = $1 AND status = 'AVAILABLE'"
                         "  LIMIT $2::int FOR UPDATE SKIP LOCKED)"
                         " UPDATE seats SET status = 'HELD', holder = $3,"
                         " held_until = now() + $4::int * interval '1 second'"
                         " FROM free WHERE seats.event = $1 AND seats.id = free.id",
                         want->event, n, want->user, r->hold_s, NULL) == (long)want->n_seats &&
           runner_do(r, "COMMIT");
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    long long left = runner_redis_number(r, "DECRBY stock:%s %d", want->event, (int)want->n_seats);
    if (runner_failed(r))
        return false;
    runner_window(r);
    if (left >= 0 && take_rows(r, want))
        return true;
    runner_end(r);
    (void)runner_redis_number(r, "INCRBY stock:%s %d", want->event, (int)want->n_seats);
    return false;
}

bool counter_reconcile(const struct strategy_settings *settings, const char *event,
                       struct hf_err *err)
{
    struct runner *r = NULL;
    struct strategy_outcome outcome = {0};
    if (!runner_open(&strategy_counter, settings, &r, err))
        return false;
    r->outcome = &outcome;
    PGresult *rows = runner_sql(r,
                                "SELECT count(*) FROM seats"
                                " WHERE event = $1 AND status = 'AVAILABLE'",
                                event, NULL);
    if (rows)
        (void)runner_redis_set(r, "SET stock:%s %s", event, PQgetvalue(rows, 0, 0));
    PQclear(rows);
    bool good = !runner_failed(r);
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", outcome.why);
    runner_close(r);
    return good;
}

const struct strategy strategy_counter = {
    .name = "counter",
    .summary = "Counts places down in Redis, back up if too few are left, then takes rows.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS,
    .chooses = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
