/* Workers of two servers over one ledger, step by step: every turn is taken by the test, on one
 * thread and on fake clocks, so each interleaving is chosen and can be repeated.  Engine, rules and
 * batch are the real ones; the ledger, the announcements between servers and waiting are those of
 * tests/sim. */
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sim/check.h"
#include "sim/follower.h"
#include "sim/random_turns.h"
#include "sim/tables.h"

/* A hall of 3 rows of 4 seats, and a floor of 5 places, seen by both servers. */
struct hall {
    struct world world;
    struct server *a, *b;
    int64_t key;
    struct event *at_a, *at_b; /* as each server sees it */
    struct fold rows, view_a, view_b;
};

static struct event_def *small_hall(void)
{
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 500, 5);
    return def;
}

static int setup(void **state)
{
    struct hall *h = hf_alloc(sizeof *h);
    log_set_level(LOG_OFF);
    world_open(&h->world, 1, 2);
    world_pass_ms(&h->world, 1000); /* what the servers wrote at their start is past */
    h->a = &h->world.servers[0];
    h->b = &h->world.servers[1];
    h->key = server_create_event(h->a, small_hall());
    h->at_a = server_event(h->a, h->key);
    h->at_b = server_event(h->b, h->key);
    fold_init(&h->rows, h->world.ledger, h->key);
    fold_init(&h->view_a, h->world.ledger, h->key);
    fold_init(&h->view_b, h->world.ledger, h->key);
    *state = h;
    return 0;
}

/* At the end of every test both servers catch up, and see what the ledger says. */
static int teardown(void **state)
{
    struct hall *h = *state;
    sim_ledger_heal(h->world.ledger);
    if (h->a->engine) {
        server_catch_up(h->a);
        check_caught_up(&h->view_a, h->world.ledger, h->a);
    }
    if (h->b->engine) {
        server_catch_up(h->b);
        check_caught_up(&h->view_b, h->world.ledger, h->b);
    }
    check_ledger(&h->rows, h->world.ledger);
    fold_close(&h->rows);
    fold_close(&h->view_a);
    fold_close(&h->view_b);
    world_close(&h->world);
    free(h);
    return 0;
}

/* A seat as the ledger's rows have it: its own, or those of live holds. */
struct stored_seat {
    enum seat_status status;
    int64_t hold, expires_at, sold_to;
};

static struct stored_seat stored(const struct sim_event *e, uint32_t seat)
{
    struct stored_seat s = {.status = e->seats[seat].status,
                            .hold = e->seats[seat].hold,
                            .sold_to = e->seats[seat].sold_to};
    for (size_t i = 0; i < e->holds.n; i++) {
        const struct hold_row *row = &e->holds.v[i].row;
        for (uint32_t k = 0; row->status == HOLD_ACTIVE && k < row->n_seats; k++)
            if (row->seats[k] == seat) {
                assert_int_equal(s.status, SEAT_AVAILABLE); /* I1 */
                s = (struct stored_seat){SEAT_HELD, row->id.key, row->expires_at, s.sold_to};
            }
    }
    return s;
}

static struct stored_seat stored_at(const struct hall *h, uint32_t seat)
{
    return stored(sim_event(h->world.ledger, h->key), seat);
}

static enum seat_status shown(const struct event *e, uint32_t seat)
{
    return seat_shown_status(seat_shown(e, seat));
}

/* Holds one seat and returns the hold's id. */
static struct id hold_one(struct server *s, struct event *e, uint32_t seat)
{
    struct call call;
    ask_create(&call.ask, e, seat);
    assert_int_equal(server_ask(s, &call), VERDICT_CREATED);
    struct id id = call.ask.c.create.hold.id;
    call_close(&call);
    return id;
}

/* ---- two servers ---- */

