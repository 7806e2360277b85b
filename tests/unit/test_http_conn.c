/* Whole connections, from the bytes of a client to the bytes of the answers (support/site.h):
 * keep-alive, pipelining, bytes that come slowly, and refusals. */
#include "support/fixtures.h"

#include <stdio.h>

#include "support/site_claims.h"

/* ---- requests one after the other ---- */

static void a_connection_serves_one_request_after_the_other(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        client_send(&client, GET("/now"));
        struct reply r = expect(&client, 200, "now");
        assert_false(r.close);
        assert_header(&r, "Content-Type", "text/plain");
        assert_idle();
    }
    assert_int_equal(site_connections(&site), 1);
}

static void each_answer_has_an_id_of_its_own_and_a_date(void **state)
{
    (void)state;
    char first[REQUEST_ID_LEN + 1] = "";
    client_send(&client, GET("/now"));
    struct reply r = expect(&client, 200, "now");
    memcpy(first, reply_header(&r, "X-Request-Id").data, REQUEST_ID_LEN);
    assert_header(&r, "Date", "Mon, 21 Sep 2026 14:13:20 GMT");
    site_jump(&site, 2500000);
    client_send(&client, GET("/now"));
    r = expect(&client, 200, "now");
    assert_header(&r, "Date", "Mon, 21 Sep 2026 14:13:22 GMT");
    assert_memory_not_equal(first, reply_header(&r, "X-Request-Id").data, REQUEST_ID_LEN);
}

