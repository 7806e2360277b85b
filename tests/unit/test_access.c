/* Claims about access keys and scopes (access.h), the client behind a proxy (address.h), the pages
 * that may read answers (cors.h), and that every route of the API has a scope. */
#include "support/fixtures.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/pages.h"
#include "api/routes.h"
#include "base/client_number.h"
#include "http/access.h"
#include "http/cors.h"

#define ADMIN "admin-key-0123456789"
#define ADMIN_NEXT "admin-key-of-next-month"
#define SELLER "seller-key-0123456789"

/* ---- addresses ---- */

static struct address parse(const char *text)
{
    struct address a;
    if (!address_parse(text, strlen(text), &a))
        fail_msg("'%s' is an address", text);
    return a;
}

static bool same(const char *a, const char *b)
{
    struct address left = parse(a), right = parse(b);
    return left.v4 == right.v4 && memcmp(left.bytes, right.bytes, sizeof left.bytes) == 0;
}

static void addresses_are_read_with_and_without_ports(void **state)
{
    (void)state;
    assert_true(same("192.0.2.1", "192.0.2.1:8080"));
    assert_true(same("2001:db8::1", "[2001:db8::1]"));
    assert_true(same("2001:db8::1", "[2001:0db8:0:0::1]:443"));
    assert_true(same("::ffff:192.0.2.1", "192.0.2.1"));
    assert_true(same("[::ffff:c000:201]:1", "192.0.2.1"));
    assert_false(same("::192.0.2.1", "192.0.2.1"));
}

static void malformed_addresses_are_refused(void **state)
{
    static const char *const bad[] = {
        "",           "unknown",     "_hidden",          "192.0.2",     "192.0.2.256",
        "192.0.2.1:", "192.0.2.1:x", "192.0.2.1:1:2",    "[192.0.2.1]", "[192.0.2.1]:80",
        "[::1",       "::1]",        "[::1]80",          "[::1]:",      "[]",
        "fe80::1%lo", "1.2.3.4/8",   "\"192.0.2.1\"",    "192.0.2.1 ",  " 192.0.2.1",
        "0x7f.0.0.1", "127.1",       "192.0.2.01.1",     ":::1",        "192.0.2.1:123456",
        "localhost",  "::1:",        "1:2:3:4:5:6:7:8:9"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct address a;
        if (address_parse(bad[i], strlen(bad[i]), &a))
            fail_msg("'%s' was read as an address", bad[i]);
    }
    struct address a;
    assert_false(address_parse("1.2.3.4\0", 8, &a));
}

static void a_socket_address_is_the_same_as_its_text(void **state)
{
    (void)state;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct address a, expected = parse("192.0.2.1");
    assert_true(address_from_socket((struct sockaddr *)&v4, &a));
    assert_memory_equal(&a.bytes, &expected.bytes, sizeof a.bytes);
    assert_true(a.v4);
    assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &v6.sin6_addr), 1);
    assert_true(address_from_socket((struct sockaddr *)&v6, &a));
    assert_memory_equal(&a.bytes, &expected.bytes, sizeof a.bytes);
    assert_true(a.v4);
    assert_false(address_from_socket(&other, &a));
}

static void an_address_is_shown_as_it_is_usually_written(void **state)
{
    static const char *const texts[] = {"192.0.2.1", "2001:db8::1", "::", "::192.0.2.1"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct address a = parse(texts[i]);
        char text[ADDRESS_TEXT_SIZE];
        address_text(&a, text);
        assert_string_equal(text, texts[i]);
    }
    struct address mapped = parse("::ffff:192.0.2.1");
    char text[ADDRESS_TEXT_SIZE];
    address_text(&mapped, text);
    assert_string_equal(text, "192.0.2.1");
}

static uint64_t client(const char *text)
{
    struct address a = parse(text);
    return address_client(&a);
}

