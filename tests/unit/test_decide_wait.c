/* Claims about the waiting list: who gets what becomes free, when entries end, and that nothing is
 * shown or kept of a batch that fails.  The paper ledger (tests/support/paper.c) plays the worker;
 * after each commit it claims that nothing is free that somebody waits for. */
#include "support/paper.h"

#include <string.h>

#include "sim/check.h"
#include "view/view_waits.h"

enum { FLOOR, TERRACE };
enum { ROW = 4 }; /* seats */

static struct paper paper;
static struct event *hall;

/* A hall of 3 rows of 4 seats, a floor of 6 places and a terrace of 4. */
static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 11);
    struct event_def *def = def_hall(3, ROW);
    def_area(def, "Floor", 700, 6);
    def_area(def, "Terrace", 900, 4);
    def->terms.offer_ttl_ms = 5000;
    def->terms.wait_alive_ms = 10 * MINUTE_MS;
    def->terms.wait_per_owner = 2;
    hall = paper_event(&paper, def);
    paper.decision->notices = ~0u;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    paper_check(&paper);
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

static struct grant grant(struct ask *a)
{
    assert_int_equal(paper_run(&paper, a), VERDICT_CREATED);
    struct grant g = {command_hold(&a->c)->id, command_hold(&a->c)->fence};
    ask_close(a);
    return g;
}

/* Seats beginning with this one. */
static struct grant hold_seats(uint32_t first, uint32_t n)
{
    struct ask a;
    uint32_t seats[SEATS_INLINE];
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    ask_create_n(&a, hall, seats, n);
    return grant(&a);
}

static struct grant hold_places(uint32_t area, uint32_t n)
{
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, area, n);
    return grant(&a);
}

