/* See fixtures.h. */
#include "support/fixtures.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/process.h"

static uint64_t from_env(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : usual;
}

uint64_t test_seed(uint64_t usual) { return from_env("HF_SEED", usual); }
size_t test_steps(size_t usual) { return (size_t)from_env("HF_STEPS", usual); }

/* ---- files ---- */

void temp_dir_make(struct temp_dir *dir)
{
    process_make_dir("test", dir->path, sizeof dir->path);
    snprintf(dir->db, sizeof dir->db, "%s/ledger.db", dir->path);
    snprintf(dir->url, sizeof dir->url, "sqlite:%s", dir->db);
}

void temp_dir_remove(struct temp_dir *dir)
{
    DIR *entries = opendir(dir->path);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    rmdir(dir->path);
}

/* ---- layouts ---- */

static char *copy(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

struct event_def *def_new(const char *name)
{
    struct event_def *def = hf_alloc(sizeof *def);
    def->terms.name = copy(name);
    memcpy(def->currency, "EUR", 4);
    def->status = EVENT_OPEN;
    def->terms.hold_ttl_ms = DEF_TTL_MS;
    def->terms.hold_max_ms = DEF_MAX_MS;
    def->terms.max_per_hold = SEATS_INLINE;
    return def;
}

/* Prices are those of all sections, and then those of all areas. */
static void put_price(struct event_def *def, size_t index, int64_t price)
{
    vec_push(&def->terms.prices);
    int64_t *at = def->terms.prices.v + index;
    memmove(at + 1, at, (def->terms.prices.n - 1 - index) * sizeof *at);
    *at = price;
}

void def_section(struct event_def *def, const char *name, const char *tier, int64_t price)
{
    struct section_def *section = vec_push(&def->sections);
    section->name = copy(name);
    section->tier = copy(tier);
    put_price(def, def->sections.n - 1, price);
}

void def_row(struct event_def *def, const char *name, uint32_t seats)
{
    struct row_def *row = vec_push(&def->sections.v[def->sections.n - 1].rows);
    row->name = copy(name);
    row->seats = seats;
    assert_true(event_def_number(def));
}

void def_area(struct event_def *def, const char *name, int64_t price, int64_t capacity)
{
    struct area_def *area = vec_push(&def->areas);
    area->name = copy(name);
    put_price(def, def->sections.n + def->areas.n - 1, price);
    area->capacity = capacity;
}

static struct ticket_type type_of(const char *id, const int64_t *prices, size_t n)
{
    struct ticket_type type = {.id = copy(id)};
    for (size_t i = 0; i < n; i++)
        *vec_push(&type.prices) = prices[i];
    return type;
}

void def_type(struct event_def *def, const char *id, const int64_t *prices, size_t n)
{
    struct ticket_type type = type_of(id, prices, n);
    assert_true(event_terms_put_type(&def->terms, &type));
    ticket_type_close(&type);
}

struct event_def *def_hall(uint32_t rows, uint32_t seats_per_row)
{
    struct event_def *def = def_new("Hall");
    def_section(def, "A", NULL, 2500);
    for (uint32_t r = 1; r <= rows; r++) {
        char name[16];
        snprintf(name, sizeof name, "%u", r);
        def_row(def, name, seats_per_row);
    }
    return def;
}

/* ---- commands ---- */

static void ask_begin(struct ask *a, enum command_kind kind, struct event *e)
{
    memset(a, 0, sizeof *a);
    a->c.kind = kind;
    a->c.event = e;
}

static void copy_seats(struct ask *a, const uint32_t *seats, uint32_t n)
{
    assert_in_range(n, 1, SEATS_INLINE);
    memcpy(a->seats, seats, n * sizeof *seats);
}

void ask_seats_n(struct ask *a, enum command_kind kind, struct event *e, const uint32_t *seats,
                 uint32_t n)
{
    ask_begin(a, kind, e);
    copy_seats(a, seats, n);
    a->c.block = (struct seats_block){.seats = a->seats,
                                      .n_seats = n,
                                      .blocks = kind == CMD_SEATS_BLOCK,
                                      .shortage.taken = a->taken};
}

void ask_create_n(struct ask *a, struct event *e, const uint32_t *seats, uint32_t n)
{
    ask_create_none(a, e);
    copy_seats(a, seats, n);
    a->c.create.n_seats = n;
}

void ask_create_none(struct ask *a, struct event *e)
{
    ask_begin(a, CMD_HOLD_CREATE, e);
    a->c.create.seats = a->seats;
    a->c.create.shortage.taken = a->taken;
}

void ask_best(struct ask *a, struct event *e, uint32_t quantity, bool adjacent)
{
    ask_create_none(a, e);
    assert_in_range(quantity, 1, SEATS_INLINE);
    a->c.create.best =
        (struct best_want){.quantity = quantity, .section = -1, .adjacent = adjacent};
}

/* The list of areas that the command takes, and its length. */
static uint32_t *areas_of(struct ask *a, const struct area_claim ***ret_list)
{
    switch (a->c.kind) {
    case CMD_HOLD_CREATE:
        *ret_list = &a->c.create.areas;
        return &a->c.create.n_areas;
    case CMD_HOLD_CHANGE:
        *ret_list = &a->c.change.add_areas;
        return &a->c.change.n_add_areas;
    default:
        assert_true(a->c.kind == CMD_SEATS_BLOCK || a->c.kind == CMD_SEATS_UNBLOCK);
        *ret_list = &a->c.block.areas;
        return &a->c.block.n_areas;
    }
}

void ask_area(struct ask *a, uint32_t area, uint32_t quantity)
{
    const struct area_claim **list;
    if (a->c.kind == CMD_WAIT_JOIN) {
        a->c.wait_join.wish =
            (struct wait_wish){.quantity = quantity, .section = -1, .tier = -1, .area = (int)area};
        return;
    }
    uint32_t *n = areas_of(a, &list);
    assert_in_range(*n, 0, ASK_AREAS_MAX - 1);
    a->areas[(*n)++] = (struct area_claim){area, quantity};
    *list = a->areas;
}

void ask_owner(struct ask *a, const char *owner)
{
    bool waits = a->c.kind == CMD_WAIT_JOIN;
    assert_true(waits || a->c.kind == CMD_HOLD_CREATE);
    *(waits ? &a->c.wait_join.owner : &a->c.create.owner) = owner;
    *(waits ? &a->c.wait_join.owner_len : &a->c.create.owner_len) = strlen(owner);
}

void ask_block_none(struct ask *a, enum command_kind kind, struct event *e)
{
    ask_begin(a, kind, e);
    a->c.block = (struct seats_block){
        .seats = a->seats, .blocks = kind == CMD_SEATS_BLOCK, .shortage.taken = a->taken};
}

void ask_channel(struct ask *a, const char *channel)
{
    a->c.block.channel = channel;
    a->c.block.channel_len = strlen(channel);
}

void ask_change(struct ask *a, struct event *e, const struct id *hold, int64_t fence)
{
    ask_begin(a, CMD_HOLD_CHANGE, e);
    a->c.change.hold.id = *hold;
    a->c.change.fence = fence;
    a->c.change.is_seller = true;
    a->c.change.add = a->seats;
    a->c.change.remove = a->removed;
    a->c.change.remove_areas = a->removed_areas;
    a->c.change.shortage.taken = a->taken;
}

void ask_add_n(struct ask *a, const uint32_t *seats, uint32_t n)
{
    copy_seats(a, seats, n);
    a->c.change.n_add = n;
}

void ask_remove_n(struct ask *a, const uint32_t *seats, uint32_t n)
{
    assert_in_range(n, 1, SEATS_INLINE);
    memcpy(a->removed, seats, n * sizeof *seats);
    a->c.change.n_remove = n;
}

void ask_remove_area(struct ask *a, uint32_t area, uint32_t quantity)
{
    assert_in_range(a->c.change.n_remove_areas, 0, ASK_AREAS_MAX - 1);
    a->removed_areas[a->c.change.n_remove_areas++] = (struct area_claim){area, quantity};
}

static void put_type(struct type_run *runs, uint32_t *n_runs, const char *id, uint32_t n)
{
    assert_in_range(*n_runs, 0, ASK_TYPES_MAX - 1);
    runs[(*n_runs)++] = (struct type_run){.id = id, .id_len = id ? strlen(id) : 0, .n = n};
}

void ask_type(struct ask *a, const char *id, uint32_t n)
{
    bool creates = a->c.kind == CMD_HOLD_CREATE;
    if (a->c.kind == CMD_WAIT_JOIN) {
        a->c.wait_join.types = a->types;
        put_type(a->types, &a->c.wait_join.n_types, id, n);
        return;
    }
    *(creates ? &a->c.create.types : &a->c.change.add_types) = a->types;
    put_type(a->types, creates ? &a->c.create.n_types : &a->c.change.n_add_types, id, n);
}

void ask_remove_type(struct ask *a, const char *id, uint32_t n)
{
    a->c.change.remove_types = a->removed_types;
    put_type(a->removed_types, &a->c.change.n_remove_types, id, n);
}

void ask_retype(struct ask *a, uint32_t seat)
{
    assert_int_equal(a->c.change.n_remove, a->c.change.n_retyped);
    assert_in_range(a->c.change.n_add, 0, SEATS_INLINE - 1);
    a->seats[a->c.change.n_add++] = seat;
    a->removed[a->c.change.n_remove++] = seat;
    a->c.change.n_retyped++;
}

void ask_wait(struct ask *a, struct event *e, uint32_t quantity)
{
    ask_begin(a, CMD_WAIT_JOIN, e);
    a->c.wait_join.wish = (struct wait_wish){
        .quantity = quantity, .section = -1, .tier = -1, .area = -1, .adjacent = 1};
}

void ask_wait_change(struct ask *a, struct event *e, enum wait_change_kind kind,
                     const struct id *entry)
{
    ask_begin(a, CMD_WAIT_CHANGE, e);
    a->c.wait_change.kind = kind;
    a->c.wait_change.id = *entry;
}

void ask_cancel(struct ask *a, struct event *e, const struct id *booking)
{
    ask_begin(a, CMD_BOOKING_CANCEL, e);
    a->c.cancel.id = *booking;
    a->c.cancel.hold.id.key = booking->key;
}

void ask_book(struct ask *a, struct event *e, const struct id *hold)
{
    ask_begin(a, CMD_BOOKING_CREATE, e);
    a->c.booking_create = hf_alloc(sizeof *a->c.booking_create);
    a->c.booking_create->hold.id = *hold;
    a->c.booking_create->amount_min = ASK_AMOUNT_MIN;
}

void ask_book_also(struct ask *a, const struct id *hold)
{
    struct booking_create *op = a->c.booking_create;
    assert_in_range(op->n_others, 0, HOLDS_PER_BOOKING_MAX - 2);
    op->others[op->n_others++].hold.id = *hold;
}

void ask_update(struct ask *a, struct event *e, const struct id *payment)
{
    ask_begin(a, CMD_PAYMENT_UPDATE, e);
    a->c.update = hf_alloc(sizeof *a->c.update);
    a->c.update->hold.id.key = payment->key;
    a->c.update->payment = *payment;
    a->c.update->has_payment = true;
}

void ask_refund(struct ask *a, struct event *e, const struct id *booking, int64_t amount)
{
    ask_begin(a, CMD_BOOKING_REFUND, e);
    a->c.refund.id = *booking;
    a->c.refund.hold.id.key = booking->key;
    a->c.refund.amount = amount;
}

void ask_terms(struct ask *a, struct event *e) { ask_begin(a, CMD_EVENT_CHANGE, e); }

void ask_price(struct ask *a, uint32_t index, int64_t price)
{
    *vec_push(&a->c.event_change.prices) = (struct price_change){index, price};
}

void ask_new_type(struct ask *a, const char *id, const int64_t *prices, size_t n)
{
    *vec_push(&a->c.event_change.types) = type_of(id, prices, n);
}

void ask_event(struct ask *a, enum command_kind kind, struct event *e) { ask_begin(a, kind, e); }

void ask_evict(struct ask *a, struct event *e, const struct id *hold)
{
    ask_begin(a, CMD_HOLD_EVICT, e);
    a->c.release.hold.id = *hold;
    a->c.release.evicts = true;
}

void ask_renew(struct ask *a, struct event *e, const struct id *hold, int64_t ttl_ms)
{
    ask_begin(a, CMD_HOLD_RENEW, e);
    a->c.renew.hold.id = *hold;
    a->c.renew.ttl_ms = ttl_ms;
}

void ask_release(struct ask *a, struct event *e, const struct id *hold)
{
    ask_begin(a, CMD_HOLD_RELEASE, e);
    a->c.release.hold.id = *hold;
}

void ask_confirm(struct ask *a, struct event *e, const struct id *hold, int64_t fence, bool rescue)
{
    ask_begin(a, CMD_HOLD_CONFIRM, e);
    a->c.confirm.hold.id = *hold;
    a->c.confirm.fence = fence;
    a->c.confirm.rescue = rescue;
}

struct hold_row *command_hold(const struct command *c)
{
    struct command *mutable = (struct command *)(uintptr_t)c;
    struct named_hold *named = command_named_hold(mutable);
    if (named)
        return &named->row;
    if (c->kind == CMD_HOLD_GET)
        return &mutable->hold_get.row;
    assert_true(c->kind == CMD_HOLD_CREATE || c->kind == CMD_NONE); /* none: never asked */
    return &mutable->create.hold;
}

struct booking_row *command_booking(const struct command *c)
{
    struct command *mutable = (struct command *)(uintptr_t)c;
    if (c->kind == CMD_BOOKING_GET)
        return &mutable->booking_get.row;
    struct money *money;
    struct booking_row *booking = command_wants_booking(mutable, &money);
    assert_non_null(booking);
    return booking;
}

struct shortage *command_shortage(const struct command *c)
{
    struct command *mutable = (struct command *)(uintptr_t)c;
    if (c->kind == CMD_HOLD_CREATE)
        return &mutable->create.shortage;
    if (c->kind == CMD_HOLD_CHANGE)
        return &mutable->change.shortage;
    assert_true(c->kind == CMD_SEATS_BLOCK || c->kind == CMD_SEATS_UNBLOCK);
    return &mutable->block.shortage;
}

void hash_text(const char *text, uint8_t hash[KEY_HASH_SIZE])
{
    uint64_t seed = UINT64_C(14695981039346656037);
    for (; *text; text++)
        seed = (seed ^ (uint8_t)*text) * UINT64_C(1099511628211);
    struct random r;
    random_init_seeded(&r, seed);
    random_bytes(&r, hash, KEY_HASH_SIZE);
}

void ask_key(struct ask *a, const char *key, const char *request)
{
    a->c.key.present = true;
    hash_text(key, a->c.key.hash);
    hash_text(request, a->c.key.request);
}

void ask_render(const struct command *c, struct buf *out)
{
    buf_str(out, verdict_name(c->verdict));
    switch (c->kind) {
    case CMD_HOLD_CONFIRM: {
        const struct booking_row *b = &c->confirm.booking;
        buf_printf(out, " %lld %lld %lld", (long long)b->id.key, (long long)b->fence,
                   (long long)b->amount);
        break;
    }
    case CMD_HOLD_CREATE:
    case CMD_HOLD_RENEW:
    case CMD_HOLD_CHANGE:
    case CMD_HOLD_EVICT: {
        const struct hold_row *h = command_hold(c);
        buf_printf(out, " %lld %lld %lld", (long long)h->id.key, (long long)h->fence,
                   (long long)h->expires_at);
        break;
    }
    default:
        break;
    }
}

void ask_close(struct ask *a) { command_close(&a->c); }
