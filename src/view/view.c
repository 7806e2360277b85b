/* A worker's events and holds; see view.h for which thread may touch what. */
#include "view/view.h"

#include <stdlib.h>

#include "view/free_seats.h"
#include "view/view_holds.h"
#include "view/view_waits.h"

struct view {
    struct registry events;
    struct hold_table holds;
    struct clients clients;
    struct owners owners;
    struct wait_lists waits;
};

struct view *view_new(void)
{
    struct view *v = hf_alloc(sizeof *v);
    clients_init(&v->clients);
    v->holds.clients = &v->clients;
    v->holds.owners = &v->owners;
    return v;
}

void view_share_clients(struct view *v, struct view *first)
{
    hf_check(v->holds.by_key.n == 0);
    v->holds.clients = &first->clients;
}

void view_free(struct view *v)
{
    if (!v)
        return;
    hold_table_close(&v->holds);
    for (size_t i = 0; i < v->events.loaded.n; i++)
        view_waits_drop(v, v->events.loaded.v[i]);
    heap_close(&v->waits.by_time);
    registry_close(&v->events);
    clients_close(&v->clients);
    owners_close(&v->owners);
    free(v);
}

/* A const view promises that what other threads see is not changed; the holds are the worker's. */
struct hold_table *view_hold_table(const struct view *v)
{
    return &((struct view *)(uintptr_t)v)->holds;
}

struct wait_lists *view_wait_lists(struct view *v) { return &v->waits; }

struct event *view_event(const struct view *v, int64_t event)
{
    return registry_find(&v->events, event);
}

const struct registry *view_registry(const struct view *v) { return &v->events; }

/* ---- owners ---- */

struct hold *view_owner_holds(const struct view *v, uint64_t owner)
{
    const struct owner_slot *slot = owners_find(&v->owners, owner);
    return slot ? slot->holds : NULL;
}

int64_t view_owner_places(const struct view *v, uint64_t owner)
{
    const struct owner_slot *slot = owners_find(&v->owners, owner);
    return slot ? slot->held + slot->booked : 0;
}

void view_owner_booked(struct view *v, int64_t event, uint64_t owner, int64_t places)
{
    view_event(v, event)->has_owners = true;
    owners_book(&v->owners, event, owner, places);
}

/* ---- loading ---- */

void event_load_seat(struct event *e, uint32_t index, enum seat_status status, int64_t hold)
{
    if (index >= e->def->n_seats)
        return;
    e->seats[index].status = (uint8_t)status;
    seat_set_hold(e, index, hold);
    free_seats_changed(e, index);
}

void event_load_head(struct event *e, uint32_t index, int64_t seq)
{
    if (index >= e->def->n_seats)
        return;
    if (!e->loading.heads)
        e->loading.heads = hf_alloc((size_t)e->def->n_seats * HEAD_SIZE);
    head_pack(e->loading.heads + (size_t)index * HEAD_SIZE, seq);
}

void event_load_channel(struct event *e, uint32_t index, uint32_t channel)
{
    if (index < e->def->n_seats && channel <= CHANNELS_MAX)
        e->seats[index].channel = (uint8_t)channel;
}

void event_load_owner(struct event *e, uint64_t owner, uint32_t places)
{
    *vec_push(&e->loading.owners) = (struct owner_places){.owner = owner, .places = places};
}

bool event_fits_hold(const struct event *e, const struct hold_row *row)
{
    for (uint32_t i = 0; i < row->n_seats; i++)
        if (row->seats[i] >= e->def->n_seats)
            return false;
    for (uint32_t i = 0; i < row->n_areas; i++)
        if (row->areas[i].area >= e->def->areas.n)
            return false;
    return true;
}

void event_load_hold(struct event *e, const struct hold_row *row)
{
    if (!event_fits_hold(e, row))
        return; /* a damaged row; `holdfast verify` names it */
    struct hold *h = hold_new(e, row);
    *(e->loading.holds ? &e->loading.last_hold->next : &e->loading.holds) = &h->node;
    e->loading.last_hold = &h->node;
    e->loading.n_holds++;
    for (uint32_t i = 0; i < row->n_seats; i++) {
        const struct seat *seat = &e->seats[row->seats[i]];
        if (seat->status == SEAT_AVAILABLE || (seat->status == SEAT_BLOCKED && seat->channel))
            event_load_seat(e, row->seats[i], SEAT_HELD, row->id.key);
    }
}

