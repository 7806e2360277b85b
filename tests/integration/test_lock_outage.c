/* Claims about a back end that falls silent or goes away while a lock is asked for, waited for,
 * held or given back: on memory: with faults, and on a real Redis behind a proxy that keeps
 * answers. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/proxy.h"

static struct hf_lock *take(struct hf_locks *locks, const char *name)
{
    struct hf_lock *lock = NULL;
    assert_int_equal(hf_lock(locks, name, NULL, &lock, NULL), HF_DONE);
    return lock;
}

/* ---- asking and giving back ---- */

static void a_lost_answer_is_found_by_asking_again(void **state)
{
    (void)state;
    struct hf_locks *locks = faulty_open(20000);
    struct hf_lock *lock = NULL;
    atomic_store(&faults.acquire_lost, 2);
    assert_int_equal(hf_lock(locks, "x", NULL, &lock, NULL), HF_DONE);
    assert_int_equal(atomic_load(&faults.n_acquire), 3);
    assert_int_equal(hf_lock_fence(lock), 1); /* one grant, not three */
    assert_int_equal(holders_of(locks, "x"), 1);
    assert_true(hf_lock_held(lock));

    atomic_store(&faults.release_lost, 1);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    assert_int_equal(holders_of(locks, "x"), 0);
    hf_close(locks);
}

TIMELY_CLAIM(what_stays_unknown_is_unknown_and_given_back)
{
    struct hf_locks *locks = faulty_open(100);
    struct hf_lock *lock = NULL;
    struct hf_fault fault;
    atomic_store(&faults.acquire_lost, -1);
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", NULL, &lock, &fault), HF_UNKNOWN);
    JUDGE(boot_ms() - begun >= 99 && boot_ms() - begun <= 2000);
    assert_int_equal(fault.result, HF_UNKNOWN);
    assert_null(lock);
    JUDGE(atomic_load(&faults.n_acquire) > 2);
    JUDGE(holders_of(locks, "x") == 0);

    /* An answer lost, then nobody there to ask: still unknown. */
    struct hf_lock_options wait = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .outage_ms = 100);
    atomic_store(&faults.acquire_lost, 1);
    atomic_store(&faults.lost_then_away, true);
    assert_int_equal(hf_lock(locks, "x", &wait, &lock, &fault), HF_UNKNOWN);
    assert_int_equal(fault.result, HF_UNKNOWN);
    JUDGE(holders_of(locks, "x") == 0);
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    assert_int_equal(stats.unknown, 2);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(an_unreachable_back_end_fails_a_call_that_does_not_wait_at_once)
{
    struct hf_locks *locks = faulty_open(5000);
    struct hf_lock *lock;
    struct hf_fault fault;
    atomic_store(&faults.acquire_away, -1);
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", NULL, &lock, &fault), HF_UNREACHABLE);
    JUDGE(boot_ms() - begun < 2000);
    assert_string_equal(fault.msg, "told to be away");
    assert_int_equal(atomic_load(&faults.n_acquire), 1);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_release_without_an_answer_ends_in_time)
{
    struct hf_locks *locks = faulty_open(100);
    struct hf_fault fault;
    struct hf_lock *lock = take(locks, "x");
    atomic_store(&faults.release_away, -1);
    int64_t begun = boot_ms();
    assert_int_equal(hf_unlock(lock, &fault), HF_UNREACHABLE);
    JUDGE(boot_ms() - begun >= 99 && boot_ms() - begun <= 2000);
    lock = take(locks, "y");
    atomic_store(&faults.release_away, 0);
    atomic_store(&faults.release_lost, -1);
    assert_int_equal(hf_unlock(lock, &fault), HF_UNKNOWN);
    assert_int_equal(fault.result, HF_UNKNOWN);
    atomic_store(&faults.release_lost, 0);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_grant_that_comes_too_late_is_no_lock)
{
    struct hf_locks *locks = faulty_open(1000);
    struct hf_lock_options brief = HF_LOCK_OPTIONS(.ttl_ms = 200);
    struct hf_lock *lock = NULL;
    struct hf_fault fault;
    atomic_store(&faults.slow_ms, 180); /* the lease is alive, but its deadline has passed */
    atomic_store(&faults.acquire_slow, -1);
    assert_int_equal(hf_lock(locks, "x", &brief, &lock, &fault), HF_UNKNOWN);
    assert_non_null(strstr(fault.msg, "too long for a TTL of 200 ms"));
    assert_null(lock);
    assert_int_equal(holders_of(locks, "x"), 0);

    atomic_store(&faults.acquire_slow, 1);
    JUDGE(hf_lock(locks, "x", &brief, &lock, &fault) == HF_DONE);
    JUDGE(hf_lock_held(lock));
    JUDGE(hf_lock_fence(lock) == 5); /* 1 to 4 came too late */
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

/* ---- waiting ---- */

struct news {
    int outs, ends;
    char why[256];
};

static void hear(const struct hf_fault *why, void *ctx)
{
    struct news *n = ctx;
    if (why)
        snprintf(n->why, sizeof n->why, "%s", why->msg);
    *(why ? &n->outs : &n->ends) += 1;
}

struct waiter {
    pthread_t thread;
    struct hf_locks *locks;
    struct hf_lock_options options;
    struct news news;
    struct hf_fault fault;
    enum hf_result result;
    int64_t took_ms;
};

static void *wait_for_x(void *arg)
{
    struct waiter *w = arg;
    struct hf_lock *lock = NULL;
    int64_t begun = boot_ms();
    w->result = hf_lock(w->locks, "x", &w->options, &lock, &w->fault);
    w->took_ms = boot_ms() - begun;
    if (w->result == HF_DONE)
        (void)!hf_unlock(lock, NULL);
    return NULL;
}

static void waiter_start(struct waiter *w, struct hf_locks *locks)
{
    w->locks = locks;
    w->options.on_outage = hear;
    w->options.ctx = &w->news;
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_x, w), 0);
}

