/* What buyers and sellers do with bookings that are paid: making them, of one hold or of several,
 * refunds, cancelling.  See decide.h.  On the worker's thread. */
#include <stdlib.h>
#include <string.h>

#include "rules/decide_money.h"

#define TIME_TO_PAY_MS 60000 /* a buyer needs this long, or a quarter of the TTL */

/* ---- making a booking ---- */

/* How long such a hold lasts, unless its request said otherwise. */
static int64_t usual_ttl(const struct event *e, const struct hold *h)
{
    const struct event_terms *t = e->terms;
    return h->wait && t->offer_ttl_ms ? min64(t->hold_ttl_ms, t->offer_ttl_ms) : t->hold_ttl_ms;
}

static enum verdict check_book(struct decision *d, struct event *e, struct booking_create *op,
                               const struct hold *h, int64_t amount, int64_t *ret_expires_at)
{
    if (op->amount_min < 0)
        return VERDICT_PAYMENTS_OFF;
    if (amount < op->amount_min)
        return VERDICT_AMOUNT_TOO_SMALL;
    if (op->money.payments.n >= BOOKINGS_PER_HOLD_MAX)
        return VERDICT_TOO_MANY_BOOKINGS;
    int64_t needed_ms = min64(TIME_TO_PAY_MS, usual_ttl(e, h) / 4);
    int64_t expires_at = min64(d->now + e->terms->hold_ttl_ms, h->max_expires_at);
    *ret_expires_at = expires_at > h->expires_at ? expires_at : h->expires_at;
    return *ret_expires_at - d->now < needed_ms ? VERDICT_RENEWAL_CAP : VERDICT_OK;
}

/* What costs nothing is sold at once. */
static enum verdict sell_free(struct decision *d, struct event *e, struct booking_create *op,
                              struct hold *h)
{
    struct hold_confirm confirm = {.hold = op->hold,
                                   .reference = op->reference,
                                   .reference_len = op->reference_len,
                                   .booking = op->booking};
    enum verdict verdict = decide_sell(d, e, &confirm, h);
    op->hold = confirm.hold;
    op->booking = confirm.booking;
    return verdict;
}

static void new_payment(struct decision *d, struct event *e, struct booking_create *op)
{
    struct payment_row *p = &op->payment;
    *p = (struct payment_row){.id.key = op->hold.row.id.key,
                              .payment = money_number(e),
                              .amount = op->hold.row.amount,
                              .created_at = d->now,
                              .updated_at = d->now,
                              .status = PAYMENT_CREATING,
                              .captures_by_hand = op->captures_by_hand};
    random_bytes(d->random, p->id.secret, ID_SECRET_SIZE);
    memcpy(p->currency, e->def->currency, sizeof p->currency);
    p->poll_at =
        payment_poll_at(p, &(struct payment_balance){0}, op->hold.row.expires_at, true, d->now);
    *vec_push(&d->batch.payments_new) = *p;
    struct job_row *job = money_put_job(d, JOB_CREATE, p->id.key, p->payment);
    job->payment_no = p->payment;
    job->amount = p->amount;
    job->leased_until = d->job_lease_ms ? d->now + d->job_lease_ms : 0;
    job->payment = p->id;
    memcpy(job->currency, p->currency, sizeof job->currency);
    if (op->email && op->email_len < sizeof job->email)
        memcpy(job->email, op->email, op->email_len);
    job->booked_at = d->now;
    job->hold_expires_at = op->hold.row.expires_at;
    job->payment_status = p->status;
    job->captures_by_hand = p->captures_by_hand;
}

/* ---- several holds ---- */

/* The holds that a booking names; `live` is NULL for one that is a part of another of them. */
struct basket {
    struct named_hold *holds[HOLDS_PER_BOOKING_MAX];
    struct booking_row *bookings[HOLDS_PER_BOOKING_MAX];
    struct money *money[HOLDS_PER_BOOKING_MAX];
    struct hold *live[HOLDS_PER_BOOKING_MAX];
    size_t n;
};

