/* Payments, refunds, jobs and webhooks: rows into columns and back, and lists.  Batches read and
 * write them on the worker's connection; lists are read on a reader's.  jobs.c takes due jobs. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"
#include "ledger/number_list.h"

/* ---- rows ---- */

void payment_from_row(struct db_stmt *stmt, struct payment_row *row)
{
    *row = (struct payment_row){0};
    READ(PAYMENT_COLUMNS);
}

void refund_from_row(struct db_stmt *stmt, struct refund_row *row)
{
    *row = (struct refund_row){0};
    READ(REFUND_COLUMNS);
}

void job_from_row(struct db_stmt *stmt, struct job_row *row)
{
    *row = (struct job_row){0};
    READ(JOB_COLUMNS);
}

/* ---- what a batch writes ---- */

void put_payments_new(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->payments_new.n; i++) {
        const struct payment_row *row = &b->payments_new.v[i];
        BIND(PAYMENT_COLUMNS);
    }
}

void put_payments(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->payments.n; i++) {
        const struct payment_row *row = &b->payments.v[i].row;
        ledger_arg_int(l, row->id.key);
        ledger_arg_int(l, row->payment);
        ledger_arg_int(l, b->payments.v[i].from);
        BIND(PAYMENT_CHANGES);
    }
}

void put_refunds_new(struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->refunds_new.n; i++) {
        const struct refund_row *row = &b->refunds_new.v[i];
        BIND(REFUND_COLUMNS);
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
        const struct refund_row *row = &b->refunds.v[i].row;
        if (b->refunds.v[i].is_dropped)
            continue;
        ledger_arg_int(l, row->booking);
        ledger_arg_int(l, row->refund);
        ledger_arg_int(l, b->refunds.v[i].from);
        BIND(REFUND_CHANGES);
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
        const struct job_row *row = &b->jobs_put.v[i];
        BIND(JOB_COLUMNS);
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
        const struct job_row *row = &b->jobs.v[i].row;
        if (b->jobs.v[i].is_deleted)
            continue;
        ledger_arg_int(l, row->booking);
        ledger_arg_int(l, row->job);
        BIND(JOB_CHANGES);
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
        ledger_arg(l, text_arg(w->event.id));
        ledger_arg(l, text_arg(w->event.type));
        ledger_arg_int(l, w->booking);
        ledger_arg_int(l, w->payment);
        ledger_arg(l, chars_arg(w->intent));
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
        column_bytes(stmt, 2, ret->secret, ID_SECRET_SIZE);
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
        column_bytes(stmt, at, entry->booking.secret, ID_SECRET_SIZE);
        column_bytes(stmt, at + 2, entry->payment.secret, ID_SECRET_SIZE);
        column_text(stmt, at + 3, entry->currency, sizeof entry->currency);
        column_text(stmt, at + 6, entry->job_error, sizeof entry->job_error);
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
        column_bytes(stmt, JOB_COLUMNS_N, entry->booking.secret, ID_SECRET_SIZE);
    }
    return status;
}

enum hf_status ledger_webhooks_prune(struct ledger *l, int64_t before, size_t limit, int64_t *ret_n,
                                     struct hf_err *err)
{
    const struct db_value args[] = {db_int(before), db_int((int64_t)limit)};
    return ledger_exec(l, ST_WEBHOOKS_PRUNE, args, ret_n, err);
}

/* ---- events ---- */

/* Adds what bookings with these prices cost, of which there are `n`. */
static enum hf_status add_types(struct db_stmt *stmt, int64_t n, struct event_revenue *ret,
                                struct hf_err *err)
{
    size_t len;
    const char *text = db_column_data(stmt, 3, &len);
    if (!text) { /* all places cost the same, and are of the first type */
        ret->by_type[0] += db_column_int(stmt, 1);
        return HF_OK;
    }
    struct price_run *runs = hf_alloc((len + 1) / 4 * sizeof *runs + 1);
    uint32_t n_runs = 0;
    bool is_sound = price_list_parse(text, len, runs, &n_runs);
    for (uint32_t i = 0; is_sound && i < n_runs; i++)
        ret->by_type[runs[i].type] += n * runs[i].n * runs[i].price;
    free(runs);
    return is_sound ? HF_OK : hf_err_set(err, HF_INTERNAL, "prices of a booking are damaged");
}

enum hf_status ledger_revenue(struct ledger *l, int64_t event, struct event_revenue *ret,
                              struct hf_err *err)
{
    struct db_stmt *stmt;
    const struct db_value args[] = {db_int(HOLD_KEY(event, 0)), db_int(HOLD_KEY(event + 1, 0))};
    bool is_row;
    *ret = (struct event_revenue){.has_types = ret->has_types};
    enum hf_status status = ledger_query(
        l, ret->has_types ? ST_EVENT_REVENUE_TYPES : ST_EVENT_REVENUE, args, &stmt, err);
    while (status == HF_OK && (status = ledger_next(stmt, &is_row, err)) == HF_OK && is_row) {
        int64_t n = db_column_int(stmt, 0);
        ret->bookings += n;
        ret->amount += db_column_int(stmt, 1);
        ret->refunded = db_column_int(stmt, 2);
        if (ret->has_types && (status = add_types(stmt, n, ret, err)) != HF_OK)
            stmt->driver->finish(stmt);
    }
    return status;
}

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
        column_bytes(stmt, 1, ret[(*ret_n)++].secret, ID_SECRET_SIZE);
    }
    return status;
}

enum hf_status ledger_events_cancelled(struct ledger *l, int64_t before, int64_t *ret,
                                       size_t *ret_n, struct hf_err *err)
{
    const struct db_value args[] = {db_int(before), db_int(CANCELLED_EVENTS_MAX)};
    return ledger_read_ints(l, ST_EVENTS_CANCELLED, args, CANCELLED_EVENTS_MAX, ret, ret_n, err);
}
