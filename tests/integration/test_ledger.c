/* Tests of src/ledger: what is written comes back, and every write that would break an invariant is
 * noticed by its row count, whatever the engine believed. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "db/postgres_stmt.h"
#include "ledger/layout.h"
#include "ledger/ledger.h"
#include "ledger/ledger_internal.h"
#include "ledger/number_list.h"
#include "support/postgres_server.h"

#define SEATS 8

/* Every test runs on each database. */
static bool on_postgres;

static struct {
    struct temp_dir dir;
    char url[200];
    struct clock_fake clock; /* SQLite only: PostgreSQL has its own clock */
    struct ledger *l;
    int64_t event;
    struct ledger_batch batch;
} lab;

/* ---- helpers ---- */

static void ok(enum hf_status status, const struct hf_err *err)
{
    if (status != HF_OK)
        fail_msg("%s: %s", hf_status_name(status), err->msg);
}

static struct ledger *open_ledger(bool writer)
{
    struct db_options options = {.clock = &lab.clock.clock,
                                 .writer = writer,
                                 .settings = on_postgres ? POSTGRES_PATIENT_SETTINGS : NULL};
    struct ledger *l;
    struct hf_err err = {0};
    ok(ledger_open(lab.url, &options, &l, &err), &err);
    return l;
}

static void script(const char *sql)
{
    struct hf_err err = {0};
    ok(lab.l->db->driver->script(lab.l->db, sql, &err), &err);
}

static int64_t number(const char *sql)
{
    struct hf_err err = {0};
    struct db_stmt *stmt;
    ok(lab.l->db->driver->prepare(lab.l->db, sql, &stmt, &err), &err);
    ok(db_query(stmt, NULL, &err), &err);
    assert_int_equal(db_step(stmt, &err), DB_ROW);
    int64_t value = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return value;
}

/* PostgreSQL's clock is the real one, far beyond T0. */
static void assert_time(int64_t now, int64_t want)
{
    int64_t wall = clock_wall_us(&clock_system) / 1000;
    if (on_postgres)
        assert_in_range(now, wall - 10000, wall + 1);
    else
        assert_int_equal(now, want);
}

static int64_t insert_event(struct event_def *def, int64_t now)
{
    struct hf_err err = {0};
    memset(def->id.secret, 7, ID_SECRET_SIZE);
    ok(ledger_begin(lab.l, &err), &err);
    ok(ledger_event_insert(lab.l, def, now, ACTOR_OPEN, &err), &err);
    ok(ledger_commit(lab.l, &err), &err);
    int64_t key = def->id.key;
    event_def_free(def);
    return key;
}

static void batch_clear(void)
{
    vec_clear(&lab.batch.clocks);
    vec_clear(&lab.batch.events);
    vec_clear(&lab.batch.areas);
    vec_clear(&lab.batch.seats);
    vec_clear(&lab.batch.holds_new);
    vec_clear(&lab.batch.holds);
    vec_clear(&lab.batch.bookings_new);
    vec_clear(&lab.batch.sales);
    vec_clear(&lab.batch.audit);
    vec_clear(&lab.batch.heads);
    vec_clear(&lab.batch.keys);
}

/* Writes the batch and commits it.  Returns "", or after a rollback the table that was surprised.
 */
static const char *store(void)
{
    static struct hf_err err;
    err = (struct hf_err){0};
    ok(ledger_begin(lab.l, &err), &err);
    enum hf_status status = ledger_write(lab.l, &lab.batch, &err);
    if (status == HF_OK)
        status = ledger_commit(lab.l, &err);
    batch_clear();
    if (status != HF_SURPRISE) {
        ok(status, &err);
        return "";
    }
    ledger_rollback(lab.l);
    return err.msg;
}

static int64_t hold_key(int64_t fence) { return HOLD_KEY(lab.event, fence); }

static struct hold_row *put_hold(int64_t fence, const uint32_t *seats, uint32_t n,
                                 int64_t expires_at)
{
    struct hold_row *row = vec_push(&lab.batch.holds_new);
    *row = (struct hold_row){
        .id.key = hold_key(fence),
        .event = lab.event,
        .fence = fence,
        .amount = 1000 * n,
        .created_at = T0_MS,
        .expires_at = expires_at,
        .max_expires_at = T0_MS + HOUR_MS,
        .status = HOLD_ACTIVE,
        .seats = seats,
        .n_seats = n,
    };
    memset(row->id.secret, (int)fence, ID_SECRET_SIZE);
    return row;
}

static struct hold_write *put_hold_write(int64_t fence, enum hold_status from, enum hold_status to)
{
    struct hold_write *w = vec_push(&lab.batch.holds);
    *w = (struct hold_write){.hold = hold_key(fence),
                             .fence_before = fence,
                             .fence = fence,
                             .expires_at = T0_MS + MINUTE_MS,
                             .from = from,
                             .to = to};
    return w;
}

static bool has_row(enum seat_status status)
{
    return status == SEAT_BOOKED || status == SEAT_BLOCKED;
}

static struct seat_write *put_seat(uint32_t index, enum seat_status from, int64_t hold_before,
                                   enum seat_status to, int64_t hold, int64_t fence)
{
    struct seat_write *w = vec_push(&lab.batch.seats);
    *w = (struct seat_write){.seat = SEAT_KEY(lab.event, index),
                             .hold_before = hold_before,
                             .hold = hold,
                             .row_fence = fence,
                             .expires_at = to == SEAT_HELD ? T0_MS + MINUTE_MS : 0,
                             .from = from,
                             .to = to,
                             .row_changes = has_row(from) || has_row(to)};
    return w;
}

static void put_booking(int64_t fence)
{
    struct booking_row *row = vec_push(&lab.batch.bookings_new);
    *row = (struct booking_row){.id.key = hold_key(fence),
                                .event = lab.event,
                                .fence = fence,
                                .amount = 1000,
                                .created_at = T0_MS,
                                .status = BOOKING_CONFIRMED};
    memset(row->id.secret, 99, ID_SECRET_SIZE);
}

static void put_audit(int64_t seq, uint32_t seat)
{
    *vec_push(&lab.batch.audit) = (struct audit_row){.event = lab.event,
                                                     .seq = seq,
                                                     .at = T0_MS,
                                                     .object = AUDIT_SEAT,
                                                     .cause = CAUSE_HOLD,
                                                     .item = seat,
                                                     .quantity = 1,
                                                     .to = SEAT_HELD};
}

static void put_key(const char *key, const char *request, int64_t created_at)
{
    struct key_row *row = vec_push(&lab.batch.keys);
    hash_text(key, row->hash);
    hash_text(request, row->request);
    row->answer_code = 201;
    row->answer = request;
    row->answer_len = strlen(request);
    row->created_at = created_at;
}

static void put_clock(int64_t seq_before, int64_t fence_before, int64_t seq, int64_t fence,
                      int64_t now)
{
    struct clock_write *w = vec_push(&lab.batch.clocks);
    w->before = (struct clock_row){lab.event, seq_before, fence_before, 0};
    w->after = (struct clock_row){lab.event, seq, fence, now};
}

static int open_lab(void **state)
{
    (void)state;
    temp_dir_make(&lab.dir);
    if (on_postgres)
        postgres_server_fresh_patient(lab.url);
    else
        (void)snprintf(lab.url, sizeof lab.url, "%s", lab.dir.url);
    clock_fake_init(&lab.clock, T0_MS * 1000);
    lab.l = open_ledger(true);
    lab.event = insert_event(def_hall(2, SEATS / 2), T0_MS);
    return 0;
}

static int close_lab(void **state)
{
    (void)state;
    ledger_close(lab.l);
    vec_close(&lab.batch.clocks);
    vec_close(&lab.batch.events);
    vec_close(&lab.batch.areas);
    vec_close(&lab.batch.seats);
    vec_close(&lab.batch.holds_new);
    vec_close(&lab.batch.holds);
    vec_close(&lab.batch.bookings_new);
    vec_close(&lab.batch.sales);
    vec_close(&lab.batch.audit);
    vec_close(&lab.batch.heads);
    vec_close(&lab.batch.keys);
    temp_dir_remove(&lab.dir);
    return 0;
}

/* ---- events ---- */

static void an_event_comes_back_as_it_was_written(void **state)
{
    (void)state;
    struct event_def *def = def_new("Op\xc3\xa9ra \"Carmen\"");
    def_section(def, "Parterre", "gold", 12300);
    def->sections.v[0].listed = true;
    def_row(def, "\xc3\xa9", 7);
    def_row(def, "10", 3);
    def_section(def, "B", NULL, 0);
    def_row(def, "A", 1);
    def_area(def, "Floor", 500, 300);
    def_area(def, "Box", 0, 1);
    def_type(def, "full", NULL, 0);
    def_type(def, "child", (const int64_t[]){TYPE_PRICE_NONE, TYPE_PRICE_NONE, 250, 0}, 4);
    def->terms.hold_ttl_ms = 111;
    def->terms.hold_max_ms = 222;
    def->terms.max_per_hold = 6;
    def->terms.lone_seats = LONE_SEATS_REFUSE;
    def->terms.starts_at = (struct local_time){T0_MS, -570};
    def->terms.doors_at = (struct local_time){T0_MS - 1, 60};
    def->terms.timezone = hf_strndup("Pacific/Marquesas", 17);
    int64_t key = insert_event(def, T0_MS + 5);

    struct clock_row clock;
    struct hf_err err = {0};
    struct event_def *got;
    ok(ledger_event_read(lab.l, key, &got, &clock, &err), &err);
    assert_int_equal(got->id.key, key);
    assert_int_equal(got->id.secret[11], 7);
    assert_string_equal(got->terms.name, "Op\xc3\xa9ra \"Carmen\"");
    assert_string_equal(got->currency, "EUR");
    assert_int_equal(got->status, EVENT_OPEN);
    assert_int_equal(got->terms.hold_ttl_ms, 111);
    assert_int_equal(got->terms.hold_max_ms, 222);
    assert_int_equal(got->terms.max_per_hold, 6);
    assert_int_equal(got->terms.lone_seats, LONE_SEATS_REFUSE);
    assert_int_equal(got->terms.starts_at.ms, T0_MS);
    assert_int_equal(got->terms.starts_at.offset_min, -570);
    assert_int_equal(got->terms.doors_at.ms, T0_MS - 1);
    assert_int_equal(got->terms.doors_at.offset_min, 60);
    assert_string_equal(got->terms.timezone, "Pacific/Marquesas");
    assert_null(got->terms.image);
    assert_int_equal(got->created_at, T0_MS + 5);
    assert_int_equal(got->n_seats, 11);
    assert_int_equal(event_def_capacity(got), 312);
    assert_int_equal(got->sections.n, 2);
    assert_string_equal(got->sections.v[0].name, "Parterre");
    assert_string_equal(got->sections.v[0].tier, "gold");
    assert_int_equal(got->terms.prices.n, 4);
    assert_int_equal(got->terms.prices.v[0], 12300);
    assert_true(got->sections.v[0].listed);
    assert_int_equal(got->sections.v[0].rows.n, 2);
    assert_string_equal(got->sections.v[0].rows.v[0].name, "\xc3\xa9");
    assert_string_equal(got->sections.v[0].rows.v[1].name, "10"); /* in the order given */
    assert_int_equal(got->sections.v[0].rows.v[1].first, 7);
    assert_null(got->sections.v[1].tier);
    assert_false(got->sections.v[1].listed);
    assert_int_equal(got->sections.v[1].rows.v[0].first, 10);
    assert_int_equal(got->areas.n, 2);
    assert_string_equal(got->areas.v[0].name, "Floor");
    assert_int_equal(got->areas.v[0].capacity, 300);
    assert_int_equal(got->terms.prices.v[2], 500);
    assert_int_equal(got->terms.prices.v[3], 0);
    assert_int_equal(got->terms.types.n, 2);
    assert_string_equal(got->terms.types.v[1].name, "child");
    assert_int_equal(event_terms_price(&got->terms, 0, 1), 12300);
    assert_int_equal(event_terms_price(&got->terms, 2, 1), 250);
    assert_int_equal(clock.event, key);
    assert_int_equal(clock.seq, 1); /* its creation */
    assert_int_equal(clock.fence, 0);
    assert_int_equal(clock.now, T0_MS + 5);
    event_def_free(got);
}

