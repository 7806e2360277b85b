/* Claims about the whole engine, with real threads, a real SQLite file in its own directory, and a
 * clock that stands still until a test advances it. */
#include "support/fixtures.h"

#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/engine_internal.h"

#define TTL_MS MINUTE_MS
#define WAIT_S 30 /* real time, before a test gives up */

/* ---- fixture ---- */

struct call {
    struct ask ask;
    struct event_list list;
    int64_t keys[EVENTS_LIST_MAX]; /* of its events */
    bool done;
};

static struct {
    struct temp_dir dir;
    struct clock_fake clock;
    struct metrics *metrics;
    struct engine *engine;
    size_t queue_len_max;
    struct event *hall;
    int64_t hall_key;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool render_blocked; /* the worker waits in render, in the middle of a batch */
    bool in_render;
} fixture = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void done(struct pending *pending)
{
    struct call *call = pending->waiter;
    pthread_mutex_lock(&fixture.lock);
    call->done = true;
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
    if (c->kind == CMD_EVENT_CREATE)
        buf_printf(out, "event %lld", (long long)c->event_create->id.key);
    else
        ask_render(c, out);
    return 1 + (int)c->verdict;
}

/* Renders a map as one letter per seat. */
static void render_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        buf_char(out, ".hbx"[map->seats[i]]);
}

static enum hf_status try_start(struct hf_err *err)
{
    fixture.metrics = metrics_new();
    struct engine_config config = {
        .ledger_url = fixture.dir.url,
        .clock = &fixture.clock.clock,
        .random_seed = 5,
        .queue_len_max = fixture.queue_len_max,
        .metrics = fixture.metrics,
        .texts = {.answer = render, .map = render_map},
    };
    return engine_start(&config, &fixture.engine, err);
}

static void start(void)
{
    struct hf_err err = {0};
    if (try_start(&err) != HF_OK)
        fail_msg("%s", err.msg);
}

