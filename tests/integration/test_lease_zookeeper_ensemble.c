/* The ZooKeeper driver over an ensemble of three real servers that are killed, stopped and started
 * again, for HF_ENSEMBLE_S seconds.  `make soak` runs this, and `make test` does not. */
#include "support/fixtures.h"

#include "support/lease_calls.h"
#include "support/process.h"
#include "support/zookeeper_server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVERS 3
#define SECONDS 120
#define FAMILIES 3
#define TTL_MS 4000
#define TIMEOUT_MS 3000

static struct zookeeper_server servers[SERVERS];
static char url[256];
static int64_t seconds;

/* ---- one server at a time ---- */

/* A process that takes the lock, writes its fence into the pipe, and again each time that it has
 * renewed the lease, five times per TTL.  It ends if it loses the lease. */
static _Noreturn void hold_until_killed(int tells)
{
    struct lease *l = must_open(url, TIMEOUT_MS);
    struct lease_request q = asks_for("survives", TTL_MS);
    struct lease_verdict v = must_acquire_again(l, &q);
    for (; v.result == HF_DONE; nap_ms(TTL_MS / 5)) {
        if (write(tells, &v.fence, sizeof v.fence) != sizeof v.fence)
            break;
        v = must_renew_again(l, &q);
    }
    _exit(1);
}

/* Waits for `n` further reports of the holder; returns the fence. */
static int64_t await_reports(int from, int n)
{
    int64_t fence = 0;
    for (; n > 0; n--) {
        assert_int_equal(poll(&(struct pollfd){.fd = from, .events = POLLIN}, 1, 60000), 1);
        assert_int_equal(read(from, &fence, sizeof fence), sizeof fence); /* 0: it lost the lease */
    }
    return fence;
}

/* A holder keeps its lease while each server in turn is killed.  When the holder itself is killed,
 * the lock passes to one that waits. */
static void a_lease_survives_the_loss_of_any_one_server(void **state)
{
    (void)state;
    int tells[2];
    assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
    pid_t holder = process_fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        close(tells[0]); /* so that it ends with the test */
        hold_until_killed(tells[1]);
    }
    close(tells[1]);
    int64_t fence = await_reports(tells[0], 1);
    for (int i = 0; i < SERVERS; i++) {
        zookeeper_server_kill(&servers[i]);
        assert_int_equal(await_reports(tells[0], 3), fence);
        zookeeper_server_again(&servers[i]);
        for (int n = 0; n < 500 && zookeeper_ensemble_serving(servers, SERVERS) < SERVERS; n++)
            nap_ms(20);
        await_reports(tells[0], 1);
    }
    struct lease *l = must_open(url, TIMEOUT_MS);
    struct lease_request q = waits_for("survives", TTL_MS);
    struct lease_verdict v = must_acquire_again(l, &q);
    assert_int_equal(v.result, HF_TAKEN);
    process_kill(&holder);
    close(tells[0]);
    int64_t took_ms = must_wait(l, &q, 30000, &v);
    print_message("the lock passed %d ms after its holder was killed\n", (int)took_ms);
    assert_true(took_ms < 2 * TTL_MS + 2000 || !getenv("HF_TIMES"));
    assert_true(v.fence > fence);
    assert_int_equal(must_release_again(l, &q), HF_DONE);
    lease_close(l);
}

static void without_a_majority_nothing_is_granted_and_then_it_goes_on(void **state)
{
    (void)state;
    struct lease *l = must_open(url, TIMEOUT_MS), *other;
    struct lease_request q = asks_for("majority", TTL_MS);
    struct lease_verdict v;
    struct hf_fault fault = {0};
    zookeeper_server_kill(&servers[0]);
    zookeeper_server_kill(&servers[1]);
    enum hf_result result = lease_acquire(l, &q, &v, &fault);
    assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
    for (int i = 0; i < 500 && zookeeper_ensemble_serving(servers, SERVERS) > 0; i++)
        nap_ms(20); /* until the last one has noticed */
    assert_int_equal(try_open(url, TIMEOUT_MS, &other, &fault), HF_UNREACHABLE);
    print_message("%s\n", fault.msg);
    assert_non_null(strstr(fault.msg, "quorum"));
    zookeeper_server_again(&servers[0]);
    zookeeper_server_again(&servers[1]);
    int64_t end_ms = boot_ms() + 60000;
    while (lease_acquire(l, &q, &v, NULL) != HF_DONE || v.result != HF_DONE)
        assert_true(boot_ms() < end_ms);
    assert_int_equal(must_release_again(l, &q), HF_DONE);
    lease_close(l);
}

