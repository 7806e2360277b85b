/* Claims about money that goes back, about jobs and their reports, and about bookings that follow
 * on one that failed.  See buyer.h for what is checked after each step. */
#include "rules/payment.h"
#include "support/buyer.h"

#include <stdio.h>
#include <string.h>

static struct shop shop;
static struct buyer ada;

static int setup(void **state)
{
    (void)state;
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 10);
    shop_init(&shop, def);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

/* ---- helpers ---- */

static void ada_books(void)
{
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
}

static void ada_pays(void)
{
    ada_books();
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
}

/* Ada's money comes after she has given her hold back. */
static void ada_pays_too_late(void)
{
    struct ask a;
    ada_books();
    ask_release(&a, shop.event, &ada.hold);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
}

/* What became of the newest refund of ours at the provider, under an id made of its number. */
static void refund_is(enum refund_status status)
{
    const struct refund_row *f = buyer_refund(&ada);
    char id[32];
    snprintf(id, sizeof id, "re_%lld", (long long)f->refund);
    assert_int_equal(buyer_told_refund(&ada, id, f->refund, f->amount, status), VERDICT_OK);
}

static enum seat_status seat(uint32_t index)
{
    return (enum seat_status)shop.event->seats[index].status;
}

static size_t notices(enum notice notice)
{
    size_t n = 0;
    for (size_t i = 0; i < shop.paper.ledger.jobs.n; i++)
        n += shop.paper.ledger.jobs.v[i].kind == JOB_NOTIFY &&
             shop.paper.ledger.jobs.v[i].notice == notice;
    return n;
}

/* ---- money that comes too late ---- */

/* Rescue follows expiry only, never release, eviction or cancelling. */
static void money_for_a_released_hold_goes_back_once(void **state)
{
    (void)state;
    ada_pays_too_late();
    assert_false(ada.alarmed);
    assert_int_equal(buyer_hold_status(&ada), HOLD_RELEASED);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDING);
    assert_int_equal(buyer_refunds(&ada), 1);
    assert_int_equal(buyer_refund(&ada)->amount, 5000);
    assert_null(buyer_job(&ada)); /* there is nothing to cancel */
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_refunds(&ada), 1);
    refund_is(REFUND_PENDING);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(buyer_payment(&ada)->poll_at, shop.paper.now + 5000);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
    assert_int_equal(notices(NOTICE_BOOKING_FAILED), 1);
    assert_int_equal(notices(NOTICE_REFUND_SUCCEEDED), 1);
}

static void money_for_places_that_are_gone_goes_back(void **state)
{
    (void)state;
    struct buyer bob;
    ada_books();
    shop_pass_ms(&shop, DEF_MAX_MS);
    buyer_hold(&bob, &shop, 1, 1);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_hold_status(&ada), HOLD_EXPIRED);
    assert_int_equal(buyer_hold_status(&bob), HOLD_ACTIVE);
    assert_int_equal(buyer_refund(&ada)->amount, 5000);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
}

/* ---- money that we did not ask for ---- */

static void wrong_money_never_confirms_and_goes_back_in_full(void **state)
{
    (void)state;
    static const struct {
        int64_t amount, received;
        const char *currency;
    } wrong[] = {
        {4999, 4999, "EUR"}, {5000, 4999, "EUR"}, {5000, 5000, "USD"}, {5000, 9000, "EUR"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct news news = {.fact = {.is_current = true,
                                     .state = INTENT_CAPTURED,
                                     .amount = wrong[i].amount,
                                     .received = wrong[i].received}};
        ada_books();
        memcpy(news.fact.currency, wrong[i].currency, 4);
        assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
        assert_true(ada.alarmed);
        assert_true(buyer_payment(&ada)->is_wrong);
        assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
        assert_int_equal(buyer_hold_status(&ada), HOLD_ACTIVE);
        assert_int_equal(buyer_refund(&ada)->amount, wrong[i].received);
        /* later facts of the right amount do not make it right */
        assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
        assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
        refund_is(REFUND_SUCCEEDED);
        assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
        struct ask a;
        ask_release(&a, shop.event, &ada.hold);
        assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    }
}

static void wrong_money_for_booked_seats_frees_them(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
    assert_int_equal(buyer_told_captured(&ada, 4000), VERDICT_OK);
    assert_true(ada.alarmed);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(buyer_refund(&ada)->amount, 4000);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
}

/* The hold ends while wrong money is on its way back. */
static void wrong_money_goes_back_once_when_the_hold_ends_meanwhile(void **state)
{
    (void)state;
    ada_books();
    assert_int_equal(buyer_told_captured(&ada, 4000), VERDICT_OK);
    shop_pass_ms(&shop, DEF_MAX_MS);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_null(buyer_job(&ada));
    assert_int_equal(buyer_refunds(&ada), 1);
}

/* ---- refunds that fail ---- */

static void a_refund_that_fails_later_is_owed_again(void **state)
{
    (void)state;
    ada_pays_too_late();
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    refund_is(REFUND_FAILED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUND_FAILED);
    assert_int_equal(buyer_refunds(&ada), 2);
    assert_int_equal(buyer_refund(&ada)->status, REFUND_OWED);
    assert_int_equal(paper_job(&shop.paper, buyer_refund(&ada)->refund)->due_at,
                     shop.paper.now + HOUR_MS);
    assert_int_equal(notices(NOTICE_REFUND_FAILED), 1);
    shop_pass_ms(&shop, HOUR_MS);
    refund_is(REFUND_FAILED);
    assert_int_equal(buyer_refunds(&ada), 3);
    assert_int_equal(paper_job(&shop.paper, buyer_refund(&ada)->refund)->due_at,
                     shop.paper.now + 24 * HOUR_MS);
    shop_pass_ms(&shop, 24 * HOUR_MS);
    refund_is(REFUND_FAILED); /* that was the last try of ours */
    assert_int_equal(buyer_refunds(&ada), 3);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUND_FAILED);
    assert_int_equal(buyer_refunded(&ada, 0), VERDICT_OK); /* the seller tries again */
    assert_int_equal(buyer_refund(&ada)->amount, 5000);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
}

