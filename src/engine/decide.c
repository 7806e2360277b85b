/* The rules of holds.  See decide.h for the contract, command.h for the state diagram.  Runs on the
 * worker's thread; cost per command O(its seats), per expired hold O(its seats + log holds). */
#include "engine/decide.h"

#include <string.h>

void decide_begin(struct decision *d)
{
    vec_clear(&d->batch.clocks);
    vec_clear(&d->batch.seats);
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
    vec_close(&d->batch.seats);
    vec_close(&d->batch.holds_new);
    vec_close(&d->batch.holds);
    vec_close(&d->batch.bookings);
    vec_close(&d->batch.sales);
    vec_close(&d->batch.audit);
    vec_close(&d->batch.keys);
    vec_close(&d->rescued);
    vec_close(&d->events);
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

/* ---- single changes: view, batch and log in step ---- */

static struct audit_row *audit(struct decision *d, struct event *e, enum audit_object object,
                               enum audit_cause cause, int from, int to)
{
    struct audit_row *row = vec_push(&d->batch.audit);
    *row = (struct audit_row){.event = e->def->id.key,
                              .seq = ++e->draft.seq,
                              .at = d->now,
                              .object = object,
                              .cause = cause,
                              .item = -1,
                              .from = from,
                              .to = to};
    return row;
}

/* A seat passes to `to`; several changes of one seat in a batch become one write. */
static void change_seat(struct decision *d, struct event *e, uint32_t index, enum seat_status to,
                        int64_t hold, int64_t fence, int64_t until)
{
    struct seat *seat = &e->seats[index];
    struct seat_write *write;
    if (seat->pending) {
        write = &d->batch.seats.v[seat->pending - 1];
    } else {
        write = vec_push(&d->batch.seats);
        seat->pending = (uint32_t)d->batch.seats.n;
        write->seat = SEAT_KEY(e->def->id.key, index);
        write->from = seat->status;
        write->hold_before = seat->hold;
    }
    write->to = to;
    write->hold = hold;
    write->fence = fence;
    write->expires_at = until;
    seat->status = (uint8_t)to;
    seat->hold = hold;
}

/* Seats of a hold.  One that is neither free nor the hold's own is left alone: only a ledger that
 * somebody else wrote to can have one, and then it is theirs. */
static void change_seats(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n,
                         enum seat_status to, enum audit_cause cause, int64_t hold, int64_t fence,
                         int64_t until)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t owner = e->seats[seats[i]].hold;
        if (owner != 0 && owner != hold)
            continue;
        struct audit_row *row = audit(d, e, AUDIT_SEAT, cause, e->seats[seats[i]].status, (int)to);
        row->item = seats[i];
        row->quantity = 1;
        row->hold = hold;
        row->booking = to == SEAT_BOOKED ? hold : 0;
        row->fence = fence;
        row->until = until;
        change_seat(d, e, seats[i], to, to == SEAT_AVAILABLE ? 0 : hold, fence, until);
    }
}

/* The write that carries a live hold's changes of this batch. */
static struct hold_write *hold_write(struct decision *d, struct hold *h)
{
    if (!h->pending) {
        struct hold_write *write = vec_push(&d->batch.holds);
        h->pending = (uint32_t)d->batch.holds.n;
        write->hold = h->key;
        write->from = h->status;
        write->fence_before = h->fence;
        write->expires_before = h->expires_at;
    }
    return &d->batch.holds.v[h->pending - 1];
}

static void change_hold(struct decision *d, struct hold *h, enum hold_status to,
                        enum audit_cause cause, int64_t fence, int64_t expires_at)
{
    struct hold_write *write = hold_write(d, h);
    struct audit_row *row = audit(d, h->event, AUDIT_HOLD, cause, h->status, (int)to);
    row->hold = h->key;
    row->fence = fence;
    row->until = expires_at;
    row->quantity = h->n_seats;
    write->to = to;
    write->fence = fence;
    write->expires_at = expires_at;
    h->status = (uint8_t)to;
    h->fence = fence;
    h->expires_at = expires_at;
    if (to == HOLD_ACTIVE)
        view_deadline_moved(d->view, h);
    else
        view_deadline_drop(d->view, h);
}