static void stop(void)
{
    engine_stop(fixture.engine);
    metrics_free(fixture.metrics);
    fixture.engine = NULL;
    fixture.metrics = NULL;
    fixture.hall = NULL;
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

static enum hf_status try_submit(struct call *call)
{
    call->done = false;
    call->ask.c.pending = (struct pending){.done = done, .waiter = call};
    return engine_submit(fixture.engine, &call->ask.c);
}

static void submit(struct call *call) { assert_int_equal(try_submit(call), HF_OK); }

static enum verdict answer(struct call *call)
{
    wait_for(&call->done);
    return call->ask.c.verdict;
}

static enum verdict run(struct call *call)
{
    submit(call);
    return answer(call);
}

static void block_render(void)
{
    pthread_mutex_lock(&fixture.lock);
    fixture.render_blocked = true;
    pthread_mutex_unlock(&fixture.lock);
}

static void unblock_render(void)
{
    pthread_mutex_lock(&fixture.lock);
    fixture.render_blocked = false;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

/* Stops the worker in the middle of a batch until unblock_render; commands that are submitted
 * meanwhile form the next batch. */
static void stall(struct call *call, uint32_t seat)
{
    block_render();
    ask_create(&call->ask, fixture.hall, seat);
    char key[32];
    snprintf(key, sizeof key, "stall on %u", seat);
    ask_key(&call->ask, key, "r");
    submit(call);
    wait_for(&fixture.in_render);
}

static void advance_ms(int64_t ms) { clock_fake_advance(&fixture.clock, ms * 1000); }

static void load_hall(void)
{
    static struct call call;
    memset(&call, 0, sizeof call);
    call.ask.c.kind = CMD_EVENT_LOAD;
    call.ask.c.event_key = fixture.hall_key;
    assert_int_equal(run(&call), HF_OK);
    fixture.hall = call.ask.c.event;
}

static int64_t create_event(struct event_def *def)
{
    struct call call = {0};
    call.ask.c.kind = CMD_EVENT_CREATE;
    call.ask.c.event_create = def;
    assert_int_equal(run(&call), VERDICT_CREATED);
    int64_t key = def->id.key;
    ask_close(&call.ask);
    return key;
}

static void make_hall(uint32_t rows, uint32_t seats_per_row)
{
    struct event_def *def = def_hall(rows, seats_per_row);
    def->terms.hold_ttl_ms = TTL_MS;
    def->terms.hold_max_ms = 20 * MINUTE_MS;
    fixture.hall_key = create_event(def);
    load_hall();
}

static int fixture_open(void **state)
{
    (void)state;
    log_set_level(LOG_OFF);
    temp_dir_make(&fixture.dir);
    clock_fake_init(&fixture.clock, T0_MS * 1000);
    fixture.queue_len_max = 0;
    fixture.render_blocked = fixture.in_render = false;
    start();
    make_hall(5, 10);
    return 0;
}

static int fixture_close(void **state)
{
    (void)state;
    unblock_render();
    if (fixture.engine)
        stop();
    temp_dir_remove(&fixture.dir);
    return 0;
}

/* ---- holds ---- */

struct grant {
    struct id id;
    int64_t fence, expires_at;
};

static struct grant grant(uint32_t seat)
{
    struct call call;
    ask_create(&call.ask, fixture.hall, seat);
    assert_int_equal(run(&call), VERDICT_CREATED);
    struct grant g = {command_hold(&call.ask.c)->id, command_hold(&call.ask.c)->fence,
                      command_hold(&call.ask.c)->expires_at};
    ask_close(&call.ask);
    return g;
}

static enum verdict create(uint32_t seat)
{
    struct call call;
    ask_create(&call.ask, fixture.hall, seat);
    enum verdict verdict = run(&call);
    ask_close(&call.ask);
    return verdict;
}

static enum verdict confirm(const struct grant *g, bool rescue)
{
    struct call call;
    ask_confirm(&call.ask, fixture.hall, &g->id, g->fence, rescue);
    enum verdict verdict = run(&call);
    ask_close(&call.ask);
    return verdict;
}

static enum hold_status hold_status(const struct grant *g)
{
    struct call call;
    ask_release(&call.ask, fixture.hall, &g->id);
    call.ask.c.kind = CMD_HOLD_GET;
    assert_int_equal(run(&call), HF_OK);
    enum hold_status status = command_hold(&call.ask.c)->status;
    ask_close(&call.ask);
    return status;
}

static enum seat_status seat(uint32_t index)
{
    return seat_shown_status(seat_shown(fixture.hall, index));
}

static struct event_counts counts(void)
{
    struct event_counts c;
    event_read_counts(fixture.hall, &c);
    return c;
}

/* Waits for something that the engine does on its own.  The worker wakes up at least every 250 ms
 * of real time. */
static void eventually(bool (*is)(void))
{
    time_t limit = time(NULL) + WAIT_S;
    while (!is()) {
        if (time(NULL) > limit)
            fail_msg("it did not come to pass in %d s", WAIT_S);
        struct call call;
        struct id nobody = {.key = 1};
        ask_release(&call.ask, fixture.hall, &nobody);
        call.ask.c.kind = CMD_BOOKING_GET;
        assert_int_equal(run(&call), VERDICT_NO_SUCH_BOOKING);
        ask_close(&call.ask);
        sched_yield();
    }
}

static bool nothing_is_held(void) { return counts().held == 0; }

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

/* ---- events ---- */

static void an_event_loads_as_it_was_described(void **state)
{
    (void)state;
    struct event_def *def = def_new("Gala");
    def_section(def, "Stalls", "gold", 9900);
    def_row(def, "A", 3);
    def_row(def, "B", 2);
    def_section(def, "Balcony", NULL, 1200);
    def_row(def, "1", 4);
    def_area(def, "Floor", 700, 100);
    fixture.hall_key = create_event(def);
    load_hall();
    const struct event_def *got = fixture.hall->def;
    assert_string_equal(got->terms.name, "Gala");
    assert_int_equal(got->created_at, T0_MS);
    assert_int_equal(got->n_seats, 9);
    assert_int_equal(got->sections.n, 2);
    assert_string_equal(got->sections.v[0].tier, "gold");
    assert_null(got->sections.v[1].tier);
    assert_int_equal(got->areas.v[0].capacity, 100);
    assert_int_equal(counts().available, 9 + 100);
    assert_int_equal(fixture.hall->terms->prices.v[event_seat_category(fixture.hall, 8)], 1200);
    assert_ptr_equal(engine_event(fixture.engine, fixture.hall_key), fixture.hall);
    struct event *first = fixture.hall;
    load_hall(); /* loading again gives the same event */
    assert_ptr_equal(fixture.hall, first);
}

static void an_unknown_event_is_not_found(void **state)
{
    (void)state;
    struct call call = {0};
    call.ask.c.kind = CMD_EVENT_LOAD;
    call.ask.c.event_key = 4711;
    assert_int_equal(run(&call), VERDICT_NO_SUCH_EVENT);
    assert_null(engine_event(fixture.engine, 4711));
}

/* Runs a list; its events are in call->list but for their memory. */
static void list_events(struct call *call, int64_t before, size_t limit)
{
    struct event_list *list = hf_alloc(sizeof *list);
    *call = (struct call){0};
    list->query.last = before;
    list->query.limit = limit;
    call->ask.c.kind = CMD_EVENT_LIST;
    call->ask.c.event_list = list;
    assert_int_equal(run(call), HF_OK);
    call->list = *list;
    for (size_t i = 0; i < list->n; i++)
        call->keys[i] = list->events[i].def->id.key;
    ask_close(&call->ask);
}

static void ask_list(struct call *call, size_t limit)
{
    *call = (struct call){.ask.c.kind = CMD_EVENT_LIST};
    call->ask.c.event_list = hf_alloc(sizeof(struct event_list));
    call->ask.c.event_list->query.limit = limit;
    submit(call);
}

/* The first answer keeps the loader busy until the others have been asked for. */
static void readers_of_one_page_share_it(void **state)
{
    (void)state;
    enum { N = 30 };
    struct call *calls = hf_alloc((N + 1) * sizeof *calls), *first = &calls[N];
    (void)create_event(def_hall(1, 1));
    pthread_mutex_lock(&fixture.lock); /* where `done` waits */
    ask_list(first, 1);
    while (lane_len(&fixture.engine->load) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < N; i++)
        ask_list(&calls[i], i % 2 ? 1 : 2);
    pthread_mutex_unlock(&fixture.lock);
    for (int i = 0; i < N + 1; i++)
        assert_int_equal(answer(&calls[i]), HF_OK);
    for (int i = 0; i < N; i++) {
        const struct event_list *list = calls[i].ask.c.event_list;
        assert_ptr_equal(list, calls[i % 2].ask.c.event_list);
        assert_int_equal(list->query.limit, i % 2 ? 1 : 2);
        assert_int_equal(list->n, list->query.limit);
    }
    assert_ptr_not_equal(calls[0].ask.c.event_list, calls[1].ask.c.event_list);
    assert_ptr_not_equal(calls[1].ask.c.event_list, first->ask.c.event_list);
    for (int i = 0; i < N + 1; i++)
        ask_close(&calls[i].ask); /* the last one frees it */
    free(calls);
}

static void events_are_listed_newest_first(void **state)
{
    (void)state;
    int64_t keys[3];
    for (int i = 0; i < 3; i++)
        keys[i] = create_event(def_hall(1, 1));
    struct call call;
    list_events(&call, 0, 2);
    assert_int_equal(call.list.n, 2);
    assert_true(call.list.more);
    assert_int_equal(call.keys[0], keys[2]);
    assert_int_equal(call.keys[1], keys[1]);
    list_events(&call, keys[1], 2);
    assert_int_equal(call.list.n, 2);
    assert_false(call.list.more);
    assert_int_equal(call.keys[0], keys[0]);
    assert_int_equal(call.keys[1], fixture.hall_key);
}

static void a_repeated_creation_makes_one_event(void **state)
{
    (void)state;
    int64_t before = sql("SELECT COUNT(*) FROM events");
    for (int i = 0; i < 2; i++) {
        struct call call = {0};
        call.ask.c.kind = CMD_EVENT_CREATE;
        call.ask.c.event_create = def_hall(1, 2);
        ask_key(&call.ask, "create", "POST event");
        assert_int_equal(run(&call), i ? HF_OK : VERDICT_CREATED);
        assert_int_equal(call.ask.c.key.replayed, i);
        assert_int_equal(call.ask.c.key.answer_code, 1 + VERDICT_CREATED);
        ask_close(&call.ask);
    }
    assert_int_equal(sql("SELECT COUNT(*) FROM events"), before + 1);
}

/* ---- the life of a hold ---- */

static void a_hold_is_shown_read_and_sold(void **state)
{
    (void)state;
    struct call call;
    ask_create(&call.ask, fixture.hall, 7, 3);
    call.ask.c.create.owner = "ada";
    call.ask.c.create.owner_len = 3;
    call.ask.c.create.metadata = "{\"x\":1}";
    call.ask.c.create.metadata_len = 7;
    assert_int_equal(run(&call), VERDICT_CREATED);
    struct id id = command_hold(&call.ask.c)->id;
    int64_t fence = command_hold(&call.ask.c)->fence;
    ask_close(&call.ask);
    assert_int_equal(seat(7), SEAT_HELD);
    assert_int_equal(counts().held, 2);

    ask_release(&call.ask, fixture.hall, &id);
    call.ask.c.kind = CMD_HOLD_GET;
    assert_int_equal(run(&call), HF_OK);
    assert_int_equal(command_hold(&call.ask.c)->status, HOLD_ACTIVE);
    assert_string_equal(command_hold(&call.ask.c)->owner, "ada");
    assert_string_equal(command_hold(&call.ask.c)->metadata, "{\"x\":1}");
    assert_int_equal(command_hold(&call.ask.c)->n_seats, 2);
    assert_int_equal(command_hold(&call.ask.c)->seats[0], 7);
    assert_int_equal(command_hold(&call.ask.c)->expires_at, engine_now_ms(fixture.engine) + TTL_MS);
    ask_close(&call.ask);

    ask_confirm(&call.ask, fixture.hall, &id, fence, false);
    call.ask.c.confirm.reference = "order";
    call.ask.c.confirm.reference_len = 5;
    assert_int_equal(run(&call), VERDICT_CREATED);
    struct id booking = command_booking(&call.ask.c)->id;
    ask_close(&call.ask);
    assert_int_equal(seat(3), SEAT_BOOKED);

    ask_release(&call.ask, fixture.hall, &booking);
    call.ask.c.kind = CMD_BOOKING_GET;
    assert_int_equal(run(&call), HF_OK);
    assert_string_equal(command_booking(&call.ask.c)->reference, "order");
    assert_int_equal(command_booking(&call.ask.c)->amount, 5000);
    assert_memory_equal(command_booking(&call.ask.c)->hold_secret, id.secret, ID_SECRET_SIZE);
    ask_close(&call.ask);

    booking.secret[0] ^= 1;
    ask_release(&call.ask, fixture.hall, &booking);
    call.ask.c.kind = CMD_BOOKING_GET;
    assert_int_equal(run(&call), VERDICT_NO_SUCH_BOOKING);
    ask_close(&call.ask);
    id.secret[0] ^= 1;
    ask_release(&call.ask, fixture.hall, &id);
    call.ask.c.kind = CMD_HOLD_GET;
    assert_int_equal(run(&call), VERDICT_NO_SUCH_HOLD);
    ask_close(&call.ask);
}

static void an_expired_hold_frees_its_seat_by_itself(void **state)
{
    (void)state;
    struct grant g = grant(0);
    advance_ms(TTL_MS);
    eventually(nothing_is_held);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(hold_status(&g), HOLD_EXPIRED);
    assert_int_equal(metric("\nholdfast_holds_expired_total "), 1);
    assert_int_equal(metric("\nholdfast_holds_active "), 0);
    assert_int_equal(sql("SELECT COUNT(*) FROM holds WHERE status = 1"), 0);
}

static void more_holds_expire_at_once_than_one_batch_ends(void **state)
{
    (void)state;
    make_hall(12, 50);
    static struct call calls[600];
    for (uint32_t i = 0; i < 600; i++) {
        ask_create(&calls[i].ask, fixture.hall, i);
        submit(&calls[i]);
    }
    for (uint32_t i = 0; i < 600; i++) {
        assert_int_equal(answer(&calls[i]), VERDICT_CREATED);
        ask_close(&calls[i].ask);
    }
    assert_int_equal(counts().held, 600);
    advance_ms(TTL_MS);
    eventually(nothing_is_held);
    assert_int_equal(counts().seq, 1 + 4 * 600); /* rows for hold and seat, granted and expired */
}

static void a_hold_is_dead_at_its_expiry_swept_or_not(void **state)
{
    (void)state;
    struct call stalled;
    struct grant g = grant(0);
    stall(&stalled, 49);
    advance_ms(TTL_MS - 1);
    assert_int_equal(hold_status(&g), HOLD_ACTIVE);
    advance_ms(1); /* the stopped worker cannot have swept the hold */
    assert_int_equal(hold_status(&g), HOLD_EXPIRED);
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    ask_close(&stalled.ask);
    assert_int_equal(confirm(&g, false), VERDICT_HOLD_EXPIRED);
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    assert_int_equal(confirm(&g, true), HF_OK);
}

/* Readings of the clock until the machine is suspended between two of them. */
static _Atomic int readings_left;

static int64_t boot_us_with_a_nap(const struct clock *clock)
{
    (void)clock;
    int64_t before = atomic_load(&fixture.clock.boot_us);
    if (atomic_fetch_sub(&readings_left, 1) == 1)
        advance_ms(30000);
    return before;
}

static void time_slept_during_a_batch_is_not_lost(void **state)
{
    (void)state;
    stop();
    fixture.clock.clock.boot_us = boot_us_with_a_nap;
    start();
    load_hall();
    for (uint32_t i = 0; i < 12; i++) {
        int64_t before = engine_now_ms(fixture.engine);
        atomic_store(&readings_left, (int)i + 1);
        assert_int_equal(create(i), VERDICT_CREATED);
        while (atomic_load(&readings_left) > 0)
            engine_now_ms(fixture.engine);
        assert_int_equal(engine_now_ms(fixture.engine), before + 30000);
    }
}

/* ---- keys and batches ---- */

static void repeats_in_one_batch_get_one_effect_and_the_same_bytes(void **state)
{
    (void)state;
    struct call stalled, first, same, other;
    stall(&stalled, 49);
    ask_create(&first.ask, fixture.hall, 1);
    ask_create(&same.ask, fixture.hall, 1);
    ask_create(&other.ask, fixture.hall, 2);
    ask_key(&first.ask, "k", "seat 1");
    ask_key(&same.ask, "k", "seat 1");
    ask_key(&other.ask, "k", "seat 2");
    submit(&first);
    submit(&same);
    submit(&other);
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    assert_int_equal(answer(&first), VERDICT_CREATED);
    assert_int_equal(answer(&same), HF_OK);
    assert_int_equal(answer(&other), VERDICT_KEY_MISMATCH);
    assert_true(same.ask.c.key.replayed);
    assert_int_equal(same.ask.c.key.answer.len, first.ask.c.key.answer.len);
    assert_memory_equal(same.ask.c.key.answer.data, first.ask.c.key.answer.data,
                        first.ask.c.key.answer.len);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    ask_close(&stalled.ask);
    ask_close(&first.ask);
    ask_close(&same.ask);
    ask_close(&other.ask);
}

static void two_confirms_in_one_batch_are_one_booking(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct call stalled, calls[2];
    stall(&stalled, 49);
    for (int i = 0; i < 2; i++) {
        ask_confirm(&calls[i].ask, fixture.hall, &g.id, g.fence, false);
        submit(&calls[i]);
    }
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    assert_int_equal(answer(&calls[0]), VERDICT_CREATED);
    assert_int_equal(answer(&calls[1]), HF_OK);
    assert_memory_equal(command_booking(&calls[0].ask.c)->id.secret,
                        command_booking(&calls[1].ask.c)->id.secret, ID_SECRET_SIZE);
    assert_int_equal(sql("SELECT COUNT(*) FROM bookings"), 1);
    ask_close(&stalled.ask);
    ask_close(&calls[0].ask);
    ask_close(&calls[1].ask);
}

static bool no_keys_are_stored(void) { return sql("SELECT COUNT(*) FROM idempotency") == 0; }

static void keys_are_forgotten_after_a_day(void **state)
{
    (void)state;
    struct call call;
    ask_create(&call.ask, fixture.hall, 0);
    ask_key(&call.ask, "k", "seat 0");
    assert_int_equal(run(&call), VERDICT_CREATED);
    ask_close(&call.ask);
    advance_ms(KEY_KEPT_MS);
    eventually(no_keys_are_stored);
    ask_create(&call.ask, fixture.hall, 1);
    ask_key(&call.ask, "k", "seat 1");
    assert_int_equal(run(&call), VERDICT_CREATED);
    ask_close(&call.ask);
}

/* ---- maps ---- */

static struct snapshot *map_of_hall(void)
{
    struct call call = {.ask.c = {.kind = CMD_SNAPSHOT,
                                  .event = fixture.hall,
                                  .snapshot.seq = fixture.hall->shown.seq}};
    assert_int_equal(run(&call), HF_OK);
    return call.ask.c.snapshot.snapshot;
}

/* A map is drawn five times at once, then every 200 ms, which makes ten in any second.  It is never
 * older than what its reader has seen. */
static void a_map_is_drawn_at_most_ten_times_a_second(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        struct grant g = grant(i);
        (void)g;
        struct snapshot *s = map_of_hall();
        assert_int_equal(s->seq, fixture.hall->shown.seq);
        snapshot_unref(s);
    }
    struct snapshot *same = map_of_hall(); /* unchanged: neither drawn nor waited for */
    snapshot_unref(same);
    (void)grant(5);
    struct call waits[3] = {0};
    for (int i = 0; i < 3; i++) {
        waits[i].ask.c.kind = CMD_SNAPSHOT;
        waits[i].ask.c.event = fixture.hall;
        waits[i].ask.c.snapshot.seq = fixture.hall->shown.seq;
        waits[i].ask.c.snapshot.packed = i == 2;
        submit(&waits[i]);
    }
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* real time does not count */
    pthread_mutex_lock(&fixture.lock);
    assert_false(waits[0].done || waits[1].done || waits[2].done);
    pthread_mutex_unlock(&fixture.lock);
    advance_ms(200);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(answer(&waits[i]), HF_OK);
        assert_ptr_equal(waits[i].ask.c.snapshot.snapshot,
                         waits[0].ask.c.snapshot.snapshot); /* drawn once for all */
    }
    assert_int_equal(waits[0].ask.c.snapshot.snapshot->seq, fixture.hall->shown.seq);
    assert_true(waits[0].ask.c.snapshot.snapshot->packed.len > 0);
    for (int i = 0; i < 3; i++)
        snapshot_unref(waits[i].ask.c.snapshot.snapshot);
}