/* The seller gives a part back, which the provider does not take yet, and then cancels the booking:
 * the rest overtakes the part. */
static void a_refund_that_fails_after_a_later_one_is_owed_again_in_an_hour(void **state)
{
    (void)state;
    ada_pays();
    assert_int_equal(buyer_refunded(&ada, 1000), VERDICT_OK);
    const struct job_row part = *paper_job(&shop.paper, buyer_refund(&ada)->refund);
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    assert_int_equal(buyer_refund(&ada)->amount, 4000);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_reported(&ada, &part, JOB_RESULT_FAILED), VERDICT_OK);
    assert_int_equal(buyer_refunds(&ada), 3);
    assert_int_equal(buyer_refund(&ada)->status, REFUND_OWED);
    assert_int_equal(buyer_refund(&ada)->amount, 1000);
    assert_int_equal(paper_job(&shop.paper, buyer_refund(&ada)->refund)->due_at,
                     shop.paper.now + HOUR_MS);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDING); /* the latest has succeeded */
    shop_pass_ms(&shop, HOUR_MS);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
}

static void a_booking_whose_money_cannot_be_given_back_has_failed(void **state)
{
    (void)state;
    ada_pays_too_late();
    const struct job_row job = *paper_job(&shop.paper, buyer_refund(&ada)->refund);
    assert_int_equal(buyer_reported(&ada, &job, JOB_RESULT_FAILED), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUND_FAILED);
    assert_int_equal(notices(NOTICE_REFUND_FAILED), 1);
    assert_int_equal(buyer_refunds(&ada), 2); /* tried again in an hour */
    assert_null(paper_job(&shop.paper, job.job));
}

/* ---- sellers ---- */

static void a_seller_gives_money_back_and_the_seats_stay(void **state)
{
    (void)state;
    ada_pays();
    assert_int_equal(buyer_refunded(&ada, 1000), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDING);
    assert_int_equal(buyer_refund(&ada)->amount, 1000);
    assert_int_equal(buyer_refunded(&ada, 4001), VERDICT_NOT_REFUNDABLE);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_SUCCEEDED);
    assert_int_equal(buyer_refunded(&ada, 0), VERDICT_OK); /* the rest */
    assert_int_equal(buyer_refund(&ada)->amount, 4000);
    refund_is(REFUND_SUCCEEDED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
    assert_int_equal(buyer_refunded(&ada, 0), VERDICT_NOT_REFUNDABLE);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(seat(0), SEAT_BOOKED);
}

static void what_was_not_paid_cannot_be_given_back(void **state)
{
    (void)state;
    struct ask a;
    buyer_hold(&ada, &shop, 0, 2);
    ask_confirm(&a, shop.event, &ada.hold, ada.fence, false);
    assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
    ada.booking = a.c.confirm.booking.id;
    ask_close(&a);
    assert_int_equal(buyer_refunded(&ada, 0), VERDICT_NOT_REFUNDABLE);
    struct buyer bob;
    buyer_hold(&bob, &shop, 4, 1);
    assert_int_equal(buyer_book(&bob), VERDICT_CREATED);
    assert_int_equal(buyer_refunded(&bob, 1), VERDICT_NOT_REFUNDABLE);
    bob.booking.secret[0] ^= 1;
    assert_int_equal(buyer_refunded(&bob, 1), VERDICT_NO_SUCH_BOOKING);
    assert_int_equal(buyer_cancelled(&bob), VERDICT_NO_SUCH_BOOKING);
}

