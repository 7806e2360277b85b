/* The ZooKeeper driver when answers, servers and quorums get lost. */
#include "support/fixtures.h"

#include "support/lease_calls.h"
#include "support/zookeeper_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lease/zookeeper/handle.h"
#include "support/port.h"
#include "support/proxy.h"

static struct zookeeper_server server;

static struct lease *open_through(struct relay **ret_proxy, int64_t timeout_ms)
{
    char url[64];
    *ret_proxy = proxy_start(server.port);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d", relay_port(*ret_proxy));
    return must_open(url, timeout_ms);
}

/* ---- answers that do not come ---- */

/* The place was made, but the caller never learns it and never asks again: the keeper finds the
 * node by its owner. */
static void a_place_whose_answer_was_lost_is_given_up(void **state)
{
    (void)state;
    struct relay *proxy;
    struct lease *l = must_open(server.url, 10000), *cut = open_through(&proxy, 10000);
    struct lease_request holder = asks_for("lost place", 60000);
    struct lease_request waiter = waits_for("lost place", 60000);
    struct lease_verdict v;
    assert_int_equal(must_acquire_again(l, &holder).result, HF_DONE);
    relay_lose_only(proxy, "/@w-");
    relay_set(proxy, RELAY_CUT);
    assert_int_equal(lease_acquire(cut, &waiter, &v, NULL), HF_UNKNOWN);
    relay_set(proxy, RELAY_PASS);
    struct lease_state s = must_inspect(l, "lost place");
    assert_int_equal(s.n_waiters, 1); /* one node, not none and not two */
    lease_state_close(&s);
    size_t n = 1;
    for (int64_t end_ms = boot_ms() + WAITER_SILENT_MS + 30000; n > 0;) {
        assert_true(boot_ms() < end_ms);
        usleep(50000);
        s = must_inspect(l, "lost place");
        n = s.n_waiters;
        lease_state_close(&s);
    }
    assert_int_equal(must_release_again(l, &holder), HF_DONE);
    lease_close(cut);
    lease_close(l);
    relay_stop(proxy);
}

static void a_session_that_cannot_be_renewed_ends_before_another_holds(void **state)
{
    (void)state;
    struct relay *proxy;
    struct lease *l = must_open(server.url, 10000), *cut = open_through(&proxy, 2000);
    struct lease_request a = asks_for("expired", 6000), b = waits_for("expired", 60000);
    struct lease_verdict v, w;
    enum hf_result result;
    int64_t sent_ms, begun_ms = boot_ms();
    do { /* until the answer comes in time */
        assert_true(boot_ms() - begun_ms < 30000);
        assert_int_equal(must_acquire_again(cut, &a).result, HF_DONE);
        sent_ms = boot_ms();
        result = lease_renew(cut, &a, 1, &v, NULL);
    } while (result != HF_DONE || v.result != HF_DONE);
    int64_t deadline_ms = sent_ms + v.remaining_ms;
    relay_set(proxy, RELAY_HOLD); /* the server hears nothing either */
    assert_int_not_equal(lease_renew(cut, &a, 1, &v, NULL), HF_DONE);
    must_wait(l, &b, 30000, &w);
    assert_true(boot_ms() >= deadline_ms);
    relay_set(proxy, RELAY_PASS);
    result = HF_UNREACHABLE;
    for (int64_t end_ms = boot_ms() + 30000; result != HF_DONE && boot_ms() < end_ms;)
        result = lease_renew(cut, &a, 1, &v, NULL);
    assert_int_equal(result, HF_DONE);
    assert_int_equal(v.result, HF_LOST);
    /* The handle works again, with a new session. */
    struct lease_request c = asks_for("after", 20000);
    assert_int_equal(must_acquire_again(cut, &c).result, HF_DONE);
    assert_int_equal(must_release_again(cut, &c), HF_DONE);
    assert_int_equal(must_release_again(l, &b), HF_DONE);
    lease_close(cut);
    lease_close(l);
    relay_stop(proxy);
}

static void *resume_later(void *arg)
{
    nap_ms(1500);
    zookeeper_server_resume(arg);
    return NULL;
}

/* The client library leaves a silent server after two thirds of the session's timeout, which is as
 * short as the TTL.  What only reads goes on with the next connection. */
