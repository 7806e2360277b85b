/* The suite over the simulated journal (tests/sim/sim_journal.h), so that simulations stand on the
 * same ground as the engines; and claims about what a test can do to it. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#include "sim/sim_journal.h"

static struct sim_journal *sim;

static void fresh(struct engine *e)
{
    (void)e;
    sim_journal_free(sim);
    sim = sim_journal_new("suite", true);
}

static void start(struct engine *e) { fresh(e); }

static void stop(struct engine *e)
{
    (void)e;
    sim_journal_free(sim);
}

static void fates_are_what_they_say(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A'), next = mandate(2, 'B');
    expect(claim(w->a, &m), JOURNAL_DONE);
    sim_journal_order(sim, JOURNAL_APPEND, 1, SIM_REFUSED, 0);
    expect(append(w->a, &m, 1, "one"), JOURNAL_UNREACHABLE);
    sim_journal_order(sim, JOURNAL_APPEND, 1, SIM_LOST_NEVER, 0);
    expect(append(w->a, &m, 1, "one"), JOURNAL_UNKNOWN);
    assert_int_equal(head_of(w->a).last, 0);
    sim_journal_order(sim, JOURNAL_APPEND, 2, SIM_LOST_DONE, 0);
    expect(append(w->a, &m, 1, "one"), JOURNAL_DONE);
    expect(append(w->a, &m, 2, "two"), JOURNAL_UNKNOWN);
    expect(append(w->a, &m, 2, "two"), JOURNAL_FOUND);
    /* late, and in time */
    sim_journal_order(sim, JOURNAL_APPEND, 1, SIM_LOST_LATE, 3);
    expect(append(w->a, &m, 3, "three"), JOURNAL_UNKNOWN);
    assert_int_equal(head_of(w->a).last, 2);
    assert_int_equal(head_of(w->a).last, 2);
    expect(append(w->a, &m, 3, "three"), JOURNAL_FOUND);
    /* late, and too late */
    sim_journal_order(sim, JOURNAL_APPEND, 1, SIM_LOST_LATE, 100);
    expect(append(w->a, &m, 4, "four"), JOURNAL_UNKNOWN);
    expect(claim(w->b, &next), JOURNAL_DONE);
    assert_int_equal(sim_journal_run_late(sim), 1);
    assert_int_equal(sim_journal_run_late(sim), 0);
    assert_entries(w->b, 0, (const char *const[]){"one", "two", "three", NULL});
    struct journal_page page = {0};
    sim_journal_order(sim, JOURNAL_READ, 1, SIM_LOST_DONE, 0);
    expect(w->a->driver->read(w->a, 0, &page, &last_err), JOURNAL_UNREACHABLE);
    journal_page_close(&page);
}

static void count_stored(void *context, int64_t epoch, int64_t index, const void *data, size_t len)
{
    (void)data;
    int64_t *sum = context;
    *sum += epoch * 1000 + index * 10 + (int64_t)len;
}

/* Two servers send; what was sent first takes effect last. */
static void steps_can_be_interleaved(void **state)
{
    (void)state;
    static struct journal_call a, b;
    int64_t sum = 0;
    sim_journal_on_stored(sim, count_stored, &sum);
    a = (struct journal_call){.op = JOURNAL_CLAIM, .mandate = mandate(1, 'A'), .url = "http://a"};
    b = (struct journal_call){.op = JOURNAL_CLAIM, .mandate = mandate(1, 'B'), .url = "http://b"};
    struct sim_sent *first = sim_journal_send(sim, &a), *second = sim_journal_send(sim, &b);
    sim_sent_run(second);
    assert_false(sim_sent_has_run(first));
    sim_sent_lose(first, &a);
    expect(a.result, JOURNAL_UNKNOWN);
    sim_sent_run(first);
    sim_sent_run(first);
    sim_sent_answer(first, &a);
    sim_sent_answer(second, &b);
    expect(a.result, JOURNAL_DEPOSED);
    expect(b.result, JOURNAL_DONE);
    sim_sent_free(first);
    sim_sent_free(second);
    /* What was sent is a copy. */
    char text[] = "one";
    b = (struct journal_call){
        .op = JOURNAL_APPEND, .mandate = mandate(1, 'B'), .index = 1, .data = text, .len = 3};
    first = sim_journal_send(sim, &b);
    memset(text, 0, sizeof text);
    sim_sent_run(first);
    sim_sent_free(first);
    assert_int_equal(sum, 1000 + 10 + 3);
    struct journal_head head;
    sim_journal_head(sim, &head);
    assert_int_equal(head.last, 1);
    assert_string_equal(head.url, "http://b");
    assert_int_equal(sim_journal_bytes(sim), 3);
    b = (struct journal_call){.op = JOURNAL_READ};
    first = sim_journal_send(sim, &b);
    sim_sent_run(first);
    sim_sent_answer(first, &b);
    sim_sent_free(first);
    assert_memory_equal(b.page.bytes.data, "one", 3);
    journal_call_close(&b);
    sim_journal_refuse(&b);
    expect(b.result, JOURNAL_UNREACHABLE);
    (void)sim_journal_send(sim, &b); /* on its way for ever: freed with the journal */
}

static const struct CMUnitTest own_claims[] = {
    CLAIM(fates_are_what_they_say),
    CLAIM(steps_can_be_interleaved),
    CLAIMS_END,
};

int main(void)
{
    struct engine e = {.driver = &journal_sim,
                       .url = "sim:suite",
                       .start = start,
                       .stop = stop,
                       .fresh = fresh,
                       .in_memory = true,
                       .n_entries = 100000,
                       .own_claims = own_claims};
    return suite_run(&e);
}
