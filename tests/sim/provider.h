/* A payment provider in memory: intents, refunds and the webhooks about them.  It does what it is
 * asked at once; answers are lost, and webhooks are lost, repeated and reordered, by the test.
 *
 *   intent   requires_payment <-> requires_action, processing
 *            requires_payment --> captured, or authorized --> captured
 *            anything but captured --> canceled
 *   refund   pending --> succeeded --> failed, or pending --> failed
 *
 * Calls are idempotent by their keys.  Buyers and the dashboard act on their own. */
#ifndef HF_TESTS_SIM_PROVIDER_H
#define HF_TESTS_SIM_PROVIDER_H

#include "base/random.h"
#include "model/payment.h"

#define INTENT_REFUNDS_MAX 16

struct provider_refund {
    uint8_t key[JOB_KEY_SIZE]; /* zero: made in the dashboard */
    struct refund_fact fact;
};
struct provider_intent {
    struct id payment; /* from its metadata */
    uint8_t key[JOB_KEY_SIZE];
    char id[PROVIDER_ID_SIZE];
    enum intent_state state;
    int64_t amount, received;
    bool by_hand;
    bool is_shown; /* the buyer has its secret, and may pay */
    size_t n_refunds;
    struct provider_refund refunds[INTENT_REFUNDS_MAX];
};
/* A webhook on its way. */
struct letter {
    struct payment_event event;
    struct id payment;
    struct fact fact; /* without refunds */
    bool has_refund;
    struct refund_fact refund;
    bool must_arrive; /* nothing else tells of it */
};
struct provider {
    struct random *random;
    VEC(struct provider_intent) intents;
    VEC(struct letter) letters;
    unsigned n_events, n_refunds;
};
void provider_close(struct provider *p);

/* Carries out a job or a poll at the ledger's time `now`, as the protocol of the payment thread has
 * it: a job that checks first looks what there is, and acts under a new key the next time.  Fills
 * the fact that the answer brings, which the caller closes. */
enum job_result provider_call(struct provider *p, const struct job_row *job, int64_t now,
                              struct fact *ret);

/* What is left of the captured money: refunds that have not failed are gone. */
static inline int64_t provider_left(const struct provider_intent *intent)
{
    int64_t left = intent->received;
    for (size_t i = 0; i < intent->n_refunds; i++)
        if (intent->refunds[i].fact.status != REFUND_FAILED)
            left -= intent->refunds[i].fact.amount;
    return left;
}
/* The buyer tries to pay, and may be declined, or hesitate; the amount may be wrong if the provider
 * is mistaken. */
void provider_pay(struct provider *p, struct provider_intent *intent);
/* Somebody cancels the intent, or refunds some of it, in the dashboard. */
void provider_dashboard(struct provider *p, struct provider_intent *intent);
/* A pending refund is paid, or a refund fails. */
void provider_settle(struct provider *p, struct provider_intent *intent, bool may_fail);

#endif
