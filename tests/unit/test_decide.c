/* Claims about the rules of holds: every legal and illegal edge of the state machine in
 * rules/operations.h, which commands are deferred to the next batch, what a batch writes, and that
 * a failed batch leaves no trace.  The paper ledger (tests/support/paper.c) plays the worker. */
#include "support/paper.h"

#include <string.h>

#define SEATS 12

static struct paper paper;
static struct event *hall;

static int setup(void **state)
{
    (void)state;
    paper_init(&paper, 7);
    hall = paper_event(&paper, def_hall(3, 4));
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
    int64_t fence, expires_at;
};

static struct grant grant_n(const uint32_t *seats, uint32_t n)
{
    struct ask a;
    ask_create_n(&a, hall, seats, n);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    struct grant g = {command_hold(&a.c)->id, command_hold(&a.c)->fence,
                      command_hold(&a.c)->expires_at};
    ask_close(&a);
    return g;
}
#define grant(...)                                                                                 \
    grant_n((const uint32_t[]){__VA_ARGS__},                                                       \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static enum verdict create(uint32_t seat)
{
    struct ask a;
    ask_create(&a, hall, seat);
    enum verdict verdict = paper_run(&paper, &a);
    ask_close(&a);
    return verdict;
}

static enum verdict renew(const struct grant *g, int64_t ttl_ms)
{
    struct ask a;
    ask_renew(&a, hall, &g->id, ttl_ms);
    enum verdict verdict = paper_run(&paper, &a);
    ask_close(&a);
    return verdict;
}

static enum verdict release(const struct grant *g)
{
    struct ask a;
    ask_release(&a, hall, &g->id);
    enum verdict verdict = paper_run(&paper, &a);
    ask_close(&a);
    return verdict;
}

static enum verdict confirm_fenced(const struct grant *g, int64_t fence, bool rescue)
{
    struct ask a;
    ask_confirm(&a, hall, &g->id, fence, rescue);
    enum verdict verdict = paper_run(&paper, &a);
    ask_close(&a);
    return verdict;
}

static enum verdict confirm(const struct grant *g) { return confirm_fenced(g, g->fence, false); }
static enum verdict rescue(const struct grant *g) { return confirm_fenced(g, g->fence, true); }

static void advance_ms(int64_t ms) { paper.now += ms; }

static enum seat_status seat(uint32_t index) { return seat_shown_status(seat_shown(hall, index)); }

static enum hold_status row_status(const struct grant *g)
{
    return paper_hold(&paper, g->id.key)->status;
}

/* Runs a batch without commands, which only ends due holds. */
static void run_empty_batch(void)
{
    paper_begin(&paper);
    paper_commit(&paper);
}

/* ---- create ---- */

static void a_hold_takes_its_seats_with_a_fence_and_an_expiry(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 3, 1);
    a.c.create.owner = "ada";
    a.c.create.owner_len = 3;
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->id.key, HOLD_KEY(hall->def->id.key, 1));
    assert_int_equal(command_hold(&a.c)->fence, 1);
    assert_int_equal(command_hold(&a.c)->amount, 5000);
    assert_int_equal(command_hold(&a.c)->created_at, T0_MS);
    assert_int_equal(command_hold(&a.c)->expires_at, T0_MS + DEF_TTL_MS);
    assert_int_equal(command_hold(&a.c)->max_expires_at, T0_MS + DEF_MAX_MS);
    assert_int_equal(command_hold(&a.c)->status, HOLD_ACTIVE);
    assert_ptr_equal(command_hold(&a.c)->owner, a.c.create.owner);
    assert_int_equal(a.c.now, T0_MS);
    assert_int_equal(seat(3), SEAT_HELD);
    assert_int_equal(seat(1), SEAT_HELD);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    assert_int_equal(seat_shown_until(seat_shown(hall, 3)), T0_MS + DEF_TTL_MS);
    paper_check(&paper);
    ask_close(&a);
}

static void the_time_asked_for_is_granted_up_to_the_cap(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    a.c.create.ttl_ms = 3000;
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->expires_at, T0_MS + 3000);
    ask_close(&a);
    ask_create(&a, hall, 1);
    a.c.create.ttl_ms = DEF_MAX_MS + 1;
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_hold(&a.c)->expires_at, T0_MS + DEF_MAX_MS);
    ask_close(&a);
    paper_check(&paper);
}

static void a_hold_is_all_or_nothing_and_names_every_taken_seat(void **state)
{
    (void)state;
    grant(4);
    struct grant sold = grant(6);
    assert_int_equal(confirm(&sold), VERDICT_CREATED);
    struct ask a;
    ask_create(&a, hall, 6, 5, 4, 7);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SEAT_TAKEN);
    assert_int_equal(command_shortage(&a.c)->n_taken, 2);
    assert_int_equal(a.taken[0], 6);
    assert_int_equal(a.taken[1], 4);
    assert_int_equal(seat(5), SEAT_AVAILABLE);
    assert_int_equal(seat(7), SEAT_AVAILABLE);
    assert_false(decision_has_effects(paper.decision));
    ask_close(&a);
    paper_check(&paper);
}

static void of_two_in_a_batch_the_first_gets_the_seat(void **state)
{
    (void)state;
    struct ask first, second;
    ask_create(&first, hall, 2, 3);
    ask_create(&second, hall, 3, 4);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &first), DECIDED);
    assert_int_equal(paper_decide(&paper, &second), DECIDED);
    paper_commit(&paper);
    assert_int_equal(first.c.verdict, VERDICT_CREATED);
    assert_int_equal(second.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(command_shortage(&second.c)->n_taken, 1);
    assert_int_equal(second.taken[0], 3);
    assert_int_equal(seat(4), SEAT_AVAILABLE);
    ask_close(&first);
    ask_close(&second);
    paper_check(&paper);
}

