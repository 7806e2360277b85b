/* What the files of the reconciler share.  Internal to reconcile.c, the thread and the comparison
 * of views, and reconcile_gate.c, the comparison of the gate. */
#ifndef HF_ENGINE_RECONCILE_INTERNAL_H
#define HF_ENGINE_RECONCILE_INTERNAL_H

#include <pthread.h>

#include "engine/engine_internal.h"

struct reconciler {
    struct engine *engine;
    struct ledger *ledger;
    struct gate *gate; /* NULL: none */
    pthread_t thread;
    bool running;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t wake;
    bool compared; /* a worker has handed the comparison of a slice back */
    bool stopping;
};

/* Sleeps.  Returns true, at once, when the reconciler is to stop. */
bool reconciler_pause(struct reconciler *r, int64_t ms);
/* Asked before each call of the gate, which may take seconds. */
bool reconciler_is_stopping(struct reconciler *r);
/* Counts and logs `n` repairs. */
void reconciler_repaired(struct reconciler *r, enum repair kind, size_t n);

/* reconcile_gate.c: compares the gate with the ledger once, both ways.  The caller has the advisory
 * lock, so that one server at a time does this. */
void reconcile_gate(struct reconciler *r);

#endif
