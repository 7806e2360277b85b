/* Events that leave memory and come back, step by step: the test takes every turn of two servers
 * over one simulated ledger, see test_turns.c.  Server A lets events leave that nobody has asked
 * for during IDLE_MS; server B keeps them. */
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/load.h"
#include "sim/follower.h"

#define IDLE_MS 1000
#define LONG_MS (IDLE_MS + IDLE_MS / 2) /* so long that an idle event leaves */

struct stage {
    struct world world;
    struct server *a, *b;
    int64_t key;
    bool is_away; /* the ledger does not answer server A */
};

static int setup(void **state)
{
    struct stage *s = hf_alloc(sizeof *s);
    struct event_def *def = def_hall(3, 4);
    log_set_level(LOG_OFF);
    world_open(&s->world, 1, 2);
    s->a = &s->world.servers[0];
    s->b = &s->world.servers[1];
    s->a->engine->config.event_idle_ms = IDLE_MS;
    def_area(def, "Floor", 500, 5);
    s->key = server_create_event(s->a, def);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;
    sim_follower_lose(s->a->engine);
    sim_follower_lose(s->b->engine);
    world_close(&s->world);
    free(s);
    return 0;
}

/* Time passes, and server A takes a turn.  Its follower has heard from the ledger meanwhile. */
static void pass(struct stage *s, int64_t ms)
{
    struct engine *e = s->a->engine;
    world_pass_ms(&s->world, ms);
    if (!s->is_away)
        e->contact_ms = clock_boot_us(e->config.clock) / 1000;
    server_turn(s->a);
}

static bool is_loaded(const struct stage *s) { return engine_event(s->a->engine, s->key) != NULL; }

static struct event *load(struct stage *s) { return server_event(s->a, s->key); }

static struct id hold_one(struct server *server, struct event *e, uint32_t seat)
{
    struct call call;
    ask_create(&call.ask, e, seat);
    assert_int_equal(server_ask(server, &call), VERDICT_CREATED);
    struct id id = call.ask.c.create.hold.id;
    call_close(&call);
    return id;
}

static void release(struct server *server, struct event *e, const struct id *id)
{
    struct call call;
    ask_release(&call.ask, e, id);
    assert_int_equal(server_ask(server, &call), VERDICT_OK);
    call_close(&call);
}

static void tell_others(struct stage *s) { sim_follower_deliver(s->a->engine, s->b->engine); }

/* ---- leaving and coming back ---- */

static void an_event_that_nobody_asks_for_leaves_and_comes_back_the_same(void **state)
{
    struct stage *s = *state;
    struct event *e = load(s);
    struct id id = hold_one(s->a, e, 3);
    release(s->a, e, &id);
    tell_others(s);
    const int64_t seq = e->shown.seq, fence = e->clock.fence, head = seat_head(&e->seats[3]);
    pass(s, 1); /* sees the use */
    pass(s, IDLE_MS - 100);
    assert_true(is_loaded(s));
    pass(s, LONG_MS);
    assert_false(is_loaded(s));
    assert_int_equal(s->a->engine->events_loaded, 0);
    assert_int_equal(s->a->engine->events_bytes, 0);

    e = load(s);
    assert_int_equal(e->shown.seq, seq);
    assert_int_equal(e->clock.fence, fence);
    assert_int_equal(seat_head(&e->seats[3]), head);
    assert_int_equal(e->shown.counts[SEAT_AVAILABLE], 12);
    (void)hold_one(s->a, e, 3);
}

static void an_event_that_is_asked_for_stays(void **state)
{
    struct stage *s = *state;
    (void)load(s);
    for (int i = 0; i < 10; i++) {
        event_give(engine_event_take(s->a->engine, s->key));
        pass(s, IDLE_MS / 2);
        assert_true(is_loaded(s));
    }
    for (int i = 0; i < 10 && is_loaded(s); i++) {
        event_give(engine_event_peek(s->a->engine, s->key)); /* asks for nothing */
        pass(s, IDLE_MS / 2);
    }
    assert_false(is_loaded(s));
}

static void an_event_that_is_pinned_stays(void **state)
{
    struct stage *s = *state;
    (void)load(s);
    struct event *e = engine_event_take(s->a->engine, s->key);
    pass(s, LONG_MS);
    pass(s, LONG_MS);
    assert_true(is_loaded(s));
    event_give(e);
    pass(s, LONG_MS);
    assert_false(is_loaded(s));
}

