/* What streams tell of: the interface between the streams' transport (stream.h) and the
 * application, which implements it.  A topic is something whose state changes, and each change has
 * a number, its seq, which only grows.  A stream sends the changes of one topic as server-sent
 * events; the id of each event is a seq, so that a client can resume.
 *
 * The streams' thread calls all of these functions and waits for none of them.  A topic stays where
 * it is once it has been found. */
#ifndef HF_HTTP_STREAM_SOURCE_H
#define HF_HTTP_STREAM_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/pending.h"
#include "http/problem.h"

/* A topic being looked up by another thread.  It is the first member of the source's own struct. */
struct stream_lookup {
    struct pending pending; /* armed by the transport, done by the source */
};

enum stream_news {
    STREAM_NOTHING, /* nothing changed that a client can see */
    STREAM_MESSAGE, /* the server-sent event that tells of the changes */
    STREAM_RESET    /* the changes are not known any more, or are too large to send */
};

struct stream_source {
    void *context; /* the first argument of those functions that have one */

    /* Returns NULL if the path may name a topic, &problem_not_found if it is no stream's path, or
     * another problem if no topic can have this name. */
    const struct problem *(*check)(const char *path);

    /* The topic that a path names.  If it is NULL, then either *ret_problem says why, or it is NULL
     * too: then *lookup has been set, and the transport arms its pending and calls `look_up`.  When
     * that is done, `find` is called once more with the same *lookup. */
    void *(*find)(void *context, const char *path, struct stream_lookup **lookup,
                  const struct problem **ret_problem);
    /* Begins the lookup.  pending_done is called when it has ended or cannot begin, on any thread.
     */
    void (*look_up)(void *context, struct stream_lookup *lookup);
    void (*lookup_free)(struct stream_lookup *lookup);

    /* The seq of the topic's last change. */
    int64_t (*seq)(const void *topic);
    /* Appends what changed after a seq, as one server-sent event of at most `len_max` bytes.  In
     * any case *ret_seq is the seq up to which the changes are told. */
    enum stream_news (*encode)(void *context, void *topic, int64_t after, size_t len_max,
                               struct buf *out, int64_t *ret_seq);
};

/* Appends the beginning of a server-sent event, up to `{"seq":N` in its data. */
void stream_put_head(struct buf *out, int64_t seq, const char *event);

#endif
