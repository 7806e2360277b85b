/* memory: leases in a table of this process.  Below src/lock, as every driver; what other drivers
 * ask a server for happens here under one mutex, so any thread may call through its own handle.
 *
 * An entry exists while its key is held or waited for; the fence is one counter for the whole
 * table, so a key that comes back still gets a larger one.  What has run out is dropped by whoever
 * next touches the entry; two buckets are looked through for each entry made, so keys that nobody
 * touches again do not pile up.
 *
 * Waking.  A thread in wait() sleeps on a condition of its own.  It is woken when its claim could
 * be granted; besides, the first sleeper in the queue keeps watch: it alone sleeps no longer than
 * until a lease or a silent waiter's place before it runs out, and is woken to set its alarm anew
 * when that moment has come nearer or the watch falls to it.  A change thus wakes those whose turn
 * it is and at most one more, however many wait. */
#include "lease/lease.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TTL_MIN_MS 100
#define TTL_MAX_MS (INT64_C(7) * 86400000)
#define CLAIMS_MAX 1000000 /* holders and waiters in a table: some 250 MB */
#define WAIT_MAX_MS 3600000
#define SILENT_US (INT64_C(1000) * WAITER_SILENT_MS)
/* Conditions sleep by the monotonic clock, which stands while the machine is suspended: the watch
 * looks again at least this often.  A test's clock moves as it likes and is looked at often. */
#define WATCH_MAX_US INT64_C(1000000)
#define FAKE_MAX_US INT64_C(2000)

/* A thread inside wait(), on its stack.  `claim` becomes NULL when the claim ends. */
struct sleeper {
    pthread_cond_t cond;
    struct claim *claim;
    int64_t alarm_us;
    struct sleeper *next;
};

/* A holder or, with fence 0, a waiter. */
struct claim {
    struct claim *next;
    uint8_t owner[LEASE_OWNER_SIZE];
    enum hf_mode mode;
    int priority;
    int64_t fence;
    int64_t until_us; /* the lease ends; the place is lost, unless there are sleepers */
    struct sleeper *sleepers;
    char label[LEASE_LABEL_MAX + 1];
};

struct entry {
    struct entry *next;
    uint64_t hash;
    struct claim *holders, *waiters; /* waiters in the order they are served */
    size_t n_exclusive, n_shared;    /* holders */
    unsigned slots;
    int64_t last_fence;
    size_t key_len;
    char key[];
};

struct table {
    pthread_mutex_t lock; /* everything below */
    const struct clock *clock;
    size_t refs; /* handles */
    int64_t fence;
    size_t n_claims, n_entries;
    struct entry **buckets;
    size_t n_buckets, swept; /* a power of two; the bucket to look through next */
};

struct memory {
    struct lease lease;
    struct table *table;
};

extern const struct lease_driver lease_memory;

static struct table *table_of(struct lease *l)
{
    struct table *t = ((struct memory *)(void *)l)->table;
    pthread_mutex_lock(&t->lock);
    return t;
}

static bool is_real(const struct table *t) { return t->clock == &clock_system; }

/* ---- claims ---- */

static void claim_rouse(struct claim *c)
{
    for (struct sleeper *s = c->sleepers; s; s = s->next)
        pthread_cond_signal(&s->cond);
}

/* Those asleep for it learn that it has ended. */
static void claim_free(struct table *t, struct claim *c)
{
    claim_rouse(c);
    for (struct sleeper *s = c->sleepers; s; s = s->next)
        s->claim = NULL;
    t->n_claims--;
    free(c);
}

static struct claim **claim_find(struct claim **list, const uint8_t owner[LEASE_OWNER_SIZE])
{
    for (; *list; list = &(*list)->next)
        if (memcmp((*list)->owner, owner, LEASE_OWNER_SIZE) == 0)
            return list;
    return NULL;
}

static struct claim *claim_unlink(struct claim **at)
{
    struct claim *c = *at;
    *at = c->next;
    c->next = NULL;
    return c;
}

static size_t *holders_of_mode(struct entry *e, enum hf_mode mode)
{
    return mode == HF_SHARED ? &e->n_shared : &e->n_exclusive;
}

static void holder_end(struct table *t, struct entry *e, struct claim **at)
{
    struct claim *c = claim_unlink(at);
    --*holders_of_mode(e, c->mode);
    claim_free(t, c);
}

