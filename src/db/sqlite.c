/* SQLite behind db.h.  WAL with synchronous=FULL: a commit is one fsync of the log, and an
 * acknowledged commit survives kill -9 and power loss (I7).  The writer holds a lock on a file
 * beside the database, so a second server on the same data refuses to start.  Readers have
 * connections of their own and never wait for the writer.
 *
 * db_upkeep.maintain copies the log into the main file, on a thread of its own, so that commits
 * seldom pay for it; engine/keeper.h says when.  Where no such thread runs, the writer does it with
 * the commit that makes the log CHECKPOINT_PAGES longer.  A log that was longer than
 * LOG_FILE_BYTES is cut down to that when it begins anew.
 *
 * Shared connections work differently: see sqlite_shared.h. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/db.h"
#include "db/sqlite_check.h"
#include "db/sqlite_copy.h"
#include "db/sqlite_file.h"
#include "db/sqlite_shared.h"
#include "db/sqlite_vfs.h"
#include "db/template.h"

#define CHECKPOINT_PAGES 131072
#define LOG_FILE_BYTES (32 << 20)
#define CACHE_KIB_DEFAULT 2048
/* Scattered holds touch one page each, so small pages mean fewer bytes in the log.  Of 512, 1024,
 * 2048 and 4096 bytes, 2048 measured best at 100,000 and at 1,000,000 seats. */
#define PAGE_BYTES 2048
#define BUSY_MS 5000
#define NOW_FUNCTION "holdfast_now"
#define SHARED_TIMEOUT_MS 2000

struct sqlite_stmt {
    struct db_stmt stmt;
    struct sqlite *db;
    struct sqlite_stmt *next;
    sqlite3_stmt *handle;
    int n_params;
    const struct db_value *args; /* of the running query */
    size_t row;                  /* of `args`, that is being run */
    size_t n_rows;
};

struct sqlite {
    struct db db;
    sqlite3 *handle;
    struct sqlite_stmt *stmts;
    struct db_stmt *begin, *commit, *rollback;
    const struct clock *clock;
    int64_t offset_ms;  /* ledger time minus boot time */
    int64_t statements; /* run so far */
    int lock_fd;        /* -1: not the writer */
    int log_pages;      /* after the last commit of this connection */
    int checkpoint_at;  /* pages of the log with which a commit copies it */
    bool is_shared;     /* see db_options */
    struct sqlite_shared shared;
};

static const struct template_fragment fragments[] = {
    {"key", "INTEGER PRIMARY KEY"},
    {"bytes", "BLOB"},
    {"clustered", "WITHOUT ROWID"},
    {"hot", ""},
    {"lock", ""},
    {"lock_idle", ""},
    {"share", ""},
    {"now", NOW_FUNCTION "()"},
    {"joined", "group_concat"},
    {"hex", "hex(%)"},
    {"or_surprise", "ON CONFLICT DO NOTHING"},
    {"or_conflict", ""},
    {"may_be_lost", ""},
    {NULL, NULL},
};
static const struct dialect dialect = {.fragments = fragments, .row_at_a_time = true};

/* Sets `err` from an SQLite code: HF_INTERNAL for our own mistakes, and for a damaged file if it is
 * shared (see db_options.shared); HF_STORE_UNAVAILABLE for all else. */
static enum hf_status fail_code(struct sqlite *db, const char *what, int code, struct hf_err *err)
{
    enum hf_status status = HF_STORE_UNAVAILABLE;
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        if (!db->is_shared)
            break;
        __attribute__((fallthrough));
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        status = HF_INTERNAL;
    }
    const char *text = code == sqlite3_extended_errcode(db->handle) ? sqlite3_errmsg(db->handle)
                                                                    : sqlite3_errstr(code);
    return hf_err_set(err, status, "SQLite, %s: %s (%d)", what, text, code);
}

static enum hf_status fail(struct sqlite *db, const char *what, struct hf_err *err)
{
    return fail_code(db, what, sqlite3_extended_errcode(db->handle), err);
}

/* ---- statements ---- */