static enum verdict release(const struct grant *g)
{
    struct ask a;
    ask_release(&a, hall, &g->id);
    return run(&a);
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

/* The whole hall in three holds, one per row. */
static void fill(struct grant rows[3])
{
    for (uint32_t i = 0; i < 3; i++)
        rows[i] = hold_seats(i * ROW, ROW);
}

/* Everything is sold: nothing comes back by itself. */
static void sell_out(void)
{
    struct grant rows[3];
    fill(rows);
    for (int i = 0; i < 3; i++)
        sell(&rows[i]);
}

static struct id join_ask(struct ask *a)
{
    assert_int_equal(paper_run(&paper, a), VERDICT_CREATED);
    struct id id = a->c.wait_join.wait.id;
    ask_close(a);
    return id;
}

static struct id join(uint32_t quantity)
{
    struct ask a;
    ask_wait(&a, hall, quantity);
    return join_ask(&a);
}

static struct id join_as(const char *owner, uint32_t quantity)
{
    struct ask a;
    ask_wait(&a, hall, quantity);
    ask_owner(&a, owner);
    return join_ask(&a);
}

static struct id join_area(uint32_t area, uint32_t quantity)
{
    struct ask a;
    ask_wait(&a, hall, 1);
    ask_area(&a, area, quantity);
    return join_ask(&a);
}

static enum verdict change(enum wait_change_kind kind, const struct id *entry)
{
    struct ask a;
    ask_wait_change(&a, hall, kind, entry);
    return run(&a);
}

static const struct wait_row *wait_of(const struct id *entry)
{
    return paper_wait(&paper, entry->key);
}

static enum wait_status status_of(const struct id *entry) { return wait_of(entry)->status; }

/* The hold that the entry is offered now. */
static struct grant offer_of(const struct id *entry)
{
    assert_int_equal(status_of(entry), WAIT_OFFERED);
    const struct hold_row *row = paper_hold(&paper, wait_of(entry)->hold);
    return (struct grant){row->id, row->fence};
}

static void assert_ended(const struct id *entry, enum wait_reason reason)
{
    assert_int_equal(status_of(entry), WAIT_ENDED);
    assert_int_equal(wait_of(entry)->reason, reason);
}

/* A batch without commands, as the timer makes it. */
static void pass_ms(int64_t ms)
{
    paper.now += ms;
    paper_begin(&paper);
    paper_commit(&paper);
}

static void set_terms(unsigned given, const struct event_terms *terms)
{
    struct ask a;
    ask_terms(&a, hall);
    a.c.event_change.given = given;
    a.c.event_change.terms = *terms;
    assert_int_equal(run(&a), VERDICT_OK);
}

static size_t notices(enum notice notice)
{
    size_t n = 0;
    for (size_t i = 0; i < paper.ledger.jobs.n; i++)
        n += paper.ledger.jobs.v[i].kind == JOB_NOTIFY && paper.ledger.jobs.v[i].notice == notice;
    return n;
}

/* ---- joining ---- */

static void what_can_be_had_at_once_is_not_waited_for(void **state)
{
    (void)state;
    struct ask a;
    ask_wait(&a, hall, 2);
    assert_int_equal(run(&a), VERDICT_AVAILABLE);
    ask_wait(&a, hall, 1);
    ask_area(&a, FLOOR, 6);
    assert_int_equal(run(&a), VERDICT_AVAILABLE);
    ask_wait(&a, hall, 5); /* no row has five, but they need not be together */
    a.c.wait_join.wish.adjacent = 0;
    assert_int_equal(run(&a), VERDICT_AVAILABLE);
    assert_null(hall->waitlist);
}

static void due_holds_end_before_somebody_has_to_wait(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    paper.expire_max = 0;
    paper.now += DEF_TTL_MS;
    ask_wait(&a, hall, 1);
    assert_int_equal(run(&a), VERDICT_AVAILABLE);
}

static void an_event_without_a_list_takes_no_entries(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    set_terms(EVENT_OFFER_TTL, &(struct event_terms){0});
    ask_wait(&a, hall, 1);
    assert_int_equal(run(&a), VERDICT_WAITLIST_OFF);
}

static void entries_are_numbered_in_the_order_of_arrival(void **state)
{
    (void)state;
    sell_out();
    struct id first = join(1), second = join(2);
    assert_int_equal(wait_of(&first)->number, 1);
    assert_int_equal(wait_of(&second)->number, 2);
    assert_int_equal(wait_of(&second)->rank, 2);
    assert_int_equal(status_of(&second), WAIT_WAITING);
}

static void an_owner_has_so_many_entries_and_no_more(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    struct id first = join_as("ada", 1);
    join_as("ada", 2);
    ask_wait(&a, hall, 1);
    ask_owner(&a, "ada");
    assert_int_equal(run(&a), VERDICT_ALREADY_WAITING);
    join_as("bob", 1);
    assert_int_equal(change(WAIT_LEAVES, &first), VERDICT_OK);
    join_as("ada", 1);
}

static void an_address_has_so_many_entries_and_no_more(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    paper.decision->client_places_max = 2;
    for (int i = 0; i < 3; i++) {
        ask_wait(&a, hall, 1);
        a.c.wait_join.client = 77;
        assert_int_equal(run(&a), i < 2 ? VERDICT_CREATED : VERDICT_TOO_MANY_WAITS);
    }
    ask_wait(&a, hall, 1);
    a.c.wait_join.client = 78;
    assert_int_equal(run(&a), VERDICT_CREATED);
}

static void what_can_never_be_is_refused(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    ask_wait(&a, hall, 13);
    assert_int_equal(run(&a), VERDICT_INVALID_REQUEST);
    ask_wait(&a, hall, 1);
    ask_area(&a, TERRACE, 5);
    assert_int_equal(run(&a), VERDICT_INVALID_REQUEST);
    ask_wait(&a, hall, 1);
    a.c.wait_join.until = paper.now;
    assert_int_equal(run(&a), VERDICT_INVALID_REQUEST);
    set_terms(EVENT_MAX_PER_HOLD, &(struct event_terms){.max_per_hold = 2});
    ask_wait(&a, hall, 3);
    assert_int_equal(run(&a), VERDICT_TOO_MANY_SEATS);
}

static void nobody_joins_where_nothing_is_sold(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    ask_event(&a, CMD_EVENT_CLOSE, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_wait(&a, hall, 1);
    assert_int_equal(run(&a), VERDICT_EVENT_CLOSED);
}

/* ---- what frees ---- */

static void a_released_seat_goes_to_the_first_in_the_same_commit(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id first = join_as("ada", 2), second = join(2), third = join(1);
    assert_int_equal(release(&rows[1]), VERDICT_OK);
    struct grant offer = offer_of(&first);
    const struct hold_row *hold = paper_hold(&paper, offer.id.key);
    assert_int_equal(hold->n_seats, 2);
    assert_int_equal(hold->expires_at, paper.now + 5000);
    assert_int_equal(hold->owner_len, 3);
    assert_memory_equal(hold->owner, "ada", 3);
    assert_int_equal(hold->amount, 5000);
    assert_int_equal(status_of(&second), WAIT_OFFERED); /* the other two seats of the row */
    assert_int_equal(status_of(&third), WAIT_WAITING);
    assert_int_equal(notices(NOTICE_WAITLIST_OFFERED), 2);
}

static void every_way_that_a_place_comes_back_is_heard(void **state)
{
    (void)state;
    struct grant rows[3], floor = hold_places(FLOOR, 6);
    struct ask a;
    fill(rows);
    struct id booking = sell(&rows[0]);
    struct id seat[6], place = join_area(FLOOR, 2);
    for (int i = 0; i < 6; i++)
        seat[i] = join(4 - (i < 2));
    ask_cancel(&a, hall, &booking); /* a sale that is taken back */
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&seat[0]), WAIT_OFFERED);
    struct grant offer = offer_of(&seat[0]);
    assert_int_equal(release(&offer), VERDICT_OK); /* an offer that is given back */
    assert_int_equal(status_of(&seat[0]), WAIT_LEFT);
    assert_int_equal(status_of(&seat[1]), WAIT_OFFERED);
    ask_evict(&a, hall, &rows[1].id); /* eviction */
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&seat[2]), WAIT_OFFERED);
    ask_change(&a, hall, &floor.id, floor.fence); /* PATCH */
    ask_remove_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&place), WAIT_OFFERED);
    pass_ms(5000); /* an offer lapses, and so does what it was made of */
    assert_int_equal(status_of(&seat[1]), WAIT_LAPSED);
    assert_int_equal(status_of(&seat[2]), WAIT_LAPSED);
    assert_int_equal(status_of(&seat[3]), WAIT_OFFERED);
    assert_int_equal(status_of(&seat[4]), WAIT_OFFERED);
    pass_ms(5000); /* rows[2] expires with the two offers */
    assert_int_equal(status_of(&seat[5]), WAIT_OFFERED);
}

