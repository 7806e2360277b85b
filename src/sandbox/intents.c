/* What operations do to an intent and its charges: the state machine that bank.h draws. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/bank.h"
#include "sandbox/refuse.h"

const char *const cancellation_reasons[] = {"duplicate", "fraudulent", "requested_by_customer",
                                            "abandoned", NULL};

static char *copy(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

struct intent *intent_create(struct bank *b, const struct intent_terms *terms)
{
    struct intent *i = bank_add_intent(b);
    i->account = terms->account;
    i->amount = terms->amount;
    (void)snprintf(i->currency, sizeof i->currency, "%s", terms->currency);
    i->manual_capture = terms->manual_capture;
    i->automatic_methods = terms->automatic_methods;
    i->description = copy(terms->description);
    i->receipt_email = copy(terms->receipt_email);
    i->return_url = copy(terms->return_url);
    metadata_copy(&i->metadata, terms->metadata);
    bank_emit(b, EVENT_INTENT_CREATED, i->id.key);
    return i;
}

void intent_set_method(struct bank *b, struct intent *i, const struct card *card, int64_t exp_month,
                       int64_t exp_year)
{
    i->method = (struct method){
        .card = card, .created_s = b->now_ms / 1000, .exp_month = exp_month, .exp_year = exp_year};
    i->method.id.key = i->id.key;
    random_bytes(&b->random, i->method.id.secret, sizeof i->method.id.secret);
    if (i->status == PI_REQUIRES_PAYMENT_METHOD)
        i->status = PI_REQUIRES_CONFIRMATION;
    bank_mark_intent(b, i);
}

/* ---- charging ---- */

/* The attempt failed: the buyer may try again with another card. */
static void fail_attempt(struct bank *b, struct intent *i, const struct decline *decline,
                         int64_t charge)
{
    i->error = decline;
    i->error_method = i->method;
    i->error_charge = charge;
    i->method = (struct method){0};
    i->status = PI_REQUIRES_PAYMENT_METHOD;
    bank_mark_intent(b, i);
    bank_emit(b, EVENT_INTENT_PAYMENT_FAILED, i->id.key);
}

static struct charge *charge_method(struct bank *b, struct intent *i)
{
    const struct card *card = i->method.card;
    struct charge *c = bank_add_charge(b);
    c->intent = i->id.key;
    c->previous = i->charge;
    c->amount = i->amount;
    c->method = i->method;
    c->decline = card->decline;
    c->is_captured = !c->decline && !i->manual_capture;
    c->captured = c->is_captured ? c->amount : 0;
    if (!c->decline && card->is_disputed) {
        c->dispute_at_ms = b->now_ms + b->later_ms;
        *vec_push(&b->undisputed_charges) = c->id.key;
    }
    i->charge = c->id.key;
    bank_mark_intent(b, i);
    return c;
}

/* Charges the intent's method.  Returns the decline, or NULL. */
static const struct decline *attempt(struct bank *b, struct intent *i)
{
    struct charge *c = charge_method(b, i);
    if (c->decline) {
        bank_emit(b, EVENT_CHARGE_FAILED, c->id.key);
        fail_attempt(b, i, c->decline, c->id.key);
        return c->decline;
    }
    i->error = NULL;
    if (i->manual_capture) {
        i->status = PI_REQUIRES_CAPTURE;
        i->capturable = i->amount;
    } else {
        i->status = PI_SUCCEEDED;
        i->received = i->amount;
    }
    bank_emit(b, EVENT_CHARGE_SUCCEEDED, c->id.key);
    bank_emit(b,
              i->manual_capture ? EVENT_INTENT_AMOUNT_CAPTURABLE_UPDATED : EVENT_INTENT_SUCCEEDED,
              i->id.key);
    return NULL;
}

void refuse_state(struct api_error *ret, const struct intent *i, const char *verb,
                  const char *because)
{
    refuse(ret, 400, "invalid_request_error", "payment_intent_unexpected_state", NULL,
           "You cannot %s this PaymentIntent because it has a status of %s.%s", verb,
           intent_status_names[i->status], because);
    ret->intent = i;
}

static void refuse_declined(struct api_error *ret, const struct intent *i,
                            const struct decline *decline, const struct charge *c)
{
    refuse(ret, 402, "card_error", decline->code, NULL, "%s", decline->message);
    ret->decline_code = decline->decline_code;
    ret->intent = i;
    ret->charge = c;
    ret->method = i->error_method;
}

