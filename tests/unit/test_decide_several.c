/* Claims about several holds that are booked together: one of them, the carrier, takes over the
 * places of the others and is booked, or nothing changes.  tests/support/buyer.h says what is
 * checked after each step: among other things that a failed batch leaves no trace, and that another
 * server's view agrees. */
#include "support/buyer.h"

#include <string.h>

enum { FLOOR, BOX };
#define HOUSE 1 /* the first channel */

static struct shop shop;
static struct event *hall;

/* Seats 0 to 11 cost 2500.  An owner may have eight places, a hold seven. */
static int setup(void **state)
{
    (void)state;
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 1200);
    def_area(def, "Box", 9000, 3);
    def->terms.max_per_owner = 8;
    def->terms.max_per_hold = 7;
    shop_init(&shop, def);
    hall = shop.event;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

/* ---- helpers ---- */

/* What a hold is to have: seats from `first` on, and places of areas. */
struct wish {
    uint32_t first, n, floor, box;
    const char *owner;
    uint32_t channel;
};

static struct buyer hold(struct wish wish)
{
    struct ask a;
    uint32_t seats[SEATS_INLINE];
    for (uint32_t i = 0; i < wish.n; i++)
        seats[i] = wish.first + i;
    if (wish.n)
        ask_create_n(&a, hall, seats, wish.n);
    else
        ask_create_none(&a, hall);
    if (wish.floor)
        ask_area(&a, FLOOR, wish.floor);
    if (wish.box)
        ask_area(&a, BOX, wish.box);
    if (wish.owner)
        ask_owner(&a, wish.owner);
    a.c.create.channel = wish.channel;
    assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
    struct buyer b = {.shop = &shop,
                      .hold = a.c.create.hold.id,
                      .fence = a.c.create.hold.fence,
                      .amount = a.c.create.hold.amount};
    ask_close(&a);
    return b;
}

static void ask_all(struct ask *a, struct buyer *const *buyers, size_t n)
{
    ask_book(a, hall, &buyers[0]->hold);
    for (size_t i = 1; i < n; i++)
        ask_book_also(a, &buyers[i]->hold);
}

/* The holds that the last booking of book() is of; the first is the carrier's. */
static struct id booked[HOLDS_PER_BOOKING_MAX];
static uint32_t n_booked;

/* Books the holds together.  What is needed of the answer is kept with each of the buyers, whose
 * `hold` stays their own. */
static enum verdict book_n(struct buyer *const *buyers, size_t n)
{
    struct ask a;
    ask_all(&a, buyers, n);
    enum verdict verdict = shop_run(&shop, &a);
    const struct booking_create *op = a.c.booking_create;
    n_booked = 0;
    if (verdict_is_success(verdict)) {
        booked[n_booked++] = op->hold.id;
        for (uint32_t i = 0; i < op->booking.n_merged; i++)
            booked[n_booked++] = op->booking.merged[i];
        for (size_t i = 0; i < n; i++) {
            buyers[i]->booking = op->booking.id;
            buyers[i]->payment = op->payment.id;
            buyers[i]->amount = op->booking.amount;
        }
    }
    ask_close(&a);
    return verdict;
}
#define book(...)                                                                                  \
    book_n((struct buyer *const[]){__VA_ARGS__},                                                   \
           sizeof((struct buyer *const[]){__VA_ARGS__}) / sizeof(struct buyer *))

/* The booking is refused, for this hold, and no row changes. */
static void assert_refused_n(enum verdict wanted, const struct buyer *culprit,
                             struct buyer *const *buyers, size_t n)
{
    struct ask a;
    struct buf before = {0}, after = {0};
    paper_begin(&shop.paper); /* what is due ends first */
    paper_commit(&shop.paper);
    paper_dump(&shop.paper, &before);
    ask_all(&a, buyers, n);
    paper_begin(&shop.paper);
    assert_int_equal(paper_decide(&shop.paper, &a), DECIDED);
    assert_int_equal(a.c.verdict, wanted);
    if (culprit)
        assert_int_equal(a.c.booking_create->refused->id.key, culprit->hold.key);
    else
        assert_null(a.c.booking_create->refused);
    paper_commit(&shop.paper);
    paper_dump(&shop.paper, &after);
    assert_string_equal(before.data, after.data);
    buf_close(&before);
    buf_close(&after);
    ask_close(&a);
    paper_check(&shop.paper);
}
#define assert_refused(wanted, culprit, ...)                                                       \
    assert_refused_n(wanted, culprit, (struct buyer *const[]){__VA_ARGS__},                        \
                     sizeof((struct buyer *const[]){__VA_ARGS__}) / sizeof(struct buyer *))

