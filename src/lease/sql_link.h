/* A handle of the SQL driver and its connection to the database.  Internal to src/lease/sql*.c. */
#ifndef HF_LEASE_SQL_LINK_H
#define HF_LEASE_SQL_LINK_H

#include "db/db.h"
#include "lease/lease.h"
#include "lease/sql_state.h"
#include "lease/sql_statements.h"

struct sql_lease {
    struct lease lease;
    char *url;
    struct db_options options;
    struct db *db; /* NULL: none could be had the last time */
    struct db_stmt *stmts[LS_COUNT];
    struct name_state state;
    struct db_value head[2]; /* arguments of HEAD while it is under way */
    VEC(int64_t) wakes;      /* tickets to wake after the commit */
    VEC(struct db_value) names;
    int64_t swept_at;
    /* Where somebody else was the last time: look before asking for it. */
    char crowd[LEASE_NAME_MAX];
    size_t crowd_len;   /* 0: nowhere */
    size_t crowd_ahead; /* how many waited before whoever asked last */
};

enum hf_result sql_tell(enum hf_status status, const struct hf_err *err, struct hf_fault *fault);

/* In place of the connection there is, if any.  `url` and `options` are set. */
HF_MUST_USE enum hf_status sql_connect(struct sql_lease *s, struct hf_err *err);
void sql_disconnect(struct sql_lease *s);
/* Before every use of the database, but inside a transaction: connects anew if need be. */
HF_MUST_USE enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err);

/* A transaction that is alone on these names. */
HF_MUST_USE enum hf_status sql_begin(struct sql_lease *s, const struct db_value *names, size_t n,
                                     struct hf_err *err);
/* Commit what went well and wake whom it concerns; take back what did not. */
HF_MUST_USE enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err);
void sql_wake(struct sql_lease *s);
HF_MUST_USE enum hf_status sql_exec(struct sql_lease *s, enum lease_sql_statement which,
                                    const struct db_value *args, int64_t *ret_changes,
                                    struct hf_err *err);

/* By WAITERS, up to `last` alone (NULL: all), and HOLDERS into s->state.  *now is asked for too if
 * it is 0: all in one exchange. */
HF_MUST_USE enum hf_status sql_state_read(struct sql_lease *s, const struct db_value *name,
                                          const struct claim_row *last, int64_t *now,
                                          struct hf_err *err);

/* sql_once.c: connected, and where there is db_driver.run_locked.  *ret_done: take granted what was
 * free, give gave up what was ours, keep renewed it or found it lost; else nothing was done. */
HF_MUST_USE enum hf_status sql_take(struct sql_lease *s, const struct lease_request *r,
                                    struct lease_verdict *verdict, bool *ret_done,
                                    struct hf_err *err);
HF_MUST_USE enum hf_status sql_give(struct sql_lease *s, const struct lease_request *r,
                                    struct lease_verdict *verdict, bool *ret_done,
                                    struct hf_err *err);
HF_MUST_USE enum hf_status sql_keep(struct sql_lease *s, const struct lease_request *r,
                                    struct lease_verdict *verdict, bool *ret_done,
                                    struct hf_err *err);
/* What many want is looked at before it is asked for, until nobody else is found there. */
bool sql_is_crowded(const struct sql_lease *s, const struct lease_request *r);
/* And where a line is long, those far back do not ask at all. */
bool sql_is_long_line(const struct sql_lease *s, const struct lease_request *r);
void sql_crowd_look(struct sql_lease *s, const struct lease_request *r, const struct standing *st);

/* sql_look.c: see struct lease_driver. */
enum hf_result sql_inspect(struct lease *l, const char *key, size_t key_len,
                           struct hf_lock_state *ret, struct hf_fault *fault);
enum hf_result sql_list(struct lease *l, const char *prefix, size_t prefix_len,
                        bool (*each)(void *ctx, const char *name), void *ctx,
                        struct hf_fault *fault);

static inline struct db_value sql_key(const struct lease_request *r)
{
    return db_bytes(r->key, r->key_len);
}
static inline struct db_value sql_owner(const struct lease_request *r)
{
    return db_bytes(r->owner, LEASE_OWNER_SIZE);
}

#endif
