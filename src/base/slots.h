/* An open-addressed table of small slots by a number: compact, and without an allocation for each.
 * For items that are allocations of their own see base/table.h.
 *
 * A slot begins with its key, a uint64_t; 0: it is free.  Slots do not leave one by one: those that
 * have become empty are dropped when the table grows, which it does when half of the slots are
 * used, so its size follows the slots that are not empty.  Finding and adding cost O(1), amortised.
 * A pointer to a slot is valid until the next slots_get.  No thread owns this file: a table belongs
 * to the owner of the struct around it. */
#ifndef HF_BASE_SLOTS_H
#define HF_BASE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slots_kind {
    size_t size; /* of a slot, a multiple of 8 */
    uint64_t (*hash)(uint64_t key);
    bool (*is_empty)(const void *slot); /* also of a zeroed slot */
};

struct slots {
    uint64_t *v;      /* n slots; n is a power of two, or 0 */
    size_t n, n_used; /* n_used: also those that have become empty */
};

void slots_grow(struct slots *s, const struct slots_kind *kind); /* slots_get calls it */
void slots_close(struct slots *s); /* accepts a zeroed struct, which is an empty table */

static inline void *slots_at(const struct slots *s, const struct slots_kind *kind, size_t i)
{
    return s->v + i * (kind->size / sizeof *s->v);
}

/* The key's slot, or the free one that it would get. */
static inline uint64_t *slots_seek(const struct slots *s, const struct slots_kind *kind,
                                   uint64_t key)
{
    size_t i = kind->hash(key);
    uint64_t *slot = slots_at(s, kind, i & (s->n - 1));
    while (*slot && *slot != key)
        slot = slots_at(s, kind, ++i & (s->n - 1));
    return slot;
}

/* NULL: the key has no slot. */
static inline void *slots_find(const struct slots *s, const struct slots_kind *kind, uint64_t key)
{
    uint64_t *slot = s->n ? slots_seek(s, kind, key) : NULL;
    return slot && *slot ? slot : NULL;
}

/* The key's slot; a new one is zero but for its key. */
static inline void *slots_get(struct slots *s, const struct slots_kind *kind, uint64_t key)
{
    if (s->n_used * 2 >= s->n)
        slots_grow(s, kind);
    uint64_t *slot = slots_seek(s, kind, key);
    s->n_used += *slot == 0;
    *slot = key;
    return slot;
}

#endif
