/* Checks the rules of a shop's day (channels, owners, changed holds, ticket types, cancelled sales,
 * terms) against a model that shares no code with them.  The model counts differently, too: a
 * channel has a quota of places, of which its holds take some, and every place has its own type and
 * price.  Random
 * commands arrive in random batches, some of which fail.  Rules and model must give the same
 * answers and the same places, a failed batch must leave no trace, and the view must equal one that
 * is read again from the rows.
 *
 * test_decide_model.c does the same for everything else.  HF_SEED repeats one stream, HF_STEPS sets
 * its length. */
#include "support/paper.h"

#include <string.h>

#define SEATS 24
#define CAPACITY 14
#define CHANNELS 2 /* 1 and 2; 0 stands for blocked for none */
#define OWNERS 3   /* 0: none */
#define HOLDS_MAX 1024
#define PLACES_MAX 8
#define EPISODE 500
#define BATCH_MAX 8
#define FLOOR 0

static const char *const owner_names[OWNERS] = {NULL, "ada", "bob"};
static const char *const channel_names[CHANNELS + 1] = {NULL, "house", "club"};

/* Seats reduced cost always the same, and a child on the floor costs nothing. */
enum { FULL, REDUCED, CHILD, TYPES };
#define REDUCED_SEAT 1111
static const char *const type_names[TYPES] = {"full", "reduced", "child"};

/* ---- the model ---- */

#define ON_SALE (-1)
enum life { LIVE, EXPIRED, RELEASED, SOLD, CANCELLED };

struct m_hold {
    enum life life;
    int64_t fence, expires_at;
    int channel, owner;
    int n_seats, n_floor;
    uint32_t seats[PLACES_MAX * 2];
    int64_t prices[PLACES_MAX * 2], floor_prices[PLACES_MAX * 2]; /* of each place */
    int types[PLACES_MAX * 2], floor_types[PLACES_MAX * 2];       /* likewise */
    int touched; /* the batch that changed, sold or cancelled it */
};
struct model {
    int64_t now, fence;
    int batch;
    int home[SEATS];  /* ON_SALE, or the channel that it is blocked for */
    int taken[SEATS]; /* 1 + index of the hold that has it; 0: none */
    int quota[CHANNELS + 1];
    int number[CHANNELS + 1]; /* of each channel at the server; 0: it has none yet */
    int n_channels;
    int max_per_owner, max_per_hold, limited_in_batch;
    int64_t seat_price, floor_price;
    bool closed;
    int n_holds;
    struct m_hold holds[HOLDS_MAX];
};

struct op {
    enum command_kind kind;
    int hold, channel, owner;
    int n_seats, n_removed, n_floor, n_floor_removed;
    uint32_t seats[4], removed[4];
    int types[4], floor_type, floor_removed_type;
    uint32_t retyped; /* a seat that the hold is to keep as retyped_as; SEATS: none */
    int retyped_as;
    int64_t fence, price;
    bool is_seller, rescue;
    int limit;
};

static bool m_has_places(const struct m_hold *h) { return h->life == LIVE || h->life == SOLD; }

static int m_floor_free(const struct model *m, int channel)
{
    int n = channel >= 0 ? m->quota[channel] : CAPACITY;
    for (int c = 0; channel < 0 && c <= CHANNELS; c++)
        n -= m->quota[c];
    for (int i = 0; i < m->n_holds; i++)
        if (m_has_places(&m->holds[i]) &&
            (m->holds[i].channel ? m->holds[i].channel : -1) == channel)
            n -= m->holds[i].n_floor;
    return n;
}

/* What a hold of this channel gets of the floor: places of its channel, or what is on sale. */
static int m_floor_for(const struct model *m, int channel)
{
    return m_floor_free(m, channel ? channel : -1);
}

static bool m_seat_free(const struct model *m, uint32_t seat, int channel)
{
    return !m->taken[seat] && (m->home[seat] == ON_SALE || (channel && m->home[seat] == channel));
}

static int m_count(const struct m_hold *h) { return h->n_seats + h->n_floor; }

