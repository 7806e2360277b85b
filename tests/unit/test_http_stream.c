/* Streams on connections (support/site.h): what they send and when, slow readers, and how draining
 * ends them and the other connections. */
#include "support/fixtures.h"

#include <stdio.h>

#include "http/stream.h"
#include "support/site_claims.h"

/* ---- streams ---- */

/* The time to reconnect that the last of these blocks of a stream names. */
static long retry_ms(const char *text)
{
    const char *last = text, *next = text;
    while ((next = strstr(next, "retry: ")))
        last = next++;
    assert_memory_equal(last, "retry: ", strlen("retry: "));
    char *end;
    long ms = strtol(last + strlen("retry: "), &end, 10);
    assert_int_equal(*end, '\n');
    assert_in_range(ms, RETRY_MIN_MS, RETRY_MIN_MS + RETRY_SPREAD_MS - 1);
    return ms;
}

static void open_stream(struct client *c, const char *query)
{
    char text[128];
    struct reply r;
    (void)snprintf(text, sizeof text, "GET /stream%s HTTP/1.1\r\nHost: x\r\n\r\n", query);
    client_send(c, text);
    assert_true(client_reply(c, false, &r));
    assert_int_equal(r.status, 200);
    (void)retry_ms(r.body.data);
    assert_int_equal(site_blocks_in_use(&site), 0); /* a stream needs no block */
}

static void a_stream_tells_of_changes_and_of_those_it_missed(void **state)
{
    (void)state;
    site.topic.seq = 5;
    struct client late;
    client_open(&late, &site, 0);
    open_stream(&client, "");
    assert_int_equal(atomic_load(&site.server->n_streams), 1);
    site_pass(&site, SECOND_US);
    assert_string_equal(received(&client), "");
    site.topic.seq = 6;
    site_pass(&site, SECOND_US / 5);
    assert_string_equal(received(&client), "32\r\nid: 6\nevent: change\n"
                                           "data: {\"seq\":6,\"padding\":\"\"}\n\n\r\n");
    client_send(&late, GET("/stream?after=5"));
    assert_non_null(strstr(received(&late), "id: 6\nevent: change\n"));
    client_close(&client);
    client_close(&late);
    assert_gone();
    assert_int_equal(atomic_load(&site.server->n_streams), 0);
    assert_int_equal(site.loop->hub.bytes, 0);
}

static void silence_is_broken_before_15_s(void **state)
{
    (void)state;
    open_stream(&client, "");
    for (int i = 0; i < 5; i++) {
        int64_t silent_us = 0;
        while (!*received(&client)) {
            site_pass(&site, SECOND_US / 10);
            silent_us += SECOND_US / 10;
            assert_true(silent_us < 15 * SECOND_US);
        }
        assert_string_equal(client.last, "3\r\n:\n\n\r\n");
        assert_true(silent_us > 14 * SECOND_US);
    }
}

static void a_stream_does_not_exceed_ten_messages_a_second(void **state)
{
    (void)state;
    int messages = 0;
    open_stream(&client, "?after=0");
    for (int i = 0; i < 1000; i++) {
        site.topic.seq++;
        site_jump(&site, SECOND_US / 100);
        messages += strstr(received(&client), "event: change") != NULL;
    }
    assert_true(messages >= 60 && messages <= 100);
}

static void a_reader_that_takes_30_s_for_a_message_is_cut_off(void **state)
{
    (void)state;
    site.topic.padding = 500000;
    open_stream(&client, "");
    site.topic.seq++;
    site_pass(&site, SECOND_US);
    for (int i = 0; i < 28; i++) { /* it reads all the time, but not fast enough */
        site_pass(&site, SECOND_US);
        assert_true(client_read(&client, 16000) > 0);
        assert_int_equal(atomic_load(&site.server->n_streams), 1);
    }
    site_pass(&site, 3 * SECOND_US);
    assert_int_equal(atomic_load(&site.server->n_streams), 0);
    assert_gone();
    assert_int_equal(site.loop->hub.bytes, 0);
}

static void a_reader_that_catches_up_misses_nothing(void **state)
{
    (void)state;
    site.topic.padding = 100000;
    open_stream(&client, "");
    for (int i = 0; i < 20; i++) {
        site.topic.seq++;
        site_pass(&site, SECOND_US);
    }
    receive_long(&client);
    for (int i = 1; i <= 20; i++) {
        char id[64];
        (void)snprintf(id, sizeof id, "id: %d\nevent: change\n", i);
        assert_non_null(memmem(client.in.data, client.in.len, id, strlen(id)));
    }
    assert_int_equal(site.server->traffic.dropped->shards[0].value, 0);
    assert_open(&client);
}

