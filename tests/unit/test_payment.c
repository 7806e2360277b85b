/* The table of what a fact about a payment changes (rules/payment.h).  `rules` below states it as
 * rules/payment.md does, and the test walks every cell: each case that can be put to payment_apply
 * is covered by exactly one line, and comes out as that line says.  The other functions of
 * payment.h, which derive what is owed from the state, have tables of their own. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "rules/payment.h"

/* ---- the table ---- */

#define SET(x) (1u << (x))
#define ANY (~0u)
#define OTHER_THAN(x) (~SET(x))
enum answer { EITHER, YES, NO };

/* One line: the cells that it is about, and what becomes of them. */
struct rule {
    const char *name;
    unsigned facts; /* of enum intent_state, or REFUSED alone */
    unsigned holds, bookings, payments;
    enum answer received, intent, rescue, wrong, current;
    enum payment_status payment; /* PAYMENT_NONE: it stays as it is */
    enum booking_status booking; /* BOOKING_NONE: it stays as it is */
    bool books, rescues, frees, alarms;
};
#define REFUSED SET(16) /* stands for fact.capture_refused, whatever else the fact says */
#define NO_MONEY (SET(INTENT_CANCELED) | SET(INTENT_ABSENT))
#define SHOWN (SET(INTENT_REQUIRES_PAYMENT) | SET(INTENT_REQUIRES_ACTION) | SET(INTENT_PROCESSING))
#define BEFORE_MONEY                                                                               \
    (SET(PAYMENT_NONE) | SET(PAYMENT_CREATING) | SET(PAYMENT_REQUIRES_PAYMENT) |                   \
     SET(PAYMENT_REQUIRES_ACTION) | SET(PAYMENT_PROCESSING))
#define ALL .holds = ANY, .bookings = ANY, .payments = ANY
#define PENDING .bookings = SET(BOOKING_PENDING), .payments = ANY

