/* The Redlock driver and its settings: new servers, passwords, rights, memory, the number of
 * servers, max_ttl.  Each test has three redis-servers of its own. */
#include "support/fixtures.h"

#include "support/port.h"
#include "support/redlock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Two votes are enough for a lock, and the third server may have been started last, or be slow. */
static void acquire_until_all_vote(struct lease *l, const struct lease_request *q,
                                   const struct trio *t)
{
    acquire_soon(l, q);
    int64_t end_ms = boot_ms() + 30000;
    while (!(has_vote(&t->s[0]) && has_vote(&t->s[1]) && has_vote(&t->s[2]))) {
        assert_true(boot_ms() < end_ms);
        (void)must_release_again(l, q);
        acquire_soon(l, q);
    }
}

static void new_servers_take_part_after_max_ttl_unless_vouched_for(void **state)
{
    (void)state;
    struct trio t;
    struct hf_fault fault = {0};
    struct lease_verdict v;
    struct lease *l;
    struct lease_request q = asks_for(KEY, 1000);
    enum hf_result result;
    for (;;) { /* until they are asked while they are new */
        int64_t from_ms = boot_ms();
        trio_start(&t, "?max_ttl=3s");
        l = must_open(t.url, 8000);
        result = lease_acquire(l, &q, &v, &fault);
        if (result == HF_UNREACHABLE || boot_ms() - from_ms < 3000)
            break;
        lease_close(l);
        trio_stop(&t);
    }
    assert_int_equal(result, HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "takes part in"));
    struct lease_request beyond = asks_for(KEY, 3001); /* of max_ttl */
    assert_int_equal(lease_acquire(l, &beyond, &v, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "to 3 s"));
    acquire_until_all_vote(l, &q, &t);
    lease_close(l);
    trio_stop(&t);
}

