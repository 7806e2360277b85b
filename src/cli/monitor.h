/* The monitor: a small process beside `holdfast run` and `holdfast elect` (the wrapper).  It ends
 * the command's process group when the wrapper cannot, because it was killed, or is stopped while
 * the lock's deadline comes.
 *
 * The two share a page of memory, which the wrapper writes and the monitor reads (but for
 * `acted`), and a pipe whose end of file tells the monitor that the wrapper has died.  The monitor
 * is forked before the library starts threads.  It is in a session of its own, so that a signal to
 * the wrapper's group does not reach it, and it keeps none of the wrapper's files open.  It cannot
 * survive SIGKILL, or the end of its whole cgroup; the command's parent-death signal is what
 * remains then. */
#ifndef HF_CLI_MONITOR_H
#define HF_CLI_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum on_loss { LOSS_TERM, LOSS_KILL, LOSS_WARN };

/* What happens to the command when its lock is lost. */
struct ending {
    enum on_loss on_loss;
    int64_t grace_ms;
};
/* When to send SIGKILL: a little before the deadline, so that the processes are gone by then. */
int64_t ending_kill_at_ms(const struct ending *e, int64_t deadline_ms);
/* When to begin with the first step of on_loss if the loss is not known before. */
int64_t ending_begin_at_ms(const struct ending *e, int64_t deadline_ms);
/* How long before the deadline that is. */
int64_t ending_lead_ms(const struct ending *e);
/* Sends the first step to the group.  Stopped processes are continued, so that they receive
 * SIGTERM. */
void ending_begin(const struct ending *e, pid_t group);

struct monitor_page;
struct monitor {
    struct monitor_page *page;
    int pipe; /* the write end; closing it tells the monitor that the wrapper is gone */
    pid_t pid;
};

bool monitor_start(struct monitor *m, const struct ending *ending);
/* Names the group to end; 0 if there is none any more. */
void monitor_set_group(struct monitor *m, pid_t group);
void monitor_set_deadline(struct monitor *m, int64_t deadline_ms);
/* Says that the wrapper has begun to end the group itself, which leaves only SIGKILL to the
 * monitor. */
void monitor_set_ending(struct monitor *m);
/* Returns whether the monitor had to act because the wrapper was stopped for too long. */
bool monitor_acted(const struct monitor *m);
/* Returns whether the monitor has died, and reaps it. */
bool monitor_gone(struct monitor *m);
/* Ends the monitor and reaps it.  Accepts one that was never started. */
void monitor_stop(struct monitor *m);

#endif
