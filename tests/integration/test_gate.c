/* The gate with a real redis-server while all is well: what gate.h says, sentence by sentence. */
#include "support/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- claims ---- */

static void a_claim_belongs_to_its_token_for_five_seconds(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    wish_seats(&w, 3, 4294967295);
    assert_true(wish_granted(g, token_of(1), &w));
    assert_string_equal(beside_get("seat:{7}:3"), CLAIM_OF_1);
    assert_string_equal(beside_get("seat:{7}:4294967295"), CLAIM_OF_1);
    assert_ttl("seat:{7}:3", GATE_CLAIM_MS);
    assert_int_equal(beside_keys(), 2);
    gate_close(g);
}

static void a_refused_claim_keeps_nothing_and_names_the_taken_seats_in_order(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish first, second;
    wish_seats(&first, 1, 3, 5);
    assert_true(wish_granted(g, token_of(1), &first));
    wish_seats(&second, 5, 2, 4, 3);
    assert_false(wish_granted(g, token_of(2), &second));
    assert_int_equal(second.c.n_taken, 2);
    assert_int_equal(second.taken[0], 5);
    assert_int_equal(second.taken[1], 3);
    assert_int_equal(second.c.short_area, -1);
    assert_int_equal(beside_keys(), 3);
    wish_n(&second, EVENT + 1, (const uint32_t[]){1, 3, 5},
           3); /* the same numbers of another event are other seats */
    assert_true(wish_granted(g, token_of(2), &second));
    gate_close(g);
}

static void a_token_is_granted_again_what_it_has(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    wish_seats(&w, 1, 2);
    assert_true(wish_granted(g, token_of(1), &w));
    freeReplyObject(beside_ask("PEXPIRE|seat:{7}:1|1000"));
    wish_seats(&w, 1, 9);
    assert_true(wish_granted(g, token_of(1), &w));
    assert_ttl("seat:{7}:1", GATE_CLAIM_MS);
    /* a refused claim keeps what the token had before, and no more */
    wish_seats(&w, 20);
    assert_true(wish_granted(g, token_of(2), &w));
    wish_seats(&w, 1, 20, 21);
    assert_false(wish_granted(g, token_of(1), &w));
    assert_int_equal(w.c.n_taken, 1);
    assert_string_equal(beside_get("seat:{7}:1"), CLAIM_OF_1);
    assert_string_equal(beside_get("seat:{7}:21"), "");
    gate_close(g);
}

static void an_area_refuses_more_than_is_left(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    settle_count(g, (struct gate_count){
                        .event = EVENT, .area = 0, .seq = 5, .available = 3, .ttl_ms = 60000});
    settle_count(g, (struct gate_count){
                        .event = EVENT, .area = 2, .seq = 5, .available = 0, .ttl_ms = 60000});
    wish_seats(&w, 1);
    wish_area(&w, 0, 3);
    assert_true(wish_granted(g, token_of(1), &w));
    wish_seats(&w, 2);
    wish_area(&w, 1, 1000); /* without a count nothing is refused */
    wish_area(&w, 0, 4);
    wish_area(&w, 2, 1);
    assert_false(wish_granted(g, token_of(1), &w));
    assert_int_equal(w.c.n_taken, 0);
    assert_int_equal(w.c.short_area, 0);
    assert_int_equal(w.c.available, 3);
    assert_string_equal(beside_get("seat:{7}:2"), "");
    wish_seats(&w, 1);
    wish_area(&w, 2, 1);
    assert_false(wish_granted(g, token_of(2), &w)); /* both are reported */
    assert_int_equal(w.c.n_taken, 1);
    assert_int_equal(w.c.short_area, 2);
    assert_int_equal(w.c.available, 0);
    assert_string_equal(beside_get("area:{7}:0"), "5 3"); /* never counted down */
    wish_init(&w, EVENT);
    assert_true(wish_granted(g, token_of(1), &w)); /* an empty claim */
    gate_close(g);
}

