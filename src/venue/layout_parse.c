/* Sections, rows, listed seats and categories, from JSON; see reader.h.  Sizes are checked while
 * reading, before memory is allocated for them, since a few bytes of JSON can ask for very many
 * seats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "venue/reader.h"

/* ---- categories ---- */

static bool read_category(struct reader *rd, const struct fields *f)
{
    static const char *const known[] = {"name", "price", "color", NULL};
    const char *name = NULL, *color = NULL;
    size_t len = 0;
    int64_t price = 0;
    if (!fields_known(f, known) ||
        !field_text(f, "name", REQUIRED, 1, NAME_CHARS_MAX, &name, &len) ||
        !field_int(f, "price", REQUIRED, 0, PRICE_MAX, &price))
        return false;
    if (has_control(name, len))
        return field_fail(f, "name", "must not contain control characters");
    return field_text(f, "color", NULLABLE, 1, COLOR_CHARS_MAX, &color, &len) &&
           add_category(rd, f, name, color, price, false);
}

static bool read_categories(struct reader *rd, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct fields f = {.object = json_array_get(list, i), .path = "", .err = rd->err};
        if (read_category(rd, &f))
            continue;
        (void)fail_under(rd->err, "categories", i);
        if (!complaint_kept(rd))
            return false;
    }
    return true;
}

/* Reads `price` or `category` of a section.  Where the event has no venue, each section is a
 * category, and its price comes in the order of sections. */
static bool read_section_price(struct reader *rd, const struct fields *f, struct section_def *s)
{
    struct event_def *def = rd->def;
    const char *category = NULL;
    size_t len;
    int64_t price = -1;
    s->category = -1;
    if (!def->venue)
        return field_int(f, "price", REQUIRED, 0, PRICE_MAX, vec_push(&def->terms.prices));
    if (!field_text(f, "category", NULLABLE, 1, NAME_CHARS_MAX, &category, &len) ||
        !field_int(f, "price", OPTIONAL, 0, PRICE_MAX, &price))
        return false;
    if (category && price >= 0)
        return field_fail(f, "price", "goes without a category, which has a price");
    if (category && (s->category = (int16_t)find_category(def, category)) < 0)
        return field_fail(f, "category", "is no category of the event");
    if (price < 0)
        return true;
    s->category = (int16_t)def->categories.n;
    return add_category(rd, f, s->name, NULL, price, true);
}

/* ---- rows and seats ---- */

static struct row_def *add_row(struct section_def *s, uint32_t seats)
{
    struct row_def *row = vec_push(&s->rows);
    char name[ROW_NAME_SIZE];
    row_name((uint32_t)s->rows.n - 1, name);
    row->name = hf_strndup(name, strlen(name));
    row->seats = seats;
    return row;
}

/* Long names in the ids of very many seats add up to more than a venue may store. */
static bool check_ids_len(const struct reader *rd, const struct fields *f)
{
    return rd->def->venue->text.len <= IDS_LEN_MAX ||
           field_fail(f, "", "would make ids of more than 256 MiB in the event; use shorter names");
}

/* The venue has an entry for every seat, also for those of counted rows. */
static bool add_counted_seats(struct reader *rd, const struct fields *f,
                              const struct section_def *s, const struct row_def *row)
{
    if (!rd->def->venue)
        return true;
    if (s->category < 0)
        return field_fail(f, "", "needs a price or a category, for seats that are only counted");
    for (uint32_t i = 1; i <= row->seats; i++) {
        char label[16];
        (void)snprintf(label, sizeof label, "%u", i);
        const struct venue_seat seat = {.section = s->name,
                                        .row = row->name,
                                        .label = label,
                                        .category = (uint32_t)s->category};
        venue_add(rd->def->venue, &seat);
    }
    return check_ids_len(rd, f);
}

static bool read_rows_counted(struct reader *rd, const struct fields *f, struct section_def *s)
{
    int64_t rows = 0, seats = 0;
    if (!field_int(f, "rows", REQUIRED, 1, ROWS_MAX, &rows) ||
        !field_int(f, "seats_per_row", REQUIRED, 1, ROW_SEATS_MAX, &seats) ||
        !count_rows(rd, f, "rows", rows, seats))
        return false;
    for (uint32_t i = 0; i < (uint32_t)rows; i++)
        if (!add_counted_seats(rd, f, s, add_row(s, (uint32_t)seats)))
            return false;
    return true;
}

