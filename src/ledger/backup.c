/* See backup.h.  restore.c has the changes that a restored ledger needs. */
#include "ledger/backup.h"

#include <string.h>

#include "ledger/copy_rows.h"
#include "ledger/ledger_internal.h"
#include "ledger/schema_check.h"

#define FILE_SCHEME "sqlite:"
/* Servers, and commands such as `verify`: the name that their connections give themselves. */
#define OTHER_SESSIONS                                                                             \
    "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()"                     \
    " AND application_name = 'holdfast' AND pid <> pg_backend_pid()"

const char *ledger_file(const char *url)
{
    size_t len = sizeof FILE_SCHEME - 1;
    return strncmp(url, FILE_SCHEME, len) == 0 ? url + len : NULL;
}

static void put_file_url(struct buf *b, const char *path)
{
    buf_str(b, FILE_SCHEME);
    buf_str(b, path);
    buf_char(b, '\0');
}

static enum hf_status read_number(struct db *db, const char *sql, int64_t *ret, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = db->driver->prepare(db, sql, &stmt, err);
    if (status == HF_OK)
        status = db_query(stmt, NULL, err);
    if (status != HF_OK)
        return status;
    if (db_step(stmt, err) != DB_ROW)
        return HF_STORE_UNAVAILABLE;
    *ret = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return HF_OK;
}

static enum hf_status read_size(struct db *db, struct ledger_size *size, struct hf_err *err)
{
    struct db_sizes sizes;
    enum hf_status status = db_schema_version(db, &size->version, err);
    if (status == HF_OK)
        status = db->driver->upkeep.sizes(db, &sizes, err);
    if (status == HF_OK)
        size->bytes = sizes.database_bytes + sizes.log_bytes;
    if (status == HF_OK && size->version > 0)
        status = read_number(db, "SELECT COUNT(*) FROM events", &size->events, err);
    if (status == HF_OK && size->version > 0)
        status =
            read_number(db, "SELECT COALESCE(MAX(now), 0) FROM event_clock", &size->as_of, err);
    return status;
}

enum hf_status ledger_size_read(const char *url, const struct clock *clock, struct ledger_size *ret,
                                struct hf_err *err)
{
    struct ledger_size size = {0};
    struct db *db = NULL;
    enum hf_status status = db_open(url, &(struct db_options){.clock = clock}, &db, err);
    if (status == HF_OK)
        status = read_size(db, &size, err);
    if (status == HF_OK)
        *ret = size;
    db_close(db);
    return status;
}

/* ---- rows into a file ---- */

static enum hf_status commit_and_begin(struct db *db, struct hf_err *err)
{
    enum hf_status status = db->driver->commit(db, err);
    return status == HF_OK ? db->driver->begin(db, err) : status;
}

static enum hf_status check_version(struct db *db, struct hf_err *err)
{
    int64_t version;
    enum hf_status status = db_schema_version(db, &version, err);
    if (status != HF_OK || version == ledger_migrations_len)
        return status;
    return hf_err_set(err, HF_STORE_UNAVAILABLE,
                      "the ledger is of schema version %lld, and this program copies %d",
                      (long long)version, ledger_migrations_len);
}

/* A file in the making needs no transaction; commits keep its log short. */
static enum hf_status fill_file(struct db *from, int64_t version, struct db *file,
                                struct hf_err *err)
{
    enum hf_status status = ledger_migrate(file, (int)version, err);
    if (status == HF_OK)
        status = file->driver->begin(file, err);
    if (status == HF_OK)
        status = clear_rows(file, file, err);
    if (status == HF_OK)
        status = copy_rows(from, file, file, commit_and_begin, err);
    if (status == HF_OK)
        status = file->driver->commit(file, err);
    if (status == HF_OK) /* one file, without a log beside it */
        status = file->driver->script(file, "PRAGMA journal_mode=DELETE", err);
    return status;
}

/* Copies the rows of one snapshot into the empty file `path`. */
static enum hf_status copy_into_file(struct db *from, int64_t version, const char *path,
                                     const struct clock *clock, struct hf_err *err)
{
    struct buf url = {0};
    struct db *file = NULL;
    enum hf_status status;
    put_file_url(&url, path);
    if ((status = db_open(url.data, &(struct db_options){.clock = clock, .writer = true}, &file,
                          err)) == HF_OK &&
        (status = from->driver->begin(from, err)) == HF_OK)
        status = fill_file(from, version, file, err);
    from->driver->rollback(from);
    db_close(file);
    buf_close(&url);
    return status;
}

static enum hf_status backup_rows(struct db *from, const char *path, const struct clock *clock,
                                  struct hf_err *err)
{
    enum hf_status status = check_version(from, err);
    return status == HF_OK ? copy_into_file(from, ledger_migrations_len, path, clock, err) : status;
}

enum hf_status ledger_backup(const char *url, const char *path, const struct clock *clock,
                             struct hf_err *err)
{
    struct db *db = NULL;
    enum hf_status status = db_open(url, &(struct db_options){.clock = clock}, &db, err);
    if (status == HF_OK)
        status = db->driver->file ? db->driver->file->copy(db, path, err)
                                  : backup_rows(db, path, clock, err);
    db_close(db);
    return status;
}

