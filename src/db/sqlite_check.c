/* See sqlite_check.h. */
#include "db/sqlite_check.h"

#include "base/wait.h"

#define LINES_MAX "5"
#define STEPS_BETWEEN_LOOKS 10000 /* of SQLite's machine: some hundred microseconds */

int sqlite_check_harden(sqlite3 *db)
{
    static const int off[] = {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                              SQLITE_DBCONFIG_TRUSTED_SCHEMA};
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof off / sizeof *off && rc == SQLITE_OK; i++)
        rc = sqlite3_db_config(db, off[i], 0, NULL);
    return rc;
}

static int is_late(void *until_us) { return wait_now_us() >= *(const int64_t *)until_us; }

static void put_line(struct buf *out, const char *line)
{
    buf_str(out, line ? line : "?");
    buf_char(out, '\n');
}

/* The answer is one row, "ok", or a row for each fault. */
static int read_faults(sqlite3_stmt *stmt, struct buf *ret_lines)
{
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *line = (const char *)sqlite3_column_text(stmt, 0);
        if (sqlite3_stricmp(line, "ok") != 0)
            put_line(ret_lines, line);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int sqlite_check_pages(sqlite3 *db, int64_t limit_ms, struct buf *ret_lines, bool *ret_whole)
{
    int64_t until_us = wait_now_us() + limit_ms * 1000;
    sqlite3_stmt *stmt = NULL;
    if (limit_ms > 0)
        sqlite3_progress_handler(db, STEPS_BETWEEN_LOOKS, is_late, &until_us);
    int rc = sqlite3_prepare_v2(db, "PRAGMA integrity_check(" LINES_MAX ")", -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = read_faults(stmt, ret_lines);
    sqlite3_finalize(stmt);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    *ret_whole = (rc & 0xff) != SQLITE_INTERRUPT;
    /* A page that cannot be made sense of is a finding, too. */
    if ((rc & 0xff) == SQLITE_CORRUPT)
        put_line(ret_lines, sqlite3_errstr(rc));
    return !*ret_whole || (rc & 0xff) == SQLITE_CORRUPT ? SQLITE_OK : rc;
}
