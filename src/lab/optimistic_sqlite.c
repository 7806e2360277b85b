/* Optimistic, on SQLite; see optimistic.c.  Reading needs no lock and never waits; from BEGIN
 * IMMEDIATE on, this connection is the only writer. */
#include "lab/runner.h"

static bool write_if_unchanged(struct runner *r, const struct strategy_want *want,
                               const char *versions)
{
    bool written = runner_do(r, "BEGIN IMMEDIATE") &&
                   runner_change(r,
                                 "UPDATE seats SET status = 'HELD', holder = ?4,"
                                 " held_until = unixepoch() + ?5, version = seats.version + 1"
                                 " FROM json_each(?2) AS seen"
                                 " JOIN json_each(?3) AS seen_version USING (key)"
                                 " WHERE seats.event = ?1 AND seats.id = seen.value"
                                 " AND seats.version = seen_version.value",
                                 want->event, r->ids.data, versions, want->user, r->hold_s,
                                 NULL) == (long)want->n_seats;
    if (written)
        return runner_do(r, "COMMIT");
    runner_end(r);
    return false;
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    struct buf versions = {0}; /* a JSON array, in the order of r->ids */
    bool won = false;
    for (int i = 0; !won && i <= r->settings.retries_max; i++) {
        if (i > 0)
            runner_retry(r, r->settings.retry_pause_ms << (i - 1));
        if (!runner_text(r, &versions,
                         "SELECT CASE count(*) WHEN json_array_length(?2)"
                         "  THEN json_group_array(version) END"
                         " FROM (SELECT version FROM seats"
                         "  JOIN json_each(?2) AS wanted ON seats.id = wanted.value"
                         "  WHERE event = ?1 AND status = 'AVAILABLE' ORDER BY wanted.key)",
                         want->event, r->ids.data, NULL))
            break;
        runner_window(r);
        won = write_if_unchanged(r, want, versions.data);
        if (runner_failed(r))
            break;
    }
    buf_close(&versions);
    return won;
}

const struct strategy strategy_optimistic_sqlite = {
    .name = "optimistic",
    .summary = "Writes only if the version it read is still there, and looks again if not.",
    .correct = true,
    .needs = STRATEGY_NEEDS_SQLITE,
    .retries = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
