/* Opening, statements, and what a batch writes.  Each write carries its condition and is counted;
 * keeps I1, I5 and I6 a second time, after decide. */
#include "ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/statements.h"

static const char *const statement_sql[ST_COUNT] = {
#define STATEMENT_SQL(name, sql) [ST_##name] = sql,
    LEDGER_STATEMENTS(STATEMENT_SQL)
#undef STATEMENT_SQL
};

enum hf_status ledger_stmt(struct ledger *l, enum statement which, struct db_stmt **ret_stmt,
                           struct hf_err *err)
{
    enum hf_status status = HF_OK;
    if (!l->stmts[which])
        status = l->db->driver->prepare(l->db, statement_sql[which], &l->stmts[which], err);
    *ret_stmt = l->stmts[which];
    return status;
}

enum hf_status ledger_exec(struct ledger *l, enum statement which, const struct db_value *args,
                           int64_t *ret_changes, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    return status == HF_OK ? db_exec(stmt, args, ret_changes, err) : status;
}

enum hf_status ledger_query(struct ledger *l, enum statement which, const struct db_value *args,
                            struct db_stmt **ret_stmt, struct hf_err *err)
{
    enum hf_status status = ledger_stmt(l, which, ret_stmt, err);
    return status == HF_OK ? db_query(*ret_stmt, args, err) : status;
}

enum hf_status ledger_exec_args(struct ledger *l, enum statement which, size_t n,
                                int64_t *ret_changes, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    if (status == HF_OK)
        status = stmt->driver->exec_many(stmt, l->args.v, n, ret_changes, err);
    vec_clear(&l->args);
    return status;
}

/* The largest single integer a query answers. */
static enum hf_status scalar(struct ledger *l, enum statement which, int64_t *ret,
                             struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_query(l, which, NULL, &stmt, err);
    if (status != HF_OK)
        return status;
    if (db_step(stmt, err) != DB_ROW)
        return HF_LEDGER_UNAVAILABLE;
    *ret = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return HF_OK;
}

enum hf_status ledger_open(const char *url, const struct db_options *options, struct ledger **ret,
                           struct hf_err *err)
{
    struct ledger *l = hf_alloc(sizeof *l);
    int64_t newest = 0;
    enum hf_status status = db_open(url, options, &l->db, err);
    if (status == HF_OK && options->writer)
        status = db_migrate(l->db, ledger_migrations, ledger_migrations_len, err);
    if (status == HF_OK)
        status = scalar(l, ST_CLOCK_MAX, &newest, err);
    if (status != HF_OK) {
        ledger_close(l);
        return status;
    }
    l->db->driver->now_floor(l->db, newest);
    *ret = l;
    return HF_OK;
}

void ledger_close(struct ledger *l)
{
    if (!l)
        return;
    db_close(l->db);
    vec_close(&l->args);
    for (int i = 0; i < LEDGER_READS; i++)
        vec_close(&l->reads[i]);
    buf_close(&l->text);
    free(l);
}

/* ---- writing: a function a table, each leaving its rows in l->args ---- */

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

/* How many of the seats were available before the batch. */
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

/* The text must not move once args point into it, so the caller reserved room. */
static struct db_value numbers_arg(struct ledger *l, const uint32_t *numbers, uint32_t n)
{
    size_t start = l->text.len;
    seats_text(numbers, n, &l->text);
    return db_text(l->text.data + start, l->text.len - start);
}

static void put_holds_new(struct ledger *l, const struct ledger_batch *b)
{
    size_t room = 0;
    for (size_t i = 0; i < b->holds_new.n; i++)
        room += ((size_t)b->holds_new.v[i].n_seats + b->holds_new.v[i].n_areas * 2) * 8 + 4;
    l->text.len = 0;
    buf_reserve(&l->text, room);
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

enum hf_status ledger_write(struct ledger *l, const struct ledger_batch *b, struct hf_err *err)
{
    size_t n_taken = count_taken(b);
    const struct {
        const char *table;
        enum statement statement;
        void (*put)(struct ledger *l, const struct ledger_batch *b);
        size_t n;
    } parts[] = {
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
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct db_stmt *stmt;
        if (!parts[i].n)
            continue;
        vec_clear(&l->args);
        parts[i].put(l, b);
        enum hf_status status = ledger_stmt(l, parts[i].statement, &stmt, err);
        if (status == HF_OK)
            status = stmt->driver->expect_many(stmt, parts[i].table, l->args.v, parts[i].n, err);
        vec_clear(&l->args);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}
