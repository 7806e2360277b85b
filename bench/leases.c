/* Leases on Redis through the driver, beside the calls one would write by hand with hiredis: SET NX
 * PX to take, EVAL of compare-and-delete to give back; same server, one connection each, in turns
 * of a fraction of a second so that both see the same machine.  Then hand-over: so many waiters on
 * one lock, each its own connections; how long from one release to the next grant, and how many
 * commands that costs the server, by its own count.
 *   leases PORT [SECONDS]      a redis-server on 127.0.0.1 that nobody else uses */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "lease/lease.h"

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
    struct lease *l;
    struct sample handed;
    pthread_t thread;
};

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
        int64_t granted_us = now_us();
        if (v.result == HF_DONE) {
            if (w->contest->released_us)
                sample_add(&w->handed, granted_us - w->contest->released_us);
            w->contest->grants++;
            w->contest->released_us = now_us();
        }
        lease_redis.release(w->l, &q, 1, &v, NULL);
    }
    return NULL;
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

static void contended(const char *url, redisContext *c, int n, double seconds)
{
    struct contest contest = {0};
    struct waiter waiters[WAITERS_MAX] = {0};
    struct lease_options options = {.timeout_ms = 5000, .clock = &clock_system};
    struct hf_fault fault;
    for (int i = 0; i < n; i++) {
        waiters[i].contest = &contest;
        if (lease_redis.open(url, &options, &waiters[i].l, &fault) != HF_DONE)
            die(fault.msg);
        pthread_create(&waiters[i].thread, NULL, waits, &waiters[i]);
    }
    double client[2], script[2];
    struct timespec warm = {.tv_nsec = 500000000}, pause = {.tv_sec = (time_t)seconds};
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
    for (int i = 0; i < n; i++) {
        pthread_join(waiters[i].thread, NULL);
        for (size_t s = 0; s < waiters[i].handed.n; s++)
            sample_add(&all, waiters[i].handed.us[s]);
        free(waiters[i].handed.us);
        lease_redis.close(waiters[i].l);
    }
    char what[64];
    snprintf(what, sizeof what, "hand-over, %d waiters", n);
    say(what, &all);
    printf("%-28s %9.0f/s   commands of clients %.2f, of scripts %.1f per hand-over\n", "",
           1e6 * grants / taken_us, (client[1] - client[0]) / grants,
           (script[1] - script[0]) / grants);
    free(all.us);
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
    redisContext *c = redisConnect("127.0.0.1", port);
    if (!c || c->err)
        die("hiredis cannot connect");
    uncontended(l, c, &random, seconds);
    contended(url, c, 2, seconds / 2);
    contended(url, c, 32, seconds / 2);
    contended(url, c, 100, seconds / 2);
    redisFree(c);
    lease_redis.close(l);
    return 0;
}