static void a_closed_event_takes_no_holds_but_sells_those_it_has(void **state)
{
    (void)state;
    struct grant g = grant(0), late = grant(1);
    struct ask a;
    ask_event(&a, CMD_EVENT_CLOSE, hall);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    ask_close(&a);
    assert_int_equal(create(2), VERDICT_EVENT_CLOSED);
    assert_int_equal(renew(&g, 12000), VERDICT_OK);
    assert_int_equal(confirm(&g), VERDICT_CREATED);
    advance_ms(DEF_TTL_MS);
    assert_int_equal(rescue(&late), VERDICT_CREATED);
    paper_check(&paper);
}

static void what_is_shown_changes_only_when_published(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(hall->seats[0].status, SEAT_HELD);
    assert_int_equal(hall->shown.seq, 0);
    paper_commit(&paper);
    assert_int_equal(seat(0), SEAT_HELD);
    assert_int_equal(hall->shown.seq, 2);
    ask_close(&a);
}

/* ---- expiry ---- */

static void a_hold_lives_until_its_expiry_and_not_a_millisecond_longer(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    advance_ms(DEF_TTL_MS - 1);
    run_empty_batch();
    assert_int_equal(create(0), VERDICT_SEAT_TAKEN);
    assert_int_equal(row_status(&g), HOLD_ACTIVE);
    advance_ms(1);
    run_empty_batch();
    assert_int_equal(row_status(&g), HOLD_EXPIRED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(seat(1), SEAT_AVAILABLE);
    assert_int_equal(paper.decision->expired, 1);
    paper_check(&paper);
}

static void whoever_asks_for_a_seat_of_a_due_hold_ends_the_whole_hold(void **state)
{
    (void)state;
    paper.expire_max = 0; /* no hold is swept */
    struct grant g = grant(0, 1, 2);
    advance_ms(DEF_TTL_MS);
    assert_int_equal(create(1), VERDICT_CREATED);
    assert_int_equal(row_status(&g), HOLD_EXPIRED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(seat(1), SEAT_HELD);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    paper_check(&paper);
}

static void a_due_hold_is_ended_by_the_timer_and_not_by_the_buyer_who_meets_it(void **state)
{
    (void)state;
    paper.expire_max = 0;
    struct ask a;
    ask_create(&a, hall, 0, 1);
    a.c.actor = "key:first";
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    advance_ms(DEF_TTL_MS);
    size_t before = paper.audit.n;
    ask_create(&a, hall, 1);
    a.c.actor = "key:second";
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    assert_int_equal(paper.audit.n, before + 5); /* a hold of two seats ends, one of one begins */
    for (size_t i = 0; i < paper.audit.n; i++)
        assert_string_equal(paper.audit.v[i].actor, i < before       ? "key:first"
                                                    : i < before + 3 ? ACTOR_TIMER
                                                                     : "key:second");
    /* What no caller asks for is the server's own doing, or the timer's. */
    ask_create(&a, hall, 3);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    assert_string_equal(paper.audit.v[paper.audit.n - 1].actor, ACTOR_SERVER);
    paper.expire_max = 500;
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    assert_string_equal(paper.audit.v[paper.audit.n - 1].actor, ACTOR_TIMER);
}

static void a_refused_request_still_ends_the_due_holds_it_met(void **state)
{
    (void)state;
    paper.expire_max = 0;
    struct grant due = grant(0);
    advance_ms(DEF_TTL_MS - 1);
    grant(1);
    advance_ms(1);
    struct ask a;
    ask_create(&a, hall, 0, 1);
    assert_int_equal(paper_run(&paper, &a), VERDICT_SEAT_TAKEN);
    assert_int_equal(command_shortage(&a.c)->n_taken, 1);
    assert_int_equal(a.taken[0], 1);
    assert_int_equal(row_status(&due), HOLD_EXPIRED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    ask_close(&a);
    paper_check(&paper);
}

static void a_hold_named_after_its_expiry_expires_then(void **state)
{
    (void)state;
    paper.expire_max = 0;
    struct grant a = grant(0), b = grant(1), c = grant(2);
    advance_ms(DEF_TTL_MS);
    assert_int_equal(renew(&a, 0), VERDICT_HOLD_EXPIRED);
    assert_int_equal(release(&b), VERDICT_HOLD_EXPIRED);
    assert_int_equal(confirm(&c), VERDICT_HOLD_EXPIRED);
    assert_int_equal(row_status(&a), HOLD_EXPIRED);
    assert_int_equal(row_status(&b), HOLD_EXPIRED);
    assert_int_equal(row_status(&c), HOLD_EXPIRED);
    paper_check(&paper);
}

static void only_due_holds_are_ended_however_often_they_are_named(void **state)
{
    (void)state;
    struct grant due = grant(0);
    advance_ms(1);
    struct grant live = grant(1);
    advance_ms(DEF_TTL_MS - 1);
    paper.expire_max = 0;
    paper_begin(&paper);
    struct hold *holds[] = {view_hold(paper.view, due.id.key), view_hold(paper.view, live.id.key),
                            view_hold(paper.view, due.id.key)};
    decide_expire(paper.decision, holds, 3);
    assert_int_equal(paper.decision->expired, 1);
    paper_commit(&paper);
    assert_int_equal(row_status(&live), HOLD_ACTIVE);
    paper_check(&paper);
}

/* ---- renew ---- */

static void renewal_moves_the_expiry_and_keeps_the_fence(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    advance_ms(4000);
    struct ask a;
    ask_renew(&a, hall, &g.id, 0);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    assert_int_equal(command_hold(&a.c)->expires_at, T0_MS + 4000 + DEF_TTL_MS);
    assert_int_equal(command_hold(&a.c)->fence, g.fence);
    assert_int_equal(seat_shown_until(seat_shown(hall, 0)), T0_MS + 4000 + DEF_TTL_MS);
    ask_close(&a);
    paper_check(&paper);
    advance_ms(DEF_TTL_MS - 1);
    assert_int_equal(create(0), VERDICT_SEAT_TAKEN);
    advance_ms(1);
    assert_int_equal(create(0), VERDICT_CREATED);
}

static void renewal_stops_at_the_cap_counted_from_creation(void **state)
{
    (void)state;
    struct grant g = grant(0);
    advance_ms(9000);
    assert_int_equal(renew(&g, 10000), VERDICT_OK);
    advance_ms(9000);
    struct ask a;
    ask_renew(&a, hall, &g.id, 10000);
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    assert_int_equal(command_hold(&a.c)->expires_at, T0_MS + DEF_MAX_MS); /* cut off at the cap */
    ask_close(&a);
    advance_ms(1000);
    assert_int_equal(renew(&g, 10000), VERDICT_RENEWAL_CAP);
    assert_int_equal(renew(&g, 1), VERDICT_RENEWAL_CAP);
    assert_int_equal(row_status(&g), HOLD_ACTIVE);
    advance_ms(DEF_MAX_MS - 19000);
    assert_int_equal(renew(&g, 10000), VERDICT_HOLD_EXPIRED);
    paper_check(&paper);
}

static void renewal_that_gains_nothing_writes_nothing_and_answers_the_hold_as_it_is(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask same, shorter;
    advance_ms(1000);
    ask_renew(&same, hall, &g.id, 9000);
    ask_renew(&shorter, hall, &g.id, 1);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &same), DECIDED);
    assert_int_equal(paper_decide(&paper, &shorter), DECIDED);
    assert_int_equal(paper.decision->batch.holds.n, 0);
    assert_int_equal(paper.decision->batch.audit.n, 0);
    paper_commit(&paper);
    assert_int_equal(same.c.verdict, VERDICT_OK);
    assert_int_equal(shorter.c.verdict, VERDICT_OK);
    assert_int_equal(command_hold(&shorter.c)->expires_at, g.expires_at);
    ask_close(&same);
    ask_close(&shorter);
    assert_int_equal(paper_hold(&paper, g.id.key)->expires_at, g.expires_at);
    assert_int_equal(renew(&g, 9001), VERDICT_OK);
    paper_check(&paper);
}

static void renewing_twice_in_a_batch_is_one_write_and_two_log_rows(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    struct ask a, b;
    ask_renew(&a, hall, &g.id, 12000);
    ask_renew(&b, hall, &g.id, 15000);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(paper_decide(&paper, &b), DECIDED);
    assert_int_equal(paper.decision->batch.holds.n, 1);
    assert_int_equal(paper.decision->batch.seats.n, 2);
    assert_int_equal(paper.decision->batch.audit.n, 2);
    paper_commit(&paper);
    assert_int_equal(b.c.verdict, VERDICT_OK);
    assert_int_equal(command_hold(&b.c)->expires_at, T0_MS + 15000);
    ask_close(&a);
    ask_close(&b);
    paper_check(&paper);
}

/* ---- release ---- */

static void released_seats_are_free_at_once(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    assert_int_equal(release(&g), VERDICT_OK);
    assert_int_equal(row_status(&g), HOLD_RELEASED);
    paper_check(&paper);
    struct grant next = grant(0);
    assert_true(next.fence > g.fence);
}

static void a_seat_released_in_a_batch_can_be_had_in_it(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    struct ask give, take;
    ask_release(&give, hall, &g.id);
    ask_create(&take, hall, 1, 2);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &give), DECIDED);
    assert_int_equal(paper_decide(&paper, &take), DECIDED);
    paper_commit(&paper);
    assert_int_equal(give.c.verdict, VERDICT_OK);
    assert_int_equal(take.c.verdict, VERDICT_CREATED);
    ask_close(&give);
    ask_close(&take);
    paper_check(&paper);
}

