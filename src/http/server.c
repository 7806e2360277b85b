/* libmicrohttpd's daemon of the main port and its callbacks: from a connection's bytes to a request
 * with its headers and body, and from an answer to what is sent and logged.
 *
 * Each connection stays on one thread of the pool.  A request's body is consumed before the request
 * is answered, except where reading on would cost too much (refused_unread, answer_over_upload).
 * libmicrohttpd must not be stopped while a connection is suspended: see server_stop. */
#include "http/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wait.h"
#include "http/acceptor.h"
#include "http/headers.h"
#include "http/request.h"
#include "http/response.h"
#include "http/route.h"

#define CONNECTIONS_MAX 16384
#define CONNECTIONS_MIN 64
#define FILES_RESERVED 128 /* database, log, epoll */
#define CONNECTION_MEMORY ((size_t)16 * 1024)
#define TIMEOUT_S 30 /* of an idle connection, and of a body */
#define LINGER_S 2   /* for a client that keeps sending after its refusal */
#define LARGE_MAX 8  /* requests that may take much memory at once */
#define IDLE_POLL_US 5000
#define STOP_WAIT_MS 1000
#define US 1000000

struct server {
    struct MHD_Daemon *daemon;
    struct acceptor acceptor;
    const struct http_app *app;
    const struct clock *clock;
    const struct access *access;
    const struct cors *cors;
    bool request_log;
    atomic_bool draining;
    struct counter accepted;    /* requests that arrived whole */
    struct counter completed;   /* those of them that were answered */
    struct counter *answers[6]; /* by class of status; 0 and 1 unused */
    _Atomic int large;          /* requests that may take much memory */
};

bool server_draining(const struct server *s)
{
    return atomic_load_explicit(&s->draining, memory_order_relaxed);
}

void *server_context(const struct server *s) { return s->app->context; }
const struct access *server_access(const struct server *s) { return s->access; }
const struct cors *server_cors(const struct server *s) { return s->cors; }

/* ---- answers ---- */

/* The method's name for logs, never the client's own bytes. */
static const char *method_name(const char *method)
{
    static const char *const known[] = {
        MHD_HTTP_METHOD_GET, MHD_HTTP_METHOD_HEAD,  MHD_HTTP_METHOD_POST,   MHD_HTTP_METHOD_DELETE,
        MHD_HTTP_METHOD_PUT, MHD_HTTP_METHOD_PATCH, MHD_HTTP_METHOD_OPTIONS};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(method, known[i]) == 0)
            return known[i];
    return "other";
}

/* Logs the template of the route and never the path, since ids in paths are secrets. */
static void log_request(const struct request *r)
{
    const struct server *s = r->server;
    const struct answer *a = &r->answer;
    const char *route = r->route ? r->route->path : "-", *method = method_name(r->method);
    if (!r->arrived_us) {
        log_write(LOG_DEBUG, "request", "request_id", r->id, "method", method, "route", route,
                  "status", LOG_INT(a->status), NULL);
        return;
    }
    size_t sent = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? 0 : a->len;
    log_write(LOG_INFO, "request", "request_id", r->id, "method", method, "route", route, "status",
              LOG_INT(a->status), "duration_us",
              LOG_INT(clock_monotonic_us(s->clock) - r->arrived_us), "bytes", LOG_INT(sent),
              "scope", access_scope_name(s->access, &r->caller), NULL);
}

/* Counts and logs the answer. */
static void note_answer(const struct request *r)
{
    const struct answer *a = &r->answer;
    counter_add(r->server->answers[a->status / 100], 1);
    if (a->status == MHD_HTTP_INTERNAL_SERVER_ERROR)
        log_write(LOG_ERROR, "request failed", "request_id", r->id, "route",
                  r->route ? r->route->path : "-", "why", a->why ? a->why : "", NULL);
    if (r->arrived_us || log_enabled(LOG_DEBUG))
        log_request(r);
}

static enum MHD_Result answer_queue(struct request *r)
{
    note_answer(r);
    return response_queue(r);
}

/* ---- uploads ---- */

static void draining(struct request *r)
{
    r->answer.close = true;
    answer_problem(r, &problem_draining, NULL);
}

static void too_many_large(struct request *r) { answer_problem(r, &problem_overloaded, NULL); }

bool server_admit_large(struct request *r)
{
    if (r->large)
        return true;
    r->large = atomic_fetch_add(&r->server->large, 1) < LARGE_MAX;
    if (!r->large)
        atomic_fetch_sub(&r->server->large, 1);
    return r->large;
}

static void too_large(struct request *r)
{
    char detail[64];
    (void)snprintf(detail, sizeof detail, "body must have at most %zu bytes", r->body_max);
    r->answer.close = true;
    answer_problem(r, &problem_body_too_large, detail);
}

