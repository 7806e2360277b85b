/* GET /v1/events/{id}/stream: seat changes as server-sent events, on a port and a thread of their
 * own.
 *
 *   stream_start ... stream_drain (ends every stream) ... engine_drain ... stream_stop ...
 *   engine_stop */
#ifndef HF_HTTP_STREAM_H
#define HF_HTTP_STREAM_H

#include "engine/engine.h"

struct streams;

struct stream_config {
    int listen_fd;      /* taken over; see listen.h */
    size_t streams_max; /* open at once; 0: two thirds of the files that may be open, up to 16384 */
    /* Web origins whose pages may read streams, ended by NULL, or "*"; NULL: none but: */
    const char *const *cors_origins;
    /* Pages of this port on the host that the stream is asked from, since a page that follows the
     * main port's 307 comes to another origin; 0: none. */
    unsigned page_port;
    struct engine *engine;
    struct metrics *metrics;
    const struct clock *clock;
};

/* Registers metrics: before other threads render them. */
HF_MUST_USE enum hf_status stream_start(const struct stream_config *config, struct streams **ret,
                                        struct hf_err *err);
/* Stop listening and end every stream, waiting at most `wait_ms` for their last bytes. */
void stream_drain(struct streams *s, int wait_ms);
/* After stream_drain and engine_drain (nothing is lent to the engine), before engine_stop, since
 * streams look at the view until this returns. */
void stream_stop(struct streams *s);

#endif