static void a_seat_has_a_row_while_it_is_booked_or_blocked(void **state)
{
    (void)state;
    char sql[200];
    put_seat(3, SEAT_AVAILABLE, 0, SEAT_HELD, hold_key(5), 5);
    put_seat(4, SEAT_AVAILABLE, 0, SEAT_BLOCKED, 0, 6);
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT COUNT(*) FROM seats"), 1);
    put_seat(3, SEAT_HELD, hold_key(5), SEAT_BOOKED, hold_key(5), 5);
    assert_string_equal(store(), "");
    snprintf(sql, sizeof sql,
             "SELECT COUNT(*) FROM seats WHERE seat = %lld AND status = 2 AND hold = %lld"
             " AND fence = 5",
             (long long)SEAT_KEY(1, 3), (long long)hold_key(5));
    assert_int_equal(number(sql), 1);
    put_seat(3, SEAT_BOOKED, hold_key(5), SEAT_AVAILABLE, 0, 5);
    put_seat(4, SEAT_BLOCKED, 0, SEAT_BLOCKED, 0, 9); /* unblocked and blocked again */
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT fence FROM seats"), 9);
}

/* ---- heads ---- */

static int64_t heads[3 * HEADS_CHUNK];

static void on_head(void *ctx, uint32_t seat, int64_t seq)
{
    (void)ctx;
    heads[seat] = seq;
}

static int64_t read_heads(uint32_t n_seats)
{
    struct hf_err err = {0};
    int64_t seq = -1;
    memset(heads, 0, sizeof heads);
    ok(ledger_heads_read(lab.l, lab.event, n_seats, on_head, NULL, &seq, &err), &err);
    return seq;
}

static void put_heads(uint32_t first, int64_t seq, const uint8_t *packed, uint32_t n)
{
    *vec_push(&lab.batch.heads) = (struct heads_write){
        .event = lab.event, .seq = seq, .first = first, .n = n, .heads = packed};
}

static void heads_are_those_stored_and_the_log_after_them(void **state)
{
    (void)state;
    uint8_t packed[3 * HEAD_SIZE];
    const int64_t large = (INT64_C(1) << 39) + 5;
    assert_int_equal(read_heads(2 * HEADS_CHUNK + 1), 0);
    for (int64_t seq = 2; seq <= 6; seq++)
        put_audit(seq, (uint32_t)(seq % 3 * HEADS_CHUNK)); /* of three chunks in turn */
    assert_string_equal(store(), "");
    assert_int_equal(read_heads(2 * HEADS_CHUNK + 1), 0);
    assert_int_equal(heads[0], 6);
    assert_int_equal(heads[HEADS_CHUNK], 4);
    assert_int_equal(heads[2 * HEADS_CHUNK], 5);
    /* What a chunk knows already is not read from the log. */
    head_pack(packed, 4), head_pack(packed + HEAD_SIZE, 0), head_pack(packed + 10, large);
    put_heads(HEADS_CHUNK, 6, packed, 3);
    put_heads(0, 5, packed, 0);
    assert_string_equal(store(), "");
    assert_int_equal(read_heads(2 * HEADS_CHUNK + 1), 0); /* the third chunk has none */
    assert_int_equal(heads[0], 6);
    assert_int_equal(heads[HEADS_CHUNK], 4);
    assert_int_equal(heads[HEADS_CHUNK + 2], large);
    assert_int_equal(heads[2 * HEADS_CHUNK], 5);
    assert_int_equal(read_heads(2 * HEADS_CHUNK), 5);
    put_heads(0, 6, packed, 1);
    assert_string_equal(store(), ""); /* over the older one */
    assert_int_equal(read_heads(HEADS_CHUNK), 6);
    assert_int_equal(heads[0], 4);
    put_heads(0, 5, packed, 1);
    assert_string_equal(store(), "seat_heads"); /* and not the other way round */
}

static void an_unknown_event_reads_as_none(void **state)
{
    (void)state;
    struct clock_row clock;
    struct hf_err err = {0};
    struct event_def *got = (struct event_def *)&clock;
    ok(ledger_event_read(lab.l, 4711, &got, &clock, &err), &err);
    assert_null(got);
}

static struct event_summary listed[5];

/* Returns how many there are, newest first or, with `now`, upcoming ones; `listed` keeps them until
 * the next call but for the memory. */
