/* Claims about stripe_read: what each answer of the provider makes known, and what is done about
 * failures.  The answers are written by hand after the documented shapes of Stripe's objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkout/stripe.h"
#include "checkout/stripe_object.h"

static const struct stripe_config config = {NULL, "sk_test_abc", "pk_test_abc"};

#define PAY "pay_00000000005000000000000000000" /* replaced by the id of the job's payment */

/* What a test reads, and its result. */
static struct {
    struct job_row job;
    struct fact fact;
    struct stripe_outcome outcome;
} t;

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.job = (struct job_row){.amount = 13000,
                             .refund = 1099511627777,
                             .payment = {.key = 5, .secret = {1, 2, 3}},
                             .intent = "pi_123",
                             .currency = "eur"};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fact_close(&t.fact);
    return 0;
}

/* The text with every PAY replaced by the payment's id. */
static struct buf with_payment(const char *text)
{
    char id[ID_TEXT_SIZE];
    struct buf b = {0};
    id_format(id, "pay_", &t.job.payment);
    for (const char *place; (place = strstr(text, PAY)); text = place + strlen(PAY)) {
        buf_put(&b, text, (size_t)(place - text));
        buf_str(&b, id);
    }
    buf_str(&b, text);
    return b;
}

/* Reads an answer with this status, header ("Name: value", "" for none) and body. */
static void read_answer(enum stripe_call call, int status, const char *header, const char *body)
{
    struct http_exchange x = {.result = HF_OK, .response = {.status = status}};
    x.response.body = with_payment(body);
    if (*header)
        buf_put(&x.response.headers, header, strlen(header) + 1);
    fact_close(&t.fact);
    stripe_read(&config, call, &t.job, &x, &t.fact, &t.outcome);
    http_response_close(&x.response);
}

#define INTENT(status, more)                                                                       \
    "{\"id\":\"pi_123\",\"object\":\"payment_intent\",\"amount\":13000,\"currency\":\"eur\","      \
    "\"livemode\":false,\"metadata\":{\"holdfast_payment\":\"" PAY "\"},\"client_secret\":"        \
    "\"pi_123_secret_456\",\"status\":\"" status "\"" more "}"
#define REFUND(id, status, more)                                                                   \
    "{\"id\":\"" id "\",\"object\":\"refund\",\"amount\":500,\"payment_intent\":\"pi_123\","       \
    "\"status\":\"" status "\"" more "}"
#define LIST(data, more) "{\"object\":\"list\",\"data\":[" data "],\"has_more\":" more "}"
#define ERROR(type, code, more)                                                                    \
    "{\"error\":{\"type\":\"" type "\",\"code\":\"" code "\",\"message\":\"Well, no.\"" more "}}"
#define OURS ",\"metadata\":{\"holdfast_refund\":\"1099511627777\"}"

static void assert_result(enum stripe_result result)
{
    assert_int_equal(t.outcome.result, result);
    assert_int_equal(t.outcome.error.code[0] != '\0', result != STRIPE_DONE);
}

/* ---- intents ---- */

static void the_states_of_an_intent_are_those_of_a_fact(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum intent_state state;
    } cases[] = {
        {INTENT("requires_payment_method", ""), INTENT_REQUIRES_PAYMENT},
        {INTENT("requires_confirmation", ""), INTENT_REQUIRES_PAYMENT},
        {INTENT("requires_action", ""), INTENT_REQUIRES_ACTION},
        {INTENT("processing", ""), INTENT_PROCESSING},
        {INTENT("requires_capture", ",\"amount_capturable\":13000"), INTENT_AUTHORIZED},
        {INTENT("succeeded", ",\"amount_received\":12900"), INTENT_CAPTURED},
        {INTENT("canceled", ""), INTENT_CANCELED},
    };
    for (enum stripe_call call = CALL_CREATE; call <= CALL_CANCEL; call++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            read_answer(call, 200, "", cases[i].body);
            assert_result(STRIPE_DONE);
            assert_int_equal(t.fact.state, cases[i].state);
            assert_true(t.fact.is_current && !t.fact.asks);
            assert_int_equal(t.fact.amount, 13000);
            assert_int_equal(t.fact.received, cases[i].state == INTENT_CAPTURED ? 12900 : 0);
            assert_string_equal(t.fact.currency, "eur");
            assert_string_equal(t.fact.intent, "pi_123");
            assert_string_equal(t.fact.client_secret, "pi_123_secret_456");
            assert_int_equal(t.outcome.next, CALL_NONE);
        }
}

