/* Events in memory: layout, seat states, registry.  See view.h for which thread may touch what. */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "view/free_seats.h"
#include "view/snapshot.h"
#include "view/view_holds.h"

struct view {
    struct registry events;
    struct hold_table holds;
    struct clients clients;
    struct owners owners;
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

struct event *view_event(const struct view *v, int64_t event)
{
    return registry_find(&v->events, event);
}

const struct registry *view_registry(const struct view *v) { return &v->events; }

/* ---- layout ---- */

/* Seats of a venue are found by their ids instead. */
static void index_rows(struct event *e)
{
    uint32_t size = 4;
    struct buf name = {0};
    if (e->def->venue)
        return;
    while (size < e->n_rows * 2)
        size *= 2;
    e->row_index = hf_alloc(size * sizeof *e->row_index);
    e->row_index_mask = size - 1;
    for (uint32_t r = 0; r < e->n_rows; r++) {
        name.len = 0;
        buf_str(&name, e->def->sections.v[e->rows[r].section].name);
        buf_char(&name, '-');
        buf_put(&name, e->rows[r].name, e->rows[r].name_len);
        uint32_t slot = (uint32_t)hash_keyed(name.data, name.len) & e->row_index_mask;
        while (e->row_index[slot])
            slot = (slot + 1) & e->row_index_mask;
        e->row_index[slot] = r + 1;
    }
    buf_close(&name);
}

/* How many changes to keep for streams: four per seat, within bounds (24 bytes each). */
static uint32_t feed_len(uint32_t n_seats)
{
    const uint32_t min = 16384, max = 262144;
    return n_seats < min / 4 ? min : n_seats > max / 4 ? max : n_seats * 4;
}

/* The first row of the log is the event's creation, which changes no seat. */
static int64_t feed_floor(int64_t seq) { return seq > 1 ? seq : 0; }

struct event *event_new(struct event_def *def, const struct clock_row *clock)
{
    struct event *e = hf_alloc(sizeof *e);
    e->def = def;
    id_format(e->id_text, "evt_", &def->id);
    for (size_t s = 0; s < def->sections.n; s++)
        e->n_rows += (uint32_t)def->sections.v[s].rows.n;
    e->rows = hf_alloc((e->n_rows + 1) * sizeof *e->rows);
    struct row *next = e->rows;
    for (size_t s = 0; s < def->sections.n; s++)
        for (size_t r = 0; r < def->sections.v[s].rows.n; r++) {
            const struct row_def *row = &def->sections.v[s].rows.v[r];
            *next++ = (struct row){.name = row->name,
                                   .name_len = strlen(row->name),
                                   .section = (uint32_t)s,
                                   .first = row->first,
                                   .n_seats = row->seats};
        }
    index_rows(e);
    e->seats = hf_alloc((def->n_seats + (size_t)1) * sizeof *e->seats);
    e->free_seats = free_seats_new(e);
    e->counts[SEAT_AVAILABLE] = def->n_seats;
    e->areas = hf_alloc((def->areas.n + 1) * sizeof *e->areas);
    for (uint32_t i = 0; i < def->areas.n; i++)
        event_show_area(e, i);
    struct event_terms terms;
    event_terms_copy(&def->terms, &terms);
    e->terms = event_terms_new(&terms);
    e->seq = clock->seq;
    e->status_draft = def->status;
    event_show_terms(e);
    e->clock = e->draft = *clock;
    feed_init(&e->feed, feed_floor(clock->seq), feed_len(def->n_seats));
    lock_init(&e->lock);
    lock_init(&e->snapshot_lock);
    e->maps = versions_new();
    e->plain_plans = versions_new();
    return e;
}

static void drop_loaded(struct event *e)
{
    while (e->loaded) {
        struct table_node *next = e->loaded->next;
        free(e->loaded);
        e->loaded = next;
    }
    free(e->loaded_heads);
    e->loaded_heads = NULL;
    vec_close(&e->loaded_owners);
}

void event_free(struct event *e)
{
    if (!e)
        return;
    drop_loaded(e);
    free_seats_close(e->free_seats, e->def);
    snapshot_unref(e->snapshot);
    snapshot_unref(e->plan);
    versions_leave(e->maps);
    versions_leave(e->plain_plans);
    feed_close(&e->feed);
    heat_close(&e->heat);
    lock_close(&e->lock);
    lock_close(&e->snapshot_lock);
    event_terms_give(e->terms_shown);
    event_terms_give(e->terms);
    for (size_t i = 0; i < e->def->areas.n; i++)
        vec_close(&e->areas[i].blocks.list);
    event_def_free(e->def);
    free(e->rows);
    free(e->row_index);
    free(e->seats);
    free(e->areas);
    free(e);
}

const char *event_id_text(const struct event *e) { return e->id_text; }

static const struct row *row_find(const struct event *e, const char *name, size_t len)
{
    uint32_t slot = (uint32_t)hash_keyed(name, len) & e->row_index_mask;
    for (; e->row_index[slot]; slot = (slot + 1) & e->row_index_mask) {
        const struct row *row = &e->rows[e->row_index[slot] - 1];
        if (row->name_len + 1 >= len || name[len - row->name_len - 1] != '-')
            continue;
        const char *section = e->def->sections.v[row->section].name;
        size_t section_len = len - row->name_len - 1;
        if (memcmp(name + section_len + 1, row->name, row->name_len) == 0 &&
            strlen(section) == section_len && memcmp(section, name, section_len) == 0)
            return row;
    }
    return NULL;
}

bool event_seat_find(const struct event *e, const char *name, size_t len, uint32_t *ret_index)
{
    if (e->def->venue)
        return venue_find(e->def->venue, name, len, ret_index);
    const char *dash = memrchr(name, '-', len);
    if (!dash)
        return false;
    const char *digit = dash + 1, *end = name + len;
    uint32_t number = 0;
    if (digit == end || *digit == '0')
        return false;
    for (; digit < end; digit++) {
        if (*digit < '0' || *digit > '9' || number > EVENT_SEATS_MAX)
            return false;
        number = number * 10 + (uint32_t)(*digit - '0');
    }
    const struct row *row = row_find(e, name, (size_t)(dash - name));
    if (!row || number > row->n_seats)
        return false;
    *ret_index = row->first + number - 1;
    return true;
}

const struct row *event_row_of(const struct event *e, uint32_t index)
{
    uint32_t low = 0, high = e->n_rows;
    hf_check(index < e->def->n_seats);
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (e->rows[mid].first <= index)
            low = mid;
        else
            high = mid;
    }
    return &e->rows[low];
}

