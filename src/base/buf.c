/* Bytes on their way out: every JSON answer, snapshot and metrics page is appended here.  On the
 * hot path, so numbers, times and strings are written by hand and printf is left to the rest.
 * A buffer has no lock: it belongs to one thread at a time. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"

static void grow(struct buf *b, size_t more)
{
    hf_check(more <= SIZE_MAX / 4 && b->len <= SIZE_MAX / 4);
    size_t cap = b->cap ? b->cap * 2 : 256;
    while (cap - b->len < more)
        cap *= 2;
    b->data = hf_realloc(b->data, cap);
    b->cap = cap;
}

void buf_reserve(struct buf *b, size_t more)
{
    if (__builtin_expect(b->cap - b->len < more, 0))
        grow(b, more);
}

void buf_put(struct buf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    buf_reserve(b, len);
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

void buf_str(struct buf *b, const char *text) { buf_put(b, text, strlen(text)); }

void buf_char(struct buf *b, char c)
{
    buf_reserve(b, 1);
    b->data[b->len++] = c;
}

size_t decimal_write(char *out, int64_t value)
{
    char text[DECIMAL_LEN_MAX];
    char *end = text + sizeof text, *start = end;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--start = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--start = '-';
    memcpy(out, start, (size_t)(end - start));
    return (size_t)(end - start);
}

void buf_int(struct buf *b, int64_t value)
{
    buf_reserve(b, DECIMAL_LEN_MAX);
    b->len += decimal_write(b->data + b->len, value);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    buf_reserve(b, 128);
    for (;;) {
        size_t room = b->cap - b->len;
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(b->data + b->len, room, fmt, args);
        va_end(args);
        hf_check(n >= 0);
        if ((size_t)n < room) {
            b->len += (size_t)n;
            return;
        }
        buf_reserve(b, (size_t)n + 1); /* vsnprintf wants room for its NUL too */
    }
}

static bool is_plain(char c) { return (uint8_t)c >= 0x20 && c != '"' && c != '\\'; }

/* is_plain for eight bytes at once: subtracting the limit borrows into the high bit of a byte below
 * it.  May say no for a plain byte beside one that is not; the caller then looks at each. */
static bool are_plain(const char *text)
{
    const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
    uint64_t word;
    memcpy(&word, text, sizeof word);
    uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    uint64_t small = (word - ones * 0x20) & ~word;
    uint64_t zero = ((quote - ones) & ~quote) | ((slash - ones) & ~slash);
    return ((small | zero) & high) == 0;
}

static void put_escaped(struct buf *b, char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
        ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
    };
    uint8_t byte = (uint8_t)c;
    if (letters[byte])
        buf_put(b, (char[]){'\\', letters[byte]}, 2);
    else
        buf_put(b, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}

/* Runs that need no escape, which is nearly always the whole text, are copied at once. */
void buf_json(struct buf *b, const char *text, size_t len)
{
    buf_reserve(b, len + 2);
    buf_char(b, '"');
    for (size_t i = 0; i < len; i++) {
        size_t start = i;
        while (len - i >= 8 && are_plain(text + i))
            i += 8;
        while (i < len && is_plain(text[i]))
            i++;
        buf_put(b, text + start, i - start);
        if (i < len)
            put_escaped(b, text[i]);
    }
    buf_char(b, '"');
}

void buf_json_time(struct buf *b, int64_t ms)
{
    buf_reserve(b, CLOCK_TEXT_SIZE + 2);
    char *out = b->data + b->len;
    out[0] = '"';
    clock_format_ms(ms, out + 1);
    out[CLOCK_TEXT_SIZE] = '"'; /* over the NUL */
    b->len += CLOCK_TEXT_SIZE + 1;
}

void buf_percent(struct buf *b, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text; text++)
        if (strchr(plain, *text))
            buf_char(b, *text);
        else
            buf_printf(b, "%%%02X", (unsigned char)*text);
}

void buf_trim(struct buf *b)
{
    if (b->len == b->cap)
        return;
    b->data = hf_realloc(b->data, b->len);
    b->cap = b->len;
}

void buf_close(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}
