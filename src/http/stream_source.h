/* What streams tell of: the interface between the streams' transport (stream.h) and the
 * application, which implements it, once for each kind of topic.  A topic is something whose state
 * changes, and each change has a number, its seq, which only grows.  A stream sends the changes of
 * one topic as server-sent events; the id of each event is a seq, so that a client can resume.
 *
 * Every thread of the server calls these functions and waits for none of them.  A topic stays where
 * it is once a handler has answered with it (answer_stream), for ever, or until `unref` is called.
 */
#ifndef HF_HTTP_STREAM_SOURCE_H
#define HF_HTTP_STREAM_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum stream_news {
    STREAM_NOTHING, /* nothing changed that a client can see */
    STREAM_MESSAGE, /* the server-sent event that tells of the changes */
    STREAM_RESET    /* the changes are not known any more, or are too large to send */
};

struct stream_source {
    /* The seq of the topic's last change. */
    int64_t (*seq)(const void *topic);
    /* Appends what changed after a seq, as server-sent events of at most `len_max` bytes together,
     * of which only the last has an id.  In any case *ret_seq is the seq up to which the changes
     * are told. */
    enum stream_news (*encode)(void *topic, int64_t after, size_t len_max, struct buf *out,
                               int64_t *ret_seq);
    /* Returns true if no change will follow those that `encode` tells of when it is called after
     * this.  The server then tells of them and closes the topic's streams.  NULL: topics do not
     * end. */
    bool (*has_ended)(const void *topic);
    /* Gives back what the handler handed over with answer_stream: one reference for each call, at
     * any time from then on.  NULL: topics stay. */
    void (*unref)(void *topic);
};

/* Appends the beginning of a server-sent event, up to `{"seq":N` in its data. */
void stream_put_head(struct buf *out, int64_t seq, const char *event);

#endif
