/* What connections tell each other.  A notification is sent by the server once the transaction that
 * made it has committed, in the order of commits, to all sessions that LISTEN; nobody keeps it for
 * one that does not. */
#include "db/postgres_notify.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres_pipeline.h"

#define TEXT_MAX 7000
/* A hint that was lost costs no more than this; who has no number to be woken by looks so often. */
#define AWAIT_MAX_MS 1000
#define LOOK_EVERY_MS 50

enum hf_status pg_notify(struct db *base, const char *topic, const char *text, struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    hf_check(!db->transaction && strlen(text) <= TEXT_MAX);
    const struct db_value args[] = {db_text(topic, strlen(topic)), db_text(text, strlen(text))};
    enum hf_status status = db_exec(db->notify, args, NULL, err);
    /* Heard or not, nothing was written. */
    return status == HF_OUTCOME_UNKNOWN
               ? hf_err_set(err, HF_LEDGER_UNAVAILABLE, "PostgreSQL: lost while telling others")
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
    pg_settle(db);
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
        pg_lost(db, &(struct hf_err){.code = HF_LEDGER_UNAVAILABLE});
    }
    buf_close(&sql);
    return status;
}

/* What has arrived; true: something. */
static bool collect(struct postgres *db, const char *topic, struct buf *ret_lines)
{
    bool any = false;
    PGnotify *news;
    (void)PQisBusy(db->link.conn); /* looks at what was read */
    while ((news = PQnotifies(db->link.conn))) {
        if (strcmp(news->relname, topic) == 0) {
            any = true;
            if (ret_lines) {
                buf_str(ret_lines, news->extra);
                buf_char(ret_lines, '\n');
            }
        }
        PQfreemem(news);
    }
    return any;
}

static enum hf_status lost(struct postgres *db, struct hf_err *err)
{
    enum hf_status status = pg_link_error(&db->link, err);
    pg_lost(db, &(struct hf_err){.code = HF_LEDGER_UNAVAILABLE});
    return status;
}

enum hf_status pg_listen(struct db *base, const char *topic, int wake_fd, int64_t timeout_ms,
                         struct buf *ret_lines, struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    int64_t until_us = clock_monotonic_us(&clock_system) + timeout_ms * 1000;
    hf_check(!db->transaction);
    enum hf_status status = subscribe(db, topic, err);
    if (status != HF_OK)
        return status;
    pg_settle(db); /* libpq does not look behind an answer that was not fetched */
    if (!db->link.conn)
        return pg_link_error(&db->link, err);
    for (;;) {
        struct pollfd p[] = {{.fd = PQsocket(db->link.conn), .events = POLLIN},
                             {.fd = wake_fd, .events = POLLIN}};
        int64_t left_us = until_us - clock_monotonic_us(&clock_system);
        bool heard = collect(db, topic, ret_lines);
        int n = poll(p, 2, heard || left_us <= 0 ? 0 : (int)(left_us / 1000) + 1);
        if (n < 0 && errno != EINTR)
            return hf_err_set(err, HF_LEDGER_UNAVAILABLE, "poll: %s", strerror(errno));
        if (n > 0 && p[0].revents &&
            (!PQconsumeInput(db->link.conn) || PQstatus(db->link.conn) == CONNECTION_BAD))
            return lost(db, err);
        heard = collect(db, topic, ret_lines) || heard;
        if (heard || left_us <= 0 || (n > 0 && p[1].revents))
            return HF_OK;
    }
}

/* A topic each: the server sends a wake to its one listener.  Who has only just begun to listen
 * looks once more, for what was told before. */
enum hf_status pg_await(struct db *base, int64_t number, int64_t timeout_ms, struct hf_err *err)
{
    struct postgres *db = (struct postgres *)(void *)base;
    char topic[64];
    unsigned generation = db->topic_generation;
    timeout_ms = timeout_ms < AWAIT_MAX_MS ? timeout_ms : AWAIT_MAX_MS;
    if (!number) {
        int64_t ms = timeout_ms < LOOK_EVERY_MS ? timeout_ms : LOOK_EVERY_MS;
        (void)poll(NULL, 0, (int)ms);
        return HF_OK;
    }
    (void)snprintf(topic, sizeof topic, WAKE_TOPIC "%lld", (long long)number);
    bool listens = db->topic.len && strcmp(db->topic.data, topic) == 0 && db->link.conn &&
                   generation == db->link.generation;
    return pg_listen(base, topic, -1, listens ? timeout_ms : 0, NULL, err);
}

/* Sent and not waited for. */
void pg_wake(struct db *base, const int64_t *numbers, size_t n)
{
    struct postgres *db = (struct postgres *)(void *)base;
    struct pg_stmt *stmt = (struct pg_stmt *)(void *)db->wake;
    struct hf_err err = {0};
    struct db_value *args = hf_alloc((n + 1) * sizeof *args);
    for (size_t i = 0; i < n; i++)
        args[i] = db_int(numbers[i]);
    pg_forget(stmt);
    if (n && pg_queue(stmt, NULL, args, n, &err) == HF_OK) {
        pg_forget(stmt);
        if (pg_link_flush(&db->link, &err) != HF_OK)
            pg_lost(db, &err);
    }
    free(args);
}
