/* Server-sent events: clients follow the topics of a source (stream_source.h) on a port and a
 * thread of their own, since libmicrohttpd scans every suspended connection whenever one is
 * resumed.
 *
 *   stream_start ... stream_drain (ends every stream)
 *                ... the program stops whatever lookups wait for
 *                ... stream_stop */
#ifndef HF_HTTP_STREAM_H
#define HF_HTTP_STREAM_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "http/stream_source.h"

struct streams;

struct stream_config {
    int listen_fd;      /* taken over; see listen.h */
    size_t streams_max; /* open at once; 0: two thirds of the files that may be open, up to 16384 */
    const char *const *cors_origins; /* origins whose pages may read streams, ended by NULL, or "*";
                                        NULL: those of page_port alone */
    unsigned page_port; /* pages of this port on the same host may read streams too: a page that
                           follows the main port's 307 comes to another origin.  0: none */
    const struct stream_source *source;
    struct metrics *metrics;
    const struct clock *clock;
};

/* Registers metrics, so it must be called before other threads render them. */
HF_MUST_USE enum hf_status stream_start(const struct stream_config *config, struct streams **ret,
                                        struct hf_err *err);
/* Stops listening and ends every stream, waiting at most `wait_ms` for their last bytes. */
void stream_drain(struct streams *s, int wait_ms);
/* Every lookup that has begun must end, or this waits for it.  Streams use the source until this
 * returns. */
void stream_stop(struct streams *s);

#endif
