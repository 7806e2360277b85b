/* The gate against the ledger; see verify_gate.h.  Reads both, writes neither. */
#include "cli/verify_gate.h"

#include <stdlib.h>
#include <time.h>

#include "gate/gate.h"
#include "ledger/ledger.h"

#define TIMEOUT_MS 5000
#define CHUNK 500
#define AGAIN_NS 500000000

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

static void saw_nothing(void *ctx, const char *key, size_t len) { (void)ctx, (void)key, (void)len; }

/* What is wrong with an entry; NULL: nothing. */
static const char *fault_of(const struct entry *e, const struct hold_row *row, int64_t now)
{
    bool live =
        (row->status == HOLD_ACTIVE && row->expires_at > now) || row->status == HOLD_CONFIRMED;
    bool listed = false;
    for (uint32_t i = 0; i < row->n_seats; i++)
        listed |= row->seats[i] == e->seat;
    if (!row->id.key || row->event != e->event || !listed)
        return "does not have it";
    return live ? NULL : "is over";
}

/* Leaves in s->entries those that the ledger does not bear out; of the last look they are told. */
static enum hf_status compare(struct ledger *l, struct sight *s, bool last, struct hf_err *err)
{
    int64_t keys[CHUNK], now = 0;
    struct hold_row rows[CHUNK];
    size_t kept = 0;
    enum hf_status status = ledger_now(l, &now, err);
    for (size_t at = 0; status == HF_OK && at < s->entries.n; at += CHUNK) {
        size_t n = s->entries.n - at < CHUNK ? s->entries.n - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            keys[i] = s->entries.v[at + i].hold;
        status = ledger_holds_read(l, keys, n, rows, err);
        for (size_t i = 0; i < n; i++) {
            const struct entry e = s->entries.v[at + i];
            const char *fault = status == HF_OK ? fault_of(&e, &rows[i], now) : NULL;
            if (fault)
                s->entries.v[kept++] = e;
            if (fault && last)
                verify_violation(s->report, VERIFY_GATE, "seat %u of event %lld: hold %lld %s",
                                 e.seat, (long long)e.event, (long long)e.hold, fault);
            hold_row_close(&rows[i]);
        }
    }
    s->entries.n = kept;
    return status;
}

static int entry_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
           : x->seat != y->seat ? (x->seat > y->seat) - (x->seat < y->seat)
                                : (x->hold > y->hold) - (x->hold < y->hold);
}

/* Servers tell the gate a moment after the ledger: only what two looks find is wrong. */
static enum hf_status compare_twice(struct ledger *l, struct gate *gate, struct sight *s,
                                    struct hf_err *err)
{
    struct sight again = {.report = s->report};
    const struct gate_sight look = {&again, saw_seat, saw_count, saw_nothing, NULL};
    struct hf_fault fault = {0};
    s->report->checks[VERIFY_GATE].rows += (int64_t)s->entries.n;
    enum hf_status status = compare(l, s, false, err);
    if (status != HF_OK || !s->entries.n)
        return status;
    nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
    if (gate_look(gate, &look, &fault) != HF_DONE)
        status = hf_err_set(err, HF_LEDGER_UNAVAILABLE, "the gate: %.240s", fault.msg);
    if (again.entries.n > 1)
        qsort(again.entries.v, again.entries.n, sizeof *again.entries.v, entry_order);
    size_t kept = 0;
    for (size_t i = 0; i < s->entries.n && again.entries.n; i++)
        if (bsearch(&s->entries.v[i], again.entries.v, again.entries.n, sizeof *again.entries.v,
                    entry_order))
            s->entries.v[kept++] = s->entries.v[i];
    s->entries.n = kept;
    vec_close(&again.entries);
    return status == HF_OK ? compare(l, s, true, err) : status;
}

enum hf_status verify_gate(const char *ledger_url, const char *gate_url,
                           struct verify_report *report, struct hf_err *err)
{
    struct sight s = {.report = report};
    struct gate *gate = NULL;
    struct ledger *ledger = NULL;
    struct hf_fault fault = {0};
    const struct db_options options = {.clock = &clock_system};
    const struct gate_sight sight = {&s, saw_seat, saw_count, saw_strange, NULL};
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
        status = compare_twice(ledger, gate, &s, err);
    ledger_close(ledger);
    gate_close(gate);
    vec_close(&s.entries);
    return status;
}
