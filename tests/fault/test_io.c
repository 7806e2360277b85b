/* Fails every call to the disk, first once and then for good: a fixed story runs through the real
 * engine on a file system that fails call N, for N = 1, 2, 3 ... until the story meets no fault any
 * more.  After each run every command had one answer: a success, "not done" or "not known".  Every
 * success is true, and nothing that was "not done" left a trace, both in the files as a crash would
 * leave them and after a clean stop.  And the ledger is sound (I7, I11, I14).
 *
 * Kinds of faults that take the same path are swept in larger steps; HF_FAULT_ALL=1 takes every N
 * (`make soak`).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "ledger/ledger.h"
#include "ledger/verify.h"
#include "support/engine_client.h"
#include "support/fault_vfs.h"
#include "support/fixtures.h"
#include "support/process.h"

#define TTL_MS INT64_C(60000)
#define RENEWED_TTL_MS INT64_C(120000)
#define SWEEP_POINTS_MAX 2000 /* the story makes fewer calls */
#define REPEAT_EVERY 8        /* how often a story without a fault is repeated, too */

static char dir[64], path[96];
static char image[96], failed_image[96]; /* the files at the end, and at the first failure */
static bool failed_taken;
static char url[128]; /* by the file system that fails */

/* ---- the story ---- */

enum scene {
    EVENT,
    EVENT_AGAIN, /* only when the first try failed */
    LOAD,
    LOAD_AGAIN,
    HOLD_A, /* A, B and C are one batch */
    HOLD_B,
    HOLD_C,
    HOLD_A_AGAIN, /* only when the batch was not done: the same request, with the same key */
    RENEW_A,
    RELEASE_B,
    CONFIRM_C,
    GET_A,
    GET_C,
    AFTER,
    SCENES
};

enum story_key { KEY_EVENT = 1, KEY_A, KEY_C, KEY_CONFIRM };

struct story {
    const struct clock *clock;
    struct client client;
    struct event *event;
    struct call calls[SCENES]; /* answers is 0 if it was never asked */
};

static bool asked(const struct story *s, enum scene scene) { return s->calls[scene].answers > 0; }
static bool done(const struct story *s, enum scene scene) { return call_done(&s->calls[scene]); }

/* Returns true if the command was answered and nothing was done. */
static bool not_done(const struct story *s, enum scene scene)
{
    return asked(s, scene) && s->calls[scene].c.verdict == VERDICT_STORE_UNAVAILABLE;
}

static bool play_event(struct story *s)
{
    for (enum scene scene = EVENT; scene <= EVENT_AGAIN; scene++) {
        struct call *call = &s->calls[scene];
        call_event_create(call, 2, 10);
        call_key(call, KEY_EVENT);
        client_ask(&s->client, call);
        if (!call_done(call))
            continue;
        for (enum scene load = LOAD; load <= LOAD_AGAIN && !s->event; load++) {
            call_event_load(&s->calls[load], call->c.event_create->id.key);
            client_ask(&s->client, &s->calls[load]);
            s->event = s->calls[load].c.event;
        }
        return s->event != NULL;
    }
    return false;
}

static void play_change(struct story *s, enum scene scene, enum command_kind kind, enum scene hold)
{
    struct call *call = &s->calls[scene];
    if (!done(s, hold))
        return;
    call_on_hold(call, kind, s->event, &command_hold(&s->calls[hold].c)->id);
    if (kind == CMD_HOLD_RENEW)
        call->c.renew.ttl_ms = RENEWED_TTL_MS;
    if (kind == CMD_HOLD_CONFIRM) {
        call->c.confirm.fence = command_hold(&s->calls[hold].c)->fence;
        call_key(call, KEY_CONFIRM);
    }
    client_ask(&s->client, call);
}

static void play_holds(struct story *s)
{
    struct call *calls[] = {&s->calls[HOLD_A], &s->calls[HOLD_B], &s->calls[HOLD_C]};
    call_hold(calls[0], s->event, 0, 2, TTL_MS);
    call_hold(calls[1], s->event, 2, 1, TTL_MS);
    call_hold(calls[2], s->event, 3, 3, TTL_MS);
    call_key(calls[0], KEY_A);
    call_key(calls[2], KEY_C);
    client_batch(&s->client, s->event->def->id.key, calls, 3);
}