/* Slow readers keep a map alive; a fifth large one is drawn only when the oldest has gone. */
static void a_fifth_map_waits_for_the_readers_of_the_first(void **state)
{
    (void)state;
    struct snapshot *kept[SNAPSHOT_VERSIONS_MAX];
    for (uint32_t i = 0; i < SNAPSHOT_VERSIONS_MAX; i++) {
        (void)grant(i);
        kept[i] = map_of_hall();
        kept[i]->text.cap = SNAPSHOT_BYTES_FREE; /* as if it were that large */
    }
    (void)grant(SNAPSHOT_VERSIONS_MAX);
    struct call waits = {.ask.c = {.kind = CMD_SNAPSHOT,
                                   .event = fixture.hall,
                                   .snapshot.seq = fixture.hall->shown.seq}};
    submit(&waits);
    advance_ms(SNAPSHOT_STAY_US / 1000 - 100);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* real time does not count */
    assert_false(atomic_load(&kept[0]->pin.revoked));          /* its readers still have time */
    advance_ms(200);
    while (!atomic_load(&kept[0]->pin.revoked))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    pthread_mutex_lock(&fixture.lock);
    assert_false(waits.done);
    pthread_mutex_unlock(&fixture.lock);
    assert_false(atomic_load(&kept[1]->pin.revoked));
    snapshot_unref(kept[0]);
    assert_int_equal(answer(&waits), HF_OK);
    assert_int_equal(waits.ask.c.snapshot.snapshot->seq, fixture.hall->shown.seq);
    assert_int_equal(fixture.hall->documents.maps->n, SNAPSHOT_VERSIONS_MAX);
    snapshot_unref(waits.ask.c.snapshot.snapshot);
    for (int i = 1; i < SNAPSHOT_VERSIONS_MAX; i++)
        snapshot_unref(kept[i]);
    assert_int_equal(fixture.hall->documents.maps->n, 1);
}