static bool one_waits(void *ctx) { return waiters_of(ctx, "x") == 1; }

static void all_away(int times)
{
    atomic_store(&faults.acquire_away, times);
    atomic_store(&faults.wait_away, times);
    atomic_store(&faults.release_away, times);
}

TIMELY_CLAIM(a_waiter_rides_out_many_timeouts_and_hears_of_it_once)
{
    struct hf_locks *locks = faulty_open(100);
    for (int waits_already = 0; waits_already < 2; waits_already++) {
        struct hf_lock *lock = take(locks, "x");
        struct waiter w = {.options =
                               HF_LOCK_OPTIONS(.wait_ms = waits_already ? HF_FOREVER : 20000)};
        if (!waits_already)
            all_away(-1); /* from the first request on */
        waiter_start(&w, locks);
        if (waits_already) {
            assert_true(becomes(one_waits, locks));
            all_away(-1);
        }
        nap_ms(waits_already ? 2800 : 1000); /* asleep in the queue it asks every two seconds */
        all_away(0);
        (void)!hf_unlock(lock, NULL);
        pthread_join(w.thread, NULL);
        assert_int_equal(w.result, HF_DONE);
        JUDGE(w.took_ms >= 900);
        JUDGE(w.news.outs == 1);
        JUDGE(w.news.ends == 1);
        assert_string_equal(w.news.why, "told to be away");
    }
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_moment_of_absence_is_not_worth_a_word)
{
    struct hf_locks *locks = faulty_open(2000);
    struct hf_lock *lock = take(locks, "x");
    struct waiter w = {.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER)};
    atomic_store(&faults.wait_away, 1);
    waiter_start(&w, locks);
    assert_true(becomes(one_waits, locks));
    nap_ms(100);
    (void)!hf_unlock(lock, NULL);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, HF_DONE);
    JUDGE(w.news.outs == 0);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_wait_or_outage_limit_that_ends_in_an_outage_is_unreachable)
{
    struct hf_locks *locks = faulty_open(100);
    const struct hf_lock_options ends[] = {
        HF_LOCK_OPTIONS(.wait_ms = 500), HF_LOCK_OPTIONS(.wait_ms = 20000, .outage_ms = 500),
        HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .outage_ms = 500)};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct waiter w = {.options = ends[i]};
        all_away(-1);
        waiter_start(&w, locks);
        pthread_join(w.thread, NULL);
        assert_int_equal(w.result, HF_UNREACHABLE);
        assert_int_equal(w.fault.result, HF_UNREACHABLE);
        JUDGE(w.took_ms >= 499 && w.took_ms <= 3000);
        JUDGE(w.news.outs == 1);
        assert_int_equal(w.news.ends, 0);
    }
    all_away(0);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_wait_can_be_cancelled_during_an_outage)
{
    struct hf_locks *locks = faulty_open(100);
    struct hf_cancel *cancel = hf_cancel_new();
    struct waiter w = {.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .cancel = cancel)};
    all_away(-1);
    waiter_start(&w, locks);
    nap_ms(1500); /* deep in the longest pauses */
    hf_cancel_trigger(cancel);
    int64_t begun = boot_ms();
    pthread_join(w.thread, NULL);
    int64_t took_ms = boot_ms() - begun;
    all_away(0);
    hf_cancel_free(cancel);
    assert_int_equal(w.result, HF_TAKEN);
    JUDGE(took_ms < 500);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(out_of_reach_is_one_of_the_tries)
{
    struct hf_locks *locks = faulty_open(100);
    struct hf_lock_options four = HF_LOCK_OPTIONS(.retries = 3, .retry_ms = 20);
    struct hf_lock *lock = NULL;
    struct hf_fault fault;
    atomic_store(&faults.acquire_away, 3); /* the fourth is answered */
    assert_int_equal(hf_lock(locks, "x", &four, &lock, &fault), HF_DONE);
    assert_int_equal(atomic_load(&faults.n_acquire), 4);
    (void)!hf_unlock(lock, NULL);
    atomic_store(&faults.acquire_away, -1);
    atomic_store(&faults.n_acquire, 0);
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", &four, &lock, &fault), HF_UNREACHABLE);
    assert_int_equal(atomic_load(&faults.n_acquire), 4);
    int64_t took_ms = boot_ms() - begun;
    atomic_store(&faults.acquire_away, 0);
    JUDGE(took_ms >= 59 && took_ms <= 2000);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

/* As many calls as there are handles for short calls ride it out, and one more gets its answer. */
static void calls_that_ride_out_an_outage_leave_handles_to_others(void **state)
{
    (void)state;
    enum { N = POOL_SHORT_MAX };
    struct hf_locks *locks = faulty_open(300);
    static struct waiter w[N];
    all_away(-1);
    for (int i = 0; i < N; i++) {
        w[i] = (struct waiter){.options = HF_LOCK_OPTIONS(.wait_ms = 1500)};
        waiter_start(&w[i], locks);
    }
    nap_ms(600);
    for (int i = 0; i < 20; i++)
        assert_int_equal(waiters_of(locks, "x"), 0);
    for (int i = 0; i < N; i++)
        pthread_join(w[i].thread, NULL);
    all_away(0);
    hf_close(locks);
}

/* ---- a real Redis ---- */

static struct hf_locks *open_port(int port, int64_t timeout_ms)
{
    char url[64];
    struct hf_options options = HF_OPTIONS(.timeout_ms = timeout_ms);
    struct hf_locks *locks = NULL;
    struct hf_fault fault;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    /* Redis may stand still for longer than the timeout. */
    for (int64_t end_ms = boot_ms() + 30000; hf_open(url, &options, &locks, &fault) != HF_DONE;)
        if (fault.result != HF_UNREACHABLE || boot_ms() >= end_ms)
            fail_msg("%s", fault.msg);
    return locks;
}

static bool is_renewed(void *ctx)
{
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(ctx, &stats, NULL), HF_DONE);
    return stats.renewals > 0;
}

