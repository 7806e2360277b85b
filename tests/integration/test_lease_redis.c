/* Claims about the Redis driver on a real redis-server that the conformance suite cannot make.
 * Failures are in test_lease_redis_faults.c, addresses in test_lease_redis_address.c. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the single form and the group form ---- */

static void one_holds_and_the_repeat_finds_the_same_grant(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request a = asks("one"), b = asks("one");
    struct lease_verdict first = must_acquire(l, &a), again = must_acquire(l, &a),
                         other = must_acquire(l, &b);
    assert_int_equal(first.result, HF_DONE);
    assert_int_equal(first.remaining_ms, 30000);
    assert_int_equal(again.result, HF_DONE);
    assert_int_equal(again.fence, first.fence);
    assert_in_range(again.remaining_ms, 25000, 30000);
    assert_int_equal(other.result, HF_TAKEN);
    assert_int_equal(other.position, 0);
    assert_int_equal(must_renew(l, &b).result, HF_LOST);
    assert_int_equal(must_release(l, &b), HF_LOST);
    assert_int_equal(must_renew(l, &a).fence, first.fence);
    assert_int_equal(must_release(l, &a), HF_DONE);
    assert_int_equal(must_release(l, &a), HF_LOST);
    assert_nothing_left();
    lease_close(l);
}

static void the_group_form_keeps_the_holder_its_fence_and_its_time(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request a = asks("crowd"), b = waits("crowd");
    a.label = "nightly * report";
    a.label_len = strlen(a.label);
    int64_t fence = must_acquire(l, &a).fence;
    int64_t from_ms = boot_ms();
    struct lease_verdict v = must_acquire(l, &b);
    assert_int_equal(v.result, HF_TAKEN);
    assert_int_equal(v.position, 1);
    assert_in_range(v.remaining_ms, 25000, 30000);
    struct lease_state s = must_inspect(l, "crowd");
    assert_int_equal(s.n_holders, 1);
    assert_int_equal(s.n_waiters, 1);
    assert_int_equal(s.holders[0].fence, fence);
    assert_int_equal(s.last_fence, fence);
    assert_string_equal(s.holders[0].label, a.label);
    assert_int_equal(s.waiters[0].fence, 0);
    int64_t passed_ms = boot_ms() - from_ms + 1;
    assert_in_range(s.waiters[0].remaining_ms, WAITER_SILENT_MS - passed_ms, WAITER_SILENT_MS);
    lease_state_close(&s);
    assert_int_equal(must_acquire(l, &a).fence, fence);
    assert_int_equal(must_renew(l, &a).fence, fence);
    assert_int_equal(must_release(l, &a), HF_DONE);
    /* a turn is not a lease: what nobody holds can be taken */
    struct lease_request c = asks("crowd");
    assert_int_equal(must_acquire(l, &c).result, HF_DONE);
    assert_int_equal(must_acquire(l, &b).position, 1);
    assert_int_equal(must_release(l, &c), HF_DONE);
    v = must_acquire(l, &b);
    assert_int_equal(v.result, HF_DONE);
    assert_true(v.fence > fence);
    assert_int_equal(must_release(l, &b), HF_DONE);
    assert_nothing_left();
    lease_close(l);
}

/* Each grant of a new name is remembered, and the set is cut now and then. */
static void last_fences_are_of_the_latest_ten_thousand_names(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    char name[16], answer[64];
    for (int i = 0; i < 12000; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        struct lease_request r = asks(name);
        must_acquire(l, &r);
        assert_int_equal(must_release(l, &r), HF_DONE);
    }
    redis_server_ask(&server, "ZCARD holdfast:last", answer, sizeof answer);
    assert_in_range(strtol(answer + 1, NULL, 10), 10000, 11900); /* ":10042\r\n" */
    struct lease_state s = must_inspect(l, "n11999");
    assert_true(s.last_fence > 0);
    lease_state_close(&s);
    s = must_inspect(l, "n0");
    assert_int_equal(s.last_fence, 0);
    lease_state_close(&s);
    /* A key that somebody overwrote costs the memory, not the lock. */
    must_ask("SET holdfast:last nonsense");
    struct lease_request r = asks("still");
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    assert_int_equal(must_release(l, &r), HF_DONE);
    s = must_inspect(l, "still");
    assert_int_equal(s.last_fence, 0);
    lease_state_close(&s);
    must_ask("DEL holdfast:last");
    lease_close(l);
}

