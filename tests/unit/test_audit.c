/* Claims about reading the ledger in pages: an event's log, one seat's past, the expiry of a hold
 * as it was known at some moment, and the list of an event's holds. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/ledger_internal.h"

static struct {
    struct temp_dir dir;
    struct clock_fake clock;
    struct ledger *ledger;
    int64_t event, other;
    int64_t seq[3]; /* of events 1 and 2 */
    struct ledger_batch batch;
    VEC(struct audit_row) log; /* all rows that were put, but for the creations */
} fixture;

static void ok(enum hf_status status, const struct hf_err *err)
{
    if (status != HF_OK)
        fail_msg("%s: %s", hf_status_name(status), err->msg);
}

static int64_t insert_event(void)
{
    struct hf_err err = {0};
    struct event_def *def = def_hall(2, 5);
    ok(ledger_begin(fixture.ledger, &err), &err);
    ok(ledger_event_insert(fixture.ledger, def, T0_MS, ACTOR_OPEN, &err), &err);
    ok(ledger_commit(fixture.ledger, &err), &err);
    int64_t key = def->id.key;
    fixture.seq[key] = 1; /* the creation is the first row */
    event_def_free(def);
    return key;
}

static int fixture_open(void **state)
{
    (void)state;
    struct hf_err err = {0};
    temp_dir_make(&fixture.dir);
    clock_fake_init(&fixture.clock, T0_MS * 1000);
    struct db_options options = {.clock = &fixture.clock.clock, .writer = true};
    ok(ledger_open(fixture.dir.url, &options, &fixture.ledger, &err), &err);
    fixture.event = insert_event();
    fixture.other = insert_event();
    return 0;
}

static int fixture_close(void **state)
{
    (void)state;
    ledger_close(fixture.ledger);
    vec_close(&fixture.batch.holds_new);
    vec_close(&fixture.batch.bookings_new);
    vec_close(&fixture.batch.audit);
    vec_close(&fixture.batch.holds);
    vec_close(&fixture.log);
    temp_dir_remove(&fixture.dir);
    return 0;
}

static void store(void)
{
    struct hf_err err = {0};
    ok(ledger_begin(fixture.ledger, &err), &err);
    ok(ledger_write(fixture.ledger, &fixture.batch, &err), &err);
    ok(ledger_commit(fixture.ledger, &err), &err);
    vec_clear(&fixture.batch.holds_new);
    vec_clear(&fixture.batch.bookings_new);
    vec_clear(&fixture.batch.audit);
    vec_clear(&fixture.batch.holds);
}

static struct hold_row *put_hold(int64_t event, int64_t fence, enum hold_status status,
                                 int64_t expires_at)
{
    static const uint32_t seats[] = {1};
    struct hold_row *row = vec_push(&fixture.batch.holds_new);
    *row = (struct hold_row){.id.key = HOLD_KEY(event, fence),
                             .event = event,
                             .fence = fence,
                             .created_at = T0_MS,
                             .expires_at = expires_at,
                             .max_expires_at = T0_MS + HOUR_MS,
                             .status = status,
                             .seats = seats,
                             .n_seats = 1};
    memset(row->id.secret, (int)fence, ID_SECRET_SIZE);
    return row;
}

static void put_booking(int64_t event, int64_t fence)
{
    struct booking_row *row = vec_push(&fixture.batch.bookings_new);
    *row = (struct booking_row){.id.key = HOLD_KEY(event, fence),
                                .event = event,
                                .fence = fence,
                                .created_at = T0_MS,
                                .status = BOOKING_CONFIRMED};
    memset(row->id.secret, 0xb0 + (int)fence, ID_SECRET_SIZE);
}

/* The seq of the last row up to `seq` about this seat, or about this hold. */
static int64_t last_seq(int64_t event, enum audit_object object, int64_t item, int64_t hold,
                        int64_t seq)
{
    int64_t last = 0;
    for (size_t i = 0; i < fixture.log.n; i++) {
        const struct audit_row *row = &fixture.log.v[i];
        if (row->event == event && row->object == object && row->item == item && row->seq <= seq &&
            (object == AUDIT_SEAT || row->hold == hold))
            last = row->seq;
    }
    return last;
}

