/* One job from its first call to the commit of its outcome; see checkout.h.  On the payment thread.
 *
 *   begin -> call -> (further calls) -> conclude: fact and report -> CMD_PAYMENT_UPDATE -> end
 *
 * A job whose call may have been made before, by a process that did not live to store the answer,
 * repeats it under the same idempotency key, so the provider acts once.  Where the key is of no use
 * any more the job looks first at what the provider has (checks_first). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash.h"
#include "base/hash.h"
#include "base/log.h"
#include "checkout/checkout_internal.h"

#define FOREIGN_DELAY_MS 60000 /* until a call is repeated whose answer was another's */
#define MISSING_MS (24 * 3600 * 1000LL)
#define DENIED_DELAY_MS 30000 /* until a call is repeated that our keys do not allow */

static void answered(struct http_exchange *x);

static struct work *work_of_exchange(struct http_exchange *x)
{
    return (struct work *)(void *)((char *)x - offsetof(struct work, x));
}

/* ---- which jobs run ---- */

static struct work **bucket(struct checkout *c, int64_t booking)
{
    return &c->buckets[hash_int((uint64_t)booking) & (WORK_BUCKETS - 1)];
}

bool work_is_running(const struct checkout *c, const struct job_row *job)
{
    const struct work *w = *bucket((struct checkout *)c, job->booking);
    for (; w; w = w->next) {
        bool same_sort = (w->job.kind == JOB_NOTIFY) == (job->kind == JOB_NOTIFY);
        if (w->job.booking == job->booking && same_sort &&
            (job->kind == JOB_NOTIFY || w->job.payment_no == job->payment_no))
            return true;
    }
    return false;
}

static void work_free(struct work *w)
{
    command_close(&w->errand.command);
    stripe_request_close(&w->request);
    notify_request_close(&w->notice);
    http_response_close(&w->x.response);
    buf_close(&w->body);
    fact_close(&w->fact);
    free(w);
}

/* A take that is under way may have read the job before its end was stored, and would start it
 * again; so the work stays in its bucket until the take has come back. */
static void work_end(struct work *w)
{
    struct checkout *c = w->errand.checkout;
    c->n_works--;
    w->next_ended = c->ended;
    c->ended = w;
    if (!c->is_taking)
        work_forget_ended(c);
}

void work_forget_ended(struct checkout *c)
{
    while (c->ended) {
        struct work *w = c->ended, **link = bucket(c, w->job.booking);
        c->ended = w->next_ended;
        while (*link != w)
            link = &(*link)->next;
        *link = w->next;
        work_free(w);
    }
}

void work_drop_all(struct checkout *c)
{
    for (size_t i = 0; i < WORK_BUCKETS; i++)
        while (c->buckets[i]) {
            struct work *w = c->buckets[i];
            c->buckets[i] = w->next;
            work_free(w);
        }
}

/* ---- storing what came of it ---- */

/* The payment of the job as the batch has left it; NULL if it is not among the booking's. */
static const struct payment_row *stored_payment(const struct work *w)
{
    const struct money *money = &w->errand.command.update->money;
    for (size_t i = 0; i < money->payments.n; i++)
        if (money->payments.v[i].payment == w->job.payment_no)
            return &money->payments.v[i];
    return NULL;
}

static void stored(struct errand *errand)
{
    struct work *w = (struct work *)errand;
    struct checkout *c = errand->checkout;
    const struct command *command = &errand->command;
    bool is_stored = command->verdict == VERDICT_OK;
    if (is_stored && command->update->alarms)
        checkout_alarm(c, "a payment is not as it was asked for");
    const struct payment_row *payment = is_stored ? stored_payment(w) : NULL;
    if (w->job.kind == JOB_CREATE && payment && payment->status != PAYMENT_CREATING)
        checkout_tell(c, w->job.booking, payment);
    if (is_stored)
        c->next_take_us = checkout_now_us(c); /* jobs behind this one may run now */
    work_end(w); /* a job whose outcome was not stored is taken again */
}

