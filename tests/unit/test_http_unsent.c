/* Answers that wait for their clients (support/site.h): what counts against the budget, who is cut
 * off when it is short, and how slowly an answer may be read. */
#include "support/fixtures.h"

#include <stdio.h>

#include "support/site_claims.h"

#define ROOM 4096 /* of the sockets of clients that read slowly */
#define LARGE 100000
#define GET_LARGE GET("/bytes/100000")

static size_t counted(void) { return atomic_load(&site.server->unsent.bytes); }

static uint64_t cuts(enum unsent_cut why) { return counter_read(site.server->unsent.cuts[why]); }

/* A client that has asked and takes nothing. */
static void open_slow(struct client *c, const char *text)
{
    client_open(c, &site, ROOM);
    client_send(c, text);
    site_turn(&site, 2);
}

static bool is_cut(struct client *c)
{
    site_turn(&site, 2);
    while (client_read(c, 65536) > 0)
        ;
    return c->ended;
}

/* ---- what counts ---- */

static void an_answer_that_the_socket_takes_at_once_does_not_count(void **state)
{
    (void)state;
    client_send(&client, GET("/now") GET("/bytes/1000"));
    site_turn(&site, 3);
    assert_int_equal(counted(), 0);
    expect(&client, 200, "now");
    expect(&client, 200, NULL);
}

static void an_answer_counts_from_when_it_waits_until_it_is_taken(void **state)
{
    (void)state;
    struct client slow, leaving;
    open_slow(&slow, GET_LARGE);
    assert_in_range(counted(), LARGE, LARGE + 2048);
    open_slow(&leaving, GET_LARGE);
    assert_in_range(counted(), 2 * LARGE, 2 * LARGE + 4096);
    client_close(&leaving);
    site_turn(&site, 2);
    assert_in_range(counted(), LARGE, LARGE + 2048);
    receive_long(&slow);
    assert_int_equal(counted(), 0);
    assert_int_equal(atomic_load(&site.server->n_blocked), 0);
    client_send(&slow, GET("/now")); /* the connection goes on */
    client_close(&slow);
}

#define ECHO_LEN 60000

/* A client that is sent ECHO_LEN bytes of `byte`, and takes nothing. */
static void open_slow_echo(struct client *c, char byte)
{
    char head[96], part[ECHO_LEN];
    memset(part, byte, sizeof part);
    client_open(c, &site, ROOM);
    (void)snprintf(head, sizeof head, POST("/echo", "Content-Length: %d\r\n"), ECHO_LEN);
    client_send(c, head);
    for (size_t sent = 0; sent < ECHO_LEN; site_turn(&site, 3))
        sent += client_write(c, part + sent, ECHO_LEN - sent);
    site_turn(&site, 30);
}

static void assert_echo(struct client *c, char byte)
{
    struct reply r;
    char part[ECHO_LEN];
    memset(part, byte, sizeof part);
    receive_long(c);
    assert_true(client_take(c, false, &r));
    assert_int_equal(r.body.len, ECHO_LEN);
    assert_memory_equal(r.body.data, part, ECHO_LEN);
}

static void what_sending_does_not_need_is_given_back_at_once(void **state)
{
    (void)state;
    struct client slow;
    open_slow_echo(&slow, 'x');
    assert_int_equal(atomic_load(&site.server->body_bytes), 0);
    assert_in_range(counted(), ECHO_LEN, ECHO_LEN + 2048); /* and not its buffer, which doubled */
    assert_echo(&slow, 'x');
    client_close(&slow);
}

