/* The table of routes.  Matching walks it from the top: a dozen short comparisons. */
#include "http/routes.h"

#include <string.h>

#include "http/answer.h"

static const struct route routes[] = {
    {.path = "/v1/holds",
     .allow = "GET, HEAD, POST",
     .get = holds_list,
     .post = holds_create,
     .no_store = true},
    {.path = "/v1/holds/*",
     .allow = "DELETE, GET, HEAD",
     .get = holds_get,
     .del = holds_release,
     .no_store = true},
    {.path = "/v1/holds/*/renew", .allow = "POST", .post = holds_renew, .no_store = true},
    {.path = "/v1/holds/*/confirm", .allow = "POST", .post = holds_confirm, .no_store = true},
    {.path = "/v1/holds/*/evict", .allow = "POST", .post = holds_evict, .no_store = true},
    {.path = "/v1/bookings/*", .allow = "GET, HEAD", .get = bookings_get, .no_store = true},
    {.path = "/v1/events",
     .allow = "GET, HEAD, POST",
     .get = events_list,
     .post = events_create,
     .post_max = BODY_EVENT_MAX},
    {.path = "/v1/events/*", .allow = "GET, HEAD", .get = events_get},
    {.path = "/v1/events/*/seats", .allow = "GET, HEAD", .get = events_seats},
    {.path = "/v1/events/*/seats/*", .allow = "GET, HEAD", .get = seat_get, .no_store = true},
    {.path = "/v1/events/*/block", .allow = "POST", .post = seats_block},
    {.path = "/v1/events/*/unblock", .allow = "POST", .post = seats_unblock},
    {.path = "/v1/events/*/open", .allow = "POST", .post = events_open},
    {.path = "/v1/events/*/close", .allow = "POST", .post = events_close},
    {.path = "/v1/audit", .allow = "GET, HEAD", .get = audit_list, .no_store = true},
    {.path = "/v1/events/*/stream", .allow = "GET, HEAD", .get = events_stream},
    {.path = "/healthz", .allow = "GET, HEAD", .get = ops_health, .while_draining = true},
    {.path = "/readyz", .allow = "GET, HEAD", .get = ops_ready, .while_draining = true},
    {.path = "/openapi.yaml", .allow = "GET, HEAD", .get = ops_openapi},
    {.path = "/metrics", .allow = "GET, HEAD", .get = ops_metrics, .while_draining = true},
};

/* True when `path` fits; the segments are what each `*` stood for. */
static bool matches(const char *pattern, const char *path, struct text segments[2])
{
    int n = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*path++ != *pattern)
                return false;
            continue;
        }
        struct text *segment = &segments[n++];
        segment->data = path;
        segment->len = strcspn(path, "/");
        if (segment->len == 0)
            return false;
        path += segment->len;
    }
    return *path == '\0';
}

static void not_found(struct request *r) { answer_problem(r, HF_NOT_FOUND, NULL); }

static void wrong_method(struct request *r)
{
    r->answer.allow = r->route->allow;
    answer_problem(r, HF_METHOD_NOT_ALLOWED, NULL);
}

static step_fn handler(const struct route *route, const char *method)
{
    switch (method[0]) {
    case 'P':
        return strcmp(method, MHD_HTTP_METHOD_POST) == 0 ? route->post : NULL;
    case 'G':
        return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ? route->get : NULL;
    case 'H':
        return strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? route->get : NULL;
    case 'D':
        return strcmp(method, MHD_HTTP_METHOD_DELETE) == 0 ? route->del : NULL;
    default:
        return NULL;
    }
}

void route_find(struct request *r)
{
    r->step = not_found;
    r->body_max = BODY_MAX;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const struct route *route = &routes[i];
        struct text segments[2] = {{0}};
        if (!matches(route->path, r->path, segments))
            continue;
        r->segment = segments[0].data;
        r->segment_len = segments[0].len;
        r->segment2 = segments[1];
        r->route = route;
        r->step = handler(route, r->method);
        if (!r->step)
            r->step = wrong_method;
        else if (r->step == route->post && route->post_max)
            r->body_max = route->post_max;
        return;
    }
}
