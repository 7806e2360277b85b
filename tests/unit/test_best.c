/* Claims about best available: by example, for a whole sale, and while holds change.
 * test_best_model.c compares it with a model. */
#include "support/paper.h"

#include <stdlib.h>
#include <string.h>

#include "rules/best.h"

#define UNTOUCHED UINT32_C(0xdeadbeef)

static struct event *event_of(struct event_def *def)
{
    struct clock_row clock = {.event = 1, .now = T0_MS};
    def->id.key = 1;
    return event_new(def, &clock);
}

static bool is_free(const struct event *e, uint32_t seat)
{
    return e->seats[seat].status == SEAT_AVAILABLE;
}

static void take(struct event *e, uint32_t seat) { event_load_seat(e, seat, SEAT_BOOKED, 77); }

/* ---- by example ---- */

/* Builds a hall from pictures: each string is a row, "." is a free seat, and "|" begins the next
 * section, whose tier is the next letter (A, B ...). */
static struct event *hall(const char *const *rows, size_t n)
{
    struct event_def *def = def_new("Drawn");
    char tier[] = "A", name[] = "a";
    def_section(def, "1", tier, 100);
    for (size_t r = 0; r < n; r++, name[0]++) {
        if (strcmp(rows[r], "|") == 0) {
            tier[0]++;
            def_section(def, tier, tier, 100);
        } else {
            def_row(def, name, (uint32_t)strlen(rows[r]));
        }
    }
    struct event *e = event_of(def);
    uint32_t seat = 0;
    for (size_t r = 0; r < n; r++)
        for (const char *c = rows[r]; *c && *c != '|'; c++, seat++)
            if (*c != '.')
                take(e, seat);
    return e;
}

static void draw(const struct event *e, const uint32_t *seats, uint32_t n, struct buf *out)
{
    for (uint32_t r = 0; r < e->rows.n; r++) {
        const struct row *row = &e->rows.list[r];
        if (r)
            buf_char(out, row->section == row[-1].section ? ' ' : '|');
        for (uint32_t s = row->first; s < row->first + row->n_seats; s++) {
            char c = is_free(e, s) ? '.' : 'x';
            for (uint32_t i = 0; i < n; i++)
                if (seats[i] == s)
                    c = '#';
            buf_char(out, c);
        }
    }
    buf_char(out, '\0');
}

/* Asserts that the hall looks like `picture` once the chosen seats are marked "#".  A NULL picture
 * means that best available must find nothing. */
static void assert_picture(const struct best_want *want, const char *picture,
                           const char *const *rows, size_t n)
{
    struct event *e = hall(rows, n);
    uint32_t seats[SEATS_INLINE];
    struct buf out = {0};
    assert_in_range(want->quantity, 1, SEATS_INLINE);
    uint32_t available;
    bool found = best_find(e, want, seats, &available);
    draw(e, seats, found ? want->quantity : 0, &out);
    if (picture)
        assert_string_equal(out.data, picture);
    else if (found)
        fail_msg("%u were found: %s", want->quantity, out.data);
    buf_close(&out);
    event_free(e);
}

