/* Claims about reaching a Redis server: URLs, host names, sockets, passwords, and the faults. */
#include "support/fixtures.h"

#include "support/lock.h"
#include "support/redis.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redis/address.h"
#include "redis/link.h"

static enum hf_result open_fails_within(const char *url, int64_t timeout_ms, struct hf_fault *fault)
{
    struct lease *l = NULL;
    *fault = (struct hf_fault){0};
    struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    enum hf_result result = lease_open(&lease_redis, url, &options, &l, fault);
    assert_null(l);
    assert_int_equal(fault->result, result);
    assert_null(strstr(fault->msg, "s3cret"));
    return result;
}

static enum hf_result open_fails(const char *url, struct hf_fault *fault)
{
    return open_fails_within(url, 10000, fault);
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
    assert_int_equal(open_fails_within(url, 300, &fault), HF_UNREACHABLE);
    assert_in_range(boot_ms() - begin_ms, 290, 10000); /* it would never answer */
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
    struct lease *l = must_open(url, 10000);
    struct lease_request q = waits("named");
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    redis_server_ask(&locked, "ACL SETUSER half on >s3cret ~holdfast:* &holdfast:* +@all -getset",
                     answer, sizeof answer);
    snprintf(url, sizeof url, "redis://half:s3cret@127.0.0.1:%d/3", locked.port);
    struct lease *half = must_open(url, 10000);
    struct lease_request other = asks("other");
    assert_int_equal(lease_acquire(half, &other, &v, &fault), HF_UNREACHABLE);
    struct lease_state s =
        must_inspect(l, "other"); /* refused in the middle of the script: nothing was done */
    assert_int_equal(s.n_holders, 0);
    redis_server_ask(&locked, "ACL SETUSER half -evalsha", answer, sizeof answer);
    assert_int_equal(lease_acquire(half, &other, &v, &fault), HF_UNREACHABLE);
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
    struct lease *l = must_open(replica.url, 10000);
    struct lease_request q = asks("replica");
    struct lease_verdict v;
    struct hf_fault fault;
    char command[64], answer[64];
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", port_free(NULL));
    redis_server_ask(&replica, command, answer, sizeof answer);
    assert_int_equal(lease_acquire(l, &q, &v, &fault), HF_UNREACHABLE);
    assert_true(strstr(fault.msg, "READONLY") || strstr(fault.msg, "MASTERDOWN"));
    lease_close(l);
    redis_server_stop(&replica);
}

/* Errors as the versions write them.  Those of 5 and 6 cannot be had from the server that is here.
 */
static void a_refusal_that_points_elsewhere_closes_the_link(void **state)
{
    (void)state;
    static const struct {
        const char *error;
        enum hf_result result;
        bool closes;
    } cases[] = {
        {"READONLY You can't write against a read only replica.", HF_UNREACHABLE, true},
        {"ERR Error running script (call to f_0a): @user_script:3: @user_script: 3: -READONLY You "
         "can't write against a read only replica.",
         HF_UNREACHABLE, true},
        {"MASTERDOWN Link with MASTER is down", HF_UNREACHABLE, true},
        {"LOADING Redis is loading the dataset in memory", HF_UNREACHABLE, true},
        {"NOREPLICAS Not enough good replicas to write.", HF_UNREACHABLE, true},
        {"OOM command not allowed when used memory > 'maxmemory'.", HF_UNREACHABLE, false},
        {"ERR Error running script (call to f_0a): @user_script:3: @user_script: 3: -OOM command "
         "not allowed when used memory > 'maxmemory'.",
         HF_UNREACHABLE, false},
        {"NOPERM this user has no permissions to run the 'evalsha' command", HF_UNREACHABLE, false},
        {"ERR The user executing the script can't publish to the channel", HF_UNREACHABLE, false},
        {"ERR something else", HF_FAILED, false},
    };
    struct redis_address address;
    struct redis_link link;
    assert_int_equal(redis_address_parse(server.url, &address, NULL), HF_DONE);
    redis_link_init(&link, &address, &clock_system, 2000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct hf_fault fault;
        redisReply reply = {.type = REDIS_REPLY_ERROR, .str = text};
        snprintf(text, sizeof text, "%s", cases[i].error);
        assert_int_equal(redis_send(&link, NULL), HF_DONE); /* connects */
        assert_int_equal(redis_refusal(&link, &reply, &fault), cases[i].result);
        assert_int_equal(link.fd < 0, cases[i].closes);
        assert_null(strstr(fault.msg, "@user_script"));
    }
    redis_link_close(&link);
    redis_address_close(&address);
}

