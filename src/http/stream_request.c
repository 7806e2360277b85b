/* From a request on the streams' port to a stream or a refusal.  On the streams' thread, but for
 * looked_up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gzip.h"
#include "http/cors.h"
#include "http/stream_internal.h"

#define BLOCK_SIZE 512 /* for HTTP/1.0; chunks have the connection's memory */

/* ---- looking a topic up ---- */

/* On whichever thread looked it up.  libmicrohttpd does not wake a loop that is not its own. */
static void looked_up(struct pending *pending)
{
    struct stream *s = pending->waiter;
    struct streams *all = s->streams; /* once resumed, the streams' thread may free `s` */
    MHD_resume_connection(s->connection);
    stream_wake(all);
}

static void look_up(struct stream *s)
{
    const struct stream_source *source = s->streams->config.source;
    s->looking_up = true;
    s->streams->n_lookups++;
    MHD_suspend_connection(s->connection);
    s->lookup->pending = (struct pending){.done = looked_up, .waiter = s};
    source->look_up(source->context, s->lookup);
}

void stream_lookup_ended(struct stream *s)
{
    s->streams->n_lookups -= s->looking_up;
    s->looking_up = false;
}

/* ---- answers ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* The length of the name in a Host header, without the port. */
static size_t host_len(const char *host)
{
    const char *end = *host == '[' ? strchr(host, ']') : NULL;
    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

/* Is the origin http://NAME:PORT, where NAME is the server's name in this request and PORT is
 * page_port? */
static bool is_own_page(const struct stream *s, const char *origin)
{
    const char *host = header(s->connection, MHD_HTTP_HEADER_HOST);
    char port[16];
    if (!host || !s->streams->config.page_port || strncmp(origin, "http://", 7) != 0)
        return false;
    origin += 7;
    size_t len = host_len(host);
    (void)snprintf(port, sizeof port, ":%u", s->streams->config.page_port);
    return len > 0 && strncasecmp(origin, host, len) == 0 &&
           (strcmp(origin + len, port) == 0 ||
            (s->streams->config.page_port == 80 && origin[len] == '\0'));
}

/* The value of Access-Control-Allow-Origin, or NULL. */
static const char *allowed_origin(const struct stream *s)
{
    const char *origin = header(s->connection, MHD_HTTP_HEADER_ORIGIN);
    const char *const *listed = s->streams->config.cors_origins;
    if (!origin)
        return NULL;
    for (; listed && *listed; listed++)
        if (strcmp(*listed, "*") == 0 || strcmp(*listed, origin) == 0)
            return *listed;
    /* After a redirect to another origin a browser sends `Origin: null` (Fetch standard), so a
     * listed page that followed the main port's 307 comes without its name.  Streams are public and
     * take no credentials, so it may read them. */
    if (s->streams->config.cors_origins && strcmp(origin, "null") == 0)
        return "*";
    return is_own_page(s, origin) ? origin : NULL;
}

static void add(struct MHD_Response *m, const char *name, const char *value)
{
    (void)MHD_add_response_header(m, name, value);
}

static enum MHD_Result queue(struct stream *s, unsigned status, struct MHD_Response *m)
{
    if (!m)
        return MHD_NO;
    const char *origin = allowed_origin(s);
    add(m, "X-Request-Id", s->id);
    add(m, "X-Content-Type-Options", "nosniff");
    if (origin) {
        add(m, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        add(m, MHD_HTTP_HEADER_ACCESS_CONTROL_EXPOSE_HEADERS, "X-Request-Id");
    }
    if (s->streams->config.cors_origins || s->streams->config.page_port)
        add(m, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
    enum MHD_Result result = MHD_queue_response(s->connection, status, m);
    MHD_destroy_response(m);
    return result;
}

static enum MHD_Result refuse(struct stream *s, const struct problem *problem, const char *detail)
{
    struct buf text = {0};
    problem_write(&text, problem, detail, s->id);
    buf_char(&text, '}');
    struct MHD_Response *m =
        MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_FREE);
    if (!m) {
        buf_close(&text);
        return MHD_NO;
    }
    add(m, MHD_HTTP_HEADER_CONTENT_TYPE, type_problem);
    if (problem->retry) {
        add(m, MHD_HTTP_HEADER_RETRY_AFTER, "1");
        add(m, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (problem == &problem_method_not_allowed)
        add(m, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    return queue(s, (unsigned)problem->status, m);
}

/* A browser asks this before a page of another origin may send Last-Event-ID. */
static enum MHD_Result answer_preflight(struct stream *s)
{
    struct MHD_Response *m =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (!m)
        return MHD_NO;
    add(m, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD");
    add(m, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_HEADERS, "Cache-Control, Last-Event-ID");
    add(m, MHD_HTTP_HEADER_ACCESS_CONTROL_MAX_AGE, cors_max_age);
    return queue(s, MHD_HTTP_NO_CONTENT, m);
}

static ssize_t read_nothing(void *ctx, uint64_t pos, char *out, size_t max)
{
    (void)ctx, (void)pos, (void)out, (void)max;
    return MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result open_stream(struct stream *s, void *topic, bool head_only)
{
    struct MHD_Response *m = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_SIZE, head_only ? read_nothing : stream_read, s, NULL);
    if (!m)
        return MHD_NO;
    add(m, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    add(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache, no-store");
    add(m, MHD_HTTP_HEADER_CONNECTION, "close");
    add(m, "X-Accel-Buffering", "no");
    add(m, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    s->packed = gzip_accepted(header(s->connection, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    if (s->packed)
        add(m, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    if (!head_only)
        stream_join(s, topic);
    return queue(s, MHD_HTTP_OK, m);
}

/* ---- requests ---- */

/* Reads a seq in decimal. */
static bool read_seq(const char *text, int64_t *ret)
{
    int64_t n = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 18)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (*text - '0');
    }
    *ret = n;
    return true;
}

/* Reads where to begin.  The header wins over the parameter, since a browser that reconnects sends
 * it beside the URL it began with.  Returns false if the parameter is malformed. */
static bool read_place(struct stream *s)
{
    const char *last = header(s->connection, "Last-Event-ID"), *after = NULL;
    s->after = AFTER_NOW;
    if (last) {
        if (!read_seq(last, &s->after))
            s->after = AFTER_UNKNOWN;
        return true;
    }
    if (!MHD_lookup_connection_value_n(s->connection, MHD_GET_ARGUMENT_KIND, "after", 5, &after,
                                       NULL))
        return true;
    return after && read_seq(after, &s->after);
}

enum MHD_Result stream_answer(struct stream *s, const char *path, const char *method)
{
    struct streams *all = s->streams;
    const struct stream_source *source = all->config.source;
    bool head_only = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    const struct problem *problem = source->check(path);
    if (problem == &problem_not_found)
        return refuse(s, problem, NULL);
    if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0 && allowed_origin(s))
        return answer_preflight(s);
    if (!head_only && strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(s, &problem_method_not_allowed, NULL);
    if (!read_place(s))
        return refuse(s, &problem_invalid_request, "after must be a seq");
    if (problem)
        return refuse(s, problem, NULL);
    if (all->ended)
        return refuse(s, &problem_draining, NULL);
    if (!head_only && all->n_open >= all->config.streams_max)
        return refuse(s, &problem_overloaded, "There are as many streams as this server may have.");
    void *topic = source->find(source->context, path, &s->lookup, &problem);
    if (topic)
        return open_stream(s, topic, head_only);
    if (problem)
        return refuse(s, problem, NULL);
    look_up(s);
    return MHD_YES;
}
