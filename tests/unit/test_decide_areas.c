/* Claims about the rules of places that the buyer does not name: general admission, which is
 * counted by area, and seats that best available chooses.  Decide never grants more places than an
 * area has, and never answers "sold out" while a due hold still occupies places.  The paper ledger
 * (tests/support/paper.c) plays the worker. */
#include "support/paper.h"

#include <string.h>

#define FLOOR 0 /* 10 places at 700 */
#define BOX 1   /* 3 places at 9000 */
#define SEATS 12

static struct paper paper;
static struct event *hall;

static struct event_def *def_hall_with_areas(void)
{
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 10);
    def_area(def, "Box", 9000, 3);
    return def;
}

static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    hall = paper_event(&paper, def_hall_with_areas());
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

/* Grants a hold of `quantity` places in one area. */
static struct grant places(uint32_t area, uint32_t quantity)
{
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, area, quantity);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    return g;
}

static struct grant grant_seat(uint32_t seat)
{
    struct ask a;
    ask_create(&a, hall, seat);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    return g;
}

static enum verdict run(struct ask *a)
{
    enum verdict verdict = paper_run(&paper, a);
    ask_close(a);
    return verdict;
}

static enum verdict release(const struct grant *g)
{
    struct ask a;
    ask_release(&a, hall, &g->id);
    return run(&a);
}

static enum verdict confirm(const struct grant *g, bool rescue)
{
    struct ask a;
    ask_confirm(&a, hall, &g->id, g->fence, rescue);
    return run(&a);
}

static void advance_ms(int64_t ms) { paper.now += ms; }

static void run_empty_batch(void)
{
    paper_begin(&paper);
    paper_commit(&paper);
}

static int64_t left(uint32_t area) { return hall->areas[area].available; }

static void assert_short(const struct ask *a, int64_t area, int64_t available)
{
    assert_int_equal(a->c.verdict, VERDICT_SOLD_OUT);
    assert_int_equal(command_shortage(&a->c)->short_area, area);
    assert_int_equal(command_shortage(&a->c)->available, available);
}

static const struct audit_row *last_row(void) { return &paper.audit.v[paper.audit.n - 1]; }

static void assert_row(const struct audit_row *row, enum audit_cause cause, uint32_t area,
                       int64_t quantity, enum seat_status from, enum seat_status to)
{
    assert_int_equal(row->object, AUDIT_AREA);
    assert_int_equal(row->cause, cause);
    assert_int_equal(row->item, area);
    assert_int_equal(row->quantity, quantity);
    assert_int_equal(row->from, from);
    assert_int_equal(row->to, to);
}

static void dump(struct buf *out)
{
    out->len = 0;
    paper_dump(&paper, out);
}

/* ---- areas ---- */

static void places_are_granted_counted_and_priced(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 4);
    ask_area(&a, FLOOR, 2);
    ask_area(&a, BOX, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->amount, 2500 + 2 * 700 + 9000);
    assert_int_equal(command_hold(&a.c)->n_seats, 1);
    assert_int_equal(command_hold(&a.c)->n_areas, 2);
    assert_int_equal(left(FLOOR), 8);
    assert_int_equal(left(BOX), 2);
    const struct audit_row *rows = &paper.audit.v[paper.audit.n - 4];
    assert_int_equal(rows[0].object, AUDIT_HOLD);
    assert_int_equal(rows[0].quantity, 4);
    assert_int_equal(rows[1].object, AUDIT_SEAT);
    assert_row(&rows[2], CAUSE_HOLD, FLOOR, 2, SEAT_AVAILABLE, SEAT_HELD);
    assert_row(&rows[3], CAUSE_HOLD, BOX, 1, SEAT_AVAILABLE, SEAT_HELD);
    assert_int_equal(rows[2].hold, command_hold(&a.c)->id.key);
    assert_int_equal(rows[2].fence, command_hold(&a.c)->fence);
    assert_int_equal(rows[2].until, command_hold(&a.c)->expires_at);
    ask_close(&a);
    paper_check(&paper);
}

