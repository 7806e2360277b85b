/* A blocked Bloom filter: a key sets four bits of one 64-byte block, so a lookup costs one cache
 * miss per generation.  About one false "maybe" in 100,000 at a million keys, one in 25 at ten
 * million. */
#include "engine/key_filter.h"

#include <stdlib.h>
#include <string.h>

#include "model/rows.h"

#define BLOCK_WORDS 8
#define BLOCKS ((size_t)1 << 17)

void key_filter_init(struct key_filter *f, int64_t now)
{
    for (int i = 0; i < 2; i++) {
        f->bits[i] = hf_alloc(BLOCKS * BLOCK_WORDS * sizeof(uint64_t));
        f->used[i] = false;
    }
    f->current = 0;
    f->turned_at = now;
}

void key_filter_close(struct key_filter *f)
{
    free(f->bits[0]);
    free(f->bits[1]);
    f->bits[0] = f->bits[1] = NULL;
}

/* The key is a cryptographic hash: its bytes are as good as any further hashing of them. */
struct probe {
    size_t block;
    uint8_t bit[4], word[4];
};

static struct probe probe_of(const uint8_t *hash)
{
    struct probe p;
    uint32_t block;
    memcpy(&block, hash, sizeof block);
    p.block = block % BLOCKS * BLOCK_WORDS;
    for (int i = 0; i < 4; i++) {
        p.word[i] = hash[4 + i] % BLOCK_WORDS;
        p.bit[i] = hash[8 + i] % 64;
    }
    return p;
}

static void turn(struct key_filter *f, int64_t now)
{
    int old = 1 - f->current;
    for (size_t i = 0; i < BLOCKS * BLOCK_WORDS; i++)
        atomic_store_explicit(&f->bits[old][i], 0, memory_order_relaxed);
    atomic_store_explicit(&f->used[old], false, memory_order_relaxed);
    atomic_store_explicit(&f->current, old, memory_order_release);
    f->turned_at = now;
}

void key_filter_add(struct key_filter *f, const uint8_t *hash, int64_t now)
{
    if (now - f->turned_at > KEY_KEPT_MS)
        turn(f, now);
    struct probe p = probe_of(hash);
    _Atomic uint64_t *block = f->bits[f->current] + p.block;
    if (!atomic_load_explicit(&f->used[f->current], memory_order_relaxed))
        atomic_store_explicit(&f->used[f->current], true, memory_order_relaxed);
    for (int i = 0; i < 4; i++)
        atomic_fetch_or_explicit(&block[p.word[i]], (uint64_t)1 << p.bit[i], memory_order_relaxed);
}

bool key_filter_maybe(const struct key_filter *f, const uint8_t *hash)
{
    struct probe p = probe_of(hash);
    for (int g = 0; g < 2; g++) {
        bool all = atomic_load_explicit(&f->used[g], memory_order_relaxed);
        for (int i = 0; i < 4 && all; i++)
            all = atomic_load_explicit(&f->bits[g][p.block + p.word[i]], memory_order_relaxed) >>
                      p.bit[i] &
                  1;
        if (all)
            return true;
    }
    return false;
}
