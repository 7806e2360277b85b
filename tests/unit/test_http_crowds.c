/* Crowds of streams (support/site.h): readers that are slow, that come with many places in the
 * past, or that are many of one address.  Others are told everything all the same. */
#include "support/fixtures.h"

#include <stdio.h>

#include "http/stream.h"
#include "support/site_claims.h"

static void join(struct client *c, const char *address, const char *query, const char *fields)
{
    char text[256];
    client_open_from(c, &site, address);
    (void)snprintf(text, sizeof text, "GET /stream%s HTTP/1.1\r\nHost: x\r\n%s\r\n", query, fields);
    client_send(c, text);
    site_turn(&site, 4);
}

static bool was_told(struct client *c, const char *what)
{
    receive(c);
    return c->in.len && memmem(c->in.data, c->in.len, what, strlen(what));
}

/* ---- slow readers ---- */

/* 135 readers that never read each have another message of half a megabyte, which is more than all
 * messages may be together.  `present`: a reader that takes everything. */
static void slow_readers_do_not_turn_the_news_of_others_into_resets(void **state)
{
    (void)state;
    enum { SLOW = 135 };
    struct client slow[SLOW];
    client_send(&client, GET("/stream"));
    receive(&client);
    site.topic.padding = 500000;
    for (int i = 0; i < SLOW; i++) {
        client_open(&slow[i], &site, 4096);
        client_send(&slow[i], GET("/stream"));
        site_turn(&site, 4);
        client.in.len = 0;
        site.topic.seq++;
        for (int n = 0; n < 2; n++) { /* bytes of a round delay the next one */
            site_pass(&site, SECOND_US / 10);
            receive_long(&client);
        }
        char id[64];
        (void)snprintf(id, sizeof id, "id: %lld\nevent: change\n", (long long)site.topic.seq);
        if (!memmem(client.in.data, client.in.len, id, strlen(id)))
            fail_msg("no change %lld beside %d slow readers", (long long)site.topic.seq, i);
        assert_true(site.loop->hub.bytes <= MESSAGES_BYTES_MAX);
    }
    size_t left = atomic_load(&site.server->n_streams);
    assert_true(left > 50 && left < SLOW); /* the first ones had to make room */
    receive(&slow[0]);
    assert_true(slow[0].ended);
    receive(&slow[SLOW - 1]);
    assert_false(slow[SLOW - 1].ended);
    for (int i = 0; i < SLOW; i++)
        client_close(&slow[i]);
    client_close(&client);
    assert_gone();
    assert_int_equal(site.loop->hub.bytes, 0);
    assert_int_equal(site.loop->hub.pinned_bytes, 0);
}

/* ---- replays ---- */

/* Thirty newcomers a second that each missed something else, which takes 30 ms to encode. */
static void encoding_for_newcomers_takes_a_tenth_of_the_time(void **state)
{
    (void)state;
    enum { N = 600 };
    site.topic.seq = 10 * N;
    site.topic.cost_us = 30000;
    size_t resets = 0;
    for (int i = 0; i < N; i++) {
        char query[32];
        struct client c;
        (void)snprintf(query, sizeof query, "?after=%d", 10 * i);
        join(&c, "192.0.2.1", query, "");
        resets += was_told(&c, "event: reset\n");
        client_close(&c);
        site_jump(&site, SECOND_US / 30); /* 20 s in all, and what was encoded */
    }
    assert_in_range(site.topic.encoded, 40, 90); /* 20 s and a burst of 1 s: 70 of 30 ms */
    assert_int_equal(resets + site.topic.encoded, N);
}

static void newcomers_that_missed_the_same_share_what_is_encoded(void **state)
{
    (void)state;
    enum { N = 100 };
    struct client clients[N];
    site.topic.seq = 500;
    client_send(&client, GET("/stream"));
    site_turn(&site, 4);
    for (int i = 0; i < N; i++) {
        join(&clients[i], "192.0.2.1", i % 2 ? "?after=8" : "?after=7", "");
        assert_true(was_told(&clients[i], "id: 500\nevent: change\n"));
        site.loop->hub.replays_us = INT64_MAX; /* nothing more is encoded for newcomers */
    }
    client_close(&clients[0]);
    join(&clients[0], "192.0.2.1", "?after=6", "");
    assert_true(was_told(&clients[0], "event: reset\n"));
    assert_int_equal(site.topic.encoded, 1);
    for (int i = 0; i < N; i++)
        client_close(&clients[i]);
}

static void limit(struct quota_limits limits)
{
    quotas_free(site.server->quotas);
    site.server->quotas = quotas_new(&limits, 1000);
}