static void a_client_is_an_ipv4_address_or_an_ipv6_subscriber(void **state)
{
    (void)state;
    assert_true(client("192.0.2.1") != 0);
    assert_true(client("192.0.2.1") == client("::ffff:192.0.2.1"));
    assert_true(client("192.0.2.1") != client("192.0.2.2"));
    assert_true(client("2001:db8:0:1::1") == client("2001:db8:0:1:ffff::2"));
    assert_true(client("2001:db8:0:1::1") != client("2001:db8:0:2::1"));
    assert_true(client("c000:201::") != client("192.0.2.1"));
    assert_true(client("0.0.0.0") != client("::"));
}

static uint64_t network(const char *text) { return client_number_network(client(text)); }

static void an_ipv6_subscriber_is_in_the_network_of_its_48(void **state)
{
    (void)state;
    assert_true(network("192.0.2.1") == 0);
    assert_true(network("2001:db8:0:1::1") != 0);
    assert_true(network("2001:db8:0:1::1") == network("2001:db8:0:ffff::1"));
    assert_true(network("2001:db8:0:1::1") != network("2001:db8:1:1::1"));
    assert_true(network("2001:db8:0:1::1") != client("2001:db8:0:1::1"));
    assert_true(client_number_v4(0) && client_number_v4(UINT64_MAX) == UINT64_MAX >> 1);
    assert_true(client_number_v6(0, 0) != client_number_network(client_number_v6(0, 0)));
}

static struct networks networks(const char *text)
{
    struct networks n;
    struct hf_err err = {0};
    if (!networks_parse(text, &n, &err))
        fail_msg("%s: %s", text, err.msg);
    return n;
}

static bool has(const char *text, const char *address)
{
    struct networks n = networks(text);
    struct address a = parse(address);
    return networks_have(&n, &a);
}

static void networks_have_what_their_bits_say(void **state)
{
    (void)state;
    assert_true(has("10.0.0.0/8", "10.255.1.2"));
    assert_false(has("10.0.0.0/8", "11.0.0.0"));
    assert_true(has("172.16.0.0/12", "172.31.255.255"));
    assert_false(has("172.16.0.0/12", "172.32.0.0"));
    assert_true(has("172.31.9.9/12", "172.16.0.1")); /* the rest of the address does not matter */
    assert_true(has("192.0.2.7", "192.0.2.7"));
    assert_false(has("192.0.2.7", "192.0.2.6"));
    assert_true(has("192.0.2.7/32", "::ffff:192.0.2.7"));
    assert_true(has("::ffff:10.0.0.0/104", "10.1.1.1"));
    assert_false(has("::ffff:10.0.0.0/104", "11.1.1.1"));
    assert_true(has("0.0.0.0/0", "203.0.113.9"));
    assert_false(has("0.0.0.0/0", "2001:db8::1"));
    assert_true(has("::/0", "2001:db8::1"));
    assert_false(has("::/0", "203.0.113.9"));
    assert_true(has("fd00::/9", "fd7f::1"));
    assert_false(has("fd00::/9", "fd80::1"));
    assert_true(has(" 192.0.2.7 ,\tfd00::/8", "fd00::1"));
}

static void bad_networks_are_refused_by_name(void **state)
{
    static const char *const bad[] = {
        "",           "10.0.0.0/33",  "10.0.0.0/",   "10.0.0.0/-1",        "/8",           "::/129",
        "10.0.0.0/x", "10.0.0.1,",    ",10.0.0.1",   "localhost",          "10.0.0.1:80",  "[::1]",
        "10/8",       "10.0.0.0/08x", "10.0.0.0 /8", "::ffff:10.0.0.0/95", "10.0.0.0/0000"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct networks n = {.n = 77};
        struct hf_err err = {0};
        if (networks_parse(bad[i], &n, &err))
            fail_msg("'%s' was read as networks", bad[i]);
        assert_true(err.msg[0] != '\0');
        assert_int_equal(n.n, 77);
    }
    struct buf many = {0};
    for (int i = 0; i <= NETWORKS_MAX; i++)
        buf_printf(&many, "%s10.0.0.%d", i ? "," : "", i);
    buf_char(&many, '\0');
    struct networks n;
    assert_false(networks_parse(many.data, &n, NULL));
    buf_close(&many);
}

/* ---- X-Forwarded-For ---- */

#define TRUSTED "10.0.0.0/8,192.0.2.7,fd00::/8"

