/* Claims about hashes of what clients name: they are SipHash-1-3 under the process's key, and names
 * that were chosen to meet in one slot under an unkeyed hash do not slow a table down. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/wait.h"
#include "view/view.h"

/* ---- the function ---- */

static const uint8_t counted[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* The key of the published vectors: the bytes 0 to 15. */
static int with_known_key(void **state)
{
    (void)state;
    hash_set_key(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908));
    return 0;
}

static void it_is_siphash_1_3(void **state)
{
    (void)state;
    assert_true(hash_keyed(NULL, 0) == UINT64_C(0xabac0158050fc4dc));
    assert_true(hash_keyed(counted, 1) == UINT64_C(0xc9f49bf37d57ca93));
    assert_true(hash_keyed(counted, 15) == UINT64_C(0xd320d86d2a519956));
}

static void a_number_and_bytes_hash_as_their_concatenation(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 8; len++)
        assert_true(hash_keyed_with(UINT64_C(0x0706050403020100), counted + 8, len) ==
                    hash_keyed(counted, 8 + len));
}

static void another_key_hashes_otherwise(void **state)
{
    (void)state;
    uint64_t before = hash_keyed("Stalls-A", 8);
    hash_set_key(1, 2);
    assert_true(hash_keyed("Stalls-A", 8) != before);
}

/* ---- names that collide ---- */

/* Pairs of texts.  Take one of each pair, in this order, after "S-": whichever are taken, FNV-1a
 * arrives at the same bits 0 to 49, and so at the same slot of a table of up to 2^18. */
static const char pairs[][2][17] = {
    {"dlideefambfjogge", "dalgncgkfjilmppl"}, {"gleddbdmhpijgdjm", "jondidkdhlpfidlf"},
    {"pdemljfdeoldhidd", "nlhfipaapbchmhkg"}, {"cleklnalcgioejeg", "gaiiaennognnbgec"},
    {"mjbmngiplhgigmem", "nilhjjikhfgbmlob"}, {"ohhdgbdajmeiahmp", "pnpjonmjjihkklfg"},
    {"ccgeeoonbacfjagc", "icdmnbnchnnejclp"}, {"jbaofmmofkblpfkb", "nakndiknhadpkmpf"},
    {"gfcekbpjdobbncmd", "pghhiccfiehaaigg"}, {"hdocodoconpflgea", "glnchaplehlikjli"},
    {"diblbfijhkllbkoi", "nmfcjldjlmgnfkab"}, {"haajhjihdcpohpmk", "knelaobglgdfilhn"},
    {"dmgiicdiidpgbgfi", "fpcdcgaijnagdpdi"}, {"mbnekdogkmgcmboj", "ainmnmgdkogdaine"},
    {"baokhofjfopkacnf", "cmdcdnblnigogdcn"}, {"igbpkobibjfmbcgd", "lddkaekmjefgbegm"},
    {"doodhcohpiajjnmp", "iimifjnalcdikohh"},
};
#define PAIRS (sizeof pairs / sizeof *pairs)
#define NAMES 20000
#define NAME_LEN (2 + PAIRS * 16)
_Static_assert(NAMES <= 1u << PAIRS, "as many names as there are choices");

/* Writes a name that collides with all the others, or one that differs from it in its first letters
 * and collides with none. */
static void write_name(char out[NAME_LEN + 1], uint32_t number, bool collides)
{
    memcpy(out, "S-", 3);
    for (size_t i = 0; i < PAIRS; i++)
        memcpy(out + 2 + i * 16, pairs[i][number >> i & 1], 17);
    for (size_t i = 0; !collides && i < 6; i++)
        out[2 + i] = (char)('A' + (number >> (4 * i) & 15));
}

static void the_names_collide_without_a_key(void **state)
{
    (void)state;
    char name[NAME_LEN + 1];
    write_name(name, 0, true);
    const uint64_t slot = hash_bytes(name, NAME_LEN) & 0x3ffff;
    for (uint32_t i = 0; i < NAMES; i++) {
        write_name(name, i, true);
        assert_true((hash_bytes(name, NAME_LEN) & 0x3ffff) == slot);
    }
}

/* Returns how long it takes to index as many rows as there are names, and to find a seat in each of
 * them. */
static int64_t rows_take_us(bool collide)
{
    char name[NAME_LEN + 8];
    struct event_def *def = def_new("Hall");
    struct clock_row clock = {.event = 1, .now = T0_MS};
    def_section(def, "S", NULL, 100);
    for (uint32_t i = 0; i < NAMES; i++) {
        write_name(name, i, collide);
        *vec_push(&def->sections.v[0].rows) =
            (struct row_def){.name = hf_strndup(name + 2, NAME_LEN - 2), .seats = 1};
    }
    def->id.key = 1;
    assert_true(event_def_number(def));
    int64_t begin_us = wait_now_us();
    struct event *e = event_new(def, &clock);
    for (uint32_t i = 0; i < NAMES; i++) {
        uint32_t seat = UINT32_MAX;
        write_name(name, i, collide);
        memcpy(name + NAME_LEN, "-1", 3);
        assert_true(event_seat_find(e, name, NAME_LEN + 2, &seat));
        assert_int_equal(seat, i);
    }
    int64_t took_us = wait_now_us() - begin_us;
    event_free(e);
    return took_us;
}

/* The same for seats of a venue, by their ids. */
static int64_t ids_take_us(bool collide)
{
    char name[NAME_LEN + 1];
    uint32_t first, second;
    struct venue *v = venue_new();
    for (uint32_t i = 0; i < NAMES; i++) {
        write_name(name, i, collide);
        venue_add(v, &(struct venue_seat){.id = name, .label = "1"});
    }
    int64_t begin_us = wait_now_us();
    assert_true(venue_index(v, &first, &second));
    for (uint32_t i = 0; i < NAMES; i++) {
        uint32_t seat = UINT32_MAX;
        write_name(name, i, collide);
        assert_true(venue_find(v, name, NAME_LEN, &seat));
        assert_int_equal(seat, i);
    }
    int64_t took_us = wait_now_us() - begin_us;
    venue_free(v);
    return took_us;
}

/* In one slot the names would cost NAMES / 2 comparisons each, some thousands of times as much. */
static void assert_no_slower(int64_t (*take_us)(bool collide))
{
    int64_t ordinary_us = take_us(false), chosen_us = take_us(true);
    if (chosen_us > 20 * ordinary_us)
        fail_msg("%lld us, and %lld us with other names", (long long)chosen_us,
                 (long long)ordinary_us);
}

static void rows_with_chosen_names_are_found_as_fast_as_others(void **state)
{
    (void)state;
    assert_no_slower(rows_take_us);
}

static void seats_with_chosen_ids_are_found_as_fast_as_others(void **state)
{
    (void)state;
    assert_no_slower(ids_take_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_is_siphash_1_3, with_known_key),
        cmocka_unit_test_setup(a_number_and_bytes_hash_as_their_concatenation, with_known_key),
        cmocka_unit_test_setup(another_key_hashes_otherwise, with_known_key),
        cmocka_unit_test(the_names_collide_without_a_key),
        cmocka_unit_test(rows_with_chosen_names_are_found_as_fast_as_others),
        cmocka_unit_test(seats_with_chosen_ids_are_found_as_fast_as_others),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
