/* Answers under idempotency keys: sandbox/answers.h. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "sandbox/answers.h"

static const uint8_t digest_one[DIGEST_SIZE] = {1};

static void keep(struct answers *a, int64_t account, const char *key, int64_t now_ms)
{
    answers_store(a, answers_begin(a, account, key, digest_one), 200, "{}", 2, now_ms);
}

static void a_key_belongs_to_its_account(void **state)
{
    (void)state;
    struct answers a = {0};
    keep(&a, 1, "k", T0_MS);
    assert_null(answers_find(&a, 2, "k"));
    assert_null(answers_find(&a, 1, "K"));
    const struct stored_answer *found = answers_find(&a, 1, "k");
    assert_non_null(found);
    assert_int_equal(found->status, 200);
    assert_memory_equal(found->body, "{}", found->len);
    answers_close(&a);
}

static void a_key_in_flight_is_found_without_an_answer_and_can_be_forgotten(void **state)
{
    (void)state;
    struct answers a = {0};
    struct stored_answer *begun = answers_begin(&a, 1, "k", digest_one);
    assert_ptr_equal(answers_find(&a, 1, "k"), begun);
    assert_int_equal(begun->status, 0);
    assert_null(answers_expire(&a, T0_MS + 2 * ANSWER_KEPT_MS));
    answers_forget(&a, begun);
    assert_null(answers_find(&a, 1, "k"));
    answers_close(&a);
}

static void an_answer_is_kept_for_a_day(void **state)
{
    (void)state;
    struct answers a = {0};
    keep(&a, 1, "old", T0_MS);
    keep(&a, 1, "new", T0_MS + 1);
    assert_null(answers_expire(&a, T0_MS + ANSWER_KEPT_MS - 1));
    struct stored_answer *old = answers_expire(&a, T0_MS + ANSWER_KEPT_MS);
    assert_non_null(old);
    assert_string_equal(old->key, "old");
    answer_free(old);
    assert_null(answers_expire(&a, T0_MS + ANSWER_KEPT_MS));
    assert_null(answers_find(&a, 1, "old"));
    assert_non_null(answers_find(&a, 1, "new"));
    answers_close(&a);
}

static void one_answer_too_many_ends_the_oldest(void **state)
{
    (void)state;
    struct answers a = {0};
    char key[24];
    for (int i = 0; i <= ANSWERS_MAX; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        keep(&a, 1, key, T0_MS);
    }
    struct stored_answer *first = answers_expire(&a, T0_MS);
    assert_non_null(first);
    assert_string_equal(first->key, "k0");
    answer_free(first);
    assert_null(answers_expire(&a, T0_MS));
    assert_non_null(answers_find(&a, 1, "k1"));
    answers_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_belongs_to_its_account),
        cmocka_unit_test(a_key_in_flight_is_found_without_an_answer_and_can_be_forgotten),
        cmocka_unit_test(an_answer_is_kept_for_a_day),
        cmocka_unit_test(one_answer_too_many_ends_the_oldest),
    };
    return cmocka_run_group_tests_name("sandbox_answers", tests, NULL, NULL);
}
