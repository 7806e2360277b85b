/* Random turns.  Each step queues a request at one of the servers, takes a turn (sometimes in the
 * middle of another server's transaction), moves a clock, breaks a call to the ledger, delivers or
 * loses announcements, starts a server again, or does something about money (random_money.c).
 * After each step the claims of check.h hold, and so does everything that was ever acknowledged;
 * now and then all servers catch up and must agree with the ledger. */
#include "sim/random_turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/follower.h"
#include "sim/random_run.h"

/* ---- answers ---- */

static struct known_hold *known_hold(struct run *r, int64_t key)
{
    for (size_t i = r->holds.n; i-- > 0;)
        if (r->holds.v[i].id.key == key)
            return &r->holds.v[i];
    return NULL;
}

/* A booking that was acknowledged is there, or failed and was followed by another. */
static void check_booking(const struct run *r, const struct sim_hold *hold, const struct id *id)
{
    bool found = id_secret_equal(hold->booking.id.secret, id->secret);
    for (size_t i = 0; i < r->world.ledger->bookings_past.n && !found; i++) {
        const struct booking_row *past = &r->world.ledger->bookings_past.v[i];
        found = past->id.key == id->key && id_secret_equal(past->id.secret, id->secret) &&
                past->status == BOOKING_FAILED;
    }
    assert_true(found);
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
        check_booking(r, hold, &known->booking);
    if (known->is_cancelled)
        assert_int_equal(hold->booking.status, BOOKING_CANCELLED);
    assert_true(hold->row.fence >= known->fence);
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

static void note_created(struct run *r, const struct command *c)
{
    if (c->key.replayed) {
        r->answers.replayed++;
        return;
    }
    const struct hold_row *hold = &c->create.hold;
    if (c->verdict == VERDICT_OK) { /* the owner's own hold, with all that was asked for */
        const struct sim_hold *stored = sim_hold(r->world.ledger, hold->id.key);
        assert_true(c->create.resume && stored);
        assert_memory_equal(stored->row.id.secret, hold->id.secret, ID_SECRET_SIZE);
        assert_int_equal(hold->owner_len, c->create.owner_len);
        assert_memory_equal(hold->owner, c->create.owner, hold->owner_len);
        assert_int_equal(hold->n_seats, c->create.n_seats);
        assert_int_equal(hold->n_areas, c->create.n_areas);
        r->answers.resumed++;
        return;
    }
    r->answers.created++;
    *vec_push(&r->holds) =
        (struct known_hold){.id = hold->id, .fence = hold->fence, .acknowledged = HOLD_ACTIVE};
    check_acknowledged(r, &r->holds.v[r->holds.n - 1]);
}

static void note_success(struct run *r, const struct call *call)
{
    const struct command *c = &call->ask.c;
    note_key(r, call);
    if (c->kind == CMD_HOLD_CREATE) {
        note_created(r, c);
        return;
    }
    if (c->kind == CMD_WAIT_JOIN) {
        *vec_push(&r->waits) = c->wait_join.wait.id;
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
    } else if (c->kind == CMD_HOLD_CHANGE) {
        r->answers.changed++;
        known->fence = c->change.hold.row.fence;
    } else if (c->kind == CMD_BOOKING_CANCEL && c->cancel.booking.status == BOOKING_CANCELLED) {
        r->answers.cancelled++;
        known->is_cancelled = true;
    } else if (c->kind == CMD_BOOKING_CREATE) {
        r->answers.booked += c->booking_create->payment.payment != 0;
        r->answers.merged += c->booking_create->booking.n_merged;
        known->booking = c->booking_create->booking.id;
        if (c->booking_create->booking.status == BOOKING_CONFIRMED)
            known->acknowledged = HOLD_CONFIRMED;
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
    assert_int_not_equal(c->verdict, VERDICT_SURPRISE);
    if (c->kind != CMD_HOLD_CREATE || !c->create.hold.id.key ||
        c->create.hold.id.key == c->create.resumes || c->verdict == VERDICT_OUTCOME_UNKNOWN)
        return;
    const struct sim_hold *hold = sim_hold(r->world.ledger, c->create.hold.id.key);
    if (hold)
        assert_memory_not_equal(hold->row.id.secret, c->create.hold.id.secret, ID_SECRET_SIZE);
}

void random_collect(struct run *r)
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
        assert_true(verdict_is_success(verdict) || !call->ask.c.key.rendered);
        if (verdict_is_success(verdict))
            note_success(r, call);
        else if ((int)verdict < (int)HF_STATUS_COUNT)
            note_failure(r, call);
        r->answers.limited += verdict == VERDICT_OWNER_LIMIT;
        call_close(call);
        free(call);
    }
    r->waiting.n = kept;
}

