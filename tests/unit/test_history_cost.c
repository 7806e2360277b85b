/* Histories of seats and holds cost what they tell of, however long the event's log is: SQLite
 * counts the rows of the log that are read for an answer, and its own steps.  (That PostgreSQL
 * finds the same rows by their keys: tests/integration/test_ledger.c.) */
#include "support/fixtures.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine_internal.h"
#include "support/engine_client.h"

#define SEATS 50
#define OTHERS 500        /* holds of other seats, each of which is released */
#define ROUNDS 3          /* holds of the one seat */
#define STEPS_PER_ROW 200 /* of SQLite's machine, per row of the log that it reads */

static struct {
    struct temp_dir dir;
    struct client client;
    struct event *event;
    struct id last; /* hold of the seat */
    _Atomic uint64_t rows, steps;
} fixture;

/* ---- counting ---- */

static int on_statement(unsigned what, void *context, void *stmt, void *detail)
{
    (void)context;
    (void)detail;
    const char *sql = sqlite3_sql(stmt);
    if (!sql || !strstr(sql, "FROM log"))
        return 0;
    if (what == SQLITE_TRACE_ROW)
        atomic_fetch_add(&fixture.rows, 1);
    else
        atomic_fetch_add(&fixture.steps,
                         (uint64_t)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1));
    return 0;
}

/* For every connection that is opened from now on. */
static int count_on(sqlite3 *db, const char **error, const struct sqlite3_api_routines *api)
{
    (void)error;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_ROW | SQLITE_TRACE_PROFILE, on_statement, NULL);
}

/* ---- an event with a long log ---- */

static struct id hold_and_release(uint32_t seat)
{
    struct call call;
    call_hold(&call, fixture.event, seat, 1, 60000);
    assert_int_equal(client_ask(&fixture.client, &call), VERDICT_CREATED);
    struct id id = call.c.create.hold.id;
    call_close(&call);
    call_on_hold(&call, CMD_HOLD_RELEASE, fixture.event, &id);
    assert_int_equal(client_ask(&fixture.client, &call), VERDICT_OK);
    call_close(&call);
    return id;
}

static void lengthen_log(void)
{
    for (uint32_t i = 0; i < OTHERS; i++)
        (void)hold_and_release(1 + i % (SEATS - 1));
}

static int setup(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct call call;
    log_set_level(LOG_OFF);
    temp_dir_make(&fixture.dir);
    assert_int_equal(sqlite3_auto_extension((void (*)(void))count_on), SQLITE_OK);
    if (client_start(&fixture.client, fixture.dir.url, &clock_system, &err) != HF_OK)
        fail_msg("%s", err.msg);
    call_event_create(&call, 1, SEATS);
    assert_int_equal(client_ask(&fixture.client, &call), VERDICT_CREATED);
    int64_t key = call.c.event_create->id.key;
    call_close(&call);
    call_event_load(&call, key);
    assert_int_equal(client_ask(&fixture.client, &call), VERDICT_OK);
    fixture.event = call.c.pinned; /* stays pinned */
    for (int i = 0; i < ROUNDS; i++)
        fixture.last = hold_and_release(0);
    lengthen_log();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    event_give(fixture.event);
    client_stop(&fixture.client);
    sqlite3_reset_auto_extension();
    temp_dir_remove(&fixture.dir);
    return 0;
}

/* Runs the command, and asserts that it read no more rows of the log than `rows`. */
static void assert_reads(struct call *call, uint64_t rows)
{
    fixture.rows = fixture.steps = 0;
    assert_int_equal(client_ask(&fixture.client, call), VERDICT_OK);
    if (fixture.rows > rows || fixture.steps > rows * STEPS_PER_ROW)
        fail_msg("%llu rows and %llu steps", (unsigned long long)fixture.rows,
                 (unsigned long long)fixture.steps);
    assert_true(fixture.rows > 0); /* the counting works */
}

/* Of each round the seat has two rows; the chain of its hold is looked at for renewals, too. */
#define CHAIN_ROWS (ROUNDS * 4)

static void the_past_of_a_seat_costs_its_own_rows(void **state)
{
    (void)state;
    struct call call = {.c = {.kind = CMD_SEAT_GET, .event = fixture.event}};
    call.c.seat_get.past = hf_alloc(sizeof *call.c.seat_get.past);
    assert_reads(&call, CHAIN_ROWS);
    assert_int_equal(call.c.seat_get.past->n, 2 * ROUNDS);
    call_close(&call);
}

static struct call page_of(int64_t seat, const struct id *hold, size_t limit)
{
    struct call call = {.c = {.kind = CMD_AUDIT_LIST, .event = fixture.event}};
    call.c.audit_list = hf_alloc(sizeof *call.c.audit_list);
    *call.c.audit_list = (struct audit_page){.limit = limit, .seat = seat, .hold = *hold};
    return call;
}

static void the_log_of_a_seat_costs_its_own_rows(void **state)
{
    (void)state;
    struct call call = page_of(0, &(struct id){0}, 100);
    assert_reads(&call, CHAIN_ROWS);
    assert_int_equal(call.c.audit_list->n, 2 * ROUNDS);
    call_close(&call);
}

static void the_log_of_a_hold_costs_its_own_rows(void **state)
{
    (void)state;
    struct call call = page_of(-1, &fixture.last, 100);
    assert_reads(&call, CHAIN_ROWS);
    assert_true(call.c.audit_list->n > 0);
    call_close(&call);
    call = page_of(0, &fixture.last, 100);
    assert_reads(&call, 2 * CHAIN_ROWS);
    call_close(&call);
}

static void a_page_of_the_log_costs_its_length(void **state)
{
    (void)state;
    struct call call = page_of(-1, &(struct id){0}, 20);
    call.c.audit_list->after = OTHERS;
    assert_reads(&call, 20 + 2);
    assert_int_equal(call.c.audit_list->n, 20);
    call_close(&call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_past_of_a_seat_costs_its_own_rows),
        cmocka_unit_test(the_log_of_a_seat_costs_its_own_rows),
        cmocka_unit_test(the_log_of_a_hold_costs_its_own_rows),
        cmocka_unit_test(a_page_of_the_log_costs_its_length),
    };
    return cmocka_run_group_tests_name("history cost", tests, setup, teardown);
}
