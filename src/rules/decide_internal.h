/* What the files of the rules share: decide.c (making and expiring holds), decide_hold.c (what
 * becomes of a hold), decide_sale.c (selling), decide_event.c (what sellers do to an event),
 * decide_wait.c (the waiting list), decide_booking.c, decide_payment.c and decide_money.c (bookings
 * that are paid).  Internal to these; decide.h has the contract. */
#ifndef HF_RULES_DECIDE_INTERNAL_H
#define HF_RULES_DECIDE_INTERNAL_H

#include "rules/change.h"
#include "rules/decide.h"
#include "rules/lone.h"

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- decide.c ---- */

/* Ends a live hold, whose places are free again. */
void decide_end_hold(struct decision *d, struct hold *h, enum hold_status to,
                     enum audit_cause cause);
/* Ends every due hold that owns one of the seats.  Expiry is of whole holds (I4). */
void decide_expire_owners(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n);
/* May a hold of this channel (0: none) take the seat? */
static inline bool seat_is_free(const struct seat *seat, uint32_t channel)
{
    return seat->status == SEAT_AVAILABLE ||
           (seat->status == SEAT_BLOCKED && channel && seat->channel == channel);
}
/* Lists the seats that a hold of this channel may not take in s->taken.  VERDICT_SEAT_TAKEN if
 * there is one. */
enum verdict decide_check_seats(const struct event *e, const uint32_t *seats, uint32_t n,
                                uint32_t channel, struct shortage *s);
/* May the choice leave single seats?  Otherwise VERDICT_LONE_SEAT if it does, and s->taken lists
 * them. */
enum verdict decide_check_lone(struct decision *d, struct event *e,
                               const struct lone_choice *choice, struct shortage *s);
/* Does the area have that many places for a hold of this channel, once due holds are ended? (I2) */
bool decide_area_has(struct decision *d, struct event *e, const struct area_claim *claim,
                     uint32_t channel);
/* The same for several areas; says which of them is short. */
enum verdict decide_check_areas(struct decision *d, struct event *e, const struct area_claim *areas,
                                uint32_t n, uint32_t channel, struct shortage *s);
/* May new places be held now?  VERDICT_EVENT_CLOSED says why not in `s`. */
enum verdict decide_check_sales(const struct decision *d, const struct event *e,
                                struct shortage *s);
/* May the address, and the owner, have `more` places beside those they have? */
enum verdict decide_check_limits(struct decision *d, struct event *e, uint64_t client,
                                 uint64_t owner, uint32_t more, struct shortage *s);
/* Makes the hold, whose places are free and may be had: CAUSE_HOLD, or CAUSE_WAITLIST for an offer.
 * The types of op->types are known. */
void decide_grant(struct decision *d, struct event *e, struct hold_create *op,
                  enum audit_cause cause);
/* Ends every due hold of the event, however many there are.  Does so once per batch; returns
 * whether any hold ended.  O(due holds of all events). */
bool decide_expire_event(struct decision *d, struct event *e);
/* Places that a hold of this channel can have; one without a channel, those of the public. */
int64_t decide_area_free(const struct event *e, uint32_t area, uint32_t channel);
/* The types of a claim, as a request names them. */
struct type_runs {
    struct type_run *v;
    uint32_t n;
};
/* Finds each run's type in the event's terms.  VERDICT_NO_SUCH_TYPE: s->unknown is not there. */
enum verdict decide_types(const struct event *e, const struct type_runs *types, struct shortage *s);
/* Fills `runs`, which has room for one per seat, per area and per run of types, with what the
 * row's seats and areas cost now as places of these types; returns how many runs there are. */
uint32_t decide_prices(const struct event *e, const struct hold_row *places,
                       const struct type_runs *types, struct price_run *runs);
/* Adds places behind the `n` runs, which have room for one more; returns how many runs there are
 * then. */
uint32_t prices_add(struct price_run *runs, uint32_t n, struct price_run places);
int64_t prices_sum(const struct price_run *runs, uint32_t n);
/* Finds type and price of a seat in the row, whose `n` is untouched.  Returns false, and leaves
 * *ret alone, if the row does not list the seat or does not know its price. */
bool row_seat_price(const struct hold_row *row, uint32_t seat, struct price_run *ret);
/* Counts the places that the row has of an area, by type. */
void row_area_types(const struct hold_row *row, uint32_t area, uint32_t ret[TYPES_MAX]);
/* Where the prices of the row's places of an area begin; *ret_n is how many places there are. */
struct price_reader row_area_prices(const struct hold_row *row, uint32_t area, uint32_t *ret_n);

/* ---- decide_hold.c ---- */