/* ---- restart ---- */

static void restart(void)
{
    stop();
    start();
    load_hall();
}

static void a_list_counts_events_that_are_not_loaded_and_loads_none(void **state)
{
    (void)state;
    struct event_counts loaded;
    struct call call;
    struct grant sold = grant(0);
    (void)grant(2);
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    event_read_counts(fixture.hall, &loaded);
    stop();
    start();
    for (int i = 0; i < 2; i++) { /* the second time they are known */
        list_events(&call, 0, 1);
        assert_int_equal(call.keys[0], fixture.hall_key);
        assert_memory_equal(&call.list.events[0].counts, &loaded, sizeof loaded);
        assert_null(engine_event(fixture.engine, fixture.hall_key));
    }
    load_hall();
    (void)grant(3);
    list_events(&call, 0, 1);
    assert_int_equal(call.list.events[0].counts.held, loaded.held + 1);
}

static void a_restart_keeps_seats_holds_fences_and_keys(void **state)
{
    (void)state;
    struct call call;
    struct grant held = grant(0), sold = grant(1), given = grant(2);
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    ask_release(&call.ask, fixture.hall, &given.id);
    assert_int_equal(run(&call), VERDICT_OK);
    ask_close(&call.ask);
    struct call keyed;
    ask_create(&keyed.ask, fixture.hall, 3);
    ask_key(&keyed.ask, "k", "seat 3");
    assert_int_equal(run(&keyed), VERDICT_CREATED);
    struct snapshot *before = map_of_hall();

    restart();
    struct snapshot *after = map_of_hall();
    assert_int_equal(after->seq, before->seq);
    assert_int_equal(after->text.len, before->text.len);
    assert_memory_equal(after->text.data, before->text.data, before->text.len);
    snapshot_unref(before);
    snapshot_unref(after);

    assert_int_equal(create(0), VERDICT_SEAT_TAKEN);
    assert_int_equal(create(1), VERDICT_SEAT_TAKEN);
    ask_create(&call.ask, fixture.hall, 3); /* the same answer, byte for byte */
    ask_key(&call.ask, "k", "seat 3");
    assert_false(engine_refuse(fixture.engine, &call.ask.c));
    assert_int_equal(run(&call), HF_OK);
    assert_true(call.ask.c.key.replayed);
    assert_int_equal(call.ask.c.key.answer_code, 1 + VERDICT_CREATED);
    assert_int_equal(call.ask.c.key.answer.len, keyed.ask.c.key.answer.len);
    assert_memory_equal(call.ask.c.key.answer.data, keyed.ask.c.key.answer.data,
                        keyed.ask.c.key.answer.len);
    ask_close(&call.ask);
    struct grant next = grant(2);
    assert_int_equal(next.fence, command_hold(&keyed.ask.c)->fence + 1);
    assert_int_equal(confirm(&held, false), VERDICT_CREATED);
    assert_int_equal(confirm(&sold, false), HF_OK);
    ask_close(&keyed.ask);
}