static void a_socket_serves_as_well_and_databases_are_apart(void **state)
{
    (void)state;
    char url[160];
    snprintf(url, sizeof url, "%s?db=5", server.unix_url);
    struct lease *l = must_open(server.unix_url, 10000), *five = must_open(url, 10000),
                 *more = NULL;
    char same[200];
    snprintf(same, sizeof same, "redis+%s", server.unix_url);
    struct lease_request a = asks("where"), b = asks("where");
    assert_int_equal(must_acquire(l, &a).result, HF_DONE);
    assert_int_equal(must_acquire(five, &b).result, HF_DONE);
    assert_int_equal(lease_clone(five, &more, NULL), HF_DONE);
    assert_int_equal(must_acquire(more, &a).result, HF_TAKEN);
    lease_close(more);
    more = must_open(same, 10000);
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
    assert_int_equal(redis_address_parse("rediss://h?cacert=/c%20a&cert=/c&key=/k&db=2"
                                         "&min_replicas=1&replicas_timeout=250",
                                         &a, NULL),
                     HF_DONE);
    assert_true(a.tls);
    assert_string_equal(a.host, "h");
    assert_string_equal(a.cacert, "/c a");
    assert_string_equal(a.cert, "/c");
    assert_string_equal(a.key, "/k");
    assert_int_equal(a.db, 2);
    assert_int_equal(a.min_replicas, 1);
    assert_int_equal(a.replicas_timeout_ms, 250);
    redis_address_close(&a);
    assert_int_equal(redis_address_parse("redis+sentinel://u:p@s1,[::1]:7,s3:8/my%2Dname"
                                         "?sentinel_user=su&sentinel_password=s%26p&db=4",
                                         &a, NULL),
                     HF_DONE);
    assert_false(a.tls);
    assert_null(a.host);
    assert_int_equal(a.n_sentinels, 3);
    assert_string_equal(a.sentinels[0].host, "s1");
    assert_int_equal(a.sentinels[0].port, 26379);
    assert_string_equal(a.sentinels[1].host, "::1");
    assert_int_equal(a.sentinels[2].port, 8);
    assert_string_equal(a.primary, "my-name");
    assert_string_equal(a.password, "p");
    assert_string_equal(a.sentinel_user, "su");
    assert_string_equal(a.sentinel_password, "s&p");
    assert_int_equal(a.db, 4);
    struct redis_address same;
    redis_address_copy(&a, &same);
    redis_address_close(&a);
    assert_string_equal(same.sentinels[2].host, "s3");
    assert_string_equal(same.sentinel_password, "s&p");
    redis_address_close(&same);
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
        "rediss://",
        "redis://h?cacert=x",
        "redis://h?db=1&",
        "redis://h?min_replicas=x",
        "redis://h?min_replicas=-1",
        "redis://h?replicas_timeout=0",
        "redis://h?sentinel_password=s3cret",
        "rediss://h?cert=/c",
        "rediss://h?key=/k",
        "rediss://h?cacert=",
        "rediss://h?cacert=%",
        "redis+sentinel://h",
        "redis+sentinel://h/",
        "redis+sentinel:///name",
        "redis+sentinel://h,/name",
        "redis+sentinel://h:x/name",
        "redis+sentinel://h/name/2",
        "redis+sentinel://h/name?cacert=x",
        "redis+sentinel://h/name?sentinel_password=s3cret%",
        "redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/name",
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
    struct lease *l = must_open(url, 10000);
    struct lease_request q = asks("socket");
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    lease_close(l);
    redis_server_stop(&locked);
}

/* ---- name lookup ---- */

static atomic_bool is_held; /* the lookup of slow.test has no result yet */
static atomic_int n_lookups;

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
        atomic_fetch_add(&n_lookups, 1);
        while (atomic_load(&is_held))
            nap_ms(1);
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
    atomic_store(&is_held, true);
    int64_t begin_ms = boot_ms();
    assert_int_equal(open_fails_within(url, 300, &fault), HF_UNREACHABLE);
    assert_in_range(boot_ms() - begin_ms, 290, 10000); /* it would never be told */
    atomic_store(&is_held, false);
    assert_non_null(strstr(fault.msg, "slow.test"));
    assert_non_null(strstr(fault.msg, "looking up its name takes too long"));
    struct lease *l = must_open(url, 10000);
    lease_close(l);
    snprintf(url, sizeof url, "redis://localhost:%d", server.port);
    l = must_open(url, 10000);
    lease_close(l);
    assert_int_equal(open_fails("redis://nobody.invalid", &fault), HF_UNREACHABLE);
}

/* The next attempt does not start a second lookup: it gets the result of the one under way. */
TIMELY_CLAIM(a_late_answer_of_the_resolver_serves_the_next_try)
{
    struct redis_address address;
    struct redis_link link;
    char url[64];
    snprintf(url, sizeof url, "redis://slow.test:%d", server.port);
    assert_int_equal(redis_address_parse(url, &address, NULL), HF_DONE);
    redis_link_init(&link, &address, &clock_system, 300);
    atomic_store(&is_held, true);
    atomic_store(&n_lookups, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(redis_send(&link, NULL), HF_UNREACHABLE);
    atomic_store(&is_held, false);
    int tries = 1;
    while (redis_send(&link, NULL) != HF_DONE && tries < 100)
        tries++;
    redis_link_close(&link);
    redis_address_close(&address);
    assert_in_range(tries, 1, 99);
    /* A connection that did not come about in its 300 ms is tried again with a lookup of its own. */
    return atomic_load(&n_lookups) == 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unreachable_server_is_reported_in_time_and_without_the_password),
        cmocka_unit_test(passwords_are_checked_at_open_and_users_have_their_rights),
        cmocka_unit_test(a_replica_refuses_and_says_so),
        cmocka_unit_test(a_refusal_that_points_elsewhere_closes_the_link),
        cmocka_unit_test(a_socket_serves_as_well_and_databases_are_apart),
        cmocka_unit_test(urls_are_read_exactly),
        cmocka_unit_test(a_fault_blames_the_part_that_is_wrong),
        cmocka_unit_test(a_socket_takes_a_password_too),
        cmocka_unit_test(a_name_that_is_not_found_in_time_is_told_in_time),
        cmocka_unit_test(a_late_answer_of_the_resolver_serves_the_next_try),
    };
    return run_with_redis(tests);
}
