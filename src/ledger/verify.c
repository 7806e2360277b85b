/* Reads the ledger for verify_fold.c, verify_rows.c, verify_money.c, verify_waits.c and
 * verify_venue.c, one event after another, in one transaction that writes nothing: what is compared
 * is the state of one moment, however busy the servers are.
 * While it lasts, SQLite cannot empty a running server's log. */
#include "ledger/verify.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/layout.h"
#include "ledger/log.h"
#include "ledger/number_list.h"
#include "ledger/verify_database.h"
#include "ledger/verify_internal.h"
#include "ledger/verify_statements.h"
#include "ledger/verify_venue.h"

#define VERIFY_CACHE_KIB 8192

static const char *const statement_sql[VS_COUNT] = {
#define VERIFY_STATEMENT_SQL(name, sql) [VS_##name] = (sql),
    VERIFY_STATEMENTS(VERIFY_STATEMENT_SQL)
#undef VERIFY_STATEMENT_SQL
};

struct verifier {
    struct db *db;
    struct db_stmt *stmts[VS_COUNT];
    struct event_state event;
    struct venue_check venue;
    VEC(struct clock_row) clocks; /* of all events, and of event 0, their catalogue */
    uint32_t *list, list_cap;     /* the seats or areas of the hold being read */
    struct log_rows log;          /* the rows of the entry being read */
    int64_t scalar;               /* the result of a query of one number */
    int64_t read[VS_COUNT];       /* number of rows that each statement gave */
};

typedef void row_fn(struct verifier *v, struct db_stmt *stmt);

/* Runs a statement to its end and calls `row` for each of its rows. */
static enum hf_status each(struct verifier *v, enum verify_statement which, int64_t first,
                           int64_t last, row_fn *row, struct hf_err *err)
{
    const struct db_value args[] = {db_int(first), db_int(last)};
    enum hf_status status = HF_OK;
    if (!v->stmts[which])
        status = v->db->driver->prepare(v->db, statement_sql[which], &v->stmts[which], err);
    if (status == HF_OK)
        status = db_query(v->stmts[which], args, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(v->stmts[which], err)) == DB_ROW) {
        v->read[which]++;
        row(v, v->stmts[which]);
    }
    return status == HF_OK && step == DB_FAILED ? HF_STORE_UNAVAILABLE : status;
}

/* Returns the value, or one that is no status and no channel if a damaged row has a larger one. */
static uint8_t small(int64_t value)
{
    return value < 0 || value >= NOT_KNOWN ? UINT8_MAX : (uint8_t)value;
}

/* ---- rows ---- */

static void on_scalar(struct verifier *v, struct db_stmt *stmt)
{
    v->scalar = db_column_int(stmt, 0);
}

static void on_event(struct verifier *v, struct db_stmt *stmt)
{
    const struct clock_row clock = {.event = db_column_int(stmt, 0),
                                    .seq = db_column_int(stmt, 1),
                                    .fence = db_column_int(stmt, 2),
                                    .now = db_column_int(stmt, 3)};
    if (!db_column_int(stmt, 4))
        verify_violation(v->event.report, VERIFY_STRAYS, "the clock of event %lld has no event",
                         (ll)clock.event);
    if (clock.event >= 0 && clock.event <= EVENT_KEY_MAX)
        *vec_push(&v->clocks) = clock;
    else
        verify_violation(v->event.report, VERIFY_STRAYS, "%lld is not the number of an event",
                         (ll)clock.event);
}

static void on_no_clock(struct verifier *v, struct db_stmt *stmt)
{
    verify_violation(v->event.report, VERIFY_STRAYS, "event %lld has no clock",
                     (ll)db_column_int(stmt, 0));
}

static void on_section(struct verifier *v, struct db_stmt *stmt)
{
    size_t len;
    const char *at = db_column_data(stmt, 1, &len), *end = at ? at + len : NULL;
    struct layout_run run;
    v->event.n_sections++;
    venue_check_section(&v->venue, at, at ? len : 0);
    while (layout_next(&at, end, &run))
        v->scalar += (int64_t)run.rows * run.seats;
    if (at != end)
        verify_violation(v->event.report, VERIFY_STRAYS,
                         "event %lld, section %lld: its layout is damaged", (ll)v->event.event,
                         (ll)db_column_int(stmt, 0));
}

