/* Colours, and whether text can be read on them: contrast as the WCAG 2 define it.  Pure functions;
 * any thread. */
#ifndef HF_BASE_COLOR_H
#define HF_BASE_COLOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct color {
    uint8_t red, green, blue;
};

#define COLOR_BLACK ((struct color){0, 0, 0})
#define COLOR_WHITE ((struct color){255, 255, 255})
#define COLOR_TEXT_SIZE 8     /* "#rrggbb" */
#define COLOR_CONTRAST_AA 4.5 /* what text needs on its background at level AA */

/* Reads "#rgb" or "#rrggbb". */
bool color_parse(const char *text, struct color *ret);
/* Writes "#rrggbb". */
void color_format(struct color color, char ret[COLOR_TEXT_SIZE]);

/* The contrast ratio of two colours, from 1 to 21. */
double color_contrast(struct color one, struct color other);
/* Black or white, whichever contrasts more: it has at least 4.58 on any background. */
struct color color_ink(struct color background);
/* The first colour on the way from `color` to `goal`, in steps of a hundredth, that has a contrast
 * of at least `least` to each of the backgrounds; `goal` if none has. */
struct color color_adapt(struct color color, struct color goal, const struct color *backgrounds,
                         size_t n, double least);

#endif
