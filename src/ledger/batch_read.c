/* What a batch reads under its locks: clock rows, the time, stored answers, holds, bookings and
 * entries of waiting lists, and what other servers wrote since; or what it assumes instead.  All queries are started before the
 * first answer is stepped through, so that a database in a network is asked once (see db.h).
 * Called by the worker; the follower uses ledger_follow. */
#include <stdlib.h>
#include <string.h>

#include "ledger/log.h"

/* ---- starting the reads ---- */

enum read_part {
    PART_CLOCKS,
    PART_NOW,
    PART_AUDIT,
    PART_HOLDS_SINCE,
    PART_WAITS_SINCE,
    PART_KEYS,
    PART_HOLDS,
    PART_BOOKINGS,
    PART_PAYMENTS,
    PART_REFUNDS,
    PART_JOBS,
    PART_WEBHOOKS,
    PART_WAITS,
    PARTS
};
_Static_assert(PARTS <= LEDGER_READS, "each part has its own arguments");

/* The reads under way. */
struct reads {
    struct db_stmt *stmts[PARTS]; /* NULL: there is nothing to read */
};

static void arg(struct ledger *l, enum read_part part, struct db_value value)
{
    *vec_push(&l->reads[part]) = value;
}

/* Starts a query over the `n` rows of its part's arguments; none if there are no rows. */
static enum hf_status start(struct ledger *l, enum statement which, enum read_part part, size_t n,
                            struct reads *ret, struct hf_err *err)
{
    struct db_stmt *stmt;
    if (n == 0)
        return HF_OK;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    if (status != HF_OK)
        return status;
    status = stmt->driver->query_many(stmt, l->reads[part].v, n, err);
    if (status == HF_OK)
        ret->stmts[part] = stmt;
    return status;
}

static enum hf_status start_clocks(struct ledger *l, enum statement which,
                                   const struct batch_read *r, struct reads *ret,
                                   struct hf_err *err)
{
    for (size_t i = 0; i < r->clocks.n; i++)
        arg(l, PART_CLOCKS, db_int(r->clocks.v[i].event));
    return start(l, which, PART_CLOCKS, r->clocks.n, ret, err);
}

static enum hf_status start_now(struct ledger *l, struct reads *ret, struct hf_err *err)
{
    return start(l, ST_NOW, PART_NOW, 1, ret, err);
}

/* The keys of an event's log, and of its holds and entries of the waiting list, are consecutive: what was added after a given seq
 * and fence is a range of keys. */
static enum hf_status start_since(struct ledger *l, const struct batch_read *r, struct reads *ret,
                                  struct hf_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < r->clocks.n; i++) {
        const struct clock_row *c = &r->clocks.v[i];
        if (c->event == 0)
            continue; /* the catalogue of events has no log */
        arg(l, PART_AUDIT, db_int(AUDIT_KEY(c->event, c->seq)));
        arg(l, PART_AUDIT, db_int(AUDIT_KEY(c->event, c->seq + LEDGER_SINCE_MAX)));
        for (int part = PART_HOLDS_SINCE; part <= PART_WAITS_SINCE; part++) {
            arg(l, (enum read_part)part, db_int(HOLD_KEY(c->event, c->fence)));
            arg(l, (enum read_part)part, db_int(HOLD_KEY(c->event, c->fence + LEDGER_SINCE_MAX)));
        }
        n++;
    }
    enum hf_status status;
    if ((status = start(l, ST_LOG_SINCE, PART_AUDIT, n, ret, err)) != HF_OK ||
        (status = start(l, ST_HOLDS_SINCE, PART_HOLDS_SINCE, n, ret, err)) != HF_OK)
        return status;
    return start(l, ST_WAITS_SINCE, PART_WAITS_SINCE, n, ret, err);
}

