/* Numbers and texts as entries and snapshots store them.  A number takes seven bits per byte, least
 * significant first, and as few bytes as possible, so that equal contents have equal bytes; a text
 * follows its length.  The reader accepts any bytes: after the first that it cannot take it is
 * `bad`, and everything read from it is zero.  Pure functions. */
#ifndef HF_CELL_PACK_H
#define HF_CELL_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cell/command.h"

#define PACK_UINT_MAX 10 /* bytes of the largest number */

static inline void pack_uint(struct buf *out, uint64_t value)
{
    buf_reserve(out, PACK_UINT_MAX);
    for (; value >= 0x80; value >>= 7)
        out->data[out->len++] = (char)(value | 0x80);
    out->data[out->len++] = (char)value;
}

static inline void pack_int(struct buf *out, int64_t value)
{
    pack_uint(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static inline void pack_text(struct buf *out, const char *data, size_t len)
{
    pack_uint(out, len);
    buf_put(out, data, len);
}

static inline void pack_owner(struct buf *out, const struct cell_owner *owner)
{
    buf_char(out, (char)owner->digits);
    buf_put(out, owner->bytes, sizeof owner->bytes);
}

struct unpack {
    const uint8_t *at, *end;
    const char *bad; /* what is wrong; NULL: nothing so far */
};

static inline void unpack_fail(struct unpack *u, const char *what)
{
    u->bad = u->bad ? u->bad : what;
    u->at = u->end;
}

/* Returns the next `len` bytes, or NULL if there are fewer. */
static inline const void *unpack_bytes(struct unpack *u, size_t len)
{
    if (u->bad || (size_t)(u->end - u->at) < len) {
        unpack_fail(u, "it ends too early");
        return NULL;
    }
    const void *data = u->at;
    u->at += len;
    return data;
}

static inline uint8_t unpack_byte(struct unpack *u)
{
    const uint8_t *byte = unpack_bytes(u, 1);
    return byte ? *byte : 0;
}

static inline uint64_t unpack_uint(struct unpack *u, uint64_t max)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = unpack_byte(u);
        if (u->bad)
            return 0;
        uint64_t bits = byte & 0x7f;
        if (bits << shift >> shift != bits || (byte == 0 && shift > 0))
            break;
        value |= bits << shift;
        if (byte & 0x80)
            continue;
        if (value <= max)
            return value;
        unpack_fail(u, "a number is out of range");
        return 0;
    }
    unpack_fail(u, "a number is malformed");
    return 0;
}

static inline int64_t unpack_int(struct unpack *u, int64_t min, int64_t max)
{
    uint64_t bits = unpack_uint(u, UINT64_MAX);
    int64_t value = (int64_t)(bits >> 1) ^ (bits & 1 ? -1 : 0);
    if (value >= min && value <= max)
        return value;
    unpack_fail(u, "a number is out of range");
    return 0;
}

/* Texts point into the bytes that are read; an empty one is no text (data is NULL). */
static inline struct cell_text unpack_text(struct unpack *u, size_t max)
{
    size_t len = (size_t)unpack_uint(u, max);
    const char *data = len ? unpack_bytes(u, len) : NULL;
    return (struct cell_text){.data = data, .len = data ? len : 0};
}

static inline struct cell_owner unpack_owner(struct unpack *u)
{
    struct cell_owner owner = {.digits = unpack_byte(u)};
    const uint8_t *bytes = unpack_bytes(u, sizeof owner.bytes);
    for (size_t i = 0; bytes && i < sizeof owner.bytes; i++)
        owner.bytes[i] = bytes[i];
    return owner;
}

#endif
