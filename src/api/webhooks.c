/* POST /v1/webhooks/stripe: the payment provider tells of an event.  The signature is checked on
 * the raw bytes; what the event says becomes a fact like any other (CMD_PAYMENT_UPDATE), stored
 * together with the event's id, and only then is it acknowledged.  Repetitions, and events that are
 * not about us, are acknowledged too, since the provider would send them again.  On HTTP threads.
 */
#include "checkout/webhook.h"

#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "checkout/checkout.h"
#include "checkout/signature.h"

static struct checkout *checkout_of(const struct call *c) { return call_api(c)->checkout; }

static void acknowledge(struct call *c, enum webhook_count what)
{
    checkout_count_webhook(checkout_of(c), what);
    buf_lit(&c->http.out, "{\"received\":true}");
    answer_out(&c->http, HTTP_OK, type_json);
}

static void webhook_stored(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct payment_update *op = command->update;
    if (op->alarms)
        checkout_alarm(checkout_of(c), "a payment is not as it was asked for");
    if (op->is_unknown && !op->is_repeat)
        checkout_alarm(checkout_of(c),
                       "a webhook is about a payment that the ledger does not know");
    acknowledge(c, op->is_repeat    ? WEBHOOKS_REPEATED
                   : op->is_unknown ? WEBHOOKS_PARKED
                                    : WEBHOOKS_STORED);
}

/* The event of the payment is loaded, or there is none of that number. */
static void store_webhook(struct request *r)
{
    struct call *c = call_of(r);
    struct webhook *w = c->webhook;
    int64_t key = HOLD_EVENT(w->payment.key);
    struct event *e = call_loaded_event(c, key);
    bool was_looked_up = c->command.kind == CMD_EVENT_LOAD;
    if (!e && !was_looked_up && key > 0 && key <= EVENT_KEY_MAX) {
        command_close(&c->command);
        c->command = (struct command){.kind = CMD_EVENT_LOAD, .event_key = key};
        call_submit(c, store_webhook);
        return;
    }
    if (!e && was_looked_up && c->command.verdict != VERDICT_OK &&
        c->command.verdict != VERDICT_NO_SUCH_EVENT) {
        call_answer(r);
        return;
    }
    struct payment_update *op = hf_alloc(sizeof *op);
    op->hold.id.key = w->payment.key;
    op->has_payment = true;
    op->payment = w->payment;
    op->fact = w->fact;
    w->fact = (struct fact){0};
    op->event = w->event;
    command_close(&c->command);
    c->command = (struct command){
        .kind = CMD_PAYMENT_UPDATE, .event = e, .actor = checkout_actor(checkout_of(c))};
    c->command.update = op;
    call_submit(c, webhook_stored);
}

/* A refund or a dispute names the intent only. */
static void payment_found(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    c->webhook->payment = c->command.payment_find.payment;
    if (!c->webhook->payment.key) {
        acknowledge(c, WEBHOOKS_FOREIGN);
        return;
    }
    store_webhook(r);
}

static bool is_signed(struct call *c)
{
    const struct checkout_config *config = checkout_settings(checkout_of(c));
    const struct request *r = &c->http;
    int64_t now_s = clock_wall_us(config->clock) / 1000000;
    return signature_check_stripe(request_header(r, "Stripe-Signature"), &config->webhook_secrets,
                                  r->body.data, r->body.len, now_s) == SIGNATURE_GOOD;
}

void webhooks_stripe(struct request *r)
{
    struct call *c = call_of(r);
    const struct checkout_config *config = checkout_settings(checkout_of(c));
    if (!is_signed(c)) {
        checkout_count_webhook(checkout_of(c), WEBHOOKS_FORGED);
        answer_problem(r, &problem_bad_signature, NULL);
        return;
    }
    c->webhook = hf_alloc(sizeof *c->webhook);
    struct webhook *w = c->webhook;
    switch (webhook_read(r->body.data, r->body.len, stripe_is_live(&config->stripe), w)) {
    case WEBHOOK_MALFORMED:
        checkout_count_webhook(checkout_of(c), WEBHOOKS_MALFORMED);
        call_invalid(c, "the body is not an event as Stripe sends it");
        return;
    case WEBHOOK_UNUSED:
        acknowledge(c, WEBHOOKS_UNUSED);
        return;
    case WEBHOOK_FOREIGN:
        acknowledge(c, WEBHOOKS_FOREIGN);
        return;
    case WEBHOOK_GOOD:
        break;
    }
    if (w->payment.key) {
        store_webhook(r);
        return;
    }
    c->command.kind = CMD_PAYMENT_FIND;
    memcpy(c->command.payment_find.intent, w->fact.intent, sizeof w->fact.intent);
    call_submit(c, payment_found);
}
