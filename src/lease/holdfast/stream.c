/* The streams of sessions: server-sent events that tell when it is a waiter's turn, when a lock was
 * lost, and when somebody wants a lock that is cached.  A stream is a convenience: everything that
 * it tells is found out by asking, too, only later.  Runs on the service's thread. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "lease/holdfast/service.h"
#include "net/sse.h"

/* A stream that is silent for longer is broken; the service writes every 15 s. */
#define SILENCE_MS 40000
#define RETRY_US INT64_C(500000)
#define MESSAGE_LEN_MAX ((size_t)64 << 10)

struct service_stream {
    struct http_exchange x; /* the first member */
    struct service_session *session;
    char session_id[CLIENT_SESSION_SIZE];
    size_t at; /* the server */
    unsigned n_hops;
    bool is_running;
    bool is_connected; /* something has come */
    int64_t retry_us;  /* if it is not running: when it is started again */
    struct sse events;
    struct buf url;
    struct http_header headers[2];
};

/* ---- events ---- */

static bool owner_parse(const char *text, uint8_t ret[LEASE_OWNER_SIZE])
{
    if (!text || strlen(text) != 2 * LEASE_OWNER_SIZE)
        return false;
    for (size_t i = 0; i < LEASE_OWNER_SIZE; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(16 * high + low);
    }
    return true;
}

static bool take_event(void *ctx, const char *event, const char *data)
{
    static const struct {
        const char *name;
        enum client_event_kind kind;
    } known[] = {{"granted", CLIENT_EVENT_GRANTED},
                 {"lost", CLIENT_EVENT_LOST},
                 {"wanted", CLIENT_EVENT_WANTED},
                 {"reset", CLIENT_EVENT_CONNECTED}};
    const struct service_stream *s = ctx;
    struct client *c = s->session->client;
    json_t *json = json_loads(data, 0, NULL);
    const char *name = json_string_value(json_object_get(json, "name"));
    uint8_t owner[LEASE_OWNER_SIZE];
    bool has_owner = owner_parse(json_string_value(json_object_get(json, "owner")), owner);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(event, known[i].name) == 0)
            client_event(c, known[i].kind, name, name ? strlen(name) : 0, has_owner ? owner : NULL,
                         json_integer_value(json_object_get(json, "fence")),
                         service_now_us(s->session->service));
    json_decref(json);
    return true;
}

static bool take_body(void *ctx, const char *data, size_t len)
{
    struct service_stream *s = ctx;
    struct service *service = s->session->service;
    pthread_mutex_lock(&service->mutex);
    if (!s->is_connected) {
        s->is_connected = true;
        client_event(s->session->client, CLIENT_EVENT_CONNECTED, NULL, 0, NULL, 0,
                     service_now_us(service));
    }
    bool more = sse_take(&s->events, data, len);
    pthread_mutex_unlock(&service->mutex);
    return more;
}

/* ---- running ---- */

static void stream_done(struct http_exchange *x);

static void stream_run(struct service_stream *s)
{
    struct service *service = s->session->service;
    sse_begin(&s->events);
    s->url.len = 0;
    buf_printf(&s->url, "%s/v1/sessions/%s/stream", service->servers.origins[s->at], s->session_id);
    buf_char(&s->url, '\0');
    s->x.request = (struct http_request){.method = "GET",
                                         .url = s->url.data,
                                         .headers = s->headers,
                                         .timeout_ms = SILENCE_MS,
                                         .on_body = take_body,
                                         .ctx = s};
    if (service->authorization)
        s->headers[s->x.request.n_headers++] =
            (struct http_header){"Authorization", service->authorization};
    s->is_running = true;
    s->is_connected = false;
    http_pool_start(service->pool, &s->x, stream_done);
}

static void stream_done(struct http_exchange *x)
{
    struct service_stream *s = (struct service_stream *)(void *)x;
    struct service *service = s->session->service;
    pthread_mutex_lock(&service->mutex);
    size_t at = x->result == HF_OK ? servers_redirected(&service->servers, &x->response)
                                   : service->servers.n;
    s->is_running = false;
    if (at < service->servers.n && ++s->n_hops <= SERVERS_HOPS_MAX) {
        s->at = at;
        stream_run(s);
    } else {
        s->retry_us = service_now_us(service) + RETRY_US;
    }
    pthread_mutex_unlock(&service->mutex);
}

static void stream_close(struct service_session *session)
{
    struct service_stream *s = session->stream;
    if (s->is_running)
        http_pool_cancel(session->service->pool, &s->x);
    http_response_close(&s->x.response);
    if (s->url.data) /* it has the session's id */
        explicit_bzero(s->url.data, s->url.len);
    buf_close(&s->url);
    sse_close(&s->events);
    free(s);
    session->stream = NULL;
}

static void stream_open(struct service_session *session)
{
    struct service_stream *s = hf_alloc(sizeof *s);
    s->session = session;
    s->events = (struct sse){.on_message = take_event, .ctx = s, .len_max = MESSAGE_LEN_MAX};
    memcpy(s->session_id, client_session(session->client), strlen(client_session(session->client)));
    s->at = session->service->servers.at;
    session->stream = s;
    stream_run(s);
}

/* ---- all of them ---- */

static bool is_wanted(const struct service *service, const struct client *c)
{
    return client_wants_stream(c) ||
           (service->waiters && client_is_open(c) && client_n_claims(c) > 0);
}

void service_tend_streams(struct service *service)
{
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        struct service_session *session = &service->sessions[i];
        struct service_stream *s = session->stream;
        if (s && (!client_is_open(session->client) || client_n_claims(session->client) == 0 ||
                  strcmp(s->session_id, client_session(session->client)) != 0))
            stream_close(session);
        s = session->stream;
        if (!s && session->client && is_wanted(service, session->client)) {
            stream_open(session);
        } else if (s && !s->is_running && s->retry_us <= service_now_us(service)) {
            s->at = service->servers.at;
            s->n_hops = 0;
            stream_run(s);
        }
    }
}

void service_close_streams(struct service *service)
{
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++)
        if (service->sessions[i].stream)
            stream_close(&service->sessions[i]);
}

int64_t service_streams_due_us(const struct service *service)
{
    int64_t due_us = INT64_MAX;
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        const struct service_stream *s = service->sessions[i].stream;
        if (s && !s->is_running && s->retry_us < due_us)
            due_us = s->retry_us;
    }
    return due_us;
}

void service_want_streams(struct service *service) { http_pool_wake(service->pool); }
