/* Claims about checkout/stripe.h that need no answer: settings, requests, amounts and delays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkout/stripe.h"

/* ---- settings ---- */

static const char *complaint(const char *api, const char *secret, const char *publishable)
{
    static struct hf_err err;
    const struct stripe_config config = {api, secret, publishable};
    err = (struct hf_err){0};
    bool good = stripe_check_config(&config, &err);
    assert_int_equal(good, err.msg[0] == '\0');
    assert_true(good || err.code == HF_INVALID_REQUEST);
    assert_null(strstr(err.msg, "SECRET"));
    return err.msg;
}

#define SK_TEST "sk_test_SECRET123"
#define SK_LIVE "sk_live_SECRET123"
#define PK_TEST "pk_test_123"
#define PK_LIVE "pk_live_123"

static void a_live_key_goes_only_to_stripe_itself(void **state)
{
    (void)state;
    assert_string_equal(complaint(NULL, SK_LIVE, PK_LIVE), "");
    assert_string_equal(complaint("https://api.stripe.com", SK_LIVE, PK_LIVE), "");
    assert_string_equal(complaint(NULL, "rk_live_SECRET", PK_LIVE), "");
    static const char *const elsewhere[] = {
        "http://api.stripe.com",
        "https://api.stripe.com:8443",
        "https://api.stripe.com.evil",
        "https://evil.example",
        "http://127.0.0.1:9000",
        "https://localhost",
        "https://API.stripe.com",
        "https://api.stripe.com@evil.example",
        "https://evil.example#api.stripe.com",
    };
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        assert_string_not_equal(complaint(elsewhere[i], SK_LIVE, PK_LIVE), "");
        assert_string_not_equal(complaint(elsewhere[i], "rk_live_SECRET", PK_LIVE), "");
    }
}

static void keys_travel_without_tls_only_on_this_machine(void **state)
{
    (void)state;
    assert_string_equal(complaint("http://127.0.0.1:12111", SK_TEST, PK_TEST), "");
    assert_string_equal(complaint("http://localhost:12111", SK_TEST, PK_TEST), "");
    assert_string_equal(complaint("http://[::1]:12111", SK_TEST, PK_TEST), "");
    assert_string_equal(complaint("https://sandbox.example", SK_TEST, PK_TEST), "");
    assert_non_null(strstr(complaint("http://10.0.0.1", SK_TEST, PK_TEST), "TLS"));
    assert_non_null(strstr(complaint("http://127.0.0.1.evil.example", SK_TEST, PK_TEST), "TLS"));
    assert_non_null(strstr(complaint("http://localhost.evil.example", SK_TEST, PK_TEST), "TLS"));
}

static void the_api_is_a_bare_origin(void **state)
{
    (void)state;
    static const char *const urls[] = {"",
                                       "api.stripe.com",
                                       "ftp://127.0.0.1",
                                       "http://127.0.0.1/",
                                       "http://127.0.0.1/v1",
                                       "http://127.0.0.1?a",
                                       "http://127.0.0.1#a",
                                       "http://u@127.0.0.1",
                                       "http://127.0.0.1@evil.example",
                                       "http://:p@127.0.0.1",
                                       "http://127.0.0.1:99999",
                                       "http://127.0.0.1 "};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        assert_non_null(strstr(complaint(urls[i], SK_TEST, PK_TEST), "final slash"));
}

static void both_keys_are_well_formed_and_of_one_mode(void **state)
{
    (void)state;
    assert_non_null(strstr(complaint(NULL, SK_TEST, PK_LIVE), "one mode"));
    assert_non_null(strstr(complaint(NULL, SK_LIVE, PK_TEST), "one mode"));
    static const char *const secrets[] = {NULL,
                                          "",
                                          "sk_test_",
                                          "pk_test_SECRET",
                                          "sk_SECRET",
                                          "SECRET",
                                          "sk_test_SEC ",
                                          "sk_test_SECRET\r\nX-Evil: 1",
                                          "sk_prod_SECRET"};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        assert_non_null(strstr(complaint(NULL, secrets[i], PK_TEST), "secret key"));
    static const char *const publishables[] = {NULL, "", "pk_test_", SK_TEST, "pk_test_\"x"};
    for (size_t i = 0; i < sizeof publishables / sizeof *publishables; i++)
        assert_non_null(strstr(complaint(NULL, SK_TEST, publishables[i]), "publishable key"));
    char long_key[STRIPE_KEY_LEN_MAX + 2];
    memset(long_key, 'x', sizeof long_key);
    memcpy(long_key, "sk_test_", 8);
    long_key[STRIPE_KEY_LEN_MAX] = '\0';
    assert_string_equal(complaint(NULL, long_key, PK_TEST), "");
    long_key[STRIPE_KEY_LEN_MAX] = 'x';
    long_key[STRIPE_KEY_LEN_MAX + 1] = '\0';
    assert_non_null(strstr(complaint(NULL, long_key, PK_TEST), "secret key"));
}

