/* Claims about owners: how many places one may have, held and booked together, and how a hold that
 * an owner has already is resumed.  The paper ledger (tests/support/paper.c) plays the worker. */
#include "support/paper.h"

#include <string.h>

enum { FLOOR };

static struct paper paper;
static struct event *hall;

/* An owner may have four places. */
static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 10);
    def->terms.max_per_owner = 4;
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

struct grant {
    struct id id;
    int64_t fence;
};

static enum verdict run(struct ask *a)
{
    enum verdict verdict = paper_run(&paper, a);
    ask_close(a);
    return verdict;
}

/* Seats beginning with this one. */
static void ask_row(struct ask *a, const char *owner, uint32_t first, uint32_t n)
{
    uint32_t seats[SEATS_INLINE];
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    ask_create_n(a, hall, seats, n);
    if (owner)
        ask_owner(a, owner);
}

static enum verdict create(const char *owner, uint32_t first, uint32_t n)
{
    struct ask a;
    ask_row(&a, owner, first, n);
    return run(&a);
}

static struct grant grant(const char *owner, uint32_t first, uint32_t n)
{
    struct ask a;
    ask_row(&a, owner, first, n);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    return g;
}

static struct id sell(const struct grant *g)
{
    struct ask a;
    ask_confirm(&a, hall, &g->id, g->fence, false);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct id booking = command_booking(&a.c)->id;
    ask_close(&a);
    return booking;
}

static void set_limit(int32_t limit)
{
    struct ask a;
    ask_terms(&a, hall);
    a.c.event_change.given = EVENT_MAX_PER_OWNER;
    a.c.event_change.terms.max_per_owner = limit;
    assert_int_equal(run(&a), VERDICT_OK);
}

static int64_t places_of(const char *owner)
{
    return view_owner_places(paper.view, owner_hash(hall, owner, strlen(owner)));
}

/* ---- the limit ---- */

static void holds_and_bookings_count_together(void **state)
{
    (void)state;
    struct ask a;
    struct grant g = grant("ada", 0, 2);
    sell(&g);
    assert_int_equal(places_of("ada"), 2);
    ask_create_none(&a, hall);
    ask_owner(&a, "ada");
    ask_area(&a, FLOOR, 3);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OWNER_LIMIT);
    assert_int_equal(command_shortage(&a.c)->limit, 4);
    ask_close(&a);
    assert_int_equal(create("ada", 2, 2), VERDICT_CREATED);
    assert_int_equal(create("ada", 4, 1), VERDICT_OWNER_LIMIT);
    assert_int_equal(create("Ada", 4, 4), VERDICT_CREATED); /* another label */
    assert_int_equal(create(NULL, 8, 4), VERDICT_CREATED);  /* nobody's */
    paper_check(&paper);
}

static void what_has_ended_does_not_count(void **state)
{
    (void)state;
    struct ask a;
    struct grant released = grant("ada", 0, 4);
    ask_release(&a, hall, &released.id);
    assert_int_equal(run(&a), VERDICT_OK);
    struct grant sold = grant("ada", 0, 4);
    struct id booking = sell(&sold);
    assert_int_equal(create("ada", 4, 1), VERDICT_OWNER_LIMIT);
    ask_cancel(&a, hall, &booking);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(places_of("ada"), 0);
    assert_int_equal(create("ada", 4, 4), VERDICT_CREATED);
    paper.expire_max = 0; /* nobody has noticed yet that it is due */
    paper.now += DEF_TTL_MS - 1;
    assert_int_equal(create("ada", 0, 1), VERDICT_OWNER_LIMIT);
    paper.now++;
    assert_int_equal(create("ada", 0, 4), VERDICT_CREATED);
    paper_check(&paper);
}

