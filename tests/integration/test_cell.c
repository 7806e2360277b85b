/* Claims about the thread of the lock service (cell/cell.h), on a real journal in SQLite: requests
 * of many threads, a full queue, clients that go away, the end under load, a restart. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "support/cell_client.h"

#define URL "http://127.0.0.1:1"
#define TTL_MS 60000
#define WAIT_MS 60000

static struct temp_dir dir;
static struct metrics *metrics;
static struct cell *cell;

static enum hf_status start(size_t queue_max, struct hf_err *err)
{
    const struct cell_config config = {.journal_url = dir.url,
                                       .clock = &clock_system,
                                       .url = URL,
                                       .timeout_ms = 2000,
                                       .queue_max = queue_max,
                                       .metrics = metrics};
    return cell_start(&config, &cell, err);
}

static int open_cell(void **state)
{
    struct hf_err err = {0};
    (void)state;
    temp_dir_make(&dir);
    metrics = metrics_new();
    return start(0, &err) != HF_OK;
}

static int close_cell(void **state)
{
    (void)state;
    cell_stop(cell);
    cell = NULL;
    metrics_free(metrics);
    temp_dir_remove(&dir);
    return 0;
}

static void restart(size_t queue_max)
{
    struct hf_err err = {0};
    cell_stop(cell);
    metrics_free(metrics);
    metrics = metrics_new();
    assert_int_equal(start(queue_max, &err), HF_OK);
}

static struct id new_session(const char *label)
{
    struct id session;
    assert_int_equal(cell_do_open(cell, TTL_MS, label, &session), CELL_DONE);
    assert_true(session.key > 0);
    return session;
}

static double metric(const char *name, const char *labels)
{
    const struct metric *m = metrics_find(metrics, name, labels, NULL);
    assert_non_null(m);
    return metric_value(m);
}

static uint64_t histogram_count(const char *name)
{
    const struct metric *m = metrics_find(metrics, name, NULL, NULL);
    assert_non_null(m);
    const struct histogram *h = metric_histogram(m);
    uint64_t n = 0;
    for (int i = 0; i <= h->n_bounds; i++)
        n += histogram_bucket(h, i);
    return n;
}

/* ---- one client ---- */

static void the_only_server_leads_when_it_has_started(void **state)
{
    (void)state;
    char url[CELL_URL_MAX + 1], why[256];
    assert_null(cell_redirect(cell, url));
    assert_true(cell_ready(cell, why, sizeof why));
    assert_true(metric("holdfast_cell_is_master", NULL) == 1);
    assert_true(metric("holdfast_journal_up", NULL) == 1);
}

static void a_lock_is_granted_once_released_and_granted_again(void **state)
{
    (void)state;
    struct id a = new_session("a"), b = new_session("b");
    int64_t first, again, second;
    assert_int_equal(cell_do_acquire(cell, &a, 1, "door", 0, &first), CELL_DONE);
    assert_int_equal(cell_do_acquire(cell, &b, 1, "door", 0, NULL), CELL_TAKEN);
    assert_int_equal(cell_do_acquire(cell, &a, 1, "door", 0, &again), CELL_DONE);
    assert_int_equal(again, first);
    assert_int_equal(cell_do_release(cell, &a, 1, "door"), CELL_DONE);
    assert_int_equal(cell_do_acquire(cell, &b, 1, "door", 0, &second), CELL_DONE);
    assert_true(second > first);
    assert_int_equal(cell_do_keepalive(cell, &a), CELL_DONE);
    assert_int_equal(cell_do_close(cell, &b), CELL_DONE);
    assert_int_equal(cell_do_keepalive(cell, &b), CELL_NO_SESSION);
}

static void a_restart_keeps_sessions_and_grants(void **state)
{
    (void)state;
    struct id a = new_session("a"), b = new_session("b");
    int64_t before, after, next;
    assert_int_equal(cell_do_acquire(cell, &a, 1, "door", 0, &before), CELL_DONE);
    restart(0);
    assert_int_equal(cell_do_acquire(cell, &b, 1, "door", 0, NULL), CELL_TAKEN);
    assert_int_equal(cell_do_acquire(cell, &a, 1, "door", 0, &after), CELL_DONE);
    assert_int_equal(after, before);
    assert_int_equal(cell_do_release(cell, &a, 1, "door"), CELL_DONE);
    assert_int_equal(cell_do_acquire(cell, &b, 1, "door", 0, &next), CELL_DONE);
    assert_true(next > before);
}