/* ---- requests ---- */

static const struct stripe_config config = {"http://127.0.0.1:9", "sk_test_abc", "pk_test_abc"};

static struct job_row some_job(void)
{
    struct job_row job = {.job = 77,
                          .booking = 66,
                          .amount = 13000,
                          .refund = 1099511627777,
                          .payment = {.key = 5, .secret = {1, 2, 3}},
                          .intent = "pi_123",
                          .currency = "eur",
                          .email = "ann+tickets@example.org",
                          .booked_at = 1790000000123,
                          .hold_expires_at = 1790000480123};
    for (int i = 0; i < JOB_KEY_SIZE; i++)
        job.key[i] = (uint8_t)(i * 17);
    return job;
}

static const char *header_of(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

static void assert_request(const struct job_row *job, enum stripe_call call, const char *cursor,
                           const char *method, const char *url, const char *body)
{
    struct stripe_request r;
    char whole_url[512], payment[ID_TEXT_SIZE];
    struct buf expected = {0};
    stripe_request_init(&r, &config, job, call, cursor);
    snprintf(whole_url, sizeof whole_url, "http://127.0.0.1:9%s", url);
    assert_string_equal(r.http.method, method);
    assert_string_equal(r.http.url, whole_url);
    id_format(payment, "pay_", &job->payment);
    const char *place = strstr(body, "PAY");
    buf_put(&expected, body, place ? (size_t)(place - body) : strlen(body));
    if (place) {
        buf_str(&expected, payment);
        buf_str(&expected, place + 3);
    }
    assert_int_equal(r.http.body_len, expected.len);
    assert_true(expected.len == 0 || memcmp(r.http.body, expected.data, expected.len) == 0);
    buf_close(&expected);
    assert_string_equal(header_of(&r.http, "Authorization"), "Bearer sk_test_abc");
    assert_string_equal(header_of(&r.http, "Stripe-Version"), STRIPE_VERSION);
    if (strcmp(method, "POST") == 0) {
        assert_string_equal(header_of(&r.http, "Idempotency-Key"),
                            "00112233445566778899aabbccddeeff");
        assert_string_equal(header_of(&r.http, "Content-Type"),
                            "application/x-www-form-urlencoded");
        assert_true(r.http.is_repeatable);
    } else {
        assert_null(header_of(&r.http, "Idempotency-Key"));
    }
    assert_in_range(r.http.timeout_ms, 1000, JOB_LEASE_MS - 5000);
    stripe_request_close(&r);
    stripe_request_close(&r);
}

static void each_call_is_one_request_of_stripes_api(void **state)
{
    (void)state;
    struct job_row job = some_job();
    assert_request(
        &job, CALL_CREATE, NULL, "POST", "/v1/payment_intents",
        "amount=13000&currency=eur&payment_method_types%5B%5D=card&capture_method=automatic"
        "&metadata%5Bholdfast_payment%5D=PAY&receipt_email=ann%2Btickets%40example.org");
    assert_request(&job, CALL_RETRIEVE, NULL, "GET",
                   "/v1/payment_intents/pi_123?expand%5B%5D=latest_charge.refunds", "");
    assert_request(&job, CALL_CAPTURE, NULL, "POST", "/v1/payment_intents/pi_123/capture",
                   "amount_to_capture=13000");
    assert_request(&job, CALL_CANCEL, NULL, "POST", "/v1/payment_intents/pi_123/cancel",
                   "cancellation_reason=abandoned");
    assert_request(&job, CALL_REFUND, NULL, "POST", "/v1/refunds",
                   "payment_intent=pi_123&amount=13000&metadata%5Bholdfast_refund%5D=1099511627777"
                   "&metadata%5Bholdfast_payment%5D=PAY");
    assert_request(&job, CALL_LIST_REFUNDS, NULL, "GET",
                   "/v1/refunds?payment_intent=pi_123&limit=100", "");
    assert_request(&job, CALL_LIST_DISPUTES, "", "GET",
                   "/v1/disputes?payment_intent=pi_123&limit=100", "");
}

static void the_card_is_only_authorized_when_capture_is_by_hand(void **state)
{
    (void)state;
    struct job_row job = some_job();
    job.captures_by_hand = true;
    job.email[0] = job.intent[0] = '\0';
    assert_request(&job, CALL_CREATE, NULL, "POST", "/v1/payment_intents",
                   "amount=13000&currency=eur&payment_method_types%5B%5D=card&capture_method=manual"
                   "&metadata%5Bholdfast_payment%5D=PAY");
}

static void a_lost_intent_is_searched_page_by_page_around_the_life_of_its_hold(void **state)
{
    (void)state;
    struct job_row job = some_job();
    job.intent[0] = '\0';
    assert_request(
        &job, CALL_LIST_INTENTS, NULL, "GET",
        "/v1/payment_intents?created%5Bgte%5D=1789999940&created%5Blte%5D=1790001080&limit=100",
        "");
    job.hold_expires_at = 0;
    assert_request(&job, CALL_LIST_INTENTS, "pi_9", "GET",
                   "/v1/payment_intents?created%5Bgte%5D=1789999940&limit=100&starting_after=pi_9",
                   "");
}

static void no_request_has_the_key_of_a_booking(void **state)
{
    (void)state;
    struct job_row job = some_job();
    job.booking = 123454321;
    for (enum stripe_call call = CALL_CREATE; call <= CALL_LIST_DISPUTES; call++) {
        struct stripe_request r;
        stripe_request_init(&r, &config, &job, call, NULL);
        assert_null(strstr(r.http.url, "123454321"));
        assert_true(r.body.len == 0 || !memmem(r.body.data, r.body.len, "123454321", 9));
        stripe_request_close(&r);
    }
}

/* ---- delays and amounts ---- */

static void delays_grow_to_twelve_seconds_and_are_spread(void **state)
{
    (void)state;
    static const struct {
        uint32_t attempts;
        int64_t limit_ms;
    } steps[] = {{0, 1000},  {1, 1000},  {2, 2000},  {3, 4000},        {4, 8000},
                 {5, 12000}, {6, 12000}, {7, 12000}, {1000000, 12000}, {UINT32_MAX, 12000}};
    struct random random;
    random_init_seeded(&random, 7);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t low = INT64_MAX, high = 0;
        for (int n = 0; n < 2000; n++) {
            int64_t ms = stripe_backoff_ms(steps[i].attempts, 0, &random);
            low = ms < low ? ms : low;
            high = ms > high ? ms : high;
        }
        assert_in_range(low, 500, 500 + steps[i].limit_ms / 20);
        assert_in_range(high, steps[i].limit_ms - steps[i].limit_ms / 20, steps[i].limit_ms);
    }
    assert_int_equal(stripe_backoff_ms(1, 90000, &random), 90000);
}

