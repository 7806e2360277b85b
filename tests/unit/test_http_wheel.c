/* The timer wheel beside a list of deadlines that is searched from end to end, and the batches in
 * which pendings wake their waiters. */
#include "support/fixtures.h"

#include <pthread.h>
#include <string.h>

#include "base/pending.h"
#include "http/wheel.h"

#define TICK_US ((int64_t)WHEEL_TICK_US)
#define ROUND_US (TICK_US * WHEEL_SLOTS)

/* ---- the wheel ---- */

enum { TIMERS = 300, STEPS = 20000 };

/* The model: a deadline per timer, or -1.  `looked_us` is when the wheel was last asked. */
static struct model {
    struct wheel wheel;
    struct timer timers[TIMERS];
    int64_t due_us[TIMERS];
    int64_t now_us, looked_us;
    struct random random;
    size_t popped;
} model;

static int64_t below(struct model *m, int64_t limit)
{
    return (int64_t)random_below(&m->random, (uint64_t)limit);
}

static void begin(struct model *m, int64_t now_us, uint64_t seed)
{
    memset(m, 0, sizeof *m);
    m->now_us = m->looked_us = now_us;
    wheel_open(&m->wheel, now_us);
    random_init_seeded(&m->random, seed);
    for (int i = 0; i < TIMERS; i++)
        m->due_us[i] = -1;
}

static void set(struct model *m, int i, int64_t due_us)
{
    wheel_set(&m->wheel, &m->timers[i], due_us);
    m->due_us[i] = due_us;
}

static int64_t earliest(const struct model *m)
{
    int64_t first_us = -1;
    for (int i = 0; i < TIMERS; i++)
        if (m->due_us[i] >= 0 && (first_us < 0 || m->due_us[i] < first_us))
            first_us = m->due_us[i];
    return first_us;
}

/* A loop that waits until wheel_next_us is late by a tick at most. */
static void assert_looks_in_time(const struct model *m)
{
    int64_t first_us = earliest(m), next_us = wheel_next_us(&m->wheel);
    if (first_us < 0) {
        assert_int_equal(next_us, -1);
        return;
    }
    assert_true(next_us >= 0);
    int64_t from_us = first_us > m->looked_us ? first_us : m->looked_us;
    if (next_us > from_us + TICK_US)
        fail_msg("looks at %lld us for a deadline at %lld us; the last look was at %lld us",
                 (long long)next_us, (long long)first_us, (long long)m->looked_us);
}

/* Takes out what is due.  Nothing is early, and whatever has been due for a tick comes out. */
static void look(struct model *m)
{
    struct timer *t;
    while ((t = wheel_pop(&m->wheel, m->now_us))) {
        int i = (int)(t - m->timers);
        assert_true(i >= 0 && i < TIMERS);
        assert_true(m->due_us[i] >= 0 && m->due_us[i] <= m->now_us);
        m->due_us[i] = -1;
        m->popped++;
        if (below(m, 8) == 0) /* as a connection does whose deadline begins the next one */
            set(m, i, m->now_us + 1 + below(m, ROUND_US));
    }
    m->looked_us = m->now_us;
    int64_t first_us = earliest(m);
    if (first_us >= 0 && first_us + TICK_US <= m->now_us)
        fail_msg("a deadline at %lld us has not come out at %lld us", (long long)first_us,
                 (long long)m->now_us);
}

static int64_t some_deadline(struct model *m)
{
    switch (below(m, 6)) {
    case 0:
        return m->now_us + below(m, 3); /* now */
    case 1:
        return m->now_us > TICK_US ? m->now_us - below(m, TICK_US) : 0; /* in the past */
    case 2:
        return (m->now_us / TICK_US + 1 + below(m, 5)) * TICK_US; /* where a tick begins */
    case 3:
        return m->now_us + below(m, 20 * ROUND_US); /* several rounds away */
    case 4:
        return m->now_us + ROUND_US - 2 * TICK_US + below(m, 4 * TICK_US); /* one round */
    default:
        return m->now_us + below(m, 30 * 1000000);
    }
}

