/* Claims about reaching a Redis server: URLs, host names, sockets, passwords, and the faults. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redis/address.h"
#include "redis/link.h"

static enum hf_result open_fails(const char *url, struct hf_fault *fault)
{
    struct lease *l = NULL;
    *fault = (struct hf_fault){0};
    struct lease_options options = {.timeout_ms = 300, .clock = &clock_system};
    enum hf_result result = lease_open(&lease_redis, url, &options, &l, fault);
    assert_null(l);
    assert_int_equal(fault->result, result);
    assert_null(strstr(fault->msg, "s3cret"));
    return result;
}

static void an_unreachable_server_is_reported_in_time_and_without_the_password(void **state)
{
    (void)state;
    struct hf_fault fault;
    char url[128];
    int hole;
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", port_free(NULL));
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "refused"));
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", port_free(&hole));
    int64_t begin_ms = boot_ms();
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_in_range(boot_ms() - begin_ms, 290, 600);
    assert_non_null(strstr(fault.msg, "no answer within 300 ms"));
    close(hole);
    assert_int_equal(open_fails("unix:/tmp/holdfast-nobody", &fault), HF_UNREACHABLE);
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", server.port);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    snprintf(url, sizeof url, "%s/99", server.url);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
}

static void passwords_are_checked_at_open_and_users_have_their_rights(void **state)
{
    (void)state;
    struct redis_server locked = {.password = "s3cret/@%"};
    assert_true(redis_server_start(&locked));
    struct hf_fault fault;
    struct lease_verdict v;
    char url[128], answer[256];
    assert_int_equal(open_fails(locked.url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "NOAUTH"));
    snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d", locked.port);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "wrong user or password"));
    snprintf(url, sizeof url, "redis://:s3cret%%2f%%40%%25@127.0.0.1:%d/3", locked.port);
    struct lease *l = must_open(url, 1000);
    struct lease_request q = waits("named");
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    redis_server_ask(&locked, "ACL SETUSER half on >s3cret ~holdfast:* &holdfast:* +@all -getset",
                     answer, sizeof answer);
    snprintf(url, sizeof url, "redis://half:s3cret@127.0.0.1:%d/3", locked.port);
    struct lease *half = must_open(url, 1000);
    struct lease_request other = asks("other");
    assert_int_equal(lease_acquire(half, &other, 1, &v, &fault), HF_UNREACHABLE);
    struct lease_state s =
        must_inspect(l, "other"); /* refused in the middle of the script: nothing was done */
    assert_int_equal(s.n_holders, 0);
    redis_server_ask(&locked, "ACL SETUSER half -evalsha", answer, sizeof answer);
    assert_int_equal(lease_acquire(half, &other, 1, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "NOPERM"));
    lease_close(half);
    lease_close(l);
    redis_server_stop(&locked);
}

static void a_replica_refuses_and_says_so(void **state)
{
    (void)state;
    struct redis_server replica = {0};
    assert_true(redis_server_start(&replica));
    struct lease *l = must_open(replica.url, 1000);
    struct lease_request q = asks("replica");
    struct lease_verdict v;
    struct hf_fault fault;
    char command[64], answer[64];
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", port_free(NULL));
    redis_server_ask(&replica, command, answer, sizeof answer);
    assert_int_equal(lease_acquire(l, &q, 1, &v, &fault), HF_UNREACHABLE);
    assert_true(strstr(fault.msg, "READONLY") || strstr(fault.msg, "MASTERDOWN"));
    lease_close(l);
    redis_server_stop(&replica);
}

static void a_socket_serves_as_well_and_databases_are_apart(void **state)
{
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?db=5", server.unix_url);
    struct lease *l = must_open(server.unix_url, 1000), *five = must_open(url, 1000), *more = NULL;
    char same[200];
    snprintf(same, sizeof same, "redis+%s", server.unix_url);
    struct lease_request a = asks("where"), b = asks("where");
    assert_int_equal(must_acquire(l, &a).result, HF_DONE);
    assert_int_equal(must_acquire(five, &b).result, HF_DONE);
    assert_int_equal(lease_clone(five, &more, NULL), HF_DONE);
    assert_int_equal(must_acquire(more, &a).result, HF_TAKEN);
    lease_close(more);
    more = must_open(same, 1000);
    assert_int_equal(must_acquire(more, &b).result, HF_TAKEN); /* the database of `l` */
    must_release(l, &a);
    must_release(five, &b);
    lease_close(l);
    lease_close(five);
    lease_close(more);
}