static void on_category(struct verifier *v, struct db_stmt *stmt)
{
    size_t len;
    const char *name = db_column_data(stmt, 1, &len);
    int64_t category = db_column_int(stmt, 0), price = db_column_int(stmt, 2);
    v->event.n_categories++;
    venue_check_category(&v->venue, category, name, len);
    if (price < 0 || price > PRICE_MAX)
        verify_violation(v->event.report, VERIFY_STRAYS, "event %lld, category %lld: it costs %lld",
                         (ll)v->event.event, (ll)category, (ll)price);
}

static void on_venue_part(struct verifier *v, struct db_stmt *stmt)
{
    size_t len;
    const void *data = db_column_data(stmt, 0, &len);
    venue_check_part(&v->venue, data, len);
}

static void on_old_rows(struct verifier *v, struct db_stmt *stmt)
{
    v->scalar += db_column_int(stmt, 0);
}

/* Counts the seats of an event by its layout. */
static enum hf_status count_seats(struct verifier *v, int64_t event, struct hf_err *err)
{
    enum hf_status status;
    v->scalar = 0;
    if ((status = each(v, VS_CATEGORIES, event, 0, on_category, err)) != HF_OK ||
        (status = each(v, VS_SECTIONS, event, 0, on_section, err)) != HF_OK ||
        (status = each(v, VS_OLD_ROWS, event, 0, on_old_rows, err)) != HF_OK)
        return status;
    int64_t n = v->scalar;
    v->event.n_seats = n < 0 ? 0 : n > EVENT_SEATS_MAX ? EVENT_SEATS_MAX : (uint32_t)n;
    if (n != v->event.n_seats)
        verify_violation(v->event.report, VERIFY_STRAYS, "event %lld has %lld seats",
                         (ll)v->event.event, (ll)n);
    return HF_OK;
}

/* Notes how many places are blocked for each channel, and returns how many for all of them. */
static int64_t read_blocks(struct verifier *v, struct db_stmt *stmt, struct area_state *area)
{
    size_t len;
    const char *text = db_column_data(stmt, 4, &len);
    struct area_blocks blocks = {0};
    bool is_sound = text && block_list_parse(text, len, &blocks);
    int64_t sum = 0;
    for (size_t i = 0; i < blocks.list.n; i++) {
        const struct area_block *block = &blocks.list.v[i];
        is_sound =
            is_sound && block->places && (i == 0 || blocks.list.v[i - 1].channel < block->channel);
        verify_block(area, block->channel)->places += block->places;
        verify_channel(&v->event, "area", db_column_int(stmt, 0), block->channel);
        sum += block->places;
    }
    if (!is_sound)
        verify_violation(v->event.report, VERIFY_AREAS,
                         "event %lld, area %lld: its list of blocked places is damaged",
                         (ll)v->event.event, (ll)db_column_int(stmt, 0));
    vec_close(&blocks.list);
    return sum;
}

static void on_area(struct verifier *v, struct db_stmt *stmt)
{
    int64_t capacity = db_column_int(stmt, 1), held = db_column_int(stmt, 2),
            booked = db_column_int(stmt, 3);
    struct area_state *area = vec_push(&v->event.areas);
    venue_check_area(&v->venue);
    *area = (struct area_state){.held = held, .booked = booked, .log_free = capacity};
    int64_t blocked = read_blocks(v, stmt, area);
    verify_count(&v->event, VERIFY_AREAS);
    if (held < 0 || booked < 0 || held > capacity || booked > capacity - held ||
        blocked > capacity - held - booked)
        verify_violation(v->event.report, VERIFY_AREAS,
                         "event %lld, area %lld: %lld held, %lld booked and %lld blocked of %lld",
                         (ll)v->event.event, (ll)db_column_int(stmt, 0), (ll)held, (ll)booked,
                         (ll)blocked, (ll)capacity);
}

