/* Notifications between connections.  The server sends a notification to all sessions that LISTEN,
 * once the transaction that made it has committed, in the order of commits; it is not kept for
 * sessions that listen later.  Belongs to the thread of its struct db. */
#include "db/postgres_notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "db/postgres_stmt.h"

#define TEXT_MAX 7000

enum hf_status pg_notify(struct db *base, const char *topic, const char *text, struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    hf_check(!db->transaction && strlen(text) <= TEXT_MAX);
    const struct db_value args[] = {db_text(topic, strlen(topic)), db_text(text, strlen(text))};
    enum hf_status status = db_exec(db->notify, args, NULL, err);
    /* Nothing was written, whether the notification was sent or not. */
    return status == HF_OUTCOME_UNKNOWN
               ? hf_err_set(err, HF_STORE_UNAVAILABLE,
                            "PostgreSQL: the connection was lost while notifying")
               : status;
}

static enum hf_status subscribe(struct postgres *db, const char *topic, struct hf_err *err)
{
    enum hf_status status = pg_connect(db, err);
    if (status != HF_OK)
        return status;
    bool same = db->topic.len && strcmp(db->topic.data, topic) == 0;
    if (same && db->topic_generation == db->link.generation)
        return HF_OK;
    hf_check(topic[strspn(topic, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0');
    struct buf sql = {0};
    pg_drain(db);
    buf_printf(&sql, "%s LISTEN %s", same || !db->topic.len ? "" : "UNLISTEN *;", topic);
    buf_char(&sql, '\0');
    status = db->link.conn
                 ? pg_link_script(&db->link, sql.data, PG_STATEMENT_MS + PG_MARGIN_MS, err)
                 : pg_link_error(&db->link, err);
    if (status == HF_OK) {
        db->topic_generation = db->link.generation;
        db->topic.len = 0;
        buf_put(&db->topic, topic, strlen(topic) + 1);
    } else {
        pg_disconnect(db, &(struct hf_err){.code = HF_STORE_UNAVAILABLE});
    }
    buf_close(&sql);
    return status;
}

/* Appends the texts that have arrived.  Returns true if there was any. */
static bool collect(struct postgres *db, const char *topic, struct buf *ret_lines)
{
    bool any = false;
    PGnotify *note;
    (void)PQisBusy(db->link.conn); /* parses what was read */
    while ((note = PQnotifies(db->link.conn))) {
        if (strcmp(note->relname, topic) == 0) {
            any = true;
            if (ret_lines) {
                buf_str(ret_lines, note->extra);
                buf_char(ret_lines, '\n');
            }
        }
        PQfreemem(note);
    }
    return any;
}

static enum hf_status fail_lost(struct postgres *db, struct hf_err *err)
{
    enum hf_status status = pg_link_error(&db->link, err);
    pg_disconnect(db, &(struct hf_err){.code = HF_STORE_UNAVAILABLE});
    return status;
}

enum hf_status pg_listen(struct db *base, const char *topic, int wake_fd, int64_t timeout_ms,
                         struct buf *ret_lines, struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    int64_t until_us = wait_now_us() + timeout_ms * 1000;
    hf_check(!db->transaction);
    enum hf_status status = subscribe(db, topic, err);
    if (status != HF_OK)
        return status;
    pg_drain(db); /* libpq does not read past an answer that was not fetched */
    if (!db->link.conn)
        return pg_link_error(&db->link, err);
    for (;;) {
        struct pollfd p[] = {{.fd = PQsocket(db->link.conn), .events = POLLIN},
                             {.fd = wake_fd, .events = POLLIN}};
        int64_t left_us = until_us - wait_now_us();
        bool heard = collect(db, topic, ret_lines);
        int n = wait_files(p, 2, heard || left_us <= 0 ? 0 : left_us);
        if (n < 0 && errno != EINTR)
            return hf_err_set(err, HF_STORE_UNAVAILABLE, "poll: %s", strerror(errno));
        if (n > 0 && p[0].revents &&
            (!PQconsumeInput(db->link.conn) || PQstatus(db->link.conn) == CONNECTION_BAD))
            return fail_lost(db, err);
        heard = collect(db, topic, ret_lines) || heard;
        if (heard || left_us <= 0 || (n > 0 && p[1].revents))
            return HF_OK;
    }
}

/* The wake-ups are sent; their answer is not waited for. */
void pg_wake(struct db *base, const struct db_wake *wakes, size_t n)
{
    struct postgres *db = (struct postgres *)(void *)base;
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)db->wake;
    struct hf_err err = {0};
    struct db_value *args = hf_alloc((2 * n + 1) * sizeof *args);
    for (size_t i = 0; i < n; i++) {
        args[2 * i] = db_int(wakes[i].topic);
        args[2 * i + 1] = db_text(wakes[i].text, strlen(wakes[i].text));
    }
    pg_reset(stmt);
    if (n && pg_queue(stmt, NULL, args, n, &err) == HF_OK) {
        pg_reset(stmt);
        if (pg_link_flush(&db->link, &err) != HF_OK)
            pg_disconnect(db, &err);
    }
    free(args);
}
