/* See prometheus.h. */
#include "cli/prometheus.h"

#include <inttypes.h>

void prometheus_put_head(struct buf *b, const char *prefix, const char *name, const char *type,
                         const char *help)
{
    buf_printf(b, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name, type);
}

/* Escapes the three characters that Prometheus wants escaped in a label. */
static void put_label(struct buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            buf_lit(b, "\\n");
        else if (*text == '"' || *text == '\\')
            buf_printf(b, "\\%c", *text);
        else
            buf_char(b, *text);
    }
}

void prometheus_put_name(struct buf *b, const char *prefix, const char *name, const char *lock)
{
    buf_printf(b, "%s%s{name=\"", prefix, name);
    put_label(b, lock);
    buf_lit(b, "\"} ");
}

void prometheus_put_seconds(struct buf *b, int64_t us)
{
    buf_printf(b, "%" PRId64 ".%06d", us / 1000000, (int)(us % 1000000));
}
