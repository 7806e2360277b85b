/* Claims about single seats: by example, compared with the definition in random rows, and as the
 * rules judge holds by them. */
#include "support/paper.h"

#include <stdlib.h>
#include <string.h>

#include "rules/lone.h"

#define SEATS_MAX 24

static struct event *event_of(struct event_def *def)
{
    struct clock_row clock = {.event = 1, .now = T0_MS};
    def->id.key = 1;
    return event_new(def, &clock);
}

/* ---- by example ---- */

/* Reads rows from a picture, between which there are spaces: "." is a free seat, "x" is taken, "+"
 * is to be added to the hold, "h" is the hold's, "-" is to be given back. */
static struct event *hall(const char *picture, struct lone_choice *choice, uint32_t add[SEATS_MAX],
                          uint32_t remove[SEATS_MAX])
{
    struct event_def *def = def_new("Drawn");
    char name[] = "a";
    def_section(def, "S", NULL, 100);
    for (const char *c = picture; *c; name[0]++) {
        uint32_t len = (uint32_t)strcspn(c, " ");
        def_row(def, name, len);
        c += len + (c[len] == ' ');
    }
    struct event *e = event_of(def);
    *choice = (struct lone_choice){.hold = HOLD_KEY(1, 5), .add = add, .remove = remove};
    uint32_t seat = 0;
    for (const char *c = picture; *c; c++) {
        if (*c == ' ')
            continue;
        if (*c == '+')
            add[choice->n_add++] = seat;
        if (*c == '-')
            remove[choice->n_remove++] = seat;
        if (*c != '.' && *c != '+')
            event_load_seat(e, seat, SEAT_HELD, HOLD_KEY(1, *c == 'x' ? 7 : 5));
        seat++;
    }
    return e;
}

/* Asserts that the seats marked "!" in `left` are left single, and no others. */
static void shows(const char *picture, const char *left)
{
    uint32_t add[SEATS_MAX], remove[SEATS_MAX], lone[2 * SEATS_MAX];
    struct lone_choice choice;
    struct event *e = hall(picture, &choice, add, remove);
    uint32_t n = lone_seats(e, &choice, lone), met = 0, seat = 0;
    for (const char *c = left; *c; c++) {
        bool is_lone = met < n && lone[met] == seat;
        if (*c != ' ' && is_lone != (*c == '!'))
            fail_msg("%s: seat %u is %sleft single", picture, seat, is_lone ? "" : "not ");
        met += *c != ' ' && is_lone;
        seat += *c != ' ';
    }
    assert_int_equal(met, n);
    event_free(e);
}

static void a_choice_that_leaves_a_single_seat_is_found(void **state)
{
    (void)state;
    shows(".+....", "!.....");
    shows("....+.", ".....!");
    shows(".+.", "!.!");
    shows("x.+...", ".!....");
    shows("...+.x", "....!.");
    shows("..+.+..", "...!...");
    shows(".+.... ....+.", "!..... .....!");
    shows(".++.", "!..!");
}

static void a_choice_that_leaves_none_is_not(void **state)
{
    (void)state;
    shows("+.....", "......");
    shows("..+...", "......");
    shows("....++", "......");
    shows("++++++", "......");
    shows("x++..", ".....");
    shows(".. +. ..", ".. .. ..");
}

static void a_seat_that_was_single_before_does_not_count(void **state)
{
    (void)state;
    shows(".x+..", ".....");
    shows(".x++ x.x.", ".... ....");
}

static void what_is_left_of_a_stretch_may_be_single(void **state)
{
    (void)state;
    shows("+.", "..");
    shows("++.", "...");
    shows("+.+", "...");
    shows("x.+x", "....");
    shows(".++x.....", ".........");
    shows("++++.x+..", ".........");
}

static void a_change_is_judged_by_what_the_hold_has_afterwards(void **state)
{
    (void)state;
    shows("h-h...", ".!....");
    shows("h-h", "...");
    shows("-hh...", "!.....");
    shows("hh-...", "......");
    shows("hh+...", "......");
    shows("hh.+..", "..!...");
    shows(".h....", "......");
    shows(".h... +...", "..... ....");
    shows("--", "..");
    shows("-+..", "!...");
    shows("h-x.....", "........");
}

/* ---- places for wheelchairs, and aisles ---- */