static void an_address_has_few_replays(void **state)
{
    (void)state;
    struct client clients[8];
    limit((struct quota_limits){.rates = {[QUOTA_REPLAYS] = {.per_minute = 60, .burst = 2}}});
    site.topic.seq = 500;
    static const struct {
        const char *address, *query, *told;
    } cases[] = {
        {"192.0.2.1", "?after=6", "event: change\n"}, {"192.0.2.1", "?after=5", "event: change\n"},
        {"192.0.2.1", "?after=4", "event: reset\n"},  {"192.0.2.1", "?after=7", "event: change\n"},
        {"192.0.2.2", "?after=4", "event: change\n"}, {"192.0.2.1", "?after=4", "event: change\n"},
        {"192.0.2.1", "?after=500", "retry: "},       {"192.0.2.1", "", "id: 500\n"},
    };
    for (int i = 0; i < 8; i++) {
        join(&clients[i], cases[i].address, cases[i].query, "");
        if (!was_told(&clients[i], cases[i].told))
            fail_msg("%s of %s is not told %s", cases[i].query, cases[i].address, cases[i].told);
    }
    for (int i = 0; i < 8; i++)
        client_close(&clients[i]);
    assert_int_equal(counter_read(site.server->traffic.too_soon[QUOTA_REPLAYS]), 2);
    site_pass(&site, 2 * SECOND_US);
    join(&clients[0], "192.0.2.1", "?after=3", "");
    assert_true(was_told(&clients[0], "event: change\n"));
    client_close(&clients[0]);
}

/* ---- addresses ---- */

static void an_address_has_its_share_of_streams(void **state)
{
    (void)state;
    struct client own[3], other, keyed;
    limit((struct quota_limits){.levels = {[QUOTA_STREAMS] = 2}});
    for (int round = 0; round < 3; round++) {
        join(&own[0], "192.0.2.1", "", "");
        join(&own[1], "192.0.2.1", "", "");
        join(&own[2], "192.0.2.1", "", "");
        join(&other, "192.0.2.2", "", "");
        join(&keyed, "192.0.2.1", "", "Authorization: Bearer " SITE_KEY "\r\n");
        struct reply r = expect(&own[2], 429, NULL);
        assert_non_null(strstr(r.body.data, "\"code\":\"too_many_streams\""));
        assert_header(&r, "Retry-After", "1");
        assert_true(was_told(&other, "retry: ") && was_told(&keyed, "retry: "));
        assert_int_equal(atomic_load(&site.server->n_streams), 4);
        client_close(&own[2]);
        join(&own[2], "192.0.2.1", "", "X-Forwarded-For: 192.0.2.9\r\n"); /* nobody believes it */
        expect(&own[2], 429, NULL);
        for (int i = 0; i < 3; i++)
            client_close(&own[i]);
        client_close(&other);
        client_close(&keyed);
        site_turn(&site, 4);
    }
}

/* Behind a proxy, clients are told apart by what the proxy says. */
static void clients_behind_a_proxy_have_shares_of_their_own(void **state)
{
    (void)state;
    struct client clients[6];
    struct hf_err err;
    limit((struct quota_limits){.levels = {[QUOTA_STREAMS] = 2}});
    assert_true(networks_parse("192.0.2.0/24", &site.access.trusted, &err));
    for (int i = 0; i < 6; i++)
        join(&clients[i], "192.0.2.1", "",
             i < 3 ? "X-Forwarded-For: 198.51.100.1\r\n" : "X-Forwarded-For: 198.51.100.2\r\n");
    for (int i = 0; i < 6; i++) {
        assert_true(was_told(&clients[i], i % 3 < 2 ? "retry: " : "too_many_streams"));
        client_close(&clients[i]);
    }
}

/* A request that is answered without a stream gives back what it took. */
static void a_head_of_a_stream_does_not_count(void **state)
{
    (void)state;
    struct client c;
    limit((struct quota_limits){.levels = {[QUOTA_STREAMS] = 1}});
    for (int i = 0; i < 5; i++) {
        struct reply r;
        client_open_from(&c, &site, "192.0.2.1");
        client_send(&c, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_true(client_reply(&c, true, &r));
        assert_int_equal(r.status, 200);
        client_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(slow_readers_do_not_turn_the_news_of_others_into_resets),
        SITE_TEST(encoding_for_newcomers_takes_a_tenth_of_the_time),
        SITE_TEST(newcomers_that_missed_the_same_share_what_is_encoded),
        SITE_TEST(an_address_has_few_replays),
        SITE_TEST(an_address_has_its_share_of_streams),
        SITE_TEST(clients_behind_a_proxy_have_shares_of_their_own),
        SITE_TEST(a_head_of_a_stream_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
