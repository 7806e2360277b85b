/* See stripe_object.h. */
#include "checkout/stripe_object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "checkout/stripe.h"

#define CARD_DIGITS_MIN 12

/* ---- values ---- */

json_t *object_parse(const char *text, size_t len)
{
    json_t *json = text ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

bool object_name(const json_t *value, char *ret, size_t size)
{
    size_t len = json_string_length(value);
    const char *text = json_string_value(value);
    if (len == 0 || len >= size ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != len)
        return false;
    memcpy(ret, text, len + 1);
    return true;
}

bool object_id(const json_t *value, char ret[PROVIDER_ID_SIZE])
{
    if (json_is_object(value))
        value = json_object_get(value, "id");
    return object_name(value, ret, PROVIDER_ID_SIZE);
}

bool object_amount(const json_t *value, int64_t *ret)
{
    json_int_t amount = json_integer_value(value);
    if (!json_is_integer(value) || amount < 0 || amount > STRIPE_AMOUNT_MAX)
        return false;
    *ret = amount;
    return true;
}

bool object_is(const json_t *value, const char *name)
{
    const char *text = json_string_value(json_object_get(value, "object"));
    return text && strcmp(text, name) == 0;
}

static const json_t *metadata(const json_t *object, const char *name)
{
    return json_object_get(json_object_get(object, "metadata"), name);
}

struct id object_payment(const json_t *object)
{
    const json_t *value = metadata(object, STRIPE_METADATA_PAYMENT);
    struct id id = {0};
    if (!json_is_string(value) ||
        !id_parse(json_string_value(value), json_string_length(value), "pay_", &id))
        return (struct id){0};
    return id;
}

/* ---- errors ---- */

static bool is_secret(const char *word, size_t len)
{
    static const char *const marks[] = {"@", "_secret_", "sk_", "rk_", "pk_", "whsec_", "pay_"};
    size_t digits = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (memmem(word, len, marks[i], strlen(marks[i])))
            return true;
    for (size_t i = 0; i < len; i++)
        digits += word[i] >= '0' && word[i] <= '9';
    return digits >= CARD_DIGITS_MIN;
}

static bool is_blank(char c) { return (unsigned char)c <= ' ' || c == 0x7f; }

void object_message(const char *text, char *ret, size_t size)
{
    size_t used = 0;
    while (*text) {
        size_t len = 0;
        while (is_blank(*text) && *text)
            text++;
        while (text[len] && !is_blank(text[len]))
            len++;
        if (len == 0)
            break;
        const char *word = is_secret(text, len) ? "***" : text;
        size_t word_len = word == text ? len : 3, gap = used > 0;
        if (used + gap >= size - 1)
            break;
        if (gap)
            ret[used++] = ' ';
        if (word_len > size - 1 - used)
            word_len = size - 1 - used;
        memcpy(ret + used, word, word_len);
        used += word_len;
        text += len;
    }
    ret[utf8_valid_len(ret, used)] = '\0';
}

void object_error(const json_t *error, struct payment_error *ret)
{
    const char *message = json_string_value(json_object_get(error, "message"));
    *ret = (struct payment_error){0};
    if (!object_name(json_object_get(error, "code"), ret->code, sizeof ret->code) &&
        !object_name(json_object_get(error, "type"), ret->code, sizeof ret->code))
        (void)snprintf(ret->code, sizeof ret->code, "unknown_error");
    (void)object_name(json_object_get(error, "decline_code"), ret->decline_code,
                      sizeof ret->decline_code);
    if (message)
        object_message(message, ret->message, sizeof ret->message);
}

/* ---- intents ---- */

/* INTENT_UNSAID: the status is none that we know. */
static enum intent_state state_of(const char *status)
{
    static const struct {
        const char *status;
        enum intent_state state;
    } states[] = {
        {"requires_payment_method", INTENT_REQUIRES_PAYMENT},
        {"requires_confirmation", INTENT_REQUIRES_PAYMENT},
        {"requires_action", INTENT_REQUIRES_ACTION},
        {"processing", INTENT_PROCESSING},
        {"requires_capture", INTENT_AUTHORIZED},
        {"succeeded", INTENT_CAPTURED},
        {"canceled", INTENT_CANCELED},
    };
    for (size_t i = 0; status && i < sizeof states / sizeof *states; i++)
        if (strcmp(status, states[i].status) == 0)
            return states[i].state;
    return INTENT_UNSAID;
}

static bool read_currency(const json_t *value, char ret[4])
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != 3 || strspn(text, "abcdefghijklmnopqrstuvwxyz") != 3)
        return false;
    memcpy(ret, text, 4);
    return true;
}

bool object_intent(const json_t *intent, struct fact *fact)
{
    const json_t *error = json_object_get(intent, "last_payment_error");
    const json_t *secret = json_object_get(intent, "client_secret");
    fact->state = state_of(json_string_value(json_object_get(intent, "status")));
    if (!object_is(intent, "payment_intent") || fact->state == INTENT_UNSAID ||
        !object_id(intent, fact->intent) ||
        !object_amount(json_object_get(intent, "amount"), &fact->amount) ||
        !read_currency(json_object_get(intent, "currency"), fact->currency))
        return false;
    if (fact->state == INTENT_CAPTURED &&
        !object_amount(json_object_get(intent, "amount_received"), &fact->received))
        return false;
    if (json_is_string(secret) &&
        !object_name(secret, fact->client_secret, sizeof fact->client_secret))
        return false;
    if (json_is_object(error))
        object_error(error, &fact->error);
    return true;
}

/* ---- refunds ---- */

/* The key of our row; 0: the refund was not made by us. */
static int64_t refund_key(const json_t *refund)
{
    const char *text = json_string_value(metadata(refund, STRIPE_METADATA_REFUND));
    size_t len = text ? strspn(text, "0123456789") : 0;
    if (len == 0 || len > 18 || text[len])
        return 0;
    return strtoll(text, NULL, 10);
}

static bool read_refund_status(const json_t *value, enum refund_status *ret)
{
    static const struct {
        const char *text;
        enum refund_status status;
    } statuses[] = {
        {"pending", REFUND_PENDING},     {"requires_action", REFUND_PENDING},
        {"succeeded", REFUND_SUCCEEDED}, {"failed", REFUND_FAILED},
        {"canceled", REFUND_FAILED},
    };
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < sizeof statuses / sizeof *statuses; i++)
        if (strcmp(text, statuses[i].text) == 0) {
            *ret = statuses[i].status;
            return true;
        }
    return false;
}

bool object_refund(const json_t *refund, struct fact *fact)
{
    struct refund_fact r = {.refund = refund_key(refund)};
    if (!object_is(refund, "refund") || !object_id(refund, r.id) ||
        !object_amount(json_object_get(refund, "amount"), &r.amount) ||
        !read_refund_status(json_object_get(refund, "status"), &r.status))
        return false;
    if (fact->refunds.n < REFUNDS_MAX)
        *vec_push(&fact->refunds) = r;
    return true;
}

bool object_refunds(const json_t *list, struct fact *fact, bool *ret_has_more)
{
    const json_t *data = json_object_get(list, "data"), *refund;
    size_t i;
    if (!object_is(list, "list") || !json_is_array(data))
        return false;
    json_array_foreach(data, i, refund) if (!object_refund(refund, fact)) return false;
    *ret_has_more = json_is_true(json_object_get(list, "has_more"));
    return true;
}
