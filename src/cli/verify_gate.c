/* The gate against the ledger; see verify_gate.h.  Reads both, writes neither. */
#include "cli/verify_gate.h"

#include <stdlib.h>

#include "lease/gate.h"
#include "ledger/ledger.h"

#define TIMEOUT_MS 5000
#define CHUNK 500

struct entry {
    int64_t event, hold;
    uint32_t seat;
};
struct sight {
    struct verify_report *report;
    VEC(struct entry) entries;
};

static void saw_seat(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms)
{
    (void)ttl_ms;
    *vec_push(&((struct sight *)ctx)->entries) = (struct entry){event, hold, seat};
}

/* A count is an opinion with a time limit; the ledger does not have to share it. */
static void saw_count(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available)
{
    (void)ctx, (void)event, (void)area, (void)seq, (void)available;
}

static void saw_strange(void *ctx, const char *key, size_t len)
{
    struct sight *s = ctx;
    s->report->checks[VERIFY_GATE].rows++;
    verify_violation(s->report, VERIFY_GATE, "the key %.*s says nothing readable",
                     len < 80 ? (int)len : 80, key);
}

static void judge(struct verify_report *report, const struct entry *e, const struct hold_row *row,
                  int64_t now)
{
    bool live =
        (row->status == HOLD_ACTIVE && row->expires_at > now) || row->status == HOLD_CONFIRMED;
    bool listed = false;
    for (uint32_t i = 0; i < row->n_seats; i++)
        listed |= row->seats[i] == e->seat;
    report->checks[VERIFY_GATE].rows++;
    if (!row->id.key || row->event != e->event || !listed)
        verify_violation(report, VERIFY_GATE, "seat %u of event %lld: hold %lld does not have it",
                         e->seat, (long long)e->event, (long long)e->hold);
    else if (!live)
        verify_violation(report, VERIFY_GATE, "seat %u of event %lld: hold %lld is over", e->seat,
                         (long long)e->event, (long long)e->hold);
}

static enum hf_status compare(struct ledger *l, struct sight *s, struct hf_err *err)
{
    int64_t keys[CHUNK], now = 0;
    struct hold_row rows[CHUNK];
    enum hf_status status = ledger_now(l, &now, err);
    for (size_t at = 0; status == HF_OK && at < s->entries.n; at += CHUNK) {
        size_t n = s->entries.n - at < CHUNK ? s->entries.n - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            keys[i] = s->entries.v[at + i].hold;
        status = ledger_holds_read(l, keys, n, rows, err);
        for (size_t i = 0; i < n; i++) {
            if (status == HF_OK)
                judge(s->report, &s->entries.v[at + i], &rows[i], now);
            hold_row_close(&rows[i]);
        }
    }
    return status;
}

enum hf_status verify_gate(const char *ledger_url, const char *gate_url,
                           struct verify_report *report, struct hf_err *err)
{
    struct sight s = {.report = report};
    struct gate *gate = NULL;
    struct ledger *ledger = NULL;
    struct hf_fault fault = {0};
    const struct db_options options = {.clock = &clock_system};
    const struct gate_sight sight = {&s, saw_seat, saw_count, saw_strange};
    enum hf_status status = HF_OK;
    enum hf_result result = gate_open(gate_url, &clock_system, TIMEOUT_MS, &gate, &fault);
    if (result == HF_DONE)
        result = gate_look(gate, &sight, &fault);
    if (result != HF_DONE)
        status =
            hf_err_set(err, result == HF_BAD_REQUEST ? HF_INVALID_REQUEST : HF_LEDGER_UNAVAILABLE,
                       "the gate: %.240s", fault.msg);
    if (status == HF_OK)
        status = ledger_open(ledger_url, &options, &ledger, err);
    if (status == HF_OK)
        status = compare(ledger, &s, err);
    ledger_close(ledger);
    gate_close(gate);
    vec_close(&s.entries);
    return status;
}
