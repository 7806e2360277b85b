/* The rules of making and expiring holds.  See decide.h for the contract, operations.h for the
 * state diagram.  Runs on the worker's thread; a command costs O(its seats), an expired hold O(its
 * seats + log holds). */
#include <stdlib.h>
#include <string.h>

#include "base/client_number.h"
#include "rules/best.h"
#include "rules/decide_internal.h"

#define CLIENT_DUE_MAX 1024 /* due holds to look through before an address is refused */

void decide_end_hold(struct decision *d, struct hold *h, enum hold_status to,
                     enum audit_cause cause)
{
    const struct transition freed = {.to = SEAT_AVAILABLE,
                                     .cause = cause,
                                     .hold = h->key,
                                     .fence = h->fence,
                                     .channel = h->channel};
    const char *actor = d->actor;
    if (to == HOLD_EXPIRED)
        d->actor = ACTOR_TIMER;
    change_hold(d, h, to, cause, h->fence, h->expires_at);
    change_seats(d, h->event, h->seats, h->n_seats, &freed);
    change_areas(d, h->event, h->areas, h->n_areas, SEAT_HELD, &freed);
    if (h->payment)
        decide_owe_cancel(d, h);
    if (h->wait)
        decide_wait_of_hold(d, h, cause);
    d->actor = actor;
    if (to != HOLD_EXPIRED)
        return;
    decide_notify(d, h->event, NOTICE_HOLD_EXPIRED, h->key, 0, 0);
    d->expired++;
}

static bool is_due(const struct decision *d, const struct hold *h)
{
    return h->status == HOLD_ACTIVE && h->expires_at <= d->now;
}

void decide_expire(struct decision *d, struct hold *const *holds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_due(d, holds[i]))
            decide_end_hold(d, holds[i], HOLD_EXPIRED, CAUSE_EXPIRE);
}

void decide_expire_owners(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (e->seats[seats[i]].status != SEAT_HELD)
            continue;
        struct hold *owner = view_hold(d->view, seat_hold(e, seats[i]));
        if (owner && is_due(d, owner))
            decide_end_hold(d, owner, HOLD_EXPIRED, CAUSE_EXPIRE);
    }
}

/* Lists up to `max` due holds in d->due; returns how many. */
static size_t list_due(struct decision *d, size_t max)
{
    while (d->due.n < max)
        vec_push(&d->due);
    return view_due(d->view, d->now, d->due.v, max);
}

/* Is called before a buyer is told that nothing is left. */
bool decide_expire_event(struct decision *d, struct event *e)
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
            decide_end_hold(d, d->due.v[i], HOLD_EXPIRED, CAUSE_EXPIRE);
    return d->expired != expired;
}

/* ---- is it there? ---- */

static enum verdict sold_out(struct shortage *s, int64_t area, int64_t available)
{
    s->short_area = area;
    s->available = available;
    return VERDICT_SOLD_OUT;
}

int64_t decide_area_free(const struct event *e, uint32_t area, uint32_t channel)
{
    const struct area *a = &e->areas[area];
    return channel ? area_blocked_for(a, channel)
                   : e->def->areas.v[area].capacity - a->held - a->booked - a->blocked;
}

bool decide_area_has(struct decision *d, struct event *e, const struct area_claim *claim,
                     uint32_t channel)
{
    if (decide_area_free(e, claim->area, channel) < claim->quantity)
        decide_expire_event(d, e);
    return decide_area_free(e, claim->area, channel) >= claim->quantity;
}

enum verdict decide_check_areas(struct decision *d, struct event *e, const struct area_claim *areas,
                                uint32_t n, uint32_t channel, struct shortage *s)
{
    for (uint32_t i = 0; i < n; i++)
        if (!decide_area_has(d, e, &areas[i], channel))
            return sold_out(s, areas[i].area, decide_area_free(e, areas[i].area, channel));
    return VERDICT_OK;
}

enum verdict decide_check_seats(const struct event *e, const uint32_t *seats, uint32_t n,
                                uint32_t channel, struct shortage *s)
{
    s->n_taken = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!seat_is_free(&e->seats[seats[i]], channel))
            s->taken[s->n_taken++] = seats[i];
    return s->n_taken ? VERDICT_SEAT_TAKEN : VERDICT_OK;
}

