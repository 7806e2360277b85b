/* The sandbox's state machine: sandbox/bank.h, without threads, files or sockets. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "sandbox/bank.h"

#define ACCOUNT 7
#define AMOUNT 5000

static struct bank bank;

static int open_bank(void **state)
{
    (void)state;
    bank_init(&bank);
    random_init_seeded(&bank.random, test_seed(1));
    bank.base_url = "http://sandbox.test";
    bank.now_ms = T0_MS;
    bank.later_ms = 1000;
    return 0;
}

static int close_bank(void **state)
{
    (void)state;
    bank_close(&bank);
    return 0;
}

static struct intent *new_intent(bool manual)
{
    static const struct metadata none;
    return intent_create(&bank, &(struct intent_terms){.account = ACCOUNT,
                                                       .amount = AMOUNT,
                                                       .currency = "usd",
                                                       .manual_capture = manual,
                                                       .metadata = &none});
}

static void give_card(struct intent *i, const char *name)
{
    const struct card *card = card_by_name(name);
    assert_non_null(card);
    intent_set_method(&bank, i, card, 12, 2030);
}

static bool pay(struct intent *i, const char *name, struct api_error *error)
{
    *error = (struct api_error){0};
    give_card(i, name);
    return intent_confirm(&bank, i, error);
}

static struct refund *refund(struct charge *c, int64_t amount, struct api_error *error)
{
    static const struct metadata none;
    struct refund *r = NULL;
    *error = (struct api_error){0};
    (void)!charge_refund(&bank, c, &(struct refund_terms){.amount = amount, .metadata = &none}, &r,
                         error);
    return r;
}

/* The types of all events so far, the oldest first, with a space after each. */
static const char *told(void)
{
    static char text[2048];
    text[0] = '\0';
    for (int64_t n = 1; n <= bank.n_events; n++) {
        const char *name = event_type_names[bank_event(&bank, n)->type];
        size_t len = strlen(text);
        (void)snprintf(text + len, sizeof text - len, "%s ", name);
    }
    return text;
}

static void a_good_card_pays(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *i = new_intent(false);
    assert_int_equal(i->status, PI_REQUIRES_PAYMENT_METHOD);
    assert_true(pay(i, "pm_card_visa", &error));
    assert_int_equal(i->status, PI_SUCCEEDED);
    assert_int_equal(i->received, AMOUNT);
    assert_string_equal(told(),
                        "payment_intent.created charge.succeeded payment_intent.succeeded ");
    assert_false(pay(i, "pm_card_visa", &error));
    assert_string_equal(error.code, "payment_intent_unexpected_state");
    assert_ptr_equal(error.intent, i);
    assert_int_equal(bank.charges.n, 1);
}

static void a_declined_card_can_be_followed_by_another(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *i = new_intent(false);
    assert_false(pay(i, "pm_card_chargeDeclinedInsufficientFunds", &error));
    assert_int_equal(error.status, 402);
    assert_string_equal(error.decline_code, "insufficient_funds");
    assert_int_equal(i->status, PI_REQUIRES_PAYMENT_METHOD);
    assert_null(i->method.card);
    assert_true(pay(i, "pm_card_visa", &error));
    assert_null(i->error);
    assert_int_equal(bank_charge(&bank, i->charge)->previous, 1);
    assert_string_equal(told(),
                        "payment_intent.created charge.failed payment_intent.payment_failed "
                        "charge.succeeded payment_intent.succeeded ");
}

static void an_action_is_completed_or_failed_once(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *i = new_intent(false);
    assert_true(pay(i, "pm_card_authenticationRequired", &error));
    assert_int_equal(i->status, PI_REQUIRES_ACTION);
    assert_true(intent_act(&bank, i, false));
    assert_int_equal(i->status, PI_REQUIRES_PAYMENT_METHOD);
    assert_ptr_equal(i->error, &decline_authentication);
    assert_false(intent_act(&bank, i, true));
    assert_true(pay(i, "pm_card_authenticationRequired", &error));
    assert_true(intent_act(&bank, i, true));
    assert_int_equal(i->status, PI_SUCCEEDED);
    assert_false(intent_act(&bank, i, false));
    assert_int_equal(bank.charges.n, 1);
}

