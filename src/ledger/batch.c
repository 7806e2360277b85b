/* The batch transaction around its writes: begin, read under the locks, commit, and what to do when
 * a commit's answer was lost.  Reads are started together and then stepped through, so that a
 * server in a network is asked once (see db.h).  Called by the worker. */
#include <stdlib.h>
#include <string.h>

#include "ledger/statements.h"

bool ledger_has_others(const struct ledger *l) { return l->db->driver->many_writers; }

enum hf_status ledger_begin(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->begin(l->db, err);
}

enum hf_status ledger_commit(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->commit(l->db, err);
}

void ledger_rollback(struct ledger *l) { l->db->driver->rollback(l->db); }

int64_t ledger_exchanges(const struct ledger *l) { return l->db->driver->exchanges(l->db); }

enum hf_status ledger_now(struct ledger *l, int64_t *ret_now, struct hf_err *err)
{
    return l->db->driver->now_ms(l->db, ret_now, err);
}

enum hf_status ledger_maintain(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->maintain(l->db, err);
}

enum hf_status ledger_warnings(struct ledger *l, struct buf *ret_lines, struct hf_err *err)
{
    return l->db->driver->warnings(l->db, ret_lines, err);
}

enum hf_status ledger_notify(struct ledger *l, const char *topic, const char *text,
                             struct hf_err *err)
{
    return l->db->driver->notify(l->db, topic, text, err);
}

enum hf_status ledger_listen(struct ledger *l, const char *topic, int wake_fd, int64_t timeout_ms,
                             struct buf *ret_lines, struct hf_err *err)
{
    return l->db->driver->listen(l->db, topic, wake_fd, timeout_ms, ret_lines, err);
}

enum hf_status ledger_alone(struct ledger *l, int64_t number, bool *ret_got, struct hf_err *err)
{
    return l->db->driver->alone(l->db, number, ret_got, err);
}

enum hf_status ledger_leave(struct ledger *l, struct hf_err *err)
{
    return l->db->driver->leave(l->db, err);
}

/* ---- reads under way together ---- */

enum part {
    PART_CLOCKS,
    PART_NOW,
    PART_AUDIT,
    PART_HOLDS_SINCE,
    PART_KEYS,
    PART_HOLDS,
    PART_BOOKINGS,
    PARTS
};
_Static_assert(PARTS <= LEDGER_READS, "each part has its own arguments");

/* A statement that was started; NULL: there is nothing to read. */
struct reads {
    struct db_stmt *stmts[PARTS];
};

static void arg(struct ledger *l, enum part part, struct db_value value)
{
    *vec_push(&l->reads[part]) = value;
}

static enum hf_status start(struct ledger *l, enum statement which, enum part part, size_t n,
                            struct db_stmt **ret, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    if (status == HF_OK)
        status = stmt->driver->query_many(stmt, l->reads[part].v, n, err);
    if (status == HF_OK)
        *ret = stmt;
    return status;
}

static enum hf_status failed(const struct hf_err *err)
{
    return err && err->code == HF_LEDGER_CONFLICT ? HF_LEDGER_CONFLICT : HF_LEDGER_UNAVAILABLE;
}

static enum hf_status start_clocks(struct ledger *l, enum statement which,
                                   const struct batch_read *r, struct reads *ret,
                                   struct hf_err *err)
{
    for (size_t i = 0; i < r->clocks.n; i++)
        arg(l, PART_CLOCKS, db_int(r->clocks.v[i].event));
    return r->clocks.n ? start(l, which, PART_CLOCKS, r->clocks.n, &ret->stmts[PART_CLOCKS], err)
                       : HF_OK;
}

/* Keys of an event's log and holds follow one another, so what came since is a range. */
static enum hf_status start_since(struct ledger *l, const struct batch_read *r, struct reads *ret,
                                  struct hf_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < r->clocks.n; i++) {
        const struct clock_row *c = &r->clocks.v[i];
        if (c->event == 0)
            continue; /* the catalogue has no log */
        arg(l, PART_AUDIT, db_int(AUDIT_KEY(c->event, c->seq)));
        arg(l, PART_AUDIT, db_int(AUDIT_KEY(c->event, c->seq + LEDGER_SINCE_MAX)));
        arg(l, PART_HOLDS_SINCE, db_int(HOLD_KEY(c->event, c->fence)));
        arg(l, PART_HOLDS_SINCE, db_int(HOLD_KEY(c->event, c->fence + LEDGER_SINCE_MAX)));
        n++;
    }
    if (!n)
        return HF_OK;
    enum hf_status status = start(l, ST_AUDIT_SINCE, PART_AUDIT, n, &ret->stmts[PART_AUDIT], err);
    if (status == HF_OK)
        status = start(l, ST_HOLDS_SINCE, PART_HOLDS_SINCE, n, &ret->stmts[PART_HOLDS_SINCE], err);
    return status;
}

