/* See render.h. */
#include "cli/render.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void render_text(struct buf *b, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        /* U+0080 to U+009F, which some terminals obey, too, begin with 0xc2. */
        bool is_c1 = c == 0xc2 && i + 1 < len && ((unsigned char)text[i + 1] & 0xe0) == 0x80;
        i += is_c1;
        buf_char(b, c < ' ' || c == 0x7f || is_c1 ? '?' : (char)c);
    }
}

/* The digits behind the point: two, but for these (ISO 4217). */
static int digits_of(const char *currency)
{
    static const char none[] = "bif clp djf gnf isk jpy kmf krw pyg rwf ugx vnd vuv xaf xof xpf";
    static const char three[] = "bhd iqd jod kwd lyd omr tnd";
    if (strlen(currency) != 3)
        return 2;
    return strstr(none, currency) ? 0 : strstr(three, currency) ? 3 : 2;
}

void render_money(struct buf *b, int64_t amount, const char *currency)
{
    static const int64_t units[] = {1, 10, 100, 1000};
    int digits = digits_of(currency);
    uint64_t size = amount < 0 ? -(uint64_t)amount : (uint64_t)amount,
             unit = (uint64_t)units[digits];
    buf_printf(b, "%s%" PRIu64, amount < 0 ? "-" : "", size / unit);
    if (digits)
        buf_printf(b, ".%0*" PRIu64, digits, size % unit);
}

static bool is_money(const char *name)
{
    return strncmp(name, "amount", 6) == 0 || strncmp(name, "price", 5) == 0;
}

static void put_value(struct buf *b, const json_t *value, const char *currency, bool money);

/* A member of an object with this currency; NULL: it has none. */
static void put_member(struct buf *b, const char *name, const json_t *value, const char *currency)
{
    put_value(b, value, currency, currency && is_money(name));
}

