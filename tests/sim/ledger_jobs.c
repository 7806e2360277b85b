/* What connections read about money from the simulated ledger, and the taking of due jobs.  Each
 * function is its statement in ledger/statements.h, and the code around it in ledger/payments.c. */
#include <stdlib.h>
#include <string.h>

#include "sim/tables.h"

/* ---- bookings and their money ---- */

enum hf_status ledger_money_read(struct ledger *l, int64_t booking, struct money *ret,
                                 struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status == HF_OK)
        sim_money_read(l->sim, booking, ret);
    return status;
}

enum hf_status ledger_booking_find(struct ledger *l, const struct id *id, struct booking_row *row,
                                   struct hf_err *err)
{
    enum hf_status status = ledger_booking_read(l, id->key, row, err);
    if (status != HF_OK || !row->id.key || id_secret_equal(row->id.secret, id->secret))
        return status;
    booking_row_close(row);
    for (size_t i = 0; i < l->sim->bookings_past.n && !row->id.key; i++) {
        const struct booking_row *past = &l->sim->bookings_past.v[i];
        if (past->id.key == id->key && id_secret_equal(past->id.secret, id->secret))
            *row = sim_booking_read(l->sim, past);
    }
    return HF_OK;
}

enum hf_status ledger_payment_find(struct ledger *l, const char *intent, struct id *ret,
                                   struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    *ret = (struct id){0};
    for (size_t i = 0; status == HF_OK && i < l->sim->payments.n; i++)
        if (*l->sim->payments.v[i].intent && strcmp(l->sim->payments.v[i].intent, intent) == 0)
            *ret = l->sim->payments.v[i].id;
    return status;
}

enum hf_status ledger_bookings_pending(struct ledger *l, int64_t event,
                                       void (*booking)(void *ctx, int64_t booking, int64_t payment),
                                       void *ctx, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    const struct sim_event *e = sim_event(l->sim, event);
    for (size_t i = 0; status == HF_OK && e && i < e->holds.n; i++)
        if (e->holds.v[i].booking.status == BOOKING_PENDING)
            booking(ctx, e->holds.v[i].booking.id.key, e->holds.v[i].booking.payment);
    return status;
}

/* ---- taking jobs ---- */

static bool is_call(const struct job_row *j)
{
    return j->status == JOB_OWED && j->kind < JOB_NOTIFY;
}

/* Does another call about the same payment come first, or is one under way? */
static bool is_behind(const struct sim_ledger *sim, const struct job_row *j, int64_t now)
{
    for (size_t i = 0; i < sim->jobs.n; i++) {
        const struct job_row *o = &sim->jobs.v[i];
        if (!is_call(o) || o->booking != j->booking || o->payment_no != j->payment_no ||
            o->job == j->job)
            continue;
        bool is_first = o->kind < j->kind || (o->kind == j->kind && o->job < j->job);
        if (o->leased_until > now || (o->due_at <= now && is_first))
            return true;
    }
    return false;
}

/* Of a booking's notifications, only the first is sent. */
static bool is_behind_notice(const struct sim_ledger *sim, const struct job_row *j)
{
    for (size_t i = 0; i < sim->jobs.n; i++) {
        const struct job_row *o = &sim->jobs.v[i];
        if (o->status == JOB_OWED && o->kind == JOB_NOTIFY && o->booking == j->booking &&
            o->job < j->job)
            return true;
    }
    return false;
}

static void add_payment(const struct sim_ledger *sim, struct job_row *row)
{
    const struct sim_hold *hold = sim_hold(sim, row->booking);
    const struct payment_row *p = sim_payment(sim, row->booking, row->payment_no);
    if (p) {
        row->payment = p->id;
        row->payment_status = p->status;
        row->captures_by_hand = p->captures_by_hand;
        memcpy(row->intent, p->intent, sizeof row->intent);
        memcpy(row->currency, p->currency, sizeof row->currency);
    }
    if (!hold) /* a notice about an entry of a waiting list */
        return;
    row->booked_at = hold->booking.created_at;
    row->hold_expires_at = hold->row.expires_at;
    if (hold->booking.email_len)
        memcpy(row->email, hold->booking.email, hold->booking.email_len);
    row->email[hold->booking.email_len] = '\0';
}

static int by_kind(const void *a, const void *b)
{
    const struct job_row *x = a, *y = b;
    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
                              : (x->due_at > y->due_at) - (x->due_at < y->due_at);
}

struct job_list {
    VEC(struct job_row) rows;
};

/* Sorts the list, and passes on up to `max` rows of it. */
static void pass_on(struct job_list *list, size_t max, struct job_row *ret, size_t *n)
{
    if (list->rows.n > 1)
        qsort(list->rows.v, list->rows.n, sizeof *list->rows.v, by_kind);
    for (size_t i = 0; i < list->rows.n && i < max; i++)
        ret[(*n)++] = list->rows.v[i];
    vec_close(&list->rows);
}

