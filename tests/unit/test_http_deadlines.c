/* The deadlines of connections (support/site.h). */
#include "support/fixtures.h"

#include "base/clock.h"
#include "support/site_claims.h"

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

/* Bytes that keep coming do not help, whatever they are. */
static void a_head_that_trickles_is_refused_after_10_s(void **state)
{
    (void)state;
    static const char *const begins[] = {"GET /no", GET("/now") "GET /no", "\r\nGET /no",
                                         "GET /now HTTP/1.1\r\nHost: x\r\nX-Long: "};
    for (size_t n = 0; n < sizeof begins / sizeof *begins; n++) {
        site_pass(&site, 12 * SECOND_US);
        client_send(&client, begins[n]);
        if (n == 1)
            expect(&client, 200, "now");
        for (int i = 0; i < 19; i++) {
            site_pass(&site, SECOND_US / 2);
            assert_open(&client);
            client_send(&client, "w");
        }
        site_pass(&site, SECOND_US * 3 / 2);
        expect_timeout(&client);
    }
}

static void empty_lines_do_not_keep_a_connection(void **state)
{
    (void)state;
    for (int i = 0; i < 19; i++) {
        client_send(&client, "\r\n");
        site_pass(&site, SECOND_US / 2);
        assert_open(&client);
    }
    site_pass(&site, SECOND_US * 2);
    assert_gone();
}

/* Chunks, their extensions and trailers. */
static void a_chunked_body_that_trickles_is_refused_after_30_s(void **state)
{
    (void)state;
    static const char *const parts[] = {"1\r\nx\r\n", "1;a=b\r\nx\r\n", "x"};
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
        client_send(&client, POST("/echo", "Transfer-Encoding: chunked\r\n"));
        if (n == 2)
            client_send(&client, "1\r\nx\r\n0\r\nX-Trailer: ");
        for (int i = 0; i < 59; i++) {
            client_send(&client, parts[n]);
            site_pass(&site, SECOND_US / 2);
            assert_open(&client);
        }
        site_pass(&site, SECOND_US * 3 / 2);
        expect_timeout(&client);
    }
}

/* 512 KiB at 16 KiB a second would take 32 s; at 64 KiB a second they have 8 s more than 30. */
static void a_large_body_has_the_time_that_its_size_takes(void **state)
{
    (void)state;
    enum { PARTS = 64, PART = 8192 };
    static char part[PART];
    memset(part, 'x', sizeof part);
    client_send(&client, POST("/large", "Content-Length: 524288\r\n"));
    for (int i = 0; i < PARTS; i++) {
        site_pass(&site, SECOND_US / 2 + SECOND_US / 16);
        assert_int_equal(client_write(&client, part, PART), PART);
        assert_open(&client);
    }
    expect(&client, 200, "524288");
    client_send(&client, POST("/large", "Content-Length: 524288\r\n"));
    for (int i = 0; i < PARTS / 2; i++) { /* half as fast */
        site_pass(&site, SECOND_US + SECOND_US / 8);
        if (!client_write(&client, part, PART))
            break;
    }
    expect_timeout(&client);
}

/* The deadlines come first, as if events of other connections filled the turn. */
static void jump_and_look_at_deadlines(int64_t us)
{
    clock_fake_advance(&site.clock, us);
    site.loop->now_us = clock_monotonic_us(&site.clock.clock);
    for (struct timer *due; (due = wheel_pop(&site.loop->wheel, site.loop->now_us));)
        conn_due((struct conn *)due);
}

/* What has arrived in time counts, however late the process looks at it. */
static void a_process_that_stood_still_reads_what_came_before_it_closes(void **state)
{
    (void)state;
    struct client idle, begun, slow;
    client_open(&idle, &site, 0);
    client_open(&begun, &site, 0);
    client_open(&slow, &site, 0);
    client_send(&begun, "GET /now HTTP/1.1\r\n");
    client_send(&slow, "GET /now HTTP/1.1\r\n");
    site_turn(&site, 3);
    client_send(&client, GET("/now"));
    client_send(&begun, "Host: x\r\n\r\n");
    client_send(&slow, "Hos");
    jump_and_look_at_deadlines(100 * SECOND_US);
    expect(&client, 200, "now");
    expect(&begun, 200, "now");
    receive(&idle);
    assert_true(idle.ended && idle.in.len == 0);
    client_send(&slow, "t"); /* one more second, and no more, whatever comes */
    jump_and_look_at_deadlines(2 * SECOND_US);
    struct reply r = expect(&slow, 408, NULL);
    assert_true(r.close);
    client_close(&idle);
    client_close(&begun);
    client_close(&slow);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(an_idle_connection_is_closed_after_30_s),
        SITE_TEST(an_empty_line_after_a_request_is_not_one_that_has_begun),
        SITE_TEST(a_head_that_trickles_is_refused_after_10_s),
        SITE_TEST(empty_lines_do_not_keep_a_connection),
        SITE_TEST(a_chunked_body_that_trickles_is_refused_after_30_s),
        SITE_TEST(a_large_body_has_the_time_that_its_size_takes),
        SITE_TEST(a_process_that_stood_still_reads_what_came_before_it_closes),
        SITE_TEST(a_body_that_trickles_is_refused_after_30_s),
        SITE_TEST(work_has_no_deadline),
        SITE_TEST(a_refused_client_that_keeps_sending_is_cut_off_after_2_s),
        SITE_TEST(a_refused_client_that_sends_more_and_half_closes_reads_the_refusal),
        SITE_TEST(all_deadlines_hold_after_the_clock_jumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
