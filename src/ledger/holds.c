/* Reads holds and bookings, by key and in lists, on any connection. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "ledger/ledger_internal.h"
#include "ledger/number_list.h"

/* The shortest text of an id in a list: a digit of its key, a colon and the digits of its secret.
 */
#define ID_DIGITS_MIN (2 + 2 * ID_SECRET_SIZE)

/* ---- columns ---- */

static enum hf_status damaged(struct hf_err *err, const char *table, int64_t key)
{
    return hf_err_set(err, HF_INTERNAL, "row %lld of %s is damaged", (long long)key, table);
}

/* Where the places of a row stand, and what else the block of memory is for. */
struct places_columns {
    int seats, areas;
    int prices;       /* -1: there are none */
    size_t n_ids;     /* room for so many ids */
    size_t texts_len; /* room for so many bytes of text */
};

/* One block of memory for a row's prices, then ids, its seats, its areas and its texts. */
struct places {
    struct price_run *prices; /* the block */
    struct id *ids;
    uint32_t *seats;
    struct area_claim *areas;
    uint32_t n_seats, n_areas, n_prices;
    char *texts;
};

/* Reads the columns of seats, areas and prices into a new block.  Returns false, and keeps no
 * block, if a column is damaged. */
static bool places_from_row(struct db_stmt *stmt, const struct places_columns *columns,
                            struct places *ret)
{
    size_t seats_len, areas_len, prices_len = 0;
    const char *seats = db_column_data(stmt, columns->seats, &seats_len);
    const char *areas = db_column_data(stmt, columns->areas, &areas_len);
    const char *prices =
        columns->prices < 0 ? NULL : db_column_data(stmt, columns->prices, &prices_len);
    size_t seats_room = (seats_len + 1) / 2, areas_room = areas ? (areas_len + 1) / 2 : 0;
    size_t prices_room = prices ? (prices_len + 1) / 4 : 1;
    uint32_t n_numbers = 0;
    *ret = (struct places){0};
    ret->prices =
        hf_alloc(prices_room * sizeof(struct price_run) + columns->n_ids * sizeof(struct id) +
                 (seats_room + areas_room) * sizeof(uint32_t) + columns->texts_len + 1);
    ret->ids = (struct id *)(void *)(ret->prices + prices_room);
    ret->seats = (uint32_t *)(void *)(ret->ids + columns->n_ids);
    uint32_t *pairs = ret->seats + seats_room;
    ret->texts = (char *)(pairs + areas_room);
    bool ok = seats && number_list_parse(seats, seats_len, ret->seats, &ret->n_seats) &&
              (!areas || number_list_parse(areas, areas_len, pairs, &n_numbers)) &&
              n_numbers % 2 == 0 &&
              (!prices || price_list_parse(prices, prices_len, ret->prices, &ret->n_prices));
    ret->areas = (struct area_claim *)(void *)pairs;
    ret->n_areas = n_numbers / 2;
    if (!ok)
        free(ret->prices);
    return ok;
}

/* A hold without a list of prices, which is in that column, has places of the first type that all
 * cost the same. */
static void share_amount(struct db_stmt *stmt, int column, int64_t amount, struct places *places)
{
    size_t len;
    uint32_t n = places_count(places->n_seats, places->areas, places->n_areas);
    if (db_column_data(stmt, column, &len) || !n)
        return;
    places->prices[0] = (struct price_run){.price = amount / n, .n = n};
    places->n_prices = 1;
}

/* How READ fills in lists, which are in `places`. */
#define READ_LIST(field) row->field = places.field, row->n_##field = places.n_##field;
#define READ_SEATS(at, field) READ_LIST(field)
#define READ_AREAS(at, field) READ_LIST(field)
#define READ_PRICES(at, field) READ_LIST(field)

enum hf_status hold_from_row(struct db_stmt *stmt, struct hold_row *row, struct hf_err *err)
{
    struct places places;
    const struct places_columns columns = {.seats = AT_h_seats,
                                           .areas = AT_h_areas,
                                           .prices = AT_h_prices,
                                           .texts_len = TEXTS_LEN(HOLD_COLUMNS)};
    if (!places_from_row(stmt, &columns, &places))
        return damaged(err, "holds", db_column_int(stmt, AT_h_hold));
    char *next = places.texts;
    share_amount(stmt, AT_h_prices, db_column_int(stmt, AT_h_amount), &places);
    *row = (struct hold_row){.owned = places.prices};
    READ(HOLD_COLUMNS);
    return HF_OK;
}

