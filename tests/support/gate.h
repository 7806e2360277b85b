/* What the tests of the gate share: a redis-server of their own, claims with room for their answers
 * ("wishes"), and a second link to the server that bypasses the gate ("beside"). */
#ifndef HF_TESTS_SUPPORT_GATE_H
#define HF_TESTS_SUPPORT_GATE_H

#include "support/fixtures.h"

#include "gate/gate.h"
#include "redis/link.h"
#include "support/redis_server.h"

#define SEATS_MAX 64
#define AREAS_MAX 4
#define EVENT 7

extern struct redis_server gate_server;

/* Starts the server, runs each test on an empty server, and stops it. */
int gate_tests_run(const char *name, const struct CMUnitTest *tests, size_t n);
#define gate_test(f) cmocka_unit_test_setup(f, beside_flush)

/* The timeout of a gate whose server is well: it is no part of the claim, so that a server that
 * stands still for a while on a busy machine fails no test. */
#define GATE_PATIENT_MS 30000
struct gate *gate_at(const char *url, int64_t timeout_ms);
struct gate *gate_here(void);
int64_t gate_now_ms(void);

/* ---- wishes ---- */

/* A claim, with room for its answer. */
struct wish {
    struct gate_claim c;
    uint32_t seats[SEATS_MAX], taken[SEATS_MAX];
    struct gate_area areas[AREAS_MAX];
};
void wish_init(struct wish *w, int64_t event);
void wish_n(struct wish *w, int64_t event, const uint32_t *seats, uint32_t n);
#define wish_seats(w, ...)                                                                         \
    wish_n((w), EVENT, (const uint32_t[]){__VA_ARGS__},                                            \
           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
void wish_area(struct wish *w, uint32_t area, uint32_t quantity);

/* Returns a token of 16 times the byte n. */
const uint8_t *token_of(uint8_t n);
#define CLAIM_OF_1 "c:01010101010101010101010101010101"

/* These fail the test if the gate fails. */
bool wish_granted(struct gate *g, const uint8_t *who, struct wish *w);
void settle_one(struct gate *g, const uint8_t *who, struct gate_seat seat);
void settle_count(struct gate *g, struct gate_count count);

/* ---- beside the gate ---- */

/* Sends a command whose words are separated by |. */
__attribute__((format(printf, 1, 2))) redisReply *beside_ask(const char *fmt, ...);
void beside_hang_up(void); /* call it after the server was restarted */
int64_t beside_keys(void);
const char *beside_get(const char *key); /* returns "" if there is no such key */
void beside_set(const char *key, const char *value);
int64_t beside_pttl(const char *key);
/* The key ends ttl_ms after a call that was made since the gate was opened: exactly so much is left
 * as the time that has passed since then allows. */
#define assert_ttl(key, ttl_ms) assert_ttl_left(beside_pttl(key), (ttl_ms), __FILE__, __LINE__)
void assert_ttl_left(int64_t left_ms, int64_t ttl_ms, const char *file, int line);
int beside_flush(void **state);

/* ---- scans ---- */

struct seen {
    int seats, counts, strange;
    int64_t holds, available; /* sums of what was visited */
    int64_t event, ttl_ms;    /* of the last seat */
    uint32_t seat;
    int64_t count_event, seq; /* of the last count */
    uint32_t area;
    VEC(char *) keys; /* the strange ones */
    VEC(size_t) lens; /* theirs */
};
struct gate_visitor seen_visitor(struct seen *s);
struct seen scan_all(struct gate *g);
void seen_close(struct seen *s);

#endif
