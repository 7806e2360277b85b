/* PostgreSQL behind db.h.  Any number of servers and readers, each with connections of their own:
 * what keeps them apart are row locks ({lock}), the conditions in every write and the counts that
 * expect_many checks.  A batch is two exchanges: BEGIN with all its reads, then all its writes with
 * the COMMIT.  The flow: this file's calls queue statements (postgres_pipeline.c) on a connection
 * that is made anew when it was lost (postgres_link.c).
 *
 * How safe a commit is, is the server's setting: synchronous_commit and fsync are left alone, and
 * `warnings` says what they cost. */
#include "db/postgres.h"

#include <stdlib.h>
#include <string.h>

#include "db/postgres_notify.h"
#include "db/postgres_pipeline.h"

#define NOW "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)"
#define NUMBERS "holdfast_numbers"
#define MIGRATION_LOCK                                                                             \
    "SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(" PG_LOCK_MIGRATION ");"

static const struct template_fragment fragments[] = {
    {"key", "bigint PRIMARY KEY"},
    {"bytes", "bytea"},
    {"clustered", ""},
    /* An update of a column that no index has stays on its page (HOT) while there is room, and the
     * next one there sweeps up after it: half of each page is kept free for that.  What could not
     * stay is vacuumed when a fiftieth of a large table, or some hundred rows of a small one, are
     * dead, and without pauses: a table like event_clock has a dead row for each batch. */
    {"hot", "WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,"
            " autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0)"},
    {"lock", " FOR UPDATE"}, /* of tables only: unnest() has nothing to lock */
    {"now", NOW},
    {"or_surprise", ""},
    {NULL, NULL},
};
const struct dialect pg_dialect = {.fragments = fragments, .row_at_a_time = false};

static struct postgres *pg_of(struct db *base) { return (struct postgres *)(void *)base; }

int64_t postgres_exchanges(const struct db *db)
{
    return ((const struct postgres *)(const void *)db)->link.exchanges;
}

static enum hf_status tell(const struct hf_err *why, struct hf_err *err)
{
    return hf_err_set(err, why->code, "%s", why->msg);
}

/* ---- transactions ---- */

static enum hf_status postgres_begin(struct db *base, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    if (db->transaction)
        return hf_err_set(err, HF_INTERNAL, "a transaction within a transaction");
    enum hf_status status = pg_connect(db, err);
    if (status != HF_OK)
        return status;
    db->transactions += db->transactions == UINT32_MAX ? 2 : 1;
    db->transaction = db->transactions;
    db->begin_queued = db->is_known = false;
    db->err = (struct hf_err){0};
    db->numbers_next = db->numbers_end = db->shared_ms = 0;
    return HF_OK;
}

static enum hf_status postgres_commit(struct db *base, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct pg_stmt *commit = (struct pg_stmt *)(void *)db->commit;
    if (!db->transaction)
        return hf_err_set(err, HF_INTERNAL, "no transaction to commit");
    if (db->err.code != HF_OK)
        return tell(&db->err, err);
    if (!db->begin_queued) {
        db->transaction = 0;
        return HF_OK;
    }
    /* What the server has closed already shall not be an unknown outcome. */
    struct hf_err why = {0};
    if (!pg_link_alive(&db->link, &why))
        pg_lost(db, &why);
    pg_forget(commit);
    enum hf_status status = pg_queue(commit, NULL, NULL, 1, err);
    if (status != HF_OK)
        return status;
    pg_settle(db);
    if (commit->committed) { /* whatever became of the connection afterwards */
        db->transaction = 0;
        return HF_OK;
    }
    if (db->err.code == HF_OK)
        return hf_err_set(err, HF_INTERNAL, "PostgreSQL rolled the transaction back");
    return hf_err_set(err, db->is_known ? db->err.code : HF_OUTCOME_UNKNOWN, "%s", db->err.msg);
}

