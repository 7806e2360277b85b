/* Claims about held locks: they are renewed in time or lost with a notice, and the notice comes
 * before another holder can get the lock.  The back end itself is the judge: a waiter stands in the
 * queue the whole time and records when it is granted. */
#include "support/fixtures.h"

#include "support/lock.h"
#include "support/process.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t boot_us(void) { return clock_boot_us(&clock_system); }

struct loss_notice {
    _Atomic int64_t at_us; /* 0: none */
    atomic_int times;
    atomic_bool held; /* what hf_lock_held said then */
    _Atomic int64_t deadline_ms;
};

static void on_loss(struct hf_lock *lock, void *ctx)
{
    struct loss_notice *n = ctx;
    atomic_store(&n->held, hf_lock_held(lock));
    atomic_store(&n->deadline_ms, hf_lock_deadline_ms(lock));
    atomic_fetch_add(&n->times, 1);
    atomic_store(&n->at_us, boot_us());
}

static bool has_come(void *ctx) { return atomic_load(&((struct loss_notice *)ctx)->at_us) != 0; }

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

struct rival {
    pthread_t thread;
    struct hf_locks *locks;
    int64_t granted_us;
    enum hf_result result;
};

static void *wait_for_it(void *arg)
{
    struct rival *r = arg;
    struct hf_lock_options wait = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .ttl_ms = 5000);
    struct hf_lock *lock = NULL;
    r->result = hf_lock(r->locks, "x", &wait, &lock, NULL);
    r->granted_us = boot_us();
    if (lock)
        (void)!hf_unlock(lock, NULL);
    return NULL;
}

/* ---- a separate process; runs first, while there is one thread ---- */

#define LOST_TOO_SOON 12

/* The child holds a lock that is renewed, and reads the clock in a loop; a gap means that it was
 * stopped.  The first thing it does then is to ask whether the lock is held. */
static int hold_until_stopped(int ready_fd)
{
    struct hf_locks *locks;
    struct hf_lock *lock;
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 400);
    if (hf_open("memory:", NULL, &locks, NULL) != HF_DONE ||
        hf_lock(locks, "x", &options, &lock, NULL) != HF_DONE || write(ready_fd, "x", 1) != 1)
        return 10;
    for (int64_t last = boot_us(), now, end = last + 20000000; last < end; last = now) {
        bool held = hf_lock_held(lock);
        now = boot_us();
        if (now - last > 500000)
            /* If it asked before the gap it asks again. */
            return !held || !hf_lock_held(lock) ? 0 : 11;
        if (!held)
            return LOST_TOO_SOON;
    }
    return 13;
}