static enum hf_status sqlite_prepare(struct db *base, const char *sql, struct db_stmt **ret_stmt,
                                     struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    struct buf text = {0};
    struct template_params params;
    sqlite3_stmt *handle = NULL;
    enum hf_status status = template_expand(sql, &dialect, &text, &params, err);
    if (status == HF_OK && sqlite3_prepare_v3(db->handle, text.data, (int)text.len,
                                              SQLITE_PREPARE_PERSISTENT, &handle, NULL))
        status = fail(db, "prepare", err);
    buf_close(&text);
    if (status != HF_OK)
        return status;
    struct sqlite_stmt *stmt = hf_alloc(sizeof *stmt);
    *stmt = (struct sqlite_stmt){.stmt.driver = &db_sqlite,
                                 .db = db,
                                 .next = db->stmts,
                                 .handle = handle,
                                 .n_params = params.n};
    db->stmts = stmt;
    *ret_stmt = &stmt->stmt;
    return HF_OK;
}

/* Binds one row of parameters, before each run of a statement. */
static void bind_row(struct sqlite_stmt *stmt, const struct db_value *args)
{
    stmt->db->statements++;
    for (int i = 0; i < stmt->n_params; i++) {
        const struct db_value *a = &args[i];
        int rc = SQLITE_OK;
        switch (a->type) {
        case DB_NULL:
            rc = sqlite3_bind_null(stmt->handle, i + 1);
            break;
        case DB_INT:
            rc = sqlite3_bind_int64(stmt->handle, i + 1, a->i);
            break;
        case DB_TEXT:
            rc = sqlite3_bind_text(stmt->handle, i + 1, a->data, (int)a->len, SQLITE_STATIC);
            break;
        case DB_BYTES:
            rc = sqlite3_bind_blob(stmt->handle, i + 1, a->data, (int)a->len, SQLITE_STATIC);
            break;
        }
        /* A parameter that is declared and not used has no number in SQLite. */
        hf_check(rc == SQLITE_OK || rc == SQLITE_RANGE);
    }
}

static enum hf_status sqlite_exec_many(struct db_stmt *base, const struct db_value *args,
                                       size_t n_rows, int64_t *ret_changes, struct hf_err *err)
{
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;
    int64_t changes = 0;
    for (size_t row = 0; row < n_rows; row++) {
        bind_row(stmt, stmt->n_params ? args + row * (size_t)stmt->n_params : NULL);
        int rc = sqlite3_step(stmt->handle);
        if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
            enum hf_status status = fail(stmt->db, "execute", err);
            sqlite3_reset(stmt->handle);
            return status;
        }
        sqlite3_reset(stmt->handle);
        changes += sqlite3_changes64(stmt->db->handle);
    }
    if (ret_changes)
        *ret_changes = changes;
    return HF_OK;
}

static enum hf_status sqlite_expect_many(struct db_stmt *base, const char *what,
                                         const struct db_value *args, size_t n_rows,
                                         struct hf_err *err)
{
    int64_t changes = 0;
    enum hf_status status = sqlite_exec_many(base, args, n_rows, &changes, err);
    if (status == HF_OK && changes != (int64_t)n_rows)
        return hf_err_set(err, HF_SURPRISE, "%s", what);
    return status;
}

static enum hf_status sqlite_query_many(struct db_stmt *base, const struct db_value *args,
                                        size_t n_rows, struct hf_err *err)
{
    (void)err;
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;
    sqlite3_reset(stmt->handle);
    stmt->args = args;
    stmt->row = 0;
    stmt->n_rows = n_rows;
    if (n_rows)
        bind_row(stmt, args);
    return HF_OK;
}

static enum db_step sqlite_step(struct db_stmt *base, struct hf_err *err)
{
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;
    while (stmt->row < stmt->n_rows) {
        int rc = sqlite3_step(stmt->handle);
        if (rc == SQLITE_ROW)
            return DB_ROW;
        if (rc != SQLITE_DONE) {
            (void)fail(stmt->db, "read", err);
            sqlite3_reset(stmt->handle);
            stmt->n_rows = 0;
            return DB_FAILED;
        }
        sqlite3_reset(stmt->handle);
        if (++stmt->row < stmt->n_rows)
            bind_row(stmt, stmt->args + stmt->row * (size_t)stmt->n_params);
    }
    return DB_DONE;
}