static int m_owner_has(const struct model *m, int owner)
{
    int n = 0;
    for (int i = 0; i < m->n_holds; i++)
        if (m->holds[i].owner == owner && m_has_places(&m->holds[i]))
            n += m_count(&m->holds[i]);
    return n;
}

static void m_free_seats(struct model *m, const struct m_hold *h)
{
    for (int i = 0; i < h->n_seats; i++)
        m->taken[h->seats[i]] = 0;
}

static void m_expire(struct model *m)
{
    for (int i = 0; i < m->n_holds; i++)
        if (m->holds[i].life == LIVE && m->holds[i].expires_at <= m->now) {
            m_free_seats(m, &m->holds[i]);
            m->holds[i].life = EXPIRED;
        }
}

static int64_t m_amount(const struct m_hold *h)
{
    int64_t sum = 0;
    for (int i = 0; i < h->n_seats; i++)
        sum += h->prices[i];
    for (int i = 0; i < h->n_floor; i++)
        sum += h->floor_prices[i];
    return sum;
}

/* VERDICT_DEFERRED: what owners have booked is not known before the next batch. */
static enum verdict m_limit(const struct model *m, int owner, int more)
{
    if (!owner || !m->max_per_owner)
        return VERDICT_OK;
    if (m->limited_in_batch == m->batch)
        return VERDICT_DEFERRED;
    return m_owner_has(m, owner) + more > m->max_per_owner ? VERDICT_OWNER_LIMIT : VERDICT_OK;
}

static enum verdict m_places(const struct model *m, const struct op *op, int channel)
{
    if (op->n_floor && m_floor_for(m, channel) < op->n_floor)
        return VERDICT_SOLD_OUT;
    for (int i = 0; i < op->n_seats; i++)
        if (!m_seat_free(m, op->seats[i], channel))
            return VERDICT_SEAT_TAKEN;
    return VERDICT_OK;
}

static int64_t m_seat_price(const struct model *m, int type)
{
    return type == REDUCED ? REDUCED_SEAT : m->seat_price;
}

static void m_give(struct model *m, struct m_hold *h, const struct op *op)
{
    for (int i = 0; i < op->n_seats; i++) {
        h->prices[h->n_seats] = m_seat_price(m, op->types[i]);
        h->types[h->n_seats] = op->types[i];
        h->seats[h->n_seats++] = op->seats[i];
        m->taken[op->seats[i]] = (int)(h - m->holds) + 1;
    }
    for (int i = 0; i < op->n_floor; i++) {
        h->floor_prices[h->n_floor] = op->floor_type == CHILD ? 0 : m->floor_price;
        h->floor_types[h->n_floor++] = op->floor_type;
    }
}

/* The index of the place of that type that the hold got last; -1: it has none. */
static int m_last_floor(const struct m_hold *h, int type)
{
    int at = h->n_floor - 1;
    while (at >= 0 && h->floor_types[at] != type)
        at--;
    return at;
}

static void m_take_floor(struct m_hold *h, int type)
{
    int at = m_last_floor(h, type);
    for (h->n_floor--; at < h->n_floor; at++) {
        h->floor_prices[at] = h->floor_prices[at + 1];
        h->floor_types[at] = h->floor_types[at + 1];
    }
}

static enum verdict m_create(struct model *m, const struct op *op)
{
    if (m->closed)
        return VERDICT_EVENT_CLOSED;
    if (op->n_seats + op->n_floor > m->max_per_hold)
        return VERDICT_TOO_MANY_SEATS;
    enum verdict verdict = m_limit(m, op->owner, op->n_seats + op->n_floor);
    if (verdict == VERDICT_OK)
        verdict = m_places(m, op, op->channel);
    if (verdict != VERDICT_OK)
        return verdict;
    struct m_hold *h = &m->holds[m->n_holds++];
    *h = (struct m_hold){.life = LIVE,
                         .fence = ++m->fence,
                         .expires_at = m->now + DEF_TTL_MS,
                         .channel = op->channel,
                         .owner = op->owner};
    m_give(m, h, op);
    return VERDICT_CREATED;
}

static enum verdict m_dead(const struct m_hold *h)
{
    return h->life == EXPIRED    ? VERDICT_HOLD_EXPIRED
           : h->life == RELEASED ? VERDICT_HOLD_RELEASED
                                 : VERDICT_HOLD_CONFIRMED;
}