static enum hf_status start_wanted(struct ledger *l, const struct batch_read *r, struct reads *ret,
                                   struct hf_err *err)
{
    size_t n_bookings = 0;
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < r->keys.n; i++) {
        arg(l, PART_KEYS, db_int((int64_t)i));
        arg(l, PART_KEYS, db_bytes(r->keys.v[i].hash, KEY_HASH_SIZE));
    }
    for (size_t i = 0; i < r->holds.n; i++) {
        arg(l, PART_HOLDS, db_int((int64_t)i));
        arg(l, PART_HOLDS, db_int(r->holds.v[i].hold));
        if (!r->holds.v[i].ret_booking)
            continue;
        arg(l, PART_BOOKINGS, db_int((int64_t)i));
        arg(l, PART_BOOKINGS, db_int(r->holds.v[i].hold));
        n_bookings++;
    }
    if (r->keys.n)
        status = start(l, ST_KEY_READ, PART_KEYS, r->keys.n, &ret->stmts[PART_KEYS], err);
    if (status == HF_OK && r->holds.n)
        status = start(l, ST_HOLD_READ, PART_HOLDS, r->holds.n, &ret->stmts[PART_HOLDS], err);
    if (status == HF_OK && n_bookings)
        status =
            start(l, ST_BOOKING_READ, PART_BOOKINGS, n_bookings, &ret->stmts[PART_BOOKINGS], err);
    return status;
}

static enum hf_status collect_clocks(struct db_stmt *stmt, struct clock_row *rows, size_t n,
                                     struct hf_err *err)
{
    size_t found = 0;
    enum db_step step = DB_DONE;
    while (stmt && (step = db_step(stmt, err)) == DB_ROW) {
        int64_t event = db_column_int(stmt, 0);
        for (size_t i = found; i < n + found; i++) { /* usually they come in order */
            struct clock_row *row = &rows[i % n];
            if (row->event != event)
                continue;
            row->seq = db_column_int(stmt, 1);
            row->fence = db_column_int(stmt, 2);
            row->now = db_column_int(stmt, 3);
            found++;
            break;
        }
    }
    if (step == DB_FAILED)
        return failed(err);
    return found == n
               ? HF_OK
               : hf_err_set(err, HF_INTERNAL, "%zu of %zu clock rows are missing", n - found, n);
}

static enum hf_status collect_now(struct db_stmt *stmt, int64_t *ret_now, struct hf_err *err)
{
    if (db_step(stmt, err) != DB_ROW)
        return failed(err);
    *ret_now = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return HF_OK;
}

static int audit_order(const void *a, const void *b)
{
    const struct audit_row *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
                                : (x->seq > y->seq) - (x->seq < y->seq);
}

