/* What one address may take of the server.  Some things are counted while they last (connections,
 * streams), others by their pace (wrong keys, old messages, and what the application names): a
 * bucket of `burst` that fills again at `per_minute`.
 *
 * An address counts as itself if it is IPv4.  An IPv6 address counts twice, as its /64 and, with
 * limits QUOTA_WIDE times as large, as its /48, since a subscriber may have either.
 *
 * Memory is bounded: an address that has nothing and whose buckets are full again is forgotten, and
 * where there is no room for another one, the one that has the least to be remembered for is
 * forgotten first.  Slots are found by a hash with a random key, so nobody can choose addresses
 * that meet.  Thread-safe; a lock is held for each call, one of several by the address. */
#ifndef HF_HTTP_QUOTA_H
#define HF_HTTP_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/client_number.h"
#include "http/address.h"

#define QUOTA_WIDE CLIENT_WIDE

/* Counted while they last. */
enum quota_level { QUOTA_CONNECTIONS, QUOTA_STREAMS, QUOTA_LEVELS };
/* Counted by their pace; from QUOTA_OF_APP on, what the application counts (http_app.paces). */
#define QUOTA_APP_MAX 2
enum quota_rate {
    QUOTA_WRONG_KEYS,
    QUOTA_REPLAYS,
    QUOTA_OF_APP,
    QUOTA_RATES = QUOTA_OF_APP + QUOTA_APP_MAX
};

struct quota_pace {
    uint32_t per_minute, burst; /* burst 0: there is no limit */
};

struct quota_limits {
    size_t levels[QUOTA_LEVELS]; /* 0: there is no limit */
    struct quota_pace rates[QUOTA_RATES];
};

struct quotas;

/* `addresses_max` bounds the memory; it should exceed the number of connections. */
struct quotas *quotas_new(const struct quota_limits *limits, size_t addresses_max);
void quotas_free(struct quotas *q); /* accepts NULL */

/* Takes one; false: the address has as many as it may. */
bool quota_take(struct quotas *q, const struct address *a, enum quota_level level);
/* Gives back what quota_take took. */
void quota_give(struct quotas *q, const struct address *a, enum quota_level level);

/* Spends one; false: it came too soon, nothing is spent, and *ret_wait_us says when the next may
 * come.  `now_us` is on the monotonic clock. */
bool quota_spend(struct quotas *q, const struct address *a, enum quota_rate rate, int64_t now_us,
                 int64_t *ret_wait_us);
/* As quota_spend, but spends nothing: may the address do one now? */
bool quota_allows(struct quotas *q, const struct address *a, enum quota_rate rate, int64_t now_us,
                  int64_t *ret_wait_us);
/* Gives back one that quota_spend spent, since nothing came of it. */
void quota_unspend(struct quotas *q, const struct address *a, enum quota_rate rate);

#endif
