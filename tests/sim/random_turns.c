/* Random turns.  Each step queues a request at either server, takes a turn (sometimes in the middle
 * of the other server's transaction), moves a clock, breaks a call to the ledger, delivers or loses
 * announcements, or starts a server again.  After each step the claims of check.h hold, and so does
 * everything that was ever acknowledged; now and then both servers catch up and must agree with the
 * ledger. */
#include "sim/random_turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/check.h"
#include "sim/follower.h"
#include "sim/tables.h"

#define EVENTS 2
#define KEYS 40         /* idempotency keys in use at a time */
#define SEATS_MAX 3     /* of one request */
#define AGREE_EVERY 20  /* steps, on average, after which the servers must agree */
#define WORLD_STEPS 400 /* steps after which a new world begins */
#define RECENT_HOLDS 12 /* requests name one of the newest holds */

/* A hold that a buyer was told of, and the furthest status that was acknowledged. */
struct known_hold {
    struct id id;
    int64_t fence;
    enum hold_status acknowledged;
    struct id booking; /* key 0: none was acknowledged */
};

/* An idempotency key: a repeat asks for the same seat of the same event. */
struct known_key {
    unsigned number;
    int64_t event;
    uint32_t seat;
    struct buf answer; /* of the first success */
};

/* How many answers were given, so that a run is known to be worth something. */
struct answers {
    size_t created, confirmed, replayed, failed;
};

struct run {
    struct world world;
    struct random random;
    int64_t events[EVENTS];
    struct fold rows[EVENTS], views[SERVERS][EVENTS];
    VEC(struct known_hold) holds;
    struct known_key keys[KEYS];
    unsigned n_keys;
    VEC(struct call *) waiting; /* for an answer */
    struct server *other;       /* takes a turn in the middle of this turn, */
    int calls_until_turn;       /* at this call to the ledger; 0: it does not */
    struct answers answers;
};

static uint32_t below(struct run *r, uint32_t bound)
{
    return (uint32_t)random_below(&r->random, bound);
}

static bool one_in(struct run *r, uint32_t n) { return below(r, n) == 0; }

static struct server *any_server(struct run *r) { return &r->world.servers[below(r, SERVERS)]; }

/* ---- answers ---- */

static struct known_hold *known_hold(struct run *r, int64_t key)
{
    for (size_t i = r->holds.n; i-- > 0;)
        if (r->holds.v[i].id.key == key)
            return &r->holds.v[i];
    return NULL;
}

/* What was acknowledged stays true: the hold is there, and has not left the status that its buyer
 * was told for good. */
static void check_acknowledged(const struct run *r, const struct known_hold *known)
{
    const struct sim_hold *hold = sim_hold(r->world.ledger, known->id.key);
    assert_non_null(hold);
    assert_memory_equal(hold->row.id.secret, known->id.secret, ID_SECRET_SIZE);
    if (known->acknowledged == HOLD_RELEASED || known->acknowledged == HOLD_CONFIRMED)
        assert_int_equal(hold->row.status, known->acknowledged);
    if (known->booking.key)
        assert_memory_equal(hold->booking.id.secret, known->booking.secret, ID_SECRET_SIZE);
}

/* Every success under one key is the same answer, whichever server gave it. */
static void note_key(struct run *r, const struct call *call)
{
    const struct idempotency *key = &call->ask.c.key;
    if (!key->present)
        return;
    assert_true(key->rendered);
    for (size_t i = 0; i < KEYS; i++) {
        char text[16];
        uint8_t hash[KEY_HASH_SIZE];
        snprintf(text, sizeof text, "key %u", r->keys[i].number);
        hash_text(text, hash);
        if (memcmp(hash, key->hash, KEY_HASH_SIZE) != 0)
            continue;
        struct buf *answer = &r->keys[i].answer;
        if (!answer->len)
            buf_put(answer, key->answer.data, key->answer.len);
        assert_int_equal(key->answer.len, answer->len);
        assert_memory_equal(key->answer.data, answer->data, answer->len);
    }
}

