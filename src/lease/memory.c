/* memory: leases in a table of this process.  Below src/lock, as every driver; what other drivers
 * ask a server for happens here under one mutex, so any thread may call through its own handle. */
#include "lease/memory_table.h"

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
        return fault_set(fault, HF_BAD_REQUEST, "nothing follows memory: in a URL");
    *ret = handle_new(table_new(options && options->clock ? options->clock : &clock_system));
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

static enum hf_result slots_differ(const struct entry *e, const struct lease_request *r,
                                   struct hf_fault *fault)
{
    return fault_set(fault, HF_BAD_REQUEST, "%u slots asked for, but others say %u", r->slots,
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
    struct ahead ahead = entry_ahead_of(e, c, r->priority);
    if (entry_is_free_for(e, c ? c->mode : r->mode, &ahead)) {
        c = at ? entry_dequeue(e, at) : claim_new(t, r);
        entry_grant(t, e, c, now_us + 1000 * r->ttl_ms);
        entry_rouse(e);
        return granted(c, now_us);
    }
    if (!c && r->queue) {
        c = claim_new(t, r);
        entry_enqueue(e, c);
    }
    int64_t first_us = entry_first_end_us(e);
    struct lease_verdict verdict = {.result = HF_TAKEN, .remaining_ms = -1};
    if (first_us != INT64_MAX)
        verdict.remaining_ms = (first_us - now_us + 999) / 1000;
    if (c) {
        entry_set_until(e, c, now_us + SILENT_US);
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
        struct entry *e = table_find(t, r->key, r->key_len, now_us);
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
        result = fault_set(fault, HF_FAILED, "memory: has all the %d holders and waiters it takes",
                           CLAIMS_MAX);
    else if (n > 1)
        result = slots_agree(t, requests, n, now_us, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        const struct lease_request *r = &requests[i];
        struct entry *e = table_get(t, r->key, r->key_len, now_us);
        if (entry_is_empty(e))
            e->slots = r->slots;
        if (e->slots == r->slots)
            verdicts[i] = acquire_one(t, e, r, now_us);
        else
            result = slots_differ(e, r, fault);
        table_drop_if_empty(t, e);
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
        struct entry *e = table_find(t, r->key, r->key_len, now_us);
        struct claim **at = e ? claim_find(&e->holders, r->owner) : NULL;
        verdicts[i] = (struct lease_verdict){.result = HF_LOST};
        if (at) {
            entry_set_until(e, *at, now_us + 1000 * r->ttl_ms);
            verdicts[i] = granted(*at, now_us);
            entry_rouse(e); /* a shorter TTL brings the end nearer */
        }
        table_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

static enum hf_result release_one(struct table *t, struct entry *e,
                                  const uint8_t owner[LEASE_OWNER_SIZE])
{
    struct claim **at = claim_find(&e->holders, owner);
    if (at) {
        entry_end_holder(t, e, at);
    } else {
        at = claim_find(&e->waiters, owner);
        if (!at)
            return HF_LOST;
        entry_end_waiter(t, e, at);
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
        struct entry *e = table_find(t, r->key, r->key_len, now_us);
        verdicts[i] = (struct lease_verdict){.result = e ? release_one(t, e, r->owner) : HF_LOST};
        table_drop_if_empty(t, e);
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
    s->alarm_us = INT64_MAX;
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
            entry_set_until(e, c, clock_boot_us(t->clock) + SILENT_US);
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
        struct ahead ahead = entry_ahead_of(e, c, 0);
        if (c->fence != 0 || entry_is_free_for(e, c->mode, &ahead) || now_us >= end_us ||
            clock_monotonic_us(&clock_system) >= real_end_us)
            break;
        int64_t watch_us, us = end_us - now_us;
        s->alarm_us = INT64_MAX;
        if (entry_watch(e, &watch_us) == c) {
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
    struct entry *e = table_find(t, request->key, request->key_len, clock_boot_us(t->clock));
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
    struct entry *e = table_find(t, key, key_len, now_us);
    if (e) {
        ret->holders = show(e->holders, now_us, &ret->n_holders);
        ret->waiters = show(e->waiters, now_us, &ret->n_waiters);
        ret->last_fence = e->last_fence;
    }
    table_drop_if_empty(t, e);
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
    struct entry *e = table_find(t, key, key_len, clock_boot_us(t->clock));
    if (e) {
        while (e->holders)
            entry_end_holder(t, e, &e->holders);
        entry_rouse(e);
    }
    table_drop_if_empty(t, e);
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

const struct lease_driver lease_memory = {
    .info = {.name = "memory",
             .url = "memory:",
             .fence = HF_FENCE_COUNTER,
             .processes = false,
             .outlives = false,
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
