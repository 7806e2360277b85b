/* Claims about the two readers of the lock service's bodies: the quick one never accepts what the
 * thorough one refuses, and never reads it differently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "api/lock_parse.h"
#include "base/random.h"

static const struct lock_field *const tables[] = {lock_fields_open, lock_fields_acquire,
                                                  lock_fields_release, lock_fields_value};
#define N_TABLES (sizeof tables / sizeof *tables)

static void assert_same_text(struct text a, struct text b)
{
    assert_int_equal(a.len, b.len);
    assert_int_equal(a.data == NULL, b.data == NULL);
    if (a.len)
        assert_memory_equal(a.data, b.data, a.len);
}

static void assert_same(const struct lock_body *a, const struct lock_body *b)
{
    assert_same_text(a->session, b->session);
    assert_same_text(a->owner, b->owner);
    assert_same_text(a->agent, b->agent);
    assert_same_text(a->mode, b->mode);
    assert_same_text(a->value, b->value);
    assert_same_text(a->label, b->label);
    const int64_t *x = &a->ttl_ms, *y = &b->ttl_ms;
    for (size_t at = offsetof(struct lock_body, ttl_ms); at <= offsetof(struct lock_body, fence);
         at += sizeof *x)
        assert_int_equal(*(const int64_t *)(const void *)((const char *)a + at),
                         *(const int64_t *)(const void *)((const char *)b + at));
    assert_int_equal(*x, *y);
    assert_int_equal(a->cache, b->cache);
    assert_int_equal(a->given, b->given);
}

/* Returns true if the quick reader accepts the body; the thorough one must then agree. */
static bool read_both_ways(const struct lock_field *table, const char *text, size_t len)
{
    struct buf body = {0};
    struct lock_body quick = {0}, thorough = {0};
    json_t *json = NULL;
    struct hf_err err = {0};
    buf_put(&body, text, len);
    bool scanned = lock_scan(&body, table, &quick);
    bool parsed = lock_parse(&body, table, &thorough, &json, &err);
    if (scanned) {
        if (!parsed)
            print_error("%.*s: %s\n", (int)len, text, err.msg);
        assert_true(parsed);
        assert_same(&quick, &thorough);
    }
    json_decref(json);
    buf_close(&body);
    return scanned;
}

static const struct {
    unsigned table;
    const char *text;
} plain[] = {
    {0, "{\"ttl_ms\":15000}"},
    {0, "{\"label\":\"worker 7\",\"ttl_ms\":86400000}"},
    {1, "{\"session\":\"ses_1\"}"},
    {1,
     "{\"session\":\"ses_1\",\"owner\":\"4f2a\",\"mode\":\"shared\",\"wait_ms\":0,\"cache\":true}"},
    {1, " { \"session\" : \"\" ,\r\n\t\"priority\" : -1000000 , \"slots\":1000000, \"delay_ms\":1,"
        "\"claim_ms\":50,\"claim\":true,\"agent\":\"\",\"label\":\"l\",\"value\":\"v\",\"cache\" : "
        "false } "},
    {2, "{\"session\":\"s\",\"owner\":\"a\"}"},
    {2, "{\"session\":\"s\",\"owner\":\"a\",\"fence\":999999999999999999}"},
    {3, "{\"session\":\"s\",\"owner\":\"a\",\"fence\":1,\"value\":\"v\"}"},
};
#define N_PLAIN (sizeof plain / sizeof *plain)

static void plain_bodies_are_read_quickly(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_PLAIN; i++)
        assert_true(read_both_ways(tables[plain[i].table], plain[i].text, strlen(plain[i].text)));
}