/* Returns the exit status of the child, which was stopped for longer than its TTL. */
static int stop_a_holder(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = process_fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process behind */
        _exit(hold_until_stopped(ready[1]));
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    nap_ms(600); /* longer than the TTL: it is being renewed */
    assert_int_equal(kill(child, SIGSTOP), 0);
    nap_ms(700);
    assert_int_equal(kill(child, SIGCONT), 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    close(ready[0]);
    close(ready[1]);
    return WEXITSTATUS(status);
}

static void a_process_that_was_stopped_too_long_knows_at_once(void **state)
{
    (void)state;
    int exit_status = LOST_TOO_SOON; /* a busy machine may keep it from renewing */
    for (int i = 0; i < 20 && exit_status == LOST_TOO_SOON; i++)
        exit_status = stop_a_holder();
    assert_int_equal(exit_status, 0);
}

/* ---- renewed ---- */

TIMELY_CLAIM(a_lock_is_kept_past_its_ttl)
{
    struct hf_locks *locks = faulty_open(1000);
    struct loss_notice notice = {0};
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = 400, .on_loss = on_loss, .ctx = &notice);
    struct hf_lock *lock, *other;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    int64_t first = hf_lock_deadline_ms(lock), begun = boot_ms();
    while (boot_ms() - begun < 1500) {
        JUDGE(hf_lock_held(lock));
        JUDGE(hf_lock(locks, "x", NULL, &other, NULL) == HF_TAKEN);
        nap_ms(20);
    }
    JUDGE(hf_lock_deadline_ms(lock) > first + 900);
    JUDGE(atomic_load(&notice.times) == 0);
    JUDGE(!is_readable(hf_lock_fd(lock)));
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    JUDGE(stats.renewals >= 6 && stats.renewals <= 14); /* every third of the TTL */
    JUDGE(hf_unlock(lock, NULL) == HF_DONE);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(many_locks_are_renewed_together)
{
    enum { N = 300 };
    struct hf_locks *locks = faulty_open(1000);
    struct hf_lock *lock[N];
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 1500);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        options.ttl_ms = 1500 + i % 7 * 50;
        assert_int_equal(hf_lock(locks, name, &options, &lock[i], NULL), HF_DONE);
    }
    for (int i = 0; i < N; i += 3) { /* out of the middle of the heap */
        JUDGE(hf_unlock(lock[i], NULL) == HF_DONE);
        lock[i] = NULL;
    }
    nap_ms(2500);
    for (int i = 0; i < N; i++)
        if (lock[i]) {
            JUDGE(hf_lock_held(lock[i]));
            JUDGE(hf_unlock(lock[i], NULL) == HF_DONE);
        }
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_short_absence_of_the_back_end_costs_nothing)
{
    struct hf_locks *locks = faulty_open(1000);
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 1000);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    atomic_store(&faults.renew_away, 3); /* 20 + 40 + 80 ms of the two thirds that are left */
    nap_ms(1500);
    JUDGE(hf_lock_held(lock));
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    JUDGE(stats.renewal_failures == 3);
    JUDGE(stats.lost == 0);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(manual_locks_are_renewed_by_hand_only)
{
    struct hf_locks *locks = faulty_open(1000);
    struct loss_notice notice = {0};
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = 400, .manual = true, .on_loss = on_loss, .ctx = &notice);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    for (int i = 0; i < 4; i++) {
        int64_t before = hf_lock_deadline_ms(lock);
        nap_ms(150);
        JUDGE(hf_renew(lock, NULL) == HF_DONE);
        assert_true(hf_lock_deadline_ms(lock) >= before + 149);
    }
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    assert_int_equal(stats.renewals, 4);
    assert_true(becomes(has_come, &notice));
    assert_int_equal(hf_renew(lock, NULL), HF_LOST); /* the notice is final */
    (void)!hf_unlock(lock, NULL);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

/* As with a back end whose session has its own TTL. */
TIMELY_CLAIM(a_lease_shorter_than_asked_for_is_renewed_in_time_and_not_on_and_on)
{
    struct hf_locks *locks = faulty_open(1000);
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 60000);
    struct hf_lock *lock;
    atomic_store(&faults.most_ms, 1500);
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    nap_ms(2000);
    JUDGE(hf_lock_held(lock));
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    JUDGE(stats.renewals >= 1 &&
          stats.renewals <= 8); /* every 300 ms: a third of 1500 but for 1 % of 60000 */
    JUDGE(hf_unlock(lock, NULL) == HF_DONE);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

/* ---- lost ---- */

static struct {
    struct hf_lock_options options;
    void (*spoil)(void); /* may be NULL */
    int64_t ahead_us;    /* how long before the rival's grant the notice came */
} way;

/* Loses a lock of 400 ms that way while a rival waits.  Returns false if the machine was too slow
 * to judge. */
