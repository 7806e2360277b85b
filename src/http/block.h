/* Buffers for what connections send.  A connection has one only while a request is being read or
 * answered, so the memory follows the requests and not the connections.  Each thread keeps some
 * free ones; all threads share one budget.  Where there is a block there is a request, too, so a
 * block is counted together with its request and with a small body. */
#ifndef HF_HTTP_BLOCK_H
#define HF_HTTP_BLOCK_H

#include <stdatomic.h>
#include <stddef.h>

#include "http/parse.h"

#define BLOCK_BODY_MIN 1024 /* room that is left behind a head, for its body */
#define BLOCK_SMALL_MAX ((size_t)4096 - 64)
#define BLOCK_LARGE_MAX ((size_t)HEAD_LEN_MAX + BLOCK_BODY_MIN)
#define BLOCK_BODY_FREE 1024                 /* a body up to this size is counted with its block */
#define BLOCKS_BYTES_MAX ((size_t)256 << 20) /* of all threads */

struct block {
    struct block *next; /* in the free list */
    size_t cap;
    size_t at, len; /* data[at..len) has been received and not been looked at */
    char data[];
};

struct blocks {
    struct block *free; /* small ones */
    size_t n_free;
    atomic_size_t *bytes; /* in use or free, of all threads */
    size_t extra;         /* bytes that are counted with each block */
};

/* A block for at least `cap` bytes, up to BLOCK_LARGE_MAX; NULL: the budget is spent. */
struct block *block_take(struct blocks *pool, size_t cap);
void block_give(struct blocks *pool, struct block *b); /* accepts NULL */
void blocks_close(struct blocks *pool);

#endif
