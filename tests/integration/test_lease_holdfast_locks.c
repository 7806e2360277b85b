/* Claims about locks on the lock service of a real holdfastd, through the library: what threads of
 * a process share, deadlocks, cached shared locks, restarts and changes of the master. */
#include "support/fixtures.h"

#include "support/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/http_client.h"
#include "support/holdfastd_server.h"
#include "support/port.h"
#include "support/postgres_server.h"
#include "support/proxy.h"

#define LONG_MS 60000
#define TTL_MS 6000 /* a client or its server may be kept from running for a second or two */

static struct holdfastd_server server;

static struct hf_locks *open_hasty(int port, const char *parameters, int64_t timeout_ms)
{
    char url[128];
    struct hf_locks *locks = NULL;
    struct hf_fault fault = {0};
    struct hf_options options = HF_OPTIONS(.timeout_ms = timeout_ms);
    snprintf(url, sizeof url, "holdfast://127.0.0.1:%d%s", port, parameters);
    for (int64_t end_ms = boot_ms() + 30000; /* it may take longer than the timeout */
         hf_open(url, &options, &locks, &fault) != HF_DONE; nap_ms(10))
        if (boot_ms() > end_ms)
            fail_msg("%s", fault.msg);
    return locks;
}

/* With a timeout that is longer than a server may be kept from running. */
static struct hf_locks *open_at(int port, const char *parameters)
{
    return open_hasty(port, parameters, 10000);
}

static struct hf_lock *take(struct hf_locks *locks, const char *name, struct hf_lock_options want)
{
    struct hf_lock *lock = NULL;
    struct hf_fault fault = {0};
    if (hf_lock(locks, name, &want, &lock, &fault) != HF_DONE)
        print_error("%s: %s\n", name, fault.msg);
    assert_non_null(lock);
    return lock;
}

static void give(struct hf_lock *lock)
{
    struct hf_fault fault = {0};
    if (hf_unlock(lock, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
}

/* A call of hf_lock on a thread of its own. */
struct caller {
    struct hf_locks *locks;
    const char *name, *first; /* `first` is held before it waits for `name`; NULL: nothing */
    struct hf_lock_options want;
    pthread_barrier_t *both; /* where it waits after `first`; NULL: nowhere */
    pthread_t thread;
    enum hf_result result;
    struct hf_fault fault;
    int64_t took_ms, granted_ms;
};

static void *caller_run(void *arg)
{
    struct caller *c = arg;
    struct hf_lock *lock = NULL, *first = c->first ? take(c->locks, c->first, c->want) : NULL;
    if (c->both)
        pthread_barrier_wait(c->both);
    int64_t from_ms = boot_ms();
    c->result = hf_lock(c->locks, c->name, &c->want, &lock, &c->fault);
    c->granted_ms = boot_ms();
    c->took_ms = c->granted_ms - from_ms;
    if (lock)
        give(lock);
    if (first)
        give(first);
    return NULL;
}

static void caller_start(struct caller *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, caller_run, c), 0);
}

struct line {
    struct hf_locks *locks;
    const char *name;
    size_t n;
};

static bool waits(void *arg)
{
    const struct line *line = arg;
    return waiters_of(line->locks, line->name) == line->n;
}

/* ---- losses ---- */

