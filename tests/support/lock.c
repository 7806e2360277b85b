/* See lock.h: the driver memory: with faults on command, and the small helpers. */
#include "support/fixtures.h"

#include "support/lock.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct faults faults = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void faults_none(void)
{
    atomic_int *all[] = {&faults.acquire_lost, &faults.acquire_away, &faults.acquire_slow,
                         &faults.renew_away,   &faults.renew_slow,   &faults.release_lost,
                         &faults.release_away, &faults.wait_away,    &faults.slow_ms,
                         &faults.most_ms,      &faults.n_acquire,    &faults.n_wait,
                         &faults.n_release};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        atomic_store(all[i], 0);
    atomic_store(&faults.lost_then_away, false);
    pthread_mutex_lock(&faults.mutex);
    faults.released[0] = '\0';
    pthread_mutex_unlock(&faults.mutex);
}

static bool goes_wrong(atomic_int *times)
{
    int left = atomic_load(times);
    while (left > 0 && !atomic_compare_exchange_weak(times, &left, left - 1))
        ;
    return left != 0;
}

/* As a session's TTL does. */
static void shorten(struct lease_verdict *verdicts, size_t n)
{
    int most_ms = atomic_load(&faults.most_ms);
    for (size_t i = 0; i < n; i++)
        if (most_ms && verdicts[i].remaining_ms > most_ms)
            verdicts[i].remaining_ms = most_ms;
}

static const struct lease_driver *memory(void) { return lease_driver_for("memory:"); }

static enum hf_result faulty_open_(const char *url, const struct lease_options *options,
                                   struct lease **ret, struct hf_fault *fault)
{
    return memory()->open(url, options, ret, fault); /* lease_open makes it the faulty driver's */
}

static void faulty_close(struct lease *l) { memory()->close(l); }

static enum hf_result faulty_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    return memory()->clone(l, ret, fault);
}

static enum hf_result faulty_acquire(struct lease *l, const struct lease_request *request,
                                     struct lease_verdict *verdict, struct hf_fault *fault)
{
    atomic_fetch_add(&faults.n_acquire, 1);
    if (goes_wrong(&faults.acquire_away))
        return fault_set(fault, HF_UNREACHABLE, "told to be away");
    enum hf_result r = memory()->acquire(l, request, verdict, fault);
    shorten(verdict, 1);
    if (goes_wrong(&faults.acquire_slow))
        nap_ms(atomic_load(&faults.slow_ms));
    if (goes_wrong(&faults.acquire_lost)) {
        if (atomic_exchange(&faults.lost_then_away, false))
            atomic_store(&faults.acquire_away, -1);
        memset(verdict, 0xee, sizeof *verdict);
        return fault_set(fault, HF_UNKNOWN, "told to lose the answer");
    }
    return r;
}

static enum hf_result faulty_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                   struct lease_verdict *verdicts, struct hf_fault *fault)
{
    if (goes_wrong(&faults.renew_slow))
        nap_ms(atomic_load(&faults.slow_ms));
    if (goes_wrong(&faults.renew_away))
        return fault_set(fault, HF_UNREACHABLE, "told to be away");
    enum hf_result r = memory()->renew(l, requests, n, verdicts, fault);
    shorten(verdicts, n);
    return r;
}

static enum hf_result faulty_release(struct lease *l, const struct lease_request *requests,
                                     size_t n, struct lease_verdict *verdicts,
                                     struct hf_fault *fault)
{
    atomic_fetch_add(&faults.n_release, 1);
    if (goes_wrong(&faults.release_away))
        return fault_set(fault, HF_UNREACHABLE, "told to be away");
    pthread_mutex_lock(&faults.mutex);
    size_t at = 0;
    for (size_t i = 0; i < n && at + requests[i].key_len + 2 < sizeof faults.released; i++)
        at += (size_t)snprintf(faults.released + at, sizeof faults.released - at, "%s ",
                               requests[i].key);
    pthread_mutex_unlock(&faults.mutex);
    enum hf_result r = memory()->release(l, requests, n, verdicts, fault);
    if (goes_wrong(&faults.release_lost)) {
        memset(verdicts, 0xee, n * sizeof *verdicts);
        return fault_set(fault, HF_UNKNOWN, "told to lose the answer");
    }
    return r;
}

static enum hf_result faulty_wait(struct lease *l, const struct lease_request *request,
                                  int64_t timeout_ms, struct hf_fault *fault)
{
    atomic_fetch_add(&faults.n_wait, 1);
    if (goes_wrong(&faults.wait_away))
        return fault_set(fault, HF_UNREACHABLE, "told to be away");
    return memory()->wait(l, request, timeout_ms, fault);
}

static enum hf_result faulty_inspect(struct lease *l, const char *key, size_t key_len,
                                     struct lease_state *ret, struct hf_fault *fault)
{
    return memory()->inspect(l, key, key_len, ret, fault);
}

static enum hf_result faulty_list(struct lease *l, const char *prefix, size_t prefix_len,
                                  lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    return memory()->list(l, prefix, prefix_len, each, ctx, fault);
}

static enum hf_result faulty_break(struct lease *l, const char *key, size_t key_len,
                                   struct hf_fault *fault)
{
    return memory()->break_(l, key, key_len, fault);
}

static const char *const no_schemes[] = {NULL};

