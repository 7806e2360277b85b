/* Places for connections (support/site.h): who makes room for whom, and what guests may do. */
#include "support/fixtures.h"

#include "http/admission.h"
#include "support/site_claims.h"

enum { PLACES = 4 };
static struct client clients[PLACES], more;

/* The client of the fixture is gone; `clients` have all places, a second after one another. */
static void fill_places(void)
{
    client_close(&client);
    site_turn(&site, 3);
    site.server->connections_max = PLACES;
    for (int i = 0; i < PLACES; i++) {
        client_open(&clients[i], &site, 0);
        site_pass(&site, SECOND_US * 11 / 10);
    }
}

static void leave_places(void)
{
    for (int i = 0; i < PLACES; i++)
        client_close(&clients[i]);
    client_close(&more);
    site_turn(&site, 4);
}

static bool is_open(struct client *c)
{
    receive(c);
    return !c->ended;
}

/* The newcomer is served, and `evicted` is gone. */
static void expect_takes_place_of(struct client *evicted)
{
    client_open(&more, &site, 0);
    client_send(&more, GET("/now"));
    expect(&more, 200, "now");
    assert_false(is_open(evicted));
    for (int i = 0; i < PLACES; i++)
        assert_true(&clients[i] == evicted || is_open(&clients[i]));
    assert_int_equal(site_connections(&site), PLACES);
}

/* ---- who makes room ---- */

static void a_newcomer_takes_the_place_of_the_one_that_rested_longest(void **state)
{
    (void)state;
    fill_places();
    client_send(&clients[0], GET("/now")); /* it has just been busy */
    expect(&clients[0], 200, "now");
    expect_takes_place_of(&clients[1]);
    leave_places();
}

/* Bytes that trickle in are no work. */
static void requests_that_are_not_whole_make_room(void **state)
{
    (void)state;
    static const char *const begins[] = {"GET /n", POST("/echo", "Content-Length: 100\r\n") "x",
                                         "\r\n", "GET /now HTTP/1.1\r\n\r\n"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        fill_places();
        client_send(&clients[0], begins[i]);
        site_turn(&site, 3);
        for (int n = 1; n < PLACES; n++) {
            client_send(&clients[n], GET("/now"));
            expect(&clients[n], 200, "now");
            if (i < 3)
                client_send(&clients[0], i == 2 ? "\r\n" : "x");
            site_turn(&site, 3);
        }
        expect_takes_place_of(&clients[0]);
        leave_places();
    }
}

static void a_request_that_has_not_been_read_yet_is_no_rest(void **state)
{
    (void)state;
    fill_places();
    client_send(&clients[0], GET("/now"));
    client_open(&more, &site, 0); /* before the loop has its turn */
    client_send(&more, GET("/now"));
    expect(&more, 200, "now");
    expect(&clients[0], 200, "now");
    assert_false(is_open(&clients[1]));
    leave_places();
}

static void work_answers_and_streams_make_no_room(void **state)
{
    (void)state;
    fill_places();
    client_send(&clients[0], GET("/wait/a"));
    client_send(&clients[1], GET("/bytes/1999999"));
    client_send(&clients[2], GET("/stream"));
    client_send(&clients[3], GET("/await/b"));
    site_turn(&site, 5);
    client_open(&more, &site, 0);
    client_send(&more, GET("/now"));
    struct reply r = expect(&more, 503, NULL);
    assert_true(r.close);
    assert_header(&r, "Retry-After", "1");
    for (int i = 0; i < PLACES; i++)
        assert_true(is_open(&clients[i]));
    assert_true(site_finish(&site, "b")); /* and then it rests */
    expect(&clients[3], 200, "waited b");
    client_close(&more);
    expect_takes_place_of(&clients[3]);
    assert_true(site_finish(&site, "a"));
    leave_places();
}