static size_t list_those(int64_t last, size_t limit, int64_t now)
{
    static struct event_def kept[5];
    size_t n = 99;
    struct hf_err err = {0};
    const struct events_query query = {.last = last, .limit = limit, .upcoming = now, .now = now};
    ok(ledger_events_list(lab.l, &query, listed, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        kept[i] = *listed[i].def;
        event_def_free(listed[i].def);
        listed[i].def = &kept[i];
    }
    return n;
}

static size_t list_events(int64_t last, size_t limit) { return list_those(last, limit, 0); }

static void events_are_numbered_and_listed_newest_first(void **state)
{
    (void)state;
    assert_int_equal(lab.event, 1);
    assert_int_equal(insert_event(def_hall(1, 1), T0_MS), 2);
    assert_int_equal(insert_event(def_hall(1, 1), T0_MS), 3);
    assert_int_equal(list_events(0, 5), 3);
    assert_int_equal(listed[0].def->id.key, 3);
    assert_int_equal(listed[2].def->id.key, 1);
    assert_int_equal(listed[2].counts.seq, 1);
    assert_string_equal(listed[2].def->currency, "EUR");
    assert_int_equal(list_events(3, 1), 1);
    assert_int_equal(listed[0].def->id.key, 2);
    assert_int_equal(list_events(1, 5), 0);
}

static void insert_dated(int64_t starts_at, int64_t sales_close_at)
{
    struct event_def *def = def_hall(1, 1);
    def->terms.starts_at.ms = starts_at;
    def->terms.sales_close_at = sales_close_at;
    (void)insert_event(def, T0_MS);
}

static void events_to_come_are_listed_by_date_and_others_behind_them(void **state)
{
    (void)state;
    insert_dated(T0_MS + 30, 0);         /* 2 */
    insert_dated(T0_MS, 0);              /* 3: has begun */
    insert_dated(T0_MS - 5, T0_MS + 90); /* 4: has begun, and is sold */
    insert_dated(0, T0_MS + 10);         /* 5: only its sales end */
    insert_dated(0, T0_MS);              /* 6: has ended */
    insert_dated(T0_MS + 30, T0_MS + 1); /* 7 */
    insert_dated(0, 0);                  /* 8, as is 1 */
    insert_dated(T0_MS + 20, T0_MS - 9); /* 9: is sold no more, and has not begun */
    static const int64_t order[] = {4, 9, 2, 7, 5, 8, 1};
    const size_t all = sizeof order / sizeof *order;
    for (size_t limit = 1; limit <= 5; limit++) {
        size_t seen = 0, n;
        for (int64_t last = 0; (n = list_those(last, limit, T0_MS)) > 0; last = order[seen - 1])
            for (size_t i = 0; i < n; i++)
                assert_int_equal(listed[i].def->id.key, order[seen++]);
        assert_int_equal(seen, all);
    }
    assert_int_equal(list_those(99, 5, T0_MS), 0);
}

static void an_event_that_is_rolled_back_does_not_exist(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct event_def *def = def_hall(1, 3);
    ok(ledger_begin(lab.l, &err), &err);
    ok(ledger_event_insert(lab.l, def, T0_MS, ACTOR_OPEN, &err), &err);
    ledger_rollback(lab.l);
    assert_int_equal(number("SELECT COUNT(*) FROM events"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM sections WHERE event > 1"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM event_clock"), 2); /* and that of the catalogue */
    event_def_free(def);
}

/* ---- a batch ---- */

static void put_sale_of_two_seats(void)
{
    static const uint32_t seats[] = {3, 1};
    struct hold_row *hold = put_hold(1, seats, 2, T0_MS + MINUTE_MS);
    hold->owner = "ada";
    hold->owner_len = 3;
    hold->metadata = "{\"a\":\"\xc3\xa9\"}";
    hold->metadata_len = strlen(hold->metadata);
    put_seat(1, SEAT_AVAILABLE, 0, SEAT_HELD, hold_key(1), 1);
    put_seat(3, SEAT_AVAILABLE, 0, SEAT_HELD, hold_key(1), 1);
    put_clock(1, 0, 4, 1, T0_MS + 10);
    for (int i = 1; i <= 3; i++)
        put_audit(i + 1, 1);
    put_key("k", "{\"hold\":1}", T0_MS);
}

struct seen {
    int n;
    uint32_t index[SEATS];
    enum seat_status status[SEATS];
    int64_t hold[SEATS];
};

static void on_seat(void *ctx, uint32_t index, const struct seat_row *row)
{
    struct seen *seen = ctx;
    seen->index[seen->n] = index;
    seen->status[seen->n] = row->status;
    seen->hold[seen->n++] = row->hold;
}

static void a_batch_is_stored_and_read_back(void **state)
{
    (void)state;
    struct hf_err err = {0};
    put_sale_of_two_seats();
    assert_string_equal(store(), "");
    assert_string_equal(store(), ""); /* an empty one is fine, too */

    struct seen seen = {0};
    ok(ledger_seats_read(lab.l, lab.event, 0, UINT32_MAX, on_seat, &seen, &err), &err);
    assert_int_equal(seen.n, 0); /* none is booked or blocked */

    struct hold_row holds[3];
    int64_t keys[] = {hold_key(7), hold_key(1), hold_key(1)};
    ok(ledger_holds_read(lab.l, keys, 3, holds, &err), &err);
    assert_int_equal(holds[0].id.key, 0);
    assert_int_equal(holds[2].id.key, hold_key(1));
    const struct hold_row *h = &holds[1];
    assert_int_equal(h->id.key, hold_key(1));
    assert_int_equal(h->id.secret[0], 1);
    assert_int_equal(h->event, lab.event);
    assert_int_equal(h->fence, 1);
    assert_int_equal(h->amount, 2000);
    assert_int_equal(h->status, HOLD_ACTIVE);
    assert_int_equal(h->created_at, T0_MS);
    assert_int_equal(h->expires_at, T0_MS + MINUTE_MS);
    assert_int_equal(h->max_expires_at, T0_MS + HOUR_MS);
    assert_string_equal(h->owner, "ada");
    assert_int_equal(h->owner_len, 3);
    assert_string_equal(h->metadata, "{\"a\":\"\xc3\xa9\"}");
    assert_int_equal(h->n_seats, 2);
    assert_int_equal(h->seats[0], 3); /* in the buyer's order */
    assert_int_equal(h->seats[1], 1);
    for (int i = 0; i < 3; i++)
        hold_row_close(&holds[i]);

    struct clock_row clock = {.event = lab.event};
    int64_t now;
    ok(ledger_lock(lab.l, &clock, 1, &now, &err), &err);
    assert_int_equal(clock.seq, 4);
    assert_int_equal(clock.fence, 1);
    assert_int_equal(clock.now, T0_MS + 10);
    assert_time(now, T0_MS + 10); /* the database's clock is behind the row, so the row counts */
    assert_int_equal(number("SELECT COUNT(*) FROM log"), 2); /* the creation, and the hold */
}

static void a_hold_without_owner_and_metadata_has_none(void **state)
{
    (void)state;
    struct hf_err err = {0};
    static const uint32_t seats[] = {0};
    put_hold(1, seats, 1, T0_MS);
    struct hold_row *empty = put_hold(2, seats, 1, T0_MS);
    empty->owner = empty->metadata = "";
    assert_string_equal(store(), "");
    struct hold_row row;
    int64_t key = hold_key(1);
    ok(ledger_holds_read(lab.l, &key, 1, &row, &err), &err);
    assert_null(row.owner);
    assert_null(row.metadata);
    hold_row_close(&row);
    key = hold_key(2);
    ok(ledger_holds_read(lab.l, &key, 1, &row, &err), &err);
    assert_string_equal(row.owner, "");
    hold_row_close(&row);
}

static void a_booking_is_read_with_its_hold_s_seats(void **state)
{
    (void)state;
    struct hf_err err = {0};
    put_sale_of_two_seats();
    assert_string_equal(store(), "");
    put_booking(1);
    lab.batch.bookings_new.v[0].reference = "order 7";
    lab.batch.bookings_new.v[0].reference_len = 7;
    put_hold_write(1, HOLD_ACTIVE, HOLD_CONFIRMED);
    put_seat(1, SEAT_HELD, hold_key(1), SEAT_BOOKED, hold_key(1), 1);
    *vec_push(&lab.batch.sales) = (struct sale_write){SEAT_KEY(lab.event, 1), hold_key(1)};
    assert_string_equal(store(), "");
    struct booking_row row;
    ok(ledger_booking_read(lab.l, hold_key(1), &row, &err), &err);
    assert_int_equal(row.id.key, hold_key(1));
    assert_int_equal(row.id.secret[5], 99);
    assert_int_equal(row.hold_secret[5], 1);
    assert_int_equal(row.status, BOOKING_CONFIRMED);
    assert_int_equal(row.amount, 1000);
    assert_int_equal(row.fence, 1);
    assert_int_equal(row.created_at, T0_MS);
    assert_string_equal(row.reference, "order 7");
    assert_int_equal(row.n_seats, 2);
    assert_int_equal(row.seats[0], 3);
    booking_row_close(&row);
    ok(ledger_booking_read(lab.l, hold_key(2), &row, &err), &err);
    assert_int_equal(row.id.key, 0);
}

/* ---- areas ---- */

static const struct area_claim two_areas[] = {{1, 3}, {0, 500}};

static void put_hold_of_areas(int64_t fence, const uint32_t *seats, uint32_t n)
{
    struct hold_row *row = put_hold(fence, seats, n, T0_MS + MINUTE_MS);
    row->areas = two_areas;
    row->n_areas = 2;
}

static void a_hold_comes_back_with_its_areas_and_its_address(void **state)
{
    (void)state;
    struct hf_err err = {0};
    static const uint32_t seats[] = {4, 2};
    for (int i = 1; i <= 40; i++) /* enough that the texts of a batch fill more than a page */
        put_hold_of_areas(i, seats, i % 3 ? 2 : 0);
    put_hold(41, seats, 1, T0_MS);
    lab.batch.holds_new.v[1].client = UINT64_C(0xfedcba9876543210);
    lab.batch.holds_new.v[1].owner = "ada";
    lab.batch.holds_new.v[1].owner_len = 3;
    assert_string_equal(store(), "");
    for (int i = 1; i <= 41; i++) {
        struct hold_row row;
        int64_t key = hold_key(i);
        ok(ledger_holds_read(lab.l, &key, 1, &row, &err), &err);
        assert_int_equal(row.n_seats, i == 41 ? 1 : i % 3 ? 2 : 0);
        assert_int_equal(row.n_areas, i == 41 ? 0 : 2);
        if (row.n_seats)
            assert_int_equal(row.seats[0], 4);
        for (uint32_t k = 0; k < row.n_areas; k++) { /* in the buyer's order */
            assert_int_equal(row.areas[k].area, two_areas[k].area);
            assert_int_equal(row.areas[k].quantity, two_areas[k].quantity);
        }
        assert_int_equal(row.client, i == 2 ? UINT64_C(0xfedcba9876543210) : 0);
        assert_true(i == 2 ? strcmp(row.owner, "ada") == 0 : !row.owner);
        hold_row_close(&row);
    }
    assert_int_equal(number("SELECT COUNT(*) FROM holds WHERE areas IS NULL"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM holds WHERE areas = '[1,3,0,500]'"), 40);
}

static void a_booking_is_read_with_its_hold_s_areas(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct booking_row row;
    static const uint32_t seats[] = {4};
    put_hold_of_areas(1, NULL, 0);
    put_booking(1);
    put_hold(2, seats, 1, T0_MS);
    put_booking(2);
    assert_string_equal(store(), "");
    ok(ledger_booking_read(lab.l, hold_key(1), &row, &err), &err);
    assert_int_equal(row.n_seats, 0);
    assert_int_equal(row.n_areas, 2);
    assert_int_equal(row.areas[1].quantity, 500);
    assert_null(row.reference);
    booking_row_close(&row);
    ok(ledger_booking_read(lab.l, hold_key(2), &row, &err), &err);
    assert_int_equal(row.n_seats, 1);
    assert_int_equal(row.n_areas, 0);
    booking_row_close(&row);
}

/* ---- ticket types ---- */

/* Two places of the first type, one of the second, at one price; with a booking. */
static void a_hold_and_its_booking_come_back_with_their_types(void **state)
{
    (void)state;
    static const uint32_t seats[] = {4, 2, 3};
    static const struct price_run prices[] = {{1000, 2, 0}, {1000, 1, 1}}, one[] = {{1000, 3, 2}};
    struct hf_err err = {0};
    struct hold_row hold;
    struct booking_row booking;
    for (int64_t fence = 1; fence <= 2; fence++) {
        struct hold_row *row = put_hold(fence, seats, 3, T0_MS + MINUTE_MS);
        row->prices = fence == 1 ? prices : one;
        row->n_prices = fence == 1 ? 2 : 1;
        put_booking(fence);
    }
    put_hold(3, seats, 3, T0_MS + MINUTE_MS)->prices = &(struct price_run){1000, 3, 0};
    lab.batch.holds_new.v[2].n_prices = 1;
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT COUNT(*) FROM holds WHERE prices = '[1000,2,1000,[1,1]]'"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM holds WHERE prices = '[1000,[3,2]]'"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM holds WHERE prices IS NULL"), 1);
    int64_t key = hold_key(2);
    ok(ledger_holds_read(lab.l, &key, 1, &hold, &err), &err);
    assert_int_equal(hold.n_prices, 1);
    assert_int_equal(hold.prices[0].type, 2);
    hold_row_close(&hold);
    ok(ledger_booking_read(lab.l, hold_key(1), &booking, &err), &err);
    assert_int_equal(booking.n_prices, 2);
    assert_int_equal(booking.prices[0].n, 2);
    assert_int_equal(booking.prices[1].type, 1);
    booking_row_close(&booking);
}

/* An entry of the log, whose places are a held seat of the first type, one of the second, and five
 * places of an area as two types. */
static void the_log_comes_back_with_its_types(void **state)
{
    (void)state;
    static const struct {
        enum audit_object object;
        int64_t item, quantity;
        uint32_t type;
    } rows[] = {{AUDIT_HOLD, -1, 7, 0},
                {AUDIT_SEAT, 3, 1, 0},
                {AUDIT_SEAT, 4, 1, 1},
                {AUDIT_AREA, 1, 2, 0},
                {AUDIT_AREA, 1, 3, 15}};
    struct audit_entry entries[8];
    struct hf_err err = {0};
    size_t n = 0;
    for (size_t i = 0; i < 5; i++) {
        struct audit_row *row = vec_push(&lab.batch.audit);
        *row = (struct audit_row){.event = lab.event,
                                  .seq = 2 + (int64_t)i,
                                  .at = T0_MS,
                                  .object = rows[i].object,
                                  .cause = CAUSE_HOLD,
                                  .item = rows[i].item,
                                  .quantity = rows[i].quantity,
                                  .to = i ? (int)SEAT_HELD : (int)HOLD_ACTIVE,
                                  .type = rows[i].type,
                                  .hold = hold_key(1),
                                  .fence = 1,
                                  .until = T0_MS + MINUTE_MS};
    }
    put_audit(7, 6); /* another entry, of the first type */
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT COUNT(*) FROM log WHERE types = '[0,1,0,15]'"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM log WHERE types IS NULL"), 2); /* the creation */
    const struct audit_query query = {.event = lab.event, .after = 1, .limit = 8};
    ok(ledger_audit_read(lab.l, &query, entries, &n, &err), &err);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(entries[i].row.object, rows[i].object);
        assert_int_equal(entries[i].row.quantity, rows[i].quantity);
        assert_int_equal(entries[i].row.type, rows[i].type);
    }
    static const char *const damaged[] = {"[0,1,0]", "[0,1,0,15,0]", "[0,1,0,16]", "0,1,0,15"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        char sql[96];
        snprintf(sql, sizeof sql, "UPDATE log SET types = '%s' WHERE types IS NOT NULL",
                 damaged[i]);
        script(sql);
        assert_int_equal(ledger_audit_read(lab.l, &query, entries, &n, &err), HF_INTERNAL);
    }
}

static void a_damaged_list_of_areas_is_an_error_and_not_a_hold(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct hold_row hold;
    struct booking_row booking;
    int64_t key = hold_key(1);
    put_hold_of_areas(1, NULL, 0);
    put_booking(1);
    assert_string_equal(store(), "");
    static const char *const lists[] = {"'[1]'", "'[1,2,3]'", "'[1,2'", "''", "'x'", "'[1,-2]'"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "UPDATE holds SET areas = %s", lists[i]);
        script(sql);
        assert_int_equal(ledger_holds_read(lab.l, &key, 1, &hold, &err), HF_INTERNAL);
        assert_int_equal(hold.id.key, 0);
        assert_int_equal(ledger_booking_read(lab.l, key, &booking, &err), HF_INTERNAL);
        assert_int_equal(booking.id.key, 0);
    }
}

