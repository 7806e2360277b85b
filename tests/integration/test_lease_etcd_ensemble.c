/* Claims about locks on an etcd of three members, some of which are lost.  Elections take seconds,
 * so `make soak` runs this, and `make test` does not. */
#include "support/fixtures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/etcd_server.h"
#include "support/lease_calls.h"

#define MEMBERS 3
#define PATIENCE_MS 60000

static struct etcd_server members[MEMBERS];
static char url[256];

static struct etcd_server *leader(void)
{
    for (int64_t end_ms = boot_ms() + PATIENCE_MS; boot_ms() < end_ms; nap_ms(50))
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
    struct lease *l = must_open(url, 2000);
    struct lease_request held = asks_for("held", 60000);
    struct lease_verdict first = must_acquire_again(l, &held);
    assert_int_equal(first.result, HF_DONE);
    int64_t fence = first.fence;
    for (int i = 0; i < MEMBERS; i++) {
        struct etcd_server *lost = i == 0 ? leader() : &members[i];
        struct lease_request r = asks_for("passed on", 10000), other = asks_for("held", 10000);
        etcd_server_kill(lost);
        int64_t from_ms = boot_ms();
        struct lease_verdict v = must_acquire_again(l, &r);
        print_message("without member %d: granted after %d ms\n", i, (int)(boot_ms() - from_ms));
        assert_int_equal(v.result, HF_DONE);
        assert_true(v.fence > fence);
        fence = v.fence;
        assert_int_equal(must_acquire_again(l, &other).result, HF_TAKEN);
        v = must_renew_again(l, &held);
        assert_int_equal(v.result, HF_DONE);
        assert_int_equal(v.fence, first.fence);
        enum hf_result released = must_release_again(l, &r);
        assert_true(released == HF_DONE || released == HF_LOST); /* an answer may be lost */
        etcd_server_again(lost, true);
    }
    assert_int_equal(must_release_again(l, &held), HF_DONE);
    lease_close(l);
}

static void without_a_majority_the_message_names_the_quorum(void **state)
{
    (void)state;
    struct lease *l = must_open(url, 2000), *none = NULL;
    struct lease_request held = asks_for("held", 60000), r = asks_for("refused", 10000);
    struct lease_verdict v;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 2000, .clock = &clock_system};
    assert_int_equal(must_acquire_again(l, &held).result, HF_DONE);
    etcd_server_kill(&members[0]);
    etcd_server_kill(&members[1]);
    bool is_named = false; /* at first the last member may still think that there is a leader */
    for (int64_t end_ms = boot_ms() + 20000; !is_named && boot_ms() < end_ms;) {
        enum hf_result result = lease_acquire(l, &r, &v, &fault);
        assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
        is_named = strstr(fault.msg, "quorum");
    }
    print_message("%s\n", fault.msg);
    assert_true(is_named);
    int64_t end_ms = boot_ms() + 20000;
    do /* the last member may stand still for longer than the timeout */
        assert_int_equal(lease_open(lease_driver_for(url), url, &options, &none, &fault),
                         HF_UNREACHABLE);
    while (!strstr(fault.msg, "quorum") && boot_ms() < end_ms);
    print_message("%s\n", fault.msg);
    assert_non_null(strstr(fault.msg, "quorum"));
    etcd_server_again(&members[0], false);
    etcd_server_again(&members[1], true);
    v = must_renew_again(l, &held);
    assert_int_equal(v.result, HF_DONE); /* its lease did not go on without a leader */
    assert_int_equal(must_acquire_again(l, &r).result, HF_DONE);
    assert_int_equal(must_release_again(l, &held), HF_DONE);
    lease_close(l);
}

/* A leader that was stopped and replaced still answers renewals when it goes on.  They must not
 * count: another may have the lock. */
static void a_replaced_leader_renews_nothing(void **state)
{
    (void)state;
    struct etcd_server *old = leader();
    struct lease *l = must_open(url, 2000);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", old->port);
    struct lease *to_old = must_open(url, 2000);
    struct lease_request a = asks_for("resumed", 2000), b = asks_for("resumed", 30000);
    assert_int_equal(must_acquire_again(to_old, &a).result, HF_DONE);
    etcd_server_pause(old);
    while (must_acquire_again(l, &b).result != HF_DONE)
        nap_ms(50);
    etcd_server_resume(old);
    struct lease_verdict renewed = must_renew_again(to_old, &a);
    assert_int_equal(renewed.result, HF_LOST);
    enum hf_result kept = must_renew_again(l, &b).result;
    print_message("the new holder %s its lease\n", kept == HF_DONE ? "kept" : "lost (15247)");
    if (kept == HF_DONE)
        assert_int_equal(must_release_again(l, &b), HF_DONE);
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