static void a_lease_ends_by_the_servers_clock_in_either_form(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    for (int crowd = 0; crowd < 2; crowd++) {
        struct lease_request a = asks("ttl"), b = waits("ttl");
        a.ttl_ms = 150;
        int64_t begin_ms = boot_ms();
        assert_int_equal(must_acquire(l, &a).result, HF_DONE);
        b.queue = crowd; /* its place brings the group form */
        while (must_acquire(l, &b).result != HF_DONE)
            usleep(1000);
        assert_in_range(boot_ms() - begin_ms, 149, 10000);
        assert_int_equal(must_renew(l, &a).result, HF_LOST);
        assert_int_equal(must_release(l, &a), HF_LOST);
        assert_int_equal(must_release(l, &b), HF_DONE);
    }
    assert_nothing_left();
    lease_close(l);
}

static void an_abandoned_group_leaves_nothing_behind(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request a = asks("left"), b = asks("left");
    a.mode = b.mode = HF_SHARED;
    a.ttl_ms = 100;
    b.ttl_ms = 300;
    assert_int_equal(must_acquire(l, &a).result, HF_DONE);
    assert_int_equal(must_acquire(l, &b).result, HF_DONE);
    int64_t end_ms = boot_ms() + 20000;
    char answer[1024] = "";
    while (strcmp(answer, "*0\r\n") != 0 && boot_ms() < end_ms) {
        usleep(50000);
        redis_server_ask(&server, "KEYS holdfast:{left}:*", answer, sizeof answer);
    }
    assert_nothing_left();
    lease_close(l);
}

/* ---- the queue ---- */

static void priority_comes_first_then_arrival(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    static const int priorities[] = {0, -5, 7, 7, 2147483647, -2147483647 - 1};
    static const int order[] = {4, 2, 3, 0, 1, 5};
    struct lease_request holder = asks("order"), q[6];
    must_acquire(l, &holder);
    for (int i = 0; i < 6; i++) {
        q[i] = waits("order");
        q[i].priority = priorities[i];
        assert_int_equal(must_acquire(l, &q[i]).result, HF_TAKEN);
    }
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(must_acquire(l, &q[order[i]]).position, i + 1);
    must_release(l, &holder);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(must_acquire(l, &q[order[i]]).result, HF_DONE);
        for (int later = i + 1; later < 6; later++)
            assert_int_equal(must_acquire(l, &q[order[later]]).position, later - i);
        assert_int_equal(must_release(l, &q[order[i]]), HF_DONE);
    }
    assert_nothing_left();
    lease_close(l);
}

static void readers_share_but_do_not_pass_a_waiting_writer(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request r1 = asks("rw"), r2 = asks("rw"), w = waits("rw"), r3 = waits("rw"),
                         r4 = waits("rw");
    r1.mode = r2.mode = r3.mode = r4.mode = HF_SHARED;
    int64_t f1 = must_acquire(l, &r1).fence, f2 = must_acquire(l, &r2).fence;
    assert_true(f2 > f1);
    assert_int_equal(must_acquire(l, &w).position, 1);
    assert_int_equal(must_acquire(l, &r3).position, 2);
    assert_int_equal(must_acquire(l, &r4).position, 3);
    must_release(l, &r1);
    assert_int_equal(must_acquire(l, &w).result, HF_TAKEN);
    must_release(l, &r2);
    assert_int_equal(must_acquire(l, &w).result, HF_DONE);
    assert_int_equal(must_acquire(l, &r3).result, HF_TAKEN);
    must_release(l, &w);
    assert_int_equal(must_acquire(l, &r4).result,
                     HF_DONE); /* the reader before it does not stop it */
    assert_int_equal(must_acquire(l, &r3).result, HF_DONE);
    must_release(l, &r3);
    must_release(l, &r4);
    assert_nothing_left();
    lease_close(l);
}

static void slots_are_that_many_and_all_must_say_the_same(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q[4];
    struct lease_verdict v;
    struct hf_fault fault;
    for (int i = 0; i < 4; i++) {
        q[i] = waits("slots");
        q[i].slots = 3;
        assert_int_equal(must_acquire(l, &q[i]).result, i < 3 ? HF_DONE : HF_TAKEN);
    }
    struct lease_request odd = asks("slots");
    assert_int_equal(lease_acquire(l, &odd, &v, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "others say 3"));
    must_release(l, &q[1]);
    assert_int_equal(must_acquire(l, &q[3]).result, HF_DONE);
    assert_int_equal(lease_break(l, "slots", 5, NULL), HF_DONE);
    assert_int_equal(must_renew(l, &q[0]).result, HF_LOST);
    assert_nothing_left();
    lease_close(l);
}

struct sleeper {
    struct lease *l;
    struct lease_request q;
    int64_t woken_ms, timeout_ms;
    struct lease_verdict v;
    pthread_t thread;
    atomic_int *n_granted; /* NULL: it keeps the lock */
    int came;              /* as which of them it was granted the lock */
};

