/* A place in a JSON text, for readers that take a text apart themselves because jansson's tree of
 * it would cost too much: hold_scan (api/hold_parse.h), the bodies of locks (api/lock_parse.h) and
 * rows_cut_init (venue/rows_cut.h).  Pure. */
#ifndef HF_JSON_CURSOR_H
#define HF_JSON_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const char *at, *end;
};

static inline void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

/* Skips space and, if it comes next, the wanted character.  Returns false if it does not. */
static inline bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* Takes a string of printable ASCII without escapes; the text points into the JSON. */
static inline bool take_plain_text(struct cursor *c, const char **ret, size_t *ret_len)
{
    if (!take(c, '"'))
        return false;
    const char *start = c->at;
    for (; c->at < c->end; c->at++) {
        unsigned char byte = (unsigned char)*c->at;
        if (byte == '"') {
            *ret = start;
            *ret_len = (size_t)(c->at++ - start);
            return true;
        }
        if (byte < 0x20 || byte > 0x7e || byte == '\\')
            return false;
    }
    return false;
}

/* Takes an integer of up to 18 digits, which always fit. */
static inline bool take_integer(struct cursor *c, int64_t *ret)
{
    int64_t n = 0;
    skip_space(c);
    bool negative = c->at < c->end && *c->at == '-';
    c->at += negative;
    const char *start = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (c->at - start == 18)
            return false;
        n = n * 10 + (*c->at - '0');
    }
    if (c->at == start || (*start == '0' && c->at - start > 1))
        return false;
    *ret = negative ? -n : n;
    return true;
}

#endif
