/* Two layers: Redis as a gate, PostgreSQL as the truth.  One key per seat, set only if it is
 * missing and for as long as the hold, refuses nearly all buyers at the price of one command.  A
 * buyer who passes reads the rows that are available and changes them if their version is still the
 * one it read, so the rows still refuse if Redis has lost its keys.  Both steps are one statement:
 * PostgreSQL compares the version again after it has waited for another writer of the row.  A buyer
 * who does not get all its seats deletes the keys that it set.
 *
 * That DEL is blind: after a pause longer than the hold it deletes the key of another buyer.  As
 * the row decides, this costs a quick refusal and no seat; anomaly_blind_delete.c shows what it
 * costs where nothing else decides. */
#include "lab/runner.h"

static bool take_rows(struct runner *r, const struct strategy_want *want)
{
    bool many = want->n_seats > 1; /* one row needs no transaction around it */
    return (!many || runner_do(r, "BEGIN")) &&
           runner_change(r,
                         "WITH seen AS MATERIALIZED (SELECT id, version FROM seats"
                         "  WHERE event = $1 AND id = ANY ($2) AND status = 'AVAILABLE')"
                         " UPDATE seats SET status = 'HELD', holder = $3,"
                         " held_until = now() + $4::int * interval '1 second',"
                         " version = seats.version + 1"
                         " FROM seen WHERE seats.event = $1 AND seats.id = seen.id"
                         " AND seats.version = seen.version",
                         want->event, r->ids.data, want->user, r->hold_s,
                         NULL) == (long)want->n_seats &&
           (!many || runner_do(r, "COMMIT"));
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    size_t passed = 0;
    while (passed < want->n_seats &&
           runner_redis_set(r, "SET seat:%s:%s %s NX EX %d", want->event, r->seats[passed],
                            want->user, r->settings.hold_s))
        passed++;
    runner_window(r);
    if (passed == want->n_seats && take_rows(r, want))
        return true;
    runner_end(r);
    while (passed > 0)
        (void)runner_redis_number(r, "DEL seat:%s:%s", want->event, r->seats[--passed]);
    return false;
}

const struct strategy strategy_two_layer = {
    .name = "two-layer",
    .summary = "Sets one key per seat in Redis first, then changes the row if its version is "
               "unchanged.",
    .correct = true,
    .several = true,
    .needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS,
    .open = runner_open,
    .attempt = attempt,
    .close = runner_close,
};
