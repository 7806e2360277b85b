/* The metrics of payments, and alarms.  Any thread. */
#include <stdio.h>

#include "base/log.h"
#include "checkout/checkout_internal.h"

#define ALARM_EVERY_US 1000000 /* lines of the log */

void checkout_register_metrics(struct checkout *c)
{
    static const char *const calls[] = {[CALL_CREATE] = "create",
                                        [CALL_RETRIEVE] = "retrieve",
                                        [CALL_CAPTURE] = "capture",
                                        [CALL_CANCEL] = "cancel",
                                        [CALL_REFUND] = "refund",
                                        [CALL_LIST_INTENTS] = "list_intents",
                                        [CALL_LIST_REFUNDS] = "list_refunds",
                                        [CALL_LIST_DISPUTES] = "list_disputes"};
    static const char *const webhooks[] = {
        [WEBHOOKS_STORED] = "stored",      [WEBHOOKS_REPEATED] = "repeated",
        [WEBHOOKS_PARKED] = "parked",      [WEBHOOKS_UNUSED] = "unused",
        [WEBHOOKS_FOREIGN] = "foreign",    [WEBHOOKS_FORGED] = "forged",
        [WEBHOOKS_MALFORMED] = "malformed"};
    struct metrics *m = c->config.metrics;
    char label[96];
    for (int i = CALL_CREATE; i <= CALL_LIST_DISPUTES; i++)
        for (int ok = 0; ok <= 1; ok++) {
            (void)snprintf(label, sizeof label, "call=\"%s\",result=\"%s\"", calls[i],
                           ok ? "answered" : "failed");
            c->metrics.calls[i][ok] = metrics_counter(m, "holdfast_provider_calls_total", label,
                                                      "Calls to the payment provider");
        }
    for (int i = 0; i < WEBHOOKS_COUNTED; i++) {
        (void)snprintf(label, sizeof label, "result=\"%s\"", webhooks[i]);
        c->metrics.webhooks[i] = metrics_counter(m, "holdfast_webhooks_total", label,
                                                 "Webhooks of the payment provider, by outcome");
    }
    for (int ok = 0; ok <= 1; ok++)
        c->metrics.notices[ok] = metrics_counter(m, "holdfast_notifications_total",
                                                 ok ? "result=\"delivered\"" : "result=\"failed\"",
                                                 "Attempts to tell the shop, by outcome");
    c->metrics.alarms = metrics_counter(m, "holdfast_payment_alarms_total", NULL,
                                        "Times the provider did what it should not do; expected 0");
    for (int kind = JOB_REFUND; kind <= JOB_NOTIFY; kind++) {
        (void)snprintf(label, sizeof label, "kind=\"%s\"", job_kind_text((enum job_kind)kind));
        c->metrics.jobs[kind] =
            metrics_gauge(m, "holdfast_jobs_pending", label, "Jobs that are owed, by kind");
    }
    for (int kind = JOB_REFUND; kind <= JOB_NOTIFY; kind++) {
        (void)snprintf(label, sizeof label, "kind=\"%s\"", job_kind_text((enum job_kind)kind));
        c->metrics.oldest[kind] = metrics_gauge(m, "holdfast_job_oldest_seconds", label,
                                                "Age of the oldest owed job, by kind");
    }
    c->metrics.restore_unchecked = metrics_gauge(
        m, "holdfast_restore_unchecked", NULL,
        "Payments that have not been compared with the provider since the ledger was restored");
}

void checkout_count_webhook(struct checkout *c, enum webhook_count what)
{
    counter_add(c->metrics.webhooks[what], 1);
    if (what == WEBHOOKS_STORED || what == WEBHOOKS_REPEATED)
        atomic_store_explicit(&c->webhook_us, checkout_now_us(c), memory_order_relaxed);
}

void checkout_alarm(struct checkout *c, const char *what)
{
    int64_t now_us = checkout_now_us(c), last_us = atomic_load(&c->alarmed_us);
    counter_add(c->metrics.alarms, 1);
    if (last_us && now_us - last_us < ALARM_EVERY_US)
        return; /* the metric has them all */
    atomic_store(&c->alarmed_us, now_us);
    log_write(LOG_ERROR, "payment alarm", "what", what, NULL);
}
