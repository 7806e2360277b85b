/* Shared parts of the unit tests; see support.h. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/best.h"
#include "engine/view_holds.h"

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
    def->name = copy(name);
    memcpy(def->currency, "EUR", 4);
    def->status = EVENT_OPEN;
    def->hold_ttl_ms = DEF_TTL_MS;
    def->hold_max_ms = DEF_MAX_MS;
    def->max_per_hold = SEATS_INLINE;
    return def;
}

void def_section(struct event_def *def, const char *name, const char *tier, int64_t price)
{
    struct section_def *section = vec_push(&def->sections);
    section->name = copy(name);
    section->tier = copy(tier);
    section->price = price;
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
    area->price = price;
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

void ask_create_n(struct ask *a, struct event *e, const uint32_t *seats, uint32_t n)
{
    ask_begin(a, CMD_HOLD_CREATE, e);
    assert_in_range(n, 1, SEATS_INLINE);
    memcpy(a->seats, seats, n * sizeof *seats);
    a->c.seats = a->seats;
    a->c.n_seats = n;
    a->c.taken = a->taken;
}

void ask_renew(struct ask *a, struct event *e, const struct id *hold, int64_t ttl_ms)
{
    ask_begin(a, CMD_HOLD_RENEW, e);
    a->c.id = *hold;
    a->c.ttl_ms = ttl_ms;
}

void ask_release(struct ask *a, struct event *e, const struct id *hold)
{
    ask_begin(a, CMD_HOLD_RELEASE, e);
    a->c.id = *hold;
}

void ask_confirm(struct ask *a, struct event *e, const struct id *hold, int64_t fence, bool rescue)
{
    ask_begin(a, CMD_HOLD_CONFIRM, e);
    a->c.id = *hold;
    a->c.fence = fence;
    a->c.rescue = rescue;
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
    a->c.has_key = true;
    hash_text(key, a->c.key_hash);
    hash_text(request, a->c.request_hash);
}

void ask_close(struct ask *a)
{
    hold_row_close(&a->c.hold);
    booking_row_close(&a->c.booking);
    buf_close(&a->c.body);
}

/* ---- the paper ledger: reading ---- */

void paper_init(struct paper *p, uint64_t seed)
{
    *p = (struct paper){.view = view_new(), .now = T0_MS, .expire_max = 500};
    p->decision = hf_alloc(sizeof *p->decision);
    p->decision->view = p->view;
    p->decision->random = &p->random;
    random_init_seeded(&p->random, seed);
}

void paper_close(struct paper *p)
{
    decide_close(p->decision);
    free(p->decision);
    view_free(p->view);
    for (size_t i = 0; i < p->events.n; i++)
        free(p->events.v[i].seats);
    for (size_t i = 0; i < p->holds.n; i++)
        hold_row_close(&p->holds.v[i].row);
    for (size_t i = 0; i < p->keys.n; i++)
        key_row_close(&p->keys.v[i]);
    vec_close(&p->events);
    vec_close(&p->holds);
    vec_close(&p->bookings);
    vec_close(&p->sales);
    vec_close(&p->audit);
    vec_close(&p->keys);
}

struct event *paper_event(struct paper *p, struct event_def *def)
{
    struct paper_event *pe = vec_push(&p->events);
    def->id.key = (int64_t)p->events.n;
    pe->clock = (struct clock_row){.event = def->id.key, .now = p->now};
    pe->seats = hf_alloc((def->n_seats + (size_t)1) * sizeof *pe->seats);
    pe->event = view_install(p->view, event_new(def, &pe->clock));
    return pe->event;
}

struct paper_hold *paper_hold(struct paper *p, int64_t key)
{
    for (size_t i = p->holds.n; i-- > 0;)
        if (p->holds.v[i].row.id.key == key)
            return &p->holds.v[i];
    return NULL;
}

static struct key_row *paper_key(struct paper *p, const uint8_t *hash)
{
    for (size_t i = p->keys.n; i-- > 0;)
        if (memcmp(p->keys.v[i].hash, hash, KEY_HASH_SIZE) == 0)
            return &p->keys.v[i];
    return NULL;
}

