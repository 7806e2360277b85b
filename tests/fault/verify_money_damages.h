/* How payments can be damaged, and what verify says of it; test_verify_money.c makes the ledger. */
#ifndef HF_TESTS_FAULT_VERIFY_MONEY_DAMAGES_H
#define HF_TESTS_FAULT_VERIFY_MONEY_DAMAGES_H

#include "support/damaged_ledger.h"

/* The seats of event 1; each is that of one booking, in this state. */
#define SEAT_LATE 0             /* paid after its hold expired: the refund is owed */
#define SEAT_RETURNED 1         /* paid late, and given back */
#define SEAT_LOST 2             /* paid late, and no refund works */
#define SEAT_RESCUED 3          /* paid late, and its seat was still free */
#define SEAT_EXPIRED 4          /* not paid: its intent is to be canceled */
#define SEAT_CREATING 5         /* its intent is to be created */
#define SEAT_WAITING 6          /* its buyer is to pay */
#define SEAT_PAID 7             /* confirmed */
#define SEAT_PARTLY 8           /* confirmed, 400 given back and 100 owed */
#define SEAT_CAPTURING 9        /* its seat is sold, and its money is to be captured */
#define SEAT_CAPTURED 10        /* the same, captured */
#define SEAT_TWICE 11           /* failed, and booked again */
#define SEAT_RESOLD 12          /* failed, and then sold by the seller */
#define SEAT_CANCELLED 13       /* confirmed and then cancelled: the refund is owed */
#define SEAT_DROPPED 14         /* cancelled before it was paid: its intent is to be canceled */
#define SEAT_REFUSED 15         /* its money could not be captured */
#define SEAT_WRONG 16           /* a wrong amount was captured: the refund is owed */
#define SEAT_WRONG_CANCELLED 17 /* the same, and then it was cancelled */
#define SEAT_DASHBOARD 18       /* confirmed, and given back by somebody else */
#define SEAT_CARRIER 19         /* confirmed, with the next two */
#define SEAT_MERGED 20          /* booked with SEAT_CARRIER, when that failed at first */
#define SEAT_MERGED_LATER 21    /* booked with SEAT_CARRIER, when that was paid */

/* The first hold of a seat of event 1. */
#define BOOKING(seat) "(SELECT MIN(hold) FROM holds WHERE event = 1 AND seats = '[" #seat "]')"
#define OF(seat) BOOKING(seat)

