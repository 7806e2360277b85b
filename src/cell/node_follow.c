/* A node as a standby: it reads the journal, loads snapshots, counts the master's silence on its
 * own clock from the last change that it read, claims, and catches up.  Owner: the thread that runs
 * the node. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cell/node_internal.h"

/* What this node knows is not what the journal says: it begins anew. */
static void reload(struct node *n)
{
    n->checks_tail = false;
    cell_state_free(n->state);
    n->state = cell_state_new();
    n->index = 0;
    memset(n->chain, 0, sizeof n->chain);
    n->loaded = false;
    if (n->config.on_change)
        n->config.on_change(n->config.context, n->role);
}

/* ---- following ---- */

static bool may_claim(const struct node *n, int64_t now_us)
{
    return !n->retires && n->answers && n->index == n->head.last && now_us >= n->no_claim_us;
}

/* Should this node claim the journal, after a read that was sent at sent_us and found no change? */
static bool wants_claim(const struct node *n, int64_t now_us)
{
    if (!may_claim(n, now_us))
        return false;
    if (!n->config.shared || n->head.epoch == 0)
        return true;
    if (cell_state_is_resigned(n->state) && cell_state_epoch(n->state) == n->head.epoch)
        return true;
    return n->sent_us - n->changed_us > n->config.timeout_ms * 1000;
}

static void begin_claim(struct node *n)
{
    n->mandate.epoch = n->head.epoch + 1;
    random_bytes(n->config.random, n->mandate.claim, sizeof n->mandate.claim);
    n->in_doubt = false;
    node_change_role(n, NODE_CLAIMING);
}

/* Returns false if the entries do not continue what this node has. */
static bool apply_page(struct node *n)
{
    const struct journal_page *page = &n->call.page;
    for (size_t i = 0; i < page->entries.n; i++) {
        const struct journal_entry *e = &page->entries.v[i];
        struct hf_err err = {0};
        if (e->index != n->index + 1 ||
            !node_apply(n, page->bytes.data + e->at, e->len, NULL, 0, &err)) {
            log_write(LOG_ERROR, "the journal of the locks is read anew", "index",
                      LOG_INT(e->index), "why", err.code ? err.msg : "an entry is missing", NULL);
            return false;
        }
    }
    return true;
}

/* Everything is read, and the last entry once more: is it the one that this node has applied?  A
 * journal that was restored from a backup may have another one there, which the chain would show
 * only with the next entry. */
static void done_tail(struct node *n, int64_t now_us)
{
    const struct journal_page *page = &n->call.page;
    struct entry_reader reader = {0};
    struct entry_head head;
    struct hf_err err;
    uint8_t chain[CELL_DIGEST_SIZE];
    n->checks_tail = false;
    bool is_same = page->entries.n == 1 && page->entries.v[0].index == n->index;
    if (is_same) {
        const char *data = page->bytes.data + page->entries.v[0].at;
        size_t len = page->entries.v[0].len;
        is_same = entry_open(&reader, data, len, &head, &err);
        entry_close(&reader);
        if (is_same)
            entry_chain(head.previous, data, len, chain);
        is_same = is_same && memcmp(chain, n->chain, sizeof chain) == 0;
    }
    if (is_same) {
        lead_prepare_first(n);
        return;
    }
    log_write(LOG_ERROR, "the journal of the locks is read anew", "index", LOG_INT(n->index), "why",
              "its last entry is another one", NULL);
    reload(n);
    n->retry_us = now_us + RETRY_MAX_US;
}

void follow_done_read(struct node *n, int64_t now_us)
{
    struct journal_call *c = &n->call;
    if (n->checks_tail && !journal_is_failure(c->result)) {
        done_tail(n, now_us);
        return;
    }
    bool changed = c->page.entries.n > 0 || c->page.head.epoch != n->head.epoch ||
                   memcmp(c->page.head.claim, n->head.claim, JOURNAL_CLAIM_SIZE) != 0;
    bool at_end = c->page.entries.n == 0;
    if (journal_is_failure(c->result)) {
        n->changed_us = now_us;
        return;
    }
    bool went_back = c->page.head.epoch < n->head.epoch;
    n->head = c->page.head;
    n->read_us = at_end ? now_us + POLL_US : now_us;
    /* A journal that is shorter than what this node has read was restored from a backup. */
    if (c->result == JOURNAL_TRIMMED || (at_end && n->head.last < n->index) || went_back ||
        !apply_page(n)) {
        reload(n);
        n->retry_us = now_us + (c->result == JOURNAL_TRIMMED ? 0 : RETRY_MAX_US);
        n->read_us = now_us;
        n->changed_us = now_us;
        return;
    }
    if (n->index > n->head.last)
        n->head.last = n->index; /* the head may be older than the entries */
    if (changed)
        n->changed_us = now_us;
    if (n->role == NODE_CATCHING_UP) {
        n->read_us = now_us;
        if (n->head.epoch > n->mandate.epoch)
            node_step_down(n, CELL_NO_MASTER);
        else if (at_end && n->index > 0)
            n->checks_tail = true;
        else if (at_end)
            lead_prepare_first(n);
    } else if (at_end && wants_claim(n, now_us)) {
        begin_claim(n);
    }
}

void follow_done_claim(struct node *n, int64_t now_us)
{
    switch (n->call.result) {
    case JOURNAL_DONE:
    case JOURNAL_FOUND:
        n->in_doubt = false;
        n->read_us = now_us;
        node_change_role(n, NODE_CATCHING_UP);
        break;
    case JOURNAL_DEPOSED:
        node_step_down(n, CELL_NO_MASTER);
        break;
    case JOURNAL_UNKNOWN:
        n->in_doubt = true;
        break; /* the same claim again: it is stored, or found */
    default: {
        if (n->in_doubt)
            break; /* an attempt before this one may have been stored */
        /* Nothing was done.  The silence goes on unless the next read finds a change. */
        int64_t changed_us = n->changed_us;
        node_step_down(n, CELL_NO_MASTER);
        n->changed_us = changed_us;
    }
    }
}

/* A snapshot is the digest of the chain, and then the state. */
static bool restore(struct node *n, struct hf_err *err)
{
    const struct buf *b = &n->call.snapshot;
    struct cell_state *state = NULL;
    if (b->len <= CELL_DIGEST_SIZE)
        (void)hf_err_set(err, HF_INTERNAL, "the snapshot is too short");
    else
        state = cell_state_restore(b->data + CELL_DIGEST_SIZE, b->len - CELL_DIGEST_SIZE, err);
    if (!state)
        return false;
    cell_state_free(n->state);
    n->state = state;
    memcpy(n->chain, b->data, CELL_DIGEST_SIZE);
    n->index = n->call.snapshot_index;
    return true;
}

void follow_done_load(struct node *n, int64_t now_us)
{
    struct hf_err err = {0};
    n->changed_us = now_us;
    if (journal_is_failure(n->call.result))
        return;
    n->read_us = now_us;
    if (n->call.result == JOURNAL_NONE || restore(n, &err)) {
        n->loaded = true;
        return;
    }
    log_write(LOG_ERROR, "a snapshot of the locks cannot be read", "why", err.msg, NULL);
    n->retry_us = now_us + RETRY_MAX_US;
}
