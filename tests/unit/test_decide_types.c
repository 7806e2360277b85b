/* Claims about ticket types: what a place costs, what a hold stores, what a change of types costs,
 * and what the log tells.  tests/support/buyer.h says what is checked after each step: among other
 * things that a failed batch leaves no trace, and that another server's view agrees. */
#include "support/buyer.h"

#include <string.h>

enum { SECTION, FLOOR_PRICE, BOX_PRICE }; /* indexes of prices */
enum { FLOOR, BOX };
enum { FULL, REDUCED, CHILD };
#define KEPT TYPE_PRICE_KEPT

static struct shop shop;
static struct event *hall;

/* Seats 0 to 11 cost 2500, for a child 500.  A place of the floor costs 700, reduced 300, and
 * nothing for a child; one in the box costs 9000, as a first type 8000. */
static int setup(void **state)
{
    (void)state;
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 400);
    def_area(def, "Box", 9000, 3);
    def_type(def, "full", (const int64_t[]){KEPT, KEPT, 8000}, 3);
    def_type(def, "reduced", (const int64_t[]){2000, 300}, 2);
    def_type(def, "child", (const int64_t[]){500, 0}, 2);
    def->terms.max_per_hold = HOLD_PLACES_MAX;
    shop_init(&shop, def);
    hall = shop.event;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

/* ---- helpers ---- */

static const struct hold_row *row_of(const struct id *hold)
{
    return paper_hold(&shop.paper, hold->key);
}

static struct id created(struct ask *a)
{
    assert_int_equal(shop_run(&shop, a), VERDICT_CREATED);
    struct id id = a->c.create.hold.id;
    ask_close(a);
    return id;
}

static void begin_change(struct ask *a, const struct id *hold)
{
    ask_change(a, hall, hold, row_of(hold)->fence);
}

static enum verdict set_price(uint32_t index, int64_t price)
{
    struct ask a;
    ask_terms(&a, hall);
    ask_price(&a, index, price);
    return shop_do(&shop, &a);
}

static void assert_runs_n(const struct hold_row *row, const struct price_run *wanted, uint32_t n)
{
    int64_t sum = 0;
    assert_int_equal(row->n_prices, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(row->prices[i].price, wanted[i].price);
        assert_int_equal(row->prices[i].n, wanted[i].n);
        assert_int_equal(row->prices[i].type, wanted[i].type);
        sum += wanted[i].price * wanted[i].n;
    }
    assert_int_equal(row->amount, sum);
}
#define assert_runs(hold, ...)                                                                     \
    assert_runs_n(row_of(hold), (const struct price_run[]){__VA_ARGS__},                           \
                  sizeof((const struct price_run[]){__VA_ARGS__}) / sizeof(struct price_run))

/* The types of the rows about places that the log has from `first` on: "held 1x0 ..." */
static void assert_logged(size_t first, const char *wanted)
{
    struct buf told = {0};
    for (size_t i = first; i < shop.paper.audit.n; i++) {
        const struct audit_row *row = &shop.paper.audit.v[i];
        if (row->object == AUDIT_SEAT)
            buf_printf(&told, "%sseat %lld %s %u", told.len ? ", " : "", (long long)row->item,
                       status_text(AUDIT_SEAT, row->to), row->type);
        else if (row->object == AUDIT_AREA)
            buf_printf(&told, "%s%lld of area %lld %s %u", told.len ? ", " : "",
                       (long long)row->quantity, (long long)row->item,
                       status_text(AUDIT_AREA, row->to), row->type);
    }
    buf_char(&told, '\0');
    assert_string_equal(told.data, wanted);
    buf_close(&told);
}

/* The change is refused and has no effect at all. */
static void assert_refused(struct ask *a, enum verdict wanted)
{
    struct buf before = {0}, after = {0};
    paper_dump(&shop.paper, &before);
    assert_int_equal(shop_run(&shop, a), wanted);
    paper_dump(&shop.paper, &after);
    assert_string_equal(before.data, after.data);
    buf_close(&before);
    buf_close(&after);
}