static int64_t sqlite_column_int(struct db_stmt *base, int column)
{
    return sqlite3_column_int64(((struct sqlite_stmt *)base)->handle, column);
}

static const void *sqlite_column_data(struct db_stmt *base, int column, size_t *ret_len)
{
    sqlite3_stmt *handle = ((struct sqlite_stmt *)base)->handle;
    bool blob = sqlite3_column_type(handle, column) == SQLITE_BLOB;
    const void *data = blob ? sqlite3_column_blob(handle, column)
                            : (const void *)sqlite3_column_text(handle, column);
    *ret_len = (size_t)sqlite3_column_bytes(handle, column);
    return blob && !data ? "" : data; /* SQLite returns NULL for an empty blob, too */
}

static void sqlite_finish(struct db_stmt *base)
{
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;
    sqlite3_reset(stmt->handle);
    stmt->n_rows = 0;
}

static enum hf_status sqlite_script(struct db *base, const char *sql, struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    struct buf text = {0};
    struct template_params params;
    enum hf_status status = template_expand(sql, &dialect, &text, &params, err);
    buf_char(&text, '\0');
    if (status == HF_OK && sqlite3_exec(db->handle, text.data, NULL, NULL, NULL))
        status = fail(db, "script", err);
    buf_close(&text);
    return status;
}

/* ---- transactions ---- */

static enum hf_status begin_shared(struct sqlite *db, struct hf_err *err)
{
    int rc = sqlite_shared_begin(&db->shared);
    switch (rc & 0xff) {
    case SQLITE_OK:
        return HF_OK;
    case SQLITE_BUSY:
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "others have kept the database busy for longer than %lld ms",
                          (long long)(db->shared.timeout_us / 1000));
    default:
        return fail_code(db, "begin", rc, err);
    }
}

static enum hf_status sqlite_begin(struct db *base, struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    return db->is_shared ? begin_shared(db, err) : db_exec(db->begin, NULL, NULL, err);
}

/* SQLite has one writer at a time, which has the locks of all names. */
static enum hf_status sqlite_begin_locked(struct db *base, const struct db_value *names, size_t n,
                                          struct hf_err *err)
{
    (void)names, (void)n;
    return sqlite_begin(base, err);
}

/* A failed write leaves no complete commit frame in the log, and a busy database has not begun to
 * write one: nothing was done.  Any other failure (of the fsync, or of memory for the shared index
 * after it) may leave a commit frame behind that a crash would bring back: the outcome is unknown
 * until another commit overwrites it. */
static enum hf_status sqlite_commit(struct db *base, struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    if (db->is_shared && sqlite_shared_write(&db->shared) != SQLITE_OK)
        return fail(db, "write", err);
    enum hf_status status = db_exec(db->commit, NULL, NULL, err);
    if (status == HF_OK && db->is_shared)
        sqlite_shared_committed(&db->shared);
    int code = sqlite3_extended_errcode(db->handle);
    if (status == HF_STORE_UNAVAILABLE && code != SQLITE_IOERR_WRITE && code != SQLITE_FULL &&
        (code & 0xff) != SQLITE_BUSY)
        return err ? err->code = HF_OUTCOME_UNKNOWN : HF_OUTCOME_UNKNOWN;
    return status;
}

static void sqlite_rollback(struct db *base)
{
    struct sqlite *db = (struct sqlite *)base;
    if (!sqlite3_get_autocommit(db->handle))
        (void)!db_exec(db->rollback, NULL, NULL, NULL);
    sqlite_vfs_forget(db->handle);
}

static int64_t sqlite_exchanges(const struct db *base)
{
    return ((const struct sqlite *)(const void *)base)->statements;
}

/* ---- the log ---- */

