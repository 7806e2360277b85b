/* See server.h. */
#include "http/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wait.h"
#include "http/admission.h"
#include "http/listen.h"
#include "http/route.h"
#include "http/server_internal.h"

#define CONNECTIONS_MAX 131072
#define CONNECTIONS_MIN 64
#define FILES_RESERVED 128    /* database, log; the threads' epoll and eventfd come on top */
#define LARGE_MAX 8           /* requests that may take much memory at once */
#define ADDRESSES_KNOWN 32768 /* besides those that have a connection; see quota.h */
#define IDLE_POLL_US 5000
#define CLIENT_WAIT_MS 1000 /* for clients to take the last of their answers and streams */
#define STOP_WAIT_MS 1000
#define HANDSHAKES_US 1000    /* for connections that are being made */
#define LAST_REQUESTS_MS 100  /* for requests that are on their way */
#define FIRST_REQUEST_MS 1000 /* for that of a connection that was accepted last */

bool server_draining(const struct server *s)
{
    return atomic_load_explicit(&s->draining, memory_order_relaxed);
}

bool server_leaving(const struct server *s)
{
    return atomic_load_explicit(&s->leaving, memory_order_relaxed) || server_draining(s);
}

void *server_context(const struct server *s) { return s->config.app->context; }
struct access *server_access(const struct server *s) { return s->config.access; }
const struct cors *server_cors(const struct server *s) { return s->config.cors; }
struct quotas *server_quotas(const struct server *s) { return s->quotas; }
const char *server_scheme(const struct server *s) { return s->config.tls ? "https" : "http"; }
struct guesses *server_guesses(struct server *s) { return &s->guesses; }

void server_note_too_soon(struct server *s, enum quota_rate rate)
{
    counter_add(s->too_soon[rate], 1);
}

/* ---- answers ---- */

/* The method's name for logs, never the client's own bytes. */
static const char *method_name(const char *method)
{
    static const char *const known[] = {"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"};
    for (size_t i = 0; method && i < sizeof known / sizeof *known; i++)
        if (strcmp(method, known[i]) == 0)
            return known[i];
    return "other";
}

/* Logs the template of the route and never the path, since ids in paths are secrets. */
static void log_request(const struct request *r, int64_t duration_us)
{
    const struct server *s = r->server;
    const struct answer *a = &r->answer;
    const char *route = r->route ? r->route->path : "-", *method = method_name(r->method);
    if (!s->config.request_log || !r->arrived_us) {
        log_write(LOG_DEBUG, "request", "request_id", r->id, "method", method, "route", route,
                  "status", LOG_INT(a->status), NULL);
        return;
    }
    size_t sent = answer_has_body(r) ? a->len : 0;
    struct address address;
    char client[ADDRESS_TEXT_SIZE] = "-";
    if (access_address(r, &address))
        address_text(&address, client);
    log_write(LOG_INFO, "request", "request_id", r->id, "method", method, "route", route, "status",
              LOG_INT(a->status), "duration_us", LOG_INT(duration_us), "bytes", LOG_INT(sent),
              "scope", access_scope_name(s->config.access, &r->caller), "client", client, NULL);
}

void server_note_answer(const struct request *r)
{
    const struct server *s = r->server;
    const struct answer *a = &r->answer;
    int64_t duration_us = 0;
    counter_add(s->answers[a->status / 100], 1);
    if (r->arrived_us) {
        duration_us = clock_monotonic_us(s->config.clock) - r->arrived_us;
        route_metrics_observe(&s->routes, r, duration_us);
    }
    if (a->status == problem_internal.status)
        log_write(LOG_ERROR, "request failed", "request_id", r->id, "route",
                  r->route ? r->route->path : "-", "why", a->why ? a->why : "", NULL);
    if (s->config.request_log || log_enabled(LOG_DEBUG))
        log_request(r, duration_us);
}

bool server_admit_large(struct request *r)
{
    if (r->large)
        return true;
    r->large = atomic_fetch_add(&r->server->large, 1) < LARGE_MAX;
    if (!r->large)
        atomic_fetch_sub(&r->server->large, 1);
    return r->large;
}

void server_log_places(const struct server *s)
{
    const size_t *levels = s->config.quotas.levels;
    log_write(LOG_INFO, "places for clients", "connections", LOG_INT(s->connections_max),
              "of_an_address", LOG_INT(levels[QUOTA_CONNECTIONS]), "streams",
              LOG_INT(s->config.streams_max), "streams_of_an_address",
              LOG_INT(levels[QUOTA_STREAMS]), NULL);
}