/* The client if `peer` sends these headers, of which there are up to two; NULL: none. */
static void assert_client(const char *peer, const char *first, const char *second,
                          const char *expected)
{
    struct networks trusted = networks(TRUSTED);
    struct address from = parse(peer), wanted = parse(expected);
    const char *values[2] = {first, second};
    struct address got =
        forwarded_client(&trusted, &from, values, (first ? 1u : 0u) + (second ? 1u : 0u));
    if (got.v4 != wanted.v4 || memcmp(got.bytes, wanted.bytes, sizeof got.bytes) != 0)
        fail_msg("peer %s, '%s', '%s': the client is not %s", peer, first ? first : "-",
                 second ? second : "-", expected);
}

static void an_untrusted_peer_cannot_name_its_client(void **state)
{
    (void)state;
    assert_client("203.0.113.1", "198.51.100.1", NULL, "203.0.113.1");
    assert_client("203.0.113.1", "10.0.0.1", "192.0.2.7", "203.0.113.1");
    assert_client("2001:db8::1", "fd00::1", NULL, "2001:db8::1");
}

static void a_trusted_proxy_names_its_client(void **state)
{
    (void)state;
    assert_client("10.0.0.1", NULL, NULL, "10.0.0.1");
    assert_client("10.0.0.1", "198.51.100.1", NULL, "198.51.100.1");
    assert_client("::ffff:10.0.0.1", "198.51.100.1:4711", NULL, "198.51.100.1");
    assert_client("fd00::1", " [2001:db8::5]:80 ", NULL, "2001:db8::5");
}

static void the_walk_goes_from_the_right_past_trusted_proxies(void **state)
{
    (void)state;
    /* a client's own claim stands left of what the first proxy saw */
    assert_client("10.0.0.1", "1.1.1.1, 198.51.100.1", NULL, "198.51.100.1");
    assert_client("10.0.0.1", "1.1.1.1, 198.51.100.1, 192.0.2.7,10.9.9.9", NULL, "198.51.100.1");
    assert_client("10.0.0.1", "10.1.1.1, 198.51.100.1", NULL, "198.51.100.1");
}

static void if_all_are_trusted_the_leftmost_is_the_client(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "10.0.0.4, 10.0.0.3,10.0.0.2", NULL, "10.0.0.4");
}

static void several_headers_are_one_list(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "198.51.100.1", "10.0.0.2", "198.51.100.1");
    assert_client("10.0.0.1", "1.1.1.1", "198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", "1.1.1.1, 198.51.100.1", "10.0.0.3, 10.0.0.2", "198.51.100.1");
}

static void an_unreadable_entry_ends_the_walk(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "unknown", NULL, "10.0.0.1");
    assert_client("10.0.0.1", "", NULL, "10.0.0.1");
    assert_client("10.0.0.1", "   ", NULL, "10.0.0.1");
    assert_client("10.0.0.1", "198.51.100.1, unknown, 10.0.0.2", NULL, "10.0.0.2");
    assert_client("10.0.0.1", "198.51.100.1, , 10.0.0.2", NULL, "10.0.0.2");
    assert_client("10.0.0.1", "198.51.100.1,", NULL, "10.0.0.1");
    assert_client("10.0.0.1", "198.51.100.1", "", "10.0.0.1");
    assert_client("10.0.0.1", "unknown, 198.51.100.1", NULL, "198.51.100.1");
    assert_client("10.0.0.1", "198.51.100.1 10.0.0.2", NULL, "10.0.0.1");
}

static void the_walk_has_an_end(void **state)
{
    (void)state;
    struct buf list = {0};
    buf_str(&list, "198.51.100.1");
    for (int i = 0; i < FORWARDED_HOPS_MAX; i++)
        buf_printf(&list, ",10.0.1.%d", i);
    buf_char(&list, '\0');
    assert_client("10.0.0.1", list.data, NULL, "10.0.1.0");
    buf_close(&list);
}

/* ---- keys ---- */

static void add(struct access *a, enum scope scope, const char *key)
{
    struct hf_err err = {0};
    if (!access_add_key(a, scope, key, strlen(key), "test", &err))
        fail_msg("%s", err.msg);
}

