/* See lease_calls.h. */
#include "support/fixtures.h"

#include "support/lease_calls.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

#define LATE_MS 60000 /* after which an answer is no longer late, but missing */

enum hf_result try_open(const char *url, int64_t timeout_ms, struct lease **ret,
                        struct hf_fault *fault)
{
    const struct lease_driver *driver = lease_driver_for(url);
    const struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    assert_non_null(driver);
    *ret = NULL;
    *fault = (struct hf_fault){0};
    return lease_open(driver, url, &options, ret, fault);
}

struct lease *must_open(const char *url, int64_t timeout_ms)
{
    struct lease *l;
    struct hf_fault fault;
    for (int64_t end_ms = boot_ms() + LATE_MS; try_open(url, timeout_ms, &l, &fault) != HF_DONE;
         nap_ms(10))
        if (boot_ms() > end_ms)
            fail_msg("%s", fault.msg);
    return l;
}

struct lease_request asks_for(const char *key, int64_t ttl_ms)
{
    struct lease_request q = {.key = key, .key_len = strlen(key), .ttl_ms = ttl_ms, .slots = 1};
    struct random random; /* a new one, since processes that fork have their state in common */
    random_init_system(&random);
    random_bytes(&random, q.owner, sizeof q.owner);
    return q;
}

struct lease_request waits_for(const char *key, int64_t ttl_ms)
{
    struct lease_request q = asks_for(key, ttl_ms);
    q.queue = true;
    return q;
}

struct lease_request asks(const char *key) { return asks_for(key, 30000); }
struct lease_request waits(const char *key) { return waits_for(key, 30000); }

static struct lease_verdict must_call(lease_call *call, struct lease *l,
                                      const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    if (call(l, q, 1, &v, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return v;
}

struct lease_verdict must_acquire(struct lease *l, const struct lease_request *q)
{
    return must_call(call_acquire, l, q);
}

struct lease_verdict must_renew(struct lease *l, const struct lease_request *q)
{
    return must_call(lease_renew, l, q);
}

enum hf_result must_release(struct lease *l, const struct lease_request *q)
{
    return must_call(lease_release, l, q).result;
}

struct lease_state must_inspect(struct lease *l, const char *key)
{
    struct lease_state state = {0};
    struct hf_fault fault = {0};
    int64_t end_ms = boot_ms() + LATE_MS;
    while (lease_inspect(l, key, strlen(key), &state, &fault) != HF_DONE) {
        if (boot_ms() > end_ms)
            fail_msg("%s", fault.msg);
        nap_ms(10);
    }
    return state;
}

/* Returns whether an earlier call may have been executed. */
static bool call_again(lease_call *call, struct lease *l, const struct lease_request *q,
                       struct lease_verdict *ret)
{
    enum hf_result result;
    struct hf_fault fault = {0};
    bool may_be_done = false;
    for (int64_t end_ms = boot_ms() + LATE_MS;
         (result = call(l, q, 1, ret, &fault)) == HF_UNKNOWN || result == HF_UNREACHABLE;) {
        if (boot_ms() > end_ms)
            fail_msg("%s", fault.msg);
        may_be_done = may_be_done || result == HF_UNKNOWN;
        nap_ms(10);
    }
    if (result != HF_DONE)
        fail_msg("result %d: %s", (int)result, fault.msg);
    return may_be_done;
}

struct lease_verdict must_acquire_again(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    (void)call_again(call_acquire, l, q, &v);
    return v;
}

struct lease_verdict must_renew_again(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    (void)call_again(lease_renew, l, q, &v);
    return v;
}

enum hf_result must_release_again(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    bool may_be_done = call_again(lease_release, l, q, &v);
    return may_be_done && v.result == HF_LOST ? HF_DONE : v.result;
}

int64_t must_wait(struct lease *l, const struct lease_request *q, int64_t most_ms,
                  struct lease_verdict *ret)
{
    int64_t from_ms = boot_ms();
    while ((*ret = must_acquire_again(l, q)).result != HF_DONE) {
        struct hf_fault fault = {0};
        assert_true(boot_ms() - from_ms < most_ms);
        if (lease_wait(l, q, 1000, &fault) != HF_DONE)
            fail_msg("%s", fault.msg);
    }
    return boot_ms() - from_ms;
}

struct sought {
    const char *topic;
    enum hf_grade worst;
    char text[512];
};

static void seek(void *ctx, const struct hf_finding *finding)
{
    struct sought *sought = ctx;
    if (strcmp(finding->topic, sought->topic) != 0 || finding->grade < sought->worst)
        return;
    sought->worst = finding->grade;
    (void)snprintf(sought->text, sizeof sought->text, "%s", finding->text);
}

void assert_finding(struct lease *l, const char *topic, enum hf_grade grade, const char *words)
{
    struct sought sought = {.topic = topic};
    assert_int_equal(lease_examine(l, seek, &sought, NULL), HF_DONE);
    assert_int_equal(sought.worst, grade);
    assert_non_null(strstr(sought.text, words));
}
