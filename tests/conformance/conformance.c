/* The suite's runner and what its claims share.  See conformance.h. */
#include "conformance.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"

/* ---- parties ---- */

void key_make(char ret[64], const char *what)
{
    static atomic_int n;
    snprintf(ret, 64, "%s-%d", what, atomic_fetch_add(&n, 1));
}

struct lease_request *party_new_owner(struct party *p)
{
    struct random random;
    random_init_system(&random);
    random_bytes(&random, p->r.owner, sizeof p->r.owner);
    return &p->r;
}

void party_init(struct party *p, const char *key)
{
    memset(p, 0, sizeof *p);
    assert_true(strlen(key) < sizeof p->key);
    memcpy(p->key, key, strlen(key) + 1);
    p->r = (struct lease_request){
        .key = p->key, .key_len = strlen(key), .ttl_ms = LONG_MS, .slots = 1};
    party_new_owner(p);
}

void party_queued(struct party *p, const char *key)
{
    party_init(p, key);
    p->r.queue = true;
}

void must_at(enum hf_result result, const struct hf_fault *fault, const char *file, int line)
{
    if (result == HF_DONE)
        return;
    print_error("result %d: %s\n", (int)result, fault->msg);
    _fail(file, line);
}

void assert_fault(enum hf_result result, enum hf_result expected, const struct hf_fault *fault)
{
    if (result != expected)
        print_error("result %d, not %d: %s\n", (int)result, (int)expected, fault->msg);
    assert_int_equal(result, expected);
    assert_int_equal(fault->result, expected);
    assert_true(strlen(fault->msg) > 8);
}

enum hf_result try_acquire(struct lease *l, struct party *p)
{
    p->fault = (struct hf_fault){0};
    return lease_acquire(l, &p->r, &p->v, &p->fault);
}

enum hf_result acquire(struct lease *l, struct party *p)
{
    if (p->r.ttl_ms < LONG_MS)
        return acquire_again(l, p);
    must(try_acquire(l, p), &p->fault);
    return p->v.result;
}

bool place_may_be_lost(int64_t asked_ms)
{
    return now_ms() - asked_ms >= WAITER_SILENT_MS - WAITER_SILENT_MS / 4 - 5;
}

void assert_remaining(int64_t remaining_ms, int64_t ttl_ms, int64_t asked_ms)
{
    int64_t least_ms = ttl_ms - ttl_ms / 50 - 5000 - (now_ms() - asked_ms);
    assert_in_range(remaining_ms, least_ms, ttl_ms);
}

bool waits_for_turn(struct lease *l, struct party *p, int64_t asked_ms, int64_t since_ms)
{
    enum hf_result result = acquire(l, p);
    if (now_ms() - since_ms < WAITER_CLAIM_MS - 5 && !place_may_be_lost(asked_ms)) {
        assert_int_equal(result, HF_TAKEN);
        return true;
    }
    if (result == HF_DONE)
        assert_int_equal(release(l, p), HF_DONE);
    return false;
}

enum hf_result acquire_again(struct lease *l, struct party *p)
{
    int64_t end_ms = now_ms() + 20000;
    enum hf_result result;
    while ((result = try_acquire(l, p)) == HF_UNREACHABLE || result == HF_UNKNOWN) {
        if (now_ms() > end_ms)
            break;
        rest_ms(20);
    }
    must(result, &p->fault);
    return p->v.result;
}

enum hf_result renew_again(struct lease *l, struct party *p)
{
    int64_t end_ms = now_ms() + p->r.ttl_ms;
    enum hf_result result;
    while (((result = lease_renew(l, &p->r, 1, &p->v, &p->fault)) == HF_UNREACHABLE ||
            result == HF_UNKNOWN) &&
           now_ms() < end_ms)
        rest_ms(20);
    must(result, &p->fault);
    return p->v.result;
}

enum hf_result renew(struct lease *l, struct party *p)
{
    must(lease_renew(l, &p->r, 1, &p->v, &p->fault), &p->fault);
    return p->v.result;
}

enum hf_result release(struct lease *l, struct party *p)
{
    must(lease_release(l, &p->r, 1, &p->v, &p->fault), &p->fault);
    return p->v.result;
}

