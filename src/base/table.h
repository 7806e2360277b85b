/* A hash table with chains that grows with its contents.  An item embeds a struct table_node, best
 * as its first member; heap_item() of base/heap.h leads back from any other place.  Hashes are the
 * caller's: see base/hash.h.  The table owns no item, and its order decides nothing.
 *
 * Adding costs O(1), amortised: the table doubles when it has as many items as buckets, and never
 * shrinks.  Removing and finding cost the length of a chain.  No thread owns this file: a table
 * belongs to the owner of the struct around it. */
#ifndef HF_BASE_TABLE_H
#define HF_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next; /* in its chain */
    uint64_t hash;
};

struct table {
    struct table_node **buckets;
    size_t n, cap; /* cap is 0 or a power of two */
};

/* Makes room for `n` more nodes, in one step instead of one per doubling. */
void table_reserve(struct table *t, size_t n);
/* Frees the buckets; accepts a zeroed struct, which is an empty table. */
void table_close(struct table *t);
/* Also frees the items; each is an allocation that begins with its node. */
void table_free_items(struct table *t);

static inline void table_add(struct table *t, struct table_node *node, uint64_t hash)
{
    if (t->n >= t->cap)
        table_reserve(t, 1);
    struct table_node **bucket = &t->buckets[hash & (t->cap - 1)];
    node->hash = hash;
    node->next = *bucket;
    *bucket = node;
    t->n++;
}

/* The node is in the table. */
static inline void table_remove(struct table *t, struct table_node *node)
{
    struct table_node **at = &t->buckets[node->hash & (t->cap - 1)];
    while (*at != node) // NOLINT(clang-analyzer-core.NullDereference): it is in the table
        at = &(*at)->next;
    *at = node->next;
    t->n--;
}

/* The chain of a hash, linked by `next`; skip nodes with another hash. */
static inline struct table_node *table_chain(const struct table *t, uint64_t hash)
{
    return t->cap ? t->buckets[hash & (t->cap - 1)] : NULL;
}

/* The first node at or after a bucket; NULL: there is none. */
static inline struct table_node *table_from(const struct table *t, size_t bucket)
{
    while (bucket < t->cap && !t->buckets[bucket])
        bucket++;
    return bucket < t->cap ? t->buckets[bucket] : NULL;
}

/* A walk over all nodes: from table_first, by table_after, until that is NULL.  Nothing may be
 * added meanwhile; to remove a node, ask for the one after it before. */
static inline struct table_node *table_first(const struct table *t) { return table_from(t, 0); }
static inline struct table_node *table_after(const struct table *t, const struct table_node *node)
{
    return node->next ? node->next : table_from(t, (node->hash & (t->cap - 1)) + 1);
}

#endif