static void a_decline_is_told_with_the_intent(void **state)
{
    (void)state;
    read_answer(CALL_RETRIEVE, 200, "",
                INTENT("requires_payment_method",
                       ",\"last_payment_error\":{\"type\":\"card_error\",\"code\":"
                       "\"card_declined\",\"decline_code\":\"insufficient_funds\",\"message\":"
                       "\"Your card has insufficient funds.\"}"));
    assert_result(STRIPE_DONE);
    assert_string_equal(t.fact.error.code, "card_declined");
    assert_string_equal(t.fact.error.decline_code, "insufficient_funds");
    assert_string_equal(t.fact.error.message, "Your card has insufficient funds.");
}

static void a_repeated_answer_is_not_current(void **state)
{
    (void)state;
    const char *replayed = "Idempotent-Replayed: true";
    read_answer(CALL_CREATE, 200, replayed, INTENT("requires_payment_method", ""));
    assert_result(STRIPE_DONE);
    assert_true(!t.fact.is_current && t.fact.asks);
    assert_string_equal(t.fact.client_secret, "pi_123_secret_456");
    read_answer(CALL_CAPTURE, 200, replayed, INTENT("succeeded", ",\"amount_received\":13000"));
    assert_true(!t.fact.is_current && !t.fact.asks && t.fact.state == INTENT_CAPTURED);
}

static void an_intent_that_is_not_ours_is_foreign(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"id\":\"pi_123\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":\"eur\","
        "\"livemode\":false,\"metadata\":{},\"status\":\"canceled\"}",
        "{\"id\":\"pi_123\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":\"eur\","
        "\"livemode\":false,\"metadata\":null,\"status\":\"canceled\"}",
        "{\"id\":\"pi_123\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":\"eur\","
        "\"livemode\":true,\"metadata\":{\"holdfast_payment\":\"" PAY
        "\"},\"status\":\"canceled\"}",
        "{\"id\":\"pi_123\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":\"eur\","
        "\"metadata\":{\"holdfast_payment\":\"" PAY "\"},\"status\":\"canceled\"}",
        "{\"id\":\"pi_124\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":\"eur\","
        "\"livemode\":false,\"metadata\":{\"holdfast_payment\":\"" PAY "\"},\"status\":"
        "\"canceled\"}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        read_answer(CALL_RETRIEVE, 200, "", bodies[i]);
        assert_result(STRIPE_FOREIGN);
        assert_int_equal(t.fact.state, INTENT_UNSAID);
        assert_string_equal(t.fact.intent, "");
    }
}

static void another_payment_of_the_same_hold_is_foreign(void **state)
{
    (void)state;
    struct buf body = with_payment(INTENT("canceled", ""));
    buf_char(&body, '\0');
    t.job.payment.secret[11] ^= 1;
    read_answer(CALL_RETRIEVE, 200, "", body.data);
    assert_result(STRIPE_FOREIGN);
    buf_close(&body);
}

static void a_live_answer_belongs_to_a_live_key(void **state)
{
    (void)state;
    const struct stripe_config live = {NULL, "rk_live_abc", "pk_live_abc"};
    struct http_exchange x = {.result = HF_OK, .response = {.status = 200}};
    x.response.body = with_payment(INTENT("canceled", ""));
    stripe_read(&live, CALL_CANCEL, &t.job, &x, &t.fact, &t.outcome);
    assert_result(STRIPE_FOREIGN);
    fact_close(&t.fact);
    char *mode = memmem(x.response.body.data, x.response.body.len, "false", 5);
    memcpy(mode, "true ", 5);
    stripe_read(&live, CALL_CANCEL, &t.job, &x, &t.fact, &t.outcome);
    assert_result(STRIPE_DONE);
    http_response_close(&x.response);
}

/* ---- refunds and disputes ---- */

