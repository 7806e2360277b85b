/* Claims about locks on an etcd of three members, some of which are lost.  Elections take seconds,
 * so `make soak` runs this, and `make test` does not. */
#include "support/fixtures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "lease/lease.h"
#include "support/etcd_server.h"
#include "support/lease_call.h"

#define MEMBERS 3
#define PATIENCE_MS 60000

static struct etcd_server members[MEMBERS];
static char url[256];

static int64_t now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

static void rest_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0)
        ;
}

static struct lease *must_open(void)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 2000, .clock = &clock_system};
    for (int64_t end_ms = now_ms() + PATIENCE_MS; !l && now_ms() < end_ms;)
        if (lease_open(lease_driver_for(url), url, &options, &l, &fault) != HF_DONE)
            rest_ms(100);
    if (!l)
        print_error("%s\n", fault.msg);
    assert_non_null(l);
    return l;
}

static struct lease_request asks(const char *key, int64_t ttl_ms)
{
    struct lease_request r = {.key = key, .key_len = strlen(key), .ttl_ms = ttl_ms, .slots = 1};
    struct random random;
    random_init_system(&random);
    random_bytes(&random, r.owner, sizeof r.owner);
    return r;
}

/* Calls until there is an answer. */
static struct lease_verdict until_answered(lease_call *call, struct lease *l,
                                           const struct lease_request *r)
{
    struct lease_verdict v = {0};
    struct hf_fault fault = {0};
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (call(l, r, 1, &v, &fault) != HF_DONE) {
        if (now_ms() > end_ms)
            print_error("%s\n", fault.msg);
        assert_true(now_ms() < end_ms);
        rest_ms(50);
    }
    return v;
}

static struct etcd_server *leader(void)
{
    for (int64_t end_ms = now_ms() + PATIENCE_MS; now_ms() < end_ms; rest_ms(50))
        for (int i = 0; i < MEMBERS; i++) {
            char answer[1024];
            if (!members[i].pid || etcd_server_ask(&members[i], "/v3/maintenance/status", "{}",
                                                   answer, sizeof answer) != 200)
                continue;
            json_t *json = json_loads(answer, 0, NULL);
            const char *id =
                json_string_value(json_object_get(json_object_get(json, "header"), "member_id"));
            const char *lead = json_string_value(json_object_get(json, "leader"));
            bool is_leader = id && lead && strcmp(id, lead) == 0;
            json_decref(json);
            if (is_leader)
                return &members[i];
        }
    fail_msg("no leader");
    return NULL;
}

static int start(void **state)
{
    (void)state;
    if (!etcd_cluster_start(members, MEMBERS))
        return -1;
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", members[0].port,
             members[1].port, members[2].port);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        etcd_server_stop(&members[i]);
    return 0;
}

static void locks_survive_the_loss_of_any_one_member(void **state)
{
    (void)state;
    struct lease *l = must_open();
    struct lease_request held = asks("held", 60000);
    struct lease_verdict first = until_answered(call_acquire, l, &held);
    assert_int_equal(first.result, HF_DONE);
    int64_t fence = first.fence;
    for (int i = 0; i < MEMBERS; i++) {
        struct etcd_server *lost = i == 0 ? leader() : &members[i];
        struct lease_request r = asks("passed on", 10000), other = asks("held", 10000);
        etcd_server_kill(lost);
        int64_t from_ms = now_ms();
        struct lease_verdict v = until_answered(call_acquire, l, &r);
        print_message("without member %d: granted after %d ms\n", i, (int)(now_ms() - from_ms));
        assert_int_equal(v.result, HF_DONE);
        assert_true(v.fence > fence);
        fence = v.fence;
        assert_int_equal(until_answered(call_acquire, l, &other).result, HF_TAKEN);
        v = until_answered(lease_renew, l, &held);
        assert_int_equal(v.result, HF_DONE);
        assert_int_equal(v.fence, first.fence);
        enum hf_result released = until_answered(lease_release, l, &r).result;
        assert_true(released == HF_DONE || released == HF_LOST); /* an answer may be lost */
        etcd_server_again(lost, true);
    }
    assert_int_equal(until_answered(lease_release, l, &held).result, HF_DONE);
    lease_close(l);
}

static void without_a_majority_the_message_names_the_quorum(void **state)
{
    (void)state;
    struct lease *l = must_open(), *none = NULL;
    struct lease_request held = asks("held", 60000), r = asks("refused", 10000);
    struct lease_verdict v;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 2000, .clock = &clock_system};
    assert_int_equal(until_answered(call_acquire, l, &held).result, HF_DONE);
    etcd_server_kill(&members[0]);
    etcd_server_kill(&members[1]);
    bool is_named = false; /* at first the last member may still think that there is a leader */
    for (int64_t end_ms = now_ms() + 20000; !is_named && now_ms() < end_ms;) {
        enum hf_result result = lease_acquire(l, &r, &v, &fault);
        assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
        is_named = strstr(fault.msg, "quorum");
    }
    print_message("%s\n", fault.msg);
    assert_true(is_named);
    assert_int_equal(lease_open(lease_driver_for(url), url, &options, &none, &fault),
                     HF_UNREACHABLE);
    print_message("%s\n", fault.msg);
    assert_non_null(strstr(fault.msg, "quorum"));
    etcd_server_again(&members[0], false);
    etcd_server_again(&members[1], true);
    v = until_answered(lease_renew, l, &held);
    assert_int_equal(v.result, HF_DONE); /* its lease did not go on without a leader */
    assert_int_equal(until_answered(call_acquire, l, &r).result, HF_DONE);
    assert_int_equal(until_answered(lease_release, l, &held).result, HF_DONE);
    lease_close(l);
}

/* A leader that was stopped and replaced still answers renewals when it goes on.  They must not
 * count: another may have the lock. */
static void a_replaced_leader_renews_nothing(void **state)
{
    (void)state;
    struct etcd_server *old = leader();
    struct lease *l = must_open();
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", old->port);
    struct lease *to_old = must_open();
    struct lease_request a = asks("resumed", 2000), b = asks("resumed", 30000);
    assert_int_equal(until_answered(call_acquire, to_old, &a).result, HF_DONE);
    etcd_server_pause(old);
    while (until_answered(call_acquire, l, &b).result != HF_DONE)
        rest_ms(50);
    etcd_server_resume(old);
    struct lease_verdict renewed = until_answered(lease_renew, to_old, &a);
    assert_int_equal(renewed.result, HF_LOST);
    enum hf_result kept = until_answered(lease_renew, l, &b).result;
    print_message("the new holder %s its lease\n", kept == HF_DONE ? "kept" : "lost (15247)");
    if (kept == HF_DONE)
        assert_int_equal(until_answered(lease_release, l, &b).result, HF_DONE);
    lease_close(l);
    lease_close(to_old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_survive_the_loss_of_any_one_member),
        cmocka_unit_test(without_a_majority_the_message_names_the_quorum),
        cmocka_unit_test(a_replaced_leader_renews_nothing),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
