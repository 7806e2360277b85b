/* Claims about postgres: leases on a server whose clock is set while locks are held.  The server is
 * a real one that reads the time through libfaketime; clients have the machine's clock. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/lease_calls.h"
#include "support/postgres_server.h"

#define TTL_MS 6000 /* a client or the server may be kept from running for a second or two */
#define RENEW_MS 50
#define STEP_S 16 /* longer than the TTL, and than a waiter's silence */
#define STEPS 4
#define MARGIN_MS 50 /* as src/lock counts a holder's deadline */

static char url[POSTGRES_URL_SIZE];

static int set_up(void **state)
{
    (void)state;
    struct postgres_server *server = postgres_server_own();
    if (!server->has_own_clock) {
        postgres_server_stop(server);
        server->has_own_clock = true;
        postgres_server_again(server);
    }
    postgres_server_set_clock(server, 0);
    postgres_server_fresh(url);
    return 0;
}

static struct lease *open_lease(void) { return must_open(url, 10000); }

static struct lease_request ask(const char *key) { return waits_for(key, TTL_MS); }

static void step_clock(int ahead_s)
{
    const struct postgres_server *server = postgres_server_own();
    postgres_server_set_clock(server, ahead_s);
}

/* The clock that the server's statements read is so many seconds ahead of ours. */
static void assert_clock_ahead(int ahead_s)
{
    int64_t from_s = clock_wall_us(&clock_system) / 1000000;
    const char *text = postgres_server_ask(postgres_server_own(), "postgres",
                                           "SELECT floor(date_part('epoch', clock_timestamp()))");
    int64_t server_s = strtoll(text, NULL, 10) - ahead_s;
    assert_true(server_s >= from_s - 1 && server_s <= clock_wall_us(&clock_system) / 1000000 + 1);
}

static struct arena {
    atomic_bool stop;
    _Atomic int64_t deadline_ms; /* until which the last holder may believe that it holds */
    _Atomic int64_t fence;
    atomic_int grants, overlaps, losses, falls;
    atomic_int renewals; /* that were answered */
} arena;

static void arena_reset(void)
{
    atomic_store(&arena.stop, false);
    atomic_store(&arena.deadline_ms, 0);
    atomic_store(&arena.fence, 0);
    atomic_store(&arena.grants, 0);
    atomic_store(&arena.overlaps, 0);
    atomic_store(&arena.losses, 0);
    atomic_store(&arena.falls, 0);
}

/* Renews until the lease is lost or the test ends.  A call may fail, here and below: where the clock
 * jumps forward, a statement that waits for a row has waited for too long. */
static void hold(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = {.result = HF_DONE};
    while (v.result == HF_DONE && !atomic_load(&arena.stop)) {
        nap_ms(RENEW_MS);
        int64_t sent_ms = boot_ms();
        if (lease_renew(l, r, 1, &v, NULL) != HF_DONE)
            continue;
        atomic_fetch_add(&arena.renewals, 1);
        if (v.result == HF_DONE)
            atomic_store(&arena.deadline_ms, sent_ms + TTL_MS - MARGIN_MS);
    }
    if (v.result != HF_DONE)
        atomic_fetch_add(&arena.losses, 1);
}

/* Takes the lock whenever it can, and keeps it as long as it can. */
static void *contend(void *ctx)
{
    struct lease *l = ctx;
    while (!atomic_load(&arena.stop)) {
        struct lease_request r = ask("a");
        struct lease_verdict v = {.result = HF_TAKEN};
        int64_t sent_ms = boot_ms();
        while (!atomic_load(&arena.stop) && lease_acquire(l, &r, &v, NULL) == HF_DONE &&
               v.result == HF_TAKEN) {
            (void)!lease_wait(l, &r, 200, NULL);
            sent_ms = boot_ms();
        }
        if (v.result == HF_DONE) {
            atomic_fetch_add(&arena.grants, 1);
            if (boot_ms() < atomic_load(&arena.deadline_ms))
                atomic_fetch_add(&arena.overlaps, 1);
            if (v.fence <= atomic_exchange(&arena.fence, v.fence))
                atomic_fetch_add(&arena.falls, 1);
            atomic_store(&arena.deadline_ms, sent_ms + TTL_MS - MARGIN_MS);
            hold(l, &r);
        }
        (void)!lease_release(l, &r, 1, &v, NULL);
    }
    return NULL;
}

