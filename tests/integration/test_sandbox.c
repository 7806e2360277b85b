/* The payment sandbox inside another program: sandbox/sandbox.h over real sockets, as holdfastd
 * embeds it. */
#include "support/fixtures.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "http/listen.h"
#include "net/http_client.h"
#include "sandbox/sandbox.h"
#include "sandbox/webhook_sender.h"

#define SECRET "sk_test_theshop"
#define PUBLISHABLE "pk_test_another"

static int open_port(void)
{
    struct listen_address at;
    int fd = -1;
    assert_true(listen_parse("127.0.0.1:0", &at, NULL) && listen_open(&at, &fd, NULL));
    return fd;
}

/* The status of a call with this key; `body` NULL: a GET. */
static int call(const struct sandbox *s, const char *path, const char *key, const char *body,
                struct http_response *response)
{
    char url[256], authorization[128];
    struct http_client *client = http_client_new(NULL);
    (void)snprintf(url, sizeof url, "%s%s", sandbox_url(s), path);
    (void)snprintf(authorization, sizeof authorization, "Bearer %s", key);
    const struct http_header headers[] = {{"Authorization", authorization}};
    const struct http_request request = {.method = body ? "POST" : "GET",
                                         .url = url,
                                         .headers = headers,
                                         .n_headers = 1,
                                         .body = body,
                                         .body_len = body ? strlen(body) : 0};
    struct hf_err err = {0};
    if (http_client_call(client, &request, response, &err) != HF_OK)
        fail_msg("%s", err.msg);
    http_client_free(client);
    return response->status;
}

static void one_account_has_the_keys_it_was_given(void **state)
{
    (void)state;
    struct sandbox *s = NULL;
    struct http_response r = {0};
    const struct sandbox_config config = {.listen_fd = open_port(),
                                          .secret_key = SECRET,
                                          .publishable_key = PUBLISHABLE,
                                          .clock = &clock_system};
    assert_int_equal(sandbox_start(&config, &s, NULL), HF_OK);
    assert_int_equal(call(s, "/v1/balance", SECRET, NULL, &r), 200);
    assert_int_equal(call(s, "/v1/balance", "sk_test_other", NULL, &r), 401);
    assert_int_equal(call(s, "/v1/balance", "sk_test_", NULL, &r), 401);
    assert_int_equal(call(s, "/v1/payment_intents", SECRET, "amount=100&currency=usd", &r), 200);
    buf_char(&r.body, '\0');
    char id[64] = "", secret[128] = "", path[128], form[512];
    assert_int_equal(sscanf(r.body.data, "{\"id\":\"%63[^\"]", id), 1);
    const char *at = strstr(r.body.data, "\"client_secret\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"client_secret\":\"%127[^\"]", secret), 1);
    (void)snprintf(path, sizeof path, "/v1/payment_intents/%s/confirm", id);
    (void)snprintf(form, sizeof form, "client_secret=%s&payment_method=pm_card_visa", secret);
    assert_int_equal(call(s, path, "pk_test_theshop", form, &r), 401);
    assert_int_equal(call(s, path, PUBLISHABLE, form, &r), 200);
    http_response_close(&r);
    sandbox_stop(s);
}

static void what_cannot_work_is_refused_at_the_start(void **state)
{
    (void)state;
    const struct sandbox_config wrong[] = {
        {.secret_key = SECRET},
        {.secret_key = "sk_live_x", .publishable_key = PUBLISHABLE},
        {.secret_key = SECRET, .publishable_key = SECRET},
        {.webhook = "http://127.0.0.1:1/"},
        {.webhook = "file:///x", .webhook_secret = "s"},
        {.faults = "{\"fail\":7}"},
        {.data = "/nonexistent/directory/sandbox.db"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sandbox_config config = wrong[i];
        struct sandbox *s = NULL;
        struct hf_err err = {0};
        config.listen_fd = open_port();
        config.clock = &clock_system;
        assert_int_not_equal(sandbox_start(&config, &s, &err), HF_OK);
        assert_null(s);
        assert_true(err.msg[0]);
        assert_int_equal(fcntl(config.listen_fd, F_GETFD), -1); /* it was closed */
    }
}

static void buyers_may_reach_it_by_another_address(void **state)
{
    (void)state;
    struct sandbox *s = NULL;
    struct http_response r = {0};
    int fd = open_port();
    char address[LISTEN_TEXT_SIZE], real[LISTEN_TEXT_SIZE + 16];
    listen_text(fd, address);
    (void)snprintf(real, sizeof real, "http://%s", address);
    struct sandbox_config config = {.listen_fd = fd, .clock = &clock_system};
    assert_int_equal(sandbox_start(&config, &s, NULL), HF_OK);
    assert_string_equal(sandbox_url(s), real);
    assert_int_equal(call(s, "/v1/payment_intents", SECRET,
                          "amount=100&currency=usd&confirm=true&"
                          "payment_method=pm_card_authenticationRequired",
                          &r),
                     200);
    buf_char(&r.body, '\0');
    assert_non_null(strstr(r.body.data, real));
    http_response_close(&r);
    sandbox_stop(s);
}

static void the_signature_is_the_one_that_stripe_documents(void **state)
{
    (void)state;
    char signature[SIGNATURE_SIZE];
    sender_sign("whsec_test", 1700000000, "{\"id\":1}", 8, signature);
    assert_string_equal(signature,
                        "t=1700000000,v1="
                        "2f441ba4b3b2d50d28a9ab9d9fd8880376ecd1eb5d0435401553f5d8d0a5dcf8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_account_has_the_keys_it_was_given),
        cmocka_unit_test(what_cannot_work_is_refused_at_the_start),
        cmocka_unit_test(buyers_may_reach_it_by_another_address),
        cmocka_unit_test(the_signature_is_the_one_that_stripe_documents),
    };
    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