static void the_end_of_a_hold_is_final(void **state)
{
    (void)state;
    struct grant released = grant(0), expired = grant(1), confirmed = grant(2);
    assert_int_equal(release(&released), VERDICT_OK);
    assert_int_equal(confirm(&confirmed), VERDICT_CREATED);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    paper_check(&paper);
    int64_t seq = hall->clock.seq;

    assert_int_equal(release(&released), VERDICT_OK); /* the repeat of a release succeeds */
    assert_int_equal(renew(&released, 0), VERDICT_HOLD_RELEASED);
    assert_int_equal(confirm(&released), VERDICT_HOLD_RELEASED);
    assert_int_equal(rescue(&released), VERDICT_HOLD_RELEASED); /* no rescue after a release */

    assert_int_equal(release(&expired), VERDICT_HOLD_EXPIRED);
    assert_int_equal(renew(&expired, 0), VERDICT_HOLD_EXPIRED);
    assert_int_equal(confirm(&expired), VERDICT_HOLD_EXPIRED);
    assert_int_equal(confirm_fenced(&expired, 999, false), VERDICT_HOLD_EXPIRED);

    assert_int_equal(release(&confirmed), VERDICT_HOLD_CONFIRMED);
    assert_int_equal(renew(&confirmed, 0), VERDICT_HOLD_CONFIRMED);
    assert_int_equal(confirm(&confirmed), VERDICT_OK); /* answers with the same booking */
    assert_int_equal(rescue(&confirmed), VERDICT_OK);
    assert_int_equal(confirm_fenced(&confirmed, 999, false), VERDICT_STALE_FENCE);
    assert_int_equal(confirm_fenced(&confirmed, 999, true), VERDICT_STALE_FENCE);

    assert_int_equal(hall->clock.seq, seq); /* none of the above changed the event */
    paper_check(&paper);
}

/* ---- confirm ---- */

static void confirming_sells_the_seats_for_good(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    advance_ms(DEF_TTL_MS - 1);
    struct ask a;
    ask_confirm(&a, hall, &g.id, g.fence, false);
    a.c.confirm.reference = "order 7";
    a.c.confirm.reference_len = 7;
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_booking(&a.c)->id.key, g.id.key);
    assert_int_equal(command_booking(&a.c)->fence, g.fence);
    assert_int_equal(command_booking(&a.c)->amount, 5000);
    assert_int_equal(command_booking(&a.c)->status, BOOKING_CONFIRMED);
    assert_int_equal(command_booking(&a.c)->n_seats, 2);
    assert_int_equal(command_booking(&a.c)->created_at, T0_MS + DEF_TTL_MS - 1);
    assert_memory_equal(command_booking(&a.c)->hold_secret, g.id.secret, ID_SECRET_SIZE);
    assert_memory_not_equal(command_booking(&a.c)->id.secret, g.id.secret, ID_SECRET_SIZE);
    assert_ptr_equal(command_booking(&a.c)->reference, a.c.confirm.reference);
    assert_int_equal(paper_sales(&paper), 2);
    ask_close(&a);
    paper_check(&paper);
    advance_ms(100 * DEF_TTL_MS);
    run_empty_batch();
    assert_int_equal(seat(0), SEAT_BOOKED);
    assert_int_equal(create(1), VERDICT_SEAT_TAKEN);
}

