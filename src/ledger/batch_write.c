/* What a batch writes, between ledger_batch_read and the commit: one statement per table, each row
 * with its condition, and the changed rows counted.  So the database checks I1, I5 and I6 a second
 * time, after the rules.  Called by the worker. */
#include "ledger/internal.h"
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

/* Counts the seats that were available before the batch. */
static size_t count_taken(const struct ledger_batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->seats.n; i++)
        n += b->seats.v[i].from == SEAT_AVAILABLE;
    return n;
}

static void put_seats_taken(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (w->from != SEAT_AVAILABLE)
            continue;
        ledger_arg_int(l, w->seat);
        ledger_arg_int(l, w->to);
        ledger_arg_int(l, w->hold);
        ledger_arg_int(l, w->fence);
        ledger_arg_int(l, w->expires_at);
        ledger_arg_int(l, 1); /* the version of a new row */
    }
}

static void put_seats(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (w->from == SEAT_AVAILABLE)
            continue;
        ledger_arg_int(l, w->seat);
        ledger_arg_int(l, w->from);
        ledger_arg_int(l, w->hold_before);
        ledger_arg_int(l, w->to);
        ledger_arg_int(l, w->hold);
        ledger_arg_int(l, w->fence);
        ledger_arg_int(l, w->expires_at);
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

static void put_audit(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->audit.n; i++) {
        const struct audit_row *a = &b->audit.v[i];
        ledger_arg_int(l, AUDIT_KEY(a->event, a->seq));
        ledger_arg_int(l, a->event);
        ledger_arg_int(l, a->seq);
        ledger_arg_int(l, a->at);
        ledger_arg_int(l, a->object);
        ledger_arg(l, a->item < 0 ? db_text(NULL, 0) : db_int(a->item));
        ledger_arg_int(l, a->quantity);
        ledger_arg_int(l, a->from);
        ledger_arg_int(l, a->to);
        ledger_arg_int(l, a->hold);
        ledger_arg_int(l, a->booking);
        ledger_arg_int(l, a->fence);
        ledger_arg_int(l, a->until);
        ledger_arg_int(l, a->cause);
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
    size_t n_taken = count_taken(b);
    const struct table_write writes[] = {
        {"event_clock", ST_CLOCK_WRITE, put_clocks, b->clocks.n},
        {"idempotency", ST_KEY_INSERT, put_keys, b->keys.n},
        {"events", ST_EVENT_WRITE, put_events, b->events.n},
        {"seats", ST_SEAT_TAKE, put_seats_taken, n_taken},
        {"seats", ST_SEAT_WRITE, put_seats, b->seats.n - n_taken},
        {"areas", ST_AREA_WRITE, put_areas, b->areas.n},
        {"holds", ST_HOLD_INSERT, put_holds_new, b->holds_new.n},
        {"holds", ST_HOLD_WRITE, put_holds, b->holds.n},
        {"bookings", ST_BOOKING_INSERT, put_bookings, b->bookings.n},
        {"sold_seats", ST_SALE_INSERT, put_sales, b->sales.n},
        {"audit", ST_AUDIT_INSERT, put_audit, b->audit.n},
    };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        enum hf_status status = writes[i].n ? write_table(l, b, &writes[i], err) : HF_OK;
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}