static void the_end_of_a_topic_ends_its_streams_after_what_it_told(void **state)
{
    (void)state;
    struct client other;
    client_open(&other, &site, 0);
    open_stream(&client, "");
    open_stream(&other, "");
    site.topic.seq = 1;
    site.topic.ended = true;
    site_pass(&site, SECOND_US / 5);
    const char *text = received(&client);
    assert_non_null(strstr(text, "id: 1\nevent: change\n"));
    (void)retry_ms(text);
    assert_string_equal(text + strlen(text) - 7, "\r\n0\r\n\r\n");
    assert_true(client.ended && !client.failed);
    (void)received(&other);
    assert_true(other.ended && !other.failed);
    assert_int_equal(atomic_load(&site.server->n_streams), 0);
    client_close(&other);
    client_close(&client);
    assert_gone();
    assert_int_equal(site.topic.refs, 0);
    client_open(&client, &site, 0);
    client_send(&client, GET("/stream?after=0")); /* of a topic that has ended before */
    text = received(&client);
    assert_non_null(strstr(text, "id: 1\nevent: change\n"));
    site_pass(&site, SECOND_US / 5);
    (void)received(&client);
    assert_true(client.ended && !client.failed);
}

static void a_slow_reader_gets_the_last_message_of_a_topic_that_ended(void **state)
{
    (void)state;
    site.topic.padding = 500000;
    open_stream(&client, "");
    site.topic.seq = 1;
    site.topic.ended = true;
    site_pass(&site, SECOND_US);
    assert_int_equal(atomic_load(&site.server->n_streams), 1); /* it is still being sent */
    receive_long(&client);
    assert_true(client.ended && !client.failed);
    assert_true(client.in.len > site.topic.padding);
    assert_non_null(memmem(client.in.data, client.in.len, "retry: ", strlen("retry: ")));
    assert_int_equal(site.topic.refs, 0);
}