static void fill_basket(struct booking_create *op, struct basket *ret)
{
    *ret = (struct basket){
        .holds = {&op->hold}, .bookings = {&op->booking}, .money = {&op->money}, .n = 1};
    for (size_t i = 0; i < op->n_others; i++, ret->n++) {
        ret->holds[ret->n] = &op->others[i].hold;
        ret->bookings[ret->n] = &op->others[i].booking;
        ret->money[ret->n] = &op->others[i].money;
    }
}

static enum verdict conflict(struct booking_create *op, const char *what)
{
    op->conflict = what;
    return VERDICT_INVALID_REQUEST;
}

static bool same_owner(const struct hold_row *a, const struct hold_row *b)
{
    return !a->owner == !b->owner && a->owner_len == b->owner_len &&
           (!a->owner || memcmp(a->owner, b->owner, a->owner_len) == 0);
}

/* Was the hold merged into another of the basket?  Then it is booked with that one. */
static bool is_part(const struct basket *b, const struct named_hold *named)
{
    for (size_t i = 0; i < b->n && named->row.carrier.id.key; i++)
        if (b->holds[i]->id.key == named->row.carrier.id.key)
            return true;
    return false;
}

/* May this hold be booked, alone or with the others? */
static enum verdict check_hold(struct decision *d, struct event *e, struct booking_create *op,
                               struct basket *b, size_t index)
{
    struct named_hold *named = b->holds[index];
    const struct hold_row *row = &named->row;
    if (!row->id.key || !id_secret_equal(row->id.secret, named->id.secret))
        return VERDICT_NO_SUCH_HOLD;
    if (row->event != e->def->id.key) /* and not one of this batch */
        return conflict(op, "holds must be of one event");
    if (is_part(b, named))
        return VERDICT_OK;
    enum verdict verdict = decide_find_hold(d, named, &b->live[index]);
    if (verdict != VERDICT_OK)
        return verdict;
    if (row->status == HOLD_CONFIRMED || b->bookings[index]->status == BOOKING_PENDING)
        return VERDICT_BOOKING_EXISTS;
    if (row->status != HOLD_ACTIVE)
        return decide_refusal_of(row->status);
    if (!same_owner(row, &op->hold.row))
        return conflict(op, "holds must be of one owner");
    if (row->channel != op->hold.row.channel)
        return conflict(op, "holds must be of one channel");
    if (!b->live[index])
        return VERDICT_INTERNAL;
    return b->n > 1 && !decide_owns_seats(b->live[index]) ? VERDICT_SEAT_SOLD : VERDICT_OK;
}

/* All or nothing (I6): every hold is checked before anything changes. */
static enum verdict check_holds(struct decision *d, struct event *e, struct booking_create *op,
                                struct basket *b)
{
    op->refused = NULL;
    for (size_t i = 0; i < b->n; i++) {
        enum verdict verdict = check_hold(d, e, op, b, i);
        if (verdict == VERDICT_OK)
            continue;
        op->refused = b->n > 1 ? b->holds[i] : NULL;
        return verdict;
    }
    return e->status_draft == EVENT_CANCELLED ? VERDICT_EVENT_CANCELLED : VERDICT_OK;
}

static bool ends_before(const struct hold *a, const struct hold *b)
{
    return a->max_expires_at != b->max_expires_at ? a->max_expires_at < b->max_expires_at
                                                  : a->key < b->key;
}

static void swap_holds(struct basket *b, size_t i, size_t k)
{
    const struct named_hold hold = *b->holds[i];
    const struct booking_row booking = *b->bookings[i];
    const struct money money = *b->money[i];
    struct hold *live = b->live[i];
    *b->holds[i] = *b->holds[k];
    *b->bookings[i] = *b->bookings[k];
    *b->money[i] = *b->money[k];
    b->live[i] = b->live[k];
    *b->holds[k] = hold;
    *b->bookings[k] = booking;
    *b->money[k] = money;
    b->live[k] = live;
}

/* Makes that hold the first which may last least, so that no place is held for longer than its own
 * hold could have been.  The others follow by their keys. */
static void choose_carrier(struct basket *b)
{
    size_t first = 0;
    for (size_t i = 1; i < b->n; i++)
        if (b->live[i] && (!b->live[first] || ends_before(b->live[i], b->live[first])))
            first = i;
    if (first)
        swap_holds(b, 0, first);
    for (size_t i = 2; i < b->n; i++)
        for (size_t k = i; k > 1 && b->holds[k]->id.key < b->holds[k - 1]->id.key; k--)
            swap_holds(b, k, k - 1);
}

