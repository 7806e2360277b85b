/* What connections may cost (support/site.h): budgets of blocks and bodies, and what an idle
 * connection has. */
#include "support/fixtures.h"

#include <stdio.h>

#include "support/site_claims.h"

/* ---- budgets ---- */

static void when_the_blocks_are_spent_clients_are_told(void **state)
{
    (void)state;
    size_t before = atomic_load(&site.server->block_bytes);
    atomic_store(&site.server->block_bytes, BLOCKS_BYTES_MAX);
    client_send(&client, GET("/now"));
    struct reply r = expect(&client, 503, NULL);
    assert_true(r.close);
    assert_non_null(strstr(r.body.data, "\"code\":\"overloaded\""));
    assert_non_null(reply_header(&r, "Retry-After").data);
    receive(&client);
    assert_true(client.ended && !client.failed);
    client_close(&client);
    site_turn(&site, 3);
    atomic_store(&site.server->block_bytes, before);
    client_open(&client, &site, 0);
    client_send(&client, GET("/now"));
    expect(&client, 200, "now");
}

static void when_only_small_blocks_are_left_long_heads_are_refused(void **state)
{
    (void)state;
    struct buf all = {0};
    client_send(&client, GET("/now")); /* leaves a free block */
    expect(&client, 200, "now");
    size_t before = atomic_load(&site.server->block_bytes);
    atomic_store(&site.server->block_bytes, BLOCKS_BYTES_MAX);
    buf_str(&all, "GET /now HTTP/1.1\r\nHost: x\r\nX: ");
    while (all.len < 6000)
        buf_char(&all, 'x');
    assert_int_equal(client_write(&client, all.data, all.len), all.len);
    struct reply r = expect(&client, 503, NULL);
    assert_true(r.close);
    client_close(&client);
    site_turn(&site, 3);
    atomic_store(&site.server->block_bytes, before);
    client_open(&client, &site, 0);
    buf_close(&all);
}

/* Requests that never end, from one address or from many, have taken all blocks.  All of them go on
 * in the turn in which another client comes, so that some events are about those that are cut off.
 */
static void parts_of_requests_make_room_for_whole_ones(void **state)
{
    (void)state;
    enum { N = 24 };
    static const char *const begins[] = {"GET /now HTTP/1.1\r\nX: ",
                                         POST("/echo", "Content-Length: 900\r\n") "x"};
    struct client parts[N];
    for (int is_crowd = 0; is_crowd < 2; is_crowd++) {
        for (int i = 0; i < N; i++) {
            char address[32];
            (void)snprintf(address, sizeof address, "192.0.2.%d", is_crowd ? 1 : i + 1);
            client_open_from(&parts[i], &site, address);
            client_send(&parts[i], begins[i % 2]);
            site_turn(&site, 2);
        }
        while (site.loop->blocks.free) { /* whatever is free is taken, too */
            struct block *b = site.loop->blocks.free;
            site.loop->blocks.free = b->next;
            site.loop->blocks.n_free--;
            free(b);
        }
        size_t before = atomic_load(&site.server->block_bytes);
        atomic_store(&site.server->block_bytes, BLOCKS_BYTES_MAX);
        client_send(&client, GET("/now"));
        for (int i = 0; i < N; i++)
            (void)client_write(&parts[i], "x", 1);
        expect(&client, 200, "now");
        atomic_store(&site.server->block_bytes, before);
        for (int i = 0; i < N; i++)
            client_close(&parts[i]);
        site_jump(&site, SECOND_US);
        assert_int_equal(site_connections(&site), 1);
    }
}

static void send_large(struct client *c, size_t len)
{
    char head[96], part[8192];
    memset(part, 'x', sizeof part);
    (void)snprintf(head, sizeof head, POST("/large", "Content-Length: %zu\r\n"), len);
    client_send(c, head);
    for (size_t sent = 0; sent + 1 < len; site_turn(&site, 4)) { /* all but the last byte */
        size_t n = len - 1 - sent < sizeof part ? len - 1 - sent : sizeof part;
        sent += client_write(c, part, n);
    }
}

