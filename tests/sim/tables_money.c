/* Payments, refunds, jobs and webhooks of the simulated ledger: the conditions of a batch's rows,
 * staging and storing.  ledger_jobs.c has most reads.  Each condition is that of the statement in
 * ledger/statements.h; a row that is named twice in one statement does not meet it, since
 * PostgreSQL changes such a row once. */
#include <string.h>

#include "sim/tables.h"

void sim_money_close(struct sim_ledger *sim)
{
    for (size_t i = 0; i < sim->bookings_past.n; i++)
        booking_row_close(&sim->bookings_past.v[i]);
    vec_close(&sim->bookings_past);
    vec_close(&sim->payments);
    vec_close(&sim->refunds);
    vec_close(&sim->jobs);
    vec_close(&sim->webhooks);
}

void sim_money_read(const struct sim_ledger *sim, int64_t booking, struct money *ret)
{
    for (size_t i = 0; i < sim->payments.n; i++)
        if (sim->payments.v[i].id.key == booking)
            *vec_push(&ret->payments) = sim->payments.v[i];
    for (size_t i = 0; i < sim->refunds.n; i++)
        if (sim->refunds.v[i].booking == booking)
            *vec_push(&ret->refunds) = sim->refunds.v[i];
    for (size_t i = 0; i < sim->jobs.n; i++)
        if (sim->jobs.v[i].booking == booking && sim->jobs.v[i].status == JOB_OWED)
            *vec_push(&ret->jobs) = sim->jobs.v[i];
}

/* ---- conditions ---- */

static void check_lock(const struct ledger *l, int64_t booking)
{
    const struct sim_event *e = sim_event(l->sim, HOLD_EVENT(booking));
    hf_check(e && e->locked_by == l);
}

/* An intent belongs to one payment: the index payments_intent. */
static bool has_own_intent(const struct sim_ledger *sim, const struct payment_row *p)
{
    for (size_t i = 0; i < sim->payments.n && *p->intent; i++)
        if (sim->payments.v[i].payment != p->payment &&
            strcmp(sim->payments.v[i].intent, p->intent) == 0)
            return false;
    return true;
}

bool sim_payments_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->payments_new.n; i++) {
        const struct payment_row *p = &b->payments_new.v[i];
        check_lock(l, p->id.key);
        if (sim_payment(l->sim, p->id.key, p->payment))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->payments_new.v[k].payment == p->payment)
                return false;
    }
    for (size_t i = 0; i < b->payments.n; i++) {
        const struct payment_write *w = &b->payments.v[i];
        check_lock(l, w->row.id.key);
        const struct payment_row *row = sim_payment(l->sim, w->row.id.key, w->row.payment);
        if (!row || row->status != w->from || !has_own_intent(l->sim, &w->row))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->payments.v[k].row.payment == w->row.payment)
                return false;
    }
    return true;
}

/* The refund as the statements before have left it. */
static const struct refund_row *find_refund(const struct ledger *l, const struct ledger_batch *b,
                                            const struct refund_row *f)
{
    for (size_t i = 0; i < b->refunds_new.n; i++)
        if (b->refunds_new.v[i].refund == f->refund)
            return &b->refunds_new.v[i];
    return sim_refund(l->sim, f->booking, f->refund);
}

bool sim_refunds_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->refunds_new.n; i++) {
        const struct refund_row *f = &b->refunds_new.v[i];
        check_lock(l, f->booking);
        if (sim_refund(l->sim, f->booking, f->refund))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->refunds_new.v[k].refund == f->refund)
                return false;
    }
    for (size_t i = 0; i < b->refunds.n; i++) {
        const struct refund_write *w = &b->refunds.v[i];
        check_lock(l, w->row.booking);
        const struct refund_row *row = find_refund(l, b, &w->row);
        if (!row || row->status != (w->is_dropped ? REFUND_OWED : w->from))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->refunds.v[k].row.refund == w->row.refund)
                return false;
    }
    return true;
}

