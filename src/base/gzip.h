/* Answers in gzip: whether a client wants one, and packing it. */
#ifndef HF_BASE_GZIP_H
#define HF_BASE_GZIP_H

#include <stdbool.h>

#include "base/buf.h"

#define GZIP_LEN_MIN 1024 /* below this it is not worth the packing */

/* Does an Accept-Encoding header (may be NULL) allow gzip? */
bool gzip_accepted(const char *header);
/* Append `plain`, packed, to an empty `out`.  O(length). */
void gzip_pack(const struct buf *plain, struct buf *out);

#endif
