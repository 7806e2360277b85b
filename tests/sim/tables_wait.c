/* The waiting lists of the simulated ledger; see tables.h.  The reads of ledger/ledger.h about them
 * are in ledger_wait.c. */
#include <stdlib.h>
#include <string.h>

#include "sim/tables.h"

static int wait_order(const void *key, const void *wait)
{
    int64_t a = *(const int64_t *)key, b = ((const struct wait_row *)wait)->id.key;
    return (a > b) - (a < b);
}

struct wait_row *sim_wait(const struct sim_ledger *sim, int64_t entry)
{
    const struct sim_event *e = sim_event(sim, HOLD_EVENT(entry));
    if (!e || !e->waits.n)
        return NULL;
    return bsearch(&entry, e->waits.v, e->waits.n, sizeof *e->waits.v, wait_order);
}

struct wait_row sim_wait_copy(const struct wait_row *row)
{
    struct wait_row copy = *row;
    char *block = copy.owned = hf_alloc(row->owner_len + row->metadata_len + 2);
    if (row->owner)
        copy.owner = memcpy(block, row->owner, row->owner_len);
    block += row->owner_len + 1;
    if (row->metadata)
        copy.metadata = memcpy(block, row->metadata, row->metadata_len);
    return copy;
}

struct wait_row sim_wait_read(const struct sim_ledger *sim, const struct wait_row *row)
{
    struct wait_row copy = sim_wait_copy(row);
    const struct sim_hold *hold = row->hold ? sim_hold(sim, row->hold) : NULL;
    if (hold)
        copy.offer = (struct wait_offer){hold->row.id, hold->row.expires_at};
    return copy;
}

/* ---- conditions ---- */

/* New entries have the newest fences of their events, and the next numbers. */
bool sim_new_waits_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->waits_new.n; i++) {
        const struct wait_row *row = &b->waits_new.v[i];
        const struct sim_event *e = sim_event(l->sim, row->event);
        hf_check(e && e->locked_by == l);
        int64_t number = (int64_t)e->waits.n;
        if (e->waits.n && e->waits.v[e->waits.n - 1].id.key >= row->id.key)
            return false;
        for (size_t k = 0; k < i; k++)
            number += b->waits_new.v[k].event == row->event;
        hf_check(row->number == number + 1);
        hf_check(i == 0 || b->waits_new.v[i - 1].id.key < row->id.key);
    }
    return true;
}

static const struct wait_row *find_wait(const struct ledger *l, const struct ledger_batch *b,
                                        int64_t key)
{
    for (size_t i = 0; i < b->waits_new.n; i++)
        if (b->waits_new.v[i].id.key == key)
            return &b->waits_new.v[i];
    return sim_wait(l->sim, key);
}

bool sim_waits_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->waits.n; i++) {
        const struct wait_write *w = &b->waits.v[i];
        const struct wait_row *row = find_wait(l, b, w->entry);
        hf_check(sim_event(l->sim, HOLD_EVENT(w->entry))->locked_by == l);
        hf_check(i == 0 || b->waits.v[i - 1].entry < w->entry);
        if (!row || row->status != w->from || row->rank != w->rank_before ||
            row->last_seq != w->seq_before)
            return false;
    }
    for (size_t i = 0; i < b->holds_new.n; i++)
        if (b->holds_new.v[i].wait && !find_wait(l, b, b->holds_new.v[i].wait))
            return false;
    return true;
}

/* ---- staging and storing ---- */

void sim_waits_stage(struct ledger_batch *staged, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->waits_new.n; i++)
        *vec_push(&staged->waits_new) = sim_wait_copy(&b->waits_new.v[i]);
    for (size_t i = 0; i < b->waits.n; i++)
        *vec_push(&staged->waits) = b->waits.v[i];
}

/* The new holds of the batch are stored already: those that are offered get owner and metadata. */
static void name_offers(struct ledger *l)
{
    for (size_t i = 0; i < l->staged.holds_new.n; i++) {
        const struct hold_row *new = &l->staged.holds_new.v[i];
        const struct wait_row *wait = new->wait ? sim_wait(l->sim, new->wait) : NULL;
        struct sim_hold *hold = sim_hold(l->sim, new->id.key);
        if (!wait)
            continue;
        struct hold_row named = hold->row;
        named.owner = wait->owner;
        named.owner_len = wait->owner_len;
        named.metadata = wait->metadata;
        named.metadata_len = wait->metadata_len;
        named.wait = 0; /* no column of the table */
        named.owner_number = 0;
        struct hold_row before = hold->row;
        hold->row = sim_hold_copy(&named);
        hold_row_close(&before);
    }
}

void sim_waits_apply(struct ledger *l)
{
    struct ledger_batch *b = &l->staged;
    for (size_t i = 0; i < b->waits_new.n; i++) {
        struct wait_row *row = &b->waits_new.v[i];
        *vec_push(&sim_event(l->sim, row->event)->waits) = *row;
        row->owned = NULL; /* it is the table's now */
    }
    name_offers(l);
    for (size_t i = 0; i < b->waits.n; i++) {
        const struct wait_write *w = &b->waits.v[i];
        struct wait_row *row = sim_wait(l->sim, w->entry);
        row->status = w->to;
        row->rank = w->rank;
        row->read_at = w->read_at;
        row->hold = w->hold;
        row->last_seq = w->last_seq;
        row->ended_at = w->ended_at;
        row->reason = w->reason;
    }
}

void sim_waits_discard(struct ledger *l)
{
    for (size_t i = 0; i < l->staged.waits_new.n; i++)
        wait_row_close(&l->staged.waits_new.v[i]);
    vec_clear(&l->staged.waits_new);
    vec_clear(&l->staged.waits);
}

void sim_waits_free(struct ledger *l)
{
    vec_close(&l->staged.waits_new);
    vec_close(&l->staged.waits);
}
