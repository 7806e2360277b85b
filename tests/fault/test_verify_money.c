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
#include "support/engine_client.h"
#include "support/fixtures.h"

#define PRICE 1000
#define TTL_MS INT64_C(300000)
#define HOUR_US INT64_C(3600000000)
#define NOTICES (2u << NOTICE_HOLD_EXPIRED)

static struct damaged_ledger files;
static struct clock_fake now;

/* ---- what buyers, sellers and the provider do ---- */

struct sale {
    struct client *client;
    struct event *event;
    struct hold_row hold;
    struct id booking, payment;
    int64_t number; /* of the payment */
};

static void ask(struct client *client, struct call *call, enum verdict want)
{
    enum verdict verdict = client_ask(client, call);
    if (verdict != want)
        fail_msg("kind %d verdict %d instead of %d: %s", call->c.kind, verdict, want,
                 call->c.err.msg);
}

static struct event *make_event(struct client *client)
{
    struct call call;
    call_event_create(&call, 2, 20);
    ask(client, &call, VERDICT_CREATED);
    int64_t key = call.c.event_create.def->id.key;
    call_close(&call);
    call_event_load(&call, key);
    ask(client, &call, VERDICT_OK);
    return call.c.event;
}

static struct sale hold(struct client *client, struct event *event, uint32_t seat)
{
    struct sale s = {.client = client, .event = event};
    struct call call;
    call_hold(&call, event, seat, 1, TTL_MS);
    ask(client, &call, VERDICT_CREATED);
    s.hold = *command_hold(&call.c);
    call_close(&call);
    return s;
}

static void book(struct sale *s, bool by_hand)
{
    struct call call = {.c.kind = CMD_BOOKING_CREATE, .c.event = s->event};
    struct booking_create *op = call.c.booking_create = hf_alloc(sizeof *op);
    op->hold.id = s->hold.id;
    op->email = "ann@shop.example";
    op->email_len = strlen(op->email);
    op->captures_by_hand = by_hand;
    ask(s->client, &call, VERDICT_CREATED);
    s->booking = op->booking.id;
    s->payment = op->payment.id;
    s->number = op->payment.payment;
    call_close(&call);
}

static struct call update(const struct sale *s)
{
    struct call call = {.c.kind = CMD_PAYMENT_UPDATE, .c.event = s->event};
    struct payment_update *op = call.c.update = hf_alloc(sizeof *op);
    op->hold.id.key = s->payment.key;
    op->has_payment = true;
    op->payment = s->payment;
    op->fact.is_current = true;
    snprintf(op->fact.intent, sizeof op->fact.intent, "pi_%lld", (long long)s->number);
    return call;
}

/* Tells the engine, and returns the number of the refund that is owed afterwards; 0: none. */
static int64_t tell(const struct sale *s, struct call *call)
{
    int64_t owed = 0;
    ask(s->client, call, VERDICT_OK);
    const struct money *money = &call->c.update->money;
    for (size_t i = 0; i < money->refunds.n; i++)
        if (money->refunds.v[i].status == REFUND_OWED)
            owed = money->refunds.v[i].refund;
    call_close(call);
    return owed;
}

static int64_t fact(const struct sale *s, enum intent_state state, int64_t received)
{
    struct call call = update(s);
    call.c.update->fact.state = state;
    call.c.update->fact.received = received;
    return tell(s, &call);
}

static int64_t job_done(const struct sale *s, enum job_kind kind, enum intent_state state,
                        bool refused)
{
    struct call call = update(s);
    call.c.update->fact.state = state;
    call.c.update->fact.capture_refused = refused;
    call.c.update->report =
        (struct job_report){.job = s->number, .kind = kind, .result = JOB_RESULT_DONE};
    return tell(s, &call);
}

/* `refund` 0: one that somebody made in the provider's dashboard. */
static int64_t refunded(const struct sale *s, int64_t refund, int64_t amount,
                        enum refund_status status)
{
    static int n;
    struct call call = update(s);
    struct refund_fact *f = vec_push(&call.c.update->fact.refunds);
    *f = (struct refund_fact){.amount = amount, .refund = refund, .status = status};
    snprintf(f->id, sizeof f->id, "re_%d", ++n);
    return tell(s, &call);
}

static int64_t refund(const struct sale *s, int64_t amount)
{
    struct call call = {.c.kind = CMD_BOOKING_REFUND, .c.event = s->event};
    call.c.refund.id = s->booking;
    call.c.refund.hold.id.key = s->booking.key;
    call.c.refund.amount = amount;
    ask(s->client, &call, VERDICT_OK);
    const struct money *money = &call.c.refund.money;
    int64_t number = money->refunds.v[money->refunds.n - 1].refund;
    call_close(&call);
    return number;
}

static void cancel(const struct sale *s)
{
    struct call call = {.c.kind = CMD_BOOKING_CANCEL, .c.event = s->event};
    call.c.cancel.id = s->booking;
    call.c.cancel.hold.id.key = s->booking.key;
    ask(s->client, &call, VERDICT_OK);
    call_close(&call);
}

static void confirm(const struct sale *s)
{
    struct call call;
    call_on_hold(&call, CMD_HOLD_CONFIRM, s->event, &s->hold.id);
    call.c.confirm.fence = s->hold.fence;
    ask(s->client, &call, VERDICT_CREATED);
    call_close(&call);
}

