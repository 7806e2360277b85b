/* Long work that a worker does between its batches, a slice at a time: erasing owners, and pruning
 * finished holds and archived events (ledger.h, "retention").  A slice is a transaction of a few
 * milliseconds, and there is a pause after each, so requests hardly notice.  Only the first worker
 * has chores.  On the worker's thread. */
#ifndef HF_ENGINE_CHORES_H
#define HF_ENGINE_CHORES_H

#include "engine/command.h"

struct worker;

struct chores {
    struct command *erasures; /* waiting, by `next`; the first is under way */
    struct erasure erasure;   /* of that one */
    int tries;                /* that failed, of the slice under way */
    struct prune prune;
    int64_t next_slice_us, next_look_us;
};

/* Takes a CMD_OWNER_ERASE whose key has been judged. */
void chores_add(struct worker *w, struct command *c);
/* Does the next slice if it is time for it.  A command that is done goes on with the next batch. */
void chores_turn(struct worker *w);
/* How long the worker may sleep before the next slice; INT64_MAX: there is nothing to do. */
int64_t chores_sleep_us(const struct worker *w);
/* The worker stops: whoever waits is told so.  What was erased stays erased. */
void chores_stop(struct worker *w);

#endif
