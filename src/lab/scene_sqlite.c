/* See scene_sqlite.h. */
#include "lab/scene_sqlite.h"

#include <stdio.h>

static char *rows_text(sqlite3_stmt *statement, int step)
{
    struct buf b = {0};
    for (; step == SQLITE_ROW; step = sqlite3_step(statement)) {
        const char *value = (const char *)sqlite3_column_text(statement, 0);
        buf_printf(&b, "%s%s", b.len ? ", " : "", value ? value : "NULL");
    }
    buf_str(&b, b.len ? "" : "no row");
    buf_char(&b, '\0');
    return b.data;
}

/* The answer to BEGIN, COMMIT and ROLLBACK is their own name, as in PostgreSQL. */
static char *change_text(sqlite3 *db, const char *sql)
{
    static const char *const verbs[] = {"BEGIN", "COMMIT", "ROLLBACK"};
    char *text;
    int n = sqlite3_changes(db);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strncmp(sql, verbs[i], strlen(verbs[i])) == 0)
            return hf_strndup(verbs[i], strlen(verbs[i]));
    hf_check(asprintf(&text, "%d row%s", n, n == 1 ? "" : "s") >= 0);
    return text;
}

char *scene_sqlite_answer(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *text;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    int step = rc == SQLITE_OK ? sqlite3_step(statement) : rc;
    if (step != SQLITE_ROW && step != SQLITE_DONE)
        hf_check(asprintf(&text, "ERROR %d: %s", step, sqlite3_errmsg(db)) >= 0);
    else if (sqlite3_column_count(statement) > 0)
        text = rows_text(statement, step);
    else
        text = change_text(db, sql);
    sqlite3_finalize(statement);
    return text;
}

static void now_ms(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n, (void)values;
    const struct scene *s = sqlite3_user_data(context);
    sqlite3_result_int64(context, clock_wall_us(s->clock) / 1000);
}

void scene_sqlite_now(struct scene *s, sqlite3 *db)
{
    hf_check(sqlite3_create_function(db, "now_ms", 0, SQLITE_UTF8, s, now_ms, NULL, NULL) ==
             SQLITE_OK);
}
