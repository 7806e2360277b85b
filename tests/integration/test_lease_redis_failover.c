/* The Redis driver when another server takes over: a primary and a replica change their parts, and
 * the address, here a proxy's, moves to the new primary. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/proxy.h"

#define TTL_MS 6000

/* `server` is the first primary. */
static struct redis_server other;
static struct relay *address;
static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};

static void ask(const struct redis_server *s, const char *command, char ret[512])
{
    redis_server_ask(s, command, ret, 512);
}

static void follow(const struct redis_server *replica, const struct redis_server *primary)
{
    char command[64], answer[512];
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", primary->port);
    ask(replica, command, answer);
    assert_string_equal(answer, "+OK\r\n");
}

static bool has_step(void *ctx)
{
    char answer[512];
    ask(&other, "GET step", answer);
    return strstr(answer, ctx) != NULL;
}

/* The replica has everything that the primary has written so far. */
static void be_in_step(void)
{
    static int n;
    char command[64], answer[512], step[32];
    snprintf(step, sizeof step, "number%d", ++n);
    snprintf(command, sizeof command, "SET step %s", step);
    ask(&server, command, answer);
    assert_true(becomes(has_step, step));
}

/* Two servers, the second a replica of the first, and an address that leads to the first. */
static void pair_start(char url[64])
{
    char answer[512];
    other = (struct redis_server){.options = at_once};
    assert_true(redis_server_start(&other));
    ask(&server, "REPLICAOF NO ONE", answer);
    ask(&server, "CONFIG SET repl-diskless-sync-delay 0", answer);
    ask(&server, "FLUSHALL", answer);
    follow(&other, &server);
    be_in_step();
    address = proxy_start(server.port);
    snprintf(url, 64, "redis://127.0.0.1:%d", relay_port(address));
}

static void pair_stop(void)
{
    relay_stop(address);
    redis_server_stop(&other);
    char answer[512];
    ask(&server, "REPLICAOF NO ONE", answer);
}

/* As an operator does it who forgets to end the clients' connections. */
static void fail_over(void)
{
    char answer[512];
    ask(&other, "REPLICAOF NO ONE", answer);
    assert_string_equal(answer, "+OK\r\n");
    relay_redirect(address, other.port);
    follow(&server, &other);
}

static struct hf_locks *open_locks(const char *url)
{
    struct hf_locks *locks = NULL;
    struct hf_fault fault;
    const struct hf_options options = HF_OPTIONS(.timeout_ms = 10000);
    if (hf_open(url, &options, &locks, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return locks;
}

struct waiter {
    struct hf_locks *locks;
    pthread_t thread;
    struct hf_lock *lock;
    enum hf_result result;
    struct hf_fault fault;
    int64_t granted_ms;
};

static void *wait_run(void *ctx)
{
    struct waiter *w = ctx;
    struct hf_lock_options wait = HF_LOCK_OPTIONS(.ttl_ms = 60000, .wait_ms = 20000);
    w->result = hf_lock(w->locks, "moved", &wait, &w->lock, &w->fault);
    w->granted_ms = boot_ms();
    return NULL;
}

static uint64_t renewals(struct hf_locks *locks)
{
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    return stats.renewals;
}

static bool is_renewed(void *ctx) { return renewals(ctx) > 0; }

static bool one_waits(void *ctx) { return waiters_of(ctx, "moved") == 1; }

/* Returns how long the waiter had to wait for the lock that was given back; INT64_MAX if the lock
 * was lost before, as on a machine that stands still for as long as it lasts. */
static int64_t follow_the_address(void)
{
    char url[64];
    pair_start(url);
    struct hf_locks *locks = open_locks(url), *away = open_locks(url);
    struct hf_lock_options brief = HF_LOCK_OPTIONS(.ttl_ms = TTL_MS);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "moved", &brief, &lock, NULL), HF_DONE);
    struct waiter w = {.locks = away};
    assert_int_equal(pthread_create(&w.thread, NULL, wait_run, &w), 0);
    assert_true(becomes(one_waits, locks));
    assert_true(becomes(is_renewed, locks)); /* the link for renewals leads to the old primary */
    be_in_step();
    fail_over();
    /* The first answer may be of the old primary. */
    for (uint64_t at_least = renewals(locks) + 2; renewals(locks) < at_least && hf_lock_held(lock);)
        nap_ms(5);
    struct hf_fault fault;
    int64_t from_ms = boot_ms();
    enum hf_result given = hf_unlock(lock, &fault);
    if (given != HF_DONE && given != HF_LOST)
        fail_msg("%s", fault.msg);
    pthread_join(w.thread, NULL);
    if (w.result != HF_DONE)
        fail_msg("%s", w.fault.msg);
    assert_int_equal(hf_unlock(w.lock, NULL), HF_DONE);
    hf_close(away);
    hf_close(locks);
    pair_stop();
    return given == HF_DONE ? w.granted_ms - from_ms : INT64_MAX;
}

