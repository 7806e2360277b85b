/* How large the ledger is, for metrics.  On the connection of the engine's keeper. */
#include "ledger/ledger_internal.h"

#define HOUR_MS 3600000
/* A key is dated before its batch commits.  What is counted up to this long ago is complete. */
#define COMMIT_MS 5000
/* A key's row without its answer, and its entry in the index by age; measured, with the free space
 * of their pages. */
#define KEY_BYTES 150
#define FILL_PERCENT 105 /* what a byte of an answer takes, likewise */

static enum hf_status count_keys(struct ledger *l, struct key_census *c, int64_t now,
                                 struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    int64_t upto = now - COMMIT_MS;
    if (upto <= c->upto)
        return HF_OK;
    const struct db_value args[] = {db_int(c->upto ? c->upto : now - KEY_KEPT_MS), db_int(upto)};
    struct key_census counted = *c;
    enum hf_status status = ledger_query(l, ST_KEYS_COUNT, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        int64_t hour = db_column_int(stmt, 0), n = db_column_int(stmt, 1);
        int slot = (int)(hour % KEY_HOURS);
        if (counted.hours[slot].hour == hour)
            n += counted.hours[slot].n;
        counted.hours[slot].hour = hour;
        counted.hours[slot].n = n;
    }
    if (status != HF_OK)
        return status;
    *c = counted;
    c->upto = upto;
    return HF_OK;
}

/* Keys that are being deleted, and those of the hour that is half over, count as if they were
 * still there. */
static int64_t keys_kept(const struct key_census *c, int64_t now)
{
    int64_t n = 0, first = (now - KEY_KEPT_MS) / HOUR_MS;
    for (int i = 0; i < KEY_HOURS; i++)
        n += c->hours[i].hour >= first ? c->hours[i].n : 0;
    return n;
}

static enum hf_status answer_bytes(struct ledger *l, int64_t *ret, struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_KEYS_NEWEST, NULL, &stmt, err);
    if (status == HF_OK)
        status = ledger_next(stmt, &is_row, err);
    if (status != HF_OK)
        return status;
    int64_t n = is_row ? db_column_int(stmt, 0) : 0;
    *ret = n ? db_column_int(stmt, 1) / n : 0;
    l->db->driver->finish(stmt);
    return HF_OK;
}

enum hf_status ledger_sizes(struct ledger *l, struct key_census *census, struct ledger_sizes *ret,
                            struct hf_err *err)
{
    int64_t now = 0, answer = 0;
    enum hf_status status;
    struct ledger_sizes sizes;
    if ((status = l->db->driver->upkeep.sizes(l->db, &sizes.db, err)) != HF_OK ||
        (status = ledger_now(l, &now, err)) != HF_OK ||
        (status = count_keys(l, census, now, err)) != HF_OK ||
        (status = answer_bytes(l, &answer, err)) != HF_OK)
        return status;
    sizes.keys = keys_kept(census, now);
    sizes.keys_bytes = sizes.keys * (KEY_BYTES + answer * FILL_PERCENT / 100);
    *ret = sizes;
    return HF_OK;
}
