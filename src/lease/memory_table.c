/* Entries by key, and in each the holders and the queue: see memory_table.h.  Under the table's
 * mutex.  A walk costs as much as there are holders and waiters of the key. */
#include "lease/memory_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- claims ---- */

void claim_rouse(struct claim *c)
{
    for (struct sleeper *s = c->sleepers; s; s = s->next)
        pthread_cond_signal(&s->cond);
}

void claim_free(struct table *t, struct claim *c)
{
    claim_rouse(c);
    for (struct sleeper *s = c->sleepers; s; s = s->next)
        s->claim = NULL;
    t->n_claims--;
    free(c);
}

struct claim **claim_find(struct claim **list, const uint8_t owner[LEASE_OWNER_SIZE])
{
    for (; *list; list = &(*list)->next)
        if (memcmp((*list)->owner, owner, LEASE_OWNER_SIZE) == 0)
            return list;
    return NULL;
}

struct claim *claim_unlink(struct claim **at)
{
    struct claim *c = *at;
    hf_check(c);
    *at = c->next;
    c->next = NULL;
    return c;
}

static size_t *holders_of_mode(struct entry *e, enum hf_mode mode)
{
    return mode == HF_SHARED ? &e->n_shared : &e->n_exclusive;
}

void entry_end_holder(struct table *t, struct entry *e, struct claim **at)
{
    struct claim *c = claim_unlink(at);
    --*holders_of_mode(e, c->mode);
    claim_free(t, c);
}

struct ahead entry_ahead_of(const struct entry *e, const struct claim *upto, int priority)
{
    struct ahead ahead = {0};
    for (const struct claim *w = e->waiters; w && w != upto; w = w->next) {
        if (!upto && w->priority < priority)
            break;
        ++*(w->mode == HF_SHARED ? &ahead.shared : &ahead.exclusive);
    }
    return ahead;
}

bool entry_is_free_for(const struct entry *e, enum hf_mode mode, const struct ahead *ahead)
{
    if (mode == HF_SHARED)
        return e->n_exclusive == 0 && ahead->exclusive == 0;
    return e->n_shared == 0 && ahead->shared == 0 && e->n_exclusive + ahead->exclusive < e->slots;
}

int64_t entry_first_end_us(const struct entry *e)
{
    int64_t first = INT64_MAX;
    for (const struct claim *h = e->holders; h; h = h->next)
        first = h->until_us < first ? h->until_us : first;
    return first;
}

struct claim *entry_watch(const struct entry *e, int64_t *ret_us)
{
    int64_t until_us = entry_first_end_us(e);
    struct claim *w = e->waiters;
    for (; w && !w->sleepers; w = w->next)
        until_us = w->until_us < until_us ? w->until_us : until_us;
    *ret_us = until_us;
    return w;
}

void entry_rouse(struct entry *e)
{
    struct ahead ahead = {0};
    for (struct claim *w = e->waiters; w && entry_is_free_for(e, w->mode, &ahead); w = w->next) {
        claim_rouse(w);
        ++*(w->mode == HF_SHARED ? &ahead.shared : &ahead.exclusive);
    }
    int64_t until_us;
    struct claim *watch = entry_watch(e, &until_us);
    if (watch && watch->sleepers->alarm_us > until_us)
        claim_rouse(watch);
}

void entry_grant(struct table *t, struct entry *e, struct claim *c, int64_t until_us)
{
    c->fence = e->last_fence = ++t->fence;
    c->until_us = until_us;
    c->next = e->holders;
    e->holders = c;
    ++*holders_of_mode(e, c->mode);
    claim_rouse(c); /* another thread may sleep for the same owner */
}

