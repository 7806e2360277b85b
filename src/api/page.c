/* See page.h.  On HTTP threads. */
#include "api/page.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "json/fields.h"

bool page_limit(struct call *c, size_t max, size_t *ret)
{
    const char *text = request_query(&c->http, "limit");
    int64_t n = 0;
    if (!text)
        return true;
    if (!parse_digits(text, strlen(text), &n) || n < 1 || (uint64_t)n > max) {
        char detail[64];
        (void)snprintf(detail, sizeof detail, "limit must be from 1 to %zu", max);
        call_invalid(c, detail);
        return false;
    }
    *ret = (size_t)n;
    return true;
}

bool page_filter(struct call *c, const char *name, const char **ret)
{
    const char *text = request_query(&c->http, name);
    char detail[64];
    *ret = text;
    if (!text || utf8_is_valid(text, strlen(text)))
        return true;
    (void)snprintf(detail, sizeof detail, "%s must be UTF-8", name);
    call_invalid(c, detail);
    return false;
}

bool page_flag(struct call *c, const char *name, bool *ret)
{
    const char *text = request_query(&c->http, name);
    char detail[64];
    *ret = text && strcmp(text, "true") == 0;
    if (!text || *ret || strcmp(text, "false") == 0)
        return true;
    (void)snprintf(detail, sizeof detail, "%s must be true or false", name);
    call_invalid(c, detail);
    return false;
}

void page_bad_cursor(struct call *c)
{
    call_invalid(c, "cursor must be the next_cursor of an earlier list");
}

void page_open(struct call *c) { buf_lit(&c->http.out, "{\"data\":["); }

void page_open_with(struct call *c, const char *name, int64_t value)
{
    buf_char(&c->http.out, '{');
    json_put_int(&c->http.out, name, value);
    json_open(&c->http.out, "data", '[');
}

void page_next(struct call *c) { json_put_name(&c->http.out, NULL); }

void page_close(struct call *c, const char *cursor)
{
    struct buf *out = &c->http.out;
    buf_char(out, ']');
    json_put_bool(out, "has_more", cursor != NULL);
    json_put_text(out, "next_cursor", cursor);
    buf_char(out, '}');
    answer_out(&c->http, HTTP_OK, type_json);
}
