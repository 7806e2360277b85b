/* Compares best available with a model, in thousands of random halls.  best.c answers from its
 * index; the model lists every possible choice and takes the first in the documented order.  Seats
 * change between questions, so that updates of the index are tested, too.
 *
 * HF_SEED repeats one stream, HF_STEPS sets its number of questions. */
#include "support/fixtures.h"

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

/* ---- the model: every possible choice ---- */

/* One choice: the free seats of [first, last] in a row.  The smallest key is the documented one. */
struct option {
    int64_t key[5];
    uint32_t row, first, last;
    bool found;
};

static void consider(struct option *best, const struct option *o)
{
    size_t i = 0;
    while (i < 4 && o->key[i] == best->key[i])
        i++;
    if (!best->found || o->key[i] < best->key[i])
        *best = *o;
    best->found = true;
}

static uint32_t free_in_row(const struct event *e, const struct row *row)
{
    uint32_t n = 0;
    for (uint32_t s = row->first; s < row->first + row->n_seats; s++)
        n += is_free(e, s);
    return n;
}

static bool allowed(const struct event *e, const struct row *row, const struct best_want *want)
{
    const char *tier = e->def->sections.v[row->section].tier;
    if (want->section >= 0 && want->section != row->section)
        return false;
    return !want->tier ||
           (tier && strlen(tier) == want->tier_len && !strncmp(tier, want->tier, want->tier_len));
}

/* Returns whether `seat` has a free neighbour once [first, last] are taken. */
static bool has_company(const struct event *e, const struct row *row, uint32_t seat, uint32_t first,
                        uint32_t last)
{
    for (int step = -1; step <= 1; step += 2) {
        uint32_t other = seat + (uint32_t)step;
        if (other < row->first || other >= row->first + row->n_seats || other + 1 == 0)
            continue;
        if (is_free(e, other) && (other < first || other > last))
            return true;
    }
    return false;
}

static bool leaves_orphan(const struct event *e, const struct row *row, uint32_t first,
                          uint32_t last)
{
    for (uint32_t s = row->first; s < row->first + row->n_seats; s++)
        if (is_free(e, s) && (s < first || s > last) && has_company(e, row, s, 1, 0) &&
            !has_company(e, row, s, first, last))
            return true;
    return false;
}

/* Returns the distance from the middle of the row to the middle of [first, last], in half seats. */
static int64_t off_middle(const struct row *row, uint32_t first, uint32_t last)
{
    return llabs((int64_t)first + last - (2 * (int64_t)row->first + row->n_seats - 1));
}

/* Considers every way to take q seats of one row, only adjacent ones if `together` is set. */
static void options_of_row(const struct event *e, uint32_t r, uint32_t q, bool together,
                           struct option *best)
{
    const struct row *row = &e->rows.list[r];
    uint32_t end = row->first + row->n_seats;
    for (uint32_t first = row->first; first < end; first++)
        for (uint32_t last = first, n = 0; last < end; last++) {
            n += is_free(e, last);
            if (!is_free(e, first) || !is_free(e, last) || n != q ||
                (together && last - first != q - 1))
                continue;
            struct option o = {.row = r, .first = first, .last = last};
            o.key[0] = together ? leaves_orphan(e, row, first, last) : 2;
            o.key[1] = r;
            o.key[2] = last - first;
            o.key[3] = off_middle(row, first, last);
            o.key[4] = first;
            consider(best, &o);
        }
}

