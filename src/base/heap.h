/* A binary heap of deadlines whose items know their place in it, so that a deadline can be moved or
 * removed in O(log n).  An item embeds a struct heap_node; heap_item() leads back to the item.  No
 * thread owns this file: a heap belongs to the owner of the struct around it. */
#ifndef HF_BASE_HEAP_H
#define HF_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct heap_node {
    int64_t key;    /* the heap orders by this; only heap_set changes it */
    uint32_t place; /* 1 + index in the heap; 0: not in a heap */
};

struct heap {
    VEC(struct heap_node *) nodes; /* nodes[i]->key <= nodes[2i+1]->key, nodes[2i+2]->key */
};

#define heap_item(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Puts the node in with this key, or moves it if it is in already.  O(log n). */
void heap_set(struct heap *h, struct heap_node *node, int64_t key);
/* Takes the node out; does nothing if it is in no heap.  O(log n). */
void heap_remove(struct heap *h, struct heap_node *node);
/* The node with the smallest key, or NULL.  O(1). */
struct heap_node *heap_first(const struct heap *h);
/* Up to `max` nodes whose key is at most `key`, in no promised order; returns how many.  O(max). */
size_t heap_up_to(const struct heap *h, int64_t key, struct heap_node **ret_nodes, size_t max);
void heap_close(struct heap *h); /* frees; accepts a zeroed struct, which is an empty heap */

#endif
