/* The Redis driver when scripts, answers and servers get lost. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <unistd.h>

static void a_lost_script_is_sent_again(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 10000);
    struct lease_request q[3] = {asks("script-1"), asks("script-2"), asks("script-3")};
    struct lease_verdict v[3];
    for (int i = 0; i < 3; i++) {
        must_ask("SCRIPT FLUSH");
        assert_int_equal(must_acquire(l, &q[i]).result, HF_DONE);
    }
    must_ask("SCRIPT FLUSH");
    assert_int_equal(lease_release(l, q, 3, v, NULL), HF_DONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(v[i].result, HF_DONE);
    assert_nothing_left();
    lease_close(l);
}

static void a_paused_server_is_unknown_within_the_timeout(void **state)
{
    (void)state;
    struct lease *l = must_open(server.url, 1000);
    struct lease_request q = asks("paused");
    struct lease_verdict v;
    redis_server_pause(&server);
    int64_t begin_ms = boot_ms();
    enum hf_result first = lease_acquire(l, &q, &v, NULL);
    int64_t took_ms = boot_ms() - begin_ms;
    /* now it has to connect, and reports that nothing was done */
    enum hf_result second = lease_acquire(l, &q, &v, NULL);
    redis_server_resume(&server);
    assert_int_equal(first, HF_UNKNOWN);
    assert_in_range(took_ms, 990, 10000);
    assert_int_equal(second, HF_UNREACHABLE);
    lease_close(l);
    l = must_open(server.url, 10000);
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    must_release(l, &q);
    lease_close(l);
}

static void a_restart_with_an_aof_keeps_lease_queue_and_fence(void **state)
{
    (void)state;
    struct redis_server kept = {.aof = true};
    assert_true(redis_server_start(&kept));
    struct lease *l = must_open(kept.url, 10000);
    struct lease_request a = asks("aof"), b = waits("aof"), c = asks("aof-alone");
    int64_t fence = must_acquire(l, &a).fence;
    must_acquire(l, &b);
    int64_t alone = must_acquire(l, &c).fence;
    redis_server_kill(&kept);
    redis_server_again(&kept);
    usleep(150000);
    assert_int_equal(must_renew(l, &a).fence, fence);
    assert_int_equal(must_renew(l, &c).fence, alone);
    assert_int_equal(must_acquire(l, &b).position, 1);
    must_release(l, &a);
    assert_true(must_acquire(l, &b).fence > alone);
    lease_close(l);
    redis_server_stop(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_script_is_sent_again),
        cmocka_unit_test(a_paused_server_is_unknown_within_the_timeout),
        cmocka_unit_test(a_restart_with_an_aof_keeps_lease_queue_and_fence),
    };
    return run_with_redis(tests);
}