static void passwords_that_are_wrong_are_reported_and_never_shown(void **state)
{
    (void)state;
    struct trio t = {
        .s = {{.password = "right-one"}, {.password = "right-one"}, {.password = "x"}}};
    struct hf_fault fault = {0};
    struct lease *l = NULL;
    struct lease_options options = {.timeout_ms = 8000, .clock = &clock_system};
    int64_t last = 0;
    for (int i = 0; i < 3; i++) {
        assert_true(redis_server_start(&t.s[i]));
        vouch(&t.s[i]);
    }
    snprintf(t.url, sizeof t.url, "redlock://:right-one@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             t.s[0].port, t.s[1].port, t.s[2].port);
    l = must_open(t.url, 8000); /* two of three are enough */
    use(l, &last);
    lease_close(l);
    snprintf(t.url, sizeof t.url, "redlock://:wrong-one@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             t.s[0].port, t.s[1].port, t.s[2].port);
    assert_int_equal(lease_open(&lease_redlock, t.url, &options, &l, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "wrong user or password"));
    assert_null(strstr(fault.msg, "wrong-one"));
    trio_stop(&t);
}

static void two_addresses_of_one_server_are_one_vote(void **state)
{
    (void)state;
    struct trio t;
    struct hf_fault fault = {0};
    struct lease_verdict v;
    trio_start_vouched(&t, "");
    snprintf(t.url, sizeof t.url, "redlock://127.0.0.1:%d,localhost:%d,127.0.0.1:%d", t.s[0].port,
             t.s[0].port, port_free(NULL));
    struct lease *l = must_open(t.url, 8000);
    struct lease_request q = asks_for(KEY, 1000);
    assert_int_equal(lease_acquire(l, &q, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "is the same server as"));
    lease_close(l);
    trio_stop(&t);
}

static void renewal_needs_no_memory(void **state)
{
    (void)state;
    struct trio t;
    char answer[256];
    trio_start_vouched(&t, "");
    struct lease *l = must_open(t.url, 8000);
    struct lease_request q = asks_for(KEY, 20000), shared = asks_for(KEY, 20000),
                         next = asks_for(KEY, 20000);
    shared.mode = HF_SHARED;
    shared.key = "shared";
    shared.key_len = strlen(shared.key);
    int64_t fence = acquire_soon(l, &q).fence, reader = must_acquire_again(l, &shared).fence;
    for (int i = 0; i < 3; i++) {
        ask(&t.s[i], "CONFIG SET maxmemory 1", answer);
        assert_string_equal(answer, "+OK");
    }
    next.key = "next";
    next.key_len = strlen(next.key);
    struct lease_verdict v;
    struct hf_fault fault = {0};
    assert_int_equal(lease_acquire(l, &next, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "OOM"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(must_renew_again(l, &q).fence, fence);
        assert_int_equal(must_renew_again(l, &shared).fence, reader);
    }
    assert_int_equal(must_release_again(l, &q), HF_DONE);
    assert_int_equal(must_release_again(l, &shared), HF_DONE);
    lease_close(l);
    trio_stop(&t);
}

struct noted {
    bool even, eviction, clock, down;
    int n_votes, n_without; /* servers that are named as having a vote, or none */
};

static void note(void *ctx, const struct hf_finding *f)
{
    struct noted *n = ctx;
    n->even = n->even || (strcmp(f->topic, "servers") == 0 && f->grade == HF_NOTE);
    n->eviction = n->eviction || (strcmp(f->topic, "eviction") == 0 && f->grade == HF_DANGER);
    n->clock = n->clock || strcmp(f->topic, "clock") == 0;
    n->down = n->down || (strcmp(f->topic, "server") == 0 && f->grade == HF_WARNING);
    n->n_votes += strstr(f->text, ": has a vote in this run") != NULL;
    n->n_without += strstr(f->text, ": has no vote yet") != NULL;
}

static void examining_reports_an_even_number_a_lost_server_and_eviction(void **state)
{
    (void)state;
    struct trio t;
    char url[256], answer[256];
    struct noted n = {0};
    struct hf_fault fault = {0};
    trio_start_vouched(&t, "");
    ask(&t.s[1], "CONFIG SET maxmemory 100mb", answer);
    ask(&t.s[1], "CONFIG SET maxmemory-policy allkeys-lru", answer);
    snprintf(url, sizeof url, "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             t.s[0].port, t.s[1].port, t.s[2].port, port_free(NULL));
    struct lease *l = must_open(url, 8000);
    if (lease_examine(l, note, &n, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_true(n.even && n.eviction && n.clock && n.down);
    assert_int_equal(n.n_votes, 0); /* examining lets nobody in */
    assert_int_equal(n.n_without, 3);
    struct lease_request q = asks_for(KEY, 1000);
    acquire_until_all_vote(l, &q, &t);
    lease_close(l);
    struct lease *fresh = must_open(url, 8000);
    n = (struct noted){0};
    if (lease_examine(fresh, note, &n, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_int_equal(n.n_votes, 3);
    assert_int_equal(n.n_without, 0);
    lease_close(fresh);
    trio_stop(&t);
}

static void a_user_with_the_documented_rights_can_do_everything(void **state)
{
    (void)state;
    struct trio t;
    struct lease_state found = {0};
    struct hf_fault fault = {0};
    char answer[256];
    int64_t last = 0;
    trio_start_vouched(&t, "");
    for (int i = 0; i < 3; i++) {
        ask(&t.s[i],
            "ACL SETUSER locks on >secret resetkeys resetchannels -@all ~holdfast:* &holdfast:* "
            "+ping +info +eval +evalsha +subscribe +unsubscribe +publish +time +get +mget +set "
            "+incr +del +exists +pttl +pexpire +hget +hset +hdel +hkeys +hgetall",
            answer);
        assert_string_equal(answer, "+OK");
    }
    snprintf(t.url, sizeof t.url, "redlock://locks:secret@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
             t.s[0].port, t.s[1].port, t.s[2].port);
    struct lease *l = must_open(t.url, 8000);
    use(l, &last);
    struct lease_request reader = asks_for(KEY, 20000), other = asks_for(KEY, 20000),
                         writer = asks_for(KEY, 20000);
    reader.mode = other.mode = HF_SHARED;
    writer.queue = true;
    assert_int_equal(must_acquire_again(l, &reader).result, HF_DONE);
    assert_int_equal(must_acquire_again(l, &other).result, HF_DONE);
    assert_int_equal(must_renew_again(l, &reader).result, HF_DONE);
    assert_int_equal(must_acquire_again(l, &writer).result, HF_TAKEN);
    assert_int_equal(lease_wait(l, &writer, 100, &fault), HF_DONE);
    if (lease_inspect(l, KEY, strlen(KEY), &found, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_int_equal(found.n_holders, 2);
    lease_state_close(&found);
    assert_int_equal(must_release_again(l, &reader), HF_DONE);
    if (lease_break(l, KEY, strlen(KEY), &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_int_equal(must_acquire_again(l, &writer).result, HF_DONE);
    lease_close(l);
    trio_stop(&t);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_servers_take_part_after_max_ttl_unless_vouched_for),
        cmocka_unit_test(passwords_that_are_wrong_are_reported_and_never_shown),
        cmocka_unit_test(two_addresses_of_one_server_are_one_vote),
        cmocka_unit_test(renewal_needs_no_memory),
        cmocka_unit_test(examining_reports_an_even_number_a_lost_server_and_eviction),
        cmocka_unit_test(a_user_with_the_documented_rights_can_do_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
