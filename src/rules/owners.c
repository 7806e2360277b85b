/* See owners.h. */
#include "rules/owners.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/status.h"
#include "rules/view.h"

static struct owner_slot *find(const struct owners *o, uint64_t owner)
{
    size_t i = hash_int(owner) & (o->n - 1);
    while (o->slots[i].owner && o->slots[i].owner != owner)
        i = (i + 1) & (o->n - 1);
    return &o->slots[i];
}

static bool is_empty(const struct owner_slot *slot)
{
    return !slot->holds && !slot->held && !slot->booked;
}

/* Grows the table to four times the owners that have something, without the others. */
static void grow(struct owners *o)
{
    struct owner_slot *old = o->slots;
    size_t n_old = o->n, live = 0;
    for (size_t i = 0; i < n_old; i++)
        live += !is_empty(&old[i]);
    for (o->n = 256; o->n < live * 4; o->n *= 2)
        ;
    o->slots = hf_alloc(o->n * sizeof *o->slots);
    o->n_used = live;
    for (size_t i = 0; i < n_old; i++)
        if (!is_empty(&old[i]))
            *find(o, old[i].owner) = old[i];
    free(old);
}

static struct owner_slot *find_or_add(struct owners *o, int64_t event, uint64_t owner)
{
    if (o->n_used * 2 >= o->n)
        grow(o);
    struct owner_slot *slot = find(o, owner);
    o->n_used += slot->owner == 0;
    slot->owner = owner;
    slot->event = event;
    return slot;
}

void owners_add(struct owners *o, struct hold *h, uint32_t places)
{
    if (!h->owner)
        return;
    struct owner_slot *slot = find_or_add(o, h->event->def->id.key, h->owner);
    slot->held += places;
    h->owner_next = slot->holds;
    slot->holds = h;
}

void owners_remove(struct owners *o, struct hold *h, uint32_t places)
{
    if (!h->owner)
        return;
    struct owner_slot *slot = find(o, h->owner);
    struct hold **link = &slot->holds;
    while (*link != h)
        link = &(*link)->owner_next;
    *link = h->owner_next;
    h->owner_next = NULL;
    slot->held -= places;
}

void owners_book(struct owners *o, int64_t event, uint64_t owner, int64_t places)
{
    if (owner)
        find_or_add(o, event, owner)->booked += places;
}

const struct owner_slot *owners_find(const struct owners *o, uint64_t owner)
{
    if (!owner || !o->n)
        return NULL;
    const struct owner_slot *slot = find(o, owner);
    return slot->owner && !is_empty(slot) ? slot : NULL;
}

void owners_forget(struct owners *o, int64_t event)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->slots[i].event == event)
            o->slots[i].booked = 0;
}

void owners_close(struct owners *o)
{
    free(o->slots);
    *o = (struct owners){0};
}
