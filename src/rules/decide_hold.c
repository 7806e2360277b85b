/* What becomes of a hold: renew, release, and other places (PATCH).  See decide.h.  On the worker's
 * thread. */
#include <stdlib.h>

#include "rules/decide_internal.h"

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

/* What is asked about a hold that was booked with others is refused as if the carrier's booking
 * were its own.  The carrier's status is that of its row, unless this batch changes it. */
static enum verdict judge_merged(struct decision *d, const struct hold_carrier *carrier)
{
    struct hold *h = view_hold(d->view, carrier->id.key);
    if (decide_is_unreadable(d, carrier->id.key) || (h && h->status == HOLD_CONFIRMED))
        return VERDICT_DEFERRED;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now)
        decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
    enum hold_status status = h ? (enum hold_status)h->status : carrier->status;
    return status == HOLD_EXPIRED || status == HOLD_RELEASED ? decide_refusal_of(status)
                                                             : VERDICT_BOOKING_EXISTS;
}

enum verdict decide_find_hold(struct decision *d, struct named_hold *named, struct hold **ret_live)
{
    struct hold *h = view_hold(d->view, named->id.key);
    if (!named->row.id.key || !id_secret_equal(named->row.id.secret, named->id.secret))
        return VERDICT_NO_SUCH_HOLD;
    if (named->row.carrier.id.key)
        return judge_merged(d, &named->row.carrier);
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
    if (verdict == VERDICT_HOLD_RELEASED) /* with the hold that it was booked with */
        return VERDICT_OK;
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

static bool lists(const uint32_t *seats, uint32_t n, uint32_t seat)
{
    for (uint32_t i = 0; i < n; i++)
        if (seats[i] == seat)
            return true;
    return false;
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
        s->available = area_claim_of(h->areas, h->n_areas, op->remove_areas[i].area);
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

static struct price_reader prices_of(const struct hold_row *row)
{
    return (struct price_reader){.run = row->prices, .end = row->prices + row->n_prices};
}

static int64_t price_now(const struct event *e, uint32_t index)
{
    return e->terms->prices.v[index];
}

/* The places of a hold while they are put together.  The lists point into one block of memory,
 * which begins with the prices. */
struct draft {
    const struct event *event;
    const struct hold_row *const *rows;
    size_t n_rows;
    const struct hold_row *removed;
    uint32_t *seats;
    struct area_claim *areas;
    struct price_run *prices;
    uint32_t n_seats, n_areas, n_prices;
};

static void put_run(struct draft *draft, int64_t price, uint32_t n)
{
    draft->n_prices = prices_add(draft->prices, draft->n_prices, price, n);
}

static void draft_seats(struct draft *draft, const struct hold_row *row)
{
    struct price_reader prices = prices_of(row);
    for (uint32_t i = 0; i < row->n_seats; i++) {
        int64_t price = price_now(draft->event, event_seat_category(draft->event, row->seats[i]));
        (void)next_price(&prices, 1, &price);
        if (lists(draft->removed->seats, draft->removed->n_seats, row->seats[i]))
            continue;
        draft->seats[draft->n_seats++] = row->seats[i];
        put_run(draft, price, 1);
    }
}

/* The prices of the first `n` places that the row has of an area.  The prices of its seats, and of
 * the areas that it lists before, are passed over. */
static void draft_area_prices(struct draft *draft, const struct hold_row *row, uint32_t area,
                              uint32_t n)
{
    struct price_reader prices = prices_of(row);
    int64_t price = 0;
    uint32_t before = row->n_seats, got;
    for (uint32_t i = 0; i < row->n_areas && row->areas[i].area != area; i++)
        before += row->areas[i].quantity;
    while (before && (got = next_price(&prices, before, &price)))
        before -= got;
    for (price = price_now(draft->event, event_area_price(draft->event, area)); n; n -= got) {
        got = next_price(&prices, n, &price);
        got = got ? got : n; /* a row without prices */
        put_run(draft, price, got);
    }
}

/* The places of one area in all rows.  What is removed are those that the first row got last. */
static void draft_area(struct draft *draft, uint32_t area)
{
    const struct hold_row *removed = draft->removed;
    uint32_t out = area_claim_of(removed->areas, removed->n_areas, area), sum = 0;
    for (size_t i = 0; i < draft->n_rows; i++) {
        const struct hold_row *row = draft->rows[i];
        uint32_t n = area_claim_of(row->areas, row->n_areas, area) - (i ? 0 : out);
        draft_area_prices(draft, row, area, n);
        sum += n;
    }
    if (sum)
        draft->areas[draft->n_areas++] = (struct area_claim){area, sum};
}

/* Does a row before this one have places of the area? */
static bool is_drafted(const struct draft *draft, size_t row, uint32_t area)
{
    for (size_t i = 0; i < row; i++)
        if (area_claim_of(draft->rows[i]->areas, draft->rows[i]->n_areas, area))
            return true;
    return false;
}

void decide_draft_places(const struct event *e, const struct hold_row *const *rows, size_t n_rows,
                         const struct hold_row *removed, struct hold_places_write *ret)
{
    struct draft draft = {.event = e, .rows = rows, .n_rows = n_rows, .removed = removed};
    size_t n_seats = 0, n_areas = 0, n_prices = 0;
    for (size_t i = 0; i < n_rows; i++) {
        n_seats += rows[i]->n_seats;
        n_areas += rows[i]->n_areas;
        n_prices += (size_t)rows[i]->n_seats + rows[i]->n_areas + rows[i]->n_prices;
    }
    draft.prices = hf_alloc(n_prices * sizeof *draft.prices + n_areas * sizeof *draft.areas +
                            n_seats * sizeof *draft.seats);
    draft.areas = (struct area_claim *)(void *)(draft.prices + n_prices);
    draft.seats = (uint32_t *)(void *)(draft.areas + n_areas);
    for (size_t i = 0; i < n_rows; i++)
        draft_seats(&draft, rows[i]);
    for (size_t i = 0; i < n_rows; i++)
        for (uint32_t k = 0; k < rows[i]->n_areas; k++)
            if (!is_drafted(&draft, i, rows[i]->areas[k].area))
                draft_area(&draft, rows[i]->areas[k].area);
    *ret = (struct hold_places_write){.amount = prices_sum(draft.prices, draft.n_prices),
                                      .seats = draft.seats,
                                      .areas = draft.areas,
                                      .prices = draft.prices,
                                      .n_seats = draft.n_seats,
                                      .n_areas = draft.n_areas,
                                      .n_prices = draft.n_prices};
}

struct hold *decide_move_places(struct decision *d, struct event *e, struct hold *h,
                                struct hold_row *row, const struct hold_moves *moves)
{
    struct hold_places_write to = *moves->to;
    to.hold = h->key;
    to.fence = ++e->draft.fence;
    hf_check(to.fence < (int64_t)1 << HOLD_FENCE_BITS);
    h = change_places(d, h, &to);
    struct transition t = {.to = SEAT_AVAILABLE,
                           .cause = CAUSE_CHANGE,
                           .hold = h->key,
                           .fence = to.fence,
                           .channel = h->channel};
    change_seats(d, e, moves->removed->seats, moves->removed->n_seats, &t);
    change_areas(d, e, moves->removed->areas, moves->removed->n_areas, SEAT_HELD, &t);
    t.to = SEAT_HELD;
    t.until = h->expires_at;
    change_seats(d, e, moves->added->seats, moves->added->n_seats, &t);
    change_areas(d, e, moves->added->areas, moves->added->n_areas, SEAT_AVAILABLE, &t);
    row->fence = to.fence;
    row->last_seq = h->last_seq;
    row->amount = to.amount;
    row->seats = to.seats;
    row->areas = to.areas;
    row->prices = to.prices;
    row->n_seats = to.n_seats;
    row->n_areas = to.n_areas;
    row->n_prices = to.n_prices;
    return h;
}

/* Takes the places out and in, and answers with the hold as it is then. */
static void apply(struct decision *d, struct event *e, struct hold *h, struct hold_change *op)
{
    const struct hold_row removed = {.seats = op->remove,
                                     .areas = op->remove_areas,
                                     .n_seats = op->n_remove,
                                     .n_areas = op->n_remove_areas};
    const struct hold_row added = {
        .seats = op->add, .areas = op->add_areas, .n_seats = op->n_add, .n_areas = op->n_add_areas};
    const struct hold_row *const rows[] = {&op->hold.row, &added};
    struct hold_places_write to;
    decide_draft_places(e, rows, 2, &removed, &to);
    free(op->owned); /* of a batch that was taken back */
    op->owned = (void *)(uintptr_t)to.prices;
    (void)decide_move_places(d, e, h, &op->hold.row,
                             &(struct hold_moves){.to = &to, .removed = &removed, .added = &added});
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
