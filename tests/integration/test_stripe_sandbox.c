/* The payment client (checkout/stripe.h) and the sandbox, each written after Stripe's documents,
 * understand one another: every call, on an intent that lives as a checkout's would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "checkout/stripe.h"
#include "http/listen.h"
#include "sandbox/sandbox.h"

static struct sandbox *sandbox;

static struct {
    struct http_client *client;
    struct stripe_config config;
    struct job_row job;
    struct fact fact;
    struct stripe_outcome outcome;
    char secret_key[32], publishable_key[32], authorization[48];
    uint8_t keys; /* how many idempotency keys have been used */
} t;

static int start(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct sandbox_config config = {.clock = &clock_system};
    struct listen_address address;
    if (!listen_parse("127.0.0.1:0", &address, &err) ||
        !listen_open(&address, &config.listen_fd, &err) ||
        sandbox_start(&config, &sandbox, &err) != HF_OK) {
        print_error("%s\n", err.msg);
        return 1;
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    sandbox_stop(sandbox);
    return 0;
}

/* Each claim has an account of its own. */
static int set_up(void **state)
{
    static int accounts;
    struct hf_err err = {0};
    (void)state;
    memset(&t, 0, sizeof t);
    t.client = http_client_new(NULL);
    accounts++;
    snprintf(t.secret_key, sizeof t.secret_key, "sk_test_%d", accounts);
    snprintf(t.publishable_key, sizeof t.publishable_key, "pk_test_%d", accounts);
    snprintf(t.authorization, sizeof t.authorization, "Bearer %s", t.secret_key);
    t.config = (struct stripe_config){sandbox_url(sandbox), t.secret_key, t.publishable_key};
    assert_true(stripe_check_config(&t.config, &err));
    int64_t now_ms = clock_wall_us(&clock_system) / 1000;
    t.job = (struct job_row){.amount = 13000,
                             .refund = 77,
                             .payment = {.key = 5, .secret = {1, 2, 3}},
                             .currency = "eur",
                             .email = "ann@example.org",
                             .booked_at = now_ms,
                             .hold_expires_at = now_ms + 480000};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fact_close(&t.fact);
    http_client_free(t.client);
    return 0;
}

/* Makes a call; a new one has a key of its own. */
static void repeat(enum stripe_call call)
{
    struct stripe_request request;
    struct http_exchange x = {0};
    char cursor[PROVIDER_ID_SIZE];
    memcpy(cursor, t.outcome.cursor, sizeof cursor);
    stripe_request_init(&request, &t.config, &t.job, call, cursor);
    x.request = request.http;
    http_client_run(t.client, &x, 1);
    fact_close(&t.fact);
    stripe_read(&t.config, call, &t.job, &x, &t.fact, &t.outcome);
    stripe_request_close(&request);
    http_response_close(&x.response);
}

static void call(enum stripe_call which)
{
    t.job.key[0] = ++t.keys;
    t.outcome.cursor[0] = '\0';
    repeat(which);
}

static void assert_fact(enum intent_state state)
{
    if (t.outcome.result != STRIPE_DONE)
        fail_msg("%d %s %s", (int)t.outcome.result, t.outcome.error.code, t.outcome.error.message);
    assert_int_equal(t.fact.state, state);
}

static void create(void)
{
    t.job.intent[0] = '\0';
    call(CALL_CREATE);
    assert_fact(INTENT_REQUIRES_PAYMENT);
    assert_true(t.fact.is_current);
    assert_int_equal(t.fact.amount, t.job.amount);
    assert_string_equal(t.fact.currency, "eur");
    assert_string_not_equal(t.fact.client_secret, "");
    memcpy(t.job.intent, t.fact.intent, sizeof t.job.intent);
}

static int post(const char *path, const char *body)
{
    char url[256];
    struct http_response response = {0};
    const struct http_header headers[] = {
        {"Authorization", t.authorization},
        {"Content-Type",
         body[0] == '{' ? "application/json" : "application/x-www-form-urlencoded"}};
    snprintf(url, sizeof url, "%s%s", t.config.api, path);
    const struct http_request request = {.method = "POST",
                                         .url = url,
                                         .headers = headers,
                                         .n_headers = 2,
                                         .body = body,
                                         .body_len = strlen(body)};
    assert_int_equal(http_client_call(t.client, &request, &response, NULL), HF_OK);
    int status = response.status;
    http_response_close(&response);
    return status;
}

static int pay(const char *method)
{
    char path[128], body[128];
    snprintf(path, sizeof path, "/v1/payment_intents/%s/confirm", t.job.intent);
    snprintf(body, sizeof body, "payment_method=%s&return_url=http://127.0.0.1/", method);
    return post(path, body);
}

/* ---- claims ---- */

static void an_intent_is_paid_and_refunded(void **state)
{
    (void)state;
    create();
    call(CALL_RETRIEVE);
    assert_fact(INTENT_REQUIRES_PAYMENT);
    assert_int_equal(pay("pm_card_visa"), 200);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_CAPTURED);
    assert_int_equal(t.fact.received, 13000);
    assert_int_equal(t.fact.refunds.n, 0);
    t.job.amount = 3000;
    call(CALL_REFUND);
    assert_fact(INTENT_UNSAID);
    assert_int_equal(t.fact.refunds.n, 1);
    assert_int_equal(t.fact.refunds.v[0].amount, 3000);
    assert_int_equal(t.fact.refunds.v[0].refund, 77);
    t.job.amount = 10000;
    t.job.refund = 78;
    call(CALL_REFUND);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_CAPTURED);
    assert_int_equal(t.fact.refunds.n, 2);
    call(CALL_LIST_REFUNDS);
    assert_fact(INTENT_UNSAID);
    assert_int_equal(t.fact.refunds.n, 2);
    assert_int_equal(t.fact.refunds.v[0].refund + t.fact.refunds.v[1].refund, 77 + 78);
    /* There is nothing left to refund. */
    call(CALL_REFUND);
    assert_int_equal(t.outcome.result, STRIPE_REFUSED);
    assert_string_equal(t.outcome.error.code, "charge_already_refunded");
    assert_int_equal(t.outcome.next, CALL_LIST_REFUNDS);
}

