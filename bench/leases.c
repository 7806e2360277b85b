/* Compares leases through a driver with the same calls written by hand.  First, how fast one thread
 * acquires and releases an uncontended lock.  Second, hand-over: many waiters on one lock, each
 * with its own handle; how long it takes from one release to the next grant and, for Redis, how
 * many commands that costs the server by its own count.  Both sides run in turns of a fraction of a
 * second, so that they see the same machine.
 *   leases URL [SECONDS]       memory:, sqlite:FILE (by hand FILE.hand),
 *                              postgres://HOST/DATABASE, redis://HOST:PORT,
 *                              redlock://HOST:PORT,HOST:PORT,HOST:PORT?max_ttl=2s,
 *                              holdfast://HOST:PORT, etcd://HOST:PORT or zookeeper://HOST:PORT,
 *                              which must have no other users.  SECONDS is the length of each
 *                              measurement.  memory: runs twice, compared with a table and with a
 *                              bare mutex.  Redlock, etcd and ZooKeeper are compared with their
 *                              primitives, without hand-over.
 *
 * Readable lines go to stderr, one line of JSON to stdout. */
#include <pthread.h>
#include <string.h>

#include "base/random.h"
#include "lease/lease.h"
#include "leases_etcd.h"
#include "leases_holdfast.h"
#include "leases_memory.h"
#include "leases_postgres.h"
#include "leases_redis.h"
#include "leases_redlock.h"
#include "leases_side.h"
#include "leases_sqlite.h"
#include "leases_zookeeper.h"

_Static_assert(OWNER_SIZE == LEASE_OWNER_SIZE, "one size of owners");

#define SLICES 20
#define TURNS 4
#define WARM_NS 300000000
#define READY_TRIES 200
#define READY_PAUSE_NS 50000000
#define WAITERS_MAX 100
#define SECONDS_MAX 60
#define SAMPLES_MAX 1000000 /* only the latest samples are kept */

/* ---- the driver's side ---- */

static int ttl_ms = TTL_MS;

static void sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

static void *ours_open(const char *url, void *first)
{
    const struct lease_options options = {.timeout_ms = 5000, .clock = &clock_system};
    const struct lease_driver *driver = lease_driver_for(url);
    struct lease *l = first, *ret = NULL;
    struct hf_fault fault = {0};
    if (!driver)
        die("no driver for this URL");
    if ((l ? lease_clone(l, &ret, &fault) : lease_open(driver, url, &options, &ret, &fault)) !=
        HF_DONE)
        die(fault.msg);
    return ret;
}

static void ours_close(void *handle)
{
    struct lease *l = handle;
    lease_close(l);
}

static struct lease_request request(const char *key, const uint8_t *owner, bool queue)
{
    struct lease_request q = {
        .key = key, .key_len = strlen(key), .ttl_ms = ttl_ms, .slots = 1, .queue = queue};
    memcpy(q.owner, owner, OWNER_SIZE);
    return q;
}

/* Servers of redlock that have just started take no part at first. */
static void await_ready(void *handle)
{
    const uint8_t owner[OWNER_SIZE] = {1};
    struct lease_request q = request("bench", owner, false);
    struct lease_verdict v = {.result = HF_TAKEN};
    struct hf_fault fault = {0};
    for (int i = 0; i < READY_TRIES; i++) {
        if (lease_acquire(handle, &q, &v, &fault) == HF_DONE && v.result == HF_DONE) {
            if (lease_release(handle, &q, 1, &v, &fault) == HF_DONE)
                return;
        }
        sleep_ns(READY_PAUSE_NS);
    }
    die(fault.msg);
}

static void ours_pair(void *handle, const uint8_t *owner)
{
    struct lease *l = handle;
    struct lease_request q = request("bench", owner, false);
    struct lease_verdict v;
    if (lease_acquire(l, &q, &v, NULL) != HF_DONE || v.result != HF_DONE ||
        lease_release(l, &q, 1, &v, NULL) != HF_DONE || v.result != HF_DONE)
        die("the lease was not granted");
}

static bool ours_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    struct lease *l = handle;
    struct lease_request q = request("hot", owner, true);
    struct lease_verdict v;
    struct hf_fault fault = {0};
    for (;;) {
        if (lease_acquire(l, &q, &v, &fault) != HF_DONE)
            die(fault.msg);
        if (v.result == HF_DONE || *stop)
            return v.result == HF_DONE;
        if (lease_wait(l, &q, 1000, &fault) != HF_DONE)
            die(fault.msg);
    }
}

static void ours_give(void *handle, const uint8_t *owner)
{
    struct lease *l = handle;
    struct lease_request q = request("hot", owner, true);
    struct lease_verdict v;
    struct hf_fault fault = {0};
    if (lease_release(l, &q, 1, &v, &fault) != HF_DONE)
        die(fault.msg);
}

