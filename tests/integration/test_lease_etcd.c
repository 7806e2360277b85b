/* Claims about the etcd driver on a real etcd that the conformance suite cannot make: endpoints,
 * users, TLS, servers that are no etcd, watches that break, and the transactions themselves. */
#include "support/fixtures.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lease/etcd/etcd.h"
#include "support/etcd_server.h"
#include "support/lease_calls.h"
#include "support/port.h"
#include "support/proxy.h"

static struct etcd_server server;

/* ---- what the claims share ---- */

/* The URL cannot be opened, and the message says why, without a password. */
static void assert_refused(const char *url, enum hf_result expected, const char *why)
{
    struct lease *l = NULL;
    struct hf_fault fault;
    enum hf_result result = try_open(url, 10000, &l, &fault);
    if (result != expected || !strstr(fault.msg, why))
        print_error("result %d: %s\n", (int)result, fault.msg);
    assert_int_equal(result, expected);
    assert_non_null(strstr(fault.msg, why));
    assert_null(strstr(fault.msg, "secret"));
    assert_null(l);
}

/* A handle of the server, or of a relay to it. */
static struct lease *open_at(int port)
{
    char url[64];
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", port);
    return must_open(url, 10000);
}

static void take_and_give(struct lease *l, const char *key)
{
    struct lease_request r = asks(key);
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    assert_int_equal(must_release(l, &r), HF_DONE);
}

static int start_server(void **state)
{
    (void)state;
    return etcd_server_start(&server) ? 0 : -1; /* is etcd installed? */
}

static int stop_server(void **state)
{
    (void)state;
    etcd_server_stop(&server);
    return 0;
}

/* ---- endpoints ---- */

static void an_endpoint_that_fails_is_left_for_the_next(void **state)
{
    (void)state;
    char url[256];
    int hole_fd, hole = port_free(&hole_fd);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d", port_free(NULL), server.port);
    struct lease *l = must_open(url, 10000); /* the first is closed */
    take_and_give(l, "closed");
    lease_close(l);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d", hole, server.port);
    l = must_open(url, 10000); /* the first accepts connections and says nothing */
    take_and_give(l, "hole");
    lease_close(l);
    close(hole_fd);
}

/* One endpoint goes away while it is used. */
static void a_handle_changes_to_an_endpoint_that_answers(void **state)
{
    (void)state;
    char url[256];
    struct relay *proxy;
    struct lease_request r = asks("changes");
    proxy = proxy_start(server.port);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d", relay_port(proxy), server.port);
    struct lease *l = must_open(url, 10000);
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    relay_stop(proxy);
    assert_int_equal(must_renew(l, &r).result, HF_DONE); /* a renewal can be repeated */
    assert_int_equal(must_release(l, &r), HF_DONE);
    lease_close(l);
}

static void addresses_are_checked(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"etcd://", "host"},
        {"etcd://a,,b", "host"},
        {"etcd://a:0", "port"},
        {"etcd://a:65536", "port"},
        {"etcd://::1:2379", "host"},
        {"etcd://secret@a", "user:password"},
        {"etcd://u:@a", "empty"},
        {"etcd://u:secret%2@a", "hex"},
        {"etcd://a?cacert=x", "etcds"},
        {"etcds://a?cert=x", "together"},
        {"etcd://a?prefix=", "empty"},
        {"etcd://a?prefix=x&prefix=y", "twice"},
        {"etcd://a/b", "path"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(bad[i][0], HF_BAD_REQUEST, bad[i][1]);
}

static void prefixes_keep_locks_apart(void **state)
{
    (void)state;
    char url[256];
    struct lease_request r = asks("apart"), other = asks("apart");
    struct lease *l = open_at(server.port);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d?prefix=%%2fteam%%20b/", server.port);
    struct lease *b = must_open(url, 10000);
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    assert_int_equal(must_acquire(b, &other).result, HF_DONE);
    assert_int_equal(must_release(l, &r), HF_DONE);
    assert_int_equal(must_release(b, &other), HF_DONE);
    lease_close(l);
    lease_close(b);
}

