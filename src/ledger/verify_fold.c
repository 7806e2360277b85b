/* Folds the log of one event, and checks each row against what the rows before it left.  Pure:
 * verify.c feeds it row by row, and it writes only to the report.  Checks I4, I5 and I11.  Costs
 * O(1) per row, and O(log holds) for a hold that does not stand where its fence suggests. */
#include "ledger/verify_internal.h"

#include <stdarg.h>
#include <stdio.h>

void verify_violation(struct verify_report *report, enum verify_id id, const char *fmt, ...)
{
    struct verify_check *check = &report->checks[id];
    if (check->violations < VERIFY_EXAMPLES) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(check->examples[check->violations], VERIFY_EXAMPLE_SIZE, fmt, args);
        va_end(args);
    }
    check->violations++;
    report->violations++;
}

/* Most fences are the first fence of a hold, so a hold usually stands at the index of its fence. */
struct hold_state *verify_hold(struct event_state *e, int64_t key)
{
    size_t low = 0, high = e->holds.n;
    if (key <= 0 || HOLD_EVENT(key) != e->event || !high)
        return NULL;
    size_t guess = (size_t)HOLD_FIRST_FENCE(key) - 1;
    if (guess < high && e->holds.v[guess].key == key)
        return &e->holds.v[guess];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (e->holds.v[mid].key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low < e->holds.n && e->holds.v[low].key == key ? &e->holds.v[low] : NULL;
}

struct block_state *verify_block(struct area_state *a, uint32_t channel)
{
    uint32_t wanted = channel <= CHANNELS_MAX ? channel : CHANNELS_MAX + 1;
    for (size_t i = 0; i < a->blocks.n; i++)
        if (a->blocks.v[i].channel == wanted)
            return &a->blocks.v[i];
    struct block_state *block = vec_push(&a->blocks);
    *block = (struct block_state){.channel = wanted};
    return block;
}

void verify_channel(struct event_state *e, const char *what, int64_t item, uint32_t channel)
{
    if (channel)
        verify_count(e, VERIFY_CHANNELS);
    if (channel > e->n_channels)
        verify_violation(e->report, VERIFY_CHANNELS,
                         "event %lld, %s %lld: of channel %u, the event has %u", (ll)e->event, what,
                         (ll)item, channel, e->n_channels);
}

void verify_type(struct event_state *e, const char *what, int64_t item, uint32_t type)
{
    if (type && type >= e->n_types)
        verify_violation(e->report, VERIFY_PRICES,
                         "event %lld, %s %lld: of ticket type %u, the event has %u", (ll)e->event,
                         what, (ll)item, type, e->n_types);
}

/* ---- the log ---- */

/* An event is open until the log says otherwise. */
void verify_fold_begin(struct event_state *e, int64_t pruned_seq, int64_t holds_pruned_seq)
{
    e->pruned_seq = e->seq = pruned_seq;
    e->holds_pruned_seq = holds_pruned_seq;
    e->log_status = pruned_seq ? NOT_KNOWN : EVENT_OPEN;
    for (uint32_t i = 0; i < e->n_seats && pruned_seq; i++) {
        e->seats[i].status = e->seats[i].channel = NOT_KNOWN;
        e->seats[i].row_fence = FENCE_NOT_KNOWN;
    }
}

void verify_prev(struct event_state *e, const struct audit_row *row, const char *object,
                 int64_t item, int64_t prev)
{
    bool is_pruned = row->object == AUDIT_SEAT
                         ? verify_is_pruned(e, prev, row->prev)
                         : !prev && row->prev > 0 && row->prev <= e->pruned_seq;
    if (row->prev != prev && !is_pruned)
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: %s %lld changed before at seq %lld, it names %lld",
                         (ll)e->event, (ll)row->seq, object, (ll)item, (ll)prev, (ll)row->prev);
}

void verify_chain(struct event_state *e, const struct audit_row *row, const char *object,
                  int64_t item, int was)
{
    if (row->from != was)
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: %s %lld goes from %s to %s but was %s",
                         (ll)e->event, (ll)row->seq, object, (ll)item, word(row->object, row->from),
                         word(row->object, row->to), word(row->object, was));
}

