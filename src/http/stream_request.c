/* From a request on the streams' port to a stream or a refusal.  On the streams' thread; the only
 * other one is the engine's that gives a looked-up event back (lent_done). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gzip.h"
#include "api/answer.h"
#include "http/cors.h"
#include "http/stream_internal.h"

#define BLOCK_SIZE 512 /* for HTTP/1.0; chunks have the connection's memory */

/* ---- looking an event up ---- */

struct lent {
    struct command command; /* first */
    struct streams *streams;
    struct MHD_Connection *connection;
};

/* On an engine thread.  libmicrohttpd does not wake a loop that is not its own. */
static void lent_done(struct command *command)
{
    struct lent *l = (struct lent *)command;
    struct streams *streams = l->streams; /* `l` is gone once the other thread looks */
    MHD_resume_connection(l->connection);
    stream_wake(streams);
}

static void lend(struct stream *s)
{
    struct lent *l = hf_alloc(sizeof *l);
    s->lent = l;
    l->streams = s->streams;
    l->connection = s->connection;
    l->command.kind = CMD_EVENT_LOAD;
    l->command.event_key = s->event_id.key;
    l->command.done = lent_done;
    s->looking = true;
    s->streams->n_lent++;
    MHD_suspend_connection(s->connection);
    enum hf_status status = engine_submit(s->streams->config.engine, &l->command);
    if (status != HF_OK) {
        l->command.status = status;
        MHD_resume_connection(s->connection);
    }
}

void stream_look_over(struct stream *s)
{
    s->streams->n_lent -= s->looking;
    s->looking = false;
}

/* The event, or NULL: *ret_status says why, HF_OK that it is being looked up. */
static struct event *find_event(struct stream *s, enum hf_status *ret_status)
{
    struct event *e = engine_event(s->streams->config.engine, s->event_id.key);
    *ret_status = HF_NO_SUCH_EVENT;
    if (e)
        return id_secret_equal(e->def->id.secret, s->event_id.secret) ? e : NULL;
    if (s->event_id.key > EVENT_KEY_MAX)
        return NULL;
    if (!s->lent) {
        lend(s);
        *ret_status = HF_OK;
    } else if (s->lent->command.status != HF_OK) {
        *ret_status = s->lent->command.status;
    }
    return NULL;
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

/* http://NAME:PORT, where NAME is what this request calls us and PORT has our pages. */
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
    /* A listed page that was sent here by the main port's 307 comes without its name, as the Fetch
     * standard has it.  Streams are public and take no credentials: let it in. */
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

static enum MHD_Result refuse(struct stream *s, enum hf_status status, const char *detail)
{
    struct buf text = {0};
    bool retry = problem_write(&text, status, detail, s->id);
    buf_char(&text, '}');
    struct MHD_Response *m =
        MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_FREE);
    if (!m) {
        buf_close(&text);
        return MHD_NO;
    }
    add(m, MHD_HTTP_HEADER_CONTENT_TYPE, type_problem);
    if (retry) {
        add(m, MHD_HTTP_HEADER_RETRY_AFTER, "1");
        add(m, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (status == HF_METHOD_NOT_ALLOWED)
        add(m, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    return queue(s, (unsigned)hf_status_http(status), m);
}

/* What a browser asks before a page of another origin may send Last-Event-ID. */
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

static enum MHD_Result open_stream(struct stream *s, struct event *e, bool head_only)
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
        stream_join(s, e);
    return queue(s, MHD_HTTP_OK, m);
}

/* ---- requests ---- */

/* A seq in decimal. */
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

/* Where to begin.  The header wins: a browser that reconnects sends it beside the URL it began
 * with.  False: `after` is malformed. */
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

/* The id between the two; NULL: not a stream's path. */
static const char *path_id(const char *path, size_t *ret_len)
{
    static const char before[] = "/v1/events/", after[] = "/stream";
    if (strncmp(path, before, sizeof before - 1) != 0)
        return NULL;
    path += sizeof before - 1;
    *ret_len = strcspn(path, "/");
    return *ret_len && strcmp(path + *ret_len, after) == 0 ? path : NULL;
}

enum MHD_Result stream_answer(struct stream *s, const char *path, const char *method)
{
    struct streams *all = s->streams;
    bool head_only = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    size_t len;
    const char *id = path_id(path, &len);
    if (!id)
        return refuse(s, HF_NOT_FOUND, NULL);
    if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0 && allowed_origin(s))
        return answer_preflight(s);
    if (!head_only && strcmp(method, MHD_HTTP_METHOD_GET) != 0)
        return refuse(s, HF_METHOD_NOT_ALLOWED, NULL);
    if (!read_place(s))
        return refuse(s, HF_INVALID_REQUEST, "after must be a seq");
    if (!id_parse(id, len, "evt_", &s->event_id))
        return refuse(s, HF_NO_SUCH_EVENT, NULL);
    if (all->ended)
        return refuse(s, HF_DRAINING, NULL);
    if (!head_only && all->n_open >= all->config.streams_max)
        return refuse(s, HF_OVERLOADED, "There are as many streams as this server may have.");
    enum hf_status status;
    struct event *e = find_event(s, &status);
    if (e)
        return open_stream(s, e, head_only);
    return status == HF_OK ? MHD_YES : refuse(s, status, NULL);
}
