/* Claims about checkout/notify.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkout/notify.h"

static void a_delivery_is_signed_over_what_it_sends(void **state)
{
    (void)state;
    static char text[] = "{\"type\":\"booking.confirmed\"}";
    const struct buf payload = {.data = text, .len = sizeof text - 1};
    const struct job_row job = {.key = {0x01, 0x23, [15] = 0xef}};
    struct signature_secrets secrets;
    struct notify_request r;
    struct buf expected = {0};
    assert_true(
        signature_read_standard_secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &secrets, NULL));
    notify_request_init(&r, "https://shop.example/hook", &job, &payload, 1790000000, &secrets);
    assert_string_equal(r.http.method, "POST");
    assert_string_equal(r.http.url, "https://shop.example/hook");
    assert_int_equal(r.http.body_len, payload.len);
    assert_ptr_equal(r.http.body, payload.data);
    assert_true(r.http.is_repeatable);
    assert_in_range(r.http.timeout_ms, 1000, JOB_LEASE_MS - 5000);
    assert_int_equal(r.http.n_headers, 4);
    assert_string_equal(r.http.headers[0].value, "application/json");
    assert_string_equal(r.http.headers[1].name, "webhook-id");
    assert_string_equal(r.http.headers[1].value, "msg_012300000000000000000000000000ef");
    assert_string_equal(r.http.headers[2].name, "webhook-timestamp");
    assert_string_equal(r.http.headers[2].value, "1790000000");
    signature_write_standard(&expected, "msg_012300000000000000000000000000ef", 1790000000, text,
                             sizeof text - 1, &secrets);
    buf_char(&expected, '\0');
    assert_string_equal(r.http.headers[3].name, "webhook-signature");
    assert_string_equal(r.http.headers[3].value, expected.data);
    buf_close(&expected);
    notify_request_close(&r);
    notify_request_close(&r);
}

static void only_2xx_delivers_and_only_410_refuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum notify_result result;
    } cases[] = {{200, NOTIFY_DELIVERED}, {204, NOTIFY_DELIVERED}, {299, NOTIFY_DELIVERED},
                 {301, NOTIFY_RETRY},     {400, NOTIFY_RETRY},     {401, NOTIFY_RETRY},
                 {404, NOTIFY_RETRY},     {410, NOTIFY_REFUSED},   {429, NOTIFY_RETRY},
                 {500, NOTIFY_RETRY},     {503, NOTIFY_RETRY}};
    char error[ERROR_TEXT_SIZE], expected[ERROR_TEXT_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_exchange x = {.response = {.status = cases[i].status}};
        assert_int_equal(notify_read(&x, error), cases[i].result);
        snprintf(expected, sizeof expected, "the shop answered with HTTP status %d",
                 cases[i].status);
        assert_string_equal(error, cases[i].result == NOTIFY_DELIVERED ? "" : expected);
    }
    struct http_exchange x = {.result = HF_OUTCOME_UNKNOWN, .err = {.msg = "it broke"}};
    assert_int_equal(notify_read(&x, error), NOTIFY_RETRY);
    assert_string_equal(error, "it broke");
}

static void deliveries_are_tried_for_three_days(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600000, day_ms = 24 * hour_ms;
    struct random random;
    const struct http_response response = {0};
    random_init_seeded(&random, 3);
    for (int run = 0; run < 200; run++) {
        int64_t sum_ms = 0, last_ms = 0;
        for (uint32_t attempts = 1; attempts < NOTIFY_ATTEMPTS_MAX; attempts++) {
            int64_t ms = notify_delay_ms(attempts, &response, &random);
            assert_true(attempts == 1 ? ms >= 4500 && ms <= 5000 : ms > last_ms * 9 / 10);
            last_ms = ms;
            sum_ms += ms;
        }
        assert_in_range(sum_ms, 3 * day_ms * 9 / 10 - hour_ms, 3 * day_ms);
        assert_int_equal(notify_delay_ms(NOTIFY_ATTEMPTS_MAX, &response, &random), -1);
    }
    assert_int_equal(notify_delay_ms(UINT32_MAX, &response, &random), -1);
}

static void a_shop_may_ask_for_a_longer_wait(void **state)
{
    (void)state;
    char header[] = "Retry-After: 120", never[] = "Retry-After: 999999999";
    struct random random;
    random_init_seeded(&random, 3);
    struct http_response response = {.status = 503,
                                     .headers = {.data = header, .len = sizeof header}};
    assert_int_equal(notify_delay_ms(1, &response, &random), 120000);
    assert_true(notify_delay_ms(3, &response, &random) > 120000);
    response.headers = (struct buf){.data = never, .len = sizeof never};
    assert_int_equal(notify_delay_ms(1, &response, &random), NOTIFY_RETRY_AFTER_MAX_MS);
}

static void notifications_leave_this_machine_only_over_tls(void **state)
{
    (void)state;
    struct hf_err err = {0};
    assert_true(notify_check_url("https://shop.example/hook?a=b", NULL));
    assert_true(notify_check_url("http://127.0.0.1:8000/hook", NULL));
    assert_true(notify_check_url("http://[::1]/hook", NULL));
    assert_false(notify_check_url("http://shop.example/hook", &err));
    assert_non_null(strstr(err.msg, "TLS"));
    assert_false(notify_check_url("http://127.0.0.1@shop.example/", NULL));
    assert_false(notify_check_url("shop.example", &err));
    assert_non_null(strstr(err.msg, "http://"));
    assert_false(notify_check_url("", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delivery_is_signed_over_what_it_sends),
        cmocka_unit_test(only_2xx_delivers_and_only_410_refuses),
        cmocka_unit_test(deliveries_are_tried_for_three_days),
        cmocka_unit_test(a_shop_may_ask_for_a_longer_wait),
        cmocka_unit_test(notifications_leave_this_machine_only_over_tls),
    };
    return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