static void step(struct model *m)
{
    int i = (int)below(m, TIMERS);
    switch (below(m, 10)) {
    case 0:
        wheel_cancel(&m->wheel, &m->timers[i]);
        m->due_us[i] = -1;
        break;
    case 1:
        m->now_us += below(m, 3 * TICK_US);
        look(m);
        break;
    case 2: /* sleeps for as long as the wheel lets it */
        if (wheel_next_us(&m->wheel) > m->now_us && below(m, 4) == 0)
            m->now_us = wheel_next_us(&m->wheel);
        look(m);
        break;
    case 3:
        if (below(m, 50) == 0) /* the process was stopped for a while */
            m->now_us += below(m, 10 * ROUND_US);
        look(m);
        break;
    default:
        set(m, i, some_deadline(m));
    }
    assert_looks_in_time(m);
}

static void run_model(int64_t from_us, uint64_t seed)
{
    struct model *m = &model;
    begin(m, from_us, seed);
    for (size_t n = test_steps(STEPS); n > 0; n--)
        step(m);
    assert_true(m->popped > 100);
    m->now_us += 100 * ROUND_US; /* all that is left comes out, whenever it is due */
    for (int rounds = 0; earliest(m) >= 0; rounds++) {
        assert_true(rounds < 100);
        look(m);
        m->now_us += ROUND_US;
    }
    assert_int_equal(wheel_next_us(&m->wheel), -1);
}

static void a_deadline_is_never_early_and_at_most_a_tick_late(void **state)
{
    (void)state;
    uint64_t seed = test_seed(7);
    run_model(0, seed);
    run_model(1000000, seed + 1);
    run_model(INT64_C(90000000000000) + 12345, seed + 2); /* a machine that is up for years */
}

static void a_deadline_that_moves_counts_from_its_last_place(void **state)
{
    (void)state;
    struct wheel w;
    struct timer t = {0};
    wheel_open(&w, 0);
    wheel_set(&w, &t, 5 * TICK_US);
    wheel_set(&w, &t, 50 * TICK_US); /* later */
    for (int64_t now_us = 0; now_us < 50 * TICK_US; now_us += TICK_US / 2)
        assert_null(wheel_pop(&w, now_us));
    wheel_set(&w, &t, 200 * TICK_US);
    wheel_set(&w, &t, 60 * TICK_US); /* earlier */
    assert_null(wheel_pop(&w, 60 * TICK_US - 1));
    assert_ptr_equal(wheel_pop(&w, 61 * TICK_US), &t);
    assert_null(wheel_pop(&w, 61 * TICK_US));
    wheel_set(&w, &t, 70 * TICK_US); /* once more after it came out */
    assert_ptr_equal(wheel_pop(&w, 71 * TICK_US), &t);
    wheel_cancel(&w, &t);
    wheel_cancel(&w, &t);
    assert_int_equal(wheel_next_us(&w), -1);
}

static void a_deadline_beyond_a_round_goes_round_again(void **state)
{
    (void)state;
    struct wheel w;
    struct timer far = {0}, near = {0};
    wheel_open(&w, 0);
    wheel_set(&w, &far, 3 * ROUND_US + 5 * TICK_US); /* would share a slot with `near` */
    wheel_set(&w, &near, 5 * TICK_US);
    assert_ptr_equal(wheel_pop(&w, 6 * TICK_US), &near);
    assert_null(wheel_pop(&w, 6 * TICK_US));
    int64_t now_us = 6 * TICK_US;
    int looks = 0;
    struct timer *t = NULL;
    for (; !t; looks++) {
        assert_true(wheel_next_us(&w) > now_us);
        now_us = wheel_next_us(&w);
        t = wheel_pop(&w, now_us);
    }
    assert_ptr_equal(t, &far);
    assert_true(now_us >= far.due_us && now_us <= far.due_us + TICK_US);
    assert_true(looks <= 5); /* once per round, not once per tick */
}