enum hf_status hold_read_row(struct db_stmt *stmt, struct hold_row *row, struct hf_err *err)
{
    enum hf_status status = hold_from_row(stmt, row, err);
    if (status != HF_OK)
        return status;
    row->booking = (enum booking_status)db_column_int(stmt, HOLD_COLUMNS_N + 1);
    if (row->booking)
        column_secret(stmt, HOLD_COLUMNS_N + 2, row->booking_secret);
    row->carrier.id.key = db_column_int(stmt, HOLD_COLUMNS_N + 3);
    if (!row->carrier.id.key)
        return HF_OK;
    column_secret(stmt, HOLD_COLUMNS_N + 4, row->carrier.id.secret);
    row->carrier.status = (enum hold_status)db_column_int(stmt, HOLD_COLUMNS_N + 5);
    row->carrier.expires_at = db_column_int(stmt, HOLD_COLUMNS_N + 6);
    return HF_OK;
}

/* ---- holds ---- */

static enum hf_status query_holds(struct ledger *l, const int64_t *keys, size_t n,
                                  struct db_stmt **ret_stmt, struct hf_err *err)
{
    enum hf_status status = ledger_stmt(l, ST_HOLD_READ, ret_stmt, err);
    if (status != HF_OK)
        return status;
    vec_clear(&l->args);
    for (size_t i = 0; i < n; i++) {
        ledger_arg_int(l, (int64_t)i);
        ledger_arg_int(l, keys[i]);
    }
    return (*ret_stmt)->driver->query_many(*ret_stmt, l->args.v, n, err);
}

enum hf_status ledger_holds_read(struct ledger *l, const int64_t *keys, size_t n,
                                 struct hold_row *rows, struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct hold_row){0};
    enum hf_status status = query_holds(l, keys, n, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        status = hold_read_row(stmt, &rows[db_column_int(stmt, HOLD_COLUMNS_N)], err);
        if (status != HF_OK) {
            stmt->driver->finish(stmt);
            return status;
        }
    }
    return status;
}

enum hf_status ledger_holds_visit(struct ledger *l, const int64_t *keys, size_t n,
                                  void (*hold)(void *ctx, size_t i, const struct hold_row *row),
                                  void *ctx, struct hf_err *err)
{
    struct hold_row rows[LEDGER_VISIT_CHUNK];
    for (size_t at = 0; at < n; at += LEDGER_VISIT_CHUNK) {
        size_t len = n - at < LEDGER_VISIT_CHUNK ? n - at : LEDGER_VISIT_CHUNK;
        enum hf_status status = ledger_holds_read(l, keys + at, len, rows, err);
        for (size_t i = 0; i < len; i++) {
            if (status == HF_OK)
                hold(ctx, at + i, &rows[i]);
            hold_row_close(&rows[i]);
        }
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* Memory for the places of one row after another. */
struct places_buffer {
    uint32_t *numbers;
    size_t cap;
};

/* Reads the columns of HOLDS_ACTIVE.  The places are in `buffer`, until the next row. */
static enum hf_status active_from_row(struct db_stmt *stmt, int64_t event,
                                      struct places_buffer *buffer, struct hold_row *row,
                                      struct hf_err *err)
{
    size_t seats_len, areas_len;
    uint32_t n_numbers = 0;
    const char *seats = db_column_data(stmt, 6, &seats_len);
    const char *areas = db_column_data(stmt, 7, &areas_len);
    size_t seats_room = (seats_len + 1) / 2, room = seats_room + (areas ? areas_len / 2 + 1 : 0);
    if (room > buffer->cap) {
        buffer->cap = room * 2;
        buffer->numbers = hf_realloc(buffer->numbers, buffer->cap * sizeof *buffer->numbers);
    }
    uint32_t *pairs = buffer->numbers + seats_room;
    *row = (struct hold_row){
        .id.key = db_column_int(stmt, 0),
        .event = event,
        .status = HOLD_ACTIVE,
        .fence = db_column_int(stmt, 1),
        .expires_at = db_column_int(stmt, 2),
        .max_expires_at = db_column_int(stmt, 3),
        .client = (uint64_t)db_column_int(stmt, 4),
        .last_seq = db_column_int(stmt, 5),
        .seats = buffer->numbers,
        .areas = (struct area_claim *)(void *)pairs,
        .channel = (uint32_t)db_column_int(stmt, 8),
    };
    row->owner = db_column_data(stmt, 9, &row->owner_len);
    if (!seats || !number_list_parse(seats, seats_len, buffer->numbers, &row->n_seats) ||
        (areas && !number_list_parse(areas, areas_len, pairs, &n_numbers)) || n_numbers % 2)
        return damaged(err, "holds", row->id.key);
    row->n_areas = n_numbers / 2;
    return HF_OK;
}

enum hf_status ledger_holds_active(struct ledger *l, int64_t event,
                                   void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                   struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    struct places_buffer buffer = {0};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_HOLDS_ACTIVE, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct hold_row row;
        status = active_from_row(stmt, event, &buffer, &row, err);
        if (status != HF_OK) {
            stmt->driver->finish(stmt);
            break;
        }
        hold(ctx, &row);
    }
    free(buffer.numbers);
    return status;
}

enum hf_status ledger_holds_live(struct ledger *l, int64_t now,
                                 void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                 struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(now)};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_HOLDS_LIVE, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct hold_row row = {0};
        status = hold_from_row(stmt, &row, err);
        if (status != HF_OK) {
            stmt->driver->finish(stmt);
            return status;
        }
        hold(ctx, &row);
        hold_row_close(&row);
    }
    return status;
}