static void a_change_counts_what_it_adds_in_the_end(void **state)
{
    (void)state;
    struct ask a;
    struct grant sold = grant("ada", 0, 2), g = grant("ada", 2, 2);
    sell(&sold);
    ask_change(&a, hall, &g.id, g.fence);
    ask_add(&a, 4);
    assert_int_equal(run(&a), VERDICT_OWNER_LIMIT);
    ask_change(&a, hall, &g.id, g.fence);
    ask_add(&a, 4, 5);
    ask_remove(&a, 2);
    assert_int_equal(run(&a), VERDICT_OWNER_LIMIT);
    ask_change(&a, hall, &g.id, g.fence);
    ask_add(&a, 4);
    ask_remove(&a, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(places_of("ada"), 4);
    ask_change(&a, hall, &g.id, g.fence + 1);
    ask_remove(&a, 4);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(places_of("ada"), 3);
    paper_check(&paper);
}

static enum verdict rescue(const struct grant *g, int64_t *ret_limit)
{
    struct ask a;
    ask_confirm(&a, hall, &g->id, g->fence, true);
    enum verdict verdict = paper_run(&paper, &a);
    *ret_limit = a.c.confirm.shortage.limit;
    ask_close(&a);
    return verdict;
}

static void a_rescue_needs_room_for_the_owner(void **state)
{
    (void)state;
    int64_t limit = 0;
    struct grant late = grant("ada", 0, 2), ownerless = grant(NULL, 2, 2);
    paper.now += DEF_TTL_MS;
    struct grant again = grant("ada", 4, 3);
    assert_int_equal(rescue(&late, &limit), VERDICT_OWNER_LIMIT);
    assert_int_equal(limit, 4);
    assert_int_equal(places_of("ada"), 3);
    paper_reload(&paper, hall);
    assert_int_equal(rescue(&late, &limit), VERDICT_OWNER_LIMIT);
    assert_int_equal(rescue(&ownerless, &limit), VERDICT_CREATED);
    paper.expire_max = 0; /* what is due does not count, though nobody has noticed yet */
    paper.now += DEF_TTL_MS;
    assert_int_equal(rescue(&late, &limit), VERDICT_CREATED);
    assert_int_equal(rescue(&again, &limit), VERDICT_OWNER_LIMIT);
    assert_int_equal(places_of("ada"), 2);
    paper_check(&paper);
}

static void two_requests_of_one_batch_count_together(void **state)
{
    (void)state;
    struct ask asks[2];
    ask_row(&asks[0], "ada", 0, 3);
    ask_row(&asks[1], "ada", 4, 2);
    paper_begin(&paper);
    for (int i = 0; i < 2; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    paper_fail(&paper);
    assert_int_equal(places_of("ada"), 0);
    paper_begin(&paper);
    for (int i = 0; i < 2; i++)
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    paper_commit(&paper);
    assert_int_equal(asks[0].c.verdict, VERDICT_CREATED);
    assert_int_equal(asks[1].c.verdict, VERDICT_OWNER_LIMIT);
    for (int i = 0; i < 2; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

static void a_limit_that_is_set_later_counts_what_was_booked_before(void **state)
{
    (void)state;
    set_limit(0);
    struct grant sold = grant("ada", 0, 4);
    sell(&sold);
    struct ask asks[2];
    ask_terms(&asks[0], hall);
    asks[0].c.event_change.given = EVENT_MAX_PER_OWNER;
    asks[0].c.event_change.terms.max_per_owner = 5;
    ask_row(&asks[1], "ada", 4, 2);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &asks[0]), DECIDED);
    assert_int_equal(paper_decide(&paper, &asks[1]), DEFERRED); /* until the event was read again */
    paper_commit(&paper);
    assert_int_equal(paper_run(&paper, &asks[1]), VERDICT_OWNER_LIMIT);
    for (int i = 0; i < 2; i++)
        ask_close(&asks[i]);
    assert_int_equal(create("ada", 4, 1), VERDICT_CREATED);
    paper_check(&paper);
}

static void many_owners_are_told_apart(void **state)
{
    (void)state;
    char name[] = "owner a a";
    struct event *field;
    struct event_def *def = def_hall(26, 26);
    def->terms.max_per_owner = 1;
    field = paper_event(&paper, def);
    for (uint32_t i = 0; i < 26 * 26; i++) {
        struct ask a;
        name[6] = (char)('a' + i / 26);
        name[8] = (char)('a' + i % 26);
        for (int round = 0; round < 2; round++) {
            ask_create(&a, field, round ? (i + 1) % (26 * 26) : i);
            ask_owner(&a, name);
            assert_int_equal(run(&a), round ? VERDICT_OWNER_LIMIT : VERDICT_CREATED);
        }
    }
}

/* ---- resuming ---- */

static enum decided decide_resume(struct ask *a)
{
    paper_begin(&paper);
    enum decided decided = paper_decide(&paper, a);
    paper_commit(&paper);
    return decided;
}

static void an_owner_resumes_exactly_what_it_holds(void **state)
{
    (void)state;
    struct ask a;
    ask_row(&a, "ada", 0, 2);
    ask_area(&a, FLOOR, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct hold_row made = *command_hold(&a.c);
    ask_close(&a);
    size_t rows = paper.audit.n;
    ask_create(&a, hall, 1, 0); /* in any order */
    ask_area(&a, FLOOR, 1);
    ask_owner(&a, "ada");
    a.c.create.resume = true;
    assert_int_equal(decide_resume(&a), DEFERRED); /* until the hold was read */
    assert_int_equal(decide_resume(&a), DECIDED);
    assert_int_equal(a.c.verdict, VERDICT_OK);
    assert_memory_equal(&command_hold(&a.c)->id, &made.id, sizeof made.id);
    assert_int_equal(command_hold(&a.c)->fence, made.fence);
    assert_int_equal(command_hold(&a.c)->expires_at, made.expires_at);
    ask_close(&a);
    assert_int_equal(paper.audit.n, rows); /* nothing was written */
    paper_check(&paper);
}

/* Asks to resume; the paper ledger takes as many batches as the request needs. */
static enum verdict resume(const char *owner, uint32_t first, uint32_t n, uint32_t floor)
{
    struct ask a;
    ask_row(&a, owner, first, n);
    if (floor)
        ask_area(&a, FLOOR, floor);
    a.c.create.resume = true;
    while (decide_resume(&a) == DEFERRED)
        ;
    enum verdict verdict = a.c.verdict;
    ask_close(&a);
    return verdict;
}

static void nothing_else_is_resumed(void **state)
{
    (void)state;
    grant("ada", 0, 2);
    assert_int_equal(resume("bob", 0, 2, 0), VERDICT_SEAT_TAKEN);
    assert_int_equal(resume("ada", 0, 1, 0), VERDICT_SEAT_TAKEN);
    assert_int_equal(resume("ada", 0, 3, 0), VERDICT_OWNER_LIMIT);
    assert_int_equal(resume("ada", 0, 2, 1), VERDICT_OWNER_LIMIT);
    assert_int_equal(resume("ada", 0, 2, 0), VERDICT_OK);
    assert_int_equal(create("ada", 0, 2), VERDICT_SEAT_TAKEN); /* who does not ask to resume */
    assert_int_equal(resume("ada", 4, 2, 0), VERDICT_CREATED); /* there is nothing to resume */
    paper_check(&paper);
}

static void a_hold_that_has_ended_is_not_resumed(void **state)
{
    (void)state;
    grant("ada", 0, 2);
    paper.expire_max = 0;
    paper.now += DEF_TTL_MS;
    assert_int_equal(resume("ada", 0, 2, 0), VERDICT_CREATED);
    paper_check(&paper);
}

static void a_hold_that_is_released_meanwhile_is_made_anew(void **state)
{
    (void)state;
    struct grant g = grant("ada", 0, 2);
    struct ask a, release;
    ask_row(&a, "ada", 0, 2);
    a.c.create.resume = true;
    assert_int_equal(decide_resume(&a), DEFERRED);
    ask_release(&release, hall, &g.id);
    assert_int_equal(run(&release), VERDICT_OK);
    assert_int_equal(decide_resume(&a), DECIDED);
    assert_int_equal(a.c.verdict, VERDICT_CREATED);
    assert_int_not_equal(command_hold(&a.c)->id.key, g.id.key);
    ask_close(&a);
    paper_check(&paper);
}

/* Two labels of one hash: the label itself decides. */
static void a_hold_of_a_label_that_only_looks_the_same_is_not_resumed(void **state)
{
    (void)state;
    struct grant g = grant("ada", 0, 2);
    struct hold_row *row = paper_hold(&paper, g.id.key);
    ((char *)(uintptr_t)row->owner)[0] = 'A'; /* the view goes by the hash of "ada" */
    assert_int_equal(resume("ada", 0, 2, 0), VERDICT_SEAT_TAKEN);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(holds_and_bookings_count_together),
        claim(what_has_ended_does_not_count),
        claim(a_change_counts_what_it_adds_in_the_end),
        claim(a_rescue_needs_room_for_the_owner),
        claim(two_requests_of_one_batch_count_together),
        claim(a_limit_that_is_set_later_counts_what_was_booked_before),
        claim(many_owners_are_told_apart),
        claim(an_owner_resumes_exactly_what_it_holds),
        claim(nothing_else_is_resumed),
        claim(a_hold_that_has_ended_is_not_resumed),
        claim(a_hold_that_is_released_meanwhile_is_made_anew),
        claim(a_hold_of_a_label_that_only_looks_the_same_is_not_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
