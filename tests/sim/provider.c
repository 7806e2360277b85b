/* See provider.h. */
#include "sim/provider.h"

#include <stdio.h>
#include <string.h>

static uint64_t below(struct provider *p, uint64_t bound) { return random_below(p->random, bound); }

void provider_close(struct provider *p)
{
    vec_close(&p->intents);
    vec_close(&p->letters);
}

/* ---- webhooks ---- */

static struct letter *send(struct provider *p, const struct provider_intent *intent)
{
    struct letter *letter = vec_push(&p->letters);
    letter->payment = intent->payment;
    snprintf(letter->event.id, sizeof letter->event.id, "evt_%u", ++p->n_events);
    memcpy(letter->fact.intent, intent->id, sizeof letter->fact.intent);
    return letter;
}

static void send_state(struct provider *p, const struct provider_intent *intent)
{
    struct fact *f = &send(p, intent)->fact;
    f->state = intent->state;
    f->amount = intent->amount;
    f->received = intent->received;
    f->asks = intent->state < INTENT_AUTHORIZED;
}

static void send_refund(struct provider *p, const struct provider_intent *intent,
                        const struct provider_refund *refund)
{
    static const uint8_t dashboard[JOB_KEY_SIZE];
    struct letter *letter = send(p, intent);
    letter->has_refund = true;
    letter->refund = refund->fact;
    letter->must_arrive = refund->fact.status == REFUND_FAILED ||
                          memcmp(refund->key, dashboard, sizeof dashboard) == 0;
}

static void enter(struct provider *p, struct provider_intent *intent, enum intent_state state)
{
    intent->state = state;
    send_state(p, intent);
}

/* ---- calls ---- */

static struct provider_intent *find(struct provider *p, const struct job_row *job)
{
    for (size_t i = 0; i < p->intents.n; i++) {
        struct provider_intent *intent = &p->intents.v[i];
        if (intent->payment.key == job->payment.key &&
            id_secret_equal(intent->payment.secret, job->payment.secret))
            return intent;
    }
    return NULL;
}

/* A retrieve, and the list of its refunds. */
static void look(const struct provider_intent *intent, struct fact *ret)
{
    ret->is_current = true;
    ret->state = intent ? intent->state : INTENT_ABSENT;
    if (!intent)
        return;
    ret->amount = intent->amount;
    ret->received = intent->received;
    memcpy(ret->intent, intent->id, sizeof ret->intent);
    snprintf(ret->client_secret, sizeof ret->client_secret, "%s_secret", intent->id);
    for (size_t i = 0; i < intent->n_refunds; i++)
        *vec_push(&ret->refunds) = intent->refunds[i].fact;
}

static enum job_result create(struct provider *p, const struct job_row *job, int64_t now,
                              struct fact *ret)
{
    struct provider_intent *intent = find(p, job);
    if (!intent && job->checks_first && now < job->hold_expires_at)
        return JOB_RESULT_NEW_KEY;
    if (!intent && now < job->hold_expires_at) {
        intent = vec_push(&p->intents);
        intent->payment = job->payment;
        intent->amount = job->amount;
        intent->by_hand = job->captures_by_hand;
        memcpy(intent->key, job->key, JOB_KEY_SIZE);
        snprintf(intent->id, sizeof intent->id, "pi_%zu", p->intents.n);
        enter(p, intent, INTENT_REQUIRES_PAYMENT);
    }
    look(intent, ret);
    return JOB_RESULT_DONE;
}