static struct access three_keys(void)
{
    struct access a = {0};
    add(&a, SCOPE_ADMIN, ADMIN);
    add(&a, SCOPE_ADMIN, ADMIN_NEXT);
    add(&a, SCOPE_SELLER, SELLER);
    return a;
}

/* Identifies the sender of this Authorization header. */
static struct caller identify(struct access *a, const char *authorization)
{
    return access_identify(a, authorization, strlen(authorization), 1);
}

static void without_keys_every_caller_is_an_admin(void **state)
{
    (void)state;
    struct access open = {0};
    struct caller c = access_identify(&open, NULL, 0, 0);
    assert_null(access_judge(&c, SCOPE_ADMIN));
    c = identify(&open, "Basic whatever");
    assert_null(access_judge(&c, SCOPE_ADMIN));
    assert_string_equal(access_scope_name(&open, &c), "open");
}

static void a_key_has_its_scope_and_those_below(void **state)
{
    static const struct {
        const char *authorization;
        const char *name;
        const struct problem *looks, *buys, *sells, *administers; /* NULL: allowed */
    } rows[] = {
        {NULL, "public", NULL, NULL, &problem_unauthorized, &problem_unauthorized},
        {"Bearer " SELLER, "seller", NULL, NULL, NULL, &problem_forbidden},
        {"Bearer " ADMIN, "admin", NULL, NULL, NULL, NULL},
        {"Bearer " ADMIN_NEXT, "admin", NULL, NULL, NULL, NULL},
        {"Bearer nonsense-0123456789", "public", &problem_unauthorized, &problem_unauthorized,
         &problem_unauthorized, &problem_unauthorized},
    };
    (void)state;
    struct access a = three_keys();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = rows[i].authorization;
        struct caller c = access_identify(&a, text, text ? strlen(text) : 0, text ? 1 : 0);
        assert_ptr_equal(access_judge(&c, SCOPE_PUBLIC), rows[i].looks);
        assert_ptr_equal(access_judge(&c, SCOPE_BUYER), rows[i].buys);
        assert_ptr_equal(access_judge(&c, SCOPE_SELLER), rows[i].sells);
        assert_ptr_equal(access_judge(&c, SCOPE_ADMIN), rows[i].administers);
        assert_string_equal(access_scope_name(&a, &c), rows[i].name);
    }
}

static void callers_without_a_key_may_be_kept_from_buying(void **state)
{
    (void)state;
    struct access a = three_keys();
    a.no_public_buyers = true;
    struct caller c = access_identify(&a, NULL, 0, 0);
    assert_null(access_judge(&c, SCOPE_PUBLIC));
    assert_ptr_equal(access_judge(&c, SCOPE_BUYER), &problem_unauthorized);
    c = identify(&a, "Bearer " SELLER);
    assert_null(access_judge(&c, SCOPE_BUYER));
}

static void only_one_bearer_key_counts(void **state)
{
    static const char *const good[] = {"Bearer " ADMIN, "bearer " ADMIN, "BEARER " ADMIN,
                                       "Bearer   " ADMIN};
    static const char *const bad[] = {"",
                                      ADMIN,
                                      "Bearer",
                                      "Bearer ",
                                      "Bearer" ADMIN,
                                      "Basic " ADMIN,
                                      "Bearer\t" ADMIN,
                                      "Bearer " ADMIN " x",
                                      "Bearer x " ADMIN,
                                      "Bearer " ADMIN "x",
                                      "Bearer admin-key-012345678",
                                      "Bearers " ADMIN,
                                      "Token " ADMIN,
                                      " Bearer " ADMIN,
                                      "Bearer \"" ADMIN "\"",
                                      "Bearer Admin-key-0123456789"};
    (void)state;
    struct access a = three_keys();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!identify(&a, good[i]).has_key)
            fail_msg("'%s' is a key", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct caller c = identify(&a, bad[i]);
        if (c.has_key || !c.refused)
            fail_msg("'%s' was taken", bad[i]);
    }
    struct caller twice = access_identify(&a, "Bearer " ADMIN, strlen("Bearer " ADMIN), 2);
    assert_ptr_equal(access_judge(&twice, SCOPE_PUBLIC), &problem_unauthorized);
}

