/* Claims about several servers that think they are the master. */
#include "suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one after the other ---- */

static void a_deposed_master_can_do_nothing(void **state)
{
    struct world *w = *state;
    const struct journal_mandate old = mandate(1, 'A'), new = mandate(2, 'B');
    expect(claim(w->a, &old), JOURNAL_DONE);
    for (int64_t i = 1; i <= 4; i++)
        expect(append(w->a, &old, i, "old"), JOURNAL_DONE);
    take_snapshot(w->a, &old, 1, "one");
    take_snapshot(w->a, &old, 2, "two");
    expect(put_chunk(w->a, &old, 3, 0, "three"), JOURNAL_DONE);
    expect(claim(w->b, &new), JOURNAL_DONE);
    expect(append(w->a, &old, 5, "old"), JOURNAL_DEPOSED);
    expect(put_chunk(w->a, &old, 3, 1, "late"), JOURNAL_DEPOSED);
    expect(point(w->a, &old, 3, 1), JOURNAL_DEPOSED);
    expect(trim(w->a, &old), JOURNAL_DEPOSED);
    expect(claim(w->a, &old), JOURNAL_DEPOSED);
    assert_entries(w->b, 0, (const char *const[]){"old", "old", "old", "old", NULL});
    assert_snapshot(w->b, 2, "two");
    assert_int_equal(head_of(w->b).epoch, 2);
    assert_memory_equal(head_of(w->b).claim, new.claim, sizeof new.claim);
}

/* The claim id tells apart two servers that claimed the same epoch. */
static void a_claim_id_of_another_is_no_mandate(void **state)
{
    struct world *w = *state;
    const struct journal_mandate right = mandate(1, 'A');
    struct journal_mandate wrong = right;
    wrong.claim[JOURNAL_CLAIM_SIZE - 1] ^= 1;
    expect(claim(w->a, &right), JOURNAL_DONE);
    expect(append(w->b, &wrong, 1, "x"), JOURNAL_DEPOSED);
    expect(put_chunk(w->b, &wrong, 1, 0, "x"), JOURNAL_DEPOSED);
    expect(append(w->a, &right, 1, "one"), JOURNAL_DONE);
    expect(point(w->b, &wrong, 1, 0), JOURNAL_DEPOSED);
    expect(trim(w->b, &wrong), JOURNAL_DEPOSED);
    assert_entries(w->b, 0, (const char *const[]){"one", NULL});
}

/* "Deposed" would mean that nothing was done. */
static void an_entry_that_was_stored_is_found_by_a_deposed_master(void **state)
{
    struct world *w = *state;
    const struct journal_mandate old = mandate(1, 'A'), new = mandate(2, 'B');
    expect(claim(w->a, &old), JOURNAL_DONE);
    expect(append(w->a, &old, 1, "one"), JOURNAL_DONE);
    expect(claim(w->b, &new), JOURNAL_DONE);
    expect(append(w->a, &old, 1, "one"), JOURNAL_FOUND);
    expect(append(w->a, &old, 2, "two"), JOURNAL_DEPOSED);
    expect(append(w->b, &new, 2, "two"), JOURNAL_DONE);
    expect(append(w->a, &old, 2, "two"), JOURNAL_DEPOSED);
}

/* The steps of a master's life.  Each returns what the journal said. */
static enum journal_result step_claim(struct journal *j, const struct journal_mandate *m)
{
    return claim(j, m);
}
static enum journal_result step_append_1(struct journal *j, const struct journal_mandate *m)
{
    return append(j, m, 1, "old 1");
}
static enum journal_result step_append_2(struct journal *j, const struct journal_mandate *m)
{
    return append(j, m, 2, "old 2");
}
static enum journal_result step_chunk(struct journal *j, const struct journal_mandate *m)
{
    return put_chunk(j, m, 1, 0, "old");
}
static enum journal_result step_point(struct journal *j, const struct journal_mandate *m)
{
    return point(j, m, 1, 1);
}
static enum journal_result step_chunk_2(struct journal *j, const struct journal_mandate *m)
{
    return put_chunk(j, m, 2, 0, "old");
}
static enum journal_result step_point_2(struct journal *j, const struct journal_mandate *m)
{
    return point(j, m, 2, 1);
}
static enum journal_result step_trim(struct journal *j, const struct journal_mandate *m)
{
    return trim(j, m);
}
static enum journal_result step_append_3(struct journal *j, const struct journal_mandate *m)
{
    return append(j, m, 3, "old 3");
}
static enum journal_result (*const steps[])(struct journal *, const struct journal_mandate *) = {
    step_claim,   step_append_1, step_append_2, step_chunk,    step_point,
    step_chunk_2, step_point_2,  step_trim,     step_append_3,
};
#define STEPS (sizeof steps / sizeof *steps)