static void count_loss(struct hf_lock *lock, void *ctx)
{
    (void)lock;
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static bool is_told(void *ctx) { return atomic_load((atomic_int *)ctx) > 0; }

/* The TTL is so long that no renewal comes: what is told is told by the session's stream, which
 * begins with the first renewal and then asks for everything that it may have missed. */
static void a_break_is_told_to_the_holder_at_once(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, ""), *other = open_at(server.port, "");
    atomic_int n_losses[2] = {0};
    struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = 600000, .on_loss = count_loss);
    want.ctx = &n_losses[0];
    struct hf_lock *before = take(locks, "broken/early", want);
    want.ctx = &n_losses[1];
    struct hf_lock *after = take(locks, "broken/late", want);
    assert_int_equal(hf_break(other, "broken/early", NULL), HF_DONE);
    assert_int_equal(hf_renew(after, NULL), HF_DONE);
    assert_true(becomes(is_told, &n_losses[0]));
    assert_int_equal(hf_break(other, "broken/late", NULL), HF_DONE);
    assert_true(becomes(is_told, &n_losses[1]));
    assert_false(hf_lock_held(before));
    assert_false(hf_lock_held(after));
    assert_int_equal(hf_unlock(before, NULL), HF_LOST);
    assert_int_equal(hf_unlock(after, NULL), HF_LOST);
    assert_int_equal(n_losses[0] + n_losses[1], 2);
    hf_close(other);
    hf_close(locks);
}

/* ---- what a process shares ---- */

/* Connections of this machine to the server's port. */
static int connections(int port)
{
    FILE *f = fopen("/proc/self/net/tcp", "re");
    int n = 0;
    assert_non_null(f);
    for (char line[256]; fgets(line, sizeof line, f);) {
        char *at = strchr(line, ':'); /* "  1: 0100007F:1F90 0100007F:8F2A 01 ..." */
        for (int i = 0; at && i < 2; i++)
            at = strchr(at + 1, ':');
        if (at && strtol(at + 1, NULL, 16) == port && strstr(at, " 01 ") == at + 5)
            n++;
    }
    fclose(f);
    return n;
}

static int64_t sessions(int port)
{
    char url[64];
    struct http_client *client = http_client_new(NULL);
    struct http_response response = {0};
    const struct http_request request = {.method = "GET", .url = url};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1/cell", port);
    assert_int_equal(http_client_call(client, &request, &response, NULL), HF_OK);
    const char *at = strstr(response.body.data, "\"sessions\":");
    assert_non_null(at);
    int64_t n = strtoll(at + 11, NULL, 10);
    http_response_close(&response);
    http_client_free(client);
    return n;
}

#define WAITERS 40
/* However slow the server is: requests, requests that wait, a stream, and a keep-alive, which does
 * not wait for any of them. */
#define CONNECTIONS_MAX (8 + 4 + 2)
static void many_locks_and_threads_share_a_session_and_few_connections(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, "");
    struct hf_lock *held[50];
    struct caller waiters[WAITERS];
    int64_t before = sessions(server.port);
    for (int i = 0; i < 50; i++) {
        char name[32];
        snprintf(name, sizeof name, "many-%d", i);
        held[i] = take(locks, name, (struct hf_lock_options)HF_LOCK_OPTIONS_INIT);
    }
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct caller){
            .locks = locks, .name = "many-0", .want = HF_LOCK_OPTIONS(.wait_ms = LONG_MS)};
        caller_start(&waiters[i]);
    }
    struct line line = {locks, "many-0", WAITERS};
    assert_true(becomes(waits, &line));
    assert_int_equal(sessions(server.port), before + 1);
    int n = connections(server.port);
    print_message("%d connections\n", n);
    assert_in_range(n, 1, CONNECTIONS_MAX);
    for (int i = 0; i < 50; i++)
        give(held[i]);
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].result, HF_DONE);
    }
    hf_close(locks);
    assert_int_equal(sessions(server.port), before); /* closing ends it at once */
}

#define CROWD 12
#define ROUNDS 8
#define STREAM_MS 112 /* how late a session's stream tells of a grant */
static void *take_rounds(void *locks)
{
    for (int i = 0; i < ROUNDS; i++)
        give(take(locks, "crowd", (struct hf_lock_options)HF_LOCK_OPTIONS(.wait_ms = LONG_MS)));
    return NULL;
}

/* The few requests of a process that wait at the service belong to the first in the line, however
 * often others come back to its end.  Otherwise most hand-overs would have to wait for the stream. */
