/* See sleeper.h. */
#include "lease/sleeper.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/wait.h"

/* How often a sleeper that could get no eventfd looks at the caller's wake_fd. */
#define WAKE_CHECK_US INT64_C(50000)

void sleeper_init(struct sleeper *s, int wake_fd)
{
    *s = (struct sleeper){.fd = wake_fd >= 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1};
    wait_cond_init(&s->cond);
}

void sleeper_close(struct sleeper *s)
{
    pthread_cond_destroy(&s->cond);
    if (s->fd >= 0)
        close(s->fd);
}

void sleeper_wake(struct sleeper *s)
{
    s->is_woken = true;
    if (s->fd >= 0)
        (void)eventfd_write(s->fd, 1); /* fails only if it is readable already */
    else
        pthread_cond_signal(&s->cond);
}

bool sleeper_sleep(struct sleeper *s, pthread_mutex_t *mutex, int wake_fd, int64_t us)
{
    struct pollfd files[] = {{.fd = s->fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    eventfd_t count;
    if (s->fd >= 0 && !s->is_woken) {
        pthread_mutex_unlock(mutex);
        (void)wait_files(files, 2, us);
        pthread_mutex_lock(mutex);
    }
    int64_t until_us = wait_now_us() + (wake_fd >= 0 && us > WAKE_CHECK_US ? WAKE_CHECK_US : us);
    while (s->fd < 0 && !s->is_woken && wait_cond_until(&s->cond, mutex, until_us))
        continue;
    bool is_woken = s->is_woken;
    s->is_woken = false;
    if (is_woken && s->fd >= 0)
        (void)eventfd_read(s->fd, &count);
    return is_woken;
}
