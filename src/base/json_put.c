/* See json_put.h.  On the hot path, as buf.c is. */
#include "base/json_put.h"

static bool is_first(const struct buf *b)
{
    char before = b->len ? b->data[b->len - 1] : ' ';
    return before == '{' || before == '[' || before == ':' || before == ' ';
}

void json_put_name_len(struct buf *out, const char *name, size_t len)
{
    buf_reserve(out, len + 4);
    char *at = out->data + out->len;
    if (!is_first(out))
        *at++ = ',';
    if (name) {
        *at++ = '"';
        memcpy(at, name, len);
        at += len;
        *at++ = '"';
        *at++ = ':';
    }
    out->len = (size_t)(at - out->data);
}

void json_open(struct buf *out, const char *name, char bracket)
{
    json_put_name(out, name);
    buf_char(out, bracket);
}

void json_put_value(struct buf *out, const char *text, size_t len)
{
    if (text)
        buf_json(out, text, len);
    else
        buf_lit(out, "null");
}

void json_put_text_or_null(struct buf *out, const char *name, const char *text)
{
    json_put_text(out, name, text && *text ? text : NULL);
}

void json_put_int_or_null(struct buf *out, const char *name, int64_t n)
{
    if (n)
        json_put_int(out, name, n);
    else
        json_put_text(out, name, NULL);
}

void json_put_bool(struct buf *out, const char *name, bool is_true)
{
    json_put_name(out, name);
    buf_str(out, is_true ? "true" : "false");
}

void json_put_time_or_null(struct buf *out, const char *name, int64_t ms)
{
    if (ms)
        json_put_time(out, name, ms);
    else
        json_put_text(out, name, NULL);
}

void json_put_id(struct buf *out, const char *name, const char *prefix, const struct id *id)
{
    char text[ID_TEXT_SIZE];
    json_put_bytes(out, name, text, id_format(text, prefix, id));
}
