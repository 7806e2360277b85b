/* See digest.h.  The plain calls of libcrypto cost a third of its newer ones, which look the
 * algorithm up each time, and this is on the path of every refusal. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/digest.h"

#include <openssl/sha.h>
#include <string.h>

#include "base/status.h"

#define BLOCK_SIZE 64 /* of SHA-256 */

void digest(const struct iovec *parts, int n, uint8_t ret[DIGEST_SIZE])
{
    SHA256_CTX ctx;
    SHA256_Init(&ctx);
    for (int i = 0; i < n; i++)
        SHA256_Update(&ctx, parts[i].iov_base, parts[i].iov_len);
    SHA256_Final(ret, &ctx);
}

struct iovec digest_part(const void *data, size_t len)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = len};
}

void digest_hmac(const void *key, size_t key_len, const struct iovec *parts, int n,
                 uint8_t ret[DIGEST_SIZE])
{
    uint8_t pad[BLOCK_SIZE] = {0}, inner[DIGEST_SIZE];
    struct iovec all[DIGEST_HMAC_PARTS_MAX + 1] = {digest_part(pad, sizeof pad)};
    hf_check(n >= 0 && n <= DIGEST_HMAC_PARTS_MAX);
    for (int i = 0; i < n; i++)
        all[i + 1] = parts[i];
    if (key_len > sizeof pad) {
        struct iovec long_key = digest_part(key, key_len);
        digest(&long_key, 1, pad);
    } else if (key_len > 0) {
        memcpy(pad, key, key_len);
    }
    for (size_t i = 0; i < sizeof pad; i++)
        pad[i] ^= 0x36;
    digest(all, n + 1, inner);
    for (size_t i = 0; i < sizeof pad; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    all[1] = digest_part(inner, sizeof inner);
    digest(all, 2, ret);
    explicit_bzero(pad, sizeof pad);
}