/* Notes the hold's last row in the hold, which is new or was stored before. */
static void note_last_seq(const struct audit_row *row)
{
    for (size_t i = 0; i < fixture.batch.holds_new.n; i++)
        if (fixture.batch.holds_new.v[i].id.key == row->hold) {
            fixture.batch.holds_new.v[i].last_seq = row->seq;
            return;
        }
    *vec_push(&fixture.batch.holds) = (struct hold_write){.hold = row->hold,
                                                          .fence_before = row->fence,
                                                          .fence = row->fence,
                                                          .expires_at = row->until,
                                                          .last_seq = row->seq,
                                                          .from = HOLD_ACTIVE,
                                                          .to = HOLD_ACTIVE};
}

/* Adds the next row to an event's log. */
static struct audit_row *put_row(int64_t event, enum audit_object object, int64_t item,
                                 int64_t fence, int64_t at)
{
    struct audit_row *row = vec_push(&fixture.batch.audit);
    *row = (struct audit_row){.event = event,
                              .seq = ++fixture.seq[event],
                              .at = at,
                              .object = object,
                              .cause = CAUSE_HOLD,
                              .item = item,
                              .quantity = 1,
                              .to = 1,
                              .hold = fence ? HOLD_KEY(event, fence) : 0,
                              .fence = fence,
                              .until = at + 1000};
    if (object == AUDIT_SEAT || object == AUDIT_HOLD)
        row->prev = last_seq(event, object, item, row->hold, row->seq);
    *vec_push(&fixture.log) = *row;
    if (object == AUDIT_HOLD)
        note_last_seq(row);
    return row;
}

/* ---- the log ---- */

#define ROWS_MAX 64
static struct audit_entry rows[ROWS_MAX];

/* The end of a seat's chain as a view knows it that has seen the log up to `seq`. */
static struct seat_chain chain_at(int64_t seat, int64_t seq)
{
    return (struct seat_chain){.event = fixture.event,
                               .seat = (uint32_t)seat,
                               .head = last_seq(fixture.event, AUDIT_SEAT, seat, 0, seq),
                               .seq = seq};
}

/* Whatever the view knows of the log, the answer is the same. */
static size_t read_log_as_of(int64_t seq, const struct audit_query *asked, int64_t seat)
{
    struct hf_err err = {0};
    size_t n = 99;
    struct audit_query query = *asked;
    const struct seat_chain chain = chain_at(seat, seq);
    query.seat = seat >= 0 ? &chain : NULL;
    memset(rows, 0x5a, sizeof rows);
    ok(ledger_audit_read(fixture.ledger, &query, rows, &n, &err), &err);
    return n;
}

static size_t read_log(int64_t after, int64_t seat, int64_t hold, size_t limit)
{
    struct audit_entry first[ROWS_MAX];
    const struct audit_query query = {
        .event = fixture.event, .after = after, .hold = hold, .limit = limit};
    size_t n = read_log_as_of(0, &query, seat);
    memcpy(first, rows, sizeof first);
    for (int64_t seq = 1; seq <= fixture.seq[fixture.event]; seq += 4) {
        assert_int_equal(read_log_as_of(seq, &query, seat), n);
        assert_memory_equal(rows, first, n * sizeof *rows);
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].row.event, fixture.event);
        if (i)
            assert_true(rows[i - 1].row.seq < rows[i].row.seq);
    }
    return n;
}

