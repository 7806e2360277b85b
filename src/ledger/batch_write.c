/* What a batch writes, between ledger_batch_read and the commit: one statement per table, rows in
 * the order of their keys, each with its condition, and the changed rows counted.  So the database
 * checks a second time, after the rules, that nothing has happened since the batch read its events:
 * clock rows change only from the seq and fence that were read (I1, I5, I6), no fence is granted
 * twice and no two batches begin at the same seq (the keys of holds and log), and no seat is sold
 * twice (sold_seats).  Called by the worker. */
#include "ledger/log.h"
#include "ledger/number_list.h"

/* The put_ functions append one table's rows to l->args. */

static void put_clocks(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->clocks.n; i++) {
        const struct clock_write *w = &b->clocks.v[i];
        ledger_arg_int(l, w->after.event);
        ledger_arg_int(l, w->before.seq);
        ledger_arg_int(l, w->before.fence);
        ledger_arg_int(l, w->after.seq);
        ledger_arg_int(l, w->after.fence);
        ledger_arg_int(l, w->after.now);
    }
}

/* The status in the seat's row before the batch, and after it; SEAT_AVAILABLE: there is none, or
 * the batch leaves the row alone.  A row that is there before and after is replaced. */
static enum seat_status row_before(const struct seat_write *w)
{
    return w->row_changes ? seat_row_status(w->from, w->channel_before) : SEAT_AVAILABLE;
}
static enum seat_status row_after(const struct seat_write *w)
{
    return w->row_changes ? seat_row_status(w->to, w->channel) : SEAT_AVAILABLE;
}

static size_t count_rows(const struct ledger_batch *b, bool before)
{
    size_t n = 0;
    for (size_t i = 0; i < b->seats.n; i++)
        n += (before ? row_before(&b->seats.v[i]) : row_after(&b->seats.v[i])) != SEAT_AVAILABLE;
    return n;
}

static void put_seats_before(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (row_before(w) == SEAT_AVAILABLE)
            continue;
        ledger_arg_int(l, w->seat);
        ledger_arg_int(l, row_before(w));
        ledger_arg_int(l, w->from == SEAT_BOOKED ? w->hold_before : 0);
    }
}

static void put_seats_after(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (row_after(w) == SEAT_AVAILABLE)
            continue;
        ledger_arg_int(l, w->seat);
        ledger_arg_int(l, row_after(w));
        ledger_arg_int(l, w->to == SEAT_BOOKED ? w->hold : 0);
        ledger_arg_int(l, w->row_fence);
        ledger_arg_int(l, w->channel);
    }
}

static void put_heads(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->heads.n; i++) {
        const struct heads_write *w = &b->heads.v[i];
        ledger_arg_int(l, SEAT_KEY(w->event, w->first));
        ledger_arg_int(l, w->seq);
        ledger_arg(l, db_bytes(w->n ? w->heads : (const uint8_t *)"", w->n * HEAD_SIZE));
    }
}

static void put_events(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        ledger_arg_int(l, b->events.v[i].event);
        ledger_arg_int(l, b->events.v[i].from);
        ledger_arg_int(l, b->events.v[i].to);
    }
}

static size_t count_terms(const struct ledger_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->events.n; i++)
        n += b->events.v[i].terms != NULL;
    return n;
}

static void put_terms(struct ledger *l, const struct ledger_batch *b)
{
    size_t room = 0; /* the arguments point into the buffer, so it must not move */
    for (size_t i = 0; i < b->events.n; i++)
        room += b->events.v[i].terms ? terms_text_max(b->events.v[i].terms) : 0;
    l->text.len = 0;
    buf_reserve(&l->text, room);
    for (size_t i = 0; i < b->events.n; i++)
        if (b->events.v[i].terms) {
            ledger_arg_int(l, b->events.v[i].event);
            ledger_terms_args(l, b->events.v[i].terms);
        }
}

/* Where a price is stored. */
enum price_table { OF_SECTIONS, OF_CATEGORIES, OF_AREAS };

/* The range of an event's prices that belongs into a table; empty if its terms do not change. */
static void price_range(const struct event_write *w, enum price_table table, size_t *ret_first,
                        size_t *ret_end)
{
    *ret_first = table == OF_AREAS ? w->n_categories : 0;
    *ret_end = *ret_first;
    if (w->terms && table == OF_AREAS)
        *ret_end = w->terms->prices.n;
    else if (w->terms && w->by_section == (table == OF_SECTIONS))
        *ret_end = w->n_categories;
}

