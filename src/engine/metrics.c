/* Registering the engine's metrics, and counting answers; see metrics.h. */
#include "engine/metrics.h"

#include <stdio.h>

const char *const repair_names[REPAIRS] = {
    [REPAIR_VIEW] = "view",
    [REPAIR_GATE_STALE] = "gate_stale",
    [REPAIR_GATE_MISSING] = "gate_missing",
    [REPAIR_GATE_COUNT] = "gate_count",
    [REPAIR_GATE_STRANGE] = "gate_strange",
};

static void register_sizes(struct engine_metrics *em, struct metrics *m, bool shared)
{
    em->ledger_bytes = metrics_gauge(m, "holdfast_ledger_bytes", NULL, "Size of the database");
    em->keys = metrics_gauge(m, "holdfast_idempotency_keys", NULL, "Idempotency keys stored");
    em->keys_bytes = metrics_gauge(m, "holdfast_idempotency_key_bytes", NULL,
                                   "What stored keys and answers take of the database, about");
    if (shared)
        return;
    em->log_bytes =
        metrics_gauge(m, "holdfast_ledger_log_bytes", NULL, "Size of the log of SQLite (WAL)");
    em->disk_bytes =
        metrics_gauge(m, "holdfast_disk_bytes", NULL, "Size of the disk that has the database");
    em->disk_free_bytes = metrics_gauge(m, "holdfast_disk_free_bytes", NULL,
                                        "What is free of the disk that has the database");
}

static void register_waits(struct engine_metrics *em, struct metrics *m)
{
    const char *entries = "holdfast_waitlist_entries", *offers = "holdfast_waitlist_offers_total";
    const char *help = "Live entries of waiting lists in the view, by status";
    em->waits_waiting = metrics_gauge(m, entries, "status=\"waiting\"", help);
    em->waits_offered = metrics_gauge(m, entries, "status=\"offered\"", help);
    help = "Offers of waiting lists, made and by what became of them";
    em->offers_made = metrics_counter(m, offers, "result=\"made\"", help);
    em->offers_accepted = metrics_counter(m, offers, "result=\"accepted\"", help);
    em->offers_lapsed = metrics_counter(m, offers, "result=\"lapsed\"", help);
    em->offers_left = metrics_counter(m, offers, "result=\"left\"", help);
}

void engine_metrics_register(struct engine_metrics *em, struct metrics *m, bool shared)
{
    const char *name = "holdfast_hold_requests_total", *help = "Requests for a hold, by outcome";
    em->requests_view_taken = metrics_counter(m, name, "result=\"taken\",by=\"view\"", help);
    em->requests_view_sold_out = metrics_counter(m, name, "result=\"sold_out\",by=\"view\"", help);
    em->requests_gate_taken = metrics_counter(m, name, "result=\"taken\",by=\"gate\"", help);
    em->requests_gate_sold_out = metrics_counter(m, name, "result=\"sold_out\",by=\"gate\"", help);
    em->requests[RESULT_GRANTED] =
        metrics_counter(m, name, "result=\"granted\",by=\"ledger\"", help);
    em->requests[RESULT_TAKEN] = metrics_counter(m, name, "result=\"taken\",by=\"ledger\"", help);
    em->requests[RESULT_SOLD_OUT] =
        metrics_counter(m, name, "result=\"sold_out\",by=\"ledger\"", help);
    em->requests[RESULT_ERROR] = metrics_counter(m, name, "result=\"error\",by=\"ledger\"", help);
    em->hold_seconds = metrics_histogram(m, "holdfast_hold_seconds", NULL,
                                         "Time from queueing a hold to its answer", 1e-6,
                                         histogram_seconds, histogram_seconds_len);
    em->holds_active = metrics_gauge(m, "holdfast_holds_active", NULL, "Live holds in the view");
    register_waits(em, m);
    em->events_loaded = metrics_gauge(m, "holdfast_events_loaded", NULL, "Events in memory");
    em->events_bytes =
        metrics_gauge(m, "holdfast_event_memory_bytes", NULL, "About what events in memory take");
    em->events_left =
        metrics_counter(m, "holdfast_events_left_total", NULL, "Events that left memory");
    em->holds_expired =
        metrics_counter(m, "holdfast_holds_expired_total", NULL, "Holds that ran out");
    em->holds_pruned = metrics_counter(m, "holdfast_holds_pruned_total", NULL,
                                       "Finished holds deleted with their rows of the log");
    em->renewals_ok =
        metrics_counter(m, "holdfast_renewals_total", "result=\"renewed\"", "Renewals, by outcome");
    em->renewals_refused =
        metrics_counter(m, "holdfast_renewals_total", "result=\"refused\"", "Renewals, by outcome");
    em->sale_conflicts = metrics_counter(m, "holdfast_sale_conflicts_total", NULL,
                                         "Sales the unique key of sold seats refused");
    for (int i = BOOKING_PENDING; i <= BOOKING_CANCELLED; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "status=\"%s\"", status_text(AUDIT_BOOKING, i));
        em->bookings[i] =
            metrics_counter(m, "holdfast_bookings_total", label, "Bookings, by status reached");
    }
    em->batch_commands =
        metrics_histogram(m, "holdfast_batch_commands", NULL, "Commands in a batch", 1,
                          histogram_sizes, histogram_sizes_len);
    em->commit_seconds = metrics_histogram(m, "holdfast_commit_seconds", NULL, "Time of a COMMIT",
                                           1e-6, histogram_seconds, histogram_seconds_len);
    em->queue_depth = metrics_gauge(m, "holdfast_queue_depth", NULL,
                                    "Commands queued now, of the worker that has most");
    em->conflicts = metrics_counter(m, "holdfast_ledger_conflicts_total", NULL,
                                    "Batches run again because of other servers' transactions");
    em->ledger_exchanges =
        metrics_counter(m, "holdfast_ledger_exchanges_total", NULL,
                        "Exchanges of batches with the ledger; SQLite: statements");
    em->gate_exchanges = metrics_counter(m, "holdfast_gate_exchanges_total", NULL,
                                         "Exchanges of batches with the gate");
    em->gate_errors =
        metrics_counter(m, "holdfast_gate_errors_total", NULL, "Times the gate did not answer");
    for (int i = 0; i < REPAIRS; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "kind=\"%s\"", repair_names[i]);
        em->repairs[i] = metrics_counter(m, "holdfast_reconcile_repairs_total", label,
                                         "What the reconciler put right, by kind");
    }
    em->surprises = metrics_counter(m, "holdfast_ledger_surprises_total", NULL,
                                    "Times the ledger and the view disagreed; expected 0");
    register_sizes(em, m, shared);
}

