/* The command that `holdfast run` and `holdfast elect` run under a lock: in a process group of its
 * own, with the terminal if we have it, hearing the signals we hear, and ended before the lock can
 * be another's.
 *
 * Main thread only.  Every signal of interest is blocked from the start (child_block_signals,
 * before the library has threads, which inherit that) and read from a signalfd. */
#ifndef HF_CLI_CHILD_H
#define HF_CLI_CHILD_H

#include <pthread.h>
#include <signal.h>

#include "cli/monitor.h"
#include "holdfast.h"

struct signals {
    int fd;
    sigset_t before; /* the mask that the command gets */
};
/* Also makes sure that 0, 1 and 2 are open here (and closed again in the command if they were). */
bool signals_block(struct signals *s);
void signals_close(struct signals *s);
/* The next signal, or 0 at once if there is none; *ret_kernel whether a terminal sent it. */
int signals_next(struct signals *s, bool *ret_kernel);

/* While the main thread waits in hf_lock a thread of its own hears the signals: TERM, INT, HUP and
 * QUIT set `stop`, for hf_lock to look at, so that no place in the queue is left behind; the second
 * of them ends the process at once.  TSTP stops it. */
struct interrupts {
    struct signals *signals;
    volatile bool stop;
    int signo; /* the one that set it; to be read after interrupts_stop */
    int stop_fd;
    pthread_t thread;
};
bool interrupts_start(struct interrupts *in, struct signals *signals);
void interrupts_stop(struct interrupts *in);

struct child {
    /* set by the caller */
    const char *command; /* "run" or "elect", for messages */
    char **argv;
    struct hf_lock *lock;
    int64_t cap_ms; /* boot-time ms after which the lock is given up; INT64_MAX: none */
    struct ending ending;
    struct monitor *monitor;
    struct signals *signals;
    /* the rest is the outcome */
    pid_t pid;
    int exec_errno;    /* it could not be run */
    int status;        /* as of waitpid */
    bool lost;         /* while it ran */
    bool asked_to_end; /* TERM, INT, HUP or QUIT was passed on */
};
/* False: could not even fork; said so. */
bool child_run(struct child *c);
/* 126, 127, 128+n or the command's own. */
int child_exit_code(const struct child *c);

#endif
