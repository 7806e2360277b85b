/* PATCH /v1/holds/{h}: other places for a hold.  The names are read again whenever the step runs
 * again; only their indexes are kept.  On HTTP threads. */
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/pace.h"
#include "api/places.h"
#include "api/routes.h"
#include "api/seat_names.h"
#include "view/view.h"

struct change_body {
    int64_t fence;
    struct place_names add, remove;
};

static bool read_places(const struct fields *f, const char *name, const char *path,
                        struct place_names *ret)
{
    static const char *const known[] = {"seats", "areas", NULL};
    const json_t *object = json_object_get(f->object, name);
    const struct fields places = {.object = object, .path = path, .err = f->err};
    return !object || (fields_known(&places, known) && place_names_read(&places, ret));
}

static bool same_area(const struct area_text *a, const struct area_text *b)
{
    return a->name.len == b->name.len && memcmp(a->name.data, b->name.data, a->name.len) == 0;
}

static bool areas_differ(const struct fields *f, const struct change_body *body)
{
    for (size_t i = 0; i < body->add.n_areas; i++)
        for (size_t k = 0; k < body->remove.n_areas; k++)
            if (same_area(&body->add.areas[i], &body->remove.areas[k]))
                return field_fail(f, "add.areas", "and remove.areas must not name the same area");
    return true;
}

static bool read_body(struct call *c, struct change_body *ret, struct hf_err *err)
{
    static const char *const known[] = {"fence", "add", "remove", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    if (!f.object || !fields_known(&f, known) ||
        !field_int(&f, "fence", REQUIRED, 0, INT64_MAX, &ret->fence) ||
        !read_places(&f, "add", "add.", &ret->add) ||
        !read_places(&f, "remove", "remove.", &ret->remove) || !areas_differ(&f, ret))
        return false;
    if (!ret->add.n_seats && !ret->add.n_areas && !ret->remove.n_seats && !ret->remove.n_areas)
        return field_fail(&f, "add", "or remove must name at least one seat or area");
    return true;
}

/* Puts the indexes of the added seats, and then of the removed ones, into c->places.seats. */
static bool find_seats(struct call *c, const struct event *e, const struct change_body *body)
{
    size_t n_add = body->add.n_seats, n = n_add + body->remove.n_seats;
    struct text *names = hf_alloc((n + 1) * sizeof *names);
    memcpy(names, body->add.seats ? body->add.seats : names, n_add * sizeof *names);
    for (size_t i = 0; i < body->remove.n_seats; i++)
        names[n_add + i] = body->remove.seats[i];
    bool found =
        seat_names_distinct(c, names, n) && (!e || seat_names_find(c, e, names, (uint32_t)n));
    free(names);
    return found;
}

static bool find_areas(struct call *c, const struct event *e, const struct change_body *body)
{
    size_t n_add = body->add.n_areas;
    free(c->places.areas_heap); /* of an earlier run of the same step */
    c->places.areas_heap =
        hf_alloc((n_add + body->remove.n_areas + 1) * sizeof *c->places.areas_heap);
    return area_names_find(c, e, body->add.areas, n_add, c->places.areas_heap) &&
           area_names_find(c, e, body->remove.areas, body->remove.n_areas,
                           c->places.areas_heap + n_add);
}

/* Returns true if the command is ready to be submitted. */
static bool judge(struct call *c, const struct change_body *body)
{
    struct id id;
    if (place_names_count(&body->add) > HOLD_PLACES_MAX ||
        place_names_count(&body->remove) > HOLD_PLACES_MAX) {
        refuse_too_many(c, HOLD_PLACES_MAX);
        return false;
    }
    if (!find_seats(c, NULL, body))
        return false;
    struct event *e = path_hold(c, &id);
    if (!e || !find_seats(c, e, body) || !find_areas(c, e, body))
        return false;
    c->command.kind = CMD_HOLD_CHANGE;
    c->command.event = e;
    c->command.change =
        (struct hold_change){.hold = {.id = id},
                             .fence = body->fence,
                             .add = c->places.seats,
                             .n_add = (uint32_t)body->add.n_seats,
                             .remove = c->places.seats + body->add.n_seats,
                             .n_remove = (uint32_t)body->remove.n_seats,
                             .add_areas = c->places.areas_heap,
                             .n_add_areas = (uint32_t)body->add.n_areas,
                             .remove_areas = c->places.areas_heap + body->add.n_areas,
                             .n_remove_areas = (uint32_t)body->remove.n_areas,
                             .is_seller = c->http.caller.scope >= SCOPE_SELLER,
                             .client = access_client(&c->http),
                             .shortage = {.taken = c->places.taken, .short_area = -1}};
    return true;
}

/* Taking more places is like making a hold, which not everybody may (--public-holds). */
static bool may_add(struct call *c, const struct change_body *body)
{
    return (!body->add.n_seats && !body->add.n_areas) ||
           access_require(&c->http, SCOPE_BUYER, "Adding places needs what making a hold needs.");
}

void holds_change(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    struct change_body body = {0};
    if (!idempotency_read(c))
        return;
    if (!read_body(c, &body, &err)) {
        call_invalid(c, err.msg);
    } else if (may_add(c, &body) && judge(c, &body) && pace_spend(c, PACE_CHANGES)) {
        idempotency_hash_request(c);
        call_submit(c, call_answer);
    }
    place_names_close(&body.add);
    place_names_close(&body.remove);
}
