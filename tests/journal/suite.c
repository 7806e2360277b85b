/* The suite's runner and what its claims share.  See suite.h. */
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/sim_journal.h"

struct hf_err last_err;
static struct world the_world;

/* ---- handles ---- */

struct journal *handle_open(const char *url, int64_t timeout_ms)
{
    const struct journal_options options = {
        .clock = &clock_system, .timeout_ms = timeout_ms, .may_lose = true};
    struct journal *j = NULL;
    struct hf_err err = {0};
    for (int64_t end_ms = now_ms() + SLOW_MS;
         the_world.engine->driver->open(url, &options, &j, &err) != HF_OK; rest_ms(10))
        if (now_ms() > end_ms)
            fail_msg("%s", err.msg);
    assert_ptr_equal(j->driver, the_world.engine->driver);
    return j;
}

void handle_close(struct journal *j)
{
    if (j)
        j->driver->close(j);
}

static void handles_open(struct world *w)
{
    w->a = handle_open(w->engine->url, SLOW_MS);
    w->b = w->engine->driver->shared ? handle_open(w->engine->url, SLOW_MS) : w->a;
}

static void handles_close(struct world *w)
{
    if (w->b != w->a)
        handle_close(w->b);
    handle_close(w->a);
    w->a = w->b = NULL;
}

void world_reopen(struct world *w)
{
    handles_close(w);
    handles_open(w);
}

int world_open(void **state)
{
    the_world.engine->fresh(the_world.engine);
    handles_open(&the_world);
    *state = &the_world;
    return 0;
}

int world_close(void **state)
{
    handles_close(*state);
    return 0;
}

/* ---- calls ---- */

struct journal_mandate mandate(int64_t epoch, uint8_t who)
{
    struct journal_mandate m = {.epoch = epoch};
    memset(m.claim, who, sizeof m.claim);
    return m;
}

void id_make(uint8_t ret[JOURNAL_ID_SIZE], int64_t index, uint8_t who)
{
    memset(ret, who, JOURNAL_ID_SIZE);
    memcpy(ret, &index, sizeof index);
}

enum journal_result claim(struct journal *j, const struct journal_mandate *m)
{
    return j->driver->claim(j, m, "http://a", &last_err);
}

enum journal_result append_bytes(struct journal *j, const struct journal_mandate *m, int64_t index,
                                 const void *data, size_t len)
{
    uint8_t id[JOURNAL_ID_SIZE];
    id_make(id, index, m->claim[0]);
    return j->driver->append(j, m, index, id, data, len, &last_err);
}

enum journal_result append(struct journal *j, const struct journal_mandate *m, int64_t index,
                           const char *text)
{
    return append_bytes(j, m, index, text, strlen(text));
}

enum journal_result put_chunk(struct journal *j, const struct journal_mandate *m, int64_t index,
                              int64_t no, const char *text)
{
    return j->driver->put_chunk(j, m, index, no, text, strlen(text), &last_err);
}

enum journal_result point(struct journal *j, const struct journal_mandate *m, int64_t index,
                          int64_t n_chunks)
{
    return j->driver->point(j, m, index, n_chunks, &last_err);
}

enum journal_result trim(struct journal *j, const struct journal_mandate *m)
{
    enum journal_result result;
    bool more = false;
    for (int i = 0; i < 1000; i++)
        if ((result = j->driver->trim(j, m, &more, &last_err)) != JOURNAL_DONE || !more)
            return result;
    fail_msg("trim has no end");
    return JOURNAL_DAMAGED;
}

void take_snapshot(struct journal *j, const struct journal_mandate *m, int64_t index,
                   const char *text)
{
    expect(put_chunk(j, m, index, 0, text), JOURNAL_DONE);
    expect(point(j, m, index, 1), JOURNAL_DONE);
}

bool must_repeat(enum journal_result result, int64_t end_ms)
{
    return (result == JOURNAL_UNKNOWN || result == JOURNAL_UNREACHABLE) && now_ms() < end_ms;
}

void expect_at(enum journal_result result, enum journal_result expected, const char *file, int line)
{
    if (result == expected)
        return;
    print_error("%s, not %s: %s\n", journal_result_name(result), journal_result_name(expected),
                last_err.msg);
    _fail(file, line);
}

struct journal_head head_of(struct journal *j)
{
    struct journal_page page = {0};
    expect(j->driver->read(j, INT64_C(1) << 40, &page, &last_err), JOURNAL_DONE);
    assert_int_equal(page.entries.n, 0);
    journal_page_close(&page);
    return page.head;
}

void assert_entries(struct journal *j, int64_t after, const char *const *texts)
{
    struct journal_page page = {0};
    size_t n = 0;
    expect(j->driver->read(j, after, &page, &last_err), JOURNAL_DONE);
    while (texts[n])
        n++;
    assert_int_equal(page.entries.n, n);
    assert_int_equal(page.head.last, after + (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        const struct journal_entry *e = &page.entries.v[i];
        assert_int_equal(e->index, after + 1 + (int64_t)i);
        assert_int_equal(e->len, strlen(texts[i]));
        assert_memory_equal(page.bytes.data + e->at, texts[i], e->len);
    }
    journal_page_close(&page);
}

void assert_snapshot(struct journal *j, int64_t index, const char *text)
{
    struct buf bytes = {0};
    int64_t found = 0;
    expect(j->driver->load(j, &found, &bytes, &last_err), JOURNAL_DONE);
    assert_int_equal(found, index);
    assert_int_equal(bytes.len, strlen(text));
    assert_memory_equal(bytes.data, text, bytes.len);
    assert_int_equal(head_of(j).snapshot, index);
    buf_close(&bytes);
}

/* ---- time and processes ---- */

int64_t now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

void rest_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0)
        ;
}

/* The child ends with the test, however the test ends. */
int appender_start(const char *url, int64_t epoch, size_t entry_bytes, FILE **ret_out)
{
    char program[512], number[32], bytes[32];
    ssize_t len = readlink("/proc/self/exe", program, 400);
    assert_true(len > 0 && len < 400);
    program[len] = '\0';
    (void)snprintf(strrchr(program, '/') + 1, 100, "appender");
    (void)snprintf(number, sizeof number, "%lld", (long long)epoch);
    (void)snprintf(bytes, sizeof bytes, "%zu", entry_bytes);
    char *plain = hf_strndup(url, strcspn(url, "?")); /* without a file system of the tests */
    const char *const argv[] = {program, plain, number, bytes, NULL};
    int out, pid = process_start(argv, &out);
    free(plain);
    *ret_out = fdopen(out, "r");
    assert_non_null(*ret_out);
    return pid;
}

/* ---- the runner ---- */

static int engine_start(void **state)
{
    (void)state;
    the_world.engine->start(the_world.engine);
    return 0;
}

static int engine_stop(void **state)
{
    (void)state;
    the_world.engine->stop(the_world.engine);
    return 0;
}

int suite_run(struct engine *e)
{
    const struct CMUnitTest *const parts[] = {entries_claims, snapshots_claims, masters_claims,
                                              model_claims,   faults_claims,    e->own_claims};
    VEC(struct CMUnitTest) all = {0};
    const char *only = getenv("HF_ONLY"); /* a part of a claim's name */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const struct CMUnitTest *t = parts[i]; t && t->name; t++)
            if (!only || strstr(t->name, only))
                *vec_push(&all) = *t;
    signal(SIGPIPE, SIG_IGN);
    the_world.engine = e;
    int failed = _cmocka_run_group_tests(e->driver->name, all.v, all.n, engine_start, engine_stop);
    vec_close(&all);
    return failed;
}