static void a_card_may_be_declined_after_its_action(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *i = new_intent(true);
    assert_true(pay(i, "pm_card_authenticationRequiredChargeDeclined", &error));
    assert_true(intent_act(&bank, i, true));
    assert_int_equal(i->status, PI_REQUIRES_PAYMENT_METHOD);
    assert_string_equal(i->error->code, "card_declined");
}

static void an_authorization_is_captured_or_released(void **state)
{
    (void)state;
    struct api_error error = {0};
    struct intent *captured = new_intent(true), *released = new_intent(true);
    assert_true(pay(captured, "pm_card_visa", &error) && pay(released, "pm_card_visa", &error));
    assert_int_equal(captured->status, PI_REQUIRES_CAPTURE);
    assert_int_equal(captured->received, 0);
    assert_false(intent_capture(&bank, captured, AMOUNT + 1, &error));
    assert_true(intent_capture(&bank, captured, AMOUNT - 1, &error));
    assert_int_equal(captured->received, AMOUNT - 1);
    assert_false(intent_capture(&bank, captured, 1, &error));
    assert_false(intent_cancel(&bank, captured, NULL, &error));
    assert_true(intent_cancel(&bank, released, "abandoned", &error));
    assert_true(bank_charge(&bank, released->charge)->is_released);
    assert_int_equal(released->received, 0);
    assert_false(intent_capture(&bank, released, 1, &error));
    assert_null(refund(bank_charge(&bank, released->charge), 0, &error));
}

static void no_more_is_refunded_than_was_captured(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *i = new_intent(false);
    assert_true(pay(i, "pm_card_visa", &error));
    struct charge *c = bank_charge(&bank, i->charge);
    assert_int_equal(refund(c, 2000, &error)->amount, 2000);
    assert_null(refund(c, 3001, &error));
    assert_string_equal(error.param, "amount");
    assert_int_equal(refund(c, 0, &error)->amount, 3000);
    assert_null(refund(c, 1, &error));
    assert_string_equal(error.code, "charge_already_refunded");
    assert_int_equal(c->refunded, AMOUNT);
}

static void a_refund_that_fails_later_can_be_made_again(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *i = new_intent(false);
    assert_true(pay(i, "pm_card_refundFail", &error));
    struct charge *c = bank_charge(&bank, i->charge);
    struct refund *r = refund(c, 0, &error);
    assert_int_equal(r->status, RE_SUCCEEDED);
    assert_int_equal(bank_settle(&bank), T0_MS + 1000);
    assert_int_equal(r->status, RE_SUCCEEDED);
    bank.now_ms += 1000;
    assert_true(bank_settle(&bank) == INT64_MAX);
    assert_int_equal(r->status, RE_FAILED);
    assert_int_equal(c->refunded, 0);
    assert_non_null(strstr(told(), "refund.failed refund.updated charge.refund.updated "));
    assert_non_null(refund(c, 0, &error));
}

static void a_dispute_comes_later_unless_the_money_went_back(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *disputed = new_intent(false), *refunded = new_intent(false);
    assert_true(pay(disputed, "pm_card_createDispute", &error));
    assert_true(pay(refunded, "pm_card_createDispute", &error));
    assert_non_null(refund(bank_charge(&bank, refunded->charge), 0, &error));
    bank.now_ms += 1000;
    (void)bank_settle(&bank);
    assert_int_equal(bank.disputes.n, 1);
    assert_int_equal(bank_dispute(&bank, 1)->charge, disputed->charge);
    assert_null(refund(bank_charge(&bank, disputed->charge), 0, &error));
    assert_string_equal(error.code, "charge_disputed");
}

static void a_processing_intent_is_decided_later(void **state)
{
    (void)state;
    struct api_error error;
    struct intent *good = new_intent(false), *bad = new_intent(false);
    bank.processes = true;
    assert_true(pay(good, "pm_card_visa", &error) && pay(bad, "pm_card_chargeDeclined", &error));
    assert_int_equal(good->status, PI_PROCESSING);
    assert_false(intent_cancel(&bank, good, NULL, &error));
    assert_false(intent_confirm(&bank, good, &error));
    assert_int_equal(bank_settle(&bank), T0_MS + 1000);
    bank.now_ms += 1000;
    assert_true(bank_settle(&bank) == INT64_MAX);
    assert_int_equal(good->status, PI_SUCCEEDED);
    assert_int_equal(bad->status, PI_REQUIRES_PAYMENT_METHOD);
    assert_string_equal(bad->error->decline_code, "generic_decline");
}

