/* Claims about the feed.  A reader asks for the changes after some seq: folding them onto the state
 * of that seq gives the present state (I13), or the reader is told to read the snapshot.  The
 * memory of a feed has a bound. */
#include "support/paper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEATS 40
#define AREAS 3
#define ITEMS (SEATS + AREAS)

/* An event that only these tests change, and its state at every seq. */
struct history {
    struct event *e;
    struct random random;
    VEC(uint32_t) states; /* ITEMS states for each seq from `first` on */
    int64_t first;
};

static void history_init(struct history *h, uint64_t seed, int64_t seq, uint32_t len_max)
{
    memset(h, 0, sizeof *h);
    struct event_def *def = def_hall(1, SEATS);
    def_area(def, "Floor", 1, 1000);
    def_area(def, "Lawn", 1, 1000);
    def_area(def, "Moon", 1, 1000);
    def->id.key = 1;
    struct clock_row clock = {.event = 1, .seq = seq, .now = T0_MS};
    h->e = event_new(def, &clock);
    feed_close(&h->e->feed);
    feed_init(&h->e->feed, seq, len_max);
    h->first = seq;
    random_init_seeded(&h->random, seed);
    for (int i = 0; i < ITEMS; i++)
        *vec_push(&h->states) = 0;
}

static void history_close(struct history *h)
{
    event_free(h->e);
    vec_close(&h->states);
}

static uint32_t *state_at(struct history *h, int64_t seq)
{
    return &h->states.v[(size_t)(seq - h->first) * ITEMS];
}

/* Publishes a batch of `rows` audit rows that changes at most `n` items. */
static void batch(struct history *h, int64_t rows, size_t n)
{
    int64_t before = h->e->shown.seq, seq = before + rows;
    bool touched[ITEMS] = {false};
    uint32_t state[ITEMS];
    memcpy(state, state_at(h, before), sizeof state);
    lock_take(&h->e->lock);
    for (size_t i = 0; i < n; i++) {
        uint32_t item = (uint32_t)random_below(&h->random, ITEMS);
        if (touched[item])
            continue;
        touched[item] = true;
        bool is_area = item >= SEATS;
        state[item] = (uint32_t)random_below(&h->random, is_area ? 1000 : 4);
        feed_put(&h->e->feed, &(struct change){.seq = seq,
                                               .item = is_area ? item - SEATS : item,
                                               .state = state[item],
                                               .kind = is_area ? CHANGE_AREA : CHANGE_SEAT});
    }
    h->e->shown.seq = seq;
    lock_give(&h->e->lock);
    for (int64_t s = before + 1; s <= seq; s++)
        for (int i = 0; i < ITEMS; i++)
            *vec_push(&h->states) = s == seq ? state[i] : state_at(h, before)[i];
}

/* Reads the changes after `after`, folds them and compares the result with the present state. */
static void assert_replay(struct history *h, int64_t after, struct changes *c)
{
    uint32_t state[ITEMS];
    assert_true(event_changes(h->e, after, c));
    assert_int_equal(c->seq, h->e->shown.seq);
    memcpy(state, state_at(h, after), sizeof state);
    for (size_t i = 0; i < c->list.n; i++) {
        const struct change *x = &c->list.v[i];
        assert_true(x->seq > after && x->seq <= c->seq);
        bool is_area = x->kind == CHANGE_AREA;
        assert_true(x->item < (is_area ? AREAS : SEATS));
        if (i > 0) { /* each item once, seats before areas, ascending */
            const struct change *before = &c->list.v[i - 1];
            assert_true(before->kind < x->kind ||
                        (before->kind == x->kind && before->item < x->item));
        }
        state[is_area ? SEATS + x->item : x->item] = x->state;
    }
    assert_memory_equal(state, state_at(h, h->e->shown.seq), sizeof state);
}

static void replay_from_every_seq_gives_the_final_state(void **state)
{
    (void)state;
    struct history h;
    struct changes c = {0};
    uint64_t seed = test_seed(11);
    print_message("seed %lu\n", (unsigned long)seed);
    history_init(&h, seed, 17, 1 << 20);
    for (int i = 0; i < 300; i++) {
        batch(&h, 1 + (int64_t)random_below(&h.random, 9), random_below(&h.random, 12));
        assert_replay(
            &h, h.first + (int64_t)random_below(&h.random, (uint64_t)(h.e->shown.seq - 16)), &c);
    }
    for (int64_t after = h.first; after <= h.e->shown.seq; after++)
        assert_replay(&h, after, &c);
    changes_close(&c);
    history_close(&h);
}