static void garbage_and_other_types_refuse_nobody(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    static const char *const rubbish[] = {
        "hello", "", "c:", "c:xyz", "007", "-5", "1.5", "12345678901234567890", " 1"};
    struct wish w;
    freeReplyObject(beside_ask("RPUSH|seat:{7}:1|a"));
    freeReplyObject(beside_ask("HSET|area:{7}:1|a|b"));
    wish_seats(&w, 1);
    wish_area(&w, 1, 5);
    assert_true(wish_granted(g, token_of(1), &w));
    assert_string_equal(beside_get("seat:{7}:1"), CLAIM_OF_1);
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        beside_set("seat:{7}:2", rubbish[i]);
        beside_set("area:{7}:2", rubbish[i]);
        wish_seats(&w, 2);
        wish_area(&w, 2, 5);
        if (!wish_granted(g, token_of(1), &w))
            fail_msg("\"%s\" stands in the way", rubbish[i]);
        assert_string_equal(beside_get("seat:{7}:2"), CLAIM_OF_1);
    }
    static const char *const counts[] = {"1", "1 ", " 0", "x 0", "1 0 ", "01 0", "1  0", "1.5 0"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        beside_set("area:{7}:2", counts[i]);
        wish_init(&w, EVENT);
        wish_area(&w, 2, 5);
        if (!wish_granted(g, token_of(1), &w))
            fail_msg("\"%s\" stands in the way", counts[i]);
    }
    gate_close(g);
}

/* ---- settling ---- */

static void a_hold_replaces_a_claim_an_older_hold_or_nothing(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct gate_seat seat = {.event = EVENT, .seat = 1, .hold = 100, .ttl_ms = 60000};
    struct wish w;
    settle_one(g, token_of(1), seat);
    assert_string_equal(beside_get("seat:{7}:1"), "100");
    assert_ttl("seat:{7}:1", 60000);
    wish_seats(&w, 1);
    assert_false(wish_granted(g, token_of(1), &w)); /* a hold blocks every token */
    seat.hold = 101;
    seat.ttl_ms = 30000;
    settle_one(g, token_of(2), seat);
    assert_string_equal(beside_get("seat:{7}:1"), "101");
    assert_ttl("seat:{7}:1", 30000);
    seat.ttl_ms = 90000; /* renewed */
    settle_one(g, token_of(2), seat);
    assert_ttl("seat:{7}:1", 90000);
    wish_seats(&w, 2);
    assert_true(wish_granted(g, token_of(1), &w));
    seat.seat = 2;
    settle_one(g, token_of(2), seat); /* it replaces the claim of another token, too */
    assert_string_equal(beside_get("seat:{7}:2"), "101");
    beside_set("seat:{7}:3", "rubbish");
    freeReplyObject(beside_ask("RPUSH|seat:{7}:4|a"));
    seat.seat = 3;
    settle_one(g, token_of(1), seat);
    seat.seat = 4;
    seat.ttl_ms = INT64_MAX;
    settle_one(g, token_of(1), seat);
    assert_string_equal(beside_get("seat:{7}:3"), "101");
    assert_string_equal(beside_get("seat:{7}:4"), "101");
    assert_true(beside_pttl("seat:{7}:4") > 0);
    gate_close(g);
}

static void an_older_hold_never_replaces_nor_frees_a_newer_one(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    static const int64_t rising[] = {1,
                                     9,
                                     10,
                                     99,
                                     100,
                                     (INT64_C(1) << 53) - 1,
                                     INT64_C(1) << 53,
                                     (INT64_C(1) << 53) + 1,
                                     (INT64_C(1) << 53) + 2,
                                     INT64_C(999999999999999999),
                                     INT64_C(1000000000000000000),
                                     (INT64_C(1) << 62) - 1,
                                     INT64_C(1) << 62,
                                     INT64_MAX - 1,
                                     INT64_MAX};
    for (size_t i = 1; i < sizeof rising / sizeof *rising; i++) {
        struct gate_seat older = {.event = EVENT, .seat = 1, .hold = rising[i - 1], .ttl_ms = 9000};
        struct gate_seat newer = {.event = EVENT, .seat = 1, .hold = rising[i], .ttl_ms = 60000};
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)rising[i]);
        settle_one(g, token_of(1), older);
        settle_one(g, token_of(1), newer);
        assert_string_equal(beside_get("seat:{7}:1"), text);
        settle_one(g, token_of(1), older);
        assert_string_equal(beside_get("seat:{7}:1"), text);
        assert_ttl("seat:{7}:1", 60000);
        older.ttl_ms = 0;
        settle_one(g, token_of(1), older);
        assert_string_equal(beside_get("seat:{7}:1"), text);
        older.ttl_ms = 9000;
        beside_flush(NULL);
    }
    gate_close(g);
}

static void a_seat_that_is_free_again_is_deleted(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct gate_seat ends = {.event = EVENT, .seat = 1, .hold = 50};
    beside_set("seat:{7}:1", "50");
    settle_one(g, token_of(1), ends);
    assert_int_equal(beside_keys(), 0);
    beside_set("seat:{7}:1", "9"); /* the entry of an older hold */
    ends.ttl_ms = -20;             /* it has ended before the call */
    settle_one(g, token_of(1), ends);
    assert_int_equal(beside_keys(), 0);
    beside_set("seat:{7}:1", CLAIM_OF_1);
    settle_one(g, token_of(2), ends); /* the claim of another token stays */
    assert_string_equal(beside_get("seat:{7}:1"), CLAIM_OF_1);
    settle_one(g, token_of(1), ends);
    assert_int_equal(beside_keys(), 0);
    settle_one(g, token_of(1), ends); /* there is no entry */
    gate_close(g);
}

