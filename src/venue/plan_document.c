/* See plan_document.h.  Pure, but for the sink. */
#include "venue/plan_document.h"

#include <math.h>
#include <stdio.h>

#include "base/json_put.h"
#include "venue/geometry.h"
#include "json/fields.h"

#define FLUSH_LEN ((size_t)1 << 20)
#define AREA_WIDTH 240.0
#define AREA_HEIGHT 90.0
#define AREA_GAP 30.0
#define SEAT_RADIUS 10.0

/* What the document shows: the creator's plan, or a generated one. */
struct picture {
    const struct event_def *def;
    const struct venue *venue; /* may be NULL */
    struct geometry generated; /* where some seat has no position of its own */
    bool is_generated;
    double width, height, focus_x, focus_y;
    double areas_y; /* sold areas that have no shape are drawn below this */
    size_t n_plain; /* how many of those there are */
};

/* ---- numbers and members ---- */

/* Positions have few digits, so this is faster than the general way; the result is the same. */
static void put_number(struct buf *out, double value)
{
    double hundredths = value * 100;
    if (fabs(value) < 1e9 && hundredths == floor(hundredths) &&
        (double)(int64_t)hundredths / 100 == value) {
        int64_t n = (int64_t)hundredths;
        uint64_t size = n < 0 ? (uint64_t)-n : (uint64_t)n;
        if (n < 0)
            buf_char(out, '-');
        buf_int(out, (int64_t)(size / 100));
        if (size % 100) {
            buf_char(out, '.');
            buf_char(out, (char)('0' + size % 100 / 10));
            if (size % 10)
                buf_char(out, (char)('0' + size % 10));
        }
        return;
    }
    put_real(out, value);
}

static void put_named(struct buf *out, const char *name, double value)
{
    json_put_name(out, name);
    put_number(out, value);
}

/* ---- what is drawn where ---- */

static void choose_picture(struct picture *p)
{
    const struct venue *v = p->venue;
    p->is_generated = !v || (!v->is_placed && !v->is_plan);
    if (p->is_generated) {
        geometry_init(&p->generated, p->def);
        p->width = p->generated.width;
        p->height = p->generated.height;
        p->focus_x = p->generated.focus_x;
        p->focus_y = p->generated.focus_y;
    } else {
        p->width = v->width;
        p->height = v->height;
        p->focus_x = v->focus_x;
        p->focus_y = v->focus_y;
    }
    if (v && p->is_generated) /* seats that were placed may stand outside */
        for (uint32_t i = 0; i < v->n_seats; i++)
            if (v->flags[i] & SEAT_PLACED) {
                p->width = fmax(p->width, ceil(v->x[i] + 2 * SEAT_RADIUS));
                p->height = fmax(p->height, ceil(v->y[i] + 2 * SEAT_RADIUS));
            }
}

/* How many sold areas fit side by side. */
static size_t areas_per_line(const struct picture *p)
{
    double n = floor((p->width - AREA_GAP) / (AREA_WIDTH + AREA_GAP));
    return n < 1 ? 1 : (size_t)n;
}

/* Makes room below the seats for areas that no shape of the plan shows. */
static void make_room_for_areas(struct picture *p)
{
    for (size_t i = 0; i < p->def->areas.n; i++)
        p->n_plain += !p->def->areas.v[i].plan_area;
    p->areas_y = p->height;
    size_t lines = (p->n_plain + areas_per_line(p) - 1) / areas_per_line(p);
    p->height += (double)lines * (AREA_HEIGHT + AREA_GAP);
    if (p->n_plain && p->width < AREA_WIDTH + 2 * AREA_GAP)
        p->width = AREA_WIDTH + 2 * AREA_GAP;
}

/* ---- seats ---- */

/* A seat of an event whose rows are counted. */
static void put_counted_seat(const struct picture *p, size_t section, const struct row_def *row,
                             uint32_t seat, struct buf *out)
{
    const struct section_def *s = &p->def->sections.v[section];
    char number[16], id[2 * NAME_SIZE + 16];
    (void)snprintf(number, sizeof number, "%u", seat - row->first + 1);
    int len = snprintf(id, sizeof id, "%s-%s-%s", s->name, row->name, number);
    buf_char(out, '{');
    json_put_bytes(out, "id", id, (size_t)len);
    json_put_text(out, "label", number);
    put_named(out, "x", p->generated.x[seat]);
    put_named(out, "y", p->generated.y[seat]);
    json_put_text(out, "category", s->name);
    buf_char(out, '}');
}

static void put_seat(const struct picture *p, uint32_t seat, struct buf *out)
{
    const struct venue *v = p->venue;
    unsigned flags = v->flags[seat];
    bool is_own = flags & SEAT_PLACED;
    hf_check(is_own || p->generated.x); /* places are generated if a seat has none */
    buf_char(out, '{');
    json_put_text(out, "id", venue_id(v, seat));
    json_put_text(out, "label", venue_label(v, seat));
    put_named(out, "x", is_own ? v->x[seat] : p->generated.x[seat]);
    put_named(out, "y", is_own ? v->y[seat] : p->generated.y[seat]);
    json_put_text(out, "category", p->def->categories.v[v->categories[seat]].name);
    buf_str(out, flags & SEAT_ACCESSIBLE ? ",\"accessible\":true" : "");
    buf_str(out, flags & SEAT_COMPANION ? ",\"companion\":true" : "");
    buf_str(out, flags & SEAT_RESTRICTED_VIEW ? ",\"restricted_view\":true" : "");
    buf_str(out, venue_extra(v, seat));
    buf_char(out, '}');
}

