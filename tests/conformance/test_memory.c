/* The suite over memory:, and claims that need a clock of the test's own: time is that clock's, an
 * abandoned lease is forgotten, and an expiry wakes one waiter. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static void start(struct backend *b)
{
    snprintf(b->url, sizeof b->url, "memory:");
    b->bad_urls[0] = (struct bad_url){"something after it", "memory:table", 1U << HF_BAD_REQUEST};
    b->bad_urls[1] = (struct bad_url){"slashes", "memory://", 1U << HF_BAD_REQUEST};
}

static struct lease *open_with(struct clock_fake *fake)
{
    clock_fake_init(fake, 0);
    struct lease_options options = {.clock = &fake->clock};
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    must(lease_open(lease_driver_for("memory:"), "memory:", &options, &l, &fault), &fault);
    return l;
}

static void a_lease_ends_by_the_clock_it_was_given(void **state)
{
    (void)state;
    struct clock_fake fake;
    struct lease *l = open_with(&fake);
    struct party a, b;
    party_init(&a, "k");
    party_init(&b, "k");
    a.r.ttl_ms = 1000;
    assert_int_equal(acquire(l, &a), HF_DONE);
    assert_int_equal(a.v.remaining_ms, 1000);
    int64_t fence = a.v.fence;
    clock_fake_advance(&fake, 999999);
    assert_int_equal(acquire(l, &b), HF_TAKEN);
    assert_int_equal(b.v.remaining_ms, 1);
    clock_fake_step(&fake, -INT64_C(3600) * 1000000); /* the wall clock does not matter */
    clock_fake_advance(&fake, 1);
    assert_int_equal(renew(l, &a), HF_LOST);
    assert_int_equal(acquire(l, &b), HF_DONE);
    assert_int_equal(b.v.fence, fence + 1);
    lease_close(l);
}

static void a_turn_lasts_150_ms_and_the_place_stays(void **state)
{
    (void)state;
    struct clock_fake fake;
    struct lease *l = open_with(&fake);
    struct party holder, a, b, c;
    party_init(&holder, "k");
    party_queued(&a, "k");
    party_queued(&b, "k");
    assert_int_equal(acquire(l, &holder), HF_DONE);
    assert_int_equal(acquire(l, &a), HF_TAKEN);
    assert_int_equal(release(l, &holder), HF_DONE);
    clock_fake_advance(&fake, 1000 * WAITER_CLAIM_MS - 1);
    assert_int_equal(acquire(l, &b), HF_TAKEN);
    assert_int_equal(b.v.remaining_ms, -1); /* it has no holder, but it is a waiter's turn */
    assert_int_equal(b.v.position, 2);
    clock_fake_advance(&fake, 1);
    assert_int_equal(acquire(l, &b), HF_DONE);
    assert_int_equal(acquire(l, &a), HF_TAKEN); /* it kept its place, and takes it again */
    assert_int_equal(a.v.position, 1);
    party_queued(&c, "k");
    assert_int_equal(acquire(l, &c), HF_TAKEN);
    assert_int_equal(c.v.position, 2);
    assert_int_equal(release(l, &b), HF_DONE);
    assert_int_equal(acquire(l, &c), HF_TAKEN);
    assert_int_equal(acquire(l, &a), HF_DONE);
    lease_close(l);
}

static void a_place_is_kept_for_five_seconds_of_silence(void **state)
{
    (void)state;
    struct clock_fake fake;
    struct lease *l = open_with(&fake);
    struct party holder, a, b;
    party_init(&holder, "k");
    party_queued(&a, "k");
    party_queued(&b, "k");
    assert_int_equal(acquire(l, &holder), HF_DONE);
    assert_int_equal(acquire(l, &a), HF_TAKEN);
    clock_fake_advance(&fake, 1000 * WAITER_SILENT_MS - 1);
    assert_int_equal(acquire(l, &b), HF_TAKEN);
    assert_int_equal(b.v.position, 2);
    clock_fake_advance(&fake, 1);
    assert_int_equal(acquire(l, &b), HF_TAKEN);
    assert_int_equal(b.v.position, 1);
    lease_close(l);
}

