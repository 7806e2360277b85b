/* The command that `holdfast run` and `holdfast elect` run while they hold a lock, or several.  It
 * has a process group of its own, and the terminal if this process has it.  Signals that this
 * process receives are passed on to the group.  With --on-loss term or kill, the group is ended
 * before any of the locks can be granted to another holder.
 *
 * The main thread calls everything here.  Signals are blocked before the library starts threads,
 * which inherit the mask (signals_block), and are read from a signalfd: by the main thread, or by
 * the thread of `struct interrupts` while the main thread waits for a lock. */
#ifndef HF_CLI_CHILD_H
#define HF_CLI_CHILD_H

#include <pthread.h>
#include <signal.h>

#include "cli/held.h"
#include "cli/monitor.h"

/* Signals as a file. */
struct signals {
    int fd;          /* a signalfd */
    sigset_t before; /* the mask before signals_block, which the command gets */
};
/* Blocks the signals that are handled here and opens the signalfd.  Also opens the file descriptors
 * 0, 1 and 2 if they are closed; the command finds them closed. */
bool signals_block(struct signals *s);
void signals_close(struct signals *s);
/* Returns the next signal, or 0 at once if there is none. */
int signals_next(struct signals *s, bool *ret_from_terminal);

/* While the main thread waits for a lock, a second thread reads the signals.  TERM, INT, HUP and
 * QUIT trigger `cancel`, so that the wait ends and leaves no place in the queue behind; the second
 * of them ends the process at once.  TSTP stops it. */
struct interrupts {
    struct signals *signals;
    struct hf_cancel *cancel;
    int signo; /* of the signal that triggered it; to be read after interrupts_stop */
    int stop_fd;
    pthread_t thread;
};
bool interrupts_start(struct interrupts *in, struct signals *signals);
/* Ends the thread and frees `cancel`. */
void interrupts_stop(struct interrupts *in);

struct child {
    /* Set by the caller. */
    const char *command; /* "run" or "elect", for messages */
    char **argv;
    const struct hf_lock_set *set;
    unsigned slots; /* as they were asked for */
    int64_t cap_ms; /* boot-time at which the locks are given up; INT64_MAX for never */
    struct ending ending;
    struct monitor *monitor;
    struct signals *signals;
    /* Set by child_run. */
    pid_t pid;
    int exec_errno;    /* why the command could not be executed; 0 if it could */
    int status;        /* as waitpid has it */
    bool lost;         /* a lock was lost while the command ran */
    bool asked_to_end; /* TERM, INT, HUP or QUIT was passed on */
};
/* Runs the command and waits for its end.  Returns false, with a message, if it could not even
 * fork. */
bool child_run(struct child *c);
/* 126, 127, 128+n, or the exit code of the command. */
int child_exit_code(const struct child *c);

#endif