static const struct damage damages[] = {
    /* Holds that were booked together. */
    {"a_hold_booked_with_one_that_is_gone", VERIFY_MERGED, "I3",
     "UPDATE holds SET booked_with = hold:1.9999 WHERE hold = " OF(SEAT_MERGED)},
    {"a_hold_booked_with_one_of_another_event", VERIFY_MERGED, "I3",
     "UPDATE holds SET booked_with = hold:2.1 WHERE hold = " OF(SEAT_MERGED)},
    {"a_hold_booked_with_one_that_is_not_booked", VERIFY_MERGED, "I3",
     "UPDATE holds SET booked_with = (SELECT MAX(hold) FROM holds WHERE event = 1"
     " AND seats = '[0]') WHERE hold = " OF(SEAT_MERGED)},
    {"a_hold_booked_with_one_that_was_merged_itself", VERIFY_MERGED, "I3",
     "UPDATE holds SET booked_with = " OF(SEAT_MERGED_LATER) " WHERE hold = " OF(SEAT_MERGED)},
    {"a_hold_booked_with_another_that_was_not_released", VERIFY_MERGED, "I3",
     "UPDATE holds SET booked_with = " OF(SEAT_PARTLY) " WHERE hold = " OF(SEAT_PAID)},
    /* Bookings and their payments. */
    {"a_booking_whose_payment_is_gone", VERIFY_PAYMENTS, "I9 I11",
     "DELETE FROM payments WHERE booking = " OF(SEAT_WAITING)},
    {"a_payment_whose_booking_is_gone", VERIFY_PAYMENTS, "I9 I11",
     "DELETE FROM bookings WHERE booking = " OF(SEAT_WAITING)},
    {"a_payment_whose_booking_has_another", VERIFY_PAYMENTS, "I9 I11",
     "UPDATE bookings SET payment = payment + 1 WHERE booking = " OF(SEAT_WAITING)},
    {"a_payment_whose_hold_is_gone", VERIFY_PAYMENTS, "I1 I3 I9 I11",
     "DELETE FROM holds WHERE hold = " OF(SEAT_PAID)},
    {"a_pending_booking_that_nobody_pays", VERIFY_PAYMENTS, "I9 I11",
     "UPDATE bookings SET payment = 0 WHERE booking = " OF(SEAT_CREATING)},
    {"a_payment_of_another_amount_than_its_booking", VERIFY_PAYMENTS, "I9 I11",
     "UPDATE payments SET amount = 999 WHERE booking = " OF(SEAT_PAID)},
    {"a_past_booking_of_another_amount_than_its_payment", VERIFY_PAYMENTS, "I9",
     "UPDATE bookings_past SET amount = 999 WHERE booking = " OF(SEAT_TWICE)},
    {"two_payments_with_one_intent", VERIFY_PAYMENTS, "I9 I11",
     "DROP INDEX payments_intent; UPDATE payments SET intent = (SELECT intent FROM payments"
     " WHERE booking = " OF(SEAT_PAID) ") WHERE booking = " OF(SEAT_WAITING)},
    {"a_confirmed_booking_that_was_never_paid", VERIFY_CAPTURED, "I9",
     "UPDATE payments SET received = 0 WHERE booking = " OF(SEAT_PAID)},
    {"a_confirmed_booking_of_a_wrong_amount", VERIFY_CAPTURED, "I9",
     "UPDATE payments SET received = 900 WHERE booking = " OF(SEAT_PAID)},
    {"a_confirmed_booking_of_a_wrong_currency", VERIFY_CAPTURED, "I9",
     "UPDATE payments SET is_wrong = 1 WHERE booking = " OF(SEAT_PAID)},
    {"captured_money_of_a_failed_booking_that_stays", VERIFY_CAPTURED, "I9",
     "UPDATE payments SET received = 1000 WHERE booking = " OF(SEAT_REFUSED)},
    {"captured_money_of_a_past_booking_that_stays", VERIFY_CAPTURED, "I9",
     "UPDATE payments SET received = 1000 WHERE payment ="
     " (SELECT payment FROM bookings_past WHERE booking = " OF(SEAT_TWICE) ")"},
    {"captured_money_of_a_cancelled_booking_that_stays", VERIFY_CAPTURED, "I9",
     "DELETE FROM refunds WHERE booking = " OF(
         SEAT_CANCELLED) ";"
                         "DELETE FROM jobs WHERE kind = 1 AND booking = " OF(SEAT_CANCELLED)},
    {"a_refund_of_only_a_part_of_what_must_go_back", VERIFY_CAPTURED, "I9",
     "UPDATE refunds SET amount = 999 WHERE booking = " OF(
         SEAT_LATE) ";"
                    "UPDATE jobs SET amount = 999 WHERE kind = 1 AND booking = " OF(SEAT_LATE)},
    {"a_refund_that_failed_and_is_not_tried_again", VERIFY_CAPTURED, "I9",
     "UPDATE refunds SET status = 4 WHERE booking = " OF(
         SEAT_LATE) ";"
                    "DELETE FROM jobs WHERE kind = 1 AND booking = " OF(SEAT_LATE)},
    {"a_confirmed_booking_that_was_marked_as_failed", VERIFY_CAPTURED, "I1 I9 I11",
     "UPDATE bookings SET status = 3 WHERE booking = " OF(SEAT_PAID)},

    /* Refunds. */
    {"more_given_back_than_was_received", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET amount = 1001 WHERE booking = " OF(SEAT_RETURNED)},
    {"more_owed_than_is_left", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET amount = 601 WHERE status = 1 AND booking = " OF(
         SEAT_PARTLY) ";"
                      "UPDATE jobs SET amount = 601 WHERE kind = 1 AND booking = " OF(SEAT_PARTLY)},
    {"money_owed_that_was_never_received", VERIFY_REFUNDS, "I9",
     "UPDATE payments SET received = 0, status = 8 WHERE booking = " OF(
         SEAT_LATE) ";"
                    "UPDATE log SET after = 8 WHERE object = 6 AND after = 9 AND hold = " OF(
                        SEAT_LATE)},
    {"more_given_back_than_there_is_in_the_world", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET amount = 9223372036854775807 WHERE status = 3 AND booking = " OF(
         SEAT_PARTLY)},
    {"less_received_than_nothing", VERIFY_REFUNDS, "I9",
     "UPDATE payments SET received = -9223372036854775807 - 1 WHERE booking = " OF(SEAT_LATE)},
    {"a_refund_of_nothing", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET amount = 0 WHERE status = 3 AND booking = " OF(SEAT_PARTLY)},
    {"a_refund_of_no_known_status", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET status = 300 WHERE status = 3 AND booking = " OF(SEAT_PARTLY)},
    {"a_refund_that_others_owe", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET is_ours = 0 WHERE status = 1 AND booking = " OF(SEAT_PARTLY)},
    {"a_refund_of_another_payment", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET payment = payment + 1 WHERE status = 3 AND booking = " OF(SEAT_PARTLY)},
    {"a_payment_that_is_not_as_its_refunds_say", VERIFY_REFUNDS, "I9",
     "UPDATE refunds SET status = 2 WHERE booking = " OF(SEAT_RETURNED)},
    {"a_payment_that_has_succeeded_without_money", VERIFY_REFUNDS, "I9 I11",
     "UPDATE payments SET status = 7 WHERE booking = " OF(SEAT_WAITING)},
    {"money_of_an_open_payment", VERIFY_REFUNDS, "I9",
     "UPDATE payments SET received = 1000 WHERE booking = " OF(SEAT_WAITING)},

    /* Jobs. */
    {"an_intent_that_is_never_created", VERIFY_JOBS, "I9",
     "DELETE FROM jobs WHERE kind = 4 AND booking = " OF(SEAT_CREATING)},
    {"money_that_is_never_captured", VERIFY_JOBS, "I9",
     "DELETE FROM jobs WHERE kind = 3 AND booking = " OF(SEAT_CAPTURING)},
    {"an_intent_of_an_expired_hold_that_is_never_canceled", VERIFY_JOBS, "I9",
     "DELETE FROM jobs WHERE kind = 2 AND booking = " OF(SEAT_EXPIRED)},
    {"an_intent_of_a_cancelled_booking_that_is_never_canceled", VERIFY_JOBS, "I9",
     "DELETE FROM jobs WHERE kind = 2 AND booking = " OF(SEAT_DROPPED)},
    {"an_intent_that_is_canceled_instead_of_captured", VERIFY_JOBS, "I9",
     "UPDATE jobs SET kind = 2 WHERE kind = 3 AND booking = " OF(SEAT_CAPTURING)},
    {"an_intent_that_is_canceled_while_its_buyer_pays", VERIFY_JOBS, "I9",
     "INSERT INTO jobs SELECT booking, payment, 2, 1, payment, 0, 0, 0, x'00', 0, 0, 0, 1, 1, 0, 0,"
     " NULL FROM payments WHERE booking = " OF(SEAT_WAITING)},
    {"a_poll_that_is_owed_twice", VERIFY_JOBS, "I9",
     "INSERT INTO jobs SELECT booking, payment + n, 5, 1, payment, 0, 0, 0, x'00', 0, 0, 0, 1, 1, "
     "0,"
     " 0, NULL FROM payments, (SELECT 2000 AS n UNION SELECT 2001) x WHERE booking = " OF(
         SEAT_PAID)},
    {"a_poll_of_a_payment_that_is_canceled", VERIFY_JOBS, "I9",
     "INSERT INTO jobs SELECT booking, payment + 2000, 5, 1, payment, 0, 0, 0, x'00', 0, 0, 0, 1, "
     "1,"
     " 0, 0, NULL FROM payments WHERE status = 8 AND booking = " OF(SEAT_TWICE)},
    {"a_refund_that_is_owed_and_never_made", VERIFY_JOBS, "I9",
     "DELETE FROM jobs WHERE kind = 1 AND booking = " OF(SEAT_CANCELLED)},
    {"a_refund_job_without_a_refund", VERIFY_JOBS, "I9",
     "DELETE FROM refunds WHERE status = 1 AND booking = " OF(SEAT_PARTLY)},
    {"a_refund_job_of_another_amount", VERIFY_JOBS, "I9",
     "UPDATE jobs SET amount = 200 WHERE kind = 1 AND booking = " OF(SEAT_PARTLY)},
    {"a_refund_job_of_a_refund_that_is_made", VERIFY_JOBS, "I9",
     "INSERT INTO jobs SELECT booking, refund, 1, 1, payment, amount, refund, 0, x'00', 0, 0, 0, 1,"
     " 1, 0, 0, NULL FROM refunds WHERE booking = " OF(SEAT_RETURNED)},
    {"a_job_of_no_payment", VERIFY_JOBS, "I9",
     "UPDATE jobs SET payment = payment + 1 WHERE kind = 4 AND booking = " OF(SEAT_CREATING)},
    {"a_job_of_another_number_than_its_payment", VERIFY_JOBS, "I9",
     "UPDATE jobs SET job = job + 1000 WHERE kind = 4 AND booking = " OF(SEAT_CREATING)},
    {"a_job_that_is_done_and_still_there", VERIFY_JOBS, "I9",
     "UPDATE jobs SET status = 2 WHERE kind = 4 AND booking = " OF(SEAT_CREATING)},
    {"a_job_of_no_known_kind", VERIFY_JOBS, "I9",
     "UPDATE jobs SET kind = 9 WHERE kind = 4 AND booking = " OF(SEAT_CREATING)},
    {"a_poll_that_is_stored_as_a_job", VERIFY_JOBS, "I9",
     "UPDATE jobs SET kind = 5 WHERE kind = 4 AND booking = " OF(SEAT_CREATING)},
    {"a_notification_about_a_refund_that_is_gone", VERIFY_JOBS, "I9",
     "UPDATE jobs SET refund = refund + 1000 WHERE kind = 6 AND refund > 0 AND booking = " OF(
         SEAT_RETURNED)},
    {"a_notification_about_a_payment_that_is_gone", VERIFY_JOBS, "I9",
     "UPDATE jobs SET payment = payment + 1000 WHERE kind = 6 AND booking = " OF(SEAT_PAID)},
    {"a_notification_about_no_hold", VERIFY_JOBS, "I9",
     "UPDATE jobs SET booking = hold:1.9999, payment = 0 WHERE kind = 6 AND booking = " OF(
         SEAT_PAID)},
    {"a_notification_of_no_known_status", VERIFY_JOBS, "I9",
     "UPDATE jobs SET status = 4 WHERE kind = 6 AND booking = " OF(SEAT_PAID)},

    /* Seats, holds and bookings. */
    {"a_capturing_booking_without_its_seat", VERIFY_SALES, "I1",
     "DELETE FROM sold_seats WHERE booking = " OF(SEAT_CAPTURING)},
    {"a_failed_booking_that_kept_its_seat", VERIFY_SALES, "I1",
     "INSERT INTO sold_seats VALUES (seat:1.15, " OF(SEAT_REFUSED) ")"},
    {"a_capturing_booking_whose_hold_is_only_active", VERIFY_HOLD_STATUS, "I1 I3 I11",
     "UPDATE holds SET status = 1 WHERE hold = " OF(SEAT_CAPTURING)},
    {"a_paying_booking_whose_hold_is_sold", VERIFY_HOLD_STATUS, "I1 I3 I9 I11",
     "UPDATE holds SET status = 4 WHERE hold = " OF(SEAT_WAITING)},
    {"a_confirmed_booking_whose_hold_expired", VERIFY_HOLD_STATUS, "I1 I3 I11",
     "UPDATE holds SET status = 2 WHERE hold = " OF(SEAT_RESCUED)},
    {"a_cancelled_booking_whose_hold_is_active", VERIFY_HOLD_STATUS, "I3 I11",
     "UPDATE holds SET status = 1 WHERE hold = " OF(SEAT_DROPPED)},
    {"a_past_booking_that_no_other_replaced", VERIFY_HOLD_STATUS, "I3 I9 I11",
     "DELETE FROM bookings WHERE booking = " OF(SEAT_TWICE)},
    {"a_payment_after_the_expiry_of_its_hold", VERIFY_CONFIRM_TIME, "I4",
     "UPDATE log SET at = at + 600000 WHERE entry >> 40 = 3 AND object IN (4, 5, 6) AND cause = 18;"
     "UPDATE log SET at = at + 600000 WHERE entry >> 40 = 3 AND object = 1 AND cause = 13;"
     "UPDATE event_clock SET now = now + 600000 WHERE event = 3"},

    /* The log. */
    {"a_payment_of_another_status_than_the_log_says", VERIFY_FOLD_PAYMENTS, "I11",
     "UPDATE payments SET status = 3 WHERE booking = " OF(SEAT_WAITING)},
    {"a_payment_that_the_log_does_not_begin", VERIFY_FOLD_PAYMENTS, "I11",
     "UPDATE log SET fence = fence + 1 WHERE object = 5 AND cause = 17 AND hold = " OF(
         SEAT_CREATING)},
    {"a_payment_in_the_log_only", VERIFY_FOLD_PAYMENTS, "I11",
     "UPDATE log SET fence = 1 WHERE object = 6 AND after = 2 AND hold = " OF(SEAT_WAITING)},
    {"a_payment_of_another_amount_than_the_log_says", VERIFY_FOLD_PAYMENTS, "I11",
     "UPDATE log SET quantity = 5 WHERE object = 6 AND hold = " OF(SEAT_PAID)},
    {"a_payment_whose_change_begins_elsewhere", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET before = 3 WHERE object = 6 AND after = 7 AND hold = " OF(SEAT_PAID)},
    {"a_change_of_a_payment_that_is_not_in_the_chain_of_its_hold", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET prev = prev - 1 WHERE object = 6 AND after = 7 AND hold = " OF(SEAT_PAID)},
    {"a_booking_that_is_not_in_the_chain_of_its_hold", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET prev = 0 WHERE object = 5 AND cause = 17 AND hold = " OF(SEAT_PAID)},
    {"a_hold_that_does_not_end_with_its_payment", VERIFY_FOLD_HOLDS, "I11",
     "UPDATE holds SET last_seq = last_seq - 1 WHERE hold = " OF(SEAT_PAID)},
    {"a_booking_of_another_status_than_the_log_says", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE log SET after = 3 WHERE object = 5 AND after = 4 AND hold = " OF(SEAT_DROPPED)},
    {"a_booking_that_failed_and_was_cancelled", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE bookings SET cancelled_at = 1 WHERE booking = " OF(SEAT_REFUSED)},
    {"a_booking_of_another_fence_than_the_log_says", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE bookings SET fence = 1 WHERE booking = " OF(SEAT_RESCUED)},
    {"a_past_booking_in_the_log_only", VERIFY_FOLD_BOOKINGS, "I9 I11",
     "DELETE FROM bookings_past WHERE booking = " OF(SEAT_TWICE)},
    {"a_past_booking_that_is_not_in_the_log", VERIFY_FOLD_BOOKINGS, "I9 I11",
     "INSERT INTO bookings_past SELECT booking, 7, secret, event, 3, fence, amount, NULL,"
     " created_at, cancelled_at, NULL, number, NULL FROM bookings WHERE booking = " OF(
         SEAT_WAITING)},
    {"a_past_booking_that_has_not_failed", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE bookings_past SET status = 2 WHERE booking = " OF(SEAT_TWICE)},
    {"a_past_booking_of_another_fence_than_the_log_says", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE bookings_past SET fence = 1 WHERE booking = " OF(SEAT_RESOLD)},
    {"a_past_booking_that_was_cancelled", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE bookings_past SET cancelled_at = 1 WHERE booking = " OF(SEAT_RESOLD)},
    {"a_cancelled_event_that_is_open_again", VERIFY_FOLD_EVENTS, "I11",
     "UPDATE events SET status = 1 WHERE event = 3"},
    {"an_event_that_was_cancelled_without_a_cause", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET cause = 11 WHERE object = 1 AND after = 4 AND entry >> 40 = 3"},

    /* Rows of nothing. */
    {"a_payment_of_no_event", VERIFY_STRAYS, "I11",
     "INSERT INTO payments SELECT hold:77.1, hold:77.2, secret, 8, amount, currency, 0, NULL, NULL,"
     " 0, 0, 0, NULL, NULL, NULL, 0, 1, 1 FROM payments LIMIT 1"},
    {"a_refund_of_no_event", VERIFY_STRAYS, "I11",
     "INSERT INTO refunds VALUES (hold:77.1, hold:77.3, hold:77.2, 1, 3, 1, NULL, NULL, 1, 1)"},
    {"a_job_of_no_event", VERIFY_STRAYS, "I11",
     "INSERT INTO jobs VALUES (hold:77.1, hold:77.2, 2, 1, hold:77.2, 0, 0, 0, x'00', 0, 0, 0, 1,"
     " 1, 0, 0, NULL)"},
    {"a_past_booking_of_no_event", VERIFY_STRAYS, "I11",
     "UPDATE bookings_past SET event = 77 WHERE booking = " OF(SEAT_TWICE)},
    {"a_webhook_about_a_payment_that_is_gone", VERIFY_STRAYS, "I11",
     "UPDATE payment_events SET payment = 1"},
    {"a_webhook_that_is_parked_although_its_payment_is_known", VERIFY_STRAYS, "I11",
     "UPDATE payment_events SET state = 1"},
};
#define N_DAMAGES (sizeof damages / sizeof *damages)

#endif
