/* Claims about answers that do not come, engines that stop, and servers that are stopped or killed.
 * Faults between a server and its engine are made by a proxy (support/proxy.h). */
#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/port.h"
#include "support/proxy.h"

#define SHORT_MS 300 /* the time of a call whose answer is withheld */

/* Opens a handle through the proxy, and makes one call, so that its connection stands. */
static struct journal *open_through(struct world *w, struct relay *proxy, int64_t timeout_ms)
{
    char url[256];
    struct journal_page page = {0};
    enum journal_result result;
    w->engine->url_at(w->engine, relay_port(proxy), url, sizeof url);
    struct journal *j = handle_open(url, timeout_ms);
    again(result, j->driver->read(j, 0, &page, &last_err));
    assert_true(result == JOURNAL_DONE || result == JOURNAL_TRIMMED);
    journal_page_close(&page);
    return j;
}

static void await_cuts(struct relay *proxy, uint64_t n)
{
    for (int64_t end_ms = now_ms() + SLOW_MS; relay_count(proxy).lost < n; rest_ms(2))
        assert_true(now_ms() < end_ms);
}

static void expect_no_answer(enum journal_result result, enum journal_result expected)
{
    expect(result, expected);
    assert_true(strlen(last_err.msg) > 8);
    assert_true(last_err.code != HF_OK);
    last_err = (struct hf_err){0};
}

/* ---- answers that were lost ---- */

/* Cuts the connection when the answer to the call comes, and repeats the call. */
#define CUT(proxy, call, repeated)                                                                 \
    do {                                                                                           \
        relay_set(proxy, RELAY_CUT);                                                               \
        expect_no_answer((call), JOURNAL_UNKNOWN);                                                 \
        relay_set(proxy, RELAY_PASS);                                                              \
        enum journal_result result_;                                                               \
        again(result_, (call));                                                                    \
        expect(result_, (repeated));                                                               \
    } while (0)

static void what_was_done_is_found_when_its_answer_was_lost(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    const struct journal_mandate m = mandate(1, 'A');
    if (!w->engine->url_at)
        return;
    proxy = proxy_start(w->engine->port);
    struct journal *j = open_through(w, proxy, SLOW_MS);
    CUT(proxy, claim(j, &m), JOURNAL_FOUND);
    CUT(proxy, append(j, &m, 1, "one"), JOURNAL_FOUND);
    CUT(proxy, append(j, &m, 2, "two"), JOURNAL_FOUND);
    CUT(proxy, put_chunk(j, &m, 1, 0, "one"), JOURNAL_DONE);
    CUT(proxy, point(j, &m, 1, 1), JOURNAL_DONE);
    take_snapshot(j, &m, 2, "two");
    CUT(proxy, trim(j, &m), JOURNAL_DONE);
    assert_entries(w->b, 1, (const char *const[]){"two", NULL});
    assert_snapshot(w->b, 2, "two");
    struct journal_page page = {0};
    relay_set(proxy, RELAY_CUT);
    expect_no_answer(j->driver->read(j, 1, &page, &last_err), JOURNAL_UNREACHABLE);
    relay_set(proxy, RELAY_PASS);
    journal_page_close(&page);
    handle_close(j);
    relay_stop(proxy);
}

static void what_was_never_done_is_done_by_repeating_it(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    const struct journal_mandate m = mandate(1, 'A');
    if (!w->engine->url_at)
        return;
    proxy = proxy_start(w->engine->port);
    expect(claim(w->a, &m), JOURNAL_DONE);
    struct journal *j = open_through(w, proxy, SHORT_MS);
    relay_set(proxy, RELAY_HOLD);
    expect_no_answer(append(j, &m, 1, "one"), JOURNAL_UNKNOWN);
    handle_close(j);
    relay_stop(proxy); /* what it held is gone */
    assert_int_equal(head_of(w->a).last, 0);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    assert_entries(w->b, 0, (const char *const[]){"one", NULL});
}

