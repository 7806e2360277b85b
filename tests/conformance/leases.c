/* Claims about one lease at a time: exclusion, owners, TTLs, fences, batches, inspecting, breaking.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_MS 400
#define SLACK_MS 3 /* clocks that count in milliseconds */

static int64_t short_ms(const struct world *w)
{
    return w->info->ttl_min_ms > SHORT_MS ? w->info->ttl_min_ms : SHORT_MS;
}

static void one_holds_and_the_other_does_not(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "exclusion");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    struct lease *other = handle_clone(w->l);
    int64_t from_ms = now_ms();
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    assert_remaining(a.v.remaining_ms, LONG_MS, from_ms);
    assert_int_equal(acquire(other, &b), HF_TAKEN);
    assert_int_equal(b.v.position, 0); /* it did not ask for a place */
    if (b.v.remaining_ms != -1)
        assert_remaining(b.v.remaining_ms, LONG_MS + SLACK_MS, from_ms);
    assert_int_equal(release(w->l, &a), HF_DONE);
    assert_int_equal(acquire(other, &b), HF_DONE);
    assert_int_equal(acquire(w->l, &a), HF_TAKEN);
    assert_int_equal(release(other, &b), HF_DONE);
    lease_close(other);
}

static void names_that_look_alike_are_different_locks(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {
        "n",   "N",   "n ",  "n:1", "n%", "n_",        "n*",         "n\"",  "n'--", "n\\0",
        "{n}", "n}:", "n/a", "n?b", "n;", "n\xc3\xa9", "ne\xcc\x81", "%s%n", "日本", "🔒"};
    enum { N = sizeof names / sizeof *names };
    struct party p[N];
    bool is_below[N] = {false}; /* conflicts with another of them */
    for (int i = 0; i < N; i++) {
        is_below[i] = (w->info->traits & HF_TRAIT_HIERARCHY) && strchr(names[i], '/');
        party_init(&p[i], names[i]);
        assert_int_equal(acquire(w->l, &p[i]), is_below[i] ? HF_TAKEN : HF_DONE);
    }
    for (int i = 0; i < N; i++) {
        struct party q;
        if (is_below[i])
            continue;
        party_init(&q, names[i]);
        assert_int_equal(acquire(w->l, &q), HF_TAKEN);
        assert_int_equal(release(w->l, &p[i]), HF_DONE);
        assert_int_equal(acquire(w->l, &q), HF_DONE);
        assert_int_equal(release(w->l, &q), HF_DONE);
    }
}

static void acquire_repeated_finds_the_same_grant(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "again");
    struct party a;
    party_init(&a, key);
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    int64_t fence = a.v.fence;
    int64_t from_ms = now_ms();
    rest_ms(20);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(acquire(w->l, &a), HF_DONE);
        assert_int_equal(a.v.fence, fence);
        /* the rest of the TTL, not a new one */
        assert_true(a.v.remaining_ms <= LONG_MS - (now_ms() - from_ms) + SLACK_MS + 5000);
        assert_true(a.v.remaining_ms <= LONG_MS - 20 + SLACK_MS);
    }
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 1);
    lease_state_close(&s);
    assert_int_equal(release(w->l, &a), HF_DONE);
    assert_int_equal(release(w->l, &a), HF_LOST);
}

static void a_wrong_owner_changes_nothing(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "owner");
    struct party a, thief;
    party_init(&a, key);
    party_init(&thief, key);
    thief.r.ttl_ms = 2 * LONG_MS;
    assert_int_equal(renew(w->l, &thief), HF_LOST); /* it has no holder yet */
    assert_int_equal(release(w->l, &thief), HF_LOST);
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    memcpy(thief.r.owner, a.r.owner, sizeof a.r.owner);
    thief.r.owner[LEASE_OWNER_SIZE - 1] ^= 1;
    assert_int_equal(renew(w->l, &thief), HF_LOST);
    assert_int_equal(release(w->l, &thief), HF_LOST);
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 1);
    assert_true(s.holders[0].remaining_ms <= LONG_MS);
    assert_int_equal(s.holders[0].fence, a.v.fence);
    lease_state_close(&s);
    assert_int_equal(release(w->l, &a), HF_DONE);
}

