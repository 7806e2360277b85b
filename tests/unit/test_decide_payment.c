/* Claims about paying for a hold: making a booking, what the provider's facts do to it, and the
 * jobs that are owed.  tests/support/buyer.h says what is checked after each step: among other
 * things that a failed batch leaves no trace, and that another server's view agrees.  Money that
 * goes back is in test_decide_refund.c. */
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

/* Ada's intent is made, and the job that made it reports so. */
static void ada_gets_her_intent(void)
{
    struct news news = {
        .fact = {.is_current = true,
                 .state = INTENT_REQUIRES_PAYMENT,
                 .amount = ada.amount,
                 .intent = "pi_ada",
                 .client_secret = "pi_ada_secret"},
        .report = {.job = buyer_job(&ada)->job, .kind = JOB_CREATE, .result = JOB_RESULT_DONE}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
}

static enum verdict renew(const struct buyer *b)
{
    struct ask a;
    ask_renew(&a, shop.event, &b->hold, 0);
    return shop_do(&shop, &a);
}

static enum verdict release(const struct buyer *b)
{
    struct ask a;
    ask_release(&a, shop.event, &b->hold);
    return shop_do(&shop, &a);
}

static enum verdict set_status(enum command_kind kind)
{
    struct ask a;
    ask_event(&a, kind, shop.event);
    return shop_do(&shop, &a);
}

static void expire(void) { shop_pass_ms(&shop, DEF_MAX_MS); }

static enum seat_status seat(uint32_t index)
{
    return (enum seat_status)shop.event->seats[index].status;
}

/* How many notifications of this kind are owed or were sent. */
static size_t notices(enum notice notice)
{
    size_t n = 0;
    for (size_t i = 0; i < shop.paper.ledger.jobs.n; i++)
        n += shop.paper.ledger.jobs.v[i].kind == JOB_NOTIFY &&
             shop.paper.ledger.jobs.v[i].notice == notice;
    return n;
}

/* ---- making a booking ---- */

static void a_booking_is_pending_and_owes_its_intent(void **state)
{
    (void)state;
    ada_books();
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(buyer_hold_status(&ada), HOLD_ACTIVE);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_CREATING);
    assert_int_equal(buyer_payment(&ada)->amount, 5000);
    assert_string_equal(buyer_payment(&ada)->currency, "EUR");
    assert_int_equal(buyer_job(&ada)->kind, JOB_CREATE);
    assert_int_equal(buyer_job(&ada)->amount, 5000);
    assert_int_equal(buyer_job(&ada)->due_at, shop.paper.now);
    assert_int_equal(seat(0), SEAT_HELD);
}

static void making_a_booking_renews_the_hold(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 1);
    shop_pass_ms(&shop, 4000);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_hold_row(&ada)->expires_at, shop.paper.now + DEF_TTL_MS);
    assert_int_equal(buyer_hold_row(&ada)->fence, ada.fence);
}

/* A quarter of the TTL must remain to pay: 2.5 s here. */
static void a_hold_near_its_cap_cannot_be_booked(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 1);
    for (int i = 0; i < 2; i++) {
        shop_pass_ms(&shop, DEF_TTL_MS - 1);
        assert_int_equal(renew(&ada), VERDICT_OK);
    }
    shop_pass_ms(&shop, DEF_MAX_MS - 2 * (DEF_TTL_MS - 1) - 2500);
    struct buyer late = ada;
    shop_pass_ms(&shop, 1);
    assert_int_equal(buyer_book(&late), VERDICT_RENEWAL_CAP);
    assert_int_equal(shop.paper.ledger.payments.n, 0);
    assert_int_equal(shop.paper.ledger.jobs.n, 0);
    assert_int_equal(buyer_hold_status(&late), HOLD_ACTIVE);
    shop_pass_ms(&shop, -1);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_hold_row(&ada)->expires_at, buyer_hold_row(&ada)->max_expires_at);
}

/* However long an event's holds are, a minute is enough. */
static void a_minute_is_enough_to_pay(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, shop.event);
    a.c.event_change.given = EVENT_HOLD_TTL | EVENT_HOLD_MAX;
    a.c.event_change.terms.hold_ttl_ms = a.c.event_change.terms.hold_max_ms = HOUR_MS;
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    buyer_hold(&ada, &shop, 0, 1);
    shop_pass_ms(&shop, HOUR_MS - MINUTE_MS + 1);
    assert_int_equal(buyer_book(&ada), VERDICT_RENEWAL_CAP);
    shop_pass_ms(&shop, -1);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
}

