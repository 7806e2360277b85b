/* A heat is one part of a race: one strategy and one number of users, all at once on a new event.
 * It returns what became of every user.  Called by the main thread; starts one thread per
 * runner. */
#ifndef HF_LAB_HEAT_H
#define HF_LAB_HEAT_H

#include "lab/race.h"

struct heat_settings {
    const struct strategy *strategy;
    const struct strategy_settings *back_ends; /* the servers and files that it sells on */
    int users, seats, retries;
    uint64_t seed;
    const volatile sig_atomic_t *stop;         /* ends the heat once it is not 0; may be NULL */
    void (*progress)(void *ctx, int answered); /* called ten times a second; may be NULL */
    void *ctx;
};

/* Fills all of `ret`, with 1 for `tries`.  HF_DRAINING if `stop` ended it. */
HF_MUST_USE enum hf_status heat_run(const struct heat_settings *settings, struct race_run *ret,
                                    struct hf_err *err);

#endif