static void holds_expire_while_the_server_is_down(void **state)
{
    (void)state;
    struct grant g = grant(0);
    stop();
    advance_ms(TTL_MS);
    start();
    load_hall();
    assert_int_equal(hold_status(&g), HOLD_EXPIRED);
    assert_int_equal(create(0), VERDICT_CREATED);
}

static bool no_hold_is_active(void)
{
    return sql("SELECT COUNT(*) FROM holds WHERE status = 1") == 0;
}

static void holds_of_events_that_are_not_loaded_expire_too(void **state)
{
    (void)state;
    grant(0);
    stop();
    advance_ms(TTL_MS);
    start();
    eventually(no_hold_is_active); /* the sweep finds the holds in the ledger */
    assert_int_equal(sql("SELECT COUNT(*) FROM holds WHERE status = 1"), 0);
    load_hall();
    assert_int_equal(counts().available, 50);
}

/* Asserts that the hold of seat 0 lasts for `ms` more, whatever the wall clock does.  A start
 * writes
 * the clock row and may cost a millisecond. */
static void assert_remaining(int64_t ms)
{
    advance_ms(ms - 10);
    assert_int_equal(create(0), VERDICT_SEAT_TAKEN);
    advance_ms(10);
    assert_int_equal(create(0), VERDICT_CREATED);
}

