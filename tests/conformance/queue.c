/* Claims about waiters: order, places, modes, slots, and which of them are woken when. */
#include "conformance.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SHORT_MS 400
#define WAIT_MS 20000 /* threads in wait() are woken before, or the claim fails */

/* The holder releases; all `n`, which asked at `asked_ms` or later, ask, and only the first in
 * `order` is granted, and releases; then the next. */
static bool served_in_order(struct world *w, struct party *holder, struct party *p,
                            const int *order, int n, int64_t asked_ms)
{
    int64_t since_ms = now_ms();
    assert_int_equal(release(w->l, holder), HF_DONE);
    for (int turn = 0; turn < n; turn++) {
        for (int i = n; i-- > turn + 1;)
            if (!waits_for_turn(w->l, &p[order[i]], asked_ms, since_ms))
                return false;
        if (acquire(w->l, &p[order[turn]]) != HF_DONE) {
            assert_true(now_ms() - since_ms >= WAITER_CLAIM_MS || place_may_be_lost(asked_ms));
            return false;
        }
        int64_t next_ms = now_ms();
        for (int i = turn + 1; i < n; i++) {
            assert_int_equal(acquire(w->l, &p[order[i]]), HF_TAKEN);
            JUDGE_PLACES(p[order[i]].v.position == (size_t)(i - turn), asked_ms);
        }
        asked_ms = next_ms;
        since_ms = now_ms();
        assert_int_equal(release(w->l, &p[order[turn]]), HF_DONE);
    }
    return true;
}

PATIENT_CLAIM(waiters_are_served_in_the_order_of_arrival)
{
    char key[64];
    key_make(key, "fifo");
    struct party holder, p[5], late;
    party_init(&holder, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    for (int i = 0; i < 5; i++) {
        party_queued(&p[i], key);
        assert_int_equal(acquire(w->l, &p[i]), HF_TAKEN);
        JUDGE_PLACES(p[i].v.position == (w->info->fair ? (size_t)i + 1 : 0), asked_ms);
    }
    if (!w->info->fair) { /* no places: the first to ask when it is free gets it */
        assert_int_equal(release(w->l, &holder), HF_DONE);
        assert_int_equal(acquire(w->l, &p[4]), HF_DONE);
        assert_int_equal(release(w->l, &p[4]), HF_DONE);
        return true;
    }
    struct lease_state s = inspect(w->l, key);
    if (s.n_waiters != 5) {
        lease_state_close(&s);
        JUDGE_PLACES(s.n_waiters == 5, asked_ms);
    }
    for (int i = 0; i < 5; i++) {
        char owner[2 * LEASE_OWNER_SIZE + 1];
        lease_owner_text(p[i].r.owner, owner);
        assert_string_equal(s.waiters[i].owner, owner);
        assert_int_equal(s.waiters[i].fence, 0);
        assert_int_equal(s.waiters[i].held_ms, -1);
        assert_in_range(s.waiters[i].remaining_ms, 1, WAITER_SILENT_MS);
    }
    lease_state_close(&s);
    party_init(&late, key);
    assert_int_equal(acquire(w->l, &late), HF_TAKEN);
    assert_int_equal(late.v.position, 0);
    if (!served_in_order(w, &holder, p, (const int[]){0, 1, 2, 3, 4}, 5, asked_ms))
        return false;
    assert_int_equal(acquire(w->l, &late), HF_DONE);
    assert_int_equal(release(w->l, &late), HF_DONE);
    return true;
}

/* A turn is not a lease: `holdfast run -n` takes what nobody holds.  The turn of the first waiter
 * begins anew after that. */
PATIENT_CLAIM(a_request_without_a_place_takes_what_nobody_holds)
{
    char key[64];
    key_make(key, "barge");
    struct party holder, dead, next, now;
    party_init(&holder, key);
    party_queued(&dead, key);
    party_queued(&next, key);
    party_init(&now, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &dead), HF_TAKEN);
    assert_int_equal(acquire(w->l, &next), HF_TAKEN);
    assert_int_equal(acquire(w->l, &now), HF_TAKEN);
    assert_int_equal(release(w->l, &holder), HF_DONE);
    if (w->info->traits & HF_TRAIT_HANDS_OVER) /* once the waiter has not claimed it */
        assert_true(acquire_within(w->l, &now, WAIT_MS) >= WAITER_CLAIM_MS - 50);
    else
        assert_int_equal(acquire(w->l, &now), HF_DONE);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(now.v.fence > holder.v.fence);
    if (w->info->traits & HF_TRAIT_HANDS_OVER) { /* they are there, after all */
        asked_ms = now_ms();
        assert_int_equal(acquire(w->l, &dead), HF_TAKEN);
        assert_int_equal(dead.v.position, 1);
        assert_int_equal(acquire(w->l, &next), HF_TAKEN);
    }
    rest_ms(WAITER_CLAIM_MS);
    int64_t since_ms = now_ms();
    assert_int_equal(release(w->l, &now), HF_DONE);
    if (w->info->fair && !waits_for_turn(w->l, &next, asked_ms, since_ms))
        return false;
    JUDGE_PLACES(acquire(w->l, &dead) == HF_DONE, asked_ms);
    assert_int_equal(release(w->l, &dead), HF_DONE);
    assert_int_equal(acquire(w->l, &next), HF_DONE);
    assert_int_equal(release(w->l, &next), HF_DONE);
    return true;
}