static void an_event_stays_until_its_holds_have_run_out(void **state)
{
    struct stage *s = *state;
    (void)hold_one(s->a, load(s), 3);
    tell_others(s);
    pass(s, LONG_MS);
    pass(s, LONG_MS);
    assert_true(is_loaded(s));
    pass(s, DEF_TTL_MS); /* the hold ends by itself, on time */
    assert_int_equal(engine_event(s->a->engine, s->key)->shown.counts[SEAT_AVAILABLE], 12);
    tell_others(s);
    pass(s, LONG_MS);
    assert_false(is_loaded(s));
}

static void a_hold_of_another_server_is_found_when_the_event_comes_back(void **state)
{
    struct stage *s = *state;
    (void)load(s);
    struct event *at_b = server_event(s->b, s->key);
    pass(s, LONG_MS);
    assert_false(is_loaded(s));
    (void)hold_one(s->b, at_b, 5);
    sim_follower_deliver(s->b->engine, s->a->engine); /* about an event that is not loaded */
    struct call call;
    ask_create(&call.ask, load(s), 5);
    assert_int_equal(server_ask(s->a, &call), VERDICT_SEAT_TAKEN);
    call_close(&call);
}

static void an_event_does_not_leave_while_the_ledger_is_away(void **state)
{
    struct stage *s = *state;
    (void)load(s);
    pass(s, IDLE_MS / 2);
    s->is_away = true;
    world_pass_ms(&s->world, 10 * LONG_MS);
    pass(s, LONG_MS);
    pass(s, LONG_MS);
    assert_true(is_loaded(s));
    s->is_away = false;
    pass(s, LONG_MS);
    assert_false(is_loaded(s));
}

static void an_event_whose_change_has_not_been_announced_stays(void **state)
{
    struct stage *s = *state;
    struct event *e = load(s);
    struct id id = hold_one(s->a, e, 1);
    release(s->a, e, &id);
    pass(s, LONG_MS);
    pass(s, LONG_MS);
    assert_true(is_loaded(s));
    tell_others(s);
    hold_one(s->b, server_event(s->b, s->key), 1);
}

/* ---- a picture of a former life ---- */

static void a_copy_that_was_read_before_the_event_left_is_not_installed(void **state)
{
    struct stage *s = *state;
    struct engine *e = s->a->engine;
    struct call first = {.ask.c = {.kind = CMD_EVENT_LOAD, .event_key = s->key}}, second = first;
    struct command *taken[2];
    server_put(s->a, &first);
    server_put(s->a, &second);
    lane_close(&e->load);
    loader_main(e); /* reads the event twice */
    lane_destroy(&e->load);
    lane_init(&e->load, e->config.queue_len_max);
    assert_int_equal(lane_take(&e->workers[0].work, taken, 2, 0), 2);
    assert_true(lane_pass(&e->workers[0].work, taken[0]));
    server_turn(s->a);
    assert_int_equal(first.answers, 1);

    struct event *event = first.ask.c.event;
    struct id id = hold_one(s->a, event, 2);
    release(s->a, event, &id);
    tell_others(s);
    const int64_t seq = event->shown.seq;
    call_close(&first);
    pass(s, LONG_MS);
    pass(s, LONG_MS);
    assert_false(is_loaded(s));

    assert_true(lane_pass(&e->workers[0].work, taken[1]));
    server_turn(s->a);
    assert_int_equal(second.answers, 0); /* the loader reads it once more */
    server_turn(s->a);
    assert_int_equal(second.answers, 1);
    assert_int_equal(second.ask.c.event->shown.seq, seq);
    assert_ptr_equal(second.ask.c.event, engine_event(e, s->key));
    call_close(&second);
}

int main(void)
{
#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        claim(an_event_that_nobody_asks_for_leaves_and_comes_back_the_same),
        claim(an_event_that_is_asked_for_stays),
        claim(an_event_that_is_pinned_stays),
        claim(an_event_stays_until_its_holds_have_run_out),
        claim(a_hold_of_another_server_is_found_when_the_event_comes_back),
        claim(an_event_does_not_leave_while_the_ledger_is_away),
        claim(an_event_whose_change_has_not_been_announced_stays),
        claim(a_copy_that_was_read_before_the_event_left_is_not_installed),
    };
    return cmocka_run_group_tests_name("idle turns", tests, NULL, NULL);
}
