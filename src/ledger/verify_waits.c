/* Folds the log of the waiting list of one event, and compares its entries with it and with the
 * holds that they are offered.  Pure: verify.c feeds it row by row, and it writes only to the
 * report.  Checks the entries' part of I5, I11 and I17; rules/fair.h judges whether each had its
 * turn. */
#include "ledger/verify_internal.h"

struct wait_seen *verify_wait(struct event_state *e, int64_t key)
{
    size_t low = 0, high = e->waits.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (e->waits.v[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < e->waits.n && e->waits.v[low].key == key ? &e->waits.v[low] : NULL;
}

/* ---- the log ---- */

/* What the entry was before its first remaining row is as that row and its own have it. */
static void adopt_wait(struct wait_seen *w, const struct audit_row *row)
{
    w->log_status = (uint8_t)row->from;
    w->log_number = w->number;
    w->log_rank = w->rank;
    w->log_read_at = w->read_at;
    w->log_hold = row->from == WAIT_OFFERED ? w->hold : 0;
}

/* The row of an offer follows on those of the hold, which may have been pruned since. */
static void fold_offer(struct event_state *e, const struct audit_row *row, struct wait_seen *w)
{
    struct hold_state *h = verify_hold(e, row->hold);
    w->log_hold = row->hold;
    if (h && h->begun && h->wait != OFFERED)
        verify_violation(
            e->report, VERIFY_WAITS,
            "event %lld, seq %lld: entry %lld is offered hold %lld, which is not for it",
            (ll)e->event, (ll)row->seq, (ll)w->key, (ll)row->hold);
    if (h)
        h->wait = w->key;
}

void verify_fold_wait(struct event_state *e, const struct audit_row *row)
{
    struct wait_seen *w = verify_wait(e, HOLD_KEY(e->event, row->fence));
    if (row->from == WAIT_NONE)
        verify_grant(e, row);
    if (!w) {
        verify_violation(e->report, VERIFY_FOLD_WAITS,
                         "event %lld, seq %lld: entry %lld is in the log only", (ll)e->event,
                         (ll)row->seq, (ll)HOLD_KEY(e->event, row->fence));
        return;
    }
    if (row->from == WAIT_NONE) {
        w->log_number = w->log_rank = row->until;
        w->log_read_at = row->at;
    } else if (e->pruned_seq && !w->log_seq) {
        adopt_wait(w, row);
    }
    verify_chain(e, row, "entry", w->key, w->log_status);
    verify_prev(e, row, "entry", w->key, w->log_seq);
    if (row->quantity != w->quantity)
        verify_violation(e->report, VERIFY_FOLD_WAITS,
                         "entry %lld: it wants %u places, by the log %lld", (ll)w->key, w->quantity,
                         (ll)row->quantity);
    if (row->to == WAIT_OFFERED)
        fold_offer(e, row, w);
    else if (row->hold != w->log_hold)
        verify_violation(
            e->report, VERIFY_LOG_CHAIN,
            "event %lld, seq %lld: entry %lld changes with hold %lld, it has hold %lld",
            (ll)e->event, (ll)row->seq, (ll)w->key, (ll)row->hold, (ll)w->log_hold);
    if (row->to == WAIT_WAITING && row->cause == CAUSE_CHANGE)
        w->log_rank = -row->seq;
    if (row->to == WAIT_WAITING && (row->cause == CAUSE_RENEW || row->cause == CAUSE_RESTORE))
        w->log_read_at = row->at;
    w->log_status = (uint8_t)row->to;
    w->log_ended_at = wait_is_live((enum wait_status)row->to) ? 0 : row->at;
    w->log_seq = row->seq;
}

/* ---- the rows ---- */

/* What the log does not tell, since it has been pruned, is as the row has it. */
static void adopt_pruned(const struct event_state *e, struct wait_seen *w)
{
    if (w->log_seq || w->last_seq > e->pruned_seq)
        return;
    w->log_status = w->status;
    w->log_number = w->number;
    w->log_rank = w->rank;
    w->log_read_at = w->read_at;
    w->log_hold = w->hold;
    w->log_ended_at = w->ended_at;
    w->log_seq = w->last_seq;
}

static void check_fold(struct event_state *e, const struct wait_seen *w)
{
    verify_count(e, VERIFY_FOLD_WAITS);
    if (w->status != w->log_status || w->hold != w->log_hold || w->ended_at != w->log_ended_at ||
        w->last_seq != w->log_seq)
        verify_violation(e->report, VERIFY_FOLD_WAITS,
                         "entry %lld: it is %s, with hold %lld, ended at %lld, seq %lld; the log "
                         "says %s, with hold %lld, ended at %lld, seq %lld",
                         (ll)w->key, word(AUDIT_WAIT, w->status), (ll)w->hold, (ll)w->ended_at,
                         (ll)w->last_seq, word(AUDIT_WAIT, w->log_status), (ll)w->log_hold,
                         (ll)w->log_ended_at, (ll)w->log_seq);
    if (w->number != w->log_number || w->rank != w->log_rank || w->read_at != w->log_read_at)
        verify_violation(
            e->report, VERIFY_FOLD_WAITS,
            "entry %lld: its number is %lld, its rank %lld, read at %lld; the log says "
            "number %lld, rank %lld, read at %lld",
            (ll)w->key, (ll)w->number, (ll)w->rank, (ll)w->read_at, (ll)w->log_number,
            (ll)w->log_rank, (ll)w->log_read_at);
    bool has_reason = w->reason && w->reason < WAIT_REASONS;
    if (has_reason != (w->status == WAIT_ENDED) || (!has_reason && w->reason))
        verify_violation(e->report, VERIFY_FOLD_WAITS, "entry %lld: it is %s, for reason %u",
                         (ll)w->key, word(AUDIT_WAIT, w->status), w->reason);
}

/* Entries that ended may have been pruned, all but the last. */
static void check_number(struct event_state *e, const struct wait_seen *w, int64_t before)
{
    bool may_have_gaps = e->pruned_seq || e->holds_pruned_seq;
    if (w->number <= before || (w->number != before + 1 && !may_have_gaps))
        verify_violation(e->report, VERIFY_WAITS,
                         "entry %lld: its number is %lld, and that of the one before %lld",
                         (ll)w->key, (ll)w->number, (ll)before);
}

/* An offered entry has a hold, which is live, and was made for it. */
static void check_offer(struct event_state *e, const struct wait_seen *w)
{
    const struct hold_state *h = verify_hold(e, w->hold);
    if (w->status != WAIT_OFFERED)
        return;
    if (!h || h->status != HOLD_ACTIVE || (h->begun && h->wait != w->key))
        verify_violation(e->report, VERIFY_WAITS,
                         "entry %lld: it is offered hold %lld, which is %s", (ll)w->key,
                         (ll)w->hold,
                         !h                         ? "not there"
                         : h->status == HOLD_ACTIVE ? "not for it"
                                                    : word(AUDIT_HOLD, h->status));
}

/* A live hold that was made for the waiting list has its entry, which goes on as long as it. */
static void check_offered(struct event_state *e, const struct hold_state *h)
{
    const struct wait_seen *w = h->wait ? verify_wait(e, h->wait) : NULL;
    if (!h->wait || h->status != HOLD_ACTIVE)
        return;
    if (!w || w->status != WAIT_OFFERED || w->hold != h->key)
        verify_violation(e->report, VERIFY_WAITS,
                         "hold %lld: it was made for the waiting list, and its entry is %s",
                         (ll)h->key, w ? word(AUDIT_WAIT, w->status) : "not there");
}

void verify_entries(struct event_state *e)
{
    int64_t number = 0;
    for (size_t i = 0; i < e->waits.n; i++) {
        struct wait_seen *w = &e->waits.v[i];
        if (e->pruned_seq)
            adopt_pruned(e, w);
        verify_count(e, VERIFY_WAITS);
        verify_count(e, VERIFY_FENCE_CLOCK);
        verify_count(e, VERIFY_FENCE_SHARED);
        check_fold(e, w);
        check_number(e, w, number);
        check_offer(e, w);
        if (HOLD_FIRST_FENCE(w->key) > e->clock.fence)
            verify_violation(e->report, VERIFY_FENCE_CLOCK,
                             "entry %lld: its fence is above the clock's, %lld", (ll)w->key,
                             (ll)e->clock.fence);
        if (verify_hold(e, w->key))
            verify_violation(e->report, VERIFY_FENCE_SHARED,
                             "entry %lld: it has the fence of a hold", (ll)w->key);
        number = w->number;
    }
    for (size_t i = 0; i < e->holds.n; i++)
        check_offered(e, &e->holds.v[i]);
}
