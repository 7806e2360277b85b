/* See wait.h.  Beside clock.c and random.c the only file that asks the system about time. */
#include "base/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

static struct timespec timespec_of_us(int64_t us)
{
    return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

int64_t wait_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void wait_sleep_us(int64_t us)
{
    if (us <= 0)
        return;
    struct timespec until = timespec_of_us(wait_now_us() + us);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

void wait_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    hf_check(pthread_cond_init(cond, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
}

bool wait_cond_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
    struct timespec until = timespec_of_us(until_us > 0 ? until_us : 0);
    return pthread_cond_timedwait(cond, mutex, &until) == 0;
}

static int timeout_ms(int64_t timeout_us)
{
    if (timeout_us < 0)
        return -1;
    int64_t ms = timeout_us / 1000 + (timeout_us % 1000 > 0);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

int wait_files(struct pollfd *files, nfds_t n, int64_t timeout_us)
{
    return poll(files, n, timeout_ms(timeout_us));
}

int wait_epoll(int epoll_fd, struct epoll_event *ret_events, int max, int64_t timeout_us)
{
    return epoll_wait(epoll_fd, ret_events, max, timeout_ms(timeout_us));
}

int wait_signal(const sigset_t *signals, siginfo_t *ret_info, int64_t timeout_us)
{
    int64_t until_us = wait_now_us() + timeout_us;
    for (;;) {
        int64_t left_us = until_us - wait_now_us();
        struct timespec left = timespec_of_us(left_us > 0 ? left_us : 0);
        int taken = timeout_us < 0 ? sigwaitinfo(signals, ret_info)
                                   : sigtimedwait(signals, ret_info, &left);
        if (taken > 0)
            return taken;
        if (errno == EAGAIN)
            return 0;
        hf_check(errno == EINTR);
    }
}

bool wait_word(const uint32_t *word, uint32_t value, uint32_t bits, int64_t until_us)
{
    struct timespec until = timespec_of_us(until_us > 0 ? until_us : 0);
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &until, NULL, bits) == 0 ||
           errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR;
}

void wait_word_wake(const uint32_t *word, uint32_t bits)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}

int wait_timer_new(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

void wait_timer_set(int timer_fd, int64_t boot_us)
{
    struct itimerspec when = {0};
    if (boot_us)
        when.it_value = timespec_of_us(boot_us > 0 ? boot_us : 1);
    hf_check(timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

void wait_timer_clear(int timer_fd)
{
    uint64_t times;
    ssize_t n = read(timer_fd, &times, sizeof times);
    (void)n; /* nothing to read: it was not due */
}
