/* What the two halves of the streams share: stream.c (the thread, its rounds, bytes out) and
 * stream_request.c (from a request to a stream or a refusal).  All of it is the streams' thread's.
 */
#ifndef HF_HTTP_STREAM_INTERNAL_H
#define HF_HTTP_STREAM_INTERNAL_H

#include <microhttpd.h>
#include <stdatomic.h>

#include "http/request.h"
#include "http/stream.h"
#include "http/stream_hub.h"

struct streams {
    struct stream_config config;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    int epoll_fd, wake_fd;
    atomic_bool draining, stopping;
    atomic_size_t n_open;

    /* the thread's own */
    struct hub hub;
    struct stream *oldest, *newest; /* joined streams by the time their reader last ran */
    size_t n_lent;                  /* commands in the engine's hands */
    int64_t now_us, next_round_us, next_sweep_us;
    bool ended;

    struct gauge *open;
    struct counter *messages, *dropped;
};

struct stream {
    struct follower follower; /* first: a follower is a stream */
    struct streams *streams;
    struct MHD_Connection *connection;
    struct stream *older, *newer;
    struct lent *lent; /* while, and after, its event is looked up */
    struct message *message;
    size_t sent; /* of the message, or of the head before the first */
    int64_t touched_us, begun_us;
    int64_t after; /* a seq, AFTER_NOW or AFTER_UNKNOWN */
    struct id event_id;
    char id[REQUEST_ID_LEN + 1];
    char head[64];
    size_t head_len; /* 0: sent */
    bool packed;     /* the reader wants gzip */
    bool looking, suspended, comment_due, gone;
};

/* stream_request.c */
/* Answer, open the stream, or begin to look its event up, after which it is called again. */
enum MHD_Result stream_answer(struct stream *s, const char *path, const char *method);
/* The engine has given the command back, if it had one: nothing else resumes such a connection. */
void stream_look_over(struct stream *s);

/* stream.c */
void stream_wake(struct streams *all); /* the thread, from another */
void stream_join(struct stream *s, struct event *e);
ssize_t stream_read(void *stream, uint64_t pos, char *out, size_t max); /* the content reader */

#endif
