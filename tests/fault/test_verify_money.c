/* `holdfast verify` finds what is wrong with payments.  The engine makes a real ledger with a
 * booking in every state that facts, sellers and time can bring about.  Each test damages a copy of
 * it in one way, by SQL, and verify must name the invariants that this breaks, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fault/verify_money_damages.h"
#include "ledger/ledger.h"
#include "support/fixtures.h"
#include "support/paid_sale.h"

#define HOUR_US INT64_C(3600000000)
#define NOTICES (2u << NOTICE_HOLD_EXPIRED)

static struct damaged_ledger files;
static struct clock_fake now;

/* ---- the ledger; verify_money_damages.h says which seat is what ---- */

static void make_late(struct client *client, struct event *event)
{
    struct sale owed = sale_pending(client, event, SEAT_LATE, false);
    struct sale back = sale_pending(client, event, SEAT_RETURNED, false);
    struct sale lost = sale_pending(client, event, SEAT_LOST, false);
    struct sale rescued = sale_pending(client, event, SEAT_RESCUED, false);
    sale_pending(client, event, SEAT_EXPIRED, false);
    clock_fake_advance(&now, HOUR_US);
    sale_hold(client, event, SEAT_LATE);
    sale_hold(client, event, SEAT_RETURNED);
    sale_hold(client, event, SEAT_LOST);
    assert_true(sale_fact(&owed, INTENT_CAPTURED, SALE_PRICE) > 0);
    assert_int_equal(sale_fact(&rescued, INTENT_CAPTURED, SALE_PRICE), 0);
    sale_refunded(&back, sale_fact(&back, INTENT_CAPTURED, SALE_PRICE), SALE_PRICE,
                  REFUND_SUCCEEDED);
    int64_t number = sale_fact(&lost, INTENT_CAPTURED, SALE_PRICE);
    for (int i = 0; i < REFUND_TRIES; i++) {
        assert_true(number > 0);
        number = sale_refunded(&lost, number, SALE_PRICE, REFUND_FAILED);
    }
    assert_int_equal(number, 0);
}

static void make_live(struct client *client, struct event *event)
{
    struct sale s = sale_hold(client, event, SEAT_CREATING);
    sale_book(&s, false);
    sale_pending(client, event, SEAT_WAITING, false);
    sale_paid(client, event, SEAT_PAID);
    s = sale_paid(client, event, SEAT_PARTLY);
    sale_refunded(&s, sale_refund(&s, 400), 400, REFUND_SUCCEEDED);
    sale_refund(&s, 100);
    sale_capturing(client, event, SEAT_CAPTURING);
    s = sale_capturing(client, event, SEAT_CAPTURED);
    sale_fact(&s, INTENT_CAPTURED, SALE_PRICE);
    s = sale_pending(client, event, SEAT_TWICE, false);
    sale_fact(&s, INTENT_CANCELED, 0);
    sale_book(&s, false);
    s = sale_pending(client, event, SEAT_RESOLD, false);
    sale_fact(&s, INTENT_CANCELED, 0);
    sale_confirm(&s);
}

/* Booked together, failed, and then booked with one more. */
static void make_merged(struct client *client, struct event *event)
{
    struct sale s = sale_hold(client, event, SEAT_CARRIER);
    struct sale other = sale_hold(client, event, SEAT_MERGED);
    sale_book_with(&s, &other);
    sale_fact(&s, INTENT_CANCELED, 0);
    other = sale_hold(client, event, SEAT_MERGED_LATER);
    sale_book_with(&s, &other);
    sale_fact(&s, INTENT_CAPTURED, 3 * SALE_PRICE);
}

static void make_ended(struct client *client, struct event *event)
{
    struct sale s = sale_paid(client, event, SEAT_CANCELLED);
    sale_cancel(&s);
    s = sale_pending(client, event, SEAT_DROPPED, false);
    sale_cancel(&s);
    s = sale_capturing(client, event, SEAT_REFUSED);
    sale_job_done(&s, JOB_CAPTURE, INTENT_AUTHORIZED, true);
    s = sale_capturing(client, event, SEAT_WRONG);
    sale_fact(&s, INTENT_CAPTURED, SALE_PRICE - 1);
    s = sale_capturing(client, event, SEAT_WRONG_CANCELLED);
    sale_fact(&s, INTENT_CAPTURED, SALE_PRICE + 1);
    sale_hold(client, event, SEAT_WRONG_CANCELLED);
    sale_cancel(&s);
    s = sale_paid(client, event, SEAT_DASHBOARD);
    sale_refunded(&s, 0, SALE_PRICE, REFUND_PENDING);
    struct call call = sale_update(&s);
    call.c.update->fact.disputed = SALE_PRICE;
    memcpy(call.c.update->event.id, "evt_1", 6);
    memcpy(call.c.update->event.type, "charge.dispute.created", 23);
    sale_tell(&s, &call);
}