/* Prices are written for every category and area of an event whose terms change. */
static size_t count_prices(const struct ledger_batch *b, enum price_table table)
{
    size_t n = 0, first, end;
    for (size_t i = 0; i < b->events.n; i++) {
        price_range(&b->events.v[i], table, &first, &end);
        n += end - first;
    }
    return n;
}

static void put_prices(struct ledger *l, const struct ledger_batch *b, enum price_table table)
{
    size_t first, end;
    for (size_t i = 0; i < b->events.n; i++) {
        const struct event_write *w = &b->events.v[i];
        price_range(w, table, &first, &end);
        for (size_t p = first; p < end; p++) {
            ledger_arg_int(l, w->event);
            ledger_arg_int(l, (int64_t)(p - first));
            ledger_arg_int(l, w->terms->prices.v[p]);
        }
    }
}

static void put_section_prices(struct ledger *l, const struct ledger_batch *b)
{
    put_prices(l, b, OF_SECTIONS);
}
static void put_category_prices(struct ledger *l, const struct ledger_batch *b)
{
    put_prices(l, b, OF_CATEGORIES);
}
static void put_area_prices(struct ledger *l, const struct ledger_batch *b)
{
    put_prices(l, b, OF_AREAS);
}

/* Room was reserved by the caller. */
static struct db_value blocks_arg(struct ledger *l, const struct area_blocks *blocks)
{
    size_t start = l->text.len;
    block_list_write(blocks, &l->text);
    return db_text(l->text.data + start, l->text.len - start);
}

static void put_areas(struct ledger *l, const struct ledger_batch *b)
{
    size_t room = 0;
    for (size_t i = 0; i < b->areas.n; i++)
        room += BLOCK_LIST_MAX(b->areas.v[i].blocks_before.list.n) +
                BLOCK_LIST_MAX(b->areas.v[i].blocks->list.n);
    l->text.len = 0;
    buf_reserve(&l->text, room);
    for (size_t i = 0; i < b->areas.n; i++) {
        const struct area_write *w = &b->areas.v[i];
        ledger_arg_int(l, w->event);
        ledger_arg_int(l, w->area);
        ledger_arg_int(l, w->held_before);
        ledger_arg_int(l, w->booked_before);
        ledger_arg(l, blocks_arg(l, &w->blocks_before));
        ledger_arg_int(l, w->held);
        ledger_arg_int(l, w->booked);
        ledger_arg(l, blocks_arg(l, w->blocks));
    }
}

/* Writes a list behind l->text, where the caller has reserved room: the text must not move once
 * args point into it. */
static struct db_value numbers_arg(struct ledger *l, const uint32_t *numbers, uint32_t n)
{
    size_t start = l->text.len;
    number_list_write(numbers, n, &l->text);
    return db_text(l->text.data + start, l->text.len - start);
}

static struct db_value areas_arg(struct ledger *l, const struct area_claim *areas, uint32_t n)
{
    return n ? numbers_arg(l, (const uint32_t *)areas, n * 2) : db_text(NULL, 0);
}

static struct db_value prices_arg(struct ledger *l, const struct price_run *runs, uint32_t n)
{
    size_t start = l->text.len;
    if (n == 1 && !runs->type) /* it follows from the amount */
        return db_text(NULL, 0);
    price_list_write(runs, n, &l->text);
    return db_text(l->text.data + start, l->text.len - start);
}

/* A number below EVENT_SEATS_MAX and its comma take at most 8 bytes, a list's brackets 2. */
static size_t lists_room(uint32_t n_seats, uint32_t n_areas, uint32_t n_prices)
{
    return ((size_t)n_seats + (size_t)n_areas * 2) * 8 + 4 + PRICE_LIST_MAX(n_prices);
}

static void reserve_lists(struct ledger *l, const struct ledger_batch *b)
{
    size_t room = 0;
    for (size_t i = 0; i < b->holds_new.n; i++) {
        const struct hold_row *h = &b->holds_new.v[i];
        room += lists_room(h->n_seats, h->n_areas, h->n_prices);
    }
    l->text.len = 0;
    buf_reserve(&l->text, room);
}

#define BIND_SEATS(field) ledger_arg(l, numbers_arg(l, row->field, row->n_##field));
#define BIND_AREAS(field) ledger_arg(l, areas_arg(l, row->field, row->n_##field));
#define BIND_PRICES(field) ledger_arg(l, prices_arg(l, row->field, row->n_##field));