static void places_are_shown_taken_only_when_published(void **state)
{
    (void)state;
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, 4);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(left(FLOOR), 10);
    assert_int_equal(hall->areas[FLOOR].held, 4);
    paper_commit(&paper);
    assert_int_equal(left(FLOOR), 6);
    ask_close(&a);
}

static void an_area_without_enough_places_is_sold_out_and_says_how_many_are_left(void **state)
{
    (void)state;
    places(FLOOR, 7);
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, BOX, 3);
    ask_area(&a, FLOOR, 4);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, FLOOR, 3);
    assert_false(decision_has_effects(paper.decision)); /* nor did the Box change */
    ask_close(&a);
    places(FLOOR, 3);
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, FLOOR, 0);
    ask_close(&a);
    paper_check(&paper);
}

static void more_than_an_area_ever_had_is_refused(void **state)
{
    (void)state;
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, BOX, SEATS_INLINE);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, BOX, 3);
    ask_close(&a);
    ask_create_none(&a, hall);
    ask_area(&a, BOX, UINT32_C(4000000000)); /* more than a hold may have */
    assert_int_equal(paper_run(&paper, &a), VERDICT_TOO_MANY_SEATS);
    assert_int_equal(command_shortage(&a.c)->limit, SEATS_INLINE);
    ask_close(&a);
}

static void seats_and_places_are_had_together_or_not_at_all(void **state)
{
    (void)state;
    grant_seat(5);
    places(BOX, 3);
    struct ask a;
    ask_create(&a, hall, 4, 5); /* a seat is taken, so no place is granted */
    ask_area(&a, FLOOR, 2);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SEAT_TAKEN);
    assert_int_equal(command_shortage(&a.c)->n_taken, 1);
    assert_int_equal(a.taken[0], 5);
    assert_false(decision_has_effects(paper.decision));
    ask_close(&a);
    ask_create(&a, hall, 4); /* the area is sold out, so no seat is granted */
    ask_area(&a, BOX, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, BOX, 0);
    assert_false(decision_has_effects(paper.decision));
    ask_close(&a);
    ask_best(&a, hall, 2, true);
    ask_area(&a, BOX, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, BOX, 0);
    assert_false(decision_has_effects(paper.decision));
    ask_close(&a);
    ask_best(&a, hall, 5, true); /* no row has five seats together */
    ask_area(&a, FLOOR, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, -1, SEATS - 1);
    assert_false(decision_has_effects(paper.decision));
    ask_close(&a);
    assert_int_equal(left(FLOOR), 10);
    paper_check(&paper);
}

static void many_in_one_batch_never_get_more_places_than_there_are(void **state)
{
    (void)state;
    static struct ask asks[40];
    int64_t granted = 0;
    int refused = 0;
    paper_begin(&paper);
    for (uint32_t i = 0; i < 40; i++) {
        ask_create_none(&asks[i], hall);
        ask_area(&asks[i], FLOOR, 1 + i % 3);
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
        if (asks[i].c.verdict == VERDICT_CREATED) {
            granted += 1 + i % 3;
        } else {
            assert_short(&asks[i], FLOOR, 10 - granted);
            assert_true(10 - granted < 1 + i % 3);
            refused++;
        }
    }
    paper_commit(&paper);
    assert_int_equal(granted, 10);
    assert_true(refused > 20);
    assert_int_equal(paper.decision->batch.areas.n, 1); /* one write covers all of them */
    for (int i = 0; i < 40; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

static void places_given_back_can_be_had_in_the_same_batch(void **state)
{
    (void)state;
    struct grant g = places(FLOOR, 10);
    struct ask gone, next;
    ask_release(&gone, hall, &g.id);
    ask_create_none(&next, hall);
    ask_area(&next, FLOOR, 10);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &gone), DECIDED);
    assert_int_equal(paper_decide(&paper, &next), DECIDED);
    assert_int_equal(next.c.verdict, VERDICT_CREATED);
    paper_commit(&paper);
    ask_close(&gone);
    ask_close(&next);
    paper_check(&paper);
}