static void what_happens_is_counted(void **state)
{
    (void)state;
    struct id a = new_session("a"), b = new_session("b");
    assert_int_equal(cell_do_acquire(cell, &a, 1, "x", 0, NULL), CELL_DONE);
    assert_int_equal(cell_do_acquire(cell, &b, 1, "y", 0, NULL), CELL_DONE);
    assert_int_equal(cell_do_acquire(cell, &b, 2, "x", 0, NULL), CELL_TAKEN);
    assert_int_equal(cell_do_acquire(cell, &b, 1, "y", 0, NULL), CELL_DONE); /* once more */
    assert_int_equal(cell_do_release(cell, &a, 7, "x"), CELL_LOST);
    assert_int_equal(cell_do_acquire(cell, &b, 4, "x", 1, NULL), CELL_TAKEN); /* it waits */
    assert_int_equal(cell_do_release(cell, &b, 4, "x"), CELL_DONE);           /* and gives up */
    struct cell_call waiter, closes;
    cell_call_acquire(&waiter, &a, 2, "y", WAIT_MS);
    waiter.r.claims = true;
    waiter.r.claim_ms = NODE_CLAIM_MS;
    cell_call_begin(cell, &waiter);
    cell_call_acquire(&closes, &b, 3, "x", WAIT_MS);
    cell_call_begin(cell, &closes); /* after the other, so it is the one that closes the cycle */
    cell_call_wait(&closes);
    assert_int_equal(closes.r.verdict.result, CELL_DEADLOCK);
    assert_int_equal(closes.r.verdict.people.n, 2);
    assert_int_equal(cell_do_close(cell, &b), CELL_DONE);
    cell_call_wait(&waiter);
    assert_int_equal(waiter.r.verdict.result, CELL_DONE);
    assert_true(waiter.r.is_unclaimed);
    cell_call_close(&waiter);
    cell_call_close(&closes);
    /* The grant counts when it is claimed, or, if that comes late, when it is granted again. */
    assert_int_equal(cell_do_acquire(cell, &a, 2, "y", WAIT_MS, NULL), CELL_DONE);
    const char *requests = "holdfast_lock_requests_total";
    assert_true(metric(requests, "result=\"granted\"") == 3);
    assert_true(metric(requests, "result=\"taken\"") == 1);
    assert_true(metric(requests, "result=\"deadlock\"") == 1);
    assert_int_equal(histogram_count("holdfast_lock_wait_seconds"), 3);
    assert_true(metric("holdfast_lock_deadlocks_total", NULL) == 1);
    /* What the thread sets follows the answer, one by one. */
    int64_t until_us = wait_now_us() + 60000000;
    while (metric("holdfast_sessions", NULL) != 1 || metric("holdfast_locks_held", NULL) != 2 ||
           metric("holdfast_locks_waiting", NULL) != 0 ||
           metric(requests, "result=\"timed_out\"") != 1 ||
           metric("holdfast_lock_queued_total", NULL) != 2 ||
           metric("holdfast_locks_lost_total", NULL) != 0 ||
           metric("holdfast_journal_commands_total", NULL) < 9 ||
           metric("holdfast_journal_syncs_total", NULL) <
               metric("holdfast_journal_entries_total", NULL)) {
        assert_true(wait_now_us() < until_us);
        wait_sleep_us(1000);
    }
    assert_true(metric("holdfast_cell_epoch", NULL) == 1);
    assert_true(metric("holdfast_cell_lag_entries", NULL) == 0);
    assert_true(metric("holdfast_journal_entries_total", NULL) >= 5);
}

/* ---- starting ---- */

static void a_second_server_of_the_same_file_does_not_start(void **state)
{
    (void)state;
    struct cell *first = cell;
    struct metrics *others = metrics, *own = metrics_new();
    struct hf_err err = {0};
    metrics = own;
    assert_int_not_equal(start(0, &err), HF_OK);
    assert_true(*err.msg);
    metrics = others;
    cell = first;
    metrics_free(own);
    new_session("a");
}

