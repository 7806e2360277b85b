/* The table of routes.  Matching walks it from the top: a dozen short comparisons. */
#include "http/routes.h"

#include <string.h>

#include "http/answer.h"
#include "http/server.h"

static const struct route routes[] = {
    {.path = "/v1/holds",
     .allow = "POST",
     .post = holds_create,
     .post_scope = SCOPE_BUYER,
     .no_store = true},
    {.path = "/v1/holds/*",
     .allow = "DELETE, GET, HEAD",
     .get = holds_get,
     .get_scope = SCOPE_PUBLIC,
     .del = holds_release,
     .del_scope = SCOPE_PUBLIC,
     .no_store = true},
    {.path = "/v1/holds/*/renew",
     .allow = "POST",
     .post = holds_renew,
     .post_scope = SCOPE_PUBLIC,
     .no_store = true},
    {.path = "/v1/holds/*/confirm",
     .allow = "POST",
     .post = holds_confirm,
     .post_scope = SCOPE_SELLER,
     .no_store = true},
    {.path = "/v1/bookings/*",
     .allow = "GET, HEAD",
     .get = bookings_get,
     .get_scope = SCOPE_PUBLIC,
     .no_store = true},
    {.path = "/v1/events",
     .allow = "GET, HEAD, POST",
     .get = events_list,
     .get_scope = SCOPE_PUBLIC,
     .post = events_create,
     .post_scope = SCOPE_ADMIN,
     .post_max = BODY_EVENT_MAX},
    {.path = "/v1/events/*", .allow = "GET, HEAD", .get = events_get, .get_scope = SCOPE_PUBLIC},
    {.path = "/v1/events/*/seats",
     .allow = "GET, HEAD",
     .get = events_seats,
     .get_scope = SCOPE_PUBLIC},
    {.path = "/healthz",
     .allow = "GET, HEAD",
     .get = ops_health,
     .get_scope = SCOPE_PUBLIC,
     .while_draining = true},
    {.path = "/readyz",
     .allow = "GET, HEAD",
     .get = ops_ready,
     .get_scope = SCOPE_PUBLIC,
     .while_draining = true},
    {.path = "/metrics",
     .allow = "GET, HEAD",
     .get = ops_metrics,
     .get_scope = SCOPE_ADMIN,
     .while_draining = true},
};

/* True when `path` fits; the segment is what `*` stood for. */
static bool matches(const char *pattern, const char *path, const char **segment, size_t *len)
{
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*path++ != *pattern)
                return false;
            continue;
        }
        *segment = path;
        *len = strcspn(path, "/");
        if (*len == 0)
            return false;
        path += *len;
    }
    return *path == '\0';
}

static void not_found(struct request *r) { answer_problem(r, HF_NOT_FOUND, NULL); }

static void wrong_method(struct request *r)
{
    r->answer.allow = r->route->allow;
    answer_problem(r, HF_METHOD_NOT_ALLOWED, NULL);
}

/* A browser asks before it lets a page use keys or JSON.  Whether the page may, the headers tell
 * that every answer gets. */
static void preflight(struct request *r)
{
    r->answer.allow = r->route->allow;
    r->answer.preflight = true;
    answer_out(r, MHD_HTTP_NO_CONTENT, NULL);
}

static bool is_preflight(const struct request *r)
{
    return strcmp(r->method, MHD_HTTP_METHOD_OPTIONS) == 0 && server_cors(r->server)->origins;
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

static enum scope scope_needed(const struct route *route, step_fn step)
{
    enum scope scope = step == route->get    ? route->get_scope
                       : step == route->post ? route->post_scope
                                             : route->del_scope;
    return scope == SCOPE_UNSET ? SCOPE_ADMIN : scope;
}

const struct route *route_at(size_t index)
{
    return index < sizeof routes / sizeof *routes ? &routes[index] : NULL;
}

void route_find(struct request *r)
{
    r->step = not_found;
    r->body_max = BODY_MAX;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const struct route *route = &routes[i];
        if (!matches(route->path, r->path, &r->segment, &r->segment_len))
            continue;
        r->route = route;
        r->step = handler(route, r->method);
        if (!r->step) {
            r->step = is_preflight(r) ? preflight : wrong_method;
            return;
        }
        r->needs = scope_needed(route, r->step);
        if (r->step == route->post && route->post_max)
            r->body_max = route->post_max;
        return;
    }
}