/* Seat 0 of the first type, seat 1 reduced, seat 2 for a child; of the floor one place of the first
 * type and two reduced. */
static struct id hold_mixed(void)
{
    struct ask a;
    ask_create(&a, hall, 0, 1, 2);
    ask_area(&a, FLOOR, 3);
    ask_type(&a, NULL, 1);
    ask_type(&a, "reduced", 1);
    ask_type(&a, "child", 1);
    ask_type(&a, "full", 1);
    ask_type(&a, "reduced", 2);
    return created(&a);
}

/* ---- making a hold ---- */

static void each_place_costs_what_its_type_costs(void **state)
{
    (void)state;
    struct id hold = hold_mixed();
    assert_runs(&hold, {2500, 1, FULL}, {2000, 1, REDUCED}, {500, 1, CHILD}, {700, 1, FULL},
                {300, 2, REDUCED});
    assert_logged(0, "seat 0 held 0, seat 1 held 1, seat 2 held 2, 1 of area 0 held 0, "
                     "2 of area 0 held 1");
}

static void what_no_type_is_named_for_is_of_the_first(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 4, 5);
    ask_area(&a, BOX, 2);
    ask_type(&a, "reduced", 1); /* a run for the first place alone */
    struct id hold = created(&a);
    assert_runs(&hold, {2000, 1, REDUCED}, {2500, 1, FULL}, {8000, 2, FULL});
}

static void places_of_one_price_and_two_types_are_kept_apart(void **state)
{
    (void)state;
    struct ask a;
    assert_int_equal(set_price(SECTION, 2000), VERDICT_OK);
    ask_create(&a, hall, 0, 1);
    ask_type(&a, "reduced", 1);
    struct id hold = created(&a);
    assert_runs(&hold, {2000, 1, REDUCED}, {2000, 1, FULL});
}

static void an_unknown_type_is_refused(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 0, 1);
    ask_type(&a, "full", 1);
    ask_type(&a, "fulL", 1);
    assert_refused(&a, VERDICT_NO_SUCH_TYPE);
    assert_ptr_equal(a.c.create.shortage.unknown, &a.types[1]);
    ask_close(&a);
}

static void the_best_seats_get_types_in_their_order(void **state)
{
    (void)state;
    struct ask a;
    ask_best(&a, hall, 3, true);
    ask_type(&a, "child", 1);
    ask_type(&a, "reduced", 1);
    ask_type(&a, NULL, 1);
    struct id hold = created(&a);
    assert_runs(&hold, {500, 1, CHILD}, {2000, 1, REDUCED}, {2500, 1, FULL});
}

/* ---- sixteen types ---- */

static const char *const ids[TYPES_MAX] = {"t0", "t1", "t2",  "t3",  "t4",  "t5",  "t6",  "t7",
                                           "t8", "t9", "t10", "t11", "t12", "t13", "t14", "t15"};

/* An event of 16 types, each with a price of its own: seats cost 100 and more, the floor 10 and
 * more. */
static int setup_sixteen(void **state)
{
    (void)state;
    struct event_def *def = def_hall(4, 4);
    def_area(def, "Floor", 700, HOLD_PLACES_MAX);
    def_area(def, "Box", 9000, HOLD_PLACES_MAX);
    for (int64_t i = 0; i < TYPES_MAX; i++)
        def_type(def, ids[i], (const int64_t[]){100 + i, 10 + i, 50 + i}, 3);
    def->terms.max_per_hold = HOLD_PLACES_MAX;
    shop_init(&shop, def);
    hall = shop.event;
    return 0;
}

