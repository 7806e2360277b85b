/* Where seats are drawn whose creator gave no positions: rows curve around a stage at the top,
 * sections stand side by side, and long rows have aisles.  Pure. */
#ifndef HF_VENUE_GEOMETRY_H
#define HF_VENUE_GEOMETRY_H

#include "model/rows.h"

/* A generated picture of the event's seats. */
struct geometry {
    double *x, *y; /* of each seat */
    double width, height;
    double focus_x, focus_y;
    double stage_x, stage_y, stage_width, stage_height;
};

/* O(seats); geometry_close frees.  No two seats are less than a seat's width apart. */
void geometry_init(struct geometry *g, const struct event_def *def);
void geometry_close(struct geometry *g);

#endif