static void ends_by_itself(struct world *w, bool has_waiter)
{
    char key[64];
    key_make(key, "ttl");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    a.r.ttl_ms = short_ms(w);
    b.r.queue = has_waiter;
    int64_t from_ms = now_ms();
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    acquire_within(w->l, &b, short_ms(w) + 10000);
    assert_true(now_ms() - from_ms >= short_ms(w) - SLACK_MS);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(b.v.fence > a.v.fence);
    assert_int_equal(renew(w->l, &a), HF_LOST);
    assert_int_equal(release(w->l, &a), HF_LOST);
    assert_int_equal(release(w->l, &b), HF_DONE);
}

/* A lock that others wait for may be stored in another form. */
static void a_lease_that_is_not_renewed_ends_and_not_before(void **state)
{
    ends_by_itself(*state, false);
    ends_by_itself(*state, true);
}

static void renewal_extends_and_keeps_the_fence(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "renewal");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    a.r.ttl_ms = LONG_MS / 3;
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    int64_t fence = a.v.fence, from_ms = now_ms();
    a.r.ttl_ms = LONG_MS;
    assert_int_equal(renew(w->l, &a), HF_DONE);
    assert_int_equal(a.v.fence, fence);
    assert_remaining(a.v.remaining_ms, w->info->traits & HF_TRAIT_FIXED_TTL ? LONG_MS / 3 : LONG_MS,
                     from_ms);
    assert_int_equal(acquire(w->l, &b), HF_TAKEN);
    assert_int_equal(renew(w->l, &a), HF_DONE); /* repeated, as after a lost answer */
    assert_int_equal(release(w->l, &a), HF_DONE);
}

static void renewal_never_revives(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "revive");
    struct party a;
    party_init(&a, key);
    a.r.ttl_ms = w->info->ttl_min_ms;
    int64_t from_ms = now_ms();
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    int64_t fence = a.v.fence;
    rest_ms(w->info->ttl_min_ms + SLACK_MS + 20);
    assert_true(now_ms() - from_ms > w->info->ttl_min_ms);
    a.r.ttl_ms = LONG_MS;
    assert_int_equal(renew(w->l, &a), HF_LOST);
    size_t n_holders = 1; /* a server that ends leases by itself may be late */
    while (n_holders > 0) {
        struct lease_state s = inspect(w->l, key);
        n_holders = s.n_holders;
        lease_state_close(&s);
        assert_true(now_ms() - from_ms < 20000);
    }
    /* If the same owner asks again it gets a new grant. */
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(a.v.fence > fence);
    assert_int_equal(release(w->l, &a), HF_DONE);
}

static int64_t grant_after(struct world *w, const char *key, int64_t last)
{
    struct party p;
    party_init(&p, key);
    assert_int_equal(acquire(w->l, &p), HF_DONE);
    if (w->info->fence == HF_FENCE_NONE)
        assert_int_equal(p.v.fence, 0);
    else
        assert_true(p.v.fence > last);
    return p.v.fence;
}

static void end_all(struct world *w, const char *key)
{
    struct hf_fault fault = {0};
    must(lease_break(w->l, key, strlen(key), &fault), &fault);
}

static void fences_grow_over_release_expiry_and_breaking(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "fences");
    int64_t last = 0;
    for (int i = 0; i < 50; i++) { /* as fast as possible: a clock must not give a fence twice */
        struct party p;
        party_init(&p, key);
        assert_int_equal(acquire(w->l, &p), HF_DONE);
        if (w->info->fence != HF_FENCE_NONE)
            assert_true(p.v.fence > last);
        last = p.v.fence;
        assert_int_equal(release(w->l, &p), HF_DONE);
    }
    for (int i = 0; i < 5; i++) {
        last = grant_after(w, key, last);
        end_all(w, key);
    }
    struct party p;
    party_init(&p, key);
    p.r.ttl_ms = w->info->ttl_min_ms;
    assert_int_equal(acquire(w->l, &p), HF_DONE);
    last = p.v.fence;
    party_new_owner(&p)->ttl_ms = LONG_MS;
    acquire_within(w->l, &p, w->info->ttl_min_ms + 10000);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(p.v.fence > last);
    assert_int_equal(release(w->l, &p), HF_DONE);
}