static void callers_with_different_keys_are_different(void **state)
{
    (void)state;
    struct access a = three_keys();
    struct caller one = identify(&a, "Bearer " ADMIN), two = identify(&a, "Bearer " ADMIN_NEXT);
    assert_memory_not_equal(one.digest, two.digest, DIGEST_SIZE);
}

static void a_malformed_key_is_refused_and_not_shown(void **state)
{
    static const char *const bad[] = {"",
                                      "with space 0123456789",
                                      "with\ttab-0123456789",
                                      "with-newline-0123456789\n",
                                      "with-delete-0123456789\x7f",
                                      "with-umlaut-0123456789\xc3\xa4"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct access a = {0};
        struct hf_err err = {0};
        if (access_add_key(&a, SCOPE_ADMIN, bad[i], strlen(bad[i]), "HERE", &err))
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(a.n_keys, 0);
        assert_non_null(strstr(err.msg, "HERE"));
        assert_true(!*bad[i] || !strstr(err.msg, bad[i]));
    }
    struct access a = {0};
    char longest[257];
    memset(longest, 'k', sizeof longest);
    assert_true(access_add_key(&a, SCOPE_ADMIN, longest, 255, "test", NULL));
    assert_false(access_add_key(&a, SCOPE_ADMIN, longest, 256, "test", NULL));
    assert_true(access_add_key(&a, SCOPE_ADMIN, longest, 16, "test", NULL));
}

static void one_key_cannot_have_two_scopes(void **state)
{
    (void)state;
    struct access a = three_keys();
    struct hf_err err = {0};
    assert_false(access_add_key(&a, SCOPE_SELLER, ADMIN, strlen(ADMIN), "test", &err));
    assert_true(access_add_key(&a, SCOPE_ADMIN, ADMIN, strlen(ADMIN), "test", &err));
}

static void the_number_of_keys_has_a_bound(void **state)
{
    (void)state;
    struct access a = {0};
    char key[32];
    for (int i = 0; i < ACCESS_KEYS_MAX; i++) {
        (void)snprintf(key, sizeof key, "key-number-%09d", i);
        add(&a, SCOPE_SELLER, key);
    }
    assert_false(access_add_key(&a, SCOPE_SELLER, ADMIN, strlen(ADMIN), "test", NULL));
}

/* ---- replacing keys ---- */

static void replaced_keys_count_from_then_on(void **state)
{
    (void)state;
    struct access a = three_keys(), next = {0}, open = {0};
    struct hf_err err = {0};
    add(&next, SCOPE_ADMIN, ADMIN_NEXT);
    assert_true(access_replace_keys(&a, &next, &err));
    assert_true(identify(&a, "Bearer " ADMIN).refused);
    assert_true(identify(&a, "Bearer " SELLER).refused);
    assert_int_equal(identify(&a, "Bearer " ADMIN_NEXT).scope, SCOPE_ADMIN);
    assert_false(access_replace_keys(&a, &open, &err));
    assert_int_equal(identify(&a, "Bearer " ADMIN_NEXT).scope, SCOPE_ADMIN);
    assert_false(access_replace_keys(&open, &next, &err));
    assert_true(access_replace_keys(&open, &(struct access){0}, &err));
}

struct reader {
    struct access *access;
    atomic_bool *stop;
    pthread_t thread;
    size_t n_wrong;
};

/* SELLER is among the keys before and after every replacement, so it is never refused. */
static void *read_keys(void *arg)
{
    struct reader *r = arg;
    while (!atomic_load(r->stop))
        r->n_wrong += identify(r->access, "Bearer " SELLER).scope != SCOPE_SELLER;
    return NULL;
}

static void keys_are_replaced_while_other_threads_compare_them(void **state)
{
    (void)state;
    struct access a = three_keys(), all = three_keys(), one = {0};
    struct hf_err err = {0};
    atomic_bool stop = false;
    struct reader readers[3];
    add(&one, SCOPE_SELLER, SELLER);
    for (size_t i = 0; i < 3; i++) {
        readers[i] = (struct reader){.access = &a, .stop = &stop};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_keys, &readers[i]), 0);
    }
    for (int i = 0; i < 20000; i++)
        assert_true(access_replace_keys(&a, i % 2 ? &all : &one, &err));
    atomic_store(&stop, true);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].n_wrong, 0);
    }
}