static enum hf_status sqlite_maintain(struct db *base, struct db_log *ret, struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    int pages = 0, copied = 0;
    int rc =
        sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    if (rc != SQLITE_OK && rc != SQLITE_BUSY)
        return fail(db, "checkpoint", err);
    if (rc == SQLITE_BUSY || pages < 0)
        pages = copied = 0;
    *ret = (struct db_log){.bytes = (int64_t)pages * PAGE_BYTES,
                           .rest_bytes = (int64_t)(pages - copied) * PAGE_BYTES};
    return HF_OK;
}

static int64_t sqlite_log_bytes(const struct db *base)
{
    return (int64_t)((const struct sqlite *)(const void *)base)->log_pages * PAGE_BYTES;
}

static enum hf_status sqlite_check_room(struct db *base, int64_t bytes, struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    int rc = sqlite_vfs_check_room(db->handle, bytes);
    return rc == SQLITE_OK ? HF_OK : fail_code(db, "room on the disk", rc, err);
}

/* SQLite calls this after each commit.  If the log cannot be copied now, the next commits do not
 * all try again: each attempt has to look at the whole log. */
static int committed(void *context, sqlite3 *handle, const char *name, int pages)
{
    struct sqlite *db = context;
    (void)handle, (void)name;
    if (pages < db->log_pages)
        db->checkpoint_at = CHECKPOINT_PAGES;
    db->log_pages = pages;
    if (pages >= db->checkpoint_at) {
        struct db_log log;
        db->checkpoint_at = pages + CHECKPOINT_PAGES;
        (void)!sqlite_maintain(&db->db, &log, NULL); /* the commit has succeeded in any case */
    }
    return SQLITE_OK;
}

static enum hf_status sqlite_sizes(struct db *base, struct db_sizes *ret, struct hf_err *err)
{
    return sqlite_file_sizes(sqlite3_db_filename(((struct sqlite *)base)->handle, "main"), ret,
                             err);
}

/* ---- time: the wall clock when the connection was opened, advanced by the boot-time clock ---- */

static int64_t boot_ms(const struct sqlite *db) { return clock_boot_us(db->clock) / 1000; }

static enum hf_status sqlite_now_ms(struct db *base, int64_t *ret_ms, struct hf_err *err)
{
    (void)err;
    struct sqlite *db = (struct sqlite *)base;
    *ret_ms = db->is_shared ? sqlite_shared_now_ms(&db->shared) : boot_ms(db) + db->offset_ms;
    return HF_OK;
}

/* What {now} calls. */
static void now_function(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n, (void)values;
    int64_t now = 0;
    (void)!sqlite_now_ms(sqlite3_user_data(context), &now, NULL);
    sqlite3_result_int64(context, now);
}

static void sqlite_now_floor(struct db *base, int64_t ms)
{
    struct sqlite *db = (struct sqlite *)base;
    if (boot_ms(db) + db->offset_ms < ms)
        db->offset_ms = ms - boot_ms(db);
}

static int64_t sqlite_number(struct db *base)
{
    return sqlite_shared_number(&((struct sqlite *)base)->shared);
}

/* A file on one machine has no settings to warn of. */
static enum hf_status sqlite_warnings(struct db *base, struct buf *ret_lines, struct hf_err *err)
{
    (void)base, (void)ret_lines, (void)err;
    return HF_OK;
}

/* ---- the other connections of a shared database ---- */

static bool sqlite_is_gone(struct db *base)
{
    return sqlite_shared_has_moved(&((struct sqlite *)base)->shared);
}

/* Returns after CHECK_EVERY_US at the latest, so wake_fd need not be watched. */
static enum hf_status sqlite_await(struct db *base, int64_t number, int wake_fd, int64_t timeout_ms,
                                   struct hf_err *err)
{
    (void)wake_fd, (void)err;
    sqlite_shared_await(&((struct sqlite *)base)->shared, number, timeout_ms);
    return HF_OK;
}

static void sqlite_wake(struct db *base, const struct db_wake *wakes, size_t n)
{
    sqlite_shared_wake(&((struct sqlite *)base)->shared, wakes, n);
}

