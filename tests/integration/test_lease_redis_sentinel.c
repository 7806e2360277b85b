/* The Redis driver behind sentinels: a primary, a replica and a sentinel, all of them real, with
 * passwords. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PASSWORD "s3cret-data"
#define SENTINEL_PASSWORD "s3cret-sentinel"

/* `server` is the primary. */
static struct redis_server replica, sentinel;
static const char *const with_password[] = {"--masterauth", PASSWORD, "--repl-diskless-sync-delay",
                                            "0", NULL};

static bool sentinel_knows_both(void *ctx)
{
    (void)ctx;
    static char all[8192];
    redis_server_ask(&sentinel, "SENTINEL MASTER main", all, sizeof all);
    return strstr(all, "num-slaves\r\n$1\r\n1") != NULL;
}

static void group_start(void)
{
    char command[64], answer[256];
    replica = (struct redis_server){.password = PASSWORD, .options = with_password};
    assert_true(redis_server_start(&replica));
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", server.port);
    redis_server_ask(&replica, command, answer, sizeof answer);
    assert_string_equal(answer, "+OK\r\n");
    sentinel = (struct redis_server){.password = SENTINEL_PASSWORD, .watched = &server};
    assert_true(redis_server_start(&sentinel));
    assert_true(becomes(sentinel_knows_both, NULL));
}

/* The first sentinel of the URL is not there. */
static void url_put(char ret[256], const char *name, const char *password)
{
    snprintf(ret, 256,
             "redis+sentinel://:" PASSWORD "@127.0.0.1:%d,127.0.0.1:%d/%s?sentinel_password=%s",
             port_free(NULL), sentinel.port, name, password);
}

static struct hf_fault open_fails(const char *url)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 10000, .clock = &clock_system};
    assert_int_equal(lease_open(&lease_redis, url, &options, &l, &fault), HF_UNREACHABLE);
    assert_null(strstr(fault.msg, "s3cret"));
    return fault;
}

static void a_fault_says_which_of_them_is_wrong(void **state)
{
    (void)state;
    char url[256], command[96], answer[256];
    url_put(url, "nobody", SENTINEL_PASSWORD);
    assert_non_null(strstr(open_fails(url).msg, "does not know the name of the primary"));
    url_put(url, "main", "s3cret-wrong");
    assert_non_null(strstr(open_fails(url).msg, "wrong user or password"));
    snprintf(url, sizeof url, "redis+sentinel://:x@127.0.0.1:%d/main?sentinel_password=" PASSWORD,
             server.port);
    assert_non_null(strstr(open_fails(url).msg, "unknown command"));
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/main", port_free(NULL),
             port_free(NULL));
    assert_non_null(strstr(open_fails(url).msg, "refused"));
    /* what a sentinel says may be out of date: a replica is asked, and says so */
    snprintf(command, sizeof command, "SENTINEL MONITOR stale 127.0.0.1 %d 1", replica.port);
    redis_server_ask(&sentinel, command, answer, sizeof answer);
    assert_string_equal(answer, "+OK\r\n");
    url_put(url, "stale", SENTINEL_PASSWORD);
    assert_non_null(strstr(open_fails(url).msg, "not the primary"));
    redis_server_ask(&sentinel, "SENTINEL REMOVE stale", answer, sizeof answer);
}

/* Returns false if the others took the rest of the time. */
TIMELY_CLAIM(a_sentinel_that_hangs_costs_its_share_of_the_time)
{
    int hole;
    char url[256];
    snprintf(url, sizeof url,
             "redis+sentinel://:" PASSWORD
             "@127.0.0.1:%d,127.0.0.1:%d/main?sentinel_password=" SENTINEL_PASSWORD,
             port_free(&hole), sentinel.port);
    int64_t from_ms = boot_ms();
    struct lease *l = NULL;
    struct lease_options options = {.timeout_ms = 8000, .clock = &clock_system};
    enum hf_result result = lease_open(&lease_redis, url, &options, &l, NULL);
    int64_t took_ms = boot_ms() - from_ms;
    close(hole);
    assert_true(took_ms >= 3950);
    if (result == HF_UNREACHABLE || took_ms > 7990) {
        lease_close(l);
        return false;
    }
    assert_int_equal(result, HF_DONE);
    struct lease_request q = asks("share");
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    must_release(l, &q);
    lease_close(l);
    return true;
}

struct waiter {
    struct hf_locks *locks;
    struct hf_lock *lock;
    enum hf_result result;
    struct hf_fault fault;
};

static void *wait_run(void *ctx)
{
    struct waiter *w = ctx;
    struct hf_lock_options wait = HF_LOCK_OPTIONS(.wait_ms = 120000);
    w->result = hf_lock(w->locks, "main", &wait, &w->lock, &w->fault);
    return NULL;
}

static bool replica_has_the_queue(void *ctx)
{
    (void)ctx;
    char answer[256];
    redis_server_ask(&replica, "ZCARD holdfast:{main}:lock:queue", answer, sizeof answer);
    return strcmp(answer, ":1\r\n") == 0;
}

static bool is_renewed(void *ctx) { return hf_renew(ctx, NULL) == HF_DONE; }

/* Runs last: the primary is dead afterwards. */
static void holder_and_waiter_follow_the_sentinels_to_the_new_primary(void **state)
{
    (void)state;
    char url[256];
    struct hf_fault fault;
    struct hf_locks *locks = NULL, *away = NULL;
    struct hf_lock *lock;
    const struct hf_options patient = HF_OPTIONS(.timeout_ms = 10000);
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 120000);
    url_put(url, "main", SENTINEL_PASSWORD);
    if (hf_open(url, &patient, &locks, &fault) != HF_DONE ||
        hf_open(url, &patient, &away, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_int_equal(hf_lock(locks, "main", &options, &lock, &fault), HF_DONE);
    int64_t fence = hf_lock_fence(lock);
    struct waiter w = {.locks = away};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_run, &w), 0);
    assert_true(becomes(replica_has_the_queue, NULL));
    redis_server_hurry(&sentinel);
    redis_server_kill(&server);
    assert_int_not_equal(hf_renew(lock, &fault), HF_DONE);
    assert_true(becomes(is_renewed, lock)); /* as soon as the sentinel has made a new primary */
    assert_int_equal(hf_lock_fence(lock), fence);
    int64_t from_ms = boot_ms();
    if (hf_unlock(lock, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    pthread_join(thread, NULL);
    if (w.result != HF_DONE)
        fail_msg("%s", w.fault.msg);
    assert_true(boot_ms() - from_ms < 10000); /* its last try may have been a second ago */
    assert_true(hf_lock_fence(w.lock) > fence);
    assert_int_equal(hf_unlock(w.lock, NULL), HF_DONE);
    hf_close(away);
    hf_close(locks);
}

static int start(void **state)
{
    (void)state;
    group_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    redis_server_stop(&sentinel);
    redis_server_stop(&replica);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_fault_says_which_of_them_is_wrong, start),
        cmocka_unit_test(a_sentinel_that_hangs_costs_its_share_of_the_time),
        cmocka_unit_test_teardown(holder_and_waiter_follow_the_sentinels_to_the_new_primary, stop),
    };
    server.password = PASSWORD;
    server.options = with_password;
    return run_with_redis(tests);
}
