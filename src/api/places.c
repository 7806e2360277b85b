/* See places.h. */
#include "api/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AREAS_NAMED_MAX HOLD_PLACES_MAX /* by one request */
_Static_assert(AREAS_NAMED_MAX == 500 && TYPES_MAX == 16, "the messages state them");

/* ---- ticket types ---- */

static bool is_same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

void type_names_add(struct type_names *types, const char *id, uint32_t n)
{
    const struct type_run run = {.id = id, .id_len = id ? strlen(id) : 0, .n = n};
    size_t n_runs = types->runs.n;
    if (n_runs && is_same(types->runs.v[n_runs - 1].id, id) &&
        n <= UINT32_MAX - types->runs.v[n_runs - 1].n)
        types->runs.v[n_runs - 1].n += n;
    else if (n)
        *vec_push(&types->runs) = run;
}

bool type_counts_read(const struct fields *f, const char *name, const json_t *counts,
                      struct type_names *types, uint32_t *ret_n)
{
    json_t *object = (json_t *)(uintptr_t)counts; /* jansson's iterators take no const */
    char path[128];
    int64_t sum = 0;
    if (!json_is_object(counts) || !json_object_size(counts))
        return field_fail(f, name, "must be an object of ticket types and quantities");
    if (json_object_size(counts) > TYPES_MAX)
        return field_fail(f, name, "must have at most 16 keys");
    size_t len = strnlen(name, 60);
    while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
        len--; /* so as not to end in the middle of a character */
    (void)snprintf(path, sizeof path, "%.60s%.*s.", f->path, (int)len, name);
    const struct fields t = {.object = counts, .path = path, .err = f->err};
    for (void *it = json_object_iter(object); it; it = json_object_iter_next(object, it)) {
        const char *id = json_object_iter_key(it);
        int64_t n = 0;
        if (!field_int(&t, id, REQUIRED, 1, INT32_MAX, &n))
            return false;
        if (sum + n > INT32_MAX)
            return field_fail(f, name, "must be at most 2147483647 together");
        sum += n;
        type_names_add(types, id, (uint32_t)n);
    }
    *ret_n = (uint32_t)sum;
    return true;
}

bool seat_types_open(const struct fields *f, const json_t **ret)
{
    json_t *types = json_object_get(f->object, "types");
    const struct fields t = {.object = types, .path = "types.", .err = f->err};
    *ret = types;
    if (!types)
        return true;
    if (!json_is_object(types))
        return field_fail(f, "types", "must be an object of seats and ticket types");
    if (json_object_size(types) > HOLD_PLACES_MAX)
        return field_fail(f, "types", "must have at most 500 keys");
    for (void *it = json_object_iter(types); it; it = json_object_iter_next(types, it)) {
        const char *id;
        size_t len;
        if (!field_text(&t, json_object_iter_key(it), REQUIRED, 1, TYPE_ID_LEN_MAX, &id, &len))
            return false;
    }
    return true;
}

void seat_types_put(const json_t *types, const struct text *seats, size_t n, struct type_names *ret,
                    size_t *ret_n)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *id = types ? json_object_getn(types, seats[i].data, seats[i].len) : NULL;
        type_names_add(ret, id ? json_string_value(id) : NULL, 1);
        *ret_n += id != NULL;
    }
}

/* ---- places ---- */

/* An area's quantity, or the quantities of ticket types. */
static bool read_quantity(const struct fields *areas, const char *name, struct type_names *types,
                          uint32_t *ret)
{
    const json_t *value = json_object_get(areas->object, name);
    int64_t quantity = 0;
    if (types && json_is_object(value))
        return type_counts_read(areas, name, value, types, ret);
    if (!field_int(areas, name, REQUIRED, 1, INT32_MAX, &quantity))
        return false;
    *ret = (uint32_t)quantity;
    if (types)
        type_names_add(types, NULL, *ret);
    return true;
}

bool area_names_read(const struct fields *f, struct area_text **ret, size_t *ret_n,
                     struct type_names *types)
{
    json_t *areas = json_object_get(f->object, "areas");
    if (!areas)
        return true;
    if (!json_is_object(areas))
        return field_fail(f, "areas", "must be an object of names and quantities");
    size_t n = json_object_size(areas);
    if (n > AREAS_NAMED_MAX)
        return field_fail(f, "areas", "must have at most 500 keys");
    *ret = hf_alloc((n + 1) * sizeof **ret);
    char path[64];
    (void)snprintf(path, sizeof path, "%.50sareas.", f->path);
    const struct fields a = {.object = areas, .path = path, .err = f->err};
    for (void *it = json_object_iter(areas); it; it = json_object_iter_next(areas, it)) {
        const char *name = json_object_iter_key(it);
        uint32_t quantity = 0;
        if (!read_quantity(&a, name, types, &quantity))
            return false;
        (*ret)[(*ret_n)++] =
            (struct area_text){.name = {.data = name, .len = strlen(name)}, .quantity = quantity};
    }
    return true;
}

static bool read_seats(const struct fields *f, struct place_names *ret)
{
    const json_t *list = NULL;
    if (!field_array(f, "seats", OPTIONAL, &list))
        return false;
    size_t n = list ? json_array_size(list) : 0;
    ret->seats = hf_alloc((n + 1) * sizeof *ret->seats);
    for (; ret->n_seats < n; ret->n_seats++) {
        const json_t *name = json_array_get(list, ret->n_seats);
        if (!json_is_string(name))
            return field_fail(f, "seats", "must be a list of strings");
        ret->seats[ret->n_seats] =
            (struct text){.data = json_string_value(name), .len = json_string_length(name)};
    }
    return true;
}

bool place_names_read(const struct fields *f, struct place_names *ret, struct type_names *types)
{
    return read_seats(f, ret) && area_names_read(f, &ret->areas, &ret->n_areas, types);
}

void place_names_close(struct place_names *p)
{
    free(p->seats);
    free(p->areas);
}

int64_t place_names_count(const struct place_names *p)
{
    int64_t n = (int64_t)p->n_seats;
    for (size_t i = 0; i < p->n_areas; i++)
        n += p->areas[i].quantity;
    return n;
}