/* ---- opening ---- */

/* Where a database is. */
struct location {
    char path[4096];
    const char *vfs; /* name of one of SQLite's file systems; NULL: the default */
};

/* sqlite:PATH or sqlite:PATH?vfs=NAME */
static enum hf_status parse_url(const char *url, struct location *ret, struct hf_err *err)
{
    static const char vfs_key[] = "?vfs=";
    const char *path = strchr(url, ':') + 1, *vfs = strstr(path, vfs_key);
    size_t len = vfs ? (size_t)(vfs - path) : strlen(path);
    if (len == 0 || len >= sizeof ret->path)
        return hf_err_set(err, HF_INVALID_REQUEST, "sqlite: wants a path of 1 to 4095 bytes");
    memcpy(ret->path, path, len);
    ret->path[len] = '\0';
    ret->vfs = vfs ? vfs + sizeof vfs_key - 1 : NULL;
    return HF_OK;
}

static int64_t shared_timeout_ms(const struct db_options *options)
{
    return options->timeout_ms ? options->timeout_ms : SHARED_TIMEOUT_MS;
}

static enum hf_status create_shared(const struct location *at, const struct db_options *options,
                                    struct hf_err *err)
{
    int failed = sqlite_shared_create(at->path, options->clock, shared_timeout_ms(options));
    if (failed)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot create the database %s: %s", at->path,
                          strerror(failed));
    return sqlite_file_trust(at->path, err);
}

/* Our file system gathers the log's writes until they are synced.  Those of a shared database are
 * not synced, and other processes are to read them at once, so it is opened without. */
static enum hf_status open_handle(struct sqlite *db, const struct location *at,
                                  const struct db_options *options, struct hf_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (options->writer)
        flags |= SQLITE_OPEN_CREATE;
    const char *vfs = options->shared ? at->vfs : sqlite_vfs_register(at->vfs);
    if (!vfs && !options->shared)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "SQLite has no such file system");
    if (sqlite3_open_v2(at->path, &db->handle, flags, vfs))
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot open the database %s: %s", at->path,
                          sqlite3_errmsg(db->handle));
    /* SQLite opens a file that it may not write to for reading; a waiter for a lease would then
     * wait for ever. */
    if (options->shared && sqlite3_db_readonly(db->handle, "main") == 1)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "may not write to the database %s", at->path);
    return HF_OK;
}

/* Called once per process, before its first connection: turns off SQLite's counting of memory,
 * whose mutex every allocation would take.  It has no effect, and does no harm, if SQLite is in use
 * already. */
static void configure_process(void) { (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

static int configure_unshared(struct sqlite *db, const struct db_options *options)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "PRAGMA busy_timeout=%d; PRAGMA cache_size=-%d; PRAGMA temp_store=MEMORY;"
             "PRAGMA page_size=%d;%s"
             "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=%d;",
             BUSY_MS, options->cache_kib ? options->cache_kib : CACHE_KIB_DEFAULT, PAGE_BYTES,
             options->writer ? "PRAGMA journal_mode=WAL;" : "", LOG_FILE_BYTES);
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL))
        return sqlite3_extended_errcode(db->handle);
    (void)sqlite3_wal_hook(db->handle, committed, db);
    return SQLITE_OK;
}