/* Sent at once, for what it has locked; not waited for. */
static void postgres_rollback(struct db *base)
{
    struct postgres *db = pg_of(base);
    struct pg_stmt *rollback = (struct pg_stmt *)(void *)db->rollback;
    struct hf_err err = {0};
    if (!db->transaction)
        return;
    db->transaction = 0;
    for (struct pg_stmt *stmt = db->stmts; stmt; stmt = stmt->next)
        pg_forget(stmt);
    if (!db->begin_queued || !db->link.conn)
        return;
    pg_sync(db);
    if (db->link.conn && pg_queue(rollback, NULL, NULL, 1, &err) == HF_OK &&
        pg_link_flush(&db->link, &err) != HF_OK)
        pg_lost(db, &err);
}

/* A script may take its time. */
static enum hf_status postgres_script(struct db *base, const char *sql, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct buf text = {0};
    struct template_params params;
    buf_printf(&text, "SET statement_timeout = %d;", PG_SLOW_MS);
    enum hf_status status = template_expand(sql, &pg_dialect, &text, &params, err);
    buf_printf(&text, ";SET statement_timeout = %lld", (long long)db->link.statement_ms);
    buf_char(&text, '\0');
    if (status == HF_OK && !db->transaction)
        status = pg_connect(db, err);
    else if (status == HF_OK && !db->begin_queued) /* any statement has it sent */
        status = pg_exec_many(db->patience, NULL, 1, NULL, err);
    if (status == HF_OK)
        pg_settle(db);
    if (status == HF_OK && db->transaction && db->err.code != HF_OK)
        status = tell(&db->err, err);
    if (status == HF_OK && !db->link.conn)
        status = pg_link_error(&db->link, err);
    if (status == HF_OK) {
        struct hf_err why = {0};
        status = pg_link_script(&db->link, text.data, PG_SLOW_MS + PG_MARGIN_MS, &why);
        if (status != HF_OK && db->transaction)
            db->err = why;
        if (status != HF_OK)
            (void)tell(&why, err);
        if (PQpipelineStatus(db->link.conn) != PQ_PIPELINE_ON)
            pg_lost(db, &why);
    }
    buf_close(&text);
    return status;
}

/* ---- time and numbers ---- */

/* The first row of a statement that has just been asked. */
static enum hf_status first_row(struct db_stmt *stmt, struct hf_err *err)
{
    enum db_step step = db_step(stmt, err);
    if (step == DB_FAILED)
        return err ? err->code : HF_LEDGER_UNAVAILABLE;
    return step == DB_ROW ? HF_OK : hf_err_set(err, HF_INTERNAL, "PostgreSQL: no answer");
}

/* The time and the first number of a shared transaction, which came with its lock. */
static enum hf_status shared_read(struct postgres *db, struct hf_err *err)
{
    struct hf_err why = {0};
    if (db->shared_ms)
        return HF_OK;
    enum hf_status status = HF_OK;
    if (!db->begin_queued)
        status = pg_exec_many(db->patience, NULL, 1, NULL, &why);
    if (status == HF_OK)
        status = first_row(db->numbers_first, &why);
    if (status != HF_OK)
        return tell(&why, err);
    db->shared_ms = db_column_int(db->numbers_first, 0);
    db->numbers_next = db_column_int(db->numbers_first, 1);
    db->numbers_end = db->numbers_next + 1;
    pg_finish(db->numbers_first);
    return HF_OK;
}

static enum hf_status postgres_now_ms(struct db *base, int64_t *ret_ms, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct hf_err why = {0};
    enum hf_status status;
    int64_t now;
    if (db->options.shared && db->transaction) {
        status = shared_read(db, &why);
        now = db->shared_ms;
    } else {
        status = db_query(db->now, NULL, &why);
        if (status == HF_OK)
            status = first_row(db->now, &why);
        now = status == HF_OK ? db_column_int(db->now, 0) : 0;
        pg_finish(db->now);
    }
    if (status != HF_OK)
        return tell(&why, err);
    db->floor_ms = now > db->floor_ms ? now : db->floor_ms;
    *ret_ms = db->floor_ms;
    return HF_OK;
}

static void postgres_now_floor(struct db *base, int64_t ms)
{
    struct postgres *db = pg_of(base);
    db->floor_ms = ms > db->floor_ms ? ms : db->floor_ms;
}

