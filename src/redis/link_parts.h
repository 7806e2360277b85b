/* What the files of the link share: link.c exchanges, link_sentinels.c and connect.c connect,
 * answer.c makes faults, socket.c sends and receives.  Nobody else includes this header. */
#ifndef HF_REDIS_LINK_PARTS_H
#define HF_REDIS_LINK_PARTS_H

#include "redis/link.h"

/* ---- answer.c ---- */

/* The host and port that the link leads to: those of the address, or what the sentinels said. */
const char *link_host(const struct redis_link *k);
int link_port(const struct redis_link *k);
enum hf_result link_fail(const struct redis_link *k, enum hf_result result, const char *why,
                         struct hf_fault *fault);
/* For an errno; ETIMEDOUT and EAGAIN read as "no answer within ...". */
enum hf_result link_fail_errno(const struct redis_link *k, enum hf_result result, int error,
                               struct hf_fault *fault);

/* ---- link_sentinels.c ---- */

/* Connects, greets, and leaves the link closed on failure. */
enum hf_result link_connect(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault);

/* ---- connect.c ---- */

/* The same with the server at link_host(), without asking sentinels for it. */
enum hf_result link_connect_host(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault);

/* ---- socket.c ---- */

int64_t link_ms_left(const struct redis_link *k, int64_t deadline_us);
/* Returns 0 if nothing happened within `ms`, as poll does. */
int link_wait_for(int fd, short events, int64_t ms);
void link_encode(struct buf *out, const struct redis_arg *args, size_t n);
/* Returns how much of `out` was sent, with errno if that is not all. */
size_t link_send(struct redis_link *k, const struct buf *out, int64_t deadline_us);
/* Returns the next answer, or NULL with errno.  `at_once`: the exchange has just begun, so the
 * socket's own limit of timeout_ms applies and poll is not needed. */
redisReply *link_next_reply(struct redis_link *k, int64_t deadline_us, bool at_once);
/* Has the server closed the connection, or sent something that was not asked for? */
bool link_is_stale(const struct redis_link *k);
void link_hang_up(struct redis_link *k);

#endif