static void head_is_answered_like_get_without_the_body(void **state)
{
    (void)state;
    struct reply r;
    client_send(&client, "HEAD /bytes/300000 HTTP/1.1\r\nHost: x\r\n\r\n" GET("/now"));
    assert_true(client_reply(&client, true, &r));
    assert_int_equal(r.status, 200);
    assert_header(&r, "Content-Length", "300000");
    expect(&client, 200, "now");
    client_send(&client, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(client_reply(&client, true, &r));
    assert_header(&r, "Content-Type", "text/event-stream");
    expect_closed(&client);
}

static void unknown_paths_and_methods_do_not_end_a_connection(void **state)
{
    (void)state;
    client_send(&client, GET("/nowhere"));
    struct reply r = expect(&client, 404, NULL);
    assert_false(r.close);
    client_send(&client, "OPTIONS /now HTTP/1.1\r\nHost: x\r\n\r\n");
    r = expect(&client, 405, NULL);
    assert_header(&r, "Allow", "GET, HEAD");
    client_send(&client, "BREW /now HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    expect(&client, 405, NULL);
    client_send(&client, GET("/now"));
    expect(&client, 200, "now");
    assert_idle();
}

static void options_of_the_whole_server_are_answered(void **state)
{
    (void)state;
    client_send(&client, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    struct reply r = expect(&client, 204, NULL);
    assert_header(&r, "Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    client_send(&client, "OPTIONS /* HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(&client, 404, NULL);
    client_send(&client, GET("/now"));
    expect(&client, 200, "now");
    assert_idle();
}

static void put_has_a_handler_and_a_scope_of_its_own(void **state)
{
    (void)state;
    client_send(&client, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    expect(&client, 200, "5");
    client_send(&client, "PUT /seller HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    expect(&client, 401, NULL);
    client_send(&client, "PUT /seller HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " SITE_KEY
                         "\r\nContent-Length: 3\r\n\r\nabc");
    expect(&client, 200, "3");
    client_send(&client, "PUT /now HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    struct reply r = expect(&client, 405, NULL);
    assert_header(&r, "Allow", "GET, HEAD");
    assert_idle();
}

static void a_target_may_be_a_url(void **state)
{
    (void)state;
    client_send(&client, GET("http://example.test:80/now?a=b"));
    expect(&client, 200, "now");
    client_send(&client, GET("https://example.test/wait/a%2Fb"));
    expect_nothing(&client);
    assert_true(site_finish(&site, "a%2Fb"));
    expect(&client, 200, "waited a%2Fb");
}

static void http_1_0_closes_unless_it_is_asked_not_to(void **state)
{
    (void)state;
    client_send(&client, "GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    struct reply r = expect(&client, 200, "now");
    assert_header(&r, "Connection", "keep-alive");
    client_send(&client, "GET /now HTTP/1.0\r\n\r\n");
    r = expect(&client, 200, "now");
    assert_true(r.close);
    expect_closed(&client);
    client_leave(&client);
    site_turn(&site, 4);
    assert_int_equal(site_connections(&site), 0);
}

static void connection_close_ends_it_after_the_answer(void **state)
{
    (void)state;
    client_send(&client, "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    struct reply r = expect(&client, 200, "now");
    assert_true(r.close);
    expect_closed(&client);
    client_leave(&client);
    site_turn(&site, 4);
    assert_int_equal(site_connections(&site), 0);
}

/* The answer must survive what the client has sent after it: a socket that is closed with unread
 * bytes is reset, and the client may not get to read. */
static void bytes_after_the_last_request_do_not_undo_its_answer(void **state)
{
    (void)state;
    struct buf all = {0};
    buf_str(&all, "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    while (all.len < 3 * BLOCK_SMALL_MAX)
        buf_str(&all, GET("/now"));
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    buf_close(&all);
    struct reply r = expect(&client, 200, "now");
    assert_true(r.close);
    expect_closed(&client);
}

/* ---- pipelining ---- */

static void pipelined_answers_are_in_order_though_the_first_one_waits(void **state)
{
    (void)state;
    client_send(&client, GET("/wait/a") GET("/now") GET("/wait/b") GET("/bytes/3") GET("/wait/c"));
    expect_nothing(&client);
    assert_int_equal(site.n_work, 1); /* nothing is begun ahead of its turn */
    assert_true(site_finish(&site, "a"));
    expect(&client, 200, "waited a");
    expect(&client, 200, "now");
    expect_nothing(&client);
    assert_true(site_finish(&site, "b"));
    expect(&client, 200, "waited b");
    expect(&client, 200, "abc");
    assert_true(site_finish(&site, "c"));
    expect(&client, 200, "waited c");
    assert_idle();
}

static void hundreds_of_requests_in_one_packet_are_all_answered(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct buf all = {0};
    char expected[16];
    for (int i = 0; i < N; i++)
        buf_printf(&all, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n%04d", i);
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    for (int i = 0; i < N; i++) {
        (void)snprintf(expected, sizeof expected, "%04d", i);
        expect(&client, 201, expected);
    }
    expect_nothing(&client);
    assert_idle();
    buf_close(&all);
}

/* Sends `n` requests of `len` bytes at once and reads the answers late and little by little. */
static void read_late(int room, size_t len, int n)
{
    struct buf all = {0};
    struct reply r;
    client_close(&client);
    client_open(&client, &site, room);
    for (int i = 0; i < n; i++) {
        buf_str(&all, "GET /bytes/700 HTTP/1.1\r\nHost: x\r\nX:");
        while (all.len < (size_t)(i + 1) * len - 4)
            buf_char(&all, 'x');
        buf_lit(&all, "\r\n\r\n");
    }
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    site_turn(&site, 20);
    int answered = 0;
    for (int i = 0; i < 10 * n && answered < n; i++) {
        site_turn(&site, 1);
        (void)client_read(&client, 3000);
        for (; client_take(&client, false, &r); answered++)
            assert_int_equal(r.body.len, 700);
    }
    if (answered != n)
        fail_msg("%d of %d requests of %zu bytes were answered", answered, n, len);
    assert_false(client.ended);
    buf_close(&all);
}

/* The block is full of requests, more are in the socket, and the client has not yet read the many
 * answers it got: whatever the socket reports then, nothing is lost. */
static void pipelined_requests_survive_a_client_that_reads_late(void **state)
{
    (void)state;
    for (int room = 4096; room <= 131072; room *= 2)
        read_late(room, 45, 300);
    for (size_t len = 45; len < 200; len += 3)
        read_late(65536, len, 100);
}

static void a_long_queue_of_one_client_does_not_hold_up_another(void **state)
{
    (void)state;
    struct client other;
    struct buf all = {0};
    client_open(&other, &site, 0);
    for (int i = 0; i < 2000; i++)
        buf_str(&all, GET("/now"));
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    client_send(&other, GET("/now"));
    struct reply r;
    site_turn(&site, 2);
    (void)client_read(&other, 4096);
    assert_true(client_take(&other, false, &r));
    while (client_read(&client, 65536) > 0)
        ;
    int before = 0;
    while (client_take(&client, false, &r))
        before++;
    assert_true(before > 0 && before <= 2 * 32); /* at most 32 in a turn */
    client_close(&other);
    buf_close(&all);
}

static void empty_lines_between_requests_are_skipped(void **state)
{
    (void)state;
    client_send(&client, "\r\n\r\n" GET("/now") "\r\n" GET("/now"));
    expect(&client, 200, "now");
    expect(&client, 200, "now");
}

/* ---- bytes that come slowly ---- */

static const char mixed[] = GET("/now") POST("/echo", "Content-Length: 5\r\n") "hello" POST(
    "/echo", "Transfer-Encoding: chunked\r\n") "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n"
                                               "Trailer: x\r\n\r\n" POST("/echo",
                                                                         "Content-Length: 0\r\n")
                                                   GET("/bytes/10");

static void expect_mixed(struct client *c)
{
    expect(c, 200, "now");
    expect(c, 201, "hello");
    expect(c, 201, "abc0123456789");
    expect(c, 201, "");
    expect(c, 200, "abcdefghij");
    expect_nothing(c);
    assert_idle();
}

static void requests_cut_at_any_byte_are_the_same_requests(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= sizeof mixed - 1; cut++) {
        assert_int_equal(client_write(&client, mixed, cut), cut);
        site_turn(&site, 3);
        assert_int_equal(client_write(&client, mixed + cut, sizeof mixed - 1 - cut),
                         sizeof mixed - 1 - cut);
        expect_mixed(&client);
    }
}

static void requests_may_come_a_byte_at_a_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mixed - 1; i++) {
        assert_int_equal(client_write(&client, mixed + i, 1), 1);
        site_turn(&site, 1);
    }
    expect_mixed(&client);
}

/* Heads of every size around that of a block, followed by a body and by another request. */
static void heads_and_bodies_of_any_size_fit_their_blocks(void **state)
{
    (void)state;
    struct buf all = {0}, body = {0};
    for (size_t size = 10; size < 16000; size += size < 2900 || size > 4200 ? 331 : 7) {
        all.len = body.len = 0;
        for (size_t i = 0; i < size * 3 % 9000; i++)
            buf_char(&body, site_byte(i));
        buf_str(&all, "POST /echo HTTP/1.1\r\nHost: x\r\nX: ");
        for (size_t i = 0; i < size; i++)
            buf_char(&all, 'x');
        buf_printf(&all, "\r\nContent-Length: %zu\r\n\r\n", body.len);
        buf_put(&all, body.data, body.len);
        buf_char(&body, '\0');
        buf_str(&all, GET("/now"));
        assert_int_equal(client_write(&client, all.data, all.len), all.len);
        site_turn(&site, 6);
        expect(&client, 201, body.data);
        expect(&client, 200, "now");
        assert_idle();
    }
    buf_close(&all);
    buf_close(&body);
}

/* ---- refusals ---- */

static void what_is_not_http_is_refused_and_ends_the_connection(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int status;
        const char *code;
    } cases[] = {
        {"GET /now HTTP/1.1\r\n\r\n", 400, "invalid_request"},
        {"GET /now HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400, "invalid_request"},
        {"GET /now HTTP/1.1\nHost: x\n\n", 400, "invalid_request"},
        {"GET /now HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400, "invalid_request"},
        {"GET /now HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", 400, "invalid_request"},
        {"GET /now HTTP/2.0\r\nHost: x\r\n\r\n", 505, "version_not_supported"},
        {"\x16\x03\x01\x02", 400, "invalid_request"},
        {POST("/echo", "Content-Length: 1\r\nContent-Length: 1\r\n") "a", 400, "invalid_request"},
        {POST("/echo", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400,
         "invalid_request"},
        {POST("/echo", "Content-Length: -1\r\n"), 400, "invalid_request"},
        {POST("/echo", "Transfer-Encoding: gzip, chunked\r\n"), 501, "not_implemented"},
        {POST("/echo", "Transfer-Encoding: chunked\r\n") "x\r\n", 400, "invalid_request"},
        {POST("/echo", "Transfer-Encoding: chunked\r\n") "3\r\nabcd\r\n", 400, "invalid_request"},
        {POST("/echo", "Transfer-Encoding: chunked\r\n") "0\r\nA b: c\r\n\r\n", 400,
         "invalid_request"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf all = {0};
        buf_str(&all, GET("/now")); /* what came before it is answered, what comes after is not */
        buf_str(&all, cases[i].bytes);
        buf_str(&all, GET("/now") GET("/now"));
        assert_int_equal(client_write(&client, all.data, all.len), all.len);
        expect(&client, 200, "now");
        expect_refusal(&client, cases[i].status, cases[i].code);
        buf_close(&all);
    }
}

static void a_nul_is_refused(void **state)
{
    (void)state;
    static const char bytes[] = "GET /now HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n" GET("/now");
    assert_int_equal(client_write(&client, bytes, sizeof bytes - 1), sizeof bytes - 1);
    expect_refusal(&client, 400, "invalid_request");
}

static void heads_that_are_too_long_are_refused(void **state)
{
    (void)state;
    struct buf all = {0};
    buf_str(&all, "GET /now HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 101; i++)
        buf_printf(&all, "X-%d: y\r\n", i);
    buf_lit(&all, "\r\n");
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    expect_refusal(&client, 431, "headers_too_large");
    all.len = 0;
    buf_str(&all, "GET /now HTTP/1.1\r\nHost: x\r\nX: ");
    while (all.len < 40000)
        buf_char(&all, 'x');
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    expect_refusal(&client, 431, "headers_too_large");
    all.len = 0;
    buf_str(&all, "GET /");
    while (all.len < 17000)
        buf_char(&all, 'x');
    for (size_t at = 0; at < all.len; at += 100) { /* a little at a time */
        size_t len = all.len - at < 100 ? all.len - at : 100;
        if (client_write(&client, all.data + at, len) != len)
            break;
        site_turn(&site, 1);
    }
    expect_refusal(&client, 431, "headers_too_large");
    buf_close(&all);
}

static void a_head_request_that_is_refused_gets_no_body(void **state)
{
    (void)state;
    struct reply r = {0};
    client_send(&client, "HEAD /now HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n");
    site_turn(&site, 4);
    (void)client_read(&client, 4096);
    assert_true(client_reply(&client, true, &r));
    assert_int_equal(r.status, 400);
    expect_closed(&client);
}

static void a_query_has_at_most_16_parameters(void **state)
{
    (void)state;
    client_send(&client, GET("/now?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p=1"));
    expect(&client, 200, "now");
    client_send(&client, GET("/now?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p=1&q"));
    expect(&client, 400, NULL);
    client_send(&client, GET("/now"));
    expect(&client, 200, "now");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_connection_serves_one_request_after_the_other),
        SITE_TEST(each_answer_has_an_id_of_its_own_and_a_date),
        SITE_TEST(head_is_answered_like_get_without_the_body),
        SITE_TEST(unknown_paths_and_methods_do_not_end_a_connection),
        SITE_TEST(options_of_the_whole_server_are_answered),
        SITE_TEST(put_has_a_handler_and_a_scope_of_its_own),
        SITE_TEST(a_target_may_be_a_url),
        SITE_TEST(http_1_0_closes_unless_it_is_asked_not_to),
        SITE_TEST(connection_close_ends_it_after_the_answer),
        SITE_TEST(bytes_after_the_last_request_do_not_undo_its_answer),
        SITE_TEST(pipelined_answers_are_in_order_though_the_first_one_waits),
        SITE_TEST(hundreds_of_requests_in_one_packet_are_all_answered),
        SITE_TEST(pipelined_requests_survive_a_client_that_reads_late),
        SITE_TEST(a_long_queue_of_one_client_does_not_hold_up_another),
        SITE_TEST(empty_lines_between_requests_are_skipped),
        SITE_TEST(requests_cut_at_any_byte_are_the_same_requests),
        SITE_TEST(requests_may_come_a_byte_at_a_time),
        SITE_TEST(heads_and_bodies_of_any_size_fit_their_blocks),
        SITE_TEST(what_is_not_http_is_refused_and_ends_the_connection),
        SITE_TEST(a_nul_is_refused),
        SITE_TEST(a_head_request_that_is_refused_gets_no_body),
        SITE_TEST(a_query_has_at_most_16_parameters),
        SITE_TEST(heads_that_are_too_long_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