static void release_eviction_and_expiry_give_places_back(void **state)
{
    (void)state;
    struct grant given = places(FLOOR, 2), thrown = places(FLOOR, 3);
    places(FLOOR, 4);
    assert_int_equal(left(FLOOR), 1);
    assert_int_equal(release(&given), VERDICT_OK);
    assert_row(last_row(), CAUSE_RELEASE, FLOOR, 2, SEAT_HELD, SEAT_AVAILABLE);
    assert_int_equal(left(FLOOR), 3);
    struct ask a;
    ask_evict(&a, hall, &thrown.id);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_row(last_row(), CAUSE_EVICT, FLOOR, 3, SEAT_HELD, SEAT_AVAILABLE);
    assert_int_equal(left(FLOOR), 6);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    assert_row(last_row(), CAUSE_EXPIRE, FLOOR, 4, SEAT_HELD, SEAT_AVAILABLE);
    assert_int_equal(last_row()->until, 0);
    assert_int_equal(left(FLOOR), 10);
    paper_check(&paper);
}

static void confirmed_places_are_booked_for_good(void **state)
{
    (void)state;
    struct grant g = places(FLOOR, 6);
    struct ask a;
    ask_confirm(&a, hall, &g.id, g.fence, false);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_booking(&a.c)->n_areas, 1);
    assert_int_equal(command_booking(&a.c)->areas[0].quantity, 6);
    assert_int_equal(command_booking(&a.c)->amount, 6 * 700);
    ask_close(&a);
    assert_row(last_row(), CAUSE_CONFIRM, FLOOR, 6, SEAT_HELD, SEAT_BOOKED);
    assert_int_equal(last_row()->booking, g.id.key);
    assert_int_equal(hall->areas[FLOOR].booked, 6);
    assert_int_equal(hall->areas[FLOOR].held, 0);
    advance_ms(DEF_MAX_MS);
    run_empty_batch();
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, 5);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, FLOOR, 4);
    ask_close(&a);
    assert_int_equal(confirm(&g, false), VERDICT_OK);
    paper_check(&paper);
}

static void renewing_places_keeps_them_and_writes_no_area(void **state)
{
    (void)state;
    struct grant g = places(FLOOR, 6);
    struct ask a;
    advance_ms(DEF_TTL_MS - 1);
    ask_renew(&a, hall, &g.id, 0);
    assert_int_equal(run(&a), VERDICT_OK);
    assert_int_equal(paper.decision->batch.areas.n, 0);
    advance_ms(DEF_TTL_MS - 1);
    run_empty_batch();
    assert_int_equal(left(FLOOR), 4);
    advance_ms(1);
    run_empty_batch();
    assert_int_equal(left(FLOOR), 10);
    paper_check(&paper);
}

static void expired_places_are_rescued_while_enough_are_free(void **state)
{
    (void)state;
    struct grant g = places(FLOOR, 6), other = places(BOX, 2);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    places(FLOOR, 4); /* leaves six */
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    assert_row(last_row(), CAUSE_RESCUE, FLOOR, 6, SEAT_AVAILABLE, SEAT_BOOKED);
    assert_int_equal(left(FLOOR), 0);
    places(BOX, 2); /* leaves one; the rescue needs two */
    assert_int_equal(confirm(&other, true), VERDICT_HOLD_EXPIRED);
    assert_false(decision_has_effects(paper.decision));
    paper_check(&paper);
}

static void a_rescue_in_the_batch_of_the_expiry_books_its_places(void **state)
{
    (void)state;
    struct grant g = places(FLOOR, 6);
    advance_ms(DEF_TTL_MS);
    /* The sweep of the same batch has ended the hold before. */
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    assert_int_equal(hall->areas[FLOOR].held, 0);
    assert_int_equal(hall->areas[FLOOR].booked, 6);
    paper_check(&paper);
}

