/* Bookings that are paid, for tests of the engine: what buyers, sellers and the payment provider
 * do, without any of them.  Each function fails the test if it is refused. */
#ifndef HF_TESTS_SUPPORT_PAID_SALE_H
#define HF_TESTS_SUPPORT_PAID_SALE_H

#include "support/engine_client.h"

#define SALE_PRICE 1000
#define SALE_TTL_MS INT64_C(300000)
#define SALE_OWNER "Ann"
#define SALE_EMAIL "ann@shop.example"

struct sale {
    struct client *client;
    struct event *event;
    struct hold_row hold;
    struct id booking, payment;
    int64_t number; /* of the payment */
};

void sale_ask(struct client *client, struct call *call, enum verdict want);
/* Makes and loads an event of two rows with 20 seats each. */
struct event *sale_event(struct client *client);
/* Closes, archives or cancels an event. */
void sale_on_event(struct client *client, struct event *event, enum command_kind kind);

/* ---- buyers and sellers ---- */

/* Holds one seat for SALE_TTL_MS. */
struct sale sale_hold(struct client *client, struct event *event, uint32_t seat);
/* Books the hold; `by_hand`: the card is authorized first and captured later. */
void sale_book(struct sale *s, bool by_hand);
/* Books it together with another hold, which takes no part in the sale then: it is the newer one.
 */
void sale_book_with(struct sale *s, const struct sale *other);
/* Sells the hold without a payment. */
void sale_confirm(const struct sale *s);
void sale_cancel(const struct sale *s);
/* Owes a part of the money back, and returns the number of the refund. */
int64_t sale_refund(const struct sale *s, int64_t amount);

/* ---- the provider ---- */

/* A call that tells nothing yet: its fact is to be filled in. */
struct call sale_update(const struct sale *s);
/* These tell the engine something, and return the number of the refund that is owed afterwards; 0:
 * none.  `refund` 0 is a refund that somebody made in the provider's dashboard. */
int64_t sale_tell(const struct sale *s, struct call *call);
int64_t sale_fact(const struct sale *s, enum intent_state state, int64_t received);
int64_t sale_job_done(const struct sale *s, enum job_kind kind, enum intent_state state,
                      bool capture_refused);
int64_t sale_refunded(const struct sale *s, int64_t refund, int64_t amount,
                      enum refund_status status);

/* ---- all of it ---- */

/* Holds and books a seat; the provider has made the intent. */
struct sale sale_pending(struct client *client, struct event *event, uint32_t seat, bool by_hand);
/* The same, and paid. */
struct sale sale_paid(struct client *client, struct event *event, uint32_t seat);
/* The same by hand, authorized. */
struct sale sale_capturing(struct client *client, struct event *event, uint32_t seat);

#endif