bool sim_jobs_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->jobs_put.n; i++) {
        const struct job_row *put = &b->jobs_put.v[i];
        const struct job_row *row = sim_job(l->sim, put->booking, put->job);
        check_lock(l, put->booking);
        hf_check(!row || row->payment_no == put->payment_no); /* JOB_PUT leaves it as it is */
        for (size_t k = 0; k < b->jobs.n; k++)
            hf_check(b->jobs.v[k].row.job != put->job); /* which one would count? */
        for (size_t k = 0; k < i; k++)
            if (b->jobs_put.v[k].job == b->jobs_put.v[i].job)
                return false;
    }
    for (size_t i = 0; i < b->jobs.n; i++) {
        check_lock(l, b->jobs.v[i].row.booking);
        if (!sim_job(l->sim, b->jobs.v[i].row.booking, b->jobs.v[i].row.job))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->jobs.v[k].row.job == b->jobs.v[i].row.job &&
                b->jobs.v[k].is_deleted == b->jobs.v[i].is_deleted)
                return false;
    }
    return true;
}

bool sim_webhooks_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->webhooks.n; i++) {
        if (sim_webhook(l->sim, b->webhooks.v[i].event.id))
            return false;
        for (size_t k = 0; k < i; k++)
            if (strcmp(b->webhooks.v[k].event.id, b->webhooks.v[i].event.id) == 0)
                return false;
    }
    return true;
}

/* ---- locks of rows ---- */

static bool changes_leased(const struct ledger_batch *b, const struct sim_lease *lease)
{
    for (size_t i = 0; lease->is_poll && i < b->payments.n; i++)
        if (b->payments.v[i].row.payment == lease->number)
            return true;
    for (size_t i = 0; !lease->is_poll && i < b->jobs_put.n; i++)
        if (b->jobs_put.v[i].job == lease->number)
            return true;
    for (size_t i = 0; !lease->is_poll && i < b->jobs.n; i++)
        if (b->jobs.v[i].row.job == lease->number)
            return true;
    return false;
}

static bool same_webhook(const struct ledger_batch *a, const struct ledger_batch *b)
{
    for (size_t i = 0; i < a->webhooks.n; i++)
        for (size_t k = 0; k < b->webhooks.n; k++)
            if (strcmp(a->webhooks.v[i].event.id, b->webhooks.v[k].event.id) == 0)
                return true;
    return false;
}

bool sim_money_must_wait(const struct ledger *l, const struct ledger_batch *b)
{
    for (const struct ledger *other = l->sim->connections; other; other = other->next) {
        for (size_t i = 0; other != l && i < other->staged_leases.n; i++)
            if (changes_leased(b, &other->staged_leases.v[i]))
                return true;
        if (other != l && same_webhook(b, &other->staged))
            return true;
    }
    return false;
}

bool sim_lease_must_wait(const struct ledger *l, const struct sim_lease *lease)
{
    for (const struct ledger *other = l->sim->connections; other; other = other->next) {
        if (other == l)
            continue;
        if (changes_leased(&other->staged, lease))
            return true;
        for (size_t i = 0; i < other->staged_leases.n; i++)
            if (other->staged_leases.v[i].number == lease->number &&
                other->staged_leases.v[i].is_poll == lease->is_poll)
                return true;
    }
    return false;
}

/* ---- staging and storing ---- */

#define stage(list, from)                                                                          \
    for (size_t row_ = 0; row_ < (from)->n; row_++)                                                \
    *vec_push(list) = (from)->v[row_]

void sim_money_stage(struct ledger_batch *staged, const struct ledger_batch *b)
{
    stage(&staged->payments_new, &b->payments_new);
    stage(&staged->payments, &b->payments);
    stage(&staged->refunds_new, &b->refunds_new);
    stage(&staged->refunds, &b->refunds);
    stage(&staged->jobs_put, &b->jobs_put);
    stage(&staged->jobs, &b->jobs);
    stage(&staged->webhooks, &b->webhooks);
}

void sim_money_discard(struct ledger *l)
{
    vec_clear(&l->staged.payments_new);
    vec_clear(&l->staged.payments);
    vec_clear(&l->staged.refunds_new);
    vec_clear(&l->staged.refunds);
    vec_clear(&l->staged.jobs_put);
    vec_clear(&l->staged.jobs);
    vec_clear(&l->staged.webhooks);
    vec_clear(&l->staged_leases);
    l->staged_budget = 0;
}

void sim_money_free(struct ledger *l)
{
    vec_close(&l->staged.bookings_past);
    vec_close(&l->staged.payments_new);
    vec_close(&l->staged.payments);
    vec_close(&l->staged.refunds_new);
    vec_close(&l->staged.refunds);
    vec_close(&l->staged.jobs_put);
    vec_close(&l->staged.jobs);
    vec_close(&l->staged.webhooks);
    vec_close(&l->staged_leases);
}