/* The places of all holds together.  Returns false if there are too many. */
static bool draft_basket(const struct event *e, struct booking_create *op, const struct basket *b,
                         struct hold_places_write *ret)
{
    static const struct hold_row nothing = {0};
    const struct hold_row *rows[HOLDS_PER_BOOKING_MAX];
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->live[i])
            rows[n++] = &b->holds[i]->row;
    decide_draft_places(e, rows, n, &nothing, ret);
    free(op->owned); /* of a batch that was taken back */
    op->owned = (void *)(uintptr_t)ret->prices;
    op->shortage.limit = HOLD_PLACES_MAX;
    return places_count(ret->n_seats, ret->areas, ret->n_areas) <= HOLD_PLACES_MAX;
}

static void note_merge(struct decision *d, int64_t hold, int64_t before, int64_t carrier)
{
    *vec_push(&d->batch.merges) =
        (struct hold_merge){.hold = hold, .carrier = carrier, .carrier_before = before};
    *vec_push(&d->unreadable) = hold;
}

/* Releases the hold, whose places the carrier takes next, and what was merged into it before goes
 * with it. */
static void give_up(struct decision *d, const struct basket *b, size_t index)
{
    int64_t carrier = b->holds[0]->id.key;
    const struct booking_row *booking = b->bookings[index];
    decide_end_hold(d, b->live[index], HOLD_RELEASED, CAUSE_BOOK);
    note_merge(d, b->holds[index]->id.key, 0, carrier);
    for (uint32_t i = 0; i < booking->n_merged; i++)
        note_merge(d, booking->merged[i].key, booking->id.key, carrier);
}

/* The places of areas that the carrier gets, in the order in which it lists them then; for free().
 */
static struct area_claim *areas_gained(const struct hold_row *carrier,
                                       const struct hold_places_write *to, uint32_t *ret_n)
{
    struct area_claim *gained = hf_alloc((to->n_areas + (size_t)1) * sizeof *gained);
    *ret_n = 0;
    for (uint32_t i = 0; i < to->n_areas; i++) {
        uint32_t had = area_claim_of(carrier->areas, carrier->n_areas, to->areas[i].area);
        if (to->areas[i].quantity > had)
            gained[(*ret_n)++] =
                (struct area_claim){to->areas[i].area, to->areas[i].quantity - had};
    }
    return gained;
}

/* The types of what the carrier gains, seats and then areas: of each kind, the carrier's own places
 * come first.  For free(). */
static struct price_run *types_gained(const struct hold_row *carrier,
                                      const struct hold_places_write *to, uint32_t *ret_n)
{
    size_t n_max = (size_t)to->n_seats + to->n_areas + to->n_prices + 1;
    struct price_run *gained = hf_alloc(n_max * sizeof *gained), next = {0};
    struct price_reader r = price_reader(to->prices, to->n_prices);
    uint32_t n = 0;
    for (uint32_t i = 0; i < to->n_seats; i++) {
        next.n = price_reader_next(&r, 1, &next.price, &next.type);
        if (i >= carrier->n_seats)
            n = prices_add(gained, n, next);
    }
    for (uint32_t i = 0; i < to->n_areas; i++) {
        uint32_t had = area_claim_of(carrier->areas, carrier->n_areas, to->areas[i].area);
        for (uint32_t left = to->areas[i].quantity; left; left -= next.n) {
            bool is_own = left > to->areas[i].quantity - had;
            uint32_t most = is_own ? left - (to->areas[i].quantity - had) : left;
            next.n = price_reader_next(&r, most, &next.price, &next.type);
            hf_check(next.n); /* there is a price for every place */
            if (!is_own)
                n = prices_add(gained, n, next);
        }
    }
    *ret_n = n;
    return gained;
}

