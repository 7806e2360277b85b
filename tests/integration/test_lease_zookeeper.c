/* The ZooKeeper driver over one real server: what the conformance suite cannot know. */
#include "support/fixtures.h"

#include "support/lease_calls.h"
#include "support/zookeeper_server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct zookeeper_server server;

/* ---- sessions ---- */

/* ---- negotiated TTLs ---- */

static void note_ttl(void *ctx, const struct hf_finding *finding)
{
    if (strcmp(finding->topic, "TTL") == 0)
        snprintf(ctx, 500, "%s", finding->text);
}

static void a_ttl_beyond_the_servers_limits_is_cut_or_refused(void **state)
{
    (void)state;
    struct zookeeper_server strict = {.session_min_ms = 12500, .session_max_ms = 15500};
    assert_true(zookeeper_server_start(&strict));
    struct lease *l = must_open(strict.url, 10000), *other;
    struct lease_request q = asks_for("negotiated", 60000);
    struct lease_verdict v = must_acquire_again(l, &q);
    assert_int_equal(v.result, HF_DONE);
    assert_in_range(v.remaining_ms, 1000, 15500);
    assert_int_equal(lease_renew(l, &q, 1, &v, NULL), HF_DONE);
    assert_in_range(v.remaining_ms, 1000, 15500);
    assert_int_equal(must_release_again(l, &q), HF_DONE);
    struct hf_fault fault = {0};
    q = asks_for("negotiated", 1000);
    assert_int_equal(lease_acquire(l, &q, &v, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "12500"));
    assert_int_equal(lease_ttl_min_ms(l), 12500); /* from now on it is refused before it is sent */
    assert_int_equal(lease_clone(l, &other, NULL), HF_DONE);
    assert_int_equal(lease_ttl_min_ms(other), 12500);
    char text[500] = "";
    assert_int_equal(lease_examine(l, note_ttl, text, &fault), HF_DONE);
    assert_non_null(strstr(text, "12500"));
    assert_non_null(strstr(text, "15500"));
    lease_close(other);
    lease_close(l);
    zookeeper_server_stop(&strict);
}

static void leases_of_many_ttls_share_few_sessions(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q[20];
    char keys[20][32];
    for (int i = 0; i < 20; i++) {
        snprintf(keys[i], sizeof keys[i], "ttl-%d", i);
        q[i] = asks_for(keys[i], 10000 + 1000 * i);
        int64_t from_ms = boot_ms();
        struct lease_verdict v = must_acquire_again(l, &q[i]);
        int64_t passed_ms = boot_ms() - from_ms;
        assert_int_equal(v.result, HF_DONE);
        assert_in_range(v.remaining_ms, passed_ms < 7000 ? 7000 - passed_ms : 0, 10000 + 1000 * i);
    }
    char answer[4096];
    zookeeper_server_ask(&server, "srvr", answer, sizeof answer);
    const char *connections = strstr(answer, "Connections: ");
    assert_non_null(connections);
    assert_in_range(strtol(connections + 13, NULL, 10), 1, 12);
    for (int i = 0; i < 20; i++)
        assert_int_equal(must_release_again(l, &q[i]), HF_DONE);
    lease_close(l);
}

/* ---- rights ---- */

static void url_of(const char *user, char ret[128])
{
    snprintf(ret, 128, "zookeeper://%s@127.0.0.1:%d/rights", user, server.port);
}

static void other_users_can_neither_take_nor_break_a_lock(void **state)
{
    (void)state;
    char url[128];
    url_of("anna:sesame", url);
    struct lease *l = must_open(url, 10000), *other;
    struct lease_request q = asks_for("digest", 10000);
    assert_int_equal(must_acquire_again(l, &q).result, HF_DONE);
    static const char *const users[] = {"anna:barley", "bert:sesame"};
    for (int i = 0; i < 2; i++) {
        struct hf_fault fault;
        url_of(users[i], url);
        assert_int_equal(try_open(url, 20000, &other, &fault), HF_UNREACHABLE);
        assert_non_null(strstr(fault.msg, "credentials"));
        assert_null(strstr(fault.msg, strchr(users[i], ':') + 1));
    }
    struct hf_fault fault;
    snprintf(url, sizeof url, "%s/rights", server.url);
    assert_int_equal(try_open(url, 20000, &other, &fault), HF_UNREACHABLE);
    assert_int_equal(must_release_again(l, &q), HF_DONE);
    lease_close(l);
}