struct counters {
    int n;
    int64_t held[4], booked[4];
};

static void on_area(void *ctx, uint32_t index, const struct area_row *row)
{
    struct counters *c = ctx;
    assert_int_equal(index, c->n);
    c->held[c->n] = row->held;
    c->booked[c->n++] = row->booked;
}

static int64_t insert_event_with_areas(void)
{
    struct event_def *def = def_hall(1, 2);
    def_area(def, "Floor", 700, 10);
    def_area(def, "Box", 9000, 3);
    return insert_event(def, T0_MS);
}

static const struct area_blocks no_blocks;

static void put_area(int64_t area, int64_t held_before, int64_t booked_before, int64_t held,
                     int64_t booked)
{
    *vec_push(&lab.batch.areas) = (struct area_write){.event = lab.event,
                                                      .area = area,
                                                      .held_before = held_before,
                                                      .booked_before = booked_before,
                                                      .held = held,
                                                      .booked = booked,
                                                      .blocks = &no_blocks};
}

static void put_status(enum event_status from, enum event_status to)
{
    *vec_push(&lab.batch.events) = (struct event_write){.event = lab.event, .from = from, .to = to};
}

static void an_event_s_state_is_its_status_and_its_counters(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct counters counters = {0};
    enum event_status status = 0;
    lab.event = insert_event_with_areas();
    ok(ledger_event_state(lab.l, lab.event, &status, on_area, &counters, &err), &err);
    assert_int_equal(status, EVENT_OPEN);
    assert_int_equal(counters.n, 2);
    assert_int_equal(counters.held[0] + counters.booked[1], 0);
    put_area(1, 0, 0, 2, 1);
    put_status(EVENT_OPEN, EVENT_CLOSED);
    assert_string_equal(store(), "");
    counters.n = 0;
    ok(ledger_event_state(lab.l, lab.event, &status, on_area, &counters, &err), &err);
    assert_int_equal(status, EVENT_CLOSED);
    assert_int_equal(counters.held[0], 0);
    assert_int_equal(counters.held[1], 2);
    assert_int_equal(counters.booked[1], 1);
    struct event_def *def;
    struct clock_row clock;
    ok(ledger_event_read(lab.l, lab.event, &def, &clock, &err), &err);
    assert_int_equal(def->status, EVENT_CLOSED);
    event_def_free(def);
    counters.n = 0;
    assert_int_not_equal(ledger_event_state(lab.l, 4711, &status, on_area, &counters, &err), HF_OK);
}

static void an_area_with_other_counters_is_a_surprise(void **state)
{
    (void)state;
    lab.event = insert_event_with_areas();
    put_area(0, 0, 0, 4, 2);
    put_area(1, 0, 0, 3, 0);
    assert_string_equal(store(), "");
    const int64_t wrong[][3] = {{0, 4, 3}, {0, 3, 2}, {0, 5, 2}, {1, 0, 3}, {2, 0, 0}, {-1, 4, 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_area(1, 3, 0, 2, 0); /* a right one does not make up for a wrong one */
        put_area(wrong[i][0], wrong[i][1], wrong[i][2], 1, 1);
        assert_string_equal(store(), "areas");
    }
    assert_int_equal(number("SELECT CAST(SUM(held * 10 + booked) AS bigint) FROM areas"),
                     4 * 10 + 2 + 3 * 10);
    put_area(0, 4, 2, 0, 6);
    assert_string_equal(store(), "");
    lab.event = 1; /* which has none */
    put_area(0, 0, 6, 0, 6);
    assert_string_equal(store(), "areas");
}

static void an_event_of_another_status_is_a_surprise(void **state)
{
    (void)state;
    put_status(EVENT_CLOSED, EVENT_OPEN);
    assert_string_equal(store(), "events");
    put_status(EVENT_OPEN, EVENT_CLOSED);
    assert_string_equal(store(), "");
    put_status(EVENT_OPEN, EVENT_CLOSED);
    assert_string_equal(store(), "events");
    put_status(EVENT_CLOSED, EVENT_CLOSED); /* there and back in one batch */
    assert_string_equal(store(), "");
    lab.event = 4711;
    put_status(EVENT_OPEN, EVENT_CLOSED);
    assert_string_equal(store(), "events");
}

/* ---- surprises ---- */

/* Computes one number from everything that is in the ledger. */
static int64_t digest(void)
{
    return number("SELECT CAST((SELECT COALESCE(SUM(seat + status * 7 + hold * 3 + fence), 0)"
                  " FROM seats)"
                  " + (SELECT COALESCE(SUM(status * 5 + fence + expires_at), 0) FROM holds)"
                  " + (SELECT COUNT(*) * 1000003 FROM bookings)"
                  " + (SELECT COUNT(*) * 1000033 FROM sold_seats)"
                  " + (SELECT COUNT(*) * 1000037 FROM log)"
                  " + (SELECT COALESCE(SUM(created_at), 0) FROM idempotency)"
                  " + (SELECT SUM(seq * 13 + fence * 17 + now) FROM event_clock) AS bigint)");
}

/* `table` refuses the write, after other writes of the batch went through, and all is rolled back.
 */
static void assert_surprise(const char *table)
{
    int64_t before = digest();
    put_seat(7, SEAT_AVAILABLE, 0, SEAT_BLOCKED, 0, 1);
    assert_string_equal(store(), table);
    assert_int_equal(digest(), before);
}

static void a_clock_row_that_moved_is_a_surprise(void **state)
{
    (void)state;
    put_clock(1, 0, 5, 2, T0_MS + 100);
    assert_string_equal(store(), "");
    put_clock(4, 2, 6, 2, T0_MS + 100);
    assert_surprise("event_clock");
    put_clock(5, 1, 6, 2, T0_MS + 100);
    assert_surprise("event_clock");
    put_clock(5, 2, 6, 2, T0_MS + 99); /* time would go back */
    assert_surprise("event_clock");
    put_clock(5, 2, 6, 3, T0_MS + 100);
    assert_string_equal(store(), "");
}

static void a_seat_in_another_state_is_a_surprise(void **state)
{
    (void)state;
    put_seat(0, SEAT_HELD, hold_key(5), SEAT_BOOKED, hold_key(5), 5);
    assert_string_equal(store(), "");
    put_seat(0, SEAT_HELD, hold_key(6), SEAT_BOOKED, hold_key(6), 6); /* it is booked */
    assert_surprise("seats");
    put_seat(0, SEAT_AVAILABLE, 0, SEAT_BLOCKED, 0, 6);
    assert_surprise("seats");
    put_seat(0, SEAT_BOOKED, hold_key(4), SEAT_AVAILABLE, 0, 6); /* by another hold */
    assert_surprise("seats");
    put_seat(1, SEAT_BLOCKED, 0, SEAT_AVAILABLE, 0, 6); /* it never was */
    assert_surprise("seats");
    put_seat(0, SEAT_BOOKED, hold_key(5), SEAT_AVAILABLE, 0, 5);
    assert_string_equal(store(), "");
}

static void a_hold_in_another_state_is_a_surprise(void **state)
{
    (void)state;
    static const uint32_t seats[] = {0};
    put_hold(3, seats, 1, T0_MS + MINUTE_MS);
    assert_string_equal(store(), "");
    put_hold(3, seats, 1, T0_MS + MINUTE_MS); /* there already */
    assert_surprise("holds");
    put_hold_write(3, HOLD_EXPIRED, HOLD_CONFIRMED);
    assert_surprise("holds");
    put_hold_write(3, HOLD_ACTIVE, HOLD_CONFIRMED)->fence_before = 2;
    assert_surprise("holds");
    put_hold_write(4, HOLD_ACTIVE, HOLD_CONFIRMED); /* there is none */
    assert_surprise("holds");
    put_hold_write(3, HOLD_ACTIVE, HOLD_RELEASED);
    assert_string_equal(store(), "");
    put_hold_write(3, HOLD_ACTIVE, HOLD_EXPIRED); /* it has ended already */
    assert_surprise("holds");
}

static void a_hold_made_and_ended_in_one_batch_is_no_surprise(void **state)
{
    (void)state;
    static const uint32_t seats[] = {0};
    put_hold(3, seats, 1, T0_MS + MINUTE_MS);
    put_hold_write(3, HOLD_ACTIVE, HOLD_RELEASED);
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT status FROM holds"), HOLD_RELEASED);
}

static void a_second_booking_of_a_hold_is_a_surprise(void **state)
{
    (void)state;
    put_booking(3);
    assert_string_equal(store(), "");
    put_booking(3);
    assert_surprise("bookings");
}

static void a_second_sale_of_a_seat_is_a_surprise(void **state)
{
    (void)state;
    *vec_push(&lab.batch.sales) = (struct sale_write){SEAT_KEY(lab.event, 2), hold_key(1)};
    assert_string_equal(store(), "");
    *vec_push(&lab.batch.sales) = (struct sale_write){SEAT_KEY(lab.event, 3), hold_key(2)};
    *vec_push(&lab.batch.sales) = (struct sale_write){SEAT_KEY(lab.event, 2), hold_key(2)};
    assert_surprise("sold_seats");
    *vec_push(&lab.batch.sales) = (struct sale_write){SEAT_KEY(lab.event, 2), hold_key(1)};
    assert_surprise("sold_seats"); /* even to the same buyer */
}

static void a_second_log_entry_of_a_number_is_a_surprise(void **state)
{
    (void)state;
    put_audit(2, 0);
    put_audit(3, 0);
    assert_string_equal(store(), "");
    put_audit(4, 0);
    put_audit(2, 1);
    assert_surprise("log");
    put_audit(4, 0);
    assert_string_equal(store(), "");
}

static void a_key_cannot_be_used_again_for_a_day(void **state)
{
    (void)state;
    put_key("k", "first", T0_MS);
    assert_string_equal(store(), "");
    put_key("k", "second", T0_MS + KEY_KEPT_MS - 1);
    assert_surprise("idempotency");
    put_key("k", "first", T0_MS);
    assert_surprise("idempotency");
    put_key("other", "x", T0_MS);
    put_key("k", "second", T0_MS + KEY_KEPT_MS);
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT COUNT(*) FROM idempotency"), 2);
    assert_int_equal(number("SELECT COUNT(*) FROM idempotency WHERE body = 'second'"), 1);
}

/* ---- keys ---- */

/* Returns the code of the stored answer, 0 if there is none. */
static int read_key(const char *key, int64_t now, char answer[64])
{
    uint8_t hash[KEY_HASH_SIZE];
    const uint8_t *hashes[] = {hash};
    struct key_row row;
    struct hf_err err = {0};
    hash_text(key, hash);
    ok(ledger_keys_read(lab.l, hashes, 1, now, &row, &err), &err);
    int code = row.found ? row.answer_code : 0;
    if (row.found)
        snprintf(answer, 64, "%.*s", (int)row.answer_len, row.answer);
    key_row_close(&row);
    return code;
}

static void a_key_is_read_while_it_is_young(void **state)
{
    (void)state;
    char body[64];
    put_key("k", "answer", T0_MS);
    put_key("empty", "", T0_MS);
    assert_string_equal(store(), "");
    assert_int_equal(read_key("nobody", T0_MS, body), 0);
    assert_int_equal(read_key("k", T0_MS, body), 201);
    assert_string_equal(body, "answer");
    assert_int_equal(read_key("empty", T0_MS, body), 201);
    assert_string_equal(body, "");
    assert_int_equal(read_key("k", T0_MS + KEY_KEPT_MS - 1, body), 201);
    /* The insert has the same limit. */
    assert_int_equal(read_key("k", T0_MS + KEY_KEPT_MS, body), 0);
}

static void several_keys_are_read_at_once(void **state)
{
    (void)state;
    put_key("a", "of a", T0_MS);
    put_key("c", "of c", T0_MS + 1);
    assert_string_equal(store(), "");
    uint8_t hash[3][KEY_HASH_SIZE];
    hash_text("a", hash[0]);
    hash_text("b", hash[1]);
    hash_text("c", hash[2]);
    const uint8_t *hashes[] = {hash[0], hash[1], hash[2]};
    struct key_row rows[3];
    struct hf_err err = {0};
    uint8_t request[KEY_HASH_SIZE];
    hash_text("of c", request);
    ok(ledger_keys_read(lab.l, hashes, 3, T0_MS, rows, &err), &err);
    assert_true(rows[0].found);
    assert_int_equal(rows[0].answer_code, 201);
    assert_false(rows[1].found);
    assert_true(rows[2].found);
    assert_int_equal(rows[2].answer_code, 201);
    assert_int_equal(rows[2].created_at, T0_MS + 1);
    assert_memory_equal(rows[2].hash, hash[2], KEY_HASH_SIZE);
    assert_memory_equal(rows[2].request, request, KEY_HASH_SIZE);
    assert_memory_equal(rows[2].answer, "of c", 4);
    for (int i = 0; i < 3; i++)
        key_row_close(&rows[i]);
}

static void count_key(void *ctx, const uint8_t *hash)
{
    (void)hash;
    ++*(int *)ctx;
}

static int live_keys(int64_t now)
{
    int n = 0;
    struct hf_err err = {0};
    ok(ledger_keys_each(lab.l, now, count_key, &n, &err), &err);
    return n;
}

static void old_keys_are_pruned_in_slices_oldest_first(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        put_key(key, "body", T0_MS + i);
    }
    assert_string_equal(store(), "");
    int64_t now = T0_MS + 6 + KEY_KEPT_MS, pruned = -1; /* 0 to 6 are old enough */
    struct hf_err err = {0};
    assert_int_equal(live_keys(T0_MS), 10);
    assert_int_equal(live_keys(now), 3);
    ok(ledger_keys_prune(lab.l, now, 4, &pruned, &err), &err);
    assert_int_equal(pruned, 4);
    assert_int_equal(number("SELECT MIN(created_at) FROM idempotency"), T0_MS + 4);
    ok(ledger_keys_prune(lab.l, now, 4, &pruned, &err), &err);
    assert_int_equal(pruned, 3);
    ok(ledger_keys_prune(lab.l, now, 4, &pruned, &err), &err);
    assert_int_equal(pruned, 0);
    assert_int_equal(live_keys(now), 3);
}