/* `dead` does not claim its turn, and `next` is granted.  Returns a moment before `dead` asked. */
static int64_t pass_over(struct world *w, const char *key, struct party *dead, struct party *next)
{
    struct party holder;
    party_init(&holder, key);
    party_queued(dead, key);
    party_queued(next, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, dead), HF_TAKEN);
    assert_int_equal(acquire(w->l, next), HF_TAKEN);
    int64_t since_ms = now_ms();
    assert_int_equal(release(w->l, &holder), HF_DONE);
    (void)acquire_within(w->l, next, WAIT_MS);
    assert_true(now_ms() - since_ms >= WAITER_CLAIM_MS - 5 || place_may_be_lost(asked_ms));
    return asked_ms;
}

/* It is shown until it asks again, or has lost its place, as declared.  Then it counts again. */
PATIENT_CLAIM(a_waiter_that_was_passed_over_keeps_its_place_or_queues_anew)
{
    const bool keeps = !(w->info->traits & HF_TRAIT_QUEUES_ANEW);
    char key[64], owner[2 * LEASE_OWNER_SIZE + 1];
    key_make(key, "passed");
    struct party dead, next, third;
    int64_t asked_ms = pass_over(w, key, &dead, &next);
    party_queued(&third, key);
    assert_int_equal(acquire(w->l, &third), HF_TAKEN);
    struct lease_state s = inspect(w->l, key);
    lease_owner_text(dead.r.owner, owner);
    /* Where locks are handed over, it is shown behind those that can be served. */
    size_t at = w->info->traits & HF_TRAIT_HANDS_OVER ? 1 : 0;
    bool is_shown = s.n_waiters == 2 && strcmp(s.waiters[at].owner, owner) == 0;
    lease_state_close(&s);
    JUDGE_PLACES(is_shown == keeps, asked_ms);
    asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &dead), HF_TAKEN);
    assert_int_equal(acquire(w->l, &third), HF_TAKEN);
    JUDGE_PLACES(dead.v.position == (keeps ? 1 : 2) && third.v.position == (keeps ? 2 : 1),
                 asked_ms);
    struct party *const first = keeps ? &dead : &third, *const second = keeps ? &third : &dead;
    int64_t since_ms = now_ms();
    assert_int_equal(release(w->l, &next), HF_DONE);
    if (!waits_for_turn(w->l, second, asked_ms, since_ms))
        return false;
    JUDGE_PLACES(acquire(w->l, first) == HF_DONE, asked_ms);
    assert_int_equal(release(w->l, first), HF_DONE);
    assert_int_equal(acquire(w->l, second), HF_DONE);
    assert_int_equal(release(w->l, second), HF_DONE);
    return true;
}

PATIENT_CLAIM(a_waiter_that_was_passed_over_still_says_how_many_slots_there_are)
{
    char key[64];
    key_make(key, "passed slots");
    struct party dead, next, odd;
    int64_t asked_ms = pass_over(w, key, &dead, &next);
    assert_int_equal(release(w->l, &next), HF_DONE);
    party_init(&odd, key);
    odd.r.slots = 2;
    enum hf_result result = try_acquire(w->l, &odd);
    JUDGE_PLACES(result == HF_BAD_REQUEST, asked_ms);
    assert_fault(result, HF_BAD_REQUEST, &odd.fault);
    (void)release(w->l, &dead);
    return true;
}