/* Returns the scene with the answer about A's seats: the last try. */
static enum scene last_a(const struct story *s)
{
    return asked(s, HOLD_A_AGAIN) ? HOLD_A_AGAIN : HOLD_A;
}

static void play(struct story *s)
{
    if (!play_event(s))
        return;
    play_holds(s);
    if (not_done(s, HOLD_A)) {
        call_hold(&s->calls[HOLD_A_AGAIN], s->event, 0, 2, TTL_MS);
        call_key(&s->calls[HOLD_A_AGAIN], KEY_A);
        client_ask(&s->client, &s->calls[HOLD_A_AGAIN]);
    }
    play_change(s, RENEW_A, CMD_HOLD_RENEW, last_a(s));
    play_change(s, RELEASE_B, CMD_HOLD_RELEASE, HOLD_B);
    play_change(s, CONFIRM_C, CMD_HOLD_CONFIRM, HOLD_C);
    play_change(s, GET_A, CMD_HOLD_GET, last_a(s));
    if (done(s, CONFIRM_C)) {
        call_on_hold(&s->calls[GET_C], CMD_BOOKING_GET, s->event,
                     &command_booking(&s->calls[CONFIRM_C].c)->id);
        client_ask(&s->client, &s->calls[GET_C]);
    }
}

static void play_after(struct story *s)
{
    if (!s->event)
        return;
    call_hold(&s->calls[AFTER], s->event, 10, 2, TTL_MS);
    client_ask(&s->client, &s->calls[AFTER]);
}

static void story_close(struct story *s)
{
    for (int i = 0; i < SCENES; i++)
        call_close(&s->calls[i]);
}

/* The engine stops.  What it answered stays, but nobody may have an event any more. */
static void story_stop(struct story *s)
{
    for (int i = 0; i < SCENES; i++)
        call_give_event(&s->calls[i]);
    client_stop(&s->client);
}

/* ---- files ---- */

static void remove_ledger(const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", ".lock"};
    char file[128];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(file, sizeof file, "%s%s", name, ends[i]);
        unlink(file);
    }
}

static void copy_file(const char *name, const char *end)
{
    char from[128], to[128], block[65536];
    snprintf(from, sizeof from, "%s%s", path, end);
    snprintf(to, sizeof to, "%s%s", name, end);
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    if (!in)
        return;
    assert_non_null(out);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* Copies what a kill would leave: the files as they are, without the state of processes. */
static void take_image(const char *name)
{
    remove_ledger(name);
    copy_file(name, "");
    copy_file(name, "-wal");
    copy_file(name, "-journal");
}

/* Called on the thread that answers, so before the engine does anything else. */
static void at_failure(const struct command *command)
{
    (void)command;
    if (!failed_taken)
        take_image(failed_image);
    failed_taken = true;
}

/* ---- what must be true of the files ---- */

static sqlite3 *open_plainly(const char *name)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    return db;
}

/* Returns the one integer that a query about these bytes answers; -1 if there is no row. */
static int64_t ask_sql(sqlite3 *db, const char *sql, const void *bytes, size_t len)
{
    sqlite3_stmt *stmt;
    int64_t answer = -1;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_bind_blob(stmt, 1, bytes, (int)len, SQLITE_STATIC);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        answer = sqlite3_column_int64(stmt, 0);
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    sqlite3_finalize(stmt);
    return answer;
}

static int64_t ask_secret(sqlite3 *db, const char *sql, const struct id *id)
{
    return ask_sql(db, sql, id->secret, ID_SECRET_SIZE);
}

static void check_key(sqlite3 *db, const struct story *s, enum scene scene)
{
    const struct call *call = &s->calls[scene];
    const char *sql = "SELECT length(body) FROM idempotency WHERE hash = ?";
    if (done(s, scene))
        assert_int_equal(ask_sql(db, sql, call->c.key.hash, KEY_HASH_SIZE), call->c.key.answer.len);
    else if (not_done(s, scene))
        assert_int_equal(ask_sql(db, sql, call->c.key.hash, KEY_HASH_SIZE), -1);
}

static void check_events(sqlite3 *db, const struct story *s)
{
    for (enum scene scene = EVENT; scene <= EVENT_AGAIN; scene++) {
        if (!asked(s, scene))
            continue;
        int64_t there = ask_secret(db, "SELECT count(*) FROM events WHERE secret = ?",
                                   &s->calls[scene].c.event_create->id);
        if (done(s, scene))
            assert_int_equal(there, 1);
        else if (not_done(s, scene))
            assert_int_equal(there, 0);
    }
    if (!asked(s, EVENT_AGAIN))
        check_key(db, s, EVENT);
    else if (not_done(s, EVENT))
        check_key(db, s, EVENT_AGAIN);
}

