/* A batch on its way through gate and ledger.  On its worker's thread. */
#ifndef HF_ENGINE_BATCH_H
#define HF_ENGINE_BATCH_H

#include "engine/worker.h"

/* Walks `n` commands through the ledger and answers them; expires holds that are due. */
void batch_run(struct worker *w, struct command **commands, size_t n);

#endif
