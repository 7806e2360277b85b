/* What pruning, erasing and restoring do about money and waiting lists, on a ledger that the engine made. */
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
#define ALL_NOTICES ((2u << NOTICE_WAITLIST_ENDED) - 1)

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
static int prune_before(const struct prune_limits *limits)
{
    struct ledger *l = open_ledger();
    struct hf_err err = {0};
    struct prune p = {0};
    int n = 0;
    do {
        assert_int_equal(ledger_prune_next(l, limits, &p, &err), HF_OK);
        n += p.event != 0;
        while (p.event)
            assert_int_equal(ledger_prune_slice(l, limits, &p, &err), HF_OK);
    } while (p.after);
    ledger_close(l);
    return n;
}

static int prune(void) { return prune_before(&(struct prune_limits){INT64_MAX, PRUNE_NEVER}); }

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

static void start_notifying_again(void)
{
    struct hf_err err = {0};
    assert_int_equal(client_start_notifying(&client, files.url, &now.clock, ALL_NOTICES, &err),
                     HF_OK);
}

/* From here on the shop is told of everything. */
static void start_notifying(void)
{
    client_stop(&client);
    start_notifying_again();
}

static void an_event_with_a_notification_that_is_owed_is_not_pruned(void **state)
{
    (void)state;
    start_notifying();
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
    start_notifying();
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

/* ---- finished holds ---- */

/* Rows of the log that are about a hold which is not there. */
#define ROWS_OF_NO_HOLD                                                                            \
    "SELECT COUNT(*) FROM log WHERE hold NOT IN (SELECT hold FROM holds UNION SELECT 0)"
#define NEWEST_ENTRY "SELECT MAX(entry) FROM log"

static int64_t now_ms(void) { return clock_wall_us(&now.clock) / 1000; }

static void pass_ttl(void) { clock_fake_advance(&now, (SALE_TTL_MS + 1) * 1000); }

static int prune_holds(int64_t before)
{
    return prune_before(&(struct prune_limits){PRUNE_NEVER, before});
}

static void restart_engine(void)
{
    struct hf_err err = {0};
    assert_int_equal(client_start(&client, files.url, &now.clock, &err), HF_OK);
}

static struct event *load(int64_t key)
{
    struct call call;
    call_event_load(&call, key);
    sale_ask(&client, &call, VERDICT_OK);
    return call.c.event;
}

static void finished_holds_leave_an_event_on_sale_and_whatever_was_booked_stays(void **state)
{
    (void)state;
    struct event *event = sale_event(&client);
    sale_hold(&client, event, 0); /* expires */
    sale_hold(&client, event, 2); /* expires */
    struct sale failed = sale_pending(&client, event, 1, false);
    sale_fact(&failed, INTENT_CANCELED, 0);
    sale_paid(&client, event, 3);
    pass_ttl();
    struct sale sold = sale_hold(&client, event, 0);
    sale_confirm(&sold);
    sale_hold(&client, event, 2);
    int64_t before = now_ms();
    pass_ttl();
    sale_hold(&client, event, 2); /* the one before ends now */
    stop_engine();
    assert_int_equal(number("SELECT COUNT(*) FROM holds"), 7);
    int64_t rows = number("SELECT COUNT(*) FROM log");
    assert_int_equal(prune_holds(before), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM holds"), 5);
    assert_int_equal(number("SELECT COUNT(*) FROM log"), rows - 2 * 2);
    assert_int_equal(number(ROWS_OF_NO_HOLD), 0);
    is_sound();
    assert_int_equal(prune_holds(before), 0); /* it is done */

    /* Seats whose holds are gone are sold as any others, and the newest entry stays. */
    restart_engine();
    event = load(1);
    sale_paid(&client, event, 2);
    pass_ttl();
    sale_hold(&client, event, 4);
    pass_ttl();
    sale_on_event(&client, event, CMD_EVENT_CLOSE); /* the hold ends */
    stop_engine();
    is_sound();
    int64_t newest = number(NEWEST_ENTRY);
    assert_int_equal(prune_holds(INT64_MAX), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM holds WHERE status IN (2, 3)"), 1); /* booked */
    assert_int_equal(number(ROWS_OF_NO_HOLD), 0);
    assert_int_equal(number(NEWEST_ENTRY), newest);
    is_sound();
}

static void a_finished_hold_stays_until_the_shop_has_been_told(void **state)
{
    (void)state;
    start_notifying();
    struct event *event = sale_event(&client);
    sale_hold(&client, event, 0);
    pass_ttl();
    sale_hold(&client, event, 0); /* the one before ends, which is to be told */
    deliver_all(event);
    pass_ttl();
    sale_hold(&client, event, 0);
    stop_engine();
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 6"), 2);
    assert_int_equal(prune_holds(INT64_MAX), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM holds"), 2);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 6 AND status = 1"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 6"), 1);
    is_sound();
}

/* ---- ended entries of waiting lists ---- */

#define OFFER_TTL_MS SALE_TTL_MS

static struct event *event_with_waits(void)
{
    struct call call;
    call_event_create(&call, 1, 1);
    call_wait_terms(&call, OFFER_TTL_MS);
    sale_ask(&client, &call, VERDICT_CREATED);
    int64_t key = call.c.event_create->id.key;
    call_close(&call);
    return load(key);
}

/* Holds all places of the area. */
static struct id hold_area(struct event *event)
{
    static const struct area_claim all = {0, 5};
    struct call call;
    call_hold(&call, event, 0, 1, SALE_TTL_MS);
    call.c.create.n_seats = 0;
    call.c.create.areas = &all;
    call.c.create.n_areas = 1;
    sale_ask(&client, &call, VERDICT_CREATED);
    struct id hold = command_hold(&call.c)->id;
    call_close(&call);
    return hold;
}

static void release(struct event *event, struct id hold)
{
    struct call call;
    call_on_hold(&call, CMD_HOLD_RELEASE, event, &hold);
    sale_ask(&client, &call, VERDICT_OK);
    call_close(&call);
}

static struct wait_row join(struct event *event, uint32_t quantity)
{
    struct call call;
    call_wait(&call, event, quantity);
    call.c.wait_join.owner = SALE_OWNER;
    call.c.wait_join.owner_len = sizeof SALE_OWNER - 1;
    call.c.wait_join.client = 7;
    call.c.wait_join.metadata = "{}";
    call.c.wait_join.metadata_len = 2;
    sale_ask(&client, &call, VERDICT_CREATED);
    struct wait_row row = call.c.wait_join.wait;
    call_close(&call);
    return row;
}

static void change_wait(struct event *event, struct wait_row row, enum wait_change_kind kind)
{
    struct call call;
    call_wait_change(&call, event, kind, &row.id);
    sale_ask(&client, &call, VERDICT_OK);
    call_close(&call);
}

#define ROWS_OF_WAITS "SELECT COUNT(*) FROM log WHERE object = 7"

/* All wait for all places.  Entry 1 leaves, 2 lapses, 3 is evicted, 4 is offered, and 5 waits. */
static struct event *make_waits(void)
{
    struct event *event = event_with_waits();
    struct id hold = hold_area(event);
    change_wait(event, join(event, 5), WAIT_LEAVES);
    join(event, 5);
    change_wait(event, join(event, 5), WAIT_EVICTS);
    join(event, 5);
    release(event, hold);
    clock_fake_advance(&now, (OFFER_TTL_MS + 1) * 1000);
    join(event, 5);
    return event;
}

static void ended_entries_leave_an_event_on_sale_and_those_that_wait_stay(void **state)
{
    (void)state;
    start_notifying();
    struct event *event = make_waits();
    deliver_all(event);
    stop_engine();
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist"), 5);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs WHERE kind = 6 AND status = 2"), 5);
    assert_int_equal(prune_holds(INT64_MAX), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist"), 2);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist WHERE ended_at = 0"), 2);
    assert_int_equal(number("SELECT COUNT(*) FROM holds"), 1); /* what entry 4 is offered */
    assert_int_equal(number(ROWS_OF_WAITS), 2 + 1);
    assert_int_equal(number(ROWS_OF_NO_HOLD), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs"), 1); /* that it was offered something */
    is_sound();
    assert_int_equal(prune_holds(INT64_MAX), 0); /* it is done */
}

static void
an_ended_entry_stays_until_the_shop_has_been_told_and_the_newest_for_its_number(void **state)
{
    (void)state;
    start_notifying();
    make_waits();
    stop_engine(); /* nothing has been delivered */
    start_notifying_again();
    struct event *event = load(1);
    /* The entries 4 and 5 lapse and end, since nobody read them for a day.  What entry 6 is offered
     * is released, so the hold goes, and the entry stays. */
    struct id hold = hold_area(event);
    struct wait_row last = join(event, 5);
    assert_int_equal(last.number, 6);
    release(event, hold);
    change_wait(event, last, WAIT_LEAVES);
    hold_area(event);
    sale_hold(&client, event, 0); /* is the last in the log */
    client_stop(&client);
    assert_int_equal(prune_holds(INT64_MAX), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist WHERE ended_at = 0"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist WHERE number = 1"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist w WHERE number = 6"
                            " AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.hold = w.hold)"),
                     1);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist"), 5);
    is_sound();

    /* The next one gets the next number, also on a server that has read only what is left. */
    start_notifying_again();
    event = load(1);
    last = join(event, 5);
    assert_int_equal(last.number, 7);
    change_wait(event, last, WAIT_LEAVES);
    pass_ttl();
    sale_on_event(&client, event, CMD_EVENT_CLOSE);
    deliver_all(event);
    archive(event);
    assert_int_equal(prune(), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM waitlist"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM log"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM jobs"), 0);
    is_sound();
}

#define CROWD 250 /* seats that are held and let go in each round */
#define ROUND_US INT64_C(3600000000)
#define KEPT_ROUNDS 3

/* Holds every seat at once.  The holds of the round before have expired. */
static void hold_all(struct event *event, struct call *calls)
{
    struct call *list[CROWD];
    for (uint32_t i = 0; i < CROWD; i++) {
        call_hold(&calls[i], event, i, 1, SALE_TTL_MS);
        list[i] = &calls[i];
    }
    client_batch(&client, event->def->id.key, list, CROWD);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(calls[i].c.verdict, VERDICT_CREATED);
        call_close(&calls[i]);
    }
}

/* Gives the worker turns in which it can prune.  The second answer says that the turn of the first
 * has ended: a clock that went on meanwhile would make it seem a long one, and pauses follow those. */
static void give_turns(struct event *event, int n)
{
    const struct id none = {.key = INT64_C(1) << 40};
    for (; n; n--) {
        clock_fake_advance(&now, 50000);
        for (int i = 0; i < 2; i++) {
            struct call call;
            call_on_hold(&call, CMD_HOLD_RELEASE, event, &none);
            sale_ask(&client, &call, VERDICT_NO_SUCH_HOLD);
            call_close(&call);
        }
    }
}

/* HF_HOLDS: how many there are.  Each takes about 212 bytes until it is pruned. */
static void the_file_stays_level_however_many_holds_expire(void **state)
{
    (void)state;
    const char *wanted = getenv("HF_HOLDS");
    int64_t rounds = (wanted ? atoll(wanted) : 10000) / CROWD, most_bytes = INT64_C(1) << 20;
    const struct engine_config config = {.ledger_url = files.url,
                                         .clock = &now.clock,
                                         .keep_holds_ms = KEPT_ROUNDS * ROUND_US / 1000};
    struct call *calls = hf_alloc(CROWD * sizeof *calls), call;
    struct hf_err err = {0};
    assert_true(rounds * CROWD * 200 > most_bytes);
    client_stop(&client);
    assert_int_equal(client_start_with(&client, &config, &err), HF_OK);
    call_event_create(&call, CROWD / 25, 25);
    sale_ask(&client, &call, VERDICT_CREATED);
    call_close(&call);
    struct event *event = load(1);
    for (int64_t i = 0; i < rounds; i++) {
        hold_all(event, calls);
        clock_fake_advance(&now, ROUND_US);
        give_turns(event, 8);
    }
    stop_engine();
    free(calls);
    int64_t bytes = number("PRAGMA page_count") * number("PRAGMA page_size");
    int64_t left = number("SELECT COUNT(*) FROM holds");
    print_message("%lld holds, of which %lld are left, in %lld KB\n", (long long)rounds * CROWD,
                  (long long)left, (long long)bytes >> 10);
    assert_true(left < (KEPT_ROUNDS + 3) * CROWD);
    assert_int_equal(number(ROWS_OF_NO_HOLD), 0);
    assert_true(bytes <= most_bytes);
    is_sound();
}

/* ---- erasing ---- */

static bool leave_answer(const char *body, size_t len, const struct erasure *x, bool is_own,
                         struct buf *out)
{
    (void)body, (void)len, (void)x, (void)is_own, (void)out;
    return false;
}

/* Erases the owner of all that these tests make. */
static void erase_owner(size_t n_holds, int64_t n_bookings)
{
    struct ledger *l = open_ledger();
    struct erasure x = {
        .owner = SALE_OWNER, .owner_len = strlen(SALE_OWNER), .rewrite = leave_answer};
    struct hf_err err = {0};
    while (!x.done)
        assert_int_equal(ledger_erase_slice(l, &x, &err), HF_OK);
    ledger_close(l);
    assert_int_equal(x.holds.n, n_holds);
    assert_int_equal(x.bookings, n_bookings);
    vec_close(&x.holds);
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
    erase_owner(2, 2);
    assert_int_equal(number("SELECT COUNT(email) FROM bookings"), 0);
    assert_int_equal(number("SELECT COUNT(email) FROM bookings_past"), 0);
    assert_int_equal(number("SELECT COUNT(owner) FROM holds"), 0);
    /* The intent is still to be made.  Without the address it is another request than before. */
    assert_int_equal(number("SELECT checks_first FROM jobs WHERE kind = 4 AND status = 1"), 1);
    is_sound();
}

static void erasing_an_owner_takes_the_label_of_every_entry(void **state)
{
    (void)state;
    make_waits();
    client_stop(&client);
    assert_int_equal(number("SELECT COUNT(owner) + COUNT(metadata) FROM waitlist"), 2 * 5);
    erase_owner(2, 0); /* the holds that were offered */
    assert_int_equal(number("SELECT COUNT(owner) + COUNT(metadata) FROM waitlist"), 0);
    assert_int_equal(number("SELECT SUM(client) FROM waitlist"), 0);
    assert_int_equal(number("SELECT COUNT(owner) + COUNT(metadata) FROM holds"), 0);
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
        TEST(finished_holds_leave_an_event_on_sale_and_whatever_was_booked_stays),
        TEST(a_finished_hold_stays_until_the_shop_has_been_told),
        TEST(the_file_stays_level_however_many_holds_expire),
        TEST(ended_entries_leave_an_event_on_sale_and_those_that_wait_stay),
        TEST(an_ended_entry_stays_until_the_shop_has_been_told_and_the_newest_for_its_number),
        TEST(erasing_an_owner_takes_the_address_of_every_booking),
        TEST(erasing_an_owner_takes_the_label_of_every_entry),
        TEST(a_restored_ledger_looks_at_the_provider_before_it_acts),
        TEST(a_restored_pending_booking_has_its_intent_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
