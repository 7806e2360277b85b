/* Compares best available with a model, in thousands of random halls.  best.c answers from its
 * index; the model lists every possible choice and takes the first in the documented order.  Seats
 * change between questions, so that updates of the index are tested, too.
 *
 * HF_SEED repeats one stream, HF_STEPS sets its number of questions. */
#include "support/fixtures.h"

#include <stdio.h>
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

#define ANY (-1)

/* Which seats a choice is made of: those of a category, of all categories at a price, or any. */
struct scope {
    int64_t category, price;
};

/* One choice: the fitting seats of [first, last] in a row.  The smallest key is the documented one.
 */
#define KEYS 7
struct option {
    int64_t key[KEYS];
    struct scope scope;
    uint32_t row, first, last;
    bool found;
};

static void consider(struct option *best, const struct option *o)
{
    size_t i = 0;
    while (i < KEYS - 1 && o->key[i] == best->key[i])
        i++;
    if (!best->found || o->key[i] < best->key[i])
        *best = *o;
    best->found = true;
}

/* Prices count where the event has categories of its own; elsewhere sections rank as listed. */
static int64_t price_of_category(const struct event *e, size_t category)
{
    return e->def->categories.n ? e->terms->prices.v[category] : 0;
}

static int64_t price_of(const struct event *e, uint32_t seat)
{
    return price_of_category(e, event_seat_category(e, seat));
}

static bool fits(const struct event *e, uint32_t seat, struct scope scope)
{
    return is_free(e, seat) &&
           (scope.category == ANY || event_seat_category(e, seat) == scope.category) &&
           (scope.price == ANY || price_of(e, seat) == scope.price);
}

static uint32_t free_in_row(const struct event *e, const struct row *row, struct scope scope)
{
    uint32_t n = 0;
    for (uint32_t s = row->first; s < row->first + row->n_seats; s++)
        n += fits(e, s, scope);
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

static uint32_t free_in_all(const struct event *e, const struct best_want *want, struct scope scope)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < e->rows.n; r++)
        n += allowed(e, &e->rows.list[r], want) ? free_in_row(e, &e->rows.list[r], scope) : 0;
    return n;
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

/* Considers every way to take q seats of one row, only adjacent ones if `together` is set.  Of
 * seats that are apart, those of the first category come first. */
static void options_of_row(const struct event *e, uint32_t r, uint32_t q, bool together,
                           struct scope scope, struct option *best)
{
    const struct row *row = &e->rows.list[r];
    uint32_t end = row->first + row->n_seats;
    for (uint32_t first = row->first; first < end; first++)
        for (uint32_t last = first, n = 0; last < end; last++) {
            n += fits(e, last, scope);
            if (!fits(e, first, scope) || !fits(e, last, scope) || n != q ||
                (together && last - first != q - 1))
                continue;
            struct option o = {.row = r, .first = first, .last = last, .scope = scope};
            o.key[0] = together ? leaves_orphan(e, row, first, last) : 2;
            o.key[1] = scope.category == ANY ? 1 : -price_of(e, first);
            o.key[2] = r;
            o.key[3] = together ? 0 : scope.category;
            o.key[4] = last - first;
            o.key[5] = off_middle(row, first, last);
            o.key[6] = first;
            consider(best, &o);
        }
}