static int m_place_of(const struct m_hold *h, uint32_t seat)
{
    for (int i = 0; i < h->n_seats; i++)
        if (h->seats[i] == seat)
            return i;
    return -1;
}

static enum verdict m_may_change(const struct model *m, const struct op *op, const struct m_hold *h)
{
    int more = op->n_seats + op->n_floor - op->n_removed - op->n_floor_removed;
    for (int i = 0; i < op->n_removed; i++)
        if (m_place_of(h, op->removed[i]) < 0)
            return VERDICT_NOT_HELD;
    if (op->retyped < SEATS && m_place_of(h, op->retyped) < 0)
        return VERDICT_NOT_HELD;
    int of_type = 0;
    for (int i = 0; i < h->n_floor; i++)
        of_type += h->floor_types[i] == op->floor_removed_type;
    if (of_type < op->n_floor_removed)
        return VERDICT_NOT_HELD;
    if (m_count(h) + more <= 0)
        return VERDICT_INVALID_REQUEST;
    if (more > 0 && m_count(h) + more > m->max_per_hold)
        return VERDICT_TOO_MANY_SEATS;
    if (!op->n_seats && !op->n_floor)
        return VERDICT_OK;
    if (h->channel && !op->is_seller)
        return VERDICT_SELLER_ONLY;
    if (m->closed)
        return VERDICT_EVENT_CLOSED;
    enum verdict verdict = more > 0 ? m_limit(m, h->owner, more) : VERDICT_OK;
    return verdict == VERDICT_OK ? m_places(m, op, h->channel) : verdict;
}

static enum verdict m_change(struct model *m, const struct op *op, struct m_hold *h)
{
    if (h->life != LIVE)
        return m_dead(h);
    if (op->fence != h->fence)
        return VERDICT_STALE_FENCE;
    enum verdict verdict = m_may_change(m, op, h);
    if (verdict != VERDICT_OK)
        return verdict;
    int at = op->retyped < SEATS ? m_place_of(h, op->retyped) : -1;
    bool retypes = at >= 0 && h->types[at] != op->retyped_as;
    if (!retypes && !op->n_seats && !op->n_removed && !op->n_floor && !op->n_floor_removed)
        return VERDICT_OK; /* nothing changes */
    if (retypes) {
        h->types[at] = op->retyped_as;
        h->prices[at] = m_seat_price(m, op->retyped_as);
    }
    for (int i = 0; i < op->n_removed; i++) {
        at = m_place_of(h, op->removed[i]);
        m->taken[op->removed[i]] = 0;
        h->n_seats--;
        memmove(&h->types[at], &h->types[at + 1], (size_t)(h->n_seats - at) * sizeof *h->types);
        memmove(&h->seats[at], &h->seats[at + 1], (size_t)(h->n_seats - at) * sizeof *h->seats);
        memmove(&h->prices[at], &h->prices[at + 1], (size_t)(h->n_seats - at) * sizeof *h->prices);
    }
    for (int i = 0; i < op->n_floor_removed; i++)
        m_take_floor(h, op->floor_removed_type);
    m_give(m, h, op);
    h->fence = ++m->fence;
    h->touched = m->batch;
    return VERDICT_OK;
}

static enum verdict m_confirm(struct model *m, const struct op *op, struct m_hold *h)
{
    const struct op places = {.n_floor = h->n_floor};
    if (h->life == RELEASED || (h->life == EXPIRED && !op->rescue))
        return m_dead(h);
    if (op->fence != h->fence)
        return VERDICT_STALE_FENCE;
    if (h->life == SOLD || h->life == CANCELLED)
        return VERDICT_OK;
    if (h->life == EXPIRED) {
        for (int i = 0; i < h->n_seats; i++)
            if (!m_seat_free(m, h->seats[i], h->channel))
                return VERDICT_HOLD_EXPIRED;
        if (m_places(m, &places, h->channel) != VERDICT_OK)
            return VERDICT_HOLD_EXPIRED;
        enum verdict verdict = m_limit(m, h->owner, m_count(h));
        if (verdict != VERDICT_OK)
            return verdict;
        h->fence = ++m->fence;
    }
    for (int i = 0; i < h->n_seats; i++)
        m->taken[h->seats[i]] = (int)(h - m->holds) + 1;
    h->life = SOLD;
    h->touched = m->batch;
    return VERDICT_CREATED;
}

