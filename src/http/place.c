/* See place.h. */
#include "http/place.h"

#include <string.h>

#include "base/hash.h"
#include "http/conn.h"
#include "http/server_internal.h"

#define MOVED_US 1000000 /* a connection that was moved less than this ago is not moved again */
#define NARROW_BYTES 8   /* of an IPv6 address: a /64 */
#define WIDE_BYTES 6

/* ---- resting ---- */

void place_rest_over(struct conn *c)
{
    struct loop_places *all = &c->loop->places;
    struct place *p = &c->place;
    *(p->older ? &p->older->place.newer : &all->oldest) = p->newer;
    *(p->newer ? &p->newer->place.older : &all->newest) = p->older;
    p->older = p->newer = NULL;
    p->since_us = 0;
}

static void list(struct conn *c)
{
    struct loop_places *all = &c->loop->places;
    c->place.older = all->newest;
    c->place.newer = NULL;
    *(all->newest ? &all->newest->place.newer : &all->oldest) = c;
    all->newest = c;
    c->place.since_us = c->loop->now_us;
}

void place_rest(struct conn *c)
{
    const struct place *p = &c->place;
    if (p->is_guest || (p->since_us && c->loop->now_us - p->since_us < MOVED_US))
        return;
    if (p->since_us)
        place_rest_over(c);
    list(c);
}

void place_rest_on(struct conn *c)
{
    if (!c->place.is_guest && !c->place.since_us)
        list(c);
}

/* ---- addresses ---- */

static size_t prefix_len(const struct address *a, bool wide)
{
    return a->v4 ? 4 : wide ? WIDE_BYTES : NARROW_BYTES;
}

bool place_is_same(const struct address *a, const struct address *b, bool wide)
{
    return a->v4 == b->v4 && memcmp(a->bytes, b->bytes, prefix_len(a, wide)) == 0;
}

struct place_slot *place_slot_of(struct loop *l, const struct address *a)
{
    return &l->places.slots[hash_keyed(a->bytes, prefix_len(a, true)) % PLACE_SLOTS];
}

static void enter_slot(struct conn *c)
{
    struct place_slot *slot = place_slot_of(c->loop, &c->peer);
    c->place.before = slot->last;
    c->place.after = NULL;
    *(slot->last ? &slot->last->place.after : &slot->first) = c;
    slot->last = c;
    slot->n++;
}

static void leave_slot(struct conn *c)
{
    struct place_slot *slot = place_slot_of(c->loop, &c->peer);
    struct place *p = &c->place;
    *(p->before ? &p->before->place.after : &slot->first) = p->after;
    *(p->after ? &p->after->place.before : &slot->last) = p->before;
    slot->n--;
}

void place_look_later(struct conn *c)
{
    leave_slot(c);
    enter_slot(c);
}

size_t place_crowd(const struct conn *c)
{
    return c->place.is_counted ? place_slot_of(c->loop, &c->peer)->n : 0;
}

/* ---- life ---- */

void place_enter(struct conn *c)
{
    if (c->place.is_counted)
        enter_slot(c);
}

void place_enter_as_guest(struct conn *c)
{
    struct conn **first = &c->loop->places.guests;
    c->place.is_guest = true;
    c->place.newer = *first;
    if (*first)
        (*first)->place.older = c;
    *first = c;
}

void place_uncount(struct conn *c)
{
    if (c->place.is_counted)
        quota_give(c->loop->server->quotas, &c->peer, QUOTA_CONNECTIONS);
    c->place.is_counted = false;
}

void place_leave(struct conn *c)
{
    struct loop *l = c->loop;
    struct place *p = &c->place;
    if (p->is_guest) {
        *(p->older ? &p->older->place.newer : &l->places.guests) = p->newer;
        if (p->newer)
            p->newer->place.older = p->older;
        atomic_fetch_sub(&l->server->n_guests, 1);
        return;
    }
    if (p->since_us)
        place_rest_over(c);
    if (c->place.is_counted)
        leave_slot(c);
    place_uncount(c);
    atomic_fetch_sub(&l->server->n_places, 1);
}
