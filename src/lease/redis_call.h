/* Running the scripts of redis_scripts.h, for redis.c: requests become EVALSHA commands, n of them
 * in one exchange.  A script the server does not know (restarted, SCRIPT FLUSH) was not run: those
 * are sent again whole.  Belongs to the handle's thread. */
#ifndef HF_LEASE_REDIS_CALL_H
#define HF_LEASE_REDIS_CALL_H

#include "lease/redis_link.h"

#define REDIS_KEY_HEAD "holdfast:{"
#define REDIS_KEY_TAIL "}:lock"
#define REDIS_KEY_SIZE (sizeof REDIS_KEY_HEAD + LEASE_NAME_MAX + sizeof REDIS_KEY_TAIL)
/* The name's key, its length. */
size_t redis_key(char ret[REDIS_KEY_SIZE], const char *name, size_t len);

enum redis_script {
    SCRIPT_ACQUIRE,
    SCRIPT_RENEW,
    SCRIPT_RELEASE,
    SCRIPT_TOUCH,
    SCRIPT_BREAK,
    SCRIPT_INSPECT,
    N_SCRIPTS
};
#define REDIS_SHA_LEN 40

struct redis_caller {
    struct redis_link link;
    int64_t hurry_ms;          /* struct lease's */
    VEC(redisReply *) replies; /* of one call; the vector only grows */
    char shas[N_SCRIPTS][REDIS_SHA_LEN + 1];
};
/* `link` is the user's to initialise. */
void redis_caller_init(struct redis_caller *c);
void redis_caller_close(struct redis_caller *c);

/* Run `script` for each request.  HF_DONE: c->replies has an array of at least `least` elements for
 * each (or one value, of acquire and release), until redis_call_done.  Refused by the server, all
 * of them: HF_UNREACHABLE or HF_FAILED; some of them: HF_UNKNOWN. */
enum hf_result redis_call(struct redis_caller *c, enum redis_script script,
                          const struct lease_request *requests, size_t n, size_t least,
                          struct hf_fault *fault);
void redis_call_done(struct redis_caller *c, size_t n);
/* 0 if it is none. */
int64_t redis_integer(const redisReply *array, size_t i);

#endif
