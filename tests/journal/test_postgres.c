/* The suite over a real PostgreSQL, in a cluster and a database of its own; and claims about its
 * settings, its locks and its poolers.  Restarts are kills.  Without PostgreSQL it fails. */
#include "suite.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/pgbouncer.h"
#include "support/postgres_server.h"
#include "support/proxy.h"

static char database[32];

static void url_at(struct engine *e, int port, char *ret, size_t size)
{
    (void)e;
    (void)snprintf(ret, size, "postgresql://holdfast@127.0.0.1:%d/%s", port, database);
}

static void start(struct engine *e)
{
    char url[POSTGRES_URL_SIZE];
    postgres_server_fresh(url);
    (void)snprintf(database, sizeof database, "%s", strrchr(url, '/') + 1);
    e->port = postgres_server_own()->port;
    url_at(e, e->port, e->url, sizeof e->url);
}

static void stop(struct engine *e) { (void)e; }

static const char *sql(const char *text)
{
    return postgres_server_ask(postgres_server_own(), database, text);
}

static void fresh(struct engine *e)
{
    (void)e;
    (void)sql("SET client_min_messages = error; SET lock_timeout = '20s';"
              "DROP SCHEMA IF EXISTS holdfast_cell CASCADE");
}

static void restart(struct engine *e)
{
    (void)e;
    postgres_server_kill(postgres_server_own());
    postgres_server_again(postgres_server_own());
}

static void freeze(struct engine *e, bool frozen)
{
    (void)e;
    postgres_server_freeze(postgres_server_own(), frozen);
}

static int64_t count_chunks(struct engine *e)
{
    (void)e;
    return strtoll(sql("SELECT COUNT(*) FROM holdfast_cell.chunks"), NULL, 10);
}

static enum hf_status try_open(const char *url, bool may_lose, struct hf_err *err)
{
    const struct journal_options options = {
        .clock = &clock_system, .timeout_ms = SLOW_MS, .may_lose = may_lose};
    struct journal *j = NULL;
    *err = (struct hf_err){0};
    enum hf_status status = journal_postgres.open(url, &options, &j, err);
    if (status == HF_OK)
        handle_close(j);
    return status;
}

static void a_server_that_may_lose_is_refused_unless_that_is_accepted(void **state)
{
    struct world *w = *state;
    struct hf_err err;
    struct buf lines = {0};
    assert_int_equal(try_open(w->engine->url, false, &err), HF_INVALID_REQUEST);
    assert_non_null(strstr(err.msg, "synchronous_standby_names"));
    assert_non_null(strstr(err.msg, "--journal-may-lose"));
    assert_int_equal(try_open(w->engine->url, true, &err), HF_OK);
    assert_int_equal(w->a->driver->warnings(w->a, &lines, &err), HF_OK);
    buf_char(&lines, '\0');
    assert_non_null(strstr(lines.data, "synchronous_standby_names is empty"));
    buf_close(&lines);
}

/* Whatever the role's setting is, a commit waits for the disk. */
static void commits_wait_for_the_disk_even_if_the_database_does_not(void **state)
{
    struct world *w = *state;
    struct buf lines = {0};
    struct hf_err err;
    char text[128];
    (void)snprintf(text, sizeof text, "ALTER DATABASE %s SET synchronous_commit = off", database);
    (void)sql(text);
    world_reopen(w);
    assert_int_equal(w->a->driver->warnings(w->a, &lines, &err), HF_OK);
    buf_char(&lines, '\0');
    assert_null(strstr(lines.data, "synchronous_commit is off"));
    buf_close(&lines);
    (void)snprintf(text, sizeof text, "ALTER DATABASE %s RESET synchronous_commit", database);
    (void)sql(text);
}

static void urls_that_lead_nowhere_are_refused(void **state)
{
    struct world *w = *state;
    struct hf_err err;
    char url[256];
    assert_int_equal(try_open("postgres://[::1/x", true, &err), HF_INVALID_REQUEST);
    assert_int_equal(try_open("postgres://127.0.0.1/x?y=z", true, &err), HF_INVALID_REQUEST);
    (void)snprintf(url, sizeof url, "postgres://holdfast@127.0.0.1:%d/nothing", w->engine->port);
    assert_int_equal(try_open(url, true, &err), HF_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "does not exist"));
}