/* ---- holds due and active ---- */

/* Stores holds of these expiries, of an event; the one that expires at 50 is released. */
static void put_due(int64_t event, const int64_t *expiries, size_t n)
{
    static const uint32_t seats[] = {0};
    lab.event = event;
    for (size_t i = 0; i < n; i++) {
        put_hold((int64_t)i + 1, seats, 1, T0_MS + expiries[i]);
        if (expiries[i] == 50)
            put_hold_write((int64_t)i + 1, HOLD_ACTIVE, HOLD_RELEASED)->expires_at = T0_MS + 50;
    }
    assert_string_equal(store(), "");
}

static size_t due_at(int64_t ms, size_t limit, int64_t keys[8])
{
    size_t n;
    struct hf_err err = {0};
    ok(ledger_holds_due(lab.l, T0_MS + ms, limit, keys, &n, &err), &err);
    return n;
}

static void the_first_due_hold_of_each_event_is_listed(void **state)
{
    (void)state;
    int64_t keys[8], first = lab.event;
    assert_int_equal(due_at(0, 8, keys), 0); /* nobody holds anything */
    int64_t events[4];
    for (int i = 0; i < 4; i++)
        events[i] = insert_event(def_hall(1, 4), T0_MS);
    put_due(first, (const int64_t[]){500, 100, 400, 50, 300}, 5);
    put_due(events[1], (const int64_t[]){50}, 1);
    put_due(events[2], (const int64_t[]){400}, 1);
    put_due(events[3], (const int64_t[]){200, 150}, 2);
    assert_int_equal(due_at(99, 8, keys), 0);
    assert_int_equal(due_at(100, 8, keys), 1); /* due at its very expiry */
    assert_int_equal(due_at(400, 8, keys), 3);
    assert_int_equal(keys[0], HOLD_KEY(first, 2));
    assert_int_equal(keys[1], HOLD_KEY(events[2], 1));
    assert_int_equal(keys[2], HOLD_KEY(events[3], 2));
    assert_int_equal(due_at(400, 2, keys), 2);
}

struct active {
    int n;
    int64_t keys[8];
};

static void on_hold(void *ctx, const struct hold_row *row)
{
    struct active *a = ctx;
    a->keys[a->n++] = row->id.key;
    assert_int_equal(row->n_seats, 2);
    assert_int_equal(row->seats[1], 4);
}

static void active_holds_are_those_of_the_event_by_expiry(void **state)
{
    (void)state;
    static const uint32_t seats[] = {2, 4};
    int64_t first = lab.event, second = insert_event(def_hall(1, 5), T0_MS);
    put_hold(1, seats, 2, T0_MS + 300);
    put_hold(2, seats, 2, T0_MS + 100);
    put_hold(3, seats, 2, T0_MS + 200);
    put_hold_write(3, HOLD_ACTIVE, HOLD_CONFIRMED);
    lab.event = second;
    put_hold(1, seats, 2, T0_MS + 50);
    lab.event = first;
    assert_string_equal(store(), "");
    struct active active = {0};
    struct hf_err err = {0};
    ok(ledger_holds_active(lab.l, first, on_hold, &active, &err), &err);
    assert_int_equal(active.n, 2);
    assert_int_equal(active.keys[0], hold_key(2));
    assert_int_equal(active.keys[1], hold_key(1));
}

/* ---- clock and probe ---- */

static void locking_reads_each_clock_and_the_latest_time(void **state)
{
    (void)state;
    int64_t second = insert_event(def_hall(1, 1), T0_MS + 70);
    struct clock_row rows[] = {{.event = 0}, {.event = lab.event}, {.event = second}};
    struct hf_err err = {0};
    int64_t now;
    ok(ledger_lock(lab.l, rows, 3, &now, &err), &err);
    assert_int_equal(rows[1].now, T0_MS);
    assert_int_equal(rows[2].now, T0_MS + 70);
    assert_time(now, T0_MS + 70);
    clock_fake_advance(&lab.clock, 500 * 1000);
    ok(ledger_lock(lab.l, rows, 3, &now, &err), &err);
    assert_time(now, T0_MS + 500);
    ok(ledger_lock(lab.l, NULL, 0, &now, &err), &err);
    assert_time(now, T0_MS + 500);
}

static void a_missing_clock_row_is_an_error(void **state)
{
    (void)state;
    struct clock_row rows[] = {{.event = lab.event}, {.event = 99}};
    struct hf_err err = {0};
    int64_t now = -1;
    assert_int_equal(ledger_lock(lab.l, rows, 2, &now, &err), HF_INTERNAL);
    assert_int_equal(now, -1);
}

static void a_probe_always_writes_and_time_only_grows(void **state)
{
    (void)state;
    struct hf_err err = {0};
    int64_t last = number("SELECT now FROM event_clock WHERE event = 0");
    for (int i = 0; i < 4; i++) {
        clock_fake_advance(&lab.clock, i % 2 * 1000 * 1000);
        ok(ledger_probe(lab.l, i % 2 << 20, &err), &err);
        int64_t next = number("SELECT now FROM event_clock WHERE event = 0");
        assert_true(next > last);
        last = next;
    }
}

static void time_goes_on_from_what_is_stored(void **state)
{
    (void)state;
    struct hf_err err = {0};
    int64_t now;
    int64_t later = (on_postgres ? clock_wall_us(&clock_system) / 1000 : T0_MS) + HOUR_MS;
    put_clock(1, 0, 2, 1, later);
    assert_string_equal(store(), "");
    ledger_close(lab.l);
    lab.l = open_ledger(true);
    struct ledger *other = open_ledger(false);
    ok(ledger_now(lab.l, &now, &err), &err);
    assert_int_equal(now, later);
    ok(ledger_now(other, &now, &err), &err);
    assert_int_equal(now, later);
    struct db_log log;
    ok(ledger_maintain(other, &log, &err), &err);
    ledger_close(other);
}

static void a_ledger_of_a_newer_program_is_refused(void **state)
{
    (void)state;
    script("INSERT INTO schema_version (version) VALUES (1000)");
    ledger_close(lab.l);
    lab.l = NULL;
    struct db_options options = {.clock = &lab.clock.clock, .writer = true};
    struct hf_err err = {0};
    assert_int_equal(ledger_open(lab.url, &options, &lab.l, &err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "1000"));
    assert_null(lab.l);
}

/* A file has no second writer that could join the first. */
static void a_connection_that_joins_does_not_look_at_the_schema_again(void **state)
{
    (void)state;
    if (!on_postgres)
        skip();
    script("INSERT INTO schema_version (version) VALUES (1000)");
    struct db_options options = {.clock = &lab.clock.clock, .writer = true};
    struct hf_err err = {0};
    struct ledger *other;
    ok(ledger_join(lab.url, &options, &other, &err), &err);
    ledger_close(other);
}

/* Makes a ledger of schema version 1. */
static void make_version_1(const char *url)
{
    struct db_options options = {.clock = &lab.clock.clock, .writer = true};
    struct hf_err err = {0};
    struct db *db;
    char sql[1200];
    const char *bytes = on_postgres ? "'\\x" : "x'";
    ok(db_open(url, &options, &db, &err), &err);
    ok(db_migrate(db, ledger_migrations, 1, &err), &err);
    snprintf(sql, sizeof sql,
             "INSERT INTO events VALUES (1, %s010203040506070809101112', 'Old', 'EUR', 1, 1000,"
             " 2000, 4, %lld);"
             "INSERT INTO event_clock VALUES (1, 3, 1, %lld);"
             "INSERT INTO sections VALUES (1, 0, 'A', NULL, 100, 0);"
             "INSERT INTO seat_rows VALUES (1, 0, 0, '1', 2);"
             "INSERT INTO areas VALUES (1, 0, 'Floor', 5, 10, 0, 0);"
             "INSERT INTO seats VALUES (%lld, 1, %lld, 1, %lld, 1), (%lld, 0, 0, 0, 0, 0);"
             "INSERT INTO holds VALUES (%lld, %saa02030405060708091011bb', 1, 1, 1, 100, 'ada',"
             " NULL, '[0]', %lld, %lld, %lld);",
             bytes, (long long)T0_MS, (long long)T0_MS, (long long)SEAT_KEY(1, 0),
             (long long)HOLD_KEY(1, 1), (long long)T0_MS + 1000, (long long)SEAT_KEY(1, 1),
             (long long)HOLD_KEY(1, 1), bytes, (long long)T0_MS, (long long)T0_MS + 1000,
             (long long)T0_MS + 2000);
    ok(db->driver->script(db, sql, &err), &err);
    db_close(db);
}