static void a_wrong_url_of_a_journal_does_not_start(void **state)
{
    (void)state;
    static const char *const urls[] = {"",      "sqlite:",   "mysql://x/y",
                                       "etcd:", "postgres:", "sqlite:/no/such/folder/locks.db"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct metrics *own = metrics_new();
        struct cell *c = NULL;
        struct hf_err err = {0};
        const struct cell_config config = {.journal_url = urls[i],
                                           .clock = &clock_system,
                                           .url = URL,
                                           .timeout_ms = 2000,
                                           .metrics = own};
        if (cell_start(&config, &c, &err) == HF_OK)
            fail_msg("'%s' was taken", urls[i]);
        assert_true(*err.msg);
        assert_null(c);
        metrics_free(own);
    }
}

/* ---- many threads ---- */

enum { THREADS = 8, ROUNDS = 150, NAMES = 3, DEPARTURES = 80 };

struct contest {
    atomic_int holders[NAMES];
    int64_t last_fence[NAMES]; /* of the last holder, which alone writes it */
    atomic_int n_granted, n_overlaps, n_stale, n_other;
};

struct contestant {
    struct contest *contest;
    struct id session;
    uint64_t seed;
    atomic_bool *stop; /* NULL: after ROUNDS */
    int n_refused;     /* because the cell stops */
};

static void hold(struct contest *contest, int n, int64_t fence)
{
    if (atomic_fetch_add(&contest->holders[n], 1) != 0)
        atomic_fetch_add(&contest->n_overlaps, 1);
    if (fence <= contest->last_fence[n])
        atomic_fetch_add(&contest->n_stale, 1);
    contest->last_fence[n] = fence;
    atomic_fetch_sub(&contest->holders[n], 1);
    atomic_fetch_add(&contest->n_granted, 1);
}

/* Takes and releases locks.  An answer that does not say what happened ends it: the lock may be
 * held. */
static void *contend(void *arg)
{
    struct contestant *me = arg;
    struct contest *contest = me->contest;
    struct random random;
    random_init_seeded(&random, me->seed);
    for (int i = 0; me->stop ? !atomic_load(me->stop) : i < ROUNDS; i++) {
        int n = (int)random_below(&random, NAMES), owner = i % 60000 + 1;
        char text[16];
        int64_t fence;
        (void)snprintf(text, sizeof text, "name%d", n);
        enum cell_result result =
            cell_do_acquire(cell, &me->session, (uint16_t)owner, text, WAIT_MS, &fence);
        if (result == CELL_DONE) {
            hold(contest, n, fence);
            result = cell_do_release(cell, &me->session, (uint16_t)owner, text);
        }
        if (result == CELL_STOPPING || result == CELL_NO_MASTER || result == CELL_UNKNOWN)
            me->n_refused++;
        else if (result != CELL_DONE)
            atomic_fetch_add(&contest->n_other, 1);
        if (result == CELL_UNKNOWN)
            break;
    }
    return NULL;
}

static void begin_contest(struct contest *contest, struct contestant *all, pthread_t *threads,
                          atomic_bool *stop)
{
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct contestant){.contest = contest,
                                     .session = new_session("contestant"),
                                     .seed = test_seed(7) + (uint64_t)i,
                                     .stop = stop};
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &all[i]), 0);
    }
}

static void end_contest(const struct contest *contest, pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(contest->n_overlaps, 0);
    assert_int_equal(contest->n_stale, 0);
    assert_int_equal(contest->n_other, 0);
}

static void many_threads_never_hold_a_lock_together(void **state)
{
    (void)state;
    static struct contest contest;
    struct contestant all[THREADS];
    pthread_t threads[THREADS];
    memset(&contest, 0, sizeof contest);
    begin_contest(&contest, all, threads, NULL);
    end_contest(&contest, threads);
    assert_int_equal(contest.n_granted, THREADS * ROUNDS);
    double entries = metric("holdfast_journal_entries_total", NULL);
    print_message("%d pairs of 8 threads in %.0f entries\n", contest.n_granted, entries);
}

