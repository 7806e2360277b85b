/* Claims about channels and about sales that are taken back: blocked places that only sellers hold,
 * where they go afterwards, and what a cancelled booking frees.  The paper ledger
 * (tests/support/paper.c) plays the worker. */
#include "support/paper.h"

#include <stdio.h>
#include <string.h>

enum { FLOOR = 0, HOUSE = 1, CLUB = 2 }; /* an area; channels, in the order of their first use */

static struct paper paper;
static struct event *hall;

static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    struct event_def *def = def_hall(2, 4);
    def_area(def, "Floor", 700, 10);
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

static enum verdict block(enum command_kind kind, uint32_t seat, const char *channel)
{
    struct ask a;
    ask_seats(&a, kind, hall, seat);
    if (channel)
        ask_channel(&a, channel);
    return run(&a);
}

static enum verdict block_floor(enum command_kind kind, uint32_t places, const char *channel)
{
    struct ask a;
    ask_block_none(&a, kind, hall);
    ask_area(&a, FLOOR, places);
    if (channel)
        ask_channel(&a, channel);
    return run(&a);
}

static enum verdict create(uint32_t seat, uint32_t channel)
{
    struct ask a;
    ask_create(&a, hall, seat);
    a.c.create.channel = channel;
    return run(&a);
}

static enum verdict create_floor(uint32_t places, uint32_t channel)
{
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, places);
    a.c.create.channel = channel;
    return run(&a);
}

/* A seat and two places of the floor. */
static struct grant grant(uint32_t seat, uint32_t channel)
{
    struct ask a;
    ask_create(&a, hall, seat);
    ask_area(&a, FLOOR, 2);
    a.c.create.channel = channel;
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    return g;
}

static struct id sell(const struct grant *g)
{
    struct ask a;
    ask_confirm(&a, hall, &g->id, g->fence, false);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct id booking = command_booking(&a.c)->id;
    ask_close(&a);
    return booking;
}

static enum verdict cancel(const struct id *booking)
{
    struct ask a;
    ask_cancel(&a, hall, booking);
    return run(&a);
}

static enum seat_status seat(uint32_t index) { return seat_shown_status(seat_shown(hall, index)); }
static int64_t blocked(uint32_t channel) { return area_blocked_for(&hall->areas[FLOOR], channel); }

/* Seat 3 and five places of the floor are the house's. */
static void make_house(void)
{
    assert_int_equal(block(CMD_SEATS_BLOCK, 3, "house"), VERDICT_OK);
    assert_int_equal(block_floor(CMD_SEATS_BLOCK, 5, "house"), VERDICT_OK);
}

/* ---- who gets them ---- */

static void a_place_of_a_channel_is_held_by_that_channel_alone(void **state)
{
    (void)state;
    make_house();
    assert_int_equal(block(CMD_SEATS_BLOCK, 4, "club"), VERDICT_OK);
    assert_int_equal(block(CMD_SEATS_BLOCK, 5, NULL), VERDICT_OK);
    assert_int_equal(create(3, 0), VERDICT_SEAT_TAKEN);
    assert_int_equal(create(4, HOUSE), VERDICT_SEAT_TAKEN);
    assert_int_equal(create(5, HOUSE), VERDICT_SEAT_TAKEN); /* blocked for nobody */
    assert_int_equal(create_floor(6, 0), VERDICT_SOLD_OUT);
    assert_int_equal(create_floor(1, CLUB), VERDICT_SOLD_OUT);
    assert_int_equal(create_floor(6, HOUSE), VERDICT_SOLD_OUT);
    assert_int_equal(create(3, HOUSE), VERDICT_CREATED);
    assert_int_equal(create(4, CLUB), VERDICT_CREATED);
    assert_int_equal(create_floor(5, HOUSE), VERDICT_CREATED);
    assert_int_equal(create_floor(5, 0), VERDICT_CREATED);
    assert_int_equal(create(0, HOUSE), VERDICT_CREATED); /* sellers also get what is on sale */
    paper_check(&paper);
}