/* A live hold ends and its seats are free again. */
static void end_hold(struct decision *d, struct hold *h, enum hold_status to,
                     enum audit_cause cause)
{
    change_hold(d, h, to, cause, h->fence, h->expires_at);
    change_seats(d, h->event, h->seats, h->n_seats, SEAT_AVAILABLE, cause, h->key, h->fence, 0);
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

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the commands ---- */

static enum decided create(struct decision *d, struct command *c)
{
    struct event *e = c->event;
    if (atomic_load_explicit(&e->status, memory_order_relaxed) == EVENT_CLOSED) {
        c->status = HF_EVENT_CLOSED;
        return DECIDED;
    }
    expire_owners(d, e, c->seats, c->n_seats);
    int64_t amount = 0;
    c->n_taken = 0;
    for (uint32_t i = 0; i < c->n_seats; i++) {
        if (e->seats[c->seats[i]].status != SEAT_AVAILABLE)
            c->taken[c->n_taken++] = c->seats[i];
        amount += event_seat_price(e, c->seats[i]);
    }
    if (c->n_taken) {
        c->status = HF_SEAT_TAKEN;
        return DECIDED;
    }
    int64_t fence = ++e->draft.fence;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    int64_t ttl_ms = c->ttl_ms ? c->ttl_ms : e->def->hold_ttl_ms;
    c->hold = (struct hold_row){
        .id.key = HOLD_KEY(e->def->id.key, fence),
        .event = e->def->id.key,
        .fence = fence,
        .amount = amount,
        .created_at = d->now,
        .expires_at = d->now + min64(ttl_ms, e->def->hold_max_ms),
        .max_expires_at = d->now + e->def->hold_max_ms,
        .status = HOLD_ACTIVE,
        .owner = c->owner,
        .owner_len = c->owner_len,
        .metadata = c->metadata,
        .metadata_len = c->metadata_len,
        .seats = c->seats,
        .n_seats = c->n_seats,
    };
    random_bytes(d->random, c->hold.id.secret, ID_SECRET_SIZE);
    *vec_push(&d->batch.holds_new) = c->hold;
    view_hold_add(d->view, e, &c->hold);
    struct audit_row *row = audit(d, e, AUDIT_HOLD, CAUSE_HOLD, HOLD_NONE, HOLD_ACTIVE);
    row->hold = c->hold.id.key;
    row->fence = fence;
    row->until = c->hold.expires_at;
    row->quantity = c->n_seats;
    change_seats(d, e, c->seats, c->n_seats, SEAT_HELD, CAUSE_HOLD, c->hold.id.key, fence,
                 c->hold.expires_at);
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

static void confirm_sale(struct decision *d, struct command *c, enum audit_cause cause)
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
    };
    random_bytes(d->random, c->booking.id.secret, ID_SECRET_SIZE);
    memcpy(c->booking.hold_secret, c->hold.id.secret, ID_SECRET_SIZE);
    *vec_push(&d->batch.bookings) = c->booking;
    struct audit_row *row =
        audit(d, c->event, AUDIT_BOOKING, cause, BOOKING_NONE, BOOKING_CONFIRMED);
    row->hold = row->booking = key;
    row->fence = fence;
    row->quantity = c->hold.n_seats;
    change_seats(d, c->event, c->hold.seats, c->hold.n_seats, SEAT_BOOKED, cause, key, fence, 0);
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
        struct audit_row *row = audit(d, e, AUDIT_HOLD, CAUSE_RESCUE, HOLD_EXPIRED, HOLD_CONFIRMED);
        row->hold = c->hold.id.key;
        row->fence = fence;
        row->until = c->hold.expires_at;
        row->quantity = c->hold.n_seats;
    }
    c->hold.fence = fence;
    *vec_push(&d->rescued) = c->hold.id.key;
    confirm_sale(d, c, CAUSE_RESCUE);
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
    confirm_sale(d, c, CAUSE_CONFIRM);
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
    if (h && h->status == HOLD_ACTIVE) {
        end_hold(d, h, HOLD_RELEASED, CAUSE_RELEASE);
        c->status = HF_NO_CONTENT;
        return DECIDED;
    }
    enum hold_status status = h ? (enum hold_status)h->status : c->hold.status;
    c->status = status == HOLD_RELEASED ? HF_NO_CONTENT : refusal_of(status);
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
        return release(d, c, h);
    default:
        return confirm(d, c, h);
    }
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
    row->http_status = c->http_status;
    row->body = c->body.data;
    row->body_len = c->body.len;
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
    c->http_status = stored->http_status;
    c->body.len = 0;
    buf_put(&c->body, stored->body, stored->body_len);
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
    if (!stored->http_status)
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
        return on_hold(d, c);
    default:
        hf_check(!"a command that is not decided here");
        return DECIDED;
    }
}