/* The hold has one run for every seat, and 16 for each area: far more than seats and areas. */
static void sixteen_types_of_one_area_fit_at_its_limit(void **state)
{
    (void)state;
    struct ask a;
    uint32_t all = HOLD_PLACES_MAX - 16;
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, all);
    for (uint32_t i = 0; i < TYPES_MAX; i++)
        ask_type(&a, ids[TYPES_MAX - 1 - i], i ? 1 : all - 15);
    struct id hold = created(&a);
    assert_int_equal(row_of(&hold)->n_prices, TYPES_MAX);
    assert_int_equal(row_of(&hold)->prices[0].type, 15);
    assert_int_equal(row_of(&hold)->prices[0].n, all - 15);

    uint32_t seats[SEATS_INLINE];
    begin_change(&a, &hold);
    for (uint32_t i = 0; i < SEATS_INLINE; i++) {
        seats[i] = i;
        ask_type(&a, ids[i], 1);
    }
    ask_add_n(&a, seats, SEATS_INLINE);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_int_equal(row_of(&hold)->n_prices, 32);

    begin_change(&a, &hold);
    ask_area(&a, BOX, 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_TOO_MANY_SEATS);
}

static void sixteen_types_of_every_area_move_in_one_change(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 3, 1, 0, 2);
    ask_area(&a, BOX, 32);
    ask_area(&a, FLOOR, 16);
    for (uint32_t i = 0; i < 4; i++)
        ask_type(&a, ids[i], 1);
    for (uint32_t i = 0; i < TYPES_MAX; i++)
        ask_type(&a, ids[i], i ? 2 : 18);
    struct id hold = created(&a); /* the box has 18 of the first, and two of each of seven others */
    begin_change(&a, &hold);
    ask_area(&a, FLOOR, 15);
    ask_remove_area(&a, BOX, 16);
    for (uint32_t i = 1; i < TYPES_MAX; i++)
        ask_type(&a, ids[i], 1);
    for (uint32_t i = 0; i < TYPES_MAX; i++)
        ask_remove_type(&a, ids[TYPES_MAX - 1 - i], 1);
    assert_refused(&a, VERDICT_NOT_HELD);
    assert_int_equal(a.c.change.shortage.available, 0);
    assert_int_equal(a.c.change.shortage.short_area, BOX);
    ask_close(&a);
    begin_change(&a, &hold);
    ask_area(&a, FLOOR, 15);
    ask_remove_area(&a, BOX, 8);
    for (uint32_t i = 1; i < TYPES_MAX; i++)
        ask_type(&a, ids[i], 1);
    for (uint32_t i = 0; i < 8; i++)
        ask_remove_type(&a, ids[7 - i], 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_int_equal(row_of(&hold)->n_prices, 4 + 8 + 8 + 15);
    assert_int_equal(row_of(&hold)->prices[4].n, 17);
}

/* ---- resuming ---- */

static void resuming_compares_types(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *area;
        bool is_same;
    } tries[] = {{"reduced", NULL, "child", false},
                 {NULL, "reduced", "full", false},
                 {NULL, NULL, "child", false},
                 {"full", "reduced", "child", true},
                 {NULL, "reduced", "child", true}};
    struct ask a;
    ask_create(&a, hall, 6, 7);
    ask_area(&a, FLOOR, 2);
    ask_owner(&a, "ann");
    ask_type(&a, "full", 1);
    ask_type(&a, "reduced", 1);
    ask_type(&a, "child", 1);
    struct id hold = created(&a);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        ask_create(&a, hall, 6, 7);
        ask_area(&a, FLOOR, 2);
        ask_owner(&a, "ann");
        a.c.create.resume = true;
        ask_type(&a, tries[i].first, 1);
        ask_type(&a, tries[i].second, 1);
        ask_type(&a, NULL, 1);
        ask_type(&a, tries[i].area, 1); /* the order within an area means nothing */
        enum verdict verdict = shop_run(&shop, &a);
        assert_int_equal(verdict, tries[i].is_same ? VERDICT_OK : VERDICT_SEAT_TAKEN);
        if (tries[i].is_same)
            assert_int_equal(a.c.create.hold.id.key, hold.key);
        ask_close(&a);
    }
}