static void a_jump_of_the_clock_brings_out_everything_that_is_due(void **state)
{
    (void)state;
    struct model *m = &model;
    const int64_t jumps_us[] = {TICK_US, ROUND_US - 1, ROUND_US, ROUND_US + 1, 1000 * ROUND_US};
    for (size_t j = 0; j < sizeof jumps_us / sizeof *jumps_us; j++) {
        begin(m, 1000000, 3 + j);
        for (int i = 0; i < TIMERS; i++)
            wheel_set(&m->wheel, &m->timers[i], m->now_us + below(m, 3 * ROUND_US));
        int64_t then_us = m->now_us + jumps_us[j];
        size_t popped = 0, due = 0;
        for (int i = 0; i < TIMERS; i++)
            due += m->timers[i].due_us + TICK_US <= then_us;
        for (struct timer *t; (t = wheel_pop(&m->wheel, then_us)); popped++)
            assert_true(t->due_us <= then_us);
        assert_true(popped >= due);
    }
}

/* ---- batches of pendings ---- */

enum { WAKERS = 200 };

static struct counted_waker {
    struct waker waker;
    int woken;
} wakers[WAKERS];

static void count(struct waker *waker) { ((struct counted_waker *)waker)->woken++; }

static void reset_wakers(void)
{
    for (int i = 0; i < WAKERS; i++)
        wakers[i] = (struct counted_waker){.waker = {.wake = count}};
}

static void without_a_batch_each_wake_up_is_at_once(void **state)
{
    (void)state;
    reset_wakers();
    pending_wake(&wakers[0].waker);
    assert_int_equal(wakers[0].woken, 1);
    pending_wake(&wakers[0].waker);
    assert_int_equal(wakers[0].woken, 2);
}

static void a_batch_wakes_each_waker_once_at_its_end(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) { /* a batch leaves nothing behind for the next one */
        reset_wakers();
        pending_batch_begin();
        for (int i = 0; i < 1000; i++)
            pending_wake(&wakers[i % 5].waker);
        for (int i = 0; i < 5; i++)
            assert_int_equal(wakers[i].woken, 0);
        pending_batch_end();
        for (int i = 0; i < WAKERS; i++)
            assert_int_equal(wakers[i].woken, i < 5);
    }
    pending_wake(&wakers[0].waker);
    assert_int_equal(wakers[0].woken, 2);
    pending_batch_begin();
    pending_batch_end();
    assert_int_equal(wakers[0].woken, 2);
}

static void a_batch_loses_no_waker_however_many_there_are(void **state)
{
    (void)state;
    reset_wakers();
    pending_batch_begin();
    for (int i = 0; i < WAKERS; i++)
        pending_wake(&wakers[i].waker);
    pending_batch_end();
    for (int i = 0; i < WAKERS; i++)
        assert_int_equal(wakers[i].woken, 1);
}

static void *wake_in_a_batch(void *arg)
{
    struct counted_waker *own = arg;
    pending_batch_begin();
    pending_wake(&own->waker);
    hf_check(own->woken == 0);
    pending_batch_end();
    return NULL;
}

static void a_batch_is_its_threads_own(void **state)
{
    (void)state;
    reset_wakers();
    pthread_t thread;
    pending_batch_begin();
    pending_wake(&wakers[0].waker);
    assert_int_equal(pthread_create(&thread, NULL, wake_in_a_batch, &wakers[1]), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(wakers[1].woken, 1);
    assert_int_equal(wakers[0].woken, 0);
    pending_batch_end();
    assert_int_equal(wakers[0].woken, 1);
    assert_int_equal(wakers[1].woken, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deadline_is_never_early_and_at_most_a_tick_late),
        cmocka_unit_test(a_deadline_that_moves_counts_from_its_last_place),
        cmocka_unit_test(a_deadline_beyond_a_round_goes_round_again),
        cmocka_unit_test(a_jump_of_the_clock_brings_out_everything_that_is_due),
        cmocka_unit_test(without_a_batch_each_wake_up_is_at_once),
        cmocka_unit_test(a_batch_wakes_each_waker_once_at_its_end),
        cmocka_unit_test(a_batch_loses_no_waker_however_many_there_are),
        cmocka_unit_test(a_batch_is_its_threads_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
