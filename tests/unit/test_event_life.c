/* Events that leave memory while threads use them: a real engine on SQLite, with all its threads.
 * The clock is a fake one that the test lets run, so that events leave all the time.  Sanitizers
 * say whether a thread ever touches an event that has left. */
#include "support/fixtures.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"
#include "engine/engine_internal.h"

#define EVENTS 6
#define USERS 4
#define WAIT_US 60000000
#define DEPARTURES 60 /* that the users have to live through */

static struct {
    struct temp_dir dir;
    struct clock_fake clock;
    struct metrics *metrics;
    struct engine *engine;
    int64_t keys[EVENTS];
    atomic_bool is_over;
    _Atomic unsigned n_loads, n_holds, n_finds;
} fixture;

struct call {
    struct ask ask;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static int render(const struct command *c, struct buf *out)
{
    (void)c;
    buf_lit(out, "answer");
    return 1;
}

static void render_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        buf_char(out, ".hbx"[map->seats[i]]);
}

static void on_done(struct pending *pending)
{
    struct call *call = pending->waiter;
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

static enum verdict run(struct call *call)
{
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->changed, NULL);
    call->done = false;
    call->ask.c.pending = (struct pending){.done = on_done, .waiter = call};
    assert_int_equal(engine_submit(fixture.engine, &call->ask.c), HF_OK);
    pthread_mutex_lock(&call->lock);
    while (!call->done)
        pthread_cond_wait(&call->changed, &call->lock);
    pthread_mutex_unlock(&call->lock);
    pthread_mutex_destroy(&call->lock);
    pthread_cond_destroy(&call->changed);
    return call->ask.c.verdict;
}

static int64_t create_event(void)
{
    struct call call = {.ask.c.kind = CMD_EVENT_CREATE};
    call.ask.c.event_create = def_hall(20, 30);
    assert_int_equal(run(&call), VERDICT_CREATED);
    int64_t key = call.ask.c.event_create->id.key;
    ask_close(&call.ask);
    return key;
}

static void start(int64_t idle_ms, int64_t memory_max)
{
    struct hf_err err = {0};
    fixture.metrics = metrics_new();
    struct engine_config config = {.ledger_url = fixture.dir.url,
                                   .clock = &fixture.clock.clock,
                                   .random_seed = 5,
                                   .event_idle_ms = idle_ms,
                                   .event_memory_max = memory_max,
                                   .metrics = fixture.metrics,
                                   .texts = {.answer = render, .map = render_map}};
    if (engine_start(&config, &fixture.engine, &err) != HF_OK)
        fail_msg("%s", err.msg);
}

static void stop(void)
{
    engine_stop(fixture.engine);
    metrics_free(fixture.metrics);
    fixture.engine = NULL;
}

static void create_events(void)
{
    for (size_t i = 0; i < EVENTS; i++)
        fixture.keys[i] = create_event();
}

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_OFF);
    temp_dir_make(&fixture.dir);
    clock_fake_init(&fixture.clock, T0_MS * 1000);
    fixture.is_over = false;
    fixture.n_loads = fixture.n_holds = fixture.n_finds = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stop();
    temp_dir_remove(&fixture.dir);
    return 0;
}

/* The event, pinned; loads it if need be. */
static struct event *take(int64_t key)
{
    struct event *e = engine_event_take(fixture.engine, key);
    if (e) {
        atomic_fetch_add(&fixture.n_finds, 1);
        return e;
    }
    struct call call = {.ask.c = {.kind = CMD_EVENT_LOAD, .event_key = key}};
    assert_int_equal(run(&call), VERDICT_OK);
    atomic_fetch_add(&fixture.n_loads, 1);
    return call.ask.c.pinned;
}

static unsigned departures(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < EVENTS; i++)
        n += registry_departures(view_registry(fixture.engine->workers[0].view), fixture.keys[i]);
    return n;
}

static void hold_and_release(struct event *e, uint32_t seat)
{
    struct call call = {0};
    ask_create(&call.ask, e, seat);
    enum verdict verdict = run(&call);
    struct id id = call.ask.c.create.hold.id;
    ask_close(&call.ask);
    if (verdict != VERDICT_CREATED)
        return;
    atomic_fetch_add(&fixture.n_holds, 1);
    ask_release(&call.ask, e, &id);
    (void)run(&call); /* it may have expired: the clock runs fast */
    ask_close(&call.ask);
}