/* After `done` steps of the first master another one takes over, and goes on from there.  Then the
 * first one wakes up and does the rest. */
static void wake_up_after(struct world *w, size_t done)
{
    const struct journal_mandate old = mandate(1, 'A'), new = mandate(done ? 2 : 1, 'B');
    for (size_t i = 0; i < done; i++)
        expect(steps[i](w->a, &old), JOURNAL_DONE);
    expect(claim(w->b, &new), JOURNAL_DONE);
    struct journal_head before = head_of(w->b);
    expect(append(w->b, &new, before.last + 1, "new 1"), JOURNAL_DONE);
    for (size_t i = done; i < STEPS; i++)
        expect(steps[i](w->a, &old), JOURNAL_DEPOSED);
    expect(append(w->b, &new, before.last + 2, "new 2"), JOURNAL_DONE);
    assert_entries(w->b, before.last, (const char *const[]){"new 1", "new 2", NULL});
    struct journal_head after = head_of(w->b);
    assert_int_equal(after.epoch, new.epoch);
    assert_int_equal(after.snapshot, before.snapshot);
    take_snapshot(w->b, &new, before.last + 1, "new");
    for (size_t i = done; i < STEPS; i++)
        expect(steps[i](w->a, &old), JOURNAL_DEPOSED);
    assert_snapshot(w->b, before.last + 1, "new");
}

static void a_master_that_wakes_up_between_any_two_steps_is_deposed(void **state)
{
    for (size_t done = 0; done <= STEPS; done++) {
        wake_up_after(*state, done);
        assert_int_equal(world_close(state), 0);
        assert_int_equal(world_open(state), 0);
    }
}

/* Every step is done by another handle, and then once more, as if its answer had been lost. */
static void a_master_that_opens_the_journal_anew_at_every_step_goes_on(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    for (size_t i = 0; i < STEPS; i++) {
        expect(steps[i](w->a, &m), JOURNAL_DONE);
        world_reopen(w);
        enum journal_result repeated = steps[i](w->a, &m);
        assert_true(repeated == JOURNAL_DONE || repeated == JOURNAL_FOUND);
        world_reopen(w);
    }
    assert_entries(w->b, 1, (const char *const[]){"old 2", "old 3", NULL});
    assert_snapshot(w->b, 2, "old");
}

/* ---- at the same time: journals of several servers ---- */

static bool has_threads(const struct world *w)
{
    return w->engine->driver->shared && !w->engine->in_memory;
}

struct party {
    struct journal *j;
    struct journal_mandate m;
    int64_t index;
    pthread_barrier_t *barrier;
    enum journal_result result;
    pthread_t thread;
};

static void *party_claim(void *arg)
{
    struct party *p = arg;
    struct hf_err err = {0};
    pthread_barrier_wait(p->barrier);
    p->result = p->j->driver->claim(p->j, &p->m, "http://party", &err);
    return NULL;
}

static void *party_append(void *arg)
{
    struct party *p = arg;
    struct hf_err err = {0};
    uint8_t id[JOURNAL_ID_SIZE];
    id_make(id, p->index, p->m.claim[0]);
    pthread_barrier_wait(p->barrier);
    p->result = p->j->driver->append(p->j, &p->m, p->index, id, "entry", 5, &err);
    return NULL;
}