TIMELY_CLAIM(a_line_within_a_process_is_served_without_waiting_for_the_stream)
{
    struct hf_locks *locks = open_at(server.port, "");
    pthread_t threads[CROWD];
    int64_t from_ms = boot_ms();
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_rounds, locks), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    int64_t took_ms = boot_ms() - from_ms;
    print_message("%d hand-overs in %d ms\n", CROWD * ROUNDS, (int)took_ms);
    hf_close(locks);
    return took_ms < CROWD * ROUNDS * STREAM_MS / 4;
}

/* ---- deadlocks ---- */

static void a_thread_that_would_wait_for_itself_is_told(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, "");
    struct hf_lock *lock = take(locks, "self", (struct hf_lock_options)HF_LOCK_OPTIONS_INIT);
    struct hf_lock *again = NULL;
    struct hf_fault fault = {0};
    struct hf_lock_options want = HF_LOCK_OPTIONS(.wait_ms = LONG_MS);
    assert_int_equal(hf_lock(locks, "self", &want, &again, &fault), HF_DEADLOCK);
    assert_non_null(strstr(fault.msg, "self"));
    want.wait_ms = 0; /* without a wait it is simply taken */
    assert_int_equal(hf_lock(locks, "self", &want, &again, &fault), HF_TAKEN);
    /* another thread is another party */
    struct caller other = {
        .locks = locks, .name = "self", .want = HF_LOCK_OPTIONS(.wait_ms = LONG_MS)};
    caller_start(&other);
    struct line line = {locks, "self", 1};
    assert_true(becomes(waits, &line));
    give(lock);
    pthread_join(other.thread, NULL);
    assert_int_equal(other.result, HF_DONE);
    hf_close(locks);
}

static void *take_and_end(void *arg)
{
    const struct caller *c = arg;
    return take(c->locks, c->name, c->want);
}

/* A new thread usually has the stack and the pthread_t of one that has ended. */
static void a_thread_is_not_taken_for_one_that_has_ended(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, "");
    struct caller c = {.locks = locks, .name = "inherited", .want = HF_LOCK_OPTIONS_INIT};
    pthread_t first;
    void *lock;
    assert_int_equal(pthread_create(&first, NULL, take_and_end, &c), 0);
    assert_int_equal(pthread_join(first, &lock), 0);
    c.want.wait_ms = 100;
    caller_start(&c);
    pthread_join(c.thread, NULL);
    assert_int_equal(c.result, HF_TAKEN);
    give(lock);
    hf_close(locks);
}

