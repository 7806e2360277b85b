/* See locks.h: how fast a lock is taken, and handed over from one client to the next.  Main
 * thread. */
#include <stdio.h>

#include "base/wait.h"
#include "lab/locks_stage.h"

#define TTL_MS 5000
#define START_MS_MAX 20000
#define STOP_MS_MAX 5000
/* How long to look for a new waiter in the queue. */
#define QUEUED_MS_MAX 5000
#define UNQUEUED_MS_MAX 60 /* of a driver that has no queue */
#define LOOK_EVERY_US 2000
#define TURN_MS 10

static struct lock_task task_of(const char *url, const char *name, enum lock_work work)
{
    struct lock_task task = {.work = work, .ttl_ms = TTL_MS};
    (void)snprintf(task.url, sizeof task.url, "%s", url);
    (void)snprintf(task.name, sizeof task.name, "%s", name);
    return task;
}

static void measure_pairs(struct locks_stage *s)
{
    struct locks_speed *speed = &s->row->speed;
    struct lock_task task = task_of(s->coordinator.url, "alone", LOCK_SPEED);
    struct hf_err err = {0};
    locks_say(s, "one client alone");
    task.seconds = s->settings->seconds;
    size_t client = crowd_start(&s->crowd, &task, 1);
    if (crowd_await_end(&s->crowd, client, START_MS_MAX + (int64_t)(1000 * task.seconds), &err)) {
        const struct lock_speed *got = &s->crowd.board->pages[client].speed;
        speed->n = got->n;
        speed->per_second = got->seconds > 0 ? (double)got->n / got->seconds : 0;
        speed->p50_us = got->p50_us;
        speed->p99_us = got->p99_us;
    } else {
        locks_why(speed->why, "failed: %s", err.msg);
    }
    crowd_clear(&s->crowd);
}

/* ---- a crowd ---- */

/* Waits until the queue has as many waiters as clients have asked, so that they come one after
 * another. */
static void await_queue(struct hf_locks *locks, const char *name, size_t waiters, int64_t limit_ms)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    bool seen = false;
    int64_t until_us = wait_now_us() + limit_ms * 1000;
    while (!seen && wait_now_us() < until_us) {
        if (hf_inspect(locks, name, &state, NULL) != HF_DONE)
            return;
        seen = state.n_waiters >= waiters;
        hf_lock_state_close(&state);
        state = (struct hf_lock_state)HF_LOCK_STATE_INIT;
        if (!seen)
            wait_sleep_us(LOOK_EVERY_US);
    }
}

/* Starts the clients one after another; the first has the lock until all others wait for it. */
static bool gather(struct locks_stage *s, const struct lock_task *first, size_t n,
                   struct hf_err *err)
{
    struct lock_task other = *first;
    struct hf_locks *locks = NULL;
    struct hf_fault fault = {0};
    bool threads = !s->row->info->processes;
    (void)crowd_start(&s->crowd, first, threads ? n : 1);
    bool good = crowd_await(&s->crowd, 0, LOCK_HOLDS, START_MS_MAX, err);
    other.work = LOCK_LOOP;
    if (good && !threads && hf_open(s->coordinator.url, NULL, &locks, &fault) != HF_DONE) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", fault.msg);
        good = false;
    }
    for (size_t i = 1; good && i < n && !locks_is_stopped(s); i++) {
        if (!threads)
            (void)crowd_start(&s->crowd, &other, 1);
        good = crowd_await(&s->crowd, i, LOCK_ASKS, START_MS_MAX, err);
        if (good && locks)
            await_queue(locks, first->name, i,
                        s->row->info->fair ? QUEUED_MS_MAX : UNQUEUED_MS_MAX);
    }
    hf_close(locks);
    return good;
}

static uint64_t count_grants(const struct lock_crowd *crowd)
{
    uint64_t n = 0;
    for (size_t i = 0; i < crowd->n; i++)
        n += crowd->board->pages[i].n_grants;
    return n;
}

