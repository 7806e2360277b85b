/* Claims about checkout/webhook.h.  The events are written by hand after the documented shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "checkout/webhook.h"

static const struct id payment = {.key = 5, .secret = {1, 2, 3}};
static struct webhook w;

static int tear_down(void **state)
{
    (void)state;
    webhook_close(&w);
    return 0;
}

static enum webhook_verdict read_len(const char *body, size_t len)
{
    webhook_close(&w);
    return webhook_read(body, len, false, &w);
}

static enum webhook_verdict read_text(const char *body) { return read_len(body, strlen(body)); }

/* Reads an event of this type about this object, in which PAY stands for the payment's id. */
static enum webhook_verdict read_event(const char *type, const char *object)
{
    struct buf body = {0};
    char id[ID_TEXT_SIZE];
    id_format(id, "pay_", &payment);
    buf_printf(
        &body,
        "{\"id\":\"evt_1\",\"object\":\"event\",\"api_version\":\"x\",\"created\":1790000000,"
        "\"livemode\":false,\"type\":\"%s\",\"data\":{\"object\":",
        type);
    for (const char *place; (place = strstr(object, "PAY")); object = place + 3) {
        buf_put(&body, object, (size_t)(place - object));
        buf_str(&body, id);
    }
    buf_str(&body, object);
    buf_str(&body, "}}");
    enum webhook_verdict verdict = read_len(body.data, body.len);
    buf_close(&body);
    return verdict;
}

#define INTENT(status, more)                                                                       \
    "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":9000,\"currency\":\"jpy\","         \
    "\"client_secret\":\"pi_1_secret_2\",\"metadata\":{\"holdfast_payment\":\"PAY\"},"             \
    "\"status\":\"" status "\"" more "}"
#define REFUND(status, more)                                                                       \
    "{\"id\":\"re_1\",\"object\":\"refund\",\"amount\":400,\"charge\":\"ch_1\",\"payment_intent\"" \
    ":\"pi_1\",\"status\":\"" status "\"" more "}"

static void assert_ours(void)
{
    assert_int_equal(w.payment.key, payment.key);
    assert_true(id_secret_equal(w.payment.secret, payment.secret));
}

static void assert_nobodys(void) { assert_int_equal(w.payment.key, 0); }

/* ---- what is used ---- */

static void money_is_a_fact(void **state)
{
    (void)state;
    assert_int_equal(
        read_event("payment_intent.succeeded", INTENT("succeeded", ",\"amount_received\":8000")),
        WEBHOOK_GOOD);
    assert_ours();
    assert_string_equal(w.event.id, "evt_1");
    assert_string_equal(w.event.type, "payment_intent.succeeded");
    assert_int_equal(w.event.created_at, 1790000000000);
    assert_int_equal(w.fact.state, INTENT_CAPTURED);
    assert_int_equal(w.fact.amount, 9000);
    assert_int_equal(w.fact.received, 8000);
    assert_string_equal(w.fact.currency, "jpy");
    assert_string_equal(w.fact.intent, "pi_1");
    assert_string_equal(w.fact.client_secret, "");
    assert_true(!w.fact.is_current && !w.fact.asks);
    assert_int_equal(read_event("payment_intent.canceled", INTENT("canceled", "")), WEBHOOK_GOOD);
    assert_int_equal(w.fact.state, INTENT_CANCELED);
    assert_int_equal(
        read_event("payment_intent.amount_capturable_updated", INTENT("requires_capture", "")),
        WEBHOOK_GOOD);
    assert_int_equal(w.fact.state, INTENT_AUTHORIZED);
}

static void a_state_that_can_go_back_only_asks(void **state)
{
    (void)state;
    static const char *const types[] = {"payment_intent.created", "payment_intent.payment_failed",
                                        "payment_intent.requires_action",
                                        "payment_intent.processing"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_int_equal(read_event(types[i], INTENT("processing", "")), WEBHOOK_GOOD);
        assert_ours();
        assert_true(w.fact.asks && !w.fact.is_current);
        assert_int_equal(w.fact.state, INTENT_UNSAID);
        assert_string_equal(w.fact.intent, "pi_1");
    }
    /* A type of money about an intent that has none. */
    assert_int_equal(
        read_event("payment_intent.amount_capturable_updated", INTENT("processing", "")),
        WEBHOOK_GOOD);
    assert_true(w.fact.asks);
    assert_int_equal(w.fact.state, INTENT_UNSAID);
}