static void retiring_under_load_answers_everything(void **state)
{
    (void)state;
    static struct contest contest;
    struct contestant all[THREADS];
    pthread_t threads[THREADS];
    atomic_bool stop = false;
    memset(&contest, 0, sizeof contest);
    begin_contest(&contest, all, threads, &stop);
    while (atomic_load(&contest.n_granted) < 50)
        wait_sleep_us(1000);
    cell_retire(cell, 30000);
    char url[CELL_URL_MAX + 1];
    assert_string_equal(cell_redirect(cell, url), "");
    struct id session;
    assert_int_equal(cell_do_open(cell, TTL_MS, "late", &session), CELL_STOPPING);
    atomic_store(&stop, true);
    end_contest(&contest, threads);
    restart(0); /* what was granted is still there, or was given back */
    new_session("after");
}

static void stopping_answers_those_that_wait(void **state)
{
    (void)state;
    enum { WAITERS = 200 };
    static struct cell_call calls[WAITERS];
    char agents[WAITERS][16];
    struct id holder = new_session("holder"), waiter = new_session("waiter");
    assert_int_equal(cell_do_acquire(cell, &holder, 1, "door", 0, NULL), CELL_DONE);
    for (int i = 0; i < WAITERS; i++) {
        cell_call_acquire(&calls[i], &waiter, (uint16_t)(i + 1), "door", WAIT_MS);
        (void)snprintf(agents[i], sizeof agents[i], "%d", i); /* none waits for itself */
        calls[i].r.command.agent = (struct cell_text){agents[i], strlen(agents[i])};
        cell_call_begin(cell, &calls[i]);
    }
    assert_int_equal(cell_do_keepalive(cell, &waiter), CELL_DONE);
    cell_stop(cell);
    for (int i = 0; i < WAITERS; i++) {
        cell_call_wait(&calls[i]);
        enum cell_result result = calls[i].r.verdict.result;
        assert_true(result == CELL_STOPPING || result == CELL_UNKNOWN);
        cell_call_close(&calls[i]);
    }
    metrics_free(metrics);
    metrics = metrics_new();
    struct hf_err err = {0};
    assert_int_equal(start(0, &err), HF_OK);
}

/* ---- a full queue ---- */

/* Keeps the cell's thread busy until it is let go. */
struct blocker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool begun, released;
};