/* Submits the fact and the report, once the event is loaded. */
static void submit(struct work *w)
{
    struct command *command = &w->errand.command;
    struct payment_update *op = hf_alloc(sizeof *op);
    op->hold.id.key = w->job.booking;
    op->has_payment = w->job.payment.key != 0 && w->job.kind != JOB_NOTIFY;
    op->payment = w->job.payment;
    op->fact = w->fact;
    w->fact = (struct fact){0};
    op->report = w->report;
    struct event *event = command->pinned;
    *command = (struct command){.kind = CMD_PAYMENT_UPDATE,
                                .event = event,
                                .pinned = event,
                                .actor = w->errand.checkout->actor};
    command->update = op;
    errand_submit(&w->errand, stored);
}

static void loaded(struct errand *errand)
{
    struct work *w = (struct work *)errand;
    if (errand->command.verdict != VERDICT_OK) {
        work_end(w);
        return;
    }
    submit(w);
}

/* Makes sure that the event is in the view, then goes on with `then`. */
static void with_event(struct work *w, void (*then)(struct errand *errand))
{
    struct checkout *c = w->errand.checkout;
    struct command *command = &w->errand.command;
    int64_t key = HOLD_EVENT(w->job.booking);
    command_close(command);
    *command = (struct command){.kind = CMD_EVENT_LOAD, .event_key = key, .verdict = VERDICT_OK};
    command->event = command->pinned = engine_event_take(c->engine, key);
    if (command->event)
        then(&w->errand);
    else
        errand_submit(&w->errand, then);
}

static void report(struct work *w, enum job_result result, int64_t delay_ms, const char *error)
{
    if (w->job.job) {
        w->report = (struct job_report){.job = w->job.job,
                                        .kind = w->job.kind,
                                        .result = result,
                                        .leased_until = w->job.leased_until,
                                        .delay_ms = delay_ms};
        (void)snprintf(w->report.error, sizeof w->report.error, "%s", error ? error : "");
    }
    with_event(w, loaded); /* a poll that is no job says nothing if it fails */
}

/* ---- calls ---- */

static void call(struct work *w, enum stripe_call which, const char *cursor)
{
    struct checkout *c = w->errand.checkout;
    if (w->n_calls++)
        c->spent++;
    w->call = which;
    stripe_request_close(&w->request);
    stripe_request_init(&w->request, &c->config.stripe, &w->job, which, cursor);
    w->x.request = w->request.http;
    CRASH_POINT(call_begins);
    http_pool_start(c->pool, &w->x, answered);
}

static const char *error_text(const struct payment_error *e)
{
    return *e->message ? e->message : *e->code ? e->code : "the provider refused";
}

/* Nothing will become of the intent any more. */
static bool intent_is_decided(const struct fact *f)
{
    return f->state == INTENT_CAPTURED || f->state == INTENT_CANCELED || f->state == INTENT_ABSENT;
}

/* Tries again later, beginning with a look at what the provider has. */
static void look_again(struct work *w, const char *error)
{
    struct checkout *c = w->errand.checkout;
    report(w, JOB_RESULT_CHECK, stripe_backoff_ms(w->job.attempts, 0, &c->random), error);
}

static bool lists_refund(const struct fact *f, int64_t refund)
{
    for (size_t i = 0; i < f->refunds.n; i++)
        if (f->refunds.v[i].refund == refund)
            return true;
    return false;
}

static void conclude_create(struct work *w)
{
    if (w->call == CALL_LIST_INTENTS && w->fact.state == INTENT_UNSAID) {
        look_again(w, "the provider has more intents than can be searched");
        return;
    }
    if (w->call == CALL_LIST_INTENTS && w->fact.state == INTENT_ABSENT) {
        fact_close(&w->fact);
        w->fact = (struct fact){0};
        report(w, JOB_RESULT_NEW_KEY, 0, NULL);
        return;
    }
    if (w->was_refused)
        w->fact.error = w->refusal;
    if (w->was_refused)
        w->fact.is_current = true;
    report(w, JOB_RESULT_DONE, 0, w->was_refused ? error_text(&w->refusal) : NULL);
}