static void an_unblocked_place_goes_to_the_list_not_to_the_public(void **state)
{
    (void)state;
    struct ask a;
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 0, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_create_none(&a, hall);
    for (uint32_t i = 2; i < 12; i++)
        a.seats[i - 2] = i;
    a.c.create.n_seats = 10;
    struct grant rest = grant(&a);
    (void)rest;
    struct id two = join(2);
    ask_seats(&a, CMD_SEATS_UNBLOCK, hall, 0, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
    assert_int_equal(hall->seats[0].status, SEAT_HELD);
}

static void a_channels_places_are_not_offered(void **state)
{
    (void)state;
    struct ask a;
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 0, 1, 2, 3);
    ask_channel(&a, "house");
    assert_int_equal(run(&a), VERDICT_OK);
    hold_seats(4, 8);
    struct id two = join(2);
    ask_create(&a, hall, 0, 1);
    a.c.create.channel = 1;
    struct grant g = grant(&a);
    assert_int_equal(release(&g), VERDICT_OK); /* they return to the channel */
    assert_int_equal(status_of(&two), WAIT_WAITING);
}

static void reopening_offers_what_came_back_meanwhile(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id two = join(2);
    ask_event(&a, CMD_EVENT_CLOSE, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(release(&rows[0]), VERDICT_OK);
    assert_int_equal(status_of(&two), WAIT_WAITING);
    ask_event(&a, CMD_EVENT_OPEN, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
}

static void the_opening_of_sales_offers_what_is_there(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id two = join(2);
    struct event_terms later = {.sales_open_at = paper.now + 4000};
    set_terms(EVENT_SALES_OPEN_AT, &later);
    assert_int_equal(release(&rows[0]), VERDICT_OK);
    assert_int_equal(status_of(&two), WAIT_WAITING);
    assert_int_equal(view_waits_next(paper.view), paper.now + 4000);
    pass_ms(4000);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
}

static void a_look_before_the_opening_forgets_nothing(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    sell(&rows[1]); /* nothing else comes back meanwhile */
    sell(&rows[2]);
    struct id two = join(2);
    struct event_terms later = {.sales_open_at = paper.now + 4 * MINUTE_MS};
    set_terms(EVENT_SALES_OPEN_AT, &later);
    assert_int_equal(release(&rows[0]), VERDICT_OK);
    decide_waits_look(paper.view, hall, paper.now); /* as if others had changed the event */
    paper.now += 2 * MINUTE_MS;
    assert_int_equal(change(WAIT_IS_READ, &two), VERDICT_OK);
    assert_int_equal(wait_of(&two)->read_at, paper.now);
    pass_ms(2 * MINUTE_MS);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
}

/* ---- order ---- */

static void who_does_not_fit_is_passed_over_by_those_who_do(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id large = join(4), small = join(2);
    struct ask a;
    ask_change(&a, hall, &rows[0].id, rows[0].fence);
    ask_remove(&a, 0, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&large), WAIT_WAITING);
    assert_int_equal(status_of(&small), WAIT_OFFERED);
    assert_int_equal(release(&rows[1]), VERDICT_OK);
    assert_int_equal(status_of(&large), WAIT_OFFERED);
}

static void an_entry_that_is_moved_to_the_front_has_the_first_turn(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id first = join(4), second = join(4), third = join(4);
    assert_int_equal(change(WAIT_COMES_FIRST, &second), VERDICT_OK);
    assert_int_equal(change(WAIT_COMES_FIRST, &third), VERDICT_OK);
    assert_true(wait_of(&third)->rank < wait_of(&second)->rank);
    release(&rows[0]);
    assert_int_equal(status_of(&third), WAIT_OFFERED);
    release(&rows[1]);
    assert_int_equal(status_of(&second), WAIT_OFFERED);
    release(&rows[2]);
    assert_int_equal(status_of(&first), WAIT_OFFERED);
    assert_int_equal(change(WAIT_COMES_FIRST, &first), VERDICT_NOT_WAITING);
}

/* A place is never free for one moment to a later command of the batch. */
static void a_later_command_of_the_batch_does_not_get_the_place(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask first, second;
    fill(rows);
    struct id four = join(4);
    paper_begin(&paper);
    ask_release(&first, hall, &rows[0].id);
    ask_create(&second, hall, 0);
    assert_int_equal(paper_decide(&paper, &first), DECIDED);
    assert_int_equal(paper_decide(&paper, &second), DECIDED);
    paper_commit(&paper);
    assert_int_equal(second.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(status_of(&four), WAIT_OFFERED);
    ask_close(&first);
    ask_close(&second);
}

/* A due hold that stands in the way ends when its seats are asked for; they are not the asker's. */
static void what_a_claim_sets_free_is_not_the_claimants(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4);
    paper.expire_max = 0; /* only what commands need ends */
    paper.now += DEF_TTL_MS;
    ask_create(&a, hall, 0);
    assert_int_equal(run(&a), VERDICT_SEAT_TAKEN);
    assert_int_equal(status_of(&four), WAIT_OFFERED);
    ask_best(&a, hall, 4, true);
    assert_int_equal(run(&a), VERDICT_CREATED); /* one of the other two rows */
}

static void a_seller_cannot_block_what_a_claim_sets_free(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4);
    paper.expire_max = 0;
    paper.now += DEF_TTL_MS;
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 0);
    assert_int_equal(run(&a), VERDICT_SEAT_TAKEN);
    assert_int_equal(status_of(&four), WAIT_OFFERED);
}

