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

/* What a PATCH takes out of a hold and puts in: seats and areas, and the prices of what comes in,
 * which are today's.  Of what goes out, the prices tell only the types. */
struct change_claims {
    struct hold_row added, removed;
    void *block; /* memory of their lists; free() */
};

/* Is the seat one of the hold, and of that type already? */
static bool is_of_type(const struct hold_row *row, uint32_t seat, uint32_t type)
{
    struct price_run has = {0};
    (void)row_seat_price(row, seat, &has);
    return has.type == type && lists(row->seats, row->n_seats, seat);
}

/* Reads what comes in, but for seats that are of the type already.  `runs` has room for the prices
 * of all that is named, twice. */
static void read_added(const struct event *e, const struct hold_change *op, struct price_run *runs,
                       uint32_t *seats, struct hold_row *ret)
{
    const struct type_runs types = {op->add_types, op->n_add_types};
    const struct hold_row all = {
        .seats = op->add, .areas = op->add_areas, .n_seats = op->n_add, .n_areas = op->n_add_areas};
    uint32_t n_all = decide_prices(e, &all, &types, runs);
    uint32_t n_seats = 0, n_runs = 0, n_fresh = op->n_add - op->n_retyped;
    struct price_reader r = price_reader(runs, n_all);
    struct price_run *kept = runs + n_all, next = {0};
    for (uint32_t i = 0; i < op->n_add; i++) {
        next.n = price_reader_next(&r, 1, &next.price, &next.type);
        if (i >= n_fresh && is_of_type(&op->hold.row, op->add[i], next.type))
            continue;
        seats[n_seats++] = op->add[i];
        n_runs = prices_add(kept, n_runs, next);
    }
    while ((next.n = price_reader_next(&r, UINT32_MAX, &next.price, &next.type)))
        n_runs = prices_add(kept, n_runs, next);
    *ret = (struct hold_row){.seats = seats,
                             .areas = op->add_areas,
                             .prices = kept,
                             .n_seats = n_seats,
                             .n_areas = op->n_add_areas,
                             .n_prices = n_runs};
}

/* Reads what goes out.  `runs` has room for one per seat and per run of types. */
static void read_removed(const struct hold_change *op, const struct hold_row *added,
                         struct price_run *runs, uint32_t *seats, struct hold_row *ret)
{
    uint32_t n_seats = 0, n_runs = 0;
    for (uint32_t i = 0; i < op->n_remove; i++) {
        struct price_run was = {0};
        if (i < op->n_retyped && !lists(added->seats, added->n_seats, op->remove[i]))
            continue;
        seats[n_seats++] = op->remove[i];
        (void)row_seat_price(&op->hold.row, op->remove[i], &was);
        n_runs = prices_add(runs, n_runs, (struct price_run){.n = 1, .type = was.type});
    }
    for (uint32_t i = 0; i < op->n_remove_types; i++)
        n_runs = prices_add(
            runs, n_runs,
            (struct price_run){.n = op->remove_types[i].n, .type = op->remove_types[i].type});
    *ret = (struct hold_row){.seats = seats,
                             .areas = op->remove_areas,
                             .prices = runs,
                             .n_seats = n_seats,
                             .n_areas = op->n_remove_areas,
                             .n_prices = n_runs};
}

/* An area may lose places of one type and get places of another. */
static bool types_differ(const struct change_claims *c)
{
    for (uint32_t i = 0; i < c->added.n_areas; i++) {
        uint32_t in[TYPES_MAX], out[TYPES_MAX];
        row_area_types(&c->added, c->added.areas[i].area, in);
        row_area_types(&c->removed, c->added.areas[i].area, out);
        for (size_t type = 0; type < TYPES_MAX; type++)
            if (in[type] && out[type])
                return false;
    }
    return true;
}

/* Reads the claims of the request.  ret->block is freed by the caller in any case. */
static enum verdict read_claims(const struct event *e, struct hold_change *op,
                                struct change_claims *ret)
{
    const struct type_runs in = {op->add_types, op->n_add_types},
                           out = {op->remove_types, op->n_remove_types};
    enum verdict verdict = decide_types(e, &in, &op->shortage);
    if (verdict == VERDICT_OK)
        verdict = decide_types(e, &out, &op->shortage);
    if (verdict != VERDICT_OK)
        return verdict;
    size_t n_in = (size_t)op->n_add + op->n_add_areas + op->n_add_types;
    size_t n_out = (size_t)op->n_remove + op->n_remove_types;
    struct price_run *runs = ret->block =
        hf_alloc((2 * n_in + n_out) * sizeof *runs + (op->n_add + op->n_remove) * sizeof(uint32_t));
    uint32_t *seats = (uint32_t *)(void *)(runs + 2 * n_in + n_out);
    read_added(e, op, runs, seats, &ret->added);
    read_removed(op, &ret->added, runs + 2 * n_in, seats + op->n_add, &ret->removed);
    if (types_differ(ret))
        return VERDICT_OK;
    op->conflict = "add.areas and remove.areas must not name the same area and type";
    return VERDICT_INVALID_REQUEST;
}

