/* Claims about the engine's memory of the past (a seat at any moment, pages of holds and log rows,
 * what survives a restart) and about counted places.  The tests use real threads, a real SQLite
 * file, and a clock that stands still until a test advances it. */
#include "support/fixtures.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"

#define TTL_MS MINUTE_MS
#define WAIT_S 30 /* real time, before a test gives up */
#define SEATS 6
#define FLOOR 0
#define FLOOR_PLACES 10
#define CLIENT UINT64_C(0xc11e47)

/* ---- fixture ---- */

struct call {
    struct ask ask;
    bool done;
};

static struct {
    struct temp_dir dir;
    struct clock_fake clock;
    struct metrics *metrics;
    struct engine *engine;
    struct event *hall;
    int64_t hall_key;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool render_blocked, in_render; /* the worker waits in render, in the middle of a batch */
} fixture = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void done(struct pending *pending)
{
    pthread_mutex_lock(&fixture.lock);
    ((struct call *)pending->waiter)->done = true;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

static int render(const struct command *c, struct buf *out)
{
    pthread_mutex_lock(&fixture.lock);
    fixture.in_render = true;
    pthread_cond_broadcast(&fixture.changed);
    while (fixture.render_blocked)
        pthread_cond_wait(&fixture.changed, &fixture.lock);
    fixture.in_render = false;
    pthread_mutex_unlock(&fixture.lock);
    ask_render(c, out);
    return 1 + (int)c->verdict;
}

/* Renders a map as one letter per seat. */
static void render_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        buf_char(out, ".hbx"[map->seats[i]]);
}

static void start(void)
{
    struct hf_err err = {0};
    fixture.metrics = metrics_new();
    const struct engine_config config = {
        .ledger_url = fixture.dir.url,
        .clock = &fixture.clock.clock,
        .random_seed = 5,
        .public_places_max = 5,
        .metrics = fixture.metrics,
        .texts = {.answer = render, .map = render_map},
    };
    if (engine_start(&config, &fixture.engine, &err) != HF_OK)
        fail_msg("%s", err.msg);
}

static void stop(void)
{
    engine_stop(fixture.engine);
    metrics_free(fixture.metrics);
    fixture.engine = NULL;
}

static void wait_for(const bool *flag)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&fixture.lock);
    int rc = 0;
    while (!*flag && rc == 0)
        rc = pthread_cond_timedwait(&fixture.changed, &fixture.lock, &until);
    bool set = *flag;
    pthread_mutex_unlock(&fixture.lock);
    if (!set)
        fail_msg("nothing happened in %d s", WAIT_S);
}

static void submit(struct call *call)
{
    call->done = false;
    call->ask.c.pending = (struct pending){.done = done, .waiter = call};
    assert_int_equal(engine_submit(fixture.engine, &call->ask.c), HF_OK);
}

static enum verdict run(struct call *call)
{
    submit(call);
    wait_for(&call->done);
    return call->ask.c.verdict;
}

static enum verdict run_and_close(struct call *call)
{
    enum verdict verdict = run(call);
    ask_close(&call->ask);
    return verdict;
}

