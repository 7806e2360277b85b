/* The checker of lock histories (tests/sim/linearize.h) on histories written by hand: good ones
 * that it must accept, and bad ones that it must refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/linearize.h"

#define VISITS_MAX 100000

static struct linear_op acquire(int64_t from, int64_t to, uint64_t owner, const char *name,
                                enum cell_mode mode, int64_t fence)
{
    return (struct linear_op){.kind = LINEAR_ACQUIRE,
                              .invoked_us = from,
                              .answered_us = to,
                              .owner = owner,
                              .name = name,
                              .mode = mode,
                              .outcome = fence ? LINEAR_GRANTED : LINEAR_TAKEN,
                              .fence = fence};
}

static struct linear_op granted(int64_t from, int64_t to, uint64_t owner, int64_t fence)
{
    return acquire(from, to, owner, "a", CELL_EXCLUSIVE, fence);
}

static struct linear_op taken(int64_t from, int64_t to, uint64_t owner)
{
    return acquire(from, to, owner, "a", CELL_EXCLUSIVE, 0);
}

static struct linear_op released(int64_t from, int64_t to, uint64_t owner)
{
    return (struct linear_op){.kind = LINEAR_RELEASE,
                              .invoked_us = from,
                              .answered_us = to,
                              .owner = owner,
                              .name = "a",
                              .outcome = LINEAR_DONE};
}

static struct linear_op lost(struct linear_op op)
{
    op.outcome = LINEAR_LOST;
    return op;
}

/* A look at "a" that saw the holder with this fence; 0: nobody. */
static struct linear_op seen(int64_t from, int64_t to, int64_t fence)
{
    return (struct linear_op){.kind = LINEAR_GET,
                              .invoked_us = from,
                              .answered_us = to,
                              .name = "a",
                              .outcome = LINEAR_SEEN,
                              .fences = {fence},
                              .n_fences = fence != 0};
}

#define check(...)                                                                                 \
    check_ops((const struct linear_op[]){__VA_ARGS__},                                             \
              sizeof(const struct linear_op[]){__VA_ARGS__} / sizeof(struct linear_op))

static enum linear_result check_ops(const struct linear_op *ops, size_t n)
{
    linear_history history = {0};
    for (size_t i = 0; i < n; i++)
        *vec_push(&history) = ops[i];
    enum linear_result result = linear_check(&history, VISITS_MAX);
    vec_close(&history);
    return result;
}

static void one_after_the_other_is_linearizable(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, 2, 1, 10), taken(3, 4, 2), seen(5, 6, 10), released(7, 8, 1),
                           seen(9, 10, 0), granted(11, 12, 2, 11)),
                     LINEAR_YES);
}

static void two_holders_are_not(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, 2, 1, 10), granted(3, 4, 2, 11), released(5, 6, 1)),
                     LINEAR_NO);
}

static void overlapping_operations_may_take_either_order(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, 9, 1, 11), granted(2, 8, 2, 10), released(3, 7, 2)),
                     LINEAR_YES);
    assert_int_equal(check(granted(1, 2, 1, 10), released(3, 9, 1), granted(4, 5, 2, 11)),
                     LINEAR_YES);
    assert_int_equal(check(granted(1, 9, 1, 10), taken(2, 3, 2)), LINEAR_YES);
}

static void a_refusal_needs_a_holder(void **state)
{
    (void)state;
    assert_int_equal(check(taken(1, 2, 2)), LINEAR_NO);
    assert_int_equal(check(granted(1, 2, 1, 10), released(3, 4, 1), taken(5, 6, 2)), LINEAR_NO);
}

static void a_fence_that_does_not_grow_is_refused(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, 2, 1, 10), released(3, 4, 1), granted(5, 6, 2, 10)),
                     LINEAR_NO);
    assert_int_equal(check(granted(1, 2, 1, 10), released(3, 4, 1), granted(5, 6, 2, 9)),
                     LINEAR_NO);
}

static void a_stale_read_is_refused(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, 2, 1, 10), released(3, 4, 1), seen(5, 6, 10)), LINEAR_NO);
    assert_int_equal(check(granted(1, 2, 1, 10), seen(3, 4, 0)), LINEAR_NO);
    assert_int_equal(check(granted(1, 4, 1, 10), seen(2, 3, 0)), LINEAR_YES);
}

static void an_unknown_grant_may_have_happened_or_not(void **state)
{
    (void)state;
    struct linear_op unknown = granted(1, LINEAR_NEVER, 1, 0);
    assert_int_equal(check(unknown, granted(2, 3, 2, 10)), LINEAR_YES);
    assert_int_equal(check(unknown, taken(2, 3, 2)), LINEAR_YES);
    assert_int_equal(check(unknown, taken(2, 3, 2), seen(4, 5, 10)), LINEAR_YES);
    assert_int_equal(check(unknown, seen(2, 3, 7), granted(4, 5, 1, 7)), LINEAR_YES);
    /* But it cannot have happened and not have happened, or before it was asked for. */
    assert_int_equal(check(unknown, taken(2, 3, 2), granted(4, 5, 3, 10)), LINEAR_NO);
    assert_int_equal(check(granted(5, LINEAR_NEVER, 1, 0), taken(2, 3, 2)), LINEAR_NO);
}

static void an_unknown_release_may_happen_late(void **state)
{
    (void)state;
    struct linear_op unknown = released(3, LINEAR_NEVER, 1);
    assert_int_equal(check(granted(1, 2, 1, 10), unknown, taken(4, 5, 2), granted(6, 7, 2, 11)),
                     LINEAR_YES);
    assert_int_equal(check(granted(1, 2, 1, 10), unknown, granted(4, 5, 2, 11), taken(6, 7, 3),
                           released(8, 9, 2), taken(10, 11, 3)),
                     LINEAR_NO);
}

