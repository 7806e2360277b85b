/* The requests of the random turns; see random_turns.c. */
#include <stdio.h>
#include <string.h>

#include "sim/random_run.h"

const char *const random_owners[OWNERS] = {"ada", "bob", "cy"};
static const char *const channels[] = {"house", "club"};

static const struct known_hold *any_hold(struct run *r)
{
    size_t recent = r->holds.n < RECENT_HOLDS ? r->holds.n : RECENT_HOLDS;
    return &r->holds.v[r->holds.n - 1 - below(r, (uint32_t)recent)];
}

static const char *const types[] = {"full", "reduced", "child"}; /* of every event */

/* NULL: none is named. */
static const char *any_type(struct run *r) { return one_in(r, 4) ? NULL : types[below(r, 3)]; }

/* Ticket types of a hold's places, or of those that a change adds. */
static void name_types(struct run *r, struct ask *ask)
{
    for (uint32_t i = 0; i < 3 && !one_in(r, 3); i++)
        ask_type(ask, one_in(r, 50) ? "unknown" : any_type(r), 1 + below(r, 3));
}

/* Distinct seats that stand side by side. */
static void fill_create(struct run *r, struct ask *ask, struct event *e)
{
    uint32_t n = 1 + below(r, SEATS_MAX), seats[SEATS_MAX];
    uint32_t first = below(r, e->def->n_seats - SEATS_MAX);
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    if (one_in(r, 4))
        ask_best(ask, e, n, true);
    else
        ask_create_n(ask, e, seats, n);
    for (uint32_t i = 0; i < AREAS; i++)
        if (one_in(r, 4))
            ask_area(ask, i, 1 + below(r, 2));
    if (one_in(r, 2))
        ask_owner(ask, random_owners[below(r, OWNERS)]);
    if (one_in(r, 3))
        ask->c.create.channel = below(r, (uint32_t)e->terms->channels.n + 1);
    ask->c.create.ttl_ms = 1000 + below(r, 2 * DEF_TTL_MS);
    name_types(r, ask);
}

/* A seller asks for exactly what an owner holds, or held a moment ago. */
static bool fill_resume(struct run *r, struct server *s, struct ask *ask)
{
    if (!r->holds.n)
        return false;
    const struct known_hold *known = any_hold(r);
    const struct hold_row *row = &sim_hold(r->world.ledger, known->id.key)->row;
    if (!row->owner || !row->n_seats)
        return false;
    ask_create_n(ask, engine_event(s->engine, row->event), row->seats, row->n_seats);
    for (uint32_t i = 0; i < row->n_areas; i++)
        ask_area(ask, row->areas[i].area, row->areas[i].quantity);
    for (size_t i = 0; i < OWNERS; i++)
        if (strlen(random_owners[i]) == row->owner_len &&
            memcmp(random_owners[i], row->owner, row->owner_len) == 0)
            ask_owner(ask, random_owners[i]);
    ask->c.create.channel = row->channel;
    ask->c.create.resume = true;
    for (uint32_t i = 0; i < row->n_prices && !one_in(r, 4); i++) /* all of them, mostly */
        ask_type(ask, types[row->prices[i].type], row->prices[i].n);
    return true;
}

/* Other places for a hold: some of its seats out, other seats in, and the same for its areas. */
static void fill_change(struct run *r, struct server *s, struct ask *ask,
                        const struct known_hold *known)
{
    const struct hold_row *row = &sim_hold(r->world.ledger, known->id.key)->row;
    struct event *e = engine_event(s->engine, row->event);
    uint32_t seats[SEATS_MAX], n = 1 + below(r, SEATS_MAX);
    uint32_t first = below(r, e->def->n_seats - SEATS_MAX);
    ask_change(ask, e, &known->id, one_in(r, 10) ? known->fence : row->fence);
    ask->c.change.is_seller = !one_in(r, 4);
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    if (one_in(r, r->favourite ? 5 : 2))
        ask_add_n(ask, seats, n);
    bool retypes = row->n_seats && one_in(r, 3);
    uint32_t kept = retypes ? row->seats[below(r, row->n_seats)] : 0;
    if (retypes && (!ask->c.change.n_add || kept < first || kept >= first + n))
        ask_retype(ask, kept);
    name_types(r, ask);
    for (uint32_t i = 0, n_out = 0; !retypes && i < row->n_seats && n_out < SEATS_MAX; i++)
        if (one_in(r, 3) &&
            (!ask->c.change.n_add || row->seats[i] < first || row->seats[i] >= first + n)) {
            seats[n_out++] = row->seats[i];
            ask_remove_n(ask, seats, n_out);
        }
    for (uint32_t i = 0; i < AREAS; i++) {
        if (one_in(r, r->favourite ? 20 : 4))
            ask_area(ask, i, 1 + below(r, 2));
        else if (one_in(r, 4))
            ask_remove_area(ask, i, 1 + below(r, 2));
    }
    for (uint32_t i = 0; i < 2 && one_in(r, 2); i++)
        ask_remove_type(ask, any_type(r), 1);
}