enum hf_status ledger_holds_due(struct ledger *l, int64_t now, size_t limit, int64_t *ret_keys,
                                size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(now), db_int((int64_t)limit)};
    return ledger_read_ints(l, ST_HOLDS_DUE, args, limit, ret_keys, ret_n, err);
}

enum hf_status ledger_holds_count(struct ledger *l, int64_t event, int64_t *ret_n,
                                  struct hf_err *err)
{
    const struct db_value args[] = {db_int(event)};
    size_t n;
    return ledger_read_ints(l, ST_HOLDS_COUNT, args, 1, ret_n, &n, err);
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
        db_text(query->owner, query->owner_len),
        db_int((int64_t)query->limit),
    };
    return ledger_read_ints(l, ST_HOLDS_LIST, args, query->limit, ret_keys, ret_n, err);
}

/* ---- bookings ---- */

/* Reads "KEY:SECRET,KEY:SECRET", whose secrets are hexadecimal, into `ids`, which has room for 1 +
 * len / ID_DIGITS_MIN of them, and orders them by their keys.  Returns false if it is damaged. */
static bool ids_parse(const char *text, size_t len, struct id *ids, uint32_t *ret_n)
{
    uint32_t n = 0;
    for (const char *at = text, *end = text + len; at < end; n++) {
        struct id *id = &ids[n];
        if (*at < '1' || *at > '9')
            return false;
        *id = (struct id){0};
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if (__builtin_mul_overflow(id->key, 10, &id->key) ||
                __builtin_add_overflow(id->key, *at - '0', &id->key))
                return false;
        if (end - at <= 2 * ID_SECRET_SIZE || *at++ != ':')
            return false;
        for (size_t i = 0; i < ID_SECRET_SIZE; i++, at += 2) {
            int high = hex_digit(at[0]), low = hex_digit(at[1]);
            if (high < 0 || low < 0)
                return false;
            id->secret[i] = (uint8_t)(high << 4 | low);
        }
        if (at < end && *at++ != ',')
            return false;
    }
    if (n > 1)
        qsort(ids, n, sizeof *ids, id_order);
    *ret_n = n;
    return true;
}

enum hf_status booking_from_row(struct db_stmt *stmt, struct booking_row *row, struct hf_err *err)
{
    struct places places;
    int64_t key = db_column_int(stmt, AT_b_booking);
    size_t merged_len;
    uint32_t n_merged = 0;
    const char *merged = db_column_data(stmt, AT_b_merged, &merged_len);
    const struct places_columns columns = {.seats = AT_b_seats,
                                           .areas = AT_b_areas,
                                           .prices = AT_b_prices,
                                           .n_ids = merged_len / ID_DIGITS_MIN + 1,
                                           .texts_len = TEXTS_LEN(BOOKING_COLUMNS) +
                                                        column_len(stmt, AT_b_owner) + 1};
    if (!places_from_row(stmt, &columns, &places))
        return damaged(err, "bookings", key);
    if (merged && !ids_parse(merged, merged_len, places.ids, &n_merged)) {
        free(places.prices);
        return damaged(err, "holds", key);
    }
    char *next = places.texts;
    share_amount(stmt, AT_b_prices, db_column_int(stmt, AT_b_amount), &places);
    *row = (struct booking_row){.merged = places.ids, .n_merged = n_merged, .owned = places.prices};
    READ(BOOKING_COLUMNS);
    READ_SECRET(AT_b_hold_secret, hold_secret)
    READ_LIST(seats)
    READ_LIST(areas)
    READ_LIST(prices)
    READ_TEXT(AT_b_owner, owner)
    READ_INT(AT_b_expires_at, expires_at)
    return HF_OK;
}

