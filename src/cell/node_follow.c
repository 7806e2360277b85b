/* A node as a standby: it reads the journal, loads snapshots, counts the master's silence on its
 * own clock from the last change that it read, claims, and catches up.  Owner: the thread that runs
 * the node. */
#include <string.h>

#include "base/log.h"
#include "cell/node_internal.h"

/* What this node knows is not what the journal says: it begins anew. */
static void reload(struct node *n)
{
    n->follow.checks_tail = false;
    cell_state_free(n->replica.state);
    n->replica.state = cell_state_new();
    n->replica.index = 0;
    memset(n->replica.chain, 0, sizeof n->replica.chain);
    n->replica.is_loaded = false;
    if (n->config.on_change)
        n->config.on_change(n->config.context, n->role);
}

/* ---- following ---- */

static bool may_claim(const struct node *n, int64_t now_us)
{
    return !n->retires && n->journal.answers && n->replica.index == n->journal.head.last &&
           now_us >= n->follow.no_claim_us;
}

/* Should this node claim the journal, after a read that was sent at sent_us and found no change? */
static bool wants_claim(const struct node *n, int64_t now_us)
{
    if (!may_claim(n, now_us))
        return false;
    if (!n->config.shared || n->journal.head.epoch == 0)
        return true;
    if (cell_state_is_resigned(n->replica.state) &&
        cell_state_epoch(n->replica.state) == n->journal.head.epoch)
        return true;
    return n->journal.sent_us - n->follow.changed_us > n->config.timeout_ms * 1000;
}

static void begin_claim(struct node *n)
{
    n->mandate.epoch = n->journal.head.epoch + 1;
    random_bytes(n->config.random, n->mandate.claim, sizeof n->mandate.claim);
    n->follow.claim_in_doubt = false;
    node_change_role(n, NODE_CLAIMING);
}

/* Returns false if the entries do not continue what this node has. */
static bool apply_page(struct node *n)
{
    const struct journal_page *page = &n->journal.call.page;
    for (size_t i = 0; i < page->entries.n; i++) {
        const struct journal_entry *e = &page->entries.v[i];
        struct hf_err err = {0};
        if (e->index != n->replica.index + 1 ||
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
    const struct journal_page *page = &n->journal.call.page;
    struct entry_reader reader = {0};
    struct entry_head head;
    struct hf_err err;
    uint8_t chain[CELL_DIGEST_SIZE];
    n->follow.checks_tail = false;
    bool is_same = page->entries.n == 1 && page->entries.v[0].index == n->replica.index;
    if (is_same) {
        const char *data = page->bytes.data + page->entries.v[0].at;
        size_t len = page->entries.v[0].len;
        is_same = entry_open(&reader, data, len, &head, &err);
        entry_close(&reader);
        if (is_same)
            entry_chain(head.previous, data, len, chain);
        is_same = is_same && memcmp(chain, n->replica.chain, sizeof chain) == 0;
    }
    if (is_same) {
        lead_prepare_first(n);
        return;
    }
    log_write(LOG_ERROR, "the journal of the locks is read anew", "index",
              LOG_INT(n->replica.index), "why", "its last entry is another one", NULL);
    reload(n);
    n->journal.retry_us = now_us + RETRY_MAX_US;
}

void follow_done_read(struct node *n, int64_t now_us)
{
    struct journal_call *c = &n->journal.call;
    if (n->follow.checks_tail && !journal_is_failure(c->result)) {
        done_tail(n, now_us);
        return;
    }
    bool changed = c->page.entries.n > 0 || c->page.head.epoch != n->journal.head.epoch ||
                   memcmp(c->page.head.claim, n->journal.head.claim, JOURNAL_CLAIM_SIZE) != 0;
    bool at_end = c->page.entries.n == 0;
    if (journal_is_failure(c->result)) {
        n->follow.changed_us = now_us;
        return;
    }
    bool went_back = c->page.head.epoch < n->journal.head.epoch;
    n->journal.head = c->page.head;
    n->follow.read_us = at_end ? now_us + POLL_US : now_us;
    /* A journal that is shorter than what this node has read was restored from a backup. */
    if (c->result == JOURNAL_TRIMMED || (at_end && n->journal.head.last < n->replica.index) ||
        went_back || !apply_page(n)) {
        reload(n);
        n->journal.retry_us = now_us + (c->result == JOURNAL_TRIMMED ? 0 : RETRY_MAX_US);
        n->follow.read_us = now_us;
        n->follow.changed_us = now_us;
        return;
    }
    if (n->replica.index > n->journal.head.last)
        n->journal.head.last = n->replica.index; /* the head may be older than the entries */
    if (changed)
        n->follow.changed_us = now_us;
    if (n->role == NODE_CATCHING_UP) {
        n->follow.read_us = now_us;
        if (n->journal.head.epoch > n->mandate.epoch)
            node_step_down(n, CELL_NO_MASTER);
        else if (at_end && n->replica.index > 0)
            n->follow.checks_tail = true;
        else if (at_end)
            lead_prepare_first(n);
    } else if (at_end && wants_claim(n, now_us)) {
        begin_claim(n);
    }
}

void follow_done_claim(struct node *n, int64_t now_us)
{
    switch (n->journal.call.result) {
    case JOURNAL_DONE:
    case JOURNAL_FOUND:
        n->follow.claim_in_doubt = false;
        n->follow.read_us = now_us;
        node_change_role(n, NODE_CATCHING_UP);
        break;
    case JOURNAL_DEPOSED:
        node_step_down(n, CELL_NO_MASTER);
        break;
    case JOURNAL_UNKNOWN:
        n->follow.claim_in_doubt = true;
        break; /* the same claim again: it is stored, or found */
    default: {
        if (n->follow.claim_in_doubt)
            break; /* an attempt before this one may have been stored */
        /* Nothing was done.  The silence goes on unless the next read finds a change. */
        int64_t changed_us = n->follow.changed_us;
        node_step_down(n, CELL_NO_MASTER);
        n->follow.changed_us = changed_us;
    }
    }
}

/* A snapshot is the digest of the chain, and then the state. */
static bool restore(struct node *n, struct hf_err *err)
{
    const struct buf *b = &n->journal.call.snapshot;
    struct cell_state *state = NULL;
    if (b->len <= CELL_DIGEST_SIZE)
        (void)hf_err_set(err, HF_INTERNAL, "the snapshot is too short");
    else
        state = cell_state_restore(b->data + CELL_DIGEST_SIZE, b->len - CELL_DIGEST_SIZE, err);
    if (!state)
        return false;
    cell_state_free(n->replica.state);
    n->replica.state = state;
    memcpy(n->replica.chain, b->data, CELL_DIGEST_SIZE);
    n->replica.index = n->journal.call.snapshot_index;
    return true;
}

void follow_done_load(struct node *n, int64_t now_us)
{
    struct hf_err err = {0};
    n->follow.changed_us = now_us;
    if (journal_is_failure(n->journal.call.result))
        return;
    n->follow.read_us = now_us;
    if (n->journal.call.result == JOURNAL_NONE || restore(n, &err)) {
        n->replica.is_loaded = true;
        return;
    }
    log_write(LOG_ERROR, "a snapshot of the locks cannot be read", "why", err.msg, NULL);
    n->journal.retry_us = now_us + RETRY_MAX_US;
}
