/* PATCH /v1/holds/{h}: other places for a hold, or other ticket types.  The names are read again
 * whenever the step runs again; only their indexes are kept, and the ids of types, whose texts are
 * those of the body.  On HTTP threads. */
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
    struct text *retyped; /* seats that the hold keeps as another type; for free() */
    size_t n_retyped;
    struct type_names add_types;    /* of add.seats, retyped and add.areas */
    struct type_names remove_types; /* of remove.areas */
};

static void change_body_close(struct change_body *body)
{
    place_names_close(&body->add);
    place_names_close(&body->remove);
    free(body->retyped);
    vec_close(&body->add_types.runs);
    vec_close(&body->remove_types.runs);
}

static bool read_places(const struct fields *f, const char *name, const char *path,
                        struct type_names *types, struct place_names *ret)
{
    static const char *const known[] = {"seats", "areas", NULL};
    const json_t *object = json_object_get(f->object, name);
    const struct fields places = {.object = object, .path = path, .err = f->err};
    return !object || (fields_known(&places, known) && place_names_read(&places, ret, types));
}

static bool same_text(const struct text *a, const struct text *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static bool lists(const struct text *names, size_t n, const struct text *name)
{
    for (size_t i = 0; i < n; i++)
        if (same_text(&names[i], name))
            return true;
    return false;
}

/* Only the types of an event can tell whether an area that is in both loses and gets the same. */
static bool areas_differ(const struct fields *f, const struct change_body *body)
{
    for (size_t i = 0; i < body->add_types.runs.n; i++)
        if (body->add_types.runs.v[i].id)
            return true;
    for (size_t i = 0; i < body->remove_types.runs.n; i++)
        if (body->remove_types.runs.v[i].id)
            return true;
    for (size_t i = 0; i < body->add.n_areas; i++)
        for (size_t k = 0; k < body->remove.n_areas; k++)
            if (same_text(&body->add.areas[i].name, &body->remove.areas[k].name))
                return field_fail(f, "add.areas", "and remove.areas must not name the same area");
    return true;
}

/* Reads `types`, of seats that are added and of others, which the hold is to have already. */
static bool read_types(const struct fields *f, const json_t *types, struct change_body *ret)
{
    json_t *object = (json_t *)(uintptr_t)types; /* jansson's iterators take no const */
    size_t n = json_object_size(types), n_known = 0;
    if (ret->add.n_seats > HOLD_PLACES_MAX || ret->remove.n_seats > HOLD_PLACES_MAX)
        return true; /* too many, as the caller finds next */
    seat_types_put(types, ret->add.seats, ret->add.n_seats, &ret->add_types, &n_known);
    ret->retyped = hf_alloc((n + 1) * sizeof *ret->retyped);
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *name = json_object_iter_key(it);
        const struct text seat = {.data = name, .len = strlen(name)};
        if (lists(ret->remove.seats, ret->remove.n_seats, &seat))
            return field_fail(f, "types", "must not name a seat that is in remove.seats");
        if (!lists(ret->add.seats, ret->add.n_seats, &seat))
            ret->retyped[ret->n_retyped++] = seat;
    }
    seat_types_put(types, ret->retyped, ret->n_retyped, &ret->add_types, &n_known);
    return true;
}

static bool read_body(struct call *c, struct change_body *ret, struct hf_err *err)
{
    static const char *const known[] = {"fence", "add", "remove", "types", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    struct type_names area_types = {0};
    const json_t *types = NULL;
    bool ok = f.object && fields_known(&f, known) &&
              field_int(&f, "fence", REQUIRED, 0, INT64_MAX, &ret->fence) &&
              read_places(&f, "add", "add.", &area_types, &ret->add) &&
              read_places(&f, "remove", "remove.", &ret->remove_types, &ret->remove) &&
              seat_types_open(&f, &types) && read_types(&f, types, ret);
    for (size_t i = 0; i < area_types.runs.n; i++)
        type_names_add(&ret->add_types, area_types.runs.v[i].id, area_types.runs.v[i].n);
    vec_close(&area_types.runs);
    if (!ok || !areas_differ(&f, ret))
        return false;
    if (!ret->add.n_seats && !ret->add.n_areas && !ret->remove.n_seats && !ret->remove.n_areas &&
        !ret->n_retyped)
        return field_fail(&f, "add", "or remove must name a seat or an area, or types a seat");
    return true;
}

/* Puts the indexes of the added seats, of those that are kept as another type, and of the removed
 * ones into c->places.seats. */
static bool find_seats(struct call *c, const struct event *e, const struct change_body *body)
{
    const struct text *named[] = {body->add.seats, body->retyped, body->remove.seats};
    const size_t lens[] = {body->add.n_seats, body->n_retyped, body->remove.n_seats};
    size_t n = 0;
    struct text *names = hf_alloc((lens[0] + lens[1] + lens[2] + 1) * sizeof *names);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < lens[i]; k++)
            names[n++] = named[i][k];
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

/* Keeps the runs of types, whose texts are those of c->json, for the command. */
static void keep_types(struct call *c, const struct change_body *body)
{
    size_t n_add = body->add_types.runs.n, n_remove = body->remove_types.runs.n;
    free(c->places.types_heap); /* of an earlier run of the same step */
    c->places.types_heap = hf_alloc((n_add + n_remove + 1) * sizeof *c->places.types_heap);
    for (size_t i = 0; i < n_add; i++)
        c->places.types_heap[i] = body->add_types.runs.v[i];
    for (size_t i = 0; i < n_remove; i++)
        c->places.types_heap[n_add + i] = body->remove_types.runs.v[i];
}

/* Returns true if the command is ready to be submitted. */
static bool judge(struct call *c, const struct change_body *body)
{
    struct id id;
    if (place_names_count(&body->add) + (int64_t)body->n_retyped > HOLD_PLACES_MAX ||
        place_names_count(&body->remove) > HOLD_PLACES_MAX) {
        refuse_too_many(c, HOLD_PLACES_MAX);
        return false;
    }
    if (!find_seats(c, NULL, body))
        return false;
    struct event *e = path_hold(c, &id);
    if (!e || !find_seats(c, e, body) || !find_areas(c, e, body))
        return false;
    keep_types(c, body);
    c->command.kind = CMD_HOLD_CHANGE;
    c->command.event = e;
    c->command.change =
        (struct hold_change){.hold = {.id = id},
                             .fence = body->fence,
                             .add = c->places.seats,
                             .n_add = (uint32_t)(body->add.n_seats + body->n_retyped),
                             .remove = c->places.seats + body->add.n_seats,
                             .n_remove = (uint32_t)(body->n_retyped + body->remove.n_seats),
                             .n_retyped = (uint32_t)body->n_retyped,
                             .add_areas = c->places.areas_heap,
                             .n_add_areas = (uint32_t)body->add.n_areas,
                             .remove_areas = c->places.areas_heap + body->add.n_areas,
                             .n_remove_areas = (uint32_t)body->remove.n_areas,
                             .add_types = c->places.types_heap,
                             .n_add_types = (uint32_t)body->add_types.runs.n,
                             .remove_types = c->places.types_heap + body->add_types.runs.n,
                             .n_remove_types = (uint32_t)body->remove_types.runs.n,
                             .is_seller = c->http.caller.scope >= SCOPE_SELLER,
                             .is_box_office = access_has_key(&c->http, SCOPE_SELLER),
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
    change_body_close(&body);
}