const struct lease_driver faulty_memory = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "faulty",
             .url = "memory:",
             .fence = HF_FENCE_COUNTER,
             .fair = true,
             .ttl_min_ms = 100,
             .ttl_max_ms = 600000,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "",
             .survives = ""},
    .schemes = no_schemes,
    .open = faulty_open_,
    .close = faulty_close,
    .clone = faulty_clone,
    .acquire = faulty_acquire,
    .renew = faulty_renew,
    .release = faulty_release,
    .wait = faulty_wait,
    .inspect = faulty_inspect,
    .list = faulty_list,
    .break_ = faulty_break,
};

struct hf_locks *faulty_open(int64_t timeout_ms)
{
    struct hf_locks *locks = NULL;
    struct hf_options options = HF_OPTIONS(.timeout_ms = timeout_ms);
    faults_none();
    assert_int_equal(locks_open(&faulty_memory, "memory:", &options, &locks, NULL), HF_DONE);
    return locks;
}

int64_t boot_ms(void) { return clock_boot_us(&clock_system) / 1000; }

void nap_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

bool becomes(bool (*is)(void *ctx), void *ctx)
{
    for (int64_t until = boot_ms() + 30000; !is(ctx); nap_ms(2))
        if (boot_ms() >= until)
            return false;
    return true;
}

static size_t count_of(struct hf_locks *locks, const char *name, bool waiters)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    assert_int_equal(hf_inspect(locks, name, &state, NULL), HF_DONE);
    size_t n = waiters ? state.n_waiters : state.n_holders;
    hf_lock_state_close(&state);
    return n;
}

size_t holders_of(struct hf_locks *locks, const char *name) { return count_of(locks, name, false); }
size_t waiters_of(struct hf_locks *locks, const char *name) { return count_of(locks, name, true); }

/* ---- claims about moments ---- */

#define WATCH_MS 5
#define WATCHED_CPUS_MAX 16

/* One thread for each processor, since one processor may stand still while others go on. */
static struct cpu_watch {
    pthread_t thread;
    size_t cpu;
    _Atomic int64_t longest_ms, last_ms; /* when the thread last ran */
} watches[WATCHED_CPUS_MAX];

static struct {
    size_t n; /* of watches */
    atomic_size_t n_running;
    atomic_bool stop;
} pauses;

static void *watch_pauses(void *arg)
{
    struct cpu_watch *w = arg;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(w->cpu, &own);
    (void)pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    atomic_fetch_add(&pauses.n_running, 1);
    while (!atomic_load(&pauses.stop)) {
        int64_t pause_ms = boot_ms() - atomic_load(&w->last_ms) - WATCH_MS;
        if (pause_ms > atomic_load(&w->longest_ms))
            atomic_store(&w->longest_ms, pause_ms);
        atomic_store(&w->last_ms, boot_ms());
        nap_ms(WATCH_MS);
    }
    return NULL;
}

int64_t longest_pause_ms(void)
{
    int64_t longest_ms = 0;
    for (size_t i = 0; i < pauses.n; i++) {
        int64_t now_ms = boot_ms() - atomic_load(&watches[i].last_ms) - WATCH_MS;
        int64_t known_ms = atomic_load(&watches[i].longest_ms);
        longest_ms = known_ms > longest_ms ? known_ms : longest_ms;
        longest_ms = now_ms > longest_ms ? now_ms : longest_ms;
    }
    return longest_ms;
}

#define TRIES 20
#define TRIES_MS 30000

/* The watch of a claim that failed still runs when the next claim begins. */
static void pauses_end(void)
{
    atomic_store(&pauses.stop, true);
    for (; pauses.n > 0; pauses.n--)
        pthread_join(watches[pauses.n - 1].thread, NULL);
}

static void pauses_begin(void)
{
    cpu_set_t cpus;
    pauses_end();
    atomic_store(&pauses.stop, false);
    atomic_store(&pauses.n_running, 0);
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && pauses.n < WATCHED_CPUS_MAX; cpu++) {
        struct cpu_watch *w = &watches[pauses.n];
        if (!CPU_ISSET(cpu, &cpus))
            continue;
        w->cpu = cpu;
        atomic_store(&w->longest_ms, 0);
        atomic_store(&w->last_ms, boot_ms());
        assert_int_equal(pthread_create(&w->thread, NULL, watch_pauses, w), 0);
        pauses.n++;
    }
    /* Until they have begun, they allocate memory, and a claim may fork: a child would wait for ever
     * for the allocator's lock, since the sanitizer's does not care for forks. */
    while (atomic_load(&pauses.n_running) < pauses.n)
        nap_ms(1);
}

int64_t soonest_ms(int64_t (*work)(void), int tries, int64_t enough_ms)
{
    int64_t best_ms = INT64_MAX;
    for (int i = 0; i < tries && best_ms >= enough_ms; i++) {
        int64_t took_ms = work();
        best_ms = took_ms < best_ms ? took_ms : best_ms;
    }
    return best_ms;
}

void timely(bool (*once)(void *ctx), void *ctx)
{
    int64_t from_ms = boot_ms();
    int n = 0, n_undisturbed = 0;
    for (; n < TRIES && boot_ms() - from_ms < TRIES_MS; n++) {
        pauses_begin();
        bool is_judged = once(ctx);
        n_undisturbed += longest_pause_ms() < PAUSE_MS;
        pauses_end();
        if (is_judged)
            return;
    }
    print_message("not in %d tries, of which nothing disturbed %d\n", n, n_undisturbed);
    if (2 * n_undisturbed >= n || getenv("HF_TIMES"))
        fail();
    skip();
}
