/* Claims about waiters on a real etcd that the conformance suite cannot make: crowds, keys that
 * vanish, and endpoints that fall silent. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "lease/etcd/etcd.h"
#include "support/etcd_server.h"
#include "support/lease_calls.h"
#include "support/proxy.h"

static struct etcd_server server;

/* ---- what the claims share ---- */

static struct lease *open_server(void)
{
    char url[64];
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", server.port);
    return must_open(url, 10000);
}

static int start_server(void **state)
{
    (void)state;
    return etcd_server_start(&server) ? 0 : -1; /* is etcd installed? */
}

static int stop_server(void **state)
{
    (void)state;
    etcd_server_stop(&server);
    return 0;
}

/* ---- crowds ---- */

#define CROWD (CROWD_MIN + 6)

/* One handle holds the lock and has all those places, in the order of their numbers. */
static void make_crowd(struct lease *l, const char *key, struct lease_request *ret_holder,
                       struct lease_request ret[CROWD])
{
    *ret_holder = waits(key);
    assert_int_equal(must_acquire_again(l, ret_holder).result, HF_DONE);
    for (int i = 0; i < CROWD; i++) {
        ret[i] = waits(key);
        assert_int_equal(must_acquire_again(l, &ret[i]).result, HF_TAKEN);
    }
}

static bool is_in_line(struct lease *l, const struct subject *s)
{
    struct etcd_line line = {0};
    struct hf_fault fault = {0};
    etcd_begin(&etcd_of(l)->client, 0);
    assert_int_equal(etcd_txn_look(etcd_of(l), s, 1, &line, &fault), HF_DONE);
    bool has_own = line.has_own;
    etcd_line_close(&line);
    return has_own;
}

/* All those behind the first only ask, as calls do that find no handle to wait with. */
static void a_dead_waiter_at_the_head_of_a_crowd_is_passed_over_by_those_who_poll(void **state)
{
    (void)state;
    struct lease *l = open_server();
    struct lease_request holder, all[CROWD];
    int n_granted = 0;
    make_crowd(l, "dead head", &holder, all);
    for (int i = 1; i < 8; i++)
        assert_int_equal(must_acquire_again(l, &all[i]).result, HF_TAKEN);
    assert_int_equal(must_release(l, &holder), HF_DONE);
    for (int64_t end_ms = boot_ms() + 30000; !n_granted;) {
        assert_true(boot_ms() < end_ms);
        for (int i = 1; i < 8 && !n_granted; i++)
            n_granted += must_acquire_again(l, &all[i]).result == HF_DONE;
    }
    lease_close(l);
}

/* Its key is the youngest, so answers that show the head of the line do not show it.  It is tried
 * again with another name if the machine was so slow that waiters may have been taken for silent. */
static void a_crowd_keeps_its_places_while_one_holds_the_lock_that_did_not_queue(void **state)
{
    (void)state;
    struct lease *l = open_server();
    size_t n_waiters = 0;
    for (int n = 0; n_waiters != CROWD; n++) {
        char key[32];
        (void)snprintf(key, sizeof key, "barger-%d", n);
        struct lease_request holder, all[CROWD], barger = asks(key);
        int64_t from_ms = boot_ms();
        make_crowd(l, key, &holder, all);
        assert_int_equal(must_release_again(l, &holder), HF_DONE);
        assert_int_equal(must_acquire_again(l, &barger).result, HF_DONE);
        for (int64_t end_ms = boot_ms() + 5 * WAITER_CLAIM_MS; boot_ms() < end_ms;)
            for (int i = 1; i < 8; i++)
                assert_int_equal(must_acquire_again(l, &all[i]).result, HF_TAKEN);
        struct lease_state s = must_inspect(l, key);
        n_waiters = s.n_waiters;
        lease_state_close(&s);
        bool is_slow = boot_ms() - from_ms > WAITER_SILENT_MS / 4 * 3;
        assert_true(n_waiters == CROWD || (is_slow && n < 20));
    }
    lease_close(l);
}

/* Somebody took it for silent, for one. */
static void a_waiter_whose_key_is_gone_from_a_crowd_queues_anew(void **state)
{
    (void)state;
    struct lease *l = open_server();
    struct lease_request holder, all[CROWD], *gone = &all[CROWD - 2];
    struct subject s;
    struct buf body = {0};
    char answer[1024];
    make_crowd(l, "phantom", &holder, all);
    assert_int_equal(must_acquire_again(l, gone).result, HF_TAKEN);
    etcd_subject_init(&s, etcd_prefix(etcd_of(l)), gone);
    buf_char(&body, '{');
    wire_key(&body, &s, s.mode);
    buf_lit(&body, "}");
    buf_char(&body, '\0');
    assert_int_equal(
        etcd_server_ask(&server, "/v3/kv/deleterange", body.data, answer, sizeof answer), 200);
    assert_non_null(strstr(answer, "deleted"));
    buf_close(&body);
    assert_false(is_in_line(l, &s));
    for (int64_t end_ms = boot_ms() + 20000; !is_in_line(l, &s);) {
        assert_true(boot_ms() < end_ms);
        assert_int_equal(must_acquire_again(l, gone).result, HF_TAKEN);
        wait_sleep_us(20000);
    }
    lease_close(l);
}

