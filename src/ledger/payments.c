/* Payments, refunds, jobs and webhooks: rows into columns and back, the taking of due jobs, lists.
 * Batches read and write them on the worker's connection; jobs are taken, and lists are read, on a
 * connection of their own. */
#include <stdlib.h>
#include <string.h>

#include "ledger/internal.h"

/* ---- columns ---- */

static void copy_text(struct db_stmt *stmt, int column, char *out, size_t size)
{
    size_t len;
    const char *data = db_column_data(stmt, column, &len);
    if (!data)
        len = 0;
    len = len < size ? len : size - 1;
    if (len)
        memcpy(out, data, len);
    out[len] = '\0';
}

static void copy_bytes(struct db_stmt *stmt, int column, uint8_t *out, size_t size)
{
    size_t len;
    const void *data = db_column_data(stmt, column, &len);
    memset(out, 0, size);
    if (data)
        memcpy(out, data, len < size ? len : size);
}

void payment_from_row(struct db_stmt *stmt, struct payment_row *row)
{
    *row = (struct payment_row){
        .id.key = db_column_int(stmt, 0),
        .payment = db_column_int(stmt, 1),
        .status = (enum payment_status)db_column_int(stmt, 3),
        .amount = db_column_int(stmt, 4),
        .captures_by_hand = db_column_int(stmt, 6) != 0,
        .received = db_column_int(stmt, 9),
        .is_wrong = db_column_int(stmt, 10) != 0,
        .disputed = db_column_int(stmt, 11),
        .poll_at = db_column_int(stmt, 15),
        .created_at = db_column_int(stmt, 16),
        .updated_at = db_column_int(stmt, 17),
    };
    copy_bytes(stmt, 2, row->id.secret, ID_SECRET_SIZE);
    copy_text(stmt, 5, row->currency, sizeof row->currency);
    copy_text(stmt, 7, row->intent, sizeof row->intent);
    copy_text(stmt, 8, row->client_secret, sizeof row->client_secret);
    copy_text(stmt, 12, row->error.code, sizeof row->error.code);
    copy_text(stmt, 13, row->error.decline_code, sizeof row->error.decline_code);
    copy_text(stmt, 14, row->error.message, sizeof row->error.message);
}

void refund_from_row(struct db_stmt *stmt, struct refund_row *row)
{
    *row = (struct refund_row){
        .booking = db_column_int(stmt, 0),
        .refund = db_column_int(stmt, 1),
        .payment = db_column_int(stmt, 2),
        .amount = db_column_int(stmt, 3),
        .status = (enum refund_status)db_column_int(stmt, 4),
        .is_ours = db_column_int(stmt, 5) != 0,
        .created_at = db_column_int(stmt, 8),
        .updated_at = db_column_int(stmt, 9),
    };
    copy_text(stmt, 6, row->provider, sizeof row->provider);
    copy_text(stmt, 7, row->error, sizeof row->error);
}

void job_from_row(struct db_stmt *stmt, struct job_row *row)
{
    *row = (struct job_row){
        .booking = db_column_int(stmt, 0),
        .job = db_column_int(stmt, 1),
        .kind = (enum job_kind)db_column_int(stmt, 2),
        .status = (enum job_status)db_column_int(stmt, 3),
        .payment_no = db_column_int(stmt, 4),
        .amount = db_column_int(stmt, 5),
        .refund = db_column_int(stmt, 6),
        .notice = (enum notice)db_column_int(stmt, 7),
        .key_used_at = db_column_int(stmt, 9),
        .attempts = (uint32_t)db_column_int(stmt, 10),
        .checks_first = db_column_int(stmt, 11) != 0,
        .created_at = db_column_int(stmt, 12),
        .due_at = db_column_int(stmt, 13),
        .leased_until = db_column_int(stmt, 14),
        .ended_at = db_column_int(stmt, 15),
    };
    copy_bytes(stmt, 8, row->key, JOB_KEY_SIZE);
    copy_text(stmt, 16, row->error, sizeof row->error);
}