/* Random requests, beside a list of since when each client rests. */
static void the_order_of_rest_is_that_of_a_list(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, test_seed(4));
    for (size_t round = test_steps(100); round > 0; round--) {
        int64_t since_us[PLACES], now_us = 0;
        fill_places();
        for (int i = 0; i < PLACES; i++)
            since_us[i] = i - PLACES;
        for (int n = 0; n < 8; n++) {
            uint64_t i = random_below(&random, PLACES);
            site_pass(&site, SECOND_US * 11 / 10);
            now_us++;
            if (random_below(&random, 2)) {
                client_send(&clients[i], GET("/now"));
                expect(&clients[i], 200, "now");
            } else {
                client_send(&clients[i], GET("/wait/a"));
                site_turn(&site, 2);
                assert_true(site_finish(&site, "a"));
                expect(&clients[i], 200, "waited a");
            }
            since_us[i] = now_us;
        }
        int oldest = 0;
        for (int i = 1; i < PLACES; i++)
            oldest = since_us[i] < since_us[oldest] ? i : oldest;
        expect_takes_place_of(&clients[oldest]);
        leave_places();
    }
}

/* ---- guests ---- */

static void make_all_busy(void)
{
    fill_places();
    for (int i = 0; i < PLACES; i++)
        client_send(&clients[i], GET("/wait/a"));
    site_turn(&site, 5);
}

static void finish_all(void)
{
    while (site_finish_nth(&site, 0))
        ;
    leave_places();
}

static void a_guest_is_told_how_the_server_is_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        int status;
    } cases[] = {{GET("/health"), 200}, {GET("/health") GET("/health"), 200}, /* once */
                 {GET("/now"), 503},    {GET("/nowhere"), 503},
                 {GET("/stream"), 503}, {POST("/echo", "Content-Length: 1\r\n") "x", 503}};
    make_all_busy();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client_open(&more, &site, 0);
        client_send(&more, cases[i].request);
        struct reply r = expect(&more, cases[i].status, NULL);
        assert_true(r.close);
        expect_nothing(&more);
        client_close(&more);
        site_turn(&site, 4);
        assert_int_equal(atomic_load(&site.server->n_guests), 0);
    }
    finish_all();
}

static void a_guest_has_a_second(void **state)
{
    (void)state;
    static const char *const begins[] = {"", "GET /healt",
                                         "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: "
                                         "9\r\n\r\nx"};
    make_all_busy();
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        client_open(&more, &site, 0);
        client_send(&more, begins[i]);
        site_turn(&site, 2);
        assert_int_equal(atomic_load(&site.server->n_guests), 1);
        for (int n = 0; n < 24; n++) { /* whatever it sends */
            (void)client_write(&more, "x", *begins[i] ? 1 : 0);
            site_pass(&site, SECOND_US / 10);
        }
        assert_int_equal(atomic_load(&site.server->n_guests), 0);
        client_close(&more);
    }
    finish_all();
}

/* One address cannot take all of the guests' places, and all addresses together cannot take more
 * than there are. */
static void there_are_few_guests(void **state)
{
    (void)state;
    enum { N = 60 };
    struct client guests[N];
    make_all_busy();
    for (int i = 0; i < N; i++)
        client_open_from(&guests[i], &site, "192.0.2.1");
    assert_int_equal(atomic_load(&site.server->n_guests), GUESTS_OF_AN_ADDRESS);
    struct reply r = expect(&guests[N - 1], 503, NULL);
    assert_true(r.close);
    assert_int_equal(reply_header(&r, "X-Request-Id").len, REQUEST_ID_LEN);
    client_open_from(&more, &site, "192.0.2.2");
    client_send(&more, GET("/health"));
    expect(&more, 200, "well");
    for (int i = 0; i < N; i++)
        client_close(&guests[i]);
    site_turn(&site, 4);
    for (int i = 0; i < N; i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "192.0.2.%d", i + 1);
        client_open_from(&guests[i], &site, address);
    }
    assert_int_equal(atomic_load(&site.server->n_guests), GUESTS_MAX);
    for (int i = 0; i < N; i++)
        client_close(&guests[i]);
    finish_all();
    assert_gone();
    assert_int_equal(atomic_load(&site.server->n_places), 0);
    assert_int_equal(atomic_load(&site.server->n_guests), 0);
}

/* ---- addresses ---- */

static void limit_addresses(size_t max)
{
    quotas_free(site.server->quotas);
    site.server->quotas =
        quotas_new(&(struct quota_limits){.levels = {[QUOTA_CONNECTIONS] = max}}, 1000);
}