static void a_ledger_of_version_1_keeps_its_holds_and_takes_new_ones(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct hold_row row;
    ledger_close(lab.l);
    lab.l = NULL;
    if (on_postgres)
        postgres_server_fresh_patient(lab.url);
    else
        snprintf(lab.url, sizeof lab.url, "sqlite:%.100s/old.db", lab.dir.path);
    make_version_1(lab.url);
    for (int opened = 0; opened < 2; opened++) { /* the second open changes nothing */
        lab.l = open_ledger(true);
        assert_int_equal(number("SELECT MAX(version) FROM schema_version"), ledger_migrations_len);
        int64_t key = HOLD_KEY(1, 1);
        ok(ledger_holds_read(lab.l, &key, 1, &row, &err), &err);
        assert_int_equal(row.id.key, key);
        assert_int_equal(row.id.secret[0], 0xaa);
        assert_string_equal(row.owner, "ada");
        assert_int_equal(row.n_seats, 1);
        assert_int_equal(row.n_areas, 0);
        assert_int_equal(row.client, 0);
        assert_int_equal(row.status, HOLD_ACTIVE);
        assert_int_equal(row.expires_at, T0_MS + 1000);
        hold_row_close(&row);
        if (opened == 0) {
            ledger_close(lab.l);
            lab.l = NULL;
        }
    }
    struct event_def *def;
    struct clock_row clock;
    ok(ledger_event_read(lab.l, 1, &def, &clock, &err), &err);
    assert_int_equal(def->n_seats, 2);
    assert_string_equal(def->sections.v[0].rows.v[0].name, "1");
    event_def_free(def);
    lab.event = 1;
    put_hold_of_areas(2, NULL, 0);
    put_area(0, 0, 0, 3, 0);
    put_seat(1, SEAT_AVAILABLE, 0, SEAT_BLOCKED, 0, 2); /* it had a row in version 1 */
    assert_string_equal(store(), "");
    assert_int_equal(number("SELECT COUNT(*) FROM seats"), 1);
    int64_t key = HOLD_KEY(1, 2);
    ok(ledger_holds_read(lab.l, &key, 1, &row, &err), &err);
    assert_int_equal(row.n_areas, 2);
    hold_row_close(&row);
}

/* ---- layouts as text ---- */

/* The layout of one section must be this text, and every row must come back from it. */
static void assert_layout(struct event_def *def, const char *expected)
{
    struct buf text = {0};
    const struct section_def *section = &def->sections.v[0];
    struct layout_run run;
    size_t row = 0;
    char name[ROW_NAME_SIZE];
    layout_write(section, true, &text);
    assert_true(text.len <= layout_size_max(section));
    buf_char(&text, '\0');
    assert_string_equal(text.data, expected);
    const char *at = text.data, *end = text.data + text.len - 1;
    while (layout_next(&at, end, &run))
        for (uint32_t i = 0; i < run.rows; i++, row++) {
            row_name((uint32_t)row, name);
            const char *want = section->rows.v[row].name;
            assert_int_equal(run.name ? run.name_len : strlen(name), strlen(want));
            assert_memory_equal(run.name ? run.name : name, want, strlen(want));
            assert_int_equal(run.seats, section->rows.v[row].seats);
        }
    assert_ptr_equal(at, end);
    assert_int_equal(row, section->rows.n);
    event_def_free(def);
    buf_close(&text);
}

static struct event_def *def_rows(const char *names, const uint32_t *seats)
{
    struct event_def *def = def_new("Hall");
    def_section(def, "S", NULL, 1);
    for (char name[2] = ""; (name[0] = *names++);)
        def_row(def, name, *seats++);
    return def;
}

static void layouts_survive_being_text(void **state)
{
    (void)state;
    assert_layout(def_rows("ABC", (uint32_t[]){30, 30, 30}), "-30*3");
    assert_layout(def_rows("ABC", (uint32_t[]){30, 30, 1}), "-30*2,-1*1");
    assert_layout(def_rows("XBC", (uint32_t[]){2, 5, 5}), "X-2,-5*2");
    assert_layout(def_rows("BA,*", (uint32_t[]){2, 2, 2, 2}), "B-2,A-2,,-2,*-2");
    assert_layout(def_rows("9", (uint32_t[]){2000000}), "9-2000000");
    struct event_def *def = def_rows("", NULL);
    char name[ROW_NAME_SIZE];
    for (uint32_t i = 0; i < 1000; i++) {
        row_name(i, name);
        def_row(def, name, 20);
    }
    assert_string_equal(name, "ALL");
    assert_layout(def, "-20*1000");
    row_name(99999, name);
    assert_string_equal(name, "EQXD");
}

static void a_text_that_is_no_layout_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "A",    "-",    "-3",         "-3*",        "-3*0",          "-0*3",  "A-",
        "A-0",  "A-x",  "A-3,",       "A-3;B-3",    ",A-3,",         "A-3*2", "-3*2x",
        "A-3 ", "A--3", "-2000001*1", "-1*2000001", "-1*99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *at = bad[i], *end = at + strlen(at);
        struct layout_run run;
        while (layout_next(&at, end, &run))
            ;
        if (at == end)
            fail_msg("taken for a layout: %s", bad[i]);
    }
}

static void an_event_with_a_damaged_layout_is_an_error(void **state)
{
    (void)state;
    static const char *const bad[] = {"-3", "-2000000*2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct event_def *def;
        struct clock_row clock;
        struct hf_err err = {0};
        char sql[100];
        snprintf(sql, sizeof sql, "UPDATE sections SET layout = '%s' WHERE event = 1", bad[i]);
        script(sql);
        assert_int_equal(ledger_event_read(lab.l, 1, &def, &clock, &err), HF_INTERNAL);
        assert_non_null(strstr(err.msg, "layout"));
    }
}

/* ---- lists of numbers as text ---- */

static void lists_of_seats_survive_being_text(void **state)
{
    (void)state;
    static const uint32_t lists[][4] = {{0}, {7}, {1, 22, 333, EVENT_SEATS_MAX - 1}, {9, 8}};
    static const uint32_t lens[] = {0, 1, 4, 2};
    static const char *const texts[] = {"[]", "[7]", "[1,22,333,1999999]", "[9,8]"};
    for (int i = 0; i < 4; i++) {
        struct buf text = {0};
        uint32_t back[16], n = 99;
        number_list_write(lists[i], lens[i], &text);
        assert_int_equal(text.len, strlen(texts[i]));
        assert_memory_equal(text.data, texts[i], text.len);
        assert_true(number_list_parse(text.data, text.len, back, &n));
        assert_int_equal(n, lens[i]);
        assert_memory_equal(back, lists[i], n * sizeof *back);
        buf_close(&text);
    }
}

static const char *const damaged[] = {
    "",          "[",
    "]",         "1",
    "[1",        "1]",
    "[,]",       "[,1]",
    "[1,]",      "[1,,2]",
    "[1 ,2]",    "[1, 2]",
    " [1]",      "[1] ",
    "[-1]",      "[+1]",
    "[1.0]",     "[1e1]",
    "[a]",       "[0x1]",
    "[2000000]", "[99999999999999999999]",
    "[[1]]",     "[1]]",
    "[[1]",      "[1][2]",
    "{1}",       "[01]",
    "[00]",      "[\"1\"]",
    "[null]",    "[1;2]",
};
#define DAMAGED (sizeof damaged / sizeof *damaged)

static void damaged_lists_of_seats_are_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < DAMAGED; i++) {
        uint32_t *seats = hf_alloc((strlen(damaged[i]) + 1) / 2 * sizeof *seats);
        uint32_t n = 99;
        char *text =
            hf_strndup(damaged[i], strlen(damaged[i])); /* the exact size, for the sanitizer */
        if (number_list_parse(text, strlen(text), seats, &n))
            fail_msg("accepted: %s", damaged[i]);
        assert_int_equal(n, 99);
        free(text);
        free(seats);
    }
}

static void a_damaged_row_is_an_error_and_not_a_hold(void **state)
{
    (void)state;
    static const uint32_t seats[] = {0};
    struct hf_err err = {0};
    put_hold(1, seats, 1, T0_MS);
    put_booking(1);
    assert_string_equal(store(), "");
    script("UPDATE holds SET seats = '[0,'");
    struct hold_row hold;
    struct booking_row booking;
    struct active active = {0};
    int64_t key = hold_key(1);
    assert_int_equal(ledger_holds_read(lab.l, &key, 1, &hold, &err), HF_INTERNAL);
    assert_non_null(strstr(err.msg, "damaged"));
    assert_int_equal(hold.id.key, 0);
    assert_int_equal(ledger_booking_read(lab.l, key, &booking, &err), HF_INTERNAL);
    assert_int_equal(booking.id.key, 0);
    assert_int_equal(ledger_holds_active(lab.l, lab.event, on_hold, &active, &err), HF_INTERNAL);
    assert_int_equal(active.n, 0);
    script("UPDATE holds SET seats = '[0]'");
    ok(ledger_holds_read(lab.l, &key, 1, &hold, &err), &err); /* the connection still works */
    hold_row_close(&hold);
}

/* ---- commits whose answer was lost ---- */

/* A batch that gives the event terms with this price. */
struct lost {
    struct ledger_batch batch;
    struct event_terms terms;
};

static void lost_terms(struct lost *lost, int64_t seq, int64_t price)
{
    struct hf_err err = {0};
    memset(lost, 0, sizeof *lost);
    ok(ledger_terms_read(lab.l, lab.event, &lost->terms, &err), &err);
    lost->terms.prices.v[0] = price;
    *vec_push(&lost->batch.events) = (struct event_write){.event = lab.event,
                                                          .from = EVENT_OPEN,
                                                          .to = EVENT_OPEN,
                                                          .terms = &lost->terms,
                                                          .n_categories = 1,
                                                          .by_section = true};
    *vec_push(&lost->batch.audit) = (struct audit_row){.event = lab.event,
                                                       .seq = seq,
                                                       .at = T0_MS,
                                                       .object = AUDIT_EVENT,
                                                       .cause = CAUSE_CHANGE,
                                                       .item = -1,
                                                       .from = EVENT_OPEN,
                                                       .to = EVENT_OPEN};
    struct clock_write *w = vec_push(&lost->batch.clocks);
    w->before = (struct clock_row){lab.event, seq - 1, 0, 0};
    w->after = (struct clock_row){lab.event, seq, 0, T0_MS};
}