/* Does the hold have the places of the area, by their types? */
static bool has_places(const struct hold_row *row, const struct hold_row *removed, uint32_t area,
                       struct shortage *s)
{
    uint32_t has[TYPES_MAX], out[TYPES_MAX];
    row_area_types(row, area, has);
    row_area_types(removed, area, out);
    for (size_t type = 0; type < TYPES_MAX; type++)
        if (has[type] < out[type]) {
            s->available = has[type];
            s->short_area = area;
            return false;
        }
    return true;
}

/* Does the hold have all that is to be taken out of it? */
static enum verdict check_removed(const struct hold_row *row, const struct hold_row *removed,
                                  struct shortage *s)
{
    s->n_taken = 0;
    s->short_area = -1;
    for (uint32_t i = 0; i < removed->n_seats; i++)
        if (!lists(row->seats, row->n_seats, removed->seats[i]))
            s->taken[s->n_taken++] = removed->seats[i];
    for (uint32_t i = 0; i < removed->n_areas && !s->n_taken; i++)
        if (!has_places(row, removed, removed->areas[i].area, s))
            break;
    return s->n_taken || s->short_area >= 0 ? VERDICT_NOT_HELD : VERDICT_OK;
}

/* How many places the area has to give beyond those that it gets back. */
static uint32_t area_gain(const struct change_claims *c, const struct area_claim *in)
{
    uint32_t back = area_claim_of(c->removed.areas, c->removed.n_areas, in->area);
    return in->quantity > back ? in->quantity - back : 0;
}

static bool gains_in_areas(const struct change_claims *c)
{
    for (uint32_t i = 0; i < c->added.n_areas; i++)
        if (area_gain(c, &c->added.areas[i]))
            return true;
    return false;
}

/* Are those places there? */
static enum verdict check_added_areas(struct decision *d, struct event *e, const struct hold *h,
                                      const struct change_claims *c, struct shortage *s)
{
    enum verdict verdict = VERDICT_OK;
    for (uint32_t i = 0; i < c->added.n_areas && verdict == VERDICT_OK; i++) {
        const struct area_claim more = {c->added.areas[i].area, area_gain(c, &c->added.areas[i])};
        if (more.quantity)
            verdict = decide_check_areas(d, e, &more, 1, h->channel, s);
    }
    return verdict;
}

/* A seat that a hold of a channel gives back is not free for everybody. */
static enum verdict check_lone(struct decision *d, struct event *e, const struct hold *h,
                               struct hold_change *op)
{
    const struct lone_choice choice = {.hold = h->key,
                                       .add = op->add,
                                       .n_add = op->n_add - op->n_retyped,
                                       .remove = op->remove + op->n_retyped,
                                       .n_remove = op->n_remove - op->n_retyped};
    return op->is_box_office || h->channel ? VERDICT_OK
                                           : decide_check_lone(d, e, &choice, &op->shortage);
}

