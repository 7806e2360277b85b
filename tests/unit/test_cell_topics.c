/* Claims about topics (cell/topics.h): what a reader sees of the entries that a real state machine
 * applies, where it may resume, and the bounds. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "cell/topics.h"

static struct topics *topics;
static struct cell_state *state;
static int64_t index_now;

static int open_topics(void **unused)
{
    (void)unused;
    topics = topics_new();
    state = cell_state_new();
    index_now = 0;
    topics_lead(topics, true);
    return 0;
}

static int close_topics(void **unused)
{
    (void)unused;
    cell_state_free(state);
    topics_free(topics); /* checks that every topic was given back */
    return 0;
}

/* ---- entries ---- */

static struct cell_text text(const char *s) { return (struct cell_text){s, strlen(s)}; }

static struct cell_command command(enum cell_kind kind, int64_t session, const char *name)
{
    struct cell_command c = {.kind = kind, .session.key = session, .by_master = true, .slots = 1};
    c.owner.bytes[CELL_OWNER_SIZE - 1] = 0xab;
    c.owner.digits = 2;
    c.ttl_ms = 10000;
    c.limit = 1000;
    c.label = text(session == 1 ? "one" : "two");
    c.queue = true;
    if (name)
        c.name = text(name);
    return c;
}

/* Applies a command of the entry that is being made, as a node does. */
static void apply(const struct cell_command *c)
{
    size_t n;
    cell_state_apply(state, c, NULL);
    const struct cell_effect *e = cell_state_effects(state, &n);
    for (size_t i = 0; i < n; i++)
        topics_collect(topics, index_now + 1, &e[i]);
    cell_state_clear_effects(state);
}

static void end_entry(void) { topics_publish(topics, ++index_now); }

static void entry(enum cell_kind kind, int64_t session, const char *name)
{
    struct cell_command c = command(kind, session, name);
    apply(&c);
    end_entry();
}

static int64_t fence_of(const char *name)
{
    struct cell_name *n = cell_name_find(state, name, strlen(name));
    assert_non_null(n);
    assert_non_null(cell_name_holders(n));
    return cell_name_holders(n)->fence;
}

static void set_value(int64_t session, const char *name, const char *value)
{
    struct cell_command c = command(CELL_VALUE, session, name);
    c.fence = fence_of(name);
    c.value = value ? text(value) : (struct cell_text){0};
    apply(&c);
}

/* ---- reading ---- */

static void note(void *context, const struct cell_event *e)
{
    static const char *const kinds[] = {[CELL_EFFECT_GRANTED] = "granted",
                                        [CELL_EFFECT_RELEASED] = "released",
                                        [CELL_EFFECT_LOST] = "lost",
                                        [CELL_EFFECT_VALUE] = "value",
                                        [CELL_EFFECT_WANTED] = "wanted"};
    struct buf *out = context;
    buf_printf(out, "%lld %s %s", (long long)e->index, kinds[e->kind], e->name);
    if (e->kind != CELL_EFFECT_VALUE)
        buf_printf(out, " %s %s", e->label, e->owner);
    if (e->value)
        buf_printf(out, " '%.*s'", (int)e->value_len, e->value);
    buf_lit(out, "; ");
}

/* What follows a seq, as text; NULL: it is not known. */
static const char *after(struct cell_topic *topic, int64_t seq)
{
    static struct buf out;
    out.len = 0;
    bool is_known = cell_topic_events(topic, seq, note, &out);
    buf_char(&out, '\0');
    static char copy[4096];
    (void)snprintf(copy, sizeof copy, "%s", out.data);
    buf_close(&out);
    return is_known ? copy : NULL;
}

static struct cell_topic *of_name(const char *name)
{
    return topics_get(topics, 0, name, strlen(name));
}

static void count(void *context, const struct cell_event *e)
{
    (void)e;
    ++*(size_t *)context;
}

/* ---- claims ---- */

