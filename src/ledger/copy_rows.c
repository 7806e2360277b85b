/* See copy_rows.h.  The statements are made of the names in the schema's own catalogue, so a new
 * column or table is copied without a word here. */
#include "ledger/copy_rows.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/vec.h"

#define CATALOGUE                                                                                  \
    "SELECT m.name, p.name, p.type FROM sqlite_master m, pragma_table_info(m.name) p"              \
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"                                        \
    " AND m.name NOT IN ('schema_version', 'part_version') ORDER BY m.name, p.cid"

#define CHUNK_ROWS 500
#define CHUNK_BYTES ((size_t)1 << 20)
#define CHUNKS_BEFORE_COMMIT 100

struct copied_column {
    char name[64];
    enum db_type type;
};
struct copied_table {
    char name[64];
    VEC(struct copied_column) columns;
};
struct tables {
    VEC(struct copied_table) list;
};

/* ---- the catalogue ---- */

static bool take_name(struct db_stmt *stmt, int column, char out[64])
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    if (!text || len == 0 || len >= 64)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

static enum db_type type_of(const char *declared)
{
    if (strcasecmp(declared, "bigint") == 0 || strcasecmp(declared, "integer") == 0)
        return DB_INT;
    if (strcasecmp(declared, "text") == 0)
        return DB_TEXT;
    return strcasecmp(declared, "blob") == 0 ? DB_BYTES : DB_NULL;
}

static bool take_column(struct db_stmt *stmt, struct tables *t)
{
    char table[64], type[64];
    struct copied_column column;
    if (!take_name(stmt, 0, table) || !take_name(stmt, 1, column.name) || !take_name(stmt, 2, type))
        return false;
    column.type = type_of(type);
    if (t->list.n == 0 || strcmp(t->list.v[t->list.n - 1].name, table) != 0)
        memcpy(vec_push(&t->list)->name, table, sizeof table);
    *vec_push(&t->list.v[t->list.n - 1].columns) = column;
    return column.type != DB_NULL;
}

static void tables_close(struct tables *t)
{
    for (size_t i = 0; i < t->list.n; i++)
        vec_close(&t->list.v[i].columns);
    vec_close(&t->list);
}

