/* The journal in an SQLite file, for one server: journal_sql.c over the connection that writes,
 * which keeps an exclusive lock beside the file.  An append is one transaction and one fsync of
 * SQLite's log.
 *
 * The log is copied into the file on a thread and a connection of its own, so that appends do not
 * wait for it.  The thread begins when the log has LOG_COPY_BYTES, and goes on until it has all but
 * LOG_REST_BYTES; the next write copies those, which takes it a few milliseconds, and begins the
 * log anew.  Should the thread not keep up, a write copies the whole log at LOG_MAX_BYTES: it is
 * bounded, unless another program reads the file in one long transaction.
 *
 * Reports are kept in memory: there is no other server to read them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/wait.h"
#include "cell/journal_sql.h"

#define LOG_COPY_BYTES (8 << 20)
#define LOG_HURRY_BYTES (24 << 20)
#define LOG_MAX_BYTES (96 << 20)
#define LOG_REST_BYTES (512 << 10)
#define AGAIN_US 20000 /* after an attempt that did not come to the end of the log */

static const char *const migrations[] = {
    "CREATE TABLE head ("
    "  one {key} CHECK (one = 1), epoch bigint NOT NULL, claim {bytes} NOT NULL,"
    "  url text NOT NULL, snapshot bigint NOT NULL, snapshot_chunks bigint NOT NULL,"
    "  older bigint NOT NULL);"
    "INSERT INTO head VALUES (1, 0, x'', '', 0, 0, 0);"
    "CREATE TABLE entries (idx {key}, id {bytes} NOT NULL, data {bytes} NOT NULL);"
    "CREATE TABLE chunks ("
    "  idx bigint NOT NULL, part bigint NOT NULL, data {bytes} NOT NULL, PRIMARY KEY (idx, part));",
};
#define REPORTS                                                                                    \
    "CREATE TEMP TABLE servers (url text NOT NULL PRIMARY KEY, idx bigint NOT NULL,"               \
    " beat bigint NOT NULL)"

struct journal_file {
    struct journal_sql sql;
    struct db *copier; /* the thread's connection */
    pthread_t thread;
    bool has_thread;
    atomic_bool hurry;  /* see db_options */
    atomic_bool copied; /* all but LOG_REST_BYTES; the next write copies the rest */
    int64_t copy_at;    /* bytes of the log at which a write copies it whole */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;
    bool is_long; /* the log has LOG_COPY_BYTES */
    bool stopping;
};

static struct journal_file *of(struct journal *j) { return (struct journal_file *)(void *)j; }

/* ---- the log ---- */

/* Returns false, after a warning, if the log could not be copied. */
static bool copy_log(struct db *db, struct db_log *ret)
{
    struct hf_err err = {0};
    if (db->driver->upkeep.maintain(db, ret, &err) == HF_OK)
        return true;
    log_write(LOG_WARN, "the journal's log was not copied", "why", err.msg, NULL);
    return false;
}

