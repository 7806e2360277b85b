/* See quota.h.  Any thread.  A prefix (an IPv4 address, a /64 or a /48) is found by a hash in one
 * of QUOTA_SHARDS tables, each with a lock.  A table's prefixes are also in a heap by how long they
 * are worth remembering, so that the least of them is found at once: one that has anything that
 * lasts is worth more than any that has not.  The tables have their full size from the start, so
 * that memory is bounded and no request waits for one to grow; base/table.h grows.
 *
 * A bucket is the moment at which it is full again, so that an idle one needs no work. */
#include "http/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/lock.h"
#include "base/status.h"

#define QUOTA_SHARDS 16
#define PREFIXES_MAX 2 /* that an address counts as */
#define NS_PER_US INT64_C(1000)
#define NS_PER_MINUTE INT64_C(60000000000)
#define WORTH_LASTING (INT64_MAX / 2) /* more than any moment */

/* What is counted: the first 4, 8 or 6 bytes of an address. */
struct prefix {
    uint64_t bytes;
    uint64_t len; /* 4, 8 or 6 */
};

struct quota_entry {
    struct heap_node worth; /* first in its heap: forgotten first */
    struct prefix prefix;
    struct quota_entry *next; /* with the same hash, or free */
    uint32_t levels[QUOTA_LEVELS];
    int64_t full_ns[QUOTA_RATES]; /* when each bucket is full again */
};

struct shard {
    struct lock lock;
    struct quota_entry *entries, *free; /* `free`: those that have been used before */
    struct quota_entry **slots;         /* a power of two of them */
    size_t n_slots, n_entries, n_used;
    struct heap by_worth;
};

struct quotas {
    struct quota_limits limits;
    struct shard shards[QUOTA_SHARDS];
    struct quota_entry *entries; /* those of all shards */
    struct quota_entry **slots;  /* those of all shards */
};

/* ---- finding ---- */

static struct prefix prefix_of(const struct address *a, uint64_t len)
{
    struct prefix p = {.len = len};
    memcpy(&p.bytes, a->bytes, len);
    return p;
}

/* The prefixes that the address counts as, the narrow one first. */
static int prefixes_of(const struct address *a, struct prefix ret[PREFIXES_MAX])
{
    ret[0] = prefix_of(a, a->v4 ? 4 : 8);
    ret[1] = prefix_of(a, 6);
    return a->v4 ? 1 : 2;
}

static uint64_t hash_of(const struct prefix *p)
{
    return hash_keyed_with(p->len, &p->bytes, p->len);
}

static struct shard *shard_lock(struct quotas *q, const struct prefix *p, uint64_t *ret_hash)
{
    *ret_hash = hash_of(p);
    struct shard *s = &q->shards[*ret_hash % QUOTA_SHARDS];
    lock_take(&s->lock);
    return s;
}

static struct quota_entry **slot_of(struct shard *s, uint64_t hash)
{
    return &s->slots[hash / QUOTA_SHARDS & (s->n_slots - 1)];
}

static struct quota_entry *find(struct shard *s, uint64_t hash, const struct prefix *p)
{
    struct quota_entry *e = *slot_of(s, hash);
    while (e && (e->prefix.bytes != p->bytes || e->prefix.len != p->len))
        e = e->next;
    return e;
}

/* ---- remembering ---- */

static int64_t worth_of(const struct quota_entry *e)
{
    int64_t lasting = 0, full_ns = 0;
    for (int i = 0; i < QUOTA_LEVELS; i++)
        lasting += e->levels[i];
    for (int i = 0; i < QUOTA_RATES; i++)
        full_ns = e->full_ns[i] > full_ns ? e->full_ns[i] : full_ns;
    return lasting ? WORTH_LASTING + lasting : full_ns;
}

static void forget(struct shard *s, struct quota_entry *e)
{
    struct quota_entry **at = slot_of(s, hash_of(&e->prefix));
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    heap_remove(&s->by_worth, &e->worth);
    e->next = s->free;
    s->free = e;
}

/* Files the entry by what it is worth, after a change. */
static void file(struct shard *s, struct quota_entry *e)
{
    int64_t worth = worth_of(e);
    if (worth > 0)
        heap_set(&s->by_worth, &e->worth, worth);
    else
        forget(s, e);
}

