/* The clients of `holdfast lab locks`, seen from the lab: processes, or threads of one process,
 * with a page of the board each (lock_board.h).  They end with the lab, even after kill -9.  Main
 * thread. */
#ifndef HF_LAB_LOCK_CROWD_H
#define HF_LAB_LOCK_CROWD_H

#include <sys/types.h>

#include "lab/lock_board.h"
#include "lab/lock_history.h"

struct lock_crowd {
    struct lock_board *board;
    int board_fd;
    char board_path[40];
    const char *dir; /* for their log */
    size_t n;        /* pages in use */
    struct {
        pid_t pid;       /* of the process that serves the page; 0: it has ended */
        bool is_stopped; /* by SIGSTOP */
        int64_t died_us; /* when it was killed; 0: it was not */
    } clients[LOCK_CLIENTS_MAX];
};

HF_MUST_USE bool crowd_open(struct lock_crowd *crowd, const struct servers *home,
                            struct hf_err *err);
void crowd_close(struct lock_crowd *crowd); /* accepts a zeroed struct */
/* Removes all clients and what they wrote. */
void crowd_clear(struct lock_crowd *crowd);

/* Starts a process with `n` clients of the same task, each on a thread of its own.  Returns the
 * number of the first; the others follow. */
size_t crowd_start(struct lock_crowd *crowd, const struct lock_task *task, size_t n);
/* Waits until a client is in this state, at most for `limit_ms`.  Returns false if it is not by
 * then, or has failed; `err` then says why. */
HF_MUST_USE bool crowd_await(struct lock_crowd *crowd, size_t client, enum lock_client_state state,
                             int64_t limit_ms, struct hf_err *err);
/* Waits until the process of a client ends by itself. */
HF_MUST_USE bool crowd_await_end(struct lock_crowd *crowd, size_t client, int64_t limit_ms,
                                 struct hf_err *err);
void crowd_pause(struct lock_crowd *crowd, size_t client);
void crowd_resume(struct lock_crowd *crowd, size_t client);
void crowd_kill(struct lock_crowd *crowd, size_t client);
/* Tells a client to release the lock that it keeps. */
void crowd_release(struct lock_crowd *crowd, size_t client);
/* Tells all clients to end and waits for them, at most for `limit_ms`; then it kills them. */
void crowd_stop(struct lock_crowd *crowd, int64_t limit_ms);

/* Adds what clients `first` to `first + n - 1` have written to a history and sorts it. */
void crowd_history(const struct lock_crowd *crowd, size_t first, size_t n, struct history *ret);
/* The number of grants of a client that it got after a moment. */
uint64_t crowd_grants_since(const struct lock_crowd *crowd, size_t client, int64_t us);
/* Returns whether a client has room for more grants. */
bool crowd_has_room(const struct lock_crowd *crowd);
int64_t crowd_now_us(void);

#endif