static void what_is_done_late_is_found(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    const struct journal_mandate m = mandate(1, 'A');
    if (!w->engine->url_at)
        return;
    proxy = proxy_start(w->engine->port);
    expect(claim(w->a, &m), JOURNAL_DONE);
    struct journal *j = open_through(w, proxy, SHORT_MS);
    relay_set(proxy, RELAY_HOLD);
    expect_no_answer(append(j, &m, 1, "one"), JOURNAL_UNKNOWN);
    assert_int_equal(head_of(w->a).last, 0); /* absent, and yet to come */
    relay_set(proxy, RELAY_PASS);
    await_cuts(proxy, 1);
    expect(append(w->a, &m, 1, "one"), JOURNAL_FOUND);
    assert_entries(w->b, 0, (const char *const[]){"one", NULL});
    handle_close(j);
    relay_stop(proxy);
}

/* The first attempt arrives after its repetition was stored, and even trimmed. */
static void a_first_attempt_that_arrives_after_its_repetition_does_nothing(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    const struct journal_mandate m = mandate(1, 'A');
    if (!w->engine->url_at)
        return;
    proxy = proxy_start(w->engine->port);
    expect(claim(w->a, &m), JOURNAL_DONE);
    struct journal *first = open_through(w, proxy, SHORT_MS);
    struct journal *second = open_through(w, proxy, SHORT_MS);
    struct journal *third = open_through(w, proxy, SHORT_MS);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 1, 0, "one"), JOURNAL_DONE);
    relay_set(proxy, RELAY_HOLD);
    expect_no_answer(append(first, &m, 2, "two"), JOURNAL_UNKNOWN);
    expect_no_answer(append(second, &m, 3, "three"), JOURNAL_UNKNOWN);
    expect_no_answer(point(third, &m, 1, 1), JOURNAL_UNKNOWN);
    for (int64_t i = 2; i <= 5; i++)
        expect(append(w->a, &m, i, i == 2 ? "two" : i == 3 ? "three" : "more"), JOURNAL_DONE);
    take_snapshot(w->a, &m, 2, "two");
    take_snapshot(w->a, &m, 4, "four");
    expect(trim(w->a, &m), JOURNAL_DONE);
    relay_set(proxy, RELAY_PASS);
    await_cuts(proxy, 3);
    assert_entries(w->b, 2, (const char *const[]){"three", "more", "more", NULL});
    struct journal_page page = {0};
    expect(w->b->driver->read(w->b, 1, &page, &last_err), JOURNAL_TRIMMED);
    journal_page_close(&page);
    assert_snapshot(w->b, 4, "four");
    handle_close(first);
    handle_close(second);
    handle_close(third);
    relay_stop(proxy);
}

/* Every kind of write is on its way when another server claims, and arrives after that. */
static void what_arrives_after_a_claim_does_nothing(void **state)
{
    struct world *w = *state;
    struct relay *proxy;
    const struct journal_mandate old = mandate(1, 'A'), new = mandate(2, 'B'),
                                 lost = mandate(2, 'C');
    struct journal *j[5];
    if (!w->engine->url_at)
        return;
    proxy = proxy_start(w->engine->port);
    expect(claim(w->a, &old), JOURNAL_DONE);
    for (int64_t i = 1; i <= 4; i++)
        expect(append(w->a, &old, i, "old"), JOURNAL_DONE);
    take_snapshot(w->a, &old, 1, "one");
    take_snapshot(w->a, &old, 2, "two");
    expect(put_chunk(w->a, &old, 3, 0, "three"), JOURNAL_DONE);
    for (int i = 0; i < 5; i++)
        j[i] = open_through(w, proxy, SHORT_MS);
    relay_set(proxy, RELAY_HOLD);
    bool more;
    expect_no_answer(append(j[0], &old, 5, "late"), JOURNAL_UNKNOWN);
    expect_no_answer(put_chunk(j[1], &old, 4, 0, "late"), JOURNAL_UNKNOWN);
    expect_no_answer(point(j[2], &old, 3, 1), JOURNAL_UNKNOWN);
    expect_no_answer(j[3]->driver->trim(j[3], &old, &more, &last_err), JOURNAL_UNKNOWN);
    expect_no_answer(claim(j[4], &lost), JOURNAL_UNKNOWN);
    expect(claim(w->b, &new), JOURNAL_DONE);
    expect(put_chunk(w->b, &new, 4, 0, "four"), JOURNAL_DONE);
    relay_set(proxy, RELAY_PASS);
    await_cuts(proxy, 5);
    assert_entries(w->b, 0, (const char *const[]){"old", "old", "old", "old", NULL});
    assert_snapshot(w->b, 2, "two");
    assert_memory_equal(head_of(w->b).claim, new.claim, sizeof new.claim);
    expect(append(w->b, &new, 5, "new"), JOURNAL_DONE);
    expect(point(w->b, &new, 4, 1), JOURNAL_DONE);
    assert_snapshot(w->b, 4, "four");
    for (int i = 0; i < 5; i++)
        handle_close(j[i]);
    relay_stop(proxy);
}

