/* Reads Stripe's objects out of JSON: intents, refunds, disputes, and errors.  Answers to our calls
 * (stripe.c) and events (webhook.c) carry the same objects.
 *
 * The JSON is foreign.  A field of a wrong type or out of range makes a reader return false; fields
 * that are not ours to know are ignored.  Pure functions. */
#ifndef HF_CHECKOUT_STRIPE_OBJECT_H
#define HF_CHECKOUT_STRIPE_OBJECT_H

#include <jansson.h>

#include "model/payment.h"

/* Parses a text as one JSON object, for json_decref; NULL if it is none. */
json_t *object_parse(const char *text, size_t len);

/* Copies a string that has 1 to size - 1 bytes, all of them letters, digits, '_', '-' or '.'.
 * Returns false and leaves `ret` alone if the value is anything else. */
bool object_name(const json_t *value, char *ret, size_t size);
/* The id of an object that may be given as its id or as the object itself. */
bool object_id(const json_t *value, char ret[PROVIDER_ID_SIZE]);
/* An amount from 0 to STRIPE_AMOUNT_MAX. */
bool object_amount(const json_t *value, int64_t *ret);
/* True if `value` has "object": name. */
bool object_is(const json_t *value, const char *name);

/* The payment that the metadata of an object name; key 0 if they name none. */
struct id object_payment(const json_t *object);

/* Reads status, amounts, currency, id, client secret and last error of an intent.  Does not decide
 * whether the fact is current. */
HF_MUST_USE bool object_intent(const json_t *intent, struct fact *fact);
/* Adds a refund to the fact.  Beyond REFUNDS_MAX, refunds are not added. */
HF_MUST_USE bool object_refund(const json_t *refund, struct fact *fact);
/* Adds the refunds of a list object.  *ret_has_more is set if the list says that it has more. */
HF_MUST_USE bool object_refunds(const json_t *list, struct fact *fact, bool *ret_has_more);

/* Reads code, decline_code and message of an error object.  An error without a code gets its type
 * as code, or "unknown_error"; other values that are no text are left out. */
void object_error(const json_t *error, struct payment_error *ret);
/* Copies a text for a person, cut to the size, without control characters, and without words that
 * may be a key, a client secret, a card number or an e-mail address. */
void object_message(const char *text, char *ret, size_t size);

#endif