/* A granted hold is as its one change left it; one that was not granted has no row. */
static void check_hold(sqlite3 *db, const struct story *s, enum scene hold, enum scene change)
{
    const struct hold_row *row = command_hold(&s->calls[hold].c);
    int64_t status = ask_secret(db, "SELECT status FROM holds WHERE secret = ?", &row->id);
    if (not_done(s, hold))
        assert_int_equal(status, -1);
    if (!done(s, hold))
        return;
    int64_t until = ask_secret(db, "SELECT expires_at FROM holds WHERE secret = ?", &row->id);
    int64_t sold = ask_secret(db,
                              "SELECT count(*) FROM bookings WHERE booking ="
                              " (SELECT hold FROM holds WHERE secret = ?)",
                              &row->id);
    if (done(s, change)) {
        assert_int_equal(status, change == RELEASE_B   ? HOLD_RELEASED
                                 : change == CONFIRM_C ? HOLD_CONFIRMED
                                                       : HOLD_ACTIVE);
        assert_int_equal(until, row->created_at + (change == RENEW_A ? RENEWED_TTL_MS : TTL_MS));
        assert_int_equal(sold, change == CONFIRM_C);
    } else if (!asked(s, change) || not_done(s, change)) {
        assert_int_equal(status, HOLD_ACTIVE);
        assert_int_equal(until, row->created_at + TTL_MS);
        assert_int_equal(sold, 0);
    }
}

static void check_sound(const char *name)
{
    struct hf_err err = {0};
    struct verify_report report;
    char plain[128];
    snprintf(plain, sizeof plain, "sqlite:%s", name);
    if (ledger_verify(plain, &clock_system, &report, &err) != HF_OK)
        fail_msg("verify: %s", err.msg);
    for (size_t i = 0; i < VERIFY_COUNT; i++)
        if (report.checks[i].violations)
            fail_msg("%s, %s: %s", report.checks[i].invariant, report.checks[i].what,
                     report.checks[i].examples[0]);
}

static void check_files(const char *name, const struct story *s)
{
    check_sound(name);
    sqlite3 *db = open_plainly(name);
    assert_int_equal(ask_sql(db,
                             "SELECT count(*) FROM pragma_integrity_check WHERE"
                             " integrity_check <> 'ok'",
                             NULL, 0),
                     0);
    check_events(db, s);
    if (asked(s, HOLD_A_AGAIN))
        check_hold(db, s, HOLD_A, HOLD_A);
    check_hold(db, s, last_a(s), RENEW_A);
    check_hold(db, s, HOLD_B, RELEASE_B);
    check_hold(db, s, HOLD_C, CONFIRM_C);
    check_hold(db, s, AFTER, AFTER);
    check_key(db, s, last_a(s));
    check_key(db, s, HOLD_C);
    check_key(db, s, CONFIRM_C);
    if (done(s, CONFIRM_C))
        assert_int_equal(ask_secret(db, "SELECT count(*) FROM bookings WHERE secret = ?",
                                    &command_booking(&s->calls[CONFIRM_C].c)->id),
                         1);
    sqlite3_close(db);
}

/* All answers up to the first failure, and that one, are true. */
static void check_first_failure(const struct story *s)
{
    struct story *then = hf_alloc(sizeof *then);
    *then = *s;
    int last = 0;
    while (!asked(s, (enum scene)last) || done(s, (enum scene)last))
        last++;
    if (last == HOLD_A)
        last = HOLD_C; /* one batch */
    for (int i = last + 1; i < SCENES; i++)
        then->calls[i].answers = 0;
    check_files(failed_image, then);
    free(then);
}