static void a_retrieve_has_the_refunds_of_its_charge(void **state)
{
    (void)state;
    read_answer(CALL_RETRIEVE, 200, "",
                INTENT("succeeded",
                       ",\"amount_received\":13000,\"latest_charge\":{\"object\":\"charge\","
                       "\"disputed\":false,\"refunds\":" LIST(
                           REFUND("re_1", "succeeded", OURS) "," REFUND("re_2", "pending", ""),
                           "false") "}"));
    assert_result(STRIPE_DONE);
    assert_int_equal(t.fact.refunds.n, 2);
    assert_string_equal(t.fact.refunds.v[0].id, "re_1");
    assert_int_equal(t.fact.refunds.v[0].refund, 1099511627777);
    assert_int_equal(t.fact.refunds.v[0].amount, 500);
    assert_int_equal(t.fact.refunds.v[0].status, REFUND_SUCCEEDED);
    assert_int_equal(t.fact.refunds.v[1].refund, 0);
    assert_int_equal(t.fact.refunds.v[1].status, REFUND_PENDING);
    assert_int_equal(t.outcome.next, CALL_NONE);
}

static void what_a_retrieve_does_not_have_is_asked_for(void **state)
{
    (void)state;
    read_answer(CALL_RETRIEVE, 200, "",
                INTENT("succeeded", ",\"amount_received\":13000,\"latest_charge\":{\"disputed\":"
                                    "true,\"refunds\":" LIST("", "false") "}"));
    assert_int_equal(t.outcome.next, CALL_LIST_DISPUTES);
    read_answer(CALL_RETRIEVE, 200, "",
                INTENT("succeeded",
                       ",\"amount_received\":13000,\"latest_charge\":{\"disputed\":"
                       "false,\"refunds\":" LIST(REFUND("re_1", "pending", ""), "true") "}"));
    assert_int_equal(t.outcome.next, CALL_LIST_REFUNDS);
    read_answer(CALL_RETRIEVE, 200, "",
                INTENT("succeeded", ",\"amount_received\":13000,\"latest_charge\":\"ch_1\""));
    assert_result(STRIPE_DONE);
    assert_int_equal(t.outcome.next, CALL_NONE);
}

static void a_refund_is_read_with_its_status(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        enum refund_status status;
    } cases[] = {{REFUND("re_1", "pending", OURS), REFUND_PENDING},
                 {REFUND("re_1", "requires_action", OURS), REFUND_PENDING},
                 {REFUND("re_1", "succeeded", OURS), REFUND_SUCCEEDED},
                 {REFUND("re_1", "failed", OURS), REFUND_FAILED},
                 {REFUND("re_1", "canceled", OURS), REFUND_FAILED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_answer(CALL_REFUND, 200, "", cases[i].body);
        assert_result(STRIPE_DONE);
        assert_int_equal(t.fact.refunds.n, 1);
        assert_int_equal(t.fact.refunds.v[0].status, cases[i].status);
        assert_int_equal(t.fact.state, INTENT_UNSAID);
        assert_string_equal(t.fact.intent, "pi_123");
    }
    read_answer(CALL_REFUND, 200, "", REFUND("re_1", "succeeded", ""));
    assert_result(STRIPE_FOREIGN);
    assert_int_equal(t.fact.refunds.n, 0);
}

static void a_list_of_refunds_is_bounded(void **state)
{
    (void)state;
    struct buf body = {0};
    buf_lit(&body, "{\"object\":\"list\",\"has_more\":true,\"data\":[");
    for (int i = 0; i < REFUNDS_MAX + 5; i++)
        buf_printf(&body, "%s" REFUND("re_%d", "failed", ""), i ? "," : "", i);
    buf_lit(&body, "]}");
    buf_char(&body, '\0');
    read_answer(CALL_LIST_REFUNDS, 200, "", body.data);
    assert_result(STRIPE_DONE);
    assert_int_equal(t.fact.refunds.n, REFUNDS_MAX);
    assert_string_equal(t.fact.refunds.v[REFUNDS_MAX - 1].id, "re_99");
    assert_string_equal(t.fact.intent, "pi_123");
    buf_close(&body);
}

static void disputes_are_added_up(void **state)
{
    (void)state;
    read_answer(CALL_LIST_DISPUTES, 200, "",
                LIST("{\"object\":\"dispute\",\"amount\":700},{\"object\":\"dispute\","
                     "\"amount\":300}",
                     "false"));
    assert_result(STRIPE_DONE);
    assert_int_equal(t.fact.disputed, 1000);
    assert_string_equal(t.fact.intent, "pi_123");
    read_answer(CALL_LIST_DISPUTES, 200, "", LIST("{\"object\":\"dispute\"}", "false"));
    assert_result(STRIPE_RETRY);
    assert_int_equal(t.fact.disputed, 0);
}

/* ---- the search for an intent ---- */

