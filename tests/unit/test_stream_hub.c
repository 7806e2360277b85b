/* Claims about the messages that streams share: what they say, that each is encoded once, that a
 * subscriber of any pace ends with the map (I13), and that memory has a bound. */
#include "support/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "http/stream_hub.h"

#define SEATS 60

#define EMPTY_HUB                                                                                  \
    {                                                                                              \
        .bytes_max = MESSAGES_BYTES_MAX                                                            \
    }

static struct event *event_of(struct event_def *def, int64_t seq)
{
    struct clock_row clock = {.event = 1, .seq = seq, .now = T0_MS};
    def->id.key = 1;
    return event_new(def, &clock);
}

static struct event *hall(void)
{
    struct event_def *def = def_hall(2, SEATS / 2);
    def_area(def, "Floor", 1, 500);
    def_area(def, "The \"Pit\"", 1, 500);
    return event_of(def, 0);
}

static void change(struct event *e, bool is_area, uint32_t item, uint32_t state)
{
    lock_take(&e->lock);
    e->shown.seq++;
    feed_put(&e->feed, &(struct change){.seq = e->shown.seq,
                                        .item = item,
                                        .state = state,
                                        .kind = is_area ? CHANGE_AREA : CHANGE_SEAT});
    lock_give(&e->lock);
}

static size_t woken;
static void wake(struct subscriber *f)
{
    assert_non_null(f->channel);
    woken++;
}

static size_t round_of(struct hub *h)
{
    woken = 0;
    size_t n = hub_round(h, 0, wake);
    assert_int_equal(n, woken);
    return n;
}

static struct message *next(struct subscriber *f)
{
    enum hub_place place = HUB_WAITS;
    struct message *m = hub_next(f, &place);
    assert_int_equal(place, HUB_WAITS);
    return m;
}

static bool says(const struct message *m, const char *what)
{
    return memmem(m->text.data, m->text.len, what, strlen(what)) != NULL;
}

static void assert_text(struct subscriber *f, const char *expected)
{
    struct message *m = next(f);
    assert_non_null(m);
    assert_int_equal(m->text.len, strlen(expected));
    assert_memory_equal(m->text.data, expected, m->text.len);
    message_unref(m);
}

static void a_message_names_seats_and_areas(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber f = {0};
    struct event *e = hall();
    hub_join(&h, &f, &api_streams, e, AFTER_NOW);
    change(e, true, 1, 499);
    change(e, false, 31, SEAT_BLOCKED);
    change(e, false, 0, SEAT_HELD);
    change(e, true, 0, 17);
    change(e, false, 0, SEAT_BOOKED);
    change(e, false, 2, SEAT_AVAILABLE);
    assert_null(next(&f));
    assert_int_equal(round_of(&h), 1);
    assert_text(&f, "id: 6\nevent: seats\ndata: {\"seq\":6,\"changes\":[[\"A-1-1\",\"b\"],"
                    "[\"A-1-3\",\".\"],[\"A-2-2\",\"x\"]],"
                    "\"areas\":{\"Floor\":17,\"The \\\"Pit\\\"\":499}}\n\n");
    assert_null(next(&f));
    change(e, true, 0, 16);
    assert_int_equal(round_of(&h), 1);
    assert_text(
        &f, "id: 7\nevent: seats\ndata: {\"seq\":7,\"changes\":[],\"areas\":{\"Floor\":16}}\n\n");
    hub_leave(&h, &f);
    hub_close(&h);
    event_free(e);
}

static void a_message_is_encoded_once_for_all(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber f[3] = {{0}};
    struct event *e = hall();
    for (int i = 0; i < 3; i++)
        hub_join(&h, &f[i], &api_streams, e, AFTER_NOW);
    change(e, false, 4, SEAT_HELD);
    assert_int_equal(round_of(&h), 3);
    struct message *m[3];
    for (int i = 0; i < 3; i++)
        m[i] = next(&f[i]);
    assert_ptr_equal(m[0], m[1]);
    assert_ptr_equal(m[0], m[2]);
    size_t bytes = h.bytes;
    assert_int_equal(bytes, m[0]->text.len);
    for (int i = 0; i < 3; i++)
        hub_leave(&h, &f[i]);
    assert_int_equal(h.bytes, bytes); /* readers still hold it */
    for (int i = 0; i < 3; i++)
        message_unref(m[i]);
    assert_int_equal(h.bytes, 0);
    hub_close(&h);
    event_free(e);
}

