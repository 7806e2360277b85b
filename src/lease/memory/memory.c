/* The memory driver: leases in a table of this process.  What other drivers ask a server for
 * happens here under one mutex, so any thread may call through a handle of its own. */
#include "lease/memory/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

#define CLAIMS_MAX 1000000 /* holders and waiters in a table: some 250 MB */
#define SILENT_US (INT64_C(1000) * WAITER_SILENT_MS)
/* Waits are counted on the monotonic clock, which stands still while the machine is suspended, so
 * the watcher looks at the table's clock at least this often. */
#define WATCHER_SLEEP_MAX_US INT64_C(1000000)
/* A test's clock moves without waking anybody: sleepers look at it this often. */
#define FAKE_CLOCK_SLEEP_US INT64_C(2000)

struct memory {
    struct lease lease;
    struct lease_table *table;
};

extern const struct lease_driver lease_memory;

/* Locks the table. */
static struct lease_table *table_of(struct lease *l)
{
    struct lease_table *t = ((struct memory *)(void *)l)->table;
    pthread_mutex_lock(&t->lock);
    return t;
}

/* ---- handles ---- */

static struct lease *handle_new(struct lease_table *t)
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
    *ret = handle_new(lease_table_new(options->clock));
    return HF_DONE;
}

static enum hf_result memory_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    (void)fault;
    struct lease_table *t = table_of(l);
    *ret = handle_new(t);
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

static void memory_close(struct lease *l)
{
    struct lease_table *t = table_of(l);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&t->lock);
    if (last)
        lease_table_free(t);
    free(l);
}

/* ---- acquire, renew, release ---- */

static struct lease_verdict granted(const struct claim *c, int64_t now_us)
{
    return (struct lease_verdict){.result = HF_DONE,
                                  .fence = c->fence,
                                  .remaining_ms = (c->until_us - now_us) / 1000,
                                  .slot = c->slot};
}

