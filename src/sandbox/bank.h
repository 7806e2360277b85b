/* The simulated provider's state and rules: intents, charges, refunds, disputes and events in
 * memory, and what each operation does to them.  Read this file first.
 *
 *   requires_payment_method --method--> requires_confirmation
 *        ^      |                              |
 *        |      +----------confirm-------------+--> requires_action --completed--+
 *        |                                     |          | failed               |
 *        +--------------declined---------------+----------+                      |
 *        |                                     +--> processing ----------------->|
 *                                              v                                 v
 *                     succeeded <--capture-- requires_capture (capture_method=manual), or succeeded
 *        cancel: from every state but processing, succeeded and canceled
 *
 * One thread owns a bank (bank_worker.c); nothing here waits, reads a clock or touches a file.  The
 * caller sets `now_ms` before each operation and stores what `changed` lists afterwards.  Objects
 * are never deleted, except the oldest events, and number n of a kind is element n - 1 of its
 * table. */
#ifndef HF_SANDBOX_BANK_H
#define HF_SANDBOX_BANK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/random.h"
#include "base/vec.h"
#include "sandbox/cards.h"
#include "sandbox/form.h"

#define OBJECTS_MAX 1000000 /* of each kind */
#define EVENTS_MAX 10000    /* kept; older ones are forgotten */
#define METADATA_MAX 50
#define METADATA_KEY_MAX 40
#define METADATA_VALUE_MAX 500
#define DESCRIPTION_MAX 1000
#define EMAIL_MAX 800
#define URL_MAX 2048
#define PAYMENT_KEY "holdfast_payment" /* the metadata that the books show */

enum intent_status {
    PI_REQUIRES_PAYMENT_METHOD,
    PI_REQUIRES_CONFIRMATION,
    PI_REQUIRES_ACTION,
    PI_PROCESSING,
    PI_REQUIRES_CAPTURE,
    PI_CANCELED,
    PI_SUCCEEDED,
    PI_STATUSES
};
extern const char *const intent_status_names[PI_STATUSES];

enum refund_state { RE_PENDING, RE_SUCCEEDED, RE_FAILED, RE_STATES };
extern const char *const refund_state_names[RE_STATES];

/* A map of texts, in the order in which its keys were first set. */
struct metadata_pair {
    char *key, *value;
};
struct metadata {
    VEC(struct metadata_pair) pairs;
};

/* A card as it was given with one intent.  A zeroed struct is none. */
struct method {
    const struct card *card; /* NULL: there is none */
    struct id id;            /* pm_ */
    int64_t created_s;
    int64_t exp_month, exp_year;
};

struct intent {
    struct id id; /* pi_ */
    uint8_t secret[ID_SECRET_SIZE];
    int64_t account;
    int64_t created_s;
    int64_t amount, received, capturable;
    char currency[CURRENCY_SIZE];
    enum intent_status status;
    bool manual_capture;
    bool automatic_methods;                         /* automatic_payment_methods[enabled] */
    char *description, *receipt_email, *return_url; /* NULL: not given */
    struct metadata metadata;
    struct method method;
    const struct decline *error; /* of the last attempt; NULL: none */
    struct method error_method;
    int64_t error_charge; /* its number; 0: none was made */
    int64_t charge;       /* the number of the newest; 0: none */
    int64_t canceled_s;
    const char *cancellation_reason; /* one of cancellation_reasons; or NULL */
    uint8_t action[ID_SECRET_SIZE];  /* the secret of the page, while an action is required */
    int64_t settles_at_ms;           /* when processing ends; 0: it is not under way */
    bool is_changed;
};

struct charge {
    struct id id;     /* ch_ */
    int64_t intent;   /* its number */
    int64_t previous; /* the number of the intent's charge before this one; 0: none */
    int64_t refund;   /* the number of the newest refund; 0: none */
    int64_t dispute;  /* 0: none */
    int64_t created_s;
    int64_t amount, captured, refunded;
    int64_t dispute_at_ms;         /* when it will be disputed; 0: it will not */
    const struct decline *decline; /* NULL: it succeeded */
    struct method method;
    bool is_captured;
    bool is_released; /* the intent was canceled before the capture */
    bool is_changed;
};