static void rounds_without_changes_say_nothing(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber f = {0};
    struct event *e = hall();
    assert_int_equal(round_of(&h), 0);
    hub_join(&h, &f, &api_streams, e, 0);
    assert_int_equal(round_of(&h), 0);
    e->shown.seq += 3; /* renewals */
    assert_int_equal(round_of(&h), 0);
    change(e, false, 9, SEAT_HELD);
    e->shown.seq++;
    assert_int_equal(round_of(&h), 1);
    assert_text(&f, "id: 5\nevent: seats\n"
                    "data: {\"seq\":5,\"changes\":[[\"A-1-10\",\"h\"]],\"areas\":{}}\n\n");
    hub_leave(&h, &f);
    hub_leave(&h, &f);
    hub_close(&h);
    event_free(e);
}

static void a_seq_that_is_too_old_or_unknown_begins_with_a_reset(void **state)
{
    (void)state;
    static const char reset[] = "id: 2\nevent: reset\ndata: {\"seq\":2}\n\n";
    struct hub h = EMPTY_HUB;
    struct subscriber old = {0}, future = {0}, unknown = {0}, present = {0};
    struct event *e = hall();
    hub_join(&h, &present, &api_streams, e, 0);
    change(e, false, 1, SEAT_HELD);
    change(e, false, 2, SEAT_HELD);
    feed_reset(&e->feed, e->shown.seq);
    hub_join(&h, &old, &api_streams, e, 1);
    hub_join(&h, &future, &api_streams, e, 3);
    hub_join(&h, &unknown, &api_streams, e, AFTER_UNKNOWN);
    assert_text(&old, reset);
    assert_text(&future, reset);
    assert_text(&unknown, reset);
    assert_int_equal(round_of(&h), 4); /* subscribers that were there must read again too */
    assert_text(&present, reset);
    assert_null(next(&old)); /* it has been told already */
    change(e, false, 3, SEAT_HELD);
    assert_int_equal(round_of(&h), 4);
    struct subscriber *all[] = {&old, &future, &unknown, &present};
    for (int i = 0; i < 4; i++) {
        assert_text(all[i], "id: 3\nevent: seats\n"
                            "data: {\"seq\":3,\"changes\":[[\"A-1-4\",\"h\"]],\"areas\":{}}\n\n");
        hub_leave(&h, all[i]);
    }
    hub_close(&h);
    event_free(e);
}

static void a_subscriber_behind_the_recent_messages_is_told(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber slow = {0}, slower = {0};
    struct event *e = hall();
    hub_join(&h, &slower, &api_streams, e, AFTER_NOW);
    change(e, false, 0, SEAT_HELD);
    round_of(&h);
    hub_join(&h, &slow, &api_streams, e, AFTER_NOW);
    for (int i = 0; i < RECENT_MAX; i++) {
        change(e, false, (uint32_t)i % SEATS, SEAT_BOOKED);
        round_of(&h);
    }
    enum hub_place place = HUB_WAITS;
    assert_null(hub_next(&slower, &place));
    assert_int_equal(place, HUB_BEHIND);
    for (int i = 0; i < RECENT_MAX; i++) {
        struct message *m = next(&slow);
        assert_int_equal(m->seq, i + 2);
        message_unref(m);
    }
    assert_null(next(&slow));
    hub_leave(&h, &slow);
    hub_leave(&h, &slower);
    assert_int_equal(h.bytes, 0);
    hub_close(&h);
    event_free(e);
}