struct lease *handle_clone(struct lease *l)
{
    struct lease *ret = NULL;
    struct hf_fault fault = {0};
    must(lease_clone(l, &ret, &fault), &fault);
    return ret;
}

struct lease *handle_open(struct world *w)
{
    struct lease *ret = NULL;
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 10000, .clock = &clock_system};
    must(lease_open(w->driver, w->backend->url, &options, &ret, &fault), &fault);
    assert_ptr_equal(ret->driver, w->driver);
    return ret;
}

struct lease_state inspect(struct lease *l, const char *key)
{
    struct lease_state state = {0};
    struct hf_fault fault = {0};
    must(lease_inspect(l, key, strlen(key), &state, &fault), &fault);
    return state;
}

/* ---- time, processes, sockets ---- */

int64_t now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

void rest_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0)
        ;
}

int64_t acquire_within(struct lease *l, struct party *p, int64_t most_ms)
{
    int64_t from_ms = now_ms();
    while (acquire(l, p) != HF_DONE) {
        assert_true(now_ms() - from_ms < most_ms);
        rest_ms(5);
    }
    return now_ms() - from_ms;
}

void contender_path(char ret[512])
{
    ssize_t len = readlink("/proc/self/exe", ret, 400);
    assert_true(len > 0 && len < 400);
    ret[len] = '\0';
    char *name = strrchr(ret, '/') + 1;
    snprintf(name, 100, "contender");
    assert_int_equal(access(ret, X_OK), 0);
}

void scratch_make(struct scratch *dir)
{
    process_make_dir("conformance", dir->path, sizeof dir->path);
}

void scratch_remove(struct scratch *dir)
{
    DIR *d = opendir(dir->path);
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));)
        unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    rmdir(dir->path);
}

/* ---- the runner ---- */

static struct world the_world;

static int world_open(void **state)
{
    struct backend *b = the_world.backend;
    b->start(b);
    the_world.driver = lease_driver_for(b->url);
    if (!the_world.driver) {
        print_error("no driver for %s\n", b->name);
        return -1;
    }
    the_world.info = &the_world.driver->info;
    assert_string_equal(the_world.info->name, b->name);
    the_world.l = handle_open(&the_world);
    (void)state; /* stays NULL: with a state of the group cmocka ignores that of each claim */
    return 0;
}

static int world_close(void **state)
{
    (void)state;
    lease_close(the_world.l);
    if (the_world.backend->stop)
        the_world.backend->stop(the_world.backend);
    return 0;
}

/* What this driver and its back end have. */
static unsigned met(const struct world *w)
{
    return (w->info->fair ? NEEDS_FAIR : 0U) | (w->info->shared ? NEEDS_SHARED : 0U) |
           (w->info->priority ? NEEDS_PRIORITY : 0U) | (w->info->slots ? NEEDS_SLOTS : 0U) |
           (w->info->processes ? NEEDS_PROCESSES : 0U) | (w->backend->url_at ? NEEDS_PORT : 0U) |
           (w->backend->flush ? NEEDS_FLUSH : 0U) |
           (strcmp(w->info->name, "memory") == 0 ? NO_DRIVER : 0U);
}

static void run_claim(void **state)
{
    const struct claim *claim = *state;
    void *world = &the_world;
    if (claim->needs & ~met(&the_world))
        skip();
    claim->run(&world);
}

int conformance_run(struct backend *b)
{
    const struct claim *const parts[] = {leases_claims, queue_claims,   model_claims,
                                         faults_claims, process_claims, crowd_claims};
    VEC(struct CMUnitTest) all = {0};
    const char *only = getenv("HF_ONLY"); /* a part of a claim's name */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const struct claim *c = parts[i]; c->name; c++)
            if (!only || strstr(c->name, only))
                *vec_push(&all) = (struct CMUnitTest){
                    .name = c->name, .test_func = run_claim, .initial_state = (void *)(uintptr_t)c};
    signal(SIGPIPE, SIG_IGN);
    the_world.backend = b;
    int failed = _cmocka_run_group_tests(b->name, all.v, all.n, world_open, world_close);
    vec_close(&all);
    return failed;
}
