/* zlib, as far as answers need it.  Pure. */
#include "base/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/status.h"

#define LEVEL 1          /* maps are long runs of dots: more effort gains little */
#define WINDOW (15 + 16) /* the largest window, with gzip's header */
#define FLUSH_MAX 16     /* what a flush may add */

/* `;q=0`, `; q=0.000`: not wanted. */
static bool weight_is_zero(const char *parameters, size_t len)
{
    const char *end = parameters + len;
    const char *q = memchr(parameters, 'q', len);
    if (!q)
        q = memchr(parameters, 'Q', len);
    if (!q)
        return false;
    for (q++; q < end && (*q == ' ' || *q == '='); q++)
        ;
    if (q == end)
        return false;
    for (; q < end && (*q == '0' || *q == '.' || *q == ' '); q++)
        ;
    return q == end;
}

bool gzip_accepted(const char *header)
{
    bool any = false;
    while (header && *header) {
        header += strspn(header, " \t,");
        size_t len = strcspn(header, ",");
        size_t name = strcspn(header, ",; \t");
        bool wanted = !weight_is_zero(header + name, len - name);
        if ((name == 4 && strncasecmp(header, "gzip", 4) == 0) ||
            (name == 6 && strncasecmp(header, "x-gzip", 6) == 0))
            return wanted;
        if (name == 1 && *header == '*')
            any = wanted;
        header += len;
    }
    return any;
}

/* All of `plain` with one call. */
static void pack(const struct buf *plain, int window, int flush, struct buf *out)
{
    z_stream z = {0};
    hf_check(plain->len <= UINT32_MAX / 2);
    hf_check(deflateInit2(&z, LEVEL, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    buf_reserve(out, deflateBound(&z, plain->len) + FLUSH_MAX);
    z.next_in = (Bytef *)plain->data;
    z.avail_in = (uInt)plain->len;
    z.next_out = (Bytef *)out->data;
    z.avail_out = (uInt)out->cap;
    hf_check(deflate(&z, flush) == (flush == Z_FINISH ? Z_STREAM_END : Z_OK));
    hf_check(z.avail_in == 0 && z.avail_out > 0);
    out->len = z.total_out;
    deflateEnd(&z);
    out->data = hf_realloc(out->data, out->len);
    out->cap = out->len;
}

void gzip_pack(const struct buf *plain, struct buf *out) { pack(plain, WINDOW, Z_FINISH, out); }

struct gzip_writer {
    z_stream z;
    struct buf *out;
};

struct gzip_writer *gzip_open(struct buf *out)
{
    struct gzip_writer *w = hf_alloc(sizeof *w);
    w->out = out;
    hf_check(deflateInit2(&w->z, LEVEL, Z_DEFLATED, WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    return w;
}

static void write_more(struct gzip_writer *w, const struct buf *plain, int flush)
{
    int step;
    hf_check(plain->len <= UINT32_MAX / 2);
    w->z.next_in = (Bytef *)plain->data;
    w->z.avail_in = (uInt)plain->len;
    do {
        const uInt room = 65536;
        buf_reserve(w->out, room);
        w->z.next_out = (Bytef *)w->out->data + w->out->len;
        w->z.avail_out = room;
        step = deflate(&w->z, flush);
        hf_check(step != Z_STREAM_ERROR);
        w->out->len += room - w->z.avail_out;
    } while (w->z.avail_out == 0 || (flush == Z_FINISH && step != Z_STREAM_END));
}

void gzip_write(struct gzip_writer *w, const struct buf *plain)
{
    write_more(w, plain, Z_NO_FLUSH);
}

void gzip_finish(struct gzip_writer *w)
{
    const struct buf nothing = {0};
    write_more(w, &nothing, Z_FINISH);
    deflateEnd(&w->z);
    free(w);
}

bool gzip_unpack(const void *data, size_t len, size_t len_max, struct buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
    size_t start = out->len;
    int step = Z_OK;
    if (len > UINT32_MAX / 2 || inflateInit2(&z, WINDOW) != Z_OK)
        return false;
    while (step == Z_OK && out->len - start <= len_max) {
        buf_reserve(out, 65536);
        size_t room = out->cap - out->len < UINT32_MAX / 2 ? out->cap - out->len : UINT32_MAX / 2;
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)room;
        step = inflate(&z, Z_NO_FLUSH);
        out->len += room - z.avail_out;
    }
    inflateEnd(&z);
    return step == Z_STREAM_END && z.avail_in == 0 && out->len - start <= len_max;
}

void gzip_begin(struct buf *out)
{
    static const char head[10] = {'\x1f', '\x8b', Z_DEFLATED, 0, 0, 0, 0, 0, 0, '\xff'};
    buf_put(out, head, sizeof head);
}

void gzip_block(const struct buf *plain, struct buf *out)
{
    pack(plain, -MAX_WBITS, Z_FULL_FLUSH, out);
}

void gzip_block_stored(const char *plain, size_t len, struct buf *out)
{
    const char head[5] = {0, (char)(len & 0xff), (char)(len >> 8), (char)(~len & 0xff),
                          (char)(~len >> 8 & 0xff)};
    hf_check(len <= UINT16_MAX);
    buf_put(out, head, sizeof head);
    buf_put(out, plain, len);
}