static int64_t carrier_of(const struct buyer *b) { return buyer_hold_row(b)->carrier.id.key; }

static enum seat_status seat(uint32_t index) { return (enum seat_status)hall->seats[index].status; }

static enum verdict set_price(uint32_t index, int64_t price)
{
    struct ask a;
    ask_terms(&a, hall);
    ask_price(&a, index, price);
    return shop_do(&shop, &a);
}

static enum verdict renew(const struct buyer *b)
{
    struct ask a;
    ask_renew(&a, hall, &b->hold, 0);
    return shop_do(&shop, &a);
}

static enum verdict release(const struct buyer *b)
{
    struct ask a;
    ask_release(&a, hall, &b->hold);
    return shop_do(&shop, &a);
}

static enum verdict confirm(const struct buyer *b, bool rescue)
{
    struct ask a;
    ask_confirm(&a, hall, &b->hold, buyer_hold_row(b)->fence, rescue);
    return shop_do(&shop, &a);
}

static enum verdict add_seat(const struct buyer *b, uint32_t index)
{
    struct ask a;
    ask_change(&a, hall, &b->hold, buyer_hold_row(b)->fence);
    ask_add(&a, index);
    return shop_do(&shop, &a);
}

/* ---- what becomes of them ---- */

static void several_holds_become_one_booking(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 2, .floor = 1});
    struct buyer b = hold((struct wish){.first = 4, .n = 1, .box = 1, .floor = 2});
    struct buyer c = hold((struct wish){.first = 8, .n = 1, .floor = 1});
    assert_int_equal(book(&b, &c, &a), VERDICT_CREATED);
    assert_int_equal(n_booked, 3); /* the oldest may last least; the others by their keys */
    assert_int_equal(booked[0].key, a.hold.key);
    assert_int_equal(booked[1].key, b.hold.key);
    assert_int_equal(booked[2].key, c.hold.key);
    assert_memory_equal(booked[2].secret, c.hold.secret, ID_SECRET_SIZE);
    const struct hold_row *row = buyer_hold_row(&a);
    assert_int_equal(row->status, HOLD_ACTIVE);
    assert_true(row->fence > c.fence);
    assert_int_equal(row->n_seats, 4);
    assert_int_equal(row->n_areas, 2);
    assert_int_equal(area_claim_of(row->areas, row->n_areas, FLOOR), 4);
    assert_int_equal(area_claim_of(row->areas, row->n_areas, BOX), 1);
    assert_int_equal(row->amount, 4 * 2500 + 4 * 700 + 9000);
    assert_int_equal(buyer_payment(&a)->amount, row->amount);
    assert_int_equal(buyer_booking(&a), BOOKING_PENDING);
    for (size_t i = 0; i < row->n_seats; i++)
        assert_int_equal(seat_hold(hall, row->seats[i]), a.hold.key);
    const struct buyer *others[] = {&b, &c};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(buyer_hold_status(others[i]), HOLD_RELEASED);
        assert_int_equal(carrier_of(others[i]), a.hold.key);
        assert_null(paper_booking(&shop.paper, others[i]->hold.key));
    }
    assert_int_equal(buyer_hold_row(&b)->n_seats, 1); /* it goes on listing what it had */
    assert_int_equal(hall->areas[FLOOR].held, 4);
    assert_int_equal(buyer_told_captured(&a, a.amount), VERDICT_OK);
    assert_int_equal(buyer_booking(&a), BOOKING_CONFIRMED);
    assert_int_equal(hall->areas[FLOOR].booked, 4);
    assert_int_equal(hall->areas[BOX].booked, 1);
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(seat(4), SEAT_BOOKED);
    assert_int_equal(seat(8), SEAT_BOOKED);
}

