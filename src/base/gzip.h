/* Answers in gzip: whether a client wants one, and packing it. */
#ifndef HF_BASE_GZIP_H
#define HF_BASE_GZIP_H

#include <stdbool.h>

#include "base/buf.h"

/* Does an Accept-Encoding header (may be NULL) allow gzip? */
bool gzip_accepted(const char *header);
/* Append `plain`, packed, to an empty `out`.  O(length). */
void gzip_pack(const struct buf *plain, struct buf *out);

/* A gzip stream that many readers share without end: each begins with gzip_begin, then come blocks
 * that refer to nothing before them, so that any of them may follow any other. */
void gzip_begin(struct buf *out);
void gzip_block(const struct buf *plain, struct buf *out); /* packed; into an empty one */
void gzip_block_stored(const char *plain, size_t len, struct buf *out); /* as it is; few bytes */

#endif