static void threads_that_would_wait_for_each_other_are_told(void **state)
{
    (void)state;
    struct hf_locks *locks[2] = {open_at(server.port, ""), open_at(server.port, "")};
    pthread_barrier_t both;
    pthread_barrier_init(&both, NULL, 2);
    struct caller c[2];
    for (int i = 0; i < 2; i++) {
        c[i] = (struct caller){.locks = locks[i],
                               .first = i ? "cross-b" : "cross-a",
                               .name = i ? "cross-a" : "cross-b",
                               .both = &both,
                               .want =
                                   HF_LOCK_OPTIONS(.wait_ms = LONG_MS, .label = i ? "bob" : "ann")};
        caller_start(&c[i]);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(c[i].thread, NULL);
    int refused = c[0].result == HF_DEADLOCK ? 0 : 1;
    assert_int_equal(c[refused].result, HF_DEADLOCK);
    assert_int_equal(c[1 - refused].result, HF_DONE); /* it waited for the other to give up */
    assert_non_null(strstr(c[refused].fault.msg, "cross-a"));
    assert_non_null(strstr(c[refused].fault.msg, "cross-b"));
    pthread_barrier_destroy(&both);
    hf_close(locks[0]);
    hf_close(locks[1]);
}

/* ---- cached shared locks ---- */

static const struct hf_lock_options shared = {
    .size = sizeof shared, .mode = HF_SHARED, .ttl_ms = TTL_MS};
/* It outlasts any pause of the machine. */
static const struct hf_lock_options lasting = {
    .size = sizeof lasting, .mode = HF_SHARED, .ttl_ms = 5 * TTL_MS};

static struct hf_stats stats_of(struct hf_locks *locks)
{
    struct hf_stats stats = HF_STATS_INIT;
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    return stats;
}

static void a_cached_lock_is_granted_without_a_message_until_a_writer_waits(void **state)
{
    (void)state;
    struct hf_locks *readers = open_at(server.port, "?cache=shared");
    struct hf_locks *writers = open_at(server.port, "");
    for (int i = 0; i < 1000; i++)
        give(take(readers, "cached", lasting));
    assert_int_equal(stats_of(readers).cache_hits, 999);
    assert_int_equal(stats_of(readers).cache_misses, 1);
    assert_int_equal(holders_of(writers, "cached"), 1); /* which nobody uses */
    struct caller writer = {
        .locks = writers, .name = "cached", .want = HF_LOCK_OPTIONS(.wait_ms = LONG_MS)};
    caller_start(&writer);
    pthread_join(writer.thread, NULL);
    assert_int_equal(writer.result, HF_DONE);
    print_message("the writer had it after %d ms\n", (int)writer.took_ms);
    assert_true(writer.took_ms < TTL_MS + 15000);
    struct hf_lock *again = take(readers, "cached", lasting); /* and it is cached anew */
    assert_int_equal(stats_of(readers).cache_misses, 2);
    give(again);
    hf_close(readers);
    hf_close(writers);
}

static void a_cached_lock_in_use_keeps_the_writer_waiting_and_new_readers_behind_it(void **state)
{
    (void)state;
    struct hf_locks *readers = open_at(server.port, "?cache=shared");
    struct hf_locks *writers = open_at(server.port, "");
    struct hf_lock *reader = take(readers, "in use", lasting);
    struct caller writer = {
        .locks = writers, .name = "in use", .want = HF_LOCK_OPTIONS(.wait_ms = LONG_MS)};
    caller_start(&writer);
    struct line line = {writers, "in use", 1};
    assert_true(becomes(waits, &line));
    nap_ms(2 * TTL_MS); /* longer than it takes to hear that it is wanted */
    assert_true(hf_lock_held(reader));
    struct hf_lock *other = NULL;
    assert_int_equal(hf_lock(readers, "in use", &lasting, &other, NULL), HF_TAKEN);
    give(reader);
    pthread_join(writer.thread, NULL);
    assert_int_equal(writer.result, HF_DONE);
    hf_close(readers);
    hf_close(writers);
}

static void a_writer_of_the_same_process_is_not_stopped_by_its_own_cache(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, "?cache=shared");
    give(take(locks, "own cache", shared));
    give(take(locks, "own cache", (struct hf_lock_options)HF_LOCK_OPTIONS(.ttl_ms = TTL_MS)));
    hf_close(locks);
}

/* The client's connections are cut: it grants nothing from its cache when the writer can have the
 * lock, which is within the TTL of the session. */
static void a_client_that_is_cut_off_stops_granting_before_the_writer_gets_the_lock(void **state)
{
    (void)state;
    struct relay *proxy = proxy_start(server.port);
    struct hf_locks *readers = open_hasty(relay_port(proxy), "?cache=shared", 3000);
    struct hf_locks *writers = open_at(server.port, "");
    struct hf_lock *reader = NULL;
    for (int64_t end_ms = boot_ms() + 30000;
         hf_lock(readers, "cut off", &shared, &reader, NULL) != HF_DONE; nap_ms(10))
        assert_true(boot_ms() < end_ms);
    (void)!hf_unlock(reader, NULL);
    relay_set(proxy, RELAY_SWALLOW);
    struct caller writer = {
        .locks = writers, .name = "cut off", .want = HF_LOCK_OPTIONS(.wait_ms = LONG_MS)};
    /* When the reader asked for what it was granted last, since it may be paused after a grant. */
    int64_t last_ms = 0;
    caller_start(&writer);
    for (;; nap_ms(10)) {
        int64_t asked_ms = boot_ms();
        if (hf_lock(readers, "cut off", &shared, &reader, NULL) != HF_DONE)
            break;
        last_ms = asked_ms;
        (void)!hf_unlock(reader, NULL);
    }
    pthread_join(writer.thread, NULL);
    assert_int_equal(writer.result, HF_DONE);
    assert_true(last_ms < writer.granted_ms);
    assert_true(writer.took_ms < TTL_MS + 15000);
    relay_set(proxy, RELAY_PASS);
    hf_close(readers);
    hf_close(writers);
    relay_stop(proxy);
}