static void two_servers_sell_each_seat_once(void **state)
{
    struct hall *h = *state;
    struct call first, second;
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&second.ask, h->at_b, 3);
    server_put(h->a, &first);
    server_put(h->b, &second);
    server_turn(h->a);
    server_turn(h->b);
    assert_int_equal(first.answers, 1);
    assert_int_equal(second.answers, 1);
    assert_int_equal(first.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(second.ask.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(second.ask.c.create.shortage.n_taken, 1);
    assert_int_equal(second.ask.taken[0], 3);
    assert_int_equal(h->at_b->shown.seq, h->at_a->shown.seq); /* the log brought it up to date */
    assert_int_equal(shown(h->at_b, 3), SEAT_HELD);

    struct call confirm;
    const struct id id = first.ask.c.create.hold.id;
    ask_confirm(&confirm.ask, h->at_b, &id, first.ask.c.create.hold.fence, false);
    assert_int_equal(server_ask(h->b, &confirm), VERDICT_CREATED);
    assert_int_equal(stored_at(h, 3).sold_to, id.key);
    call_close(&first);
    call_close(&second);
    call_close(&confirm);
}

static void the_order_of_turns_decides_who_gets_the_seat(void **state)
{
    struct hall *h = *state;
    struct call first, second;
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&second.ask, h->at_b, 3);
    server_put(h->a, &first); /* queued first, but its server turns last */
    server_put(h->b, &second);
    server_turn(h->b);
    server_turn(h->a);
    assert_int_equal(first.ask.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(second.ask.c.verdict, VERDICT_CREATED);
    call_close(&first);
    call_close(&second);
}

static void a_server_that_is_behind_decides_on_the_ledger_not_on_its_view(void **state)
{
    struct hall *h = *state;
    struct id id = hold_one(h->a, h->at_a, 5);
    struct call call;
    assert_int_equal(shown(h->at_b, 5), SEAT_AVAILABLE); /* nobody has told it */
    ask_create(&call.ask, h->at_b, 5);
    assert_int_equal(server_ask(h->b, &call), VERDICT_SEAT_TAKEN);
    call_close(&call);
    assert_int_equal(shown(h->at_b, 5), SEAT_HELD);

    ask_release(&call.ask, h->at_a, &id);
    assert_int_equal(server_ask(h->a, &call), VERDICT_OK);
    call_close(&call);
    assert_int_equal(shown(h->at_b, 5), SEAT_HELD); /* behind again, the other way round */
    hold_one(h->b, h->at_b, 5);
    assert_int_not_equal(stored_at(h, 5).hold, id.key);
}

static void an_announcement_brings_the_other_server_up_to_date(void **state)
{
    struct hall *h = *state;
    hold_one(h->a, h->at_a, 5);
    server_turn(h->b);
    assert_int_equal(shown(h->at_b, 5), SEAT_AVAILABLE);
    sim_follower_deliver(h->a->engine, h->b->engine);
    server_turn(h->b);
    assert_int_equal(shown(h->at_b, 5), SEAT_HELD);
    assert_int_equal(h->at_b->shown.seq, h->at_a->shown.seq);
}

static void an_event_is_created_on_one_server_and_sold_on_the_other(void **state)
{
    struct hall *h = *state;
    int64_t key = server_create_event(h->b, small_hall());
    assert_int_equal(key, h->key + 1);
    hold_one(h->a, server_event(h->a, key), 0);
    assert_int_equal(stored(sim_event(h->world.ledger, key), 0).status, SEAT_HELD);
    assert_int_equal(stored_at(h, 0).status, SEAT_AVAILABLE);
}

/* Blocks or unblocks the seats of a large hall from `first` on: one row of the log each. */
static void block_from(struct server *s, struct event *e, enum command_kind kind, uint32_t first)
{
    uint32_t n = e->def->n_seats - first;
    struct call call = {.ask.c.kind = kind, .ask.c.event = e};
    uint32_t *seats = hf_alloc(n * sizeof *seats), *taken = hf_alloc(n * sizeof *taken);
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    call.ask.c.block = (struct seats_block){
        .seats = seats, .n_seats = n, .blocks = kind == CMD_SEATS_BLOCK, .shortage.taken = taken};
    assert_int_equal(server_ask(s, &call), VERDICT_OK);
    free(seats);
    free(taken);
}

static void a_view_that_is_too_far_behind_is_loaded_again(void **state)
{
    struct hall *h = *state;
    int64_t key = server_create_event(h->a, def_hall(2, LEDGER_SINCE_MAX / 6));
    struct event *at_a = server_event(h->a, key), *at_b = server_event(h->b, key);
    for (int i = 0; i < 4; i++)
        block_from(h->a, at_a, i % 2 ? CMD_SEATS_UNBLOCK : CMD_SEATS_BLOCK, 0);
    assert_true(at_a->shown.seq > at_b->shown.seq + LEDGER_SINCE_MAX);
    hold_one(h->b, at_b, 17); /* after the loading: the row's condition would refuse an old view */
    assert_int_equal(at_b->shown.seq, at_a->shown.seq + 2);
    struct fold fold;
    fold_init(&fold, h->world.ledger, key);
    check_caught_up(&fold, h->world.ledger, h->b);
    fold_close(&fold);
}

struct news {
    size_t n, n_skipped; /* n_skipped: what became of the event's entries was missed */
    struct wait_news last;
};

static void note_news(void *context, const struct wait_news *news, size_t n)
{
    struct news *heard = context;
    for (size_t i = 0; i < n; i++)
        *(news[i].status == WAIT_NONE ? &heard->n_skipped : &heard->n) += 1;
    heard->last = news[n - 1];
}

/* Those who follow an entry at one server hear of what another server did to it; or else, that this
 * was missed. */
static void followers_of_an_entry_hear_what_other_servers_did(void **state)
{
    struct hall *h = *state;
    struct call call;
    struct news heard = {0};
    struct event_def *def = def_hall(2, LEDGER_SINCE_MAX / 6);
    uint32_t second_row = def->n_seats / 2;
    def->terms.offer_ttl_ms = HOUR_MS;
    def->terms.wait_per_owner = 1;
    int64_t key = server_create_event(h->a, def);
    struct event *at_a = server_event(h->a, key), *at_b = server_event(h->b, key);
    h->b->engine->config.waits_changed = note_news;
    h->b->engine->config.waits_context = &heard;
    block_from(h->a, at_a, CMD_SEATS_BLOCK, 0);
    ask_wait(&call.ask, at_a, 1);
    assert_int_equal(server_ask(h->a, &call), VERDICT_CREATED);
    struct id entry = call.ask.c.wait_join.wait.id;
    call_close(&call);
    server_catch_up(h->b);
    size_t told = heard.n;
    block_from(h->a, at_a, CMD_SEATS_UNBLOCK, second_row);
    server_catch_up(h->b);
    assert_int_equal(heard.n, told + 1);
    assert_true(heard.last.entry == entry.key && heard.last.status == WAIT_OFFERED);
    ask_wait_change(&call.ask, at_a, WAIT_LEAVES, &entry);
    assert_int_equal(server_ask(h->a, &call), VERDICT_OK);
    call_close(&call);
    for (int i = 0; i < 8; i++)
        block_from(h->a, at_a, i % 2 ? CMD_SEATS_UNBLOCK : CMD_SEATS_BLOCK, second_row);
    assert_true(at_a->shown.seq > at_b->shown.seq + LEDGER_SINCE_MAX);
    assert_int_equal(heard.n_skipped, 0);
    hold_one(h->b, at_b, second_row); /* loads the event again */
    assert_int_equal(heard.n_skipped, 1);
    assert_true(heard.last.entry == HOLD_KEY(key, 0));
}

/* ---- time ---- */

static void a_hold_expires_by_the_clock_on_whichever_server_turns_first(void **state)
{
    struct hall *h = *state;
    hold_one(h->a, h->at_a, 1);
    server_catch_up(h->b);
    world_pass_ms(&h->world, DEF_TTL_MS - 1);
    server_turn(h->b);
    assert_int_equal(stored_at(h, 1).status, SEAT_HELD);
    world_pass_ms(&h->world, 1);
    server_turn(h->b);
    assert_int_equal(stored_at(h, 1).status, SEAT_AVAILABLE);
    assert_int_equal(shown(h->at_b, 1), SEAT_AVAILABLE);
    assert_int_equal(shown(h->at_a, 1), SEAT_HELD);
    sim_follower_deliver(h->b->engine, h->a->engine);
    server_turn(h->a);
    assert_int_equal(shown(h->at_a, 1), SEAT_AVAILABLE);      /* the other server sees it */
    assert_int_equal(h->at_a->shown.seq, h->at_b->shown.seq); /* and does not expire it again */
}

static void a_renewal_that_the_other_server_has_not_seen_keeps_the_hold_alive(void **state)
{
    struct hall *h = *state;
    struct call call;
    struct id id = hold_one(h->a, h->at_a, 1);
    server_catch_up(h->b);
    world_pass_ms(&h->world, DEF_TTL_MS / 2);
    ask_renew(&call.ask, h->at_a, &id, 0);
    assert_int_equal(server_ask(h->a, &call), VERDICT_OK);
    call_close(&call);
    world_pass_ms(&h->world, DEF_TTL_MS / 2);
    assert_true(view_hold(h->b->engine->workers[0].view, id.key)->expires_at <=
                engine_now_ms(h->b->engine));
    server_turn(h->b); /* believes that it is due, and reads before it decides */
    assert_int_equal(stored_at(h, 1).status, SEAT_HELD);
}

static void time_never_goes_back_when_the_databases_clock_does(void **state)
{
    struct hall *h = *state;
    int64_t now = 0;
    hold_one(h->a, h->at_a, 1);
    clock_fake_step(&h->world.clock, -HOUR_MS * 1000);
    hold_one(h->b, h->at_b, 2);
    const struct sim_event *e = sim_event(h->world.ledger, h->key);
    for (size_t i = 0; i < e->log.n; i++) {
        assert_true(e->log.v[i].at >= now);
        now = e->log.v[i].at;
    }
    assert_int_equal(stored_at(h, 2).expires_at, stored_at(h, 1).expires_at);
}

/* ---- idempotency keys ---- */

static void a_repeated_key_at_the_other_server_gets_the_first_answer(void **state)
{
    struct hall *h = *state;
    struct call first, again, other;
    ask_create(&first.ask, h->at_a, 7);
    ask_key(&first.ask, "key", "seat 7");
    assert_int_equal(server_ask(h->a, &first), VERDICT_CREATED);
    ask_create(&again.ask, h->at_b, 7);
    ask_key(&again.ask, "key", "seat 7");
    assert_int_equal(server_ask(h->b, &again), VERDICT_OK);
    const struct idempotency *key = &again.ask.c.key, *stored = &first.ask.c.key;
    assert_true(key->replayed);
    assert_int_equal(key->answer_code, stored->answer_code);
    assert_int_equal(key->answer.len, stored->answer.len);
    assert_memory_equal(key->answer.data, stored->answer.data, stored->answer.len);
    ask_create(&other.ask, h->at_b, 8);
    ask_key(&other.ask, "key", "seat 8");
    assert_int_equal(server_ask(h->b, &other), VERDICT_KEY_MISMATCH);
    assert_int_equal(stored_at(h, 8).status, SEAT_AVAILABLE);
    call_close(&first);
    call_close(&again);
    call_close(&other);
}

static void a_key_is_forgotten_after_a_day(void **state)
{
    struct hall *h = *state;
    struct call first, again;
    ask_create(&first.ask, h->at_a, 7);
    ask_key(&first.ask, "key", "seat 7");
    assert_int_equal(server_ask(h->a, &first), VERDICT_CREATED);
    world_pass_ms(&h->world, KEY_KEPT_MS);
    ask_create(&again.ask, h->at_b, 7);
    ask_key(&again.ask, "key", "seat 7");
    assert_int_equal(server_ask(h->b, &again), VERDICT_CREATED);
    call_close(&first);
    call_close(&again);
}

/* ---- failures ---- */

static void a_lost_commit_that_happened_is_acknowledged(void **state)
{
    struct hall *h = *state;
    struct call call;
    sim_ledger_fail(h->world.ledger, SIM_COMMIT, 1, SIM_LOST_STORED);
    sim_ledger_fail(h->world.ledger, SIM_RESOLVE, 1, SIM_UNAVAILABLE); /* asked again */
    ask_create(&call.ask, h->at_a, 2);
    assert_int_equal(server_ask(h->a, &call), VERDICT_CREATED);
    assert_int_equal(stored_at(h, 2).hold, call.ask.c.create.hold.id.key);
    assert_int_equal(shown(h->at_a, 2), SEAT_HELD);
    call_close(&call);
}

static void a_lost_commit_that_did_not_happen_is_refused(void **state)
{
    struct hall *h = *state;
    struct call call;
    sim_ledger_fail(h->world.ledger, SIM_COMMIT, 1, SIM_LOST_UNSTORED);
    ask_create(&call.ask, h->at_a, 2);
    assert_int_equal(server_ask(h->a, &call), VERDICT_STORE_UNAVAILABLE);
    assert_int_equal(stored_at(h, 2).status, SEAT_AVAILABLE);
    assert_int_equal(shown(h->at_a, 2), SEAT_AVAILABLE);
    call_close(&call);
    hold_one(h->b, h->at_b, 2);
}

struct always {
    struct sim_ledger *ledger;
    enum sim_call call;
};

/* A hook that has every call of one kind fail. */
static void fail_always(void *ctx, enum sim_call call)
{
    const struct always *always = ctx;
    if (call == always->call)
        sim_ledger_fail(always->ledger, call, 1, SIM_UNAVAILABLE);
}

static void a_commit_that_cannot_be_resolved_is_answered_as_unknown(void **state)
{
    struct hall *h = *state;
    struct always always = {h->world.ledger, SIM_RESOLVE};
    struct call call;
    int64_t before_ms = engine_now_ms(h->a->engine);
    sim_ledger_fail(h->world.ledger, SIM_COMMIT, 1, SIM_LOST_STORED);
    sim_ledger_hook(h->world.ledger, fail_always, &always);
    ask_create(&call.ask, h->at_a, 2);
    assert_int_equal(server_ask(h->a, &call), VERDICT_OUTCOME_UNKNOWN);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_in_range(engine_now_ms(h->a->engine) - before_ms, 1000, 10000); /* it tried for long */
    assert_int_equal(stored_at(h, 2).status, SEAT_HELD); /* and so the next batch finds */
    hold_one(h->a, h->at_a, 6);
    assert_int_equal(shown(h->at_a, 2), SEAT_HELD);
    call_close(&call);
}

static void a_failed_write_leaves_no_trace_in_the_view(void **state)
{
    struct hall *h = *state;
    const enum sim_call calls[] = {SIM_BEGIN, SIM_BATCH_READ, SIM_WRITE, SIM_COMMIT};
    struct id id = hold_one(h->a, h->at_a, 9);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct call create, release;
        int64_t seq = h->at_a->shown.seq;
        sim_ledger_fail(h->world.ledger, calls[i], 1, SIM_UNAVAILABLE);
        ask_create(&create.ask, h->at_a, 0, 4);
        ask_area(&create.ask, 0, 2);
        ask_release(&release.ask, h->at_a, &id);
        server_put(h->a, &create);
        assert_int_equal(server_ask(h->a, &release), VERDICT_STORE_UNAVAILABLE);
        assert_int_equal(create.ask.c.verdict, VERDICT_STORE_UNAVAILABLE);
        assert_int_equal(h->at_a->shown.seq, seq);
        check_view(&h->view_a, h->world.ledger, h->a);
        check_ledger(&h->rows, h->world.ledger);
        call_close(&create);
        call_close(&release);
    }
    hold_one(h->a, h->at_a, 0);
}