static void note_success(struct run *r, const struct call *call)
{
    const struct command *c = &call->ask.c;
    note_key(r, call);
    if (c->kind == CMD_HOLD_CREATE) {
        if (c->key.replayed) {
            r->answers.replayed++;
            return;
        }
        r->answers.created++;
        *vec_push(&r->holds) = (struct known_hold){
            .id = c->create.hold.id, .fence = c->create.hold.fence, .acknowledged = HOLD_ACTIVE};
        check_acknowledged(r, &r->holds.v[r->holds.n - 1]);
        return;
    }
    struct named_hold *named = command_named_hold((struct command *)(uintptr_t)c);
    struct known_hold *known = named ? known_hold(r, named->id.key) : NULL;
    if (!known)
        return;
    if (c->kind == CMD_HOLD_CONFIRM) {
        r->answers.confirmed++;
        known->acknowledged = HOLD_CONFIRMED;
        known->booking = c->confirm.booking.id;
    } else if (c->kind == CMD_HOLD_RELEASE || c->kind == CMD_HOLD_EVICT) {
        known->acknowledged = HOLD_RELEASED;
    }
    check_acknowledged(r, known);
}

/* A refused hold is not in the ledger, nor will it ever be.  Only if the outcome could not be
 * learnt (I14) it may be there. */
static void note_failure(struct run *r, const struct call *call)
{
    const struct command *c = &call->ask.c;
    r->answers.failed++;
    assert_int_not_equal(c->verdict, VERDICT_INTERNAL);
    assert_int_not_equal(c->verdict, VERDICT_LEDGER_SURPRISE);
    if (c->kind != CMD_HOLD_CREATE || !c->create.hold.id.key ||
        c->verdict == VERDICT_OUTCOME_UNKNOWN)
        return;
    const struct sim_hold *hold = sim_hold(r->world.ledger, c->create.hold.id.key);
    if (hold)
        assert_memory_not_equal(hold->row.id.secret, c->create.hold.id.secret, ID_SECRET_SIZE);
}

/* Looks at the answers that have come. */
static void collect(struct run *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->waiting.n; i++) {
        struct call *call = r->waiting.v[i];
        if (!call->answers) {
            r->waiting.v[kept++] = call;
            continue;
        }
        assert_int_equal(call->answers, 1);
        enum verdict verdict = call->ask.c.verdict;
        if (verdict_is_success(verdict))
            note_success(r, call);
        else if ((int)verdict < (int)HF_STATUS_COUNT)
            note_failure(r, call);
        call_close(call);
        free(call);
    }
    r->waiting.n = kept;
}

/* ---- requests ---- */

/* Distinct seats that stand side by side. */
static void fill_create(struct run *r, struct ask *ask, struct event *e)
{
    uint32_t n = 1 + below(r, SEATS_MAX), seats[SEATS_MAX];
    uint32_t first = below(r, e->def->n_seats - SEATS_MAX);
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    if (one_in(r, 4))
        ask_best(ask, e, n, true);
    else
        ask_create_n(ask, e, seats, n);
    if (one_in(r, 4))
        ask_area(ask, 0, 1 + below(r, 2));
    ask->c.create.ttl_ms = 1000 + below(r, 2 * DEF_TTL_MS);
}

/* A hold of one seat under a key: a new one, or one that was used before. */
static void fill_keyed(struct run *r, struct server *s, struct ask *ask)
{
    char key[16], request[32];
    struct known_key *known = &r->keys[below(r, KEYS)];
    if (!known->number || one_in(r, 4)) {
        known->number = ++r->n_keys;
        known->event = r->events[below(r, EVENTS)];
        known->seat = below(r, engine_event(s->engine, known->event)->def->n_seats);
        known->answer.len = 0;
    }
    ask_create(ask, engine_event(s->engine, known->event), known->seat);
    snprintf(key, sizeof key, "key %u", known->number);
    snprintf(request, sizeof request, "seat %u of %d", known->seat, (int)known->event);
    ask_key(ask, key, request);
}