static void an_address_that_has_its_share_makes_room_itself(void **state)
{
    (void)state;
    static const struct {
        const char *other, *own;
    } cases[] = {{"192.0.2.1", "192.0.2.2"}, {"2001:db8:0:1::1", "2001:db8:0:2::1"}};
    limit_addresses(3);
    for (size_t n = 0; n < 2; n++) {
        struct client other, own[5];
        client_open_from(&other, &site, cases[n].other); /* rests longest */
        for (int i = 0; i < 3; i++) {
            site_pass(&site, SECOND_US * 11 / 10);
            client_open_from(&own[i], &site, cases[n].own);
        }
        client_send(&own[0], GET("/now"));
        expect(&own[0], 200, "now");
        client_open_from(&own[3], &site, cases[n].own);
        assert_true(is_open(&other) && is_open(&own[0]) && is_open(&own[2]) && is_open(&own[3]));
        assert_false(is_open(&own[1]));
        client_send(&own[0], GET("/wait/a"));
        client_send(&own[2], GET("/wait/a"));
        client_send(&own[3], GET("/wait/a"));
        site_turn(&site, 3);
        client_open_from(&own[4], &site, cases[n].own); /* now there is none */
        client_send(&own[4], GET("/now"));
        expect(&own[4], 503, NULL);
        client_open_from(&more, &site, cases[n].other);
        client_send(&more, GET("/now"));
        expect(&more, 200, "now");
        while (site_finish_nth(&site, 0))
            ;
        for (int i = 0; i < 5; i++)
            client_close(&own[i]);
        client_close(&other);
        client_close(&more);
        site_turn(&site, 4);
    }
}

/* The address that has most of the places makes room before others that have rested longer. */
static void a_crowd_of_one_address_makes_room_first(void **state)
{
    (void)state;
    enum { N = 20 };
    struct client quiet, crowd[N], newcomers[N];
    limit_addresses(100);
    client_close(&client);
    site_turn(&site, 3);
    site.server->connections_max = N + 1;
    client_open_from(&quiet, &site, "192.0.2.1");
    site_pass(&site, 5 * SECOND_US);
    for (int i = 0; i < N; i++)
        client_open_from(&crowd[i], &site, "192.0.2.2");
    for (int i = 0; i < N / 2; i++) {
        char address[32];
        (void)snprintf(address, sizeof address, "192.0.2.%d", i + 10);
        client_open_from(&newcomers[i], &site, address);
    }
    int left = 0;
    for (int i = 0; i < N; i++)
        left += is_open(&crowd[i]);
    assert_int_equal(left, N / 2);
    assert_true(is_open(&quiet));
    for (int i = 0; i < N / 2; i++) {
        assert_true(is_open(&newcomers[i]));
        client_close(&newcomers[i]);
    }
    for (int i = 0; i < N; i++)
        client_close(&crowd[i]);
    client_close(&quiet);
}

/* Where all of a crowd is busy, one more of it is refused rather than another client closed. */
static void nobody_makes_room_for_one_more_of_a_crowd(void **state)
{
    (void)state;
    enum { N = 20 };
    struct client quiet, crowd[N], other;
    limit_addresses(100);
    client_close(&client);
    site_turn(&site, 3);
    site.server->connections_max = N + 1;
    client_open_from(&quiet, &site, "192.0.2.1");
    for (int i = 0; i < N; i++) { /* what they ask for has not been read yet */
        client_open_from(&crowd[i], &site, i % 2 ? "192.0.2.2" : "192.0.2.3");
        client_send(&crowd[i], GET("/now"));
    }
    client_open_from(&more, &site, "192.0.2.2");
    client_send(&more, GET("/now"));
    expect(&more, 503, NULL);
    assert_true(is_open(&quiet));
    client_open_from(&other, &site, "192.0.2.4"); /* by now they rest */
    client_send(&other, GET("/now"));
    expect(&other, 200, "now");
    assert_true(is_open(&quiet));
    for (int i = 0; i < N; i++)
        client_close(&crowd[i]);
    client_close(&quiet);
    client_close(&other);
    client_close(&more);
}

