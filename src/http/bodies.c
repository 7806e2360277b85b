/* See bodies.h. */
#include "http/bodies.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/pin.h"
#include "http/request.h"

#define HASHED_LEN (BODIES_LEN_MIN / 2) /* at each end of a body */

struct shared_body {
    struct bodies *table;
    struct shared_body **slot; /* where it can be found, unless another one has taken its place */
    size_t n_readers;          /* under the table's lock */
    struct buf bytes;
    struct pin pin;
};

/* answer_keeper.sent */
static void give_back(void *owner)
{
    struct shared_body *body = owner;
    lock_take(&body->table->lock);
    bool is_last = --body->n_readers == 0;
    if (is_last && *body->slot == body)
        *body->slot = NULL;
    lock_give(&body->table->lock);
    if (!is_last)
        return;
    buf_close(&body->bytes);
    free(body);
}

static bool are_equal(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* The number of the slot of a body, by its length, its beginning and its end, since bodies may have
 * megabytes.  Bodies that differ elsewhere only share a slot. */
static size_t slot_of(const struct buf *body)
{
    uint64_t hash = hash_more(HASH_START, &body->len, sizeof body->len);
    hash = hash_more(hash, body->data, HASHED_LEN);
    hash = hash_more(hash, body->data + body->len - HASHED_LEN, HASHED_LEN);
    return hash_finish(hash) % BODIES_SLOTS;
}

void bodies_share(struct bodies *b, struct request *r)
{
    struct answer *a = &r->answer;
    struct shared_body **slot = &b->slots[slot_of(&r->out)];
    lock_take(&b->lock);
    struct shared_body *body = *slot;
    if (body && are_equal(&body->bytes, &r->out)) {
        buf_close(&r->out);
    } else {
        buf_trim(&r->out); /* it may take half of its buffer, which grew by doubling */
        *slot = body = hf_alloc(sizeof *body);
        *body = (struct shared_body){.table = b, .slot = slot, .bytes = r->out};
        r->out = (struct buf){0};
    }
    body->n_readers++;
    lock_give(&b->lock);
    a->data = body->bytes.data;
    a->keeper = (struct answer_keeper){
        .sent = give_back, .owner = body, .pin = &body->pin, .pinned = body->bytes.cap};
}