/* ---- values ---- */

/* ---- servers that go away ---- */

static void a_restart_of_the_server_goes_unnoticed(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, "");
    atomic_int losses = 0;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = LONG_MS, .on_loss = count_loss, .ctx = &losses);
    struct hf_lock *lock = take(locks, "restart", want);
    int64_t fence = hf_lock_fence(lock);
    holdfastd_server_kill(&server);
    holdfastd_server_again(&server);
    struct hf_fault fault = {0};
    for (int i = 0; hf_renew(lock, &fault) != HF_DONE; i++) {
        assert_true(i < 1500);
        nap_ms(20);
    }
    assert_int_equal(hf_lock_fence(lock), fence);
    assert_int_equal(holders_of(locks, "restart"), 1);
    assert_int_equal(atomic_load(&losses), 0);
    give(lock);
    hf_close(locks);
}

static bool is_lost(void *ctx) { return atomic_load((atomic_int *)ctx) > 0; }

static void a_lock_that_cannot_be_renewed_is_lost_at_its_deadline(void **state)
{
    (void)state;
    struct hf_locks *locks = open_at(server.port, "");
    atomic_int losses = 0;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = TTL_MS, .on_loss = count_loss, .ctx = &losses);
    struct hf_lock *lock = take(locks, "outage", want);
    holdfastd_server_pause(&server);
    int64_t from_ms = boot_ms(), asked_ms = from_ms, held_ms = from_ms;
    for (; hf_lock_held(lock); nap_ms(5), asked_ms = boot_ms())
        held_ms = asked_ms;
    assert_true(held_ms - from_ms <= TTL_MS); /* the service cannot have given it away by then */
    assert_true(becomes(is_lost, &losses));
    assert_int_equal(atomic_load(&losses), 1);
    holdfastd_server_resume(&server);
    (void)!hf_unlock(lock, NULL);
    hf_close(locks);
}

/* The answer to a keep-alive never comes, on a connection that stays open: another one is sent
 * long before the session ends, and its cached lock stays. */
static void a_connection_that_goes_silent_does_not_end_the_session(void **state)
{
    (void)state;
    struct relay *proxy;
    char url[96];
    struct hf_locks *locks = NULL;
    struct hf_lock_options want = shared;
    struct hf_options options = HF_OPTIONS(.timeout_ms = 30000); /* longer than the session lives */
    proxy = proxy_start(server.port);
    snprintf(url, sizeof url, "holdfast://127.0.0.1:%d?cache=shared", relay_port(proxy));
    assert_int_equal(hf_open(url, &options, &locks, NULL), HF_DONE);
    want.ttl_ms = 9000;
    struct hf_lock *lock = take(locks, "silence", want);
    int64_t fence = hf_lock_fence(lock), from_ms = boot_ms();
    give(lock);
    relay_lose_only(proxy, "/keepalive");
    relay_set(proxy, RELAY_SWALLOW_ONCE);
    while (relay_count(proxy).lost == 0) {
        assert_true(boot_ms() - from_ms < LONG_MS);
        nap_ms(5);
    }
    nap_ms(9500); /* what was proved before has ended */
    lock = take(locks, "silence", want);
    assert_int_equal(hf_lock_fence(lock), fence);
    give(lock);
    hf_close(locks);
    relay_stop(proxy);
}