struct refund {
    struct id id;     /* re_ */
    int64_t charge;   /* its number */
    int64_t previous; /* the number of the charge's refund before this one; 0: none */
    int64_t created_s;
    int64_t amount;
    int64_t settles_at_ms; /* when its status changes by itself; 0: it does not */
    enum refund_state status;
    const char *reason; /* one of refund_reasons; or NULL */
    struct metadata metadata;
    bool is_changed;
};

struct dispute {
    struct id id;   /* dp_ */
    int64_t charge; /* its number */
    int64_t created_s;
    int64_t amount;
    bool is_changed;
};

enum event_type {
    EVENT_INTENT_CREATED,
    EVENT_INTENT_REQUIRES_ACTION,
    EVENT_INTENT_PROCESSING,
    EVENT_INTENT_PAYMENT_FAILED,
    EVENT_INTENT_AMOUNT_CAPTURABLE_UPDATED,
    EVENT_INTENT_SUCCEEDED,
    EVENT_INTENT_CANCELED,
    EVENT_CHARGE_SUCCEEDED,
    EVENT_CHARGE_FAILED,
    EVENT_CHARGE_CAPTURED,
    EVENT_CHARGE_REFUNDED,
    EVENT_CHARGE_REFUND_UPDATED,
    EVENT_REFUND_CREATED,
    EVENT_REFUND_UPDATED,
    EVENT_REFUND_FAILED,
    EVENT_DISPUTE_CREATED,
    EVENT_TYPES
};
extern const char *const event_type_names[EVENT_TYPES];

struct stripe_event {
    struct id id; /* evt_ */
    int64_t account;
    int64_t created_s;
    enum event_type type;
    char *body; /* the JSON document, without an end of line */
    size_t len;
    int64_t attempts; /* of its delivery */
    int64_t due_ms;   /* of the next attempt; 0: there will be none */
    bool is_changed;
};

/* What an operation refuses, in Stripe's terms.  `status` 0: nothing is refused. */
struct api_error {
    int status;                              /* of HTTP */
    const char *type;                        /* "card_error" ... */
    const char *code, *decline_code, *param; /* NULL: none */
    char message[320];
    const struct intent *intent; /* shown in the error; NULL: none */
    const struct charge *charge; /* whose id is shown; NULL: none */
    struct method method;        /* shown in the error unless it is zeroed */
    bool is_validation;          /* of the parameters, before anything was done */
};

struct bank {
    VEC(struct intent *) intents;
    VEC(struct charge *) charges;
    VEC(struct refund *) refunds;
    VEC(struct dispute *) disputes;
    VEC(struct stripe_event *) events; /* a ring: number n is at (n - 1) % EVENTS_MAX */
    int64_t n_events;                  /* made so far; the newest has this number */
    /* Numbers of the objects that change by themselves, by time; see bank_settle. */
    VEC(int64_t) processing_intents, unsettled_refunds, undisputed_charges;
    struct {
        VEC(int64_t) intents, charges, refunds, disputes, events;
    } changed;              /* numbers of the objects to be stored */
    struct random random;   /* of ids */
    const char *base_url;   /* of action pages; borrowed */
    int64_t now_ms;         /* the wall clock */
    int64_t later_ms;       /* how long after their cause disputes and late refunds come */
    bool has_webhook;       /* events are to be delivered */
    bool processes;         /* the operation under way charges cards later, not at once */
    const char *request_id; /* of the operation under way, for events; NULL: none */
    const char *key;        /* its idempotency key; NULL: none */
    const char *version;    /* its Stripe-Version; NULL: the default */
};

extern const char *const cancellation_reasons[], *const refund_reasons[]; /* up to NULL */

void bank_init(struct bank *b);
void bank_close(struct bank *b);

/* ---- tables (tables.c) ---- */