static void places_for_wheelchairs_count_as_taken(void **state)
{
    (void)state;
    struct event_def *def = def_new("Hall");
    uint32_t first, second, lone[8];
    def->venue = venue_new();
    vec_push(&def->categories)->name = hf_strndup("A", 1);
    *vec_push(&def->terms.prices) = 100;
    def_section(def, "S", NULL, 100);
    def->sections.v[0].category = 0;
    def_row(def, "a", 6);
    static const unsigned flags[] = {SEAT_ACCESSIBLE, 0, 0, 0, 0, SEAT_COMPANION};
    static const char *const labels[] = {"1", "2", "3", "4", "5", "6"};
    for (size_t i = 0; i < 6; i++)
        venue_add(def->venue,
                  &(struct venue_seat){
                      .section = "S", .row = "a", .label = labels[i], .flags = flags[i]});
    assert_true(event_def_number(def) && venue_index(def->venue, &first, &second));
    struct event *e = event_of(def);
    const uint32_t ends[] = {0, 5}, beside[] = {1}, inner[] = {2};
    struct lone_choice choice = {.add = ends, .n_add = 2};
    assert_int_equal(lone_seats(e, &choice, lone), 0);
    choice = (struct lone_choice){.add = beside, .n_add = 1};
    assert_int_equal(lone_seats(e, &choice, lone), 0);
    choice = (struct lone_choice){.add = inner, .n_add = 1};
    assert_int_equal(lone_seats(e, &choice, lone), 1);
    assert_int_equal(lone[0], 1);
    event_free(e);
}

/* ---- the definition, in random rows ---- */

/* A row as the definition sees it: before and after, is the seat free, the hold's or neither? */
struct model_row {
    char before[SEATS_MAX], after[SEATS_MAX];
    uint32_t n;
};

static bool is_alone(const char *row, uint32_t n, uint32_t i)
{
    return row[i] == '.' && (i == 0 || row[i - 1] != '.') && (i + 1 == n || row[i + 1] != '.');
}

/* Is the seat all that is left of its stretch, of free seats and those of the hold? */
static bool is_the_rest(const struct model_row *m, uint32_t i)
{
    uint32_t low = i, high = i, n_free = 0;
    while (low > 0 && m->after[low - 1] != 'x')
        low--;
    while (high + 1 < m->n && m->after[high + 1] != 'x')
        high++;
    for (uint32_t k = low; k <= high; k++)
        n_free += m->after[k] == '.';
    return n_free == 1;
}

static void the_definition_is_kept_in_random_rows(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, test_seed(11));
    size_t n_left = 0;
    for (size_t steps = test_steps(20000); steps > 0; steps--) {
        struct model_row m = {.n = 1 + (uint32_t)random_below(&random, SEATS_MAX - 1)};
        char picture[SEATS_MAX + 1] = "", right[SEATS_MAX + 1] = "";
        uint64_t busy = 1 + random_below(&random, 4);
        for (uint32_t i = 0; i < m.n; i++) {
            picture[i] = random_below(&random, 5) < busy ? "x+h-+"[random_below(&random, 5)] : '.';
            m.before[i] = (char)(picture[i] == '.' || picture[i] == '+' ? '.' : 'x');
            m.after[i] = (char)(picture[i] == '-' ? '.' : picture[i]);
        }
        for (uint32_t i = 0; i < m.n; i++) {
            bool left =
                is_alone(m.after, m.n, i) && !is_alone(m.before, m.n, i) && !is_the_rest(&m, i);
            right[i] = left ? '!' : '.';
            n_left += left;
        }
        shows(picture, right);
    }
    assert_true(n_left > 100);
}

/* ---- as the rules judge ---- */

static struct paper paper;
static struct event *sale;

static void set_rule(int64_t rule)
{
    struct ask a;
    ask_terms(&a, sale);
    a.c.event_change.given = EVENT_LONE_SEATS;
    a.c.event_change.terms.lone_seats = rule;
    assert_int_equal(paper_run(&paper, &a), VERDICT_OK);
    ask_close(&a);
}

static void begin(int64_t rule)
{
    paper_init(&paper, 1);
    sale = paper_event(&paper, def_hall(2, 6));
    set_rule(rule);
}

static enum verdict hold(bool is_box_office, const uint32_t *seats, uint32_t n, struct ask *a)
{
    ask_create_n(a, sale, seats, n);
    a->c.create.is_box_office = is_box_office;
    return paper_run(&paper, a);
}

static void only_refuse_refuses(void **state)
{
    (void)state;
    const uint32_t second[] = {1};
    for (int64_t rule = LONE_SEATS_ALLOW; rule <= LONE_SEATS_REFUSE; rule++) {
        struct ask a;
        begin(rule);
        bool refused = rule == LONE_SEATS_REFUSE;
        assert_int_equal(hold(false, second, 1, &a), refused ? VERDICT_LONE_SEAT : VERDICT_CREATED);
        if (refused) {
            assert_int_equal(command_shortage(&a.c)->n_taken, 1);
            assert_int_equal(command_shortage(&a.c)->taken[0], 0);
        }
        ask_close(&a);
        paper_check(&paper);
        paper_close(&paper);
    }
}