static void cancelling_gives_back_the_rest_and_frees_the_seats_once(void **state)
{
    (void)state;
    ada_pays();
    assert_int_equal(buyer_refunded(&ada, 1500), VERDICT_OK);
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CANCELLED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(buyer_refunds(&ada), 2);
    assert_int_equal(buyer_refund(&ada)->amount, 3500);
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK); /* again */
    assert_int_equal(buyer_refunds(&ada), 2);
    assert_int_equal(notices(NOTICE_BOOKING_CANCELLED), 1);
    assert_int_equal(notices(NOTICE_BOOKING_FAILED), 0);
}

static void cancelling_a_pending_booking_ends_its_hold_and_cancels_its_intent(void **state)
{
    (void)state;
    ada_books();
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CANCELLED);
    assert_int_equal(buyer_hold_status(&ada), HOLD_RELEASED);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK); /* it was too late to cancel */
    assert_false(ada.alarmed);
    assert_int_equal(buyer_booking(&ada), BOOKING_CANCELLED);
    assert_int_equal(buyer_refund(&ada)->amount, 5000);
    assert_null(buyer_job(&ada));
}

/* The seats are booked, and the money is being captured. */
static void cancelling_a_booking_that_is_charged_frees_its_seats(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CANCELLED);
    assert_int_equal(buyer_refunds(&ada), 0);
}

/* ---- the dashboard ---- */

static void refunds_of_the_dashboard_reduce_ours(void **state)
{
    (void)state;
    ada_pays_too_late();
    int64_t ours = buyer_refund(&ada)->refund;
    uint8_t key[JOB_KEY_SIZE];
    memcpy(key, paper_job(&shop.paper, ours)->key, sizeof key);
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 2000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(buyer_refund(&ada)->amount, 3000);
    assert_memory_not_equal(paper_job(&shop.paper, ours)->key, key, sizeof key);
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 2000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(buyer_refund(&ada)->amount, 3000); /* the same again */
    assert_int_equal(buyer_told_refund(&ada, "re_rest", 0, 3000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_null(buyer_refund(&ada));
    assert_null(paper_job(&shop.paper, ours));
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
}

static void a_refund_of_the_dashboard_that_fails_is_owed_by_us(void **state)
{
    (void)state;
    ada_pays_too_late();
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 5000, REFUND_PENDING), VERDICT_OK);
    assert_null(buyer_refund(&ada));
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 5000, REFUND_FAILED), VERDICT_OK);
    assert_int_equal(buyer_refund(&ada)->amount, 5000);
    assert_int_equal(buyer_refund(&ada)->status, REFUND_OWED);
}

