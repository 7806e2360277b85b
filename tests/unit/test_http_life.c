/* The life of connections (support/site.h): clients that leave or read slowly, work of other
 * threads, deadlines, and how a server ends. */
#include "support/fixtures.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wait.h"
#include "http/listen.h"
#include "support/site_claims.h"

/* ---- clients that leave ---- */

static void a_client_that_half_closes_after_its_requests_is_answered(void **state)
{
    (void)state;
    client_send(&client, GET("/wait/a") GET("/now"));
    site_turn(&site, 3);
    client_finish(&client);
    site_turn(&site, 3);
    assert_true(site_finish(&site, "a"));
    expect(&client, 200, "waited a");
    expect(&client, 200, "now");
    receive(&client);
    assert_true(client.ended && !client.failed);
    assert_gone();
}

static void a_client_that_half_closes_early_gets_what_it_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int answers;
    } cases[] = {{GET("/now") GET("/now"), 2},
                 {GET("/now") "GET /no", 1},
                 {"", 0},
                 {POST("/echo", "Content-Length: 3\r\n") "ab", 0},
                 {POST("/echo", "Content-Length: 3\r\n") "abc", 1},
                 {GET("/bytes/500000"), 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reply r;
        int answers = 0;
        client_send(&client, cases[i].bytes);
        client_finish(&client);
        receive_long(&client);
        for (; client_take(&client, false, &r); answers++)
            assert_true(r.status < 300);
        assert_int_equal(answers, cases[i].answers);
        assert_int_equal(client.in.len, 0);
        assert_true(client.ended && !client.failed);
        assert_gone();
        client_close(&client);
        client_open(&client, &site, 0);
    }
}

static void work_for_a_client_that_left_is_done_and_forgotten(void **state)
{
    (void)state;
    client_send(&client, GET("/wait/a") GET("/wait/b"));
    site_turn(&site, 3);
    client_close(&client);
    site_turn(&site, 3);
    assert_int_equal(site.n_work, 1);
    assert_int_equal(site_connections(&site), 1); /* its request is still lent */
    site_pass(&site, 100 * SECOND_US);
    assert_int_equal(site_connections(&site), 1);
    assert_true(site_finish(&site, "a"));
    assert_gone();
    assert_int_equal(site.n_work, 0); /* the second one was never begun */
}

static void a_client_may_leave_after_any_byte(void **state)
{
    (void)state;
    static const char bytes[] = GET("/wait/a") POST(
        "/echo", "Transfer-Encoding: chunked\r\n") "3\r\nabc\r\n0\r\n\r\n" GET("/bytes/400000");
    client_close(&client);
    for (int half = 0; half < 2; half++) {
        for (size_t cut = 0; cut < sizeof bytes; cut++) {
            client_open(&client, &site, 4096);
            assert_int_equal(client_write(&client, bytes, cut), cut);
            site_turn(&site, 2);
            if (half)
                client_finish(&client);
            site_turn(&site, 2);
            (void)site_finish(&site, "a");
            site_turn(&site, 3);
            client_close(&client);
            assert_gone();
        }
    }
}

/* ---- slow readers ---- */

static void a_large_answer_leaves_as_fast_as_it_is_read(void **state)
{
    (void)state;
    enum { LEN = 1000000 };
    struct reply r;
    client_close(&client);
    client_open(&client, &site, 4096);
    client_send(&client, GET("/bytes/1000000") GET("/now"));
    size_t total = 0;
    for (int i = 0; total < LEN && i < 100000; i++) {
        site_turn(&site, 1);
        total += client_read(&client, 1 + (size_t)i % 5000);
    }
    assert_true(client_take(&client, false, &r));
    assert_int_equal(r.body.len, LEN);
    for (size_t i = 0; i < LEN; i++)
        assert_int_equal(r.body.data[i], site_byte(i));
    expect(&client, 200, "now");
    assert_int_equal(site.bodies, 0);
}

