/* The names of an event's rows, seats, areas and categories; see view.h. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "view/view.h"

void event_index_rows(struct event *e)
{
    uint32_t size = 4;
    struct buf name = {0};
    if (e->def->venue)
        return;
    while (size < e->rows.n * 2)
        size *= 2;
    e->rows.index = hf_alloc(size * sizeof *e->rows.index);
    e->rows.index_mask = size - 1;
    for (uint32_t r = 0; r < e->rows.n; r++) {
        name.len = 0;
        buf_str(&name, e->def->sections.v[e->rows.list[r].section].name);
        buf_char(&name, '-');
        buf_put(&name, e->rows.list[r].name, e->rows.list[r].name_len);
        uint32_t slot = (uint32_t)hash_keyed(name.data, name.len) & e->rows.index_mask;
        while (e->rows.index[slot])
            slot = (slot + 1) & e->rows.index_mask;
        e->rows.index[slot] = r + 1;
    }
    buf_close(&name);
}

static const struct row *row_find(const struct event *e, const char *name, size_t len)
{
    uint32_t slot = (uint32_t)hash_keyed(name, len) & e->rows.index_mask;
    for (; e->rows.index[slot]; slot = (slot + 1) & e->rows.index_mask) {
        const struct row *row = &e->rows.list[e->rows.index[slot] - 1];
        if (row->name_len + 1 >= len || name[len - row->name_len - 1] != '-')
            continue;
        const char *section = e->def->sections.v[row->section].name;
        size_t section_len = len - row->name_len - 1;
        if (memcmp(name + section_len + 1, row->name, row->name_len) == 0 &&
            strlen(section) == section_len && memcmp(section, name, section_len) == 0)
            return row;
    }
    return NULL;
}

bool event_seat_find(const struct event *e, const char *name, size_t len, uint32_t *ret_index)
{
    if (e->def->venue)
        return venue_find(e->def->venue, name, len, ret_index);
    const char *dash = memrchr(name, '-', len);
    if (!dash)
        return false;
    const char *digit = dash + 1, *end = name + len;
    uint32_t number = 0;
    if (digit == end || *digit == '0')
        return false;
    for (; digit < end; digit++) {
        if (*digit < '0' || *digit > '9' || number > EVENT_SEATS_MAX)
            return false;
        number = number * 10 + (uint32_t)(*digit - '0');
    }
    const struct row *row = row_find(e, name, (size_t)(dash - name));
    if (!row || number > row->n_seats)
        return false;
    *ret_index = row->first + number - 1;
    return true;
}

const struct row *event_row_of(const struct event *e, uint32_t index)
{
    uint32_t low = 0, high = e->rows.n;
    hf_check(index < e->def->n_seats);
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (e->rows.list[mid].first <= index)
            low = mid;
        else
            high = mid;
    }
    return &e->rows.list[low];
}

void event_seat_name(const struct event *e, uint32_t index, struct buf *out)
{
    if (e->def->venue) {
        buf_str(out, venue_id(e->def->venue, index));
        return;
    }
    const struct row *row = event_row_of(e, index);
    buf_str(out, e->def->sections.v[row->section].name);
    buf_char(out, '-');
    buf_put(out, row->name, row->name_len);
    buf_char(out, '-');
    buf_int(out, index - row->first + 1);
}

uint32_t event_seat_category(const struct event *e, uint32_t index)
{
    const struct venue *v = e->def->venue;
    return v ? v->categories[index] : event_row_of(e, index)->section;
}

int64_t event_area_find(const struct event *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->def->areas.n; i++)
        if (strlen(e->def->areas.v[i].name) == len &&
            memcmp(e->def->areas.v[i].name, name, len) == 0)
            return (int64_t)i;
    return -1;
}

int64_t event_section_find(const struct event *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->def->sections.n; i++)
        if (strlen(e->def->sections.v[i].name) == len &&
            memcmp(e->def->sections.v[i].name, name, len) == 0)
            return (int64_t)i;
    return -1;
}

int64_t event_category_find(const struct event *e, const char *name, size_t len)
{
    for (size_t i = 0; i < event_def_categories(e->def); i++) {
        const char *has = event_def_category_name(e->def, i);
        if (strlen(has) == len && memcmp(has, name, len) == 0)
            return (int64_t)i;
    }
    return -1;
}