void event_seat_name(const struct event *e, uint32_t index, struct buf *out)
{
    if (e->def->venue) {
        buf_str(out, venue_id(e->def->venue, index));
        return;
    }
    const struct row *row = event_row_of(e, index);
    buf_str(out, e->def->sections.v[row->section].name);
    buf_char(out, '-');
    buf_put(out, row->name, row->name_len);
    buf_char(out, '-');
    buf_int(out, index - row->first + 1);
}

uint32_t event_seat_category(const struct event *e, uint32_t index)
{
    const struct venue *v = e->def->venue;
    return v ? v->categories[index] : event_row_of(e, index)->section;
}

int64_t event_area_find(const struct event *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->def->areas.n; i++)
        if (strlen(e->def->areas.v[i].name) == len &&
            memcmp(e->def->areas.v[i].name, name, len) == 0)
            return (int64_t)i;
    return -1;
}

int64_t event_section_find(const struct event *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->def->sections.n; i++)
        if (strlen(e->def->sections.v[i].name) == len &&
            memcmp(e->def->sections.v[i].name, name, len) == 0)
            return (int64_t)i;
    return -1;
}

int64_t event_category_find(const struct event *e, const char *name, size_t len)
{
    for (size_t i = 0; i < event_def_categories(e->def); i++) {
        const char *has = event_def_category_name(e->def, i);
        if (strlen(has) == len && memcmp(has, name, len) == 0)
            return (int64_t)i;
    }
    return -1;
}

/* ---- owners ---- */

uint64_t owner_hash(const struct event *e, const char *owner, size_t len)
{
    uint64_t hash = owner ? hash_keyed_with((uint64_t)e->def->id.key, owner, len) : 0;
    return !owner ? 0 : hash ? hash : 1;
}

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