static void best_available_skips_them(void **state)
{
    (void)state;
    struct ask a;
    make_house();
    ask_best(&a, hall, 7, false);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    for (int i = 0; i < 7; i++)
        assert_int_not_equal(a.seats[i], 3);
    ask_close(&a);
    ask_best(&a, hall, 1, false);
    assert_int_equal(run(&a), VERDICT_SOLD_OUT);
    paper_check(&paper);
}

/* ---- where they go ---- */

static void they_return_to_their_channel_when_the_hold_ends(void **state)
{
    (void)state;
    struct ask a;
    make_house();
    struct grant released = grant(3, HOUSE);
    assert_int_equal(blocked(HOUSE), 3);
    ask_release(&a, hall, &released.id);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(seat(3), SEAT_BLOCKED);
    assert_int_equal(blocked(HOUSE), 5);
    grant(3, HOUSE);
    paper.now += DEF_TTL_MS;
    paper_begin(&paper);
    paper_commit(&paper);
    assert_int_equal(seat(3), SEAT_BLOCKED);
    assert_int_equal(blocked(HOUSE), 5);
    assert_int_equal(create(3, 0), VERDICT_SEAT_TAKEN);
    assert_int_equal(create(3, HOUSE), VERDICT_CREATED);
    paper_check(&paper);
}

static void they_return_to_their_channel_when_the_sale_is_cancelled(void **state)
{
    (void)state;
    make_house();
    struct grant g = grant(3, HOUSE);
    struct id booking = sell(&g);
    assert_int_equal(seat(3), SEAT_BOOKED);
    assert_int_equal(paper_sales(&paper), 1);
    paper_check(&paper);
    assert_int_equal(cancel(&booking), VERDICT_OK);
    assert_int_equal(paper_sales(&paper), 0);
    assert_int_equal(seat(3), SEAT_BLOCKED);
    assert_int_equal(blocked(HOUSE), 5);
    assert_int_equal(hall->areas[FLOOR].booked, 0);
    paper_check(&paper);
    struct grant again = grant(3, HOUSE);
    sell(&again);
    paper_check(&paper);
}