/* Loses one answer to a renewal of a lock with this TTL.  `locks` is behind the proxy, and
 * `straight` is not.  Returns false if the machine was too slow to judge: the process was paused,
 * or Redis was. */
static bool lose_an_answer(struct relay *proxy, struct hf_locks *locks, struct hf_locks *straight,
                           int64_t ttl_ms)
{
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = ttl_ms);
    struct hf_lock *lock = NULL, *rival = NULL;
    struct hf_stats stats = HF_STATS_INIT;
    bool is_slow = false;
    if (hf_lock(locks, "x", &options, &lock, NULL) != HF_DONE)
        return false;
    while (!is_renewed(locks)) { /* so the renewer is connected */
        if (!hf_lock_held(lock))
            return false; /* it was lost before an answer was */
        nap_ms(2);
    }
    relay_set(proxy, RELAY_SWALLOW_ONCE);
    for (int64_t end = boot_ms() + 2 * ttl_ms, asked; (asked = boot_ms()) < end; nap_ms(20)) {
        enum hf_result result = hf_lock(straight, "x", NULL, &rival, NULL);
        is_slow = is_slow || boot_ms() - asked > ttl_ms / 10;
        JUDGE(is_slow || (hf_lock_held(lock) && result == HF_TAKEN));
        if (is_slow)
            return false;
    }
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    JUDGE(relay_count(proxy).lost == 1);
    JUDGE(stats.renewal_failures == 1);
    JUDGE(stats.lost == 0);
    return hf_unlock(lock, NULL) == HF_DONE;
