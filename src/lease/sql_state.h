/* What the database says of one name, and what a request makes of it.  Internal to sql.c. */
#ifndef HF_LEASE_SQL_STATE_H
#define HF_LEASE_SQL_STATE_H

#include "db/db.h"
#include "lease/lease.h"

struct claim_row {
    uint8_t owner[LEASE_OWNER_SIZE];
    int64_t number; /* the fence; the ticket */
    int64_t until;  /* the end of the lease; of the place, unless it is asked for */
    int64_t turn;   /* minus the priority */
    unsigned slots;
    enum hf_mode mode;
    char label[LEASE_LABEL_MAX + 1];
};

struct claim_rows {
    struct claim_row *v;
    size_t n, cap;
};

struct name_state {
    struct claim_rows holders, waiters; /* those still living; waiters in the order of service */
    bool expired, silent;               /* there are rows to drop */
};
void name_state_close(struct name_state *s);
/* By HOLDERS and WAITERS, both under way, waiters first: outside a transaction one who is granted
 * in between is then seen twice, which the judgement bears, and never not at all. */
HF_MUST_USE enum hf_status name_state_read(struct name_state *s, struct db_stmt *holders,
                                           struct db_stmt *waiters, int64_t now,
                                           struct hf_err *err);

struct standing {
    const struct claim_row *lease, *place; /* the owner's own; NULL: none */
    bool free;                             /* to be granted now */
    unsigned slots;                        /* that others say; 0: nobody is there */
    size_t ahead;                          /* waiters before it */
    int64_t first_end;                     /* of the holders; INT64_MAX: nobody holds */
    int64_t next_end; /* the first moment at which time alone may change the answer */
};
/* Pure.  O(holders + waiters). */
struct standing name_state_judge(const struct name_state *s, const struct lease_request *r);

#endif