/* Two clients contend for a lock while the clock is set to each of `aheads` in turn, and stays
 * there for at least `stay_ms`. */
static void contend_while(const int *aheads, int n, int64_t stay_ms)
{
    struct lease *handles[2];
    pthread_t threads[2];
    arena_reset();
    for (int i = 0; i < 2; i++) {
        handles[i] = open_lease();
        assert_int_equal(pthread_create(&threads[i], NULL, contend, handles[i]), 0);
    }
    while (atomic_load(&arena.grants) == 0)
        nap_ms(10);
    for (int i = 0; i < n; i++) {
        step_clock(aheads[i]);
        assert_clock_ahead(aheads[i]);
        int before = atomic_load(&arena.renewals); /* a holder has renewed under this clock */
        for (int64_t from_ms = boot_ms();
             atomic_load(&arena.renewals) < before + 4 || boot_ms() < from_ms + stay_ms;) {
            assert_true(boot_ms() < from_ms + 30000);
            nap_ms(10);
        }
    }
    atomic_store(&arena.stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        lease_close(handles[i]);
    }
    assert_int_equal(atomic_load(&arena.falls), 0);
}

static void a_clock_that_is_set_back_again_and_again_steals_no_lock(void **state)
{
    (void)state;
    int aheads[STEPS];
    for (int i = 0; i < STEPS; i++)
        aheads[i] = -STEP_S * (i + 1);
    contend_while(aheads, STEPS, 0);
    assert_int_equal(atomic_load(&arena.losses), 0);
    assert_int_equal(atomic_load(&arena.overlaps), 0);
    assert_int_equal(atomic_load(&arena.grants), 1);
}

/* A forward step ends the lease early, which no server can tell from the passing of time.  The way
 * back ends nothing, nor does the time until the clock is where it was. */
static void
a_clock_that_jumps_both_ways_steals_a_lock_no_more_often_than_it_jumps_forward(void **state)
{
    (void)state;
    int aheads[2 * STEPS];
    for (int i = 0; i < 2 * STEPS; i++)
        aheads[i] = i % 2 ? -STEP_S : STEP_S;
    contend_while(aheads, 2 * STEPS, 0);
    assert_in_range(atomic_load(&arena.losses), 1, STEPS);
    assert_true(atomic_load(&arena.overlaps) <= STEPS);
}

/* The clock returns to where it was: leases of the time in between last. */
static void a_clock_that_is_set_back_and_returns_steals_no_lock(void **state)
{
    (void)state;
    int aheads[STEPS];
    for (int i = 0; i < STEPS; i++)
        aheads[i] = i % 2 ? 0 : -STEP_S;
    contend_while(aheads, STEPS, 0);
    assert_int_equal(atomic_load(&arena.losses), 0);
    assert_int_equal(atomic_load(&arena.overlaps), 0);
}

/* The clock is behind for longer than a TTL before it returns, so that no lease of before lives on
 * by its old end alone. */
static void a_clock_that_returns_after_a_while_steals_no_lock(void **state)
{
    (void)state;
    static const int aheads[] = {-STEP_S, 0};
    contend_while(aheads, 2, TTL_MS + 500);
    assert_int_equal(atomic_load(&arena.losses), 0);
    assert_int_equal(atomic_load(&arena.overlaps), 0);
    assert_int_equal(atomic_load(&arena.grants), 1);
}

/* A holder that falls silent after the clock was set back, and one that does so after it has
 * returned, keep their locks until their deadlines.  The claim is not made if the machine stood
 * still until then. */