static void hold_copy(const struct hold_row *from, struct hold_row *to)
{
    uint32_t *seats = hf_alloc((from->n_seats + (size_t)1) * sizeof *seats);
    memcpy(seats, from->seats, from->n_seats * sizeof *seats);
    *to = *from;
    to->seats = seats;
    to->owned = seats;
    to->owner = to->metadata = NULL;
    to->owner_len = to->metadata_len = 0;
}

static void booking_copy(struct paper *p, int64_t key, struct booking_row *to)
{
    for (size_t i = 0; i < p->bookings.n; i++) {
        if (p->bookings.v[i].id.key != key)
            continue;
        struct hold_row hold;
        hold_copy(&paper_hold(p, key)->row, &hold);
        *to = p->bookings.v[i];
        to->seats = hold.seats;
        to->n_seats = hold.n_seats;
        to->owned = hold.owned;
    }
}

void paper_begin(struct paper *p)
{
    struct hold *due[500];
    struct decision *d = p->decision;
    decide_begin(d);
    for (size_t i = p->events.n; i-- > 0;) /* backwards: it sorts */
        decide_add_event(d, p->events.v[i].event);
    d->now = p->now;
    for (size_t i = 0; i < p->events.n; i++) {
        struct paper_event *pe = &p->events.v[i];
        assert_int_equal(d->events.v[i]->def->id.key, pe->clock.event);
        if (pe->clock.now > d->now)
            d->now = pe->clock.now;
        pe->event->clock = pe->event->draft = pe->clock;
    }
    size_t max = p->expire_max < 500 ? p->expire_max : 500;
    decide_expire(d, due, view_due(p->view, d->now, due, max));
}

void paper_render(const struct command *c, struct buf *out)
{
    if (c->kind == CMD_HOLD_CONFIRM)
        buf_printf(out, "%s %lld %lld %lld", hf_status_code(c->status),
                   (long long)c->booking.id.key, (long long)c->booking.fence,
                   (long long)c->booking.amount);
    else if (c->kind == CMD_HOLD_RELEASE)
        buf_printf(out, "%s", hf_status_code(c->status));
    else
        buf_printf(out, "%s %lld %lld %lld", hf_status_code(c->status), (long long)c->hold.id.key,
                   (long long)c->hold.fence, (long long)c->hold.expires_at);
}

static bool succeeded(const struct command *c) { return hf_status_http(c->status) < 300; }

enum decided paper_decide(struct paper *p, struct ask *a)
{
    struct command *c = &a->c;
    struct key_row none = {0}, *stored = c->has_key ? paper_key(p, c->key_hash) : NULL;
    if (stored && stored->created_at <= p->decision->now - KEY_KEPT_MS)
        stored = NULL;
    if (c->kind != CMD_HOLD_CREATE) {
        hold_row_close(&c->hold);
        booking_row_close(&c->booking);
        struct paper_hold *hold = paper_hold(p, c->id.key);
        if (hold)
            hold_copy(&hold->row, &c->hold);
        if (c->kind == CMD_HOLD_CONFIRM && c->hold.status == HOLD_CONFIRMED)
            booking_copy(p, c->id.key, &c->booking);
    }
    enum decided decided = decide_command(p->decision, c, stored ? stored : &none);
    if (decided == DECIDED && c->has_key && !c->replayed && succeeded(c)) {
        c->body.len = 0;
        paper_render(c, &c->body);
        c->http_status = hf_status_http(c->status);
        c->rendered = true;
        decide_keep_answer(p->decision, c);
    }
    return decided;
}

/* ---- the paper ledger: writing, with the conditions of statements.h ---- */

static void write_clocks(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->clocks.n; i++) {
        const struct clock_write *w = &b->clocks.v[i];
        struct paper_event *pe = &p->events.v[w->after.event - 1];
        assert_int_equal(pe->clock.seq, w->before.seq);
        assert_int_equal(pe->clock.fence, w->before.fence);
        assert_true(pe->clock.now <= w->after.now);
        pe->clock = w->after;
    }
}

