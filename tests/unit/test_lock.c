/* Claims about one lock on memory: exclusion, waiting, refused options, statistics.  Lost answers
 * are in test_lock_outage.c. */
#include "support/fixtures.h"

#include "support/lock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lock/lock.h"

#define TTL_DEFAULT_MS 30000

static struct hf_locks *open_memory(void)
{
    struct hf_locks *locks = NULL;
    assert_int_equal(hf_open("memory:", NULL, &locks, NULL), HF_DONE);
    return locks;
}

static struct hf_lock *take(struct hf_locks *locks, const char *name)
{
    struct hf_lock *lock = NULL;
    assert_int_equal(hf_lock(locks, name, NULL, &lock, NULL), HF_DONE);
    return lock;
}

/* ---- options ---- */

static void every_bad_option_is_refused_by_name(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    char long_label[LEASE_LABEL_MAX + 2];
    memset(long_label, 'l', sizeof long_label - 1);
    long_label[sizeof long_label - 1] = '\0';
    const struct {
        struct hf_lock_options options;
        const char *says;
    } bad[] = {
        {HF_LOCK_OPTIONS(.ttl_ms = -1), "TTL"},
        {HF_LOCK_OPTIONS(.ttl_ms = 1), "TTL"},
        {HF_LOCK_OPTIONS(.ttl_ms = 99), "TTL"},
        {HF_LOCK_OPTIONS(.ttl_ms = INT64_MAX), "TTL"},
        {HF_LOCK_OPTIONS(.ttl_ms = INT64_MIN), "TTL"},
        {HF_LOCK_OPTIONS(.wait_ms = -2), "wait_ms"},
        {HF_LOCK_OPTIONS(.wait_ms = INT64_MIN), "wait_ms"},
        {HF_LOCK_OPTIONS(.retries = -1), "retries"},
        {HF_LOCK_OPTIONS(.retries = 1000001), "retries"},
        {HF_LOCK_OPTIONS(.retry_ms = -1), "retry_ms"},
        {HF_LOCK_OPTIONS(.retry_ms = INT64_MAX), "retry_ms"},
        {HF_LOCK_OPTIONS(.max_hold_ms = -1), "max_hold_ms"},
        {HF_LOCK_OPTIONS(.outage_ms = -1), "outage_ms"},
        {HF_LOCK_OPTIONS(.mode = (enum hf_mode)2), "mode"},
        {HF_LOCK_OPTIONS(.slots = LEASE_SLOTS_MAX + 1), "slots"},
        {HF_LOCK_OPTIONS(.slots = 2, .mode = HF_SHARED), "slots"},
        {HF_LOCK_OPTIONS(.label = long_label), "label"},
        {HF_LOCK_OPTIONS(.label = "two\nlines"), "label"},
        {HF_LOCK_OPTIONS(.label = "\xff"), "label"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hf_lock *lock = (void *)&locks;
        struct hf_fault fault = {.result = HF_DONE};
        assert_int_equal(hf_lock(locks, "x", &bad[i].options, &lock, &fault), HF_BAD_REQUEST);
        assert_int_equal(fault.result, HF_BAD_REQUEST);
        assert_non_null(strstr(fault.msg, bad[i].says));
        assert_ptr_equal(lock, &locks); /* untouched */
        assert_int_equal(hf_lock(locks, "x", &bad[i].options, &lock, NULL), HF_BAD_REQUEST);
    }
    struct hf_lock_options most =
        HF_LOCK_OPTIONS(.wait_ms = INT64_MAX, .max_hold_ms = INT64_MAX, .outage_ms = INT64_MAX);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", &most, &lock, NULL), HF_DONE);
    hf_close(locks);
}

static void names_are_utf8_without_control_characters(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    char longest[LEASE_NAME_MAX + 2], huge[4097];
    memset(longest, 'n', LEASE_NAME_MAX + 1);
    longest[LEASE_NAME_MAX + 1] = '\0';
    memset(huge, 'n', 4096);
    huge[4096] = '\0';
    const char *bad[] = {NULL,       "",      longest,           huge,   "a\nb",
                         "\x7f",     "\xff",  "\xc0\xaf",        "\xc3", "\xed\xa0\x80",
                         "\xc2\x80", "a\tb ", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hf_lock *lock;
        struct hf_lock_state s = HF_LOCK_STATE_INIT;
        struct hf_fault fault = {.result = HF_DONE};
        assert_int_equal(hf_lock(locks, bad[i], NULL, &lock, &fault), HF_BAD_REQUEST);
        assert_non_null(strstr(fault.msg, "name"));
        assert_int_equal(hf_inspect(locks, bad[i], &s, &fault), HF_BAD_REQUEST);
        assert_int_equal(hf_break(locks, bad[i], &fault), HF_BAD_REQUEST);
    }
    struct hf_fault fault;
    struct hf_lock *none;
    assert_int_equal(hf_lock(locks, huge, NULL, &none, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "4096 bytes"));
    longest[LEASE_NAME_MAX] = '\0';
    const char *good[] = {longest, "a", " ", "caf\xc3\xa9 / 1", "\xf0\x9f\x94\x92"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct hf_lock *lock = take(locks, good[i]);
        assert_string_equal(hf_lock_name(lock), good[i]);
    }
    hf_close(locks);
}

static void an_odd_url_is_refused_at_once(void **state)
{
    (void)state;
    struct hf_locks *locks;
    struct hf_fault fault = {.result = HF_DONE};
    const char *bad[] = {NULL, "", "memory", "memory:x", "carrier-pigeon://:secret@host"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(hf_open(bad[i], NULL, &locks, &fault), HF_BAD_REQUEST);
        assert_int_equal(fault.result, HF_BAD_REQUEST);
        assert_null(strstr(fault.msg, "secret"));
    }
    struct hf_options negative = HF_OPTIONS(.timeout_ms = -1),
                      endless = HF_OPTIONS(.timeout_ms = INT64_MAX);
    assert_int_equal(hf_open("memory:", &negative, &locks, &fault), HF_BAD_REQUEST);
    assert_int_equal(hf_open("memory:", &endless, &locks, &fault), HF_BAD_REQUEST);
    hf_close(NULL);
}

static void what_a_back_end_cannot_do_is_refused_not_left_out(void **state)
{
    (void)state;
    struct hf_locks *locks = faulty_open(1000); /* which declares none of them */
    struct hf_lock *lock;
    struct hf_fault fault;
    struct hf_lock_options shared = HF_LOCK_OPTIONS(.mode = HF_SHARED),
                           priority = HF_LOCK_OPTIONS(.priority = 1),
                           slots = HF_LOCK_OPTIONS(.slots = 2);
    assert_int_equal(hf_lock(locks, "x", &shared, &lock, &fault), HF_UNSUPPORTED);
    assert_non_null(strstr(fault.msg, "shared"));
    assert_int_equal(hf_lock(locks, "x", &priority, &lock, &fault), HF_UNSUPPORTED);
    assert_non_null(strstr(fault.msg, "priorit"));
    assert_int_equal(hf_lock(locks, "x", &slots, &lock, &fault), HF_UNSUPPORTED);
    assert_non_null(strstr(fault.msg, "slots"));
    assert_int_equal(atomic_load(&faults.n_acquire), 0);
    hf_close(locks);
}

/* ---- holding ---- */

static void one_holder_at_a_time_and_fences_grow(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    int64_t last = 0;
    for (int i = 0; i < 3; i++) {
        struct hf_lock *lock = take(locks, "x"), *second = NULL;
        struct hf_fault fault;
        int64_t now = boot_ms(), deadline = hf_lock_deadline_ms(lock);
        assert_true(hf_lock_held(lock));
        assert_true(hf_lock_fence(lock) > last);
        last = hf_lock_fence(lock);
        assert_true(deadline <=
                    now + TTL_DEFAULT_MS - TTL_DEFAULT_MS / 100); /* 1 % is more than 50 ms */
        assert_true(deadline > now + TTL_DEFAULT_MS - TTL_DEFAULT_MS / 100 - 5000);
        assert_int_equal(hf_lock(locks, "x", NULL, &second, &fault), HF_TAKEN);
        assert_int_equal(fault.result, HF_TAKEN);
        assert_null(second);
        assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    }
    hf_close(locks);
}

static void slots_limit_holders_and_readers_share(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock_options three = HF_LOCK_OPTIONS(.slots = 3),
                           shared = HF_LOCK_OPTIONS(.mode = HF_SHARED);
    struct hf_lock *lock[3], *more;
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_lock(locks, "pool", &three, &lock[i], NULL), HF_DONE);
    assert_int_equal(hf_lock(locks, "pool", &three, &more, NULL), HF_TAKEN);
    assert_int_equal(hf_unlock(lock[1], NULL), HF_DONE);
    assert_int_equal(hf_lock(locks, "pool", &three, &more, NULL), HF_DONE);
    assert_int_equal(hf_lock(locks, "book", &shared, &more, NULL), HF_DONE);
    assert_int_equal(hf_lock(locks, "book", &shared, &more, NULL), HF_DONE);
    assert_int_equal(hf_lock(locks, "book", NULL, &more, NULL), HF_TAKEN);
    assert_int_equal(holders_of(locks, "book"), 2);
    hf_close(locks);
}