/* Long names make long messages: 10,000 seats of 250 bytes. */
static struct event *large(void)
{
    char name[121];
    struct event_def *def = def_new("Large");
    memset(name, 'n', sizeof name);
    name[120] = '\0';
    def_section(def, name, NULL, 1);
    for (int i = 0; i < 20; i++) {
        name[0] = (char)('a' + i);
        def_row(def, name, 500);
    }
    return event_of(def, 0);
}

static void change_many(struct event *e, uint32_t first, uint32_t n, uint32_t to)
{
    lock_take(&e->lock);
    e->shown.seq += n;
    for (uint32_t i = 0; i < n; i++)
        feed_put(&e->feed, &(struct change){.seq = e->shown.seq, .item = first + i, .state = to});
    lock_give(&e->lock);
}

static void each_message_and_all_together_have_a_bound(void **state)
{
    (void)state;
    enum { N = 60 };
    struct hub h = EMPTY_HUB;
    struct subscriber f[N] = {{0}};
    struct message *held[N];
    struct event *e = large();
    size_t seats = 0;
    for (int i = 0; i < N; i++) { /* each missed something different, and none of them reads */
        change_many(e, 0, 7500, i % 2 ? SEAT_HELD : SEAT_AVAILABLE);
        hub_join(&h, &f[i], &api_streams, e, e->shown.seq - 7500);
        assert_non_null(f[i].missed);
        assert_true(h.bytes <= MESSAGES_BYTES_MAX + (size_t)N * 100);
    }
    assert_true(h.bytes > MESSAGES_BYTES_MAX / 2);
    for (int i = 0; i < N; i++) {
        held[i] = next(&f[i]);
        seats += !says(held[i], "event: reset\n");
        assert_true(held[i]->text.len <= MESSAGE_BYTES_MAX);
    }
    assert_true(seats > 20 && seats < N); /* the subscribers beyond the bound were reset */
    for (int i = 0; i < N; i++) {
        message_unref(held[i]);
        hub_leave(&h, &f[i]);
    }
    assert_int_equal(h.bytes, 0);

    change_many(e, 0, 10000, SEAT_HELD); /* a message about these would be too long */
    hub_join(&h, &f[0], &api_streams, e, e->shown.seq - 10000);
    held[0] = next(&f[0]);
    assert_true(says(held[0], "event: reset\n"));
    message_unref(held[0]);
    hub_leave(&h, &f[0]);
    hub_close(&h);
    event_free(e);
}

/* Newcomers that read nothing are reset before those who were there, and pin what they got. */
static void what_newcomers_missed_leaves_room_for_news(void **state)
{
    (void)state;
    enum { EVENTS = 6, EACH = MISSED_MAX };
    struct hub h = EMPTY_HUB;
    struct event *events[EVENTS];
    struct subscriber present = {0}, f[EVENTS][EACH] = {{{0}}};
    events[0] = large();
    hub_join(&h, &present, &api_streams, events[0], AFTER_NOW);
    for (int n = 0; n < EVENTS; n++) {
        if (n > 0)
            events[n] = large();
        for (int i = 0; i < EACH; i++) {
            change_many(events[n], 0, 7500, i % 2 ? SEAT_HELD : SEAT_AVAILABLE);
            hub_join(&h, &f[n][i], &api_streams, events[n], events[n]->shown.seq - 7500);
        }
    }
    struct message *last = next(&f[EVENTS - 1][EACH - 1]);
    assert_true(says(last, "event: reset\n"));
    message_unref(last);
    assert_int_equal(h.pinned_bytes, 0);
    assert_false(hub_is_short(&h)); /* nobody has them but the channels */
    round_of(&h);
    struct message *news = next(&present);
    assert_false(says(news, "event: reset\n"));
    message_unref(news);
    assert_true(h.pinned_bytes > MESSAGES_BYTES_MAX / 2);
    assert_true(hub_is_short(&h));
    for (int i = 0; i < EACH; i++)
        hub_leave(&h, &f[0][i]);
    assert_false(hub_is_short(&h));
    for (int n = 0; n < EVENTS; n++)
        for (int i = 0; i < EACH; i++)
            hub_leave(&h, &f[n][i]);
    hub_leave(&h, &present);
    assert_int_equal(h.bytes, 0);
    hub_close(&h);
    for (int n = 0; n < EVENTS; n++)
        event_free(events[n]);
}