static void begin_processing(struct bank *b, struct intent *i)
{
    i->status = PI_PROCESSING;
    i->error = NULL;
    i->settles_at_ms = b->now_ms + b->later_ms;
    *vec_push(&b->processing_intents) = i->id.key;
    bank_mark_intent(b, i);
    bank_emit(b, EVENT_INTENT_PROCESSING, i->id.key);
}

void intent_process(struct bank *b, struct intent *i)
{
    i->settles_at_ms = 0;
    (void)attempt(b, i);
}

bool intent_confirm(struct bank *b, struct intent *i, struct api_error *ret)
{
    if (i->status != PI_REQUIRES_PAYMENT_METHOD && i->status != PI_REQUIRES_CONFIRMATION &&
        i->status != PI_REQUIRES_ACTION) {
        refuse_state(ret, i, "confirm",
                     i->status == PI_SUCCEEDED ? " It has already succeeded after being previously "
                                                 "confirmed."
                                               : "");
        return false;
    }
    if (!i->method.card) {
        refuse_state(ret, i, "confirm",
                     " Provide a payment method: it is missing, or the one given was declined.");
        return false;
    }
    if (i->method.card->needs_action) {
        random_bytes(&b->random, i->action, sizeof i->action);
        i->status = PI_REQUIRES_ACTION;
        i->error = NULL;
        bank_mark_intent(b, i);
        bank_emit(b, EVENT_INTENT_REQUIRES_ACTION, i->id.key);
        return true;
    }
    if (b->processes) {
        begin_processing(b, i);
        return true;
    }
    const struct decline *decline = attempt(b, i);
    if (decline)
        refuse_declined(ret, i, decline, bank_charge(b, i->charge));
    return !decline;
}

bool intent_act(struct bank *b, struct intent *i, bool completed)
{
    if (i->status != PI_REQUIRES_ACTION)
        return false;
    if (completed)
        (void)attempt(b, i);
    else
        fail_attempt(b, i, &decline_authentication, 0);
    return true;
}

/* ---- capture and cancel ---- */

bool intent_capture(struct bank *b, struct intent *i, int64_t amount, struct api_error *ret)
{
    if (i->status != PI_REQUIRES_CAPTURE) {
        refuse_state(ret, i, "capture",
                     " Only a PaymentIntent with one of the following statuses may be captured: "
                     "requires_capture.");
        return false;
    }
    if (amount > i->capturable) {
        refuse(ret, 400, "invalid_request_error", "amount_too_large", "amount_to_capture",
               "The amount to capture must not exceed the amount that can be captured (%lld).",
               (long long)i->capturable);
        return false;
    }
    struct charge *c = bank_charge(b, i->charge);
    c->is_captured = true;
    c->captured = amount;
    i->received = amount;
    i->capturable = 0;
    i->status = PI_SUCCEEDED;
    bank_mark_charge(b, c);
    bank_mark_intent(b, i);
    bank_emit(b, EVENT_CHARGE_CAPTURED, c->id.key);
    bank_emit(b, EVENT_INTENT_SUCCEEDED, i->id.key);
    return true;
}

/* The card's issuer is told that the money will not be taken. */
static void release(struct bank *b, struct intent *i)
{
    struct charge *c = bank_charge(b, i->charge);
    c->is_released = true;
    c->dispute_at_ms = 0;
    bank_mark_charge(b, c);
    bank_emit(b, EVENT_CHARGE_REFUNDED, c->id.key);
}

bool intent_cancel(struct bank *b, struct intent *i, const char *reason, struct api_error *ret)
{
    if (i->status == PI_SUCCEEDED || i->status == PI_CANCELED || i->status == PI_PROCESSING) {
        refuse_state(ret, i, "cancel",
                     " Only a PaymentIntent with one of the following statuses may be canceled: "
                     "requires_payment_method, requires_capture, requires_confirmation, "
                     "requires_action.");
        return false;
    }
    if (i->status == PI_REQUIRES_CAPTURE)
        release(b, i);
    i->status = PI_CANCELED;
    i->capturable = 0;
    i->canceled_s = b->now_ms / 1000;
    i->cancellation_reason = reason;
    bank_mark_intent(b, i);
    bank_emit(b, EVENT_INTENT_CANCELED, i->id.key);
    return true;
}

bool intent_may_change(const struct intent *i, struct api_error *ret)
{
    if (i->status == PI_REQUIRES_PAYMENT_METHOD || i->status == PI_REQUIRES_CONFIRMATION ||
        i->status == PI_REQUIRES_ACTION)
        return true;
    refuse_state(ret, i, "update the amount of", "");
    return false;
}
