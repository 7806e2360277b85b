/* The nodes of a ZooKeeper lock, whose turn it is, and URLs. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "lease/zookeeper/address.h"
#include "lease/zookeeper/queue.h"

/* ---- names ---- */

static void sequence_numbers_wrap_around(void **state)
{
    (void)state;
    assert_true(zk_sequence_compare(1, 2) < 0);
    assert_true(zk_sequence_compare(2, 1) > 0);
    assert_int_equal(zk_sequence_compare(7, 7), 0);
    assert_true(zk_sequence_compare(INT32_MAX, INT32_MIN) < 0);
    assert_true(zk_sequence_compare(INT32_MIN, INT32_MAX) > 0);
    assert_true(zk_sequence_compare(INT32_MAX - 5, INT32_MIN + 5) < 0);
    assert_true(zk_sequence_compare(-1, 0) < 0);
}

static void every_name_survives_its_encoding(void **state)
{
    (void)state;
    static const char *const names[] = {".",  "..", "...", ".a",   "a.b",      "a/b",
                                        "/",  "%",  "%2F", " ",    "é",        "\xf0\x9f\x94\x92",
                                        "@l", "x",  "a b", "100%", "zookeeper"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char encoded[ZK_NAME_SIZE], decoded[LEASE_NAME_MAX + 1];
        zk_name_encode(names[i], strlen(names[i]), encoded);
        assert_null(strchr(encoded, '/'));
        assert_string_not_equal(encoded, ".");
        assert_string_not_equal(encoded, "..");
        for (const char *p = encoded; *p; p++)
            assert_true(*p > ' ' && *p <= '~');
        assert_true(zk_name_decode(encoded, decoded));
        assert_string_equal(decoded, names[i]);
    }
    char longest[LEASE_NAME_MAX + 1], encoded[ZK_NAME_SIZE], decoded[LEASE_NAME_MAX + 1];
    memset(longest, '/', LEASE_NAME_MAX);
    longest[LEASE_NAME_MAX] = '\0';
    zk_name_encode(longest, LEASE_NAME_MAX, encoded);
    assert_true(zk_name_decode(encoded, decoded));
    assert_string_equal(decoded, longest);
}

static void names_of_others_are_not_decoded(void **state)
{
    (void)state;
    static const char *const names[] = {"", "%", "%2", "%zz", "%00", "%41", "%2f", ".a", "a b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char decoded[LEASE_NAME_MAX + 1];
        assert_false(zk_name_decode(names[i], decoded));
    }
}

#define OWNER "00112233445566778899aabbccddeeff"

