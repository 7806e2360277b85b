/* The Redis driver beside a real redis-server: what is Redis's own about it.  What every driver
 * must do is tested by tests/conformance. */
#include "unit/support.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "lease/redis_link.h"
#include "support/redis_server.h"

extern const struct lease_driver lease_redis;

static struct redis_server server;
static struct random source;

static struct lease *open_at(const char *url, int64_t timeout_ms)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    if (lease_redis.open(url, &options, &l, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return l;
}

static struct lease_request asks(const char *key)
{
    struct lease_request q = {.key = key, .key_len = strlen(key), .ttl_ms = 30000, .slots = 1};
    random_bytes(&source, q.owner, sizeof q.owner);
    return q;
}

static struct lease_request waits(const char *key)
{
    struct lease_request q = asks(key);
    q.queue = true;
    return q;
}

static struct lease_verdict acquire(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    if (lease_redis.acquire(l, q, 1, &v, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return v;
}

static struct lease_verdict renew(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    assert_int_equal(lease_redis.renew(l, q, 1, &v, NULL), HF_DONE);
    return v;
}

static enum hf_result release(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    if (lease_redis.release(l, q, 1, &v, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return v.result;
}

static struct hf_lock_state inspect(struct lease *l, const char *key)
{
    struct hf_lock_state state = {0};
    assert_int_equal(lease_redis.inspect(l, key, strlen(key), &state, NULL), HF_DONE);
    return state;
}

static void state_close(struct hf_lock_state *state)
{
    free(state->holders);
    free(state->waiters);
}

static int64_t now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

static void ask(const char *command)
{
    char answer[256];
    redis_server_ask(&server, command, answer, sizeof answer);
    assert_true(answer[0] == '+' || answer[0] == ':');
}

/* Only the fence is left. */
static void assert_nothing_left(void)
{
    char answer[1024];
    redis_server_ask(&server, "KEYS *", answer, sizeof answer);
    assert_string_equal(answer, "*1\r\n$14\r\nholdfast:fence\r\n");
}

/* ---- forms: alone and crowd ---- */

static void one_holds_and_the_repeat_finds_the_same_grant(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request a = asks("one"), b = asks("one");
    struct lease_verdict first = acquire(l, &a), again = acquire(l, &a), other = acquire(l, &b);
    assert_int_equal(first.result, HF_DONE);
    assert_int_equal(first.remaining_ms, 30000);
    assert_int_equal(again.result, HF_DONE);
    assert_int_equal(again.fence, first.fence);
    assert_in_range(again.remaining_ms, 25000, 30000);
    assert_int_equal(other.result, HF_TAKEN);
    assert_int_equal(other.position, 0);
    assert_int_equal(renew(l, &b).result, HF_LOST);
    assert_int_equal(release(l, &b), HF_LOST);
    assert_int_equal(renew(l, &a).fence, first.fence);
    assert_int_equal(release(l, &a), HF_DONE);
    assert_int_equal(release(l, &a), HF_LOST);
    assert_nothing_left();
    lease_redis.close(l);
}

static void a_crowd_keeps_the_holder_its_fence_and_its_time(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request a = asks("crowd"), b = waits("crowd");
    a.label = "nightly * report";
    a.label_len = strlen(a.label);
    int64_t fence = acquire(l, &a).fence;
    struct lease_verdict v = acquire(l, &b);
    assert_int_equal(v.result, HF_TAKEN);
    assert_int_equal(v.position, 1);
    assert_in_range(v.remaining_ms, 25000, 30000);
    struct hf_lock_state s = inspect(l, "crowd");
    assert_int_equal(s.n_holders, 1);
    assert_int_equal(s.n_waiters, 1);
    assert_int_equal(s.holders[0].fence, fence);
    assert_int_equal(s.last_fence, fence);
    assert_string_equal(s.holders[0].label, a.label);
    assert_int_equal(s.waiters[0].fence, 0);
    assert_in_range(s.waiters[0].remaining_ms, 4000, 5000);
    state_close(&s);
    assert_int_equal(acquire(l, &a).fence, fence);
    assert_int_equal(renew(l, &a).fence, fence);
    assert_int_equal(release(l, &a), HF_DONE);
    /* not past the one who waits */
    struct lease_request c = asks("crowd");
    assert_int_equal(acquire(l, &c).result, HF_TAKEN);
    v = acquire(l, &b);
    assert_int_equal(v.result, HF_DONE);
    assert_true(v.fence > fence);
    assert_int_equal(release(l, &b), HF_DONE);
    assert_nothing_left();
    lease_redis.close(l);
}

static void a_lease_ends_by_the_servers_clock_in_either_form(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    for (int crowd = 0; crowd < 2; crowd++) {
        struct lease_request a = asks("ttl"), b = waits("ttl");
        a.ttl_ms = 150;
        int64_t begin_ms = now_ms();
        assert_int_equal(acquire(l, &a).result, HF_DONE);
        if (crowd)
            assert_int_equal(acquire(l, &b).result, HF_TAKEN);
        while (acquire(l, &b).result != HF_DONE)
            usleep(1000);
        assert_in_range(now_ms() - begin_ms, 149, 1000);
        assert_int_equal(renew(l, &a).result, HF_LOST);
        assert_int_equal(release(l, &a), HF_LOST);
        assert_int_equal(release(l, &b), HF_DONE);
    }
    assert_nothing_left();
    lease_redis.close(l);
}

static void an_abandoned_crowd_leaves_nothing_behind(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request a = asks("left"), b = asks("left");
    a.mode = b.mode = HF_SHARED;
    a.ttl_ms = 100;
    b.ttl_ms = 300;
    assert_int_equal(acquire(l, &a).result, HF_DONE);
    assert_int_equal(acquire(l, &b).result, HF_DONE);
    int64_t end_ms = now_ms() + 3000;
    char answer[1024] = "";
    while (strncmp(answer, "*1\r\n", 4) != 0 && now_ms() < end_ms) {
        usleep(50000);
        redis_server_ask(&server, "KEYS *", answer, sizeof answer);
    }
    assert_nothing_left();
    lease_redis.close(l);
}

/* ---- the queue ---- */

static void the_larger_priority_goes_first_then_who_came_first(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    static const int priorities[] = {0, -5, 7, 7, 2147483647, -2147483647 - 1};
    static const int order[] = {4, 2, 3, 0, 1, 5};
    struct lease_request holder = asks("order"), q[6];
    acquire(l, &holder);
    for (int i = 0; i < 6; i++) {
        q[i] = waits("order");
        q[i].priority = priorities[i];
        assert_int_equal(acquire(l, &q[i]).result, HF_TAKEN);
    }
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(acquire(l, &q[order[i]]).position, i + 1);
    release(l, &holder);
    for (int i = 0; i < 6; i++) {
        for (int later = i + 1; later < 6; later++)
            assert_int_equal(acquire(l, &q[order[later]]).result, HF_TAKEN);
        assert_int_equal(acquire(l, &q[order[i]]).result, HF_DONE);
        assert_int_equal(release(l, &q[order[i]]), HF_DONE);
    }
    assert_nothing_left();
    lease_redis.close(l);
}

static void readers_share_but_do_not_pass_a_waiting_writer(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request r1 = asks("rw"), r2 = asks("rw"), w = waits("rw"), r3 = waits("rw"),
                         r4 = waits("rw");
    r1.mode = r2.mode = r3.mode = r4.mode = HF_SHARED;
    int64_t f1 = acquire(l, &r1).fence, f2 = acquire(l, &r2).fence;
    assert_true(f2 > f1);
    assert_int_equal(acquire(l, &w).position, 1);
    assert_int_equal(acquire(l, &r3).position, 2);
    assert_int_equal(acquire(l, &r4).position, 3);
    release(l, &r1);
    assert_int_equal(acquire(l, &w).result, HF_TAKEN);
    release(l, &r2);
    assert_int_equal(acquire(l, &r3).result, HF_TAKEN);
    assert_int_equal(acquire(l, &w).result, HF_DONE);
    assert_int_equal(acquire(l, &r3).result, HF_TAKEN);
    release(l, &w);
    assert_int_equal(acquire(l, &r4).result, HF_DONE); /* the reader before it does not stop it */
    assert_int_equal(acquire(l, &r3).result, HF_DONE);
    release(l, &r3);
    release(l, &r4);
    assert_nothing_left();
    lease_redis.close(l);
}

static void slots_are_that_many_and_all_must_say_the_same(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request q[4];
    struct lease_verdict v[2];
    struct hf_fault fault;
    for (int i = 0; i < 4; i++) {
        q[i] = waits("slots");
        q[i].slots = 3;
        assert_int_equal(acquire(l, &q[i]).result, i < 3 ? HF_DONE : HF_TAKEN);
    }
    struct lease_request pair[2] = {asks("other"), asks("slots")};
    assert_int_equal(lease_redis.acquire(l, pair, 2, v, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "others say 3"));
    struct lease_request free_again = asks("other");
    assert_int_equal(acquire(l, &free_again).result, HF_DONE);
    release(l, &free_again);
    release(l, &q[1]);
    assert_int_equal(acquire(l, &q[3]).result, HF_DONE);
    assert_int_equal(lease_redis.break_(l, "slots", 5, NULL), HF_DONE);
    assert_int_equal(renew(l, &q[0]).result, HF_LOST);
    assert_nothing_left();
    lease_redis.close(l);
}

struct sleeper {
    struct lease *l;
    struct lease_request q;
    int64_t woken_ms, timeout_ms;
    struct lease_verdict v;
    pthread_t thread;
};

static void *sleeps(void *ctx)
{
    struct sleeper *s = ctx;
    do {
        if (lease_redis.wait(s->l, &s->q, s->timeout_ms, NULL) != HF_DONE)
            break;
        s->woken_ms = now_ms();
    } while (lease_redis.acquire(s->l, &s->q, 1, &s->v, NULL) == HF_DONE &&
             s->v.result == HF_TAKEN);
    return NULL;
}

static void sleeper_start(struct sleeper *s, struct lease *l, struct lease_request q)
{
    *s = (struct sleeper){.l = l, .q = q, .timeout_ms = 10000};
    acquire(l, &s->q);
    assert_int_equal(pthread_create(&s->thread, NULL, sleeps, s), 0);
}

static void wait_for_subscribers(int n)
{
    char answer[8192];
    for (int i = 0; i < 500; i++) {
        redis_server_ask(&server, "PUBSUB CHANNELS holdfast:*", answer, sizeof answer);
        if (strtol(answer + 1, NULL, 10) >= n)
            return;
        usleep(10000);
    }
    fail_msg("nobody listens");
}

static void a_release_calls_the_next_at_once_and_nobody_else(void **state)
{
    (void)state;
    enum { N = 20 };
    struct lease *l = open_at(server.url, 2000);
    struct lease_request holder = asks("herd");
    struct sleeper sleepers[N];
    acquire(l, &holder);
    for (int i = 0; i < N; i++)
        sleeper_start(&sleepers[i], open_at(server.url, 2000), waits("herd"));
    wait_for_subscribers(N);
    int64_t published = redis_server_calls(&server, "publish"), begin_ms = now_ms();
    struct lease_request q = holder;
    for (int i = 0; i < N; i++) {
        assert_int_equal(release(l, &q), HF_DONE);
        assert_int_equal(pthread_join(sleepers[i].thread, NULL), 0); /* in the order of coming */
        assert_int_equal(sleepers[i].v.result, HF_DONE);
        q = sleepers[i].q;
    }
    /* called, not found out by a heartbeat a second later */
    assert_true(now_ms() - begin_ms < 500 * N);
    assert_int_equal(redis_server_calls(&server, "publish") - published, N);
    release(l, &q);
    for (int i = 0; i < N; i++)
        lease_redis.close(sleepers[i].l);
    assert_nothing_left();
    lease_redis.close(l);
}

static void the_head_wakes_when_the_lease_ends_and_keeps_its_place(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request holder = asks("end");
    struct sleeper s;
    holder.ttl_ms = 6500; /* longer than a silent waiter's place is kept */
    int64_t begin_ms = now_ms();
    acquire(l, &holder);
    sleeper_start(&s, open_at(server.url, 2000), waits("end"));
    pthread_join(s.thread, NULL);
    assert_int_equal(s.v.result, HF_DONE);
    assert_in_range(s.woken_ms - begin_ms, 6490, 6700);
    release(l, &s.q);
    lease_redis.close(s.l);
    assert_nothing_left();
    lease_redis.close(l);
}

static void who_waits_first_after_a_place_is_given_up_sees_the_end_of_the_lease(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request holder = asks("next"), head = waits("next");
    struct sleeper s;
    holder.ttl_ms = 700;
    int64_t begin_ms = now_ms();
    acquire(l, &holder);
    acquire(l, &head);
    sleeper_start(&s, open_at(server.url, 2000), waits("next"));
    wait_for_subscribers(1);
    release(l, &head);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.v.result, HF_DONE);
    assert_in_range(s.woken_ms - begin_ms, 690, 900);
    release(l, &s.q);
    lease_redis.close(s.l);
    lease_redis.close(l);
}

/* ---- fences ---- */

static void fences_have_sixteen_exact_digits_and_outlive_a_flush_and_a_restart(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request q = asks("fence");
    int64_t last = 0;
    char stored[128], expected[64];
    for (int i = 0; i < 6; i++) {
        struct lease_verdict v = acquire(l, &q);
        assert_int_equal(v.result, HF_DONE);
        assert_true(v.fence > last);
        last = v.fence;
        assert_in_range(last, INT64_C(1000000000000000), INT64_C(9007199254740991));
        snprintf(expected, sizeof expected, "$16\r\n%lld\r\n", (long long)last);
        redis_server_ask(&server, "GET holdfast:fence", stored, sizeof stored);
        assert_string_equal(stored, expected);
        if (i == 2) {
            ask("FLUSHALL");
        } else if (i == 4) {
            redis_server_kill(&server);
            redis_server_again(&server);
            usleep(150000); /* idle: the link looks whether it is still there */
        } else {
            release(l, &q);
        }
    }
    lease_redis.close(l);
}

static void a_clock_set_back_does_not_lower_the_fence(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request a = asks("ahead"), b = asks("ahead");
    a.mode = b.mode = HF_SHARED;
    ask("SET holdfast:fence 5000000000000001"); /* as if given by a clock that was ahead */
    assert_int_equal(acquire(l, &a).fence, 5000000000000002);
    assert_int_equal(acquire(l, &b).fence, 5000000000000003);
    assert_int_equal(acquire(l, &a).fence, 5000000000000002);
    release(l, &a);
    release(l, &b);
    assert_int_equal(acquire(l, &a).fence, 5000000000000004);
    release(l, &a);
    ask("DEL holdfast:fence");
    lease_redis.close(l);
}

/* ---- what goes wrong ---- */

static void a_lost_script_is_sent_again(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    struct lease_request q[3] = {asks("script-1"), asks("script-2"), asks("script-3")};
    struct lease_verdict v[3];
    ask("SCRIPT FLUSH");
    assert_int_equal(lease_redis.acquire(l, q, 3, v, NULL), HF_DONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(v[i].result, HF_DONE);
    ask("SCRIPT FLUSH");
    assert_int_equal(lease_redis.release(l, q, 3, v, NULL), HF_DONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(v[i].result, HF_DONE);
    assert_nothing_left();
    lease_redis.close(l);
}

static void no_answer_is_unknown_and_the_repeat_finds_the_grant(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 200);
    struct lease_request q = asks("unknown");
    struct lease_verdict v;
    struct hf_fault fault;
    acquire(l, &q); /* the script is known */
    release(l, &q);
    int64_t begin_ms = now_ms();
    kill(server.pid, SIGSTOP);
    enum hf_result result = lease_redis.acquire(l, &q, 1, &v, &fault);
    kill(server.pid, SIGCONT);
    assert_int_equal(result, HF_UNKNOWN);
    assert_in_range(now_ms() - begin_ms, 190, 1000);
    struct lease *other = open_at(server.url, 2000);
    struct hf_lock_state s = inspect(other, "unknown");
    for (int i = 0; i < 200 && s.n_holders == 0; i++) { /* it was carried out all the same */
        usleep(10000);
        s = inspect(other, "unknown");
    }
    assert_int_equal(s.n_holders, 1);
    v = acquire(l, &q);
    assert_int_equal(v.result, HF_DONE);
    assert_int_equal(v.fence, s.holders[0].fence);
    state_close(&s);
    release(l, &q);
    lease_redis.close(other);
    lease_redis.close(l);
}

static void a_paused_server_is_unknown_within_the_timeout(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 150);
    struct lease_request q = asks("paused");
    struct lease_verdict v;
    ask("CLIENT PAUSE 600");
    int64_t begin_ms = now_ms();
    assert_int_equal(lease_redis.acquire(l, &q, 1, &v, NULL), HF_UNKNOWN);
    assert_in_range(now_ms() - begin_ms, 140, 400);
    /* now it has to connect, and says at once that nothing was done */
    assert_int_equal(lease_redis.acquire(l, &q, 1, &v, NULL), HF_UNREACHABLE);
    usleep(600000);
    assert_int_equal(acquire(l, &q).result, HF_DONE);
    release(l, &q);
    lease_redis.close(l);
}

static void a_restart_without_persistence_loses_leases_and_is_survived(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 1000);
    struct lease_request q = asks("restart");
    struct lease_verdict v;
    int64_t fence = acquire(l, &q).fence;
    redis_server_kill(&server);
    enum hf_result result = lease_redis.renew(l, &q, 1, &v, NULL);
    assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
    assert_int_equal(lease_redis.renew(l, &q, 1, &v, NULL), HF_UNREACHABLE);
    redis_server_again(&server);
    assert_int_equal(renew(l, &q).result, HF_LOST);
    v = acquire(l, &q);
    assert_int_equal(v.result, HF_DONE);
    assert_true(v.fence > fence);
    release(l, &q);
    lease_redis.close(l);
}

static void a_restart_with_an_aof_keeps_lease_queue_and_fence(void **state)
{
    (void)state;
    struct redis_server kept = {.aof = true};
    assert_true(redis_server_start(&kept));
    struct lease *l = open_at(kept.url, 1000);
    struct lease_request a = asks("aof"), b = waits("aof"), c = asks("aof-alone");
    int64_t fence = acquire(l, &a).fence;
    acquire(l, &b);
    int64_t alone = acquire(l, &c).fence;
    redis_server_kill(&kept);
    redis_server_again(&kept);
    usleep(150000);
    assert_int_equal(renew(l, &a).fence, fence);
    assert_int_equal(renew(l, &c).fence, alone);
    assert_int_equal(acquire(l, &b).position, 1);
    release(l, &a);
    assert_true(acquire(l, &b).fence > alone);
    lease_redis.close(l);
    redis_server_stop(&kept);
}

static enum hf_result open_fails(const char *url, struct hf_fault *fault)
{
    struct lease *l = NULL;
    *fault = (struct hf_fault){0};
    struct lease_options options = {.timeout_ms = 300, .clock = &clock_system};
    enum hf_result result = lease_redis.open(url, &options, &l, fault);
    assert_null(l);
    assert_int_equal(fault->result, result);
    assert_null(strstr(fault->msg, "s3cret"));
    return result;
}

static void who_cannot_be_reached_is_told_in_time_and_without_the_password(void **state)
{
    (void)state;
    struct hf_fault fault;
    char url[128];
    int hole;
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", redis_server_port(NULL));
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "refused"));
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", redis_server_port(&hole));
    int64_t begin_ms = now_ms();
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_in_range(now_ms() - begin_ms, 290, 600);
    assert_non_null(strstr(fault.msg, "no answer within 300 ms"));
    close(hole);
    assert_int_equal(open_fails("unix:/tmp/holdfast-nobody", &fault), HF_UNREACHABLE);
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", server.port);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    snprintf(url, sizeof url, "%s/99", server.url);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
}

static void passwords_are_checked_at_open_and_users_have_their_rights(void **state)
{
    (void)state;
    struct redis_server locked = {.password = "s3cret/@%"};
    assert_true(redis_server_start(&locked));
    struct hf_fault fault;
    struct lease_verdict v;
    char url[128], answer[256];
    assert_int_equal(open_fails(locked.url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "NOAUTH"));
    snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d", locked.port);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "wrong user or password"));
    snprintf(url, sizeof url, "redis://:s3cret%%2f%%40%%25@127.0.0.1:%d/3", locked.port);
    struct lease *l = open_at(url, 1000);
    struct lease_request q = waits("named");
    assert_int_equal(acquire(l, &q).result, HF_DONE);
    redis_server_ask(&locked, "ACL SETUSER half on >s3cret ~holdfast:* &holdfast:* +@all -getset",
                     answer, sizeof answer);
    snprintf(url, sizeof url, "redis://half:s3cret@127.0.0.1:%d/3", locked.port);
    struct lease *half = open_at(url, 1000);
    struct lease_request other = asks("other");
    assert_int_equal(lease_redis.acquire(half, &other, 1, &v, &fault), HF_UNREACHABLE);
    struct hf_lock_state s = inspect(l, "other"); /* refused half way: nothing was done */
    assert_int_equal(s.n_holders, 0);
    redis_server_ask(&locked, "ACL SETUSER half -evalsha", answer, sizeof answer);
    assert_int_equal(lease_redis.acquire(half, &other, 1, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "NOPERM"));
    lease_redis.close(half);
    lease_redis.close(l);
    redis_server_stop(&locked);
}

static void a_replica_refuses_and_says_so(void **state)
{
    (void)state;
    struct redis_server replica = {0};
    assert_true(redis_server_start(&replica));
    struct lease *l = open_at(replica.url, 1000);
    struct lease_request q = asks("replica");
    struct lease_verdict v;
    struct hf_fault fault;
    char command[64], answer[64];
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", redis_server_port(NULL));
    redis_server_ask(&replica, command, answer, sizeof answer);
    assert_int_equal(lease_redis.acquire(l, &q, 1, &v, &fault), HF_UNREACHABLE);
    assert_true(strstr(fault.msg, "READONLY") || strstr(fault.msg, "MASTERDOWN"));
    lease_redis.close(l);
    redis_server_stop(&replica);
}

static void a_socket_serves_as_well_and_databases_are_apart(void **state)
{
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?db=5", server.unix_url);
    struct lease *l = open_at(server.unix_url, 1000), *five = open_at(url, 1000), *more = NULL;
    struct lease_request a = asks("where"), b = asks("where");
    assert_int_equal(acquire(l, &a).result, HF_DONE);
    assert_int_equal(acquire(five, &b).result, HF_DONE);
    assert_int_equal(lease_redis.another(five, &more, NULL), HF_DONE);
    assert_int_equal(acquire(more, &a).result, HF_TAKEN);
    release(l, &a);
    release(five, &b);
    lease_redis.close(l);
    lease_redis.close(five);
    lease_redis.close(more);
}

static void urls_are_read_exactly(void **state)
{
    (void)state;
    struct redis_address a;
    assert_int_equal(redis_address_parse("redis://u%3a:p%40%2F:x@[::1]:7000/12", &a, NULL),
                     HF_DONE);
    assert_string_equal(a.host, "::1");
    assert_string_equal(a.user, "u:");
    assert_string_equal(a.password, "p@/:x");
    assert_int_equal(a.port, 7000);
    assert_int_equal(a.db, 12);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("redis://example", &a, NULL), HF_DONE);
    assert_int_equal(a.port, 6379);
    assert_null(a.password);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("unix:/run/a?b?db=2", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "/run/a?b");
    redis_address_close(&a);
    static const char *const bad[] = {
        "redis://",     "redis://:6379",      "redis://h:0",    "redis://h:65536",
        "redis://h:x",  "redis://h/x",        "redis://h/-1",   "redis://s3cret@h",
        "redis://:@h",  "redis://:s3cret%@h", "redis://:s%4@h", "redis://:s%00@h",
        "redis://[::1", "redis://::1",        "redis://h:1:2",  "unix:",
        "unix:/a?db=",  "unix:/a?s3cret",     "rediss://h",     "redis://h/1/2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_fault fault;
        if (open_fails(bad[i], &fault) != HF_BAD_REQUEST)
            fail_msg("%s", bad[i]);
    }
}