static void subscribers_that_missed_the_same_share_one_message(void **state)
{
    (void)state;
    enum { N = 100 };
    struct hub h = EMPTY_HUB;
    struct subscriber f[N] = {{0}};
    struct event *e = hall();
    size_t distinct = 0;
    change(e, false, 0, SEAT_HELD);
    for (int i = 0; i < N; i++) {
        change(e, false, 1, SEAT_HELD); /* the sale goes on */
        hub_join(&h, &f[i], &api_streams, e, 0);
        distinct += i == 0 || f[i].missed != f[i - 1].missed;
    }
    assert_true(distinct < N / 2);
    change(e, false, 2, SEAT_HELD);
    round_of(&h);
    for (int i = 0; i < N; i++) { /* still nothing is missing: the round brings the rest */
        struct message *first = next(&f[i]), *second = next(&f[i]);
        assert_int_equal(second->seq, e->shown.seq);
        assert_true(says(second, "A-1-3"));
        message_unref(first);
        message_unref(second);
        hub_leave(&h, &f[i]);
    }
    hub_close(&h);
    event_free(e);
}

/* ---- I13, at every pace ---- */

enum { READERS = 40, STEPS = 4000 };

struct reader {
    struct subscriber subscriber;
    char map[SEATS];
    bool joined;
};

static struct sale {
    struct hub hub;
    struct event *e;
    struct random random;
    char maps[STEPS + 1][SEATS]; /* at each seq */
    struct reader readers[READERS];
} sale;

static void apply(char map[SEATS], const struct event *e, const struct message *m)
{
    char text[8192];
    assert_true(m->text.len < sizeof text);
    memcpy(text, m->text.data, m->text.len);
    text[m->text.len] = '\0';
    for (const char *at = text; (at = strstr(at, "[\"A-"));) {
        const char *name = at += 2;
        uint32_t index;
        size_t len = strcspn(name, "\"");
        assert_true(event_seat_find(e, name, len, &index));
        map[index] = name[len + 3];
    }
}

static void sell(struct sale *s)
{
    uint32_t seat = (uint32_t)random_below(&s->random, SEATS);
    uint32_t to = (uint32_t)random_below(&s->random, 4);
    int64_t seq = s->e->shown.seq;
    memcpy(s->maps[seq + 1], s->maps[seq], SEATS);
    s->maps[seq + 1][seat] = ".hbx"[to];
    change(s->e, false, seat, to);
}

/* The reader breaks off, or comes back with the map it had. */
static void come_or_go(struct sale *s, struct reader *r)
{
    if (r->joined) {
        hub_leave(&s->hub, &r->subscriber);
    } else {
        int64_t after = (int64_t)random_below(&s->random, (uint64_t)s->e->shown.seq + 1);
        memcpy(r->map, s->maps[after], SEATS);
        hub_join(&s->hub, &r->subscriber, &api_streams, s->e, after);
    }
    r->joined = !r->joined;
}

/* Reads one message.  Returns false if there is none. */
static bool read_on(struct sale *s, struct reader *r)
{
    enum hub_place place = HUB_WAITS;
    struct message *m = r->joined ? hub_next(&r->subscriber, &place) : NULL;
    if (place == HUB_BEHIND)
        come_or_go(s, r);
    if (!m)
        return false;
    apply(r->map, s->e, m);
    assert_memory_equal(r->map, s->maps[m->seq], SEATS);
    message_unref(m);
    return true;
}