static void a_refund_is_a_fact_about_its_intent(void **state)
{
    (void)state;
    static const char *const types[] = {"refund.created", "refund.updated", "refund.failed",
                                        "charge.refund.updated"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_int_equal(
            read_event(types[i], REFUND("failed", ",\"metadata\":{\"holdfast_payment\":\"PAY\","
                                                  "\"holdfast_refund\":\"77\"}")),
            WEBHOOK_GOOD);
        assert_ours();
        assert_string_equal(w.fact.intent, "pi_1");
        assert_int_equal(w.fact.state, INTENT_UNSAID);
        assert_int_equal(w.fact.refunds.n, 1);
        assert_int_equal(w.fact.refunds.v[0].refund, 77);
        assert_int_equal(w.fact.refunds.v[0].amount, 400);
        assert_int_equal(w.fact.refunds.v[0].status, REFUND_FAILED);
    }
    /* Made in the dashboard. */
    assert_int_equal(read_event("refund.created", REFUND("pending", ",\"metadata\":{}")),
                     WEBHOOK_GOOD);
    assert_nobodys();
    assert_string_equal(w.fact.intent, "pi_1");
    assert_int_equal(w.fact.refunds.v[0].refund, 0);
}

static void a_refunded_charge_asks(void **state)
{
    (void)state;
    assert_int_equal(read_event("charge.refunded", "{\"id\":\"ch_1\",\"object\":\"charge\","
                                                   "\"payment_intent\":\"pi_1\",\"metadata\":{}}"),
                     WEBHOOK_GOOD);
    assert_nobodys();
    assert_true(w.fact.asks);
    assert_string_equal(w.fact.intent, "pi_1");
}

static void a_dispute_has_an_amount(void **state)
{
    (void)state;
    assert_int_equal(read_event("charge.dispute.created",
                                "{\"id\":\"dp_1\",\"object\":\"dispute\",\"amount\":9000,"
                                "\"payment_intent\":{\"id\":\"pi_1\",\"object\":"
                                "\"payment_intent\"},\"metadata\":{}}"),
                     WEBHOOK_GOOD);
    assert_nobodys();
    assert_int_equal(w.fact.disputed, 9000);
    assert_string_equal(w.fact.intent, "pi_1");
}

/* ---- what is not ---- */

static void a_type_or_an_object_without_use_is_counted_only(void **state)
{
    (void)state;
    assert_int_equal(read_event("charge.succeeded", "{\"object\":\"charge\"}"), WEBHOOK_UNUSED);
    assert_int_equal(read_event("customer.created", "7"), WEBHOOK_UNUSED);
    assert_int_equal(read_event("charge.dispute.closed", "{}"), WEBHOOK_UNUSED);
    assert_string_equal(w.event.id, "evt_1");
    /* Of a charge that was made without an intent. */
    assert_int_equal(read_event("refund.created", "{\"id\":\"re_1\",\"object\":\"refund\","
                                                  "\"payment_intent\":null}"),
                     WEBHOOK_UNUSED);
    assert_int_equal(w.fact.refunds.n, 0);
}

static void other_modes_and_accounts_are_foreign(void **state)
{
    (void)state;
#define EVENT(more)                                                                                \
    "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"type\":\"charge.refunded\","           \
    "\"data\":{\"object\":{\"id\":\"ch_1\",\"object\":\"charge\",\"payment_intent\":\"pi_1\"}"     \
    "}" more "}"
    assert_int_equal(read_text(EVENT(",\"livemode\":false")), WEBHOOK_GOOD);
    assert_nobodys();
    assert_int_equal(read_text(EVENT(",\"livemode\":false,\"account\":null")), WEBHOOK_GOOD);
    assert_int_equal(read_text(EVENT(",\"livemode\":true")), WEBHOOK_FOREIGN);
    assert_string_equal(w.event.id, "evt_1");
    assert_string_equal(w.fact.intent, "");
    assert_int_equal(read_text(EVENT(",\"livemode\":false,\"account\":\"acct_2\"")),
                     WEBHOOK_FOREIGN);
    const char *live = EVENT(",\"livemode\":true");
    webhook_close(&w);
    assert_int_equal(webhook_read(live, strlen(live), true, &w), WEBHOOK_GOOD);
    assert_int_equal(read_text(EVENT(",\"livemode\":\"false\"")), WEBHOOK_MALFORMED);
    assert_int_equal(read_text(EVENT("")), WEBHOOK_MALFORMED);
}