/* Where there is no other server to ask, giving up early gains nothing. */
static void one_server_has_the_whole_timeout_for_its_handshake(void **state)
{
    (void)state;
    int hole;
    char url[64];
    snprintf(url, sizeof url, "holdfasts://127.0.0.1:%d", port_free(&hole));
    struct hf_options options = HF_OPTIONS(.timeout_ms = 1500);
    struct hf_locks *locks = NULL;
    struct hf_fault fault = {0};
    int64_t from_ms = boot_ms();
    assert_int_equal(hf_open(url, &options, &locks, &fault), HF_UNREACHABLE);
    assert_true(boot_ms() - from_ms >= 1450);
    close(hole);
}

static void a_change_of_the_master_goes_unnoticed(void **state)
{
    (void)state;
    char journal[POSTGRES_URL_SIZE], others[64];
    postgres_server_own();
    postgres_server_fresh(journal);
    struct holdfastd_server cell[2] = {{.journal = journal, .may_lose = true},
                                       {.journal = journal, .may_lose = true}};
    for (int i = 0; i < 2; i++)
        assert_true(holdfastd_server_start(&cell[i]));
    snprintf(others, sizeof others, ",127.0.0.1:%d", cell[1].port);
    struct hf_locks *locks = open_at(cell[0].port, others);
    atomic_int losses = 0;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = LONG_MS, .on_loss = count_loss, .ctx = &losses);
    struct hf_lock *lock = take(locks, "master", want);
    int64_t fence = hf_lock_fence(lock);
    holdfastd_server_kill(&cell[0]); /* it started first, and is the master */
    struct hf_fault fault = {0};
    for (int i = 0; hf_renew(lock, &fault) != HF_DONE; i++) {
        assert_true(i < 1500);
        nap_ms(20);
    }
    want.wait_ms = LONG_MS;
    struct hf_lock *other = take(locks, "after", want);
    assert_true(hf_lock_fence(other) > fence);
    assert_int_equal(atomic_load(&losses), 0);
    assert_true(hf_lock_held(lock));
    give(other);
    give(lock);
    hf_close(locks);
    for (int i = 0; i < 2; i++)
        holdfastd_server_stop(&cell[i]);
}

static int start(void **state)
{
    (void)state;
    return holdfastd_server_start(&server) ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    holdfastd_server_stop(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(a_break_is_told_to_the_holder_at_once),
        cmocka_unit_test(many_locks_and_threads_share_a_session_and_few_connections),
        cmocka_unit_test(a_line_within_a_process_is_served_without_waiting_for_the_stream),
        cmocka_unit_test(a_thread_that_would_wait_for_itself_is_told),
        cmocka_unit_test(a_thread_is_not_taken_for_one_that_has_ended),
        cmocka_unit_test(threads_that_would_wait_for_each_other_are_told),
        cmocka_unit_test(a_cached_lock_is_granted_without_a_message_until_a_writer_waits),
        cmocka_unit_test(a_cached_lock_in_use_keeps_the_writer_waiting_and_new_readers_behind_it),
        cmocka_unit_test(a_writer_of_the_same_process_is_not_stopped_by_its_own_cache),
        cmocka_unit_test(a_client_that_is_cut_off_stops_granting_before_the_writer_gets_the_lock),
        cmocka_unit_test(a_restart_of_the_server_goes_unnoticed),
        cmocka_unit_test(a_lock_that_cannot_be_renewed_is_lost_at_its_deadline),
        cmocka_unit_test(a_connection_that_goes_silent_does_not_end_the_session),
        cmocka_unit_test(one_server_has_the_whole_timeout_for_its_handshake),
        cmocka_unit_test(a_change_of_the_master_goes_unnoticed),
    };
    return cmocka_run_group_tests(claims, start, stop);
}
