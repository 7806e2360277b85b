/* Ids as clients see them: a prefix, the row's integer key in 11 base62 characters, and 96 secret
 * bits in 17.  The key finds the row; the secret, which the row stores, proves that the caller was
 * given the id.  A text that is no id is treated as an unknown id.  Pure functions. */
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

/* Writes prefix, body and a NUL; returns the length without the NUL. */
size_t id_format(char out[ID_TEXT_SIZE], const char *prefix, const struct id *id);
/* Returns false unless `text` is exactly what id_format writes for some id with this prefix. */
bool id_parse(const char *text, size_t len, const char *prefix, struct id *ret);
/* Takes the same time whatever the secrets are. */
bool id_secret_equal(const uint8_t a[ID_SECRET_SIZE], const uint8_t b[ID_SECRET_SIZE]);

/* For qsort: orders struct ids by their keys. */
int id_order(const void *a, const void *b);

#endif
