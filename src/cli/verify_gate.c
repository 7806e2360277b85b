/* The gate compared with the ledger; see verify_gate.h.  Reads both and writes neither. */
#include "cli/verify_gate.h"

#include "base/wait.h"
#include "gate/check.h"
#include "gate/gate.h"
#include "ledger/ledger.h"

#define TIMEOUT_MS 5000
#define SECOND_SCAN_AFTER_US 500000

/* What a scan of the gate found. */
struct scan {
    struct verify_report *report; /* NULL: strange keys are not reported */
    struct gate_entries entries;
};

static void on_seat(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms)
{
    (void)ttl_ms;
    struct scan *s = ctx;
    *vec_push(&s->entries.list) = (struct gate_entry){.event = event, .hold = hold, .seat = seat};
}

/* A count was right at some moment and ends with its TTL; the ledger need not agree with it. */
static void on_count(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available)
{
    (void)ctx, (void)event, (void)area, (void)seq, (void)available;
}

static void on_strange(void *ctx, const char *key, size_t len)
{
    struct scan *s = ctx;
    if (!s->report)
        return;
    s->report->checks[VERIFY_GATE].rows++;
    verify_violation(s->report, VERIFY_GATE, "the key %.*s says nothing readable",
                     len < 80 ? (int)len : 80, key);
}

static enum hf_status scan(struct gate *gate, struct scan *s, struct hf_err *err)
{
    const struct gate_visitor visitor = {s, on_seat, on_count, on_strange, NULL};
    struct hf_fault fault = {0};
    if (gate_scan(gate, &visitor, &fault) != HF_DONE)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "the gate: %.240s", fault.msg);
    gate_entries_sort(&s->entries);
    return HF_OK;
}

/* ---- comparing entries with the ledger ---- */

struct gate_comparison {
    struct gate_entries *entries;
    size_t n_wrong; /* they are moved to the front of the list */
    int64_t now;
    struct verify_report *report; /* NULL: wrong entries are not reported */
};

static void compare_entry(void *ctx, size_t i, const struct hold_row *row)
{
    struct gate_comparison *c = ctx;
    const struct gate_entry e = c->entries->list.v[i];
    enum gate_entry_state state = gate_entry_check(&e, row, c->now);
    if (state == GATE_ENTRY_RIGHT)
        return;
    c->entries->list.v[c->n_wrong++] = e;
    if (c->report)
        verify_violation(c->report, VERIFY_GATE, "seat %u of event %lld: hold %lld %s", e.seat,
                         (long long)e.event, (long long)e.hold,
                         state == GATE_ENTRY_ENDED ? "has ended" : "does not have it");
}

/* Keeps the entries that the ledger does not confirm, and reports them to `report`, if there is
 * one. */
static enum hf_status keep_wrong(struct ledger *l, struct gate_entries *entries,
                                 struct verify_report *report, struct hf_err *err)
{
    struct gate_comparison c = {.entries = entries, .report = report};
    VEC(int64_t) holds = {0};
    for (size_t i = 0; i < entries->list.n; i++)
        *vec_push(&holds) = entries->list.v[i].hold;
    enum hf_status status = ledger_now(l, &c.now, err);
    if (status == HF_OK)
        status = ledger_holds_visit(l, holds.v, holds.n, compare_entry, &c, err);
    vec_close(&holds);
    entries->list.n = c.n_wrong;
    return status;
}

static void keep_common(struct gate_entries *entries, const struct gate_entries *other)
{
    size_t kept = 0;
    for (size_t i = 0; i < entries->list.n; i++)
        if (gate_entries_has(other, &entries->list.v[i]))
            entries->list.v[kept++] = entries->list.v[i];
    entries->list.n = kept;
}

/* An entry is wrong if two scans find it and the ledger does not confirm it; see gate/check.h. */
static enum hf_status check_entries(struct ledger *l, struct gate *gate, struct scan *first,
                                    struct verify_report *report, struct hf_err *err)
{
    struct scan second = {0};
    report->checks[VERIFY_GATE].rows += (int64_t)first->entries.list.n;
    enum hf_status status = keep_wrong(l, &first->entries, NULL, err);
    if (status != HF_OK || !first->entries.list.n)
        return status;
    wait_sleep_us(SECOND_SCAN_AFTER_US);
    status = scan(gate, &second, err);
    if (status == HF_OK) {
        keep_common(&first->entries, &second.entries);
        status = keep_wrong(l, &first->entries, report, err);
    }
    gate_entries_close(&second.entries);
    return status;
}

enum hf_status verify_gate(const char *ledger_url, const char *gate_url, const struct clock *clock,
                           struct verify_report *report, struct hf_err *err)
{
    const struct db_options options = {.clock = clock};
    struct scan first = {.report = report};
    struct gate *gate;
    struct ledger *ledger = NULL;
    struct hf_fault fault = {0};
    enum hf_result result = gate_open(gate_url, clock, TIMEOUT_MS, &gate, &fault);
    if (result != HF_DONE)
        return hf_err_set(err, result == HF_BAD_REQUEST ? HF_INVALID_REQUEST : HF_STORE_UNAVAILABLE,
                          "the gate: %.240s", fault.msg);
    enum hf_status status;
    if ((status = scan(gate, &first, err)) == HF_OK &&
        (status = ledger_open(ledger_url, &options, &ledger, err)) == HF_OK)
        status = check_entries(ledger, gate, &first, report, err);
    ledger_close(ledger);
    gate_close(gate);
    gate_entries_close(&first.entries);
    return status;
}