/* On a disk that works again the same request gets the same bytes, or is executed again. */
static void check_repeat(const struct story *s)
{
    struct client client;
    struct hf_err err = {0};
    struct call load, again;
    if (client_start(&client, url, s->clock, &err) != HF_OK)
        fail_msg("it does not start again: %s", err.msg);
    if (s->event) {
        const struct command *first = &s->calls[last_a(s)].c;
        call_event_load(&load,
                        s->calls[done(s, EVENT) ? EVENT : EVENT_AGAIN].c.event_create->id.key);
        assert_int_equal(client_ask(&client, &load), HF_OK);
        call_hold(&again, load.c.event, 0, 2, TTL_MS);
        call_key(&again, KEY_A);
        client_ask(&client, &again);
        if (done(s, last_a(s))) {
            assert_true(again.c.key.replayed);
            assert_int_equal(again.c.key.answer.len, first->key.answer.len);
            assert_memory_equal(again.c.key.answer.data, first->key.answer.data,
                                first->key.answer.len);
        } else if (not_done(s, last_a(s))) {
            assert_int_equal(again.c.verdict, VERDICT_CREATED);
            assert_false(again.c.key.replayed);
        }
        call_close(&again);
        call_close(&load);
    }
    client_stop(&client);
    check_sound(path);
}

/* A start that failed does not prevent the next one. */
static void check_opens(const struct story *s)
{
    struct hf_err err = {0};
    struct ledger *ledger;
    const struct db_options options = {.clock = s->clock, .writer = true};
    if (ledger_open(url, &options, &ledger, &err) != HF_OK)
        fail_msg("it does not open again: %s", err.msg);
    ledger_close(ledger);
    check_sound(path);
}

/* ---- sweeps ---- */

struct tally {
    int points, refused_starts, not_done, unknown;
};

/* Every command has one answer, and a failing disk explains it.  Returns how many batches or reads
 * failed. */
static int check_answers(const struct story *s, struct tally *tally)
{
    int failed = 0;
    for (int i = 0; i < SCENES; i++) {
        const struct call *call = &s->calls[i];
        if (!call->answers || call_done(call))
            continue;
        failed += i != HOLD_B && i != HOLD_C; /* they fail with A */
        if (call->c.verdict == VERDICT_OUTCOME_UNKNOWN)
            tally->unknown++;
        else if (call->c.verdict == VERDICT_STORE_UNAVAILABLE)
            tally->not_done++;
        else
            fail_msg("scene %d: %s: %s", i, verdict_name(call->c.verdict), call->c.err.msg);
        assert_true(strlen(call->c.err.msg) > 0);
    }
    return failed;
}

/* With a fault that stays, every command that cannot write fails until the fault ends. */
static void play_forever(struct story *s, enum fault_call call, struct tally *tally)
{
    char why[256] = "";
    play(s);
    check_answers(s, tally);
    if (call == FAULT_WRITE && (!s->event || not_done(s, HOLD_A) || not_done(s, CONFIRM_C))) {
        assert_false(engine_ready(s->client.engine, why, sizeof why));
        assert_true(strlen(why) > 0);
    }
    fault_disarm();
    play_after(s);
    if (s->event)
        assert_true(done(s, AFTER));
}

/* A fault that passes costs one batch, or one read. */
static void play_once(struct story *s, struct tally *tally)
{
    play(s);
    play_after(s);
    assert_in_range(check_answers(s, tally), 0, 1);
}

/* Plays the story with call `at` failing.  Returns false if the story met no fault. */
static bool play_point(enum fault_call call, int at, int code, bool forever, struct tally *tally)
{
    struct story *s = hf_alloc(sizeof *s);
    struct clock_fake clock;
    struct hf_err err = {0};
    remove_ledger(path);
    clock_fake_init(&clock, INT64_C(1790000000000000));
    s->clock = &clock.clock;
    fault_arm(call, at, code, forever);
    failed_taken = false;
    bool started = client_start(&s->client, url, s->clock, &err) == HF_OK;
    if (started) {
        s->client.on_failure = at_failure;
        if (forever)
            play_forever(s, call, tally);
        else
            play_once(s, tally);
        if (done(s, AFTER))
            assert_true(engine_ready(s->client.engine, NULL, 0));
        take_image(image);
        story_stop(s);
        check_files(image, s);
        check_files(path, s);
        if (failed_taken)
            check_first_failure(s);
    } else {
        assert_true(strlen(err.msg) > 0);
        tally->refused_starts++;
    }
    bool hit = fault_hits() > 0;
    fault_disarm();
    if (!started)
        check_opens(s);
    else if (!done(s, HOLD_A) || at % REPEAT_EVERY == 0)
        check_repeat(s);
    story_close(s);
    free(s);
    tally->points++;
    return hit;
}