void verify_grant(struct event_state *e, const struct audit_row *row)
{
    if (row->fence <= e->grant_fence)
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: granted with fence %lld after fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->fence, (ll)e->grant_fence);
    else
        e->grant_fence = row->fence;
    if (row->object == AUDIT_HOLD && row->from == HOLD_NONE &&
        row->fence != HOLD_FIRST_FENCE(row->hold))
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: hold %lld granted with another's fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->hold, (ll)row->fence);
}

/* Takes what the hold was before its first remaining row from that row. */
static void adopt_hold(struct hold_state *h, const struct audit_row *row, bool grant)
{
    h->log_status = (uint8_t)row->from;
    h->log_fence = grant ? 0 : row->fence;
    h->log_until = row->until;
}

/* Appends a row about a hold's booking or payment to the chain of the hold.  What the hold was at
 * its first remaining row is known only if that row is about a sale. */
static void fold_chain(struct event_state *e, const struct audit_row *row, struct hold_state *h)
{
    verify_prev(e, row, "hold", row->hold, h->log_seq);
    if (e->pruned_seq && !h->log_seq) {
        bool is_sale = row->object == AUDIT_BOOKING &&
                       (row->from == BOOKING_CONFIRMED || row->to == BOOKING_CONFIRMED);
        h->log_status = is_sale ? HOLD_CONFIRMED : NOT_KNOWN;
        h->log_fence = is_sale ? row->fence : FENCE_NOT_KNOWN;
        h->log_until = h->expires_at;
    }
    h->log_seq = row->seq;
}

static void fold_hold(struct event_state *e, const struct audit_row *row)
{
    bool grant = row->from == HOLD_NONE || row->cause == CAUSE_CHANGE ||
                 row->cause == CAUSE_RESCUE || row->cause == CAUSE_RESTORE;
    if (grant)
        verify_grant(e, row);
    struct hold_state *h = verify_hold(e, row->hold);
    if (!h) {
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "event %lld, seq %lld: hold %lld is in the log only", (ll)e->event,
                         (ll)row->seq, (ll)row->hold);
        return;
    }
    if (row->from == HOLD_NONE) {
        h->begun = true;
        h->wait = row->cause == CAUSE_WAITLIST ? OFFERED : 0;
    } else if (e->pruned_seq && (!h->log_seq || h->log_status == NOT_KNOWN)) {
        adopt_hold(h, row, grant);
    }
    verify_chain(e, row, "hold", row->hold, h->log_status);
    verify_prev(e, row, "hold", row->hold, h->log_seq);
    if (!grant && row->fence != h->log_fence)
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: hold %lld of fence %lld changed with fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->hold, (ll)h->log_fence,
                         (ll)row->fence);
    if (row->to == HOLD_CONFIRMED && row->cause != CAUSE_RESCUE) {
        verify_count(e, VERIFY_CONFIRM_TIME);
        if (row->at >= h->log_until)
            verify_violation(e->report, VERIFY_CONFIRM_TIME,
                             "event %lld, seq %lld: hold %lld, due at %lld, confirmed at %lld",
                             (ll)e->event, (ll)row->seq, (ll)row->hold, (ll)h->log_until,
                             (ll)row->at);
    }
    h->log_status = (uint8_t)row->to;
    h->log_fence = row->fence;
    h->log_seq = row->seq;
    if (row->until)
        h->log_until = row->until;
}

/* Notes the row of the seat that its stored head has to name. */
static void fold_head(struct event_state *e, const struct audit_row *row, struct seat_state *s)
{
    size_t chunk = (size_t)row->item / HEADS_CHUNK;
    if (chunk < e->heads_seqs.n && row->seq <= e->heads_seqs.v[chunk])
        s->head_seq = row->seq;
    s->last_seq = row->seq;
}

static bool is_blocking(const struct audit_row *row)
{
    return row->cause == CAUSE_BLOCK || row->cause == CAUSE_UNBLOCK;
}