static void block_render(bool blocked)
{
    pthread_mutex_lock(&fixture.lock);
    fixture.render_blocked = blocked;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

/* Stops the worker in the middle of a batch until `go_on`; meanwhile it sweeps nothing. */
static void stall(struct call *call)
{
    block_render(true);
    ask_event(&call->ask, CMD_EVENT_OPEN, fixture.hall); /* it is open already */
    ask_key(&call->ask, "stall", "r");
    submit(call);
    wait_for(&fixture.in_render);
}

static void go_on(struct call *call)
{
    block_render(false);
    wait_for(&call->done);
    ask_close(&call->ask);
}

static void advance_ms(int64_t ms) { clock_fake_advance(&fixture.clock, ms * 1000); }

static void load_hall(void)
{
    struct call call = {0};
    call.ask.c.kind = CMD_EVENT_LOAD;
    call.ask.c.event_key = fixture.hall_key;
    assert_int_equal(run(&call), HF_OK);
    fixture.hall = call.ask.c.event;
}

static void restart(void)
{
    stop();
    start();
    load_hall();
}

static int fixture_open(void **state)
{
    (void)state;
    log_set_level(LOG_OFF);
    temp_dir_make(&fixture.dir);
    clock_fake_init(&fixture.clock, T0_MS * 1000);
    fixture.render_blocked = fixture.in_render = false;
    start();
    struct event_def *def = def_hall(2, SEATS / 2);
    def_area(def, "Floor", 700, FLOOR_PLACES);
    def->terms.hold_ttl_ms = TTL_MS;
    def->terms.hold_max_ms = 20 * MINUTE_MS;
    struct call call = {0};
    call.ask.c.kind = CMD_EVENT_CREATE;
    call.ask.c.event_create = def;
    assert_int_equal(run(&call), VERDICT_CREATED);
    fixture.hall_key = def->id.key;
    ask_close(&call.ask);
    load_hall();
    return 0;
}

static int fixture_close(void **state)
{
    (void)state;
    block_render(false);
    if (fixture.engine)
        stop();
    temp_dir_remove(&fixture.dir);
    return 0;
}

/* ---- helpers ---- */

struct grant {
    struct id id;
    int64_t fence, expires_at;
};

static struct grant granted(struct call *call)
{
    assert_int_equal(run(call), VERDICT_CREATED);
    struct grant g = {command_hold(&call->ask.c)->id, command_hold(&call->ask.c)->fence,
                      command_hold(&call->ask.c)->expires_at};
    ask_close(&call->ask);
    return g;
}

static struct grant grant(uint32_t seat)
{
    struct call call;
    ask_create(&call.ask, fixture.hall, seat);
    return granted(&call);
}

static struct grant places(uint32_t quantity)
{
    struct call call;
    ask_create_none(&call.ask, fixture.hall);
    ask_area(&call.ask, FLOOR, quantity);
    return granted(&call);
}

static enum verdict release(const struct grant *g)
{
    struct call call;
    ask_release(&call.ask, fixture.hall, &g->id);
    return run_and_close(&call);
}

static enum verdict confirm(const struct grant *g, bool rescue)
{
    struct call call;
    ask_confirm(&call.ask, fixture.hall, &g->id, g->fence, rescue);
    return run_and_close(&call);
}

static enum verdict set_status(enum command_kind kind)
{
    struct call call;
    ask_event(&call.ask, kind, fixture.hall);
    return run_and_close(&call);
}

static uint64_t metric(const char *line)
{
    struct buf b = {0};
    metrics_render(fixture.metrics, &b);
    buf_char(&b, '\0');
    const char *at = strstr(b.data, line);
    assert_non_null(at);
    uint64_t value = strtoull(at + strlen(line), NULL, 10);
    buf_close(&b);
    return value;
}

/* Runs a statement on a connection of its own, behind the engine's back. */
static int64_t sql(const char *text)
{
    sqlite3 *db;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(fixture.dir.db, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    int rc = sqlite3_step(stmt);
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : sqlite3_changes64(db);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/* ---- a seat at a moment ---- */

static struct seat_past past;

static void read_seat(uint32_t seat, int64_t at)
{
    struct call call;
    ask_event(&call.ask, CMD_SEAT_GET, fixture.hall);
    past = (struct seat_past){.at = at};
    call.ask.c.seat_get.seat = seat;
    call.ask.c.seat_get.past = &past;
    assert_int_equal(run(&call), VERDICT_OK);
    for (size_t i = 0; i < past.n; i++) {
        assert_int_equal(past.history[i].row.item, seat);
        assert_true(past.history[i].row.at <= past.at);
        if (i)
            assert_true(past.history[i].row.seq < past.history[i - 1].row.seq);
    }
}

static void a_seat_is_read_now_and_as_it_was(void **state)
{
    (void)state;
    int64_t before = engine_now_ms(fixture.engine);
    read_seat(2, 0);
    assert_int_equal(past.status, SEAT_AVAILABLE);
    assert_int_equal(past.n, 0);
    assert_int_equal(past.at, before);
    advance_ms(10);
    struct grant g = grant(2);
    read_seat(2, 0);
    assert_int_equal(past.status, SEAT_HELD);
    assert_int_equal(past.hold, g.id.key);
    assert_int_equal(past.fence, g.fence);
    assert_int_equal(past.until, g.expires_at);
    assert_int_equal(past.n, 1);
    assert_memory_equal(past.history[0].hold_secret, g.id.secret, ID_SECRET_SIZE);
    assert_int_equal(past.history[0].row.cause, CAUSE_HOLD);
    advance_ms(10);
    assert_int_equal(confirm(&g, false), VERDICT_CREATED);
    read_seat(2,
              engine_now_ms(fixture.engine) + HOUR_MS); /* the future is answered as the present */
    assert_int_equal(past.at, engine_now_ms(fixture.engine));
    assert_int_equal(past.status, SEAT_BOOKED);
    assert_int_equal(past.hold, g.id.key);
    assert_int_equal(past.until, 0);
    assert_int_equal(past.n, 2);
    assert_int_equal(past.history[0].row.booking, g.id.key);
    read_seat(2, before + 15);
    assert_int_equal(past.status, SEAT_HELD);
    assert_int_equal(past.n, 1);
    read_seat(2, before + 9);
    assert_int_equal(past.status, SEAT_AVAILABLE);
    assert_int_equal(past.hold + past.until, 0);
    read_seat(3, 0);
    assert_int_equal(past.n, 0);
}

static void a_renewed_hold_had_its_seat_as_long_as_was_known_then(void **state)
{
    (void)state;
    struct grant g = grant(0);
    advance_ms(TTL_MS / 2);
    struct call call;
    ask_renew(&call.ask, fixture.hall, &g.id, 0);
    assert_int_equal(run(&call), HF_OK);
    int64_t renewed = command_hold(&call.ask.c)->expires_at;
    ask_close(&call.ask);
    advance_ms(2 * TTL_MS); /* expired, and swept later than it expired */
    read_seat(0, renewed - TTL_MS - 1);
    assert_int_equal(past.until, g.expires_at);
    read_seat(0, renewed - TTL_MS);
    assert_int_equal(past.until, renewed);
    read_seat(0, renewed - 1);
    assert_int_equal(past.status, SEAT_HELD);
    read_seat(0, renewed);
    assert_int_equal(past.status, SEAT_AVAILABLE);
}

static void a_due_hold_that_is_not_swept_counts_as_expired_now_and_in_the_past(void **state)
{
    (void)state;
    struct call stalled;
    struct grant g = grant(0);
    stall(&stalled); /* the worker sweeps nothing meanwhile */
    advance_ms(TTL_MS - 1);
    read_seat(0, 0);
    assert_int_equal(past.status, SEAT_HELD);
    advance_ms(1);
    read_seat(0, 0);
    assert_int_equal(past.status, SEAT_AVAILABLE);
    assert_int_equal(past.hold + past.until, 0);
    assert_int_equal(past.n, 1); /* the log still ends with the grant */
    advance_ms(TTL_MS);
    read_seat(0, g.expires_at);
    assert_int_equal(past.status, SEAT_AVAILABLE);
    read_seat(0, g.expires_at - 1);
    assert_int_equal(past.status, SEAT_HELD);
    go_on(&stalled);
}

static void a_long_past_is_cut_to_its_newest_rows(void **state)
{
    (void)state;
    for (int i = 0; i < SEAT_HISTORY_MAX / 2; i++) {
        struct grant g = grant(1);
        assert_int_equal(release(&g), VERDICT_OK);
    }
    read_seat(1, 0);
    assert_int_equal(past.n, SEAT_HISTORY_MAX);
    assert_false(past.more);
    struct grant last = grant(1);
    read_seat(1, 0);
    assert_int_equal(past.n, SEAT_HISTORY_MAX);
    assert_true(past.more);
    assert_int_equal(past.history[0].row.hold, last.id.key);
    assert_int_equal(past.status, SEAT_HELD);
}

/* -- against a recorded history -- */

#define STEPS 260
#define HOLDS_MAX 400

enum owner { FREE, HELD, SOLD, BLOCKED };
struct seat_record {
    enum owner owner;
    int64_t hold, until; /* of a HELD seat, as known at that time */
};
static struct {
    struct random random;
    struct seat_record seats[SEATS]; /* the present state */
    struct moment {
        int64_t at;
        struct seat_record seats[SEATS];
    } moments[STEPS];
    size_t n;
    struct {
        struct grant grant;
        uint32_t seats[3], n;
    } holds[HOLDS_MAX];
    size_t n_holds;
} recorded;

static int64_t below(uint64_t n) { return (int64_t)random_below(&recorded.random, n); }

static void record_of_hold(size_t i, enum owner owner, int64_t until)
{
    for (uint32_t s = 0; s < recorded.holds[i].n; s++)
        recorded.seats[recorded.holds[i].seats[s]] = (struct seat_record){
            owner, owner == FREE ? 0 : recorded.holds[i].grant.id.key, owner == HELD ? until : 0};
}

static void random_create(void)
{
    struct call call;
    uint32_t n = 1 + (uint32_t)below(3), first = (uint32_t)below(SEATS);
    for (uint32_t i = 0; i < n; i++)
        recorded.holds[recorded.n_holds].seats[i] = (first + i * 2) % SEATS;
    recorded.holds[recorded.n_holds].n = n;
    ask_create_n(&call.ask, fixture.hall, recorded.holds[recorded.n_holds].seats,
                 recorded.holds[recorded.n_holds].n);
    call.ask.c.create.ttl_ms = 1000 + below(15000);
    if (run(&call) == VERDICT_CREATED) {
        recorded.holds[recorded.n_holds].grant =
            (struct grant){command_hold(&call.ask.c)->id, command_hold(&call.ask.c)->fence,
                           command_hold(&call.ask.c)->expires_at};
        record_of_hold(recorded.n_holds, HELD, command_hold(&call.ask.c)->expires_at);
        recorded.n_holds++;
    }
    ask_close(&call.ask);
}

static void random_block(void)
{
    struct call call;
    enum command_kind kind = below(3) ? CMD_SEATS_UNBLOCK : CMD_SEATS_BLOCK;
    uint32_t seat = (uint32_t)below(SEATS);
    ask_seats(&call.ask, kind, fixture.hall, seat);
    if (run_and_close(&call) == VERDICT_OK)
        recorded.seats[seat] = (struct seat_record){kind == CMD_SEATS_BLOCK ? BLOCKED : FREE, 0, 0};
}

static void random_on_hold(void)
{
    struct call call;
    size_t back = (size_t)below(recorded.n_holds < 6 ? recorded.n_holds : 6),
           i = recorded.n_holds - 1 - back;
    const struct grant *g = &recorded.holds[i].grant;
    int64_t roll = below(100);
    if (roll < 40) {
        ask_renew(&call.ask, fixture.hall, &g->id, 1000 + below(15000));
        if (run(&call) == VERDICT_OK)
            record_of_hold(i, HELD, command_hold(&call.ask.c)->expires_at);
        ask_close(&call.ask);
    } else if (roll < 98) {
        ask_release(&call.ask, fixture.hall, &g->id);
        call.ask.c.kind = roll < 60 ? CMD_HOLD_EVICT : CMD_HOLD_RELEASE;
        call.ask.c.release.evicts = roll < 60;
        int64_t seq = fixture.hall->shown.seq;
        enum verdict verdict = run_and_close(&call);
        bool ended = verdict == VERDICT_OK && fixture.hall->shown.seq != seq;
        for (uint32_t s = 0; ended && s < recorded.holds[i].n; s++)
            if (recorded.seats[recorded.holds[i].seats[s]].hold == g->id.key)
                recorded.seats[recorded.holds[i].seats[s]] = (struct seat_record){FREE, 0, 0};
    } else {
        ask_confirm(&call.ask, fixture.hall, &g->id, g->fence, true);
        if (run_and_close(&call) == VERDICT_CREATED)
            record_of_hold(i, SOLD, 0);
    }
}

static void assert_moment(const struct moment *m, uint32_t seat, int64_t at)
{
    const struct seat_record *r = &m->seats[seat];
    static const enum seat_status shown[] = {SEAT_AVAILABLE, SEAT_HELD, SEAT_BOOKED, SEAT_BLOCKED};
    bool expired = r->owner == HELD && r->until <= at;
    read_seat(seat, at);
    if (past.status != (expired ? SEAT_AVAILABLE : shown[r->owner]))
        fail_msg("seat %u, %lld ms in: status %d, recorded %d until %lld", seat,
                 (long long)(at - T0_MS), past.status, r->owner, (long long)(r->until - T0_MS));
    assert_int_equal(past.at, at);
    assert_int_equal(past.hold, expired ? 0 : r->hold);
    assert_int_equal(past.until, expired ? 0 : r->until);
}

/* Each recorded moment lasts until the next one.  Within it only time changes a seat: its hold may
 * expire. */
static void every_moment_of_a_seat_s_past_reads_as_it_was(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261115);
    unsigned n_expired = 0, n_expiring = 0;
    memset(&recorded, 0, sizeof recorded);
    random_init_seeded(&recorded.random, seed);
    for (int step = 0; step < STEPS; step++) {
        advance_ms(below(4) ? below(3000) : 0);
        int64_t roll = below(100);
        if (roll < 45 || !recorded.n_holds)
            random_create();
        else if (roll < 60)
            random_block();
        else
            random_on_hold();
        int64_t now = engine_now_ms(fixture.engine);
        if (recorded.n && recorded.moments[recorded.n - 1].at == now)
            recorded.n--; /* only the last state of a millisecond counts */
        recorded.moments[recorded.n].at = now;
        memcpy(recorded.moments[recorded.n++].seats, recorded.seats, sizeof recorded.seats);
    }
    advance_ms(20000);
    for (size_t i = 0; i < recorded.n; i++) {
        const struct moment *m = &recorded.moments[i];
        int64_t end = i + 1 < recorded.n ? recorded.moments[i + 1].at : m->at + 10000;
        for (uint32_t s = 0; s < SEATS; s++) {
            assert_moment(m, s, m->at);
            const struct seat_record *r = &m->seats[s];
            n_expired += r->owner == HELD && r->until <= m->at;
            if (r->owner != HELD || r->until <= m->at || r->until >= end)
                continue;
            assert_moment(m, s, r->until - 1); /* the hold expires before the next moment */
            assert_moment(m, s, r->until);
            n_expiring++;
        }
        assert_moment(m, (uint32_t)below(SEATS), m->at + below((uint64_t)(end - m->at)));
        assert_moment(m, (uint32_t)below(SEATS), end - 1);
    }
    if (seed == 20261115)
        assert_true(n_expired > 20 && n_expiring > 20 && recorded.n_holds > 30);
}

/* ---- lists ---- */

static enum verdict ask_audit(struct audit_page want, struct audit_page **ret)
{
    struct call call;
    *ret = hf_alloc(sizeof **ret);
    **ret = want;
    ask_event(&call.ask, CMD_AUDIT_LIST, fixture.hall);
    call.ask.c.audit_list = *ret;
    return run(&call);
}

static struct audit_page *read_audit(struct audit_page want)
{
    struct audit_page *page;
    assert_int_equal(ask_audit(want, &page), VERDICT_OK);
    return page;
}

static struct hold_page *read_holds(struct hold_page want)
{
    struct call call;
    struct hold_page *page = hf_alloc(sizeof *page);
    *page = want;
    ask_event(&call.ask, CMD_HOLD_LIST, fixture.hall);
    call.ask.c.hold_list = page;
    assert_int_equal(run(&call), VERDICT_OK);
    return page;
}

static void the_log_is_listed_over_more_rows_than_a_page(void **state)
{
    (void)state;
    struct id seventh = {0};
    for (int i = 1; i <= 60; i++) {
        struct grant g = grant(1);
        assert_int_equal(release(&g), VERDICT_OK);
        if (i == 7)
            seventh = g.id;
    }
    int64_t next = 0, all = fixture.hall->shown.seq;
    assert_int_equal(all, 1 + 60 * 4);
    for (bool more = true; more;) {
        struct audit_page *p =
            read_audit((struct audit_page){.limit = 50, .after = next, .seat = -1});
        more = p->more;
        assert_int_equal(p->n, more ? 50 : all % 50);
        for (size_t i = 0; i < p->n; i++)
            assert_int_equal(p->entries[i].row.seq, ++next);
        audit_page_free(p);
    }
    assert_int_equal(next, all);
    struct audit_page *p = read_audit((struct audit_page){.limit = 240, .seat = -1, .after = 1});
    assert_int_equal(p->n, 240); /* exactly as many as there are */
    assert_false(p->more);
    audit_page_free(p);
    p = read_audit((struct audit_page){.limit = 1000, .seat = 1});
    assert_int_equal(p->n, 120);
    audit_page_free(p);
    struct audit_page of_hold = {.limit = 1000, .seat = -1, .hold = seventh};
    assert_int_equal(ask_audit(of_hold, &p), VERDICT_OK);
    assert_int_equal(p->n, 4);
    assert_int_equal(p->entries[3].row.cause, CAUSE_RELEASE);
    audit_page_free(p);
    of_hold.hold.secret[0] ^= 1; /* a key without its secret names no hold */
    assert_int_equal(ask_audit(of_hold, &p), VERDICT_NO_SUCH_HOLD);
    audit_page_free(p);
}

static void holds_are_listed_with_the_status_they_have_now(void **state)
{
    (void)state;
    struct call stalled, call;
    struct grant released = grant(0), sold = grant(1), lasting;
    assert_int_equal(release(&released), VERDICT_OK);
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    places(2);
    ask_best(&call.ask, fixture.hall, 2, true);
    call.ask.c.create.ttl_ms = 2 * TTL_MS;
    lasting = granted(&call);
    stall(&stalled);
    advance_ms(TTL_MS); /* the places have expired, though no sweep has ended them */
    struct hold_page *p = read_holds((struct hold_page){.limit = 3});
    assert_int_equal(p->n, 3);
    assert_true(p->more);
    assert_int_equal(p->holds[0].id.key, lasting.id.key);
    assert_int_equal(p->holds[0].n_seats, 2);
    assert_int_equal(p->holds[0].status, HOLD_ACTIVE);
    assert_int_equal(p->holds[1].status, HOLD_EXPIRED);
    assert_int_equal(p->holds[1].n_areas, 1);
    assert_int_equal(p->holds[1].areas[0].quantity, 2);
    assert_int_equal(p->holds[2].status, HOLD_CONFIRMED);
    int64_t before = p->holds[2].id.key;
    hold_page_free(p);
    p = read_holds((struct hold_page){.limit = 3, .before = before});
    assert_int_equal(p->n, 1);
    assert_false(p->more);
    assert_int_equal(p->holds[0].status, HOLD_RELEASED);
    hold_page_free(p);
    const enum hold_status each[] = {HOLD_ACTIVE, HOLD_EXPIRED, HOLD_RELEASED, HOLD_CONFIRMED};
    for (int i = 0; i < 4; i++) {
        p = read_holds((struct hold_page){.limit = 100, .status = each[i]});
        assert_int_equal(p->n, 1);
        assert_int_equal(p->holds[0].status, each[i]);
        hold_page_free(p);
    }
    go_on(&stalled);
}

/* ---- refusal from the view ---- */

static bool refuses_area(uint32_t quantity, const char *key)
{
    struct ask a;
    ask_create_none(&a, fixture.hall);
    ask_area(&a, FLOOR, quantity);
    if (key)
        ask_key(&a, key, "whatever");
    bool refused = engine_refuse(fixture.engine, &a.c);
    if (refused) {
        assert_int_equal(a.c.verdict, VERDICT_SOLD_OUT);
        assert_int_equal(command_shortage(&a.c)->short_area, FLOOR);
        assert_int_equal(command_shortage(&a.c)->available, fixture.hall->areas[FLOOR].available);
    }
    ask_close(&a);
    return refused;
}

static bool refuses_best(uint32_t quantity, int64_t section, const char *tier)
{
    struct ask a;
    ask_best(&a, fixture.hall, quantity, true);
    a.c.create.best.section = section;
    a.c.create.best.tier = tier;
    a.c.create.best.tier_len = tier ? strlen(tier) : 0;
    bool refused = engine_refuse(fixture.engine, &a.c);
    if (refused) {
        assert_int_equal(a.c.verdict, VERDICT_SOLD_OUT);
        assert_int_equal(command_shortage(&a.c)->short_area, -1);
        assert_int_equal(command_shortage(&a.c)->available,
                         fixture.hall->shown.counts[SEAT_AVAILABLE]);
    }
    ask_close(&a);
    return refused;
}

static void an_area_is_refused_from_the_view_only_when_no_hold_runs_out_soon(void **state)
{
    (void)state;
    struct call stalled, keyed;
    assert_false(refuses_area(FLOOR_PLACES, NULL));
    assert_true(refuses_area(FLOOR_PLACES + 1, NULL));
    places(FLOOR_PLACES - 2);
    assert_false(refuses_area(2, NULL));
    assert_true(refuses_area(3, NULL));
    ask_create_none(&keyed.ask, fixture.hall);
    ask_area(&keyed.ask, FLOOR, 1);
    ask_key(&keyed.ask, "mine", "a place");
    granted(&keyed);
    assert_false(refuses_area(3, "mine")); /* a stored answer takes precedence */
    assert_true(refuses_area(3, "another"));
    stall(&stalled);
    advance_ms(TTL_MS - 250);
    assert_true(refuses_area(3, NULL)); /* 250 ms are left */
    advance_ms(1);
    assert_false(refuses_area(3, NULL)); /* 249 ms: only the worker may refuse */
    advance_ms(HOUR_MS);
    assert_false(refuses_area(3, NULL));
    go_on(&stalled);
    assert_int_equal(metric("holdfast_hold_requests_total{result=\"sold_out\",by=\"view\"} "), 4);
}

static void best_available_is_refused_from_the_view_only_by_the_count_of_all_seats(void **state)
{
    (void)state;
    struct call stalled, call;
    for (uint32_t i = 1; i < SEATS; i++)
        grant(i);
    assert_false(refuses_best(1, -1, NULL));
    assert_true(refuses_best(2, -1, NULL));
    assert_false(refuses_best(2, 0, NULL)); /* the view does not count sections */
    assert_false(refuses_best(2, -1, "gold"));
    ask_best(&call.ask, fixture.hall, 2, true);
    call.ask.c.create.best.section = 0;
    assert_int_equal(run(&call), VERDICT_SOLD_OUT);
    assert_int_equal(command_shortage(&call.ask.c)->available, 1);
    ask_close(&call.ask);
    stall(&stalled);
    advance_ms(TTL_MS - 249);
    assert_false(refuses_best(2, -1, NULL));
    go_on(&stalled);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), HF_OK);
    assert_false(refuses_best(SEATS + 1, -1, NULL)); /* the right answer is "closed" */
    ask_best(&call.ask, fixture.hall, SEATS + 1, true);
    assert_int_equal(run_and_close(&call), VERDICT_EVENT_CLOSED);
}