static void a_broken_lock_is_lost_to_its_holder(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock = take(locks, "x");
    assert_int_equal(hf_renew(lock, NULL), HF_DONE);
    assert_int_equal(hf_break(locks, "x", NULL), HF_DONE);
    assert_int_equal(hf_renew(lock, NULL), HF_LOST);
    assert_false(hf_lock_held(lock));
    assert_int_equal(hf_renew(lock, NULL), HF_LOST);
    struct hf_fault fault;
    assert_int_equal(hf_unlock(lock, &fault), HF_LOST);
    assert_int_equal(fault.result, HF_LOST);
    hf_close(locks);
}

struct late_return {
    enum hf_result result;
    atomic_bool done;
};

static void give_back_late(struct hf_lock *lock, void *ctx)
{
    struct late_return *late = ctx;
    late->result = hf_unlock(lock, NULL);
    late->done = true;
}

/* The back end may still have the lease then, since the deadline is earlier by the margin. */
static void a_lock_that_is_given_back_after_its_loss_was_lost(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    struct late_return late = {.result = HF_DONE};
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = 100, .manual = true, .on_loss = give_back_late, .ctx = &late);
    assert_int_equal(hf_lock(locks, "x", &want, &lock, NULL), HF_DONE);
    while (!late.done)
        nap_ms(1);
    assert_int_equal(late.result, HF_LOST);
    assert_int_equal(holders_of(locks, "x"), 0); /* it was given back all the same */
    hf_close(locks);
}