/* Counts the event's ticket types; SQL NULL is none. */
static void read_types(struct verifier *v, struct db_stmt *stmt, int column)
{
    size_t len;
    struct event_terms terms = {0};
    const char *text = db_column_data(stmt, column, &len);
    if (text && (!terms_types_parse(text, len, &terms) || !terms.types.n))
        verify_violation(v->event.report, VERIFY_PRICES, "event %lld: its ticket types are damaged",
                         (ll)v->event.event);
    v->event.n_types = terms.types.n ? (uint32_t)terms.types.n : 1;
    event_terms_close(&terms);
}

/* Channels are stored as their names, one per line. */
static void on_status(struct verifier *v, struct db_stmt *stmt)
{
    size_t len;
    read_types(v, stmt, 4);
    const char *channels = db_column_data(stmt, 2, &len);
    v->event.status = small(db_column_int(stmt, 0));
    v->event.n_channels = channels != NULL;
    for (size_t i = 0; channels && i < len; i++)
        v->event.n_channels += channels[i] == '\n';
    verify_fold_begin(&v->event, db_column_int(stmt, 1), db_column_int(stmt, 3));
}

static int index_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The seats that a hold lists are distinct and of this event (I6).  No two live holds list the same
 * one (I1). */
static void claim_seats(struct verifier *v, struct hold_state *h)
{
    struct event_state *e = &v->event;
    qsort(v->list, h->n_seats, sizeof *v->list, index_order);
    for (uint32_t i = 0; i < h->n_seats; i++) {
        uint32_t index = v->list[i];
        h->ungranted += place_digest(AUDIT_SEAT, index, 1);
        if (i && v->list[i - 1] == index)
            verify_violation(e->report, VERIFY_HOLD_SEATS, "hold %lld: lists seat %u twice",
                             (ll)h->key, index);
        else if (index >= e->n_seats)
            verify_violation(e->report, VERIFY_HOLD_SEATS, "hold %lld: there is no seat %u",
                             (ll)h->key, index);
        else if (hold_live(h)) {
            struct seat_state *s = &e->seats[index];
            verify_count(e, VERIFY_ONE_OWNER);
            if (s->claim)
                verify_violation(e->report, VERIFY_ONE_OWNER,
                                 "event %lld, seat %u: listed by hold %lld and hold %lld",
                                 (ll)e->event, index, (ll)s->claim, (ll)h->key);
            else
                s->claim = h->key;
        }
    }
}

/* Sums up the places that live holds list, as [area, quantity ...] (I2).  Returns how many there
 * are in the list. */
static int64_t claim_areas(struct verifier *v, struct hold_state *h, uint32_t n_numbers)
{
    struct event_state *e = &v->event;
    int64_t n_places = 0;
    for (uint32_t i = 0; i + 1 < n_numbers; i += 2) {
        uint32_t area = v->list[i], quantity = v->list[i + 1];
        h->ungranted += place_digest(AUDIT_AREA, area, quantity);
        n_places += quantity;
        if (area >= e->areas.n || !quantity)
            verify_violation(e->report, VERIFY_HOLD_SEATS, "hold %lld: lists %u places of area %u",
                             (ll)h->key, quantity, area);
        else if (h->status == HOLD_ACTIVE)
            e->areas.v[area].claimed_held += quantity;
        else if (hold_live(h))
            e->areas.v[area].claimed_booked += quantity;
    }
    if (n_numbers % 2)
        verify_violation(e->report, VERIFY_HOLD_SEATS, "hold %lld: its list of areas is damaged",
                         (ll)h->key);
    return n_places;
}

/* Reads the numbers of a column into v->list.  SQL NULL is an empty list.  Returns false if it is
 * damaged. */
static bool read_list(struct verifier *v, struct db_stmt *stmt, int column, uint32_t *ret_n)
{
    size_t len;
    const char *text = db_column_data(stmt, column, &len);
    if (len / 2 >= v->list_cap) {
        v->list_cap = (uint32_t)len + 16;
        v->list = hf_realloc(v->list, v->list_cap * sizeof *v->list);
    }
    *ret_n = 0;
    return !text || number_list_parse(text, len, v->list, ret_n);
}

