/* Snapshots of the lock service's state, its limits, and looking at it in order. */
#include "support/fixtures.h"

#include <stdio.h>

#include "base/hash.h"
#include "support/cell_fixture.h"

static struct cell_fixture d;

static int set_up(void **state)
{
    (void)state;
    cell_fixture_open(&d);
    for (int64_t i = 1; i <= 4; i++)
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

/* A state that has one of everything. */
static void fill(void)
{
    const struct cell_ttl ttls[] = {{1, 700}, {2, 300}};
    struct cell_command c = {.kind = CELL_RESIGN, .ttls = ttls, .n_ttls = 2};
    cell_fixture_apply(&d, &c);
    c = (struct cell_command){.kind = CELL_MASTER, .epoch = 3, .url = {"http://m", 8}};
    cell_fixture_apply(&d, &c);
    acquire(1, "a", .value = "v", .agent = "t");
    acquire(2, "a", .value = "w", .priority = -7, .label = "l");
    acquire(3, "a/b", .mode = CELL_SHARED, .cached = true);
    acquire(1, "pool", .slots = 3);
    acquire(2, "pool", .slots = 3);
    acquire(4, "pool", .slots = 3, .delay_ms = 100, .label = "d");
    acquire(3, "pool", .slots = 3);
    cell_fixture_ask(&d, CELL_WITHDRAW, .session = 2, .name = "pool");
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 4);
    acquire(1, "old");
    release(1, "old");
    cell_fixture_ask(&d, CELL_FORGET);
    acquire(1, "new", .mode = CELL_INTENTION_EXCLUSIVE);
    release(1, "new");
    acquire(1, "p/q", .mode = CELL_INTENTION_SHARED);
    acquire(1, "p");
    release(1, "p");
}

static void a_damaged_snapshot_is_refused_or_is_another_state(void **state)
{
    (void)state;
    struct buf bytes = {0}, again = {0};
    size_t n_refused = 0;
    fill();
    cell_state_save(d.state, &bytes);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        struct hf_err err = {0};
        char *copy = hf_strndup(bytes.data, bytes.len);
        copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
        struct cell_state *restored = cell_state_restore(copy, bytes.len, &err);
        again.len = 0;
        if (restored) { /* every state has one form */
            cell_state_check(restored);
            cell_state_save(restored, &again);
            assert_int_equal(again.len, bytes.len);
            assert_memory_equal(again.data, copy, bytes.len);
        } else {
            assert_true(err.code == HF_INVALID_REQUEST && err.msg[0]);
            n_refused++;
        }
        cell_state_free(restored);
        free(copy);
    }
    assert_true(n_refused > bytes.len);
    buf_close(&bytes);
    buf_close(&again);
}

static void a_snapshot_that_is_cut_or_has_more_is_refused(void **state)
{
    (void)state;
    struct buf bytes = {0};
    struct hf_err err;
    fill();
    cell_state_save(d.state, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        char *cut = hf_strndup(bytes.data, len);
        assert_null(cell_state_restore(cut, len, &err));
        free(cut);
    }
    buf_char(&bytes, 0);
    assert_null(cell_state_restore(bytes.data, bytes.len, &err));
    buf_close(&bytes);
}

/* Fills the state with many names, and lets the session that holds most of them end. */
static void fill_widely(struct buf *ret_bytes)
{
    char name[16];
    fill();
    for (int64_t i = 0; i < 200; i++) {
        d.keeps_state = i % 10 > 0; /* a restore after each command would take most of the time */
        (void)snprintf(name, sizeof name, "n/%d/%d", (int)(i % 7), (int)i);
        acquire(1 + i % 3, name, .label = name, .agent = i % 5 ? "x" : NULL);
        acquire(1 + (i + 1) % 3, name, .label = name);
    }
    d.keeps_state = false;
    cell_fixture_ask(&d, CELL_EXPIRE, .session = 2);
    cell_state_save(d.state, ret_bytes);
}

static void the_state_does_not_depend_on_the_key_of_hashes(void **state)
{
    struct buf bytes = {0}, others = {0};
    hash_set_key(1, 2);
    (void)tear_down(state);
    (void)set_up(state);
    fill_widely(&bytes);
    (void)tear_down(state);
    hash_set_key(3, 4);
    (void)set_up(state);
    fill_widely(&others);
    assert_int_equal(bytes.len, others.len);
    assert_memory_equal(bytes.data, others.data, bytes.len);
    buf_close(&bytes);
    buf_close(&others);
}

static void the_digest_tells_states_apart(void **state)
{
    (void)state;
    uint8_t before[CELL_DIGEST_SIZE], after[CELL_DIGEST_SIZE];
    fill();
    cell_state_digest(d.state, before);
    acquire(1, "a", .agent = "t"); /* a repeat changes nothing */
    cell_state_digest(d.state, after);
    assert_memory_equal(before, after, sizeof before);
    acquire(3, "a/b", .mode = CELL_SHARED, .cached = false);
    cell_state_digest(d.state, after);
    assert_memory_not_equal(before, after, sizeof before);
}