void event_show_seat(struct event *e, uint32_t index, int64_t until_ms)
{
    struct seat *seat = &e->seats[index];
    uint64_t old = atomic_load_explicit(&seat->shown, memory_order_relaxed);
    atomic_fetch_sub_explicit(&e->counts[old & 3], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->counts[seat->status], 1, memory_order_relaxed);
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
    ret->seq = e->seq;
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        uint64_t shown = atomic_load_explicit(&e->seats[i].shown, memory_order_relaxed);
        bool was_due = at && seat_shown_status(shown) == SEAT_HELD && seat_shown_until(shown) <= at;
        ret->seats[i] = was_due ? SEAT_AVAILABLE : (uint8_t)seat_shown_status(shown);
    }
    for (size_t i = 0; i < e->def->areas.n; i++)
        ret->available[i] = e->areas[i].available;
    ret->status = (enum event_status)atomic_load_explicit(&e->status, memory_order_relaxed);
    ret->terms = event_terms_share(e->terms_shown);
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
    *ret_seq = e->seq;
    lock_give(&e->lock);
    return head;
}

void event_read_counts(struct event *e, struct event_counts *ret)
{
    lock_take(&e->lock);
    *ret = (struct event_counts){.seq = e->seq,
                                 .available = e->counts[SEAT_AVAILABLE],
                                 .held = e->counts[SEAT_HELD],
                                 .booked = e->counts[SEAT_BOOKED],
                                 .blocked = e->counts[SEAT_BLOCKED]};
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
    if (!e->loaded_heads)
        e->loaded_heads = hf_alloc((size_t)e->def->n_seats * HEAD_SIZE);
    head_pack(e->loaded_heads + (size_t)index * HEAD_SIZE, seq);
}

void event_load_channel(struct event *e, uint32_t index, uint32_t channel)
{
    if (index < e->def->n_seats && channel <= CHANNELS_MAX)
        e->seats[index].channel = (uint8_t)channel;
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

void event_load_owner(struct event *e, uint64_t owner, uint32_t places)
{
    *vec_push(&e->loaded_owners) = (struct owner_places){.owner = owner, .places = places};
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
    h->node.next = e->loaded;
    e->loaded = &h->node;
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
    for (struct table_node *x = n ? e->loaded : NULL; x; x = x->next) {
        struct hold *h = (struct hold *)x;
        const struct hold_payment *found = bsearch(&h->key, list, n, sizeof *list, by_hold);
        h->payment = found ? found->payment : 0;
    }
}

/* Writes only what differs: the memory of seats that were never touched is not even there yet. */
static void show_heads(struct event *e)
{
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const uint8_t *loaded = e->loaded_heads ? e->loaded_heads + (size_t)i * HEAD_SIZE : NULL;
        int64_t head = loaded ? head_unpack(loaded) : 0;
        if (head != seat_head(&e->seats[i]))
            seat_set_head(&e->seats[i], head);
    }
    free(e->loaded_heads);
    e->loaded_heads = NULL;
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
    e->seq = e->clock.seq;
    feed_reset(&e->feed, feed_floor(e->clock.seq));
    lock_give(&e->lock);
}

static void adopt_holds(struct view *v, struct event *e)
{
    while (e->loaded) {
        struct hold *h = (struct hold *)e->loaded;
        e->loaded = h->node.next;
        hold_table_add(&v->holds, h);
    }
    e->has_owners |= e->loaded_owners.n > 0;
    for (size_t i = 0; i < e->loaded_owners.n; i++)
        owners_book(&v->owners, e->def->id.key, e->loaded_owners.v[i].owner,
                    e->loaded_owners.v[i].places);
    vec_close(&e->loaded_owners);
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
    if (registry_departures(&v->events, key) != e->departures) {
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
    if (e->n_holds || !registry_remove(&v->events, e))
        return false;
    if (e->has_owners)
        owners_forget(&v->owners, e->def->id.key);
    event_free(e);
    return true;
}

void view_forget(struct view *v, struct event *e)
{
    hold_table_remove(&v->holds, e);
    owners_forget(&v->owners, e->def->id.key);
    drop_loaded(e);
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
