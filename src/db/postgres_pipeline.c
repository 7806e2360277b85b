/* See postgres_pipeline.h.  Belongs to the thread of its struct db. */
#include "db/postgres_pipeline.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Types that the catalogue of every server has by these numbers. */
#define OID_BOOL 16
#define OID_BYTEA 17
#define OID_INT8 20
#define OID_INT2 21
#define OID_INT4 23
#define OID_TEXT 25
#define OID_VOID 2278
#define OID_BYTEA_ARRAY 1001
#define OID_TEXT_ARRAY 1009
#define OID_INT8_ARRAY 1016

/* expect_many: COMMIT is in the same segment, so a failure of the server's own keeps it from
 * running.  The rows' count is the last parameter. */
#define EXPECT_FORM                                                                                \
    "WITH w AS (%s RETURNING 1) SELECT 1 / CAST(COUNT(*) = $%d::bigint AS int) FROM w"
#define PLAN_EVERY_US 2000000
#define EXPECT_STATE "22012" /* division by zero, which no statement of ours has otherwise */
/* An INSERT that says {or_surprise} needs no counting: it inserts all its rows, or fails on one
 * that is there already.  (ON CONFLICT would write each row twice over.) */
#define OR_SURPRISE "{or_surprise}"
#define UNIQUE_STATE "23505"

/* ---- parameters ---- */

static void put_u32(struct buf *out, uint32_t value)
{
    value = htobe32(value);
    buf_put(out, &value, sizeof value);
}

static void put_data(struct buf *out, const struct db_value *value)
{
    uint64_t i = htobe64((uint64_t)value->i);
    if (value->type == DB_INT)
        buf_put(out, &i, sizeof i);
    else if (value->len)
        buf_put(out, value->data, value->len);
}

static uint32_t data_len(const struct db_value *value)
{
    return value->type == DB_INT ? 8 : (uint32_t)value->len;
}

static Oid oid_of(enum db_type type, bool array)
{
    if (type == DB_INT)
        return array ? OID_INT8_ARRAY : OID_INT8;
    if (type == DB_TEXT)
        return array ? OID_TEXT_ARRAY : OID_TEXT;
    return array ? OID_BYTEA_ARRAY : OID_BYTEA;
}

/* One column of the rows, as the server's binary arrays are: dimensions, whether there are NULLs,
 * type, length and first index; then each element behind its length. */
static void put_array(struct buf *out, enum db_type type, const struct db_value *first,
                      size_t stride, size_t n)
{
    bool nulls = false;
    for (size_t i = 0; i < n; i++)
        nulls = nulls || first[i * stride].type == DB_NULL;
    put_u32(out, 1);
    put_u32(out, nulls);
    put_u32(out, oid_of(type, false));
    put_u32(out, (uint32_t)n);
    put_u32(out, 1);
    for (size_t i = 0; i < n; i++) {
        const struct db_value *value = &first[i * stride];
        hf_check(value->type == type || value->type == DB_NULL);
        put_u32(out, value->type == DB_NULL ? UINT32_MAX : data_len(value));
        if (value->type != DB_NULL)
            put_data(out, value);
    }
}

struct bound {
    int n;
    bool null[TEMPLATE_PARAMS_MAX + 1];
    size_t at[TEMPLATE_PARAMS_MAX + 1];
    int lens[TEMPLATE_PARAMS_MAX + 1];
};

static void bind(const struct pg_stmt *stmt, const struct db_value *args, size_t n_rows,
                 bool expects, struct buf *out, struct bound *b)
{
    const struct template_params *params = &stmt->params;
    const struct db_value count = db_int((int64_t)n_rows);
    *b = (struct bound){.n = params->n + expects};
    out->len = 0;
    for (int i = 0; i < b->n; i++) {
        const struct db_value *value = i < params->n ? &args[i] : &count;
        b->at[i] = out->len;
        if (params->rows && i < params->n) {
            put_array(out, params->types[i], value, (size_t)params->n, n_rows);
        } else {
            b->null[i] = value->type == DB_NULL;
            hf_check(b->null[i] || i == params->n || value->type == params->types[i]);
            put_data(out, value);
        }
        b->lens[i] = (int)(out->len - b->at[i]);
    }
    buf_char(out, '\0'); /* so that there is data to point to */
}

/* ---- the queue ---- */