/* Those before `upto` in the queue, by mode; before a newcomer (NULL) are all of its priority and
 * above. */
struct ahead {
    size_t exclusive, shared;
};
static struct ahead ahead_of(const struct entry *e, const struct claim *upto, int priority)
{
    struct ahead ahead = {0};
    for (const struct claim *w = e->waiters; w && w != upto; w = w->next) {
        if (!upto && w->priority < priority)
            break;
        ++*(w->mode == HF_SHARED ? &ahead.shared : &ahead.exclusive);
    }
    return ahead;
}

/* A claim that cannot be granted stops every later one, of either mode. */
static bool is_free_for(const struct entry *e, enum hf_mode mode, const struct ahead *ahead)
{
    if (mode == HF_SHARED)
        return e->n_exclusive == 0 && ahead->exclusive == 0;
    return e->n_shared == 0 && ahead->shared == 0 && e->n_exclusive + ahead->exclusive < e->slots;
}

/* When the first lease ends; INT64_MAX: there is none. */
static int64_t first_end_us(const struct entry *e)
{
    int64_t first = INT64_MAX;
    for (const struct claim *h = e->holders; h; h = h->next)
        first = h->until_us < first ? h->until_us : first;
    return first;
}

/* The claim that keeps watch, and until when it may sleep: nobody before it is asleep. */
static struct claim *watch_of(const struct entry *e, int64_t *ret_us)
{
    int64_t until_us = first_end_us(e);
    struct claim *w = e->waiters;
    for (; w && !w->sleepers; w = w->next)
        until_us = w->until_us < until_us ? w->until_us : until_us;
    *ret_us = until_us;
    return w;
}

/* After a change: wake those whose turn it is, and the watch if its alarm would be too late. */
static void entry_rouse(struct entry *e)
{
    struct ahead ahead = {0};
    for (struct claim *w = e->waiters; w && is_free_for(e, w->mode, &ahead); w = w->next) {
        claim_rouse(w);
        ++*(w->mode == HF_SHARED ? &ahead.shared : &ahead.exclusive);
    }
    int64_t until_us;
    struct claim *watch = watch_of(e, &until_us);
    if (watch && watch->sleepers->alarm_us > until_us)
        claim_rouse(watch);
}