static void no_confirm_at_the_expiry(void **state)
{
    (void)state;
    struct grant g = grant(0);
    advance_ms(DEF_TTL_MS);
    assert_int_equal(confirm(&g), VERDICT_HOLD_EXPIRED);
    assert_int_equal(paper_bookings(&paper), 0);
}

static void a_wrong_fence_sells_nothing(void **state)
{
    (void)state;
    struct grant g = grant(0);
    assert_int_equal(confirm_fenced(&g, g.fence - 1, false), VERDICT_STALE_FENCE);
    assert_int_equal(confirm_fenced(&g, g.fence + 1, false), VERDICT_STALE_FENCE);
    assert_int_equal(confirm_fenced(&g, g.fence + 1, true), VERDICT_STALE_FENCE);
    assert_int_equal(paper_bookings(&paper), 0);
    assert_int_equal(row_status(&g), HOLD_ACTIVE);
    assert_int_equal(confirm(&g), VERDICT_CREATED);
    paper_check(&paper);
}

static void confirming_again_answers_with_the_same_booking(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask first, again;
    ask_confirm(&first, hall, &g.id, g.fence, false);
    assert_int_equal(paper_run(&paper, &first), VERDICT_CREATED);
    ask_confirm(&again, hall, &g.id, g.fence, false);
    assert_int_equal(paper_run(&paper, &again), VERDICT_OK);
    assert_int_equal(command_booking(&again.c)->id.key, command_booking(&first.c)->id.key);
    assert_memory_equal(command_booking(&again.c)->id.secret, command_booking(&first.c)->id.secret,
                        ID_SECRET_SIZE);
    assert_int_equal(command_booking(&again.c)->n_seats, 1);
    assert_false(decision_has_effects(paper.decision));
    ask_close(&first);
    ask_close(&again);
}

static void a_hold_with_another_secret_does_not_exist(void **state)
{
    (void)state;
    struct grant g = grant(0), forged = g, unborn = g;
    forged.id.secret[11] ^= 1;
    unborn.id.key++;
    assert_int_equal(renew(&forged, 20000), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(release(&forged), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(confirm(&forged), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(rescue(&forged), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(renew(&unborn, 0), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(release(&unborn), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(confirm(&unborn), VERDICT_NO_SUCH_HOLD);
    assert_int_equal(row_status(&g), HOLD_ACTIVE);
    paper_check(&paper);
}

/* ---- deferral ---- */

static void what_follows_a_confirm_in_its_batch_waits_for_the_next(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask first, later[3];
    ask_confirm(&first, hall, &g.id, g.fence, false);
    ask_confirm(&later[0], hall, &g.id, g.fence, false);
    ask_renew(&later[1], hall, &g.id, 0);
    ask_release(&later[2], hall, &g.id);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &first), DECIDED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(paper_decide(&paper, &later[i]), DEFERRED);
    paper_commit(&paper);
    const enum verdict want[] = {VERDICT_OK, VERDICT_HOLD_CONFIRMED, VERDICT_HOLD_CONFIRMED};
    paper_begin(&paper);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(paper_decide(&paper, &later[i]), DECIDED);
        assert_int_equal(later[i].c.verdict, want[i]);
        ask_close(&later[i]);
    }
    paper_commit(&paper);
    ask_close(&first);
    paper_check(&paper);
}

static void what_follows_a_release_in_its_batch_is_answered_in_it(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask first, later[3];
    ask_release(&first, hall, &g.id);
    ask_confirm(&later[0], hall, &g.id, g.fence, true);
    ask_renew(&later[1], hall, &g.id, 0);
    ask_release(&later[2], hall, &g.id);
    const enum verdict want[] = {VERDICT_HOLD_RELEASED, VERDICT_HOLD_RELEASED, VERDICT_OK};
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &first), DECIDED);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(paper_decide(&paper, &later[i]), DECIDED);
        assert_int_equal(later[i].c.verdict, want[i]);
        ask_close(&later[i]);
    }
    paper_commit(&paper);
    ask_close(&first);
    paper_check(&paper);
}

static void a_stranger_s_guess_is_refused_even_while_the_hold_is_being_sold(void **state)
{
    (void)state;
    struct grant g = grant(0), forged = g;
    forged.id.secret[0] ^= 0x80;
    struct ask real, guess;
    ask_confirm(&real, hall, &g.id, g.fence, false);
    ask_confirm(&guess, hall, &forged.id, g.fence, false);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &real), DECIDED);
    assert_int_equal(paper_decide(&paper, &guess), DECIDED);
    assert_int_equal(guess.c.verdict, VERDICT_NO_SUCH_HOLD);
    paper_commit(&paper);
    ask_close(&real);
    ask_close(&guess);
}

/* ---- rescue ---- */

static void a_long_expired_hold_is_rescued_with_a_new_fence(void **state)
{
    (void)state;
    struct grant g = grant(0, 1);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    advance_ms(HOUR_MS);
    struct ask a;
    ask_confirm(&a, hall, &g.id, g.fence, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_booking(&a.c)->fence, g.fence + 1);
    assert_int_equal(command_hold(&a.c)->fence, g.fence + 1);
    assert_int_equal(row_status(&g), HOLD_CONFIRMED);
    assert_int_equal(seat(0), SEAT_BOOKED);
    paper_check(&paper);
    ask_close(&a);
    assert_int_equal(rescue(&g), VERDICT_OK); /* the fence from before the rescue stays valid */
    assert_int_equal(confirm(&g), VERDICT_OK);
    assert_int_equal(confirm_fenced(&g, g.fence + 1, false), VERDICT_OK);
    assert_int_equal(confirm_fenced(&g, g.fence + 2, false), VERDICT_STALE_FENCE);
    struct grant next = grant(2);
    assert_int_equal(next.fence, g.fence + 2);
    paper_check(&paper);
}

