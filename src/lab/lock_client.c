/* See lock_client.h.  Every thread writes its own page only.  on_loss runs on a thread of the
 * library; it writes one time, which nothing else writes. */
#include "lab/lock_client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "base/wait.h"
#include "holdfast.h"
#include "lab/lock_board.h"

#define LOOK_EVERY_US 2000
#define SAMPLES_MAX 500000 /* of LOCK_SPEED; further pairs are counted and not sampled */
#define VISIT_US 20000     /* between two visits */
#define ARRIVAL_US 5000000 /* how long to look for a new waiter in the queue */
#define ARRIVAL_LOOK_US 500

static struct hf_cancel *cancel; /* lasts as long as the process: a signal may come at any time */
static atomic_bool is_stopped, is_released;

/* The lab's signals, which all other threads have blocked, so that no handler interrupts them. */
static void *take_signals(void *arg)
{
    for (int signal_number; sigwait(arg, &signal_number) == 0;) {
        is_released = true;
        if (signal_number == LOCK_CLIENT_RELEASE)
            continue;
        is_stopped = true;
        hf_cancel_trigger(cancel);
    }
    return NULL;
}

static int64_t now_us(void) { return clock_boot_us(&clock_system); }

static void fail(struct board_page *page, const struct hf_fault *fault)
{
    snprintf(page->failure, sizeof page->failure, "%s", fault->msg);
    page->state = LOCK_FAILED;
}

/* ---- LOCK_SPEED ---- */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile_us(const int64_t *sorted, size_t n, double q)
{
    return n ? (double)sorted[(size_t)(q * (double)(n - 1))] : 0;
}

static void measure_speed(struct hf_locks *locks, struct board_page *page)
{
    const struct lock_task *task = &page->task;
    const struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = task->ttl_ms);
    struct hf_fault fault = {0};
    VEC(int64_t) samples = {0};
    struct lock_speed speed = {0};
    int64_t begin = now_us(), end = begin + (int64_t)(1e6 * task->seconds);
    for (int64_t before = begin, after; before < end && !is_stopped; before = after) {
        struct hf_lock *lock;
        if (hf_lock(locks, task->name, &options, &lock, &fault) != HF_DONE ||
            hf_unlock(lock, &fault) != HF_DONE) {
            fail(page, &fault);
            break;
        }
        after = now_us();
        speed.n++;
        if (samples.n < SAMPLES_MAX)
            *vec_push(&samples) = after - before;
    }
    speed.seconds = (double)(now_us() - begin) / 1e6;
    if (samples.n)
        qsort(samples.v, samples.n, sizeof *samples.v, by_size);
    speed.p50_us = quantile_us(samples.v, samples.n, 0.5);
    speed.p99_us = quantile_us(samples.v, samples.n, 0.99);
    page->speed = speed;
    vec_close(&samples);
}

/* ---- LOCK_LOOP, LOCK_KEEP ---- */

static void on_loss(struct hf_lock *lock, void *ctx)
{
    struct lock_grant *grant = ctx;
    (void)lock;
    grant->lost_us = now_us();
}

/* Holds until the lock is lost, `until_us` has come or, with `keeps`, a signal has. */
static void hold(struct hf_lock *lock, struct lock_grant *grant, int64_t until_us, bool keeps)
{
    struct pollfd loss = {.fd = hf_lock_fd(lock), .events = POLLIN};
    for (;;) {
        grant->deadline_us = 1000 * hf_lock_deadline_ms(lock);
        int64_t left_us = until_us - now_us();
        if (keeps ? is_released : left_us <= 0)
            return;
        bool is_short = !keeps && left_us < LOOK_EVERY_US;
        if (wait_files(&loss, 1, is_short ? left_us : LOOK_EVERY_US) > 0)
            return;
    }
}

