/* Lists of seats in requests: names to indexes, duplicates, and the refusals that list some. */
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/parse.h"
#include "base/utf8.h"
#include "http/request.h"

static bool same_text(const struct text *a, const struct text *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static uint32_t hash_text(const struct text *text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text->len; i++)
        hash = (hash ^ (unsigned char)text->data[i]) * 16777619u;
    return hash;
}

static const struct text *find_duplicate_of_many(const struct text *names, size_t n)
{
    size_t mask = 64;
    while (mask < n * 2) /* half full at most */
        mask *= 2;
    uint32_t *slots = hf_alloc(mask-- * sizeof *slots); /* 1 + index */
    const struct text *twice = NULL;
    for (size_t i = 0; i < n && !twice; i++) {
        size_t at = hash_text(&names[i]) & mask;
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

void answer_seat_list(struct request *r, enum hf_status status, const struct text *const *names,
                      size_t n)
{
    problem_open(r, status, NULL);
    buf_lit(&r->out, ",\"seats\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(&r->out, ',');
        buf_json(&r->out, names[i]->data, names[i]->len);
    }
    buf_char(&r->out, ']');
    problem_close(r);
}

bool request_find_seats(struct request *r, const struct event *e, const struct text *names,
                        uint32_t n)
{
    struct command *c = &r->command;
    uint32_t *seats = r->seats_inline, *taken = r->taken_inline;
    size_t n_unknown = 0;
    if (n > SEATS_INLINE) {
        seats = r->seats_heap = hf_alloc(sizeof *seats * 2 * n);
        taken = seats + n;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!event_seat_find(e, names[i].data, names[i].len, &seats[i]))
            taken[n_unknown++] = i;
    if (n_unknown) {
        const struct text **unknown = hf_alloc(n_unknown * sizeof *unknown);
        for (size_t i = 0; i < n_unknown; i++)
            unknown[i] = &names[taken[i]];
        answer_seat_list(r, HF_NO_SUCH_SEAT, unknown, n_unknown);
        free(unknown);
        return false;
    }
    c->seats = seats;
    c->taken = taken;
    c->n_seats = n;
    c->n_taken = 0;
    return true;
}

bool request_find_seat(struct request *r, const struct event *e, const char *text, size_t len)
{
    const struct buf *name = request_name(r, text, len);
    if (!utf8_is_valid(name->data, name->len)) { /* no name, and no text to answer with */
        answer_problem(r, HF_NO_SUCH_SEAT, NULL);
        return false;
    }
    return request_find_seats(r, e, &(struct text){.data = name->data, .len = name->len}, 1);
}
