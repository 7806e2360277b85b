/* Hashes for tables in memory: FNV-1a for bytes, a multiplication for integers.  Not for secrets,
 * and not stable across versions: nothing stored depends on them (see digest.h for what is stored).
 * Pure functions. */
#ifndef HF_BASE_HASH_H
#define HF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash`, so that several parts hash as their concatenation does:
 * hash_more(hash_more(HASH_START, a, n), b, m).  Reduce the result with hash_finish. */
static inline uint64_t hash_more(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Spreads the high bits into the low ones, which tables of 2^n slots use. */
static inline uint64_t hash_finish(uint64_t hash) { return hash ^ hash >> 32; }

static inline uint64_t hash_bytes(const void *data, size_t len)
{
    return hash_finish(hash_more(HASH_START, data, len));
}

static inline uint64_t hash_int(uint64_t value)
{
    return hash_finish(value * UINT64_C(0x9e3779b97f4a7c15));
}

#endif