/* Else a hold could be made to last by merging it into newer ones. */
static void the_one_that_may_last_least_carries_the_others(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct ask ask;
    ask_terms(&ask, hall);
    ask.c.event_change.given = EVENT_HOLD_MAX;
    ask.c.event_change.terms.hold_max_ms = DEF_TTL_MS;
    assert_int_equal(shop_do(&shop, &ask), VERDICT_OK);
    shop_pass_ms(&shop, 1000);
    struct buyer b = hold((struct wish){.first = 1, .n = 1});
    shop_pass_ms(&shop, 3000);
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(booked[0].key, b.hold.key);
    assert_int_equal(carrier_of(&a), b.hold.key);
    assert_int_equal(buyer_hold_row(&b)->expires_at, buyer_hold_row(&b)->max_expires_at);
    assert_true(buyer_hold_row(&b)->max_expires_at < buyer_hold_row(&a)->max_expires_at);
}

static void each_place_costs_what_it_was_held_at(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1, .floor = 1});
    assert_int_equal(set_price(0, 3000), VERDICT_OK);
    assert_int_equal(set_price(1, 800), VERDICT_OK);
    struct buyer b = hold((struct wish){.first = 1, .n = 2, .floor = 2, .box = 1});
    assert_int_equal(set_price(0, 9999), VERDICT_OK);
    assert_int_equal(set_price(1, 9999), VERDICT_OK);
    assert_int_equal(book(&b, &a), VERDICT_CREATED);
    assert_int_equal(a.amount, 2500 + 2 * 3000 + 700 + 2 * 800 + 9000);
    const struct hold_row *row = buyer_hold_row(&a);
    static const struct price_run wanted[] = {
        {2500, 1, 0}, {3000, 2, 0}, {700, 1, 0}, {800, 2, 0}, {9000, 1, 0}};
    assert_int_equal(row->n_prices, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(row->prices[i].price, wanted[i].price);
        assert_int_equal(row->prices[i].n, wanted[i].n);
    }
}

/* What schema 4 stored has no prices: its places cost what they cost now, as in a change. */
static void a_hold_without_prices_costs_todays(void **state)
{
    (void)state;
    struct ask ask;
    struct buyer a = hold((struct wish){.first = 0, .n = 1, .floor = 2});
    struct buyer b = hold((struct wish){.first = 1, .n = 2, .floor = 1});
    assert_int_equal(set_price(0, 3000), VERDICT_OK);
    assert_int_equal(set_price(1, 800), VERDICT_OK);
    paper_hold(&shop.paper, b.hold.key)->n_prices = 0;
    ask_all(&ask, (struct buyer *const[]){&a, &b}, 2);
    paper_begin(&shop.paper);
    assert_int_equal(paper_decide(&shop.paper, &ask), DECIDED);
    assert_int_equal(ask.c.booking_create->booking.amount, 2500 + 2 * 3000 + 2 * 700 + 800);
    paper_fail(&shop.paper);
    ask_close(&ask);
}

static void what_costs_nothing_is_sold_at_once(void **state)
{
    (void)state;
    assert_int_equal(set_price(0, 0), VERDICT_OK);
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct buyer b = hold((struct wish){.first = 5, .n = 2});
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(n_booked, 2);
    assert_int_equal(buyer_booking(&a), BOOKING_CONFIRMED);
    assert_int_equal(shop.paper.ledger.payments.n, 0);
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(seat(6), SEAT_BOOKED);
    assert_int_equal(carrier_of(&b), a.hold.key);
}

