/* A connection: reads requests, has them carried out one at a time, and writes their answers in
 * order.  Runs on the thread of its loop.
 *
 *   HEAD --whole head--> BODY --whole body--> WAIT --answer--> SEND --sent--> HEAD ...
 *                                               `--> STREAM      `--> LINGER --> closed
 *
 * An idle connection is this struct and nothing else.  From the first byte of a request to the last
 * byte of its answer it has a block (block.h) and a struct request.  Bytes of a following request
 * that have come too early stay in the block or in the socket until the answer has been sent. */
#ifndef HF_HTTP_CONN_H
#define HF_HTTP_CONN_H

#include <sys/uio.h>

#include "http/address.h"
#include "http/loop.h"

#define CONN_IDLE_BYTES_MAX 512 /* what an idle connection may cost */

enum conn_state {
    CONN_HEAD,   /* between requests, or reading a head */
    CONN_BODY,   /* reading a body */
    CONN_WAIT,   /* a handler runs, or the request waits for its pending */
    CONN_SEND,   /* the answer is being sent */
    CONN_STREAM, /* see stream.h */
    CONN_LINGER  /* everything has been sent; the rest of what the client sends is discarded */
};

struct conn {
    struct timer timer; /* first: the loop finds a connection by it */
    struct loop *loop;
    struct conn *prev, *next; /* the loop's connections; `next` also among those that arrived */
    struct block *in;         /* NULL: nothing has been received */
    struct request *request;  /* NULL: none has begun */
    struct stream *stream;
    size_t sent;        /* of the answer */
    int fd;             /* -1: hung up while its request waits */
    uint32_t events;    /* that epoll reports */
    int unacknowledged; /* bytes, when the answer was last looked at */
    uint8_t state;
    bool blocked;      /* the client does not take its answer */
    bool ended;        /* the client will send no more */
    bool streams_only; /* came in where only streams are served */
    bool knows_peer;
    struct address peer;
};
_Static_assert(sizeof(struct conn) <= CONN_IDLE_BYTES_MAX, "an idle connection costs too much");

/* A new connection that no loop has yet; takes the socket over. */
struct conn *conn_new(int fd, const struct sockaddr *peer, bool streams_only);
/* Begins to serve it. */
void conn_start(struct conn *c, struct loop *l);
/* Frees it, whatever it is doing, unless its request waits: then it ends when that is done. */
void conn_close(struct conn *c);
/* Everything has been sent.  Ends the sending direction, and for a while discards what the client
 * still sends: closed at once, the socket could tell the client to forget the answer. */
void conn_finish(struct conn *c);
void conn_event(struct conn *c, uint32_t events);
void conn_resume(struct conn *c); /* its request's pending is done */
void conn_due(struct conn *c);    /* its deadline has passed */

/* The only places where bytes come in and go out, and where TLS will be.  As recv(2) and writev(2)
 * on a non-blocking socket. */
ssize_t conn_read(struct conn *c, void *data, size_t len);
ssize_t conn_write(struct conn *c, const struct iovec *parts, int n);

/* The request has been answered, or is answered by a stream from now on: gives back what it used.
 */
void conn_request_over(struct conn *c);
/* The events that epoll reports from now on. */
void conn_watch(struct conn *c, uint32_t events);
void conn_set_deadline(struct conn *c, int64_t after_us);

/* On any thread: brings the request back to its loop. */
void conn_request_done(struct request *r);

#endif