static void answers_that_are_equal_count_once(void **state)
{
    (void)state;
    enum { N = 12 };
    struct client equal[N], other;
    for (int i = 0; i < N; i++)
        open_slow_echo(&equal[i], 'x');
    assert_in_range(counted(), ECHO_LEN, ECHO_LEN + N * 2048);
    open_slow_echo(&other, 'y');
    assert_in_range(counted(), 2 * ECHO_LEN, 2 * ECHO_LEN + (N + 1) * 2048);
    client_close(&equal[0]); /* the one that brought it */
    site_turn(&site, 3);
    for (int i = 1; i < N; i++) {
        assert_echo(&equal[i], 'x');
        client_close(&equal[i]);
    }
    assert_in_range(counted(), ECHO_LEN, ECHO_LEN + 2048);
    assert_echo(&other, 'y');
    client_close(&other);
    assert_int_equal(counted(), 0);
    for (size_t i = 0; i < BODIES_SLOTS; i++)
        assert_null(site.server->bodies.slots[i]);
}

static void a_body_that_many_read_counts_once(void **state)
{
    (void)state;
    enum { N = 20 };
    struct client slow[N];
    for (int i = 0; i < N; i++)
        open_slow(&slow[i], GET("/shared/a"));
    assert_in_range(counted(), SITE_SHARED_LEN, SITE_SHARED_LEN + N * 2048);
    for (int i = 1; i < N; i++)
        client_close(&slow[i]);
    site_turn(&site, 3);
    assert_in_range(counted(), SITE_SHARED_LEN, SITE_SHARED_LEN + 2048);
    client_close(&slow[0]);
    site_turn(&site, 2);
    assert_int_equal(counted(), 0);
}

static void answers_to_head_count_without_a_body(void **state)
{
    (void)state;
    struct client slow;
    client_open(&slow, &site, ROOM);
    for (int i = 0; i < 60; i++)
        client_send(&slow, "HEAD /shared/a HTTP/1.1\r\nHost: x\r\n\r\n");
    site_turn(&site, 3);
    assert_true(counted() <= SITE_SHARED_LEN + 2048);
    client_close(&slow);
    site_turn(&site, 2);
    assert_int_equal(counted(), 0);
}

/* ---- when the budget is short ---- */

static void the_answers_that_wait_longest_are_cut_off_first(void **state)
{
    (void)state;
    enum { N = 8 };
    struct client slow[N];
    site.server->unsent.max = 5 * (LARGE + 2048);
    for (int i = 0; i < N; i++) {
        open_slow(&slow[i], GET_LARGE);
        site_pass(&site, 100000);
    }
    assert_true(counted() <= site.server->unsent.max);
    assert_int_equal(cuts(CUT_MEMORY), 3);
    for (int i = 0; i < N; i++)
        assert_int_equal(is_cut(&slow[i]), i < 3);
    assert_int_equal(site_connections(&site), 1 + 5); /* `client` rests */
    for (int i = 0; i < N; i++)
        client_close(&slow[i]);
}

static void readers_of_one_body_stay_while_others_are_cut_off(void **state)
{
    (void)state;
    enum { N = 5 };
    struct client many[N], other[N];
    site.server->unsent.max = SITE_SHARED_LEN + LARGE + (N + 1) * 2048;
    for (int i = 0; i < N; i++) /* the older ones: all of them together are the price of one */
        open_slow(&many[i], GET("/shared/a"));
    assert_int_equal(cuts(CUT_MEMORY), 0);
    open_slow(&other[0], GET_LARGE);
    assert_int_equal(cuts(CUT_MEMORY), 0);
    open_slow(&other[1], GET_LARGE); /* its room comes only with the last of them */
    assert_int_equal(cuts(CUT_MEMORY), N);
    for (int i = 0; i < N; i++) {
        assert_true(is_cut(&many[i]));
        client_close(&many[i]);
    }
    assert_false(is_cut(&other[0]));
    assert_false(is_cut(&other[1]));
    client_close(&other[0]);
    client_close(&other[1]);
}

