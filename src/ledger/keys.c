/* Idempotency keys and the answers stored under them, outside of batches.  Any connection. */
#include <string.h>

#include "ledger/ledger_internal.h"

void key_from_row(struct db_stmt *stmt, const uint8_t *hash, struct key_row *row)
{
    size_t len;
    const void *data = db_column_data(stmt, 1, &len);
    hf_check(len == KEY_HASH_SIZE);
    memcpy(row->hash, hash, KEY_HASH_SIZE);
    memcpy(row->request, data, len);
    row->found = true;
    row->answer_code = (int)db_column_int(stmt, 2);
    data = db_column_data(stmt, 3, &len);
    row->owned = hf_strndup(data ? data : "", len);
    row->answer = row->owned;
    row->answer_len = len;
    row->created_at = db_column_int(stmt, 4);
}

enum hf_status ledger_keys_each(struct ledger *l, int64_t now,
                                void (*key)(void *ctx, const uint8_t *hash), void *ctx,
                                struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(now - KEY_KEPT_MS)};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_KEYS_EACH, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        size_t len;
        const uint8_t *hash = db_column_data(stmt, 0, &len);
        hf_check(len == KEY_HASH_SIZE);
        key(ctx, hash);
    }
    return status;
}

enum hf_status ledger_keys_prune(struct ledger *l, int64_t now, size_t limit, int64_t *ret_pruned,
                                 struct hf_err *err)
{
    const struct db_value args[] = {db_int(now - KEY_KEPT_MS), db_int((int64_t)limit)};
    return ledger_exec(l, ST_KEYS_PRUNE, args, ret_pruned, err);
}
