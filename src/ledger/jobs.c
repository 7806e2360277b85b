/* Taking due jobs: which may run now, the budget of calls, and leases where servers share the
 * ledger.  On the connection of the reader of jobs. */
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger_internal.h"

/* JOB_PAYMENT_COLUMNS, which begin with column `at`. */
static void job_payment_from_row(struct db_stmt *stmt, int at, struct job_row *row)
{
    row->payment.key = db_column_int(stmt, at + 8) ? row->booking : 0;
    column_bytes(stmt, at, row->payment.secret, ID_SECRET_SIZE);
    column_text(stmt, at + 1, row->intent, sizeof row->intent);
    column_text(stmt, at + 2, row->currency, sizeof row->currency);
    row->payment_status = (enum payment_status)db_column_int(stmt, at + 3);
    row->captures_by_hand = db_column_int(stmt, at + 4) != 0;
    column_text(stmt, at + 5, row->email, sizeof row->email);
    row->booked_at = db_column_int(stmt, at + 6);
    row->hold_expires_at = db_column_int(stmt, at + 7);
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
    return row->job ? row->job : row->payment_no;
}

/* Polls that are no jobs come last, since they are leased by a statement of their own. */
static int lease_order(const void *a, const void *b)
{
    const struct job_row *x = a, *y = b;
    bool x_polls = !x->job, y_polls = !y->job;
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
    bool are_polls = n && !rows[0].job, is_row = false;
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
                                    .job = are_polls ? 0 : db_column_int(stmt, 1),
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
    while (n_jobs < *n && rows[n_jobs].job)
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