/* The order of seats means nothing either. */
static void resuming_compares_types_seat_by_seat(void **state)
{
    (void)state;
    struct ask a;
    ask_create(&a, hall, 8, 9);
    ask_owner(&a, "ben");
    ask_type(&a, "child", 1);
    struct id hold = created(&a);
    ask_create(&a, hall, 9, 8);
    ask_owner(&a, "ben");
    a.c.create.resume = true;
    ask_type(&a, NULL, 1);
    ask_type(&a, "child", 1);
    assert_int_equal(shop_run(&shop, &a), VERDICT_OK);
    assert_int_equal(a.c.create.hold.id.key, hold.key);
    ask_close(&a);
}

/* ---- changing a hold ---- */

static void a_seat_that_changes_its_type_costs_todays_price_and_keeps_its_place(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    int64_t fence = row_of(&hold)->fence;
    assert_int_equal(set_price(SECTION, 2600), VERDICT_OK);
    size_t logged = shop.paper.audit.n;
    begin_change(&a, &hold);
    ask_retype(&a, 1);
    ask_type(&a, "full", 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {2500, 1, FULL}, {2600, 1, FULL}, {500, 1, CHILD}, {700, 1, FULL},
                {300, 2, REDUCED});
    assert_int_equal(row_of(&hold)->fence, fence + 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(row_of(&hold)->seats[i], i);
    assert_logged(logged, "seat 1 available 1, seat 1 held 0");
}

static void a_seat_that_has_the_type_already_costs_what_it_did(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    int64_t fence = row_of(&hold)->fence;
    assert_int_equal(set_price(SECTION, 2600), VERDICT_OK);
    begin_change(&a, &hold);
    ask_retype(&a, 0);
    ask_retype(&a, 1);
    ask_type(&a, NULL, 1); /* unnamed means the first */
    ask_type(&a, "reduced", 1);
    assert_refused(&a, VERDICT_OK);
    assert_int_equal(a.c.change.hold.row.amount, 2500 + 2000 + 500 + 700 + 600);
    ask_close(&a);
    assert_int_equal(row_of(&hold)->fence, fence);
}

static void some_seats_change_their_type_beside_others_that_come_and_go(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    begin_change(&a, &hold);
    ask_add(&a, 9);
    ask_retype(&a, 0);
    ask_retype(&a, 1); /* as it is */
    ask_type(&a, "child", 1);
    ask_type(&a, "child", 1);
    ask_type(&a, "reduced", 1);
    ask_type(&a, "reduced", 1);
    ask_area(&a, BOX, 2);
    ask_type(&a, NULL, 1);
    a.removed[a.c.change.n_remove++] = 2;
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {500, 1, CHILD}, {2000, 1, REDUCED}, {500, 1, CHILD}, {700, 1, FULL},
                {300, 2, REDUCED}, {9000, 1, REDUCED}, {8000, 1, FULL});
    assert_int_equal(row_of(&hold)->seats[2], 9);
}

static void a_seat_of_somebody_else_does_not_change_its_type(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    ask_create(&a, hall, 7);
    (void)created(&a);
    begin_change(&a, &hold);
    ask_retype(&a, 7);
    ask_type(&a, "child", 1);
    assert_refused(&a, VERDICT_NOT_HELD);
    assert_int_equal(a.c.change.shortage.n_taken, 1);
    assert_int_equal(a.c.change.shortage.taken[0], 7);
    ask_close(&a);
}

static void a_place_of_a_full_area_changes_its_type(void **state)
{
    (void)state;
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, BOX, 3);
    struct id hold = created(&a);
    size_t logged = shop.paper.audit.n;
    begin_change(&a, &hold);
    ask_area(&a, BOX, 3);
    ask_type(&a, "child", 3);
    ask_remove_area(&a, BOX, 3);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {9000, 3, CHILD});
    assert_logged(logged, "3 of area 1 available 0, 3 of area 1 held 2");

    begin_change(&a, &hold);
    ask_area(&a, BOX, 2);
    ask_remove_area(&a, BOX, 1);
    ask_remove_type(&a, "child", 1);
    assert_refused(&a, VERDICT_SOLD_OUT);
    ask_close(&a);
}