static void holds_of_a_channel_return_to_it(void **state)
{
    (void)state;
    struct ask ask;
    ask_seats(&ask, CMD_SEATS_BLOCK, hall, 3, 4);
    ask_area(&ask, FLOOR, 5);
    ask_channel(&ask, "house");
    assert_int_equal(shop_do(&shop, &ask), VERDICT_OK);
    struct buyer a = hold((struct wish){.first = 3, .n = 1, .floor = 1, .channel = HOUSE});
    struct buyer b = hold((struct wish){.first = 4, .n = 2, .floor = 2, .channel = HOUSE});
    struct buyer c = hold((struct wish){.first = 0, .n = 1});
    assert_refused(VERDICT_INVALID_REQUEST, &c, &a, &b, &c);
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(area_blocked_for(&hall->areas[FLOOR], HOUSE), 2);
    assert_int_equal(buyer_cancelled(&a), VERDICT_OK);
    assert_int_equal(area_blocked_for(&hall->areas[FLOOR], HOUSE), 5);
    assert_int_equal(seat(3), SEAT_BLOCKED);
    assert_int_equal(seat(4), SEAT_BLOCKED);
    assert_int_equal(seat(5), SEAT_AVAILABLE);
}

/* ---- limits ---- */

static void the_limits_of_holds_and_owners_do_not_stand_in_the_way(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 4, .owner = "ada"});
    struct buyer b = hold((struct wish){.first = 4, .n = 3, .floor = 1, .owner = "ada"});
    assert_int_equal(book(&a, &b), VERDICT_CREATED); /* one place more than a hold may have */
    struct ask ask;
    ask_create(&ask, hall, 9);
    ask_owner(&ask, "ada");
    assert_int_equal(shop_do(&shop, &ask), VERDICT_OWNER_LIMIT);
    assert_int_equal(buyer_told_captured(&a, a.amount), VERDICT_OK);
    ask_create(&ask, hall, 9);
    ask_owner(&ask, "ada");
    assert_int_equal(shop_do(&shop, &ask), VERDICT_OWNER_LIMIT);
    assert_int_equal(buyer_cancelled(&a), VERDICT_OK);
    ask_create(&ask, hall, 9);
    ask_owner(&ask, "ada");
    assert_int_equal(shop_do(&shop, &ask), VERDICT_CREATED);
}

static void a_booking_has_no_more_places_than_any_hold(void **state)
{
    (void)state;
    struct ask ask;
    ask_terms(&ask, hall);
    ask.c.event_change.given = EVENT_MAX_PER_HOLD;
    ask.c.event_change.terms.max_per_hold = HOLD_PLACES_MAX;
    assert_int_equal(shop_do(&shop, &ask), VERDICT_OK);
    struct buyer a = hold((struct wish){.first = 0, .n = 1, .floor = HOLD_PLACES_MAX / 2});
    struct buyer b = hold((struct wish){.floor = HOLD_PLACES_MAX / 2});
    struct buyer c = hold((struct wish){.floor = HOLD_PLACES_MAX / 2 - 1});
    assert_refused(VERDICT_TOO_MANY_SEATS, NULL, &a, &b);
    assert_int_equal(book(&a, &c), VERDICT_CREATED);
    assert_int_equal(hall->areas[FLOOR].held, HOLD_PLACES_MAX / 2 * 3 - 1);
}

/* A quarter of the TTL must remain to pay: 2.5 s here. */
static void the_carrier_must_leave_time_to_pay(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    for (int i = 0; i < 2; i++) {
        shop_pass_ms(&shop, DEF_TTL_MS - 1);
        assert_int_equal(renew(&a), VERDICT_OK);
    }
    shop_pass_ms(&shop, DEF_MAX_MS - 2 * (DEF_TTL_MS - 1) - 2499);
    struct buyer b = hold((struct wish){.first = 1, .n = 1});
    assert_refused(VERDICT_RENEWAL_CAP, NULL, &b, &a);
    assert_int_equal(book(&b), VERDICT_CREATED);
}

/* ---- all or nothing ---- */