/* Moves the places of all holds of the basket to the carrier; returns its new entry in the view. */
static struct hold *merge(struct decision *d, struct event *e, struct basket *b,
                          const struct hold_places_write *to)
{
    static const struct hold_row nothing = {0};
    struct hold_row *carrier = &b->holds[0]->row;
    struct hold_row added = {.seats = to->seats + carrier->n_seats,
                             .n_seats = to->n_seats - carrier->n_seats};
    struct area_claim *areas = areas_gained(carrier, to, &added.n_areas);
    struct price_run *types = e->terms->types.n ? types_gained(carrier, to, &added.n_prices) : NULL;
    added.areas = areas;
    added.prices = types;
    for (size_t i = 1; i < b->n; i++)
        if (b->live[i])
            give_up(d, b, i);
    struct hold *h =
        decide_move_places(d, e, b->live[0], carrier,
                           &(struct hold_moves){.to = to, .removed = &nothing, .added = &added});
    free(areas);
    free(types);
    return h;
}

/* Lists the ids of all holds whose places the carrier has, but for its own. */
static uint32_t list_merged(struct booking_create *op, const struct basket *b)
{
    uint32_t n = 0, n_max = 0;
    for (size_t i = 0; i < b->n; i++)
        n_max += 1 + b->bookings[i]->n_merged;
    free(op->merged); /* of a batch that was taken back */
    op->merged = hf_alloc(n_max * sizeof *op->merged);
    for (size_t i = 0; i < b->n; i++) {
        if (i && b->live[i])
            op->merged[n++] = b->holds[i]->row.id;
        for (uint32_t k = 0; b->live[i] && k < b->bookings[i]->n_merged; k++)
            op->merged[n++] = b->bookings[i]->merged[k];
    }
    if (n > 1)
        qsort(op->merged, n, sizeof *op->merged, id_order);
    return n;
}

static size_t count_live(const struct basket *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->live[i] != NULL;
    return n;
}

/* Makes the pending booking of op->hold, whose places and expiry are final. */
static void make_booking(struct decision *d, struct event *e, struct booking_create *op,
                         struct hold *h)
{
    struct hold_row *hold = &op->hold.row;
    new_payment(d, e, op);
    if (op->booking.id.key)
        *vec_push(&d->batch.bookings_past) = op->booking.id.key;
    booking_row_close(&op->booking);
    op->booking = decide_new_booking(d, hold, BOOKING_PENDING);
    op->booking.reference = op->reference;
    op->booking.reference_len = op->reference_len;
    op->booking.email = op->email;
    op->booking.email_len = op->email_len;
    op->booking.payment = op->payment.payment;
    *vec_push(&d->batch.bookings_new) = op->booking;
    struct audit_row *row =
        change_log_money(d, e, hold, h, AUDIT_BOOKING, CAUSE_BOOK, BOOKING_NONE, BOOKING_PENDING);
    row->fence = HOLD_FIRST_FENCE(op->payment.payment);
    row->quantity = places_count(hold->n_seats, hold->areas, hold->n_areas);
    change_hold_payment(d, h, op->payment.payment);
    *vec_push(&d->unreadable) = hold->id.key;
}

enum verdict decide_book(struct decision *d, struct event *e, struct booking_create *op)
{
    struct basket b;
    struct hold_row *hold = &op->hold.row;
    struct hold_places_write places = {0};
    int64_t expires_at = 0;
    fill_basket(op, &b);
    enum verdict verdict = check_holds(d, e, op, &b);
    if (verdict != VERDICT_OK)
        return verdict;
    choose_carrier(&b);
    bool merges = count_live(&b) > 1;
    if (merges && !draft_basket(e, op, &b, &places))
        return VERDICT_TOO_MANY_SEATS;
    int64_t amount = merges ? places.amount : hold->amount;
    struct hold *h = b.live[0];
    hf_check(h); /* a basket in which nothing lives was refused */
    if (amount && (verdict = check_book(d, e, op, h, amount, &expires_at)) != VERDICT_OK)
        return verdict;
    uint32_t n_merged = list_merged(op, &b);
    if (merges)
        h = merge(d, e, &b, &places);
    if (!amount) {
        verdict = sell_free(d, e, op, h);
    } else {
        if (expires_at > h->expires_at)
            decide_extend(d, h, expires_at);
        hold->expires_at = h->expires_at;
        hold->last_seq = h->last_seq;
        make_booking(d, e, op, h);
        verdict = VERDICT_CREATED;
    }
    op->booking.merged = op->merged;
    op->booking.n_merged = n_merged;
    return verdict;
}

