/* See traffic.h. */
#include "http/traffic.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "http/request.h"
#include "http/server_internal.h"

static void register_paces(struct traffic *t, const struct server_config *config)
{
    const char *names[QUOTA_RATES] = {
        [QUOTA_WRONG_KEYS] = "wrong_keys", [QUOTA_REPLAYS] = "replays"};
    const char *const *own = config->app->paces;
    for (int i = 0; own && i < QUOTA_APP_MAX; i++)
        names[QUOTA_OF_APP + i] = own[i];
    for (int i = 0; i < QUOTA_RATES && names[i]; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "what=\"%s\"", names[i]);
        t->too_soon[i] =
            metrics_counter(config->metrics, "holdfast_too_many_requests_total", label,
                            "Requests refused because their address had made too many.");
    }
}

void traffic_open(struct traffic *t, const struct server_config *config, size_t connections_max)
{
    static const char *const labels[6] = {
        NULL, NULL, "class=\"2xx\"", "class=\"3xx\"", "class=\"4xx\"", "class=\"5xx\""};
    struct metrics *m = config->metrics;
    for (int i = 2; i < 6; i++)
        t->answers[i] = metrics_counter(m, "holdfast_http_requests_total", labels[i],
                                        "Answers sent, by class of HTTP status.");
    route_metrics_open(&t->routes, config->app->routes, m);
    t->connections =
        metrics_gauge(m, "holdfast_http_connections", NULL, "Connections open now, streams too.");
    gauge_set(metrics_gauge(m, "holdfast_http_connections_max", NULL, "Connections there may be."),
              (int64_t)connections_max);
    t->turned_away = metrics_counter(m, "holdfast_http_connections_refused_total", NULL,
                                     "Connections refused because there were too many.");
    t->evicted = metrics_counter(m, "holdfast_http_connections_evicted_total", NULL,
                                 "Connections at rest that were closed to make room for others.");
    register_paces(t, config);
    t->streams = metrics_gauge(m, "holdfast_streams_open", NULL, "Streams open now.");
    gauge_set(metrics_gauge(m, "holdfast_streams_max", NULL, "Streams there may be."),
              (int64_t)config->streams_max);
    t->stream_lag =
        metrics_histogram(m, "holdfast_stream_lag_seconds", NULL,
                          "Age of the oldest change in a message when a reader was sent it.", 1e-6,
                          histogram_seconds, histogram_seconds_len);
    t->messages = metrics_counter(m, "holdfast_stream_messages_total", NULL,
                                  "Messages begun on streams, each reader's counted.");
    t->dropped = metrics_counter(m, "holdfast_stream_dropped_total", NULL,
                                 "Streams cut off because their reader was too slow.");
}

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

void traffic_note_answer(const struct request *r)
{
    const struct server *s = r->server;
    const struct answer *a = &r->answer;
    int64_t duration_us = 0;
    counter_add(s->traffic.answers[a->status / 100], 1);
    if (r->arrived_us) {
        duration_us = clock_monotonic_us(s->config.clock) - r->arrived_us;
        route_metrics_observe(&s->traffic.routes, r, duration_us);
    }
    if (a->status == problem_internal.status)
        log_write(LOG_ERROR, "request failed", "request_id", r->id, "route",
                  r->route ? r->route->path : "-", "why", a->why ? a->why : "", NULL);
    if (s->config.request_log || log_enabled(LOG_DEBUG))
        log_request(r, duration_us);
}

void traffic_close(struct traffic *t) { route_metrics_close(&t->routes); }
