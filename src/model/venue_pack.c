/* The stored form of a venue: its arrays one after another, each as it stands in memory but for
 * offsets, which are differences (they compress to almost nothing), and then gzip.  Numbers are
 * little-endian.  The first number is the version of the format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/utf8.h"
#include "model/rows.h"

#define VERSION 1
#define UNPACKED_MAX ((size_t)512 << 20)
#define NO_TEXT UINT32_MAX

enum { IS_PLAN = 1, IS_PLACED = 2, HAS_FOCUS = 4, HAS_PLACES = 8, HAS_EXTRAS = 16 };

/* ---- writing ---- */

static void put_u64(struct buf *out, uint64_t value, size_t bytes)
{
    unsigned char data[8];
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(value >> 8 * i);
    buf_put(out, data, bytes);
}

static void put_u32(struct buf *out, uint32_t value) { put_u64(out, value, 4); }

static void put_double(struct buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(out, bits, 8);
}

static void put_text(struct buf *out, const char *text)
{
    if (!text) {
        put_u32(out, NO_TEXT);
        return;
    }
    size_t len = strlen(text);
    put_u32(out, (uint32_t)len);
    buf_put(out, text, len);
}

static void put_plan(const struct venue *v, struct buf *out)
{
    put_u32(out, (v->is_plan ? IS_PLAN : 0u) | (v->is_placed ? IS_PLACED : 0u) |
                     (v->has_focus ? HAS_FOCUS : 0u) | (v->x ? HAS_PLACES : 0u) |
                     (v->extras ? HAS_EXTRAS : 0u));
    put_text(out, v->name);
    put_text(out, v->areas);
    put_double(out, v->width);
    put_double(out, v->height);
    put_double(out, v->focus_x);
    put_double(out, v->focus_y);
}

static void put_names(const struct event_def *def, struct buf *out)
{
    put_u32(out, (uint32_t)def->categories.n);
    for (size_t i = 0; i < def->categories.n; i++) {
        put_text(out, def->categories.v[i].color);
        put_u32(out, def->categories.v[i].of_section);
    }
    put_u32(out, (uint32_t)def->sections.n);
    for (size_t s = 0; s < def->sections.n; s++) {
        const struct section_def *section = &def->sections.v[s];
        put_text(out, section->extra);
        put_u32(out, (uint32_t)(section->category + 1));
        put_u32(out, (uint32_t)section->rows.n);
        for (size_t r = 0; r < section->rows.n; r++) {
            put_text(out, section->rows.v[r].name);
            put_text(out, section->rows.v[r].extra);
        }
    }
    put_u32(out, (uint32_t)def->areas.n);
    for (size_t a = 0; a < def->areas.n; a++)
        put_text(out, def->areas.v[a].plan_area);
}

static void put_offsets(const uint32_t *offsets, uint32_t n, struct buf *out)
{
    for (uint32_t i = 0; i < n; i++)
        put_u32(out, offsets[i] - (i ? offsets[i - 1] : 0));
}

static void put_doubles(const double *values, uint32_t n, struct buf *out)
{
    for (uint32_t i = 0; i < n; i++)
        put_double(out, values[i]);
}

static void put_seats(const struct venue *v, struct buf *out)
{
    put_u32(out, v->n_seats);
    put_u32(out, (uint32_t)v->text.len);
    buf_put(out, v->text.data, v->text.len);
    put_offsets(v->ids, v->n_seats, out);
    put_offsets(v->labels, v->n_seats, out);
    if (v->extras)
        put_offsets(v->extras, v->n_seats, out);
    buf_put(out, v->categories, v->n_seats);
    buf_put(out, v->flags, v->n_seats);
    if (v->x) {
        put_doubles(v->x, v->n_seats, out);
        put_doubles(v->y, v->n_seats, out);
    }
}

void venue_pack(const struct event_def *def, struct buf *out)
{
    struct buf plain = {0};
    put_u32(&plain, VERSION);
    put_plan(def->venue, &plain);
    put_names(def, &plain);
    put_seats(def->venue, &plain);
    gzip_pack(&plain, out);
    buf_close(&plain);
}

/* ---- reading ---- */

/* Where the reading stands.  Once `bad`, it stays so, and numbers read as 0. */
struct pack_cursor {
    const unsigned char *at, *end;
    bool bad;
};

static const unsigned char *take(struct pack_cursor *c, size_t len)
{
    if (c->bad || (size_t)(c->end - c->at) < len) {
        c->bad = true;
        return NULL;
    }
    c->at += len;
    return c->at - len;
}

static uint64_t take_u64(struct pack_cursor *c, size_t bytes)
{
    const unsigned char *data = take(c, bytes);
    uint64_t value = 0;
    for (size_t i = 0; data && i < bytes; i++)
        value |= (uint64_t)data[i] << 8 * i;
    return value;
}

static uint32_t take_u32(struct pack_cursor *c) { return (uint32_t)take_u64(c, 4); }