/* ---- life ---- */

/* Raises the limit of open files as far as it goes.  Returns how many of them connections may take,
 * up to CONNECTIONS_MAX; 0: too few. */
static size_t files_for_connections(unsigned threads, struct hf_err *err)
{
    const rlim_t reserved = FILES_RESERVED + GUESTS_MAX + ARRIVING_MAX + 2 * (rlim_t)threads;
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < CONNECTIONS_MIN + reserved) {
        (void)hf_err_set(err, HF_INTERNAL,
                         "%llu files may be open (RLIMIT_NOFILE), and at least %llu are needed; "
                         "raise the limit with `ulimit -n` or LimitNOFILE=, or use fewer "
                         "--http-threads",
                         (unsigned long long)limit.rlim_cur,
                         (unsigned long long)(CONNECTIONS_MIN + reserved));
        return 0;
    }
    rlim_t left = limit.rlim_cur - reserved;
    return left < CONNECTIONS_MAX ? (size_t)left : CONNECTIONS_MAX;
}

static void paces_register(struct server *s, struct metrics *m)
{
    const char *names[QUOTA_RATES] = {
        [QUOTA_WRONG_KEYS] = "wrong_keys", [QUOTA_REPLAYS] = "replays"};
    const char *const *own = s->config.app->paces;
    for (int i = 0; own && i < QUOTA_APP_MAX; i++)
        names[QUOTA_OF_APP + i] = own[i];
    for (int i = 0; i < QUOTA_RATES && names[i]; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "what=\"%s\"", names[i]);
        s->too_soon[i] =
            metrics_counter(m, "holdfast_too_many_requests_total", label,
                            "Requests refused because their address had made too many.");
    }
}

static void metrics_register(struct server *s)
{
    static const char *const labels[6] = {
        NULL, NULL, "class=\"2xx\"", "class=\"3xx\"", "class=\"4xx\"", "class=\"5xx\""};
    struct metrics *m = s->config.metrics;
    for (int i = 2; i < 6; i++)
        s->answers[i] = metrics_counter(m, "holdfast_http_requests_total", labels[i],
                                        "Answers sent, by class of HTTP status.");
    route_metrics_open(&s->routes, s->config.app->routes, m);
    s->connections =
        metrics_gauge(m, "holdfast_http_connections", NULL, "Connections open now, streams too.");
    gauge_set(metrics_gauge(m, "holdfast_http_connections_max", NULL, "Connections there may be."),
              (int64_t)s->connections_max);
    s->turned_away = metrics_counter(m, "holdfast_http_connections_refused_total", NULL,
                                     "Connections refused because there were too many.");
    s->evicted = metrics_counter(m, "holdfast_http_connections_evicted_total", NULL,
                                 "Connections at rest that were closed to make room for others.");
    paces_register(s, m);
    guesses_open(&s->guesses, m);
    s->streams_open = metrics_gauge(m, "holdfast_streams_open", NULL, "Streams open now.");
    gauge_set(metrics_gauge(m, "holdfast_streams_max", NULL, "Streams there may be."),
              (int64_t)s->config.streams_max);
    s->stream_lag =
        metrics_histogram(m, "holdfast_stream_lag_seconds", NULL,
                          "Age of the oldest change in a message when a reader was sent it.", 1e-6,
                          histogram_seconds, histogram_seconds_len);
    s->messages = metrics_counter(m, "holdfast_stream_messages_total", NULL,
                                  "Messages begun on streams, each reader's counted.");
    s->dropped = metrics_counter(m, "holdfast_stream_dropped_total", NULL,
                                 "Streams cut off because their reader was too slow.");
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    while (!atomic_load(&l->server->stopping))
        loop_turn(l, -1);
    return NULL;
}

void server_free(struct server *s)
{
    for (unsigned i = 0; i < s->n_loops; i++)
        loop_close(&s->loops[i]);
    for (int i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fd >= 0)
            (void)close(s->listeners[i].fd);
    free(s->loops);
    route_metrics_close(&s->routes);
    quotas_free(s->quotas);
    guesses_close(&s->guesses);
    free(s);
}

static void wake_all(struct server *s)
{
    for (unsigned i = 0; i < s->n_loops; i++)
        inbox_wake(&s->loops[i].inbox);
}

static void join(struct server *s, unsigned n_threads)
{
    atomic_store(&s->stopping, true);
    wake_all(s);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(s->loops[i].thread, NULL);
}

