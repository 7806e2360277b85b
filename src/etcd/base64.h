/* Base64, in which etcd's gateway has all keys and values.  Pure functions. */
#ifndef HF_ETCD_BASE64_H
#define HF_ETCD_BASE64_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"

/* Appends the bytes as base64. */
void base64_put(struct buf *b, const void *data, size_t len);
/* Appends the bytes that the text stands for.  Returns false if the text is not base64; `b` is then
 * as it was. */
HF_MUST_USE bool base64_take(struct buf *b, const char *text, size_t len);
/* Decodes a string.  The result is as long as *ret_len says, has a NUL behind it, and is freed by
 * the caller.  Returns NULL if it is not a string in base64. */
char *base64_decode(const json_t *text, size_t *ret_len);

#endif
