/* Path and method to handler. */
#ifndef HF_API_ROUTES_H
#define HF_API_ROUTES_H

#include "http/request.h"

/* A row of the table.  A method without a handler is 405, and a handler without a scope needs an
 * admin: forgetting one closes a door.  HEAD goes with GET.
 *
 *   {.path = "/v1/x/y", .allow = "GET, HEAD", .get = x_get, .get_scope = SCOPE_SELLER},
 */
struct route {
    const char *path; /* `*` stands for one segment; also the name in logs */
    const char *allow;
    step_fn get, post, del;
    enum scope get_scope, post_scope, del_scope; /* the lowest that may; see access.h */
    size_t post_max;                             /* limit of a POST's body; 0: BODY_MAX */
    bool no_store;                               /* answers are for one buyer */
    bool while_draining;
};

/* Finds r->route, r->needs and r->step, which answers 404 or 405 where there is none. */
void route_find(struct request *r);
/* The table's rows in order; NULL behind the last. */
const struct route *route_at(size_t index);

/* events.c */
void events_create(struct request *r);
void events_get(struct request *r);
void events_seats(struct request *r);
void seat_get(struct request *r);
/* seller.c */
void seats_block(struct request *r);
void seats_unblock(struct request *r);
void events_open(struct request *r);
void events_close(struct request *r);
/* lists.c */
void events_list(struct request *r);
void holds_list(struct request *r);
void audit_list(struct request *r);
/* stream_redirect.c */
void events_stream(struct request *r);
/* holds.c */
void holds_evict(struct request *r);
void holds_create(struct request *r);
void holds_get(struct request *r);
void holds_release(struct request *r);
void holds_renew(struct request *r);
void holds_confirm(struct request *r);
void bookings_get(struct request *r);
/* ops.c */
void ops_health(struct request *r);
void ops_ready(struct request *r);
void ops_metrics(struct request *r);
void ops_openapi(struct request *r);

#endif