/* The client is still sending, and libmicrohttpd takes no answer in the middle of a body.  So this
 * writes the answer to the socket, ends the sending direction, and for LINGER_S discards whatever
 * else the client sends. */
static void answer_over_upload(struct request *r)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    r->step(r);
    struct buf text = {0};
    r->answer.close = true;
    response_write(r, &text);
    if (info) {
        (void)!send(info->connect_fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)shutdown(info->connect_fd, SHUT_WR);
    }
    buf_close(&text);
    note_answer(r);
    r->hung_up = true;
    r->begun_us = clock_monotonic_us(r->server->clock) - (TIMEOUT_S - LINGER_S) * (int64_t)US;
}

/* Returns false if the body takes too long.  While an upload is slow, the connection's timeout is
 * what is left of the upload's time, so that silence cannot stretch it either. */
static bool upload_in_time(struct request *r)
{
    int64_t now_us = clock_monotonic_us(r->server->clock);
    if (!r->begun_us)
        r->begun_us = now_us;
    int64_t spent_s = (now_us - r->begun_us) / US;
    if (spent_s < 1)
        return true;
    if (spent_s >= TIMEOUT_S)
        return false;
    unsigned left_s = (unsigned)(TIMEOUT_S - spent_s);
    if (left_s != r->timeout_s) {
        r->timeout_s = left_s;
        (void)MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, left_s);
    }
    return true;
}

/* Keeps a part of the body, or discards it if the request is or has to be refused. */
static enum MHD_Result upload(struct request *r, const char *data, size_t *len)
{
    size_t n = *len;
    *len = 0;
    bool whole = n == r->content_length; /* as nearly all are: the clock need not be read */
    if (!whole && !upload_in_time(r))
        return MHD_NO;
    bool fits = !r->discards && n <= r->body_max - r->body.len;
    bool admitted = fits && (r->body.len + n <= BODY_MAX || server_admit_large(r));
    if (admitted) {
        buf_put(&r->body, data, n);
        return MHD_YES;
    }
    if (!r->discards) {
        r->discards = true;
        r->step = fits ? too_many_large : too_large;
        r->drained = fits ? 0 : r->body.len + n - r->body_max;
        buf_close(&r->body);
    } else {
        r->drained += n;
    }
    if (r->drained > BODY_DRAIN_MAX && !r->hung_up)
        answer_over_upload(r);
    return MHD_YES;
}

/* Returns true if the request has been refused before its body is read: because it is not certain
 * where the body ends, or because the client asked first ("Expect: 100-continue") and may not send
 * it, or not in this size. */
static bool refused_unread(struct request *r)
{
    if (!headers_frame_clearly(r)) {
        r->answer.close = true;
        answer_problem(r, &problem_invalid_request,
                       "body must have one Content-Length or be chunked, not both");
    } else if (r->expects && r->discards) {
        r->answer.close = true;
        r->step(r);
    } else if (r->expects && r->content_length > r->body_max) {
        too_large(r);
    }
    return r->answer.status != 0;
}

/* ---- libmicrohttpd's callbacks ---- */

/* The path of a target such as `http://host/path`, which a server must accept too (RFC 9112). */
static const char *origin_form(const char *url)
{
    const char *authority = *url == '/' ? NULL : strstr(url, "://");
    if (!authority)
        return url;
    const char *path = strchr(authority + 3, '/');
    return path ? path : "/";
}

/* The headers of a new request are there: routes it and checks its access. */
static struct request *begin(struct server *s, struct MHD_Connection *connection, const char *url,
                             const char *method)
{
    struct request *r = request_take(s->app);
    r->server = s;
    r->connection = connection;
    r->path = origin_form(url);
    r->method = method;
    headers_read(r);
    if (s->request_log)
        r->arrived_us = clock_monotonic_us(s->clock);
    route_find(r, s->app->routes);
    r->cors_origin = cors_match(s->cors, r->origin.data, r->origin.len);
    if (!access_check(r))
        r->discards = true;
    else if (server_draining(s) && !(r->route && r->route->while_draining))
        r->step = draining;
    return r;
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload_data,
                                 size_t *upload_len, void **request)
{
    (void)version;
    struct request *r = *request;
    if (!r) {
        *request = r = begin(ctx, connection, url, method);
        return refused_unread(r) ? answer_queue(r) : MHD_YES;
    }
    if (*upload_len)
        return upload(r, upload_data, upload_len);
    if (r->hung_up)
        return MHD_NO;
    if (!r->accepted) {
        r->accepted = true;
        counter_add(&r->server->accepted, 1);
    }
    r->step(r);
    return r->answer.status ? answer_queue(r) : MHD_YES;
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why)
{
    struct server *s = ctx;
    struct request *r = *request;
    if (!r)
        return;
    *request = NULL;
    if (r->timeout_s && why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                        (unsigned)TIMEOUT_S);
    bool accepted = r->accepted;
    if (r->large)
        atomic_fetch_sub(&s->large, 1);
    request_release(r, s->app);
    if (accepted)
        counter_add(&s->completed, 1);
}

