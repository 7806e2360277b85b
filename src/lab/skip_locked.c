/* Skip locked: for buyers who take any seats.  Each locks the best free seats that no other
 * transaction has locked, so no buyer waits for another.  Best is front and centre: the first row,
 * from its middle outwards, then the next row.  The seats of one buyer are not necessarily beside
 * each other.  A buyer may be told that nothing is left while another transaction, which is
 * then rolled back, has the last seats locked. */
#include <stdio.h>

#include "lab/runner.h"

/* Writes the ids of a result as PostgreSQL's text[]. */
static void write_array(const PGresult *rows, struct buf *ret)
{
    for (int i = 0; i < PQntuples(rows); i++)
        buf_printf(ret, "%s\"%s\"", i ? "," : "{", PQgetvalue(rows, i, 0));
    buf_put(ret, "}", sizeof "}");
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    char n[16];
    struct buf ids = {0};
    snprintf(n, sizeof n, "%zu", want->n_seats);
    if (!runner_do(r, "BEGIN"))
        return false;
    PGresult *rows = runner_sql(r,
                                "SELECT id FROM seats WHERE event = $1 AND status = 'AVAILABLE'"
                                " ORDER BY rank, id LIMIT $2::int FOR UPDATE SKIP LOCKED",
                                want->event, n, NULL);
    bool won = rows && (size_t)PQntuples(rows) == want->n_seats;
    if (won) {
        write_array(rows, &ids);
        runner_window(r);
        won = runner_change(r,
                            "UPDATE seats SET status = 'HELD', holder = $3,"
                            " held_until = now() + $4::int * interval '1 second'"
                            " WHERE event = $1 AND id = ANY ($2)",
                            want->event, ids.data, want->user, r->hold_s,
                            NULL) == (long)want->n_seats &&
              runner_do(r, "COMMIT");
    }
    buf_close(&ids);
    PQclear(rows);
    return won;
}

const struct strategy strategy_skip_locked = {
    .name = "skip-locked",
    .summary = "Takes the best free seats that nobody else has locked, with SKIP LOCKED.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .chooses = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
