/* The Redis driver over TLS, on a real server with certificates that the openssl command makes. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/gate.h"
#include "support/process.h"

static char dir[64], port[16];
static int tls_port;

static void shell(const char *command)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-ec", command, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* An authority; a certificate for the server, whose only name is localhost; one for the client. */
static void make_certificates(void)
{
    char command[2048];
    process_make_dir("tls", dir, sizeof dir);
    snprintf(command, sizeof command,
             "cd %s; exec 2>log; ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';"
             "openssl req -x509 $ec -days 2 -subj /CN=authority -keyout ca.key -out ca.crt;"
             "echo subjectAltName=DNS:localhost > names;"
             "for who in server client; do"
             "  openssl req $ec -subj /CN=$who -keyout $who.key -out $who.csr;"
             "  openssl x509 -req -days 2 -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial"
             "    -extfile names -out $who.crt;"
             "done;"
             "openssl x509 -req -days -1 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial"
             "  -extfile names -out expired.crt;"
             "openssl req -x509 $ec -days 2 -subj /CN=other -keyout other.key -out other.crt",
             dir);
    shell(command);
}

static void url_put(char ret[256], const char *host, int to, const char *parameters)
{
    snprintf(ret, 256, "rediss://%s:%d?cacert=%s/ca.crt%s", host, to, dir, parameters);
}

/* The fault of an open that must fail. */
static struct hf_fault open_fails_within(const char *url, int64_t timeout_ms)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = timeout_ms, .clock = &clock_system};
    assert_int_equal(lease_open(&lease_redis, url, &options, &l, &fault), HF_UNREACHABLE);
    return fault;
}

static struct hf_fault open_fails(const char *url) { return open_fails_within(url, 10000); }

static int64_t connections(void)
{
    char all[16384];
    redis_server_ask(&server, "INFO stats", all, sizeof all);
    return strtoll(strstr(all, "total_connections_received:") + 27, NULL, 10);
}

static void locks_are_given_back_in_batches_and_the_connection_is_kept(void **state)
{
    (void)state;
    enum { N = 300 };
    static char names[N][16];
    struct lease_request q[N];
    struct lease_verdict v[N];
    char url[256];
    url_put(url, "localhost", tls_port, "");
    struct lease *l = must_open(url, 10000);
    for (int i = 0; i < N; i++) { /* more than one record of TLS each way */
        snprintf(names[i], sizeof names[i], "tls-%d", i);
        q[i] = asks(names[i]);
    }
    int64_t before = connections();
    for (int i = 0; i < N; i++)
        assert_int_equal(must_acquire(l, &q[i]).result, HF_DONE);
    nap_ms(150); /* idle: the link checks whether it is still open */
    assert_int_equal(lease_renew(l, q, N, v, NULL), HF_DONE);
    nap_ms(150);
    assert_int_equal(lease_release(l, q, N, v, NULL), HF_DONE);
    for (int i = 0; i < N; i++)
        assert_int_equal(v[i].result, HF_DONE);
    assert_int_equal(connections(), before + 1); /* that of INFO */
    assert_nothing_left();
    lease_close(l);
}

struct sleeper {
    struct lease *l;
    struct lease_request q;
    int64_t woken_ms;
    enum hf_result result;
};

static void *sleeps(void *ctx)
{
    struct sleeper *s = ctx;
    s->result = lease_wait(s->l, &s->q, 20000, NULL);
    s->woken_ms = boot_ms();
    return NULL;
}

static bool one_listens(void *ctx)
{
    (void)ctx;
    char answer[512];
    redis_server_ask(&server, "PUBSUB CHANNELS holdfast:*", answer, sizeof answer);
    return strtol(answer + 1, NULL, 10) == 1;
}

static void a_waiter_hears_of_its_turn(void **state)
{
    (void)state;
    char url[256];
    url_put(url, "localhost", tls_port, "");
    struct lease *l = must_open(url, 10000);
    struct lease_request holder = asks("turn");
    must_acquire(l, &holder);
    int64_t best_ms = INT64_MAX;
    for (int i = 0; i < 30 && best_ms >= 100; i++) {
        struct sleeper s = {.l = must_open(url, 10000), .q = waits("turn")};
        pthread_t thread;
        must_acquire(s.l, &s.q);
        assert_int_equal(pthread_create(&thread, NULL, sleeps, &s), 0);
        assert_true(becomes(one_listens, NULL));
        int64_t from_ms = boot_ms();
        must_release(l, &holder);
        pthread_join(thread, NULL);
        assert_int_equal(s.result, HF_DONE);
        best_ms = s.woken_ms - from_ms < best_ms ? s.woken_ms - from_ms : best_ms;
        assert_int_equal(must_acquire(s.l, &s.q).result, HF_DONE);
        holder = s.q;
        lease_close(s.l);
    }
    assert_true(best_ms < 100); /* a heartbeat would take longer, at least once */
    must_release(l, &holder);
    lease_close(l);
}

static void only_the_right_name_of_a_trusted_authority_will_do(void **state)
{
    (void)state;
    char url[256];
    url_put(url, "127.0.0.1", tls_port, "");
    struct hf_fault fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "IP address mismatch"));
    snprintf(url, sizeof url, "rediss://localhost:%d", tls_port); /* trusts the system's */
    fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "TLS: the handshake failed"));
    assert_non_null(strstr(fault.msg, "certificate"));
    snprintf(url, sizeof url, "rediss://localhost:%d?cacert=%s/other.crt", tls_port, dir);
    fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "certificate"));
    snprintf(url, sizeof url, "rediss://localhost:%d?cacert=%s/nothing", tls_port, dir);
    fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "cacert="));
    url_put(url, "localhost", tls_port, "&cert=/nothing&key=/nothing");
    fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "cert="));
}