static void an_answer_larger_than_the_budget_is_cut_off_alone(void **state)
{
    (void)state;
    struct client small, slow, shared[2];
    site.server->unsent.max = LARGE / 2;
    open_slow(&small, GET("/bytes/20000"));
    open_slow(&slow, GET_LARGE);
    assert_true(is_cut(&slow));
    client_close(&slow);
    for (int i = 0; i < 2; i++) {
        open_slow(&shared[i], GET("/shared/a"));
        assert_true(is_cut(&shared[i]));
        client_close(&shared[i]);
    }
    assert_int_equal(cuts(CUT_MEMORY), 3);
    assert_in_range(counted(), 20000, 22048);
    assert_false(is_cut(&small));
    client_close(&small);
    site_turn(&site, 2);
    assert_int_equal(counted(), 0);
    client_send(&client, GET_LARGE); /* whoever takes it at once is not concerned */
    receive_long(&client);
    expect(&client, 200, NULL);
}

/* One turn has events of the clients that are cut off in it, before and after theirs. */
static void a_client_is_cut_off_in_the_turn_that_has_its_event(void **state)
{
    (void)state;
    enum { N = 60 };
    struct client slow[N];
    site.server->unsent.max = 4 * (LARGE + 2048);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < N; i++) {
            client_open(&slow[i], &site, ROOM);
            client_send(&slow[i], GET_LARGE GET("/now"));
        }
        site_turn(&site, 1);
        for (int i = 0; i < N; i++) /* those that wait can write again */
            (void)client_read(&slow[i], 65536);
        site_turn(&site, 1);
        assert_true(counted() <= site.server->unsent.max);
        for (int i = 0; i < N; i++)
            client_close(&slow[i]);
        site_pass(&site, 200000);
        assert_int_equal(counted(), 0);
    }
    assert_int_equal(site_connections(&site), 1);
}

/* ---- readers of outdated bodies ---- */

static void readers_of_a_revoked_body_are_cut_off(void **state)
{
    (void)state;
    struct client old[3], fresh;
    for (int i = 0; i < 3; i++)
        open_slow(&old[i], GET("/shared/a"));
    open_slow(&fresh, GET("/shared/b"));
    atomic_store(&site.shared[0].revoked, true);
    site_pass(&site, 200000);
    assert_int_equal(cuts(CUT_OUTDATED), 3);
    for (int i = 0; i < 3; i++) {
        assert_true(is_cut(&old[i]));
        client_close(&old[i]);
    }
    assert_false(is_cut(&fresh));
    client_close(&fresh);
}

static void a_loop_without_events_looks_for_revoked_bodies(void **state)
{
    (void)state;
    struct client slow;
    open_slow(&slow, GET("/shared/a"));
    int64_t next_us = unsent_next_us(&site.loop->unsent);
    assert_true(next_us >= 0 && next_us <= site.loop->now_us + 100000);
    client_close(&slow);
    site_turn(&site, 2);
    assert_int_equal(unsent_next_us(&site.loop->unsent), -1);
}

/* ---- pace ---- */

/* Reads `per_second` bytes a second for a minute; returns after how many seconds it was cut off, or
 * 0. */
static int read_at_pace(size_t per_second)
{
    struct client slow;
    const uint64_t before = cuts(CUT_SLOW);
    int at_s = 0;
    open_slow(&slow, GET("/bytes/1000000"));
    for (int s = 1; s <= 60 && !at_s; s++) {
        size_t took = 0;
        site_pass(&site, SECOND_US);
        for (int i = 0; i < 100 && took < per_second; i++) {
            took += client_read(&slow, per_second - took);
            site_turn(&site, 1);
        }
        at_s = cuts(CUT_SLOW) > before ? s : 0;
    }
    client_close(&slow);
    site_pass(&site, 200000);
    return at_s;
}

static void a_reader_slower_than_the_minimum_is_cut_off(void **state)
{
    (void)state;
    assert_int_equal(read_at_pace(2 * UNSENT_RATE), 0);
    assert_int_equal(cuts(CUT_SLOW), 0);
    assert_in_range(read_at_pace(UNSENT_RATE / 4), 10, 25);
    assert_in_range(read_at_pace(1), 10, 15);
    assert_int_equal(cuts(CUT_SLOW), 2);
    assert_int_equal(counted(), 0);
}

