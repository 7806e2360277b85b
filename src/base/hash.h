/* Hashes for tables in memory.  Not for secrets, and not stable across versions: nothing stored
 * depends on them (see digest.h for what is stored).  All threads may call these.
 *
 * hash_keyed is for bytes that come from outside: names, labels, ids, addresses.  It is SipHash-1-3
 * with a key that every process draws at its start, so that nobody can look for names that meet in
 * one slot and turn a table into a list.  Two processes hash differently, and so do two runs: no
 * order that anybody sees may follow from it.
 *
 * hash_bytes is FNV-1a, for bytes of our own, and where every process must compute the same.
 *
 * hash_int is a multiplication, for numbers that this program chose. */
#ifndef HF_BASE_HASH_H
#define HF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_keyed(const void *data, size_t len);
/* Hashes a number and bytes that belong to it. */
uint64_t hash_keyed_with(uint64_t number, const void *data, size_t len);
/* For tests, before anything that they use has been hashed. */
void hash_set_key(uint64_t first, uint64_t second);

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