struct intent *bank_intent(const struct bank *b, int64_t number); /* the number exists */
struct charge *bank_charge(const struct bank *b, int64_t number);
struct refund *bank_refund(const struct bank *b, int64_t number);
struct dispute *bank_dispute(const struct bank *b, int64_t number);
struct stripe_event *bank_event(const struct bank *b, int64_t number); /* NULL: forgotten */
/* By id, among those of the account; NULL: there is none. */
struct intent *bank_find_intent(const struct bank *b, int64_t account, const char *id);
struct charge *bank_find_charge(const struct bank *b, int64_t account, const char *id);
struct refund *bank_find_refund(const struct bank *b, int64_t account, const char *id);
struct stripe_event *bank_find_event(const struct bank *b, int64_t account, const char *id);
struct dispute *bank_find_dispute(const struct bank *b, int64_t account, const char *id);
int64_t charge_account(const struct bank *b, const struct charge *c);
int64_t refund_account(const struct bank *b, const struct refund *r);
/* Writes "pi_..._secret_...". */
#define PI_SECRET_SIZE 80
void intent_client_secret(const struct intent *i, char out[PI_SECRET_SIZE]);
bool intent_secret_matches(const struct intent *i, const char *client_secret);
/* Writes the address of the page on which the buyer acts. */
void intent_action_url(const struct bank *b, const struct intent *i, struct buf *out);
bool intent_action_matches(const struct intent *i, const char *token);

/* New objects, with an id, in their table and marked as changed. */
struct intent *bank_add_intent(struct bank *b);
struct charge *bank_add_charge(struct bank *b);
struct refund *bank_add_refund(struct bank *b);
struct dispute *bank_add_dispute(struct bank *b);
bool bank_has_room(const struct bank *b);
/* Puts a stored object back, in the order of numbers. */
void bank_restore_event(struct bank *b, struct stripe_event *e);
void bank_mark_intent(struct bank *b, struct intent *i);
void bank_mark_charge(struct bank *b, struct charge *c);
void bank_mark_refund(struct bank *b, struct refund *r);
void bank_mark_event(struct bank *b, struct stripe_event *e);
/* Forgets what has changed, since it is stored. */
void bank_clear_changed(struct bank *b);
/* Records an event about the object as it is now: `number` is that of an intent, charge, refund or
 * dispute, as the type says. */
void bank_emit(struct bank *b, enum event_type type, int64_t number);

void metadata_set(struct metadata *m, const char *key, const char *value);
void metadata_copy(struct metadata *to, const struct metadata *from);
const char *metadata_get(const struct metadata *m, const char *key);
void metadata_close(struct metadata *m);

/* ---- operations on intents (intents.c) ---- */

struct intent_terms {
    int64_t account;
    int64_t amount;
    const char *currency;
    bool manual_capture, automatic_methods;
    const char *description, *receipt_email, *return_url; /* NULL: not given */
    const struct metadata *metadata;
};
struct intent *intent_create(struct bank *b, const struct intent_terms *terms);
/* Gives the intent a method to be confirmed with. */
void intent_set_method(struct bank *b, struct intent *i, const struct card *card, int64_t exp_month,
                       int64_t exp_year);
/* Charges the method, now or later (bank.processes), or requires an action.  Returns false, with
 * the refusal, if the state does not allow it or the card is declined. */
HF_MUST_USE bool intent_confirm(struct bank *b, struct intent *i, struct api_error *ret);
/* The buyer has acted on the page.  Returns false if no action is required. */
bool intent_act(struct bank *b, struct intent *i, bool completed);
HF_MUST_USE bool intent_capture(struct bank *b, struct intent *i, int64_t amount,
                                struct api_error *ret);
HF_MUST_USE bool intent_cancel(struct bank *b, struct intent *i, const char *reason,
                               struct api_error *ret);
/* Charges the method of an intent that has been processing. */
void intent_process(struct bank *b, struct intent *i);
/* May amount and currency still change?  If not, fills in the refusal. */
HF_MUST_USE bool intent_may_change(const struct intent *i, struct api_error *ret);
/* Refuses because of the intent's status: "You cannot `verb` this PaymentIntent ...". */
void refuse_state(struct api_error *ret, const struct intent *i, const char *verb,
                  const char *because);

/* ---- refunds, disputes and books (refunds.c) ---- */

struct refund_terms {
    int64_t amount;     /* 0: all that is left */
    const char *reason; /* one of refund_reasons; or NULL */
    const struct metadata *metadata;
};
/* Refunds a charge, or a part of it.  *ret_refund is untouched on failure. */
HF_MUST_USE bool charge_refund(struct bank *b, struct charge *c, const struct refund_terms *terms,
                               struct refund **ret_refund, struct api_error *ret);
/* Does what is due at b->now_ms: late charges, refunds and disputes.  Returns when the next is due,
 * or INT64_MAX. */
int64_t bank_settle(struct bank *b);
/* Appends {"currencies":...,"payments":[...]}. */
void bank_books(const struct bank *b, struct buf *out);

#endif