static double take_double(struct pack_cursor *c)
{
    uint64_t bits = take_u64(c, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* NULL where there was no text, and where the bytes are bad. */
static char *take_text(struct pack_cursor *c)
{
    uint32_t len = take_u32(c);
    if (c->bad || len == NO_TEXT)
        return NULL;
    const unsigned char *data = take(c, len);
    if (data && memchr(data, '\0', len))
        c->bad = true;
    return c->bad ? NULL : hf_strndup((const char *)data, len);
}

static unsigned take_plan(struct pack_cursor *c, struct venue *v)
{
    unsigned bits = take_u32(c);
    v->is_plan = bits & IS_PLAN;
    v->is_placed = bits & IS_PLACED;
    v->has_focus = bits & HAS_FOCUS;
    v->name = take_text(c);
    v->areas = take_text(c);
    v->width = take_double(c);
    v->height = take_double(c);
    v->focus_x = take_double(c);
    v->focus_y = take_double(c);
    return bits;
}

static void take_row(struct pack_cursor *c, struct row_def *row)
{
    char *name = take_text(c);
    if (!name) {
        c->bad = true;
        return;
    }
    free(row->name);
    row->name = name;
    row->extra = take_text(c);
}

static void take_names(struct pack_cursor *c, struct event_def *def)
{
    c->bad |= take_u32(c) != def->categories.n;
    for (size_t i = 0; !c->bad && i < def->categories.n; i++) {
        def->categories.v[i].color = take_text(c);
        def->categories.v[i].of_section = take_u32(c) != 0;
    }
    c->bad |= take_u32(c) != def->sections.n;
    for (size_t s = 0; !c->bad && s < def->sections.n; s++) {
        struct section_def *section = &def->sections.v[s];
        section->extra = take_text(c);
        uint32_t category = take_u32(c);
        c->bad |= category > def->categories.n || take_u32(c) != section->rows.n;
        section->category = (int16_t)((int)category - 1);
        for (size_t r = 0; !c->bad && r < section->rows.n; r++)
            take_row(c, &section->rows.v[r]);
    }
    c->bad |= take_u32(c) != def->areas.n;
    for (size_t a = 0; !c->bad && a < def->areas.n; a++)
        def->areas.v[a].plan_area = take_text(c);
}

static uint32_t *take_offsets(struct pack_cursor *c, const struct venue *v)
{
    if ((size_t)(c->end - c->at) / 4 < v->n_seats)
        c->bad = true;
    if (c->bad)
        return NULL;
    uint32_t *offsets = hf_alloc(((size_t)v->n_seats + 1) * sizeof *offsets), sum = 0;
    for (uint32_t i = 0; i < v->n_seats; i++) {
        offsets[i] = sum += take_u32(c);
        c->bad |= sum >= v->text.len;
    }
    return offsets;
}

static uint8_t *take_bytes(struct pack_cursor *c, uint32_t n)
{
    const unsigned char *data = take(c, n);
    if (!data)
        return NULL;
    uint8_t *bytes = hf_alloc((size_t)n + 1);
    memcpy(bytes, data, n);
    return bytes;
}

static double *take_doubles(struct pack_cursor *c, uint32_t n)
{
    if ((size_t)(c->end - c->at) / 8 < n)
        c->bad = true;
    if (c->bad)
        return NULL;
    double *values = hf_alloc(((size_t)n + 1) * sizeof *values);
    for (uint32_t i = 0; i < n; i++)
        values[i] = take_double(c);
    return values;
}

/* False for NaN, too. */
static bool is_drawable(double x, double y)
{
    return fabs(x) <= EXTENT_MAX && fabs(y) <= EXTENT_MAX;
}

/* Every seat that claims a position has one, and so has every seat of a plan.  No number is larger
 * than what the readers of events accept, so that whoever draws the venue may compute with all of
 * them. */
static void check_places(struct pack_cursor *c, const struct venue *v)
{
    bool all = v->is_plan || v->is_placed;
    for (uint32_t i = 0; !c->bad && i < v->n_seats; i++) {
        bool is_placed = v->flags[i] & SEAT_PLACED;
        c->bad |= is_placed ? !v->x || !is_drawable(v->x[i], v->y[i]) : all;
    }
    c->bad |= !is_drawable(v->width, v->height) || !is_drawable(v->focus_x, v->focus_y);
}

static void take_seats(struct pack_cursor *c, unsigned bits, size_t n_categories, struct venue *v)
{
    v->n_seats = take_u32(c);
    uint32_t len = take_u32(c);
    const unsigned char *text = take(c, len);
    if (!text || !len || text[len - 1] != '\0' || !utf8_is_valid((const char *)text, len)) {
        c->bad = true;
        return;
    }
    v->text.len = 0;
    buf_put(&v->text, text, len);
    v->text.data = hf_realloc(v->text.data, v->text.cap = len);
    v->ids = take_offsets(c, v);
    v->labels = take_offsets(c, v);
    if (bits & HAS_EXTRAS)
        v->extras = take_offsets(c, v);
    v->categories = take_bytes(c, v->n_seats);
    v->flags = take_bytes(c, v->n_seats);
    for (uint32_t i = 0; !c->bad && i < v->n_seats; i++)
        c->bad |= v->categories[i] >= n_categories;
    if (bits & HAS_PLACES) {
        v->x = take_doubles(c, v->n_seats);
        v->y = take_doubles(c, v->n_seats);
    }
    check_places(c, v);
}

bool venue_unpack(struct event_def *def, const void *data, size_t len)
{
    struct buf plain = {0};
    bool ok = gzip_unpack(data, len, UNPACKED_MAX, &plain);
    struct pack_cursor c = {.at = (unsigned char *)plain.data, .bad = !ok};
    c.end = c.at + plain.len;
    struct venue *v = def->venue = venue_new();
    if (take_u32(&c) != VERSION)
        c.bad = true;
    unsigned bits = take_plan(&c, v);
    take_names(&c, def);
    take_seats(&c, bits, def->categories.n, v);
    buf_close(&plain);
    uint32_t first, second;
    if (c.bad || c.at != c.end || v->n_seats != def->n_seats || !venue_index(v, &first, &second))
        return false;
    venue_find_listed(def);
    return true;
}