static void an_authorized_card_is_captured_once(void **state)
{
    (void)state;
    t.job.captures_by_hand = true;
    create();
    assert_int_equal(pay("pm_card_visa"), 200);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_AUTHORIZED);
    call(CALL_CAPTURE);
    assert_fact(INTENT_CAPTURED);
    assert_true(t.fact.is_current);
    repeat(CALL_CAPTURE);
    assert_fact(INTENT_CAPTURED);
    assert_false(t.fact.is_current);
    call(CALL_CANCEL);
    assert_int_equal(t.outcome.result, STRIPE_REFUSED);
    assert_string_equal(t.outcome.error.code, "payment_intent_unexpected_state");
    assert_int_equal(t.outcome.next, CALL_RETRIEVE);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_CAPTURED);
    assert_int_equal(t.fact.received, 13000);
}

static void an_intent_is_canceled(void **state)
{
    (void)state;
    create();
    call(CALL_CANCEL);
    assert_fact(INTENT_CANCELED);
    call(CALL_CAPTURE);
    assert_int_equal(t.outcome.result, STRIPE_REFUSED);
    assert_int_equal(t.outcome.next, CALL_RETRIEVE);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_CANCELED);
}

static void a_decline_is_seen(void **state)
{
    (void)state;
    create();
    assert_int_equal(pay("pm_card_visa_chargeDeclinedInsufficientFunds"), 402);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_REQUIRES_PAYMENT);
    assert_string_equal(t.fact.error.code, "card_declined");
    assert_string_equal(t.fact.error.decline_code, "insufficient_funds");
    assert_string_not_equal(t.fact.error.message, "");
}

static void a_key_makes_one_intent_however_often_it_is_sent(void **state)
{
    (void)state;
    create();
    char first[PROVIDER_ID_SIZE];
    memcpy(first, t.job.intent, sizeof first);
    t.job.intent[0] = '\0';
    repeat(CALL_CREATE);
    assert_fact(INTENT_REQUIRES_PAYMENT);
    assert_string_equal(t.fact.intent, first);
    assert_true(!t.fact.is_current && t.fact.asks);
    t.job.amount++;
    repeat(CALL_CREATE);
    assert_int_equal(t.outcome.result, STRIPE_NEEDS_NEW_KEY);
}