#define OTHER(id) "{\"id\":\"" id "\",\"object\":\"payment_intent\",\"metadata\":{}}"

static void an_intent_is_found_by_its_metadata(void **state)
{
    (void)state;
    t.job.intent[0] = '\0';
    read_answer(
        CALL_LIST_INTENTS, 200, "",
        LIST(OTHER("pi_1") "," INTENT("requires_payment_method", "") "," OTHER("pi_2"), "true"));
    assert_result(STRIPE_DONE);
    assert_int_equal(t.outcome.next, CALL_RETRIEVE); /* which shows refunds, too */
    assert_string_equal(t.outcome.cursor, "");
    assert_int_equal(t.fact.state, INTENT_UNSAID);
    assert_string_equal(t.fact.intent, "pi_123");
}

static void the_search_goes_on_until_the_last_page(void **state)
{
    (void)state;
    t.job.intent[0] = '\0';
    read_answer(CALL_LIST_INTENTS, 200, "", LIST(OTHER("pi_1") "," OTHER("pi_2"), "true"));
    assert_result(STRIPE_DONE);
    assert_int_equal(t.outcome.next, CALL_LIST_INTENTS);
    assert_string_equal(t.outcome.cursor, "pi_2");
    assert_int_equal(t.fact.state, INTENT_UNSAID);
    read_answer(CALL_LIST_INTENTS, 200, "", LIST(OTHER("pi_3"), "false"));
    assert_int_equal(t.outcome.next, CALL_NONE);
    assert_int_equal(t.fact.state, INTENT_ABSENT);
    assert_true(t.fact.is_current);
    read_answer(CALL_LIST_INTENTS, 200, "", LIST("", "true"));
    assert_result(STRIPE_RETRY);
}

/* ---- failures ---- */

static void failures_are_repeated_refused_or_looked_into(void **state)
{
    (void)state;
#define CARD ERROR("card_error", "card_declined", ",\"decline_code\":\"do_not_honor\"")
#define API ERROR("api_error", "", "")
#define RATE ERROR("invalid_request_error", "rate_limit", "")
#define IN_USE ERROR("idempotency_error", "idempotency_key_in_use", "")
#define REUSED ERROR("idempotency_error", "", "")
#define MISSING ERROR("invalid_request_error", "resource_missing", "")
    static const struct {
        enum stripe_call call;
        int status;
        const char *header, *body;
        enum stripe_result result;
    } cases[] = {
        {CALL_CAPTURE, 402, "", CARD, STRIPE_REFUSED},
        {CALL_CAPTURE, 402, "Stripe-Should-Retry: false", CARD, STRIPE_REFUSED},
        {CALL_CAPTURE, 402, "Stripe-Should-Retry: true", CARD, STRIPE_RETRY},
        {CALL_CAPTURE, 402, "Idempotent-Replayed: true", CARD, STRIPE_REFUSED},
        {CALL_CAPTURE, 400, "", "not JSON", STRIPE_RETRY},
        {CALL_CAPTURE, 403, "", "<html>", STRIPE_RETRY},
        {CALL_CAPTURE, 407, "", "", STRIPE_RETRY},
        {CALL_CAPTURE, 302, "", "{}", STRIPE_RETRY},
        {CALL_CAPTURE, 301, "", CARD, STRIPE_RETRY},
        {CALL_CAPTURE, 400, "", "{\"error\":\"text\"}", STRIPE_RETRY},
        {CALL_CAPTURE, 400, "", "{\"error\":{\"code\":\"of_a_proxy\"}}", STRIPE_RETRY},
        {CALL_CAPTURE, 400, "", "{\"error\":{\"type\":\"new error\"}}", STRIPE_REFUSED},
        {CALL_CAPTURE, 401, "", ERROR("invalid_request_error", "", ""), STRIPE_RETRY},
        {CALL_CAPTURE, 403, "", ERROR("invalid_request_error", "", ""), STRIPE_RETRY},
        {CALL_CREATE, 409, "", IN_USE, STRIPE_RETRY},
        {CALL_CREATE, 409, "", ERROR("invalid_request_error", "lock_timeout", ""), STRIPE_RETRY},
        {CALL_CREATE, 400, "", REUSED, STRIPE_NEEDS_NEW_KEY},
        {CALL_CREATE, 429, "", RATE, STRIPE_RETRY},
        {CALL_CREATE, 500, "", API, STRIPE_RETRY},
        {CALL_CREATE, 502, "", "Bad Gateway", STRIPE_RETRY},
        {CALL_CREATE, 500, "Idempotent-Replayed: true", API, STRIPE_NEEDS_NEW_KEY},
        {CALL_CREATE, 500, "Idempotent-Replayed: false", API, STRIPE_RETRY},
        {CALL_CREATE, 500, "Stripe-Should-Retry: false", API, STRIPE_NEEDS_NEW_KEY},
        {CALL_CREATE, 500, "Stripe-Should-Retry: true", API, STRIPE_RETRY},
        {CALL_CREATE, 404, "", MISSING, STRIPE_REFUSED},
        {CALL_RETRIEVE, 404, "", MISSING, STRIPE_GONE},
        {CALL_CANCEL, 404, "", MISSING, STRIPE_GONE},
        {CALL_REFUND, 404, "", MISSING, STRIPE_GONE},
        {CALL_RETRIEVE, 404, "", "Not Found", STRIPE_RETRY},
        {CALL_RETRIEVE, 200, "", "", STRIPE_RETRY},
        {CALL_RETRIEVE, 200, "", "[]", STRIPE_RETRY},
        {CALL_RETRIEVE, 200, "", "{}", STRIPE_RETRY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_answer(cases[i].call, cases[i].status, cases[i].header, cases[i].body);
        if (t.outcome.result != cases[i].result)
            fail_msg("case %zu: %d, not %d", i, (int)t.outcome.result, (int)cases[i].result);
        assert_result(cases[i].result);
    }
}

static void an_exchange_that_failed_is_repeated(void **state)
{
    (void)state;
    static const enum hf_status results[] = {HF_UNAVAILABLE, HF_OUTCOME_UNKNOWN,
                                             HF_INVALID_REQUEST};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        struct http_exchange x = {.result = results[i]};
        (void)hf_err_set(&x.err, results[i], "https://api.stripe.com:443: Timeout");
        stripe_read(&config, CALL_REFUND, &t.job, &x, &t.fact, &t.outcome);
        assert_result(STRIPE_RETRY);
        assert_string_equal(t.outcome.error.message, "https://api.stripe.com:443: Timeout");
        assert_int_equal(t.fact.state, INTENT_UNSAID);
    }
}

