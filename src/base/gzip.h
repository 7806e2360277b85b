/* Answers in gzip: whether a client accepts it, and compressing.  Pure functions. */
#ifndef HF_BASE_GZIP_H
#define HF_BASE_GZIP_H

#include <stdbool.h>

#include "base/buf.h"

/* Does an Accept-Encoding header (may be NULL) allow gzip? */
bool gzip_accepted(const char *header);
/* Compresses `plain` into an empty `out`.  O(length). */
void gzip_pack(const struct buf *plain, struct buf *out);
/* The reverse: appends at most `len_max` bytes.  Returns false if the data is damaged, or is longer
 * than that. */
bool gzip_unpack(const void *data, size_t len, size_t len_max, struct buf *out);

/* The same in pieces, for what is too large to be in memory at once. */
struct gzip_writer;
/* What is compressed is appended to `out`, which is borrowed until gzip_finish. */
struct gzip_writer *gzip_open(struct buf *out);
void gzip_write(struct gzip_writer *w, const struct buf *plain);
void gzip_finish(struct gzip_writer *w); /* frees */

/* A gzip stream without end whose blocks many readers share: each reader's stream begins with
 * gzip_begin, and then come blocks that refer to nothing before them, so that any block may follow
 * any other. */
void gzip_begin(struct buf *out);
/* Appends a compressed block to an empty `out`. */
void gzip_block(const struct buf *plain, struct buf *out);
/* Appends a block that is not compressed, for a few bytes. */
void gzip_block_stored(const char *plain, size_t len, struct buf *out);

#endif
