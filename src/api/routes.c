/* The table of routes, and the API as an application of src/http. */
#include "api/routes.h"

#include "api/pace.h"
#include "api/pages.h"
#include "checkout/webhook.h"

#define GET(handler, needs) .get = (handler), .get_scope = SCOPE_##needs
#define POST(handler, needs) .post = (handler), .post_scope = SCOPE_##needs
#define PUT(handler, needs) .put = (handler), .put_scope = SCOPE_##needs
#define PATCH(handler, needs) .patch = (handler), .patch_scope = SCOPE_##needs
#define DEL(handler, needs) .del = (handler), .del_scope = SCOPE_##needs
#define GETS "GET, HEAD"

/* clang-format off */
/* The query parameters of GET.  Any other is 400. */
#define QUERY(...)                                                                                 \
    .query = (const char *const[]) { __VA_ARGS__, NULL }

/* The most frequent come first. */
const struct route api_routes[] = {
    {"/v1/holds", "GET, HEAD, POST", GET(holds_list, SELLER), POST(holds_create, BUYER),
     QUERY("event", "status", "owner", "limit", "cursor"), .no_store = true},
    {"/v1/holds/*", "DELETE, GET, HEAD, PATCH", GET(holds_get, PUBLIC),
     PATCH(holds_change, PUBLIC), DEL(holds_release, PUBLIC),
     .no_store = true},
    {"/v1/holds/*/renew", "POST", POST(holds_renew, PUBLIC), .no_store = true},
    {"/v1/holds/*/confirm", "POST", POST(holds_confirm, SELLER), .no_store = true},
    {"/v1/holds/*/evict", "POST", POST(holds_evict, ADMIN), .no_store = true},
    {"/v1/locks/*", "GET, HEAD, POST", GET(locks_get, SELLER), POST(locks_acquire, SELLER),
     QUERY("stale"), .no_store = true},
    {"/v1/locks/*/release", "POST", POST(locks_release, SELLER), .no_store = true},
    {"/v1/sessions/*/keepalive", "POST", POST(sessions_keepalive, SELLER), .no_store = true},
    {"/v1/bookings", "GET, HEAD, POST", GET(bookings_list, SELLER), POST(bookings_create, PUBLIC),
     QUERY("event", "status", "reference", "owner", "limit", "cursor"), .no_store = true},
    {"/v1/bookings/*/cancel", "POST", POST(bookings_cancel, SELLER), .no_store = true},
    {"/v1/bookings/*/refund", "POST", POST(bookings_refund, SELLER), .no_store = true},
    {"/v1/webhooks/stripe", "POST", POST(webhooks_stripe, PUBLIC), .post_max = WEBHOOK_LEN_MAX,
     .no_store = true},
    {"/v1/bookings/*", GETS, GET(bookings_get, PUBLIC), .no_store = true},
    {"/v1/waitlist", "GET, HEAD, POST", GET(waits_list, SELLER), POST(waits_join, BUYER),
     QUERY("event", "status", "owner", "limit", "cursor"), .no_store = true},
    {"/v1/waitlist/*", "DELETE, GET, HEAD", GET(waits_get, PUBLIC), DEL(waits_leave, PUBLIC),
     .no_store = true},
    {"/v1/waitlist/*/stream", GETS, GET(waits_stream, PUBLIC), QUERY("after"), .no_store = true,
     .streams = true},
    {"/v1/waitlist/*/first", "POST", POST(waits_first, ADMIN), .no_store = true},
    {"/v1/waitlist/*/evict", "POST", POST(waits_evict, ADMIN), .no_store = true},
    {"/v1/events", "GET, HEAD, POST", GET(events_list, PUBLIC), POST(events_create, ADMIN),
     QUERY("upcoming", "limit", "cursor"), .post_max = BODY_PLAN_MAX},
    {"/v1/events/*", "GET, HEAD, PATCH", GET(events_get, PUBLIC), PATCH(events_change, ADMIN)},
    {"/v1/events/*/plan", GETS, GET(events_plan, PUBLIC)},
    {"/v1/events/*/seats", GETS, GET(seats_map, PUBLIC), QUERY("at")},
    {"/v1/events/*/seats/*", GETS, GET(seats_get, SELLER), QUERY("at"), .no_store = true},
    {"/v1/events/*/heat", GETS, GET(events_heat, SELLER), QUERY("limit"), .no_store = true},
    {"/v1/events/*/revenue", GETS, GET(events_revenue, SELLER), .no_store = true},
    {"/v1/events/*/stream", GETS, GET(events_stream, PUBLIC), QUERY("after"), .streams = true},
    {"/v1/events/*/block", "POST", POST(seats_block, SELLER)},
    {"/v1/events/*/unblock", "POST", POST(seats_unblock, SELLER)},
    {"/v1/events/*/open", "POST", POST(events_open, SELLER)},
    {"/v1/events/*/close", "POST", POST(events_close, SELLER)},
    {"/v1/events/*/archive", "POST", POST(events_archive, ADMIN)},
    {"/v1/events/*/cancel", "POST", POST(events_cancel, ADMIN)},
    {"/v1/events/*/waitlist/pause", "POST", POST(waits_pause, SELLER)},
    {"/v1/events/*/waitlist/resume", "POST", POST(waits_resume, SELLER)},
    {"/v1/plans/check", "POST", POST(plans_check, SELLER), .post_max = BODY_PLAN_MAX,
     .no_store = true},
    {"/v1/refunds", GETS, GET(refunds_list, SELLER), QUERY("status", "limit", "cursor"),
     .no_store = true},
    {"/v1/notifications", GETS, GET(notifications_list, SELLER),
     QUERY("status", "limit", "cursor"), .no_store = true},
    {"/v1/idempotency/*", GETS, GET(keys_get, SELLER), .no_store = true},
    {"/v1/owners/erase", "POST", POST(owners_erase, ADMIN), .no_store = true},
    {"/v1/audit", GETS, GET(audit_list, ADMIN),
     QUERY("event", "seat", "hold", "after", "limit", "cursor"), .no_store = true},
    {"/v1/locks", GETS, GET(locks_list, SELLER),
     QUERY("prefix", "waiting", "stale", "limit", "cursor"), .no_store = true},
    {"/v1/locks/*/value", "PUT", PUT(locks_value, SELLER), .no_store = true},
    {"/v1/locks/*/break", "POST", POST(locks_break, ADMIN), .no_store = true},
    {"/v1/locks/*/stream", GETS, GET(locks_stream, SELLER), QUERY("after"), .streams = true},
    {"/v1/sessions", "POST", POST(sessions_create, SELLER), .no_store = true},
    {"/v1/sessions/*", "DELETE", DEL(sessions_close, SELLER), .no_store = true},
    {"/v1/sessions/*/stream", GETS, GET(sessions_stream, SELLER), QUERY("after"), .streams = true},
    {"/v1/cell", GETS, GET(cell_get, SELLER), .no_store = true, .while_draining = true},
    {"/v1/cell/transfer", "POST", POST(cell_transfer, ADMIN), .no_store = true},
    {"/healthz", GETS, GET(ops_health, PUBLIC), .while_draining = true, .any_host = true},
    {"/readyz", GETS, GET(ops_ready, PUBLIC), QUERY("for"), .while_draining = true,
     .any_host = true},
    {"/openapi.yaml", GETS, GET(ops_openapi, PUBLIC)},
    {"/metrics", GETS, GET(ops_metrics, ADMIN), .while_draining = true},
    {"/v1/ops/samples", GETS, GET(ops_samples, ADMIN), QUERY("after"), .no_store = true},
    {.path = NULL},
};
/* clang-format on */

/* The API's routes, and then those of the pages.  Written once, by api_app. */
#define ROUTES_MAX 96
static struct route with_pages[ROUTES_MAX];

static const struct route *add_pages(void)
{
    size_t n = 0;
    for (const struct route *from = api_routes; from->path; from++)
        with_pages[n++] = *from;
    for (const struct route *from = page_routes; from->path; from++) {
        hf_check(n < ROUTES_MAX - 1);
        with_pages[n++] = *from;
    }
    return with_pages;
}

struct http_app api_app(struct api *api)
{
    api->ready = metrics_gauge(api->metrics, "holdfast_ready", NULL, "1 while /readyz answers 200");
    return (struct http_app){.request_size = sizeof(struct call),
                             .routes = api->has_pages ? add_pages() : api_routes,
                             .release = call_release,
                             .refuse = api->has_pages ? pages_refuse : NULL,
                             .paces = pace_names,
                             .context = api};
}