static void a_seat_of_no_hold_gives_back_the_tokens_claim_and_nothing_else(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct gate_seat none = {.event = EVENT, .seat = 1, .hold = 0};
    beside_set("seat:{7}:1", CLAIM_OF_1);
    settle_one(g, token_of(2), none);
    assert_string_equal(beside_get("seat:{7}:1"), CLAIM_OF_1);
    settle_one(g, token_of(1), none);
    assert_int_equal(beside_keys(), 0);
    beside_set("seat:{7}:1", "1");
    settle_one(g, token_of(1), none);
    none.ttl_ms = 5000;
    settle_one(g, token_of(1), none);
    assert_string_equal(beside_get("seat:{7}:1"), "1");
    gate_close(g);
}

/* A batch may end one hold of a seat and grant the next, and settle them in any order. */
static void a_seat_settled_twice_in_one_call_ends_as_in_two_calls(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct gate_seat both[2] = {{.event = EVENT, .seat = 1, .hold = 11, .ttl_ms = 60000},
                                {.event = EVENT, .seat = 1, .hold = 10, .ttl_ms = 0}};
    for (int turn = 0; turn < 2; turn++) {
        beside_set("seat:{7}:1", CLAIM_OF_1);
        assert_int_equal(gate_settle(g, token_of(1), both, 2, NULL, 0, NULL), HF_DONE);
        assert_string_equal(beside_get("seat:{7}:1"), "11");
        struct gate_seat swap = both[0];
        both[0] = both[1];
        both[1] = swap;
    }
    both[0] = (struct gate_seat){.event = EVENT, .seat = 1, .hold = 12, .ttl_ms = 60000};
    both[1] = (struct gate_seat){.event = EVENT, .seat = 1, .hold = 12, .ttl_ms = 0};
    assert_int_equal(gate_settle(g, token_of(1), both, 2, NULL, 0, NULL), HF_DONE);
    assert_int_equal(beside_keys(), 0);
    gate_close(g);
}

static void a_count_replaces_one_of_an_earlier_seq(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct gate_count c = {.event = EVENT, .area = 3, .seq = 9, .available = 100, .ttl_ms = 40000};
    settle_count(g, c);
    assert_string_equal(beside_get("area:{7}:3"), "9 100");
    assert_ttl("area:{7}:3", 40000);
    c.seq = (INT64_C(1) << 53) + 1;
    c.available = 7;
    settle_count(g, c);
    assert_string_equal(beside_get("area:{7}:3"), "9007199254740993 7");
    c.seq--;
    c.available = 8;
    settle_count(g, c);
    assert_string_equal(beside_get("area:{7}:3"), "9007199254740993 7");
    beside_set("area:{7}:3", "rubbish");
    settle_count(g, c);
    assert_string_equal(beside_get("area:{7}:3"), "9007199254740992 8");
    struct gate_count two[2] = {c, c}; /* the later seq wins, in any order */
    two[0].seq += 2;
    two[0].available = 55;
    two[1].seq += 1;
    assert_int_equal(gate_settle(g, token_of(1), NULL, 0, two, 2, NULL), HF_DONE);
    assert_string_equal(beside_get("area:{7}:3"), "9007199254740994 55");
    c.ttl_ms = 0; /* deleted, whatever its value */
    settle_count(g, c);
    assert_int_equal(beside_pttl("area:{7}:3"), -2);
    gate_close(g);
}

static void a_large_settlement_is_done_in_scripts_of_a_hundred(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    enum { N = 1050, COUNTS = 210 };
    struct gate_seat *seats = hf_alloc(N * sizeof *seats);
    struct gate_count *counts = hf_alloc(COUNTS * sizeof *counts);
    for (int i = 0; i < N; i++)
        seats[i] = (struct gate_seat){1 + i / 350, (uint32_t)i, 1000 + i, 60000};
    for (int i = 0; i < COUNTS; i++)
        counts[i] = (struct gate_count){
            .event = 1 + i / 70, .seq = 1, .available = 2, .ttl_ms = 60000, .area = (uint32_t)i};
    gate_ping(g, NULL);
    int64_t before =
        redis_server_calls(&gate_server, "evalsha") + redis_server_calls(&gate_server, "eval");
    assert_int_equal(gate_settle(g, token_of(1), seats, N, counts, COUNTS, NULL), HF_DONE);
    assert_int_equal(beside_keys(), N + COUNTS);
    assert_string_equal(beside_get("seat:{3}:1049"), "2049");
    assert_string_equal(beside_get("area:{3}:209"), "1 2");
    int64_t after =
        redis_server_calls(&gate_server, "evalsha") + redis_server_calls(&gate_server, "eval");
    assert_in_range(after - before, 3 * 4 + 3,
                    2 * (3 * 4 + 3)); /* scripts that the server does not know are sent twice */
    free(seats);
    free(counts);
    gate_close(g);
}

