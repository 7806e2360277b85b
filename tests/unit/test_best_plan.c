/* Best available by the positions of seats: compared with a search that tries every group, in
 * random halls whose rows curve, have aisles, list their seats in any order and have one or several
 * categories, while seats are taken and given back and prices change.
 *
 * HF_SEED repeats one stream, HF_STEPS sets its number of questions. */
#include "support/fixtures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "rules/best.h"

#define ROWS_MAX 8
#define ROW_SEATS_MAX 14
#define PITCH 30.0
#define CATEGORIES 3

/* A seat as the model knows it: where it stands in its row, and whether an aisle is before it. */
struct place {
    uint32_t row, position;
    bool aisle;
};

struct hall {
    struct event *e;
    struct place *places;                        /* by seat */
    uint32_t order[ROWS_MAX * 3][ROW_SEATS_MAX]; /* seats of each row as they stand */
    uint32_t n_rows, row_len[ROWS_MAX * 3];
};

static struct random source;
static uint32_t below(uint32_t n) { return (uint32_t)random_below(&source, n); }

/* ---- a random hall ---- */

static void add_row(struct hall *h, struct event_def *def, uint32_t section, double y)
{
    uint32_t n = 1 + below(ROW_SEATS_MAX), r = h->n_rows++, listed[ROW_SEATS_MAX];
    double x = below(200), bend = below(3) * 0.0003, xs[ROW_SEATS_MAX];
    bool aisles[ROW_SEATS_MAX] = {false};
    uint32_t style = below(3), only = below(CATEGORIES); /* one category, any, or in stretches */
    char name[16], id[32], label[16];
    struct row_def *row = vec_push(&def->sections.v[section].rows);
    snprintf(name, sizeof name, "%u", r);
    row->name = hf_strndup(name, strlen(name));
    row->seats = n;
    h->row_len[r] = n;
    for (uint32_t i = 0; i < n; i++) { /* rows of few seats cannot tell an aisle from a gap */
        aisles[i] = n >= 6 && i == n / 2 && below(2);
        xs[i] = x += i ? PITCH * (aisles[i] ? 2.5 : 1) : 0;
        listed[i] = i;
    }
    for (uint32_t i = n; below(3) == 0 && i > 1; i--) { /* listed in any order */
        uint32_t k = below(i), had = listed[i - 1];
        listed[i - 1] = listed[k];
        listed[k] = had;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = listed[i], seat = def->venue->n_seats;
        snprintf(id, sizeof id, "s%u", seat);
        snprintf(label, sizeof label, "%u", at);
        uint32_t category = style == 0   ? only
                            : style == 1 ? below(CATEGORIES)
                                         : (at * CATEGORIES / n + only) % CATEGORIES;
        venue_add(def->venue,
                  &(struct venue_seat){.id = id,
                                       .label = label,
                                       .category = category,
                                       .flags = SEAT_PLACED | (below(12) ? 0u : SEAT_ACCESSIBLE) |
                                                (below(12) ? 0u : SEAT_COMPANION),
                                       .x = xs[at],
                                       .y = y + bend * (xs[at] - 300) * (xs[at] - 300)});
        h->places = hf_realloc(h->places, (seat + 1) * sizeof *h->places);
        h->places[seat] = (struct place){.row = r, .position = at, .aisle = aisles[at]};
        h->order[r][at] = seat;
    }
}

static void hall_make(struct hall *h)
{
    struct event_def *def = def_new("Random");
    uint32_t n_sections = 1 + below(3), first, second;
    struct clock_row clock = {.event = 1, .now = T0_MS};
    *h = (struct hall){0};
    def->venue = venue_new();
    uint32_t prices = 1 + below(3);
    for (uint32_t i = 0; i < CATEGORIES; i++) {
        vec_push(&def->categories)->name = hf_strndup(&"ABC"[i], 1);
        *vec_push(&def->terms.prices) = 100 * below(prices);
    }
    for (uint32_t s = 0; s < n_sections; s++) {
        char name[16];
        struct section_def *section = vec_push(&def->sections);
        section->name = hf_strndup(name, (size_t)snprintf(name, sizeof name, "S%u", s));
        section->category = -1;
        for (uint32_t r = 0, n = 1 + below(ROWS_MAX); r < n; r++)
            add_row(h, def, s, s * 100.0 + r * 37.0);
    }
    def->venue->is_placed = true;
    def->venue->focus_x = below(600);
    def->venue->focus_y = -(double)below(100);
    assert_true(event_def_number(def) && venue_index(def->venue, &first, &second));
    def->id.key = 1;
    h->e = event_new(def, &clock);
}

