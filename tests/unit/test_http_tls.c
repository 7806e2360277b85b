/* Connections with TLS, driven step by step (support/site.h) by a client of OpenSSL: handshakes
 * that come slowly or not at all, records that do not fit requests, sockets that fill, and ends. */
#include "support/fixtures.h"

#include <openssl/err.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/tls.h"
#include "support/certificates.h"
#include "support/process.h"
#include "support/site_claims.h"

#define DAY_S INT64_C(86400)
#define HANDSHAKE_S 10 /* see conn.c */

static char dir[64], cert_file[96], key_file[96];
static struct certificate authority, server_cert;
static struct tls *tls;
static SSL_CTX *context; /* of clients */
static SSL *ssl;         /* of `client` */

/* ---- the client ---- */

static int64_t site_now_s(void) { return clock_wall_us(&site.clock.clock) / 1000000; }

static void open_ssl(void)
{
    ssl = SSL_new(context);
    assert_non_null(ssl);
    assert_int_equal(SSL_set_fd(ssl, client.fd), 1);
    SSL_set_connect_state(ssl);
    assert_int_equal(SSL_set1_host(ssl, "localhost"), 1);
}

/* A client with this much room for answers in the socket; 0: as usual. */
static void open_client(int room)
{
    SSL_free(ssl);
    client_close(&client);
    site_turn(&site, 2);
    client_open(&client, &site, room);
    open_ssl();
}

static bool shake_hands(void)
{
    for (int i = 0; i < 20; i++) {
        ERR_clear_error();
        int n = SSL_do_handshake(ssl);
        if (n == 1)
            return true;
        if (SSL_get_error(ssl, n) != SSL_ERROR_WANT_READ)
            return false;
        site_turn(&site, 2);
    }
    return false;
}

static void say(const char *text, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        size_t n = 0;
        if (SSL_write_ex(ssl, text + sent, len - sent, &n) != 1)
            assert_int_equal(SSL_get_error(ssl, 0), SSL_ERROR_WANT_WRITE);
        sent += n;
        site_turn(&site, 2);
    }
}

/* Receives everything that there is into client.in.  Returns OpenSSL's reason to stop. */
static int hear(void)
{
    char data[4096];
    int why = SSL_ERROR_WANT_READ;
    for (int i = 0; i < 4 && why == SSL_ERROR_WANT_READ; i++) {
        size_t n = 0;
        site_turn(&site, 4);
        ERR_clear_error();
        while (SSL_read_ex(ssl, data, sizeof data, &n) == 1)
            buf_put(&client.in, data, n);
        why = SSL_get_error(ssl, 0);
    }
    return why;
}

static struct reply must_answer(int status, const char *body)
{
    struct reply r = {0};
    for (int i = 0; i < 400 && !client_take(&client, false, &r); i++)
        (void)hear();
    assert_int_equal(r.status, status);
    if (body) {
        assert_int_equal(r.body.len, strlen(body));
        assert_memory_equal(r.body.data, body, r.body.len);
    }
    return r;
}

static void assert_server_closed(void)
{
    site_turn(&site, 4);
    assert_int_equal(site_connections(&site), 0);
    assert_null(site.loop->unread);
}

static int64_t handshakes(const char *result)
{
    char label[32];
    (void)snprintf(label, sizeof label, "result=\"%s\"", result);
    return (int64_t)metric_value(
        metrics_find(site.metrics, "holdfast_tls_handshakes_total", label, NULL));
}

/* ---- fixtures ---- */

static int open_all(void **state)
{
    struct hf_err err = {0};
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    process_make_dir("https", dir, sizeof dir);
    (void)snprintf(cert_file, sizeof cert_file, "%s/server.crt", dir);
    (void)snprintf(key_file, sizeof key_file, "%s/server.key", dir);
    site_open(&site);
    int64_t now_s = site_now_s();
    certificate_make(&authority, "authority", NULL, now_s - DAY_S, now_s + 400 * DAY_S);
    certificate_make(&server_cert, "localhost", &authority, now_s - DAY_S, now_s + 90 * DAY_S);
    certificates_write(cert_file, (const struct certificate *[]){&server_cert}, 1);
    certificate_write_key(key_file, &server_cert, NULL);
    tls = tls_new(site.metrics, &site.clock.clock);
    assert_true(tls_load(tls, cert_file, key_file, &err));
    site.server->config.tls = tls;
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.cert);
    X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(context), (time_t)now_s);
    client_open(&client, &site, 0);
    open_ssl();
    return 0;
}

