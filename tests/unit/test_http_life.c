/* The life of connections (support/site.h): clients that leave or read slowly, work of other
 * threads, and how a server ends. */
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

static void a_handler_that_wants_to_know_is_told_once_that_its_client_left(void **state)
{
    (void)state;
    client_send(&client, GET("/await/a") GET("/await/b"));
    site_turn(&site, 3);
    assert_int_equal(site.n_gone, 0); /* the second request does not count */
    client_close(&client);
    site_turn(&site, 3);
    assert_int_equal(site.n_gone, 1);
    site_pass(&site, 100 * SECOND_US);
    assert_int_equal(site.n_gone, 1);
    assert_int_equal(site_connections(&site), 1); /* its request is still lent */
    assert_true(site_finish(&site, "a"));
    assert_gone();
    assert_int_equal(site.n_work, 0); /* the second one was never begun */
}

static void a_client_that_half_closes_counts_as_gone_and_may_read_its_answer(void **state)
{
    (void)state;
    client_send(&client, GET("/await/a") GET("/now"));
    client_finish(&client); /* before the request has begun */
    site_turn(&site, 3);
    assert_int_equal(site.n_gone, 1);
    assert_true(site_finish(&site, "a"));
    expect(&client, 200, "waited a");
    expect(&client, 200, "now");
    assert_gone();
    assert_int_equal(site.n_gone, 1);
}

/* More requests than the connection's block has room for. */
static void bytes_behind_a_waiting_request_do_not_count_as_gone(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct buf all = {0};
    buf_str(&all, GET("/await/a"));
    for (int i = 0; i < N; i++)
        buf_str(&all, GET("/now"));
    size_t half = all.len / 2;
    assert_int_equal(client_write(&client, all.data, half), half);
    site_turn(&site, 5);
    assert_int_equal(client_write(&client, all.data + half, all.len - half), all.len - half);
    site_pass(&site, 40 * SECOND_US);
    assert_int_equal(site.n_gone, 0);
    assert_true(site_finish(&site, "a"));
    expect(&client, 200, "waited a");
    for (int i = 0; i < N; i++)
        expect(&client, 200, "now");
    assert_idle();
    assert_int_equal(site.n_gone, 0);
    buf_close(&all);
}

/* Nobody can tell a client that has closed its socket from one that will read its answer. */
static void a_client_that_ended_its_direction_is_waited_for_4_s(void **state)
{
    (void)state;
    static const char *const paths[] = {GET("/wait/a"), GET("/await/a"),
                                        GET("/wait/a") GET("/now")};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        client_send(&client, paths[i]);
        site_turn(&site, 3);
        site_pass(&site, 20 * SECOND_US);
        client_finish(&client);
        site_pass(&site, 3 * SECOND_US);
        assert_open(&client);
        site_pass(&site, SECOND_US * 3 / 2);
        receive(&client);
        assert_true(client.ended && client.in.len == 0);
        assert_int_equal(site.loop->conns->fd, -1); /* only the work is left of it */
        assert_true(site_finish(&site, "a"));
        assert_gone();
        client_close(&client);
        client_open(&client, &site, 0);
    }
}

static void a_client_that_ended_its_direction_and_reads_nothing_is_cut_off_after_2_s(void **state)
{
    (void)state;
    struct buf pipelined = {0};
    for (int i = 0; i < 800; i++)
        buf_str(&pipelined, GET("/bytes/300"));
    buf_char(&pipelined, '\0');
    const char *const requests[] = {GET("/bytes/500000"), pipelined.data};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        client_close(&client);
        site_turn(&site, 4);
        client_open(&client, &site, 4096);
        client_send(&client, requests[i]);
        site_turn(&site, 20);
        client_finish(&client);
        site_pass(&site, SECOND_US);
        assert_int_equal(site_connections(&site), 1);
        site_pass(&site, SECOND_US * 3 / 2);
        assert_gone();
    }
    buf_close(&pipelined);
}