size_t http_unescape(void *ctx, struct MHD_Connection *connection, char *text)
{
    (void)ctx;
    (void)connection;
    return text_unescape(text);
}

void http_log(void *ctx, const char *fmt, va_list args)
{
    (void)ctx;
    if (!log_enabled(LOG_DEBUG))
        return;
    char text[256];
    int n = vsnprintf(text, sizeof text, fmt, args);
    if (n > 0 && text[strlen(text) - 1] == '\n')
        text[strlen(text) - 1] = '\0';
    log_write(LOG_DEBUG, "libmicrohttpd", "text", text, NULL);
}

/* ---- life ---- */

/* As many connections as files may be open, up to CONNECTIONS_MAX. */
static unsigned connections_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return CONNECTIONS_MIN;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= CONNECTIONS_MAX + FILES_RESERVED)
        return CONNECTIONS_MAX;
    if (limit.rlim_cur <= CONNECTIONS_MIN + FILES_RESERVED)
        return CONNECTIONS_MIN;
    return (unsigned)(limit.rlim_cur - FILES_RESERVED);
}

static void metrics_register(struct server *s, struct metrics *metrics)
{
    static const char *const labels[6] = {
        NULL, NULL, "class=\"2xx\"", "class=\"3xx\"", "class=\"4xx\"", "class=\"5xx\""};
    for (int i = 2; i < 6; i++)
        s->answers[i] = metrics_counter(metrics, "holdfast_http_requests_total", labels[i],
                                        "Answers sent, by class of HTTP status.");
}

static struct MHD_Daemon *daemon_start(struct server *s, unsigned threads)
{
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO |
                           MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_NO_LISTEN_SOCKET;
    /* libmicrohttpd takes a pool's size only from two threads on. */
    struct MHD_OptionItem pool[2] = {{MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL},
                                     {MHD_OPTION_END, 0, NULL}};
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, s, MHD_OPTION_EXTERNAL_LOGGER, http_log, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_CONNECTION_LIMIT,
        connections_max(), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_UNESCAPE_CALLBACK,
        http_unescape, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        threads > 1 ? pool : pool + 1, MHD_OPTION_END);
}

static const struct access access_open;
static const struct cors cors_off;

enum hf_status server_start(const struct server_config *config, struct server **ret,
                            struct hf_err *err)
{
    if (!http_threads_init())
        return hf_err_set(err, HF_INTERNAL, "no thread-specific data is left");
    struct server *s = hf_alloc(sizeof *s);
    s->app = config->app;
    s->clock = config->clock;
    s->access = config->access ? config->access : &access_open;
    s->cors = config->cors ? config->cors : &cors_off;
    s->request_log = config->request_log;
    metrics_register(s, config->metrics);
    s->daemon = daemon_start(s, config->threads);
    if (!s->daemon || !acceptor_start(&s->acceptor, s->daemon, config->listen_fd)) {
        (void)hf_err_set(err, HF_INTERNAL, "the HTTP daemon does not start: %s", strerror(errno));
        if (s->daemon)
            MHD_stop_daemon(s->daemon);
        free(s);
        return HF_INTERNAL;
    }
    *ret = s;
    return HF_OK;
}

/* Reads `completed` first: whatever it counts has been counted in `accepted` before. */
static bool all_answered(const struct server *s)
{
    uint64_t completed = counter_read(&s->completed);
    return completed >= counter_read(&s->accepted);
}

/* Polls, since this happens once in a server's life and requests then need no lock for it. */
static bool wait_idle(struct server *s, int wait_ms)
{
    int64_t until_us = wait_now_us() + (int64_t)wait_ms * 1000;
    while (!all_answered(s)) {
        if (wait_now_us() >= until_us)
            return false;
        wait_sleep_us(IDLE_POLL_US);
    }
    return true;
}

bool server_drain(struct server *s, int wait_ms)
{
    atomic_store(&s->draining, true);
    acceptor_stop(&s->acceptor);
    return wait_idle(s, wait_ms);
}

void server_stop(struct server *s)
{
    /* Requests that waited until a moment ago still have to be answered. */
    (void)wait_idle(s, STOP_WAIT_MS);
    acceptor_stop(&s->acceptor);
    MHD_stop_daemon(s->daemon);
    http_thread_close();
    free(s);
}