PATIENT_CLAIM(the_larger_priority_goes_first)
{
    char key[64];
    key_make(key, "priority");
    static const int priorities[] = {0, -5, 7, 0, 7, INT_MAX, INT_MIN};
    struct party holder, p[7];
    party_init(&holder, key);
    if (!w->info->priority) {
        holder.r.priority = 1;
        assert_fault(try_acquire(w->l, &holder), HF_UNSUPPORTED, &holder.fault);
        return true;
    }
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    for (int i = 0; i < 7; i++) {
        party_queued(&p[i], key);
        p[i].r.priority = priorities[i];
        assert_int_equal(acquire(w->l, &p[i]), HF_TAKEN);
    }
    struct lease_state s = inspect(w->l, key);
    bool is_ordered = s.n_waiters == 7 && s.waiters[0].priority > 7 && s.waiters[6].priority < -5;
    lease_state_close(&s);
    JUDGE_PLACES(is_ordered, asked_ms);
    return served_in_order(w, &holder, p, (const int[]){5, 2, 4, 0, 3, 1, 6}, 7, asked_ms);
}

PATIENT_CLAIM(a_place_given_up_is_gone)
{
    char key[64];
    key_make(key, "giveup");
    struct party holder, a, b;
    party_init(&holder, key);
    party_queued(&a, key);
    party_queued(&b, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &a), HF_TAKEN);
    assert_int_equal(acquire(w->l, &b), HF_TAKEN);
    assert_int_equal(renew(w->l, &a), HF_LOST); /* a place is no lease */
    JUDGE_PLACES(release(w->l, &a) == HF_DONE, asked_ms);
    assert_int_equal(release(w->l, &a), HF_LOST);
    assert_int_equal(acquire(w->l, &b), HF_TAKEN);
    assert_int_equal(b.v.position, 1);
    assert_int_equal(release(w->l, &holder), HF_DONE);
    assert_int_equal(acquire(w->l, &b), HF_DONE);
    assert_int_equal(release(w->l, &b), HF_DONE);
    return true;
}

/* ---- modes and slots ---- */

static void party_shared(struct party *p, const char *key)
{
    party_queued(p, key);
    p->r.mode = HF_SHARED;
}

PATIENT_CLAIM(shared_holders_stand_beside_each_other)
{
    char key[64];
    key_make(key, "shared");
    struct party r1, r2, writer;
    party_shared(&r1, key);
    party_shared(&r2, key);
    party_init(&writer, key);
    if (!w->info->shared) {
        assert_fault(try_acquire(w->l, &r1), HF_UNSUPPORTED, &r1.fault);
        return true;
    }
    assert_int_equal(acquire(w->l, &r1), HF_DONE);
    assert_int_equal(acquire(w->l, &r2), HF_DONE);
    if (w->info->fence != HF_FENCE_NONE)
        assert_true(r2.v.fence > r1.v.fence);
    assert_int_equal(acquire(w->l, &writer), HF_TAKEN);
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 2);
    assert_int_equal(s.holders[0].mode, HF_SHARED);
    assert_int_equal(s.holders[1].mode, HF_SHARED);
    lease_state_close(&s);
    assert_int_equal(renew(w->l, &r2), HF_DONE);
    assert_int_equal(release(w->l, &r1), HF_DONE);
    assert_int_equal(acquire(w->l, &writer), HF_TAKEN);
    assert_int_equal(release(w->l, &r2), HF_DONE);
    assert_int_equal(acquire(w->l, &writer), HF_DONE);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &r1), HF_TAKEN);
    JUDGE_PLACES(release(w->l, &r1) == (w->info->fair ? HF_DONE : HF_LOST), asked_ms);
    assert_int_equal(release(w->l, &writer), HF_DONE);
    return true;
}

PATIENT_CLAIM(readers_do_not_starve_a_writer_nor_writers_a_reader)
{
    char key[64];
    key_make(key, "starve");
    struct party r1, r2, r3, writer, last;
    party_shared(&r1, key);
    party_queued(&writer, key);
    party_shared(&r2, key);
    party_shared(&r3, key);
    party_queued(&last, key);
    assert_int_equal(acquire(w->l, &r1), HF_DONE);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &writer), HF_TAKEN);
    JUDGE_PLACES(acquire(w->l, &r2) == HF_TAKEN, asked_ms); /* behind the writer */
    JUDGE_PLACES(acquire(w->l, &r3) == HF_TAKEN, asked_ms);
    assert_int_equal(acquire(w->l, &last), HF_TAKEN);
    JUDGE_PLACES(last.v.position == 4, asked_ms);
    int64_t since_ms = now_ms();
    assert_int_equal(release(w->l, &r1), HF_DONE);
    if (!waits_for_turn(w->l, &r2, asked_ms, since_ms))
        return false;
    JUDGE_PLACES(acquire(w->l, &writer) == HF_DONE, asked_ms);
    since_ms = now_ms();
    assert_int_equal(release(w->l, &writer), HF_DONE);
    if (!waits_for_turn(w->l, &last, asked_ms, since_ms))
        return false;
    JUDGE_PLACES(acquire(w->l, &r3) == HF_DONE, asked_ms); /* both readers, in any order */
    assert_int_equal(acquire(w->l, &r2), HF_DONE);
    assert_int_equal(acquire(w->l, &last), HF_TAKEN);
    assert_int_equal(release(w->l, &r2), HF_DONE);
    assert_int_equal(release(w->l, &r3), HF_DONE);
    assert_int_equal(acquire(w->l, &last), HF_DONE);
    assert_int_equal(release(w->l, &last), HF_DONE);
    return true;
}