static void a_hold_expired_by_this_batch_is_rescued_in_it(void **state)
{
    (void)state;
    /* At first the command itself ends the due hold, then the sweep does. */
    for (size_t swept = 0; swept < 2; swept++) {
        paper.expire_max = swept;
        struct grant g = grant(4 + (uint32_t)swept);
        advance_ms(DEF_TTL_MS);
        assert_int_equal(rescue(&g), VERDICT_CREATED);
        assert_int_equal(row_status(&g), HOLD_CONFIRMED);
        assert_int_equal(paper_hold(&paper, g.id.key)->fence, g.fence + 1);
        paper_check(&paper);
    }
}

static void a_rescue_asked_twice_in_a_batch_sells_once(void **state)
{
    (void)state;
    for (int expired_before = 0; expired_before < 2; expired_before++) {
        struct grant g = grant((uint32_t)expired_before);
        advance_ms(DEF_TTL_MS);
        if (expired_before)
            run_empty_batch();
        size_t sold = paper_bookings(&paper);
        struct ask first, second;
        ask_confirm(&first, hall, &g.id, g.fence, true);
        ask_confirm(&second, hall, &g.id, g.fence, true);
        paper_begin(&paper);
        assert_int_equal(paper_decide(&paper, &first), DECIDED);
        assert_int_equal(paper_decide(&paper, &second), DEFERRED);
        paper_commit(&paper);
        assert_int_equal(paper_run(&paper, &second), VERDICT_OK);
        assert_int_equal(command_booking(&second.c)->fence, command_booking(&first.c)->fence);
        assert_int_equal(paper_bookings(&paper), sold + 1);
        ask_close(&first);
        ask_close(&second);
        paper_check(&paper);
    }
}

static void no_rescue_when_one_seat_has_gone(void **state)
{
    (void)state;
    struct grant g = grant(0, 1, 2);
    advance_ms(DEF_TTL_MS);
    struct grant other = grant(1);
    assert_int_equal(rescue(&g), VERDICT_HOLD_EXPIRED);
    assert_int_equal(seat(0), SEAT_AVAILABLE);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    assert_int_equal(confirm(&other), VERDICT_CREATED);
    assert_int_equal(rescue(&g), VERDICT_HOLD_EXPIRED);
    assert_int_equal(row_status(&g), HOLD_EXPIRED);
    paper_check(&paper);
}

static void a_rescue_ends_due_holds_in_its_way(void **state)
{
    (void)state;
    struct grant first = grant(0, 1);
    advance_ms(DEF_TTL_MS);
    struct grant second = grant(1, 2);
    advance_ms(DEF_TTL_MS);
    paper.expire_max = 0;
    assert_int_equal(rescue(&first), VERDICT_CREATED);
    assert_int_equal(row_status(&second), HOLD_EXPIRED);
    assert_int_equal(seat(2), SEAT_AVAILABLE);
    assert_int_equal(rescue(&second), VERDICT_HOLD_EXPIRED);
    paper_check(&paper);
}

static void of_two_rescues_of_one_seat_the_first_wins(void **state)
{
    (void)state;
    struct grant a = grant(0, 1);
    advance_ms(DEF_TTL_MS);
    struct grant b = grant(1, 2);
    advance_ms(DEF_TTL_MS);
    run_empty_batch();
    struct ask first, second;
    ask_confirm(&first, hall, &b.id, b.fence, true);
    ask_confirm(&second, hall, &a.id, a.fence, true);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &first), DECIDED);
    assert_int_equal(paper_decide(&paper, &second), DECIDED);
    paper_commit(&paper);
    assert_int_equal(first.c.verdict, VERDICT_CREATED);
    assert_int_equal(second.c.verdict, VERDICT_HOLD_EXPIRED);
    ask_close(&first);
    ask_close(&second);
    paper_check(&paper);
}

static void a_rescue_of_a_live_hold_is_a_confirm(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask a;
    ask_confirm(&a, hall, &g.id, g.fence, true);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(command_booking(&a.c)->fence, g.fence);
    ask_close(&a);
    paper_check(&paper);
}

static void both_ways_of_rescue_log_the_hold_alike(void **state)
{
    (void)state;
    struct audit_row rows[2] = {0};
    for (int expired_before = 0; expired_before < 2; expired_before++) {
        struct grant g = grant(0);
        advance_ms(DEF_TTL_MS);
        if (expired_before)
            run_empty_batch();
        assert_int_equal(rescue(&g), VERDICT_CREATED);
        for (size_t i = 0; i < paper.audit.n; i++)
            if (paper.audit.v[i].object == AUDIT_HOLD && paper.audit.v[i].cause == CAUSE_RESCUE)
                rows[expired_before] = paper.audit.v[i];
        paper_close(&paper);
        paper_init(&paper, 7);
        hall = paper_event(&paper, def_hall(3, 4));
    }
    rows[1].seq = rows[0].seq;
    assert_int_equal(rows[0].until, rows[1].until);
    assert_memory_equal(&rows[0], &rows[1], sizeof rows[0]);
}

/* ---- idempotency keys ---- */

