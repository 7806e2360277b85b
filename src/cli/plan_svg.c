/* See plan_svg.h.  The picture stands on its own: it refers to no other file and has no script.
 * It follows the reader's choice of a light or dark page. */
#include "cli/plan_svg.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

#define SEAT_RADIUS 10
#define TEXT_SIZE 16
#define COLOR_LEN_MAX 64

struct svg_point {
    double x, y;
};

/* The members of the body that the picture is made of, and what was counted while drawing. */
struct svg_picture {
    struct buf *out;
    const json_t *plan, *accessible, *areas, *prices;
    json_t *colors;      /* category -> its colour */
    json_t *counts;      /* category -> how many seats it has */
    json_t *accessibles; /* the ids in `accessible`, as the keys of an object */
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

static void put_point(struct buf *out, const char *x, const char *y, struct svg_point at)
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

static struct svg_point point_of(const json_t *object, const char *name, struct svg_point from)
{
    const json_t *at = json_object_get(object, name);
    return (struct svg_point){from.x + number_of(at, "x", 0), from.y + number_of(at, "y", 0)};
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
    const char *shape = text_of(area, "shape");
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
        put_point(out, "rx", "ry", point_of(size, "radius", (struct svg_point){0}));
        buf_lit(out, "/>");
    } else if (strcmp(shape, "polygon") == 0) {
        put_polygon(out, size);
    }
}

/* The name and capacity of an area that is sold, as a tooltip. */
static void put_area_title(const struct svg_picture *p, const json_t *area)
{
    const json_t *sold;
    const char *uuid = text_of(area, "uuid");
    size_t i;
    json_array_foreach((json_t *)p->areas, i, sold)
    {
        if (*uuid && strcmp(text_of(sold, "plan_area"), uuid) == 0) {
            buf_lit(p->out, "<title>");
            put_text(p->out, text_of(sold, "name"));
            buf_printf(p->out, ": %.0f places</title>", number_of(sold, "capacity", 0));
        }
    }
}

static void put_area(const struct svg_picture *p, const json_t *area, struct svg_point zone)
{
    struct buf *out = p->out;
    struct svg_point at = point_of(area, "position", zone);
    const json_t *text = json_object_get(area, "text");
    buf_lit(out, "<g transform=\"translate(");
    put_number(out, at.x);
    buf_char(out, ' ');
    put_number(out, at.y);
    buf_lit(out, ") rotate(");
    put_number(out, number_of(area, "rotation", 0));
    buf_lit(out, ")\"");
    put_color(out, "fill", json_object_get(area, "color"), "#8884");
    put_color(out, "stroke", json_object_get(area, "border_color"), "none");
    buf_char(out, '>');
    put_area_title(p, area);
    put_shape(out, area);
    if (json_is_object(text)) {
        buf_lit(out, "<text stroke=\"none\"");
        put_point(out, "x", "y", point_of(text, "position", (struct svg_point){0}));
        put_attribute(out, "font-size", number_of(text, "size", TEXT_SIZE));
        put_color(out, "fill", json_object_get(text, "color"), "currentColor");
        buf_lit(out, " dy=\".35em\">");
        put_text(out, text_of(text, "text"));
        buf_lit(out, "</text>");
    }
    buf_lit(out, "</g>\n");
}

/* ---- seats ---- */

