/* Claims about the terms of an event: what a change of them leaves alone, when sales are open, what
 * archiving ends, and what readers on other threads see.  The paper ledger (tests/support/paper.c)
 * plays the worker. */
#include "support/paper.h"

#include <string.h>

#include "view/feed.h"

static struct paper paper;
static struct event *hall;

static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 10);
    hall = paper_event(&paper, def);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    paper_close(&paper);
    return 0;
}

/* ---- helpers ---- */

static enum verdict run(struct ask *a)
{
    enum verdict verdict = paper_run(&paper, a);
    ask_close(a);
    return verdict;
}

static enum verdict create(uint32_t seat)
{
    struct ask a;
    ask_create(&a, hall, seat);
    return run(&a);
}

static void set_sales(int64_t open_at, int64_t close_at)
{
    struct ask a;
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_SALES_OPEN_AT | EVENT_SALES_CLOSE_AT;
    a.c.event_change.terms.sales_open_at = open_at;
    a.c.event_change.terms.sales_close_at = close_at;
    assert_int_equal(run(&a), VERDICT_OK);
}

static enum verdict set_status(enum command_kind kind)
{
    struct ask a;
    ask_event(&a, kind, hall);
    return run(&a);
}

static char *text(const char *of) { return hf_strndup(of, strlen(of)); }

/* ---- changing them ---- */

static void what_is_not_given_stays(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_VENUE | EVENT_METADATA | EVENT_STARTS_AT;
    a.c.event_change.terms.venue = text("Arena");
    a.c.event_change.terms.metadata = text("{\"a\":1}");
    a.c.event_change.terms.starts_at.ms = T0_MS + HOUR_MS;
    ask_price(&a, 1, 900);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    const struct event_terms *t = a.c.event_change.after;
    assert_string_equal(t->name, "Hall");
    assert_string_equal(t->venue, "Arena");
    assert_int_equal(t->prices.v[0], 2500);
    assert_int_equal(t->prices.v[1], 900);
    assert_int_equal(t->hold_ttl_ms, DEF_TTL_MS);
    assert_ptr_equal(t, hall->terms);
    ask_close(&a);
    ask_terms(&a, hall); /* a field that is given as none is taken away */
    a.c.event_change.given = EVENT_VENUE | EVENT_NAME;
    a.c.event_change.terms.name = text("Theatre");
    assert_int_equal(run(&a), VERDICT_OK);
    assert_null(hall->terms->venue);
    assert_string_equal(hall->terms->name, "Theatre");
    assert_string_equal(hall->terms->metadata, "{\"a\":1}");
    paper_check(&paper);
}

static void terms_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_HOLD_MAX;
    a.c.event_change.terms.hold_max_ms = DEF_TTL_MS - 1;
    assert_int_equal(paper_run(&paper, &a), VERDICT_INVALID_REQUEST);
    assert_non_null(a.c.event_change.conflict);
    ask_close(&a);
    set_sales(T0_MS + 10, 0);
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_SALES_CLOSE_AT;
    a.c.event_change.terms.sales_close_at = T0_MS + 10;
    assert_int_equal(run(&a), VERDICT_INVALID_REQUEST);
    assert_int_equal(hall->terms->sales_close_at, 0);
    paper_check(&paper);
}