static void they_return_to_their_channel_when_a_hold_is_changed(void **state)
{
    (void)state;
    struct ask a;
    make_house();
    struct grant g = grant(3, HOUSE);
    ask_change(&a, hall, &g.id, g.fence);
    ask_add(&a, 0); /* of the public */
    assert_int_equal(run(&a), VERDICT_OK);
    ask_change(&a, hall, &g.id, g.fence + 1);
    ask_remove(&a, 3);
    ask_remove_area(&a, FLOOR, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(seat(3), SEAT_BLOCKED);
    assert_int_equal(blocked(HOUSE), 4);
    ask_change(&a, hall, &g.id, g.fence + 2);
    ask_add(&a, 3);
    ask_area(&a, FLOOR, 4);
    ask_remove(&a, 0);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(blocked(HOUSE), 0);
    paper_check(&paper);
}

static void a_buyer_adds_nothing_to_a_hold_of_a_channel(void **state)
{
    (void)state;
    struct ask a;
    make_house();
    struct grant g = grant(3, HOUSE);
    ask_change(&a, hall, &g.id, g.fence);
    a.c.change.is_seller = false;
    ask_add(&a, 0);
    assert_int_equal(run(&a), VERDICT_SELLER_ONLY);
    ask_change(&a, hall, &g.id, g.fence);
    a.c.change.is_seller = false;
    ask_remove_area(&a, FLOOR, 1);
    assert_int_equal(run(&a), VERDICT_OK); /* to give back is another matter */
    assert_int_equal(blocked(HOUSE), 4);
    paper_check(&paper);
}

static void a_rescue_takes_them_from_their_channel(void **state)
{
    (void)state;
    struct ask a;
    make_house();
    struct grant g = grant(3, HOUSE);
    paper.now += DEF_TTL_MS;
    ask_confirm(&a, hall, &g.id, g.fence, true);
    assert_int_equal(run(&a), VERDICT_CREATED);
    assert_int_equal(seat(3), SEAT_BOOKED);
    assert_int_equal(blocked(HOUSE), 3);
    paper_check(&paper);
}

/* ---- blocking ---- */

static void blocking_for_another_channel_moves_them(void **state)
{
    (void)state;
    make_house();
    assert_int_equal(block(CMD_SEATS_BLOCK, 3, "club"), VERDICT_OK);
    assert_int_equal(create(3, HOUSE), VERDICT_SEAT_TAKEN);
    int64_t fence = sim_event(&paper.ledger, 1)->clock.fence;
    assert_int_equal(block(CMD_SEATS_BLOCK, 3, "club"), VERDICT_OK);
    assert_int_equal(sim_event(&paper.ledger, 1)->clock.fence, fence); /* repeating is harmless */
    struct grant g = grant(0, 0);
    assert_int_equal(block(CMD_SEATS_BLOCK, 0, "club"), VERDICT_SEAT_TAKEN);
    (void)g;
    assert_int_equal(create(3, CLUB), VERDICT_CREATED);
    assert_int_equal(block(CMD_SEATS_BLOCK, 3, "house"), VERDICT_SEAT_TAKEN); /* it is held */
    paper_check(&paper);
}

static void unblocking_for_a_channel_spares_the_others(void **state)
{
    (void)state;
    make_house();
    assert_int_equal(block(CMD_SEATS_UNBLOCK, 3, "club"), VERDICT_SEAT_TAKEN);
    assert_int_equal(block_floor(CMD_SEATS_UNBLOCK, 1, "club"), VERDICT_SOLD_OUT);
    assert_int_equal(block_floor(CMD_SEATS_UNBLOCK, 1, NULL), VERDICT_SOLD_OUT);
    assert_int_equal(block_floor(CMD_SEATS_UNBLOCK, 6, "house"), VERDICT_SOLD_OUT);
    assert_int_equal(block_floor(CMD_SEATS_UNBLOCK, 4, "house"), VERDICT_OK);
    assert_int_equal(blocked(HOUSE), 1);
    assert_int_equal(block(CMD_SEATS_UNBLOCK, 3, NULL), VERDICT_OK); /* whatever it is for */
    assert_int_equal(seat(3), SEAT_AVAILABLE);
    struct grant g = grant(3, 0);
    struct ask a;
    ask_release(&a, hall, &g.id);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(seat(3), SEAT_AVAILABLE); /* it has no channel any more */
    paper_check(&paper);
}

static void a_channel_s_places_that_are_due_can_be_put_back_on_sale(void **state)
{
    (void)state;
    make_house();
    grant(3, HOUSE);
    paper.expire_max = 0; /* nobody has noticed yet that it is due */
    paper.now += DEF_TTL_MS;
    assert_int_equal(block_floor(CMD_SEATS_UNBLOCK, 5, "house"), VERDICT_OK);
    assert_int_equal(blocked(HOUSE), 0);
    paper_check(&paper);
}

static void blocking_is_all_or_nothing(void **state)
{
    (void)state;
    struct ask a;
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 0, 1);
    ask_area(&a, FLOOR, 11);
    ask_channel(&a, "house");
    assert_int_equal(run(&a), VERDICT_SOLD_OUT);
    assert_int_equal(hall->terms->channels.n, 0); /* nor is there a new channel */
    assert_int_equal(create(0, 0), VERDICT_CREATED);
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 0, 1);
    ask_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_SEAT_TAKEN);
    assert_int_equal(hall->areas[FLOOR].blocked, 0);
    paper_check(&paper);
}

