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
            (void)hf_err_set(rd->err, HF_INVALID_REQUEST, "%.80s%s have the name %.132s twice",
                             path, what, names[i]);
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

/* Prices come in the order of sections and areas, which are read in that order. */
static bool read_price(struct reader *rd, const struct fields *f)
{
    return field_int(f, "price", REQUIRED, 0, PRICE_MAX, vec_push(&rd->def->terms.prices));
}

static bool read_section(struct reader *rd, const struct fields *f, struct section_def *s)
{
    static const char *const known[] = {"name", "tier", "price", "rows", "seats_per_row", NULL};
    const char *tier = NULL;
    size_t tier_len = 0;
    if (!json_is_object(f->object))
        return field_fail(f, "", "must be an object");
    if (!fields_known(f, known) || !read_name(f, &s->name) ||
        !field_text(f, "tier", NULLABLE, 1, NAME_CHARS_MAX, &tier, &tier_len) || !read_price(rd, f))
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
    if (!json_is_object(f->object))
        return field_fail(f, "", "must be an object");
    return fields_known(f, known) && read_name(f, &a->name) && read_price(rd, f) &&
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
    return true;
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
    return true;
}

/* Sections and areas have no name in common, since prices and places are named by either. */
static bool check_names(const struct reader *rd)
{
    const struct event_def *def = rd->def;
    size_t n = 0;
    char **names = hf_alloc((def->sections.n + def->areas.n + 1) * sizeof *names);
    for (size_t i = 0; i < def->sections.n; i++)
        names[n++] = def->sections.v[i].name;
    for (size_t i = 0; i < def->areas.n; i++)
        names[n++] = def->areas.v[i].name;
    bool ok = names_differ(rd, "", "sections and areas", names, n);
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

/* ---- terms, of a new event or of one that is changed ---- */

/* Reads a text and keeps a copy. */
static bool read_text(const struct fields *f, const char *name, enum need need, size_t chars_max,
                      char **ret)
{
    const char *text = NULL;
    size_t len = 0;
    if (!field_text(f, name, need, 1, chars_max, &text, &len))
        return false;
    if (text)
        *ret = hf_strndup(text, len);
    return true;
}

static bool read_texts(const struct fields *f, enum need name_need, struct event_terms *terms)
{
    return read_text(f, "name", name_need, EVENT_NAME_CHARS_MAX, &terms->name) &&
           read_text(f, "venue", NULLABLE, EVENT_NAME_CHARS_MAX, &terms->venue) &&
           (json_is_null(json_object_get(f->object, "metadata")) ||
            field_metadata(f, "metadata", &terms->metadata));
}

static bool read_times(const struct fields *f, struct event_terms *terms)
{
    return field_time(f, "starts_at", &terms->starts_at) &&
           field_time(f, "sales_open_at", &terms->sales_open_at) &&
           field_time(f, "sales_close_at", &terms->sales_close_at);
}

static bool read_limits(const struct fields *f, struct event_terms *terms)
{
    int64_t per_hold = terms->max_per_hold, per_owner = terms->max_per_owner;
    if (!field_int(f, "hold_ttl_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_TTL_MS_MAX,
                   &terms->hold_ttl_ms) ||
        !field_int(f, "hold_max_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_MAX_MS_MAX,
                   &terms->hold_max_ms) ||
        !field_int(f, "max_per_hold", OPTIONAL, 1, HOLD_PLACES_MAX, &per_hold) ||
        !field_int(f, "max_per_owner", NULLABLE, 1, MAX_PER_OWNER_MAX, &per_owner))
        return false;
    terms->max_per_hold = (int32_t)per_hold;
    terms->max_per_owner = (int32_t)per_owner;
    return true;
}

static bool read_terms(const struct fields *f, enum need name_need, struct event_terms *terms)
{
    return read_texts(f, name_need, terms) && read_times(f, terms) && read_limits(f, terms);
}

/* Where hold_max_ms is absent it follows hold_ttl_ms. */
static bool read_new_terms(const struct fields *f, struct event_terms *terms)
{
    terms->hold_ttl_ms = HOLD_TTL_MS_DEFAULT;
    terms->max_per_hold = MAX_PER_HOLD_DEFAULT;
    if (!read_terms(f, REQUIRED, terms))
        return false;
    if (!terms->hold_max_ms)
        terms->hold_max_ms =
            terms->hold_ttl_ms > HOLD_MAX_MS_DEFAULT ? terms->hold_ttl_ms : HOLD_MAX_MS_DEFAULT;
    if (terms->hold_max_ms < terms->hold_ttl_ms)
        return field_fail(f, "hold_max_ms", "must not be less than hold_ttl_ms");
    if (terms->sales_close_at && terms->sales_close_at <= terms->sales_open_at)
        return field_fail(f, "sales_close_at", "must be after sales_open_at");
    return true;
}

#define TERMS_FIELDS                                                                               \
    "name", "venue", "metadata", "starts_at", "sales_open_at", "sales_close_at", "hold_ttl_ms",    \
        "hold_max_ms", "max_per_hold", "max_per_owner"

/* Sections come before areas, as in event_terms.prices.  They have no name in common. */
static bool find_price(const struct event_def *def, const char *name, uint32_t *ret_index)
{
    for (size_t i = 0; i < def->sections.n + def->areas.n; i++) {
        const char *has =
            i < def->sections.n ? def->sections.v[i].name : def->areas.v[i - def->sections.n].name;
        if (strcmp(has, name) == 0) {
            *ret_index = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static bool read_prices(const struct fields *f, const struct event_def *def,
                        struct event_change *ret)
{
    json_t *prices = json_object_get(f->object, "prices");
    if (!prices)
        return true;
    if (!json_is_object(prices))
        return field_fail(f, "prices", "must be an object of names and amounts");
    const struct fields p = {.object = prices, .path = "prices.", .err = f->err};
    for (void *it = json_object_iter(prices); it; it = json_object_iter_next(prices, it)) {
        struct price_change *change = vec_push(&ret->prices);
        const char *name = json_object_iter_key(it);
        if (!find_price(def, name, &change->index))
            return field_fail(&p, name, "is no section or area of the event");
        if (!field_int(&p, name, REQUIRED, 0, PRICE_MAX, &change->price))
            return false;
    }
    return true;
}

bool parse_event_change(const json_t *json, const struct event_def *def, struct event_change *ret,
                        struct hf_err *err)
{
    /* In the order of enum event_field. */
    static const char *const known[] = {TERMS_FIELDS, "prices", NULL};
    static const unsigned bits[] = {EVENT_NAME,         EVENT_VENUE,         EVENT_METADATA,
                                    EVENT_STARTS_AT,    EVENT_SALES_OPEN_AT, EVENT_SALES_CLOSE_AT,
                                    EVENT_HOLD_TTL,     EVENT_HOLD_MAX,      EVENT_MAX_PER_HOLD,
                                    EVENT_MAX_PER_OWNER};
    const struct fields f = {.object = json, .path = "", .err = err};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (json_object_get(json, known[i]))
            ret->given |= bits[i];
    if (!fields_known(&f, known) || !read_terms(&f, OPTIONAL, &ret->terms) ||
        !read_prices(&f, def, ret))
        return false;
    if (!ret->given && !ret->prices.n)
        return field_fail(&f, "the body", "must name at least one field to change");
    return true;
}

/* ---- the whole of it ---- */

static bool read_event(struct reader *rd, const struct fields *f)
{
    static const char *const known[] = {TERMS_FIELDS, "currency", "sections", "areas", NULL};
    struct event_def *def = rd->def;
    const json_t *sections = NULL, *areas = NULL;
    if (!fields_known(f, known) || !read_new_terms(f, &def->terms) ||
        !read_currency(f, def->currency) || !field_array(f, "sections", OPTIONAL, &sections) ||
        !field_array(f, "areas", OPTIONAL, &areas))
        return false;
    def->status = EVENT_OPEN;
    if (!read_sections(rd, sections) || !read_areas(rd, areas) || !check_names(rd))
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
