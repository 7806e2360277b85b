/* What the tests of the Redis driver share: one server for an executable, and calls that must be
 * answered.  Include after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_REDIS_H
#define HF_TESTS_SUPPORT_REDIS_H

#include "lease/lease.h"
#include "support/lock.h"
#include "support/port.h"
#include "support/redis_server.h"

extern const struct lease_driver lease_redis;
extern struct redis_server server;

/* The group, with the server around it; no redis-server is a failure. */
#define run_with_redis(tests) with_redis((tests), sizeof(tests) / sizeof *(tests))
int with_redis(const struct CMUnitTest *tests, size_t n);

/* Opens a handle whose calls may take this long.  Opening is repeated, since on a busy machine it
 * may take longer. */
struct lease *must_open(const char *url, int64_t timeout_ms);
struct lease_request asks(const char *key);
struct lease_request waits(const char *key);
struct lease_verdict must_acquire(struct lease *l, const struct lease_request *q);
struct lease_verdict must_renew(struct lease *l, const struct lease_request *q);
enum hf_result must_release(struct lease *l, const struct lease_request *q);
/* The same, repeated while they fail for want of an answer in time, of the server or of a replica.
 */
struct lease_verdict must_acquire_again(struct lease *l, const struct lease_request *q);
struct lease_verdict must_renew_again(struct lease *l, const struct lease_request *q);
struct lease_state must_inspect(struct lease *l, const char *key);
void must_ask(const char *command);
/* Asserts that Redis has no keys but the counter of fences and the `:last` keys of lock names,
 * which end within a day. */
void assert_nothing_left(void);

#endif
