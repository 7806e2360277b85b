/* See redis.h. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <stdio.h>

struct redis_server server;

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
    if (!redis_server_start(&server)) {
        fprintf(stderr, "there is no redis-server\n");
        return 1;
    }
    int failed = _cmocka_run_group_tests("redis", tests, n, NULL, NULL);
    redis_server_stop(&server);
    return failed;
}
