/* See postgres_stmt.h.  Belongs to the thread of its struct db. */
#include "db/postgres_stmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "db/postgres_values.h"

/* expect_many: the COMMIT is in the same segment, so an error keeps it from running.  A wrong count
 * has to be an error of the server, and so it divides by zero.  The expected count is the last
 * parameter.  What changes rows returns them; {or_conflict} stands at the end of a SELECT. */
#define EXPECT_FORM "WITH w AS (%s%s) SELECT 1 / CAST(COUNT(*) = $%d::bigint AS int) FROM w"
/* An INSERT that says {or_surprise} needs no counting: it inserts all its rows, or fails on one
 * that exists already.  (ON CONFLICT would write each row twice.) */
#define OR_SURPRISE "{or_surprise}"
#define OR_CONFLICT "{or_conflict}"
#define PLAN_EVERY_US 2000000

/* ---- preparing ---- */

/* A double is exact enough here; extract() computes in decimals, digit by digit. */
#define NOW "CAST(floor(date_part('epoch', clock_timestamp()) * 1000) AS bigint)"

static const struct template_fragment fragments[] = {
    {"key", "bigint PRIMARY KEY"},
    {"bytes", "bytea"},
    {"clustered", ""},
    /* The update of a column that is in no index stays on its page (HOT) while there is room, and
     * the next update there removes the dead row: half of each page is kept free for that.  The
     * rest is vacuumed, without pauses, when a fiftieth of a large table or some hundred rows of a
     * small one are dead: every batch leaves a dead row in a table like event_clock. */
    {"hot", "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,"
            " autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0)"},
    {"lock", " FOR UPDATE"}, /* locks rows of tables; unnest() has none */
    {"lock_idle", " FOR UPDATE SKIP LOCKED"},
    {"share", " FOR SHARE"},
    {"now", NOW},
    {"number", "nextval('" PG_NUMBERS "')"},
    {"joined", "string_agg"},
    {"hex", "encode(%, 'hex')"},
    {"or_surprise", ""},
    {"or_conflict", ""},
    {"may_be_lost", ", set_config('synchronous_commit', 'off', true)"},
    {NULL, NULL},
};
const struct dialect pg_dialect = {.fragments = fragments, .row_at_a_time = false};

enum hf_status pg_prepare(struct db *base, const char *sql, struct db_stmt **ret_stmt,
                          struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    struct buf text = {0};
    struct template_params params;
    enum hf_status status = template_expand(sql, &pg_dialect, &text, &params, err);
    if (status != HF_OK) {
        buf_close(&text);
        return status;
    }
    struct pg_stmt *stmt = hf_alloc(sizeof *stmt);
    buf_char(&text, '\0');
    *stmt = (struct pg_stmt){.stmt.driver = base->driver,
                             .db = db,
                             .next = db->stmts,
                             .id = ++db->n_stmts,
                             .text = text.data,
                             .or_surprise = strstr(sql, OR_SURPRISE) != NULL,
                             .or_conflict = strstr(sql, OR_CONFLICT) != NULL,
                             .params = params};
    db->stmts = stmt;
    *ret_stmt = &stmt->stmt;
    return HF_OK;
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

void pg_reset(struct pg_stmt *stmt)
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

/* ---- sending ---- */

/* COMMIT and ROLLBACK are named by their word, so that they can be recognised in the traffic. */
static void name_of(const struct pg_stmt *stmt, bool expects, char ret[16])
{
    if (stmt->name || (strlen(stmt->text) < 16 && !strchr(stmt->text, ' ')))
        (void)snprintf(ret, 16, "%s", stmt->name ? stmt->name : stmt->text);
    else
        (void)snprintf(ret, 16, "%c%u", expects ? 'e' : 'h', stmt->id);
}

/* Prepares the statement on this connection, unless it is prepared already.  Returns false if libpq
 * could not queue that. */
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
        types[i] = pg_type(params->types[i], params->rows);
    types[params->n] = pg_type(DB_INT, false);
    name_of(stmt, expects, name);
    struct buf text = {0};
    if (expects)
        buf_printf(&text, EXPECT_FORM, stmt->text, stmt->or_conflict ? "" : " RETURNING 1",
                   params->n + 1);
    else
        buf_str(&text, stmt->text);
    buf_char(&text, '\0');
    bool sent = PQsendPrepare(db->link.conn, name, text.data, params->n + expects, types);
    buf_close(&text);
    if (sent) {
        pg_push(db, PG_PREPARE, stmt)->prepared = prepared;
        *prepared = db->link.generation;
    }
    return sent;
}

/* Runs the statement once; `what` is that of PG_EXPECT, or NULL. */
static bool send_run(struct pg_stmt *stmt, const char *what, const struct db_value *args,
                     size_t n_rows)
{
    struct postgres *db = stmt->db;
    const char *values[TEMPLATE_PARAMS_MAX + 1];
    int formats[TEMPLATE_PARAMS_MAX + 1];
    struct pg_bound b;
    char name[16];
    bool expects = what && !stmt->or_surprise;
    pg_bind(&stmt->params, args, n_rows, expects, &db->scratch, &b);
    for (int i = 0; i < b.n; i++) {
        values[i] = b.null[i] ? NULL : db->scratch.data + b.at[i];
        formats[i] = 1;
    }
    name_of(stmt, expects, name);
    if (!PQsendQueryPrepared(db->link.conn, name, b.n, values, b.lens, formats, 1))
        return false;
    pg_push(db, what ? PG_EXPECT : PG_RUN, stmt)->what = what;
    stmt->waiting++;
    return true;
}

