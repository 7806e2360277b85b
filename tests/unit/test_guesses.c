/* Claims about wrong access keys (guesses.h): what is logged of them, and which keys are known. */
#include "support/fixtures.h"

#include <string.h>

#include "http/guesses.h"

#define MINUTE_US INT64_C(60000000)

struct bench {
    struct metrics *metrics;
    struct guesses guesses;
};

static int open_bench(void **state)
{
    struct bench *b = hf_alloc(sizeof *b);
    b->metrics = metrics_new();
    guesses_open(&b->guesses, b->metrics);
    *state = b;
    return 0;
}

static int close_bench(void **state)
{
    struct bench *b = *state;
    guesses_close(&b->guesses);
    metrics_free(b->metrics);
    free(b);
    return 0;
}

static struct address address_of(const char *text)
{
    struct address a;
    assert_true(address_parse(text, strlen(text), &a));
    return a;
}

static struct address nth(unsigned n)
{
    return (struct address){.bytes = {192, 0, (uint8_t)(n >> 8), (uint8_t)n}, .v4 = true};
}

static const struct guesser *entry_of(const struct guesses *g, const struct address *a)
{
    for (int i = 0; i < GUESSES_LOGGED_MAX; i++)
        if (g->guessers[i].used &&
            memcmp(g->guessers[i].address.bytes, a->bytes, sizeof a->bytes) == 0)
            return &g->guessers[i];
    return NULL;
}

/* ---- the log ---- */

static void an_address_is_logged_at_once_and_then_once_in_a_minute(void **state)
{
    struct guesses *g = &((struct bench *)*state)->guesses;
    const struct address a = nth(1);
    int64_t now_us = 5 * MINUTE_US;
    guesses_note(g, &a, now_us);
    const struct guesser *entry = entry_of(g, &a);
    assert_non_null(entry);
    assert_int_equal(entry->logged_us, now_us);
    assert_int_equal(entry->n_unlogged, 0);
    for (int i = 1; i <= 100; i++)
        guesses_note(g, &a, now_us + i);
    assert_int_equal(entry->logged_us, now_us);
    assert_int_equal(entry->n_unlogged, 100);
    guesses_note(g, &a, now_us + MINUTE_US);
    assert_int_equal(entry->logged_us, now_us + MINUTE_US);
    assert_int_equal(entry->n_unlogged, 0);
    assert_int_equal(counter_read(g->total), 102);
}

static void addresses_beyond_the_lines_of_a_minute_are_counted_together(void **state)
{
    struct guesses *g = &((struct bench *)*state)->guesses;
    const int64_t now_us = 5 * MINUTE_US;
    for (unsigned n = 0; n < GUESSES_LOGGED_MAX + 7; n++) {
        const struct address a = nth(n);
        guesses_note(g, &a, now_us + n);
    }
    const struct address last = nth(GUESSES_LOGGED_MAX + 6);
    assert_null(entry_of(g, &last));
    assert_int_equal(g->n_others, 7);
    guesses_note(g, &last, now_us + 2 * MINUTE_US); /* its line says so */
    assert_non_null(entry_of(g, &last));
    assert_int_equal(g->n_others, 0);
}

static void what_was_not_logged_when_an_address_is_replaced_is_not_lost(void **state)
{
    struct guesses *g = &((struct bench *)*state)->guesses;
    const int64_t now_us = 5 * MINUTE_US;
    for (unsigned n = 0; n < GUESSES_LOGGED_MAX; n++)
        for (int i = 0; i < 3; i++) {
            const struct address a = nth(n);
            guesses_note(g, &a, now_us);
        }
    for (unsigned n = 100; n < 100 + GUESSES_LOGGED_MAX; n++) {
        const struct address a = nth(n);
        guesses_note(g, &a, now_us + MINUTE_US + n); /* logs the two of the one it replaces */
        assert_int_equal(g->n_others, 0);
    }
    assert_int_equal(counter_read(g->total), 4 * GUESSES_LOGGED_MAX);
}

/* ---- known keys ---- */

static void a_key_is_known_where_it_was_used_and_nowhere_else(void **state)
{
    struct guesses *g = &((struct bench *)*state)->guesses;
    const uint8_t key[DIGEST_SIZE] = {1, 2, 3}, other[DIGEST_SIZE] = {1, 2, 4};
    const struct address a = address_of("192.0.2.1"), b = address_of("192.0.2.2");
    const struct address v6 = address_of("2001:db8:0:1::1"), near = address_of("2001:db8:0:1::2"),
                         far = address_of("2001:db8:0:2::1");
    assert_false(guesses_know(g, &a, key));
    guesses_remember(g, &a, key);
    guesses_remember(g, &v6, key);
    assert_true(guesses_know(g, &a, key) && guesses_know(g, &v6, key));
    assert_true(guesses_know(g, &near, key));
    assert_false(guesses_know(g, &b, key) || guesses_know(g, &far, key));
    assert_false(guesses_know(g, &a, other) || guesses_know(g, &v6, other));
}

static void most_keys_stay_known_when_many_addresses_use_them(void **state)
{
    enum { USED = GUESSES_KNOWN / 8 };
    struct guesses *g = &((struct bench *)*state)->guesses;
    const uint8_t key[DIGEST_SIZE] = {9};
    size_t n_known = 0;
    for (unsigned n = 0; n < USED; n++) {
        const struct address a = nth(n);
        guesses_remember(g, &a, key);
    }
    for (unsigned n = 0; n < USED; n++) {
        const struct address a = nth(n);
        n_known += guesses_know(g, &a, key);
    }
    assert_true(n_known > USED * 8 / 10);
}

#define CLAIM(claim) cmocka_unit_test_setup_teardown(claim, open_bench, close_bench)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(an_address_is_logged_at_once_and_then_once_in_a_minute),
        CLAIM(addresses_beyond_the_lines_of_a_minute_are_counted_together),
        CLAIM(what_was_not_logged_when_an_address_is_replaced_is_not_lost),
        CLAIM(a_key_is_known_where_it_was_used_and_nowhere_else),
        CLAIM(most_keys_stay_known_when_many_addresses_use_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