static void one_that_cannot_be_booked_keeps_all_as_they_are(void **state)
{
    (void)state;
    struct buyer due = hold((struct wish){.first = 9, .n = 1});
    shop_pass_ms(&shop, 2000);
    struct buyer a = hold((struct wish){.first = 0, .n = 1, .floor = 1});
    struct buyer gone = hold((struct wish){.first = 1, .n = 1});
    struct buyer sold = hold((struct wish){.first = 2, .n = 1});
    struct buyer paying = hold((struct wish){.first = 3, .n = 1});
    struct buyer ada = hold((struct wish){.first = 4, .n = 1, .owner = "ada"});
    struct buyer bob = hold((struct wish){.first = 5, .n = 1, .owner = "bob"});
    struct buyer nobody = a;
    nobody.hold.secret[3] ^= 1;
    struct buyer nowhere = a;
    nowhere.hold.key += 1000;
    assert_int_equal(release(&gone), VERDICT_OK);
    assert_int_equal(confirm(&sold, false), VERDICT_CREATED);
    assert_int_equal(book(&paying), VERDICT_CREATED);
    assert_refused(VERDICT_HOLD_RELEASED, &gone, &a, &gone);
    assert_refused(VERDICT_BOOKING_EXISTS, &sold, &sold, &a);
    assert_refused(VERDICT_BOOKING_EXISTS, &paying, &a, &paying);
    assert_refused(VERDICT_NO_SUCH_HOLD, &nobody, &a, &nobody);
    assert_refused(VERDICT_NO_SUCH_HOLD, &nowhere, &nowhere, &a);
    assert_refused(VERDICT_INVALID_REQUEST, &ada, &a, &ada);
    assert_refused(VERDICT_INVALID_REQUEST, &bob, &ada, &bob);
    assert_refused(VERDICT_INVALID_REQUEST, &a, &ada, &a);
    shop_pass_ms(&shop, DEF_TTL_MS - 2000);
    assert_refused(VERDICT_HOLD_EXPIRED, &due, &a, &due);
    assert_int_equal(buyer_hold_status(&a), HOLD_ACTIVE);
    assert_int_equal(carrier_of(&a), 0);
}

/* It runs out in the very batch that is to book it. */
static void a_hold_that_expires_at_that_moment_is_not_booked(void **state)
{
    (void)state;
    struct buyer due = hold((struct wish){.first = 9, .n = 1});
    shop_pass_ms(&shop, 2000);
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    shop_pass_ms(&shop, DEF_TTL_MS - 2000);
    shop.paper.expire_max = 0; /* nothing ends by itself */
    assert_int_equal(book(&a, &due), VERDICT_HOLD_EXPIRED);
    assert_int_equal(buyer_hold_status(&due), HOLD_EXPIRED);
    assert_int_equal(buyer_hold_status(&a), HOLD_ACTIVE);
    assert_int_equal(seat(9), SEAT_AVAILABLE);
    assert_int_equal(seat(0), SEAT_HELD);
}

static void a_hold_of_another_event_is_refused(void **state)
{
    (void)state;
    struct ask ask;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct event *other = paper_event(&shop.paper, def_hall(1, 4));
    ask_create(&ask, other, 1);
    assert_int_equal(paper_run(&shop.paper, &ask), VERDICT_CREATED);
    struct buyer b = {.shop = &shop, .hold = ask.c.create.hold.id};
    ask_close(&ask);
    assert_refused(VERDICT_INVALID_REQUEST, &b, &a, &b);
}

static void of_two_bookings_that_share_a_hold_one_is_made(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct buyer b = hold((struct wish){.first = 1, .n = 1});
    struct buyer c = hold((struct wish){.first = 2, .n = 1});
    struct ask one, two;
    ask_all(&one, (struct buyer *const[]){&a, &b}, 2);
    ask_all(&two, (struct buyer *const[]){&b, &c}, 2);
    paper_begin(&shop.paper);
    assert_int_equal(paper_decide(&shop.paper, &one), DECIDED);
    assert_int_equal(paper_decide(&shop.paper, &two), DEFERRED);
    paper_commit(&shop.paper);
    assert_int_equal(one.c.verdict, VERDICT_CREATED);
    assert_int_equal(shop_run(&shop, &two), VERDICT_BOOKING_EXISTS);
    assert_int_equal(two.c.booking_create->refused->id.key, b.hold.key);
    assert_int_equal(buyer_hold_status(&c), HOLD_ACTIVE);
    ask_close(&one);
    ask_close(&two);
}

