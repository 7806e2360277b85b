/* The table of routes.  Matching walks it from the top: a dozen short comparisons. */
#include "api/routes.h"

#include <string.h>

#include "api/answer.h"
#include "http/server.h"

#define GET(handler, needs) .get = (handler), .get_scope = SCOPE_##needs
#define POST(handler, needs) .post = (handler), .post_scope = SCOPE_##needs
#define DEL(handler, needs) .del = (handler), .del_scope = SCOPE_##needs
#define GETS "GET, HEAD"

/* clang-format off */
static const struct route routes[] = {
    {"/v1/holds", "GET, HEAD, POST", GET(holds_list, SELLER), POST(holds_create, BUYER),
     .no_store = true},
    {"/v1/holds/*", "DELETE, GET, HEAD", GET(holds_get, PUBLIC), DEL(holds_release, PUBLIC),
     .no_store = true},
    {"/v1/holds/*/renew", "POST", POST(holds_renew, PUBLIC), .no_store = true},
    {"/v1/holds/*/confirm", "POST", POST(holds_confirm, SELLER), .no_store = true},
    {"/v1/holds/*/evict", "POST", POST(holds_evict, ADMIN), .no_store = true},
    {"/v1/bookings/*", GETS, GET(bookings_get, PUBLIC), .no_store = true},
    {"/v1/events", "GET, HEAD, POST", GET(events_list, PUBLIC), POST(events_create, ADMIN),
     .post_max = BODY_EVENT_MAX},
    {"/v1/events/*", GETS, GET(events_get, PUBLIC)},
    {"/v1/events/*/seats", GETS, GET(events_seats, PUBLIC)},
    {"/v1/events/*/seats/*", GETS, GET(seat_get, SELLER), .no_store = true},
    {"/v1/events/*/stream", GETS, GET(events_stream, PUBLIC)},
    {"/v1/events/*/block", "POST", POST(seats_block, SELLER)},
    {"/v1/events/*/unblock", "POST", POST(seats_unblock, SELLER)},
    {"/v1/events/*/open", "POST", POST(events_open, SELLER)},
    {"/v1/events/*/close", "POST", POST(events_close, SELLER)},
    {"/v1/audit", GETS, GET(audit_list, ADMIN), .no_store = true},
    {"/healthz", GETS, GET(ops_health, PUBLIC), .while_draining = true},
    {"/readyz", GETS, GET(ops_ready, PUBLIC), .while_draining = true},
    {"/openapi.yaml", GETS, GET(ops_openapi, PUBLIC)},
    {"/metrics", GETS, GET(ops_metrics, ADMIN), .while_draining = true},
};
/* clang-format on */

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
        struct text segments[2] = {{0}};
        if (!matches(route->path, r->path, segments))
            continue;
        r->segment = segments[0].data;
        r->segment_len = segments[0].len;
        r->segment2 = segments[1];
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