/* Weighs the places of the row's lists by their ticket types, for h->mistyped.  Places of the first
 * type weigh nothing, and so do those of a list that is damaged, which is reported elsewhere. */
static void weigh_places(struct verifier *v, struct db_stmt *stmt, struct hold_state *h,
                         const struct price_run *runs, uint32_t n_runs)
{
    struct price_reader r = price_reader(runs, n_runs);
    uint32_t n, type = 0;
    int64_t price;
    if (!read_list(v, stmt, 5, &n))
        return;
    for (uint32_t i = 0; i < n && price_reader_next(&r, 1, &price, &type); i++)
        h->mistyped += place_digest(AUDIT_SEAT, v->list[i], 1) * type;
    if (!read_list(v, stmt, 9, &n))
        return;
    for (uint32_t i = 0; i + 1 < n; i += 2)
        for (uint32_t left = v->list[i + 1], got; left; left -= got) {
            if (!(got = price_reader_next(&r, left, &price, &type)))
                return;
            h->mistyped += place_digest(AUDIT_AREA, v->list[i], got) * type;
        }
}

/* Reads the types of a hold's places, if its list of prices names any. */
static void weigh_types(struct verifier *v, struct db_stmt *stmt, struct hold_state *h)
{
    size_t len;
    uint32_t n;
    const char *text = db_column_data(stmt, 14, &len);
    if (!text || len < 2 || !memchr(text + 1, '[', len - 1))
        return;
    struct price_run *runs = hf_alloc((len + 1) / 4 * sizeof *runs + 1);
    if (price_list_parse(text, len, runs, &n))
        weigh_places(v, stmt, h, runs, n);
    free(runs);
}

/* Compares the amount of a booking with that of its payment.  Only sales, and what came of them,
 * may have none. */
static void check_paid(struct verifier *v, int64_t booking, int64_t payment, int status,
                       int64_t amount, int64_t paid)
{
    bool needs_payment = status == BOOKING_PENDING || status == BOOKING_FAILED;
    if (payment ? paid != amount : needs_payment)
        verify_violation(v->event.report, VERIFY_PAYMENTS,
                         "booking %lld: it is %s and costs %lld, its payment is of %lld",
                         (ll)booking, word(AUDIT_BOOKING, status), (ll)amount, (ll)paid);
}

static void on_hold(struct verifier *v, struct db_stmt *stmt)
{
    struct hold_state *h = vec_push(&v->event.holds);
    uint32_t n_numbers;
    size_t prices_len;
    int64_t n_places;
    *h = (struct hold_state){.key = db_column_int(stmt, 0),
                             .status = small(db_column_int(stmt, 2)),
                             .fence = db_column_int(stmt, 3),
                             .expires_at = db_column_int(stmt, 4),
                             .booking = small(db_column_int(stmt, 6)),
                             .booking_fence = db_column_int(stmt, 7),
                             .last_seq = db_column_int(stmt, 10),
                             .channel = small(db_column_int(stmt, 11)),
                             .cancelled = db_column_int(stmt, 12),
                             .payment = db_column_int(stmt, 16),
                             .payment_status = small(db_column_int(stmt, 17)),
                             .booked_with = db_column_int(stmt, 19)};
    verify_count(&v->event, VERIFY_HOLD_SEATS);
    verify_channel(&v->event, "hold", h->key, h->channel);
    if (db_column_int(stmt, 1) != v->event.event || db_column_int(stmt, 8) != v->event.event)
        verify_violation(v->event.report, VERIFY_STRAYS,
                         "hold %lld or its booking names event %lld", (ll)h->key,
                         (ll)db_column_int(stmt, 1));
    if (!db_column_data(stmt, 5, &(size_t){0}) || !read_list(v, stmt, 5, &h->n_seats)) {
        verify_violation(v->event.report, VERIFY_HOLD_SEATS,
                         "hold %lld: its list of seats is damaged", (ll)h->key);
        h->n_seats = 0;
    }
    claim_seats(v, h);
    n_places = h->n_seats;
    if (read_list(v, stmt, 9, &n_numbers))
        n_places += claim_areas(v, h, n_numbers);
    else
        verify_violation(v->event.report, VERIFY_HOLD_SEATS,
                         "hold %lld: its list of areas is damaged", (ll)h->key);
    const char *prices = db_column_data(stmt, 14, &prices_len);
    verify_prices(&v->event, h,
                  &(struct stored_prices){.list = prices,
                                          .list_len = prices_len,
                                          .amount = db_column_int(stmt, 13),
                                          .booked = db_column_int(stmt, 15),
                                          .places = n_places});
    weigh_types(v, stmt, h);
    if (h->booking)
        check_paid(v, h->key, h->payment, h->booking, db_column_int(stmt, 15),
                   db_column_int(stmt, 18));
}