too_slow:
    return false;
}

static bool one_lost_answer(void *ctx)
{
    const int64_t *ttl_ms = ctx;
    struct relay *proxy = proxy_start(server.port);
    struct hf_locks *straight = open_port(server.port, 0);
    struct hf_locks *locks = open_port(relay_port(proxy), 0); /* the default timeout */
    bool is_judged = lose_an_answer(proxy, locks, straight, *ttl_ms);
    relay_set(proxy, RELAY_PASS);
    hf_close(locks);
    hf_close(straight);
    relay_stop(proxy);
    if (!is_judged)
        must_ask("FLUSHALL");
    return is_judged;
}

static void one_lost_answer_costs_no_lock_however_short(void **state)
{
    (void)state;
    for (int64_t ttl_ms = 1000; ttl_ms <= 3000; ttl_ms += 1000)
        timely(one_lost_answer, &ttl_ms);
}

static void a_waiter_keeps_its_place_through_a_restart(void **state)
{
    (void)state;
    struct redis_server kept = {.aof = true};
    assert_true(redis_server_start(&kept));
    struct hf_locks *locks = open_port(kept.port, 20000), *other = open_port(kept.port, 1000);
    struct hf_lock *lock = take(locks, "x");
    struct waiter w = {.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER)};
    waiter_start(&w, other);
    assert_true(becomes(one_waits, locks));
    redis_server_kill(&kept);
    nap_ms(3000); /* three timeouts */
    redis_server_again(&kept);
    assert_true(becomes(one_waits, locks));
    assert_true(hf_lock_held(lock));
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, HF_DONE);
    assert_true(w.news.outs >= 1); /* a pause of the machine is an outage, too */
    assert_int_equal(w.news.ends, w.news.outs);
    hf_close(other);
    hf_close(locks);
    redis_server_stop(&kept);
}