/* Asks for more time, for the rest of the transaction. */
static bool send_more_time(struct postgres *db)
{
    struct pg_stmt *more_time = (struct pg_stmt *)(void *)db->more_time;
    pg_reset(more_time);
    return send_prepare(more_time, false) && send_run(more_time, NULL, NULL, 1);
}

/* Queues the statement, without connecting or BEGIN. */
static enum hf_status send(struct pg_stmt *stmt, const char *what, const struct db_value *args,
                           size_t n_rows, struct hf_err *err)
{
    struct postgres *db = stmt->db;
    bool sent = (!stmt->params.slow || send_more_time(db)) &&
                send_prepare(stmt, what && !stmt->or_surprise);
    size_t times = stmt->params.rows || what ? 1 : n_rows;
    for (size_t i = 0; i < times && sent; i++)
        sent = send_run(stmt, what, args + i * (size_t)stmt->params.n, n_rows);
    if (sent) {
        db->unsynced = true;
        return HF_OK;
    }
    struct hf_err why = {0};
    (void)pg_link_error(&db->link, &why);
    pg_disconnect(db, &why);
    return hf_err_set(err, why.code, "%s", why.msg);
}

/* The server keeps a generic plan until it counts the table's rows again, which may be a minute
 * after the table grew from none to a million rows; until then the plan reads the whole table.  So
 * plans are discarded every PLAN_EVERY_US. */
static bool is_time_to_plan(struct postgres *db)
{
    int64_t now = wait_now_us();
    if (now < db->plans_at_us)
        return false;
    db->plans_at_us = now + PLAN_EVERY_US;
    return true;
}

/* Queues BEGIN and the locks of the names.  What follows sees all that earlier owners of the locks
 * committed. */
static enum hf_status queue_begin(struct postgres *db, struct hf_err *err)
{
    const struct {
        struct db_stmt *stmt;
        const struct db_value *args;
        size_t n;
    } first[] = {
        {db->begin, NULL, !db->is_one_segment},
        {db->plans, NULL, is_time_to_plan(db)},
        {db->is_one_segment ? db->lock_one_segment : db->lock, db->names.v, db->names.n},
    };
    enum hf_status status = HF_OK;
    db->begin_queued = true;
    for (size_t i = 0; i < sizeof first / sizeof *first && status == HF_OK; i++) {
        struct pg_stmt *stmt = (struct pg_stmt *)(void *)first[i].stmt;
        if (!stmt || !first[i].n)
            continue;
        pg_reset(stmt);
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

/* ---- the calls of db.h ---- */

/* Outside a transaction the statement is a transaction of its own: if the connection is lost, it
 * may have been committed. */
enum hf_status pg_exec_many(struct db_stmt *base, const struct db_value *args, size_t n_rows,
                            int64_t *ret_changes, struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    struct postgres *db = stmt->db;
    pg_reset(stmt);
    enum hf_status status = n_rows ? pg_queue(stmt, NULL, args, n_rows, err) : HF_OK;
    if (status != HF_OK)
        return status;
    while (stmt->waiting && db->entries.n)
        pg_receive(db);
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
    pg_reset(stmt);
    hf_check(stmt->db->transaction && (stmt->params.rows || n_rows <= 1));
    return n_rows ? pg_queue(stmt, what, args, n_rows, err) : HF_OK;
}

enum hf_status pg_query_many(struct db_stmt *base, const struct db_value *args, size_t n_rows,
                             struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    pg_reset(stmt);
    return n_rows ? pg_queue(stmt, NULL, args, n_rows, err) : HF_OK;
}

/* Moves to the next row that has been received.  Returns false if there is none. */
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
            pg_reset(stmt);
            return DB_FAILED;
        }
        if (!stmt->waiting)
            return DB_DONE;
        pg_receive(stmt->db);
    }
}

int64_t pg_column_int(struct db_stmt *base, int column)
{
    const struct pg_stmt *stmt = (const struct pg_stmt *)(void *)base;
    return pg_value_int(stmt->results.v[stmt->result], stmt->row, column);
}

const void *pg_column_data(struct db_stmt *base, int column, size_t *ret_len)
{
    const struct pg_stmt *stmt = (const struct pg_stmt *)(void *)base;
    const PGresult *result = stmt->results.v[stmt->result];
    *ret_len = (size_t)PQgetlength(result, stmt->row, column);
    return PQgetisnull(result, stmt->row, column) ? NULL : PQgetvalue(result, stmt->row, column);
}

void pg_finish(struct db_stmt *base) { pg_reset((struct pg_stmt *)(void *)base); }
