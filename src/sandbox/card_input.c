/* Reads the card of a request: payment_method (a test card's name) or payment_method_data (as a
 * card form sends it).  The number is looked up and forgotten.  See operations.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sandbox/operations.h"
#include "sandbox/refuse.h"

#define NUMBER_MAX 32
#define EXP_MONTH_NAMED 12 /* of cards that are given by name */

static bool refuse_card(struct api_error *ret, const char *code, const char *param,
                        const char *message)
{
    refuse(ret, 402, "card_error", code, param, "%s", message);
    ret->is_validation = true;
    return false;
}

static const char *card_field(const struct order *o, const char *name, char *full, size_t size)
{
    (void)snprintf(full, size, "payment_method_data[card][%s]", name);
    return form_get(&o->form, full);
}

/* Copies a card number without the blanks and dashes that people type. */
static bool clean_number(const char *text, char out[NUMBER_MAX])
{
    size_t n = 0;
    for (; *text; text++) {
        if (*text == ' ' || *text == '-')
            continue;
        if (n == NUMBER_MAX - 1)
            return false;
        out[n++] = *text;
    }
    out[n] = '\0';
    return true;
}

static void year_and_month(int64_t now_ms, int64_t *ret_year, int64_t *ret_month)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_ms(now_ms, text);
    *ret_year = strtol(text, NULL, 10);
    *ret_month = strtol(text + 5, NULL, 10);
}

static bool read_expiry(const struct bank *b, const struct order *o, struct card_input *ret_card,
                        struct api_error *ret)
{
    char name[64];
    int64_t month = 0, year = 0, this_year, this_month;
    const char *text = card_field(o, "exp_month", name, sizeof name);
    if (!text) {
        refuse_parameter(ret, "parameter_missing", "payment_method_data[card][exp_month]",
                         "Missing required param: payment_method_data[card][exp_month].");
        return false;
    }
    text += *text == '0' && text[1];
    if (!form_parse_int(text, &month) || month < 1 || month > 12)
        return refuse_card(ret, "invalid_expiry_month", "exp_month",
                           "Your card's expiration month is invalid.");
    text = card_field(o, "exp_year", name, sizeof name);
    if (!text) {
        refuse_parameter(ret, "parameter_missing", "payment_method_data[card][exp_year]",
                         "Missing required param: payment_method_data[card][exp_year].");
        return false;
    }
    bool is_year = form_parse_int(text, &year);
    year += year < 100 ? 2000 : 0;
    year_and_month(b->now_ms, &this_year, &this_month);
    if (!is_year || year > this_year + 50)
        return refuse_card(ret, "invalid_expiry_year", "exp_year",
                           "Your card's expiration year is invalid.");
    if (year < this_year || (year == this_year && month < this_month))
        return refuse_card(ret, "expired_card", year < this_year ? "exp_year" : "exp_month",
                           "Your card has expired.");
    ret_card->exp_month = month;
    ret_card->exp_year = year;
    return true;
}

static bool read_number(const struct order *o, struct card_input *ret_card, struct api_error *ret)
{
    char name[64], number[NUMBER_MAX];
    const char *text = card_field(o, "number", name, sizeof name);
    if (!text) {
        refuse_parameter(ret, "parameter_missing", "payment_method_data[card][number]",
                         "Missing required param: payment_method_data[card][number].");
        return false;
    }
    if (!clean_number(text, number) || !card_number_is_valid(number))
        return refuse_card(ret, "incorrect_number", "number", "Your card number is incorrect.");
    const struct card *card = card_by_number(number);
    if (!card) {
        (void)refuse_card(ret, decline_live_card.code, NULL, decline_live_card.message);
        ret->decline_code = decline_live_card.decline_code;
        return false;
    }
    ret_card->card = card;
    return true;
}

static bool read_cvc(const struct order *o, struct api_error *ret)
{
    char name[64];
    const char *cvc = card_field(o, "cvc", name, sizeof name);
    size_t len = cvc ? strlen(cvc) : 3;
    if (len >= 3 && len <= 4 && (!cvc || strspn(cvc, "0123456789") == len))
        return true;
    return refuse_card(ret, "invalid_cvc", "cvc", "Your card's security code is invalid.");
}

/* A test card by the name that Stripe has for it, or the method that the intent has already. */
static bool named_card(const struct bank *b, const char *name, const struct intent *i,
                       struct card_input *ret_card, struct api_error *ret)
{
    char id[ID_TEXT_SIZE] = "";
    const struct method *has = i && i->method.card ? &i->method : NULL;
    if (has)
        (void)id_format(id, "pm_", &has->id);
    const struct card *card = has && strcmp(id, name) == 0 ? has->card : card_by_name(name);
    if (!card) {
        refuse(ret, 400, "invalid_request_error", "resource_missing", "payment_method",
               "No such PaymentMethod: '%.100s'", name);
        ret->is_validation = true;
        return false;
    }
    int64_t this_year, this_month;
    year_and_month(b->now_ms, &this_year, &this_month);
    *ret_card = (struct card_input){card, EXP_MONTH_NAMED, this_year + 1};
    return true;
}

bool order_card(const struct bank *b, const struct order *o, const struct intent *i,
                struct card_input *ret_card, struct api_error *ret)
{
    const char *name = form_get(&o->form, "payment_method");
    const char *type = form_get(&o->form, "payment_method_data[type]");
    const char *token = form_get(&o->form, "payment_method_data[card][token]");
    if (name || token)
        return named_card(b, name ? name : token, i, ret_card, ret);
    if (!type && form_find(&o->form, "payment_method_data[card][*]", 0) == o->form.entries.n)
        return true;
    if (!type || strcmp(type, "card") != 0) {
        refuse_parameter(ret, type ? "payment_method_type_invalid" : "parameter_missing",
                         "payment_method_data[type]", "payment_method_data[type] must be card.");
        return false;
    }
    return read_number(o, ret_card, ret) && read_expiry(b, o, ret_card, ret) && read_cvc(o, ret);
}