/* JOB_PAYMENT_COLUMNS, which begin with column `at`. */
static void job_payment_from_row(struct db_stmt *stmt, int at, struct job_row *row)
{
    row->payment.key = db_column_int(stmt, at + 8) ? row->booking : 0;
    copy_bytes(stmt, at, row->payment.secret, ID_SECRET_SIZE);
    copy_text(stmt, at + 1, row->intent, sizeof row->intent);
    copy_text(stmt, at + 2, row->currency, sizeof row->currency);
    row->payment_status = (enum payment_status)db_column_int(stmt, at + 3);
    row->captures_by_hand = db_column_int(stmt, at + 4) != 0;
    copy_text(stmt, at + 5, row->email, sizeof row->email);
    row->booked_at = db_column_int(stmt, at + 6);
    row->hold_expires_at = db_column_int(stmt, at + 7);
}

/* ---- what a batch writes ---- */

static void arg_text(struct ledger *l, const char *text)
{
    ledger_arg(l, *text ? db_text(text, strlen(text)) : db_text(NULL, 0));
}

void put_payments_new(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->payments_new.n; i++) {
        const struct payment_row *p = &b->payments_new.v[i];
        ledger_arg_int(l, p->id.key);
        ledger_arg_int(l, p->payment);
        ledger_arg(l, db_bytes(p->id.secret, ID_SECRET_SIZE));
        ledger_arg_int(l, p->status);
        ledger_arg_int(l, p->amount);
        arg_text(l, p->currency);
        ledger_arg_int(l, p->captures_by_hand);
        ledger_arg_int(l, p->received);
        ledger_arg_int(l, p->is_wrong);
        ledger_arg_int(l, p->disputed);
        ledger_arg_int(l, p->poll_at);
        ledger_arg_int(l, p->created_at);
        ledger_arg_int(l, p->updated_at);
    }
}

void put_payments(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->payments.n; i++) {
        const struct payment_row *p = &b->payments.v[i].row;
        ledger_arg_int(l, p->id.key);
        ledger_arg_int(l, p->payment);
        ledger_arg_int(l, b->payments.v[i].from);
        ledger_arg_int(l, p->status);
        arg_text(l, p->intent);
        arg_text(l, p->client_secret);
        ledger_arg_int(l, p->received);
        ledger_arg_int(l, p->is_wrong);
        ledger_arg_int(l, p->disputed);
        arg_text(l, p->error.code);
        arg_text(l, p->error.decline_code);
        arg_text(l, p->error.message);
        ledger_arg_int(l, p->poll_at);
        ledger_arg_int(l, p->updated_at);
    }
}

void put_refunds_new(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->refunds_new.n; i++) {
        const struct refund_row *f = &b->refunds_new.v[i];
        ledger_arg_int(l, f->booking);
        ledger_arg_int(l, f->refund);
        ledger_arg_int(l, f->payment);
        ledger_arg_int(l, f->amount);
        ledger_arg_int(l, f->status);
        ledger_arg_int(l, f->is_ours);
        arg_text(l, f->provider);
        arg_text(l, f->error);
        ledger_arg_int(l, f->created_at);
        ledger_arg_int(l, f->updated_at);
    }
}

size_t count_refunds(const struct ledger_batch *b, bool is_dropped)
{
    size_t n = 0;
    for (size_t i = 0; i < b->refunds.n; i++)
        n += b->refunds.v[i].is_dropped == is_dropped;
    return n;
}

void put_refunds(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->refunds.n; i++) {
        const struct refund_row *f = &b->refunds.v[i].row;
        if (b->refunds.v[i].is_dropped)
            continue;
        ledger_arg_int(l, f->booking);
        ledger_arg_int(l, f->refund);
        ledger_arg_int(l, b->refunds.v[i].from);
        ledger_arg_int(l, f->status);
        ledger_arg_int(l, f->amount);
        arg_text(l, f->provider);
        arg_text(l, f->error);
        ledger_arg_int(l, f->updated_at);
    }
}

void put_refunds_dropped(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->refunds.n; i++)
        if (b->refunds.v[i].is_dropped) {
            ledger_arg_int(l, b->refunds.v[i].row.booking);
            ledger_arg_int(l, b->refunds.v[i].row.refund);
        }
}

