/* The Redis driver on a server that has no memory left: maxmemory is reached, and noeviction makes
 * Redis refuse every command that may need more.  What frees a lock or keeps it works all the same.
 */
#include "support/fixtures.h"

#include "support/redis.h"

#include <string.h>

/* Redis refuses what may need memory. */
static void fill(void)
{
    char answer[256];
    must_ask("CONFIG SET maxmemory-policy noeviction");
    must_ask("CONFIG SET maxmemory 1");
    redis_server_ask(&server, "SET one more", answer, sizeof answer);
    assert_int_equal(strncmp(answer, "-OOM", 4), 0);
}

static void empty(void) { must_ask("CONFIG SET maxmemory 0"); }

static void assert_refused(struct lease *l, const struct lease_request *q)
{
    struct lease_verdict v;
    struct hf_fault fault;
    assert_int_equal(lease_acquire(l, q, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "OOM"));
}

static void a_lock_that_others_wait_for_is_renewed_and_released(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request alone = asks("alone"), holder = asks("full"), w = waits("full"),
                         late = waits("full"), more = asks("more");
    must_acquire(l, &alone);
    int64_t fence = must_acquire(l, &holder).fence;
    must_acquire(l, &w);
    fill();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(must_renew(l, &alone).result, HF_DONE);
        holder.ttl_ms = 30000 + 10000 * i;
        struct lease_verdict v = must_renew(l, &holder);
        assert_int_equal(v.result, HF_DONE);
        assert_int_equal(v.fence, fence);
        assert_int_equal(v.remaining_ms, holder.ttl_ms);
    }
    assert_refused(l, &more);
    assert_refused(l, &late); /* a place needs memory */
    assert_int_equal(must_release(l, &alone), HF_DONE);
    assert_int_equal(must_release(l, &alone), HF_LOST);
    assert_int_equal(must_release(l, &holder), HF_DONE);
    assert_int_equal(must_renew(l, &holder).result, HF_LOST);
    empty();
    assert_int_equal(must_acquire(l, &w).result, HF_DONE); /* it has kept its place */
    assert_int_equal(must_release(l, &w), HF_DONE);
    assert_nothing_left();
    lease_close(l);
}

static void shared_holders_and_slots_are_renewed_and_released(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q[6];
    for (int i = 0; i < 6; i++) {
        q[i] = asks(i < 3 ? "shared" : "slots");
        q[i].mode = i < 3 ? HF_SHARED : HF_EXCLUSIVE;
        q[i].slots = i < 3 ? 1 : 3;
        assert_int_equal(must_acquire(l, &q[i]).result, HF_DONE);
    }
    fill();
    for (int i = 0; i < 6; i++)
        assert_int_equal(must_renew(l, &q[i]).slot, i < 3 ? 0 : i - 3);
    for (int i = 0; i < 6; i++)
        assert_int_equal(must_release(l, &q[i]), HF_DONE);
    empty();
    assert_nothing_left();
    lease_close(l);
}

static void a_waiter_keeps_its_place_and_is_told_of_its_turn(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000), *away = must_open(server.url, 10000);
    struct lease_request holder = asks("keeps"), w = waits("keeps");
    must_acquire(l, &holder);
    must_acquire(away, &w);
    fill();
    struct lease_state s;
    for (int i = 0; i < 3; i++) {
        nap_ms(300);
        int64_t asked_ms = boot_ms();
        assert_int_equal(lease_wait(away, &w, 100, NULL), HF_DONE); /* sends a heartbeat */
        s = must_inspect(l, "keeps");
        int64_t least_ms = WAITER_SILENT_MS - 3000 - (boot_ms() - asked_ms);
        assert_int_equal(s.n_waiters, 1);
        assert_in_range(s.waiters[0].remaining_ms, least_ms > 0 ? least_ms : 0, WAITER_SILENT_MS);
        lease_state_close(&s);
    }
    assert_int_equal(must_release(l, &holder), HF_DONE);
    int64_t from_ms = boot_ms();
    assert_int_equal(lease_wait(away, &w, 30000, NULL), HF_DONE);
    assert_true(boot_ms() - from_ms < 10000);
    empty();
    assert_int_equal(must_acquire(away, &w).result, HF_DONE);
    must_release(away, &w);
    assert_nothing_left();
    lease_close(away);
    lease_close(l);
}

static void breaking_works_and_inspecting_too(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request holder = asks("broken"), w = waits("broken");
    must_acquire(l, &holder);
    must_acquire(l, &w);
    fill();
    struct lease_state s = must_inspect(l, "broken");
    assert_int_equal(s.n_holders, 1);
    lease_state_close(&s);
    assert_int_equal(lease_break(l, "broken", 6, NULL), HF_DONE);
    assert_int_equal(must_renew(l, &holder).result, HF_LOST);
    assert_int_equal(must_release(l, &w), HF_DONE);
    empty();
    assert_nothing_left();
    lease_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_that_others_wait_for_is_renewed_and_released),
        cmocka_unit_test(shared_holders_and_slots_are_renewed_and_released),
        cmocka_unit_test(a_waiter_keeps_its_place_and_is_told_of_its_turn),
        cmocka_unit_test(breaking_works_and_inspecting_too),
    };
    return run_with_redis(tests);
}
