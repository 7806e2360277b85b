/* See gate.h. */
#include "support/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct redis_server gate_server;

static int64_t opened_ms; /* the last gate */

struct gate *gate_at(const char *url, int64_t timeout_ms)
{
    struct gate *g = NULL;
    struct hf_fault fault = {0};
    opened_ms = gate_now_ms();
    if (gate_open(url, &clock_system, timeout_ms, &g, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return g;
}

struct gate *gate_here(void) { return gate_at(gate_server.url, GATE_PATIENT_MS); }

int64_t gate_now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

void wish_init(struct wish *w, int64_t event)
{
    *w = (struct wish){.c = {.event = event}};
    w->c.seats = w->seats;
    w->c.taken = w->taken;
    w->c.areas = w->areas;
}

void wish_n(struct wish *w, int64_t event, const uint32_t *seats, uint32_t n)
{
    wish_init(w, event);
    memcpy(w->seats, seats, n * sizeof *seats);
    w->c.n_seats = n;
}

void wish_area(struct wish *w, uint32_t area, uint32_t quantity)
{
    w->areas[w->c.n_areas++] = (struct gate_area){area, quantity};
}

const uint8_t *token_of(uint8_t n)
{
    static uint8_t all[256][GATE_TOKEN_SIZE];
    memset(all[n], n, GATE_TOKEN_SIZE);
    return all[n];
}

bool wish_granted(struct gate *g, const uint8_t *who, struct wish *w)
{
    struct hf_fault fault = {0};
    if (gate_claim(g, who, &w->c, 1, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return gate_claim_granted(&w->c);
}

void settle_one(struct gate *g, const uint8_t *who, struct gate_seat seat)
{
    struct hf_fault fault = {0};
    if (gate_settle(g, who, &seat, 1, NULL, 0, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
}

void settle_count(struct gate *g, struct gate_count count)
{
    struct hf_fault fault = {0};
    if (gate_settle(g, token_of(0), NULL, 0, &count, 1, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
}

/* ---- beside the gate ---- */

static struct redis_link beside;

redisReply *beside_ask(const char *fmt, ...)
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
    if (redis_exchange(&beside, 0, &reply, &fault) != HF_DONE)
        fail_msg("%s: %s", line, fault.msg);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", line, reply->str);
    return reply;
}

void beside_hang_up(void) { redis_link_close(&beside); }

int64_t beside_keys(void)
{
    redisReply *reply = beside_ask("DBSIZE");
    int64_t n = reply->integer;
    freeReplyObject(reply);
    return n;
}

const char *beside_get(const char *key)
{
    static char value[128];
    redisReply *reply = beside_ask("GET|%s", key);
    snprintf(value, sizeof value, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
    return value;
}

void beside_set(const char *key, const char *value)
{
    freeReplyObject(beside_ask("SET|%s|%s", key, value));
}

int64_t beside_pttl(const char *key)
{
    redisReply *reply = beside_ask("PTTL|%s", key);
    int64_t ms = reply->integer;
    freeReplyObject(reply);
    return ms;
}

void assert_ttl_left(int64_t left_ms, int64_t ttl_ms, const char *file, int line)
{
    /* Ours is read four times, and Redis' twice, and each time less than a millisecond is cut off.
     * A first call asks for the clock: its TTLs count from before that, and the answer's way is
     * taken off once more, since the clock is known to be that much too early. */
    int64_t age_ms = 2 * (gate_now_ms() - opened_ms) + 6;
    int64_t least_ms = ttl_ms - age_ms > 0 ? ttl_ms - age_ms : 0;
    _assert_in_range((uintmax_t)left_ms, (uintmax_t)least_ms, (uintmax_t)ttl_ms, file, line);
}

int beside_flush(void **state)
{
    (void)state;
    freeReplyObject(beside_ask("FLUSHALL"));
    return 0;
}

/* ---- scans ---- */

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
    s->count_event = event;
    s->area = area;
    s->seq = seq;
}

static void see_strange(void *ctx, const char *key, size_t len)
{
    struct seen *s = ctx;
    s->strange++;
    *vec_push(&s->keys) = hf_strndup(key, len);
    *vec_push(&s->lens) = len;
}

void seen_close(struct seen *s)
{
    for (size_t i = 0; i < s->keys.n; i++)
        free(s->keys.v[i]);
    vec_close(&s->keys);
    vec_close(&s->lens);
}

struct gate_visitor seen_visitor(struct seen *s)
{
    return (struct gate_visitor){s, see_seat, see_count, see_strange, NULL};
}

struct seen scan_all(struct gate *g)
{
    struct seen s = {0};
    struct hf_fault fault = {0};
    struct gate_visitor visitor = seen_visitor(&s);
    if (gate_scan(g, &visitor, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return s;
}

int gate_tests_run(const char *name, const struct CMUnitTest *tests, size_t n)
{
    if (!redis_server_start(&gate_server)) {
        fprintf(stderr, "there is no redis-server\n");
        return 1;
    }
    struct redis_address address;
    hf_check(redis_address_parse(gate_server.url, &address, NULL) == HF_DONE);
    redis_link_init(&beside, &address, &clock_system, GATE_PATIENT_MS);
    int failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    redis_link_close(&beside);
    redis_address_close(&address);
    redis_server_stop(&gate_server);
    return failed;
}