static int close_all(void **state)
{
    SSL_free(ssl);
    ssl = NULL;
    SSL_CTX_free(context);
    close_site(state);
    tls_free(tls);
    certificate_close(&server_cert);
    certificate_close(&authority);
    unlink(cert_file);
    unlink(key_file);
    return rmdir(dir);
}

#define TLS_TEST(claim) cmocka_unit_test_setup_teardown(claim, open_all, close_all)

/* ---- requests ---- */

static void requests_are_answered_over_tls_one_after_the_other(void **state)
{
    (void)state;
    assert_true(shake_hands());
    assert_string_equal(SSL_get_version(ssl), "TLSv1.3");
    for (int i = 0; i < 20; i++) {
        say(GET("/now"), strlen(GET("/now")));
        assert_false(must_answer(200, "now").close);
        assert_idle();
    }
    assert_int_equal(handshakes("done"), 1);
    assert_int_equal(handshakes("failed"), 0);
}

static void requests_that_share_a_record_are_all_answered_without_another_byte(void **state)
{
    (void)state;
    enum { N = 300 }; /* more than a block has room for, and than one turn answers */
    struct buf all = {0};
    assert_true(shake_hands());
    for (int i = 0; i < N; i++)
        buf_str(&all, GET("/now"));
    say(all.data, all.len);
    for (int i = 0; i < N; i++)
        must_answer(200, "now");
    assert_idle();
    buf_close(&all);
}

static void a_request_that_comes_byte_by_byte_is_answered(void **state)
{
    (void)state;
    static const char text[] = POST("/echo", "Content-Length: 5\r\n") "hello";
    assert_true(shake_hands());
    for (size_t i = 0; i < sizeof text - 1; i++)
        say(text + i, 1);
    must_answer(201, "hello");
}

static void a_large_body_and_a_large_answer_get_through_narrow_sockets(void **state)
{
    (void)state;
    enum { SENT = 700 * 1024, ANSWERED = 1000000 };
    char head[128], length[32];
    struct buf all = {0};
    open_client(4096);
    assert_true(shake_hands());
    (void)snprintf(head, sizeof head, POST("/large", "Content-Length: %d\r\n"), SENT);
    buf_str(&all, head);
    for (int i = 0; i < SENT; i++)
        buf_char(&all, 'x');
    say(all.data, all.len);
    (void)snprintf(length, sizeof length, "%d", SENT);
    must_answer(200, length);
    say(GET("/bytes/1000000"), strlen(GET("/bytes/1000000")));
    struct reply r = must_answer(200, NULL);
    assert_int_equal(r.body.len, ANSWERED);
    for (size_t i = 0; i < ANSWERED; i++)
        assert_int_equal(r.body.data[i], site_byte(i));
    assert_idle();
    buf_close(&all);
}

static void a_request_that_waits_is_answered_when_its_work_is_done(void **state)
{
    (void)state;
    assert_true(shake_hands());
    say(GET("/wait/a") GET("/now"), strlen(GET("/wait/a") GET("/now")));
    (void)hear();
    assert_int_equal(client.in.len, 0);
    assert_true(site_finish(&site, "a"));
    must_answer(200, "waited a");
    must_answer(200, "now");
}

static void a_client_that_asks_before_it_sends_its_body_is_told_to(void **state)
{
    (void)state;
    static const char head[] = POST("/echo", "Content-Length: 2\r\nExpect: 100-continue\r\n");
    assert_true(shake_hands());
    say(head, sizeof head - 1);
    (void)hear();
    assert_int_equal(client.in.len, 25);
    client.in.len = 0;
    say("ok", 2);
    must_answer(201, "ok");
}

/* ---- streams ---- */

static void a_stream_goes_on_after_its_socket_was_full(void **state)
{
    (void)state;
    open_client(4096);
    assert_true(shake_hands());
    site.topic.padding = 20000;
    say(GET("/stream"), strlen(GET("/stream")));
    for (int i = 0; i < 8; i++) {
        site.topic.seq++;
        site_pass(&site, 200000); /* nothing is read meanwhile */
    }
    for (int i = 0; i < 200; i++) {
        (void)hear();
        site_pass(&site, 50000);
    }
    buf_char(&client.in, '\0');
    assert_non_null(strstr(client.in.data, "id: 8"));
    assert_int_equal(site_connections(&site), 1);
    site.topic.ended = true;
    site_pass(&site, 200000);
    assert_int_equal(hear(), SSL_ERROR_ZERO_RETURN); /* the server said goodbye */
    client_leave(&client);
    assert_server_closed();
}