static void at_any_pace_a_readers_map_is_that_of_its_last_message(void **state)
{
    (void)state;
    struct sale *s = &sale;
    s->hub = (struct hub)EMPTY_HUB;
    s->e = hall();
    memset(s->maps[0], '.', SEATS);
    random_init_seeded(&s->random, test_seed(21));
    for (int step = 0; step < STEPS; step++) {
        struct reader *r = &s->readers[random_below(&s->random, READERS)];
        uint64_t what = random_below(&s->random, 6);
        if (what <= 1)
            sell(s);
        else if (what == 2)
            round_of(&s->hub);
        else if (what == 3)
            come_or_go(s, r);
        else
            (void)read_on(s, r);
    }
    round_of(&s->hub);
    for (int i = 0; i < READERS; i++) {
        struct reader *r = &s->readers[i];
        while (read_on(s, r))
            ;
        if (r->joined)
            assert_memory_equal(r->map, s->maps[s->e->shown.seq], SEATS);
        hub_leave(&s->hub, &r->subscriber);
    }
    assert_int_equal(s->hub.bytes, 0);
    hub_close(&s->hub);
    event_free(s->e);
}

/* ---- topics that end, of another source ---- */

struct story {
    int64_t seq;
    bool ended;
    int refs;
};

static int64_t story_seq(const void *topic) { return ((const struct story *)topic)->seq; }
static bool story_has_ended(const void *topic) { return ((const struct story *)topic)->ended; }
static void story_unref(void *topic) { ((struct story *)topic)->refs--; }

static enum stream_news story_encode(void *topic, int64_t after, size_t len_max, struct buf *out,
                                     int64_t *ret_seq)
{
    (void)len_max;
    *ret_seq = story_seq(topic);
    if (after == *ret_seq)
        return STREAM_NOTHING;
    stream_put_head(out, *ret_seq, "story");
    buf_lit(out, "}\n\n");
    return STREAM_MESSAGE;
}

static const struct stream_source stories = {
    .seq = story_seq, .encode = story_encode, .has_ended = story_has_ended, .unref = story_unref};

static void follow(struct hub *h, struct subscriber *s, struct story *story, int64_t after)
{
    story->refs++;
    hub_join(h, s, &stories, story, after);
}

static void assert_ended(struct subscriber *s)
{
    enum hub_place place = HUB_WAITS;
    assert_null(hub_next(s, &place));
    assert_int_equal(place, HUB_ENDED);
}

static void topics_of_several_sources_are_told_side_by_side(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber seats = {0}, pages = {0};
    struct event *e = hall();
    struct story story = {.seq = 7};
    hub_join(&h, &seats, &api_streams, e, AFTER_NOW);
    follow(&h, &pages, &story, AFTER_NOW);
    change(e, true, 0, 16);
    story.seq++;
    assert_int_equal(round_of(&h), 2);
    assert_text(
        &seats,
        "id: 1\nevent: seats\ndata: {\"seq\":1,\"changes\":[],\"areas\":{\"Floor\":16}}\n\n");
    assert_text(&pages, "id: 8\nevent: story\ndata: {\"seq\":8}\n\n");
    hub_leave(&h, &seats);
    hub_leave(&h, &pages);
    hub_close(&h);
    event_free(e);
}

static void a_topic_is_given_back_with_its_last_subscriber(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber f[3] = {{0}};
    struct story story = {.seq = 1};
    for (int i = 0; i < 3; i++)
        follow(&h, &f[i], &story, AFTER_NOW);
    assert_int_equal(story.refs, 1); /* the hub needs one only */
    hub_leave(&h, &f[0]);
    hub_leave(&h, &f[2]);
    assert_int_equal(story.refs, 1);
    hub_leave(&h, &f[1]);
    assert_int_equal(story.refs, 0);
    hub_close(&h);
}