static void a_repeat_gets_the_first_answer_s_bytes(void **state)
{
    (void)state;
    struct ask first, again;
    ask_create(&first, hall, 0);
    ask_key(&first, "k", "POST seat 0");
    assert_int_equal(paper_run(&paper, &first), VERDICT_CREATED);
    assert_true(first.c.key.rendered);
    assert_false(first.c.key.replayed);
    advance_ms(DEF_TTL_MS * 3); /* the hold has expired long ago; the stored answer remains */
    ask_create(&again, hall, 0);
    ask_key(&again, "k", "POST seat 0");
    buf_str(&again.c.key.answer, "left over");
    assert_int_equal(paper_run(&paper, &again), VERDICT_OK);
    assert_true(again.c.key.rendered && again.c.key.replayed);
    assert_int_equal(again.c.key.answer_code, VERDICT_CREATED);
    assert_int_equal(again.c.key.answer.len, first.c.key.answer.len);
    assert_memory_equal(again.c.key.answer.data, first.c.key.answer.data, first.c.key.answer.len);
    assert_int_equal(sim_event(&paper.ledger, 1)->holds.n, 1);
    ask_close(&first);
    ask_close(&again);
}

static void a_key_with_another_request_is_a_mismatch(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    ask_key(&a, "k", "POST seat 0");
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    ask_create(&a, hall, 1);
    ask_key(&a, "k", "POST seat 1");
    assert_int_equal(paper_run(&paper, &a), VERDICT_KEY_MISMATCH);
    assert_false(a.c.key.replayed);
    assert_int_equal(seat(1), SEAT_AVAILABLE);
    ask_close(&a);
    ask_create(&a, hall, 1);
    ask_key(&a, "other", "POST seat 1");
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
}

static void a_repeat_in_the_same_batch_waits_for_the_answer(void **state)
{
    (void)state;
    struct ask first, same, other;
    ask_create(&first, hall, 0);
    ask_create(&same, hall, 0);
    ask_create(&other, hall, 1);
    ask_key(&first, "k", "POST seat 0");
    ask_key(&same, "k", "POST seat 0");
    ask_key(&other, "k", "POST seat 1");
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &first), DECIDED);
    assert_int_equal(paper_decide(&paper, &same), DEFERRED);
    assert_int_equal(paper_decide(&paper, &other), DEFERRED);
    paper_commit(&paper);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &same), DECIDED);
    assert_int_equal(paper_decide(&paper, &other), DECIDED);
    paper_commit(&paper);
    assert_true(same.c.key.replayed);
    assert_int_equal(other.c.verdict, VERDICT_KEY_MISMATCH);
    ask_close(&first);
    ask_close(&same);
    ask_close(&other);
    paper_check(&paper);
}

static void a_refusal_is_not_kept_and_is_judged_anew(void **state)
{
    (void)state;
    struct grant g = grant(0);
    struct ask a, b;
    ask_create(&a, hall, 0);
    ask_create(&b, hall, 0);
    ask_key(&a, "k", "POST seat 0");
    ask_key(&b, "k", "POST seat 0");
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(paper_decide(&paper, &b), DECIDED);
    paper_commit(&paper);
    assert_int_equal(b.c.verdict, VERDICT_SEAT_TAKEN);
    assert_int_equal(paper.ledger.keys.n, 0);
    assert_int_equal(release(&g), VERDICT_OK);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_false(a.c.key.replayed);
    ask_close(&a);
    ask_close(&b);
}

static void a_key_lasts_a_day(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    ask_key(&a, "k", "POST seat 0");
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    advance_ms(KEY_KEPT_MS - 1);
    ask_create(&a, hall, 0);
    ask_key(&a, "k", "POST seat 0");
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    assert_true(a.c.key.replayed);
    ask_close(&a);
    advance_ms(1);
    ask_create(&a, hall, 1);
    ask_key(&a, "k", "POST seat 1");
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    ask_close(&a);
    assert_int_equal(paper.ledger.keys.n, 1);
}

static void keys_whose_hashes_collide_are_told_apart(void **state)
{
    (void)state;
    struct ask asks[SEATS];
    paper_begin(&paper);
    for (uint32_t i = 0; i < SEATS; i++) {
        ask_create(&asks[i], hall, i);
        ask_key(&asks[i], "k", "r");
        memset(asks[i].c.key.hash, 0xff, 8); /* all keys hash to the last slot of the table */
        asks[i].c.key.hash[31] = (uint8_t)i;
        assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
    }
    for (uint32_t i = 0; i < SEATS; i++) {
        struct ask again;
        ask_create(&again, hall, i);
        ask_key(&again, "k", "r");
        memcpy(again.c.key.hash, asks[i].c.key.hash, KEY_HASH_SIZE);
        assert_int_equal(paper_decide(&paper, &again), DEFERRED);
        ask_close(&again);
    }
    paper_commit(&paper);
    assert_int_equal(paper.ledger.keys.n, SEATS);
    for (uint32_t i = 0; i < SEATS; i++)
        ask_close(&asks[i]);
}

static void a_keyed_release_and_confirm_are_kept_too(void **state)
{
    (void)state;
    struct grant a = grant(0), b = grant(1);
    struct ask ask;
    for (int repeat = 0; repeat < 2; repeat++) {
        ask_release(&ask, hall, &a.id);
        ask_key(&ask, "rel", "DELETE");
        assert_int_equal(paper_run(&paper, &ask), VERDICT_OK);
        assert_int_equal(ask.c.key.answer_code, VERDICT_OK);
        assert_int_equal(ask.c.key.replayed, repeat);
        ask_close(&ask);
        ask_confirm(&ask, hall, &b.id, b.fence, false);
        ask_key(&ask, "con", "POST");
        assert_int_equal(paper_run(&paper, &ask), repeat ? VERDICT_OK : VERDICT_CREATED);
        assert_int_equal(ask.c.key.answer_code, VERDICT_CREATED);
        assert_int_equal(ask.c.key.replayed, repeat);
        ask_close(&ask);
    }
    paper_check(&paper);
}

/* ---- what a batch writes ---- */