static void after_wrapping_each_seq_is_replayed_or_too_old(void **state)
{
    (void)state;
    struct history h;
    struct changes c = {0};
    history_init(&h, test_seed(12), 0, 50); /* rounded up to 64 */
    for (int i = 0; i < 400; i++) {
        batch(&h, 1 + (int64_t)random_below(&h.random, 4), random_below(&h.random, 9));
        assert_true(h.e->feed.n <= 64 && h.e->feed.cap <= 64);
        int64_t floor = h.e->feed.floor;
        for (int64_t after = h.first; after < floor; after += 1 + after / 16)
            assert_false(event_changes(h.e, after, &c));
        for (int64_t after = floor; after <= h.e->shown.seq; after++)
            assert_replay(&h, after, &c);
    }
    assert_true(h.e->feed.floor > 0);
    /* The feed forgets only as many changes as it needs room for. */
    assert_int_equal(h.e->feed.n, 64);
    changes_close(&c);
    history_close(&h);
}

static void a_batch_larger_than_the_ring_leaves_only_now(void **state)
{
    (void)state;
    struct history h;
    struct changes c = {0};
    history_init(&h, test_seed(13), 5, 8);
    batch(&h, 3, 100);
    assert_int_equal(h.e->feed.n, 8);
    assert_false(event_changes(h.e, 5, &c));
    assert_false(event_changes(h.e, 7, &c));
    assert_replay(&h, 8, &c);
    assert_int_equal(c.list.n, 0);
    batch(&h, 1, 1);
    assert_replay(&h, 8, &c);
    changes_close(&c);
    history_close(&h);
}

static void what_lies_beyond_now_is_a_stranger_s_seq(void **state)
{
    (void)state;
    struct history h;
    struct changes c = {.seq = 77};
    history_init(&h, test_seed(14), 5, 64);
    assert_false(event_changes(h.e, 6, &c));
    assert_false(event_changes(h.e, INT64_MAX, &c));
    assert_false(event_changes(h.e, 4, &c));
    assert_false(event_changes(h.e, -1, &c));
    assert_int_equal(c.seq, 77);
    assert_true(event_changes(h.e, 5, &c));
    assert_int_equal(c.seq, 5);
    assert_int_equal(c.list.n, 0);
    changes_close(&c);
    history_close(&h);
}

static void rows_that_change_no_seat_move_the_seq_alone(void **state)
{
    (void)state;
    struct history h;
    struct changes c = {0};
    history_init(&h, test_seed(15), 0, 64);
    batch(&h, 2, 3);
    batch(&h, 4, 0);
    assert_true(event_changes(h.e, 2, &c));
    assert_int_equal(c.seq, 6);
    assert_int_equal(c.list.n, 0);
    assert_replay(&h, 0, &c);
    changes_close(&c);
    history_close(&h);
}

static void reset_forgets_the_past_and_goes_on(void **state)
{
    (void)state;
    struct history h;
    struct changes c = {0};
    history_init(&h, test_seed(16), 0, 64);
    for (int i = 0; i < 30; i++)
        batch(&h, 2, 5);
    feed_reset(&h.e->feed, h.e->shown.seq);
    assert_false(event_changes(h.e, h.e->shown.seq - 1, &c));
    assert_replay(&h, h.e->shown.seq, &c);
    int64_t since = h.e->shown.seq;
    for (int i = 0; i < 10; i++)
        batch(&h, 2, 5);
    for (int64_t after = since; after <= h.e->shown.seq; after++)
        assert_replay(&h, after, &c);
    changes_close(&c);
    history_close(&h);
}

