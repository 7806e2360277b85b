/* Answers of the payment provider.  The input is the call, a status, headers up to an empty line,
 * and the body.  A fact comes only with the results that promise one, and its texts and numbers are
 * within their limits. */
#include "fuzz.h"

#include "checkout/stripe.h"

static const struct stripe_config config = {NULL, "sk_test_abc", "pk_test_abc"};

/* The payment is that of the corpus: key 5 with a secret of zeros. */
static const struct job_row job = {.payment = {.key = 5}, .refund = 77, .intent = "pi_1"};

static bool says(const struct fact *fact)
{
    return fact->state != INTENT_UNSAID || fact->refunds.n || fact->disputed || fact->asks ||
           fact->client_secret[0];
}

static void check(enum stripe_call call, const struct fact *fact,
                  const struct stripe_outcome *outcome)
{
    enum stripe_result result = outcome->result;
    hf_check(!says(fact) || result == STRIPE_DONE || result == STRIPE_REFUSED ||
             result == STRIPE_GONE);
    hf_check(result != STRIPE_GONE || fact->state == INTENT_ABSENT);
    hf_check((result == STRIPE_DONE) == (outcome->error.code[0] == '\0'));
    hf_check(fact->refunds.n <= REFUNDS_MAX);
    hf_check(fact->amount >= 0 && fact->amount <= STRIPE_AMOUNT_MAX);
    hf_check(fact->received >= 0 && fact->received <= STRIPE_AMOUNT_MAX);
    hf_check(fact->state != INTENT_CAPTURED || strlen(fact->currency) == 3);
    hf_check(outcome->retry_after_ms >= 0 && outcome->retry_after_ms <= STRIPE_RETRY_AFTER_MAX_MS);
    hf_check(outcome->next != CALL_LIST_INTENTS ||
             (call == CALL_LIST_INTENTS && outcome->cursor[0]));
    for (const char *c = outcome->error.message; *c; c++)
        hf_check((unsigned char)*c >= ' ' && *c != '@');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 301, 400, 402, 404, 409, 429, 500};
    if (size < 2)
        return 0;
    struct fact fact;
    struct stripe_outcome outcome;
    struct http_exchange x = {.response.status = statuses[data[1] % 8]};
    enum stripe_call call = CALL_CREATE + data[0] % (CALL_LIST_DISPUTES - CALL_CREATE + 1);
    char *text = fuzz_text(data + 2, size - 2), *at = text, *end;
    /* http_client.h promises headers without control characters. */
    for (; (end = strchr(at, '\n')) && end > at; at = end + 1) {
        buf_put(&x.response.headers, at, (size_t)(end - at));
        buf_char(&x.response.headers, '\0');
    }
    if (end)
        at++;
    buf_put(&x.response.body, at, size - 2 - (size_t)(at - text));
    buf_char(&x.response.body, '\0');
    x.response.body.len--;
    stripe_read(&config, call, &job, &x, &fact, &outcome);
    check(call, &fact, &outcome);
    fact_close(&fact);
    http_response_close(&x.response);
    free(text);
    return 0;
}