static void a_rescue_needs_every_area_and_every_seat(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    ask_area(&a, FLOOR, 1);
    ask_area(&a, BOX, 3);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence};
    ask_close(&a);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    struct grant seat = grant_seat(0);
    assert_int_equal(confirm(&g, true), VERDICT_HOLD_EXPIRED);
    assert_int_equal(release(&seat), VERDICT_OK);
    struct grant box = places(BOX, 1);
    assert_int_equal(confirm(&g, true), VERDICT_HOLD_EXPIRED);
    assert_int_equal(release(&box), VERDICT_OK);
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    paper_check(&paper);
}

/* ---- due holds ---- */

static void due_holds_are_ended_before_an_area_is_sold_out(void **state)
{
    (void)state;
    paper.expire_max = 0; /* only the command itself ends due holds */
    places(FLOOR, 4);
    places(FLOOR, 4);
    advance_ms(DEF_TTL_MS);
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, 9);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    assert_int_equal(paper.decision->expired, 2);
    assert_int_equal(left(FLOOR), 1);
    paper_check(&paper);
}

static void due_holds_are_left_alone_while_there_are_enough_places(void **state)
{
    (void)state;
    paper.expire_max = 0;
    places(FLOOR, 4);
    advance_ms(DEF_TTL_MS);
    places(FLOOR, 6);
    assert_int_equal(paper.decision->expired, 0);
    paper_check(&paper);
}

static void a_refusal_counts_what_due_holds_gave_back(void **state)
{
    (void)state;
    paper.expire_max = 0;
    places(FLOOR, 4);
    struct grant live = places(FLOOR, 6);
    advance_ms(DEF_TTL_MS / 2);
    struct ask a;
    ask_renew(&a, hall, &live.id, 0);
    assert_int_equal(run(&a), VERDICT_OK);
    advance_ms(DEF_TTL_MS / 2);
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, 5);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, FLOOR, 4);
    assert_true(decision_has_effects(paper.decision)); /* the expiry is an effect */
    ask_close(&a);
    paper_check(&paper);
}

static void a_rescue_ends_due_holds_in_its_areas(void **state)
{
    (void)state;
    struct grant g = places(BOX, 3);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    places(BOX, 3);
    advance_ms(DEF_TTL_MS);
    paper.expire_max = 0;
    assert_int_equal(confirm(&g, true), VERDICT_CREATED);
    assert_int_equal(hall->areas[BOX].booked, 3);
    paper_check(&paper);
}

/* The deadline heap holds hundreds of another event's due holds before any of this event's. */
static void a_crowd_of_another_event_s_due_holds_hides_none_of_this_one_s(void **state)
{
    (void)state;
    struct event *other = paper_event(&paper, def_hall(20, 20));
    for (uint32_t i = 0; i < 400; i++) {
        struct ask a;
        ask_create(&a, other, i);
        a.c.create.ttl_ms = 1000 + i;
        assert_int_equal(run(&a), VERDICT_CREATED);
    }
    places(FLOOR, 10);
    for (uint32_t i = 0; i < SEATS; i++)
        grant_seat(i);
    advance_ms(DEF_TTL_MS);
    paper.expire_max = 0;
    struct ask seats, area;
    ask_best(&seats, hall, 4, true);
    ask_create_none(&area, hall);
    ask_area(&area, FLOOR, 10);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &area), DECIDED);
    assert_int_equal(paper_decide(&paper, &seats), DECIDED);
    assert_int_equal(area.c.verdict, VERDICT_CREATED);
    assert_int_equal(seats.c.verdict, VERDICT_CREATED);
    assert_int_equal(paper.decision->expired, 1 + SEATS); /* only holds of this event */
    paper_commit(&paper);
    ask_close(&seats);
    ask_close(&area);
    paper_check(&paper);
}

/* ---- best available ---- */

static void seats_are_chosen_and_named_in_the_answer(void **state)
{
    (void)state;
    struct ask a;
    ask_best(&a, hall, 2, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->n_seats, 2);
    assert_int_equal(command_hold(&a.c)->seats[0] + 1, command_hold(&a.c)->seats[1]);
    assert_int_equal(command_hold(&a.c)->amount, 5000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(seat_shown_status(seat_shown(hall, command_hold(&a.c)->seats[i])),
                         SEAT_HELD);
    ask_close(&a);
    paper_check(&paper);
}

static void chosen_seats_and_places_are_one_hold(void **state)
{
    (void)state;
    struct ask a;
    ask_best(&a, hall, 3, true);
    ask_area(&a, FLOOR, 2);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->n_seats, 3);
    assert_int_equal(command_hold(&a.c)->n_areas, 1);
    assert_int_equal(command_hold(&a.c)->amount, 3 * 2500 + 2 * 700);
    assert_int_equal(left(FLOOR), 8);
    ask_close(&a);
    paper_check(&paper);
}