static void objects_are_found_by_their_whole_id_and_account(void **state)
{
    (void)state;
    char id[ID_TEXT_SIZE];
    struct intent *i = new_intent(false);
    (void)id_format(id, "pi_", &i->id);
    assert_ptr_equal(bank_find_intent(&bank, ACCOUNT, id), i);
    assert_null(bank_find_intent(&bank, ACCOUNT + 1, id));
    assert_null(bank_find_charge(&bank, ACCOUNT, id));
    id[strlen(id) - 1] = id[strlen(id) - 1] == 'a' ? 'b' : 'a';
    assert_null(bank_find_intent(&bank, ACCOUNT, id));
    char secret[PI_SECRET_SIZE];
    intent_client_secret(i, secret);
    assert_true(intent_secret_matches(i, secret));
    secret[strlen(secret) - 1] = '\0';
    assert_false(intent_secret_matches(i, secret));
}

static void only_the_newest_events_are_kept(void **state)
{
    (void)state;
    struct intent *i = new_intent(false);
    for (int n = 0; n < EVENTS_MAX; n++)
        bank_emit(&bank, EVENT_INTENT_CREATED, i->id.key);
    assert_int_equal(bank.n_events, EVENTS_MAX + 1);
    assert_null(bank_event(&bank, 1));
    assert_non_null(bank_event(&bank, 2));
    assert_int_equal(bank.events.n, EVENTS_MAX);
}

static void an_empty_value_removes_metadata(void **state)
{
    (void)state;
    struct metadata m = {0};
    metadata_set(&m, "a", "1");
    metadata_set(&m, "b", "2");
    metadata_set(&m, "a", "3");
    metadata_set(&m, "c", "");
    assert_int_equal(m.pairs.n, 2);
    assert_string_equal(metadata_get(&m, "a"), "3");
    metadata_set(&m, "a", "");
    assert_null(metadata_get(&m, "a"));
    assert_string_equal(metadata_get(&m, "b"), "2");
    metadata_close(&m);
}

/* ---- any operations in any order ---- */

static const char *const any_card[] = {"pm_card_visa",
                                       "pm_card_chargeDeclined",
                                       "pm_card_authenticationRequired",
                                       "pm_card_refundFail",
                                       "pm_card_createDispute",
                                       "pm_card_authenticationRequiredChargeDeclined",
                                       "pm_card_pendingRefund"};

/* Which status may follow which. */
static bool may_follow(enum intent_status from, enum intent_status to)
{
    static const unsigned next[PI_STATUSES] = {
        [PI_PROCESSING] =
            1u << PI_REQUIRES_PAYMENT_METHOD | 1u << PI_SUCCEEDED | 1u << PI_REQUIRES_CAPTURE,
        [PI_REQUIRES_PAYMENT_METHOD] = 1u << PI_REQUIRES_CONFIRMATION | 1u << PI_CANCELED |
                                       1u << PI_PROCESSING | 1u << PI_REQUIRES_ACTION |
                                       1u << PI_SUCCEEDED | 1u << PI_REQUIRES_CAPTURE,
        [PI_REQUIRES_CONFIRMATION] = 1u << PI_REQUIRES_PAYMENT_METHOD | 1u << PI_CANCELED |
                                     1u << PI_PROCESSING | 1u << PI_REQUIRES_ACTION |
                                     1u << PI_SUCCEEDED | 1u << PI_REQUIRES_CAPTURE,
        [PI_REQUIRES_ACTION] = 1u << PI_REQUIRES_PAYMENT_METHOD | 1u << PI_CANCELED |
                               1u << PI_PROCESSING | 1u << PI_SUCCEEDED | 1u << PI_REQUIRES_CAPTURE,
        [PI_REQUIRES_CAPTURE] = 1u << PI_CANCELED | 1u << PI_SUCCEEDED,
    };
    return from == to || next[from] >> to & 1u;
}