static void a_grant_asked_for_twice_is_the_same_grant(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, LINEAR_NEVER, 1, 0), granted(2, 3, 1, 10),
                           granted(4, 5, 1, 10), seen(6, 7, 10)),
                     LINEAR_YES);
    assert_int_equal(check(granted(1, 3, 1, 10), granted(4, 5, 1, 11)), LINEAR_NO);
}

static void an_owner_that_was_released_gets_nothing_any_more(void **state)
{
    (void)state;
    struct linear_op unknown = granted(1, LINEAR_NEVER, 1, 0);
    assert_int_equal(check(unknown, released(3, 6, 1), taken(4, 5, 2)), LINEAR_YES);
    assert_int_equal(check(unknown, lost(released(3, 4, 1)), taken(5, 6, 2)), LINEAR_NO);
}

static void a_lock_is_lost_only_if_it_ended(void **state)
{
    (void)state;
    assert_int_equal(check(granted(1, 2, 1, 10), lost(released(3, 4, 1))), LINEAR_NO);
    assert_int_equal(
        check(granted(1, 2, 1, 10), released(3, LINEAR_NEVER, 1), lost(released(4, 5, 1))),
        LINEAR_YES);
    assert_int_equal(check(granted(1, 2, 1, 10), lost(granted(3, 4, 1, 0))), LINEAR_NO);
}

static void readers_share_and_writers_do_not(void **state)
{
    (void)state;
    struct linear_op one = acquire(1, 2, 1, "a", CELL_SHARED, 10);
    struct linear_op two = acquire(3, 4, 2, "a", CELL_SHARED, 11);
    assert_int_equal(check(one, two, taken(5, 6, 3)), LINEAR_YES);
    assert_int_equal(check(one, two, granted(5, 6, 3, 12)), LINEAR_NO);
}

static void a_lock_blocks_what_is_above_and_below_it(void **state)
{
    (void)state;
    struct linear_op below = acquire(1, 2, 1, "a/b", CELL_EXCLUSIVE, 10);
    assert_int_equal(check(below, taken(3, 4, 2)), LINEAR_YES);
    assert_int_equal(check(below, granted(3, 4, 2, 11)), LINEAR_NO);
    assert_int_equal(check(below, acquire(3, 4, 2, "a/c", CELL_EXCLUSIVE, 11)), LINEAR_YES);
    assert_int_equal(check(below, acquire(3, 4, 2, "a/bc", CELL_EXCLUSIVE, 11)), LINEAR_YES);
    assert_int_equal(check(below, acquire(3, 4, 2, "a/b/c", CELL_SHARED, 11)), LINEAR_NO);
    assert_int_equal(check(below, acquire(3, 4, 2, "a", CELL_INTENTION_SHARED, 11)), LINEAR_YES);
    assert_int_equal(check(below, acquire(3, 4, 2, "a", CELL_SHARED, 11)), LINEAR_NO);
    assert_int_equal(
        check(acquire(1, 2, 1, "a/b", CELL_SHARED, 10), acquire(3, 4, 2, "a", CELL_SHARED, 11)),
        LINEAR_YES);
}

/* Eight clients take one lock in turns and look at it, while the answers overlap; then one refusal
 * is turned into a grant. */
static void a_long_history_is_decided(void **state)
{
    (void)state;
    linear_history history = {0};
    for (int64_t i = 0; i < 60; i++) {
        const int64_t at = i * 100;
        const uint64_t owner = (uint64_t)(i + 1);
        *vec_push(&history) = granted(at, at + 30, owner, i + 1);
        *vec_push(&history) = taken(at + 20, at + 60, owner + 1000);
        *vec_push(&history) = taken(at + 25, at + 65, owner + 2000);
        *vec_push(&history) = seen(at + 10, at + 50, i + 1);
        *vec_push(&history) = released(at + 55, at + 105, owner);
    }
    for (int i = 0; i < 6; i++)
        *vec_push(&history) = granted(i * 1000, LINEAR_NEVER, 5000 + (uint64_t)i, 0);
    assert_int_equal(linear_check(&history, VISITS_MAX), LINEAR_YES);
    for (size_t i = 0; i < history.n; i++)
        if (history.v[i].owner == 2030)
            history.v[i].fence = 31, history.v[i].outcome = LINEAR_GRANTED;
    assert_int_equal(linear_check(&history, VISITS_MAX), LINEAR_NO);
    vec_close(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other_is_linearizable),
        cmocka_unit_test(two_holders_are_not),
        cmocka_unit_test(overlapping_operations_may_take_either_order),
        cmocka_unit_test(a_refusal_needs_a_holder),
        cmocka_unit_test(a_fence_that_does_not_grow_is_refused),
        cmocka_unit_test(a_stale_read_is_refused),
        cmocka_unit_test(an_unknown_grant_may_have_happened_or_not),
        cmocka_unit_test(an_unknown_release_may_happen_late),
        cmocka_unit_test(a_grant_asked_for_twice_is_the_same_grant),
        cmocka_unit_test(an_owner_that_was_released_gets_nothing_any_more),
        cmocka_unit_test(a_lock_is_lost_only_if_it_ended),
        cmocka_unit_test(readers_share_and_writers_do_not),
        cmocka_unit_test(a_lock_blocks_what_is_above_and_below_it),
        cmocka_unit_test(a_long_history_is_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