static struct quota_entry *least(struct shard *s)
{
    return heap_item(heap_first(&s->by_worth), struct quota_entry, worth);
}

/* Returns the prefix's entry, an empty one if it had none; the caller changes and files it. */
static struct quota_entry *find_or_add(struct shard *s, uint64_t hash, const struct prefix *p)
{
    struct quota_entry *e = find(s, hash, p);
    if (e)
        return e;
    if (!s->free && s->n_used == s->n_entries)
        forget(s, least(s));
    e = s->free;
    if (e)
        s->free = e->next;
    else
        e = &s->entries[s->n_used++];
    struct quota_entry **slot = slot_of(s, hash);
    *e = (struct quota_entry){.prefix = *p, .next = *slot};
    *slot = e;
    return e;
}

/* Forgets a few of those whose buckets are full again: more of them than can have been added since
 * the last call. */
static void forget_full(struct shard *s, int64_t now_ns)
{
    for (int i = 0; i < 2 && heap_first(&s->by_worth) && least(s)->worth.key <= now_ns; i++)
        forget(s, least(s));
}

/* ---- levels ---- */

static bool take_one(struct quotas *q, const struct prefix *p, enum quota_level level, size_t max)
{
    uint64_t hash;
    struct shard *s = shard_lock(q, p, &hash);
    const struct quota_entry *known = find(s, hash, p);
    bool may = !known || known->levels[level] < max;
    if (may) {
        struct quota_entry *e = find_or_add(s, hash, p);
        e->levels[level]++;
        file(s, e);
    }
    lock_give(&s->lock);
    return may;
}

/* An address that had to be forgotten meanwhile has nothing to give back. */
static void give_one(struct quotas *q, const struct prefix *p, enum quota_level level)
{
    uint64_t hash;
    struct shard *s = shard_lock(q, p, &hash);
    struct quota_entry *e = find(s, hash, p);
    if (e && e->levels[level]) {
        e->levels[level]--;
        file(s, e);
    }
    lock_give(&s->lock);
}

bool quota_take(struct quotas *q, const struct address *a, enum quota_level level)
{
    struct prefix prefixes[PREFIXES_MAX];
    size_t max = q->limits.levels[level];
    int n = max ? prefixes_of(a, prefixes) : 0;
    for (int i = 0; i < n; i++) {
        if (take_one(q, &prefixes[i], level, i ? max * QUOTA_WIDE : max))
            continue;
        while (i-- > 0)
            give_one(q, &prefixes[i], level);
        return false;
    }
    return true;
}

void quota_give(struct quotas *q, const struct address *a, enum quota_level level)
{
    struct prefix prefixes[PREFIXES_MAX];
    int n = q->limits.levels[level] ? prefixes_of(a, prefixes) : 0;
    for (int i = 0; i < n; i++)
        give_one(q, &prefixes[i], level);
}

/* ---- rates ---- */

struct spending {
    enum quota_rate rate;
    int64_t now_ns;
    int64_t every_ns; /* after which one is added to the bucket; a multiple of QUOTA_WIDE */
    int64_t span_ns;  /* in which an empty bucket fills */
};

static struct spending spending_of(const struct quotas *q, enum quota_rate rate, int64_t now_us)
{
    const struct quota_pace *pace = &q->limits.rates[rate];
    struct spending sp = {.rate = rate, .now_ns = now_us * NS_PER_US};
    if (pace->burst)
        sp.every_ns = (NS_PER_MINUTE / pace->per_minute / QUOTA_WIDE + 1) * QUOTA_WIDE;
    sp.span_ns = sp.every_ns * pace->burst;
    return sp;
}

/* Returns how long the next one has to wait; 0: it may come, and has been spent if `spends`. */
static int64_t spend_one(struct quotas *q, const struct prefix *p, const struct spending *sp,
                         int64_t every_ns, bool spends)
{
    uint64_t hash;
    struct shard *s = shard_lock(q, p, &hash);
    const struct quota_entry *known = find(s, hash, p);
    int64_t full_ns = known ? known->full_ns[sp->rate] : 0;
    int64_t after_ns = (full_ns > sp->now_ns ? full_ns : sp->now_ns) + every_ns;
    int64_t wait_ns = after_ns - sp->now_ns - sp->span_ns;
    if (wait_ns <= 0 && spends) {
        struct quota_entry *e = find_or_add(s, hash, p);
        e->full_ns[sp->rate] = after_ns;
        file(s, e);
        forget_full(s, sp->now_ns);
    }
    lock_give(&s->lock);
    return wait_ns > 0 ? wait_ns : 0;
}