static void a_client_that_takes_nothing_for_30_s_is_cut_off(void **state)
{
    (void)state;
    client_close(&client);
    client_open(&client, &site, 4096);
    client_send(&client, GET("/bytes/1000000"));
    site_turn(&site, 3);
    for (int i = 0; i < 5; i++) { /* a little from time to time is enough */
        site_pass(&site, 29 * SECOND_US);
        assert_true(client_read(&client, 60000) > 0);
        site_turn(&site, 3);
    }
    site_pass(&site, 29800000);
    assert_int_equal(site_connections(&site), 1);
    site_pass(&site, SECOND_US / 2);
    assert_gone();
}

/* ---- work of other threads ---- */

enum { CLIENTS = 50, REQUESTS = 40 };

static void *finish_all(void *arg)
{
    struct site *s = arg;
    for (int done = 0; done < CLIENTS * REQUESTS;) {
        pending_batch_begin();
        while (site_finish_nth(s, 0))
            done++;
        pending_batch_end();
    }
    return NULL;
}

static void work_of_another_thread_comes_back(void **state)
{
    (void)state;
    struct client clients[CLIENTS];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, finish_all, &site), 0);
    for (int i = 0; i < CLIENTS; i++) {
        client_open(&clients[i], &site, 0);
        for (int k = 0; k < REQUESTS; k++)
            client_send(&clients[i], k % 2 ? GET("/wait/x") : GET("/wait/y"));
    }
    int64_t until_us = wait_now_us() + 60 * SECOND_US;
    for (int answered = 0; answered < CLIENTS * REQUESTS;) {
        assert_true(wait_now_us() < until_us);
        loop_turn(site.loop, 1000); /* woken by the thread, or it takes too long */
        for (int i = 0; i < CLIENTS; i++) {
            struct reply r;
            (void)client_read(&clients[i], 65536);
            for (; client_take(&clients[i], false, &r); answered++)
                assert_int_equal(r.status, 200);
        }
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&clients[i]);
}

/* ---- deadlines ---- */

static void an_idle_connection_is_closed_after_30_s(void **state)
{
    (void)state;
    site_pass(&site, 20 * SECOND_US);
    client_send(&client, GET("/now")); /* each request begins them anew */
    expect(&client, 200, "now");
    site_pass(&site, 29900000);
    assert_open(&client);
    site_pass(&site, SECOND_US / 2);
    receive(&client);
    assert_true(client.ended && client.in.len == 0); /* nobody asked, so there is no answer */
    assert_gone();
}

/* An answer that nobody asked for would be taken for that to the next request. */
static void an_empty_line_after_a_request_is_not_one_that_has_begun(void **state)
{
    (void)state;
    client_send(&client, GET("/now") "\r\n");
    expect(&client, 200, "now");
    site_pass(&site, 31 * SECOND_US);
    receive(&client);
    assert_true(client.ended && client.in.len == 0);
    assert_gone();
}

static void expect_timeout(struct client *c)
{
    struct reply r = expect(c, 408, NULL);
    assert_true(r.close);
    receive(c);
    assert_true(c->ended);
    client_close(c);
    assert_gone();
    client_open(c, &site, 0);
}

static void a_head_that_trickles_is_refused_after_30_s(void **state)
{
    (void)state;
    site_pass(&site, 10 * SECOND_US);
    for (int i = 0; i < 59; i++) { /* bytes that keep coming do not help */
        client_send(&client, i == 0 ? "GET /no" : "w");
        site_pass(&site, SECOND_US / 2);
        assert_open(&client);
    }
    site_pass(&site, SECOND_US);
    expect_timeout(&client);
}

static void a_body_that_trickles_is_refused_after_30_s(void **state)
{
    (void)state;
    client_send(&client, POST("/echo", "Content-Length: 1000\r\n"));
    site_turn(&site, 2);
    for (int i = 0; i < 59; i++) {
        client_send(&client, "x");
        site_pass(&site, SECOND_US / 2);
        assert_open(&client);
    }
    site_pass(&site, SECOND_US);
    expect_timeout(&client);
    client_send(&client, POST("/echo", "Expect: 100-continue\r\nContent-Length: 1000\r\n"));
    expect(&client, 100, "");
    site_pass(&site, 31 * SECOND_US);
    expect_timeout(&client);
}