void put_jobs_new(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->jobs_put.n; i++) {
        const struct job_row *j = &b->jobs_put.v[i];
        ledger_arg_int(l, j->booking);
        ledger_arg_int(l, j->job);
        ledger_arg_int(l, j->kind);
        ledger_arg_int(l, JOB_OWED);
        ledger_arg_int(l, j->payment_no);
        ledger_arg_int(l, j->amount);
        ledger_arg_int(l, j->refund);
        ledger_arg_int(l, j->notice);
        ledger_arg(l, db_bytes(j->key, JOB_KEY_SIZE));
        ledger_arg_int(l, 0); /* key_used_at */
        ledger_arg_int(l, 0); /* attempts */
        ledger_arg_int(l, j->checks_first);
        ledger_arg_int(l, j->created_at);
        ledger_arg_int(l, j->due_at);
        ledger_arg_int(l, j->leased_until);
        ledger_arg_int(l, 0); /* ended_at */
    }
}

size_t count_jobs(const struct ledger_batch *b, bool is_deleted)
{
    size_t n = 0;
    for (size_t i = 0; i < b->jobs.n; i++)
        n += b->jobs.v[i].is_deleted == is_deleted;
    return n;
}

void put_jobs(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->jobs.n; i++) {
        const struct job_row *j = &b->jobs.v[i].row;
        if (b->jobs.v[i].is_deleted)
            continue;
        ledger_arg_int(l, j->booking);
        ledger_arg_int(l, j->job);
        ledger_arg_int(l, j->status);
        ledger_arg(l, db_bytes(j->key, JOB_KEY_SIZE));
        ledger_arg_int(l, j->key_used_at);
        ledger_arg_int(l, j->attempts);
        ledger_arg_int(l, j->checks_first);
        ledger_arg_int(l, j->due_at);
        ledger_arg_int(l, j->ended_at);
        arg_text(l, j->error);
    }
}

void put_jobs_deleted(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->jobs.n; i++)
        if (b->jobs.v[i].is_deleted) {
            ledger_arg_int(l, b->jobs.v[i].row.booking);
            ledger_arg_int(l, b->jobs.v[i].row.job);
        }
}

void put_webhooks(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->webhooks.n; i++) {
        const struct webhook_write *w = &b->webhooks.v[i];
        ledger_arg(l, db_text(w->event.id, strlen(w->event.id)));
        ledger_arg(l, db_text(w->event.type, strlen(w->event.type)));
        ledger_arg_int(l, w->booking);
        ledger_arg_int(l, w->payment);
        arg_text(l, w->intent);
        ledger_arg_int(l, w->is_parked);
        ledger_arg_int(l, w->event.created_at);
        ledger_arg_int(l, w->at);
    }
}

/* ---- reads ---- */

enum hf_status ledger_money_read(struct ledger *l, int64_t booking, struct money *ret,
                                 struct hf_err *err)
{
    static const enum statement which[] = {ST_PAYMENTS_READ, ST_REFUNDS_READ, ST_JOBS_READ};
    enum hf_status status = HF_OK;
    for (size_t i = 0; status == HF_OK && i < sizeof which / sizeof *which; i++) {
        struct db_stmt *stmt;
        bool is_row;
        status = ledger_stmt(l, which[i], &stmt, err);
        if (status != HF_OK)
            return status;
        const struct db_value args[] = {db_int(0), db_int(booking)};
        status = stmt->driver->query_many(stmt, args, 1, err);
        while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
            if (which[i] == ST_PAYMENTS_READ)
                payment_from_row(stmt, vec_push(&ret->payments));
            else if (which[i] == ST_REFUNDS_READ)
                refund_from_row(stmt, vec_push(&ret->refunds));
            else
                job_from_row(stmt, vec_push(&ret->jobs));
    }
    return status;
}

enum hf_status ledger_payment_find(struct ledger *l, const char *intent, struct id *ret,
                                   struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_text(intent, strlen(intent))};
    bool is_row;
    *ret = (struct id){0};
    enum hf_status status = ledger_query(l, ST_PAYMENT_FIND, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        ret->key = db_column_int(stmt, 0);
        copy_bytes(stmt, 2, ret->secret, ID_SECRET_SIZE);
    }
    return status;
}

enum hf_status ledger_bookings_pending(struct ledger *l, int64_t event,
                                       void (*booking)(void *ctx, int64_t booking, int64_t payment),
                                       void *ctx, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(HOLD_KEY(event, 0)), db_int(HOLD_KEY(event + 1, 0))};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_BOOKINGS_PENDING, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        booking(ctx, db_column_int(stmt, 0), db_column_int(stmt, 1));
    return status;
}

