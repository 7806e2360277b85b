/* Claims about the etcd journal that take long: members of a cluster of three that are lost and
 * stopped in the middle of appends, and twice the space quota written.  `make soak` runs this, and
 * `make test` does not. */
#include "support/fixtures.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/wait.h"
#include "cell/journal.h"
#include "support/etcd_server.h"

#define MEMBERS 3
#define PATIENCE_MS 60000

static struct random dice;

static int64_t now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

static struct journal *must_open(const char *url)
{
    struct journal *j = NULL;
    struct hf_err err = {0};
    struct journal_options options = {.clock = &clock_system};
    for (int64_t end_ms = now_ms() + PATIENCE_MS; !j && now_ms() < end_ms;)
        if (journal_etcd.open(url, &options, &j, &err) != HF_OK)
            wait_sleep_us(100000);
    if (!j)
        print_error("%s\n", err.msg);
    assert_non_null(j);
    return j;
}

static struct journal_mandate must_claim(struct journal *j, int64_t epoch)
{
    struct journal_mandate m = {.epoch = epoch};
    struct hf_err err;
    enum journal_result result = JOURNAL_UNREACHABLE;
    random_bytes(&dice, m.claim, sizeof m.claim);
    for (int64_t end_ms = now_ms() + PATIENCE_MS;
         (result == JOURNAL_UNREACHABLE || result == JOURNAL_UNKNOWN) && now_ms() < end_ms;)
        result = journal_etcd.claim(j, &m, "http://one:7000", &err);
    assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
    return m;
}

/* ---- lost members ---- */

struct ensemble {
    struct etcd_server members[MEMBERS];
    char url[256];
};

static void start(struct ensemble *s)
{
    *s = (struct ensemble){0};
    assert_true(etcd_cluster_start(s->members, MEMBERS));
    size_t len = (size_t)snprintf(s->url, sizeof s->url, "etcd://");
    for (size_t i = 0; i < MEMBERS; i++)
        len += (size_t)snprintf(s->url + len, sizeof s->url - len, "%s127.0.0.1:%d", i ? "," : "",
                                s->members[i].port);
}

static void stop(struct ensemble *s)
{
    for (size_t i = 0; i < MEMBERS; i++)
        etcd_server_stop(&s->members[i]);
}

/* The member that leads; waits until there is one. */
static struct etcd_server *leader_of(struct ensemble *s)
{
    for (int64_t end_ms = now_ms() + PATIENCE_MS; now_ms() < end_ms; wait_sleep_us(20000))
        for (size_t i = 0; i < MEMBERS; i++) {
            char answer[1024];
            if (!s->members[i].pid || etcd_server_ask(&s->members[i], "/v3/maintenance/status",
                                                      "{}", answer, sizeof answer) != 200)
                continue;
            json_t *json = json_loads(answer, 0, NULL);
            const char *leader = json_string_value(json_object_get(json, "leader"));
            const char *self =
                json_string_value(json_object_get(json_object_get(json, "header"), "member_id"));
            bool leads = leader && self && strcmp(leader, self) == 0;
            json_decref(json);
            if (leads)
                return &s->members[i];
        }
    fail_msg("no leader");
    return NULL;
}

/* A master that appends until it is told to stop, as a node does: an append whose answer was lost
 * is repeated until it is resolved. */
struct appender {
    pthread_t thread;
    const char *url;
    struct journal_mandate m;
    atomic_bool stop;
    _Atomic int64_t last; /* that is known to be stored */
    int64_t first;        /* that it wrote */
    int64_t n_unknown, n_found;
    enum journal_result result; /* how it ended */
};

static void id_of(const struct appender *a, int64_t index, uint8_t ret[JOURNAL_ID_SIZE])
{
    memcpy(ret, a->m.claim, JOURNAL_ID_SIZE);
    memcpy(ret, &index, sizeof index);
}