/* Returns 1 if the row gives places to its hold, -1 if it takes them out, else 0. */
static int granted(const struct audit_row *row)
{
    if (row->cause == CAUSE_HOLD || row->cause == CAUSE_WAITLIST)
        return 1;
    return row->cause == CAUSE_CHANGE ? row->to == SEAT_HELD ? 1 : -1 : 0;
}

/* Takes what the seat was before its first remaining row from that row, as far as that tells. */
static void adopt_seat(struct seat_state *s, const struct audit_row *row)
{
    bool passes_blocked = row->from == SEAT_BLOCKED || row->to == SEAT_BLOCKED;
    s->status = (uint8_t)row->from;
    s->hold = is_owned(row->from) ? row->hold : 0;
    if (row->from == SEAT_AVAILABLE || row->to == SEAT_AVAILABLE)
        s->channel = 0;
    if (passes_blocked && row->cause != CAUSE_BLOCK)
        s->channel = (uint8_t)row->channel;
}

/* A seat that is blocked for a channel goes to holds of that channel, and is blocked for it again
 * when they end. */
static void check_seat_channel(struct event_state *e, const struct audit_row *row,
                               const struct seat_state *s, const struct hold_state *h)
{
    bool passes_blocked = row->from == SEAT_BLOCKED || row->to == SEAT_BLOCKED;
    if (passes_blocked)
        verify_channel(e, "seat", row->item, row->channel);
    if (row->cause == CAUSE_BLOCK || s->channel == NOT_KNOWN)
        return;
    bool is_others = is_owned(row->to) && h && h->channel != s->channel;
    bool is_right = passes_blocked ? row->channel == s->channel &&
                                         (row->cause == CAUSE_UNBLOCK || (s->channel && !is_others))
                                   : row->to != SEAT_AVAILABLE || !s->channel;
    if (!is_right)
        verify_violation(e->report, VERIFY_CHANNELS,
                         "event %lld, seq %lld: seat %lld of channel %u goes from %s to %s in "
                         "channel %u, by hold %lld of channel %u",
                         (ll)e->event, (ll)row->seq, (ll)row->item, s->channel,
                         word(AUDIT_SEAT, row->from), word(AUDIT_SEAT, row->to), row->channel,
                         (ll)row->hold, h ? h->channel : 0);
}

/* The row of a seat shows the last change of those that seat_row_status lets it show. */
static void fold_row(const struct audit_row *row, struct seat_state *s)
{
    if (row->fence)
        s->fence = row->fence;
    if (is_blocking(row))
        s->channel = row->to == SEAT_BLOCKED ? (uint8_t)row->channel : 0;
    if (is_blocking(row) || row->to == SEAT_BOOKED || row->from == SEAT_BOOKED)
        s->row_fence = s->fence;
}

/* A held seat expires with its hold: a renewal writes one row, and not one per seat. */
static void fold_seat(struct event_state *e, const struct audit_row *row)
{
    if (row->item < 0 || row->item >= e->n_seats) {
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seq %lld: there is no seat %lld", (ll)e->event, (ll)row->seq,
                         (ll)row->item);
        return;
    }
    struct seat_state *s = &e->seats[row->item];
    struct hold_state *h = verify_hold(e, row->hold);
    if (s->status == NOT_KNOWN)
        adopt_seat(s, row);
    verify_chain(e, row, "seat", row->item, s->status);
    verify_prev(e, row, "seat", row->item, s->last_seq);
    fold_head(e, row, s);
    if (s->hold && s->hold != row->hold)
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: hold %lld changes seat %lld of hold %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->hold, (ll)row->item, (ll)s->hold);
    if (row->quantity != 1)
        verify_violation(e->report, VERIFY_LOG_CHAIN, "event %lld, seq %lld: %lld of seat %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->quantity, (ll)row->item);
    if (row->fence && row->fence < s->fence)
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: seat %lld of fence %lld changed with fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->item, (ll)s->fence, (ll)row->fence);
    if (row->to == SEAT_HELD && h && h->log_seq && row->until != h->log_until)
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seq %lld: seat %lld is held until %lld, its hold until %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->item, (ll)row->until,
                         (ll)h->log_until);
    check_seat_channel(e, row, s, h);
    if (h) {
        h->log_granted += (uint32_t)granted(row);
        h->ungranted -= (uint64_t)granted(row) * place_digest(AUDIT_SEAT, row->item, 1);
        h->mistyped -= (uint64_t)granted(row) * place_digest(AUDIT_SEAT, row->item, 1) * row->type;
    }
    fold_row(row, s);
    s->status = (uint8_t)row->to;
    s->hold = is_owned(row->to) ? row->hold : 0;
}

