/* See stage.h: the same tables in SQLite. */
#include "lab/stage_sqlite.h"

#include <sqlite3.h>

static const char schema[] =
    "PRAGMA journal_mode = WAL;"
    "DROP TABLE IF EXISTS holds;"
    "DROP TABLE IF EXISTS seats;"
    "DROP TABLE IF EXISTS inventory;"
    "DROP TABLE IF EXISTS tickets;"
    "CREATE TABLE seats (event TEXT, id TEXT, status TEXT NOT NULL DEFAULT 'AVAILABLE',"
    "                    holder TEXT, held_until INTEGER, version INTEGER NOT NULL DEFAULT 0,"
    "                    PRIMARY KEY (event, id)) WITHOUT ROWID;"
    "CREATE TABLE holds (event TEXT, seat TEXT, holder TEXT NOT NULL,"
    "                    held_until INTEGER NOT NULL, PRIMARY KEY (event, seat),"
    "                    FOREIGN KEY (event, seat) REFERENCES seats) WITHOUT ROWID;"
    "CREATE TABLE inventory (event TEXT PRIMARY KEY, places INTEGER NOT NULL,"
    "                        version INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"
    "CREATE TABLE tickets (event TEXT, place INTEGER NOT NULL, holder TEXT NOT NULL);"
    "CREATE INDEX tickets_by_event ON tickets (event)";

static const char insert_seats[] =
    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)"
    " INSERT INTO seats (event, id) SELECT ?1, 'S-A-' || n FROM n";

static const char insert_inventory[] = "INSERT INTO inventory (event, places) VALUES (?1, ?2)";

static const char select_sales[] =
    "SELECT id, holder FROM seats WHERE event = ?1 AND holder IS NOT NULL"
    " UNION ALL SELECT seat, holder FROM holds WHERE event = ?1"
    " UNION ALL SELECT 'S-A-' || place, holder FROM tickets WHERE event = ?1";

/* Closes the database and, unless `good`, takes its last error along. */
static bool close_with(sqlite3 *db, bool good, struct hf_err *err)
{
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "SQLite: %s",
                         db ? sqlite3_errmsg(db) : "out of memory");
    sqlite3_close(db);
    return good;
}

bool stage_sqlite_build(const char *path, struct hf_err *err)
{
    sqlite3 *db = NULL;
    bool good = sqlite3_open(path, &db) == SQLITE_OK &&
                sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK;
    return close_with(db, good, err);
}

static bool insert(sqlite3 *db, const char *sql, const char *event, int seats)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_bind_text(statement, 1, event, -1, SQLITE_STATIC) == SQLITE_OK &&
                sqlite3_bind_int(statement, 2, seats) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return good;
}

bool stage_sqlite_seats(const char *path, const char *event, int seats, struct hf_err *err)
{
    sqlite3 *db = NULL;
    bool good = sqlite3_open(path, &db) == SQLITE_OK && insert(db, insert_seats, event, seats) &&
                insert(db, insert_inventory, event, seats);
    return close_with(db, good, err);
}

bool stage_sqlite_sales(const char *path, const char *event, struct stage_sales *ret,
                        struct hf_err *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *select = NULL;
    int step = SQLITE_ERROR;
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, select_sales, -1, &select, NULL) == SQLITE_OK &&
        sqlite3_bind_text(select, 1, event, -1, SQLITE_STATIC) == SQLITE_OK)
        while ((step = sqlite3_step(select)) == SQLITE_ROW)
            stage_sales_add(ret, (const char *)sqlite3_column_text(select, 0),
                            (const char *)sqlite3_column_text(select, 1));
    sqlite3_finalize(select);
    return close_with(db, step == SQLITE_DONE, err);
}
