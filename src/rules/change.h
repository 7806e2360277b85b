/* Single changes of a batch, each in three places at once: the worker's side of the view, the batch
 * to be stored, and the log.  And the two ways a batch can end: shown, or taken back.  Used by
 * decide alone; the rules are there. */
#ifndef HF_RULES_CHANGE_H
#define HF_RULES_CHANGE_H

#include "rules/decide.h"

/* A new row of the event's log, with the next seq; the caller fills in what applies. */
struct audit_row *change_log(struct decision *d, struct event *e, enum audit_object object,
                             enum audit_cause cause, int from, int to);
/* A seat passes to `to`, without a row of its own in the log; several changes of one seat in a
 * batch become one write. */
void change_seat(struct decision *d, struct event *e, uint32_t index, enum seat_status to,
                 int64_t hold, int64_t fence, int64_t until);
/* Seats of a hold.  One that is neither free nor the hold's own is left alone: only a ledger that
 * somebody else wrote to can have one, and then it is theirs. */
void change_seats(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n,
                  enum seat_status to, enum audit_cause cause, int64_t hold, int64_t fence,
                  int64_t until);
/* Places of areas pass from one status to another. */
void change_areas(struct decision *d, struct event *e, const struct area_claim *areas, uint32_t n,
                  enum seat_status from, enum seat_status to, enum audit_cause cause, int64_t hold,
                  int64_t fence, int64_t until);
/* A live hold gets another status, fence or expiry. */
void change_hold(struct decision *d, struct hold *h, enum hold_status to, enum audit_cause cause,
                 int64_t fence, int64_t expires_at);
/* The event opens or closes. */
void change_event(struct decision *d, struct event *e, enum event_status to,
                  enum audit_cause cause);

#endif
