/* Renewing, releasing and breaking leases.  Runs on the handle's thread. */
#include "lease/sql/link.h"
#include "lease/sql/one_statement.h"
#include "lease/sql/sql.h"
#include "lease/sql/turn.h"

static enum hf_status renew_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                struct lease_verdict *verdict, struct hf_err *err)
{
    (void)at;
    struct db_stmt *stmt = s->link->stmts[LS_RENEW];
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(r->ttl_ms)};
    enum hf_status status = db_query(stmt, args, err);
    if (status != HF_OK)
        return status;
    *verdict = (struct lease_verdict){.result = HF_LOST};
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW)
        *verdict = (struct lease_verdict){.result = HF_DONE,
                                          .fence = db_column_int(stmt, 0),
                                          .remaining_ms = r->ttl_ms,
                                          .slot = (unsigned)db_column_int(stmt, 1)};
    return step == DB_FAILED ? err->code : HF_OK;
}

/* The question which waiter to wake is sent first, and its answer read once it is known that
 * something was released: a server then answers both in one exchange.  (A RETURNING would make a
 * release on SQLite half as slow again.) */
static enum hf_status release_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                  struct lease_verdict *verdict, struct hf_err *err)
{
    (void)at;
    const struct db_value args[] = {sql_key(r), sql_owner(r)};
    int64_t n_released = 0;
    enum hf_status status;
    if ((status = turn_head_query(s, args, err)) != HF_OK ||
        (status = sql_exec(s, LS_RELEASE, args, &n_released, err)) != HF_OK)
        return status;
    if (!n_released) {
        status = sql_exec(s, LS_LEAVE, args, &n_released, err);
        if (status == HF_OK && n_released)
            status = turn_head_query(s, args, err); /* the first may have been this one */
        if (status != HF_OK)
            return status;
    }
    *verdict = (struct lease_verdict){.result = n_released ? HF_DONE : HF_LOST};
    return n_released ? turn_head_read(s, args, err) : HF_OK;
}

static enum hf_result by_statement_or_transaction(struct sql_lease *s, one_statement *call,
                                                  sql_request *each,
                                                  const struct lease_request *requests, size_t n,
                                                  struct lease_verdict *verdicts,
                                                  struct hf_fault *fault)
{
    struct hf_err err = {0};
    bool done = false;
    enum hf_status status = sql_enter(s, SQL_TO_KEEP, &err);
    if (status == HF_OK)
        status = one_statement_try(s, call, requests, n, verdicts, &done, &err);
    if (status == HF_OK && !done)
        status = sql_in_one_transaction(s, each, requests, n, verdicts, &err);
    sql_leave(s);
    return sql_result(status, &err, fault);
}

enum hf_result sql_renew(struct lease *l, const struct lease_request *requests, size_t n,
                         struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return by_statement_or_transaction(sql_of(l), one_statement_renew, renew_one, requests, n,
                                       verdicts, fault);
}

enum hf_result sql_release(struct lease *l, const struct lease_request *requests, size_t n,
                           struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return by_statement_or_transaction(sql_of(l), one_statement_release, release_one, requests, n,
                                       verdicts, fault);
}

static enum hf_status break_one(struct sql_lease *s, const struct db_value *name,
                                struct hf_err *err)
{
    enum hf_status status;
    if ((status = sql_exec(s, LS_BREAK, name, NULL, err)) != HF_OK ||
        (status = turn_head_query(s, name, err)) != HF_OK)
        return status;
    return turn_head_read(s, name, err);
}

enum hf_result sql_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    const struct db_value name = db_bytes(key, key_len);
    enum hf_status status = sql_enter(s, SQL_TO_TAKE, &err);
    if (status == HF_OK) {
        status = sql_begin(s, &name, 1, &err);
        if (status == HF_OK)
            status = break_one(s, &name, &err);
        status = sql_end(s, status, &err);
    }
    sql_leave(s);
    return sql_result(status, &err, fault);
}
