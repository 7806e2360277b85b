/* See desk.h: the SQLite half.  Each desk has a connection of its own, as each thread of a program
 * would.  The database is in WAL mode, and every commit is on the disk before it returns, as in
 * PostgreSQL.  A connection that finds the file locked for writing sleeps and tries again
 * (sqlite3_busy_timeout). */
#include "lab/desk_sqlite.h"

#include <stdio.h>
#include <string.h>

bool desk_sqlite_open(struct desk *d, struct hf_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(d->settings.sqlite, &d->sqlite, flags, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(d->sqlite, DESK_TIMEOUT_S * 1000) == SQLITE_OK &&
        sqlite3_exec(d->sqlite,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA foreign_keys = ON",
                     NULL, NULL, NULL) == SQLITE_OK)
        return true;
    (void)hf_err_set(err, HF_UNAVAILABLE, "SQLite: %s",
                     d->sqlite ? sqlite3_errmsg(d->sqlite) : "out of memory");
    return false;
}

void desk_sqlite_close(struct desk *d)
{
    for (size_t i = 0; i < DESK_STATEMENTS_MAX; i++)
        sqlite3_finalize(d->prepared[i]);
    sqlite3_close(d->sqlite);
}

static void record_failure(struct desk *d)
{
    snprintf(d->state, sizeof d->state, "%d", sqlite3_extended_errcode(d->sqlite));
    desk_fail(d, "SQLite", sqlite3_errmsg(d->sqlite));
}

static sqlite3_stmt *prepare(struct desk *d, const char *sql)
{
    int i = 0;
    while (d->statements[i] && d->statements[i] != sql)
        hf_check(++i < DESK_STATEMENTS_MAX);
    if (!d->statements[i]) {
        if (sqlite3_prepare_v3(d->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, &d->prepared[i],
                               NULL) != SQLITE_OK) {
            record_failure(d);
            return NULL;
        }
        d->statements[i] = sql;
    }
    return d->prepared[i];
}

/* Returns the statement, ready for its first step, or NULL if it failed. */
static sqlite3_stmt *bind(struct desk *d, const char *sql, va_list args)
{
    const char *values[DESK_PARAMETERS_MAX];
    int n = desk_parameters(args, values);
    d->state[0] = '\0';
    sqlite3_stmt *statement = prepare(d, sql);
    for (int i = 0; statement && i < n; i++)
        sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
    return statement;
}

/* After the last step: records a failure and counts a commit. */
static bool end(struct desk *d, sqlite3_stmt *statement, int step)
{
    bool good = step == SQLITE_DONE || step == SQLITE_ROW;
    if (!good)
        record_failure(d);
    sqlite3_reset(statement);
    if (good && sqlite3_get_autocommit(d->sqlite) && !sqlite3_stmt_readonly(statement))
        d->outcome->commits++;
    return good;
}

bool desk_sqlite_do(struct desk *d, const char *sql)
{
    d->state[0] = '\0';
    if (sqlite3_exec(d->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK) {
        record_failure(d);
        return false;
    }
    d->outcome->commits += strcmp(sql, "COMMIT") == 0;
    return true;
}

long desk_sqlite_change(struct desk *d, const char *sql, va_list args)
{
    sqlite3_stmt *statement = bind(d, sql, args);
    if (!statement)
        return -1;
    d->outcome->sql_trips++;
    if (!end(d, statement, sqlite3_step(statement)))
        return -1;
    return sqlite3_changes(d->sqlite);
}

bool desk_sqlite_all_available(struct desk *d, size_t n_seats, const char *sql, va_list args)
{
    sqlite3_stmt *statement = bind(d, sql, args);
    if (!statement)
        return false;
    d->outcome->sql_trips++;
    size_t n = 0, available = 0;
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        n++;
        available += strcmp((const char *)sqlite3_column_text(statement, 0), "AVAILABLE") == 0;
    }
    return end(d, statement, step) && n == n_seats && available == n;
}

bool desk_text(struct desk *d, struct buf *ret, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    sqlite3_stmt *statement = bind(d, sql, args);
    va_end(args);
    if (!statement)
        return false;
    d->outcome->sql_trips++;
    int step = sqlite3_step(statement);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    ret->len = 0;
    if (text)
        buf_put(ret, text, strlen(text) + 1);
    return end(d, statement, step) && ret->len > 0;
}