/* People look at their entries now and then, and learn of the holds that they are offered. */
static void learn_of_offers(struct run *r)
{
    for (size_t k = 0; k < EVENTS; k++) {
        const struct sim_event *e = sim_event(r->world.ledger, r->events[k]);
        for (size_t i = 0; i < e->waits.n; i++) {
            const struct wait_row *row = &e->waits.v[i];
            if (row->status != WAIT_OFFERED || known_hold(r, row->hold))
                continue;
            const struct hold_row *hold = &sim_hold(r->world.ledger, row->hold)->row;
            *vec_push(&r->holds) = (struct known_hold){
                .id = hold->id, .fence = hold->fence, .acknowledged = HOLD_ACTIVE};
        }
    }
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

/* Lets a server believe that nobody else writes: that may cost it an exchange, and never more. */
static void trust_views(struct run *r, const struct server *s)
{
    for (size_t i = 0; i < EVENTS; i++) {
        struct event *e = view_event(engine_worker(s->engine, r->events[i])->view, r->events[i]);
        if (e)
            e->unmoved = 1000;
    }
}

/* NULL: it is alone. */
static struct server *other_server(struct run *r, const struct server *s)
{
    size_t n = r->world.n_servers;
    if (n == 1)
        return NULL;
    size_t which = (size_t)(s - r->world.servers);
    return &r->world.servers[(which + 1 + below(r, (uint32_t)n - 1)) % n];
}

static void turn(struct run *r)
{
    struct server *s = any_server(r);
    if (one_in(r, 2))
        trust_views(r, s);
    r->other = other_server(r, s);
    r->calls_until_turn = r->other && one_in(r, 5) ? 1 + (int)below(r, 6) : 0;
    server_turn(s);
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
    struct server *from = any_server(r), *to = other_server(r, from);
    if (!to || one_in(r, 3))
        sim_follower_lose(from->engine);
    else
        sim_follower_deliver(from->engine, to->engine);
}

static void restart(struct run *r, struct server *s)
{
    sim_ledger_heal(r->world.ledger);
    random_money_forget(r, (size_t)(s - r->world.servers));
    server_stop(s);
    random_collect(r);
    server_start(s);
    for (size_t i = 0; i < EVENTS; i++)
        server_event(s, r->events[i]);
}

static void step(struct run *r)
{
    uint32_t kind = r->favourite && one_in(r, 3) ? 0 : below(r, 100);
    if (kind < 28)
        random_request(r);
    else if (kind < 58)
        random_money_step(r);
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

/* No owner has more than the event allows, held and booked together. */
static void check_owner_limit(const struct run *r)
{
    const struct sim_event *e = sim_event(r->world.ledger, r->events[0]);
    for (size_t k = 0; k < OWNERS; k++) {
        int64_t places = 0;
        for (size_t i = 0; i < e->holds.n; i++) {
            const struct hold_row *row = &e->holds.v[i].row;
            bool has = row->status == HOLD_ACTIVE || sim_is_booked(r->world.ledger, &e->holds.v[i]);
            if (has && row->owner && strcmp(row->owner, random_owners[k]) == 0)
                places += places_count(row->n_seats, row->areas, row->n_areas);
        }
        assert_true(places <= OWNER_LIMIT);
    }
}

/* The conditions of the ledger's writes are a second line of defence.  Here nothing but the servers
 * writes, so a batch that was decided on an exact view never fails one of them. */
static void check(struct run *r)
{
    for (size_t s = 0; s < r->world.n_servers; s++)
        assert_int_equal(counter_read(r->world.servers[s].engine->metrics.surprises), 0);
    for (size_t i = 0; i < EVENTS; i++) {
        check_ledger(&r->rows[i], r->world.ledger);
        judge_log(&r->judges[i], r->world.ledger);
        for (size_t s = 0; s < r->world.n_servers; s++)
            check_view(&r->views[s][i], r->world.ledger, &r->world.servers[s]);
    }
    check_owner_limit(r);
    check_money(r->world.ledger);
}

static bool all_have_heard(struct run *r)
{
    for (size_t i = 0; i < EVENTS; i++)
        for (size_t s = 0; s < r->world.n_servers; s++)
            if (!is_caught_up(&r->views[s][i], r->world.ledger, &r->world.servers[s]))
                return false;
    return true;
}

/* Lets the servers finish what is queued and catch up; time stands still meanwhile. */
static void check_agreement(struct run *r)
{
    for (size_t s = 0; s < r->world.n_servers; s++)
        if (engine_worker(r->world.servers[s].engine, 0)->ledger->is_stuck)
            restart(r, &r->world.servers[s]);
    sim_ledger_heal(r->world.ledger);
    /* Commands about one booking are decided one after another, each in a turn of its own; and a
     * turn may find holds that are due, of which the other server then has to hear. */
    for (int rounds = 0, quiet = 0; quiet < 3 && rounds < AGREE_ROUNDS; rounds++) {
        for (size_t s = 0; s < r->world.n_servers; s++)
            server_catch_up(&r->world.servers[s]);
        random_collect(r);
        quiet = r->waiting.n || !all_have_heard(r) ? 0 : quiet + 1;
    }
    assert_int_equal(r->waiting.n, 0);
    for (size_t i = 0; i < EVENTS; i++) {
        judge_rest(&r->judges[i], r->world.ledger);
        for (size_t s = 0; s < r->world.n_servers; s++) {
            const struct server *server = &r->world.servers[s];
            check_caught_up(&r->views[s][i], r->world.ledger, server);
            check_served(engine_event(server->engine, r->events[i]), sim_wall_ms(r->world.ledger));
        }
    }
    for (size_t i = 0; i < r->holds.n; i++)
        check_acknowledged(r, &r->holds.v[i]);
}

/* ---- the run ---- */

struct world_kind {
    enum favourite favourite;
    size_t n_servers;
};

static void run_open(struct run *r, uint64_t seed, size_t n_servers)
{
    random_init_seeded(&r->random, seed);
    r->provider.random = &r->random;
    world_open(&r->world, seed, n_servers);
    for (size_t i = 0; i < EVENTS; i++) {
        struct event_def *def = r->favourite ? def_hall(2, 4) : def_hall(4, 6);
        def_area(def, "Floor", 500, r->favourite ? 3 : 6);
        def_area(def, "Terrace", 700, r->favourite ? 2 : 5);
        def_type(def, "full", NULL, 0);
        def_type(def, "reduced", (const int64_t[]){1200, 200}, 2);
        def_type(def, "child", (const int64_t[]){TYPE_PRICE_NONE, 0, 100}, 3);
        def->terms.max_per_owner = i == 0 ? OWNER_LIMIT : 0;
        def->terms.offer_ttl_ms = 2 * DEF_TTL_MS;
        def->terms.wait_alive_ms = 6 * DEF_TTL_MS;
        def->terms.wait_per_owner = 3;
        def->terms.hold_ttl_ms = 3 * DEF_TTL_MS; /* time to pay */
        def->terms.hold_max_ms = 3 * DEF_MAX_MS;
        r->events[i] = server_create_event(any_server(r), def);
        fold_init(&r->rows[i], r->world.ledger, r->events[i]);
        judge_init(&r->judges[i], r->world.ledger, r->events[i], WAIT_TURNS);
        for (size_t s = 0; s < r->world.n_servers; s++) {
            server_event(&r->world.servers[s], r->events[i]);
            fold_init(&r->views[s][i], r->world.ledger, r->events[i]);
        }
    }
    sim_ledger_hook(r->world.ledger, interrupt, r);
}

/* Holds all places, or blocks some of them, so that people have to wait. */
static void sell_out(struct run *r)
{
    for (size_t k = 0; k < EVENTS; k++) {
        struct server *s = any_server(r);
        struct event *e = engine_event(s->engine, r->events[k]);
        for (uint32_t seat = 0; seat < e->def->n_seats; seat += 2) {
            struct call *call = hf_alloc(sizeof *call);
            if (seat >= 4 && r->favourite == FAVOURITE_BLOCKS)
                ask_seats(&call->ask, CMD_SEATS_BLOCK, e, seat, seat + 1);
            else
                ask_create_n(&call->ask, e, (const uint32_t[]){seat, seat + 1}, 2);
            if (seat == 0)
                for (uint32_t i = 0; i < AREAS; i++)
                    ask_area(&call->ask, i, (uint32_t)e->def->areas.v[i].capacity);
            if (call->ask.c.kind == CMD_HOLD_CREATE)
                call->ask.c.create.ttl_ms = 1000 + below(r, 3 * DEF_TTL_MS);
            server_put(s, call);
            *vec_push(&r->waiting) = call;
        }
        server_turn(s);
    }
    random_collect(r);
}

static void run_close(struct run *r)
{
    for (size_t i = 0; i < EVENTS; i++) {
        fold_close(&r->rows[i]);
        judge_close(&r->judges[i]);
        for (size_t s = 0; s < r->world.n_servers; s++)
            fold_close(&r->views[s][i]);
    }
    for (size_t i = 0; i < KEYS; i++)
        buf_close(&r->keys[i].answer);
    vec_close(&r->holds);
    vec_close(&r->waits);
    vec_close(&r->waiting);
    random_money_close(r);
    world_close(&r->world);
}

static void count_waits(const struct fold *f, const struct sim_ledger *ledger, struct answers *ret)
{
    const struct sim_event *e = sim_event(ledger, f->event);
    for (size_t i = 0; i < e->waits.n; i++) {
        ret->joined++;
        ret->offered += e->waits.v[i].hold != 0;
        ret->accepted += e->waits.v[i].status == WAIT_ACCEPTED;
        ret->lapsed += e->waits.v[i].status == WAIT_LAPSED;
    }
}

/* One world, until most of its seats are sold. */
static void run_world(const struct world_kind *kind, uint64_t seed, size_t steps,
                      struct answers *answers)
{
    struct run *r = hf_alloc(sizeof *r);
    r->favourite = kind->favourite;
    run_open(r, seed, kind->n_servers);
    if (r->favourite)
        sell_out(r);
    for (size_t i = 0; i < steps; i++) {
        step(r);
        random_collect(r);
        check(r);
        if (one_in(r, 4))
            learn_of_offers(r);
        if (one_in(r, AGREE_EVERY))
            check_agreement(r);
    }
    check_agreement(r);
    random_money_rest(r);
    check(r);
    check_agreement(r);
    for (size_t i = 0; i < r->world.ledger->payments.n; i++)
        answers->paid += r->world.ledger->payments.v[i].received > 0;
    answers->refunded += r->world.ledger->refunds.n;
    answers->assumed += r->world.ledger->assumed;
    answers->missed += r->world.ledger->missed;
    for (size_t i = 0; i < EVENTS; i++) {
        count_waits(&r->rows[i], r->world.ledger, answers);
        answers->judged += (size_t)r->judges[i].fair.judged;
    }
    answers->booked += r->answers.booked;
    answers->merged += r->answers.merged;
    answers->created += r->answers.created;
    answers->confirmed += r->answers.confirmed;
    answers->changed += r->answers.changed;
    answers->cancelled += r->answers.cancelled;
    answers->resumed += r->answers.resumed;
    answers->limited += r->answers.limited;
    answers->replayed += r->answers.replayed;
    answers->failed += r->answers.failed;
    run_close(r);
    free(r);
}

void random_turns_run(uint64_t seed, size_t steps)
{
    struct answers answers = {0};
    for (size_t done = 0; done < steps; done += WORLD_STEPS) {
        const struct world_kind kind = {.n_servers = 2 + (seed + done) / WORLD_STEPS % 2};
        run_world(&kind, seed + done, steps - done < WORLD_STEPS ? steps - done : WORLD_STEPS,
                  &answers);
    }
    print_message("%zu holds, %zu changes, %zu bookings, %zu cancelled, %zu resumed, %zu over the"
                  " limit, %zu replays, %zu failures, %zu to be paid, %zu paid, %zu refunds, %zu "
                  "booked with others, %zu joined a waiting list, %zu of them were offered a hold, "
                  "%zu took it, %zu batches in one exchange, %zu that tried in vain\n",
                  answers.created, answers.changed, answers.confirmed, answers.cancelled,
                  answers.resumed, answers.limited, answers.replayed, answers.failed,
                  answers.booked, answers.paid, answers.refunded, answers.merged, answers.joined,
                  answers.offered, answers.accepted, answers.assumed, answers.missed);
    assert_true(steps < 20 * WORLD_STEPS ||
                (answers.assumed && answers.missed && answers.accepted));
}

void random_waits_run(uint64_t seed, struct answers *answers)
{
    const struct world_kind kind = {.favourite =
                                        (enum favourite)(1 + seed / SERVERS_MAX % (FAVOURITES - 1)),
                                    .n_servers = 1 + seed % SERVERS_MAX};
    run_world(&kind, seed, WORLD_STEPS, answers);
}