static void write_seats(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (i) /* ascending, so no seat twice */
            assert_true(b->seats.v[i - 1].seat < w->seat);
        struct paper_seat *seat = &p->events.v[(w->seat >> 32) - 1].seats[SEAT_INDEX(w->seat)];
        assert_int_equal(seat->status, w->from);
        assert_int_equal(seat->hold, w->hold_before);
        assert_true(seat->fence <= w->fence);
        seat->status = w->to;
        seat->hold = w->hold;
        seat->fence = w->fence;
        seat->expires_at = w->expires_at;
    }
}

static void write_holds(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds_new.n; i++) {
        assert_null(paper_hold(p, b->holds_new.v[i].id.key));
        hold_copy(&b->holds_new.v[i], &vec_push(&p->holds)->row);
    }
    for (size_t i = 0; i < b->holds.n; i++) {
        const struct hold_write *w = &b->holds.v[i];
        struct paper_hold *hold = paper_hold(p, w->hold);
        assert_non_null(hold);
        assert_int_equal(hold->row.status, w->from);
        assert_int_equal(hold->row.fence, w->fence_before);
        hold->row.status = w->to;
        hold->row.fence = w->fence;
        hold->row.expires_at = w->expires_at;
    }
}

static void write_sales(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings.n; i++) {
        for (size_t k = 0; k < p->bookings.n; k++)
            assert_int_not_equal(p->bookings.v[k].id.key, b->bookings.v[i].id.key);
        struct booking_row *row = vec_push(&p->bookings);
        *row = b->bookings.v[i];
        row->reference = NULL; /* borrowed */
        row->seats = NULL;
    }
    for (size_t i = 0; i < b->sales.n; i++) {
        for (size_t k = 0; k < p->sales.n; k++)
            assert_int_not_equal(p->sales.v[k].seat, b->sales.v[i].seat);
        *vec_push(&p->sales) = b->sales.v[i];
    }
}

static void write_keys(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->keys.n; i++) {
        const struct key_row *from = &b->keys.v[i];
        struct key_row *row = paper_key(p, from->hash);
        if (row)
            assert_true(row->created_at <= from->created_at - KEY_KEPT_MS);
        else
            row = vec_push(&p->keys);
        key_row_close(row);
        *row = *from;
        row->owned = hf_strndup(from->body, from->body_len);
        row->body = row->owned;
    }
}

/* The log, folded on its own: each row must begin where the last one about its object ended. */
static void fold(struct paper *p, const struct audit_row *a)
{
    struct paper_event *pe = &p->events.v[a->event - 1];
    assert_int_equal(a->seq, ++pe->folded_seq); /* I11 */
    assert_true(a->at >= pe->folded_at);
    pe->folded_at = a->at;
    if (a->object == AUDIT_SEAT) {
        struct paper_seat *seat = &pe->seats[a->item];
        assert_int_equal(seat->folded, a->from);
        if (a->from != SEAT_AVAILABLE)
            assert_int_equal(seat->folded_hold, a->hold);
        assert_int_equal(a->quantity, 1);
        assert_int_equal(a->booking, a->to == SEAT_BOOKED ? a->hold : 0);
        seat->folded = (enum seat_status)a->to;
        seat->folded_hold = a->to == SEAT_AVAILABLE ? 0 : a->hold;
    } else if (a->object == AUDIT_HOLD) {
        struct paper_hold *hold = paper_hold(p, a->hold);
        assert_non_null(hold);
        assert_int_equal(hold->folded, a->from);
        if (a->cause == CAUSE_HOLD || a->cause == CAUSE_RESCUE) { /* a new grant: I5 */
            assert_true(a->fence > pe->folded_fence);
            pe->folded_fence = a->fence;
        } else {
            assert_int_equal(hold->folded_fence, a->fence);
        }
        assert_int_equal(a->quantity, hold->row.n_seats);
        hold->folded = (enum hold_status)a->to;
        hold->folded_fence = a->fence;
        hold->folded_until = a->until;
    } else {
        assert_int_equal(a->object, AUDIT_BOOKING);
        assert_int_equal(a->from, BOOKING_NONE);
        assert_int_equal(a->to, BOOKING_CONFIRMED);
        assert_int_equal(a->booking, a->hold);
    }
}