/* PAYMENT_WRITE leaves the secret, the amount and what else was set at the insert. */
static void apply_payment(struct sim_ledger *sim, const struct payment_row *to)
{
    struct payment_row *row = sim_payment(sim, to->id.key, to->payment), before = *row;
    *row = *to;
    row->id = before.id;
    row->amount = before.amount;
    row->created_at = before.created_at;
    row->captures_by_hand = before.captures_by_hand;
    memcpy(row->currency, before.currency, sizeof row->currency);
}

static void apply_refund(struct sim_ledger *sim, const struct refund_write *w)
{
    struct refund_row *row = sim_refund(sim, w->row.booking, w->row.refund);
    if (w->is_dropped) {
        *row = sim->refunds.v[--sim->refunds.n];
        return;
    }
    row->status = w->row.status;
    row->amount = w->row.amount;
    row->updated_at = w->row.updated_at;
    memcpy(row->provider, w->row.provider, sizeof row->provider);
    memcpy(row->error, w->row.error, sizeof row->error);
}

/* JOB_PUT: a job in whose place it comes keeps its lease, unless the new row says otherwise. */
static void apply_put(struct sim_ledger *sim, const struct job_row *put)
{
    struct job_row *row = sim_job(sim, put->booking, put->job);
    if (!row) {
        *vec_push(&sim->jobs) = *put;
        return;
    }
    row->kind = put->kind;
    row->status = JOB_OWED;
    row->amount = put->amount;
    memcpy(row->key, put->key, JOB_KEY_SIZE);
    row->key_used_at = 0;
    row->attempts = 0;
    row->checks_first = put->checks_first;
    row->created_at = put->created_at;
    row->due_at = put->due_at;
    row->error[0] = '\0';
    if (put->leased_until < 0)
        row->leased_until = 0;
}

static void apply_job(struct sim_ledger *sim, const struct job_row *to)
{
    struct job_row *row = sim_job(sim, to->booking, to->job);
    row->status = to->status;
    memcpy(row->key, to->key, JOB_KEY_SIZE);
    row->key_used_at = to->key_used_at;
    row->attempts = to->attempts;
    row->checks_first = to->checks_first;
    row->due_at = to->due_at;
    row->leased_until = 0;
    row->ended_at = to->ended_at;
    memcpy(row->error, to->error, sizeof row->error);
}

static void apply_lease(struct sim_ledger *sim, const struct sim_lease *lease)
{
    if (lease->is_poll) {
        struct payment_row *row = sim_payment(sim, lease->booking, lease->number);
        row->poll_at = lease->until;
        row->updated_at = lease->now;
    } else {
        sim_job(sim, lease->booking, lease->number)->leased_until = lease->until;
    }
}

void sim_money_apply(struct ledger *l)
{
    struct sim_ledger *sim = l->sim;
    const struct ledger_batch *b = &l->staged;
    stage(&sim->payments, &b->payments_new);
    for (size_t i = 0; i < b->payments.n; i++)
        apply_payment(sim, &b->payments.v[i].row);
    stage(&sim->refunds, &b->refunds_new);
    for (size_t i = 0; i < b->refunds.n; i++)
        apply_refund(sim, &b->refunds.v[i]);
    for (size_t i = 0; i < b->jobs_put.n; i++)
        apply_put(sim, &b->jobs_put.v[i]);
    for (size_t i = 0; i < b->jobs.n; i++)
        if (!b->jobs.v[i].is_deleted)
            apply_job(sim, &b->jobs.v[i].row);
    for (size_t i = 0; i < b->jobs.n; i++) {
        const struct job_write *w = &b->jobs.v[i];
        struct job_row *row = w->is_deleted ? sim_job(sim, w->row.booking, w->row.job) : NULL;
        if (row)
            *row = sim->jobs.v[--sim->jobs.n];
    }
    stage(&sim->webhooks, &b->webhooks);
    for (size_t i = 0; i < l->staged_leases.n; i++)
        apply_lease(sim, &l->staged_leases.v[i]);
    if (l->staged_budget) {
        bool is_new = sim->budget_second < l->staged_second;
        sim->budget_used = l->staged_budget + (is_new ? 0 : sim->budget_used);
        sim->budget_second = l->staged_second;
    }
}
