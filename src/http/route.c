/* See route.h.  On the request's HTTP thread, when its headers are there. */
#include "http/route.h"

#include <string.h>

#include "http/server.h"

enum { ROUTE_SEGMENTS_MAX = 3 };

/* Returns true if `path` fits the pattern; `segments` are then what each `*` stands for. */
static bool matches(const char *pattern, const char *path, struct text segments[ROUTE_SEGMENTS_MAX])
{
    int n = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '*') {
            if (*path++ != *pattern)
                return false;
            continue;
        }
        hf_check(n < ROUTE_SEGMENTS_MAX);
        struct text *segment = &segments[n++];
        segment->data = path;
        segment->len = strcspn(path, "/");
        if (segment->len == 0)
            return false;
        path += segment->len;
    }
    return *path == '\0';
}

static void not_found(struct request *r) { answer_problem(r, &problem_not_found, NULL); }

static void wrong_method(struct request *r)
{
    r->answer.headers.allow = r->route->allow;
    answer_problem(r, &problem_method_not_allowed, NULL);
}

/* A browser asks this before it lets a page send keys or JSON.  The CORS headers that every answer
 * carries tell it whether the page may. */
static void preflight(struct request *r)
{
    r->answer.headers.allow = r->route->allow;
    r->answer.headers.preflight = true;
    answer_out(r, HTTP_NO_CONTENT, NULL);
}

static bool is_preflight(const struct request *r)
{
    return strcmp(r->method, "OPTIONS") == 0 && (server_cors(r->server)->origins || r->cors_origin);
}

/* `OPTIONS *` asks about the server in general (RFC 9110, 9.3.7).  The parser lets no other method
 * have this target. */
static void about_server(struct request *r)
{
    r->answer.headers.allow = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    answer_out(r, HTTP_NO_CONTENT, NULL);
}

step_fn route_handler(const struct route *route, const char *method)
{
    switch (method[0]) {
    case 'P':
        return strcmp(method, "POST") == 0    ? route->post
               : strcmp(method, "PUT") == 0   ? route->put
               : strcmp(method, "PATCH") == 0 ? route->patch
                                              : NULL;
    case 'G':
        return strcmp(method, "GET") == 0 ? route->get : NULL;
    case 'H':
        return strcmp(method, "HEAD") == 0 ? route->get : NULL;
    case 'D':
        return strcmp(method, "DELETE") == 0 ? route->del : NULL;
    default:
        return NULL;
    }
}

static enum scope scope_needed(const struct route *route, step_fn step)
{
    enum scope scope = step == route->get     ? route->get_scope
                       : step == route->post  ? route->post_scope
                       : step == route->put   ? route->put_scope
                       : step == route->patch ? route->patch_scope
                                              : route->del_scope;
    return scope == SCOPE_UNSET ? SCOPE_ADMIN : scope;
}

void route_find(struct request *r, const struct route *routes, bool streams_only)
{
    r->step = strcmp(r->path, "*") == 0 ? about_server : not_found;
    r->upload.max = BODY_MAX;
    for (const struct route *route = routes; route->path; route++) {
        struct text segments[ROUTE_SEGMENTS_MAX] = {{0}};
        if ((streams_only && !route->streams) || !matches(route->path, r->path, segments))
            continue;
        r->segment = segments[0];
        r->segment2 = segments[1];
        r->segment3 = segments[2];
        r->route = route;
        r->step = route_handler(route, r->method);
        if (!r->step) {
            r->step = is_preflight(r) ? preflight : wrong_method;
            return;
        }
        r->needs = scope_needed(route, r->step);
        if (r->step == route->post && route->post_max)
            r->upload.max = route->post_max;
        return;
    }
}