static void unspend_one(struct quotas *q, const struct prefix *p, enum quota_rate rate,
                        int64_t every_ns)
{
    uint64_t hash;
    struct shard *s = shard_lock(q, p, &hash);
    struct quota_entry *e = find(s, hash, p);
    if (e) {
        e->full_ns[rate] -= every_ns;
        file(s, e);
    }
    lock_give(&s->lock);
}

static bool spend(struct quotas *q, const struct address *a, enum quota_rate rate, int64_t now_us,
                  bool spends, int64_t *ret_wait_us)
{
    struct prefix prefixes[PREFIXES_MAX];
    const struct spending sp = spending_of(q, rate, now_us);
    int n = sp.every_ns ? prefixes_of(a, prefixes) : 0;
    int64_t narrow_ns = 0, wide_ns = 0;
    if (n > 0)
        narrow_ns = spend_one(q, &prefixes[0], &sp, sp.every_ns, spends);
    if (n > 1) /* its bucket is QUOTA_WIDE times as large, and fills as much faster */
        wide_ns = spend_one(q, &prefixes[1], &sp, sp.every_ns / QUOTA_WIDE, spends && !narrow_ns);
    if (spends && wide_ns && !narrow_ns)
        unspend_one(q, &prefixes[0], rate, sp.every_ns);
    if (!narrow_ns && !wide_ns)
        return true;
    int64_t wait_ns = wide_ns > narrow_ns ? wide_ns : narrow_ns;
    *ret_wait_us = (wait_ns + NS_PER_US - 1) / NS_PER_US;
    return false;
}

bool quota_spend(struct quotas *q, const struct address *a, enum quota_rate rate, int64_t now_us,
                 int64_t *ret_wait_us)
{
    return spend(q, a, rate, now_us, true, ret_wait_us);
}

bool quota_allows(struct quotas *q, const struct address *a, enum quota_rate rate, int64_t now_us,
                  int64_t *ret_wait_us)
{
    return spend(q, a, rate, now_us, false, ret_wait_us);
}

void quota_unspend(struct quotas *q, const struct address *a, enum quota_rate rate)
{
    struct prefix prefixes[PREFIXES_MAX];
    const struct spending sp = spending_of(q, rate, 0);
    int n = sp.every_ns ? prefixes_of(a, prefixes) : 0;
    for (int i = 0; i < n; i++)
        unspend_one(q, &prefixes[i], rate, i ? sp.every_ns / QUOTA_WIDE : sp.every_ns);
}

/* ---- life ---- */

/* One table of entries and one of slots serve all shards.  They are so long that the allocator asks
 * the system for them: a page of them costs memory when it is first used, and not before. */
static void shards_open(struct quotas *q, size_t n_entries)
{
    size_t n_slots = 1;
    while (n_slots < n_entries)
        n_slots *= 2;
    q->entries = hf_alloc(QUOTA_SHARDS * n_entries * sizeof *q->entries);
    q->slots = hf_alloc(QUOTA_SHARDS * n_slots * sizeof *q->slots);
    for (size_t i = 0; i < QUOTA_SHARDS; i++) {
        struct shard *s = &q->shards[i];
        lock_init(&s->lock);
        s->n_entries = n_entries;
        s->n_slots = n_slots;
        s->entries = q->entries + i * n_entries;
        s->slots = q->slots + i * n_slots;
    }
}

struct quotas *quotas_new(const struct quota_limits *limits, size_t addresses_max)
{
    struct quotas *q = hf_alloc(sizeof *q);
    q->limits = *limits;
    for (int i = 0; i < QUOTA_RATES; i++)
        hf_check(!limits->rates[i].burst || limits->rates[i].per_minute);
    shards_open(q, addresses_max * PREFIXES_MAX / QUOTA_SHARDS + 1);
    return q;
}

void quotas_free(struct quotas *q)
{
    if (!q)
        return;
    for (int i = 0; i < QUOTA_SHARDS; i++) {
        heap_close(&q->shards[i].by_worth);
        lock_close(&q->shards[i].lock);
    }
    free(q->entries);
    free(q->slots);
    free(q);
}