static void a_names_topic_tells_what_happens_to_it_and_to_no_other(void **unused)
{
    (void)unused;
    entry(CELL_OPEN, 1, NULL);
    entry(CELL_OPEN, 2, NULL);
    struct cell_topic *door = of_name("door");
    assert_int_equal(cell_topic_seq(door), 2);
    entry(CELL_ACQUIRE, 1, "door");
    entry(CELL_ACQUIRE, 1, "door/knob"); /* a child is another name */
    entry(CELL_ACQUIRE, 2, "doors");
    entry(CELL_ACQUIRE, 2, "door"); /* waits: nobody is told */
    set_value(1, "door", "here");
    end_entry();
    entry(CELL_RELEASE, 1, "door");
    assert_string_equal(after(door, 2), "3 granted door one ab; 7 value door 'here'; "
                                        "8 released door one ab; 8 value door; "
                                        "8 granted door two ab; ");
    cell_topic_unref(door);
}

static void a_session_s_topic_tells_of_all_its_locks_and_ends_with_it(void **unused)
{
    (void)unused;
    entry(CELL_OPEN, 1, NULL);
    entry(CELL_OPEN, 2, NULL);
    struct cell_topic *one = topics_get(topics, 1, NULL, 0);
    entry(CELL_ACQUIRE, 1, "a");
    entry(CELL_ACQUIRE, 2, "b");
    entry(CELL_ACQUIRE, 1, "c");
    entry(CELL_RELEASE, 1, "a");
    assert_false(cell_topic_is_closed(one));
    entry(CELL_EXPIRE, 1, NULL);
    assert_true(cell_topic_is_closed(one));
    assert_string_equal(after(one, 2), "3 granted a one ab; 5 granted c one ab; "
                                       "6 released a one ab; 7 lost c one ab; ");
    struct cell_topic *anew = topics_get(topics, 1, NULL, 0);
    assert_ptr_not_equal(anew, one); /* nobody finds one that has ended */
    cell_topic_unref(anew);
    cell_topic_unref(one);
}

static void a_cached_lock_that_is_wanted_is_told_to_its_session(void **unused)
{
    (void)unused;
    entry(CELL_OPEN, 1, NULL);
    entry(CELL_OPEN, 2, NULL);
    struct cell_topic *one = topics_get(topics, 1, NULL, 0), *two = topics_get(topics, 2, NULL, 0);
    struct cell_command c = command(CELL_ACQUIRE, 1, "map");
    c.mode = CELL_SHARED;
    c.cached = true;
    apply(&c);
    end_entry();
    entry(CELL_ACQUIRE, 2, "map");
    assert_string_equal(after(one, 2), "3 granted map one ab; 4 wanted map one ab; ");
    assert_string_equal(after(two, 2), "");
    cell_topic_unref(one);
    cell_topic_unref(two);
}

static void the_events_of_an_entry_appear_together(void **unused)
{
    (void)unused;
    entry(CELL_OPEN, 1, NULL);
    struct cell_topic *door = of_name("door");
    struct cell_command acquire = command(CELL_ACQUIRE, 1, "door");
    struct cell_command release = command(CELL_RELEASE, 1, "door");
    apply(&acquire);
    assert_int_equal(cell_topic_seq(door), 1);
    assert_string_equal(after(door, 1), "");
    struct cell_topic *late = of_name("late"); /* made while the entry is applied */
    struct cell_command other = command(CELL_ACQUIRE, 1, "late");
    apply(&other);
    apply(&release);
    end_entry();
    assert_int_equal(cell_topic_seq(door), 2);
    assert_string_equal(after(door, 1), "2 granted door one ab; 2 released door one ab; ");
    assert_string_equal(after(late, 2), ""); /* it begins after the entry */
    assert_int_equal(cell_topic_seq(late), 2);
    assert_null(after(late, 1));
    entry(CELL_RELEASE, 1, "late");
    assert_string_equal(after(late, 2), "3 released late one ab; ");
    cell_topic_unref(door);
    cell_topic_unref(late);
}

