/* See world.h. */
#include "sim/world.h"

#include "engine/follow.h"
#include "engine/load.h"
#include "sim/follower.h"
#include "sim/wait.h"

#define LEDGER_NAME "world"
#define TURNS_MAX 4 /* until a call is answered: a deferred command takes a second turn */

/* ---- calls ---- */

static void on_done(struct pending *pending) { ((struct call *)pending->waiter)->answers++; }

void call_close(struct call *call) { ask_close(&call->ask); }

/* The bytes that stand for an answer name the hold and its secret. */
static int render(const struct command *c, struct buf *out)
{
    buf_printf(out, "%d", c->kind);
    if (c->kind == CMD_HOLD_CREATE || command_named_hold((struct command *)(uintptr_t)c)) {
        char id[ID_TEXT_SIZE];
        id_format(id, " hold_", &command_hold(c)->id);
        buf_str(out, id);
    }
    return 1 + (int)c->verdict;
}

static void render_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    buf_put(out, map->seats, e->def->n_seats);
}

/* ---- the world ---- */

static void on_sleep(void *ctx, int64_t us)
{
    struct world *w = ctx;
    clock_fake_advance(&w->clock, us);
    for (size_t i = 0; i < w->n_servers; i++)
        clock_fake_advance(&w->servers[i].clock, us);
}

void world_pass_ms(struct world *w, int64_t ms) { on_sleep(w, ms * 1000); }

void world_open(struct world *w, uint64_t seed, size_t n_servers)
{
    *w = (struct world){.n_servers = n_servers};
    clock_fake_init(&w->clock, T0_MS * 1000);
    w->ledger = sim_ledger_new(LEDGER_NAME, &w->clock.clock, n_servers > 1);
    sim_wait_on_sleep(on_sleep, w);
    for (size_t i = 0; i < w->n_servers; i++) {
        struct server *s = &w->servers[i];
        clock_fake_init(&s->clock, 0); /* an engine has no use for its own wall clock */
        clock_fake_advance(&s->clock, (int64_t)i * 123456789);
        s->seed = seed * SERVERS_MAX + i + 1;
        server_start(s);
    }
}

void world_close(struct world *w)
{
    for (size_t i = 0; i < w->n_servers; i++)
        server_stop(&w->servers[i]);
    sim_ledger_free(w->ledger);
    sim_wait_on_sleep(NULL, NULL);
}

/* ---- servers ---- */

void server_start(struct server *s)
{
    struct hf_err err = {0};
    s->metrics = metrics_new();
    s->seed += 1000; /* a server that starts again makes other secrets */
    const struct engine_config config = {.ledger_url = "sim:" LEDGER_NAME,
                                         .workers = 1,
                                         .clock = &s->clock.clock,
                                         .random_seed = s->seed,
                                         .metrics = s->metrics,
                                         .notices = ~0u,
                                         .texts = {.answer = render, .map = render_map}};
    assert_int_equal(engine_open(&config, &s->engine, &err), HF_OK);
    assert_int_equal(follower_start(s->engine, &err), HF_OK);
    for (int i = 0; i < s->engine->n_workers; i++)
        s->engine->workers[i].decision.wait_turns_max = WAIT_TURNS;
}

/* Runs the loader's thread function here: it returns when its queue is closed and empty. */
static void run_loader(struct engine *e)
{
    lane_close(&e->load);
    loader_main(e);
}

void server_stop(struct server *s)
{
    if (!s->engine)
        return;
    run_loader(s->engine);
    for (int i = 0; i < s->engine->n_workers; i++) {
        lane_close(&s->engine->workers[i].work);
        while (worker_turn(&s->engine->workers[i], 0))
            ;
    }
    engine_stop(s->engine);
    metrics_free(s->metrics);
    s->engine = NULL;
    s->metrics = NULL;
}

void server_put(struct server *s, struct call *call)
{
    call->answers = 0;
    call->ask.c.pending = (struct pending){.done = on_done, .waiter = call};
    assert_int_equal(engine_submit(s->engine, &call->ask.c), HF_OK);
}

void server_turn(struct server *s)
{
    struct engine *e = s->engine;
    if (lane_len(&e->load)) {
        run_loader(e);
        lane_destroy(&e->load);
        lane_init(&e->load, e->config.queue_len_max);
    }
    for (int i = 0; i < e->n_workers; i++)
        assert_true(worker_turn(&e->workers[i], 0));
}

enum verdict server_ask(struct server *s, struct call *call)
{
    server_put(s, call);
    for (int i = 0; i < TURNS_MAX && !call->answers; i++)
        server_turn(s);
    assert_int_equal(call->answers, 1);
    return call->ask.c.verdict;
}

int64_t server_create_event(struct server *s, struct event_def *def)
{
    struct call call = {.ask.c.kind = CMD_EVENT_CREATE, .ask.c.event_create = def};
    assert_int_equal(server_ask(s, &call), VERDICT_CREATED);
    int64_t key = def->id.key;
    call_close(&call);
    return key;
}

struct event *server_event(struct server *s, int64_t key)
{
    if (!engine_event(s->engine, key)) {
        struct call call = {.ask.c.kind = CMD_EVENT_LOAD, .ask.c.event_key = key};
        assert_int_equal(server_ask(s, &call), VERDICT_OK);
        call_close(&call);
    }
    return engine_event(s->engine, key);
}

void server_catch_up(struct server *s)
{
    struct loaded loaded = {0};
    engine_list_loaded(s->engine, &loaded);
    for (size_t i = 0; i < loaded.events.n; i++)
        sim_follower_ask(s->engine, loaded.events.v[i]);
    loaded_close(&loaded);
    server_turn(s);
}
