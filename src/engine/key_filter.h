/* Which idempotency keys may be stored: a Bloom filter, so that a refusal from the view need not
 * ask the ledger.  "No" is certain; "maybe" costs a trip through the queue.  Memory is fixed: two
 * generations of 8 MiB, of which the older is forgotten after KEY_KEPT_MS, when its keys are dead.
 * Keys are added at the start, and then by the worker alone; any thread may ask.  Where servers
 * share the ledger it is not used. */
#ifndef HF_ENGINE_KEY_FILTER_H
#define HF_ENGINE_KEY_FILTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct key_filter {
    _Atomic uint64_t *bits[2];
    _Atomic bool used[2]; /* has any key */
    _Atomic int current;
    int64_t turned_at; /* ledger time of the last turn */
};

void key_filter_init(struct key_filter *f, int64_t now);
void key_filter_close(struct key_filter *f);
void key_filter_add(struct key_filter *f, const uint8_t *hash, int64_t now);
bool key_filter_maybe(const struct key_filter *f, const uint8_t *hash);

#endif
