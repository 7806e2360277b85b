/* What pruning, erasing and restoring do about money, on a ledger that the engine made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ledger/backup.h"
#include "ledger/ledger.h"
#include "support/damaged_ledger.h"
#include "support/fixtures.h"
#include "support/paid_sale.h"

#define DAY_US INT64_C(86400000000)
#define ALL_NOTICES ((2u << NOTICE_HOLD_EXPIRED) - 1)

static struct damaged_ledger files;
static struct clock_fake now;
static struct client client;

static int begin(void **state)
{
    struct hf_err err = {0};
    (void)state;
    log_set_level(LOG_OFF);
    damaged_ledger_init(&files);
    clock_fake_init(&now, INT64_C(1790000000000000));
    assert_int_equal(client_start(&client, files.url, &now.clock, &err), HF_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (client.engine)
        client_stop(&client);
    damaged_ledger_close(&files);
    return 0;
}

/* The result of a query of one number; text counts as its length. */
static int64_t number(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open(files.good, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

static struct ledger *open_ledger(void)
{
    const struct db_options options = {.clock = &now.clock, .writer = true};
    struct hf_err err = {0};
    struct ledger *l;
    assert_int_equal(ledger_open(files.url, &options, &l, &err), HF_OK);
    return l;
}

static void stop_engine(void)
{
    client_stop(&client);
    clock_fake_advance(&now, DAY_US);
}

static void is_sound(void)
{
    struct verify_report report;
    damaged_ledger_is_sound(files.good, &report);
}

/* ---- pruning ---- */

/* Prunes all events that may be pruned, and returns how many. */
static int prune(void)
{
    struct ledger *l = open_ledger();
    struct hf_err err = {0};
    struct prune p = {0};
    int n = 0;
    while (assert_int_equal(ledger_prune_next(l, INT64_MAX, &p, &err), HF_OK), p.event) {
        while (p.event)
            assert_int_equal(ledger_prune_slice(l, INT64_MAX, &p, &err), HF_OK);
        n++;
    }
    ledger_close(l);
    return n;
}

/* Archives the event, lets its holds expire, and stops the engine. */
static void archive(struct event *event)
{
    clock_fake_advance(&now, DAY_US);
    sale_on_event(&client, event, CMD_EVENT_ARCHIVE);
    stop_engine();
}

static void is_not_pruned(struct event *event)
{
    archive(event);
    assert_int_equal(prune(), 0);
    assert_true(number("SELECT COUNT(*) FROM log WHERE entry >> 40 = 1") > 0);
    is_sound();
}

static void an_event_whose_intent_is_to_be_canceled_is_not_pruned(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    struct sale s = sale_pending(&client, event, 0, false);
    sale_cancel(&s);
    is_not_pruned(event);
}

static void an_event_with_a_pending_booking_is_not_pruned(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    sale_pending(&client, event, 0, false);
    is_not_pruned(event);
    assert_int_equal(number("SELECT COUNT(*) FROM bookings WHERE status = 1"), 1);
}

static void an_event_with_a_refund_that_is_owed_is_not_pruned(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    struct sale s = sale_paid(&client, event, 0);
    sale_cancel(&s);
    is_not_pruned(event);
}

static void an_event_with_a_refund_that_is_under_way_is_not_pruned(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    struct sale s = sale_paid(&client, event, 0);
    sale_refunded(&s, sale_refund(&s, 0), SALE_PRICE, REFUND_PENDING);
    is_not_pruned(event);
}

static void an_event_with_a_notification_that_is_owed_is_not_pruned(void **state)
{
    (void)state;
    struct hf_err err = {0};
    client_stop(&client);
    assert_int_equal(client_start_notifying(&client, files.url, &now.clock, ALL_NOTICES, &err),
                     HF_OK);
    struct event *event = sale_event(&client);
    sale_hold(&client, event, 0); /* its expiry is told */
    is_not_pruned(event);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 6 AND status = 1"), 1);
}

/* Tells the engine that all notifications have been delivered. */
static void deliver_all(struct event *event)
{
    struct job_row rows[16];
    struct call take = {.c.kind = CMD_JOBS_TAKE};
    take.c.jobs_take.query = (struct jobs_query){.notices_max = 16};
    take.c.jobs_take.rows = rows;
    while (sale_ask(&client, &take, VERDICT_OK), take.c.jobs_take.n) {
        for (size_t i = 0; i < take.c.jobs_take.n; i++) {
            struct call call = {.c.kind = CMD_PAYMENT_UPDATE, .c.event = event};
            struct payment_update *op = call.c.update = hf_alloc(sizeof *op);
            op->hold.id.key = rows[i].booking;
            op->report = (struct job_report){
                .job = rows[i].job, .kind = JOB_NOTIFY, .result = JOB_RESULT_DONE};
            sale_ask(&client, &call, VERDICT_OK);
            call_close(&call);
        }
    }
    call_close(&take);
}

static void a_settled_event_is_pruned_and_keeps_what_was_paid(void **state)
{
    (void)state;
    struct hf_err err = {0};
    client_stop(&client);
    assert_int_equal(client_start_notifying(&client, files.url, &now.clock, ALL_NOTICES, &err),
                     HF_OK);
    struct event *event = sale_event(&client);
    sale_paid(&client, event, 0);
    struct sale failed = sale_pending(&client, event, 1, false);
    sale_fact(&failed, INTENT_CANCELED, 0);
    sale_book(&failed, false);
    sale_fact(&failed, INTENT_CANCELED, 0);
    struct sale returned = sale_paid(&client, event, 2);
    sale_refunded(&returned, sale_refund(&returned, 0), SALE_PRICE, REFUND_SUCCEEDED);
    sale_hold(&client, event, 3);
    clock_fake_advance(&now, DAY_US);
    sale_on_event(&client, event, CMD_EVENT_CLOSE);
    deliver_all(event);
    archive(event);
    assert_int_equal(number("SELECT COUNT(*) FROM holds"), 4);
    assert_true(number("SELECT COUNT(*) FROM jobs WHERE status = 2") > 4);
    assert_int_equal(prune(), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM log"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM holds"), 3);
    assert_int_equal(number("SELECT COUNT(*) FROM bookings"), 3);
    assert_int_equal(number("SELECT COUNT(*) FROM bookings_past"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM payments"), 4);
    assert_int_equal(number("SELECT COUNT(*) FROM refunds"), 1);
    is_sound();
}

/* ---- erasing ---- */

static bool leave_answer(const char *body, size_t len, const struct erasure *x, bool is_own,
                         struct buf *out)
{
    (void)body, (void)len, (void)x, (void)is_own, (void)out;
    return false;
}

static void erasing_an_owner_takes_the_address_of_every_booking(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    struct sale failed = sale_pending(&client, event, 0, false);
    sale_fact(&failed, INTENT_CANCELED, 0);
    sale_book(&failed, false);
    sale_paid(&client, event, 1);
    stop_engine();
    assert_int_equal(number("SELECT COUNT(email) FROM bookings"), 2);
    assert_int_equal(number("SELECT COUNT(email) FROM bookings_past"), 1);
    assert_int_equal(number("SELECT checks_first FROM jobs WHERE kind = 4 AND status = 1"), 0);
    struct ledger *l = open_ledger();
    struct erasure x = {
        .owner = SALE_OWNER, .owner_len = strlen(SALE_OWNER), .rewrite = leave_answer};
    struct hf_err err = {0};
    while (!x.done)
        assert_int_equal(ledger_erase_slice(l, &x, &err), HF_OK);
    ledger_close(l);
    assert_int_equal(x.holds.n, 2);
    assert_int_equal(x.bookings, 2);
    vec_close(&x.holds);
    assert_int_equal(number("SELECT COUNT(email) FROM bookings"), 0);
    assert_int_equal(number("SELECT COUNT(email) FROM bookings_past"), 0);
    assert_int_equal(number("SELECT COUNT(owner) FROM holds"), 0);
    /* The intent is still to be made.  Without the address it is another request than before. */
    assert_int_equal(number("SELECT checks_first FROM jobs WHERE kind = 4 AND status = 1"), 1);
    is_sound();
}

/* ---- restoring ---- */

static void a_restored_ledger_looks_at_the_provider_before_it_acts(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    struct sale s = sale_hold(&client, event, 0);
    sale_book(&s, false);
    sale_paid(&client, event, 1);
    s = sale_paid(&client, event, 2);
    sale_cancel(&s);
    s = sale_pending(&client, event, 3, false);
    sale_fact(&s, INTENT_CANCELED, 0);
    stop_engine();
    damaged_ledger_damage(&files, "UPDATE jobs SET leased_until = 9000000000000");
    struct restored report;
    struct hf_err err = {0};
    assert_int_equal(ledger_make_ready(files.copy, &now.clock, -1, &report, &err), HF_OK);
    assert_int_equal(report.jobs, 2);
    assert_int_equal(report.payments, 3);
    snprintf(files.good, sizeof files.good, "%s", files.copy);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE leased_until > 0"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE checks_first = 1"), 2);
    is_sound();
    /* A poll is owed of every payment that is not canceled, once, however often it is restored. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 5"), 3);
        assert_int_equal(number("SELECT COUNT(DISTINCT payment) FROM jobs WHERE kind = 5"), 3);
        assert_int_equal(number("SELECT COUNT(*) FROM jobs j JOIN payments p"
                                " ON p.booking = j.booking AND p.payment = j.payment"
                                " WHERE j.kind = 5 AND p.status <> 8 AND j.job > p.payment"),
                         3);
        assert_int_equal(ledger_make_ready(files.copy, &now.clock, -1, &report, &err), HF_OK);
        assert_int_equal(report.payments, 3);
    }
    is_sound();
}

/* The hold that was live ends, and with it the intent, whatever has become of that. */
static void a_restored_pending_booking_has_its_intent_canceled(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    sale_pending(&client, event, 0, false);
    client_stop(&client); /* the hold is still live */
    struct restored report;
    struct hf_err err = {0};
    assert_int_equal(ledger_make_ready(files.good, &now.clock, -1, &report, &err), HF_OK);
    assert_int_equal(report.holds_ended, 1);
    assert_int_equal(client_start(&client, files.url, &now.clock, &err), HF_OK);
    struct call call;
    call_event_load(&call, 1);
    sale_ask(&client, &call, VERDICT_OK);
    sale_on_event(&client, call.c.event, CMD_EVENT_OPEN);
    call_close(&call);
    stop_engine();
    assert_int_equal(number("SELECT kind FROM jobs WHERE kind < 5"), JOB_CANCEL);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 5"), 1);
    assert_int_equal(number("SELECT status FROM bookings"), BOOKING_PENDING);
    is_sound();
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_event_whose_intent_is_to_be_canceled_is_not_pruned),
        TEST(an_event_with_a_pending_booking_is_not_pruned),
        TEST(an_event_with_a_refund_that_is_owed_is_not_pruned),
        TEST(an_event_with_a_refund_that_is_under_way_is_not_pruned),
        TEST(an_event_with_a_notification_that_is_owed_is_not_pruned),
        TEST(a_settled_event_is_pruned_and_keeps_what_was_paid),
        TEST(erasing_an_owner_takes_the_address_of_every_booking),
        TEST(a_restored_ledger_looks_at_the_provider_before_it_acts),
        TEST(a_restored_pending_booking_has_its_intent_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
