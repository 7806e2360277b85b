/* Drivers by URL, and schema migrations: what every database shares. */
#include "db/db.h"

#include <string.h>

static const struct db_driver *const drivers[] = {&db_sqlite};

enum hf_status db_open(const char *url, const struct db_options *options, struct db **ret_db,
                       struct hf_err *err)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        size_t len = strlen(drivers[i]->name);
        if (strncmp(url, drivers[i]->name, len) == 0 && url[len] == ':')
            return drivers[i]->open(url, options, ret_db, err);
    }
    return hf_err_set(err, HF_INVALID_REQUEST, "no database driver for this URL (try sqlite:PATH)");
}

static enum hf_status version_read(struct db *db, int64_t *ret_version, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status =
        db->driver->prepare(db, "SELECT COALESCE(MAX(version), 0) FROM schema_version", &stmt, err);
    if (status == HF_OK)
        status = db_query(stmt, NULL, err);
    if (status != HF_OK)
        return status;
    if (db_step(stmt, err) != DB_ROW)
        return HF_LEDGER_UNAVAILABLE;
    *ret_version = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return HF_OK;
}

static enum hf_status migrate_to(struct db *db, int version, const char *sql, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = db->driver->prepare(
        db, "INSERT INTO schema_version (version) VALUES (r.version){args(version bigint)}", &stmt,
        err);
    if (status == HF_OK)
        status = db->driver->begin(db, err);
    if (status != HF_OK)
        return status;
    struct db_value args[] = {db_int(version)};
    status = db->driver->script(db, sql, err);
    if (status == HF_OK)
        status = db_exec(stmt, args, NULL, err);
    if (status == HF_OK)
        status = db->driver->commit(db, err);
    if (status != HF_OK)
        db->driver->rollback(db);
    return status;
}

enum hf_status db_migrate(struct db *db, const char *const *migrations, int n, struct hf_err *err)
{
    enum hf_status status = db->driver->script(
        db, "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)", err);
    int64_t version = 0;
    if (status == HF_OK)
        status = version_read(db, &version, err);
    if (status == HF_OK && version > n)
        return hf_err_set(err, HF_LEDGER_UNAVAILABLE,
                          "the data is of schema version %lld, newer than this program's %d",
                          (long long)version, n);
    for (int i = (int)version; status == HF_OK && i < n; i++)
        status = migrate_to(db, i + 1, migrations[i], err);
    return status;
}