static void several_changes_of_a_seat_in_a_batch_are_one_write(void **state)
{
    (void)state;
    struct grant g = grant(5);
    struct ask steps[3];
    ask_release(&steps[0], hall, &g.id);
    ask_create(&steps[1], hall, 5);
    ask_create(&steps[2], hall, 5);
    paper_begin(&paper);
    for (int i = 0; i < 3; i++)
        assert_int_equal(paper_decide(&paper, &steps[i]), DECIDED);
    assert_int_equal(paper.decision->batch.seats.n, 1);
    const struct seat_write *w = &paper.decision->batch.seats.v[0];
    assert_int_equal(w->from, SEAT_HELD);
    assert_int_equal(w->hold_before, g.id.key);
    assert_int_equal(w->to, SEAT_HELD);
    assert_int_equal(w->hold, command_hold(&steps[1].c)->id.key);
    assert_false(w->row_changes); /* no row of a seat is touched */
    assert_int_equal(w->expires_at, command_hold(&steps[1].c)->expires_at);
    assert_int_equal(paper.decision->batch.audit.n, 4); /* the log has a row for each step */
    paper_commit(&paper);
    for (int i = 0; i < 3; i++)
        ask_close(&steps[i]);
    paper_check(&paper);
}

static void writes_are_in_order_of_their_keys(void **state)
{
    (void)state;
    struct event *second = paper_event(&paper, def_hall(1, 4));
    struct ask a, b, c;
    ask_create(&a, second, 3, 0);
    ask_create(&b, hall, 11, 2, 7);
    ask_create(&c, second, 1);
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(paper_decide(&paper, &b), DECIDED);
    assert_int_equal(paper_decide(&paper, &c), DECIDED);
    paper_commit(&paper); /* asserts that the seats ascend */
    assert_int_equal(paper.decision->batch.seats.n, 6);
    assert_int_equal(paper.decision->batch.clocks.n, 2);
    assert_int_equal(command_hold(&b.c)->fence, 1); /* each event counts its own fences */
    assert_int_equal(command_hold(&c.c)->fence, 2);
    ask_close(&a);
    ask_close(&b);
    ask_close(&c);
    paper_check(&paper);
}

static void an_event_without_changes_keeps_its_clock_row(void **state)
{
    (void)state;
    paper_event(&paper, def_hall(1, 4));
    struct ask a;
    ask_create(&a, hall, 0);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_int_equal(paper.decision->events.n, 2);
    assert_int_equal(paper.decision->batch.clocks.n, 1);
    assert_int_equal(paper.decision->batch.clocks.v[0].after.event, hall->def->id.key);
    ask_close(&a);
}

static void an_event_is_in_a_batch_once(void **state)
{
    (void)state;
    struct event *second = paper_event(&paper, def_hall(1, 4));
    decision_begin(paper.decision);
    decision_add_event(paper.decision, second);
    decision_add_event(paper.decision, hall);
    decision_add_event(paper.decision, second);
    assert_int_equal(paper.decision->events.n, 2);
    assert_ptr_equal(paper.decision->events.v[0], hall);
    decision_begin(paper.decision);
    assert_false(hall->in_batch);
    assert_int_equal(paper.decision->events.n, 0);
}

static void the_log_has_no_gaps_and_fences_only_grow(void **state)
{
    (void)state;
    struct grant a = grant(0, 1), b = grant(2);
    assert_int_equal(release(&b), VERDICT_OK);
    advance_ms(DEF_TTL_MS);
    struct grant c = grant(2);
    assert_int_equal(rescue(&a), VERDICT_CREATED);
    struct grant d = grant(3);
    assert_true(a.fence < b.fence && b.fence < c.fence);
    assert_int_equal(paper_hold(&paper, a.id.key)->fence, c.fence + 1);
    assert_int_equal(d.fence, c.fence + 2);
    for (size_t i = 0; i < paper.audit.n; i++)
        assert_int_equal(paper.audit.v[i].seq, i + 1);
    paper_check(&paper);
}

static void time_in_the_ledger_does_not_run_backwards(void **state)
{
    (void)state;
    struct grant g = grant(0);
    advance_ms(5000);
    assert_int_equal(renew(&g, 0), VERDICT_OK);
    advance_ms(-4000); /* the caller passes max(clock row, database) */
    assert_int_equal(create(1), VERDICT_CREATED);
    assert_int_equal(paper.audit.v[paper.audit.n - 1].at, T0_MS + 5000);
    paper_check(&paper);
}

/* ---- undo ---- */

static void dump(struct buf *out)
{
    out->len = 0;
    paper_dump(&paper, out);
}

static void a_failed_batch_leaves_no_trace(void **state)
{
    (void)state;
    struct grant due = grant(0, 1), kept = grant(2), given = grant(3), sold = grant(4, 5);
    struct grant long_expired = grant(6);
    advance_ms(DEF_TTL_MS / 2);
    assert_int_equal(renew(&kept, 0), VERDICT_OK);
    assert_int_equal(renew(&given, 0), VERDICT_OK);
    assert_int_equal(renew(&sold, 0), VERDICT_OK);
    assert_int_equal(renew(&due, 0), VERDICT_OK);
    advance_ms(DEF_TTL_MS / 2);
    run_empty_batch();
    assert_int_equal(row_status(&long_expired), HOLD_EXPIRED);
    advance_ms(DEF_TTL_MS / 2 - 1);
    assert_int_equal(renew(&kept, 2000), VERDICT_OK);
    assert_int_equal(renew(&given, 0), VERDICT_OK);
    assert_int_equal(renew(&sold, 0), VERDICT_OK);
    advance_ms(1);

    struct buf before = {0}, after = {0};
    dump(&before);
    paper.expire_max = 0; /* so that a command, not the sweep, ends the hold */
    struct ask asks[9];
    ask_renew(&asks[0], hall, &kept.id, 5000);
    ask_renew(&asks[1], hall, &kept.id, 8000);
    ask_release(&asks[2], hall, &given.id);
    ask_create(&asks[3], hall, 3, 7);
    ask_key(&asks[3], "k", "r");
    ask_confirm(&asks[4], hall, &sold.id, sold.fence, false);
    ask_create(&asks[5], hall, 1, 8);
    ask_confirm(&asks[6], hall, &long_expired.id, long_expired.fence, true);
    ask_create(&asks[7], hall, 0);
    ask_create(&asks[8], hall, 0);
    const enum verdict want[9] = {VERDICT_OK,      VERDICT_OK,      VERDICT_OK,
                                  VERDICT_CREATED, VERDICT_CREATED, VERDICT_CREATED,
                                  VERDICT_CREATED, VERDICT_CREATED, VERDICT_SEAT_TAKEN};
    for (int round = 0; round < 2; round++) { /* round 0 fails, round 1 commits */
        paper_begin(&paper);
        for (int i = 0; i < 9; i++) {
            assert_int_equal(paper_decide(&paper, &asks[i]), DECIDED);
            assert_int_equal(asks[i].c.verdict, want[i]);
        }
        if (round == 0) {
            paper_fail(&paper);
            dump(&after);
            assert_string_equal(before.data, after.data);
            paper_check(&paper);
        } else {
            paper_commit(&paper);
        }
    }
    paper_check(&paper);
    for (int i = 0; i < 9; i++)
        ask_close(&asks[i]);
    buf_close(&before);
    buf_close(&after);
}

