/* Claims about the seller's commands (block, unblock, open, close, evict) and about the limit on
 * how many places one address may hold.  The paper ledger (tests/support/paper.c) plays the worker.
 */
#include "base/client_number.h"
#include "support/paper.h"

#include <string.h>

#include "view/view_holds.h"

#define SEATS 12
#define ADA UINT64_C(0xada)
#define BOB UINT64_C(0x70bb0bb0bb0bb0b0)

static struct paper paper;
static struct event *hall;

static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 100);
    hall = paper_event(&paper, def);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    paper_close(&paper);
    return 0;
}

/* ---- helpers ---- */

struct grant {
    struct id id;
    int64_t fence;
};

static enum verdict run(struct ask *a)
{
    enum verdict verdict = paper_run(&paper, a);
    ask_close(a);
    return verdict;
}

static struct grant grant(uint32_t seat)
{
    struct ask a;
    ask_create(&a, hall, seat);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    return g;
}

static enum verdict create(uint32_t seat)
{
    struct ask a;
    ask_create(&a, hall, seat);
    return run(&a);
}

static enum verdict confirm(const struct grant *g, bool rescue)
{
    struct ask a;
    ask_confirm(&a, hall, &g->id, g->fence, rescue);
    return run(&a);
}

static enum verdict release(const struct grant *g)
{
    struct ask a;
    ask_release(&a, hall, &g->id);
    return run(&a);
}

static enum verdict evict(const struct grant *g)
{
    struct ask a;
    ask_evict(&a, hall, &g->id);
    return run(&a);
}

