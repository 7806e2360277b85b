/* PostgreSQL behind db.h.  Any number of servers and readers have connections of their own.  Row
 * locks ({lock}), the conditions in every write and the counts that expect_many checks keep them
 * apart.  A batch is two exchanges: BEGIN with all its reads, then all its writes with the COMMIT;
 * or one, without reads.
 *
 * This file has transactions, the clock, advisory locks and opening.  Statements are in
 * postgres_stmt.c; they are queued on the pipeline of a connection (postgres_pipeline.c), which is
 * made again after it was lost (postgres_link.c).
 *
 * How safe a commit is depends on the server's settings: fsync is not touched, synchronous_commit
 * only by {may_be_lost} and for wake-ups, and `warnings` says what they cost. */
#include <stdlib.h>

#include "db/postgres_notify.h"
#include "db/postgres_schema.h"
#include "db/postgres_stmt.h"

#define LOCK_NAME                                                                                  \
    "SELECT pg_advisory_xact_lock(" PG_NAMES ", CAST(r.name AS int)){args(name bigint)}"

static struct postgres *pg_of(struct db *base) { return (struct postgres *)(void *)base; }

static int64_t postgres_exchanges(const struct db *base)
{
    return ((const struct postgres *)(const void *)base)->link.exchanges;
}

static bool postgres_is_pooled(const struct db *base)
{
    return ((const struct postgres *)(const void *)base)->link.is_pooled;
}

static enum hf_status copy_err(const struct hf_err *why, struct hf_err *err)
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
    vec_clear(&db->names);
    db->moment_asked = db->number_unused = false;
    db->moment_ms = 0;
    return HF_OK;
}

/* FNV-1a, 32 bits: every program that uses the database must compute the same, in all versions. */
static int64_t hash_of(const struct db_value *name)
{
    const uint8_t *bytes = name->data;
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < name->len; i++)
        hash = (hash ^ bytes[i]) * UINT32_C(16777619);
    return (int32_t)hash;
}

static int by_hash(const void *a, const void *b)
{
    int64_t x = ((const struct db_value *)a)->i, y = ((const struct db_value *)b)->i;
    return x < y ? -1 : x > y;
}

/* All transactions lock names in the order of their hashes, before any row: so there is no
 * deadlock. */
static enum hf_status postgres_begin_locked(struct db *base, const struct db_value *names, size_t n,
                                            struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    hf_check(db->options.shared && n <= DB_NAMES_MAX);
    enum hf_status status = postgres_begin(base, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        *vec_push(&db->names) = db_int(hash_of(&names[i]));
    if (n > 1)
        qsort(db->names.v, n, sizeof *db->names.v, by_hash);
    return HF_OK;
}

/* Sends the transaction that was begun as one segment: its Sync is the COMMIT. */
static enum hf_status run_segment(struct pg_stmt *stmt, const struct db_value *args,
                                  struct hf_err *err)
{
    struct postgres *db = stmt->db;
    pg_reset(stmt);
    db->is_one_segment = true;
    enum hf_status status = pg_queue(stmt, NULL, args, 1, err);
    if (status == HF_OK)
        pg_drain(db);
    db->is_one_segment = false;
    db->transaction = 0;
    if (status != HF_OK || db->err.code == HF_OK)
        return status;
    return hf_err_set(err, db->is_known ? db->err.code : HF_OUTCOME_UNKNOWN, "%s", db->err.msg);
}

static enum hf_status postgres_run(struct db_stmt *base, const struct db_value *args,
                                   int64_t *ret_changes, struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    enum hf_status status = postgres_begin(&stmt->db->db, err);
    if (status == HF_OK)
        status = run_segment(stmt, args, err);
    if (status == HF_OK && ret_changes)
        *ret_changes = stmt->changes;
    return status;
}

/* The lock is taken by a statement before this one: a statement does not see what was committed
 * while it waited. */
static enum hf_status postgres_run_locked(struct db_stmt *base, const struct db_value *name,
                                          const struct db_value *args, struct hf_err *err)
{
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)base;
    enum hf_status status = postgres_begin_locked(&stmt->db->db, name, 1, err);
    return status == HF_OK ? run_segment(stmt, args, err) : status;
}

