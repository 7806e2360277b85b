/* Folds the log of one event and compares its tables with the result.  Pure: verify.c feeds it row
 * by row, and it writes only to the report.  Checks I1 to I6 and I11.  Costs O(1) per row, and
 * O(log holds) for a hold that does not stand where its fence suggests. */
#include "ledger/verify_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef long long ll;

/* A word for a status, also of a damaged row. */
static const char *word(enum audit_object object, int status)
{
    const char *text = status_text(object, status);
    return text ? text : status ? "of no known status" : "none";
}

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

/* ---- the log ---- */

/* A row about a seat or a hold names the row before. */
static void check_prev(struct event_state *e, const struct audit_row *row, const char *object,
                       int64_t item, int64_t prev)
{
    if (row->prev != prev)
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: %s %lld changed before at seq %lld, it names %lld",
                         (ll)e->event, (ll)row->seq, object, (ll)item, (ll)prev, (ll)row->prev);
}

/* A change must begin with the status in which the one before left the object. */
static void check_chain(struct event_state *e, const struct audit_row *row, const char *object,
                        int64_t item, int was)
{
    if (row->from != was)
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: %s %lld goes from %s to %s but was %s",
                         (ll)e->event, (ll)row->seq, object, (ll)item, word(row->object, row->from),
                         word(row->object, row->to), word(row->object, was));
}

/* A grant gives a new fence: to a new hold, to one that is rescued, or to one that was restored. */
static void fold_grant(struct event_state *e, const struct audit_row *row)
{
    if (row->fence <= e->grant_fence)
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: granted with fence %lld after fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->fence, (ll)e->grant_fence);
    else
        e->grant_fence = row->fence;
    if (row->from == HOLD_NONE && row->fence != HOLD_FIRST_FENCE(row->hold))
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: hold %lld granted with another's fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->hold, (ll)row->fence);
}

static void fold_hold(struct event_state *e, const struct audit_row *row)
{
    bool grant =
        row->from == HOLD_NONE || row->cause == CAUSE_RESCUE || row->cause == CAUSE_RESTORE;
    if (grant)
        fold_grant(e, row);
    struct hold_state *h = verify_hold(e, row->hold);
    if (!h) {
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "event %lld, seq %lld: hold %lld is in the log only", (ll)e->event,
                         (ll)row->seq, (ll)row->hold);
        return;
    }
    check_chain(e, row, "hold", row->hold, h->log_status);
    check_prev(e, row, "hold", row->hold, h->log_seq);
    if (!grant && row->fence != h->log_fence)
        verify_violation(e->report, VERIFY_FENCE_ORDER,
                         "event %lld, seq %lld: hold %lld of fence %lld changed with fence %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->hold, (ll)h->log_fence,
                         (ll)row->fence);
    if (row->to == HOLD_CONFIRMED && row->cause == CAUSE_CONFIRM) {
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

/* Counts a row of the seat against its stored head. */
static void fold_head(struct event_state *e, const struct audit_row *row, struct seat_state *s)
{
    size_t chunk = (size_t)row->item / HEADS_CHUNK;
    if (chunk < e->heads_seqs.n && row->seq <= e->heads_seqs.v[chunk])
        s->head -= row->seq - s->last_seq;
    s->last_seq = row->seq;
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
    bool owned = row->to == SEAT_HELD || row->to == SEAT_BOOKED;
    check_chain(e, row, "seat", row->item, s->status);
    check_prev(e, row, "seat", row->item, s->last_seq);
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
    if (row->to == SEAT_HELD && h && row->until != h->log_until)
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seq %lld: seat %lld is held until %lld, its hold until %lld",
                         (ll)e->event, (ll)row->seq, (ll)row->item, (ll)row->until,
                         (ll)h->log_until);
    if (row->cause == CAUSE_HOLD && h) {
        h->log_granted++;
        h->ungranted -= place_digest(AUDIT_SEAT, row->item, 1);
    }
    s->status = (uint8_t)row->to;
    s->hold = owned ? row->hold : 0;
    if (row->fence)
        s->fence = row->fence;
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
    int64_t n = row->quantity;
    a->log_held += n * (row->to == SEAT_HELD) - n * (row->from == SEAT_HELD);
    a->log_booked += n * (row->to == SEAT_BOOKED) - n * (row->from == SEAT_BOOKED);
    if (n <= 0 || a->log_held < 0 || a->log_booked < 0)
        verify_violation(e->report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: %lld places of area %lld go from %s to %s, which "
                         "leaves %lld held and %lld booked",
                         (ll)e->event, (ll)row->seq, (ll)n, (ll)row->item,
                         word(AUDIT_AREA, row->from), word(AUDIT_AREA, row->to), (ll)a->log_held,
                         (ll)a->log_booked);
    if (!h)
        return;
    uint64_t digest = place_digest(AUDIT_AREA, row->item, n);
    bool had = row->from == SEAT_HELD || row->from == SEAT_BOOKED;
    bool has = row->to == SEAT_HELD || row->to == SEAT_BOOKED;
    h->astray += has * digest - had * digest;
    if (row->cause == CAUSE_HOLD) {
        h->ungranted -= digest;
        h->astray -= hold_live(h) * digest;
    }
}