#define block(...)                                                                                 \
    block_n(CMD_SEATS_BLOCK, (const uint32_t[]){__VA_ARGS__},                                      \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define unblock(...)                                                                               \
    block_n(CMD_SEATS_UNBLOCK, (const uint32_t[]){__VA_ARGS__},                                    \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
static enum verdict block_n(enum command_kind kind, const uint32_t *seats, uint32_t n)
{
    struct ask a;
    ask_seats_n(&a, kind, hall, seats, n);
    return run(&a);
}

static enum verdict set_status(enum command_kind kind)
{
    struct ask a;
    ask_event(&a, kind, hall);
    return run(&a);
}

static void advance_ms(int64_t ms) { paper.now += ms; }
static enum seat_status seat(uint32_t index) { return seat_shown_status(seat_shown(hall, index)); }
static const struct audit_row *last_row(void) { return &paper.audit.v[paper.audit.n - 1]; }

static void run_empty_batch(void)
{
    paper_begin(&paper);
    paper_commit(&paper);
}

static void dump(struct buf *out)
{
    out->len = 0;
    paper_dump(&paper, out);
}

/* ---- block ---- */

static void a_blocked_seat_is_taken_until_it_is_unblocked(void **state)
{
    (void)state;
    assert_int_equal(block(5, 6), VERDICT_OK);
    assert_int_equal(seat(5), SEAT_BLOCKED);
    struct ask a;
    ask_create(&a, hall, 4, 5);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SEAT_TAKEN);
    assert_int_equal(command_shortage(&a.c)->n_taken, 1);
    assert_int_equal(a.taken[0], 5);
    ask_close(&a);
    assert_int_equal(unblock(5), VERDICT_OK);
    assert_int_equal(create(5), VERDICT_CREATED);
    assert_int_equal(create(6), VERDICT_SEAT_TAKEN);
    advance_ms(HOUR_MS); /* a block does not expire */
    run_empty_batch();
    assert_int_equal(seat(6), SEAT_BLOCKED);
    paper_check(&paper);
}

static void blocking_is_all_or_none_and_names_what_is_held_or_booked(void **state)
{
    (void)state;
    struct grant held = grant(2), sold = grant(3);
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    assert_int_equal(block(7), VERDICT_OK);
    struct ask a;
    for (int i = 0; i < 2; i++) {
        ask_seats(&a, i ? CMD_SEATS_UNBLOCK : CMD_SEATS_BLOCK, hall, 1, 3, 7, 2);
        assert_int_equal(paper_run(&paper, &a), VERDICT_SEAT_TAKEN);
        assert_int_equal(command_shortage(&a.c)->n_taken, 2);
        assert_int_equal(a.taken[0], 3);
        assert_int_equal(a.taken[1], 2);
        assert_false(decision_has_effects(paper.decision));
        ask_close(&a);
    }
    assert_int_equal(seat(1), SEAT_AVAILABLE);
    assert_int_equal(seat(7), SEAT_BLOCKED);
    assert_int_equal(release(&held), VERDICT_OK);
    paper_check(&paper);
}

static void blocking_again_changes_nothing_and_writes_nothing(void **state)
{
    (void)state;
    assert_int_equal(block(1, 2), VERDICT_OK);
    assert_int_equal(block(2, 1), VERDICT_OK);
    assert_false(decision_has_effects(paper.decision));
    assert_int_equal(block(2, 3), VERDICT_OK); /* seat 2 is blocked already */
    assert_int_equal(paper.decision->batch.audit.n, 1);
    assert_int_equal(last_row()->item, 3);
    assert_int_equal(unblock(1, 8), VERDICT_OK);
    assert_int_equal(paper.decision->batch.audit.n, 1);
    assert_int_equal(unblock(1, 8), VERDICT_OK);
    assert_false(decision_has_effects(paper.decision));
    paper_check(&paper);
}

static void a_block_has_a_fence_of_its_own_and_one_row_a_seat(void **state)
{
    (void)state;
    struct grant before = grant(0);
    assert_int_equal(block(4, 2), VERDICT_OK);
    const struct audit_row *rows = &paper.audit.v[paper.audit.n - 2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rows[i].object, AUDIT_SEAT);
        assert_int_equal(rows[i].cause, CAUSE_BLOCK);
        assert_int_equal(rows[i].item, i ? 2 : 4);
        assert_int_equal(rows[i].from, SEAT_AVAILABLE);
        assert_int_equal(rows[i].to, SEAT_BLOCKED);
        assert_int_equal(rows[i].fence, before.fence + 1);
        assert_int_equal(rows[i].hold, 0);
        assert_int_equal(rows[i].until, 0);
    }
    assert_int_equal(unblock(4), VERDICT_OK);
    assert_int_equal(last_row()->cause, CAUSE_UNBLOCK);
    assert_int_equal(last_row()->from, SEAT_BLOCKED);
    assert_int_equal(last_row()->fence, before.fence + 2);
    struct grant after = grant(4);
    assert_int_equal(after.fence, before.fence + 3);
    paper_check(&paper);
}

static void a_due_hold_is_ended_before_its_seat_is_blocked(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 1, 2);
    assert_int_equal(run(&a), VERDICT_CREATED);
    advance_ms(DEF_TTL_MS);
    paper.expire_max = 0;
    assert_int_equal(block(2, 5), VERDICT_OK);
    assert_int_equal(paper.decision->expired, 1);
    assert_int_equal(seat(1), SEAT_AVAILABLE); /* the whole hold has ended */
    assert_int_equal(seat(2), SEAT_BLOCKED);
    assert_int_equal(sim_event(&paper.ledger, 1)->holds.v[0].row.status, HOLD_EXPIRED);
    paper_check(&paper);
}

static void no_rescue_of_a_seat_blocked_since(void **state)
{
    (void)state;
    struct grant g = grant(3);
    advance_ms(DEF_TTL_MS);
    assert_int_equal(block(3), VERDICT_OK);
    assert_int_equal(confirm(&g, true), VERDICT_HOLD_EXPIRED);
    assert_int_equal(unblock(3), VERDICT_OK);
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    paper_check(&paper);
}