/* ---- taking jobs ---- */

static enum hf_status read_jobs(struct ledger *l, enum statement which,
                                const struct jobs_query *query, size_t max, struct job_row *ret,
                                size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(query->now), db_int((int64_t)max)};
    bool is_row;
    if (!max)
        return HF_OK;
    enum hf_status status = ledger_query(l, which, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct job_row *row = &ret[(*ret_n)++];
        job_from_row(stmt, row);
        job_payment_from_row(stmt, JOB_COLUMNS_N, row);
    }
    return status;
}

static enum hf_status read_polls(struct ledger *l, const struct jobs_query *query, size_t max,
                                 struct job_row *ret, size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(query->now), db_int(query->quiet_before),
                                    db_int((int64_t)max)};
    bool is_row;
    if (!max)
        return HF_OK;
    enum hf_status status = ledger_query(l, ST_POLLS_DUE, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        struct job_row *row = &ret[(*ret_n)++];
        *row = (struct job_row){.booking = db_column_int(stmt, 0),
                                .payment_no = db_column_int(stmt, 1),
                                .amount = db_column_int(stmt, 2),
                                .due_at = db_column_int(stmt, 3),
                                .created_at = db_column_int(stmt, 4),
                                .kind = JOB_POLL,
                                .status = JOB_OWED};
        job_payment_from_row(stmt, 5, row);
    }
    return status;
}

/* What a lease names besides the booking. */
static int64_t lease_number(const struct job_row *row)
{
    return row->kind == JOB_POLL ? row->payment_no : row->job;
}

/* Polls come last, since they are leased by a statement of their own. */
static int lease_order(const void *a, const void *b)
{
    const struct job_row *x = a, *y = b;
    bool x_polls = x->kind == JOB_POLL, y_polls = y->kind == JOB_POLL;
    int64_t x_number = lease_number(x), y_number = lease_number(y);
    if (x_polls != y_polls)
        return x_polls - y_polls;
    return x->booking != y->booking ? (x->booking > y->booking) - (x->booking < y->booking)
                                    : (x_number > y_number) - (x_number < y_number);
}

/* Leases need not outlive the database's machine: if one is lost, another server may run the job as
 * well, and calls under the same idempotency key; so buyers do not wait for the disk here.
 *
 * Leases `n` jobs, or as many polls, in lease_order to this server, in one exchange.  Of those
 * that another server has, leased_until is 0 afterwards. */
static enum hf_status lease(struct ledger *l, struct job_row *rows, size_t n, int64_t now,
                            struct hf_err *err)
{
    bool are_polls = n && rows[0].kind == JOB_POLL, is_row = false;
    size_t n_columns = are_polls ? 5 : 4;
    struct db_stmt *stmt;
    if (!n)
        return HF_OK;
    enum hf_status status = ledger_stmt(l, are_polls ? ST_POLL_LEASE : ST_JOB_LEASE, &stmt, err);
    if (status != HF_OK)
        return status;
    struct db_value *args = hf_alloc(n * n_columns * sizeof *args);
    for (size_t i = 0; i < n; i++) {
        struct db_value *arg = &args[i * n_columns];
        arg[0] = db_int(rows[i].booking);
        arg[1] = db_int(lease_number(&rows[i]));
        arg[2] = db_int(are_polls ? rows[i].due_at : rows[i].leased_until);
        arg[3] = db_int(now + JOB_LEASE_MS);
        if (are_polls)
            arg[4] = db_int(now);
        rows[i].leased_until = 0;
    }
    status = stmt->driver->query_many(stmt, args, n, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        const struct job_row key = {.booking = db_column_int(stmt, 0),
                                    .kind = rows[0].kind,
                                    .job = db_column_int(stmt, 1),
                                    .payment_no = db_column_int(stmt, 1)};
        struct job_row *row = bsearch(&key, rows, n, sizeof *rows, lease_order);
        hf_check(row);
        row->leased_until = now + JOB_LEASE_MS;
    }
    free(args);
    return status;
}

/* How many requests all servers together may still make in this second; takes them all for this
 * server if it wants so many. */
