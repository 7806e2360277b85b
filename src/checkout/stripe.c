/* Reads Stripe's answers: see stripe.h.
 *
 * An answer that cannot be read proves nothing, so it is repeated rather than taken for a refusal.
 * The same goes for 4xx that are not about the payment: a wrong API key, a proxy on the way. */
#include "checkout/stripe.h"

#include <string.h>

#include "checkout/stripe_object.h"

/* What a 409 or 429 is delayed by if the provider advises against a repeat. */
#define DISCOURAGED_RETRY_MS 60000

/* An answer that is being read. */
struct stripe_answer {
    const struct stripe_config *config;
    enum stripe_call call;
    const struct job_row *job;
    int status;
    bool is_replay;             /* the provider repeats its answer to an earlier request */
    const char *retry_advice;   /* of Stripe-Should-Retry; NULL: none */
    const json_t *body, *error; /* NULL: there is no such object */
    struct fact *fact;
    struct stripe_outcome *outcome;
};

static void end(struct stripe_answer *a, enum stripe_result result, const char *code,
                const char *message)
{
    struct payment_error *error = &a->outcome->error;
    *error = (struct payment_error){0};
    a->outcome->result = result;
    strncpy(error->code, code, sizeof error->code - 1);
    object_message(message, error->message, sizeof error->message);
}

static void forget_fact(struct stripe_answer *a)
{
    fact_close(a->fact);
    *a->fact = (struct fact){0};
}

static void end_unreadable(struct stripe_answer *a)
{
    forget_fact(a);
    end(a, STRIPE_RETRY, "unreadable_answer", "the provider's answer could not be read");
}

static void end_foreign(struct stripe_answer *a)
{
    forget_fact(a);
    end(a, STRIPE_FOREIGN, "foreign_object",
        "the provider's answer is about a payment that is not this one");
}

/* ---- what succeeded ---- */

static bool is_of_payment(const json_t *object, const struct job_row *job)
{
    struct id payment = object_payment(object);
    return payment.key == job->payment.key && id_secret_equal(payment.secret, job->payment.secret);
}

static bool is_ours(const struct stripe_answer *a, const json_t *intent)
{
    char id[PROVIDER_ID_SIZE];
    const json_t *livemode = json_object_get(intent, "livemode");
    return json_is_boolean(livemode) && json_is_true(livemode) == stripe_is_live(a->config) &&
           is_of_payment(intent, a->job) && object_id(intent, id) &&
           (!a->job->intent[0] || strcmp(a->job->intent, id) == 0);
}

static bool is_about_money(const struct fact *fact)
{
    return fact->state == INTENT_AUTHORIZED || fact->state == INTENT_CAPTURED ||
           fact->state == INTENT_CANCELED;
}

/* Reads an intent, with the refunds of its charge if the answer has them.  Returns false if it has
 * ended with another result. */
static bool read_intent(struct stripe_answer *a, const json_t *intent)
{
    const json_t *charge = json_object_get(intent, "latest_charge");
    const json_t *refunds = json_object_get(charge, "refunds");
    bool has_more = false;
    if (!object_intent(intent, a->fact) ||
        (json_is_object(refunds) && !object_refunds(refunds, a->fact, &has_more))) {
        end_unreadable(a);
        return false;
    }
    if (!is_ours(a, intent)) {
        end_foreign(a);
        return false;
    }
    a->fact->is_current = !a->is_replay;
    a->fact->asks = a->is_replay && !is_about_money(a->fact);
    if (has_more)
        a->outcome->next = CALL_LIST_REFUNDS;
    else if (json_is_true(json_object_get(charge, "disputed")))
        a->outcome->next = CALL_LIST_DISPUTES;
    return true;
}

static void read_refund(struct stripe_answer *a)
{
    char intent[PROVIDER_ID_SIZE] = "";
    if (!object_refund(a->body, a->fact) ||
        !object_id(json_object_get(a->body, "payment_intent"), intent)) {
        end_unreadable(a);
    } else if (strcmp(intent, a->job->intent) != 0 ||
               a->fact->refunds.v[0].refund != a->job->refund) {
        end_foreign(a);
    } else {
        memcpy(a->fact->intent, intent, sizeof intent);
        a->fact->is_current = !a->is_replay;
    }
}

/* Finds the intent of the payment on this page.  A list does not show what was given back, so the
 * intent is retrieved before anything is concluded. */
static void find_intent(struct stripe_answer *a)
{
    const json_t *data = json_object_get(a->body, "data"), *intent;
    size_t i, n = json_array_size(data);
    bool has_more = json_is_true(json_object_get(a->body, "has_more"));
    if (!object_is(a->body, "list") || !json_is_array(data) ||
        (has_more && !object_id(json_array_get(data, n - 1), a->outcome->cursor))) {
        end_unreadable(a);
        return;
    }
    json_array_foreach(data, i, intent) if (is_of_payment(intent, a->job))
    {
        a->outcome->cursor[0] = '\0';
        if (read_intent(a, intent)) {
            a->fact->state = INTENT_UNSAID;
            a->outcome->next = CALL_RETRIEVE;
        }
        return;
    }
    if (has_more) {
        a->outcome->next = CALL_LIST_INTENTS;
        return;
    }
    a->fact->is_current = true;
    a->fact->state = INTENT_ABSENT;
}

static void read_refund_list(struct stripe_answer *a)
{
    bool has_more;
    if (!object_refunds(a->body, a->fact, &has_more)) {
        end_unreadable(a);
        return;
    }
    memcpy(a->fact->intent, a->job->intent, sizeof a->fact->intent);
    a->fact->is_current = true;
}