static bool keep_name(void *ctx, const char *name)
{
    char *all = ctx; /* 64 bytes */
    size_t at = strlen(all);
    snprintf(all + at, 64 - at, "%s ", name);
    return strlen(all) < 8;
}

static void names_in_use_can_be_listed(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    take(locks, "b2");
    take(locks, "a1");
    take(locks, "b1");
    char all[64] = "", some[64] = "";
    assert_int_equal(hf_list(locks, NULL, keep_name, all, NULL), HF_DONE);
    assert_string_equal(all, "a1 b1 b2 ");
    assert_int_equal(hf_list(locks, "b", keep_name, some, NULL), HF_DONE);
    assert_string_equal(some, "b1 b2 ");
    assert_int_equal(hf_list(locks, "b", NULL, NULL, NULL), HF_BAD_REQUEST);
    hf_close(locks);
}

/* ---- waiting ---- */

struct waiter {
    pthread_t thread;
    struct hf_locks *locks;
    struct hf_lock_options options;
    enum hf_result result;
    int64_t granted_ms;
    atomic_int *order;
    int place;
};

static void *wait_and_release(void *arg)
{
    struct waiter *w = arg;
    struct hf_lock *lock = NULL;
    w->result = hf_lock(w->locks, "x", &w->options, &lock, NULL);
    if (w->result == HF_DONE) {
        w->granted_ms = boot_ms();
        w->place = w->order ? atomic_fetch_add(w->order, 1) : 0;
        (void)!hf_unlock(lock, NULL);
    }
    return NULL;
}

