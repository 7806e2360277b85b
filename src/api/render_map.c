/* The seat map of an event as JSON, for GET /v1/events/{e}/seats.  Pure; the drawer calls it, and
 * the reader of long reads for maps of the past. */

#include "api/render.h"

char seat_letter(enum seat_status status)
{
    static const char letters[] = {
        [SEAT_AVAILABLE] = '.', [SEAT_HELD] = 'h', [SEAT_BOOKED] = 'b', [SEAT_BLOCKED] = 'x'};
    return letters[status & 3];
}

/* Appends one letter per seat. */
static void put_letters(const uint8_t *statuses, uint32_t n, struct buf *out)
{
    buf_reserve(out, n);
    for (uint32_t i = 0; i < n; i++)
        out->data[out->len++] = seat_letter(statuses[i]);
}

static void put_section(const struct event_def *def, size_t index, const struct seat_map *map,
                        struct buf *out)
{
    const struct section_def *section = &def->sections.v[index];
    int64_t category = event_def_section_category(def, index);
    json_open(out, NULL, '{');
    json_put_text(out, "name", section->name);
    json_put_text(out, "tier", section->tier);
    json_put_name(out, "price");
    if (category >= 0)
        buf_int(out, map->terms->prices.v[category]);
    else
        buf_lit(out, "null");
    json_open(out, "rows", '[');
    for (size_t i = 0; i < section->rows.n; i++) {
        const struct row_def *row = &section->rows.v[i];
        json_open(out, NULL, '{');
        json_put_text(out, "name", row->name);
        buf_lit(out, ",\"seats\":\"");
        put_letters(map->seats + row->first, row->seats, out);
        buf_lit(out, "\"}");
    }
    buf_lit(out, "]}");
}

static void put_area(const struct area_def *area, int64_t price, int64_t available, struct buf *out)
{
    json_open(out, NULL, '{');
    json_put_text(out, "name", area->name);
    json_put_int(out, "price", price);
    json_put_int(out, "capacity", area->capacity);
    json_put_int(out, "available", available);
    buf_char(out, '}');
}

void render_event_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    buf_char(out, '{');
    json_put_text(out, "event", event_id_text(e));
    json_put_int(out, "seq", map->seq);
    if (map->at)
        json_put_time(out, "at", map->at);
    json_put_text(out, "status", status_text(AUDIT_EVENT, map->status));
    json_put_text(out, "currency", e->def->currency);
    json_put_name(out, "prices");
    render_prices(e->def, map->terms, out);
    render_types(e->def, map->terms, out);
    json_open(out, "sections", '[');
    for (size_t i = 0; i < e->def->sections.n; i++)
        put_section(e->def, i, map, out);
    buf_lit(out, "],\"areas\":[");
    for (size_t i = 0; i < e->def->areas.n; i++)
        put_area(&e->def->areas.v[i], map->terms->prices.v[event_area_price(e, (uint32_t)i)],
                 map->available[i], out);
    buf_lit(out, "]}");
}