/* HF_TIMES=1 has fewer tries. */
static void assert_once_within_a_second(int64_t (*wait)(void))
{
    assert_true(soonest_ms(wait, getenv("HF_TIMES") ? 5 : 20, 1000) < 1000);
}

static void a_waiter_and_a_holder_follow_the_address_within_a_second(void **state)
{
    (void)state;
    assert_once_within_a_second(follow_the_address);
}

/* The waiter has the old primary's READONLY to go by, and nothing else. */
static int64_t give_back_during_the_failover(void)
{
    char url[64];
    pair_start(url);
    struct hf_locks *locks = open_locks(url), *away = open_locks(url);
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "moved", NULL, &lock, NULL), HF_DONE);
    struct waiter w = {.locks = away};
    assert_int_equal(pthread_create(&w.thread, NULL, wait_run, &w), 0);
    assert_true(becomes(one_waits, locks));
    be_in_step();
    fail_over();
    int64_t from_ms = boot_ms();
    struct hf_fault fault;
    if (hf_unlock(lock, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    pthread_join(w.thread, NULL);
    if (w.result != HF_DONE)
        fail_msg("%s", w.fault.msg);
    assert_int_equal(hf_unlock(w.lock, NULL), HF_DONE);
    hf_close(away);
    hf_close(locks);
    pair_stop();
    return w.granted_ms - from_ms;
}

static void a_lock_given_back_during_the_failover_is_granted_within_a_second(void **state)
{
    (void)state;
    assert_once_within_a_second(give_back_during_the_failover);
}

/* What a replica does not know is not lost: it is not asked. */
static void a_replica_neither_loses_a_lease_nor_ends_a_wait(void **state)
{
    (void)state;
    char url[64], answer[512];
    pair_start(url);
    struct lease *l = must_open(url, 10000), *beside = must_open(url, 10000);
    struct lease_request q = asks("unheard"), w = waits("unheard");
    struct lease_verdict v;
    struct hf_fault fault;
    struct lease *calls[] = {l, beside};
    for (int i = 0; i < 2; i++)
        assert_int_equal(must_acquire(calls[i], &q).result, HF_DONE);
    be_in_step();
    fail_over();
    ask(&server, "CONFIG SET replica-read-only no", answer);
    ask(&server, "DEL holdfast:{unheard}:lock", answer); /* as if it had not arrived there */
    ask(&server, "CONFIG SET replica-read-only yes", answer);
    assert_int_equal(lease_renew(l, &q, 1, &v, &fault), HF_UNREACHABLE);
    assert_int_equal(fault.result, HF_UNREACHABLE);
    assert_true(strstr(fault.msg, "READONLY") || strstr(fault.msg, "MASTERDOWN") ||
                strstr(fault.msg, "LOADING"));
    assert_int_equal(must_renew(l, &q).result, HF_DONE); /* the next one goes to the new primary */
    enum hf_result result = lease_wait(beside, &w, 10000, &fault);
    assert_int_equal(result, HF_UNREACHABLE);
    assert_int_equal(must_release(beside, &q), HF_DONE);
    lease_close(beside);
    lease_close(l);
    pair_stop();
}

/* ---- min_replicas ---- */

/* A replica that is stopped has not heard of anything. */
static void a_grant_needs_as_many_replicas_as_the_url_says(void **state)
{
    (void)state;
    char url[64], strict_url[128];
    pair_start(url);
    snprintf(strict_url, sizeof strict_url, "%s?min_replicas=1&replicas_timeout=3000", url);
    struct lease *l = must_open(strict_url, 10000), *lax = must_open(url, 10000);
    struct lease_request q = asks("strict"), w = waits("strict"), other_q = asks("strict-1");
    struct lease_verdict v;
    struct hf_fault fault;
    assert_int_equal(must_acquire_again(l, &q).result, HF_DONE);
    assert_int_equal(must_renew_again(l, &q).result, HF_DONE);
    redis_server_pause(&other);
    int64_t from_ms = boot_ms();
    assert_int_equal(lease_renew(l, &q, 1, &v, &fault), HF_UNKNOWN);
    assert_in_range(boot_ms() - from_ms, 2990, 9000);
    assert_non_null(strstr(fault.msg, "0 of 1 replicas"));
    assert_int_equal(must_acquire(l, &w).result, HF_TAKEN); /* a place needs no replica */
    assert_int_equal(lease_acquire(l, &other_q, &v, &fault), HF_UNREACHABLE);
    assert_int_equal(fault.result, HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "0 of 1 replicas"));
    assert_non_null(strstr(fault.msg, "given back"));
    assert_int_equal(must_acquire(lax, &other_q).result, HF_DONE); /* nobody holds it */
    assert_int_equal(must_release(l, &q), HF_DONE);
    redis_server_resume(&other);
    be_in_step();
    assert_int_equal(must_acquire_again(l, &w).result, HF_DONE);
    assert_int_equal(must_renew_again(l, &w).result, HF_DONE);
    lease_close(lax);
    lease_close(l);
    pair_stop();
}

