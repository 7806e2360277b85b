/* The rules of the lock service's state, one by one.  tests/unit/test_cell_model.c tries them all
 * at once against a model. */
#include "support/fixtures.h"

#include <stdio.h>

#include "cell/state_internal.h"
#include "support/cell_fixture.h"

#define X CELL_EXCLUSIVE
#define S CELL_SHARED
#define IX CELL_INTENTION_EXCLUSIVE
#define IS CELL_INTENTION_SHARED

static struct cell_fixture d;

static int set_up(void **state)
{
    (void)state;
    cell_fixture_open(&d);
    for (int64_t i = 1; i <= 9; i++)
        assert_int_equal(cell_fixture_ask(&d, CELL_OPEN, .session = i)->result, CELL_DONE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cell_fixture_close(&d);
    return 0;
}

#define acquire(s, n, ...)                                                                         \
    cell_fixture_ask(&d, CELL_ACQUIRE, .session = (s), .name = (n), __VA_ARGS__)
#define release(s, n, ...)                                                                         \
    cell_fixture_ask(&d, CELL_RELEASE, .session = (s), .name = (n), __VA_ARGS__)
#define assert_granted(v) assert_int_equal((v)->result, CELL_DONE)
#define assert_waits(v, place)                                                                     \
    do {                                                                                           \
        assert_int_equal((v)->result, CELL_TAKEN);                                                 \
        assert_int_equal(d.verdict.position, (place));                                             \
    } while (0)
#define assert_result(v, r) assert_int_equal((v)->result, (r))
#define assert_line(name, text) assert_string_equal(cell_fixture_line(&d, (name)), (text))
#define assert_effects(text) assert_string_equal(d.effects.data, (text))

/* ---- granting ---- */

static void one_holds_and_the_next_one_waits(void **state)
{
    (void)state;
    assert_granted(acquire(1, "a", .mode = X));
    assert_int_equal(d.verdict.fence, 1);
    assert_effects("granted a s1");
    assert_waits(acquire(2, "a", .mode = X), 1);
    assert_effects("queued a s2");
    assert_int_equal(d.verdict.people.n, 1);
    assert_string_equal(d.verdict.people.v[0].label, "s1");
    assert_string_equal(d.verdict.people.v[0].name, "a");
    assert_waits(acquire(3, "a", .mode = X), 2);
    assert_granted(release(1, "a"));
    assert_effects("released a s1, granted a s2");
    assert_line("a", "s2:2 | s3");
}

static void modes_agree_as_the_table_says(void **state)
{
    (void)state;
    static const bool agree[4][4] = {{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 1, 1}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            assert_granted(acquire(1, "t", .owner = "a", .mode = (enum cell_mode)i));
            acquire(2, "t", .owner = "b", .mode = (enum cell_mode)k, .no_queue = true);
            assert_result(&d.verdict, agree[i][k] ? CELL_DONE : CELL_TAKEN);
            tear_down(state);
            set_up(state);
        }
}

static void no_queue_leaves_nothing_behind(void **state)
{
    (void)state;
    assert_granted(acquire(1, "a"));
    uint8_t before[CELL_DIGEST_SIZE], after[CELL_DIGEST_SIZE];
    cell_state_digest(d.state, before);
    assert_waits(acquire(2, "a", .no_queue = true), 0);
    assert_waits(acquire(2, "a/b/c", .no_queue = true), 0);
    cell_state_digest(d.state, after);
    assert_memory_equal(before, after, sizeof before);
    assert_effects("");
}

/* ---- lines ---- */

static void waiters_are_served_by_priority_then_arrival(void **state)
{
    (void)state;
    acquire(1, "a");
    assert_waits(acquire(2, "a"), 1);
    assert_waits(acquire(3, "a", .priority = 5), 1);
    assert_waits(acquire(4, "a", .priority = -1), 3);
    assert_waits(acquire(5, "a", .priority = 5), 2);
    assert_line("a", "s1:1 | s3 s5 s2 s4");
    release(1, "a");
    assert_line("a", "s3:2 | s5 s2 s4");
}

static void a_waiter_that_was_overtaken_eight_times_goes_first(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "a"); /* the one that is overtaken */
    for (int i = 0; i < CELL_OVERTAKEN_MAX; i++) {
        int64_t old = i % 2 ? 3 : 1, new = i % 2 ? 1 : 3;
        char owner[2] = {(char)('1' + i), 0}, next[2] = {(char)('2' + i), 0};
        assert_waits(acquire(new, "a", .owner = next, .priority = 9), 1);
        assert_granted(release(old, "a", .owner = owner));
        assert_string_equal(cell_fixture_line(&d, "a") + 4, " | s2");
    }
    assert_waits(acquire(4, "a", .priority = CELL_PRIORITY_MAX), 2);
}

