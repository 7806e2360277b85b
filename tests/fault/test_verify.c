/* `holdfast verify` finds what is wrong.  The engine makes a real ledger with a hold in every
 * state. Each test damages a copy of it in one way, by SQL, and verify must name the invariants
 * that this breaks, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "fault/verify_damages.h"
#include "ledger/ledger.h"
#include "ledger/verify.h"
#include "support/engine_client.h"
#include "support/fixtures.h"

#define EVENTS 7
#define ROWS 2
#define SEATS_PER_ROW 10
#define TTL_MS INT64_C(60000)

static struct damaged_ledger files;

/* ---- the ledger ----
 *
 *   event 1   fence 1: active, seats 0 1        fence 5: expired, seat 7
 *             fence 2: renewed, seats 2 3       fence 6: confirmed, seats 8 9
 *             fence 3: confirmed, seats 4 5     fence 7: expired, then rescued by fence 8, seat 10
 *             fence 4: released, seat 6
 *   event 2   fence 1: active, seat 0
 *   event 3   of area 0, which has 5 places, 2 are held and 2 booked in the end; closed
 *             fence 1: active, 2 places         fence 4: seats 18 19 blocked
 *             fence 2: confirmed, seat 0 and    fence 5: seat 19 unblocked
 *                      a place                  fence 6: expired, then rescued by fence 7, a place
 *             fence 3: evicted, a place         fence 8: active, two seats of our choice
 *   event 4   has the channels house (1) and press (2), and is archived
 *             fence 1: seats 0 1 2 and two places blocked for house
 *             fence 2: seat 3 blocked for press
 *             fence 3: active, of house, seats 0 5 and a place
 *             fence 4: released, of house, seat 1 and a place
 *             fence 5: confirmed and cancelled, of house, seat 2
 *             fence 6: active, seats 8 9 and a place; by fence 7 seats 8 10 and two places
 *             fence 8: seat 3 blocked for house
 *             fence 9: confirmed and cancelled, seats 12 13
 *   event 5   is archived; all of its log has been pruned but the last entries
 *             fence 1: confirmed, seat 0        fence 3: released, seat 2: gone
 *             fence 2: confirmed and then       fence 4: confirmed, a place
 *                      cancelled, seat 1
 *   event 6   is on sale; its finished holds were pruned before the last of them was made
 *             fence 1: released, at first seat 0 and a place, by fence 2 seat 1 and two places:
 *                      gone
 *             fence 3: confirmed, seat 0
 *             fence 4: seat 4 and a place blocked for house (1)
 *             fence 5: released, of house, seat 4
 *             fence 6: released, of house, a place: gone
 *             fence 7: seat 5 blocked
 *             fence 8: active, seats 1 2
 *   event 7   has a waiting list for a place of area 0; two of its 5 places are held by fence 1
 *             fences 2 to 4: released, a place each
 *             fence 5: entry 1, offered fence 11, which is confirmed
 *             fence 6: entry 2, offered fence 12, which is released
 *             fence 7: entry 3, offered fence 13, which is active
 *             fence 8: entry 4, which came first, offered fence 10, which is active
 *             fence 9: entry 5, waits         fence 14: entry 6, evicted, waited */

static void ask(struct client *client, struct call *call, enum verdict want)
{
    assert_int_equal(client_ask(client, call), want);
}

static struct event *make_event_with_waits(struct client *client, int64_t offer_ttl_ms)
{
    struct call call;
    call_event_create(&call, ROWS, SEATS_PER_ROW);
    if (offer_ttl_ms)
        call_wait_terms(&call, offer_ttl_ms);
    ask(client, &call, VERDICT_CREATED);
    int64_t key = call.c.event_create->id.key;
    call_close(&call);
    call_event_load(&call, key);
    ask(client, &call, VERDICT_OK);
    return call.c.event;
}

static struct event *make_event(struct client *client) { return make_event_with_waits(client, 0); }

static struct hold_row make_hold(struct client *client, struct event *event, uint32_t first,
                                 uint32_t n, int64_t ttl_ms)
{
    struct call call;
    call_hold(&call, event, first, n, ttl_ms);
    ask(client, &call, VERDICT_CREATED);
    struct hold_row row = *command_hold(&call.c);
    call_close(&call);
    return row;
}

