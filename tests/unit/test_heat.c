/* Claims about the heat of an event: what is counted, which seats are listed, and that threads may
 * count at the same time. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/random.h"
#include "view/heat.h"

#define SEATS 500
#define THREADS 4
#define ROUNDS 20000

static void an_event_without_refusals_is_cold(void **state)
{
    (void)state;
    struct heat heat = {0};
    struct heat_seat hottest[1];
    uint64_t total = 7;
    heat_note(&heat, SEATS, NULL, 0);
    assert_null((void *)atomic_load(&heat.counts));
    assert_int_equal(heat_hottest(&heat, SEATS, 1, hottest, &total), 0);
    assert_int_equal(total, 0);
    heat_close(&heat);
}

static int compare(const void *a, const void *b)
{
    const struct heat_seat *x = a, *y = b;
    if (x->refusals != y->refusals)
        return x->refusals > y->refusals ? -1 : 1;
    return x->seat < y->seat ? -1 : 1;
}

static void the_hottest_seats_are_those_of_a_sorted_list(void **state)
{
    (void)state;
    struct random r;
    struct heat heat = {0};
    struct heat_seat all[SEATS] = {0}, hottest[SEATS];
    uint64_t total;
    random_init_seeded(&r, test_seed(11));
    for (uint32_t i = 0; i < SEATS; i++)
        all[i].seat = i;
    for (int i = 0; i < 2000; i++) {
        uint32_t seats[2] = {(uint32_t)random_below(&r, SEATS / 2), SEATS / 2};
        seats[1] += (uint32_t)random_below(&r, SEATS / 4);
        heat_note(&heat, SEATS, seats, 2);
        all[seats[0]].refusals++;
        all[seats[1]].refusals++;
    }
    qsort(all, SEATS, sizeof *all, compare);
    size_t refused = 0;
    while (refused < SEATS && all[refused].refusals)
        refused++;
    assert_true(refused > SEATS / 2 && refused < SEATS);
    const size_t limits[] = {1, 2, 3, 10, 100, refused - 1, refused, SEATS};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t n = heat_hottest(&heat, SEATS, limits[i], hottest, &total);
        assert_int_equal(n, limits[i] < refused ? limits[i] : refused);
        assert_memory_equal(hottest, all, n * sizeof *all);
        assert_int_equal(total, 4000);
    }
    heat_close(&heat);
}

static void *count(void *arg)
{
    for (uint32_t i = 0; i < ROUNDS; i++)
        heat_note(arg, SEATS, &(uint32_t){i % 2}, 1);
    return NULL;
}

static void threads_count_at_the_same_time(void **state)
{
    (void)state;
    struct heat heat = {0};
    struct heat_seat hottest[2];
    uint64_t total;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, &heat), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(heat_hottest(&heat, SEATS, 2, hottest, &total), 2);
    assert_int_equal(total, THREADS * ROUNDS);
    assert_int_equal(hottest[0].refusals, THREADS * ROUNDS / 2);
    heat_close(&heat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_without_refusals_is_cold),
        cmocka_unit_test(the_hottest_seats_are_those_of_a_sorted_list),
        cmocka_unit_test(threads_count_at_the_same_time),
    };
    return cmocka_run_group_tests_name("heat", tests, NULL, NULL);
}
