/* What both databases share: the choice of a driver by URL, and schema migrations. */
#include "db/db.h"

#include <string.h>

#include "base/crash.h"
#include "net/pg_url.h"

/* libholdfast can be built without either of them. */
static const struct db_driver *const drivers[] = {
#ifndef HF_WITHOUT_SQLITE
    &db_sqlite,
#endif
#ifndef HF_WITHOUT_POSTGRES
    &db_postgres,
#endif
};

static bool has_scheme(const char *url, const char *scheme)
{
    size_t len = scheme ? strlen(scheme) : 0;
    return len && strncmp(url, scheme, len) == 0 && url[len] == ':';
}

enum hf_status db_open(const char *url, const struct db_options *options, struct db **ret_db,
                       struct hf_err *err)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (has_scheme(url, drivers[i]->name) || has_scheme(url, drivers[i]->other_name))
            return drivers[i]->open(url, options, ret_db, err);
    return hf_err_set(err, HF_INVALID_REQUEST,
                      "the database's URL %s: it is sqlite:PATH or " PG_URL_FORM,
                      *url ? "begins with neither sqlite: nor postgres://" : "is empty");
}

/* The statements about stored versions.  The main schema has a table of its own, which is older
 * than that of the parts. */
struct version_statements {
    const char *create, *read, *insert;
};
static const struct version_statements main_versions = {
    "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)",
    "SELECT COALESCE(MAX(version), 0) FROM schema_version{args(part text)}",
    "INSERT INTO schema_version (version) VALUES (r.version){args(part text, version bigint)}",
};
static const struct version_statements part_versions = {
    "CREATE TABLE IF NOT EXISTS part_version (part text NOT NULL, version bigint NOT NULL)",
    "SELECT COALESCE(MAX(version), 0) FROM part_version WHERE part = r.part{args(part text)}",
    "INSERT INTO part_version (part, version) VALUES (r.part, r.version)"
    "{args(part text, version bigint)}",
};

struct migration {
    struct db *db;
    const char *part;
    struct db_stmt *read, *insert;
};

static enum hf_status version_read(const struct migration *m, int64_t *ret_version,
                                   struct hf_err *err)
{
    const struct db_value args[] = {db_text(m->part, strlen(m->part))};
    enum hf_status status = db_query(m->read, args, err);
    if (status != HF_OK)
        return status;
    if (db_step(m->read, err) != DB_ROW)
        return HF_STORE_UNAVAILABLE;
    *ret_version = db_column_int(m->read, 0);
    m->read->driver->finish(m->read);
    return HF_OK;
}

static enum hf_status migration_begin(struct db *db, struct hf_err *err)
{
    enum hf_status status = db->driver->begin(db, err);
    if (status == HF_OK && db->driver->migration_lock)
        status = db->driver->script(db, db->driver->migration_lock, err);
    return status;
}

static enum hf_status migration_end(struct db *db, enum hf_status status, struct hf_err *err)
{
    if (status == HF_OK)
        status = db->driver->commit(db, err);
    if (status != HF_OK)
        db->driver->rollback(db);
    return status;
}

/* Creates the table of versions.  Two processes may both find none: where transactions alone do not
 * keep them apart, the migration lock does. */
static enum hf_status create_versions(struct db *db, const char *sql, struct hf_err *err)
{
    if (!db->driver->migration_lock)
        return db->driver->script(db, sql, err);
    enum hf_status status = migration_begin(db, err);
    if (status == HF_OK)
        status = db->driver->script(db, sql, err);
    return migration_end(db, status, err);
}

/* The version is read again inside of the transaction, so that of several processes that open a new
 * database one migrates it. */
static enum hf_status migrate_to(const struct migration *m, int version, const char *sql,
                                 struct hf_err *err)
{
    struct db *db = m->db;
    const struct db_value args[] = {db_text(m->part, strlen(m->part)), db_int(version)};
    int64_t before = 0;
    enum hf_status status;
    if ((status = migration_begin(db, err)) == HF_OK &&
        (status = version_read(m, &before, err)) == HF_OK && before < version &&
        (status = db->driver->script(db, sql, err)) == HF_OK)
        status = db_exec(m->insert, args, NULL, err);
    CRASH_POINT(migration_before_commit);
    return migration_end(db, status, err);
}

/* As migrate_to, for a database that has no version yet; another one is left as it is. */
static enum hf_status create_at(const struct migration *m, int version, const char *sql,
                                struct hf_err *err)
{
    int64_t before = 0;
    enum hf_status status = version_read(m, &before, err);
    return status == HF_OK && before == 0 ? migrate_to(m, version, sql, err) : status;
}

/* Reads the version if the table of versions exists, without creating it: on a server, a user who
 * may use the tables need not have the right to create them. */
static enum hf_status look_first(struct migration *m, const struct version_statements *versions)
{
    int64_t version;
    if (!m->db->driver->migration_lock)
        return HF_INTERNAL;
    enum hf_status status = m->db->driver->prepare(m->db, versions->read, &m->read, NULL);
    return status == HF_OK ? version_read(m, &version, NULL) : status;
}

static enum hf_status migrate(struct db *db, const struct version_statements *versions,
                              const char *part, const char *const *migrations, int n,
                              const char *whole, struct hf_err *err)
{
    struct migration m = {.db = db, .part = part};
    int64_t version;
    enum hf_status status;
    if ((look_first(&m, versions) != HF_OK &&
         (status = create_versions(db, versions->create, err)) != HF_OK) ||
        (!m.read && (status = db->driver->prepare(db, versions->read, &m.read, err)) != HF_OK) ||
        (status = db->driver->prepare(db, versions->insert, &m.insert, err)) != HF_OK ||
        (whole && (status = create_at(&m, n, whole, err)) != HF_OK) ||
        (status = version_read(&m, &version, err)) != HF_OK)
        return status;
    if (version > n)
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "the data is of schema version %lld, newer than this program's %d",
                          (long long)version, n);
    /* Others may migrate at the same time, and be ahead. */
    while (version < n) {
        if ((status = migrate_to(&m, (int)version + 1, migrations[version], err)) != HF_OK ||
            (status = version_read(&m, &version, err)) != HF_OK)
            return status;
    }
    return HF_OK;
}

enum hf_status db_schema_version(struct db *db, int64_t *ret_version, struct hf_err *err)
{
    struct migration m = {.db = db, .part = ""};
    struct hf_err why = {0};
    if (db->driver->prepare(db, main_versions.read, &m.read, &why) == HF_OK &&
        version_read(&m, ret_version, &why) == HF_OK)
        return HF_OK;
    if (why.code != HF_INTERNAL)
        return hf_err_set(err, why.code, "%s", why.msg);
    *ret_version = 0; /* no such table */
    return HF_OK;
}

enum hf_status db_migrate(struct db *db, const char *const *migrations, int n, struct hf_err *err)
{
    return migrate(db, &main_versions, "", migrations, n, NULL, err);
}

enum hf_status db_create(struct db *db, const char *whole, const char *const *migrations, int n,
                         struct hf_err *err)
{
    return migrate(db, &main_versions, "", migrations, n, db->driver->many_writers ? NULL : whole,
                   err);
}

enum hf_status db_migrate_part(struct db *db, const char *part, const char *const *migrations,
                               int n, struct hf_err *err)
{
    return migrate(db, &part_versions, part, migrations, n, NULL, err);
}