static enum hf_status start_wanted(struct ledger *l, const struct batch_read *r, struct reads *ret,
                                   struct hf_err *err)
{
    size_t n_bookings = 0, n_money = 0;
    enum hf_status status;
    for (size_t i = 0; i < r->keys.n; i++) {
        arg(l, PART_KEYS, db_int((int64_t)i));
        arg(l, PART_KEYS, db_bytes(r->keys.v[i].hash, KEY_HASH_SIZE));
    }
    for (size_t i = 0; i < r->holds.n; i++) {
        arg(l, PART_HOLDS, db_int((int64_t)i));
        arg(l, PART_HOLDS, db_int(r->holds.v[i].hold));
        if (r->holds.v[i].ret_booking) {
            arg(l, PART_BOOKINGS, db_int((int64_t)i));
            arg(l, PART_BOOKINGS, db_int(r->holds.v[i].hold));
            n_bookings++;
        }
        for (int part = PART_PAYMENTS; r->holds.v[i].ret_money && part <= PART_JOBS; part++) {
            arg(l, (enum read_part)part, db_int((int64_t)i));
            arg(l, (enum read_part)part, db_int(r->holds.v[i].hold));
        }
        n_money += r->holds.v[i].ret_money != NULL;
    }
    for (size_t i = 0; i < r->webhooks.n; i++) {
        arg(l, PART_WEBHOOKS, db_int((int64_t)i));
        arg(l, PART_WEBHOOKS, db_text(r->webhooks.v[i].id, strlen(r->webhooks.v[i].id)));
    }
    for (size_t i = 0; i < r->waits.n; i++) {
        arg(l, PART_WAITS, db_int((int64_t)i));
        arg(l, PART_WAITS, db_int(r->waits.v[i].entry));
    }
    if ((status = start(l, ST_KEY_READ, PART_KEYS, r->keys.n, ret, err)) != HF_OK ||
        (status = start(l, ST_HOLD_READ, PART_HOLDS, r->holds.n, ret, err)) != HF_OK ||
        (status = start(l, ST_BOOKING_READ, PART_BOOKINGS, n_bookings, ret, err)) != HF_OK ||
        (status = start(l, ST_PAYMENTS_READ, PART_PAYMENTS, n_money, ret, err)) != HF_OK ||
        (status = start(l, ST_REFUNDS_READ, PART_REFUNDS, n_money, ret, err)) != HF_OK ||
        (status = start(l, ST_JOBS_READ, PART_JOBS, n_money, ret, err)) != HF_OK ||
        (status = start(l, ST_WEBHOOK_READ, PART_WEBHOOKS, r->webhooks.n, ret, err)) != HF_OK)
        return status;
    return start(l, ST_WAIT_READ, PART_WAITS, r->waits.n, ret, err);
}

static void reads_clear(struct ledger *l)
{
    for (int i = 0; i < LEDGER_READS; i++)
        vec_clear(&l->reads[i]);
}

/* ---- collecting the answers, in the order the queries were started ---- */

/* As ledger_next, but a conflict with another server's transaction is told apart: the same batch
 * may succeed when it is tried again.  A query that was not started has no rows. */
static enum hf_status next(struct db_stmt *stmt, bool *ret_row, struct hf_err *err)
{
    *ret_row = false;
    enum hf_status status = stmt ? ledger_next(stmt, ret_row, err) : HF_OK;
    return status != HF_OK && err && err->code == HF_CONFLICT ? HF_CONFLICT : status;
}

/* Rows usually come in the order of `rows`, so the search begins behind the last one found. */
static struct clock_row *find_clock(struct clock_row *rows, size_t n, size_t from, int64_t event)
{
    for (size_t i = from; i < n + from; i++)
        if (rows[i % n].event == event)
            return &rows[i % n];
    return NULL;
}