/* An event whose creation was not logged, as in early versions, begins open. */
static void fold_event(struct event_state *e, const struct audit_row *row)
{
    bool begins = row->seq == 1 && row->cause == CAUSE_CREATE;
    check_chain(e, row, "event", e->event, begins ? 0 : e->log_status);
    e->log_status = row->to;
}

static void fold_booking(struct event_state *e, const struct audit_row *row)
{
    struct hold_state *h = verify_hold(e, row->booking);
    if (!h || !h->booking) {
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "event %lld, seq %lld: booking %lld is in the log only", (ll)e->event,
                         (ll)row->seq, (ll)row->booking);
        return;
    }
    check_chain(e, row, "booking", row->booking, h->log_booking);
    h->log_booking = (uint8_t)row->to;
    h->log_booking_fence = row->fence;
}

void verify_fold(struct event_state *e, const struct audit_row *row)
{
    static const enum verify_id checks[] = {VERIFY_LOG_SEQ, VERIFY_LOG_TIME, VERIFY_LOG_CHAIN,
                                            VERIFY_FENCE_ORDER, VERIFY_FENCE_CLOCK};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        verify_count(e, checks[i]);
    if ((uint64_t)row->seq != (uint64_t)e->seq + 1)
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
    if (e->log_status != e->status)
        verify_violation(e->report, VERIFY_FOLD_EVENTS, "event %lld: it is %s, by the log %s",
                         (ll)e->event, word(AUDIT_EVENT, e->status),
                         word(AUDIT_EVENT, e->log_status));
}

/* ---- the areas ---- */

void verify_areas(struct event_state *e)
{
    for (size_t i = 0; i < e->areas.n; i++) {
        const struct area_state *a = &e->areas.v[i];
        verify_count(e, VERIFY_AREA_COUNTERS);
        verify_count(e, VERIFY_FOLD_AREAS);
        if (a->held != a->claimed_held || a->booked != a->claimed_booked)
            verify_violation(e->report, VERIFY_AREA_COUNTERS,
                             "event %lld, area %zu: %lld held and %lld booked, by its holds %lld "
                             "and %lld",
                             (ll)e->event, i, (ll)a->held, (ll)a->booked, (ll)a->claimed_held,
                             (ll)a->claimed_booked);
        if (a->held != a->log_held || a->booked != a->log_booked)
            verify_violation(e->report, VERIFY_FOLD_AREAS,
                             "event %lld, area %zu: %lld held and %lld booked, by the log %lld and "
                             "%lld",
                             (ll)e->event, i, (ll)a->held, (ll)a->booked, (ll)a->log_held,
                             (ll)a->log_booked);
    }
}

