/* A connection to one Redis server, and exchanges with a deadline, for the lease drivers and the
 * gate.  hiredis parses the protocol.  The socket is ours, because hiredis limits each read but not
 * a whole exchange, raises SIGPIPE and leaves files open across exec.  A link whose address has
 * sentinels asks them for the primary each time it connects.
 *
 * Invariants: after an exchange a link has read as many answers as it has sent commands, or it is
 * closed; whoever uses redis_send reads the answers before the next exchange.  A password never
 * appears in a fault.  A link belongs to one thread at a time. */
#ifndef HF_REDIS_LINK_H
#define HF_REDIS_LINK_H

#include <hiredis/hiredis.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/vec.h"
#include "redis/address.h"
#include "redis/lookup.h"
#include "redis/tls.h"

struct redis_link {
    const struct redis_address *address; /* borrowed */
    const struct clock *clock;
    int64_t timeout_ms;      /* of one exchange, connecting included */
    int64_t allowed_ms;      /* the limit of the exchange under way */
    struct lookup *lookup;   /* one that took too long and may be under way still; NULL: none */
    int fd;                  /* -1: closed */
    struct redis_tls *tls;   /* NULL: the connection is plain, or closed */
    redisReader *reader;     /* while fd >= 0 */
    struct redis_node found; /* where the sentinels said that the primary is; host NULL: nothing */
    size_t sentinel;         /* the one that is asked first */
#if HIREDIS_MAJOR < 1
    redisReplyObjectFunctions functions;
    void *(*make_array)(const redisReadTask *task, int n);
#endif
    struct buf out;   /* commands to be sent */
    size_t first_len; /* length of the first command; if less was sent, the server did nothing */
    size_t n_out;
    int64_t used_us;     /* when the last exchange, or redis_drop_stale, began */
    int64_t deadline_us; /* of the next exchange; 0: timeout_ms after its beginning */
    unsigned dials;      /* how often it was connected */
};
void redis_link_init(struct redis_link *k, const struct redis_address *address,
                     const struct clock *clock, int64_t timeout_ms);
/* Closes the connection and frees everything; the link may be used again. */
void redis_link_close(struct redis_link *k);

struct redis_arg {
    const char *data;
    size_t len;
};
#define REDIS_ARG(literal)                                                                         \
    (struct redis_arg) { literal, sizeof(literal) - 1 }
/* Adds a command to the next exchange. */
void redis_put(struct redis_link *k, const struct redis_arg *args, size_t n);

/* Connects if necessary, sends the commands that were put and reads as many answers, all within
 * timeout_ms and, if it is not 0, `limit_ms`.  HF_DONE: the caller frees the `replies`.
 * HF_UNREACHABLE: the server executed nothing.  HF_UNKNOWN: it may have executed some or all.
 * After a failure the link is closed. */
HF_MUST_USE enum hf_result redis_exchange(struct redis_link *k, int64_t limit_ms,
                                          redisReply **replies, struct hf_fault *fault);
/* Closes a connection that was not used for a while and that the server has left, as every exchange
 * does first: for a link from which no answer is expected. */
void redis_drop_stale(struct redis_link *k);
/* Connects if necessary and sends the commands that were put, without reading: for a link that is
 * subscribed to a channel, and for answers that are read later. */
HF_MUST_USE enum hf_result redis_send(struct redis_link *k, struct hf_fault *fault);
/* Reads the next answer or message.  *ret is NULL with HF_DONE if none came within timeout_ms or
 * before `wake_fd` (-1: none) was readable; the link stays open. */
HF_MUST_USE enum hf_result redis_receive(struct redis_link *k, int64_t timeout_ms, int wake_fd,
                                         redisReply **ret, struct hf_fault *fault);

/* Reads the next answer without asking first whether it is there, which saves a system call.  Waits
 * no longer than the timeout_ms that the link was connected with, then as redis_receive. */
HF_MUST_USE enum hf_result redis_await(struct redis_link *k, redisReply **ret,
                                       struct hf_fault *fault);

/* Fills the fault from an error answer: HF_UNREACHABLE if the server refused to do it, otherwise
 * HF_FAILED.  If the refusal means that another server may be the right one now, or the same one in
 * another state (READONLY, MASTERDOWN, LOADING ...), the link is closed, so that the next exchange
 * looks up and dials the address again. */
enum hf_result redis_refusal(struct redis_link *k, const redisReply *reply, struct hf_fault *fault);
/* Reads the answer to TIME, in microseconds; 0: it is no time. */
int64_t redis_time_us(const redisReply *reply);

#endif
