/* SHA-256 of several parts as if they were one text.  Any thread. */
#ifndef HF_BASE_DIGEST_H
#define HF_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define DIGEST_SIZE 32

void digest(const struct iovec *parts, int n, uint8_t ret[DIGEST_SIZE]);
struct iovec digest_part(const void *data, size_t len);

#endif