/* ---- terms ---- */

/* The process believes that a leader of another term kept the lease alive, as one does that was
 * stopped, replaced and resumed.  Nothing refreshed the lease since it was granted, so a grant that
 * counts from that keep-alive would outlive it. */
static void a_refresh_of_another_term_does_not_count_for_a_grant(void **state)
{
    (void)state;
    struct lease *l = open_server();
    struct lease_request holder = waits("term"), r = waits("term");
    struct subject s;
    int64_t left_s = 0, ttl_s = 0;
    struct hf_fault fault = {0};
    assert_int_equal(must_acquire_again(l, &holder).result, HF_DONE);
    assert_int_equal(must_acquire_again(l, &r).result, HF_TAKEN);
    etcd_subject_init(&s, etcd_prefix(etcd_of(l)), &r);
    for (left_s = r.ttl_ms / 1000; left_s > r.ttl_ms / 1000 - 2;) { /* until some of it is gone */
        etcd_begin(&etcd_of(l)->client, 0);
        assert_int_equal(etcd_left(etcd_of(l), s.lease, &left_s, &ttl_s, &fault), HF_DONE);
        wait_sleep_us(50000);
    }
    crowd_refreshed(etcd_crowd(etcd_of(l)), s.lease, clock_boot_us(&clock_system), r.ttl_ms, 1);
    atomic_store(&etcd_of(l)->client.shared->term, 1);
    assert_int_equal(must_release(l, &holder), HF_DONE);
    int64_t from_ms = boot_ms();
    assert_int_equal(must_acquire_again(l, &r).result, HF_DONE);
    etcd_begin(&etcd_of(l)->client, 0);
    assert_int_equal(etcd_left(etcd_of(l), s.lease, &left_s, &ttl_s, &fault), HF_DONE);
    assert_true(left_s * 1000 + boot_ms() - from_ms >= r.ttl_ms - 1000);
    assert_int_equal(must_release(l, &r), HF_DONE);
    lease_close(l);
}

/* ---- endpoints ---- */

/* The member takes the request for a watch and says nothing, but answers all others. */
static void a_watch_that_is_not_confirmed_goes_to_another_endpoint(void **state)
{
    (void)state;
    char url[128];
    struct relay *proxy;
    struct hf_fault fault = {0};
    proxy = proxy_start(server.port);
    relay_lose_only(proxy, "/v3/watch");
    relay_set(proxy, RELAY_SWALLOW);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d", relay_port(proxy), server.port);
    struct lease *l = must_open(url, 3000), *other = open_server();
    struct lease_request holder = waits("hung"), waiter = waits("hung");
    assert_int_equal(must_acquire_again(other, &holder).result, HF_DONE);
    assert_int_equal(must_acquire_again(l, &waiter).result, HF_TAKEN);
    for (int64_t end_ms = boot_ms() + 60000; etcd_of(l)->watch.at != 1;) {
        assert_true(boot_ms() < end_ms);
        (void)!lease_wait(l, &waiter, 500, &fault); /* the timeout is short */
    }
    assert_int_equal(must_release(other, &holder), HF_DONE);
    for (int64_t end_ms = boot_ms() + 60000; must_acquire_again(l, &waiter).result != HF_DONE;) {
        assert_true(boot_ms() < end_ms);
        (void)!lease_wait(l, &waiter, 20000, &fault);
    }
    assert_int_equal(must_release(other, &waiter), HF_DONE);
    lease_close(l);
    lease_close(other);
    relay_stop(proxy);
}

/* The first endpoint falls silent, and one handle pays the timeout. */
static void clones_follow_a_handle_that_changes_endpoints(void **state)
{
    (void)state;
    char url[256];
    struct relay *proxy;
    struct lease *clone = NULL;
    struct hf_fault fault = {0};
    struct lease_request r = waits("follows");
    proxy = proxy_start(server.port);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d", relay_port(proxy), server.port);
    struct lease *l = must_open(url, 8000);
    assert_int_equal(lease_clone(l, &clone, &fault), HF_DONE);
    assert_int_equal(must_acquire_again(clone, &r).result, HF_DONE);
    relay_set(proxy, RELAY_SWALLOW);
    assert_int_equal(must_renew_again(l, &r).result, HF_DONE);
    uint64_t before = relay_count(proxy).lost;
    assert_int_equal(must_renew_again(clone, &r).result, HF_DONE);
    assert_int_equal(relay_count(proxy).lost, before); /* it did not ask there */
    assert_int_equal(must_release(clone, &r), HF_DONE);
    lease_close(l);
    lease_close(clone);
    relay_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_waiter_at_the_head_of_a_crowd_is_passed_over_by_those_who_poll),
        cmocka_unit_test(a_crowd_keeps_its_places_while_one_holds_the_lock_that_did_not_queue),
        cmocka_unit_test(a_waiter_whose_key_is_gone_from_a_crowd_queues_anew),
        cmocka_unit_test(a_refresh_of_another_term_does_not_count_for_a_grant),
        cmocka_unit_test(a_watch_that_is_not_confirmed_goes_to_another_endpoint),
        cmocka_unit_test(clones_follow_a_handle_that_changes_endpoints),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
