/* Leases on Redis through the driver, beside the calls one would write by hand with hiredis: SET NX
 * PX to take, EVAL of compare-and-delete to give back; same server, one connection each, in turns
 * of a fraction of a second so that both see the same machine.  Then hand-over: so many waiters on
 * one lock, each its own two connections; how long from one release to the next grant, and how many
 * commands that costs the server, by its own count; beside the same scripts and SUBSCRIBE sent by
 * hand with hiredis.
 *   leases PORT [SECONDS]      a redis-server on 127.0.0.1 that nobody else uses */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lease/lease.h"
#include "lease/redis_scripts.h"

extern const struct lease_driver lease_redis;

#define TTL_MS 30000
#define SLICES 20
#define WAITERS_MAX 100

static const char compare_delete[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('del', KEYS[1]) else return 0 end";

static int64_t now_us(void) { return clock_monotonic_us(&clock_system); }

static void die(const char *what)
{
    fprintf(stderr, "leases: %s\n", what);
    exit(1);
}

struct sample {
    int64_t *us;
    size_t n, cap;
    int64_t busy_us;
};

static void sample_add(struct sample *s, int64_t us)
{
    if (s->n == s->cap)
        s->us = vec_grow(s->us, &s->cap, sizeof *s->us);
    s->us[s->n++] = us;
    s->busy_us += us;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static double rate(const struct sample *s) { return 1e6 * (double)s->n / (double)s->busy_us; }

static void say(const char *what, struct sample *s)
{
    qsort(s->us, s->n, sizeof *s->us, by_size);
    printf("%-28s %9.0f/s   p50 %4lld us   p99 %4lld us\n", what, rate(s),
           (long long)s->us[s->n / 2], (long long)s->us[s->n * 99 / 100]);
}

/* ---- one connection, nobody else ---- */

static void ours(struct lease *l, struct random *random, int64_t until_us, struct sample *s)
{
    struct lease_request q = {.key = "bench", .key_len = 5, .ttl_ms = TTL_MS, .slots = 1};
    struct lease_verdict v;
    for (int64_t begin_us = now_us(), end_us; begin_us < until_us; begin_us = end_us) {
        random_bytes(random, q.owner, sizeof q.owner);
        if (lease_redis.acquire(l, &q, 1, &v, NULL) != HF_DONE || v.result != HF_DONE ||
            lease_redis.release(l, &q, 1, &v, NULL) != HF_DONE || v.result != HF_DONE)
            die("the lease was not granted");
        end_us = now_us();
        sample_add(s, end_us - begin_us);
    }
}

static void by_hand(redisContext *c, struct random *random, int64_t until_us, struct sample *s)
{
    char owner[33];
    uint8_t bits[16];
    for (int64_t begin_us = now_us(), end_us; begin_us < until_us; begin_us = end_us) {
        random_bytes(random, bits, sizeof bits);
        lease_owner_text(bits, owner);
        redisReply *set = redisCommand(c, "SET %s %s NX PX %d", "hand", owner, TTL_MS);
        redisReply *del = redisCommand(c, "EVAL %s 1 %s %s", compare_delete, "hand", owner);
        if (!set || set->type != REDIS_REPLY_STATUS || !del || del->integer != 1)
            die("SET NX PX failed");
        freeReplyObject(set);
        freeReplyObject(del);
        end_us = now_us();
        sample_add(s, end_us - begin_us);
    }
}

static void uncontended(struct lease *l, redisContext *c, struct random *random, double seconds)
{
    struct sample a = {0}, b = {0};
    int64_t slice_us = (int64_t)(1e6 * seconds / 2 / SLICES);
    for (int i = 0; i < SLICES; i++) {
        ours(l, random, now_us() + slice_us, &a);
        by_hand(c, random, now_us() + slice_us, &b);
    }
    say("acquire+release, driver", &a);
    say("SET NX PX + EVAL, hiredis", &b);
    printf("ratio %.2f\n", rate(&a) / rate(&b));
    free(a.us);
    free(b.us);
}

/* ---- hand-over ---- */

struct contest {
    atomic_bool stop;
    _Atomic int64_t released_us;
    atomic_long grants;
};
struct waiter {
    struct contest *contest;
    struct lease *l;                   /* the driver's, or */
    redisContext *commands, *messages; /* by hand */
    struct sample handed;
    pthread_t thread;
};

/* Held for no time at all: a grant, noted, and then the release begins. */
static void granted(struct waiter *w)
{
    int64_t us = now_us();
    if (w->contest->released_us)
        sample_add(&w->handed, us - w->contest->released_us);
    w->contest->grants++;
    w->contest->released_us = now_us();
}

static void *waits(void *ctx)
{
    struct waiter *w = ctx;
    struct random random;
    random_init_system(&random);
    struct lease_request q = {
        .key = "hot", .key_len = 3, .ttl_ms = TTL_MS, .slots = 1, .queue = true};
    struct lease_verdict v;
    while (!w->contest->stop) {
        random_bytes(&random, q.owner, sizeof q.owner);
        while (lease_redis.acquire(w->l, &q, 1, &v, NULL) == HF_DONE && v.result == HF_TAKEN)
            if (lease_redis.wait(w->l, &q, 1000, NULL) != HF_DONE || w->contest->stop)
                break;
        if (v.result == HF_DONE)
            granted(w);
        lease_redis.release(w->l, &q, 1, &v, NULL);
    }
    return NULL;
}

#define HAND_KEY "holdfast:{hand}:lock"
enum { HAND_ACQUIRE, HAND_TOUCH, HAND_RELEASE, HAND_SCRIPTS };
static char shas[HAND_SCRIPTS][41];

static void load_scripts(redisContext *c)
{
    static const char *const text[] = {REDIS_ACQUIRE, REDIS_TOUCH, REDIS_RELEASE};
    for (int i = 0; i < HAND_SCRIPTS; i++) {
        redisReply *reply = redisCommand(c, "SCRIPT LOAD %s", text[i]);
        if (!reply || reply->type != REDIS_REPLY_STRING)
            die("SCRIPT LOAD failed");
        snprintf(shas[i], sizeof shas[i], "%s", reply->str);
        freeReplyObject(reply);
    }
}

/* The first number of an answer; a value alone is a grant. */
static long long answer(redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        die("a script failed");
    long long n = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer : REDIS_DONE;
    freeReplyObject(reply);
    return n;
}

static long long hand_acquire(redisContext *c, const char *owner)
{
    return answer(redisCommand(c, "EVALSHA %s 2 %s holdfast:fence %s %d %s 1", shas[HAND_ACQUIRE],
                               HAND_KEY, owner, TTL_MS, "e 0 1 "));
}

static bool hand_turn(redisContext *c, const char *owner)
{
    return answer(redisCommand(c, "EVALSHA %s 1 %s %s", shas[HAND_TOUCH], HAND_KEY, owner)) ==
           REDIS_TURN;
}

/* Subscribed, so that a call is not missed; then asleep until it comes, or a second. */
static bool hand_wait(struct waiter *w, const char *owner)
{
    freeReplyObject(redisCommand(w->messages, "SUBSCRIBE " HAND_KEY ":wake:%s", owner));
    bool mine = hand_turn(w->commands, owner) && hand_acquire(w->commands, owner) == REDIS_DONE;
    while (!mine && !w->contest->stop) {
        void *message = NULL;
        if (redisGetReply(w->messages, &message) == REDIS_OK || hand_turn(w->commands, owner))
            mine = hand_acquire(w->commands, owner) == REDIS_DONE;
        w->messages->err = 0; /* a second without a call */
        freeReplyObject(message);
    }
    return mine;
}

static void *waits_by_hand(void *ctx)
{
    struct waiter *w = ctx;
    struct random random;
    random_init_system(&random);
    uint8_t bits[16];
    char owner[33];
    while (!w->contest->stop) {
        random_bytes(&random, bits, sizeof bits);
        lease_owner_text(bits, owner);
        bool waited = hand_acquire(w->commands, owner) != REDIS_DONE;
        if (!waited || hand_wait(w, owner))
            granted(w);
        answer(
            redisCommand(w->commands, "EVALSHA %s 1 %s %s", shas[HAND_RELEASE], HAND_KEY, owner));
        if (waited)
            freeReplyObject(redisCommand(w->messages, "UNSUBSCRIBE"));
    }
    return NULL;
}

static redisContext *hand_connect(int port)
{
    redisContext *c = redisConnect("127.0.0.1", port);
    if (!c || c->err)
        die("hiredis cannot connect");
    redisSetTimeout(c, (struct timeval){.tv_sec = 1});
    return c;
}

static void waiter_start(struct waiter *w, int port, bool hand)
{
    char url[64];
    struct lease_options options = {.timeout_ms = 5000, .clock = &clock_system};
    struct hf_fault fault;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    if (hand) {
        w->commands = hand_connect(port);
        w->messages = hand_connect(port);
    } else if (lease_redis.open(url, &options, &w->l, &fault) != HF_DONE) {
        die(fault.msg);
    }
    if (pthread_create(&w->thread, NULL, hand ? waits_by_hand : waits, w) != 0)
        die("no thread");
}

static void waiter_join(struct waiter *w, struct sample *all)
{
    pthread_join(w->thread, NULL);
    for (size_t i = 0; i < w->handed.n; i++)
        sample_add(all, w->handed.us[i]);
    free(w->handed.us);
    lease_redis.close(w->l);
    if (w->commands) {
        redisFree(w->commands);
        redisFree(w->messages);
    }
}

/* Commands of clients and of scripts, heartbeats apart: they come by time, not by hand-over. */
static void commands(redisContext *c, double *ret_client, double *ret_script)
{
    redisReply *reply = redisCommand(c, "INFO commandstats");
    *ret_client = *ret_script = 0;
    if (!reply || !reply->str)
        die("INFO failed");
    for (char *line = strtok(reply->str, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        char name[64];
        long long calls;
        if (sscanf(line, "cmdstat_%63[^:]:calls=%lld", name, &calls) != 2)
            continue;
        bool client = strcmp(name, "evalsha") == 0 || strcmp(name, "subscribe") == 0 ||
                      strcmp(name, "unsubscribe") == 0 || strcmp(name, "eval") == 0;
        *(client ? ret_client : ret_script) += (double)calls;
    }
    freeReplyObject(reply);
}

/* Hand-overs a second. */
static double contended(int port, redisContext *c, int n, bool hand, double seconds)
{
    struct contest contest = {0};
    struct waiter waiters[WAITERS_MAX] = {0};
    for (int i = 0; i < n; i++) {
        waiters[i].contest = &contest;
        waiter_start(&waiters[i], port, hand);
    }
    double client[2], script[2];
    struct timespec warm = {.tv_nsec = 500000000};
    struct timespec pause = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&warm, NULL);
    commands(c, &client[0], &script[0]);
    long before = contest.grants;
    int64_t begin_us = now_us();
    nanosleep(&pause, NULL);
    double grants = (double)(contest.grants - before);
    double taken_us = (double)(now_us() - begin_us);
    commands(c, &client[1], &script[1]);
    contest.stop = true;
    struct sample all = {0};
    for (int i = 0; i < n; i++)
        waiter_join(&waiters[i], &all);
    char what[64];
    snprintf(what, sizeof what, "hand-over, %d, %s", n, hand ? "by hand" : "driver");
    say(what, &all);
    printf("%-28s %9.0f/s   commands of clients %.2f, of scripts %.1f per hand-over\n", "",
           1e6 * grants / taken_us, (client[1] - client[0]) / grants,
           (script[1] - script[0]) / grants);
    free(all.us);
    return 1e6 * grants / taken_us;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        die("usage: leases PORT [SECONDS]");
    int port = (int)strtol(argv[1], NULL, 10);
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 4;
    char url[64];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    struct random random;
    random_init_system(&random);
    struct lease_options options = {.timeout_ms = 2000, .clock = &clock_system};
    struct lease *l;
    struct hf_fault fault;
    if (lease_redis.open(url, &options, &l, &fault) != HF_DONE)
        die(fault.msg);
    redisContext *c = hand_connect(port);
    load_scripts(c);
    uncontended(l, c, &random, seconds);
    static const int waiters[] = {32, 100};
    for (size_t i = 0; i < sizeof waiters / sizeof *waiters; i++) {
        double ours = 0, theirs = 0;
        for (int turn = 0; turn < 2; turn++) {
            ours += contended(port, c, waiters[i], false, seconds / 4);
            theirs += contended(port, c, waiters[i], true, seconds / 4);
        }
        printf("ratio %.2f\n", ours / theirs);
    }
    redisFree(c);
    lease_redis.close(l);
    return 0;
}