static void the_same_type_in_and_out_of_an_area_is_a_contradiction(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    begin_change(&a, &hold);
    ask_area(&a, FLOOR, 2);
    ask_type(&a, "child", 1); /* and one of the first */
    ask_remove_area(&a, FLOOR, 1);
    ask_remove_type(&a, "full", 1);
    assert_refused(&a, VERDICT_INVALID_REQUEST);
    assert_non_null(a.c.change.conflict);
    ask_close(&a);
}

static void an_area_gives_back_places_of_the_type_that_is_named(void **state)
{
    (void)state;
    struct ask a;
    ask_create_none(&a, hall);
    ask_area(&a, FLOOR, 3);
    ask_type(&a, "reduced", 1);
    struct id hold = created(&a); /* reduced, full, full */
    ask_terms(&a, hall);
    ask_new_type(&a, "reduced", (const int64_t[]){KEPT, 400}, 2);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    begin_change(&a, &hold);
    ask_area(&a, FLOOR, 2);
    ask_type(&a, "reduced", 2);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {300, 1, REDUCED}, {700, 2, FULL}, {400, 2, REDUCED});

    begin_change(&a, &hold); /* what came last goes first */
    ask_remove_area(&a, FLOOR, 2);
    ask_remove_type(&a, "reduced", 1);
    ask_remove_type(&a, "full", 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {300, 1, REDUCED}, {700, 1, FULL}, {400, 1, REDUCED});

    begin_change(&a, &hold); /* a number is of the first type, of which there is one */
    ask_remove_area(&a, FLOOR, 2);
    assert_refused(&a, VERDICT_NOT_HELD);
    assert_int_equal(a.c.change.shortage.available, 1);
    ask_close(&a);
    begin_change(&a, &hold);
    ask_remove_area(&a, FLOOR, 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {300, 1, REDUCED}, {400, 1, REDUCED});
}

static void an_unknown_type_changes_nothing(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    begin_change(&a, &hold);
    ask_remove_area(&a, FLOOR, 1);
    ask_remove_type(&a, "senior", 1);
    assert_refused(&a, VERDICT_NO_SUCH_TYPE);
    assert_ptr_equal(a.c.change.shortage.unknown, a.removed_types);
    ask_close(&a);
}

/* ---- bookings ---- */

static void several_holds_keep_their_types_in_one_booking(void **state)
{
    (void)state;
    struct ask a;
    struct id first = hold_mixed();
    ask_create(&a, hall, 9, 8);
    ask_area(&a, BOX, 1);
    ask_area(&a, FLOOR, 2);
    ask_type(&a, "child", 2);
    ask_type(&a, NULL, 1);
    ask_type(&a, "reduced", 1);
    struct id second = created(&a);
    size_t logged = shop.paper.audit.n;
    ask_book(&a, hall, &first);
    ask_book_also(&a, &second);
    assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
    const struct booking_row *booking = &a.c.booking_create->booking;
    assert_int_equal(booking->n_prices, 7);
    assert_int_equal(booking->prices[2].type, CHILD); /* seats 2, 9 and 8 */
    assert_int_equal(booking->prices[2].n, 3);
    ask_close(&a);
    assert_runs(&first, {2500, 1, FULL}, {2000, 1, REDUCED}, {500, 3, CHILD}, {700, 1, FULL},
                {300, 3, REDUCED}, {700, 1, FULL}, {8000, 1, FULL});
    assert_logged(logged,
                  "seat 9 available 0, seat 8 available 0, 1 of area 1 available 0, "
                  "2 of area 0 available 0, seat 9 held 2, seat 8 held 2, 1 of area 0 held 0, "
                  "1 of area 0 held 1, 1 of area 1 held 0");
}