/* Due holds end before a buyer is refused: with them a seat may have a neighbour. */
enum verdict decide_check_lone(struct decision *d, struct event *e,
                               const struct lone_choice *choice, struct shortage *s)
{
    do
        s->n_taken =
            e->terms->lone_seats == LONE_SEATS_REFUSE ? lone_seats(e, choice, s->taken) : 0;
    while (s->n_taken && decide_expire_event(d, e));
    return s->n_taken ? VERDICT_LONE_SEAT : VERDICT_OK;
}

/* Chooses the seats of a buyer who left the choice to us. */
static enum verdict choose_seats(struct decision *d, struct event *e, struct hold_create *op)
{
    uint32_t available;
    op->best.avoids_orphans = e->terms->lone_seats == LONE_SEATS_REFUSE;
    do {
        op->n_seats = op->best.quantity;
        if (best_find(e, &op->best, op->seats, &available))
            return VERDICT_OK;
    } while (decide_expire_event(d, e));
    op->n_seats = 0;
    return sold_out(&op->shortage, -1, available);
}

/* ---- may the buyer have it? ---- */

enum verdict decide_check_sales(const struct decision *d, const struct event *e, struct shortage *s)
{
    const struct event_terms *t = e->terms;
    s->opens_at = s->closes_at = 0;
    if (e->status_draft != EVENT_OPEN)
        return VERDICT_EVENT_CLOSED;
    s->is_early = d->now < t->sales_open_at;
    int64_t end = event_terms_sales_end(t);
    if (!s->is_early && (!end || d->now < end))
        return VERDICT_OK;
    s->opens_at = t->sales_open_at;
    s->closes_at = end;
    return VERDICT_EVENT_CLOSED;
}

/* May the address, or its network, hold `wanted` more places, `max` in all?  Its due holds do not
 * count, swept or not (I4); they may be of events that this batch has not locked, so they are left
 * as they are.  They are looked for only when they would make the difference, and only among
 * CLIENT_DUE_MAX due holds, since a refusal must stay cheap. */
static bool client_has_room(struct decision *d, uint64_t client, uint64_t wanted, uint64_t max)
{
    uint64_t all = view_client_places(d->view, client) + wanted, due = 0;
    if (all <= max)
        return true;
    size_t n = list_due(d, CLIENT_DUE_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct hold *h = d->due.v[i];
        if (h->client == client || client_number_network(h->client) == client)
            due += places_count(h->n_seats, h->areas, h->n_areas);
    }
    return all - due <= max;
}

/* May the owner have `more` places of the event?  Its due holds end first. */
static bool owner_has_room(struct decision *d, struct event *e, uint64_t owner, uint32_t more)
{
    int64_t max = e->terms->max_per_owner;
    if (view_owner_places(d->view, owner) + more <= max)
        return true;
    for (struct hold *h = view_owner_holds(d->view, owner), *next; h; h = next) {
        next = h->owner_next;
        if (is_due(d, h))
            decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
    }
    return view_owner_places(d->view, owner) + more <= max;
}

enum verdict decide_check_limits(struct decision *d, struct event *e, uint64_t client,
                                 uint64_t owner, uint32_t more, struct shortage *s)
{
    uint64_t network = client_number_network(client);
    s->limit = d->client_places_max;
    if (client && s->limit && !client_has_room(d, client, more, (uint64_t)s->limit))
        return VERDICT_TOO_MANY_HOLDS;
    if (network && s->limit && !client_has_room(d, network, more, CLIENT_WIDE * (uint64_t)s->limit))
        return VERDICT_TOO_MANY_HOLDS;
    s->limit = e->terms->max_per_owner;
    if (owner && e->terms->max_per_owner && e->stale) /* see decide_terms */
        return VERDICT_DEFERRED;
    if (owner && e->terms->max_per_owner && !owner_has_room(d, e, owner, more))
        return VERDICT_OWNER_LIMIT;
    return VERDICT_OK;
}

/* ---- prices ---- */

int64_t prices_sum(const struct price_run *runs, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += runs[i].price * runs[i].n;
    return sum;
}

uint32_t prices_add(struct price_run *runs, uint32_t n, struct price_run places)
{
    if (n && runs[n - 1].price == places.price && runs[n - 1].type == places.type) {
        runs[n - 1].n += places.n;
        return n;
    }
    if (places.n)
        runs[n++] = places;
    return n;
}

