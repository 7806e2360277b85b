/* See webhook.h. */
#include "checkout/webhook.h"

#include <string.h>

#include "checkout/stripe_object.h"

#define CREATED_MAX_S INT64_C(253402300799) /* the last second of the year 9999 */

/* ---- objects of events ---- */

/* Readers return false if the object is not what the type of the event promises. */
typedef bool read_fn(const json_t *object, struct webhook *w);

static bool read_intent_id(const json_t *object, struct webhook *w)
{
    if (object_is(object, "payment_intent"))
        return object_id(object, w->fact.intent);
    return object_id(json_object_get(object, "payment_intent"), w->fact.intent);
}

static bool read_money(const json_t *object, struct webhook *w)
{
    struct fact *fact = &w->fact;
    if (!object_intent(object, fact))
        return false;
    /* The buyer's page gets these from the answer to our own call. */
    explicit_bzero(fact->client_secret, sizeof fact->client_secret);
    fact->error = (struct payment_error){0};
    if (fact->state == INTENT_AUTHORIZED || fact->state == INTENT_CAPTURED ||
        fact->state == INTENT_CANCELED)
        return true;
    fact->state = INTENT_UNSAID;
    fact->asks = true;
    return true;
}

static bool read_question(const json_t *object, struct webhook *w)
{
    w->fact.asks = true;
    return read_intent_id(object, w);
}

static bool read_refund(const json_t *object, struct webhook *w)
{
    return object_refund(object, &w->fact) && read_intent_id(object, w);
}

static bool read_dispute(const json_t *object, struct webhook *w)
{
    return object_is(object, "dispute") &&
           object_amount(json_object_get(object, "amount"), &w->fact.disputed) &&
           read_intent_id(object, w);
}

static const struct {
    const char *type;
    read_fn *read;
} types[] = {
    {"payment_intent.succeeded", read_money},
    {"payment_intent.canceled", read_money},
    {"payment_intent.amount_capturable_updated", read_money},
    {"payment_intent.created", read_question},
    {"payment_intent.payment_failed", read_question},
    {"payment_intent.requires_action", read_question},
    {"payment_intent.processing", read_question},
    {"refund.created", read_refund},
    {"refund.updated", read_refund},
    {"refund.failed", read_refund},
    {"charge.refund.updated", read_refund},
    {"charge.refunded", read_question},
    {"charge.dispute.created", read_dispute},
};

static read_fn *reader_of(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].type) == 0)
            return types[i].read;
    return NULL;
}

/* ---- events ---- */

static bool read_envelope(const json_t *event, struct payment_event *ret)
{
    const json_t *created = json_object_get(event, "created");
    struct payment_event e = {0};
    if (!object_is(event, "event") || !object_id(event, e.id) ||
        !object_name(json_object_get(event, "type"), e.type, sizeof e.type) ||
        !json_is_integer(created) || json_integer_value(created) < 0 ||
        json_integer_value(created) > CREATED_MAX_S ||
        !json_is_boolean(json_object_get(event, "livemode")))
        return false;
    e.created_at = json_integer_value(created) * 1000;
    *ret = e;
    return true;
}

/* Events of accounts that are connected to ours name them. */
static bool is_foreign(const json_t *event, bool livemode)
{
    const json_t *account = json_object_get(event, "account");
    return json_is_true(json_object_get(event, "livemode")) != livemode ||
           (account && !json_is_null(account));
}

/* All our intents name their payment.  Refunds and disputes need not, but they name their intent,
 * unless the charge was made without one. */
static bool is_of_no_payment(const json_t *object, const struct id *payment)
{
    if (object_is(object, "payment_intent"))
        return payment->key == 0;
    return json_is_null(json_object_get(object, "payment_intent"));
}

static enum webhook_verdict read_event(const json_t *event, bool livemode, struct webhook *ret)
{
    const json_t *object = json_object_get(json_object_get(event, "data"), "object");
    if (!read_envelope(event, &ret->event))
        return WEBHOOK_MALFORMED;
    if (is_foreign(event, livemode))
        return WEBHOOK_FOREIGN;
    read_fn *read = reader_of(ret->event.type);
    ret->payment = object_payment(object);
    if (!read || is_of_no_payment(object, &ret->payment))
        return WEBHOOK_UNUSED;
    return read(object, ret) ? WEBHOOK_GOOD : WEBHOOK_MALFORMED;
}

enum webhook_verdict webhook_read(const char *body, size_t len, bool livemode, struct webhook *ret)
{
    *ret = (struct webhook){0};
    json_t *event = len <= WEBHOOK_LEN_MAX ? object_parse(body, len) : NULL;
    enum webhook_verdict verdict = event ? read_event(event, livemode, ret) : WEBHOOK_MALFORMED;
    json_decref(event);
    if (verdict == WEBHOOK_MALFORMED)
        webhook_close(ret);
    return verdict;
}

void webhook_close(struct webhook *webhook)
{
    fact_close(&webhook->fact);
    *webhook = (struct webhook){0};
}
