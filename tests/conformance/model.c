/* Sends random requests to the driver and to a model, which has the rules of lease.h in their
 * simplest form: a request is granted if all waiters before it could be granted first and it still
 * could after them.  TTLs are long, so that no lease ends by itself, and rounds short, so that no
 * waiter counts as silent.  HF_SEED repeats a run. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define PARTIES 8
#define STEPS 60
#define ROUNDS 30
#define BUDGET_MS 3000

struct member {
    struct party p;
    bool holds, waits;
    int came;
    int64_t fence;
};

struct model {
    struct world *w;
    struct random random;
    char key[64];
    struct member m[PARTIES];
    int clock;
    int64_t last_fence;
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
        if (m->m[i].holds)
            ++*(m->m[i].p.r.mode == HF_SHARED ? &readers : &writers);
    bool stuck = false;
    size_t before = 0;
    const struct member *last = NULL;
    for (;;) {
        const struct member *next = who;
        for (int i = 0; i < PARTIES; i++) {
            const struct member *x = &m->m[i];
            if (x->waits && x != who && comes_before(x, next) && (!last || comes_before(last, x)))
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
    bool served = x->holds || is_served(m, x, &before);
    assert_int_equal(acquire(w->l, &x->p), served ? HF_DONE : HF_TAKEN);
    if (!served) {
        x->waits = x->waits || (r->queue && w->info->fair);
        assert_int_equal(x->p.v.position, x->waits ? before + 1 : 0);
    } else if (x->holds) {
        assert_int_equal(x->p.v.fence, x->fence);
    } else {
        x->holds = true;
        x->waits = false;
        x->fence = x->p.v.fence;
        assert_true(x->fence > m->last_fence || w->info->fence == HF_FENCE_NONE);
        m->last_fence = x->fence;
    }
}

static void step_compare(struct model *m)
{
    size_t holders = 0, waiters = 0;
    for (int i = 0; i < PARTIES; i++) {
        holders += m->m[i].holds;
        waiters += m->m[i].waits;
    }
    struct lease_state s = inspect(m->w->l, m->key);
    assert_int_equal(s.n_holders, holders);
    assert_int_equal(s.n_waiters, waiters);
    for (int i = 0; i < PARTIES; i++) {
        char owner[2 * LEASE_OWNER_SIZE + 1];
        size_t before = 0;
        lease_owner_text(m->m[i].p.r.owner, owner);
        if (!m->m[i].waits)
            continue;
        is_served(m, &m->m[i], &before);
        assert_string_equal(s.waiters[before].owner, owner);
        assert_int_equal(s.waiters[before].mode, m->m[i].p.r.mode);
        assert_int_equal(s.waiters[before].priority, m->m[i].p.r.priority);
    }
    state_close(&s);
}

static void step(struct model *m)
{
    struct world *w = m->w;
    struct member *x = &m->m[random_below(&m->random, PARTIES)];
    struct hf_fault fault = {0};
    switch (random_below(&m->random, 16)) {
    case 0:
        must(lease_break(w->l, m->key, strlen(m->key), &fault), &fault);
        for (int i = 0; i < PARTIES; i++)
            m->m[i].holds = false;
        break;
    case 1:
        step_compare(m);
        break;
    case 2:
    case 3:
        assert_int_equal(renew(w->l, &x->p), x->holds ? HF_DONE : HF_LOST);
        assert_true(!x->holds || x->p.v.fence == x->fence);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        assert_int_equal(release(w->l, &x->p), x->holds || x->waits ? HF_DONE : HF_LOST);
        x->holds = x->waits = false;
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
        unsigned slots = w->info->slots ? 1 + (unsigned)random_below(&m.random, 3) : 1;
        for (int i = 0; i < PARTIES; i++) {
            m.m[i] = (struct member){0};
            party_init(&m.m[i].p, m.key);
            m.m[i].p.r.slots = slots;
        }
        int64_t quick_ms = now_ms() + WAITER_SILENT_MS - 1000;
        for (int i = 0; i < STEPS && now_ms() < quick_ms; i++)
            step(&m);
    }
}

const struct CMUnitTest model_claims[] = {
    cmocka_unit_test(random_requests_are_judged_by_the_rules),
    {0},
};