static void a_reader_of_larger_priority_passes_the_waiting_writer(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "passes");
    struct party r1, r2, writer;
    party_shared(&r1, key);
    party_queued(&writer, key);
    party_shared(&r2, key);
    r2.r.priority = 1;
    assert_int_equal(acquire(w->l, &r1), HF_DONE);
    assert_int_equal(acquire(w->l, &writer), HF_TAKEN);
    assert_int_equal(acquire(w->l, &r2), HF_DONE);
    assert_int_equal(release(w->l, &r1), HF_DONE);
    assert_int_equal(acquire(w->l, &writer), HF_TAKEN);
    assert_int_equal(release(w->l, &r2), HF_DONE);
    assert_int_equal(acquire(w->l, &writer), HF_DONE);
    assert_int_equal(release(w->l, &writer), HF_DONE);
}

PATIENT_CLAIM(slots_limit_the_number_of_holders)
{
    char key[64];
    key_make(key, "slots");
    struct party p[4], q, odd;
    for (int i = 0; i < 4; i++) {
        party_init(&p[i], key);
        p[i].r.slots = 3;
    }
    if (!w->info->slots) {
        assert_fault(try_acquire(w->l, &p[0]), HF_UNSUPPORTED, &p[0].fault);
        return true;
    }
    int64_t last = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(acquire(w->l, &p[i]), HF_DONE);
        if (w->info->fence != HF_FENCE_NONE)
            assert_true(p[i].v.fence > last);
        last = p[i].v.fence;
        assert_int_equal(p[i].v.slot, i);
    }
    assert_int_equal(renew(w->l, &p[2]), HF_DONE);
    assert_int_equal(p[2].v.slot, 2);
    assert_int_equal(acquire(w->l, &p[2]), HF_DONE);
    assert_int_equal(p[2].v.slot, 2);
    assert_int_equal(acquire(w->l, &p[3]), HF_TAKEN);
    party_init(&odd, key);
    odd.r.slots = 5;
    assert_fault(try_acquire(w->l, &odd), HF_BAD_REQUEST, &odd.fault);
    assert_non_null(strchr(odd.fault.msg, '3')); /* both numbers are named */
    assert_non_null(strchr(odd.fault.msg, '5'));
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, 3);
    assert_int_equal(s.holders[0].slot + s.holders[1].slot + s.holders[2].slot, 3);
    lease_state_close(&s);
    if (w->info->fair) {
        party_queued(&q, key);
        q.r.slots = 3;
        int64_t asked_ms = now_ms();
        assert_int_equal(acquire(w->l, &q), HF_TAKEN);
        int64_t since_ms = now_ms();
        assert_int_equal(release(w->l, &p[1]), HF_DONE);
        if (!waits_for_turn(w->l, &p[3], asked_ms, since_ms)) /* q came first */
            return false;
        assert_int_equal(acquire(w->l, &q), HF_DONE);
        assert_int_equal(q.v.slot, 1); /* the one that is free again */
        assert_int_equal(release(w->l, &q), HF_DONE);
    } else {
        assert_int_equal(release(w->l, &p[1]), HF_DONE);
    }
    assert_int_equal(acquire(w->l, &p[3]), HF_DONE);
    assert_int_equal(release(w->l, &p[0]), HF_DONE);
    assert_int_equal(release(w->l, &p[2]), HF_DONE);
    assert_int_equal(release(w->l, &p[3]), HF_DONE);
    assert_int_equal(acquire(w->l, &odd), HF_DONE); /* no other holder or waiter disagrees now */
    assert_int_equal(release(w->l, &odd), HF_DONE);
    return true;
}