enum verdict decide_types(const struct event *e, const struct type_runs *types, struct shortage *s)
{
    for (uint32_t i = 0; i < types->n; i++) {
        struct type_run *run = &types->v[i];
        int found = run->id ? event_terms_type(e->terms, run->id, run->id_len) : 0;
        if (found < 0) {
            s->unknown = run;
            return VERDICT_NO_SUCH_TYPE;
        }
        run->type = (uint32_t)found;
    }
    return VERDICT_OK;
}

/* Where runs of types are being read. */
struct type_reader {
    const struct type_runs *runs;
    uint32_t at, used; /* places of runs->v[at] that have been read */
};

/* Passes on up to `n` places of one type; returns how many. */
static uint32_t next_type(struct type_reader *r, uint32_t n, uint32_t *ret_type)
{
    while (r->at < r->runs->n && r->used == r->runs->v[r->at].n) {
        r->at++;
        r->used = 0;
    }
    *ret_type = 0;
    if (r->at == r->runs->n)
        return n;
    const struct type_run *run = &r->runs->v[r->at];
    uint32_t left = run->n - r->used, taken = n < left ? n : left;
    *ret_type = run->type;
    r->used += taken;
    return taken;
}

uint32_t decide_prices(const struct event *e, const struct hold_row *places,
                       const struct type_runs *types, struct price_run *runs)
{
    struct type_reader r = {.runs = types};
    uint32_t n = 0, type;
    for (uint32_t i = 0; i < places->n_seats; i++) {
        (void)next_type(&r, 1, &type);
        int64_t price = event_terms_price(e->terms, event_seat_category(e, places->seats[i]), type);
        n = prices_add(runs, n, (struct price_run){price, 1, type});
    }
    for (uint32_t i = 0; i < places->n_areas; i++)
        for (uint32_t left = places->areas[i].quantity, got; left; left -= got) {
            got = next_type(&r, left, &type);
            int64_t price =
                event_terms_price(e->terms, event_area_price(e, places->areas[i].area), type);
            n = prices_add(runs, n, (struct price_run){price, got, type});
        }
    return n;
}

bool row_seat_price(const struct hold_row *row, uint32_t seat, struct price_run *ret)
{
    struct price_reader r = price_reader(row->prices, row->n_prices);
    for (uint32_t i = 0; i < row->n_seats; i++) {
        int64_t price;
        uint32_t type;
        if (!price_reader_next(&r, 1, &price, &type))
            return false;
        if (row->seats[i] == seat) {
            ret->price = price;
            ret->type = type;
            return true;
        }
    }
    return false;
}

struct price_reader row_area_prices(const struct hold_row *row, uint32_t area, uint32_t *ret_n)
{
    struct price_reader r = price_reader(row->prices, row->n_prices);
    uint32_t before = row->n_seats, got, type;
    int64_t price;
    for (uint32_t i = 0; i < row->n_areas && row->areas[i].area != area; i++)
        before += row->areas[i].quantity;
    while (before && (got = price_reader_next(&r, before, &price, &type)))
        before -= got;
    *ret_n = area_claim_of(row->areas, row->n_areas, area);
    return r;
}

void row_area_types(const struct hold_row *row, uint32_t area, uint32_t ret[TYPES_MAX])
{
    uint32_t n, got;
    struct price_reader r = row_area_prices(row, area, &n);
    memset(ret, 0, TYPES_MAX * sizeof *ret);
    for (; n; n -= got) {
        int64_t price;
        uint32_t type = 0;
        got = price_reader_next(&r, n, &price, &type);
        got = got ? got : n; /* a row without prices */
        ret[type] += got;
    }
}

/* ---- resuming ---- */

static bool has_seat(const struct hold *h, uint32_t seat)
{
    for (uint32_t i = 0; i < h->n_seats; i++)
        if (h->seats[i] == seat)
            return true;
    return false;
}

static bool has_area(const struct hold *h, const struct area_claim *claim)
{
    for (uint32_t i = 0; i < h->n_areas; i++)
        if (h->areas[i].area == claim->area)
            return h->areas[i].quantity == claim->quantity;
    return false;
}