static void a_place_in_the_line_is_given_up_by_release(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "a");
    acquire(3, "a");
    assert_granted(release(2, "a"));
    assert_effects("cancelled a s2");
    assert_line("a", "s1:1 | s3");
    assert_result(acquire(2, "a"), CELL_LOST);
}

static void a_lock_may_have_a_label_of_its_own(void **state)
{
    (void)state;
    acquire(1, "a", .label = "nightly", .delay_ms = 5);
    acquire(2, "a");
    assert_string_equal(d.verdict.people.v[0].label, "nightly");
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 1);
    acquire(3, "a", .label = "", .no_queue = true);
    assert_string_equal(d.verdict.people.v[0].label, "nightly"); /* its lock delay */
    cell_fixture_ask(&d, CELL_BREAK, .name = "a");
    acquire(3, "a", .no_queue = true);
    assert_string_equal(d.verdict.people.v[0].label, "s2");
}

static void readers_behind_a_writer_wait_for_it(void **state)
{
    (void)state;
    acquire(1, "a", .mode = S);
    acquire(2, "a", .mode = X);
    assert_waits(acquire(3, "a", .mode = S), 2);
    assert_waits(acquire(4, "a", .mode = S), 3);
    release(1, "a");
    assert_line("a", "s2:2 | s3 s4");
    release(2, "a");
    assert_effects("released a s2, granted a s3, granted a s4");
}

/* ---- hierarchy ---- */

static void a_name_is_locked_with_everything_below_it(void **state)
{
    (void)state;
    assert_granted(acquire(1, "pay/eu/settle"));
    assert_waits(acquire(2, "pay", .no_queue = true), 0);
    assert_string_equal(d.verdict.people.v[0].name, "pay/eu/settle");
    assert_waits(acquire(2, "pay/eu", .mode = S, .no_queue = true), 0);
    assert_granted(acquire(2, "pay/us"));
    assert_granted(acquire(3, "pay", .owner = "2", .mode = IX));
    assert_granted(acquire(4, "pay/eu", .mode = IS));
    assert_granted(acquire(5, "payment"));
}

static void what_is_below_a_locked_name_waits(void **state)
{
    (void)state;
    assert_granted(acquire(1, "pay", .mode = S));
    assert_granted(acquire(2, "pay/eu", .mode = S));
    assert_waits(acquire(3, "pay/eu/settle", .mode = X), 1);
    release(1, "pay");
    assert_line("pay/eu/settle", "| s3");
    release(2, "pay/eu");
    assert_effects("released pay/eu s2, granted pay/eu/settle s3");
}

static void an_earlier_waiter_above_or_below_blocks(void **state)
{
    (void)state;
    acquire(1, "a/b", .mode = S);
    assert_waits(acquire(2, "a", .mode = X), 1);
    assert_waits(acquire(3, "a/b", .mode = S), 1);
    assert_waits(acquire(4, "a/c", .mode = S), 1);
    release(2, "a"); /* it gives up */
    assert_effects("cancelled a s2, granted a/b s3, granted a/c s4");
    acquire(5, "a/c", .mode = X);
    assert_waits(acquire(6, "a", .mode = S), 1);
    assert_granted(acquire(7, "a", .mode = IS));
}