/* Lets both do the same at once; returns how many results were `wanted`. */
static int both(struct party p[2], void *(*what)(void *), enum journal_result wanted)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++) {
        p[i].barrier = &barrier;
        assert_int_equal(pthread_create(&p[i].thread, NULL, what, &p[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(p[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    return (p[0].result == wanted) + (p[1].result == wanted);
}

static void of_two_claims_at_once_one_wins(void **state)
{
    struct world *w = *state;
    if (!has_threads(w))
        return;
    for (int64_t epoch = 1; epoch <= 30; epoch++) {
        struct party p[2] = {{.j = w->a, .m = mandate(epoch, 'A')},
                             {.j = w->b, .m = mandate(epoch, 'B')}};
        assert_int_equal(both(p, party_claim, JOURNAL_DONE), 1);
        const struct party *winner = p[0].result == JOURNAL_DONE ? &p[0] : &p[1];
        const struct party *loser = winner == &p[0] ? &p[1] : &p[0];
        expect(loser->result, JOURNAL_DEPOSED);
        assert_memory_equal(head_of(w->a).claim, winner->m.claim, sizeof winner->m.claim);
    }
}

/* An attempt whose answer was lost, and its repetition over another connection. */
static void of_two_attempts_at_once_one_is_stored_and_one_finds_it(void **state)
{
    struct world *w = *state;
    if (!has_threads(w))
        return;
    const struct journal_mandate m = mandate(1, 'A');
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (int64_t index = 1; index <= 100; index++) {
        struct party p[2] = {{.j = w->a, .m = m, .index = index},
                             {.j = w->b, .m = m, .index = index}};
        assert_int_equal(both(p, party_append, JOURNAL_DONE), 1);
        assert_int_equal((p[0].result == JOURNAL_FOUND) + (p[1].result == JOURNAL_FOUND), 1);
        assert_int_equal(head_of(w->b).last, index);
    }
}

struct storm {
    struct journal *j;
    struct journal_mandate m;
    int64_t first;
    _Atomic int64_t acknowledged;
    enum journal_result end;
};

static void *storm_run(void *arg)
{
    struct storm *s = arg;
    struct hf_err err = {0};
    for (int64_t index = s->first;; index++) {
        uint8_t id[JOURNAL_ID_SIZE];
        id_make(id, index, s->m.claim[0]);
        enum journal_result result =
            s->j->driver->append(s->j, &s->m, index, id, s->m.claim, 16, &err);
        if (result != JOURNAL_DONE) {
            s->end = result;
            return NULL;
        }
        atomic_store(&s->acknowledged, index);
    }
}

/* The old master appends as fast as it can while the new one claims.  What the new one reads after
 * its claim is everything that the old one ever stores. */
static void nothing_is_appended_after_a_claim(void **state)
{
    struct world *w = *state;
    if (!has_threads(w))
        return;
    struct random random;
    random_init_seeded(&random, test_seed(5));
    struct journal_mandate m = mandate(1, 'A');
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (int64_t epoch = 2; epoch <= 21; epoch++) {
        struct storm s = {.j = w->a, .m = m, .first = head_of(w->b).last + 1};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, storm_run, &s), 0);
        int64_t enough = s.first + (int64_t)random_below(&random, 20);
        while (atomic_load(&s.acknowledged) < enough)
            rest_ms(1);
        const struct journal_mandate next = mandate(epoch, epoch % 2 ? 'A' : 'B');
        expect(claim(w->b, &next), JOURNAL_DONE);
        int64_t last = head_of(w->b).last;
        expect(append(w->b, &next, last + 1, "new"), JOURNAL_DONE);
        pthread_join(thread, NULL);
        expect(s.end, JOURNAL_DEPOSED);
        assert_true(atomic_load(&s.acknowledged) <= last);
        assert_entries(w->a, last, (const char *const[]){"new", NULL});
        m = next; /* a mandate is data: the other handle goes on with it */
    }
}

const struct CMUnitTest masters_claims[] = {
    CLAIM(a_deposed_master_can_do_nothing),
    CLAIM(a_claim_id_of_another_is_no_mandate),
    CLAIM(an_entry_that_was_stored_is_found_by_a_deposed_master),
    CLAIM(a_master_that_wakes_up_between_any_two_steps_is_deposed),
    CLAIM(a_master_that_opens_the_journal_anew_at_every_step_goes_on),
    CLAIM(of_two_claims_at_once_one_wins),
    CLAIM(of_two_attempts_at_once_one_is_stored_and_one_finds_it),
    CLAIM(nothing_is_appended_after_a_claim),
    CLAIMS_END,
};