/* ---- handshakes ---- */

static void a_connection_that_says_nothing_is_closed_and_has_cost_nothing(void **state)
{
    (void)state;
    site_turn(&site, 4);
    assert_null(site.loop->conns->tls);
    site_jump(&site, (HANDSHAKE_S - 1) * SECOND_US);
    assert_int_equal(site_connections(&site), 1);
    site_jump(&site, 2 * SECOND_US);
    assert_server_closed();
}

static void a_handshake_has_one_deadline_however_it_drips(void **state)
{
    (void)state;
    char hello[2048];
    BIO *memory = BIO_new(BIO_s_mem());
    SSL *other = SSL_new(context);
    SSL_set_bio(other, BIO_new(BIO_s_mem()), memory);
    SSL_set_connect_state(other);
    (void)SSL_do_handshake(other);
    int len = BIO_read(memory, hello, sizeof hello);
    assert_true(len > 100);
    for (int i = 0; i < HANDSHAKE_S - 1; i++) {
        client_write(&client, hello + i, 1);
        site_jump(&site, SECOND_US);
        assert_int_equal(site_connections(&site), 1);
    }
    client_write(&client, hello + HANDSHAKE_S, 1);
    site_jump(&site, 2 * SECOND_US);
    assert_server_closed();
    assert_int_equal(handshakes("failed"), 1);
    SSL_free(other);
}

/* Its place is for probes, which ask at once. */
static void a_guest_that_has_shaken_hands_has_a_second_to_ask(void **state)
{
    (void)state;
    site.server->connections_max = 0;
    open_client(0);
    assert_true(shake_hands());
    site_turn(&site, 4);
    assert_int_equal(atomic_load(&site.server->n_guests), 1);
    assert_int_equal(handshakes("done"), 1);
    site_jump(&site, 2 * SECOND_US);
    assert_int_equal(atomic_load(&site.server->n_guests), 0);
    assert_server_closed();
}

static void half_a_handshake_makes_room_for_a_newcomer(void **state)
{
    (void)state;
    enum { N = 4 };
    struct client half[N];
    client_leave(&client);
    site_turn(&site, 2);
    site.server->connections_max = N;
    for (int i = 0; i < N; i++) {
        client_open(&half[i], &site, 0);
        client_write(&half[i], "\x16\x03\x01\x02", (size_t)i);
        site_jump(&site, SECOND_US / 10);
    }
    assert_int_equal(site_connections(&site), N);
    open_client(0);
    assert_true(shake_hands());
    say(GET("/now"), strlen(GET("/now")));
    must_answer(200, "now");
    assert_int_equal(site_connections(&site), N);
    for (int i = 0; i < N; i++)
        client_close(&half[i]);
}

/* A client that has sent the beginning of a hello. */
static void open_half(struct client *c)
{
    client_open(c, &site, 0);
    client_write(c, "\x16\x03\x01\x40\x00\x01\x02\x01\x40", 9);
}

static void handshakes_that_do_not_go_on_are_closed_when_they_are_many(void **state)
{
    (void)state;
    enum { N = HANDSHAKES_MAX + 20 };
    static struct client half[N];
    assert_int_equal(SSL_do_handshake(ssl), -1); /* the hello of an honest client comes first */
    for (int i = 0; i < N; i++)
        open_half(&half[i]);
    assert_true(shake_hands()); /* and it goes on */
    for (int i = 0; i < N; i++)
        site_turn(&site, 1);
    assert_int_equal(site.loop->handshakes.n, HANDSHAKES_MAX);
    assert_int_equal(site_connections(&site), HANDSHAKES_MAX + 1);
    say(GET("/now"), strlen(GET("/now")));
    must_answer(200, "now");
    for (int i = 0; i < N; i++)
        client_close(&half[i]);
    site_turn(&site, 8);
    assert_int_equal(site.loop->handshakes.n, 0);
    assert_null(site.loop->handshakes.oldest);
}

/* A client far away needs a while between its hello and the rest.  A crowd of halves that turns
 * over meanwhile makes room among itself. */