/* The places that are asked for. */
static struct hold_row wanted_places(const struct hold_create *op)
{
    return (struct hold_row){
        .seats = op->seats, .areas = op->areas, .n_seats = op->n_seats, .n_areas = op->n_areas};
}

/* Are the places of the row, which are those that are asked for, of the same types, too?
 * O(places^2). */
static bool has_types(const struct event *e, const struct hold_create *op,
                      const struct hold_row *row)
{
    const struct type_runs types = {op->types, op->n_types};
    struct hold_row wanted = wanted_places(op);
    if (!e->terms->types.n)
        return true;
    struct price_run *runs =
        hf_alloc(((size_t)op->n_seats + op->n_areas + op->n_types) * sizeof *runs);
    wanted.prices = runs;
    wanted.n_prices = decide_prices(e, &wanted, &types, runs);
    bool same = true;
    for (uint32_t i = 0; same && i < op->n_seats; i++) {
        struct price_run has = {0}, asked = {0};
        (void)row_seat_price(row, op->seats[i], &has);
        (void)row_seat_price(&wanted, op->seats[i], &asked);
        same = has.type == asked.type;
    }
    for (uint32_t i = 0; same && i < op->n_areas; i++) {
        uint32_t has[TYPES_MAX], asked[TYPES_MAX];
        row_area_types(row, op->areas[i].area, has);
        row_area_types(&wanted, op->areas[i].area, asked);
        same = memcmp(has, asked, sizeof has) == 0;
    }
    free(runs);
    return same;
}

/* Does the hold have exactly what is asked for, whatever the types? */
static bool is_the_same(const struct hold *h, const struct hold_create *op)
{
    if (h->n_seats != op->n_seats || h->n_areas != op->n_areas || h->channel != op->channel)
        return false;
    for (uint32_t i = 0; i < op->n_seats; i++)
        if (!has_seat(h, op->seats[i]))
            return false;
    for (uint32_t i = 0; i < op->n_areas; i++)
        if (!has_area(h, &op->areas[i]))
            return false;
    return true;
}

/* The newest hold before `before` that may be the owner's and has exactly this; NULL: none. */
static struct hold *find_same(const struct decision *d, const struct event *e,
                              const struct hold_create *op, int64_t before)
{
    struct hold *found = NULL;
    for (struct hold *h = view_owner_holds(d->view, owner_hash(e, op->owner, op->owner_len)); h;
         h = h->owner_next)
        if (h->status == HOLD_ACTIVE && h->expires_at > d->now && h->key < before &&
            (!found || h->key > found->key) && is_the_same(h, op))
            found = h;
    return found;
}

/* Looks for a live hold of the owner that has exactly this.  The view knows only a hash of its
 * owner and no types, so its row is read for the next batch, where labels and types are compared.
 * A hold whose label is another's, or has been erased, or whose types differ, is not looked at
 * again: each try is about an older one, so the tries end.  VERDICT_UNDECIDED: there is none. */
static enum verdict resume(struct decision *d, struct event *e, struct hold_create *op)
{
    const struct hold_row *row = &op->hold;
    struct hold *h = find_same(d, e, op, op->resumes ? op->resumes + 1 : INT64_MAX);
    if (h && h->key == op->resumes && !decide_is_unreadable(d, h->key)) {
        if (row->id.key == h->key && row->owner && row->owner_len == op->owner_len &&
            memcmp(row->owner, op->owner, op->owner_len) == 0 && has_types(e, op, row)) {
            op->hold.expires_at = h->expires_at;
            return VERDICT_OK;
        }
        h = find_same(d, e, op, op->resumes);
    }
    if (!h)
        return VERDICT_UNDECIDED;
    op->resumes = h->key;
    return VERDICT_DEFERRED;
}

/* ---- making a hold ---- */

