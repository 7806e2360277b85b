/* See admission.h. */
#include "http/admission.h"

#include "http/conn.h"
#include "http/server_internal.h"

#define LOOKED_AT 32 /* connections of a slot among which the one that rested longest is closed */
#define LOOKED_AT_MAX 256 /* if none of these rests */
#define HEAVY_SHARE 8     /* an address with more than this part of a loop has much of it... */
#define HEAVY_MIN 8       /* ... and with more connections than this */

/* ---- who is looked for ---- */

/* A request, or a part of a handshake, that has arrived and has not been read yet is no rest. */
static bool rests(const struct conn *c)
{
    if (c->state == CONN_BODY || c->state == CONN_LINGER)
        return true;
    return (c->state == CONN_HEAD || c->state == CONN_HANDSHAKE) &&
           (c->request || !conn_has_unread(c));
}

/* Has it memory for a request of which it has not sent all? */
static bool has_part(const struct conn *c)
{
    return (c->state == CONN_HEAD || c->state == CONN_BODY) && c->in && c->request;
}

/* Memory is short while events are taken, one of which may be about the connection. */
static void evict(struct conn *c, enum room room)
{
    counter_add(c->loop->server->traffic.evicted, 1);
    if (room == ROOM_PLACE)
        conn_close(c);
    else
        conn_cut(c);
}

/* Who is looked for. */
struct wanted {
    enum room room;
    const struct conn *asks;  /* and does not make room itself */
    const struct address *of; /* one of this address; NULL: of any */
    bool wide;                /* one of its /48 will do */
};

static bool is_wanted(const struct conn *c, const struct wanted *w)
{
    if (!c->place.since_us || c == w->asks || (w->of && !place_is_same(&c->peer, w->of, w->wide)))
        return false;
    if (w->room == ROOM_PLACE)
        return rests(c);
    return has_part(c) && (w->room == ROOM_REQUEST || c->request->upload.counted > 0);
}

/* ---- addresses ---- */

/* Closes the connection of the slot that has rested longest, as far as some of them tell: LOOKED_AT
 * of them, or up to LOOKED_AT_MAX until one is found.  Those that do not count are looked at last
 * the next time.  Whether one rests may take a system call, so only those are asked that would be
 * closed. */
static bool evict_in(struct place_slot *slot, const struct wanted *w)
{
    struct conn *found = NULL, *next = slot->first;
    for (int i = 0; next && i < (found ? LOOKED_AT : LOOKED_AT_MAX); i++) {
        struct conn *c = next;
        next = c->place.after;
        if (found && c->place.since_us >= found->place.since_us)
            continue;
        if (is_wanted(c, w))
            found = c;
        else
            place_look_later(c);
    }
    if (found)
        evict(found, w->room);
    return found;
}

static bool is_heavy(const struct place_slot *slot, size_t n_all)
{
    return slot->n > HEAVY_MIN && slot->n > n_all / HEAVY_SHARE;
}

/* The slot that has most connections of the loop; *ret_all is how many there are in all of them. */
static struct place_slot *find_heaviest(struct loop *l, size_t *ret_all)
{
    struct place_slot *slots = l->places.slots, *heaviest = slots;
    *ret_all = 0;
    for (size_t i = 0; i < PLACE_SLOTS; i++) {
        *ret_all += slots[i].n;
        if (slots[i].n > heaviest->n)
            heaviest = &slots[i];
    }
    return heaviest;
}

/* If one address has much of the loop, it makes room for whoever comes.  *ret_only says that nobody
 * else does, since the newcomer is one of such a crowd itself. */
static bool evict_of_heaviest(const struct conn *newcomer, bool *ret_only)
{
    struct loop *l = newcomer->loop;
    size_t n;
    struct place_slot *heaviest = find_heaviest(l, &n);
    struct place_slot *own = newcomer->place.is_counted ? place_slot_of(l, &newcomer->peer) : NULL;
    const struct wanted any = {.room = ROOM_PLACE};
    *ret_only = own && is_heavy(own, n);
    return (is_heavy(heaviest, n) && evict_in(heaviest, &any)) ||
           (*ret_only && own != heaviest && evict_in(own, &any));
}

/* Counts the newcomer with its address.  Returns false if the address has its share and none of its
 * connections rests. */
static bool enter_address(struct conn *c)
{
    const struct server *s = c->loop->server;
    if (!c->knows_peer || networks_have(&s->config.access->trusted, &c->peer))
        return true;
    c->place.is_counted = quota_take(s->quotas, &c->peer, QUOTA_CONNECTIONS);
    struct wanted own = {.room = ROOM_PLACE, .of = &c->peer};
    for (int wide = 0; wide <= !c->peer.v4 && !c->place.is_counted; wide++) {
        own.wide = wide;
        if (evict_in(place_slot_of(c->loop, &c->peer), &own))
            c->place.is_counted = quota_take(s->quotas, &c->peer, QUOTA_CONNECTIONS);
    }
    return c->place.is_counted;
}

/* ---- places ---- */

/* Closes the connection that has rested longest.  Those before it in the list are busy and leave
 * it, so that each is looked at once. */
static bool evict_oldest(struct loop *l)
{
    for (struct conn *c; (c = l->places.oldest); place_rest_over(c))
        if (rests(c)) {
            evict(c, ROOM_PLACE);
            return true;
        }
    return false;
}

static bool enter_place(const struct conn *c)
{
    struct server *s = c->loop->server;
    bool only = false;
    if (atomic_fetch_add(&s->n_places, 1) < s->connections_max || evict_of_heaviest(c, &only) ||
        (!only && evict_oldest(c->loop)))
        return true;
    atomic_fetch_sub(&s->n_places, 1);
    return false;
}

bool admission_make_room(const struct conn *asks, enum room room)
{
    struct loop *l = asks->loop;
    const struct wanted other = {.room = room, .asks = asks};
    size_t n;
    struct place_slot *heaviest = find_heaviest(l, &n);
    if (is_heavy(heaviest, n) && evict_in(heaviest, &other))
        return true;
    struct conn *c = l->places.oldest;
    for (int i = 0; c && !is_wanted(c, &other) && i < LOOKED_AT_MAX; i++)
        c = c->place.newer;
    if (!c || !is_wanted(c, &other))
        return false;
    evict(c, room);
    return true;
}

static size_t guests_of_address(const struct conn *c)
{
    size_t n = 0;
    for (const struct conn *g = c->loop->places.guests; g; g = g->place.newer)
        n += g->knows_peer == c->knows_peer && place_is_same(&g->peer, &c->peer, true);
    return n;
}

static bool enter_as_guest(struct conn *c)
{
    struct server *s = c->loop->server;
    size_t max = GUESTS_OF_AN_ADDRESS / s->n_loops;
    if (guests_of_address(c) >= (max ? max : 1))
        return false;
    if (atomic_fetch_add(&s->n_guests, 1) >= GUESTS_MAX) {
        atomic_fetch_sub(&s->n_guests, 1);
        return false;
    }
    place_enter_as_guest(c);
    return true;
}

bool admission_enter(struct conn *c)
{
    bool enters = enter_address(c) && enter_place(c);
    if (!enters)
        place_uncount(c);
    if (!enters && !enter_as_guest(c))
        return false;
    if (enters)
        place_enter(c);
    return true;
}