static void put_seat(const struct svg_picture *p, const json_t *seat, struct svg_point row)
{
    struct buf *out = p->out;
    struct svg_point at = point_of(seat, "position", row);
    double radius = number_of(seat, "radius", SEAT_RADIUS);
    const char *id = text_of(seat, "seat_guid"), *label = text_of(seat, "seat_number");
    const char *category = text_of(seat, "category");
    bool is_accessible = json_object_get(p->accessibles, id) != NULL;
    size_t chars = count_chars(label);
    if (is_accessible) {
        buf_lit(out, "<rect");
        put_point(out, "x", "y", (struct svg_point){at.x - radius, at.y - radius});
        put_attribute(out, "width", 2 * radius);
        put_attribute(out, "height", 2 * radius);
        put_attribute(out, "rx", radius / 4);
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
}

/* Writes the row's name beside the seat `edge`, on the side away from its neighbour `next`. */
static void put_row_name(struct buf *out, const char *name, struct svg_point edge,
                         struct svg_point next)
{
    struct svg_point away = {edge.x - next.x, edge.y - next.y};
    double length = hypot(away.x, away.y), distance = 2.6 * SEAT_RADIUS;
    if (length <= 0)
        return;
    buf_lit(out, "<text class=\"row\"");
    put_point(out, "x", "y",
              (struct svg_point){edge.x + away.x / length * distance,
                                 edge.y + away.y / length * distance});
    buf_lit(out, " dy=\".35em\">");
    put_text(out, name);
    buf_lit(out, "</text>\n");
}

static void put_row(const struct svg_picture *p, const json_t *row, struct svg_point zone)
{
    struct svg_point from = point_of(row, "position", zone);
    const json_t *seats = json_object_get(row, "seats"), *seat;
    const char *side = text_of(row, "row_number_position"), *name = text_of(row, "row_number");
    size_t n = json_array_size(seats), i;
    json_array_foreach((json_t *)seats, i, seat) put_seat(p, seat, from);
    if (n == 0)
        return;
    struct svg_point first = point_of(json_array_get(seats, 0), "position", from);
    struct svg_point last = point_of(json_array_get(seats, n - 1), "position", from);
    struct svg_point second = n > 1 ? point_of(json_array_get(seats, 1), "position", from)
                                    : (struct svg_point){first.x + 1, first.y};
    struct svg_point last_but_one = n > 1 ? point_of(json_array_get(seats, n - 2), "position", from)
                                          : (struct svg_point){last.x - 1, last.y};
    if (strcmp(side, "start") == 0 || strcmp(side, "both") == 0)
        put_row_name(p->out, name, first, second);
    if (strcmp(side, "end") == 0 || strcmp(side, "both") == 0)
        put_row_name(p->out, name, last, last_but_one);
}

/* ---- the whole of it ---- */

/* Decoration comes first, so that no seat is hidden by it. */
static void put_zones(const struct svg_picture *p)
{
    const json_t *zones = json_object_get(p->plan, "zones"), *zone, *each;
    size_t i, k;
    json_array_foreach((json_t *)zones, i, zone)
    {
        struct svg_point at = point_of(zone, "position", (struct svg_point){0});
        json_array_foreach(json_object_get(zone, "areas"), k, each) put_area(p, each, at);
    }
    json_array_foreach((json_t *)zones, i, zone)
    {
        struct svg_point at = point_of(zone, "position", (struct svg_point){0});
        json_array_foreach(json_object_get(zone, "rows"), k, each) put_row(p, each, at);
    }
}

static void put_legend(const struct svg_picture *p, struct svg_point at, double size)
{
    const json_t *categories = json_object_get(p->plan, "categories"), *category;
    size_t i;
    json_array_foreach((json_t *)categories, i, category)
    {
        const char *name = text_of(category, "name");
        const json_t *price = json_object_get(p->prices, name);
        buf_lit(p->out, "<circle");
        put_point(p->out, "cx", "cy",
                  (struct svg_point){at.x + size / 2, at.y + (double)i * size * 1.5});
        put_attribute(p->out, "r", size / 2);
        put_color(p->out, "fill", json_object_get(p->colors, name), "gray");
        buf_lit(p->out, "/><text class=\"legend\"");
        put_point(p->out, "x", "y",
                  (struct svg_point){at.x + size * 1.5, at.y + (double)i * size * 1.5});
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
            "svg { color-scheme: light dark; background: #fff; color: #1f2430; "
            "font-family: system-ui, sans-serif; text-anchor: middle; }\n"
            ".label { fill: #fff; stroke: #0009; stroke-width: .12em; paint-order: stroke; }\n"
            ".row { fill: currentColor; font-size: 11px; opacity: .75; }\n"
            ".legend { fill: currentColor; text-anchor: start; }\n"
            ".focus { stroke: currentColor; stroke-width: 2; opacity: .6; }\n"
            "@media (prefers-color-scheme: dark) { svg { background: #16181d; color: #e6e8ee; } }\n"
            "</style>\n");
}

static void put_focus(struct buf *out, const json_t *body)
{
    if (!json_object_get(body, "focus"))
        return;
    struct svg_point at = point_of(body, "focus", (struct svg_point){0});
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
        char own[64];
        snprintf(own, sizeof own, "hsl(%d, 60%%, 45%%)", (int)(i * 137 % 360));
        json_object_set_new(p->colors, name, json_string(is_color(color) ? color : own));
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
    put_focus(out, body);
    put_legend(&p, (struct svg_point){text_size, height + text_size}, text_size);
    buf_lit(out, "</svg>\n");
    json_decref(p.colors);
    json_decref(p.counts);
    json_decref(p.accessibles);
}
