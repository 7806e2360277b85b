/* The engine's metrics; docs/watch.md explains each.  Updated by any thread. */
#ifndef HF_ENGINE_METRICS_H
#define HF_ENGINE_METRICS_H

#include "base/metrics.h"
#include "engine/command.h"

enum hold_result {
    RESULT_GRANTED,
    RESULT_TAKEN,
    RESULT_SOLD_OUT,
    RESULT_ERROR,
    RESULT_COUNT,
};

/* What the reconciler repairs. */
enum repair {
    REPAIR_VIEW,
    REPAIR_GATE_STALE,
    REPAIR_GATE_MISSING,
    REPAIR_GATE_COUNT,
    REPAIR_GATE_STRANGE,
    REPAIRS
};
extern const char *const repair_names[REPAIRS];

struct engine_metrics {
    struct counter *requests_view_taken, *requests_view_sold_out; /* by="view" */
    struct counter *requests_gate_taken, *requests_gate_sold_out; /* by="gate" */
    struct counter *requests[RESULT_COUNT];                       /* by="ledger" */
    struct counter *ledger_exchanges, *gate_exchanges;            /* of batches */
    struct counter *gate_errors, *conflicts, *repairs[REPAIRS];
    struct histogram *hold_seconds, *batch_commands, *commit_seconds;
    struct gauge *holds_active;
    struct gauge *waits_waiting, *waits_offered; /* entries of waiting lists in the view */
    struct counter *offers_made, *offers_accepted, *offers_lapsed, *offers_left;
    struct gauge *events_loaded, *events_bytes;
    struct counter *events_left;
    struct gauge *queue_depth, *ledger_up, *gate_up; /* set when rendered; gate_up NULL: no gate */
    struct counter *holds_expired, *holds_pruned, *surprises, *sale_conflicts;
    struct counter *bookings[BOOKING_CANCELLED + 1]; /* by the status that they reached */
    struct counter *renewals_ok, *renewals_refused;
    struct gauge *ledger_bytes, *keys, *keys_bytes;         /* set by the keeper */
    struct gauge *log_bytes, *disk_bytes, *disk_free_bytes; /* likewise; NULL on a shared ledger */
};

/* `shared`: the ledger is on another machine, whose disk this process cannot see. */
void engine_metrics_register(struct engine_metrics *em, struct metrics *m, bool shared);
/* Counts what a commit did to entries of waiting lists. */
void engine_metrics_waits(const struct engine_metrics *em, const struct wait_write *writes,
                          size_t n);
/* Counts an answer of the worker; `waited_us` is how long the command took from queue to answer. */
void engine_metrics_answered(const struct engine_metrics *em, const struct command *c,
                             int64_t waited_us);

#endif
