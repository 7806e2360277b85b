/* See size.h. */
#include "setup/size.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    int shift;
} units[] = {{"", 0}, {"B", 0}, {"KB", 10}, {"MB", 20}, {"GB", 30}, {"TB", 40}};

int64_t size_parse(const char *text)
{
    int64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (n <= SIZE_TEXT_MAX)
            n = n * 10 + (*p - '0');
    if (p == text)
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(p, units[i].name) == 0)
            return n > SIZE_TEXT_MAX >> units[i].shift ? SIZE_TEXT_MAX + 1 : n << units[i].shift;
    return -1;
}