static bool lose_it(void *ctx)
{
    (void)ctx;
    struct hf_lock_options options = way.options;
    struct hf_locks *locks = faulty_open(1000);
    struct loss_notice notice = {0};
    struct rival rival = {.locks = locks};
    struct hf_lock *lock;
    options.ttl_ms = 400;
    options.on_loss = on_loss;
    options.ctx = &notice;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    int fd = hf_lock_fd(lock);
    JUDGE(!is_readable(fd));
    if (way.spoil)
        way.spoil();
    assert_int_equal(pthread_create(&rival.thread, NULL, wait_for_it, &rival), 0);
    pthread_join(rival.thread, NULL);
    assert_int_equal(rival.result, HF_DONE);
    /* Every notice has come by the time the rival has it. */
    int64_t at_us = atomic_load(&notice.at_us);
    JUDGE(at_us != 0);
    assert_int_equal(atomic_load(&notice.times), 1);
    assert_false(atomic_load(&notice.held));
    assert_true(is_readable(fd));
    assert_false(hf_lock_held(lock));
    JUDGE(at_us / 1000 <= atomic_load(&notice.deadline_ms) + 10); /* the machine is shared */
    JUDGE(at_us < rival.granted_us);
    assert_int_equal(hf_unlock(lock, NULL), HF_LOST);
    way.ahead_us = rival.granted_us - at_us;
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

static void spoil_away(void) { atomic_store(&faults.renew_away, -1); }
static void spoil_slow(void)
{
    atomic_store(&faults.slow_ms, 900); /* far beyond the deadline */
    atomic_store(&faults.renew_slow, -1);
    atomic_store(&faults.renew_away, -1);
}

static void the_notice_comes_before_another_holder_can_get_it(void **state)
{
    (void)state;
    const struct {
        const char *what;
        struct hf_lock_options options;
        void (*spoil)(void);
    } ways[] = {
        {"never renewed", HF_LOCK_OPTIONS(.manual = true), NULL},
        {"renewals refused", HF_LOCK_OPTIONS(.ttl_ms = 0), spoil_away},
        {"renewals not answered", HF_LOCK_OPTIONS(.ttl_ms = 0), spoil_slow},
        {"renewed no longer", HF_LOCK_OPTIONS(.max_hold_ms = 500), NULL},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int64_t least = INT64_MAX;
        for (int round = 0; round < 2; round++) {
            way.options = ways[i].options;
            way.spoil = ways[i].spoil;
            timely(lose_it, NULL);
            least = way.ahead_us < least ? way.ahead_us : least;
        }
        print_message("%s: the notice came %.1f ms before the next grant, or more\n", ways[i].what,
                      (double)least / 1000);
    }
}

TIMELY_CLAIM(renewals_stop_at_the_cap)
{
    struct hf_locks *locks = faulty_open(1000);
    struct loss_notice notice = {0};
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = 300, .max_hold_ms = 700, .on_loss = on_loss, .ctx = &notice);
    struct hf_lock *lock;
    struct hf_fault fault;
    int64_t begun = boot_ms();
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    assert_true(becomes(has_come, &notice));
    int64_t lived = atomic_load(&notice.at_us) / 1000 - begun;
    JUDGE(lived >= 700 && lived <= 700 + 300); /* past the cap, no later than one lease */
    assert_int_equal(hf_renew(lock, &fault), HF_LOST);
    (void)!hf_unlock(lock, NULL);

    options.manual = true;
    options.max_hold_ms = 100;
    options.ttl_ms = 2000;
    assert_int_equal(hf_lock(locks, "y", &options, &lock, NULL), HF_DONE);
    JUDGE(hf_renew(lock, &fault) == HF_DONE);
    nap_ms(120);
    JUDGE(hf_renew(lock, &fault) == HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "max_hold_ms"));
    JUDGE(hf_unlock(lock, NULL) == HF_DONE);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

TIMELY_CLAIM(a_broken_lock_is_noticed_at_the_next_renewal)
{
    struct hf_locks *locks = faulty_open(1000);
    struct loss_notice notice = {0};
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = 900, .on_loss = on_loss, .ctx = &notice);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    int64_t begun = boot_ms();
    assert_int_equal(hf_break(locks, "x", NULL), HF_DONE);
    assert_true(becomes(has_come, &notice));
    int64_t noticed_ms = atomic_load(&notice.at_us) / 1000 - begun;
    JUDGE(noticed_ms >= 250 && noticed_ms <= 700);
    assert_true(
        is_readable(hf_lock_fd(lock))); /* created after the loss, and readable all the same */
    assert_int_equal(hf_unlock(lock, NULL), HF_LOST);
    hf_close(locks);
    return true;
too_slow:
    hf_close(locks);
    return false;
}

/* ---- callbacks and hf_unlock ---- */

static void unlock_it(struct hf_lock *lock, void *ctx)
{
    struct loss_notice *n = ctx;
    atomic_fetch_add(&n->times, 1);
    (void)!hf_unlock(lock, NULL);
    atomic_store(&n->at_us, boot_us());
}

