/* The rules of holds.  See decide.h for the contract, operations.h for the state diagram.  Runs on
 * the worker's thread; a command costs O(its seats), an expired hold O(its seats + log holds). */
#include "rules/decide.h"

#include <string.h>

#include "rules/best.h"
#include "rules/change.h"

#define CLIENT_DUE_MAX 1024 /* due holds to look through before an address is refused */

/* Ends a live hold, whose places are free again. */
static void end_hold(struct decision *d, struct hold *h, enum hold_status to,
                     enum audit_cause cause)
{
    const struct transition freed = {
        .to = SEAT_AVAILABLE, .cause = cause, .hold = h->key, .fence = h->fence};
    change_hold(d, h, to, cause, h->fence, h->expires_at);
    change_seats(d, h->event, h->seats, h->n_seats, &freed);
    change_areas(d, h->event, h->areas, h->n_areas, SEAT_HELD, &freed);
    if (to == HOLD_EXPIRED)
        d->expired++;
}

void decide_expire(struct decision *d, struct hold *const *holds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (holds[i]->status == HOLD_ACTIVE && holds[i]->expires_at <= d->now)
            end_hold(d, holds[i], HOLD_EXPIRED, CAUSE_EXPIRE);
}

/* Ends every due hold that owns one of the seats.  Expiry is of whole holds (I4). */
static void expire_owners(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (e->seats[seats[i]].status != SEAT_HELD)
            continue;
        struct hold *owner = view_hold(d->view, seat_hold(e, seats[i]));
        if (owner && owner->status == HOLD_ACTIVE && owner->expires_at <= d->now)
            end_hold(d, owner, HOLD_EXPIRED, CAUSE_EXPIRE);
    }
}

/* Lists up to `max` due holds in d->due; returns how many. */
static size_t list_due(struct decision *d, size_t max)
{
    while (d->due.n < max)
        vec_push(&d->due);
    return view_due(d->view, d->now, d->due.v, max);
}

/* Ends every due hold of the event, however many there are, before a buyer is told that nothing is
 * left.  Does so once per batch; returns whether any hold ended.  O(due holds of all events). */
