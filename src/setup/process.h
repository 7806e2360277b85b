/* What Prometheus calls process metrics, by their usual names, holdfast_build_info, and
 * what the log has lost. */
#ifndef HF_SETUP_PROCESS_H
#define HF_SETUP_PROCESS_H

#include "base/metrics.h"

/* Registers them; call it once, when the process starts. */
void process_metrics(struct metrics *m);

#endif