static void urls_are_read_exactly(void **state)
{
    (void)state;
    struct redis_address a;
    assert_int_equal(redis_address_parse("redis://u%3a:p%40%2F:x@[::1]:7000/12", &a, NULL),
                     HF_DONE);
    assert_string_equal(a.host, "::1");
    assert_string_equal(a.user, "u:");
    assert_string_equal(a.password, "p@/:x");
    assert_int_equal(a.port, 7000);
    assert_int_equal(a.db, 12);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("redis://example", &a, NULL), HF_DONE);
    assert_int_equal(a.port, 6379);
    assert_null(a.password);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("unix:/run/a?b?db=2", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "/run/a?b");
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("redis://:a?b@h:1?db=3", &a, NULL), HF_DONE);
    assert_string_equal(a.password, "a?b");
    assert_int_equal(a.port, 1);
    assert_int_equal(a.db, 3);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("unix://u:p%2fw@/run/a@b?db=2", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "/run/a@b");
    assert_string_equal(a.user, "u");
    assert_string_equal(a.password, "p/w");
    assert_int_equal(a.db, 2);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("redis+unix://u:p%2fw@/run/a@b?db=2", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "/run/a@b");
    assert_string_equal(a.password, "p/w");
    assert_int_equal(a.db, 2);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("redis+unix:run/a", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "run/a");
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("unix:///run/a", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "///run/a"); /* the same file */
    assert_null(a.password);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("unix://run/a", &a, NULL), HF_DONE);
    assert_string_equal(a.path, "//run/a"); /* as it always was */
    redis_address_close(&a);
    static const char *const bad[] = {
        "redis://",
        "redis://:6379",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:x",
        "redis://h/x",
        "redis://h/-1",
        "redis://s3cret@h",
        "redis://:@h",
        "redis://:s3cret%@h",
        "redis://:s%4@h",
        "redis://:s%00@h",
        "redis://[::1",
        "redis://::1",
        "redis://h:1:2",
        "unix:",
        "unix:/a?db=",
        "redis+unix:",
        "redis+unix://u:p@run",
        "redis+tcp://h",
        "unix:/a?s3cret",
        "rediss://h",
        "redis://h/1/2",
        "redis://h?db=x",
        "redis://h?s3cret",
        "redis://h:x?password=s3cret",
        "unix://:s3cret@a",
        "unix://:@/a",
        "unix://s3cret@/a",
        "unix:/a?password=s3cret",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_fault fault;
        if (open_fails(bad[i], &fault) != HF_BAD_REQUEST)
            fail_msg("%s", bad[i]);
    }
}

static void a_fault_blames_the_part_that_is_wrong(void **state)
{
    (void)state;
    struct hf_fault fault;
    static const char *const wrong[][2] = {
        {"redis://h:p?x=1", "parameter"},      {"redis://h:p", "port"},
        {"redis://h/p?x=1", "parameter"},      {"unix:/a?x=1", "parameter"},
        {"unix://:s3cret@a", "socket's path"}, {"redis://h/x", "database"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(open_fails(wrong[i][0], &fault), HF_BAD_REQUEST);
        if (!strstr(fault.msg, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], fault.msg);
    }
}

static void a_socket_takes_a_password_too(void **state)
{
    (void)state;
    struct redis_server locked = {.password = "s3cret/@%"};
    assert_true(redis_server_start(&locked));
    struct hf_fault fault;
    char url[192];
    assert_int_equal(open_fails(locked.unix_url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "NOAUTH"));
    snprintf(url, sizeof url, "unix://:s3cret-no@%s", locked.socket);
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "wrong user or password"));
    snprintf(url, sizeof url, "unix://:s3cret%%2f%%40%%25@%s?db=3", locked.socket);
    struct lease *l = must_open(url, 1000);
    struct lease_request q = asks("socket");
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    lease_close(l);
    redis_server_stop(&locked);
}

/* ---- name lookup ---- */

/* The resolver of this executable.  A name server cannot run on a port of the test's own, so this
 * function plays one that does not answer.  For other names it calls the system's. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *want,
                struct addrinfo **ret)
{
    int (*system_getaddrinfo)(const char *, const char *, const struct addrinfo *,
                              struct addrinfo **);
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&system_getaddrinfo, &found, sizeof found);
    bool figures = want->ai_flags & AI_NUMERICHOST;
    if (strcmp(host, "slow.test") == 0 && !figures) {
        nap_ms(1650);
        host = "127.0.0.1";
    }
    return system_getaddrinfo(host, port, want, ret);
}

static void a_name_that_is_not_found_in_time_is_told_in_time(void **state)
{
    (void)state;
    struct hf_fault fault;
    char url[64];
    snprintf(url, sizeof url, "redis://slow.test:%d", server.port);
    int64_t begin_ms = boot_ms();
    assert_int_equal(open_fails(url, &fault), HF_UNREACHABLE); /* timeout 300 ms */
    assert_in_range(boot_ms() - begin_ms, 290, 1300);
    assert_non_null(strstr(fault.msg, "slow.test"));
    assert_non_null(strstr(fault.msg, "looking up its name takes too long"));
    struct lease *l = must_open(url, 5000);
    lease_close(l);
    snprintf(url, sizeof url, "redis://localhost:%d", server.port);
    l = must_open(url, 2000);
    lease_close(l);
    assert_int_equal(open_fails("redis://nobody.invalid", &fault), HF_UNREACHABLE);
}

/* The next attempt does not start a second lookup: it gets the result of the one under way. */
static void a_late_answer_of_the_resolver_serves_the_next_try(void **state)
{
    (void)state;
    struct redis_address address;
    struct redis_link link;
    char url[64];
    snprintf(url, sizeof url, "redis://slow.test:%d", server.port);
    assert_int_equal(redis_address_parse(url, &address, NULL), HF_DONE);
    redis_link_init(&link, &address, &clock_system, 300);
    int64_t begin_ms = boot_ms();
    int tries = 1;
    while (redis_send(&link, NULL) != HF_DONE && tries < 20)
        tries++;
    assert_in_range(tries, 4, 7);
    assert_true(boot_ms() - begin_ms < 3000);
    redis_link_close(&link);
    redis_address_close(&address);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unreachable_server_is_reported_in_time_and_without_the_password),
        cmocka_unit_test(passwords_are_checked_at_open_and_users_have_their_rights),
        cmocka_unit_test(a_replica_refuses_and_says_so),
        cmocka_unit_test(a_socket_serves_as_well_and_databases_are_apart),
        cmocka_unit_test(urls_are_read_exactly),
        cmocka_unit_test(a_fault_blames_the_part_that_is_wrong),
        cmocka_unit_test(a_socket_takes_a_password_too),
        cmocka_unit_test(a_name_that_is_not_found_in_time_is_told_in_time),
        cmocka_unit_test(a_late_answer_of_the_resolver_serves_the_next_try),
    };
    return run_with_redis(tests);
}