static void read_dispute_list(struct stripe_answer *a)
{
    const json_t *data = json_object_get(a->body, "data"), *dispute;
    size_t i;
    int64_t sum = 0, amount = 0;
    bool good = object_is(a->body, "list") && json_is_array(data) &&
                json_array_size(data) <= STRIPE_LIST_MAX;
    json_array_foreach(data, i, dispute)
    {
        good = good && object_amount(json_object_get(dispute, "amount"), &amount);
        sum += good ? amount : 0;
    }
    if (!good) {
        end_unreadable(a);
        return;
    }
    memcpy(a->fact->intent, a->job->intent, sizeof a->fact->intent);
    a->fact->is_current = true;
    a->fact->disputed = sum;
}

static void read_success(struct stripe_answer *a)
{
    a->outcome->result = STRIPE_DONE;
    switch (a->call) {
    case CALL_CREATE:
    case CALL_RETRIEVE:
    case CALL_CAPTURE:
    case CALL_CANCEL:
        (void)read_intent(a, a->body);
        return;
    case CALL_REFUND:
        read_refund(a);
        return;
    case CALL_LIST_INTENTS:
        find_intent(a);
        return;
    case CALL_LIST_REFUNDS:
        read_refund_list(a);
        return;
    case CALL_LIST_DISPUTES:
        read_dispute_list(a);
        return;
    case CALL_NONE:
        break;
    }
    hf_check_failed("a call", __FILE__, __LINE__);
}

/* ---- what failed ---- */

static bool has_text(const json_t *object, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value && strcmp(value, text) == 0;
}

static bool advises(const struct stripe_answer *a, const char *advice)
{
    return a->retry_advice && strcmp(a->retry_advice, advice) == 0;
}

static enum stripe_result judge(const struct stripe_answer *a)
{
    bool is_about_intent = a->call != CALL_CREATE && a->call != CALL_LIST_INTENTS;
    if (a->status >= 500)
        return a->is_replay || advises(a, "false") ? STRIPE_NEEDS_NEW_KEY : STRIPE_RETRY;
    if (!a->error || a->status < 400)
        return STRIPE_RETRY; /* it is not Stripe that answered */
    if (has_text(a->error, "type", "idempotency_error") && a->status != 409)
        return STRIPE_NEEDS_NEW_KEY;
    if (a->status == 401 || a->status == 403 || a->status == 409 || a->status == 429 ||
        advises(a, "true"))
        return STRIPE_RETRY;
    if (has_text(a->error, "code", "resource_missing") && is_about_intent)
        return STRIPE_GONE;
    return STRIPE_REFUSED;
}

/* A refusal says what to look at before anything is concluded from it.  The intent that comes with
 * an error is not enough: it does not show what has been given back. */
static void read_refusal(struct stripe_answer *a)
{
    if (a->call == CALL_REFUND) {
        a->outcome->next = CALL_LIST_REFUNDS;
    } else if (a->call == CALL_CAPTURE || a->call == CALL_CANCEL) {
        a->outcome->next = CALL_RETRIEVE;
    } else if (a->call == CALL_CREATE) {
        a->fact->is_current = true;
        a->fact->state = INTENT_ABSENT;
        a->fact->error = a->outcome->error;
    }
}

static void read_failure(struct stripe_answer *a)
{
    enum stripe_result result = judge(a);
    char message[64];
    if (a->error) {
        a->outcome->result = result;
        object_error(a->error, &a->outcome->error);
    } else {
        (void)snprintf(message, sizeof message, "the provider answered with HTTP status %d",
                       a->status);
        end(a, result, "http_error", message);
    }
    if (result == STRIPE_RETRY && advises(a, "false") &&
        a->outcome->retry_after_ms < DISCOURAGED_RETRY_MS)
        a->outcome->retry_after_ms = DISCOURAGED_RETRY_MS;
    if (result == STRIPE_REFUSED)
        read_refusal(a);
    if (result == STRIPE_GONE) {
        a->fact->is_current = true;
        a->fact->state = INTENT_ABSENT;
        memcpy(a->fact->intent, a->job->intent, sizeof a->fact->intent);
    }
}

void stripe_read(const struct stripe_config *config, enum stripe_call call,
                 const struct job_row *job, const struct http_exchange *x, struct fact *ret_fact,
                 struct stripe_outcome *ret)
{
    const struct http_response *response = &x->response;
    const char *replayed = http_response_header(response, "Idempotent-Replayed");
    struct stripe_answer a = {.config = config,
                              .call = call,
                              .job = job,
                              .status = response->status,
                              .is_replay = replayed && strcmp(replayed, "true") == 0,
                              .retry_advice = http_response_header(response, "Stripe-Should-Retry"),
                              .fact = ret_fact,
                              .outcome = ret};
    *ret_fact = (struct fact){0};
    *ret = (struct stripe_outcome){0};
    if (x->result != HF_OK) {
        end(&a, STRIPE_RETRY, "provider_unreachable", x->err.msg);
        return;
    }
    json_t *body = object_parse(response->body.data, response->body.len);
    const json_t *error = json_object_get(body, "error");
    a.body = body;
    a.error = json_is_string(json_object_get(error, "type")) ? error : NULL;
    ret->retry_after_ms = http_response_retry_after_ms(response, STRIPE_RETRY_AFTER_MAX_MS);
    if (a.status / 100 != 2)
        read_failure(&a);
    else if (body)
        read_success(&a);
    else
        end_unreadable(&a);
    json_decref(body);
}
