/* See hold_parse.h.  hold_scan accepts a subset of what hold_parse accepts;
 * tests/unit/test_hold_parse.c checks one against the other. */
#include "api/hold_parse.h"

#include <stdlib.h>
#include <string.h>

#include "api/places.h"
#include "json/cursor.h"
#include "json/fields.h"

/* ---- the quick reader ---- */

static bool take_text(struct cursor *c, struct text *ret)
{
    return take_plain_text(c, &ret->data, &ret->len);
}

static bool take_seats(struct cursor *c, struct hold_body *ret)
{
    if (!take(c, '['))
        return false;
    ret->seats = ret->seats_inline;
    do {
        if (ret->n_seats == SEATS_INLINE || !take_text(c, &ret->seats[ret->n_seats]))
            return false;
        ret->n_seats++;
    } while (take(c, ','));
    return take(c, ']');
}

static bool take_ttl(struct cursor *c, int64_t *ret)
{
    return take_integer(c, ret) && *ret >= HOLD_TTL_MS_MIN && *ret <= HOLD_TTL_MS_MAX;
}

static bool text_is(const struct text *t, const char *wanted, size_t len)
{
    return t->len == len && memcmp(t->data, wanted, len) == 0;
}

static bool take_field(struct cursor *c, struct hold_body *ret)
{
    struct text name;
    if (!take_text(c, &name) || !take(c, ':'))
        return false;
    if (text_is(&name, "event", 5))
        return !ret->event.data && take_text(c, &ret->event);
    if (text_is(&name, "seats", 5))
        return !ret->n_seats && take_seats(c, ret);
    if (text_is(&name, "owner", 5))
        return !ret->owner.data && take_text(c, &ret->owner);
    if (text_is(&name, "ttl_ms", 6))
        return !ret->ttl_ms && take_ttl(c, &ret->ttl_ms);
    return false;
}

bool hold_scan(const struct buf *body, struct hold_body *ret)
{
    if (body->len == 0)
        return false;
    struct cursor c = {.at = body->data, .end = body->data + body->len};
    if (!take(&c, '{'))
        return false;
    do {
        if (!take_field(&c, ret))
            return false;
    } while (take(&c, ','));
    if (!take(&c, '}'))
        return false;
    skip_space(&c);
    return c.at == c.end && ret->event.data && ret->n_seats > 0 &&
           ret->owner.len <= HOLD_OWNER_CHARS_MAX;
}

/* ---- the thorough reader ---- */

static bool read_seats(const struct fields *f, struct hold_body *ret)
{
    const json_t *list = NULL;
    if (!field_array(f, "seats", OPTIONAL, &list))
        return false;
    if (!list)
        return true;
    size_t n = json_array_size(list);
    if (n == 0 && json_object_size(json_object_get(f->object, "areas")) > 0)
        return true; /* places of areas alone */
    if (n == 0)
        return field_fail(f, "seats", "must name at least one seat");
    ret->seats = ret->seats_inline;
    if (n > SEATS_INLINE)
        ret->seats = ret->seats_heap = hf_alloc(n * sizeof *ret->seats);
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(list, i);
        if (!json_is_string(name))
            return field_fail(f, "seats", "must be a list of strings");
        ret->seats[i].data = json_string_value(name);
        ret->seats[i].len = json_string_length(name);
    }
    ret->n_seats = n;
    return true;
}

/* The types of the seats that are chosen: those that are named come first. */
static bool read_best_types(const struct fields *best, struct hold_body *ret)
{
    const json_t *types = json_object_get(best->object, "types");
    uint32_t named = 0;
    if (types && !type_counts_read(best, "types", types, &ret->types, &named))
        return false;
    if (named > ret->best_quantity)
        return field_fail(best, "types", "must not be of more seats than quantity");
    type_names_add(&ret->types, NULL, (uint32_t)ret->best_quantity - named);
    return true;
}

static bool read_best(const struct fields *f, struct hold_body *ret)
{
    static const char *const known[] = {"quantity",   "section",  "tier",  "category",
                                        "accessible", "adjacent", "types", NULL};
    const json_t *best = json_object_get(f->object, "best_available");
    bool adjacent = true;
    if (!best)
        return true;
    if (!json_is_object(best))
        return field_fail(f, "best_available", "must be an object");
    if (ret->n_seats)
        return field_fail(f, "best_available", "cannot go with seats; give one of the two");
    const struct fields b = {.object = best, .path = "best_available.", .err = f->err};
    if (!fields_known(&b, known) ||
        !field_int(&b, "quantity", REQUIRED, 1, INT32_MAX, &ret->best_quantity) ||
        !field_text(&b, "section", NULLABLE, 1, PLAN_TEXT_CHARS_MAX, &ret->best_section.data,
                    &ret->best_section.len) ||
        !field_text(&b, "tier", NULLABLE, 1, NAME_CHARS_MAX, &ret->best_tier.data,
                    &ret->best_tier.len) ||
        !field_text(&b, "category", NULLABLE, 1, PLAN_TEXT_CHARS_MAX, &ret->best_category.data,
                    &ret->best_category.len) ||
        !field_bool(&b, "accessible", OPTIONAL, &ret->best_accessible) ||
        !field_bool(&b, "adjacent", OPTIONAL, &adjacent) || !read_best_types(&b, ret))
        return false;
    ret->best_split = !adjacent;
    return true;
}

