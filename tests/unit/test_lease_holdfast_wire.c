/* The URLs of the lock service (lease/holdfast/address.h), and its messages and answers as HTTP has
 * them (lease/holdfast/wire.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lease/holdfast/address.h"
#include "lease/holdfast/wire.h"

/* ---- addresses ---- */

static struct holdfast_address parsed(const char *url)
{
    struct holdfast_address a = {0};
    struct hf_fault fault = {0};
    if (holdfast_address_parse(url, &a, &fault) != HF_DONE)
        print_error("%s\n", fault.msg);
    assert_true(a.n_servers > 0);
    return a;
}

static void a_url_names_servers_a_key_and_parameters(void **state)
{
    (void)state;
    unsetenv("HOLDFAST_KEY");
    struct holdfast_address a = parsed("holdfast://h1,h2:81,[::1]:82");
    assert_int_equal(a.n_servers, 3);
    assert_string_equal(a.servers[0], "http://h1:8080");
    assert_string_equal(a.servers[1], "http://h2:81");
    assert_string_equal(a.servers[2], "http://[::1]:82");
    assert_null(a.access_key);
    assert_false(a.cache);
    holdfast_address_close(&a);
    a = parsed("holdfasts://k%40y@h1?ttl=30s&cache=shared&cacert=/a%20b");
    assert_string_equal(a.servers[0], "https://h1:8080");
    assert_string_equal(a.access_key, "k@y");
    assert_int_equal(a.ttl_ms, 30000);
    assert_true(a.cache);
    assert_string_equal(a.ca_file, "/a b");
    holdfast_address_close(&a);
}

static void the_key_of_the_environment_serves_a_url_without_one(void **state)
{
    (void)state;
    setenv("HOLDFAST_KEY", "from-outside", 1);
    struct holdfast_address a = parsed("holdfast://h1");
    assert_string_equal(a.access_key, "from-outside");
    holdfast_address_close(&a);
    a = parsed("holdfast://own@h1");
    assert_string_equal(a.access_key, "own");
    holdfast_address_close(&a);
    unsetenv("HOLDFAST_KEY");
}

static void a_malformed_url_is_refused_without_showing_it(void **state)
{
    (void)state;
    static const char *const urls[] = {"holdfast://",
                                       "holdfast://h1,",
                                       "holdfast://secret@",
                                       "holdfast://secret%4@h1",
                                       "holdfast://@h1",
                                       "holdfast://secret@h1:0",
                                       "holdfast://secret@h1:65536",
                                       "holdfast://secret@h1/path",
                                       "holdfast://secret@h1?",
                                       "holdfast://secret@h1?cache=all",
                                       "holdfast://secret@h1?ttl=500ms",
                                       "holdfast://secret@h1?ttl=2d",
                                       "holdfast://secret@h1?cacert=/x",
                                       "holdfasts://secret@h1?cert=/x",
                                       "holdfast://secret@h1?nonsense=1"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct holdfast_address a = {0};
        struct hf_fault fault = {0};
        assert_int_equal(holdfast_address_parse(urls[i], &a, &fault), HF_BAD_REQUEST);
        assert_true(strlen(fault.msg) > 20);
        assert_null(strstr(fault.msg, "secret"));
        assert_int_equal(a.n_servers, 0);
    }
}

/* ---- requests ---- */

static void assert_request(const struct client_message *m, const char *method, const char *path,
                           const char *body)
{
    struct buf p = {0}, b = {0};
    assert_string_equal(wire_request(m, &p, &b), method);
    assert_string_equal(p.data, path);
    assert_int_equal(b.len, strlen(body));
    assert_memory_equal(b.data ? b.data : "", body, b.len);
    buf_close(&p);
    buf_close(&b);
}

static void messages_are_requests_of_the_api(void **state)
{
    (void)state;
    struct client_message m = {.kind = CLIENT_OPEN, .ttl_ms = 30000};
    assert_request(&m, "POST", "/v1/sessions", "{\"ttl_ms\":30000}");
    m = (struct client_message){.kind = CLIENT_KEEPALIVE, .session = "ses_1"};
    assert_request(&m, "POST", "/v1/sessions/ses_1/keepalive", "");
    m.kind = CLIENT_CLOSE;
    assert_request(&m, "DELETE", "/v1/sessions/ses_1", "");
    m = (struct client_message){.kind = CLIENT_ACQUIRE,
                                .session = "ses_1",
                                .name = "pay/é\"%",
                                .owner = {0xab},
                                .agent = "t1",
                                .mode = HF_SHARED,
                                .slots = 1,
                                .priority = 2000000,
                                .wait_ms = 1,
                                .claim_ms = 150,
                                .cache = true,
                                .label = "web \"3\"",
                                .label_len = 7};
    assert_request(&m, "POST", "/v1/locks/pay%2F%C3%A9%22%25",
                   "{\"session\":\"ses_1\",\"owner\":\"ab000000000000000000000000000000\","
                   "\"agent\":\"t1\",\"mode\":\"shared\",\"priority\":1000000,\"cache\":true,"
                   "\"wait_ms\":1,\"claim_ms\":150,\"claim\":true,\"label\":\"web \\\"3\\\"\"}");
    m = (struct client_message){.kind = CLIENT_ACQUIRE,
                                .session = "ses_1",
                                .name = "a",
                                .agent = "t1",
                                .slots = 3,
                                .value = "10.0.0.1:80",
                                .value_len = 11};
    assert_request(&m, "POST", "/v1/locks/a",
                   "{\"session\":\"ses_1\",\"owner\":\"00000000000000000000000000000000\","
                   "\"agent\":\"t1\",\"slots\":3,\"value\":\"10.0.0.1:80\"}");
    m.kind = CLIENT_RELEASE;
    assert_request(&m, "POST", "/v1/locks/a/release",
                   "{\"session\":\"ses_1\",\"owner\":\"00000000000000000000000000000000\"}");
}

