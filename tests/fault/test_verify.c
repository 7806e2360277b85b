/* `holdfast verify` finds what is wrong.  The engine makes a real ledger with a hold in every
 * state. Each test damages a copy of it in one way, by SQL, and verify must name the invariants
 * that this breaks, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "ledger/verify.h"
#include "support/engine_client.h"
#include "support/fixtures.h"

#define EVENTS 3
#define ROWS 2
#define SEATS_PER_ROW 10
#define TTL_MS INT64_C(60000)

static char dir[64], good[96], copy[96];

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
 *             fence 3: evicted, a place         fence 8: active, two seats of our choice */

static void ask(struct client *client, struct call *call, enum verdict want)
{
    assert_int_equal(client_ask(client, call), want);
}

static struct event *make_event(struct client *client)
{
    struct call call;
    call_event_create(&call, ROWS, SEATS_PER_ROW);
    ask(client, &call, VERDICT_CREATED);
    int64_t key = call.c.event_create.def->id.key;
    call_close(&call);
    call_event_load(&call, key);
    ask(client, &call, VERDICT_OK);
    return call.c.event;
}

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

static int make_ledger(void **state)
{
    (void)state;
    struct clock_fake clock;
    struct client client;
    struct hf_err err = {0};
    char url[128];
    snprintf(dir, sizeof dir, "/tmp/holdfast-verify-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(good, sizeof good, "%s/good.db", dir);
    snprintf(copy, sizeof copy, "%s/copy.db", dir);
    snprintf(url, sizeof url, "sqlite:%s", good);
    log_set_level(LOG_OFF);

    clock_fake_init(&clock, INT64_C(1790000000000000));
    assert_int_equal(client_start(&client, url, &clock.clock, &err), HF_OK);
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
    client_stop(&client);
    return 0;
}

static int remove_ledger(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void expand_keys(const char *text, struct buf *out)
{
    while (*text) {
        long long event, item;
        int len = 0;
        bool seat = strncmp(text, "seat:", 5) == 0, hold = strncmp(text, "hold:", 5) == 0;
        if ((seat || hold) && sscanf(text + 5, "%lld.%lld%n", &event, &item, &len) == 2) {
            buf_int(out, seat ? SEAT_KEY(event, item) : HOLD_KEY(event, item));
            text += 5 + len;
        } else {
            buf_char(out, *text++);
        }
    }
    buf_char(out, '\0');
}

static void damage(const char *text)
{
    sqlite3 *db;
    char *message = NULL;
    struct buf sql = {0};
    expand_keys(text, &sql);
    copy_file(good, copy);
    assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
    sqlite3_exec(db, sql.data, NULL, NULL, &message);
    if (message)
        fail_msg("%s: %s", sql.data, message);
    buf_close(&sql);
    assert_true(sqlite3_total_changes(db) > 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void verify(const char *path, struct verify_report *report)
{
    struct hf_err err = {0};
    char url[128];
    snprintf(url, sizeof url, "sqlite:%s", path);
    if (ledger_verify(url, &clock_system, report, &err) != HF_OK)
        fail_msg("%s", err.msg);
}

/* ---- damage ---- */

/* In the SQL seat:1.4 is the key of seat 4 of event 1, and hold:1.3 that of the hold with fence 3.
 */
static const struct damage {
    const char *claim;
    enum verify_id id;    /* a check that fails */
    const char *violated; /* the invariants of all that fail */
    const char *sql;
} damages[] = {
    {"a_held_seat_whose_hold_is_gone", VERIFY_SEAT_OWNER, "I1 I11",
     "DELETE FROM holds WHERE hold = hold:1.1"},
    {"a_held_seat_whose_hold_was_released", VERIFY_SEAT_OWNER, "I1 I3 I11",
     "UPDATE holds SET status = 3 WHERE hold = hold:1.1"},
    {"a_held_seat_that_its_hold_does_not_list", VERIFY_SEAT_OWNER, "I1 I6 I11",
     "UPDATE holds SET seats = '[0]' WHERE hold = hold:1.1"},
    {"a_seat_given_to_another_hold", VERIFY_SEAT_OWNER, "I1 I3 I11",
     "UPDATE seats SET hold = hold:1.6 WHERE seat = seat:1.4"},
    {"a_seat_of_another_events_hold", VERIFY_SEAT_OWNER, "I1 I3 I11",
     "UPDATE seats SET hold = hold:2.1 WHERE seat = seat:1.4"},
    {"a_booked_seat_whose_hold_is_only_active", VERIFY_SEAT_OWNER, "I1 I3 I11",
     "INSERT INTO seats VALUES (seat:1.0, 2, hold:1.1, 1, 0)"},
    {"two_live_holds_that_list_one_seat", VERIFY_ONE_OWNER, "I1 I6 I11",
     "UPDATE holds SET seats = '[1,2]' WHERE hold = hold:1.2;"
     "UPDATE holds SET seats = '[0,1]' WHERE hold = hold:1.1"},
    {"a_sale_of_a_seat_that_is_not_booked", VERIFY_SALES, "I1",
     "INSERT INTO sold_seats VALUES (seat:1.0, hold:1.1)"},
    {"a_booked_seat_without_its_sale", VERIFY_SALES, "I1",
     "DELETE FROM sold_seats WHERE seat = seat:1.4"},
    {"a_sale_by_another_booking", VERIFY_SALES, "I1",
     "UPDATE sold_seats SET booking = hold:1.6 WHERE seat = seat:1.4"},
    {"an_area_with_more_places_held_than_it_has", VERIFY_AREAS, "I2 I11",
     "PRAGMA ignore_check_constraints = ON;"
     "UPDATE areas SET held = 3, booked = 3 WHERE event = 1"},
    {"an_area_with_less_than_no_place_held", VERIFY_AREAS, "I2 I11",
     "PRAGMA ignore_check_constraints = ON; UPDATE areas SET held = -1 WHERE event = 2"},
    {"an_active_hold_whose_seat_is_blocked", VERIFY_HOLD_STATUS, "I3 I11",
     "INSERT INTO seats VALUES (seat:1.0, 3, 0, 1, 0)"},
    {"a_confirmed_hold_without_its_booking", VERIFY_HOLD_STATUS, "I1 I3 I11",
     "DELETE FROM bookings WHERE booking = hold:1.3"},
    {"a_confirmed_hold_whose_seat_is_blocked", VERIFY_HOLD_STATUS, "I1 I3 I11",
     "UPDATE seats SET status = 3, hold = 0 WHERE seat = seat:1.5"},
    {"a_released_hold_that_kept_a_seat", VERIFY_HOLD_STATUS, "I1 I3 I11",
     "INSERT INTO seats VALUES (seat:1.6, 2, hold:1.4, 4, 0)"},
    {"an_expired_hold_that_was_sold", VERIFY_HOLD_STATUS, "I3 I11",
     "INSERT INTO bookings SELECT hold:1.5, secret, event, 2, 5, 1000, NULL, created_at, 0, NULL"
     " FROM bookings WHERE booking = hold:1.3"},
    {"a_booking_of_no_hold", VERIFY_HOLD_STATUS, "I3",
     "INSERT INTO bookings SELECT hold:1.77, secret, event, 2, 77, 1000, NULL, created_at, 0, NULL"
     " FROM bookings WHERE booking = hold:1.3"},
    {"a_hold_of_no_known_status", VERIFY_HOLD_STATUS, "I1 I3 I11",
     "UPDATE holds SET status = 260 WHERE hold = hold:1.1"},
    {"a_confirm_after_the_expiry", VERIFY_CONFIRM_TIME, "I4",
     "UPDATE log SET until = at WHERE hold = hold:1.3 AND cause = 2"},
    {"a_seat_fence_above_the_clock", VERIFY_FENCE_CLOCK, "I5 I11",
     "UPDATE seats SET fence = 9 WHERE seat = seat:1.4"},
    {"a_hold_fence_above_the_clock", VERIFY_FENCE_CLOCK, "I5 I11",
     "UPDATE holds SET fence = 9 WHERE hold = hold:1.1"},
    {"a_clock_whose_fence_went_back", VERIFY_FENCE_CLOCK, "I5",
     "UPDATE event_clock SET fence = 6 WHERE event = 1"},
    {"two_holds_with_one_fence", VERIFY_FENCE_SHARED, "I5 I11",
     "UPDATE holds SET fence = 2 WHERE hold = hold:1.1"},
    {"two_rescued_holds_with_one_fence", VERIFY_FENCE_SHARED, "I5 I11",
     "UPDATE holds SET fence = 8 WHERE hold = hold:1.6"},
    {"a_grant_with_a_fence_that_did_not_grow", VERIFY_FENCE_ORDER, "I5 I11",
     "UPDATE log SET fence = 3 WHERE hold = hold:1.7 AND cause = 7"},
    {"a_seat_changed_by_a_stale_fence", VERIFY_FENCE_ORDER, "I5 I11",
     "UPDATE log SET fence = 1 WHERE hold = hold:1.4 AND cause = 4"},
    {"a_hold_that_lists_a_seat_twice", VERIFY_HOLD_SEATS, "I1 I6 I11",
     "UPDATE holds SET seats = '[0,0]' WHERE hold = hold:1.1"},
    {"a_hold_of_a_seat_that_is_not_there", VERIFY_HOLD_SEATS, "I1 I6 I11",
     "UPDATE holds SET seats = '[0,20]' WHERE hold = hold:1.1"},
    {"a_hold_that_was_granted_one_of_two_seats", VERIFY_HOLD_SEATS, "I6",
     "UPDATE holds SET seats = '[6,11]' WHERE hold = hold:1.4"},
    {"a_list_of_seats_that_is_not_one", VERIFY_HOLD_SEATS, "I1 I6 I11",
     "UPDATE holds SET seats = '[0,' WHERE hold = hold:1.1"},
    {"a_gap_in_the_log", VERIFY_LOG_SEQ, "I11",
     "DELETE FROM log WHERE hold = hold:1.2 AND cause = 3"},
    {"a_log_that_does_not_reach_the_clock", VERIFY_LOG_SEQ, "I11",
     "UPDATE event_clock SET seq = seq + 1 WHERE event = 2"},
    {"a_log_that_goes_on_behind_the_clock", VERIFY_LOG_SEQ, "I11",
     "UPDATE event_clock SET seq = seq - 1 WHERE event = 2"},
    {"an_entry_of_the_log_with_another_seq", VERIFY_LOG_SEQ, "I11",
     "UPDATE log SET entry = entry + 1000 WHERE hold = hold:1.2 AND cause = 3"},
    {"time_that_went_back", VERIFY_LOG_TIME, "I11",
     "UPDATE log SET at = at + 1 WHERE entry = (1 << 40 | 1)"},
    {"a_log_ahead_of_its_clock", VERIFY_LOG_TIME, "I11",
     "UPDATE event_clock SET now = now - 1 WHERE event = 1"},
    {"a_change_from_a_state_it_was_not_in", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET seats = replace(seats, '[1,0,', '[2,0,') WHERE hold = hold:1.4 AND cause = 4"},
    {"a_change_of_a_seat_by_a_hold_that_has_it_not", VERIFY_LOG_CHAIN, "I1 I3 I11",
     "UPDATE log SET seats = replace(seats, ',6,', ',0,') WHERE hold = hold:1.4 AND cause = 4"},
    {"a_change_of_a_seat_that_names_another_before", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET seats = '[1,0,6,2]' WHERE hold = hold:1.4 AND cause = 4"},
    {"a_change_of_a_hold_that_names_another_before", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET prev = prev + 1 WHERE hold = hold:1.4 AND cause = 4"},
    {"a_first_change_that_names_one_before", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET prev = 1 WHERE hold = hold:2.1"},
    {"an_entry_whose_list_of_seats_is_not_one", VERIFY_LOG_CHAIN, "I1 I3 I11",
     "UPDATE log SET seats = '[1,0,6,' WHERE hold = hold:1.4 AND cause = 4"},
    {"an_entry_that_has_lost_its_seats", VERIFY_LOG_SEQ, "I1 I3 I11",
     "UPDATE log SET seats = NULL WHERE hold = hold:1.4 AND cause = 4"},
    {"a_stored_head_that_is_not_the_last_change", VERIFY_HEADS, "I11",
     "INSERT INTO seat_heads VALUES (seat:1.0, 4, x'02000000000400000000')"},
    {"a_stored_head_that_is_missing", VERIFY_HEADS, "I11",
     "INSERT INTO seat_heads VALUES (seat:1.0, 4, x'0300000000')"},
    {"a_stored_head_of_a_seat_that_never_changed", VERIFY_HEADS, "I11",
     "INSERT INTO seat_heads VALUES (seat:1.0, 4, x'030000000004000000000100000000')"},
    {"heads_that_are_ahead_of_the_clock", VERIFY_HEADS, "I11",
     "INSERT INTO seat_heads VALUES (seat:1.0, 1000, x'')"},
    {"heads_that_begin_in_the_middle", VERIFY_HEADS, "I11",
     "INSERT INTO seat_heads VALUES (seat:1.1, 1, x'')"},
    {"half_a_head", VERIFY_HEADS, "I11", "INSERT INTO seat_heads VALUES (seat:1.0, 4, x'0300')"},
    {"heads_of_no_event", VERIFY_STRAYS, "I11", "INSERT INTO seat_heads VALUES (seat:7.0, 1, x'')"},
    {"a_seat_blocked_behind_the_logs_back", VERIFY_FOLD_SEATS, "I11",
     "INSERT INTO seats VALUES (seat:1.15, 3, 0, 0, 0)"},
    {"a_held_seat_with_a_row", VERIFY_FOLD_SEATS, "I11",
     "INSERT INTO seats VALUES (seat:1.0, 1, hold:1.1, 1, 0)"},
    {"a_booked_seat_with_an_older_fence", VERIFY_FOLD_SEATS, "I11",
     "UPDATE seats SET fence = 0 WHERE seat = seat:1.4"},
    {"a_free_seat_with_a_row", VERIFY_FOLD_SEATS, "I11",
     "INSERT INTO seats VALUES (seat:1.7, 0, 0, 5, 0)"},
    {"a_blocked_seat_whose_row_is_gone", VERIFY_FOLD_SEATS, "I11",
     "DELETE FROM seats WHERE seat = seat:3.18"},
    {"a_sold_seat_whose_row_is_gone", VERIFY_FOLD_SEATS, "I1 I3 I11",
     "DELETE FROM seats WHERE seat = seat:1.5"},
    {"a_log_that_names_no_seat_of_the_event", VERIFY_FOLD_SEATS, "I6 I11",
     "UPDATE log SET seats = '[0,1,20,0]' WHERE hold = hold:2.1"},
    {"a_hold_with_another_expiry", VERIFY_FOLD_HOLDS, "I11",
     "UPDATE holds SET expires_at = expires_at + 1 WHERE hold = hold:1.4"},
    {"a_hold_that_the_log_does_not_know", VERIFY_FOLD_HOLDS, "I5 I6 I11",
     "INSERT INTO holds SELECT hold:2.9, secret, 2, 3, 1, 0, NULL, NULL, '[3]', created_at,"
     " expires_at, max_expires_at, NULL, 0, 0, NULL, 0 FROM holds WHERE hold = hold:2.1"},
    {"a_hold_expired_behind_the_logs_back", VERIFY_FOLD_HOLDS, "I11",
     "UPDATE holds SET status = 2 WHERE hold = hold:1.4"},
    {"a_hold_that_does_not_know_its_last_change", VERIFY_FOLD_HOLDS, "I11",
     "UPDATE holds SET last_seq = last_seq - 1 WHERE hold = hold:1.4"},
    {"a_booking_with_another_fence", VERIFY_FOLD_BOOKINGS, "I11",
     "UPDATE bookings SET fence = 1 WHERE booking = hold:1.3"},
    {"a_booking_cancelled_behind_the_logs_back", VERIFY_FOLD_BOOKINGS, "I1 I11",
     "UPDATE bookings SET status = 4 WHERE booking = hold:1.3"},
    {"an_area_with_a_place_more_held_than_its_holds_have", VERIFY_AREA_COUNTERS, "I2 I11",
     "UPDATE areas SET held = held + 1 WHERE event = 3"},
    {"an_area_with_a_place_less_booked_than_was_sold", VERIFY_AREA_COUNTERS, "I2 I11",
     "UPDATE areas SET booked = booked - 1 WHERE event = 3"},
    {"an_area_with_a_held_place_booked", VERIFY_FOLD_AREAS, "I2 I11",
     "UPDATE areas SET booked = booked + 1, held = held - 1 WHERE event = 3"},
    {"a_hold_that_lists_a_place_more", VERIFY_AREA_COUNTERS, "I2 I6",
     "UPDATE holds SET areas = '[0,3]' WHERE hold = hold:3.1"},
    {"a_sold_hold_that_lists_a_place_more", VERIFY_AREA_COUNTERS, "I2 I6",
     "UPDATE holds SET areas = '[0,2]' WHERE hold = hold:3.2"},
    {"a_hold_that_has_forgotten_its_places", VERIFY_AREA_COUNTERS, "I2 I6",
     "UPDATE holds SET areas = NULL WHERE hold = hold:3.1"},
    {"an_evicted_hold_that_lists_a_place_more", VERIFY_HOLD_SEATS, "I6",
     "UPDATE holds SET areas = '[0,2]' WHERE hold = hold:3.3"},
    {"a_released_hold_that_lists_another_seat", VERIFY_HOLD_SEATS, "I6",
     "UPDATE holds SET seats = '[11]' WHERE hold = hold:1.4"},
    {"a_hold_of_seats_that_lists_places", VERIFY_HOLD_SEATS, "I2 I6",
     "UPDATE holds SET areas = '[0,1]' WHERE hold = hold:3.8"},
    {"a_hold_of_an_area_that_is_not_there", VERIFY_HOLD_SEATS, "I2 I6",
     "UPDATE holds SET areas = '[1,2]' WHERE hold = hold:3.1"},
    {"a_hold_of_no_places_of_an_area", VERIFY_HOLD_SEATS, "I6",
     "UPDATE holds SET areas = '[0,2,0,0]' WHERE hold = hold:3.1"},
    {"a_list_of_areas_that_is_not_one", VERIFY_HOLD_SEATS, "I2 I6",
     "UPDATE holds SET areas = '[0,2' WHERE hold = hold:3.1"},
    {"a_list_of_areas_with_half_a_pair", VERIFY_HOLD_SEATS, "I6",
     "UPDATE holds SET areas = '[0,2,0]' WHERE hold = hold:3.1"},
    {"a_grant_of_places_that_the_log_counts_otherwise", VERIFY_FOLD_AREAS, "I6 I11",
     "UPDATE log SET areas = '[0,1,0,3]' WHERE hold = hold:3.1"},
    {"an_end_of_places_that_the_log_counts_otherwise", VERIFY_FOLD_AREAS, "I11",
     "UPDATE log SET areas = '[1,0,0,2]' WHERE hold = hold:3.3 AND cause = 12"},
    {"places_given_back_by_another_hold", VERIFY_FOLD_HOLDS, "I11",
     "UPDATE log SET areas = NULL WHERE hold = hold:3.3 AND cause = 12;"
     "INSERT INTO log SELECT entry + 1, at, 0, cause, 0, 0, 0, hold:3.1, 0, 1, 0, 0, NULL, "
     "'[1,0,0,1]', 0"
     " FROM log WHERE hold = hold:3.3 AND cause = 12"},
    {"places_given_back_by_no_hold", VERIFY_FOLD_HOLDS, "I11",
     "UPDATE log SET areas = NULL WHERE hold = hold:3.3 AND cause = 12;"
     "INSERT INTO log SELECT entry + 1, at, 0, cause, 0, 0, 0, 0, 0, 0, 0, 0, NULL, '[1,0,0,1]', 0"
     " FROM log WHERE hold = hold:3.3 AND cause = 12"},
    {"a_row_about_an_area_that_is_gone", VERIFY_FOLD_AREAS, "I6 I11",
     "UPDATE log SET areas = NULL WHERE hold = hold:3.1"},
    {"a_row_about_no_area_of_the_event", VERIFY_FOLD_AREAS, "I6 I11",
     "UPDATE log SET areas = '[0,1,1,2]' WHERE hold = hold:3.1"},
    {"places_that_were_sold_before_they_were_held", VERIFY_FOLD_AREAS, "I11",
     "UPDATE log SET areas = '[1,2,0,1]' WHERE hold = hold:3.3 AND cause = 12"},
    {"a_row_about_no_places", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET areas = '[1,0,0,0]' WHERE hold = hold:3.3 AND cause = 12"},
    {"places_given_back_that_were_not_held", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET areas = '[1,0,0,5]' WHERE hold = hold:3.3 AND cause = 12"},
    {"an_event_opened_behind_the_logs_back", VERIFY_FOLD_EVENTS, "I11",
     "UPDATE events SET status = 1 WHERE event = 3"},
    {"an_event_closed_behind_the_logs_back", VERIFY_FOLD_EVENTS, "I11",
     "UPDATE events SET status = 2 WHERE event = 1"},
    {"an_event_of_no_known_status", VERIFY_FOLD_EVENTS, "I11",
     "UPDATE events SET status = 257 WHERE event = 1"},
    {"a_closing_that_the_log_calls_an_opening", VERIFY_FOLD_EVENTS, "I11",
     "UPDATE log SET after = 1 WHERE cause = 11"},
    {"a_closing_of_what_was_closed", VERIFY_LOG_CHAIN, "I11",
     "UPDATE log SET before = 2 WHERE cause = 11"},
    {"a_seat_unblocked_behind_the_logs_back", VERIFY_FOLD_SEATS, "I11",
     "UPDATE seats SET status = 0 WHERE seat = seat:3.18"},
    {"a_seat_unblocked_by_a_stale_fence", VERIFY_FENCE_ORDER, "I5",
     "UPDATE log SET fence = 3 WHERE cause = 9"},
    {"a_blocked_seat_that_was_sold", VERIFY_SALES, "I1",
     "INSERT INTO sold_seats VALUES (seat:3.18, hold:3.2)"},
    {"an_area_of_no_event", VERIFY_STRAYS, "I11",
     "INSERT INTO areas VALUES (7, 0, 'Lost', 1, 1, 0, 0, '[]')"},
    {"a_seat_of_no_event", VERIFY_STRAYS, "I11", "INSERT INTO seats VALUES (seat:7.0, 3, 0, 0, 0)"},
    {"a_seat_beyond_the_last_row", VERIFY_STRAYS, "I11",
     "INSERT INTO seats VALUES (seat:1.20, 3, 0, 0, 0)"},
    {"a_layout_that_is_not_one", VERIFY_STRAYS, "I11",
     "UPDATE sections SET layout = layout || ',' WHERE event = 2"},
    {"an_event_of_more_seats_than_there_may_be", VERIFY_STRAYS, "I11",
     "UPDATE sections SET layout = layout || ',-2000000*1' WHERE event = 2"},
    {"a_hold_of_no_event", VERIFY_STRAYS, "I11",
     "INSERT INTO holds SELECT hold:7.1, secret, 7, 3, 1, 0, NULL, NULL, '[3]', created_at,"
     " expires_at, max_expires_at, NULL, 0, 0, NULL, 0 FROM holds WHERE hold = hold:2.1"},
    {"a_hold_that_names_another_event", VERIFY_STRAYS, "I11",
     "UPDATE holds SET event = 2 WHERE hold = hold:1.1"},
    {"a_log_of_no_event", VERIFY_STRAYS, "I11",
     "INSERT INTO log VALUES (7 << 40 | 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, NULL, NULL, 0)"},
    {"a_clock_of_no_event", VERIFY_STRAYS, "I11", "INSERT INTO event_clock VALUES (7, 0, 0, 0)"},
    {"an_event_without_a_clock", VERIFY_STRAYS, "I11", "DELETE FROM event_clock WHERE event = 2"},
};
#define N_DAMAGES (sizeof damages / sizeof *damages)

/* Lists each violated invariant once: "I1 I3". */
static void violated(const struct verify_report *report, char out[64])
{
    const char *last = "";
    out[0] = '\0';
    for (size_t i = 0; i < VERIFY_COUNT; i++) {
        const struct verify_check *check = &report->checks[i];
        if (!check->violations || strcmp(check->invariant, last) == 0)
            continue;
        last = check->invariant;
        snprintf(out + strlen(out), 64 - strlen(out), "%s%s", out[0] ? " " : "", last);
    }
}

static void is_named(void **state)
{
    const struct damage *d = *state;
    struct verify_report report;
    char found[64];
    damage(d->sql);
    verify(copy, &report);
    violated(&report, found);
    assert_string_equal(found, d->violated);
    assert_true(report.checks[d->id].violations > 0);
    assert_true(strlen(report.checks[d->id].examples[0]) > 0);
}

/* ---- the rest ---- */

static void a_ledger_made_by_the_engine_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    verify(good, &report);
    for (size_t i = 0; i < VERIFY_GATE; i++) {
        if (report.checks[i].violations)
            fail_msg("%s %s: %s", report.checks[i].invariant, report.checks[i].what,
                     report.checks[i].examples[0]);
        assert_true(report.checks[i].rows > 0);
    }
    assert_int_equal(report.violations, 0);
    assert_int_equal(report.events, EVENTS);
    assert_int_equal(report.checks[VERIFY_SEAT_OWNER].rows, EVENTS * ROWS * SEATS_PER_ROW);
    assert_int_equal(report.checks[VERIFY_HOLD_STATUS].rows, 8 + 5);
    assert_int_equal(report.checks[VERIFY_SALES].rows, 5 + 1);
    assert_int_equal(report.checks[VERIFY_FOLD_BOOKINGS].rows, 3 + 2);
    assert_int_equal(report.checks[VERIFY_FOLD_AREAS].rows, EVENTS);
    assert_int_equal(report.checks[VERIFY_FOLD_EVENTS].rows, EVENTS);
}

static void many_violations_are_counted_and_five_are_shown(void **state)
{
    (void)state;
    struct verify_report report;
    damage("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19)"
           " INSERT INTO seats SELECT event << 32 | i, 3, 0, 0, 0 FROM events, n WHERE true"
           " ON CONFLICT (seat) DO NOTHING");
    verify(copy, &report);
    const struct verify_check *check = &report.checks[VERIFY_FOLD_SEATS];
    assert_int_equal(check->violations, EVENTS * ROWS * SEATS_PER_ROW - 5 - 2);
    for (int i = 0; i < VERIFY_EXAMPLES; i++)
        assert_non_null(strstr(check->examples[i], "event 1, seat "));
}

/* Events of schema versions before 3 have a row for each row of seats. */
static void an_event_that_was_made_with_all_its_rows_is_sound(void **state)
{
    (void)state;
    struct verify_report report;
    damage("INSERT INTO seat_rows SELECT event, 0, 0, 'A', 10 FROM events;"
           "INSERT INTO seat_rows SELECT event, 0, 1, 'B', 10 FROM events;"
           "UPDATE sections SET layout = NULL");
    verify(copy, &report);
    assert_int_equal(report.violations, 0);
    assert_int_equal(report.checks[VERIFY_SEAT_OWNER].rows, EVENTS * ROWS * SEATS_PER_ROW);
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
        damage(sql);
        verify(copy, &report);
        assert_int_equal(report.violations, 0);
    }
}

static void a_file_that_is_no_ledger_is_refused_with_a_reason(void **state)
{
    (void)state;
    struct verify_report report;
    struct hf_err err = {0};
    assert_int_equal(ledger_verify("sqlite:/no/such/file", &clock_system, &report, &err),
                     HF_LEDGER_UNAVAILABLE);
    assert_true(strlen(err.msg) > 0);
    damage("INSERT INTO schema_version VALUES (1000)");
    char url[128];
    snprintf(url, sizeof url, "sqlite:%s", copy);
    assert_int_equal(ledger_verify(url, &clock_system, &report, &err), HF_LEDGER_UNAVAILABLE);
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
    snprintf(arguments, sizeof arguments, "verify --ledger sqlite:%s", good);
    assert_int_equal(run_program(arguments, out, sizeof out), 0);
    assert_int_equal(strncmp(out, "I1   ok ", 8), 0);
    assert_null(strstr(out, "VIOLATED"));
    snprintf(arguments, sizeof arguments, "verify --json --ledger sqlite:%s", good);
    assert_int_equal(run_program(arguments, out, sizeof out), 0);
    assert_int_equal(strncmp(out, "{\"ok\":true,\"events\":3,", 22), 0);

    damage("DELETE FROM sold_seats WHERE seat = seat:1.4");
    snprintf(arguments, sizeof arguments, "verify --ledger sqlite:%s", copy);
    assert_int_equal(run_program(arguments, out, sizeof out), 1);
    assert_non_null(strstr(out, "I1   VIOLATED"));
    assert_non_null(strstr(out, ", seat S-1-5: "));

    assert_int_equal(run_program("verify", out, sizeof out), 64);
    assert_int_equal(run_program("verify --ledger", out, sizeof out), 64);
    assert_int_equal(run_program("verify --ledger sqlite:/no/such/file", out, sizeof out), 69);
}

#define FIRST_DAMAGE 6

int main(void)
{
    struct CMUnitTest tests[FIRST_DAMAGE + N_DAMAGES] = {
        cmocka_unit_test(a_ledger_made_by_the_engine_is_sound),
        cmocka_unit_test(many_violations_are_counted_and_five_are_shown),
        cmocka_unit_test(an_event_that_was_made_with_all_its_rows_is_sound),
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