static size_t two_thirds(size_t n) { return n - n / 3; }

static struct quotas *quotas_open(struct server *s)
{
    struct quota_limits *limits = &s->config.quotas;
    if (!limits->levels[QUOTA_CONNECTIONS])
        limits->levels[QUOTA_CONNECTIONS] = two_thirds(s->connections_max);
    if (!limits->levels[QUOTA_STREAMS])
        limits->levels[QUOTA_STREAMS] = two_thirds(s->config.streams_max);
    return quotas_new(limits, s->connections_max + ADDRESSES_KNOWN);
}

static struct access access_open; /* never changed */
static const struct cors cors_off;

struct server *server_new(const struct server_config *config, struct hf_err *err)
{
    size_t connections_max = files_for_connections(config->threads, err);
    if (!connections_max)
        return NULL;
    struct server *s = hf_alloc(sizeof *s);
    bool opened = true;
    s->config = *config;
    if (!config->access)
        s->config.access = &access_open;
    if (!config->cors)
        s->config.cors = &cors_off;
    s->connections_max = connections_max;
    if (!s->config.streams_max)
        s->config.streams_max = s->connections_max / 3 * 2;
    s->quotas = quotas_open(s);
    s->listeners[0] = (struct listener){.fd = config->listen_fd};
    s->listeners[1] = (struct listener){.fd = config->stream_fd, .streams_only = true};
    metrics_register(s);
    unsent_budget_open(&s->unsent, config->answer_bytes_max, config->metrics);
    s->n_loops = config->threads;
    s->loops = hf_alloc(sizeof *s->loops * s->n_loops);
    for (unsigned i = 0; i < s->n_loops; i++)
        opened = loop_open(&s->loops[i], s, err) && opened;
    if (opened)
        return s;
    server_free(s);
    return NULL;
}

enum hf_status server_start(const struct server_config *config, struct server **ret,
                            struct hf_err *err)
{
    struct server *s = server_new(config, err);
    if (!s)
        return HF_INTERNAL;
    atomic_store(&s->listening, true);
    bool started = loop_listen(&s->loops[0]);
    unsigned n = 0;
    while (started && n < s->n_loops) {
        errno = pthread_create(&s->loops[n].thread, NULL, loop_main, &s->loops[n]);
        started = errno == 0;
        n += started;
    }
    if (started) {
        *ret = s;
        return HF_OK;
    }
    (void)hf_err_set(err, HF_INTERNAL, "the HTTP threads do not start: %s", strerror(errno));
    join(s, n);
    server_free(s);
    return HF_INTERNAL;
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

void server_leave(struct server *s) { atomic_store(&s->leaving, true); }

/* A proxy that does not ask whether the server is ready sends requests up to this moment, each on a
 * new connection.  Closing a listening socket resets connections that are complete for the client,
 * so there must be none.  Attempts are ignored for no longer than they take, since a proxy that is
 * ignored finds out after a second and counts it as a failure of the server. */
static void stop_listening(struct server *s)
{
    for (int i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fd >= 0)
            listen_ignore_new(s->listeners[i].fd);
    wait_sleep_us(HANDSHAKES_US);
    atomic_store(&s->closing, true);
    wake_all(s);
    wait_sleep_us(LAST_REQUESTS_MS * 1000);
    int64_t until_us = wait_now_us() + (FIRST_REQUEST_MS - LAST_REQUESTS_MS) * 1000;
    while ((atomic_load(&s->listening) || atomic_load(&s->n_fresh)) && wait_now_us() < until_us)
        wait_sleep_us(IDLE_POLL_US);
}

bool server_drain(struct server *s, int wait_ms)
{
    int64_t began_us = wait_now_us();
    if (atomic_load(&s->leaving))
        stop_listening(s);
    atomic_store(&s->draining, true);
    wake_all(s);
    bool answered = wait_idle(s, wait_ms);
    while (
        (atomic_load(&s->listening) || atomic_load(&s->n_streams) || atomic_load(&s->n_blocked)) &&
        wait_now_us() - began_us < CLIENT_WAIT_MS * 1000)
        wait_sleep_us(IDLE_POLL_US);
    return answered;
}

void server_stop(struct server *s)
{
    /* Requests that waited until a moment ago still have to be answered. */
    (void)wait_idle(s, STOP_WAIT_MS);
    join(s, s->n_loops);
    server_free(s);
}
