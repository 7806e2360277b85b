/* A seating plan as a picture.  Pure functions. */
#ifndef HF_CLI_PLAN_SVG_H
#define HF_CLI_PLAN_SVG_H

#include <jansson.h>

#include "base/buf.h"

/* Appends an SVG document that shows the seating plan of `body`, the body of a POST /v1/events that
 * the server would accept: seats in the colours of their categories, those that are accessible as
 * squares, areas with their texts, the focus as a cross, and a legend.  Texts are escaped, and
 * colours that could be anything but colours are replaced, so the plan may come from anybody.
 * O(seats). */
void plan_svg(struct buf *out, const json_t *body);

#endif
