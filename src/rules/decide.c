/* The rules of holds.  See decide.h for the contract, command.h for the state diagram.  Runs on the
 * worker's thread; cost per command O(its seats), per expired hold O(its seats + log holds). */
#include "rules/decide.h"

#include <string.h>

#include "rules/change.h"

#define CLIENT_DUE_MAX 1024 /* due holds looked through before an address is refused */

void decide_begin(struct decision *d)
{
    vec_clear(&d->batch.clocks);
    vec_clear(&d->batch.events);
    vec_clear(&d->batch.seats);
    vec_clear(&d->batch.areas);
    vec_clear(&d->batch.holds_new);
    vec_clear(&d->batch.holds);
    vec_clear(&d->batch.bookings);
    vec_clear(&d->batch.sales);
    vec_clear(&d->batch.audit);
    vec_clear(&d->batch.keys);
    vec_clear(&d->rescued);
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->in_batch = false;
    vec_clear(&d->events);
    d->batch_no++;
    d->expired = 0;
}

void decide_close(struct decision *d)
{
    vec_close(&d->batch.clocks);
    vec_close(&d->batch.events);
    vec_close(&d->batch.seats);
    vec_close(&d->batch.areas);
    vec_close(&d->batch.holds_new);
    vec_close(&d->batch.holds);
    vec_close(&d->batch.bookings);
    vec_close(&d->batch.sales);
    vec_close(&d->batch.audit);
    vec_close(&d->batch.keys);
    vec_close(&d->rescued);
    vec_close(&d->events);
    vec_close(&d->due);
}

void decide_add_event(struct decision *d, struct event *e)
{
    if (e->in_batch)
        return;
    e->in_batch = true;
    vec_push(&d->events);
    size_t i = d->events.n - 1;
    for (; i > 0 && d->events.v[i - 1]->def->id.key > e->def->id.key; i--)
        d->events.v[i] = d->events.v[i - 1];
    d->events.v[i] = e;
}

/* A live hold ends and its places are free again. */
static void end_hold(struct decision *d, struct hold *h, enum hold_status to,
                     enum audit_cause cause)
{
    change_hold(d, h, to, cause, h->fence, h->expires_at);
    change_seats(d, h->event, h->seats, h->n_seats, SEAT_AVAILABLE, cause, h->key, h->fence, 0);
    change_areas(d, h->event, h->areas, h->n_areas, SEAT_HELD, SEAT_AVAILABLE, cause, h->key,
                 h->fence, 0);
    if (to == HOLD_EXPIRED)
        d->expired++;
}

void decide_expire(struct decision *d, struct hold *const *holds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (holds[i]->status == HOLD_ACTIVE && holds[i]->expires_at <= d->now)
            end_hold(d, holds[i], HOLD_EXPIRED, CAUSE_EXPIRE);
}

/* Expiry is of whole holds: whoever asks for a seat first ends the due hold it belongs to (I4). */
static void expire_owners(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (e->seats[seats[i]].status != SEAT_HELD)
            continue;
        struct hold *owner = view_hold(d->view, e->seats[seats[i]].hold);
        if (owner && owner->status == HOLD_ACTIVE && owner->expires_at <= d->now)
            end_hold(d, owner, HOLD_EXPIRED, CAUSE_EXPIRE);
    }
}

/* Up to `max` due holds into d->due. */
static size_t list_due(struct decision *d, size_t max)
{
    while (d->due.n < max)
        vec_push(&d->due);
    return view_due(d->view, d->now, d->due.v, max);
}

/* End every due hold of the event, however many: before anybody is told that nothing is left.  Once
 * a batch; O(due holds of all events). */
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

/* ---- the commands ---- */

static void sold_out(struct command *c, int64_t area, int64_t available)
{
    c->status = HF_SOLD_OUT;
    c->short_area = area;
    c->available = available;
}

/* Seats for who left the choice to us; false: answered. */
static bool choose_seats(struct decision *d, struct command *c)
{
    uint32_t available;
    do {
        c->n_seats = c->best.quantity;
        if (best_find(c->event, &c->best, c->seats, &available))
            return true;
    } while (expire_event(d, c->event));
    c->n_seats = 0;
    sold_out(c, -1, available);
    return false;
}

static int64_t area_free(const struct event *e, uint32_t area)
{
    return e->def->areas.v[area].capacity - e->areas[area].held - e->areas[area].booked;
}

