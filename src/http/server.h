/* The HTTP server: its threads, each of which runs a loop (loop.h), its listening sockets, and how
 * all of that ends.
 *
 *   server_start ... server_leave: everything is still served, but proxies are told to go elsewhere
 *                ... server_drain: no new connections or requests, those begun are answered,
 *                    streams end
 *                ... the program stops whatever requests wait for
 *                ... server_stop
 *
 * HTTP threads block on sockets alone: a handler that needs another thread's work waits for a
 * pending (request_wait).  server_leave, server_drain and server_stop are for the program's main
 * thread.
 *
 * Memory: each connection costs at most CONN_IDLE_BYTES_MAX while it is idle, and there are no more
 * of them than open files allow.  What requests need beyond that comes out of budgets of all
 * threads together: BLOCKS_BYTES_MAX (block.h) for requests with their heads, BODIES_BYTES_MAX
 * (conn_body.c) for bodies, MESSAGES_BYTES_MAX (stream_hub.h) for streams.  Where a budget is
 * spent, requests of which only a part has come make room (admission.h), and if there are none,
 * clients are answered with 503.  Answers that clients do not take have a budget of their own;
 * where it is spent, the slowest clients are cut off (unsent.h). */
#ifndef HF_HTTP_SERVER_H
#define HF_HTTP_SERVER_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "http/access.h"
#include "http/app.h"
#include "http/cors.h"
#include "http/host.h"
#include "http/quota.h"
#include "http/tls.h"

struct server;

struct server_config {
    int listen_fd;      /* taken over; see listen.h */
    int stream_fd;      /* likewise, for streams alone; -1: they are served on listen_fd only */
    unsigned page_port; /* pages of this port may read the streams of stream_fd too */
    unsigned threads;
    size_t streams_max; /* open at once; 0: as many as the files that may be open allow */
    /* What one address may take; streams and paces count if there are keys, for callers without.  A
     * level of 0 stands for two thirds of what there may be. */
    struct quota_limits quotas;
    const struct http_app *app; /* borrowed for the server's life */
    struct metrics *metrics;
    const struct clock *clock;
    struct access *access;     /* borrowed for the server's life; NULL: everything is open */
    const struct cors *cors;   /* borrowed for the server's life; NULL: off */
    const struct hosts *hosts; /* its names, borrowed for the server's life; NULL: any */
    struct tls *tls;           /* borrowed for the server's life; NULL: connections have no TLS */
    bool refuses_cross_site;   /* pages of other sites may not write; see door.h */
    bool request_log;          /* log a line for each answer, at level info */
    size_t answer_bytes_max;   /* see unsent.h; 0: UNSENT_BYTES_MAX_DEFAULT */
};

HF_MUST_USE enum hf_status server_start(const struct server_config *config, struct server **ret,
                                        struct hf_err *err);
/* Announces that the server will drain soon: server_leaving() is true from now on, and every answer
 * ends its connection, so that proxies keep none that is about to break.  Everything is served as
 * before. */
void server_leave(struct server *s);
/* Stops listening, ends every stream, answers new requests with 503 and waits until those begun are
 * answered, at most `wait_ms`.  Returns false if some were not.  Connections that wait to be
 * accepted are accepted first; if the server has announced that it leaves, it also answers the
 * requests that their clients send within a moment. */
bool server_drain(struct server *s, int wait_ms);
/* Every pending that a request has handed over must be done by then.  Handlers may still run until
 * this returns, so what they look at must be freed later. */
void server_stop(struct server *s);

bool server_leaving(const struct server *s); /* also while it drains */
bool server_draining(const struct server *s);
/* Logs how many connections and streams there may be. */
void server_log_places(const struct server *s);
/* The application's context; see app.h. */
void *server_context(const struct server *s);
struct access *server_access(const struct server *s);
const struct cors *server_cors(const struct server *s);
/* Of the URLs of this server: "http" or "https". */
const char *server_scheme(const struct server *s);

#endif
