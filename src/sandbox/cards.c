/* See cards.h. */
#include "sandbox/cards.h"

#include <stddef.h>
#include <string.h>

#define MINIMUM_DEFAULT 50

static const struct decline generic = {"generic_decline", "card_declined", "generic_decline",
                                       "Your card was declined.", "generic_decline"};
static const struct decline insufficient_funds = {
    "insufficient_funds", "card_declined", "insufficient_funds",
    "Your card has insufficient funds.", "insufficient_funds"};
static const struct decline lost_card = {"lost_card", "card_declined", "lost_card",
                                         "Your card was declined.", "lost_card"};
static const struct decline stolen_card = {"stolen_card", "card_declined", "stolen_card",
                                           "Your card was declined.", "stolen_card"};
static const struct decline expired_card = {"expired_card", "expired_card", NULL,
                                            "Your card has expired.", "expired_card"};
static const struct decline incorrect_cvc = {"incorrect_cvc", "incorrect_cvc", NULL,
                                             "Your card's security code is incorrect.",
                                             "incorrect_cvc"};
static const struct decline processing_error = {
    "processing_error", "processing_error", NULL,
    "An error occurred while processing your card. Try again in a little bit.", "processing_error"};
static const struct decline fraudulent = {"fraudulent", "card_declined", "fraudulent",
                                          "Your card was declined.", "highest_risk_level"};
const struct decline decline_live_card = {
    "test_mode_live_card", "card_declined", "test_mode_live_card",
    "Your card was declined. Your request was in test mode, but used a non test card. Use a test "
    "card instead.",
    "test_mode_live_card"};
const struct decline decline_authentication = {
    "authentication_failure", "payment_intent_authentication_failure", NULL,
    "The provided PaymentMethod has failed authentication. You can provide payment_method_data or "
    "a new PaymentMethod to attempt to fulfill this PaymentIntent again.",
    NULL};

static const struct decline *const declines[] = {
    &generic,       &insufficient_funds, &lost_card,  &stolen_card,       &expired_card,
    &incorrect_cvc, &processing_error,   &fraudulent, &decline_live_card, &decline_authentication,
};

static const struct card cards[] = {
    {"4242424242424242", "pm_card_visa", "visa", "credit", "US", .decline = NULL},
    {"4000056655665556", "pm_card_visa_debit", "visa", "debit", "US", .decline = NULL},
    {"5555555555554444", "pm_card_mastercard", "mastercard", "credit", "US", .decline = NULL},
    {"378282246310005", "pm_card_amex", "amex", "credit", "US", .decline = NULL},
    {"4000000000000002", "pm_card_visa_chargeDeclined", "visa", "credit", "US",
     .decline = &generic},
    {"4000000000000002", "pm_card_chargeDeclined", "visa", "credit", "US", .decline = &generic},
    {"4000000000009995", "pm_card_visa_chargeDeclinedInsufficientFunds", "visa", "credit", "US",
     .decline = &insufficient_funds},
    {"4000000000009995", "pm_card_chargeDeclinedInsufficientFunds", "visa", "credit", "US",
     .decline = &insufficient_funds},
    {"4000000000009987", "pm_card_visa_chargeDeclinedLostCard", "visa", "credit", "US",
     .decline = &lost_card},
    {"4000000000009979", "pm_card_visa_chargeDeclinedStolenCard", "visa", "credit", "US",
     .decline = &stolen_card},
    {"4000000000000069", "pm_card_chargeDeclinedExpiredCard", "visa", "credit", "US",
     .decline = &expired_card},
    {"4000000000000127", "pm_card_chargeDeclinedIncorrectCvc", "visa", "credit", "US",
     .decline = &incorrect_cvc},
    {"4000000000000119", "pm_card_chargeDeclinedProcessingError", "visa", "credit", "US",
     .decline = &processing_error},
    {"4100000000000019", "pm_card_radarBlock", "visa", "credit", "US", .decline = &fraudulent},
    {"4000000000000341", "pm_card_chargeCustomerFail", "visa", "credit", "US", .decline = &generic},
    {"4000002500003155", "pm_card_authenticationRequiredOnSetup", "visa", "credit", "US",
     .needs_action = true},
    {"4000002760003184", "pm_card_authenticationRequired", "visa", "credit", "US",
     .needs_action = true},
    {"4000000000003220", "pm_card_threeDSecure2Required", "visa", "credit", "US",
     .needs_action = true},
    {"4000008400001629", "pm_card_authenticationRequiredChargeDeclined", "visa", "credit", "US",
     .decline = &generic, .needs_action = true},
    {"4000000000005126", "pm_card_refundFail", "visa", "credit", "US",
     .refunds = REFUNDS_FAIL_LATER},
    {"4000000000007726", "pm_card_pendingRefund", "visa", "credit", "US", .refunds = REFUNDS_LATER},
    {"4000000000000259", "pm_card_createDispute", "visa", "credit", "US", .is_disputed = true},
};
#define N_CARDS (sizeof cards / sizeof *cards)