static void a_wait_that_the_provider_asks_for_is_told_and_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t ms;
    } cases[] = {{"Retry-After: 7", 7000},
                 {"Retry-After: 0", 0},
                 {"Retry-After: 99999999999999999999", STRIPE_RETRY_AFTER_MAX_MS},
                 {"Retry-After: -5", 0},
                 {"Retry-After: soon", 0},
                 {"Retry-After:", 0},
                 {"Stripe-Should-Retry: false", 60000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_answer(CALL_CREATE, 429, cases[i].header, RATE);
        assert_result(STRIPE_RETRY);
        assert_int_equal(t.outcome.retry_after_ms, cases[i].ms);
    }
}

static void a_refusal_names_what_to_look_at(void **state)
{
    (void)state;
    read_answer(CALL_REFUND, 400, "",
                ERROR("invalid_request_error", "charge_already_refunded", ""));
    assert_result(STRIPE_REFUSED);
    assert_int_equal(t.outcome.next, CALL_LIST_REFUNDS);
    assert_string_equal(t.outcome.error.code, "charge_already_refunded");
    assert_string_equal(t.outcome.error.message, "Well, no.");
    read_answer(CALL_CAPTURE, 402, "", CARD);
    assert_int_equal(t.outcome.next, CALL_RETRIEVE);
    assert_string_equal(t.outcome.error.decline_code, "do_not_honor");
    assert_int_equal(t.fact.state, INTENT_UNSAID);
    read_answer(CALL_CANCEL, 400, "", ERROR("invalid_request_error", "whatever", ""));
    assert_int_equal(t.outcome.next, CALL_RETRIEVE);
}

/* It does not show what was given back: only a retrieve does, so nothing is concluded before. */
static void the_intent_of_a_refusal_is_looked_at_again(void **state)
{
    (void)state;
    static const enum stripe_call calls[] = {CALL_CANCEL, CALL_CAPTURE};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        read_answer(
            calls[i], 400, "",
            ERROR("invalid_request_error", "payment_intent_unexpected_state",
                  ",\"payment_intent\":" INTENT("succeeded", ",\"amount_received\":13000")));
        assert_result(STRIPE_REFUSED);
        assert_string_equal(t.outcome.error.code, "payment_intent_unexpected_state");
        assert_int_equal(t.outcome.next, CALL_RETRIEVE);
        assert_int_equal(t.fact.state, INTENT_UNSAID);
    }
}