static void waiter_start(struct waiter *w, struct hf_locks *locks)
{
    w->locks = locks;
    assert_int_equal(pthread_create(&w->thread, NULL, wait_and_release, w), 0);
}

struct waiters {
    struct hf_locks *locks;
    size_t n;
};
static bool all_wait(void *ctx)
{
    struct waiters *c = ctx;
    return waiters_of(c->locks, "x") == c->n;
}

TIMELY_CLAIM(a_wait_that_ends_leaves_no_waiter_behind)
{
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock = take(locks, "x"), *second;
    struct hf_lock_options wait = HF_LOCK_OPTIONS(.wait_ms = 120);
    struct hf_fault fault;
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", &wait, &second, &fault), HF_TAKEN);
    int64_t took = boot_ms() - begun;
    assert_true(took >= 119);
    assert_non_null(strstr(fault.msg, "waiting"));
    assert_int_equal(waiters_of(locks, "x"), 0);
    (void)!hf_unlock(lock, NULL);
    hf_close(locks);
    JUDGE(took <= 2000);
    return true;
too_slow:
    return false;
}

/* A process that stands still for some seconds is silent, and its waiters lose their places. */
TIMELY_CLAIM(waiters_are_served_in_the_order_they_came)
{
    enum { N = 12 };
    bool is_in_order = true;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock = take(locks, "x");
    struct waiter w[N];
    atomic_int order = 0;
    for (size_t i = 0; i < N; i++) {
        w[i] = (struct waiter){.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER), .order = &order};
        waiter_start(&w[i], locks);
        assert_true(becomes(all_wait, &(struct waiters){locks, i + 1}));
    }
    (void)!hf_unlock(lock, NULL);
    for (int i = 0; i < N; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, HF_DONE);
        is_in_order = is_in_order && w[i].place == i;
    }
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    assert_int_equal(stats.waits, N);
    assert_true(stats.wait_us > 0);
    hf_close(locks);
    JUDGE(is_in_order);
    return true;
too_slow:
    return false;
}

TIMELY_CLAIM(the_larger_priority_goes_first)
{
    bool is_in_order = true;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock = take(locks, "x");
    struct waiter w[3];
    atomic_int order = 0;
    for (int i = 0; i < 3; i++) {
        w[i] = (struct waiter){.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .priority = i),
                               .order = &order};
        waiter_start(&w[i], locks);
        assert_true(becomes(all_wait, &(struct waiters){locks, (size_t)i + 1}));
    }
    (void)!hf_unlock(lock, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_join(w[i].thread, NULL);
        is_in_order = is_in_order && w[i].place == 2 - i;
    }
    hf_close(locks);
    JUDGE(is_in_order);
    return true;
too_slow:
    return false;
}

static void retries_ask_again_without_a_place_in_the_queue(void **state)
{
    (void)state;
    struct hf_locks *locks = faulty_open(1000);
    struct hf_lock *lock = take(locks, "x"), *second;
    struct hf_lock_options retry = HF_LOCK_OPTIONS(.retries = 3, .retry_ms = 20);
    atomic_store(&faults.n_acquire, 0);
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", &retry, &second, NULL), HF_TAKEN);
    assert_true(boot_ms() - begun >= 59);
    assert_int_equal(atomic_load(&faults.n_acquire), 4);
    assert_int_equal(atomic_load(&faults.n_wait), 0);
    assert_int_equal(atomic_load(&faults.n_release), 0); /* nothing to give up */

    struct waiter w = {.options = HF_LOCK_OPTIONS(.retries = 10000, .retry_ms = 5)};
    waiter_start(&w, locks);
    nap_ms(30);
    assert_int_equal(waiters_of(locks, "x"), 0);
    (void)!hf_unlock(lock, NULL);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, HF_DONE);

    (void)take(locks, "x");
    struct hf_lock_options both = HF_LOCK_OPTIONS(.retries = 1000000, .retry_ms = 5, .wait_ms = 60);
    begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", &both, &second, NULL), HF_TAKEN);
    assert_in_range(boot_ms() - begun, 59, 60000); /* the retries alone would take 5000 s */
    hf_close(locks);
}