static enum hf_status postgres_commit(struct db *base, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct pg_stmt *commit = (struct pg_stmt *)(void *)db->commit;
    if (!db->transaction)
        return hf_err_set(err, HF_INTERNAL, "no transaction to commit");
    if (db->err.code != HF_OK)
        return copy_err(&db->err, err);
    if (!db->begin_queued) {
        db->transaction = 0;
        return HF_OK;
    }
    /* The outcome is known if the server has closed the connection before the COMMIT is sent. */
    struct hf_err why = {0};
    if (!pg_link_alive(&db->link, &why))
        pg_disconnect(db, &why);
    pg_reset(commit);
    enum hf_status status = pg_queue(commit, NULL, NULL, 1, err);
    if (status != HF_OK)
        return status;
    pg_drain(db);
    if (commit->committed) { /* even if the connection was lost afterwards */
        db->transaction = 0;
        return HF_OK;
    }
    if (db->err.code == HF_OK)
        return hf_err_set(err, HF_INTERNAL, "PostgreSQL rolled the transaction back");
    return hf_err_set(err, db->is_known ? db->err.code : HF_OUTCOME_UNKNOWN, "%s", db->err.msg);
}

/* Sent at once, so that the locks are released; the answer is not waited for. */
static void postgres_rollback(struct db *base)
{
    struct postgres *db = pg_of(base);
    struct pg_stmt *rollback = (struct pg_stmt *)(void *)db->rollback;
    struct hf_err err = {0};
    if (!db->transaction)
        return;
    db->transaction = 0;
    for (struct pg_stmt *stmt = db->stmts; stmt; stmt = stmt->next)
        pg_reset(stmt);
    if (!db->begin_queued || !db->link.conn)
        return;
    pg_sync(db);
    if (db->link.conn && pg_queue(rollback, NULL, NULL, 1, &err) == HF_OK &&
        pg_link_flush(&db->link, &err) != HF_OK)
        pg_disconnect(db, &err);
}

/* ---- scripts ---- */

/* Connects, or makes sure that a transaction's BEGIN was sent, and waits until nothing is under
 * way. */
static enum hf_status get_ready_for_script(struct postgres *db, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    if (!db->transaction)
        status = pg_connect(db, err);
    else if (!db->begin_queued) /* any statement sends it */
        status = pg_exec_many(db->more_time, NULL, 1, NULL, err);
    if (status != HF_OK)
        return status;
    pg_drain(db);
    if (db->transaction && db->err.code != HF_OK)
        return copy_err(&db->err, err);
    return db->link.conn ? HF_OK : pg_link_error(&db->link, err);
}

static enum hf_status run_script(struct postgres *db, const char *sql, struct hf_err *err)
{
    struct hf_err why = {0};
    enum hf_status status = pg_link_script(&db->link, sql, PG_SLOW_MS + PG_MARGIN_MS, &why);
    if (status != HF_OK && db->transaction)
        db->err = why;
    if (PQpipelineStatus(db->link.conn) != PQ_PIPELINE_ON)
        pg_disconnect(db, &why);
    if (status != HF_OK)
        (void)copy_err(&why, err);
    return status;
}

/* A script has PG_SLOW_MS for each of its statements. */
static enum hf_status postgres_script(struct db *base, const char *sql, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct buf text = {0};
    struct template_params params;
    enum hf_status status;
    buf_printf(&text, "SET statement_timeout = %d;", PG_SLOW_MS);
    if ((status = template_expand(sql, &pg_dialect, &text, &params, err)) != HF_OK ||
        (status = get_ready_for_script(db, err)) != HF_OK)
        goto out;
    buf_printf(&text, ";SET statement_timeout = %lld", (long long)db->link.statement_ms);
    buf_char(&text, '\0');
    status = run_script(db, text.data, err);
out:
    buf_close(&text);
    return status;
}

/* ---- time and numbers ---- */

/* Moves to the first row of a statement that must have one. */
static enum hf_status first_row(struct db_stmt *stmt, struct hf_err *err)
{
    enum db_step step = db_step(stmt, err);
    if (step == DB_FAILED)
        return err ? err->code : HF_STORE_UNAVAILABLE;
    return step == DB_ROW ? HF_OK : hf_err_set(err, HF_INTERNAL, "PostgreSQL: no answer");
}

/* Reads the next row of a shared transaction's `moment` statement, which answers with its time and
 * one number per name. */
