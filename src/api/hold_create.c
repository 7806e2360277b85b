/* POST /v1/holds.  This is the hot path: most requests of a busy sale end in its engine_refuse, on
 * this HTTP thread.
 *
 *   read_request: key, body -> find_event -> find_places: indexes -> engine_refuse? -> submit
 *
 * holds_create runs again when the event or the key has been looked up. */
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/pace.h"
#include "api/places.h"
#include "api/routes.h"
#include "api/seat_names.h"
#include "view/view.h"

#define STRANGER_METADATA_MAX 1024

/* ---- what the request says ---- */

/* hold_scan may have filled in a part of the body before it gave up; hold_parse replaces it. */
static bool read_body(struct call *c)
{
    struct hf_err err = {0};
    if (hold_scan(&c->http.body, &c->hold) || hold_parse(&c->http.body, &c->hold, &c->json, &err))
        return true;
    call_invalid(c, err.msg);
    return false;
}

/* What strangers have stored with their holds is bounded beside their pace (pace.h). */
static bool metadata_fits(struct call *c)
{
    if (c->hold.metadata.len <= STRANGER_METADATA_MAX || !access_is_stranger(&c->http))
        return true;
    call_invalid(c, "metadata must have at most 1024 bytes of JSON without an access key");
    return false;
}

/* Reads the key and the body, once.  Returns false if the call has been refused. */
static bool read_request(struct call *c)
{
    if (c->hold.event.data) /* by an earlier run */
        return true;
    if (!idempotency_read(c) || !read_body(c) || !metadata_fits(c))
        return false;
    bool is_for_sellers = c->hold.channel.data || c->hold.resume;
    return !is_for_sellers || access_require(&c->http, SCOPE_SELLER,
                                             "Only sellers may name a channel or resume a hold.");
}

/* ---- what it names ---- */

int64_t hold_body_places(const struct hold_body *body)
{
    int64_t n = (int64_t)body->n_seats + body->best_quantity;
    for (size_t i = 0; i < body->n_areas; i++)
        n += body->areas[i].quantity;
    return n;
}

/* Returns the event if the request is within its limits.  NULL: the call has been refused, or the
 * event or the key is being looked up. */
static struct event *find_event(struct call *c)
{
    const struct hold_body *body = &c->hold;
    int64_t n_places = hold_body_places(body);
    if (n_places > HOLD_PLACES_MAX) {
        refuse_too_many(c, HOLD_PLACES_MAX);
        return NULL;
    }
    if (!seat_names_distinct(c, body->seats, body->n_seats))
        return NULL;
    struct event *e = call_event_named(c, body->event.data, body->event.len);
    if (!e)
        return NULL;
    int32_t max_per_hold = atomic_load_explicit(&e->shown.max_per_hold, memory_order_relaxed);
    if (n_places > max_per_hold) {
        refuse_too_many(c, max_per_hold);
        return NULL;
    }
    return hold_ttl_fits(c, body->ttl_ms, e) ? e : NULL;
}

bool hold_areas_find(struct call *c, const struct event *e)
{
    const struct hold_body *body = &c->hold;
    if (!body->n_areas)
        return true;
    free(c->places.areas_heap); /* of an earlier run */
    c->places.areas_heap = hf_alloc(body->n_areas * sizeof *c->places.areas_heap);
    return area_names_find(c, e, body->areas, body->n_areas, c->places.areas_heap);
}

int32_t hold_tier_find(const struct event *e, const struct text *tier)
{
    for (size_t i = 0; i < e->def->sections.n; i++) {
        const char *name = e->def->sections.v[i].tier;
        if (name && strlen(name) == tier->len && memcmp(name, tier->data, tier->len) == 0)
            return (int32_t)i;
    }
    return -1;
}

bool hold_best_find(struct call *c, const struct event *e, struct best_want *ret)
{
    const struct hold_body *body = &c->hold;
    *ret = (struct best_want){.quantity = (uint32_t)body->best_quantity,
                              .section = -1,
                              .accessible = body->best_accessible,
                              .tier = body->best_tier.data,
                              .tier_len = body->best_tier.len,
                              .adjacent = !body->best_split};
    const struct text *section = &body->best_section;
    if (section->data && (ret->section = event_section_find(e, section->data, section->len)) < 0) {
        refuse_no_such_place(c, "section", section);
        return false;
    }
    if (body->best_tier.data && hold_tier_find(e, &body->best_tier) < 0) {
        refuse_no_such_place(c, "tier", &body->best_tier);
        return false;
    }
    const struct text *category = &body->best_category;
    int64_t found = category->data ? event_category_find(e, category->data, category->len) : -1;
    if (category->data && found < 0) {
        refuse_no_such_place(c, "category", category);
        return false;
    }
    ret->category = (uint32_t)(found + 1);
    return true;
}

/* Returns false if the call has been refused, or its key is being looked up. */
static bool find_best(struct call *c, const struct event *e, struct hold_create *op)
{
    if (!c->hold.best_quantity)
        return true;
    if (!hold_best_find(c, e, &op->best))
        return false;
    call_seat_room(c, op->best.quantity);
    op->seats = c->places.seats;
    op->shortage.taken = c->places.taken;
    return true;
}

/* Finds the number of the channel.  A hold of a channel that does not exist is judged like any
 * other: whatever is blocked is taken. */
static void find_channel(const struct call *c, struct event *e, struct hold_create *op)
{
    const struct text *channel = &c->hold.channel;
    if (!channel->data)
        return;
    const struct event_terms *terms = event_terms_take(e);
    op->channel = event_terms_channel(terms, channel->data, channel->len);
    event_terms_give(terms);
    if (!op->channel)
        op->channel = NO_CHANNEL;
}

/* Fills in the command.  Returns false if the call has been refused, or its key is being looked up.
 */
static bool find_places(struct call *c, struct event *e)
{
    const struct hold_body *body = &c->hold;
    struct hold_create *op = &c->command.create;
    uint32_t n_seats = (uint32_t)body->n_seats;
    if (!seat_names_find(c, e, body->seats, n_seats))
        return false;
    *op = (struct hold_create){.seats = c->places.seats,
                               .n_seats = n_seats,
                               .ttl_ms = body->ttl_ms,
                               .owner = body->owner.data,
                               .owner_len = body->owner.len,
                               .metadata = body->metadata.data,
                               .metadata_len = body->metadata.len,
                               .is_box_office = access_has_key(&c->http, SCOPE_SELLER),
                               .resume = body->resume,
                               .types = body->types.runs.v,
                               .n_types = (uint32_t)body->types.runs.n,
                               .shortage = {.taken = c->places.taken}};
    if (!hold_areas_find(c, e) || !find_best(c, e, op))
        return false;
    op->areas = c->places.areas_heap;
    op->n_areas = (uint32_t)body->n_areas;
    find_channel(c, e, op);
    c->command.kind = CMD_HOLD_CREATE;
    c->command.event = e;
    return true;
}

/* ---- the request ---- */

void holds_create(struct request *r)
{
    struct call *c = call_of(r);
    if (!read_request(c))
        return;
    struct event *e = find_event(c);
    if (!e || !find_places(c, e))
        return;
    if (engine_refuse(call_engine(c), &c->command)) {
        call_answer(r);
        return;
    }
    if (!pace_spend(c, PACE_HOLDS))
        return;
    /* Half a microsecond, which a refusal need not pay. */
    c->command.create.client = access_client(r);
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}