/* There are more waiters than handles for waiting, and the holder still takes a second lock and
 * gives both back: waiters must not use up the handles that the holder needs. */
static void many_waiters_do_not_stop_the_holder(void **state)
{
    (void)state;
    enum { N = POOL_WAITING_MAX + 20 };
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock = take(locks, "x");
    struct waiter *w = hf_alloc(N * sizeof *w);
    for (size_t i = 0; i < N; i++) {
        w[i].options = (struct hf_lock_options)HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER);
        waiter_start(&w[i], locks);
    }
    assert_true(becomes(all_wait, &(struct waiters){locks, N}));
    struct hf_lock *other = take(locks, "y");
    assert_int_equal(hf_unlock(other, NULL), HF_DONE);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    for (size_t i = 0; i < N; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, HF_DONE);
    }
    free(w);
    hf_close(locks);
}

/* Waiters that poll because too many sleep do so every 2p ms at place p, so that the back end has
 * time to serve the first of them. */
static void a_long_line_asks_seldom(void **state)
{
    (void)state;
    enum { N = POOL_WAITING_MAX + 100 };
    struct hf_locks *locks = faulty_open(2000);
    struct hf_lock *lock = take(locks, "x");
    struct waiter *w = hf_alloc(N * sizeof *w);
    for (size_t i = 0; i < N; i++) {
        w[i].options = (struct hf_lock_options)HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER);
        waiter_start(&w[i], locks);
    }
    assert_true(becomes(all_wait, &(struct waiters){locks, N}));
    nap_ms(300); /* the first have gone to sleep */
    int64_t begun = boot_ms();
    atomic_store(&faults.n_acquire, 0);
    nap_ms(1000);
    int asked = atomic_load(&faults.n_acquire);
    int64_t took_ms = boot_ms() - begun;
    (void)!hf_unlock(lock, NULL);
    for (size_t i = 0; i < N; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, HF_DONE);
    }
    free(w);
    hf_close(locks);
    /* 100 at places 129 to 228 every 0.36 s, and those asleep every 2 s */
    assert_in_range(asked, 1, 600 * took_ms / 1000);
}

struct caller {
    pthread_t thread;
    struct hf_locks *locks;
    int failed;
};
static void *take_own(void *arg)
{
    struct caller *c = arg;
    char name[32];
    struct hf_lock *lock;
    snprintf(name, sizeof name, "own %p", arg);
    c->failed =
        hf_lock(c->locks, name, NULL, &lock, NULL) != HF_DONE || hf_unlock(lock, NULL) != HF_DONE;
    return NULL;
}

/* A wake-up that is lost among calls that wait for a handle would cost them the whole timeout. */
static void more_calls_than_handles_take_turns(void **state)
{
    (void)state;
    enum { N = 4 * POOL_SHORT_MAX };
    struct hf_locks *locks = faulty_open(20000);
    int64_t begun = boot_ms();
    struct caller *c = hf_alloc(N * sizeof *c);
    atomic_store(&faults.slow_ms, 50);
    atomic_store(&faults.acquire_slow, -1);
    for (size_t i = 0; i < N; i++) {
        c[i].locks = locks;
        assert_int_equal(pthread_create(&c[i].thread, NULL, take_own, &c[i]), 0);
    }
    for (size_t i = 0; i < N; i++) {
        pthread_join(c[i].thread, NULL);
        assert_int_equal(c[i].failed, 0);
    }
    assert_true(boot_ms() - begun < 10000);
    assert_true(locks->pool.n_idle <= POOL_SHORT_MAX);
    assert_int_equal(locks->pool.n_short, 0);
    free(c);
    hf_close(locks);
}