static const struct side ours = {
    .name = "driver",
    .open = ours_open,
    .close = ours_close,
    .pair = ours_pair,
    .take = ours_take,
    .give = ours_give,
};

/* ---- measuring ---- */

struct sample {
    int64_t *ns;
    size_t n, cap;
    size_t all;
};

static void sample_add(struct sample *s, int64_t ns)
{
    if (s->n < SAMPLES_MAX && s->n == s->cap)
        s->ns = vec_grow(s->ns, &s->cap, sizeof *s->ns);
    s->ns[s->all++ % SAMPLES_MAX] = ns;
    s->n += s->n < SAMPLES_MAX;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

struct result {
    struct sample sample;
    double done, taken_ns;
    double cpu_us;         /* used by this process meanwhile */
    double client, script; /* commands that the server ran meanwhile */
};

static double rate(const struct result *r) { return 1e9 * r->done / r->taken_ns; }

/* Prints a result for people (stderr) and as a member of the JSON object (stdout). */
static void say(const char *what, const char *side, const char *member, struct result *r)
{
    struct sample *s = &r->sample;
    if (s->n == 0)
        die("nothing was granted");
    qsort(s->ns, s->n, sizeof *s->ns, by_size);
    size_t half = s->n / 2, most = s->n * 99 / 100;
    double p50_us = (double)s->ns[half] / 1000, p99_us = (double)s->ns[most] / 1000;
    fprintf(stderr, "%-18s %-8s %9.0f/s   p50 %8.2f us   p99 %8.2f us", what, side, rate(r), p50_us,
            p99_us);
    printf("\"%s\":{\"per_second\":%.1f,\"p50_us\":%.3f,\"p99_us\":%.3f", member, rate(r), p50_us,
           p99_us);
    if (r->cpu_us > 0) {
        fprintf(stderr, "   CPU %.1f us", r->cpu_us / r->done);
        printf(",\"cpu_us\":%.3f", r->cpu_us / r->done);
    }
    if (r->client > 0) {
        fprintf(stderr, "   commands of clients %.2f, of scripts %.1f each", r->client / r->done,
                r->script / r->done);
        printf(",\"commands\":%.3f", (r->client + r->script) / r->done);
    }
    fputc('\n', stderr);
    fputc('}', stdout);
}

static void say_both(const char *what, const char *member, const struct side *hand,
                     struct result results[2])
{
    printf("\"%s%s\":{", member, hand == &hand_bare ? "_bare" : "");
    say(what, ours.name, "ours", &results[0]);
    fputc(',', stdout);
    say(what, hand->name, "hand", &results[1]);
    fputc('}', stdout);
    fprintf(stderr, "ratio %.2f\n", rate(&results[0]) / rate(&results[1]));
    for (int i = 0; i < 2; i++)
        free(results[i].sample.ns);
}

/* ---- one handle without contention ---- */

static void pairs(const struct side *side, void *handle, struct random *random, int64_t until,
                  struct result *r)
{
    uint8_t owner[OWNER_SIZE];
    double cpu = cpu_us();
    for (int64_t begin = now_ns(), end; begin < until; begin = end) {
        random_bytes(random, owner, sizeof owner);
        side->pair(handle, owner);
        end = now_ns();
        sample_add(&r->sample, end - begin);
        r->done++;
        r->taken_ns += (double)(end - begin);
    }
    r->cpu_us += cpu_us() - cpu;
}

static void uncontended(const struct side *const sides[2], void *const handles[2], double seconds)
{
    struct result results[2] = {0};
    struct random random;
    random_init_system(&random);
    int64_t slice_ns = (int64_t)(1e9 * seconds / 2 / SLICES);
    for (int slice = 0; slice < SLICES; slice++)
        for (int i = 0; i < 2; i++)
            pairs(sides[i], handles[i], &random, now_ns() + slice_ns, &results[i]);
    say_both("acquire+release", "uncontended", sides[1], results);
}

/* ---- hand-over ---- */

struct contest {
    const struct side *side;
    atomic_bool counts, stop, inside;
    _Atomic int64_t released_ns;
    atomic_long grants;
};
struct waiter {
    struct contest *contest;
    void *handle;
    struct sample handed;
    pthread_t thread;
};

/* Records a grant and its immediate release. */
static void granted(struct waiter *w)
{
    int64_t ns = now_ns();
    struct contest *c = w->contest;
    if (atomic_exchange(&c->inside, true))
        die("two held it at once");
    if (c->released_ns && c->counts)
        sample_add(&w->handed, ns - c->released_ns);
    c->grants++;
    c->inside = false;
    c->released_ns = now_ns();
}

static void *waits(void *ctx)
{
    struct waiter *w = ctx;
    const struct side *side = w->contest->side;
    struct random random;
    uint8_t owner[OWNER_SIZE];
    random_init_system(&random);
    while (!w->contest->stop) {
        random_bytes(&random, owner, sizeof owner);
        if (side->take(w->handle, owner, &w->contest->stop))
            granted(w);
        side->give(w->handle, owner);
    }
    return NULL;
}

/* `counter` asks Redis for its command counts; it is NULL for other drivers. */
static void hand_over(const struct side *side, const char *url, void *first, int n,
                      const struct hand_redis *counter, double seconds, struct result *r)
{
    struct contest contest = {.side = side};
    struct waiter waiters[WAITERS_MAX] = {0};
    double client[2] = {0}, script[2] = {0};
    for (int i = 0; i < n; i++) {
        waiters[i].contest = &contest;
        waiters[i].handle = side->open(url, first);
    }
    for (int i = 0; i < n; i++)
        if (pthread_create(&waiters[i].thread, NULL, waits, &waiters[i]) != 0)
            die("no thread");
    sleep_ns(WARM_NS);
    if (counter)
        redis_commands(counter, &client[0], &script[0]);
    contest.counts = true;
    long before = contest.grants;
    int64_t begin = now_ns();
    double cpu = cpu_us();
    sleep_ns((int64_t)(1e9 * seconds));
    r->cpu_us += cpu_us() - cpu;
    r->done += (double)(contest.grants - before);
    r->taken_ns += (double)(now_ns() - begin);
    contest.counts = false;
    if (counter)
        redis_commands(counter, &client[1], &script[1]);
    r->client += client[1] - client[0];
    r->script += script[1] - script[0];
    contest.stop = true;
    for (int i = 0; i < n; i++) {
        pthread_join(waiters[i].thread, NULL);
        for (size_t k = 0; k < waiters[i].handed.n; k++)
            sample_add(&r->sample, waiters[i].handed.ns[k]);
        free(waiters[i].handed.ns);
        side->close(waiters[i].handle);
    }
}

static void contended(const struct side *const sides[2], void *const handles[2], const char *url,
                      int n, double seconds)
{
    struct result results[2] = {0};
    const struct hand_redis *counter = sides[1] == &hand_redis ? handles[1] : NULL;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 2; i++)
            hand_over(sides[i], url, handles[i], n, counter, seconds / 2 / TURNS, &results[i]);
    char what[32], member[32];
    snprintf(what, sizeof what, "hand-over, %d", n);
    snprintf(member, sizeof member, "handover%d", n);
    say_both(what, member, sides[1], results);
}

