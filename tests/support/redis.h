/* What the tests of the Redis driver share: one server for an executable.  Include after
 * fixtures.h. */
#ifndef HF_TESTS_SUPPORT_REDIS_H
#define HF_TESTS_SUPPORT_REDIS_H

#include "support/lease_calls.h"
#include "support/port.h"
#include "support/redis_server.h"

extern const struct lease_driver lease_redis;
extern struct redis_server server;

/* The group, with the server around it; no redis-server is a failure. */
#define run_with_redis(tests) with_redis((tests), sizeof(tests) / sizeof *(tests))
int with_redis(const struct CMUnitTest *tests, size_t n);

void must_ask(const char *command);
/* Asserts that Redis has no keys but the counter of fences and the `:last` keys of lock names,
 * which end within a day. */
void assert_nothing_left(void);

#endif