/* ---- restart ---- */

static enum verdict buy(uint64_t client, uint32_t seat)
{
    struct call call;
    ask_create(&call.ask, fixture.hall, seat);
    call.ask.c.create.client = client;
    return run_and_close(&call);
}

static void a_restart_keeps_areas_blocks_status_and_what_addresses_hold(void **state)
{
    (void)state;
    struct call call;
    struct grant sold = places(3);
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    ask_create(&call.ask, fixture.hall, 0);
    ask_area(&call.ask, FLOOR, 4);
    call.ask.c.create.client = CLIENT;
    struct grant held = granted(&call);
    ask_seats(&call.ask, CMD_SEATS_BLOCK, fixture.hall, 4, 5);
    assert_int_equal(run_and_close(&call), HF_OK);
    assert_int_equal(buy(CLIENT, 1), VERDICT_TOO_MANY_HOLDS);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), HF_OK);
    struct event_counts before, after;
    event_read_counts(fixture.hall, &before);

    restart();
    event_read_counts(fixture.hall, &after);
    assert_memory_equal(&after, &before, sizeof before);
    assert_int_equal(fixture.hall->shown.status, EVENT_CLOSED);
    assert_int_equal(fixture.hall->areas[FLOOR].available, FLOOR_PLACES - 7);
    assert_int_equal(fixture.hall->areas[FLOOR].booked_shown, 3);
    assert_int_equal(seat_shown_status(seat_shown(fixture.hall, 5)), SEAT_BLOCKED);
    assert_int_equal(buy(CLIENT, 1), VERDICT_EVENT_CLOSED);
    assert_int_equal(set_status(CMD_EVENT_OPEN), HF_OK);
    assert_int_equal(buy(CLIENT, 1), VERDICT_TOO_MANY_HOLDS);
    assert_int_equal(buy(CLIENT + 1, 4), VERDICT_SEAT_TAKEN);
    ask_best(&call.ask, fixture.hall, 3, true); /* seat 0 is held, 4 and 5 are blocked */
    assert_int_equal(run(&call), VERDICT_SOLD_OUT);
    assert_int_equal(command_shortage(&call.ask.c)->available, 3);
    ask_close(&call.ask);
    ask_create_none(&call.ask, fixture.hall);
    ask_area(&call.ask, FLOOR, 4);
    assert_int_equal(run(&call), VERDICT_SOLD_OUT);
    assert_int_equal(command_shortage(&call.ask.c)->available, 3);
    ask_close(&call.ask);
    assert_int_equal(release(&held), VERDICT_OK);
    assert_int_equal(fixture.hall->areas[FLOOR].available, FLOOR_PLACES - 3);
    assert_int_equal(buy(CLIENT, 1), VERDICT_CREATED);
    assert_int_equal(metric("\nholdfast_ledger_surprises_total "), 0);
}

