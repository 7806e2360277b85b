/* What the tests of the lease drivers share: requests, and calls that must be answered.  Include
 * after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_LEASE_CALLS_H
#define HF_TESTS_SUPPORT_LEASE_CALLS_H

#include "lease/lease.h"
#include "support/lease_call.h"
#include "support/lock.h"

/* Fills the fault and returns the result; *ret is NULL unless that is HF_DONE. */
enum hf_result try_open(const char *url, int64_t timeout_ms, struct lease **ret,
                        struct hf_fault *fault);
/* Opens a handle whose calls may take this long.  Opening is repeated, since on a busy machine it
 * may take longer. */
struct lease *must_open(const char *url, int64_t timeout_ms);
/* A request of a new owner: exclusive, one slot, for 30 s or another time; without a place in the
 * queue, or with one. */
struct lease_request asks(const char *key);
struct lease_request asks_for(const char *key, int64_t ttl_ms);
struct lease_request waits(const char *key);
struct lease_request waits_for(const char *key, int64_t ttl_ms);

struct lease_verdict must_acquire(struct lease *l, const struct lease_request *q);
struct lease_verdict must_renew(struct lease *l, const struct lease_request *q);
enum hf_result must_release(struct lease *l, const struct lease_request *q);
/* The same, repeated while they fail for want of an answer in time, or of enough servers.  What an
 * earlier call may have released counts as released. */
struct lease_verdict must_acquire_again(struct lease *l, const struct lease_request *q);
struct lease_verdict must_renew_again(struct lease *l, const struct lease_request *q);
enum hf_result must_release_again(struct lease *l, const struct lease_request *q);
struct lease_state must_inspect(struct lease *l, const char *key); /* repeated, too */
/* Asks and waits until the request is granted; returns how long that took. */
int64_t must_wait(struct lease *l, const struct lease_request *q, int64_t most_ms,
                  struct lease_verdict *ret);
/* The worst that examining finds about the topic has this grade, and these words are in its text. */
void assert_finding(struct lease *l, const char *topic, enum hf_grade grade, const char *words);

#endif