static bool expire_event(struct decision *d, struct event *e)
{
    uint64_t expired = d->expired;
    if (e->swept_batch == d->batch_no)
        return false;
    e->swept_batch = d->batch_no;
    size_t max = 64, n;
    while ((n = list_due(d, max)) == max) /* until all that are due fit */
        max *= 4;
    for (size_t i = 0; i < n; i++)
        if (d->due.v[i]->event == e)
            end_hold(d, d->due.v[i], HOLD_EXPIRED, CAUSE_EXPIRE);
    return d->expired != expired;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- making a hold ---- */

static enum verdict sold_out(struct shortage *s, int64_t area, int64_t available)
{
    s->short_area = area;
    s->available = available;
    return VERDICT_SOLD_OUT;
}

/* Chooses the seats of a buyer who left the choice to us. */
static enum verdict choose_seats(struct decision *d, struct event *e, struct hold_create *op)
{
    uint32_t available;
    do {
        op->n_seats = op->best.quantity;
        if (best_find(e, &op->best, op->seats, &available))
            return VERDICT_OK;
    } while (expire_event(d, e));
    op->n_seats = 0;
    return sold_out(&op->shortage, -1, available);
}

static int64_t area_free(const struct event *e, uint32_t area)
{
    return e->def->areas.v[area].capacity - e->areas[area].held - e->areas[area].booked;
}

/* Does the area have that many free places, once due holds are ended? (I2) */
static bool area_has(struct decision *d, struct event *e, const struct area_claim *claim)
{
    if (area_free(e, claim->area) < claim->quantity)
        expire_event(d, e);
    return area_free(e, claim->area) >= claim->quantity;
}

static enum verdict check_areas(struct decision *d, struct event *e, struct hold_create *op)
{
    for (uint32_t i = 0; i < op->n_areas; i++)
        if (!area_has(d, e, &op->areas[i]))
            return sold_out(&op->shortage, op->areas[i].area, area_free(e, op->areas[i].area));
    return VERDICT_OK;
}

static enum verdict check_seats(const struct event *e, struct hold_create *op)
{
    struct shortage *s = &op->shortage;
    s->n_taken = 0;
    for (uint32_t i = 0; i < op->n_seats; i++)
        if (e->seats[op->seats[i]].status != SEAT_AVAILABLE)
            s->taken[s->n_taken++] = op->seats[i];
    return s->n_taken ? VERDICT_SEAT_TAKEN : VERDICT_OK;
}

static int64_t price(const struct event *e, const struct hold_create *op)
{
    int64_t amount = 0;
    for (uint32_t i = 0; i < op->n_seats; i++)
        amount += event_seat_price(e, op->seats[i]);
    for (uint32_t i = 0; i < op->n_areas; i++)
        amount += e->def->areas.v[op->areas[i].area].price * op->areas[i].quantity;
    return amount;
}

/* May the address hold `wanted` more places?  Its due holds do not count, swept or not (I4); they
 * may be of events that this batch has not locked, so they are left as they are.  They are looked
 * for only when they would make the difference, and only among CLIENT_DUE_MAX due holds, since a
 * refusal must stay cheap. */
static bool client_has_room(struct decision *d, uint64_t client, uint64_t wanted)
{
    uint64_t all = view_client_places(d->view, client) + wanted, due = 0;
    if (all <= d->client_places_max)
        return true;
    size_t n = list_due(d, CLIENT_DUE_MAX);
    for (size_t i = 0; i < n; i++)
        if (d->due.v[i]->client == client)
            due += places_count(d->due.v[i]->n_seats, d->due.v[i]->areas, d->due.v[i]->n_areas);
    return all - due <= d->client_places_max;
}

static enum verdict check_create(struct decision *d, struct event *e, struct hold_create *op)
{
    if (e->status_draft == EVENT_CLOSED)
        return VERDICT_EVENT_CLOSED;
    uint32_t n_seats = op->best.quantity ? op->best.quantity : op->n_seats;
    if (op->client && d->client_places_max &&
        !client_has_room(d, op->client, places_count(n_seats, op->areas, op->n_areas)))
        return VERDICT_TOO_MANY_HOLDS;
    if (!op->best.quantity)
        expire_owners(d, e, op->seats, op->n_seats);
    enum verdict verdict = check_areas(d, e, op);
    if (verdict == VERDICT_OK && op->best.quantity)
        verdict = choose_seats(d, e, op);
    return verdict == VERDICT_OK ? check_seats(e, op) : verdict;
}

/* The row of a new hold, with the event's next fence. */
static struct hold_row new_hold(struct decision *d, struct event *e, const struct hold_create *op)
{
    int64_t fence = ++e->draft.fence;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    int64_t ttl_ms = op->ttl_ms ? op->ttl_ms : e->def->hold_ttl_ms;
    struct hold_row row = {
        .id.key = HOLD_KEY(e->def->id.key, fence),
        .event = e->def->id.key,
        .fence = fence,
        .amount = price(e, op),
        .created_at = d->now,
        .expires_at = d->now + min64(ttl_ms, e->def->hold_max_ms),
        .max_expires_at = d->now + e->def->hold_max_ms,
        .client = op->client,
        .status = HOLD_ACTIVE,
        .owner = op->owner,
        .owner_len = op->owner_len,
        .metadata = op->metadata,
        .metadata_len = op->metadata_len,
        .seats = op->seats,
        .n_seats = op->n_seats,
        .areas = op->areas,
        .n_areas = op->n_areas,
    };
    random_bytes(d->random, row.id.secret, ID_SECRET_SIZE);
    return row;
}

/* Logs that a hold which has no entry in the view, or none yet, passes to another status. */
static void log_hold(struct decision *d, struct event *e, struct hold_row *row,
                     enum audit_cause cause, enum hold_status from, enum hold_status to)
{
    struct audit_row *logged = change_log(d, e, AUDIT_HOLD, cause, (int)from, (int)to);
    logged->hold = row->id.key;
    logged->fence = row->fence;
    logged->until = row->expires_at;
    logged->quantity = places_count(row->n_seats, row->areas, row->n_areas);
    logged->prev = row->last_seq;
    row->last_seq = logged->seq;
}

enum verdict decide_create(struct decision *d, struct event *e, struct hold_create *op)
{
    enum verdict verdict = check_create(d, e, op);
    if (verdict != VERDICT_OK)
        return verdict;
    op->hold = new_hold(d, e, op);
    struct hold_row *hold = &op->hold;
    const struct transition held = {.to = SEAT_HELD,
                                    .cause = CAUSE_HOLD,
                                    .hold = hold->id.key,
                                    .fence = hold->fence,
                                    .until = hold->expires_at};
    log_hold(d, e, hold, CAUSE_HOLD, HOLD_NONE, HOLD_ACTIVE);
    *vec_push(&d->batch.holds_new) = *hold;
    view_hold_add(d->view, e, hold);
    change_seats(d, e, op->seats, op->n_seats, &held);
    change_areas(d, e, op->areas, op->n_areas, SEAT_AVAILABLE, &held);
    return VERDICT_CREATED;
}

/* ---- what becomes of a hold ---- */

/* What a hold that is no longer live answers to renew and release. */
static enum verdict refusal_of(enum hold_status status)
{
    switch (status) {
    case HOLD_EXPIRED:
        return VERDICT_HOLD_EXPIRED;
    case HOLD_RELEASED:
        return VERDICT_HOLD_RELEASED;
    case HOLD_CONFIRMED:
        return VERDICT_HOLD_CONFIRMED;
    case HOLD_NONE:
    case HOLD_ACTIVE:
        break;
    }
    return VERDICT_INTERNAL;
}

static bool is_rescued(const struct decision *d, int64_t key)
{
    for (size_t i = 0; i < d->rescued.n; i++)
        if (d->rescued.v[i] == key)
            return true;
    return false;
}

/* Finds the named hold as it stands in this batch: expired if it is due, and with its row brought
 * up to what earlier commands of the batch changed.  *ret_live is its entry in the view, or NULL.
 * VERDICT_OK: go on. */
static enum verdict find_hold(struct decision *d, struct named_hold *named, struct hold **ret_live)
{
    struct hold *h = view_hold(d->view, named->id.key);
    if (!named->row.id.key || !id_secret_equal(named->row.id.secret, named->id.secret))
        return VERDICT_NO_SUCH_HOLD;
    /* A booking that this batch makes can be read from the next one on. */
    if (is_rescued(d, named->id.key) || (h && h->status == HOLD_CONFIRMED))
        return VERDICT_DEFERRED;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now)
        end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
    if (h) {
        named->row.status = (enum hold_status)h->status;
        named->row.expires_at = h->expires_at;
    }
    *ret_live = h;
    return VERDICT_OK;
}