static void a_renewal_counts_for_a_whole_ttl_however_the_clock_is_set(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    static const int aheads[] = {0, -STEP_S, -2 * STEP_S, 0};
    struct lease_request r = ask("a"), other = ask("a");
    struct lease_verdict v[2] = {0};
    other.queue = false;
    int64_t deadline_ms = boot_ms() + TTL_MS - MARGIN_MS;
    assert_int_equal(lease_acquire(l, &r, &v[0], NULL), HF_DONE);
    for (int i = 0; i < 3; i++) {
        nap_ms(TTL_MS / 2);
        step_clock(aheads[i]);
        int64_t sent_ms = boot_ms();
        assert_int_equal(lease_renew(l, &r, 1, &v[0], NULL), HF_DONE);
        if (boot_ms() >= deadline_ms)
            break;
        assert_int_equal(v[0].result, HF_DONE);
        deadline_ms = sent_ms + TTL_MS - MARGIN_MS;
        step_clock(aheads[i + 1]);
        nap_ms(TTL_MS / 2);
        sent_ms = boot_ms();
        assert_int_equal(lease_acquire(l, &other, &v[0], NULL), HF_DONE);
        assert_int_equal(lease_renew(l, &r, 1, &v[1], NULL), HF_DONE);
        if (boot_ms() >= deadline_ms)
            break;
        assert_int_equal(v[0].result, HF_TAKEN);
        assert_int_equal(v[1].result, HF_DONE);
        deadline_ms = sent_ms + TTL_MS - MARGIN_MS;
    }
    lease_close(l);
}

/* A lease that is granted while the clock is behind counts from the grant before it, so that it does
 * not end when the clock returns.  The claim is not made if the machine stood still meanwhile. */
static void a_clock_that_returns_after_a_grant_does_not_end_the_lease(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a"), other = ask("a");
    other.queue = false;
    int64_t first_ms = boot_ms();
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    assert_int_equal(must_release(l, &r), HF_DONE);
    step_clock(-STEP_S);
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    step_clock(0);
    struct lease_verdict v = must_acquire(l, &other);
    if (boot_ms() < first_ms + TTL_MS - MARGIN_MS)
        assert_int_equal(v.result, HF_TAKEN);
    lease_close(l);
}

/* As a standby that lagged, or a backup that was put back. */
static void fences_grow_if_the_database_has_forgotten_them_and_its_clock_goes_back(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    const char *database = strrchr(url, '/') + 1;
    int64_t last = 0;
    for (int i = 0; i < 6; i++) {
        struct lease_request r = ask("a");
        struct lease_verdict v = {0};
        r.queue = i % 2; /* by one statement and by a transaction */
        if (i == 2) {
            (void)postgres_server_ask(
                postgres_server_own(), database,
                "DELETE FROM holdfast_locks.lease_fences; DELETE FROM holdfast_locks.leases;"
                " SELECT setval('holdfast_locks.holdfast_numbers', 1)");
        }
        if (i == 4)
            step_clock(-STEP_S);
        assert_int_equal(lease_acquire(l, &r, &v, NULL), HF_DONE);
        assert_int_equal(v.result, HF_DONE);
        assert_true(v.fence > last);
        last = v.fence;
        assert_int_equal(lease_release(l, &r, 1, &v, NULL), HF_DONE);
    }
    lease_close(l);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(a_clock_that_is_set_back_again_and_again_steals_no_lock),
        TEST(a_clock_that_is_set_back_and_returns_steals_no_lock),
        TEST(a_clock_that_returns_after_a_while_steals_no_lock),
        TEST(a_renewal_counts_for_a_whole_ttl_however_the_clock_is_set),
        TEST(a_clock_that_returns_after_a_grant_does_not_end_the_lease),
        TEST(a_clock_that_jumps_both_ways_steals_a_lock_no_more_often_than_it_jumps_forward),
        TEST(fences_grow_if_the_database_has_forgotten_them_and_its_clock_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