static void read_jobs(const struct sim_ledger *sim, const struct jobs_query *query, bool notices,
                      size_t max, struct job_row *ret, size_t *n)
{
    struct job_list list = {0};
    for (size_t i = 0; i < sim->jobs.n; i++) {
        const struct job_row *j = &sim->jobs.v[i];
        if (j->status != JOB_OWED || (j->kind == JOB_NOTIFY) != notices || j->due_at > query->now ||
            j->leased_until > query->now)
            continue;
        if (notices ? is_behind_notice(sim, j) : is_behind(sim, j, query->now))
            continue;
        struct job_row *row = vec_push(&list.rows);
        *row = *j;
        add_payment(sim, row);
    }
    pass_on(&list, max, ret, n);
}

static bool has_call(const struct sim_ledger *sim, const struct payment_row *p)
{
    for (size_t i = 0; i < sim->jobs.n; i++)
        if (is_call(&sim->jobs.v[i]) && sim->jobs.v[i].booking == p->id.key &&
            sim->jobs.v[i].payment_no == p->payment)
            return true;
    return false;
}

static void read_polls(const struct sim_ledger *sim, const struct jobs_query *query, size_t max,
                       struct job_row *ret, size_t *n)
{
    struct job_list list = {0};
    for (size_t i = 0; i < sim->payments.n; i++) {
        const struct payment_row *p = &sim->payments.v[i];
        if (p->poll_at <= 0 || !*p->intent || has_call(sim, p) ||
            (p->poll_at > query->now &&
             (p->updated_at > query->quiet_before || p->poll_at > query->now + 3600000)))
            continue;
        struct job_row *row = vec_push(&list.rows);
        *row = (struct job_row){.booking = p->id.key,
                                .payment_no = p->payment,
                                .amount = p->amount,
                                .due_at = p->poll_at,
                                .created_at = p->created_at,
                                .kind = JOB_POLL,
                                .status = JOB_OWED};
        add_payment(sim, row);
    }
    pass_on(&list, max, ret, n);
}

/* Takes up to `wanted` requests of this second's budget; returns how many. */
static size_t take_budget(struct ledger *l, const struct jobs_query *query, size_t wanted)
{
    int64_t second = query->now / 1000;
    if (l->sim->budget_second > second)
        return 0;
    int64_t used = l->sim->budget_second == second ? l->sim->budget_used : 0;
    int64_t left = query->rate > used ? query->rate - used : 0;
    size_t n = left < (int64_t)wanted ? (size_t)left : wanted;
    l->staged_second = second;
    l->staged_budget = (int64_t)n;
    return n;
}

/* Of `n_calls` calls, how many the budget allows; what was spent before is taken from it first. */
static size_t allowed_calls(struct ledger *l, const struct jobs_query *query, size_t n_calls)
{
    size_t spent = (size_t)query->spent;
    if (!query->rate || !n_calls)
        return n_calls;
    size_t taken = take_budget(l, query, n_calls + spent);
    return taken > spent ? taken - spent : 0;
}

/* Leases those of the rows that the budget allows. */
static enum hf_status lease_all(struct ledger *l, const struct jobs_query *query,
                                struct job_row *rows, size_t *n, size_t n_calls, struct hf_err *err)
{
    size_t kept = 0, allowed = allowed_calls(l, query, n_calls);
    for (const struct ledger *other = l->sim->connections; other; other = other->next)
        if (other != l && other->staged_budget && l->staged_budget)
            return hf_err_set(err, HF_CONFLICT, "another transaction has the budget");
    for (size_t i = 0; i < *n; i++) {
        bool is_poll = !rows[i].job;
        const struct sim_lease lease = {.is_poll = is_poll,
                                        .booking = rows[i].booking,
                                        .number = is_poll ? rows[i].payment_no : rows[i].job,
                                        .until = query->now + JOB_LEASE_MS,
                                        .now = query->now};
        if (i < n_calls && i >= allowed)
            continue;
        if (sim_lease_must_wait(l, &lease))
            return hf_err_set(err, HF_CONFLICT, "another transaction has the job");
        *vec_push(&l->staged_leases) = lease;
        rows[kept] = rows[i];
        rows[kept++].leased_until = lease.until;
    }
    *n = kept;
    return HF_OK;
}

static enum hf_status take(struct ledger *l, const struct jobs_query *query, struct job_row *ret,
                           size_t *ret_n, struct hf_err *err)
{
    size_t n = 0;
    read_jobs(l->sim, query, false, query->calls_max, ret, &n);
    read_polls(l->sim, query, query->calls_max - n, ret, &n);
    size_t n_calls = n;
    read_jobs(l->sim, query, true, query->notices_max, ret, &n);
    enum hf_status status =
        n && l->sim->has_others ? lease_all(l, query, ret, &n, n_calls, err) : HF_OK;
    *ret_n = n;
    return status;
}