static void a_topic_ends_after_its_last_message(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber f = {0}, slow = {0}, late = {0}, later = {0};
    struct story story = {.seq = 1};
    follow(&h, &f, &story, AFTER_NOW);
    follow(&h, &slow, &story, AFTER_NOW);
    story.seq++;
    story.ended = true;
    follow(&h, &late, &story, AFTER_NOW); /* it has ended, but the hub does not know it yet */
    assert_int_equal(round_of(&h), 3);
    assert_text(&f, "id: 2\nevent: story\ndata: {\"seq\":2}\n\n");
    assert_ended(&f);
    assert_ended(&f);
    assert_ended(&late);
    assert_int_equal(round_of(&h), 0); /* once is enough */
    follow(&h, &later, &story, 1);
    assert_text(&later, "id: 2\nevent: story\ndata: {\"seq\":2}\n\n");
    assert_ended(&later);
    assert_text(&slow, "id: 2\nevent: story\ndata: {\"seq\":2}\n\n");
    assert_ended(&slow);
    struct subscriber *all[] = {&f, &slow, &late, &later};
    for (int i = 0; i < 4; i++)
        hub_leave(&h, all[i]);
    assert_int_equal(story.refs, 0);
    assert_int_equal(h.bytes, 0);
    hub_close(&h);
}

static void a_topic_may_end_without_a_message(void **state)
{
    (void)state;
    struct hub h = EMPTY_HUB;
    struct subscriber f = {0};
    struct story story = {.seq = 1};
    follow(&h, &f, &story, AFTER_NOW);
    assert_int_equal(round_of(&h), 0);
    story.ended = true;
    assert_int_equal(round_of(&h), 1);
    assert_ended(&f);
    hub_leave(&h, &f);
    hub_close(&h);
}

/* ---- the ration of replays ---- */

/* A machine that does something else for a while whenever it is asked for the time. */
static struct busy_clock {
    struct clock clock;
    int64_t now_us, work_us; /* work: of this thread */
    int64_t working_us;      /* is added to it each time */
} busy;

static int64_t busy_now_us(const struct clock *clock)
{
    (void)clock;
    return busy.now_us += 200000;
}

static int64_t busy_work_us(const struct clock *clock)
{
    (void)clock;
    return busy.work_us += busy.working_us;
}

/* Newcomers who missed something, each of another topic; returns how many were told what. */
static int replayed(int64_t working_us)
{
    enum { N = 8 };
    struct hub h = EMPTY_HUB;
    struct subscriber f[N] = {{0}};
    struct story stories_of[N];
    int n = 0;
    busy = (struct busy_clock){
        .clock = {.monotonic_us = busy_now_us, .thread_us = busy_work_us},
        .working_us = working_us,
    };
    h.clock = &busy.clock;
    for (int i = 0; i < N; i++) {
        stories_of[i] = (struct story){.seq = 2};
        follow(&h, &f[i], &stories_of[i], 1);
        struct message *m = next(&f[i]);
        n += says(m, "event: story\n");
        message_unref(m);
    }
    for (int i = 0; i < N; i++)
        hub_leave(&h, &f[i]);
    hub_close(&h);
    return n;
}

static void replays_are_rationed_by_what_they_cost_not_by_what_others_do(void **state)
{
    (void)state;
    assert_int_equal(replayed(0), 8);
    assert_int_equal(replayed(150000), 2); /* a tenth of the time: again after half a second */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_are_rationed_by_what_they_cost_not_by_what_others_do),
        cmocka_unit_test(a_message_names_seats_and_areas),
        cmocka_unit_test(a_message_is_encoded_once_for_all),
        cmocka_unit_test(rounds_without_changes_say_nothing),
        cmocka_unit_test(a_seq_that_is_too_old_or_unknown_begins_with_a_reset),
        cmocka_unit_test(a_subscriber_behind_the_recent_messages_is_told),
        cmocka_unit_test(topics_of_several_sources_are_told_side_by_side),
        cmocka_unit_test(a_topic_is_given_back_with_its_last_subscriber),
        cmocka_unit_test(a_topic_ends_after_its_last_message),
        cmocka_unit_test(a_topic_may_end_without_a_message),
        cmocka_unit_test(each_message_and_all_together_have_a_bound),
        cmocka_unit_test(what_newcomers_missed_leaves_room_for_news),
        cmocka_unit_test(subscribers_that_missed_the_same_share_one_message),
        cmocka_unit_test(at_any_pace_a_readers_map_is_that_of_its_last_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