static void a_sale_is_logged_with_its_types(void **state)
{
    (void)state;
    struct ask a;
    struct id hold = hold_mixed();
    size_t logged = shop.paper.audit.n;
    ask_confirm(&a, hall, &hold, row_of(&hold)->fence, false);
    assert_int_equal(shop_run(&shop, &a), VERDICT_CREATED);
    assert_int_equal(a.c.confirm.booking.n_prices, 5);
    ask_close(&a);
    assert_logged(logged, "seat 0 booked 0, seat 1 booked 1, seat 2 booked 2, "
                          "1 of area 0 booked 0, 2 of area 0 booked 1");
}

/* ---- terms ---- */

static void what_was_held_before_there_were_types_is_of_the_first(void **state)
{
    (void)state;
    shop_close(&shop);
    struct event_def *def = def_hall(3, 4);
    def_area(def, "Floor", 700, 400);
    shop_init(&shop, def);
    hall = shop.event;
    struct ask a;
    ask_create(&a, hall, 0);
    ask_area(&a, FLOOR, 2);
    struct id hold = created(&a);
    ask_terms(&a, hall);
    ask_new_type(&a, "adult", (const int64_t[]){9999, 9999}, 2);
    ask_new_type(&a, "child", (const int64_t[]){500}, 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_int_equal(hall->terms->types.n, 2);
    begin_change(&a, &hold);
    ask_retype(&a, 0);
    ask_type(&a, "child", 1);
    ask_remove_area(&a, FLOOR, 1);
    ask_remove_type(&a, "adult", 1);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_runs(&hold, {500, 1, 1}, {700, 1, 0});
}

static void types_are_added_and_changed_up_to_sixteen(void **state)
{
    (void)state;
    struct ask a;
    ask_terms(&a, hall);
    for (int i = 0; i < TYPES_MAX - 3; i++)
        ask_new_type(&a, ids[i], NULL, 0);
    ask_new_type(&a, "reduced", (const int64_t[]){TYPE_PRICE_NONE, KEPT, 1}, 3);
    assert_int_equal(shop_do(&shop, &a), VERDICT_OK);
    assert_int_equal(hall->terms->types.n, TYPES_MAX);
    assert_int_equal(event_terms_price(hall->terms, SECTION, REDUCED), 2500);
    assert_int_equal(event_terms_price(hall->terms, FLOOR_PRICE, REDUCED), 300);
    assert_int_equal(event_terms_price(hall->terms, BOX_PRICE, REDUCED), 1);
    ask_terms(&a, hall);
    ask_new_type(&a, "one-more", NULL, 0);
    assert_refused(&a, VERDICT_INVALID_REQUEST);
    assert_string_equal(a.c.event_change.conflict, TYPES_TOO_MANY);
    ask_close(&a);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define claim_of_sixteen(name) cmocka_unit_test_setup_teardown(name, setup_sixteen, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(each_place_costs_what_its_type_costs),
        claim(what_no_type_is_named_for_is_of_the_first),
        claim(places_of_one_price_and_two_types_are_kept_apart),
        claim(an_unknown_type_is_refused),
        claim(the_best_seats_get_types_in_their_order),
        claim_of_sixteen(sixteen_types_of_one_area_fit_at_its_limit),
        claim_of_sixteen(sixteen_types_of_every_area_move_in_one_change),
        claim(resuming_compares_types),
        claim(resuming_compares_types_seat_by_seat),
        claim(a_seat_that_changes_its_type_costs_todays_price_and_keeps_its_place),
        claim(a_seat_that_has_the_type_already_costs_what_it_did),
        claim(some_seats_change_their_type_beside_others_that_come_and_go),
        claim(a_seat_of_somebody_else_does_not_change_its_type),
        claim(a_place_of_a_full_area_changes_its_type),
        claim(the_same_type_in_and_out_of_an_area_is_a_contradiction),
        claim(an_area_gives_back_places_of_the_type_that_is_named),
        claim(an_unknown_type_changes_nothing),
        claim(several_holds_keep_their_types_in_one_booking),
        claim(a_sale_is_logged_with_its_types),
        claim(what_was_held_before_there_were_types_is_of_the_first),
        claim(types_are_added_and_changed_up_to_sixteen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
