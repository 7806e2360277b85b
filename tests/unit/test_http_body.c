/* The bodies of requests on a connection (support/site.h): their limits, and "Expect:
 * 100-continue".
 */
#include "support/fixtures.h"

#include <stdio.h>

#include "support/site_claims.h"

/* ---- bodies ---- */

static void a_request_knows_its_path_after_a_body_in_many_parts(void **state)
{
    (void)state;
    client_send(&client, POST("/wait/the-name-of-it", "Content-Length: 20000\r\n"));
    for (int i = 0; i < 200; i++) {
        site_turn(&site, 2);
        char part[101];
        memset(part, 'x', 100);
        part[100] = '\0';
        client_send(&client, part);
    }
    site_turn(&site, 6);
    assert_true(site_finish(&site, "the-name-of-it"));
    expect(&client, 200, "waited the-name-of-it");
}

static void a_body_up_to_its_limit_is_taken_and_a_longer_one_refused(void **state)
{
    (void)state;
    struct buf all = {0};
    for (size_t len = BODY_MAX - 1; len <= BODY_MAX + 1; len++) {
        all.len = 0;
        buf_printf(&all, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", len);
        for (size_t i = 0; i < len; i++)
            buf_char(&all, 'b');
        buf_str(&all, GET("/now"));
        for (size_t at = 0; at < all.len; site_turn(&site, 30))
            at += client_write(&client, all.data + at, all.len - at);
        struct reply r = expect(&client, len <= BODY_MAX ? 201 : 413, NULL);
        assert_int_equal(r.body.len == len, len <= BODY_MAX);
        assert_false(r.close); /* the body was read to its end, so the connection goes on */
        expect(&client, 200, "now");
    }
    assert_idle();
    buf_close(&all);
}

/* Sends `len` bytes in chunks, as long as the server takes them. */
static size_t send_without_end(struct client *c, size_t len)
{
    char chunk[4096 + 8];
    size_t sent = 0;
    (void)snprintf(chunk, sizeof chunk, "1000\r\n");
    memset(chunk + 6, 'x', 4096);
    memcpy(chunk + 6 + 4096, "\r\n", 2);
    for (int idle = 0; sent < len && idle < 5;) {
        size_t n = client_write(c, chunk + sent % 4104, 4104 - sent % 4104);
        sent += n;
        site_turn(&site, 2);
        idle = n ? 0 : idle + 1;
    }
    return sent;
}

static void a_body_without_end_is_cut_off(void **state)
{
    (void)state;
    client_send(&client, POST("/echo", "Transfer-Encoding: chunked\r\n"));
    (void)send_without_end(&client, 2 * BODY_DRAIN_MAX);
    assert_true(site.loop->conns->state == CONN_LINGER);
    expect_refusal(&client, 413, "body_too_large");
    client_send(&client, POST("/seller", "Transfer-Encoding: chunked\r\n"));
    (void)send_without_end(&client, 2 * BODY_DRAIN_MAX);
    expect_refusal(&client, 401, "unauthorized");
}

static void a_body_that_is_refused_is_not_kept(void **state)
{
    (void)state;
    client_send(&client, POST("/seller", "Content-Length: 20000\r\n"));
    for (int i = 0; i < 19; i++) {
        char part[1001];
        memset(part, 'x', 1000);
        part[1000] = '\0';
        client_send(&client, part);
        site_turn(&site, 2);
        assert_int_equal(site.loop->conns->request->body.len, 0);
    }
    client_close(&client);
    site_turn(&site, 2);
    assert_int_equal(site_connections(&site), 0);
}

/* ---- Expect: 100-continue ---- */

#define EXPECT "Expect: 100-continue\r\n"

static void a_client_that_asks_first_is_told_to_go_on(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        client_send(&client, POST("/echo", EXPECT "Content-Length: 5\r\n"));
        struct reply r = expect(&client, 100, "");
        assert_int_equal(r.head.len, strlen("HTTP/1.1 100 Continue\r\n"));
        expect_nothing(&client);
        client_send(&client, "hello");
        expect(&client, 201, "hello");
        client_send(&client, POST("/echo", EXPECT "Transfer-Encoding: chunked\r\n"));
        expect(&client, 100, "");
        client_send(&client, "2\r\nab\r\n0\r\n\r\n");
        expect(&client, 201, "ab");
    }
    assert_idle();
}

static void a_client_that_does_not_wait_needs_no_permission(void **state)
{
    (void)state;
    client_send(&client, POST("/echo", EXPECT "Content-Length: 5\r\n") "hello" GET("/now"));
    expect(&client, 201, "hello");
    expect(&client, 200, "now");
    client_send(&client, POST("/echo", EXPECT "Content-Length: 0\r\n")); /* nothing to permit */
    expect(&client, 201, "");
    client_send(&client, "POST /echo HTTP/1.0\r\n" EXPECT "Content-Length: 2\r\n\r\n");
    expect_nothing(&client); /* HTTP/1.0 has no such answer */
    client_send(&client, "ok");
    expect(&client, 201, "ok");
}

static void a_client_that_asks_first_is_refused_before_it_sends(void **state)
{
    (void)state;
    client_send(&client, POST("/echo", EXPECT "Content-Length: 65537\r\n"));
    expect_refusal(&client, 413, "body_too_large");
    client_send(&client, POST("/seller", EXPECT "Content-Length: 5\r\n"));
    expect_refusal(&client, 401, "unauthorized");
    client_send(&client, POST("/echo", "Expect: 200-ok\r\nContent-Length: 5\r\n"));
    expect_refusal(&client, 417, "expectation_failed");
    client_send(&client, POST("/seller", EXPECT "Authorization: Bearer " SITE_KEY
                                                "\r\nContent-Length: 5\r\n"));
    expect(&client, 100, "");
    client_send(&client, "hello");
    expect(&client, 201, "hello");
}

/* The sockets may be full of answers that the client has yet to read. */
static void a_client_that_asks_first_need_not_have_read_everything(void **state)
{
    (void)state;
    char text[160];
    for (int n = 0; n < 9000; n += 250) {
        client_close(&client);
        client_open(&client, &site, 4096);
        (void)snprintf(text, sizeof text,
                       GET("/bytes/%d") POST("/echo", EXPECT "Content-Length: 3\r\n"), n);
        client_send(&client, text);
        site_turn(&site, 3);
        struct reply r = expect(&client, 200, NULL);
        assert_int_equal(r.body.len, n);
        client_send(&client, "abc");
        assert_true(client_reply(&client, false, &r));
        if (r.status == 100)
            r = expect(&client, 201, "abc");
        assert_int_equal(r.status, 201);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_request_knows_its_path_after_a_body_in_many_parts),
        SITE_TEST(a_body_up_to_its_limit_is_taken_and_a_longer_one_refused),
        SITE_TEST(a_body_without_end_is_cut_off),
        SITE_TEST(a_body_that_is_refused_is_not_kept),
        SITE_TEST(a_client_that_asks_first_is_told_to_go_on),
        SITE_TEST(a_client_that_does_not_wait_needs_no_permission),
        SITE_TEST(a_client_that_asks_first_is_refused_before_it_sends),
        SITE_TEST(a_client_that_asks_first_need_not_have_read_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