static int64_t slot(const struct redis_server *s, const char *key)
{
    char command[96], answer[64];
    snprintf(command, sizeof command, "CLUSTER KEYSLOT %s", key);
    redis_server_ask(s, command, answer, sizeof answer);
    assert_int_equal(answer[0], ':');
    return strtoll(answer + 1, NULL, 10);
}

static void an_events_keys_are_in_one_slot_and_a_cluster_takes_them(void **state)
{
    (void)state;
    struct redis_server s = {.cluster = true};
    char answer[64];
    assert_true(redis_server_start(&s));
    int64_t one = slot(&s, "seat:{7}:1");
    assert_int_equal(slot(&s, "seat:{7}:4294967295"), one);
    assert_int_equal(slot(&s, "area:{7}:0"), one);
    assert_int_not_equal(slot(&s, "seat:{8}:1"), one);
    redis_server_ask(&s, "CLUSTER ADDSLOTSRANGE 0 16383", answer, sizeof answer);
    assert_string_equal(answer, "+OK\r\n");
    struct gate *g = gate_at(s.url, GATE_PATIENT_MS);
    struct wish w;
    int64_t end_ms = gate_now_ms() + GATE_PATIENT_MS; /* until the cluster is complete */
    do {
        wish_seats(&w, 1, 2);
        wish_area(&w, 1, 1);
    } while (gate_claim(g, token_of(1), &w.c, 1, NULL) != HF_DONE && gate_now_ms() < end_ms);
    assert_true(wish_granted(g, token_of(1), &w));
    struct gate_seat seats[3] = {{EVENT, 1, 5, 9000}, {EVENT, 2, 5, 9000}, {EVENT + 1, 1, 6, 9000}};
    assert_int_equal(gate_settle(g, token_of(1), seats, 3, NULL, 0, NULL), HF_DONE);
    gate_close(g);
    redis_server_stop(&s);
}

/* ---- scanning ---- */

static void a_scan_visits_holds_and_counts_but_no_claims(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    struct wish w;
    struct seen s = scan_all(g);
    assert_int_equal(s.seats + s.counts + s.strange, 0);
    wish_seats(&w, 1, 2, 3);
    assert_true(wish_granted(g, token_of(1), &w));
    settle_one(g, token_of(1), (struct gate_seat){INT64_MAX, 4294967295, INT64_C(1) << 62, 60000});
    settle_count(g, (struct gate_count){
                        .event = EVENT, .area = 1, .seq = 4, .available = 20, .ttl_ms = 60000});
    s = scan_all(g);
    assert_int_equal(s.seats, 1);
    assert_int_equal(s.holds, INT64_C(1) << 62);
    assert_int_equal(s.event, INT64_MAX);
    assert_int_equal(s.seat, 4294967295);
    assert_ttl_left(s.ttl_ms, 60000, __FILE__, __LINE__);
    assert_int_equal(s.counts, 1);
    assert_int_equal(s.available, 20);
    assert_int_equal(s.count_event, EVENT);
    assert_int_equal(s.area, 1);
    assert_int_equal(s.seq, 4);
    assert_int_equal(s.strange, 0);
    gate_close(g);
}

static void a_scan_finds_every_hold_among_many_keys(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    enum { N = 5000 };
    struct gate_seat *seats = hf_alloc(N * sizeof *seats);
    for (int i = 0; i < N; i++)
        seats[i] = (struct gate_seat){EVENT, (uint32_t)i, 1 + i, 60000};
    freeReplyObject(
        beside_ask("EVAL|for i = 1, 5000 do redis.call('SET', 'other:' .. i, 1) end|0"));
    assert_int_equal(gate_settle(g, token_of(1), seats, N, NULL, 0, NULL), HF_DONE);
    struct seen s = scan_all(g);
    assert_int_equal(s.seats, N); /* entries that do not change are visited once */
    assert_int_equal(s.holds, (int64_t)N * (N + 1) / 2);
    free(seats);
    gate_close(g);
}