static void a_crowd_of_handshakes_does_not_push_out_those_of_others(void **state)
{
    (void)state;
    enum { N = 2 * HANDSHAKES_MAX };
    static struct client half[N];
    assert_int_equal(SSL_do_handshake(ssl), -1);
    site_turn(&site, 2);
    for (int i = 0; i < N; i++) {
        client_open_from(&half[i], &site, "192.0.2.1");
        client_write(&half[i], "\x16\x03\x01", 3);
        site_turn(&site, 1);
    }
    site_turn(&site, 8);
    assert_int_equal(site.loop->handshakes.n, HANDSHAKES_MAX);
    assert_true(shake_hands());
    say(GET("/now"), strlen(GET("/now")));
    must_answer(200, "now");
    for (int i = 0; i < N; i++)
        client_close(&half[i]);
}

static void a_turn_has_few_steps_of_handshakes(void **state)
{
    (void)state;
    enum { N = 4 * HANDSHAKE_STEPS };
    static struct client half[N];
    for (int i = 0; i < N; i++)
        open_half(&half[i]);
    for (unsigned turn = 1; turn <= 3; turn++) {
        site_turn(&site, 1);
        assert_int_equal(site.loop->handshakes.n, turn * HANDSHAKE_STEPS);
    }
    for (int i = 0; i < N; i++)
        client_close(&half[i]);
}

static void a_plain_request_is_told_that_the_port_speaks_https(void **state)
{
    (void)state;
    struct reply r;
    client_send(&client, GET("/now"));
    assert_true(client_reply(&client, false, &r));
    assert_int_equal(r.status, 400);
    assert_true(r.close);
    assert_non_null(memmem(r.body.data, r.body.len, "\"tls_required\"", 14));
    expect_closed(&client);
    client_leave(&client);
    assert_server_closed();
    assert_int_equal(handshakes("failed"), 0);
}

static void bytes_that_are_no_handshake_end_the_connection(void **state)
{
    (void)state;
#define BYTES(text)                                                                                \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }
    static const struct text texts[] = {
        BYTES("\r\n"),
        BYTES("\x80\x2e\x01"),
        BYTES("ssh-2.0"),
        BYTES("\x16\x03\x01\x40\x00hello hello hello"),
        BYTES("\x16GET / HTTP/1.1\r\n\r\n"),
        BYTES("\x16\x03\x01\x00\x05\x02\x00\x00\x00\x00"),
    };
#undef BYTES
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        open_client(0);
        client_write(&client, texts[i].data, texts[i].len);
        client_finish(&client);
        assert_server_closed();
    }
}

static void versions_and_protocols_that_we_do_not_speak_are_refused(void **state)
{
    (void)state;
    SSL_set_min_proto_version(ssl, TLS1_VERSION);
    SSL_set_max_proto_version(ssl, TLS1_1_VERSION);
    SSL_set_security_level(ssl, 0);
    assert_false(shake_hands());
    assert_server_closed();
    open_client(0);
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2", 3);
    assert_false(shake_hands());
    assert_server_closed();
    open_client(0);
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    SSL_set_cipher_list(ssl, "AES128-SHA:AES256-GCM-SHA384:ECDHE-ECDSA-AES128-SHA256");
    assert_false(shake_hands()); /* no forward secrecy, or no authenticated encryption */
    assert_server_closed();
    assert_int_equal(handshakes("failed"), 3);
    open_client(0);
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    assert_true(shake_hands());
    const unsigned char *chosen;
    unsigned len;
    SSL_get0_alpn_selected(ssl, &chosen, &len);
    assert_int_equal(len, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
}

static void tls_1_2_works_and_is_not_renegotiated(void **state)
{
    (void)state;
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    assert_true(shake_hands());
    say(GET("/now"), strlen(GET("/now")));
    must_answer(200, "now");
    assert_int_equal(SSL_renegotiate(ssl), 1);
    assert_false(shake_hands()); /* the server answers with no_renegotiation and goes on */
    assert_int_equal(handshakes("done"), 1);
}

static void a_ticket_resumes_and_the_server_keeps_no_sessions(void **state)
{
    (void)state;
    assert_true(shake_hands());
    say(GET("/now"), strlen(GET("/now")));
    must_answer(200, "now");
    SSL_SESSION *session = SSL_get1_session(ssl);
    assert_int_equal(SSL_SESSION_is_resumable(session), 1);
    (void)SSL_shutdown(ssl);
    open_client(0);
    SSL_set_session(ssl, session);
    assert_true(shake_hands());
    assert_int_equal(SSL_session_reused(ssl), 1);
    SSL_SESSION_free(session);
}

/* ---- after the handshake ---- */

static void keys_are_changed_when_the_client_asks_for_it(void **state)
{
    (void)state;
    assert_true(shake_hands());
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        say(GET("/now"), strlen(GET("/now")));
        must_answer(200, "now");
    }
}

