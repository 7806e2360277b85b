/* Deadlocks and cached locks: who waits for whom, what is refused and how it is explained, and what
 * must not be taken for a deadlock. */
#include "support/fixtures.h"

#include <stdio.h>

#include "support/cell_fixture.h"

#define X CELL_EXCLUSIVE
#define S CELL_SHARED
#define IX CELL_INTENTION_EXCLUSIVE

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
#define assert_waits(v) assert_int_equal((v)->result, CELL_TAKEN)
#define assert_deadlock(v) assert_int_equal((v)->result, CELL_DEADLOCK)
#define assert_line(name, text) assert_string_equal(cell_fixture_line(&d, (name)), (text))
#define assert_effects(text) assert_string_equal(d.effects.data, (text))

/* "b s1, a s2": each awaits a name that the next one has. */
static void assert_cycle(const char *text)
{
    struct buf out = {0};
    for (size_t i = 0; i < d.verdict.people.n; i++)
        buf_printf(&out, "%s%s %s", i ? ", " : "", d.verdict.people.v[i].name,
                   d.verdict.people.v[i].label);
    buf_char(&out, '\0');
    assert_string_equal(out.data, text);
    buf_close(&out);
}

/* ---- deadlocks ---- */

static void two_that_wait_for_each_other_are_a_deadlock(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "b");
    assert_waits(acquire(1, "b"));
    uint8_t before[CELL_DIGEST_SIZE], after[CELL_DIGEST_SIZE];
    cell_state_digest(d.state, before);
    assert_deadlock(acquire(2, "a"));
    assert_cycle("a s2, b s1");
    assert_effects("");
    cell_state_digest(d.state, after);
    assert_memory_equal(before, after, sizeof before);
}

static void the_whole_cycle_is_named_in_order(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "b");
    acquire(3, "c");
    acquire(4, "d");
    assert_waits(acquire(4, "c", .priority = 3)); /* not part of it */
    assert_waits(acquire(1, "b"));
    assert_waits(acquire(2, "c"));
    assert_deadlock(acquire(3, "a"));
    assert_cycle("a s3, b s1, c s2");
}

static void a_refused_request_may_be_made_again(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "b");
    acquire(1, "b");
    assert_deadlock(acquire(2, "a"));
    release(1, "b");
    assert_waits(acquire(2, "a"));
}

static void a_conflict_with_oneself_is_a_deadlock_at_once(void **state)
{
    (void)state;
    acquire(1, "a/b", .mode = S);
    assert_deadlock(acquire(1, "a", .owner = "2"));
    assert_cycle("a s1");
    assert_granted(acquire(1, "a", .owner = "3", .mode = S));
}

static void two_threads_of_one_session_are_no_deadlock(void **state)
{
    (void)state;
    acquire(1, "a", .agent = "t1");
    acquire(2, "b");
    assert_waits(acquire(1, "b", .agent = "t2"));
    assert_waits(acquire(2, "a"));
    assert_deadlock(acquire(1, "b", .owner = "2", .agent = "t1"));
}

static void agents_of_two_sessions_are_two_though_their_names_are_equal(void **state)
{
    (void)state;
    acquire(1, "a", .agent = "main");
    acquire(2, "b", .agent = "main");
    assert_waits(acquire(3, "a", .agent = "main"));
    assert_waits(acquire(1, "b", .agent = "main"));
    assert_waits(acquire(3, "b", .agent = "main"));
}

static void a_waiter_behind_one_who_can_proceed_is_no_deadlock(void **state)
{
    (void)state;
    acquire(1, "a");
    acquire(2, "b");
    assert_waits(acquire(3, "a"));
    assert_waits(acquire(2, "a")); /* behind s3, which waits for s1, which waits for nobody */
    assert_waits(acquire(4, "b"));
    release(1, "a");
    release(3, "a");
    assert_line("a", "s2:4 |");
}