static void on_wait(struct verifier *v, struct db_stmt *stmt)
{
    size_t len;
    struct wait_wish wish;
    struct event_state *e = &v->event;
    struct wait_seen *w = vec_push(&e->waits);
    *w = (struct wait_seen){.key = db_column_int(stmt, 0),
                            .number = db_column_int(stmt, 2),
                            .rank = db_column_int(stmt, 3),
                            .status = small(db_column_int(stmt, 4)),
                            .reason = small(db_column_int(stmt, 5)),
                            .ended_at = db_column_int(stmt, 6),
                            .read_at = db_column_int(stmt, 7),
                            .last_seq = db_column_int(stmt, 8),
                            .hold = db_column_int(stmt, 9)};
    const char *text = db_column_data(stmt, 10, &len);
    bool is_sound =
        text && wish_list_parse(text, len, &wish) &&
        wait_wish_is_sound(&wish, e->n_sections, e->n_categories ? e->n_categories : e->n_sections,
                           e->areas.n);
    w->quantity = is_sound ? wish.quantity : 0;
    if (db_column_int(stmt, 1) != e->event)
        verify_violation(e->report, VERIFY_STRAYS, "entry %lld names event %lld", (ll)w->key,
                         (ll)db_column_int(stmt, 1));
}

static void on_booking(struct verifier *v, struct db_stmt *stmt)
{
    int64_t key = db_column_int(stmt, 0);
    if (!verify_hold(&v->event, key))
        verify_violation(v->event.report, VERIFY_HOLD_STATUS, "booking %lld has no hold", (ll)key);
}

static void on_past(struct verifier *v, struct db_stmt *stmt)
{
    struct past_state *past = vec_push(&v->event.past);
    *past = (struct past_state){.booking = db_column_int(stmt, 0),
                                .payment = db_column_int(stmt, 1),
                                .status = small(db_column_int(stmt, 2)),
                                .fence = db_column_int(stmt, 3),
                                .cancelled = db_column_int(stmt, 4) != 0};
    if (db_column_int(stmt, 5) != v->event.event)
        verify_violation(v->event.report, VERIFY_STRAYS, "booking %lld names event %lld",
                         (ll)past->booking, (ll)db_column_int(stmt, 5));
    check_paid(v, past->booking, past->payment, past->status, db_column_int(stmt, 6),
               db_column_int(stmt, 7));
}

static void on_payment(struct verifier *v, struct db_stmt *stmt)
{
    *vec_push(&v->event.payments) =
        (struct payment_state){.booking = db_column_int(stmt, 0),
                               .payment = db_column_int(stmt, 1),
                               .status = small(db_column_int(stmt, 2)),
                               .amount = db_column_int(stmt, 3),
                               .received = money_bounded(db_column_int(stmt, 4)),
                               .is_wrong = db_column_int(stmt, 5) != 0};
}

static void on_refund(struct verifier *v, struct db_stmt *stmt)
{
    verify_refund(&v->event,
                  &(struct refund_seen){.booking = db_column_int(stmt, 0),
                                        .refund = db_column_int(stmt, 1),
                                        .payment = db_column_int(stmt, 2),
                                        .amount = db_column_int(stmt, 3),
                                        .status = small(db_column_int(stmt, 4))},
                  db_column_int(stmt, 5) != 0);
}

