/* Documents that many readers share, and how many versions of one are alive (view/snapshot.h). */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdlib.h>

#include "view/snapshot.h"

#define LARGE (SNAPSHOT_BYTES_FREE / 2)

static struct snapshot_versions *list;

static int open_list(void **state)
{
    (void)state;
    list = versions_new();
    return 0;
}

static int close_list(void **state)
{
    (void)state;
    versions_leave(list);
    return 0;
}

static struct snapshot *put(size_t bytes, int64_t now_us)
{
    struct snapshot *s = snapshot_new(0);
    buf_reserve(&s->text, bytes);
    versions_put(list, s, now_us);
    return s;
}

static void the_newest_that_is_alive_is_found(void **state)
{
    (void)state;
    assert_null(versions_newest(list));
    struct snapshot *a = put(10, 0), *b = put(10, 0);
    struct snapshot *found = versions_newest(list);
    assert_ptr_equal(found, b);
    snapshot_unref(b);
    snapshot_unref(found); /* the last reference */
    found = versions_newest(list);
    assert_ptr_equal(found, a);
    snapshot_unref(found);
    snapshot_unref(a);
    assert_null(versions_newest(list));
    assert_int_equal(list->n, 0);
}

static void few_large_versions_are_alive(void **state)
{
    (void)state;
    struct snapshot *versions[SNAPSHOT_VERSIONS_MAX];
    int64_t wait_us = 0;
    for (int i = 0; i < SNAPSHOT_VERSIONS_MAX; i++) {
        assert_true(versions_have_room(list, i, &wait_us));
        versions[i] = put(LARGE, i);
    }
    assert_false(versions_have_room(list, 10, &wait_us));
    assert_int_equal(wait_us, SNAPSHOT_STAY_US - 10);
    assert_false(atomic_load(&versions[0]->pin.revoked));
    assert_false(versions_have_room(list, SNAPSHOT_STAY_US, &wait_us));
    assert_in_range(wait_us, 1, 100000);
    assert_true(atomic_load(&versions[0]->pin.revoked));
    assert_false(atomic_load(&versions[1]->pin.revoked)); /* one at a time */
    snapshot_unref(versions[0]);
    assert_true(versions_have_room(list, SNAPSHOT_STAY_US + 1, &wait_us));
    for (int i = 1; i < SNAPSHOT_VERSIONS_MAX; i++)
        snapshot_unref(versions[i]);
}

static void readers_that_do_not_go_are_not_waited_for_for_ever(void **state)
{
    (void)state;
    struct snapshot *versions[SNAPSHOT_VERSIONS_MAX];
    int64_t wait_us = 0, revoked_us = 3 * SNAPSHOT_STAY_US;
    for (int i = 0; i < SNAPSHOT_VERSIONS_MAX; i++)
        versions[i] = put(LARGE, 0);
    assert_false(versions_have_room(list, revoked_us, &wait_us));
    assert_false(versions_have_room(list, revoked_us + SNAPSHOT_STAY_US - 1, &wait_us));
    assert_true(versions_have_room(list, revoked_us + SNAPSHOT_STAY_US, &wait_us));
    for (int i = 0; i < SNAPSHOT_VERSIONS_MAX; i++)
        snapshot_unref(versions[i]);
}

static void many_small_versions_may_be_alive(void **state)
{
    (void)state;
    enum { N = 200 };
    struct snapshot *versions[N];
    int64_t wait_us = 0;
    for (int i = 0; i < N; i++) {
        assert_true(versions_have_room(list, 0, &wait_us));
        versions[i] = put(1000, 0);
    }
    for (int i = 0; i < N; i++)
        snapshot_unref(versions[i]);
}

static void a_document_outlives_the_owner_of_its_list(void **state)
{
    (void)state;
    struct snapshot *a = put(10, 0), *b = put(10, 0);
    versions_leave(list);
    snapshot_unref(b);
    snapshot_unref(a); /* the sanitizer says whether the list was there, and is gone */
    list = NULL;
}

#define THREADS 4
#define ROUNDS 20000

/* Takes whatever is the newest, and now and then puts another. */
static void *use(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct snapshot *s = i % 16 ? versions_newest(list) : put(16, i);
        if (s && atomic_load(&s->refs) < 1)
            return "it was not alive";
        snapshot_unref(s);
    }
    return NULL;
}

static void readers_on_many_threads_find_what_is_alive(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *complaint = NULL;
        assert_int_equal(pthread_join(threads[i], &complaint), 0);
        if (complaint)
            fail_msg("%s", (const char *)complaint);
    }
    assert_int_equal(list->n, 0);
}

/* ---- pins ---- */

static void a_pin_counts_what_its_readers_keep_alive_once(void **state)
{
    (void)state;
    struct pin p = {0};
    assert_int_equal(pin_take(&p, 100), 100);
    assert_int_equal(pin_take(&p, 100), 0);
    assert_int_equal(pin_take(&p, 130), 30); /* and its compressed form */
    assert_int_equal(pin_take(&p, 100), 0);
    assert_int_equal(pin_give(&p), 0);
    assert_int_equal(pin_give(&p), 0);
    assert_int_equal(pin_give(&p), 0);
    assert_int_equal(pin_give(&p), 130);
    assert_int_equal(pin_take(&p, 100), 100);
    assert_int_equal(pin_give(&p), 100);
}

#define SNAPSHOT_TEST(claim) cmocka_unit_test_setup_teardown(claim, open_list, close_list)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(the_newest_that_is_alive_is_found),
        SNAPSHOT_TEST(few_large_versions_are_alive),
        SNAPSHOT_TEST(readers_that_do_not_go_are_not_waited_for_for_ever),
        SNAPSHOT_TEST(many_small_versions_may_be_alive),
        SNAPSHOT_TEST(a_document_outlives_the_owner_of_its_list),
        SNAPSHOT_TEST(readers_on_many_threads_find_what_is_alive),
        cmocka_unit_test(a_pin_counts_what_its_readers_keep_alive_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