static void waiting_behind_a_waiter_for_ones_own_lock_is_a_deadlock(void **state)
{
    (void)state;
    acquire(1, "a", .mode = S);
    assert_waits(acquire(2, "a", .mode = X));
    assert_deadlock(acquire(1, "a", .owner = "2", .mode = S));
    assert_cycle("a s1, a s2");
}

static void going_before_a_waiter_can_close_a_cycle(void **state)
{
    (void)state;
    acquire(1, "a/x"); /* s2 waits for it, and s2 has b */
    acquire(2, "b");
    assert_waits(acquire(2, "a/x", .owner = "2"));
    acquire(3, "a", .mode = IX); /* s3 waits for s2 */
    assert_waits(acquire(3, "b", .owner = "2"));
    /* s4 would go before s2 and wait for s3: s4 -> s3 -> s2 -> s4. */
    assert_deadlock(acquire(4, "a", .mode = S, .priority = 5));
    assert_cycle("a s4, b s3, a/x s2");
    assert_waits(acquire(4, "a", .mode = S)); /* behind s2 it waits */
}

static void who_does_not_wait_is_told_of_no_deadlock(void **state)
{
    (void)state;
    acquire(1, "a");
    assert_waits(acquire(1, "a", .owner = "2", .no_queue = true));
    assert_int_equal(d.verdict.position, 0);
}

static void a_lock_delay_makes_no_deadlock(void **state)
{
    (void)state;
    acquire(1, "a", .delay_ms = 100);
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 1);
    cell_fixture_ask(&d, CELL_OPEN, .session = 1);
    acquire(1, "b");
    assert_waits(acquire(1, "a"));
    assert_waits(acquire(2, "b"));
}

/* ---- semaphores ---- */

static void one_slot_that_may_become_free_is_enough(void **state)
{
    (void)state;
    acquire(1, "pool", .slots = 2);
    acquire(2, "pool", .slots = 2);
    acquire(3, "a");
    assert_waits(acquire(1, "a")); /* s1 waits for s3 */
    assert_waits(acquire(3, "pool", .slots = 2));
    release(2, "pool");
    assert_line("pool", "s1:1 s3:4 |");
}

static void if_all_slots_are_stuck_it_is_a_deadlock(void **state)
{
    (void)state;
    acquire(1, "pool", .slots = 2);
    acquire(2, "pool", .slots = 2);
    acquire(3, "a");
    assert_waits(acquire(1, "a"));
    assert_waits(acquire(2, "a"));
    assert_deadlock(acquire(3, "pool", .slots = 2));
    assert_int_equal(d.verdict.people.n, 2);
    assert_string_equal(d.verdict.people.v[0].name, "pool");
    assert_string_equal(d.verdict.people.v[1].name, "a");
}

static void a_pool_behind_a_pool_is_searched_to_the_end(void **state)
{
    (void)state;
    acquire(1, "p", .slots = 2);
    acquire(2, "p", .slots = 2);
    acquire(3, "q", .slots = 2);
    acquire(4, "q", .slots = 2);
    acquire(5, "a");
    assert_waits(acquire(1, "q", .slots = 2)); /* for s3 or s4 */
    assert_waits(acquire(2, "a"));             /* for s5 */
    assert_waits(acquire(3, "a"));             /* for s5; s4 is free */
    assert_waits(acquire(5, "p", .slots = 2)); /* s4 frees q, s1 goes on and frees p */
    release(5, "p");
    assert_waits(acquire(4, "a"));
    assert_deadlock(acquire(5, "p", .owner = "2", .slots = 2));
}

/* s1 waits for s3, which has "a" and waits for s1 or s2: they wait for each other as soon as s2
 * waits for s3, too, whoever comes last. */