static void *sleeps(void *ctx)
{
    struct sleeper *s = ctx;
    do {
        if (lease_wait(s->l, &s->q, s->timeout_ms, NULL) != HF_DONE)
            break;
        s->woken_ms = boot_ms();
    } while (lease_acquire(s->l, &s->q, &s->v, NULL) == HF_DONE && s->v.result == HF_TAKEN);
    if (s->n_granted && s->v.result == HF_DONE) {
        s->came = atomic_fetch_add(s->n_granted, 1);
        (void)!lease_release(s->l, &s->q, 1, &s->v, NULL);
    }
    return NULL;
}

static void sleeper_start(struct sleeper *s, struct lease *l, struct lease_request q,
                          atomic_int *n_granted)
{
    *s = (struct sleeper){.l = l, .q = q, .timeout_ms = 10000, .n_granted = n_granted, .came = -1};
    must_acquire(l, &s->q);
    assert_int_equal(pthread_create(&s->thread, NULL, sleeps, s), 0);
}

/* Returns false if so many do not listen by then. */
static bool has_subscribers_by(int n, int64_t end_ms)
{
    char answer[8192];
    for (; boot_ms() < end_ms; usleep(10000)) {
        redis_server_ask(&server, "PUBSUB CHANNELS holdfast:*", answer, sizeof answer);
        if (strtol(answer + 1, NULL, 10) >= n)
            return true;
    }
    return false;
}

/* The lock is passed on from waiter to waiter.  One that does not run within WAITER_CLAIM_MS after
 * its turn has come is passed over, and rightly so. */
TIMELY_CLAIM(a_release_wakes_the_next_waiter_at_once_and_no_other)
{
    enum { N = 20 };
    struct lease *l = must_open(server.url, 10000);
    struct lease_request holder = asks("herd");
    struct sleeper sleepers[N];
    atomic_int n_granted = 0;
    bool is_slow = false, is_in_order = true;
    must_acquire(l, &holder);
    for (int i = 0; i < N; i++)
        sleeper_start(&sleepers[i], must_open(server.url, 10000), waits("herd"), &n_granted);
    assert_true(has_subscribers_by(N, boot_ms() + 30000));
    int64_t published = redis_server_calls(&server, "publish"), begin_ms = boot_ms();
    int64_t last_ms = begin_ms;
    assert_int_equal(must_release(l, &holder), HF_DONE);
    for (int i = 0; i < N; i++) {
        assert_int_equal(pthread_join(sleepers[i].thread, NULL), 0);
        is_in_order = is_in_order && sleepers[i].came == i;
        is_slow = is_slow || sleepers[i].woken_ms - last_ms > WAITER_CLAIM_MS / 2;
        last_ms = sleepers[i].woken_ms;
        lease_close(sleepers[i].l);
    }
    lease_close(l);
    published = redis_server_calls(&server, "publish") - published;
    if (is_slow && (!is_in_order || published != N))
        return false;
    JUDGE(is_in_order);
    JUDGE(last_ms - begin_ms < 500 * N); /* by a message, not by a heartbeat a second later */
    assert_int_equal(published, N);
    assert_nothing_left();
    return true;
too_slow:
    return false;
}

/* Waits for a lease of 6500 ms, longer than a silent waiter's place is kept. */
static int64_t wake_at_the_end(void)
{
    struct lease *l = must_open(server.url, 10000);
    struct lease_request holder = asks("end");
    struct sleeper s;
    holder.ttl_ms = 6500;
    int64_t begin_ms = boot_ms();
    must_acquire(l, &holder);
    sleeper_start(&s, must_open(server.url, 10000), waits("end"), NULL);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.v.result, HF_DONE);
    must_release(l, &s.q);
    lease_close(s.l);
    assert_nothing_left();
    lease_close(l);
    return s.woken_ms - begin_ms;
}

/* The best of several tries counts, since a busy machine only makes it later.  A heartbeat, which
 * comes every second, would make it 7000 ms each time. */
static void the_head_wakes_when_the_lease_ends_and_keeps_its_place(void **state)
{
    (void)state;
    int64_t best_ms = INT64_MAX;
    for (int i = 0; i < 5 && best_ms > 6700; i++) {
        int64_t woken_ms = wake_at_the_end();
        assert_true(woken_ms >= 6490);
        best_ms = woken_ms < best_ms ? woken_ms : best_ms;
    }
    assert_true(best_ms <= 6700);
}

/* If the lease ends before the waiter listens, it wakes up too late to count. */
static int64_t wake_as_the_new_first(void)
{
    struct lease *l = must_open(server.url, 10000);
    struct lease_request holder = asks("next"), head = waits("next");
    struct sleeper s;
    holder.ttl_ms = 700;
    int64_t begin_ms = boot_ms();
    must_acquire(l, &holder);
    must_acquire(l, &head);
    sleeper_start(&s, must_open(server.url, 10000), waits("next"), NULL);
    (void)has_subscribers_by(1, begin_ms + holder.ttl_ms);
    (void)must_release(l, &head);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.v.result, HF_DONE);
    must_release(l, &s.q);
    lease_close(s.l);
    lease_close(l);
    return s.woken_ms - begin_ms;
}