static void a_short_session_leaves_a_call_its_timeout(void **state)
{
    (void)state;
    struct lease *holder = must_open(server.url, 20000);
    struct lease *l = must_open(server.url, 20000);
    struct lease_request held = asks_for("patience", 30000);
    struct lease_request a = asks_for("patience", 1000), b = waits_for("patience", 1000);
    assert_int_equal(must_acquire_again(holder, &held).result, HF_DONE);
    assert_int_equal(must_acquire_again(l, &a).result, HF_TAKEN);
    assert_int_equal(must_acquire_again(l, &b).result, HF_TAKEN);
    for (int i = 0; i < 3; i++) {
        struct lease_verdict v = {0};
        struct lease_state s = {0};
        struct hf_fault fault = {0};
        pthread_t thread;
        zookeeper_server_pause(&server);
        assert_int_equal(pthread_create(&thread, NULL, resume_later, &server), 0);
        enum hf_result result = i == 0   ? lease_acquire(l, &a, &v, &fault)
                                : i == 1 ? lease_wait(l, &b, 3000, &fault)
                                         : lease_inspect(l, "patience", 8, &s, &fault);
        pthread_join(thread, NULL);
        if (result != HF_DONE)
            fail_msg("%d: %s", i, fault.msg);
        if (i == 0)
            assert_int_equal(v.result, HF_TAKEN);
        if (i == 2)
            assert_int_equal(s.n_holders, 1);
        lease_state_close(&s);
    }
    assert_int_equal(must_release_again(holder, &held), HF_DONE);
    lease_close(l);
    lease_close(holder);
}

/* The session of a handle for a TTL; if there are several, the first. */
static struct zk_session session_of(struct lease *l, int64_t ttl_ms)
{
    struct zk_family *f = zk_handle_of(l)->family;
    struct zk_session ret = {.state = ZK_ENDED};
    pthread_mutex_lock(&f->mutex);
    for (size_t i = ZK_SESSIONS_MAX; i-- > 0;)
        if (f->sessions[i] && f->sessions[i]->ttl_ms == ttl_ms)
            ret = *f->sessions[i];
    pthread_mutex_unlock(&f->mutex);
    return ret;
}

/* Cuts the connection of the session of this TTL and makes a black hole of its next one.  The first
 * request of a connection contains the TTL, as it is in `word`. */
static void make_silent(struct relay *proxy, struct lease *l, int64_t ttl_ms, const char *word)
{
    do {
        relay_lose_only(proxy, NULL);
        relay_set(proxy, RELAY_CUT);
        while (session_of(l, ttl_ms).state == ZK_CONNECTED)
            nap_ms(10);
        relay_lose_only(proxy, word);
        relay_set(proxy, RELAY_SWALLOW_ONCE);
        while (relay_mode(proxy) != RELAY_PASS && session_of(l, ttl_ms).state != ZK_CONNECTED)
            nap_ms(10);
    } while (relay_mode(proxy) != RELAY_PASS);
}

/* The server serves others, but a connection of the library says nothing.  To close it might end
 * the session, so one that has a lease waits, and what is asked meanwhile has another session. */
static void a_silent_connection_is_not_closed_while_a_lease_depends_on_it(void **state)
{
    (void)state;
    struct relay *proxy;
    struct lease *l = open_through(&proxy, 20000);
    struct lease_request a = asks_for("silent", 29000);
    struct lease_request b = asks_for("meanwhile", 29000);
    assert_int_equal(must_acquire_again(l, &a).result, HF_DONE);
    make_silent(proxy, l, 29000, "qH");
    assert_int_equal(must_acquire_again(l, &b).result, HF_DONE);
    assert_int_equal(session_of(l, 29000).generation, 0);
    assert_int_equal(must_release_again(l, &b), HF_DONE);
    lease_close(l);
    relay_stop(proxy);
}

/* All nodes are gone, and with them the sessions.  Returns how long the waiter waits then. */
static int64_t lose_the_data(void)
{
    struct zookeeper_server forgets = {0};
    char url[96];
    assert_true(zookeeper_server_start(&forgets));
    snprintf(url, sizeof url, "%s/some/where", forgets.url);
    struct lease *l = must_open(url, 10000), *other = must_open(url, 10000);
    struct lease_request a = asks_for("empty", 6000), b = waits_for("empty", 30000);
    assert_int_equal(must_acquire_again(l, &a).result, HF_DONE);
    assert_int_equal(must_acquire_again(other, &b).result, HF_TAKEN);
    zookeeper_server_kill(&forgets);
    zookeeper_server_forget(&forgets);
    zookeeper_server_again(&forgets);
    struct lease_verdict v = {0};
    int64_t took_ms = must_wait(other, &b, 60000, &v);
    enum hf_result result = HF_UNREACHABLE;
    for (int i = 0; i < 5 && result != HF_DONE; i++)
        result = lease_renew(l, &a, 1, &v, NULL);
    assert_int_equal(result, HF_DONE);
    assert_int_equal(v.result, HF_LOST);
    assert_int_equal(must_release_again(other, &b), HF_DONE);
    struct lease_request c = asks_for("empty", 30000);
    assert_int_equal(must_acquire_again(l, &c).result, HF_DONE);
    assert_int_equal(must_release_again(l, &c), HF_DONE);
    lease_close(other);
    lease_close(l);
    zookeeper_server_stop(&forgets);
    return took_ms;
}

/* The best of several tries is long before a TTL has passed: a server that is starting may drop
 * what a client asks, which then waits for two thirds of the TTL.  HF_TIMES=1 has one try. */
static void a_server_that_lost_its_data_grants_locks_to_open_handles(void **state)
{
    (void)state;
    assert_true(soonest_ms(lose_the_data, getenv("HF_TIMES") ? 1 : 5, 15000) < 15000);
}