static void sweep(enum fault_call call, int code, bool forever, int step)
{
    struct tally tally = {0};
    if (getenv("HF_FAULT_ALL"))
        step = 1;
    for (int at = 1; play_point(call, at, code, forever, &tally); at += step)
        assert_true(at < SWEEP_POINTS_MAX);
    print_message("%d points: %d starts refused, %d commands not done, %d unknown\n", tally.points,
                  tally.refused_starts, tally.not_done, tally.unknown);
    assert_true(tally.points > 1);
}

#define SWEEPS(X)                                                                                  \
    X(any_write_may_find_the_disk_full, FAULT_WRITE, SQLITE_FULL, false, 3)                        \
    X(any_write_may_fail, FAULT_WRITE, SQLITE_IOERR_WRITE, false, 4)                               \
    X(any_sync_may_fail, FAULT_SYNC, SQLITE_IOERR_FSYNC, false, 1)                                 \
    X(any_read_may_fail, FAULT_READ, SQLITE_IOERR_READ, false, 5)                                  \
    X(any_truncate_may_fail, FAULT_TRUNCATE, SQLITE_IOERR_TRUNCATE, false, 1)                      \
    X(any_open_may_fail, FAULT_OPEN, SQLITE_CANTOPEN, false, 1)                                    \
    X(any_map_of_shared_memory_may_fail, FAULT_SHM_MAP, SQLITE_IOERR_SHMMAP, false, 1)             \
    X(any_lock_of_shared_memory_may_fail, FAULT_SHM_LOCK, SQLITE_IOERR_SHMLOCK, false, 9)          \
    X(the_disk_may_be_full_from_any_write_on, FAULT_WRITE, SQLITE_FULL, true, 3)                   \
    X(the_disk_may_be_broken_from_any_write_on, FAULT_WRITE, SQLITE_IOERR_WRITE, true, 4)          \
    X(the_disk_may_be_unreadable_from_any_read_on, FAULT_READ, SQLITE_IOERR_READ, true, 7)

#define SWEEP_TEST(claim, call, code, forever, step)                                               \
    static void claim(void **state)                                                                \
    {                                                                                              \
        (void)state;                                                                               \
        sweep(call, code, forever, step);                                                          \
    }
SWEEPS(SWEEP_TEST)

/* ---- a fault that lasts, on the real clock ---- */

static void begin(struct story *s)
{
    struct hf_err err = {0};
    *s = (struct story){.clock = &clock_system};
    remove_ledger(path);
    fault_disarm();
    assert_int_equal(client_start(&s->client, url, s->clock, &err), HF_OK);
    assert_true(play_event(s));
}

