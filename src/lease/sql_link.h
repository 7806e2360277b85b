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
    int64_t swept_at;
};

enum hf_result sql_tell(enum hf_status status, const struct hf_err *err, struct hf_fault *fault);

/* In place of the connection there is, if any.  `url` and `options` are set. */
HF_MUST_USE enum hf_status sql_connect(struct sql_lease *s, struct hf_err *err);
void sql_disconnect(struct sql_lease *s);
/* Before every use of the database, but inside a transaction: connects anew if need be. */
HF_MUST_USE enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err);

/* `ret_now` may be NULL: a server in a network need not be asked for the time alone. */
HF_MUST_USE enum hf_status sql_begin(struct sql_lease *s, int64_t *ret_now, struct hf_err *err);
/* Commit what went well and wake whom it concerns; take back what did not. */
HF_MUST_USE enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err);
HF_MUST_USE enum hf_status sql_exec(struct sql_lease *s, enum lease_sql_statement which,
                                    const struct db_value *args, int64_t *ret_changes,
                                    struct hf_err *err);

#endif
