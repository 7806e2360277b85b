/* Claims about other places for a hold (PATCH): all or nothing, what is kept and what is paid, and
 * that a failed batch leaves no trace.  The paper ledger (tests/support/paper.c) plays the worker.
 */
#include "support/paper.h"

#include <string.h>

enum { FLOOR, BOX };

static struct paper paper;
static struct event *hall;

/* Seats 0-7 cost 2500, 8-11 cost 4000. */
static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    struct event_def *def = def_hall(2, 4);
    def_section(def, "B", NULL, 4000);
    def_row(def, "1", 4);
    def_area(def, "Floor", 700, 10);
    def_area(def, "Box", 9000, 3);
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
    int64_t fence, expires_at;
};

static struct grant run_create(struct ask *a)
{
    assert_int_equal(paper_run(&paper, a), VERDICT_CREATED);
    const struct hold_row *row = command_hold(&a->c);
    struct grant g = {row->id, row->fence, row->expires_at};
    ask_close(a);
    return g;
}

/* Seats 0 and 1, two places of the floor, a place in the box. */
static struct grant grant_mixed(void)
{
    struct ask a;
    ask_create(&a, hall, 0, 1);
    ask_area(&a, FLOOR, 2);
    ask_area(&a, BOX, 1);
    return run_create(&a);
}

static struct grant grant(uint32_t seat)
{
    struct ask a;
    ask_create(&a, hall, seat);
    return run_create(&a);
}

static enum verdict run(struct ask *a)
{
    enum verdict verdict = paper_run(&paper, a);
    ask_close(a);
    return verdict;
}

static void begin_change(struct ask *a, const struct grant *g)
{
    ask_change(a, hall, &g->id, paper_hold(&paper, g->id.key)->fence);
}

static enum verdict add(const struct grant *g, uint32_t seat)
{
    struct ask a;
    begin_change(&a, g);
    ask_add(&a, seat);
    return run(&a);
}

static void set_price(uint32_t index, int64_t price)
{
    struct ask a;
    ask_terms(&a, hall);
    ask_price(&a, index, price);
    assert_int_equal(run(&a), VERDICT_OK);
}

static const struct hold_row *row_of(const struct grant *g)
{
    return paper_hold(&paper, g->id.key);
}

static enum seat_status seat(uint32_t index) { return seat_shown_status(seat_shown(hall, index)); }

/* Asserts that a refused change has no effect at all. */
static void assert_refused(struct ask *a, enum verdict want)
{
    struct buf before = {0}, after = {0};
    paper_dump(&paper, &before);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, a), DECIDED);
    assert_int_equal(a->c.verdict, want);
    assert_false(decision_has_effects(paper.decision));
    paper_commit(&paper);
    paper_dump(&paper, &after);
    assert_string_equal(after.data, before.data);
    buf_close(&before);
    buf_close(&after);
    ask_close(a);
}

/* ---- what changes ---- */

