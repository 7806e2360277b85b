/* The reconciler: the thread that compares gate, views and ledger, and finds out whether a lost
 * gate is back. */
#ifndef HF_ENGINE_RECONCILE_H
#define HF_ENGINE_RECONCILE_H

#include "base/status.h"

struct command;
struct engine;
struct worker;

HF_MUST_USE enum hf_status reconciler_start(struct engine *e, struct hf_err *err);
void reconciler_ask_to_stop(struct engine *e); /* does not wait for it */
void reconciler_stop(struct engine *e);        /* while the workers still run */
void reconciler_free(struct engine *e);
/* On the worker's thread: compares a slice of an event's seats with the ledger (CMD_COMPARE). */
void reconcile_compare(struct worker *w, struct command *c);

#endif