/* Are there as many free places, now that due holds are ended? (I2) */
static bool area_has(struct decision *d, struct event *e, const struct area_claim *claim)
{
    if (area_free(e, claim->area) < claim->quantity)
        expire_event(d, e);
    return area_free(e, claim->area) >= claim->quantity;
}

/* Enough places in each area; false: answered. */
static bool areas_suffice(struct decision *d, struct command *c)
{
    for (uint32_t i = 0; i < c->n_areas; i++)
        if (!area_has(d, c->event, &c->areas[i])) {
            sold_out(c, c->areas[i].area, area_free(c->event, c->areas[i].area));
            return false;
        }
    return true;
}

/* False: some seat is not free, c->taken says which. */
static bool seats_are_free(struct command *c)
{
    c->n_taken = 0;
    for (uint32_t i = 0; i < c->n_seats; i++)
        if (c->event->seats[c->seats[i]].status != SEAT_AVAILABLE)
            c->taken[c->n_taken++] = c->seats[i];
    return c->n_taken == 0;
}

static int64_t price(const struct command *c)
{
    int64_t amount = 0;
    for (uint32_t i = 0; i < c->n_seats; i++)
        amount += event_seat_price(c->event, c->seats[i]);
    for (uint32_t i = 0; i < c->n_areas; i++)
        amount += c->event->def->areas.v[c->areas[i].area].price * c->areas[i].quantity;
    return amount;
}

/* May the address hold so many more?  Its due holds do not count, swept or not (I4); they may be of
 * events that this batch has not locked, so they are left as they are.  Looked for only when they
 * would make the difference, and among so many due ones, since a refusal must stay cheap. */
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

/* May the hold be had?  False: c->status says why not. */
static bool may_create(struct decision *d, struct command *c)
{
    struct event *e = c->event;
    if (e->status_draft == EVENT_CLOSED) {
        c->status = HF_EVENT_CLOSED;
        return false;
    }
    uint32_t n_seats = c->best.quantity ? c->best.quantity : c->n_seats;
    if (c->client && d->client_places_max &&
        !client_has_room(d, c->client, places_count(n_seats, c->areas, c->n_areas))) {
        c->status = HF_TOO_MANY_HOLDS;
        return false;
    }
    if (!c->best.quantity)
        expire_owners(d, e, c->seats, c->n_seats);
    if (!areas_suffice(d, c) || (c->best.quantity && !choose_seats(d, c)))
        return false;
    c->status = HF_SEAT_TAKEN;
    return seats_are_free(c);
}

static enum decided create(struct decision *d, struct command *c)
{
    struct event *e = c->event;
    if (!may_create(d, c))
        return DECIDED;
    int64_t fence = ++e->draft.fence;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    int64_t ttl_ms = c->ttl_ms ? c->ttl_ms : e->def->hold_ttl_ms;
    c->hold = (struct hold_row){
        .id.key = HOLD_KEY(e->def->id.key, fence),
        .event = e->def->id.key,
        .fence = fence,
        .amount = price(c),
        .created_at = d->now,
        .expires_at = d->now + min64(ttl_ms, e->def->hold_max_ms),
        .max_expires_at = d->now + e->def->hold_max_ms,
        .client = c->client,
        .status = HOLD_ACTIVE,
        .owner = c->owner,
        .owner_len = c->owner_len,
        .metadata = c->metadata,
        .metadata_len = c->metadata_len,
        .seats = c->seats,
        .n_seats = c->n_seats,
        .areas = c->areas,
        .n_areas = c->n_areas,
    };
    random_bytes(d->random, c->hold.id.secret, ID_SECRET_SIZE);
    *vec_push(&d->batch.holds_new) = c->hold;
    view_hold_add(d->view, e, &c->hold);
    struct audit_row *row = change_log(d, e, AUDIT_HOLD, CAUSE_HOLD, HOLD_NONE, HOLD_ACTIVE);
    row->hold = c->hold.id.key;
    row->fence = fence;
    row->until = c->hold.expires_at;
    row->quantity = places_count(c->n_seats, c->areas, c->n_areas);
    change_seats(d, e, c->seats, c->n_seats, SEAT_HELD, CAUSE_HOLD, c->hold.id.key, fence,
                 c->hold.expires_at);
    change_areas(d, e, c->areas, c->n_areas, SEAT_AVAILABLE, SEAT_HELD, CAUSE_HOLD, c->hold.id.key,
                 fence, c->hold.expires_at);
    c->status = HF_CREATED;
    return DECIDED;
}

