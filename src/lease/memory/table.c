/* See table.h.  Everything runs under the table's mutex.  A walk over an entry costs as much as the
 * key has holders and waiters. */
#include "lease/memory/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SPARE_CLAIMS_MAX 256
#define KEPT_ENTRIES_MAX 1024
#define CLAIM_US (INT64_C(1000) * WAITER_CLAIM_MS)

/* ---- claims ---- */

struct claim *claim_new(struct lease_table *t, const struct lease_request *r)
{
    struct claim *c = t->spare;
    if (c) {
        t->spare = c->next;
        t->n_spare--;
    } else {
        c = hf_alloc(sizeof *c);
    }
    t->n_claims++;
    c->next = NULL;
    c->sleepers = NULL;
    c->fence = c->until_us = c->since_us = 0;
    c->slot = 0;
    c->passed_over = false;
    memcpy(c->owner, r->owner, LEASE_OWNER_SIZE);
    c->mode = r->mode;
    c->priority = r->priority;
    size_t len = r->label ? r->label_len : 0;
    if (len)
        memcpy(c->label, r->label, len);
    c->label[len] = '\0';
    return c;
}

static void claim_wake(struct claim *c)
{
    for (struct claim_sleeper *s = c->sleepers; s; s = s->next)
        sleeper_wake(&s->sleeper);
}

static void claim_free(struct lease_table *t, struct claim *c)
{
    claim_wake(c);
    for (struct claim_sleeper *s = c->sleepers; s; s = s->next)
        s->claim = NULL;
    t->n_claims--;
    if (t->n_spare >= SPARE_CLAIMS_MAX) {
        free(c);
        return;
    }
    c->next = t->spare;
    t->spare = c;
    t->n_spare++;
}

struct claim **claim_find(struct claim **list, const uint8_t owner[LEASE_OWNER_SIZE])
{
    for (; *list; list = &(*list)->next)
        if (memcmp((*list)->owner, owner, LEASE_OWNER_SIZE) == 0)
            return list;
    return NULL;
}

static struct claim *claim_unlink(struct claim **at)
{
    struct claim *c = *at;
    hf_check(c);
    *at = c->next;
    c->next = NULL;
    return c;
}

/* ---- an entry ---- */

static size_t *holders_of_mode(struct memory_entry *e, enum hf_mode mode)
{
    return mode == HF_SHARED ? &e->n_shared : &e->n_exclusive;
}

static size_t *waiters_of_mode(struct waiter_count *count, enum hf_mode mode)
{
    return mode == HF_SHARED ? &count->shared : &count->exclusive;
}

void entry_end_holder(struct lease_table *t, struct memory_entry *e, struct claim **at)
{
    struct claim *c = claim_unlink(at);
    --*holders_of_mode(e, c->mode);
    claim_free(t, c);
}

/* If the last waiter leaves, finding the one before it costs a walk over the queue. */
struct claim *entry_dequeue(struct memory_entry *e, struct claim **at)
{
    struct claim *c = claim_unlink(at);
    entry_note_alive(e, c);
    --*waiters_of_mode(&e->waiting, c->mode);
    if (e->last_waiter == c) {
        e->last_waiter = e->waiters;
        while (e->last_waiter && e->last_waiter->next)
            e->last_waiter = e->last_waiter->next;
    }
    return c;
}

void entry_note_alive(struct memory_entry *e, struct claim *c)
{
    if (c->passed_over)
        ++*waiters_of_mode(&e->waiting, c->mode);
    c->passed_over = false;
}

static void pass_over(struct memory_entry *e, struct claim *c)
{
    c->passed_over = true;
    c->since_us = 0;
    --*waiters_of_mode(&e->waiting, c->mode);
}

void entry_end_waiter(struct lease_table *t, struct memory_entry *e, struct claim **at)
{
    claim_free(t, entry_dequeue(e, at));
}

void entry_set_until(struct memory_entry *e, struct claim *c, int64_t until_us)
{
    c->until_us = until_us;
    e->due_us = until_us < e->due_us ? until_us : e->due_us;
}