#define SLOTS 40
static void slots_are_the_lowest_free_ones(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "lowest");
    struct party p[SLOTS];
    for (unsigned i = 0; i < SLOTS; i++) {
        party_init(&p[i], key);
        p[i].r.slots = SLOTS;
        assert_int_equal(acquire(w->l, &p[i]), HF_DONE);
        assert_int_equal(p[i].v.slot, i);
        assert_int_equal(renew(w->l, &p[i]), HF_DONE);
        assert_int_equal(p[i].v.slot, i);
    }
    static const unsigned gone[] = {7, 31, 2}, again[] = {2, 7, 31};
    for (int i = 0; i < 3; i++)
        assert_int_equal(release(w->l, &p[gone[i]]), HF_DONE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(acquire(w->l, &p[gone[i]]), HF_DONE);
        assert_int_equal(p[gone[i]].v.slot, again[i]);
    }
    bool seen[SLOTS] = {false};
    struct lease_state s = inspect(w->l, key);
    assert_int_equal(s.n_holders, SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        assert_in_range(s.holders[i].slot, 0, SLOTS - 1);
        assert_false(seen[s.holders[i].slot]);
        seen[s.holders[i].slot] = true;
        assert_in_range(s.holders[i].held_ms + 1, 0, LONG_MS);
    }
    lease_state_close(&s);
    for (int i = 0; i < SLOTS; i++)
        assert_int_equal(release(w->l, &p[i]), HF_DONE);
}

static void a_slot_is_free_again_when_its_lease_ends(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "slot ends");
    struct party a, b, c;
    party_init(&a, key);
    party_init(&b, key);
    party_init(&c, key);
    a.r.slots = b.r.slots = c.r.slots = 2;
    b.r.ttl_ms = SHORT_MS > w->info->ttl_min_ms ? SHORT_MS : w->info->ttl_min_ms;
    assert_int_equal(acquire(w->l, &a), HF_DONE);
    assert_int_equal(acquire(w->l, &b), HF_DONE);
    assert_int_equal(b.v.slot, 1);
    (void)acquire_within(w->l, &c, WAIT_MS);
    assert_int_equal(c.v.slot, 1);
    assert_int_equal(release(w->l, &a), HF_DONE);
    assert_int_equal(release(w->l, &c), HF_DONE);
}

/* ---- waiting ---- */

struct waiting {
    struct lease *l;
    struct party p;
    int64_t timeout_ms;
    pthread_t thread;
    enum hf_result result;
    struct hf_fault fault;
    _Atomic int64_t returned_ms;
    int64_t ends_ms; /* see wait_for_grant */
};

static void *wait_run(void *arg)
{
    struct waiting *x = arg;
    do
        x->result = lease_wait(x->l, &x->p.r, x->timeout_ms, &x->fault);
    while (x->timeout_ms < WAIT_MS && x->result == HF_DONE && try_acquire(x->l, &x->p) == HF_DONE &&
           x->p.v.result == HF_TAKEN);
    atomic_store(&x->returned_ms, now_ms());
    return NULL;
}

/* Takes a place, and waits on its own thread and handle: once, or, if `timeout_ms` is shorter than
 * WAIT_MS, again and again until it is granted.  Returns false, and does not wait, if it is granted
 * at once. */
static bool waiting_try(struct world *w, struct waiting *x, const char *key, int64_t ttl_ms,
                        int64_t timeout_ms)
{
    x->l = handle_clone(w->l);
    x->timeout_ms = timeout_ms;
    x->fault = (struct hf_fault){0};
    atomic_init(&x->returned_ms, 0);
    party_queued(&x->p, key);
    x->p.r.ttl_ms = ttl_ms;
    if (acquire(x->l, &x->p) != HF_TAKEN)
        return false;
    assert_int_equal(pthread_create(&x->thread, NULL, wait_run, x), 0);
    return true;
}

static void waiting_start(struct world *w, struct waiting *x, const char *key, int64_t ttl_ms)
{
    assert_true(waiting_try(w, x, key, ttl_ms, WAIT_MS));
}

static int64_t waiting_end(struct waiting *x)
{
    pthread_join(x->thread, NULL);
    must(x->result, &x->fault);
    return atomic_load(&x->returned_ms);
}

static void waiting_close(struct waiting *x) { lease_close(x->l); }

/* A wait may end early; the waiter then asks again, as src/lock does.  The lease lasts until
 * x->ends_ms, or longer. */
static int64_t wait_for_grant(struct waiting *x, int64_t most_ms)
{
    int64_t from_ms = now_ms(), asked_ms;
    waiting_end(x);
    while (asked_ms = now_ms(), acquire(x->l, &x->p) != HF_DONE) {
        assert_true(now_ms() - from_ms < most_ms);
        must(lease_wait(x->l, &x->p.r, most_ms, &x->fault), &x->fault);
    }
    x->ends_ms = asked_ms + x->p.v.remaining_ms;
    return now_ms();
}

static void by_release(struct world *w, struct party *holder)
{
    assert_int_equal(release(w->l, holder), HF_DONE);
}