/* What a hold that is no longer live answers to renew and release. */
static enum hf_status refusal_of(enum hold_status status)
{
    switch (status) {
    case HOLD_EXPIRED:
        return HF_HOLD_EXPIRED;
    case HOLD_RELEASED:
        return HF_HOLD_RELEASED;
    case HOLD_CONFIRMED:
        return HF_HOLD_CONFIRMED;
    case HOLD_NONE:
    case HOLD_ACTIVE:
        break;
    }
    return HF_INTERNAL;
}

/* `from`: what the places are now. */
static void confirm_sale(struct decision *d, struct command *c, enum seat_status from,
                         enum audit_cause cause)
{
    int64_t key = c->hold.id.key, fence = c->hold.fence;
    c->booking = (struct booking_row){
        .id.key = key,
        .event = c->hold.event,
        .fence = fence,
        .amount = c->hold.amount,
        .created_at = d->now,
        .status = BOOKING_CONFIRMED,
        .reference = c->reference,
        .reference_len = c->reference_len,
        .seats = c->hold.seats,
        .n_seats = c->hold.n_seats,
        .areas = c->hold.areas,
        .n_areas = c->hold.n_areas,
    };
    random_bytes(d->random, c->booking.id.secret, ID_SECRET_SIZE);
    memcpy(c->booking.hold_secret, c->hold.id.secret, ID_SECRET_SIZE);
    *vec_push(&d->batch.bookings) = c->booking;
    struct audit_row *row =
        change_log(d, c->event, AUDIT_BOOKING, cause, BOOKING_NONE, BOOKING_CONFIRMED);
    row->hold = row->booking = key;
    row->fence = fence;
    row->quantity = places_count(c->hold.n_seats, c->hold.areas, c->hold.n_areas);
    change_seats(d, c->event, c->hold.seats, c->hold.n_seats, SEAT_BOOKED, cause, key, fence, 0);
    change_areas(d, c->event, c->hold.areas, c->hold.n_areas, from, SEAT_BOOKED, cause, key, fence,
                 0);
    for (uint32_t i = 0; i < c->hold.n_seats; i++)
        *vec_push(&d->batch.sales) =
            (struct sale_write){.seat = SEAT_KEY(c->hold.event, c->hold.seats[i]), .booking = key};
    c->hold.status = HOLD_CONFIRMED;
    c->status = HF_CREATED;
}

/* An expired hold is sold after all, if every seat is still free: a new fence and the sale at once.
 * `h` is its entry if it expired in this batch, else NULL. */
static enum decided rescue(struct decision *d, struct command *c, struct hold *h)
{
    struct event *e = c->event;
    expire_owners(d, e, c->hold.seats, c->hold.n_seats);
    c->status = HF_HOLD_EXPIRED;
    for (uint32_t i = 0; i < c->hold.n_seats; i++)
        if (e->seats[c->hold.seats[i]].status != SEAT_AVAILABLE)
            return DECIDED;
    for (uint32_t i = 0; i < c->hold.n_areas; i++)
        if (!area_has(d, e, &c->hold.areas[i]))
            return DECIDED;
    int64_t fence = ++e->draft.fence;
    if (h) {
        change_hold(d, h, HOLD_CONFIRMED, CAUSE_RESCUE, fence, h->expires_at);
    } else {
        *vec_push(&d->batch.holds) = (struct hold_write){.hold = c->hold.id.key,
                                                         .fence_before = c->hold.fence,
                                                         .fence = fence,
                                                         .expires_at = c->hold.expires_at,
                                                         .from = HOLD_EXPIRED,
                                                         .to = HOLD_CONFIRMED};
        struct audit_row *row =
            change_log(d, e, AUDIT_HOLD, CAUSE_RESCUE, HOLD_EXPIRED, HOLD_CONFIRMED);
        row->hold = c->hold.id.key;
        row->fence = fence;
        row->until = c->hold.expires_at;
        row->quantity = places_count(c->hold.n_seats, c->hold.areas, c->hold.n_areas);
    }
    c->hold.fence = fence;
    *vec_push(&d->rescued) = c->hold.id.key;
    confirm_sale(d, c, SEAT_AVAILABLE, CAUSE_RESCUE);
    return DECIDED;
}

