/* Claims about postgres: leases behind a real PgBouncer.  Without PgBouncer it fails. */
#include "support/fixtures.h"

#include <pthread.h>
#include <string.h>

#include "lease/lease.h"
#include "support/pgbouncer.h"

static struct pgbouncer pooler;

static int pooler_stop(void **state)
{
    (void)state;
    pgbouncer_stop(&pooler);
    return 0;
}

static enum hf_result open_lease(struct lease **ret, struct hf_fault *fault)
{
    const struct lease_options options = {.timeout_ms = 20000, .clock = &clock_system};
    return lease_open(lease_driver_for(pooler.url), pooler.url, &options, ret, fault);
}

static void a_pooler_of_transactions_is_refused_by_name(void **state)
{
    (void)state;
    struct hf_fault fault = {0};
    struct lease *l = NULL;
    pgbouncer_start(&pooler, "transaction");
    assert_int_equal(open_lease(&l, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "PgBouncer in transaction mode"));
    assert_non_null(strstr(fault.msg, "pool_mode = session"));
}

static void a_pooler_of_statements_is_refused(void **state)
{
    (void)state;
    struct hf_fault fault = {0};
    struct lease *l = NULL;
    pgbouncer_start(&pooler, "statement");
    assert_int_not_equal(open_lease(&l, &fault), HF_DONE);
    assert_true(strlen(fault.msg) > 10);
}

static void *take_after_waiting(void *ctx)
{
    struct lease *l = ctx;
    struct lease_request r = {.key = "a", .key_len = 1, .ttl_ms = 60000, .slots = 1, .queue = true};
    struct lease_verdict v = {.result = HF_TAKEN};
    memset(r.owner, 'w', sizeof r.owner);
    for (int i = 0; i < 100 && lease_acquire(l, &r, &v, NULL) == HF_DONE && v.result == HF_TAKEN;
         i++)
        (void)!lease_wait(l, &r, 2000, NULL);
    return (void *)(intptr_t)(v.result == HF_DONE);
}

static void a_pooler_of_sessions_carries_locks_and_wakes_waiters(void **state)
{
    (void)state;
    struct hf_fault fault = {0};
    struct lease *l = NULL, *m = NULL;
    struct lease_request r = {.key = "a", .key_len = 1, .ttl_ms = 60000, .slots = 1};
    struct lease_verdict v = {0};
    pthread_t thread;
    void *taken = NULL;
    memset(r.owner, 'h', sizeof r.owner);
    pgbouncer_start(&pooler, "session");
    if (open_lease(&l, &fault) != HF_DONE || open_lease(&m, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_int_equal(lease_acquire(l, &r, &v, NULL), HF_DONE);
    assert_int_equal(v.result, HF_DONE);
    assert_int_equal(pthread_create(&thread, NULL, take_after_waiting, m), 0);
    struct lease_state st = {0};
    while (st.n_waiters == 0) {
        lease_state_close(&st);
        assert_int_equal(lease_inspect(l, "a", 1, &st, NULL), HF_DONE);
    }
    lease_state_close(&st);
    assert_int_equal(lease_release(l, &r, 1, &v, NULL), HF_DONE);
    assert_int_equal(v.result, HF_DONE);
    pthread_join(thread, &taken);
    assert_non_null(taken);
    lease_close(l);
    lease_close(m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, pooler_stop)
    const struct CMUnitTest tests[] = {
        TEST(a_pooler_of_transactions_is_refused_by_name),
        TEST(a_pooler_of_statements_is_refused),
        TEST(a_pooler_of_sessions_carries_locks_and_wakes_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