static void a_waiting_request_holds_nothing(void **state)
{
    (void)state;
    acquire(1, "a/b");
    acquire(2, "a");
    assert_granted(acquire(3, "c"));
    assert_int_equal(cell_state_n_held(d.state), 2);
    assert_int_equal(cell_state_n_waiting(d.state), 1);
}

static void sixteen_levels_are_a_hierarchy(void **state)
{
    (void)state;
    assert_granted(acquire(1, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"));
    assert_waits(acquire(2, "1"), 1);
    assert_waits(acquire(3, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15", .no_queue = true), 0);
    release(1, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16");
    assert_line("1", "s2:2 |");
}

/* ---- slots ---- */

static void the_lowest_free_slot_is_given(void **state)
{
    (void)state;
    for (int64_t i = 1; i <= 3; i++) {
        assert_granted(acquire(i, "a", .slots = 3));
        assert_int_equal(d.verdict.slot, i - 1);
    }
    assert_waits(acquire(4, "a", .slots = 3), 1);
    release(2, "a");
    assert_line("a", "s1:1 s3:3 s4:4 |");
    assert_granted(acquire(4, "a", .slots = 3));
    assert_int_equal(d.verdict.slot, 1);
    assert_true(d.verdict.repeated);
}

static void all_ask_for_the_same_number_of_slots(void **state)
{
    (void)state;
    acquire(1, "a", .slots = 2);
    assert_result(acquire(2, "a", .slots = 3), CELL_SLOTS_CONFLICT);
    assert_int_equal(d.verdict.slots, 2);
    release(1, "a");
    assert_granted(acquire(2, "a", .slots = 3));
}

static void a_thousand_slots_are_given_and_taken_back(void **state)
{
    (void)state;
    d.keeps_state = true;
    char owner[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(owner, sizeof owner, "%d", i);
        assert_granted(acquire(1, "a", .owner = owner, .slots = 1000));
        assert_int_equal(d.verdict.slot, i);
    }
    for (int i = 999; i >= 0; i -= 7) {
        snprintf(owner, sizeof owner, "%d", i);
        assert_granted(release(1, "a", .owner = owner));
        assert_granted(acquire(2, "a", .owner = owner, .slots = 1000));
        assert_int_equal(d.verdict.slot, i);
    }
    d.keeps_state = false;
    assert_waits(acquire(3, "a", .slots = 1000, .no_queue = true), 0);
    assert_int_equal(d.verdict.people.n, CELL_PEOPLE_MAX);
}

/* ---- owners ---- */

static void asked_again_the_same_grant_is_answered(void **state)
{
    (void)state;
    acquire(1, "a");
    int64_t fence = d.verdict.fence;
    acquire(2, "a");
    assert_granted(acquire(1, "a"));
    assert_int_equal(d.verdict.fence, fence);
    assert_true(d.verdict.repeated);
    assert_effects("");
    acquire(3, "a", .priority = 1);
    assert_waits(acquire(2, "a", .no_queue = true), 2);
    assert_true(d.verdict.repeated);
}

static void a_change_of_mode_is_refused(void **state)
{
    (void)state;
    acquire(1, "a", .mode = S);
    assert_result(acquire(1, "a", .mode = X), CELL_MODE_CONFLICT);
    assert_int_equal(d.verdict.mode, S);
    assert_line("a", "s1:1 |");
}

static void an_ended_owner_is_refused_until_it_is_forgotten_or_its_session_ends(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "a", .owner = "2");
    release(1, "a");
    assert_result(acquire(1, "a"), CELL_LOST);
    assert_result(release(1, "a"), CELL_LOST);
    assert_waits(acquire(1, "a", .owner = "01"), 1); /* another owner */
    release(1, "a", .owner = "01");
    cell_fixture_ask(&d, CELL_FORGET);
    assert_result(acquire(1, "a"), CELL_LOST);
    cell_fixture_ask(&d, CELL_FORGET);
    assert_waits(acquire(1, "a"), 1);
    release(2, "a", .owner = "2");
    cell_fixture_ask(&d, CELL_CLOSE, .session = 2);
    cell_fixture_ask(&d, CELL_OPEN, .session = 2);
    assert_waits(acquire(2, "a", .owner = "2"), 1);
}

static void a_release_that_comes_before_its_request_ends_it(void **state)
{
    (void)state;
    assert_result(release(1, "a"), CELL_LOST);
    assert_result(acquire(1, "a"), CELL_LOST); /* it was stuck on its way */
    assert_line("a", "|");
    assert_granted(acquire(1, "a", .owner = "2"));
}

static void the_same_owner_may_lock_several_names(void **state)
{
    (void)state;
    assert_granted(acquire(1, "a"));
    assert_granted(acquire(1, "b"));
    release(1, "a");
    assert_granted(acquire(1, "b"));
    assert_result(acquire(1, "a"), CELL_LOST);
}

static void only_who_knows_the_secret_acts_for_a_session(void **state)
{
    (void)state;
    acquire(1, "a");
    struct cell_command c =
        cell_fixture_command(CELL_RELEASE, &(struct cell_ask){.session = 1, .name = "a"});
    c.session.secret[3] ^= 1;
    assert_result(cell_fixture_apply(&d, &c), CELL_NO_SESSION);
    c.kind = CELL_ACQUIRE;
    assert_result(cell_fixture_apply(&d, &c), CELL_NO_SESSION);
    c.kind = CELL_CLOSE;
    assert_result(cell_fixture_apply(&d, &c), CELL_NO_SESSION);
    c.by_master = true;
    assert_result(cell_fixture_apply(&d, &c), CELL_DONE);
    assert_result(cell_fixture_apply(&d, &c), CELL_NO_SESSION);
}

/* ---- fences ---- */

static void a_fence_is_larger_than_all_before_it(void **state)
{
    (void)state;
    acquire(1, "a");
    assert_result(release(1, "a", .fence = 7), CELL_STALE_FENCE);
    assert_granted(release(1, "a", .fence = 1));
    acquire(2, "b");
    assert_granted(acquire(3, "a"));
    assert_int_equal(d.verdict.fence, 3);
    size_t none;
    const struct cell_name *n = cell_name_find(d.state, "a", 1);
    assert_string_equal(cell_name_text(n, &none), "a");
    assert_int_equal(cell_name_last_fence(n), 3);
}

static void a_master_raises_the_fences_to_its_clock(void **state)
{
    (void)state;
    acquire(1, "a");
    struct cell_command c = {
        .kind = CELL_MASTER, .epoch = 4, .fence = 1000, .url = {"http://x", 8}};
    cell_fixture_apply(&d, &c);
    assert_int_equal(cell_state_epoch(d.state), 4);
    assert_string_equal(d.state->master, "http://x");
    acquire(2, "b");
    assert_true(d.verdict.fence > 1000);
    c.fence = 5; /* a clock that went back */
    cell_fixture_apply(&d, &c);
    acquire(2, "c");
    assert_true(d.verdict.fence > 1001);
}

static void a_free_name_is_remembered_for_its_fence_until_others_are_newer(void **state)
{
    (void)state;
    d.keeps_state = true;
    char name[16];
    for (int i = 0; i <= CELL_FREE_NAMES_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        acquire(1, name);
        release(1, name);
    }
    assert_null(cell_name_find(d.state, "n0", 2));
    assert_non_null(cell_name_find(d.state, "n1", 2));
    d.keeps_state = false;
    acquire(2, "n1"); /* used again, it becomes the newest */
    release(2, "n1");
    acquire(2, "new");
    release(2, "new");
    assert_non_null(cell_name_find(d.state, "n1", 2));
    assert_null(cell_name_find(d.state, "n2", 2));
    assert_int_equal(cell_state_n_names(d.state), 0);
}

/* ---- sessions ---- */

static void all_locks_of_a_session_end_together(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(1, "b");
    acquire(2, "c");
    acquire(1, "c", .agent = "t");
    acquire(3, "b");
    acquire(3, "a", .agent = "t");
    cell_fixture_ask(&d, CELL_CLOSE, .session = 1);
    assert_effects("released a s1, released b s1, cancelled c s1, closed s1, granted b s3, "
                   "granted a s3");
    assert_result(acquire(1, "d"), CELL_NO_SESSION);
}

static void a_lost_session_blocks_for_its_delay_a_release_does_not(void **state)
{
    (void)state;
    acquire(1, "a", .delay_ms = 500);
    acquire(1, "b");
    acquire(2, "a");
    acquire(2, "b", .agent = "t");
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 1);
    assert_effects("lost a s1, delayed a, lost b s1, closed s1, granted b s2");
    assert_line("a", "-:1 | s2");
    assert_result(cell_fixture_ask(&d, CELL_UNDELAY, .name = "a", .fence = 9), CELL_LOST);
    assert_granted(cell_fixture_ask(&d, CELL_UNDELAY, .name = "a", .fence = 1));
    assert_effects("undelayed a, granted a s2");
    acquire(3, "c", .delay_ms = 500);
    release(3, "c");
    assert_granted(acquire(4, "c"));
    acquire(5, "e", .delay_ms = 500);
    cell_fixture_ask(&d, CELL_CLOSE, .session = 5);
    assert_granted(acquire(4, "e"));
}

static void a_broken_lock_is_lost_and_waiters_keep_their_places(void **state)
{
    (void)state;
    acquire(1, "a", .mode = S, .delay_ms = 500);
    acquire(2, "a", .mode = S, .delay_ms = 500);
    acquire(3, "a");
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 1);
    assert_granted(cell_fixture_ask(&d, CELL_BREAK, .name = "a"));
    assert_effects("undelayed a, lost a s2, granted a s3");
    assert_result(acquire(2, "a", .mode = S), CELL_LOST);
    assert_result(cell_fixture_ask(&d, CELL_BREAK, .name = "nobody"), CELL_LOST);
}

static void a_session_is_opened_once(void **state)
{
    (void)state;
    assert_granted(cell_fixture_ask(&d, CELL_OPEN, .session = 1));
    assert_true(d.verdict.repeated);
    assert_effects("");
    struct cell_command c = cell_fixture_command(CELL_OPEN, &(struct cell_ask){.session = 1});
    c.session.secret[0] ^= 1;
    assert_result(cell_fixture_apply(&d, &c), CELL_NO_SESSION);
}

static void an_account_has_so_many_sessions_and_no_more(void **state)
{
    (void)state;
    struct cell_command c = cell_fixture_command(CELL_OPEN, &(struct cell_ask){.session = 20});
    c.account = 7;
    c.limit = 2;
    assert_granted(cell_fixture_apply(&d, &c));
    c.session.key = 21;
    assert_granted(cell_fixture_apply(&d, &c));
    c.session.key = 22;
    assert_result(cell_fixture_apply(&d, &c), CELL_TOO_MANY_SESSIONS);
    c.account = 8;
    assert_granted(cell_fixture_apply(&d, &c));
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 20);
    c.account = 7;
    c.session.key = 23;
    assert_granted(cell_fixture_apply(&d, &c));
}

static void the_shortest_ttl_is_that_of_the_sessions_left(void **state)
{
    (void)state;
    struct cell_command c = cell_fixture_command(CELL_OPEN, &(struct cell_ask){.session = 20});
    c.ttl_ms = 1500;
    cell_fixture_apply(&d, &c);
    assert_int_equal(cell_state_shortest_ttl_ms(d.state), 1500);
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 20);
    assert_int_equal(cell_state_shortest_ttl_ms(d.state), 10000);
    int64_t key = 0, n = 0;
    for (const struct cell_session *s; (s = cell_session_next(d.state, key)); n++) {
        assert_true(s->id.key > key);
        key = s->id.key;
    }
    assert_int_equal(n, 9);
}

