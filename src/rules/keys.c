/* Idempotency keys: the answer to a repeat, and the keys that the batch itself stores (I8).  See
 * decide.h.  On the worker's thread. */
#include <string.h>

#include "rules/decide.h"

/* The slot of the hash in the set of keys that this batch stores, or the free slot where it would
 * go.  The set is at most half full, so the search ends. */
static size_t find_slot(const struct decision *d, const uint8_t hash[KEY_HASH_SIZE],
                        bool *ret_found)
{
    uint64_t start;
    memcpy(&start, hash, sizeof start);
    for (size_t i = start % KEYS_STORED_SLOTS;; i = (i + 1) % KEYS_STORED_SLOTS) {
        *ret_found = d->keys_stored[i].batch_no == d->batch_no &&
                     memcmp(d->keys_stored[i].hash, hash, KEY_HASH_SIZE) == 0;
        if (*ret_found || d->keys_stored[i].batch_no != d->batch_no)
            return i;
    }
}

void decide_keep_answer(struct decision *d, const struct idempotency *key, int64_t hold)
{
    bool found;
    size_t slot = find_slot(d, key->hash, &found);
    hf_check(!found);
    d->keys_stored[slot].batch_no = d->batch_no;
    memcpy(d->keys_stored[slot].hash, key->hash, KEY_HASH_SIZE);
    struct key_row *row = vec_push(&d->batch.keys);
    memcpy(row->hash, key->hash, KEY_HASH_SIZE);
    memcpy(row->request, key->request, KEY_HASH_SIZE);
    row->answer_code = key->answer_code;
    row->answer = key->answer.data;
    row->answer_len = key->answer.len;
    row->created_at = d->now;
    row->hold = hold;
}

enum verdict decide_key(const struct decision *d, struct idempotency *key,
                        const struct key_row *stored)
{
    bool found = false;
    key->rendered = key->replayed = false; /* in a batch that was taken back */
    if (!key->present)
        return VERDICT_UNDECIDED;
    (void)find_slot(d, key->hash, &found);
    if (found)
        return VERDICT_DEFERRED;
    if (!stored->found)
        return VERDICT_UNDECIDED;
    if (memcmp(stored->request, key->request, KEY_HASH_SIZE) != 0)
        return VERDICT_KEY_MISMATCH;
    key->rendered = key->replayed = true;
    key->answer_code = stored->answer_code;
    key->answer.len = 0;
    buf_put(&key->answer, stored->answer, stored->answer_len);
    return VERDICT_OK;
}