static void a_row_of_the_log_comes_back_with_the_secrets_of_what_it_names(void **state)
{
    (void)state;
    put_hold(fixture.event, 1, HOLD_CONFIRMED, T0_MS + 1000);
    put_booking(fixture.event, 1);
    struct audit_row *row = put_row(fixture.event, AUDIT_AREA, 1, 1, T0_MS + 5);
    row->quantity = 7;
    row->from = SEAT_HELD;
    row->to = SEAT_BOOKED;
    row->cause = CAUSE_CONFIRM;
    row->booking = row->hold;
    row->until = 0;
    put_row(fixture.event, AUDIT_EVENT, -1, 0, T0_MS + 6)->until = 0;
    struct audit_row want = fixture.batch.audit.v[0];
    store();
    assert_int_equal(read_log(0, -1, 0, ROWS_MAX), 3);
    assert_int_equal(rows[0].row.seq, 1); /* the creation */
    assert_int_equal(rows[0].row.object, AUDIT_EVENT);
    assert_int_equal(rows[0].row.cause, CAUSE_CREATE);
    assert_memory_equal(&rows[1].row.seq, &want.seq, sizeof want - offsetof(struct audit_row, seq));
    assert_int_equal(rows[1].hold_secret[0], 1);
    assert_int_equal(rows[1].booking_secret[ID_SECRET_SIZE - 1], 0xb1);
    assert_int_equal(rows[2].row.item, -1); /* neither a seat nor an area, and not number 0 */
    assert_int_equal(rows[2].row.hold + rows[2].row.booking, 0);
    assert_int_equal(rows[2].hold_secret[0] + rows[2].booking_secret[0], 0);
}

static void each_row_comes_back_with_its_actor(void **state)
{
    static const char longest[] = "address:1111:2222:3333:4444:5555:6666:255.255.255.255";
    (void)state;
    /* Seats that pass alike would be one entry, were it not for their actors. */
    static const char *const actors[] = {"key:a", "key:a", "key:b", longest, NULL, NULL, "timer"};
    enum { N = sizeof actors / sizeof *actors };
    for (int i = 0; i < N; i++)
        put_row(fixture.event, AUDIT_SEAT, i, 0, T0_MS + 5)->actor = actors[i];
    store();
    assert_int_equal(read_log(1, -1, 0, ROWS_MAX), N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(rows[i].row.item, i);
        assert_string_equal(rows[i].actor, actors[i] ? actors[i] : "");
        assert_null(rows[i].row.actor);
    }
    assert_int_equal(read_log(1, 2, 0, ROWS_MAX), 1);
    assert_string_equal(rows[0].actor, "key:b");
    assert_int_equal(read_log(0, -1, 0, 1), 1);
    assert_string_equal(rows[0].actor, ACTOR_OPEN); /* of the creation */
}

static void an_actor_that_is_damaged_is_not_known(void **state)
{
    static const char *const damaged[] = {"", "somebody", "key:\"", "key:a b",
                                          "key:0123456789012345678901234567890123456789"
                                          "01234567890123456789"};
    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        put_row(fixture.event, AUDIT_SEAT, (int64_t)i, 0, T0_MS + 5)->actor = damaged[i];
    store();
    assert_int_equal(read_log(1, -1, 0, ROWS_MAX), sizeof damaged / sizeof *damaged);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        assert_string_equal(rows[i].actor, "");
}

/* What goes back to a channel and what goes back on sale are entries of their own. */
static void a_change_that_takes_most_of_a_hold_is_read_whole(void **state)
{
    (void)state;
    enum { REMOVED = 8 };
    put_hold(fixture.event, 1, HOLD_ACTIVE, T0_MS + 1000);
    put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS)->quantity = REMOVED + 1;
    struct audit_row *row = put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS + 1);
    row->cause = CAUSE_CHANGE;
    row->from = HOLD_ACTIVE;
    for (int i = 0; i < REMOVED; i++) {
        row = put_row(fixture.event, AUDIT_SEAT, i, 1, T0_MS + 1);
        row->cause = CAUSE_CHANGE;
        row->from = SEAT_HELD;
        row->to = i % 2 ? SEAT_BLOCKED : SEAT_AVAILABLE;
        row->channel = i % 2 ? 1 : 0;
        row->until = 0;
    }
    put_row(fixture.event, AUDIT_SEAT, 20, 0, T0_MS + 2); /* another's */
    store();
    assert_int_equal(read_log(0, -1, HOLD_KEY(fixture.event, 1), ROWS_MAX), 2 + REMOVED);
    assert_int_equal(rows[1 + REMOVED].row.channel, 1);
    assert_int_equal(rows[REMOVED].row.channel, 0);
}

