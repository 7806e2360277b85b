/* See seat_names.h.  On HTTP threads. */
#include "api/seat_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "view/view.h"

static bool same_text(const struct text *a, const struct text *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static const struct text *find_duplicate_of_many(const struct text *names, size_t n)
{
    size_t mask = 64;
    while (mask < n * 2) /* half full at most */
        mask *= 2;
    uint32_t *slots = hf_alloc(mask-- * sizeof *slots); /* 1 + index */
    const struct text *twice = NULL;
    for (size_t i = 0; i < n && !twice; i++) {
        size_t at = hash_keyed(names[i].data, names[i].len) & mask;
        for (; slots[at] && !same_text(&names[i], &names[slots[at] - 1]); at = (at + 1) & mask)
            ;
        if (slots[at])
            twice = &names[i];
        slots[at] = (uint32_t)(i + 1);
    }
    free(slots);
    return twice;
}

const struct text *find_duplicate(const struct text *names, size_t n)
{
    if (n > SEATS_INLINE)
        return find_duplicate_of_many(names, n);
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (same_text(&names[i], &names[k]))
                return &names[i];
    return NULL;
}

bool seat_names_distinct(struct call *c, const struct text *names, size_t n)
{
    const struct text *twice = find_duplicate(names, n);
    if (!twice)
        return true;
    if (!key_is_unused(c))
        return false;
    problem_open(&c->http, problem_of(VERDICT_DUPLICATE_SEAT), NULL);
    json_open(&c->http.out, "seats", '[');
    json_put_bytes(&c->http.out, NULL, twice->data, twice->len);
    buf_char(&c->http.out, ']');
    problem_close(&c->http);
    return false;
}

/* Lists those names whose numbers are in c->places.taken. */
static void refuse_unknown(struct call *c, const struct text *names, size_t n_unknown)
{
    struct buf *out = &c->http.out;
    problem_open(&c->http, problem_of(VERDICT_NO_SUCH_SEAT), NULL);
    json_open(out, "seats", '[');
    for (size_t i = 0; i < n_unknown; i++) {
        const struct text *name = &names[c->places.taken[i]];
        json_put_bytes(out, NULL, name->data, name->len);
    }
    buf_char(out, ']');
    problem_close(&c->http);
}

bool seat_names_find(struct call *c, const struct event *e, const struct text *names, uint32_t n)
{
    size_t n_unknown = 0;
    call_seat_room(c, n);
    for (uint32_t i = 0; i < n; i++)
        if (!event_seat_find(e, names[i].data, names[i].len, &c->places.seats[i]))
            c->places.taken[n_unknown++] = i;
    if (n_unknown == 0)
        return true;
    if (key_is_unused(c))
        refuse_unknown(c, names, n_unknown);
    return false;
}

bool seat_name_find(struct call *c, const struct event *e, struct text name, uint32_t *ret)
{
    if (!utf8_is_valid(name.data, name.len)) { /* no seat's name, and not fit for an answer */
        call_refuse(c, VERDICT_NO_SUCH_SEAT, NULL);
        return false;
    }
    if (!seat_names_find(c, e, &name, 1))
        return false;
    *ret = c->places.seats[0];
    return true;
}

void refuse_no_such_place(struct call *c, const char *what, const struct text *name)
{
    char detail[256];
    if (!key_is_unused(c))
        return;
    (void)snprintf(detail, sizeof detail, "The event has no %s named %.*s", what,
                   (int)(name->len > 128 ? 128 : name->len), name->data);
    call_refuse(c, VERDICT_NO_SUCH_SEAT, detail);
}

void refuse_too_many(struct call *c, int64_t max)
{
    char detail[64];
    if (!key_is_unused(c))
        return;
    (void)snprintf(detail, sizeof detail, "a hold may have at most %lld places", (long long)max);
    call_refuse(c, VERDICT_TOO_MANY_SEATS, detail);
}

bool area_names_find(struct call *c, const struct event *e, const struct area_text *names, size_t n,
                     struct area_claim *ret)
{
    for (size_t i = 0; i < n; i++) {
        int64_t area = event_area_find(e, names[i].name.data, names[i].name.len);
        if (area < 0) {
            refuse_no_such_place(c, "area", &names[i].name);
            return false;
        }
        ret[i] = (struct area_claim){.area = (uint32_t)area, .quantity = names[i].quantity};
    }
    return true;
}