static struct pg_entry *push(struct postgres *db, enum pg_kind kind, struct pg_stmt *stmt)
{
    struct pg_entry *e = vec_push(&db->entries);
    *e = (struct pg_entry){.kind = kind, .stmt = stmt, .transaction = db->transaction};
    db->link.unasked = true;
    return e;
}

void pg_sync(struct postgres *db)
{
    struct hf_err err = {0};
    if (!db->unsynced || !db->link.conn)
        return;
    db->unsynced = false;
    if (!PQpipelineSync(db->link.conn)) {
        (void)pg_link_error(&db->link, &err);
        pg_lost(db, &err);
        return;
    }
    push(db, PG_SYNC, NULL);
}

/* The first failure of the transaction counts; those of one that was rolled back do not. */
static void entry_fail(struct postgres *db, const struct pg_entry *e, const struct hf_err *why)
{
    if (e->transaction && e->transaction == db->transaction && db->err.code == HF_OK)
        db->err = *why;
    if (e->prepared)
        *e->prepared = 0;
    if (e->stmt && !e->discard && e->stmt->err.code == HF_OK)
        e->stmt->err = *why;
}

static void entry_end(struct postgres *db)
{
    const struct pg_entry *e = &db->entries.v[db->entry++];
    if ((e->kind == PG_RUN || e->kind == PG_EXPECT) && !e->discard)
        e->stmt->waiting--;
    if (e->kind == PG_SYNC)
        db->abort = (struct hf_err){0};
    if (db->entry == db->entries.n) {
        vec_clear(&db->entries);
        db->entry = 0;
    }
}

void pg_lost(struct postgres *db, const struct hf_err *why)
{
    pg_link_drop(&db->link);
    if (db->transaction && db->err.code == HF_OK)
        db->err = *why;
    while (db->entries.n) {
        entry_fail(db, &db->entries.v[db->entry], why);
        entry_end(db);
    }
    db->unsynced = false;
}

enum hf_status pg_connect(struct postgres *db, struct hf_err *err)
{
    struct hf_err why = {0};
    if (db->link.conn && !pg_link_alive(&db->link, &why))
        pg_lost(db, &why);
    return pg_link_connect(&db->link, err);
}

/* ---- answers ---- */

static bool is_readable(Oid type)
{
    switch (type) {
    case OID_BOOL:
    case OID_BYTEA:
    case OID_INT8:
    case OID_INT2:
    case OID_INT4:
    case OID_TEXT:
    case OID_VOID:
        return true;
    default:
        return false;
    }
}

/* A statement that answers in another type is our mistake. */
static bool check_types(const PGresult *result, struct hf_err *err)
{
    for (int i = 0; i < PQnfields(result); i++)
        if (!is_readable(PQftype(result, i))) {
            (void)hf_err_set(err, HF_INTERNAL, "column %s has a type that is not read here",
                             PQfname(result, i));
            return false;
        }
    return true;
}

static void take_failure(struct postgres *db, struct pg_entry *e, const PGresult *result)
{
    struct hf_err err = {0};
    bool fatal = pg_is_fatal(result) || PQstatus(db->link.conn) == CONNECTION_BAD;
    bool answered = PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL;
    if (e->kind == PG_EXPECT &&
        pg_has_state(result, e->stmt->or_surprise ? UNIQUE_STATE : EXPECT_STATE))
        (void)hf_err_set(&err, HF_LEDGER_SURPRISE, "%s", e->what);
    else
        (void)pg_error(result, &err);
    /* Of a COMMIT that was answered by the connection's end nobody knows, nor when the end came
     * for the segment as a whole. */
    bool commit = !e->stmt || &e->stmt->stmt == db->commit;
    if (db->err.code == HF_OK && e->transaction == db->transaction)
        db->is_known = answered && !(commit && fatal);
    db->abort = err;
    entry_fail(db, e, &err);
    if (fatal || pg_has_state(result, "25006") || pg_has_state(result, PG_STALE_PLAN) ||
        (e->stmt && &e->stmt->stmt == db->rollback))
        pg_lost(db, &err);
}

static void take_rows(struct pg_entry *e, PGresult *result)
{
    struct pg_stmt *stmt = e->stmt;
    struct hf_err err = {0};
    hf_check(stmt);
    if (e->discard || e->kind == PG_EXPECT || stmt->err.code != HF_OK || PQntuples(result) == 0) {
        PQclear(result);
    } else if (!check_types(result, &err)) {
        stmt->err = err;
        PQclear(result);
    } else {
        *vec_push(&stmt->results) = result;
    }
}

