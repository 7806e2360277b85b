/* See crash.h.  Any thread. */
#include "base/crash.h"

#ifdef HF_CRASH_POINTS
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CRASH_EXIT 86 /* tells the test that it was here */
#define CRASH_VARIABLE "HOLDFAST_CRASH_AT"

void crash_reached(enum crash_point point)
{
    static const char *const names[] = {
#define CRASH_POINT_NAME(name, text) #name,
        CRASH_POINT_MAP(CRASH_POINT_NAME)
#undef CRASH_POINT_NAME
    };
    static atomic_int times;
    const char *at = getenv(CRASH_VARIABLE);
    size_t len = strlen(names[point]);
    if (!at || strncmp(at, names[point], len) != 0 || (at[len] && at[len] != ':'))
        return;
    int wanted = at[len] ? atoi(at + len + 1) : 1;
    if (atomic_fetch_add(&times, 1) + 1 == wanted)
        _exit(CRASH_EXIT);
}
#endif
