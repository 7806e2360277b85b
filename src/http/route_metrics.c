/* See route_metrics.h.  Opened before the threads run; each of them observes. */
#include "http/route_metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

#define NAME "holdfast_http_request_seconds"
#define HELP "Time from the head of a request to its answer, by route"

static const char *const methods[] = {"GET", "POST", "PATCH", "PUT", "DELETE"};
enum { GET, POST, PATCH, PUT, DELETE, ROUTE_METHODS };

/* Of a method that has a handler; HEAD counts as GET, whose handler it has. */
static int method_index(const char *method)
{
    switch (method[0]) {
    case 'P':
        return method[1] == 'O' ? POST : method[1] == 'A' ? PATCH : PUT;
    case 'D':
        return DELETE;
    default:
        return GET;
    }
}

static struct histogram *seconds_new(struct metrics *m, const char *route, const char *method)
{
    char labels[128];
    (void)snprintf(labels, sizeof labels, "route=\"%s\",method=\"%s\"", route, method);
    return metrics_histogram(m, NAME, labels, HELP, 1e-6, histogram_seconds, histogram_seconds_len);
}

void route_metrics_open(struct route_metrics *rm, const struct route *routes, struct metrics *m)
{
    size_t n = 0;
    while (routes[n].path)
        n++;
    rm->routes = routes;
    rm->seconds = hf_alloc((n + 1) * ROUTE_METHODS * sizeof(struct histogram *));
    for (size_t i = 0; i < n; i++)
        for (int method = 0; method < ROUTE_METHODS; method++)
            if (route_handler(&routes[i], methods[method]))
                rm->seconds[i * ROUTE_METHODS + (size_t)method] =
                    seconds_new(m, routes[i].path, methods[method]);
    rm->other = seconds_new(m, "other", "other");
}

void route_metrics_close(struct route_metrics *rm) { free((void *)rm->seconds); }

void route_metrics_observe(const struct route_metrics *rm, const struct request *r, int64_t us)
{
    struct histogram *h = rm->other;
    if (r->route && r->needs != SCOPE_UNSET)
        h = rm->seconds[(r->route - rm->routes) * ROUTE_METHODS + method_index(r->method)];
    histogram_observe(h, us > 0 ? (uint64_t)us : 0);
}
