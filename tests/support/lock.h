/* What the tests of the lock library share: a driver that hands everything to memory: but can be
 * told to lose answers, to be away, or to be slow; threads; a clock.  Include after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_LOCK_H
#define HF_TESTS_SUPPORT_LOCK_H

#include <stdatomic.h>

#include "lock/locks.h"

/* How often each goes wrong from now on; -1: always.  Zeroed: all is well. */
struct faults {
    atomic_int acquire_lost; /* done, but the answer is HF_UNKNOWN */
    atomic_int acquire_away; /* not done: HF_UNREACHABLE */
    atomic_int acquire_slow; /* the answer comes after slow_ms */
    atomic_int renew_away;
    atomic_int renew_slow;
    atomic_int release_lost;
    atomic_int release_away;
    atomic_int wait_away;
    atomic_bool lost_then_away; /* after a lost answer nobody is there any more */
    atomic_int slow_ms;
    atomic_int most_ms; /* of a lease, whatever was asked for; 0: no limit */
    /* what has been seen */
    atomic_int n_acquire, n_wait, n_release;
    pthread_mutex_t mutex;
    char released[256]; /* the names of the last exchange, with a space after each */
};
extern struct faults faults; /* of all drivers of this kind */
extern const struct lease_driver faulty_memory;
void faults_none(void);
/* memory: through it, with a short timeout. */
struct hf_locks *faulty_open(int64_t timeout_ms);

int64_t boot_ms(void);
void nap_ms(int64_t ms);
/* Returns the least that `work` returns in `tries` calls, and stops at one below `enough_ms`: a busy
 * machine only makes it more. */
int64_t soonest_ms(int64_t (*work)(void), int tries, int64_t enough_ms);
/* Up to 30 s. */
bool becomes(bool (*is)(void *ctx), void *ctx);
size_t holders_of(struct hf_locks *locks, const char *name);
size_t waiters_of(struct hf_locks *locks, const char *name);

/* ---- claims about moments ---- */

/* Threads of their own, one for each processor, note how long anything kept this process from running
 * there since `timely` began: other programs, a virtual machine that stood still. */
int64_t longest_pause_ms(void);
/* Runs a claim beside that thread until it returns true: in time.  If that does not happen in
 * twenty tries, or within half a minute, the claim fails, unless something kept the process from
 * running in most of these tries: then the machine is too busy to judge it, and it is shown as
 * skipped. With HF_TIMES=1, as in `make soak`, it fails in any case. */
void timely(bool (*once)(void *ctx), void *ctx);
/* Defines the claim `name` by a function that returns false if the machine was too slow to judge,
 * and is tried again then. */
#define TIMELY_CLAIM(name)                                                                         \
    static bool name##_of(void);                                                                   \
    static bool name##_once(void *ctx)                                                             \
    {                                                                                              \
        (void)ctx;                                                                                 \
        return name##_of();                                                                        \
    }                                                                                              \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        timely(name##_once, NULL);                                                                 \
    }                                                                                              \
    static bool name##_of(void)
/* For conditions that hold only if threads run when their time has come: goes to `too_slow` if one
 * does not hold and the process has been kept from running for a while. */
#define PAUSE_MS 20
#define JUDGE(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            if (longest_pause_ms() >= PAUSE_MS)                                                    \
                goto too_slow;                                                                     \
            fail_msg("%s, and nothing kept the process from running", #condition);                 \
        }                                                                                          \
    } while (0)

#endif