static const struct rule rules[] = {
    /* captured: the money is here */
    {"captured again", SET(INTENT_CAPTURED), ALL, .received = YES},
    {"captured, live hold", SET(INTENT_CAPTURED), SET(HOLD_ACTIVE), PENDING, .received = NO,
     .wrong = NO, .payment = PAYMENT_SUCCEEDED, .booking = BOOKING_CONFIRMED, .books = true},
    {"captured, sold hold", SET(INTENT_CAPTURED), SET(HOLD_CONFIRMED), PENDING, .received = NO,
     .wrong = NO, .payment = PAYMENT_SUCCEEDED, .booking = BOOKING_CONFIRMED},
    {"captured, expired hold, places free", SET(INTENT_CAPTURED), SET(HOLD_EXPIRED), PENDING,
     .received = NO, .wrong = NO, .rescue = YES, .payment = PAYMENT_SUCCEEDED,
     .booking = BOOKING_CONFIRMED, .rescues = true},
    {"captured, expired hold, places gone", SET(INTENT_CAPTURED), SET(HOLD_EXPIRED), PENDING,
     .received = NO, .wrong = NO, .rescue = NO, .payment = PAYMENT_REFUNDING},
    {"captured, released hold", SET(INTENT_CAPTURED), SET(HOLD_RELEASED), PENDING, .received = NO,
     .wrong = NO, .payment = PAYMENT_REFUNDING},
    {"captured, wrong amount, sold hold", SET(INTENT_CAPTURED), SET(HOLD_CONFIRMED), PENDING,
     .received = NO, .wrong = YES, .payment = PAYMENT_REFUNDING, .frees = true, .alarms = true},
    {"captured, wrong amount", SET(INTENT_CAPTURED), OTHER_THAN(HOLD_CONFIRMED), PENDING,
     .received = NO, .wrong = YES, .payment = PAYMENT_REFUNDING, .alarms = true},
    {"captured, booking failed", SET(INTENT_CAPTURED), ANY, SET(BOOKING_FAILED), ANY,
     .received = NO, .payment = PAYMENT_REFUNDING, .alarms = true},
    {"captured, booking decided otherwise", SET(INTENT_CAPTURED), ANY,
     SET(BOOKING_CONFIRMED) | SET(BOOKING_CANCELLED), ANY, .received = NO, .wrong = NO,
     .payment = PAYMENT_REFUNDING},
    {"captured, wrong amount, booking decided otherwise", SET(INTENT_CAPTURED), ANY,
     SET(BOOKING_CONFIRMED) | SET(BOOKING_CANCELLED), ANY, .received = NO, .wrong = YES,
     .payment = PAYMENT_REFUNDING, .alarms = true},

    /* authorized: the money can be taken */
    {"authorized after money", SET(INTENT_AUTHORIZED), ANY, ANY, BEFORE_MONEY, .received = YES},
    {"authorized again, or too late", SET(INTENT_AUTHORIZED), ANY, ANY, ~BEFORE_MONEY,
     .received = EITHER},
    {"authorized, live hold", SET(INTENT_AUTHORIZED), SET(HOLD_ACTIVE), SET(BOOKING_PENDING),
     BEFORE_MONEY, .received = NO, .wrong = NO, .payment = PAYMENT_CAPTURING, .books = true},
    {"authorized, wrong amount, live hold", SET(INTENT_AUTHORIZED), SET(HOLD_ACTIVE),
     SET(BOOKING_PENDING), BEFORE_MONEY, .received = NO, .wrong = YES,
     .payment = PAYMENT_AUTHORIZED, .alarms = true},
    {"authorized, ended hold", SET(INTENT_AUTHORIZED), OTHER_THAN(HOLD_ACTIVE),
     SET(BOOKING_PENDING), BEFORE_MONEY, .received = NO, .wrong = NO,
     .payment = PAYMENT_AUTHORIZED},
    {"authorized, wrong amount, ended hold", SET(INTENT_AUTHORIZED), OTHER_THAN(HOLD_ACTIVE),
     SET(BOOKING_PENDING), BEFORE_MONEY, .received = NO, .wrong = YES,
     .payment = PAYMENT_AUTHORIZED, .alarms = true},
    {"authorized, booking decided", SET(INTENT_AUTHORIZED), ANY, OTHER_THAN(BOOKING_PENDING),
     BEFORE_MONEY, .received = NO, .wrong = NO, .payment = PAYMENT_AUTHORIZED},
    {"authorized, wrong amount, booking decided", SET(INTENT_AUTHORIZED), ANY,
     OTHER_THAN(BOOKING_PENDING), BEFORE_MONEY, .received = NO, .wrong = YES,
     .payment = PAYMENT_AUTHORIZED, .alarms = true},

    /* canceled, or absent: no money can come any more */
    {"no money after money", NO_MONEY, ALL, .received = YES, .alarms = true},
    {"canceled again", NO_MONEY, ANY, ANY, SET(PAYMENT_CANCELED), .received = NO},
    {"canceled, sold hold", SET(INTENT_CANCELED), SET(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .payment = PAYMENT_CANCELED,
     .booking = BOOKING_FAILED, .frees = true},
    {"canceled", SET(INTENT_CANCELED), OTHER_THAN(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .payment = PAYMENT_CANCELED,
     .booking = BOOKING_FAILED},
    {"canceled, booking decided", SET(INTENT_CANCELED), ANY, OTHER_THAN(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .payment = PAYMENT_CANCELED},
    {"absent, sold hold", SET(INTENT_ABSENT), SET(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .intent = NO, .payment = PAYMENT_CANCELED,
     .booking = BOOKING_FAILED, .frees = true},
    {"absent", SET(INTENT_ABSENT), OTHER_THAN(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .intent = NO, .payment = PAYMENT_CANCELED,
     .booking = BOOKING_FAILED},
    {"absent, booking decided", SET(INTENT_ABSENT), ANY, OTHER_THAN(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .intent = NO, .payment = PAYMENT_CANCELED},
    {"lost, sold hold", SET(INTENT_ABSENT), SET(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .intent = YES, .payment = PAYMENT_CANCELED,
     .booking = BOOKING_FAILED, .frees = true, .alarms = true},
    {"lost", SET(INTENT_ABSENT), OTHER_THAN(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .intent = YES, .payment = PAYMENT_CANCELED,
     .booking = BOOKING_FAILED, .alarms = true},
    {"lost, booking decided", SET(INTENT_ABSENT), ANY, OTHER_THAN(BOOKING_PENDING),
     OTHER_THAN(PAYMENT_CANCELED), .received = NO, .intent = YES, .payment = PAYMENT_CANCELED,
     .alarms = true},

    /* the provider refused to capture, and a retrieve shows that it has not captured */
    {"refused after money", REFUSED, ALL, .received = YES},
    {"refused, nothing is captured", REFUSED, ANY, ANY, OTHER_THAN(PAYMENT_CAPTURING),
     .received = NO},
    {"refused, sold hold", REFUSED, SET(HOLD_CONFIRMED), SET(BOOKING_PENDING),
     SET(PAYMENT_CAPTURING), .received = NO, .payment = PAYMENT_AUTHORIZED,
     .booking = BOOKING_FAILED, .frees = true},
    {"refused", REFUSED, OTHER_THAN(HOLD_CONFIRMED), SET(BOOKING_PENDING), SET(PAYMENT_CAPTURING),
     .received = NO, .payment = PAYMENT_AUTHORIZED, .booking = BOOKING_FAILED},
    {"refused, booking decided", REFUSED, ANY, OTHER_THAN(BOOKING_PENDING), SET(PAYMENT_CAPTURING),
     .received = NO, .payment = PAYMENT_AUTHORIZED},

    /* what comes before money is shown; only a look at the intent as it is now can go back */
    {"shown after money", SHOWN, ANY, ANY, ~BEFORE_MONEY, .received = EITHER},
    {"needs a card", SET(INTENT_REQUIRES_PAYMENT), ANY, ANY, BEFORE_MONEY, .current = YES,
     .payment = PAYMENT_REQUIRES_PAYMENT},
    {"needs an action", SET(INTENT_REQUIRES_ACTION), ANY, ANY, BEFORE_MONEY, .current = YES,
     .payment = PAYMENT_REQUIRES_ACTION},
    {"is processed", SET(INTENT_PROCESSING), ANY, ANY, BEFORE_MONEY, .current = YES,
     .payment = PAYMENT_PROCESSING},
    {"old news of a new intent", SHOWN, ANY, ANY, SET(PAYMENT_CREATING), .current = NO,
     .payment = PAYMENT_REQUIRES_PAYMENT},
    {"old news", SHOWN, ANY, ANY, BEFORE_MONEY &OTHER_THAN(PAYMENT_CREATING), .current = NO},

    {"about something else", SET(INTENT_UNSAID), ALL},
};

/* ---- the walk ---- */

struct cell {
    struct payment_case c;
    struct fact fact;
};

static bool says(enum answer want, bool is) { return want == EITHER || (want == YES) == is; }

static bool covers(const struct rule *r, const struct cell *x)
{
    unsigned fact = x->fact.capture_refused ? REFUSED : SET(x->fact.state);
    return r->facts & fact && r->holds & SET(x->c.hold) && r->bookings & SET(x->c.booking) &&
           r->payments & SET(x->c.payment) && says(r->received, x->c.has_received) &&
           says(r->intent, x->c.has_intent) && says(r->rescue, x->c.may_rescue) &&
           says(r->wrong, x->c.is_wrong) && says(r->current, x->fact.is_current);
}

static void check_cell(const struct cell *x, size_t *used)
{
    const struct rule *rule = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (covers(&rules[i], x)) {
            if (rule)
                fail_msg("both \"%s\" and \"%s\"", rule->name, rules[i].name);
            rule = &rules[i];
            used[i]++;
        }
    if (!rule)
        fail_msg("no line for fact %d, hold %d, booking %d, payment %d", (int)x->fact.state,
                 (int)x->c.hold, (int)x->c.booking, (int)x->c.payment);
    struct payment_step step;
    payment_apply(&x->c, &x->fact, &step);
    const struct payment_step want = {
        .payment = rule->payment ? rule->payment : x->c.payment,
        .booking = rule->booking ? rule->booking : x->c.booking,
        .books = rule->books,
        .rescues = rule->rescues,
        .frees = rule->frees,
        .alarms = rule->alarms,
    };
    if (step.payment != want.payment || step.booking != want.booking || step.books != want.books ||
        step.rescues != want.rescues || step.frees != want.frees || step.alarms != want.alarms)
        fail_msg("\"%s\": hold %d, booking %d, payment %d: payment %d, booking %d, %d%d%d%d",
                 rule->name, (int)x->c.hold, (int)x->c.booking, (int)x->c.payment,
                 (int)step.payment, (int)step.booking, step.books, step.rescues, step.frees,
                 step.alarms);
}

/* Walks the flags of one cell: each bit of `bits` is one of them. */
static void check_flags(struct cell *x, size_t *used, size_t *n)
{
    for (unsigned bits = 0; bits < 64; bits++) {
        x->c.has_received = bits & 1;
        x->c.has_intent = bits & 2;
        x->c.may_rescue = bits & 4;
        x->c.is_wrong = bits & 8;
        x->fact.is_current = bits & 16;
        x->fact.capture_refused = bits & 32;
        check_cell(x, used);
        ++*n;
    }
}

static void every_cell_comes_out_as_its_one_line_says(void **state)
{
    (void)state;
    size_t used[sizeof rules / sizeof *rules] = {0}, n = 0;
    struct cell x = {0};
    for (int hold = HOLD_ACTIVE; hold <= HOLD_CONFIRMED; hold++)
        for (int booking = BOOKING_PENDING; booking <= BOOKING_CANCELLED; booking++)
            for (int payment = PAYMENT_NONE; payment <= PAYMENT_REFUND_FAILED; payment++)
                for (int fact = INTENT_UNSAID; fact <= INTENT_CANCELED; fact++) {
                    x.c.hold = (enum hold_status)hold;
                    x.c.booking = (enum booking_status)booking;
                    x.c.payment = (enum payment_status)payment;
                    x.fact.state = (enum intent_state)fact;
                    check_flags(&x, used, &n);
                }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!used[i])
            fail_msg("\"%s\" is about no cell", rules[i].name);
    print_message("%zu cells\n", n);
}

/* A fact that was applied once changes nothing the second time: facts may be repeated (I10). */
static void a_repeated_fact_changes_nothing(void **state)
{
    (void)state;
    for (int hold = HOLD_ACTIVE; hold <= HOLD_CONFIRMED; hold++)
        for (int payment = PAYMENT_CREATING; payment <= PAYMENT_CAPTURING; payment++)
            for (int fact = INTENT_UNSAID; fact <= INTENT_CANCELED; fact++)
                for (unsigned bits = 0; bits < 16; bits++) {
                    const struct fact f = {.state = (enum intent_state)fact,
                                           .is_current = bits & 1,
                                           .capture_refused = bits & 2};
                    struct payment_case c = {.hold = (enum hold_status)hold,
                                             .booking = BOOKING_PENDING,
                                             .payment = (enum payment_status)payment,
                                             .has_intent = true,
                                             .may_rescue = bits & 4,
                                             .is_wrong = bits & 8};
                    struct payment_step first, second;
                    payment_apply(&c, &f, &first);
                    c.payment = first.payment;
                    c.booking = first.booking;
                    c.has_received = fact == INTENT_CAPTURED && !f.capture_refused;
                    c.hold = first.books || first.rescues ? HOLD_CONFIRMED : c.hold;
                    payment_apply(&c, &f, &second);
                    assert_int_equal(second.payment, first.payment);
                    assert_int_equal(second.booking, first.booking);
                    assert_false(second.books || second.rescues || second.frees || second.alarms);
                }
}

/* ---- what is owed about the intent ---- */

/* Lines are tried in this order. */
static const struct {
    unsigned payments, bookings, holds;
    enum job_kind job;
} jobs[] = {
    {SET(PAYMENT_NONE) | SET(PAYMENT_SUCCEEDED) | SET(PAYMENT_CANCELED) | SET(PAYMENT_REFUNDING) |
         SET(PAYMENT_REFUNDED) | SET(PAYMENT_REFUND_FAILED),
     ANY, ANY, 0},
    {ANY, OTHER_THAN(BOOKING_PENDING), ANY, JOB_CANCEL},
    {SET(PAYMENT_CAPTURING), SET(BOOKING_PENDING), ANY, JOB_CAPTURE},
    {SET(PAYMENT_AUTHORIZED), SET(BOOKING_PENDING), ANY, JOB_CANCEL},
    {SET(PAYMENT_CREATING), SET(BOOKING_PENDING), SET(HOLD_ACTIVE), JOB_CREATE},
    {BEFORE_MONEY, SET(BOOKING_PENDING), SET(HOLD_ACTIVE), 0},
    {BEFORE_MONEY, SET(BOOKING_PENDING), OTHER_THAN(HOLD_ACTIVE), JOB_CANCEL},
};

static void the_call_that_is_owed_follows_from_the_state(void **state)
{
    (void)state;
    for (int p = PAYMENT_NONE; p <= PAYMENT_REFUND_FAILED; p++)
        for (int b = BOOKING_PENDING; b <= BOOKING_CANCELLED; b++)
            for (int h = HOLD_ACTIVE; h <= HOLD_CONFIRMED; h++) {
                size_t i = 0;
                while (!(jobs[i].payments & SET(p) && jobs[i].bookings & SET(b) &&
                         jobs[i].holds & SET(h)))
                    assert_true(++i < sizeof jobs / sizeof *jobs);
                assert_int_equal(payment_job((enum payment_status)p, (enum booking_status)b,
                                             (enum hold_status)h),
                                 jobs[i].job);
            }
}

/* ---- money ---- */

#define PAYMENT 7
static struct refund_row refund(int64_t number, int64_t amount, enum refund_status status,
                                bool ours)
{
    return (struct refund_row){
        .refund = number, .payment = PAYMENT, .amount = amount, .status = status, .is_ours = ours};
}

static void a_balance_counts_the_refunds_of_its_payment_by_what_became_of_them(void **state)
{
    (void)state;
    const struct payment_row p = {.payment = PAYMENT, .received = 1000};
    struct refund_row list[] = {
        refund(1, 10, REFUND_OWED, true),       refund(2, 20, REFUND_PENDING, true),
        refund(3, 40, REFUND_SUCCEEDED, true),  refund(4, 80, REFUND_FAILED, true),
        refund(5, 160, REFUND_FAILED, false),   refund(6, 320, REFUND_SUCCEEDED, false),
        refund(7, 5000, REFUND_SUCCEEDED, true)};
    list[6].payment = PAYMENT + 1;
    const struct payment_balance b = payment_balance(&p, list, 7);
    assert_int_equal(b.received, 1000);
    assert_int_equal(b.returned, 20 + 40 + 320);
    assert_int_equal(b.settled, 40 + 320);
    assert_int_equal(b.owed, 10);
    assert_int_equal(b.failed, 1);
    assert_true(b.last_failed);
}

/* The newest refund of ours that the provider has heard of decides, in whatever order they stand.
 */
static void a_balance_knows_whether_the_last_refund_of_ours_failed(void **state)
{
    (void)state;
    const struct payment_row p = {.payment = PAYMENT, .received = 1000};
    const struct refund_row again[] = {refund(9, 80, REFUND_SUCCEEDED, true),
                                       refund(4, 80, REFUND_FAILED, true)};
    const struct refund_row owed[] = {refund(4, 80, REFUND_FAILED, true),
                                      refund(9, 80, REFUND_OWED, true)};
    const struct refund_row others[] = {refund(4, 80, REFUND_SUCCEEDED, true),
                                        refund(9, 80, REFUND_FAILED, false)};
    assert_false(payment_balance(&p, again, 2).last_failed);
    assert_true(payment_balance(&p, owed, 2).last_failed);
    assert_false(payment_balance(&p, others, 2).last_failed);
    assert_false(payment_balance(&p, NULL, 0).last_failed);
}

static void the_status_of_a_paid_payment_follows_from_its_balance(void **state)
{
    (void)state;
    static const struct {
        struct payment_balance b;
        enum payment_status stays, returns; /* of money that stays here, and that must go back */
    } cases[] = {
        {{.received = 100}, PAYMENT_SUCCEEDED, PAYMENT_REFUNDING},
        {{.received = 100, .owed = 100}, PAYMENT_REFUNDING, PAYMENT_REFUNDING},
        {{.received = 100, .owed = 30}, PAYMENT_REFUNDING, PAYMENT_REFUNDING},
        {{.received = 100, .returned = 100}, PAYMENT_REFUNDING, PAYMENT_REFUNDING},
        {{.received = 100, .returned = 100, .settled = 100}, PAYMENT_REFUNDED, PAYMENT_REFUNDED},
        {{.received = 100, .returned = 30, .settled = 30}, PAYMENT_SUCCEEDED, PAYMENT_REFUNDING},
        {{.received = 100, .failed = 1, .last_failed = true},
         PAYMENT_REFUND_FAILED,
         PAYMENT_REFUND_FAILED},
        {{.received = 100, .owed = 100, .failed = 1, .last_failed = true},
         PAYMENT_REFUND_FAILED,
         PAYMENT_REFUND_FAILED},
        /* the dashboard gave back what ours could not */
        {{.received = 100, .returned = 100, .settled = 100, .failed = 1, .last_failed = true},
         PAYMENT_REFUND_FAILED,
         PAYMENT_REFUNDED},
        {{.received = 100, .returned = 100, .settled = 100, .failed = 1},
         PAYMENT_REFUNDED,
         PAYMENT_REFUNDED},
        {{.received = 100, .returned = 150, .settled = 150}, PAYMENT_REFUNDED, PAYMENT_REFUNDED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(payment_status_of(&cases[i].b, false), cases[i].stays);
        assert_int_equal(payment_status_of(&cases[i].b, true), cases[i].returns);
    }
}

static void money_stays_only_for_a_confirmed_booking(void **state)
{
    (void)state;
    const struct payment_row paid = {.received = 1}, unpaid = {0};
    for (int b = BOOKING_PENDING; b <= BOOKING_CANCELLED; b++) {
        assert_int_equal(payment_returns(&paid, (enum booking_status)b), b != BOOKING_CONFIRMED);
        assert_false(payment_returns(&unpaid, (enum booking_status)b));
    }
}

/* ---- polls ---- */

static int64_t poll_at(enum payment_status status, int64_t left_ms, bool is_live)
{
    const struct payment_row p = {.status = status};
    const struct payment_balance b = {0};
    int64_t at = payment_poll_at(&p, &b, T0_MS + left_ms, is_live, T0_MS);
    return at ? at - T0_MS : 0;
}

/* The last poll comes while there is time to act on its answer, and polls keep their distance. */
static void an_unpaid_payment_is_asked_about_before_its_hold_expires(void **state)
{
    (void)state;
    assert_int_equal(poll_at(PAYMENT_REQUIRES_PAYMENT, 480000, true), 470000);
    assert_int_equal(poll_at(PAYMENT_PROCESSING, 60000, true), 50000);
    assert_int_equal(poll_at(PAYMENT_REQUIRES_ACTION, 20000, true), 10000);
    assert_int_equal(poll_at(PAYMENT_CREATING, 12000, true), 6000);
    assert_int_equal(poll_at(PAYMENT_REQUIRES_PAYMENT, 10000, true), 5000);
    assert_int_equal(poll_at(PAYMENT_REQUIRES_PAYMENT, 4000, true), 5000);
    assert_int_equal(poll_at(PAYMENT_REQUIRES_PAYMENT, 1, true), 5000);
}

/* From then on the job that cancels, captures or refunds brings the news. */
static void payments_that_wait_for_a_job_of_ours_are_not_asked_about(void **state)
{
    (void)state;
    for (int p = PAYMENT_CREATING; p <= PAYMENT_REFUND_FAILED; p++) {
        assert_int_equal(poll_at((enum payment_status)p, 60000, false), 0);
        if (p > PAYMENT_PROCESSING)
            assert_int_equal(poll_at((enum payment_status)p, 60000, true), 0);
    }
}

static void refunds_that_the_provider_has_accepted_are_asked_about(void **state)
{
    (void)state;
    const struct payment_row p = {.status = PAYMENT_REFUNDING, .received = 100};
    const struct payment_balance under_way = {.received = 100, .returned = 100, .settled = 40};
    const struct payment_balance owed = {.received = 100, .owed = 100};
    assert_int_equal(payment_poll_at(&p, &under_way, 0, false, T0_MS), T0_MS + 5000);
    assert_int_equal(payment_poll_at(&p, &owed, 0, false, T0_MS), 0);
}

/* The bank may send the money back days later, and the webhook that says so may be lost. */
static void refunds_that_succeeded_are_asked_about_for_three_days(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000;
    const struct payment_row p = {.status = PAYMENT_REFUNDED, .received = 100};
    const struct payment_balance done = {
        .received = 100, .returned = 100, .settled = 100, .settled_at = T0_MS};
    assert_int_equal(payment_poll_at(&p, &done, 0, false, T0_MS), T0_MS + 6 * hour_ms);
    assert_int_equal(payment_poll_at(&p, &done, 0, false, T0_MS + 71 * hour_ms),
                     T0_MS + 77 * hour_ms);
    assert_int_equal(payment_poll_at(&p, &done, 0, false, T0_MS + 72 * hour_ms), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_comes_out_as_its_one_line_says),
        cmocka_unit_test(a_repeated_fact_changes_nothing),
        cmocka_unit_test(the_call_that_is_owed_follows_from_the_state),
        cmocka_unit_test(a_balance_counts_the_refunds_of_its_payment_by_what_became_of_them),
        cmocka_unit_test(a_balance_knows_whether_the_last_refund_of_ours_failed),
        cmocka_unit_test(the_status_of_a_paid_payment_follows_from_its_balance),
        cmocka_unit_test(money_stays_only_for_a_confirmed_booking),
        cmocka_unit_test(an_unpaid_payment_is_asked_about_before_its_hold_expires),
        cmocka_unit_test(payments_that_wait_for_a_job_of_ours_are_not_asked_about),
        cmocka_unit_test(refunds_that_the_provider_has_accepted_are_asked_about),
        cmocka_unit_test(refunds_that_succeeded_are_asked_about_for_three_days),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