static void change_price(struct event *e)
{
    struct event_terms terms;
    event_terms_copy(e->terms, &terms);
    terms.prices.v[below(CATEGORIES)] = 100 * below(3);
    event_set_terms(e, event_terms_new(&terms));
}

static void hall_close(struct hall *h)
{
    event_free(h->e);
    free(h->places);
}

/* ---- the model ---- */

enum kind { ORDINARY, ACCESSIBLE, WITH_COMPANIONS };

/* `category`: 1 + its number; 0: any. */
static bool fits(const struct hall *h, uint32_t seat, const struct best_want *want, enum kind kind,
                 uint32_t category)
{
    const struct venue *v = h->e->def->venue;
    unsigned flags = v->flags[seat];
    if (h->e->seats[seat].status != SEAT_AVAILABLE ||
        (category && v->categories[seat] != category - 1) ||
        (want->section >= 0 && event_row_of(h->e, seat)->section != want->section))
        return false;
    switch (kind) {
    case ORDINARY:
        return !(flags & (SEAT_ACCESSIBLE | SEAT_COMPANION));
    case ACCESSIBLE:
        return flags & SEAT_ACCESSIBLE;
    default:
        return flags & (SEAT_ACCESSIBLE | SEAT_COMPANION);
    }
}

static double distance(const struct hall *h, uint32_t seat)
{
    const struct venue *v = h->e->def->venue;
    return (double)(float)hypot(v->x[seat] - v->focus_x, v->y[seat] - v->focus_y);
}

/* Is the seat at `i` of row `r` beside a free seat at `i + step`, of any category? */
static bool beside(const struct hall *h, uint32_t r, int64_t i, int step,
                   const struct best_want *want, enum kind kind)
{
    int64_t k = i + step;
    if (k < 0 || k >= h->row_len[r] || i < 0 || i >= h->row_len[r])
        return false;
    uint32_t right = h->order[r][step > 0 ? k : i];
    return !h->places[right].aisle && fits(h, h->order[r][k], want, kind, 0);
}

/* Does taking q seats from `i` leave a neighbour alone that was not? */
static bool leaves_orphan(const struct hall *h, uint32_t r, uint32_t i, uint32_t q,
                          const struct best_want *want, enum kind kind)
{
    int64_t left = (int64_t)i - 1, right = (int64_t)i + q;
    bool left_alone = beside(h, r, i, -1, want, kind) && !beside(h, r, left, -1, want, kind);
    bool right_alone =
        beside(h, r, right - 1, 1, want, kind) && !beside(h, r, right, 1, want, kind);
    return left_alone || right_alone;
}

/* The smallest sum of distances of any group of the category that stands together; INFINITY: there
 * is none. */
static double nearest_of(const struct hall *h, const struct best_want *want, enum kind kind,
                         bool orphans_too, uint32_t category)
{
    uint32_t q = want->quantity;
    double best = INFINITY;
    for (uint32_t r = 0; r < h->n_rows; r++)
        for (uint32_t i = 0; i + q <= h->row_len[r]; i++) {
            double sum = 0;
            bool ok = true, has_accessible = false;
            for (uint32_t k = i; ok && k < i + q; k++) {
                uint32_t seat = h->order[r][k];
                ok = fits(h, seat, want, kind, category) && (k == i || !h->places[seat].aisle);
                has_accessible |= h->e->def->venue->flags[seat] & SEAT_ACCESSIBLE;
                sum += distance(h, seat);
            }
            if (ok && (kind != WITH_COMPANIONS || has_accessible) &&
                (orphans_too || !leaves_orphan(h, r, i, q, want, kind)))
                best = fmin(best, sum);
        }
    return best;
}

