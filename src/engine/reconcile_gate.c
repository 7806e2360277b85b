/* The reconciler's comparison of the gate with the ledger, on its thread (keeps I12):
 *
 *   stale     an entry that the ledger does not give to its hold (gate/check.h) is deleted
 *   missing   a seat of a live hold that has no entry gets one
 *   count     a count that the ledger contradicts is deleted
 *   strange   a key of our form that cannot be read is deleted
 *
 * Servers change gate and ledger while we compare.  So the gate is read before the ledger, and a
 * repair of an entry is made only if a second scan confirms it.  A hold may end while its missing
 * entry is put back: its row is read once more afterwards, and the entry is taken away again. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/batch_gate.h"
#include "engine/reconcile_internal.h"
#include "gate/check.h"

#define SECOND_SCAN_AFTER_MS 300

/* One comparison. */
struct gate_round {
    struct reconciler *reconciler;
    /* what the last scan found */
    struct gate_entries entries; /* sorted */
    VEC(struct gate_count) counts;
    VEC(char *) strange;

    VEC(struct gate_seat) repairs; /* ttl_ms 0: of a stale entry; else of a missing one */
    VEC(int64_t) restored;         /* holds for which a missing entry was found */
    VEC(int64_t) keys;             /* scratch */
    int64_t now;                   /* the ledger's time, read after the last scan */
    int64_t now_us;                /* our clock just before `now` was read */
    int64_t ttls_us; /* our clock at the moment that the TTLs of `repairs` count from */
};

static void scan_clear(struct gate_round *round)
{
    for (size_t i = 0; i < round->strange.n; i++)
        free(round->strange.v[i]);
    vec_clear(&round->strange);
    vec_clear(&round->entries.list);
    vec_clear(&round->counts);
}

static void round_close(struct gate_round *round)
{
    scan_clear(round);
    gate_entries_close(&round->entries);
    vec_close(&round->counts);
    vec_close(&round->strange);
    vec_close(&round->repairs);
    vec_close(&round->restored);
    vec_close(&round->keys);
}

static int64_t clock_us(const struct gate_round *round)
{
    return clock_monotonic_us(round->reconciler->engine->config.clock);
}

/* ---- reading ---- */

static void on_seat(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms)
{
    (void)ttl_ms;
    struct gate_round *round = ctx;
    *vec_push(&round->entries.list) =
        (struct gate_entry){.event = event, .seat = seat, .hold = hold};
}

static void on_count(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available)
{
    struct gate_round *round = ctx;
    *vec_push(&round->counts) =
        (struct gate_count){.event = event, .area = area, .seq = seq, .available = available};
}

static void on_strange(void *ctx, const char *key, size_t len)
{
    struct gate_round *round = ctx;
    *vec_push(&round->strange) = hf_strndup(key, len);
}

static bool on_page(void *ctx)
{
    return reconciler_is_stopping(((struct gate_round *)ctx)->reconciler);
}

/* Reads the gate, then the ledger's time.  Returns false if one of them does not answer, or if the
 * reconciler is to stop.  A gate that does not answer is reported by its users. */
static bool scan(struct gate_round *round, struct hf_err *err)
{
    struct reconciler *r = round->reconciler;
    const struct gate_visitor visitor = {round, on_seat, on_count, on_strange, on_page};
    struct hf_fault fault = {0};
    scan_clear(round);
    if (gate_scan(r->gate, &visitor, &fault) != HF_DONE)
        return false;
    gate_entries_sort(&round->entries);
    round->now_us = clock_us(round);
    return ledger_now(r->ledger, &round->now, err) == HF_OK;
}

typedef void hold_fn(void *round, size_t i, const struct hold_row *row);

static bool visit_holds(struct gate_round *round, const int64_t *keys, size_t n, hold_fn *hold,
                        struct hf_err *err)
{
    return ledger_holds_visit(round->reconciler->ledger, keys, n, hold, round, err) == HF_OK;
}

/* ---- which entries are wrong ---- */

static void find_stale(void *ctx, size_t i, const struct hold_row *row)
{
    struct gate_round *round = ctx;
    const struct gate_entry *e = &round->entries.list.v[i];
    if (gate_entry_check(e, row, round->now) != GATE_ENTRY_RIGHT)
        *vec_push(&round->repairs) =
            (struct gate_seat){.event = e->event, .seat = e->seat, .hold = e->hold};
}

/* Returns how long an entry of this hold should last; 0 or less: it needs none any more. */
static int64_t entry_ttl_ms(const struct gate_round *round, const struct hold_row *row)
{
    return row->expires_at - GATE_EARLY_MS - round->now;
}