static void a_pending_booking_keeps_its_hold_as_it_is(void **state)
{
    (void)state;
    struct ask a;
    ada_books();
    ask_change(&a, shop.event, &ada.hold, ada.fence);
    ask_add(&a, 5);
    assert_int_equal(shop_do(&shop, &a), VERDICT_BOOKING_EXISTS);
    ask_confirm(&a, shop.event, &ada.hold, ada.fence, false);
    assert_int_equal(shop_do(&shop, &a), VERDICT_BOOKING_EXISTS);
    assert_int_equal(buyer_book(&ada), VERDICT_BOOKING_EXISTS);
    shop_pass_ms(&shop, 3000);
    assert_int_equal(renew(&ada), VERDICT_OK);
    assert_int_equal(buyer_hold_row(&ada)->expires_at, shop.paper.now + DEF_TTL_MS);
    expire();
    ask_confirm(&a, shop.event, &ada.hold, ada.fence, true);
    assert_int_equal(shop_do(&shop, &a), VERDICT_BOOKING_EXISTS);
}

static void a_hold_that_has_ended_cannot_be_booked(void **state)
{
    (void)state;
    struct buyer bob;
    struct ask a;
    buyer_hold(&ada, &shop, 0, 1);
    buyer_hold(&bob, &shop, 1, 1);
    ask_confirm(&a, shop.event, &bob.hold, bob.fence, false);
    assert_int_equal(shop_do(&shop, &a), VERDICT_CREATED);
    assert_int_equal(buyer_book(&bob), VERDICT_BOOKING_EXISTS);
    assert_int_equal(release(&ada), VERDICT_OK);
    assert_int_equal(buyer_book(&ada), VERDICT_HOLD_RELEASED);
    buyer_hold(&ada, &shop, 0, 1);
    expire();
    assert_int_equal(buyer_book(&ada), VERDICT_HOLD_EXPIRED);
    ada.hold.secret[0] ^= 1;
    assert_int_equal(buyer_book(&ada), VERDICT_NO_SUCH_HOLD);
}

static enum verdict book_with_minimum(int64_t amount_min)
{
    struct ask a;
    ask_book(&a, shop.event, &ada.hold);
    a.c.booking_create->amount_min = amount_min;
    return shop_do(&shop, &a);
}

static void too_small_an_amount_is_refused_and_the_hold_kept(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 1);
    assert_int_equal(book_with_minimum(2501), VERDICT_AMOUNT_TOO_SMALL);
    assert_int_equal(buyer_hold_status(&ada), HOLD_ACTIVE);
    assert_int_equal(buyer_booking(&ada), BOOKING_NONE);
    assert_int_equal(book_with_minimum(-1), VERDICT_PAYMENTS_OFF);
    assert_int_equal(book_with_minimum(2500), VERDICT_CREATED);
}

static void what_costs_nothing_is_confirmed_at_once(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, shop.event);
    ask_price(&a, 0, 0);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    buyer_hold(&ada, &shop, 0, 1);
    assert_int_equal(book_with_minimum(-1), VERDICT_CREATED); /* it needs no provider */
    assert_int_equal(paper_booking(&shop.paper, ada.hold.key)->status, BOOKING_CONFIRMED);
    assert_int_equal(paper_booking(&shop.paper, ada.hold.key)->payment, 0);
    assert_int_equal(shop.paper.ledger.payments.n, 0);
    assert_int_equal(notices(NOTICE_BOOKING_CONFIRMED), 1);
    assert_int_equal(seat(0), SEAT_BOOKED);
}

/* ---- before money ---- */

static void intents_go_back(void **state)
{
    (void)state;
    static const enum intent_state way[] = {INTENT_REQUIRES_ACTION, INTENT_PROCESSING,
                                            INTENT_REQUIRES_PAYMENT, INTENT_REQUIRES_ACTION,
                                            INTENT_REQUIRES_PAYMENT};
    static const enum payment_status shown[] = {PAYMENT_REQUIRES_ACTION, PAYMENT_PROCESSING,
                                                PAYMENT_REQUIRES_PAYMENT, PAYMENT_REQUIRES_ACTION,
                                                PAYMENT_REQUIRES_PAYMENT};
    ada_books();
    ada_gets_her_intent();
    assert_string_equal(buyer_payment(&ada)->intent, "pi_ada");
    assert_string_equal(buyer_payment(&ada)->client_secret, "pi_ada_secret");
    assert_null(buyer_job(&ada));
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        assert_int_equal(buyer_told_state(&ada, way[i]), VERDICT_OK);
        assert_int_equal(buyer_payment(&ada)->status, shown[i]);
        assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    }
}

