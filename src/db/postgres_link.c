/* See postgres_link.h.  A connection is made again after it was lost; postgres_wire.c has what goes
 * over one.  A password stands in the URL alone, and no message repeats the URL: so libpq is not
 * asked what is wrong with one. */
#include "db/postgres_link.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/wait.h"
#include "db/postgres_pooler.h"
#include "net/pg_url.h"

#define CONNECT_MS 3000 /* for all hosts together, unless the URL says connect_timeout */
#define PAUSE_MIN_US 50000
#define PAUSE_MAX_US 1000000
#define READS_MAX 4

/* ---- connecting ---- */

static void ignore_notice(void *ctx, const PGresult *result) { (void)ctx, (void)result; }

static enum hf_status attempt(struct pg_link *l, struct hf_err *err)
{
    enum hf_status status = pg_link_dial(l, err);
    if (status != HF_OK)
        return status;
    PQsetNoticeReceiver(l->conn, ignore_notice, NULL);
    if (PQsetnonblocking(l->conn, 1) != 0)
        return pg_link_error(l, err);
    status = pg_link_run(l, l->settings.data, l->answer_ms, err);
    if (status == HF_OK && l->needs_session)
        status = pg_pooler_check(l, err);
    if (status == HF_OK && !PQenterPipelineMode(l->conn))
        status = pg_link_error(l, err);
    return status;
}

/* A notification makes the socket readable too, so the connection is known to be closed only once
 * everything was read. */
bool pg_link_alive(struct pg_link *l, struct hf_err *err)
{
    struct pollfd p = {.fd = PQsocket(l->conn), .events = POLLIN};
    for (int i = 0; i < READS_MAX && wait_files(&p, 1, 0) > 0; i++)
        if (!PQconsumeInput(l->conn))
            break;
    if (PQstatus(l->conn) == CONNECTION_OK)
        return true;
    (void)pg_link_error(l, err);
    return false;
}

/* Returns true while the last failure is recent and no other connection was made since that attempt
 * began.  (Its beginning counts, not its end: of two attempts at the same time the failed one may
 * end later.) */
static bool is_pausing(const struct pg_link *l)
{
    int64_t reached_us = l->reached_us ? atomic_load(l->reached_us) : 0;
    return reached_us <= l->began_us && wait_now_us() < l->retry_us;
}

enum hf_status pg_link_connect(struct pg_link *l, struct hf_err *err)
{
    if (l->conn)
        return HF_OK;
    if (pg_link_gave_up(l))
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "PostgreSQL: no connection in time");
    if (is_pausing(l))
        return hf_err_set(err, l->why.code, "%s", l->why.msg);
    l->began_us = wait_now_us();
    enum hf_status status = attempt(l, &l->why);
    /* A server that was about to start when we tried accepts connections by now. */
    if (status != HF_OK && l->reached_us && atomic_load(l->reached_us) > l->began_us) {
        pg_link_drop(l);
        status = attempt(l, &l->why);
    }
    if (status == HF_OK) {
        l->generation++;
        l->retry_us = l->n_failures = 0;
        if (l->reached_us)
            atomic_store(l->reached_us, wait_now_us());
        return HF_OK;
    }
    pg_link_drop(l);
    l->why.code = HF_STORE_UNAVAILABLE;
    l->retry_us = wait_now_us() + backoff_pause(PAUSE_MIN_US, PAUSE_MAX_US, l->n_failures++);
    return hf_err_set(err, l->why.code, "%s", l->why.msg);
}

/* Generic plans with nested loops over indexes: a statement is planned once, and the same way for
 * one row and for a thousand, however wrong the statistics of a table are that has just been
 * filled. */
#define PLANS                                                                                      \
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = "   \
    "off; SET enable_mergejoin = off; SET jit = off;"

/* A shared connection reads a few rows of one name at a time, in the order of an index.  Setting up
 * a bitmap or a sort would cost more than it saves. */
#define SHARED_PLANS                                                                               \
    "SET enable_bitmapscan = off; SET enable_sort = off; SET search_path = " PG_SEARCH_PATH ";"

static enum hf_status bad_url(const char *what, struct hf_err *err)
{
    return hf_err_set(err, HF_INVALID_REQUEST,
                      "the PostgreSQL URL: %s; one looks like " PG_URL_FORM, what);
}

enum hf_status pg_link_init(struct pg_link *l, const char *url, const struct db_options *options,
                            struct hf_err *err)
{
    const char *fault = pg_url_fault(url);
    PQconninfoOption *parsed = fault ? NULL : PQconninfoParse(url, NULL);
    if (!parsed)
        return bad_url(fault ? fault : "a part of it is none of libpq's (a parameter after the ?)",
                       err);
    bool at_in_host =
        false; /* then the host is the rest of a password, which messages would show */
    for (const PQconninfoOption *o = parsed; o->keyword; o++)
        at_in_host |= strcmp(o->keyword, "host") == 0 && o->val && strchr(o->val, '@');
    PQconninfoFree(parsed);
    if (at_in_host)
        return bad_url("it has two @ (one of a password is written %40)", err);
    bool writes = options->writer || options->shared;
    int64_t lock_ms = PG_LOCK_MS;
    *l = (struct pg_link){.url = hf_strndup(url, strlen(url)),
                          .statement_ms = PG_STATEMENT_MS,
                          .answer_ms = PG_STATEMENT_MS + PG_MARGIN_MS,
                          .connect_ms = CONNECT_MS,
                          .needs_session = options->shared || options->settings,
                          .reached_us = options->reached_us,
                          .give_up_us = options->give_up_us};
    if (options->shared || options->timeout_ms) {
        /* Everything within the caller's timeout, and waiting for a lock within a part of it. */
        l->answer_ms = options->timeout_ms ? options->timeout_ms : PG_LOCK_MS;
        l->statement_ms = l->connect_ms = l->answer_ms;
        lock_ms = l->answer_ms - l->answer_ms / 4;
    }
    buf_printf(&l->settings,
               "SET default_transaction_isolation = 'read committed';"
               "SET lock_timeout = %lld; SET statement_timeout = %lld;"
               "SET idle_in_transaction_session_timeout = %d;"
               "SET tcp_keepalives_idle = " PG_KEEP_IDLE_S "; SET tcp_keepalives_interval "
               "= " PG_KEEP_EVERY_S "; SET tcp_keepalives_count = " PG_KEEP_COUNT ";"
               "SET tcp_user_timeout = " PG_UNACKNOWLEDGED_MS ";%s%s%s",
               (long long)lock_ms, (long long)l->statement_ms,
               writes ? PG_IDLE_MS : PG_IDLE_READER_MS, writes ? PLANS : "",
               options->shared ? SHARED_PLANS : "", options->settings ? options->settings : "");
    buf_char(&l->settings, '\0');
    return HF_OK;
}

void pg_link_close(struct pg_link *l)
{
    pg_link_drop(l);
    free(l->url);
    buf_close(&l->settings);
    l->url = NULL;
}
