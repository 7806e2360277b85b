/* See cell_metrics.h. */
#include "cell/cell_metrics.h"

#include <stdio.h>

static const char *const outcomes[CELL_OUTCOMES] = {"granted",  "taken",   "timed_out",
                                                    "deadlock", "refused", "error"};

void cell_metrics_register(struct cell_metrics *cm, struct metrics *m)
{
    for (int i = 0; i < CELL_OUTCOMES; i++) {
        char labels[64];
        (void)snprintf(labels, sizeof labels, "driver=\"cell\",result=\"%s\"", outcomes[i]);
        cm->requests[i] = metrics_counter(m, "holdfast_lock_requests_total", labels,
                                          "Requests for a lock, by outcome");
    }
    cm->wait_seconds = metrics_histogram(m, "holdfast_lock_wait_seconds", NULL,
                                         "Time from a request for a lock to its grant", 1e-6,
                                         histogram_seconds, histogram_seconds_len);
    cm->queued = metrics_counter(m, "holdfast_lock_queued_total", NULL,
                                 "Requests for a lock that had to wait in line");
    cm->lost = metrics_counter(m, "holdfast_locks_lost_total", NULL,
                               "Locks that were lost while they were held, by expiry or a break");
    cm->deadlocks = metrics_counter(m, "holdfast_lock_deadlocks_total", NULL,
                                    "Requests for a lock that would have closed a cycle");
    cm->sessions = metrics_gauge(m, "holdfast_sessions", NULL, "Sessions of the lock service");
    cm->sessions_max =
        metrics_gauge(m, "holdfast_sessions_max", NULL, "Sessions that the lock service can have");
    gauge_set(cm->sessions_max, CELL_SESSIONS_MAX);
    cm->expired = metrics_counter(m, "holdfast_sessions_expired_total", NULL,
                                  "Sessions that this server, as the master, ended");
    cm->held = metrics_gauge(m, "holdfast_locks_held", NULL, "Grants of locks");
    cm->waiting = metrics_gauge(m, "holdfast_locks_waiting", NULL, "Waiters for locks");
    cm->is_master = metrics_gauge(m, "holdfast_cell_is_master", NULL,
                                  "1 while this server is the master of its cell");
    cm->epoch = metrics_gauge(m, "holdfast_cell_epoch", NULL, "The number of the mastership");
    cm->index = metrics_gauge(m, "holdfast_cell_index", NULL,
                              "The entry of the journal that this server has applied last");
    cm->lag = metrics_gauge(m, "holdfast_cell_lag_entries", NULL,
                            "Entries of the journal that this server has yet to apply");
    cm->journal_up =
        metrics_gauge(m, "holdfast_journal_up", NULL, "1 while the journal of the cell answers");
    cm->append_seconds = metrics_histogram(m, "holdfast_journal_append_seconds", NULL,
                                           "Time of an append to the journal", 1e-6,
                                           histogram_seconds, histogram_seconds_len);
    cm->entries = metrics_measured(m, "holdfast_journal_entries_total",
                                   "Entries that this server has appended", true, 1);
    cm->commands =
        metrics_measured(m, "holdfast_journal_commands_total",
                         "Commands in the entries that this server has appended", true, 1);
    cm->syncs =
        metrics_measured(m, "holdfast_journal_syncs_total",
                         "Syncs of the journal to disk; 0 if the engine does not tell", true, 1);
}

static enum cell_outcome outcome_of(enum cell_result result)
{
    switch (result) {
    case CELL_DONE:
        return CELL_OUTCOME_GRANTED;
    case CELL_TAKEN:
        return CELL_OUTCOME_TAKEN;
    case CELL_DEADLOCK:
        return CELL_OUTCOME_DEADLOCK;
    case CELL_NO_MASTER:
    case CELL_UNAVAILABLE:
    case CELL_UNKNOWN:
    case CELL_OVERLOADED:
    case CELL_STOPPING:
        return CELL_OUTCOME_ERROR;
    default:
        return CELL_OUTCOME_REFUSED;
    }
}

void cell_metrics_answer(const struct cell_metrics *cm, const struct cell_request *r,
                         int64_t waited_us)
{
    if (r->kind != CELL_REQUEST_COMMAND || r->command.kind != CELL_ACQUIRE)
        return;
    enum cell_outcome outcome = outcome_of(r->verdict.result);
    /* The client will ask again: what it asks for is counted once, with the last answer. */
    if ((outcome == CELL_OUTCOME_GRANTED && !r->is_grant) ||
        (outcome == CELL_OUTCOME_TAKEN && r->verdict.position > 0))
        return;
    counter_add(cm->requests[outcome], 1);
    waited_us += r->earlier_us;
    if (outcome == CELL_OUTCOME_DEADLOCK)
        counter_add(cm->deadlocks, 1);
    if (outcome == CELL_OUTCOME_GRANTED)
        histogram_observe(cm->wait_seconds, waited_us > 0 ? (uint64_t)waited_us : 0);
}

void cell_metrics_grow(const struct cell_metrics *cm, const struct node_counts *was,
                       const struct node_counts *is)
{
    counter_add(cm->expired, is->n_expired - was->n_expired);
    counter_add(cm->queued, is->n_queued - was->n_queued);
    counter_add(cm->requests[CELL_OUTCOME_TIMED_OUT], is->n_timed_out - was->n_timed_out);
    counter_add(cm->lost, is->n_lost - was->n_lost);
}

void cell_metrics_set(const struct cell_metrics *cm, const struct node_status *status,
                      int64_t n_syncs)
{
    int64_t lag = status->last - status->index;
    gauge_set(cm->is_master, status->role == NODE_LEADING);
    gauge_set(cm->epoch, status->epoch);
    gauge_set(cm->index, status->index);
    gauge_set(cm->lag, lag > 0 ? lag : 0);
    gauge_set(cm->journal_up, status->journal_answers);
    gauge_set(cm->sessions, (int64_t)status->n_sessions);
    gauge_set(cm->held, (int64_t)status->n_held);
    gauge_set(cm->waiting, (int64_t)status->n_waiting);
    gauge_set(cm->entries, (int64_t)status->counts.n_entries);
    gauge_set(cm->commands, (int64_t)status->counts.n_commands);
    gauge_set(cm->syncs, n_syncs > 0 ? n_syncs : 0);
}