static int by_hold(const void *key, const void *item)
{
    int64_t a = *(const int64_t *)key, b = ((const struct hold_payment *)item)->hold;
    return (a > b) - (a < b);
}

void event_load_payments(struct event *e, const struct hold_payment *list, size_t n)
{
    for (struct table_node *x = n ? e->loading.holds : NULL; x; x = x->next) {
        struct hold *h = (struct hold *)x;
        const struct hold_payment *found = bsearch(&h->key, list, n, sizeof *list, by_hold);
        h->payment = found ? found->payment : 0;
    }
}

/* ---- installing ---- */

/* Writes only what differs: the memory of seats that were never touched is not even there yet. */
static void show_heads(struct event *e)
{
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const uint8_t *loaded = e->loading.heads ? e->loading.heads + (size_t)i * HEAD_SIZE : NULL;
        int64_t head = loaded ? head_unpack(loaded) : 0;
        if (head != seat_head(&e->seats[i]))
            seat_set_head(&e->seats[i], head);
    }
    free(e->loading.heads);
    e->loading.heads = NULL;
}

static void show_all(struct event *e, const struct view *v)
{
    lock_take(&e->lock);
    show_heads(e);
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const struct seat *seat = &e->seats[i];
        uint64_t shown = atomic_load_explicit(&seat->shown, memory_order_relaxed);
        const struct hold *h = seat->status == SEAT_HELD ? view_hold(v, seat_hold(e, i)) : NULL;
        if (seat->status != SEAT_AVAILABLE || shown != SEAT_AVAILABLE)
            event_show_seat(e, i, h ? h->expires_at : 0);
    }
    for (uint32_t i = 0; i < e->def->areas.n; i++)
        event_show_area(e, i);
    event_show_terms(e);
    e->shown.seq = e->clock.seq;
    feed_reset(&e->feed, feed_floor(e->clock.seq));
    lock_give(&e->lock);
}

static void adopt_holds(struct view *v, struct event *e)
{
    hold_table_reserve(&v->holds, e->loading.n_holds);
    e->loading.n_holds = 0;
    while (e->loading.holds) {
        struct hold *h = (struct hold *)e->loading.holds;
        e->loading.holds = h->node.next;
        hold_table_add(&v->holds, h);
    }
    e->has_owners |= e->loading.owners.n > 0;
    for (size_t i = 0; i < e->loading.owners.n; i++)
        owners_book(&v->owners, e->def->id.key, e->loading.owners.v[i].owner,
                    e->loading.owners.v[i].places);
    vec_close(&e->loading.owners);
    view_waits_enter(v, e);
}

struct event *view_install(struct view *v, struct event *e)
{
    int64_t key = e->def->id.key;
    struct event *there = view_event(v, key);
    if (there) {
        if (there != e)
            event_free(e);
        return there;
    }
    if (registry_departures(&v->events, key) != e->registered.departures) {
        event_free(e);
        return NULL;
    }
    adopt_holds(v, e);
    show_all(e, v);
    registry_install(&v->events, e);
    return e;
}

bool view_leave(struct view *v, struct event *e)
{
    hf_check(!e->in_batch);
    bool is_waited_for = e->waitlist && e->waitlist->n_waiting;
    if (e->n_holds || is_waited_for || !registry_remove(&v->events, e))
        return false;
    view_waits_drop(v, e);
    if (e->has_owners)
        owners_forget(&v->owners, e->def->id.key);
    event_free(e);
    return true;
}

void view_forget(struct view *v, struct event *e)
{
    hold_table_remove(&v->holds, e);
    owners_forget(&v->owners, e->def->id.key);
    view_waits_drop(v, e);
    event_drop_loaded(e);
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        e->seats[i].status = SEAT_AVAILABLE;
        e->seats[i].owner = 0;
        e->seats[i].channel = 0;
        e->seats[i].pending = 0;
        free_seats_changed(e, i);
    }
    for (uint32_t i = 0; i < e->def->areas.n; i++)
        e->areas[i].pending = 0;
}

void view_reloaded(struct view *v, struct event *e, const struct clock_row *clock)
{
    e->clock = e->draft = *clock;
    adopt_holds(v, e);
    show_all(e, v);
}