static void an_intent_that_was_never_made_is_absent(void **state)
{
    (void)state;
    t.job.intent[0] = '\0';
    read_answer(CALL_CREATE, 400, "", ERROR("invalid_request_error", "amount_too_small", ""));
    assert_result(STRIPE_REFUSED);
    assert_int_equal(t.fact.state, INTENT_ABSENT);
    assert_string_equal(t.fact.error.code, "amount_too_small");
    strcpy(t.job.intent, "pi_123");
    read_answer(CALL_RETRIEVE, 404, "", MISSING);
    assert_int_equal(t.fact.state, INTENT_ABSENT);
    assert_string_equal(t.fact.intent, "pi_123");
}

/* ---- hostile bytes ---- */

static void an_answer_that_lies_about_types_says_nothing(void **state)
{
    (void)state;
    static const struct {
        enum stripe_call call;
        const char *body;
    } cases[] = {
        {CALL_RETRIEVE, INTENT("requires_magic", "")},
        {CALL_RETRIEVE, INTENT("succeeded", "")},
        {CALL_RETRIEVE, INTENT("succeeded", ",\"amount_received\":\"13000\"")},
        {CALL_RETRIEVE, INTENT("succeeded", ",\"amount_received\":13000.0")},
        {CALL_RETRIEVE, INTENT("succeeded", ",\"amount_received\":-1")},
        {CALL_RETRIEVE, INTENT("succeeded", ",\"amount_received\":1000000000000")},
        {CALL_RETRIEVE, INTENT("succeeded", ",\"amount_received\":99999999999999999999")},
        {CALL_RETRIEVE, INTENT("succeeded", ",\"amount_received\":1e400")},
        {CALL_RETRIEVE, INTENT("canceled", ",\"amount\":1")}, /* a field twice */
        {CALL_RETRIEVE, INTENT("canceled", ",\"x\":\"\\u0000\"")},
        {CALL_RETRIEVE, INTENT("canceled", ",\"x\":\"\xff\"")},
        {CALL_RETRIEVE, INTENT("canceled", "") "x"},
        {CALL_RETRIEVE, "{\"id\":7,\"object\":\"payment_intent\",\"amount\":1,\"currency\":\"eur\","
                        "\"status\":\"canceled\"}"},
        {CALL_RETRIEVE, "{\"id\":\"pi_1/../x\",\"object\":\"payment_intent\",\"amount\":1,"
                        "\"currency\":\"eur\",\"status\":\"canceled\"}"},
        {CALL_RETRIEVE, "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":"
                        "\"euro\",\"status\":\"canceled\"}"},
        {CALL_RETRIEVE, "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":1,\"currency\":"
                        "\"eur\",\"status\":[]}"},
        {CALL_RETRIEVE, "{\"id\":\"pi_1\",\"object\":\"refund\",\"amount\":1,\"currency\":\"eur\","
                        "\"status\":\"canceled\"}"},
        {CALL_RETRIEVE, INTENT("canceled", ",\"latest_charge\":{\"refunds\":{}}")},
        {CALL_RETRIEVE,
         INTENT("canceled", ",\"latest_charge\":{\"refunds\":" LIST("1", "false") "}")},
        {CALL_REFUND, REFUND("re_1", "vanished", OURS)},
        {CALL_REFUND, REFUND("", "succeeded", OURS)},
        {CALL_REFUND, "{\"id\":\"re_1\",\"object\":\"refund\",\"amount\":5,\"status\":\"failed\"}"},
        {CALL_LIST_REFUNDS, "{\"object\":\"list\",\"data\":{}}"},
        {CALL_LIST_REFUNDS, LIST("null", "false")},
        {CALL_LIST_INTENTS, "{\"object\":\"list\",\"data\":7}"},
        {CALL_LIST_INTENTS, LIST("7", "true")},
        {CALL_LIST_DISPUTES, LIST("7", "false")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_answer(cases[i].call, 200, "", cases[i].body);
        if (t.outcome.result != STRIPE_RETRY)
            fail_msg("case %zu: %d", i, (int)t.outcome.result);
        assert_string_equal(t.outcome.error.code, "unreadable_answer");
        assert_int_equal(t.fact.state, INTENT_UNSAID);
        assert_int_equal(t.fact.refunds.n, 0);
        assert_string_equal(t.fact.intent, "");
    }
}

static void deep_nesting_is_refused_by_the_parser(void **state)
{
    (void)state;
    struct buf body = {0};
    for (int i = 0; i < 100000; i++)
        buf_lit(&body, "{\"a\":");
    buf_char(&body, '\0');
    read_answer(CALL_RETRIEVE, 200, "", body.data);
    assert_result(STRIPE_RETRY);
    buf_close(&body);
}

static void a_refund_key_that_is_no_number_is_not_ours(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        LIST(REFUND("re_1", "failed", ",\"metadata\":{\"holdfast_refund\":\"\"}"), "false"),
        LIST(REFUND("re_1", "failed", ",\"metadata\":{\"holdfast_refund\":\"-1\"}"), "false"),
        LIST(REFUND("re_1", "failed", ",\"metadata\":{\"holdfast_refund\":\"1x\"}"), "false"),
        LIST(REFUND("re_1", "failed", ",\"metadata\":{\"holdfast_refund\":1}"), "false"),
        LIST(REFUND("re_1", "failed", ",\"metadata\":[]"), "false"),
        LIST(
            REFUND("re_1", "failed", ",\"metadata\":{\"holdfast_refund\":\"9999999999999999999\"}"),
            "false"),
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        read_answer(CALL_LIST_REFUNDS, 200, "", bodies[i]);
        assert_result(STRIPE_DONE);
        assert_int_equal(t.fact.refunds.n, 1);
        assert_int_equal(t.fact.refunds.v[0].refund, 0);
    }
}

