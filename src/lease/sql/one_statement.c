/* See one_statement.h. */
#include "lease/sql/one_statement.h"

#include "lease/sql/contention.h"
#include "lease/sql/turn.h"

enum hf_status one_statement_try(struct sql_lease *s, one_statement *call,
                                 const struct lease_request *requests, size_t n,
                                 struct lease_verdict *verdicts, bool *ret_done, struct hf_err *err)
{
    *ret_done = false;
    if (n != 1)
        return HF_OK;
    return s->link->db->driver->network ? call(s, requests, verdicts, ret_done, err) : HF_OK;
}

/* Runs the statement on the name that is its first argument, and moves to the row that it returned,
 * if any; the caller finishes it. */
static enum hf_status run(struct sql_lease *s, enum lease_sql_statement which,
                          const struct db_value *args, bool *ret_row, struct hf_err *err)
{
    struct db_stmt *stmt = s->link->stmts[which];
    enum hf_status status = s->link->db->driver->network->run_locked(stmt, &args[0], args, err);
    if (status != HF_OK)
        return status;
    enum db_step step = db_step(stmt, err);
    *ret_row = step == DB_ROW;
    return step == DB_FAILED ? err->code : HF_OK;
}

static int64_t column(struct sql_lease *s, enum lease_sql_statement which, int number)
{
    return db_column_int(s->link->stmts[which], number);
}

static void finish(struct sql_lease *s, enum lease_sql_statement which)
{
    s->link->stmts[which]->driver->finish(s->link->stmts[which]);
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
    enum hf_status status = run(s, LS_TAKE, args, ret_done, err);
    if (status == HF_OK && *ret_done)
        verdict->fence = column(s, LS_TAKE, 0);
    else if (status == HF_OK)
        contention_set(s, r);
    finish(s, LS_TAKE);
    return status;
}

enum hf_status one_statement_renew(struct sql_lease *s, const struct lease_request *r,
                                   struct lease_verdict *verdict, bool *ret_done,
                                   struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(r->ttl_ms)};
    bool is_held = false;
    *verdict = (struct lease_verdict){.result = HF_LOST};
    enum hf_status status = run(s, LS_RENEW, args, &is_held, err);
    if (is_held)
        *verdict = (struct lease_verdict){.result = HF_DONE,
                                          .fence = column(s, LS_RENEW, 0),
                                          .remaining_ms = r->ttl_ms,
                                          .slot = (unsigned)column(s, LS_RENEW, 1)};
    finish(s, LS_RENEW);
    *ret_done = true;
    return status;
}

enum hf_status one_statement_release(struct sql_lease *s, const struct lease_request *r,
                                     struct lease_verdict *verdict, bool *ret_done,
                                     struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(WAITER_SILENT_MS),
                                    db_int(WAITER_CLAIM_MS)};
    enum hf_status status = run(s, LS_GIVE, args, ret_done, err);
    struct claim_row head = {0};
    if (status == HF_OK && *ret_done)
        turn_row_read(s->link->stmts[LS_GIVE], &head);
    finish(s, LS_GIVE);
    *verdict = (struct lease_verdict){.result = HF_DONE};
    s->link->wakes.n = 0;
    if (head.number)
        turn_wake(s, &head);
    sql_wake(s);
    return status;
}