static void fill_named(struct run *r, struct server *s, struct ask *ask)
{
    size_t recent = r->holds.n < RECENT_HOLDS ? r->holds.n : RECENT_HOLDS;
    const struct known_hold *known = &r->holds.v[r->holds.n - 1 - below(r, (uint32_t)recent)];
    struct event *e = engine_event(s->engine, HOLD_EVENT(known->id.key));
    switch (below(r, 6)) {
    case 0:
    case 1:
        ask_renew(ask, e, &known->id, 0);
        return;
    case 2:
    case 3:
        ask_release(ask, e, &known->id);
        return;
    case 4:
        ask_evict(ask, e, &known->id);
        return;
    default:
        ask_confirm(ask, e, &known->id, known->fence - one_in(r, 10), one_in(r, 2));
        return;
    }
}

/* Sellers block seats, and close the sale for a while. */
static void fill_seller(struct run *r, struct ask *ask, struct event *e)
{
    uint32_t kind = below(r, 8);
    if (kind < 6)
        ask_seats(ask, kind < 2 ? CMD_SEATS_BLOCK : CMD_SEATS_UNBLOCK, e,
                  below(r, e->def->n_seats));
    else
        ask_event(ask, kind == 6 && one_in(r, 4) ? CMD_EVENT_CLOSE : CMD_EVENT_OPEN, e);
}

static void request(struct run *r)
{
    struct server *s = any_server(r);
    struct call *call = hf_alloc(sizeof *call);
    struct event *e = engine_event(s->engine, r->events[below(r, EVENTS)]);
    uint32_t kind = below(r, 20);
    if (kind < 3)
        fill_seller(r, &call->ask, e);
    else if (kind < 7)
        fill_keyed(r, s, &call->ask);
    else if (kind < 13 && r->holds.n)
        fill_named(r, s, &call->ask);
    else
        fill_create(r, &call->ask, e);
    server_put(s, call);
    *vec_push(&r->waiting) = call;
}

/* ---- turns ---- */

/* The hook of the ledger: at one call of a server's turn the other server takes a turn. */
static void interrupt(void *ctx, enum sim_call call)
{
    struct run *r = ctx;
    (void)call;
    if (r->calls_until_turn > 0 && --r->calls_until_turn == 0)
        server_turn(r->other);
}

static void turn(struct run *r)
{
    uint32_t which = below(r, SERVERS);
    r->other = &r->world.servers[!which];
    r->calls_until_turn = one_in(r, 5) ? 1 + (int)below(r, 6) : 0;
    server_turn(&r->world.servers[which]);
    r->calls_until_turn = 0;
}

/* ---- everything else that happens ---- */

static void move_clocks(struct run *r)
{
    if (one_in(r, 6)) /* an operator sets the database's clock, either way */
        clock_fake_step(&r->world.clock, ((int64_t)below(r, 6000) - 3000) * 1000);
    else
        world_pass_ms(&r->world, below(r, one_in(r, 4) ? DEF_TTL_MS : 500));
}

static void break_a_call(struct run *r)
{
    static const enum sim_fault usual[] = {SIM_UNAVAILABLE, SIM_CONFLICT};
    static const enum sim_fault lost[] = {SIM_LOST_STORED, SIM_LOST_UNSTORED};
    enum sim_call call = below(r, SIM_CALLS);
    enum sim_fault fault = usual[below(r, 2)];
    if (call == SIM_COMMIT && !one_in(r, 3))
        fault = lost[below(r, 2)];
    else if (one_in(r, 12))
        fault = SIM_STUCK;
    sim_ledger_fail(r->world.ledger, call, 1 + (int)below(r, 3), fault);
}

static void announce(struct run *r)
{
    uint32_t from = below(r, SERVERS);
    if (one_in(r, 3))
        sim_follower_lose(r->world.servers[from].engine);
    else
        sim_follower_deliver(r->world.servers[from].engine, r->world.servers[!from].engine);
}

static void restart(struct run *r, struct server *s)
{
    sim_ledger_heal(r->world.ledger);
    server_stop(s);
    collect(r);
    server_start(s);
    for (size_t i = 0; i < EVENTS; i++)
        server_event(s, r->events[i]);
}