static void on_job(struct verifier *v, struct db_stmt *stmt)
{
    verify_job(&v->event, &(struct stored_job){.booking = db_column_int(stmt, 0),
                                               .job = db_column_int(stmt, 1),
                                               .kind = small(db_column_int(stmt, 2)),
                                               .status = small(db_column_int(stmt, 3)),
                                               .payment = db_column_int(stmt, 4),
                                               .amount = db_column_int(stmt, 5),
                                               .refund = db_column_int(stmt, 6),
                                               .notice = small(db_column_int(stmt, 7))});
}

static void on_intent(struct verifier *v, struct db_stmt *stmt)
{
    verify_violation(v->event.report, VERIFY_PAYMENTS,
                     "booking %lld: its intent is also that of booking %lld",
                     (ll)db_column_int(stmt, 0), (ll)db_column_int(stmt, 1));
}

static void on_webhook(struct verifier *v, struct db_stmt *stmt)
{
    verify_violation(v->event.report, VERIFY_STRAYS,
                     "a webhook about booking %lld, of state %lld: its payment is %sthere",
                     (ll)db_column_int(stmt, 0), (ll)db_column_int(stmt, 1),
                     db_column_int(stmt, 1) ? "" : "not ");
}

static void on_sale(struct verifier *v, struct db_stmt *stmt)
{
    uint32_t index = SEAT_INDEX(db_column_int(stmt, 0));
    int64_t booking = db_column_int(stmt, 1);
    if (index < v->event.n_seats)
        v->event.seats[index].sold = booking;
    if (index >= v->event.n_seats || !booking)
        verify_violation(v->event.report, VERIFY_SALES, "event %lld, seat %u: sold by booking %lld",
                         (ll)v->event.event, index, (ll)booking);
}

static void on_heads(struct verifier *v, struct db_stmt *stmt)
{
    size_t len;
    const uint8_t *heads = db_column_data(stmt, 2, &len);
    verify_heads(&v->event, db_column_int(stmt, 0), db_column_int(stmt, 1), heads, len);
}

/* Entries that a version before schema 8 wrote have no actor. */
static void check_actor(struct event_state *e, struct db_stmt *stmt)
{
    size_t len;
    const char *actor = db_column_data(stmt, LOG_COLUMNS_N, &len);
    verify_count(e, VERIFY_ACTORS);
    if (actor && !actor_is_valid(actor, len))
        verify_violation(e->report, VERIFY_ACTORS, "event %lld, seq %lld: its actor is damaged",
                         (ll)e->event, (ll)log_seats_seq(db_column_int(stmt, 0), 0, 0));
}

/* Statuses of damaged rows become ones that are none, so that they fit where they are kept. */
static void on_log(struct verifier *v, struct db_stmt *stmt)
{
    vec_clear(&v->log.list);
    check_actor(&v->event, stmt);
    if (!log_expand(stmt, &v->log))
        verify_violation(v->event.report, VERIFY_LOG_CHAIN,
                         "event %lld, seq %lld: the entry's places are damaged", (ll)v->event.event,
                         (ll)log_seats_seq(db_column_int(stmt, 0), 0, 0));
    for (size_t i = 0; i < v->log.list.n; i++) {
        struct audit_row *row = &v->log.list.v[i];
        row->from = small(row->from);
        row->to = small(row->to);
        verify_fold(&v->event, row);
    }
}

static void on_seat(struct verifier *v, struct db_stmt *stmt)
{
    verify_seat(&v->event, &(struct stored_seat){.key = db_column_int(stmt, 0),
                                                 .status = small(db_column_int(stmt, 1)),
                                                 .hold = db_column_int(stmt, 2),
                                                 .fence = db_column_int(stmt, 3),
                                                 .channel = small(db_column_int(stmt, 4))});
}

/* ---- one event ---- */

/* Reads holds, entries, sales, money and heads before the log, and seats last: each is compared
 * when it is read. */