static void a_rescue_does_not_get_what_somebody_waits_for(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4);
    paper.expire_max = 0;
    paper.now += DEF_TTL_MS;
    ask_confirm(&a, hall, &rows[0].id, rows[0].fence, true);
    assert_int_equal(run(&a), VERDICT_HOLD_EXPIRED);
    assert_int_equal(status_of(&four), WAIT_OFFERED);
}

static void areas_are_offered_by_their_counters(void **state)
{
    (void)state;
    struct grant a = hold_places(FLOOR, 3), b = hold_places(FLOOR, 3);
    struct id four = join_area(FLOOR, 4), two = join_area(FLOOR, 2), one = join_area(FLOOR, 1);
    release(&a);
    assert_int_equal(status_of(&four), WAIT_WAITING);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
    assert_int_equal(status_of(&one), WAIT_OFFERED);
    release(&b);
    assert_int_equal(status_of(&four), WAIT_WAITING);
    struct grant offer = offer_of(&two);
    release(&offer);
    assert_int_equal(status_of(&four), WAIT_OFFERED);
}

/* ---- bounds ---- */

static void a_batch_makes_so_many_offers_and_the_next_goes_on(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a, b;
    fill(rows);
    struct id one[6];
    for (int i = 0; i < 6; i++)
        one[i] = join(1);
    paper.decision->wait_turns_max = 2;
    paper_begin(&paper);
    ask_release(&a, hall, &rows[0].id);
    ask_create(&b, hall, 3);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(paper_decide(&paper, &b), DEFERRED); /* its place may be somebody's */
    paper_commit(&paper);
    assert_int_equal(status_of(&one[1]), WAIT_OFFERED);
    assert_int_equal(status_of(&one[2]), WAIT_WAITING);
    assert_int_equal(view_waits_next(paper.view), 0); /* at once */
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &b), DEFERRED);
    paper_commit(&paper);
    assert_int_equal(status_of(&one[3]), WAIT_OFFERED);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &b), DECIDED);
    paper_commit(&paper);
    assert_int_equal(b.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(status_of(&one[4]), WAIT_WAITING);
    ask_close(&a);
    ask_close(&b);
}

/* ---- offers ---- */

static void an_offer_is_booked_and_accepted(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id four = join(4);
    release(&rows[0]);
    struct grant offer = offer_of(&four);
    sell(&offer);
    assert_int_equal(status_of(&four), WAIT_ACCEPTED);
    assert_true(wait_of(&four)->ended_at == paper.now);
}