static void two_in_a_batch_are_given_different_seats(void **state)
{
    (void)state;
    struct ask asks[7];
    bool had[SEATS] = {false};
    paper_begin(&paper);
    for (int i = 0; i < 7; i++) {
        ask_best(&asks[i], hall, 2, true);
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
        if (i == 6) {
            assert_short(&asks[i], -1, 0);
            assert_int_equal(asks[i].c.create.n_seats, 0);
            break;
        }
        assert_int_equal(asks[i].c.verdict, VERDICT_CREATED);
        for (int s = 0; s < 2; s++) {
            assert_false(had[asks[i].seats[s]]);
            had[asks[i].seats[s]] = true;
        }
    }
    paper_commit(&paper);
    for (int i = 0; i < 7; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

static void nothing_that_fits_is_sold_out_and_says_how_many_seats_are_free(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < SEATS; i += 2) /* every other seat, so that no two are adjacent */
        grant_seat(i);
    struct ask a;
    ask_best(&a, hall, 2, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, -1, SEATS / 2);
    ask_close(&a);
    ask_best(&a, hall, 2, false); /* without adjacency they fit */
    assert_int_equal(run(&a), VERDICT_CREATED);
    ask_best(&a, hall, SEATS / 2 - 1, false);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, -1, SEATS / 2 - 2);
    ask_close(&a);
    paper_check(&paper);
}

static void seats_of_due_holds_come_back_before_sold_out_is_said(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < SEATS; i++)
        grant_seat(i);
    struct ask a;
    ask_best(&a, hall, 4, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, -1, 0);
    ask_close(&a);
    advance_ms(DEF_TTL_MS);
    paper.expire_max = 0;
    ask_best(&a, hall, 4, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(paper.decision->expired, SEATS);
    ask_close(&a);
    paper_check(&paper);
}