/* The number of places of an area that have a status, by the log. */
static int64_t *places_in(struct area_state *a, int status, uint32_t channel)
{
    switch (status) {
    case SEAT_HELD:
        return &a->log_held;
    case SEAT_BOOKED:
        return &a->log_booked;
    case SEAT_BLOCKED:
        return &verify_block(a, channel)->log_places;
    default:
        return &a->log_free;
    }
}

/* The places of a hold's areas come from the hold's channel and return to it. */
static void check_area_channel(struct event_state *e, const struct audit_row *row,
                               const struct hold_state *h)
{
    if (row->from == SEAT_BLOCKED || row->to == SEAT_BLOCKED)
        verify_channel(e, "area", row->item, row->channel);
    if (!h)
        return;
    int wanted = h->channel ? SEAT_BLOCKED : SEAT_AVAILABLE;
    if ((!is_owned(row->from) && (row->from != wanted || row->channel != h->channel)) ||
        (!is_owned(row->to) && (row->to != wanted || row->channel != h->channel)))
        verify_violation(
            e->report, VERIFY_CHANNELS,
            "event %lld, seq %lld: places of area %lld go from %s to %s in channel %u, "
            "by hold %lld of channel %u",
            (ll)e->event, (ll)row->seq, (ll)row->item, word(AUDIT_AREA, row->from),
            word(AUDIT_AREA, row->to), row->channel, (ll)row->hold, h->channel);
}

static void fold_area(struct event_state *e, const struct audit_row *row)
{
    if (row->item < 0 || (size_t)row->item >= e->areas.n) {
        verify_violation(e->report, VERIFY_FOLD_AREAS,
                         "event %lld, seq %lld: there is no area %lld", (ll)e->event, (ll)row->seq,
                         (ll)row->item);
        return;
    }
    struct area_state *a = &e->areas.v[row->item];
    struct hold_state *h = verify_hold(e, row->hold);
    int64_t n = row->quantity, before = *places_in(a, row->from, row->channel);
    if (n <= 0 || (before < n && !e->pruned_seq))
        verify_violation(
            e->report, VERIFY_LOG_CHAIN,
            "event %lld, seq %lld: %lld places of area %lld go from %s to %s, of which "
            "there were %lld",
            (ll)e->event, (ll)row->seq, (ll)n, (ll)row->item, word(AUDIT_AREA, row->from),
            word(AUDIT_AREA, row->to), (ll)before);
    *places_in(a, row->from, row->channel) -= n;
    *places_in(a, row->to, row->channel) += n;
    check_area_channel(e, row, h);
    if (!h)
        return;
    uint64_t digest = place_digest(AUDIT_AREA, row->item, n);
    uint64_t net = (uint64_t)granted(row) * digest;
    h->astray += is_owned(row->to) * digest - is_owned(row->from) * digest - hold_live(h) * net;
    h->ungranted -= net;
    h->mistyped -= net * row->type;
}

/* An archived event stays so, a cancelled one can only be archived, and a change of an event's
 * terms or a pause of its waiting list leaves its status. */
static bool event_may_pass(const struct audit_row *row)
{
    switch (row->cause) {
    case CAUSE_OPEN:
        return row->to == EVENT_OPEN && row->from == EVENT_CLOSED;
    case CAUSE_CLOSE:
    case CAUSE_RESTORE:
        return row->to == EVENT_CLOSED && row->from == EVENT_OPEN;
    case CAUSE_CANCEL:
        return row->to == EVENT_CANCELLED && row->from != EVENT_ARCHIVED;
    case CAUSE_ARCHIVE:
        return row->to == EVENT_ARCHIVED;
    case CAUSE_CHANGE:
    case CAUSE_PAUSE:
    case CAUSE_RESUME:
        return row->to == row->from;
    default:
        return row->cause == CAUSE_CREATE;
    }
}

