/* See registry.h. */
#include "view/registry.h"

#include <stdlib.h>

#include "base/status.h"
#include "view/view.h"

void registry_close(struct registry *r)
{
    for (size_t i = 0; i < r->loaded.n; i++)
        event_free(r->loaded.v[i]);
    vec_close(&r->loaded);
    for (size_t c = 0; c < REGISTRY_CHUNKS; c++)
        free(r->chunks[c]);
}

/* NULL: the event has never been loaded. */
static struct event_slot *slot_of(const struct registry *r, int64_t event)
{
    if (event <= 0 || event > EVENT_KEY_MAX)
        return NULL;
    struct event_slot *chunk =
        atomic_load_explicit(&r->chunks[event >> REGISTRY_CHUNK_BITS], memory_order_acquire);
    return chunk ? &chunk[event & (REGISTRY_CHUNK_SLOTS - 1)] : NULL;
}

struct event *registry_find(const struct registry *r, int64_t event)
{
    struct event_slot *slot = slot_of(r, event);
    return slot ? atomic_load_explicit(&slot->event, memory_order_acquire) : NULL;
}

static void unpin(struct event_slot *slot)
{
    uint64_t before = atomic_fetch_sub_explicit(&slot->pins, 1, memory_order_release);
    hf_check(slot_pins(before) > 0);
}

static struct event *take(struct event_slot *slot, bool is_use)
{
    if (!atomic_load_explicit(&slot->event, memory_order_relaxed))
        return NULL; /* an unloaded event costs no write */
    atomic_fetch_add(&slot->pins, is_use ? SLOT_USE + 1 : 1);
    struct event *e = atomic_load(&slot->event);
    if (!e)
        unpin(slot);
    return e;
}

struct event *registry_take(const struct registry *r, int64_t event, bool is_use)
{
    struct event_slot *slot = slot_of(r, event);
    return slot ? take(slot, is_use) : NULL;
}

void registry_take_all(const struct registry *r, void (*each)(void *ctx, struct event *e),
                       void *ctx)
{
    for (size_t c = 0; c < REGISTRY_CHUNKS; c++) {
        struct event_slot *chunk = atomic_load_explicit(&r->chunks[c], memory_order_acquire);
        for (size_t i = 0; chunk && i < REGISTRY_CHUNK_SLOTS; i++) {
            struct event *e = take(&chunk[i], false);
            if (e)
                each(ctx, e);
        }
    }
}

uint32_t registry_departures(const struct registry *r, int64_t event)
{
    struct event_slot *slot = slot_of(r, event);
    return slot ? atomic_load_explicit(&slot->departures, memory_order_acquire) : 0;
}

struct event *event_share(struct event *e)
{
    if (e->registered.slot)
        atomic_fetch_add_explicit(&e->registered.slot->pins, 1, memory_order_relaxed);
    return e;
}

void event_give(struct event *e)
{
    if (e && e->registered.slot)
        unpin(e->registered.slot);
}

void registry_install(struct registry *r, struct event *e)
{
    int64_t key = e->def->id.key;
    struct event_slot *slot = slot_of(r, key);
    if (!slot) {
        struct event_slot *chunk = hf_alloc(REGISTRY_CHUNK_SLOTS * sizeof *chunk);
        atomic_store_explicit(&r->chunks[key >> REGISTRY_CHUNK_BITS], chunk, memory_order_release);
        slot = slot_of(r, key);
    }
    e->registered.slot = slot;
    e->registered.index = r->loaded.n;
    *vec_push(&r->loaded) = e;
    atomic_store(&slot->event, e);
}

bool registry_remove(struct registry *r, struct event *e)
{
    struct event_slot *slot = e->registered.slot;
    if (slot_pins(atomic_load_explicit(&slot->pins, memory_order_relaxed)))
        return false; /* seldom in vain: nobody looks for the event while it is hidden */
    atomic_store(&slot->event, NULL);
    if (slot_pins(atomic_load(&slot->pins))) {
        atomic_store(&slot->event, e);
        return false;
    }
    atomic_fetch_add_explicit(&slot->departures, 1, memory_order_release);
    struct event *last = r->loaded.v[--r->loaded.n];
    r->loaded.v[e->registered.index] = last;
    last->registered.index = e->registered.index;
    e->registered.slot = NULL;
    return true;
}
