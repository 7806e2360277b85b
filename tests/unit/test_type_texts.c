/* Claims about ticket types as rows store them: in the lists of prices of holds, and in the terms
 * of events.  Every damaged text is noticed, and within its own bytes. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"
#include "ledger/number_list.h"

/* A copy of exactly these bytes, for the sanitizer. */
static char *exact(const char *text) { return hf_strndup(text, strlen(text)); }

static bool parse_prices(const char *text, struct price_run *runs, uint32_t *n)
{
    size_t len = strlen(text);
    char *copy = exact(text);
    struct price_run *room = hf_alloc((len + 1) / 4 * sizeof *room + 1);
    bool is_sound = price_list_parse(copy, len, room, n);
    if (is_sound && *n)
        memcpy(runs, room, *n * sizeof *room);
    free(room);
    free(copy);
    return is_sound;
}

static void prices_survive_being_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct price_run runs[4];
        uint32_t n;
    } lists[] = {
        {"[]", {{0}}, 0},
        {"[0,1]", {{0, 1, 0}}, 1},
        {"[6500,2,4000,1]", {{6500, 2, 0}, {4000, 1, 0}}, 2}, /* as before there were types */
        {"[4000,[1,1]]", {{4000, 1, 1}}, 1},
        {"[6500,2,4000,[1,2],0,[7,15],1,1]",
         {{6500, 2, 0}, {4000, 1, 2}, {0, 7, 15}, {1, 1, 0}},
         4},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct buf text = {0};
        struct price_run back[8] = {0};
        uint32_t n = 99;
        price_list_write(lists[i].runs, lists[i].n, &text);
        assert_true(text.len <= PRICE_LIST_MAX(lists[i].n));
        assert_int_equal(text.len, strlen(lists[i].text));
        assert_memory_equal(text.data, lists[i].text, text.len);
        assert_true(parse_prices(lists[i].text, back, &n));
        assert_int_equal(n, lists[i].n);
        for (uint32_t k = 0; k < n; k++) {
            assert_int_equal(back[k].price, lists[i].runs[k].price);
            assert_int_equal(back[k].n, lists[i].runs[k].n);
            assert_int_equal(back[k].type, lists[i].runs[k].type);
        }
        buf_close(&text);
    }
}

static void the_longest_list_fits_into_its_room(void **state)
{
    (void)state;
    struct price_run runs[3];
    struct buf text = {0};
    for (int i = 0; i < 3; i++)
        runs[i] = (struct price_run){INT64_MAX / 10, UINT32_MAX, TYPES_MAX - 1};
    price_list_write(runs, 3, &text);
    assert_true(text.len <= PRICE_LIST_MAX(3));
    buf_close(&text);
}

static void damaged_lists_of_prices_are_noticed(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "",
        "[",
        "]",
        "[1",
        "[1]",
        "[1,]",
        "[1,2",
        "[1,2,]",
        "[1,2,3]",
        "[1,[]]",
        "[1,[2]]",
        "[1,[2,]]",
        "[1,[2,0]]",
        "[1,[2,16]]",
        "[1,[2,01]]",
        "[1,[2,1,1]]",
        "[[1,1],2]",
        "[1,[2,-1]]",
        "[1,[2, 1]]",
        "[1,[2,1]",
        "[1,[2,1",
        "[1,[2,",
        "[1,[",
        "[1,[2,1],]",
        "[1,[2,a]]",
        "[1,[2;1]]",
        "[1,[2,1],3]",
        "[[1,2]]",
        "[1,[[2,1]]]",
        "[1,[2,1]]]",
        "[1,2]]",
        "[1,2:1]",
        "[1,[2,99999999999999999999]]",
        "[1,4294967296]",
        "[01,2]",
        "[-1,2]",
        "1,2",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct price_run runs[8];
        uint32_t n = 99;
        if (parse_prices(damaged[i], runs, &n))
            fail_msg("accepted: %s", damaged[i]);
        assert_int_equal(n, 99);
    }
}

/* Blocked places of areas are stored as pairs, too, which have no types. */
static void blocked_places_have_no_types(void **state)
{
    (void)state;
    struct area_blocks blocks = {0};
    assert_true(block_list_parse("[0,5]", 5, &blocks));
    vec_clear(&blocks.list);
    assert_false(block_list_parse("[0,[5,1]]", 9, &blocks));
    vec_close(&blocks.list);
}

static bool parse_types(const char *text, struct event_terms *ret)
{
    char *copy = exact(text);
    bool is_sound = terms_types_parse(copy, strlen(text), ret);
    free(copy);
    return is_sound;
}

static void types_are_read_with_their_prices(void **state)
{
    (void)state;
    struct event_terms terms = {0};
    *vec_push(&terms.prices) = 6500;
    *vec_push(&terms.prices) = 3000;
    *vec_push(&terms.prices) = 100;
    assert_true(parse_types("full\tFull price\t\n"
                            "reduced\tErm\xc3\xa4\xc3\x9figt\t4000,,0\n"
                            "child\tchild\t,2000",
                            &terms));
    static const int64_t prices[3][3] = {{6500, 3000, 100}, {4000, 3000, 0}, {6500, 2000, 100}};
    assert_int_equal(terms.types.n, 3);
    for (uint32_t type = 0; type < 3; type++)
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(event_terms_price(&terms, i, type), prices[type][i]);
    assert_int_equal(event_terms_price(&terms, 1, 7), 3000); /* a type of another server */
    assert_string_equal(terms.types.v[1].name, "Erm\xc3\xa4\xc3\x9figt");
    assert_int_equal(event_terms_type(&terms, "child", 5), 2);
    assert_int_equal(event_terms_type(&terms, "chil", 4), -1);
    struct event_terms copy;
    event_terms_copy(&terms, &copy);
    assert_true(event_terms_equal(&terms, &copy));
    copy.types.v[2].prices.v[1]++;
    assert_false(event_terms_equal(&terms, &copy));
    event_terms_close(&copy);
    event_terms_close(&terms);
}

static void damaged_types_are_noticed(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "full",           "full\t",          "full\tFull",          "\tFull\t1",
        "full\t\t1",      "full\tFull\t1\n", "full\tFull\t1,x",     "full\tFull\t01",
        "full\tFull\t-1", "a\tA\t1\n\n",     "a\tA\t1\na\tB\t2",    "full\tFull\t1\t2",
        "a\tA\t1;2",      "a\tA\t 1",        "a\tA\t9999999999999", "a\tA\t1\n\tB\t2",
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct event_terms terms = {0};
        if (parse_types(damaged[i], &terms))
            fail_msg("accepted: %s", damaged[i]);
        event_terms_close(&terms);
    }
}

static void seventeen_types_are_damage(void **state)
{
    (void)state;
    struct buf text = {0};
    for (int i = 0; i <= TYPES_MAX; i++) {
        struct event_terms terms = {0};
        buf_printf(&text, "%st%d\tT\t%d", i ? "\n" : "", i, i);
        assert_int_equal(terms_types_parse(text.data, text.len, &terms), i < TYPES_MAX);
        event_terms_close(&terms);
    }
    buf_close(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prices_survive_being_text),
        cmocka_unit_test(the_longest_list_fits_into_its_room),
        cmocka_unit_test(damaged_lists_of_prices_are_noticed),
        cmocka_unit_test(blocked_places_have_no_types),
        cmocka_unit_test(types_are_read_with_their_prices),
        cmocka_unit_test(damaged_types_are_noticed),
        cmocka_unit_test(seventeen_types_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
