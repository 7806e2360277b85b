/* Turns lease requests into calls of the scripts in scripts.h, for redis.c: n requests are n
 * commands in one exchange.  Runs on the handle's thread. */
#ifndef HF_LEASE_REDIS_REQUEST_H
#define HF_LEASE_REDIS_REQUEST_H

#include "lease/lease.h"
#include "redis/call.h"

#define REDIS_KEY_HEAD "holdfast:{"
#define REDIS_KEY_TAIL "}:lock"
#define REDIS_KEY_SIZE (sizeof REDIS_KEY_HEAD + LEASE_NAME_MAX + sizeof REDIS_KEY_TAIL)
/* Writes the name's key with a NUL; returns its length. */
size_t redis_key(char ret[REDIS_KEY_SIZE], const char *name, size_t len);

enum redis_script {
    SCRIPT_ACQUIRE,
    SCRIPT_RENEW,
    SCRIPT_RELEASE,
    SCRIPT_HEARTBEAT,
    SCRIPT_BREAK,
    SCRIPT_INSPECT,
    N_SCRIPTS
};
extern const struct redis_arg redis_scripts[N_SCRIPTS];

/* Runs `script` for each request, as redis_run does.  After HF_DONE c->replies has an array of at
 * least `least` elements for each request; acquire and release may answer a single value instead.
 */
enum hf_result redis_call(struct redis_caller *c, enum redis_script script,
                          const struct lease_request *requests, size_t n, size_t least,
                          struct hf_fault *fault);

#endif