static void only_eight_large_bodies_are_taken_at_a_time(void **state)
{
    (void)state;
    struct client clients[8];
    for (int i = 0; i < 8; i++) {
        client_open(&clients[i], &site, 0);
        send_large(&clients[i], 200000);
    }
    send_large(&client, 200000);
    client_send(&client, "x");
    struct reply r = expect(&client, 503, NULL);
    assert_false(r.close);
    for (int i = 0; i < 8; i++) {
        client_send(&clients[i], "x");
        expect(&clients[i], 200, "200000");
        client_close(&clients[i]);
    }
    send_large(&client, SITE_LARGE_MAX);
    client_send(&client, "x");
    expect(&client, 200, "1048576");
    assert_int_equal(atomic_load(&site.server->large), 0);
    assert_int_equal(atomic_load(&site.server->body_bytes), 0);
}

static void bodies_that_exceed_their_budget_are_refused(void **state)
{
    (void)state;
    atomic_store(&site.server->body_bytes, (size_t)256 << 20);
    send_large(&client, BLOCK_BODY_FREE);
    client_send(&client, "x");
    expect(&client, 200, "1024"); /* small ones do not count */
    send_large(&client, BLOCK_BODY_FREE + 1);
    client_send(&client, "x");
    struct reply r = expect(&client, 503, NULL);
    assert_false(r.close);
    assert_int_equal(atomic_load(&site.server->body_bytes), (size_t)256 << 20);
}

static void parts_of_bodies_make_room_for_whole_ones(void **state)
{
    (void)state;
    enum { N = 3, PART = 2000 };
    struct client parts[N];
    for (int i = 0; i < N; i++) {
        client_open_from(&parts[i], &site, "192.0.2.1");
        send_large(&parts[i], PART);
        site_turn(&site, 2);
    }
    size_t counted = atomic_load(&site.server->body_bytes);
    assert_true(counted >= (size_t)N * PART);
    atomic_store(&site.server->body_bytes, (size_t)256 << 20);
    send_large(&client, BLOCK_BODY_FREE + 1);
    client_send(&client, "x");
    expect(&client, 200, "1025");
    site_jump(&site, SECOND_US);
    assert_int_equal(site_connections(&site), N); /* one of them is gone */
    assert_int_equal(atomic_load(&site.server->body_bytes), ((size_t)256 << 20) - counted / N);
    atomic_store(&site.server->body_bytes, counted - counted / N);
    for (int i = 0; i < N; i++)
        client_close(&parts[i]);
    site_jump(&site, SECOND_US);
    assert_int_equal(atomic_load(&site.server->body_bytes), 0);
}

static void what_an_idle_connection_costs_is_its_struct(void **state)
{
    (void)state;
    enum { N = 300 };
    struct client clients[N];
    for (int i = 0; i < N; i++) {
        client_open(&clients[i], &site, 0);
        client_send(&clients[i], GET("/now"));
    }
    site_turn(&site, 10);
    for (int i = 0; i < N; i++)
        expect(&clients[i], 200, "now");
    assert_int_equal(site_blocks_in_use(&site), 0);
    assert_true(atomic_load(&site.server->block_bytes) <= (size_t)64 * 4096);
    assert_true(site.loop->requests.n_free <= 256);
    assert_true(sizeof(struct conn) <= CONN_IDLE_BYTES_MAX);
    for (int i = 0; i < N; i++)
        client_close(&clients[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(when_the_blocks_are_spent_clients_are_told),
        SITE_TEST(parts_of_requests_make_room_for_whole_ones),
        SITE_TEST(when_only_small_blocks_are_left_long_heads_are_refused),
        SITE_TEST(only_eight_large_bodies_are_taken_at_a_time),
        SITE_TEST(bodies_that_exceed_their_budget_are_refused),
        SITE_TEST(parts_of_bodies_make_room_for_whole_ones),
        SITE_TEST(what_an_idle_connection_costs_is_its_struct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