static void on_hold(struct client *client, struct event *event, const struct hold_row *hold,
                    enum command_kind kind, enum verdict want)
{
    struct call call;
    call_on_hold(&call, kind, event, &hold->id);
    if (kind == CMD_HOLD_CONFIRM) {
        call.c.confirm.fence = hold->fence;
        call.c.confirm.rescue = true;
    }
    ask(client, &call, want);
    call_close(&call);
}

static struct hold_row make_places(struct client *client, struct event *event, uint32_t quantity,
                                   bool seat, int64_t ttl_ms)
{
    const struct area_claim claim = {0, quantity};
    struct call call;
    call_hold(&call, event, 0, 1, ttl_ms);
    call.c.create.n_seats = seat;
    call.c.create.areas = &claim;
    call.c.create.n_areas = 1;
    ask(client, &call, VERDICT_CREATED);
    struct hold_row row = *command_hold(&call.c);
    call_close(&call);
    return row;
}

static void on_event(struct client *client, struct event *event, enum command_kind kind,
                     uint32_t first_seat, uint32_t n_seats)
{
    struct call call;
    call_hold(&call, event, first_seat, n_seats, 0);
    call.c.kind = kind;
    call.c.block = (struct seats_block){.seats = call.seats,
                                        .n_seats = n_seats,
                                        .blocks = kind == CMD_SEATS_BLOCK,
                                        .shortage.taken = call.taken};
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

static struct {
    struct event *event;
    struct hold_row rescued;
} three;

static void begin_event_3(struct client *client)
{
    three.event = make_event(client);
    make_places(client, three.event, 2, false, TTL_MS * 2);
    struct hold_row sold = make_places(client, three.event, 1, true, TTL_MS * 2);
    struct hold_row evicted = make_places(client, three.event, 1, false, TTL_MS * 2);
    on_event(client, three.event, CMD_SEATS_BLOCK, 18, 2);
    on_event(client, three.event, CMD_SEATS_UNBLOCK, 19, 1);
    three.rescued = make_places(client, three.event, 1, false, TTL_MS);
    on_hold(client, three.event, &sold, CMD_HOLD_CONFIRM, VERDICT_CREATED);
    on_hold(client, three.event, &evicted, CMD_HOLD_EVICT, VERDICT_OK);
}

static void end_event_3(struct client *client)
{
    struct call call;
    on_hold(client, three.event, &three.rescued, CMD_HOLD_CONFIRM, VERDICT_CREATED);
    call_hold(&call, three.event, 0, 1, TTL_MS * 2);
    call.c.create.n_seats = 0;
    call.c.create.best = (struct best_want){.quantity = 2, .section = -1, .adjacent = true};
    ask(client, &call, VERDICT_CREATED);
    call_close(&call);
    on_event(client, three.event, CMD_EVENT_CLOSE, 0, 1);
}

static void block_for(struct client *client, struct event *event, uint32_t first, uint32_t n,
                      const char *channel, const struct area_claim *area)
{
    struct call call;
    call_hold(&call, event, first, n, 0);
    call.c.kind = CMD_SEATS_BLOCK;
    call.c.block = (struct seats_block){.seats = call.seats,
                                        .n_seats = n,
                                        .areas = area,
                                        .n_areas = area != NULL,
                                        .blocks = true,
                                        .channel = channel,
                                        .channel_len = strlen(channel),
                                        .shortage.taken = call.taken};
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

/* Makes a hold of channel 1 (0: of none) on two seats at most, and a place if there is an area. */
static struct hold_row make_in_channel(struct client *client, struct event *event, uint32_t channel,
                                       const uint32_t *seats, uint32_t n,
                                       const struct area_claim *area)
{
    struct call call;
    call_hold(&call, event, seats[0], 1, TTL_MS * 2);
    if (n > 1)
        call.seats[1] = seats[1];
    call.c.create.n_seats = n;
    call.c.create.channel = channel;
    call.c.create.areas = area;
    call.c.create.n_areas = area != NULL;
    ask(client, &call, VERDICT_CREATED);
    struct hold_row row = *command_hold(&call.c);
    call_close(&call);
    return row;
}

static struct id sell(struct client *client, struct event *event, const struct hold_row *hold)
{
    struct call call;
    call_on_hold(&call, CMD_HOLD_CONFIRM, event, &hold->id);
    call.c.confirm.fence = hold->fence;
    ask(client, &call, VERDICT_CREATED);
    struct id booking = call.c.confirm.booking.id;
    call_close(&call);
    return booking;
}

static void cancel(struct client *client, struct event *event, struct id booking)
{
    struct call call = {.c.kind = CMD_BOOKING_CANCEL, .c.event = event};
    call.c.cancel.id = booking;
    call.c.cancel.hold.id.key = booking.key;
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

static void raise_prices(struct client *client, struct event *event)
{
    struct call call = {.c.kind = CMD_EVENT_CHANGE, .c.event = event};
    *vec_push(&call.c.event_change.prices) = (struct price_change){.index = 0, .price = 1200};
    *vec_push(&call.c.event_change.prices) = (struct price_change){.index = 1, .price = 700};
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

static void change_hold(struct client *client, struct event *event, const struct hold_row *hold,
                        uint32_t add, uint32_t remove, const struct area_claim *area)
{
    struct call call;
    call_on_hold(&call, CMD_HOLD_CHANGE, event, &hold->id);
    call.c.change.fence = hold->fence;
    call.c.change.add = &add;
    call.c.change.remove = &remove;
    call.c.change.n_add = call.c.change.n_remove = call.c.change.n_add_areas = 1;
    call.c.change.add_areas = area;
    call.c.change.shortage.taken = call.taken;
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

static void make_event_4(struct client *client)
{
    static const struct area_claim one = {0, 1}, two = {0, 2};
    static const uint32_t held[] = {0, 5}, released[] = {1}, returned[] = {2}, changed[] = {8, 9},
                          sold[] = {12, 13};
    struct event *event = make_event(client);
    block_for(client, event, 0, 3, "house", &two);
    block_for(client, event, 3, 1, "press", NULL);
    make_in_channel(client, event, 1, held, 2, &one);
    struct hold_row hold = make_in_channel(client, event, 1, released, 1, &one);
    on_hold(client, event, &hold, CMD_HOLD_RELEASE, VERDICT_OK);
    hold = make_in_channel(client, event, 1, returned, 1, NULL);
    cancel(client, event, sell(client, event, &hold));
    hold = make_in_channel(client, event, 0, changed, 2, &one);
    raise_prices(client, event);
    change_hold(client, event, &hold, 10, 9, &one);
    block_for(client, event, 3, 1, "house", NULL);
    hold = make_in_channel(client, event, 0, sold, 2, NULL);
    cancel(client, event, sell(client, event, &hold));
    on_event(client, event, CMD_EVENT_ARCHIVE, 0, 1);
}

static struct id make_event_5(struct client *client)
{
    static const struct area_claim one = {0, 1};
    struct event *event = make_event(client);
    struct hold_row sold = make_hold(client, event, 0, 1, TTL_MS);
    struct hold_row returned = make_hold(client, event, 1, 1, TTL_MS);
    struct hold_row released = make_hold(client, event, 2, 1, TTL_MS);
    struct hold_row place = make_in_channel(client, event, 0, &(uint32_t){0}, 0, &one);
    sell(client, event, &sold);
    struct id booking = sell(client, event, &returned);
    on_hold(client, event, &released, CMD_HOLD_RELEASE, VERDICT_OK);
    sell(client, event, &place);
    on_event(client, event, CMD_EVENT_ARCHIVE, 0, 1);
    return booking;
}

static void make_event_6(struct client *client)
{
    static const struct area_claim one = {0, 1};
    struct event *event = make_event(client);
    struct hold_row hold = make_in_channel(client, event, 0, &(uint32_t){0}, 1, &one);
    on_hold(client, event, &hold, CMD_HOLD_RENEW, VERDICT_OK);
    change_hold(client, event, &hold, 1, 0, &one);
    hold.fence++;
    struct hold_row sold = make_hold(client, event, 0, 1, TTL_MS);
    on_hold(client, event, &hold, CMD_HOLD_RELEASE, VERDICT_OK);
    sell(client, event, &sold);
    block_for(client, event, 4, 1, "house", &one);
    hold = make_in_channel(client, event, 1, &(uint32_t){4}, 1, NULL);
    on_hold(client, event, &hold, CMD_HOLD_RELEASE, VERDICT_OK);
    hold = make_in_channel(client, event, 1, &(uint32_t){0}, 0, &one);
    on_hold(client, event, &hold, CMD_HOLD_RELEASE, VERDICT_OK);
    on_event(client, event, CMD_SEATS_BLOCK, 5, 1);
}

/* Waits for a place of area 0. */
static struct id join(struct client *client, struct event *event)
{
    struct call call;
    call_wait(&call, event, 1);
    ask(client, &call, VERDICT_CREATED);
    struct id entry = call.c.wait_join.wait.id;
    call_close(&call);
    return entry;
}

static void change_wait(struct client *client, struct event *event, struct id entry,
                        enum wait_change_kind kind)
{
    struct call call;
    call_wait_change(&call, event, kind, &entry);
    ask(client, &call, VERDICT_OK);
    call_close(&call);
}

/* The hold that the entry is offered. */
static struct hold_row offer_to(struct client *client, struct id entry)
{
    struct call call = {.c.kind = CMD_WAIT_GET, .c.wait_get.id = entry};
    ask(client, &call, VERDICT_OK);
    const struct id hold = call.c.wait_get.row.offer.id;
    call_close(&call);
    return (struct hold_row){.id = hold, .fence = HOLD_FIRST_FENCE(hold.key)};
}

static void make_event_7(struct client *client)
{
    struct event *event = make_event_with_waits(client, TTL_MS * 2);
    struct hold_row held[3], hold;
    struct id entries[6];
    make_places(client, event, 2, false, TTL_MS);
    for (int i = 0; i < 3; i++)
        held[i] = make_places(client, event, 1, false, TTL_MS);
    for (int i = 0; i < 5; i++)
        entries[i] = join(client, event);
    change_wait(client, event, entries[3], WAIT_COMES_FIRST);
    for (int i = 0; i < 3; i++)
        on_hold(client, event, &held[i], CMD_HOLD_RELEASE, VERDICT_OK);
    hold = offer_to(client, entries[0]);
    sell(client, event, &hold);
    hold = offer_to(client, entries[1]);
    on_hold(client, event, &hold, CMD_HOLD_RELEASE, VERDICT_OK);
    entries[5] = join(client, event);
    change_wait(client, event, entries[5], WAIT_EVICTS);
}

/* Prunes an event, as retention does. */
static void prune(struct ledger *ledger, int64_t event, bool whole)
{
    struct prune prune = {.event = event, .whole = whole, .hold = HOLD_KEY(event, 0)};
    const struct prune_limits all = {INT64_MAX, INT64_MAX};
    struct hf_err err = {0};
    while (prune.event)
        assert_int_equal(ledger_prune_slice(ledger, &all, &prune, &err), HF_OK);
}

static struct event *load(struct client *client, int64_t event)
{
    struct call call;
    call_event_load(&call, event);
    ask(client, &call, VERDICT_OK);
    return call.c.event;
}

/* Prunes events 5 and 6, and changes both of them afterwards. */
static void prune_some(const char *url, const struct clock *clock, struct id booking)
{
    const struct db_options options = {.clock = clock, .writer = true};
    struct hf_err err = {0};
    struct ledger *ledger;
    struct client client;
    assert_int_equal(ledger_open(url, &options, &ledger, &err), HF_OK);
    prune(ledger, 5, true);
    prune(ledger, 6, false);
    ledger_close(ledger);
    assert_int_equal(client_start(&client, url, clock, &err), HF_OK);
    cancel(&client, load(&client, 5), booking);
    make_hold(&client, load(&client, 6), 1, 2, TTL_MS);
    client_stop(&client);
}

static int make_ledger(void **state)
{
    (void)state;
    struct clock_fake clock;
    struct client client;
    struct hf_err err = {0};
    damaged_ledger_init(&files);
    log_set_level(LOG_OFF);

    clock_fake_init(&clock, INT64_C(1790000000000000));
    assert_int_equal(client_start(&client, files.url, &clock.clock, &err), HF_OK);
    struct event *one = make_event(&client), *two = make_event(&client);
    make_hold(&client, one, 0, 2, TTL_MS * 2);
    struct hold_row renewed = make_hold(&client, one, 2, 2, TTL_MS * 2);
    struct hold_row sold = make_hold(&client, one, 4, 2, TTL_MS * 2);
    struct hold_row released = make_hold(&client, one, 6, 1, TTL_MS * 2);
    make_hold(&client, one, 7, 1, TTL_MS);
    struct hold_row sold_too = make_hold(&client, one, 8, 2, TTL_MS * 2);
    struct hold_row rescued = make_hold(&client, one, 10, 1, TTL_MS);
    make_hold(&client, two, 0, 1, TTL_MS * 2);
    on_hold(&client, one, &renewed, CMD_HOLD_RENEW, VERDICT_OK);
    on_hold(&client, one, &sold, CMD_HOLD_CONFIRM, VERDICT_CREATED);
    on_hold(&client, one, &released, CMD_HOLD_RELEASE, VERDICT_OK);
    begin_event_3(&client);
    clock_fake_advance(&clock, INT64_C(1000) * TTL_MS);
    on_hold(&client, one, &sold_too, CMD_HOLD_CONFIRM, VERDICT_CREATED);
    on_hold(&client, one, &rescued, CMD_HOLD_CONFIRM, VERDICT_CREATED);
    end_event_3(&client);
    make_event_4(&client);
    struct id booking = make_event_5(&client);
    make_event_6(&client);
    make_event_7(&client);
    client_stop(&client);
    prune_some(files.url, &clock.clock, booking);
    return 0;
}

static int remove_ledger(void **state)
{
    (void)state;
    damaged_ledger_close(&files);
    return 0;
}

/* ---- damage ---- */

static void is_named(void **state) { damaged_ledger_is_named(&files, *state); }

/* ---- the rest ---- */

/* There is no money in this ledger; test_verify_money.c has another. */
static bool has_rows(size_t check)
{
    return (check < VERIFY_PAYMENTS || check > VERIFY_JOBS) && check != VERIFY_FOLD_PAYMENTS &&
           check != VERIFY_MERGED;
}

static void a_ledger_made_by_the_engine_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_is_sound(files.good, &report);
    for (size_t i = 0; i < VERIFY_GATE; i++)
        assert_int_equal(report.checks[i].rows > 0, has_rows(i));
    assert_int_equal(report.events, EVENTS);
    assert_int_equal(report.checks[VERIFY_SEAT_OWNER].rows, EVENTS * ROWS * SEATS_PER_ROW);
    assert_int_equal(report.checks[VERIFY_HOLD_STATUS].rows, 8 + 5 + 5 + 3 + 3 + 8);
    assert_int_equal(report.checks[VERIFY_SALES].rows, 5 + 1 + 1 + 1);
    assert_int_equal(report.checks[VERIFY_FOLD_BOOKINGS].rows, 3 + 2 + 2 + 3 + 1 + 1);
    assert_int_equal(report.checks[VERIFY_FOLD_AREAS].rows, EVENTS);
    assert_int_equal(report.checks[VERIFY_FOLD_EVENTS].rows, EVENTS);
    assert_int_equal(report.checks[VERIFY_FOLD_WAITS].rows, 6);
    assert_int_equal(report.checks[VERIFY_WAITS].rows, 6);
}

static void many_violations_are_counted_and_five_are_shown(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_damage(
        &files, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19)"
                " INSERT INTO seats SELECT event << 32 | i, 3, 0, 0, 0 FROM events, n WHERE true"
                " ON CONFLICT (seat) DO NOTHING");
    damaged_ledger_verify(files.copy, &report);
    const struct verify_check *check = &report.checks[VERIFY_FOLD_SEATS];
    /* Of event 5 only the seat that the rest of its log is about. */
    assert_int_equal(check->violations, (EVENTS - 1) * ROWS * SEATS_PER_ROW - 5 - 2 - 4 - 3 + 1);
    for (int i = 0; i < VERIFY_EXAMPLES; i++)
        assert_non_null(strstr(check->examples[i], "event 1, seat "));
}

/* Events of schema versions before 3 have a row for each row of seats. */
static void an_event_that_was_made_with_all_its_rows_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_damage(&files, "INSERT INTO seat_rows SELECT event, 0, 0, 'A', 10 FROM events;"
                                  "INSERT INTO seat_rows SELECT event, 0, 1, 'B', 10 FROM events;"
                                  "UPDATE sections SET layout = NULL");
    damaged_ledger_verify(files.copy, &report);
    assert_int_equal(report.violations, 0);
    assert_int_equal(report.checks[VERIFY_SEAT_OWNER].rows, EVENTS * ROWS * SEATS_PER_ROW);
}

/* Of holds of schema versions before 5 the prices are not known. */
static void holds_of_unknown_prices_are_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damaged_ledger_damage(&files, "UPDATE holds SET prices = CASE status WHEN 1 THEN '[]' END;"
                                  "UPDATE holds SET amount = amount + 1 WHERE hold = hold:4.4");
    damaged_ledger_verify(files.copy, &report);
    assert_int_equal(report.violations, 0);
}

/* The entries of the event are deleted one by one, as retention does slice by slice. */
static void prune_one_by_one(int event, const char *archive)
{
    struct verify_report report;
    int64_t rows = INT64_MAX, n = 0;
    for (; rows > 0; n++) {
        char sql[1024];
        snprintf(sql, sizeof sql,
                 "%s; UPDATE events SET pruned_seq ="
                 " COALESCE((SELECT (entry & ((1 << 40) - 1)) - 1"
                 " FROM log WHERE entry >> 40 = %d ORDER BY entry LIMIT 1 OFFSET %d),"
                 " (SELECT seq FROM event_clock WHERE event = %d)) WHERE event = %d;"
                 "DELETE FROM log WHERE entry >> 40 = %d AND entry <="
                 " (SELECT pruned_seq FROM events WHERE event = %d) + (%d << 40)",
                 archive, event, (int)n, event, event, event, event, event);
        damaged_ledger_damage(&files, sql);
        damaged_ledger_verify(files.copy, &report);
        for (size_t i = 0; i < VERIFY_GATE; i++)
            if (report.checks[i].violations)
                fail_msg("%d entries pruned: %s", (int)n, report.checks[i].examples[0]);
        int64_t left = report.checks[VERIFY_LOG_SEQ].rows;
        assert_true(left <= rows);
        if (left == rows)
            break;
        rows = left;
    }
    assert_true(n > 20);
}

static void a_log_that_is_pruned_up_to_any_entry_is_sound(void **state)
{
    (void)state;
    prune_one_by_one(4, "");
    prune_one_by_one(7, "UPDATE events SET status = 3 WHERE event = 7;"
                        "INSERT INTO log SELECT (7 << 40) + seq + 1, now, 1, 15, 1, 3, 0, 0, 0, 0,"
                        " 0, 0, NULL, NULL, 0, 'open', NULL FROM event_clock WHERE event = 7;"
                        "UPDATE event_clock SET seq = seq + 1 WHERE event = 7");
}

static void a_ledger_that_has_lost_all_finished_holds_is_sound(void **state)
{
    (void)state;
    struct clock_fake clock;
    struct verify_report report;
    struct ledger *ledger;
    struct hf_err err = {0};
    char url[128];
    clock_fake_init(&clock, INT64_C(1790000000000000));
    const struct db_options options = {.clock = &clock.clock, .writer = true};
    damaged_ledger_damage(&files, "UPDATE events SET status = status");
    snprintf(url, sizeof url, "sqlite:%s", files.copy);
    assert_int_equal(ledger_open(url, &options, &ledger, &err), HF_OK);
    for (int64_t event = 1; event <= EVENTS; event++)
        prune(ledger, event, false);
    ledger_close(ledger);
    damaged_ledger_is_sound(files.copy, &report);
    /* Gone are 4 and 5 of event 1, 3 of event 3, and 2, 3, 4 and 12 of event 7; that of event 4 is
     * a channel's. */
    assert_int_equal(report.checks[VERIFY_HOLD_STATUS].rows, 8 + 5 + 5 + 3 + 3 - 2 - 1 + 8 - 4);
    /* Of event 7 also the entries that were accepted and left.  The newest stays. */
    assert_int_equal(report.checks[VERIFY_FOLD_WAITS].rows, 6 - 2);
}

static void stored_heads_of_any_moment_are_sound(void **state)
{
    (void)state;
    struct verify_report report;
    static const char *const moments[] = {"0, x''", "3, x'0300000000'",
                                          "4, x'03000000000400000000'",
                                          "5, x'0300000000040000000000000000000000000000'"};
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        char sql[160];
        snprintf(sql, sizeof sql, "INSERT INTO seat_heads VALUES (seat:1.0, %s)", moments[i]);
        damaged_ledger_damage(&files, sql);
        damaged_ledger_verify(files.copy, &report);
        assert_int_equal(report.violations, 0);
    }
}