/* Takes the lock once.  Returns false if the client is to end. */
static bool take(struct hf_locks *locks, struct board_page *page, bool keeps)
{
    const struct lock_task *task = &page->task;
    struct lock_grant *grant = &page->grants[page->n_grants];
    struct hf_lock_options options =
        HF_LOCK_OPTIONS(.ttl_ms = task->ttl_ms, .cancel = cancel, .on_loss = on_loss, .ctx = grant);
    struct hf_lock *lock;
    struct hf_fault fault = {0};
    options.wait_ms = task->work == LOCK_VISIT ? 0 : HF_FOREVER;
    page->state = LOCK_ASKS;
    enum hf_result result = hf_lock(locks, task->name, &options, &lock, &fault);
    if (result == HF_TAKEN || result == HF_UNKNOWN || result == HF_UNREACHABLE) {
        wait_sleep_us(is_stopped ? 0 : VISIT_US);
        return !is_stopped;
    }
    if (result != HF_DONE) {
        fail(page, &fault);
        return false;
    }
    int64_t at = now_us();
    grant->fence = hf_lock_fence(lock);
    grant->deadline_us = 1000 * hf_lock_deadline_ms(lock);
    grant->granted_us = at;
    page->n_grants++;
    page->state = LOCK_HOLDS;
    if (keeps || task->hold_ms > 0)
        hold(lock, grant, at + 1000 * task->hold_ms, keeps);
    grant->deadline_us = 1000 * hf_lock_deadline_ms(lock);
    grant->released_us = now_us();
    (void)!hf_unlock(lock, &fault); /* on_loss has told if it was lost */
    page->is_full = page->n_grants == LOCK_GRANTS_MAX;
    return !is_stopped && !page->is_full;
}

struct lock_worker {
    struct hf_locks *locks;
    struct board_page *page;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct lock_worker *w = arg;
    enum lock_work kind = w->page->task.work;
    if (kind == LOCK_SPEED)
        measure_speed(w->locks, w->page);
    else if (take(w->locks, w->page, kind == LOCK_KEEP))
        while (take(w->locks, w->page, false))
            ;
    return NULL;
}

/* ---- the process ---- */

static struct lock_board *map_board(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *at =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof(struct lock_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* Called before any other thread is started; the new thread lasts as long as the process. */
static void catch_signals(void)
{
    static sigset_t signals;
    pthread_t thread;
    sigemptyset(&signals);
    sigaddset(&signals, LOCK_CLIENT_RELEASE);
    sigaddset(&signals, LOCK_CLIENT_STOP);
    hf_check(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    hf_check(pthread_create(&thread, NULL, take_signals, &signals) == 0);
    hf_check(pthread_detach(thread) == 0);
}

static size_t count_waiters(struct hf_locks *locks, const char *name)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    size_t n = hf_inspect(locks, name, &state, NULL) == HF_DONE ? state.n_waiters : 0;
    hf_lock_state_close(&state);
    return n;
}

/* Threads of one process cannot be started by the lab one after the other, so they are here: the
 * next one starts when this one holds the lock, or is one of `waiters` in the queue. */
static void await_arrival(const struct lock_worker *w, size_t waiters)
{
    const struct board_page *page = w->page;
    for (int64_t until_us = now_us() + ARRIVAL_US; now_us() < until_us && !is_stopped;) {
        if (waiters == 0 ? page->state == LOCK_HOLDS
                         : count_waiters(w->locks, page->task.name) >= waiters)
            return;
        wait_sleep_us(ARRIVAL_LOOK_US);
    }
}

int lock_client_main(const char *board_path, size_t first, size_t n)
{
    struct lock_board *board = map_board(board_path);
    struct lock_worker workers[LOCK_CLIENTS_MAX];
    struct hf_fault fault = {0};
    struct hf_locks *locks;
    if (!board || n < 1 || n > LOCK_CLIENTS_MAX || first > LOCK_CLIENTS_MAX - n)
        return EXIT_FAILURE;
    cancel = hf_cancel_new();
    catch_signals();
    struct board_page *page = &board->pages[first];
    if (hf_open(page->task.url, NULL, &locks, &fault) != HF_DONE) {
        fail(page, &fault);
    } else {
        for (size_t i = 0; i < n; i++) {
            workers[i] = (struct lock_worker){.locks = locks, .page = &board->pages[first + i]};
            hf_check(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
            if (i + 1 < n)
                await_arrival(&workers[i], i);
        }
        for (size_t i = 0; i < n; i++)
            pthread_join(workers[i].thread, NULL);
        hf_close(locks);
    }
    bool failed = page->state == LOCK_FAILED;
    (void)munmap(board, sizeof *board);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