/* ---- answers ---- */

static enum client_result judged(enum client_kind kind, int status, const char *body,
                                 struct wire_answer *ret)
{
    struct client_message m = {.kind = kind, .slots = 5};
    struct http_response response = {.status = status};
    buf_str(&response.body, body);
    enum client_result result = wire_answer(&m, &response, ret);
    http_response_close(&response);
    return result;
}

static void answers_are_read(void **state)
{
    (void)state;
    struct wire_answer a = {0};
    assert_int_equal(judged(CLIENT_OPEN, 201, "{\"id\":\"ses_12345678\",\"ttl_ms\":5000}", &a),
                     CLIENT_DONE);
    assert_string_equal(a.answer.session, "ses_12345678");
    assert_int_equal(a.answer.ttl_ms, 5000);
    wire_answer_close(&a);
    assert_int_equal(
        judged(CLIENT_KEEPALIVE, 200, "{\"ttl_ms\":5000,\"wanted\":[\"a\",7,\"b/c\"]}", &a),
        CLIENT_DONE);
    assert_int_equal(a.answer.n_wanted, 2);
    assert_string_equal(a.answer.wanted[1], "b/c");
    wire_answer_close(&a);
    assert_int_equal(judged(CLIENT_ACQUIRE, 200, "{\"fence\":17,\"slot\":2}", &a), CLIENT_DONE);
    assert_int_equal(a.answer.fence, 17);
    assert_int_equal(a.answer.slot, 2);
    wire_answer_close(&a);
    assert_int_equal(judged(CLIENT_ACQUIRE, 409, "{\"code\":\"lock_taken\",\"position\":4}", &a),
                     CLIENT_TAKEN);
    assert_int_equal(a.answer.position, 4);
    wire_answer_close(&a);
    assert_int_equal(judged(CLIENT_ACQUIRE, 409, "{\"code\":\"lock_taken\",\"position\":null}", &a),
                     CLIENT_TAKEN);
    assert_int_equal(a.answer.position, 0);
    wire_answer_close(&a);
}

static void refusals_say_whether_anything_was_done(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        enum client_result result;
        enum hf_result fault;
    } all[] = {
        {410, "{\"code\":\"lock_lost\"}", CLIENT_LOST, HF_DONE},
        {410, "{\"code\":\"session_expired\"}", CLIENT_GONE, HF_DONE},
        {404, "{\"code\":\"no_such_session\"}", CLIENT_GONE, HF_DONE},
        {409, "{\"code\":\"slots_conflict\",\"slots\":3}", CLIENT_REFUSED, HF_BAD_REQUEST},
        {409, "{\"code\":\"deadlock\",\"cycle\":[{\"name\":\"a\",\"label\":\"x\"}]}",
         CLIENT_DEADLOCK, HF_DEADLOCK},
        {400, "{\"code\":\"invalid_request\",\"title\":\"No\"}", CLIENT_REFUSED, HF_BAD_REQUEST},
        {401, "", CLIENT_REFUSED, HF_UNREACHABLE},
        {404, "not found", CLIENT_REFUSED, HF_UNREACHABLE},
        {429, "{\"code\":\"too_many_sessions\"}", CLIENT_REFUSED, HF_UNREACHABLE},
        {307, "", CLIENT_NOT_DONE, HF_UNREACHABLE},
        {503, "{\"code\":\"no_master\"}", CLIENT_NOT_DONE, HF_UNREACHABLE},
        {503, "{\"code\":\"outcome_unknown\"}", CLIENT_NO_ANSWER, HF_UNREACHABLE},
        {502, "<html>", CLIENT_NO_ANSWER, HF_UNREACHABLE},
        {200, "<html>", CLIENT_NO_ANSWER, HF_UNKNOWN},
        {200, "{\"fence\":0}", CLIENT_NO_ANSWER, HF_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct wire_answer a = {0};
        assert_int_equal(judged(CLIENT_ACQUIRE, all[i].status, all[i].body, &a), all[i].result);
        assert_int_equal(a.fault.result, all[i].fault);
        if (all[i].fault == HF_DEADLOCK)
            assert_non_null(strstr(a.fault.msg, "a (x)"));
        wire_answer_close(&a);
    }
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(a_url_names_servers_a_key_and_parameters),
        cmocka_unit_test(the_key_of_the_environment_serves_a_url_without_one),
        cmocka_unit_test(a_malformed_url_is_refused_without_showing_it),
        cmocka_unit_test(messages_are_requests_of_the_api),
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(refusals_say_whether_anything_was_done),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
