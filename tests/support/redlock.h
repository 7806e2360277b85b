/* What the tests of the Redlock driver share: three redis-servers for a test, and calls that must
 * be answered.  Include after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_REDLOCK_H
#define HF_TESTS_SUPPORT_REDLOCK_H

#include "support/redis.h"

extern const struct lease_driver lease_redlock;

#define KEY "lock" /* the name of the lock in all requests */

struct trio {
    struct redis_server s[3];
    char url[256];
};
/* `query` is "" or begins with ?. */
void trio_start(struct trio *t, const char *query);
/* The servers have a vote at once: nobody has used them, so nobody can hold a lock there. */
void trio_start_vouched(struct trio *t, const char *query);
void trio_stop(struct trio *t);
void url_of(char ret[256], int a, int b, int c, const char *query);

/* Asks a server; the answer comes without its end of line. */
void ask(const struct redis_server *s, const char *command, char ret[256]);
bool has_lock(const struct redis_server *s);
/* Does the server have a vote, by its own note? */
bool has_vote(const struct redis_server *s);
void vouch(const struct redis_server *s);

/* Asks until the lock is granted, for at most ten seconds. */
struct lease_verdict acquire_soon(struct lease *l, const struct lease_request *q);
/* Acquires, renews and releases; the fence is larger than *last_fence. */
void use(struct lease *l, int64_t *last_fence);

#endif