static void by_break(struct world *w, struct party *holder)
{
    struct hf_fault fault = {0};
    must(lease_break(w->l, holder->key, strlen(holder->key), &fault), &fault);
}

/* A wake-up that never comes is never fast. */
static bool wakes_at_once(struct world *w, void (*end)(struct world *, struct party *))
{
    char key[64];
    key_make(key, "wake");
    struct party holder;
    party_init(&holder, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    struct waiting x;
    waiting_start(w, &x, key, LONG_MS);
    rest_ms(100); /* until it sleeps */
    int64_t from_ms = now_ms();
    end(w, &holder);
    int64_t took_ms = wait_for_grant(&x, WAIT_MS) - from_ms;
    assert_int_equal(release(x.l, &x.p), HF_DONE);
    waiting_close(&x);
    return took_ms < 200;
}

PATIENT_CLAIM(a_release_wakes_the_next_at_once) { return wakes_at_once(w, by_release); }
PATIENT_CLAIM(a_break_wakes_the_next_at_once) { return wakes_at_once(w, by_break); }

PATIENT_CLAIM(the_end_of_a_lease_wakes_the_next)
{
    char key[64];
    key_make(key, "endwakes");
    struct party holder;
    party_init(&holder, key);
    holder.r.ttl_ms = SHORT_MS > w->info->ttl_min_ms ? SHORT_MS : w->info->ttl_min_ms;
    int64_t from_ms = now_ms();
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    struct waiting x;
    if (!waiting_try(w, &x, key, LONG_MS, WAIT_MS)) {
        assert_true(now_ms() - from_ms >= holder.r.ttl_ms - 3);
        waiting_close(&x);
        return false;
    }
    int64_t took_ms = wait_for_grant(&x, WAIT_MS) - from_ms;
    assert_in_range(took_ms, holder.r.ttl_ms - 3, holder.r.ttl_ms + 8000);
    assert_int_equal(release(x.l, &x.p), HF_DONE);
    waiting_close(&x);
    return true;
}

/* The second waiter cannot know at the start when its turn will be. */
static void each_end_of_a_lease_wakes_the_one_whose_turn_it_is(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "chain");
    const int64_t ttl_ms = w->info->ttl_min_ms > SHORT_MS ? w->info->ttl_min_ms : SHORT_MS;
    struct party holder;
    party_init(&holder, key);
    holder.r.ttl_ms = LONG_MS;
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    struct waiting x[3];
    for (int i = 0; i < 3; i++) {
        waiting_start(w, &x[i], key, ttl_ms);
    }
    assert_int_equal(release(w->l, &holder), HF_DONE);
    for (int i = 0; i < 3; i++) {
        int64_t at_ms = wait_for_grant(&x[i], WAIT_MS);
        if (i > 0)
            assert_in_range(at_ms, x[i - 1].ends_ms - 3, x[i - 1].ends_ms + 8000);
    }
    for (int i = 0; i < 3; i++)
        waiting_close(&x[i]);
}

