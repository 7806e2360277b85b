/* What `holdfast lab locks` reads from the grants of a lock (lab/lock_history.h). */
#include "support/fixtures.h"

#include "lab/lock_history.h"

#define CLIENTS 3
#define NOW_US 1000000
#define FAR_US 900000000

static struct board_page *pages; /* too large for the stack */

static int set_up(void **state)
{
    (void)state;
    pages = hf_alloc(CLIENTS * sizeof *pages);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(pages);
    return 0;
}

static struct lock_grant *grant(size_t client, int64_t start_us, int64_t released_us, int64_t fence)
{
    struct board_page *page = &pages[client];
    struct lock_grant *g = &page->grants[page->n_grants++];
    g->granted_us = start_us;
    g->released_us = released_us;
    g->deadline_us = FAR_US;
    g->fence = fence;
    return g;
}

static struct history read_all(int64_t died_us)
{
    struct history h = {0};
    for (size_t i = 0; i < CLIENTS; i++)
        history_add(&h, &pages[i], i, died_us, NOW_US);
    history_sort(&h);
    return h;
}

static void grants_one_after_another_do_not_overlap(void **state)
{
    (void)state;
    grant(0, 100, 200, 1);
    grant(1, 200, 300, 2);
    grant(0, 350, 400, 3);
    struct history h = read_all(0);
    assert_int_equal(history_overlaps(&h), 0);
    assert_int_equal(history_fences_fell(&h), 0);
    assert_int_equal(history_gap_us(&h, 100, 400), 50);
    history_close(&h);
}

static void a_grant_within_another_is_an_overlap(void **state)
{
    (void)state;
    grant(0, 100, 1000, 5);
    grant(1, 500, 600, 6);
    grant(2, 700, 800, 4);
    struct history h = read_all(0);
    assert_int_equal(history_overlaps(&h), 2);
    assert_int_equal(history_fences_fell(&h), 1);
    history_close(&h);
}

static void a_holder_that_was_told_does_not_overlap_afterwards(void **state)
{
    (void)state;
    struct lock_grant *g = grant(0, 100, 5000, 1);
    g->lost_us = 400;
    grant(1, 450, 600, 2);
    struct history h = read_all(0);
    assert_int_equal(history_overlaps(&h), 0);
    assert_true(h.grants.v[0].was_lost);
    history_close(&h);
}

static void a_holder_that_is_told_late_overlaps_until_its_deadline_only(void **state)
{
    (void)state;
    struct lock_grant *g = grant(0, 100, 0, 1);
    g->lost_us = 5000;
    g->deadline_us = 400;
    grant(1, 450, 600, 2);
    struct history h = read_all(0);
    assert_int_equal(history_overlaps(&h), 0);
    history_close(&h);
    g->deadline_us = 500;
    h = read_all(0);
    assert_int_equal(history_overlaps(&h), 1);
    history_close(&h);
}

static void a_holder_that_was_killed_holds_nothing_afterwards(void **state)
{
    (void)state;
    grant(0, 100, 0, 1);
    grant(1, 450, 600, 2);
    struct history h = read_all(300);
    assert_int_equal(history_overlaps(&h), 0);
    assert_int_equal(history_gap_us(&h, 300, 600), 150);
    history_close(&h);
}

static void a_lock_that_nobody_gets_again_is_a_gap_to_the_end(void **state)
{
    (void)state;
    grant(0, 100, 200, 1);
    grant(1, 210, 300, 2);
    struct history h = read_all(0);
    assert_int_equal(history_gap_us(&h, 150, 5000), 4700);
    history_close(&h);
}

static void the_order_is_that_of_first_grants(void **state)
{
    (void)state;
    grant(0, 100, 200, 1);
    grant(2, 300, 400, 2);
    grant(1, 500, 600, 3);
    grant(0, 700, 800, 4);
    struct history h = read_all(0);
    uint64_t pairs, in_order;
    history_order(&h, &pairs, &in_order);
    assert_int_equal(pairs, 2);
    assert_int_equal(in_order, 1);
    struct history_times times = {0};
    history_hand_overs(&h, 1, &times);
    assert_int_equal(times.us.n, 2);
    assert_int_equal((int)history_quantile(&times, 0.5), 100);
    history_times_close(&times);
    history_close(&h);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(grants_one_after_another_do_not_overlap),
        CLAIM(a_grant_within_another_is_an_overlap),
        CLAIM(a_holder_that_was_told_does_not_overlap_afterwards),
        CLAIM(a_holder_that_is_told_late_overlaps_until_its_deadline_only),
        CLAIM(a_holder_that_was_killed_holds_nothing_afterwards),
        CLAIM(a_lock_that_nobody_gets_again_is_a_gap_to_the_end),
        CLAIM(the_order_is_that_of_first_grants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