/* The transaction is alone: what others were given was taken before its lock.  A failure here is
 * that of the transaction, which the next call tells. */
static int64_t postgres_numbers(struct db *base, int64_t n)
{
    struct postgres *db = pg_of(base);
    struct hf_err err = {0};
    hf_check(db->options.shared && db->transaction && n >= 0 && n <= DB_NUMBERS_MAX);
    enum hf_status status = shared_read(db, &err);
    if (status == HF_OK && db->numbers_next + n > db->numbers_end) {
        const struct db_value args[] = {db_int(n)};
        status = db_query(db->numbers_more, args, &err);
        if (status == HF_OK)
            status = first_row(db->numbers_more, &err);
        if (status == HF_OK) {
            db->numbers_end = db_column_int(db->numbers_more, 0) + 1;
            db->numbers_next = db->numbers_end - n;
        }
        pg_finish(db->numbers_more);
    }
    if (status != HF_OK) {
        db->err = db->err.code == HF_OK ? err : db->err;
        return 0;
    }
    int64_t first = db->numbers_next;
    db->numbers_next += n;
    return first;
}

/* ---- questions to the server ---- */

static enum hf_status postgres_alone(struct db *base, int64_t number, bool *ret_got,
                                     struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    const struct db_value args[] = {db_int(number)};
    struct hf_err why = {0};
    hf_check(!db->transaction);
    enum hf_status status = db_query(db->alone, args, &why);
    if (status == HF_OK)
        status = first_row(db->alone, &why);
    if (status != HF_OK)
        return tell(&why, err);
    *ret_got = db_column_int(db->alone, 0) != 0;
    pg_finish(db->alone);
    return HF_OK;
}

static enum hf_status postgres_leave(struct db *base, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    hf_check(!db->transaction);
    return db->link.conn ? pg_exec_many(db->leave, NULL, 1, NULL, err) : HF_OK;
}

#define WARNINGS                                                                                   \
    "SELECT current_setting('fsync') = 'off', current_setting('full_page_writes') = 'off',"        \
    " current_setting('synchronous_commit') = 'off', pg_is_in_recovery(),"                         \
    " (SELECT COUNT(*) FROM pg_stat_replication),"                                                 \
    " current_setting('synchronous_standby_names') = ''"                                           \
    " OR current_setting('synchronous_commit') IN ('off', 'local')"

static enum hf_status postgres_warnings(struct db *base, struct buf *ret_lines, struct hf_err *err)
{
    static const char *const texts[] = {
        "fsync is off: a power cut or a crash of the system can lose or damage everything",
        "full_page_writes is off: a power cut can damage the data",
        ("synchronous_commit is off: a crash of the server loses the commits of its last moments,"
         " which were acknowledged"),
        "the server is a standby: it cannot be written to",
    };
    struct postgres *db = pg_of(base);
    struct hf_err why = {0};
    enum hf_status status = db_query(db->warnings, NULL, &why);
    if (status == HF_OK)
        status = first_row(db->warnings, &why);
    if (status != HF_OK)
        return tell(&why, err);
    for (int i = 0; i < 4; i++)
        if (db_column_int(db->warnings, i))
            buf_printf(ret_lines, "%s\n", texts[i]);
    int64_t standbys = db_column_int(db->warnings, 4);
    if (standbys > 0 && db_column_int(db->warnings, 5))
        buf_printf(ret_lines,
                   "no commit waits for a standby (%lld connected): what was acknowledged last is"
                   " lost should one take over; set synchronous_standby_names\n",
                   (long long)standbys);
    pg_finish(db->warnings);
    return HF_OK;
}

/* Lost, as far as one can see from here: the next may be to another server, or to another's data.
 */
static bool postgres_is_gone(struct db *base)
{
    struct postgres *db = pg_of(base);
    return !db->link.conn || !pg_link_alive(&db->link, NULL);
}

/* The server looks after itself. */
static enum hf_status postgres_maintain(struct db *base, struct hf_err *err)
{
    (void)base, (void)err;
    return HF_OK;
}

/* ---- opening ---- */

