/* Claims about a cell whose journal is in PostgreSQL (cell/cell.h): a journal that is not there
 * when the server starts, one that hangs while the server stops, and two servers that share one. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "support/cell_client.h"
#include "support/postgres_server.h"

#define TTL_MS 60000
#define WAIT_MS 60000
#define LONG_US INT64_C(60000000) /* nothing takes so long, even on a busy machine */
/* The silence after which a standby claims the journal: never within a test, since a busy machine
 * may make any thread silent for a while. */
#define SILENCE_MS 240000
/* A master notices within a quarter of this that its journal does not answer. */
#define SHORT_SILENCE_MS 4000

static struct postgres_server *postgres;
static char url[POSTGRES_URL_SIZE];

struct server {
    struct metrics *metrics;
    struct cell *cell;
};

static enum hf_status start(struct server *s, const char *own_url, int64_t silence_ms,
                            bool may_lose, struct hf_err *err)
{
    s->metrics = metrics_new();
    s->cell = NULL;
    const struct cell_config config = {.journal_url = url,
                                       .clock = &clock_system,
                                       .url = own_url,
                                       .timeout_ms = silence_ms,
                                       .may_lose = may_lose,
                                       .metrics = s->metrics};
    return cell_start(&config, &s->cell, err);
}

static void begin(struct server *s, const char *own_url, int64_t silence_ms)
{
    struct hf_err err = {0};
    if (start(s, own_url, silence_ms, true, &err) != HF_OK)
        fail_msg("%s", err.msg);
}

static void end(struct server *s)
{
    cell_stop(s->cell);
    metrics_free(s->metrics);
}

static int fresh(void **state)
{
    (void)state;
    postgres = postgres_server_own();
    postgres_server_fresh(url);
    return 0;
}

static bool leads(const struct server *s)
{
    const struct metric *m = metrics_find(s->metrics, "holdfast_cell_is_master", NULL, NULL);
    assert_non_null(m);
    return metric_value(m) == 1;
}

static void await_leading(const struct server *s)
{
    int64_t until_us = wait_now_us() + LONG_US;
    while (!leads(s)) {
        assert_true(wait_now_us() < until_us);
        wait_sleep_us(5000);
    }
}

static void await_ready(const struct server *s, bool ready)
{
    int64_t until_us = wait_now_us() + LONG_US;
    char why[256] = "";
    while (cell_ready(s->cell, why, sizeof why) != ready) {
        assert_true(wait_now_us() < until_us);
        wait_sleep_us(5000);
    }
    assert_true(ready || *why);
}

static void a_server_starts_without_its_journal_and_leads_once_it_is_there(void **state)
{
    (void)state;
    struct server s;
    char why[256] = "";
    struct id session;
    postgres_server_stop(postgres);
    begin(&s, "http://a", SILENCE_MS);
    assert_false(cell_ready(s.cell, why, sizeof why));
    assert_true(*why);
    assert_int_equal(cell_do_open(s.cell, TTL_MS, "a", &session), CELL_NO_MASTER);
    postgres_server_again(postgres);
    await_ready(&s, true);
    await_leading(&s);
    assert_int_equal(cell_do_open(s.cell, TTL_MS, "a", &session), CELL_DONE);
    end(&s);
}

static void a_journal_that_may_lose_entries_needs_the_operators_consent(void **state)
{
    (void)state;
    struct server s;
    struct hf_err err = {0};
    assert_int_equal(start(&s, "http://a", SILENCE_MS, false, &err), HF_INVALID_REQUEST);
    assert_non_null(strstr(err.msg, "--journal-may-lose"));
    metrics_free(s.metrics);
}

/* A standby does not know the master for a moment if its journal did not answer in time. */
static void await_refusal_that_names(const struct server *s, const struct id *session,
                                     const char *master_url)
{
    int64_t until_us = wait_now_us() + LONG_US;
    for (bool is_named = false; !is_named;) {
        struct cell_call call;
        cell_call_keepalive(&call, session);
        cell_call_begin(s->cell, &call);
        cell_call_wait(&call);
        assert_int_equal(call.r.verdict.result, CELL_NO_MASTER);
        is_named = strcmp(call.r.master_url, master_url) == 0;
        assert_true(is_named || !*call.r.master_url);
        cell_call_close(&call);
        assert_true(wait_now_us() < until_us);
    }
}