static void find_missing(void *ctx, const struct hold_row *row)
{
    struct gate_round *round = ctx;
    int64_t ttl_ms = entry_ttl_ms(round, row);
    bool any = false;
    if (ttl_ms <= 0)
        return;
    for (uint32_t i = 0; i < row->n_seats; i++) {
        const struct gate_entry want = {
            .event = row->event, .seat = row->seats[i], .hold = row->id.key};
        if (gate_entries_has(&round->entries, &want))
            continue;
        any = true;
        *vec_push(&round->repairs) = (struct gate_seat){
            .event = want.event, .seat = want.seat, .hold = want.hold, .ttl_ms = ttl_ms};
    }
    if (any)
        *vec_push(&round->restored) = row->id.key;
}

/* Compares the scan with the ledger, both ways. */
static bool find_repairs(struct gate_round *round, struct hf_err *err)
{
    round->ttls_us = round->now_us;
    vec_clear(&round->keys);
    for (size_t i = 0; i < round->entries.list.n; i++)
        *vec_push(&round->keys) = round->entries.list.v[i].hold;
    return visit_holds(round, round->keys.v, round->keys.n, find_stale, err) &&
           ledger_holds_live(round->reconciler->ledger, round->now, find_missing, round, err) ==
               HF_OK;
}

/* ---- which of them are still wrong a moment later ---- */

/* Keeps the stale entries that are still there, and the missing ones that are still missing. */
static void keep_unchanged(struct gate_round *round)
{
    size_t kept = 0;
    for (size_t i = 0; i < round->repairs.n; i++) {
        const struct gate_seat repair = round->repairs.v[i];
        const struct gate_entry entry = {
            .event = repair.event, .seat = repair.seat, .hold = repair.hold};
        bool is_stale = repair.ttl_ms == 0;
        if (gate_entries_has(&round->entries, &entry) == is_stale)
            round->repairs.v[kept++] = repair;
    }
    round->repairs.n = kept;
}

/* Marks, by hold 0, the repair of a missing entry whose hold has ended since. */
static void mark_ended(void *ctx, size_t i, const struct hold_row *row)
{
    struct gate_round *round = ctx;
    struct gate_seat *repair = &round->repairs.v[i];
    bool lives = row->status == HOLD_ACTIVE && entry_ttl_ms(round, row) > 0;
    if (repair->ttl_ms && !lives)
        repair->hold = 0;
}

static void drop_marked(struct gate_round *round)
{
    size_t kept = 0;
    for (size_t i = 0; i < round->repairs.n; i++)
        if (round->repairs.v[i].hold)
            round->repairs.v[kept++] = round->repairs.v[i];
    round->repairs.n = kept;
}

/* Scans again, and keeps the repairs that are still needed: what servers are just doing is no
 * drift. */
static bool confirm_repairs(struct gate_round *round, struct hf_err *err)
{
    if (reconciler_pause(round->reconciler, SECOND_SCAN_AFTER_MS) || !scan(round, err))
        return false;
    keep_unchanged(round);
    vec_clear(&round->keys);
    for (size_t i = 0; i < round->repairs.n; i++)
        *vec_push(&round->keys) = round->repairs.v[i].hold;
    if (!visit_holds(round, round->keys.v, round->keys.n, mark_ended, err))
        return false;
    drop_marked(round);
    return true;
}

/* ---- repairing entries ---- */

static const uint8_t no_token[GATE_TOKEN_SIZE]; /* no batch claims with it */

