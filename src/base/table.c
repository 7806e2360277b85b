/* See table.h. */
#include "base/table.h"

#include <stdlib.h>

#include "base/status.h"

void table_reserve(struct table *t, size_t n)
{
    struct table old = *t;
    while (t->cap < t->n + n)
        t->cap = t->cap ? t->cap * 2 : 64;
    if (t->cap == old.cap)
        return;
    t->buckets = hf_alloc(t->cap * sizeof *t->buckets);
    for (size_t i = 0; i < old.cap; i++)
        for (struct table_node *node = old.buckets[i], *next; node; node = next) {
            struct table_node **bucket = &t->buckets[node->hash & (t->cap - 1)];
            next = node->next;
            node->next = *bucket;
            *bucket = node;
        }
    free(old.buckets);
}

void table_close(struct table *t)
{
    free(t->buckets);
    *t = (struct table){0};
}

void table_free_items(struct table *t)
{
    for (struct table_node *node = table_first(t), *next; node; node = next) {
        next = table_after(t, node);
        free(node);
    }
    table_close(t);
}