/* ---- what sellers do ---- */

/* The current payment of the booking, or NULL. */
static struct payment_row *current_payment(const struct booking_row *booking, struct money *money)
{
    for (size_t i = 0; i < money->payments.n; i++)
        if (money->payments.v[i].payment == booking->payment)
            return &money->payments.v[i];
    return NULL;
}

enum verdict decide_refund(struct decision *d, struct event *e, struct booking_refund *op)
{
    struct booking_row *booking = &op->booking;
    if (!booking->id.key || !id_secret_equal(booking->id.secret, op->id.secret))
        return VERDICT_NO_SUCH_BOOKING;
    if (decide_is_unreadable(d, booking->id.key))
        return VERDICT_DEFERRED;
    struct payment_row *p = current_payment(booking, &op->money);
    struct payment_balance b = {0};
    if (p)
        b = payment_balance(p, op->money.refunds.v, op->money.refunds.n);
    op->available = b.received - b.returned - b.owed;
    int64_t amount = op->amount ? op->amount : op->available;
    if (amount <= 0 || amount > op->available || op->money.refunds.n >= REFUNDS_MAX)
        return VERDICT_NOT_REFUNDABLE;
    struct payment_view v = {.event = e,
                             .hold = &op->hold.row,
                             .h = view_hold(d->view, op->hold.id.key),
                             .booking = booking,
                             .payment = p,
                             .money = &op->money,
                             .status_before = p->status,
                             .fence_before = e->draft.fence,
                             .cause = CAUSE_REFUND};
    money_owe_refund(d, &v, amount, d->now);
    money_settle(d, &v);
    return VERDICT_OK;
}

/* Are the places those of the booking?  A pending one has them from the authorization of its card
 * to the capture: one whose capture brought a wrong amount has given them back. */
static bool has_places(const struct payment_view *v)
{
    return v->booking->status == BOOKING_CONFIRMED ||
           (v->payment && v->payment->status == PAYMENT_CAPTURING);
}

/* Ends the hold of a pending booking, or frees the places of one that has them. */
static void free_booking(struct decision *d, struct payment_view *v, bool frees)
{
    if (v->hold->status == HOLD_CONFIRMED) {
        if (frees)
            decide_free_places(d, v->event, v->hold, CAUSE_CANCEL);
    } else if (v->h && v->h->status == HOLD_ACTIVE) {
        change_hold_payment(d, v->h, 0); /* money_settle owes the cancel, once */
        decide_end_hold(d, v->h, HOLD_RELEASED, CAUSE_CANCEL);
        v->hold->status = HOLD_RELEASED;
        v->hold->last_seq = v->h->last_seq;
    }
}

enum verdict decide_cancel(struct decision *d, struct event *e, struct booking_cancel *op)
{
    struct booking_row *booking = &op->booking;
    struct hold *h = view_hold(d->view, op->hold.id.key);
    if (!booking->id.key || !id_secret_equal(booking->id.secret, op->id.secret))
        return VERDICT_NO_SUCH_BOOKING;
    if (decide_is_unreadable(d, booking->id.key))
        return VERDICT_DEFERRED;
    if (booking->status == BOOKING_CANCELLED || booking->status == BOOKING_FAILED)
        return VERDICT_OK;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now) {
        decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
        return VERDICT_DEFERRED;
    }
    struct payment_view v = {.event = e,
                             .hold = &op->hold.row,
                             .h = h,
                             .booking = booking,
                             .payment = current_payment(booking, &op->money),
                             .money = &op->money,
                             .fence_before = e->draft.fence,
                             .cause = CAUSE_CANCEL};
    if (h) {
        v.hold->status = (enum hold_status)h->status;
        v.hold->last_seq = h->last_seq;
    }
    booking->reason = op->reason;
    booking->reason_len = op->reason_len;
    bool frees = has_places(&v);
    money_set_booking(d, &v, BOOKING_CANCELLED);
    free_booking(d, &v, frees);
    if (!v.payment)
        return VERDICT_OK;
    v.status_before = v.payment->status;
    money_settle(d, &v);
    return VERDICT_OK;
}
