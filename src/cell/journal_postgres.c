/* The journal in PostgreSQL, for any number of servers: journal_sql.c over one connection, which is
 * made again after it was lost.  The tables are in the schema `holdfast_cell`.
 *
 * A commit is as safe as the server makes it.  synchronous_commit is on for this connection, and
 * open refuses, without --journal-may-lose, a server that may still lose what it acknowledged: one
 * without synchronous_standby_names, since a standby may take its place, or with fsync off.  A
 * pooler must keep sessions.
 *
 * Appends lock the row of `head` for the length of one statement.  A server that stands still in
 * the middle of sending one can keep it locked for longer: PostgreSQL commits when the last few
 * bytes have come, and they may be missing.  `claim` ends sessions that do that. */
#include <stdlib.h>

#include "cell/journal_sql.h"

#define SCHEMA "holdfast_cell"
#define OPEN_CALLS 5 /* opening may take as long as this many calls */
/* remote_apply waits for even more. */
#define SETTINGS                                                                                   \
    "SET search_path = " SCHEMA ", pg_temp; SELECT set_config('synchronous_commit', 'on', false)"  \
    " WHERE current_setting('synchronous_commit') <> 'remote_apply';"

/* Entries of up to a page are stored where they are, and none is compressed: they are read once or
 * never. */
static const char *const migrations[] = {
    "CREATE TABLE head ("
    "  one bigint NOT NULL PRIMARY KEY CHECK (one = 1), epoch bigint NOT NULL,"
    "  claim bytea NOT NULL, url text NOT NULL, snapshot bigint NOT NULL,"
    "  snapshot_chunks bigint NOT NULL, older bigint NOT NULL) {hot};"
    "INSERT INTO head VALUES (1, 0, '', '', 0, 0, 0);"
    "CREATE TABLE entries (idx bigint NOT NULL PRIMARY KEY, id bytea NOT NULL, data bytea NOT NULL)"
    "  WITH (toast_tuple_target = 8160);"
    "ALTER TABLE entries ALTER COLUMN data SET STORAGE EXTERNAL;"
    "CREATE TABLE chunks ("
    "  idx bigint NOT NULL, part bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (idx, part));"
    "ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL;"
    "CREATE TABLE servers ("
    "  url text NOT NULL PRIMARY KEY, idx bigint NOT NULL, beat bigint NOT NULL) {hot};",
};

struct journal_pg {
    struct journal_sql sql;
    struct db_stmt *has_schema, *safety, *end_idlers;
};

static struct journal_pg *of(struct journal *j) { return (struct journal_pg *)(void *)j; }

/* ---- opening ---- */

/* Reads one row of numbers. */
static enum hf_status ask(struct db_stmt *stmt, int64_t *ret, int n, struct hf_err *err)
{
    struct hf_err why = {0};
    enum hf_status status = db_query(stmt, NULL, err);
    if (status != HF_OK)
        return status;
    if (db_step(stmt, &why) != DB_ROW)
        return hf_err_set(err, why.code != HF_OK ? why.code : HF_INTERNAL, "%s", why.msg);
    for (int i = 0; i < n; i++)
        ret[i] = db_column_int(stmt, i);
    stmt->driver->finish(stmt);
    return HF_OK;
}

/* Creates the schema unless it exists: a role that may use the tables need not have the right to
 * create any. */
static enum hf_status create_schema(struct journal_pg *j, struct hf_err *err)
{
    struct db *db = j->sql.db;
    int64_t exists = 0;
    enum hf_status status = ask(j->has_schema, &exists, 1, err);
    if (status != HF_OK || exists)
        return status;
    if ((status = db->driver->begin(db, err)) == HF_OK &&
        (status = db->driver->script(db, db->driver->migration_lock, err)) == HF_OK &&
        (status = db->driver->script(db,
                                     "DO $do$ BEGIN IF to_regnamespace('" SCHEMA "') IS NULL"
                                     " THEN CREATE SCHEMA " SCHEMA "; END IF; END $do$",
                                     err)) == HF_OK)
        status = db->driver->commit(db, err);
    if (status != HF_OK)
        db->driver->rollback(db);
    return status;
}