/* ---- the seats ---- */

void verify_heads(struct event_state *e, int64_t key, int64_t seq, const uint8_t *heads, size_t len)
{
    uint32_t first = SEAT_INDEX(key), n = (uint32_t)(len / HEAD_SIZE);
    if (first % HEADS_CHUNK || first >= e->n_seats || n > e->n_seats - first || n > HEADS_CHUNK ||
        len % HEAD_SIZE || seq < 0 || seq > e->clock.seq) {
        verify_violation(e->report, VERIFY_HEADS,
                         "event %lld, seat %u: %zu bytes of heads at seq %lld, of %lld",
                         (ll)e->event, first, len, (ll)seq, (ll)e->clock.seq);
        return;
    }
    while (e->heads_seqs.n <= first / HEADS_CHUNK)
        vec_push(&e->heads_seqs);
    e->heads_seqs.v[first / HEADS_CHUNK] = seq;
    for (uint32_t i = 0; i < n; i++)
        e->seats[first + i].head = head_unpack(heads + (size_t)i * HEAD_SIZE);
}

static void check_head(struct event_state *e, uint32_t index)
{
    verify_count(e, VERIFY_HEADS);
    if (e->seats[index].head)
        verify_violation(e->report, VERIFY_HEADS,
                         "event %lld, seat %u: its stored head is %lld off", (ll)e->event, index,
                         (ll)e->seats[index].head);
}

/* Reports a hold to HOLD_STATUS, unless that has been done. */
__attribute__((format(printf, 3, 4))) static void
report_hold(struct event_state *e, struct hold_state *h, const char *fmt, ...)
{
    char what[VERIFY_EXAMPLE_SIZE - 48];
    va_list args;
    if (!h || h->reported)
        return;
    h->reported = true;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    verify_violation(e->report, VERIFY_HOLD_STATUS, "hold %lld: %s", (ll)h->key, what);
}

static void check_owner(struct event_state *e, uint32_t index, int status, int64_t hold)
{
    const struct seat_state *s = &e->seats[index];
    struct hold_state *h = verify_hold(e, hold);
    int wanted = status == SEAT_HELD ? HOLD_ACTIVE : HOLD_CONFIRMED;
    if (!h) {
        verify_violation(e->report, VERIFY_SEAT_OWNER,
                         "event %lld, seat %u: hold %lld does not exist", (ll)e->event, index,
                         (ll)hold);
    } else if (h->status != wanted) {
        verify_violation(e->report, VERIFY_SEAT_OWNER,
                         "event %lld, seat %u: %s by hold %lld, which is %s", (ll)e->event, index,
                         word(AUDIT_SEAT, status), (ll)hold, word(AUDIT_HOLD, h->status));
        report_hold(e, h, "it is %s and has seat %u, which is %s", word(AUDIT_HOLD, h->status),
                    index, word(AUDIT_SEAT, status));
    } else if (s->claim != hold) {
        verify_violation(e->report, VERIFY_SEAT_OWNER,
                         "event %lld, seat %u: hold %lld does not list it", (ll)e->event, index,
                         (ll)hold);
    }
}

static void check_sale(struct event_state *e, uint32_t index, int status, int64_t hold)
{
    const struct seat_state *s = &e->seats[index];
    bool booked = status == SEAT_BOOKED;
    if (!booked && !s->sold)
        return;
    const struct hold_state *h = verify_hold(e, s->sold);
    verify_count(e, VERIFY_SALES);
    if (!s->sold || !booked || s->sold != hold)
        verify_violation(e->report, VERIFY_SALES,
                         "event %lld, seat %u: %s by hold %lld, sold by booking %lld", (ll)e->event,
                         index, word(AUDIT_SEAT, status), (ll)hold, (ll)s->sold);
    else if (!h || h->booking != BOOKING_CONFIRMED)
        verify_violation(e->report, VERIFY_SALES,
                         "event %lld, seat %u: sold by booking %lld, which is not confirmed",
                         (ll)e->event, index, (ll)s->sold);
}