static void lost_close(struct lost *lost)
{
    vec_close(&lost->batch.events);
    vec_close(&lost->batch.audit);
    vec_close(&lost->batch.clocks);
    vec_close(&lost->batch.holds);
    vec_close(&lost->batch.places);
    event_terms_close(&lost->terms);
}

static void store_lost(const struct lost *lost)
{
    struct hf_err err = {0};
    ok(ledger_begin(lab.l, &err), &err);
    ok(ledger_write(lab.l, &lost->batch, &err), &err);
    ok(ledger_commit(lab.l, &err), &err);
}

static bool happened(const struct lost *lost)
{
    struct hf_err err = {0};
    bool found = false;
    ok(ledger_resolve(lab.l, &lost->batch, &lost->batch.clocks.v[0].after, 1, NULL, false, &found,
                      &err),
       &err);
    return found;
}

static void a_lost_change_of_terms_is_found_by_its_row_of_the_log(void **state)
{
    (void)state;
    struct lost same, ours, theirs, next;
    lost_terms(&same, 2, 2500);
    assert_false(happened(&same)); /* though the event has these very terms */
    lost_terms(&ours, 2, 3000);
    lost_terms(&theirs, 2, 4000);
    assert_false(happened(&ours));
    store_lost(&ours);
    assert_true(happened(&ours));
    assert_false(happened(&theirs)); /* of the same moment, but it says otherwise */
    lost_terms(&next, 3, 5000);
    store_lost(&next);
    assert_true(happened(&ours)); /* whatever came after it */
    assert_true(happened(&next));
    lost_close(&same);
    lost_close(&ours);
    lost_close(&theirs);
    lost_close(&next);
}

/* The hold of fence 1 gets another seat and the next fence. */
static void lost_places(struct lost *lost, int64_t fence, const uint32_t *seats, uint32_t n)
{
    static const struct price_run prices[] = {{1000, 1, 0}, {1000, 1, 0}, {1000, 1, 0}};
    memset(lost, 0, sizeof *lost);
    *vec_push(&lost->batch.holds) = (struct hold_write){.hold = hold_key(1),
                                                        .fence_before = fence - 1,
                                                        .fence = fence,
                                                        .expires_at = T0_MS + MINUTE_MS,
                                                        .last_seq = fence * 2,
                                                        .from = HOLD_ACTIVE,
                                                        .to = HOLD_ACTIVE};
    *vec_push(&lost->batch.places) = (struct hold_places_write){.hold = hold_key(1),
                                                                .fence = fence,
                                                                .amount = 1000 * n,
                                                                .seats = seats,
                                                                .n_seats = n,
                                                                .prices = prices,
                                                                .n_prices = n};
    for (int i = 0; i < 2; i++) /* the hold's row and that of its new seat */
        *vec_push(&lost->batch.audit) = (struct audit_row){.event = lab.event,
                                                           .seq = fence * 2 + i,
                                                           .at = T0_MS,
                                                           .object = i ? AUDIT_SEAT : AUDIT_HOLD,
                                                           .cause = CAUSE_CHANGE,
                                                           .item = i ? (int64_t)seats[n - 1] : -1,
                                                           .quantity = i ? 1 : n,
                                                           .from = i ? 0 : HOLD_ACTIVE,
                                                           .to = 1,
                                                           .hold = hold_key(1),
                                                           .fence = fence,
                                                           .until = T0_MS + MINUTE_MS};
    struct clock_write *w = vec_push(&lost->batch.clocks);
    w->before = (struct clock_row){lab.event, fence * 2 - 1, fence - 1, 0};
    w->after = (struct clock_row){lab.event, fence * 2 + 1, fence, T0_MS};
}

static void a_lost_change_of_a_hold_is_found_by_its_rows_of_the_log(void **state)
{
    (void)state;
    static const uint32_t seats[] = {0, 1, 2}, others[] = {0, 3};
    struct lost ours, theirs, next;
    put_hold(1, seats, 1, T0_MS + MINUTE_MS);
    put_clock(1, 0, 3, 1, T0_MS);
    assert_string_equal(store(), "");
    lost_places(&ours, 2, seats, 2);
    lost_places(&theirs, 2, others, 2);
    assert_false(happened(&ours));
    store_lost(&ours);
    assert_true(happened(&ours));
    assert_false(happened(&theirs)); /* of the same moment, but with another seat */
    lost_places(&next, 3, seats, 3);
    store_lost(&next);
    assert_true(happened(&ours)); /* whatever came after it */
    lost_close(&ours);
    lost_close(&theirs);
    lost_close(&next);
}

/* ---- plans ---- */

static const char *const texts[] = {
#define STATEMENT_TEXT(name, sql) sql,
    LEDGER_STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

/* Of what is read from end to end: is it a table, and no row of constants or part of the statement? */
static bool is_table(const char *name)
{
    static const char *const parts[] = {"live", "chain", "c", "held", "waiting", "either", "o"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name, parts[i]) == 0)
            return false;
    return !strstr(name, "CONSTANT");
}