static void step(struct run *r)
{
    uint32_t kind = below(r, 100);
    if (kind < 45)
        request(r);
    else if (kind < 80)
        turn(r);
    else if (kind < 88)
        move_clocks(r);
    else if (kind < 93)
        break_a_call(r);
    else if (kind < 99)
        announce(r);
    else if (one_in(r, 2))
        restart(r, any_server(r));
}

/* ---- claims ---- */

/* The conditions of the ledger's writes are a second line of defence.  Here nothing but the servers
 * writes, so a batch that was decided on an exact view never fails one of them. */
static void check(struct run *r)
{
    for (size_t s = 0; s < SERVERS; s++)
        assert_int_equal(counter_read(r->world.servers[s].engine->metrics.surprises), 0);
    for (size_t i = 0; i < EVENTS; i++) {
        check_ledger(&r->rows[i], r->world.ledger);
        for (size_t s = 0; s < SERVERS; s++)
            check_view(&r->views[s][i], r->world.ledger, &r->world.servers[s]);
    }
}

/* Lets both servers finish what is queued and catch up; time stands still meanwhile. */
static void check_agreement(struct run *r)
{
    for (size_t s = 0; s < SERVERS; s++)
        if (engine_worker(r->world.servers[s].engine, 0)->ledger->is_stuck)
            restart(r, &r->world.servers[s]);
    sim_ledger_heal(r->world.ledger);
    for (int round = 0; round < 3; round++)
        for (size_t s = 0; s < SERVERS; s++)
            server_catch_up(&r->world.servers[s]);
    collect(r);
    assert_int_equal(r->waiting.n, 0);
    for (size_t i = 0; i < EVENTS; i++)
        for (size_t s = 0; s < SERVERS; s++)
            check_caught_up(&r->views[s][i], r->world.ledger, &r->world.servers[s]);
    for (size_t i = 0; i < r->holds.n; i++)
        check_acknowledged(r, &r->holds.v[i]);
}

/* ---- the run ---- */

static void run_open(struct run *r, uint64_t seed)
{
    random_init_seeded(&r->random, seed);
    world_open(&r->world, seed);
    for (size_t i = 0; i < EVENTS; i++) {
        struct event_def *def = def_hall(4, 6);
        def_area(def, "Floor", 500, 6);
        r->events[i] = server_create_event(any_server(r), def);
        fold_init(&r->rows[i], r->world.ledger, r->events[i]);
        for (size_t s = 0; s < SERVERS; s++) {
            server_event(&r->world.servers[s], r->events[i]);
            fold_init(&r->views[s][i], r->world.ledger, r->events[i]);
        }
    }
    sim_ledger_hook(r->world.ledger, interrupt, r);
}

static void run_close(struct run *r)
{
    for (size_t i = 0; i < EVENTS; i++) {
        fold_close(&r->rows[i]);
        for (size_t s = 0; s < SERVERS; s++)
            fold_close(&r->views[s][i]);
    }
    for (size_t i = 0; i < KEYS; i++)
        buf_close(&r->keys[i].answer);
    vec_close(&r->holds);
    vec_close(&r->waiting);
    world_close(&r->world);
}

/* One world, until most of its seats are sold. */
static void run_world(uint64_t seed, size_t steps, struct answers *answers)
{
    struct run *r = hf_alloc(sizeof *r);
    run_open(r, seed);
    for (size_t i = 0; i < steps; i++) {
        step(r);
        collect(r);
        check(r);
        if (one_in(r, AGREE_EVERY))
            check_agreement(r);
    }
    check_agreement(r);
    answers->created += r->answers.created;
    answers->confirmed += r->answers.confirmed;
    answers->replayed += r->answers.replayed;
    answers->failed += r->answers.failed;
    run_close(r);
    free(r);
}

void random_turns_run(uint64_t seed, size_t steps)
{
    struct answers answers = {0};
    for (size_t done = 0; done < steps; done += WORLD_STEPS)
        run_world(seed + done, steps - done < WORLD_STEPS ? steps - done : WORLD_STEPS, &answers);
    print_message("%zu holds, %zu bookings, %zu replays, %zu failures\n", answers.created,
                  answers.confirmed, answers.replayed, answers.failed);
}