enum hf_status ledger_jobs_take(struct ledger *l, const struct jobs_query *query,
                                struct job_row *ret, size_t *ret_n, struct hf_err *err)
{
    *ret_n = 0;
    if (!l->sim->has_others) {
        enum hf_status entered = sim_enter(l, SIM_READ, err);
        return entered == HF_OK ? take(l, query, ret, ret_n, err) : entered;
    }
    enum hf_status status = ledger_begin(l, err);
    if (status == HF_OK)
        status = take(l, query, ret, ret_n, err);
    if (status == HF_OK && *ret_n)
        status = ledger_commit(l, err);
    if (status != HF_OK || !*ret_n)
        ledger_rollback(l);
    if (status != HF_OK)
        *ret_n = 0;
    return status;
}

enum hf_status ledger_jobs_count(struct ledger *l, struct jobs_count ret[JOB_NOTIFY + 1],
                                 struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    memset(ret, 0, (JOB_NOTIFY + 1) * sizeof *ret);
    for (size_t i = 0; status == HF_OK && i < l->sim->jobs.n; i++) {
        const struct job_row *j = &l->sim->jobs.v[i];
        struct jobs_count *count = &ret[j->kind];
        if (j->status != JOB_OWED)
            continue;
        if (!count->n++ || j->created_at < count->oldest_at)
            count->oldest_at = j->created_at;
    }
    return status;
}

/* ---- lists ---- */

static int newest_refund(const void *a, const void *b)
{
    const struct refund_row *x = *(struct refund_row *const *)a,
                            *y = *(struct refund_row *const *)b;
    return (x->refund < y->refund) - (x->refund > y->refund);
}

enum hf_status ledger_refunds_list(struct ledger *l, int64_t before, enum refund_status refund,
                                   size_t limit, struct refund_entry *ret, size_t *ret_n,
                                   struct hf_err *err)
{
    struct sim_ledger *sim = l->sim;
    VEC(struct refund_row *) found = {0};
    enum hf_status status = sim_enter(l, SIM_READ, err);
    *ret_n = 0;
    for (size_t i = 0; status == HF_OK && i < sim->refunds.n; i++)
        if ((!before || sim->refunds.v[i].refund < before) &&
            (!refund || sim->refunds.v[i].status == refund))
            *vec_push(&found) = &sim->refunds.v[i];
    if (found.n > 1)
        qsort(found.v, found.n, sizeof *found.v, newest_refund);
    for (size_t i = 0; i < found.n && i < limit; i++) {
        const struct refund_row *f = found.v[i];
        const struct booking_row *booking = sim_booking_of(sim, f->booking, f->payment);
        const struct payment_row *p = sim_payment(sim, f->booking, f->payment);
        const struct job_row *job = sim_job(sim, f->booking, f->refund);
        struct refund_entry *entry = &ret[(*ret_n)++];
        *entry = (struct refund_entry){.row = *f,
                                       .booking = booking->id,
                                       .payment = p->id,
                                       .number = booking->number,
                                       .attempts = job ? job->attempts : 0,
                                       .due_at = job ? job->due_at : 0};
        memcpy(entry->currency, p->currency, sizeof entry->currency);
        if (job)
            memcpy(entry->job_error, job->error, sizeof entry->job_error);
    }
    vec_close(&found);
    return status;
}

static int newest_job(const void *a, const void *b)
{
    const struct job_row *x = *(struct job_row *const *)a, *y = *(struct job_row *const *)b;
    return (x->job < y->job) - (x->job > y->job);
}