/* An offer may be much shorter than a hold: the time that a buyer needs is a part of its own. */
static void a_short_offer_is_paid_like_a_short_hold(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    set_terms(EVENT_HOLD_TTL | EVENT_HOLD_MAX,
              &(struct event_terms){.hold_ttl_ms = 8 * MINUTE_MS, .hold_max_ms = 20 * MINUTE_MS});
    fill(rows);
    struct id four = join(4), other = join(4);
    release(&rows[0]);
    release(&rows[1]);
    struct grant offer = offer_of(&four), late = offer_of(&other);
    ask_book(&a, hall, &offer.id);
    assert_int_equal(run(&a), VERDICT_CREATED);
    pass_ms(4000); /* less than a quarter is left */
    ask_book(&a, hall, &late.id);
    assert_int_equal(run(&a), VERDICT_RENEWAL_CAP);
}

static void an_offer_cannot_be_extended(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4);
    release(&rows[0]);
    struct grant offer = offer_of(&four);
    ask_renew(&a, hall, &offer.id, 0);
    assert_int_equal(run(&a), VERDICT_RENEWAL_CAP);
}

static void an_offer_gets_no_other_places_and_may_give_some_back(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4), two = join(2);
    release(&rows[0]);
    struct grant offer = offer_of(&four);
    ask_change(&a, hall, &offer.id, offer.fence);
    ask_area(&a, FLOOR, 1);
    assert_int_equal(run(&a), VERDICT_INVALID_REQUEST);
    ask_change(&a, hall, &offer.id, offer.fence);
    ask_remove(&a, 0, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
    offer = offer_of(&four); /* with another fence */
    sell(&offer);
    assert_int_equal(status_of(&four), WAIT_ACCEPTED);
}

static void places_of_an_offer_may_become_of_another_type(void **state)
{
    (void)state;
    struct grant floor = hold_places(FLOOR, 6);
    struct ask a;
    ask_terms(&a, hall);
    ask_new_type(&a, "full", NULL, 0);
    ask_new_type(&a, "child", (const int64_t[]){0, 100}, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    struct id three = join_area(FLOOR, 3), other = join_area(FLOOR, 1);
    ask_change(&a, hall, &floor.id, floor.fence);
    ask_remove_area(&a, FLOOR, 3);
    assert_int_equal(run(&a), VERDICT_OK);
    struct grant offer = offer_of(&three);
    ask_change(&a, hall, &offer.id, offer.fence);
    ask_area(&a, FLOOR, 3);
    ask_type(&a, "child", 3);
    ask_remove_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_INVALID_REQUEST); /* one more */
    ask_change(&a, hall, &offer.id, offer.fence);
    ask_area(&a, FLOOR, 2);
    ask_type(&a, "child", 2);
    ask_remove_area(&a, FLOOR, 2);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(paper_hold(&paper, offer.id.key)->amount, 700 + 2 * 100);
    assert_int_equal(status_of(&other), WAIT_WAITING);
}

static void a_lapsed_offer_goes_to_the_next_and_never_to_the_same_entry(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    sell(&rows[1]);
    sell(&rows[2]);
    struct id first = join(4), second = join(4);
    release(&rows[0]);
    pass_ms(5000);
    assert_int_equal(status_of(&first), WAIT_LAPSED);
    assert_int_equal(status_of(&second), WAIT_OFFERED);
    assert_int_equal(notices(NOTICE_WAITLIST_LAPSED), 1);
    pass_ms(5000);
    assert_int_equal(status_of(&second), WAIT_LAPSED);
    pass_ms(60000);
    assert_int_equal(hall->seats[0].status, SEAT_AVAILABLE);
}

static void the_end_of_sales_shortens_offers_but_not_below_what_a_buyer_needs(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct event_terms t = {.offer_ttl_ms = HOUR_MS, .sales_close_at = paper.now + 80 * MINUTE_MS};
    set_terms(EVENT_OFFER_TTL | EVENT_SALES_CLOSE_AT, &t);
    struct id a = join(4), b = join(4);
    release(&rows[0]);
    assert_int_equal(paper_hold(&paper, wait_of(&a)->hold)->expires_at, paper.now + 10 * MINUTE_MS);
    t.sales_close_at = paper.now + 3 * MINUTE_MS;
    set_terms(EVENT_SALES_CLOSE_AT, &t);
    release(&rows[1]);
    assert_int_equal(paper_hold(&paper, wait_of(&b)->hold)->expires_at, paper.now + 2 * MINUTE_MS);
}