static void breaking_ends_the_holder_and_its_renewals(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "break");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    end_all(w, key); /* it has no holder: nothing to do */
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    end_all(w, key);
    assert_int_equal(renew(w->l, &a), HF_LOST);
    assert_int_equal(acquire(w->l, &b), HF_DONE);
    assert_int_equal(release(w->l, &a), HF_LOST);
    assert_int_equal(renew(w->l, &b), HF_DONE);
    assert_int_equal(release(w->l, &b), HF_DONE);
}

#define BATCH 40
static void a_batch_gets_a_verdict_for_each(void **state)
{
    struct world *w = *state;
    struct party p[BATCH], rival;
    struct lease_request requests[BATCH];
    struct lease_verdict verdicts[BATCH];
    struct hf_fault fault = {0};
    for (int i = 0; i < BATCH; i++) {
        char key[64];
        key_make(key, "batch");
        party_init(&p[i], key);
        requests[i] = p[i].r;
    }
    party_init(&rival, p[7].key);
    assert_int_equal(acquire(w->l, &rival), HF_DONE);
    for (int i = 0; i < BATCH; i++)
        assert_int_equal(acquire(w->l, &p[i]), i == 7 ? HF_TAKEN : HF_DONE);
    must(lease_renew(w->l, requests, BATCH, verdicts, &fault), &fault);
    for (int i = 0; i < BATCH; i++)
        assert_int_equal(verdicts[i].result, i == 7 ? HF_LOST : HF_DONE);
    must(lease_release(w->l, requests, BATCH, verdicts, &fault), &fault);
    for (int i = 0; i < BATCH; i++)
        assert_int_equal(verdicts[i].result, i == 7 ? HF_LOST : HF_DONE);
    assert_int_equal(renew(w->l, &rival), HF_DONE);
    assert_int_equal(release(w->l, &rival), HF_DONE);
}

/* The lock has this one holder, which asked at `from_ms`.  Returns the number of waiters. */
static size_t shows_holder(struct world *w, const struct party *a, int64_t from_ms)
{
    char owner[2 * LEASE_OWNER_SIZE + 1];
    struct lease_state s = inspect(w->l, a->key);
    size_t n_waiters = s.n_waiters;
    assert_int_equal(s.n_holders, 1);
    lease_owner_text(a->r.owner, owner);
    assert_string_equal(s.holders[0].owner, owner);
    assert_string_equal(s.holders[0].label, a->r.label);
    assert_int_equal(s.holders[0].mode, HF_EXCLUSIVE);
    assert_int_equal(s.holders[0].fence, a->v.fence);
    assert_remaining(s.holders[0].remaining_ms, LONG_MS, from_ms);
    assert_in_range(s.holders[0].held_ms + 1, 0, now_ms() - from_ms + 5000);
    assert_int_equal(s.holders[0].slot, 0);
    assert_int_equal(s.last_fence, a->v.fence);
    lease_state_close(&s);
    return n_waiters;
}

/* Also while another waits for the lock, and once it has been asked for again and renewed. */
PATIENT_CLAIM(inspecting_shows_the_holder)
{
    char key[64], label[LEASE_LABEL_MAX + 1];
    key_make(key, "inspect");
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders + s.n_waiters, 0);
    lease_state_close(&s);
    struct party a, b;
    party_init(&a, key);
    party_queued(&b, key);
    memset(label, 'x', sizeof label);
    memcpy(label, "web-3 é'\"%", strlen("web-3 é'\"%"));
    label[LEASE_LABEL_MAX] = '\0';
    a.r.label = label;
    a.r.label_len = LEASE_LABEL_MAX;
    int64_t from_ms = now_ms();
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    int64_t fence = a.v.fence;
    assert_int_equal(shows_holder(w, &a, from_ms), 0);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &b), HF_TAKEN);
    JUDGE_PLACES(shows_holder(w, &a, from_ms) == w->info->fair, asked_ms);
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    assert_int_equal(a.v.fence, fence);
    assert_int_equal(renew(w->l, &a), HF_DONE);
    assert_int_equal(a.v.fence, fence);
    (void)shows_holder(w, &a, from_ms);
    (void)release(w->l, &b);
    assert_int_equal(release(w->l, &a), HF_DONE);
    s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 0);
    lease_state_close(&s);
    return true;
}