static enum verdict check_create(struct decision *d, struct event *e, struct hold_create *op)
{
    enum verdict verdict = decide_check_sales(d, e, &op->shortage);
    if (verdict != VERDICT_OK)
        return verdict;
    uint32_t n_seats = op->best.quantity ? op->best.quantity : op->n_seats;
    uint32_t n_places = places_count(n_seats, op->areas, op->n_areas);
    if ((int64_t)n_places > e->terms->max_per_hold) {
        op->shortage.limit = e->terms->max_per_hold;
        return VERDICT_TOO_MANY_SEATS;
    }
    verdict = decide_check_limits(d, e, op->client, owner_hash(e, op->owner, op->owner_len),
                                  n_places, &op->shortage);
    if (verdict != VERDICT_OK)
        return verdict;
    if (!op->best.quantity)
        decide_expire_owners(d, e, op->seats, op->n_seats);
    verdict = decide_check_areas(d, e, op->areas, op->n_areas, op->channel, &op->shortage);
    if (verdict == VERDICT_OK && op->best.quantity)
        return choose_seats(d, e, op);
    if (verdict == VERDICT_OK)
        verdict = decide_check_seats(e, op->seats, op->n_seats, op->channel, &op->shortage);
    if (verdict != VERDICT_OK || op->is_box_office)
        return verdict;
    const struct lone_choice choice = {.add = op->seats, .n_add = op->n_seats};
    return decide_check_lone(d, e, &choice, &op->shortage);
}

/* The row of a new hold, with the event's next fence. */
static struct hold_row new_hold(struct decision *d, struct event *e, struct hold_create *op)
{
    int64_t fence = ++e->draft.fence;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    int64_t ttl_ms = op->ttl_ms ? op->ttl_ms : e->terms->hold_ttl_ms;
    int64_t max_ms = op->wait ? ttl_ms : e->terms->hold_max_ms;
    const struct hold_row places = wanted_places(op);
    const struct type_runs types = {op->types, op->n_types};
    free(op->prices); /* of a batch that was taken back */
    op->prices = hf_alloc(((size_t)op->n_seats + op->n_areas + op->n_types) * sizeof *op->prices);
    uint32_t n_prices = decide_prices(e, &places, &types, op->prices);
    struct hold_row row = {
        .id.key = HOLD_KEY(e->def->id.key, fence),
        .event = e->def->id.key,
        .fence = fence,
        .amount = prices_sum(op->prices, n_prices),
        .created_at = d->now,
        .expires_at = d->now + min64(ttl_ms, max_ms),
        .max_expires_at = d->now + max_ms,
        .client = op->client,
        .channel = op->channel == NO_CHANNEL ? 0 : op->channel,
        .wait = op->wait,
        .owner_number = op->owner_number,
        .status = HOLD_ACTIVE,
        .owner = op->owner,
        .owner_len = op->owner_len,
        .metadata = op->metadata,
        .metadata_len = op->metadata_len,
        .seats = op->seats,
        .n_seats = op->n_seats,
        .areas = op->areas,
        .n_areas = op->n_areas,
        .prices = op->prices,
        .n_prices = n_prices,
    };
    random_bytes(d->random, row.id.secret, ID_SECRET_SIZE);
    return row;
}

void decide_grant(struct decision *d, struct event *e, struct hold_create *op,
                  enum audit_cause cause)
{
    op->hold = new_hold(d, e, op);
    struct hold_row *hold = &op->hold;
    struct price_reader types = price_reader(hold->prices, hold->n_prices);
    const struct transition held = {.to = SEAT_HELD,
                                    .cause = cause,
                                    .hold = hold->id.key,
                                    .fence = hold->fence,
                                    .until = hold->expires_at,
                                    .channel = hold->channel,
                                    .types = e->terms->types.n ? &types : NULL};
    change_log_hold(d, e, hold, cause, HOLD_NONE, HOLD_ACTIVE);
    *vec_push(&d->batch.holds_new) = *hold;
    view_hold_add(d->view, e, hold);
    change_seats(d, e, op->seats, op->n_seats, &held);
    change_areas(d, e, op->areas, op->n_areas, SEAT_AVAILABLE, &held);
}

enum verdict decide_create(struct decision *d, struct event *e, struct hold_create *op)
{
    const struct type_runs named = {op->types, op->n_types};
    enum verdict verdict = decide_types(e, &named, &op->shortage);
    if (verdict != VERDICT_OK)
        return verdict;
    if (op->resume && (verdict = resume(d, e, op)) != VERDICT_UNDECIDED)
        return verdict;
    do
        verdict = check_create(d, e, op);
    while (decide_again(d, e, &verdict));
    if (verdict != VERDICT_OK)
        return verdict;
    hold_row_close(&op->hold); /* one that was read to be resumed, and is another's */
    decide_grant(d, e, op, CAUSE_HOLD);
    return VERDICT_CREATED;
}