static enum hf_status verify_event(struct verifier *v, const struct clock_row *clock,
                                   struct hf_err *err)
{
    int64_t event = clock->event;
    int64_t first_seat = SEAT_KEY(event, 0), last_seat = SEAT_KEY(event, UINT32_MAX);
    int64_t first_hold = HOLD_KEY(event, 0), last_hold = HOLD_KEY(event + 1, 0) - 1;
    struct event_state *e = &v->event;
    e->event = event;
    e->clock = *clock;
    enum hf_status status = count_seats(v, event, err);
    if (status != HF_OK)
        return status;
    e->seats = hf_alloc((e->n_seats + (size_t)1) * sizeof *e->seats);
    const struct {
        enum verify_statement which;
        int64_t first, last;
        row_fn *row;
        void (*end)(struct event_state *e);
    } steps[] = {
        {VS_STATUS, event, 0, on_status, NULL},
        {VS_AREAS, event, 0, on_area, NULL},
        {VS_VENUES, event, 0, on_venue_part, NULL},
        {VS_HOLDS, first_hold, last_hold, on_hold, NULL},
        {VS_WAITS, first_hold, last_hold, on_wait, NULL},
        {VS_BOOKINGS, first_hold, last_hold, on_booking, NULL},
        {VS_PAST, first_hold, last_hold, on_past, NULL},
        {VS_PAYMENTS, first_hold, last_hold, on_payment, NULL},
        {VS_REFUNDS, first_hold, last_hold, on_refund, NULL},
        {VS_JOBS, first_hold, last_hold, on_job, NULL},
        {VS_SALES, first_seat, last_seat, on_sale, NULL},
        {VS_HEADS, first_seat, last_seat, on_heads, NULL},
        {VS_LOG, AUDIT_KEY(event, 0), AUDIT_KEY(event + 1, 0) - 1, on_log, verify_fold_end},
        {VS_SEATS, first_seat, last_seat, on_seat, verify_seats_end},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        status = each(v, steps[i].which, steps[i].first, steps[i].last, steps[i].row, err);
        if (status != HF_OK)
            return status;
        if (steps[i].end)
            steps[i].end(e);
    }
    venue_check_end(&v->venue, event, e->report);
    verify_areas(e);
    verify_holds(e);
    verify_entries(e);
    verify_money(e);
    return HF_OK;
}

static void event_close(struct event_state *e)
{
    free(e->seats);
    for (size_t i = 0; i < e->areas.n; i++)
        vec_close(&e->areas.v[i].blocks);
    vec_close(&e->areas);
    vec_close(&e->heads_seqs);
    vec_close(&e->prices);
    vec_close(&e->holds);
    vec_close(&e->waits);
    vec_close(&e->past);
    vec_close(&e->payments);
    vec_close(&e->refunds);
    vec_close(&e->later_fences);
    *e = (struct event_state){.report = e->report};
}

/* ---- all events ---- */

/* Reports rows that belong to no event. */
static enum hf_status check_strays(struct verifier *v, struct hf_err *err)
{
    static const struct {
        const char *table;
        enum verify_statement count, rows;
    } tables[] = {
        {"areas", VS_COUNT_AREAS, VS_AREAS},
        {"categories", VS_COUNT_CATEGORIES, VS_CATEGORIES},
        {"venues", VS_COUNT_VENUES, VS_VENUES},
        {"holds", VS_COUNT_HOLDS, VS_HOLDS},
        {"waitlist", VS_COUNT_WAITS, VS_WAITS},
        {"bookings", VS_COUNT_BOOKINGS, VS_BOOKINGS},
        {"bookings_past", VS_COUNT_PAST, VS_PAST},
        {"payments", VS_COUNT_PAYMENTS, VS_PAYMENTS},
        {"refunds", VS_COUNT_REFUNDS, VS_REFUNDS},
        {"jobs", VS_COUNT_JOBS, VS_JOBS},
        {"sold_seats", VS_COUNT_SALES, VS_SALES},
        {"log", VS_COUNT_LOG, VS_LOG},
        {"seats", VS_COUNT_SEATS, VS_SEATS},
        {"seat_heads", VS_COUNT_HEADS, VS_HEADS},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        enum hf_status status = each(v, tables[i].count, 0, 0, on_scalar, err);
        if (status != HF_OK)
            return status;
        v->event.report->checks[VERIFY_STRAYS].rows += v->scalar;
        if (v->scalar != v->read[tables[i].rows])
            verify_violation(v->event.report, VERIFY_STRAYS, "%lld of %lld %s belong to no event",
                             (ll)(v->scalar - v->read[tables[i].rows]), (ll)v->scalar,
                             tables[i].table);
    }
    return HF_OK;
}

