/* A hash table of structs that embed a struct table_link as their first member.  It grows with its
 * contents.  Part of what its owner guards; no thread of its own. */
#ifndef HF_LEASE_HOLDFAST_TABLE_H
#define HF_LEASE_HOLDFAST_TABLE_H

#include <stdlib.h>

#include "base/hash.h"
#include "base/status.h"

struct table_link {
    struct table_link *next;
    uint64_t hash;
};

struct table {
    struct table_link **buckets;
    size_t n, size; /* the size is a power of two, or 0 */
};

static inline void table_add(struct table *t, struct table_link *link, uint64_t hash)
{
    if (t->n >= t->size) {
        size_t size = t->size ? 2 * t->size : 64;
        struct table_link **buckets = hf_alloc(size * sizeof(struct table_link *));
        for (size_t i = 0; i < t->size; i++)
            for (struct table_link *x = t->buckets[i], *next; x; x = next) {
                next = x->next;
                x->next = buckets[x->hash & (size - 1)];
                buckets[x->hash & (size - 1)] = x;
            }
        free(t->buckets);
        t->buckets = buckets;
        t->size = size;
    }
    link->hash = hash;
    link->next = t->buckets[hash & (t->size - 1)];
    t->buckets[hash & (t->size - 1)] = link;
    t->n++;
}

static inline void table_remove(struct table *t, struct table_link *link)
{
    struct table_link **at = &t->buckets[link->hash & (t->size - 1)];
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    t->n--;
}

/* The first of those whose hash may be this one; the others follow by `next`. */
static inline struct table_link *table_first(const struct table *t, uint64_t hash)
{
    return t->size ? t->buckets[hash & (t->size - 1)] : NULL;
}

#endif