static enum verdict m_release(struct model *m, struct m_hold *h)
{
    if (h->life != LIVE && h->life != RELEASED)
        return m_dead(h);
    if (h->life == LIVE)
        m_free_seats(m, h);
    h->life = RELEASED;
    return VERDICT_OK;
}

static enum verdict m_cancel(struct model *m, struct m_hold *h)
{
    if (h->life == SOLD) {
        m_free_seats(m, h);
        h->life = CANCELLED;
        h->touched = m->batch;
    }
    return VERDICT_OK;
}

static enum verdict m_block(struct model *m, const struct op *op)
{
    bool blocks = op->kind == CMD_SEATS_BLOCK, changes = op->n_floor > 0;
    int to = blocks ? op->channel : ON_SALE;
    for (int i = 0; i < op->n_seats; i++) {
        int home = m->home[op->seats[i]];
        if (m->taken[op->seats[i]] ||
            (!blocks && op->channel && home != ON_SALE && home != op->channel))
            return VERDICT_SEAT_TAKEN;
    }
    if (op->n_floor > m_floor_free(m, blocks ? ON_SALE : op->channel))
        return VERDICT_SOLD_OUT;
    for (int i = 0; i < op->n_seats; i++) {
        changes |= m->home[op->seats[i]] != to;
        m->home[op->seats[i]] = to;
    }
    m->quota[op->channel] += blocks ? op->n_floor : -op->n_floor;
    if (blocks && op->channel && !m->number[op->channel])
        m->number[op->channel] = ++m->n_channels;
    m->fence += changes;
    return VERDICT_OK;
}

static enum verdict m_terms(struct model *m, const struct op *op)
{
    if (op->limit && !m->max_per_owner)
        m->limited_in_batch = m->batch;
    m->max_per_owner = op->limit;
    m->seat_price = op->price;
    m->floor_price = op->price / 2;
    m->max_per_hold = 2 + op->limit % 7;
    return VERDICT_OK;
}

static enum verdict m_judge(struct model *m, const struct op *op)
{
    struct m_hold *h = &m->holds[op->hold];
    m_expire(m);
    switch (op->kind) {
    case CMD_HOLD_CREATE:
        return m_create(m, op);
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        return m_block(m, op);
    case CMD_EVENT_CHANGE:
        return m_terms(m, op);
    case CMD_EVENT_OPEN:
    case CMD_EVENT_CLOSE:
        m->closed = op->kind == CMD_EVENT_CLOSE;
        return VERDICT_OK;
    default:
        break;
    }
    if (h->touched == m->batch)
        return VERDICT_DEFERRED;
    return op->kind == CMD_HOLD_CHANGE    ? m_change(m, op, h)
           : op->kind == CMD_HOLD_CONFIRM ? m_confirm(m, op, h)
           : op->kind == CMD_HOLD_RELEASE ? m_release(m, h)
                                          : m_cancel(m, h);
}

/* ---- the stream ---- */

static struct {
    struct random random;
    struct paper paper;
    struct event *hall;
    struct model model, saved;
    struct id ids[HOLDS_MAX], bookings[HOLDS_MAX];
    int n_told; /* holds whose ids were told */
    unsigned met[VERDICT_COUNT], changed, failed;
    uint64_t seed;
} stream;

static int below(int n) { return (int)random_below(&stream.random, (uint64_t)n); }
static bool chance(int percent) { return below(100) < percent; }

static int pick_seats(uint32_t *seats, int max)
{
    int n = below(max + 1), start = below(SEATS);
    for (int i = 0; i < n; i++)
        seats[i] = (uint32_t)((start + i * 7) % SEATS);
    return n;
}

static int pick_type(void) { return chance(50) ? FULL : below(TYPES); }

static void pick_types(struct op *op)
{
    for (int i = 0; i < op->n_seats; i++)
        op->types[i] = pick_type();
    op->floor_type = pick_type();
    op->floor_removed_type = pick_type();
}

