/* Writes JSON into a buffer, member by member.  Each function puts a comma before its member unless
 * that is the first one: at the beginning of the buffer, or behind { [ : or a space.  A member
 * whose name is NULL is an element of a list.  `buf_char` closes objects and lists.  Names need no
 * escape; texts must be UTF-8.  Any thread. */
#ifndef HF_BASE_JSON_PUT_H
#define HF_BASE_JSON_PUT_H

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"

/* The parts of what follows.  Names are literals: the compiler knows their lengths. */
void json_put_name_len(struct buf *out, const char *name, size_t len);
void json_put_value(struct buf *out, const char *text, size_t len);

/* Puts the name and the colon; the caller puts the value. */
static inline void json_put_name(struct buf *out, const char *name)
{
    json_put_name_len(out, name, name ? strlen(name) : 0);
}

/* Begins an object or a list: `bracket` is { or [. */
void json_open(struct buf *out, const char *name, char bracket);

/* NULL: null. */
static inline void json_put_bytes(struct buf *out, const char *name, const char *text, size_t len)
{
    json_put_name(out, name);
    json_put_value(out, text, len);
}

/* NULL: null. */
static inline void json_put_text(struct buf *out, const char *name, const char *text)
{
    json_put_bytes(out, name, text, text ? strlen(text) : 0);
}

static inline void json_put_int(struct buf *out, const char *name, int64_t n)
{
    json_put_name(out, name);
    buf_int(out, n);
}

static inline void json_put_time(struct buf *out, const char *name, int64_t ms)
{
    json_put_name(out, name);
    buf_json_time(out, ms);
}

void json_put_text_or_null(struct buf *out, const char *name, const char *text); /* "": null, too */
void json_put_int_or_null(struct buf *out, const char *name, int64_t n);         /* 0: null */
void json_put_bool(struct buf *out, const char *name, bool is_true);
void json_put_time_or_null(struct buf *out, const char *name, int64_t ms); /* 0: null */
void json_put_id(struct buf *out, const char *name, const char *prefix, const struct id *id);

#endif