/* A webhook shows the intent as it was, so what it says beside money only makes us ask. */
static void a_webhook_about_the_way_to_money_only_asks(void **state)
{
    (void)state;
    ada_books();
    ada_gets_her_intent();
    assert_int_equal(buyer_told_state(&ada, INTENT_PROCESSING), VERDICT_OK);
    struct news news = {.fact = {.state = INTENT_REQUIRES_PAYMENT, .asks = true},
                        .webhook = "evt_1"};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_PROCESSING);
    assert_int_equal(buyer_payment(&ada)->poll_at, shop.paper.now);
}

static void a_declined_card_leaves_hold_and_booking_with_the_buyer(void **state)
{
    (void)state;
    ada_books();
    ada_gets_her_intent();
    struct news news = {
        .fact = {.is_current = true,
                 .state = INTENT_REQUIRES_PAYMENT,
                 .error = {.code = "card_declined", .decline_code = "insufficient_funds"}}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_string_equal(buyer_payment(&ada)->error.decline_code, "insufficient_funds");
    assert_int_equal(buyer_told_state(&ada, INTENT_REQUIRES_PAYMENT), VERDICT_OK);
    assert_string_equal(buyer_payment(&ada)->error.code, "card_declined");
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_string_equal(buyer_payment(&ada)->error.code, "");
}

/* ---- money ---- */

static void money_for_a_live_hold_confirms_it(void **state)
{
    (void)state;
    ada_books();
    ada_gets_her_intent();
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(buyer_hold_status(&ada), HOLD_CONFIRMED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_SUCCEEDED);
    assert_int_equal(buyer_payment(&ada)->received, 5000);
    assert_string_equal(buyer_payment(&ada)->client_secret, "");
    assert_int_equal(buyer_payment(&ada)->poll_at, 0);
    assert_null(buyer_job(&ada));
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(notices(NOTICE_BOOKING_CONFIRMED), 1);
}

/* The answer to the call that was to create the intent was lost, and the buyer paid. */
static void money_may_come_before_the_news_of_its_intent(void **state)
{
    (void)state;
    ada_books();
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_null(buyer_job(&ada));
}

static void facts_that_come_again_or_late_change_nothing(void **state)
{
    (void)state;
    static const enum intent_state late[] = {INTENT_UNSAID, INTENT_REQUIRES_PAYMENT,
                                             INTENT_REQUIRES_ACTION, INTENT_PROCESSING,
                                             INTENT_AUTHORIZED};
    ada_books();
    ada_gets_her_intent();
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        assert_int_equal(buyer_told_state(&ada, late[i]), VERDICT_OK);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    assert_true(ada.alarmed);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_SUCCEEDED);
    assert_int_equal(buyer_refunds(&ada), 0);
    assert_int_equal(notices(NOTICE_BOOKING_CONFIRMED), 1);
}

static void a_webhook_counts_once(void **state)
{
    (void)state;
    struct ask a;
    struct news news = {.fact = {.state = INTENT_PROCESSING, .intent = "pi_ada"},
                        .webhook = "evt_1"};
    ada_books();
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(shop.paper.ledger.webhooks.n, 1);
    assert_int_equal(shop.paper.ledger.webhooks.v[0].payment, buyer_payment(&ada)->payment);
    assert_false(shop.paper.ledger.webhooks.v[0].is_parked);
    ask_update(&a, shop.event, &ada.payment);
    a.c.update->fact.state = INTENT_CAPTURED;
    a.c.update->fact.received = 5000;
    snprintf(a.c.update->event.id, sizeof a.c.update->event.id, "evt_1");
    assert_int_equal(shop_run(&shop, &a), VERDICT_OK);
    assert_true(a.c.update->is_repeat);
    ask_close(&a);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
}

