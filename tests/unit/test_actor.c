/* Claims about actors: which texts are one, and which of them tell an address. */
#include "support/fixtures.h"

#include <string.h>

#include "model/actor.h"

static void every_kind_is_an_actor(void **state)
{
    static const char *const good[] = {
        "open",
        "timer",
        "server",
        "key:admin",
        "key:box-office_1.a",
        "key:ABCDEFGHIJKLMNOPQRSTUVWXYZ012345",
        "address:192.0.2.7",
        "address:2001:db8::1",
        "address:ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
        "address:erased",
        "provider:stripe",
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!actor_is_valid(good[i], strlen(good[i])))
            fail_msg("%s is not an actor", good[i]);
}

static void nothing_else_is(void **state)
{
    static const char *const bad[] = {
        "",
        "opened",
        "ope",
        "Open",
        "timer:1",
        "server:a",
        "key",
        "key:",
        "key: ",
        "key:a b",
        "address:",
        "address:*",
        "addresses:1",
        "provider:",
        "provider:\"",
        "open ",
        " open",
        "key:a\n",
        "key:\xc3\xa4",
        "nobody",
        "key:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (actor_is_valid(bad[i], strlen(bad[i])))
            fail_msg("'%s' is taken for an actor", bad[i]);
    assert_false(actor_is_valid("open\0", 5));
    assert_false(actor_is_valid("key:a\0b", 7));
}

static void an_erased_address_is_none(void **state)
{
    (void)state;
    assert_true(actor_is_address("address:192.0.2.7"));
    assert_false(actor_is_address("address:erased"));
    assert_false(actor_is_address("key:address"));
    assert_false(actor_is_address(""));
}

static void actors_are_equal_by_their_texts(void **state)
{
    char copy[] = "key:admin";
    (void)state;
    assert_true(actor_equal("key:admin", copy));
    assert_false(actor_equal("key:seller", copy));
    assert_true(actor_equal(NULL, NULL));
    assert_false(actor_equal(NULL, copy));
    assert_false(actor_equal(copy, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_an_actor),
        cmocka_unit_test(nothing_else_is),
        cmocka_unit_test(an_erased_address_is_none),
        cmocka_unit_test(actors_are_equal_by_their_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
