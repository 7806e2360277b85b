/* Waiting lists: reading their entries, by key and in lists, on any connection, and what a batch
 * binds of them.  See model/waitlist.h. */
#include "ledger/ledger_internal.h"
#include "ledger/number_list.h"

/* ---- columns ---- */

static enum hf_status damaged(struct hf_err *err, int64_t key)
{
    return hf_err_set(err, HF_INTERNAL, "row %lld of waitlist is damaged", (long long)key);
}

static bool wish_from_row(struct db_stmt *stmt, int column, struct wait_wish *ret)
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    return text && wish_list_parse(text, len, ret);
}

#define READ_WISH(at, field) row->field = wish;

enum hf_status wait_from_row(struct db_stmt *stmt, struct wait_row *row, struct hf_err *err)
{
    struct wait_wish wish;
    if (!wish_from_row(stmt, AT_w_wish, &wish))
        return damaged(err, db_column_int(stmt, AT_w_entry));
    char *next = hf_alloc(TEXTS_LEN(WAIT_COLUMNS) + 1);
    *row = (struct wait_row){.owned = next};
    READ(WAIT_COLUMNS);
    row->offer.id.key = db_column_int(stmt, WAIT_COLUMNS_N);
    if (!row->offer.id.key) /* it was offered none, or that one is deleted */
        return HF_OK;
    column_secret(stmt, WAIT_COLUMNS_N + 1, row->offer.id.secret);
    row->offer.expires_at = db_column_int(stmt, WAIT_COLUMNS_N + 2);
    return HF_OK;
}

/* ---- what a batch writes ---- */

static struct db_value wish_arg(struct ledger *l, const struct wait_wish *wish)
{
    size_t start = l->text.len;
    wish_list_write(wish, &l->text);
    return db_text(l->text.data + start, l->text.len - start);
}

#define BIND_WISH(field) ledger_arg(l, wish_arg(l, &row->field));

void put_waits_new(struct ledger *l, const struct ledger_batch *b)
{
    l->text.len = 0;
    buf_reserve(&l->text, b->waits_new.n * WISH_LIST_MAX);
    for (size_t i = 0; i < b->waits_new.n; i++) {
        const struct wait_row *row = &b->waits_new.v[i];
        BIND(WAIT_COLUMNS);
    }
}

void put_waits(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->waits.n; i++) {
        const struct wait_write *w = &b->waits.v[i];
        ledger_arg_int(l, w->entry);
        ledger_arg_int(l, w->from);
        ledger_arg_int(l, w->rank_before);
        ledger_arg_int(l, w->seq_before);
        ledger_arg_int(l, w->to);
        ledger_arg_int(l, w->rank);
        ledger_arg_int(l, w->last_seq);
        ledger_arg_int(l, w->hold);
        ledger_arg_int(l, w->read_at);
        ledger_arg_int(l, w->reason);
        ledger_arg_int(l, w->ended_at);
    }
}

/* ---- reads outside of batches ---- */

/* Reads WAITS_LIVE.  Returns false if the row is damaged. */
static bool live_from_row(struct db_stmt *stmt, int64_t event, struct wait_row *row)
{
    *row = (struct wait_row){
        .id.key = db_column_int(stmt, 0),
        .event = event,
        .number = db_column_int(stmt, 1),
        .rank = db_column_int(stmt, 2),
        .status = (enum wait_status)db_column_int(stmt, 3),
        .created_at = db_column_int(stmt, 4),
        .read_at = db_column_int(stmt, 5),
        .until = db_column_int(stmt, 6),
        .last_seq = db_column_int(stmt, 7),
        .hold = db_column_int(stmt, 8),
        .client = (uint64_t)db_column_int(stmt, 9),
    };
    row->owner = db_column_data(stmt, 10, &row->owner_len);
    return wish_from_row(stmt, 11, &row->wish);
}

enum hf_status ledger_waits_live(struct ledger *l, int64_t event,
                                 void (*wait)(void *ctx, const struct wait_row *row), void *ctx,
                                 int64_t *ret_last, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value range[] = {db_int(HOLD_KEY(event, 0)), db_int(HOLD_KEY(event + 1, 0))};
    const struct db_value args[] = {db_int(event)};
    int64_t last = 0;
    size_t n;
    bool is_row;
    enum hf_status status = ledger_read_ints(l, ST_WAIT_NEWEST, range, 1, &last, &n, err);
    if (status == HF_OK && last)
        status = ledger_query(l, ST_WAITS_LIVE, args, &stmt, err);
    while (last && status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK &&
           is_row) {
        struct wait_row row;
        if (live_from_row(stmt, event, &row)) /* `verify` tells of others */
            wait(ctx, &row);
    }
    if (status == HF_OK)
        *ret_last = last;
    return status;
}

enum hf_status ledger_wait_read(struct ledger *l, int64_t entry, struct wait_row *row,
                                int64_t *ret_ahead, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(0), db_int(entry)};
    bool is_row;
    size_t n;
    enum hf_status status;
    *row = (struct wait_row){0};
    *ret_ahead = 0;
    if ((status = ledger_query(l, ST_WAIT_READ, args, &stmt, err)) != HF_OK ||
        (status = ledger_next(stmt, &is_row, err)) != HF_OK || !is_row)
        return status;
    status = wait_from_row(stmt, row, err);
    stmt->driver->finish(stmt);
    if (status != HF_OK || row->status != WAIT_WAITING)
        return status;
    const struct db_value rank[] = {db_int(row->event), db_int(row->rank)};
    return ledger_read_ints(l, ST_WAIT_AHEAD, rank, 1, ret_ahead, &n, err);
}

enum hf_status ledger_waits_list(struct ledger *l, const struct waits_query *query,
                                 struct wait_row *ret, size_t *ret_n, struct hf_err *err)
{
    int64_t last = query->event ? HOLD_KEY(query->event + 1, 0) : INT64_MAX;
    const struct db_value args[] = {
        db_text(query->owner, query->owner_len), /* of WAITS_FIND alone */
        db_int(HOLD_KEY(query->event, 0)),
        db_int(query->before ? query->before : last),
        db_int(query->status),
        db_int((int64_t)query->limit),
    };
    struct db_stmt *stmt;
    bool is_row;
    *ret_n = 0;
    enum hf_status status = query->owner ? ledger_query(l, ST_WAITS_FIND, args, &stmt, err)
                                         : ledger_query(l, ST_WAITS_LIST, args + 1, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        hf_check(*ret_n < query->limit);
        if ((status = wait_from_row(stmt, &ret[*ret_n], err)) != HF_OK) {
            stmt->driver->finish(stmt);
            return status;
        }
        ++*ret_n;
    }
    return status;
}

enum hf_status ledger_waited_for(struct ledger *l, int64_t after, size_t limit, int64_t *ret_events,
                                 size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(after), db_int((int64_t)limit)};
    return ledger_read_ints(l, ST_WAITED_FOR, args, limit, ret_events, ret_n, err);
}
