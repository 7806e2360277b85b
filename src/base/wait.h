/* Waiting: every sleep, timed wait on a condition and wait for files goes through here, so that one
 * file has to be replaced to run the program in simulated time.
 *
 * Waits are bounded by the monotonic clock of wait_now_us().  It is for the deadlines of waits on
 * real things (sockets, files, other threads) and for nothing else: what is stored, decided or
 * measured uses a struct clock, which the caller hands over. */
#ifndef HF_BASE_WAIT_H
#define HF_BASE_WAIT_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct epoll_event;

/* Microseconds on the clock that waits are counted on. */
int64_t wait_now_us(void);

/* Sleeps for this long; signals do not shorten it.  Returns at once if `us` is not positive. */
void wait_sleep_us(int64_t us);

/* Initialises a condition variable for wait_cond_until. */
void wait_cond_init(pthread_cond_t *cond);
/* As pthread_cond_timedwait: false once wait_now_us() has reached `until_us`.  May wake early. */
bool wait_cond_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us);

/* As poll(2).  A negative timeout waits without end; timeouts are rounded up to milliseconds. */
int wait_files(struct pollfd *files, nfds_t n, int64_t timeout_us);
/* As epoll_wait(2). */
int wait_epoll(int epoll_fd, struct epoll_event *ret_events, int max, int64_t timeout_us);

/* As sigtimedwait(2), but a negative timeout waits without end: the number of the signal that was
 * taken, or 0 if none came in time. */
int wait_signal(const sigset_t *signals, siginfo_t *ret_info, int64_t timeout_us);

/* Sleeps while *word is `value`, until wait_word_wake wakes one of `bits`, at most until
 * `until_us`; may wake early.  The word may lie in a file that several processes have mapped.
 * Returns false if the system cannot wait for this word. */
bool wait_word(const uint32_t *word, uint32_t value, uint32_t bits, int64_t until_us);
/* Wakes every thread, of any process, that sleeps in wait_word for one of `bits`. */
void wait_word_wake(const uint32_t *word, uint32_t bits);

/* A file descriptor that becomes readable at a moment of the boot-time clock (see clock.h), for
 * waits that a sleeping machine must not prolong.  -1 with errno if there is none to be had. */
int wait_timer_new(void);
/* `boot_us` 0 disarms the timer; a moment in the past makes it readable at once. */
void wait_timer_set(int timer_fd, int64_t boot_us);
/* Makes it unreadable until it is next due. */
void wait_timer_clear(int timer_fd);

#endif