static enum hf_status moment_read(struct postgres *db, struct hf_err *err)
{
    const struct db_value n = db_int(db->names.n ? (int64_t)db->names.n : 1);
    struct hf_err why = {0};
    enum hf_status status = db->moment_asked ? HF_OK : db_query(db->moment, &n, &why);
    db->moment_asked = true;
    if (status == HF_OK)
        status = first_row(db->moment, &why);
    if (status != HF_OK)
        return copy_err(&why, err);
    db->moment_ms = db->moment_ms ? db->moment_ms : db_column_int(db->moment, 0);
    db->number_unused = true;
    return HF_OK;
}

static void postgres_limit_answers(struct db *db, int64_t ms) { pg_of(db)->link.limit_ms = ms; }

static enum hf_status postgres_now_ms(struct db *base, int64_t *ret_ms, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct hf_err why = {0};
    enum hf_status status;
    int64_t now;
    if (db->options.shared && db->transaction) {
        status = db->moment_ms ? HF_OK : moment_read(db, &why);
        now = db->moment_ms;
    } else {
        status = db_query(db->now, NULL, &why);
        if (status == HF_OK)
            status = first_row(db->now, &why);
        now = status == HF_OK ? db_column_int(db->now, 0) : 0;
        pg_finish(db->now);
    }
    if (status != HF_OK)
        return copy_err(&why, err);
    if (!db->options.shared)
        now = db->floor_ms = now > db->floor_ms ? now : db->floor_ms;
    *ret_ms = now;
    return HF_OK;
}

static void postgres_now_floor(struct db *base, int64_t ms)
{
    struct postgres *db = pg_of(base);
    db->floor_ms = ms > db->floor_ms ? ms : db->floor_ms;
}

/* Earlier numbers under these names were drawn before their transactions ended, and so before this
 * one had the locks.  A failure here fails the transaction, which its next call reports. */
static int64_t postgres_number(struct db *base)
{
    struct postgres *db = pg_of(base);
    struct hf_err err = {0};
    hf_check(db->options.shared && db->transaction);
    enum hf_status status = db->number_unused ? HF_OK : moment_read(db, &err);
    db->number_unused = false;
    if (status == HF_OK)
        return db_column_int(db->moment, 1);
    db->err = db->err.code == HF_OK ? err : db->err;
    return 0;
}

/* ---- advisory locks and settings ---- */

static enum hf_status postgres_try_lock(struct db *base, int64_t number, bool *ret_locked,
                                        struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    const struct db_value args[] = {db_int(number)};
    struct hf_err why = {0};
    hf_check(!db->transaction);
    enum hf_status status = db_query(db->try_lock, args, &why);
    if (status == HF_OK)
        status = first_row(db->try_lock, &why);
    if (status != HF_OK)
        return copy_err(&why, err);
    *ret_locked = db_column_int(db->try_lock, 0) != 0;
    pg_finish(db->try_lock);
    return HF_OK;
}