/* ---- key files ---- */

/* Reads a file of this content and returns the number of keys; 0 if it is refused. */
static size_t read_file(const char *content, mode_t mode, struct hf_err *err)
{
    struct temp_dir dir;
    struct access a = {0};
    temp_dir_make(&dir);
    FILE *file = fopen(dir.db, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(dir.db, mode), 0);
    bool taken = access_add_file(&a, SCOPE_ADMIN, dir.db, err);
    temp_dir_remove(&dir);
    return taken ? a.n_keys : 0;
}

static void a_file_has_one_key_per_line(void **state)
{
    (void)state;
    struct hf_err err = {0};
    assert_int_equal(read_file(ADMIN, 0600, &err), 1);
    assert_int_equal(read_file(ADMIN "\n", 0400, &err), 1);
    assert_int_equal(read_file("# old\n" ADMIN "\r\n\n# new\n" ADMIN_NEXT "\n", 0600, &err), 2);
}

/* What a caller with `key` is called after a file of this content has been read. */
static struct caller caller_of_file(const char *content, const char *key)
{
    struct temp_dir dir;
    struct access a = {0};
    struct hf_err err = {0};
    char authorization[100];
    temp_dir_make(&dir);
    FILE *file = fopen(dir.db, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(dir.db, 0600), 0);
    if (!access_add_file(&a, SCOPE_SELLER, dir.db, &err))
        fail_msg("%s", err.msg);
    temp_dir_remove(&dir);
    (void)snprintf(authorization, sizeof authorization, "Bearer %s", key);
    return identify(&a, authorization);
}

static void a_key_has_the_name_before_it_or_that_of_its_scope(void **state)
{
    static const char content[] =
        "a-name_of.32-characters-for-akey " ADMIN "\n" ADMIN_NEXT "\r\nOffice " SELLER "\n";
    static const struct {
        const char *key, *name;
    } rows[] = {
        {ADMIN, "a-name_of.32-characters-for-akey"}, {ADMIN_NEXT, "seller"}, {SELLER, "Office"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct caller c = caller_of_file(content, rows[i].key);
        assert_true(c.has_key);
        assert_int_equal(c.scope, SCOPE_SELLER);
        assert_string_equal(c.key_name, rows[i].name);
    }
    struct caller wrong = caller_of_file(content, "Office");
    assert_true(wrong.refused);
    assert_string_equal(wrong.key_name, "");
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0644, 0620, 0602, 0666};
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct hf_err err = {0};
        assert_int_equal(read_file(ADMIN "\n", modes[i], &err), 0);
        assert_non_null(strstr(err.msg, "chmod 600"));
        assert_null(strstr(err.msg, ADMIN));
    }
}

static void a_file_without_keys_or_with_malformed_ones_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "\n\n",
        "# nothing\n",
        "two words\n",
        "two fifteen-letters\n",
        "these three words\n",
        ADMIN "\nthese three words\n",
        " " ADMIN "\n",
        ADMIN " \n",
        "name  " ADMIN "\n",
        "name\t" ADMIN "\n",
        "n/me " ADMIN "\n",
        "n\xc3\xa4me " ADMIN "\n",
        "a-name-of-thirty-three-characters " ADMIN "\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_err err = {0};
        if (read_file(bad[i], 0600, &err))
            fail_msg("'%s' was taken", bad[i]);
        assert_null(strstr(err.msg, "three"));
        assert_null(strstr(err.msg, ADMIN));
    }
    struct hf_err err = {0};
    (void)read_file(ADMIN "\na bad key\n", 0600, &err);
    assert_non_null(strstr(err.msg, "line 2"));
    struct access a = {0};
    assert_false(access_add_file(&a, SCOPE_ADMIN, "/nonexistent/keys", &err));
    assert_non_null(strstr(err.msg, "/nonexistent/keys"));
    assert_false(access_add_file(&a, SCOPE_ADMIN, "/", &err));
    char *large = hf_alloc(20001);
    memset(large, '#', 20000);
    assert_int_equal(read_file(large, 0600, &err), 0);
    free(large);
}

