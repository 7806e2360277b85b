/* Texts from outside: UTF-8, durations and sizes, and bytes as hexadecimal digits. */
#include "support/fixtures.h"

#include <string.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "setup/size.h"

/* ---- UTF-8 ---- */

static void put_char(char out[4], uint32_t code, size_t len)
{
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(len == 1 ? code : heads[len] | code);
}

static size_t shortest(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/* Every code point in every length that could carry it: only the shortest form of a code point that
 * is no surrogate is a character. */
static void exactly_the_shortest_forms_of_real_code_points_are_valid(void **state)
{
    (void)state;
    static const uint32_t ends[] = {0, 0x7f, 0x7ff, 0xffff, 0x1fffff};
    for (size_t len = 1; len <= 4; len++)
        for (uint32_t code = 0; code <= ends[len]; code++) {
            char text[4];
            put_char(text, code, len);
            bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
            bool want = len == shortest(code) && !is_surrogate && code <= 0x10ffff;
            if (utf8_char_len(text, len) != (want ? len : 0))
                fail_msg("U+%04X in %zu bytes", code, len);
            if (want && len > 1 && utf8_char_len(text, len - 1) != 0)
                fail_msg("U+%04X cut off after %zu bytes", code, len - 1);
        }
}

static void the_valid_prefix_ends_before_the_first_bad_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t valid;
    } cases[] = {{"", 0},
                 {"abc", 3},
                 {"a\xc3\xa9", 3},
                 {"a\xc3", 1},
                 {"a\xed\xa0\x80z", 1},
                 {"\xe2\x82\xac\xff", 3},
                 {"\xf0\x9f\x8e\xab!", 5},
                 {"\x80", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].text);
        assert_int_equal(utf8_valid_len(cases[i].text, len), cases[i].valid);
        assert_int_equal(utf8_is_valid(cases[i].text, len), cases[i].valid == len);
    }
    assert_int_equal(utf8_char_len("", 0), 0);
    assert_int_equal(utf8_chars("a\xc3\xa9\xf0\x9f\x8e\xab", 7), 3);
}

/* ---- durations ---- */

static void durations_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"500ms", 500},    {"30s", 30000},
                 {"30", 30000},     {"1.5s", 1500},
                 {"2m30s", 150000}, {"2h", 7200000},
                 {"1d", 86400000},  {"0", 0},
                 {"", -1},          {"s", -1},
                 {"30S", -1},       {"-1s", -1},
                 {"30s2m", -1},     {"1s1s", -1},
                 {"1e3s", -1},      {" 1s", -1},
                 {"1s ", -1},       {".5s", -1},
                 {"5.s", -1},       {"inf", -1},
                 {"1 s", -1},       {"3660d", DURATION_MS_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (duration_parse_ms(cases[i].text) != cases[i].ms)
            fail_msg("\"%s\" is %lld", cases[i].text, (long long)duration_parse_ms(cases[i].text));
    assert_true(duration_parse_ms("3661d") > DURATION_MS_MAX);
    assert_true(duration_parse_ms("99999999999999999999999s") > DURATION_MS_MAX);
}

static void a_duration_is_written_in_the_largest_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {{0, "0 ms"},         {1, "1 ms"},          {1000, "1 s"},    {1500, "1500 ms"},
                 {90000, "90 s"},     {600000, "10 min"},   {3600000, "1 h"}, {86400000, "24 h"},
                 {129600000, "36 h"}, {604800000, "7 days"}};
    char text[DURATION_TEXT_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(duration_text(text, cases[i].ms), cases[i].text);
}

static void a_misspelt_word_is_near_to_the_one_that_was_meant(void **state)
{
    (void)state;
    static const char *const words[] = {"create", "list", "show"};
    assert_string_equal(nearest_word("lst", 3, words, 3, 1), "list");
    assert_string_equal(nearest_word("craete", 6, words, 3, 1), "create");
    assert_string_equal(nearest_word("shows", 5, words, 3, 1), "show");
    assert_null(nearest_word("frobnicate", 10, words, 3, 5));
    assert_null(nearest_word("", 0, words, 3, 3));
    char longest[NEAREST_LEN_MAX + 2];
    memset(longest, 'x', sizeof longest);
    assert_null(nearest_word(longest, sizeof longest, words, 3, 1000));
}

/* ---- sizes ---- */

static void sizes_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"0", 0},
                 {"4096", 4096},
                 {"17B", 17},
                 {"512KB", 524288},
                 {"256MB", 268435456},
                 {"256mb", 268435456},
                 {"1GB", 1073741824},
                 {"1024TB", SIZE_TEXT_MAX},
                 {"", -1},
                 {"MB", -1},
                 {"1.5GB", -1},
                 {"-1", -1},
                 {" 1MB", -1},
                 {"1 MB", -1},
                 {"1MBB", -1},
                 {"1M", -1},
                 {"0x10", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (size_parse(cases[i].text) != cases[i].bytes)
            fail_msg("\"%s\" is %lld", cases[i].text, (long long)size_parse(cases[i].text));
    assert_true(size_parse("1025TB") > SIZE_TEXT_MAX);
    assert_true(size_parse("99999999999999999999999KB") > SIZE_TEXT_MAX);
}

/* ---- bytes ---- */

static void bytes_are_written_as_lower_case_digits(void **state)
{
    (void)state;
    char text[9] = "xxxxxxxx";
    hex_format((const uint8_t[]){0x00, 0x9f, 0xa0, 0xff}, 4, text);
    assert_string_equal(text, "009fa0ff");
}

static void parts_hash_as_the_whole(void **state)
{
    (void)state;
    uint64_t parts = hash_more(hash_more(HASH_START, "Stalls", 6), "-A", 2);
    assert_true(hash_finish(parts) == hash_bytes("Stalls-A", 8));
    assert_true(hash_bytes("Stalls-A", 8) != hash_bytes("Stalls-B", 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_shortest_forms_of_real_code_points_are_valid),
        cmocka_unit_test(the_valid_prefix_ends_before_the_first_bad_byte),
        cmocka_unit_test(durations_are_read_as_people_write_them),
        cmocka_unit_test(a_duration_is_written_in_the_largest_unit_that_fits),
        cmocka_unit_test(a_misspelt_word_is_near_to_the_one_that_was_meant),
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(bytes_are_written_as_lower_case_digits),
        cmocka_unit_test(parts_hash_as_the_whole),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
