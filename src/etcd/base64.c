/* See base64.h. */
#include "etcd/base64.h"

#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *b, const void *data, size_t len)
{
    const uint8_t *p = data;
    buf_reserve(b, (len + 2) / 3 * 4);
    char *out = b->data + b->len;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
                        (i + 2 < len ? p[i + 2] : 0);
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < len ? digits[bits >> 6 & 63] : '=';
        *out++ = i + 2 < len ? digits[bits & 63] : '=';
    }
    b->len += (len + 2) / 3 * 4;
}

static int digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool base64_take(struct buf *b, const char *text, size_t len)
{
    size_t n = 0;
    uint32_t bits = 0;
    if (len % 4)
        return false;
    buf_reserve(b, len / 4 * 3);
    char *out = b->data + b->len;
    for (int pads = 0; pads < 2 && len > 0 && text[len - 1] == '='; pads++)
        len--;
    for (size_t i = 0; i < len; i++) {
        int d = digit(text[i]);
        if (d < 0)
            return false;
        bits = bits << 6 | (uint32_t)d;
        if (i % 4)
            out[n++] = (char)(uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    b->len += n;
    return true;
}

char *base64_decode(const json_t *text, size_t *ret_len)
{
    struct buf b = {0};
    const char *from = json_string_value(text);
    if (!from || !base64_take(&b, from, json_string_length(text))) {
        buf_close(&b);
        return NULL;
    }
    buf_char(&b, '\0');
    *ret_len = b.len - 1;
    return b.data;
}
