/* The rules: who gets what.  Pure functions of the view, the operation, the batch's time and its
 * randomness: they touch no clock, no database and no socket, so that the unit tests and the model
 * run the real ones.  See decision.h for what becomes of the changes.
 *
 * Each judges one operation on an event of the batch, fills in its outcome and returns the verdict.
 * VERDICT_DEFERRED: the answer depends on what this batch stores; judge it again in the next.
 *
 * Keeps I1, I2, I3, I4, I5 (as the first line of defence), I6, I9, I10 and the gapless seq of
 * I11. */
#ifndef HF_RULES_DECIDE_H
#define HF_RULES_DECIDE_H

#include "model/verdict.h"
#include "rules/decision.h"
#include "rules/operations.h"

/* Expires those of the holds that are due; each belongs to an event of the batch. */
void decide_expire(struct decision *d, struct hold *const *holds, size_t n);

/* All or nothing (I6). */
enum verdict decide_create(struct decision *d, struct event *e, struct hold_create *op);
enum verdict decide_renew(struct decision *d, struct event *e, struct hold_renew *op);
enum verdict decide_release(struct decision *d, struct hold_release *op);
enum verdict decide_confirm(struct decision *d, struct event *e, struct hold_confirm *op);
enum verdict decide_change(struct decision *d, struct event *e, struct hold_change *op);
enum verdict decide_cancel(struct decision *d, struct event *e, struct booking_cancel *op);
/* Makes a booking that is to be paid, or sells at once what costs nothing. */
enum verdict decide_book(struct decision *d, struct event *e, struct booking_create *op);
enum verdict decide_refund(struct decision *d, struct event *e, struct booking_refund *op);
/* Applies a fact about a payment (payment.h), and stores what became of a job. */
enum verdict decide_payment(struct decision *d, struct event *e, struct payment_update *op);
/* All or nothing.  A seat that is as wanted already is left as it is, so repeating is harmless. */
enum verdict decide_block(struct decision *d, struct event *e, struct seats_block *op);
/* Opens, closes, cancels or archives the event. */
enum verdict decide_status(struct decision *d, struct event *e, enum event_status to);
enum verdict decide_terms(struct decision *d, struct event *e, struct event_change *op);

/* ---- the waiting list (decide_wait.c) ---- */

/* Before a command of the event is judged: what has become free goes to those who wait for it.
 * VERDICT_DEFERRED: more fits than one batch may offer, so the command waits for the next. */
enum verdict decide_settle(struct decision *d, struct event *e);
/* At the end of the batch: entries end whose time has come, or whose event offers nothing any more,
 * and what has become free goes to the others. */
void decide_waits(struct decision *d);
/* Outside of a batch, when others have changed the event: shuts the queues that find nothing, so
 * that a batch is needed only if something is to be offered or to be ended. */
void decide_waits_look(struct view *v, struct event *e, int64_t now);
enum verdict decide_wait_join(struct decision *d, struct event *e, struct wait_join *op);
enum verdict decide_wait_change(struct decision *d, struct event *e, struct wait_change *op);
enum verdict decide_wait_pause(struct decision *d, struct event *e, bool pauses);

/* ---- idempotency keys (keys.c) ---- */

/* Has the key an answer?  `stored` is what the ledger has under it.  VERDICT_UNDECIDED: no, judge
 * the operation.  VERDICT_OK: yes, and `key` has it now.  VERDICT_KEY_MISMATCH: it belongs to
 * another request.  VERDICT_DEFERRED: this very batch stores it. */
enum verdict decide_key(const struct decision *d, struct idempotency *key,
                        const struct key_row *stored);
/* Stores the rendered answer of a successful command under its key.  `hold` is the hold that it is
 * about; 0: none. */
void decide_keep_answer(struct decision *d, const struct idempotency *key, int64_t hold);

#endif
