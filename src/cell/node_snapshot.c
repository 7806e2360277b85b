/* A master's snapshots: the state is stored in chunks between appends, then the pointer to them,
 * then the entries that they make superfluous are trimmed.  Owner: the thread that runs the node.
 */
#include "cell/node_internal.h"

static void begin(struct node *n)
{
    n->snapshot.bytes.len = 0;
    buf_put(&n->snapshot.bytes, n->replica.chain, sizeof n->replica.chain);
    cell_state_save(n->replica.state, &n->snapshot.bytes);
    n->snapshot.index = n->replica.index;
    n->snapshot.next_chunk = 0;
    n->snapshot.entry_bytes = 0;
    n->snapshot.step = SNAPSHOT_CHUNKS;
}

static int64_t n_chunks(const struct node *n)
{
    return (int64_t)((n->snapshot.bytes.len + JOURNAL_CHUNK_MAX - 1) / JOURNAL_CHUNK_MAX);
}

bool snapshot_next(struct node *n, int64_t now_us)
{
    struct journal_call *c = &n->journal.call;
    if (n->role != NODE_LEADING || now_us < n->snapshot.try_us)
        return false;
    if (n->snapshot.step == SNAPSHOT_IDLE) {
        if (n->replica.index - n->snapshot.index < n->config.snapshot_entries &&
            n->snapshot.entry_bytes < SNAPSHOT_BYTES)
            return false;
        begin(n);
    }
    c->mandate = n->mandate;
    c->index = n->snapshot.index;
    switch (n->snapshot.step) {
    case SNAPSHOT_CHUNKS: {
        size_t at = (size_t)n->snapshot.next_chunk * JOURNAL_CHUNK_MAX;
        size_t left = n->snapshot.bytes.len - at;
        c->op = JOURNAL_PUT_CHUNK;
        c->no = n->snapshot.next_chunk;
        c->data = n->snapshot.bytes.data + at;
        c->len = left < JOURNAL_CHUNK_MAX ? left : JOURNAL_CHUNK_MAX;
        break;
    }
    case SNAPSHOT_POINT:
        c->op = JOURNAL_POINT;
        c->n_chunks = n_chunks(n);
        break;
    default:
        c->op = JOURNAL_TRIM;
        break;
    }
    return true;
}

void snapshot_done(struct node *n, int64_t now_us)
{
    const struct journal_call *c = &n->journal.call;
    n->snapshot.was_last = true;
    if (c->result == JOURNAL_DEPOSED) {
        node_step_down(n, CELL_NO_MASTER);
    } else if (c->result != JOURNAL_DONE) {
        n->snapshot.try_us = now_us + RETRY_MAX_US;
        n->journal.retry_us = 0; /* entries need not wait for it */
    } else if (c->op == JOURNAL_PUT_CHUNK) {
        if (++n->snapshot.next_chunk == n_chunks(n))
            n->snapshot.step = SNAPSHOT_POINT;
    } else if (c->op == JOURNAL_POINT) {
        n->snapshot.step = SNAPSHOT_TRIM;
        buf_close(&n->snapshot.bytes);
    } else if (!c->more) {
        n->snapshot.step = SNAPSHOT_IDLE;
    }
}