static uint32_t write_option(const struct event *e, const struct option *o, uint32_t *seats)
{
    uint32_t n = 0;
    for (uint32_t s = o->first; s <= o->last; s++)
        if (fits(e, s, o->scope))
            seats[n++] = s;
    return n;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* A row, or its seats of one category, as a group over several rows draws on it. */
struct drawn_line {
    uint32_t row;
    struct scope scope;
    bool allowed, drawn;
};

#define LINES_MAX 256

/* Lists what such a group may draw on: rows, or if it is of one category or of one price, the lines
 * of all categories, one category after another. */
static uint32_t list_lines(const struct event *e, const struct best_want *want, struct scope scope,
                           struct drawn_line *lines)
{
    uint32_t n = 0;
    bool by_category = scope.category != ANY || scope.price != ANY;
    size_t n_categories = by_category ? event_def_categories(e->def) : 1;
    for (size_t c = 0; c < n_categories; c++)
        for (uint32_t r = 0; r < e->rows.n; r++) {
            const struct row *row = &e->rows.list[r];
            bool has = !by_category;
            for (uint32_t s = row->first; s < row->first + row->n_seats; s++)
                has |= event_seat_category(e, s) == c;
            if (!has)
                continue;
            assert_in_range(n, 0, LINES_MAX - 1);
            struct scope of = {.category = by_category ? (int64_t)c : ANY, .price = scope.price};
            lines[n++] = (struct drawn_line){
                .row = r,
                .scope = of,
                .allowed = allowed(e, row, want) &&
                           (scope.category == ANY || scope.category == (int64_t)c) &&
                           free_in_row(e, row, of)};
        }
    return n;
}

/* The scope of a group over several rows: its category, or the highest price at which enough seats
 * are free, or any. */
static struct scope scope_of_rows(const struct event *e, const struct best_want *want, bool flat)
{
    struct scope best = {.category = want->category ? (int64_t)want->category - 1 : ANY,
                         .price = ANY};
    for (size_t c = 0; !want->category && !flat && c < event_def_categories(e->def); c++) {
        struct scope level = {.category = ANY, .price = price_of_category(e, c)};
        if (free_in_all(e, want, level) >= want->quantity && level.price > best.price)
            best.price = level.price;
    }
    return best;
}

/* Splits the group over several rows: takes from the first line in the documented order, then from
 * the next, until the group is complete. */
static void expect_rows(const struct event *e, const struct best_want *want, bool flat,
                        uint32_t *seats)
{
    struct drawn_line lines[LINES_MAX];
    uint32_t n_lines = list_lines(e, want, scope_of_rows(e, want, flat), lines);
    uint32_t centre = 0, had = 0;
    for (uint32_t l = 0, most = 0; l < n_lines; l++) {
        uint32_t n = free_in_row(e, &e->rows.list[lines[l].row], lines[l].scope);
        if (lines[l].allowed && (n > most || (n == most && lines[l].row < lines[centre].row))) {
            most = n;
            centre = l;
        }
    }
    const struct drawn_line *first = &lines[centre];
    while (had < want->quantity) {
        struct option next = {0};
        for (uint32_t l = 0; l < n_lines; l++) {
            if (lines[l].drawn || !lines[l].allowed)
                continue;
            struct option o = {.row = l};
            o.key[0] = lines[l].scope.category != first->scope.category ||
                       e->rows.list[lines[l].row].section != e->rows.list[first->row].section;
            o.key[1] = llabs((int64_t)l - centre);
            o.key[2] = l;
            consider(&next, &o);
        }
        assert_true(next.found);
        lines[next.row].drawn = true;
        struct scope scope = lines[next.row].scope;
        uint32_t r = lines[next.row].row, n = free_in_row(e, &e->rows.list[r], scope);
        struct option o = {0};
        if (n > want->quantity - had)
            n = want->quantity - had;
        options_of_row(e, r, n, false, scope, &o);
        had += write_option(e, &o, seats + had);
    }
    qsort(seats, had, sizeof *seats, by_number);
}

/* Considers the choices of one row: of each category, and if prices differ of any. */
static void options_of_scopes(const struct event *e, uint32_t r, const struct best_want *want,
                              bool together, bool flat, struct option *best)
{
    if (!allowed(e, &e->rows.list[r], want))
        return;
    if (!want->category)
        options_of_row(e, r, want->quantity, together, (struct scope){ANY, ANY}, best);
    for (size_t c = 0; c < event_def_categories(e->def); c++)
        if (want->category ? c == want->category - 1 : !flat)
            options_of_row(e, r, want->quantity, together,
                           (struct scope){.category = (int64_t)c, .price = ANY}, best);
}

enum kind { NONE_FITS, NO_ORPHAN, ORPHAN, ONE_ROW, MANY_ROWS, KINDS };

static bool costs_the_same(const struct event *e)
{
    for (size_t c = 1; c < event_def_categories(e->def); c++)
        if (price_of_category(e, c) != price_of_category(e, 0))
            return false;
    return true;
}

static enum kind expect(const struct event *e, const struct best_want *want, uint32_t *seats,
                        uint32_t *ret_available)
{
    struct option best = {0};
    bool flat = costs_the_same(e);
    struct scope all = {.category = want->category ? (int64_t)want->category - 1 : ANY,
                        .price = ANY};
    *ret_available = free_in_all(e, want, all);
    for (uint32_t r = 0; r < e->rows.n; r++)
        options_of_scopes(e, r, want, true, flat, &best);
    struct option apart = {0};
    for (uint32_t r = 0; !best.found && !want->adjacent && r < e->rows.n; r++)
        options_of_scopes(e, r, want, false, flat, &apart);
    if (!best.found)
        best = apart;
    if (best.found) {
        assert_int_equal(write_option(e, &best, seats), want->quantity);
        return best.key[0] == 0 ? NO_ORPHAN : best.key[0] == 1 ? ORPHAN : ONE_ROW;
    }
    if (want->adjacent || *ret_available < want->quantity)
        return NONE_FITS;
    expect_rows(e, want, flat, seats);
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

/* Gives the rows of the layout listed seats: of one category, of any, or of one after another. */
static void list_seats(struct event_def *def)
{
    uint32_t n_categories = 1 + below(3), first, second;
    vec_clear(&def->terms.prices);
    def->venue = venue_new();
    for (uint32_t c = 0; c < n_categories; c++) {
        vec_push(&def->categories)->name = hf_strndup(names[c], 1);
        *vec_push(&def->terms.prices) = 100 * below(3);
    }
    *vec_push(&def->terms.prices) = 50; /* of the area */
    for (size_t s = 0; s < def->sections.n; s++) {
        def->sections.v[s].category = -1;
        for (size_t r = 0; r < def->sections.v[s].rows.n; r++) {
            const struct row_def *row = &def->sections.v[s].rows.v[r];
            uint32_t style = below(3), only = below(n_categories);
            for (uint32_t i = 0; i < row->seats; i++) {
                uint32_t category = style == 0   ? only
                                    : style == 1 ? below(n_categories)
                                                 : i * n_categories / row->seats;
                char label[16];
                (void)snprintf(label, sizeof label, "%u", i);
                venue_add(def->venue, &(struct venue_seat){.section = def->sections.v[s].name,
                                                           .row = row->name,
                                                           .label = label,
                                                           .category = category});
            }
        }
    }
    assert_true(event_def_number(def) && venue_index(def->venue, &first, &second));
}

static struct event *random_hall(uint32_t row_max)
{
    struct event_def *def = def_new("Random");
    uint32_t sections = below(5), rows = 1 + below(7), prices = 1 + below(3);
    for (uint32_t s = 0; s < sections; s++) {
        def_section(def, names[s], tiers[below(4)], 100 * below(prices));
        for (uint32_t r = 0, n = 1 + below(rows); r < n; r++)
            def_row(def, names[r], below(8) ? 1 + below(row_max) : 1);
    }
    def_area(def, "floor", 50, 50);
    if (below(2))
        list_seats(def);
    return event_of(def);
}

/* Changes what a category costs. */
static void random_price(struct event *e)
{
    struct event_terms terms;
    event_terms_copy(e->terms, &terms);
    terms.prices.v[below((uint32_t)event_def_categories(e->def))] = 100 * below(3);
    event_set_terms(e, event_terms_new(&terms));
}

/* Takes or frees some scattered seats or a stretch of seats, and sometimes changes a price. */
static void random_changes(struct event *e)
{
    uint32_t n = e->def->n_seats;
    if (!n)
        return;
    if (below(8) == 0)
        random_price(e);
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
    if (below(3) == 0 && (!e->def->venue || e->def->sections.n))
        want->section = below((uint32_t)e->def->sections.n + !e->def->venue);
    if (below(6) == 0 && event_def_categories(e->def))
        want->category = 1 + below((uint32_t)event_def_categories(e->def));
    if (below(3) == 0) {
        want->tier = asked[below(5)];
        want->tier_len = strlen(want->tier);
        if (want->tier_len == 3)
            want->tier_len = 1 + below(3); /* A, AB or ABC, not followed by a NUL */
    }
}

/* Loads the same hall of counted rows anew and asks again: the answer must not depend on the index's history. */
static void assert_same_when_loaded(const struct event *e, const struct best_want *want,
                                    const uint32_t *seats, bool found)
{
    if (e->def->venue) /* its layout is not copied */
        return;
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
