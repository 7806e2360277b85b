/* The API's table of routes, and the handlers in it.  Each handler runs on the HTTP thread of its
 * request, once the body is there. */
#ifndef HF_API_ROUTES_H
#define HF_API_ROUTES_H

#include "api/call.h"
#include "http/route.h"

#define BODY_EVENT_MAX ((size_t)8 * 1024 * 1024)
#define BODY_PLAN_MAX ((size_t)64 * 1024 * 1024) /* of an event with a plan */

/* Ends with a row without a path. */
extern const struct route api_routes[];

/* events.c */
void events_create(struct request *r);
void events_list(struct request *r);
void events_get(struct request *r);
void events_open(struct request *r);
void events_close(struct request *r);
void events_archive(struct request *r);
void events_cancel(struct request *r);
void events_revenue(struct request *r);
void events_change(struct request *r);
/* seats.c */
void seats_map(struct request *r);
void seats_get(struct request *r);
void seats_block(struct request *r);
void seats_unblock(struct request *r);
/* plan.c */
void events_plan(struct request *r);
/* plan_check.c */
void plans_check(struct request *r);
/* heat.c */
void events_heat(struct request *r);
/* stream.c */
void events_stream(struct request *r);
extern const struct stream_source api_streams;
/* hold_create.c */
void holds_create(struct request *r);
/* What a body that was read into c->hold names; POST /v1/waitlist has the same.  How many places: */
int64_t hold_body_places(const struct hold_body *body);
/* The index of the first section of the tier, or -1. */
int32_t hold_tier_find(const struct event *e, const struct text *tier);
/* Find the areas, into c->places.areas_heap, and what best_available says.  Return false if the call
 * has been refused, or its key is being looked up. */
HF_MUST_USE bool hold_areas_find(struct call *c, const struct event *e);
HF_MUST_USE bool hold_best_find(struct call *c, const struct event *e, struct best_want *ret);
/* holds.c */
void holds_list(struct request *r);
void holds_get(struct request *r);
void holds_release(struct request *r);
void holds_renew(struct request *r);
void holds_confirm(struct request *r);
void holds_evict(struct request *r);
/* Finds the hold that the path names, and its event.  Returns NULL if the call has been answered,
 * or runs again; the command may be lent by then. */
struct event *path_hold(struct call *c, struct id *ret);
/* Returns false if the call has been answered with 400: the TTL is longer than the event's. */
bool hold_ttl_fits(struct call *c, int64_t ttl_ms, const struct event *e);
/* hold_change.c */
void holds_change(struct request *r);
/* waitlist.c */
void waits_join(struct request *r);
void waits_list(struct request *r);
void waits_get(struct request *r);
void waits_leave(struct request *r);
void waits_first(struct request *r);
void waits_evict(struct request *r);
void waits_pause(struct request *r);
void waits_resume(struct request *r);
/* Finds the entry that the path names, and its event.  Returns NULL if the call has been answered,
 * or runs again. */
struct event *path_wait(struct call *c, struct id *ret);
/* If the buyer's look at this entry is to be stored, submits that, and returns true: `then` runs
 * afterwards. */
bool wait_note_read(struct call *c, const struct wait_row *row, int64_t now, step_fn then);
/* waitlist_stream.c */
void waits_stream(struct request *r);
/* bookings.c */
void bookings_get(struct request *r);
void bookings_list(struct request *r);
void bookings_cancel(struct request *r);
void bookings_refund(struct request *r);
/* booking_create.c */
void bookings_create(struct request *r);
/* webhooks.c */
void webhooks_stripe(struct request *r);
/* money_lists.c */
void refunds_list(struct request *r);
void notifications_list(struct request *r);
/* keys.c */
void keys_get(struct request *r);
/* owners.c */
void owners_erase(struct request *r);
/* audit.c */
void audit_list(struct request *r);
/* sessions.c */
void sessions_create(struct request *r);
void sessions_keepalive(struct request *r);
void sessions_close(struct request *r);
/* locks.c */
void locks_acquire(struct request *r);
void locks_release(struct request *r);
void locks_value(struct request *r);
void locks_break(struct request *r);
/* lock_lists.c */
void locks_get(struct request *r);
void locks_list(struct request *r);
/* lock_stream.c */
void locks_stream(struct request *r);
void sessions_stream(struct request *r);
/* cell.c */
void cell_get(struct request *r);
void cell_transfer(struct request *r);
/* ops.c */
void ops_health(struct request *r);
void ops_ready(struct request *r);
void ops_metrics(struct request *r);
void ops_openapi(struct request *r);
/* ops_samples.c */
void ops_samples(struct request *r);

#endif