static void work_has_no_deadline(void **state)
{
    (void)state;
    client_send(&client, GET("/wait/a"));
    site_pass(&site, 200 * SECOND_US);
    assert_open(&client);
    assert_true(site_finish(&site, "a"));
    expect(&client, 200, "waited a");
    site_pass(&site, 29 * SECOND_US); /* from now on it counts as idle */
    assert_open(&client);
    site_pass(&site, 2 * SECOND_US);
    assert_gone();
}

static void a_refused_client_that_keeps_sending_is_cut_off_after_2_s(void **state)
{
    (void)state;
    client_send(&client, "GET /now HTTP/1.1\r\n\r\n");
    expect(&client, 400, NULL);
    for (int i = 0; i < 18; i++) {
        client_send(&client, GET("/now"));
        site_pass(&site, SECOND_US / 10);
        assert_int_equal(site_connections(&site), 1);
    }
    site_pass(&site, SECOND_US / 2);
    receive(&client);
    assert_int_equal(client.in.len, 0);
    assert_gone();
}

static void a_refused_client_that_sends_more_and_half_closes_reads_the_refusal(void **state)
{
    (void)state;
    client_send(&client, "GET /now HTTP/1.1\r\n\r\n");
    site_turn(&site, 3);
    for (int i = 0; i < 150; i++)
        client_send(&client, GET("/now"));
    client_finish(&client);
    expect(&client, 400, NULL);
    receive(&client);
    assert_true(client.ended && !client.failed);
    assert_gone();
}

static void all_deadlines_hold_after_the_clock_jumped(void **state)
{
    (void)state;
    struct client idle, waiting;
    client_open(&idle, &site, 0);
    client_open(&waiting, &site, 0);
    client_send(&waiting, GET("/wait/a"));
    client_send(&client, "GET /n");
    site_turn(&site, 3);
    site_jump(&site, 100000 * SECOND_US); /* the machine slept for a day */
    receive(&idle);
    assert_true(idle.ended);
    expect(&client, 408, NULL);
    assert_true(site_finish(&site, "a"));
    expect(&waiting, 200, "waited a");
    client_close(&idle);
    client_close(&waiting);
}

/* ---- the end ---- */

static void a_server_may_end_with_connections_in_every_state(void **state)
{
    (void)state;
    static const char *const begun[] = {
        "",
        "GET /n",
        POST("/echo", "Content-Length: 9\r\n") "abc",
        POST("/echo", "Transfer-Encoding: chunked\r\n") "3\r\nab",
        POST("/echo", "Expect: 100-continue\r\nContent-Length: 9\r\n"),
        GET("/wait/a") GET("/now"),
        GET("/wait/b"),
        GET("/bytes/900000") GET("/now"),
        GET("/stream"),
        "GET /stream HTTP/1.0\r\n\r\n",
        "GET /now HTTP/1.1\r\n\r\n",
        GET("/now"),
    };
    enum { N = sizeof begun / sizeof *begun };
    struct client clients[N];
    for (size_t i = 0; i < N; i++) {
        client_open(&clients[i], &site, 0);
        client_send(&clients[i], begun[i]);
    }
    site.topic.padding = 300000;
    site_turn(&site, 5);
    site.topic.seq++;
    site_pass(&site, SECOND_US / 2);
    assert_int_equal(site.n_work, 2);
    assert_int_equal(atomic_load(&site.server->n_streams), 2);
    client_close(&clients[6]); /* left while its request waits */
    site_turn(&site, 2);
    site_close(&site); /* the leak sanitizer looks at what is left */
    for (size_t i = 0; i < N; i++)
        client_close(&clients[i]);
    client_close(&client);
    site_open(&site);
    client_open(&client, &site, 0);
}

/* ---- the end of listening ---- */