static void an_expired_certificate_is_refused(void **state)
{
    (void)state;
    char url[256], command[128];
    struct gate *g;
    struct hf_fault fault = {0};
    snprintf(command, sizeof command, "CONFIG SET tls-cert-file %s/expired.crt", dir);
    must_ask(command);
    url_put(url, "localhost", tls_port, "");
    fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "certificate has expired"));
    assert_int_equal(gate_open(url, &clock_system, 10000, &g, &fault), HF_DONE);
    assert_int_equal(gate_ping(g, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "certificate has expired"));
    gate_close(g);
    snprintf(command, sizeof command, "CONFIG SET tls-cert-file %s/server.crt", dir);
    must_ask(command);
}

static void a_server_that_speaks_no_tls_is_left_in_time(void **state)
{
    (void)state;
    char url[256];
    int hole;
    url_put(url, "localhost", server.port, ""); /* plain Redis, which waits for the end of a line */
    struct hf_fault fault = open_fails_within(url, 1000);
    assert_non_null(strstr(fault.msg, "TLS: "));
    url_put(url, "localhost", port_free(&hole), "");
    int64_t from_ms = boot_ms();
    fault = open_fails_within(url, 1000);
    assert_in_range(boot_ms() - from_ms, 990, 10000);
    assert_non_null(strstr(fault.msg, "no handshake in time"));
    close(hole);
}

static void a_server_that_wants_our_certificate_gets_it(void **state)
{
    (void)state;
    char url[256], files[160];
    must_ask("CONFIG SET tls-auth-clients yes");
    url_put(url, "localhost", tls_port, "");
    struct hf_fault fault = open_fails(url);
    assert_non_null(strstr(fault.msg, "our certificate"));
    snprintf(files, sizeof files, "&cert=%s/client.crt&key=%s/client.key", dir, dir);
    url_put(url, "localhost", tls_port, files);
    struct lease *l = must_open(url, 10000);
    struct lease_request q = asks("mutual");
    assert_int_equal(must_acquire(l, &q).result, HF_DONE);
    must_release(l, &q);
    lease_close(l);
    must_ask("CONFIG SET tls-auth-clients no");
}

static void the_gate_speaks_tls_too(void **state)
{
    (void)state;
    char url[256];
    struct gate *g;
    struct hf_fault fault;
    url_put(url, "localhost", tls_port, "");
    assert_int_equal(gate_open(url, &clock_system, 10000, &g, &fault), HF_DONE);
    assert_int_equal(gate_ping(g, &fault), HF_DONE);
    gate_close(g);
    url_put(url, "localhost", tls_port, "&min_replicas=1");
    assert_int_equal(gate_open(url, &clock_system, 10000, &g, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "min_replicas"));
}

static void a_gate_says_if_it_shows_its_password_to_the_network(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool shows;
    } cases[] = {
        {"redis://:secret@gate.example", true},
        {"redis://gate.example", false},
        {"rediss://:secret@gate.example", false},
        {"redis://:secret@localhost", false},
        {"redis://:secret@127.0.0.9:7000", false},
        {"redis+unix://:secret@/run/redis.sock", false},
        {"redis+sentinel://:secret@localhost,h2.example/main", true},
        {"redis+sentinel://:secret@localhost,127.0.0.1:7/main", false},
        {"rediss+sentinel://:secret@h1.example/main", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gate *g;
        struct hf_fault fault = {0};
        if (gate_open(cases[i].url, &clock_system, 0, &g, &fault) != HF_DONE)
            fail_msg("%s: %s", cases[i].url, fault.msg);
        if (gate_shows_password(g) != cases[i].shows)
            fail_msg("%s", cases[i].url);
        gate_close(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_are_given_back_in_batches_and_the_connection_is_kept),
        cmocka_unit_test(a_waiter_hears_of_its_turn),
        cmocka_unit_test(only_the_right_name_of_a_trusted_authority_will_do),
        cmocka_unit_test(an_expired_certificate_is_refused),
        cmocka_unit_test(a_server_that_speaks_no_tls_is_left_in_time),
        cmocka_unit_test(a_server_that_wants_our_certificate_gets_it),
        cmocka_unit_test(the_gate_speaks_tls_too),
        cmocka_unit_test(a_gate_says_if_it_shows_its_password_to_the_network),
    };
    char files[3][128], command[128];
    make_certificates();
    tls_port = port_free(NULL);
    snprintf(port, sizeof port, "%d", tls_port);
    static const char *const names[] = {"server.crt", "server.key", "ca.crt"};
    for (int i = 0; i < 3; i++)
        snprintf(files[i], sizeof files[i], "%s/%s", dir, names[i]);
    const char *const options[] = {"--tls-port",
                                   port,
                                   "--tls-cert-file",
                                   files[0],
                                   "--tls-key-file",
                                   files[1],
                                   "--tls-ca-cert-file",
                                   files[2],
                                   "--tls-auth-clients",
                                   "no",
                                   NULL};
    server.options = options;
    int failed = run_with_redis(tests);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    shell(command);
    return failed;
}
