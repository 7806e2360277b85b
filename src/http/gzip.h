/* Compressed seat maps, shared: everyone who asks for the same map of the same seq gets the same
 * bytes, packed once by whoever asked first. */
#ifndef HF_HTTP_GZIP_H
#define HF_HTTP_GZIP_H

#include "engine/view.h"

#define GZIP_LEN_MIN 1024 /* below this it is not worth the packing */

struct gzip {
    _Atomic int refs;
    int64_t event, seq;
    struct buf bytes;
};

/* Does an Accept-Encoding header (may be NULL) allow gzip? */
bool gzip_accepted(const char *header);
/* A reference; give it back with gzip_unref.  O(length) when it is not there yet. */
struct gzip *gzip_snapshot(int64_t event, const struct snapshot *s);
void gzip_unref(struct gzip *g);
/* Drop what is kept, at the end. */
void gzip_forget(void);

#endif
