/* The log of an event as a whole: finding a moment in it, and reading it page by page, for maps of
 * past moments.  On any connection.  No transaction is needed: what is read of an entry never
 * changes, and new ones come behind those that are read.  Only pruning deletes any, up to a seq
 * that ledger_pruned tells. */
#include "ledger/log.h"

static enum hf_status damaged(struct hf_err *err, int64_t event, int64_t seq)
{
    return hf_err_set(err, HF_INTERNAL, "the log of event %lld is damaged near seq %lld",
                      (long long)event, (long long)seq);
}

/* Reads the first entry at or behind `seq`; *ret_seq is 0 if there is none. */
static enum hf_status probe(struct ledger *l, int64_t event, int64_t seq, int64_t *ret_seq,
                            int64_t *ret_at, struct hf_err *err)
{
    const struct db_value args[] = {db_int(AUDIT_KEY(event, seq)),
                                    db_int(AUDIT_KEY(event, SEQ_MAX))};
    struct db_stmt *stmt;
    bool is_row;
    enum hf_status status = ledger_query(l, ST_LOG_PROBE, args, &stmt, err);
    if (status != HF_OK || (status = ledger_next(stmt, &is_row, err)) != HF_OK)
        return status;
    *ret_seq = is_row ? db_column_int(stmt, 0) & SEQ_MAX : 0;
    *ret_at = is_row ? db_column_int(stmt, 1) : 0;
    stmt->driver->finish(stmt);
    return HF_OK;
}

enum hf_status ledger_log_knows(struct ledger *l, int64_t event, int64_t at, bool *ret,
                                struct hf_err *err)
{
    struct pruned pruned;
    int64_t seq = 0, seq_at = 0;
    enum hf_status status = ledger_pruned(l, event, &pruned, err);
    if (status == HF_OK && pruned.seq)
        status = probe(l, event, pruned.seq + 1, &seq, &seq_at, err);
    if (status == HF_OK)
        *ret = !pruned.seq || (seq && seq_at <= at);
    return status;
}

enum hf_status ledger_log_later(struct ledger *l, int64_t event, int64_t at, int64_t *ret_seq,
                                struct hf_err *err)
{
    int64_t low = 0, high = SEQ_MAX, later = 0, seq, seq_at;
    while (low <= high) { /* 40 times at most */
        int64_t middle = low + (high - low) / 2;
        enum hf_status status = probe(l, event, middle, &seq, &seq_at, err);
        if (status != HF_OK)
            return status;
        if (seq && seq_at <= at) {
            low = seq + 1;
        } else {
            later = seq;
            high = middle - 1;
        }
    }
    *ret_seq = later;
    return HF_OK;
}

enum hf_status ledger_log_page(struct ledger *l, int64_t event, int64_t *after, int64_t last,
                               int64_t entries, bool (*row)(void *ctx, const struct audit_row *row),
                               void *ctx, struct hf_err *err)
{
    const struct db_value args[] = {db_int(AUDIT_KEY(event, *after)),
                                    db_int(AUDIT_KEY(event, last)), db_int(entries)};
    struct db_stmt *stmt;
    struct log_rows rows = {0};
    bool is_row = true, is_sound = true;
    enum hf_status status = ledger_query(l, ST_LOG_PAGE, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while (is_sound && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        vec_clear(&rows.list);
        is_sound = log_expand(stmt, &rows);
        for (size_t i = 0; is_sound && i < rows.list.n; i++) {
            is_sound = rows.list.v[i].seq == *after + 1 && row(ctx, &rows.list.v[i]);
            *after += is_sound;
        }
    }
    stmt->driver->finish(stmt);
    vec_close(&rows.list);
    return status == HF_OK && !is_sound ? damaged(err, event, *after + 1) : status;
}