static void offers_have_the_ticket_types_of_the_wish(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    ask_terms(&a, hall);
    ask_new_type(&a, "full", NULL, 0);
    ask_new_type(&a, "child", (const int64_t[]){100}, 1);
    assert_int_equal(run(&a), VERDICT_OK);
    fill(rows);
    ask_wait(&a, hall, 3);
    ask_type(&a, "child", 2);
    ask_type(&a, "full", 1);
    struct id three = join_ask(&a), plain = join(3);
    assert_int_equal(hall->waitlist->queues.n, 1); /* what fits does not depend on ticket types */
    release(&rows[0]);
    struct grant offer = offer_of(&three);
    assert_int_equal(paper_hold(&paper, offer.id.key)->amount, 2500 + 2 * 100);
    release(&rows[1]);
    offer = offer_of(&plain);
    assert_int_equal(paper_hold(&paper, offer.id.key)->amount, 3 * 2500);
    ask_wait(&a, hall, 2);
    ask_type(&a, "senior", 1);
    assert_int_equal(run(&a), VERDICT_NO_SUCH_TYPE);
}

/* ---- ends ---- */

static void entries_end_at_their_time_and_when_nobody_reads_them(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    ask_wait(&a, hall, 1);
    a.c.wait_join.until = paper.now + MINUTE_MS;
    struct id until = join_ask(&a), unread = join(1), read = join(1);
    assert_int_equal(view_waits_next(paper.view), paper.now + MINUTE_MS);
    pass_ms(MINUTE_MS);
    assert_ended(&until, WAIT_REASON_UNTIL);
    assert_int_equal(change(WAIT_IS_READ, &read), VERDICT_OK); /* too soon to be stored */
    assert_int_equal(wait_of(&read)->read_at, wait_of(&read)->created_at);
    pass_ms(MINUTE_MS);
    assert_int_equal(change(WAIT_IS_READ, &read), VERDICT_OK);
    assert_int_equal(wait_of(&read)->read_at, paper.now);
    pass_ms(8 * MINUTE_MS);
    assert_ended(&unread, WAIT_REASON_UNREAD);
    assert_int_equal(status_of(&read), WAIT_WAITING);
    assert_int_equal(notices(NOTICE_WAITLIST_ENDED), 2);
}

static void an_entry_whose_time_has_come_gets_no_offer(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    ask_wait(&a, hall, 4);
    a.c.wait_join.until = paper.now + 1000;
    struct id first = join_ask(&a), second = join(4);
    paper.now += 1000;
    release(&rows[0]);
    assert_ended(&first, WAIT_REASON_UNTIL);
    assert_int_equal(status_of(&second), WAIT_OFFERED);
}

static void an_owner_without_room_ends_when_its_turn_comes(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    struct event_terms t = {.max_per_owner = 4};
    set_terms(EVENT_MAX_PER_OWNER, &t);
    ask_create(&a, hall, 0, 1, 2, 3);
    ask_owner(&a, "ada");
    rows[0] = grant(&a);
    sell(&rows[0]);
    rows[1] = hold_seats(4, 4);
    rows[2] = hold_seats(8, 4);
    struct id ada = join_as("ada", 2), bob = join_as("bob", 4);
    release(&rows[1]);
    assert_ended(&ada, WAIT_REASON_OWNER_LIMIT);
    assert_int_equal(status_of(&bob), WAIT_OFFERED);
}

static void a_wish_for_more_than_a_hold_may_have_ends_when_its_turn_comes(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id four = join(4), two = join(2);
    struct event_terms t = {.max_per_hold = 2};
    set_terms(EVENT_MAX_PER_HOLD, &t);
    release(&rows[0]);
    assert_ended(&four, WAIT_REASON_TOO_MANY);
    assert_int_equal(status_of(&two), WAIT_OFFERED);
}

static void the_end_of_sales_ends_all_in_slices(void **state)
{
    (void)state;
    sell_out();
    struct id one[5];
    for (int i = 0; i < 5; i++)
        one[i] = join(1);
    struct event_terms t = {.sales_close_at = paper.now + MINUTE_MS};
    set_terms(EVENT_SALES_CLOSE_AT, &t);
    paper.decision->wait_turns_max = 2;
    int batches = 0;
    paper.now += MINUTE_MS;
    while (view_waits_next(paper.view) <= paper.now) {
        pass_ms(0);
        batches++;
    }
    assert_int_equal(batches, 3);
    for (int i = 0; i < 5; i++)
        assert_ended(&one[i], WAIT_REASON_SALES_ENDED);
    assert_int_equal(notices(NOTICE_WAITLIST_ENDED), 5);
}

