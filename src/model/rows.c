/* Helpers of the row structs: names of rows, numbering of seats, freeing.  Pure. */
#include "model/rows.h"

#include <stdlib.h>
#include <string.h>

void row_name(uint32_t index, char out[ROW_NAME_SIZE])
{
    char text[ROW_NAME_SIZE];
    size_t at = sizeof text;
    text[--at] = '\0';
    for (uint32_t n = index + 1; n > 0; n = (n - 1) / 26)
        text[--at] = (char)('A' + (n - 1) % 26);
    memcpy(out, text + at, sizeof text - at);
}

bool event_def_number(struct event_def *def)
{
    uint64_t next = 0;
    for (size_t s = 0; s < def->sections.n; s++) {
        struct section_def *section = &def->sections.v[s];
        for (size_t r = 0; r < section->rows.n; r++) {
            section->rows.v[r].first = (uint32_t)next;
            next += section->rows.v[r].seats;
            if (next > EVENT_SEATS_MAX)
                return false;
        }
    }
    def->n_seats = (uint32_t)next;
    return true;
}

int64_t event_def_capacity(const struct event_def *def)
{
    int64_t capacity = def->n_seats;
    for (size_t i = 0; i < def->areas.n; i++)
        capacity += def->areas.v[i].capacity;
    return capacity;
}

void event_def_free(struct event_def *def)
{
    if (!def)
        return;
    for (size_t s = 0; s < def->sections.n; s++) {
        struct section_def *section = &def->sections.v[s];
        for (size_t r = 0; r < section->rows.n; r++)
            free(section->rows.v[r].name);
        free(section->name);
        free(section->tier);
        vec_close(&section->rows);
    }
    for (size_t a = 0; a < def->areas.n; a++)
        free(def->areas.v[a].name);
    vec_close(&def->sections);
    vec_close(&def->areas);
    free(def->name);
    free(def);
}

uint32_t places_count(uint32_t n_seats, const struct area_claim *areas, uint32_t n_areas)
{
    uint32_t n = n_seats;
    for (uint32_t i = 0; i < n_areas; i++)
        n += areas[i].quantity;
    return n;
}

void hold_row_close(struct hold_row *row)
{
    free(row->owned);
    *row = (struct hold_row){0};
}

void booking_row_close(struct booking_row *row)
{
    free(row->owned);
    *row = (struct booking_row){0};
}

void key_row_close(struct key_row *row)
{
    free(row->owned);
    *row = (struct key_row){0};
}
