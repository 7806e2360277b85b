/* Reading holds, bookings and idempotency keys.  Any connection. */
#include <stdlib.h>
#include <string.h>

#include "ledger/statements.h"

static void copy_secret(struct db_stmt *stmt, int column, uint8_t out[ID_SECRET_SIZE])
{
    size_t len;
    const void *data = db_column_data(stmt, column, &len);
    hf_check(data && len == ID_SECRET_SIZE);
    memcpy(out, data, len);
}

/* Copy a text column behind *next, NUL-terminated; NULL stays NULL. */
static const char *keep_text(struct db_stmt *stmt, int column, char **next, size_t *ret_len)
{
    const char *data = db_column_data(stmt, column, ret_len);
    if (!data)
        return NULL;
    char *copy = *next;
    memcpy(copy, data, *ret_len);
    copy[*ret_len] = '\0';
    *next += *ret_len + 1;
    return copy;
}

static size_t text_len(struct db_stmt *stmt, int column)
{
    size_t len;
    (void)db_column_data(stmt, column, &len);
    return len;
}

static enum hf_status damaged(struct hf_err *err, const char *table, int64_t key)
{
    return hf_err_set(err, HF_INTERNAL, "row %lld of %s is damaged", (long long)key, table);
}

/* The memory of a row: seats, areas, then texts of `text_len` bytes with their NULs. */
struct places {
    uint32_t *seats;
    struct area_claim *areas;
    uint32_t n_seats, n_areas;
    char *texts;
};

/* Reads the columns of seats and areas; the block to free is places.seats.  False: damaged. */
static bool places_from_row(struct db_stmt *stmt, int seats_column, int areas_column,
                            size_t texts_len, struct places *ret)
{
    size_t seats_len, areas_len;
    const char *seats = db_column_data(stmt, seats_column, &seats_len);
    const char *areas = db_column_data(stmt, areas_column, &areas_len);
    size_t seats_room = (seats_len + 1) / 2, areas_room = areas ? (areas_len + 1) / 2 : 0;
    uint32_t n_numbers = 0;
    ret->seats = hf_alloc((seats_room + areas_room) * sizeof(uint32_t) + texts_len);
    uint32_t *pairs = ret->seats + seats_room;
    ret->texts = (char *)(pairs + areas_room);
    bool ok = seats && seats_parse(seats, seats_len, ret->seats, &ret->n_seats) &&
              (!areas || seats_parse(areas, areas_len, pairs, &n_numbers)) && n_numbers % 2 == 0;
    ret->areas = (struct area_claim *)(void *)pairs;
    ret->n_areas = n_numbers / 2;
    if (!ok)
        free(ret->seats);
    return ok;
}

enum hf_status hold_from_row(struct db_stmt *stmt, struct hold_row *row, struct hf_err *err)
{
    struct places places;
    int64_t key = db_column_int(stmt, 0);
    if (!places_from_row(stmt, 8, 9, text_len(stmt, 6) + text_len(stmt, 7) + 2, &places))
        return damaged(err, "holds", key);
    char *next = places.texts;
    *row = (struct hold_row){
        .id.key = key,
        .event = db_column_int(stmt, 2),
        .status = (enum hold_status)db_column_int(stmt, 3),
        .fence = db_column_int(stmt, 4),
        .amount = db_column_int(stmt, 5),
        .seats = places.seats,
        .n_seats = places.n_seats,
        .areas = places.areas,
        .n_areas = places.n_areas,
        .created_at = db_column_int(stmt, 10),
        .expires_at = db_column_int(stmt, 11),
        .max_expires_at = db_column_int(stmt, 12),
        .client = (uint64_t)db_column_int(stmt, 13),
        .owned = places.seats,
    };
    copy_secret(stmt, 1, row->id.secret);
    row->owner = keep_text(stmt, 6, &next, &row->owner_len);
    row->metadata = keep_text(stmt, 7, &next, &row->metadata_len);
    return HF_OK;
}

enum hf_status ledger_holds_read(struct ledger *l, const int64_t *keys, size_t n,
                                 struct hold_row *rows, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, ST_HOLD_READ, &stmt, err);
    enum db_step step = DB_DONE;
    vec_clear(&l->args);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct hold_row){0};
        ledger_arg_int(l, (int64_t)i);
        ledger_arg_int(l, keys[i]);
    }
    if (status == HF_OK)
        status = stmt->driver->query_many(stmt, l->args.v, n, err);
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        status = hold_from_row(stmt, &rows[db_column_int(stmt, 14)], err);
    vec_clear(&l->args);
    if (status != HF_OK && step == DB_ROW)
        stmt->driver->finish(stmt);
    return status == HF_OK && step == DB_FAILED ? HF_LEDGER_UNAVAILABLE : status;
}