struct waiter_count entry_ahead_of(const struct memory_entry *e, const struct claim *upto,
                                   int priority)
{
    if (!upto && (!e->last_waiter || e->last_waiter->priority >= priority))
        return e->waiting;
    struct waiter_count ahead = {0};
    for (const struct claim *w = e->waiters; w && w != upto; w = w->next) {
        if (!upto && w->priority < priority)
            break;
        if (w->passed_over)
            continue;
        ++*waiters_of_mode(&ahead, w->mode);
    }
    return ahead;
}

bool entry_is_free_for(const struct memory_entry *e, enum hf_mode mode,
                       const struct waiter_count *ahead)
{
    if (mode == HF_SHARED)
        return e->n_exclusive == 0 && ahead->exclusive == 0;
    return e->n_shared == 0 && ahead->shared == 0 && e->n_exclusive + ahead->exclusive < e->slots;
}

int64_t entry_first_end_us(const struct memory_entry *e)
{
    int64_t first = INT64_MAX;
    for (const struct claim *h = e->holders; h; h = h->next)
        first = h->until_us < first ? h->until_us : first;
    return first;
}

struct claim *entry_watcher(const struct memory_entry *e, int64_t *ret_alarm_us)
{
    int64_t until_us = entry_first_end_us(e);
    struct claim *w = e->waiters;
    for (; w && (!w->sleepers || w->passed_over); w = w->next) {
        if (w->passed_over)
            continue;
        until_us = w->until_us < until_us ? w->until_us : until_us;
        if (w->since_us && w->since_us + CLAIM_US < until_us)
            until_us = w->since_us + CLAIM_US;
    }
    *ret_alarm_us = until_us;
    return w;
}

/* Only waiters near the head can have been called, so the walk ends soon. */
static void call_waiters(struct memory_entry *e, int64_t now_us)
{
    struct waiter_count ahead = {0};
    bool free = true;
    for (struct claim *w = e->waiters; w && (free || w->passed_over || w->since_us); w = w->next) {
        if (w->passed_over)
            continue;
        free = free && entry_is_free_for(e, w->mode, &ahead);
        ++*waiters_of_mode(&ahead, w->mode);
        if (!free) {
            w->since_us = 0;
            continue;
        }
        claim_wake(w);
        if (!w->since_us)
            w->since_us = now_us ? now_us : 1;
        if (w->since_us + CLAIM_US < e->due_us)
            e->due_us = w->since_us + CLAIM_US;
    }
}

void entry_wake(struct memory_entry *e, int64_t now_us)
{
    if (!e->waiters)
        return;
    call_waiters(e, now_us);
    int64_t until_us;
    struct claim *watcher = entry_watcher(e, &until_us);
    if (watcher && watcher->sleepers->alarm_us > until_us)
        claim_wake(watcher);
}

void entry_grant(struct lease_table *t, struct memory_entry *e, struct claim *c, int64_t ttl_us,
                 int64_t now_us)
{
    struct claim **at = &e->holders;
    c->slot = 0;
    while (c->mode == HF_EXCLUSIVE && *at && (*at)->slot == c->slot) {
        at = &(*at)->next;
        c->slot++;
    }
    c->next = *at;
    *at = c;
    c->fence = e->last_fence = ++t->fence;
    c->since_us = now_us;
    entry_set_until(e, c, now_us + ttl_us);
    ++*holders_of_mode(e, c->mode);
    claim_wake(c); /* a second thread may sleep for the same owner */
}

void entry_enqueue(struct memory_entry *e, struct claim *c)
{
    struct claim **at = &e->waiters;
    if (e->last_waiter && e->last_waiter->priority >= c->priority)
        at = &e->last_waiter->next;
    while (*at && (*at)->priority >= c->priority)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
    if (!c->next)
        e->last_waiter = c;
    ++*waiters_of_mode(&e->waiting, c->mode);
}