static void a_reader_resumes_where_it_was_or_is_told_that_it_cannot(void **unused)
{
    (void)unused;
    entry(CELL_OPEN, 1, NULL);
    entry(CELL_OPEN, 2, NULL);
    struct cell_topic *door = of_name("door");
    entry(CELL_ACQUIRE, 1, "door");
    entry(CELL_ACQUIRE, 1, "other");
    entry(CELL_RELEASE, 1, "door");
    assert_string_equal(after(door, 3), "5 released door one ab; ");
    assert_string_equal(after(door, 4), "5 released door one ab; ");
    assert_string_equal(after(door, 5), "");
    assert_null(after(door, 1)); /* before it was made */
    assert_null(after(door, 6)); /* of another journal */
    entry(CELL_ACQUIRE, 2, "other");
    assert_string_equal(after(door, 6), "");
    cell_topic_unref(door);
    door = of_name("door"); /* made anew: it has forgotten */
    assert_int_equal(cell_topic_seq(door), 6);
    assert_null(after(door, 5));
    cell_topic_unref(door);
}

static void readers_share_a_topic(void **unused)
{
    (void)unused;
    struct cell_topic *a = of_name("door"), *b = of_name("door"), *c = of_name("door");
    assert_ptr_equal(a, b);
    assert_ptr_equal(a, c);
    entry(CELL_OPEN, 1, NULL);
    entry(CELL_ACQUIRE, 1, "door");
    cell_topic_unref(a);
    cell_topic_unref(b);
    assert_string_equal(after(c, 0), "2 granted door one ab; ");
    cell_topic_unref(c);
    cell_topic_unref(NULL);
}

static void a_server_that_does_not_lead_has_no_topics(void **unused)
{
    (void)unused;
    entry(CELL_OPEN, 1, NULL);
    struct cell_topic *door = of_name("door"), *session = topics_get(topics, 1, NULL, 0);
    struct cell_command acquire = command(CELL_ACQUIRE, 1, "door");
    apply(&acquire);
    topics_lead(topics, false); /* what was collected is still told */
    assert_true(cell_topic_is_closed(door));
    assert_true(cell_topic_is_closed(session));
    assert_string_equal(after(door, 1), "2 granted door one ab; ");
    assert_null(of_name("door"));
    assert_null(topics_get(topics, 1, NULL, 0));
    end_entry();
    topics_lead(topics, true);
    struct cell_topic *anew = of_name("door");
    assert_non_null(anew);
    entry(CELL_RELEASE, 1, "door");
    assert_string_equal(after(door, 2), ""); /* nothing follows */
    assert_string_equal(after(anew, 2), "3 released door one ab; ");
    cell_topic_unref(anew);
    cell_topic_unref(door);
    cell_topic_unref(session);
}

static void a_topic_remembers_so_many_events_and_no_more(void **unused)
{
    (void)unused;
    enum { ROUNDS = TOPIC_EVENTS_MAX };
    struct cell_topic *door = of_name("door");
    entry(CELL_OPEN, 1, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        struct cell_command c = command(CELL_ACQUIRE, 1, "door");
        c.owner.bytes[0] = (uint8_t)(i / 256); /* an ended owner would be refused */
        c.owner.bytes[1] = (uint8_t)i;
        c.owner.digits = 32;
        apply(&c);
        end_entry();
        c.kind = CELL_RELEASE;
        apply(&c);
        end_entry();
    }
    size_t n = 0;
    assert_false(cell_topic_events(door, index_now - TOPIC_EVENTS_MAX - 1, count, &n));
    assert_int_equal(n, 0);
    assert_true(cell_topic_events(door, index_now - TOPIC_EVENTS_MAX, count, &n));
    assert_int_equal(n, TOPIC_EVENTS_MAX);
    cell_topic_unref(door);
}