static enum hf_status take_budget(struct ledger *l, const struct jobs_query *query, size_t wanted,
                                  size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value left_args[] = {db_int(query->now / 1000), db_int(query->rate)};
    bool is_row;
    int64_t left = 0;
    *ret_n = 0;
    enum hf_status status = ledger_query(l, ST_BUDGET_LEFT, left_args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        left = db_column_int(stmt, 0);
    size_t n = left < (int64_t)wanted ? (size_t)(left > 0 ? left : 0) : wanted;
    if (status != HF_OK || !n)
        return status;
    const struct db_value args[] = {db_int(query->now / 1000), db_int((int64_t)n),
                                    db_int(query->rate)};
    status = ledger_query(l, ST_BUDGET_TAKE, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        *ret_n = n; /* no row: another server was faster */
    return status;
}

/* Keeps those of the rows that this server gets.  The calls that the budget allows are those of the
 * first kinds; they are locked in the order of their keys, as batches do it. */
static enum hf_status lease_all(struct ledger *l, const struct jobs_query *query,
                                struct job_row *rows, size_t *n, size_t n_calls, struct hf_err *err)
{
    size_t kept = 0, n_jobs = 0, allowed = n_calls;
    enum hf_status status = HF_OK;
    if (query->rate && n_calls) {
        status = take_budget(l, query, n_calls + (size_t)query->spent, &allowed, err);
        allowed = allowed > (size_t)query->spent ? allowed - (size_t)query->spent : 0;
    }
    if (allowed < n_calls) {
        memmove(&rows[allowed], &rows[n_calls], (*n - n_calls) * sizeof *rows);
        *n -= n_calls - allowed;
    }
    qsort(rows, *n, sizeof *rows, lease_order);
    while (n_jobs < *n && rows[n_jobs].kind != JOB_POLL)
        n_jobs++;
    if (status == HF_OK) /* payments before jobs, as batches do it */
        status = lease(l, rows + n_jobs, *n - n_jobs, query->now, err);
    if (status == HF_OK)
        status = lease(l, rows, n_jobs, query->now, err);
    for (size_t i = 0; status == HF_OK && i < *n; i++)
        if (rows[i].leased_until)
            rows[kept++] = rows[i];
    *n = kept;
    return status;
}

static enum hf_status take(struct ledger *l, const struct jobs_query *query, struct job_row *ret,
                           size_t *ret_n, struct hf_err *err)
{
    enum hf_status status;
    size_t n = 0;
    if ((status = read_jobs(l, ST_JOBS_DUE, query, query->calls_max, ret, &n, err)) != HF_OK ||
        (status = read_polls(l, query, query->calls_max - n, ret, &n, err)) != HF_OK)
        return status;
    size_t n_calls = n;
    if ((status = read_jobs(l, ST_NOTICES_DUE, query, query->notices_max, ret, &n, err)) != HF_OK)
        return status;
    if (n && ledger_has_others(l))
        status = lease_all(l, query, ret, &n, n_calls, err);
    *ret_n = n;
    return status;
}

enum hf_status ledger_jobs_take(struct ledger *l, const struct jobs_query *query,
                                struct job_row *ret, size_t *ret_n, struct hf_err *err)
{
    *ret_n = 0;
    if (!ledger_has_others(l))
        return take(l, query, ret, ret_n, err);
    enum hf_status status = ledger_begin(l, err);
    if (status == HF_OK)
        status = take(l, query, ret, ret_n, err);
    if (status == HF_OK && *ret_n)
        status = ledger_commit(l, err);
    if (status != HF_OK || !*ret_n)
        ledger_rollback(l);
    if (status != HF_OK) /* leases that were stored all the same run out by themselves */
        *ret_n = 0;
    return status;
}

enum hf_status ledger_jobs_count(struct ledger *l, struct jobs_count ret[JOB_NOTIFY + 1],
                                 struct hf_err *err)
{
    struct db_stmt *stmt;
    bool is_row;
    memset(ret, 0, (JOB_NOTIFY + 1) * sizeof *ret);
    enum hf_status status = ledger_query(l, ST_JOBS_COUNT, NULL, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        int64_t kind = db_column_int(stmt, 0);
        if (kind >= JOB_REFUND && kind <= JOB_NOTIFY)
            ret[kind] = (struct jobs_count){.n = db_column_int(stmt, 1),
                                            .oldest_at = db_column_int(stmt, 2)};
    }
    return status;
}

/* ---- lists ---- */

enum hf_status ledger_refunds_list(struct ledger *l, int64_t before, enum refund_status refund,
                                   size_t limit, struct refund_entry *ret, size_t *ret_n,
                                   struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(before ? before : INT64_MAX), db_int(refund),
                                    db_int((int64_t)limit)};
    bool is_row;
    int at = REFUND_COLUMNS_N;
    *ret_n = 0;
    enum hf_status status = ledger_query(l, ST_REFUNDS_LIST, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        hf_check(*ret_n < limit);
        struct refund_entry *entry = &ret[(*ret_n)++];
        *entry = (struct refund_entry){.number = db_column_int(stmt, at + 1),
                                       .attempts = (uint32_t)db_column_int(stmt, at + 4),
                                       .due_at = db_column_int(stmt, at + 5)};
        refund_from_row(stmt, &entry->row);
        entry->booking.key = entry->payment.key = entry->row.booking;
        copy_bytes(stmt, at, entry->booking.secret, ID_SECRET_SIZE);
        copy_bytes(stmt, at + 2, entry->payment.secret, ID_SECRET_SIZE);
        copy_text(stmt, at + 3, entry->currency, sizeof entry->currency);
        copy_text(stmt, at + 6, entry->job_error, sizeof entry->job_error);
    }
    return status;
}

enum hf_status ledger_notices_list(struct ledger *l, int64_t before, enum job_status job,
                                   size_t limit, struct notice_entry *ret, size_t *ret_n,
                                   struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(before ? before : INT64_MAX), db_int(job),
                                    db_int((int64_t)limit)};
    bool is_row;
    *ret_n = 0;
    enum hf_status status = ledger_query(l, ST_NOTICES_LIST, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        size_t len;
        hf_check(*ret_n < limit);
        struct notice_entry *entry = &ret[(*ret_n)++];
        *entry = (struct notice_entry){.number = db_column_int(stmt, JOB_COLUMNS_N + 1)};
        job_from_row(stmt, &entry->row);
        if (db_column_data(stmt, JOB_COLUMNS_N, &len))
            entry->booking.key = entry->row.booking;
        copy_bytes(stmt, JOB_COLUMNS_N, entry->booking.secret, ID_SECRET_SIZE);
    }
    return status;
}

