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

/* Seats that lose their row, and those that get one.  A seat that has a row before and after the
 * batch changed in between, and both happens to it. */
static size_t count_rows(const struct ledger_batch *b, bool before)
{
    size_t n = 0;
    for (size_t i = 0; i < b->seats.n; i++)
        n += seat_has_row(before ? b->seats.v[i].from : b->seats.v[i].to);
    return n;
}

static void put_seats_before(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (!seat_has_row(w->from))
            continue;
        ledger_arg_int(l, w->seat);
        ledger_arg_int(l, w->from);
        ledger_arg_int(l, w->hold_before);
    }
}

static void put_seats_after(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (!seat_has_row(w->to))
            continue;
        ledger_arg_int(l, w->seat);
        ledger_arg_int(l, w->to);
        ledger_arg_int(l, w->hold);
        ledger_arg_int(l, w->fence);
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

static void put_areas(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->areas.n; i++) {
        const struct area_write *w = &b->areas.v[i];
        ledger_arg_int(l, w->event);
        ledger_arg_int(l, w->area);
        ledger_arg_int(l, w->held_before);
        ledger_arg_int(l, w->booked_before);
        ledger_arg_int(l, w->held);
        ledger_arg_int(l, w->booked);
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

/* A number below EVENT_SEATS_MAX and its comma take at most 8 bytes, a list's brackets 2. */
static void reserve_lists(struct ledger *l, const struct ledger_batch *b)
{
    size_t room = 0;
    for (size_t i = 0; i < b->holds_new.n; i++)
        room += ((size_t)b->holds_new.v[i].n_seats + b->holds_new.v[i].n_areas * 2) * 8 + 4;
    l->text.len = 0;
    buf_reserve(&l->text, room);
}

static void put_holds_new(struct ledger *l, const struct ledger_batch *b)
{
    reserve_lists(l, b);
    for (size_t i = 0; i < b->holds_new.n; i++) {
        const struct hold_row *h = &b->holds_new.v[i];
        ledger_arg_int(l, h->id.key);
        ledger_arg(l, db_bytes(h->id.secret, ID_SECRET_SIZE));
        ledger_arg_int(l, h->event);
        ledger_arg_int(l, h->status);
        ledger_arg_int(l, h->fence);
        ledger_arg_int(l, h->amount);
        ledger_arg(l, db_text(h->owner, h->owner_len));
        ledger_arg(l, db_text(h->metadata, h->metadata_len));
        ledger_arg(l, numbers_arg(l, h->seats, h->n_seats));
        ledger_arg(l, h->n_areas ? numbers_arg(l, (const uint32_t *)h->areas, h->n_areas * 2)
                                 : db_text(NULL, 0));
        ledger_arg_int(l, h->created_at);
        ledger_arg_int(l, h->expires_at);
        ledger_arg_int(l, h->max_expires_at);
        ledger_arg_int(l, (int64_t)h->client);
        ledger_arg_int(l, h->last_seq);
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

static void put_bookings(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings.n; i++) {
        const struct booking_row *k = &b->bookings.v[i];
        ledger_arg_int(l, k->id.key);
        ledger_arg(l, db_bytes(k->id.secret, ID_SECRET_SIZE));
        ledger_arg_int(l, k->event);
        ledger_arg_int(l, k->status);
        ledger_arg_int(l, k->fence);
        ledger_arg_int(l, k->amount);
        ledger_arg(l, db_text(k->reference, k->reference_len));
        ledger_arg_int(l, k->created_at);
    }
}

static void put_sales(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->sales.n; i++) {
        ledger_arg_int(l, b->sales.v[i].seat);
        ledger_arg_int(l, b->sales.v[i].booking);
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
    buf_reserve(&l->text, count_entries(b) * log_text_max(0) + log_text_max(b->audit.n));
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
        {"seats", ST_SEAT_DELETE, put_seats_before, count_rows(b, true)},
        {"seats", ST_SEAT_INSERT, put_seats_after, count_rows(b, false)},
        {"areas", ST_AREA_WRITE, put_areas, b->areas.n},
        {"holds", ST_HOLD_INSERT, put_holds_new, b->holds_new.n},
        {"holds", ST_HOLD_WRITE, put_holds, b->holds.n},
        {"bookings", ST_BOOKING_INSERT, put_bookings, b->bookings.n},
        {"sold_seats", ST_SALE_INSERT, put_sales, b->sales.n},
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
