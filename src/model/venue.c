/* See venue.h.  Pure but for memory. */
#include "model/venue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "model/rows.h"

struct venue *venue_new(void)
{
    struct venue *v = hf_alloc(sizeof *v);
    buf_char(&v->text, '\0');
    return v;
}

void venue_free(struct venue *v)
{
    if (!v)
        return;
    free(v->ids);
    free(v->labels);
    free(v->extras);
    free(v->categories);
    free(v->flags);
    free(v->x);
    free(v->y);
    free(v->index);
    free(v->name);
    free(v->areas);
    buf_close(&v->text);
    free(v);
}

/* Growing keeps what is there and zeroes the rest. */
static void *grow(void *data, uint32_t n, uint32_t cap, size_t size)
{
    char *more = hf_realloc(data, cap * size);
    memset(more + n * size, 0, (cap - n) * size);
    return more;
}

static void make_room(struct venue *v)
{
    uint32_t n = v->cap, cap = n ? n * 2 : 256;
    v->ids = grow(v->ids, n, cap, sizeof *v->ids);
    v->labels = grow(v->labels, n, cap, sizeof *v->labels);
    v->categories = grow(v->categories, n, cap, 1);
    v->flags = grow(v->flags, n, cap, 1);
    if (v->extras)
        v->extras = grow(v->extras, n, cap, sizeof *v->extras);
    if (v->x) {
        v->x = grow(v->x, n, cap, sizeof *v->x);
        v->y = grow(v->y, n, cap, sizeof *v->y);
    }
    v->cap = cap;
}

static uint32_t put_text(struct venue *v, const char *text)
{
    size_t at = v->text.len;
    hf_check(at < UINT32_MAX / 2);
    if (!*text)
        return 0;
    buf_put(&v->text, text, strlen(text) + 1);
    return (uint32_t)at;
}

/* The label is the end of such an id, so it is stored once. */
static void put_composed_id(struct venue *v, const struct venue_seat *seat)
{
    uint32_t i = v->n_seats;
    v->ids[i] = (uint32_t)v->text.len;
    buf_str(&v->text, seat->section);
    buf_char(&v->text, '-');
    buf_str(&v->text, seat->row);
    buf_char(&v->text, '-');
    v->labels[i] = (uint32_t)v->text.len;
    hf_check(v->text.len < UINT32_MAX / 2);
    buf_put(&v->text, seat->label, strlen(seat->label) + 1);
}

static void put_own_id(struct venue *v, const struct venue_seat *seat)
{
    size_t id_len = strlen(seat->id), label_len = strlen(seat->label);
    bool ends_with_label =
        label_len <= id_len && strcmp(seat->id + id_len - label_len, seat->label) == 0;
    v->ids[v->n_seats] = put_text(v, seat->id);
    v->labels[v->n_seats] = ends_with_label ? v->ids[v->n_seats] + (uint32_t)(id_len - label_len)
                                            : put_text(v, seat->label);
}

static void put_place(struct venue *v, const struct venue_seat *seat)
{
    if (!v->x) {
        v->x = hf_alloc(v->cap * sizeof *v->x);
        v->y = hf_alloc(v->cap * sizeof *v->y);
    }
    v->x[v->n_seats] = seat->x;
    v->y[v->n_seats] = seat->y;
}

void venue_add(struct venue *v, const struct venue_seat *seat)
{
    if (v->n_seats == v->cap)
        make_room(v);
    if (seat->id)
        put_own_id(v, seat);
    else
        put_composed_id(v, seat);
    if (seat->extra && *seat->extra) {
        if (!v->extras)
            v->extras = hf_alloc(v->cap * sizeof *v->extras);
        v->extras[v->n_seats] = put_text(v, seat->extra);
    }
    if (seat->flags & SEAT_PLACED)
        put_place(v, seat);
    v->categories[v->n_seats] = (uint8_t)seat->category;
    v->flags[v->n_seats] = (uint8_t)seat->flags;
    v->n_seats++;
}

bool venue_index(struct venue *v, uint32_t *ret_first, uint32_t *ret_second)
{
    uint32_t size = 4;
    while (size < v->n_seats + v->n_seats / 2)
        size *= 2;
    free(v->index);
    v->index = hf_alloc(size * sizeof *v->index);
    v->index_mask = size - 1;
    for (uint32_t i = 0; i < v->n_seats; i++) {
        const char *id = venue_id(v, i);
        uint32_t at = (uint32_t)hash_keyed(id, strlen(id)) & v->index_mask;
        for (; v->index[at]; at = (at + 1) & v->index_mask)
            if (strcmp(venue_id(v, v->index[at] - 1), id) == 0) {
                *ret_first = v->index[at] - 1;
                *ret_second = i;
                return false;
            }
        v->index[at] = i + 1;
    }
    return true;
}

bool venue_find(const struct venue *v, const char *id, size_t len, uint32_t *ret)
{
    if (!v->index)
        return false;
    uint32_t at = (uint32_t)hash_keyed(id, len) & v->index_mask;
    for (; v->index[at]; at = (at + 1) & v->index_mask) {
        const char *has = venue_id(v, v->index[at] - 1);
        if (strncmp(has, id, len) == 0 && !has[len] && !memchr(id, '\0', len)) {
            *ret = v->index[at] - 1;
            return true;
        }
    }
    return false;
}

static bool is_counted(const struct venue *v, const struct section_def *s, uint32_t seat,
                       uint32_t number)
{
    char label[16];
    if (v->flags[seat] || v->categories[seat] != s->category)
        return false;
    (void)snprintf(label, sizeof label, "%u", number);
    return strcmp(venue_label(v, seat), label) == 0;
}

void venue_find_listed(struct event_def *def)
{
    for (size_t s = 0; s < def->sections.n; s++)
        for (size_t r = 0; r < def->sections.v[s].rows.n; r++) {
            struct row_def *row = &def->sections.v[s].rows.v[r];
            row->listed = false;
            for (uint32_t i = 0; i < row->seats && !row->listed; i++)
                row->listed = !is_counted(def->venue, &def->sections.v[s], row->first + i, i + 1);
        }
}
