/* See color.h. */
#include "base/color.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"

#define STEPS 100

bool color_parse(const char *text, struct color *ret)
{
    uint8_t parts[3];
    size_t len = *text == '#' ? strlen(text + 1) : 0, digits = len / 3;
    if (len != 3 && len != 6)
        return false;
    for (size_t i = 0; i < 3; i++) {
        int high = hex_digit(text[1 + i * digits]), low = hex_digit(text[(i + 1) * digits]);
        if (high < 0 || low < 0)
            return false;
        parts[i] = (uint8_t)(high * 16 + low);
    }
    *ret = (struct color){parts[0], parts[1], parts[2]};
    return true;
}

void color_format(struct color color, char ret[COLOR_TEXT_SIZE])
{
    (void)snprintf(ret, COLOR_TEXT_SIZE, "#%02x%02x%02x", color.red, color.green, color.blue);
}

/* ---- contrast ---- */

static double linear(uint8_t part)
{
    double value = part / 255.0;
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double luminance(struct color c)
{
    return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

double color_contrast(struct color one, struct color other)
{
    double a = luminance(one), b = luminance(other);
    return (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
}

struct color color_ink(struct color background)
{
    bool is_dark =
        color_contrast(background, COLOR_WHITE) >= color_contrast(background, COLOR_BLACK);
    return is_dark ? COLOR_WHITE : COLOR_BLACK;
}

static uint8_t between(uint8_t from, uint8_t to, int step)
{
    return (uint8_t)((from * (STEPS - step) + to * step + STEPS / 2) / STEPS);
}

struct color color_adapt(struct color color, struct color goal, const struct color *backgrounds,
                         size_t n, double least)
{
    for (int step = 0; step < STEPS; step++) {
        const struct color tried = {between(color.red, goal.red, step),
                                    between(color.green, goal.green, step),
                                    between(color.blue, goal.blue, step)};
        size_t good = 0;
        while (good < n && color_contrast(tried, backgrounds[good]) >= least)
            good++;
        if (good == n)
            return tried;
    }
    return goal;
}