void entry_tidy(struct lease_table *t, struct memory_entry *e, int64_t now_us)
{
    if (now_us < e->due_us)
        return;
    bool changed = false;
    e->due_us = INT64_MAX;
    for (struct claim **at = &e->holders; *at;) {
        if ((*at)->until_us > now_us) {
            entry_set_until(e, *at, (*at)->until_us);
            at = &(*at)->next;
            continue;
        }
        entry_end_holder(t, e, at);
        changed = true;
    }
    for (struct claim **at = &e->waiters; *at;) {
        if ((*at)->sleepers || (*at)->until_us > now_us) {
            if (!(*at)->sleepers)
                entry_set_until(e, *at, (*at)->until_us);
            if ((*at)->since_us && now_us - (*at)->since_us >= CLAIM_US) {
                pass_over(e, *at);
                changed = true;
            } else if ((*at)->since_us && (*at)->since_us + CLAIM_US < e->due_us) {
                e->due_us = (*at)->since_us + CLAIM_US;
            }
            at = &(*at)->next;
            continue;
        }
        entry_end_waiter(t, e, at);
        changed = true;
    }
    if (changed)
        entry_wake(e, now_us);
}

bool entry_is_empty(const struct memory_entry *e) { return !e->holders && !e->waiters; }

/* ---- the table ---- */

static struct memory_entry *find_hashed(struct lease_table *t, uint64_t hash, const char *key,
                                        size_t len, int64_t now_us)
{
    struct memory_entry *e = (struct memory_entry *)table_chain(&t->entries, hash);
    while (e && !(e->node.hash == hash && e->key_len == len && memcmp(e->key, key, len) == 0))
        e = (struct memory_entry *)e->node.next;
    if (e)
        entry_tidy(t, e, now_us);
    return e;
}

struct memory_entry *entry_find(struct lease_table *t, const char *key, size_t len, int64_t now_us)
{
    return find_hashed(t, hash_keyed(key, len), key, len, now_us);
}

static void entry_drop(struct lease_table *t, struct memory_entry *e)
{
    table_remove(&t->entries, &e->node);
    free(e);
}

void entry_drop_if_empty(struct lease_table *t, struct memory_entry *e)
{
    if (e && t->entries.n > KEPT_ENTRIES_MAX && entry_is_empty(e))
        entry_drop(t, e);
}

static void sweep(struct lease_table *t, int64_t now_us)
{
    for (int i = 0; i < 2; i++)
        for (struct table_node *x = table_chain(&t->entries, t->swept++), *next; x; x = next) {
            struct memory_entry *e = (struct memory_entry *)x;
            next = x->next;
            entry_tidy(t, e, now_us);
            if (entry_is_empty(e))
                entry_drop(t, e);
        }
}

struct memory_entry *entry_get(struct lease_table *t, const char *key, size_t len, int64_t now_us)
{
    uint64_t hash = hash_keyed(key, len);
    struct memory_entry *e = find_hashed(t, hash, key, len, now_us);
    if (e)
        return e;
    sweep(t, now_us);
    e = hf_alloc(sizeof *e + len + 1);
    memcpy(e->key, key, len);
    e->key_len = len;
    e->due_us = INT64_MAX;
    table_add(&t->entries, &e->node, hash);
    return e;
}

void lease_table_free(struct lease_table *t)
{
    for (struct table_node *x = table_first(&t->entries), *next; x; x = next) {
        struct memory_entry *e = (struct memory_entry *)x;
        next = table_after(&t->entries, x);
        while (e->holders)
            entry_end_holder(t, e, &e->holders);
        while (e->waiters)
            entry_end_waiter(t, e, &e->waiters);
        free(e);
    }
    for (struct claim *c; (c = t->spare);) {
        t->spare = c->next;
        free(c);
    }
    table_close(&t->entries);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct lease_table *lease_table_new(const struct clock *clock)
{
    struct lease_table *t = hf_alloc(sizeof *t);
    hf_check(pthread_mutex_init(&t->lock, NULL) == 0);
    t->clock = clock;
    return t;
}
