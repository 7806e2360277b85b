/* See places.h. */
#include "api/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AREAS_NAMED_MAX HOLD_PLACES_MAX /* by one request */
_Static_assert(AREAS_NAMED_MAX == 500, "the message states it");

bool area_names_read(const struct fields *f, struct area_text **ret, size_t *ret_n)
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
        int64_t quantity = 0;
        if (!field_int(&a, name, REQUIRED, 1, INT32_MAX, &quantity))
            return false;
        (*ret)[(*ret_n)++] = (struct area_text){.name = {.data = name, .len = strlen(name)},
                                                .quantity = (uint32_t)quantity};
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

bool place_names_read(const struct fields *f, struct place_names *ret)
{
    return read_seats(f, ret) && area_names_read(f, &ret->areas, &ret->n_areas);
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