static void holders_of_slots_that_wait_for_each_other_are_a_deadlock(void **state)
{
    (void)state;
    acquire(1, "pool", .slots = 2);
    acquire(2, "pool", .slots = 2);
    acquire(3, "a");
    acquire(3, "b", .owner = "2");
    assert_waits(acquire(1, "a"));
    assert_waits(acquire(3, "pool", .slots = 2));
    assert_deadlock(acquire(2, "b"));
    assert_cycle("b s2, pool s3");
    assert_int_equal(cell_state_n_waiting(d.state), 2);
}

/* Every server of a cell comes to the same state, also from entries that were stored before all
 * such deadlocks were found. */
static void a_request_of_an_older_entry_is_judged_as_it_was(void **state)
{
    (void)state;
    acquire(1, "pool", .slots = 2);
    acquire(2, "pool", .slots = 2);
    acquire(3, "a");
    acquire(3, "b", .owner = "2");
    assert_waits(acquire(1, "a", .is_old = true));
    assert_waits(acquire(3, "pool", .slots = 2, .is_old = true));
    assert_waits(acquire(2, "b", .is_old = true));
    assert_waits(acquire(4, "a")); /* it waits for those in a deadlock, and is not part of it */
    assert_deadlock(acquire(2, "b"));
    release(3, "a");
    assert_line("a", "s1:5 | s4");
}

/* ---- cached locks ---- */

static void who_caches_is_told_that_the_lock_is_wanted(void **state)
{
    (void)state;
    acquire(1, "a/b", .mode = S, .cached = true);
    acquire(2, "a/b", .mode = S, .cached = true);
    acquire(3, "a/b", .mode = S);
    assert_effects("granted a/b s3");
    acquire(4, "a");
    assert_effects("queued a s4, wanted a/b s1, wanted a/b s2");
    const struct cell_owner one = {.bytes = {[15] = 1}, .digits = 1};
    assert_true(
        cell_acquisition_is_wanted(d.state, cell_acquisition_find(d.state, 1, "a/b", 3, &one)));
    assert_false(
        cell_acquisition_is_wanted(d.state, cell_acquisition_find(d.state, 3, "a/b", 3, &one)));
    release(4, "a");
    assert_false(
        cell_acquisition_is_wanted(d.state, cell_acquisition_find(d.state, 1, "a/b", 3, &one)));
}

static void a_lock_that_is_cached_while_somebody_waits_is_wanted_at_once(void **state)
{
    (void)state;
    acquire(1, "a", .mode = S);
    acquire(2, "a");
    assert_effects("queued a s2");
    acquire(1, "a", .mode = S, .cached = true);
    assert_effects("wanted a s1");
    acquire(1, "a", .mode = S, .cached = true);
    assert_effects("");
}

static void a_waiter_that_comes_back_wants_again(void **state)
{
    (void)state;
    acquire(1, "a");
    cell_fixture_ask(&d, CELL_WITHDRAW, .session = 1, .name = "a");
    acquire(2, "a", .mode = S, .cached = true);
    assert_effects("granted a s2");
    assert_waits(acquire(1, "a"));
    assert_effects("wanted a s2");
}

static void a_cached_lock_is_no_deadlock_until_it_is_in_use(void **state)
{
    (void)state;
    acquire(1, "a", .mode = S, .cached = true);
    acquire(2, "b");
    assert_waits(acquire(1, "b"));
    assert_waits(acquire(2, "a")); /* s1 will give it up */
    assert_granted(acquire(1, "a", .mode = S, .cached = false));
    /* Now it is one; whoever asks again first is refused. */
    assert_deadlock(acquire(2, "a"));
    assert_effects("cancelled a s2");
    assert_cycle("a s2, b s1");
    assert_line("a", "s1:1 |");
    assert_waits(acquire(1, "b"));
}

static void only_a_shared_lock_is_cached(void **state)
{
    (void)state;
    acquire(1, "a", .cached = true);
    acquire(2, "a");
    assert_effects("queued a s2");
}

/* ---- the order of those who were overtaken too often ---- */

