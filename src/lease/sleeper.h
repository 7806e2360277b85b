/* A thread that sleeps until another one of the process wakes it, or until the wake_fd of its
 * handle is readable (lease.h).  Sleepers of drivers that wait for sockets of their own have no use
 * for it.
 *
 * It sleeps on a condition or, if there is a wake_fd, on an eventfd beside it, which costs two
 * system calls more for each sleeper.  All calls are made under the mutex that the caller's waiters
 * share; only sleeper_sleep gives it up meanwhile. */
#ifndef HF_LEASE_SLEEPER_H
#define HF_LEASE_SLEEPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct sleeper {
    pthread_cond_t cond;
    int fd; /* to sleep on instead of `cond`; -1: none */
    bool is_woken;
};

void sleeper_init(struct sleeper *s, int wake_fd);
void sleeper_close(struct sleeper *s);
void sleeper_wake(struct sleeper *s);
/* Returns true if it was woken since it was initialised or slept last; sleeps for `us` at most. */
bool sleeper_sleep(struct sleeper *s, pthread_mutex_t *mutex, int wake_fd, int64_t us);

#endif