static void drain(const struct plan_sink *sink, struct buf *out, size_t len)
{
    if (sink && sink->flush && out->len >= len)
        sink->flush(sink->context, out);
}

static void put_row(const struct picture *p, size_t section, const struct row_def *row,
                    const struct plan_sink *sink, struct buf *out)
{
    buf_char(out, '{');
    json_put_text(out, "name", row->name);
    buf_str(out, row->extra ? row->extra : "");
    json_open(out, "seats", '[');
    for (uint32_t i = 0; i < row->seats; i++) {
        if (i)
            buf_char(out, ',');
        if (p->venue)
            put_seat(p, row->first + i, out);
        else
            put_counted_seat(p, section, row, row->first + i, out);
        drain(sink, out, FLUSH_LEN);
    }
    buf_lit(out, "]}");
}

static void put_section(const struct picture *p, size_t section, const struct plan_sink *sink,
                        struct buf *out)
{
    const struct section_def *s = &p->def->sections.v[section];
    buf_char(out, '{');
    json_put_text(out, "name", s->name);
    buf_str(out, s->extra ? s->extra : "");
    json_open(out, "rows", '[');
    for (size_t r = 0; r < s->rows.n; r++) {
        if (r)
            buf_char(out, ',');
        put_row(p, section, &s->rows.v[r], sink, out);
    }
    buf_lit(out, "]}");
}

/* ---- areas ---- */

static void put_stage(const struct geometry *g, struct buf *out)
{
    buf_lit(out, "{\"name\":null,\"shape\":\"rectangle\"");
    put_named(out, "x", g->stage_x);
    put_named(out, "y", g->stage_y);
    json_open(out, "rectangle", '{');
    put_named(out, "width", g->stage_width);
    put_named(out, "height", g->stage_height);
    buf_lit(out, "},\"text\":{\"text\":\"Stage\",\"position\":{");
    put_named(out, "x", g->stage_width / 2);
    put_named(out, "y", g->stage_height / 2);
    buf_lit(out, "}}}");
}

/* A sold area that no shape of a plan shows, as the `index`th of such. */
static void put_plain_area(const struct picture *p, const struct area_def *area, size_t index,
                           struct buf *out)
{
    size_t per_line = areas_per_line(p), line = index / per_line;
    size_t left = p->n_plain - line * per_line;
    size_t in_line = left < per_line ? left : per_line;
    double line_width = (double)in_line * (AREA_WIDTH + AREA_GAP) - AREA_GAP;
    double x = (p->width - line_width) / 2 + (double)(index % per_line) * (AREA_WIDTH + AREA_GAP);
    double y = p->areas_y + (double)line * (AREA_HEIGHT + AREA_GAP);
    json_open(out, NULL, '{');
    json_put_text(out, "name", area->name);
    json_put_text(out, "shape", "rectangle");
    put_named(out, "x", round(x));
    put_named(out, "y", round(y));
    json_open(out, "rectangle", '{');
    put_named(out, "width", AREA_WIDTH);
    put_named(out, "height", AREA_HEIGHT);
    buf_char(out, '}');
    json_put_int(out, "capacity", area->capacity);
    buf_char(out, '}');
}

static void put_areas(const struct picture *p, struct buf *out)
{
    size_t n = 0;
    if (p->is_generated)
        put_stage(&p->generated, out);
    else if (p->venue->areas)
        buf_str(out, p->venue->areas);
    for (size_t i = 0; i < p->def->areas.n; i++)
        if (!p->def->areas.v[i].plan_area)
            put_plain_area(p, &p->def->areas.v[i], n++, out);
}

/* ---- the whole ---- */

static void put_head(const struct picture *p, const char *event_id, struct buf *out)
{
    buf_char(out, '{');
    json_put_text(out, "event", event_id);
    json_put_text(out, "name", p->venue ? p->venue->name : NULL);
    json_open(out, "size", '{');
    put_named(out, "width", p->width);
    put_named(out, "height", p->height);
    buf_lit(out, "},\"focus\":{");
    put_named(out, "x", p->focus_x);
    put_named(out, "y", p->focus_y);
    buf_lit(out, "},\"categories\":[");
    for (size_t i = 0; i < event_def_categories(p->def); i++) {
        json_open(out, NULL, '{');
        json_put_text(out, "name", event_def_category_name(p->def, i));
        json_put_text(out, "color", p->def->categories.n ? p->def->categories.v[i].color : NULL);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void plan_document(const struct event_def *def, const char *event_id, const struct plan_sink *sink,
                   struct buf *out)
{
    struct picture p = {.def = def, .venue = def->venue};
    choose_picture(&p);
    make_room_for_areas(&p);
    put_head(&p, event_id, out);
    json_open(out, "sections", '[');
    for (size_t s = 0; s < def->sections.n; s++) {
        if (s)
            buf_char(out, ',');
        put_section(&p, s, sink, out);
    }
    buf_lit(out, "],\"areas\":[");
    put_areas(&p, out);
    buf_lit(out, "]}");
    drain(sink, out, 0);
    geometry_close(&p.generated);
}