/* An event whose creation was not logged, as in early versions, begins open. */
static void fold_event(struct event_state *e, const struct audit_row *row)
{
    bool begins = row->seq == 1 && row->cause == CAUSE_CREATE;
    if (e->log_status == NOT_KNOWN)
        e->log_status = row->from;
    verify_chain(e, row, "event", e->event, begins ? 0 : e->log_status);
    if (!event_may_pass(row))
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: it goes from %s to %s by cause %d", (ll)e->event,
                         (ll)row->seq, word(AUDIT_EVENT, row->from), word(AUDIT_EVENT, row->to),
                         (int)row->cause);
    e->log_status = row->to;
}

/* The booking that the log has told of so far has failed, and another takes its place. */
static void fold_past(struct event_state *e, const struct audit_row *row, struct hold_state *h)
{
    struct past_state *past = verify_past(e, h->key, h->log_payment);
    bool knows_fence = h->log_booking_fence != FENCE_NOT_KNOWN;
    if (past) {
        past->folded = true;
        if (knows_fence && past->fence != h->log_booking_fence)
            verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                             "the booking %lld that failed before: fence %lld; the log says fence "
                             "%lld",
                             (ll)h->key, (ll)past->fence, (ll)h->log_booking_fence);
    } else if (h->log_payment != FENCE_NOT_KNOWN) {
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "event %lld, seq %lld: the booking %lld that failed before is in the log "
                         "only",
                         (ll)e->event, (ll)row->seq, (ll)h->key);
    }
    h->log_booking = BOOKING_NONE;
}

/* A pending booking's row names its payment, which begins with it. */
static void fold_pending(struct event_state *e, const struct audit_row *row, struct hold_state *h)
{
    struct payment_state *p = verify_payment(e, h->key, HOLD_KEY(e->event, row->fence));
    h->log_payment = HOLD_KEY(e->event, row->fence);
    h->log_booking_fence = h->log_fence;
    if (p && p->log_status)
        verify_violation(e->report, VERIFY_FOLD_PAYMENTS,
                         "event %lld, seq %lld: another booking %lld has the same payment",
                         (ll)e->event, (ll)row->seq, (ll)h->key);
    else if (p)
        p->log_status = PAYMENT_CREATING;
}

/* Notes how a booking ended, or that it was made without a payment. */
static void fold_sale(const struct audit_row *row, struct hold_state *h)
{
    if (row->from == BOOKING_NONE)
        h->log_payment = 0;
    if (row->from == BOOKING_CONFIRMED || row->to == BOOKING_CONFIRMED)
        h->log_booking_fence = row->fence;
    if (row->to == BOOKING_CANCELLED)
        h->log_cancelled = row->at;
}

/* A sale without a payment is part of the entry of its hold, and of no chain. */
static void fold_booking(struct event_state *e, const struct audit_row *row)
{
    struct hold_state *h = verify_hold(e, row->booking);
    if (!h || !h->booking) {
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "event %lld, seq %lld: booking %lld is in the log only", (ll)e->event,
                         (ll)row->seq, (ll)row->booking);
        return;
    }
    if (e->pruned_seq && !h->begun && !h->log_booking) {
        h->log_booking = (uint8_t)row->from;
        h->log_payment = h->log_booking_fence = FENCE_NOT_KNOWN;
    }
    if (row->from == BOOKING_NONE && h->log_booking == BOOKING_FAILED)
        fold_past(e, row, h);
    verify_chain(e, row, "booking", row->booking, h->log_booking);
    if (row->from != BOOKING_NONE || row->to != BOOKING_CONFIRMED)
        fold_chain(e, row, h);
    if (row->to == BOOKING_PENDING)
        fold_pending(e, row, h);
    else
        fold_sale(row, h);
    h->log_booking = (uint8_t)row->to;
}

