/* Inventory, on SQLite; see inventory.c.  From BEGIN IMMEDIATE on, this connection is the only
 * writer. */
#include <stdio.h>

#include "lab/runner.h"

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    char n[16];
    snprintf(n, sizeof n, "%zu", want->n_seats);
    runner_window(r);
    return runner_do(r, "BEGIN IMMEDIATE") &&
           runner_change(r,
                         "UPDATE inventory SET places = places - ?2, version = version + 1"
                         " WHERE event = ?1 AND places >= CAST(?2 AS INTEGER)",
                         want->event, n, NULL) == 1 &&
           runner_change(r,
                         "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                         "  WHERE i < CAST(?2 AS INTEGER))"
                         " INSERT INTO tickets (event, place, holder)"
                         " SELECT ?1, places + i, ?3 FROM inventory, n WHERE event = ?1",
                         want->event, n, want->user, NULL) == (long)want->n_seats &&
           runner_do(r, "COMMIT");
}

const struct strategy strategy_inventory_sqlite = {
    .name = "inventory",
    .summary = "Takes places from one number per event if so many are left, and writes tickets.",
    .correct = true,
    .needs = STRATEGY_NEEDS_SQLITE,
    .chooses = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
