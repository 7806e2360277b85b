/* A connection to one Redis, for the lock driver and the gate: where the server is, how it is
 * reached, and exchanges with a deadline.  hiredis reads the protocol; the socket is ours, since
 * hiredis's calls bound each read but not the whole, raise SIGPIPE, and leave files open across
 * exec.
 *
 * Invariants: a link is in step (as many answers read as commands sent) or closed; a password is
 * never in a fault.  A link belongs to one thread at a time. */
#ifndef HF_REDIS_LINK_H
#define HF_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/vec.h"
#include "redis/lookup.h"

struct redis_address {
    char *host, *path;     /* one of them */
    char *user, *password; /* may be NULL */
    int port, db;
};
/* HF_BAD_REQUEST: the fault says what is wrong with the URL, without repeating it. */
enum hf_result redis_address_parse(const char *url, struct redis_address *ret,
                                   struct hf_fault *fault);
void redis_address_copy(const struct redis_address *from, struct redis_address *ret);
void redis_address_close(struct redis_address *a);

struct redis_link {
    const struct redis_address *address; /* borrowed */
    const struct clock *clock;
    int64_t timeout_ms;    /* for connecting and one exchange together */
    int64_t allowed_ms;    /* of that, the exchange under way */
    struct lookup *lookup; /* that took too long and may be under way still; NULL: none */
    int fd;                /* -1: closed */
    redisReader *reader;   /* while fd >= 0; points here */
#if HIREDIS_MAJOR < 1
    redisReplyObjectFunctions functions;
    void *(*make_array)(const redisReadTask *task, int n);
#endif
    struct buf out;   /* commands to be sent */
    size_t first_len; /* of the first of them: sent less than that, nothing was executed */
    size_t n_out;
    int64_t used_us;     /* when the last exchange began */
    int64_t deadline_us; /* of the next exchange; 0: timeout_ms from its beginning */
};
void redis_link_init(struct redis_link *k, const struct redis_address *address,
                     const struct clock *clock, int64_t timeout_ms);
void redis_link_close(struct redis_link *k); /* closes and frees; it may be used again */

struct redis_arg {
    const char *data;
    size_t len;
};
#define REDIS_ARG(literal)                                                                         \
    (struct redis_arg) { literal, sizeof(literal) - 1 }
/* One more command for the next exchange. */
void redis_put(struct redis_link *k, const struct redis_arg *args, size_t n);

/* Connects if need be, sends what was put, reads that many answers, all within timeout_ms and
 * `hurry_ms`, unless that is 0.  HF_DONE: `replies` are the caller's to free.  HF_UNREACHABLE:
 * nothing was executed.  HF_UNKNOWN: it may have been.  After either the link is closed. */
enum hf_result redis_exchange(struct redis_link *k, int64_t hurry_ms, redisReply **replies,
                              struct hf_fault *fault);
/* Sends what was put and reads nothing: for a link that is subscribed. */
enum hf_result redis_send(struct redis_link *k, struct hf_fault *fault);
/* The next answer or message.  *ret NULL with HF_DONE: none came within timeout_ms, and the link
 * stays open. */
enum hf_result redis_receive(struct redis_link *k, int64_t timeout_ms, redisReply **ret,
                             struct hf_fault *fault);

/* What an error answer means: HF_UNREACHABLE if the server refused to do it, else HF_FAILED. */
enum hf_result redis_refusal(const struct redis_link *k, const redisReply *reply,
                             struct hf_fault *fault);

#endif