static void a_seat_blocked_unblocked_and_held_in_one_batch_is_one_write(void **state)
{
    (void)state;
    struct ask asks[3];
    ask_seats(&asks[0], CMD_SEATS_BLOCK, hall, 1);
    ask_seats(&asks[1], CMD_SEATS_UNBLOCK, hall, 1);
    ask_create(&asks[2], hall, 1);
    paper_begin(&paper);
    for (int i = 0; i < 3; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    paper_commit(&paper);
    assert_int_equal(asks[2].c.verdict, VERDICT_CREATED);
    assert_int_equal(paper.decision->batch.seats.n, 1);
    assert_int_equal(paper.decision->batch.seats.v[0].row_fence, 2);
    for (int i = 0; i < 3; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

static void a_keyed_block_is_answered_again_from_its_key(void **state)
{
    (void)state;
    struct ask a;
    for (int i = 0; i < 2; i++) {
        ask_seats(&a, CMD_SEATS_BLOCK, hall, 1);
        ask_key(&a, "k", "block 1");
        assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
        assert_int_equal(a.c.key.replayed, i);
        ask_close(&a);
        assert_int_equal(unblock(1), VERDICT_OK);
    }
    assert_int_equal(seat(1), SEAT_AVAILABLE); /* the repeat did not block the seat again */
    paper_check(&paper);
}

/* ---- open and close ---- */

static void a_closed_event_takes_no_holds_of_any_kind(void **state)
{
    (void)state;
    struct ask a;
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_OK);
    assert_int_equal(hall->shown.status, EVENT_CLOSED);
    assert_int_equal(create(1), VERDICT_EVENT_CLOSED);
    ask_best(&a, hall, 2, true);
    assert_int_equal(run(&a), VERDICT_EVENT_CLOSED);
    ask_create_none(&a, hall);
    ask_area(&a, 0, 1);
    assert_int_equal(run(&a), VERDICT_EVENT_CLOSED);
    assert_int_equal(block(4), VERDICT_OK); /* sellers may still block and unblock */
    assert_int_equal(unblock(4), VERDICT_OK);
    assert_int_equal(set_status(CMD_EVENT_OPEN), VERDICT_OK);
    assert_int_equal(create(1), VERDICT_CREATED);
    paper_check(&paper);
}

static void closing_is_one_row_of_the_log_however_often_it_is_asked(void **state)
{
    (void)state;
    assert_int_equal(set_status(CMD_EVENT_OPEN), VERDICT_OK); /* the event is open already */
    assert_false(decision_has_effects(paper.decision));
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_OK);
    assert_int_equal(paper.decision->batch.audit.n, 1);
    assert_int_equal(last_row()->object, AUDIT_EVENT);
    assert_int_equal(last_row()->cause, CAUSE_CLOSE);
    assert_int_equal(last_row()->from, EVENT_OPEN);
    assert_int_equal(last_row()->to, EVENT_CLOSED);
    assert_int_equal(last_row()->item, -1);
    assert_int_equal(last_row()->fence, 0);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_OK);
    assert_false(decision_has_effects(paper.decision));
    paper_check(&paper);
}

static void opening_and_closing_in_one_batch_is_one_write_and_two_rows(void **state)
{
    (void)state;
    struct ask close, open, hold;
    ask_event(&close, CMD_EVENT_CLOSE, hall);
    ask_event(&open, CMD_EVENT_OPEN, hall);
    ask_create(&hold, hall, 1);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &close), DECIDED);
    assert_int_equal(hall->shown.status, EVENT_OPEN); /* the change is not published yet */
    assert_int_equal(paper_decide(&paper, &open), DECIDED);
    assert_int_equal(paper_decide(&paper, &hold), DECIDED);
    paper_commit(&paper);
    assert_int_equal(hold.c.verdict, VERDICT_CREATED);
    assert_int_equal(paper.decision->batch.events.n, 1);
    assert_int_equal(paper.decision->batch.audit.n, 4);
    ask_close(&close);
    ask_close(&open);
    ask_close(&hold);
    paper_check(&paper);
}

