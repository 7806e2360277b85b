/* The seat map of an event as JSON, for GET /v1/events/{e}/seats.  Pure; the drawer calls it. */
#include <string.h>

#include "api/api.h"
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
    buf_lit(out, "{\"name\":");
    buf_json(out, section->name, strlen(section->name));
    buf_lit(out, ",\"tier\":");
    if (section->tier)
        buf_json(out, section->tier, strlen(section->tier));
    else
        buf_lit(out, "null");
    buf_lit(out, ",\"price\":");
    if (category >= 0)
        buf_int(out, map->terms->prices.v[category]);
    else
        buf_lit(out, "null");
    buf_lit(out, ",\"rows\":[");
    for (size_t i = 0; i < section->rows.n; i++) {
        const struct row_def *row = &section->rows.v[i];
        buf_str(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json(out, row->name, strlen(row->name));
        buf_lit(out, ",\"seats\":\"");
        put_letters(map->seats + row->first, row->seats, out);
        buf_lit(out, "\"}");
    }
    buf_lit(out, "]}");
}

static void put_area(const struct area_def *area, int64_t price, int64_t available, struct buf *out)
{
    buf_lit(out, "{\"name\":");
    buf_json(out, area->name, strlen(area->name));
    buf_lit(out, ",\"price\":");
    buf_int(out, price);
    buf_lit(out, ",\"capacity\":");
    buf_int(out, area->capacity);
    buf_lit(out, ",\"available\":");
    buf_int(out, available);
    buf_char(out, '}');
}

void api_render_map(const struct event *e, const struct seat_map *map, struct buf *out)
{
    buf_lit(out, "{\"event\":\"");
    buf_str(out, event_id_text(e));
    buf_lit(out, "\",\"seq\":");
    buf_int(out, map->seq);
    if (map->at) {
        buf_lit(out, ",\"at\":");
        buf_json_time(out, map->at);
    }
    buf_lit(out, ",\"status\":\"");
    buf_str(out, status_text(AUDIT_EVENT, map->status));
    buf_lit(out, "\",\"currency\":\"");
    buf_str(out, e->def->currency);
    buf_lit(out, "\",\"prices\":");
    render_prices(e->def, map->terms, out);
    buf_lit(out, ",\"sections\":[");
    for (size_t i = 0; i < e->def->sections.n; i++) {
        if (i)
            buf_char(out, ',');
        put_section(e->def, i, map, out);
    }
    buf_lit(out, "],\"areas\":[");
    for (size_t i = 0; i < e->def->areas.n; i++) {
        if (i)
            buf_char(out, ',');
        put_area(&e->def->areas.v[i], map->terms->prices.v[event_area_price(e, (uint32_t)i)],
                 map->available[i], out);
    }
    buf_lit(out, "]}");
}