/* ---- engines that stop ---- */

static void a_frozen_engine_does_not_keep_a_call(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    struct journal_page page = {0};
    enum journal_result result;
    if (!w->engine->freeze)
        return;
    struct journal *j = handle_open(w->engine->url, SHORT_MS);
    again(result, claim(j, &m));
    assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
    again(result, append(j, &m, 1, "one"));
    w->engine->freeze(w->engine, true);
    int64_t from_ms = now_ms();
    expect_no_answer(append(j, &m, 2, "two"), JOURNAL_UNKNOWN);
    assert_in_range(now_ms() - from_ms, SHORT_MS - 50, SHORT_MS + 8000);
    from_ms = now_ms();
    expect_no_answer(j->driver->read(j, 0, &page, &last_err), JOURNAL_UNREACHABLE);
    result = append(j, &m, 2, "two");
    assert_true(result == JOURNAL_UNKNOWN || result == JOURNAL_UNREACHABLE);
    assert_true(now_ms() - from_ms < 2 * SHORT_MS + 8000);
    w->engine->freeze(w->engine, false);
    again(result, append(j, &m, 2, "two"));
    assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
    assert_entries(w->b, 0, (const char *const[]){"one", "two", NULL});
    journal_page_close(&page);
    handle_close(j);
}

static void an_engine_that_is_not_there_is_unreachable(void **state)
{
    struct world *w = *state;
    const struct journal_options options = {
        .clock = &clock_system, .timeout_ms = 1000, .may_lose = true};
    struct journal *j = NULL;
    struct hf_err err = {0};
    char url[256];
    if (!w->engine->url_at)
        return;
    w->engine->url_at(w->engine, port_free(NULL), url, sizeof url);
    assert_int_equal(w->engine->driver->open(url, &options, &j, &err), HF_UNAVAILABLE);
    assert_true(strlen(err.msg) > 8);
    assert_null(j);
}

/* Ends the engine, or where it has no processes the handles, and starts again. */
static void begin_anew(struct world *w)
{
    if (w->engine->restart)
        w->engine->restart(w->engine);
    else
        world_reopen(w);
}

/* The same handles go on after the engine was killed. */
static void what_was_acknowledged_survives_a_restart_at_any_point(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A'), next = mandate(2, 'B');
    enum journal_result result;
    expect(claim(w->a, &m), JOURNAL_DONE);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    begin_anew(w);
    again(result, claim(w->a, &m));
    expect(result, JOURNAL_FOUND);
    expect(append(w->a, &m, 1, "one"), JOURNAL_FOUND);
    expect(append(w->a, &m, 2, "two"), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 2, 0, "t"), JOURNAL_DONE);
    begin_anew(w);
    again(result, put_chunk(w->a, &m, 2, 1, "wo"));
    expect(result, JOURNAL_DONE);
    expect(point(w->a, &m, 2, 2), JOURNAL_DONE);
    begin_anew(w);
    again(result, claim(w->b, &next));
    expect(result, JOURNAL_DONE);
    assert_snapshot(w->b, 2, "two");
    assert_entries(w->b, 0, (const char *const[]){"one", "two", NULL});
    again(result, append(w->a, &m, 3, "x"));
    expect(result, JOURNAL_DEPOSED);
    expect(append(w->b, &next, 3, "three"), JOURNAL_DONE);
}

