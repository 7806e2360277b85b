/* See one_statement.h. */
#include "lease/sql/one_statement.h"

#include "lease/sql/contention.h"

/* Runs the statement on the name that is its first argument.  *ret_row tells whether it returned a
 * row, whose number is then in *ret. */
static enum hf_status run(struct sql_lease *s, enum lease_sql_statement which,
                          const struct db_value *args, bool *ret_row, int64_t *ret,
                          struct hf_err *err)
{
    struct db_stmt *stmt = s->stmts[which];
    enum hf_status status = s->db->driver->run_locked(stmt, &args[0], args, err);
    if (status != HF_OK)
        return status;
    enum db_step step = db_step(stmt, err);
    *ret_row = step == DB_ROW;
    if (*ret_row)
        *ret = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_status one_statement_acquire(struct sql_lease *s, const struct lease_request *r,
                                     struct lease_verdict *verdict, bool *ret_done,
                                     struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r),
                                    sql_owner(r),
                                    db_int(r->mode),
                                    db_int(r->slots),
                                    db_int(r->priority),
                                    db_int(r->ttl_ms),
                                    db_text(r->label, r->label_len)};
    *verdict = (struct lease_verdict){.result = HF_DONE, .remaining_ms = r->ttl_ms};
    enum hf_status status = run(s, LS_TAKE, args, ret_done, &verdict->fence, err);
    if (status == HF_OK && !*ret_done)
        contention_set(s, r);
    return status;
}

enum hf_status one_statement_renew(struct sql_lease *s, const struct lease_request *r,
                                   struct lease_verdict *verdict, bool *ret_done,
                                   struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(r->ttl_ms)};
    bool is_held = false;
    *verdict = (struct lease_verdict){.remaining_ms = r->ttl_ms};
    enum hf_status status = run(s, LS_RENEW, args, &is_held, &verdict->fence, err);
    if (!is_held)
        *verdict = (struct lease_verdict){.result = HF_LOST};
    *ret_done = true;
    return status;
}

enum hf_status one_statement_release(struct sql_lease *s, const struct lease_request *r,
                                     struct lease_verdict *verdict, bool *ret_done,
                                     struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(WAITER_SILENT_MS)};
    int64_t head = 0;
    enum hf_status status = run(s, LS_GIVE, args, ret_done, &head, err);
    *verdict = (struct lease_verdict){.result = HF_DONE};
    s->wakes.n = 0;
    if (status == HF_OK && *ret_done && head)
        *vec_push(&s->wakes) = head;
    sql_wake(s);
    return status;
}