/* The live hold that lists the seat must own it. */
static void check_claim(struct event_state *e, uint32_t index, int status, int64_t hold)
{
    int64_t claim = e->seats[index].claim;
    struct hold_state *h = claim ? verify_hold(e, claim) : NULL;
    if (!h)
        return;
    int wanted = h->status == HOLD_ACTIVE ? SEAT_HELD : SEAT_BOOKED;
    if (status != wanted || hold != claim)
        report_hold(e, h, "it is %s, but its seat %u is %s by hold %lld",
                    word(AUDIT_HOLD, h->status), index, word(AUDIT_SEAT, status), (ll)hold);
}

void verify_seat(struct event_state *e, int64_t key, int status, int64_t hold, int64_t fence)
{
    uint32_t index = SEAT_INDEX(key);
    verify_count(e, VERIFY_SEAT_OWNER);
    verify_count(e, VERIFY_FOLD_SEATS);
    verify_count(e, VERIFY_FENCE_CLOCK);
    if (fence > e->clock.fence)
        verify_violation(e->report, VERIFY_FENCE_CLOCK,
                         "event %lld, seat %u: fence %lld, the clock's is %lld", (ll)e->event,
                         index, (ll)fence, (ll)e->clock.fence);
    if (index >= e->n_seats) {
        verify_violation(e->report, VERIFY_STRAYS, "event %lld has %u seats, and a row for seat %u",
                         (ll)e->event, e->n_seats, index);
        return;
    }
    struct seat_state *s = &e->seats[index];
    s->seen = true;
    if (status != s->status || hold != s->hold || fence != s->fence ||
        (status != SEAT_BOOKED && status != SEAT_BLOCKED))
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seat %u: its row says %s by hold %lld, fence %lld; "
                         "the log says %s by hold %lld, fence %lld",
                         (ll)e->event, index, word(AUDIT_SEAT, status), (ll)hold, (ll)fence,
                         word(AUDIT_SEAT, s->status), (ll)s->hold, (ll)s->fence);
    if (status == SEAT_HELD || status == SEAT_BOOKED)
        check_owner(e, index, status, hold);
    check_sale(e, index, status, hold);
    check_claim(e, index, status, hold);
}

/* A seat without a row is held if a live hold lists it, else available. */
static void check_no_row(struct event_state *e, uint32_t index)
{
    const struct seat_state *s = &e->seats[index];
    const struct hold_state *h = s->claim ? verify_hold(e, s->claim) : NULL;
    bool held = h && h->status == HOLD_ACTIVE;
    int status = held ? SEAT_HELD : SEAT_AVAILABLE;
    int64_t hold = held ? s->claim : 0;
    verify_count(e, VERIFY_SEAT_OWNER);
    verify_count(e, VERIFY_FOLD_SEATS);
    if (s->status != status || s->hold != hold)
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seat %u: it has no row, and is %s by hold %lld; "
                         "the log says %s by hold %lld",
                         (ll)e->event, index, word(AUDIT_SEAT, status), (ll)hold,
                         word(AUDIT_SEAT, s->status), (ll)s->hold);
    if (s->status == SEAT_HELD)
        check_owner(e, index, SEAT_HELD, s->hold);
    check_sale(e, index, status, hold);
    check_claim(e, index, status, hold);
}

void verify_seats_end(struct event_state *e)
{
    for (uint32_t i = 0; i < e->n_seats; i++) {
        check_head(e, i);
        if (!e->seats[i].seen)
            check_no_row(e, i);
    }
}

/* ---- holds and bookings ---- */

