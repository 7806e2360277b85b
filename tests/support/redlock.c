/* See redlock.h. */
#include "support/fixtures.h"

#include "support/redlock.h"

#include <stdio.h>
#include <string.h>

#define STATE "holdfast:redlock:state"
#define LOCK "holdfast:{" KEY "}:redlock"

void ask(const struct redis_server *s, const char *command, char ret[256])
{
    redis_server_ask(s, command, ret, 256);
    ret[strcspn(ret, "\r")] = '\0';
}

bool has_lock(const struct redis_server *s)
{
    char answer[256];
    ask(s, "EXISTS " LOCK, answer);
    return strcmp(answer, ":1") == 0;
}

bool has_vote(const struct redis_server *s)
{
    char answer[256];
    redis_server_ask(s, "GET " STATE, answer, sizeof answer);
    const char *state = strchr(answer, '\n');
    return state && strncmp(state + 1, "in ", 3) == 0;
}

void vouch(const struct redis_server *s)
{
    char answer[256];
    ask(s, "SET holdfast:redlock:vouched 1 EX 60", answer);
    assert_string_equal(answer, "+OK");
}

void url_of(char ret[256], int a, int b, int c, const char *query)
{
    snprintf(ret, 256, "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d%s", a, b, c, query);
}

void trio_start(struct trio *t, const char *query)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < 3; i++)
        assert_true(redis_server_start(&t->s[i])); /* is redis-server installed? */
    url_of(t->url, t->s[0].port, t->s[1].port, t->s[2].port, query);
}

void trio_start_vouched(struct trio *t, const char *query)
{
    trio_start(t, query);
    for (int i = 0; i < 3; i++)
        vouch(&t->s[i]);
}

void trio_stop(struct trio *t)
{
    for (int i = 0; i < 3; i++)
        redis_server_stop(&t->s[i]);
}

/* ---- requests ---- */

struct lease_verdict acquire_soon(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v = {.result = HF_FAILED};
    struct hf_fault fault = {0};
    for (int64_t end_ms = boot_ms() + 30000; boot_ms() < end_ms; nap_ms(10))
        if (lease_acquire(l, q, &v, &fault) == HF_DONE && v.result == HF_DONE)
            return v;
    fail_msg("not granted within thirty seconds: %s", fault.msg);
    return v;
}

#define USE_TTL_MS 5000

/* Returns false if the lease ended because the machine stood still for as long as it lasts, but for
 * what may be taken off for clocks that differ. */
static bool use_once(struct lease *l, int64_t *last_fence)
{
    struct lease_request q = asks_for(KEY, USE_TTL_MS);
    int64_t from_ms = boot_ms();
    struct lease_verdict v = acquire_soon(l, &q);
    assert_true(v.fence > *last_fence);
    *last_fence = v.fence;
    struct lease_verdict renewed = must_renew_again(l, &q);
    enum hf_result given = must_release_again(l, &q);
    if ((renewed.result == HF_LOST || given == HF_LOST) &&
        boot_ms() - from_ms >= USE_TTL_MS - USE_TTL_MS / 10)
        return false;
    assert_int_equal(renewed.fence, v.fence);
    assert_int_equal(given, HF_DONE);
    return true;
}

void use(struct lease *l, int64_t *last_fence)
{
    while (!use_once(l, last_fence)) {
    }
}
