/* See sse.h. */
#include "net/sse.h"

#include <stdlib.h>
#include <string.h>

void sse_begin(struct sse *s) { s->line.len = s->event.len = s->data.len = 0; }

void sse_close(struct sse *s)
{
    buf_close(&s->line);
    buf_close(&s->event);
    buf_close(&s->data);
}

static void take_field(struct sse *s, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    size_t name_len = colon ? (size_t)(colon - line) : len;
    const char *value = colon ? colon + 1 : line + len;
    value += value < line + len && *value == ' ';
    size_t value_len = (size_t)(line + len - value);
    if (name_len == 2 && memcmp(line, "id", 2) == 0 && value_len < sizeof s->last_id) {
        memcpy(s->last_id, value, value_len);
        s->last_id[value_len] = '\0';
    } else if (name_len == 5 && memcmp(line, "event", 5) == 0) {
        s->event.len = 0;
        buf_put(&s->event, value, value_len);
    } else if (name_len == 4 && memcmp(line, "data", 4) == 0) {
        if (s->data.len)
            buf_char(&s->data, '\n');
        buf_put(&s->data, value, value_len);
    } else if (name_len == 5 && memcmp(line, "retry", 5) == 0) {
        long long ms = strtoll(value, NULL, 10); /* the line has an end */
        s->retry_ms = ms < 0 ? 0 : ms;
    }
}

static bool take_line(struct sse *s)
{
    size_t len = s->line.len;
    bool more = true;
    buf_char(&s->line, '\0');
    if (len && s->line.data[len - 1] == '\r')
        len--;
    if (len) {
        take_field(s, s->line.data, len);
    } else {
        bool has_data = s->data.len > 0;
        buf_char(&s->event, '\0');
        buf_char(&s->data, '\0');
        more = !has_data || s->on_message(s->ctx, s->event.data, s->data.data);
        s->event.len = s->data.len = 0;
    }
    s->line.len = 0;
    return more;
}

bool sse_take(struct sse *s, const char *bytes, size_t len)
{
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end ? (size_t)(end - bytes) : len;
        if (s->line.len + s->data.len + n > s->len_max)
            return false;
        buf_put(&s->line, bytes, n);
        if (end && !take_line(s))
            return false;
        bytes += n + (end != NULL);
        len -= n + (end != NULL);
    }
    return true;
}
