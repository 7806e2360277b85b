/* A connection's parts for one another.  conn.c has the way of a request, conn_body.c what is kept
 * of its body, and conn_tls.c the handshake before the first one.  conn_life.c, how a connection
 * begins and ends, and conn_io.c, its bytes, are also for the files that conn.c stands on. */
#ifndef HF_HTTP_CONN_INTERNAL_H
#define HF_HTTP_CONN_INTERNAL_H

#include "http/conn.h"
#include "http/problem.h"

#define SECOND_US INT64_C(1000000)
#define IDLE_US (30 * SECOND_US) /* between requests */

/* ---- conn_io.c ---- */

/* The last call failed only because the socket was not ready, or a signal came. */
bool conn_must_wait(void);
/* The time that the connection has for something that usually has `us`. */
int64_t conn_time_of(const struct conn *c, int64_t us);
/* Takes it off the loop's list of those that TLS has bytes for, if it is there. */
void conn_unlink_unread(struct conn *c);

/* ---- conn_life.c ---- */

void conn_give_block(struct conn *c);
void conn_release_request(struct conn *c); /* does nothing if there is none */
/* Closes it so that the client sees an error and not an end. */
void conn_reset(struct conn *c);

/* ---- conn.c, conn_body.c, conn_tls.c ---- */

/* Answers a request of which it is not known, or does not matter any more, where it ends.  Returns
 * true: the connection goes on with the answer. */
bool conn_refuse(struct conn *c, const struct problem *problem, const char *detail);
/* The step that refuses the body for the length that the head says; NULL: it may come. */
step_fn conn_body_refusal(const struct request *r);
/* Keeps a part of the body, or discards it if the request is or has to be refused.  Returns false
 * if the client goes on sending for too long after that. */
bool conn_keep_part(struct request *r, struct text part);
/* Goes on with the handshake.  Returns false if there is nothing more to be done for the connection
 * in this turn; it may have been freed by then. */
bool conn_shake_hands(struct conn *c);

#endif
