/* Prepares the statements of statements.h on first use, runs them and reads columns.  Called by the
 * other files of src/ledger, on the thread of their connection. */
#include <string.h>

#include "ledger/ledger_internal.h"

static const char *const statement_sql[ST_COUNT] = {
#define STATEMENT_SQL(name, sql) [ST_##name] = sql,
    LEDGER_STATEMENTS(STATEMENT_SQL)
#undef STATEMENT_SQL
};

enum hf_status ledger_stmt(struct ledger *l, enum statement which, struct db_stmt **ret_stmt,
                           struct hf_err *err)
{
    if (!l->stmts[which]) {
        enum hf_status status =
            l->db->driver->prepare(l->db, statement_sql[which], &l->stmts[which], err);
        if (status != HF_OK)
            return status;
    }
    *ret_stmt = l->stmts[which];
    return HF_OK;
}

enum hf_status ledger_exec(struct ledger *l, enum statement which, const struct db_value *args,
                           int64_t *ret_changes, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    return status == HF_OK ? db_exec(stmt, args, ret_changes, err) : status;
}

enum hf_status ledger_exec_args(struct ledger *l, enum statement which, size_t n,
                                int64_t *ret_changes, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    if (status == HF_OK)
        status = stmt->driver->exec_many(stmt, l->args.v, n, ret_changes, err);
    vec_clear(&l->args);
    return status;
}

enum hf_status ledger_query(struct ledger *l, enum statement which, const struct db_value *args,
                            struct db_stmt **ret_stmt, struct hf_err *err)
{
    enum hf_status status = ledger_stmt(l, which, ret_stmt, err);
    return status == HF_OK ? db_query(*ret_stmt, args, err) : status;
}

enum hf_status ledger_next(struct db_stmt *stmt, bool *ret_row, struct hf_err *err)
{
    enum db_step step = db_step(stmt, err);
    if (step == DB_FAILED)
        return HF_STORE_UNAVAILABLE;
    *ret_row = step == DB_ROW;
    return HF_OK;
}

enum hf_status ledger_read_int(struct ledger *l, enum statement which, int64_t *ret,
                               struct hf_err *err)
{
    size_t n;
    int64_t value;
    enum hf_status status = ledger_read_ints(l, which, NULL, 1, &value, &n, err);
    if (status != HF_OK)
        return status;
    if (n == 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "a query has no answer");
    *ret = value;
    return HF_OK;
}

enum hf_status ledger_read_ints(struct ledger *l, enum statement which, const struct db_value *args,
                                size_t limit, int64_t *ret, size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    size_t n = 0;
    bool row = true;
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    if (status != HF_OK)
        return status;
    while (n < limit && (status = ledger_next(stmt, &row, err)) == HF_OK && row)
        ret[n++] = db_column_int(stmt, 0);
    if (status != HF_OK)
        return status;
    stmt->driver->finish(stmt);
    *ret_n = n;
    return HF_OK;
}

/* ---- columns ---- */

void column_text(struct db_stmt *stmt, int column, char *out, size_t size)
{
    size_t len;
    const char *data = db_column_data(stmt, column, &len);
    if (!data)
        len = 0;
    len = len < size ? len : size - 1;
    if (data)
        memcpy(out, data, len);
    out[len] = '\0';
}

void column_bytes(struct db_stmt *stmt, int column, uint8_t *out, size_t size)
{
    size_t len;
    const void *data = db_column_data(stmt, column, &len);
    memset(out, 0, size);
    if (data)
        memcpy(out, data, len < size ? len : size);
}

void column_secret(struct db_stmt *stmt, int column, uint8_t out[ID_SECRET_SIZE])
{
    size_t len;
    const void *data = db_column_data(stmt, column, &len);
    hf_check(data && len == ID_SECRET_SIZE);
    memcpy(out, data, len);
}

size_t column_len(struct db_stmt *stmt, int column)
{
    size_t len;
    (void)db_column_data(stmt, column, &len);
    return len;
}

const char *column_keep(struct db_stmt *stmt, int column, char **next, size_t *ret_len)
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

char *column_strdup(struct db_stmt *stmt, int column)
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    return text ? hf_strndup(text, len) : NULL;
}
