/* What becomes of a hold: renew, release, and other places (PATCH).  See decide.h.  On the worker's
 * thread. */
#include <stdlib.h>

#include "rules/decide_shared.h"

enum verdict decide_refusal_of(enum hold_status status)
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

bool decide_is_unreadable(const struct decision *d, int64_t hold)
{
    for (size_t i = 0; i < d->unreadable.n; i++)
        if (d->unreadable.v[i] == hold)
            return true;
    return false;
}

enum verdict decide_find_hold(struct decision *d, struct named_hold *named, struct hold **ret_live)
{
    struct hold *h = view_hold(d->view, named->id.key);
    if (!named->row.id.key || !id_secret_equal(named->row.id.secret, named->id.secret))
        return VERDICT_NO_SUCH_HOLD;
    /* A booking that this batch makes can be read from the next one on. */
    if (decide_is_unreadable(d, named->id.key) || (h && h->status == HOLD_CONFIRMED))
        return VERDICT_DEFERRED;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now)
        decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
    if (h) {
        named->row.status = (enum hold_status)h->status;
        named->row.expires_at = h->expires_at;
        named->row.last_seq = h->last_seq;
    }
    *ret_live = h;
    return VERDICT_OK;
}

void decide_extend(struct decision *d, struct hold *h, int64_t expires_at)
{
    const struct transition renewed = {
        .to = SEAT_HELD, .hold = h->key, .fence = h->fence, .until = expires_at};
    change_hold(d, h, HOLD_ACTIVE, CAUSE_RENEW, h->fence, expires_at);
    for (uint32_t i = 0; i < h->n_seats; i++)
        change_seat(d, h->event, h->seats[i], &renewed, NULL);
}

enum verdict decide_renew(struct decision *d, struct event *e, struct hold_renew *op)
{
    struct hold *h;
    enum verdict verdict = decide_find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (!h || h->status != HOLD_ACTIVE)
        return decide_refusal_of(op->hold.row.status);
    if (h->expires_at >= h->max_expires_at)
        return VERDICT_RENEWAL_CAP;
    int64_t ttl_ms = op->ttl_ms ? op->ttl_ms : e->terms->hold_ttl_ms;
    int64_t expires_at = min64(d->now + ttl_ms, h->max_expires_at);
    if (expires_at <= h->expires_at) /* another renewal did as much: nothing is written */
        return VERDICT_OK;
    decide_extend(d, h, expires_at);
    op->hold.row.expires_at = expires_at;
    return VERDICT_OK;
}

enum verdict decide_release(struct decision *d, struct hold_release *op)
{
    struct hold *h;
    enum verdict verdict = decide_find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (h && h->status == HOLD_ACTIVE) {
        decide_end_hold(d, h, HOLD_RELEASED, op->evicts ? CAUSE_EVICT : CAUSE_RELEASE);
        op->hold.row.status = HOLD_RELEASED;
    }
    enum hold_status status = op->hold.row.status;
    return status == HOLD_RELEASED ? VERDICT_OK : decide_refusal_of(status);
}

/* ---- other places ---- */

/* The places of a hold while it is changed: one block of memory. */
struct draft {
    uint32_t *seats;
    struct area_claim *areas;
    struct price_run *prices; /* the block */
    uint32_t n_seats, n_areas, n_prices;
};

static bool lists(const uint32_t *seats, uint32_t n, uint32_t seat)
{
    for (uint32_t i = 0; i < n; i++)
        if (seats[i] == seat)
            return true;
    return false;
}

static uint32_t quantity_of(const struct area_claim *areas, uint32_t n, uint32_t area)
{
    for (uint32_t i = 0; i < n; i++)
        if (areas[i].area == area)
            return areas[i].quantity;
    return 0;
}

/* Does the hold have all that is to be taken out of it? */
static enum verdict check_removed(const struct hold *h, struct hold_change *op)
{
    struct shortage *s = &op->shortage;
    s->n_taken = 0;
    s->short_area = -1;
    for (uint32_t i = 0; i < op->n_remove; i++)
        if (!lists(h->seats, h->n_seats, op->remove[i]))
            s->taken[s->n_taken++] = op->remove[i];
    for (uint32_t i = 0; i < op->n_remove_areas && !s->n_taken && s->short_area < 0; i++) {
        s->available = quantity_of(h->areas, h->n_areas, op->remove_areas[i].area);
        if (s->available < op->remove_areas[i].quantity)
            s->short_area = op->remove_areas[i].area;
    }
    return s->n_taken || s->short_area >= 0 ? VERDICT_NOT_HELD : VERDICT_OK;
}