static enum hf_status collect_clocks(struct db_stmt *stmt, struct clock_row *rows, size_t n,
                                     struct hf_err *err)
{
    size_t found = 0;
    bool is_row;
    enum hf_status status;
    while ((status = next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct clock_row *row = find_clock(rows, n, found, db_column_int(stmt, 0));
        if (!row)
            continue;
        row->seq = db_column_int(stmt, 1);
        row->fence = db_column_int(stmt, 2);
        row->now = db_column_int(stmt, 3);
        found++;
    }
    if (status == HF_OK && found != n)
        status = hf_err_set(err, HF_INTERNAL, "%zu of %zu clock rows are missing", n - found, n);
    return status;
}

/* Reads the database's time; no clock row is ahead of it afterwards. */
static enum hf_status collect_now(struct db_stmt *stmt, const struct clock_row *clocks, size_t n,
                                  int64_t *ret_now, struct hf_err *err)
{
    bool is_row;
    enum hf_status status = next(stmt, &is_row, err);
    if (status != HF_OK)
        return status;
    if (!is_row)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "the database did not tell the time");
    int64_t now = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    for (size_t i = 0; i < n; i++)
        now = clocks[i].now > now ? clocks[i].now : now;
    *ret_now = now;
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

static int wait_order(const void *a, const void *b)
{
    const struct wait_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

static void sort_holds(struct log_since *since)
{
    if (since->holds.n > 1)
        qsort(since->holds.v, since->holds.n, sizeof *since->holds.v, hold_order);
}

static enum hf_status collect_since(const struct reads *reads, struct log_since *since,
                                    struct hf_err *err)
{
    struct db_stmt *audit = reads->stmts[PART_AUDIT], *holds = reads->stmts[PART_HOLDS_SINCE];
    struct db_stmt *waits = reads->stmts[PART_WAITS_SINCE];
    bool is_row;
    enum hf_status status;
    struct log_rows rows = {.list = {since->audit.v, since->audit.n, since->audit.cap}};
    bool is_sound = true;
    while ((status = next(audit, &is_row, err)) == HF_OK && is_row)
        is_sound &= log_expand(audit, &rows);
    since->audit.v = rows.list.v;
    since->audit.n = rows.list.n;
    since->audit.cap = rows.list.cap;
    if (status == HF_OK && !is_sound)
        status = hf_err_set(err, HF_INTERNAL, "a row of the log is damaged");
    if (status != HF_OK)
        return status;
    while ((status = next(holds, &is_row, err)) == HF_OK && is_row)
        if ((status = hold_from_row(holds, vec_push(&since->holds), err)) != HF_OK)
            return status;
    while (status == HF_OK && (status = next(waits, &is_row, err)) == HF_OK && is_row)
        status = wait_from_row(waits, vec_push(&since->waits), err);
    if (status != HF_OK)
        return status;
    if (since->waits.n > 1)
        qsort(since->waits.v, since->waits.n, sizeof *since->waits.v, wait_order);
    if (since->audit.n > 1)
        qsort(since->audit.v, since->audit.n, sizeof *since->audit.v, audit_order);
    sort_holds(since);
    return status;
}

enum hf_status ledger_since_read(struct ledger *l, const int64_t *keys, size_t n,
                                 struct log_since *since, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (size_t at = 0; at < n && status == HF_OK; at += LEDGER_VISIT_CHUNK) {
        struct hold_row rows[LEDGER_VISIT_CHUNK];
        size_t len = n - at < LEDGER_VISIT_CHUNK ? n - at : LEDGER_VISIT_CHUNK;
        status = ledger_holds_read(l, keys + at, len, rows, err);
        for (size_t i = 0; i < len; i++)
            if (rows[i].id.key)
                *vec_push(&since->holds) = rows[i];
    }
    sort_holds(since);
    return status;
}

static enum hf_status collect_keys(struct db_stmt *stmt, const struct batch_read *r,
                                   struct hf_err *err)
{
    bool is_row;
    enum hf_status status;
    while ((status = next(stmt, &is_row, err)) == HF_OK && is_row) {
        const struct key_wanted *wanted = &r->keys.v[db_column_int(stmt, 0)];
        if (db_column_int(stmt, 4) > r->now - KEY_KEPT_MS)
            key_from_row(stmt, wanted->hash, wanted->ret);
    }
    return status;
}

static enum hf_status collect_money(const struct reads *reads, const struct batch_read *r,
                                    struct hf_err *err)
{
    struct db_stmt *payments = reads->stmts[PART_PAYMENTS], *refunds = reads->stmts[PART_REFUNDS];
    struct db_stmt *jobs = reads->stmts[PART_JOBS];
    bool is_row;
    enum hf_status status;
    while ((status = next(payments, &is_row, err)) == HF_OK && is_row) {
        struct money *money = r->holds.v[db_column_int(payments, PAYMENT_COLUMNS_N)].ret_money;
        payment_from_row(payments, vec_push(&money->payments));
    }
    while (status == HF_OK && (status = next(refunds, &is_row, err)) == HF_OK && is_row) {
        struct money *money = r->holds.v[db_column_int(refunds, REFUND_COLUMNS_N)].ret_money;
        refund_from_row(refunds, vec_push(&money->refunds));
    }
    while (status == HF_OK && (status = next(jobs, &is_row, err)) == HF_OK && is_row) {
        struct money *money = r->holds.v[db_column_int(jobs, JOB_COLUMNS_N)].ret_money;
        job_from_row(jobs, vec_push(&money->jobs));
    }
    return status;
}

static enum hf_status collect_rest(const struct reads *reads, const struct batch_read *r,
                                   struct hf_err *err)
{
    struct db_stmt *webhooks = reads->stmts[PART_WEBHOOKS], *waits = reads->stmts[PART_WAITS];
    bool is_row;
    enum hf_status status;
    while ((status = next(webhooks, &is_row, err)) == HF_OK && is_row)
        *r->webhooks.v[db_column_int(webhooks, 0)].ret_known = true;
    while (status == HF_OK && (status = next(waits, &is_row, err)) == HF_OK && is_row)
        status = wait_from_row(waits, r->waits.v[db_column_int(waits, WAIT_OFFERED_N)].ret, err);
    return status;
}

static enum hf_status collect_wanted(const struct reads *reads, const struct batch_read *r,
                                     struct hf_err *err)
{
    struct db_stmt *holds = reads->stmts[PART_HOLDS], *bookings = reads->stmts[PART_BOOKINGS];
    bool is_row;
    enum hf_status status = collect_keys(reads->stmts[PART_KEYS], r, err);
    if (status != HF_OK)
        return status;
    while ((status = next(holds, &is_row, err)) == HF_OK && is_row) {
        const struct hold_wanted *wanted = &r->holds.v[db_column_int(holds, HOLD_COLUMNS_N)];
        if ((status = hold_read_row(holds, wanted->ret, err)) != HF_OK)
            return status;
    }
    if (status != HF_OK)
        return status;
    while ((status = next(bookings, &is_row, err)) == HF_OK && is_row) {
        const struct hold_wanted *wanted = &r->holds.v[db_column_int(bookings, BOOKING_SELECTED_N)];
        if ((status = booking_from_row(bookings, wanted->ret_booking, err)) != HF_OK)
            return status;
    }
    if (status != HF_OK || (status = collect_money(reads, r, err)) != HF_OK)
        return status;
    return collect_rest(reads, r, err);
}

/* ---- the whole of it ---- */

enum hf_status ledger_batch_read(struct ledger *l, struct batch_read *r, struct hf_err *err)
{
    struct reads reads = {0};
    enum hf_status status;
    reads_clear(l);
    if ((status = start_clocks(l, ST_CLOCK_LOCK, r, &reads, err)) != HF_OK ||
        (status = start_now(l, &reads, err)) != HF_OK ||
        (ledger_has_others(l) && (status = start_since(l, r, &reads, err)) != HF_OK) ||
        (status = start_wanted(l, r, &reads, err)) != HF_OK)
        return status;
    struct clock_row *clocks = r->clocks.v;
    size_t n = r->clocks.n;
    if ((status = collect_clocks(reads.stmts[PART_CLOCKS], clocks, n, err)) != HF_OK ||
        (status = collect_now(reads.stmts[PART_NOW], clocks, n, &r->now, err)) != HF_OK ||
        (status = collect_since(&reads, &r->since, err)) != HF_OK)
        return status;
    return collect_wanted(&reads, r, err);
}

/* Adds a condition to the transaction. */
static enum hf_status assume(struct ledger *l, enum statement which, size_t n, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = ledger_stmt(l, which, &stmt, err);
    if (status == HF_OK)
        status = stmt->driver->expect_many(stmt, "what was assumed", l->args.v, n, err);
    vec_clear(&l->args);
    return status;
}

enum hf_status ledger_batch_assume(struct ledger *l, const struct batch_read *r, struct hf_err *err)
{
    enum hf_status status;
    hf_check(ledger_has_others(l) && !r->holds.n && !r->webhooks.n && !r->waits.n);
    vec_clear(&l->args);
    for (size_t i = 0; i < r->clocks.n; i++) {
        ledger_arg_int(l, r->clocks.v[i].event);
        ledger_arg_int(l, r->clocks.v[i].seq);
        ledger_arg_int(l, r->clocks.v[i].fence);
        ledger_arg_int(l, r->now);
    }
    if ((status = assume(l, ST_CLOCK_ASSUME, r->clocks.n, err)) != HF_OK)
        return status;
    ledger_arg_int(l, r->now);
    ledger_arg_int(l, LEDGER_ASSUME_LATE_MS);
    if ((status = assume(l, ST_NOW_ASSUME, 1, err)) != HF_OK)
        return status;
    for (size_t i = 0; i < r->keys.n; i++) {
        ledger_arg(l, db_bytes(r->keys.v[i].hash, KEY_HASH_SIZE));
        ledger_arg_int(l, r->now - KEY_KEPT_MS);
    }
    return assume(l, ST_KEY_ASSUME, r->keys.n, err);
}

enum hf_status ledger_follow(struct ledger *l, struct batch_read *r, struct hf_err *err)
{
    struct reads reads = {0};
    reads_clear(l);
    enum hf_status status = start_since(l, r, &reads, err);
    return status == HF_OK ? collect_since(&reads, &r->since, err) : status;
}

/* ---- parts of it ---- */

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
    enum hf_status status;
    reads_clear(l);
    if ((status = start_clocks(l, ST_CLOCK_LOCK, &r, &reads, err)) != HF_OK ||
        (status = start_now(l, &reads, err)) != HF_OK ||
        (status = collect_clocks(reads.stmts[PART_CLOCKS], rows, n, err)) != HF_OK)
        return status;
    return collect_now(reads.stmts[PART_NOW], rows, n, ret_now, err);
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
        status = collect_keys(reads.stmts[PART_KEYS], &r, err);
    batch_read_close(&r);
    return status;
}
