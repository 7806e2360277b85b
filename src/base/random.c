/* Unpredictable bytes for ids, or repeatable bytes for tests.  Both sources fill the same pool;
 * bytes leave it once and are wiped, so that an id cannot be read back from memory later.  A struct
 * random belongs to one thread, and must not be used by a process and its fork at once. */
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/status.h"

static void refill_system(struct random *r)
{
    for (size_t have = 0; have < sizeof r->pool;) {
        ssize_t n = getrandom(r->pool + have, sizeof r->pool - have, 0);
        hf_check(n > 0 || errno == EINTR);
        if (n > 0)
            have += (size_t)n;
    }
}

/* splitmix64 with the seed as its state; 0 is skipped, since it means the system's source. */
static void refill_seeded(struct random *r)
{
    for (size_t at = 0; at < sizeof r->pool; at += sizeof(uint64_t)) {
        r->seed += 0x9e3779b97f4a7c15;
        r->seed += r->seed == 0;
        uint64_t z = r->seed;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        z ^= z >> 31;
        memcpy(r->pool + at, &z, sizeof z);
    }
}

void random_init_system(struct random *r) { *r = (struct random){.used = sizeof r->pool}; }

void random_init_seeded(struct random *r, uint64_t seed)
{
    *r = (struct random){.seed = seed ? seed : UINT64_MAX, .used = sizeof r->pool};
}

void random_bytes(struct random *r, void *out, size_t len)
{
    uint8_t *to = out;
    while (len > 0) {
        if (r->used == sizeof r->pool) {
            if (r->seed)
                refill_seeded(r);
            else
                refill_system(r);
            r->used = 0;
        }
        size_t left = sizeof r->pool - r->used;
        size_t n = len < left ? len : left;
        memcpy(to, r->pool + r->used, n);
        explicit_bzero(r->pool + r->used, n);
        r->used += n;
        to += n;
        len -= n;
    }
}

uint64_t random_u64(struct random *r)
{
    uint64_t value;
    random_bytes(r, &value, sizeof value);
    return value;
}

/* The high half of a 64 x 64 bit product is in range; the few low halves that would make some
 * results likelier than others are drawn again. */
uint64_t random_below(struct random *r, uint64_t bound)
{
    hf_check(bound > 0);
    uint64_t uneven = -bound % bound; /* 2^64 mod bound */
    unsigned __int128 product;
    do
        product = (unsigned __int128)random_u64(r) * bound;
    while ((uint64_t)product < uneven);
    return (uint64_t)(product >> 64);
}