enum hf_status ledger_webhooks_prune(struct ledger *l, int64_t before, size_t limit, int64_t *ret_n,
                                     struct hf_err *err)
{
    const struct db_value args[] = {db_int(before), db_int((int64_t)limit)};
    return ledger_exec(l, ST_WEBHOOKS_PRUNE, args, ret_n, err);
}

/* ---- cancelled events ---- */

enum hf_status ledger_cancel_progress(struct ledger *l, int64_t event, struct cancel_progress *ret,
                                      struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(HOLD_KEY(event, 0)), db_int(HOLD_KEY(event + 1, 0))};
    bool is_row;
    enum hf_status status = ledger_query(l, ST_EVENT_PROGRESS, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row)
        *ret = (struct cancel_progress){.bookings_left = db_column_int(stmt, 0),
                                        .bookings_cancelled = db_column_int(stmt, 1),
                                        .refunds_owed = db_column_int(stmt, 2),
                                        .refunds_done = db_column_int(stmt, 3),
                                        .refunds_failed = db_column_int(stmt, 4)};
    return status;
}

enum hf_status ledger_bookings_live(struct ledger *l, int64_t event, int64_t after, size_t limit,
                                    struct id *ret, size_t *ret_n, struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(after ? after : HOLD_KEY(event, 0)),
                                    db_int(HOLD_KEY(event + 1, 0)), db_int((int64_t)limit)};
    bool is_row;
    *ret_n = 0;
    enum hf_status status = ledger_query(l, ST_BOOKINGS_LIVE, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        ret[*ret_n].key = db_column_int(stmt, 0);
        copy_bytes(stmt, 1, ret[(*ret_n)++].secret, ID_SECRET_SIZE);
    }
    return status;
}

enum hf_status ledger_events_cancelled(struct ledger *l, int64_t before, int64_t *ret,
                                       size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(before), db_int(CANCELLED_EVENTS_MAX)};
    return ledger_read_ints(l, ST_EVENTS_CANCELLED, args, CANCELLED_EVENTS_MAX, ret, ret_n, err);
}