/* ---- statistics, closing ---- */

static void everything_is_counted(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock = take(locks, "x"), *second;
    struct hf_lock_options wait = HF_LOCK_OPTIONS(.wait_ms = 20),
                           bad = HF_LOCK_OPTIONS(.ttl_ms = -1);
    assert_int_equal(hf_lock(locks, "x", NULL, &second, NULL), HF_TAKEN);
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", &wait, &second, NULL), HF_TAKEN);
    int64_t took_ms = boot_ms() - begun + 1;
    assert_int_equal(hf_lock(locks, "x", &bad, &second, NULL), HF_BAD_REQUEST);
    assert_int_equal(hf_renew(lock, NULL), HF_DONE);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    struct hf_stats s = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &s, NULL), HF_DONE);
    assert_int_equal(s.granted, 1);
    assert_int_equal(s.taken, 1);
    assert_int_equal(s.timed_out, 1);
    assert_int_equal(s.waits, 1);
    assert_int_equal(s.renewals, 1);
    assert_int_equal(s.releases, 1);
    assert_int_equal(s.lost + s.unknown + s.failed + s.renewal_failures, 0);
    assert_in_range(s.wait_us, 19000, took_ms * 1000);
    uint64_t all = 0;
    for (int i = 0; i < HF_LATENCY_BUCKETS; i++)
        all += s.latency[i];
    assert_int_equal(all, s.granted);
    stats_add_latency(&locks->stats, 15);
    stats_add_latency(&locks->stats, 16);
    stats_add_latency(&locks->stats, INT64_MAX);
    struct hf_stats more = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &more, NULL), HF_DONE);
    assert_int_equal(more.latency[0] - s.latency[0], 1);
    assert_int_equal(more.latency[1] - s.latency[1], 1);
    assert_int_equal(more.latency[HF_LATENCY_BUCKETS - 1], 1);
    assert_true(more.latency_us - s.latency_us == UINT64_C(15) + 16 + INT64_MAX);
    hf_close(locks);
}

/* All calls mean the same by the remaining time of a lease: until the deadline, not until the end.
 */
TIMELY_CLAIM(a_scripts_lease_has_the_margin_of_a_lock)
{
    struct hf_locks *locks = open_memory();
    for (int64_t ttl_ms = 1000; ttl_ms <= 100000; ttl_ms *= 100) {
        struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = ttl_ms);
        struct hf_grant got = HF_GRANT_INIT, renewed = HF_GRANT_INIT;
        int64_t margin_ms = ttl_ms == 1000 ? 50 : 1000;
        int64_t begun = boot_ms();
        JUDGE(hf_lease_get(locks, "x", &options, &got, NULL) == HF_DONE);
        JUDGE(hf_lease_renew(locks, "x", got.owner, ttl_ms, &renewed, NULL) == HF_DONE);
        int64_t took_ms = boot_ms() - begun + 1, most_ms = ttl_ms - margin_ms;
        assert_true(got.remaining_ms >= most_ms - took_ms && got.remaining_ms <= most_ms);
        assert_true(renewed.remaining_ms >= most_ms - took_ms && renewed.remaining_ms <= most_ms);
        JUDGE(hf_lease_release(locks, "x", got.owner, NULL) == HF_DONE);
    }
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