/* ---- unpacking a backup ---- */

static enum hf_status open_backup(const char *path, const struct clock *clock, struct db **ret,
                                  int64_t *ret_version, struct hf_err *err)
{
    struct buf url = {0};
    struct db *db = NULL;
    put_file_url(&url, path);
    enum hf_status status = db_open(url.data, &(struct db_options){.clock = clock}, &db, err);
    buf_close(&url);
    if (status == HF_OK)
        status = db_schema_version(db, ret_version, err);
    if (status == HF_OK && *ret_version == 0)
        status = hf_err_set(err, HF_STORE_UNAVAILABLE, "there is no ledger in it");
    if (status == HF_OK && *ret_version > ledger_migrations_len)
        status = hf_err_set(err, HF_STORE_UNAVAILABLE,
                            "it is of schema version %lld, newer than this program's %d",
                            (long long)*ret_version, ledger_migrations_len);
    if (status != HF_OK) {
        db_close(db);
        return status;
    }
    *ret = db;
    return HF_OK;
}

struct inspection {
    void (*left)(const char *object);
    struct schema_difference fault; /* the first that cannot be left behind */
    bool has_fault;
};

/* An index or the like is made anew. */
static void on_difference(void *ctx, const struct schema_difference *difference)
{
    struct inspection *i = ctx;
    if (difference->is_of_table && !i->has_fault) {
        i->fault = *difference;
        i->has_fault = true;
    } else if (difference->fault == SCHEMA_FOREIGN) {
        i->left(difference->object);
    }
}

static enum hf_status inspect(struct db *db, int64_t version, const struct clock *clock,
                              struct inspection *i, struct hf_err *err)
{
    struct buf damage = {0};
    bool is_whole;
    int64_t objects;
    enum hf_status status = schema_compare(db, clock, version, on_difference, i, &objects, err);
    if (status == HF_OK && i->has_fault)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "its %s %s", i->fault.object,
                          schema_fault_text(i->fault.fault));
    if (status == HF_OK)
        status = db->driver->file->check(db, 0, &damage, &is_whole, err);
    if (status == HF_OK && damage.len) {
        damage.data[strcspn(damage.data, "\n")] = '\0';
        status = hf_err_set(err, HF_STORE_UNAVAILABLE, "it is damaged: %.160s", damage.data);
    }
    buf_close(&damage);
    return status;
}

enum hf_status ledger_inspect(const char *path, const struct clock *clock,
                              void (*left)(const char *object), struct hf_err *err)
{
    struct inspection i = {.left = left};
    struct db *db = NULL;
    int64_t version;
    enum hf_status status = open_backup(path, clock, &db, &version, err);
    if (status == HF_OK)
        status = inspect(db, version, clock, &i, err);
    db_close(db);
    return status;
}

enum hf_status ledger_unpack(const char *backup, const char *path, const struct clock *clock,
                             struct hf_err *err)
{
    struct db *db = NULL;
    int64_t version;
    enum hf_status status = open_backup(backup, clock, &db, &version, err);
    if (status == HF_OK)
        status = copy_into_file(db, version, path, clock, err);
    db_close(db);
    return status;
}

/* ---- putting a ledger in its place ---- */

/* In one transaction: whoever looks sees the old rows or the new ones, also after a crash. */
static enum hf_status replace_rows(struct db *to, struct db *file, struct hf_err *err)
{
    int64_t others;
    enum hf_status status = read_number(to, OTHER_SESSIONS, &others, err);
    if (status != HF_OK)
        return status;
    if (others > 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "%lld connections of Holdfast use this database; stop its servers first",
                          (long long)others);
    if ((status = to->driver->begin(to, err)) == HF_OK &&
        (status = clear_rows(to, file, err)) == HF_OK &&
        (status = copy_rows(file, to, file, NULL, err)) == HF_OK)
        status = to->driver->commit(to, err);
    to->driver->rollback(to);
    return status;
}

static enum hf_status replace_in_database(const char *url, const char *path,
                                          const struct clock *clock, struct hf_err *err)
{
    struct buf file_url = {0};
    struct db *file = NULL;
    struct ledger *to = NULL; /* a writer: it brings the schema up to date */
    enum hf_status status;
    put_file_url(&file_url, path);
    if ((status = db_open(file_url.data, &(struct db_options){.clock = clock}, &file, err)) ==
            HF_OK &&
        (status = ledger_open(url, &(struct db_options){.clock = clock, .writer = true}, &to,
                              err)) == HF_OK)
        status = replace_rows(to->db, file, err);
    ledger_close(to);
    db_close(file);
    buf_close(&file_url);
    return status;
}

enum hf_status ledger_replace(const char *url, const char *path, const char *aside,
                              const struct clock *clock, struct hf_err *err)
{
    return ledger_file(url) ? db_sqlite.file->put(url, path, aside, err)
                            : replace_in_database(url, path, clock, err);
}
