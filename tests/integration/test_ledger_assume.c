/* Tests of ledger_batch_assume on a real PostgreSQL: a batch that asks for nothing first is stored
 * if all that it assumes is true when the database gets to it, and not if any of it is false.  The
 * simulated ledger (tests/sim) cannot tell whether the SQL has every condition; this can. */
#include "support/fixtures.h"

#include <string.h>

#include "base/clock.h"
#include "ledger/ledger.h"
#include "ledger/ledger_internal.h"
#include "support/postgres_server.h"

#define EVENTS 2
#define TRIES 200 /* of what is to succeed: the machine may be slower than the limit on the time */

static struct {
    char url[200];
    struct ledger *ours, *theirs;    /* two servers */
    struct clock_row clocks[EVENTS]; /* as the view of ours has them */
    struct batch_read read;          /* what the batch assumes */
    struct ledger_batch batch;       /* a hold of one seat of the first event */
    uint8_t key[KEY_HASH_SIZE];
} site;

static void ok(enum hf_status status, const struct hf_err *err)
{
    if (status != HF_OK)
        fail_msg("%s: %s", hf_status_name(status), err->msg);
}

static struct ledger *open_ledger(void)
{
    struct db_options options = {
        .clock = &clock_system, .writer = true, .settings = POSTGRES_PATIENT_SETTINGS};
    struct ledger *l;
    struct hf_err err = {0};
    ok(ledger_open(site.url, &options, &l, &err), &err);
    return l;
}

static void script(const char *sql)
{
    struct hf_err err = {0};
    ok(site.theirs->db->driver->script(site.theirs->db, sql, &err), &err);
}

static void read_clocks(void)
{
    struct hf_err err = {0};
    ok(ledger_clocks_read(site.ours, site.clocks, EVENTS, &err), &err);
}

static int setup(void **state)
{
    (void)state;
    struct hf_err err = {0};
    postgres_server_fresh(site.url);
    strcat(site.url, POSTGRES_PATIENT_URL);
    site.ours = open_ledger();
    site.theirs = open_ledger();
    for (int i = 0; i < EVENTS; i++) {
        struct event_def *def = def_hall(2, 4);
        ok(ledger_begin(site.ours, &err), &err);
        ok(ledger_event_insert(site.ours, def, T0_MS, ACTOR_OPEN, &err), &err);
        ok(ledger_commit(site.ours, &err), &err);
        site.clocks[i].event = def->id.key;
        event_def_free(def);
    }
    hash_text("key", site.key);
    read_clocks();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ledger_close(site.ours);
    ledger_close(site.theirs);
    batch_read_close(&site.read);
    vec_close(&site.batch.clocks);
    vec_close(&site.batch.holds_new);
    memset(&site, 0, sizeof site);
    return 0;
}

/* The batch: a new hold, decided `late_ms` after the database's present time. */
static void decide(int64_t late_ms)
{
    static const uint32_t seat = 0;
    struct hf_err err = {0};
    const struct clock_row *clock = &site.clocks[0];
    int64_t fence = clock->fence + 1;
    batch_read_clear(&site.read);
    vec_clear(&site.batch.clocks);
    vec_clear(&site.batch.holds_new);
    ok(ledger_now(site.ours, &site.read.now, &err), &err);
    site.read.now += late_ms;
    for (int i = 0; i < EVENTS; i++)
        *vec_push(&site.read.clocks) = site.clocks[i];
    *vec_push(&site.read.keys) = (struct key_wanted){site.key, NULL};
    struct hold_row *row = vec_push(&site.batch.holds_new);
    *row = (struct hold_row){.id.key = HOLD_KEY(clock->event, fence),
                             .event = clock->event,
                             .fence = fence,
                             .amount = 1000,
                             .created_at = site.read.now,
                             .expires_at = site.read.now + MINUTE_MS,
                             .max_expires_at = site.read.now + MINUTE_MS,
                             .status = HOLD_ACTIVE,
                             .seats = &seat,
                             .n_seats = 1};
    struct clock_write *w = vec_push(&site.batch.clocks);
    w->before = *clock;
    w->after = (struct clock_row){clock->event, clock->seq + 2, fence, site.read.now};
}

/* Queues the batch; nothing is sent before the commit. */
static void queue(void)
{
    struct hf_err err = {0};
    ok(ledger_begin(site.ours, &err), &err);
    ok(ledger_batch_assume(site.ours, &site.read, &err), &err);
    ok(ledger_write(site.ours, &site.batch, &err), &err);
}

static enum hf_status commit(void)
{
    struct hf_err err = {0};
    int64_t exchanges = ledger_exchanges(site.ours);
    enum hf_status status = ledger_commit(site.ours, &err);
    assert_int_equal(ledger_exchanges(site.ours), exchanges + 1);
    if (status != HF_OK)
        ledger_rollback(site.ours);
    if (status == HF_CONFLICT) /* and not the end of a wait for somebody's lock */
        assert_string_equal(err.msg, "what was assumed");
    return status;
}

static bool is_stored(void)
{
    struct hf_err err = {0};
    struct hold_row row = {0};
    ok(ledger_holds_read(site.theirs, &site.batch.holds_new.v[0].id.key, 1, &row, &err), &err);
    bool found = row.id.key != 0;
    hold_row_close(&row);
    return found;
}