static void a_new_first_waiter_sees_the_end_of_the_lease(void **state)
{
    (void)state;
    int64_t best_ms = INT64_MAX;
    for (int i = 0; i < 20 && best_ms > 900; i++) {
        int64_t woken_ms = wake_as_the_new_first();
        best_ms = woken_ms < best_ms ? woken_ms : best_ms;
    }
    assert_in_range(best_ms, 690, 900);
}

/* ---- fences ---- */

static void fences_have_sixteen_exact_digits_and_outlive_a_flush_and_a_restart(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q = asks("fence");
    int64_t last = 0;
    char stored[128], expected[64];
    for (int i = 0; i < 6; i++) {
        struct lease_verdict v = must_acquire(l, &q);
        assert_int_equal(v.result, HF_DONE);
        assert_true(v.fence > last);
        last = v.fence;
        assert_in_range(last, INT64_C(1000000000000000), INT64_C(9007199254740991));
        snprintf(expected, sizeof expected, "$16\r\n%lld\r\n", (long long)last);
        redis_server_ask(&server, "GET holdfast:fence", stored, sizeof stored);
        assert_string_equal(stored, expected);
        if (i == 2) {
            must_ask("FLUSHALL");
        } else if (i == 4) {
            redis_server_kill(&server);
            redis_server_again(&server);
            usleep(150000); /* idle: the link checks whether it is still open */
        } else {
            must_release(l, &q);
        }
    }
    lease_close(l);
}

static void a_clock_set_back_does_not_lower_the_fence(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request a = asks("ahead"), b = asks("ahead");
    a.mode = b.mode = HF_SHARED;
    must_ask("SET holdfast:fence 5000000000000001"); /* as if given by a clock that was ahead */
    assert_int_equal(must_acquire(l, &a).fence, 5000000000000002);
    assert_int_equal(must_acquire(l, &b).fence, 5000000000000003);
    assert_int_equal(must_acquire(l, &a).fence, 5000000000000002);
    must_release(l, &a);
    must_release(l, &b);
    assert_int_equal(must_acquire(l, &a).fence, 5000000000000004);
    must_release(l, &a);
    must_ask("DEL holdfast:fence");
    lease_close(l);
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
    struct lease *l = must_open(server.url, 10000);
    static const char *const names[] = {"p*b", "pxb", "p[a]", "p?", "p\\", "}:lock", "p*a", "pa"};
    struct lease_request q[8];
    for (int i = 0; i < 8; i++) {
        q[i] = asks(names[i]);
        must_acquire(l, &q[i]);
    }
    struct lease_request w = waits("p*a"); /* the group form has more keys and is listed once */
    must_acquire(l, &w);
    struct listed seen = {.most = 100};
    assert_int_equal(lease_list(l, "p*", 2, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "p*a;p*b;");
    seen = (struct listed){.most = 100};
    assert_int_equal(lease_list(l, "p[a", 3, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "p[a];");
    seen = (struct listed){.most = 3};
    assert_int_equal(lease_list(l, "", 0, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "p*a;p*b;p?;");
    seen = (struct listed){.most = 100};
    assert_int_equal(lease_list(l, "}", 1, note, &seen, NULL), HF_DONE);
    assert_string_equal(seen.all, "}:lock;");
    for (int i = 0; i < 8; i++)
        must_release(l, &q[i]);
    must_release(l, &w);
    assert_nothing_left();
    lease_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_holds_and_the_repeat_finds_the_same_grant),
        cmocka_unit_test(the_group_form_keeps_the_holder_its_fence_and_its_time),
        cmocka_unit_test(last_fences_are_of_the_latest_ten_thousand_names),
        cmocka_unit_test(a_lease_ends_by_the_servers_clock_in_either_form),
        cmocka_unit_test(an_abandoned_group_leaves_nothing_behind),
        cmocka_unit_test(priority_comes_first_then_arrival),
        cmocka_unit_test(readers_share_but_do_not_pass_a_waiting_writer),
        cmocka_unit_test(slots_are_that_many_and_all_must_say_the_same),
        cmocka_unit_test(a_release_wakes_the_next_waiter_at_once_and_no_other),
        cmocka_unit_test(the_head_wakes_when_the_lease_ends_and_keeps_its_place),
        cmocka_unit_test(a_new_first_waiter_sees_the_end_of_the_lease),
        cmocka_unit_test(fences_have_sixteen_exact_digits_and_outlive_a_flush_and_a_restart),
        cmocka_unit_test(a_clock_set_back_does_not_lower_the_fence),
        cmocka_unit_test(a_prefix_is_not_a_pattern_and_names_come_in_order),
    };
    return run_with_redis(tests);
}