static void a_failed_close_leaves_the_event_open(void **state)
{
    (void)state;
    struct buf before = {0}, after = {0};
    struct ask close, hold, blocked;
    ask_event(&close, CMD_EVENT_CLOSE, hall);
    ask_create(&hold, hall, 1);
    ask_seats(&blocked, CMD_SEATS_BLOCK, hall, 1, 2, 3);
    dump(&before);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &close), DECIDED);
    assert_int_equal(paper_decide(&paper, &hold), DECIDED);
    assert_int_equal(paper_decide(&paper, &blocked), DECIDED);
    assert_int_equal(hold.c.verdict, VERDICT_EVENT_CLOSED);
    paper_fail(&paper);
    dump(&after);
    assert_string_equal(before.data, after.data);
    assert_int_equal(paper_run(&paper, &hold), VERDICT_CREATED);
    ask_close(&close);
    ask_close(&hold);
    ask_close(&blocked);
    buf_close(&before);
    buf_close(&after);
    paper_check(&paper);
}

/* ---- evict ---- */

static void an_evicted_hold_is_released_and_the_log_says_by_whom(void **state)
{
    (void)state;
    struct grant g = grant(4);
    struct ask a;
    ask_evict(&a, hall, &g.id);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    assert_int_equal(command_hold(&a.c)->status, HOLD_RELEASED);
    assert_int_equal(command_hold(&a.c)->fence, g.fence);
    ask_close(&a);
    assert_int_equal(seat(4), SEAT_AVAILABLE);
    assert_int_equal(paper.decision->batch.audit.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(paper.decision->batch.audit.v[i].cause, CAUSE_EVICT);
    assert_int_equal(confirm(&g, true), VERDICT_HOLD_RELEASED);
    assert_int_equal(release(&g), VERDICT_OK);
    paper_check(&paper);
}

static void eviction_answers_by_the_state_of_the_hold(void **state)
{
    (void)state;
    struct grant evicted = grant(0), released = grant(1), sold = grant(2), expired = grant(3);
    assert_int_equal(evict(&evicted), VERDICT_OK);
    assert_int_equal(evict(&evicted), VERDICT_OK);
    assert_int_equal(release(&released), VERDICT_OK);
    assert_int_equal(evict(&released), VERDICT_OK);
    assert_false(decision_has_effects(paper.decision));
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    assert_int_equal(evict(&sold), VERDICT_HOLD_CONFIRMED);
    advance_ms(DEF_TTL_MS);
    assert_int_equal(evict(&expired), VERDICT_HOLD_EXPIRED);
    struct grant stranger = sold;
    stranger.id.secret[0] ^= 1;
    assert_int_equal(evict(&stranger), VERDICT_NO_SUCH_HOLD);
    paper_check(&paper);
}

static void an_eviction_behind_a_confirm_in_its_batch_waits(void **state)
{
    (void)state;
    struct grant g = grant(4);
    struct ask sale, a;
    ask_confirm(&sale, hall, &g.id, g.fence, false);
    ask_evict(&a, hall, &g.id);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &sale), DECIDED);
    assert_int_equal(paper_decide(&paper, &a), DEFERRED);
    paper_commit(&paper);
    assert_int_equal(paper_run(&paper, &a), VERDICT_HOLD_CONFIRMED);
    ask_close(&sale);
    ask_close(&a);
    paper_check(&paper);
}

/* ---- how much one address may hold ---- */

static void limit(uint32_t places) { paper.decision->client_places_max = places; }

static void ask_of(struct ask *a, uint64_t client, uint32_t first, uint32_t n)
{
    uint32_t seats[SEATS];
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    ask_create_n(a, hall, seats, n);
    a->c.create.client = client;
}

static enum verdict buy(uint64_t client, uint32_t first, uint32_t n)
{
    struct ask a;
    ask_of(&a, client, first, n);
    return run(&a);
}

static struct grant grant_to(uint64_t client, uint32_t first, uint32_t n)
{
    struct ask a;
    ask_of(&a, client, first, n);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    return g;
}

static uint32_t client_places(uint64_t client) { return view_client_places(paper.view, client); }