static size_t count_offers(const struct ledger_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->holds_new.n; i++)
        n += b->holds_new.v[i].wait != 0;
    return n;
}

static void put_holds_new(struct ledger *l, const struct ledger_batch *b)
{
    reserve_lists(l, b);
    for (size_t i = 0; i < b->holds_new.n; i++) {
        const struct hold_row *row = &b->holds_new.v[i];
        if (!row->wait)
            BIND(HOLD_COLUMNS);
    }
}

/* New holds that get owner and metadata from their entry of the waiting list. */
static void put_offers(struct ledger *l, const struct ledger_batch *b)
{
    reserve_lists(l, b);
    for (size_t i = 0; i < b->holds_new.n; i++) {
        const struct hold_row *row = &b->holds_new.v[i];
        if (!row->wait)
            continue;
        BIND(HOLD_PLAIN);
        ledger_arg_int(l, row->wait);
    }
}

static void put_places(struct ledger *l, const struct ledger_batch *b)
{
    size_t room = 0;
    for (size_t i = 0; i < b->places.n; i++) {
        const struct hold_places_write *w = &b->places.v[i];
        room += lists_room(w->n_seats, w->n_areas, w->n_prices);
    }
    l->text.len = 0;
    buf_reserve(&l->text, room);
    for (size_t i = 0; i < b->places.n; i++) {
        const struct hold_places_write *w = &b->places.v[i];
        ledger_arg_int(l, w->hold);
        ledger_arg_int(l, w->fence);
        ledger_arg_int(l, w->amount);
        ledger_arg(l, numbers_arg(l, w->seats, w->n_seats));
        ledger_arg(l, areas_arg(l, w->areas, w->n_areas));
        ledger_arg(l, prices_arg(l, w->prices, w->n_prices));
    }
}

static void put_merges(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->merges.n; i++) {
        ledger_arg_int(l, b->merges.v[i].hold);
        ledger_arg_int(l, b->merges.v[i].carrier_before);
        ledger_arg_int(l, b->merges.v[i].carrier);
    }
}

static void put_holds(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds.n; i++) {
        const struct hold_write *w = &b->holds.v[i];
        ledger_arg_int(l, w->hold);
        ledger_arg_int(l, w->from);
        ledger_arg_int(l, w->fence_before);
        ledger_arg_int(l, w->to);
        ledger_arg_int(l, w->fence);
        ledger_arg_int(l, w->expires_at);
        ledger_arg_int(l, w->last_seq);
    }
}

static void put_bookings_new(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings_new.n; i++) {
        const struct booking_row *row = &b->bookings_new.v[i];
        BIND(BOOKING_COLUMNS);
    }
}

static void put_bookings_past(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings_past.n; i++)
        ledger_arg_int(l, b->bookings_past.v[i]);
}

static void put_bookings(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings.n; i++) {
        const struct booking_write *w = &b->bookings.v[i];
        ledger_arg_int(l, w->booking);
        ledger_arg_int(l, w->from);
        ledger_arg_int(l, w->to);
        ledger_arg_int(l, w->cancelled_at);
        ledger_arg(l, db_text(w->reason, w->reason_len));
        ledger_arg_int(l, w->fence);
    }
}

static void put_sales(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->sales.n; i++) {
        ledger_arg_int(l, b->sales.v[i].seat);
        ledger_arg_int(l, b->sales.v[i].booking);
    }
}

static void put_sales_undone(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->sales_undone.n; i++) {
        ledger_arg_int(l, b->sales_undone.v[i].seat);
        ledger_arg_int(l, b->sales_undone.v[i].booking);
    }
}

static size_t count_entries(const struct ledger_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->audit.n; i += log_entry_len(&b->audit.v[i], b->audit.n - i))
        n++;
    return n;
}

static void put_log(struct ledger *l, const struct ledger_batch *b)
{
    l->text.len = 0;
    buf_reserve(&l->text, b->audit.n * log_text_max(1)); /* more than enough, without counting */
    for (size_t i = 0, len; i < b->audit.n; i += len) {
        len = log_entry_len(&b->audit.v[i], b->audit.n - i);
        log_put(l, &b->audit.v[i], len);
    }
}