/* The plan must mention `want` and must not read any table from end to end. */
static void assert_plan(enum statement which, const char *want)
{
    struct buf sql = {0}, plan = {0};
    struct db_value args[24] = {0};
    struct db_stmt *stmt;
    struct hf_err err = {0};
    size_t len;
    buf_printf(&sql, "EXPLAIN QUERY PLAN %s", texts[which]);
    ok(lab.l->db->driver->prepare(lab.l->db, sql.data, &stmt, &err), &err);
    ok(db_query(stmt, args, &err), &err);
    while (db_step(stmt, &err) == DB_ROW) {
        const char *line = db_column_data(stmt, 3, &len);
        buf_printf(&plan, "%s\n", line);
        if (strncmp(line, "SCAN ", 5) == 0 && !strstr(line, " INDEX ") && is_table(line + 5))
            fail_msg("%s: %s", texts[which], line);
    }
    buf_char(&plan, '\0');
    if (!strstr(plan.data, want))
        fail_msg("%s: not by %s but\n%s", texts[which], want, plan.data);
    buf_close(&sql);
    buf_close(&plan);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

/* With the writer's settings PostgreSQL reads no table from end to end, and looks up each of many
 * keys. */
static void assert_postgres_plan(enum statement which, const char *want)
{
    struct buf sql = {0}, plan = {0};
    struct template_params params;
    struct db_value args[TEMPLATE_PARAMS_MAX];
    struct db_stmt *stmt;
    struct hf_err err = {0};
    size_t len;
    buf_printf(&sql, "EXPLAIN %s", texts[which]);
    buf_char(&sql, '\0');
    ok(lab.l->db->driver->prepare(lab.l->db, sql.data, &stmt, &err), &err);
    ok(template_expand(texts[which], &pg_dialect, &plan, &params, &err), &err);
    plan.len = 0;
    for (int i = 0; i < params.n; i++)
        args[i] = params.types[i] == DB_INT    ? db_int(5)
                  : params.types[i] == DB_TEXT ? db_text("5", 1)
                                               : db_bytes("5", 1);
    ok(db_query(stmt, args, &err), &err);
    enum db_step step;
    while ((step = db_step(stmt, &err)) == DB_ROW) {
        const char *line = db_column_data(stmt, 0, &len);
        buf_printf(&plan, "%s\n", line);
    }
    if (step == DB_FAILED)
        fail_msg("%s: %s", texts[which], err.msg);
    buf_char(&plan, '\0');
    if (strstr(plan.data, "Seq Scan") || strstr(plan.data, "Hash Join") ||
        strstr(plan.data, "Merge Join") || !strstr(plan.data, want) ||
        (params.rows && count(plan.data, "Index ") != 2 * count(plan.data, "Index Cond")))
        fail_msg("%s: not by %s but\n%s", texts[which], want, plan.data);
    buf_close(&sql);
    buf_close(&plan);
}

static void assert_postgres_plans(void)
{
    assert_postgres_plan(ST_CLOCK_LOCK, "event_clock_pkey");
    assert_postgres_plan(ST_CLOCK_READ, "event_clock_pkey");
    assert_postgres_plan(ST_CLOCK_WRITE, "event_clock_pkey");
    assert_postgres_plan(ST_SEAT_DELETE, "seats_pkey");
    assert_postgres_plan(ST_HEADS_READ, "seat_heads_pkey");
    assert_postgres_plan(ST_SEATS_READ, "seats_pkey");
    assert_postgres_plan(ST_HOLD_WRITE, "holds_pkey");
    assert_postgres_plan(ST_HOLD_READ, "holds_pkey");
    assert_postgres_plan(ST_HOLDS_SINCE, "holds_pkey");
    assert_postgres_plan(ST_HOLDS_LIST, "holds_pkey");
    assert_postgres_plan(ST_HOLDS_ACTIVE, "holds_due");
    assert_postgres_plan(ST_HOLDS_LIVE, "holds_due");
    assert_postgres_plan(ST_HOLDS_DUE, "holds_due");
    assert_postgres_plan(ST_BOOKING_READ, "bookings_pkey");
    assert_postgres_plan(ST_LOG_READ, "log_pkey");
    assert_postgres_plan(ST_LOG_SINCE, "log_pkey");
    assert_postgres_plan(ST_LOG_SEATS, "log_pkey");
    assert_postgres_plan(ST_HOLDS_COUNT, "holds_due");
    assert_postgres_plan(ST_KEY_READ, "idempotency_pkey");
    assert_postgres_plan(ST_KEYS_EACH, "idempotency_age");
    assert_postgres_plan(ST_KEYS_PRUNE, "idempotency_age");
    assert_postgres_plan(ST_EVENT_WRITE, "events_pkey");
    assert_postgres_plan(ST_EVENTS_LIST, "events_pkey");
    assert_postgres_plan(ST_SEATS_COUNT, "seats_pkey");
    assert_postgres_plan(ST_ROWS_COUNT, "seat_rows_pkey");
    assert_postgres_plan(ST_AREA_WRITE, "areas_pkey");
    assert_postgres_plan(ST_SECTIONS_READ, "sections_pkey");
    assert_postgres_plan(ST_ROWS_READ, "seat_rows_pkey");
    assert_postgres_plan(ST_WAIT_READ, "waitlist_pkey");
    assert_postgres_plan(ST_WAIT_WRITE, "waitlist_pkey");
    assert_postgres_plan(ST_WAIT_NEWEST, "waitlist_pkey");
    assert_postgres_plan(ST_WAIT_AHEAD, "waitlist_live");
    assert_postgres_plan(ST_WAITS_SINCE, "waitlist_pkey");
    assert_postgres_plan(ST_WAITS_LIVE, "waitlist_live");
    assert_postgres_plan(ST_WAITS_LIST, "waitlist_pkey");
    assert_postgres_plan(ST_WAITS_FIND, "waitlist_owner");
    assert_postgres_plan(ST_WAITED_FOR, "waitlist_live");
    assert_postgres_plan(ST_HOLD_OFFER, "waitlist_pkey");
    assert_postgres_plan(ST_NOTICES_DUE, "jobs_due");
    assert_postgres_plan(ST_NOTICES_DUE, "jobs_pkey");
    assert_postgres_plan(ST_HOLD_CHAINS, "log_pkey");
    assert_postgres_plan(ST_LOG_DELETE, "log_pkey");
    assert_postgres_plan(ST_WAITS_FINISHED, "waitlist_pkey");
    assert_postgres_plan(ST_WAIT_DELETE, "waitlist_pkey");
    assert_postgres_plan(ST_WAITS_PRUNE, "waitlist_pkey");
    assert_postgres_plan(ST_WAIT_ERASE, "waitlist_pkey");
    assert_postgres_plan(ST_WAITS_OF_OWNER, "waitlist_owner");
    assert_postgres_plan(ST_HOLDS_AFTER, "waitlist_pkey");
    assert_postgres_plan(ST_PRUNE_NEXT, "waitlist_live");
}

/* Also before the server has statistics of a table that has just been filled. */
static void postgres_goes_by_the_indexes(void)
{
    script("INSERT INTO seats (seat, status, hold, fence)"
           " SELECT 9 * 4294967296 + i, 2, 0, 0 FROM generate_series(0, 19999) i;"
           "INSERT INTO log SELECT i, 0, 4, 2, 0, 1, 1, i, 0, i, 0, 0, '[0,1,1,0]', NULL"
           " FROM generate_series(1000000, 1019999) i;"
           "INSERT INTO seat_heads SELECT 9 * 4294967296 + i, 0, ''"
           " FROM generate_series(0, 19999) i;"
           "INSERT INTO holds (hold, secret, event, status, fence, amount, seats, created_at,"
           " expires_at, max_expires_at) SELECT i, 'x', 9, i % 2 + 1, i, 0, '[]', 0, i, i"
           " FROM generate_series(1000000, 1019999) i;"
           "INSERT INTO waitlist SELECT i, 9, 'x', i, i, i % 6 + 1, 0, 0,"
           " CASE WHEN i % 6 < 2 THEN 0 ELSE 1 END, 0, 0, 1, 0, 0, CAST(i % 5000 AS text), NULL,"
           " '[0,0,0,1,0,0,1]' FROM generate_series(1000000, 1019999) i;"
           "INSERT INTO jobs SELECT i, i, 6, 2, 0, 0, 0, 8, 'x', 0, 0, 0, 0, 0, 0, 0, NULL"
           " FROM generate_series(1000000, 1019999) i;"
           "INSERT INTO bookings SELECT i, 'x', 9, 1, 1, 1, NULL, 1"
           " FROM generate_series(1000000, 1019999) i;"
           "INSERT INTO idempotency SELECT CAST(CAST(i AS text) AS bytea), 'x', 200, '', 1"
           " FROM generate_series(1000000, 1009999) i;"
           "INSERT INTO event_clock SELECT i, 1, 1, 1 FROM generate_series(100, 2000) i;"
           "INSERT INTO events SELECT i, 'x', '', 'EUR', 1, 1, 1, 1, 1"
           " FROM generate_series(100, 2000) i;"
           "INSERT INTO areas SELECT i, 0, '', 1, 1, 0, 0 FROM generate_series(100, 2000) i;");
    assert_postgres_plans();
    script("ANALYZE");
    assert_postgres_plans();
}

static void reads_and_writes_go_by_their_indexes(void **state)
{
    (void)state;
    if (on_postgres) {
        postgres_goes_by_the_indexes();
        return;
    }
    assert_plan(ST_HOLDS_DUE, "INDEX holds_due (event=? AND expires_at<?)");
    assert_plan(ST_HOLDS_DUE, "INDEX holds_due (event>?)");
    assert_plan(ST_HOLDS_ACTIVE, "INDEX holds_due (event=?)");
    assert_plan(ST_HOLDS_COUNT, "INDEX holds_due (event=?)");
    assert_plan(ST_HOLD_READ, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_HOLD_WRITE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_SEAT_DELETE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_HEADS_READ, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_SEATS_READ, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_CLOCK_READ, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_CLOCK_WRITE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_BOOKING_READ, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_KEY_READ, "idempotency_pkey (hash=?)");
    assert_plan(ST_KEYS_EACH, "INDEX idempotency_age (created_at>?)");
    assert_plan(ST_KEYS_PRUNE, "INDEX idempotency_age (created_at<?)");
    assert_plan(ST_EVENTS_LIST, "INTEGER PRIMARY KEY (rowid<?)");
    assert_plan(ST_SEATS_COUNT, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_SECTIONS_READ, "PRIMARY KEY (event=?)");
    assert_plan(ST_AREAS_READ, "PRIMARY KEY (event=?)");
    assert_plan(ST_AREA_WRITE, "PRIMARY KEY (event=? AND area=?)");
    assert_plan(ST_EVENT_WRITE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_HOLDS_LIST, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_LOG_READ, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_LOG_SEATS, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_ROWS_READ, "PRIMARY KEY (event=?)");
    assert_plan(ST_WAIT_READ, "w USING INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_WAIT_WRITE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_WAIT_NEWEST, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_WAIT_AHEAD, "INDEX waitlist_live (status=? AND event=? AND rank<?)");
    assert_plan(ST_WAITS_SINCE, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_WAITS_LIVE, "INDEX waitlist_live (status=? AND event=?)");
    assert_plan(ST_WAITS_LIST, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_WAITS_FIND, "INDEX waitlist_owner (owner=? AND entry>? AND entry<?)");
    assert_plan(ST_WAITED_FOR, "INDEX waitlist_live (status=? AND event>?)");
    assert_plan(ST_HOLD_OFFER, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_NOTICES_DUE, "j USING INDEX jobs_due (due_at<?)");
    assert_plan(ST_NOTICES_DUE, "o USING PRIMARY KEY (booking=? AND job<?)");
    assert_plan(ST_JOBS_DUE, "o USING PRIMARY KEY (booking=?)");
    assert_plan(ST_HOLD_CHAINS, "a USING INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_WAITS_FINISHED, "x USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_WAIT_DELETE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_WAITS_PRUNE, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_WAIT_ERASE, "INTEGER PRIMARY KEY (rowid=?)");
    assert_plan(ST_WAITS_OF_OWNER, "INDEX waitlist_owner (owner=? AND entry>? AND entry<?)");
    assert_plan(ST_HOLDS_AFTER, "waitlist USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
    assert_plan(ST_PRUNE_NEXT, "INDEX waitlist_live (status=? AND event=?)");
}

/* Those that are missing have statements of their own. */
static void a_row_is_read_and_written_with_all_of_its_columns(void **state)
{
    (void)state;
    if (on_postgres)
        return; /* the same migrations made it */
#define N_COLUMNS(table) number("SELECT COUNT(*) FROM pragma_table_info('" table "')")
    assert_int_equal(N_COLUMNS("holds"), HOLD_COLUMNS_N + 1); /* booked_with */
    assert_int_equal(N_COLUMNS("bookings"), BOOKING_COLUMNS_N);
    assert_int_equal(N_COLUMNS("bookings_past"), BOOKING_COLUMNS_N);
    assert_int_equal(N_COLUMNS("payments"), PAYMENT_COLUMNS_N);
    assert_int_equal(N_COLUMNS("refunds"), REFUND_COLUMNS_N);
    assert_int_equal(N_COLUMNS("jobs"), JOB_COLUMNS_N);
    assert_int_equal(N_COLUMNS("events"), EVENT_COLUMNS_N + 2); /* pruned_seq, holds_pruned_seq */
    assert_int_equal(N_COLUMNS("waitlist"), WAIT_COLUMNS_N);
    assert_int_equal(N_COLUMNS("log"), LOG_COLUMNS_N + 1); /* actor */
}

#define claim(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)

int main(void)
{
    const struct CMUnitTest tests[] = {
        claim(an_event_comes_back_as_it_was_written),
        claim(a_seat_has_a_row_while_it_is_booked_or_blocked),
        claim(heads_are_those_stored_and_the_log_after_them),
        claim(layouts_survive_being_text),
        claim(a_text_that_is_no_layout_is_refused),
        claim(an_event_with_a_damaged_layout_is_an_error),
        claim(an_unknown_event_reads_as_none),
        claim(events_are_numbered_and_listed_newest_first),
        claim(events_to_come_are_listed_by_date_and_others_behind_them),
        claim(an_event_that_is_rolled_back_does_not_exist),
        claim(a_batch_is_stored_and_read_back),
        claim(a_hold_without_owner_and_metadata_has_none),
        claim(a_booking_is_read_with_its_hold_s_seats),
        claim(a_hold_comes_back_with_its_areas_and_its_address),
        claim(a_booking_is_read_with_its_hold_s_areas),
        claim(a_hold_and_its_booking_come_back_with_their_types),
        claim(the_log_comes_back_with_its_types),
        claim(a_damaged_list_of_areas_is_an_error_and_not_a_hold),
        claim(an_event_s_state_is_its_status_and_its_counters),
        claim(an_area_with_other_counters_is_a_surprise),
        claim(an_event_of_another_status_is_a_surprise),
        claim(a_clock_row_that_moved_is_a_surprise),
        claim(a_seat_in_another_state_is_a_surprise),
        claim(a_hold_in_another_state_is_a_surprise),
        claim(a_hold_made_and_ended_in_one_batch_is_no_surprise),
        claim(a_second_booking_of_a_hold_is_a_surprise),
        claim(a_second_sale_of_a_seat_is_a_surprise),
        claim(a_second_log_entry_of_a_number_is_a_surprise),
        claim(a_key_cannot_be_used_again_for_a_day),
        claim(a_key_is_read_while_it_is_young),
        claim(several_keys_are_read_at_once),
        claim(old_keys_are_pruned_in_slices_oldest_first),
        claim(the_first_due_hold_of_each_event_is_listed),
        claim(active_holds_are_those_of_the_event_by_expiry),
        claim(locking_reads_each_clock_and_the_latest_time),
        claim(a_missing_clock_row_is_an_error),
        claim(a_probe_always_writes_and_time_only_grows),
        claim(time_goes_on_from_what_is_stored),
        claim(a_ledger_of_a_newer_program_is_refused),
        claim(a_connection_that_joins_does_not_look_at_the_schema_again),
        claim(a_ledger_of_version_1_keeps_its_holds_and_takes_new_ones),
        cmocka_unit_test(lists_of_seats_survive_being_text),
        cmocka_unit_test(damaged_lists_of_seats_are_noticed),
        claim(a_damaged_row_is_an_error_and_not_a_hold),
        claim(a_lost_change_of_terms_is_found_by_its_row_of_the_log),
        claim(a_lost_change_of_a_hold_is_found_by_its_rows_of_the_log),
        claim(reads_and_writes_go_by_their_indexes),
        claim(a_row_is_read_and_written_with_all_of_its_columns),
    };
    int failed = cmocka_run_group_tests_name("ledger, SQLite", tests, NULL, NULL);
    on_postgres = true;
    return failed + cmocka_run_group_tests_name("ledger, PostgreSQL", tests, NULL, NULL);
}