/* Seats that the hold keeps as another type need not be free. */
static enum verdict check_added(struct decision *d, struct event *e, const struct hold *h,
                                struct hold_change *op, const struct change_claims *c, int64_t more)
{
    struct shortage *s = &op->shortage;
    uint32_t n_fresh = op->n_add - op->n_retyped;
    if (!n_fresh && !op->n_add_areas)
        return VERDICT_OK;
    if (h->wait && (n_fresh || gains_in_areas(c))) {
        op->conflict = "a hold that the waiting list offered gets no other places";
        return VERDICT_INVALID_REQUEST;
    }
    if (h->channel && !op->is_seller)
        return VERDICT_SELLER_ONLY;
    enum verdict verdict = decide_check_sales(d, e, s);
    if (verdict == VERDICT_OK && more > 0)
        verdict = decide_check_limits(d, e, h->client ? h->client : op->client, h->owner,
                                      (uint32_t)more, s);
    if (verdict != VERDICT_OK)
        return verdict;
    decide_expire_owners(d, e, op->add, n_fresh);
    verdict = check_added_areas(d, e, h, c, s);
    return verdict == VERDICT_OK ? decide_check_seats(e, op->add, n_fresh, h->channel, s) : verdict;
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

static void put_run(struct draft *draft, struct price_run places)
{
    draft->n_prices = prices_add(draft->prices, draft->n_prices, places);
}

static struct price_run price_now(const struct event *e, uint32_t index, uint32_t n)
{
    return (struct price_run){.price = event_terms_price(e->terms, index, 0), .n = n};
}

/* Does a row behind the first one list the seat?  Fills in what it costs there. */
static bool is_kept(const struct draft *draft, uint32_t seat, struct price_run *ret)
{
    for (size_t i = 1; i < draft->n_rows; i++)
        if (row_seat_price(draft->rows[i], seat, ret))
            return true;
    return false;
}

/* A seat of the first row that is removed and kept as another type has its place there. */
static void draft_seats(struct draft *draft, size_t row_index)
{
    const struct hold_row *row = draft->rows[row_index];
    struct price_reader prices = price_reader(row->prices, row->n_prices);
    for (uint32_t i = 0; i < row->n_seats; i++) {
        uint32_t seat = row->seats[i];
        struct price_run run = price_now(draft->event, event_seat_category(draft->event, seat), 1);
        (void)price_reader_next(&prices, 1, &run.price, &run.type);
        if (lists(draft->removed->seats, draft->removed->n_seats, seat) &&
            (row_index || !is_kept(draft, seat, &run)))
            continue;
        draft->seats[draft->n_seats++] = seat;
        put_run(draft, run);
    }
}

/* The prices of the places that the row has of an area: of each type, the first so many. */
static void draft_area_prices(struct draft *draft, const struct hold_row *row, uint32_t area,
                              uint32_t of_type[TYPES_MAX])
{
    uint32_t n, got;
    struct price_reader prices = row_area_prices(row, area, &n);
    for (; n; n -= got) {
        struct price_run run = price_now(draft->event, event_area_price(draft->event, area), 0);
        got = price_reader_next(&prices, n, &run.price, &run.type);
        got = got ? got : n; /* a row without prices */
        run.n = got < of_type[run.type] ? got : of_type[run.type];
        of_type[run.type] -= run.n;
        put_run(draft, run);
    }
}

/* The places of one area in all rows.  What is removed are those that the first row got last, of
 * each type. */
static void draft_area(struct draft *draft, uint32_t area)
{
    uint32_t out[TYPES_MAX], of_type[TYPES_MAX], sum = 0;
    row_area_types(draft->removed, area, out);
    for (size_t i = 0; i < draft->n_rows; i++) {
        row_area_types(draft->rows[i], area, of_type);
        for (size_t type = 0; type < TYPES_MAX; type++) {
            of_type[type] -= i ? 0 : out[type];
            sum += of_type[type];
        }
        draft_area_prices(draft, draft->rows[i], area, of_type);
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
        draft_seats(&draft, i);
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
    struct price_reader types = price_reader(moves->removed->prices, moves->removed->n_prices);
    t.types = e->terms->types.n ? &types : NULL;
    change_seats(d, e, moves->removed->seats, moves->removed->n_seats, &t);
    change_areas(d, e, moves->removed->areas, moves->removed->n_areas, SEAT_HELD, &t);
    types = price_reader(moves->added->prices, moves->added->n_prices);
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
static void apply(struct decision *d, struct event *e, struct hold *h, struct hold_change *op,
                  const struct change_claims *c)
{
    const struct hold_row *const rows[] = {&op->hold.row, &c->added};
    struct hold_places_write to;
    decide_draft_places(e, rows, 2, &c->removed, &to);
    free(op->owned); /* of a batch that was taken back */
    op->owned = (void *)(uintptr_t)to.prices;
    (void)decide_move_places(
        d, e, h, &op->hold.row,
        &(struct hold_moves){.to = &to, .removed = &c->removed, .added = &c->added});
}

/* All or nothing (I6): everything is checked before anything changes.  Nothing is written if
 * nothing changes, since what is to be of another type is of that type already. */
static enum verdict judge_claims(struct decision *d, struct event *e, struct hold *h,
                                 struct hold_change *op, struct change_claims *c)
{
    enum verdict verdict = read_claims(e, op, c);
    if (verdict != VERDICT_OK)
        return verdict;
    const struct hold_row *added = &c->added, *removed = &c->removed;
    if ((verdict = check_removed(&op->hold.row, removed, &op->shortage)) != VERDICT_OK)
        return verdict;
    int64_t has = places_count(h->n_seats, h->areas, h->n_areas);
    int64_t more = (int64_t)places_count(added->n_seats, added->areas, added->n_areas) -
                   places_count(removed->n_seats, removed->areas, removed->n_areas);
    if (has + more <= 0) {
        op->conflict = "nothing would be left in the hold; release it instead";
        return VERDICT_INVALID_REQUEST;
    }
    if (more > 0 && has + more > e->terms->max_per_hold) {
        op->shortage.limit = e->terms->max_per_hold;
        return VERDICT_TOO_MANY_SEATS;
    }
    do {
        verdict = check_added(d, e, h, op, c, more);
        if (verdict == VERDICT_OK)
            verdict = check_lone(d, e, h, op);
    } while (decide_again(d, e, &verdict));
    if (verdict != VERDICT_OK)
        return verdict;
    if (added->n_seats || added->n_areas || removed->n_seats || removed->n_areas)
        apply(d, e, h, op, c);
    return VERDICT_OK;
}

enum verdict decide_change(struct decision *d, struct event *e, struct hold_change *op)
{
    struct hold *h;
    struct change_claims claims = {0};
    enum verdict verdict = decide_find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (!h || h->status != HOLD_ACTIVE)
        return decide_refusal_of(op->hold.row.status);
    if (h->payment)
        return VERDICT_BOOKING_EXISTS;
    if (op->fence != h->fence)
        return VERDICT_STALE_FENCE;
    verdict = judge_claims(d, e, h, op, &claims);
    free(claims.block);
    return verdict;
}