/* The first entry's next result. */
static void take(struct postgres *db, PGresult *result)
{
    struct pg_entry *e = &db->entries.v[db->entry];
    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        hf_check(e->kind == PG_SYNC);
        entry_end(db);
        break;
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
        if (PQresultStatus(result) == PGRES_TUPLES_OK && e->stmt && !e->discard)
            e->stmt->changes += strtoll(PQcmdTuples(result), NULL, 10);
        take_rows(e, result);
        return;
    case PGRES_COMMAND_OK:
        if (e->kind == PG_RUN && !e->discard) {
            e->stmt->changes += strtoll(PQcmdTuples(result), NULL, 10);
            e->stmt->committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
        }
        break;
    case PGRES_PIPELINE_ABORTED:
        entry_fail(db, e, &db->abort);
        break;
    default:
        take_failure(db, e, result);
        break;
    }
    PQclear(result);
}

static void receive(struct postgres *db)
{
    struct hf_err err = {0};
    pg_sync(db);
    if (!db->entries.n)
        return;
    struct pg_entry *e = &db->entries.v[db->entry];
    bool slow = e->stmt && e->stmt->params.slow;
    /* Before its first byte is looked at: a result of millions of rows is never whole in memory. */
    if (!e->started && e->kind == PG_RUN)
        (void)PQsetSingleRowMode(db->link.conn);
    e->started = true;
    if (pg_link_wait(&db->link, slow ? PG_SLOW_MS : db->link.answer_ms, &err) != HF_OK) {
        pg_lost(db, &err);
        return;
    }
    PGresult *result = PQgetResult(db->link.conn);
    ExecStatusType kind = PQresultStatus(result);
    if (result) {
        take(db, result);
    } else {
        (void)pg_link_error(&db->link, &err);
        pg_lost(db, &err);
    }
    /* libpq ends each answer with a NULL, but not if it is given something to send before that is
     * fetched. */
    if (db->link.conn && kind != PGRES_PIPELINE_SYNC && kind != PGRES_SINGLE_TUPLE) {
        hf_check(!PQgetResult(db->link.conn));
        entry_end(db);
    }
}

void pg_settle(struct postgres *db)
{
    pg_sync(db);
    while (db->entries.n)
        receive(db);
}

/* ---- statements ---- */

enum hf_status pg_prepare(struct db *base, const char *sql, struct db_stmt **ret_stmt,
                          struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    struct buf text = {0};
    struct template_params params;
    enum hf_status status = template_expand(sql, &pg_dialect, &text, &params, err);
    if (status == HF_OK) {
        struct pg_stmt *stmt = hf_alloc(sizeof *stmt);
        buf_char(&text, '\0');
        *stmt = (struct pg_stmt){.stmt.driver = base->driver,
                                 .db = db,
                                 .next = db->stmts,
                                 .id = ++db->n_stmts,
                                 .text = text.data,
                                 .or_surprise = strstr(sql, OR_SURPRISE) != NULL,
                                 .params = params};
        db->stmts = stmt;
        *ret_stmt = &stmt->stmt;
        return HF_OK;
    }
    buf_close(&text);
    return status;
}

static void results_clear(struct pg_stmt *stmt)
{
    for (size_t i = stmt->result; i < stmt->results.n; i++)
        PQclear(stmt->results.v[i]);
    vec_clear(&stmt->results);
    stmt->result = 0;
    stmt->row = -1;
}

void pg_stmt_free(struct pg_stmt *stmt)
{
    results_clear(stmt);
    vec_close(&stmt->results);
    free(stmt->text);
    free(stmt);
}

void pg_forget(struct pg_stmt *stmt)
{
    struct postgres *db = stmt->db;
    for (size_t i = db->entry; i < db->entries.n && stmt->waiting; i++) {
        struct pg_entry *e = &db->entries.v[i];
        if (e->stmt == stmt && !e->discard && (e->kind == PG_RUN || e->kind == PG_EXPECT)) {
            e->discard = true;
            stmt->waiting--;
        }
    }
    results_clear(stmt);
    stmt->changes = 0;
    stmt->committed = false;
    stmt->err = (struct hf_err){0};
}

/* COMMIT and ROLLBACK are called by their word, for whoever looks at the traffic. */
static void name_of(const struct pg_stmt *stmt, bool expects, char ret[16])
{
    if (stmt->name || (strlen(stmt->text) < 16 && !strchr(stmt->text, ' ')))
        (void)snprintf(ret, 16, "%s", stmt->name ? stmt->name : stmt->text);
    else
        (void)snprintf(ret, 16, "%c%u", expects ? 'e' : 'h', stmt->id);
}