/* ---- locks ---- */

static PGconn *session(const char *text)
{
    char url[POSTGRES_URL_SIZE];
    postgres_server_url(postgres_server_own(), database, url);
    PGconn *conn = PQconnectdb(url);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    PGresult *result = PQexec(conn, text);
    if (PQresultStatus(result) == PGRES_FATAL_ERROR)
        fail_msg("%s", PQerrorMessage(conn));
    PQclear(result);
    return conn;
}

/* What a master leaves that stands still before the last bytes of an append are sent: the statement
 * was run, and its transaction waits for the message that commits it. */
static PGconn *half_an_append(void)
{
    PGconn *conn = session("SELECT 1");
    assert_int_equal(PQenterPipelineMode(conn), 1);
    assert_int_equal(PQsendQueryParams(conn,
                                       "INSERT INTO holdfast_cell.entries SELECT 1, 'id', 'data'"
                                       " FROM holdfast_cell.head FOR SHARE",
                                       0, NULL, NULL, NULL, NULL, 0),
                     1);
    assert_int_equal(PQsendFlushRequest(conn), 1);
    assert_int_equal(PQflush(conn), 0);
    PGresult *result = PQgetResult(conn);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    return conn;
}

static void claim_past(struct world *w, PGconn *stuck)
{
    const struct journal_mandate m = mandate(1, 'A');
    struct journal *j = handle_open(w->engine->url, 1000);
    enum journal_result result;
    again(result, claim(j, &m));
    assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
    again(result, append(j, &m, 1, "one"));
    assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
    assert_entries(w->b, 0, (const char *const[]){"one", NULL});
    handle_close(j);
    PQfinish(stuck);
}

static void a_claim_ends_a_session_that_stopped_in_the_middle_of_an_append(void **state)
{
    claim_past(*state, half_an_append());
}

static void a_claim_ends_a_session_that_keeps_the_row_locked(void **state)
{
    claim_past(*state, session("BEGIN; SELECT * FROM holdfast_cell.head FOR UPDATE"));
}

static void a_transaction_that_only_reads_is_in_nobodys_way(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    PGconn *reader = session("BEGIN ISOLATION LEVEL REPEATABLE READ;"
                             " SELECT * FROM holdfast_cell.head; SELECT * FROM"
                             " holdfast_cell.entries");
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    PGresult *result = PQexec(reader, "COMMIT");
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK); /* it still lives */
    PQclear(result);
    PQfinish(reader);
}

/* Repeats a call that fails while the server does not say so in time. */
#define again_if_unknown(ret, call)                                                                \
    for (int64_t end_ms_ = now_ms() + SLOW_MS;                                                     \
         ((ret) = (call)) == JOURNAL_UNKNOWN && now_ms() < end_ms_;)                               \
    rest_ms(10)

/* An append that waits for a lock gives up on the server, and does not come back later. */
static void an_append_that_waits_too_long_is_not_done(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    enum journal_result result;
    struct journal *j = handle_open(w->engine->url, 800);
    again(result, claim(j, &m));
    again(result, append(j, &m, 1, "one"));
    PGconn *other = session("BEGIN; LOCK TABLE holdfast_cell.entries IN SHARE MODE");
    again_if_unknown(result, append(j, &m, 2, "two"));
    expect(result, JOURNAL_UNREACHABLE);
    PQfinish(other);
    assert_entries(w->b, 0, (const char *const[]){"one", NULL});
    expect(append(w->a, &m, 2, "two"), JOURNAL_DONE);
    handle_close(j);
}

struct attempt {
    struct journal *j;
    struct journal_mandate m;
    bool is_chunk;
    enum journal_result result;
};

static void *attempt_run(void *arg)
{
    struct attempt *a = arg;
    struct hf_err err = {0};
    const uint8_t id[JOURNAL_ID_SIZE] = {1};
    a->result = a->is_chunk ? a->j->driver->put_chunk(a->j, &a->m, 1, 0, "old", 3, &err)
                            : a->j->driver->append(a->j, &a->m, 1, id, "old", 3, &err);
    return NULL;
}

static void await_waiting(const char *what)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                   " AND query LIKE 'INSERT INTO %s%%'",
                   what);
    for (int64_t end_ms = now_ms() + SLOW_MS; strcmp(sql(text), "1") != 0; rest_ms(5))
        assert_true(now_ms() < end_ms);
}

