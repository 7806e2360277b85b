/* A connection: reads requests, has them carried out one at a time, and writes their answers in
 * order.  Runs on the thread of its loop.
 *
 *   HEAD --whole head--> BODY --whole body--> WAIT --answered--> ANSWER --> SEND --sent--> HEAD ...
 *                                                                 |          |--> LINGER --> closed
 *                                                                 |          `--not taken--> CUT
 *                                                                 `--> STREAM --> LINGER
 *
 * With TLS (tls.h) a connection begins with HANDSHAKE, which has a deadline as a whole.  A client
 * that begins with an HTTP request instead is told so, without TLS.
 *
 * An idle connection is this struct and nothing else; with TLS there is also OpenSSL's, see
 * docs/secure.md for its size.  From the first byte of a request to the last byte of its answer it
 * has a block (block.h) and a struct request.  Bytes of a following request that have come too
 * early stay in the block or in the socket until the answer has been sent.  While a request waits
 * or is answered, nothing is read, but the end of the client's direction is watched, which is
 * reported whatever is unread before it.  A client that has ended its direction may be gone: it has
 * 4 s to be answered, and 2 s more whenever it takes some of its answers.
 *
 * Deadlines are absolute: bytes that trickle in do not move them.  Only content of a body earns it
 * time, at a pace that BODY_BYTES_A_SECOND sets. */
#ifndef HF_HTTP_CONN_H
#define HF_HTTP_CONN_H

#include <sys/uio.h>

#include "http/address.h"
#include "http/loop.h"
#include "http/place.h"

#define CONN_IDLE_BYTES_MAX 512 /* what an idle connection may cost */

enum conn_state {
    CONN_HANDSHAKE, /* of TLS */
    CONN_HEAD,      /* between requests, or reading a head */
    CONN_BODY,      /* reading a body */
    CONN_WAIT,      /* a handler runs, or the request waits for its pending */
    CONN_ANSWER,    /* the request has been answered */
    CONN_SEND,      /* the answer is being sent */
    CONN_STREAM,    /* see stream.h */
    CONN_LINGER,    /* everything has been sent; the rest of what the client sends is discarded */
    CONN_CUT        /* cut off; freed as soon as no event of this turn can be about it */
};

struct conn {
    struct timer timer; /* first: the loop finds a connection by it */
    struct loop *loop;
    struct conn *prev, *next; /* the loop's connections; `next` also among those that arrived */
    struct block *in;         /* NULL: nothing has been received */
    struct request *request;  /* NULL: none has begun */
    struct stream *stream;
    struct tls_session *tls; /* NULL: bytes go to the socket as they are */
    struct handshake handshake;
    /* The loop's connections that TLS has bytes for; NULL: not among them. */
    struct conn *unread_next, **unread_link;
    size_t sent;     /* of the answer */
    int fd;          /* -1: hung up while its request waits, or cut off */
    uint32_t events; /* that epoll reports */
    uint8_t state;
    bool blocked;      /* the client does not take its answer, see unsent.h */
    bool ended;        /* the client will send no more, and everything has been read */
    bool left;         /* the client will send no more; noted while nothing is read */
    bool late;         /* its deadline has passed, but there was something to read */
    bool has_asked;    /* a whole request has arrived */
    bool streams_only; /* came in where only streams are served */
    bool knows_peer;
    struct address peer;
    struct place place;
};
_Static_assert(sizeof(struct conn) <= CONN_IDLE_BYTES_MAX, "an idle connection costs too much");

/* A new connection that no loop has yet; takes the socket over. */
struct conn *conn_new(int fd, const struct sockaddr *peer, bool streams_only);
/* Begins to serve it; it has a place. */
void conn_start(struct conn *c, struct loop *l);
/* Frees it, whatever it is doing, unless its request waits: then it ends when that is done. */
void conn_close(struct conn *c);
/* Resets a connection that reads a request or sends its answer, and gives back all that this has,
 * at once.  The struct itself stays until its timer comes up, so this may be done to any connection
 * while the loop takes the events of another. */
void conn_cut(struct conn *c);
/* Everything has been sent.  Ends the sending direction, and for a while discards what the client
 * still sends: closed at once, the socket could tell the client to forget the answer. */
void conn_finish(struct conn *c);
void conn_event(struct conn *c, uint32_t events);
void conn_resume(struct conn *c); /* its request's pending is done */
void conn_due(struct conn *c);    /* its deadline has passed */

/* Goes on with what TLS has received and epoll does not know of. */
void conn_take_unread(struct conn *c);

/* What is read of the client and what is sent to it goes through these, with TLS or without.  As
 * recv(2) and writev(2) on a non-blocking socket.  After EAGAIN the next conn_write has to begin
 * with the same bytes; more may follow them (tls_write). */
ssize_t conn_read(struct conn *c, void *data, size_t len);
ssize_t conn_write(struct conn *c, const struct iovec *parts, int n);

/* The request has been answered, or is answered by a stream from now on: gives back what it used.
 */
void conn_request_over(struct conn *c);
/* The events that epoll reports from now on. */
void conn_watch(struct conn *c, uint32_t events);
void conn_set_deadline(struct conn *c, int64_t after_us);
/* Has the client sent something that has not been read? */
bool conn_has_unread(const struct conn *c);

#endif
