/* A handle of the SQL driver, the connection that it has borrowed, and its transactions.  Used by
 * the files of src/lease/sql only, on the thread that owns the handle. */
#ifndef HF_LEASE_SQL_LINK_H
#define HF_LEASE_SQL_LINK_H

#include "db/db.h"
#include "lease/lease.h"
#include "lease/sql/family.h"
#include "lease/sql/state.h"
#include "lease/sql/statements.h"

/* A connection with what is prepared on it and read through it.  It belongs to the handle that has
 * borrowed it from the family, for the time of a call. */
struct sql_link {
    struct db *db; /* NULL: the last attempt to connect failed */
    struct db_stmt *stmts[LS_COUNT];
    struct db_stmt *examine; /* NULL: not prepared */
    bool in_transaction;
    struct name_state state;
    /* Of a transaction, where fences are made from the clock: the largest fence before, and when
     * the name was last granted.  0: there is none. */
    int64_t last_fence, last_grant;
    struct db_value head[3];    /* arguments of HEAD while its answer is outstanding */
    VEC(struct db_wake) wakes;  /* the waiters to wake after the commit */
    VEC(struct db_value) names; /* those of a transaction */
    int64_t swept_at_ms;
    unsigned grants;                   /* so far, modulo 2^32 */
    char fences_after[LEASE_NAME_MAX]; /* where the next slice of lease_fences begins */
    size_t fences_after_len;
};
void sql_link_free(struct sql_link *link);

enum sql_purpose {
    SQL_TO_KEEP, /* what is held: renew, release */
    SQL_TO_TAKE, /* anything else */
};

struct sql_lease {
    struct lease lease;
    struct sql_family *family;
    struct sql_link *link;    /* NULL: none is borrowed */
    enum sql_purpose purpose; /* for which it is */
    /* The name for which others competed when this handle last asked for it, and how many waiters
     * stood before the request: see contention.h. */
    char contended[LEASE_NAME_MAX];
    size_t contended_len; /* 0: none */
    size_t contended_ahead;
    uint8_t counted_owner[LEASE_OWNER_SIZE]; /* for which contended_ahead was counted, */
    int64_t counted_until_us;                /* and until when that is good enough */
};

static inline struct sql_lease *sql_of(struct lease *l) { return (struct sql_lease *)(void *)l; }

/* Turns an internal status into a public result and fills the fault. */
enum hf_result sql_result(enum hf_status status, const struct hf_err *err, struct hf_fault *fault);

/* Every call that uses the database begins with sql_enter, which borrows a connection and connects
 * if necessary, and ends with sql_leave, also after a failure. */
HF_MUST_USE enum hf_status sql_enter(struct sql_lease *s, enum sql_purpose purpose,
                                     struct hf_err *err);
void sql_leave(struct sql_lease *s);
/* Within a call, before every use of the database outside a transaction: reconnects if necessary.
 */
HF_MUST_USE enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err);

/* Begins a transaction that excludes all others on these names. */
HF_MUST_USE enum hf_status sql_begin(struct sql_lease *s, const struct db_value *names, size_t n,
                                     struct hf_err *err);
/* Commits if `status` is HF_OK and then wakes the waiters in link->wakes; otherwise rolls back. */
HF_MUST_USE enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err);
void sql_wake(struct sql_lease *s);
HF_MUST_USE enum hf_status sql_exec(struct sql_lease *s, enum lease_sql_statement which,
                                    const struct db_value *args, int64_t *ret_changes,
                                    struct hf_err *err);

/* Serves one request within a transaction.  *at is the time, or 0 if it was not read yet. */
typedef enum hf_status sql_request(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                   struct lease_verdict *verdict, struct hf_err *err);
/* Serves all requests within one transaction. */
HF_MUST_USE enum hf_status sql_in_one_transaction(struct sql_lease *s, sql_request *each,
                                                  const struct lease_request *requests, size_t n,
                                                  struct lease_verdict *verdicts,
                                                  struct hf_err *err);

/* Reads the name's holders and its waiters up to `last` (NULL: all) into s->link->state, and the
 * time if *now is 0; in a transaction also s->link->last_fence and s->link->last_grant.  All of it
 * is one exchange. */
HF_MUST_USE enum hf_status sql_state_read(struct sql_lease *s, const struct db_value *name,
                                          const struct claim_row *last, int64_t *now,
                                          struct hf_err *err);

static inline struct db_value sql_key(const struct lease_request *r)
{
    return db_bytes(r->key, r->key_len);
}
static inline struct db_value sql_owner(const struct lease_request *r)
{
    return db_bytes(r->owner, LEASE_OWNER_SIZE);
}

#endif
