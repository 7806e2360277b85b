/* See owners.h. */
#include "rules/owners.h"

#include <stdlib.h>

#include "base/status.h"
#include "rules/view.h"

static struct owner_entry *find(const struct owners *o, uint64_t owner)
{
    struct table_node *x = table_chain(&o->by_hash, owner);
    while (x && x->hash != owner)
        x = x->next;
    return (struct owner_entry *)x;
}

static struct owner_entry *find_or_add(struct owners *o, int64_t event, uint64_t owner)
{
    struct owner_entry *entry = find(o, owner);
    if (!entry) {
        entry = hf_alloc(sizeof *entry);
        entry->event = event;
        table_add(&o->by_hash, &entry->node, owner);
    }
    return entry;
}

static void drop_if_empty(struct owners *o, struct owner_entry *entry)
{
    if (entry->holds || entry->held || entry->booked)
        return;
    table_remove(&o->by_hash, &entry->node);
    free(entry);
}

void owners_add(struct owners *o, struct hold *h, uint32_t places)
{
    if (!h->owner)
        return;
    struct owner_entry *entry = find_or_add(o, h->event->def->id.key, h->owner);
    entry->held += places;
    h->owner_next = entry->holds;
    entry->holds = h;
}

void owners_remove(struct owners *o, struct hold *h, uint32_t places)
{
    if (!h->owner)
        return;
    struct owner_entry *entry = find(o, h->owner);
    struct hold **link = &entry->holds;
    while (*link != h)
        link = &(*link)->owner_next;
    *link = h->owner_next;
    h->owner_next = NULL;
    entry->held -= places;
    drop_if_empty(o, entry);
}

void owners_book(struct owners *o, int64_t event, uint64_t owner, int64_t places)
{
    if (!owner)
        return;
    struct owner_entry *entry = find_or_add(o, event, owner);
    entry->booked += places;
    drop_if_empty(o, entry);
}

const struct owner_entry *owners_find(const struct owners *o, uint64_t owner)
{
    return owner ? find(o, owner) : NULL;
}

void owners_forget(struct owners *o, int64_t event)
{
    for (struct table_node *x = table_first(&o->by_hash), *next; x; x = next) {
        struct owner_entry *entry = (struct owner_entry *)x;
        next = table_after(&o->by_hash, x);
        if (entry->event != event)
            continue;
        entry->booked = 0;
        drop_if_empty(o, entry);
    }
}

void owners_close(struct owners *o) { table_free_items(&o->by_hash); }