void engine_metrics_waits(const struct engine_metrics *em, const struct wait_write *writes,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (writes[i].from == WAIT_WAITING && writes[i].to == WAIT_OFFERED)
            counter_add(em->offers_made, 1);
        else if (writes[i].from != WAIT_OFFERED)
            continue;
        else if (writes[i].to == WAIT_ACCEPTED)
            counter_add(em->offers_accepted, 1);
        else if (writes[i].to == WAIT_LAPSED)
            counter_add(em->offers_lapsed, 1);
        else if (writes[i].to == WAIT_LEFT)
            counter_add(em->offers_left, 1);
    }
}

static enum hold_result result_of(enum verdict verdict)
{
    return verdict_is_success(verdict)     ? RESULT_GRANTED
           : verdict == VERDICT_SEAT_TAKEN ? RESULT_TAKEN
           : verdict == VERDICT_SOLD_OUT   ? RESULT_SOLD_OUT
                                           : RESULT_ERROR;
}

static struct counter *create_counter(const struct engine_metrics *em, const struct command *c)
{
    if (!c->gate_refused)
        return em->requests[result_of(c->verdict)];
    return c->verdict == VERDICT_SEAT_TAKEN ? em->requests_gate_taken : em->requests_gate_sold_out;
}

void engine_metrics_answered(const struct engine_metrics *em, const struct command *c,
                             int64_t waited_us)
{
    if (c->key.replayed)
        return;
    switch (c->kind) {
    case CMD_HOLD_CREATE:
        counter_add(create_counter(em, c), 1);
        histogram_observe(em->hold_seconds, (uint64_t)waited_us);
        break;
    case CMD_HOLD_RENEW:
        counter_add(verdict_is_success(c->verdict) ? em->renewals_ok : em->renewals_refused, 1);
        break;
    case CMD_HOLD_CONFIRM:
        if (c->verdict == VERDICT_CREATED)
            counter_add(em->bookings[BOOKING_CONFIRMED], 1);
        else if (c->verdict == VERDICT_SEAT_SOLD)
            counter_add(em->sale_conflicts, 1);
        break;
    case CMD_BOOKING_CANCEL:
        counter_add(em->bookings[BOOKING_CANCELLED], verdict_is_success(c->verdict));
        break;
    case CMD_BOOKING_CREATE:
        if (c->verdict == VERDICT_CREATED)
            counter_add(em->bookings[c->booking_create->booking.status], 1);
        break;
    case CMD_PAYMENT_UPDATE:
        if (c->verdict == VERDICT_OK && c->update->booking_before &&
            c->update->booking.status != c->update->booking_before)
            counter_add(em->bookings[c->update->booking.status], 1);
        break;
    default:
        break;
    }
}
