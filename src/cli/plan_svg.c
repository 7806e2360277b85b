/* See plan_svg.h.  The picture stands on its own: it refers to no other file and has no script.
 * It follows the reader's choice of a light or dark page.
 *
 * It looks as the map in a browser does (web/seats/plan.js, decor.js, theme.js): the same shapes,
 * colours and texts at the same places, which tests/web/seats_parts.test.mjs compares. */
#include "cli/plan_svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/color.h"
#include "base/status.h"
#include "base/vec.h"
#include "cli/plan_names.h"

#define SEAT_RADIUS 10
#define TEXT_SIZE 16
#define COLOR_LEN_MAX 64
#define LEGIBLE 3.0   /* the contrast that the text of an area needs */
#define FILL_PART 0.9 /* of an area's width, for a name that is made to fit */

/* What the map's theme has on a light and on a dark page. */
static const struct color light_page = {0xff, 0xff, 0xff}, dark_page = {0x1d, 0x1d, 0x25};
static const struct color light_area = {0xe8, 0xe8, 0xee}, dark_area = {0x2c, 0x2c, 0x37};
static const char *const category_colors[] = {"#0072b2", "#d55e00", "#009e73", "#b84f8e",
                                              "#c78500", "#3d8fc4", "#6b5fb5", "#7a7a00"};
#define N_CATEGORY_COLORS (sizeof category_colors / sizeof *category_colors)

/* A row, by its place among all seats in the order of the plan. */
struct svg_row {
    const json_t *json;
    size_t first, end;
};

/* The members of the body that the picture is made of, and what was counted while drawing. */
struct svg_picture {
    struct buf *out;
    const json_t *plan, *accessible, *areas, *prices;
    json_t *colors;      /* category -> its colour */
    json_t *counts;      /* category -> how many seats it has */
    json_t *accessibles; /* the ids in `accessible`, as the keys of an object */
    struct plan_names names;
    VEC(struct svg_row) rows;
};

/* ---- text and numbers ---- */

/* Appends text for element content and attributes.  Characters that XML 1.0 does not have become
 * question marks. */
static void put_text(struct buf *out, const char *text)
{
    for (size_t i = 0; text && text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_nonchar =
            c == 0xef && (unsigned char)text[i + 1] == 0xbf && (unsigned char)text[i + 2] >= 0xbe;
        if (strchr("<>&\"'", c))
            buf_printf(out, "&#%d;", c);
        else if (is_nonchar || c < ' ' || c == 0x7f)
            buf_char(out, '?');
        else
            buf_char(out, (char)c);
        i += is_nonchar ? 2 : 0;
    }
}

/* Appends a number with at most two decimals. */
static void put_number(struct buf *out, double number)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%.2f", number);
    hf_check(len > 0 && (size_t)len < sizeof text);
    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    buf_put(out, text, (size_t)len);
}

static void put_attribute(struct buf *out, const char *name, double number)
{
    buf_printf(out, " %s=\"", name);
    put_number(out, number);
    buf_char(out, '"');
}

static void put_point(struct buf *out, const char *x, const char *y, struct plan_point at)
{
    put_attribute(out, x, at.x);
    put_attribute(out, y, at.y);
}

/* Returns whether the text has only what colours are written with: names, #0a7, rgb(1 2 3 / 50%).
 * A reference such as url(...) is no colour. */
static bool is_color(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#(),.%/ -";
    size_t len = text ? strlen(text) : 0;
    return len > 0 && len <= COLOR_LEN_MAX && strspn(text, allowed) == len &&
           !strcasestr(text, "url");
}

static void put_color(struct buf *out, const char *name, const json_t *color, const char *otherwise)
{
    const char *text = json_string_value(color);
    buf_printf(out, " %s=\"%s\"", name, is_color(text) ? text : otherwise);
}

