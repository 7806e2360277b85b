/* See geometry.h.  Every seat gets a place (t, depth): how far it is from the middle, and how far
 * behind the first row.  All of them are then bent around one centre above the stage, so that
 * distances only grow and no two seats meet. */
#include "venue/geometry.h"

#include <math.h>
#include <stdlib.h>

#define SEAT_PITCH 30.0
#define ROW_PITCH 34.0
#define AISLE 36.0         /* added to the pitch between two seats */
#define BLOCK_SEATS_MAX 18 /* seats between two aisles */
#define SECTION_GAP 60.0
#define MARGIN 40.0
#define WIDTH_MIN 600.0
#define STAGE_WIDTH_MIN 240.0
#define STAGE_HEIGHT 50.0
#define STAGE_GAP 60.0
#define RADIUS_MIN 400.0
#define RADIUS_PER_WIDTH 0.9 /* wide halls bend less */

/* Sections that stand side by side. */
struct shelf {
    size_t first, end; /* sections */
    double width, depth;
};

static uint32_t seats_per_block(uint32_t n)
{
    uint32_t blocks = (n + BLOCK_SEATS_MAX - 1) / BLOCK_SEATS_MAX;
    return blocks ? (n + blocks - 1) / blocks : 1;
}

/* How far seat `i` of a row of `n` is from the row's first seat. */
static double along_row(uint32_t n, uint32_t i)
{
    uint32_t aisles = i / seats_per_block(n);
    return i * SEAT_PITCH + aisles * AISLE;
}

static double row_width(uint32_t n) { return n ? along_row(n, n - 1) : 0; }

static double section_width(const struct section_def *s)
{
    double width = 0;
    for (size_t r = 0; r < s->rows.n; r++)
        width = fmax(width, row_width(s->rows.v[r].seats));
    return width + SEAT_PITCH;
}

/* The shelf that begins with section `first`: as many sections as fit `width`. */
static struct shelf next_shelf(const struct event_def *def, size_t first, double width)
{
    struct shelf shelf = {.first = first, .end = first};
    for (; shelf.end < def->sections.n; shelf.end++) {
        const struct section_def *s = &def->sections.v[shelf.end];
        double more = section_width(s) + (shelf.end > first ? SECTION_GAP : 0);
        if (shelf.end > first && shelf.width + more > width)
            break;
        shelf.width += more;
        shelf.depth = fmax(shelf.depth, (double)s->rows.n * ROW_PITCH);
    }
    return shelf;
}

/* A width at which the whole is about half as wide again as it is deep. */
static double good_width(const struct event_def *def)
{
    double area = 0, widest = 0;
    for (size_t s = 0; s < def->sections.n; s++) {
        double width = section_width(&def->sections.v[s]);
        area += (width + SECTION_GAP) * ((double)def->sections.v[s].rows.n * ROW_PITCH);
        widest = fmax(widest, width);
    }
    return fmax(widest, sqrt(area * 1.5));
}

/* Puts (t, depth) into x and y.  Returns the width of the widest shelf. */
static double lay_out(struct geometry *g, const struct event_def *def)
{
    double width = good_width(def), depth = 0, widest = 0;
    for (size_t first = 0; first < def->sections.n;) {
        struct shelf shelf = next_shelf(def, first, width);
        double left = -shelf.width / 2;
        for (size_t s = shelf.first; s < shelf.end; s++) {
            const struct section_def *section = &def->sections.v[s];
            double middle = left + section_width(section) / 2;
            for (size_t r = 0; r < section->rows.n; r++) {
                const struct row_def *row = &section->rows.v[r];
                double start = middle - row_width(row->seats) / 2;
                for (uint32_t i = 0; i < row->seats; i++) {
                    g->x[row->first + i] = start + along_row(row->seats, i);
                    g->y[row->first + i] = depth + (double)r * ROW_PITCH;
                }
            }
            left += section_width(section) + SECTION_GAP;
        }
        widest = fmax(widest, shelf.width);
        depth += shelf.depth + SECTION_GAP;
        first = shelf.end;
    }
    return widest;
}

static double rounded(double v) { return round(v * 100) / 100; }

/* Bends the rows, and moves everything to where the left and upper edges are 0. */
static void bend(struct geometry *g, uint32_t n, double widest)
{
    double radius = fmax(RADIUS_MIN, widest * RADIUS_PER_WIDTH);
    double left = 0, right = 0, top = radius, bottom = radius;
    for (uint32_t i = 0; i < n; i++) {
        double angle = g->x[i] / radius, r = radius + g->y[i];
        g->x[i] = r * sin(angle);
        g->y[i] = r * cos(angle);
        left = fmin(left, g->x[i]);
        right = fmax(right, g->x[i]);
        top = fmin(top, g->y[i]);
        bottom = fmax(bottom, g->y[i]);
    }
    g->width = ceil(fmax(WIDTH_MIN, right - left + 2 * MARGIN));
    double along = (g->width - (right - left)) / 2 - left;
    double down = MARGIN + STAGE_HEIGHT + STAGE_GAP - top;
    for (uint32_t i = 0; i < n; i++) {
        g->x[i] = rounded(g->x[i] + along);
        g->y[i] = rounded(g->y[i] + down);
    }
    g->height = ceil(bottom + down + MARGIN);
    g->focus_x = rounded(along);
}

void geometry_init(struct geometry *g, const struct event_def *def)
{
    *g = (struct geometry){0};
    g->x = hf_alloc(((size_t)def->n_seats + 1) * sizeof *g->x);
    g->y = hf_alloc(((size_t)def->n_seats + 1) * sizeof *g->y);
    bend(g, def->n_seats, lay_out(g, def));
    g->focus_y = MARGIN + STAGE_HEIGHT;
    g->stage_width = fmax(STAGE_WIDTH_MIN, round(g->width / 3));
    g->stage_height = STAGE_HEIGHT;
    g->stage_x = rounded(g->focus_x - g->stage_width / 2);
    g->stage_y = MARGIN;
}

void geometry_close(struct geometry *g)
{
    free(g->x);
    free(g->y);
    *g = (struct geometry){0};
}
