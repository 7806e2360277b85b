/* Optimistic: read the rows and their versions without a lock, and write only if the versions are
 * still the same.  A buyer who comes second changes no row, pauses, longer each time, and reads
 * again, usually to find the seat taken. */
#include <stdlib.h>

#include "lab/runner.h"

/* Reads the versions of the seats as PostgreSQL's int[].  Returns false if not all of them are
 * available. */
static bool read_versions(struct runner *r, const struct strategy_want *want, struct buf *ret)
{
    PGresult *seats = runner_sql(r,
                                 "SELECT version FROM seats WHERE event = $1 AND id = ANY ($2)"
                                 " AND status = 'AVAILABLE' ORDER BY id",
                                 want->event, r->ids.data, NULL);
    bool all = seats && (size_t)PQntuples(seats) == want->n_seats;
    ret->len = 0;
    for (int i = 0; all && i < PQntuples(seats); i++)
        buf_printf(ret, "%c%s", i ? ',' : '{', PQgetvalue(seats, i, 0));
    buf_put(ret, "}", sizeof "}");
    PQclear(seats);
    return all;
}

/* Returns false, without a failure of the runner, if another buyer has changed one of the rows. */
static bool write_if_unchanged(struct runner *r, const struct strategy_want *want,
                               const char *versions)
{
    bool written = runner_do(r, "BEGIN") &&
                   runner_change(r,
                                 "UPDATE seats SET status = 'HELD', holder = $4,"
                                 " held_until = now() + $5::int * interval '1 second',"
                                 " version = seats.version + 1"
                                 " FROM unnest($2::text[], $3::int[]) AS seen (id, version)"
                                 " WHERE seats.event = $1 AND seats.id = seen.id"
                                 " AND seats.version = seen.version",
                                 want->event, r->ids.data, versions, want->user, r->hold_s,
                                 NULL) == (long)want->n_seats;
    if (written)
        return runner_do(r, "COMMIT");
    /* A deadlock means that another buyer is writing the same rows, so it counts as a change. */
    if (!runner_failed(r) || runner_refused(r, "40P01"))
        runner_do(r, "ROLLBACK");
    return false;
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    struct buf versions = {0};
    bool won = false;
    for (int i = 0; !won && i <= r->settings.retries_max; i++) {
        if (i > 0)
            runner_retry(r, r->settings.retry_pause_ms << (i - 1));
        if (!read_versions(r, want, &versions))
            break;
        runner_window(r);
        won = write_if_unchanged(r, want, versions.data);
        if (runner_failed(r))
            break;
    }
    buf_close(&versions);
    return won;
}

const struct strategy strategy_optimistic = {
    .name = "optimistic",
    .summary = "Writes only if the version it read is still there, and looks again if not.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .retries = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