static void a_client_that_ended_its_direction_may_read_slowly(void **state)
{
    (void)state;
    client_close(&client);
    site_turn(&site, 4);
    client_open(&client, &site, 4096);
    client_send(&client, GET("/bytes/200000"));
    client_finish(&client);
    site_turn(&site, 4);
    struct reply r;
    while (!client_take(&client, false, &r)) {
        size_t before = client.in.len;
        site_pass(&site, SECOND_US * 3 / 2);
        (void)client_read(&client, 32768);
        assert_true(client.in.len > before);
    }
    assert_int_equal(r.body.len, 200000);
}

static void only_the_request_that_waits_is_told(void **state)
{
    (void)state;
    client_send(&client, GET("/await/a") GET("/wait/b") GET("/await/c"));
    site_turn(&site, 3);
    assert_true(site_finish(&site, "a"));
    expect(&client, 200, "waited a");
    assert_int_equal(site.n_work, 1);
    client_finish(&client); /* while one waits that does not want to know */
    site_turn(&site, 3);
    assert_int_equal(site.n_gone, 0);
    assert_true(site_finish(&site, "b"));
    expect(&client, 200, "waited b");
    assert_int_equal(site.n_gone, 1); /* the third one begins without a client */
    assert_true(site_finish(&site, "c"));
    expect(&client, 200, "waited c");
    assert_gone();
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
    for (size_t taken = 0; taken < 500000; site_turn(&site, 1)) /* enough for two minutes */
        taken += client_read(&client, 60000);
    site_pass(&site, 29800000);
    assert_int_equal(site_connections(&site), 1);
    (void)client_read(&client, 60000);
    site_turn(&site, 3);
    site_pass(&site, 29800000);
    assert_int_equal(site_connections(&site), 1);
    site_pass(&site, 5 * SECOND_US); /* it is looked at every two seconds */
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

static bool is_connected(int fd, int64_t within_us)
{
    struct pollfd file = {.fd = fd, .events = POLLOUT};
    return wait_files(&file, 1, within_us) == 1 && file.revents == POLLOUT;
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
        assert_true(is_connected(fds[i], 10 * SECOND_US));
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
    assert_false(is_connected(late, SECOND_US / 20));
    close(late);
}

static void a_socket_that_ignores_attempts_completes_those_that_have_begun(void **state)
{
    (void)state;
    struct sockaddr_in where;
    char text[8];
    int fd = listen_somewhere(&where), early = connect_to(&where);
    assert_true(is_connected(early, 10 * SECOND_US));
    listen_ignore_new(fd);
    int late = connect_to(&where);
    assert_false(is_connected(late, SECOND_US / 20));
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
        SITE_TEST(a_handler_that_wants_to_know_is_told_once_that_its_client_left),
        SITE_TEST(a_client_that_half_closes_counts_as_gone_and_may_read_its_answer),
        SITE_TEST(bytes_behind_a_waiting_request_do_not_count_as_gone),
        SITE_TEST(a_client_that_ended_its_direction_is_waited_for_4_s),
        SITE_TEST(a_client_that_ended_its_direction_and_reads_nothing_is_cut_off_after_2_s),
        SITE_TEST(a_client_that_ended_its_direction_may_read_slowly),
        SITE_TEST(only_the_request_that_waits_is_told),
        SITE_TEST(a_client_may_leave_after_any_byte),
        SITE_TEST(a_large_answer_leaves_as_fast_as_it_is_read),
        SITE_TEST(a_client_that_takes_nothing_for_30_s_is_cut_off),
        SITE_TEST(work_of_another_thread_comes_back),
        SITE_TEST(a_server_may_end_with_connections_in_every_state),
        SITE_TEST(connections_that_wait_are_accepted_before_the_socket_is_closed),
        SITE_TEST(a_socket_that_ignores_attempts_completes_those_that_have_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
