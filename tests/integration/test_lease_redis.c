/* Claims about the Redis driver on a real redis-server that the conformance suite cannot make.
 * Failures are in test_lease_redis_faults.c, addresses in test_lease_redis_address.c. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what is stored ---- */

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

/* Acquires one of `slots` slots with a request of a new owner. */
static struct lease_request takes_a_slot(struct lease *l, const char *key, unsigned slots,
                                         int64_t ttl_ms)
{
    struct lease_request q = asks_for(key, ttl_ms);
    q.slots = slots;
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    return q;
}

static void a_break_of_several_slots_leaves_nothing_behind(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q[3];
    for (int i = 0; i < 3; i++)
        q[i] = takes_a_slot(l, "broken", 3, 30000);
    assert_int_equal(must_release(l, &q[1]), HF_DONE); /* its number is noted as free */
    assert_int_equal(lease_break(l, "broken", 6, NULL), HF_DONE);
    assert_int_equal(must_renew(l, &q[0]).result, HF_LOST);
    assert_int_equal(must_renew(l, &q[2]).result, HF_LOST);
    assert_nothing_left();
    lease_close(l);
}

static void a_slot_whose_lease_ended_leaves_nothing_behind(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request a = takes_a_slot(l, "ended", 2, 30000);
    (void)takes_a_slot(l, "ended", 2, 300);
    struct lease_request next = asks("ended");
    next.slots = 2;
    while (must_acquire(l, &next).result != HF_DONE)
        nap_ms(20);
    assert_int_equal(must_release(l, &a), HF_DONE);
    assert_int_equal(must_release(l, &next), HF_DONE);
    assert_nothing_left();
    lease_close(l);
}

static void slots_given_back_in_any_order_leave_nothing_behind(void **state)
{
    (void)state;
    enum { N = 8 };
    static const int gone[] = {5, 7, 2}, order[N] = {3, 7, 0, 2, 6, 1, 5, 4};
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q[N];
    for (int i = 0; i < N; i++)
        q[i] = takes_a_slot(l, "numbers", N, 30000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(must_release(l, &q[gone[i]]), HF_DONE);
    for (int i = 0; i < 3; i++)
        q[gone[i]] = takes_a_slot(l, "numbers", N, 30000);
    for (int i = 0; i < N; i++)
        assert_int_equal(must_release(l, &q[order[i]]), HF_DONE);
    assert_nothing_left();
    lease_close(l);
}

/* The waiter is passed over twice: then it is granted the lock, and then it gives up its place. */
static void a_waiter_that_was_passed_over_leaves_nothing_behind(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    for (int is_patient = 1; is_patient >= 0; is_patient--) {
        struct lease_request holder = asks("passed"), dead = waits("passed"),
                             next = waits("passed");
        assert_int_equal(must_acquire(l, &holder).result, HF_DONE);
        must_acquire(l, &dead);
        must_acquire(l, &next);
        assert_int_equal(must_release(l, &holder), HF_DONE);
        nap_ms(WAITER_CLAIM_MS + 10);
        assert_int_equal(must_acquire(l, &next).result, HF_DONE);
        if (is_patient)
            assert_int_equal(must_acquire(l, &dead).result, HF_TAKEN);
        assert_int_equal(must_release(l, &next), HF_DONE);
        if (is_patient)
            assert_int_equal(must_acquire(l, &dead).result, HF_DONE);
        (void)must_release(l, &dead); /* its place may have ended by itself on a slow machine */
        assert_nothing_left();
    }
    lease_close(l);
}

/* ---- the queue ---- */

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

/* A heartbeat, which comes every second, would make it 7000 ms each time.  A busy machine hardly ever
 * lets it be judged, so that `make soak` is what claims it. */
TIMELY_CLAIM(the_head_wakes_when_the_lease_ends_and_keeps_its_place)
{
    int64_t woken_ms = wake_at_the_end();
    assert_true(woken_ms >= 6490);
    return woken_ms <= 6700;
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
    assert_in_range(soonest_ms(wake_as_the_new_first, 20, 901), 690, 900);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_fences_are_of_the_latest_ten_thousand_names),
        cmocka_unit_test(an_abandoned_group_leaves_nothing_behind),
        cmocka_unit_test(a_break_of_several_slots_leaves_nothing_behind),
        cmocka_unit_test(a_slot_whose_lease_ended_leaves_nothing_behind),
        cmocka_unit_test(slots_given_back_in_any_order_leave_nothing_behind),
        cmocka_unit_test(a_waiter_that_was_passed_over_leaves_nothing_behind),
        cmocka_unit_test(a_release_wakes_the_next_waiter_at_once_and_no_other),
        cmocka_unit_test(the_head_wakes_when_the_lease_ends_and_keeps_its_place),
        cmocka_unit_test(a_new_first_waiter_sees_the_end_of_the_lease),
        cmocka_unit_test(fences_have_sixteen_exact_digits_and_outlive_a_flush_and_a_restart),
        cmocka_unit_test(a_clock_set_back_does_not_lower_the_fence),
    };
    return run_with_redis(tests);
}