static void the_limit_of_an_address_counts_the_places_of_all_its_holds(void **state)
{
    (void)state;
    limit(5);
    struct ask a;
    assert_int_equal(buy(ADA, 0, 2), VERDICT_CREATED);
    ask_create_none(&a, hall);
    ask_area(&a, 0, 2);
    a.c.create.client = ADA;
    assert_int_equal(run(&a), VERDICT_CREATED); /* places of areas count */
    assert_int_equal(client_places(ADA), 4);
    assert_int_equal(buy(ADA, 4, 2), VERDICT_TOO_MANY_HOLDS);
    assert_false(decision_has_effects(paper.decision));
    ask_best(&a, hall, 2, true); /* seats that best available is asked for count, too */
    a.c.create.client = ADA;
    assert_int_equal(run(&a), VERDICT_TOO_MANY_HOLDS);
    assert_int_equal(buy(BOB, 4, 5), VERDICT_CREATED); /* each address has its own count */
    assert_int_equal(buy(ADA, 9, 1), VERDICT_CREATED); /* exactly the limit */
    assert_int_equal(buy(ADA, 10, 1), VERDICT_TOO_MANY_HOLDS);
    assert_int_equal(buy(0, 10, 1), VERDICT_CREATED); /* client 0 has an API key and no limit */
    paper_check(&paper);
}

/* Eight times as much as one of its /64, whichever of them have it. */
static void the_addresses_of_an_ipv6_network_have_a_limit_together(void **state)
{
    (void)state;
    limit(1);
    struct grant first = {0};
    for (uint64_t i = 0; i < CLIENT_WIDE; i++) {
        struct grant g = grant_to(client_number_v6(0, i + 1), (uint32_t)i, 1);
        first = i ? first : g;
    }
    assert_int_equal(buy(client_number_v6(0, 99), 8, 1), VERDICT_TOO_MANY_HOLDS);
    assert_int_equal(buy(client_number_v6(UINT64_MAX, 99), 8, 1), VERDICT_CREATED);
    assert_int_equal(buy(client_number_v4(99), 9, 1), VERDICT_CREATED);
    assert_int_equal(release(&first), VERDICT_OK);
    assert_int_equal(buy(client_number_v6(0, 99), 10, 1), VERDICT_CREATED);
    assert_int_equal(buy(client_number_v6(0, 100), 11, 1), VERDICT_TOO_MANY_HOLDS);
    advance_ms(DEF_TTL_MS); /* due holds do not count, swept or not */
    assert_int_equal(buy(client_number_v6(0, 100), 11, 1), VERDICT_CREATED);
    paper_check(&paper);
}

static void without_a_limit_an_address_may_hold_all(void **state)
{
    (void)state;
    limit(0);
    assert_int_equal(buy(ADA, 0, SEATS), VERDICT_CREATED);
    /* Places are counted nevertheless: a restart may set a limit. */
    assert_int_equal(client_places(ADA), SEATS);
    paper_check(&paper);
}

static void a_hold_counts_until_it_ends_in_whichever_way(void **state)
{
    (void)state;
    limit(2);
    struct grant g = grant_to(ADA, 0, 2);
    assert_int_equal(release(&g), VERDICT_OK);
    assert_int_equal(client_places(ADA), 0);
    g = grant_to(ADA, 0, 2);
    assert_int_equal(evict(&g), VERDICT_OK);
    g = grant_to(ADA, 0, 2);
    assert_int_equal(confirm(&g, false), VERDICT_CREATED); /* a booking does not count */
    g = grant_to(ADA, 2, 2);
    assert_int_equal(buy(ADA, 4, 1), VERDICT_TOO_MANY_HOLDS);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    assert_int_equal(client_places(ADA), 0);
    grant_to(ADA, 4, 2);
    assert_int_equal(confirm(&g, true), VERDICT_CREATED); /* nor does a rescued hold */
    assert_int_equal(client_places(ADA), 2);
    paper_check(&paper);
}