static enum job_result refund(struct provider *p, const struct job_row *job, struct fact *ret)
{
    struct provider_intent *intent = find(p, job);
    hf_check(intent);
    for (size_t i = 0; i < intent->n_refunds; i++) {
        const struct provider_refund *made = &intent->refunds[i];
        bool same_key = memcmp(made->key, job->key, JOB_KEY_SIZE) == 0;
        if (same_key)
            hf_check(made->fact.amount == job->amount && made->fact.refund == job->refund);
        if (same_key || (job->checks_first && made->fact.refund == job->refund)) {
            look(intent, ret);
            return JOB_RESULT_DONE;
        }
    }
    if (job->checks_first || job->amount > provider_left(intent)) {
        look(intent, ret); /* "already refunded" is a fact, not an error */
        return JOB_RESULT_NEW_KEY;
    }
    hf_check(intent->n_refunds < INTENT_REFUNDS_MAX);
    struct provider_refund *made = &intent->refunds[intent->n_refunds++];
    memcpy(made->key, job->key, JOB_KEY_SIZE);
    made->fact = (struct refund_fact){
        .amount = job->amount, .refund = job->refund, .status = REFUND_PENDING};
    snprintf(made->fact.id, sizeof made->fact.id, "re_%u", ++p->n_refunds);
    send_refund(p, intent, made);
    look(intent, ret);
    return JOB_RESULT_DONE;
}

enum job_result provider_call(struct provider *p, const struct job_row *job, int64_t now,
                              struct fact *ret)
{
    *ret = (struct fact){0};
    struct provider_intent *intent = find(p, job);
    switch (job->kind) {
    case JOB_CREATE:
        return create(p, job, now, ret);
    case JOB_REFUND:
        return refund(p, job, ret);
    case JOB_CANCEL:
        if (intent && intent->state < INTENT_CAPTURED)
            enter(p, intent, INTENT_CANCELED);
        break;
    case JOB_CAPTURE:
        if (intent && intent->state == INTENT_AUTHORIZED) {
            intent->received = intent->amount;
            enter(p, intent, INTENT_CAPTURED);
        }
        ret->capture_refused = !intent || intent->state != INTENT_CAPTURED;
        break;
    case JOB_POLL:
    case JOB_NOTIFY:
        break;
    }
    look(intent, ret);
    return JOB_RESULT_DONE;
}

/* ---- what happens there by itself ---- */

void provider_pay(struct provider *p, struct provider_intent *intent)
{
    static const enum intent_state hesitates[] = {INTENT_REQUIRES_PAYMENT, INTENT_REQUIRES_ACTION,
                                                  INTENT_PROCESSING};
    if (intent->state >= INTENT_AUTHORIZED)
        return;
    if (below(p, 3) == 0) {
        enter(p, intent, hesitates[below(p, 3)]);
        return;
    }
    if (below(p, 12) == 0)
        intent->amount -= 10;
    intent->received = intent->by_hand ? 0 : intent->amount;
    enter(p, intent, intent->by_hand ? INTENT_AUTHORIZED : INTENT_CAPTURED);
}

void provider_dashboard(struct provider *p, struct provider_intent *intent)
{
    int64_t left = provider_left(intent);
    if (intent->state < INTENT_CAPTURED) {
        enter(p, intent, INTENT_CANCELED);
        return;
    }
    if (left <= 0 || intent->n_refunds >= INTENT_REFUNDS_MAX / 2)
        return;
    struct provider_refund *made = &intent->refunds[intent->n_refunds++];
    *made = (struct provider_refund){
        .fact = {.amount = 1 + (int64_t)below(p, (uint64_t)left), .status = REFUND_PENDING}};
    snprintf(made->fact.id, sizeof made->fact.id, "re_%u", ++p->n_refunds);
    send_refund(p, intent, made);
}

void provider_settle(struct provider *p, struct provider_intent *intent, bool may_fail)
{
    for (size_t i = 0; i < intent->n_refunds; i++) {
        struct provider_refund *refund = &intent->refunds[i];
        bool fails = may_fail && below(p, 8) == 0;
        if (refund->fact.status == REFUND_FAILED ||
            (refund->fact.status == REFUND_SUCCEEDED && !fails))
            continue;
        refund->fact.status = fails ? REFUND_FAILED : REFUND_SUCCEEDED;
        send_refund(p, intent, refund);
        return;
    }
}