static bool is_removed(const struct op *op, uint32_t seat)
{
    for (int i = 0; i < op->n_removed; i++)
        if (op->removed[i] == seat)
            return true;
    return false;
}

/* A seat of the hold, and now and then one that it does not have. */
static void pick_retyped(struct op *op, const struct m_hold *h)
{
    uint32_t seat = (uint32_t)below(SEATS);
    if (h->n_seats && chance(95))
        seat = h->seats[below(h->n_seats)];
    for (int i = 0; i < op->n_seats; i++)
        if (op->seats[i] == seat)
            return;
    if (is_removed(op, seat))
        return;
    op->retyped = seat;
    op->retyped_as = pick_type();
}

static void pick_change(struct op *op)
{
    const struct m_hold *h = &stream.model.holds[op->hold];
    op->kind = CMD_HOLD_CHANGE;
    op->is_seller = chance(80);
    for (int i = 0; i < h->n_seats && op->n_removed < 3; i++)
        if (chance(35))
            op->removed[op->n_removed++] = h->seats[i];
    if (chance(4))
        op->removed[op->n_removed++] = (uint32_t)below(SEATS);
    op->n_seats = chance(60) ? pick_seats(op->seats, 3) : 0;
    for (int i = 0; i < op->n_seats; i++) /* none is in both lists, and none twice */
        for (int k = 0; k < op->n_removed; k++)
            if (op->seats[i] == op->removed[k])
                op->n_seats = 0;
    for (int k = 0; k + 1 < op->n_removed; k++)
        if (op->removed[k] == op->removed[op->n_removed - 1])
            op->n_removed--;
    if (chance(30))
        op->n_floor = 1 + below(3);
    else if (chance(30))
        op->n_floor_removed = 1 + below(3);
    if (chance(30))
        pick_retyped(op, h);
    if (!op->n_seats && !op->n_removed && !op->n_floor && !op->n_floor_removed &&
        op->retyped == SEATS)
        op->n_floor = 1;
}

/* Names a hold that was told, mostly one of the newest. */
static void pick_named(struct op *op)
{
    int n = stream.n_told, roll = below(10);
    op->hold = n - 1 - below(chance(85) && n > 10 ? 10 : n);
    const struct m_hold *h = &stream.model.holds[op->hold];
    op->fence = h->fence + (chance(95) ? 0 : 1);
    op->rescue = chance(50);
    bool is_known = h->touched != stream.model.batch || h->life != SOLD; /* told to somebody */
    if (stream.bookings[op->hold].key && is_known && chance(60))
        op->kind = CMD_BOOKING_CANCEL;
    else if (roll < 6)
        pick_change(op);
    else
        op->kind = roll < 9 ? CMD_HOLD_CONFIRM : CMD_HOLD_RELEASE;
}

static void pick_seller(struct op *op)
{
    int roll = below(20);
    op->channel = below(CHANNELS + 1);
    if (roll < 14) {
        op->kind = roll < 8 ? CMD_SEATS_BLOCK : CMD_SEATS_UNBLOCK;
        op->n_seats = pick_seats(op->seats, 3);
        if (!op->n_seats || chance(50))
            op->n_floor = 1 + below(3);
    } else if (roll < 18) {
        op->kind = CMD_EVENT_CHANGE;
        op->price = 100 * (1 + below(90));
        op->limit = chance(30) ? 0 : 3 + below(9);
    } else {
        op->kind = chance(25) ? CMD_EVENT_CLOSE : CMD_EVENT_OPEN;
    }
}

static struct op pick(void)
{
    struct op op = {.retyped = SEATS};
    int roll = below(100);
    if (roll < 50 && stream.n_told) {
        pick_named(&op);
    } else if (roll < 70) {
        pick_seller(&op);
    } else {
        op.kind = CMD_HOLD_CREATE;
        op.n_seats = pick_seats(op.seats, 3);
        if (!op.n_seats || chance(40))
            op.n_floor = 1 + below(3);
        op.owner = below(OWNERS);
        op.channel = chance(50) ? 0 : below(CHANNELS + 1);
        if (!stream.model.number[op.channel])
            op.channel = 0; /* the server knows no such channel yet */
    }
    pick_types(&op);
    return op;
}