/* A subscriber with many /64s has eight times the share. */
static void a_network_of_ipv6_has_a_share_too(void **state)
{
    (void)state;
    enum { N = 2 * QUOTA_WIDE };
    struct client own[N + 1], other;
    limit_addresses(2);
    client_open_from(&other, &site, "2001:db8:2::1");
    for (int i = 0; i <= N; i++) {
        char address[40];
        (void)snprintf(address, sizeof address, "2001:db8:1:%x::1", i);
        client_open_from(&own[i], &site, address);
        site_pass(&site, SECOND_US * 11 / 10);
    }
    assert_true(is_open(&other));
    assert_false(is_open(&own[0]));
    for (int i = 1; i <= N; i++)
        assert_true(is_open(&own[i]));
    for (int i = 0; i <= N; i++)
        client_close(&own[i]);
    client_close(&other);
}

/* More connections than are looked at for one that rests: those that are busy are passed over. */
static void a_resting_connection_is_found_among_many_that_are_busy(void **state)
{
    (void)state;
    enum { N = 600 };
    struct client *many = hf_alloc(N * sizeof *many);
    limit_addresses(N);
    for (int i = 0; i < N; i++) {
        client_open_from(&many[i], &site, "192.0.2.1");
        client_send(&many[i], i < N - 1 ? GET("/wait/a") : GET("/now"));
        site_turn(&site, 2);
    }
    int served = 0;
    for (int i = 0; i < 3 && !served; i++) {
        struct reply r;
        client_open_from(&more, &site, "192.0.2.1");
        client_send(&more, GET("/now"));
        served = client_reply(&more, false, &r) && r.status == 200;
        if (!served)
            client_close(&more);
    }
    assert_true(served);
    assert_false(is_open(&many[N - 1]));
    while (site_finish_nth(&site, 0))
        ;
    for (int i = 0; i < N; i++)
        client_close(&many[i]);
    client_close(&more);
    free(many);
}

static void trusted_proxies_have_no_share(void **state)
{
    (void)state;
    struct client proxy[10];
    struct hf_err err;
    limit_addresses(2);
    assert_true(networks_parse("192.0.2.0/24", &site.access.trusted, &err));
    for (int i = 0; i < 10; i++)
        client_open_from(&proxy[i], &site, "192.0.2.7");
    for (int i = 0; i < 10; i++) {
        assert_true(is_open(&proxy[i]));
        client_close(&proxy[i]);
    }
}

static void an_address_has_its_places_back_when_its_connections_end(void **state)
{
    (void)state;
    limit_addresses(2);
    for (int i = 0; i < 20; i++) {
        client_open_from(&more, &site, "192.0.2.1");
        client_send(&more, i % 2 ? "GET /" : GET("/now"));
        site_turn(&site, 3);
        client_close(&more);
        site_turn(&site, 3);
    }
    struct client two[2];
    for (int i = 0; i < 2; i++)
        client_open_from(&two[i], &site, "192.0.2.1");
    assert_true(is_open(&two[0]) && is_open(&two[1]));
    assert_int_equal(counter_read(site.server->traffic.evicted), 0);
    for (int i = 0; i < 2; i++)
        client_close(&two[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(a_newcomer_takes_the_place_of_the_one_that_rested_longest),
        SITE_TEST(requests_that_are_not_whole_make_room),
        SITE_TEST(a_request_that_has_not_been_read_yet_is_no_rest),
        SITE_TEST(work_answers_and_streams_make_no_room),
        SITE_TEST(the_order_of_rest_is_that_of_a_list),
        SITE_TEST(a_guest_is_told_how_the_server_is_and_nothing_else),
        SITE_TEST(a_guest_has_a_second),
        SITE_TEST(there_are_few_guests),
        SITE_TEST(an_address_that_has_its_share_makes_room_itself),
        SITE_TEST(a_crowd_of_one_address_makes_room_first),
        SITE_TEST(nobody_makes_room_for_one_more_of_a_crowd),
        SITE_TEST(a_network_of_ipv6_has_a_share_too),
        SITE_TEST(a_resting_connection_is_found_among_many_that_are_busy),
        SITE_TEST(trusted_proxies_have_no_share),
        SITE_TEST(an_address_has_its_places_back_when_its_connections_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