static void a_lost_intent_is_found_among_others(void **state)
{
    (void)state;
    create();
    char lost[PROVIDER_ID_SIZE];
    memcpy(lost, t.job.intent, sizeof lost);
    struct id payment = t.job.payment;
    for (int i = 0; i < STRIPE_LIST_MAX + 10; i++) {
        t.job.payment.key++;
        create();
    }
    t.job.payment = payment;
    t.job.intent[0] = '\0';
    call(CALL_LIST_INTENTS);
    assert_fact(INTENT_UNSAID);
    assert_int_equal(t.outcome.next, CALL_LIST_INTENTS);
    repeat(CALL_LIST_INTENTS);
    assert_int_equal(t.outcome.next, CALL_RETRIEVE);
    assert_string_equal(t.fact.intent, lost);
    memcpy(t.job.intent, lost, sizeof lost);
    call(CALL_RETRIEVE);
    assert_fact(INTENT_REQUIRES_PAYMENT);
    assert_string_not_equal(t.fact.client_secret, "");
    t.job.intent[0] = '\0';
    t.job.payment.secret[0] ^= 1;
    call(CALL_LIST_INTENTS);
    repeat(CALL_LIST_INTENTS);
    assert_fact(INTENT_ABSENT);
    assert_int_equal(t.outcome.next, CALL_NONE);
}

static void refusals_and_absence_are_told_apart(void **state)
{
    (void)state;
    strcpy(t.job.intent, "pi_that_never_was");
    call(CALL_RETRIEVE);
    assert_int_equal(t.outcome.result, STRIPE_GONE);
    call(CALL_REFUND);
    assert_int_equal(t.outcome.result, STRIPE_GONE);
    t.job.intent[0] = '\0';
    t.job.amount = stripe_minimum("eur") - 1;
    call(CALL_CREATE);
    assert_int_equal(t.outcome.result, STRIPE_REFUSED);
    assert_string_equal(t.outcome.error.code, "amount_too_small");
    t.job.amount++;
    create();
    t.config.secret_key = "sk_live_wrong";
    call(CALL_RETRIEVE);
    assert_int_equal(t.outcome.result, STRIPE_RETRY);
}

static void client_and_sandbox_know_the_same_minimums(void **state)
{
    (void)state;
    static const char currencies[][4] = {"aed", "aud", "bgn", "brl", "cad", "chf", "czk", "dkk",
                                         "eur", "gbp", "hkd", "huf", "inr", "jpy", "mxn", "myr",
                                         "nok", "nzd", "pln", "ron", "sek", "sgd", "thb", "usd"};
    for (size_t i = 0; i < sizeof currencies / sizeof *currencies; i++) {
        memcpy(t.job.currency, currencies[i], 4);
        t.job.amount = stripe_minimum(currencies[i]);
        call(CALL_CREATE);
        assert_fact(INTENT_REQUIRES_PAYMENT);
        t.job.amount--;
        call(CALL_CREATE);
        if (t.outcome.result != STRIPE_REFUSED)
            fail_msg("%s: %d is enough", currencies[i], (int)t.job.amount);
    }
}

static void failures_of_the_provider_are_judged_by_its_headers(void **state)
{
    (void)state;
    assert_int_equal(post("/sandbox/faults",
                          "{\"fail_next\":{\"route\":\"create\",\"mode\":\"500\","
                          "\"times\":1}}"),
                     200);
    call(CALL_CREATE);
    assert_int_equal(t.outcome.result, STRIPE_RETRY);
    repeat(CALL_CREATE);
    assert_int_equal(t.outcome.result, STRIPE_NEEDS_NEW_KEY);
    assert_int_equal(post("/sandbox/faults",
                          "{\"fail_next\":{\"route\":\"create\",\"mode\":\"429\","
                          "\"times\":1}}"),
                     200);
    call(CALL_CREATE);
    assert_int_equal(t.outcome.result, STRIPE_RETRY);
    repeat(CALL_CREATE);
    assert_fact(INTENT_REQUIRES_PAYMENT);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(an_intent_is_paid_and_refunded),
        CLAIM(an_authorized_card_is_captured_once),
        CLAIM(an_intent_is_canceled),
        CLAIM(a_decline_is_seen),
        CLAIM(a_key_makes_one_intent_however_often_it_is_sent),
        CLAIM(a_lost_intent_is_found_among_others),
        CLAIM(refusals_and_absence_are_told_apart),
        CLAIM(client_and_sandbox_know_the_same_minimums),
        CLAIM(failures_of_the_provider_are_judged_by_its_headers),
    };
    return cmocka_run_group_tests_name("stripe_sandbox", tests, start, stop);
}