TIMELY_CLAIM(a_wait_without_answers_ends_in_time)
{
    enum { TIMEOUT_MS = 500, WAIT_MS = 2500 };
    struct relay *proxy = proxy_start(server.port);
    struct hf_locks *straight = open_port(server.port, 10000),
                    *locks = open_port(relay_port(proxy), TIMEOUT_MS);
    struct hf_lock *lock = take(straight, "x");
    struct waiter w = {.options = HF_LOCK_OPTIONS(.wait_ms = WAIT_MS)};
    int64_t begun = boot_ms();
    waiter_start(&w, locks);
    bool is_waiting = false;
    while (!is_waiting && boot_ms() - begun < WAIT_MS)
        is_waiting = one_waits(straight);
    relay_set(proxy, RELAY_SWALLOW);
    pthread_join(w.thread, NULL);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    hf_close(locks);
    hf_close(straight);
    relay_stop(proxy);
    if (!is_waiting)
        return false;
    JUDGE(w.result == HF_UNREACHABLE || w.result == HF_UNKNOWN);
    JUDGE(w.took_ms >= WAIT_MS - 1 && w.took_ms <= WAIT_MS + 4 * TIMEOUT_MS + 1000);
    JUDGE(w.news.outs == 1);
    return true;
too_slow:
    return false;
}

static void note_loss(struct hf_lock *lock, void *ctx)
{
    (void)lock;
    atomic_store((_Atomic int64_t *)ctx, boot_ms());
}

static bool is_noted(void *ctx) { return atomic_load((_Atomic int64_t *)ctx) != 0; }

/* A holder learns at the next renewal that the server forgot its lease; the next fence is larger.
 */
TIMELY_CLAIM(a_server_that_forgets_costs_the_lock_and_no_fence_repeats)
{
    struct hf_locks *locks = open_port(server.port, 2000);
    int64_t last = 0;
    for (int restart = 0; restart < 2; restart++) {
        static _Atomic int64_t lost_ms; /* outlives a claim that is broken off */
        atomic_store(&lost_ms, 0);
        struct hf_lock_options options =
            HF_LOCK_OPTIONS(.ttl_ms = 900, .on_loss = note_loss, .ctx = &lost_ms);
        struct hf_lock *lock = NULL;
        if (hf_lock(locks, "memory", &options, &lock, NULL) != HF_DONE)
            goto too_slow;
        assert_true(hf_lock_fence(lock) > last);
        last = hf_lock_fence(lock);
        int64_t begun = boot_ms();
        if (restart) {
            redis_server_kill(&server);
            redis_server_again(&server);
        } else {
            must_ask("FLUSHALL");
        }
        assert_true(becomes(is_noted, &lost_ms));
        JUDGE(atomic_load(&lost_ms) - begun < 900);
        assert_false(hf_lock_held(lock));
        assert_int_equal(hf_unlock(lock, NULL), HF_LOST);
    }
    struct hf_lock *next = NULL;
    if (hf_lock(locks, "memory", NULL, &next, NULL) != HF_DONE)
        goto too_slow;
    assert_true(hf_lock_fence(next) > last);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_answer_is_found_by_asking_again),
        cmocka_unit_test(what_stays_unknown_is_unknown_and_given_back),
        cmocka_unit_test(an_unreachable_back_end_fails_a_call_that_does_not_wait_at_once),
        cmocka_unit_test(a_release_without_an_answer_ends_in_time),
        cmocka_unit_test(a_grant_that_comes_too_late_is_no_lock),
        cmocka_unit_test(a_waiter_rides_out_many_timeouts_and_hears_of_it_once),
        cmocka_unit_test(a_moment_of_absence_is_not_worth_a_word),
        cmocka_unit_test(a_wait_or_outage_limit_that_ends_in_an_outage_is_unreachable),
        cmocka_unit_test(a_wait_can_be_cancelled_during_an_outage),
        cmocka_unit_test(out_of_reach_is_one_of_the_tries),
        cmocka_unit_test(calls_that_ride_out_an_outage_leave_handles_to_others),
        cmocka_unit_test(one_lost_answer_costs_no_lock_however_short),
        cmocka_unit_test(a_waiter_keeps_its_place_through_a_restart),
        cmocka_unit_test(a_wait_without_answers_ends_in_time),
        cmocka_unit_test(a_server_that_forgets_costs_the_lock_and_no_fence_repeats),
    };
    return run_with_redis(tests);
}