static void a_client_that_asks_for_keys_and_takes_no_answer_is_closed(void **state)
{
    (void)state;
    open_client(2048);
    assert_true(shake_hands());
    int n = 0;
    for (; n < 10000 && site_connections(&site) > 0; n++) {
        if (SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) != 1 || SSL_do_handshake(ssl) != 1)
            break;
        site_turn(&site, 2);
    }
    assert_true(n < 10000);
    assert_server_closed();
}

static void bytes_that_were_changed_on_the_way_end_the_connection(void **state)
{
    (void)state;
    static const char record[] = "\x17\x03\x03\x00\x20 this is no record of this key ...";
    assert_true(shake_hands());
    client_write(&client, record, sizeof record - 1);
    assert_server_closed();
}

static void a_request_before_a_goodbye_is_answered(void **state)
{
    (void)state;
    assert_true(shake_hands());
    say(GET("/wait/a"), strlen(GET("/wait/a")));
    (void)SSL_shutdown(ssl);
    (void)hear();
    assert_true(site_finish(&site, "a"));
    must_answer(200, "waited a");
    assert_int_equal(hear(), SSL_ERROR_ZERO_RETURN);
    assert_server_closed();
}

static void an_end_without_a_goodbye_is_an_end(void **state)
{
    (void)state;
    assert_true(shake_hands());
    static const char cut[] = POST("/echo", "Content-Length: 5\r\n") "hel";
    say(GET("/now"), strlen(GET("/now")));
    must_answer(200, "now");
    say(cut, sizeof cut - 1);
    client_finish(&client);
    assert_int_equal(hear(), SSL_ERROR_ZERO_RETURN);
    assert_int_equal(client.in.len, 0); /* half a body is never acted on */
    assert_server_closed();
}

static void a_connection_that_ends_after_its_answer_says_goodbye(void **state)
{
    (void)state;
    static const char last[] = "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_true(shake_hands());
    say(last, sizeof last - 1);
    assert_true(must_answer(200, "now").close);
    assert_int_equal(hear(), SSL_ERROR_ZERO_RETURN);
    client_leave(&client);
    assert_server_closed();
}

static void other_bytes_after_a_full_socket_do_not_go_out_as_if_they_were_the_first(void **state)
{
    (void)state;
    char many[16000];
    memset(many, 'a', sizeof many);
    open_client(2048);
    assert_true(shake_hands());
    struct tls_session *session = site.loop->conns->tls;
    struct iovec part = {many, sizeof many};
    while (tls_write(session, &part, 1) > 0)
        ;
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(tls_write(session, &part, 1), -1);
    assert_int_equal(errno, EAGAIN);
    many[0] = 'b';
    assert_int_equal(tls_write(session, &part, 1), -1);
    assert_int_equal(errno, EPROTO);
}

/* ---- certificates ---- */

static void must_refuse(const char *cert, const char *key, const char *why)
{
    struct hf_err err = {0};
    if (tls_load(tls, cert, key, &err))
        fail_msg("nothing is wrong, but it should be: %s", why);
    if (!strstr(err.msg, why))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
}

static void files_that_are_of_no_use_are_refused_and_the_old_certificate_stays(void **state)
{
    (void)state;
    char other_cert[96], other_key[96];
    struct certificate other;
    int64_t now_s = site_now_s();
    certificate_make(&other, "localhost", &authority, now_s - DAY_S, now_s + 60 * DAY_S);
    (void)snprintf(other_cert, sizeof other_cert, "%s/other.crt", dir);
    (void)snprintf(other_key, sizeof other_key, "%s/other.key", dir);
    must_refuse(other_cert, key_file, "No such file");
    must_refuse(cert_file, other_key, "No such file");
    must_refuse(key_file, key_file, "there is no certificate in it");
    must_refuse(dir, key_file, "there is no certificate in it");
    certificate_write_key(other_key, &other, NULL);
    must_refuse(cert_file, other_key, "the key does not belong to the certificate");
    assert_int_equal(chmod(other_key, 0640), 0);
    must_refuse(cert_file, other_key, "chmod 600");
    certificate_write_key(other_key, &other, "secret");
    must_refuse(cert_file, other_key, "the key is encrypted");
    certificates_write(other_key, (const struct certificate *[]){&other}, 1);
    must_refuse(cert_file, other_key, "there is no private key in it");
    const struct certificate *turned[] = {&authority, &server_cert};
    certificates_write(other_cert, turned, 2);
    must_refuse(other_cert, key_file, "wrong order");
    const struct certificate *strange[] = {&server_cert, &other};
    certificates_write(other_cert, strange, 2);
    must_refuse(other_cert, key_file, "wrong order");
    const struct certificate *right[] = {&server_cert, &authority};
    struct hf_err err = {0};
    certificates_write(other_cert, right, 2);
    assert_true(tls_load(tls, other_cert, key_file, &err));
    struct stat st;
    assert_int_equal(stat(other_cert, &st), 0);
    assert_int_equal(truncate(other_cert, st.st_size - 100), 0);
    must_refuse(other_cert, key_file, "damaged");
    assert_true(shake_hands());
    unlink(other_cert);
    unlink(other_key);
    certificate_close(&other);
}