static void places_expire_while_the_server_is_down(void **state)
{
    (void)state;
    places(FLOOR_PLACES);
    stop();
    advance_ms(TTL_MS);
    start();
    load_hall();
    places(FLOOR_PLACES);
}

/* ---- surprises ---- */

static void an_area_counted_behind_the_server_s_back_is_read_again(void **state)
{
    (void)state;
    struct call call;
    places(2);
    assert_int_equal(sql("UPDATE areas SET booked = 5 WHERE area = 0"), 1);
    ask_create_none(&call.ask, fixture.hall);
    ask_area(&call.ask, FLOOR, 4);
    assert_int_equal(run(&call), VERDICT_SOLD_OUT); /* decided again, by the rows of the ledger */
    assert_int_equal(command_shortage(&call.ask.c)->available, 3);
    ask_close(&call.ask);
    assert_int_equal(metric("\nholdfast_ledger_surprises_total "), 1);
    places(3);
    assert_int_equal(sql("SELECT held * 100 + booked FROM areas"), 505);
    assert_true(engine_ready(fixture.engine, NULL, 0));
}

static void an_event_closed_behind_the_server_s_back_is_read_again(void **state)
{
    (void)state;
    grant(0);
    assert_int_equal(sql("UPDATE events SET status = 2"), 1);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), HF_OK); /* the event was closed already */
    assert_int_equal(metric("\nholdfast_ledger_surprises_total "), 1);
    assert_int_equal(fixture.hall->shown.status, EVENT_CLOSED);
    assert_int_equal(sql("SELECT COUNT(*) FROM log WHERE object = 1 AND cause = 11"), 0);
    assert_int_equal(buy(0, 1), VERDICT_EVENT_CLOSED);
    assert_int_equal(set_status(CMD_EVENT_OPEN), HF_OK);
    assert_int_equal(buy(0, 1), VERDICT_CREATED);
}