/* `money`: integers in the value are amounts of the currency. */
static void put_value(struct buf *b, const json_t *value, const char *currency, bool money)
{
    const char *name;
    json_t *member;
    size_t i, n = 0;
    if (!value) {
        buf_char(b, '-');
        return;
    }
    switch (json_typeof(value)) {
    case JSON_STRING:
        render_text(b, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        if (money)
            render_money(b, json_integer_value(value), currency);
        else
            buf_int(b, json_integer_value(value));
        break;
    case JSON_REAL:
        buf_printf(b, "%g", json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        buf_str(b, json_is_true(value) ? "yes" : "no");
        break;
    case JSON_NULL:
        buf_char(b, '-');
        break;
    case JSON_ARRAY:
        json_array_foreach(value, i, member)
        {
            buf_str(b, i ? ", " : "");
            put_value(b, member, currency, money);
        }
        buf_str(b, json_array_size(value) ? "" : "-");
        break;
    case JSON_OBJECT:
        json_object_foreach((json_t *)value, name, member)
        {
            buf_str(b, n++ ? " " : "");
            render_text(b, name, strlen(name));
            buf_char(b, '=');
            put_value(b, member, currency, money || (currency && is_money(name)));
        }
        buf_str(b, n ? "" : "-");
        break;
    }
}

void render_value(struct buf *b, const json_t *value) { put_value(b, value, NULL, false); }

static const char *currency_of(const json_t *object)
{
    return json_string_value(json_object_get(object, "currency"));
}

/* The number of characters, so that columns stand below one another. */
static size_t width_of(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void put_spaces(struct buf *b, size_t n)
{
    for (; n > 0; n--)
        buf_char(b, ' ');
}

static bool is_list_of_objects(const json_t *value)
{
    return json_array_size(value) > 0 && json_is_object(json_array_get(value, 0));
}

void render_object(struct buf *b, const json_t *object)
{
    const char *name;
    json_t *value, *item;
    size_t widest = 0, i;
    const char *currency = currency_of(object);
    json_object_foreach((json_t *)object, name, value)
    {
        size_t width = width_of(name, strlen(name));
        widest = width > widest ? width : widest;
    }
    json_object_foreach((json_t *)object, name, value)
    {
        if (strcmp(name, "object") == 0)
            continue;
        render_text(b, name, strlen(name));
        if (is_list_of_objects(value)) {
            json_array_foreach(value, i, item)
            {
                buf_lit(b, "\n  ");
                put_member(b, name, item, currency);
            }
        } else {
            put_spaces(b, widest + 2 - width_of(name, strlen(name)));
            put_member(b, name, value, currency);
        }
        buf_char(b, '\n');
    }
}

/* ---- tables ---- */

#define COLUMNS_MAX 16

struct render_table {
    struct buf cells; /* their texts, one behind the other */
    VEC(size_t) ends; /* where each of them ends */
    size_t n_columns, widths[COLUMNS_MAX];
};

static void end_cell(struct render_table *t)
{
    size_t column = t->ends.n % t->n_columns;
    size_t start = t->ends.n ? t->ends.v[t->ends.n - 1] : 0;
    size_t width = t->cells.len > start ? width_of(t->cells.data + start, t->cells.len - start) : 0;
    t->widths[column] = width > t->widths[column] ? width : t->widths[column];
    *vec_push(&t->ends) = t->cells.len;
}

static void put_table(struct buf *b, const struct render_table *t)
{
    for (size_t i = 0, start = 0; i < t->ends.n; start = t->ends.v[i++]) {
        size_t column = i % t->n_columns, len = t->ends.v[i] - start;
        buf_put(b, len ? t->cells.data + start : "", len);
        if (column + 1 == t->n_columns)
            buf_char(b, '\n');
        else
            put_spaces(b, t->widths[column] + 2 - (len ? width_of(t->cells.data + start, len) : 0));
    }
}

void render_table(struct buf *b, const json_t *rows, const char *const *columns, bool has_header)
{
    struct render_table t = {0};
    const json_t *row;
    size_t i;
    while (columns[t.n_columns])
        t.n_columns++;
    hf_check(t.n_columns <= COLUMNS_MAX);
    for (size_t c = 0; has_header && c < t.n_columns; c++) {
        buf_str(&t.cells, columns[c]);
        end_cell(&t);
    }
    json_array_foreach((json_t *)rows, i, row)
    {
        for (size_t c = 0; c < t.n_columns; c++) {
            put_member(&t.cells, columns[c], json_object_get(row, columns[c]), currency_of(row));
            end_cell(&t);
        }
    }
    put_table(b, &t);
    buf_close(&t.cells);
    vec_close(&t.ends);
}

/* ---- maps ---- */

static void put_section(struct buf *b, const json_t *section)
{
    const json_t *rows = json_object_get(section, "rows"), *row;
    struct render_table t = {.n_columns = 2};
    size_t i;
    render_value(b, json_object_get(section, "name"));
    buf_lit(b, "  price ");
    render_value(b, json_object_get(section, "price"));
    buf_char(b, '\n');
    json_array_foreach((json_t *)rows, i, row)
    {
        buf_lit(&t.cells, "  ");
        render_value(&t.cells, json_object_get(row, "name"));
        end_cell(&t);
        render_value(&t.cells, json_object_get(row, "seats"));
        end_cell(&t);
    }
    put_table(b, &t);
    buf_close(&t.cells);
    vec_close(&t.ends);
}

void render_map(struct buf *b, const json_t *map)
{
    static const char *const columns[] = {"name", "price", "capacity", "available", NULL};
    const json_t *sections = json_object_get(map, "sections"), *section;
    const json_t *areas = json_object_get(map, "areas"), *status = json_object_get(map, "status");
    size_t i;
    buf_lit(b, "seq ");
    render_value(b, json_object_get(map, "seq"));
    if (status) {
        buf_lit(b, "  status ");
        render_value(b, status);
    }
    buf_lit(b, "  . available  h held  b booked  x blocked\n");
    json_array_foreach((json_t *)sections, i, section) put_section(b, section);
    if (json_array_size(areas))
        render_table(b, areas, columns, true);
}