/* Everything is over in event 2, which is archived. */
static void make_archived(struct client *client)
{
    struct event *event = sale_event(client);
    struct sale s = sale_paid(client, event, 0);
    sale_refunded(&s, sale_refund(&s, 400), 400, REFUND_SUCCEEDED);
    struct sale cancelled = sale_paid(client, event, 1);
    s = sale_pending(client, event, 2, false);
    sale_fact(&s, INTENT_CANCELED, 0);
    sale_book(&s, false);
    sale_fact(&s, INTENT_CAPTURED, SALE_PRICE);
    s = sale_pending(client, event, 3, false);
    sale_fact(&s, INTENT_CANCELED, 0);
    s = sale_capturing(client, event, 4);
    sale_fact(&s, INTENT_CANCELED, 0);
    s = sale_pending(client, event, 5, false);
    sale_cancel(&s);
    sale_fact(&s, INTENT_CANCELED, 0);
    s = sale_pending(client, event, 6, false);
    sale_fact(&s, INTENT_CANCELED, 0);
    clock_fake_advance(&now, HOUR_US);
    sale_on_event(client, event, CMD_EVENT_ARCHIVE);
    sale_cancel(&cancelled);
    struct call call = {.c.kind = CMD_BOOKING_GET, .c.event = event};
    call.c.booking_get.id = cancelled.booking;
    sale_ask(client, &call, VERDICT_OK);
    int64_t number = call.c.booking_get.money.refunds.v[0].refund;
    call_close(&call);
    sale_refunded(&cancelled, number, SALE_PRICE, REFUND_SUCCEEDED);
}

static int make_ledger(void **state)
{
    (void)state;
    struct client client;
    struct hf_err err = {0};
    damaged_ledger_init(&files);
    log_set_level(LOG_OFF);
    clock_fake_init(&now, INT64_C(1790000000000000));
    assert_int_equal(client_start_notifying(&client, files.url, &now.clock, NOTICES - 1, &err),
                     HF_OK);
    struct event *event = sale_event(&client);
    make_archived(&client);
    make_late(&client, event);
    make_live(&client, event);
    make_ended(&client, event);
    make_merged(&client, event);
    struct event *called_off = sale_event(&client);
    sale_paid(&client, called_off, 0);
    sale_on_event(&client, called_off, CMD_EVENT_CANCEL);
    client_stop(&client);
    return 0;
}

static int remove_ledger(void **state)
{
    (void)state;
    damaged_ledger_close(&files);
    return 0;
}

/* ---- the tests ---- */

static void is_named(void **state) { damaged_ledger_is_named(&files, *state); }

static void a_ledger_with_bookings_in_every_state_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_is_sound(files.good, &report);
    assert_int_equal(report.events, 3);
    assert_true(report.checks[VERIFY_PAYMENTS].rows > 25);
    assert_int_equal(report.checks[VERIFY_PAYMENTS].rows, report.checks[VERIFY_CAPTURED].rows);
    assert_int_equal(report.checks[VERIFY_PAYMENTS].rows, report.checks[VERIFY_FOLD_PAYMENTS].rows);
    assert_true(report.checks[VERIFY_JOBS].rows > 10);
    assert_int_equal(report.checks[VERIFY_MERGED].rows, 2);
}

/* Money that no refund of ours could return is not lost from sight. */
static void a_refund_that_failed_for_good_is_shown_as_owed(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_is_sound(files.good, &report);
    assert_int_equal(report.owed, 1);
    assert_non_null(strstr(report.owed_examples[0], "of 1000 received 1000 must still go back"));
}

static void a_webhook_that_is_parked_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_damage(&files, "INSERT INTO payment_events VALUES ('evt_9', 'charge.refunded',"
                                  " hold:9.9, 0, 'pi_9', 1, 1, 1)");
    damaged_ledger_is_sound(files.copy, &report);
}

/* A webhook about a refund may be the first that is heard of the money. */
static void a_refund_that_overtakes_the_news_of_its_money_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_damage(
        &files, "INSERT INTO refunds SELECT booking, payment + 1, payment, 1000,"
                " 3, 0, 're_0', NULL, 1, 1 FROM payments WHERE booking = " OF(SEAT_WAITING));
    damaged_ledger_is_sound(files.copy, &report);
}

/* The entries of event 2 are deleted one by one, as retention does slice by slice. */
static void a_log_with_payments_that_is_pruned_up_to_any_entry_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    int64_t rows = INT64_MAX;
    int n = 0;
    for (; rows > 0; n++) {
        char sql[512];
        snprintf(sql, sizeof sql,
                 "UPDATE events SET pruned_seq = COALESCE((SELECT (entry & ((1 << 40) - 1)) - 1"
                 " FROM log WHERE entry >> 40 = 2 ORDER BY entry LIMIT 1 OFFSET %d),"
                 " (SELECT seq FROM event_clock WHERE event = 2)) WHERE event = 2;"
                 "DELETE FROM log WHERE entry >> 40 = 2 AND entry <="
                 " (SELECT pruned_seq FROM events WHERE event = 2) + (2 << 40)",
                 n);
        damaged_ledger_damage(&files, sql);
        damaged_ledger_is_sound(files.copy, &report);
        if (report.checks[VERIFY_LOG_SEQ].rows == rows)
            break;
        rows = report.checks[VERIFY_LOG_SEQ].rows;
    }
    assert_true(n > 40);
}

#define FIRST_DAMAGE 5

int main(void)
{
    struct CMUnitTest tests[FIRST_DAMAGE + N_DAMAGES] = {
        cmocka_unit_test(a_ledger_with_bookings_in_every_state_is_sound),
        cmocka_unit_test(a_refund_that_failed_for_good_is_shown_as_owed),
        cmocka_unit_test(a_webhook_that_is_parked_is_sound),
        cmocka_unit_test(a_refund_that_overtakes_the_news_of_its_money_is_sound),
        cmocka_unit_test(a_log_with_payments_that_is_pruned_up_to_any_entry_is_sound),
    };
    for (size_t i = 0; i < N_DAMAGES; i++)
        tests[FIRST_DAMAGE + i] =
            (struct CMUnitTest){.name = damages[i].claim,
                                .test_func = is_named,
                                .initial_state = (void *)(uintptr_t)&damages[i]};
    return cmocka_run_group_tests(tests, make_ledger, remove_ledger);
}
