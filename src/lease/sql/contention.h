/* Remembers the last name that a handle found contended.  If a lock is contended, the driver reads
 * its state before it tries to take it, and a waiter far back in a long queue only counts the
 * waiters before it: no more work for the database than necessary.  Runs on the handle's thread. */
#ifndef HF_LEASE_SQL_CONTENTION_H
#define HF_LEASE_SQL_CONTENTION_H

#include "lease/sql/link.h"

/* Was the name held or waited for when the handle last asked for it? */
bool contention_is_known(const struct sql_lease *s, const struct lease_request *r);
/* And did so many wait before the request that its turn cannot be near? */
bool contention_is_long_queue(const struct sql_lease *s, const struct lease_request *r);
/* The name is contended. */
void contention_set(struct sql_lease *s, const struct lease_request *r);
/* Updates what is known from s->link->state, which was read for the request. */
void contention_update(struct sql_lease *s, const struct lease_request *r,
                       const struct standing *st);

/* A waiter's place, and how many waiters are served before it. */
struct place_count {
    bool found;
    int64_t seen_at, now, ahead;
};
/* Reads it, without reading the rows of the other waiters, and updates what is known. */
HF_MUST_USE enum hf_status contention_count(struct sql_lease *s, const struct lease_request *r,
                                            struct place_count *ret, struct hf_err *err);
/* Is what was counted for this request good enough to answer it?  On a server it is for a while,
 * the longer the more waiters there are: a queue of a thousand then asks a hundred times per
 * second. */
bool contention_is_counted(const struct sql_lease *s, const struct lease_request *r);
/* What was counted is out of date. */
void contention_forget_count(struct sql_lease *s);

#endif
