/* Path and method to handler.  The application owns the table; src/http walks it from the top,
 * which costs a short comparison for each row. */
#ifndef HF_HTTP_ROUTE_H
#define HF_HTTP_ROUTE_H

#include "http/request.h"

/* A row of the table.  A method without a handler is answered with 405, and a handler without a
 * scope needs an admin, so that a forgotten scope opens nothing.  HEAD goes to the handler of GET.
 *
 *   {.path = "/v1/x/y", .allow = "GET, HEAD", .get = x_get, .get_scope = SCOPE_SELLER},
 */
struct route {
    const char *path;  /* up to three `*`, a segment each; logs name the route by this text */
    const char *allow; /* the methods that have a handler, for the header Allow */
    step_fn get, post, put, patch, del;
    /* The lowest scope that may use the method. */
    enum scope get_scope, post_scope, put_scope, patch_scope, del_scope;
    const char *const *query; /* names of the query parameters of GET, up to NULL; NULL: none */
    bool any_query;           /* the handler judges r->parameters itself, whatever the method */
    size_t post_max;          /* limit of a POST's body; 0: BODY_MAX */
    bool no_store;            /* no cache may keep the answers */
    bool streams;             /* GET answers with a stream, also while the server drains */
    bool while_draining;      /* a probe: also answered while the server drains, and to guests */
    bool any_host;            /* answered whatever name of the server is asked for; see door.h */
};

/* Sets r->route, r->needs, r->upload.max and r->step.  Where no route fits, r->step answers with
 * 404 or 405, and `OPTIONS *` with 204.  `routes` ends with a row without a path.  `streams_only`:
 * other routes do not count. */
void route_find(struct request *r, const struct route *routes, bool streams_only);

/* The handler of a method; NULL: the route does not take it. */
step_fn route_handler(const struct route *route, const char *method);

#endif
