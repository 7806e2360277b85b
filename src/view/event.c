/* An event: its layout, its places, and what is shown of it; see view.h. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "view/free_seats.h"
#include "view/snapshot.h"
#include "view/view.h"
#include "view/waitlist.h"

/* ---- layout ---- */

/* How many changes to keep for streams: four per seat, within bounds (24 bytes each). */
static uint32_t feed_len(uint32_t n_seats)
{
    const uint32_t min = 16384, max = 262144;
    return n_seats < min / 4 ? min : n_seats > max / 4 ? max : n_seats * 4;
}

struct event *event_new(struct event_def *def, const struct clock_row *clock)
{
    struct event *e = hf_alloc(sizeof *e);
    e->def = def;
    id_format(e->id_text, "evt_", &def->id);
    for (size_t s = 0; s < def->sections.n; s++)
        e->rows.n += (uint32_t)def->sections.v[s].rows.n;
    e->rows.list = hf_alloc((e->rows.n + 1) * sizeof *e->rows.list);
    struct row *next = e->rows.list;
    for (size_t s = 0; s < def->sections.n; s++)
        for (size_t r = 0; r < def->sections.v[s].rows.n; r++) {
            const struct row_def *row = &def->sections.v[s].rows.v[r];
            *next++ = (struct row){.name = row->name,
                                   .name_len = strlen(row->name),
                                   .section = (uint32_t)s,
                                   .first = row->first,
                                   .n_seats = row->seats};
        }
    event_index_rows(e);
    e->seats = hf_alloc((def->n_seats + (size_t)1) * sizeof *e->seats);
    e->free_seats = free_seats_new(e);
    e->shown.counts[SEAT_AVAILABLE] = def->n_seats;
    e->areas = hf_alloc((def->areas.n + 1) * sizeof *e->areas);
    for (uint32_t i = 0; i < def->areas.n; i++)
        event_show_area(e, i);
    struct event_terms terms;
    event_terms_copy(&def->terms, &terms);
    e->terms = event_terms_new(&terms);
    e->shown.seq = clock->seq;
    e->status_draft = def->status;
    event_show_terms(e);
    e->clock = e->draft = *clock;
    feed_init(&e->feed, feed_floor(clock->seq), feed_len(def->n_seats));
    lock_init(&e->lock);
    lock_init(&e->documents.lock);
    e->documents.maps = versions_new();
    e->documents.plain_plans = versions_new();
    return e;
}

void event_drop_loaded(struct event *e)
{
    while (e->loading.holds) {
        struct table_node *next = e->loading.holds->next;
        free(e->loading.holds);
        e->loading.holds = next;
    }
    e->loading.n_holds = 0;
    free(e->loading.heads);
    e->loading.heads = NULL;
    vec_close(&e->loading.owners);
}

void event_free(struct event *e)
{
    if (!e)
        return;
    event_drop_loaded(e);
    free_seats_close(e->free_seats);
    waitlist_free(e->waitlist);
    snapshot_unref(e->documents.map);
    snapshot_unref(e->documents.plan);
    versions_leave(e->documents.maps);
    versions_leave(e->documents.plain_plans);
    feed_close(&e->feed);
    heat_close(&e->heat);
    lock_close(&e->lock);
    lock_close(&e->documents.lock);
    event_terms_give(e->shown.terms);
    event_terms_give(e->terms);
    for (size_t i = 0; i < e->def->areas.n; i++)
        vec_close(&e->areas[i].blocks.list);
    event_def_free(e->def);
    free(e->rows.list);
    free(e->rows.index);
    free(e->seats);
    free(e->areas);
    free(e);
}

void event_set_terms(struct event *e, const struct event_terms *terms)
{
    event_terms_give(e->terms);
    e->terms = terms;
    free_seats_repriced(e);
    waitlist_terms_changed(e);
}

const char *event_id_text(const struct event *e) { return e->id_text; }

uint64_t owner_hash(const struct event *e, const char *owner, size_t len)
{
    uint64_t hash = owner ? hash_keyed_with((uint64_t)e->def->id.key, owner, len) : 0;
    return !owner ? 0 : hash ? hash : 1;
}

/* ---- areas ---- */

static struct area_block *find_block(const struct area *area, uint32_t channel)
{
    for (size_t i = 0; i < area->blocks.list.n; i++)
        if (area->blocks.list.v[i].channel == channel)
            return &area->blocks.list.v[i];
    return NULL;
}

int64_t area_blocked_for(const struct area *area, uint32_t channel)
{
    const struct area_block *block = find_block(area, channel);
    return block ? block->places : 0;
}

/* Adds to the places that are blocked for the channel; keeps the list in order and without zeros.
 */
