/* SHA-256, and HMAC by it, of several parts as if they were one text.  Any thread. */
#ifndef HF_BASE_DIGEST_H
#define HF_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define DIGEST_SIZE 32

void digest(const struct iovec *parts, int n, uint8_t ret[DIGEST_SIZE]);
/* HMAC-SHA256 (RFC 2104).  There are at most DIGEST_HMAC_PARTS_MAX parts. */
#define DIGEST_HMAC_PARTS_MAX 7
void digest_hmac(const void *key, size_t key_len, const struct iovec *parts, int n,
                 uint8_t ret[DIGEST_SIZE]);
struct iovec digest_part(const void *data, size_t len);

#endif