/* ---- where the program may listen ---- */

static bool may_listen(struct access *a, const char *text)
{
    struct listen_address at;
    struct hf_err err = {0};
    if (!listen_parse(text, &at, &err))
        fail_msg("%s", err.msg);
    bool may = access_may_listen(a, &at, &err);
    assert_true(may || strstr(err.msg, "HOLDFAST_ADMIN_KEY") || strstr(err.msg, "16 characters"));
    return may;
}

static void outside_loopback_there_must_be_an_admin_key(void **state)
{
    (void)state;
    struct access open = {0}, keys = three_keys(), seller = {0};
    add(&seller, SCOPE_SELLER, SELLER);
    static const char *const outside[] = {"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "[2001:db8::1]:1",
                                          "[::ffff:192.0.2.1]:80"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_false(may_listen(&open, outside[i]));
        assert_false(may_listen(&seller, outside[i]));
        assert_true(may_listen(&keys, outside[i]));
    }
    assert_true(may_listen(&open, "127.0.0.1:0"));
    assert_true(may_listen(&open, "127.0.0.2:0"));
    assert_true(may_listen(&open, "[::1]:0"));
}

static void outside_loopback_no_key_is_short(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct access keys = {0}, next = {0}, inside = {0};
    add(&keys, SCOPE_ADMIN, "sixteen-letters!");
    add(&next, SCOPE_ADMIN, ADMIN);
    add(&next, SCOPE_SELLER, "fifteen-letters");
    assert_false(may_listen(&next, "0.0.0.0:0"));
    assert_true(may_listen(&next, "127.0.0.1:0"));
    assert_true(may_listen(&keys, "0.0.0.0:0"));
    assert_false(access_replace_keys(&keys, &next, &err));
    assert_non_null(strstr(err.msg, "16 characters"));
    assert_int_equal(keys.n_keys, 1);
    add(&inside, SCOPE_ADMIN, ADMIN);
    assert_true(may_listen(&inside, "[::1]:0"));
    assert_true(access_replace_keys(&inside, &next, &err));
}

/* ---- origins ---- */

static const char *match(const char *list, const char *origin)
{
    static struct cors c;
    struct hf_err err = {0};
    cors_close(&c);
    if (list && !cors_parse(list, &c, &err))
        fail_msg("%s", err.msg);
    return cors_match(&c, origin, origin ? strlen(origin) : 0);
}

static void an_origin_is_matched_to_the_letter(void **state)
{
    static const char list[] = "https://shop.example, http://localhost:3000,http://[::1]:8080";
    (void)state;
    assert_string_equal(match(list, "https://shop.example"), "https://shop.example");
    assert_string_equal(match(list, "http://localhost:3000"), "http://localhost:3000");
    assert_string_equal(match(list, "http://[::1]:8080"), "http://[::1]:8080");
    assert_null(match(list, "http://shop.example"));
    assert_null(match(list, "https://shop.example.evil.example"));
    assert_null(match(list, "https://shop.exampl"));
    assert_null(match(list, "http://localhost"));
    assert_null(match(list, "null"));
    assert_null(match(list, ""));
    assert_null(match(list, NULL));
    assert_string_equal(match("*", "https://anything.example"), "*");
    assert_string_equal(match("*", NULL), "*");
    assert_null(match(NULL, "https://shop.example"));
    (void)match(NULL, NULL); /* frees */
}

static void an_origin_that_no_browser_sends_is_refused_at_start(void **state)
{
    static const char *const bad[] = {
        "",
        "shop.example",
        "https://",
        "https:///",
        "https://shop.example/",
        "https://shop.example/path",
        "https://shop.example?x",
        "https://Shop.example",
        "HTTPS://shop.example",
        "https://shop.example:443",
        "http://shop.example:80",
        "https://shop.example:",
        "https://shop.example:0",
        "https://shop.example:65536",
        "https://shop.example:8x",
        "https://user@shop.example",
        "https://*.example",
        "https://[::1",
        "https://[]",
        "https://shop.example,",
        ",https://shop.example",
        "https://shop.example,*",
        "*,*",
        "null",
        "https://shop.example https://b.example",
        "https://a:b:1",
        "https://shop.example\r\nX: y",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct cors c = {0};
        struct hf_err err = {0};
        if (cors_parse(bad[i], &c, &err))
            fail_msg("'%s' was taken", bad[i]);
        assert_true(err.msg[0] != '\0');
        assert_null(c.origins);
    }
}