/* ---- waiters ---- */

#define WAITERS 30

struct sleeper {
    struct lease *l;
    struct lease_request q;
    pthread_t thread;
    _Atomic bool stop;
};

static void *sleeper_run(void *arg)
{
    struct sleeper *x = arg;
    struct lease_verdict v;
    while (!atomic_load(&x->stop)) {
        if (lease_acquire(x->l, &x->q, &v, NULL) != HF_DONE || v.result == HF_DONE)
            break;
        (void)!lease_wait(x->l, &x->q, 2000, NULL);
    }
    (void)!lease_release(x->l, &x->q, 1, &v, NULL);
    return NULL;
}

static int64_t packets(void)
{
    char answer[8192];
    zookeeper_server_ask(&server, "mntr", answer, sizeof answer);
    const char *at = strstr(answer, "zk_packets_received");
    assert_non_null(at);
    return strtoll(at + strlen("zk_packets_received"), NULL, 10);
}

/* Every hand-over costs a few requests, however many wait: each waiter watches one node.  Those
 * near the head look from time to time; that is taken off. */
static void a_release_wakes_one_waiter_and_not_the_herd(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request holder = asks_for("herd", 60000);
    assert_int_equal(must_acquire_again(l, &holder).result, HF_DONE);
    static struct sleeper sleepers[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        sleepers[i].q = waits_for("herd", 60000);
        assert_int_equal(lease_clone(l, &sleepers[i].l, NULL), HF_DONE);
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleeper_run, &sleepers[i]), 0);
    }
    struct lease_state s = {0};
    for (int64_t end_ms = boot_ms() + 30000; s.n_waiters < WAITERS && boot_ms() < end_ms;) {
        lease_state_close(&s);
        s = must_inspect(l, "herd");
    }
    assert_int_equal(s.n_waiters, WAITERS);
    lease_state_close(&s);
    int64_t before = packets(), from_ms = boot_ms();
    assert_int_equal(must_release_again(l, &holder), HF_DONE);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(sleepers[i].thread, NULL);
        lease_close(sleepers[i].l);
    }
    int64_t took_ms = boot_ms() - from_ms, sent = packets() - before;
    print_message("%d hand-overs: %d ms, %d requests\n", WAITERS, (int)took_ms, (int)sent);
    /* A herd would take WAITERS * WAITERS / 2 = 450 requests or more. */
    int64_t looks = took_ms / 25; /* ten per second and place, divided by the place */
    assert_true(sent - looks < 10 * WAITERS);
    lease_close(l);
}

/* ---- what is left behind ---- */

static void nothing_but_empty_containers_is_left(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request a = asks_for("left", 10000), r = asks_for("left", 10000);
    r.mode = HF_SHARED;
    assert_int_equal(must_acquire_again(l, &r).result, HF_DONE);
    assert_int_equal(must_release_again(l, &r), HF_DONE);
    assert_int_equal(must_acquire_again(l, &a).result, HF_DONE); /* over the container of readers */
    assert_int_equal(must_acquire_again(l, &r).result, HF_TAKEN);
    assert_int_equal(must_release_again(l, &a), HF_DONE);
    assert_int_equal(must_acquire_again(l, &r).result, HF_DONE);
    assert_int_equal(must_release_again(l, &r), HF_DONE);
    lease_close(l);
    char answer[8192];
    for (int i = 0; i < 3000; i++) { /* the server ends the session a moment later */
        zookeeper_server_ask(&server, "mntr", answer, sizeof answer);
        const char *at = strstr(answer, "zk_ephemerals_count");
        assert_non_null(at);
        if (strtol(at + strlen("zk_ephemerals_count"), NULL, 10) == 0)
            return;
        usleep(10000);
    }
    fail_msg("ephemeral nodes are left");
}

static int start(void **state)
{
    (void)state;
    return zookeeper_server_start(&server) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    zookeeper_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_empty_containers_is_left),
        cmocka_unit_test(a_ttl_beyond_the_servers_limits_is_cut_or_refused),
        cmocka_unit_test(leases_of_many_ttls_share_few_sessions),
        cmocka_unit_test(other_users_can_neither_take_nor_break_a_lock),
        cmocka_unit_test(a_release_wakes_one_waiter_and_not_the_herd),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