static enum hf_status configure(struct sqlite *db, const struct db_options *options,
                                struct hf_err *err)
{
    int rc = db->is_shared ? sqlite_shared_open(&db->shared, db->handle, db->clock,
                                                shared_timeout_ms(options))
                           : configure_unshared(db, options);
    if (rc == SQLITE_OK)
        rc = sqlite_check_harden(db->handle);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(db->handle, NOW_FUNCTION, 0, SQLITE_UTF8, db, now_function,
                                     NULL, NULL);
    if (rc != SQLITE_OK)
        return fail_code(db, "configure", rc, err);
    if (options->hurry)
        sqlite_vfs_pace(db->handle, options->hurry);
    const struct {
        struct db_stmt **stmt;
        const char *sql;
    } own[] = {{&db->begin, options->writer ? "BEGIN IMMEDIATE" : "BEGIN"},
               {&db->commit, "COMMIT"},
               {&db->rollback, "ROLLBACK"}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        enum hf_status status = sqlite_prepare(&db->db, own[i].sql, own[i].stmt, err);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* ---- whole files ---- */

static enum hf_status sqlite_check_file(struct db *base, int64_t limit_ms, struct buf *ret_lines,
                                        bool *ret_whole, struct hf_err *err)
{
    struct sqlite *db = (struct sqlite *)base;
    int rc = sqlite_check_pages(db->handle, limit_ms, ret_lines, ret_whole);
    return rc == SQLITE_OK ? HF_OK : fail_code(db, "integrity_check", rc, err);
}

static enum hf_status sqlite_copy_file(struct db *base, const char *path, struct hf_err *err)
{
    return sqlite_copy_pages(((struct sqlite *)base)->handle, path, err);
}

static enum hf_status sqlite_put_file(const char *url, const char *new_path, const char *aside,
                                      struct hf_err *err)
{
    struct location at = {0};
    enum hf_status status = parse_url(url, &at, err);
    return status == HF_OK ? sqlite_copy_put(at.path, new_path, aside, err) : status;
}

static void sqlite_close(struct db *base)
{
    struct sqlite *db = (struct sqlite *)base;
    if (!db)
        return;
    for (struct sqlite_stmt *stmt = db->stmts, *next; stmt; stmt = next) {
        next = stmt->next;
        sqlite3_finalize(stmt->handle);
        free(stmt);
    }
    sqlite_shared_close(&db->shared);
    sqlite3_close(db->handle);
    if (db->lock_fd >= 0)
        close(db->lock_fd);
    free(db);
}

static enum hf_status sqlite_open(const char *url, const struct db_options *options,
                                  struct db **ret_db, struct hf_err *err)
{
    static pthread_once_t configured = PTHREAD_ONCE_INIT;
    struct location at = {0};
    enum hf_status status = parse_url(url, &at, err);
    if (status != HF_OK)
        return status;
    pthread_once(&configured, configure_process);
    struct sqlite *db = hf_alloc(sizeof *db);
    *db = (struct sqlite){.db.driver = &db_sqlite,
                          .clock = options->clock,
                          .lock_fd = -1,
                          .checkpoint_at = CHECKPOINT_PAGES,
                          .is_shared = options->shared};
    db->offset_ms = clock_wall_us(db->clock) / 1000 - boot_ms(db);
    if ((options->writer && (status = sqlite_file_own(at.path, &db->lock_fd, err)) != HF_OK) ||
        (options->shared && (status = create_shared(&at, options, err)) != HF_OK) ||
        (status = open_handle(db, &at, options, err)) != HF_OK ||
        (status = configure(db, options, err)) != HF_OK) {
        sqlite_close(&db->db);
        return status;
    }
    *ret_db = &db->db;
    return HF_OK;
}

static const struct db_file file = {
    .await = sqlite_await,
    .check_room = sqlite_check_room,
    .check = sqlite_check_file,
    .copy = sqlite_copy_file,
    .put = sqlite_put_file,
};

const struct db_driver db_sqlite = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .prepare = sqlite_prepare,
    .script = sqlite_script,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .exec_many = sqlite_exec_many,
    .expect_many = sqlite_expect_many,
    .query_many = sqlite_query_many,
    .step = sqlite_step,
    .column_int = sqlite_column_int,
    .column_data = sqlite_column_data,
    .finish = sqlite_finish,
    .now_ms = sqlite_now_ms,
    .now_floor = sqlite_now_floor,
    .sharing = {.begin_locked = sqlite_begin_locked,
                .number = sqlite_number,
                .is_gone = sqlite_is_gone,
                .wake = sqlite_wake},
    .upkeep = {.warnings = sqlite_warnings,
               .exchanges = sqlite_exchanges,
               .maintain = sqlite_maintain,
               .log_bytes = sqlite_log_bytes,
               .sizes = sqlite_sizes},
    .file = &file,
};