void paper_commit(struct paper *p)
{
    struct decision *d = p->decision;
    if (decide_has_effects(d)) {
        decide_seal(d);
        write_clocks(p, &d->batch);
        write_keys(p, &d->batch);
        write_seats(p, &d->batch);
        write_holds(p, &d->batch);
        write_sales(p, &d->batch);
        for (size_t i = 0; i < d->batch.audit.n; i++) {
            *vec_push(&p->audit) = d->batch.audit.v[i];
            fold(p, &d->batch.audit.v[i]);
        }
    }
    decide_publish(d);
}

void paper_fail(struct paper *p)
{
    decide_seal(p->decision);
    decide_undo(p->decision);
}

enum hf_status paper_run(struct paper *p, struct ask *a)
{
    paper_begin(p);
    assert_int_equal(paper_decide(p, a), DECIDED);
    paper_commit(p);
    return a->c.status;
}

/* ---- the paper ledger: claims ---- */

static void check_heap(const struct view *v)
{
    const struct hold_table *t = view_hold_table(v);
    for (size_t i = 0; i < t->heap.n; i++) {
        assert_int_equal(t->heap.v[i]->heap_pos, i + 1);
        if (i)
            assert_true(t->heap.v[(i - 1) / 2]->expires_at <= t->heap.v[i]->expires_at);
    }
}

static void check_hold(struct paper *p, const struct paper_hold *ph)
{
    const struct hold_row *row = &ph->row;
    const struct paper_event *pe = &p->events.v[row->event - 1];
    const struct hold *h = view_hold(p->view, row->id.key);
    assert_int_equal(ph->folded, row->status);
    assert_int_equal(ph->folded_fence, row->fence);
    if (row->status != HOLD_ACTIVE) {
        assert_null(h);
        return;
    }
    assert_int_equal(ph->folded_until, row->expires_at);
    assert_non_null(h);
    assert_ptr_equal(h->event, pe->event);
    assert_int_equal(h->status, HOLD_ACTIVE);
    assert_int_equal(h->fence, row->fence);
    assert_int_equal(h->expires_at, row->expires_at);
    assert_int_equal(h->max_expires_at, row->max_expires_at);
    assert_true(row->expires_at <= row->max_expires_at);
    assert_int_equal(h->pending, 0);
    assert_int_not_equal(h->heap_pos, 0);
    assert_int_equal(h->n_seats, row->n_seats);
    for (uint32_t i = 0; i < row->n_seats; i++) { /* all or nothing: I6 */
        const struct paper_seat *seat = &pe->seats[row->seats[i]];
        assert_int_equal(h->seats[i], row->seats[i]);
        assert_int_equal(seat->status, SEAT_HELD);
        assert_int_equal(seat->hold, row->id.key);
        assert_int_equal(seat->expires_at, row->expires_at);
    }
}

static void check_seats(struct paper *p, struct paper_event *pe, uint32_t *ret_held)
{
    struct event *e = pe->event;
    uint32_t counts[4] = {0};
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const struct paper_seat *seat = &pe->seats[i];
        uint64_t shown = seat_shown(e, i);
        assert_int_equal(seat->folded, seat->status);
        assert_int_equal(seat->folded_hold, seat->hold);
        assert_int_equal(e->seats[i].status, seat->status);
        assert_int_equal(e->seats[i].hold, seat->hold);
        assert_int_equal(e->seats[i].pending, 0);
        assert_int_equal(seat_shown_status(shown), seat->status);
        assert_int_equal(seat_shown_until(shown), seat->status == SEAT_HELD ? seat->expires_at : 0);
        assert_int_equal(seat->hold != 0, seat->status != SEAT_AVAILABLE);
        if (seat->status == SEAT_BOOKED)
            assert_int_equal(paper_hold(p, seat->hold)->row.status, HOLD_CONFIRMED);
        counts[seat->status]++;
    }
    struct event_counts shown;
    event_read_counts(e, &shown);
    assert_int_equal(shown.seq, pe->clock.seq);
    assert_int_equal(shown.available, counts[SEAT_AVAILABLE]);
    assert_int_equal(shown.held, counts[SEAT_HELD]);
    assert_int_equal(shown.booked, counts[SEAT_BOOKED]);
    assert_int_equal(shown.blocked, counts[SEAT_BLOCKED]);
    uint32_t seat, indexed;
    best_find(e, &(struct best_want){.quantity = 1, .section = -1}, &seat, &indexed);
    assert_int_equal(indexed, counts[SEAT_AVAILABLE]);
    assert_int_equal(pe->clock.seq, pe->folded_seq);
    assert_int_equal(pe->clock.fence, pe->folded_fence);
    assert_memory_equal(&e->clock, &pe->clock, sizeof pe->clock);
    assert_memory_equal(&e->draft, &pe->clock, sizeof pe->clock);
    *ret_held += counts[SEAT_HELD];
}