/* ---- all of it at once ---- */

/* Who holds the lock, as the holders believe.  A holder that is past its deadline does not. */
static struct {
    pthread_mutex_t mutex;
    int holder; /* 0: none */
    int64_t deadline_ms, last_fence;
    long grants, overlaps, disorders;
} belief = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct contender {
    int id;
    pthread_t thread;
    int64_t end_ms;
};

static void believe(int id, int64_t deadline_ms, int64_t fence)
{
    pthread_mutex_lock(&belief.mutex);
    int64_t now_ms = boot_ms();
    if (now_ms < deadline_ms) { /* a grant that arrives late is none */
        belief.overlaps += belief.holder != 0 && now_ms < belief.deadline_ms;
        belief.disorders += fence <= belief.last_fence;
        belief.holder = id;
        belief.deadline_ms = deadline_ms;
        belief.last_fence = fence;
        belief.grants++;
    }
    pthread_mutex_unlock(&belief.mutex);
}

static void disbelieve(int id)
{
    pthread_mutex_lock(&belief.mutex);
    if (belief.holder == id)
        belief.holder = 0;
    pthread_mutex_unlock(&belief.mutex);
}

static void *contender_run(void *arg)
{
    struct contender *c = arg;
    struct lease *l = must_open(url, TIMEOUT_MS);
    while (boot_ms() < c->end_ms) {
        struct lease_request q = waits_for("contended", TTL_MS);
        struct lease_verdict v = {.result = HF_TAKEN};
        int64_t sent_ms = 0;
        while (boot_ms() < c->end_ms) {
            sent_ms = boot_ms();
            if (lease_acquire(l, &q, &v, NULL) == HF_DONE && v.result == HF_DONE)
                break;
            v.result = HF_TAKEN;
            (void)!lease_wait(l, &q, 1000, NULL);
        }
        if (v.result == HF_DONE) {
            believe(c->id, sent_ms + v.remaining_ms, v.fence);
            usleep(2000);
            disbelieve(c->id);
        }
        for (int i = 0; i < 3 && lease_release(l, &q, 1, &v, NULL) != HF_DONE; i++)
            ;
    }
    lease_close(l);
    return NULL;
}

static void disturb(struct random *random)
{
    struct zookeeper_server *s = &servers[random_below(random, SERVERS)];
    if (random_below(random, 2)) {
        zookeeper_server_kill(s);
        usleep((useconds_t)random_below(random, 2000000));
        zookeeper_server_again(s);
    } else {
        zookeeper_server_pause(s);
        usleep((useconds_t)random_below(random, 6000000));
        zookeeper_server_resume(s);
    }
    usleep(3000000);
}

static void no_two_hold_while_servers_are_killed_and_stopped(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, test_seed(7));
    int64_t end_ms = boot_ms() + 1000 * seconds;
    struct contender contenders[FAMILIES];
    for (int i = 0; i < FAMILIES; i++) {
        contenders[i] = (struct contender){.id = i + 1, .end_ms = end_ms};
        assert_int_equal(pthread_create(&contenders[i].thread, NULL, contender_run, &contenders[i]),
                         0);
    }
    while (boot_ms() < end_ms - 10000)
        disturb(&random);
    for (int i = 0; i < FAMILIES; i++)
        pthread_join(contenders[i].thread, NULL);
    print_message("%ld grants, %ld overlaps, %ld fences that did not grow\n", belief.grants,
                  belief.overlaps, belief.disorders);
    assert_true(belief.grants > 10);
    assert_int_equal(belief.overlaps, 0);
    assert_int_equal(belief.disorders, 0);
}

static int start(void **state)
{
    (void)state;
    const char *text = getenv("HF_ENSEMBLE_S");
    seconds = text ? strtoll(text, NULL, 10) : SECONDS;
    return zookeeper_ensemble_start(servers, SERVERS, url, sizeof url) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    zookeeper_ensemble_stop(servers, SERVERS);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_survives_the_loss_of_any_one_server),
        cmocka_unit_test(no_two_hold_while_servers_are_killed_and_stopped),
        cmocka_unit_test(without_a_majority_nothing_is_granted_and_then_it_goes_on),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