/* Reads what of a hold's body names places and their types, in the order of the types. */
static bool read_places(const struct fields *f, struct hold_body *ret)
{
    size_t n_known = 0;
    const json_t *types = NULL;
    if (!read_seats(f, ret) || !seat_types_open(f, &types))
        return false;
    seat_types_put(types, ret->seats, ret->n_seats, &ret->types, &n_known);
    if (n_known < json_object_size(types))
        return field_fail(f, "types", "must name seats that are in seats");
    if (!read_best(f, ret) || !area_names_read(f, &ret->areas, &ret->n_areas, &ret->types))
        return false;
    bool any = false;
    for (size_t i = 0; i < ret->types.runs.n; i++)
        any |= ret->types.runs.v[i].id != NULL;
    if (!any)
        vec_clear(&ret->types.runs);
    return true;
}

/* What only sellers may say. */
static bool read_seller_fields(const struct fields *f, struct hold_body *ret)
{
    if (!field_text(f, "channel", NULLABLE, 1, NAME_CHARS_MAX, &ret->channel.data,
                    &ret->channel.len) ||
        !field_bool(f, "resume", OPTIONAL, &ret->resume))
        return false;
    if (ret->channel.data && ret->best_quantity)
        return field_fail(f, "channel", "cannot go with best_available; name the seats");
    if (ret->resume && ret->best_quantity)
        return field_fail(f, "resume", "cannot go with best_available; name the seats");
    if (ret->resume && !ret->owner.data)
        return field_fail(f, "resume", "needs an owner");
    return true;
}

/* What the bodies of holds and of waiting lists have in common. */
static bool read_who_and_where(const struct fields *f, struct hold_body *ret)
{
    if (!field_text(f, "event", REQUIRED, 0, SIZE_MAX, &ret->event.data, &ret->event.len) ||
        !read_places(f, ret) ||
        !field_text(f, "owner", NULLABLE, 0, HOLD_OWNER_CHARS_MAX, &ret->owner.data,
                    &ret->owner.len) ||
        !field_metadata(f, "metadata", &ret->metadata_heap))
        return false;
    if (ret->metadata_heap)
        ret->metadata =
            (struct text){.data = ret->metadata_heap, .len = strlen(ret->metadata_heap)};
    return true;
}

static bool read_hold(const struct fields *f, struct hold_body *ret)
{
    static const char *const known[] = {"event",          "seats", "owner",    "ttl_ms",
                                        "best_available", "areas", "metadata", "channel",
                                        "resume",         "types", NULL};
    if (!fields_known(f, known) || !read_who_and_where(f, ret) ||
        !field_int(f, "ttl_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_TTL_MS_MAX, &ret->ttl_ms) ||
        !read_seller_fields(f, ret))
        return false;
    return ret->n_seats || ret->best_quantity || ret->n_areas ||
           field_fail(f, "seats", "is required, or best_available, or areas");
}

static bool read_wait(const struct fields *f, struct hold_body *ret)
{
    static const char *const known[] = {"event", "best_available", "areas", "owner",
                                        "until", "metadata",       NULL};
    if (!fields_known(f, known) || !read_who_and_where(f, ret) ||
        !field_time(f, "until", &ret->until))
        return false;
    if ((ret->best_quantity > 0) == (ret->n_areas > 0))
        return field_fail(f, "best_available", "is required, or areas; give one of the two");
    if (ret->n_areas > 1)
        return field_fail(f, "areas", "must name one area; wait for each with an entry of its own");
    return ret->metadata.len <= WAIT_METADATA_LEN_MAX ||
           field_fail(f, "metadata", "must have at most 1024 bytes of JSON");
}

static bool parse_with(bool (*read_body)(const struct fields *f, struct hold_body *ret),
                       const struct buf *body, struct hold_body *ret, json_t **ret_json,
                       struct hf_err *err)
{
    json_t *json = parse_body(body, false, err);
    if (!json)
        return false;
    struct hold_body read = {0};
    const struct fields f = {.object = json, .path = "", .err = err};
    if (!read_body(&f, &read)) {
        hold_body_close(&read);
        json_decref(json);
        return false;
    }
    *ret = read;
    if (!ret->seats_heap)
        ret->seats = ret->seats_inline;
    *ret_json = json;
    return true;
}

bool hold_parse(const struct buf *body, struct hold_body *ret, json_t **ret_json,
                struct hf_err *err)
{
    return parse_with(read_hold, body, ret, ret_json, err);
}

bool wait_parse(const struct buf *body, struct hold_body *ret, json_t **ret_json,
                struct hf_err *err)
{
    return parse_with(read_wait, body, ret, ret_json, err);
}

void hold_body_close(struct hold_body *body)
{
    free(body->areas);
    vec_close(&body->types.runs);
    free(body->seats_heap);
    free(body->metadata_heap);
}