static void holds_that_exist_keep_their_terms(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct hold_row before = *command_hold(&a.c);
    ask_close(&a);
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_HOLD_TTL | EVENT_HOLD_MAX;
    a.c.event_change.terms.hold_ttl_ms = 2000;
    a.c.event_change.terms.hold_max_ms = 3000;
    ask_price(&a, 0, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    const struct hold_row *row = paper_hold(&paper, before.id.key);
    assert_int_equal(row->amount, 2500);
    assert_int_equal(row->expires_at, before.expires_at);
    assert_int_equal(row->max_expires_at, T0_MS + DEF_MAX_MS);
    ask_create(&a, hall, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->amount, 1);
    assert_int_equal(command_hold(&a.c)->expires_at, T0_MS + 2000);
    assert_int_equal(command_hold(&a.c)->max_expires_at, T0_MS + 3000);
    ask_close(&a);
    paper_check(&paper);
}

static void the_next_command_of_a_batch_is_judged_by_the_new_terms(void **state)
{
    (void)state;
    struct ask asks[4];
    for (int i = 0; i < 2; i++) {
        ask_terms(&asks[2 * i], hall);
        asks[2 * i].c.event_change.given = EVENT_MAX_PER_HOLD;
        asks[2 * i].c.event_change.terms.max_per_hold = 1 + i;
        ask_create(&asks[2 * i + 1], hall, 4, 5);
    }
    paper_begin(&paper);
    for (int i = 0; i < 4; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    assert_int_equal(asks[1].c.verdict, VERDICT_TOO_MANY_SEATS);
    assert_int_equal(asks[3].c.verdict, VERDICT_CREATED);
    assert_int_equal(paper.decision->batch.events.n, 1); /* what the event is in the end */
    paper_commit(&paper);
    for (int i = 0; i < 4; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

/* ---- when sales are open ---- */

static void sales_open_and_close_at_their_millisecond(void **state)
{
    (void)state;
    struct ask a;
    set_sales(T0_MS + 1000, T0_MS + 2000);
    paper.now = T0_MS + 999;
    ask_create(&a, hall, 0);
    assert_int_equal(paper_run(&paper, &a), VERDICT_EVENT_CLOSED);
    assert_true(command_shortage(&a.c)->is_early);
    assert_int_equal(command_shortage(&a.c)->opens_at, T0_MS + 1000);
    ask_close(&a);
    paper.now = T0_MS + 1000;
    assert_int_equal(create(0), VERDICT_CREATED);
    paper.now = T0_MS + 1999;
    assert_int_equal(create(1), VERDICT_CREATED);
    paper.now = T0_MS + 2000;
    ask_create(&a, hall, 2);
    assert_int_equal(paper_run(&paper, &a), VERDICT_EVENT_CLOSED);
    assert_false(command_shortage(&a.c)->is_early);
    assert_int_equal(command_shortage(&a.c)->closes_at, T0_MS + 2000);
    ask_close(&a);
    set_sales(0, 0);
    assert_int_equal(create(2), VERDICT_CREATED);
    paper_check(&paper);
}

static void what_is_held_when_sales_close_can_be_sold(void **state)
{
    (void)state;
    struct ask a;
    set_sales(0, T0_MS + 1000);
    ask_create(&a, hall, 0, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct id id = command_hold(&a.c)->id;
    int64_t fence = command_hold(&a.c)->fence;
    ask_close(&a);
    paper.now = T0_MS + 1000;
    ask_renew(&a, hall, &id, 0);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_change(&a, hall, &id, fence);
    ask_add(&a, 2);
    assert_int_equal(run(&a), VERDICT_EVENT_CLOSED);
    ask_change(&a, hall, &id, fence);
    ask_remove(&a, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_confirm(&a, hall, &id, fence + 1, false);
    assert_int_equal(run(&a), VERDICT_CREATED);
    paper_check(&paper);
}

static void an_archived_event_sells_nothing_and_stays_archived(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct id id = command_hold(&a.c)->id;
    int64_t fence = command_hold(&a.c)->fence;
    ask_close(&a);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_OK);
    assert_int_equal(set_status(CMD_EVENT_ARCHIVE), VERDICT_OK);
    size_t rows = paper.audit.n;
    assert_int_equal(set_status(CMD_EVENT_ARCHIVE), VERDICT_OK); /* again */
    assert_int_equal(paper.audit.n, rows);
    assert_int_equal(set_status(CMD_EVENT_OPEN), VERDICT_EVENT_ARCHIVED);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_EVENT_ARCHIVED);
    assert_int_equal(create(1), VERDICT_EVENT_CLOSED);
    ask_confirm(&a, hall, &id, fence, false); /* what was promised is kept */
    assert_int_equal(run(&a), VERDICT_CREATED);
    paper_check(&paper);
}

/* ---- what others see ---- */

static void a_reader_keeps_the_terms_that_it_has_taken(void **state)
{
    (void)state;
    struct ask a;
    const struct event_terms *before = event_terms_take(hall);
    ask_terms(&a, hall);
    ask_price(&a, 0, 1);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    const struct event_terms *undecided = event_terms_take(hall);
    assert_ptr_equal(undecided, before); /* nothing is shown before the commit: I7 */
    paper_commit(&paper);
    ask_close(&a);
    const struct event_terms *after = event_terms_take(hall);
    assert_int_equal(after->prices.v[0], 1);
    assert_int_equal(before->prices.v[0], 2500);
    event_terms_give(before);
    event_terms_give(undecided);
    event_terms_give(after);
    paper_check(&paper);
}

static void streams_are_told_of_status_and_terms(void **state)
{
    (void)state;
    struct changes changes = {0};
    int64_t seq = hall->shown.seq;
    struct ask a;
    assert_int_equal(create(0), VERDICT_CREATED);
    assert_true(event_changes(hall, seq, &changes));
    assert_int_equal(changes.list.n, 1);
    assert_int_equal(changes.list.v[0].kind, CHANGE_SEAT);
    ask_terms(&a, hall);
    ask_price(&a, 0, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(set_status(CMD_EVENT_CLOSE), VERDICT_OK);
    assert_true(event_changes(hall, seq, &changes));
    assert_int_equal(changes.list.n, 2); /* the event once, and after seats and areas */
    assert_int_equal(changes.list.v[1].kind, CHANGE_EVENT);
    assert_int_equal(changes.list.v[1].seq, hall->shown.seq);
    vec_close(&changes.list);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(what_is_not_given_stays),
        claim(terms_that_contradict_each_other_are_refused),
        claim(holds_that_exist_keep_their_terms),
        claim(the_next_command_of_a_batch_is_judged_by_the_new_terms),
        claim(sales_open_and_close_at_their_millisecond),
        claim(what_is_held_when_sales_close_can_be_sold),
        claim(an_archived_event_sells_nothing_and_stays_archived),
        claim(a_reader_keeps_the_terms_that_it_has_taken),
        claim(streams_are_told_of_status_and_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