enum verdict decide_renew(struct decision *d, struct event *e, struct hold_renew *op)
{
    struct hold *h;
    enum verdict verdict = find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (!h || h->status != HOLD_ACTIVE)
        return refusal_of(op->hold.row.status);
    if (h->expires_at >= h->max_expires_at)
        return VERDICT_RENEWAL_CAP;
    int64_t ttl_ms = op->ttl_ms ? op->ttl_ms : e->def->hold_ttl_ms;
    int64_t expires_at = min64(d->now + ttl_ms, h->max_expires_at);
    if (expires_at <= h->expires_at) /* another renewal did as much: nothing is written */
        return VERDICT_OK;
    const struct transition renewed = {
        .to = SEAT_HELD, .hold = h->key, .fence = h->fence, .until = expires_at};
    change_hold(d, h, HOLD_ACTIVE, CAUSE_RENEW, h->fence, expires_at);
    for (uint32_t i = 0; i < h->n_seats; i++)
        change_seat(d, h->event, h->seats[i], &renewed, NULL);
    op->hold.row.expires_at = expires_at;
    return VERDICT_OK;
}

enum verdict decide_release(struct decision *d, struct hold_release *op)
{
    struct hold *h;
    enum verdict verdict = find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (h && h->status == HOLD_ACTIVE) {
        end_hold(d, h, HOLD_RELEASED, op->evicts ? CAUSE_EVICT : CAUSE_RELEASE);
        op->hold.row.status = HOLD_RELEASED;
    }
    enum hold_status status = op->hold.row.status;
    return status == HOLD_RELEASED ? VERDICT_OK : refusal_of(status);
}