static enum decided confirm(struct decision *d, struct command *c, struct hold *h)
{
    enum hold_status status = h ? (enum hold_status)h->status : c->hold.status;
    /* The fence a rescue was asked with stays good for asking again. */
    bool fence_fits = c->fence == c->hold.fence || c->fence == HOLD_FIRST_FENCE(c->hold.id.key);
    if (status == HOLD_RELEASED || (status == HOLD_EXPIRED && !c->rescue)) {
        c->status = refusal_of(status);
        return DECIDED;
    }
    if (status == HOLD_CONFIRMED) {
        c->status = fence_fits ? HF_OK : HF_STALE_FENCE;
        return DECIDED;
    }
    if (c->fence != c->hold.fence) {
        c->status = HF_STALE_FENCE;
        return DECIDED;
    }
    if (status == HOLD_EXPIRED)
        return rescue(d, c, h);
    if (!h) { /* live in the ledger, unknown to the view: a row it could not load */
        c->status = HF_INTERNAL;
        return DECIDED;
    }
    for (uint32_t i = 0; i < h->n_seats; i++)
        if (h->event->seats[h->seats[i]].hold != h->key) {
            c->status = HF_SEAT_SOLD;
            return DECIDED;
        }
    change_hold(d, h, HOLD_CONFIRMED, CAUSE_CONFIRM, h->fence, h->expires_at);
    confirm_sale(d, c, SEAT_HELD, CAUSE_CONFIRM);
    return DECIDED;
}

static enum decided renew(struct decision *d, struct command *c, struct hold *h)
{
    if (!h || h->status != HOLD_ACTIVE) {
        c->status = refusal_of(h ? (enum hold_status)h->status : c->hold.status);
        return DECIDED;
    }
    int64_t ttl_ms = c->ttl_ms ? c->ttl_ms : c->event->def->hold_ttl_ms;
    int64_t expires_at = min64(d->now + ttl_ms, h->max_expires_at);
    if (expires_at <= h->expires_at) {
        c->status = HF_RENEWAL_CAP;
        return DECIDED;
    }
    change_hold(d, h, HOLD_ACTIVE, CAUSE_RENEW, h->fence, expires_at);
    for (uint32_t i = 0; i < h->n_seats; i++)
        change_seat(d, h->event, h->seats[i], SEAT_HELD, h->key, h->fence, expires_at);
    c->hold.expires_at = expires_at;
    c->status = HF_OK;
    return DECIDED;
}

static enum decided release(struct decision *d, struct command *c, struct hold *h)
{
    bool evict = c->kind == CMD_HOLD_EVICT;
    if (h && h->status == HOLD_ACTIVE)
        end_hold(d, h, HOLD_RELEASED, evict ? CAUSE_EVICT : CAUSE_RELEASE);
    enum hold_status status = h ? (enum hold_status)h->status : c->hold.status;
    c->hold.status = status;
    c->status = status != HOLD_RELEASED ? refusal_of(status) : evict ? HF_OK : HF_NO_CONTENT;
    return DECIDED;
}

static bool rescued_already(const struct decision *d, int64_t key)
{
    for (size_t i = 0; i < d->rescued.n; i++)
        if (d->rescued.v[i] == key)
            return true;
    return false;
}

static enum decided on_hold(struct decision *d, struct command *c)
{
    struct hold *h = view_hold(d->view, c->id.key);
    if (!c->hold.id.key || !id_secret_equal(c->hold.id.secret, c->id.secret)) {
        c->status = HF_NO_SUCH_HOLD;
        return DECIDED;
    }
    /* Sold by this batch: the booking can be read from the next one on. */
    if (rescued_already(d, c->id.key) || (h && h->status == HOLD_CONFIRMED))
        return DEFERRED;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now)
        end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
    if (h) { /* the row was read before earlier commands of this batch changed it */
        c->hold.status = (enum hold_status)h->status;
        c->hold.expires_at = h->expires_at;
    }
    switch (c->kind) {
    case CMD_HOLD_RENEW:
        return renew(d, c, h);
    case CMD_HOLD_RELEASE:
    case CMD_HOLD_EVICT:
        return release(d, c, h);
    default:
        return confirm(d, c, h);
    }
}

/* ---- what sellers do to an event ---- */