static bool send_prepare(struct pg_stmt *stmt, bool expects)
{
    struct postgres *db = stmt->db;
    unsigned *prepared = expects ? &stmt->expect_prepared : &stmt->prepared;
    if (*prepared == db->link.generation)
        return true;
    const struct template_params *params = &stmt->params;
    Oid types[TEMPLATE_PARAMS_MAX + 1];
    char name[16];
    for (int i = 0; i < params->n; i++)
        types[i] = oid_of(params->types[i], params->rows);
    types[params->n] = OID_INT8;
    name_of(stmt, expects, name);
    struct buf text = {0};
    if (expects)
        buf_printf(&text, EXPECT_FORM, stmt->text, params->n + 1);
    else
        buf_str(&text, stmt->text);
    buf_char(&text, '\0');
    bool sent = PQsendPrepare(db->link.conn, name, text.data, params->n + expects, types);
    buf_close(&text);
    if (sent) {
        push(db, PG_PREPARE, stmt)->prepared = prepared;
        *prepared = db->link.generation;
    }
    return sent;
}

static bool send_run(struct pg_stmt *stmt, const char *what, const struct db_value *args,
                     size_t n_rows)
{
    struct postgres *db = stmt->db;
    const char *values[TEMPLATE_PARAMS_MAX + 1];
    int formats[TEMPLATE_PARAMS_MAX + 1];
    struct bound b;
    char name[16];
    bool expects = what && !stmt->or_surprise;
    bind(stmt, args, n_rows, expects, &db->scratch, &b);
    for (int i = 0; i < b.n; i++) {
        values[i] = b.null[i] ? NULL : db->scratch.data + b.at[i];
        formats[i] = 1;
    }
    name_of(stmt, expects, name);
    if (!PQsendQueryPrepared(db->link.conn, name, b.n, values, b.lens, formats, 1))
        return false;
    push(db, what ? PG_EXPECT : PG_RUN, stmt)->what = what;
    stmt->waiting++;
    return true;
}

/* More time for the rest of the transaction, or of the segment that is one. */
static bool send_patience(struct postgres *db)
{
    struct pg_stmt *patience = (struct pg_stmt *)(void *)db->patience;
    pg_forget(patience);
    return send_prepare(patience, false) && send_run(patience, NULL, NULL, 1);
}

static enum hf_status send(struct pg_stmt *stmt, const char *what, const struct db_value *args,
                           size_t n_rows, struct hf_err *err)
{
    struct postgres *db = stmt->db;
    bool sent =
        (!stmt->params.slow || send_patience(db)) && send_prepare(stmt, what && !stmt->or_surprise);
    size_t times = stmt->params.rows || what ? 1 : n_rows;
    for (size_t i = 0; i < times && sent; i++)
        sent = send_run(stmt, what, args + i * (size_t)stmt->params.n, n_rows);
    if (sent) {
        db->unsynced = true;
        return HF_OK;
    }
    struct hf_err why = {0};
    (void)pg_link_error(&db->link, &why);
    pg_lost(db, &why);
    return hf_err_set(err, why.code, "%s", why.msg);
}

/* A generic plan is kept until somebody counts the table's rows anew, which may be a minute after
 * it grew from none to a million: then it still reads the whole table. */
static bool is_time_to_plan(struct postgres *db)
{
    int64_t now = clock_monotonic_us(&clock_system);
    if (now < db->plans_at_us)
        return false;
    db->plans_at_us = now + PLAN_EVERY_US;
    return true;
}

/* BEGIN, and the locks of the names: what follows sees all that those who had them committed. */
static enum hf_status queue_begin(struct postgres *db, struct hf_err *err)
{
    const struct {
        struct db_stmt *stmt;
        const struct db_value *args;
        size_t n;
    } first[] = {
        {db->begin, NULL, !db->is_once},
        {db->plans, NULL, is_time_to_plan(db)},
        {db->is_once ? db->lock_once : db->lock, db->names.v, db->names.n},
    };
    enum hf_status status = HF_OK;
    db->begin_queued = true;
    for (size_t i = 0; i < sizeof first / sizeof *first && status == HF_OK; i++) {
        struct pg_stmt *stmt = (struct pg_stmt *)(void *)first[i].stmt;
        if (!stmt || !first[i].n)
            continue;
        pg_forget(stmt);
        status = send(stmt, NULL, first[i].args, first[i].n, err);
    }
    return status;
}

