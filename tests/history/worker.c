/* A program that takes and holds locks and writes down what it believed, for tests/history:
 *
 *   worker URL LOG SEED SECONDS TTL_MS THREADS NAMES [blind]
 *
 * Each line of LOG is one write, so that a kill loses nothing that was believed before it.  Times
 * are microseconds of CLOCK_BOOTTIME:
 *
 *   G id name fence at    the lock was granted, and hf_lock_held said so at this moment
 *   B id at               hf_lock_held still said so
 *   E id at               hf_unlock is about to be called
 *   L id at               hf_renew said before the deadline that the lock is lost
 *
 * A moment is read before hf_lock_held is called.  The answer "held" is monotone: if it is true
 * now, it was true at that moment, so [G, the last B or E] is a time in which the holder believed
 * rightly or wrongly that nobody else had the lock.
 *
 * It ends after SECONDS, or with SIGTERM, once it has released what it holds.
 *
 * With `blind` the library runs over a broken driver, which releases without looking at the owner,
 * as DEL does: the checker must find what it does. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/wait.h"
#include "lock/locks.h"

#define THREADS_MAX 16
#define BELIEF_US 2000 /* between two lines about the same lock */
#define WAIT_MS 1500

static int log_fd;
static int64_t end_us;
static int ttl_ms, n_names;
static uint64_t run_id;
static atomic_uint next_id;
static atomic_bool is_stopped;

struct worker {
    struct hf_locks *locks;
    struct random random;
    pthread_t thread;
};

static int64_t now_us(void) { return clock_boot_us(&clock_system); }

static void stop(int signal_number)
{
    (void)signal_number;
    is_stopped = true;
}

static bool is_over(void) { return is_stopped || now_us() >= end_us; }

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
    char line[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (write(log_fd, line, (size_t)len) != len)
        abort();
}

/* ---- the broken driver ---- */

static struct lease_driver blind_driver;
static const struct lease_driver *sound_driver;

/* Ends the lease of whoever has the lock, if the owner does not. */
static enum hf_result blind_release(struct lease *l, const struct lease_request *requests, size_t n,
                                    struct lease_verdict *verdicts, struct hf_fault *fault)
{
    enum hf_result r = sound_driver->release(l, requests, n, verdicts, fault);
    for (size_t i = 0; i < n && r == HF_DONE; i++)
        if (verdicts[i].result == HF_LOST)
            r = sound_driver->break_(l, requests[i].key, requests[i].key_len, fault);
    return r;
}

static const struct lease_driver *blind(const struct lease_driver *driver)
{
    sound_driver = driver;
    memcpy(&blind_driver, driver, sizeof blind_driver);
    blind_driver.release = blind_release;
    return &blind_driver;
}

/* ---- holding ---- */

static bool is_expected(enum hf_result r)
{
    return r == HF_TAKEN || r == HF_UNREACHABLE || r == HF_UNKNOWN;
}

static void renew(struct hf_lock *lock, const char *id)
{
    int64_t deadline_ms = hf_lock_deadline_ms(lock);
    enum hf_result r = hf_renew(lock, NULL);
    int64_t at_us = now_us();
    if (r == HF_LOST && at_us / 1000 < deadline_ms)
        note("L %s %" PRId64 "\n", id, at_us);
}

/* Holds the lock for a while, sometimes for several TTLs.  Over a broken driver it often holds it
 * for that long, so that others are still there when the lock is taken from them. */
static void hold(struct worker *w, struct hf_lock *lock)
{
    char id[48];
    snprintf(id, sizeof id, "%" PRIx64 ".%u", run_id, atomic_fetch_add(&next_id, 1));
    int64_t at_us = now_us();
    if (!hf_lock_held(lock))
        return;
    note("G %s %s %" PRId64 " %" PRId64 "\n", id, hf_lock_name(lock), hf_lock_fence(lock), at_us);
    bool is_short = !sound_driver && random_below(&w->random, 8);
    uint64_t longest_us = (uint64_t)ttl_ms * (is_short ? 100 : 3000);
    int64_t until_us = at_us + (int64_t)random_below(&w->random, longest_us);
    while ((at_us = now_us()) < until_us && !is_stopped) {
        if (!hf_lock_held(lock))
            return;
        note("B %s %" PRId64 "\n", id, at_us);
        wait_sleep_us(BELIEF_US);
    }
    if (random_below(&w->random, 4) == 0)
        renew(lock, id);
    at_us = now_us();
    if (hf_lock_held(lock))
        note("E %s %" PRId64 "\n", id, at_us);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    while (!is_over()) {
        struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = ttl_ms, .wait_ms = WAIT_MS);
        struct hf_lock *lock;
        struct hf_fault fault = {0};
        char name[32];
        snprintf(name, sizeof name, "name-%d", (int)random_below(&w->random, (uint64_t)n_names));
        enum hf_result r = hf_lock(w->locks, name, &want, &lock, &fault);
        if (r == HF_DONE) {
            hold(w, lock);
            (void)!hf_unlock(lock, NULL);
        } else if (!is_expected(r)) {
            fprintf(stderr, "hf_lock: %s: %s\n", hf_result_text(r), fault.msg);
            exit(1);
        } else if (r != HF_TAKEN) {
            wait_sleep_us(20000);
        }
    }
    return NULL;
}

static struct hf_locks *open_locks(const char *url, bool is_blind)
{
    struct hf_locks *locks;
    struct hf_fault fault = {0};
    const struct hf_options options = HF_OPTIONS(.timeout_ms = 1000);
    const struct lease_driver *driver = lease_driver_for(url);
    if (!driver)
        exit(64);
    if (is_blind)
        driver = blind(driver);
    for (;;) {
        enum hf_result r = locks_open(driver, url, &options, &locks, &fault);
        if (r == HF_DONE)
            return locks;
        if (r != HF_UNREACHABLE && r != HF_UNKNOWN) {
            fprintf(stderr, "hf_open: %s: %s\n", hf_result_text(r), fault.msg);
            exit(1);
        }
        if (is_over())
            exit(0);
        wait_sleep_us(50000);
    }
}

int main(int argc, char **argv)
{
    if (argc < 8)
        return 64;
    struct random random;
    struct worker workers[THREADS_MAX];
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop, .sa_flags = SA_RESTART}, NULL);
    random_init_system(&random);
    random_bytes(&random, &run_id, sizeof run_id);
    log_fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    end_us = now_us() + strtoll(argv[4], NULL, 10) * 1000000;
    ttl_ms = (int)strtol(argv[5], NULL, 10);
    n_names = (int)strtol(argv[7], NULL, 10);
    int n = (int)strtol(argv[6], NULL, 10);
    if (log_fd < 0 || ttl_ms < 1 || n_names < 1 || n < 1 || n > THREADS_MAX)
        return 64;
    struct hf_locks *locks = open_locks(argv[1], argc > 8 && strcmp(argv[8], "blind") == 0);
    for (int i = 0; i < n; i++) {
        workers[i].locks = locks;
        random_init_seeded(&workers[i].random,
                           (uint64_t)strtoull(argv[3], NULL, 10) + (unsigned)i + 1);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    hf_close(locks);
    return 0;
}