/* ---- listing ---- */

struct listed {
    char all[1024];
    int n, most;
};

static bool note(void *ctx, const char *name)
{
    struct listed *seen = ctx;
    size_t len = strlen(seen->all);
    snprintf(seen->all + len, sizeof seen->all - len, "%s;", name);
    return ++seen->n < seen->most;
}

static void a_prefix_is_not_a_pattern_and_names_come_in_order(void **state)
{
    (void)state;
    struct lease *l = open_at(server.url, 2000);
    static const char *const names[] = {"p*b", "pxb", "p[a]", "p?", "p\\", "}:lock", "p*a", "pa"};
    struct lease_request q[8];
    for (int i = 0; i < 8; i++) {
        q[i] = asks(names[i]);
        acquire(l, &q[i]);
    }
    struct lease_request w = waits("p*a"); /* a crowd has more keys and is listed once */
    acquire(l, &w);
    struct listed seen = {.most = 100};
    assert_int_equal(lease_redis.list(l, "p*", 2, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "p*a;p*b;");
    seen = (struct listed){.most = 100};
    assert_int_equal(lease_redis.list(l, "p[a", 3, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "p[a];");
    seen = (struct listed){.most = 3};
    assert_int_equal(lease_redis.list(l, "", 0, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "p*a;p*b;p?;");
    seen = (struct listed){.most = 100};
    assert_int_equal(lease_redis.list(l, "}", 1, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "}:lock;");
    for (int i = 0; i < 8; i++)
        release(l, &q[i]);
    release(l, &w);
    assert_nothing_left();
    lease_redis.close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_holds_and_the_repeat_finds_the_same_grant),
        cmocka_unit_test(a_crowd_keeps_the_holder_its_fence_and_its_time),
        cmocka_unit_test(a_lease_ends_by_the_servers_clock_in_either_form),
        cmocka_unit_test(an_abandoned_crowd_leaves_nothing_behind),
        cmocka_unit_test(the_larger_priority_goes_first_then_who_came_first),
        cmocka_unit_test(readers_share_but_do_not_pass_a_waiting_writer),
        cmocka_unit_test(slots_are_that_many_and_all_must_say_the_same),
        cmocka_unit_test(a_release_calls_the_next_at_once_and_nobody_else),
        cmocka_unit_test(the_head_wakes_when_the_lease_ends_and_keeps_its_place),
        cmocka_unit_test(who_waits_first_after_a_place_is_given_up_sees_the_end_of_the_lease),
        cmocka_unit_test(fences_have_sixteen_exact_digits_and_outlive_a_flush_and_a_restart),
        cmocka_unit_test(a_clock_set_back_does_not_lower_the_fence),
        cmocka_unit_test(a_lost_script_is_sent_again),
        cmocka_unit_test(no_answer_is_unknown_and_the_repeat_finds_the_grant),
        cmocka_unit_test(a_paused_server_is_unknown_within_the_timeout),
        cmocka_unit_test(a_restart_without_persistence_loses_leases_and_is_survived),
        cmocka_unit_test(a_restart_with_an_aof_keeps_lease_queue_and_fence),
        cmocka_unit_test(who_cannot_be_reached_is_told_in_time_and_without_the_password),
        cmocka_unit_test(passwords_are_checked_at_open_and_users_have_their_rights),
        cmocka_unit_test(a_replica_refuses_and_says_so),
        cmocka_unit_test(a_socket_serves_as_well_and_databases_are_apart),
        cmocka_unit_test(urls_are_read_exactly),
        cmocka_unit_test(a_prefix_is_not_a_pattern_and_names_come_in_order),
    };
    random_init_system(&source);
    if (!redis_server_start(&server)) {
        fprintf(stderr, "there is no redis-server\n");
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_server_stop(&server);
    return failed;
}