static void a_cancelled_sale_is_in_the_log_of_its_hold(void **state)
{
    (void)state;
    int64_t hold = HOLD_KEY(fixture.event, 1);
    put_hold(fixture.event, 1, HOLD_CONFIRMED, T0_MS + 1000);
    put_booking(fixture.event, 1);
    int64_t made = put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS)->seq;
    struct audit_row *row = put_row(fixture.event, AUDIT_BOOKING, -1, 1, T0_MS + 1);
    row->cause = CAUSE_CANCEL;
    row->from = BOOKING_CONFIRMED;
    row->to = BOOKING_CANCELLED;
    row->booking = hold;
    row->prev = made;
    row->until = 0;
    fixture.batch.holds_new.v[0].last_seq = row->seq;
    row = put_row(fixture.event, AUDIT_SEAT, 1, 1, T0_MS + 1);
    row->cause = CAUSE_CANCEL;
    row->from = SEAT_BOOKED;
    row->to = SEAT_AVAILABLE;
    row->until = 0;
    store();
    assert_int_equal(read_log(0, -1, hold, ROWS_MAX), 3);
    assert_int_equal(rows[1].row.to, BOOKING_CANCELLED);
    assert_int_equal(rows[1].booking_secret[0], 0xb1);
    assert_int_equal(rows[2].row.object, AUDIT_SEAT);
    int64_t until = 0;
    struct hf_err err = {0};
    ok(ledger_audit_until(fixture.ledger, hold, T0_MS + 5, &until, &err), &err);
    assert_int_equal(until, T0_MS + 1000); /* the hold's */
}

static void the_log_is_read_page_by_page_without_a_gap(void **state)
{
    (void)state;
    for (int i = 0; i < 25; i++) {
        put_row(fixture.event, AUDIT_SEAT, i % 10, 0, T0_MS + i);
        put_row(fixture.other, AUDIT_SEAT, i % 10, 0, T0_MS + i);
    }
    store();
    int64_t next = 0;
    size_t n;
    while ((n = read_log(next, -1, 0, 7)) > 0) {
        assert_int_equal(n, next + 7 <= 26 ? 7 : 26 - next);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(rows[i].row.seq, ++next);
    }
    assert_int_equal(next, 26); /* without rows of the other event */
    assert_int_equal(read_log(26, -1, 0, 7), 0);
    assert_int_equal(read_log(INT64_C(1) << 39, -1, 0, 7), 0);
}

static void the_log_of_a_seat_is_about_that_seat_and_no_area_of_its_number(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        put_row(fixture.event, AUDIT_SEAT, i % 3, 0, T0_MS);
        put_row(fixture.event, AUDIT_AREA, i % 3, 0, T0_MS);
    }
    store();
    assert_int_equal(read_log(0, 2, 0, ROWS_MAX), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rows[i].row.object, AUDIT_SEAT);
        assert_int_equal(rows[i].row.item, 2);
    }
    int64_t third = rows[2].row.seq;
    assert_int_equal(read_log(third - 1, 2, 0, ROWS_MAX), 2);
    assert_int_equal(read_log(third, 2, 0, ROWS_MAX), 1);
    assert_int_equal(read_log(0, 0, 0, 3), 3); /* seat 0 is a seat, too */
    assert_int_equal(rows[0].row.item, 0);
    assert_int_equal(read_log(0, 9, 0, ROWS_MAX), 0);
}