/* ---- servers that are not what they should be ---- */

/* A busy machine may be too slow for the reason to be known in time, so that it is tried again.
 * HF_TIMES=1 also claims that the call ends little later than it must. */
static void assert_no_session(const char *url, int64_t timeout_ms, const char *word)
{
    bool is_named = false;
    for (int i = 0; i < 5 && !is_named; i++) {
        struct lease *l;
        struct hf_fault fault;
        int64_t from_ms = boot_ms();
        enum hf_result result = try_open(url, timeout_ms, &l, &fault);
        print_message("%s\n", fault.msg);
        assert_int_equal(result, HF_UNREACHABLE);
        bool is_late = getenv("HF_TIMES") && boot_ms() - from_ms >= timeout_ms + 3000;
        is_named = strstr(fault.msg, word) && !is_late;
    }
    assert_true(is_named);
}

static void a_server_without_a_quorum_says_so(void **state)
{
    (void)state;
    struct zookeeper_server alone = {.id = 1};
    assert_true(zookeeper_server_start_lonely(&alone));
    assert_no_session(alone.url, 3000, "quorum");
    zookeeper_server_stop(&alone);
}

static void a_host_name_that_does_not_exist_is_named(void **state)
{
    (void)state;
    assert_no_session("zookeeper://no-such-host.invalid:2181", 10000, "resolved");
}

/* ZooKeeper's library allocates as much as such a server says, which may be a negative number.  The
 * sanitizers refuse that as calloc does, and do not end the process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* A server that answers whatever it gets with bytes of its own. */
struct liar {
    int fd, port;
    unsigned seed;
    const char *text; /* NULL: random bytes */
    pthread_t thread;
    _Atomic bool stop;
};

static void lie(struct liar *x, int fd)
{
    char bytes[512];
    struct random random;
    random_init_seeded(&random, x->seed++);
    random_bytes(&random, bytes, sizeof bytes);
    if (x->text)
        snprintf(bytes, sizeof bytes, "%s", x->text);
    (void)!recv(fd, (char[512]){0}, 512, 0);
    for (int i = 0; i < 4; i++)
        (void)!send(fd, bytes, x->text ? strlen(x->text) : sizeof bytes, MSG_NOSIGNAL);
}

static void *liar_run(void *arg)
{
    struct liar *x = arg;
    while (!atomic_load(&x->stop)) {
        struct pollfd file = {.fd = x->fd, .events = POLLIN};
        if (poll(&file, 1, 20) <= 0)
            continue;
        int fd = accept4(x->fd, NULL, NULL, SOCK_CLOEXEC);
        struct pollfd client = {.fd = fd, .events = POLLIN};
        if (fd >= 0 && poll(&client, 1, 200) > 0)
            lie(x, fd);
        close(fd);
    }
    return NULL;
}

static void assert_lies_are_no_session(unsigned seed, const char *text)
{
    struct liar x = {.seed = seed, .text = text};
    char url[64];
    x.port = port_free(&x.fd);
    assert_int_equal(pthread_create(&x.thread, NULL, liar_run, &x), 0);
    snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d", x.port);
    assert_no_session(url, 700, "ZooKeeper");
    atomic_store(&x.stop, true);
    pthread_join(x.thread, NULL);
    close(x.fd);
}

static void garbage_is_no_session(void **state)
{
    (void)state;
    assert_lies_are_no_session(1, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert_lies_are_no_session(1, "-ERR unknown command\r\n");
    for (unsigned i = 0; i < 4; i++)
        assert_lies_are_no_session(100 * i, NULL);
}

/* The library would stay with the silent server for two thirds of the timeout. */
static void one_server_of_two_is_enough(void **state)
{
    (void)state;
    int fd, silent = port_free(&fd);
    for (int i = 0; i < 4; i++) {
        char url[96];
        snprintf(url, sizeof url, "zookeeper://127.0.0.1:%d,127.0.0.1:%d", silent, server.port);
        struct lease *l = must_open(url, 10000);
        struct lease_request q = asks_for("half", 10000);
        assert_int_equal(must_acquire_again(l, &q).result, HF_DONE);
        assert_int_equal(must_release_again(l, &q), HF_DONE);
        lease_close(l);
    }
    close(fd);
}

static int start(void **state)
{
    (void)state;
    return zookeeper_server_start(&server) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    zookeeper_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_whose_answer_was_lost_is_given_up),
        cmocka_unit_test(a_session_that_cannot_be_renewed_ends_before_another_holds),
        cmocka_unit_test(a_short_session_leaves_a_call_its_timeout),
        cmocka_unit_test(a_silent_connection_is_not_closed_while_a_lease_depends_on_it),
        cmocka_unit_test(a_server_that_lost_its_data_grants_locks_to_open_handles),
        cmocka_unit_test(a_server_without_a_quorum_says_so),
        cmocka_unit_test(a_host_name_that_does_not_exist_is_named),
        cmocka_unit_test(garbage_is_no_session),
        cmocka_unit_test(one_server_of_two_is_enough),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