/* Lets session 9 overtake every waiter for "a", which session 8 holds, as often as it takes. */
static void age_all(void)
{
    char owner[16];
    for (int i = 0; i < CELL_OVERTAKEN_MAX; i++) {
        snprintf(owner, sizeof owner, "a%d", i);
        acquire(9, "a", .owner = owner, .priority = CELL_PRIORITY_MAX, .agent = owner);
        const struct cell_acquisition *holder = cell_name_holders(cell_name_find(d.state, "a", 1));
        struct cell_command c = cell_fixture_command(CELL_RELEASE, &(struct cell_ask){.name = "a"});
        c.session = holder->session->id;
        c.owner = holder->owner;
        assert_granted(cell_fixture_apply(&d, &c));
    }
}

static void among_those_who_aged_arrival_decides(void **state)
{
    (void)state;
    acquire(8, "a");
    acquire(1, "a", .priority = 1);
    acquire(2, "a", .priority = 5);
    acquire(3, "a", .priority = 3);
    age_all();
    const char *line = strchr(cell_fixture_line(&d, "a"), '|');
    assert_string_equal(line, "| s1 s2 s3");
    assert_waits(acquire(4, "a", .priority = 9));
    assert_int_equal(d.verdict.position, 4);
}

/* ---- large lines ---- */

static void a_cycle_through_a_long_line_is_found(void **state)
{
    (void)state;
    enum { WAITERS = 2000 };
    char owner[16], agent[16];
    d.keeps_state = true;
    acquire(1, "a");
    acquire(2, "b");
    for (int i = 0; i < WAITERS; i++) {
        snprintf(owner, sizeof owner, "%d", i);
        snprintf(agent, sizeof agent, "t%d", i);
        assert_waits(acquire(3, "a", .owner = owner, .agent = agent));
        assert_int_equal(d.verdict.position, i + 1);
        assert_waits(acquire(4, "b", .owner = owner, .agent = agent));
    }
    assert_waits(acquire(1, "b"));
    assert_deadlock(acquire(2, "a"));
    assert_int_equal(cell_state_n_waiting(d.state), 2 * WAITERS + 1);
    d.keeps_state = false;
    release(1, "b");
}

int main(void)
{
#define CLAIM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(two_that_wait_for_each_other_are_a_deadlock),
        CLAIM(the_whole_cycle_is_named_in_order),
        CLAIM(a_refused_request_may_be_made_again),
        CLAIM(a_conflict_with_oneself_is_a_deadlock_at_once),
        CLAIM(two_threads_of_one_session_are_no_deadlock),
        CLAIM(agents_of_two_sessions_are_two_though_their_names_are_equal),
        CLAIM(a_waiter_behind_one_who_can_proceed_is_no_deadlock),
        CLAIM(waiting_behind_a_waiter_for_ones_own_lock_is_a_deadlock),
        CLAIM(going_before_a_waiter_can_close_a_cycle),
        CLAIM(who_does_not_wait_is_told_of_no_deadlock),
        CLAIM(a_lock_delay_makes_no_deadlock),
        CLAIM(one_slot_that_may_become_free_is_enough),
        CLAIM(if_all_slots_are_stuck_it_is_a_deadlock),
        CLAIM(a_pool_behind_a_pool_is_searched_to_the_end),
        CLAIM(holders_of_slots_that_wait_for_each_other_are_a_deadlock),
        CLAIM(a_request_of_an_older_entry_is_judged_as_it_was),
        CLAIM(who_caches_is_told_that_the_lock_is_wanted),
        CLAIM(a_lock_that_is_cached_while_somebody_waits_is_wanted_at_once),
        CLAIM(a_waiter_that_comes_back_wants_again),
        CLAIM(a_cached_lock_is_no_deadlock_until_it_is_in_use),
        CLAIM(only_a_shared_lock_is_cached),
        CLAIM(among_those_who_aged_arrival_decides),
        CLAIM(a_cycle_through_a_long_line_is_found),
    };
    return cmocka_run_group_tests_name("cell_deadlock", tests, NULL, NULL);
}