static void bytes_that_are_no_event_are_malformed(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        " ",
        "null",
        "[]",
        "{",
        "{}",
        "{\"object\":\"event\"}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"livemode\":false,\"type\":\"x\",\"created\":-1}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"livemode\":false,\"type\":\"x\",\"created\":1.5}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"livemode\":false,\"type\":\"x\",\"created\":"
        "999999999999999}",
        "{\"id\":\"evt 1\",\"object\":\"event\",\"livemode\":false,\"type\":\"x\",\"created\":1}",
        "{\"id\":\"\",\"object\":\"event\",\"livemode\":false,\"type\":\"x\",\"created\":1}",
        "{\"id\":\"evt_0123456789012345678901234567890123456789012345678901234567890123\","
        "\"object\":\"event\",\"livemode\":false,\"type\":\"x\",\"created\":1}",
        "{\"id\":\"evt_1\",\"object\":\"event\",\"livemode\":false,\"type\":7,\"created\":1}",
        "{\"id\":\"evt_1\",\"id\":\"evt_2\",\"object\":\"event\",\"livemode\":false,\"type\":\"x\","
        "\"created\":1}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        if (read_text(bodies[i]) != WEBHOOK_MALFORMED)
            fail_msg("%s", bodies[i]);
        assert_string_equal(w.event.id, "");
    }
    static const char with_nul[] = EVENT(",\"livemode\":false") "\0";
    assert_int_equal(read_len(with_nul, sizeof with_nul - 1), WEBHOOK_MALFORMED);
    assert_int_equal(read_len(NULL, 0), WEBHOOK_MALFORMED);
}

static void an_object_that_is_not_what_its_type_promises_is_malformed(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"payment_intent.succeeded", "null"},
        {"payment_intent.succeeded", "{}"},
        {"payment_intent.succeeded", REFUND("succeeded", "")},
        {"payment_intent.succeeded", INTENT("succeeded", "")},
        {"payment_intent.succeeded", INTENT("succeeded", ",\"amount_received\":1e3")},
        {"payment_intent.succeeded", INTENT("unheard_of", "")},
        {"payment_intent.created", "{\"object\":\"payment_intent\",\"id\":[],\"metadata\":"
                                   "{\"holdfast_payment\":\"PAY\"}}"},
        {"payment_intent.created", "7"},
        {"refund.failed", INTENT("canceled", "")},
        {"refund.failed", "{}"},
        {"refund.failed", REFUND("odd", "")},
        {"refund.failed", "{\"id\":\"re_1\",\"object\":\"refund\",\"amount\":1,\"status\":"
                          "\"failed\"}"},
        {"charge.refunded", "{\"object\":\"charge\",\"payment_intent\":5}"},
        {"charge.dispute.created", "{\"object\":\"dispute\",\"payment_intent\":\"pi_1\"}"},
        {"charge.dispute.created", "{\"object\":\"charge\",\"amount\":1,\"payment_intent\":"
                                   "\"pi_1\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read_event(cases[i][0], cases[i][1]) != WEBHOOK_MALFORMED)
            fail_msg("%s %s", cases[i][0], cases[i][1]);
}

static void an_intent_that_names_no_payment_is_not_ours(void **state)
{
    (void)state;
    static const char *const values[] = {"\"pay_\"", "\"PAYx\"", "\"hold_PAY\"",
                                         "7",        "null",     "[\"PAY\"]"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char object[256];
        snprintf(object, sizeof object,
                 "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"metadata\":"
                 "{\"holdfast_payment\":%s}}",
                 values[i]);
        assert_int_equal(read_event("payment_intent.created", object), WEBHOOK_UNUSED);
        assert_nobodys();
    }
}

static void a_long_body_is_not_parsed(void **state)
{
    (void)state;
    struct buf body = {0};
    buf_str(&body, EVENT(",\"livemode\":false"));
    while (body.len < WEBHOOK_LEN_MAX)
        buf_char(&body, ' ');
    assert_int_equal(read_len(body.data, body.len), WEBHOOK_GOOD);
    buf_char(&body, ' ');
    assert_int_equal(read_len(body.data, body.len), WEBHOOK_MALFORMED);
    buf_close(&body);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_teardown(name, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(money_is_a_fact),
        CLAIM(a_state_that_can_go_back_only_asks),
        CLAIM(a_refund_is_a_fact_about_its_intent),
        CLAIM(a_refunded_charge_asks),
        CLAIM(a_dispute_has_an_amount),
        CLAIM(a_type_or_an_object_without_use_is_counted_only),
        CLAIM(other_modes_and_accounts_are_foreign),
        CLAIM(bytes_that_are_no_event_are_malformed),
        CLAIM(an_object_that_is_not_what_its_type_promises_is_malformed),
        CLAIM(an_intent_that_names_no_payment_is_not_ours),
        CLAIM(a_long_body_is_not_parsed),
    };
    return cmocka_run_group_tests_name("webhook", tests, NULL, NULL);
}