static void a_cancelled_event_ends_all_and_so_does_one_without_a_list(void **state)
{
    (void)state;
    struct ask a;
    sell_out();
    struct id one = join(1);
    set_terms(EVENT_OFFER_TTL, &(struct event_terms){0});
    assert_ended(&one, WAIT_REASON_OFF);
    set_terms(EVENT_OFFER_TTL, &(struct event_terms){.offer_ttl_ms = 5000});
    struct id two = join(1);
    ask_event(&a, CMD_EVENT_CANCEL, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_ended(&two, WAIT_REASON_CANCELLED);
}

static void who_leaves_gives_the_offer_to_the_next(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id first = join(4), second = join(4), third = join(4);
    assert_int_equal(change(WAIT_LEAVES, &second), VERDICT_OK);
    assert_int_equal(change(WAIT_LEAVES, &second), VERDICT_OK); /* again */
    assert_int_equal(status_of(&second), WAIT_LEFT);
    release(&rows[0]);
    assert_int_equal(change(WAIT_LEAVES, &first), VERDICT_OK);
    assert_int_equal(status_of(&first), WAIT_LEFT);
    assert_int_equal(status_of(&third), WAIT_OFFERED);
}

static void an_admin_evicts_and_erasure_ends(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id a = join(4), b = join(4), c = join_as("ada", 4), d = join(4);
    assert_int_equal(change(WAIT_EVICTS, &a), VERDICT_OK);
    assert_ended(&a, WAIT_REASON_EVICTED);
    release(&rows[0]);
    assert_int_equal(status_of(&b), WAIT_OFFERED);
    assert_int_equal(change(WAIT_IS_ERASED, &c), VERDICT_OK);
    assert_ended(&c, WAIT_REASON_ERASED);
    assert_int_equal(change(WAIT_EVICTS, &b), VERDICT_OK);
    assert_int_equal(status_of(&b), WAIT_LAPSED);
    assert_int_equal(status_of(&d), WAIT_OFFERED);
    assert_int_equal(change(WAIT_EVICTS, &b), VERDICT_NOT_WAITING);
}

static void a_secret_is_needed(void **state)
{
    (void)state;
    sell_out();
    struct id one = join(1), wrong = one;
    wrong.secret[0] ^= 1;
    assert_int_equal(change(WAIT_LEAVES, &wrong), VERDICT_NO_SUCH_WAIT);
    wrong = one;
    wrong.key++;
    assert_int_equal(change(WAIT_LEAVES, &wrong), VERDICT_NO_SUCH_WAIT);
}

static void a_paused_list_offers_nothing_and_returns_are_on_sale(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4);
    ask_event(&a, CMD_WAIT_PAUSE, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    release(&rows[0]);
    assert_int_equal(status_of(&four), WAIT_WAITING);
    struct grant other = hold_seats(0, 4);
    release(&other);
    ask_event(&a, CMD_WAIT_RESUME, hall);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(status_of(&four), WAIT_OFFERED);
}

/* ---- failures ---- */

static void a_batch_that_fails_leaves_the_list_as_it_was(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a, b, c;
    fill(rows);
    struct id four = join(4), two = join(2);
    for (int i = 0; i < 3; i++) {
        paper_begin(&paper);
        ask_release(&a, hall, &rows[0].id);
        ask_wait(&b, hall, 3);
        ask_wait_change(&c, hall, WAIT_COMES_FIRST, &two);
        assert_int_equal(paper_decide(&paper, &c), DECIDED);
        assert_int_equal(paper_decide(&paper, &a), DECIDED);
        assert_int_equal(paper_decide(&paper, &b), DECIDED);
        if (i < 2)
            paper_fail(&paper);
        else
            paper_commit(&paper);
        ask_close(&a);
        ask_close(&b);
        ask_close(&c);
        paper_check(&paper);
    }
    assert_int_equal(status_of(&two), WAIT_OFFERED); /* it came first */
    assert_int_equal(status_of(&four), WAIT_WAITING);
}

static void an_event_that_is_read_again_has_its_list_again(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id first = join_as("ada", 4), second = join(4), third = join(1);
    assert_int_equal(change(WAIT_COMES_FIRST, &third), VERDICT_OK);
    release(&rows[0]);
    paper_reload(&paper, hall);
    paper_check(&paper);
    assert_int_equal(view_waits_next(paper.view), 0); /* it is looked at anew */
    pass_ms(0);
    assert_int_equal(status_of(&third), WAIT_OFFERED);
    release(&rows[1]);
    assert_int_equal(status_of(&first), WAIT_OFFERED);
    assert_int_equal(status_of(&second), WAIT_WAITING);
}

/* `holdfast verify` tells of it. */
static void an_entry_whose_wish_is_damaged_is_not_loaded(void **state)
{
    (void)state;
    struct grant rows[3];
    fill(rows);
    struct id damaged = join(1);
    (void)join(1);
    struct wait_row *row = paper_wait(&paper, damaged.key);
    const struct wait_wish wish = row->wish;
    const struct wait_wish wrong[] = {
        {.section = -1, .tier = -1, .area = 9, .quantity = 1},
        {.section = 9, .tier = -1, .area = -1, .quantity = 1},
        {.section = -1, .tier = 9, .area = -1, .quantity = 1},
        {.section = -1, .tier = -1, .area = -1, .quantity = 1, .category = 99},
        {.section = -1, .tier = -1, .area = -1, .quantity = HOLD_PLACES_MAX + 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        row->wish = wrong[i];
        paper_reload(&paper, hall);
        pass_ms(0);
        assert_int_equal(hall->waitlist->n_waiting, 1);
    }
    row->wish = wish;
    paper_reload(&paper, hall);
    assert_int_equal(hall->waitlist->n_waiting, 2);
}

/* ---- several holds at once ---- */

static void an_offer_that_is_booked_with_others_is_accepted(void **state)
{
    (void)state;
    struct grant rows[3];
    struct ask a;
    fill(rows);
    struct id four = join(4), other = join(4);
    release(&rows[0]);
    release(&rows[1]);
    struct grant first = offer_of(&four), second = offer_of(&other);
    ask_book(&a, hall, &first.id);
    ask_book_also(&a, &second.id);
    assert_int_equal(run(&a), VERDICT_CREATED);
    bool one_waits = (status_of(&four) == WAIT_OFFERED) != (status_of(&other) == WAIT_OFFERED);
    assert_true(one_waits); /* the carrier is still to be paid */
    assert_true(status_of(&four) == WAIT_ACCEPTED || status_of(&other) == WAIT_ACCEPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(what_can_be_had_at_once_is_not_waited_for),
        TEST(due_holds_end_before_somebody_has_to_wait),
        TEST(an_event_without_a_list_takes_no_entries),
        TEST(entries_are_numbered_in_the_order_of_arrival),
        TEST(an_owner_has_so_many_entries_and_no_more),
        TEST(an_address_has_so_many_entries_and_no_more),
        TEST(what_can_never_be_is_refused),
        TEST(nobody_joins_where_nothing_is_sold),
        TEST(a_released_seat_goes_to_the_first_in_the_same_commit),
        TEST(every_way_that_a_place_comes_back_is_heard),
        TEST(an_unblocked_place_goes_to_the_list_not_to_the_public),
        TEST(a_channels_places_are_not_offered),
        TEST(reopening_offers_what_came_back_meanwhile),
        TEST(the_opening_of_sales_offers_what_is_there),
        TEST(a_look_before_the_opening_forgets_nothing),
        TEST(who_does_not_fit_is_passed_over_by_those_who_do),
        TEST(an_entry_that_is_moved_to_the_front_has_the_first_turn),
        TEST(a_later_command_of_the_batch_does_not_get_the_place),
        TEST(what_a_claim_sets_free_is_not_the_claimants),
        TEST(a_seller_cannot_block_what_a_claim_sets_free),
        TEST(a_rescue_does_not_get_what_somebody_waits_for),
        TEST(areas_are_offered_by_their_counters),
        TEST(a_batch_makes_so_many_offers_and_the_next_goes_on),
        TEST(an_offer_is_booked_and_accepted),
        TEST(a_short_offer_is_paid_like_a_short_hold),
        TEST(an_offer_cannot_be_extended),
        TEST(an_offer_gets_no_other_places_and_may_give_some_back),
        TEST(places_of_an_offer_may_become_of_another_type),
        TEST(a_lapsed_offer_goes_to_the_next_and_never_to_the_same_entry),
        TEST(the_end_of_sales_shortens_offers_but_not_below_what_a_buyer_needs),
        TEST(offers_have_the_ticket_types_of_the_wish),
        TEST(entries_end_at_their_time_and_when_nobody_reads_them),
        TEST(an_entry_whose_time_has_come_gets_no_offer),
        TEST(an_owner_without_room_ends_when_its_turn_comes),
        TEST(a_wish_for_more_than_a_hold_may_have_ends_when_its_turn_comes),
        TEST(the_end_of_sales_ends_all_in_slices),
        TEST(a_cancelled_event_ends_all_and_so_does_one_without_a_list),
        TEST(who_leaves_gives_the_offer_to_the_next),
        TEST(an_admin_evicts_and_erasure_ends),
        TEST(a_secret_is_needed),
        TEST(a_paused_list_offers_nothing_and_returns_are_on_sale),
        TEST(a_batch_that_fails_leaves_the_list_as_it_was),
        TEST(an_event_that_is_read_again_has_its_list_again),
        TEST(an_entry_whose_wish_is_damaged_is_not_loaded),
        TEST(an_offer_that_is_booked_with_others_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