static int repair_order(const void *a, const void *b)
{
    const struct gate_seat *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

/* Writes the repairs to the gate and empties the list.  Returns false if the gate failed. */
static bool settle_repairs(struct gate_round *round)
{
    struct reconciler *r = round->reconciler;
    size_t n = round->repairs.n;
    vec_clear(&round->repairs);
    if (n == 0)
        return true;
    qsort(round->repairs.v, n, sizeof *round->repairs.v, repair_order);
    return !reconciler_is_stopping(r) &&
           gate_settle(r->gate, no_token, round->repairs.v, n, NULL, 0, NULL) == HF_DONE;
}

/* Subtracts the time that has passed since the TTLs were computed: an entry must not outlive its
 * hold. */
static void shorten_ttls(struct gate_round *round)
{
    int64_t since_ms = (clock_us(round) - round->ttls_us) / 1000 + 1;
    size_t kept = 0;
    for (size_t i = 0; i < round->repairs.n; i++) {
        struct gate_seat repair = round->repairs.v[i];
        if (repair.ttl_ms && repair.ttl_ms <= since_ms)
            continue;
        repair.ttl_ms -= repair.ttl_ms ? since_ms : 0;
        round->repairs.v[kept++] = repair;
    }
    round->repairs.n = kept;
}

static void make_repairs(struct gate_round *round)
{
    shorten_ttls(round);
    size_t n_stale = 0, n = round->repairs.n;
    for (size_t i = 0; i < n; i++)
        n_stale += round->repairs.v[i].ttl_ms == 0;
    if (!settle_repairs(round))
        return;
    reconciler_repaired(round->reconciler, REPAIR_GATE_STALE, n_stale);
    reconciler_repaired(round->reconciler, REPAIR_GATE_MISSING, n - n_stale);
}

static void find_ended(void *ctx, size_t i, const struct hold_row *row)
{
    (void)i;
    struct gate_round *round = ctx;
    if (row->status == HOLD_ACTIVE)
        return;
    for (uint32_t s = 0; s < row->n_seats; s++)
        *vec_push(&round->repairs) =
            (struct gate_seat){.event = row->event, .seat = row->seats[s], .hold = row->id.key};
}

/* Takes the entries away again whose holds ended while they were put back. */
static bool undo_ended(struct gate_round *round, struct hf_err *err)
{
    return visit_holds(round, round->restored.v, round->restored.n, find_ended, err) &&
           settle_repairs(round);
}

/* ---- counts and strange keys ---- */

struct area_now {
    uint32_t area;
    int64_t used; /* places that are held, booked or blocked */
    bool found;
};

static void on_area(void *ctx, uint32_t index, const struct area_row *row)
{
    struct area_now *a = ctx;
    int64_t used = row->held + row->booked;
    for (size_t i = 0; i < row->blocks->list.n; i++)
        used += row->blocks->list.v[i].places;
    if (index == a->area)
        *a = (struct area_now){index, used, true};
}

/* A count is wrong if its area does not exist, if the event has not reached its seq, or if the
 * ledger disagrees at that very seq.  One transaction reads it all at one moment. */
static enum hf_status judge_count(struct ledger *l, const struct gate_count *c, bool *ret_wrong,
                                  struct hf_err *err)
{
    struct area_now now = {.area = c->area};
    struct event_def *def = NULL;
    struct clock_row clock = {0};
    enum event_status open;
    enum hf_status status = ledger_begin(l, err);
    if (status == HF_OK)
        status = ledger_event_read(l, c->event, &def, &clock, err);
    if (status == HF_OK && def)
        status = ledger_event_state(l, c->event, &open, on_area, &now, err);
    ledger_rollback(l);
    *ret_wrong = !def || !now.found || c->seq > clock.seq ||
                 (c->seq == clock.seq && c->available != def->areas.v[c->area].capacity - now.used);
    event_def_free(def);
    return status;
}

static void delete_wrong_counts(struct gate_round *round, struct hf_err *err)
{
    struct reconciler *r = round->reconciler;
    size_t n_wrong = 0;
    for (size_t i = 0; i < round->counts.n; i++) {
        bool is_wrong;
        if (judge_count(r->ledger, &round->counts.v[i], &is_wrong, err) != HF_OK)
            return;
        if (is_wrong)
            round->counts.v[n_wrong++] = round->counts.v[i]; /* its ttl_ms is 0 */
    }
    if (n_wrong && !reconciler_is_stopping(r) &&
        gate_settle(r->gate, no_token, NULL, 0, round->counts.v, n_wrong, NULL) == HF_DONE)
        reconciler_repaired(r, REPAIR_GATE_COUNT, n_wrong);
}

static void delete_strange_keys(struct gate_round *round)
{
    struct reconciler *r = round->reconciler;
    for (size_t i = 0; i < round->strange.n && !reconciler_is_stopping(r); i++) {
        const char *key = round->strange.v[i];
        size_t len = strlen(key);
        if (gate_drop(r->gate, &key, &len, 1, NULL) == HF_DONE)
            reconciler_repaired(r, REPAIR_GATE_STRANGE, 1);
    }
}

/* ---- the whole of it ---- */

static void compare(struct gate_round *round, struct hf_err *err)
{
    if (!scan(round, err) || !find_repairs(round, err))
        return;
    if (round->repairs.n) {
        if (!confirm_repairs(round, err))
            return;
        make_repairs(round);
        if (!undo_ended(round, err))
            return;
    }
    delete_wrong_counts(round, err);
}

void reconcile_gate(struct reconciler *r)
{
    struct gate_round round = {.reconciler = r};
    struct hf_err err = {0};
    compare(&round, &err);
    delete_strange_keys(&round);
    round_close(&round);
    if (err.code != HF_OK)
        log_write(LOG_WARN, "the gate could not be compared", "why", err.msg, NULL);
}
