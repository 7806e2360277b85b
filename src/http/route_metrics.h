/* How long requests take, by route and method.  A route is named by its template, and only methods
 * that it has a handler for count, so clients cannot make new series. */
#ifndef HF_HTTP_ROUTE_METRICS_H
#define HF_HTTP_ROUTE_METRICS_H

#include "base/metrics.h"
#include "http/route.h"

struct route_metrics {
    const struct route *routes;
    struct histogram **seconds; /* ROUTE_METHODS for each route; NULL: no handler */
    struct histogram *other;    /* requests without a route, and methods without a handler */
};

void route_metrics_open(struct route_metrics *rm, const struct route *routes, struct metrics *m);
void route_metrics_close(struct route_metrics *rm);
/* Counts a request that was answered `us` after its head had arrived. */
void route_metrics_observe(const struct route_metrics *rm, const struct request *r, int64_t us);

#endif