static void minimums_are_in_the_smallest_unit(void **state)
{
    (void)state;
    assert_int_equal(stripe_minimum("usd"), 50);
    assert_int_equal(stripe_minimum("EUR"), 50);
    assert_int_equal(stripe_minimum("gbp"), 30);
    assert_int_equal(stripe_minimum("jpy"), 50);
    assert_int_equal(stripe_minimum("huf"), 17500);
    assert_int_equal(stripe_minimum("xxx"), 0);
    assert_int_equal(stripe_minimum(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_live_key_goes_only_to_stripe_itself),
        cmocka_unit_test(keys_travel_without_tls_only_on_this_machine),
        cmocka_unit_test(the_api_is_a_bare_origin),
        cmocka_unit_test(both_keys_are_well_formed_and_of_one_mode),
        cmocka_unit_test(each_call_is_one_request_of_stripes_api),
        cmocka_unit_test(the_card_is_only_authorized_when_capture_is_by_hand),
        cmocka_unit_test(a_lost_intent_is_searched_page_by_page_around_the_life_of_its_hold),
        cmocka_unit_test(no_request_has_the_key_of_a_booking),
        cmocka_unit_test(delays_grow_to_twelve_seconds_and_are_spread),
        cmocka_unit_test(minimums_are_in_the_smallest_unit),
    };
    return cmocka_run_group_tests_name("stripe", tests, NULL, NULL);
}