PATIENT_CLAIM(a_place_given_up_wakes_the_next)
{
    char key[64];
    key_make(key, "givenup");
    struct party holder, silent;
    party_init(&holder, key);
    party_queued(&silent, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    assert_int_equal(acquire(w->l, &silent), HF_TAKEN);
    struct waiting x;
    waiting_start(w, &x, key, LONG_MS);
    rest_ms(100);
    by_break(w, &holder);
    rest_ms(100); /* now it is the silent one's turn */
    int64_t from_ms = now_ms();
    enum hf_result given = release(w->l, &silent);
    assert_true(given == HF_DONE || (given == HF_LOST && place_may_be_lost(asked_ms)));
    int64_t took_ms = wait_for_grant(&x, WAIT_MS) - from_ms;
    assert_int_equal(release(x.l, &x.p), HF_DONE);
    waiting_close(&x);
    return given == HF_DONE && took_ms < 2500; /* sooner than silence ends */
}

static void a_wait_ends_at_its_timeout(void **state)
{
    struct world *w = *state;
    char key[64];
    key_make(key, "timeout");
    struct party holder;
    party_init(&holder, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    struct party p;
    party_queued(&p, key);
    assert_int_equal(acquire(w->l, &p), HF_TAKEN);
    int64_t from_ms = now_ms();
    must(lease_wait(w->l, &p.r, 300, &p.fault), &p.fault);
    assert_true(now_ms() - from_ms < 10000);
    assert_int_equal(acquire(w->l, &p), HF_TAKEN);
    assert_int_equal(p.v.position, w->info->fair ? 1 : 0);
    assert_int_equal(release(w->l, &holder), HF_DONE);
}

/* Returns how long after that the wait ended. */
static int64_t wake_by_fd(struct world *w)
{
    char key[64];
    key_make(key, "wake fd");
    struct party holder, p;
    struct lease *l = handle_clone(w->l);
    party_init(&holder, key);
    party_queued(&p, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    assert_int_equal(acquire(l, &p), HF_TAKEN);
    l->wake_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(l->wake_fd >= 0);
    struct waiting x = {.l = l, .p = p, .timeout_ms = WAIT_MS};
    x.p.r.key = x.p.key;
    assert_int_equal(pthread_create(&x.thread, NULL, wait_run, &x), 0);
    rest_ms(300); /* a wait may end early, but not for this */
    int64_t from_ms = now_ms();
    assert_int_equal(eventfd_write(l->wake_fd, 1), 0);
    int64_t returned_ms = waiting_end(&x);
    close(l->wake_fd);
    l->wake_fd = -1;
    assert_int_equal(acquire(l, &x.p), HF_TAKEN); /* it still has its place */
    assert_int_equal(x.p.v.position, w->info->fair ? 1 : 0);
    assert_int_equal(release(w->l, &holder), HF_DONE);
    assert_int_equal(acquire_within(l, &x.p, WAIT_MS) < WAIT_MS, true);
    assert_int_equal(release(l, &x.p), HF_DONE);
    lease_close(l);
    return returned_ms - from_ms;
}

PATIENT_CLAIM(a_wait_ends_soon_after_its_wake_fd_is_readable) { return wake_by_fd(w) < 1000; }

#define HERD 12
PATIENT_CLAIM(a_release_wakes_one_waiter_not_all)
{
    char key[64];
    key_make(key, "herd");
    struct party holder;
    party_init(&holder, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    struct waiting x[HERD];
    for (int i = 0; i < HERD; i++)
        waiting_start(w, &x[i], key, LONG_MS);
    rest_ms(100);
    int64_t from_ms = now_ms();
    assert_int_equal(release(w->l, &holder), HF_DONE);
    while (!atomic_load(&x[0].returned_ms) && now_ms() - from_ms < WAIT_MS)
        rest_ms(5);
    rest_ms(200);
    assert_true(atomic_load(&x[0].returned_ms) > 0);
    int awake = 0;
    for (int i = 1; i < HERD; i++)
        awake += atomic_load(&x[i].returned_ms) != 0;
    /* The first does not claim its turn, so the second is told after a while, then the third. */
    bool is_slow = now_ms() - from_ms >= 2 * WAITER_CLAIM_MS - 5;
    assert_true(awake <= 1 || is_slow); /* a wait may end early, but rarely does */
    /* In whatever order: a wait may ask again by itself, and then claims the lock for its waiter. */
    for (int served = 0; served < HERD; rest_ms(5)) {
        assert_true(now_ms() - from_ms < 3 * WAIT_MS);
        for (int i = 0; i < HERD; i++) {
            if (!x[i].l || !atomic_load(&x[i].returned_ms) || acquire(x[i].l, &x[i].p) != HF_DONE)
                continue;
            waiting_end(&x[i]);
            assert_int_equal(release(x[i].l, &x[i].p), HF_DONE);
            waiting_close(&x[i]);
            x[i].l = NULL;
            served++;
        }
    }
    return awake <= 1;
}

/* Some waiters ask once and never again, as if they had been killed.  Returns how long a live
 * waiter behind them waits after the release. */
static int64_t wait_behind_dead(struct world *w, int n_dead)
{
    char key[64];
    key_make(key, "dead");
    struct party holder, dead[3];
    party_init(&holder, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    for (int i = 0; i < n_dead; i++) {
        party_queued(&dead[i], key);
        assert_int_equal(acquire(w->l, &dead[i]), HF_TAKEN);
    }
    struct waiting x;
    waiting_start(w, &x, key, LONG_MS);
    rest_ms(50); /* until it sleeps */
    int64_t from_ms = now_ms();
    assert_int_equal(release(w->l, &holder), HF_DONE);
    int64_t took_ms = wait_for_grant(&x, WAIT_MS) - from_ms;
    assert_true(took_ms >= WAITER_CLAIM_MS - 5 || place_may_be_lost(asked_ms)); /* turns last */
    /* One of them was alive after all: it is served next. */
    assert_int_equal(acquire(w->l, &dead[0]), HF_TAKEN);
    assert_true(dead[0].v.position >= 1);
    assert_int_equal(release(x.l, &x.p), HF_DONE);
    acquire_within(w->l, &dead[0], WAIT_MS);
    assert_int_equal(release(w->l, &dead[0]), HF_DONE);
    waiting_close(&x);
    return took_ms;
}

PATIENT_CLAIM(a_dead_waiter_delays_the_next_by_300_ms_at_most)
{
    return wait_behind_dead(w, 1) <= WAITER_TURN_MAX_MS;
}

PATIENT_CLAIM(several_dead_waiters_do_not_stop_the_queue) { return wait_behind_dead(w, 3) <= 1500; }

/* Its process lives, so its wait keeps the place for longer than silence may last, also if it waits
 * two seconds at a time, as src/lock does.  The places of waiters that are silent end.  Returns
 * false if a wait does not keep its place, as on a machine on which one of the two stood still. */
PATIENT_CLAIM(a_wait_keeps_the_place)
{
    char key[64], owner[2 * LEASE_OWNER_SIZE + 1];
    key_make(key, "kept");
    struct party holder, silent[2];
    struct waiting x[2];
    party_init(&holder, key);
    assert_int_equal(acquire(w->l, &holder), HF_DONE);
    int64_t asked_ms = now_ms();
    for (int i = 0; i < 2; i++) {
        party_queued(&silent[i], key);
        assert_int_equal(acquire(w->l, &silent[i]), HF_TAKEN);
        assert_true(waiting_try(w, &x[i], key, LONG_MS, i == 0 ? 2000 : WAIT_MS));
    }
    struct lease_state s = inspect(w->l, key);
    while (s.n_waiters > 2 && now_ms() - asked_ms < WAIT_MS / 2) {
        assert_true(s.n_waiters == 4 || place_may_be_lost(asked_ms));
        lease_state_close(&s);
        rest_ms(20);
        s = inspect(w->l, key);
    }
    bool is_kept = s.n_waiters == 2;
    for (size_t i = 0; i < 2 && is_kept; i++) {
        lease_owner_text(x[i].p.r.owner, owner);
        assert_string_equal(s.waiters[i].owner, owner);
    }
    lease_state_close(&s);
    assert_int_equal(release(w->l, &holder), HF_DONE);
    for (int i = 0; i < 2; i++) {
        wait_for_grant(&x[i], WAIT_MS);
        assert_int_equal(release(x[i].l, &x[i].p), HF_DONE);
        waiting_close(&x[i]);
    }
    return is_kept;
}

const struct claim queue_claims[] = {
    CLAIM(waiters_are_served_in_the_order_of_arrival, 0),
    CLAIM(a_request_without_a_place_takes_what_nobody_holds, 0),
    CLAIM(a_waiter_that_was_passed_over_keeps_its_place_or_queues_anew, NEEDS_FAIR),
    CLAIM(a_waiter_that_was_passed_over_still_says_how_many_slots_there_are,
          NEEDS_FAIR | NEEDS_SLOTS),
    CLAIM(the_larger_priority_goes_first, 0),
    CLAIM(a_place_given_up_is_gone, NEEDS_FAIR),
    CLAIM(shared_holders_stand_beside_each_other, 0),
    CLAIM(readers_do_not_starve_a_writer_nor_writers_a_reader, NEEDS_SHARED | NEEDS_FAIR),
    CLAIM(a_reader_of_larger_priority_passes_the_waiting_writer,
          NEEDS_SHARED | NEEDS_FAIR | NEEDS_PRIORITY),
    CLAIM(slots_limit_the_number_of_holders, 0),
    CLAIM(slots_are_the_lowest_free_ones, NEEDS_SLOTS),
    CLAIM(a_slot_is_free_again_when_its_lease_ends, NEEDS_SLOTS),
    CLAIM(a_release_wakes_the_next_at_once, 0),
    CLAIM(a_break_wakes_the_next_at_once, 0),
    CLAIM(the_end_of_a_lease_wakes_the_next, 0),
    CLAIM(each_end_of_a_lease_wakes_the_one_whose_turn_it_is, NEEDS_FAIR),
    CLAIM(a_place_given_up_wakes_the_next, NEEDS_FAIR),
    CLAIM(a_wait_ends_at_its_timeout, 0),
    CLAIM(a_wait_ends_soon_after_its_wake_fd_is_readable, 0),
    CLAIM(a_release_wakes_one_waiter_not_all, NEEDS_FAIR),
    CLAIM(a_dead_waiter_delays_the_next_by_300_ms_at_most, NEEDS_FAIR),
    CLAIM(several_dead_waiters_do_not_stop_the_queue, NEEDS_FAIR),
    CLAIM(a_wait_keeps_the_place, NEEDS_FAIR),
    {0},
};
