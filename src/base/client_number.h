/* The number that limits per client count by: a hash of an IPv4 address, or of the /64 of an IPv6
 * address, since a subscriber gets at least that.  A subscriber may have a whole /48 as well, so
 * the number of a /64 says which /48 it is in, and that may have CLIENT_WIDE times as much.
 *
 *   IPv4   0 | 63 bits of the address
 *   IPv6   1 | 40 bits of the /48 | 23 bits of the /64, never all 0
 *
 * It is stored with holds, so it is the same after a restart.  Two networks of equal numbers would
 * share a limit; among 10,000 networks of 2^40 that is one chance in 20,000. */
#ifndef HF_BASE_CLIENT_NUMBER_H
#define HF_BASE_CLIENT_NUMBER_H

#include <stdint.h>

#define CLIENT_WIDE 8 /* how much more a /48 may take than a /64 */
#define CLIENT_V6 (UINT64_C(1) << 63)
#define CLIENT_NARROW ((UINT64_C(1) << 23) - 1)

static inline uint64_t client_number_v4(uint64_t hash)
{
    uint64_t client = hash & ~CLIENT_V6;
    return client ? client : 1;
}

static inline uint64_t client_number_v6(uint64_t wide_hash, uint64_t narrow_hash)
{
    uint64_t narrow = narrow_hash & CLIENT_NARROW;
    return CLIENT_V6 | (wide_hash & ~CLIENT_NARROW) | (narrow ? narrow : 1);
}

/* The number of the /48 that the client is in, which no client has; 0: it is in none. */
static inline uint64_t client_number_network(uint64_t client)
{
    return client & CLIENT_V6 ? client & ~CLIENT_NARROW : 0;
}

#endif