#define shows(n, is_adjacent, picture, ...)                                                        \
    assert_picture(&(struct best_want){.quantity = (n), .section = -1, .adjacent = (is_adjacent)}, \
                   picture, (const char *const[]){__VA_ARGS__},                                    \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void a_hall_fills_from_the_front_and_the_middle(void **state)
{
    (void)state;
    shows(2, true, "..##.. ......", "......", "......");
    shows(1, true, "..#..", ".....");
    shows(2, true, "x.x ..##..", "x.x", "......");
    shows(2, true, "xx|..##..", "xx", "|", "......");
    shows(1, true, "#", ".");
    shows(3, true, "x###", "x...");
}

static void a_single_seat_is_not_left_over_if_that_can_be_helped(void **state)
{
    (void)state;
    shows(2, true, "##...", ".....");
    shows(2, true, "... ##", "...", "..");
    shows(2, true, "...|##", "...", "|", "..");
    shows(1, true, ".. #", "..", ".");
    shows(2, true, "##x...", "..x...");
    shows(2, true, "##xx..", "..xx..");
}

static void a_single_seat_is_left_over_if_there_is_no_other_way(void **state)
{
    (void)state;
    shows(2, true, "##. xx", "...", "xx");
    shows(1, true, "#.", "..");
    shows(3, true, ".###x", "....x");
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    shows(1, true, NULL, "xxx", "x");
    shows(1, false, NULL, "xxx", "x");
    shows(3, true, NULL, "..", "..");
    shows(2, true, NULL, ".x.", ".");
    shows(5, false, NULL, "..", "..");
}

static void a_group_that_may_be_split_stays_close(void **state)
{
    (void)state;
    shows(2, false, "..##x", "....x");
    shows(4, false, ".x#x###", ".x.x...");
    shows(2, false, ".x#x#x.x.", ".x.x.x.x.");
    shows(3, false, ".x. #x##", ".x.", ".x..");
    shows(5, false, "## ### xx ..", "..", "...", "xx", "..");
    shows(5, false, "## xx ###|..", "..", "xx", "...", "|", "..");
    shows(5, false, "# ###|#.", ".", "...", "|", "..");
    shows(4, false, ".#x #x#x#|.", "..x", ".x.x.", "|", ".");
}

/* ---- prices ---- */

/* Builds a hall from pictures of rows whose seats have categories: "a" and "b" are free seats of
 * category A and B, "x" is taken. */
static struct event *priced_hall(const int64_t prices[2], const char *const *rows, size_t n)
{
    struct event_def *def = def_new("Priced");
    uint32_t first, second;
    def->venue = venue_new();
    for (int i = 0; i < 2; i++) {
        vec_push(&def->categories)->name = hf_strndup(&"AB"[i], 1);
        *vec_push(&def->terms.prices) = prices[i];
    }
    struct section_def *section = vec_push(&def->sections);
    section->name = hf_strndup("S", 1);
    section->category = -1;
    for (size_t r = 0; r < n; r++) {
        const char name[] = {(char)('a' + r), '\0'};
        def_row(def, name, (uint32_t)strlen(rows[r]));
        for (const char *c = rows[r]; *c; c++) {
            const char label[] = {(char)('a' + (c - rows[r])), '\0'};
            venue_add(def->venue,
                      &(struct venue_seat){
                          .section = "S", .row = name, .label = label, .category = *c == 'b'});
        }
    }
    assert_true(event_def_number(def) && venue_index(def->venue, &first, &second));
    struct event *e = event_of(def);
    uint32_t seat = 0;
    for (size_t r = 0; r < n; r++)
        for (const char *c = rows[r]; *c; c++, seat++)
            if (*c == 'x')
                take(e, seat);
    return e;
}

/* Asserts that the hall looks like `picture` once the chosen seats are marked "#". */
static void assert_priced(const struct best_want *want, int64_t price_a, int64_t price_b,
                          const char *picture, const char *const *rows, size_t n)
{
    struct event *e = priced_hall((const int64_t[]){price_a, price_b}, rows, n);
    uint32_t seats[SEATS_INLINE], available;
    struct buf out = {0};
    bool found = best_find(e, want, seats, &available);
    draw(e, seats, found ? want->quantity : 0, &out);
    assert_string_equal(out.data, picture);
    buf_close(&out);
    event_free(e);
}

#define costs(n, is_adjacent, of_category, price_a, price_b, picture, ...)                         \
    assert_priced(                                                                                 \
        &(struct best_want){                                                                       \
            .quantity = (n), .section = -1, .category = (of_category), .adjacent = (is_adjacent)}, \
        price_a, price_b, picture, (const char *const[]){__VA_ARGS__},                             \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void the_dearest_category_comes_first(void **state)
{
    (void)state;
    costs(2, true, 0, 65, 95, ".... ##..", "aaaa", "bbbb");
    costs(2, true, 0, 95, 65, "##.. ....", "aaaa", "bbbb");
    costs(2, true, 0, 65, 95, "..##..", "aabbaa");
    costs(1, true, 0, 65, 95, "...#", "aabb");
    costs(2, true, 0, 65, 95, "##x....", "bbxaaaa");
    costs(3, true, 0, 65, 95, "..###.. ..", "aaaaaaa", "bb");
    costs(3, false, 0, 65, 95, "#x#x# .x..", "bxbxb", "axaa");
}

static void equal_prices_make_no_difference(void **state)
{
    (void)state;
    costs(2, true, 0, 65, 65, "##.. ....", "aaaa", "bbbb");
    costs(2, true, 0, 65, 65, "##..", "aabb");
    costs(4, true, 0, 65, 65, "..####x", "aabbaax");
}

static void a_group_has_several_categories_if_none_has_room_for_it(void **state)
{
    (void)state;
    costs(4, true, 0, 65, 95, "#### ..", "aabb", "bb");
    costs(3, true, 0, 65, 95, ".. .. ###", "aa", "bb", "aab");
    costs(3, false, 0, 65, 95, "#x#x#", "bxaxb");
}

static void seats_of_other_categories_are_neighbours(void **state)
{
    (void)state;
    costs(2, true, 0, 65, 95, "##..", "abba"); /* two of B would leave both of A alone */
    costs(1, true, 0, 65, 95, "x..x #..", "xbax", "aaa");
    costs(2, true, 2, 65, 95, "##..", "bbba");
    costs(2, true, 2, 65, 95, ".##.", "abba"); /* asked for by name there is no other choice */
}

/* ---- filters ---- */

#define asks(n, in_section, of_tier, picture)                                                      \
    assert_picture(&(struct best_want){.quantity = (n),                                            \
                                       .section = (in_section),                                    \
                                       .tier = (of_tier),                                          \
                                       .tier_len = (of_tier) ? 1 : 0},                             \
                   picture, rows, sizeof rows / sizeof *rows)

static void only_the_section_and_the_tier_asked_for_are_looked_at(void **state)
{
    (void)state;
    static const char *const rows[] = {"....", "|", "....", "|", ".x.", "x.."};
    static const char *none = NULL;
    asks(2, 0, none, "##..|....|.x. x..");
    asks(2, 1, none, "....|##..|.x. x..");
    asks(2, 2, none, "....|....|.x. x##");
    asks(4, 2, none, "....|....|#x# x##");
    asks(5, 2, none, NULL);
    asks(1, 3, none, NULL);
    asks(1, INT64_MAX, none, NULL);
    asks(2, -1, "B", "....|##..|.x. x..");
    asks(2, -1, "Cx", "....|....|.x. x##");
    asks(2, 2, "C", "....|....|.x. x##");
    asks(2, 1, "C", NULL);
    asks(1, -1, "Z", NULL);
}

static void an_event_without_seats_has_none_available(void **state)
{
    (void)state;
    struct event_def *def = def_new("Standing");
    def_area(def, "Floor", 100, 500);
    struct event *e = event_of(def);
    uint32_t seat = UNTOUCHED, available = UNTOUCHED;
    for (int64_t section = -1; section < 2; section++) {
        struct best_want want = {.quantity = 1, .section = section};
        assert_false(best_find(e, &want, &seat, &available));
        assert_int_equal(available, 0);
        assert_int_equal(seat, UNTOUCHED);
    }
    event_free(e);
}

static void a_quantity_beyond_all_bounds_is_only_refused(void **state)
{
    (void)state;
    struct event *e = event_of(def_hall(3, 100));
    for (uint32_t q = UINT32_MAX; q > UINT32_MAX - 4; q--) {
        uint32_t available;
        assert_false(
            best_find(e, &(struct best_want){.quantity = q, .section = -1}, NULL, &available));
        assert_int_equal(available, 300);
    }
    event_free(e);
}

/* ---- selling a whole hall ---- */

static void sell_out(uint32_t rows, uint32_t row_len, uint32_t quantity, bool adjacent)
{
    struct event *e = event_of(def_hall(rows, row_len));
    uint32_t seats[8], available, sold = 0, n = e->def->n_seats;
    struct best_want want = {.quantity = quantity, .section = -1, .adjacent = adjacent};
    while (best_find(e, &want, seats, &available)) {
        assert_int_equal(available, n - sold);
        for (uint32_t i = 0; i < quantity; i++) {
            assert_true(is_free(e, seats[i])); /* so that no seat is sold twice */
            assert_true(i == 0 || seats[i] > seats[i - 1]);
            take(e, seats[i]);
        }
        sold += quantity;
    }
    assert_int_equal(available, n - sold);
    assert_int_equal(sold, n);
    assert_false(
        best_find(e, &(struct best_want){.quantity = 1, .section = -1}, seats, &available));
    event_free(e);
}

static void a_hall_sells_out_seat_by_seat_and_each_once(void **state)
{
    (void)state;
    for (uint32_t q = 1; q <= 8; q *= 2)
        sell_out(40, 50, q, false);
    sell_out(40, 50, 1, true);
    sell_out(40, 50, 2, true);
    sell_out(2000, 1, 1, true);
    sell_out(1, 2000, 5, false);
}

/* ---- through decide and the view ---- */

static void assert_best(struct event *e, uint32_t first, uint32_t rightly_available)
{
    uint32_t seats[2], available;
    struct best_want want = {.quantity = 2, .section = -1, .adjacent = true};
    assert_true(best_find(e, &want, seats, &available));
    assert_int_equal(seats[0], first);
    assert_int_equal(seats[1], first + 1);
    assert_int_equal(available, rightly_available);
}

static void it_follows_holds_expiry_release_and_what_was_undone(void **state)
{
    (void)state;
    struct paper p;
    struct ask a;
    paper_init(&p, 1);
    struct event *e = paper_event(&p, def_hall(2, 6));
    assert_best(e, 2, 12);
    ask_create(&a, e, 2, 3);
    assert_int_equal(paper_run(&p, &a), VERDICT_CREATED);
    struct id hold = command_hold(&a.c)->id;
    ask_close(&a);
    assert_best(e, 0, 10);

    paper_begin(&p);
    ask_create(&a, e, 0, 1);
    assert_int_equal(paper_decide(&p, &a), DECIDED);
    assert_best(e, 4, 8);
    paper_fail(&p);
    ask_close(&a);
    assert_best(e, 0, 10);

    paper_begin(&p);
    ask_release(&a, e, &hold);
    assert_int_equal(paper_decide(&p, &a), DECIDED);
    assert_best(e, 2, 12);
    paper_fail(&p);
    ask_close(&a);
    assert_best(e, 0, 10);

    p.now += DEF_TTL_MS;
    paper_begin(&p);
    assert_best(e, 2, 12);
    paper_commit(&p);

    ask_create(&a, e, 2, 3);
    assert_int_equal(paper_run(&p, &a), VERDICT_CREATED);
    ask_close(&a);
    view_forget(p.view, e);
    assert_best(e, 2, 12);
    event_load_seat(e, 3, SEAT_BLOCKED, 0);
    assert_best(e, 4, 11);
    paper_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hall_fills_from_the_front_and_the_middle),
        cmocka_unit_test(a_single_seat_is_not_left_over_if_that_can_be_helped),
        cmocka_unit_test(a_single_seat_is_left_over_if_there_is_no_other_way),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_group_that_may_be_split_stays_close),
        cmocka_unit_test(the_dearest_category_comes_first),
        cmocka_unit_test(equal_prices_make_no_difference),
        cmocka_unit_test(a_group_has_several_categories_if_none_has_room_for_it),
        cmocka_unit_test(seats_of_other_categories_are_neighbours),
        cmocka_unit_test(only_the_section_and_the_tier_asked_for_are_looked_at),
        cmocka_unit_test(an_event_without_seats_has_none_available),
        cmocka_unit_test(a_quantity_beyond_all_bounds_is_only_refused),
        cmocka_unit_test(a_hall_sells_out_seat_by_seat_and_each_once),
        cmocka_unit_test(it_follows_holds_expiry_release_and_what_was_undone),
    };
    return cmocka_run_group_tests_name("best", tests, NULL, NULL);
}