/* Two copies of a webhook meet in one batch. */
static void a_webhook_that_comes_twice_at_once_counts_once(void **state)
{
    (void)state;
    struct ask first, second;
    ada_books();
    ask_update(&first, shop.event, &ada.payment);
    first.c.update->fact.state = INTENT_PROCESSING;
    snprintf(first.c.update->event.id, sizeof first.c.update->event.id, "evt_1");
    ask_update(&second, shop.event, &ada.payment);
    second.c.update->fact.state = INTENT_PROCESSING;
    snprintf(second.c.update->event.id, sizeof second.c.update->event.id, "evt_1");
    paper_begin(&shop.paper);
    assert_int_equal(paper_decide(&shop.paper, &first), DECIDED);
    assert_int_equal(paper_decide(&shop.paper, &second), DEFERRED);
    paper_commit(&shop.paper);
    assert_int_equal(shop_run(&shop, &second), VERDICT_OK);
    assert_true(second.c.update->is_repeat);
    ask_close(&first);
    ask_close(&second);
}

static void another_accounts_intent_changes_nothing(void **state)
{
    (void)state;
    struct ask a;
    ada_books();
    ask_update(&a, shop.event, &ada.payment);
    a.c.update->payment.secret[0] ^= 1;
    a.c.update->fact.state = INTENT_CAPTURED;
    a.c.update->fact.received = 5000;
    snprintf(a.c.update->event.id, sizeof a.c.update->event.id, "evt_1");
    assert_int_equal(shop_run(&shop, &a), VERDICT_OK);
    assert_true(a.c.update->is_unknown);
    ask_close(&a);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(buyer_payment(&ada)->received, 0);
    assert_int_equal(shop.paper.ledger.webhooks.n, 1);
    assert_true(shop.paper.ledger.webhooks.v[0].is_parked);
}

/* ---- manual capture ---- */

static void ada_is_authorized(void)
{
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    ada_gets_her_intent();
    assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
}

static void an_authorized_card_books_the_seats_and_is_then_charged(void **state)
{
    (void)state;
    ada_is_authorized();
    assert_int_equal(buyer_hold_status(&ada), HOLD_CONFIRMED);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_CAPTURING);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CAPTURE);
    assert_int_equal(buyer_job(&ada)->amount, 5000);
    assert_int_equal(seat(1), SEAT_BOOKED);
    assert_int_equal(notices(NOTICE_BOOKING_CONFIRMED), 0);
    expire(); /* it holds no longer */
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_null(buyer_job(&ada));
    assert_int_equal(notices(NOTICE_BOOKING_CONFIRMED), 1);
}

static void an_unknown_capture_frees_nothing(void **state)
{
    (void)state;
    ada_is_authorized();
    uint8_t key[JOB_KEY_SIZE];
    memcpy(key, buyer_job(&ada)->key, sizeof key);
    assert_int_equal(buyer_reported(&ada, buyer_job(&ada), JOB_RESULT_RETRY), VERDICT_OK);
    assert_memory_equal(buyer_job(&ada)->key, key, sizeof key);
    assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
    assert_int_equal(buyer_reported(&ada, buyer_job(&ada), JOB_RESULT_CHECK), VERDICT_OK);
    assert_true(buyer_job(&ada)->checks_first);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CAPTURE);
    assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
    assert_int_equal(seat(0), SEAT_BOOKED);
}

static void a_refused_capture_frees_the_seats_and_cancels(void **state)
{
    (void)state;
    ada_is_authorized();
    struct news news = {
        .fact = {.is_current = true, .state = INTENT_AUTHORIZED, .capture_refused = true},
        .report = {.job = buyer_job(&ada)->job, .kind = JOB_CAPTURE, .result = JOB_RESULT_FAILED}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_CANCELED);
    assert_null(buyer_job(&ada));
    assert_int_equal(notices(NOTICE_BOOKING_FAILED), 1);
}

/* The provider gave up an authorization that was not captured in time. */
static void an_authorization_that_lapses_frees_the_seats(void **state)
{
    (void)state;
    ada_is_authorized();
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_null(buyer_job(&ada));
}

static void a_late_authorization_is_cancelled_not_refunded(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    ada_gets_her_intent();
    expire();
    assert_int_equal(buyer_told_state(&ada, INTENT_AUTHORIZED), VERDICT_OK);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_AUTHORIZED);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_int_equal(buyer_hold_status(&ada), HOLD_EXPIRED);
    assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_refunds(&ada), 0);
}