static void what_was_taken_early_counts(void **state)
{
    (void)state;
    struct client slow;
    open_slow(&slow, GET("/bytes/1000000"));
    for (size_t taken = 0; taken < 400000; site_turn(&site, 1))
        taken += client_read(&slow, 60000);
    for (int i = 0; i < 3; i++) { /* 75 s in all */
        site_pass(&site, 25 * SECOND_US);
        (void)client_read(&slow, 60000);
        site_turn(&site, 2);
    }
    assert_false(is_cut(&slow));
    client_close(&slow);
}

/* ---- several loops ---- */

static void run_both(int n)
{
    for (int i = 0; i < n; i++) {
        loop_turn(&site.server->loops[0], 0);
        loop_turn(&site.server->loops[1], 0);
    }
}

static void open_slow_on(struct client *c, unsigned loop)
{
    site.loop = &site.server->loops[loop];
    open_slow(c, GET_LARGE);
    clock_fake_advance(&site.clock, 1000);
}

static void the_loop_that_has_the_oldest_answer_gives_it_up(void **state)
{
    (void)state;
    enum { N = 20 };
    struct client slow[N];
    site_open_loops(&site, 2);
    site.server->unsent.max = (N - 1) * (LARGE + 2048);
    open_slow_on(&slow[0], 0);
    for (int i = 1; i < N; i++)
        open_slow_on(&slow[i], 1);
    assert_int_equal(cuts(CUT_MEMORY), 0); /* the first loop has not had its turn */
    assert_true(atomic_load(&site.server->loops[0].inbox.woken));
    run_both(2);
    assert_int_equal(cuts(CUT_MEMORY), 1);
    assert_true(counted() <= site.server->unsent.max);
    for (int i = 0; i < N; i++) {
        while (client_read(&slow[i], 65536) > 0)
            ;
        assert_int_equal(slow[i].ended, i == 0);
        client_close(&slow[i]);
    }
    site_close(&site);
}

static void a_loop_does_not_wait_long_for_another(void **state)
{
    (void)state;
    enum { N = 20 };
    struct client slow[N];
    site_open_loops(&site, 2);
    site.server->unsent.max = 6 * (LARGE + 2048);
    open_slow_on(&slow[0], 0); /* the oldest, whose loop has no turn */
    for (int i = 1; i < N; i++) {
        open_slow_on(&slow[i], 1);
        assert_true(counted() <= site.server->unsent.max / 8 * 9 + LARGE);
    }
    for (int i = 0; i < N; i++)
        client_close(&slow[i]);
    run_both(2);
    assert_int_equal(counted(), 0);
    site_close(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SITE_TEST(an_answer_that_the_socket_takes_at_once_does_not_count),
        SITE_TEST(an_answer_counts_from_when_it_waits_until_it_is_taken),
        SITE_TEST(what_sending_does_not_need_is_given_back_at_once),
        SITE_TEST(answers_that_are_equal_count_once),
        SITE_TEST(a_body_that_many_read_counts_once),
        SITE_TEST(answers_to_head_count_without_a_body),
        SITE_TEST(the_answers_that_wait_longest_are_cut_off_first),
        SITE_TEST(readers_of_one_body_stay_while_others_are_cut_off),
        SITE_TEST(an_answer_larger_than_the_budget_is_cut_off_alone),
        SITE_TEST(a_client_is_cut_off_in_the_turn_that_has_its_event),
        SITE_TEST(readers_of_a_revoked_body_are_cut_off),
        SITE_TEST(a_loop_without_events_looks_for_revoked_bodies),
        SITE_TEST(a_reader_slower_than_the_minimum_is_cut_off),
        SITE_TEST(what_was_taken_early_counts),
        cmocka_unit_test(the_loop_that_has_the_oldest_answer_gives_it_up),
        cmocka_unit_test(a_loop_does_not_wait_long_for_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
