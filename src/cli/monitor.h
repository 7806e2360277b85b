/* The monitor: a small process beside `holdfast run` that ends the command's process group when the
 * wrapper cannot: it was killed, or it is stopped while the lock's deadline comes.
 *
 * They share a page, written by the wrapper and read by the monitor, and a pipe whose end of file
 * is the wrapper's death.  The monitor is forked before the library has threads, is in a session of
 * its own (a signal to the wrapper's group does not reach it), and holds none of its files.
 * What it cannot do: outlive a signal 9 of its own, or one that ends the whole cgroup; then the
 * command's parent-death signal is what remains. */
#ifndef HF_CLI_MONITOR_H
#define HF_CLI_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum on_loss { LOSS_TERM, LOSS_KILL, LOSS_WARN };

/* When the command must be ended by, and how gently. */
struct ending {
    enum on_loss on_loss;
    int64_t grace_ms;
};
/* The last call before `deadline_ms`: late enough for the grace, early enough to die. */
int64_t ending_kill_at_ms(const struct ending *e, int64_t deadline_ms);
/* The first step of on_loss. */
int64_t ending_begin_at_ms(const struct ending *e, int64_t deadline_ms);
int64_t ending_lead_ms(const struct ending *e); /* how long before the deadline that is */
/* Send that first step to the group; stopped processes are woken to hear it. */
void ending_begin(const struct ending *e, pid_t group);

struct monitor_page;
struct monitor {
    struct monitor_page *page;
    int pipe; /* its end tells the monitor that we are gone */
    pid_t pid;
};

bool monitor_start(struct monitor *m, const struct ending *ending);
/* From now on there is a group; 0: no more. */
void monitor_set_group(struct monitor *m, pid_t group);
void monitor_set_deadline(struct monitor *m, int64_t deadline_ms);
/* The wrapper has begun to end the group itself; what is left for the monitor is the last step. */
void monitor_set_ending(struct monitor *m);
/* It had to end the group itself: we were stopped for too long. */
bool monitor_acted(const struct monitor *m);
/* Has it died?  Reaps it. */
bool monitor_gone(struct monitor *m);
/* Ends and reaps it.  Accepts one that was never started. */
void monitor_stop(struct monitor *m);

#endif
