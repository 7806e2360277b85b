/* See heap.h.  Keeps nodes[i]->key <= nodes[2i+1]->key, nodes[2i+2]->key, and node->place in step.
 */
#include "base/heap.h"

static void put_at(struct heap *h, size_t i, struct heap_node *node)
{
    h->nodes.v[i] = node;
    node->place = (uint32_t)i + 1;
}

/* Moves the node at `i` up or down to where it belongs. */
static void restore(struct heap *h, size_t i)
{
    struct heap_node *node = h->nodes.v[i];
    for (size_t up; i > 0 && node->key < h->nodes.v[up = (i - 1) / 2]->key; i = up)
        put_at(h, i, h->nodes.v[up]);
    for (size_t down; (down = 2 * i + 1) < h->nodes.n; i = down) {
        if (down + 1 < h->nodes.n && h->nodes.v[down + 1]->key < h->nodes.v[down]->key)
            down++;
        if (node->key <= h->nodes.v[down]->key)
            break;
        put_at(h, i, h->nodes.v[down]);
    }
    put_at(h, i, node);
}

void heap_set(struct heap *h, struct heap_node *node, int64_t key)
{
    node->key = key;
    if (!node->place) {
        *vec_push(&h->nodes) = node;
        node->place = (uint32_t)h->nodes.n;
    }
    restore(h, node->place - 1);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
    if (!node->place)
        return;
    size_t i = node->place - 1;
    struct heap_node *last = h->nodes.v[--h->nodes.n];
    node->place = 0;
    if (last == node)
        return;
    put_at(h, i, last);
    restore(h, i);
}

struct heap_node *heap_first(const struct heap *h) { return h->nodes.n ? h->nodes.v[0] : NULL; }

/* The ancestors of a node with a small key have small keys too, so those wanted form a tree at the
 * top of the heap, which this walks breadth first. */
size_t heap_up_to(const struct heap *h, int64_t key, struct heap_node **ret_nodes, size_t max)
{
    size_t n = 0;
    if (max && h->nodes.n && h->nodes.v[0]->key <= key)
        ret_nodes[n++] = h->nodes.v[0];
    for (size_t i = 0; i < n; i++) {
        size_t child = 2 * (size_t)(ret_nodes[i]->place - 1) + 1;
        for (size_t end = child + 2; child < end && child < h->nodes.n && n < max; child++)
            if (h->nodes.v[child]->key <= key)
                ret_nodes[n++] = h->nodes.v[child];
    }
    return n;
}

void heap_close(struct heap *h) { vec_close(&h->nodes); }