/* `e` is the key's entry, tidied and possibly empty. */
static struct lease_verdict acquire_one(struct lease_table *t, struct memory_entry *e,
                                        const struct lease_request *r, int64_t now_us)
{
    struct claim **at = claim_find(&e->holders, r->owner);
    if (at)
        return granted(*at, now_us);
    at = claim_find(&e->waiters, r->owner);
    struct claim *c = at ? *at : NULL;
    if (c)
        entry_note_alive(e, c);
    struct waiter_count ahead = entry_ahead_of(e, c, r->priority);
    bool no_holder = !c && !r->queue && !e->holders; /* a turn is not a lease */
    if (no_holder || entry_is_free_for(e, c ? c->mode : r->mode, &ahead)) {
        c = at ? entry_dequeue(e, at) : claim_new(t, r);
        entry_grant(t, e, c, 1000 * r->ttl_ms, now_us);
        entry_wake(e, now_us);
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

static enum hf_result memory_acquire(struct lease *l, const struct lease_request *r,
                                     struct lease_verdict *verdict, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    struct lease_table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    if (t->n_claims >= CLAIMS_MAX) {
        result = fault_set(fault, HF_FAILED, "memory: has all the %d holders and waiters it takes",
                           CLAIMS_MAX);
    } else {
        struct memory_entry *e = entry_get(t, r->key, r->key_len, now_us);
        if (entry_is_empty(e))
            e->slots = r->slots;
        if (e->slots == r->slots)
            *verdict = acquire_one(t, e, r, now_us);
        else
            result = lease_slots_differ(r->slots, e->slots, fault);
        entry_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return result;
}

static enum hf_result memory_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                   struct lease_verdict *verdicts, struct hf_fault *fault)
{
    (void)fault;
    struct lease_table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    for (size_t i = 0; i < n; i++) {
        const struct lease_request *r = &requests[i];
        struct memory_entry *e = entry_find(t, r->key, r->key_len, now_us);
        struct claim **at = e ? claim_find(&e->holders, r->owner) : NULL;
        verdicts[i] = (struct lease_verdict){.result = HF_LOST};
        if (at) {
            entry_set_until(e, *at, now_us + 1000 * r->ttl_ms);
            verdicts[i] = granted(*at, now_us);
            entry_wake(e, now_us); /* a shorter TTL brings the end nearer */
        }
        entry_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

static enum hf_result release_one(struct lease_table *t, struct memory_entry *e,
                                  const uint8_t owner[LEASE_OWNER_SIZE], int64_t now_us)
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
    entry_wake(e, now_us);
    return HF_DONE;
}

static enum hf_result memory_release(struct lease *l, const struct lease_request *requests,
                                     size_t n, struct lease_verdict *verdicts,
                                     struct hf_fault *fault)
{
    (void)fault;
    struct lease_table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    for (size_t i = 0; i < n; i++) {
        const struct lease_request *r = &requests[i];
        struct memory_entry *e = entry_find(t, r->key, r->key_len, now_us);
        verdicts[i] =
            (struct lease_verdict){.result = e ? release_one(t, e, r->owner, now_us) : HF_LOST};
        entry_drop_if_empty(t, e);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

/* ---- waiting ---- */

/* From now on the place is kept as long as that of a waiter that has just asked. */
static void leave(struct lease_table *t, struct memory_entry *e, struct claim_sleeper *s)
{
    struct claim *c = s->claim;
    if (c) {
        struct claim_sleeper **at = &c->sleepers;
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        if (c->fence == 0) {
            int64_t now_us = clock_boot_us(t->clock);
            entry_set_until(e, c, now_us + SILENT_US);
            entry_wake(e, now_us); /* a new watcher may be needed */
        }
    }
    sleeper_close(&s->sleeper);
}

/* How long the sleeper may sleep; sets its alarm if it is the watcher. */
static int64_t sleep_length_us(const struct lease_table *t, const struct memory_entry *e,
                               struct claim_sleeper *s, int64_t now_us, int64_t end_us)
{
    int64_t alarm_us, us = end_us - now_us;
    s->alarm_us = INT64_MAX;
    if (entry_watcher(e, &alarm_us) == s->claim) {
        s->alarm_us = alarm_us;
        us = alarm_us - now_us < us ? alarm_us - now_us : us;
        us = us < WATCHER_SLEEP_MAX_US ? us : WATCHER_SLEEP_MAX_US;
    }
    return clock_is_real(t->clock) || us < FAKE_CLOCK_SLEEP_US ? us : FAKE_CLOCK_SLEEP_US;
}

/* While the sleeper's claim waits, its entry stays. */
static void sleep_until_turn(struct lease_table *t, struct memory_entry *e, struct claim_sleeper *s,
                             const struct lease *l, int64_t timeout_us)
{
    int64_t end_us = clock_boot_us(t->clock) + timeout_us;
    int64_t real_end_us = wait_now_us() + timeout_us; /* a test's clock may stand still */
    while (s->claim) {
        int64_t now_us = clock_boot_us(t->clock);
        entry_tidy(t, e, now_us);
        struct claim *c = s->claim;
        if (!c) /* a second thread of this owner was granted the lease, and it has run out */
            return;
        if (c->fence == 0)
            entry_note_alive(e, c);
        struct waiter_count ahead = entry_ahead_of(e, c, 0);
        if (c->fence != 0 || entry_is_free_for(e, c->mode, &ahead))
            return;
        if (now_us >= end_us || wait_now_us() >= real_end_us || lease_is_woken(l))
            return;
        int64_t us = sleep_length_us(t, e, s, now_us, end_us);
        (void)sleeper_sleep(&s->sleeper, &t->lock, l->wake_fd, us);
    }
}

static enum hf_result memory_wait(struct lease *l, const struct lease_request *request,
                                  int64_t timeout_ms, struct hf_fault *fault)
{
    (void)fault;
    struct lease_table *t = table_of(l);
    struct memory_entry *e = entry_find(t, request->key, request->key_len, clock_boot_us(t->clock));
    struct claim **at = e ? claim_find(&e->waiters, request->owner) : NULL;
    if (at) { /* otherwise the owner holds it or has no place: asking again tells which */
        struct claim_sleeper s = {.claim = *at, .alarm_us = INT64_MAX, .next = (*at)->sleepers};
        sleeper_init(&s.sleeper, l->wake_fd);
        (*at)->sleepers = &s;
        sleep_until_turn(t, e, &s, l, 1000 * timeout_ms);
        leave(t, e, &s);
    }
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

/* ---- inspecting ---- */

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
        h->held_ms = list->fence ? (now_us - list->since_us) / 1000 : -1;
        h->slot = list->slot;
    }
    *ret_n = all.n;
    return all.v;
}

static enum hf_result memory_inspect(struct lease *l, const char *key, size_t key_len,
                                     struct lease_state *ret, struct hf_fault *fault)
{
    (void)fault;
    *ret = (struct lease_state){0};
    struct lease_table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    struct memory_entry *e = entry_find(t, key, key_len, now_us);
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

/* `each` gets copies and runs without the mutex, so it may call the driver. */
static enum hf_result memory_list(struct lease *l, const char *prefix, size_t prefix_len,
                                  lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    (void)fault;
    VEC(char *) names = {0};
    struct lease_table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    struct table_node *x = table_first(&t->entries);
    for (; x; x = table_after(&t->entries, x)) {
        struct memory_entry *e = (struct memory_entry *)x;
        entry_tidy(t, e, now_us);
        if (!entry_is_empty(e) && e->key_len >= prefix_len &&
            memcmp(e->key, prefix, prefix_len) == 0)
            *vec_push(&names) = hf_strndup(e->key, e->key_len);
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
    (void)fault;
    struct lease_table *t = table_of(l);
    int64_t now_us = clock_boot_us(t->clock);
    struct memory_entry *e = entry_find(t, key, key_len, now_us);
    if (e) {
        while (e->holders)
            entry_end_holder(t, e, &e->holders);
        entry_wake(e, now_us);
    }
    entry_drop_if_empty(t, e);
    pthread_mutex_unlock(&t->lock);
    return HF_DONE;
}

const struct lease_driver lease_memory = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "memory",
             .url = "memory:",
             .fence = HF_FENCE_COUNTER,
             .processes = false,
             .outlives = false,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = LEASE_TTL_MIN_MS,
             .ttl_max_ms = LEASE_TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "this machine's boot-time clock, to the microsecond",
             .survives = "nothing: it lives and ends with the process that opened it",
             .overlaps = 0,
             .beware = "It excludes the threads of one process, and nothing else."},
    .schemes = (const char *const[]){"memory:", NULL},
    .open = memory_open,
    .close = memory_close,
    .clone = memory_clone,
    .acquire = memory_acquire,
    .renew = memory_renew,
    .release = memory_release,
    .wait = memory_wait,
    .inspect = memory_inspect,
    .list = memory_list,
    .break_ = memory_break,
};
