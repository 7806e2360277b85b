/* Claims about the names that a server answers to (host.h), and about what the transport refuses
 * before it looks at anything else (door.h). */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "http/host.h"
#include "support/site.h"

static struct text text_of(const char *text) { return (struct text){text, strlen(text)}; }
static bool have(const struct hosts *h, const char *host) { return hosts_have(h, text_of(host)); }

static struct hosts listed(const char *list)
{
    struct hosts h = {0};
    struct hf_err err = {0};
    if (!hosts_add(&h, list, &err))
        fail_msg("%s: %s", list, err.msg);
    return h;
}

/* ---- names ---- */

static void loopback_has_names_and_addresses_with_any_port(void **state)
{
    static const char *const good[] = {"localhost",          "localhost:8080",
                                       "LOCALHOST",          "localhost.",
                                       "LocalHost.:1",       "127.0.0.1",
                                       "127.0.0.1:8080",     "127.9.9.9",
                                       "127.255.255.255:80", "[::1]",
                                       "[::1]:65535",        "[0:0::1]",
                                       "127.0.0.1.",         "" /* of HTTP/1.0, or empty */};
    static const char *const bad[] = {"evil.example",
                                      "localhost.evil.example",
                                      "evil.localhost",
                                      "localhosts",
                                      "xlocalhost",
                                      "localhost..",
                                      "127.0.0.1.evil",
                                      "127.0.0.1.nip.io",
                                      "0.0.0.0:8080",
                                      "128.0.0.1",
                                      "[::]",
                                      "[::2]",
                                      "[::1",
                                      "::1",
                                      "127.1",
                                      "0x7f.0.0.1",
                                      "2130706433",
                                      ".",
                                      ":8080",
                                      "[]:80",
                                      "[fe80::1%25lo]:80",
                                      "192.168.0.1",
                                      "local",
                                      "-",
                                      "%6cocalhost",
                                      "user@localhost",
                                      "localhost@evil",
                                      "[127.0.0.1].evil.example",
                                      "evil.example:127.0.0.1"};
    const struct hosts h = {.loopback = true};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!have(&h, good[i]))
            fail_msg("'%s' is loopback", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (have(&h, bad[i]))
            fail_msg("'%s' is not loopback", bad[i]);
}

static void listed_names_count_and_no_others(void **state)
{
    const struct hosts h = listed("Tickets.example., 192.0.2.7 ,[2001:db8::1],2001:db8:0::2");
    static const char *const good[] = {"tickets.example", "TICKETS.EXAMPLE:443", "tickets.example.",
                                       "192.0.2.7:80",    "[2001:db8:0:0::1]:8", "[2001:db8::2]"};
    static const char *const bad[] = {"",          "localhost", "127.0.0.1", "a.tickets.example",
                                      "192.0.2.8", "tickets",   "[::1]",     "[2001:db8::3]"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!have(&h, good[i]))
            fail_msg("'%s' is listed", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (have(&h, bad[i]))
            fail_msg("'%s' is not listed", bad[i]);
}

static void without_a_list_every_name_counts(void **state)
{
    const struct hosts h = {0};
    (void)state;
    assert_true(have(&h, "evil.example"));
    assert_true(have(&h, ""));
}

static void the_host_of_a_url_is_a_name(void **state)
{
    struct hosts h = {0};
    struct hf_err err = {0};
    (void)state;
    assert_true(hosts_add_url(&h, "https://one.example:8443/path", &err));
    assert_true(hosts_add_url(&h, "http://[2001:db8::1]:80", &err));
    assert_true(hosts_add_url(&h, "http://10.0.0.5", &err));
    assert_true(have(&h, "one.example") && have(&h, "[2001:db8::1]") && have(&h, "10.0.0.5:8080"));
    assert_false(hosts_add_url(&h, "http://", &err));
}

static void malformed_lists_are_refused_by_name(void **state)
{
    static const char *const bad[] = {
        "",   "a,,b", "a b", "a:80", "*.example", "http://a",      "192.0.2.1:1", "[::1]:80",
        "a/", "a..",  ".a",  "a..b", ".",         "[2001:db8::g]", "a,"};
    char long_name[300];
    struct hf_err err = {0};
    struct hosts h = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hosts_add(&h, bad[i], &err))
            fail_msg("'%s' is no list of names", bad[i]);
    assert_false(hosts_add(&h, "good.example,b@d", &err));
    assert_non_null(strstr(err.msg, "'b@d'"));
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_false(hosts_add(&h, long_name, &err));
    struct hosts many = {0};
    for (int i = 0; i < HOSTS_MAX; i++)
        assert_true(hosts_add(&many, "one.example", &err));
    assert_false(hosts_add(&many, "one.example", &err));
}

