/* Outside ids: a prefix, the row's integer key in 11 base62 characters, 96 secret bits in 17.
 * The key finds the row; the secret, kept in the row, proves the caller was given the id.  An id
 * that does not parse is an unknown id.  Pure functions. */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_SECRET_SIZE 12
#define ID_BODY_LEN 28
#define ID_TEXT_SIZE 40 /* longest prefix, body and NUL fit */

struct id {
    int64_t key; /* > 0 */
    uint8_t secret[ID_SECRET_SIZE];
};

/* Writes prefix + body + NUL, returns the length. */
size_t id_format(char out[ID_TEXT_SIZE], const char *prefix, const struct id *id);
/* False unless `text` is exactly prefix + body of an id that id_format could have written. */
bool id_parse(const char *text, size_t len, const char *prefix, struct id *ret);
/* Constant time in the secrets. */
bool id_secret_equal(const uint8_t a[ID_SECRET_SIZE], const uint8_t b[ID_SECRET_SIZE]);

#endif