/* A write has found that its epoch is current, and waits for the key of its row.  A claim that did
 * not wait for it would be followed by a write of the epoch before. */
static void claim_during(struct world *w, bool is_chunk, int64_t epoch)
{
    struct attempt a = {.j = w->a, .m = mandate(epoch, 'A'), .is_chunk = is_chunk};
    const struct journal_mandate next = mandate(epoch + 1, 'B');
    enum journal_result result;
    pthread_t thread;
    struct journal *j = handle_open(w->engine->url, 800);
    expect(claim(w->a, &a.m), JOURNAL_DONE);
    PGconn *blocker =
        session(is_chunk ? "BEGIN; INSERT INTO holdfast_cell.chunks VALUES (1, 0, 'x')"
                         : "BEGIN; INSERT INTO holdfast_cell.entries VALUES (1, 'x', 'x')");
    assert_int_equal(pthread_create(&thread, NULL, attempt_run, &a), 0);
    await_waiting(is_chunk ? "chunks" : "entries");
    again_if_unknown(result, claim(j, &next));
    expect(result, JOURNAL_UNREACHABLE);
    assert_int_equal(head_of(w->b).epoch, epoch);
    PQfinish(blocker);
    pthread_join(thread, NULL);
    expect(a.result, JOURNAL_DONE);
    expect(claim(w->b, &next), JOURNAL_DONE);
    handle_close(j);
}

static void a_claim_waits_for_writes_that_have_begun(void **state)
{
    claim_during(*state, true, 1);
    claim_during(*state, false, 3);
}

/* The entry is there already; the answer to the question why it was not stored is lost. */
static void an_append_that_changed_nothing_for_an_unknown_reason_is_unknown(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    struct relay *proxy;
    char url[256];
    enum journal_result result;
    proxy = proxy_start(w->engine->port);
    url_at(w->engine, relay_port(proxy), url, sizeof url);
    struct journal *j = handle_open(url, SLOW_MS);
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    relay_lose_only(proxy, "SELECT id FROM entries");
    relay_set(proxy, RELAY_CUT);
    expect(append(j, &m, 1, "one"), JOURNAL_UNKNOWN);
    assert_int_equal(relay_count(proxy).lost, 1);
    relay_set(proxy, RELAY_PASS);
    again(result, append(j, &m, 1, "one"));
    expect(result, JOURNAL_FOUND);
    handle_close(j);
    relay_stop(proxy);
}

/* The tables are the journal's own, wherever the role looks for tables. */
static void tables_are_in_a_schema_of_their_own(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    (void)sql("CREATE TABLE IF NOT EXISTS public.head (x int);"
              "CREATE TABLE IF NOT EXISTS public.entries (x int)");
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    assert_string_equal(sql("SELECT COUNT(*) FROM holdfast_cell.entries"), "1");
    assert_string_equal(sql("SELECT COUNT(*) FROM public.entries"), "0");
    (void)sql("DROP TABLE public.head; DROP TABLE public.entries");
}

/* A role that may use the tables, and not create any, is enough. */
static void a_role_without_rights_to_create_can_use_it(void **state)
{
    struct world *w = *state;
    struct hf_err err;
    char url[256];
    (void)sql("DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'plain') THEN"
              " CREATE ROLE plain LOGIN; END IF; END $$;"
              "GRANT USAGE ON SCHEMA holdfast_cell TO plain;"
              "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast_cell TO"
              " plain");
    (void)snprintf(url, sizeof url, "postgres://plain@127.0.0.1:%d/%s", w->engine->port, database);
    if (try_open(url, true, &err) != HF_OK)
        fail_msg("%s", err.msg);
    struct journal *j = handle_open(url, SLOW_MS);
    const struct journal_mandate m = mandate(1, 'A');
    expect(claim(j, &m), JOURNAL_DONE);
    expect(append(j, &m, 1, "one"), JOURNAL_DONE);
    handle_close(j);
}

/* ---- what may be between a server and its disks ---- */