/* ---- selling a hold ---- */

/* Makes the booking.  `from` is what the places are now. */
static enum verdict sell(struct decision *d, struct event *e, struct hold_confirm *op,
                         enum seat_status from, enum audit_cause cause)
{
    struct hold_row *hold = &op->hold.row;
    const struct transition booked = {
        .to = SEAT_BOOKED, .cause = cause, .hold = hold->id.key, .fence = hold->fence};
    op->booking = (struct booking_row){
        .id.key = hold->id.key,
        .event = hold->event,
        .fence = hold->fence,
        .amount = hold->amount,
        .created_at = d->now,
        .status = BOOKING_CONFIRMED,
        .reference = op->reference,
        .reference_len = op->reference_len,
        .seats = hold->seats,
        .n_seats = hold->n_seats,
        .areas = hold->areas,
        .n_areas = hold->n_areas,
    };
    random_bytes(d->random, op->booking.id.secret, ID_SECRET_SIZE);
    memcpy(op->booking.hold_secret, hold->id.secret, ID_SECRET_SIZE);
    *vec_push(&d->batch.bookings) = op->booking;
    struct audit_row *row = change_log(d, e, AUDIT_BOOKING, cause, BOOKING_NONE, BOOKING_CONFIRMED);
    row->hold = row->booking = hold->id.key;
    row->fence = hold->fence;
    row->quantity = places_count(hold->n_seats, hold->areas, hold->n_areas);
    change_seats(d, e, hold->seats, hold->n_seats, &booked);
    change_areas(d, e, hold->areas, hold->n_areas, from, &booked);
    for (uint32_t i = 0; i < hold->n_seats; i++)
        *vec_push(&d->batch.sales) = (struct sale_write){
            .seat = SEAT_KEY(hold->event, hold->seats[i]), .booking = hold->id.key};
    hold->status = HOLD_CONFIRMED;
    return VERDICT_CREATED;
}

static bool places_are_free(struct decision *d, struct event *e, const struct hold_row *hold)
{
    expire_owners(d, e, hold->seats, hold->n_seats);
    for (uint32_t i = 0; i < hold->n_seats; i++)
        if (e->seats[hold->seats[i]].status != SEAT_AVAILABLE)
            return false;
    for (uint32_t i = 0; i < hold->n_areas; i++)
        if (!area_has(d, e, &hold->areas[i]))
            return false;
    return true;
}

/* Sells an expired hold after all if every place is still free: it gets a new fence and is sold at
 * once.  `h` is its entry if it expired in this batch, else NULL. */
static enum verdict rescue(struct decision *d, struct event *e, struct hold_confirm *op,
                           struct hold *h)
{
    struct hold_row *hold = &op->hold.row;
    if (!places_are_free(d, e, hold))
        return VERDICT_HOLD_EXPIRED;
    int64_t fence_before = hold->fence, seq_before = hold->last_seq;
    hold->fence = ++e->draft.fence;
    if (h) {
        change_hold(d, h, HOLD_CONFIRMED, CAUSE_RESCUE, hold->fence, h->expires_at);
    } else {
        log_hold(d, e, hold, CAUSE_RESCUE, HOLD_EXPIRED, HOLD_CONFIRMED);
        *vec_push(&d->batch.holds) = (struct hold_write){.hold = hold->id.key,
                                                         .fence_before = fence_before,
                                                         .fence = hold->fence,
                                                         .expires_at = hold->expires_at,
                                                         .seq_before = seq_before,
                                                         .last_seq = hold->last_seq,
                                                         .from = HOLD_EXPIRED,
                                                         .to = HOLD_CONFIRMED};
    }
    *vec_push(&d->rescued) = hold->id.key;
    return sell(d, e, op, SEAT_AVAILABLE, CAUSE_RESCUE);
}

