/* Claims about checkout/signature.h.  The expected signatures were made by the official packages
 * stripe (generateTestHeaderString) and standardwebhooks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "checkout/signature.h"

#define BODY "{\"id\":\"evt_1\"}"
#define SECRET_1 "whsec_test_secret_one_0123"
#define SECRET_2 "whsec_test_secret_two_0123"
#define SIGNED_S 1790000000
#define CODE_1 "0e5e47ec5557d3cf1a395857601c28479786121fa2d08ff0556f673bd9478f45"
#define CODE_2 "b75b18d7a9090ff20113c37772fad5166bb6e5152116dc46ef2ab6d6a8c5c2f7"
#define T "t=1790000000"

static struct signature_secrets stripe_secrets(const char *text)
{
    struct signature_secrets secrets = {0};
    struct hf_err err = {0};
    if (!signature_read_stripe_secrets(text, &secrets, &err))
        fail_msg("%s", err.msg);
    return secrets;
}

static enum signature_verdict check(const char *header, const char *secrets, const char *body,
                                    int64_t now_s)
{
    struct signature_secrets s = stripe_secrets(secrets);
    return signature_check_stripe(header, &s, body, strlen(body), now_s);
}

/* ---- Stripe ---- */

static void a_signature_of_stripe_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(check(T ",v1=" CODE_1, SECRET_1, BODY, SIGNED_S), SIGNATURE_GOOD);
    assert_int_equal(check("v0=abc," T ",x=,v1=" CODE_1, SECRET_1, BODY, SIGNED_S), SIGNATURE_GOOD);
}

static void any_signature_by_any_secret_is_enough(void **state)
{
    (void)state;
    assert_int_equal(check(T ",v1=" CODE_1, SECRET_2 " " SECRET_1, BODY, SIGNED_S), SIGNATURE_GOOD);
    assert_int_equal(check(T ",v1=" CODE_2 ",v1=" CODE_1, SECRET_1, BODY, SIGNED_S),
                     SIGNATURE_GOOD);
    assert_int_equal(check(T ",v1=00,v1=" CODE_2, SECRET_1 "," SECRET_2, BODY, SIGNED_S),
                     SIGNATURE_GOOD);
}

static void a_signature_of_other_bytes_time_or_secret_is_wrong(void **state)
{
    (void)state;
    assert_int_equal(check(T ",v1=" CODE_1, SECRET_2, BODY, SIGNED_S), SIGNATURE_WRONG);
    assert_int_equal(check(T ",v1=" CODE_1, SECRET_1, BODY " ", SIGNED_S), SIGNATURE_WRONG);
    assert_int_equal(check(T ",v1=" CODE_1, SECRET_1, "", SIGNED_S), SIGNATURE_WRONG);
    assert_int_equal(check("t=1790000001,v1=" CODE_1, SECRET_1, BODY, SIGNED_S), SIGNATURE_WRONG);
    assert_int_equal(check("t=01790000000,v1=" CODE_1, SECRET_1, BODY, SIGNED_S), SIGNATURE_WRONG);
    assert_int_equal(check(T ",v1=" CODE_1 "0", SECRET_1, BODY, SIGNED_S), SIGNATURE_WRONG);
    assert_int_equal(check(T ",v1=", SECRET_1, BODY, SIGNED_S), SIGNATURE_WRONG);
    char altered[] = T ",v1=" CODE_1;
    for (size_t i = sizeof T - 1 + 4; altered[i]; i++) {
        char kept = altered[i];
        altered[i] = kept == '0' ? '1' : '0';
        assert_int_equal(check(altered, SECRET_1, BODY, SIGNED_S), SIGNATURE_WRONG);
        altered[i] = kept;
    }
}

static void without_a_secret_nothing_is_good(void **state)
{
    (void)state;
    const struct signature_secrets none = {0};
    assert_int_equal(
        signature_check_stripe(T ",v1=" CODE_1, &none, BODY, sizeof BODY - 1, SIGNED_S),
        SIGNATURE_WRONG);
}

static void a_signature_is_good_for_300_seconds_in_both_directions(void **state)
{
    (void)state;
    const char *header = T ",v1=" CODE_1;
    assert_int_equal(check(header, SECRET_1, BODY, SIGNED_S + 300), SIGNATURE_GOOD);
    assert_int_equal(check(header, SECRET_1, BODY, SIGNED_S + 301), SIGNATURE_STALE);
    assert_int_equal(check(header, SECRET_1, BODY, SIGNED_S - 300), SIGNATURE_GOOD);
    assert_int_equal(check(header, SECRET_1, BODY, SIGNED_S - 301), SIGNATURE_STALE);
    assert_int_equal(check("t=999999999999999999,v1=" CODE_1, SECRET_1, BODY, SIGNED_S),
                     SIGNATURE_WRONG);
}

