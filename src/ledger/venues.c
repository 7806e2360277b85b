/* Events whose seats have ids, categories and positions of their own: the categories with their
 * prices, and the packed venue in parts. */
#include <string.h>

#include "ledger/ledger_internal.h"

#define PART_SIZE ((size_t)1 << 20)

static void put_categories(struct ledger *l, const struct event_def *def)
{
    for (size_t i = 0; i < def->categories.n; i++) {
        const char *name = def->categories.v[i].name;
        ledger_arg_int(l, def->id.key);
        ledger_arg_int(l, (int64_t)i);
        ledger_arg(l, db_text(name, strlen(name)));
        ledger_arg_int(l, def->terms.prices.v[i]);
    }
}

/* A part per statement, so that no more than one is copied at a time. */
static enum hf_status insert_parts(struct ledger *l, int64_t event, const struct buf *packed,
                                   struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (size_t at = 0, part = 0; status == HF_OK && at < packed->len; at += PART_SIZE, part++) {
        size_t len = packed->len - at < PART_SIZE ? packed->len - at : PART_SIZE;
        vec_clear(&l->args);
        ledger_arg_int(l, event);
        ledger_arg_int(l, (int64_t)part);
        ledger_arg(l, db_bytes(packed->data + at, len));
        status = ledger_exec_args(l, ST_VENUE_INSERT, 1, NULL, err);
    }
    return status;
}

enum hf_status ledger_venue_insert(struct ledger *l, const struct event_def *def,
                                   struct hf_err *err)
{
    struct buf packed = {0};
    vec_clear(&l->args);
    put_categories(l, def);
    enum hf_status status = ledger_exec_args(l, ST_CATEGORY_INSERT, def->categories.n, NULL, err);
    if (status != HF_OK || def->packed.len)
        return status == HF_OK ? insert_parts(l, def->id.key, &def->packed, err) : status;
    venue_pack(def, &packed);
    status = insert_parts(l, def->id.key, &packed, err);
    buf_close(&packed);
    return status;
}

enum hf_status ledger_categories_read(struct ledger *l, struct event_def *def, int64_t event,
                                      struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    bool is_row;
    size_t len;
    enum hf_status status = ledger_query(l, ST_CATEGORIES_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        const char *name = db_column_data(stmt, 0, &len);
        vec_push(&def->categories)->name = hf_strndup(name, len);
        *vec_push(&def->terms.prices) = db_column_int(stmt, 1);
    }
    return status;
}

enum hf_status ledger_venue_read(struct ledger *l, struct event_def *def, int64_t event,
                                 struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(event)};
    struct buf packed = {0};
    bool is_row;
    size_t len;
    enum hf_status status = ledger_query(l, ST_VENUE_READ, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while ((status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        const void *data = db_column_data(stmt, 0, &len);
        buf_put(&packed, data, len);
    }
    bool has_any = packed.len || def->categories.n;
    if (status == HF_OK && has_any &&
        (!def->categories.n || !venue_unpack(def, packed.data, packed.len)))
        status = hf_err_set(err, HF_INTERNAL, "event %lld has a damaged venue", (long long)event);
    buf_close(&packed);
    return status;
}
