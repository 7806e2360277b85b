/* See layout.h. */
#include "ledger/layout.h"

#include <string.h>

#define NUMBER_LEN_MAX 7 /* digits of EVENT_SEATS_MAX */

static bool has_own_name(const struct section_def *section, bool named, size_t row)
{
    char name[ROW_NAME_SIZE];
    if (!named)
        return false;
    row_name((uint32_t)row, name);
    return strcmp(section->rows.v[row].name, name) != 0;
}

/* Returns how many rows, counted from `first`, form one run. */
static size_t run_len(const struct section_def *section, bool named, size_t first)
{
    size_t last = first;
    if (has_own_name(section, named, first))
        return 1;
    while (++last < section->rows.n && !has_own_name(section, named, last) &&
           section->rows.v[last].seats == section->rows.v[first].seats)
        ;
    return last - first;
}

size_t layout_size_max(const struct section_def *section)
{
    size_t size = 0;
    for (size_t i = 0; i < section->rows.n; i++)
        size += strlen(section->rows.v[i].name) + 2 * NUMBER_LEN_MAX + 3;
    return size;
}

void layout_write(const struct section_def *section, bool named, struct buf *out)
{
    for (size_t i = 0, n; i < section->rows.n; i += n) {
        const struct row_def *row = &section->rows.v[i];
        n = run_len(section, named, i);
        buf_str(out, i ? "," : "");
        bool own = has_own_name(section, named, i);
        hf_check(!own || (*row->name && !strchr(row->name, '-')));
        buf_str(out, own ? row->name : "");
        buf_char(out, '-');
        buf_int(out, row->seats);
        if (!own) {
            buf_char(out, '*');
            buf_int(out, (int64_t)n);
        }
    }
}

/* Returns 0 if there is no number at *at, or one that is too large. */
static uint32_t read_number(const char **at, const char *end)
{
    uint32_t value = 0;
    for (int i = 0; i < NUMBER_LEN_MAX && *at < end && **at >= '0' && **at <= '9'; i++)
        value = value * 10 + (uint32_t)(*(*at)++ - '0');
    return value <= EVENT_SEATS_MAX ? value : 0;
}

bool layout_next(const char **at, const char *end, struct layout_run *ret)
{
    const char *s = *at, *dash = s != end ? memchr(s, '-', (size_t)(end - s)) : NULL;
    if (!dash)
        return false;
    struct layout_run run = {.rows = 1};
    if (dash > s) {
        run.name = s;
        run.name_len = (size_t)(dash - s);
    }
    s = dash + 1;
    run.seats = read_number(&s, end);
    if (!run.name) {
        bool repeats = s < end && *s == '*';
        s += repeats;
        run.rows = repeats ? read_number(&s, end) : 0;
    }
    bool more = s < end && *s == ',' && s + 1 < end;
    if (!run.seats || !run.rows || (s < end && !more))
        return false;
    *at = more ? s + 1 : s;
    *ret = run;
    return true;
}