static bool owns_its_seats(const struct hold *h)
{
    for (uint32_t i = 0; i < h->n_seats; i++)
        if (seat_hold(h->event, h->seats[i]) != h->key)
            return false;
    return true;
}

/* Is the repeated confirmation about the booking that exists?  The fence that a rescue was asked
 * with stays good for asking again.  A confirmation without a reference contradicts none. */
static enum verdict check_repeat(const struct hold_confirm *op)
{
    const struct hold_row *hold = &op->hold.row;
    const struct booking_row *booking = &op->booking;
    if (op->fence != hold->fence && op->fence != HOLD_FIRST_FENCE(hold->id.key))
        return VERDICT_STALE_FENCE;
    if (op->reference && (!booking->reference || op->reference_len != booking->reference_len ||
                          memcmp(op->reference, booking->reference, op->reference_len) != 0))
        return VERDICT_REFERENCE_MISMATCH;
    return VERDICT_OK;
}

enum verdict decide_confirm(struct decision *d, struct event *e, struct hold_confirm *op)
{
    struct hold *h;
    enum verdict verdict = find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    const struct hold_row *hold = &op->hold.row;
    enum hold_status status = hold->status;
    if (status == HOLD_RELEASED || (status == HOLD_EXPIRED && !op->rescue))
        return refusal_of(status);
    if (status == HOLD_CONFIRMED)
        return check_repeat(op);
    if (op->fence != hold->fence)
        return VERDICT_STALE_FENCE;
    if (status == HOLD_EXPIRED)
        return rescue(d, e, op, h);
    if (!h) /* live in the ledger and unknown to the view: a damaged row, which it did not load */
        return VERDICT_INTERNAL;
    if (!owns_its_seats(h))
        return VERDICT_SEAT_SOLD;
    change_hold(d, h, HOLD_CONFIRMED, CAUSE_CONFIRM, h->fence, h->expires_at);
    return sell(d, e, op, SEAT_HELD, CAUSE_CONFIRM);
}

/* ---- what sellers do to an event ---- */

enum verdict decide_block(struct decision *d, struct event *e, struct seats_block *op)
{
    struct transition change = {.to = op->blocks ? SEAT_BLOCKED : SEAT_AVAILABLE,
                                .cause = op->blocks ? CAUSE_BLOCK : CAUSE_UNBLOCK};
    struct shortage *s = &op->shortage;
    expire_owners(d, e, op->seats, op->n_seats);
    s->n_taken = 0;
    for (uint32_t i = 0; i < op->n_seats; i++) {
        uint8_t status = e->seats[op->seats[i]].status;
        if (status == SEAT_HELD || status == SEAT_BOOKED)
            s->taken[s->n_taken++] = op->seats[i];
    }
    if (s->n_taken)
        return VERDICT_SEAT_TAKEN;
    for (uint32_t i = 0; i < op->n_seats; i++) {
        if (e->seats[op->seats[i]].status == change.to)
            continue;
        if (!change.fence) /* one fence for all seats that change, like a hold's */
            change.fence = ++e->draft.fence;
        change_seats(d, e, &op->seats[i], 1, &change);
    }
    return VERDICT_OK;
}

enum verdict decide_sale(struct decision *d, struct event *e, enum event_status to)
{
    if (e->status_draft != to)
        change_event(d, e, to, to == EVENT_OPEN ? CAUSE_OPEN : CAUSE_CLOSE);
    return VERDICT_OK;
}