/* What a stream does: everything that changed after a seq. */
static void follow(struct event *e)
{
    struct changes changes = {0};
    (void)event_changes(e, atomic_load(&e->shown.seq) / 2, &changes);
    changes_close(&changes);
}

static void draw(struct event *e)
{
    struct call call = {.ask.c = {.kind = CMD_SNAPSHOT, .event = e}};
    call.ask.c.snapshot.seq = atomic_load(&e->shown.seq);
    assert_int_equal(run(&call), VERDICT_OK);
    ask_close(&call.ask);
}

/* Uses one event after another as requests and streams do, now and then for a while. */
static void *use(void *arg)
{
    struct random random;
    random_init_seeded(&random, 1 + (uintptr_t)arg);
    while (!atomic_load(&fixture.is_over)) {
        struct event *e = take(fixture.keys[random_below(&random, EVENTS)]), *again;
        struct seat_map map;
        switch (random_below(&random, 5)) {
        case 0:
            hold_and_release(e, (uint32_t)random_below(&random, 600));
            break;
        case 1:
            follow(e);
            break;
        case 2:
            draw(e);
            break;
        case 3:
            event_map_read(e, &map);
            seat_map_close(&map);
            break;
        default: /* a stream outlives the request that opened it */
            again = event_share(e);
            event_give(e);
            wait_sleep_us(2000);
            e = again;
            follow(e);
        }
        assert_string_equal(e->def->terms.name, "Hall");
        event_give(e);
        wait_sleep_us((int64_t)random_below(&random, 3000));
    }
    return NULL;
}

/* Lets the clock run until the events have left so often. */
static void run_clock(unsigned n_departures)
{
    int64_t until_us = wait_now_us() + WAIT_US;
    while (departures() < n_departures && wait_now_us() < until_us) {
        clock_fake_advance(&fixture.clock, 100000);
        wait_sleep_us(1000);
    }
}

static void threads_use_events_while_they_leave(void **state)
{
    (void)state;
    pthread_t users[USERS];
    start(100, 0);
    create_events();
    for (size_t i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&users[i], NULL, use, (void *)(uintptr_t)i), 0);
    run_clock(DEPARTURES);
    fixture.is_over = true;
    for (size_t i = 0; i < USERS; i++)
        pthread_join(users[i], NULL);
    assert_true(departures() >= DEPARTURES);
    assert_true(fixture.n_loads >= DEPARTURES && fixture.n_holds > 0 && fixture.n_finds > 0);
    assert_int_equal(counter_read(fixture.engine->metrics.surprises), 0);
}

static bool is_loaded(size_t i) { return engine_event(fixture.engine, fixture.keys[i]) != NULL; }

/* Waits until `n` events are loaded; the clock stands still but for `step_us`. */
static void until_loaded(int64_t n, int64_t step_us)
{
    int64_t until_us = wait_now_us() + WAIT_US;
    while (atomic_load(&fixture.engine->events_loaded) != n && wait_now_us() < until_us) {
        clock_fake_advance(&fixture.clock, step_us);
        wait_sleep_us(1000);
    }
    assert_int_equal(fixture.engine->events_loaded, n);
}

/* Time passes in which nobody asks for anything, and the worker notices. */
static void let_worker_look(void)
{
    int64_t until_us = wait_now_us() + WAIT_US;
    unsigned turns = atomic_load(&fixture.engine->workers[0].turns);
    clock_fake_advance(&fixture.clock, 10000000);
    while (atomic_load(&fixture.engine->workers[0].turns) - turns < 2 && wait_now_us() < until_us)
        wait_sleep_us(1000);
}