static void stepping_the_wall_clock_does_not_move_expiries(void **state)
{
    (void)state;
    grant(0);
    advance_ms(20000);
    clock_fake_step(&fixture.clock, HOUR_MS * 1000);
    assert_int_equal(create(0), VERDICT_SEAT_TAKEN);
    clock_fake_step(&fixture.clock, -3 * HOUR_MS * 1000);
    assert_remaining(40000);
}

static void a_wall_clock_set_back_between_runs_does_not_move_expiries(void **state)
{
    (void)state;
    grant(0);
    advance_ms(20000); /* idle: the engine writes nothing */
    int64_t now = engine_now_ms(fixture.engine);
    stop();
    clock_fake_step(&fixture.clock, -HOUR_MS * 1000);
    start();
    load_hall();
    assert_in_range(engine_now_ms(fixture.engine), now, now + 10); /* never backwards */
    assert_remaining(40000);
    now = engine_now_ms(fixture.engine);
    restart();
    assert_in_range(engine_now_ms(fixture.engine), now, now + 10);
}

static bool the_ledger_knows_the_time(void)
{
    return sql("SELECT MAX(now) FROM event_clock") >= engine_now_ms(fixture.engine);
}

static void an_idle_server_writes_down_the_time_for_the_next(void **state)
{
    (void)state;
    advance_ms(2 * HOUR_MS); /* the server may be killed at any time after this */
    eventually(the_ledger_knows_the_time);
}

/* ---- refusal from the view ---- */

static bool refuses(const char *key, uint32_t seat_a, uint32_t seat_b, uint32_t *ret_taken)
{
    struct ask a;
    ask_create(&a, fixture.hall, seat_a, seat_b);
    if (key)
        ask_key(&a, key, "whatever");
    bool refused = engine_refuse(fixture.engine, &a.c);
    if (refused)
        assert_int_equal(a.c.verdict, VERDICT_SEAT_TAKEN);
    *ret_taken = refused ? command_shortage(&a.c)->n_taken : 0;
    ask_close(&a);
    return refused;
}

static void a_seat_is_refused_from_the_view_only_when_it_surely_is_taken(void **state)
{
    (void)state;
    uint32_t taken;
    assert_false(refuses(NULL, 0, 1, &taken));
    struct grant g = grant(0);
    assert_true(refuses(NULL, 0, 1, &taken));
    assert_int_equal(taken, 1);
    advance_ms(TTL_MS - 250);
    assert_true(refuses(NULL, 0, 1, &taken)); /* 250 ms are left */
    struct call stalled;
    stall(&stalled, 49); /* so that the worker sweeps nothing */
    advance_ms(1);
    assert_false(refuses(NULL, 0, 1, &taken)); /* 249 ms: only the worker may refuse */
    advance_ms(248);
    assert_false(refuses(NULL, 0, 1, &taken));
    advance_ms(1);
    assert_false(refuses(NULL, 0, 1, &taken));          /* expired */
    assert_true(refuses(NULL, 0, 49, &taken) == false); /* seat 49 is not committed yet */
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    ask_close(&stalled.ask);
    assert_true(refuses(NULL, 0, 49, &taken));
    assert_int_equal(taken, 1);
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    advance_ms(HOUR_MS);
    assert_true(refuses(NULL, 0, 1, &taken)); /* sold */
    fixture.hall->shown.status = EVENT_CLOSED;
    assert_false(refuses(NULL, 0, 1, &taken)); /* the right answer is "closed" */
}

static void a_stored_key_is_never_refused_from_the_view(void **state)
{
    (void)state;
    uint32_t taken;
    struct call call;
    ask_create(&call.ask, fixture.hall, 0);
    ask_key(&call.ask, "mine", "seat 0");
    assert_int_equal(run(&call), VERDICT_CREATED);
    ask_close(&call.ask);
    assert_false(refuses("mine", 0, 1, &taken));
    assert_true(refuses("another", 0, 1, &taken));
    assert_int_equal(metric("holdfast_hold_requests_total{result=\"taken\",by=\"view\"} "), 1);
}

/* ---- bounds and stopping ---- */