/* ---- the table of routes ---- */

static void assert_scope(const struct route *route, step_fn handler, enum scope scope,
                         const char *method)
{
    bool listed = strstr(route->allow, method) != NULL;
    if ((handler != NULL) != (scope != SCOPE_UNSET) || (handler != NULL) != listed)
        fail_msg("%s %s: handler %d, scope %d, in Allow %d", method, route->path, handler != NULL,
                 scope, listed);
}

static size_t assert_scopes(const struct route *routes)
{
    size_t n = 0;
    for (const struct route *route; (route = &routes[n])->path; n++) {
        assert_scope(route, route->get, route->get_scope, "GET");
        assert_scope(route, route->get, route->get_scope, "HEAD");
        assert_scope(route, route->post, route->post_scope, "POST");
        assert_scope(route, route->put, route->put_scope, "PUT");
        assert_scope(route, route->patch, route->patch_scope, "PATCH");
        assert_scope(route, route->del, route->del_scope, "DELETE");
        assert_true(route->get || route->post || route->put || route->patch || route->del);
    }
    return n;
}

static void every_handler_has_a_scope_and_is_allowed(void **state)
{
    (void)state;
    assert_true(assert_scopes(api_routes) > 10);
    assert_true(assert_scopes(page_routes) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_with_and_without_ports),
        cmocka_unit_test(malformed_addresses_are_refused),
        cmocka_unit_test(a_socket_address_is_the_same_as_its_text),
        cmocka_unit_test(an_address_is_shown_as_it_is_usually_written),
        cmocka_unit_test(a_client_is_an_ipv4_address_or_an_ipv6_subscriber),
        cmocka_unit_test(an_ipv6_subscriber_is_in_the_network_of_its_48),
        cmocka_unit_test(networks_have_what_their_bits_say),
        cmocka_unit_test(bad_networks_are_refused_by_name),
        cmocka_unit_test(an_untrusted_peer_cannot_name_its_client),
        cmocka_unit_test(a_trusted_proxy_names_its_client),
        cmocka_unit_test(the_walk_goes_from_the_right_past_trusted_proxies),
        cmocka_unit_test(if_all_are_trusted_the_leftmost_is_the_client),
        cmocka_unit_test(several_headers_are_one_list),
        cmocka_unit_test(an_unreadable_entry_ends_the_walk),
        cmocka_unit_test(the_walk_has_an_end),
        cmocka_unit_test(without_keys_every_caller_is_an_admin),
        cmocka_unit_test(a_key_has_its_scope_and_those_below),
        cmocka_unit_test(callers_without_a_key_may_be_kept_from_buying),
        cmocka_unit_test(only_one_bearer_key_counts),
        cmocka_unit_test(callers_with_different_keys_are_different),
        cmocka_unit_test(a_malformed_key_is_refused_and_not_shown),
        cmocka_unit_test(one_key_cannot_have_two_scopes),
        cmocka_unit_test(the_number_of_keys_has_a_bound),
        cmocka_unit_test(replaced_keys_count_from_then_on),
        cmocka_unit_test(keys_are_replaced_while_other_threads_compare_them),
        cmocka_unit_test(a_file_has_one_key_per_line),
        cmocka_unit_test(a_key_has_the_name_before_it_or_that_of_its_scope),
        cmocka_unit_test(a_file_that_others_may_read_is_refused),
        cmocka_unit_test(a_file_without_keys_or_with_malformed_ones_is_refused),
        cmocka_unit_test(outside_loopback_there_must_be_an_admin_key),
        cmocka_unit_test(outside_loopback_no_key_is_short),
        cmocka_unit_test(an_origin_is_matched_to_the_letter),
        cmocka_unit_test(an_origin_that_no_browser_sends_is_refused_at_start),
        cmocka_unit_test(every_handler_has_a_scope_and_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