static void a_callback_may_unlock(void **state)
{
    (void)state;
    struct hf_locks *locks = faulty_open(1000);
    struct loss_notice notice = {0};
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = 100, .manual = true, .on_loss = unlock_it, .ctx = &notice);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    assert_true(becomes(has_come, &notice));
    assert_int_equal(holders_of(locks, "x"), 0);
    hf_close(locks);
    assert_int_equal(atomic_load(&notice.times), 1);
}

struct slow_call {
    atomic_bool begun, ended;
};
static void take_its_time(struct hf_lock *lock, void *ctx)
{
    (void)lock;
    struct slow_call *call = ctx;
    atomic_store(&call->begun, true);
    nap_ms(100);
    atomic_store(&call->ended, true);
}
static bool call_begun(void *ctx) { return atomic_load(&((struct slow_call *)ctx)->begun); }

static void unlock_waits_for_a_callback_that_runs(void **state)
{
    (void)state;
    struct hf_locks *locks = faulty_open(1000);
    struct slow_call call = {false, false};
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = 100, .manual = true, .on_loss = take_its_time, .ctx = &call);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    assert_true(becomes(call_begun, &call));
    (void)!hf_unlock(lock, NULL);
    assert_true(atomic_load(&call.ended));
    hf_close(locks);
}

/* Takes and gives back locks while others are renewed, lost, broken and inspected. */
struct mill {
    struct hf_locks *locks;
    int self;
    int64_t until_ms;
    atomic_int *notices;
};
static void count_notice(struct hf_lock *lock, void *ctx)
{
    (void)hf_lock_name(lock);
    atomic_fetch_add((atomic_int *)ctx, 1);
}
static void *churn(void *arg)
{
    struct mill *m = arg;
    for (unsigned i = 0; boot_ms() < m->until_ms; i++) {
        char name[8];
        snprintf(name, sizeof name, "m%u", (i * 7 + (unsigned)m->self) % 5);
        struct hf_lock_options options =
            HF_LOCK_OPTIONS(.ttl_ms = 100 + i % 3 * 20, .wait_ms = 200, .manual = i % 4 == 0,
                            .on_loss = count_notice, .ctx = m->notices);
        struct hf_lock *lock;
        if (i % 16 == 5)
            (void)!hf_break(m->locks, name, NULL);
        if (hf_lock(m->locks, name, &options, &lock, NULL) != HF_DONE)
            continue;
        if (i % 3 == 0)
            (void)hf_lock_fd(lock);
        if (i % 8 == 0)
            nap_ms(i % 24 ? 45 : 120);
        if (i % 5 == 0)
            (void)!hf_renew(lock, NULL);
        (void)hf_lock_held(lock);
        (void)!hf_unlock(lock, NULL);
    }
    return NULL;
}

TIMELY_CLAIM(renewal_loss_and_release_may_meet)
{
    enum { N = 8 };
    atomic_int notices = 0;
    struct hf_locks *locks = faulty_open(1000);
    struct mill mills[N];
    pthread_t threads[N];
    for (int i = 0; i < N; i++) {
        mills[i] = (struct mill){locks, i, boot_ms() + 1500, &notices};
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &mills[i]), 0);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    hf_close(locks);
    assert_true((uint64_t)atomic_load(&notices) <= stats.lost);
    JUDGE(stats.granted > 20);
    JUDGE(stats.lost > 0);
    return true;
too_slow:
    return false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_was_stopped_too_long_knows_at_once),
        cmocka_unit_test(a_lock_is_kept_past_its_ttl),
        cmocka_unit_test(many_locks_are_renewed_together),
        cmocka_unit_test(a_short_absence_of_the_back_end_costs_nothing),
        cmocka_unit_test(manual_locks_are_renewed_by_hand_only),
        cmocka_unit_test(a_lease_shorter_than_asked_for_is_renewed_in_time_and_not_on_and_on),
        cmocka_unit_test(the_notice_comes_before_another_holder_can_get_it),
        cmocka_unit_test(renewals_stop_at_the_cap),
        cmocka_unit_test(a_broken_lock_is_noticed_at_the_next_renewal),
        cmocka_unit_test(a_callback_may_unlock),
        cmocka_unit_test(unlock_waits_for_a_callback_that_runs),
        cmocka_unit_test(renewal_loss_and_release_may_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