/* The first type is named, too, now and then. */
static const char *named(int type) { return type || chance(50) ? type_names[type] : NULL; }

static void ask_types_of(const struct op *op, struct ask *a)
{
    for (int i = 0; i < op->n_seats; i++)
        ask_type(a, named(op->types[i]), 1);
    if (op->retyped < SEATS)
        ask_type(a, named(op->retyped_as), 1);
    if (op->n_floor)
        ask_type(a, named(op->floor_type), (uint32_t)op->n_floor);
}

static void ask_change_of(const struct op *op, struct ask *a)
{
    ask_change(a, stream.hall, &stream.ids[op->hold], op->fence);
    a->c.change.is_seller = op->is_seller;
    if (op->n_seats)
        ask_add_n(a, op->seats, (uint32_t)op->n_seats);
    if (op->retyped < SEATS)
        ask_retype(a, op->retyped);
    for (int i = 0; i < op->n_removed; i++)
        a->removed[a->c.change.n_remove++] = op->removed[i];
    if (op->n_floor)
        ask_area(a, FLOOR, (uint32_t)op->n_floor);
    if (op->n_floor_removed) {
        ask_remove_area(a, FLOOR, (uint32_t)op->n_floor_removed);
        ask_remove_type(a, named(op->floor_removed_type), (uint32_t)op->n_floor_removed);
    }
    ask_types_of(op, a);
}

static void ask_terms_of(const struct op *op, struct ask *a)
{
    ask_terms(a, stream.hall);
    a->c.event_change.given = EVENT_MAX_PER_OWNER | EVENT_MAX_PER_HOLD;
    a->c.event_change.terms.max_per_owner = op->limit;
    a->c.event_change.terms.max_per_hold = 2 + op->limit % 7;
    ask_price(a, 0, op->price);
    ask_price(a, 1, op->price / 2);
}

/* A hold or a block: seats and places of the floor. */
static void ask_places_of(const struct op *op, struct ask *a)
{
    if (op->kind == CMD_HOLD_CREATE && op->n_seats)
        ask_create_n(a, stream.hall, op->seats, (uint32_t)op->n_seats);
    else if (op->kind == CMD_HOLD_CREATE)
        ask_create_none(a, stream.hall);
    else if (op->n_seats)
        ask_seats_n(a, op->kind, stream.hall, op->seats, (uint32_t)op->n_seats);
    else
        ask_block_none(a, op->kind, stream.hall);
    if (op->n_floor)
        ask_area(a, FLOOR, (uint32_t)op->n_floor);
    if (op->kind == CMD_HOLD_CREATE) {
        a->c.create.channel = (uint32_t)stream.model.number[op->channel];
        ask_types_of(op, a);
        if (op->owner)
            ask_owner(a, owner_names[op->owner]);
    } else if (op->channel) {
        ask_channel(a, channel_names[op->channel]);
    }
}

static void ask_of(const struct op *op, struct ask *a)
{
    switch (op->kind) {
    case CMD_HOLD_CREATE:
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        ask_places_of(op, a);
        return;
    case CMD_HOLD_CHANGE:
        ask_change_of(op, a);
        return;
    case CMD_EVENT_CHANGE:
        ask_terms_of(op, a);
        return;
    case CMD_HOLD_CONFIRM:
        ask_confirm(a, stream.hall, &stream.ids[op->hold], op->fence, op->rescue);
        return;
    case CMD_HOLD_RELEASE:
        ask_release(a, stream.hall, &stream.ids[op->hold]);
        return;
    case CMD_BOOKING_CANCEL:
        ask_cancel(a, stream.hall, &stream.bookings[op->hold]);
        return;
    default:
        ask_event(a, op->kind, stream.hall);
    }
}

/* ---- comparing ---- */