static void a_seat_that_the_ledger_has_otherwise_is_a_surprise_and_is_read_again(void **state)
{
    struct hall *h = *state;
    struct call taken, free_seat;
    struct sim_event *e = sim_event(h->world.ledger, h->key);
    e->seats[4] = (struct sim_seat){.status = SEAT_BOOKED}; /* behind the log's back */
    ask_seats(&taken.ask, CMD_SEATS_BLOCK, h->at_a, 4);
    ask_create(&free_seat.ask, h->at_a, 5);
    server_put(h->a, &taken);
    server_put(h->a, &free_seat);
    server_turn(h->a);
    assert_int_equal(taken.ask.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(free_seat.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(shown(h->at_a, 4), SEAT_BOOKED);
    e->seats[4] = (struct sim_seat){0};
    h->at_a->stale = true;
    call_close(&taken);
    call_close(&free_seat);
}

static void a_server_that_stops_between_claim_and_commit_loses_nothing(void **state)
{
    struct hall *h = *state;
    struct call lost, blocked, again;
    ask_create(&lost.ask, h->at_a, 10);
    sim_ledger_fail(h->world.ledger, SIM_COMMIT, 1, SIM_STUCK);
    assert_int_equal(server_ask(h->a, &lost), VERDICT_STORE_UNAVAILABLE);
    assert_int_equal(stored_at(h, 10).status, SEAT_AVAILABLE);
    ask_create(&blocked.ask, h->at_b, 10); /* A's transaction is open and has the lock */
    assert_int_equal(server_ask(h->b, &blocked), VERDICT_CONFLICT);
    check_view(&h->view_b, h->world.ledger, h->b);

    server_stop(h->a); /* the database ends the transactions of closed connections */
    ask_create(&again.ask, h->at_b, 10);
    assert_int_equal(server_ask(h->b, &again), VERDICT_CREATED);
    server_start(h->a);
    h->at_a = server_event(h->a, h->key);
    assert_int_equal(shown(h->at_a, 10), SEAT_HELD);
    call_close(&lost);
    call_close(&blocked);
    call_close(&again);
}

/* ---- one server's turn in the middle of another's ---- */

struct interruption {
    struct server *server;
    enum sim_call at;
    int times;
};

/* A hook that takes the other server's turn at a call, `times` times. */
static void interrupt(void *ctx, enum sim_call call)
{
    struct interruption *i = ctx;
    if (call == i->at && i->times-- > 0)
        server_turn(i->server);
}

static void a_server_that_read_first_keeps_the_other_out_until_it_has_committed(void **state)
{
    struct hall *h = *state;
    struct call first, second;
    struct interruption interruption = {h->b, SIM_WRITE, 1};
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&second.ask, h->at_b, 3);
    server_put(h->b, &second);
    sim_ledger_hook(h->world.ledger, interrupt, &interruption);
    assert_int_equal(server_ask(h->a, &first), VERDICT_CREATED);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(second.answers, 1);
    assert_int_equal(second.ask.c.verdict, VERDICT_CONFLICT);
    call_close(&second);
    ask_create(&second.ask, h->at_b, 3);
    assert_int_equal(server_ask(h->b, &second), VERDICT_SEAT_TAKEN);
    call_close(&first);
    call_close(&second);
}

/* The server's connection holds the lock, and the database gives it away all the same. */
struct lost_lock {
    struct hall *hall;
    int times;
};

static void lose_lock(void *ctx, enum sim_call call)
{
    struct lost_lock *lost = ctx;
    struct sim_event *e = sim_event(lost->hall->world.ledger, lost->hall->key);
    if (call != SIM_WRITE || lost->times-- <= 0)
        return;
    struct ledger *holder = e->locked_by;
    e->locked_by = NULL;
    server_turn(lost->hall->b);
    e->locked_by = holder;
}

static void a_batch_whose_lock_was_lost_is_rolled_back_and_judged_again(void **state)
{
    struct hall *h = *state;
    struct call first, other, second;
    struct lost_lock lost = {h, 1};
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&other.ask, h->at_a, 4);
    ask_create(&second.ask, h->at_b, 3);
    server_put(h->b, &second);
    server_put(h->a, &first);
    server_put(h->a, &other);
    sim_ledger_hook(h->world.ledger, lose_lock, &lost);
    server_turn(h->a);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(second.ask.c.verdict, VERDICT_CREATED); /* it came between read and write */
    assert_int_equal(first.ask.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(other.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(stored_at(h, 3).hold, second.ask.c.create.hold.id.key);
    assert_int_equal(stored_at(h, 4).hold, other.ask.c.create.hold.id.key);
    call_close(&first);
    call_close(&other);
    call_close(&second);
}

static void transactions_on_different_events_do_not_wait_for_each_other(void **state)
{
    struct hall *h = *state;
    int64_t key = server_create_event(h->a, small_hall());
    struct call first, second;
    struct interruption interruption = {h->b, SIM_COMMIT, 1};
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&second.ask, server_event(h->b, key), 3);
    server_put(h->b, &second);
    sim_ledger_hook(h->world.ledger, interrupt, &interruption);
    assert_int_equal(server_ask(h->a, &first), VERDICT_CREATED);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(second.answers, 1);
    assert_int_equal(second.ask.c.verdict, VERDICT_CREATED);
    call_close(&first);
    call_close(&second);
}

/* ---- commands that come while a batch has its locks ---- */

struct latecomers {
    struct hall *hall;
    struct call *calls[4];
    bool have_come;
};

static void come(void *ctx, enum sim_call call)
{
    struct latecomers *l = ctx;
    if (call != SIM_BATCH_READ || l->have_come)
        return;
    l->have_come = true;
    for (int i = 0; i < 4; i++)
        server_put(l->hall->a, l->calls[i]);
}

static void what_needs_rows_waits_for_the_next_batch(void **state)
{
    struct hall *h = *state;
    struct call first, keyed, plain, same, last;
    struct latecomers late = {.hall = h, .calls = {&keyed, &plain, &same, &last}};
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&keyed.ask, h->at_a, 4);
    ask_key(&keyed.ask, "key", "seat 4");
    ask_create(&plain.ask, h->at_a, 5);
    ask_create(&same.ask, h->at_a, 4); /* came after the keyed one, and overtakes it */
    ask_create(&last.ask, h->at_a, 3);
    server_put(h->a, &first);
    sim_ledger_hook(h->world.ledger, come, &late);
    server_turn(h->a);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(first.answers, 1);
    assert_int_equal(plain.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(same.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(last.ask.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(keyed.answers, 0);
    assert_int_equal(worker_sleep_us(&h->a->engine->workers[h->key % h->a->engine->n_workers]), 0);
    server_turn(h->a);
    assert_int_equal(keyed.answers, 1);
    assert_int_equal(keyed.ask.c.verdict, VERDICT_SEAT_TAKEN);
    struct call *all[] = {&first, &keyed, &plain, &same, &last};
    for (size_t i = 0; i < 5; i++)
        call_close(all[i]);
}

/* ---- batches that ask for nothing first ---- */

/* Lets the server believe that nobody else writes to the event. */
static void trust(struct server *s, struct event *e)
{
    struct worker *w = engine_worker(s->engine, e->def->id.key);
    e->unmoved = 1000;
    w->offset_read_us = clock_boot_us(&s->clock.clock);
}

/* A hook that counts the calls of one kind. */
struct tally {
    enum sim_call of;
    int n;
};

static void count(void *ctx, enum sim_call call)
{
    struct tally *tally = ctx;
    tally->n += call == tally->of;
}

static void a_server_that_writes_alone_asks_for_nothing_first(void **state)
{
    struct hall *h = *state;
    struct tally reads = {.of = SIM_BATCH_READ};
    sim_ledger_hook(h->world.ledger, count, &reads);
    for (uint32_t seat = 0; seat < 8; seat++)
        hold_one(h->a, h->at_a, seat);
    assert_in_range(reads.n, 4, 5); /* enough to see that the event does not move */
    assert_int_equal(h->world.ledger->assumed, 8 - reads.n);
    server_catch_up(h->b);
    for (uint32_t seat = 0; seat < 8; seat++)
        assert_int_equal(shown(h->at_b, seat), SEAT_HELD);
    world_pass_ms(&h->world, 21000);
    hold_one(h->a, h->at_a, 8); /* what it knows of the ledger's clock is too old */
    hold_one(h->a, h->at_a, 9);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(h->world.ledger->missed, 0);
    assert_int_equal(h->world.ledger->assumed, 8 - (size_t)(reads.n - 1) + 1);
    /* A time that it takes for the ledger's may be a little before that of its last batch. */
    engine_worker(h->a->engine, h->key)->offset_us -= 5000;
    hold_one(h->a, h->at_a, 11);
    assert_int_equal(h->world.ledger->assumed, 8 - (size_t)(reads.n - 1) + 2);
    assert_int_equal(h->world.ledger->missed, 0);
    trust(h->a, h->at_a);
    h->at_a->stale = true;
    hold_one(h->a, h->at_a, 10); /* what it knows of the event is wrong */
    assert_int_equal(h->world.ledger->assumed, 8 - (size_t)(reads.n - 1) + 2);
    server_catch_up(h->b);
    for (uint32_t seat = 8; seat < 12; seat++)
        assert_int_equal(shown(h->at_b, seat), SEAT_HELD);
}

static void what_the_other_server_wrote_is_found_out_by_the_commit(void **state)
{
    struct hall *h = *state;
    struct call taken, other;
    struct tally reads = {.of = SIM_BATCH_READ};
    hold_one(h->a, h->at_a, 0);
    struct id winner = hold_one(h->b, h->at_b, 3);
    trust(h->a, h->at_a);
    ask_create(&taken.ask, h->at_a, 3);
    ask_create(&other.ask, h->at_a, 4);
    server_put(h->a, &taken);
    server_put(h->a, &other);
    sim_ledger_hook(h->world.ledger, count, &reads);
    server_turn(h->a);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(h->world.ledger->missed, 1);
    assert_int_equal(reads.n, 1);
    assert_int_equal(taken.ask.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(other.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(stored_at(h, 3).hold, winner.key);
    assert_int_equal(counter_read(h->a->engine->metrics.surprises), 0);
    assert_int_equal(counter_read(h->a->engine->metrics.conflicts), 0);
    assert_true(h->at_a->unmoved < 2); /* it asks first for a while */
    call_close(&taken);
    call_close(&other);
}

static void the_other_server_may_come_between_decision_and_commit(void **state)
{
    struct hall *h = *state;
    struct call first, second;
    struct interruption interruption = {h->b, SIM_COMMIT, 1};
    hold_one(h->a, h->at_a, 0);
    trust(h->a, h->at_a);
    ask_create(&first.ask, h->at_a, 3);
    ask_create(&second.ask, h->at_b, 3);
    server_put(h->b, &second);
    sim_ledger_hook(h->world.ledger, interrupt, &interruption);
    assert_int_equal(server_ask(h->a, &first), VERDICT_SEAT_TAKEN);
    sim_ledger_hook(h->world.ledger, NULL, NULL);
    assert_int_equal(second.ask.c.verdict, VERDICT_CREATED); /* it did not have to wait */
    assert_int_equal(h->world.ledger->missed, 1);
    call_close(&first);
    call_close(&second);
}

static void a_refusal_is_never_given_on_what_was_only_assumed(void **state)
{
    struct hall *h = *state;
    struct call release, again;
    struct id id = hold_one(h->b, h->at_b, 3);
    server_catch_up(h->a);
    assert_int_equal(shown(h->at_a, 3), SEAT_HELD);
    ask_release(&release.ask, h->at_b, &id);
    assert_int_equal(server_ask(h->b, &release), VERDICT_OK);
    trust(h->a, h->at_a);
    ask_create(&again.ask, h->at_a, 3); /* the view of A says that it is held */
    assert_int_equal(server_ask(h->a, &again), VERDICT_CREATED);
    call_close(&again);
    trust(h->a, h->at_a);
    ask_create(&again.ask, h->at_a, 3);
    assert_int_equal(server_ask(h->a, &again), VERDICT_SEAT_TAKEN);
    assert_int_equal(h->at_a->unmoved, 1); /* where refusals are common, it asks first */
    call_close(&release);
    call_close(&again);
}

static void clocks_may_drift_apart_between_two_readings(void **state)
{
    struct hall *h = *state;
    for (int64_t drift_ms = -9; drift_ms <= 9; drift_ms += 6) { /* in ten seconds */
        world_pass_ms(&h->world, 30000);
        hold_one(h->a, h->at_a, 0);
        h->at_a->unmoved = 1000;
        world_pass_ms(&h->world, 10000);
        clock_fake_step(&h->world.clock, drift_ms * 1000);
        size_t assumed = h->world.ledger->assumed;
        hold_one(h->a, h->at_a, 1);
        assert_int_equal(h->world.ledger->assumed, assumed + 1);
        world_pass_ms(&h->world, DEF_TTL_MS + 1000);
        server_turn(h->a); /* both have expired */
    }
    assert_int_equal(h->world.ledger->missed, 0);
}

static void a_clock_that_was_set_costs_an_exchange_and_nothing_else(void **state)
{
    struct hall *h = *state;
    static const int64_t steps_ms[] = {5000, -3000, LEDGER_ASSUME_LATE_MS + 1, -1};
    for (uint32_t i = 0; i < sizeof steps_ms / sizeof *steps_ms; i++) {
        hold_one(h->a, h->at_a, 2 * i);
        trust(h->a, h->at_a);
        clock_fake_step(&h->world.clock, steps_ms[i] * 1000);
        hold_one(h->a, h->at_a, 2 * i + 1);
        assert_int_equal(h->world.ledger->missed, i + 1);
        clock_fake_step(&h->world.clock, -steps_ms[i] * 1000);
        world_pass_ms(&h->world, 10000); /* no row is ahead of the clock any more */
    }
}

static void a_key_that_the_other_server_has_stored_is_answered_as_there(void **state)
{
    struct hall *h = *state;
    struct call first, repeat, other;
    ask_create(&first.ask, h->at_b, 3);
    ask_key(&first.ask, "key", "seat 3");
    assert_int_equal(server_ask(h->b, &first), VERDICT_CREATED);
    server_catch_up(h->a);
    trust(h->a, h->at_a);
    ask_create(&repeat.ask, h->at_a, 3); /* refused by the view: but this key won the seat */
    ask_key(&repeat.ask, "key", "seat 3");
    ask_create(&other.ask, h->at_a, 4); /* gives the batch something to commit */
    server_put(h->a, &repeat);
    server_put(h->a, &other);
    server_turn(h->a);
    assert_int_equal(repeat.ask.c.verdict, VERDICT_OK);
    assert_true(repeat.ask.c.key.replayed);
    assert_int_equal(repeat.ask.c.key.answer.len, first.ask.c.key.answer.len);
    assert_memory_equal(repeat.ask.c.key.answer.data, first.ask.c.key.answer.data,
                        first.ask.c.key.answer.len);
    assert_int_equal(other.ask.c.verdict, VERDICT_CREATED);
    assert_int_equal(h->world.ledger->missed, 1);
    call_close(&first);
    call_close(&repeat);
    call_close(&other);
}

/* Decided twice: the first time it had won, and its answer was rendered. */
static void a_key_that_wins_only_what_was_assumed_gets_the_refusal(void **state)
{
    struct hall *h = *state;
    struct call keyed;
    hold_one(h->a, h->at_a, 0);
    struct id winner = hold_one(h->b, h->at_b, 3);
    trust(h->a, h->at_a);
    ask_create(&keyed.ask, h->at_a, 3);
    ask_key(&keyed.ask, "key", "seat 3");
    assert_int_equal(server_ask(h->a, &keyed), VERDICT_SEAT_TAKEN);
    assert_int_equal(h->world.ledger->missed, 1);
    assert_false(keyed.ask.c.key.rendered); /* or the answer is the one that was rendered */
    assert_int_equal(stored_at(h, 3).hold, winner.key);
    call_close(&keyed);
}

static void a_lost_commit_of_such_a_batch_leaves_out_a_fence(void **state)
{
    struct hall *h = *state;
    struct call lost;
    hold_one(h->a, h->at_a, 0);
    int64_t fence = sim_event(h->world.ledger, h->key)->clock.fence;
    trust(h->a, h->at_a);
    ask_create(&lost.ask, h->at_a, 1);
    sim_ledger_fail(h->world.ledger, SIM_COMMIT, 1, SIM_LOST_UNSTORED);
    assert_int_equal(server_ask(h->a, &lost), VERDICT_STORE_UNAVAILABLE);
    assert_int_equal(sim_event(h->world.ledger, h->key)->clock.fence, fence + 1);
    struct id id = hold_one(h->a, h->at_a, 1);
    assert_int_equal(HOLD_FIRST_FENCE(id.key), fence + 2);
    trust(h->a, h->at_a);
    sim_ledger_fail(h->world.ledger, SIM_COMMIT, 1, SIM_LOST_STORED);
    hold_one(h->a, h->at_a, 2); /* acknowledged */
    call_close(&lost);
}

/* ---- anything at all ---- */

static void random_turns(void **state)
{
    (void)state;
    uint64_t seed = test_seed(20261115);
    size_t steps = test_steps(20000);
    print_message("HF_SEED=%llu HF_STEPS=%zu\n", (unsigned long long)seed, steps);
    log_set_level(LOG_OFF);
    random_turns_run(seed, steps);
}

#define hall_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        hall_test(two_servers_sell_each_seat_once),
        hall_test(the_order_of_turns_decides_who_gets_the_seat),
        hall_test(a_server_that_is_behind_decides_on_the_ledger_not_on_its_view),
        hall_test(an_announcement_brings_the_other_server_up_to_date),
        hall_test(an_event_is_created_on_one_server_and_sold_on_the_other),
        hall_test(a_view_that_is_too_far_behind_is_loaded_again),
        hall_test(followers_of_an_entry_hear_what_other_servers_did),
        hall_test(a_hold_expires_by_the_clock_on_whichever_server_turns_first),
        hall_test(a_renewal_that_the_other_server_has_not_seen_keeps_the_hold_alive),
        hall_test(time_never_goes_back_when_the_databases_clock_does),
        hall_test(a_repeated_key_at_the_other_server_gets_the_first_answer),
        hall_test(a_key_is_forgotten_after_a_day),
        hall_test(a_lost_commit_that_happened_is_acknowledged),
        hall_test(a_lost_commit_that_did_not_happen_is_refused),
        hall_test(a_commit_that_cannot_be_resolved_is_answered_as_unknown),
        hall_test(a_failed_write_leaves_no_trace_in_the_view),
        hall_test(a_seat_that_the_ledger_has_otherwise_is_a_surprise_and_is_read_again),
        hall_test(a_server_that_stops_between_claim_and_commit_loses_nothing),
        hall_test(a_server_that_read_first_keeps_the_other_out_until_it_has_committed),
        hall_test(a_batch_whose_lock_was_lost_is_rolled_back_and_judged_again),
        hall_test(transactions_on_different_events_do_not_wait_for_each_other),
        hall_test(what_needs_rows_waits_for_the_next_batch),
        hall_test(a_server_that_writes_alone_asks_for_nothing_first),
        hall_test(what_the_other_server_wrote_is_found_out_by_the_commit),
        hall_test(the_other_server_may_come_between_decision_and_commit),
        hall_test(a_refusal_is_never_given_on_what_was_only_assumed),
        hall_test(clocks_may_drift_apart_between_two_readings),
        hall_test(a_clock_that_was_set_costs_an_exchange_and_nothing_else),
        hall_test(a_key_that_the_other_server_has_stored_is_answered_as_there),
        hall_test(a_key_that_wins_only_what_was_assumed_gets_the_refusal),
        hall_test(a_lost_commit_of_such_a_batch_leaves_out_a_fence),
        cmocka_unit_test(random_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