static void a_full_queue_refuses_at_once_and_reads_go_on(void **state)
{
    (void)state;
    stop();
    fixture.queue_len_max = 2;
    start();
    load_hall();
    struct call stalled, queued[2], refused;
    stall(&stalled, 49);
    for (uint32_t i = 0; i < 2; i++) {
        ask_create(&queued[i].ask, fixture.hall, i);
        submit(&queued[i]);
    }
    ask_create(&refused.ask, fixture.hall, 5);
    assert_int_equal(try_submit(&refused), HF_OVERLOADED);
    struct id nobody = {.key = 1};
    struct call read;
    ask_release(&read.ask, fixture.hall, &nobody);
    read.ask.c.kind = CMD_HOLD_GET;
    assert_int_equal(run(&read), VERDICT_NO_SUCH_HOLD); /* readers do not wait for the worker */
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(answer(&queued[i]), VERDICT_CREATED);
        ask_close(&queued[i].ask);
    }
    assert_int_equal(run(&refused), VERDICT_CREATED);
    ask_close(&stalled.ask);
    ask_close(&refused.ask);
    ask_close(&read.ask);
}

static void *stop_engine(void *arg)
{
    (void)arg;
    engine_stop(fixture.engine);
    return NULL;
}

static void stopping_finishes_what_was_accepted(void **state)
{
    (void)state;
    static struct call calls[40];
    struct call stalled, late;
    stall(&stalled, 49);
    for (uint32_t i = 0; i < 40; i++) {
        ask_create(&calls[i].ask, fixture.hall, i);
        if (i % 2)
            ask_key(&calls[i].ask, "shared", "r"); /* one wins, the others wait for it */
        submit(&calls[i]);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_engine, NULL), 0);
    enum hf_status status;
    do { /* until the engine has begun to stop */
        struct id nobody = {.key = 1};
        ask_event(&late.ask, CMD_HOLD_GET, fixture.hall);
        late.ask.c.hold_get.id = nobody;
        status = try_submit(&late);
        if (status == HF_OK)
            assert_int_equal(answer(&late), VERDICT_NO_SUCH_HOLD);
        ask_close(&late.ask);
    } while (status == HF_OK);
    assert_int_equal(status, HF_DRAINING);
    unblock_render();
    pthread_join(thread, NULL);
    assert_true(stalled.done);
    int created = 0, replayed = 0;
    for (uint32_t i = 0; i < 40; i++) {
        assert_true(calls[i].done);
        created += calls[i].ask.c.verdict == VERDICT_CREATED;
        replayed += calls[i].ask.c.key.replayed;
        ask_close(&calls[i].ask);
    }
    assert_int_equal(created, 21);
    assert_int_equal(replayed, 19);
    assert_int_equal(sql("SELECT COUNT(*) FROM holds"), 22);
    ask_close(&stalled.ask);
    metrics_free(fixture.metrics);
    fixture.engine = NULL;
}

static void a_second_engine_on_the_same_ledger_does_not_start(void **state)
{
    (void)state;
    struct engine *first = fixture.engine;
    struct metrics *metrics = fixture.metrics;
    struct hf_err err = {0};
    assert_int_equal(try_start(&err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "already running"));
    metrics_free(fixture.metrics);
    fixture.engine = first;
    fixture.metrics = metrics;
    assert_int_equal(create(0), VERDICT_CREATED);
}

static void an_engine_without_a_ledger_does_not_start(void **state)
{
    (void)state;
    stop();
    struct hf_err err = {0};
    char url[sizeof fixture.dir.url];
    memcpy(url, fixture.dir.url, sizeof url);
    snprintf(fixture.dir.url, sizeof fixture.dir.url, "sqlite:%.100s/no/such/place",
             fixture.dir.path);
    assert_int_equal(try_start(&err), HF_STORE_UNAVAILABLE);
    assert_true(strlen(err.msg) > 0);
    metrics_free(fixture.metrics);
    memcpy(fixture.dir.url, url, sizeof url);
}

/* ---- surprises ---- */

#define SURPRISES "\nholdfast_ledger_surprises_total "

static void a_seat_sold_behind_the_server_s_back_is_taken(void **state)
{
    (void)state;
    char text[128];
    snprintf(text, sizeof text, "INSERT INTO seats VALUES (%lld, 2, 99, 0, 0)",
             (long long)SEAT_KEY(fixture.hall_key, 4));
    assert_int_equal(sql(text), 1);
    assert_int_equal(sql("UPDATE event_clock SET seq = seq + 1 WHERE event <> 0"), 1);
    assert_int_equal(create(4), VERDICT_SEAT_TAKEN); /* the event is read again first */
    assert_int_equal(metric(SURPRISES), 0);
    assert_int_equal(seat(4), SEAT_BOOKED);
    assert_int_equal(create(5), VERDICT_CREATED);
    assert_true(engine_ready(fixture.engine, NULL, 0));
}

static void a_surprise_spares_the_others_of_its_batch(void **state)
{
    (void)state;
    char text[128];
    snprintf(text, sizeof text, "INSERT INTO seats VALUES (%lld, 2, 99, 0, 0)",
             (long long)SEAT_KEY(fixture.hall_key, 4));
    struct grant g = grant(0);
    assert_int_equal(sql(text), 1);
    struct call stalled, calls[4];
    stall(&stalled, 49);
    ask_create(&calls[0].ask, fixture.hall, 3);
    ask_key(&calls[0].ask, "k", "seat 3");
    ask_seats(&calls[1].ask, CMD_SEATS_BLOCK, fixture.hall, 4, 6); /* seat 4 has a row */
    ask_confirm(&calls[2].ask, fixture.hall, &g.id, g.fence, false);
    ask_create(&calls[3].ask, fixture.hall, 3);
    ask_key(&calls[3].ask, "k", "seat 3");
    for (int i = 0; i < 4; i++)
        submit(&calls[i]);
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    const enum verdict want[] = {VERDICT_CREATED, VERDICT_SEAT_TAKEN, VERDICT_CREATED, VERDICT_OK};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(answer(&calls[i]), want[i]);
        ask_close(&calls[i].ask);
    }
    assert_int_equal(seat(6), SEAT_AVAILABLE);
    assert_int_equal(metric(SURPRISES), 1);
    ask_close(&stalled.ask);
}