static bool read_flag(const struct fields *f, const char *name, unsigned bit, unsigned *flags)
{
    bool is_set = false;
    if (!field_bool(f, name, OPTIONAL, &is_set))
        return false;
    *flags |= is_set ? bit : 0;
    return true;
}

static bool in_range(double v) { return v >= -POSITION_MAX && v <= POSITION_MAX; }

static bool read_place(const struct fields *f, struct venue_seat *seat)
{
    bool has_x = json_object_get(f->object, "x"), has_y = json_object_get(f->object, "y");
    if (!has_x && !has_y)
        return true;
    if (!field_number(f, "x", REQUIRED, &seat->x) || !field_number(f, "y", REQUIRED, &seat->y))
        return false;
    if (!in_range(seat->x) || !in_range(seat->y))
        return field_fail(f, in_range(seat->x) ? "y" : "x", "must be from -10000000 to 10000000");
    seat->flags |= SEAT_PLACED;
    return true;
}

/* Reads a listed seat: its label, or an object. */
static bool read_seat(struct reader *rd, const struct fields *f, struct venue_seat *seat)
{
    static const char *const known[] = {"label", "category", "accessible",      "companion",
                                        "x",     "y",        "restricted_view", NULL};
    const char *category = NULL;
    size_t len;
    seat->flags = 0;
    if (!json_is_object(f->object))
        return field_fail(f, "", "must be a label or an object");
    if (!fields_known(f, known) ||
        !field_text(f, "label", REQUIRED, 1, NAME_CHARS_MAX, &seat->label, &len) ||
        !field_text(f, "category", NULLABLE, 1, NAME_CHARS_MAX, &category, &len) ||
        !read_flag(f, "accessible", SEAT_ACCESSIBLE, &seat->flags) ||
        !read_flag(f, "companion", SEAT_COMPANION, &seat->flags) ||
        !read_flag(f, "restricted_view", SEAT_RESTRICTED_VIEW, &seat->flags) ||
        !read_place(f, seat))
        return false;
    int found = category ? find_category(rd->def, category) : (int)seat->category;
    if (category && found < 0)
        return field_fail(f, "category", "is no category of the event");
    seat->category = (uint32_t)found;
    return true;
}

static bool add_listed_seat(struct reader *rd, const struct fields *f, const struct section_def *s,
                            const struct row_def *row)
{
    struct venue_seat seat = {
        .section = s->name, .row = row->name, .category = (uint32_t)s->category};
    if (json_is_string(f->object)) {
        size_t len = json_string_length(f->object);
        seat.label = json_string_value(f->object);
        if (!len || utf8_chars(seat.label, len) > NAME_CHARS_MAX)
            return field_fail(f, "", "must have 1 to 32 characters");
    } else if (!read_seat(rd, f, &seat)) {
        return false;
    }
    hf_check(seat.label); /* both forms have one */
    if (has_control(seat.label, strlen(seat.label)))
        return field_fail(f, "label", "must not contain control characters");
    if ((int)seat.category < 0)
        return field_fail(f, "", "needs a category, since its section has neither one nor a price");
    venue_add(rd->def->venue, &seat);
    return true;
}

static bool read_listed_seats(struct reader *rd, const struct fields *f,
                              const struct section_def *s, struct row_def *row)
{
    const json_t *list = json_object_get(f->object, "seats");
    size_t n = json_array_size(list);
    if (n < 1 || n > ROW_SEATS_MAX)
        return field_fail(f, "seats", "must list 1 to 100000 seats");
    if (!count_rows(rd, f, "seats", 1, (int64_t)n))
        return false;
    row->seats = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const struct fields seat = {.object = json_array_get(list, i), .path = "", .err = f->err};
        if (!add_listed_seat(rd, &seat, s, row))
            return fail_under(f->err, "seats", i);
    }
    return check_ids_len(rd, f);
}

static bool read_row(struct reader *rd, const struct fields *f, struct section_def *s)
{
    static const char *const known[] = {"name", "seats", NULL};
    struct row_def *row = vec_push(&s->rows);
    int64_t seats = 0;
    if (!fields_known(f, known) || !read_name(f, &row->name))
        return false;
    if (json_is_array(json_object_get(f->object, "seats")))
        return read_listed_seats(rd, f, s, row);
    if (!field_int(f, "seats", REQUIRED, 1, ROW_SEATS_MAX, &seats) ||
        !count_rows(rd, f, "seats", 1, seats))
        return false;
    row->seats = (uint32_t)seats;
    return add_counted_seats(rd, f, s, row);
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
        const struct fields row = {.object = json_array_get(rows, i), .path = "", .err = rd->err};
        if (!read_row(rd, &row, s))
            return fail_under(rd->err, "rows", i);
    }
    char **names = hf_alloc(n * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = s->rows.v[i].name;
    bool ok = names_differ(rd, f->path, "rows", names, n);
    free(names);
    return ok;
}