/* Drop leases and places that have run out. */
static void entry_tidy(struct table *t, struct entry *e, int64_t now_us)
{
    bool changed = false;
    for (struct claim **at = &e->holders; *at;) {
        if ((*at)->until_us > now_us) {
            at = &(*at)->next;
            continue;
        }
        holder_end(t, e, at);
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

static bool entry_is_empty(const struct entry *e) { return !e->holders && !e->waiters; }

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

/* Tidied, or NULL. */
static struct entry *entry_find(struct table *t, const char *key, size_t len, int64_t now_us)
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

static void entry_drop_if_empty(struct table *t, struct entry *e)
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

/* The key's entry, tidied, made if there is none. */
static struct entry *entry_get(struct table *t, const char *key, size_t len, int64_t now_us)
{
    struct entry *e = entry_find(t, key, len, now_us);
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

/* ---- handles ---- */

static struct lease *handle_new(struct table *t)
{
    struct memory *m = hf_alloc(sizeof *m);
    m->lease.driver = &lease_memory;
    m->table = t;
    t->refs++;
    return &m->lease;
}

static enum hf_result memory_open(const char *url, const struct lease_options *options,
                                  struct lease **ret, struct hf_fault *fault)
{
    if (strcmp(url, "memory:") != 0)
        return lease_fault(fault, HF_BAD_REQUEST, "nothing follows memory: in a URL");
    struct table *t = hf_alloc(sizeof *t);
    hf_check(pthread_mutex_init(&t->lock, NULL) == 0);
    t->clock = options && options->clock ? options->clock : &clock_system;
    t->n_buckets = 16;
    t->buckets = hf_alloc(t->n_buckets * sizeof(struct entry *));
    *ret = handle_new(t);
    return HF_DONE;
}

static enum hf_result memory_another(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    (void)fault;
    struct table *t = table_of(l);
    *ret = handle_new(t);
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

static void claims_free(struct table *t, struct claim **list)
{
    while (*list)
        claim_free(t, claim_unlink(list));
}

static void table_free(struct table *t)
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

static void memory_close(struct lease *l)
{
    if (!l)
        return;
    struct table *t = table_of(l);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&t->lock);
    if (last)
        table_free(t);
    free(l);
}

/* ---- acquire, renew, release ---- */

static struct claim *claim_new(struct table *t, const struct lease_request *r)
{
    struct claim *c = hf_alloc(sizeof *c);
    memcpy(c->owner, r->owner, LEASE_OWNER_SIZE);
    c->mode = r->mode;
    c->priority = r->priority;
    if (r->label)
        memcpy(c->label, r->label, r->label_len);
    t->n_claims++;
    return c;
}

static void waiter_insert(struct entry *e, struct claim *c)
{
    struct claim **at = &e->waiters;
    while (*at && (*at)->priority >= c->priority)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

static void grant(struct table *t, struct entry *e, struct claim *c, int64_t until_us)
{
    c->fence = e->last_fence = ++t->fence;
    c->until_us = until_us;
    c->next = e->holders;
    e->holders = c;
    ++*holders_of_mode(e, c->mode);
    claim_rouse(c); /* another thread may sleep for the same owner */
}

static enum hf_result slots_differ(const struct entry *e, const struct lease_request *r,
                                   struct hf_fault *fault)
{
    return lease_fault(fault, HF_BAD_REQUEST, "%u slots asked for, but others say %u", r->slots,
                       e->slots);
}

static struct lease_verdict granted(const struct claim *c, int64_t now_us)
{
    return (struct lease_verdict){
        .result = HF_DONE, .fence = c->fence, .remaining_ms = (c->until_us - now_us) / 1000};
}

/* `e` is the key's, tidied and maybe empty. */
static struct lease_verdict acquire_one(struct table *t, struct entry *e,
                                        const struct lease_request *r, int64_t now_us)
{
    struct claim **at = claim_find(&e->holders, r->owner);
    if (at)
        return granted(*at, now_us);
    at = claim_find(&e->waiters, r->owner);
    struct claim *c = at ? *at : NULL;
    struct ahead ahead = ahead_of(e, c, r->priority);
    if (is_free_for(e, c ? c->mode : r->mode, &ahead)) {
        c = at ? claim_unlink(at) : claim_new(t, r);
        grant(t, e, c, now_us + 1000 * r->ttl_ms);
        entry_rouse(e);
        return granted(c, now_us);
    }
    if (!c && r->queue) {
        c = claim_new(t, r);
        waiter_insert(e, c);
    }
    int64_t first_us = first_end_us(e);
    struct lease_verdict verdict = {.result = HF_TAKEN, .remaining_ms = -1};
    if (first_us != INT64_MAX)
        verdict.remaining_ms = (first_us - now_us + 999) / 1000;
    if (c) {
        c->until_us = now_us + SILENT_US;
        verdict.position = ahead.exclusive + ahead.shared + 1;
    }
    return verdict;
}

/* Looked at before anything is done. */
static enum hf_result slots_agree(struct table *t, const struct lease_request *requests, size_t n,
                                  int64_t now_us, struct hf_fault *fault)
{
    for (size_t i = 0; i < n; i++) {
        const struct lease_request *r = &requests[i];
        struct entry *e = entry_find(t, r->key, r->key_len, now_us);
        if (e && !entry_is_empty(e) && e->slots != r->slots)
            return slots_differ(e, r, fault);
    }
    return HF_DONE;
}

static enum hf_result memory_acquire(struct lease *l, const struct lease_request *requests,
                                     size_t n, struct lease_verdict *verdicts,
                                     struct hf_fault *fault)
{
    enum hf_result result = lease_check(&lease_memory.info, requests, n, fault);
    if (result != HF_DONE)
        return result;
    struct table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    if (n > CLAIMS_MAX - t->n_claims)
        result = lease_fault(fault, HF_FAILED,
                             "memory: has all the %d holders and waiters it takes", CLAIMS_MAX);
    else if (n > 1)
        result = slots_agree(t, requests, n, now_us, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        const struct lease_request *r = &requests[i];
        struct entry *e = entry_get(t, r->key, r->key_len, now_us);
        if (entry_is_empty(e))
            e->slots = r->slots;
        if (e->slots == r->slots)
            verdicts[i] = acquire_one(t, e, r, now_us);
        else
            result = slots_differ(e, r, fault);
        entry_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return result;
}

static enum hf_result memory_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                   struct lease_verdict *verdicts, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        result = lease_check_key(&lease_memory.info, requests[i].key, requests[i].key_len, fault);
        if (result == HF_DONE)
            result = lease_check_ttl(&lease_memory.info, requests[i].ttl_ms, fault);
    }
    if (result != HF_DONE)
        return result;
    struct table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    for (size_t i = 0; i < n; i++) {
        const struct lease_request *r = &requests[i];
        struct entry *e = entry_find(t, r->key, r->key_len, now_us);
        struct claim **at = e ? claim_find(&e->holders, r->owner) : NULL;
        verdicts[i] = (struct lease_verdict){.result = HF_LOST};
        if (at) {
            (*at)->until_us = now_us + 1000 * r->ttl_ms;
            verdicts[i] = granted(*at, now_us);
            entry_rouse(e); /* a shorter TTL brings the end nearer */
        }
        entry_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

static enum hf_result release_one(struct table *t, struct entry *e,
                                  const uint8_t owner[LEASE_OWNER_SIZE])
{
    struct claim **at = claim_find(&e->holders, owner);
    if (at) {
        holder_end(t, e, at);
    } else {
        at = claim_find(&e->waiters, owner);
        if (!at)
            return HF_LOST;
        claim_free(t, claim_unlink(at));
    }
    entry_rouse(e);
    return HF_DONE;
}

static enum hf_result memory_release(struct lease *l, const struct lease_request *requests,
                                     size_t n, struct lease_verdict *verdicts,
                                     struct hf_fault *fault)
{
    for (size_t i = 0; i < n; i++) {
        enum hf_result result =
            lease_check_key(&lease_memory.info, requests[i].key, requests[i].key_len, fault);
        if (result != HF_DONE)
            return result;
    }
    struct table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    for (size_t i = 0; i < n; i++) {
        const struct lease_request *r = &requests[i];
        struct entry *e = entry_find(t, r->key, r->key_len, now_us);
        verdicts[i] = (struct lease_verdict){.result = e ? release_one(t, e, r->owner) : HF_LOST};
        entry_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

/* ---- waiting ---- */

/* Until woken or for `us`, measured by the system whatever clock the table has. */
static void sleep_for(struct table *t, struct sleeper *s, int64_t us)
{
    int64_t until_us = clock_monotonic_us(&clock_system) + us;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_cond_timedwait(&s->cond, &t->lock, &until);
}

static void sleeper_init(struct sleeper *s, struct claim *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    hf_check(pthread_cond_init(&s->cond, &attr) == 0);
    pthread_condattr_destroy(&attr);
    s->claim = c;
    s->next = c->sleepers;
    c->sleepers = s;
}

/* The place is kept from now on for as long as that of one who has just asked. */
static void sleeper_close(struct table *t, struct entry *e, struct sleeper *s)
{
    struct claim *c = s->claim;
    if (c) {
        struct sleeper **at = &c->sleepers;
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        if (c->fence == 0) {
            c->until_us = clock_boot_us(t->clock) + SILENT_US;
            entry_rouse(e); /* the watch may pass to another */
        }
    }
    pthread_cond_destroy(&s->cond);
}

/* While the sleeper's claim waits, its entry cannot go. */
static void sleep_until_turn(struct table *t, struct entry *e, struct sleeper *s,
                             int64_t timeout_us)
{
    int64_t end_us = clock_boot_us(t->clock) + timeout_us;
    int64_t real_end_us = clock_monotonic_us(&clock_system) + timeout_us;
    while (s->claim) {
        int64_t now_us = clock_boot_us(t->clock);
        entry_tidy(t, e, now_us);
        struct claim *c = s->claim;
        if (!c) /* granted to another thread of the same owner, and run out since */
            break;
        struct ahead ahead = ahead_of(e, c, 0);
        if (c->fence != 0 || is_free_for(e, c->mode, &ahead) || now_us >= end_us ||
            clock_monotonic_us(&clock_system) >= real_end_us)
            break;
        int64_t watch_us, us = end_us - now_us;
        s->alarm_us = INT64_MAX;
        if (watch_of(e, &watch_us) == c) {
            s->alarm_us = watch_us;
            us = watch_us - now_us < us ? watch_us - now_us : us;
            us = us < WATCH_MAX_US ? us : WATCH_MAX_US;
        }
        sleep_for(t, s, is_real(t) || us < FAKE_MAX_US ? us : FAKE_MAX_US);
    }
}

static enum hf_result memory_wait(struct lease *l, const struct lease_request *request,
                                  int64_t timeout_ms, struct hf_fault *fault)
{
    enum hf_result result =
        lease_check_key(&lease_memory.info, request->key, request->key_len, fault);
    if (result != HF_DONE)
        return result;
    timeout_ms = timeout_ms < 0 ? 0 : timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;
    struct table *t = table_of(l);
    struct entry *e = entry_find(t, request->key, request->key_len, clock_boot_us(t->clock));
    struct claim **at = e ? claim_find(&e->waiters, request->owner) : NULL;
    if (at) { /* else it holds it, or has no place to wait at: asking again tells */
        struct sleeper s;
        sleeper_init(&s, *at);
        sleep_until_turn(t, e, &s, 1000 * timeout_ms);
        sleeper_close(t, e, &s);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

/* ---- looking ---- */

static struct hf_holder *show(const struct claim *list, int64_t now_us, size_t *ret_n)
{
    VEC(struct hf_holder) all = {0};
    for (; list; list = list->next) {
        struct hf_holder *h = vec_push(&all);
        lease_owner_text(list->owner, h->owner);
        memcpy(h->label, list->label, sizeof h->label);
        h->mode = list->mode;
        h->priority = list->priority;
        h->fence = list->fence;
        int64_t left_us = list->sleepers ? SILENT_US : list->until_us - now_us;
        h->remaining_ms = left_us / 1000;
    }
    *ret_n = all.n;
    return all.v;
}

static enum hf_result memory_inspect(struct lease *l, const char *key, size_t key_len,
                                     struct hf_lock_state *ret, struct hf_fault *fault)
{
    enum hf_result result = lease_check_key(&lease_memory.info, key, key_len, fault);
    if (result != HF_DONE)
        return result;
    *ret = (struct hf_lock_state){0};
    struct table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    struct entry *e = entry_find(t, key, key_len, now_us);
    if (e) {
        ret->holders = show(e->holders, now_us, &ret->n_holders);
        ret->waiters = show(e->waiters, now_us, &ret->n_waiters);
        ret->last_fence = e->last_fence;
    }
    entry_drop_if_empty(t, e);
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* `each` runs without the mutex, on copies: it may call us. */
static enum hf_result memory_list(struct lease *l, const char *prefix, size_t prefix_len,
                                  bool (*each)(void *ctx, const char *name), void *ctx,
                                  struct hf_fault *fault)
{
    (void)fault;
    VEC(char *) names = {0};
    struct table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    for (size_t i = 0; i < t->n_buckets; i++) {
        for (struct entry *e = t->buckets[i]; e; e = e->next) {
            entry_tidy(t, e, now_us);
            if (!entry_is_empty(e) && e->key_len >= prefix_len &&
                memcmp(e->key, prefix, prefix_len) == 0)
                *vec_push(&names) = hf_strndup(e->key, e->key_len);
        }
    }
    pthread_mutex_unlock(&t->lock);
    if (names.n > 0)
        qsort(names.v, names.n, sizeof *names.v, by_name);
    bool more = true;
    for (size_t i = 0; i < names.n; i++) {
        more = more && each(ctx, names.v[i]);
        free(names.v[i]);
    }
    vec_close(&names);
    return HF_DONE;
}

static enum hf_result memory_break(struct lease *l, const char *key, size_t key_len,
                                   struct hf_fault *fault)
{
    enum hf_result result = lease_check_key(&lease_memory.info, key, key_len, fault);
    if (result != HF_DONE)
        return result;
    struct table *t = table_of(l);
    struct entry *e = entry_find(t, key, key_len, clock_boot_us(t->clock));
    if (e) {
        while (e->holders)
            holder_end(t, e, &e->holders);
        entry_rouse(e);
    }
    entry_drop_if_empty(t, e);
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

const struct lease_driver lease_memory = {
    .info = {.name = "memory",
             .url = "memory:",
             .fence = HF_FENCE_COUNTER,
             .processes = false,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = TTL_MIN_MS,
             .ttl_max_ms = TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "this machine's boot-time clock, to the microsecond",
             .survives = "nothing: it lives and ends with the process that opened it"},
    .schemes = (const char *const[]){"memory:", NULL},
    .open = memory_open,
    .close = memory_close,
    .another = memory_another,
    .acquire = memory_acquire,
    .renew = memory_renew,
    .release = memory_release,
    .wait = memory_wait,
    .inspect = memory_inspect,
    .list = memory_list,
    .break_ = memory_break,
};
