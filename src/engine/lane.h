/* A bounded queue of commands from many threads to one kind of thread.  Putting never blocks. */
#ifndef HF_ENGINE_LANE_H
#define HF_ENGINE_LANE_H

#include <pthread.h>

#include "engine/command.h"

struct lane {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct command *head, **tail;
    size_t len, len_max;
    int waiting; /* threads asleep in lane_take */
    bool closed;
};

void lane_init(struct lane *lane, size_t len_max);
/* Refuses further commands; lane_take empties the queue and then returns LANE_CLOSED. */
void lane_close(struct lane *lane);
void lane_destroy(struct lane *lane);

/* HF_OK, HF_OVERLOADED when full, HF_DRAINING when closed. */
HF_MUST_USE enum hf_status lane_put(struct lane *lane, struct command *command);
/* As lane_put, but beyond the bound: for commands that were accepted already and change lanes.
 * Returns false only when the lane is closed. */
HF_MUST_USE bool lane_pass(struct lane *lane, struct command *command);

#define LANE_CLOSED ((size_t)-1)
/* Takes up to `max` commands, oldest first, as soon as there is one.  Returns 0 after timeout_us,
 * LANE_CLOSED when the lane is closed and empty. */
size_t lane_take(struct lane *lane, struct command **ret, size_t max, int64_t timeout_us);
size_t lane_len(struct lane *lane);

#endif
