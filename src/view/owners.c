/* See owners.h. */
#include "view/owners.h"

#include "base/hash.h"
#include "view/view.h"

static bool is_empty(const void *slot)
{
    const struct owner_slot *s = slot;
    return !s->holds && !s->held && !s->booked;
}

static const struct slots_kind kind = {sizeof(struct owner_slot), hash_int, is_empty};

static struct owner_slot *get(struct owners *o, int64_t event, uint64_t owner)
{
    struct owner_slot *slot = slots_get(&o->slots, &kind, owner);
    slot->event = event;
    return slot;
}

void owners_add(struct owners *o, struct hold *h, uint32_t places)
{
    if (!h->owner)
        return;
    struct owner_slot *slot = get(o, h->event->def->id.key, h->owner);
    slot->held += places;
    h->owner_next = slot->holds;
    slot->holds = h;
}

void owners_remove(struct owners *o, struct hold *h, uint32_t places)
{
    if (!h->owner)
        return;
    struct owner_slot *slot = slots_find(&o->slots, &kind, h->owner);
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
        get(o, event, owner)->booked += places;
}

const struct owner_slot *owners_find(const struct owners *o, uint64_t owner)
{
    const struct owner_slot *slot = owner ? slots_find(&o->slots, &kind, owner) : NULL;
    return slot && !is_empty(slot) ? slot : NULL;
}

void owners_forget(struct owners *o, int64_t event)
{
    for (size_t i = 0; i < o->slots.n; i++) {
        struct owner_slot *slot = slots_at(&o->slots, &kind, i);
        if (slot->event == event)
            slot->booked = 0;
    }
}

void owners_close(struct owners *o) { slots_close(&o->slots); }