static void a_wrong_amount_is_not_even_authorized(void **state)
{
    (void)state;
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(buyer_book_by_hand(&ada), VERDICT_CREATED);
    struct news news = {.fact = {.is_current = true, .state = INTENT_AUTHORIZED, .amount = 1}};
    assert_int_equal(buyer_told(&ada, &news), VERDICT_OK);
    assert_true(ada.alarmed);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_int_equal(seat(0), SEAT_HELD);
}

/* ---- the end of the hold ---- */

/* How a hold can end before its money comes. */
enum ending { EXPIRES, IS_RELEASED, IS_EVICTED };

static void ada_ends(enum ending ending)
{
    struct ask a;
    if (ending == EXPIRES) {
        expire();
        ask_event(&a, CMD_EVENT_OPEN, shop.event); /* any batch ends what is due */
    } else if (ending == IS_RELEASED) {
        ask_release(&a, shop.event, &ada.hold);
    } else {
        ask_evict(&a, shop.event, &ada.hold);
    }
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
}

static void a_pending_booking_outlives_its_hold_until_its_intent_is_decided(void **state)
{
    (void)state;
    for (int ending = EXPIRES; ending <= IS_EVICTED; ending++) {
        ada_books();
        ada_gets_her_intent();
        ada_ends((enum ending)ending);
        assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
        assert_int_equal(seat(0), SEAT_AVAILABLE);
        assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
        assert_int_equal(notices(NOTICE_BOOKING_FAILED), ending);
        assert_int_equal(buyer_told_state(&ada, INTENT_PROCESSING), VERDICT_OK);
        assert_int_equal(buyer_booking(&ada), BOOKING_PENDING);
        assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
        assert_int_equal(buyer_told_state(&ada, INTENT_CANCELED), VERDICT_OK);
        assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
        assert_int_equal(notices(NOTICE_BOOKING_FAILED), ending + 1);
        assert_null(buyer_job(&ada));
        /* the intent belongs to one payment */
        shop.paper.ledger.payments.v[shop.paper.ledger.payments.n - 1].intent[0] = '\0';
    }
    assert_int_equal(notices(NOTICE_HOLD_EXPIRED), 1);
}

/* The call that was to create the intent is still under way when the hold ends. */
static void an_intent_that_may_exist_is_cancelled_too(void **state)
{
    (void)state;
    ada_books();
    uint8_t key[JOB_KEY_SIZE];
    memcpy(key, buyer_job(&ada)->key, sizeof key);
    ada_ends(IS_RELEASED);
    assert_int_equal(buyer_job(&ada)->kind, JOB_CANCEL);
    assert_memory_not_equal(buyer_job(&ada)->key, key, sizeof key);
    assert_int_equal(buyer_told_state(&ada, INTENT_ABSENT), VERDICT_OK);
    assert_false(ada.alarmed);
    assert_int_equal(buyer_booking(&ada), BOOKING_FAILED);
    assert_int_equal(buyer_payment(&ada)->status, PAYMENT_CANCELED);
}

static void money_after_expiry_rescues_the_hold_with_a_new_fence(void **state)
{
    (void)state;
    struct ask a;
    ada_books();
    ask_terms(&a, shop.event); /* the intent's amount counts */
    ask_price(&a, 0, 9900);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    ada_ends(EXPIRES);
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(buyer_hold_status(&ada), HOLD_CONFIRMED);
    assert_true(buyer_hold_row(&ada)->fence > ada.fence);
    assert_int_equal(paper_booking(&shop.paper, ada.hold.key)->fence, buyer_hold_row(&ada)->fence);
    assert_int_equal(paper_booking(&shop.paper, ada.hold.key)->amount, 5000);
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_null(buyer_job(&ada));
    assert_int_equal(buyer_refunds(&ada), 0);
}

/* The fact itself finds the hold due: it expires first, and is then rescued. */
static void money_at_the_millisecond_of_expiry_rescues(void **state)
{
    (void)state;
    ada_books();
    shop_pass_ms(&shop, DEF_TTL_MS);
    shop.paper.expire_max = 0;
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_true(buyer_hold_row(&ada)->fence > ada.fence);
}

static void others_due_holds_do_not_stand_in_the_way_of_a_rescue(void **state)
{
    (void)state;
    struct buyer bob;
    ada_books();
    ada_ends(EXPIRES);
    buyer_hold(&bob, &shop, 0, 1);
    expire();
    shop.paper.expire_max = 0;
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
    assert_int_equal(buyer_hold_status(&bob), HOLD_EXPIRED);
}