static void assert_refused(int64_t late_ms)
{
    decide(late_ms);
    queue();
    assert_int_equal(commit(), HF_CONFLICT);
    assert_false(is_stored());
}

/* A try fails for no fault of its own if it took longer than the time may differ. */
static void assert_stored(void)
{
    enum hf_status status = HF_CONFLICT;
    for (int i = 0; i < TRIES && status == HF_CONFLICT; i++) {
        decide(0);
        queue();
        status = commit();
    }
    assert_int_equal(status, HF_OK);
    assert_true(is_stored());
    read_clocks();
    assert_int_equal(site.clocks[0].fence, site.batch.holds_new.v[0].fence);
}

static void what_is_true_is_stored_in_one_exchange(void **state)
{
    (void)state;
    assert_stored(); /* prepares the statements */
    assert_stored();
}

/* Breaks one condition at a time, and repairs it. */
static void each_event_must_be_at_its_seq(void **state)
{
    (void)state;
    for (int i = 0; i < EVENTS; i++) {
        site.clocks[i].seq++;
        assert_refused(0);
        site.clocks[i].seq -= 2;
        assert_refused(0);
        site.clocks[i].seq++;
        assert_stored();
    }
}

static void each_event_must_be_at_its_fence(void **state)
{
    (void)state;
    for (int i = 0; i < EVENTS; i++) {
        site.clocks[i].fence++;
        assert_refused(0);
        site.clocks[i].fence--;
        assert_stored();
    }
}

static void no_event_may_be_ahead_of_the_time(void **state)
{
    (void)state;
    script("UPDATE event_clock SET now = now + 4102444800000 WHERE event = 2");
    assert_refused(0);
    script("UPDATE event_clock SET now = now - 4102444800000 WHERE event = 2");
    assert_stored();
}

static void the_time_must_be_the_databases(void **state)
{
    (void)state;
    assert_refused(60000);                      /* it has not come yet */
    assert_refused(-LEDGER_ASSUME_LATE_MS - 1); /* too long ago */
    assert_refused(-60000);
    assert_stored();
}

static void nobody_else_may_have_an_event_locked_and_nobody_waits_for_it(void **state)
{
    (void)state;
    for (int i = 0; i < EVENTS; i++) {
        struct hf_err err = {0};
        struct clock_row row = {.event = site.clocks[i].event};
        int64_t now;
        ok(ledger_begin(site.theirs, &err), &err);
        ok(ledger_lock(site.theirs, &row, 1, &now, &err), &err);
        decide(0);
        queue();
        assert_int_equal(commit(), HF_CONFLICT);
        ledger_rollback(site.theirs);
        assert_false(is_stored());
        assert_stored();
    }
}

static void no_answer_may_be_stored_under_the_key(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct ledger_batch batch = {0};
    struct key_row *key = vec_push(&batch.keys);
    memcpy(key->hash, site.key, KEY_HASH_SIZE);
    key->answer = "an answer";
    key->answer_len = strlen(key->answer);
    ok(ledger_now(site.theirs, &key->created_at, &err), &err);
    ok(ledger_begin(site.theirs, &err), &err);
    ok(ledger_write(site.theirs, &batch, &err), &err);
    ok(ledger_commit(site.theirs, &err), &err);
    vec_close(&batch.keys);
    assert_refused(0);
    script("UPDATE idempotency SET created_at = created_at - 86400000"); /* forgotten */
    assert_stored();
}

/* The COMMIT's answer is lost, and the batch is still on its way when somebody looks for it. */
static void what_was_looked_for_in_vain_is_never_stored(void **state)
{
    (void)state;
    struct hf_err err = {0};
    bool found = true;
    assert_stored();
    decide(0);
    queue(); /* it stays in the socket, or in a pooler */
    ok(ledger_resolve(site.theirs, &site.batch, site.clocks, EVENTS, NULL, true, &found, &err),
       &err);
    assert_false(found);
    assert_int_equal(commit(), HF_CONFLICT);
    assert_false(is_stored());
    struct clock_row before = site.clocks[0];
    read_clocks();
    assert_int_equal(site.clocks[0].fence, before.fence + 1);
    assert_int_equal(site.clocks[0].seq, before.seq);
    assert_stored();
}

static void what_was_looked_for_and_found_stays(void **state)
{
    (void)state;
    struct hf_err err = {0};
    bool found = false;
    assert_stored();
    struct clock_row before = site.clocks[0];
    ok(ledger_resolve(site.theirs, &site.batch, site.clocks, EVENTS, NULL, true, &found, &err),
       &err);
    assert_true(found);
    read_clocks();
    assert_int_equal(site.clocks[0].fence, before.fence);
    assert_stored();
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(what_is_true_is_stored_in_one_exchange),
        claim(each_event_must_be_at_its_seq),
        claim(each_event_must_be_at_its_fence),
        claim(no_event_may_be_ahead_of_the_time),
        claim(the_time_must_be_the_databases),
        claim(nobody_else_may_have_an_event_locked_and_nobody_waits_for_it),
        claim(no_answer_may_be_stored_under_the_key),
        claim(what_was_looked_for_in_vain_is_never_stored),
        claim(what_was_looked_for_and_found_stays),
    };
    return cmocka_run_group_tests_name("batches in one exchange", tests, NULL, NULL);
}