static void an_event_has_only_so_many_channels(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < CHANNELS_MAX; i++) {
        snprintf(name, sizeof name, "channel %d", i);
        assert_int_equal(block_floor(CMD_SEATS_BLOCK, 1, name),
                         i < 10 ? VERDICT_OK : VERDICT_SOLD_OUT);
        assert_int_equal(block(CMD_SEATS_BLOCK, 1, name), VERDICT_OK);
    }
    assert_int_equal(block(CMD_SEATS_BLOCK, 1, "one more"), VERDICT_TOO_MANY_CHANNELS);
    assert_int_equal(block(CMD_SEATS_BLOCK, 1, "channel 0"), VERDICT_OK);
    paper_check(&paper);
}

/* ---- cancelling ---- */

static void a_cancelled_sale_frees_its_places_once(void **state)
{
    (void)state;
    struct grant g = grant(2, 0);
    struct id booking = sell(&g), other = booking;
    struct ask asks[3];
    other.secret[3] ^= 1;
    assert_int_equal(cancel(&other), VERDICT_NO_SUCH_BOOKING);
    ask_cancel(&asks[0], hall, &booking);
    ask_cancel(&asks[1], hall, &booking);
    ask_confirm(&asks[2], hall, &g.id, g.fence, false);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &asks[0]), DECIDED);
    assert_int_equal(paper_decide(&paper, &asks[1]), DEFERRED); /* the same batch cancels it */
    assert_int_equal(paper_decide(&paper, &asks[2]), DEFERRED);
    paper_commit(&paper);
    size_t rows = paper.audit.n;
    assert_int_equal(paper_run(&paper, &asks[1]), VERDICT_OK);
    assert_int_equal(command_booking(&asks[1].c)->status, BOOKING_CANCELLED);
    assert_int_equal(paper.audit.n, rows); /* nothing is written twice */
    for (int i = 0; i < 3; i++)
        ask_close(&asks[i]);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    paper_check(&paper);
    struct grant next = grant(2, 0);
    sell(&next);
    assert_int_equal(cancel(&booking), VERDICT_OK); /* about the old sale, not about this one */
    assert_int_equal(seat(2), SEAT_BOOKED);
    paper_check(&paper);
}

static void a_seat_is_sold_again_in_the_batch_that_takes_it_back(void **state)
{
    (void)state;
    struct grant late = grant(2, 0);
    paper.now += DEF_TTL_MS;
    struct grant g = grant(2, 0);
    struct id booking = sell(&g);
    struct ask asks[2];
    ask_cancel(&asks[0], hall, &booking);
    ask_confirm(&asks[1], hall, &late.id, late.fence, true);
    paper_begin(&paper);
    for (int i = 0; i < 2; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    assert_int_equal(asks[1].c.verdict, VERDICT_CREATED);
    paper_commit(&paper);
    for (int i = 0; i < 2; i++)
        ask_close(&asks[i]);
    assert_int_equal(seat(2), SEAT_BOOKED);
    paper_check(&paper);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_place_of_a_channel_is_held_by_that_channel_alone),
        claim(best_available_skips_them),
        claim(they_return_to_their_channel_when_the_hold_ends),
        claim(they_return_to_their_channel_when_the_sale_is_cancelled),
        claim(they_return_to_their_channel_when_a_hold_is_changed),
        claim(a_buyer_adds_nothing_to_a_hold_of_a_channel),
        claim(a_rescue_takes_them_from_their_channel),
        claim(blocking_for_another_channel_moves_them),
        claim(unblocking_for_a_channel_spares_the_others),
        claim(a_channel_s_places_that_are_due_can_be_put_back_on_sale),
        claim(blocking_is_all_or_nothing),
        claim(an_event_has_only_so_many_channels),
        claim(a_cancelled_sale_frees_its_places_once),
        claim(a_seat_is_sold_again_in_the_batch_that_takes_it_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