static void a_topic_that_nobody_reads_is_given_back(void **state)
{
    (void)state;
    struct reply r;
    client_send(&client, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(client_reply(&client, true, &r));
    assert_int_equal(r.status, 200);
    assert_int_equal(site.topic.refs, 0);
    client_close(&client);
    client_open(&client, &site, 0);
    site.server->config.streams_max = 0;
    client_send(&client, GET("/stream"));
    expect(&client, 503, NULL);
    assert_int_equal(site.topic.refs, 0);
}

static void a_stream_ends_when_its_client_closes_or_half_closes(void **state)
{
    (void)state;
    open_stream(&client, "");
    client_finish(&client);
    site_turn(&site, 3);
    assert_gone();
    client_close(&client);
    client_open(&client, &site, 0);
    open_stream(&client, "");
    client_send(&client, GET("/now")); /* is not answered, and does no harm */
    site_pass(&site, SECOND_US);
    assert_int_equal(atomic_load(&site.server->n_streams), 1);
    client_close(&client);
    assert_gone();
}

static void draining_ends_streams_with_their_last_chunk(void **state)
{
    (void)state;
    struct client old, slow;
    client_open(&old, &site, 0);
    client_open(&slow, &site, 0);
    client_send(&old, "GET /stream HTTP/1.0\r\n\r\n");
    receive(&old);
    old.in.len = 0;
    open_stream(&client, "");
    site.topic.padding = 200000;
    open_stream(&slow, "");
    site.topic.seq++;
    site_pass(&site, SECOND_US / 2); /* `slow` is in the middle of a message */
    receive_long(&client);
    receive_long(&old);
    client.in.len = old.in.len = 0;
    atomic_store(&site.server->draining, true);
    site_turn(&site, 3);
    char end[64];
    (void)snprintf(end, sizeof end, "d\r\nretry: %ld\n\n\r\n0\r\n\r\n",
                   retry_ms(received(&client)));
    assert_string_equal(client.last, end);
    (void)snprintf(end, sizeof end, "retry: %ld\n\n", retry_ms(received(&old)));
    assert_string_equal(old.last, end);
    assert_true(client.ended && !client.failed && old.ended);
    receive_long(&slow);
    assert_true(slow.ended && slow.in.len > 200000);
    const char *tail =
        slow.in.data + slow.in.len - strlen("}\n\n\r\nd\r\nretry: 1234\n\n\r\n0\r\n\r\n");
    assert_memory_equal(tail, "}\n\n\r\nd\r\nretry: ", 15);
    assert_int_equal(atomic_load(&site.server->n_streams), 0);
    client_close(&client);
    client_close(&old);
    client_close(&slow);
    assert_gone();
}

/* Draws for a crowd: all of them different would be chance, all of them near each other a herd. */
static void assert_spread(const long *ms, size_t n)
{
    size_t quarters[4] = {0};
    for (size_t i = 0; i < n; i++)
        quarters[(ms[i] - RETRY_MIN_MS) * 4 / RETRY_SPREAD_MS]++;
    for (int i = 0; i < 4; i++) /* 20 of 80 are expected; fewer than 3 happen once in 10^6 */
        assert_in_range(quarters[i], 3, n / 2);
}

static void a_crowd_is_told_different_times_to_come_back(void **state)
{
    (void)state;
    enum { CROWD = 80 };
    struct client crowd[CROWD];
    long begun[CROWD], ended[CROWD];
    for (int i = 0; i < CROWD; i++) {
        client_open(&crowd[i], &site, 0);
        client_send(&crowd[i], GET("/stream"));
        begun[i] = retry_ms(received(&crowd[i])); /* if the server is lost, this one counts */
    }
    atomic_store(&site.server->draining, true);
    for (int i = 0; i < CROWD; i++) {
        ended[i] = retry_ms(received(&crowd[i]));
        assert_true(crowd[i].ended);
        client_close(&crowd[i]);
    }
    assert_spread(begun, CROWD);
    assert_spread(ended, CROWD);
}

/* ---- draining ---- */

static void a_server_that_leaves_serves_everything_and_keeps_no_connection(void **state)
{
    (void)state;
    struct client other, waiter;
    client_open(&other, &site, 0);
    client_open(&waiter, &site, 0);
    open_stream(&client, "");
    server_leave(site.server);
    client_send(&other, GET("/now"));
    assert_true(expect(&other, 200, "now").close);
    client_close(&other);
    client_open(&other, &site, 0);
    open_stream(&other, "");
    client_send(&waiter, GET("/wait/a"));
    site.topic.seq++;
    site_pass(&site, SECOND_US);
    assert_non_null(strstr(received(&client), "event: change"));
    assert_non_null(strstr(received(&other), "event: change"));
    assert_open(&client);
    assert_true(site_finish(&site, "a"));
    assert_true(expect(&waiter, 200, "waited a").close);
    client_close(&waiter);
    client_close(&other);
}

/* A browser never repeats a stream that was refused. */
static void while_draining_a_stream_ends_at_once_instead_of_being_refused(void **state)
{
    (void)state;
    atomic_store(&site.server->draining, true);
    client_send(&client, GET("/stream"));
    struct reply r = expect(&client, 200, NULL);
    assert_true(r.close);
    (void)retry_ms(r.body.data);
    receive(&client);
    assert_true(client.ended && !client.failed);
}

static void while_draining_new_requests_are_refused_and_old_ones_answered(void **state)
{
    (void)state;
    struct client idle, health;
    client_open(&idle, &site, 0);
    client_open(&health, &site, 0);
    client_send(&client, GET("/wait/a") GET("/wait/b"));
    site_turn(&site, 3);
    atomic_store(&site.server->draining, true);
    client_send(&idle, GET("/now"));
    struct reply r = expect(&idle, 503, NULL);
    assert_true(r.close);
    assert_non_null(strstr(r.body.data, "\"code\":\"draining\""));
    client_send(&health, GET("/health"));
    r = expect(&health, 200, "well");
    assert_true(r.close);
    assert_true(site_finish(&site, "a"));
    r = expect(&client, 200, "waited a");
    assert_true(r.close);
    receive(&client);
    assert_true(client.ended && !client.failed);
    assert_int_equal(site.n_work, 0);
    client_close(&idle);
    client_close(&health);
}

/* What arrived while the last request waited, or while its answer was being sent, is unread. */
static void draining_does_not_reset_a_client_that_pipelines(void **state)
{
    (void)state;
    struct client slow;
    client_open(&slow, &site, 4096);
    client_send(&client, GET("/wait/a"));
    client_send(&slow, GET("/bytes/100000"));
    site_turn(&site, 3);
    client_send(&client, GET("/now"));
    client_send(&slow, GET("/now"));
    atomic_store(&site.server->draining, true);
    assert_true(site_finish(&site, "a"));
    struct reply r = expect(&client, 200, "waited a");
    assert_true(r.close);
    client_send(&slow, GET("/now"));
    receive_long(&slow);
    receive(&client);
    assert_true(client.ended && !client.failed && client.in.len == 0);
    assert_true(client_take(&slow, false, &r));
    assert_int_equal(r.body.len, 100000);
    client_close(&slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_stream_tells_of_changes_and_of_those_it_missed),
        SITE_TEST(silence_is_broken_before_15_s),
        SITE_TEST(a_stream_does_not_exceed_ten_messages_a_second),
        SITE_TEST(a_reader_that_takes_30_s_for_a_message_is_cut_off),
        SITE_TEST(a_reader_that_catches_up_misses_nothing),
        SITE_TEST(the_end_of_a_topic_ends_its_streams_after_what_it_told),
        SITE_TEST(a_slow_reader_gets_the_last_message_of_a_topic_that_ended),
        SITE_TEST(a_topic_that_nobody_reads_is_given_back),
        SITE_TEST(a_stream_ends_when_its_client_closes_or_half_closes),
        SITE_TEST(draining_ends_streams_with_their_last_chunk),
        SITE_TEST(a_crowd_is_told_different_times_to_come_back),
        SITE_TEST(a_server_that_leaves_serves_everything_and_keeps_no_connection),
        SITE_TEST(while_draining_a_stream_ends_at_once_instead_of_being_refused),
        SITE_TEST(while_draining_new_requests_are_refused_and_old_ones_answered),
        SITE_TEST(draining_does_not_reset_a_client_that_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
