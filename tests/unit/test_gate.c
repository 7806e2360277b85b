/* The gate beside a real redis-server: what gate.h says, sentence by sentence, and what happens
 * when the server lacks the scripts, forgets, restarts, hangs or has been written to by others. */
#include "unit/support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease/gate.h"
#include "lease/redis_link.h"
#include "support/redis_server.h"

#define SEATS_MAX 64
#define AREAS_MAX 4
#define EVENT 7

static struct redis_server server;

static struct gate *open_at(const char *url, int64_t timeout_ms)
{
    struct gate *g = NULL;
    struct hf_fault fault = {0};
    if (gate_open(url, &clock_system, timeout_ms, &g, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return g;
}

static struct gate *open_here(void) { return open_at(server.url, 2000); }

static int64_t now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

/* One wish, with room for its answer. */
struct wish {
    struct gate_claim c;
    uint32_t seats[SEATS_MAX], taken[SEATS_MAX];
    struct gate_area areas[AREAS_MAX];
};

static void wish_init(struct wish *w, int64_t event)
{
    *w = (struct wish){.c = {.event = event}};
    w->c.seats = w->seats;
    w->c.taken = w->taken;
    w->c.areas = w->areas;
}

static void wish_n(struct wish *w, int64_t event, const uint32_t *seats, uint32_t n)
{
    wish_init(w, event);
    memcpy(w->seats, seats, n * sizeof *seats);
    w->c.n_seats = n;
}
#define wish_seats(w, ...)                                                                         \
    wish_n((w), EVENT, (const uint32_t[]){__VA_ARGS__},                                            \
           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void wish_area(struct wish *w, uint32_t area, uint32_t quantity)
{
    w->areas[w->c.n_areas++] = (struct gate_area){area, quantity};
}

/* Tokens that can be told apart. */
static const uint8_t *token(uint8_t n)
{
    static uint8_t all[256][GATE_TOKEN_SIZE];
    memset(all[n], n, GATE_TOKEN_SIZE);
    return all[n];
}

static bool granted(struct gate *g, const uint8_t *who, struct wish *w)
{
    struct hf_fault fault = {0};
    if (gate_claim(g, who, &w->c, 1, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return gate_claim_granted(&w->c);
}

static void settle(struct gate *g, const uint8_t *who, struct gate_seat seat)
{
    struct hf_fault fault = {0};
    if (gate_settle(g, who, &seat, 1, NULL, 0, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
}

static void put_count(struct gate *g, struct gate_count count)
{
    struct hf_fault fault = {0};
    if (gate_settle(g, token(0), NULL, 0, &count, 1, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
}

/* ---- what the server has, asked beside the gate ---- */

static struct redis_link beside;

__attribute__((format(printf, 1, 2))) static redisReply *ask(const char *fmt, ...)
{
    char line[512];
    struct redis_arg args[16];
    size_t n = 0;
    redisReply *reply;
    struct hf_fault fault = {0};
    va_list list;
    va_start(list, fmt);
    vsnprintf(line, sizeof line, fmt, list);
    va_end(list);
    char *rest = line;
    for (char *word; n < 16 && (word = strsep(&rest, "|")) != NULL;)
        args[n++] = (struct redis_arg){word, strlen(word)};
    redis_put(&beside, args, n);
    if (redis_exchange(&beside, &reply, &fault) != HF_DONE)
        fail_msg("%s: %s", line, fault.msg);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", line, reply->str);
    return reply;
}

static int64_t ask_number(const char *what, const char *key)
{
    redisReply *reply = ask("%s|%s", what, key);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    int64_t n = reply->integer;
    freeReplyObject(reply);
    return n;
}

static int64_t n_keys(void)
{
    redisReply *reply = ask("DBSIZE");
    int64_t n = reply->integer;
    freeReplyObject(reply);
    return n;
}

/* "": no such key. */
static const char *get(const char *key)
{
    static char value[128];
    redisReply *reply = ask("GET|%s", key);
    snprintf(value, sizeof value, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
    return value;
}

static void set(const char *key, const char *value)
{
    freeReplyObject(ask("SET|%s|%s", key, value));
}

static int64_t pttl(const char *key) { return ask_number("PTTL", key); }

static int flush(void **state)
{
    (void)state;
    freeReplyObject(ask("FLUSHALL"));
    return 0;
}

#define CLAIM_OF_1 "c:01010101010101010101010101010101"

/* ---- claims ---- */

static void a_claim_is_the_tokens_for_five_seconds(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    wish_seats(&w, 3, 4294967295);
    assert_true(granted(g, token(1), &w));
    assert_string_equal(get("seat:{7}:3"), CLAIM_OF_1);
    assert_string_equal(get("seat:{7}:4294967295"), CLAIM_OF_1);
    assert_in_range(pttl("seat:{7}:3"), GATE_CLAIM_MS - 1000, GATE_CLAIM_MS);
    assert_int_equal(n_keys(), 2);
    gate_close(g);
}

static void of_a_refused_claim_nothing_is_kept_and_the_taken_are_named_in_order(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish first, second;
    wish_seats(&first, 1, 3, 5);
    assert_true(granted(g, token(1), &first));
    wish_seats(&second, 5, 2, 4, 3);
    assert_false(granted(g, token(2), &second));
    assert_int_equal(second.c.n_taken, 2);
    assert_int_equal(second.taken[0], 5);
    assert_int_equal(second.taken[1], 3);
    assert_int_equal(second.c.short_area, -1);
    assert_int_equal(n_keys(), 3);
    wish_n(&second, EVENT + 1, (const uint32_t[]){1, 3, 5}, 3); /* another event's are others */
    assert_true(granted(g, token(2), &second));
    gate_close(g);
}

static void a_token_is_granted_again_what_it_has_and_anew(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    wish_seats(&w, 1, 2);
    assert_true(granted(g, token(1), &w));
    freeReplyObject(ask("PEXPIRE|seat:{7}:1|1000"));
    wish_seats(&w, 1, 9);
    assert_true(granted(g, token(1), &w));
    assert_in_range(pttl("seat:{7}:1"), GATE_CLAIM_MS - 1000, GATE_CLAIM_MS);
    /* refused, it keeps what it had before and no more */
    wish_seats(&w, 20);
    assert_true(granted(g, token(2), &w));
    wish_seats(&w, 1, 20, 21);
    assert_false(granted(g, token(1), &w));
    assert_int_equal(w.c.n_taken, 1);
    assert_string_equal(get("seat:{7}:1"), CLAIM_OF_1);
    assert_string_equal(get("seat:{7}:21"), "");
    gate_close(g);
}

static void an_area_refuses_who_wants_more_than_is_left(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    put_count(g, (struct gate_count){
                     .event = EVENT, .area = 0, .seq = 5, .available = 3, .ttl_ms = 60000});
    put_count(g, (struct gate_count){
                     .event = EVENT, .area = 2, .seq = 5, .available = 0, .ttl_ms = 60000});
    wish_seats(&w, 1);
    wish_area(&w, 0, 3);
    assert_true(granted(g, token(1), &w));
    wish_seats(&w, 2);
    wish_area(&w, 1, 1000); /* no count: no opinion */
    wish_area(&w, 0, 4);
    wish_area(&w, 2, 1);
    assert_false(granted(g, token(1), &w));
    assert_int_equal(w.c.n_taken, 0);
    assert_int_equal(w.c.short_area, 0);
    assert_int_equal(w.c.available, 3);
    assert_string_equal(get("seat:{7}:2"), "");
    wish_seats(&w, 1);
    wish_area(&w, 2, 1);
    assert_false(granted(g, token(2), &w)); /* both are told */
    assert_int_equal(w.c.n_taken, 1);
    assert_int_equal(w.c.short_area, 2);
    assert_int_equal(w.c.available, 0);
    assert_string_equal(get("area:{7}:0"), "5 3"); /* never counted down */
    wish_init(&w, EVENT);
    assert_true(granted(g, token(1), &w)); /* nothing asked */
    gate_close(g);
}

static void garbage_and_other_types_stand_in_nobodys_way(void **state)
{
    (void)state;
    struct gate *g = open_here();
    static const char *const rubbish[] = {
        "hello", "", "c:", "c:xyz", "007", "-5", "1.5", "12345678901234567890", " 1"};
    struct wish w;
    freeReplyObject(ask("RPUSH|seat:{7}:1|a"));
    freeReplyObject(ask("HSET|area:{7}:1|a|b"));
    wish_seats(&w, 1);
    wish_area(&w, 1, 5);
    assert_true(granted(g, token(1), &w));
    assert_string_equal(get("seat:{7}:1"), CLAIM_OF_1);
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        set("seat:{7}:2", rubbish[i]);
        set("area:{7}:2", rubbish[i]);
        wish_seats(&w, 2);
        wish_area(&w, 2, 5);
        if (!granted(g, token(1), &w))
            fail_msg("\"%s\" stands in the way", rubbish[i]);
        assert_string_equal(get("seat:{7}:2"), CLAIM_OF_1);
    }
    static const char *const counts[] = {"1", "1 ", " 0", "x 0", "1 0 ", "01 0", "1  0", "1.5 0"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        set("area:{7}:2", counts[i]);
        wish_init(&w, EVENT);
        wish_area(&w, 2, 5);
        if (!granted(g, token(1), &w))
            fail_msg("\"%s\" stands in the way", counts[i]);
    }
    gate_close(g);
}

/* ---- settling ---- */

static void a_hold_replaces_a_claim_an_older_hold_or_nothing(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct gate_seat seat = {.event = EVENT, .seat = 1, .hold = 100, .ttl_ms = 60000};
    struct wish w;
    settle(g, token(1), seat);
    assert_string_equal(get("seat:{7}:1"), "100");
    assert_in_range(pttl("seat:{7}:1"), 59000, 60000);
    wish_seats(&w, 1);
    assert_false(granted(g, token(1), &w)); /* a hold is in every token's way */
    seat.hold = 101;
    seat.ttl_ms = 30000;
    settle(g, token(2), seat);
    assert_string_equal(get("seat:{7}:1"), "101");
    assert_in_range(pttl("seat:{7}:1"), 29000, 30000);
    seat.ttl_ms = 90000; /* renewed */
    settle(g, token(2), seat);
    assert_in_range(pttl("seat:{7}:1"), 89000, 90000);
    wish_seats(&w, 2);
    assert_true(granted(g, token(1), &w));
    seat.seat = 2;
    settle(g, token(2), seat); /* another token's claim too */
    assert_string_equal(get("seat:{7}:2"), "101");
    set("seat:{7}:3", "rubbish");
    freeReplyObject(ask("RPUSH|seat:{7}:4|a"));
    seat.seat = 3;
    settle(g, token(1), seat);
    seat.seat = 4;
    seat.ttl_ms = INT64_MAX;
    settle(g, token(1), seat);
    assert_string_equal(get("seat:{7}:3"), "101");
    assert_string_equal(get("seat:{7}:4"), "101");
    assert_true(pttl("seat:{7}:4") > 0);
    gate_close(g);
}

static void an_older_hold_never_replaces_nor_frees_a_newer_one(void **state)
{
    (void)state;
    struct gate *g = open_here();
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
        settle(g, token(1), older);
        settle(g, token(1), newer);
        assert_string_equal(get("seat:{7}:1"), text);
        settle(g, token(1), older);
        assert_string_equal(get("seat:{7}:1"), text);
        assert_in_range(pttl("seat:{7}:1"), 58000, 60000);
        older.ttl_ms = 0;
        settle(g, token(1), older);
        assert_string_equal(get("seat:{7}:1"), text);
        older.ttl_ms = 9000;
        flush(NULL);
    }
    gate_close(g);
}

static void a_seat_that_is_free_again_is_deleted(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct gate_seat ends = {.event = EVENT, .seat = 1, .hold = 50};
    set("seat:{7}:1", "50");
    settle(g, token(1), ends);
    assert_int_equal(n_keys(), 0);
    set("seat:{7}:1", "9"); /* an older one's */
    ends.ttl_ms = -20;      /* over before it was told */
    settle(g, token(1), ends);
    assert_int_equal(n_keys(), 0);
    set("seat:{7}:1", CLAIM_OF_1);
    settle(g, token(2), ends); /* another's claim stays */
    assert_string_equal(get("seat:{7}:1"), CLAIM_OF_1);
    settle(g, token(1), ends);
    assert_int_equal(n_keys(), 0);
    settle(g, token(1), ends); /* nothing there */
    gate_close(g);
}

static void nobodys_seat_gives_back_the_tokens_claim_and_nothing_else(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct gate_seat none = {.event = EVENT, .seat = 1, .hold = 0};
    set("seat:{7}:1", CLAIM_OF_1);
    settle(g, token(2), none);
    assert_string_equal(get("seat:{7}:1"), CLAIM_OF_1);
    settle(g, token(1), none);
    assert_int_equal(n_keys(), 0);
    set("seat:{7}:1", "1");
    settle(g, token(1), none);
    none.ttl_ms = 5000;
    settle(g, token(1), none);
    assert_string_equal(get("seat:{7}:1"), "1");
    gate_close(g);
}

/* A batch may end one hold of a seat and grant the next, and tell it in any order. */
static void a_seat_told_twice_ends_as_if_told_in_two_calls(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct gate_seat both[2] = {{.event = EVENT, .seat = 1, .hold = 11, .ttl_ms = 60000},
                                {.event = EVENT, .seat = 1, .hold = 10, .ttl_ms = 0}};
    for (int turn = 0; turn < 2; turn++) {
        set("seat:{7}:1", CLAIM_OF_1);
        assert_int_equal(gate_settle(g, token(1), both, 2, NULL, 0, NULL), HF_DONE);
        assert_string_equal(get("seat:{7}:1"), "11");
        struct gate_seat swap = both[0];
        both[0] = both[1];
        both[1] = swap;
    }
    both[0] = (struct gate_seat){.event = EVENT, .seat = 1, .hold = 12, .ttl_ms = 60000};
    both[1] = (struct gate_seat){.event = EVENT, .seat = 1, .hold = 12, .ttl_ms = 0};
    assert_int_equal(gate_settle(g, token(1), both, 2, NULL, 0, NULL), HF_DONE);
    assert_int_equal(n_keys(), 0);
    gate_close(g);
}

static void a_count_replaces_one_of_an_earlier_seq(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct gate_count c = {.event = EVENT, .area = 3, .seq = 9, .available = 100, .ttl_ms = 40000};
    put_count(g, c);
    assert_string_equal(get("area:{7}:3"), "9 100");
    assert_in_range(pttl("area:{7}:3"), 39000, 40000);
    c.seq = (INT64_C(1) << 53) + 1;
    c.available = 7;
    put_count(g, c);
    assert_string_equal(get("area:{7}:3"), "9007199254740993 7");
    c.seq--;
    c.available = 8;
    put_count(g, c);
    assert_string_equal(get("area:{7}:3"), "9007199254740993 7");
    set("area:{7}:3", "rubbish");
    put_count(g, c);
    assert_string_equal(get("area:{7}:3"), "9007199254740992 8");
    struct gate_count two[2] = {c, c}; /* the later one, whatever the order */
    two[0].seq += 2;
    two[0].available = 55;
    two[1].seq += 1;
    assert_int_equal(gate_settle(g, token(1), NULL, 0, two, 2, NULL), HF_DONE);
    assert_string_equal(get("area:{7}:3"), "9007199254740994 55");
    gate_close(g);
}

static void a_large_settlement_is_done_whole_in_scripts_of_a_hundred(void **state)
{
    (void)state;
    struct gate *g = open_here();
    enum { N = 1050, COUNTS = 210 };
    struct gate_seat *seats = hf_alloc(N * sizeof *seats);
    struct gate_count *counts = hf_alloc(COUNTS * sizeof *counts);
    for (int i = 0; i < N; i++)
        seats[i] = (struct gate_seat){1 + i / 350, (uint32_t)i, 1000 + i, 60000};
    for (int i = 0; i < COUNTS; i++)
        counts[i] = (struct gate_count){
            .event = 1 + i / 70, .seq = 1, .available = 2, .ttl_ms = 60000, .area = (uint32_t)i};
    gate_ping(g, NULL);
    int64_t before = redis_server_calls(&server, "evalsha") + redis_server_calls(&server, "eval");
    assert_int_equal(gate_settle(g, token(1), seats, N, counts, COUNTS, NULL), HF_DONE);
    assert_int_equal(n_keys(), N + COUNTS);
    assert_string_equal(get("seat:{3}:1049"), "2049");
    assert_string_equal(get("area:{3}:209"), "1 2");
    int64_t after = redis_server_calls(&server, "evalsha") + redis_server_calls(&server, "eval");
    assert_in_range(after - before, 3 * 4 + 3, 2 * (3 * 4 + 3)); /* unknown ones count twice */
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
    struct gate *g = open_at(s.url, 2000);
    struct wish w;
    int64_t end_ms = now_ms() + 10000; /* until it believes that it is whole */
    do {
        wish_seats(&w, 1, 2);
        wish_area(&w, 1, 1);
    } while (gate_claim(g, token(1), &w.c, 1, NULL) != HF_DONE && now_ms() < end_ms);
    assert_true(granted(g, token(1), &w));
    struct gate_seat seats[3] = {{EVENT, 1, 5, 9000}, {EVENT, 2, 5, 9000}, {EVENT + 1, 1, 6, 9000}};
    assert_int_equal(gate_settle(g, token(1), seats, 3, NULL, 0, NULL), HF_DONE);
    gate_close(g);
    redis_server_stop(&s);
}

/* ---- looking ---- */

struct seen {
    int seats, counts, strange;
    int64_t holds, available; /* sums */
    int64_t event, ttl_ms;    /* of the last seat */
    uint32_t seat;
    VEC(char *) keys;
    VEC(size_t) lens;
};

static void see_seat(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms)
{
    struct seen *s = ctx;
    s->seats++;
    s->holds += hold;
    s->event = event;
    s->seat = seat;
    s->ttl_ms = ttl_ms;
}

static void see_count(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available)
{
    struct seen *s = ctx;
    s->counts++;
    s->available += available;
    assert_int_equal(event, EVENT);
    assert_int_equal(area, 1);
    assert_int_equal(seq, 4);
}

static void see_strange(void *ctx, const char *key, size_t len)
{
    struct seen *s = ctx;
    s->strange++;
    *vec_push(&s->keys) = hf_strndup(key, len);
    *vec_push(&s->lens) = len;
}

static void seen_close(struct seen *s)
{
    for (size_t i = 0; i < s->keys.n; i++)
        free(s->keys.v[i]);
    vec_close(&s->keys);
    vec_close(&s->lens);
}

static struct seen look(struct gate *g)
{
    struct seen s = {0};
    struct hf_fault fault = {0};
    struct gate_sight sight = {&s, see_seat, see_count, see_strange};
    if (gate_look(g, &sight, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return s;
}

static void a_look_tells_holds_and_counts_but_no_claims(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    struct seen s = look(g);
    assert_int_equal(s.seats + s.counts + s.strange, 0);
    wish_seats(&w, 1, 2, 3);
    assert_true(granted(g, token(1), &w));
    settle(g, token(1), (struct gate_seat){INT64_MAX, 4294967295, INT64_C(1) << 62, 60000});
    put_count(g, (struct gate_count){
                     .event = EVENT, .area = 1, .seq = 4, .available = 20, .ttl_ms = 60000});
    s = look(g);
    assert_int_equal(s.seats, 1);
    assert_int_equal(s.holds, INT64_C(1) << 62);
    assert_int_equal(s.event, INT64_MAX);
    assert_int_equal(s.seat, 4294967295);
    assert_in_range(s.ttl_ms, 59000, 60000);
    assert_int_equal(s.counts, 1);
    assert_int_equal(s.available, 20);
    assert_int_equal(s.strange, 0);
    gate_close(g);
}

static void a_look_finds_every_hold_among_many_keys(void **state)
{
    (void)state;
    struct gate *g = open_here();
    enum { N = 5000 };
    struct gate_seat *seats = hf_alloc(N * sizeof *seats);
    for (int i = 0; i < N; i++)
        seats[i] = (struct gate_seat){EVENT, (uint32_t)i, 1 + i, 60000};
    freeReplyObject(ask("EVAL|for i = 1, 5000 do redis.call('SET', 'other:' .. i, 1) end|0"));
    assert_int_equal(gate_settle(g, token(1), seats, N, NULL, 0, NULL), HF_DONE);
    struct seen s = look(g);
    assert_int_equal(s.seats, N); /* a table that stands still is told once */
    assert_int_equal(s.holds, (int64_t)N * (N + 1) / 2);
    free(seats);
    gate_close(g);
}

static void what_is_strange_is_told_and_dropped_and_others_keys_are_not(void **state)
{
    (void)state;
    struct gate *g = open_here();
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
        freeReplyObject(ask("SET|%s|rubbish|PX|90000", theirs[i]));
    /* two that would be readable never end: no one of us wrote them so, and a claim is not told */
    for (size_t i = 0; i < N_OURS; i++)
        freeReplyObject(i == 3 || i >= 6 ? ask("SET|%s|%s", ours[i], values[i])
                                         : ask("SET|%s|%s|PX|90000", ours[i], values[i]));
    freeReplyObject(ask("RPUSH|seat:{7}:100|a"));
    freeReplyObject(ask("PEXPIRE|seat:{7}:100|90000"));
    settle(g, token(1), (struct gate_seat){EVENT, 200, 77, 60000});
    struct seen s = look(g);
    assert_int_equal(s.strange, N_OURS + 1);
    assert_int_equal(s.seats, 1);
    assert_int_equal(s.counts, 0);
    assert_int_equal(gate_drop(g, (const char *const *)s.keys.v, s.lens.v, s.keys.n, NULL),
                     HF_DONE);
    assert_int_equal(n_keys(), N_THEIRS + 1);
    seen_close(&s);
    s = look(g);
    assert_int_equal(s.strange, 0);
    assert_int_equal(s.seats, 1);
    gate_close(g);
}

static void many_keys_are_dropped_at_once(void **state)
{
    (void)state;
    struct gate *g = open_here();
    freeReplyObject(ask("EVAL|for i = 1, 350 do redis.call('SET', 'seat:{7}:' .. i, 'x') end|0"));
    struct seen s = look(g);
    assert_int_equal(s.strange, 350);
    assert_int_equal(gate_drop(g, (const char *const *)s.keys.v, s.lens.v, s.keys.n, NULL),
                     HF_DONE);
    assert_int_equal(n_keys(), 0);
    assert_int_equal(gate_drop(g, NULL, NULL, 0, NULL), HF_DONE);
    seen_close(&s);
    gate_close(g);
}

/* ---- trouble ---- */

static void a_flush_between_claim_and_settle_is_no_matter(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    wish_seats(&w, 1);
    assert_true(granted(g, token(1), &w));
    flush(NULL);
    settle(g, token(1), (struct gate_seat){EVENT, 1, 5, 60000});
    assert_string_equal(get("seat:{7}:1"), "5");
    flush(NULL);
    settle(g, token(1), (struct gate_seat){EVENT, 1, 5, 0});
    assert_true(granted(g, token(2), &w));
    gate_close(g);
}

static void lost_scripts_are_sent_again_each_of_a_mixed_call(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    wish_seats(&w, 1);
    assert_true(granted(g, token(1), &w));
    freeReplyObject(ask("SCRIPT|FLUSH"));
    assert_true(granted(g, token(1), &w));
    struct gate_seat seats[2] = {{EVENT, 1, 5, 60000}, {EVENT + 1, 1, 6, 60000}};
    struct gate_count count = {
        .event = EVENT, .area = 1, .seq = 4, .available = 20, .ttl_ms = 60000};
    freeReplyObject(ask("SCRIPT|FLUSH"));
    assert_int_equal(gate_settle(g, token(1), seats, 2, &count, 1, NULL), HF_DONE);
    assert_string_equal(get("seat:{8}:1"), "6");
    assert_string_equal(get("area:{7}:1"), "4 20");
    freeReplyObject(ask("SCRIPT|FLUSH"));
    struct seen s = look(g);
    assert_int_equal(s.seats, 2);
    gate_close(g);
}

static void a_restart_is_survived_and_a_failure_reads_as_granted(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    struct hf_fault fault = {0};
    wish_seats(&w, 1);
    assert_true(granted(g, token(1), &w));
    assert_false(granted(g, token(2), &w));
    redis_server_kill(&server);
    enum hf_result result = gate_claim(g, token(2), &w.c, 1, &fault);
    assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN);
    assert_int_equal(fault.result, result);
    assert_true(gate_claim_granted(&w.c));
    assert_int_equal(gate_claim(g, token(2), &w.c, 1, &fault), HF_UNREACHABLE);
    assert_int_equal(gate_ping(g, &fault), HF_UNREACHABLE);
    assert_int_equal(
        gate_settle(g, token(1), &(struct gate_seat){EVENT, 1, 5, 0}, 1, NULL, 0, &fault),
        HF_UNREACHABLE);
    struct seen s = {0};
    assert_int_equal(
        gate_look(g, &(struct gate_sight){&s, see_seat, see_count, see_strange}, &fault),
        HF_UNREACHABLE);
    assert_int_equal(gate_drop(g, &(const char *){"k"}, &(size_t){1}, 1, NULL), HF_UNREACHABLE);
    redis_server_again(&server);
    redis_link_close(&beside);
    assert_int_equal(gate_ping(g, NULL), HF_DONE);
    assert_true(granted(g, token(2), &w)); /* it has forgotten */
    gate_close(g);
}

static void a_server_that_hangs_costs_the_timeout_and_no_more(void **state)
{
    (void)state;
    struct gate *g = open_at(server.url, 200);
    enum { N = 1000 };
    struct wish w, *many = hf_alloc(N * sizeof *many);
    wish_seats(&w, 1);
    assert_true(granted(g, token(1), &w));
    kill(server.pid, SIGSTOP);
    int64_t begin_ms = now_ms();
    enum hf_result result = gate_claim(g, token(1), &w.c, 1, NULL);
    int64_t took_ms = now_ms() - begin_ms;
    begin_ms = now_ms();
    enum hf_result again = gate_settle(g, token(1), &(struct gate_seat){EVENT, 1, 5, 9}, 1, NULL, 0,
                                       NULL); /* it has to connect now */
    int64_t again_ms = now_ms() - begin_ms;
    kill(server.pid, SIGCONT);
    assert_int_equal(result, HF_UNKNOWN);
    assert_in_range(took_ms, 190, 300);
    assert_int_equal(again, HF_UNREACHABLE);
    assert_in_range(again_ms, 190, 300);
    assert_true(granted(g, token(1), &w));
    free(many);
    gate_close(g);
}

static void a_black_hole_costs_the_timeout_and_no_more(void **state)
{
    (void)state;
    int hole;
    char url[64];
    struct hf_fault fault = {0};
    struct wish w;
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", redis_server_port(&hole));
    struct gate *g = open_at(url, 0);
    wish_seats(&w, 1);
    int64_t begin_ms = now_ms();
    assert_int_equal(gate_claim(g, token(1), &w.c, 1, &fault), HF_UNREACHABLE);
    assert_in_range(now_ms() - begin_ms, GATE_TIMEOUT_MS - 10, GATE_TIMEOUT_MS + 100);
    assert_non_null(strstr(fault.msg, "no answer within 250 ms"));
    assert_null(strstr(fault.msg, "s3cret"));
    close(hole);
    gate_close(g);
}

static void a_server_that_closes_the_link_raises_no_signal(void **state)
{
    (void)state;
    struct gate *g = open_here();
    struct wish w;
    wish_seats(&w, 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(gate_ping(g, NULL), HF_DONE);
        freeReplyObject(ask("CLIENT|KILL|TYPE|normal|SKIPME|yes"));
        gate_claim(g, token(1), &w.c, 1, NULL); /* a SIGPIPE would end the test */
        assert_true(granted(g, token(1), &w));
    }
    gate_close(g);
}

static void wrong_urls_and_passwords_are_told_without_the_password(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "redis://", "redis://s3cret@h",   "redis://:s3cret%@h", "http://:s3cret@h", "",
        "unix:",    "redis://:s3cret@h:x"};
    struct hf_fault fault;
    struct gate *g = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fault = (struct hf_fault){0};
        if (gate_open(bad[i], &clock_system, 0, &g, &fault) != HF_BAD_REQUEST)
            fail_msg("%s", bad[i]);
        assert_null(g);
        assert_int_equal(fault.result, HF_BAD_REQUEST);
        assert_non_null(strstr(fault.msg, "the Redis URL"));
        assert_null(strstr(fault.msg, "s3cret"));
    }
    gate_close(NULL);
    struct redis_server locked = {.password = "right"};
    assert_true(redis_server_start(&locked));
    char url[128];
    snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", locked.port);
    g = open_at(url, 2000);
    assert_int_equal(gate_ping(g, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "wrong user or password"));
    assert_null(strstr(fault.msg, "s3cret"));
    gate_close(g);
    snprintf(url, sizeof url, "redis://:right@127.0.0.1:%d/2", locked.port);
    g = open_at(url, 2000);
    assert_int_equal(gate_ping(g, NULL), HF_DONE);
    gate_close(g);
    redis_server_stop(&locked);
}

/* What docs/operations.md says an ACL needs, and no more. */
#define ACL_COMMANDS "+ping +select +evalsha +eval +mget +set +del +pttl +scan +unlink"

static void the_documented_rights_are_enough_and_each_is_needed(void **state)
{
    (void)state;
    struct redis_server s = {0};
    char url[96], command[256], answer[256];
    static const char *const each[] = {"evalsha", "eval", "mget", "set",
                                       "del",     "pttl", "scan", "unlink"};
    assert_true(redis_server_start(&s));
    snprintf(url, sizeof url, "redis://gate:s3cret@127.0.0.1:%d", s.port);
    for (size_t i = 0; i <= sizeof each / sizeof *each; i++) {
        bool all = i == sizeof each / sizeof *each;
        snprintf(command, sizeof command,
                 "ACL SETUSER gate reset on >s3cret ~seat:* ~area:* " ACL_COMMANDS "%s%s",
                 all ? "" : " -", all ? "" : each[i]);
        redis_server_ask(&s, command, answer, sizeof answer);
        assert_string_equal(answer, "+OK\r\n");
        redis_server_ask(&s, "SCRIPT FLUSH", answer, sizeof answer);
        redis_server_ask(&s, "FLUSHALL", answer, sizeof answer);
        redis_server_ask(&s, "SET seat:{7}:9 x", answer, sizeof answer);
        struct gate *g = open_at(url, 2000);
        struct seen seen = {0};
        struct gate_sight sight = {&seen, see_seat, see_count, see_strange};
        struct wish w;
        struct hf_fault fault = {0};
        int failed = 0;
        wish_seats(&w, 1, 2);
        failed += gate_claim(g, token(1), &w.c, 1, &fault) != HF_DONE;
        struct gate_seat seats[2] = {{EVENT, 1, 5, 60000}, {EVENT, 2, 0, 0}};
        failed += gate_settle(g, token(1), seats, 2, NULL, 0, &fault) != HF_DONE;
        failed += gate_look(g, &sight, &fault) != HF_DONE;
        failed += gate_drop(g, &(const char *){"seat:{7}:9"}, &(size_t){10}, 1, &fault) != HF_DONE;
        if (all ? failed > 0 : failed == 0)
            fail_msg("without %s: %d failed, %s", all ? "none" : each[i], failed, fault.msg);
        assert_true(all || fault.result == HF_UNREACHABLE || fault.result == HF_UNKNOWN);
        seen_close(&seen);
        gate_close(g);
    }
    redis_server_stop(&s);
}

static void a_full_server_refuses_a_claim_whole(void **state)
{
    (void)state;
    struct redis_server s = {0};
    char answer[256];
    struct hf_fault fault = {0};
    struct wish w;
    assert_true(redis_server_start(&s));
    struct gate *g = open_at(s.url, 2000);
    redis_server_ask(&s, "CONFIG SET maxmemory 1", answer, sizeof answer);
    wish_seats(&w, 1, 2, 3);
    assert_int_not_equal(gate_claim(g, token(1), &w.c, 1, &fault), HF_DONE);
    assert_non_null(strstr(fault.msg, "OOM"));
    redis_server_ask(&s, "DBSIZE", answer, sizeof answer);
    assert_string_equal(answer, ":0\r\n");
    redis_server_ask(&s, "CONFIG SET maxmemory 0", answer, sizeof answer);
    assert_true(granted(g, token(1), &w));
    gate_close(g);
    redis_server_stop(&s);
}

static void a_socket_serves_as_well(void **state)
{
    (void)state;
    struct gate *g = open_at(server.unix_url, 2000);
    struct wish w;
    wish_seats(&w, 1);
    assert_true(granted(g, token(1), &w));
    assert_string_equal(get("seat:{7}:1"), CLAIM_OF_1);
    gate_close(g);
}

/* ---- many ---- */

static void a_thousand_claims_go_in_one_call(void **state)
{
    (void)state;
    struct gate *g = open_here();
    enum { N = 1000 };
    struct wish *many = hf_alloc(N * sizeof *many);
    struct gate_claim *claims = hf_alloc(N * sizeof *claims);
    struct wish w;
    wish_seats(&w, 500, 501);
    assert_true(granted(g, token(2), &w));
    for (uint32_t i = 0; i < N; i++) {
        wish_seats(&many[i], i, i + N);
        claims[i] = many[i].c;
    }
    assert_int_equal(gate_claim(g, token(1), claims, N, NULL), HF_DONE);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(gate_claim_granted(&claims[i]), i != 500 && i != 501);
    assert_int_equal(claims[500].taken[0], 500);
    assert_int_equal(n_keys(), 2 * N - 2);
    assert_int_equal(gate_claim(g, token(1), NULL, 0, NULL), HF_DONE);
    free(claims);
    free(many);
    gate_close(g);
}

/* Threads that want overlapping sets in random order.  `owner` is what they believe; with the gate
 * nobody ever finds a seat owned by another, and nothing is left when all are done. */
#define CROWD 16
#define CROWD_SEATS 40
#define CROWD_ROUNDS 150

struct crowd {
    bool naive; /* looks, then writes: the twin without the gate */
    _Atomic int owner[CROWD_SEATS];
    _Atomic int doubles, grants, refusals;
};
struct member {
    struct crowd *crowd;
    int number;
    pthread_t thread;
};

/* Free when it was looked at, and set then. */
static bool naive_claim(struct redis_link *k, const struct wish *w, int number)
{
    redisReply *replies[SEATS_MAX];
    char keys[SEATS_MAX][32], value[16];
    bool free_all = true;
    int len = snprintf(value, sizeof value, "%d", number);
    for (uint32_t i = 0; i < w->c.n_seats; i++) {
        int n = snprintf(keys[i], sizeof keys[i], "naive:%u", w->seats[i]);
        redis_put(k, (struct redis_arg[]){REDIS_ARG("GET"), {keys[i], (size_t)n}}, 2);
    }
    hf_check(redis_exchange(k, replies, NULL) == HF_DONE);
    for (uint32_t i = 0; i < w->c.n_seats; i++) {
        free_all = free_all && replies[i]->type == REDIS_REPLY_NIL;
        freeReplyObject(replies[i]);
    }
    if (!free_all)
        return false;
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        redis_put(k,
                  (struct redis_arg[]){
                      REDIS_ARG("SET"), {keys[i], strlen(keys[i])}, {value, (size_t)len}},
                  3);
    hf_check(redis_exchange(k, replies, NULL) == HF_DONE);
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        freeReplyObject(replies[i]);
    return true;
}

static void naive_free(struct redis_link *k, const struct wish *w)
{
    redisReply *replies[SEATS_MAX];
    char key[32];
    for (uint32_t i = 0; i < w->c.n_seats; i++) {
        int n = snprintf(key, sizeof key, "naive:%u", w->seats[i]);
        redis_put(k, (struct redis_arg[]){REDIS_ARG("DEL"), {key, (size_t)n}}, 2);
    }
    hf_check(redis_exchange(k, replies, NULL) == HF_DONE);
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        freeReplyObject(replies[i]);
}

static void give_back(struct gate *g, const uint8_t *who, const struct wish *w)
{
    struct gate_seat seats[SEATS_MAX];
    for (uint32_t i = 0; i < w->c.n_seats; i++)
        seats[i] = (struct gate_seat){.event = EVENT, .seat = w->seats[i]};
    hf_check(gate_settle(g, who, seats, w->c.n_seats, NULL, 0, NULL) == HF_DONE);
}

static void draw(struct random *random, struct wish *w)
{
    uint32_t seats[CROWD_SEATS];
    for (uint32_t i = 0; i < CROWD_SEATS; i++) {
        uint32_t at = (uint32_t)random_below(random, i + 1);
        seats[i] = seats[at];
        seats[at] = i;
    }
    wish_n(w, EVENT, seats, 1 + (uint32_t)random_below(random, 4));
}

static void *crowd_member(void *ctx)
{
    struct member *m = ctx;
    struct crowd *c = m->crowd;
    struct random random;
    struct redis_address address;
    struct redis_link link;
    struct gate *g = NULL;
    uint8_t who[GATE_TOKEN_SIZE];
    struct wish w;
    random_init_seeded(&random, test_seed(1) + (uint64_t)m->number);
    hf_check(redis_address_parse(server.url, &address, NULL) == HF_DONE);
    redis_link_init(&link, &address, &clock_system, 10000);
    hf_check(gate_open(server.url, &clock_system, 10000, &g, NULL) == HF_DONE);
    for (int round = 0; round < CROWD_ROUNDS; round++) {
        draw(&random, &w);
        random_bytes(&random, who, sizeof who);
        who[0] = (uint8_t)m->number;
        bool yes = c->naive
                       ? naive_claim(&link, &w, m->number)
                       : gate_claim(g, who, &w.c, 1, NULL) == HF_DONE && gate_claim_granted(&w.c);
        atomic_fetch_add(yes ? &c->grants : &c->refusals, 1);
        for (uint32_t i = 0; yes && i < w.c.n_seats; i++)
            if (atomic_exchange(&c->owner[w.seats[i]], m->number) != 0)
                atomic_fetch_add(&c->doubles, 1);
        for (uint32_t i = 0; yes && i < w.c.n_seats; i++)
            if (atomic_exchange(&c->owner[w.seats[i]], 0) != m->number)
                atomic_fetch_add(&c->doubles, 1);
        if (yes && c->naive)
            naive_free(&link, &w);
        else if (yes)
            give_back(g, who, &w);
    }
    gate_close(g);
    redis_link_close(&link);
    redis_address_close(&address);
    return NULL;
}

static void crowd_run(struct crowd *c)
{
    struct member members[CROWD];
    for (int i = 0; i < CROWD; i++) {
        members[i] = (struct member){.crowd = c, .number = i + 1};
        hf_check(pthread_create(&members[i].thread, NULL, crowd_member, &members[i]) == 0);
    }
    for (int i = 0; i < CROWD; i++)
        pthread_join(members[i].thread, NULL);
}

static void sixteen_who_want_overlapping_seats_never_share_one(void **state)
{
    (void)state;
    struct crowd c = {0};
    crowd_run(&c);
    assert_int_equal(c.doubles, 0);
    assert_true(c.grants > CROWD_ROUNDS);
    assert_true(c.refusals > 0);
    assert_int_equal(n_keys(), 0); /* a part of a refused claim would live five seconds */
}

static void without_the_gate_they_do(void **state)
{
    (void)state;
    struct crowd c = {.naive = true};
    for (int i = 0; i < 20 && c.doubles == 0; i++)
        crowd_run(&c);
    assert_true(c.doubles > 0);
}

int main(void)
{
#define claim_test(f) cmocka_unit_test_setup(f, flush)
    const struct CMUnitTest tests[] = {
        claim_test(a_claim_is_the_tokens_for_five_seconds),
        claim_test(of_a_refused_claim_nothing_is_kept_and_the_taken_are_named_in_order),
        claim_test(a_token_is_granted_again_what_it_has_and_anew),
        claim_test(an_area_refuses_who_wants_more_than_is_left),
        claim_test(garbage_and_other_types_stand_in_nobodys_way),
        claim_test(a_hold_replaces_a_claim_an_older_hold_or_nothing),
        claim_test(an_older_hold_never_replaces_nor_frees_a_newer_one),
        claim_test(a_seat_that_is_free_again_is_deleted),
        claim_test(nobodys_seat_gives_back_the_tokens_claim_and_nothing_else),
        claim_test(a_seat_told_twice_ends_as_if_told_in_two_calls),
        claim_test(a_count_replaces_one_of_an_earlier_seq),
        claim_test(a_large_settlement_is_done_whole_in_scripts_of_a_hundred),
        claim_test(an_events_keys_are_in_one_slot_and_a_cluster_takes_them),
        claim_test(a_look_tells_holds_and_counts_but_no_claims),
        claim_test(a_look_finds_every_hold_among_many_keys),
        claim_test(what_is_strange_is_told_and_dropped_and_others_keys_are_not),
        claim_test(many_keys_are_dropped_at_once),
        claim_test(a_flush_between_claim_and_settle_is_no_matter),
        claim_test(lost_scripts_are_sent_again_each_of_a_mixed_call),
        claim_test(a_restart_is_survived_and_a_failure_reads_as_granted),
        claim_test(a_server_that_hangs_costs_the_timeout_and_no_more),
        claim_test(a_black_hole_costs_the_timeout_and_no_more),
        claim_test(a_server_that_closes_the_link_raises_no_signal),
        claim_test(wrong_urls_and_passwords_are_told_without_the_password),
        claim_test(the_documented_rights_are_enough_and_each_is_needed),
        claim_test(a_full_server_refuses_a_claim_whole),
        claim_test(a_socket_serves_as_well),
        claim_test(a_thousand_claims_go_in_one_call),
        claim_test(sixteen_who_want_overlapping_seats_never_share_one),
        claim_test(without_the_gate_they_do),
    };
    if (!redis_server_start(&server)) {
        fprintf(stderr, "there is no redis-server\n");
        return 1;
    }
    struct redis_address address;
    hf_check(redis_address_parse(server.url, &address, NULL) == HF_DONE);
    redis_link_init(&beside, &address, &clock_system, 2000);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_link_close(&beside);
    redis_address_close(&address);
    redis_server_stop(&server);
    return failed;
}