static enum verdict check_added(struct decision *d, struct event *e, const struct hold *h,
                                struct hold_change *op, int64_t more)
{
    struct shortage *s = &op->shortage;
    if (!op->n_add && !op->n_add_areas)
        return VERDICT_OK;
    if (h->channel && !op->is_seller)
        return VERDICT_SELLER_ONLY;
    enum verdict verdict = decide_check_sales(d, e, s);
    if (verdict == VERDICT_OK && more > 0)
        verdict = decide_check_limits(d, e, h->client ? h->client : op->client, h->owner,
                                      (uint32_t)more, s);
    if (verdict != VERDICT_OK)
        return verdict;
    decide_expire_owners(d, e, op->add, op->n_add);
    verdict = decide_check_areas(d, e, op->add_areas, op->n_add_areas, h->channel, s);
    return verdict == VERDICT_OK ? decide_check_seats(e, op->add, op->n_add, h->channel, s)
                                 : verdict;
}

static void put_run(struct draft *draft, int64_t price, uint32_t n)
{
    draft->n_prices = prices_add(draft->prices, draft->n_prices, price, n);
}

/* Where the prices of a row are being read. */
struct price_reader {
    const struct price_run *run, *end;
    uint32_t used; /* places of `run` that have been read */
};

/* Passes on up to `n` places of the same price; returns how many. */
static uint32_t next_price(struct price_reader *r, uint32_t n, int64_t *ret_price)
{
    while (r->run < r->end && r->used == r->run->n) {
        r->run++;
        r->used = 0;
    }
    if (r->run == r->end)
        return 0;
    uint32_t left = r->run->n - r->used, taken = n < left ? n : left;
    *ret_price = r->run->price;
    r->used += taken;
    return taken;
}

static int64_t price_now(const struct event *e, uint32_t index)
{
    return e->terms->prices.v[index];
}

/* The seats that stay, at their old prices, and then those that are added, at today's. */
static void draft_seats(const struct event *e, const struct hold_row *row, struct price_reader *old,
                        const struct hold_change *op, struct draft *draft)
{
    for (uint32_t i = 0; i < row->n_seats; i++) {
        int64_t price = price_now(e, event_seat_category(e, row->seats[i]));
        (void)next_price(old, 1, &price);
        if (lists(op->remove, op->n_remove, row->seats[i]))
            continue;
        draft->seats[draft->n_seats++] = row->seats[i];
        put_run(draft, price, 1);
    }
    for (uint32_t i = 0; i < op->n_add; i++) {
        draft->seats[draft->n_seats++] = op->add[i];
        put_run(draft, price_now(e, event_seat_category(e, op->add[i])), 1);
    }
}

static void draft_area(const struct event *e, uint32_t area, uint32_t kept, uint32_t added,
                       struct draft *draft)
{
    if (added)
        put_run(draft, price_now(e, event_area_price(e, area)), added);
    if (kept + added)
        draft->areas[draft->n_areas++] = (struct area_claim){area, kept + added};
}

/* Of an area the places that came last go first. */
static void draft_areas(const struct event *e, const struct hold_row *row, struct price_reader *old,
                        const struct hold_change *op, struct draft *draft)
{
    for (uint32_t i = 0; i < row->n_areas; i++) {
        uint32_t area = row->areas[i].area, had = row->areas[i].quantity;
        uint32_t removed = quantity_of(op->remove_areas, op->n_remove_areas, area);
        uint32_t left = had, kept = had - removed;
        int64_t price = price_now(e, event_area_price(e, area));
        for (uint32_t n; left; left -= n) {
            n = next_price(old, left, &price);
            n = n ? n : left; /* a row without prices */
            uint32_t stays = had - left >= kept ? 0 : kept - (had - left);
            put_run(draft, price, stays < n ? stays : n);
        }
        draft_area(e, area, kept, quantity_of(op->add_areas, op->n_add_areas, area), draft);
    }
    for (uint32_t i = 0; i < op->n_add_areas; i++)
        if (!quantity_of(row->areas, row->n_areas, op->add_areas[i].area))
            draft_area(e, op->add_areas[i].area, 0, op->add_areas[i].quantity, draft);
}

