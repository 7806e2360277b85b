/* See block.h.  A pool belongs to one thread. */
#include "http/block.h"

#include <stdlib.h>

#include "base/status.h"

#define FREE_MAX 64

static void block_free(struct blocks *pool, struct block *b)
{
    size_t size = sizeof *b + b->cap + pool->extra;
    atomic_fetch_sub_explicit(pool->bytes, size, memory_order_relaxed);
    free(b);
}

struct block *block_take(struct blocks *pool, size_t cap)
{
    struct block *b = cap <= BLOCK_SMALL_MAX ? pool->free : NULL;
    if (b) {
        pool->free = b->next;
        pool->n_free--;
        b->at = b->len = 0;
        return b;
    }
    cap = cap <= BLOCK_SMALL_MAX ? BLOCK_SMALL_MAX : BLOCK_LARGE_MAX;
    size_t size = sizeof *b + cap + pool->extra;
    if (atomic_fetch_add_explicit(pool->bytes, size, memory_order_relaxed) + size >
        BLOCKS_BYTES_MAX) {
        atomic_fetch_sub_explicit(pool->bytes, size, memory_order_relaxed);
        return NULL;
    }
    b = malloc(sizeof *b + cap);
    hf_check(b);
    b->cap = cap;
    b->at = b->len = 0;
    return b;
}

void block_give(struct blocks *pool, struct block *b)
{
    if (!b)
        return;
    if (b->cap != BLOCK_SMALL_MAX || pool->n_free >= FREE_MAX) {
        block_free(pool, b);
        return;
    }
    b->next = pool->free;
    pool->free = b;
    pool->n_free++;
}

void blocks_close(struct blocks *pool)
{
    for (struct block *b = pool->free, *next; b; b = next) {
        next = b->next;
        block_free(pool, b);
    }
    pool->free = NULL;
}
