/* See runner.h: the SQLite half.  Each runner has a connection of its own, as each thread of a
 * program would.  The database is in WAL mode, and every commit is on the disk before it returns,
 * as in PostgreSQL.  A connection that finds the file locked for writing sleeps and tries again
 * (sqlite3_busy_timeout). */
#include "lab/runner_sqlite.h"

#include <stdio.h>
#include <string.h>

bool runner_sqlite_open(struct runner *r, struct hf_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(r->settings.sqlite, &r->sqlite, flags, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(r->sqlite, RUNNER_TIMEOUT_S * 1000) == SQLITE_OK &&
        sqlite3_exec(r->sqlite,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA foreign_keys = ON",
                     NULL, NULL, NULL) == SQLITE_OK)
        return true;
    (void)hf_err_set(err, HF_UNAVAILABLE, "SQLite: %s",
                     r->sqlite ? sqlite3_errmsg(r->sqlite) : "out of memory");
    return false;
}

void runner_sqlite_close(struct runner *r)
{
    for (size_t i = 0; i < RUNNER_STATEMENTS_MAX; i++)
        sqlite3_finalize(r->prepared[i]);
    sqlite3_close(r->sqlite);
}

static void record_failure(struct runner *r)
{
    snprintf(r->state, sizeof r->state, "%d", sqlite3_extended_errcode(r->sqlite));
    runner_fail(r, "SQLite", sqlite3_errmsg(r->sqlite));
}

static sqlite3_stmt *prepare(struct runner *r, const char *sql)
{
    int i = 0;
    while (r->statements[i] && r->statements[i] != sql)
        hf_check(++i < RUNNER_STATEMENTS_MAX);
    if (!r->statements[i]) {
        if (sqlite3_prepare_v3(r->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, &r->prepared[i],
                               NULL) != SQLITE_OK) {
            record_failure(r);
            return NULL;
        }
        r->statements[i] = sql;
    }
    return r->prepared[i];
}

/* Returns the statement, ready for its first step, or NULL if it failed. */
static sqlite3_stmt *bind(struct runner *r, const char *sql, va_list args)
{
    const char *values[RUNNER_PARAMETERS_MAX];
    int n = runner_parameters(args, values);
    r->state[0] = '\0';
    sqlite3_stmt *statement = prepare(r, sql);
    for (int i = 0; statement && i < n; i++)
        sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
    return statement;
}

/* After the last step: records a failure and counts a commit. */
static bool end(struct runner *r, sqlite3_stmt *statement, int step)
{
    bool good = step == SQLITE_DONE || step == SQLITE_ROW;
    if (!good)
        record_failure(r);
    sqlite3_reset(statement);
    if (good && sqlite3_get_autocommit(r->sqlite) && !sqlite3_stmt_readonly(statement))
        r->outcome->commits++;
    return good;
}

bool runner_sqlite_do(struct runner *r, const char *sql)
{
    r->state[0] = '\0';
    if (sqlite3_exec(r->sqlite, sql, NULL, NULL, NULL) != SQLITE_OK) {
        record_failure(r);
        return false;
    }
    r->outcome->commits += strcmp(sql, "COMMIT") == 0;
    return true;
}

long runner_sqlite_change(struct runner *r, const char *sql, va_list args)
{
    sqlite3_stmt *statement = bind(r, sql, args);
    if (!statement)
        return -1;
    r->outcome->sql_trips++;
    if (!end(r, statement, sqlite3_step(statement)))
        return -1;
    return sqlite3_changes(r->sqlite);
}

bool runner_sqlite_all_available(struct runner *r, size_t n_seats, const char *sql, va_list args)
{
    sqlite3_stmt *statement = bind(r, sql, args);
    if (!statement)
        return false;
    r->outcome->sql_trips++;
    size_t n = 0, available = 0;
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        n++;
        available += strcmp((const char *)sqlite3_column_text(statement, 0), "AVAILABLE") == 0;
    }
    return end(r, statement, step) && n == n_seats && available == n;
}

bool runner_text(struct runner *r, struct buf *ret, const char *sql, ...)
{
    va_list args;
    va_start(args, sql);
    sqlite3_stmt *statement = bind(r, sql, args);
    va_end(args);
    if (!statement)
        return false;
    r->outcome->sql_trips++;
    int step = sqlite3_step(statement);
    const char *text = step == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    ret->len = 0;
    if (text)
        buf_put(ret, text, strlen(text) + 1);
    return end(r, statement, step) && ret->len > 0;
}