/* A hold of one seat under a key: a new one, or one that was used before. */
static void fill_keyed(struct run *r, struct server *s, struct ask *ask)
{
    char key[16], request[32];
    struct known_key *known = &r->keys[below(r, KEYS)];
    if (!known->number || one_in(r, 4)) {
        known->number = ++r->n_keys;
        known->event = r->events[below(r, EVENTS)];
        known->seat = below(r, engine_event(s->engine, known->event)->def->n_seats);
        known->answer.len = 0;
    }
    ask_create(ask, engine_event(s->engine, known->event), known->seat);
    snprintf(key, sizeof key, "key %u", known->number);
    snprintf(request, sizeof request, "seat %u of %d", known->seat, (int)known->event);
    ask_key(ask, key, request);
}

static bool same_owner(const struct hold_row *a, const struct hold_row *b)
{
    return a->owner_len == b->owner_len && !a->owner == !b->owner &&
           (!a->owner || memcmp(a->owner, b->owner, a->owner_len) == 0);
}

static bool is_named(const struct booking_create *op, int64_t hold)
{
    bool found = op->hold.id.key == hold;
    for (size_t i = 0; i < op->n_others; i++)
        found |= op->others[i].hold.id.key == hold;
    return found;
}

/* Books other holds with it: mostly such as can be. */
static void fill_others(struct run *r, struct ask *ask, const struct known_hold *known)
{
    const struct hold_row *row = &sim_hold(r->world.ledger, known->id.key)->row;
    for (int i = 0; i < 12 && ask->c.booking_create->n_others < 2; i++) {
        const struct known_hold *other = any_hold(r);
        const struct hold_row *fits = &sim_hold(r->world.ledger, other->id.key)->row;
        bool is_fit = fits->event == row->event && fits->channel == row->channel &&
                      same_owner(fits, row) &&
                      (fits->status == HOLD_ACTIVE || fits->carrier.id.key == row->id.key);
        if (!is_named(ask->c.booking_create, other->id.key) && (is_fit || one_in(r, 20)))
            ask_book_also(ask, &other->id);
    }
}

static void fill_named(struct run *r, struct server *s, struct ask *ask)
{
    const struct known_hold *known = any_hold(r);
    struct event *e = engine_event(s->engine, HOLD_EVENT(known->id.key));
    if (known->booking.key && one_in(r, 6)) {
        ask_cancel(ask, e, &known->booking);
        return;
    }
    if (known->booking.key && one_in(r, 6)) {
        ask_refund(ask, e, &known->booking, one_in(r, 3) ? 0 : 1 + below(r, 900));
        return;
    }
    if ((!known->booking.key || one_in(r, 3)) && one_in(r, 2)) {
        ask_book(ask, e, &known->id);
        ask->c.booking_create->captures_by_hand = one_in(r, 3);
        if (one_in(r, 2))
            fill_others(r, ask, known);
        return;
    }
    switch (below(r, 12)) {
    case 0:
    case 1:
        ask_renew(ask, e, &known->id, 0);
        return;
    case 2:
    case 3:
        ask_release(ask, e, &known->id);
        return;
    case 4:
        ask_evict(ask, e, &known->id);
        return;
    case 5:
    case 6:
        ask_confirm(ask, e, &known->id, known->fence - one_in(r, 10), one_in(r, 2));
        return;
    default:
        fill_change(r, s, ask, known);
        return;
    }
}