static void refunds_of_the_dashboard_free_no_seats(void **state)
{
    (void)state;
    ada_pays();
    assert_int_equal(buyer_told_refund(&ada, "re_1", 0, 2000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_SUCCEEDED);
    assert_int_equal(buyer_refunded(&ada, 3001), VERDICT_NOT_REFUNDABLE);
    assert_int_equal(buyer_told_refund(&ada, "re_2", 0, 3000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK); /* there is nothing left to give back */
    assert_int_equal(buyer_refunds(&ada), 2);
}

static void disputes_are_recorded_by_amount_and_told_once(void **state)
{
    (void)state;
    struct news news = {.fact = {.disputed = 5000}};
    ada_pays();
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->disputed, 5000);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(notices(NOTICE_PAYMENT_DISPUTED), 1);
    assert_int_equal(buyer_refunds(&ada), 0);
}

/* Refunds and notifications draw their numbers from the event's fence, also where nothing else is
 * logged. */
static void numbers_are_never_given_twice(void **state)
{
    (void)state;
    struct buyer bob;
    ada_pays();
    buyer_hold(&bob, &shop, 4, 1);
    assert_int_equal(buyer_book(&bob), VERDICT_CREATED);
    assert_int_equal(buyer_told_captured(&bob, 2500), VERDICT_OK);
    assert_int_equal(buyer_told_refund(&ada, "re_1", 0, 100, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(buyer_told_refund(&ada, "re_2", 0, 100, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(buyer_told_refund(&bob, "re_3", 0, 100, REFUND_SUCCEEDED), VERDICT_OK);
    struct news news = {.fact = {.disputed = 100}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_told(&bob, &news), VERDICT_OK);
    const struct sim_ledger *p = &shop.paper.ledger;
    assert_int_equal(p->refunds.n, 3);
    for (size_t i = 0; i < p->refunds.n; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(p->refunds.v[i].refund, p->refunds.v[k].refund);
    assert_int_equal(notices(NOTICE_REFUND_SUCCEEDED), 3);
    assert_int_equal(notices(NOTICE_PAYMENT_DISPUTED), 2);
}

/* ---- one booking after another ---- */

static void a_booking_that_failed_may_be_followed_by_another(void **state)
{
    (void)state;
    ada_books();
    struct buyer first = ada;
    assert_int_equal(buyer_told_state(&first, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(buyer_booking(&first), BOOKING_FAILED);
    assert_int_equal(buyer_hold_status(&ada), HOLD_ACTIVE);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
    assert_int_equal(shop.paper.ledger.bookings_past.n, 1);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_CREATING);
    assert_int_equal(buyer_told_captured(&first, 5000), VERDICT_OK); /* what was canceled */
    assert_true(first.alarmed);
    assert_int_equal(buyer_refund(&first)->amount, 5000);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(buyer_refunds(&ada), 0);
    assert_int_equal(buyer_payment(&first)->status, PAYMENT_REFUNDING);
}

static void a_seller_may_confirm_what_failed_to_be_paid(void **state)
{
    (void)state;
    struct ask a;
    ada_books();
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    ask_confirm(&a, shop.event, &ada.hold, ada.fence, false);
    assert_int_equal(shop_do(&shop, &a), VERDICT_CREATED);
    assert_int_equal(shop.paper.ledger.bookings_past.n, 1);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_refund(&ada)->amount, 5000); /* it is not that booking's money */
    assert_int_equal(paper_booking(&shop.paper, ada.hold.key)->status, BOOKING_CONFIRMED);
}

/* A hold that ran out before the seller cancelled its booking is not sold after all. */
static void a_sale_that_was_taken_back_is_not_rescued(void **state)
{
    (void)state;
    struct ask a;
    ada_books();
    shop_pass_ms(&shop, DEF_MAX_MS);
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    assert_int_equal(buyer_hold_status(&ada), HOLD_EXPIRED);
    ask_confirm(&a, shop.event, &ada.hold, ada.fence, true);
    assert_int_equal(shop_do(&shop, &a), VERDICT_HOLD_EXPIRED);
    assert_int_equal(buyer_booking(&ada), BOOKING_CANCELLED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
}

static void attempts_to_pay_for_one_hold_are_limited(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, shop.event);
    a.c.event_change.given = EVENT_HOLD_TTL | EVENT_HOLD_MAX;
    a.c.event_change.terms.hold_ttl_ms = a.c.event_change.terms.hold_max_ms = HOUR_MS;
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    buyer_hold(&ada, &shop, 0, 1);
    for (int i = 0; i < BOOKINGS_PER_HOLD_MAX; i++) {
        assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
        assert_int_equal(buyer_told_state(&ada, INTENT_ABSENT), VERDICT_OK);
    }
    assert_int_equal(buyer_book(&ada), VERDICT_TOO_MANY_BOOKINGS);
    assert_int_equal(buyer_hold_status(&ada), HOLD_ACTIVE);
}

/* ---- jobs ---- */

static void a_job_that_is_tried_again_keeps_its_key_until_a_look_says_otherwise(void **state)
{
    (void)state;
    uint8_t key[JOB_KEY_SIZE];
    ada_books();
    memcpy(key, buyer_job(&ada)->key, sizeof key);
    struct news news = {.report = {.job = buyer_job(&ada)->job,
                                   .kind = JOB_CREATE,
                                   .result = JOB_RESULT_RETRY,
                                   .delay_ms = 700,
                                   .error = "timed out"}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_memory_equal(buyer_job(&ada)->key, key, sizeof key);
    assert_int_equal(buyer_job(&ada)->due_at, shop.paper.now + 700);
    assert_int_equal(buyer_job(&ada)->key_used_at, shop.paper.now);
    assert_int_equal(buyer_job(&ada)->attempts, 1);
    assert_string_equal(buyer_job(&ada)->error, "timed out");
    int64_t first_used_at = shop.paper.now;
    shop_pass_ms(&shop, 100);
    news.report.result = JOB_RESULT_CHECK;
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_memory_equal(buyer_job(&ada)->key, key, sizeof key);
    assert_true(buyer_job(&ada)->checks_first);
    assert_int_equal(buyer_job(&ada)->key_used_at, first_used_at);
    news.report.result = JOB_RESULT_NEW_KEY;
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_memory_not_equal(buyer_job(&ada)->key, key, sizeof key);
    assert_false(buyer_job(&ada)->checks_first);
    assert_int_equal(buyer_job(&ada)->key_used_at, 0);
    assert_int_equal(buyer_job(&ada)->attempts, 3);
}

/* A cancel took the place of the create that was under way; its report changes only the lease. */
static void the_report_of_a_job_that_was_replaced_frees_its_lease(void **state)
{
    (void)state;
    static const enum job_result results[] = {JOB_RESULT_RETRY, JOB_RESULT_CHECK, JOB_RESULT_DONE,
                                              JOB_RESULT_FAILED};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        struct ask a;
        ada_books();
        struct job_row create = *buyer_job(&ada);
        create.leased_until = shop.paper.now + JOB_LEASE_MS;
        paper_job(&shop.paper, create.job)->leased_until = create.leased_until;
        ask_release(&a, shop.event, &ada.hold);
        assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
        const struct job_row cancel = *buyer_job(&ada);
        assert_int_equal(cancel.kind, JOB_CANCEL);
        assert_int_equal(cancel.leased_until, shop.paper.now + JOB_LEASE_MS);
        assert_int_equal(buyer_reported(&ada, &create, results[i]), VERDICT_OK);
        assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
        assert_int_equal(buyer_job(&ada)->leased_until, 0);
        assert_int_equal(buyer_job(&ada)->due_at, cancel.due_at);
        assert_int_equal(buyer_job(&ada)->attempts, 0);
        assert_memory_equal(buyer_job(&ada)->key, cancel.key, JOB_KEY_SIZE);
    }
}

/* The first server took so long that another one runs the job by now. */
static void a_report_under_an_old_lease_leaves_the_new_one(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    int64_t job = buyer_job(&ada)->job, leased_until = shop.paper.now + JOB_LEASE_MS;
    paper_job(&shop.paper, job)->leased_until = leased_until;
    struct news news = {.fact = {.is_current = true, .state = INTENT_AUTHORIZED},
                        .report = {.job = job,
                                   .kind = JOB_CREATE,
                                   .result = JOB_RESULT_DONE,
                                   .leased_until = leased_until - 1}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CAPTURE); /* what it told of counts */
    assert_int_equal(buyer_job(&ada)->leased_until, leased_until);
}

/* The provider answered, but the intent is still not decided. */
static void a_cancel_that_left_the_intent_open_is_owed_again_after_a_look(void **state)
{
    (void)state;
    struct ask a;
    ada_books();
    ask_release(&a, shop.event, &ada.hold);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    struct news news = {
        .fact = {.is_current = true, .state = INTENT_PROCESSING},
        .report = {.job = buyer_job(&ada)->job, .kind = JOB_CANCEL, .result = JOB_RESULT_DONE}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_true(buyer_job(&ada)->checks_first);
    assert_true(buyer_job(&ada)->due_at > shop.paper.now);
}

/* A look at the provider finds refunds of the dashboard beside ours, which was not made. */
static void a_job_whose_amount_changes_gets_another_key(void **state)
{
    (void)state;
    static const enum job_result results[] = {JOB_RESULT_RETRY, JOB_RESULT_NEW_KEY};
    for (size_t i = 0; i < 2; i++) {
        ada_pays_too_late();
        const struct job_row job = *paper_job(&shop.paper, buyer_refund(&ada)->refund);
        struct refund_fact dash = {.amount = 2000, .status = REFUND_SUCCEEDED};
        snprintf(dash.id, sizeof dash.id, "re_dash%zu", i);
        struct news news = {
            .report = {.job = job.job, .kind = JOB_REFUND, .result = results[i], .delay_ms = 100}};
        *vec_push(&news.fact.refunds) = dash;
        assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
        fact_close(&news.fact);
        assert_int_equal(paper_job(&shop.paper, job.job)->amount, 3000);
        assert_memory_not_equal(paper_job(&shop.paper, job.job)->key, job.key, JOB_KEY_SIZE);
    }
}

/* A refund that is under way is not made a second time beside itself. */
static void a_refund_that_is_reduced_while_it_is_made_keeps_its_lease(void **state)
{
    (void)state;
    ada_pays_too_late();
    int64_t job = buyer_refund(&ada)->refund;
    paper_job(&shop.paper, job)->leased_until = shop.paper.now + JOB_LEASE_MS;
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 2000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(paper_job(&shop.paper, job)->amount, 3000);
    assert_int_equal(paper_job(&shop.paper, job)->leased_until, shop.paper.now + JOB_LEASE_MS);
}

/* Ours of 5000 was reduced while it was under way, and was made all the same. */
static void a_refund_counts_by_the_amount_that_the_provider_names(void **state)
{
    (void)state;
    ada_pays_too_late();
    int64_t refund = buyer_refund(&ada)->refund;
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 2000, REFUND_PENDING), VERDICT_OK);
    assert_int_equal(buyer_told_refund(&ada, "re_dash", 0, 2000, REFUND_FAILED), VERDICT_OK);
    assert_int_equal(buyer_told_refund(&ada, "re_ada", refund, 5000, REFUND_SUCCEEDED), VERDICT_OK);
    assert_int_equal(sim_refund(&shop.paper.ledger, ada.hold.key, refund)->amount, 5000);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
    assert_int_equal(buyer_refunds(&ada),
                     2); /* what was owed for the dashboard's is not any more */
}

static void a_notification_ends_delivered_or_failed(void **state)
{
    (void)state;
    static const enum job_result results[] = {JOB_RESULT_DONE, JOB_RESULT_FAILED};
    static const enum job_status ends[] = {JOB_DONE, JOB_FAILED};
    for (size_t i = 0; i < 2; i++) {
        ada_pays();
        int64_t notice = 0;
        for (size_t k = 0; k < shop.paper.ledger.jobs.n; k++)
            if (shop.paper.ledger.jobs.v[k].booking == ada.hold.key)
                notice = shop.paper.ledger.jobs.v[k].job;
        struct ask a;
        ask_update(&a, shop.event, &ada.payment);
        a.c.update->has_payment = false;
        a.c.update->report =
            (struct job_report){.job = notice, .kind = JOB_NOTIFY, .result = results[i]};
        assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
        assert_int_equal(paper_job(&shop.paper, notice)->status, ends[i]);
        assert_int_equal(paper_job(&shop.paper, notice)->ended_at, shop.paper.now);
        assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    }
}

static void the_shop_is_told_only_what_it_wants_to_hear(void **state)
{
    (void)state;
    shop.paper.decision->notices = 1u << NOTICE_BOOKING_CANCELLED;
    ada_pays();
    assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    assert_int_equal(notices(NOTICE_BOOKING_CANCELLED), 1);
    assert_int_equal(notices(NOTICE_BOOKING_CONFIRMED), 0);
}

/* ---- after a restore ---- */

/* A restore owes a poll of Ada's payment, as src/ledger/restore.c does it. */
static const struct job_row *owe_poll(void)
{
    struct sim_event *stored = sim_event(&shop.paper.ledger, 1);
    int64_t number = HOLD_KEY(shop.event->def->id.key, ++stored->clock.fence);
    shop.event->clock = shop.event->draft = stored->clock;
    *vec_push(&shop.paper.ledger.jobs) =
        (struct job_row){.booking = ada.hold.key,
                         .job = number,
                         .kind = JOB_POLL,
                         .status = JOB_OWED,
                         .payment_no = buyer_payment(&ada)->payment};
    return paper_job(&shop.paper, number);
}

/* What the answer to the poll says: all is captured, and `returned` of it has gone back. */
static enum verdict poll_answers(const struct job_row *poll, int64_t returned)
{
    struct news news = {
        .fact = {.is_current = true, .state = INTENT_CAPTURED, .amount = 5000, .received = 5000},
        .report = {.job = poll->job, .kind = JOB_POLL, .result = JOB_RESULT_DONE}};
    if (returned)
        *vec_push(&news.fact.refunds) =
            (struct refund_fact){.id = "re_1", .amount = returned, .status = REFUND_SUCCEEDED};
    enum verdict verdict = buyer_told(&ada, &news);
    fact_close(&news.fact);
    return verdict;
}

static int64_t returned_of_ada(void)
{
    return payment_balance(buyer_payment(&ada), shop.paper.ledger.refunds.v,
                           shop.paper.ledger.refunds.n)
        .settled;
}

static void a_poll_that_is_owed_ends_only_with_an_answer(void **state)
{
    (void)state;
    ada_pays();
    int64_t job = owe_poll()->job;
    static const enum job_result failures[] = {JOB_RESULT_RETRY, JOB_RESULT_CHECK};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        assert_int_equal(buyer_reported(&ada, paper_job(&shop.paper, job), failures[i]),
                         VERDICT_OK);
        assert_int_equal(paper_job(&shop.paper, job)->attempts, i + 1);
    }
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK); /* another call shows it */
    assert_int_equal(buyer_refunded(&ada, 100), VERDICT_OK);
    assert_int_equal(
        buyer_told_refund(&ada, "re_0", buyer_refund(&ada)->refund, 100, REFUND_SUCCEEDED),
        VERDICT_OK);
    assert_non_null(paper_job(&shop.paper, job));
    assert_int_equal(poll_answers(paper_job(&shop.paper, job), 1000), VERDICT_OK);
    assert_null(paper_job(&shop.paper, job));
    assert_int_equal(returned_of_ada(), 1100);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
}

/* It was paid and given back after the backup. */
static void money_that_came_and_went_since_the_backup_buys_nothing(void **state)
{
    (void)state;
    ada_books();
    const struct job_row *poll = owe_poll();
    shop_pass_ms(&shop, DEF_TTL_MS);
    const struct news old = {.fact = {.state = INTENT_CAPTURED, .amount = 5000, .received = 5000},
                             .webhook = "evt_1"};
    assert_int_equal(buyer_told(&ada, &old), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->received, 0); /* the poll tells more than the webhook */
    assert_int_equal(poll_answers(paper_job(&shop.paper, poll->job), 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_REFUNDED);
    assert_int_equal(returned_of_ada(), 5000);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(shop.paper.ledger.jobs.n, notices(NOTICE_BOOKING_FAILED) +
                                                   notices(NOTICE_REFUND_SUCCEEDED) +
                                                   notices(NOTICE_HOLD_EXPIRED));
}

static void money_that_came_since_the_backup_buys_what_is_free(void **state)
{
    (void)state;
    ada_books();
    const struct job_row *poll = owe_poll();
    shop_pass_ms(&shop, DEF_TTL_MS);
    assert_int_equal(poll_answers(poll, 1000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(returned_of_ada(), 1000);
}

static void a_payment_that_is_canceled_owes_no_poll(void **state)
{
    (void)state;
    ada_books();
    int64_t job = owe_poll()->job;
    shop_pass_ms(&shop, DEF_TTL_MS);
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_null(paper_job(&shop.paper, job));
}

/* ---- owners ---- */

/* Places that are paid for count for their owner, also at servers that only follow. */
static void places_that_are_paid_back_no_longer_count_for_their_owner(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, shop.event);
    a.c.event_change.given = EVENT_MAX_PER_OWNER;
    a.c.event_change.terms.max_per_owner = 2;
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        ask_create(&a, shop.event, 0, 1);
        ask_owner(&a, "ada");
        assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
        ada = (struct buyer){.shop = &shop, .hold = a.c.create.hold.id, .amount = 5000};
        ask_close(&a);
        assert_int_equal(by_hand ? buyer_book_by_hand(&ada) : buyer_book(&ada), VERDICT_CREATED);
        if (by_hand)
            assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
        else
            assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
        ask_create(&a, shop.event, 5);
        ask_owner(&a, "ada");
        assert_int_equal(shop_do(&shop, &a), VERDICT_OWNER_LIMIT);
        if (by_hand)
            assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
        else
            assert_int_equal(buyer_cancelled(&ada), VERDICT_OK);
    }
    ask_create(&a, shop.event, 5);
    ask_owner(&a, "ada");
    assert_int_equal(shop_do(&shop, &a), VERDICT_CREATED);
}

static void hold_of_ada(uint32_t first, uint32_t second)
{
    struct ask a;
    ask_create(&a, shop.event, first, second);
    ask_owner(&a, "ada");
    assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
    ada = (struct buyer){.shop = &shop, .hold = a.c.create.hold.id, .amount = 5000};
    ask_close(&a);
}

static void ask_limit(struct ask *a, int32_t limit)
{
    ask_terms(a, shop.event);
    a->c.event_change.given = EVENT_MAX_PER_OWNER;
    a->c.event_change.terms.max_per_owner = limit;
}

/* Ada's first hold expires before it is paid, and she buys two other seats.  Returns the buyer of
 * the first hold. */
static struct buyer ada_buys_again(void)
{
    hold_of_ada(0, 1);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
    struct buyer late = ada;
    shop_pass_ms(&shop, DEF_TTL_MS);
    hold_of_ada(4, 5);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    return late;
}

static void goes_back(struct buyer *late)
{
    assert_int_equal(buyer_told_captured(late, 5000), VERDICT_OK);
    assert_false(late->alarmed);
    assert_int_equal(buyer_payment(late)->status, PAYMENT_REFUNDING);
    assert_int_equal(buyer_refund(late)->amount, 5000);
    assert_int_equal(buyer_hold_status(late), HOLD_EXPIRED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
}

static void late_money_over_the_limit_of_the_owner_goes_back(void **state)
{
    (void)state;
    struct ask a;
    ask_limit(&a, 3);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    struct buyer late = ada_buys_again();
    goes_back(&late);
}

static void late_money_within_the_limit_of_the_owner_buys(void **state)
{
    (void)state;
    struct ask a;
    ask_limit(&a, 4);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    struct buyer late = ada_buys_again();
    assert_int_equal(buyer_told_captured(&late, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&late), BOOKING_CONFIRMED);
}

/* What the owner has booked is counted by the next batch, which judges the money. */
static void late_money_waits_for_a_limit_that_its_batch_sets(void **state)
{
    (void)state;
    struct ask limit, told;
    struct buyer late = ada_buys_again();
    ask_limit(&limit, 3);
    ask_update(&told, shop.event, &late.payment);
    told.c.update->fact = (struct fact){
        .is_current = true, .state = INTENT_CAPTURED, .amount = 5000, .received = 5000};
    paper_begin(&shop.paper);
    assert_int_equal(paper_decide(&shop.paper, &limit), DECIDED);
    assert_int_equal(paper_decide(&shop.paper, &told), DEFERRED);
    paper_commit(&shop.paper);
    ask_close(&limit);
    ask_close(&told);
    goes_back(&late);
}

/* Seats that are free again because the captured amount was wrong count no longer, though the hold
 * stays confirmed while the money goes back. */
static void places_of_wrong_money_do_not_count_for_their_owner(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, shop.event);
    a.c.event_change.given = EVENT_MAX_PER_OWNER;
    a.c.event_change.terms.max_per_owner = 2;
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    ask_create(&a, shop.event, 0, 1);
    ask_owner(&a, "ada");
    assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
    ada = (struct buyer){.shop = &shop, .hold = a.c.create.hold.id, .amount = 5000};
    ask_close(&a);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
    assert_int_equal(buyer_told_captured(&ada, 4000), VERDICT_OK);
    paper_reload(&shop.paper, shop.event);
    ask_create(&a, shop.event, 5, 6);
    ask_owner(&a, "ada");
    assert_int_equal(shop_do(&shop, &a), VERDICT_CREATED);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(money_for_a_released_hold_goes_back_once),
        claim(money_for_places_that_are_gone_goes_back),
        claim(wrong_money_never_confirms_and_goes_back_in_full),
        claim(wrong_money_for_booked_seats_frees_them),
        claim(wrong_money_goes_back_once_when_the_hold_ends_meanwhile),
        claim(a_refund_that_fails_later_is_owed_again),
        claim(a_refund_that_fails_after_a_later_one_is_owed_again_in_an_hour),
        claim(a_booking_whose_money_cannot_be_given_back_has_failed),
        claim(a_seller_gives_money_back_and_the_seats_stay),
        claim(what_was_not_paid_cannot_be_given_back),
        claim(cancelling_gives_back_the_rest_and_frees_the_seats_once),
        claim(cancelling_a_pending_booking_ends_its_hold_and_cancels_its_intent),
        claim(cancelling_a_booking_that_is_charged_frees_its_seats),
        claim(refunds_of_the_dashboard_reduce_ours),
        claim(a_refund_of_the_dashboard_that_fails_is_owed_by_us),
        claim(refunds_of_the_dashboard_free_no_seats),
        claim(disputes_are_recorded_by_amount_and_told_once),
        claim(numbers_are_never_given_twice),
        claim(a_booking_that_failed_may_be_followed_by_another),
        claim(a_seller_may_confirm_what_failed_to_be_paid),
        claim(a_sale_that_was_taken_back_is_not_rescued),
        claim(attempts_to_pay_for_one_hold_are_limited),
        claim(a_job_that_is_tried_again_keeps_its_key_until_a_look_says_otherwise),
        claim(the_report_of_a_job_that_was_replaced_frees_its_lease),
        claim(a_report_under_an_old_lease_leaves_the_new_one),
        claim(a_cancel_that_left_the_intent_open_is_owed_again_after_a_look),
        claim(a_job_whose_amount_changes_gets_another_key),
        claim(a_refund_that_is_reduced_while_it_is_made_keeps_its_lease),
        claim(a_refund_counts_by_the_amount_that_the_provider_names),
        claim(a_notification_ends_delivered_or_failed),
        claim(the_shop_is_told_only_what_it_wants_to_hear),
        claim(places_that_are_paid_back_no_longer_count_for_their_owner),
        claim(a_poll_that_is_owed_ends_only_with_an_answer),
        claim(money_that_came_and_went_since_the_backup_buys_nothing),
        claim(money_that_came_since_the_backup_buys_what_is_free),
        claim(a_payment_that_is_canceled_owes_no_poll),
        claim(late_money_over_the_limit_of_the_owner_goes_back),
        claim(late_money_within_the_limit_of_the_owner_buys),
        claim(late_money_waits_for_a_limit_that_its_batch_sets),
        claim(places_of_wrong_money_do_not_count_for_their_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