static void *append_on(void *arg)
{
    struct appender *a = arg;
    struct journal *j = must_open(a->url);
    a->result = JOURNAL_DONE;
    while (!atomic_load(&a->stop)) {
        char text[64];
        struct hf_err err;
        uint8_t id[JOURNAL_ID_SIZE];
        int64_t index = atomic_load(&a->last) + 1;
        int len =
            snprintf(text, sizeof text, "%lld of %lld", (long long)index, (long long)a->m.epoch);
        id_of(a, index, id);
        enum journal_result result =
            journal_etcd.append(j, &a->m, index, id, text, (size_t)len, &err);
        a->n_unknown += result == JOURNAL_UNKNOWN;
        a->n_found += result == JOURNAL_FOUND;
        if (result == JOURNAL_DONE || result == JOURNAL_FOUND)
            atomic_store(&a->last, index);
        else if (result != JOURNAL_UNKNOWN && result != JOURNAL_UNREACHABLE) {
            a->result = result;
            break;
        }
    }
    journal_etcd.close(j);
    return NULL;
}

static void await_index(struct appender *a, int64_t index)
{
    int64_t end_ms = now_ms() + PATIENCE_MS;
    while (atomic_load(&a->last) < index && now_ms() < end_ms)
        wait_sleep_us(5000);
    assert_true(atomic_load(&a->last) >= index);
}

static void await_more(struct appender *a, int64_t n) { await_index(a, atomic_load(&a->last) + n); }

/* Every entry from 1 on is there, and those of `a` as it has written them. */
static void assert_whole(struct journal *j, const struct appender *a)
{
    struct journal_page page = {0};
    struct hf_err err = {0};
    int64_t at = 0;
    for (;;) {
        enum journal_result result = JOURNAL_UNREACHABLE;
        for (int64_t end_ms = now_ms() + PATIENCE_MS;
             result == JOURNAL_UNREACHABLE && now_ms() < end_ms;)
            result = journal_etcd.read(j, at, &page, &err);
        assert_int_equal(result, JOURNAL_DONE);
        if (page.entries.n == 0)
            break;
        for (size_t i = 0; i < page.entries.n; i++) {
            char text[64];
            int len =
                snprintf(text, sizeof text, "%lld of %lld", (long long)++at, (long long)a->m.epoch);
            assert_int_equal(page.entries.v[i].index, at);
            if (at < a->first || at > atomic_load(&a->last))
                continue;
            assert_int_equal(page.entries.v[i].len, len);
            assert_memory_equal(page.bytes.data + page.entries.v[i].at, text, (size_t)len);
        }
    }
    assert_true(at >= atomic_load(&a->last));
    assert_int_equal(page.head.last, at);
    journal_page_close(&page);
}

static void entries_survive_leaders_that_are_killed_and_stopped(void **state)
{
    (void)state;
    struct ensemble s;
    start(&s);
    struct journal *j = must_open(s.url);
    struct appender a = {.url = s.url, .m = must_claim(j, 1), .first = 1};
    assert_int_equal(pthread_create(&a.thread, NULL, append_on, &a), 0);
    for (int round = 0; round < 4; round++) {
        await_more(&a, 100);
        struct etcd_server *leader = leader_of(&s);
        if (round % 2 == 0)
            etcd_server_kill(leader);
        else
            etcd_server_pause(leader);
        await_more(&a, 50); /* the other two go on */
        if (round % 2 == 0)
            etcd_server_again(leader, true);
        else
            etcd_server_resume(leader);
    }
    /* All of them at once. */
    for (size_t i = 0; i < MEMBERS; i++)
        etcd_server_kill(&s.members[i]);
    for (size_t i = 0; i < MEMBERS; i++)
        etcd_server_again(&s.members[i], false);
    await_more(&a, 50);
    atomic_store(&a.stop, true);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.result, JOURNAL_DONE);
    assert_whole(j, &a);
    print_message("%lld entries, %lld answers lost, %lld of them stored\n", (long long)a.last,
                  (long long)a.n_unknown, (long long)a.n_found);
    journal_etcd.close(j);
    stop(&s);
}