static void a_clean_hand_over_carries_the_remaining_ttls(void **state)
{
    (void)state;
    const struct cell_ttl ttls[] = {{5, 700}, {2, 300}};
    struct cell_command c = {.kind = CELL_RESIGN, .ttls = ttls, .n_ttls = 2};
    cell_fixture_apply(&d, &c);
    assert_true(cell_state_is_resigned(d.state));
    assert_string_equal(d.state->master, "");
    assert_int_equal(cell_state_remaining_ms(d.state, 2), 300);
    assert_int_equal(cell_state_remaining_ms(d.state, 5), 700);
    assert_int_equal(cell_state_remaining_ms(d.state, 3), -1);
    c = (struct cell_command){.kind = CELL_MASTER, .epoch = 2, .url = {"http://y", 8}};
    cell_fixture_apply(&d, &c);
    assert_false(cell_state_is_resigned(d.state));
    /* Whoever follows this one after its silence gives full TTLs. */
    assert_int_equal(cell_state_remaining_ms(d.state, 2), -1);
    c = (struct cell_command){.kind = CELL_RESIGN}; /* of a master without sessions */
    cell_fixture_apply(&d, &c);
    assert_int_equal(cell_state_remaining_ms(d.state, 2), -1);
}

/* ---- grants that nobody received ---- */