static void a_blocked_seat_is_never_chosen(void **state)
{
    (void)state;
    struct ask a;
    ask_seats(&a, CMD_SEATS_BLOCK, hall, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    assert_int_equal(run(&a), VERDICT_OK);
    ask_best(&a, hall, 2, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(a.seats[0], 10);
    ask_close(&a);
    ask_best(&a, hall, 1, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SOLD_OUT);
    assert_short(&a, -1, 0);
    ask_close(&a);
    paper_check(&paper);
}

/* ---- undo ---- */

static void a_failed_batch_gives_back_places_chosen_seats_and_blocks(void **state)
{
    (void)state;
    struct grant held = places(FLOOR, 3), sold = places(BOX, 1), given = grant_seat(7);
    places(BOX, 1); /* due in the next batch */
    advance_ms(DEF_TTL_MS / 2);
    struct ask renewal;
    const struct grant *kept[] = {&held, &sold, &given};
    for (int i = 0; i < 3; i++) {
        ask_renew(&renewal, hall, &kept[i]->id, 0);
        assert_int_equal(run(&renewal), VERDICT_OK);
    }
    advance_ms(DEF_TTL_MS / 2);
    paper.expire_max = 0;
    struct buf before = {0}, after = {0};
    dump(&before);
    struct ask asks[9];
    ask_release(&asks[0], hall, &held.id);
    ask_confirm(&asks[1], hall, &sold.id, sold.fence, false);
    ask_create_none(&asks[2], hall);
    ask_area(&asks[2], FLOOR, 10);
    ask_create_none(&asks[3], hall);
    ask_area(&asks[3], BOX, 2); /* ends the due hold */
    ask_best(&asks[4], hall, 3, true);
    ask_evict(&asks[5], hall, &given.id);
    ask_best(&asks[6], hall, 4, true);
    ask_seats(&asks[7], CMD_SEATS_BLOCK, hall, 0, 1);
    ask_event(&asks[8], CMD_EVENT_CLOSE, hall);
    uint32_t chosen[2][4];
    for (int round = 0; round < 3; round++) { /* rounds 0 and 1 fail, round 2 commits */
        paper_begin(&paper);
        for (int i = 0; i < 9; i++) {
            assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
            if (i != 7) /* best available may have chosen the seats to block */
                assert_true(verdict_is_success(asks[i].c.verdict));
        }
        if (round == 0)
            memcpy(chosen[0], asks[6].seats, sizeof chosen[0]);
        memcpy(chosen[1], asks[6].seats, sizeof chosen[1]);
        assert_memory_equal(chosen[0], chosen[1], sizeof chosen[0]); /* the same seats again */
        if (round == 2) {
            paper_commit(&paper);
            break;
        }
        paper_fail(&paper);
        dump(&after);
        assert_string_equal(before.data, after.data);
        paper_check(&paper);
    }
    assert_int_equal(hall->shown.status, EVENT_CLOSED);
    paper_check(&paper);
    for (int i = 0; i < 9; i++)
        ask_close(&asks[i]);
    buf_close(&before);
    buf_close(&after);
}

static void areas_of_several_events_are_written_event_by_event(void **state)
{
    (void)state;
    struct event *other = paper_event(&paper, def_hall_with_areas());
    struct ask asks[6];
    paper_begin(&paper);
    for (uint32_t i = 0; i < 6; i++) { /* starts with the event that has the larger key */
        ask_create_none(&asks[i], i % 2 ? hall : other);
        ask_area(&asks[i], i < 3 ? BOX : FLOOR, 1);
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
        assert_int_equal(asks[i].c.verdict, VERDICT_CREATED);
    }
    paper_commit(&paper);
    assert_int_equal(paper.decision->batch.areas.n, 4);
    assert_int_equal(left(FLOOR), 8);
    assert_int_equal(other->areas[BOX].available, 1);
    for (int i = 0; i < 6; i++)
        ask_close(&asks[i]);
    paper_check(&paper);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(places_are_granted_counted_and_priced),
        claim(places_are_shown_taken_only_when_published),
        claim(an_area_without_enough_places_is_sold_out_and_says_how_many_are_left),
        claim(more_than_an_area_ever_had_is_refused),
        claim(seats_and_places_are_had_together_or_not_at_all),
        claim(many_in_one_batch_never_get_more_places_than_there_are),
        claim(places_given_back_can_be_had_in_the_same_batch),
        claim(release_eviction_and_expiry_give_places_back),
        claim(confirmed_places_are_booked_for_good),
        claim(renewing_places_keeps_them_and_writes_no_area),
        claim(expired_places_are_rescued_while_enough_are_free),
        claim(a_rescue_in_the_batch_of_the_expiry_books_its_places),
        claim(a_rescue_needs_every_area_and_every_seat),
        claim(due_holds_are_ended_before_an_area_is_sold_out),
        claim(due_holds_are_left_alone_while_there_are_enough_places),
        claim(a_refusal_counts_what_due_holds_gave_back),
        claim(a_rescue_ends_due_holds_in_its_areas),
        claim(a_crowd_of_another_event_s_due_holds_hides_none_of_this_one_s),
        claim(seats_are_chosen_and_named_in_the_answer),
        claim(chosen_seats_and_places_are_one_hold),
        claim(two_in_a_batch_are_given_different_seats),
        claim(nothing_that_fits_is_sold_out_and_says_how_many_seats_are_free),
        claim(seats_of_due_holds_come_back_before_sold_out_is_said),
        claim(a_blocked_seat_is_never_chosen),
        claim(a_failed_batch_gives_back_places_chosen_seats_and_blocks),
        claim(areas_of_several_events_are_written_event_by_event),
    };
    return cmocka_run_group_tests_name("decide_areas", tests, NULL, NULL);
}