static void a_file_that_is_no_ledger_is_refused_with_a_reason(void **state)
{
    (void)state;
    struct verify_report report;
    struct hf_err err = {0};
    assert_int_equal(ledger_verify("sqlite:/no/such/file", &clock_system, &report, &err),
                     HF_STORE_UNAVAILABLE);
    assert_true(strlen(err.msg) > 0);
    damaged_ledger_damage(&files, "INSERT INTO schema_version VALUES (1000)");
    char url[128];
    snprintf(url, sizeof url, "sqlite:%s", files.copy);
    assert_int_equal(ledger_verify(url, &clock_system, &report, &err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "1000"));
}

/* The program beside this test: BUILD/tests/fault/test_verify, BUILD/holdfast.  The tests
 * above look for leaks: the sanitizer takes seconds for that at the end of a process. */
static int run_program(const char *arguments, char *out, size_t size)
{
    char self[512], command[1024];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(len > 0);
    self[len] = '\0';
    for (int up = 0; up < 3; up++)
        *strrchr(self, '/') = '\0';
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" '%s/holdfast' %s 2>/dev/null", self,
             arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, size - 1, pipe)] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_program_answers_by_its_exit_status(void **state)
{
    (void)state;
    char out[16384], arguments[256];
    snprintf(arguments, sizeof arguments, "verify --ledger sqlite:%s", files.good);
    assert_int_equal(run_program(arguments, out, sizeof out), 0);
    assert_int_equal(strncmp(out, "I1   ok ", 8), 0);
    assert_null(strstr(out, "VIOLATED"));
    snprintf(arguments, sizeof arguments, "verify --json --ledger sqlite:%s", files.good);
    assert_int_equal(run_program(arguments, out, sizeof out), 0);
    assert_int_equal(strncmp(out, "{\"ok\":true,\"events\":7,", 22), 0);

    damaged_ledger_damage(&files, "DELETE FROM sold_seats WHERE seat = seat:1.4");
    snprintf(arguments, sizeof arguments, "verify --ledger sqlite:%s", files.copy);
    assert_int_equal(run_program(arguments, out, sizeof out), 1);
    assert_non_null(strstr(out, "I1   VIOLATED"));
    assert_non_null(strstr(out, ", seat S-1-5: "));

    assert_int_equal(run_program("verify", out, sizeof out), 64);
    assert_int_equal(run_program("verify --ledger", out, sizeof out), 64);
    assert_int_equal(run_program("verify --ledger sqlite:/no/such/file", out, sizeof out), 69);
}

#define FIRST_DAMAGE 9

int main(void)
{
    struct CMUnitTest tests[FIRST_DAMAGE + N_DAMAGES] = {
        cmocka_unit_test(a_ledger_made_by_the_engine_is_sound),
        cmocka_unit_test(many_violations_are_counted_and_five_are_shown),
        cmocka_unit_test(an_event_that_was_made_with_all_its_rows_is_sound),
        cmocka_unit_test(holds_of_unknown_prices_are_sound),
        cmocka_unit_test(a_log_that_is_pruned_up_to_any_entry_is_sound),
        cmocka_unit_test(a_ledger_that_has_lost_all_finished_holds_is_sound),
        cmocka_unit_test(stored_heads_of_any_moment_are_sound),
        cmocka_unit_test(a_file_that_is_no_ledger_is_refused_with_a_reason),
        cmocka_unit_test(the_program_answers_by_its_exit_status),
    };
    for (size_t i = 0; i < N_DAMAGES; i++)
        tests[FIRST_DAMAGE + i] =
            (struct CMUnitTest){.name = damages[i].claim,
                                .test_func = is_named,
                                .initial_state = (void *)(uintptr_t)&damages[i]};
    return cmocka_run_group_tests(tests, make_ledger, remove_ledger);
}