static void do_something(struct random *random, struct intent *i)
{
    struct api_error error = {0};
    bank.processes = random_below(random, 4) == 0;
    switch (random_below(random, 7)) {
    case 0:
        if (i->status <= PI_REQUIRES_ACTION)
            (void)!pay(i, any_card[random_below(random, sizeof any_card / sizeof *any_card)],
                       &error);
        break;
    case 1:
        (void)!intent_confirm(&bank, i, &error);
        break;
    case 2:
        (void)intent_act(&bank, i, random_below(random, 2));
        break;
    case 3:
        (void)!intent_capture(&bank, i, 1 + (int64_t)random_below(random, AMOUNT + 10), &error);
        break;
    case 4:
        if (random_below(random, 4) == 0)
            (void)!intent_cancel(&bank, i, NULL, &error);
        break;
    case 5:
        if (i->charge)
            (void)refund(bank_charge(&bank, i->charge), (int64_t)random_below(random, AMOUNT),
                         &error);
        break;
    default:
        bank.now_ms += (int64_t)random_below(random, 1500);
        (void)bank_settle(&bank);
    }
}

/* What must be true of an intent at any moment. */
static void assert_sound(const struct intent *i)
{
    int64_t captured = 0, n_good = 0;
    for (int64_t n = i->charge; n; n = bank_charge(&bank, n)->previous) {
        const struct charge *c = bank_charge(&bank, n);
        int64_t refunds = 0;
        for (int64_t r = c->refund; r; r = bank_refund(&bank, r)->previous)
            refunds +=
                bank_refund(&bank, r)->status == RE_FAILED ? 0 : bank_refund(&bank, r)->amount;
        assert_int_equal(refunds, c->refunded);
        assert_true(c->refunded >= 0 && c->refunded <= c->captured && c->captured <= c->amount);
        assert_true(!c->dispute || c->captured > 0);
        captured += c->captured;
        n_good += !c->decline;
    }
    assert_int_equal(captured, i->received);
    assert_int_equal(n_good > 0, i->status == PI_SUCCEEDED || i->status == PI_REQUIRES_CAPTURE ||
                                     (i->status == PI_CANCELED && n_good));
    assert_true(n_good <= 1);
    assert_int_equal(i->received > 0, i->status == PI_SUCCEEDED);
    assert_int_equal(i->capturable > 0, i->status == PI_REQUIRES_CAPTURE);
}

static void random_operations_keep_the_money_right(void **state)
{
    (void)state;
    struct random random;
    struct intent *intents[8];
    random_init_seeded(&random, test_seed(3));
    for (size_t n = 0; n < 400; n++) {
        for (size_t i = 0; i < 8; i++)
            intents[i] = new_intent(i % 2);
        for (size_t step = 0; step < 60; step++) {
            struct intent *i = intents[random_below(&random, 8)];
            enum intent_status before = i->status;
            int64_t n_events = bank.n_events;
            do_something(&random, i);
            assert_true(may_follow(before, i->status));
            /* Whatever changes the status is told, except that a method was given. */
            assert_true(before == i->status || i->status == PI_REQUIRES_CONFIRMATION ||
                        bank.n_events > n_events);
            assert_sound(i);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bank, close_bank)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_card_pays),
        TEST(a_declined_card_can_be_followed_by_another),
        TEST(an_action_is_completed_or_failed_once),
        TEST(a_card_may_be_declined_after_its_action),
        TEST(an_authorization_is_captured_or_released),
        TEST(no_more_is_refunded_than_was_captured),
        TEST(a_refund_that_fails_later_can_be_made_again),
        TEST(a_dispute_comes_later_unless_the_money_went_back),
        TEST(a_processing_intent_is_decided_later),
        TEST(objects_are_found_by_their_whole_id_and_account),
        TEST(only_the_newest_events_are_kept),
        TEST(an_empty_value_removes_metadata),
        TEST(random_operations_keep_the_money_right),
    };
    return cmocka_run_group_tests_name("sandbox_bank", tests, NULL, NULL);
}