static void strange_keys_are_visited_and_dropped_and_foreign_keys_are_not(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    static const char *const theirs[] = {"seat:{x}:1",
                                         "seat:{7}:",
                                         "seat:{7}:1:a",
                                         "seat:{07}:1",
                                         "seat:{7}:4294967296",
                                         "seat:{7}:1 ",
                                         "seat:7:1",
                                         "seats:{7}:1",
                                         "area:{}:1",
                                         "area:{7}:x",
                                         "seat:{9223372036854775808}:1",
                                         "aeea:{7}:1",
                                         "holdfast:{seat}:lock"};
    static const char *const ours[] = {"seat:{7}:1", "seat:{7}:2", "seat:{7}:3", "seat:{7}:4",
                                       "area:{7}:1", "area:{7}:2", "area:{7}:3", "seat:{7}:5"};
    static const char *const values[] = {
        "rubbish", "9223372036854775808", "c:zz", "12", "4", "4 x", "5 5", CLAIM_OF_1};
    enum { N_THEIRS = sizeof theirs / sizeof *theirs, N_OURS = sizeof ours / sizeof *ours };
    for (size_t i = 0; i < N_THEIRS; i++)
        freeReplyObject(beside_ask("SET|%s|rubbish|PX|90000", theirs[i]));
    /* two of them are readable but have no end, which ours always have; a claim is not visited */
    for (size_t i = 0; i < N_OURS; i++)
        freeReplyObject(i == 3 || i >= 6 ? beside_ask("SET|%s|%s", ours[i], values[i])
                                         : beside_ask("SET|%s|%s|PX|90000", ours[i], values[i]));
    freeReplyObject(beside_ask("RPUSH|seat:{7}:100|a"));
    freeReplyObject(beside_ask("PEXPIRE|seat:{7}:100|90000"));
    settle_one(g, token_of(1), (struct gate_seat){EVENT, 200, 77, 60000});
    struct seen s = scan_all(g);
    assert_int_equal(s.strange, N_OURS + 1);
    assert_int_equal(s.seats, 1);
    assert_int_equal(s.counts, 0);
    assert_int_equal(gate_drop(g, (const char *const *)s.keys.v, s.lens.v, s.keys.n, NULL),
                     HF_DONE);
    assert_int_equal(beside_keys(), N_THEIRS + 1);
    seen_close(&s);
    s = scan_all(g);
    assert_int_equal(s.strange, 0);
    assert_int_equal(s.seats, 1);
    gate_close(g);
}

static void many_keys_are_dropped_at_once(void **state)
{
    (void)state;
    struct gate *g = gate_here();
    freeReplyObject(
        beside_ask("EVAL|for i = 1, 350 do redis.call('SET', 'seat:{7}:' .. i, 'x') end|0"));
    struct seen s = scan_all(g);
    assert_int_equal(s.strange, 350);
    assert_int_equal(gate_drop(g, (const char *const *)s.keys.v, s.lens.v, s.keys.n, NULL),
                     HF_DONE);
    assert_int_equal(beside_keys(), 0);
    assert_int_equal(gate_drop(g, NULL, NULL, 0, NULL), HF_DONE);
    seen_close(&s);
    gate_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        gate_test(a_claim_belongs_to_its_token_for_five_seconds),
        gate_test(a_refused_claim_keeps_nothing_and_names_the_taken_seats_in_order),
        gate_test(a_token_is_granted_again_what_it_has),
        gate_test(an_area_refuses_more_than_is_left),
        gate_test(garbage_and_other_types_refuse_nobody),
        gate_test(a_hold_replaces_a_claim_an_older_hold_or_nothing),
        gate_test(an_older_hold_never_replaces_nor_frees_a_newer_one),
        gate_test(a_seat_that_is_free_again_is_deleted),
        gate_test(a_seat_of_no_hold_gives_back_the_tokens_claim_and_nothing_else),
        gate_test(a_seat_settled_twice_in_one_call_ends_as_in_two_calls),
        gate_test(a_count_replaces_one_of_an_earlier_seq),
        gate_test(a_large_settlement_is_done_in_scripts_of_a_hundred),
        gate_test(an_events_keys_are_in_one_slot_and_a_cluster_takes_them),
        gate_test(a_scan_visits_holds_and_counts_but_no_claims),
        gate_test(a_scan_finds_every_hold_among_many_keys),
        gate_test(strange_keys_are_visited_and_dropped_and_foreign_keys_are_not),
        gate_test(many_keys_are_dropped_at_once),
    };
    return gate_tests_run("test_gate", tests, sizeof tests / sizeof *tests);
}