static void the_log_of_a_hold_is_all_of_its_rows(void **state)
{
    (void)state;
    for (int fence = 1; fence <= 4; fence++) {
        put_hold(fixture.event, fence, HOLD_ACTIVE, T0_MS);
        put_row(fixture.event, AUDIT_HOLD, -1, fence, T0_MS);
        put_row(fixture.event, AUDIT_SEAT, fence, fence, T0_MS);
        put_row(fixture.event, AUDIT_AREA, 0, fence, T0_MS);
        put_hold(fixture.other, fence, HOLD_ACTIVE, T0_MS);
        put_row(fixture.other, AUDIT_HOLD, -1, fence, T0_MS);
    }
    store();
    put_row(fixture.event, AUDIT_HOLD, -1, 2, T0_MS + 9);
    put_row(fixture.event, AUDIT_SEAT, 2, 2, T0_MS + 9);
    store();
    assert_int_equal(read_log(0, -1, HOLD_KEY(fixture.event, 2), ROWS_MAX), 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rows[i].row.hold, HOLD_KEY(fixture.event, 2));
        assert_int_equal(rows[i].hold_secret[3], 2);
    }
    assert_int_equal(rows[3].row.at, T0_MS + 9);
    for (int i = 0; i < 5; i++) { /* also from the middle of a transition */
        assert_int_equal(read_log(0, -1, HOLD_KEY(fixture.event, 2), ROWS_MAX), 5);
        int64_t seq = rows[i].row.seq;
        assert_int_equal(read_log(seq, -1, HOLD_KEY(fixture.event, 2), ROWS_MAX), 4 - i);
        assert_int_equal(read_log(0, -1, HOLD_KEY(fixture.event, 2), (size_t)i + 1), i + 1);
        assert_int_equal(rows[i].row.seq, seq);
    }
    assert_int_equal(read_log(0, 2, HOLD_KEY(fixture.event, 2), ROWS_MAX), 2); /* of both */
    assert_int_equal(read_log(0, 1, HOLD_KEY(fixture.event, 2), ROWS_MAX), 0);
    assert_int_equal(read_log(0, -1, HOLD_KEY(fixture.event, 5), ROWS_MAX), 0);
}

/* Ledgers of versions before 4 have an entry for each row. */
static void entries_of_one_row_read_like_those_of_a_whole_transition(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct audit_entry whole[ROWS_MAX];
    int64_t hold = HOLD_KEY(fixture.event, 1), first = fixture.seq[fixture.event] + 1;
    put_hold(fixture.event, 1, HOLD_ACTIVE, T0_MS);
    put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS)->quantity = 4;
    put_row(fixture.event, AUDIT_SEAT, 1, 1, T0_MS);
    put_row(fixture.event, AUDIT_SEAT, 2, 1, T0_MS);
    put_row(fixture.event, AUDIT_AREA, 0, 1, T0_MS)->quantity = 2;
    store();
    assert_int_equal(read_log(1, -1, 0, ROWS_MAX), 4);
    memcpy(whole, rows, sizeof whole);
    ok(fixture.ledger->db->driver->script(fixture.ledger->db,
                                          "DELETE FROM log WHERE hold <> 0;"
                                          "UPDATE holds SET status = 1",
                                          &err),
       &err);
    for (int i = 0; i < 4; i++) {
        *vec_push(&fixture.batch.audit) = whole[i].row;
        store();
    }
    assert_int_equal(read_log(1, -1, 0, ROWS_MAX), 4);
    assert_memory_equal(rows, whole, 4 * sizeof *rows);
    assert_int_equal(read_log(first, -1, hold, 2), 2);
    assert_memory_equal(rows, whole + 1, 2 * sizeof *rows);
    assert_int_equal(read_log(0, 2, hold, ROWS_MAX), 1);
    assert_memory_equal(rows, whole + 2, sizeof *rows);
}

/* ---- a seat's past ---- */