/* ---- after the commit, or instead of it ---- */

bool decide_has_effects(const struct decision *d) { return d->batch.audit.n || d->batch.keys.n; }

static int seat_write_order(const void *a, const void *b)
{
    const struct seat_write *x = a, *y = b;
    return (x->seat > y->seat) - (x->seat < y->seat);
}

/* Ascending keys: the ledger's pages are met in order, and an event's seats stand together. */
void decide_seal(struct decision *d)
{
    if (d->batch.seats.n > 1)
        qsort(d->batch.seats.v, d->batch.seats.n, sizeof *d->batch.seats.v, seat_write_order);
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        if (e->draft.seq == e->clock.seq)
            continue;
        e->draft.now = d->now;
        *vec_push(&d->batch.clocks) = (struct clock_write){.before = e->clock, .after = e->draft};
    }
}

static struct event *event_of_seat(const struct decision *d, int64_t seat)
{
    return view_event(d->view, seat >> 32);
}

void decide_publish(struct decision *d)
{
    struct event *locked = NULL;
    for (size_t i = 0; i < d->batch.seats.n; i++) {
        const struct seat_write *w = &d->batch.seats.v[i];
        struct event *e = event_of_seat(d, w->seat);
        hf_check(e);
        if (e != locked) {
            if (locked)
                pthread_mutex_unlock(&locked->lock);
            pthread_mutex_lock(&e->lock);
            locked = e;
            atomic_store_explicit(&e->seq, e->draft.seq, memory_order_release);
        }
        event_show_seat(e, SEAT_INDEX(w->seat), w->to == SEAT_HELD ? w->expires_at : 0);
        if (w->to != w->from) /* not a renewal, nor a seat that changed hands within the batch */
            feed_put(&e->feed, &(struct change){.seq = e->draft.seq,
                                                .item = SEAT_INDEX(w->seat),
                                                .state = (uint32_t)w->to});
        e->seats[SEAT_INDEX(w->seat)].pending = 0;
    }
    if (locked)
        pthread_mutex_unlock(&locked->lock);
    for (size_t i = 0; i < d->batch.holds.n; i++) {
        struct hold *h = view_hold(d->view, d->batch.holds.v[i].hold);
        if (!h)
            continue;
        h->pending = 0;
        if (h->status != HOLD_ACTIVE)
            view_hold_remove(d->view, h);
    }
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        e->clock = e->draft;
        atomic_store_explicit(&e->seq, e->clock.seq, memory_order_release);
    }
}

void decide_undo(struct decision *d)
{
    for (size_t i = 0; i < d->batch.holds_new.n; i++) {
        struct hold *h = view_hold(d->view, d->batch.holds_new.v[i].id.key);
        if (h)
            view_hold_remove(d->view, h);
    }
    for (size_t i = 0; i < d->batch.holds.n; i++) {
        const struct hold_write *w = &d->batch.holds.v[i];
        struct hold *h = view_hold(d->view, w->hold);
        if (!h)
            continue;
        view_deadline_drop(d->view, h);
        h->pending = 0;
        h->status = (uint8_t)w->from;
        h->fence = w->fence_before;
        h->expires_at = w->expires_before;
        view_deadline_put(d->view, h);
    }
    for (size_t i = 0; i < d->batch.seats.n; i++) {
        const struct seat_write *w = &d->batch.seats.v[i];
        struct seat *seat = &event_of_seat(d, w->seat)->seats[SEAT_INDEX(w->seat)];
        seat->pending = 0;
        seat->status = (uint8_t)w->from;
        seat->hold = w->hold_before;
    }
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->draft = d->events.v[i]->clock;
}