static void a_failed_sweep_and_rescue_leave_no_trace(void **state)
{
    (void)state;
    struct grant g = grant(0, 1), other = grant(2);
    advance_ms(DEF_TTL_MS);
    struct buf before = {0}, after = {0};
    dump(&before);
    struct ask a;
    ask_confirm(&a, hall, &g.id, g.fence, true);
    paper_begin(&paper); /* expires both holds */
    assert_int_equal(paper.decision->expired, 2);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    assert_int_equal(a.c.verdict, VERDICT_CREATED);
    paper_fail(&paper);
    dump(&after);
    assert_string_equal(before.data, after.data);
    assert_int_equal(view_first_due(paper.view)->expires_at, g.expires_at);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED); /* again, committed this time */
    assert_int_equal(row_status(&other), HOLD_EXPIRED);
    ask_close(&a);
    buf_close(&before);
    buf_close(&after);
    paper_check(&paper);
}

static void a_key_of_a_failed_batch_is_not_remembered(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0);
    ask_key(&a, "k", "r");
    paper_begin(&paper);
    assert_int_equal(paper_decide(&paper, &a), DECIDED);
    paper_fail(&paper);
    assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
    assert_false(a.c.key.replayed);
    ask_close(&a);
    paper_check(&paper);
}

static void an_empty_batch_has_no_effects(void **state)
{
    (void)state;
    grant(0);
    struct buf before = {0}, after = {0};
    dump(&before);
    advance_ms(1);
    paper_begin(&paper);
    assert_false(decision_has_effects(paper.decision));
    paper_commit(&paper);
    dump(&after);
    assert_string_equal(before.data, after.data);
    buf_close(&before);
    buf_close(&after);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_hold_takes_its_seats_with_a_fence_and_an_expiry),
        claim(the_time_asked_for_is_granted_up_to_the_cap),
        claim(a_hold_is_all_or_nothing_and_names_every_taken_seat),
        claim(of_two_in_a_batch_the_first_gets_the_seat),
        claim(a_closed_event_takes_no_holds_but_sells_those_it_has),
        claim(what_is_shown_changes_only_when_published),
        claim(a_hold_lives_until_its_expiry_and_not_a_millisecond_longer),
        claim(whoever_asks_for_a_seat_of_a_due_hold_ends_the_whole_hold),
        claim(a_due_hold_is_ended_by_the_timer_and_not_by_the_buyer_who_meets_it),
        claim(a_refused_request_still_ends_the_due_holds_it_met),
        claim(a_hold_named_after_its_expiry_expires_then),
        claim(only_due_holds_are_ended_however_often_they_are_named),
        claim(renewal_moves_the_expiry_and_keeps_the_fence),
        claim(renewal_stops_at_the_cap_counted_from_creation),
        claim(renewal_that_gains_nothing_writes_nothing_and_answers_the_hold_as_it_is),
        claim(renewing_twice_in_a_batch_is_one_write_and_two_log_rows),
        claim(released_seats_are_free_at_once),
        claim(a_seat_released_in_a_batch_can_be_had_in_it),
        claim(the_end_of_a_hold_is_final),
        claim(confirming_sells_the_seats_for_good),
        claim(no_confirm_at_the_expiry),
        claim(a_wrong_fence_sells_nothing),
        claim(confirming_again_answers_with_the_same_booking),
        claim(a_hold_with_another_secret_does_not_exist),
        claim(what_follows_a_confirm_in_its_batch_waits_for_the_next),
        claim(what_follows_a_release_in_its_batch_is_answered_in_it),
        claim(a_stranger_s_guess_is_refused_even_while_the_hold_is_being_sold),
        claim(a_long_expired_hold_is_rescued_with_a_new_fence),
        claim(a_hold_expired_by_this_batch_is_rescued_in_it),
        claim(a_rescue_asked_twice_in_a_batch_sells_once),
        claim(no_rescue_when_one_seat_has_gone),
        claim(a_rescue_ends_due_holds_in_its_way),
        claim(of_two_rescues_of_one_seat_the_first_wins),
        claim(a_rescue_of_a_live_hold_is_a_confirm),
        claim(both_ways_of_rescue_log_the_hold_alike),
        claim(a_repeat_gets_the_first_answer_s_bytes),
        claim(a_key_with_another_request_is_a_mismatch),
        claim(a_repeat_in_the_same_batch_waits_for_the_answer),
        claim(a_refusal_is_not_kept_and_is_judged_anew),
        claim(a_key_lasts_a_day),
        claim(keys_whose_hashes_collide_are_told_apart),
        claim(a_keyed_release_and_confirm_are_kept_too),
        claim(several_changes_of_a_seat_in_a_batch_are_one_write),
        claim(writes_are_in_order_of_their_keys),
        claim(an_event_without_changes_keeps_its_clock_row),
        claim(an_event_is_in_a_batch_once),
        claim(the_log_has_no_gaps_and_fences_only_grow),
        claim(time_in_the_ledger_does_not_run_backwards),
        claim(a_failed_batch_leaves_no_trace),
        claim(a_failed_sweep_and_rescue_leave_no_trace),
        claim(a_key_of_a_failed_batch_is_not_remembered),
        claim(an_empty_batch_has_no_effects),
    };
    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