static void fold_payment(struct event_state *e, const struct audit_row *row)
{
    struct hold_state *h = verify_hold(e, row->hold);
    struct payment_state *p = verify_payment(e, row->hold, HOLD_KEY(e->event, row->fence));
    if (h)
        fold_chain(e, row, h);
    if (!p) {
        verify_violation(e->report, VERIFY_FOLD_PAYMENTS,
                         "event %lld, seq %lld: a payment of booking %lld is in the log only",
                         (ll)e->event, (ll)row->seq, (ll)row->hold);
        return;
    }
    if (e->pruned_seq && !p->log_status)
        p->log_status = (uint8_t)row->from;
    verify_chain(e, row, "the payment of booking", row->hold, p->log_status);
    if (row->quantity != p->amount)
        verify_violation(e->report, VERIFY_FOLD_PAYMENTS,
                         "booking %lld: its payment is of %lld, by the log of %lld", (ll)row->hold,
                         (ll)p->amount, (ll)row->quantity);
    p->log_status = (uint8_t)row->to;
}

/* Is the row the next one?  Those of finished holds may be missing before it, but not where the
 * log begins: what has been pruned as a whole ends right there. */
static bool follows(const struct event_state *e, const struct audit_row *row)
{
    bool begins = e->pruned_seq && e->seq == e->pruned_seq;
    return (uint64_t)row->seq == (uint64_t)e->seq + 1 ||
           (!begins && row->seq > e->seq && row->seq - 1 <= e->holds_pruned_seq);
}

void verify_fold(struct event_state *e, const struct audit_row *row)
{
    static const enum verify_id checks[] = {VERIFY_LOG_SEQ, VERIFY_LOG_TIME, VERIFY_LOG_CHAIN,
                                            VERIFY_FENCE_ORDER, VERIFY_FENCE_CLOCK};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        verify_count(e, checks[i]);
    if (!follows(e, row))
        verify_violation(e->report, VERIFY_LOG_SEQ, "event %lld: seq %lld is followed by %lld",
                         (ll)e->event, (ll)e->seq, (ll)row->seq);
    if (row->at < e->at || row->at > e->clock.now)
        verify_violation(e->report, VERIFY_LOG_TIME,
                         "event %lld, seq %lld: at %lld, after %lld, by a clock at %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->at, (ll)e->at, (ll)e->clock.now);
    if (row->fence > e->clock.fence)
        verify_violation(e->report, VERIFY_FENCE_CLOCK,
                         "event %lld, seq %lld: fence %lld, the clock's is %lld", (ll)e->event,
                         (ll)row->seq, (ll)row->fence, (ll)e->clock.fence);
    verify_type(e, "seq", row->seq, row->type);
    e->seq = row->seq;
    e->at = row->at;
    if (row->object == AUDIT_EVENT)
        fold_event(e, row);
    else if (row->object == AUDIT_AREA)
        fold_area(e, row);
    else if (row->object == AUDIT_HOLD)
        fold_hold(e, row);
    else if (row->object == AUDIT_SEAT)
        fold_seat(e, row);
    else if (row->object == AUDIT_BOOKING)
        fold_booking(e, row);
    else if (row->object == AUDIT_PAYMENT)
        fold_payment(e, row);
    else if (row->object == AUDIT_WAIT)
        verify_fold_wait(e, row);
}

void verify_fold_end(struct event_state *e)
{
    if (e->seq != e->clock.seq)
        verify_violation(e->report, VERIFY_LOG_SEQ,
                         "event %lld: the log ends at %lld, the clock at %lld", (ll)e->event,
                         (ll)e->seq, (ll)e->clock.seq);
    if (e->event == 0)
        return; /* the catalogue of events */
    verify_count(e, VERIFY_FOLD_EVENTS);
    if (e->log_status == NOT_KNOWN) /* only archived events are pruned */
        e->log_status = EVENT_ARCHIVED;
    if (e->log_status != e->status)
        verify_violation(e->report, VERIFY_FOLD_EVENTS, "event %lld: it is %s, by the log %s",
                         (ll)e->event, word(AUDIT_EVENT, e->status),
                         word(AUDIT_EVENT, e->log_status));
}