enum hf_status pg_queue(struct pg_stmt *stmt, const char *what, const struct db_value *args,
                        size_t n_rows, struct hf_err *err)
{
    struct postgres *db = stmt->db;
    enum hf_status status = HF_OK;
    if (db->transaction && db->err.code != HF_OK)
        return hf_err_set(err, db->err.code, "%s", db->err.msg);
    if (!db->transaction)
        status = pg_connect(db, err);
    else if (!db->begin_queued)
        status = queue_begin(db, err);
    if (status == HF_OK)
        status = send(stmt, what, args, n_rows, err);
    if (status == HF_OK && !db->transaction)
        pg_sync(db);
    return status;
}

/* Outside a transaction it is its own COMMIT, and may have happened. */
enum hf_status pg_exec_many(struct db_stmt *base, const struct db_value *args, size_t n_rows,
                            int64_t *ret_changes, struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    struct postgres *db = stmt->db;
    pg_forget(stmt);
    enum hf_status status = n_rows ? pg_queue(stmt, NULL, args, n_rows, err) : HF_OK;
    if (status != HF_OK)
        return status;
    while (stmt->waiting && db->entries.n)
        receive(db);
    results_clear(stmt);
    if (stmt->err.code != HF_OK) {
        bool unknown = !db->transaction && !db->link.conn;
        return hf_err_set(err, unknown ? HF_OUTCOME_UNKNOWN : stmt->err.code, "%s", stmt->err.msg);
    }
    if (ret_changes)
        *ret_changes = stmt->changes;
    return HF_OK;
}

enum hf_status pg_expect_many(struct db_stmt *base, const char *what, const struct db_value *args,
                              size_t n_rows, struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    pg_forget(stmt);
    hf_check(stmt->db->transaction && (stmt->params.rows || n_rows <= 1));
    return n_rows ? pg_queue(stmt, what, args, n_rows, err) : HF_OK;
}

enum hf_status pg_query_many(struct db_stmt *base, const struct db_value *args, size_t n_rows,
                             struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    pg_forget(stmt);
    return n_rows ? pg_queue(stmt, NULL, args, n_rows, err) : HF_OK;
}

/* True: stmt->row is one. */
static bool next_row(struct pg_stmt *stmt)
{
    while (stmt->result < stmt->results.n) {
        if (++stmt->row < PQntuples(stmt->results.v[stmt->result]))
            return true;
        PQclear(stmt->results.v[stmt->result++]);
        stmt->row = -1;
    }
    vec_clear(&stmt->results);
    stmt->result = 0;
    return false;
}

enum db_step pg_step(struct db_stmt *base, struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    for (;;) {
        if (next_row(stmt))
            return DB_ROW;
        if (stmt->err.code != HF_OK) {
            (void)hf_err_set(err, stmt->err.code, "%s", stmt->err.msg);
            pg_forget(stmt);
            return DB_FAILED;
        }
        if (!stmt->waiting)
            return DB_DONE;
        receive(stmt->db);
    }
}

int64_t pg_column_int(struct db_stmt *base, int column)
{
    const struct pg_stmt *stmt = (const struct pg_stmt *)(void *)base;
    const PGresult *result = stmt->results.v[stmt->result];
    const char *data = PQgetvalue(result, stmt->row, column);
    uint16_t small;
    uint32_t medium;
    uint64_t large;
    switch (PQgetlength(result, stmt->row, column)) {
    case 1:
        return *data;
    case sizeof small:
        memcpy(&small, data, sizeof small);
        return (int16_t)be16toh(small);
    case sizeof medium:
        memcpy(&medium, data, sizeof medium);
        return (int32_t)be32toh(medium);
    case sizeof large:
        memcpy(&large, data, sizeof large);
        return (int64_t)be64toh(large);
    default: /* NULL */
        return 0;
    }
}

const void *pg_column_data(struct db_stmt *base, int column, size_t *ret_len)
{
    const struct pg_stmt *stmt = (const struct pg_stmt *)(void *)base;
    const PGresult *result = stmt->results.v[stmt->result];
    *ret_len = (size_t)PQgetlength(result, stmt->row, column);
    return PQgetisnull(result, stmt->row, column) ? NULL : PQgetvalue(result, stmt->row, column);
}

void pg_finish(struct db_stmt *base)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    pg_forget(stmt);
}