/* What a crowd did in its time. */
struct bustle {
    uint64_t n;
    struct relay_count before, after;
    struct history history;
};

static bool run_crowd(struct locks_stage *s, const char *url, const char *name, size_t n,
                      struct bustle *ret, struct hf_err *err)
{
    struct lock_task task = task_of(url, name, LOCK_KEEP);
    bool good = gather(s, &task, n, err);
    if (good) {
        ret->before = coordinator_count(&s->coordinator);
        crowd_release(&s->crowd, 0);
        uint64_t before = count_grants(&s->crowd);
        int64_t ms = (int64_t)(1000 * s->settings->seconds);
        for (int64_t at = 0; at < ms && crowd_has_room(&s->crowd); at += TURN_MS)
            if (!locks_sleep_ms(s, TURN_MS))
                break;
        ret->n = count_grants(&s->crowd) - before;
        ret->after = coordinator_count(&s->coordinator);
        int64_t end_us = crowd_now_us();
        crowd_stop(&s->crowd, STOP_MS_MAX);
        crowd_history(&s->crowd, 0, n, &ret->history);
        /* What came after the end was disturbed by clients that left. */
        while (ret->history.grants.n &&
               ret->history.grants.v[ret->history.grants.n - 1].start_us > end_us)
            ret->history.grants.n--;
    }
    crowd_clear(&s->crowd);
    return good;
}

static void measure_crowd(struct locks_stage *s, int waiters, struct locks_crowd *ret)
{
    struct bustle bustle = {0};
    struct history_times times = {0};
    struct hf_err err = {0};
    char what[64], name[32];
    (void)snprintf(what, sizeof what, "hand-over, %d clients", waiters);
    (void)snprintf(name, sizeof name, "crowd-%d", waiters);
    locks_say(s, what);
    ret->waiters = waiters;
    if (!run_crowd(s, s->coordinator.url, name, (size_t)waiters, &bustle, &err)) {
        locks_why(ret->why, "failed: %s", err.msg);
        return;
    }
    history_hand_overs(&bustle.history, 1, &times);
    ret->n = times.us.n;
    ret->p50_us = history_quantile(&times, 0.5);
    ret->p99_us = history_quantile(&times, 0.99);
    ret->overlaps = history_overlaps(&bustle.history);
    ret->fences_fell = history_fences_fell(&bustle.history);
    history_order(&bustle.history, &ret->pairs, &ret->in_order);
    history_times_close(&times);
    history_close(&bustle.history);
}

static void measure_traffic(struct locks_stage *s, int waiters)
{
    struct locks_traffic *ret = &s->row->traffic;
    struct bustle bustle = {0};
    struct hf_err err = {0};
    ret->waiters = waiters;
    if (s->coordinator.n_nodes == 0) {
        locks_why(ret->why, "not applicable: there is no server");
        return;
    }
    locks_say(s, "messages");
    if (!run_crowd(s, s->coordinator.relayed_url, "traffic", (size_t)waiters, &bustle, &err)) {
        locks_why(ret->why, "failed: %s", err.msg);
        return;
    }
    ret->n = bustle.n;
    if (bustle.n) {
        ret->messages = (double)(bustle.after.messages - bustle.before.messages) / (double)bustle.n;
        ret->bytes = (double)(bustle.after.bytes - bustle.before.bytes) / (double)bustle.n;
    } else {
        locks_why(ret->why, "no hand-over in %g s", s->settings->seconds);
    }
    history_close(&bustle.history);
}

void locks_measure_speed(struct locks_stage *s)
{
    measure_pairs(s);
    for (int i = 0; i < LOCKS_CROWDS && !locks_is_stopped(s); i++)
        measure_crowd(s, s->settings->waiters[i], &s->row->crowds[i]);
    if (!locks_is_stopped(s))
        measure_traffic(s, s->settings->waiters[1]);
}