static enum hf_status postgres_unlock_all(struct db *base, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    hf_check(!db->transaction);
    return db->link.conn ? pg_exec_many(db->unlock_all, NULL, 1, NULL, err) : HF_OK;
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
        return copy_err(&why, err);
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

/* After a lost connection the next one may lead to another server, with other data. */
static bool postgres_is_gone(struct db *base)
{
    struct postgres *db = pg_of(base);
    return !db->link.conn || !pg_link_alive(&db->link, NULL);
}

/* The server maintains itself. */
static enum hf_status postgres_maintain(struct db *base, struct db_log *ret, struct hf_err *err)
{
    (void)base, (void)err;
    *ret = (struct db_log){0};
    return HF_OK;
}

static int64_t postgres_log_bytes(const struct db *base)
{
    (void)base;
    return 0;
}

static enum hf_status postgres_sizes(struct db *base, struct db_sizes *ret, struct hf_err *err)
{
    struct postgres *db = pg_of(base);
    struct hf_err why = {0};
    enum hf_status status = db_query(db->size, NULL, &why);
    if (status == HF_OK)
        status = first_row(db->size, &why);
    if (status != HF_OK)
        return copy_err(&why, err);
    *ret = (struct db_sizes){.database_bytes = db_column_int(db->size, 0),
                             .log_bytes = -1,
                             .disk_bytes = -1,
                             .disk_free_bytes = -1};
    pg_finish(db->size);
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
    vec_close(&db->names);
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
        {&db->more_time, "SELECT set_config('statement_timeout', '600000', true)", true},
        {&db->now, "SELECT {now}", true},
        {&db->plans, "DISCARD PLANS", writes},
        {&db->notify, "SELECT pg_notify(r.topic, r.text){args(topic text, text text)}", true},
        {&db->try_lock, "SELECT pg_try_advisory_lock(r.number){args(number bigint)}", true},
        {&db->unlock_all, "SELECT pg_advisory_unlock_all()", true},
        {&db->warnings, WARNINGS, true},
        {&db->size, "SELECT pg_database_size(current_database())", true},
        {&db->numbers, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('" PG_NUMBERS "')",
         shared},
        {&db->lock, LOCK_NAME, shared},
        {&db->lock_one_segment, LOCK_NAME, shared},
        {&db->moment, "SELECT {now}, {number} FROM generate_series(1, r.n){args(n bigint)}",
         shared},
        /* A wake-up is a hint, and need not wait for the disk. */
        {&db->wake,
         "SELECT set_config('synchronous_commit', 'off', true),"
         " pg_notify('" DB_WAKE_TOPIC "' || r.topic, r.text)"
         "{ FROM rows(topic bigint, text text)}",
         shared},
    };
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < sizeof own / sizeof *own && status == HF_OK; i++)
        if (own[i].wanted)
            status = pg_prepare(&db->db, own[i].sql, own[i].stmt, err);
    /* A name that can be recognised in the traffic, as COMMIT can, which such a segment has not. */
    if (status == HF_OK && shared)
        ((struct pg_stmt *)(void *)db->lock_one_segment)->name = "COMMIT_ONCE";
    return status;
}

static enum hf_status numbers_exist(struct postgres *db, bool *ret_exist, struct hf_err *err)
{
    enum hf_status status = db_query(db->numbers, NULL, err);
    if (status != HF_OK)
        goto out;
    status = first_row(db->numbers, err);
    if (status != HF_OK)
        goto out;
    *ret_exist = db_column_int(db->numbers, 0) > 0;
out:
    pg_finish(db->numbers);
    return status;
}

/* Creates the schema and the one sequence, unless they exist.  Later users only look: they need not
 * have the right to create anything, nor wait for a migration. */
static enum hf_status create_numbers(struct postgres *db, struct hf_err *err)
{
    bool exists = false;
    enum hf_status status = numbers_exist(db, &exists, err);
    return status != HF_OK || exists ? status : postgres_script(&db->db, pg_schema_script, err);
}

/* Opens what postgres_close closes, also after a failure. */
static enum hf_status open_link(struct postgres *db, const char *url, struct hf_err *err)
{
    enum hf_status status = pg_link_init(&db->link, url, &db->options, err);
    if (status != HF_OK)
        return status;
    status = prepare_own(db, err);
    if (status != HF_OK)
        return status;
    status = pg_connect(db, err);
    if (status != HF_OK || !db->options.shared)
        return status;
    return create_numbers(db, err);
}

static enum hf_status postgres_open(const char *url, const struct db_options *options,
                                    struct db **ret_db, struct hf_err *err)
{
    struct postgres *db = hf_alloc(sizeof *db);
    db->db.driver = &db_postgres;
    db->options = *options;
    enum hf_status status = open_link(db, url, err);
    if (status != HF_OK) {
        postgres_close(&db->db);
        return status;
    }
    *ret_db = &db->db;
    return HF_OK;
}

static const struct db_network network = {
    .run = postgres_run,
    .run_locked = postgres_run_locked,
    .limit_answers = postgres_limit_answers,
    .notify = pg_notify,
    .listen = pg_listen,
    .try_lock = postgres_try_lock,
    .unlock_all = postgres_unlock_all,
    .is_pooled = postgres_is_pooled,
};

const struct db_driver db_postgres = {
    .name = "postgres",
    .other_name = "postgresql",
    .many_writers = true,
    .migration_lock = PG_MIGRATION_LOCK,
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
    .sharing = {.begin_locked = postgres_begin_locked,
                .number = postgres_number,
                .is_gone = postgres_is_gone,
                .wake = pg_wake},
    .upkeep = {.warnings = postgres_warnings,
               .exchanges = postgres_exchanges,
               .maintain = postgres_maintain,
               .log_bytes = postgres_log_bytes,
               .sizes = postgres_sizes},
    .network = &network,
};
