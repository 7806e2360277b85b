/* Running scripts by their digest on one link, for the lock driver (redis_request.h) and the gate:
 * n EVALSHA commands in one exchange.  A script the server does not know (restarted, SCRIPT FLUSH)
 * was not run: those commands are sent again, with the text.  Belongs to the handle's thread. */
#ifndef HF_REDIS_CALL_H
#define HF_REDIS_CALL_H

#include "redis/link.h"

#define REDIS_SCRIPTS_MAX 8
#define REDIS_SHA_LEN 40

struct redis_caller {
    struct redis_link link;
    int64_t hurry_ms;          /* struct lease's */
    VEC(redisReply *) replies; /* of one call; the vector only grows */
    const struct redis_arg *scripts;
    char shas[REDIS_SCRIPTS_MAX][REDIS_SHA_LEN + 1];
    unsigned teach; /* a bit a script: the next command of it carries the text */
};
/* `link` is the user's to initialise; the texts must outlive the caller. */
void redis_caller_init(struct redis_caller *c, const struct redis_arg *scripts, size_t n);
void redis_caller_close(struct redis_caller *c);

/* The first two arguments of a command that runs scripts[script]. */
#define REDIS_HEAD_ARGS 2
void redis_head(struct redis_caller *c, unsigned script, struct redis_arg ret[REDIS_HEAD_ARGS]);

struct redis_batch {
    size_t n;
    const void *ctx;
    /* redis_put command i, which begins with redis_head.  Called once more if it has to be sent
     * again. */
    void (*put)(struct redis_caller *c, const void *ctx, size_t i);
    /* Is that what the script answers?  Errors never are. */
    bool (*fits)(const void *ctx, const redisReply *reply);
};
/* HF_DONE: c->replies has an answer that fits for each command, until redis_call_done.  Refused by
 * the server, all of them: HF_UNREACHABLE or HF_FAILED; some of them: HF_UNKNOWN.  Takes no longer
 * than one exchange may. */
enum hf_result redis_run(struct redis_caller *c, const struct redis_batch *batch,
                         struct hf_fault *fault);
void redis_call_done(struct redis_caller *c, size_t n);
/* 0 if it is none. */
int64_t redis_integer(const redisReply *array, size_t i);

#endif