static void a_claim_ends_the_appends_of_the_master_before(void **state)
{
    (void)state;
    struct ensemble s;
    start(&s);
    struct journal *j = must_open(s.url);
    struct journal_page page = {0};
    struct hf_err err;
    struct appender before = {.url = s.url, .m = must_claim(j, 1), .first = 1};
    assert_int_equal(pthread_create(&before.thread, NULL, append_on, &before), 0);
    for (int64_t epoch = 2; epoch < 8; epoch++) {
        await_more(&before, 20);
        struct etcd_server *leader = leader_of(&s);
        if (epoch % 2)
            etcd_server_pause(leader);
        struct appender next = {.url = s.url, .m = must_claim(j, epoch)};
        enum journal_result result = JOURNAL_UNREACHABLE;
        while (result == JOURNAL_UNREACHABLE)
            result = journal_etcd.read(j, 0, &page, &err);
        assert_int_equal(result, JOURNAL_DONE);
        assert_int_equal(page.head.epoch, epoch);
        next.first = page.head.last + 1;
        atomic_store(&next.last, page.head.last);
        pthread_join(before.thread, NULL); /* it ends by itself */
        assert_int_equal(before.result, JOURNAL_DEPOSED);
        assert_true(page.head.last >= atomic_load(&before.last));
        before = next;
        assert_int_equal(pthread_create(&before.thread, NULL, append_on, &before), 0);
        if (epoch % 2)
            etcd_server_resume(leader);
    }
    await_more(&before, 20);
    atomic_store(&before.stop, true);
    pthread_join(before.thread, NULL);
    assert_int_equal(before.result, JOURNAL_DONE);
    assert_whole(j, &before);
    journal_page_close(&page);
    journal_etcd.close(j);
    stop(&s);
}

/* ---- the space quota ---- */

#define QUOTA_MB 64
#define ENTRY_BYTES ((size_t)8 * 1024)
#define ENTRIES_A_SNAPSHOT 500
#define CHUNKS 8

static void must_trim(struct journal *j, const struct journal_mandate *m)
{
    struct hf_err err = {0};
    for (bool more = true; more;) {
        enum journal_result result = journal_etcd.trim(j, m, &more, &err);
        if (result != JOURNAL_DONE)
            print_error("%s\n", err.msg);
        assert_int_equal(result, JOURNAL_DONE);
    }
}

static void twice_the_quota_is_written_without_filling_etcd(void **state)
{
    (void)state;
    struct etcd_server server = {.quota_mb = QUOTA_MB};
    char url[64], *data = hf_alloc(JOURNAL_CHUNK_MAX);
    assert_true(etcd_server_start(&server));
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", server.port);
    struct journal *j = must_open(url);
    struct journal_mandate m = must_claim(j, 1);
    struct hf_err err = {0};
    size_t written = 0;
    random_bytes(&dice, data, JOURNAL_CHUNK_MAX);
    for (int64_t index = 1; written < (size_t)2 * QUOTA_MB << 20; index++) {
        uint8_t id[JOURNAL_ID_SIZE];
        random_bytes(&dice, id, sizeof id);
        enum journal_result result = journal_etcd.append(j, &m, index, id, data, ENTRY_BYTES, &err);
        if (result != JOURNAL_DONE)
            print_error("after %zu MB: %s\n", written >> 20, err.msg);
        assert_int_equal(result, JOURNAL_DONE);
        written += ENTRY_BYTES;
        if (index % ENTRIES_A_SNAPSHOT)
            continue;
        for (int64_t no = 0; no < CHUNKS; no++)
            assert_int_equal(
                journal_etcd.put_chunk(j, &m, index, no, data, JOURNAL_CHUNK_MAX, &err),
                JOURNAL_DONE);
        assert_int_equal(journal_etcd.point(j, &m, index, CHUNKS, &err), JOURNAL_DONE);
        written += CHUNKS * JOURNAL_CHUNK_MAX;
        must_trim(j, &m);
    }
    print_message("%zu MB written, the database has %lld MB\n", written >> 20,
                  (long long)etcd_server_metric(&server, "etcd_mvcc_db_total_size_in_bytes") >> 20);
    journal_etcd.close(j);
    etcd_server_stop(&server);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_survive_leaders_that_are_killed_and_stopped),
        cmocka_unit_test(a_claim_ends_the_appends_of_the_master_before),
        cmocka_unit_test(twice_the_quota_is_written_without_filling_etcd),
    };
    random_init_system(&dice);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
