/* What the two halves of the streams share: stream.c (the thread, its rounds, bytes out) and
 * stream_request.c (from a request to a stream or a refusal).  The streams' thread owns all of it.
 */
#ifndef HF_HTTP_STREAM_INTERNAL_H
#define HF_HTTP_STREAM_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
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
    struct stream *oldest, *newest; /* open streams by the time their reader last ran */
    size_t n_lookups;               /* not done yet */
    int64_t now_us, next_round_us, next_sweep_us;
    bool ended;

    struct gauge *open;
    struct counter *messages, *dropped;
};

struct stream {
    struct subscriber subscriber; /* first: the hub wakes a stream by it */
    struct streams *streams;
    struct MHD_Connection *connection;
    struct stream *older, *newer;
    struct stream_lookup *lookup; /* NULL: the topic was there, or has not been asked for yet */
    struct message *message;      /* being sent; NULL: none */
    size_t sent;                  /* bytes of the message, or of the head before the first */
    int64_t touched_us;           /* when its reader last ran */
    int64_t begun_us;             /* when the message was begun */
    int64_t after;                /* where to begin: a seq, AFTER_NOW or AFTER_UNKNOWN */
    char id[REQUEST_ID_LEN + 1];
    char head[64];
    size_t head_len;  /* 0: sent */
    bool packed;      /* the client accepts gzip */
    bool looking_up;  /* suspended until its lookup is done */
    bool suspended;   /* until there is a message */
    bool comment_due; /* it has been silent for long */
    bool gone;        /* to be cut off */
};

/* stream_request.c */
/* Answers, opens the stream, or begins to look its topic up, after which it is called again. */
enum MHD_Result stream_answer(struct stream *s, const char *path, const char *method);
/* The lookup is done, if there was one: nothing else resumes such a connection. */
void stream_lookup_ended(struct stream *s);

/* stream.c */
void stream_wake(struct streams *all); /* wakes the thread, from another */
void stream_join(struct stream *s, void *topic);
ssize_t stream_read(void *stream, uint64_t pos, char *out, size_t max); /* the content reader */

#endif