/* ---- servers that are no etcd, or not ours ---- */

/* Answers every request on one connection after the other with the same bytes. */
struct parrot {
    int fd, port;
    const char *answer;
    pthread_t thread;
};

static void *parrot_run(void *arg)
{
    struct parrot *p = arg;
    for (int fd; (fd = accept(p->fd, NULL, NULL)) >= 0; close(fd)) {
        char bytes[4096];
        if (read(fd, bytes, sizeof bytes) > 0)
            (void)!send(fd, p->answer, strlen(p->answer), MSG_NOSIGNAL);
    }
    return NULL;
}

static void assert_no_etcd(const char *answer, const char *why)
{
    struct parrot p = {.answer = answer};
    char url[128];
    p.port = port_free(&p.fd);
    assert_int_equal(pthread_create(&p.thread, NULL, parrot_run, &p), 0);
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", p.port);
    assert_refused(url, HF_UNREACHABLE, why);
    shutdown(p.fd, SHUT_RDWR);
    pthread_join(p.thread, NULL);
    close(p.fd);
}

static void a_server_that_is_no_etcd_is_told_by_its_answers(void **state)
{
    (void)state;
    assert_no_etcd("HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n<html>Hello</html>",
                   "does not answer as etcd");
    assert_no_etcd("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "does not answer as etcd");
    assert_no_etcd("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                   "does not answer as etcd");
    assert_no_etcd("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad",
                   "does not answer as etcd");
    assert_no_etcd("+PONG\r\n", "etcd");
    assert_no_etcd("\x15\x03\x01\x02\x02 garbage", "etcd");
    assert_no_etcd("HTTP/1.1 200 OK\r\nContent-Length: 46\r\n\r\n"
                   "{\"etcdserver\":\"3.3.27\",\"etcdcluster\":\"3.3.0\"} ",
                   "3.4 or later");
}

static void users_have_passwords_and_tokens_that_expire(void **state)
{
    (void)state;
    struct etcd_server s = {.password = "secret:word", .token_ttl_s = 1};
    char url[256];
    assert_true(etcd_server_start(&s));
    snprintf(url, sizeof url, "etcd://root:secretly%%20wrong@127.0.0.1:%d", s.port);
    assert_refused(url, HF_UNREACHABLE, "wrong user or password");
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", s.port);
    assert_refused(url, HF_UNREACHABLE, "wants a user and a password");
    snprintf(url, sizeof url, "etcd://root:secret%%3Aword@127.0.0.1:%d", s.port);
    struct lease *l = must_open(url, 10000);
    struct lease_request r = asks("token");
    assert_int_equal(must_acquire(l, &r).result, HF_DONE);
    uint64_t n_tokens = etcd_of(l)->client.n_token;
    for (int i = 0; i < 40 && etcd_of(l)->client.n_token == n_tokens; i++) {
        nap_ms(2200); /* etcd looks for old tokens once a second */
        assert_int_equal(must_renew(l, &r).result, HF_DONE);
    }
    assert_true(etcd_of(l)->client.n_token > n_tokens);
    assert_int_equal(must_release(l, &r), HF_DONE);
    lease_close(l);
    etcd_server_stop(&s);
}

/* Its lease can be granted, but its key not be written. */
static void a_user_who_may_only_read_leaves_no_lease_behind(void **state)
{
    (void)state;
    static const char *const steps[][2] = {
        {"/v3/auth/user/add", "{\"name\":\"r\",\"password\":\"secret\"}"},
        {"/v3/auth/role/add", "{\"name\":\"r\"}"},
        {"/v3/auth/role/grant", "{\"name\":\"r\",\"perm\":{\"permType\":\"READ\",\"key\":\"AA==\","
                                "\"range_end\":\"AA==\"}}"},
        {"/v3/auth/user/grant", "{\"user\":\"r\",\"role\":\"r\"}"},
    };
    struct etcd_server s = {.password = "secret"};
    struct lease_request r = asks("read only");
    struct lease_verdict v;
    struct hf_fault fault = {0};
    char url[256], answer[4096];
    assert_true(etcd_server_start(&s));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(etcd_server_ask(&s, steps[i][0], steps[i][1], answer, sizeof answer), 200);
    snprintf(url, sizeof url, "etcd://r:secret@127.0.0.1:%d", s.port);
    struct lease *l = must_open(url, 10000);
    assert_int_equal(lease_acquire(l, &r, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "permission denied"));
    assert_int_equal(etcd_server_ask(&s, "/v3/lease/leases", "{}", answer, sizeof answer), 200);
    assert_null(strstr(answer, "\"ID\""));
    lease_close(l);
    etcd_server_stop(&s);
}

static void tls_checks_both_sides(void **state)
{
    (void)state;
    struct etcd_server s = {.tls = true};
    char url[512];
    assert_true(etcd_server_start(&s));
    snprintf(url, sizeof url, "etcds://127.0.0.1:%d?cacert=%s&cert=%s&key=%s", s.port, s.ca_file,
             s.cert_file, s.key_file);
    struct lease *l = must_open(url, 10000);
    take_and_give(l, "tls");
    lease_close(l);
    snprintf(url, sizeof url, "etcds://127.0.0.1:%d?cert=%s&key=%s", s.port, s.cert_file,
             s.key_file);
    assert_refused(url, HF_UNREACHABLE, "certificate"); /* nobody vouches for the server */
    snprintf(url, sizeof url, "etcds://127.0.0.1:%d?cacert=%s", s.port, s.ca_file);
    assert_refused(url, HF_UNREACHABLE, "etcd"); /* nor for the client */
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", s.port);
    assert_refused(url, HF_UNREACHABLE, "etcd");
    etcd_server_stop(&s);
}

/* ---- watches ---- */

/* The server's answers to the request for a watch never arrive whole. */
static void a_waiter_whose_watch_is_cut_is_served_all_the_same(void **state)
{
    (void)state;
    struct relay *proxy;
    struct hf_fault fault = {0};
    proxy = proxy_start(server.port);
    relay_lose_only(proxy, "/v3/watch");
    relay_set(proxy, RELAY_CUT);
    struct lease *l = open_at(relay_port(proxy));
    struct lease *other = open_at(server.port);
    struct lease_request holder = asks("cut"), waiter = waits("cut");
    assert_int_equal(must_acquire(other, &holder).result, HF_DONE);
    assert_int_equal(must_acquire(l, &waiter).result, HF_TAKEN);
    for (int64_t end_ms = boot_ms() + 20000; relay_count(proxy).lost == 0;) {
        assert_true(boot_ms() < end_ms);
        assert_int_equal(lease_wait(l, &waiter, 300, &fault), HF_DONE);
    }
    assert_int_equal(must_release(other, &holder), HF_DONE);
    int64_t from_ms = boot_ms();
    assert_int_equal(lease_wait(l, &waiter, 60000, &fault), HF_DONE);
    assert_true(boot_ms() - from_ms < 15000);
    assert_int_equal(must_acquire(l, &waiter).result, HF_DONE);
    assert_int_equal(must_release(l, &waiter), HF_DONE);
    lease_close(l);
    lease_close(other);
    relay_stop(proxy);
}

#define HERD 20
struct sleeper {
    struct lease *l;
    struct lease_request r;
    pthread_t thread;
    atomic_int *n_granted;
};

static void *sleeper_run(void *arg)
{
    struct sleeper *s = arg;
    struct hf_fault fault;
    while (must_acquire(s->l, &s->r).result != HF_DONE)
        (void)!lease_wait(s->l, &s->r, 20000, &fault);
    atomic_fetch_add(s->n_granted, 1);
    return NULL;
}

static int64_t events_sent(void)
{
    return etcd_server_metric(&server, "etcd_debugging_mvcc_events_total");
}

static void await_granted(atomic_int *n_granted, int n)
{
    for (int64_t end_ms = boot_ms() + 20000; atomic_load(n_granted) < n; nap_ms(5))
        assert_true(boot_ms() < end_ms);
}

/* Returns the number of events that etcd sent for one release; 0: the machine was so slow that the
 * turn of the first waiter may have ended, which is told, too. */
static int64_t events_of_a_release(void)
{
    struct sleeper sleepers[HERD];
    atomic_int n_granted = 0;
    struct lease *l = open_at(server.port);
    struct lease_request holder = asks("herd");
    assert_int_equal(must_acquire(l, &holder).result, HF_DONE);
    for (int i = 0; i < HERD; i++) {
        struct sleeper *s = &sleepers[i];
        struct hf_fault fault;
        *s = (struct sleeper){.r = waits("herd"), .n_granted = &n_granted};
        assert_int_equal(lease_clone(l, &s->l, &fault), HF_DONE);
        assert_int_equal(must_acquire(s->l, &s->r).result, HF_TAKEN);
        assert_int_equal(pthread_create(&s->thread, NULL, sleeper_run, s), 0);
    }
    for (int64_t end_ms = boot_ms() + 20000;
         etcd_server_metric(&server, "etcd_debugging_mvcc_watcher_total") < HERD; nap_ms(20))
        assert_true(boot_ms() < end_ms); /* until all of them sleep */
    int64_t before = events_sent(), from_ms = boot_ms();
    assert_int_equal(must_release(l, &holder), HF_DONE);
    await_granted(&n_granted, 1);
    bool is_fast = boot_ms() - from_ms < WAITER_CLAIM_MS;
    int64_t sent = events_sent() - before;
    for (int i = 0; i < HERD; i++) {
        await_granted(&n_granted, i + 1);
        for (int k = 0; k < HERD; k++) /* whichever holds it */
            if (sleepers[k].l && must_renew(l, &sleepers[k].r).result == HF_DONE) {
                assert_int_equal(must_release(l, &sleepers[k].r), HF_DONE);
                pthread_join(sleepers[k].thread, NULL);
                lease_close(sleepers[k].l);
                sleepers[k].l = NULL;
            }
    }
    lease_close(l);
    return is_fast ? sent : 0;
}

/* Of all that wait, one watches the key of the holder. */
static void a_release_is_told_to_one_watcher(void **state)
{
    (void)state;
    int64_t sent = 0;
    for (int i = 0; i < 10 && sent == 0; i++)
        sent = events_of_a_release();
    assert_int_equal(sent, 1);
}

/* ---- the transactions ---- */

/* The place of a request that waits. */
static int64_t create_of(struct lease *l, const struct subject *s)
{
    struct etcd_line line = {0};
    struct hf_fault fault = {0};
    etcd_begin(&etcd_of(l)->client, 0);
    assert_int_equal(etcd_txn_look(etcd_of(l), s, 0, &line, &fault), HF_DONE);
    assert_true(line.has_own);
    int64_t create = line.own.create;
    etcd_line_close(&line);
    return create;
}

static bool claim(struct lease *l, const struct lease_request *r, int64_t create)
{
    struct subject s;
    struct etcd_line line = {0};
    struct hf_fault fault = {0};
    etcd_subject_init(&s, etcd_prefix(etcd_of(l)), r);
    etcd_begin(&etcd_of(l)->client, 0);
    assert_int_equal(etcd_txn_claim(etcd_of(l), &s, create, r, &line, &fault), HF_DONE);
    bool succeeded = line.succeeded;
    etcd_line_close(&line);
    return succeeded;
}

static void a_claim_is_refused_while_an_earlier_key_is_there(void **state)
{
    (void)state;
    struct subject s;
    struct lease *l = open_at(server.port);
    struct lease_request holder = asks("claims"), a = waits("claims"), b = waits("claims");
    assert_int_equal(must_acquire(l, &holder).result, HF_DONE);
    assert_int_equal(must_acquire(l, &a).result, HF_TAKEN);
    assert_int_equal(must_acquire(l, &b).result, HF_TAKEN);
    etcd_subject_init(&s, etcd_prefix(etcd_of(l)), &a);
    int64_t create_a = create_of(l, &s);
    etcd_subject_init(&s, etcd_prefix(etcd_of(l)), &b);
    int64_t create_b = create_of(l, &s);
    assert_true(create_a < create_b);
    assert_false(claim(l, &a, create_a)); /* the holder is there */
    assert_int_equal(must_release(l, &holder), HF_DONE);
    assert_false(claim(l, &b, create_b)); /* a came earlier */
    assert_false(claim(l, &b, create_a)); /* it is not its own revision */
    assert_true(claim(l, &a, create_a));
    assert_false(claim(l, &a, create_a)); /* never put again */
    assert_false(claim(l, &b, create_b));
    assert_int_equal(must_release(l, &a), HF_DONE);
    assert_true(claim(l, &b, create_b));
    assert_int_equal(must_release(l, &b), HF_DONE);
    lease_close(l);
}

/* etcd 3.4's own lock call returns the lock of a lease that ended meanwhile. */
static void a_place_whose_lease_has_ended_is_never_claimed(void **state)
{
    (void)state;
    struct subject s;
    struct lease *l = open_at(server.port);
    struct lease_request holder = asks("ended"), a = waits("ended");
    a.ttl_ms = 5000;
    assert_int_equal(must_acquire(l, &holder).result, HF_DONE);
    assert_int_equal(must_acquire(l, &a).result, HF_TAKEN);
    etcd_subject_init(&s, etcd_prefix(etcd_of(l)), &a);
    int64_t create = create_of(l, &s);
    for (int64_t end_ms = boot_ms() + 20000;;) { /* nobody sends heartbeats */
        struct lease_state state_of = must_inspect(l, "ended");
        size_t n_waiters = state_of.n_waiters;
        lease_state_close(&state_of);
        if (n_waiters == 0)
            break;
        assert_true(boot_ms() < end_ms);
        nap_ms(100);
    }
    assert_int_equal(must_release(l, &holder), HF_DONE);
    nap_ms(600);
    assert_false(claim(l, &a, create));
    struct lease_verdict v =
        must_acquire(l, &a); /* a request of its own, with a lease that lives */
    assert_int_equal(v.result, HF_DONE);
    assert_true(v.fence > create);
    assert_int_equal(must_renew(l, &a).fence, v.fence);
    assert_int_equal(must_release(l, &a), HF_DONE);
    lease_close(l);
}

static void a_refused_request_leaves_nothing_behind(void **state)
{
    (void)state;
    char answer[4096];
    struct lease *l = open_at(server.port);
    struct lease_request holder = asks("nothing"), other = asks("nothing");
    assert_int_equal(must_acquire(l, &holder).result, HF_DONE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(must_acquire(l, &other).result, HF_TAKEN);
    assert_int_equal(must_release(l, &other), HF_LOST);
    assert_int_equal(must_release(l, &holder), HF_DONE);
    assert_int_equal(etcd_server_ask(&server, "/v3/lease/leases", "{}", answer, sizeof answer),
                     200);
    assert_null(strstr(answer, "\"ID\""));
    assert_int_equal(etcd_server_ask(&server, "/v3/kv/range",
                                     "{\"key\":\"AA==\",\"range_end\":\"AA==\"}", answer,
                                     sizeof answer),
                     200);
    assert_null(strstr(answer, "kvs"));
    lease_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_request_leaves_nothing_behind),
        cmocka_unit_test(an_endpoint_that_fails_is_left_for_the_next),
        cmocka_unit_test(a_handle_changes_to_an_endpoint_that_answers),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(prefixes_keep_locks_apart),
        cmocka_unit_test(a_server_that_is_no_etcd_is_told_by_its_answers),
        cmocka_unit_test(users_have_passwords_and_tokens_that_expire),
        cmocka_unit_test(a_user_who_may_only_read_leaves_no_lease_behind),
        cmocka_unit_test(tls_checks_both_sides),
        cmocka_unit_test(a_waiter_whose_watch_is_cut_is_served_all_the_same),
        cmocka_unit_test(a_release_is_told_to_one_watcher),
        cmocka_unit_test(a_claim_is_refused_while_an_earlier_key_is_there),
        cmocka_unit_test(a_place_whose_lease_has_ended_is_never_claimed),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