/* A waiter that was passed over once is not called again while it stays silent. */
static void the_dead_cost_their_turn_once(void **state)
{
    (void)state;
    struct clock_fake fake;
    struct lease *l = open_with(&fake);
    struct party holder, dead, x;
    party_init(&holder, "k");
    party_queued(&dead, "k");
    assert_int_equal(acquire(l, &holder), HF_DONE);
    assert_int_equal(acquire(l, &dead), HF_TAKEN);
    assert_int_equal(release(l, &holder), HF_DONE);
    clock_fake_advance(&fake, 1000 * WAITER_CLAIM_MS);
    for (int i = 0; i < 5; i++) {
        party_queued(&x, "k");
        assert_int_equal(acquire(l, &x), HF_DONE);
        assert_int_equal(release(l, &x), HF_DONE);
    }
    assert_int_equal(acquire(l, &dead), HF_DONE);
    lease_close(l);
}

struct waiting {
    struct lease *l;
    struct party p;
    pthread_t thread;
    atomic_int returned;
};

static void *wait_run(void *arg)
{
    struct waiting *x = arg;
    (void)!lease_wait(x->l, &x->p.r, 20000, &x->p.fault);
    atomic_store(&x->returned, 1);
    return NULL;
}

#define WAITERS 8
static void each_end_of_a_lease_wakes_one(void **state)
{
    (void)state;
    struct clock_fake fake;
    struct lease *l = open_with(&fake);
    struct party holder;
    party_init(&holder, "k");
    holder.r.ttl_ms = 1000;
    assert_int_equal(acquire(l, &holder), HF_DONE);
    struct waiting x[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
        x[i].l = handle_clone(l);
        atomic_init(&x[i].returned, 0);
        party_queued(&x[i].p, "k");
        x[i].p.r.ttl_ms = 1000;
        assert_int_equal(acquire(x[i].l, &x[i].p), HF_TAKEN);
        assert_int_equal(pthread_create(&x[i].thread, NULL, wait_run, &x[i]), 0);
    }
    rest_ms(50); /* until all sleep */
    for (int i = 0; i < WAITERS; i++) {
        clock_fake_advance(&fake, 1000000);
        pthread_join(x[i].thread, NULL);
        for (int j = i + 1; j < WAITERS; j++)
            assert_int_equal(atomic_load(&x[j].returned), 0);
        assert_int_equal(acquire(x[i].l, &x[i].p), HF_DONE);
    }
    for (int i = 0; i < WAITERS; i++)
        lease_close(x[i].l);
    lease_close(l);
}

static void abandoned_leases_are_forgotten(void **state)
{
    (void)state;
    struct clock_fake fake;
    struct lease *l = open_with(&fake);
    struct party p;
    party_init(&p, "k");
    p.r.ttl_ms = 1000;
    int64_t last = 0;
    for (int i = 0; i < 1200000; i++) { /* a table takes a million claims at once */
        p.r.key_len = (size_t)snprintf(p.key, sizeof p.key, "k%d", i);
        assert_int_equal(acquire(l, &p), HF_DONE);
        assert_true(p.v.fence > last);
        last = p.v.fence;
        clock_fake_advance(&fake, 10);
    }
    lease_close(l);
}

int main(void)
{
    struct backend b = {.name = "memory", .start = start};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_ends_by_the_clock_it_was_given),
        cmocka_unit_test(a_turn_lasts_150_ms_and_the_place_stays),
        cmocka_unit_test(a_place_is_kept_for_five_seconds_of_silence),
        cmocka_unit_test(the_dead_cost_their_turn_once),
        cmocka_unit_test(each_end_of_a_lease_wakes_one),
        cmocka_unit_test(abandoned_leases_are_forgotten),
    };
    int failed = cmocka_run_group_tests_name("memory's clock", tests, NULL, NULL);
    return conformance_run(&b) + failed;
}
