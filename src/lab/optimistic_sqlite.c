/* Optimistic, on SQLite; see optimistic.c.  Reading needs no lock and never waits; from BEGIN
 * IMMEDIATE on, this connection is the only writer. */
#include "lab/desk.h"

static bool write_if_unchanged(struct desk *d, const struct strategy_want *want,
                               const char *versions)
{
    bool written = desk_do(d, "BEGIN IMMEDIATE") &&
                   desk_change(d,
                               "UPDATE seats SET status = 'HELD', holder = ?4,"
                               " held_until = unixepoch() + ?5, version = seats.version + 1"
                               " FROM json_each(?2) AS seen"
                               " JOIN json_each(?3) AS seen_version USING (key)"
                               " WHERE seats.event = ?1 AND seats.id = seen.value"
                               " AND seats.version = seen_version.value",
                               want->event, d->ids.data, versions, want->user, d->hold_s,
                               NULL) == (long)want->n_seats;
    if (written)
        return desk_do(d, "COMMIT");
    desk_end(d);
    return false;
}

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    struct buf versions = {0}; /* a JSON array, in the order of d->ids */
    bool won = false;
    for (int i = 0; !won && i <= d->settings.retries_max; i++) {
        if (i > 0)
            desk_retry(d, d->settings.retry_pause_ms << (i - 1));
        if (!desk_text(d, &versions,
                       "SELECT CASE count(*) WHEN json_array_length(?2)"
                       "  THEN json_group_array(version) END"
                       " FROM (SELECT version FROM seats"
                       "  JOIN json_each(?2) AS wanted ON seats.id = wanted.value"
                       "  WHERE event = ?1 AND status = 'AVAILABLE' ORDER BY wanted.key)",
                       want->event, d->ids.data, NULL))
            break;
        desk_window(d);
        won = write_if_unchanged(d, want, versions.data);
        if (desk_failed(d))
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
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