/* The same for the group that is documented: of one category, at the highest price that has one,
 * and of several categories if none has. */
static double nearest_group(const struct hall *h, const struct best_want *want, enum kind kind,
                            bool orphans_too)
{
    const int64_t *prices = h->e->terms->prices.v;
    double best = INFINITY;
    bool differ = prices[0] != prices[1] || prices[1] != prices[2];
    if (want->category || !differ)
        return nearest_of(h, want, kind, orphans_too, want->category);
    for (int64_t price = 200; price >= 0 && isinf(best); price -= 100)
        for (uint32_t c = 0; c < CATEGORIES; c++)
            if (prices[c] == price)
                best = fmin(best, nearest_of(h, want, kind, orphans_too, 1 + c));
    return isinf(best) ? nearest_of(h, want, kind, orphans_too, 0) : best;
}

static uint32_t count_free(const struct hall *h, const struct best_want *want, enum kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->e->def->n_seats; i++)
        n += fits(h, i, want, kind, want->category);
    return n;
}

/* ---- the comparison ---- */

static void check(const struct hall *h, const struct best_want *want)
{
    uint32_t seats[ROW_SEATS_MAX + 2], available, q = want->quantity;
    enum kind kind = want->accessible ? ACCESSIBLE : ORDINARY;
    double expected = nearest_group(h, want, kind, false);
    if (isinf(expected))
        expected = nearest_group(h, want, kind, true);
    uint32_t n_free = count_free(h, want, kind);
    if (isinf(expected) && want->accessible && n_free && (want->adjacent || n_free < q))
        expected = nearest_group(h, want, WITH_COMPANIONS, true);
    bool found = best_find(h->e, want, seats, &available);
    assert_int_equal(available, n_free);
    if (isinf(expected)) {
        assert_int_equal(found, !want->adjacent && n_free >= q);
        return;
    }
    assert_true(found);
    double sum = 0;
    for (uint32_t i = 0; i < q; i++) {
        assert_true(i == 0 || seats[i - 1] < seats[i]);
        sum += distance(h, seats[i]);
    }
    if (fabs(sum - expected) > 1e-3)
        fail_msg("the group of %u is %f away, the nearest %f", q, sum, expected);
}

static void the_nearest_group_is_found(void **state)
{
    (void)state;
    const char *seed = getenv("HF_SEED"), *steps = getenv("HF_STEPS");
    random_init_seeded(&source, seed ? strtoull(seed, NULL, 10) : 15);
    int left = steps ? atoi(steps) : 20000;
    while (left > 0) {
        struct hall h;
        hall_make(&h);
        for (int i = 0; i < 100 && left > 0; i++, left--) {
            uint32_t seat = below(h.e->def->n_seats);
            event_load_seat(h.e, seat, below(3) ? SEAT_BOOKED : SEAT_AVAILABLE, 77);
            if (below(20) == 0)
                change_price(h.e);
            const struct best_want want = {
                .quantity = 1 + below(below(2) ? 3 : ROW_SEATS_MAX),
                .section = below(4) ? -1 : (int64_t)below((uint32_t)h.e->def->sections.n),
                .category = below(3) ? 0 : 1 + below(CATEGORIES),
                .accessible = below(5) == 0,
                .adjacent = below(2)};
            check(&h, &want);
        }
        hall_close(&h);
    }
}

/* Sells the whole hall, one best seat after another: each is the nearest of those that are left
 * without leaving an orphan, and in the end nothing is left but what was kept. */
static void the_whole_hall_is_sold(void **state)
{
    (void)state;
    random_init_seeded(&source, 7);
    for (int i = 0; i < 30; i++) {
        struct hall h;
        hall_make(&h);
        const struct best_want want = {.quantity = 1, .section = -1};
        uint32_t seat, available, n = count_free(&h, &want, ORDINARY);
        for (; n > 0; n--) {
            check(&h, &want);
            assert_true(best_find(h.e, &want, &seat, &available));
            event_load_seat(h.e, seat, SEAT_BOOKED, 77);
        }
        assert_false(best_find(h.e, &want, &seat, &available));
        hall_close(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_group_is_found),
        cmocka_unit_test(the_whole_hall_is_sold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