/* What could be lost in a failover is not believed: the deadline stays where it was. */
static void a_lock_that_no_replica_hears_of_any_more_is_lost_in_time(void **state)
{
    (void)state;
    char url[64], strict_url[128];
    pair_start(url);
    snprintf(strict_url, sizeof strict_url, "%s?min_replicas=1&replicas_timeout=1500", url);
    struct hf_locks *locks = open_locks(strict_url);
    struct hf_lock_options brief = HF_LOCK_OPTIONS(.ttl_ms = TTL_MS);
    struct hf_lock *lock;
    for (int64_t end_ms = boot_ms() + 30000;;) { /* until it is held by then */
        if (hf_lock(locks, "strict", &brief, &lock, NULL) == HF_DONE) {
            assert_true(becomes(is_renewed, locks));
            if (hf_lock_held(lock))
                break;
            (void)!hf_unlock(lock, NULL);
        }
        assert_true(boot_ms() < end_ms);
        nap_ms(10);
    }
    redis_server_pause(&other);
    int64_t until_ms = boot_ms() + TTL_MS;
    while (hf_lock_held(lock) && boot_ms() < until_ms)
        nap_ms(10);
    assert_false(hf_lock_held(lock));
    assert_int_equal(hf_unlock(lock, NULL), HF_LOST); /* though the primary had renewed it */
    redis_server_resume(&other);
    hf_close(locks);
    pair_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiter_and_a_holder_follow_the_address_within_a_second),
        cmocka_unit_test(a_lock_given_back_during_the_failover_is_granted_within_a_second),
        cmocka_unit_test(a_replica_neither_loses_a_lease_nor_ends_a_wait),
        cmocka_unit_test(a_grant_needs_as_many_replicas_as_the_url_says),
        cmocka_unit_test(a_lock_that_no_replica_hears_of_any_more_is_lost_in_time),
    };
    return run_with_redis(tests);
}