/* What a hold that is no longer live answers to renew and release. */
enum verdict decide_refusal_of(enum hold_status status);
/* Finds the named hold as it stands in this batch: expired if it is due, and with its row brought
 * up to what earlier commands of the batch changed.  *ret_live is its entry in the view, or NULL.
 * VERDICT_OK: go on.  A hold that was booked with another one is never found: its verdict is
 * VERDICT_BOOKING_EXISTS or, if the other has ended, how. */
enum verdict decide_find_hold(struct decision *d, struct named_hold *named, struct hold **ret_live);
/* Must what is asked about this hold wait until the next batch has read it? */
bool decide_is_unreadable(const struct decision *d, int64_t hold);
/* Puts the places of several rows together, those of the first but for what is `removed`: seats,
 * and places of areas of the types that its prices tell.  They cost what their rows say, and what
 * they cost now if a row has no prices.  A seat that is removed and stands in a later row, too,
 * keeps its place.  ret->prices is the memory of all lists, for free(). */
void decide_draft_places(const struct event *e, const struct hold_row *const *rows, size_t n_rows,
                         const struct hold_row *removed, struct hold_places_write *ret);
/* The places that a hold has then, and the seats and areas that make the difference, whose prices
 * say which types they have; none: all are of the first. */
struct hold_moves {
    const struct hold_places_write *to;
    const struct hold_row *removed, *added;
};
/* Gives a live hold other places and a new fence, which its row has then, too.  Returns its new
 * entry in the view. */
struct hold *decide_move_places(struct decision *d, struct event *e, struct hold *h,
                                struct hold_row *row, const struct hold_moves *moves);

/* ---- decide_sale.c ---- */

/* Counts places that the owner of a hold has booked, or no longer has booked; see owners.h. */
void decide_owner_booked(struct decision *d, struct event *e, const struct hold_row *hold,
                         int64_t sign);
/* Sells the live hold at once.  op->hold has its row.  VERDICT_SEAT_SOLD: it does not own its
 * seats; else VERDICT_CREATED. */
enum verdict decide_sell(struct decision *d, struct event *e, struct hold_confirm *op,
                         struct hold *h);
/* A booking of the hold, without reference, e-mail and payment. */
struct booking_row decide_new_booking(struct decision *d, const struct hold_row *hold,
                                      enum booking_status status);
/* Books the hold's places, which were `from`; the hold has been changed, and logged, before. */
void decide_book_places(struct decision *d, struct event *e, struct hold_row *hold,
                        enum seat_status from, enum audit_cause cause);
/* The places of a booking are free again, and so are its rows of sold_seats. */
void decide_free_places(struct decision *d, struct event *e, const struct hold_row *hold,
                        enum audit_cause cause);
/* May an expired hold be sold after all?  All of its places must be free, once due holds of others
 * have ended, and its owner must have room for them.  VERDICT_HOLD_EXPIRED: they are not free. */
enum verdict decide_check_revival(struct decision *d, struct event *e, const struct hold_row *hold,
                                  struct shortage *s);
/* Confirms an expired hold, with a new fence.  `h` is its entry if it expired in this batch, else
 * NULL.  Its places are booked next. */
void decide_revive(struct decision *d, struct event *e, struct hold_row *hold, struct hold *h);
/* Does the live hold still own all of its seats? */
bool decide_owns_seats(const struct hold *h);

/* ---- decide_wait.c ---- */

/* To be asked after each judgement of a claim, which may have ended due holds: what those had goes
 * to the waiting list first.  Returns true if the claim is to be judged again, since the list took
 * something; *verdict is VERDICT_DEFERRED if the list is not settled in this batch. */
bool decide_again(struct decision *d, struct event *e, enum verdict *verdict);
/* The hold has ended or was sold, and is offered to an entry of the waiting list no longer.  Called
 * once its places have passed on. */
void decide_wait_of_hold(struct decision *d, struct hold *h, enum audit_cause cause);
/* Do enough places for the wish fit together now?  `seats` has room for as many as are wanted. */
bool decide_wish_fits(const struct event *e, const struct wait_wish *wish, uint32_t *seats);

/* ---- decide_money.c ---- */

/* Owes the shop a notification, if it wants those of this kind.  `payment` and `refund` are the
 * numbers of what it is about; 0: none. */
void decide_notify(struct decision *d, struct event *e, enum notice notice, int64_t booking,
                   int64_t payment, int64_t refund);
/* The hold has ended, and its booking's intent is to be canceled. */
void decide_owe_cancel(struct decision *d, const struct hold *h);
/* Extends a live hold to `expires_at`. */
void decide_extend(struct decision *d, struct hold *h, int64_t expires_at);

#endif