static void end(struct story *s)
{
    take_image(image);
    story_stop(s);
    check_files(image, s);
    check_files(path, s);
    check_repeat(s);
    story_close(s);
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* The engine becomes ready by itself, without any request. */
static void await_ready(struct story *s)
{
    for (int waited_ms = 0; !engine_ready(s->client.engine, NULL, 0); waited_ms += 20) {
        assert_true(waited_ms < 30000);
        pause_ms(20);
    }
}

static void a_full_disk_is_reported_and_its_end_noticed(void **state)
{
    (void)state;
    struct story s;
    char why[256] = "";
    begin(&s);
    fault_arm(FAULT_WRITE, 1, SQLITE_FULL, true);
    play_holds(&s);
    for (int i = HOLD_A; i <= HOLD_C; i++)
        assert_int_equal(s.calls[i].c.verdict, VERDICT_STORE_UNAVAILABLE);
    pause_ms(700); /* longer than the time between two probes */
    assert_false(engine_ready(s.client.engine, why, sizeof why));
    assert_non_null(strstr(why, "full"));
    fault_disarm();
    await_ready(&s);
    play_after(&s);
    assert_true(done(&s, AFTER));
    end(&s);
}

static void a_commit_whose_sync_fails_for_a_moment_is_found_not_done(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    fault_arm(FAULT_SYNC, 1, SQLITE_IOERR_FSYNC, true);
    call_hold(&s.calls[HOLD_A], s.event, 0, 2, TTL_MS);
    call_key(&s.calls[HOLD_A], KEY_A);
    client_put(&s.client, &s.calls[HOLD_A]);
    for (int waited_ms = 0; fault_hits() < 3; waited_ms += 5) {
        assert_true(waited_ms < 30000);
        pause_ms(5);
    }
    assert_false(engine_ready(s.client.engine, NULL, 0));
    fault_disarm();
    assert_int_equal(client_wait(&s.calls[HOLD_A]), VERDICT_STORE_UNAVAILABLE);
    await_ready(&s);
    play_after(&s);
    assert_true(done(&s, AFTER));
    end(&s);
}

/* Counts the batch's holds that the files have. */
static int64_t holds_in(const char *name, const struct story *s)
{
    int64_t there = 0;
    sqlite3 *db = open_plainly(name);
    for (int i = HOLD_A; i <= HOLD_C; i++)
        there += ask_secret(db, "SELECT count(*) FROM holds WHERE secret = ?",
                            &command_hold(&s->calls[i].c)->id);
    sqlite3_close(db);
    return there;
}

static void a_commit_whose_sync_keeps_failing_is_unknown_as_a_whole(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    fault_arm(FAULT_SYNC, 1, SQLITE_IOERR_FSYNC, true);
    play_holds(&s);
    for (int i = HOLD_A; i <= HOLD_C; i++) {
        assert_int_equal(s.calls[i].c.verdict, VERDICT_OUTCOME_UNKNOWN);
        assert_true(command_hold(&s.calls[i].c)->id.key > 0);
    }
    assert_false(engine_ready(s.client.engine, NULL, 0));
    take_image(image);
    check_files(image, &s);
    int64_t there = holds_in(image, &s);
    assert_true(there == 0 || there == 3);

    fault_disarm();
    await_ready(&s);
    play_after(&s);
    assert_true(done(&s, AFTER));
    end(&s);
    there = holds_in(path, &s);
    assert_true(there == 0 || there == 3);
}

/* The commit is on the disk, but the shared index cannot be extended for it: the log has grown
 * beyond what is mapped.  A crash now would bring the commit back. */
static void a_commit_that_cannot_be_indexed_is_found_not_done(void **state)
{
    (void)state;
    struct story s;
    struct hf_err err = {0};
    s = (struct story){.clock = &clock_system};
    for (int code = 0; code < 2; code++) {
        remove_ledger(path);
        fault_disarm();
        assert_int_equal(client_start(&s.client, url, s.clock, &err), HF_OK);
        s.client.on_failure = at_failure;
        failed_taken = false;
        fault_arm(FAULT_SHM_MAP, 1, code ? SQLITE_NOMEM : SQLITE_IOERR_SHMMAP, true);
        enum verdict verdict = VERDICT_CREATED;
        for (int i = 0; i < 40 && verdict == VERDICT_CREATED; i++) {
            call_close(&s.calls[EVENT]);
            call_event_create(&s.calls[EVENT], 100000, 1); /* a long text */
            verdict = client_ask(&s.client, &s.calls[EVENT]);
        }
        assert_int_equal(verdict, VERDICT_STORE_UNAVAILABLE);
        fault_disarm();
        client_stop(&s.client);
        check_sound(failed_image);
        sqlite3 *db = open_plainly(failed_image);
        assert_int_equal(ask_secret(db, "SELECT count(*) FROM events WHERE secret = ?",
                                    &s.calls[EVENT].c.event_create->id),
                         0);
        sqlite3_close(db);
    }
    story_close(&s);
}

static int make_dir(void **state)
{
    (void)state;
    process_make_dir("io", dir, sizeof dir);
    snprintf(path, sizeof path, "%s/ledger.db", dir);
    snprintf(image, sizeof image, "%s/image.db", dir);
    snprintf(failed_image, sizeof failed_image, "%s/failed.db", dir);
    snprintf(url, sizeof url, "sqlite:%s?vfs=%s", path, FAULT_VFS);
    log_set_level(LOG_OFF);
    fault_vfs_register();
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    remove_ledger(path);
    remove_ledger(image);
    remove_ledger(failed_image);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define SWEEP_ENTRY(claim, call, code, forever, step) cmocka_unit_test(claim),
        SWEEPS(SWEEP_ENTRY) cmocka_unit_test(a_full_disk_is_reported_and_its_end_noticed),
        cmocka_unit_test(a_commit_whose_sync_fails_for_a_moment_is_found_not_done),
        cmocka_unit_test(a_commit_that_cannot_be_indexed_is_found_not_done),
        cmocka_unit_test(a_commit_whose_sync_keeps_failing_is_unknown_as_a_whole),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