static void what_ends_in_a_batch_makes_room_in_it(void **state)
{
    (void)state;
    limit(2);
    struct grant g = grant_to(ADA, 0, 2);
    struct ask gone, next, more;
    ask_release(&gone, hall, &g.id);
    ask_of(&next, ADA, 4, 2);
    ask_of(&more, ADA, 6, 1);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &gone), DECIDED);
    assert_int_equal(paper_decide(&paper, &next), DECIDED);
    assert_int_equal(paper_decide(&paper, &more), DECIDED);
    paper_commit(&paper);
    assert_int_equal(next.c.verdict, VERDICT_CREATED);
    assert_int_equal(more.c.verdict, VERDICT_TOO_MANY_HOLDS);
    ask_close(&gone);
    ask_close(&next);
    ask_close(&more);
    paper_check(&paper);
}

static void a_due_hold_counts_for_nothing_swept_or_not(void **state)
{
    (void)state;
    limit(3);
    struct event *other = paper_event(&paper, def_hall(20, 20));
    struct ask a;
    for (uint32_t i = 0; i < 200; i++) { /* other addresses' holds that are due earlier */
        ask_create(&a, other, i);
        a.c.create.client = BOB + 1 + i;
        a.c.create.ttl_ms = 1000;
        assert_int_equal(run(&a), VERDICT_CREATED);
    }
    ask_create(&a, other, 300); /* Ada's hold in an event that no command names */
    a.c.create.client = ADA;
    assert_int_equal(run(&a), VERDICT_CREATED);
    grant_to(ADA, 0, 1);
    advance_ms(DEF_TTL_MS / 2);
    grant_to(ADA, 1, 1); /* still live at the end */
    advance_ms(DEF_TTL_MS / 2);
    paper.expire_max = 0;
    assert_int_equal(buy(ADA, 4, 3), VERDICT_TOO_MANY_HOLDS);
    assert_int_equal(buy(ADA, 4, 2), VERDICT_CREATED);
    assert_int_equal(buy(ADA, 8, 1), VERDICT_TOO_MANY_HOLDS);
    paper_check(&paper);
}

static void a_failed_batch_restores_what_addresses_have(void **state)
{
    (void)state;
    limit(4);
    struct grant given = grant_to(ADA, 0, 2), sold = grant_to(BOB, 2, 3);
    struct ask asks[5];
    struct buf before = {0}, after = {0};
    ask_release(&asks[0], hall, &given.id);
    ask_of(&asks[1], ADA, 6, 4);
    ask_confirm(&asks[2], hall, &sold.id, sold.fence, false);
    ask_of(&asks[3], BOB, 0, 2);
    ask_of(&asks[4], ADA + 1, 10, 1);
    dump(&before);
    for (int round = 0; round < 2; round++) {
        paper_begin(&paper);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
            assert_true(verdict_is_success(asks[i].c.verdict));
        }
        assert_int_equal(client_places(ADA), 4);
        if (round == 0) {
            paper_fail(&paper);
            assert_int_equal(client_places(ADA), 2);
            assert_int_equal(client_places(BOB), 3);
            assert_int_equal(client_places(ADA + 1), 0);
            dump(&after);
            assert_string_equal(before.data, after.data);
        } else {
            paper_commit(&paper);
        }
    }
    assert_int_equal(client_places(BOB), 2);
    for (int i = 0; i < 5; i++)
        ask_close(&asks[i]);
    buf_close(&before);
    buf_close(&after);
    paper_check(&paper);
}

/* Addresses come and go.  The table grows with the addresses that hold something and forgets the
 * others. */
static void many_addresses_are_told_apart_as_they_come_and_go(void **state)
{
    (void)state;
    static uint32_t places[4096];
    static struct hold *live[4096];
    static const uint32_t seats[] = {0, 1, 2};
    struct random random;
    random_init_seeded(&random, test_seed(11));
    for (int step = 0; step < 60000; step++) {
        uint64_t i = random_below(&random, step < 30000 ? 4096 : 64);
        uint64_t client = (i + 1) << 32; /* differs only in the upper half of the bits */
        if (live[i]) {
            places[i] -= live[i]->n_seats;
            view_hold_remove(paper.view, live[i]);
            live[i] = NULL;
        } else if (step < 25000 || i < 64) {
            struct hold_row row = {.id.key = HOLD_KEY(1, i + 1),
                                   .expires_at = T0_MS,
                                   .client = client,
                                   .seats = seats,
                                   .n_seats = 1 + (uint32_t)random_below(&random, 3)};
            live[i] = view_hold_add(paper.view, hall, &row);
            places[i] += row.n_seats;
        }
        assert_int_equal(client_places(client), places[i]);
    }
    for (uint64_t i = 0; i < 4096; i++)
        assert_int_equal(client_places((i + 1) << 32), places[i]);
    const struct slots *slots = &view_hold_table(paper.view)->clients->slots;
    assert_true(slots->n >= 4096);
    assert_true(slots->n <= 32768); /* not one slot for every address ever seen */
}