/* All or none.  A seat that is already as wanted is left as it is, so repeating is harmless. */
static enum decided block(struct decision *d, struct command *c)
{
    bool blocks = c->kind == CMD_SEATS_BLOCK;
    enum seat_status to = blocks ? SEAT_BLOCKED : SEAT_AVAILABLE;
    struct event *e = c->event;
    expire_owners(d, e, c->seats, c->n_seats);
    c->n_taken = 0;
    for (uint32_t i = 0; i < c->n_seats; i++) {
        uint8_t status = e->seats[c->seats[i]].status;
        if (status == SEAT_HELD || status == SEAT_BOOKED)
            c->taken[c->n_taken++] = c->seats[i];
    }
    c->status = c->n_taken ? HF_SEAT_TAKEN : HF_OK;
    if (c->n_taken)
        return DECIDED;
    int64_t fence = 0; /* one for all that change, like a hold's */
    for (uint32_t i = 0; i < c->n_seats; i++) {
        if (e->seats[c->seats[i]].status == to)
            continue;
        fence = fence ? fence : ++e->draft.fence;
        change_seats(d, e, &c->seats[i], 1, to, blocks ? CAUSE_BLOCK : CAUSE_UNBLOCK, 0, fence, 0);
    }
    return DECIDED;
}

static enum decided open_or_close(struct decision *d, struct command *c)
{
    bool opens = c->kind == CMD_EVENT_OPEN;
    enum event_status to = opens ? EVENT_OPEN : EVENT_CLOSED;
    if (c->event->status_draft != to)
        change_event(d, c->event, to, opens ? CAUSE_OPEN : CAUSE_CLOSE);
    c->status = HF_OK;
    return DECIDED;
}

/* ---- idempotency keys ---- */

static size_t key_slot(const struct decision *d, const uint8_t hash[KEY_HASH_SIZE], bool *ret_found)
{
    uint64_t start;
    memcpy(&start, hash, sizeof start);
    for (size_t i = start % KEYS_GRANTED_SLOTS;; i = (i + 1) % KEYS_GRANTED_SLOTS) {
        *ret_found = d->keys_granted[i].batch_no == d->batch_no &&
                     memcmp(d->keys_granted[i].hash, hash, KEY_HASH_SIZE) == 0;
        if (*ret_found || d->keys_granted[i].batch_no != d->batch_no)
            return i;
    }
}

void decide_keep_answer(struct decision *d, struct command *c)
{
    bool found;
    size_t slot = key_slot(d, c->key_hash, &found);
    hf_check(!found);
    d->keys_granted[slot].batch_no = d->batch_no;
    memcpy(d->keys_granted[slot].hash, c->key_hash, KEY_HASH_SIZE);
    struct key_row *row = vec_push(&d->batch.keys);
    memcpy(row->hash, c->key_hash, KEY_HASH_SIZE);
    memcpy(row->request, c->request_hash, KEY_HASH_SIZE);
    row->answer_code = c->http_status;
    row->answer = c->body.data;
    row->answer_len = c->body.len;
    row->created_at = d->now;
}

/* A repeat gets the first one's bytes (I8). */
static void replay(struct command *c, const struct key_row *stored)
{
    if (memcmp(stored->request, c->request_hash, KEY_HASH_SIZE) != 0) {
        c->status = HF_KEY_MISMATCH;
        return;
    }
    c->status = HF_OK;
    c->rendered = c->replayed = true;
    c->http_status = stored->answer_code;
    c->body.len = 0;
    buf_put(&c->body, stored->answer, stored->answer_len);
}

enum decided decide_stored(struct decision *d, struct command *c, const struct key_row *stored)
{
    bool granted = false;
    c->now = d->now;
    if (!c->has_key)
        return UNDECIDED;
    key_slot(d, c->key_hash, &granted);
    if (granted)
        return DEFERRED;
    if (!stored->found)
        return UNDECIDED;
    replay(c, stored);
    return DECIDED;
}

enum decided decide_command(struct decision *d, struct command *c, const struct key_row *stored)
{
    enum decided decided = decide_stored(d, c, stored);
    if (decided != UNDECIDED)
        return decided;
    switch (c->kind) {
    case CMD_HOLD_CREATE:
        return create(d, c);
    case CMD_HOLD_RENEW:
    case CMD_HOLD_RELEASE:
    case CMD_HOLD_CONFIRM:
    case CMD_HOLD_EVICT:
        return on_hold(d, c);
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        return block(d, c);
    case CMD_EVENT_OPEN:
    case CMD_EVENT_CLOSE:
        return open_or_close(d, c);
    default:
        hf_check(!"a command that is not decided here");
        return DECIDED;
    }
}

bool decide_has_effects(const struct decision *d) { return d->batch.audit.n || d->batch.keys.n; }
