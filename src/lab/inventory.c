/* Inventory: general admission in the database.  One row per event says how many places are left.
 * A request takes its places on condition that so many are there, without reading first, and writes
 * its tickets in the same statement.  The row's lock makes the buyers of an event wait for each
 * other's commits.
 *
 * The version counts the changes, for a program that has read the row and wants to know whether it
 * is still current.  Nothing here compares it: all buyers of an event write the same row, so a
 * comparison would refuse every buyer who came second, although places are left. */
#include <stdio.h>

#include "lab/runner.h"

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    char n[16];
    snprintf(n, sizeof n, "%zu", want->n_seats);
    runner_window(r);
    return runner_change(
               r,
               "WITH taken AS (UPDATE inventory SET places = places - $2::int,"
               "  version = version + 1"
               "  WHERE event = $1 AND places >= $2::int RETURNING places)"
               " INSERT INTO tickets (event, place, holder)"
               " SELECT $1, taken.places + i, $3 FROM taken, generate_series(1, $2::int) i",
               want->event, n, want->user, NULL) == (long)want->n_seats;
}

const struct strategy strategy_inventory = {
    .name = "inventory",
    .summary = "Takes places from one number per event if so many are left, and writes tickets.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES,
    .chooses = true,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
