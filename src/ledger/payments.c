/* Payments, refunds, jobs and webhooks: rows into columns and back, and lists.  Batches read and
 * write them on the worker's connection; lists are read on a reader's.  jobs.c takes due jobs. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"

/* ---- columns ---- */

void column_text(struct db_stmt *stmt, int column, char *out, size_t size)
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

void column_bytes(struct db_stmt *stmt, int column, uint8_t *out, size_t size)
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
    column_bytes(stmt, 2, row->id.secret, ID_SECRET_SIZE);
    column_text(stmt, 5, row->currency, sizeof row->currency);
    column_text(stmt, 7, row->intent, sizeof row->intent);
    column_text(stmt, 8, row->client_secret, sizeof row->client_secret);
    column_text(stmt, 12, row->error.code, sizeof row->error.code);
    column_text(stmt, 13, row->error.decline_code, sizeof row->error.decline_code);
    column_text(stmt, 14, row->error.message, sizeof row->error.message);
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
    column_text(stmt, 6, row->provider, sizeof row->provider);
    column_text(stmt, 7, row->error, sizeof row->error);
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
    column_bytes(stmt, 8, row->key, JOB_KEY_SIZE);
    column_text(stmt, 16, row->error, sizeof row->error);
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