const char *card_last4(const struct card *card) { return card->number + strlen(card->number) - 4; }

const struct card *card_by_name(const char *name)
{
    static const char method[] = "pm_card_", token[] = "tok_";
    const size_t method_len = sizeof method - 1, token_len = sizeof token - 1;
    bool is_token = strncmp(name, token, token_len) == 0;
    for (size_t i = 0; i < N_CARDS; i++)
        if (strcmp(cards[i].name, name) == 0 ||
            (is_token && strcmp(cards[i].name + method_len, name + token_len) == 0))
            return &cards[i];
    return NULL;
}

const struct card *card_by_number(const char *number)
{
    for (size_t i = 0; i < N_CARDS; i++)
        if (strcmp(cards[i].number, number) == 0)
            return &cards[i];
    return NULL;
}

const struct decline *decline_by_name(const char *name)
{
    for (size_t i = 0; i < sizeof declines / sizeof *declines; i++)
        if (strcmp(declines[i]->name, name) == 0)
            return declines[i];
    return NULL;
}

bool card_number_is_valid(const char *number)
{
    size_t len = strlen(number);
    int sum = 0;
    if (len < 12 || len > 19 || strspn(number, "0123456789") < len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int digit = number[len - 1 - i] - '0';
        if (i % 2 == 1)
            digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
        sum += digit;
    }
    return sum % 10 == 0;
}

/* ---- currencies ---- */

static const char known[] =
    "usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp "
    "byn bzd cad cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip "
    "gmd gnf gtq gyd hkd hnl htg huf idr ils inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt "
    "lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr "
    "nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd "
    "std szl thb tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof xpf yer zar "
    "zmw ";

/* In the smallest unit, where it is not MINIMUM_DEFAULT. */
static const struct {
    char currency[CURRENCY_SIZE];
    int64_t minimum;
} minimums[] = {{"aed", 200}, {"bgn", 100},   {"czk", 1500}, {"dkk", 250},  {"gbp", 30},
                {"hkd", 400}, {"huf", 17500}, {"jpy", 50},   {"mxn", 1000}, {"myr", 200},
                {"nok", 300}, {"pln", 200},   {"ron", 200},  {"sek", 300},  {"thb", 1000}};

bool currency_is_known(const char *currency)
{
    if (strlen(currency) != CURRENCY_SIZE - 1 ||
        strspn(currency, "abcdefghijklmnopqrstuvwxyz") != CURRENCY_SIZE - 1)
        return false;
    return strstr(known, currency) != NULL;
}

int64_t currency_minimum(const char *currency)
{
    for (size_t i = 0; i < sizeof minimums / sizeof *minimums; i++)
        if (strcmp(minimums[i].currency, currency) == 0)
            return minimums[i].minimum;
    return MINIMUM_DEFAULT;
}