static void a_standby_redirects_and_takes_over_at_once_when_the_master_retires(void **state)
{
    (void)state;
    struct server a, b;
    struct id session;
    int64_t fence, again;
    char to[CELL_URL_MAX + 1] = "";
    begin(&a, "http://a", SILENCE_MS);
    await_leading(&a);
    begin(&b, "http://b", SILENCE_MS);
    int64_t until_us = wait_now_us() + LONG_US;
    while (!cell_redirect(b.cell, to) || strcmp(to, "http://a") != 0) {
        assert_true(wait_now_us() < until_us);
        wait_sleep_us(5000);
    }
    assert_int_equal(cell_do_open(a.cell, TTL_MS, "client", &session), CELL_DONE);
    assert_int_equal(cell_do_acquire(a.cell, &session, 1, "door", 0, &fence), CELL_DONE);
    await_refusal_that_names(&b, &session, "http://a");
    struct cell_topic *door = cell_topic_of_name(a.cell, "door", 4);
    assert_non_null(door);
    assert_null(cell_topic_of_name(b.cell, "door", 4));
    cell_retire(a.cell, LONG_US / 1000);
    assert_true(cell_topic_is_closed(door));
    assert_null(cell_topic_of_name(a.cell, "door", 4));
    cell_topic_unref(door);
    await_leading(&b); /* it does not wait for the silence */
    assert_int_equal(cell_do_acquire(b.cell, &session, 1, "door", 0, &again), CELL_DONE);
    assert_int_equal(again, fence);
    until_us = wait_now_us() + LONG_US; /* the old master still tells where the new one is */
    while (!cell_redirect(a.cell, to) || strcmp(to, "http://b") != 0) {
        assert_true(wait_now_us() < until_us);
        wait_sleep_us(5000);
    }
    assert_int_equal(cell_do_keepalive(a.cell, &session), CELL_NO_MASTER);
    end(&a);
    end(&b);
}

/* The journal accepts data but does not answer, so an append is under way until it times out. */
static void retiring_answers_everything_in_time_though_the_journal_hangs(void **state)
{
    (void)state;
    enum { CALLS = 20, LIMIT_MS = 300 };
    struct server s;
    struct id session;
    static struct cell_call calls[CALLS], waiter, holder;
    static char names[CALLS][16]; /* the calls borrow them until they are answered */
    begin(&s, "http://a", SILENCE_MS);
    await_leading(&s);
    assert_int_equal(cell_do_open(s.cell, TTL_MS, "client", &session), CELL_DONE);
    cell_call_acquire(&holder, &session, 100, "door", 0);
    cell_call_begin(s.cell, &holder);
    cell_call_wait(&holder);
    struct id other;
    assert_int_equal(cell_do_open(s.cell, TTL_MS, "other", &other), CELL_DONE);
    cell_call_acquire(&waiter, &other, 1, "door", WAIT_MS);
    cell_call_begin(s.cell, &waiter);
    assert_int_equal(cell_do_keepalive(s.cell, &other), CELL_DONE);
    postgres_server_freeze(postgres, true);
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        cell_call_acquire(&calls[i], &session, (uint16_t)(i + 1), names[i], 0);
        cell_call_begin(s.cell, &calls[i]);
    }
    int64_t begun_us = wait_now_us();
    cell_retire(s.cell, LIMIT_MS);
    int64_t retired_us = wait_now_us();
    for (int i = 0; i < CALLS; i++) {
        assert_true(cell_call_is_answered(&calls[i]));
        assert_true(calls[i].r.verdict.result == CELL_UNKNOWN ||
                    calls[i].r.verdict.result == CELL_STOPPING);
        cell_call_close(&calls[i]);
    }
    assert_true(cell_call_is_answered(&waiter));
    assert_true(waiter.r.verdict.result == CELL_STOPPING ||
                waiter.r.verdict.result == CELL_UNKNOWN);
    cell_call_close(&waiter);
    cell_call_close(&holder);
    assert_int_equal(cell_do_keepalive(s.cell, &session), CELL_STOPPING);
    end(&s);
    int64_t stopped_us = wait_now_us();
    postgres_server_freeze(postgres, false);
    print_message("retired after %lld ms, stopped after %lld ms\n",
                  (long long)(retired_us - begun_us) / 1000,
                  (long long)(stopped_us - retired_us) / 1000);
    assert_true(stopped_us - begun_us < LONG_US); /* the journal's timeout is 5 s */
}

static void a_journal_that_hangs_and_answers_again_is_told_and_loses_nothing(void **state)
{
    (void)state;
    struct server s;
    struct id session;
    int64_t fence, again;
    begin(&s, "http://a", SHORT_SILENCE_MS);
    await_leading(&s);
    int64_t until_us = wait_now_us() + LONG_US; /* the journal may hang before we stop it, too */
    while (cell_do_open(s.cell, TTL_MS, "client", &session) != CELL_DONE)
        assert_true(wait_now_us() < until_us);
    while (cell_do_acquire(s.cell, &session, 1, "door", 0, &fence) != CELL_DONE)
        assert_true(wait_now_us() < until_us);
    postgres_server_freeze(postgres, true);
    await_ready(&s, false);
    postgres_server_freeze(postgres, false);
    await_ready(&s, true);
    await_leading(&s);
    until_us = wait_now_us() + LONG_US;
    while (cell_do_acquire(s.cell, &session, 1, "door", 0, &again) != CELL_DONE)
        assert_true(wait_now_us() < until_us);
    assert_int_equal(again, fence);
    end(&s);
}

#define OUTAGE_TEST(claim) cmocka_unit_test_setup(claim, fresh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OUTAGE_TEST(a_server_starts_without_its_journal_and_leads_once_it_is_there),
        OUTAGE_TEST(a_journal_that_may_lose_entries_needs_the_operators_consent),
        OUTAGE_TEST(a_standby_redirects_and_takes_over_at_once_when_the_master_retires),
        OUTAGE_TEST(retiring_answers_everything_in_time_though_the_journal_hangs),
        OUTAGE_TEST(a_journal_that_hangs_and_answers_again_is_told_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