static void a_withdrawn_grant_goes_to_the_next_and_keeps_its_place(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "a");
    acquire(3, "a");
    release(1, "a");
    assert_granted(cell_fixture_ask(&d, CELL_WITHDRAW, .session = 2, .name = "a", .fence = 2));
    assert_effects("released* a s2, granted a s3");
    assert_line("a", "s3:3 | (s2)");
    acquire(4, "a");
    assert_waits(acquire(2, "a"), 1); /* its old place */
    assert_line("a", "s3:3 | s2 s4");
    release(3, "a");
    assert_line("a", "s2:4 | s4");
}

static void a_waiter_that_was_passed_over_blocks_nobody(void **state)
{
    (void)state;
    acquire(1, "a");
    cell_fixture_ask(&d, CELL_WITHDRAW, .session = 1, .name = "a");
    assert_line("a", "| (s1)");
    assert_granted(acquire(2, "a"));
    release(2, "a");
    assert_effects("released a s2"); /* and it is not granted */
    assert_granted(acquire(1, "a"));
    assert_true(d.verdict.repeated);
    assert_line("a", "s1:3 |");
}

static void an_abandoned_place_is_cancelled_a_grant_is_not(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "a");
    assert_result(cell_fixture_ask(&d, CELL_CANCEL, .session = 1, .name = "a"), CELL_LOST);
    assert_granted(cell_fixture_ask(&d, CELL_CANCEL, .session = 2, .name = "a"));
    assert_line("a", "s1:1 |");
    assert_result(cell_fixture_ask(&d, CELL_WITHDRAW, .session = 1, .name = "a", .fence = 8),
                  CELL_STALE_FENCE);
}