void paper_check(struct paper *p)
{
    uint32_t held = 0, owned = 0;
    size_t live = 0;
    for (size_t i = 0; i < p->events.n; i++)
        check_seats(p, &p->events.v[i], &held);
    for (size_t i = 0; i < p->holds.n; i++) {
        check_hold(p, &p->holds.v[i]);
        if (p->holds.v[i].row.status == HOLD_ACTIVE) {
            owned += p->holds.v[i].row.n_seats;
            live++;
        }
    }
    /* Each live hold has all its seats, so as many held as owned means one owner each: I1. */
    assert_int_equal(held, owned);
    assert_int_equal(view_holds_len(p->view), live);
    assert_int_equal(view_hold_table(p->view)->heap.n, live);
    check_heap(p->view);
}

static int by_key(const void *a, const void *b)
{
    const struct hold *const *x = a, *const *y = b;
    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

static void dump_clock(const char *name, const struct clock_row *row, struct buf *out)
{
    buf_printf(out, "%s %lld %lld %lld %lld\n", name, (long long)row->event, (long long)row->seq,
               (long long)row->fence, (long long)row->now);
}

void paper_dump(const struct paper *p, struct buf *out)
{
    VEC(const struct hold *) holds = {0};
    const struct hold_table *t = view_hold_table(p->view);
    for (size_t i = 0; i < p->events.n; i++) {
        struct event *e = p->events.v[i].event;
        struct event_counts counts;
        event_read_counts(e, &counts);
        dump_clock("clock", &e->clock, out);
        dump_clock("draft", &e->draft, out);
        buf_printf(out, "seq %lld counts %ld %ld %ld %ld\n", (long long)counts.seq, counts.available,
                   counts.held, counts.booked, counts.blocked);
        for (uint32_t s = 0; s < e->def->n_seats; s++)
            buf_printf(out, "seat %u %d %lld %u %llu\n", s, e->seats[s].status,
                       (long long)e->seats[s].hold, e->seats[s].pending,
                       (unsigned long long)seat_shown(e, s));
    }
    for (size_t i = 0; i < t->n_buckets; i++)
        for (const struct hold *h = t->buckets[i]; h; h = h->next)
            *vec_push(&holds) = h;
    if (holds.n)
        qsort(holds.v, holds.n, sizeof *holds.v, by_key);
    for (size_t i = 0; i < holds.n; i++) {
        const struct hold *h = holds.v[i];
        buf_printf(out, "hold %lld %lld %lld %lld status %d pending %u %s", (long long)h->key,
                   (long long)h->fence, (long long)h->expires_at, (long long)h->max_expires_at,
                   h->status, h->pending, h->heap_pos ? "timed" : "untimed");
        for (uint32_t s = 0; s < h->n_seats; s++)
            buf_printf(out, " %u", h->seats[s]);
        buf_char(out, '\n');
    }
    buf_printf(out, "holds %zu heap %zu\n", t->n, t->heap.n);
    buf_char(out, '\0');
    check_heap(p->view);
    vec_close(&holds);
}