static int listen_somewhere(struct sockaddr_in *ret_where)
{
    struct listen_address any;
    struct hf_err err = {0};
    socklen_t len = sizeof *ret_where;
    int fd = -1;
    assert_true(listen_parse("127.0.0.1:0", &any, &err) && listen_open(&any, &fd, &err));
    assert_int_equal(getsockname(fd, (struct sockaddr *)ret_where, &len), 0);
    return fd;
}

/* A connection, or one that is being made if nobody answers. */
static int connect_to(const struct sockaddr_in *where)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)!connect(fd, (const struct sockaddr *)where, sizeof *where);
    return fd;
}

static bool is_connected(int fd)
{
    struct pollfd file = {.fd = fd, .events = POLLOUT};
    return wait_files(&file, 1, 50000) == 1 && file.revents == POLLOUT;
}

static void connections_that_wait_are_accepted_before_the_socket_is_closed(void **state)
{
    (void)state;
    enum { MANY = 150 }; /* more than a turn accepts */
    int fds[MANY] = {0};
    char text[1024];
    struct sockaddr_in where;
    site.server->listeners[0].fd = listen_somewhere(&where);
    atomic_store(&site.server->listening, true);
    assert_true(loop_listen(site.loop));
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_to(&where);
        assert_true(is_connected(fds[i]));
        assert_int_equal(write(fds[i], GET("/now"), strlen(GET("/now"))), strlen(GET("/now")));
    }
    atomic_store(&site.server->closing, true);
    site_turn(&site, 10);
    assert_false(atomic_load(&site.server->listening));
    for (int i = 0; i < MANY; i++) {
        assert_true(read(fds[i], text, sizeof text) > 0);
        assert_memory_equal(text, "HTTP/1.1 200 OK", 15);
        close(fds[i]);
    }
    int late = connect_to(&where);
    assert_false(is_connected(late));
    close(late);
}

static void a_socket_that_ignores_attempts_completes_those_that_have_begun(void **state)
{
    (void)state;
    struct sockaddr_in where;
    char text[8];
    int fd = listen_somewhere(&where), early = connect_to(&where);
    assert_true(is_connected(early));
    listen_ignore_new(fd);
    int late = connect_to(&where);
    assert_false(is_connected(late));
    int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(accepted >= 0);
    assert_int_equal(accept4(fd, NULL, NULL, SOCK_CLOEXEC), -1);
    close(fd);
    assert_int_equal(write(early, "hello", 5), 5);
    assert_int_equal(read(accepted, text, sizeof text), 5);
    close(early);
    close(late);
    close(accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_client_that_half_closes_after_its_requests_is_answered),
        SITE_TEST(a_client_that_half_closes_early_gets_what_it_asked_for),
        SITE_TEST(work_for_a_client_that_left_is_done_and_forgotten),
        SITE_TEST(a_client_may_leave_after_any_byte),
        SITE_TEST(a_large_answer_leaves_as_fast_as_it_is_read),
        SITE_TEST(a_client_that_takes_nothing_for_30_s_is_cut_off),
        SITE_TEST(work_of_another_thread_comes_back),
        SITE_TEST(an_idle_connection_is_closed_after_30_s),
        SITE_TEST(an_empty_line_after_a_request_is_not_one_that_has_begun),
        SITE_TEST(a_head_that_trickles_is_refused_after_30_s),
        SITE_TEST(a_body_that_trickles_is_refused_after_30_s),
        SITE_TEST(work_has_no_deadline),
        SITE_TEST(a_refused_client_that_keeps_sending_is_cut_off_after_2_s),
        SITE_TEST(a_refused_client_that_sends_more_and_half_closes_reads_the_refusal),
        SITE_TEST(all_deadlines_hold_after_the_clock_jumped),
        SITE_TEST(a_server_may_end_with_connections_in_every_state),
        SITE_TEST(connections_that_wait_are_accepted_before_the_socket_is_closed),
        SITE_TEST(a_socket_that_ignores_attempts_completes_those_that_have_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