/* Reads the booking of a hold that failed and was followed by another: the one of this secret, or,
 * if that is NULL, of this payment. */
static enum hf_status read_past(struct ledger *l, int64_t booking, const uint8_t *secret,
                                int64_t payment, struct booking_row *row, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(booking)};
    bool is_row;
    *row = (struct booking_row){0};
    enum hf_status status = ledger_query(l, ST_BOOKINGS_PAST_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct booking_row past = {0};
        if ((status = booking_from_row(stmt, &past, err)) != HF_OK) {
            stmt->driver->finish(stmt);
            return status;
        }
        bool is_wanted = secret ? id_secret_equal(past.id.secret, secret) : past.payment == payment;
        if (!row->id.key && is_wanted)
            *row = past;
        else
            booking_row_close(&past);
    }
    return status;
}

enum hf_status ledger_booking_find(struct ledger *l, const struct id *id, struct booking_row *row,
                                   struct hf_err *err)
{
    enum hf_status status = ledger_booking_read(l, id->key, row, err);
    if (status != HF_OK || !row->id.key || id_secret_equal(row->id.secret, id->secret))
        return status;
    booking_row_close(row);
    return read_past(l, id->key, id->secret, 0, row, err);
}

enum hf_status ledger_booking_of_payment(struct ledger *l, int64_t booking, int64_t payment,
                                         struct booking_row *row, struct hf_err *err)
{
    enum hf_status status = ledger_booking_read(l, booking, row, err);
    if (status != HF_OK || !payment || row->payment == payment)
        return status;
    booking_row_close(row);
    return read_past(l, booking, NULL, payment, row, err);
}

enum hf_status ledger_bookings_list(struct ledger *l, const struct bookings_query *query,
                                    struct booking_row *ret, size_t *ret_n, struct hf_err *err)
{
    int64_t last = query->event ? HOLD_KEY(query->event + 1, 0) : INT64_MAX;
    const struct db_value args[] = {
        db_text(query->reference, query->reference_len), /* of BOOKINGS_FIND alone */
        db_int(HOLD_KEY(query->event, 0)),
        db_int(query->before ? query->before : last),
        db_int(query->status),
        db_text(query->owner, query->owner_len),
        db_int((int64_t)query->limit),
    };
    struct db_stmt *stmt;
    bool is_row;
    *ret_n = 0;
    enum hf_status status = query->reference
                                ? ledger_query(l, ST_BOOKINGS_FIND, args, &stmt, err)
                                : ledger_query(l, ST_BOOKINGS_LIST, args + 1, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        hf_check(*ret_n < query->limit);
        if ((status = booking_from_row(stmt, &ret[*ret_n], err)) != HF_OK) {
            stmt->driver->finish(stmt);
            return status;
        }
        ++*ret_n;
    }
    return status;
}

enum hf_status ledger_owners_booked(struct ledger *l, int64_t event,
                                    void (*owner)(void *ctx, const char *owner, size_t len,
                                                  uint32_t places),
                                    void *ctx, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(HOLD_KEY(event, 0)), db_int(HOLD_KEY(event + 1, 0))};
    const struct places_columns columns = {.seats = 1, .areas = 2, .prices = -1};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_OWNERS_BOOKED, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct places places;
        size_t len;
        const char *name = db_column_data(stmt, 0, &len);
        if (!places_from_row(stmt, &columns, &places)) {
            stmt->driver->finish(stmt);
            return hf_err_set(err, HF_INTERNAL, "a hold of event %lld is damaged",
                              (long long)event);
        }
        owner(ctx, name, len, places_count(places.n_seats, places.areas, places.n_areas));
        free(places.prices);
    }
    return status;
}

enum hf_status ledger_booking_read(struct ledger *l, int64_t key, struct booking_row *row,
                                   struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(0), db_int(key)};
    bool is_row;
    enum hf_status status;
    *row = (struct booking_row){0};
    if ((status = ledger_query(l, ST_BOOKING_READ, args, &stmt, err)) != HF_OK ||
        (status = ledger_next(stmt, &is_row, err)) != HF_OK || !is_row)
        return status;
    status = booking_from_row(stmt, row, err);
    stmt->driver->finish(stmt);
    return status;
}