static void measure(const char *url, const struct side *hand, double seconds)
{
    const struct side *const sides[2] = {&ours, hand};
    void *const handles[2] = {ours.open(url, NULL), hand->open(url, NULL)};
    await_ready(handles[0]);
    uncontended(sides, handles, seconds);
    if (hand->take) {
        fputc(',', stdout);
        contended(sides, handles, url, 32, seconds);
    }
    if (hand == &hand_redis) {
        fputc(',', stdout);
        contended(sides, handles, url, 100, seconds);
    }
    for (int i = 0; i < 2; i++)
        sides[i]->close(handles[i]);
}

static const struct side *choose_hand(const char *url)
{
    static const struct {
        const char *scheme;
        const struct side *hand;
    } hands[] = {{"memory:", &hand_memory},       {"sqlite:", &hand_sqlite},
                 {"postgres", &hand_postgres},    {"redis:", &hand_redis},
                 {"redlock:", &hand_redlock},     {"etcd:", &hand_etcd},
                 {"zookeeper:", &hand_zookeeper}, {"holdfast:", &hand_holdfast}};
    for (size_t i = 0; i < sizeof hands / sizeof *hands; i++)
        if (strncmp(url, hands[i].scheme, strlen(hands[i].scheme)) == 0)
            return hands[i].hand;
    return NULL;
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 4;
    const char *url = argc > 1 ? argv[1] : "";
    const struct side *hand = choose_hand(url);
    if (!hand || !(seconds > 0 && seconds <= SECONDS_MAX))
        die("usage: leases memory:|sqlite:FILE|postgres://HOST/DATABASE|redis://HOST:PORT|"
            "redlock://...|holdfast://HOST:PORT|etcd://HOST:PORT|zookeeper://HOST:PORT [SECONDS]");
    if (hand == &hand_redlock)
        ttl_ms = REDLOCK_TTL_MS;
    printf("{\"driver\":\"%s\",", lease_driver_for(url)->info.name);
    measure(url, hand, seconds);
    if (hand == &hand_memory) {
        fputc(',', stdout);
        measure(url, &hand_bare, seconds);
    }
    puts("}");
    return 0;
}