static void *copier_main(void *arg)
{
    struct journal_file *j = arg;
    struct db_log log = {0};
    pthread_mutex_lock(&j->lock);
    while (!j->stopping) {
        if (!j->is_long || atomic_load(&j->copied)) {
            pthread_cond_wait(&j->wake, &j->lock);
            continue;
        }
        pthread_mutex_unlock(&j->lock);
        bool done = copy_log(j->copier, &log) && log.rest_bytes <= LOG_REST_BYTES;
        pthread_mutex_lock(&j->lock);
        if (done)
            atomic_store(&j->copied, true);
        else
            (void)wait_cond_until(&j->wake, &j->lock, wait_now_us() + AGAIN_US);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static void set_long(struct journal_file *j, bool is_long)
{
    if (j->is_long == is_long) /* only this thread writes it */
        return;
    pthread_mutex_lock(&j->lock);
    j->is_long = is_long;
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
}

/* After every write.  No system call while the log is short. */
static enum journal_result keep_log(struct journal *base, enum journal_result result)
{
    struct journal_file *j = of(base);
    struct db *db = j->sql.db;
    struct db_log log;
    int64_t bytes = db->driver->upkeep.log_bytes(db);
    atomic_store(&j->hurry, bytes >= LOG_HURRY_BYTES);
    set_long(j, bytes >= LOG_COPY_BYTES);
    if (bytes < LOG_COPY_BYTES) {
        j->copy_at = LOG_MAX_BYTES;
    } else if (atomic_load(&j->copied) || bytes >= j->copy_at) {
        /* A reader may need the log: then another LOG_MAX_BYTES pass until the next attempt. */
        j->copy_at = bytes + LOG_MAX_BYTES;
        (void)copy_log(db, &log);
        atomic_store(&j->copied, false);
    }
    return result;
}

/* ---- opening ---- */

static void sqlite_close(struct journal *base)
{
    struct journal_file *j = of(base);
    if (!j)
        return;
    if (j->has_thread) {
        pthread_mutex_lock(&j->lock);
        j->stopping = true;
        pthread_cond_signal(&j->wake);
        pthread_mutex_unlock(&j->lock);
        atomic_store(&j->hurry, true);
        pthread_join(j->thread, NULL);
    }
    db_close(j->copier);
    journal_sql_close(&j->sql);
    pthread_cond_destroy(&j->wake);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static enum hf_status start_copier(struct journal_file *j, const char *url,
                                   const struct journal_options *options, struct hf_err *err)
{
    struct db_options own = {.clock = options->clock, .hurry = &j->hurry};
    enum hf_status status = db_open(url, &own, &j->copier, err);
    if (status != HF_OK)
        return status;
    if (pthread_create(&j->thread, NULL, copier_main, j) != 0)
        return hf_err_set(err, HF_INTERNAL, "no thread for the journal's log");
    j->has_thread = true;
    return HF_OK;
}

/* What the log has is copied first.  If the last process ended after a failed fsync, parts of it
 * may be in the system's memory and nowhere else; the copy is synced anew. */
static enum hf_status sqlite_open(const char *url, const struct journal_options *options,
                                  struct journal **ret, struct hf_err *err)
{
    struct journal_file *j = hf_alloc(sizeof *j);
    struct db_log log;
    j->sql.journal.driver = &journal_sqlite;
    j->copy_at = LOG_MAX_BYTES;
    pthread_mutex_init(&j->lock, NULL);
    wait_cond_init(&j->wake);
    struct db_options own = journal_sql_options(&j->sql, options);
    enum hf_status status;
    if ((status = db_open(url, &own, &j->sql.db, err)) != HF_OK ||
        (status = j->sql.db->driver->upkeep.maintain(j->sql.db, &log, err)) != HF_OK ||
        (status = db_migrate_part(j->sql.db, "cell", migrations,
                                  sizeof migrations / sizeof *migrations, err)) != HF_OK ||
        (status = j->sql.db->driver->script(j->sql.db, REPORTS, err)) != HF_OK ||
        (status = journal_sql_prepare(&j->sql, err)) != HF_OK ||
        (status = start_copier(j, url, options, err)) != HF_OK) {
        status = journal_sql_failure(status, err);
        sqlite_close(&j->sql.journal);
        return status;
    }
    *ret = &j->sql.journal;
    return HF_OK;
}

/* ---- calls ---- */

static enum journal_result sqlite_claim(struct journal *j, const struct journal_mandate *m,
                                        const char *url, struct hf_err *err)
{
    return keep_log(j, journal_sql_claim(j, m, url, err));
}

static enum journal_result sqlite_append(struct journal *j, const struct journal_mandate *m,
                                         int64_t index, const uint8_t id[JOURNAL_ID_SIZE],
                                         const void *data, size_t len, struct hf_err *err)
{
    return keep_log(j, journal_sql_append(j, m, index, id, data, len, err));
}

static enum journal_result sqlite_put_chunk(struct journal *j, const struct journal_mandate *m,
                                            int64_t index, int64_t no, const void *data, size_t len,
                                            struct hf_err *err)
{
    return keep_log(j, journal_sql_put_chunk(j, m, index, no, data, len, err));
}

static enum journal_result sqlite_point(struct journal *j, const struct journal_mandate *m,
                                        int64_t index, int64_t n_chunks, struct hf_err *err)
{
    return keep_log(j, journal_sql_point(j, m, index, n_chunks, err));
}

static enum journal_result sqlite_trim(struct journal *j, const struct journal_mandate *m,
                                       bool *ret_more, struct hf_err *err)
{
    return keep_log(j, journal_sql_trim(j, m, ret_more, err));
}

/* Every commit that stored something has waited for one fsync of the log. */
static int64_t sqlite_syncs(const struct journal *j)
{
    return ((const struct journal_file *)(const void *)j)->sql.commits;
}

static const char *const schemes[] = {"sqlite:", NULL};

const struct journal_driver journal_sqlite = {
    .name = "sqlite",
    .schemes = schemes,
    .shared = false,
    .open = sqlite_open,
    .close = sqlite_close,
    .read = journal_sql_read,
    .claim = sqlite_claim,
    .append = sqlite_append,
    .put_chunk = sqlite_put_chunk,
    .point = sqlite_point,
    .load = journal_sql_load,
    .trim = sqlite_trim,
    .report = journal_sql_report,
    .syncs = sqlite_syncs,
};
