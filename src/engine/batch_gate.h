/* The gate's part of a batch: what is wanted is claimed before the ledger is asked, and afterwards
 * the gate is told who has it.  The gate only ever says no, to save the ledger work: whatever it
 * says or loses, the ledger decides (see gate/gate.h).  On the worker's thread. */
#ifndef HF_ENGINE_BATCH_GATE_H
#define HF_ENGINE_BATCH_GATE_H

#include "engine/worker.h"

/* A hold's entry in the gate ends this much before the hold, so that a buyer who comes for an
 * expired seat is not refused by an entry that was set late. */
#define GATE_EARLY_MS 50

/* Before the ledger: commands that the gate refuses are answered and taken out of `commands`. */
void batch_gate_claim(struct worker *w, struct command **commands, size_t *n);
/* After the ledger, while the commands are still ours: gathers what the gate is to hear.  Returns
 * true if some seat is free again, which the gate must know before the answers are sent. */
bool batch_gate_prepare(struct worker *w, bool committed);
/* Tells the gate what was gathered, and waits until it has done it if `waits`. */
void batch_gate_settle(struct worker *w, bool waits);

/* The gate did not answer: the engine goes on without it until the reconciler finds it back. */
void engine_gate_failed(struct engine *e, const struct hf_fault *fault);

#endif
