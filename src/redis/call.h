/* Runs scripts by their digest, n EVALSHA commands in one exchange, for the lease drivers and the
 * gate.  A server that does not know a script (it was restarted, SCRIPT FLUSH) has not run it:
 * those commands are sent again with the script's text.  Runs on the thread that owns the link. */
#ifndef HF_REDIS_CALL_H
#define HF_REDIS_CALL_H

#include "redis/link.h"

#define REDIS_SCRIPTS_MAX 8
#define REDIS_SHA_LEN 40

struct redis_caller {
    struct redis_link link;
    int64_t limit_ms;          /* of the next run, as for redis_exchange; 0: none */
    VEC(redisReply *) replies; /* of one run; the vector only grows */
    const struct redis_arg *scripts;
    char shas[REDIS_SCRIPTS_MAX][REDIS_SHA_LEN + 1];
    unsigned send_text; /* one bit per script: its next command carries the text */
};
/* The user initialises `link`; the texts must outlive the caller. */
void redis_caller_init(struct redis_caller *c, const struct redis_arg *scripts, size_t n);
void redis_caller_close(struct redis_caller *c);

/* Fills the first two arguments of a command that runs scripts[script]. */
#define REDIS_HEAD_ARGS 2
void redis_head(struct redis_caller *c, unsigned script, struct redis_arg ret[REDIS_HEAD_ARGS]);

struct redis_batch {
    size_t n;
    const void *ctx;
    /* Calls redis_put for command i, which begins with redis_head.  Called again if the command
     * has to be sent again. */
    void (*put)(struct redis_caller *c, const void *ctx, size_t i);
    /* Has the answer the form that the script returns?  Not called for errors. */
    bool (*fits)(const void *ctx, const redisReply *reply);
};
/* HF_DONE: c->replies has a fitting answer for each command, until redis_call_done.  If the server
 * refused all commands: HF_UNREACHABLE or HF_FAILED; if it refused some: HF_UNKNOWN.  Takes no
 * longer than one exchange may. */
HF_MUST_USE enum hf_result redis_run(struct redis_caller *c, const struct redis_batch *batch,
                                     struct hf_fault *fault);
/* Puts and sends the commands of a batch without reading the answers, which the user receives. */
HF_MUST_USE enum hf_result redis_start(struct redis_caller *c, const struct redis_batch *batch,
                                       struct hf_fault *fault);
/* Did the server not run the script because it does not know it? */
bool redis_is_unknown_script(const redisReply *reply);
/* Frees the first n replies. */
void redis_call_done(struct redis_caller *c, size_t n);
/* The i-th element of an array, 0 if it is no integer. */
int64_t redis_integer(const redisReply *array, size_t i);

#endif