/* Seats and places, for a channel or for none. */
static void fill_block(struct run *r, struct ask *ask, struct event *e)
{
    uint32_t first = below(r, e->def->n_seats - 2);
    enum command_kind kind = one_in(r, 2) ? CMD_SEATS_BLOCK : CMD_SEATS_UNBLOCK;
    if (one_in(r, 3))
        ask_block_none(ask, kind, e);
    else
        ask_seats(ask, kind, e, first, first + 1);
    if (!ask->c.block.n_seats || one_in(r, 4))
        ask_area(ask, below(r, AREAS), 1 + below(r, 2));
    if (!one_in(r, 4))
        ask_channel(ask, channels[below(r, 2)]);
}

/* Prices, limits and the time of the sale.  Sales open soon and close late, so that most requests
 * find the event on sale. */
static void fill_terms(struct run *r, struct ask *ask, struct event *e)
{
    struct event_change *change = &ask->c.event_change;
    ask_terms(ask, e);
    ask_price(ask, below(r, (uint32_t)e->terms->prices.n), 100 * below(r, 50));
    if (one_in(r, 3)) {
        change->given |= EVENT_MAX_PER_HOLD;
        change->terms.max_per_hold = 2 + (int32_t)below(r, SEATS_INLINE - 1);
    }
    if (e->def->id.key != r->events[0] && one_in(r, 3)) {
        change->given |= EVENT_MAX_PER_OWNER;
        change->terms.max_per_owner = one_in(r, 3) ? 0 : 3 + (int32_t)below(r, 8);
    }
    if (one_in(r, 4)) {
        change->given |= EVENT_SALES_OPEN_AT | EVENT_SALES_CLOSE_AT;
        change->terms.sales_open_at = sim_wall_ms(r->world.ledger) + below(r, 2000);
        change->terms.sales_close_at = one_in(r, 2) ? 0 : change->terms.sales_open_at + HOUR_MS;
    }
    if (one_in(r, 4)) {
        change->given |= EVENT_LONE_SEATS;
        change->terms.lone_seats = one_in(r, 2) ? LONE_SEATS_REFUSE : LONE_SEATS_ALLOW;
    }
    if (one_in(r, 6)) {
        change->given |= EVENT_OFFER_TTL | EVENT_WAIT_ALIVE | EVENT_WAIT_PER_OWNER;
        change->terms.offer_ttl_ms = one_in(r, 8) ? 0 : 1000 + below(r, DEF_TTL_MS);
        change->terms.wait_alive_ms = 3 * DEF_TTL_MS;
        change->terms.wait_per_owner = 1 + below(r, 4);
    }
    if (one_in(r, 4)) {
        change->given |= EVENT_HOLD_TTL;
        change->terms.hold_ttl_ms = 1000 + below(r, 3 * DEF_TTL_MS);
    }
}

/* Sellers block places, change terms, and close the sale for a while, or for good. */
static void fill_seller(struct run *r, struct ask *ask, struct event *e)
{
    uint32_t kind = below(r, 12);
    if (kind < 6)
        fill_block(r, ask, e);
    else if (kind < 9)
        fill_terms(r, ask, e);
    else if (one_in(r, 100))
        ask_event(ask, one_in(r, 2) ? CMD_EVENT_ARCHIVE : CMD_EVENT_CANCEL, e);
    else
        ask_event(ask, kind == 10 && one_in(r, 4) ? CMD_EVENT_CLOSE : CMD_EVENT_OPEN, e);
}

/* People join the waiting list, for seats or for places of an area. */
static void fill_join(struct run *r, struct ask *ask, struct event *e)
{
    struct wait_join *op = &ask->c.wait_join;
    ask_wait(ask, e, 1 + below(r, r->favourite || one_in(r, 2) ? SEATS_MAX : 2 * SEATS_MAX));
    op->wish.adjacent = !one_in(r, 3);
    if (one_in(r, 4))
        op->wish.category = 1;
    if (one_in(r, 3))
        ask_area(ask, below(r, AREAS), 1 + below(r, r->favourite ? 3 : 5));
    if (!one_in(r, 3))
        ask_owner(ask, random_owners[below(r, OWNERS)]);
    if (one_in(r, 3))
        op->until = sim_wall_ms(r->world.ledger) + 1 + below(r, 4 * DEF_TTL_MS);
    if (one_in(r, 3))
        ask_type(ask, any_type(r), 1 + below(r, op->wish.quantity));
}

