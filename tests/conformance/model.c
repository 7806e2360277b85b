/* Sends random requests to the driver and to a model, which has the rules of lease.h in their
 * simplest form: a request is granted if all waiters before it could be granted first and it still
 * could after them.  TTLs are long, so that no lease ends by itself, and rounds short, so that no
 * waiter counts as silent.  A waiter that has had its turn for a while asks next; a round in which
 * the machine was too slow for that ends without a judgement.  HF_SEED repeats a run. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define PARTIES 8
#define STEPS 60
#define ROUNDS 30
#define BUDGET_MS 1500
#define TURN_MS (WAITER_CLAIM_MS / 3) /* a waiter that has had its turn for so long asks next */

struct member {
    struct party p;
    bool holds, waits;
    bool is_given; /* it holds, but has not asked since (HF_TRAIT_HANDS_OVER) */
    int came;
    int64_t fence;
    int64_t called_ms; /* its turn came after this moment; 0: it has not come */
};

struct model {
    struct world *w;
    struct random random;
    char key[64];
    struct member m[PARTIES];
    int clock;
    int64_t last_fence;
    int64_t silent_ms; /* from then on waiters may count as silent */
    bool too_slow;
};

static bool comes_before(const struct member *a, const struct member *b)
{
    if (a->p.r.priority != b->p.r.priority)
        return a->p.r.priority > b->p.r.priority;
    return a->came < b->came;
}

static bool could_be_served(const struct lease_request *r, unsigned readers, unsigned writers)
{
    return r->mode == HF_SHARED ? writers == 0 : readers == 0 && writers < r->slots;
}

/* Serves the queue in order as far as possible.  Returns whether `who` is served; *ret_before is
 * the number of waiters before it. */
static bool is_served(const struct model *m, const struct member *who, size_t *ret_before)
{
    unsigned readers = 0, writers = 0;
    for (int i = 0; i < PARTIES; i++)
        if ((m->m[i].holds || m->m[i].is_given) && &m->m[i] != who)
            ++*(m->m[i].p.r.mode == HF_SHARED ? &readers : &writers);
    bool stuck = false;
    size_t before = 0;
    const struct member *last = NULL;
    for (;;) {
        const struct member *next = who;
        for (int i = 0; i < PARTIES; i++) {
            const struct member *x = &m->m[i];
            if (x->waits && !x->is_given && x != who && comes_before(x, next) &&
                (!last || comes_before(last, x)))
                next = x;
        }
        stuck = stuck || !could_be_served(&next->p.r, readers, writers);
        if (next == who)
            break;
        ++*(next->p.r.mode == HF_SHARED ? &readers : &writers);
        before++;
        last = next;
    }
    *ret_before = before;
    return !stuck;
}

static bool hands_over(const struct model *m) { return m->w->info->traits & HF_TRAIT_HANDS_OVER; }

/* After a request: may it have come when a turn, or a place, had ended already? */
static bool came_late(struct model *m)
{
    m->too_slow = now_ms() >= m->silent_ms;
    for (int i = 0; i < PARTIES; i++)
        if (m->m[i].called_ms && now_ms() - m->m[i].called_ms > WAITER_CLAIM_MS - 5)
            m->too_slow = true;
    return m->too_slow;
}

static void step_acquire(struct model *m, struct member *x)
{
    struct world *w = m->w;
    struct lease_request *r = &x->p.r;
    if (!x->holds && !x->waits) { /* a new request */
        party_new_owner(&x->p);
        r->mode = w->info->shared && random_below(&m->random, 2) ? HF_SHARED : HF_EXCLUSIVE;
        r->priority = w->info->priority ? (int)random_below(&m->random, 3) - 1 : 0;
        r->queue = random_below(&m->random, 4) != 0;
        x->came = ++m->clock;
    }
    size_t before = 0;
    bool nobody_holds = true;
    for (int i = 0; i < PARTIES; i++)
        nobody_holds = nobody_holds && !m->m[i].holds;
    nobody_holds = nobody_holds && !hands_over(m);
    bool served = x->holds || x->is_given || is_served(m, x, &before) ||
                  (nobody_holds && !x->waits && !r->queue);
    enum hf_result result = acquire(w->l, &x->p);
    if (came_late(m))
        return;
    assert_int_equal(result, served ? HF_DONE : HF_TAKEN);
    if (!served) {
        x->waits = x->waits || (r->queue && w->info->fair);
        assert_int_equal(x->p.v.position, x->waits ? before + 1 : 0);
    } else if (x->holds) {
        assert_int_equal(x->p.v.fence, x->fence);
    } else {
        /* of a lock that was handed over, the order of the questions is not that of the grants */
        if (!x->is_given)
            assert_true(x->p.v.fence > m->last_fence || w->info->fence == HF_FENCE_NONE);
        x->holds = true;
        x->waits = x->is_given = false;
        x->fence = x->p.v.fence;
        m->last_fence = x->fence > m->last_fence ? x->fence : m->last_fence;
    }
}