/* ---- servers that stop ---- */

/* Reads what an appender has printed, up to this index or to its end; returns the last index. */
static int64_t acknowledged(FILE *out, int64_t enough)
{
    int64_t last = 0;
    for (char line[64]; last < enough && fgets(line, sizeof line, out);)
        last = strtoll(line, NULL, 10);
    return last;
}

/* A master is stopped at any moment, most of them in the middle of an append of many packets.  The
 * other one may have to claim twice: the first claim ends the session that is in its way, after
 * most of its time. */
static void a_stopped_master_does_not_stop_another(void **state)
{
    struct world *w = *state;
    struct random random;
    if (!w->engine->driver->shared || w->engine->in_memory)
        return;
    random_init_seeded(&random, test_seed(9));
    struct journal *j = handle_open(w->engine->url, 2000);
    for (int64_t epoch = 1; epoch <= 9; epoch += 2) {
        FILE *out;
        enum journal_result result;
        int pid = appender_start(w->engine->url, epoch, JOURNAL_CHUNK_MAX, &out);
        int64_t seen = acknowledged(out, head_of(w->b).last + 3);
        rest_ms((int64_t)random_below(&random, 10));
        assert_int_equal(kill(pid, SIGSTOP), 0);
        const struct journal_mandate m = mandate(epoch + 1, 'B');
        again(result, claim(j, &m));
        assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
        int64_t last = head_of(w->b).last;
        assert_true(seen <= last);
        expect(append(w->b, &m, last + 1, "new"), JOURNAL_DONE);
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_true(acknowledged(out, INT64_MAX) <= last);
        assert_int_equal(process_wait(pid), 3); /* deposed */
        assert_entries(w->a, last, (const char *const[]){"new", NULL});
        (void)fclose(out);
    }
    handle_close(j);
}

static void what_a_killed_master_acknowledged_is_there(void **state)
{
    struct world *w = *state;
    if (w->engine->in_memory)
        return;
    for (int64_t epoch = 1; epoch <= 3; epoch++) {
        FILE *out;
        int64_t before = head_of(w->a).last;
        world_close(state);
        int pid = appender_start(w->engine->url, epoch, 3000, &out);
        int64_t seen = acknowledged(out, before + 20 * epoch);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(process_wait(pid), -SIGKILL);
        int64_t more = acknowledged(out, INT64_MAX);
        (void)fclose(out);
        world_reopen(w);
        struct journal_head head = head_of(w->a);
        assert_int_equal(head.epoch, epoch);
        assert_true(seen > before);
        assert_in_range(head.last, more > seen ? more : seen, (more > seen ? more : seen) + 1);
    }
}

const struct CMUnitTest faults_claims[] = {
    CLAIM(what_was_done_is_found_when_its_answer_was_lost),
    CLAIM(what_was_never_done_is_done_by_repeating_it),
    CLAIM(what_is_done_late_is_found),
    CLAIM(a_first_attempt_that_arrives_after_its_repetition_does_nothing),
    CLAIM(what_arrives_after_a_claim_does_nothing),
    CLAIM(a_frozen_engine_does_not_keep_a_call),
    CLAIM(an_engine_that_is_not_there_is_unreachable),
    CLAIM(what_was_acknowledged_survives_a_restart_at_any_point),
    CLAIM(a_stopped_master_does_not_stop_another),
    CLAIM(what_a_killed_master_acknowledged_is_there),
    CLAIMS_END,
};