static enum hf_status tables_read(struct db *file, struct tables *ret, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = file->driver->prepare(file, CATALOGUE, &stmt, err);
    if (status == HF_OK)
        status = db_query(stmt, NULL, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        if (!take_column(stmt, ret))
            status = hf_err_set(err, HF_INTERNAL, "a column of the schema is of an unknown type");
    if (status == HF_OK && step == DB_FAILED)
        status = HF_STORE_UNAVAILABLE;
    if (status != HF_OK)
        tables_close(ret);
    return status;
}

/* ---- rows ---- */

/* Rows that have been read and not yet written.  Texts are in `bytes`, where they may move, so a
 * value's data is its offset until the chunk is written. */
struct chunk {
    VEC(struct db_value) values;
    struct buf bytes;
    size_t n_rows;
};

static void take_row(struct db_stmt *stmt, const struct copied_table *t, struct chunk *c)
{
    for (size_t i = 0; i < t->columns.n; i++) {
        struct db_value *value = vec_push(&c->values);
        size_t len;
        const void *data = db_column_data(stmt, (int)i, &len);
        if (!data)
            continue; /* NULL */
        value->type = t->columns.v[i].type;
        if (value->type == DB_INT) {
            value->i = db_column_int(stmt, (int)i);
            continue;
        }
        value->i = (int64_t)c->bytes.len;
        value->len = len;
        buf_put(&c->bytes, data, len);
    }
    c->n_rows++;
}

static enum hf_status write_chunk(struct db_stmt *insert, struct chunk *c, struct hf_err *err)
{
    int64_t changes = 0;
    buf_char(&c->bytes, '\0'); /* there is memory, even if all of them are empty */
    for (size_t i = 0; i < c->values.n; i++) {
        struct db_value *value = &c->values.v[i];
        if (value->type == DB_TEXT || value->type == DB_BYTES)
            value->data = c->bytes.data + value->i;
    }
    enum hf_status status =
        insert->driver->exec_many(insert, c->values.v, c->n_rows, &changes, err);
    if (status == HF_OK && changes != (int64_t)c->n_rows)
        status = hf_err_set(err, HF_INTERNAL, "%lld of %zu rows were inserted", (long long)changes,
                            c->n_rows);
    vec_clear(&c->values);
    c->bytes.len = c->n_rows = 0;
    return status;
}

/* "SELECT a, b FROM t" and "INSERT INTO t {values(a bigint, b text)}". */
static void put_statements(const struct copied_table *t, struct buf *select, struct buf *insert)
{
    static const char *const types[] = {
        [DB_INT] = "bigint", [DB_TEXT] = "text", [DB_BYTES] = "bytes"};
    struct buf names = {0}, typed = {0};
    for (size_t i = 0; i < t->columns.n; i++) {
        const struct copied_column *c = &t->columns.v[i];
        buf_printf(&names, "%s%s", i ? ", " : "", c->name);
        buf_printf(&typed, "%s%s %s", i ? ", " : "", c->name, types[c->type]);
    }
    buf_printf(select, "SELECT %.*s FROM %s{slow}", (int)names.len, names.data, t->name);
    buf_printf(insert, "INSERT INTO %s {values(%.*s)}", t->name, (int)typed.len, typed.data);
    buf_char(select, '\0');
    buf_char(insert, '\0');
    buf_close(&names);
    buf_close(&typed);
}

struct copying {
    struct db *from, *to;
    enum hf_status (*each_chunk)(struct db *to, struct hf_err *err);
    struct chunk chunk;
    int n_chunks;
};

static enum hf_status flush(struct copying *c, struct db_stmt *insert, struct hf_err *err)
{
    if (c->chunk.n_rows == 0)
        return HF_OK;
    enum hf_status status = write_chunk(insert, &c->chunk, err);
    if (status == HF_OK && c->each_chunk && ++c->n_chunks % CHUNKS_BEFORE_COMMIT == 0)
        status = c->each_chunk(c->to, err);
    return status;
}

static enum hf_status pump(struct copying *c, const struct copied_table *t, struct db_stmt *select,
                           struct db_stmt *insert, struct hf_err *err)
{
    enum db_step step = DB_DONE;
    enum hf_status status = db_query(select, NULL, err);
    while (status == HF_OK && (step = db_step(select, err)) == DB_ROW) {
        take_row(select, t, &c->chunk);
        if (c->chunk.n_rows >= CHUNK_ROWS || c->chunk.bytes.len >= CHUNK_BYTES)
            status = flush(c, insert, err);
    }
    if (status == HF_OK && step == DB_FAILED)
        return HF_STORE_UNAVAILABLE;
    select->driver->finish(select);
    return status == HF_OK ? flush(c, insert, err) : status;
}

static enum hf_status copy_table(struct copying *c, const struct copied_table *t,
                                 struct hf_err *err)
{
    struct buf select_sql = {0}, insert_sql = {0};
    struct db_stmt *select, *insert;
    put_statements(t, &select_sql, &insert_sql);
    enum hf_status status = c->from->driver->prepare(c->from, select_sql.data, &select, err);
    if (status == HF_OK)
        status = c->to->driver->prepare(c->to, insert_sql.data, &insert, err);
    if (status == HF_OK)
        status = pump(c, t, select, insert, err);
    buf_close(&select_sql);
    buf_close(&insert_sql);
    return status;
}

enum hf_status copy_rows(struct db *from, struct db *to, struct db *file,
                         enum hf_status (*each_chunk)(struct db *to, struct hf_err *err),
                         struct hf_err *err)
{
    struct tables tables = {0};
    struct copying c = {.from = from, .to = to, .each_chunk = each_chunk};
    enum hf_status status = tables_read(file, &tables, err);
    for (size_t i = 0; i < tables.list.n && status == HF_OK; i++)
        status = copy_table(&c, &tables.list.v[i], err);
    tables_close(&tables);
    vec_close(&c.chunk.values);
    buf_close(&c.chunk.bytes);
    return status;
}

/* The migration made a row or two already. */
enum hf_status clear_rows(struct db *db, struct db *file, struct hf_err *err)
{
    struct tables tables = {0};
    struct buf sql = {0};
    enum hf_status status = tables_read(file, &tables, err);
    for (size_t i = 0; i < tables.list.n; i++)
        buf_printf(&sql, db->driver->many_writers ? "TRUNCATE %s;" : "DELETE FROM %s;",
                   tables.list.v[i].name);
    tables_close(&tables);
    buf_char(&sql, '\0');
    if (status == HF_OK)
        status = db->driver->script(db, sql.data, err);
    buf_close(&sql);
    return status;
}