static void a_header_that_is_not_stripes_is_malformed(void **state)
{
    (void)state;
    char long_header[SIGNATURE_HEADER_MAX + 200] = T ",v1=" CODE_1 ",x=";
    memset(long_header + strlen(long_header), 'x', SIGNATURE_HEADER_MAX + 1 - strlen(long_header));
    const char *const headers[] = {NULL,
                                   "",
                                   ",",
                                   "=",
                                   "t",
                                   "t=",
                                   "v1=" CODE_1,
                                   T,
                                   T ",",
                                   T ",v0=" CODE_1,
                                   T ",v1",
                                   T ", v1=" CODE_1,
                                   T "," T ",v1=" CODE_1,
                                   "t=1790000000x,v1=" CODE_1,
                                   "t=-1790000000,v1=" CODE_1,
                                   "t=+1790000000,v1=" CODE_1,
                                   "t= 1790000000,v1=" CODE_1,
                                   "t=1e9,v1=" CODE_1,
                                   "t=9999999999999999999,v1=" CODE_1,
                                   T ",v1=" CODE_1 ",",
                                   long_header};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        assert_int_equal(check(headers[i], SECRET_1, BODY, SIGNED_S), SIGNATURE_MALFORMED);
}

/* ---- Standard Webhooks ---- */

#define STANDARD_1 "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define STANDARD_2 "whsec_YW5vdGhlciBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXQ="

static void a_notification_has_one_signature_per_secret(void **state)
{
    (void)state;
    static const char body[] = "{\"test\": 2432232314}";
    struct signature_secrets secrets = {0};
    struct buf out = {0};
    assert_true(signature_read_standard_secrets(STANDARD_1 ", " STANDARD_2, &secrets, NULL));
    assert_int_equal(secrets.n, 2);
    signature_write_standard(&out, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body,
                             sizeof body - 1, &secrets);
    buf_char(&out, '\0');
    assert_string_equal(out.data, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= "
                                  "v1,yi1ek661Pdd0FBIEiDkYp75sl4fg2HhwQ1YZ83e0A4Q=");
    buf_close(&out);
    signature_secrets_close(&secrets);
    assert_int_equal(secrets.n, 0);
}

static void a_malformed_secret_is_told_and_not_quoted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *part; /* of the message */
        bool stripe, standard;
    } cases[] = {
        {"", "no secret", false, false},
        {" , \t", "no secret", false, false},
        {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "secret 1 is not whsec_", false, false},
        {"whsec_", "secret 1", false, false},
        {"whsec_short", "secret 1", false, false},
        {STANDARD_1 " whsec_short", "secret 2", false, false},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa", "24 to 64 bytes in base64", true, false},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La====", "base64", true, false},
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-", "base64", true, false},
        {"whsec_YW5vdGhlciBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXR=", "base64", true, false},
        {STANDARD_1 " " STANDARD_1 " " STANDARD_1 " " STANDARD_1 " " STANDARD_1, "more than 4",
         false, false},
        {STANDARD_1, "", true, true},
        {STANDARD_2 "\n", "", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct signature_secrets secrets = {.n = 7};
        struct hf_err err = {0};
        assert_int_equal(signature_read_stripe_secrets(cases[i].text, &secrets, NULL),
                         cases[i].stripe);
        assert_true(cases[i].stripe || secrets.n == 7);
        secrets.n = 7;
        assert_int_equal(signature_read_standard_secrets(cases[i].text, &secrets, &err),
                         cases[i].standard);
        assert_true(cases[i].standard || secrets.n == 7);
        assert_non_null(strstr(err.msg, cases[i].part));
        assert_null(strstr(err.msg, "MfKQ9"));
    }
}

static void secrets_have_a_length_limit(void **state)
{
    (void)state;
    char text[200] = "whsec_";
    struct signature_secrets secrets;
    memset(text + 6, 'A', 88);
    memcpy(text + 6 + 86, "==", 3); /* 64 bytes */
    assert_true(signature_read_standard_secrets(text, &secrets, NULL));
    assert_int_equal(secrets.list[0].len, 64);
    memcpy(text + 6 + 86, "A=", 3); /* 65 bytes */
    assert_false(signature_read_standard_secrets(text, &secrets, NULL));
    memset(text + 6, 'A', 121);
    text[127] = '\0';
    assert_true(signature_read_stripe_secrets(text, &secrets, NULL));
    text[127] = 'A';
    text[128] = '\0';
    assert_false(signature_read_stripe_secrets(text, &secrets, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_of_stripe_is_accepted),
        cmocka_unit_test(any_signature_by_any_secret_is_enough),
        cmocka_unit_test(a_signature_of_other_bytes_time_or_secret_is_wrong),
        cmocka_unit_test(without_a_secret_nothing_is_good),
        cmocka_unit_test(a_signature_is_good_for_300_seconds_in_both_directions),
        cmocka_unit_test(a_header_that_is_not_stripes_is_malformed),
        cmocka_unit_test(a_notification_has_one_signature_per_secret),
        cmocka_unit_test(a_malformed_secret_is_told_and_not_quoted),
        cmocka_unit_test(secrets_have_a_length_limit),
    };
    return cmocka_run_group_tests_name("signature", tests, NULL, NULL);
}
