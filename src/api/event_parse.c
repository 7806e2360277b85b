/* The definition of an event, from JSON; see parse.h.  Sizes are checked while reading, before
 * memory is allocated for them, since a few bytes of JSON can ask for very many seats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/hold_parse.h"
#include "api/parse.h"

#define PRICE_MAX INT64_C(1000000000000)
#define ROWS_MAX 100000 /* of an event, all its sections together */
#define ROW_SEATS_MAX 100000
#define AREA_CAPACITY_MAX INT64_C(1000000000)
#define EVENT_NAME_CHARS_MAX 255
#define HOLD_TTL_MS_DEFAULT 480000
#define HOLD_MAX_MS_MAX (7 * INT64_C(86400000))
#define HOLD_MAX_MS_DEFAULT 1200000
#define MAX_PER_HOLD_DEFAULT 10

#define PATH_SIZE 80

/* The definition as far as it has been read. */
struct reader {
    struct event_def *def;
    struct hf_err *err;
    int64_t n_seats, n_rows;
};

/* Does the text have a control character (U+0000..1F, 7F, 80..9F)? */
static bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            return true;
        if (c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0)
            return true;
    }
    return false;
}

/* Reads the name of a section, row or area.  It becomes a part of seat ids, which are split at `-`.
 */
static bool read_name(const struct fields *f, char **ret)
{
    const char *text;
    size_t len;
    if (!field_text(f, "name", REQUIRED, 1, NAME_CHARS_MAX, &text, &len))
        return false;
    if (memchr(text, '-', len))
        return field_fail(f, "name", "must not contain `-`");
    if (has_control(text, len))
        return field_fail(f, "name", "must not contain control characters");
    *ret = hf_strndup(text, len);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Fails if a name appears twice.  Sorts `names`; O(n log n). */
static bool names_differ(const struct reader *rd, const char *path, const char *what, char **names,
                         size_t n)
{
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0) {
            (void)hf_err_set(rd->err, HF_INVALID_REQUEST, "%.80s%s has the name %.132s twice", path,
                             what, names[i]);
            return false;
        }
    return true;
}

static bool count_rows(struct reader *rd, const struct fields *f, int64_t rows, int64_t seats)
{
    rd->n_rows += rows;
    rd->n_seats += rows * seats;
    if (rd->n_seats > EVENT_SEATS_MAX)
        return field_fail(f, "rows", "would make more than 2000000 seats in the event");
    if (rd->n_rows > ROWS_MAX)
        return field_fail(f, "rows", "would make more than 100000 rows in the event");
    return true;
}

static bool read_rows_counted(struct reader *rd, const struct fields *f, struct section_def *s)
{
    int64_t rows = 0, seats = 0;
    if (!field_int(f, "rows", REQUIRED, 1, ROWS_MAX, &rows) ||
        !field_int(f, "seats_per_row", REQUIRED, 1, ROW_SEATS_MAX, &seats) ||
        !count_rows(rd, f, rows, seats))
        return false;
    for (uint32_t i = 0; i < (uint32_t)rows; i++) {
        struct row_def *row = vec_push(&s->rows);
        char name[ROW_NAME_SIZE];
        row_name(i, name);
        row->name = hf_strndup(name, strlen(name));
        row->seats = (uint32_t)seats;
    }
    return true;
}

static bool read_row(struct reader *rd, const struct fields *f, struct section_def *s)
{
    static const char *const known[] = {"name", "seats", NULL};
    if (!json_is_object(f->object))
        return field_fail(f, "", "must be an object");
    struct row_def *row = vec_push(&s->rows);
    int64_t seats = 0;
    if (!fields_known(f, known) || !read_name(f, &row->name) ||
        !field_int(f, "seats", REQUIRED, 1, ROW_SEATS_MAX, &seats) || !count_rows(rd, f, 1, seats))
        return false;
    row->seats = (uint32_t)seats;
    return true;
}

static void path_write(char out[PATH_SIZE], const char *outer, const char *list, size_t index)
{
    (void)snprintf(out, PATH_SIZE, "%.50s%s[%zu].", outer, list, index);
}

