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
#define TRIES 200 /* of what is to succeed: the machine may be slower than LEDGER_ASSUME_LATE_MS */

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
    postgres_server_fresh_patient(site.url);
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

/* ---- what makes an assumption false ---- */

/* Puts a clock row 130 years ahead, or back. */
static void put_ahead(int sign)
{
    script(sign > 0 ? "UPDATE event_clock SET now = now + 4102444800000 WHERE event = 2"
                    : "UPDATE event_clock SET now = now - 4102444800000 WHERE event = 2");
}

/* The other server begins a transaction that locks the event. */
static void lock_at_theirs(int event)
{
    struct hf_err err = {0};
    struct clock_row row = {.event = site.clocks[event].event};
    int64_t now;
    ok(ledger_begin(site.theirs, &err), &err);
    ok(ledger_lock(site.theirs, &row, 1, &now, &err), &err);
}

static void store_answer(void)
{
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
}

/* The other server looks for the batch. */
static bool is_found(void)
{
    struct hf_err err = {0};
    bool found;
    ok(ledger_resolve(site.theirs, &site.batch, site.clocks, EVENTS, NULL, true, &found, &err),
       &err);
    return found;
}

/* ---- the claims ---- */

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
    put_ahead(1);
    assert_refused(0);
    put_ahead(-1);
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
        lock_at_theirs(i);
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
    store_answer();
    assert_refused(0);
    script("UPDATE idempotency SET created_at = created_at - 86400000"); /* forgotten */
    assert_stored();
}

/* The COMMIT's answer is lost, and the batch is still on its way when somebody looks for it. */
static void what_was_looked_for_in_vain_is_never_stored(void **state)
{
    (void)state;
    assert_stored();
    decide(0);
    queue(); /* it stays in the socket, or in a pooler */
    assert_false(is_found());
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
    assert_stored();
    struct clock_row before = site.clocks[0];
    assert_true(is_found());
    read_clocks();
    assert_int_equal(site.clocks[0].fence, before.fence);
    assert_stored();
}

/* ---- bugs that are planted: a condition that the SQL leaves out ---- */

static const char *const statement_sql[ST_COUNT] = {
#define STATEMENT_SQL(name, sql) [ST_##name] = sql,
    LEDGER_STATEMENTS(STATEMENT_SQL)
#undef STATEMENT_SQL
};

/* Has the ledger run the statement with `instead` in the place of `condition`. */
static void plant(struct ledger *l, enum statement which, const char *condition,
                  const char *instead)
{
    struct hf_err err = {0};
    struct buf sql = {0};
    const char *text = statement_sql[which], *at = strstr(text, condition);
    assert_non_null(at);
    assert_null(l->stmts[which]); /* it has not been used yet */
    buf_printf(&sql, "%.*s%s%s", (int)(at - text), text, instead, at + strlen(condition));
    buf_char(&sql, '\0');
    ok(l->db->driver->prepare(l->db, sql.data, &l->stmts[which], &err), &err);
    buf_close(&sql);
}

static void queue_decided(int64_t late_ms)
{
    decide(late_ms);
    queue();
}

static void another_seq(void)
{
    site.clocks[1].seq++;
    queue_decided(0);
}

static void another_fence(void)
{
    site.clocks[1].fence++;
    queue_decided(0);
}

static void a_row_that_is_ahead(void)
{
    put_ahead(1);
    queue_decided(0);
}

static void a_lock(void)
{
    lock_at_theirs(1);
    queue_decided(0);
}

static void a_time_to_come(void) { queue_decided(60000); }
static void a_time_long_ago(void) { queue_decided(-60000); }

static void a_stored_answer(void)
{
    store_answer();
    queue_decided(0);
}

static void a_look_in_vain(void)
{
    queue_decided(0);
    assert_false(is_found());
}

struct bug {
    enum statement statement;
    const char *condition, *instead;
    void (*make_false)(void);
    bool is_theirs; /* the other server runs it */
};

/* Is a batch stored of which an assumption is false? */
static bool lets_through(const struct bug *bug)
{
    void *state = NULL;
    assert_int_equal(setup(&state), 0);
    plant(bug->is_theirs ? site.theirs : site.ours, bug->statement, bug->condition, bug->instead);
    bug->make_false();
    bool is_let_through = commit() == HF_OK && is_stored();
    ledger_rollback(site.theirs);
    assert_int_equal(teardown(&state), 0);
    return is_let_through;
}

/* Each of the claims above would notice: without its condition, the batch is stored. */
static void each_condition_is_needed(void **state)
{
    static const struct bug bugs[] = {
        {ST_CLOCK_ASSUME, " AND c.seq = r.seq", "", another_seq, false},
        {ST_CLOCK_ASSUME, " AND c.fence = r.fence", "", another_fence, false},
        {ST_CLOCK_ASSUME, " AND c.now <= r.now", "", a_row_that_is_ahead, false},
        {ST_CLOCK_ASSUME, "{lock_idle}", "", a_lock, false},
        {ST_NOW_ASSUME, "{now} >= r.now AND ", "", a_time_to_come, false},
        {ST_NOW_ASSUME, " AND {now} <= r.now + r.late", " AND r.late > 0", a_time_long_ago, false},
        {ST_KEY_ASSUME, "k.hash = r.hash", "false AND k.hash = r.hash", a_stored_answer, false},
        {ST_FENCE_SKIP, "fence + 1", "fence", a_look_in_vain, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        bool is_let_through = false; /* a slow machine may be the reason for a refusal, see TRIES */
        for (int try = 0; try < TRIES && !is_let_through; try++)
            is_let_through = lets_through(&bugs[i]);
        if (!is_let_through)
            fail_msg("refused without the condition \"%s\"", bugs[i].condition);
    }
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
        cmocka_unit_test(each_condition_is_needed),
    };
    return cmocka_run_group_tests_name("batches in one exchange", tests, NULL, NULL);
}