static void an_address_that_holds_nothing_takes_no_room(void **state)
{
    (void)state;
    static const uint32_t seats[] = {0};
    struct hold *last = NULL;
    for (uint64_t i = 1; i <= 20000; i++) { /* each address comes as the one before it leaves */
        struct hold_row row = {
            .id.key = HOLD_KEY(1, i), .client = i * 977, .seats = seats, .n_seats = 1};
        struct hold *hold = view_hold_add(paper.view, hall, &row);
        if (last)
            view_hold_remove(paper.view, last);
        last = hold;
        assert_int_equal(client_places(i * 977), 1);
        assert_int_equal(client_places((i - 1) * 977 + 1), 0);
    }
    assert_int_equal(view_hold_table(paper.view)->clients->slots.n, 256);
}

static void a_forgotten_event_takes_its_part_of_the_counts_along(void **state)
{
    (void)state;
    struct event *other = paper_event(&paper, def_hall(1, 4));
    struct ask a;
    ask_create(&a, other, 0);
    a.c.create.client = ADA;
    assert_int_equal(run(&a), VERDICT_CREATED);
    grant_to(ADA, 0, 3);
    ask_create_none(&a, hall);
    ask_area(&a, 0, 7);
    a.c.create.client = ADA;
    assert_int_equal(run(&a), VERDICT_CREATED);
    assert_int_equal(client_places(ADA), 11);
    view_forget(paper.view, hall);
    assert_int_equal(client_places(ADA), 1);
    paper_reload(&paper, hall);
    assert_int_equal(client_places(ADA), 11);
    paper_check(&paper);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_blocked_seat_is_taken_until_it_is_unblocked),
        claim(blocking_is_all_or_none_and_names_what_is_held_or_booked),
        claim(blocking_again_changes_nothing_and_writes_nothing),
        claim(a_block_has_a_fence_of_its_own_and_one_row_a_seat),
        claim(a_due_hold_is_ended_before_its_seat_is_blocked),
        claim(no_rescue_of_a_seat_blocked_since),
        claim(a_seat_blocked_unblocked_and_held_in_one_batch_is_one_write),
        claim(a_keyed_block_is_answered_again_from_its_key),
        claim(a_closed_event_takes_no_holds_of_any_kind),
        claim(closing_is_one_row_of_the_log_however_often_it_is_asked),
        claim(opening_and_closing_in_one_batch_is_one_write_and_two_rows),
        claim(a_failed_close_leaves_the_event_open),
        claim(an_evicted_hold_is_released_and_the_log_says_by_whom),
        claim(eviction_answers_by_the_state_of_the_hold),
        claim(an_eviction_behind_a_confirm_in_its_batch_waits),
        claim(the_limit_of_an_address_counts_the_places_of_all_its_holds),
        claim(the_addresses_of_an_ipv6_network_have_a_limit_together),
        claim(without_a_limit_an_address_may_hold_all),
        claim(a_hold_counts_until_it_ends_in_whichever_way),
        claim(what_ends_in_a_batch_makes_room_in_it),
        claim(a_due_hold_counts_for_nothing_swept_or_not),
        claim(a_failed_batch_restores_what_addresses_have),
        claim(many_addresses_are_told_apart_as_they_come_and_go),
        claim(an_address_that_holds_nothing_takes_no_room),
        claim(a_forgotten_event_takes_its_part_of_the_counts_along),
    };
    return cmocka_run_group_tests_name("decide_seller", tests, NULL, NULL);
}