static void where_there_is_no_room_the_least_recently_used_leave(void **state)
{
    (void)state;
    start(0, 0);
    create_events();
    event_give(take(fixture.keys[0]));
    const int64_t each = atomic_load(&fixture.engine->events_bytes);
    stop();
    start(0, 5 * each + each / 7); /* seven eighths of that are four events and a half */
    for (size_t i = 0; i < 5; i++) {
        event_give(take(fixture.keys[i]));
        let_worker_look();
    }
    assert_int_equal(fixture.engine->events_loaded, 5);
    event_give(engine_event_take(fixture.engine, fixture.keys[0])); /* the oldest is used again */
    let_worker_look();
    event_give(take(fixture.keys[5])); /* one too many */
    until_loaded(4, 1000);
    assert_true(is_loaded(0) && is_loaded(3) && is_loaded(4) && is_loaded(5));
}

static void what_is_pinned_or_held_stays_though_there_is_no_room(void **state)
{
    (void)state;
    start(0, 1);
    create_events();
    struct event *pinned = take(fixture.keys[0]), *held = take(fixture.keys[1]);
    struct call call = {0};
    ask_create(&call.ask, held, 5);
    assert_int_equal(run(&call), VERDICT_CREATED);
    ask_close(&call.ask);
    event_give(held);
    for (size_t i = 2; i < EVENTS; i++)
        event_give(take(fixture.keys[i]));
    until_loaded(2, 1000);
    assert_true(is_loaded(0) && is_loaded(1));
    event_give(pinned);
}

/* ---- leaving at any moment ---- */

#define LIVES 1000
#define LIFE_KEY 7

static struct {
    struct view *view;
    atomic_bool is_over;
    _Atomic unsigned n_taken;
} crowd;

/* Takes the event whenever it is there, and looks at all of it. */
static void *take_and_look(void *arg)
{
    (void)arg;
    const struct registry *r = view_registry(crowd.view);
    while (!atomic_load(&crowd.is_over)) {
        struct event *e = registry_take(r, LIFE_KEY, true);
        if (!e) {
            sched_yield();
            continue;
        }
        assert_int_equal(e->def->id.key, LIFE_KEY);
        assert_int_equal(seat_shown_status(seat_shown(e, 0)), SEAT_AVAILABLE);
        struct event *again = event_share(e);
        event_give(e);
        assert_string_equal(again->def->terms.name, "Hall");
        event_give(again);
        atomic_fetch_add(&crowd.n_taken, 1);
        wait_sleep_us(20); /* or the event would never be free */
    }
    return NULL;
}

/* As the worker does, but without waiting for a quiet moment: the event comes and goes as fast as
 * it can, while others look for it. */
static void an_event_that_leaves_is_nobodys(void **state)
{
    (void)state;
    pthread_t users[USERS];
    crowd.view = view_new();
    int64_t until_us = wait_now_us() + WAIT_US;
    for (size_t i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&users[i], NULL, take_and_look, NULL), 0);
    uint32_t lives = 0;
    unsigned n_kept = 0;
    while ((lives < LIVES || !n_kept) && wait_now_us() < until_us) {
        struct event_def *def = def_hall(1, 1);
        def->id.key = LIFE_KEY;
        struct event *e = event_new(def, &(struct clock_row){.event = LIFE_KEY, .now = T0_MS});
        e->registered.departures = lives;
        assert_ptr_equal(view_install(crowd.view, e), e);
        for (unsigned n_looks = crowd.n_taken;
             lives % 8 == 0 && crowd.n_taken == n_looks && wait_now_us() < until_us;)
            sched_yield(); /* now and then somebody finds it first */
        while (!view_leave(crowd.view, e) && wait_now_us() < until_us)
            n_kept++;
        lives++;
    }
    crowd.is_over = true;
    for (size_t i = 0; i < USERS; i++)
        pthread_join(users[i], NULL);
    assert_true(lives >= LIVES);
    assert_true(n_kept > 0); /* somebody had it pinned when it was to leave */
    assert_int_equal(registry_departures(view_registry(crowd.view), LIFE_KEY), lives);
    view_free(crowd.view);
}

int main(void)
{
#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_that_leaves_is_nobodys),
        claim(threads_use_events_while_they_leave),
        claim(where_there_is_no_room_the_least_recently_used_leave),
        claim(what_is_pinned_or_held_stays_though_there_is_no_room),
    };
    return cmocka_run_group_tests_name("event life", tests, NULL, NULL);
}