static void postgres_close(struct db *base)
{
    struct postgres *db = pg_of(base);
    if (!db)
        return;
    pg_link_close(&db->link);
    for (struct pg_stmt *stmt = db->stmts, *next; stmt; stmt = next) {
        next = stmt->next;
        pg_stmt_free(stmt);
    }
    vec_close(&db->entries);
    buf_close(&db->scratch);
    buf_close(&db->topic);
    free(db);
}

static enum hf_status prepare_own(struct postgres *db, struct hf_err *err)
{
    bool shared = db->options.shared, writes = db->options.writer || shared;
    const struct {
        struct db_stmt **stmt;
        const char *sql;
        bool wanted;
    } own[] = {
        {&db->begin,
         writes ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
                : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
         true},
        {&db->commit, "COMMIT", true},
        {&db->rollback, "ROLLBACK", true},
        {&db->patience, "SELECT set_config('statement_timeout', '600000', true)", true},
        {&db->now, "SELECT {now}", true},
        {&db->plans, "DISCARD PLANS", writes},
        {&db->notify, "SELECT pg_notify(r.topic, r.text){args(topic text, text text)}", true},
        {&db->alone, "SELECT pg_try_advisory_lock(r.number){args(number bigint)}", true},
        {&db->leave, "SELECT pg_advisory_unlock_all()", true},
        {&db->warnings, WARNINGS, true},
        {&db->lock, "SELECT pg_advisory_xact_lock(" PG_LOCK_SHARED ")", shared},
        {&db->numbers_first, "SELECT {now}, nextval('" NUMBERS "')", shared},
        {&db->numbers_more,
         "SELECT setval('" NUMBERS "', nextval('" NUMBERS "') + r.n - 1){args(n bigint)}", shared},
        /* A hint need not be on the disk. */
        {&db->wake,
         "SELECT set_config('synchronous_commit', 'off', true),"
         " pg_notify('" WAKE_TOPIC "' || r.number, ''){ FROM rows(number bigint)}",
         shared},
    };
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < sizeof own / sizeof *own && status == HF_OK; i++)
        if (own[i].wanted)
            status = pg_prepare(&db->db, own[i].sql, own[i].stmt, err);
    return status;
}

/* One sequence for all; who comes first makes it, alone. */
static enum hf_status make_numbers(struct postgres *db, struct hf_err *err)
{
    return postgres_script(&db->db, MIGRATION_LOCK "CREATE SEQUENCE IF NOT EXISTS " NUMBERS, err);
}

static enum hf_status postgres_open(const char *url, const struct db_options *options,
                                    struct db **ret_db, struct hf_err *err)
{
    struct postgres *db = hf_alloc(sizeof *db);
    db->db.driver = &db_postgres;
    db->options = *options;
    enum hf_status status = pg_link_init(&db->link, url, options, err);
    if (status == HF_OK)
        status = prepare_own(db, err);
    if (status == HF_OK)
        status = pg_connect(db, err);
    if (status == HF_OK && options->shared)
        status = make_numbers(db, err);
    if (status != HF_OK) {
        postgres_close(&db->db);
        return status;
    }
    *ret_db = &db->db;
    return HF_OK;
}

const struct db_driver db_postgres = {
    .name = "postgres",
    .other_name = "postgresql",
    .many_writers = true,
    .migration_lock = MIGRATION_LOCK,
    .open = postgres_open,
    .close = postgres_close,
    .prepare = pg_prepare,
    .script = postgres_script,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .exec_many = pg_exec_many,
    .expect_many = pg_expect_many,
    .query_many = pg_query_many,
    .step = pg_step,
    .column_int = pg_column_int,
    .column_data = pg_column_data,
    .finish = pg_finish,
    .now_ms = postgres_now_ms,
    .now_floor = postgres_now_floor,
    .numbers = postgres_numbers,
    .is_gone = postgres_is_gone,
    .await = pg_await,
    .wake = pg_wake,
    .notify = pg_notify,
    .listen = pg_listen,
    .alone = postgres_alone,
    .leave = postgres_leave,
    .warnings = postgres_warnings,
    .exchanges = postgres_exchanges,
    .maintain = postgres_maintain,
};