/* ---- threads ---- */

static _Atomic bool churning;

static void *churn(void *arg)
{
    (void)arg;
    while (churning) {
        struct call call;
        ask_create(&call.ask, fixture.hall, 0);
        run(&call);
        struct id id = command_hold(&call.ask.c)->id;
        ask_close(&call.ask);
        ask_release(&call.ask, fixture.hall, &id);
        run_and_close(&call);
    }
    return NULL;
}

static void a_page_of_one_status_has_no_other_however_busy_the_event_is(void **state)
{
    (void)state;
    pthread_t thread;
    int listed = 0, others = 0;
    churning = true;
    assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
    /* A busy machine may give the churning thread no time during the first 300 pages. */
    for (int i = 0; i < 300 || (listed == 0 && i < 100000); i++) {
        struct hold_page *p = read_holds((struct hold_page){.limit = 100, .status = HOLD_ACTIVE});
        for (size_t k = 0; k < p->n; k++, listed++)
            others += p->holds[k].status != HOLD_ACTIVE;
        hold_page_free(p);
    }
    churning = false;
    pthread_join(thread, NULL);
    assert_int_equal(others, 0);
    assert_true(listed > 0);
}

#define RACERS 4

struct racer {
    int won, torn; /* places, and counts that did not add up */
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    for (uint32_t i = 0; i < 30; i++) {
        struct call call;
        uint32_t n = 1 + i % 2;
        if (i % 5 == 4)
            ask_best(&call.ask, fixture.hall, 1, true);
        else
            ask_create_none(&call.ask, fixture.hall);
        ask_area(&call.ask, FLOOR, n);
        if (engine_refuse(fixture.engine, &call.ask.c))
            continue;
        racer->won += run(&call) == VERDICT_CREATED ? (int)n : 0;
        struct event_counts counts;
        event_read_counts(fixture.hall, &counts);
        racer->torn += counts.available + counts.held != SEATS + FLOOR_PLACES;
        ask_close(&call.ask);
    }
    return NULL;
}