static size_t read_seat(uint32_t seat, int64_t at, size_t limit)
{
    struct hf_err err = {0};
    struct audit_entry first[ROWS_MAX];
    size_t n = 99, first_n = 99;
    for (int64_t seq = 0; seq <= fixture.seq[fixture.event]; seq += 4) {
        const struct seat_chain chain = chain_at(seat, seq);
        memset(rows, 0x5a, sizeof rows);
        ok(ledger_audit_seat(fixture.ledger, &chain, at, limit, rows, &n, &err), &err);
        if (seq == 0) {
            memcpy(first, rows, sizeof first);
            first_n = n;
        }
        assert_int_equal(n, first_n);
        assert_memory_equal(rows, first, n * sizeof *rows);
    }
    return n;
}

static void a_seat_s_past_comes_newest_first_and_ends_at_the_moment_asked_for(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        put_row(fixture.event, AUDIT_SEAT, 3, 0, T0_MS + i / 2 * 10); /* two rows at each moment */
        put_row(fixture.event, AUDIT_SEAT, 4, 0, T0_MS + i / 2 * 10);
        put_row(fixture.event, AUDIT_AREA, 3, 0, T0_MS + i / 2 * 10);
        put_row(fixture.other, AUDIT_SEAT, 3, 0, T0_MS + i / 2 * 10);
    }
    store();
    assert_int_equal(read_seat(3, T0_MS + 1000, ROWS_MAX), 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rows[i].row.item, 3);
        assert_int_equal(rows[i].row.object, AUDIT_SEAT);
        assert_int_equal(rows[i].row.seq, 2 + (9 - i) * 3);
    }
    assert_int_equal(read_seat(3, T0_MS + 20, ROWS_MAX), 6); /* includes rows of that moment */
    assert_int_equal(rows[0].row.at, T0_MS + 20);
    assert_int_equal(read_seat(3, T0_MS + 19, ROWS_MAX), 4);
    assert_int_equal(read_seat(3, T0_MS - 1, ROWS_MAX), 0);
    assert_int_equal(read_seat(3, T0_MS + 1000, 3), 3); /* the newest three */
    assert_int_equal(rows[2].row.seq, 2 + 7 * 3);
    assert_int_equal(read_seat(5, T0_MS + 1000, ROWS_MAX), 0);
}

static void a_hold_lasts_until_what_was_known_at_the_moment(void **state)
{
    (void)state;
    struct hf_err err = {0};
    int64_t key = HOLD_KEY(fixture.event, 1), until = 77;
    put_hold(fixture.event, 1, HOLD_ACTIVE, T0_MS);
    put_hold(fixture.event, 2, HOLD_ACTIVE, T0_MS);
    put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS)->until = T0_MS + 1000;
    put_row(fixture.event, AUDIT_SEAT, 3, 1, T0_MS)->until = T0_MS + 1000;
    put_row(fixture.event, AUDIT_HOLD, -1, 2, T0_MS + 100)->until = T0_MS + 5000;
    put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS + 500)->until = T0_MS + 1500;
    put_row(fixture.event, AUDIT_HOLD, -1, 1, T0_MS + 900)->until = T0_MS + 1900;
    store();
    const int64_t cases[][2] = {{0, 1000},   {499, 1000}, {500, 1500},
                                {899, 1500}, {900, 1900}, {9999, 1900}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(ledger_audit_until(fixture.ledger, key, T0_MS + cases[i][0], &until, &err), &err);
        assert_int_equal(until, T0_MS + cases[i][1]);
    }
    ok(ledger_audit_until(fixture.ledger, key, T0_MS - 1, &until, &err), &err);
    assert_int_equal(until, 0);
    ok(ledger_audit_until(fixture.ledger, HOLD_KEY(fixture.other, 1), T0_MS + 9999, &until, &err),
       &err);
    assert_int_equal(until, 0);
}

/* ---- the list of holds ---- */

static int64_t keys[ROWS_MAX];

static size_t list(int64_t before, enum hold_status status, int64_t now, size_t limit)
{
    struct hf_err err = {0};
    size_t n = 99;
    const struct holds_query query = {
        .event = fixture.event, .before = before, .status = status, .now = now, .limit = limit};
    ok(ledger_holds_list(fixture.ledger, &query, keys, &n, &err), &err);
    return n;
}