static void step_compare(struct model *m)
{
    size_t holders = 0, waiters = 0;
    for (int i = 0; i < PARTIES; i++) {
        holders += m->m[i].holds || m->m[i].is_given;
        waiters += m->m[i].waits && !m->m[i].is_given;
    }
    struct lease_state s = inspect(m->w->l, m->key);
    if (!came_late(m)) {
        assert_int_equal(s.n_holders, holders);
        assert_int_equal(s.n_waiters, waiters);
    }
    for (int i = 0; i < PARTIES && !m->too_slow; i++) {
        char owner[2 * LEASE_OWNER_SIZE + 1];
        size_t before = 0;
        lease_owner_text(m->m[i].p.r.owner, owner);
        if (!m->m[i].waits || m->m[i].is_given)
            continue;
        is_served(m, &m->m[i], &before);
        assert_string_equal(s.waiters[before].owner, owner);
        assert_int_equal(s.waiters[before].mode, m->m[i].p.r.mode);
        assert_int_equal(s.waiters[before].priority, m->m[i].p.r.priority);
    }
    lease_state_close(&s);
}

/* Notes whose turn it is after a step that began at `from_ms`. */
static void note_turns(struct model *m, int64_t from_ms)
{
    for (int i = 0; i < PARTIES; i++) {
        struct member *x = &m->m[i];
        size_t before;
        if (!x->waits || !(x->is_given || is_served(m, x, &before)))
            x->called_ms = 0;
        else if (x->called_ms == 0)
            x->called_ms = from_ms;
    }
}

/* Whoever is next has the lock at once, where the driver does that. */
static void hand_over(struct model *m)
{
    if (!hands_over(m))
        return;
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < PARTIES; i++) {
            struct member *x = &m->m[i];
            size_t before;
            if (x->waits && !x->is_given && is_served(m, x, &before) && before == 0)
                any = x->is_given = true;
        }
    }
}

/* The waiter whose turn has lasted the longest, if that is long; NULL: none. */
static struct member *overdue(struct model *m)
{
    struct member *ret = NULL;
    for (int i = 0; i < PARTIES; i++) {
        struct member *x = &m->m[i];
        if (x->called_ms && now_ms() - x->called_ms > TURN_MS &&
            (!ret || x->called_ms < ret->called_ms))
            ret = x;
    }
    return ret;
}

static void step(struct model *m)
{
    struct world *w = m->w;
    struct member *x = overdue(m);
    struct hf_fault fault = {0};
    enum hf_result result;
    if (x) {
        step_acquire(m, x);
        return;
    }
    x = &m->m[random_below(&m->random, PARTIES)];
    switch (random_below(&m->random, 16)) {
    case 0:
        must(lease_break(w->l, m->key, strlen(m->key), &fault), &fault);
        if (came_late(m))
            return;
        for (int i = 0; i < PARTIES; i++) { /* a lock that was handed over is lost, too */
            m->m[i].holds = false;
            m->m[i].waits = m->m[i].waits && !m->m[i].is_given;
            m->m[i].is_given = false;
        }
        break;
    case 1:
        step_compare(m);
        break;
    case 2:
    case 3:
        result = renew(w->l, &x->p);
        if (came_late(m))
            return;
        assert_int_equal(result, x->holds ? HF_DONE : HF_LOST);
        assert_true(!x->holds || x->p.v.fence == x->fence);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        result = release(w->l, &x->p);
        if (came_late(m))
            return;
        assert_int_equal(result, x->holds || x->waits ? HF_DONE : HF_LOST);
        x->holds = x->waits = x->is_given = false;
        break;
    default:
        step_acquire(m, x);
    }
}

static void random_requests_are_judged_by_the_rules(void **state)
{
    struct world *w = *state;
    const char *given = getenv("HF_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)clock_boot_us(&clock_system);
    print_message("HF_SEED=%llu\n", (unsigned long long)seed);
    int64_t end_ms = now_ms() + BUDGET_MS;
    struct model m = {.w = w};
    random_init_seeded(&m.random, seed ? seed : 1);
    for (int round = 0; round < ROUNDS && (round == 0 || now_ms() < end_ms); round++) {
        key_make(m.key, "model");
        m.last_fence = 0; /* fences are those of one name */
        unsigned slots = w->info->slots ? 1 + (unsigned)random_below(&m.random, 3) : 1;
        for (int i = 0; i < PARTIES; i++) {
            m.m[i] = (struct member){0};
            party_init(&m.m[i].p, m.key);
            m.m[i].p.r.slots = slots;
        }
        m.silent_ms = now_ms() + WAITER_SILENT_MS - 1000;
        m.too_slow = false;
        for (int i = 0; i < STEPS && !m.too_slow; i++) {
            int64_t from_ms = now_ms();
            step(&m);
            hand_over(&m);
            note_turns(&m, from_ms);
        }
    }
}

const struct claim model_claims[] = {
    CLAIM(random_requests_are_judged_by_the_rules, 0),
    {0},
};
