/* /v1/holds and /v1/bookings: bytes to commands.  holds_create is the hot path: most of a sale's
 * requests end in its engine_refuse, on this thread. */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/idempotency.h"
#include "api/parse.h"
#include "api/routes.h"

#define REFERENCE_CHARS_MAX 255

static void create_with_event(struct request *r);

/* ---- POST /v1/holds ---- */

static void answer_too_many(struct request *r, int64_t max)
{
    struct hf_err err;
    (void)hf_err_set(&err, HF_TOO_MANY_SEATS, "a hold may have at most %lld places",
                     (long long)max);
    answer_problem(r, HF_TOO_MANY_SEATS, err.msg);
}

static int64_t count_places(const struct hold_body *body)
{
    int64_t n = (int64_t)body->n_seats + body->best_quantity;
    for (size_t i = 0; i < body->n_areas; i++)
        n += body->areas[i].quantity;
    return n;
}

/* hold_scan may have filled in some of the body before it gave up. */
static bool read_create(struct request *r)
{
    struct hf_err err = {0};
    if (hold_scan(&r->body, &r->hold))
        return true;
    if (hold_parse(&r->body, &r->hold, &r->json, &err))
        return true;
    answer_problem(r, HF_INVALID_REQUEST, err.msg);
    return false;
}

void holds_create(struct request *r)
{
    struct command *c = &r->command;
    const struct hold_body *body = &r->hold;
    if (!idempotency_read(r) || !read_create(r))
        return;
    if (count_places(body) > HOLD_PLACES_MAX) {
        answer_too_many(r, HOLD_PLACES_MAX);
        return;
    }
    const struct text *twice = find_duplicate(body->seats, body->n_seats);
    if (twice) {
        answer_seat_list(r, HF_DUPLICATE_SEAT, &twice, 1);
        return;
    }
    if (!id_parse(body->event.data, body->event.len, "evt_", &r->event_id))
        r->event_id.key = 0; /* an unknown id */
    c->ttl_ms = body->ttl_ms;
    c->owner = body->owner.data;
    c->owner_len = body->owner.len;
    c->metadata = body->metadata.data;
    c->metadata_len = body->metadata.len;
    create_with_event(r);
}

static void answer_no_such_place(struct request *r, const char *what, const struct text *name)
{
    struct hf_err err;
    (void)hf_err_set(&err, HF_NO_SUCH_SEAT, "The event has no %s named %.*s", what,
                     (int)(name->len > 128 ? 128 : name->len), name->data);
    answer_problem(r, HF_NO_SUCH_SEAT, err.msg);
}

static bool find_areas(struct request *r, const struct event *e)
{
    struct command *c = &r->command;
    const struct hold_body *body = &r->hold;
    if (!body->n_areas)
        return true;
    r->areas_heap = hf_alloc(body->n_areas * sizeof *r->areas_heap);
    for (size_t i = 0; i < body->n_areas; i++) {
        const struct text *name = &body->areas[i].name;
        int64_t area = event_area_find(e, name->data, name->len);
        if (area < 0) {
            answer_no_such_place(r, "area", name);
            return false;
        }
        r->areas_heap[i].area = (uint32_t)area;
        r->areas_heap[i].quantity = body->areas[i].quantity;
    }
    c->areas = r->areas_heap;
    c->n_areas = (uint32_t)body->n_areas;
    return true;
}

static bool has_tier(const struct event *e, const struct text *tier)
{
    for (size_t i = 0; i < e->def->sections.n; i++) {
        const char *name = e->def->sections.v[i].tier;
        if (name && strlen(name) == tier->len && memcmp(name, tier->data, tier->len) == 0)
            return true;
    }
    return false;
}

static bool find_best(struct request *r, const struct event *e)
{
    struct command *c = &r->command;
    const struct hold_body *body = &r->hold;
    if (!body->best_quantity)
        return true;
    c->best = (struct best_want){.quantity = (uint32_t)body->best_quantity,
                                 .section = -1,
                                 .tier = body->best_tier.data,
                                 .tier_len = body->best_tier.len,
                                 .adjacent = !body->best_split};
    const struct text *section = &body->best_section;
    if (section->data &&
        (c->best.section = event_section_find(e, section->data, section->len)) < 0) {
        answer_no_such_place(r, "section", section);
        return false;
    }
    if (body->best_tier.data && !has_tier(e, &body->best_tier)) {
        answer_no_such_place(r, "tier", &body->best_tier);
        return false;
    }
    c->seats = r->seats_inline;
    c->taken = r->taken_inline;
    if (c->best.quantity > SEATS_INLINE) {
        c->seats = r->seats_heap = hf_alloc(sizeof *c->seats * 2 * c->best.quantity);
        c->taken = c->seats + c->best.quantity;
    }
    return true;
}