static enum hf_status prepare(struct journal_pg *j, struct hf_err *err)
{
    const struct {
        struct db_stmt **stmt;
        const char *sql;
    } own[] = {
        {&j->has_schema, "SELECT to_regnamespace('" SCHEMA "') IS NOT NULL"},
        {&j->safety, "SELECT current_setting('synchronous_standby_names') = '',"
                     " current_setting('fsync') = 'off'"},
        /* Whoever has a lock on a row of `head`, and has been silent for a second. */
        {&j->end_idlers,
         "SELECT COUNT(pg_terminate_backend(a.pid)) FROM pg_locks AS l"
         " JOIN pg_stat_activity AS a ON a.pid = l.pid"
         " WHERE l.relation = to_regclass('" SCHEMA ".head') AND a.datname = current_database()"
         " AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND l.granted"
         " AND a.wait_event = 'ClientRead' AND a.pid <> pg_backend_pid()"
         " AND a.state_change < clock_timestamp() - interval '1 second'"},
    };
    enum hf_status status = journal_sql_prepare(&j->sql, err);
    for (size_t i = 0; i < sizeof own / sizeof *own && status == HF_OK; i++)
        status = j->sql.db->driver->prepare(j->sql.db, own[i].sql, own[i].stmt, err);
    return status;
}

static enum hf_status check_safety(struct journal_pg *j, bool may_lose, struct hf_err *err)
{
    int64_t lacks[2] = {0};
    enum hf_status status = ask(j->safety, lacks, 2, err);
    if (status != HF_OK || may_lose || (!lacks[0] && !lacks[1]))
        return status;
    return hf_err_set(err, HF_INVALID_REQUEST,
                      "this PostgreSQL may lose locks that it has acknowledged: %s.  Change that,"
                      " or accept it with --journal-may-lose",
                      lacks[0] ? "synchronous_standby_names is empty, so a standby that takes over"
                                 " may lack the latest"
                               : "fsync is off");
}

static void postgres_close(struct journal *base)
{
    if (!base)
        return;
    journal_sql_close(&of(base)->sql);
    free(base);
}

static enum hf_status postgres_open(const char *url, const struct journal_options *options,
                                    struct journal **ret, struct hf_err *err)
{
    struct journal_pg *j = hf_alloc(sizeof *j);
    j->sql.journal.driver = &journal_postgres;
    struct db_options own = journal_sql_options(&j->sql, options);
    own.settings = SETTINGS;
    int64_t timeout_ms = j->sql.timeout_ms;
    j->sql.timeout_ms *= OPEN_CALLS;
    journal_sql_begin_call(&j->sql);
    j->sql.timeout_ms = timeout_ms;
    enum hf_status status;
    if ((status = db_open(url, &own, &j->sql.db, err)) != HF_OK ||
        (status = prepare(j, err)) != HF_OK ||
        (status = check_safety(j, options->may_lose, err)) != HF_OK ||
        (status = create_schema(j, err)) != HF_OK ||
        (status = db_migrate_part(j->sql.db, "cell", migrations,
                                  sizeof migrations / sizeof *migrations, err)) != HF_OK) {
        status = journal_sql_failure(status, err);
        postgres_close(&j->sql.journal);
        return status;
    }
    *ret = &j->sql.journal;
    return HF_OK;
}

/* ---- calls ---- */

/* A claim that could not lock the row of `head` ends the sessions that keep it and say nothing, so
 * that the next one succeeds. */
static enum journal_result postgres_claim(struct journal *base, const struct journal_mandate *m,
                                          const char *url, struct hf_err *err)
{
    enum journal_result result = journal_sql_claim(base, m, url, err);
    int64_t ended;
    if (result == JOURNAL_UNREACHABLE)
        (void)!ask(of(base)->end_idlers, &ended, 1, NULL);
    return result;
}

static enum hf_status postgres_warnings(struct journal *base, struct buf *ret_lines,
                                        struct hf_err *err)
{
    struct journal_pg *j = of(base);
    int64_t lacks[2] = {0};
    journal_sql_begin_call(&j->sql);
    enum hf_status status = j->sql.db->driver->upkeep.warnings(j->sql.db, ret_lines, err);
    if (status == HF_OK)
        status = ask(j->safety, lacks, 2, err);
    if (status == HF_OK && lacks[0])
        buf_str(ret_lines, "synchronous_standby_names is empty: a standby that takes over may lack"
                           " locks that were acknowledged\n");
    return status;
}

static const char *const schemes[] = {"postgres:", "postgresql:", NULL};

const struct journal_driver journal_postgres = {
    .name = "postgres",
    .schemes = schemes,
    .shared = true,
    .open = postgres_open,
    .close = postgres_close,
    .read = journal_sql_read,
    .claim = postgres_claim,
    .append = journal_sql_append,
    .put_chunk = journal_sql_put_chunk,
    .point = journal_sql_point,
    .load = journal_sql_load,
    .trim = journal_sql_trim,
    .report = journal_sql_report,
    .warnings = postgres_warnings,
};