static void an_origin_is_own_if_it_names_the_host_and_the_port(void **state)
{
    static const struct {
        const char *host, *origin;
        bool own;
    } cases[] = {{"localhost:8080", "http://localhost:8080", true},
                 {"LOCALHOST:8080", "http://localhost:8080", true},
                 {"localhost:8443", "https://localhost:8443", true},
                 {"[::1]:8080", "http://[::1]:8080", true},
                 {"localhost", "http://localhost", true},
                 {"localhost:8080", "http://localhost:8081", false},
                 {"localhost:8080", "http://127.0.0.1:8080", false},
                 {"localhost:8080", "http://localhost", false},
                 {"localhost:8080", "http://localhost:8080.evil.example", false},
                 {"localhost:8080", "null", false},
                 {"localhost:8080", "", false},
                 {"localhost:8080", "ftp://localhost:8080", false},
                 {"localhost:8080", "localhost:8080", false},
                 {"localhost:8080", "http://", false},
                 {"", "http://", false},
                 {"", "https://", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (host_is_origin(text_of(cases[i].host), text_of(cases[i].origin)) != cases[i].own)
            fail_msg("'%s' at '%s'", cases[i].origin, cases[i].host);
}

/* ---- the door ---- */

struct door {
    struct site site;
    struct client client;
    struct hosts hosts;
};

static int open_door(void **state)
{
    static struct door door;
    site_open(&door.site);
    client_open(&door.client, &door.site, 0);
    door.hosts = (struct hosts){.loopback = true};
    door.site.server->config.hosts = &door.hosts;
    door.site.server->config.refuses_cross_site = true;
    *state = &door;
    return 0;
}

static int close_door(void **state)
{
    struct door *door = *state;
    client_close(&door->client);
    site_close(&door->site);
    return 0;
}

static int asked(struct door *door, const char *request)
{
    struct reply reply = {0};
    client_send(&door->client, request);
    assert_true(client_reply(&door->client, strncmp(request, "HEAD", 4) == 0, &reply));
    return reply.status;
}

static void a_foreign_host_is_refused_before_the_key_and_the_body(void **state)
{
    struct door *door = *state;
    assert_int_equal(asked(door, "GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n"), 200);
    assert_int_equal(asked(door, "GET /now HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    assert_int_equal(asked(door, "HEAD /now HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    assert_int_equal(asked(door, "GET /nowhere HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    assert_int_equal(asked(door, "OPTIONS /now HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421);
    assert_int_equal(asked(door, "POST /seller HTTP/1.1\r\nHost: evil.example\r\n"
                                 "Content-Length: 3\r\n\r\nabc"),
                     421);
    assert_int_equal(asked(door, "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Length: 3\r\n\r\nabc"),
                     201);
}

static void the_host_of_the_target_counts_and_not_that_of_the_header(void **state)
{
    struct door *door = *state;
    assert_int_equal(asked(door, "GET http://evil.example/now HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                     421);
    assert_int_equal(asked(door, "GET http://localhost/now HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
                     200);
}

static void programs_that_name_no_host_are_served(void **state)
{
    struct door *door = *state;
    assert_int_equal(asked(door, "GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 200);
    assert_int_equal(asked(door, "GET /now HTTP/1.1\r\nHost:\r\n\r\n"), 200);
}

static int wrote(struct door *door, const char *headers)
{
    char request[512];
    (void)snprintf(request, sizeof request,
                   "POST /echo HTTP/1.1\r\nHost: localhost:80\r\n%sContent-Length: 2\r\n\r\n{}",
                   headers);
    return asked(door, request);
}

static void pages_of_other_sites_cannot_write(void **state)
{
    struct door *door = *state;
    assert_int_equal(wrote(door, ""), 201);
    assert_int_equal(wrote(door, "Origin: http://localhost:80\r\n"), 201);
    assert_int_equal(wrote(door, "Origin: http://localhost:80\r\nSec-Fetch-Site: same-origin\r\n"),
                     201);
    assert_int_equal(wrote(door, "Sec-Fetch-Site: none\r\n"), 201);
    assert_int_equal(wrote(door, "Origin: https://evil.example\r\n"), 403);
    assert_int_equal(wrote(door, "Origin: null\r\n"), 403);
    assert_int_equal(wrote(door, "Origin:\r\n"), 403);
    assert_int_equal(wrote(door, "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_int_equal(wrote(door, "sec-fetch-site: CROSS-SITE\r\n"), 403);
    assert_int_equal(wrote(door, "Origin: http://localhost:80\r\nSec-Fetch-Site: cross-site\r\n"),
                     403);
}

static void pages_of_other_sites_may_ask_for_what_they_cannot_read(void **state)
{
    struct door *door = *state;
    assert_int_equal(asked(door, "GET /now HTTP/1.1\r\nHost: localhost\r\n"
                                 "Origin: https://evil.example\r\n"
                                 "Sec-Fetch-Site: cross-site\r\n\r\n"),
                     200);
}

static void listed_origins_may_write(void **state)
{
    struct door *door = *state;
    struct cors cors = {0};
    struct hf_err err = {0};
    assert_true(cors_parse("https://shop.example", &cors, &err));
    door->site.server->config.cors = &cors;
    assert_int_equal(wrote(door, "Origin: https://shop.example\r\nSec-Fetch-Site: cross-site\r\n"),
                     201);
    assert_int_equal(wrote(door, "Origin: https://evil.example\r\n"), 403);
    cors_close(&cors);
    door->site.server->config.cors = &cors; /* off */
    assert_int_equal(wrote(door, "Origin: https://shop.example\r\n"), 403);
}

#define DOOR_TEST(claim) cmocka_unit_test_setup_teardown(claim, open_door, close_door)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_has_names_and_addresses_with_any_port),
        cmocka_unit_test(listed_names_count_and_no_others),
        cmocka_unit_test(without_a_list_every_name_counts),
        cmocka_unit_test(the_host_of_a_url_is_a_name),
        cmocka_unit_test(malformed_lists_are_refused_by_name),
        cmocka_unit_test(an_origin_is_own_if_it_names_the_host_and_the_port),
        DOOR_TEST(a_foreign_host_is_refused_before_the_key_and_the_body),
        DOOR_TEST(the_host_of_the_target_counts_and_not_that_of_the_header),
        DOOR_TEST(programs_that_name_no_host_are_served),
        DOOR_TEST(pages_of_other_sites_cannot_write),
        DOOR_TEST(pages_of_other_sites_may_ask_for_what_they_cannot_read),
        DOOR_TEST(listed_origins_may_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