/* ---- the event ---- */

static void a_closed_event_still_sells_what_is_held(void **state)
{
    (void)state;
    struct buyer bob;
    buyer_hold(&ada, &shop, 0, 2);
    buyer_hold(&bob, &shop, 4, 1);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_OK);
    assert_int_equal(buyer_book(&ada), VERDICT_CREATED);
    assert_int_equal(buyer_book(&bob), VERDICT_CREATED);
    assert_int_equal(buyer_told_captured(&bob, 2500), VERDICT_OK);
    assert_int_equal(buyer_booking(&bob), BOOKING_CONFIRMED);
    expire();
    assert_int_equal(buyer_told_captured(&ada, 5000), VERDICT_OK);
    assert_int_equal(buyer_booking(&ada), BOOKING_CONFIRMED);
}

static void archived_and_cancelled_events_refund_late_money(void **state)
{
    (void)state;
    static const enum command_kind ends[] = {CMD_EVENT_CANCEL, CMD_EVENT_ARCHIVE};
    struct buyer bob;
    ada_books();
    buyer_hold(&bob, &shop, 4, 1);
    assert_int_equal(buyer_book(&bob), VERDICT_CREATED);
    expire();
    struct buyer *late[] = {&ada, &bob};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(set_status(ends[i]), VERDICT_OK);
        assert_int_equal(buyer_told_captured(late[i], late[i]->amount), VERDICT_OK);
        assert_int_equal(buyer_booking(late[i]), BOOKING_PENDING);
        assert_int_equal(buyer_payment(late[i])->status, PAYMENT_REFUNDING);
        assert_int_equal(buyer_refund(late[i])->amount, late[i]->amount);
    }
}

static void a_cancelled_event_takes_no_bookings(void **state)
{
    (void)state;
    struct ask a;
    buyer_hold(&ada, &shop, 0, 2);
    assert_int_equal(set_status(CMD_EVENT_CANCEL), VERDICT_OK);
    assert_int_equal(buyer_book(&ada), VERDICT_EVENT_CANCELLED);
    ask_confirm(&a, shop.event, &ada.hold, ada.fence, false);
    assert_int_equal(shop_do(&shop, &a), VERDICT_EVENT_CANCELLED);
    assert_int_equal(set_status(CMD_EVENT_OPEN), VERDICT_EVENT_CANCELLED);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_booking_is_pending_and_owes_its_intent),
        claim(making_a_booking_renews_the_hold),
        claim(a_hold_near_its_cap_cannot_be_booked),
        claim(a_minute_is_enough_to_pay),
        claim(a_pending_booking_keeps_its_hold_as_it_is),
        claim(a_hold_that_has_ended_cannot_be_booked),
        claim(too_small_an_amount_is_refused_and_the_hold_kept),
        claim(what_costs_nothing_is_confirmed_at_once),
        claim(intents_go_back),
        claim(a_webhook_about_the_way_to_money_only_asks),
        claim(a_declined_card_leaves_hold_and_booking_with_the_buyer),
        claim(money_for_a_live_hold_confirms_it),
        claim(money_may_come_before_the_news_of_its_intent),
        claim(facts_that_come_again_or_late_change_nothing),
        claim(a_webhook_counts_once),
        claim(a_webhook_that_comes_twice_at_once_counts_once),
        claim(another_accounts_intent_changes_nothing),
        claim(an_authorized_card_books_the_seats_and_is_then_charged),
        claim(an_unknown_capture_frees_nothing),
        claim(a_refused_capture_frees_the_seats_and_cancels),
        claim(an_authorization_that_lapses_frees_the_seats),
        claim(a_late_authorization_is_cancelled_not_refunded),
        claim(a_wrong_amount_is_not_even_authorized),
        claim(a_pending_booking_outlives_its_hold_until_its_intent_is_decided),
        claim(an_intent_that_may_exist_is_cancelled_too),
        claim(money_after_expiry_rescues_the_hold_with_a_new_fence),
        claim(money_at_the_millisecond_of_expiry_rescues),
        claim(others_due_holds_do_not_stand_in_the_way_of_a_rescue),
        claim(a_closed_event_still_sells_what_is_held),
        claim(archived_and_cancelled_events_refund_late_money),
        claim(a_cancelled_event_takes_no_bookings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