static int64_t last_fence(struct world *w, const char *key)
{
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 0);
    int64_t fence = s.last_fence;
    lease_state_close(&s);
    return fence;
}

static void assert_last_fence(struct world *w, const char *key, int64_t fence)
{
    assert_int_equal(last_fence(w, key), w->info->traits & HF_TRAIT_FORGETS_FENCE ? 0 : fence);
}

/* The lease ends by itself; a back end may notice that a little later. */
static void await_end(struct world *w, const char *key, int64_t ttl_ms)
{
    int64_t from_ms = now_ms();
    size_t n_holders;
    rest_ms(ttl_ms + 50);
    do {
        struct lease_state s = inspect(w->l, key);
        n_holders = s.n_holders;
        lease_state_close(&s);
        assert_true(now_ms() - from_ms < ttl_ms + 10000);
    } while (n_holders > 0);
}

/* Returns false if a lease that should run out ended with its client's session instead, because
 * one of the two was kept from running: then nobody was there to note the fence. */
PATIENT_CLAIM(a_free_lock_shows_its_own_last_fence)
{
    if (w->info->fence == HF_FENCE_NONE)
        return true;
    char key[64], other_key[64], never[64];
    key_make(key, "last fence");
    key_make(other_key, "other");
    key_make(never, "never");
    struct party a, other;
    struct hf_fault fault = {0};
    party_init(&other, other_key);
    for (int end = 0; end < 3; end++) {
        party_init(&a, key);
        a.r.ttl_ms = end == 1 ? w->info->ttl_min_ms : LONG_MS;
        assert_int_equal(acquire(w->l, &a), HF_DONE);
        assert_int_equal(acquire(w->l, &other), HF_DONE); /* whose fence is larger */
        int64_t fence = a.v.fence, other_fence = other.v.fence;
        if (end == 0)
            assert_int_equal(release(w->l, &a), HF_DONE);
        else if (end == 1)
            await_end(w, key, w->info->ttl_min_ms);
        else
            must(lease_break(w->l, key, strlen(key), &fault), &fault);
        if (end == 1 && !w->info->outlives && last_fence(w, key) == 0) {
            assert_int_equal(release(w->l, &other), HF_DONE);
            return false;
        }
        assert_last_fence(w, key, fence);
        assert_int_equal(release(w->l, &other), HF_DONE);
        assert_last_fence(w, key, fence);
        assert_last_fence(w, other_key, other_fence);
    }
    /* Waiters draw numbers, too; a grant from the queue counts as any other. */
    struct party next;
    party_init(&a, key);
    party_queued(&next, key);
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    assert_int_equal(acquire(w->l, &next), HF_TAKEN);
    assert_int_equal(release(w->l, &a), HF_DONE);
    assert_int_equal(acquire(w->l, &next), HF_DONE);
    int64_t fence = next.v.fence;
    assert_int_equal(release(w->l, &next), HF_DONE);
    assert_last_fence(w, key, fence);
    assert_last_fence(w, never, 0);
    return true;
}

static void note_finding(void *ctx, const struct hf_finding *finding)
{
    assert_int_equal(finding->size, sizeof *finding);
    assert_in_range(finding->grade, HF_GOOD, HF_DANGER);
    assert_true(strlen(finding->topic) > 1 && strlen(finding->text) > 8);
    ++*(int *)ctx;
}

static void examining_finds_something_and_changes_nothing(void **state)
{
    struct world *w = *state;
    if (!w->driver->examine)
        return; /* nothing to examine */
    char key[64];
    key_make(key, "examine");
    struct party a;
    party_init(&a, key);
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    int findings = 0;
    struct hf_fault fault = {0};
    must(lease_examine(w->l, note_finding, &findings, &fault), &fault);
    assert_true(findings > 0);
    assert_int_equal(renew(w->l, &a), HF_DONE);
    assert_int_equal(release(w->l, &a), HF_DONE);
}

struct names {
    size_t n, stop_at;
    char names[16][64];
};

static bool note_name(void *ctx, const char *name)
{
    struct names *names = ctx;
    assert_true(names->n < 16);
    snprintf(names->names[names->n++], 64, "%s", name);
    return names->n != names->stop_at;
}