static void messages_are_cut_and_have_no_secrets(void **state)
{
    (void)state;
    char out[40];
    object_message("Invalid email address: ann@example.org.", out, sizeof out);
    assert_string_equal(out, "Invalid email address: ***");
    object_message("No such key: 'sk_test_123'", out, sizeof out);
    assert_string_equal(out, "No such key: ***");
    object_message("bad pi_1_secret_2 and 4242424242424242", out, sizeof out);
    assert_string_equal(out, "bad *** and ***");
    object_message("two\r\nlines\tand\x1b[31m red  ", out, sizeof out);
    assert_string_equal(out, "two lines and [31m red");
    object_message("123456789 123456789 123456789 123456\xc3\xa9\xc3\xa9", out, sizeof out);
    assert_string_equal(out, "123456789 123456789 123456789 123456\xc3\xa9");
    object_message("", out, sizeof out);
    assert_string_equal(out, "");
    object_message("abc@def", out, 3);
    assert_string_equal(out, "**");
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(the_states_of_an_intent_are_those_of_a_fact),
        CLAIM(a_decline_is_told_with_the_intent),
        CLAIM(a_repeated_answer_is_not_current),
        CLAIM(an_intent_that_is_not_ours_is_foreign),
        CLAIM(another_payment_of_the_same_hold_is_foreign),
        CLAIM(a_live_answer_belongs_to_a_live_key),
        CLAIM(a_retrieve_has_the_refunds_of_its_charge),
        CLAIM(what_a_retrieve_does_not_have_is_asked_for),
        CLAIM(a_refund_is_read_with_its_status),
        CLAIM(a_list_of_refunds_is_bounded),
        CLAIM(disputes_are_added_up),
        CLAIM(an_intent_is_found_by_its_metadata),
        CLAIM(the_search_goes_on_until_the_last_page),
        CLAIM(failures_are_repeated_refused_or_looked_into),
        CLAIM(an_exchange_that_failed_is_repeated),
        CLAIM(a_wait_that_the_provider_asks_for_is_told_and_bounded),
        CLAIM(a_refusal_names_what_to_look_at),
        CLAIM(the_intent_of_a_refusal_is_looked_at_again),
        CLAIM(an_intent_that_was_never_made_is_absent),
        CLAIM(an_answer_that_lies_about_types_says_nothing),
        CLAIM(deep_nesting_is_refused_by_the_parser),
        CLAIM(a_refund_key_that_is_no_number_is_not_ours),
        CLAIM(messages_are_cut_and_have_no_secrets),
    };
    return cmocka_run_group_tests_name("stripe_read", tests, NULL, NULL);
}