/* ---- sections ---- */

static bool read_section(struct reader *rd, const struct fields *f, struct section_def *s)
{
    static const char *const known[] = {"name", "tier",          "price", "category",
                                        "rows", "seats_per_row", NULL};
    const char *tier = NULL;
    size_t tier_len = 0;
    if (!fields_known(f, known) || !read_name(f, &s->name) ||
        !field_text(f, "tier", NULLABLE, 1, NAME_CHARS_MAX, &tier, &tier_len) ||
        !read_section_price(rd, f, s))
        return false;
    if (tier)
        s->tier = hf_strndup(tier, tier_len);
    const json_t *rows = json_object_get(f->object, "rows");
    if (rows && !json_is_integer(rows) && !json_is_array(rows))
        return field_fail(f, "rows", "must be a number of rows or a list of them");
    return json_is_array(rows) ? read_rows_listed(rd, f, s) : read_rows_counted(rd, f, s);
}

static bool read_sections(struct reader *rd, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct fields f = {.object = json_array_get(list, i), .path = "", .err = rd->err};
        if (read_section(rd, &f, vec_push(&rd->def->sections)))
            continue;
        (void)fail_under(rd->err, "sections", i);
        if (!complaint_kept(rd))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool row_lists_seats(const json_t *row)
{
    return json_is_array(json_object_get(row, "seats"));
}

/* Does some section need more than counted rows and a price of its own? */
static bool needs_venue(const json_t *sections)
{
    for (size_t s = 0; s < json_array_size(sections); s++) {
        const json_t *section = json_array_get(sections, s);
        const json_t *rows = json_object_get(section, "rows");
        if (json_object_get(section, "category"))
            return true;
        for (size_t r = 0; r < json_array_size(rows); r++)
            if (row_lists_seats(json_array_get(rows, r)))
                return true;
    }
    return false;
}

/* Finds the seat of this index among the sections' lists of seats, and puts its path before the
 * message. */
static bool fail_at_seat(struct hf_err *err, const json_t *list, uint32_t seat)
{
    for (size_t s = 0; s < json_array_size(list); s++) {
        const json_t *rows = json_object_get(json_array_get(list, s), "rows");
        for (size_t r = 0; r < json_array_size(rows); r++) {
            const json_t *seats = json_object_get(json_array_get(rows, r), "seats");
            size_t n =
                json_is_integer(seats) ? (size_t)json_integer_value(seats) : json_array_size(seats);
            if (seat >= n) {
                seat -= (uint32_t)n;
                continue;
            }
            (void)fail_under(err, "seats", seat);
            (void)fail_under(err, "rows", r);
            return fail_under(err, "sections", s);
        }
        if (json_is_integer(rows)) /* counted rows, whose seats have no ids in common */
            seat -= (uint32_t)(json_integer_value(rows) *
                               json_integer_value(
                                   json_object_get(json_array_get(list, s), "seats_per_row")));
    }
    return false;
}

static bool refuse_duplicate(const struct reader *rd, const json_t *sections, uint32_t seat)
{
    (void)hf_err_set(rd->err, HF_INVALID_REQUEST, "label is that of another seat, too: %.120s",
                     venue_id(rd->def->venue, seat));
    return fail_at_seat(rd->err, sections, seat);
}

bool read_layout(struct reader *rd, const struct fields *f)
{
    struct event_def *def = rd->def;
    const json_t *sections = NULL, *categories = NULL;
    if (!field_array(f, "sections", OPTIONAL, &sections) ||
        !field_array(f, "categories", OPTIONAL, &categories))
        return false;
    if (categories || needs_venue(sections))
        def->venue = venue_new();
    if (!read_categories(rd, categories) || !read_sections(rd, sections) ||
        !read_areas(rd, f, false))
        return false;
    if (def->sections.n + def->areas.n == 0)
        return field_fail(f, "sections", "or areas must have at least one entry");
    if (has_complaints(rd))
        return false;
    if (!event_def_number(def))
        return field_fail(f, "sections", "have more than 2000000 seats");
    if (def->venue && !def->categories.n)
        return field_fail(f, "categories", "are needed, or sections with a price");
    uint32_t twice;
    return !def->venue || finish_venue(def, &twice) || refuse_duplicate(rd, sections, twice);
}
