/* See redis.h. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "support/lease_call.h"

struct redis_server server;
static struct random source;

#define LATE_MS 20000 /* after which an answer is no longer late, but missing */

struct lease *must_open(const char *url, int64_t timeout_ms)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    for (int64_t end_ms = boot_ms() + LATE_MS;
         lease_open(&lease_redis, url, &options, &l, &fault) != HF_DONE; nap_ms(10))
        if (boot_ms() > end_ms)
            fail_msg("%s", fault.msg);
    return l;
}

struct lease_request asks(const char *key)
{
    struct lease_request q = {.key = key, .key_len = strlen(key), .ttl_ms = 30000, .slots = 1};
    random_bytes(&source, q.owner, sizeof q.owner);
    return q;
}

struct lease_request waits(const char *key)
{
    struct lease_request q = asks(key);
    q.queue = true;
    return q;
}

struct lease_verdict must_acquire(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    if (lease_acquire(l, q, &v, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return v;
}

struct lease_verdict must_renew(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    assert_int_equal(lease_renew(l, q, 1, &v, NULL), HF_DONE);
    return v;
}

enum hf_result must_release(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    if (lease_release(l, q, 1, &v, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return v.result;
}

static struct lease_verdict call_again(lease_call *call, struct lease *l,
                                       const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    enum hf_result result;
    int64_t end_ms = boot_ms() + LATE_MS;
    while ((result = call(l, q, 1, &v, &fault)) == HF_UNREACHABLE || result == HF_UNKNOWN) {
        if (boot_ms() > end_ms)
            fail_msg("%s", fault.msg);
        nap_ms(10);
    }
    assert_int_equal(result, HF_DONE);
    return v;
}

struct lease_verdict must_acquire_again(struct lease *l, const struct lease_request *q)
{
    return call_again(call_acquire, l, q);
}

struct lease_verdict must_renew_again(struct lease *l, const struct lease_request *q)
{
    return call_again(lease_renew, l, q);
}

struct lease_state must_inspect(struct lease *l, const char *key)
{
    struct lease_state state = {0};
    assert_int_equal(lease_inspect(l, key, strlen(key), &state, NULL), HF_DONE);
    return state;
}

void must_ask(const char *command)
{
    char answer[256];
    redis_server_ask(&server, command, answer, sizeof answer);
    assert_true(answer[0] == '+' || answer[0] == ':');
}

/* Only the counter is left, and the last fences, of which there are at most 10,000. */
void assert_nothing_left(void)
{
    char answer[1024];
    redis_server_ask(&server,
                     "EVAL \"local left = {} for _, k in ipairs(redis.call('KEYS', '*')) do "
                     "if not (k == 'holdfast:last' and redis.call('ZCARD', k) <= 10100) "
                     "then left[#left + 1] = k end end return left\" 0",
                     answer, sizeof answer);
    assert_string_equal(answer, "*1\r\n$14\r\nholdfast:fence\r\n");
}

int with_redis(const struct CMUnitTest *tests, size_t n)
{
    random_init_system(&source);
    if (!redis_server_start(&server)) {
        fprintf(stderr, "there is no redis-server\n");
        return 1;
    }
    int failed = _cmocka_run_group_tests("redis", tests, n, NULL, NULL);
    redis_server_stop(&server);
    return failed;
}
