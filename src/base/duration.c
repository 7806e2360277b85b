/* See duration.h. */
#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
    const char *name;
    int64_t ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

/* The unit at `text` and its length; NULL if there is none. */
static const struct unit *unit_at(const char *text, size_t *ret_len)
{
    *ret_len = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == *ret_len && strncmp(text, units[i].name, *ret_len) == 0)
            return &units[i];
    return NULL;
}

/* Reads digits, perhaps followed by a point and more digits; *ret_whole stops growing beyond
 * DURATION_MS_MAX.  No sign, exponent or space is accepted: strtod would take all of those, and
 * "inf".  Returns where the number ends, or NULL if there is none. */
static const char *number_at(const char *p, int64_t *ret_whole, int64_t *ret_millionths)
{
    const char *digits = p;
    int64_t whole = 0, fraction = 0, scale = 1000000;
    for (; *p >= '0' && *p <= '9'; p++)
        if (whole <= DURATION_MS_MAX)
            whole = whole * 10 + (*p - '0');
    if (p == digits)
        return NULL;
    if (*p == '.') {
        digits = ++p;
        for (; *p >= '0' && *p <= '9'; p++)
            fraction += (scale /= 10) * (*p - '0');
        if (p == digits)
            return NULL;
    }
    *ret_whole = whole;
    *ret_millionths = fraction;
    return p;
}

int64_t duration_parse_ms(const char *text)
{
    static const struct unit bare = {"", 1000};
    int64_t ms = 0, above_ms = INT64_MAX;
    const char *p = text;
    do {
        int64_t whole, millionths;
        size_t len = 0;
        const char *end = number_at(p, &whole, &millionths);
        const struct unit *unit = end && p == text && !*end ? &bare
                                  : end                     ? unit_at(end, &len)
                                                            : NULL;
        if (!unit || unit->ms >= above_ms)
            return -1;
        if (whole > DURATION_MS_MAX / unit->ms || ms > DURATION_MS_MAX)
            ms = DURATION_MS_MAX + 1;
        else
            ms += whole * unit->ms + millionths * unit->ms / 1000000;
        above_ms = unit->ms;
        p = end + len;
    } while (*p);
    return ms;
}

const char *duration_text(char out[DURATION_TEXT_SIZE], int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } largest[] = {{86400000, "days"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (i < 4 && (ms % largest[i].ms != 0 || ms == 0 || (i == 0 && ms == largest[0].ms)))
        i++; /* a single day is 24 h */
    (void)snprintf(out, DURATION_TEXT_SIZE, "%" PRId64 " %s", ms / largest[i].ms, largest[i].unit);
    return out;
}