static void a_box_office_may_leave_single_seats(void **state)
{
    (void)state;
    const uint32_t second[] = {1};
    struct ask a;
    begin(LONE_SEATS_REFUSE);
    assert_int_equal(hold(true, second, 1, &a), VERDICT_CREATED);
    ask_close(&a);
    paper_close(&paper);
}

static void a_change_of_a_hold_is_judged_likewise(void **state)
{
    (void)state;
    const uint32_t front[] = {0, 1, 2};
    struct ask made, a;
    begin(LONE_SEATS_REFUSE);
    assert_int_equal(hold(false, front, 3, &made), VERDICT_CREATED);
    const struct hold_row *row = command_hold(&made.c);
    for (int turn = 0; turn < 2; turn++) {
        ask_change(&a, sale, &row->id, row->fence);
        ask_remove(&a, 1);
        a.c.change.is_box_office = turn;
        assert_int_equal(paper_run(&paper, &a), turn ? VERDICT_OK : VERDICT_LONE_SEAT);
        if (!turn) {
            assert_int_equal(command_shortage(&a.c)->n_taken, 1);
            assert_int_equal(command_shortage(&a.c)->taken[0], 1);
        }
        ask_close(&a);
    }
    ask_close(&made);
    paper_check(&paper);
    paper_close(&paper);
}

/* Seat 3 of the row would be single but for the hold of seats 4 and 5, which has run out. */
static void holds_that_ran_out_are_free(void **state)
{
    (void)state;
    const uint32_t back[] = {4, 5}, third[] = {2};
    struct ask first, a;
    begin(LONE_SEATS_REFUSE);
    paper.expire_max = 0;
    assert_int_equal(hold(false, back, 2, &first), VERDICT_CREATED);
    ask_close(&first);
    assert_int_equal(hold(false, third, 1, &a), VERDICT_LONE_SEAT);
    assert_int_equal(command_shortage(&a.c)->taken[0], 3);
    ask_close(&a);
    paper.now += DEF_TTL_MS;
    assert_int_equal(hold(false, third, 1, &a), VERDICT_CREATED);
    ask_close(&a);
    paper_close(&paper);
}

/* Of the rows "..x.." and ".x.x..", any three seats of the first leave a single one. */
static void best_available_avoids_single_seats_where_seats_may_be_apart(void **state)
{
    (void)state;
    for (int64_t rule = LONE_SEATS_ALLOW; rule <= LONE_SEATS_REFUSE; rule += LONE_SEATS_REFUSE) {
        struct event_def *def = def_new("Apart");
        struct ask a;
        def_section(def, "S", NULL, 100);
        def_row(def, "a", 5);
        def_row(def, "b", 6);
        paper_init(&paper, 1);
        sale = paper_event(&paper, def);
        set_rule(rule);
        const uint32_t taken[] = {2, 6, 8};
        assert_int_equal(hold(true, taken, 3, &a), VERDICT_CREATED);
        ask_close(&a);
        ask_best(&a, sale, 3, false);
        assert_int_equal(paper_run(&paper, &a), VERDICT_CREATED);
        const struct hold_row *row = command_hold(&a.c);
        assert_int_equal(row->seats[0] >= 5, rule == LONE_SEATS_REFUSE);
        ask_close(&a);
        paper_close(&paper);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_that_leaves_a_single_seat_is_found),
        cmocka_unit_test(a_choice_that_leaves_none_is_not),
        cmocka_unit_test(a_seat_that_was_single_before_does_not_count),
        cmocka_unit_test(what_is_left_of_a_stretch_may_be_single),
        cmocka_unit_test(a_change_is_judged_by_what_the_hold_has_afterwards),
        cmocka_unit_test(places_for_wheelchairs_count_as_taken),
        cmocka_unit_test(the_definition_is_kept_in_random_rows),
        cmocka_unit_test(only_refuse_refuses),
        cmocka_unit_test(a_box_office_may_leave_single_seats),
        cmocka_unit_test(a_change_of_a_hold_is_judged_likewise),
        cmocka_unit_test(holds_that_ran_out_are_free),
        cmocka_unit_test(best_available_avoids_single_seats_where_seats_may_be_apart),
    };
    return cmocka_run_group_tests_name("lone", tests, NULL, NULL);
}