static void add_blocked(struct area *area, uint32_t channel, int64_t places)
{
    struct area_block *block = find_block(area, channel);
    area->blocked += places;
    if (!block) {
        size_t at = area->blocks.list.n;
        vec_push(&area->blocks.list);
        struct area_block *list = area->blocks.list.v;
        for (; at > 0 && list[at - 1].channel > channel; at--)
            list[at] = list[at - 1];
        block = &list[at];
        *block = (struct area_block){.channel = channel};
    }
    block->places = (uint32_t)(block->places + places);
    if (!block->places) {
        const struct area_block *end = area->blocks.list.v + --area->blocks.list.n;
        memmove(block, block + 1, (size_t)(end - block) * sizeof *block);
    }
}

void area_pass(struct area *area, const struct area_passage *p)
{
    area->held += p->quantity * ((p->to == SEAT_HELD) - (p->from == SEAT_HELD));
    area->booked += p->quantity * ((p->to == SEAT_BOOKED) - (p->from == SEAT_BOOKED));
    if (p->from == SEAT_BLOCKED)
        add_blocked(area, p->channel, -p->quantity);
    if (p->to == SEAT_BLOCKED)
        add_blocked(area, p->channel, p->quantity);
}

void event_load_area(struct event *e, uint32_t index, int64_t held, int64_t booked,
                     const struct area_blocks *blocks)
{
    if (index >= e->def->areas.n)
        return;
    struct area *area = &e->areas[index];
    area->held = held;
    area->booked = booked;
    area->blocked = 0;
    vec_clear(&area->blocks.list);
    for (size_t i = 0; blocks && i < blocks->list.n; i++)
        if (blocks->list.v[i].places)
            add_blocked(area, blocks->list.v[i].channel, blocks->list.v[i].places);
}

/* ---- what other threads see ---- */

void event_show_area(struct event *e, uint32_t index)
{
    struct area *area = &e->areas[index];
    atomic_store_explicit(&area->available,
                          e->def->areas.v[index].capacity - area->held - area->booked -
                              area->blocked,
                          memory_order_relaxed);
    atomic_store_explicit(&area->booked_shown, area->booked, memory_order_relaxed);
    atomic_store_explicit(&area->blocked_shown, area->blocked, memory_order_relaxed);
}

void event_show_seat(struct event *e, uint32_t index, int64_t until_ms)
{
    struct seat *seat = &e->seats[index];
    uint64_t old = atomic_load_explicit(&seat->shown, memory_order_relaxed);
    atomic_fetch_sub_explicit(&e->shown.counts[old & 3], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->shown.counts[seat->status], 1, memory_order_relaxed);
    atomic_store_explicit(&seat->shown, (uint64_t)until_ms << 2 | seat->status,
                          memory_order_release);
}

void event_map_read(struct event *e, struct seat_map *ret) { event_map_read_at(e, 0, ret); }

void event_map_read_at(struct event *e, int64_t at, struct seat_map *ret)
{
    ret->at = at;
    ret->seats = hf_alloc(e->def->n_seats);
    ret->available = hf_alloc(e->def->areas.n * sizeof *ret->available);
    lock_take(&e->lock);
    ret->seq = e->shown.seq;
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        uint64_t shown = atomic_load_explicit(&e->seats[i].shown, memory_order_relaxed);
        bool was_due = at && seat_shown_status(shown) == SEAT_HELD && seat_shown_until(shown) <= at;
        ret->seats[i] = was_due ? SEAT_AVAILABLE : (uint8_t)seat_shown_status(shown);
    }
    for (size_t i = 0; i < e->def->areas.n; i++)
        ret->available[i] = e->areas[i].available;
    ret->status = (enum event_status)atomic_load_explicit(&e->shown.status, memory_order_relaxed);
    ret->terms = event_terms_share(e->shown.terms);
    lock_give(&e->lock);
}

void seat_map_close(struct seat_map *map)
{
    free(map->seats);
    free(map->available);
    event_terms_give(map->terms);
}

int64_t event_seat_head(struct event *e, uint32_t index, int64_t *ret_seq)
{
    lock_take(&e->lock);
    int64_t head = seat_head(&e->seats[index]);
    *ret_seq = e->shown.seq;
    lock_give(&e->lock);
    return head;
}

void event_read_counts(struct event *e, struct event_counts *ret)
{
    lock_take(&e->lock);
    *ret = (struct event_counts){.seq = e->shown.seq,
                                 .available = e->shown.counts[SEAT_AVAILABLE],
                                 .held = e->shown.counts[SEAT_HELD],
                                 .booked = e->shown.counts[SEAT_BOOKED],
                                 .blocked = e->shown.counts[SEAT_BLOCKED]};
    for (size_t i = 0; i < e->def->areas.n; i++) {
        int64_t available = e->areas[i].available, booked = e->areas[i].booked_shown;
        int64_t blocked = e->areas[i].blocked_shown;
        ret->available += available;
        ret->booked += booked;
        ret->blocked += blocked;
        ret->held += e->def->areas.v[i].capacity - available - booked - blocked;
    }
    lock_give(&e->lock);
}
