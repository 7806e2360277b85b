/* See sweep.h. */
#include "lease/sql/sweep.h"

#include <string.h>

/* Each handle deletes the rows of names that are not used any more this often, */
#define SWEEP_EVERY_MS 60000
/* if they ended longer ago than any transaction lasts that may have read them. */
#define SWEEP_AFTER_MS 30000
/* One grant in SWEEP_FENCES_EVERY deletes old entries from the next SWEEP_FENCES_SLICE entries of
 * lease_fences, in the order of names: a grant pays for four entries, however many there are. */
#define SWEEP_FENCES_EVERY 16
#define SWEEP_FENCES_SLICE 64

/* Deletes old entries from the next slice of lease_fences.  The handle remembers where the slice
 * ends; behind the last entry it begins again with the first. */
static void sweep_fences(struct sql_lease *s, struct hf_err *err)
{
    static const char beyond[] = "\xff"; /* no name is UTF-8 and greater */
    const struct db_value after = db_bytes(s->link->fences_after, s->link->fences_after_len);
    const struct db_value where[] = {after, db_int(SWEEP_FENCES_SLICE - 1)};
    struct db_stmt *stmt = s->link->stmts[LS_FENCES_SLICE];
    char last[LEASE_NAME_MAX];
    size_t last_len = 0;
    if (db_query(stmt, where, err) != HF_OK)
        return;
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW) {
        size_t len;
        const void *name = db_column_data(stmt, 0, &len);
        last_len = len <= sizeof last ? len : 0;
        memcpy(last, name, last_len);
    }
    if (step == DB_FAILED)
        return;
    const struct db_value args[] = {
        after, last_len ? db_bytes(last, last_len) : db_bytes(beyond, sizeof beyond - 1),
        db_int(LEASE_FENCE_KEPT_MS)};
    enum lease_sql_statement sweep =
        s->link->db->driver->network ? LS_FORGET_FENCES : LS_SWEEP_FENCES;
    (void)!sql_exec(s, sweep, args, NULL, err);
    memcpy(s->link->fences_after, last, last_len);
    s->link->fences_after_len = last_len;
}

/* Each statement is its own transaction and excludes nobody, so a handle that stops in the middle
 * blocks no name.  The call before has succeeded; if the sweep fails, the next call reports it. */
void sql_sweep(struct sql_lease *s, const struct lease_verdict *verdict)
{
    int64_t now_ms = clock_boot_us(s->family->options.clock) / 1000;
    struct hf_err err = {0};
    if (verdict->result == HF_DONE && ++s->link->grants % SWEEP_FENCES_EVERY == 0)
        sweep_fences(s, &err);
    if (s->link->swept_at_ms && now_ms - s->link->swept_at_ms < SWEEP_EVERY_MS)
        return;
    s->link->swept_at_ms = now_ms;
    const struct db_value expired = db_int(SWEEP_AFTER_MS),
                          silent = db_int(SWEEP_AFTER_MS + WAITER_SILENT_MS);
    if (sql_exec(s, LS_SWEEP_EXPIRED, &expired, NULL, &err) == HF_OK)
        (void)!sql_exec(s, LS_SWEEP_SILENT, &silent, NULL, &err);
}