struct many {
    int n;
    char last[LEASE_NAME_MAX + 1];
};

static bool note_larger(void *ctx, const char *name)
{
    struct many *many = ctx;
    assert_true(strcmp(name, many->last) > 0);
    snprintf(many->last, sizeof many->last, "%s", name);
    many->n++;
    return true;
}

static void listing_is_by_prefix_in_order_and_exact(void **state)
{
    struct world *w = *state;
    static const char *const keys[] = {"l%st/b", "l%st/a",   "l%st/é",  "l%st/ab", "l%st/*",
                                       "l%st/?", "l%st/[x]", "l%st/\\", "lXst/a",  "}:lock"};
    static const char *const ordered[] = {"l%st/*", "l%st/?",  "l%st/[x]", "l%st/\\",
                                          "l%st/a", "l%st/ab", "l%st/b",   "l%st/é"};
    enum { KEYS = sizeof keys / sizeof *keys, ORDERED = sizeof ordered / sizeof *ordered };
    struct party p[KEYS], waiter;
    for (int i = 0; i < KEYS; i++) {
        party_init(&p[i], keys[i]);
        assert_int_equal(acquire(w->l, &p[i]), HF_DONE);
    }
    party_queued(&waiter, "l%st/b"); /* a name with a waiter is listed once */
    assert_int_equal(acquire(w->l, &waiter), HF_TAKEN);
    struct names names = {0};
    struct hf_fault fault = {0};
    must(lease_list(w->l, "l%st/", 5, note_name, &names, &fault), &fault);
    assert_int_equal(names.n, ORDERED);
    for (int i = 0; i < ORDERED; i++)
        assert_string_equal(names.names[i], ordered[i]);
    static const char *const one_each[] = {"l%st/*", "l%st/[x", "l%st/\\", "}"};
    for (int i = 0; i < 4; i++) {
        names = (struct names){0};
        must(lease_list(w->l, one_each[i], strlen(one_each[i]), note_name, &names, &fault), &fault);
        assert_int_equal(names.n, 1);
        assert_memory_equal(names.names[0], one_each[i], strlen(one_each[i]));
    }
    struct many all = {0};
    must(lease_list(w->l, "", 0, note_larger, &all, &fault), &fault);
    assert_true(all.n >= KEYS);
    names = (struct names){.stop_at = 2};
    must(lease_list(w->l, "l%st/", 5, note_name, &names, &fault), &fault);
    assert_int_equal(names.n, 2);
    static const char *const nothing[] = {"l*st/", "l?st/", "l%st/_", "l%st/[a]", "L%ST/"};
    for (int i = 0; i < 5; i++) {
        names = (struct names){0};
        must(lease_list(w->l, nothing[i], strlen(nothing[i]), note_name, &names, &fault), &fault);
        assert_int_equal(names.n, 0);
    }
    (void)release(w->l, &waiter);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(release(w->l, &p[i]), HF_DONE);
    names = (struct names){0};
    must(lease_list(w->l, "l%st/", 5, note_name, &names, &fault), &fault);
    assert_int_equal(names.n, 0);
}

#define MANY (13 * BATCH) /* more than one page of any driver */
static void a_long_list_has_each_name_once(void **state)
{
    struct world *w = *state;
    struct party *p = hf_alloc(MANY * sizeof *p);
    struct lease_request *requests = hf_alloc(MANY * sizeof *requests);
    struct lease_verdict *verdicts = hf_alloc(MANY * sizeof *verdicts);
    struct hf_fault fault = {0};
    for (int i = 0; i < MANY; i++) {
        char key[64];
        snprintf(key, sizeof key, "long-list/%d", i);
        party_init(&p[i], key);
        requests[i] = p[i].r;
        assert_int_equal(acquire(w->l, &p[i]), HF_DONE);
    }
    struct many many = {0};
    must(lease_list(w->l, "long-list/", 10, note_larger, &many, &fault), &fault);
    assert_int_equal(many.n, MANY);
    for (int i = 0; i < MANY; i += BATCH)
        must(lease_release(w->l, &requests[i], BATCH, &verdicts[i], &fault), &fault);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(verdicts[i].result, HF_DONE);
    free(p);
    free(requests);
    free(verdicts);
}