void entry_enqueue(struct entry *e, struct claim *c)
{
    struct claim **at = &e->waiters;
    while (*at && (*at)->priority >= c->priority)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

void entry_tidy(struct table *t, struct entry *e, int64_t now_us)
{
    bool changed = false;
    for (struct claim **at = &e->holders; *at;) {
        if ((*at)->until_us > now_us) {
            at = &(*at)->next;
            continue;
        }
        entry_end_holder(t, e, at);
        changed = true;
    }
    for (struct claim **at = &e->waiters; *at;) {
        if ((*at)->sleepers || (*at)->until_us > now_us) {
            at = &(*at)->next;
            continue;
        }
        claim_free(t, claim_unlink(at));
        changed = true;
    }
    if (changed)
        entry_rouse(e);
}

bool entry_is_empty(const struct entry *e) { return !e->holders && !e->waiters; }

/* ---- the table ---- */

static uint64_t hash_of(const char *key, size_t len)
{
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)key[i]) * 1099511628211U;
    return hash ^ hash >> 32;
}

static struct entry **entry_at(struct table *t, uint64_t hash, const char *key, size_t len)
{
    struct entry **at = &t->buckets[hash & (t->n_buckets - 1)];
    while (*at &&
           !((*at)->hash == hash && (*at)->key_len == len && memcmp((*at)->key, key, len) == 0))
        at = &(*at)->next;
    return at;
}

struct entry *table_find(struct table *t, const char *key, size_t len, int64_t now_us)
{
    struct entry *e = *entry_at(t, hash_of(key, len), key, len);
    if (e)
        entry_tidy(t, e, now_us);
    return e;
}

static void entry_drop(struct table *t, struct entry **at)
{
    struct entry *e = *at;
    hf_check(e);
    *at = e->next;
    t->n_entries--;
    free(e);
}

void table_drop_if_empty(struct table *t, struct entry *e)
{
    if (e && entry_is_empty(e))
        entry_drop(t, entry_at(t, e->hash, e->key, e->key_len));
}

static void table_sweep(struct table *t, int64_t now_us)
{
    for (int i = 0; i < 2; i++) {
        struct entry **at = &t->buckets[t->swept++ & (t->n_buckets - 1)];
        while (*at) {
            entry_tidy(t, *at, now_us);
            if (entry_is_empty(*at))
                entry_drop(t, at);
            else
                at = &(*at)->next;
        }
    }
}

static void table_grow(struct table *t)
{
    size_t n = 2 * t->n_buckets;
    struct entry **buckets = hf_alloc(n * sizeof(struct entry *));
    for (size_t i = 0; i < t->n_buckets; i++) {
        for (struct entry *e = t->buckets[i], *next; e; e = next) {
            next = e->next;
            e->next = buckets[e->hash & (n - 1)];
            buckets[e->hash & (n - 1)] = e;
        }
    }
    free(t->buckets);
    t->buckets = buckets;
    t->n_buckets = n;
}

struct entry *table_get(struct table *t, const char *key, size_t len, int64_t now_us)
{
    struct entry *e = table_find(t, key, len, now_us);
    if (e)
        return e;
    table_sweep(t, now_us);
    if (t->n_entries >= t->n_buckets)
        table_grow(t);
    e = hf_alloc(sizeof *e + len + 1);
    memcpy(e->key, key, len);
    e->key_len = len;
    e->hash = hash_of(key, len);
    struct entry **bucket = &t->buckets[e->hash & (t->n_buckets - 1)];
    e->next = *bucket;
    *bucket = e;
    t->n_entries++;
    return e;
}

static void claims_free(struct table *t, struct claim **list)
{
    while (*list)
        claim_free(t, claim_unlink(list));
}

void table_free(struct table *t)
{
    for (size_t i = 0; i < t->n_buckets; i++) {
        while (t->buckets[i]) {
            claims_free(t, &t->buckets[i]->holders);
            claims_free(t, &t->buckets[i]->waiters);
            entry_drop(t, &t->buckets[i]);
        }
    }
    free(t->buckets);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

struct table *table_new(const struct clock *clock)
{
    struct table *t = hf_alloc(sizeof *t);
    hf_check(pthread_mutex_init(&t->lock, NULL) == 0);
    t->clock = clock;
    t->n_buckets = 16;
    t->buckets = hf_alloc(t->n_buckets * sizeof(struct entry *));
    return t;
}
