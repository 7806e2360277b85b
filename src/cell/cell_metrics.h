/* The metrics of the lock service.  Registered by cell_start, before its thread runs; set by the
 * cell's thread, but for answers that the cell gives by itself on any thread. */
#ifndef HF_CELL_CELL_METRICS_H
#define HF_CELL_CELL_METRICS_H

#include "base/metrics.h"
#include "cell/node.h"

enum cell_outcome {
    CELL_OUTCOME_GRANTED,
    CELL_OUTCOME_TAKEN,     /* refused at once */
    CELL_OUTCOME_TIMED_OUT, /* waited in line, and ended without a grant */
    CELL_OUTCOME_DEADLOCK,
    CELL_OUTCOME_REFUSED, /* for what was asked: the session, the mode, a limit */
    CELL_OUTCOME_ERROR,   /* for reasons of the service: no master, the journal, the queue */
    CELL_OUTCOMES
};

struct cell_metrics {
    struct counter *requests[CELL_OUTCOMES], *queued, *lost, *deadlocks, *expired;
    struct histogram *wait_seconds, *append_seconds;
    struct gauge *is_master, *epoch, *index, *lag, *sessions, *sessions_max, *held, *waiting;
    struct gauge *journal_up, *entries, *commands, *syncs;
};

void cell_metrics_register(struct cell_metrics *cm, struct metrics *m);
/* A request has been answered.  `waited_us`: since it was submitted. */
void cell_metrics_answer(const struct cell_metrics *cm, const struct cell_request *r,
                         int64_t waited_us);
/* `n_syncs`: -1 if it is not known. */
void cell_metrics_set(const struct cell_metrics *cm, const struct node_status *status,
                      int64_t n_syncs);
/* Adds what the node has counted between two looks at it. */
void cell_metrics_grow(const struct cell_metrics *cm, const struct node_counts *was,
                       const struct node_counts *is);

#endif