static void compare_hold(const struct m_hold *want, const struct hold_row *got)
{
    assert_int_equal(got->fence, want->fence);
    assert_int_equal(got->expires_at, want->expires_at);
    assert_int_equal(got->amount, m_amount(want));
    assert_int_equal(got->n_seats, want->n_seats);
    for (int i = 0; i < want->n_seats; i++)
        assert_int_equal(got->seats[i], want->seats[i]);
    assert_int_equal(places_count(0, got->areas, got->n_areas), want->n_floor);
    struct price_reader r = price_reader(got->prices, got->n_prices);
    for (int i = 0; i < want->n_seats + want->n_floor; i++) {
        int at = i - want->n_seats;
        int64_t price;
        uint32_t type;
        assert_int_equal(price_reader_next(&r, 1, &price, &type), 1);
        assert_int_equal(type, at < 0 ? want->types[i] : want->floor_types[at]);
        assert_int_equal(price, at < 0 ? want->prices[i] : want->floor_prices[at]);
    }
}

static void compare(const struct op *op, enum verdict want, enum decided decided, struct ask *got)
{
    assert_int_equal(decided, want == VERDICT_DEFERRED ? DEFERRED : DECIDED);
    stream.met[want]++;
    if (want == VERDICT_DEFERRED)
        return;
    assert_string_equal(verdict_name(got->c.verdict), verdict_name(want));
    if (op->kind == CMD_HOLD_CREATE && want == VERDICT_CREATED) {
        stream.ids[stream.model.n_holds - 1] = command_hold(&got->c)->id;
        stream.bookings[stream.model.n_holds - 1] = (struct id){0};
        compare_hold(&stream.model.holds[stream.model.n_holds - 1], command_hold(&got->c));
    }
    if (op->kind == CMD_HOLD_CHANGE && want == VERDICT_OK) {
        compare_hold(&stream.model.holds[op->hold], command_hold(&got->c));
        stream.changed++;
    }
    if (op->kind == CMD_HOLD_CONFIRM && want == VERDICT_CREATED) {
        stream.bookings[op->hold] = command_booking(&got->c)->id;
        assert_int_equal(command_booking(&got->c)->amount, m_amount(&stream.model.holds[op->hold]));
    }
}

/* Right after a batch no hold is due that is not ended. */
static void compare_places(void)
{
    const struct model *m = &stream.model;
    for (uint32_t s = 0; s < SEATS; s++) {
        const struct seat *seat = &stream.hall->seats[s];
        const struct m_hold *h = m->taken[s] ? &m->holds[m->taken[s] - 1] : NULL;
        assert_int_equal(seat->status, h ? (h->life == SOLD ? SEAT_BOOKED : SEAT_HELD)
                                       : m->home[s] == ON_SALE ? SEAT_AVAILABLE
                                                               : SEAT_BLOCKED);
        assert_int_equal(seat_hold(stream.hall, s), h ? stream.ids[h - m->holds].key : 0);
        assert_int_equal(seat->channel, m->home[s] > 0 ? m->number[m->home[s]] : 0);
    }
    const struct area *floor = &stream.hall->areas[FLOOR];
    assert_int_equal(floor->available, m_floor_free(m, ON_SALE));
    for (int c = 0; c <= CHANNELS; c++)
        if (c == 0 || m->number[c])
            assert_int_equal(area_blocked_for(floor, (uint32_t)m->number[c]), m_floor_free(m, c));
    for (int i = 0; i < stream.n_told; i++)
        compare_hold(&m->holds[i], paper_hold(&stream.paper, stream.ids[i].key));
}

/* ---- batches ---- */

static void assert_same_dump(const struct buf *before)
{
    struct buf after = {0};
    paper_dump(&stream.paper, &after);
    size_t line = 0; /* where the first line that differs begins */
    for (size_t i = 0; before->data[i] && before->data[i] == after.data[i]; i++)
        line = before->data[i] == '\n' ? i + 1 : line;
    if (strcmp(after.data, before->data) != 0)
        fail_msg("%.200s\nwas\n%.200s", after.data + line, before->data + line);
    buf_close(&after);
}