static void a_topic_remembers_so_many_bytes_and_no_more(void **unused)
{
    (void)unused;
    enum { ROUNDS = 100 };
    static char value[CELL_VALUE_MAX + 1];
    memset(value, 'v', CELL_VALUE_MAX);
    entry(CELL_OPEN, 1, NULL);
    entry(CELL_ACQUIRE, 1, "door");
    struct cell_topic *door = of_name("door");
    for (int i = 0; i < ROUNDS; i++) {
        value[0] = (char)('a' + i % 26);
        set_value(1, "door", value);
        end_entry();
    }
    size_t n = 0;
    assert_false(cell_topic_events(door, 2, count, &n));
    int64_t first = index_now;
    while (cell_topic_events(door, first - 1, count, &n))
        first--;
    n = 0;
    assert_true(cell_topic_events(door, first, count, &n));
    assert_true(n > TOPIC_BYTES_MAX / (2 * CELL_VALUE_MAX) &&
                n <= TOPIC_BYTES_MAX / CELL_VALUE_MAX);
    cell_topic_unref(door);
}

/* Readers come, read and go while entries are applied: what they see has no gaps and is in order.
 */
enum { READERS = 3, ENTRIES = 3000, ENTRIES_MAX = 200000 /* until a reader had its turn */ };
static atomic_bool over;

struct sight {
    int64_t last;
    bool wrong;
};

static void look(void *context, const struct cell_event *e)
{
    struct sight *s = context;
    s->wrong |= e->index <= s->last || strcmp(e->name, "door") != 0;
    /* One entry in two is about the door. */
    s->wrong |= s->last > 0 && e->index > s->last + 2;
    s->last = e->index;
}

static void *read_on(void *arg)
{
    atomic_size_t *seen = arg;
    while (!atomic_load(&over)) {
        struct cell_topic *door = of_name("door");
        int64_t at = cell_topic_seq(door);
        for (int i = 0; i < 50; i++) {
            struct sight s = {0};
            wait_sleep_us(100); /* so that the writer has its turn */
            if (!cell_topic_events(door, at, look, &s)) {
                at = cell_topic_seq(door); /* it was too slow */
                continue;
            }
            hf_check(!s.wrong);
            if (s.last) {
                at = s.last;
                atomic_fetch_add(seen, 1);
            }
        }
        cell_topic_unref(door);
    }
    return NULL;
}

static void readers_on_other_threads_see_no_gaps(void **unused)
{
    (void)unused;
    pthread_t threads[READERS];
    atomic_size_t seen = 0;
    atomic_store(&over, false);
    entry(CELL_OPEN, 1, NULL);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &seen), 0);
    for (int i = 0; i < ENTRIES || (atomic_load(&seen) == 0 && i < ENTRIES_MAX); i++) {
        struct cell_command c =
            command(i % 4 < 2 ? CELL_ACQUIRE : CELL_RELEASE, 1, i % 2 ? "other" : "door");
        c.owner.bytes[0] = (uint8_t)(i / 4 / 256);
        c.owner.bytes[1] = (uint8_t)(i / 4);
        c.owner.digits = 32;
        apply(&c);
        end_entry();
    }
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    print_message("%zu readings\n", atomic_load(&seen));
    assert_true(atomic_load(&seen) > 0);
}

#define TOPICS_TEST(claim) cmocka_unit_test_setup_teardown(claim, open_topics, close_topics)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOPICS_TEST(a_names_topic_tells_what_happens_to_it_and_to_no_other),
        TOPICS_TEST(a_session_s_topic_tells_of_all_its_locks_and_ends_with_it),
        TOPICS_TEST(a_cached_lock_that_is_wanted_is_told_to_its_session),
        TOPICS_TEST(the_events_of_an_entry_appear_together),
        TOPICS_TEST(a_reader_resumes_where_it_was_or_is_told_that_it_cannot),
        TOPICS_TEST(readers_share_a_topic),
        TOPICS_TEST(a_server_that_does_not_lead_has_no_topics),
        TOPICS_TEST(a_topic_remembers_so_many_events_and_no_more),
        TOPICS_TEST(a_topic_remembers_so_many_bytes_and_no_more),
        TOPICS_TEST(readers_on_other_threads_see_no_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
