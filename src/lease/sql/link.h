/* A handle of the SQL driver: its connection, prepared statements and transactions.  Used by the
 * files of src/lease/sql only, on the thread that owns the handle. */
#ifndef HF_LEASE_SQL_LINK_H
#define HF_LEASE_SQL_LINK_H

#include "db/db.h"
#include "lease/lease.h"
#include "lease/sql/state.h"
#include "lease/sql/statements.h"

struct sql_lease {
    struct lease lease;
    char *url;                 /* never changes: other threads may read it */
    struct db_options options; /* never change: other threads may read them */
    struct db *db;             /* NULL: the last attempt to connect failed */
    struct db_stmt *stmts[LS_COUNT];
    struct name_state state;
    struct db_value head[2]; /* arguments of HEAD while its answer is outstanding */
    VEC(int64_t) wakes;      /* tickets of the waiters to wake after the commit */
    VEC(struct db_value) names;
    int64_t swept_at_ms;
    char fences_after[LEASE_NAME_MAX]; /* where the next slice of lease_fences begins */
    size_t fences_after_len;
    /* The name for which others competed when this handle last asked for it, and how many waiters
     * stood before the request: see contention.h. */
    char contended[LEASE_NAME_MAX];
    size_t contended_len; /* 0: none */
    size_t contended_ahead;
};

static inline struct sql_lease *sql_of(struct lease *l) { return (struct sql_lease *)(void *)l; }

/* Turns an internal status into a public result and fills the fault. */
enum hf_result sql_result(enum hf_status status, const struct hf_err *err, struct hf_fault *fault);

/* Connects, in place of the connection there is, if any.  `url` and `options` are set. */
HF_MUST_USE enum hf_status sql_connect(struct sql_lease *s, struct hf_err *err);
void sql_disconnect(struct sql_lease *s);
/* To be called before every use of the database outside a transaction: reconnects if necessary. */
HF_MUST_USE enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err);

/* Begins a transaction that excludes all others on these names. */
HF_MUST_USE enum hf_status sql_begin(struct sql_lease *s, const struct db_value *names, size_t n,
                                     struct hf_err *err);
/* Commits if `status` is HF_OK and then wakes the waiters in s->wakes; otherwise rolls back. */
HF_MUST_USE enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err);
void sql_wake(struct sql_lease *s);
HF_MUST_USE enum hf_status sql_exec(struct sql_lease *s, enum lease_sql_statement which,
                                    const struct db_value *args, int64_t *ret_changes,
                                    struct hf_err *err);

/* Reads the name's holders and its waiters up to `last` (NULL: all) into s->state.  Reads the time
 * as well if *now is 0.  All of it is one exchange. */
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
