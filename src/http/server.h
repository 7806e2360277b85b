/* The HTTP server: libmicrohttpd's daemon, its connections, and its end.
 *
 *   server_start ... server_drain (no new requests, wait for those begun) ... engine_stop ...
 *   server_stop
 *
 * Its threads never wait for anything but sockets. */
#ifndef HF_HTTP_SERVER_H
#define HF_HTTP_SERVER_H

#include <stdarg.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "http/access.h"
#include "http/cors.h"

struct server;

struct server_config {
    int listen_fd; /* taken over; see listen.h */
    unsigned threads;
    struct engine *engine;
    struct metrics *metrics;
    const struct clock *clock;
    const char *stream_address;  /* where streams are served, ADDR:PORT; outlives the server */
    const struct access *access; /* borrowed for the server's life; NULL: open */
    const struct cors *cors;     /* likewise; NULL: off */
    bool request_log;            /* a line for each answer, at level info */
};

HF_MUST_USE enum hf_status server_start(const struct server_config *config, struct server **ret,
                                        struct hf_err *err);
/* Stop listening; answer new requests with 503; wait until those begun are answered, at most
 * `wait_ms`.  False: some were not. */
bool server_drain(struct server *s, int wait_ms);
/* After engine_drain (nothing is lent to the engine any more) and before engine_stop, since late
 * requests may look at the view until this returns. */
void server_stop(struct server *s);

bool server_draining(const struct server *s);
struct metrics *server_metrics(const struct server *s);
const char *server_stream_address(const struct server *s);

struct MHD_Connection;
/* MHD_OPTION_EXTERNAL_LOGGER and MHD_OPTION_UNESCAPE_CALLBACK of both daemons. */
__attribute__((format(printf, 2, 0))) void http_log(void *ctx, const char *fmt, va_list args);
size_t http_unescape(void *ctx, struct MHD_Connection *connection, char *text);
const struct access *server_access(const struct server *s);
const struct cors *server_cors(const struct server *s);

/* engine_config.done for commands that are parts of requests: any thread. */
void server_done(struct command *command);

#endif
