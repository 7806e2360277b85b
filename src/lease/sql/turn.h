/* Turns.  A waiter whose turn has come is called (its row says when) and woken.  One that does not
 * claim its turn within WAITER_CLAIM_MS is passed over until it asks again.  All of this happens in
 * transactions that exclude others on the name.  Runs on the handle's thread. */
#ifndef HF_LEASE_SQL_TURN_H
#define HF_LEASE_SQL_TURN_H

#include "lease/sql/link.h"

/* A waiter writes that it still waits this often: the place survives three lost chances, and
 * waiting costs the disk next to nothing. */
#define TURN_SEEN_EVERY_MS (WAITER_SILENT_MS / 4)

/* Also if another process waited for it before.  If the place was seen ahead of the clock, the
 * clock was set back. */
static inline bool turn_is_seen_due(const struct sql_lease *s, const struct claim_row *place,
                                    int64_t now)
{
    int64_t left_ms = place->until - now;
    return place->topic != s->family->topic || left_ms <= WAITER_SILENT_MS - TURN_SEEN_EVERY_MS ||
           left_ms > 2 * WAITER_SILENT_MS;
}
/* Writes that the waiter still waits, in a transaction of its own. */
HF_MUST_USE enum hf_status turn_keep_place(struct sql_lease *s, const struct lease_request *r,
                                           struct hf_err *err);

/* The first of those that wait: sends the question which waiter that is; the name is borrowed until
 * the answer is read. */
HF_MUST_USE enum hf_status turn_head_query(struct sql_lease *s, const struct db_value *name,
                                           struct hf_err *err);
/* Reads the answer.  The waiter is called if it can be granted, and is woken after the commit in
 * any case. */
HF_MUST_USE enum hf_status turn_head_read(struct sql_lease *s, const struct db_value *name,
                                          struct hf_err *err);
/* Wakes the waiter after the commit. */
void turn_wake(struct sql_lease *s, const struct claim_row *waiter);
/* Reads number, owner and topic of a waiter from a row of HEAD or GIVE; number 0: there is none. */
void turn_row_read(struct db_stmt *stmt, struct claim_row *ret);
/* Calls this waiter, if it can be granted and was not called before, and wakes it after the
 * commit. */
HF_MUST_USE enum hf_status turn_call(struct sql_lease *s, const struct db_value *name,
                                     const struct claim_row *waiter, struct hf_err *err);
/* Calls the waiter of s->link->state that has its turn, unless it was called before. */
HF_MUST_USE enum hf_status turn_call_first(struct sql_lease *s, const struct db_value *name,
                                           struct hf_err *err);
/* s->link->state's waiter `granted` has been granted: calls the next one if there is room beside
 * it. */
HF_MUST_USE enum hf_status turn_call_next(struct sql_lease *s, const struct db_value *name,
                                          const struct claim_row *granted, unsigned slots,
                                          struct hf_err *err);
/* A request that did not wait has been granted: the waiters of s->link->state that were called, and
 * are not passed over, get another turn later. */
HF_MUST_USE enum hf_status turn_take_back(struct sql_lease *s, const struct db_value *name,
                                          struct hf_err *err);

#endif