/* The last claim of this file: the back end restarts. */
static void restart_keeps_what_is_promised(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "restart");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    int64_t last = grant_after(w, key, 0);
    end_all(w, key);
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(a.v.fence > last);
    last = a.v.fence;
    for (int64_t end_ms = now_ms() + 20000;
         w->backend->is_stored && !w->backend->is_stored(w->backend, key) && now_ms() < end_ms;)
        assert_int_equal(renew(w->l, &a), HF_DONE);
    if (w->backend->restart) {
        w->backend->restart(w->backend); /* the handle stays open and reconnects */
    } else {
        lease_close(w->l);
        w->l = handle_open(w);
    }
    enum hf_result other = acquire_again(w->l, &b);
    if (w->backend->leases_survive_restart) {
        assert_int_equal(other, HF_TAKEN);
        assert_int_equal(renew_again(w->l, &a), HF_DONE);
        assert_int_equal(a.v.fence, last);
        assert_int_equal(release(w->l, &a), HF_DONE);
        assert_int_equal(acquire(w->l, &b), HF_DONE);
    } else {
        assert_int_equal(other, HF_DONE);
        assert_int_equal(renew(w->l, &a), HF_LOST);
        assert_int_equal(release(w->l, &a), HF_LOST);
    }
    if (w->info->fence == HF_FENCE_COUNTER)
        assert_true(b.v.fence > 0); /* starts again, as declared */
    else if (w->info->fence != HF_FENCE_NONE)
        assert_true(b.v.fence > last);
    assert_int_equal(release(w->l, &b), HF_DONE);
}

static void a_lease_lives_while_its_open_has_a_handle(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "handles");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    struct lease *first = handle_open(w), *second = handle_clone(first);
    assert_int_equal(acquire(first, &a), HF_DONE);
    lease_close(first);
    assert_int_equal(acquire(w->l, &b), HF_TAKEN);
    assert_int_equal(renew(second, &a), HF_DONE);
    lease_close(second);
    if (w->info->outlives) {
        assert_int_equal(acquire(w->l, &b), HF_TAKEN);
        assert_int_equal(release(w->l, &a), HF_DONE); /* by the owner, through whatever handle */
    }
    (void)acquire_within(w->l, &b, LONG_MS / 3);
    assert_int_equal(release(w->l, &b), HF_DONE);
}

static void fences_grow_over_a_flush(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "flush");
    struct party a, b;
    party_init(&a, key);
    party_init(&b, key);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(acquire(w->l, &a), HF_DONE);
        w->backend->flush(w->backend);
        assert_int_equal(renew(w->l, &a), HF_LOST);
        assert_int_equal(acquire(w->l, &b), HF_DONE);
        if (w->info->fence == HF_FENCE_CLOCK)
            assert_true(b.v.fence > a.v.fence);
        assert_int_equal(release(w->l, &b), HF_DONE);
    }
}

const struct claim leases_claims[] = {
    CLAIM(one_holds_and_the_other_does_not, 0),
    CLAIM(names_that_look_alike_are_different_locks, 0),
    CLAIM(acquire_repeated_finds_the_same_grant, 0),
    CLAIM(a_wrong_owner_changes_nothing, 0),
    CLAIM(a_lease_that_is_not_renewed_ends_and_not_before, 0),
    CLAIM(renewal_extends_and_keeps_the_fence, 0),
    CLAIM(renewal_never_revives, 0),
    CLAIM(fences_grow_over_release_expiry_and_breaking, 0),
    CLAIM(breaking_ends_the_holder_and_its_renewals, 0),
    CLAIM(a_batch_gets_a_verdict_for_each, 0),
    CLAIM(inspecting_shows_the_holder, 0),
    CLAIM(a_free_lock_shows_its_own_last_fence, 0),
    CLAIM(examining_finds_something_and_changes_nothing, 0),
    CLAIM(listing_is_by_prefix_in_order_and_exact, 0),
    CLAIM(a_long_list_has_each_name_once, 0),
    CLAIM(a_lease_lives_while_its_open_has_a_handle, NEEDS_PROCESSES),
    CLAIM(fences_grow_over_a_flush, NEEDS_FLUSH),
    CLAIM(restart_keeps_what_is_promised, 0),
    {0},
};