static void on_event(struct client *client, struct event *event, enum command_kind kind)
{
    struct call call = {.c.kind = kind, .c.event = event};
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

/* A booking whose intent the provider has made. */
static struct sale pending(struct client *client, struct event *event, uint32_t seat, bool by_hand)
{
    struct sale s = hold(client, event, seat);
    book(&s, by_hand);
    job_done(&s, JOB_CREATE, INTENT_REQUIRES_PAYMENT, false);
    return s;
}

static struct sale paid(struct client *client, struct event *event, uint32_t seat)
{
    struct sale s = pending(client, event, seat, false);
    fact(&s, INTENT_CAPTURED, PRICE);
    return s;
}

static struct sale capturing(struct client *client, struct event *event, uint32_t seat)
{
    struct sale s = pending(client, event, seat, true);
    fact(&s, INTENT_AUTHORIZED, 0);
    return s;
}

/* ---- the ledger; verify_money_damages.h says which seat is what ---- */

static void make_late(struct client *client, struct event *event)
{
    struct sale owed = pending(client, event, SEAT_LATE, false);
    struct sale back = pending(client, event, SEAT_RETURNED, false);
    struct sale lost = pending(client, event, SEAT_LOST, false);
    struct sale rescued = pending(client, event, SEAT_RESCUED, false);
    pending(client, event, SEAT_EXPIRED, false);
    clock_fake_advance(&now, HOUR_US);
    hold(client, event, SEAT_LATE);
    hold(client, event, SEAT_RETURNED);
    hold(client, event, SEAT_LOST);
    assert_true(fact(&owed, INTENT_CAPTURED, PRICE) > 0);
    assert_int_equal(fact(&rescued, INTENT_CAPTURED, PRICE), 0);
    refunded(&back, fact(&back, INTENT_CAPTURED, PRICE), PRICE, REFUND_SUCCEEDED);
    int64_t number = fact(&lost, INTENT_CAPTURED, PRICE);
    for (int i = 0; i < REFUND_TRIES; i++) {
        assert_true(number > 0);
        number = refunded(&lost, number, PRICE, REFUND_FAILED);
    }
    assert_int_equal(number, 0);
}

static void make_live(struct client *client, struct event *event)
{
    struct sale s = hold(client, event, SEAT_CREATING);
    book(&s, false);
    pending(client, event, SEAT_WAITING, false);
    paid(client, event, SEAT_PAID);
    s = paid(client, event, SEAT_PARTLY);
    refunded(&s, refund(&s, 400), 400, REFUND_SUCCEEDED);
    refund(&s, 100);
    capturing(client, event, SEAT_CAPTURING);
    s = capturing(client, event, SEAT_CAPTURED);
    fact(&s, INTENT_CAPTURED, PRICE);
    s = pending(client, event, SEAT_TWICE, false);
    fact(&s, INTENT_CANCELED, 0);
    book(&s, false);
    s = pending(client, event, SEAT_RESOLD, false);
    fact(&s, INTENT_CANCELED, 0);
    confirm(&s);
}

static void make_ended(struct client *client, struct event *event)
{
    struct sale s = paid(client, event, SEAT_CANCELLED);
    cancel(&s);
    s = pending(client, event, SEAT_DROPPED, false);
    cancel(&s);
    s = capturing(client, event, SEAT_REFUSED);
    job_done(&s, JOB_CAPTURE, INTENT_AUTHORIZED, true);
    s = capturing(client, event, SEAT_WRONG);
    fact(&s, INTENT_CAPTURED, PRICE - 1);
    s = capturing(client, event, SEAT_WRONG_CANCELLED);
    fact(&s, INTENT_CAPTURED, PRICE + 1);
    hold(client, event, SEAT_WRONG_CANCELLED);
    cancel(&s);
    s = paid(client, event, SEAT_DASHBOARD);
    refunded(&s, 0, PRICE, REFUND_PENDING);
    struct call call = update(&s);
    call.c.update->fact.disputed = PRICE;
    memcpy(call.c.update->event.id, "evt_1", 6);
    memcpy(call.c.update->event.type, "charge.dispute.created", 23);
    tell(&s, &call);
}

/* Everything is over in event 2, which is archived. */
static void make_archived(struct client *client)
{
    struct event *event = make_event(client);
    struct sale s = paid(client, event, 0);
    refunded(&s, refund(&s, 400), 400, REFUND_SUCCEEDED);
    struct sale cancelled = paid(client, event, 1);
    s = pending(client, event, 2, false);
    fact(&s, INTENT_CANCELED, 0);
    book(&s, false);
    fact(&s, INTENT_CAPTURED, PRICE);
    s = pending(client, event, 3, false);
    fact(&s, INTENT_CANCELED, 0);
    s = capturing(client, event, 4);
    fact(&s, INTENT_CANCELED, 0);
    s = pending(client, event, 5, false);
    cancel(&s);
    fact(&s, INTENT_CANCELED, 0);
    s = pending(client, event, 6, false);
    fact(&s, INTENT_CANCELED, 0);
    clock_fake_advance(&now, HOUR_US);
    on_event(client, event, CMD_EVENT_ARCHIVE);
    cancel(&cancelled);
    struct call call = {.c.kind = CMD_BOOKING_GET, .c.event = event};
    call.c.booking_get.id = cancelled.booking;
    ask(client, &call, VERDICT_OK);
    int64_t number = call.c.booking_get.money.refunds.v[0].refund;
    call_close(&call);
    refunded(&cancelled, number, PRICE, REFUND_SUCCEEDED);
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
    struct event *event = make_event(&client);
    make_archived(&client);
    make_late(&client, event);
    make_live(&client, event);
    make_ended(&client, event);
    struct event *called_off = make_event(&client);
    paid(&client, called_off, 0);
    on_event(&client, called_off, CMD_EVENT_CANCEL);
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
