/* Claims about the two readers of a hold's body: the quick one never accepts what the thorough one
 * refuses, and never reads it differently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "api/hold_parse.h"
#include "base/random.h"

static struct buf body_of(const char *text, size_t len)
{
    struct buf b = {0};
    buf_put(&b, text, len);
    return b;
}

static void assert_same_text(struct text a, struct text b)
{
    assert_int_equal(a.len, b.len);
    assert_int_equal(a.data == NULL, b.data == NULL);
    if (a.len)
        assert_memory_equal(a.data, b.data, a.len);
}

/* Returns true if the quick reader accepts the body; the thorough one must then agree. */
static bool read_both_ways(const char *text, size_t len)
{
    struct buf body = body_of(text, len);
    struct hold_body quick = {0}, thorough = {0};
    json_t *json = NULL;
    struct hf_err err = {0};
    bool scanned = hold_scan(&body, &quick);
    bool parsed = hold_parse(&body, &thorough, &json, &err);
    if (scanned) {
        if (!parsed)
            print_error("%.*s: %s\n", (int)len, text, err.msg);
        assert_true(parsed);
        assert_same_text(quick.event, thorough.event);
        assert_same_text(quick.owner, thorough.owner);
        assert_same_text(quick.metadata, thorough.metadata);
        assert_int_equal(quick.ttl_ms, thorough.ttl_ms);
        assert_int_equal(quick.n_seats, thorough.n_seats);
        for (size_t i = 0; i < quick.n_seats; i++)
            assert_same_text(quick.seats[i], thorough.seats[i]);
    }
    hold_body_close(&quick);
    hold_body_close(&thorough);
    json_decref(json);
    buf_close(&body);
    return scanned;
}

static bool read_text(const char *text) { return read_both_ways(text, strlen(text)); }

static const char *const plain[] = {
    "{\"event\":\"evt_1\",\"seats\":[\"S-A-1\"]}",
    "{\"event\":\"evt_1\",\"seats\":[\"S-A-1\",\"S-A-2\"],\"owner\":\"user-123\"}",
    "{\"seats\":[\"S-A-1\"],\"ttl_ms\":1000,\"owner\":\"\",\"event\":\"\"}",
    " {\t\"event\" :\r\n\"evt_1\" , \"seats\" : [ \"S-A-1\" , \"\" ] , \"ttl_ms\" : 86400000 } \n",
};
#define N_PLAIN (sizeof plain / sizeof *plain)

static void plain_bodies_are_read_quickly(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_PLAIN; i++)
        assert_true(read_text(plain[i]));
}

static void anything_unusual_is_left_to_the_thorough_reader(void **state)
{
    (void)state;
    static const char *const unusual[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"event\":\"e\"}",
        "{\"event\":\"e\",\"seats\":[]}",
        "{\"event\":\"e\",\"seats\":[\"a\",]}",
        "{\"event\":\"e\",\"seats\":[\"a\"],}",
        "{\"event\":\"e\",\"seats\":[\"a\"]}x",
        "{\"event\":\"e\",\"seats\":[\"a\"]",
        "{\"event\":\"e\",\"event\":\"e\",\"seats\":[\"a\"]}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"seats\":[\"b\"]}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"owner\":null}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"owner\":\"\\u0041\"}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"owner\":\"\xc3\xa9\"}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"ttl_ms\":999}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"ttl_ms\":01000}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"ttl_ms\":1000.0}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"ttl_ms\":99999999999999999999}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"metadata\":{}}",
        "{\"event\":\"e\",\"seats\":[\"a\"],\"types\":{\"a\":\"child\"}}",
        "{\"event\":\"e\",\"seats\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\","
        "\"11\",\"12\",\"13\",\"14\",\"15\",\"16\",\"17\"]}",
    };
    for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
        assert_false(read_text(unusual[i]));
}

static void a_body_cut_off_anywhere_is_never_taken_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < N_PLAIN; i++)
        for (size_t len = 0; len < strlen(plain[i]); len++)
            assert_false(read_both_ways(plain[i], len));
}

static void both_readers_agree_on_fifty_thousand_damaged_bodies(void **state)
{
    (void)state;
    static const char odd[] = "\"\\{}[],: \t\n0123456789eE.+-tfn\x01\x7f\x80\xc3\xff\0aevent";
    struct random random;
    random_init_seeded(&random, 7);
    size_t taken = 0;
    for (int round = 0; round < 50000; round++) {
        char text[256];
        const char *original = plain[random_below(&random, N_PLAIN)];
        size_t len = strlen(original);
        memcpy(text, original, len);
        for (uint64_t n = 1 + random_below(&random, 3); n > 0; n--)
            text[random_below(&random, len)] = odd[random_below(&random, sizeof odd - 1)];
        taken += read_both_ways(text, len);
    }
    assert_true(taken > 1000); /* or the test has tested nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_bodies_are_read_quickly),
        cmocka_unit_test(anything_unusual_is_left_to_the_thorough_reader),
        cmocka_unit_test(a_body_cut_off_anywhere_is_never_taken_whole),
        cmocka_unit_test(both_readers_agree_on_fifty_thousand_damaged_bodies),
    };
    return cmocka_run_group_tests_name("hold_parse", tests, NULL, NULL);
}
