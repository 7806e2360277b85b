/* See sim/wait.h and base/wait.h.  No other thread can end a wait, so each lasts its full time.
 * Nothing here asks the system about time; files are not waited for. */
#include "sim/wait.h"

#include <stddef.h>
#include <sys/epoll.h>

#include "base/status.h"
#include "base/wait.h"

static struct {
    int64_t now_us;
    void (*slept)(void *ctx, int64_t us);
    void *ctx;
} sim = {.now_us = 1};

void sim_wait_on_sleep(void (*slept)(void *ctx, int64_t us), void *ctx)
{
    sim.slept = slept;
    sim.ctx = ctx;
}

int64_t wait_now_us(void) { return sim.now_us; }

void wait_sleep_us(int64_t us)
{
    if (us <= 0)
        return;
    sim.now_us += us;
    if (sim.slept)
        sim.slept(sim.ctx, us);
}

void wait_cond_init(pthread_cond_t *cond) { hf_check(pthread_cond_init(cond, NULL) == 0); }

bool wait_cond_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
    (void)cond, (void)mutex;
    wait_sleep_us(until_us - sim.now_us);
    return false;
}

int wait_files(struct pollfd *files, nfds_t n, int64_t timeout_us)
{
    (void)files, (void)n, (void)timeout_us;
    hf_check(!"files are not simulated");
    return -1;
}

int wait_epoll(int epoll_fd, struct epoll_event *ret_events, int max, int64_t timeout_us)
{
    (void)epoll_fd, (void)ret_events, (void)max, (void)timeout_us;
    hf_check(!"files are not simulated");
    return -1;
}

int wait_timer_new(void)
{
    hf_check(!"timers are not simulated");
    return -1;
}

void wait_timer_set(int timer_fd, int64_t boot_us) { (void)timer_fd, (void)boot_us; }
void wait_timer_clear(int timer_fd) { (void)timer_fd; }

bool wait_word(const uint32_t *word, uint32_t value, uint32_t bits, int64_t until_us)
{
    (void)word, (void)value, (void)bits;
    wait_sleep_us(until_us - sim.now_us);
    return true;
}

void wait_word_wake(const uint32_t *word, uint32_t bits) { (void)word, (void)bits; }