/* ---- afterwards ---- */

static void a_hold_that_was_booked_with_another_has_its_booking(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct buyer b = hold((struct wish){.first = 1, .n = 1});
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(renew(&b), VERDICT_BOOKING_EXISTS);
    assert_int_equal(release(&b), VERDICT_BOOKING_EXISTS);
    assert_int_equal(confirm(&b, false), VERDICT_BOOKING_EXISTS);
    assert_int_equal(add_seat(&b, 5), VERDICT_BOOKING_EXISTS);
    assert_int_equal(book(&b), VERDICT_BOOKING_EXISTS);
    assert_int_equal(buyer_told_captured(&a, a.amount), VERDICT_OK);
    assert_int_equal(renew(&b), VERDICT_BOOKING_EXISTS);
    assert_int_equal(confirm(&b, true), VERDICT_BOOKING_EXISTS);
    assert_int_equal(book(&b), VERDICT_BOOKING_EXISTS);
    assert_int_equal(book(&a, &b), VERDICT_BOOKING_EXISTS);
}

static void it_ends_with_its_carrier(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct buyer b = hold((struct wish){.first = 1, .n = 1});
    struct buyer c = hold((struct wish){.first = 2, .n = 1});
    struct buyer d = hold((struct wish){.first = 3, .n = 1});
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(book(&c, &d), VERDICT_CREATED);
    assert_int_equal(release(&a), VERDICT_OK);
    assert_int_equal(seat(1), SEAT_AVAILABLE);
    assert_int_equal(release(&b), VERDICT_OK); /* once more changes nothing */
    assert_int_equal(renew(&b), VERDICT_HOLD_RELEASED);
    assert_int_equal(book(&b), VERDICT_HOLD_RELEASED);
    shop.paper.expire_max = 0;
    shop_pass_ms(&shop, DEF_MAX_MS);
    assert_int_equal(renew(&d), VERDICT_HOLD_EXPIRED); /* of which the batch learns on the way */
    assert_int_equal(buyer_hold_status(&c), HOLD_EXPIRED);
    assert_int_equal(confirm(&d, true), VERDICT_HOLD_EXPIRED);
    assert_int_equal(release(&d), VERDICT_HOLD_EXPIRED);
    assert_int_equal(seat(3), SEAT_AVAILABLE);
}

static void late_money_rescues_all_places_or_none(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1, .floor = 1});
    struct buyer b = hold((struct wish){.first = 1, .n = 1, .floor = 2});
    struct buyer c = hold((struct wish){.first = 2, .n = 1});
    struct buyer d = hold((struct wish){.first = 3, .n = 1});
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(book(&c, &d), VERDICT_CREATED);
    shop_pass_ms(&shop, DEF_MAX_MS);
    struct buyer other = hold((struct wish){.first = 3, .n = 1});
    assert_int_equal(buyer_told_captured(&a, a.amount), VERDICT_OK);
    assert_int_equal(buyer_booking(&a), BOOKING_CONFIRMED);
    assert_int_equal(seat(1), SEAT_BOOKED);
    assert_int_equal(hall->areas[FLOOR].booked, 3);
    assert_int_equal(buyer_told_captured(&c, c.amount), VERDICT_OK);
    assert_int_equal(buyer_payment(&c)->status, PAYMENT_REFUNDING);
    assert_int_equal(buyer_refund(&c)->amount, 5000);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    assert_int_equal(buyer_hold_status(&other), HOLD_ACTIVE);
}

