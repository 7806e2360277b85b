/* Every operation of the provider's API, and of the sandbox's own.  Run by the bank's thread. */
#ifndef HF_SANDBOX_OPERATIONS_H
#define HF_SANDBOX_OPERATIONS_H

#include "sandbox/order.h"

/* operations.c */
extern const struct operation operation_create, operation_update, operation_confirm,
    operation_capture, operation_cancel, operation_refund;
/* views.c */
extern const struct operation operation_retrieve, operation_list, operation_get_refund,
    operation_list_refunds, operation_get_charge, operation_list_charges, operation_get_event,
    operation_list_events, operation_get_dispute, operation_list_disputes, operation_balance;
/* page.c */
extern const struct operation operation_action_page, operation_act;
/* bank_worker.c */
extern const struct operation operation_books, operation_faults, operation_set_faults;

/* For operations.c and views.c. */
/* The intent that the path names, which the caller's key gives access to.  NULL: refused. */
struct intent *order_intent(struct bank *b, struct order *o, struct api_error *ret);
struct expand;
/* Reads expand[], whose values are `known` ones.  Returns false if it has refused. */
bool order_expand(const struct order *o, struct expand *ret_expand, struct api_error *ret);
/* Reads a whole number; leaves *ret_value alone if the parameter is not there. */
bool order_int(const struct order *o, const char *name, int64_t *ret_value, struct api_error *ret);

/* The card of a request. */
struct card_input {
    const struct card *card; /* NULL: the request has none */
    int64_t exp_month, exp_year;
};
/* card_input.c: reads payment_method or payment_method_data.  `i` is the intent that it is for, or
 * NULL.  Returns false if it has refused. */
bool order_card(const struct bank *b, const struct order *o, const struct intent *i,
                struct card_input *ret_card, struct api_error *ret);

#endif