static uint32_t write_option(const struct event *e, const struct option *o, uint32_t *seats)
{
    uint32_t n = 0;
    for (uint32_t s = o->first; s <= o->last; s++)
        if (is_free(e, s))
            seats[n++] = s;
    return n;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Splits the group over several rows: takes from the first row in the documented order, then from
 * the next, until the group is complete. */
static void expect_rows(const struct event *e, const struct best_want *want, uint32_t *seats)
{
    uint32_t centre = 0, had = 0;
    bool *drawn = calloc(e->rows.n, sizeof *drawn);
    for (uint32_t r = 0, most = 0; r < e->rows.n; r++) {
        uint32_t n = free_in_row(e, &e->rows.list[r]);
        if (allowed(e, &e->rows.list[r], want) && n > most) {
            most = n;
            centre = r;
        }
    }
    while (had < want->quantity) {
        struct option next = {0};
        for (uint32_t r = 0; r < e->rows.n; r++) {
            if (drawn[r] || !allowed(e, &e->rows.list[r], want) ||
                !free_in_row(e, &e->rows.list[r]))
                continue;
            struct option o = {.row = r};
            o.key[0] = e->rows.list[r].section != e->rows.list[centre].section;
            o.key[1] = llabs((int64_t)r - centre);
            o.key[2] = r;
            consider(&next, &o);
        }
        assert_true(next.found);
        drawn[next.row] = true;
        uint32_t n = free_in_row(e, &e->rows.list[next.row]);
        struct option o = {0};
        if (n > want->quantity - had)
            n = want->quantity - had;
        options_of_row(e, next.row, n, false, &o);
        had += write_option(e, &o, seats + had);
    }
    qsort(seats, had, sizeof *seats, by_number);
    free(drawn);
}

enum kind { NONE_FITS, NO_ORPHAN, ORPHAN, ONE_ROW, MANY_ROWS, KINDS };

static enum kind expect(const struct event *e, const struct best_want *want, uint32_t *seats,
                        uint32_t *ret_available)
{
    struct option best = {0};
    *ret_available = 0;
    for (uint32_t r = 0; r < e->rows.n; r++)
        if (allowed(e, &e->rows.list[r], want)) {
            *ret_available += free_in_row(e, &e->rows.list[r]);
            options_of_row(e, r, want->quantity, true, &best);
        }
    for (uint32_t r = 0; !best.found && !want->adjacent && r < e->rows.n; r++)
        if (allowed(e, &e->rows.list[r], want))
            options_of_row(e, r, want->quantity, false, &best);
    if (best.found) {
        assert_int_equal(write_option(e, &best, seats), want->quantity);
        return best.key[0] == 0 ? NO_ORPHAN : best.key[0] == 1 ? ORPHAN : ONE_ROW;
    }
    if (want->adjacent || *ret_available < want->quantity)
        return NONE_FITS;
    expect_rows(e, want, seats);
    return MANY_ROWS;
}

/* Compares the answers of best.c and of the model, twice.  If seats are found, `seats` has them. */
static enum kind ask_and_compare(struct event *e, const struct best_want *want, uint32_t *seats)
{
    uint32_t n = want->quantity, available = UNTOUCHED, rightly_available;
    uint32_t *right = calloc(n, sizeof *right);
    enum kind kind = expect(e, want, right, &rightly_available);
    for (int time = 0; time < 2; time++) {
        for (uint32_t i = 0; i < n; i++)
            seats[i] = UNTOUCHED;
        assert_int_equal(best_find(e, want, seats, &available), kind != NONE_FITS);
        assert_int_equal(available, rightly_available);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(seats[i], kind == NONE_FITS ? UNTOUCHED : right[i]);
    }
    free(right);
    return kind;
}

/* ---- random halls ---- */

static struct {
    uint64_t seed;
    struct random random;
    size_t question, met[KINDS];
    bool finished;
} stream;

static uint32_t below(uint32_t bound) { return (uint32_t)random_below(&stream.random, bound); }

static const char *const tiers[] = {NULL, "A", "B", "AB"};
static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

static struct event *random_hall(uint32_t row_max)
{
    struct event_def *def = def_new("Random");
    uint32_t sections = below(5), rows = 1 + below(7);
    for (uint32_t s = 0; s < sections; s++) {
        def_section(def, names[s], tiers[below(4)], 100);
        for (uint32_t r = 0, n = 1 + below(rows); r < n; r++)
            def_row(def, names[r], below(8) ? 1 + below(row_max) : 1);
    }
    def_area(def, "floor", 100, 50);
    return event_of(def);
}

/* Takes or frees some scattered seats or a stretch of seats. */
static void random_changes(struct event *e)
{
    uint32_t n = e->def->n_seats;
    if (!n)
        return;
    for (uint32_t times = below(4); times > 0; times--) {
        enum seat_status to = below(3) ? (enum seat_status)(1 + below(3)) : SEAT_AVAILABLE;
        uint32_t first = below(n), len = below(3) ? 1 : 1 + below(n);
        uint32_t step = 1 + below(3);
        for (uint32_t s = first; s < n && s < first + len; s += step)
            event_load_seat(e, s, to, to == SEAT_AVAILABLE ? 0 : 77);
    }
}

static uint32_t longest_run(const struct event *e)
{
    uint32_t longest = 0;
    for (uint32_t r = 0; r < e->rows.n; r++)
        for (uint32_t i = 0, run = 0; i < e->rows.list[r].n_seats; i++) {
            run = is_free(e, e->rows.list[r].first + i) ? run + 1 : 0;
            longest = run > longest ? run : longest;
        }
    return longest;
}

static void random_want(const struct event *e, struct best_want *want, uint32_t quantity_max)
{
    static const char *const asked[] = {"A", "B", "ABC", "C", ""};
    *want = (struct best_want){.quantity = 1 + below(below(2) ? 5 : quantity_max), .section = -1};
    want->adjacent = below(2);
    if (below(3) == 0) { /* one too many, an exact fit, or one left over */
        uint32_t n = longest_run(e) + 1 - below(3);
        want->quantity = n >= 1 && n <= quantity_max ? n : want->quantity;
    }
    if (below(3) == 0)
        want->section = below((uint32_t)e->def->sections.n + 1);
    if (below(3) == 0) {
        want->tier = asked[below(5)];
        want->tier_len = strlen(want->tier);
        if (want->tier_len == 3)
            want->tier_len = 1 + below(3); /* A, AB or ABC, not followed by a NUL */
    }
}

/* Loads the same hall anew and asks again: the answer must not depend on the index's history. */
static void assert_same_when_loaded(const struct event *e, const struct best_want *want,
                                    const uint32_t *seats, bool found)
{
    struct event_def *def = def_new("Copy");
    for (size_t s = 0; s < e->def->sections.n; s++) {
        const struct section_def *section = &e->def->sections.v[s];
        def_section(def, section->name, section->tier, e->terms->prices.v[s]);
        for (size_t r = 0; r < section->rows.n; r++)
            def_row(def, section->rows.v[r].name, section->rows.v[r].seats);
    }
    struct event *copy = event_of(def);
    for (uint32_t s = 0; s < def->n_seats; s++)
        if (!is_free(e, s))
            take(copy, s);
    uint32_t *again = calloc(want->quantity, sizeof *again), available;
    assert_int_equal(best_find(copy, want, again, &available), found);
    if (found)
        assert_memory_equal(again, seats, want->quantity * sizeof *seats);
    free(again);
    event_free(copy);
}

#define QUESTIONS_A_HALL 20

static void random_questions(struct event *e, size_t n, uint32_t quantity_max)
{
    uint32_t *seats = calloc(quantity_max, sizeof *seats);
    for (size_t i = 0; i < n; i++, stream.question++) {
        struct best_want want;
        random_changes(e);
        random_want(e, &want, quantity_max);
        enum kind kind = ask_and_compare(e, &want, seats);
        stream.met[kind]++;
        if (i % 8 == 0)
            assert_same_when_loaded(e, &want, seats, kind != NONE_FITS);
        for (uint32_t s = 0; kind != NONE_FITS && s < want.quantity && below(4); s++)
            take(e, seats[s]);
    }
    free(seats);
}

static void run_seed(uint64_t usual, size_t questions, uint32_t row_max, uint32_t quantity_max)
{
    memset(&stream, 0, sizeof stream);
    stream.seed = test_seed(usual);
    random_init_seeded(&stream.random, stream.seed);
    while (stream.question < questions) {
        struct event *e = random_hall(row_max);
        random_questions(e, QUESTIONS_A_HALL, quantity_max);
        event_free(e);
    }
    stream.finished = true;
    for (enum kind kind = 0; stream.seed == usual && kind < KINDS; kind++)
        if (stream.met[kind] < questions / 100) /* a stream without this kind would prove little */
            fail_msg("kind %d was met only %zu times in %zu", (int)kind, stream.met[kind],
                     questions);
}

static void the_choice_is_the_documented_one(void **state)
{
    run_seed((uint64_t)(uintptr_t)*state, test_steps(8000), 12, 16);
}

/* Rows need several words of bits, and quantities exceed one word. */
static void long_rows_and_large_groups_are_no_exception(void **state)
{
    run_seed((uint64_t)(uintptr_t)*state, test_steps(8000) / 8, 200, 200);
}

static int tell_seed(void **state)
{
    (void)state;
    if (!stream.finished)
        print_error("HF_SEED=%llu repeats it; it failed at question %zu\n",
                    (unsigned long long)stream.seed, stream.question);
    return 0;
}

#define seeded(claim, number)                                                                      \
    {                                                                                              \
#claim "_from_seed_" #number, claim, NULL, tell_seed, (void *)(uintptr_t)number            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        seeded(the_choice_is_the_documented_one, 1),
        seeded(the_choice_is_the_documented_one, 20261115),
        seeded(the_choice_is_the_documented_one, 42),
        seeded(long_rows_and_large_groups_are_no_exception, 7),
    };
    return cmocka_run_group_tests_name("best_model", tests, NULL, NULL);
}
