/* One heat of a race: so many users at once, on a fresh event, and what became of it. */
#ifndef HF_LAB_HEAT_H
#define HF_LAB_HEAT_H

#include "lab/race.h"

struct heat_settings {
    const struct strategy *strategy;
    const struct strategy_settings *where;
    int users, seats;
    uint64_t seed;
    const volatile sig_atomic_t *stop;         /* may be NULL */
    void (*progress)(void *ctx, int answered); /* ten times a second */
    void *ctx;
};

/* Fills all of `ret` but `tries`. */
HF_MUST_USE enum hf_status heat_run(const struct heat_settings *settings, struct race_run *ret,
                                    struct hf_err *err);

#endif
