/* The test cards, the ways in which they are declined, and the currencies with their limits.
 * Constant tables and pure functions.  A card number is looked up here and never kept: what is
 * stored of a card is the name of its row. */
#ifndef HF_SANDBOX_CARDS_H
#define HF_SANDBOX_CARDS_H

#include <stdbool.h>
#include <stdint.h>

/* How a payment can fail, as Stripe words it. */
struct decline {
    const char *name; /* stored with an intent; unique */
    const char *code, *decline_code;
    const char *message;
    const char *reason; /* of the charge's outcome */
};

enum card_refunds { REFUNDS_AT_ONCE, REFUNDS_LATER, REFUNDS_FAIL_LATER };

struct card {
    const char *number; /* a public test number */
    const char *name;   /* pm_card_visa; unique */
    const char *brand, *funding, *country;
    const struct decline *decline; /* NULL: charges succeed */
    bool needs_action;             /* the buyer has to confirm on a page; the decline comes after */
    bool is_disputed;              /* the charge is disputed a moment later */
    enum card_refunds refunds;
};

extern const struct decline decline_authentication, decline_live_card;

const char *card_last4(const struct card *card);
const struct card *card_by_name(const char *name);     /* pm_card_visa or tok_visa; or NULL */
const struct card *card_by_number(const char *number); /* NULL: not a test card */
const struct decline *decline_by_name(const char *name);
/* Are these 12 to 19 digits with the right check digit? */
bool card_number_is_valid(const char *number);

#define CURRENCY_SIZE 4
#define AMOUNT_MAX INT64_C(99999999)
/* Is this a currency, in lower case? */
bool currency_is_known(const char *currency);
/* The smallest amount that can be charged. */
int64_t currency_minimum(const char *currency);

#endif