static void conclude_cancel(struct work *w)
{
    if (intent_is_decided(&w->fact))
        report(w, JOB_RESULT_DONE, 0, NULL);
    else if (w->call == CALL_LIST_INTENTS && w->fact.state == INTENT_UNSAID)
        look_again(w, "the provider has more intents than can be searched");
    else if (w->call != CALL_CANCEL && !w->was_refused) /* it looked first, and now acts */
        report(w, JOB_RESULT_NEW_KEY, 0, NULL);
    else
        look_again(w, error_text(&w->refusal));
}

static void conclude_capture(struct work *w)
{
    if (intent_is_decided(&w->fact)) {
        report(w, JOB_RESULT_DONE, 0, NULL);
    } else if (w->was_refused && w->call == CALL_RETRIEVE &&
               w->fact.state ==
                   INTENT_AUTHORIZED) { /* it is definite: looked at after the refusal */
        w->fact.capture_refused = true;
        w->fact.error = w->refusal;
        report(w, JOB_RESULT_DONE, 0, error_text(&w->refusal));
    } else if (w->call == CALL_RETRIEVE && !w->was_refused) {
        report(w, JOB_RESULT_NEW_KEY, 0, NULL);
    } else {
        look_again(w, error_text(&w->refusal));
    }
}

static void conclude_refund(struct work *w)
{
    if (lists_refund(&w->fact, w->job.refund))
        report(w, JOB_RESULT_DONE, 0, NULL);
    else if (w->was_refused)
        report(w, JOB_RESULT_FAILED, 0, error_text(&w->refusal));
    else if (w->call == CALL_REFUND)
        report(w, JOB_RESULT_CHECK, 1000, "the provider's answer names another refund");
    else
        report(w, JOB_RESULT_NEW_KEY, 0, NULL);
}

/* A refusal says nothing about the payment. */
static void conclude_poll(struct work *w)
{
    if (w->was_refused)
        look_again(w, error_text(&w->refusal));
    else if (w->call == CALL_LIST_INTENTS && w->fact.state == INTENT_UNSAID)
        look_again(w, "the provider has more intents than can be searched");
    else
        report(w, JOB_RESULT_DONE, 0, NULL);
}

static void conclude(struct work *w)
{
    switch (w->job.kind) {
    case JOB_CREATE:
        CRASH_POINT(create_answered);
        conclude_create(w);
        break;
    case JOB_CANCEL:
        CRASH_POINT(cancel_answered);
        conclude_cancel(w);
        break;
    case JOB_CAPTURE:
        CRASH_POINT(capture_answered);
        conclude_capture(w);
        break;
    case JOB_REFUND:
        CRASH_POINT(refund_answered);
        conclude_refund(w);
        break;
    case JOB_POLL:
        CRASH_POINT(poll_answered);
        conclude_poll(w);
        break;
    case JOB_NOTIFY:
        break;
    }
}

/* Adds what another call has shown to what is known. */
static void merge(struct fact *to, struct fact *f)
{
    int64_t disputed = f->disputed > to->disputed ? f->disputed : to->disputed;
    for (size_t i = 0; i < f->refunds.n; i++)
        *vec_push(&to->refunds) = f->refunds.v[i];
    vec_close(&f->refunds);
    if (f->state != INTENT_UNSAID) { /* not a list of refunds or disputes */
        memcpy(&f->refunds, &to->refunds, sizeof f->refunds);
        *to = *f;
    }
    to->disputed = disputed;
}

/* 401 and 403 are about our keys, not about the payment. */
static bool is_denied(const struct work *w)
{
    return w->x.result == HF_OK && (w->x.response.status == 401 || w->x.response.status == 403);
}