static void nodes_are_read_as_they_are_written(void **state)
{
    (void)state;
    const uint8_t owner[LEASE_OWNER_SIZE] = {0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                             0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    char name[ZK_NODE_SIZE];
    struct zk_node node;
    zk_node_name(owner, HF_SHARED, true, name);
    assert_string_equal(name, "@h-" OWNER "-s");
    assert_true(zk_node_parse(name, &node));
    assert_true(node.holds && node.mode == HF_SHARED);
    assert_string_equal(node.owner, OWNER);
    zk_node_name(owner, HF_EXCLUSIVE, false, name);
    (void)snprintf(name + strlen(name), sizeof name - strlen(name), "0000000042");
    assert_true(zk_node_parse(name, &node));
    assert_true(!node.holds && node.mode == HF_EXCLUSIVE && node.sequence == 42);
    assert_true(zk_node_parse("@w-" OWNER "-e--2147483648", &node));
    assert_int_equal(node.sequence, INT32_MIN);
    static const char *const others[] = {"",
                                         "@l",
                                         "@h-",
                                         "@h-" OWNER,
                                         "@h-" OWNER "-x",
                                         "@h-" OWNER "-e-1",
                                         "@w-" OWNER "-e",
                                         "@w-" OWNER "-e-",
                                         "@w-" OWNER "-e-1x",
                                         "@w-" OWNER "-e-99999999999",
                                         "@h-0011223344556677889900aabbccddxy-e"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(zk_node_parse(others[i], &node));
}

/* ---- turns ---- */

/* "h2s w1e-5": a shared lease of owner 2, an exclusive place of owner 1 with number 5. */
static void list_make(struct zk_list *list, const char *text)
{
    zk_list_clear(list);
    list->exists = true;
    for (const char *at = text; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        char name[ZK_NODE_SIZE];
        snprintf(name, sizeof name, "@%c-%032d-%c%.*s", at[0], at[1] - '0', at[2],
                 (int)strcspn(at, " ") - 3, at + 3);
        zk_list_add(list, name);
        if (at[0] == 'h')
            zk_list_add(list, ZK_LATCH);
    }
    zk_list_sort(list);
}

static struct zk_view view_of(const struct zk_list *list, int owner, enum hf_mode mode)
{
    char text[ZK_OWNER_LEN + 1];
    struct zk_view view;
    snprintf(text, sizeof text, "%032d", owner);
    zk_view_init(&view, list, text, mode);
    return view;
}

static void the_first_place_has_its_turn_when_nobody_holds(void **state)
{
    (void)state;
    struct zk_list list = {0};
    list_make(&list, "w2e-7 w1e-3");
    struct zk_view first = view_of(&list, 1, HF_EXCLUSIVE),
                   second = view_of(&list, 2, HF_EXCLUSIVE);
    assert_true(zk_view_may_take(&first, &list, true));
    assert_false(zk_view_may_take(&second, &list, true));
    assert_int_equal(second.before, 1);
    assert_ptr_equal(second.awaits, second.called);
    list_make(&list, "h9e w2e-7 w1e-3");
    first = view_of(&list, 1, HF_EXCLUSIVE);
    assert_false(zk_view_may_take(&first, &list, true));
    assert_true(first.awaits->holds);
    second = view_of(&list, 2, HF_EXCLUSIVE);
    assert_null(second.called);
    assert_int_equal(second.awaits->sequence, 3); /* not the lease: one wake-up per release */
    zk_list_close(&list);
}

static void places_are_in_order_over_the_wrap(void **state)
{
    (void)state;
    struct zk_list list = {0};
    list_make(&list, "w1e--2147483648 w2e-2147483647 w3e--2147483647");
    struct zk_view view = view_of(&list, 2, HF_EXCLUSIVE);
    assert_int_equal(view.before, 0);
    assert_int_equal(view_of(&list, 1, HF_EXCLUSIVE).before, 1);
    assert_int_equal(view_of(&list, 3, HF_EXCLUSIVE).before, 2);
    zk_list_close(&list);
}

static void readers_pass_readers_and_await_the_last_writer(void **state)
{
    (void)state;
    struct zk_list list = {0};
    list_make(&list, "h9s w1s-1 w2s-2 w3e-3 w4s-4");
    struct zk_view view = view_of(&list, 2, HF_SHARED);
    assert_true(zk_view_may_take(&view, &list, true));
    view = view_of(&list, 3, HF_EXCLUSIVE);
    assert_false(zk_view_may_take(&view, &list, true));
    assert_int_equal(view.awaits->sequence, 2);
    view = view_of(&list, 4, HF_SHARED);
    assert_false(zk_view_may_take(&view, &list, true));
    assert_int_equal(view.awaits->sequence, 3);
    zk_list_close(&list);
}

static void a_request_without_a_place_needs_only_that_nobody_holds(void **state)
{
    (void)state;
    struct zk_list list = {0};
    list_make(&list, "w1e-1 w2e-2");
    struct zk_view view = view_of(&list, 5, HF_EXCLUSIVE);
    assert_true(zk_view_may_take(&view, &list, false));
    assert_false(zk_view_may_take(&view, &list, true));
    list_make(&list, "h9s w1e-1");
    view = view_of(&list, 5, HF_SHARED);
    assert_false(zk_view_may_take(&view, &list, false)); /* a writer waits before it */
    list_make(&list, "h9s");
    view = view_of(&list, 5, HF_SHARED);
    assert_true(zk_view_may_take(&view, &list, false));
    view = view_of(&list, 5, HF_EXCLUSIVE);
    assert_false(zk_view_may_take(&view, &list, false));
    zk_list_close(&list);
}

/* ---- URLs ---- */

static void urls_are_read(void **state)
{
    (void)state;
    struct zk_address a;
    assert_int_equal(zk_address_parse("zookeeper://h1", &a, NULL), HF_DONE);
    assert_string_equal(a.hosts, "h1:2181");
    assert_string_equal(a.root, "/holdfast");
    assert_null(a.user_password);
    zk_address_close(&a);
    assert_int_equal(zk_address_parse("zookeeper://u:p%40%3A@h1:1,[::1]:2,h3/a/b/", &a, NULL),
                     HF_DONE);
    assert_string_equal(a.hosts, "h1:1,[::1]:2,h3:2181");
    assert_string_equal(a.root, "/a/b/holdfast");
    assert_string_equal(a.user_password, "u:p@:");
    assert_int_equal(a.n_hosts, 3);
    zk_address_close(&a);
}

static void a_bad_url_is_refused_without_its_password(void **state)
{
    (void)state;
    static const char *const urls[] = {"zookeeper://",
                                       "zookeeper:///a",
                                       "zookeeper://h,",
                                       "zookeeper://,h",
                                       "zookeeper://h:0",
                                       "zookeeper://h:65536",
                                       "zookeeper://h:x",
                                       "zookeeper://h:",
                                       "zookeeper://h o",
                                       "zookeeper://u@h",
                                       "zookeeper://:secret@h",
                                       "zookeeper://u:secret%@h",
                                       "zookeeper://u:secret%00@h",
                                       "zookeeper://u:secret@",
                                       "zookeeper://h//a",
                                       "zookeeper://h/a//b",
                                       "zookeeper://h/./b",
                                       "zookeeper://h/..",
                                       "zookeeper://h/a?b=c",
                                       "zookeeper://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct zk_address a;
        struct hf_fault fault = {0};
        if (zk_address_parse(urls[i], &a, &fault) != HF_BAD_REQUEST)
            fail_msg("%s", urls[i]);
        assert_true(strlen(fault.msg) > 20);
        assert_null(strstr(fault.msg, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequence_numbers_wrap_around),
        cmocka_unit_test(every_name_survives_its_encoding),
        cmocka_unit_test(names_of_others_are_not_decoded),
        cmocka_unit_test(nodes_are_read_as_they_are_written),
        cmocka_unit_test(the_first_place_has_its_turn_when_nobody_holds),
        cmocka_unit_test(places_are_in_order_over_the_wrap),
        cmocka_unit_test(readers_pass_readers_and_await_the_last_writer),
        cmocka_unit_test(a_request_without_a_place_needs_only_that_nobody_holds),
        cmocka_unit_test(urls_are_read),
        cmocka_unit_test(a_bad_url_is_refused_without_its_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