static void names_are_listed_in_the_order_of_their_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "a/c", "a", "a!", "a/b/x", "ab", "a/b"};
    static const char *const under_a[] = {"a", "a!", "a/b", "a/b/x", "a/c", "ab"};
    char after[16] = "";
    for (size_t i = 0; i < 7; i++)
        acquire(1, names[i], .mode = CELL_INTENTION_SHARED);
    acquire(1, "a/z"); /* free again: it is not listed */
    release(1, "a/z");
    for (size_t i = 0; i < 6; i++) {
        size_t len;
        const struct cell_name *n = cell_name_next(d.state, after, strlen(after), "a", 1);
        assert_string_equal(cell_name_text(n, &len), under_a[i]);
        snprintf(after, sizeof after, "%s", under_a[i]);
    }
    assert_null(cell_name_next(d.state, after, strlen(after), "a", 1));
    size_t len;
    assert_string_equal(cell_name_text(cell_name_next(d.state, "a/b", 3, "a/", 2), &len), "a/b/x");
    assert_string_equal(cell_name_text(cell_name_next(d.state, "", 0, "a/", 2), &len), "a/b");
    assert_string_equal(cell_name_text(cell_name_next(d.state, "ab", 2, "", 0), &len), "b");
    assert_int_equal(cell_state_n_names(d.state), 7);
}

/* ---- limits ---- */

static void a_line_has_a_limit(void **state)
{
    (void)state;
    char owner[16];
    d.keeps_state = true;
    acquire(1, "a");
    for (int i = 0; i < CELL_WAITERS_MAX; i++) {
        snprintf(owner, sizeof owner, "%d", i);
        acquire(2, "a", .owner = owner, .agent = owner);
        assert_int_equal(d.verdict.position, i + 1);
    }
    assert_int_equal(acquire(3, "a")->result, CELL_TOO_MANY_WAITERS);
    d.keeps_state = false;
    assert_int_equal(release(2, "a")->result, CELL_DONE);
    assert_int_equal(acquire(3, "a")->position, CELL_WAITERS_MAX);
}

static void sessions_have_a_limit(void **state)
{
    (void)state;
    struct cell_command c = cell_fixture_command(CELL_OPEN, &(struct cell_ask){.session = 5});
    struct cell_verdict v = {0};
    for (; c.session.key <= CELL_SESSIONS_MAX; c.session.key++) {
        cell_state_apply(d.state, &c, &v);
        assert_int_equal(v.result, CELL_DONE);
        cell_state_clear_effects(d.state);
    }
    cell_state_apply(d.state, &c, &v);
    assert_int_equal(v.result, CELL_TOO_MANY_SESSIONS);
    assert_int_equal(cell_fixture_ask(&d, CELL_EXPIRE, .session = 7)->result, CELL_DONE);
    cell_state_apply(d.state, &c, &v);
    assert_int_equal(v.result, CELL_DONE);
    cell_verdict_close(&v);
}

static void a_session_remembers_a_limited_number_of_ended_owners(void **state)
{
    (void)state;
    char owner[16];
    d.keeps_state = true;
    for (int i = 0; i <= CELL_ENDED_MAX; i++) {
        snprintf(owner, sizeof owner, "%d", i);
        acquire(1, "a", .owner = owner);
        release(1, "a", .owner = owner);
    }
    assert_int_equal(acquire(1, "a", .owner = "1")->result, CELL_LOST);
    assert_int_equal(acquire(1, "a", .owner = "0")->result,
                     CELL_DONE); /* the oldest is forgotten */
    d.keeps_state = false;
    cell_fixture_ask(&d, CELL_FORGET);
}

static void values_have_a_limit_in_all(void **state)
{
    (void)state;
    static char value[CELL_VALUE_MAX];
    enum { MANY = (64 << 20) / CELL_VALUE_MAX };
    struct cell_verdict v = {0};
    int n = 0;
    for (; n < MANY; n++) {
        char name[16];
        snprintf(name, sizeof name, "%d", n);
        struct cell_command c =
            cell_fixture_command(CELL_ACQUIRE, &(struct cell_ask){.session = 1, .name = name});
        c.value = (struct cell_text){value, sizeof value};
        cell_state_apply(d.state, &c, &v);
        cell_state_clear_effects(d.state);
        if (v.result != CELL_DONE)
            break;
    }
    assert_int_equal(v.result, CELL_TOO_MANY_LOCKS);
    assert_true(n > 1000);
    assert_int_equal(acquire(2, "without a value")->result, CELL_DONE);
    cell_verdict_close(&v);
}

int main(void)
{
#define CLAIM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(a_damaged_snapshot_is_refused_or_is_another_state),
        CLAIM(a_snapshot_that_is_cut_or_has_more_is_refused),
        CLAIM(the_state_does_not_depend_on_the_key_of_hashes),
        CLAIM(the_digest_tells_states_apart),
        CLAIM(names_are_listed_in_the_order_of_their_bytes),
        CLAIM(a_line_has_a_limit),
        CLAIM(sessions_have_a_limit),
        CLAIM(a_session_remembers_a_limited_number_of_ended_owners),
        CLAIM(values_have_a_limit_in_all),
    };
    return cmocka_run_group_tests_name("cell_snapshot", tests, NULL, NULL);
}