static bool ttl_fits(struct request *r, const struct event *e)
{
    if (r->command.ttl_ms <= e->def->hold_ttl_ms)
        return true;
    struct hf_err err;
    (void)hf_err_set(&err, HF_INVALID_REQUEST, "ttl_ms must be from %d to the event's %lld",
                     HOLD_TTL_MS_FLOOR, (long long)e->def->hold_ttl_ms);
    answer_problem(r, HF_INVALID_REQUEST, err.msg);
    return false;
}

static void create_with_event(struct request *r)
{
    struct command *c = &r->command;
    struct event *e = request_event(r, r->event_id.key, HF_NO_SUCH_EVENT, create_with_event);
    if (!e)
        return;
    if (!id_secret_equal(e->def->id.secret, r->event_id.secret)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return;
    }
    if (count_places(&r->hold) > e->def->max_per_hold) {
        answer_too_many(r, e->def->max_per_hold);
        return;
    }
    if (!ttl_fits(r, e) || !request_find_seats(r, e, r->hold.seats, (uint32_t)r->hold.n_seats) ||
        !find_areas(r, e) || !find_best(r, e))
        return;
    c->kind = CMD_HOLD_CREATE;
    c->event = e;
    if (engine_refuse(request_engine(r), c)) {
        answer_command(r);
        return;
    }
    c->client = access_client(r); /* half a microsecond, which refusals need not pay */
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

/* ---- a hold or booking by its id ---- */

/* The event of the hold or booking named in the path is loaded, and the command knows both.
 * False: answered, or on its way and `again` will run. */
static bool find_by_id(struct request *r, const char *prefix, enum hf_status missing, step_fn again)
{
    struct command *c = &r->command;
    if (!id_parse(r->segment, r->segment_len, prefix, &c->id)) {
        answer_problem(r, missing, NULL);
        return false;
    }
    struct event *e = request_event(r, HOLD_EVENT(c->id.key), missing, again);
    if (!e)
        return false; /* the command may be lent by now: hands off */
    c->event = e;
    return true;
}

void holds_get(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, holds_get))
        return;
    r->command.kind = CMD_HOLD_GET;
    request_wait(r, answer_command);
}

void holds_release(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, holds_release))
        return;
    r->command.kind = CMD_HOLD_RELEASE;
    request_wait(r, answer_command);
}

static void evict_with_event(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, evict_with_event))
        return;
    r->command.kind = CMD_HOLD_EVICT;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

void holds_evict(struct request *r)
{
    if (request_empty_body(r))
        evict_with_event(r);
}

void bookings_get(struct request *r)
{
    if (!find_by_id(r, "bkg_", HF_NO_SUCH_BOOKING, bookings_get))
        return;
    r->command.kind = CMD_BOOKING_GET;
    request_wait(r, answer_command);
}

static void renew_with_event(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, renew_with_event) ||
        !ttl_fits(r, r->command.event))
        return;
    r->command.kind = CMD_HOLD_RENEW;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

void holds_renew(struct request *r)
{
    static const char *const known[] = {"ttl_ms", NULL};
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return;
    r->json = parse_body(&r->body, true, &err);
    const struct fields f = {.object = r->json, .path = "", .err = &err};
    if (!r->json || !fields_known(&f, known) ||
        !field_int(&f, "ttl_ms", OPTIONAL, HOLD_TTL_MS_FLOOR, HOLD_TTL_MS_CEILING,
                   &r->command.ttl_ms)) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return;
    }
    renew_with_event(r);
}

static void confirm_with_event(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, confirm_with_event))
        return;
    r->command.kind = CMD_HOLD_CONFIRM;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

void holds_confirm(struct request *r)
{
    static const char *const known[] = {"fence", "reference", "rescue", NULL};
    struct command *c = &r->command;
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return;
    r->json = parse_body(&r->body, false, &err);
    const struct fields f = {.object = r->json, .path = "", .err = &err};
    if (!r->json || !fields_known(&f, known) ||
        !field_int(&f, "fence", REQUIRED, 0, INT64_MAX, &c->fence) ||
        !field_text(&f, "reference", NULLABLE, 0, REFERENCE_CHARS_MAX, &c->reference,
                    &c->reference_len) ||
        !field_bool(&f, "rescue", OPTIONAL, &c->rescue)) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return;
    }
    confirm_with_event(r);
}