static int hold_order(const void *a, const void *b)
{
    const struct hold_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

static enum hf_status collect_since(const struct reads *reads, struct batch_read *r,
                                    struct hf_err *err)
{
    struct db_stmt *stmt = reads->stmts[PART_AUDIT];
    enum db_step step = DB_DONE;
    enum hf_status status = HF_OK;
    while (stmt && (step = db_step(stmt, err)) == DB_ROW)
        audit_from_row(stmt, db_column_int(stmt, 12), vec_push(&r->since.audit));
    if (step == DB_FAILED)
        return failed(err);
    if (r->since.audit.n > 1)
        qsort(r->since.audit.v, r->since.audit.n, sizeof *r->since.audit.v, audit_order);
    stmt = reads->stmts[PART_HOLDS_SINCE];
    while (stmt && status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        status = hold_from_row(stmt, vec_push(&r->since.holds), err);
    if (r->since.holds.n > 1)
        qsort(r->since.holds.v, r->since.holds.n, sizeof *r->since.holds.v, hold_order);
    return status == HF_OK && step == DB_FAILED ? failed(err) : status;
}

static enum hf_status collect_wanted(const struct reads *reads, const struct batch_read *r,
                                     struct hf_err *err)
{
    struct db_stmt *stmt = reads->stmts[PART_KEYS];
    enum db_step step = DB_DONE;
    enum hf_status status = HF_OK;
    while (stmt && (step = db_step(stmt, err)) == DB_ROW) {
        const struct key_wanted *wanted = &r->keys.v[db_column_int(stmt, 0)];
        if (db_column_int(stmt, 4) > r->now - KEY_KEPT_MS)
            key_from_row(stmt, wanted->hash, wanted->ret);
    }
    stmt = step == DB_FAILED ? NULL : reads->stmts[PART_HOLDS];
    while (stmt && status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        status = hold_from_row(stmt, r->holds.v[db_column_int(stmt, 14)].ret, err);
    stmt = step == DB_FAILED || status != HF_OK ? NULL : reads->stmts[PART_BOOKINGS];
    while (stmt && status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        status = booking_from_row(stmt, r->holds.v[db_column_int(stmt, 11)].ret_booking, err);
    return status == HF_OK && step == DB_FAILED ? failed(err) : status;
}

static void reads_clear(struct ledger *l)
{
    for (int i = 0; i < LEDGER_READS; i++)
        vec_clear(&l->reads[i]);
}

enum hf_status ledger_batch_read(struct ledger *l, struct batch_read *r, struct hf_err *err)
{
    struct reads reads = {0};
    reads_clear(l);
    enum hf_status status = start_clocks(l, ST_CLOCK_LOCK, r, &reads, err);
    if (status == HF_OK)
        status = start(l, ST_NOW, PART_NOW, 1, &reads.stmts[PART_NOW], err);
    if (status == HF_OK && ledger_has_others(l))
        status = start_since(l, r, &reads, err);
    if (status == HF_OK)
        status = start_wanted(l, r, &reads, err);
    if (status == HF_OK)
        status = collect_clocks(reads.stmts[PART_CLOCKS], r->clocks.v, r->clocks.n, err);
    if (status == HF_OK)
        status = collect_now(reads.stmts[PART_NOW], &r->now, err);
    for (size_t i = 0; status == HF_OK && i < r->clocks.n; i++)
        if (r->clocks.v[i].now > r->now)
            r->now = r->clocks.v[i].now;
    if (status == HF_OK)
        status = collect_since(&reads, r, err);
    return status == HF_OK ? collect_wanted(&reads, r, err) : status;
}

enum hf_status ledger_wanted_read(struct ledger *l, const struct batch_read *r, struct hf_err *err)
{
    struct reads reads = {0};
    reads_clear(l);
    enum hf_status status = start_wanted(l, r, &reads, err);
    return status == HF_OK ? collect_wanted(&reads, r, err) : status;
}

enum hf_status ledger_follow(struct ledger *l, struct batch_read *r, struct hf_err *err)
{
    struct reads reads = {0};
    reads_clear(l);
    enum hf_status status = start_since(l, r, &reads, err);
    return status == HF_OK ? collect_since(&reads, r, err) : status;
}

void batch_read_clear(struct batch_read *r)
{
    for (size_t i = 0; i < r->since.holds.n; i++)
        hold_row_close(&r->since.holds.v[i]);
    vec_clear(&r->clocks);
    vec_clear(&r->keys);
    vec_clear(&r->holds);
    vec_clear(&r->since.audit);
    vec_clear(&r->since.holds);
}

void batch_read_close(struct batch_read *r)
{
    batch_read_clear(r);
    vec_close(&r->clocks);
    vec_close(&r->keys);
    vec_close(&r->holds);
    vec_close(&r->since.audit);
    vec_close(&r->since.holds);
}

/* ---- one thing at a time ---- */

enum hf_status ledger_clocks_read(struct ledger *l, struct clock_row *rows, size_t n,
                                  struct hf_err *err)
{
    struct reads reads = {0};
    const struct batch_read r = {.clocks = {.v = rows, .n = n}};
    reads_clear(l);
    enum hf_status status = start_clocks(l, ST_CLOCK_READ, &r, &reads, err);
    return status == HF_OK ? collect_clocks(reads.stmts[PART_CLOCKS], rows, n, err) : status;
}

enum hf_status ledger_lock(struct ledger *l, struct clock_row *rows, size_t n, int64_t *ret_now,
                           struct hf_err *err)
{
    struct reads reads = {0};
    const struct batch_read r = {.clocks = {.v = rows, .n = n}};
    int64_t now = 0;
    reads_clear(l);
    enum hf_status status = start_clocks(l, ST_CLOCK_LOCK, &r, &reads, err);
    if (status == HF_OK)
        status = start(l, ST_NOW, PART_NOW, 1, &reads.stmts[PART_NOW], err);
    if (status == HF_OK)
        status = collect_clocks(reads.stmts[PART_CLOCKS], rows, n, err);
    if (status == HF_OK)
        status = collect_now(reads.stmts[PART_NOW], &now, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        now = rows[i].now > now ? rows[i].now : now;
    *ret_now = now;
    return HF_OK;
}

enum hf_status ledger_keys_read(struct ledger *l, const uint8_t *const *hashes, size_t n,
                                int64_t now, struct key_row *rows, struct hf_err *err)
{
    struct reads reads = {0};
    struct batch_read r = {.now = now};
    reads_clear(l);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct key_row){0};
        *vec_push(&r.keys) = (struct key_wanted){hashes[i], &rows[i]};
    }
    enum hf_status status = start_wanted(l, &r, &reads, err);
    if (status == HF_OK)
        status = collect_wanted(&reads, &r, err);
    batch_read_close(&r);
    return status;
}

/* ---- is it writable, and did it happen? ---- */

static enum hf_status touch(struct ledger *l, int64_t now, struct hf_err *err)
{
    const struct db_value args[] = {db_int(now)};
    enum hf_status status = ledger_exec(l, ST_CLOCK_TOUCH, args, NULL, err);
    return status == HF_OK ? ledger_commit(l, err) : status;
}

enum hf_status ledger_probe(struct ledger *l, struct hf_err *err)
{
    int64_t now;
    enum hf_status status = ledger_now(l, &now, err);
    if (status == HF_OK)
        status = ledger_begin(l, err);
    if (status != HF_OK)
        return status;
    status = touch(l, now, err);
    if (status != HF_OK)
        ledger_rollback(l);
    return status;
}

static bool same_row(const struct audit_row *a, const struct audit_row *b)
{
    return a->seq == b->seq && a->at == b->at && a->object == b->object && a->cause == b->cause &&
           a->item == b->item && a->quantity == b->quantity && a->from == b->from &&
           a->to == b->to && a->hold == b->hold && a->booking == b->booking &&
           a->fence == b->fence && a->until == b->until;
}

/* What only this batch can have written: a secret, if it made one; else a stored answer, or a row
 * of the log.  (Another server's that is equal in every field did the very same thing.) */
static enum hf_status look(struct ledger *l, const struct ledger_batch *b,
                           const struct event_def *created, int64_t now, bool *ret_there,
                           struct hf_err *err)
{
    enum hf_status status = HF_OK;
    *ret_there = false;
    if (created) {
        struct event_def *def = NULL;
        struct clock_row clock;
        status = ledger_event_read(l, created->id.key, &def, &clock, err);
        *ret_there = def && id_secret_equal(def->id.secret, created->id.secret);
        event_def_free(def);
    } else if (b->holds_new.n) {
        struct hold_row row = {0};
        status = ledger_holds_read(l, &b->holds_new.v[0].id.key, 1, &row, err);
        *ret_there = row.id.key && id_secret_equal(row.id.secret, b->holds_new.v[0].id.secret);
        hold_row_close(&row);
    } else if (b->bookings.n) {
        struct booking_row row = {0};
        status = ledger_booking_read(l, b->bookings.v[0].id.key, &row, err);
        *ret_there = row.id.key && id_secret_equal(row.id.secret, b->bookings.v[0].id.secret);
        booking_row_close(&row);
    } else if (b->keys.n) {
        const struct key_row *want = &b->keys.v[0];
        const uint8_t *hash = want->hash;
        struct key_row row = {0};
        status = ledger_keys_read(l, &hash, 1, now, &row, err);
        *ret_there = row.found && row.created_at == want->created_at &&
                     memcmp(row.request, want->request, KEY_HASH_SIZE) == 0;
        key_row_close(&row);
    } else if (b->audit.n) {
        const struct audit_row *want = &b->audit.v[b->audit.n - 1];
        const struct audit_query query = {
            .event = want->event, .after = want->seq - 1, .seat = -1, .limit = 1};
        struct audit_entry entry;
        size_t n = 0;
        status = ledger_audit_read(l, &query, &entry, &n, err);
        *ret_there = n == 1 && same_row(&entry.row, want);
    }
    return status;
}

enum hf_status ledger_settle(struct ledger *l, const struct ledger_batch *b,
                             const struct clock_row *clocks, size_t n_clocks,
                             const struct event_def *created, bool *ret_happened,
                             struct hf_err *err)
{
    VEC(struct clock_row) rows = {0};
    int64_t now = 0;
    bool there = false, cover = !ledger_has_others(l);
    if (cover && (!n_clocks || clocks[0].event != 0))
        vec_push(&rows); /* event 0, which is touched */
    for (size_t i = 0; i < n_clocks; i++)
        vec_push(&rows)->event = clocks[i].event;
    enum hf_status status = ledger_begin(l, err);
    if (status == HF_OK)
        status = ledger_lock(l, rows.v, rows.n, &now, err);
    if (status == HF_OK)
        status = look(l, b, created, now, &there, err);
    /* The lock alone makes this a commit that waits for a standby, behind the one that was found:
     * that one may have been cut short while it waited. */
    if (status == HF_OK && there && !cover)
        status = ledger_commit(l, err);
    if (status == HF_OK && !there && cover)
        status = touch(l, now, err);
    if (status != HF_OK || there == cover)
        ledger_rollback(l);
    vec_close(&rows);
    if (status == HF_OK)
        *ret_happened = there;
    return status;
}
