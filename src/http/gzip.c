/* A small direct-mapped store of compressed maps, one per slot: an event that is on sale stays in
 * its slot, and two that share one merely pack more often.  The lock is held for pointer work only;
 * two threads that miss at once both pack, and the newer map stays. */
#include "http/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define SLOTS 64
#define LEVEL 1          /* maps are long runs of dots: more effort gains little */
#define WINDOW (15 + 16) /* the largest window, with gzip's header */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gzip *slots[SLOTS];

void gzip_unref(struct gzip *g)
{
    if (g && atomic_fetch_sub(&g->refs, 1) == 1) {
        buf_close(&g->bytes);
        free(g);
    }
}

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

static struct gzip *take(int64_t event, int64_t seq)
{
    pthread_mutex_lock(&lock);
    struct gzip *g = slots[event % SLOTS];
    if (g && g->event == event && g->seq == seq)
        atomic_fetch_add(&g->refs, 1);
    else
        g = NULL;
    pthread_mutex_unlock(&lock);
    return g;
}

static void keep(struct gzip *g)
{
    pthread_mutex_lock(&lock);
    struct gzip *old = slots[g->event % SLOTS];
    bool newer = old && old->event == g->event && old->seq >= g->seq;
    if (!newer) {
        atomic_fetch_add(&g->refs, 1);
        slots[g->event % SLOTS] = g;
    }
    pthread_mutex_unlock(&lock);
    if (!newer)
        gzip_unref(old);
}

static void pack(const struct buf *plain, struct buf *out)
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

struct gzip *gzip_snapshot(int64_t event, const struct snapshot *s)
{
    struct gzip *g = take(event, s->seq);
    if (g)
        return g;
    g = hf_alloc(sizeof *g);
    g->refs = 1;
    g->event = event;
    g->seq = s->seq;
    pack(&s->json, &g->bytes);
    keep(g);
    return g;
}

void gzip_forget(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        gzip_unref(slots[i]);
        slots[i] = NULL;
    }
}