static void a_seat_with_a_sale_is_not_sold_again(void **state)
{
    (void)state;
    char text[128];
    struct grant g = grant(0);
    snprintf(text, sizeof text, "INSERT INTO sold_seats (seat, booking) VALUES (%lld, 99)",
             (long long)SEAT_KEY(fixture.hall_key, 0));
    assert_int_equal(sql(text), 1);
    assert_int_equal(confirm(&g, false), VERDICT_SEAT_SOLD);
    assert_int_equal(sql("SELECT COUNT(*) FROM bookings"), 0);
    assert_int_equal(hold_status(&g), HOLD_ACTIVE);
    assert_int_equal(metric("\nholdfast_sale_conflicts_total "), 1);
    assert_int_equal(create(0), VERDICT_SEAT_TAKEN);
    assert_int_equal(create(1), VERDICT_CREATED);
}

static void a_damaged_row_fails_its_batch_and_nothing_later(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct call first, stalled, calls[2];
    ask_create(&first.ask, fixture.hall, 1);
    ask_key(&first.ask, "k", "seat 1");
    assert_int_equal(run(&first), VERDICT_CREATED);
    ask_close(&first.ask);
    char text[128];
    snprintf(text, sizeof text, "UPDATE holds SET seats = '[1;2]' WHERE hold = %lld",
             (long long)g.id.key);
    assert_int_equal(sql(text), 1);
    stall(&stalled, 49);
    ask_create(&calls[0].ask, fixture.hall, 1); /* a replay, read before the damaged row */
    ask_key(&calls[0].ask, "k", "seat 1");
    ask_confirm(&calls[1].ask, fixture.hall, &g.id, g.fence, false);
    submit(&calls[0]);
    submit(&calls[1]);
    unblock_render();
    assert_int_equal(answer(&stalled), VERDICT_CREATED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(answer(&calls[i]), HF_INTERNAL);
        assert_non_null(strstr(calls[i].ask.c.err.msg, "damaged"));
        ask_close(&calls[i].ask);
    }
    ask_close(&stalled.ask);
    assert_int_equal(create(2), VERDICT_CREATED);
    assert_true(engine_ready(fixture.engine, NULL, 0));
}

/* ---- threads ---- */

#define RACERS 4

static void *race(void *arg)
{
    int *won = arg;
    for (uint32_t i = 0; i < 50; i++) {
        struct call call;
        ask_create(&call.ask, fixture.hall, i);
        if (engine_refuse(fixture.engine, &call.ask.c))
            continue;
        call.done = false;
        while (try_submit(&call) != HF_OK)
            sched_yield();
        *won += answer(&call) == VERDICT_CREATED;
        snapshot_unref(event_snapshot(fixture.hall, i % 2));
        ask_close(&call.ask);
    }
    return NULL;
}

static void of_many_threads_one_gets_each_seat(void **state)
{
    (void)state;
    pthread_t threads[RACERS];
    int won[RACERS] = {0}, all = 0;
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, &won[i]), 0);
    for (int i = 0; i < RACERS; i++) {
        pthread_join(threads[i], NULL);
        all += won[i];
    }
    assert_int_equal(all, 50);
    assert_int_equal(counts().held, 50);
    assert_int_equal(sql("SELECT COUNT(*) FROM holds"), 50);
    assert_int_equal(metric(SURPRISES), 0);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(an_event_loads_as_it_was_described),
        claim(an_unknown_event_is_not_found),
        claim(events_are_listed_newest_first),
        claim(readers_of_one_page_share_it),
        claim(a_repeated_creation_makes_one_event),
        claim(a_hold_is_shown_read_and_sold),
        claim(an_expired_hold_frees_its_seat_by_itself),
        claim(more_holds_expire_at_once_than_one_batch_ends),
        claim(a_hold_is_dead_at_its_expiry_swept_or_not),
        claim(time_slept_during_a_batch_is_not_lost),
        claim(repeats_in_one_batch_get_one_effect_and_the_same_bytes),
        claim(two_confirms_in_one_batch_are_one_booking),
        claim(keys_are_forgotten_after_a_day),
        claim(a_map_is_drawn_at_most_ten_times_a_second),
        claim(a_fifth_map_waits_for_the_readers_of_the_first),
        claim(a_list_counts_events_that_are_not_loaded_and_loads_none),
        claim(a_restart_keeps_seats_holds_fences_and_keys),
        claim(holds_expire_while_the_server_is_down),
        claim(holds_of_events_that_are_not_loaded_expire_too),
        claim(stepping_the_wall_clock_does_not_move_expiries),
        claim(a_wall_clock_set_back_between_runs_does_not_move_expiries),
        claim(an_idle_server_writes_down_the_time_for_the_next),
        claim(a_seat_is_refused_from_the_view_only_when_it_surely_is_taken),
        claim(a_stored_key_is_never_refused_from_the_view),
        claim(a_full_queue_refuses_at_once_and_reads_go_on),
        claim(stopping_finishes_what_was_accepted),
        claim(a_second_engine_on_the_same_ledger_does_not_start),
        claim(an_engine_without_a_ledger_does_not_start),
        claim(a_seat_sold_behind_the_server_s_back_is_taken),
        claim(a_surprise_spares_the_others_of_its_batch),
        claim(a_seat_with_a_sale_is_not_sold_again),
        claim(a_damaged_row_fails_its_batch_and_nothing_later),
        claim(of_many_threads_one_gets_each_seat),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