/* An intent that was made for us is gone.  Most likely our keys are those of another account, so
 * that is believed only after a day, and never about money that has been received.  Nor does it end
 * a poll that is owed: nothing has been compared. */
static bool is_missing(const struct work *w)
{
    const struct job_row *job = &w->job;
    int64_t age_ms = engine_now_ms(w->errand.checkout->engine) - job->created_at;
    bool is_owed_poll = job->kind == JOB_POLL && job->job;
    return *job->intent && (age_ms < MISSING_MS || job->kind == JOB_REFUND || is_owed_poll);
}

static void answered(struct http_exchange *x)
{
    struct work *w = work_of_exchange(x);
    struct checkout *c = w->errand.checkout;
    struct fact fact = {0};
    struct stripe_outcome o;
    stripe_read(&c->config.stripe, w->call, &w->job, x, &fact, &o);
    counter_add(c->metrics.calls[w->call][o.result == STRIPE_DONE], 1);
    if (is_denied(w)) {
        fact_close(&fact);
        checkout_alarm(c, "the payment provider does not accept our key");
        report(w, JOB_RESULT_RETRY, DENIED_DELAY_MS, error_text(&o.error));
        return;
    }
    if (o.result == STRIPE_RETRY || o.result == STRIPE_NEEDS_NEW_KEY) {
        fact_close(&fact);
        report(w, o.result == STRIPE_RETRY && !w->was_refused ? JOB_RESULT_RETRY : JOB_RESULT_CHECK,
               stripe_backoff_ms(w->job.attempts, o.retry_after_ms, &c->random),
               error_text(&o.error));
        return;
    }
    if (o.result == STRIPE_FOREIGN) {
        fact_close(&fact);
        checkout_alarm(c, "the payment provider answered about another payment");
        report(w, JOB_RESULT_CHECK, FOREIGN_DELAY_MS, "the answer is about another payment");
        return;
    }
    if (o.result == STRIPE_GONE && is_missing(w)) {
        fact_close(&fact);
        checkout_alarm(c, "the payment provider does not know an intent that it has made for us");
        report(w, JOB_RESULT_CHECK, FOREIGN_DELAY_MS, "the provider does not know the intent");
        return;
    }
    if (o.next == CALL_RETRIEVE && !*w->job.intent) /* a list has shown which it is */
        memcpy(w->job.intent, fact.intent, sizeof w->job.intent);
    merge(&w->fact, &fact);
    if (o.result == STRIPE_REFUSED && !w->was_refused) {
        w->was_refused = true;
        w->refusal = o.error;
    }
    if (o.next != CALL_NONE && w->n_calls < CALLS_PER_JOB_MAX)
        call(w, o.next, o.cursor);
    else
        conclude(w);
}

/* ---- notifications ---- */

static void delivered(struct http_exchange *x)
{
    struct work *w = work_of_exchange(x);
    struct checkout *c = w->errand.checkout;
    char error[ERROR_TEXT_SIZE] = "";
    enum notify_result result = notify_read(x, error);
    int64_t delay_ms = notify_delay_ms(w->job.attempts + 1, &x->response, &c->random);
    counter_add(c->metrics.notices[result == NOTIFY_DELIVERED], 1);
    CRASH_POINT(notice_answered);
    if (result == NOTIFY_DELIVERED)
        report(w, JOB_RESULT_DONE, 0, NULL);
    else if (result == NOTIFY_REFUSED || delay_ms < 0)
        report(w, JOB_RESULT_FAILED, 0, error);
    else
        report(w, JOB_RESULT_RETRY, delay_ms, error);
}

