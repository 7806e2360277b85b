/* Claims about snapshots, and about what they make superfluous. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define LARGE_CHUNKS 80 /* 20 MiB */

/* A mastership with this many entries. */
static struct journal_mandate master_of(struct world *w, int64_t n_entries)
{
    const struct journal_mandate m = mandate(1, 'A');
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (int64_t i = 1; i <= n_entries; i++)
        expect(append(w->a, &m, i, "entry"), JOURNAL_DONE);
    return m;
}

static int64_t count_chunks(struct world *w, int64_t otherwise)
{
    return w->engine->count_chunks ? w->engine->count_chunks(w->engine) : otherwise;
}

static void a_snapshot_comes_back_whole(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 3);
    expect(put_chunk(w->a, &m, 2, 0, "be"), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 2, 1, ""), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 2, 2, "gin"), JOURNAL_DONE);
    expect(point(w->a, &m, 2, 3), JOURNAL_DONE);
    world_reopen(w);
    assert_snapshot(w->b, 2, "begin");
    /* `load` appends */
    struct buf bytes = {0};
    int64_t index;
    buf_str(&bytes, "before ");
    expect(w->b->driver->load(w->b, &index, &bytes, &last_err), JOURNAL_DONE);
    assert_int_equal(bytes.len, strlen("before begin"));
    assert_memory_equal(bytes.data, "before begin", bytes.len);
    buf_close(&bytes);
}

static void a_snapshot_may_be_empty(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 2);
    expect(point(w->a, &m, 1, 0), JOURNAL_DONE);
    assert_snapshot(w->b, 1, "");
}

static void chunks_without_a_pointer_are_no_snapshot(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 3);
    struct buf bytes = {0};
    int64_t index;
    expect(put_chunk(w->a, &m, 2, 0, "x"), JOURNAL_DONE);
    expect(w->b->driver->load(w->b, &index, &bytes, &last_err), JOURNAL_NONE);
    assert_int_equal(head_of(w->b).snapshot, 0);
    take_snapshot(w->a, &m, 1, "one");
    expect(put_chunk(w->a, &m, 3, 0, "y"), JOURNAL_DONE);
    assert_snapshot(w->b, 1, "one");
    buf_close(&bytes);
}

static void a_pointer_needs_all_its_chunks(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 5);
    take_snapshot(w->a, &m, 1, "one");
    expect(point(w->a, &m, 3, 1), JOURNAL_DAMAGED);
    expect(put_chunk(w->a, &m, 3, 0, "a"), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 3, 2, "c"), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 2, 1, "b"), JOURNAL_DONE);
    expect(point(w->a, &m, 3, 3), JOURNAL_DAMAGED);
    assert_true(strlen(last_err.msg) > 8);
    assert_snapshot(w->b, 1, "one");
    expect(put_chunk(w->a, &m, 3, 1, "b"), JOURNAL_DONE);
    expect(point(w->a, &m, 3, 3), JOURNAL_DONE);
    assert_snapshot(w->b, 3, "abc");
}

static void a_pointer_leads_to_no_future_entry(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 2);
    expect(put_chunk(w->a, &m, 3, 0, "x"), JOURNAL_DONE);
    expect(point(w->a, &m, 3, 1), JOURNAL_DAMAGED);
    assert_int_equal(head_of(w->b).snapshot, 0);
}

static void a_pointer_never_goes_back(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 5);
    take_snapshot(w->a, &m, 2, "two");
    take_snapshot(w->a, &m, 4, "four");
    expect(point(w->a, &m, 2, 1), JOURNAL_DAMAGED);
    expect(put_chunk(w->a, &m, 3, 0, "three"), JOURNAL_DONE);
    expect(point(w->a, &m, 3, 1), JOURNAL_DAMAGED);
    assert_snapshot(w->b, 4, "four");
}

/* Answers are lost, and the master repeats what it did. */
static void chunks_and_pointers_may_be_repeated(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 6);
    take_snapshot(w->a, &m, 2, "two");
    for (int i = 0; i < 2; i++) {
        expect(put_chunk(w->a, &m, 4, 0, "fo"), JOURNAL_DONE);
        expect(put_chunk(w->a, &m, 4, 1, "ur"), JOURNAL_DONE);
    }
    for (int i = 0; i < 3; i++)
        expect(point(w->a, &m, 4, 2), JOURNAL_DONE);
    assert_snapshot(w->b, 4, "four");
    /* The snapshot before is still there: nothing after it was trimmed. */
    expect(trim(w->a, &m), JOURNAL_DONE);
    struct journal_page page = {0};
    expect(w->b->driver->read(w->b, 2, &page, &last_err), JOURNAL_DONE);
    assert_int_equal(page.entries.n, 4);
    journal_page_close(&page);
}

/* A master was deposed in the middle of a snapshot; the next one writes another there. */
static void a_new_master_replaces_chunks_that_were_left(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 3), next = mandate(2, 'B');
    expect(put_chunk(w->a, &m, 3, 0, "left"), JOURNAL_DONE);
    expect(put_chunk(w->a, &m, 3, 1, "over"), JOURNAL_DONE);
    expect(claim(w->b, &next), JOURNAL_DONE);
    take_snapshot(w->b, &next, 3, "whole");
    assert_snapshot(w->a, 3, "whole");
}

