/* zlib, as far as answers need it.  Pure. */
#include "base/gzip.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/status.h"

#define LEVEL 1          /* maps are long runs of dots: more effort gains little */
#define WINDOW (15 + 16) /* the largest window, with gzip's header */

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

void gzip_pack(const struct buf *plain, struct buf *out)
{
    z_stream z = {0};
    hf_check(plain->len <= UINT32_MAX);
    hf_check(deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    buf_reserve(out, deflateBound(&z, plain->len));
    z.next_in = (Bytef *)plain->data;
    z.avail_in = (uInt)plain->len;
    z.next_out = (Bytef *)out->data;
    z.avail_out = (uInt)out->cap;
    hf_check(deflate(&z, Z_FINISH) == Z_STREAM_END);
    out->len = z.total_out;
    deflateEnd(&z);
    out->data = hf_realloc(out->data, out->len);
    out->cap = out->len;
}