static void draft_places(const struct event *e, struct hold_change *op, struct draft *draft)
{
    const struct hold_row *row = &op->hold.row;
    size_t n_seats = (size_t)row->n_seats + op->n_add,
           n_areas = (size_t)row->n_areas + op->n_add_areas;
    size_t n_prices = n_seats + n_areas + row->n_prices;
    struct price_reader old = {.run = row->prices, .end = row->prices + row->n_prices};
    *draft = (struct draft){0};
    draft->prices = hf_alloc(n_prices * sizeof *draft->prices + n_areas * sizeof *draft->areas +
                             n_seats * sizeof *draft->seats);
    draft->areas = (struct area_claim *)(void *)(draft->prices + n_prices);
    draft->seats = (uint32_t *)(void *)(draft->areas + n_areas);
    draft_seats(e, row, &old, op, draft);
    draft_areas(e, row, &old, op, draft);
    free(op->owned); /* of a batch that was taken back */
    op->owned = draft->prices;
}

/* Takes the places out and in, and answers with the hold as it is then. */
static void apply(struct decision *d, struct event *e, struct hold *h, struct hold_change *op)
{
    struct draft draft;
    struct hold_row *row = &op->hold.row;
    draft_places(e, op, &draft);
    const struct hold_places_write to = {.hold = h->key,
                                         .fence = ++e->draft.fence,
                                         .amount = prices_sum(draft.prices, draft.n_prices),
                                         .seats = draft.seats,
                                         .areas = draft.areas,
                                         .prices = draft.prices,
                                         .n_seats = draft.n_seats,
                                         .n_areas = draft.n_areas,
                                         .n_prices = draft.n_prices};
    hf_check(to.fence < (int64_t)1 << HOLD_FENCE_BITS);
    h = change_places(d, h, &to);
    struct transition t = {.to = SEAT_AVAILABLE,
                           .cause = CAUSE_CHANGE,
                           .hold = h->key,
                           .fence = to.fence,
                           .channel = h->channel};
    change_seats(d, e, op->remove, op->n_remove, &t);
    change_areas(d, e, op->remove_areas, op->n_remove_areas, SEAT_HELD, &t);
    t.to = SEAT_HELD;
    t.until = h->expires_at;
    change_seats(d, e, op->add, op->n_add, &t);
    change_areas(d, e, op->add_areas, op->n_add_areas, SEAT_AVAILABLE, &t);
    row->fence = to.fence;
    row->amount = to.amount;
    row->seats = to.seats;
    row->areas = to.areas;
    row->prices = to.prices;
    row->n_seats = to.n_seats;
    row->n_areas = to.n_areas;
    row->n_prices = to.n_prices;
}

/* All or nothing (I6): everything is checked before anything changes. */
enum verdict decide_change(struct decision *d, struct event *e, struct hold_change *op)
{
    struct hold *h;
    enum verdict verdict = decide_find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (!h || h->status != HOLD_ACTIVE)
        return decide_refusal_of(op->hold.row.status);
    if (h->payment)
        return VERDICT_BOOKING_EXISTS;
    if (op->fence != h->fence)
        return VERDICT_STALE_FENCE;
    if ((verdict = check_removed(h, op)) != VERDICT_OK)
        return verdict;
    int64_t has = places_count(h->n_seats, h->areas, h->n_areas);
    int64_t more = (int64_t)places_count(op->n_add, op->add_areas, op->n_add_areas) -
                   places_count(op->n_remove, op->remove_areas, op->n_remove_areas);
    if (has + more <= 0) {
        op->conflict = "nothing would be left in the hold; release it instead";
        return VERDICT_INVALID_REQUEST;
    }
    if (more > 0 && has + more > e->terms->max_per_hold) {
        op->shortage.limit = e->terms->max_per_hold;
        return VERDICT_TOO_MANY_SEATS;
    }
    if ((verdict = check_added(d, e, h, op, more)) != VERDICT_OK)
        return verdict;
    apply(d, e, h, op);
    return VERDICT_OK;
}