static void block(struct cell_request *r, const struct node *n, const struct cell_state *s)
{
    struct blocker *b = r->context;
    (void)n, (void)s;
    pthread_mutex_lock(&b->lock);
    b->begun = true;
    pthread_cond_broadcast(&b->changed);
    while (!b->released)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static void block_thread(struct blocker *b, struct cell_call *call)
{
    *b = (struct blocker){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    *call = (struct cell_call){
        .r = {.kind = CELL_REQUEST_LOOK, .stale = true, .look = block, .context = b}};
    cell_call_begin(cell, call);
    pthread_mutex_lock(&b->lock);
    while (!b->begun)
        pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static void unblock_thread(struct blocker *b, struct cell_call *call)
{
    pthread_mutex_lock(&b->lock);
    b->released = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    cell_call_wait(call);
    cell_call_close(call);
}

static void a_full_queue_refuses_all_but_keepalives(void **state)
{
    (void)state;
    enum { QUEUE = 5, EXTRA = 3, KEEPALIVES = 20 };
    restart(QUEUE);
    struct id session = new_session("a");
    struct blocker blocker;
    static struct cell_call look, calls[QUEUE + EXTRA], beats[KEEPALIVES];
    block_thread(&blocker, &look);
    for (int i = 0; i < QUEUE + EXTRA; i++) {
        cell_call_acquire(&calls[i], &session, (uint16_t)(i + 1), "door", 0);
        cell_call_begin(cell, &calls[i]);
        assert_int_equal(cell_call_is_answered(&calls[i]), i >= QUEUE);
    }
    for (int i = 0; i < KEEPALIVES; i++) {
        cell_call_keepalive(&beats[i], &session);
        cell_call_begin(cell, &beats[i]);
        assert_false(cell_call_is_answered(&beats[i]));
    }
    unblock_thread(&blocker, &look);
    for (int i = 0; i < QUEUE + EXTRA; i++) {
        cell_call_wait(&calls[i]);
        enum cell_result expected = i == 0 ? CELL_DONE : i < QUEUE ? CELL_TAKEN : CELL_OVERLOADED;
        assert_int_equal(calls[i].r.verdict.result, expected);
        cell_call_close(&calls[i]);
    }
    for (int i = 0; i < KEEPALIVES; i++) {
        cell_call_wait(&beats[i]);
        assert_int_equal(beats[i].r.verdict.result, CELL_DONE);
        assert_int_equal(beats[i].r.ttl_ms, TTL_MS);
        cell_call_close(&beats[i]);
    }
}

/* ---- clients that go away ---- */

static void a_waiter_whose_client_has_gone_is_answered_soon(void **state)
{
    (void)state;
    struct id holder = new_session("holder"), left = new_session("left"),
              next = new_session("next");
    struct cell_call waiter, after;
    assert_int_equal(cell_do_acquire(cell, &holder, 1, "door", 0, NULL), CELL_DONE);
    cell_call_acquire(&waiter, &left, 1, "door", WAIT_MS);
    cell_call_begin(cell, &waiter);
    cell_gone(cell, &waiter.r); /* perhaps before the thread has taken it */
    cell_call_wait(&waiter);
    assert_int_not_equal(waiter.r.verdict.result, CELL_DONE);
    cell_gone(cell, &waiter.r); /* harmless */
    cell_call_close(&waiter);
    /* If it has a place, the grant that it does not receive is withdrawn. */
    cell_call_acquire(&after, &next, 1, "door", WAIT_MS);
    cell_call_begin(cell, &after);
    assert_int_equal(cell_do_release(cell, &holder, 1, "door"), CELL_DONE);
    cell_call_wait(&after);
    assert_int_equal(after.r.verdict.result, CELL_DONE);
    cell_call_close(&after);
}

struct leaver {
    struct id session;
    uint64_t seed;
    int n_granted;
};

/* Asks, and goes away after a random moment: before the request is taken, while it is in an entry
 * or waits, or when it has been answered.  The request is freed as soon as it has been answered. */
static void *leave(void *arg)
{
    struct leaver *me = arg;
    struct random random;
    random_init_seeded(&random, me->seed);
    for (int i = 0; i < DEPARTURES; i++) {
        uint16_t owner = (uint16_t)(i + 1);
        struct cell_call *call = hf_alloc(sizeof *call);
        cell_call_acquire(call, &me->session, owner, "door", 20);
        cell_call_begin(cell, call);
        if (random_below(&random, 4) > 0)
            wait_sleep_us((int64_t)random_below(&random, 2000));
        if (random_below(&random, 3) > 0)
            cell_gone(cell, &call->r);
        cell_call_wait(call);
        me->n_granted += call->r.verdict.result == CELL_DONE;
        cell_call_close(call);
        free(call);
        (void)cell_do_release(cell, &me->session, owner, "door");
    }
    return NULL;
}

static void clients_may_go_at_any_moment(void **state)
{
    (void)state;
    enum { LEAVERS = 4 };
    struct leaver leavers[LEAVERS];
    pthread_t threads[LEAVERS];
    for (int i = 0; i < LEAVERS; i++) {
        leavers[i] =
            (struct leaver){.session = new_session("leaver"), .seed = test_seed(11) + (uint64_t)i};
        assert_int_equal(pthread_create(&threads[i], NULL, leave, &leavers[i]), 0);
    }
    int n_granted = 0;
    for (int i = 0; i < LEAVERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        n_granted += leavers[i].n_granted;
    }
    print_message("%d of %d were granted\n", n_granted, LEAVERS * DEPARTURES);
    assert_true(n_granted > 0);
    struct id last = new_session("last");
    assert_int_equal(cell_do_acquire(cell, &last, 1, "door", WAIT_MS, NULL), CELL_DONE);
}

#define CELL_TEST(claim) cmocka_unit_test_setup_teardown(claim, open_cell, close_cell)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CELL_TEST(the_only_server_leads_when_it_has_started),
        CELL_TEST(a_lock_is_granted_once_released_and_granted_again),
        CELL_TEST(a_restart_keeps_sessions_and_grants),
        CELL_TEST(what_happens_is_counted),
        CELL_TEST(a_second_server_of_the_same_file_does_not_start),
        CELL_TEST(a_wrong_url_of_a_journal_does_not_start),
        CELL_TEST(many_threads_never_hold_a_lock_together),
        CELL_TEST(retiring_under_load_answers_everything),
        CELL_TEST(stopping_answers_those_that_wait),
        CELL_TEST(a_full_queue_refuses_all_but_keepalives),
        CELL_TEST(a_waiter_whose_client_has_gone_is_answered_soon),
        CELL_TEST(clients_may_go_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