static void run_batch(void)
{
    static struct ask asks[BATCH_MAX];
    static struct id bookings[HOLDS_MAX];
    int n = 1 + below(BATCH_MAX);
    bool fails = chance(15);
    struct buf before = {0};
    stream.paper.now += chance(30) ? 0 : below(chance(5) ? DEF_TTL_MS : 900);
    stream.model.now = stream.paper.now;
    stream.model.batch++;
    stream.saved = stream.model;
    memcpy(bookings, stream.bookings, sizeof bookings);
    if (stream.hall->stale)
        paper_reload(&stream.paper, stream.hall); /* as paper_begin would */
    paper_dump(&stream.paper, &before);
    paper_begin(&stream.paper);
    for (int i = 0; i < n; i++) {
        const struct op op = pick();
        ask_of(&op, &asks[i]);
        enum decided decided = paper_decide(&stream.paper, &asks[i]);
        compare(&op, m_judge(&stream.model, &op), decided, &asks[i]);
    }
    if (fails) {
        paper_fail(&stream.paper);
        assert_same_dump(&before);
        stream.model = stream.saved;
        memcpy(stream.bookings, bookings, sizeof bookings);
        stream.failed++;
        paper_begin(&stream.paper); /* ends what is due */
    }
    paper_commit(&stream.paper);
    m_expire(&stream.model);
    stream.n_told = stream.model.n_holds;
    for (int i = 0; i < n; i++)
        ask_close(&asks[i]);
    buf_close(&before);
}

static void check_batch(void)
{
    struct buf before = {0};
    paper_check(&stream.paper);
    compare_places();
    if (stream.hall->stale || !chance(20))
        return;
    paper_dump(&stream.paper, &before);
    paper_reload(&stream.paper, stream.hall);
    assert_same_dump(&before);
    buf_close(&before);
}

static void run_episode(size_t steps)
{
    paper_init(&stream.paper, stream.seed);
    struct event_def *def = def_hall(2, SEATS / 2);
    def_area(def, "Floor", 700, CAPACITY);
    def->terms.max_per_hold = PLACES_MAX;
    def_type(def, type_names[FULL], NULL, 0);
    def_type(def, type_names[REDUCED], (const int64_t[]){REDUCED_SEAT}, 1);
    def_type(def, type_names[CHILD], (const int64_t[]){TYPE_PRICE_NONE, 0}, 2);
    stream.hall = paper_event(&stream.paper, def);
    memset(&stream.model, 0, sizeof stream.model);
    stream.model.seat_price = 2500;
    stream.model.floor_price = 700;
    stream.model.max_per_hold = PLACES_MAX;
    for (int i = 0; i < SEATS; i++)
        stream.model.home[i] = ON_SALE;
    stream.n_told = 0;
    for (size_t done = 0; done < steps; done += BATCH_MAX / 2) {
        run_batch();
        check_batch();
    }
    paper_close(&stream.paper);
}

static void decide_and_the_model_agree(void **state)
{
    static const enum verdict all[] = {
        VERDICT_OK,           VERDICT_CREATED,         VERDICT_SEAT_TAKEN,     VERDICT_SOLD_OUT,
        VERDICT_OWNER_LIMIT,  VERDICT_TOO_MANY_SEATS,  VERDICT_EVENT_CLOSED,   VERDICT_STALE_FENCE,
        VERDICT_HOLD_EXPIRED, VERDICT_HOLD_RELEASED,   VERDICT_HOLD_CONFIRMED, VERDICT_NOT_HELD,
        VERDICT_SELLER_ONLY,  VERDICT_INVALID_REQUEST, VERDICT_DEFERRED,
    };
    memset(&stream, 0, sizeof stream);
    stream.seed = test_seed((uint64_t)(uintptr_t)*state);
    random_init_seeded(&stream.random, stream.seed);
    for (size_t left = test_steps(6000); left > 0;) {
        size_t steps = left < EPISODE ? left : EPISODE;
        run_episode(steps);
        left -= steps;
    }
    /* A stream that never met one of these verdicts would prove little. */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!stream.met[all[i]])
            fail_msg("no command was answered %s", verdict_name(all[i]));
    assert_true(stream.changed > 20 && stream.failed > 20);
}

#define seeded(number)                                                                             \
    {                                                                                              \
        "decide_and_the_model_agree_from_seed_" #number, decide_and_the_model_agree, NULL, NULL,   \
            (void *)(uintptr_t)number                                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {seeded(1), seeded(20261115), seeded(42)};
    return cmocka_run_group_tests_name("decide_shop", tests, NULL, NULL);
}