static void an_event_s_holds_are_listed_newest_first_page_by_page(void **state)
{
    (void)state;
    for (int fence = 1; fence <= 10; fence++) {
        put_hold(fixture.event, fence * 3, HOLD_ACTIVE, T0_MS + 1000); /* fences have gaps */
        put_hold(fixture.other, fence, HOLD_ACTIVE, T0_MS + 1000);
    }
    store();
    assert_int_equal(list(0, HOLD_NONE, T0_MS, ROWS_MAX), 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(keys[i], HOLD_KEY(fixture.event, (10 - i) * 3));
    int64_t before = 0, next = 30;
    size_t n;
    while ((n = list(before, HOLD_NONE, T0_MS, 4)) > 0)
        for (size_t i = 0; i < n; i++, next -= 3)
            assert_int_equal(before = keys[i], HOLD_KEY(fixture.event, next));
    assert_int_equal(next, 0);
    fixture.event = fixture.other;
    assert_int_equal(list(0, HOLD_NONE, T0_MS, ROWS_MAX), 10);
    assert_int_equal(keys[9], HOLD_KEY(fixture.other, 1));
}

static void a_hold_is_listed_under_the_status_it_has_now_swept_or_not(void **state)
{
    (void)state;
    put_hold(fixture.event, 1, HOLD_ACTIVE, T0_MS + 100);
    put_hold(fixture.event, 2, HOLD_ACTIVE, T0_MS + 200);
    put_hold(fixture.event, 3, HOLD_EXPIRED, T0_MS + 50);
    put_hold(fixture.event, 4, HOLD_RELEASED, T0_MS + 50);
    put_hold(fixture.event, 5, HOLD_CONFIRMED, T0_MS + 50);
    store();
    const struct {
        enum hold_status status;
        int64_t now;
        size_t n;
        int64_t fences[3];
    } cases[] = {
        {HOLD_ACTIVE, 99, 2, {2, 1}},   {HOLD_ACTIVE, 100, 1, {2}},
        {HOLD_ACTIVE, 200, 0, {0}},     {HOLD_EXPIRED, 99, 1, {3}},
        {HOLD_EXPIRED, 100, 2, {3, 1}}, {HOLD_EXPIRED, 200, 3, {3, 2, 1}},
        {HOLD_RELEASED, 200, 1, {4}},   {HOLD_CONFIRMED, 200, 1, {5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(list(0, cases[i].status, T0_MS + cases[i].now, ROWS_MAX), cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++)
            assert_int_equal(keys[k], HOLD_KEY(fixture.event, cases[i].fences[k]));
    }
    /* A page of one status skips other holds and loses none. */
    assert_int_equal(list(0, HOLD_EXPIRED, T0_MS + 200, 2), 2);
    assert_int_equal(list(keys[1], HOLD_EXPIRED, T0_MS + 200, 2), 1);
    assert_int_equal(keys[0], HOLD_KEY(fixture.event, 1));
}

#define claim(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(a_row_of_the_log_comes_back_with_the_secrets_of_what_it_names),
        claim(each_row_comes_back_with_its_actor),
        claim(an_actor_that_is_damaged_is_not_known),
        claim(a_change_that_takes_most_of_a_hold_is_read_whole),
        claim(a_cancelled_sale_is_in_the_log_of_its_hold),
        claim(the_log_is_read_page_by_page_without_a_gap),
        claim(the_log_of_a_seat_is_about_that_seat_and_no_area_of_its_number),
        claim(the_log_of_a_hold_is_all_of_its_rows),
        claim(entries_of_one_row_read_like_those_of_a_whole_transition),
        claim(a_seat_s_past_comes_newest_first_and_ends_at_the_moment_asked_for),
        claim(a_hold_lasts_until_what_was_known_at_the_moment),
        claim(an_event_s_holds_are_listed_newest_first_page_by_page),
        claim(a_hold_is_listed_under_the_status_it_has_now_swept_or_not),
    };
    return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