static void the_last_two_snapshots_are_kept(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 12);
    char text[] = "snapshot 0";
    for (int64_t i = 1; i <= 10; i++) {
        text[9] = (char)('a' + i);
        expect(put_chunk(w->a, &m, i, 0, text), JOURNAL_DONE);
        expect(put_chunk(w->a, &m, i, 1, "."), JOURNAL_DONE);
        expect(point(w->a, &m, i, 2), JOURNAL_DONE);
        int64_t expected = i == 1 ? 2 : 4;
        assert_int_equal(count_chunks(w, expected), expected);
    }
    assert_snapshot(w->b, 10, "snapshot k.");
}

static void trim_deletes_what_both_snapshots_have(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 9);
    struct journal_page page = {0};
    expect(trim(w->a, &m), JOURNAL_DONE);
    take_snapshot(w->a, &m, 4, "four");
    expect(trim(w->a, &m), JOURNAL_DONE);
    expect(w->b->driver->read(w->b, 0, &page, &last_err), JOURNAL_DONE);
    assert_int_equal(page.entries.n, 9);
    take_snapshot(w->a, &m, 7, "seven");
    expect(trim(w->a, &m), JOURNAL_DONE);
    for (int64_t after = 0; after < 4; after++) {
        expect(w->b->driver->read(w->b, after, &page, &last_err), JOURNAL_TRIMMED);
        assert_int_equal(page.head.epoch, 1);
        assert_int_equal(page.head.last, 9);
        assert_int_equal(page.head.snapshot, 7);
        assert_int_equal(page.entries.n, 0);
    }
    expect(w->b->driver->read(w->b, 4, &page, &last_err), JOURNAL_DONE);
    assert_int_equal(page.entries.n, 5);
    assert_int_equal(page.entries.v[0].index, 5);
    journal_page_close(&page);
}

/* A repetition of an old append comes late: its index is free again, but its time is over. */
static void an_index_that_was_trimmed_is_never_used_again(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 9);
    take_snapshot(w->a, &m, 5, "five");
    take_snapshot(w->a, &m, 6, "six");
    expect(trim(w->a, &m), JOURNAL_DONE);
    for (int64_t i = 1; i <= 5; i++)
        expect(append(w->a, &m, i, "entry"), JOURNAL_DEPOSED);
    expect(append(w->a, &m, 6, "entry"), JOURNAL_FOUND);
    struct journal_page page = {0};
    expect(w->b->driver->read(w->b, 0, &page, &last_err), JOURNAL_TRIMMED);
    expect(append(w->a, &m, 10, "entry"), JOURNAL_DONE);
    assert_int_equal(head_of(w->b).last, 10);
    journal_page_close(&page);
}

/* Everything that can be trimmed is: the last index is still known. */
static void a_log_of_one_entry_goes_on_after_it(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 2), next = mandate(2, 'B');
    take_snapshot(w->a, &m, 1, "one");
    take_snapshot(w->a, &m, 2, "two");
    expect(trim(w->a, &m), JOURNAL_DONE);
    world_reopen(w);
    assert_int_equal(head_of(w->b).last, 2);
    expect(claim(w->b, &next), JOURNAL_DONE);
    expect(append(w->b, &next, 3, "three"), JOURNAL_DONE);
    assert_entries(w->a, 2, (const char *const[]){"three", NULL});
}

static void a_snapshot_of_twenty_megabytes_comes_back(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = master_of(w, 3);
    const size_t len = LARGE_CHUNKS * JOURNAL_CHUNK_MAX;
    struct random random;
    struct buf bytes = {0};
    int64_t index = 0;
    char *data = hf_alloc(len);
    random_init_seeded(&random, 17);
    for (size_t i = 0; i < LARGE_CHUNKS; i++)
        random_bytes(&random, data + i * JOURNAL_CHUNK_MAX, 1024);
    for (int64_t round = 1; round <= 2; round++) {
        const int64_t n_chunks = round == 1 ? 2 : LARGE_CHUNKS;
        data[0] = (char)round;
        for (int64_t i = 0; i < n_chunks; i++)
            expect(w->a->driver->put_chunk(w->a, &m, round, i, data + (size_t)i * JOURNAL_CHUNK_MAX,
                                           JOURNAL_CHUNK_MAX, &last_err),
                   JOURNAL_DONE);
        expect(point(w->a, &m, round, n_chunks), JOURNAL_DONE);
    }
    expect(w->b->driver->load(w->b, &index, &bytes, &last_err), JOURNAL_DONE);
    assert_int_equal(index, 2);
    assert_int_equal(bytes.len, len);
    assert_memory_equal(bytes.data, data, len);
    buf_close(&bytes);
    free(data);
}

const struct CMUnitTest snapshots_claims[] = {
    CLAIM(a_snapshot_comes_back_whole),
    CLAIM(a_snapshot_may_be_empty),
    CLAIM(chunks_without_a_pointer_are_no_snapshot),
    CLAIM(a_pointer_needs_all_its_chunks),
    CLAIM(a_pointer_leads_to_no_future_entry),
    CLAIM(a_pointer_never_goes_back),
    CLAIM(chunks_and_pointers_may_be_repeated),
    CLAIM(a_new_master_replaces_chunks_that_were_left),
    CLAIM(the_last_two_snapshots_are_kept),
    CLAIM(trim_deletes_what_both_snapshots_have),
    CLAIM(an_index_that_was_trimmed_is_never_used_again),
    CLAIM(a_log_of_one_entry_goes_on_after_it),
    CLAIM(a_snapshot_of_twenty_megabytes_comes_back),
    CLAIMS_END,
};