/* Somebody leaves, looks, is moved to the front or evicted. */
static void fill_wait(struct run *r, struct server *s, struct ask *ask)
{
    static const enum wait_change_kind kinds[] = {WAIT_LEAVES,  WAIT_EVICTS,  WAIT_COMES_FIRST,
                                                  WAIT_IS_READ, WAIT_IS_READ, WAIT_IS_ERASED};
    size_t recent = r->waits.n < RECENT_HOLDS ? r->waits.n : RECENT_HOLDS;
    const struct id *id = &r->waits.v[r->waits.n - 1 - below(r, (uint32_t)recent)];
    ask_wait_change(ask, engine_event(s->engine, HOLD_EVENT(id->key)), kinds[below(r, 6)], id);
}

/* Somebody takes an offer. */
static bool fill_accept(struct run *r, struct server *s, struct ask *ask)
{
    const struct sim_event *e = sim_event(r->world.ledger, r->events[below(r, EVENTS)]);
    for (size_t i = e->waits.n; i-- > 0;) {
        if (e->waits.v[i].status != WAIT_OFFERED)
            continue;
        const struct hold_row *hold = &sim_hold(r->world.ledger, e->waits.v[i].hold)->row;
        struct event *event = engine_event(s->engine, hold->event);
        if (one_in(r, 2))
            ask_book(ask, event, &hold->id);
        else
            ask_confirm(ask, event, &hold->id, hold->fence, false);
        return true;
    }
    return false;
}

static void fill_waiting(struct run *r, struct server *s, struct ask *ask, struct event *e)
{
    if (one_in(r, 12))
        ask_event(ask, one_in(r, 3) ? CMD_WAIT_PAUSE : CMD_WAIT_RESUME, e);
    else if (one_in(r, 3) && fill_accept(r, s, ask))
        return;
    else if (r->waits.n && one_in(r, 3))
        fill_wait(r, s, ask);
    else
        fill_join(r, ask, e);
}

/* What happens in this world more often than in others. */
static void fill_favourite(struct run *r, struct server *s, struct ask *ask, struct event *e)
{
    const struct known_hold *known = r->holds.n ? any_hold(r) : NULL;
    struct event *of_hold = known ? engine_event(s->engine, HOLD_EVENT(known->id.key)) : NULL;
    switch (r->favourite) {
    case FAVOURITE_BLOCKS:
        fill_block(r, ask, e);
        return;
    case FAVOURITE_CLOSES:
        ask_event(ask, one_in(r, 3) ? CMD_EVENT_CLOSE : CMD_EVENT_OPEN, e);
        return;
    case FAVOURITE_TERMS:
        fill_terms(r, ask, e);
        return;
    case FAVOURITE_CHANGES:
        if (known) {
            fill_change(r, s, ask, known);
            return;
        }
        break;
    case FAVOURITE_PAYS:
        if (known) {
            ask_book(ask, of_hold, &known->id);
            ask->c.booking_create->captures_by_hand = true;
            return;
        }
        break;
    default:
        break;
    }
    fill_create(r, ask, e);
}

void random_request(struct run *r)
{
    struct server *s = any_server(r);
    struct call *call = hf_alloc(sizeof *call);
    struct event *e = engine_event(s->engine, r->events[below(r, EVENTS)]);
    uint32_t kind = below(r, r->favourite ? 36 : 24);
    if (r->favourite && one_in(r, 4))
        fill_favourite(r, s, &call->ask, e);
    else if (kind >= 20)
        fill_waiting(r, s, &call->ask, e);
    else if (kind < 4)
        fill_seller(r, &call->ask, e);
    else if (kind < 7)
        fill_keyed(r, s, &call->ask);
    else if (kind < 13 && r->holds.n)
        fill_named(r, s, &call->ask);
    else if (kind != 13 || !fill_resume(r, s, &call->ask))
        fill_create(r, &call->ask, e);
    server_put(s, call);
    *vec_push(&r->waiting) = call;
}
