/* The rows of one name, and how a request stands in view of them.  Used by the files of
 * src/lease/sql only. */
#ifndef HF_LEASE_SQL_STATE_H
#define HF_LEASE_SQL_STATE_H

#include "db/db.h"
#include "lease/lease.h"

struct claim_row {
    uint8_t owner[LEASE_OWNER_SIZE];
    int64_t number; /* the fence of a holder, the ticket of a waiter */
    int64_t until;  /* the end of the lease, or of the place unless it is asked for again */
    int64_t turn;   /* minus the priority */
    int64_t since;  /* when a holder was granted, or a waiter called; 0: not known, or not called */
    int64_t topic;  /* of the process to wake for a waiter; 0: it has none */
    unsigned slots;
    unsigned slot; /* of a holder */
    enum hf_mode mode;
    char label[LEASE_LABEL_MAX + 1];
};

struct claim_rows {
    struct claim_row *v;
    size_t n, cap;
};

struct name_state {
    int64_t now;
    struct claim_rows holders; /* whose leases have not ended */
    struct claim_rows waiters; /* whose places have not ended, in the order of service */
    int64_t last_write;        /* the latest time at which a holder was granted or renewed */
    bool expired;              /* there are rows of ended leases to delete */
    bool silent;               /* there are rows of ended places to delete */
};
void name_state_close(struct name_state *s);
/* Reads the answers of HOLDERS and WAITERS, which have been sent, waiters first: outside a
 * transaction a waiter that is granted in between is then seen twice, which does no harm, rather
 * than not at all. */
HF_MUST_USE enum hf_status name_state_read(struct name_state *s, struct db_stmt *holders,
                                           struct db_stmt *waiters, int64_t now,
                                           struct hf_err *err);

/* How a request stands. */
struct standing {
    const struct claim_row *lease; /* the owner's lease; NULL: none */
    const struct claim_row *place; /* the owner's place in the queue; NULL: none */
    bool free;                     /* the request can be granted now */
    unsigned slots;                /* of the other holders and waiters; 0: there are none */
    size_t ahead;                  /* the number of waiters that are served before it */
    int64_t first_end;             /* when the first lease ends; INT64_MAX: there is no holder */
    int64_t next_end;              /* the first moment at which time alone may change the answer */
};
/* A pure function.  O(holders + waiters). */
struct standing name_state_judge(const struct name_state *s, const struct lease_request *r);

/* Was the waiter called WAITER_CLAIM_MS ago and has not asked since?  It is then passed over. */
bool claim_is_passed_over(const struct claim_row *waiter, int64_t now);
/* The first waiter that is not passed over, if it can be granted now; NULL otherwise.  It has its
 * turn.  O(holders + waiters). */
const struct claim_row *name_state_turn(const struct name_state *s);
/* The lowest slot that no exclusive holder has. */
unsigned name_state_free_slot(const struct name_state *s);

#endif