static void a_certificate_is_replaced_for_new_connections(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct certificate next;
    int64_t now_s = site_now_s();
    const struct metric *expires =
        metrics_find(site.metrics, "holdfast_tls_certificate_expires_seconds", NULL, NULL);
    assert_int_equal((int64_t)metric_value(expires), now_s + 90 * DAY_S);
    assert_true(shake_hands());
    certificate_make(&next, "localhost", &authority, now_s - DAY_S, now_s + 5 * DAY_S);
    certificates_write(cert_file, (const struct certificate *[]){&next}, 1);
    certificate_write_key(key_file, &next, NULL);
    assert_true(tls_load(tls, cert_file, key_file, &err));
    assert_int_equal((int64_t)metric_value(expires), now_s + 5 * DAY_S);
    say(GET("/now"), strlen(GET("/now"))); /* the open connection goes on */
    must_answer(200, "now");
    open_client(0);
    assert_true(shake_hands());
    X509 *shown = SSL_get1_peer_certificate(ssl);
    assert_int_equal(X509_cmp(shown, next.cert), 0);
    X509_free(shown);
    certificate_close(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(requests_are_answered_over_tls_one_after_the_other),
        TLS_TEST(requests_that_share_a_record_are_all_answered_without_another_byte),
        TLS_TEST(a_request_that_comes_byte_by_byte_is_answered),
        TLS_TEST(a_large_body_and_a_large_answer_get_through_narrow_sockets),
        TLS_TEST(a_request_that_waits_is_answered_when_its_work_is_done),
        TLS_TEST(a_client_that_asks_before_it_sends_its_body_is_told_to),
        TLS_TEST(a_stream_goes_on_after_its_socket_was_full),
        TLS_TEST(a_connection_that_says_nothing_is_closed_and_has_cost_nothing),
        TLS_TEST(a_handshake_has_one_deadline_however_it_drips),
        TLS_TEST(a_guest_that_has_shaken_hands_has_a_second_to_ask),
        TLS_TEST(half_a_handshake_makes_room_for_a_newcomer),
        TLS_TEST(handshakes_that_do_not_go_on_are_closed_when_they_are_many),
        TLS_TEST(a_crowd_of_handshakes_does_not_push_out_those_of_others),
        TLS_TEST(a_turn_has_few_steps_of_handshakes),
        TLS_TEST(a_plain_request_is_told_that_the_port_speaks_https),
        TLS_TEST(bytes_that_are_no_handshake_end_the_connection),
        TLS_TEST(versions_and_protocols_that_we_do_not_speak_are_refused),
        TLS_TEST(tls_1_2_works_and_is_not_renegotiated),
        TLS_TEST(a_ticket_resumes_and_the_server_keeps_no_sessions),
        TLS_TEST(keys_are_changed_when_the_client_asks_for_it),
        TLS_TEST(a_client_that_asks_for_keys_and_takes_no_answer_is_closed),
        TLS_TEST(bytes_that_were_changed_on_the_way_end_the_connection),
        TLS_TEST(a_request_before_a_goodbye_is_answered),
        TLS_TEST(an_end_without_a_goodbye_is_an_end),
        TLS_TEST(a_connection_that_ends_after_its_answer_says_goodbye),
        TLS_TEST(other_bytes_after_a_full_socket_do_not_go_out_as_if_they_were_the_first),
        TLS_TEST(files_that_are_of_no_use_are_refused_and_the_old_certificate_stays),
        TLS_TEST(a_certificate_is_replaced_for_new_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
