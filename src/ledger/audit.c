/* Reads the log: a page of it, the past of one seat, the expiry of a hold as it was known at some
 * time.  Any connection. */
#include <string.h>

#include "ledger/internal.h"

static void secret_from_row(struct db_stmt *stmt, int column, uint8_t out[ID_SECRET_SIZE])
{
    size_t len;
    const void *data = db_column_data(stmt, column, &len);
    if (data && len == ID_SECRET_SIZE)
        memcpy(out, data, len);
}

void audit_from_row(struct db_stmt *stmt, int64_t event, struct audit_row *row)
{
    size_t len;
    *row = (struct audit_row){
        .event = event,
        .seq = db_column_int(stmt, 0),
        .at = db_column_int(stmt, 1),
        .object = (enum audit_object)db_column_int(stmt, 2),
        .item = -1,
        .quantity = db_column_int(stmt, 4),
        .from = (int)db_column_int(stmt, 5),
        .to = (int)db_column_int(stmt, 6),
        .hold = db_column_int(stmt, 7),
        .booking = db_column_int(stmt, 8),
        .fence = db_column_int(stmt, 9),
        .until = db_column_int(stmt, 10),
        .cause = (enum audit_cause)db_column_int(stmt, 11),
    };
    if (db_column_data(stmt, 3, &len))
        row->item = db_column_int(stmt, 3);
}

static void entry_from_row(struct db_stmt *stmt, int64_t event, struct audit_entry *ret)
{
    *ret = (struct audit_entry){0};
    audit_from_row(stmt, event, &ret->row);
    secret_from_row(stmt, 12, ret->hold_secret);
    secret_from_row(stmt, 13, ret->booking_secret);
}

static enum hf_status read_entries(struct ledger *l, enum statement which, int64_t event,
                                   const struct db_value *args, size_t limit,
                                   struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    size_t n = 0;
    bool is_row;
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while (n < limit && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        entry_from_row(stmt, event, &ret[n++]);
    if (status != HF_OK)
        return status;
    stmt->driver->finish(stmt);
    *ret_n = n;
    return HF_OK;
}

/* Every grant writes at least one row of the log, so a hold's rows begin no earlier than at the seq
 * that equals its first fence. */
enum hf_status ledger_audit_read(struct ledger *l, const struct audit_query *query,
                                 struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    int64_t after = query->after;
    if (query->hold && HOLD_FIRST_FENCE(query->hold) - 1 > after)
        after = HOLD_FIRST_FENCE(query->hold) - 1;
    const struct db_value args[] = {db_int(AUDIT_KEY(query->event, after)),
                                    db_int(AUDIT_KEY(query->event + 1, 0) - 1), db_int(query->seat),
                                    db_int(query->hold), db_int((int64_t)query->limit)};
    return read_entries(l, ST_AUDIT_READ, query->event, args, query->limit, ret, ret_n, err);
}

enum hf_status ledger_audit_seat(struct ledger *l, int64_t event, uint32_t seat, int64_t at,
                                 size_t limit, struct audit_entry *ret, size_t *ret_n,
                                 struct hf_err *err)
{
    const struct db_value args[] = {db_int(AUDIT_KEY(event, 0)),
                                    db_int(AUDIT_KEY(event + 1, 0) - 1), db_int(seat), db_int(at),
                                    db_int((int64_t)limit)};
    return read_entries(l, ST_AUDIT_SEAT_BACK, event, args, limit, ret, ret_n, err);
}

enum hf_status ledger_audit_until(struct ledger *l, int64_t hold, int64_t at, int64_t *ret_until,
                                  struct hf_err *err)
{
    int64_t event = HOLD_EVENT(hold);
    size_t n = 0;
    const struct db_value args[] = {db_int(AUDIT_KEY(event, HOLD_FIRST_FENCE(hold)) - 1),
                                    db_int(AUDIT_KEY(event + 1, 0) - 1), db_int(hold), db_int(at)};
    int64_t until = 0;
    enum hf_status status = ledger_read_ints(l, ST_AUDIT_HOLD_UNTIL, args, 1, &until, &n, err);
    if (status == HF_OK)
        *ret_until = n ? until : 0;
    return status;
}