enum hf_status ledger_notices_list(struct ledger *l, int64_t before, enum job_status job,
                                   size_t limit, struct notice_entry *ret, size_t *ret_n,
                                   struct hf_err *err)
{
    VEC(struct job_row *) found = {0};
    enum hf_status status = sim_enter(l, SIM_READ, err);
    *ret_n = 0;
    for (size_t i = 0; status == HF_OK && i < l->sim->jobs.n; i++) {
        struct job_row *j = &l->sim->jobs.v[i];
        if (j->kind == JOB_NOTIFY && (!before || j->job < before) && (!job || j->status == job))
            *vec_push(&found) = j;
    }
    if (found.n > 1)
        qsort(found.v, found.n, sizeof *found.v, newest_job);
    for (size_t i = 0; i < found.n && i < limit; i++) {
        const struct booking_row *booking =
            sim_booking_of(l->sim, found.v[i]->booking, found.v[i]->payment_no);
        ret[(*ret_n)++] = (struct notice_entry){
            .row = *found.v[i], .booking = booking->id, .number = booking->number};
    }
    vec_close(&found);
    return status;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Deletes all webhooks that are no younger than the last of the `limit` oldest. */
enum hf_status ledger_webhooks_prune(struct ledger *l, int64_t before, size_t limit, int64_t *ret_n,
                                     struct hf_err *err)
{
    struct sim_ledger *sim = l->sim;
    VEC(int64_t) times = {0};
    size_t kept = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < sim->webhooks.n; i++)
        *vec_push(&times) = sim->webhooks.v[i].at;
    if (times.n > 1)
        qsort(times.v, times.n, sizeof *times.v, by_time);
    int64_t last = times.n && limit ? times.v[(limit < times.n ? limit : times.n) - 1] : 0;
    for (size_t i = 0; i < sim->webhooks.n; i++)
        if (sim->webhooks.v[i].at >= before || sim->webhooks.v[i].at > last)
            sim->webhooks.v[kept++] = sim->webhooks.v[i];
    *ret_n = (int64_t)(sim->webhooks.n - kept);
    sim->webhooks.n = kept;
    vec_close(&times);
    return HF_OK;
}

/* ---- cancelled events ---- */

enum hf_status ledger_cancel_progress(struct ledger *l, int64_t event, struct cancel_progress *ret,
                                      struct hf_err *err)
{
    const struct sim_event *e = sim_event(l->sim, event);
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    *ret = (struct cancel_progress){0};
    for (size_t i = 0; e && i < e->holds.n; i++) {
        enum booking_status booking = e->holds.v[i].booking.status;
        ret->bookings_left += booking == BOOKING_PENDING || booking == BOOKING_CONFIRMED;
        ret->bookings_cancelled += booking == BOOKING_CANCELLED;
    }
    for (size_t i = 0; i < l->sim->refunds.n; i++) {
        const struct refund_row *f = &l->sim->refunds.v[i];
        if (HOLD_EVENT(f->booking) != event)
            continue;
        ret->refunds_owed += f->status == REFUND_OWED || f->status == REFUND_PENDING;
        ret->refunds_done += f->status == REFUND_SUCCEEDED;
        ret->refunds_failed += f->status == REFUND_FAILED;
    }
    return HF_OK;
}

enum hf_status ledger_revenue(struct ledger *l, int64_t event, struct event_revenue *ret,
                              struct hf_err *err)
{
    const struct sim_event *e = sim_event(l->sim, event);
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    *ret = (struct event_revenue){.has_types = ret->has_types};
    for (size_t i = 0; e && i < e->holds.n; i++) {
        const struct booking_row *booking = &e->holds.v[i].booking;
        if (booking->status != BOOKING_CONFIRMED)
            continue;
        ret->bookings++;
        ret->amount += booking->amount;
        const struct hold_row *hold = &e->holds.v[i].row;
        for (uint32_t k = 0; ret->has_types && k < hold->n_prices; k++)
            ret->by_type[hold->prices[k].type] += hold->prices[k].n * hold->prices[k].price;
        for (size_t k = 0; k < l->sim->refunds.n; k++) {
            const struct refund_row *f = &l->sim->refunds.v[k];
            if (f->booking == booking->id.key && f->payment == booking->payment &&
                f->status != REFUND_FAILED)
                ret->refunded += f->amount;
        }
    }
    return HF_OK;
}

enum hf_status ledger_bookings_live(struct ledger *l, int64_t event, int64_t after, size_t limit,
                                    struct id *ret, size_t *ret_n, struct hf_err *err)
{
    const struct sim_event *e = sim_event(l->sim, event);
    enum hf_status status = sim_enter(l, SIM_READ, err);
    *ret_n = 0;
    for (size_t i = 0; status == HF_OK && e && i < e->holds.n && *ret_n < limit; i++) {
        const struct booking_row *booking = &e->holds.v[i].booking;
        if (booking->id.key > after &&
            (booking->status == BOOKING_PENDING || booking->status == BOOKING_CONFIRMED))
            ret[(*ret_n)++] = booking->id;
    }
    return status;
}

enum hf_status ledger_booking_of_payment(struct ledger *l, int64_t booking, int64_t payment,
                                         struct booking_row *row, struct hf_err *err)
{
    (void)payment; /* nobody is notified here */
    return ledger_booking_read(l, booking, row, err);
}

enum hf_status ledger_events_cancelled(struct ledger *l, int64_t before, int64_t *ret,
                                       size_t *ret_n, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    *ret_n = 0;
    for (size_t i = l->sim->events.n; status == HF_OK && i-- > 1;)
        if (l->sim->events.v[i].def->status == EVENT_CANCELLED && (int64_t)i < before &&
            *ret_n < CANCELLED_EVENTS_MAX)
            ret[(*ret_n)++] = (int64_t)i;
    return status;
}