static void anything_unusual_is_left_to_the_thorough_reader(void **state)
{
    (void)state;
    static const char *const unusual[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"session\":\"s\",}",
        "{\"session\":\"s\"}x",
        "{\"session\":\"s\"",
        "{\"session\":\"s\",\"session\":\"s\"}",
        "{\"session\":null}",
        "{\"session\":\"\\u0041\"}",
        "{\"session\":\"\xc3\xa9\"}",
        "{\"session\":\"s\",\"owner\":\"\"}",
        "{\"session\":\"s\",\"owner\":\"123456789012345678901234567890123\"}",
        "{\"session\":\"s\",\"slots\":0}",
        "{\"session\":\"s\",\"slots\":01}",
        "{\"session\":\"s\",\"slots\":1.0}",
        "{\"session\":\"s\",\"slots\":1e1}",
        "{\"session\":\"s\",\"slots\":-}",
        "{\"session\":\"s\",\"wait_ms\":60001}",
        "{\"session\":\"s\",\"wait_ms\":-1}",
        "{\"session\":\"s\",\"wait_ms\":99999999999999999999}",
        "{\"session\":\"s\",\"cache\":tru}",
        "{\"session\":\"s\",\"cache\":1}",
        "{\"session\":\"s\",\"value\":null}",
        "{\"session\":\"s\",\"ttl_ms\":1000}",
        "{\"owner\":\"a\"}",
    };
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        assert_false(read_both_ways(lock_fields_acquire, unusual[i], strlen(unusual[i])));
}

static void a_body_cut_off_anywhere_is_never_taken_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_PLAIN; i++) {
        size_t whole = (size_t)(strrchr(plain[i].text, '}') - plain[i].text) + 1;
        for (size_t len = 0; len < whole; len++)
            assert_false(read_both_ways(tables[plain[i].table], plain[i].text, len));
    }
}

static void a_value_of_null_is_given_and_an_absent_one_is_not(void **state)
{
    (void)state;
    static const char null_value[] =
        "{\"session\":\"s\",\"owner\":\"a\",\"fence\":1,\"value\":null}";
    static const char no_value[] = "{\"session\":\"s\",\"owner\":\"a\",\"fence\":1}";
    const char *const texts[] = {null_value, no_value};
    for (int i = 0; i < 2; i++) {
        struct buf body = {0};
        struct lock_body read = {0};
        json_t *json = NULL;
        struct hf_err err = {0};
        buf_str(&body, texts[i]);
        assert_true(lock_parse(&body, lock_fields_value, &read, &json, &err));
        assert_int_equal(!(read.given & LOCK_VALUE_GIVEN), i);
        assert_null(read.value.data);
        json_decref(json);
        buf_close(&body);
    }
}

static void both_readers_agree_on_fifty_thousand_damaged_bodies(void **state)
{
    (void)state;
    static const char odd[] = "\"\\{}[],: \t\n0123456789eE.+-tfn\x01\x7f\x80\xc3\xff\0afence";
    struct random random;
    random_init_seeded(&random, 7);
    size_t taken = 0;
    for (int round = 0; round < 50000; round++) {
        char text[512];
        size_t which = random_below(&random, N_PLAIN);
        size_t len = strlen(plain[which].text);
        memcpy(text, plain[which].text, len);
        for (uint64_t n = 1 + random_below(&random, 3); n > 0; n--)
            text[random_below(&random, len)] = odd[random_below(&random, sizeof odd - 1)];
        taken += read_both_ways(
            tables[random_below(&random, 8) ? plain[which].table : random_below(&random, N_TABLES)],
            text, len);
    }
    assert_true(taken > 1000); /* or the test has tested nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_bodies_are_read_quickly),
        cmocka_unit_test(anything_unusual_is_left_to_the_thorough_reader),
        cmocka_unit_test(a_body_cut_off_anywhere_is_never_taken_whole),
        cmocka_unit_test(a_value_of_null_is_given_and_an_absent_one_is_not),
        cmocka_unit_test(both_readers_agree_on_fifty_thousand_damaged_bodies),
    };
    return cmocka_run_group_tests_name("lock_parse", tests, NULL, NULL);
}