static void closing_gives_back_what_is_held(void **state)
{
    (void)state;
    struct hf_locks *locks = faulty_open(1000);
    struct lease *witness = NULL;
    struct lease_state left = {0};
    assert_int_equal(lease_clone(locks->pool.first, &witness, NULL), HF_DONE);
    for (int i = 0; i < 2 * LOCK_BATCH_MAX + 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        (void)hf_lock_fd(take(locks, name));
    }
    struct hf_lock_set *set;
    const char *pair[] = {"q", "p"};
    assert_int_equal(hf_lock_many(locks, pair, 2, NULL, &set, NULL), HF_DONE);
    hf_close(locks);
    assert_int_equal(atomic_load(&faults.n_release), 3);
    char all[64] = "";
    assert_int_equal(lease_list(witness, "", 0, keep_name, all, NULL), HF_DONE);
    assert_string_equal(all, "");
    assert_int_equal(lease_inspect(witness, "p", 1, &left, NULL), HF_DONE);
    assert_int_equal(left.n_holders, 0);
    lease_state_close(&left);
    lease_close(witness);
}

static void results_and_drivers_have_names(void **state)
{
    (void)state;
    for (int r = HF_DONE; r <= HF_FAILED; r++)
        for (int other = HF_DONE; other < r; other++)
            assert_string_not_equal(hf_result_text((enum hf_result)r),
                                    hf_result_text((enum hf_result)other));
    assert_non_null(hf_result_text((enum hf_result)99));
    size_t n = 0;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    assert_true(n >= 1);
    for (size_t i = 0; i < n; i++)
        assert_ptr_equal(drivers[i], &lease_drivers[i]->info);
    assert_string_equal(drivers[0]->name, "memory");
}

/* ---- many threads ---- */

#define THREADS 64
#define ROUNDS 200
struct crew {
    struct hf_locks *locks;
    volatile long counter; /* protected by the lock: neither atomic nor under a mutex */
    atomic_int failed;
};

static void *add_one_often(void *arg)
{
    struct crew *crew = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct hf_lock_options wait = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER);
        struct hf_lock *lock = NULL;
        if (hf_lock(crew->locks, "counter", &wait, &lock, NULL) != HF_DONE) {
            atomic_fetch_add(&crew->failed, 1);
            continue;
        }
        long seen = crew->counter;
        if (i % 16 == 0)
            sched_yield();
        crew->counter = seen + 1;
        if (hf_unlock(lock, NULL) != HF_DONE)
            atomic_fetch_add(&crew->failed, 1);
    }
    return NULL;
}

static void a_plain_counter_is_safe_with_64_threads(void **state)
{
    (void)state;
    struct crew crew = {.locks = open_memory()};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_one_often, &crew), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crew.failed), 0);
    assert_int_equal(crew.counter, THREADS * ROUNDS);
    hf_close(crew.locks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_option_is_refused_by_name),
        cmocka_unit_test(names_are_utf8_without_control_characters),
        cmocka_unit_test(an_odd_url_is_refused_at_once),
        cmocka_unit_test(what_a_back_end_cannot_do_is_refused_not_left_out),
        cmocka_unit_test(one_holder_at_a_time_and_fences_grow),
        cmocka_unit_test(slots_limit_holders_and_readers_share),
        cmocka_unit_test(a_broken_lock_is_lost_to_its_holder),
        cmocka_unit_test(a_lock_that_is_given_back_after_its_loss_was_lost),
        cmocka_unit_test(names_in_use_can_be_listed),
        cmocka_unit_test(a_wait_that_ends_leaves_no_waiter_behind),
        cmocka_unit_test(waiters_are_served_in_the_order_they_came),
        cmocka_unit_test(the_larger_priority_goes_first),
        cmocka_unit_test(retries_ask_again_without_a_place_in_the_queue),
        cmocka_unit_test(many_waiters_do_not_stop_the_holder),
        cmocka_unit_test(a_long_line_asks_seldom),
        cmocka_unit_test(more_calls_than_handles_take_turns),
        cmocka_unit_test(everything_is_counted),
        cmocka_unit_test(a_scripts_lease_has_the_margin_of_a_lock),
        cmocka_unit_test(closing_gives_back_what_is_held),
        cmocka_unit_test(results_and_drivers_have_names),
        cmocka_unit_test(a_plain_counter_is_safe_with_64_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