static void notice_read(struct errand *errand)
{
    struct work *w = (struct work *)errand;
    struct checkout *c = errand->checkout;
    if (errand->command.verdict != VERDICT_OK) {
        if (errand->command.verdict == VERDICT_NO_SUCH_BOOKING)
            report(w, JOB_RESULT_FAILED, 0, "the booking is gone");
        else if (errand->command.verdict == VERDICT_NO_SUCH_WAIT)
            report(w, JOB_RESULT_FAILED, 0, "the entry is gone");
        else
            work_end(w);
        return;
    }
    c->config.render_notice(&w->job, &errand->command, &w->body);
    notify_request_init(&w->notice, c->config.notify_url, &w->job, &w->body,
                        clock_wall_us(c->config.clock) / 1000000, &c->config.notify_secrets);
    w->x.request = w->notice.http;
    http_pool_start(c->pool, &w->x, delivered);
}

/* Reads what the notification is about. */
static void read_notice(struct errand *errand)
{
    struct work *w = (struct work *)errand;
    struct command *command = &errand->command;
    struct event *event = command->pinned;
    if (command->verdict != VERDICT_OK) {
        work_end(w);
        return;
    }
    if (notice_is_of_wait(w->job.notice)) {
        *command = (struct command){.kind = CMD_WAIT_GET, .event = event, .pinned = event};
        command->wait_get.id.key = w->job.booking;
        command->wait_get.is_internal = true;
    } else if (w->job.notice == NOTICE_HOLD_EXPIRED) {
        struct hold_page *page = hf_alloc(sizeof *page);
        page->limit = 1;
        page->before = w->job.booking + 1;
        *command = (struct command){.kind = CMD_HOLD_LIST, .event = event, .pinned = event};
        command->hold_list = page;
    } else {
        *command = (struct command){.kind = CMD_BOOKING_GET, .event = event, .pinned = event};
        command->booking_get.id.key = w->job.booking;
        command->booking_get.is_internal = true;
        command->booking_get.payment = w->job.payment_no;
    }
    errand_submit(errand, notice_read);
}

/* ---- beginning ---- */

static bool must_look_first(const struct checkout *c, const struct job_row *job)
{
    int64_t age_ms = job->key_used_at ? engine_now_ms(c->engine) - job->key_used_at : 0;
    return job->checks_first || age_ms > JOB_KEY_KEPT_MS;
}

/* The first call of a job; CALL_NONE: there is nothing to do now. */
static enum stripe_call first_call(const struct checkout *c, const struct job_row *job)
{
    bool looks = must_look_first(c, job);
    switch (job->kind) {
    case JOB_CREATE: /* no intent is made at or after the hold's end; that makes another job */
        if (engine_now_ms(c->engine) >= job->hold_expires_at)
            return CALL_NONE;
        return looks ? CALL_LIST_INTENTS : CALL_CREATE;
    case JOB_CANCEL:
        return !*job->intent ? CALL_LIST_INTENTS : looks ? CALL_RETRIEVE : CALL_CANCEL;
    case JOB_CAPTURE:
        return looks ? CALL_RETRIEVE : CALL_CAPTURE;
    case JOB_REFUND:
        return looks ? CALL_LIST_REFUNDS : CALL_REFUND;
    case JOB_POLL:
        return *job->intent ? CALL_RETRIEVE : CALL_LIST_INTENTS;
    case JOB_NOTIFY:
        break;
    }
    return CALL_NONE;
}

void work_begin(struct checkout *c, const struct job_row *job)
{
    enum stripe_call first = job->kind == JOB_NOTIFY ? CALL_NONE : first_call(c, job);
    struct work *w = hf_alloc(sizeof *w);
    w->errand.checkout = c;
    w->job = *job;
    struct work **at = bucket(c, job->booking);
    w->next = *at;
    *at = w;
    c->n_works++;
    if (job->kind == JOB_NOTIFY && c->config.notify_url)
        with_event(w, read_notice);
    else if (job->kind == JOB_NOTIFY)
        report(w, JOB_RESULT_FAILED, 0, "the server has no --notify any more");
    else if (first == CALL_NONE)
        report(w, JOB_RESULT_RETRY, 1000, "the hold has ended");
    else
        call(w, first, NULL);
}