static void put_keys(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->keys.n; i++) {
        const struct key_row *k = &b->keys.v[i];
        ledger_arg(l, db_bytes(k->hash, KEY_HASH_SIZE));
        ledger_arg(l, db_bytes(k->request, KEY_HASH_SIZE));
        ledger_arg_int(l, k->answer_code);
        ledger_arg(l, db_text(k->answer, k->answer_len));
        ledger_arg_int(l, k->created_at);
        ledger_arg_int(l, k->hold);
    }
}

struct table_write {
    const char *table;
    enum statement statement;
    void (*put)(struct ledger *l, const struct ledger_batch *b);
    size_t n; /* rows */
};

static enum hf_status write_table(struct ledger *l, const struct ledger_batch *b,
                                  const struct table_write *w, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, w->statement, &stmt, err);
    if (status != HF_OK)
        return status;
    vec_clear(&l->args);
    w->put(l, b);
    status = stmt->driver->expect_many(stmt, w->table, l->args.v, w->n, err);
    vec_clear(&l->args);
    return status;
}

enum hf_status ledger_write(struct ledger *l, const struct ledger_batch *b, struct hf_err *err)
{
    const struct table_write writes[] = {
        {"event_clock", ST_CLOCK_WRITE, put_clocks, b->clocks.n},
        {"idempotency", ST_KEY_INSERT, put_keys, b->keys.n},
        {"events", ST_EVENT_WRITE, put_events, b->events.n},
        {"events", ST_TERMS_WRITE, put_terms, count_terms(b)},
        {"sections", ST_SECTION_PRICE, put_section_prices, count_prices(b, OF_SECTIONS)},
        {"categories", ST_CATEGORY_PRICE, put_category_prices, count_prices(b, OF_CATEGORIES)},
        {"areas", ST_AREA_PRICE, put_area_prices, count_prices(b, OF_AREAS)},
        {"seats", ST_SEAT_DELETE, put_seats_before, count_rows(b, true)},
        {"seats", ST_SEAT_INSERT, put_seats_after, count_rows(b, false)},
        {"areas", ST_AREA_WRITE, put_areas, b->areas.n},
        {"waitlist", ST_WAIT_INSERT, put_waits_new, b->waits_new.n},
        {"holds", ST_HOLD_INSERT, put_holds_new, b->holds_new.n - count_offers(b)},
        {"holds", ST_HOLD_OFFER, put_offers, count_offers(b)},
        {"holds", ST_HOLD_WRITE, put_holds, b->holds.n},
        {"holds", ST_HOLD_PLACES, put_places, b->places.n},
        {"holds", ST_HOLD_MERGE, put_merges, b->merges.n},
        {"waitlist", ST_WAIT_WRITE, put_waits, b->waits.n},
        {"bookings_past", ST_BOOKING_PAST, put_bookings_past, b->bookings_past.n},
        {"bookings", ST_BOOKING_DELETE, put_bookings_past, b->bookings_past.n},
        {"bookings", ST_BOOKING_INSERT, put_bookings_new, b->bookings_new.n},
        {"bookings", ST_BOOKING_WRITE, put_bookings, b->bookings.n},
        {"sold_seats", ST_SALE_DELETE, put_sales_undone, b->sales_undone.n},
        {"sold_seats", ST_SALE_INSERT, put_sales, b->sales.n},
        {"payments", ST_PAYMENT_INSERT, put_payments_new, b->payments_new.n},
        {"payments", ST_PAYMENT_WRITE, put_payments, b->payments.n},
        {"refunds", ST_REFUND_INSERT, put_refunds_new, b->refunds_new.n},
        {"refunds", ST_REFUND_WRITE, put_refunds, count_refunds(b, false)},
        {"refunds", ST_REFUND_DELETE, put_refunds_dropped, count_refunds(b, true)},
        {"jobs", ST_JOB_PUT, put_jobs_new, b->jobs_put.n},
        {"jobs", ST_JOB_WRITE, put_jobs, count_jobs(b, false)},
        {"jobs", ST_JOB_DELETE, put_jobs_deleted, count_jobs(b, true)},
        {"payment_events", ST_WEBHOOK_INSERT, put_webhooks, b->webhooks.n},
        {"log", ST_LOG_INSERT, put_log, count_entries(b)},
        {"seat_heads", ST_HEADS_WRITE, put_heads, b->heads.n},
    };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        enum hf_status status = writes[i].n ? write_table(l, b, &writes[i], err) : HF_OK;
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}