static void places_go_and_come_at_once(void **state)
{
    (void)state;
    struct grant g = grant_mixed();
    struct ask a;
    begin_change(&a, &g);
    ask_remove(&a, 0);
    ask_add(&a, 9, 3);
    ask_area(&a, FLOOR, 3);
    ask_remove_area(&a, BOX, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    const struct hold_row *h = command_hold(&a.c);
    assert_memory_equal(&h->id, &g.id, sizeof g.id);
    assert_int_equal(h->fence, g.fence + 1);
    assert_int_equal(h->expires_at, g.expires_at);
    assert_int_equal(h->n_seats, 3);
    assert_int_equal(h->seats[0], 1); /* what stays comes first */
    assert_int_equal(h->seats[1], 9);
    assert_int_equal(h->seats[2], 3);
    assert_int_equal(h->n_areas, 1);
    assert_int_equal(h->areas[0].quantity, 5);
    assert_int_equal(h->amount, 2500 + 4000 + 2500 + 5 * 700);
    ask_close(&a);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(seat(9), SEAT_HELD);
    assert_int_equal(row_of(&g)->amount, 2500 + 4000 + 2500 + 5 * 700);
    paper_check(&paper);
}

static void the_hold_expires_when_it_would_have(void **state)
{
    (void)state;
    struct grant g = grant(0);
    paper.now += DEF_TTL_MS - 1;
    assert_int_equal(add(&g, 1), VERDICT_OK);
    paper.now++;
    paper_begin(&paper);
    paper_commit(&paper);
    assert_int_equal(row_of(&g)->status, HOLD_EXPIRED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(seat(1), SEAT_AVAILABLE);
    paper_check(&paper);
}

static void what_a_hold_has_is_sold_and_nothing_else(void **state)
{
    (void)state;
    struct grant g = grant_mixed();
    struct ask a;
    begin_change(&a, &g);
    ask_remove(&a, 1);
    ask_add(&a, 8);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_confirm(&a, hall, &g.id, g.fence, false);
    assert_int_equal(run(&a), VERDICT_STALE_FENCE); /* the fence before the change */
    ask_confirm(&a, hall, &g.id, row_of(&g)->fence, false);
    assert_int_equal(run(&a), VERDICT_CREATED);
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(seat(1), SEAT_AVAILABLE);
    assert_int_equal(seat(8), SEAT_BOOKED);
    paper_check(&paper);
}

/* ---- prices ---- */

static void places_that_stay_keep_their_price_and_new_ones_cost_todays(void **state)
{
    (void)state;
    struct grant g = grant_mixed(); /* 2 x 2500, 2 x 700, 9000 */
    set_price(0, 3000);
    set_price(2, 800);
    assert_int_equal(add(&g, 2), VERDICT_OK);
    assert_int_equal(row_of(&g)->amount, 2 * 2500 + 3000 + 2 * 700 + 9000);
    struct ask a;
    begin_change(&a, &g);
    ask_remove(&a, 0);
    assert_int_equal(run(&a), VERDICT_OK); /* one of the old price goes */
    assert_int_equal(row_of(&g)->amount, 2500 + 3000 + 2 * 700 + 9000);
    begin_change(&a, &g);
    ask_remove(&a, 2);
    ask_add(&a, 0); /* comes back at today's price */
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(row_of(&g)->amount, 2500 + 3000 + 2 * 700 + 9000);
    paper_check(&paper);
}

static void of_an_area_the_places_that_came_last_go_first(void **state)
{
    (void)state;
    struct grant g = grant_mixed(); /* 2 x 700 */
    struct ask a;
    for (int64_t price = 1000; price <= 3000; price += 1000) {
        set_price(2, price);
        begin_change(&a, &g);
        ask_area(&a, FLOOR, 1);
        assert_int_equal(run(&a), VERDICT_OK);
    }
    int64_t rest = 2 * 2500 + 9000;
    assert_int_equal(row_of(&g)->amount, rest + 2 * 700 + 1000 + 2000 + 3000);
    begin_change(&a, &g);
    ask_remove_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(row_of(&g)->amount, rest + 2 * 700 + 1000);
    begin_change(&a, &g);
    ask_remove_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(row_of(&g)->amount, rest + 700);
    paper_check(&paper);
}

/* ---- refusals ---- */

static void a_change_is_all_or_nothing(void **state)
{
    (void)state;
    struct grant g = grant_mixed();
    grant(4);
    struct ask a;
    begin_change(&a, &g);
    ask_remove(&a, 0);
    ask_add(&a, 5, 4, 1); /* one is another's, one is its own already */
    assert_int_equal(paper_run(&paper, &a), VERDICT_SEAT_TAKEN);
    assert_int_equal(command_shortage(&a.c)->n_taken, 2);
    assert_int_equal(command_shortage(&a.c)->taken[0], 4);
    ask_close(&a);
    begin_change(&a, &g);
    ask_remove(&a, 0);
    ask_area(&a, BOX, 3); /* two are left */
    assert_refused(&a, VERDICT_SOLD_OUT);
    begin_change(&a, &g);
    ask_add(&a, 5);
    ask_remove(&a, 0, 7);
    assert_refused(&a, VERDICT_NOT_HELD);
    begin_change(&a, &g);
    ask_add(&a, 5);
    ask_remove_area(&a, FLOOR, 3);
    assert_refused(&a, VERDICT_NOT_HELD);
    paper_check(&paper);
}

static void a_hold_is_not_left_with_nothing(void **state)
{
    (void)state;
    struct grant g = grant_mixed();
    struct ask a;
    begin_change(&a, &g);
    ask_remove(&a, 0, 1);
    ask_remove_area(&a, FLOOR, 2);
    ask_remove_area(&a, BOX, 1);
    assert_refused(&a, VERDICT_INVALID_REQUEST);
    begin_change(&a, &g);
    ask_remove(&a, 0, 1);
    ask_remove_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    paper_check(&paper);
}

static void a_hold_does_not_grow_beyond_max_per_hold(void **state)
{
    (void)state;
    struct grant g = grant_mixed(); /* five places */
    struct ask a;
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_MAX_PER_HOLD;
    a.c.event_change.terms.max_per_hold = 6;
    assert_int_equal(run(&a), VERDICT_OK);
    begin_change(&a, &g);
    ask_add(&a, 4, 5);
    assert_refused(&a, VERDICT_TOO_MANY_SEATS);
    begin_change(&a, &g);
    ask_add(&a, 4, 5);
    ask_remove(&a, 0);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_MAX_PER_HOLD;
    a.c.event_change.terms.max_per_hold = 2;
    assert_int_equal(run(&a), VERDICT_OK);
    begin_change(&a, &g); /* it has too many by now, and may have less, or others */
    ask_add(&a, 0);
    ask_remove(&a, 4);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(add(&g, 4), VERDICT_TOO_MANY_SEATS);
    paper_check(&paper);
}

static void only_the_newest_fence_changes_a_hold(void **state)
{
    (void)state;
    struct grant g = grant(0);
    assert_int_equal(add(&g, 1), VERDICT_OK);
    struct ask a;
    ask_change(&a, hall, &g.id, g.fence);
    ask_add(&a, 2);
    assert_refused(&a, VERDICT_STALE_FENCE);
    ask_change(&a, hall, &g.id, g.fence + 2);
    ask_add(&a, 2);
    assert_refused(&a, VERDICT_STALE_FENCE);
    struct id other = g.id;
    other.secret[0] ^= 1;
    ask_change(&a, hall, &other, g.fence + 1);
    ask_add(&a, 2);
    assert_refused(&a, VERDICT_NO_SUCH_HOLD);
}

static void a_hold_that_has_ended_is_not_changed(void **state)
{
    (void)state;
    struct grant released = grant(0), sold = grant(1), expired = grant(2);
    struct ask a;
    ask_release(&a, hall, &released.id);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_confirm(&a, hall, &sold.id, sold.fence, false);
    assert_int_equal(run(&a), VERDICT_CREATED);
    assert_int_equal(add(&released, 5), VERDICT_HOLD_RELEASED);
    assert_int_equal(add(&sold, 5), VERDICT_HOLD_CONFIRMED);
    paper.expire_max = 0; /* nobody has noticed yet that it is due */
    paper.now = expired.expires_at;
    assert_int_equal(add(&expired, 5), VERDICT_HOLD_EXPIRED);
    assert_int_equal(add(&expired, 5), VERDICT_HOLD_EXPIRED);
    assert_int_equal(seat(5), SEAT_AVAILABLE);
    paper_check(&paper);
}

static void a_closed_event_gives_nothing_and_takes_back(void **state)
{
    (void)state;
    struct grant g = grant_mixed();
    struct ask a;
    ask_event(&a, CMD_EVENT_CLOSE, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(add(&g, 5), VERDICT_EVENT_CLOSED);
    begin_change(&a, &g);
    ask_remove(&a, 0);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    paper_check(&paper);
}

static void a_due_hold_gives_way_to_a_change(void **state)
{
    (void)state;
    grant(4);
    paper.now += 1000;
    struct grant g = grant(0);
    paper.expire_max = 0;
    paper.now += DEF_TTL_MS - 1000;
    assert_int_equal(add(&g, 4), VERDICT_OK);
    paper_check(&paper);
}

/* ---- batches ---- */

static void a_changed_hold_is_asked_about_in_the_next_batch(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask asks[4];
    ask_change(&asks[0], hall, &g.id, g.fence);
    ask_add(&asks[0], 1);
    ask_change(&asks[1], hall, &g.id, g.fence + 1);
    ask_add(&asks[1], 2);
    ask_renew(&asks[2], hall, &g.id, 0);
    ask_release(&asks[3], hall, &g.id);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &asks[0]), DECIDED);
    for (int i = 1; i < 4; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DEFERRED);
    paper_commit(&paper);
    assert_int_equal(paper_run(&paper, &asks[1]), VERDICT_OK);
    assert_int_equal(row_of(&g)->n_seats, 3);
    for (int i = 0; i < 4; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

static void a_renewal_before_a_change_is_kept(void **state)
{
    (void)state;
    struct grant g = grant(0);
    paper.now += 1000;
    struct ask asks[2];
    ask_renew(&asks[0], hall, &g.id, 0);
    ask_change(&asks[1], hall, &g.id, g.fence);
    ask_add(&asks[1], 1);
    paper_begin(&paper);
    for (int i = 0; i < 2; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    assert_int_equal(paper.decision->batch.holds.n, 1);
    paper_commit(&paper);
    assert_int_equal(row_of(&g)->expires_at, g.expires_at + 1000);
    for (int i = 0; i < 2; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

/* Every kind of change that a batch can make at once, in a hall whose view then has to forget it.
 */
static void a_failed_batch_leaves_no_trace(void **state)
{
    (void)state;
    struct ask asks[7], a;
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_MAX_PER_OWNER;
    a.c.event_change.terms.max_per_owner = 9;
    assert_int_equal(run(&a), VERDICT_OK);
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 6, 7);
    ask_area(&a, FLOOR, 3);
    ask_channel(&a, "house");
    assert_int_equal(run(&a), VERDICT_OK);
    ask_create(&a, hall, 6);
    ask_area(&a, FLOOR, 1);
    ask_owner(&a, "ada");
    a.c.create.channel = 1;
    struct grant house = run_create(&a);
    ask_create(&a, hall, 2);
    ask_owner(&a, "ada");
    struct grant sold = run_create(&a), mixed = grant_mixed();
    ask_confirm(&a, hall, &sold.id, sold.fence, false);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct id booking = command_booking(&a.c)->id;
    ask_close(&a);
    paper_reload(&paper, hall); /* so that nothing but the batch differs from the rows */
    struct buf before = {0}, after = {0};
    paper_dump(&paper, &before);
    for (int round = 0; round < 2; round++) {
        begin_change(&asks[0], &house);
        ask_add(&asks[0], 7, 3);
        ask_remove(&asks[0], 6);
        ask_area(&asks[0], FLOOR, 2);
        begin_change(&asks[1], &mixed);
        ask_remove(&asks[1], 0);
        ask_remove_area(&asks[1], BOX, 1);
        ask_cancel(&asks[2], hall, &booking);
        ask_seats(&asks[3], CMD_SEATS_BLOCK, hall, 10, 11);
        ask_area(&asks[3], BOX, 1);
        ask_channel(&asks[3], "club"); /* a new channel */
        ask_terms(&asks[4], hall);
        asks[4].c.event_change.given = EVENT_MAX_PER_HOLD;
        asks[4].c.event_change.terms.max_per_hold = 3;
        ask_price(&asks[4], 0, 1);
        ask_create(&asks[5], hall, 0); /* which the second command gave back */
        ask_owner(&asks[5], "ada");
        ask_event(&asks[6], CMD_EVENT_ARCHIVE, hall);
        paper_begin(&paper);
        for (int i = 0; i < 7; i++) {
            assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
            assert_true(verdict_is_success(asks[i].c.verdict));
        }
        if (round == 0)
            paper_fail(&paper);
        else
            paper_commit(&paper); /* and it could have been stored */
        for (int i = 0; i < 7; i++)
            ask_close(&asks[i]);
        if (round == 0) {
            paper_dump(&paper, &after);
            assert_string_equal(after.data, before.data);
        }
        paper_check(&paper);
    }
    buf_close(&before);
    buf_close(&after);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(places_go_and_come_at_once),
        claim(the_hold_expires_when_it_would_have),
        claim(what_a_hold_has_is_sold_and_nothing_else),
        claim(places_that_stay_keep_their_price_and_new_ones_cost_todays),
        claim(of_an_area_the_places_that_came_last_go_first),
        claim(a_change_is_all_or_nothing),
        claim(a_hold_is_not_left_with_nothing),
        claim(a_hold_does_not_grow_beyond_max_per_hold),
        claim(only_the_newest_fence_changes_a_hold),
        claim(a_hold_that_has_ended_is_not_changed),
        claim(a_closed_event_gives_nothing_and_takes_back),
        claim(a_due_hold_gives_way_to_a_change),
        claim(a_changed_hold_is_asked_about_in_the_next_batch),
        claim(a_renewal_before_a_change_is_kept),
        claim(a_failed_batch_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