static void after_a_failed_payment_they_are_booked_again(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct buyer b = hold((struct wish){.first = 1, .n = 2});
    struct buyer *orders[][2] = {{&a, &b}, {&b, &a}};
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    for (size_t i = 0; i < 2; i++) { /* all of them, in any order */
        assert_int_equal(buyer_told_state(&a, INTENT_CANCELED), VERDICT_OK);
        assert_int_equal(buyer_booking(&a), BOOKING_FAILED);
        assert_int_equal(buyer_hold_status(&a), HOLD_ACTIVE);
        assert_int_equal(book(&b), VERDICT_BOOKING_EXISTS);
        assert_int_equal(book_n(orders[i], 2), VERDICT_CREATED);
        assert_int_equal(n_booked, 2);
        assert_int_equal(booked[0].key, a.hold.key);
        assert_int_equal(a.amount, 7500);
    }
    assert_int_equal(buyer_told_state(&a, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(book(&a), VERDICT_CREATED); /* or the one that has the places */
    assert_int_equal(n_booked, 2);
    assert_int_equal(booked[1].key, b.hold.key);
    assert_int_equal(buyer_told_captured(&a, a.amount), VERDICT_OK);
    assert_int_equal(seat(2), SEAT_BOOKED);
}

/* The carrier is merged in its turn, and what it had taken over goes with it. */
static void more_holds_come_to_it_after_a_failed_payment(void **state)
{
    (void)state;
    struct buyer a = hold((struct wish){.first = 0, .n = 1});
    struct buyer b = hold((struct wish){.first = 1, .n = 1});
    assert_int_equal(book(&a, &b), VERDICT_CREATED);
    assert_int_equal(buyer_told_state(&a, INTENT_CANCELED), VERDICT_OK);
    struct ask ask;
    ask_terms(&ask, hall);
    ask.c.event_change.given = EVENT_HOLD_MAX;
    ask.c.event_change.terms.hold_max_ms = DEF_TTL_MS;
    assert_int_equal(shop_do(&shop, &ask), VERDICT_OK);
    struct buyer c = hold((struct wish){.first = 2, .n = 1});
    assert_int_equal(book(&b, &c, &a), VERDICT_CREATED);
    assert_int_equal(n_booked, 3);
    assert_int_equal(booked[0].key, c.hold.key);
    assert_int_equal(booked[1].key, a.hold.key);
    assert_int_equal(booked[2].key, b.hold.key);
    assert_int_equal(carrier_of(&a), c.hold.key);
    assert_int_equal(carrier_of(&b), c.hold.key);
    assert_int_equal(carrier_of(&c), 0);
    assert_int_equal(renew(&b), VERDICT_BOOKING_EXISTS);
    assert_int_equal(buyer_told_captured(&c, c.amount), VERDICT_OK);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(seat_hold(hall, i), c.hold.key);
    assert_int_equal(buyer_refunded(&c, 2500), VERDICT_OK);
    assert_int_equal(buyer_refund(&c)->amount, 2500);
    assert_int_equal(buyer_cancelled(&c), VERDICT_OK);
    assert_int_equal(seat(1), SEAT_AVAILABLE);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(several_holds_become_one_booking),
        claim(the_one_that_may_last_least_carries_the_others),
        claim(each_place_costs_what_it_was_held_at),
        claim(a_hold_without_prices_costs_todays),
        claim(what_costs_nothing_is_sold_at_once),
        claim(holds_of_a_channel_return_to_it),
        claim(the_limits_of_holds_and_owners_do_not_stand_in_the_way),
        claim(a_booking_has_no_more_places_than_any_hold),
        claim(the_carrier_must_leave_time_to_pay),
        claim(one_that_cannot_be_booked_keeps_all_as_they_are),
        claim(a_hold_that_expires_at_that_moment_is_not_booked),
        claim(a_hold_of_another_event_is_refused),
        claim(of_two_bookings_that_share_a_hold_one_is_made),
        claim(a_hold_that_was_booked_with_another_has_its_booking),
        claim(it_ends_with_its_carrier),
        claim(late_money_rescues_all_places_or_none),
        claim(after_a_failed_payment_they_are_booked_again),
        claim(more_holds_come_to_it_after_a_failed_payment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