static void memory_grows_with_use_and_no_further_than_asked(void **state)
{
    (void)state;
    struct feed f;
    feed_init(&f, 0, 100000);
    assert_null(f.ring);
    assert_int_equal(f.cap_max, 131072);
    uint32_t growths = 0;
    for (int64_t seq = 1; seq <= 300000; seq++) {
        uint32_t cap = f.cap;
        feed_put(&f, &(struct change){.seq = seq, .item = (uint32_t)seq});
        growths += f.cap != cap;
        assert_true(f.cap < 128 || f.cap <= 2 * f.n);
    }
    assert_int_equal(f.cap, 131072);
    assert_int_equal(f.n, 131072);
    assert_int_equal(growths, 12); /* 64 doubled until 131072 */
    assert_int_equal(f.floor, 300000 - 131072);
    feed_close(&f);
    feed_close(&f);
    feed_init(&f, 3, 1);
    feed_put(&f, &(struct change){.seq = 4});
    feed_put(&f, &(struct change){.seq = 5});
    assert_int_equal(f.cap, 1);
    assert_int_equal(f.floor, 4);
    feed_close(&f);
}

/* ---- what the rules put into the feed ---- */

static void assert_changes(struct event *e, int64_t after, const char *expected)
{
    static const char letters[] = ".hbx";
    struct changes c = {0};
    char text[256] = "";
    assert_true(event_changes(e, after, &c));
    for (size_t i = 0; i < c.list.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u%c", c.list.v[i].item,
                 letters[c.list.v[i].state]);
    assert_string_equal(text, expected);
    changes_close(&c);
}

static void a_batch_is_in_the_feed_once_it_is_shown(void **state)
{
    (void)state;
    struct paper p;
    struct ask a, b;
    paper_init(&p, test_seed(17));
    struct event *e = paper_event(&p, def_hall(1, 8));
    int64_t start = e->shown.seq;
    ask_create(&a, e, 2, 3);
    assert_int_equal(paper_run(&p, &a), VERDICT_CREATED);
    assert_changes(e, start, "2h3h");
    int64_t held = e->shown.seq;

    ask_renew(&b, e, &command_hold(&a.c)->id, 20000); /* advances the seq without changing a seat */
    p.now += 1000;
    assert_int_equal(paper_run(&p, &b), VERDICT_OK);
    assert_true(e->shown.seq > held);
    assert_changes(e, held, "");
    ask_close(&b);

    paper_begin(&p); /* a failed batch leaves no trace */
    ask_create(&b, e, 5);
    paper_decide(&p, &b);
    paper_fail(&p);
    ask_close(&b);
    assert_changes(e, held, "");

    ask_release(&b, e, &command_hold(&a.c)->id);
    assert_int_equal(paper_run(&p, &b), VERDICT_OK);
    assert_changes(e, held, "2.3.");
    assert_changes(e, start, "2.3.");
    ask_close(&b);
    ask_close(&a);
    paper_close(&p);
}

static void an_event_read_again_answers_too_old(void **state)
{
    (void)state;
    struct paper p;
    struct ask a;
    paper_init(&p, test_seed(18));
    struct event *e = paper_event(&p, def_hall(1, 8));
    int64_t start = e->shown.seq;
    ask_create(&a, e, 1);
    assert_int_equal(paper_run(&p, &a), VERDICT_CREATED);
    struct clock_row clock = e->clock;
    clock.seq += 5; /* another server wrote */
    view_forget(p.view, e);
    view_reloaded(p.view, e, &clock);
    struct changes c = {0};
    assert_false(event_changes(e, start, &c));
    assert_false(event_changes(e, clock.seq - 1, &c));
    assert_true(event_changes(e, clock.seq, &c));
    changes_close(&c);
    ask_close(&a);
    paper_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_from_every_seq_gives_the_final_state),
        cmocka_unit_test(after_wrapping_each_seq_is_replayed_or_too_old),
        cmocka_unit_test(a_batch_larger_than_the_ring_leaves_only_now),
        cmocka_unit_test(what_lies_beyond_now_is_a_stranger_s_seq),
        cmocka_unit_test(rows_that_change_no_seat_move_the_seq_alone),
        cmocka_unit_test(reset_forgets_the_past_and_goes_on),
        cmocka_unit_test(memory_grows_with_use_and_no_further_than_asked),
        cmocka_unit_test(a_batch_is_in_the_feed_once_it_is_shown),
        cmocka_unit_test(an_event_read_again_answers_too_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