/* Each webhook is about a payment, unless it is parked. */
static enum hf_status check_webhooks(struct verifier *v, struct hf_err *err)
{
    enum hf_status status = each(v, VS_COUNT_WEBHOOKS, 0, 0, on_scalar, err);
    if (status != HF_OK)
        return status;
    v->event.report->checks[VERIFY_STRAYS].rows += v->scalar;
    return each(v, VS_WEBHOOKS, 0, 0, on_webhook, err);
}

static enum hf_status verify_all(struct verifier *v, struct hf_err *err)
{
    enum hf_status status = each(v, VS_VERSION, 0, 0, on_scalar, err);
    if (status != HF_OK)
        return status;
    if (v->scalar != ledger_migrations_len)
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "the data is of schema version %lld, this program reads %d",
                          (ll)v->scalar, ledger_migrations_len);
    if ((status = each(v, VS_EVENTS, 0, 0, on_event, err)) != HF_OK ||
        (status = each(v, VS_NO_CLOCK, 0, 0, on_no_clock, err)) != HF_OK)
        return status;
    for (size_t i = 0; i < v->clocks.n; i++) {
        v->event.report->events += v->clocks.v[i].event != 0;
        status = verify_event(v, &v->clocks.v[i], err);
        event_close(&v->event);
        if (status != HF_OK)
            return status;
    }
    if ((status = each(v, VS_INTENTS, 0, 0, on_intent, err)) != HF_OK ||
        (status = check_webhooks(v, err)) != HF_OK)
        return status;
    return check_strays(v, err);
}

static void report_init(struct verify_report *report)
{
    static const struct verify_check checks[VERIFY_COUNT] = {
#define VERIFY_CHECK(name, number, text, counted)                                                  \
    [VERIFY_##name] = {.invariant = (number), .what = (text), .unit = (counted)},
        VERIFY_CHECKS(VERIFY_CHECK)
#undef VERIFY_CHECK
    };
    *report = (struct verify_report){0};
    memcpy(report->checks, checks, sizeof checks);
}

/* Called before anything is read: an error about a missing table would say less. */
static enum hf_status check_version(struct db *db, struct hf_err *err)
{
    int64_t version;
    enum hf_status status = db_schema_version(db, &version, err);
    if (status != HF_OK || version == ledger_migrations_len)
        return status;
    if (version == 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "there is no ledger in this database; a holdfastd that is started on it "
                          "makes one");
    return hf_err_set(err, HF_STORE_UNAVAILABLE,
                      "the ledger is of schema version %lld, and this program knows %d%s",
                      (long long)version, ledger_migrations_len,
                      version < ledger_migrations_len
                          ? ": a holdfastd of this version brings it up to date"
                          : "");
}

static void verifier_close(struct verifier *v)
{
    if (v->db)
        v->db->driver->rollback(v->db);
    event_close(&v->event);
    vec_close(&v->clocks);
    free(v->list);
    vec_close(&v->log.list);
    db_close(v->db);
}

enum hf_status ledger_verify(const char *url, const struct clock *clock, struct verify_report *ret,
                             struct hf_err *err)
{
    const struct db_options options = {.clock = clock, .cache_kib = VERIFY_CACHE_KIB};
    struct verify_report *report = hf_alloc(sizeof *report);
    struct verifier v = {.event.report = report};
    enum hf_status status;
    report_init(report);
    if ((status = db_open(url, &options, &v.db, err)) == HF_OK &&
        (status = check_version(v.db, err)) == HF_OK &&
        (status = v.db->driver->begin(v.db, err)) == HF_OK &&
        (status = verify_database(v.db, clock, report, err)) == HF_OK)
        status = verify_all(&v, err);
    if (status == HF_OK)
        *ret = *report;
    else
        status = verify_database_explains(report, status, err);
    verifier_close(&v);
    free(report);
    return status;
}
