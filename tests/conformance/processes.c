/* Claims about many processes: with the lock no count is lost in a file that loses counts without
 * it, a holder that was killed keeps others out until its TTL ends and no longer, and a waiter that
 * hangs does not keep them out. */
#include "conformance.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"

#define PROCESSES 4
#define THREADS 16 /* 64 contenders */
#define CONTENDERS (PROCESSES * THREADS)
#define TIMES 2 /* how often each of the careless and each thread of this process counts */

struct tally {
    struct scratch dir;
    char file[256], fences[300];
};

static void tally_init(struct tally *t)
{
    scratch_make(&t->dir);
    snprintf(t->file, sizeof t->file, "%s/counter", t->dir.path);
    snprintf(t->fences, sizeof t->fences, "%s.fences", t->file);
    int fd = open(t->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static long tally_count(struct tally *t)
{
    char text[32] = {0};
    int fd = open(t->file, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return strtol(text, NULL, 10);
}

/* Returns how many fences were written; with `grow` each must be larger than the one before. */
static int tally_fences(struct tally *t, bool grow)
{
    FILE *f = fopen(t->fences, "re");
    assert_non_null(f);
    int n = 0;
    long long last = 0, fence;
    for (char line[64]; fgets(line, sizeof line, f); n++, last = fence) {
        fence = strtoll(line, NULL, 10);
        if (grow)
            assert_true(fence > last);
    }
    fclose(f);
    return n;
}

/* Each contender counts `n_times`. */
static void contend(struct world *w, const char *key, const char *how, int n_times, struct tally *t)
{
    char program[512], threads[16], times[16];
    contender_path(program);
    snprintf(threads, sizeof threads, "%d", THREADS);
    snprintf(times, sizeof times, "%d", n_times);
    const char *const argv[] = {program, w->backend->url, key, how, threads, times, t->file, NULL};
    int pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = process_start(argv, NULL);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(process_wait(pids[i]), 0);
}

static void sixty_four_contenders_lose_no_count(void **state)
{
    struct world *w = *state;
    struct tally t;
    char key[64];
    key_make(key, "counter");
    tally_init(&t);
    contend(w, key, "count", 1, &t);
    assert_int_equal(tally_count(&t), CONTENDERS);
    assert_int_equal(tally_fences(&t, w->info->fence != HF_FENCE_NONE), CONTENDERS);
    scratch_remove(&t.dir);
}

/* The twin: without the lock contenders lose counts. */
static void without_the_lock_counts_are_lost(void **state)
{
    struct world *w = *state;
    struct tally t;
    tally_init(&t);
    contend(w, "unused", "careless", TIMES, &t);
    assert_true(tally_count(&t) < CONTENDERS * TIMES);
    assert_int_equal(tally_fences(&t, false), CONTENDERS * TIMES);
    scratch_remove(&t.dir);
}

static void processes_see_each_others_locks_if_declared(void **state)
{
    struct world *w = *state;
    char key[64], program[512], line[64] = {0};
    key_make(key, "seen");
    contender_path(program);
    const char *const argv[] = {program, w->backend->url, key, "hold", "60000", NULL};
    int out, pid = process_start(argv, &out);
    assert_true(read(out, line, sizeof line - 1) > 0);
    struct party p;
    party_init(&p, key);
    assert_int_equal(acquire(w->l, &p), w->info->processes ? HF_TAKEN : HF_DONE);
    kill(pid, SIGKILL);
    assert_int_equal(process_wait(pid), -SIGKILL);
    close(out);
    struct hf_fault fault = {0};
    must(lease_break(w->l, key, strlen(key), &fault), &fault);
}

/* Asks and waits until the request is granted; returns how long that took. */
static int64_t wait_within(struct lease *l, struct party *p, int64_t most_ms)
{
    int64_t from_ms = now_ms();
    while (acquire(l, p) != HF_DONE) {
        assert_true(now_ms() - from_ms < most_ms);
        must(lease_wait(l, &p->r, 1000, &p->fault), &p->fault);
    }
    return now_ms() - from_ms;
}

/* A process takes a lock for a second, or for as short as can be. */
struct holder {
    char key[64];
    int pid, out;
    int64_t ttl_ms, fence, asked_ms;
};

static void holder_start(struct holder *h, struct world *w, const char *how)
{
    char program[512], ttl[32], line[64] = {0}, *rest;
    key_make(h->key, how);
    contender_path(program);
    h->ttl_ms = 1000 > w->info->ttl_min_ms ? 1000 : w->info->ttl_min_ms;
    snprintf(ttl, sizeof ttl, "%d", (int)h->ttl_ms);
    const char *const argv[] = {program, w->backend->url, h->key, how, ttl, NULL};
    h->pid = process_start(argv, &h->out);
    assert_true(read(h->out, line, sizeof line - 1) > 0);
    h->fence = strtoll(line, &rest, 10);
    h->asked_ms = strtoll(rest, NULL, 10);
}

static void a_killed_holder_keeps_it_until_its_ttl_and_no_longer(void **state)
{
    struct world *w = *state;
    struct holder h;
    holder_start(&h, w, "hold");
    kill(h.pid, SIGKILL);
    assert_int_equal(process_wait(h.pid), -SIGKILL);
    close(h.out);
    struct party p;
    party_queued(&p, h.key);
    wait_within(w->l, &p, h.ttl_ms + 10000);
    assert_true(now_ms() - h.asked_ms >= h.ttl_ms - 3);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(p.v.fence > h.fence);
    assert_int_equal(release(w->l, &p), HF_DONE);
}

/* It has renewed in the background, perhaps, but not while it stood still. */
static void a_holder_that_stood_still_finds_out_that_it_lost(void **state)
{
    struct world *w = *state;
    char line[16] = {0};
    struct holder h;
    holder_start(&h, w, "renew");
    kill(h.pid, SIGSTOP);
    struct party p;
    party_queued(&p, h.key);
    wait_within(w->l, &p, h.ttl_ms + 10000);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(p.v.fence > h.fence);
    kill(h.pid, SIGCONT);
    assert_true(read(h.out, line, sizeof line - 1) > 0);
    assert_string_equal(line, "lost\n");
    assert_int_equal(process_wait(h.pid), 0);
    close(h.out);
    assert_int_equal(release(w->l, &p), HF_DONE);
}

/* A waiter that stands still, or was killed, cannot tell that its turn has come, whatever the back
 * end has sent to it.  Returns for how long the next one waits after the release. */
static int64_t pass_by(struct world *w, int signal_number)
{
    char key[64], program[512];
    struct party holder, next;
    key_make(key, "hung");
    contender_path(program);
    party_init(&holder, key);
    party_queued(&next, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    const char *const argv[] = {program, w->backend->url, key, "wait", "60000", NULL};
    int pid = process_start(argv, NULL);
    for (size_t n_waiters = 0; n_waiters == 0;) {
        struct lease_state s = inspect(w->l, key);
        n_waiters = s.n_waiters;
        lease_state_close(&s);
        rest_ms(20);
    }
    rest_ms(100); /* mostly, its request waits at the back end by now */
    kill(pid, signal_number);
    assert_int_equal(acquire(w->l, &next), HF_TAKEN);
    assert_int_equal(release(w->l, &holder), HF_DONE);
    int64_t took_ms = wait_within(w->l, &next, 15000); /* far below the TTLs */
    kill(pid, SIGKILL);
    assert_int_equal(process_wait(pid), -SIGKILL);
    assert_int_equal(release(w->l, &next), HF_DONE);
    return took_ms;
}

static void a_waiter_that_hangs_passes_its_turn_on(void **state) { pass_by(*state, SIGSTOP); }

/* The claim itself takes a while, too. */
PATIENT_CLAIM(a_killed_waiter_delays_the_next_by_300_ms_at_most)
{
    return pass_by(w, SIGKILL) <= WAITER_TURN_MAX_MS + 100;
}

/* ---- many threads of one process ---- */

/* The counter is read and written separately, so that two threads at once lose a count.  It is
 * atomic, since the thread sanitizer does not see a lock that lies in another process.  An
 * assertion that fails on such a thread ends the program. */
struct adder {
    struct lease *l;
    const char *key;
    _Atomic long *number;
    _Atomic int64_t *last_fence;
    bool fences;
    pthread_t thread;
};

static void *adder_run(void *arg)
{
    struct adder *a = arg;
    for (int i = 0; i < TIMES; i++) {
        struct party p;
        party_queued(&p, a->key);
        while (acquire_again(a->l, &p) != HF_DONE)
            (void)!lease_wait(a->l, &p.r, 2000, &p.fault);
        long number = atomic_load(a->number);
        if (a->fences)
            assert_true(p.v.fence > atomic_load(a->last_fence));
        sched_yield();
        atomic_store(a->last_fence, p.v.fence);
        atomic_store(a->number, number + 1);
        assert_int_equal(release(a->l, &p), HF_DONE);
    }
    return NULL;
}

/* Returns how many times they were granted a lock. */
static long run_adders(struct world *w, void *(*run)(void *), const char *key, int n)
{
    struct adder adders[THREADS];
    _Atomic long number = 0;
    _Atomic int64_t last_fence = 0;
    for (int i = 0; i < n; i++) {
        adders[i] = (struct adder){.l = handle_clone(w->l),
                                   .key = key,
                                   .number = &number,
                                   .last_fence = &last_fence,
                                   .fences = w->info->fence != HF_FENCE_NONE};
        assert_int_equal(pthread_create(&adders[i].thread, NULL, run, &adders[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(adders[i].thread, NULL);
        lease_close(adders[i].l);
    }
    return atomic_load(&number);
}

static void threads_of_one_process_exclude_each_other(void **state)
{
    char key[64];
    key_make(key, "threads");
    assert_int_equal(run_adders(*state, adder_run, key, THREADS), THREADS * TIMES);
}

/* Threads take two of three names, and renew and give back both at once, in any order. */
#define NAMES 3
#define PAIRS 15
#define PAIR_THREADS 4
static struct {
    char key[64];
    atomic_int holders;
    _Atomic int64_t last_fence;
} names[NAMES];

static void *pairs_run(void *arg)
{
    struct adder *a = arg;
    struct random random;
    random_init_system(&random);
    for (int i = 0; i < PAIRS; i++) {
        struct party p[2];
        struct lease_request r[2];
        struct lease_verdict v[2];
        enum hf_result held[2];
        size_t n[2] = {(size_t)random_below(&random, NAMES)};
        n[1] = (n[0] + 1) % NAMES;
        for (int k = 0; k < 2; k++) {
            party_init(&p[k], names[n[k]].key);
            r[k] = p[k].r;
            held[k] = acquire_again(a->l, &p[k]) == HF_DONE ? HF_DONE : HF_LOST;
            if (held[k] != HF_DONE)
                continue;
            assert_int_equal(atomic_fetch_add(&names[n[k]].holders, 1), 0);
            if (a->fences)
                assert_true(p[k].v.fence > atomic_load(&names[n[k]].last_fence));
            atomic_store(&names[n[k]].last_fence, p[k].v.fence);
            atomic_fetch_add(a->number, 1);
        }
        must(lease_renew(a->l, r, 2, v, &p->fault), &p->fault);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(v[k].result, held[k]);
            if (held[k] == HF_DONE)
                atomic_fetch_sub(&names[n[k]].holders, 1);
        }
        must(lease_release(a->l, r, 2, v, &p->fault), &p->fault);
        for (int k = 0; k < 2; k++)
            assert_int_equal(v[k].result, held[k]);
    }
    return NULL;
}

static void pairs_of_names_in_any_order_exclude_each_other(void **state)
{
    for (int i = 0; i < NAMES; i++)
        key_make(names[i].key, "pair");
    assert_true(run_adders(*state, pairs_run, NULL, PAIR_THREADS) >= PAIRS);
}

const struct claim process_claims[] = {
    CLAIM(threads_of_one_process_exclude_each_other, 0),
    CLAIM(pairs_of_names_in_any_order_exclude_each_other, 0),
    CLAIM(sixty_four_contenders_lose_no_count, NEEDS_PROCESSES),
    CLAIM(without_the_lock_counts_are_lost, NO_DRIVER),
    CLAIM(processes_see_each_others_locks_if_declared, 0),
    CLAIM(a_killed_holder_keeps_it_until_its_ttl_and_no_longer, NEEDS_PROCESSES),
    CLAIM(a_holder_that_stood_still_finds_out_that_it_lost, NEEDS_PROCESSES),
    CLAIM(a_waiter_that_hangs_passes_its_turn_on, NEEDS_PROCESSES | NEEDS_FAIR),
    CLAIM(a_killed_waiter_delays_the_next_by_300_ms_at_most, NEEDS_PROCESSES | NEEDS_FAIR),
    {0},
};
