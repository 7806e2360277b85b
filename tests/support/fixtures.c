/* See fixtures.h. */
#include "support/fixtures.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    const char *base = getenv("TMPDIR");
    snprintf(dir->path, sizeof dir->path, "%.90s/holdfast-test-XXXXXX",
             base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(dir->path));
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

void def_section(struct event_def *def, const char *name, const char *tier, int64_t price)
{
    struct section_def *section = vec_push(&def->sections);
    section->name = copy(name);
    section->tier = copy(tier);
    *vec_push(&def->terms.prices) = price;
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
    *vec_push(&def->terms.prices) = price;
    area->capacity = capacity;
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

void ask_area(struct ask *a, uint32_t area, uint32_t quantity)
{
    assert_in_range(a->c.create.n_areas, 0, ASK_AREAS_MAX - 1);
    a->areas[a->c.create.n_areas++] = (struct area_claim){area, quantity};
    a->c.create.areas = a->areas;
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
    assert_int_equal(c->kind, CMD_HOLD_CONFIRM);
    return &mutable->confirm.booking;
}

struct shortage *command_shortage(const struct command *c)
{
    struct command *mutable = (struct command *)(uintptr_t)c;
    if (c->kind == CMD_HOLD_CREATE)
        return &mutable->create.shortage;
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

void ask_close(struct ask *a) { command_close(&a->c); }