static bool read_rows_listed(struct reader *rd, const struct fields *f, struct section_def *s)
{
    const json_t *rows = json_object_get(f->object, "rows");
    size_t n = json_array_size(rows);
    if (json_object_get(f->object, "seats_per_row"))
        return field_fail(f, "seats_per_row", "goes with a number of rows, not with a list");
    if (n < 1 || n > ROWS_MAX)
        return field_fail(f, "rows", "must list 1 to 100000 rows");
    s->listed = true;
    for (size_t i = 0; i < n; i++) {
        char path[PATH_SIZE];
        path_write(path, f->path, "rows", i);
        struct fields row = {.object = json_array_get(rows, i), .path = path, .err = rd->err};
        if (!read_row(rd, &row, s))
            return false;
    }
    char **names = hf_alloc(n * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = s->rows.v[i].name;
    bool ok = names_differ(rd, f->path, "rows", names, n);
    free(names);
    return ok;
}

static bool read_section(struct reader *rd, const struct fields *f, struct section_def *s)
{
    static const char *const known[] = {"name", "tier", "price", "rows", "seats_per_row", NULL};
    const char *tier = NULL;
    size_t tier_len = 0;
    if (!json_is_object(f->object))
        return field_fail(f, "", "must be an object");
    if (!fields_known(f, known) || !read_name(f, &s->name) ||
        !field_text(f, "tier", NULLABLE, 1, NAME_CHARS_MAX, &tier, &tier_len) ||
        !field_int(f, "price", REQUIRED, 0, PRICE_MAX, &s->price))
        return false;
    if (tier)
        s->tier = hf_strndup(tier, tier_len);
    const json_t *rows = json_object_get(f->object, "rows");
    if (rows && !json_is_integer(rows) && !json_is_array(rows))
        return field_fail(f, "rows", "must be a number of rows or a list of them");
    return json_is_array(rows) ? read_rows_listed(rd, f, s) : read_rows_counted(rd, f, s);
}

static bool read_area(struct reader *rd, const struct fields *f, struct area_def *a)
{
    static const char *const known[] = {"name", "price", "capacity", NULL};
    (void)rd;
    if (!json_is_object(f->object))
        return field_fail(f, "", "must be an object");
    return fields_known(f, known) && read_name(f, &a->name) &&
           field_int(f, "price", REQUIRED, 0, PRICE_MAX, &a->price) &&
           field_int(f, "capacity", REQUIRED, 1, AREA_CAPACITY_MAX, &a->capacity);
}

static bool read_sections(struct reader *rd, const json_t *list)
{
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        char path[PATH_SIZE];
        path_write(path, "", "sections", i);
        struct fields f = {.object = json_array_get(list, i), .path = path, .err = rd->err};
        if (!read_section(rd, &f, vec_push(&rd->def->sections)))
            return false;
    }
    char **names = hf_alloc(n * sizeof *names + 1);
    for (size_t i = 0; i < n; i++)
        names[i] = rd->def->sections.v[i].name;
    bool ok = names_differ(rd, "", "sections", names, n);
    free(names);
    return ok;
}

static bool read_areas(struct reader *rd, const json_t *list)
{
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        char path[PATH_SIZE];
        path_write(path, "", "areas", i);
        struct fields f = {.object = json_array_get(list, i), .path = path, .err = rd->err};
        if (!read_area(rd, &f, vec_push(&rd->def->areas)))
            return false;
    }
    char **names = hf_alloc(n * sizeof *names + 1);
    for (size_t i = 0; i < n; i++)
        names[i] = rd->def->areas.v[i].name;
    bool ok = names_differ(rd, "", "areas", names, n);
    free(names);
    return ok;
}

static bool read_currency(const struct fields *f, char out[4])
{
    const char *text;
    size_t len;
    if (!field_text(f, "currency", REQUIRED, 1, 3, &text, &len))
        return false;
    bool ok = len == 3;
    for (size_t i = 0; i < len; i++)
        ok = ok && text[i] >= 'a' && text[i] <= 'z';
    if (!ok)
        return field_fail(f, "currency", "must be three lower-case letters");
    memcpy(out, text, 4);
    return true;
}

static bool read_limits(const struct fields *f, struct event_def *def)
{
    int64_t per_hold = MAX_PER_HOLD_DEFAULT;
    def->hold_ttl_ms = HOLD_TTL_MS_DEFAULT;
    if (!field_int(f, "hold_ttl_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_TTL_MS_MAX, &def->hold_ttl_ms))
        return false;
    def->hold_max_ms =
        def->hold_ttl_ms > HOLD_MAX_MS_DEFAULT ? def->hold_ttl_ms : HOLD_MAX_MS_DEFAULT;
    if (!field_int(f, "hold_max_ms", OPTIONAL, def->hold_ttl_ms, HOLD_MAX_MS_MAX,
                   &def->hold_max_ms) ||
        !field_int(f, "max_per_hold", OPTIONAL, 1, HOLD_PLACES_MAX, &per_hold))
        return false;
    def->max_per_hold = (int32_t)per_hold;
    return true;
}

static bool read_event(struct reader *rd, const struct fields *f)
{
    static const char *const known[] = {"name",         "currency", "hold_ttl_ms", "hold_max_ms",
                                        "max_per_hold", "sections", "areas",       NULL};
    struct event_def *def = rd->def;
    const char *name;
    size_t name_len;
    const json_t *sections = NULL, *areas = NULL;
    if (!fields_known(f, known) ||
        !field_text(f, "name", REQUIRED, 1, EVENT_NAME_CHARS_MAX, &name, &name_len) ||
        !read_currency(f, def->currency) || !read_limits(f, def) ||
        !field_array(f, "sections", OPTIONAL, &sections) ||
        !field_array(f, "areas", OPTIONAL, &areas))
        return false;
    def->name = hf_strndup(name, name_len);
    def->status = EVENT_OPEN;
    if (!read_sections(rd, sections) || !read_areas(rd, areas))
        return false;
    if (def->sections.n + def->areas.n == 0)
        return field_fail(f, "sections", "or areas must have at least one entry");
    if (!event_def_number(def))
        return field_fail(f, "sections", "have more than 2000000 seats");
    return true;
}

bool parse_event(const json_t *json, struct event_def **ret, struct hf_err *err)
{
    struct reader rd = {.def = hf_alloc(sizeof *rd.def), .err = err};
    struct fields f = {.object = json, .path = "", .err = err};
    if (!read_event(&rd, &f)) {
        event_def_free(rd.def);
        return false;
    }
    *ret = rd.def;
    return true;
}
