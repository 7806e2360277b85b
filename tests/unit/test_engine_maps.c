/* Claims about how the engine makes maps of past moments: page by page, others in between, one at a
 * time, and not too many.  The tests use real threads, a real SQLite file, and a clock that stands
 * still until a test advances it.  tests/unit/test_past.c has what such a map shows. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/past.h"
#include "support/engine_client.h"
#include "view/snapshot.h"

#define ROWS 2
#define SEATS_PER_ROW 3
#define ENTRIES 2500 /* of the log after the moment: three pages */
#define MAPS 60

static struct temp_dir dir;
static struct clock_fake now;
static struct client client;
static struct event *hall;
static int64_t moment; /* when seat 0 was held, before the entries of the log */
static struct call history[ENTRIES], maps[MAPS];

static void close_and_open(void)
{
    for (int i = 0; i < ENTRIES; i++) {
        memset(&history[i], 0, sizeof history[i]);
        history[i].c.kind = i % 2 ? CMD_EVENT_OPEN : CMD_EVENT_CLOSE;
        history[i].c.event = hall;
        client_put(&client, &history[i]);
    }
    for (int i = 0; i < ENTRIES; i++) {
        assert_int_equal(client_wait(&history[i]), VERDICT_OK);
        call_close(&history[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct call call;
    log_set_level(LOG_OFF);
    temp_dir_make(&dir);
    clock_fake_init(&now, T0_MS * 1000);
    if (client_start(&client, dir.url, &now.clock, &err) != HF_OK)
        fail_msg("%s", err.msg);
    call_event_create(&call, ROWS, SEATS_PER_ROW);
    assert_int_equal(client_ask(&client, &call), VERDICT_CREATED);
    int64_t key = call.c.event_create->id.key;
    call_close(&call);
    call_event_load(&call, key);
    assert_int_equal(client_ask(&client, &call), VERDICT_OK);
    hall = call.c.event;
    call_close(&call);

    clock_fake_advance(&now, 1000000);
    call_hold(&call, hall, 0, 1, 5000);
    assert_int_equal(client_ask(&client, &call), VERDICT_CREATED);
    const struct id hold = call.c.create.hold.id;
    call_close(&call);
    moment = engine_now_ms(client.engine);
    clock_fake_advance(&now, 1000000);
    close_and_open();
    call_on_hold(&call, CMD_HOLD_RELEASE, hall, &hold);
    assert_int_equal(client_ask(&client, &call), VERDICT_OK);
    call_close(&call);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    client_stop(&client);
    temp_dir_remove(&dir);
    return 0;
}

static void call_map(struct call *call, int64_t at)
{
    memset(call, 0, sizeof *call);
    call->c.kind = CMD_MAP_PAST;
    call->c.event = hall;
    call->c.map_past.at = at;
}

/* A short read by the same thread. */
static void call_heat(struct call *call)
{
    memset(call, 0, sizeof *call);
    call->c.kind = CMD_EVENT_HEAT;
    call->c.event = hall;
    call->c.event_heat = hf_alloc(sizeof(struct heat_list));
}

/* Submits a call whose answer stops the reader, and waits until it is there. */
static void put_pause(struct call *call)
{
    call->pauses = true;
    client.paused = client.go_on = false;
    client_put(&client, call);
}

static void wait_for_pause(void)
{
    pthread_mutex_lock(&client.lock);
    while (!client.paused)
        pthread_cond_wait(&client.wake, &client.lock);
    pthread_mutex_unlock(&client.lock);
}

static void go_on(void)
{
    pthread_mutex_lock(&client.lock);
    client.go_on = true;
    pthread_cond_broadcast(&client.wake);
    pthread_mutex_unlock(&client.lock);
}

static void assert_map_of_moment(const struct call *call)
{
    const uint8_t seats[ROWS * SEATS_PER_ROW] = {SEAT_HELD};
    const struct snapshot *s = call->c.map_past.snapshot;
    assert_int_equal(s->text.len, sizeof seats);
    assert_memory_equal(s->text.data, seats, sizeof seats);
    assert_true(s->seq < hall->shown.seq - ENTRIES);
}

static void a_long_log_is_taken_back_to_the_moment(void **state)
{
    (void)state;
    struct call call;
    call_map(&call, moment);
    assert_int_equal(client_ask(&client, &call), VERDICT_OK);
    assert_map_of_moment(&call);
    call_close(&call);
    call_map(&call, engine_now_ms(client.engine));
    assert_int_equal(client_ask(&client, &call), VERDICT_OK);
    assert_int_equal(call.c.map_past.snapshot->seq, hall->shown.seq);
    assert_int_equal(call.c.map_past.snapshot->text.data[0], SEAT_AVAILABLE);
    call_close(&call);
}

/* The calls in the order of their answers. */
static const struct call *answered[2];
static size_t n_answered;

static void note_answer(struct pending *pending)
{
    struct call *call = pending->waiter;
    pthread_mutex_lock(&client.lock);
    answered[n_answered++] = call;
    call->answers++;
    pthread_cond_broadcast(&client.wake);
    pthread_mutex_unlock(&client.lock);
}

static void put_noted(struct call *call)
{
    call->client = &client;
    call->c.pending = (struct pending){.done = note_answer, .waiter = call};
    assert_int_equal(engine_submit(client.engine, &call->c), HF_OK);
}

static void others_are_served_between_two_pages(void **state)
{
    (void)state;
    struct call first, second;
    n_answered = 0;
    call_heat(&first);
    put_pause(&first);
    wait_for_pause();
    call_map(&maps[0], moment);
    put_noted(&maps[0]);
    call_heat(&second);
    put_noted(&second);
    go_on();
    assert_int_equal(client_wait(&maps[0]), VERDICT_OK);
    assert_int_equal(client_wait(&second), VERDICT_OK);
    assert_ptr_equal(answered[0], &second);
    assert_map_of_moment(&maps[0]);
    client_wait(&first);
    call_close(&first);
    call_close(&second);
    call_close(&maps[0]);
}

static void maps_wait_in_a_queue_that_has_an_end(void **state)
{
    (void)state;
    struct call first;
    size_t made = 0, refused = 0;
    call_heat(&first);
    put_pause(&first);
    wait_for_pause();
    for (size_t i = 0; i < MAPS; i++) {
        call_map(&maps[i], moment);
        client_put(&client, &maps[i]);
    }
    go_on();
    client_wait(&first);
    call_close(&first);
    for (size_t i = 0; i < MAPS; i++) {
        enum verdict verdict = client_wait(&maps[i]);
        made += verdict == VERDICT_OK;
        refused += verdict == VERDICT_OVERLOADED;
        if (verdict == VERDICT_OK)
            assert_map_of_moment(&maps[i]);
        call_close(&maps[i]);
    }
    assert_int_equal(made + refused, MAPS);
    assert_true(made > PAST_WAITING_MAX && refused > 0);
}

static void an_engine_that_stops_answers_the_maps_that_wait(void **state)
{
    (void)state;
    struct call first;
    call_heat(&first);
    put_pause(&first);
    wait_for_pause();
    for (size_t i = 0; i < PAST_WAITING_MAX; i++) {
        call_map(&maps[i], moment);
        client_put(&client, &maps[i]);
    }
    go_on();
    engine_drain(client.engine);
    call_close(&first);
    for (size_t i = 0; i < PAST_WAITING_MAX; i++) {
        assert_int_equal(maps[i].answers, 1);
        assert_true(maps[i].c.verdict == VERDICT_OK || maps[i].c.verdict == VERDICT_DRAINING);
        call_close(&maps[i]);
    }
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(a_long_log_is_taken_back_to_the_moment),
        CLAIM(others_are_served_between_two_pages),
        CLAIM(maps_wait_in_a_queue_that_has_an_end),
        CLAIM(an_engine_that_stops_answers_the_maps_that_wait),
    };
    return cmocka_run_group_tests_name("engine_maps", tests, NULL, NULL);
}
