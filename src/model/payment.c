/* Words for the numbers of payment.h.  No state. */
#include "model/payment.h"

const char *notice_text(enum notice notice)
{
    static const char *const texts[] = {
        [NOTICE_BOOKING_CONFIRMED] = "booking.confirmed",
        [NOTICE_BOOKING_FAILED] = "booking.failed",
        [NOTICE_BOOKING_CANCELLED] = "booking.cancelled",
        [NOTICE_REFUND_SUCCEEDED] = "refund.succeeded",
        [NOTICE_REFUND_FAILED] = "refund.failed",
        [NOTICE_PAYMENT_DISPUTED] = "payment.disputed",
        [NOTICE_HOLD_EXPIRED] = "hold.expired",
        [NOTICE_WAITLIST_OFFERED] = "waitlist.offered",
        [NOTICE_WAITLIST_LAPSED] = "waitlist.lapsed",
        [NOTICE_WAITLIST_ENDED] = "waitlist.ended",
    };
    return notice < sizeof texts / sizeof *texts ? texts[notice] : NULL;
}

const char *job_kind_text(enum job_kind kind)
{
    static const char *const texts[] = {
        [JOB_REFUND] = "refund", [JOB_CANCEL] = "cancel", [JOB_CAPTURE] = "capture",
        [JOB_CREATE] = "create", [JOB_POLL] = "poll",     [JOB_NOTIFY] = "notify",
    };
    return kind < sizeof texts / sizeof *texts ? texts[kind] : NULL;
}

const char *refund_status_text(enum refund_status status)
{
    static const char *const texts[] = {
        [REFUND_OWED] = "owed",
        [REFUND_PENDING] = "pending",
        [REFUND_SUCCEEDED] = "succeeded",
        [REFUND_FAILED] = "failed",
    };
    return status < sizeof texts / sizeof *texts ? texts[status] : NULL;
}

const char *job_status_text(enum job_status status)
{
    static const char *const texts[] = {
        [JOB_OWED] = "pending", [JOB_DONE] = "delivered", [JOB_FAILED] = "failed"};
    return status < sizeof texts / sizeof *texts ? texts[status] : NULL;
}

void fact_close(struct fact *fact) { vec_close(&fact->refunds); }

void money_clear(struct money *money)
{
    vec_clear(&money->payments);
    vec_clear(&money->refunds);
    vec_clear(&money->jobs);
}

void money_close(struct money *money)
{
    vec_close(&money->payments);
    vec_close(&money->refunds);
    vec_close(&money->jobs);
}