/* ---- values ---- */

static void a_value_lasts_as_long_as_the_grant_that_set_it(void **state)
{
    (void)state;
    size_t len;
    acquire(1, "leader", .value = "here");
    assert_effects("granted leader s1, value leader s1");
    acquire(2, "leader", .value = "there");
    const struct cell_name *n = cell_name_find(d.state, "leader", 6);
    assert_string_equal(cell_name_value(n, &len), "here");
    assert_result(
        cell_fixture_ask(&d, CELL_VALUE, .session = 1, .name = "leader", .fence = 9, .value = "x"),
        CELL_STALE_FENCE);
    assert_result(cell_fixture_ask(&d, CELL_VALUE, .session = 2, .name = "leader", .value = "x"),
                  CELL_LOST);
    assert_granted(cell_fixture_ask(&d, CELL_VALUE, .session = 1, .name = "leader", .fence = 1,
                                    .value = "moved"));
    n = cell_name_find(d.state, "leader", 6);
    assert_string_equal(cell_name_value(n, &len), "moved");
    release(1, "leader");
    assert_effects("released leader s1, value leader s1, granted leader s2, value leader s2");
    n = cell_name_find(d.state, "leader", 6);
    assert_string_equal(cell_name_value(n, &len), "there");
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 2);
    assert_null(cell_name_value(cell_name_find(d.state, "leader", 6), &len));
}

