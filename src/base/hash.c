/* SipHash (Aumasson and Bernstein, 2012) with one round per word and three at the end, as several
 * languages use it for their tables.  See hash.h. */
#include "base/hash.h"

#include <string.h>

#include "base/random.h"

/* Written before main, and by tests. */
static uint64_t key[2];

__attribute__((constructor)) static void draw_key(void)
{
    struct random random;
    random_init_system(&random);
    random_bytes(&random, key, sizeof key);
}

void hash_set_key(uint64_t first, uint64_t second)
{
    key[0] = first;
    key[1] = second;
}

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void mix(struct sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->d = rotate(s->d, 21) ^ s->a;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

static inline struct sip begin(void)
{
    /* "somepseudorandomlygeneratedbytes", as the algorithm has it */
    return (struct sip){
        key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
}

static inline void put_word(struct sip *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

/* Puts the bytes, then the end: `total` is the length of everything that was put. */
static inline uint64_t finish(struct sip *s, const unsigned char *data, size_t len, size_t total)
{
    uint64_t word, last = (uint64_t)total << 56;
    for (; len >= sizeof word; data += sizeof word, len -= sizeof word) {
        memcpy(&word, data, sizeof word);
        put_word(s, word);
    }
    for (size_t i = 0; i < len; i++)
        last |= (uint64_t)data[i] << (8 * i);
    put_word(s, last);
    s->c ^= 0xff;
    mix(s);
    mix(s);
    mix(s);
    return s->a ^ s->b ^ s->c ^ s->d;
}

uint64_t hash_keyed(const void *data, size_t len)
{
    struct sip s = begin();
    return finish(&s, data, len, len);
}

uint64_t hash_keyed_with(uint64_t number, const void *data, size_t len)
{
    struct sip s = begin();
    put_word(&s, number);
    return finish(&s, data, len, len + sizeof number);
}
