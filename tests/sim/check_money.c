/* Claims about money on the tables of the simulated ledger; see check.h. */
#include <string.h>

#include "rules/payment.h"
#include "sim/check.h"
#include "sim/provider.h"
#include "sim/tables.h"

static enum booking_status booking_of(const struct sim_ledger *ledger, const struct payment_row *p)
{
    const struct booking_row *booking = &sim_hold(ledger, p->id.key)->booking;
    return booking->payment == p->payment ? booking->status : BOOKING_FAILED;
}

struct sums {
    int64_t returned, settled, owed, failed;
};

static struct sums sum_refunds(const struct sim_ledger *ledger, const struct payment_row *p)
{
    struct sums sums = {0};
    for (size_t i = 0; i < ledger->refunds.n; i++) {
        const struct refund_row *f = &ledger->refunds.v[i];
        if (f->booking != p->id.key || f->payment != p->payment)
            continue;
        sums.returned +=
            f->status == REFUND_PENDING || f->status == REFUND_SUCCEEDED ? f->amount : 0;
        sums.settled += f->status == REFUND_SUCCEEDED ? f->amount : 0;
        sums.owed += f->status == REFUND_OWED ? f->amount : 0;
        sums.failed += f->status == REFUND_FAILED && f->is_ours;
    }
    return sums;
}

/* A hold that ends cannot tell whether its payment has received money, so that such a payment may
 * have one cancel too many. */
static void check_intent_job(const struct sim_ledger *ledger, const struct payment_row *p)
{
    const struct job_row *job = sim_job(ledger, p->id.key, p->payment);
    enum hold_status hold = sim_hold(ledger, p->id.key)->row.status;
    enum job_kind wanted = payment_job(p->status, booking_of(ledger, p), hold);
    if (!wanted && p->received && job)
        wanted = JOB_CANCEL;
    assert_int_equal(job ? job->kind : 0, wanted);
    if (!job)
        return;
    assert_int_equal(job->status, JOB_OWED);
    assert_int_equal(job->payment_no, p->payment);
    if (job->kind == JOB_CREATE || job->kind == JOB_CAPTURE)
        assert_int_equal(job->amount, p->amount);
}

void check_money(const struct sim_ledger *ledger)
{
    size_t owed = 0, jobs = 0;
    for (size_t i = 0; i < ledger->payments.n; i++) {
        const struct payment_row *p = &ledger->payments.v[i];
        const struct sums sums = sum_refunds(ledger, p);
        bool confirmed = booking_of(ledger, p) == BOOKING_CONFIRMED;
        assert_true(!sums.owed || sums.returned + sums.owed <= p->received);
        if (p->received && !confirmed) /* I9 */
            assert_true(sums.returned + sums.owed >= p->received || sums.failed >= REFUND_TRIES);
        assert_true(!confirmed || (p->received == p->amount && !p->is_wrong));
        bool secret_is_of_use =
            payment_is_open(p->status) && booking_of(ledger, p) == BOOKING_PENDING;
        assert_true(secret_is_of_use || !*p->client_secret);
        check_intent_job(ledger, p);
    }
    for (size_t i = 0; i < ledger->refunds.n; i++) {
        const struct refund_row *f = &ledger->refunds.v[i];
        const struct job_row *job = sim_job(ledger, f->booking, f->refund);
        if (f->status != REFUND_OWED)
            continue;
        owed++;
        assert_true(f->is_ours && f->amount > 0);
        assert_non_null(job);
        assert_int_equal(job->kind, JOB_REFUND);
        assert_int_equal(job->refund, f->refund);
        assert_int_equal(job->payment_no, f->payment);
        assert_int_equal(job->amount, f->amount);
    }
    for (size_t i = 0; i < ledger->jobs.n; i++)
        jobs += ledger->jobs.v[i].kind == JOB_REFUND;
    assert_int_equal(jobs, owed);
}

static const struct payment_row *payment_of(const struct sim_ledger *ledger,
                                            const struct provider_intent *intent)
{
    for (size_t i = 0; i < ledger->payments.n; i++)
        if (ledger->payments.v[i].id.key == intent->payment.key &&
            id_secret_equal(ledger->payments.v[i].id.secret, intent->payment.secret))
            return &ledger->payments.v[i];
    return NULL;
}

void check_books(const struct sim_ledger *ledger, const struct provider *provider)
{
    int64_t captured = 0;
    check_money(ledger);
    for (size_t i = 0; i < provider->intents.n; i++) {
        const struct provider_intent *intent = &provider->intents.v[i];
        const struct payment_row *p = payment_of(ledger, intent);
        assert_non_null(p);
        assert_int_equal(p->received, intent->received);
        captured += intent->received;
        const struct sums sums = sum_refunds(ledger, p);
        assert_int_equal(sums.owed, 0);
        assert_int_equal(sums.returned, intent->received - provider_left(intent));
        assert_int_equal(sums.settled, sums.returned);
        assert_int_not_equal(booking_of(ledger, p), BOOKING_PENDING);
        if (booking_of(ledger, p) != BOOKING_CONFIRMED)
            assert_true(provider_left(intent) == 0 || sums.failed >= REFUND_TRIES);
        if (intent->is_shown) /* nobody can pay any more */
            assert_true(intent->state >= INTENT_CAPTURED);
    }
    for (size_t i = 0; i < ledger->payments.n; i++) {
        assert_false(payment_is_open(ledger->payments.v[i].status));
        captured -= ledger->payments.v[i].received;
    }
    assert_int_equal(captured, 0);
}