static void a_value_of_another_holder_stays(void **state)
{
    (void)state;
    size_t len;
    acquire(1, "a", .mode = S, .value = "one");
    acquire(2, "a", .mode = S);
    release(2, "a");
    assert_string_equal(cell_name_value(cell_name_find(d.state, "a", 1), &len), "one");
    acquire(3, "a", .mode = S, .value = "three");
    release(1, "a");
    assert_string_equal(cell_name_value(cell_name_find(d.state, "a", 1), &len), "three");
}

int main(void)
{
#define CLAIM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(one_holds_and_the_next_one_waits),
        CLAIM(modes_agree_as_the_table_says),
        CLAIM(no_queue_leaves_nothing_behind),
        CLAIM(waiters_are_served_by_priority_then_arrival),
        CLAIM(a_waiter_that_was_overtaken_eight_times_goes_first),
        CLAIM(a_place_in_the_line_is_given_up_by_release),
        CLAIM(a_lock_may_have_a_label_of_its_own),
        CLAIM(readers_behind_a_writer_wait_for_it),
        CLAIM(a_name_is_locked_with_everything_below_it),
        CLAIM(what_is_below_a_locked_name_waits),
        CLAIM(an_earlier_waiter_above_or_below_blocks),
        CLAIM(a_waiting_request_holds_nothing),
        CLAIM(sixteen_levels_are_a_hierarchy),
        CLAIM(the_lowest_free_slot_is_given),
        CLAIM(all_ask_for_the_same_number_of_slots),
        CLAIM(a_thousand_slots_are_given_and_taken_back),
        CLAIM(asked_again_the_same_grant_is_answered),
        CLAIM(a_change_of_mode_is_refused),
        CLAIM(an_ended_owner_is_refused_until_it_is_forgotten_or_its_session_ends),
        CLAIM(a_release_that_comes_before_its_request_ends_it),
        CLAIM(the_same_owner_may_lock_several_names),
        CLAIM(only_who_knows_the_secret_acts_for_a_session),
        CLAIM(a_fence_is_larger_than_all_before_it),
        CLAIM(a_master_raises_the_fences_to_its_clock),
        CLAIM(a_free_name_is_remembered_for_its_fence_until_others_are_newer),
        CLAIM(all_locks_of_a_session_end_together),
        CLAIM(a_lost_session_blocks_for_its_delay_a_release_does_not),
        CLAIM(a_broken_lock_is_lost_and_waiters_keep_their_places),
        CLAIM(a_session_is_opened_once),
        CLAIM(an_account_has_so_many_sessions_and_no_more),
        CLAIM(the_shortest_ttl_is_that_of_the_sessions_left),
        CLAIM(a_clean_hand_over_carries_the_remaining_ttls),
        CLAIM(a_withdrawn_grant_goes_to_the_next_and_keeps_its_place),
        CLAIM(a_waiter_that_was_passed_over_blocks_nobody),
        CLAIM(an_abandoned_place_is_cancelled_a_grant_is_not),
        CLAIM(a_value_lasts_as_long_as_the_grant_that_set_it),
        CLAIM(a_value_of_another_holder_stays),
    };
    return cmocka_run_group_tests_name("cell_state", tests, NULL, NULL);
}