static void poolers_must_keep_sessions(void **state)
{
    struct world *w = *state;
    static const char *const modes[] = {"transaction", "statement", "session"};
    struct pgbouncer pooler;
    struct hf_err err;
    for (int i = 0; i < 3; i++) {
        pgbouncer_start(&pooler, modes[i]); /* its database takes the place of ours */
        enum hf_status status = try_open(pooler.url, true, &err);
        if (i < 2)
            assert_int_equal(status, HF_UNAVAILABLE);
        else if (status != HF_OK)
            fail_msg("%s", err.msg);
        if (i == 0)
            assert_non_null(strstr(err.msg, "PgBouncer in transaction mode"));
        pgbouncer_stop(&pooler);
    }
    start(w->engine);
}

static void reload(const char *setting)
{
    (void)sql(setting);
    (void)sql("SELECT pg_reload_conf()");
}

/* A commit waits for the standby.  The answer comes too late; the entry does not get lost, and what
 * the server waits for does not stop it from finding the entry later. */
static void a_commit_that_waits_for_a_standby_is_found_later(void **state)
{
    struct world *w = *state;
    struct postgres_server standby = {0};
    const struct journal_mandate m = mandate(1, 'A'), next = mandate(2, 'B');
    enum journal_result result;
    struct hf_err err;
    expect(claim(w->a, &m), JOURNAL_DONE);
    postgres_server_follow(&standby, postgres_server_own());
    reload("ALTER SYSTEM SET synchronous_standby_names = '*'");
    for (int64_t end_ms = now_ms() + SLOW_MS;
         strcmp(sql("SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'"), "1") !=
         0;
         rest_ms(20))
        assert_true(now_ms() < end_ms);
    /* The tests' servers do not sync their files: that alone is refused, too. */
    assert_int_equal(try_open(w->engine->url, false, &err), HF_INVALID_REQUEST);
    assert_non_null(strstr(err.msg, "fsync is off"));
    struct journal *j = handle_open(w->engine->url, 600);
    again(result, append(j, &m, 1, "one"));
    assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
    postgres_server_freeze(&standby, true);
    expect(append(j, &m, 2, "two"), JOURNAL_UNKNOWN);
    result = append(j, &m, 2, "two"); /* the first attempt is still under way */
    assert_true(result == JOURNAL_UNKNOWN || result == JOURNAL_UNREACHABLE);
    result = claim(j, &next); /* waits behind it */
    assert_true(result == JOURNAL_UNKNOWN || result == JOURNAL_UNREACHABLE);
    assert_entries(w->b, 0, (const char *const[]){"one", NULL});
    postgres_server_freeze(&standby, false);
    again(result, append(j, &m, 2, "two"));
    expect(result, JOURNAL_FOUND);
    assert_entries(w->b, 0, (const char *const[]){"one", "two", NULL});
    handle_close(j);
    reload("ALTER SYSTEM RESET synchronous_standby_names");
    postgres_server_remove(&standby);
}

static const struct CMUnitTest own_claims[] = {
    CLAIM(a_server_that_may_lose_is_refused_unless_that_is_accepted),
    CLAIM(commits_wait_for_the_disk_even_if_the_database_does_not),
    CLAIM(urls_that_lead_nowhere_are_refused),
    CLAIM(a_claim_ends_a_session_that_stopped_in_the_middle_of_an_append),
    CLAIM(a_claim_ends_a_session_that_keeps_the_row_locked),
    CLAIM(a_transaction_that_only_reads_is_in_nobodys_way),
    CLAIM(an_append_that_waits_too_long_is_not_done),
    CLAIM(a_claim_waits_for_writes_that_have_begun),
    CLAIM(an_append_that_changed_nothing_for_an_unknown_reason_is_unknown),
    CLAIM(tables_are_in_a_schema_of_their_own),
    CLAIM(a_role_without_rights_to_create_can_use_it),
    CLAIM(a_commit_that_waits_for_a_standby_is_found_later),
    CLAIM(poolers_must_keep_sessions),
    CLAIMS_END,
};

int main(void)
{
    struct engine e = {.driver = &journal_postgres,
                       .start = start,
                       .stop = stop,
                       .fresh = fresh,
                       .restart = restart,
                       .freeze = freeze,
                       .url_at = url_at,
                       .count_chunks = count_chunks,
                       .n_entries = 2500,
                       .own_claims = own_claims};
    return suite_run(&e);
}