static void check_booking(struct event_state *e, struct hold_state *h)
{
    bool sold = h->booking == BOOKING_CONFIRMED || h->booking == BOOKING_CANCELLED;
    if (h->booking || h->log_booking)
        verify_count(e, VERIFY_FOLD_BOOKINGS);
    if (h->booking != h->log_booking || h->booking_fence != h->log_booking_fence)
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "booking %lld: it is %s, fence %lld; the log says %s, fence %lld",
                         (ll)h->key, word(AUDIT_BOOKING, h->booking), (ll)h->booking_fence,
                         word(AUDIT_BOOKING, h->log_booking), (ll)h->log_booking_fence);
    if (h->status == HOLD_CONFIRMED && !sold)
        report_hold(e, h, "it is confirmed, but its booking is %s",
                    word(AUDIT_BOOKING, h->booking));
    if (h->status != HOLD_CONFIRMED && sold)
        report_hold(e, h, "it is %s, but its booking is %s", word(AUDIT_HOLD, h->status),
                    word(AUDIT_BOOKING, h->booking));
}

static void check_hold(struct event_state *e, struct hold_state *h)
{
    verify_count(e, VERIFY_HOLD_STATUS);
    verify_count(e, VERIFY_FOLD_HOLDS);
    verify_count(e, VERIFY_FENCE_SHARED);
    verify_count(e, VERIFY_FENCE_CLOCK);
    if (h->fence > e->clock.fence)
        verify_violation(e->report, VERIFY_FENCE_CLOCK,
                         "hold %lld: fence %lld, the clock's is %lld", (ll)h->key, (ll)h->fence,
                         (ll)e->clock.fence);
    if (h->status != h->log_status || h->fence != h->log_fence || h->expires_at != h->log_until ||
        h->last_seq != h->log_seq)
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "hold %lld: it is %s, fence %lld, until %lld, seq %lld; the log says %s, "
                         "fence %lld, until %lld, seq %lld",
                         (ll)h->key, word(AUDIT_HOLD, h->status), (ll)h->fence, (ll)h->expires_at,
                         (ll)h->last_seq, word(AUDIT_HOLD, h->log_status), (ll)h->log_fence,
                         (ll)h->log_until, (ll)h->log_seq);
    if (h->log_granted != h->n_seats)
        verify_violation(e->report, VERIFY_HOLD_SEATS,
                         "hold %lld: lists %u seats, was granted %u by the log", (ll)h->key,
                         h->n_seats, h->log_granted);
    else if (h->ungranted)
        verify_violation(e->report, VERIFY_HOLD_SEATS,
                         "hold %lld: lists other places than it was granted by the log",
                         (ll)h->key);
    if (h->astray)
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "hold %lld: it is %s, but not so by the log of its areas", (ll)h->key,
                         word(AUDIT_HOLD, h->status));
    if (h->status < HOLD_ACTIVE || h->status > HOLD_CONFIRMED)
        report_hold(e, h, "its status %d is none", h->status);
    check_booking(e, h);
    if (h->fence != HOLD_FIRST_FENCE(h->key))
        *vec_push(&e->rescued) = h->fence;
}

static int fence_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* First fences differ because keys do.  So only fences that were given later have to be
 * checked. */
static void check_shared(struct event_state *e)
{
    if (e->rescued.n > 1)
        qsort(e->rescued.v, e->rescued.n, sizeof *e->rescued.v, fence_order);
    for (size_t i = 0; i < e->rescued.n; i++) {
        int64_t fence = e->rescued.v[i];
        bool twice = i && e->rescued.v[i - 1] == fence;
        if (twice || fence <= 0 || verify_hold(e, HOLD_KEY(e->event, fence)))
            verify_violation(e->report, VERIFY_FENCE_SHARED, "event %lld: fence %lld has two holds",
                             (ll)e->event, (ll)fence);
    }
}

void verify_holds(struct event_state *e)
{
    for (size_t i = 0; i < e->holds.n; i++)
        check_hold(e, &e->holds.v[i]);
    check_shared(e);
}