static void of_many_threads_none_gets_a_place_too_many(void **state)
{
    (void)state;
    pthread_t threads[RACERS];
    struct racer racers[RACERS] = {{0, 0}};
    int all = 0;
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    for (int i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        all += racers[i].won;
        assert_int_equal(racers[i].torn, 0);
    }
    assert_int_equal(all, FLOOR_PLACES);
    assert_int_equal(fixture.hall->areas[FLOOR].available, 0);
    assert_int_equal(sql("SELECT held FROM areas"), FLOOR_PLACES);
    assert_int_equal(metric("\nholdfast_ledger_surprises_total "), 0);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_seat_is_read_now_and_as_it_was),
        claim(a_renewed_hold_had_its_seat_as_long_as_was_known_then),
        claim(a_due_hold_that_is_not_swept_counts_as_expired_now_and_in_the_past),
        claim(a_long_past_is_cut_to_its_newest_rows),
        claim(every_moment_of_a_seat_s_past_reads_as_it_was),
        claim(the_log_is_listed_over_more_rows_than_a_page),
        claim(holds_are_listed_with_the_status_they_have_now),
        claim(an_area_is_refused_from_the_view_only_when_no_hold_runs_out_soon),
        claim(best_available_is_refused_from_the_view_only_by_the_count_of_all_seats),
        claim(a_restart_keeps_areas_blocks_status_and_what_addresses_hold),
        claim(places_expire_while_the_server_is_down),
        claim(an_area_counted_behind_the_server_s_back_is_read_again),
        claim(an_event_closed_behind_the_server_s_back_is_read_again),
        claim(a_page_of_one_status_has_no_other_however_busy_the_event_is),
        claim(of_many_threads_none_gets_a_place_too_many),
    };
    return cmocka_run_group_tests_name("engine_past", tests, NULL, NULL);
}
