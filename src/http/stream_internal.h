/* A stream, for its parts: stream_answer.c has the answer that it begins with, stream.c what it is
 * and what it has to send, and streams.c when the streams of a loop send, and when they end. */
#ifndef HF_HTTP_STREAM_INTERNAL_H
#define HF_HTTP_STREAM_INTERNAL_H

#include <sys/uio.h>

#include "http/address.h"
#include "http/stream.h"
#include "http/stream_hub.h"

#define STREAM_FRAME_SIZE 24 /* of the line before a chunk */

struct stream {
    struct subscriber subscriber; /* first: the hub wakes a stream by it */
    struct conn *conn;
    struct stream *next, **link; /* of those that have something to send; what points to this */
    struct stream *newer,
        **older;             /* of those that are slow; what points to this, NULL: it is not */
    struct address client;   /* whose streams are counted, if is_counted */
    struct buf text;         /* being sent: the head, a comment or the end; empty: none */
    struct message *message; /* being sent after that; NULL: none */
    size_t sent;             /* of the text or of the message with its frame */
    int64_t begun_us;        /* when the message was begun */
    bool packed;             /* the client accepts gzip */
    bool chunked;            /* the client is one of HTTP/1.1 */
    bool queued;             /* in the loop's list */
    bool blocked;            /* the socket takes no more for now */
    bool ending;             /* after what is being sent */
    bool is_counted;
    bool over; /* the text is the end, or the end has been sent */
};

/* ---- stream_answer.c ---- */

/* Finds the address with which a stream is counted.  Returns false if it is not: there are no keys,
 * or the client has one, or is a proxy. */
bool stream_counts_with(const struct request *r, struct address *ret);

/* ---- stream.c ---- */

/* The connection's stream, which takes what it needs out of the request. */
struct stream *stream_new(struct conn *c);
/* Puts it at the end of those that have something to send, unless its socket is full. */
void stream_queue(struct subscriber *subscriber);
void stream_unqueue(struct stream *s);
/* Its socket is full; it is among the slow ones until what it is sending has been sent. */
void stream_enter_slow(struct stream *s);
void stream_put_comment(struct stream *s);
/* Makes sure that there is something to send.  Returns false if there is nothing; *ret_behind says
 * that the message it needs is gone. */
bool stream_take_next(struct stream *s, bool *ret_behind);
/* What is left of the text or the message with its frame.  Returns how many bytes that are. */
size_t stream_unsent(const struct stream *s, char frame[STREAM_FRAME_SIZE], struct iovec parts[3],
                     int *ret_n);
/* The text or the message has been sent. */
void stream_sent_whole(struct stream *s);

#endif