static enum hf_status each_hold(struct ledger *l, enum statement which, int64_t arg,
                                void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(arg)};
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW) {
        struct hold_row row = {0};
        status = hold_from_row(stmt, &row, err);
        if (status == HF_OK)
            hold(ctx, &row);
        hold_row_close(&row);
    }
    if (status != HF_OK && step == DB_ROW)
        stmt->driver->finish(stmt);
    return status == HF_OK && step == DB_FAILED ? HF_LEDGER_UNAVAILABLE : status;
}

enum hf_status ledger_holds_active(struct ledger *l, int64_t event,
                                   void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                   struct hf_err *err)
{
    return each_hold(l, ST_HOLDS_ACTIVE, event, hold, ctx, err);
}

enum hf_status ledger_holds_live(struct ledger *l, int64_t now,
                                 void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                 struct hf_err *err)
{
    return each_hold(l, ST_HOLDS_LIVE, now, hold, ctx, err);
}

enum hf_status ledger_read_keys(struct ledger *l, enum statement which, const struct db_value *args,
                                size_t limit, int64_t *ret_keys, size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    size_t n = 0;
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && n < limit && (step = db_step(stmt, err)) == DB_ROW)
        ret_keys[n++] = db_column_int(stmt, 0);
    if (status != HF_OK || step == DB_FAILED)
        return status != HF_OK ? status : HF_LEDGER_UNAVAILABLE;
    stmt->driver->finish(stmt);
    *ret_n = n;
    return HF_OK;
}

enum hf_status ledger_holds_due(struct ledger *l, int64_t now, size_t limit, int64_t *ret_keys,
                                size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(now), db_int((int64_t)limit)};
    return ledger_read_keys(l, ST_HOLDS_DUE, args, limit, ret_keys, ret_n, err);
}

enum hf_status ledger_holds_list(struct ledger *l, const struct holds_query *query,
                                 int64_t *ret_keys, size_t *ret_n, struct hf_err *err)
{
    int64_t first = HOLD_KEY(query->event, 0);
    const struct db_value args[] = {
        db_int(first),
        db_int(query->before ? query->before : HOLD_KEY(query->event + 1, 0)),
        db_int(query->status),
        db_int(query->now),
        db_int((int64_t)query->limit),
    };
    return ledger_read_keys(l, ST_HOLDS_LIST, args, query->limit, ret_keys, ret_n, err);
}

enum hf_status ledger_events_list(struct ledger *l, int64_t before, size_t limit, int64_t *ret_keys,
                                  size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(before ? before : INT64_MAX), db_int((int64_t)limit)};
    return ledger_read_keys(l, ST_EVENTS_LIST, args, limit, ret_keys, ret_n, err);
}

enum hf_status booking_from_row(struct db_stmt *stmt, struct booking_row *row, struct hf_err *err)
{
    struct places places;
    int64_t key = db_column_int(stmt, 0);
    if (!places_from_row(stmt, 9, 10, text_len(stmt, 6) + 1, &places))
        return damaged(err, "bookings", key);
    char *next = places.texts;
    *row = (struct booking_row){
        .id.key = key,
        .event = db_column_int(stmt, 2),
        .status = (enum booking_status)db_column_int(stmt, 3),
        .fence = db_column_int(stmt, 4),
        .amount = db_column_int(stmt, 5),
        .created_at = db_column_int(stmt, 7),
        .seats = places.seats,
        .n_seats = places.n_seats,
        .areas = places.areas,
        .n_areas = places.n_areas,
        .owned = places.seats,
    };
    copy_secret(stmt, 1, row->id.secret);
    copy_secret(stmt, 8, row->hold_secret);
    row->reference = keep_text(stmt, 6, &next, &row->reference_len);
    return HF_OK;
}

enum hf_status ledger_booking_read(struct ledger *l, int64_t key, struct booking_row *row,
                                   struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(0), db_int(key)};
    *row = (struct booking_row){0};
    enum hf_status status = ledger_query(l, ST_BOOKING_READ, args, &stmt, err);
    enum db_step step = status == HF_OK ? db_step(stmt, err) : DB_FAILED;
    if (step != DB_ROW)
        return step == DB_DONE ? HF_OK : HF_LEDGER_UNAVAILABLE;
    status = booking_from_row(stmt, row, err);
    stmt->driver->finish(stmt);
    return status;
}

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
    enum hf_status status = ledger_query(l, ST_KEYS_EACH, args, &stmt, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW) {
        size_t len;
        const uint8_t *hash = db_column_data(stmt, 0, &len);
        hf_check(len == KEY_HASH_SIZE);
        key(ctx, hash);
    }
    return status == HF_OK && step == DB_FAILED ? HF_LEDGER_UNAVAILABLE : status;
}

enum hf_status ledger_keys_prune(struct ledger *l, int64_t now, size_t limit, int64_t *ret_pruned,
                                 struct hf_err *err)
{
    const struct db_value args[] = {db_int(now - KEY_KEPT_MS), db_int((int64_t)limit)};
    return ledger_exec(l, ST_KEYS_PRUNE, args, ret_pruned, err);
}