static double number_of(const json_t *object, const char *name, double otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static struct plan_point point_of(const json_t *object, const char *name, struct plan_point from)
{
    const json_t *at = json_object_get(object, name);
    return (struct plan_point){from.x + number_of(at, "x", 0), from.y + number_of(at, "y", 0)};
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static size_t count_chars(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* ---- areas ---- */

/* The shape of an area: the one that it names, or else the first that it describes. */
static const char *shape_of(const json_t *area)
{
    static const char *const shapes[] = {"polygon", "rectangle", "ellipse", "circle", "text"};
    const char *named = text_of(area, "shape");
    for (size_t i = 0; !*named && i < sizeof shapes / sizeof *shapes; i++)
        if (json_object_get(area, shapes[i]))
            return shapes[i];
    return named;
}

static void put_polygon(struct buf *out, const json_t *polygon)
{
    const json_t *points = json_object_get(polygon, "points"), *each;
    size_t i;
    buf_lit(out, "<polygon points=\"");
    json_array_foreach((json_t *)points, i, each)
    {
        buf_str(out, i ? " " : "");
        put_number(out, number_of(each, "x", 0));
        buf_char(out, ',');
        put_number(out, number_of(each, "y", 0));
    }
    buf_lit(out, "\"/>");
}

static void put_shape(struct buf *out, const json_t *area)
{
    const char *shape = shape_of(area);
    const json_t *size = json_object_get(area, shape);
    if (strcmp(shape, "rectangle") == 0) {
        buf_lit(out, "<rect");
        put_attribute(out, "width", number_of(size, "width", 0));
        put_attribute(out, "height", number_of(size, "height", 0));
        buf_lit(out, "/>");
    } else if (strcmp(shape, "circle") == 0) {
        buf_lit(out, "<circle");
        put_attribute(out, "r", number_of(size, "radius", 0));
        buf_lit(out, "/>");
    } else if (strcmp(shape, "ellipse") == 0) {
        buf_lit(out, "<ellipse");
        put_point(out, "rx", "ry", point_of(size, "radius", (struct plan_point){0}));
        buf_lit(out, "/>");
    } else if (strcmp(shape, "polygon") == 0) {
        put_polygon(out, size);
    }
}

/* The area that is sold on this shape of the plan, or NULL. */
static const json_t *area_sold(const struct svg_picture *p, const json_t *area)
{
    const json_t *sold;
    const char *uuid = text_of(area, "uuid");
    size_t i;
    json_array_foreach((json_t *)p->areas, i, sold)
    {
        if (*uuid && strcmp(text_of(sold, "plan_area"), uuid) == 0)
            return sold;
    }
    return NULL;
}

/* The middle of an area, relative to its position; *ret_width is how wide it is there. */
static struct plan_point area_middle(const json_t *area, double *ret_width)
{
    const char *shape = shape_of(area);
    const json_t *size = json_object_get(area, shape), *each;
    struct plan_point low = {0, 0}, high = {0, 0};
    size_t i;
    if (strcmp(shape, "rectangle") == 0) {
        high = (struct plan_point){number_of(size, "width", 0), number_of(size, "height", 0)};
    } else if (strcmp(shape, "circle") == 0) {
        high.x = number_of(size, "radius", 0);
        low.x = -high.x;
    } else if (strcmp(shape, "ellipse") == 0) {
        high.x = point_of(size, "radius", (struct plan_point){0}).x;
        low.x = -high.x;
    }
    json_array_foreach(json_object_get(size, "points"), i, each) /* of a polygon */
    {
        struct plan_point at = {number_of(each, "x", 0), number_of(each, "y", 0)};
        low = i ? (struct plan_point){fmin(low.x, at.x), fmin(low.y, at.y)} : at;
        high = i ? (struct plan_point){fmax(high.x, at.x), fmax(high.y, at.y)} : at;
    }
    *ret_width = high.x - low.x;
    return (struct plan_point){(low.x + high.x) / 2, (low.y + high.y) / 2};
}

/* What stands in an area: its text or, if it has none and is sold, its name in the middle, as large
 * as there is room for.  Returns NULL for an area without words. */
static const char *area_label(const json_t *area, const json_t *sold, struct plan_text *ret)
{
    const json_t *text = json_object_get(area, "text");
    const char *words = text_of(text, "text");
    double width;
    if (*words) {
        ret->at = point_of(text, "position", (struct plan_point){0});
        ret->size = number_of(text, "size", TEXT_SIZE);
    } else {
        words = text_of(sold, "name");
        ret->at = area_middle(area, &width);
        double fitting = FILL_PART * width / (PLAN_CHAR_WIDTH * (double)(count_chars(words) + 1));
        ret->size = width > 0 ? fmin(TEXT_SIZE, fitting) : TEXT_SIZE;
    }
    ret->words = words;
    ret->side = 0;
    ret->width = PLAN_CHAR_WIDTH * ret->size * (double)count_chars(words);
    return *words ? words : NULL;
}

/* Returns whether text in this colour can be read on the background.  Of colours that are not
 * written in hexadecimal digits it is only known whether they are the same. */
static bool is_legible(const char *color, const char *own, struct color background)
{
    struct color ink;
    bool is_known = !is_color(own) || color_parse(own, &background);
    if (!is_known || !color_parse(color, &ink))
        return strcasecmp(color, is_color(own) ? own : "") != 0;
    return color_contrast(ink, background) >= LEGIBLE;
}

/* Writes the colour of an area's text: its own where that can be read on the area, otherwise black
 * or white on a coloured area, and that of the page's text on others. */
static void put_ink(struct buf *out, const json_t *area)
{
    bool has_shape = strcmp(shape_of(area), "text") != 0;
    const char *own = has_shape ? text_of(area, "color") : "";
    const char *wanted = text_of(json_object_get(area, "text"), "color");
    bool in_light = is_legible(wanted, own, has_shape ? light_area : light_page);
    bool in_dark = is_legible(wanted, own, has_shape ? dark_area : dark_page);
    struct color background;
    char ink[COLOR_TEXT_SIZE];
    if (!is_color(wanted))
        in_light = in_dark = false;
    if (is_color(own) && color_parse(own, &background) && !in_light) {
        color_format(color_ink(background), ink);
        buf_printf(out, " fill=\"%s\"", ink);
        return;
    }
    buf_printf(out, " fill=\"%s\"", in_light || in_dark ? wanted : "currentColor");
    if (is_color(own) && !color_parse(own, &background))
        buf_lit(out, " class=\"halo\"");
    else if (in_light != in_dark)
        buf_str(out, in_light ? " class=\"not-dark\"" : " class=\"not-light\"");
}

static void put_area_head(const struct svg_picture *p, const json_t *area, const json_t *sold,
                          struct plan_point at)
{
    struct buf *out = p->out;
    bool has_color = is_color(text_of(area, "color"));
    bool has_border = is_color(text_of(area, "border_color"));
    buf_lit(out, "<g transform=\"translate(");
    put_number(out, at.x);
    buf_char(out, ' ');
    put_number(out, at.y);
    buf_lit(out, ") rotate(");
    put_number(out, number_of(area, "rotation", 0));
    buf_lit(out, ")\"");
    if (has_color)
        put_color(out, "fill", json_object_get(area, "color"), "none");
    if (has_border)
        put_color(out, "stroke", json_object_get(area, "border_color"), "none");
    else if (!has_color || sold)
        buf_str(out, has_color ? " class=\"lined\"" : " class=\"plain lined\"");
    else
        buf_lit(out, " stroke=\"none\"");
    if (!has_color && has_border)
        buf_lit(out, " class=\"plain\"");
    buf_char(out, '>');
    if (!sold)
        return;
    buf_lit(out, "<title>");
    put_text(out, text_of(sold, "name"));
    buf_printf(out, ": %.0f places</title>", number_of(sold, "capacity", 0));
}

/* Where a point of an area is once the area has been turned around its position. */
static struct plan_point turned(struct plan_point at, struct plan_point around, double degrees)
{
    double angle = degrees * acos(-1) / 180;
    return (struct plan_point){around.x + at.x * cos(angle) - at.y * sin(angle),
                               around.y + at.x * sin(angle) + at.y * cos(angle)};
}

static void put_area(struct svg_picture *p, const json_t *area, struct plan_point zone)
{
    struct buf *out = p->out;
    struct plan_point at = point_of(area, "position", zone);
    const json_t *sold = area_sold(p, area);
    struct plan_text label = {0};
    const char *words = area_label(area, sold, &label);
    put_area_head(p, area, sold, at);
    put_shape(out, area);
    if (words) {
        buf_lit(out, "<text stroke=\"none\"");
        put_point(out, "x", "y", label.at);
        put_attribute(out, "font-size", label.size);
        put_ink(out, area);
        buf_lit(out, " dy=\".35em\">");
        put_text(out, words);
        buf_lit(out, "</text>");
        label.at = turned(label.at, at, number_of(area, "rotation", 0));
        *vec_push(&p->names.texts) = label;
    }
    buf_lit(out, "</g>\n");
}

/* ---- seats ---- */

static void put_seat(struct svg_picture *p, const json_t *seat, struct plan_point row)
{
    struct buf *out = p->out;
    struct plan_point at = point_of(seat, "position", row);
    double radius = number_of(seat, "radius", SEAT_RADIUS);
    const char *id = text_of(seat, "seat_guid"), *label = text_of(seat, "seat_number");
    const char *category = text_of(seat, "category");
    bool is_accessible = json_object_get(p->accessibles, id) != NULL;
    size_t chars = count_chars(label);
    if (is_accessible) {
        buf_lit(out, "<rect");
        put_point(out, "x", "y", (struct plan_point){at.x - radius, at.y - radius});
        put_attribute(out, "width", 2 * radius);
        put_attribute(out, "height", 2 * radius);
        put_attribute(out, "rx", radius * 0.35);
    } else {
        buf_lit(out, "<circle");
        put_point(out, "cx", "cy", at);
        put_attribute(out, "r", radius);
    }
    put_color(out, "fill", json_object_get(p->colors, category), "gray");
    buf_lit(out, "><title>");
    put_text(out, id);
    buf_lit(out, ", ");
    put_text(out, category);
    buf_str(out, is_accessible ? ", accessible</title></rect>" : "</title></circle>");
    buf_lit(out, "<text class=\"label\"");
    put_point(out, "x", "y", at);
    put_attribute(out, "font-size", radius * 2 / (double)(chars > 2 ? chars : 2));
    buf_lit(out, " dy=\".35em\">");
    put_text(out, label);
    buf_lit(out, "</text>\n");
    json_t *count = json_object_get(p->counts, category);
    json_integer_set(count, json_integer_value(count) + 1);
    *vec_push(&p->names.seats) = (struct plan_seat){at, radius};
}

static void put_row_names(struct svg_picture *p, const struct svg_row *row)
{
    static const char *const anchors[] = {"end", "middle", "start"};
    struct buf *out = p->out;
    const json_t *side = json_object_get(row->json, "row_number_position");
    const char *where = side ? text_of(row->json, "row_number_position") : "both";
    const char *text = text_of(row->json, "row_number");
    const struct plan_words words = {text, count_chars(text)};
    struct plan_text names[2];
    size_t n = plan_names_place(&p->names, row->first, row->end, where, &words, names);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "<text class=\"row\" text-anchor=\"%s\"", anchors[names[i].side + 1]);
        put_point(out, "x", "y", names[i].at);
        put_attribute(out, "font-size", names[i].size);
        buf_lit(out, " dy=\".35em\">");
        put_text(out, text);
        buf_lit(out, "</text>\n");
    }
}

static void put_row(struct svg_picture *p, const json_t *row, struct plan_point zone)
{
    struct plan_point from = point_of(row, "position", zone);
    const json_t *seats = json_object_get(row, "seats"), *seat;
    size_t first = p->names.seats.n, i;
    json_array_foreach((json_t *)seats, i, seat) put_seat(p, seat, from);
    *vec_push(&p->rows) = (struct svg_row){row, first, p->names.seats.n};
}

/* ---- the whole of it ---- */

/* Decoration comes first, so that no seat is hidden by it. */
static void put_zones(struct svg_picture *p)
{
    const json_t *zones = json_object_get(p->plan, "zones"), *zone, *each;
    size_t i, k;
    json_array_foreach((json_t *)zones, i, zone)
    {
        struct plan_point at = point_of(zone, "position", (struct plan_point){0});
        json_array_foreach(json_object_get(zone, "areas"), k, each) put_area(p, each, at);
    }
    json_array_foreach((json_t *)zones, i, zone)
    {
        struct plan_point at = point_of(zone, "position", (struct plan_point){0});
        json_array_foreach(json_object_get(zone, "rows"), k, each) put_row(p, each, at);
    }
}

static void put_legend(const struct svg_picture *p, struct plan_point at, double size)
{
    const json_t *categories = json_object_get(p->plan, "categories"), *category;
    size_t i;
    json_array_foreach((json_t *)categories, i, category)
    {
        const char *name = text_of(category, "name");
        const json_t *price = json_object_get(p->prices, name);
        buf_lit(p->out, "<circle");
        put_point(p->out, "cx", "cy",
                  (struct plan_point){at.x + size / 2, at.y + (double)i * size * 1.5});
        put_attribute(p->out, "r", size / 2);
        put_color(p->out, "fill", json_object_get(p->colors, name), "gray");
        buf_lit(p->out, "/><text class=\"legend\"");
        put_point(p->out, "x", "y",
                  (struct plan_point){at.x + size * 1.5, at.y + (double)i * size * 1.5});
        put_attribute(p->out, "font-size", size);
        buf_lit(p->out, " dy=\".35em\">");
        put_text(p->out, name);
        buf_printf(p->out, ": %lld seats",
                   (long long)json_integer_value(json_object_get(p->counts, name)));
        if (json_is_integer(price))
            buf_printf(p->out, ", %lld each", (long long)json_integer_value(price));
        buf_lit(p->out, "</text>\n");
    }
}

static void put_head(const struct svg_picture *p, double width, double height)
{
    buf_lit(p->out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ");
    put_number(p->out, width);
    buf_char(p->out, ' ');
    put_number(p->out, height);
    buf_lit(p->out, "\">\n<title>");
    put_text(p->out, text_of(p->plan, "name"));
    buf_lit(p->out,
            "</title>\n<style>\n"
            "svg { color-scheme: light dark; background: #fff; color: #1b1b22; "
            "font-family: system-ui, sans-serif; text-anchor: middle; }\n"
            ".plain { fill: #e8e8ee; }\n.lined { stroke: #c4c4cf; }\n"
            ".label { fill: #fff; stroke: #0009; stroke-width: .12em; paint-order: stroke; }\n"
            ".halo, .row { stroke: #fff; stroke-width: .25em; stroke-linejoin: round; "
            "paint-order: stroke; }\n"
            ".row { fill: #555563; font-weight: 600; }\n"
            ".legend { fill: currentColor; text-anchor: start; }\n"
            ".focus { stroke: currentColor; stroke-width: 2; opacity: .6; }\n"
            "@media (prefers-color-scheme: light) { .not-light { fill: currentColor; } }\n"
            "@media (prefers-color-scheme: dark) {\n"
            "  svg { background: #1d1d25; color: #ededf2; }\n"
            "  .plain { fill: #2c2c37; } .lined { stroke: #45454f; } .row { fill: #b4b4c2; }\n"
            "  .halo, .row { stroke: #1d1d25; } .not-dark { fill: currentColor; }\n"
            "}\n"
            "</style>\n");
}

static void put_focus(struct buf *out, const json_t *body)
{
    if (!json_object_get(body, "focus"))
        return;
    struct plan_point at = point_of(body, "focus", (struct plan_point){0});
    buf_lit(out, "<g class=\"focus\" transform=\"translate(");
    put_number(out, at.x);
    buf_char(out, ' ');
    put_number(out, at.y);
    buf_lit(out, ")\"><title>focus</title><path d=\"M-8 0H8M0-8V8\"/></g>\n");
}

/* Gives every category a colour, and a count of zero. */
static void prepare(struct svg_picture *p)
{
    const json_t *category, *id;
    size_t i;
    json_array_foreach(json_object_get(p->plan, "categories"), i, category)
    {
        const char *name = text_of(category, "name"), *color = text_of(category, "color");
        const char *other = category_colors[i % N_CATEGORY_COLORS];
        json_object_set_new(p->colors, name, json_string(is_color(color) ? color : other));
        json_object_set_new(p->counts, name, json_integer(0));
    }
    json_array_foreach((json_t *)p->accessible, i, id)
    {
        json_object_set_new(p->accessibles, json_string_value(id), json_true());
    }
}

void plan_svg(struct buf *out, const json_t *body)
{
    const json_t *plan = json_object_get(body, "plan"), *size = json_object_get(plan, "size");
    struct svg_picture p = {.out = out,
                            .plan = plan,
                            .accessible = json_object_get(body, "accessible"),
                            .areas = json_object_get(body, "areas"),
                            .prices = json_object_get(body, "prices"),
                            .colors = json_object(),
                            .counts = json_object(),
                            .accessibles = json_object()};
    double width = number_of(size, "width", 0), height = number_of(size, "height", 0);
    double text_size = fmax(TEXT_SIZE, fmax(width, height) / 60);
    double lines = (double)json_array_size(json_object_get(plan, "categories")) * 1.5 + 1;
    prepare(&p);
    put_head(&p, width, height + lines * text_size);
    put_zones(&p);
    plan_names_prepare(&p.names);
    for (size_t i = 0; i < p.rows.n; i++)
        put_row_names(&p, &p.rows.v[i]);
    put_focus(out, body);
    put_legend(&p, (struct plan_point){text_size, height + text_size}, text_size);
    buf_lit(out, "</svg>\n");
    json_decref(p.colors);
    json_decref(p.counts);
    json_decref(p.accessibles);
    plan_names_close(&p.names);
    vec_close(&p.rows);
}
