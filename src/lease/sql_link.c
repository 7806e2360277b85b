/* The connection behind a handle: made, replaced when it leads nowhere, its transactions.  Thread:
 * that of the handle. */
#include "lease/sql_link.h"

static const char *const statement_sql[LS_COUNT] = {
#define STATEMENT_SQL(name, sql) [LS_##name] = sql,
    LEASE_SQL_STATEMENTS(STATEMENT_SQL)
#undef STATEMENT_SQL
};

enum hf_result sql_tell(enum hf_status status, const struct hf_err *err, struct hf_fault *fault)
{
    switch (status) {
    case HF_OK:
        return HF_DONE;
    case HF_INVALID_REQUEST:
        return lease_fault(fault, HF_BAD_REQUEST, "%s", err->msg);
    case HF_LEDGER_UNAVAILABLE:
    case HF_LEDGER_CONFLICT: /* nothing was done */
        return lease_fault(fault, HF_UNREACHABLE, "%s", err->msg);
    case HF_OUTCOME_UNKNOWN:
        return lease_fault(fault, HF_UNKNOWN, "%s", err->msg);
    default:
        return lease_fault(fault, HF_FAILED, "%s", err->msg);
    }
}

enum hf_status sql_exec(struct sql_lease *s, enum lease_sql_statement which,
                        const struct db_value *args, int64_t *ret_changes, struct hf_err *err)
{
    return db_exec(s->stmts[which], args, ret_changes, err);
}

void sql_disconnect(struct sql_lease *s)
{
    db_close(s->db);
    s->db = NULL;
    s->swept_at = 0;
}

enum hf_status sql_connect(struct sql_lease *s, struct hf_err *err)
{
    sql_disconnect(s);
    enum hf_status status = db_open(s->url, &s->options, &s->db, err);
    hf_check(status != HF_OK || s->db);
    if (status == HF_OK)
        status = db_migrate_part(s->db, LEASE_SQL_PART, lease_sql_migrations,
                                 sizeof lease_sql_migrations / sizeof *lease_sql_migrations, err);
    for (int i = 0; i < LS_COUNT && status == HF_OK; i++)
        status = s->db->driver->prepare(s->db, statement_sql[i], &s->stmts[i], err);
    if (status != HF_OK)
        sql_disconnect(s);
    return status;
}

enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err)
{
    return s->db && !s->db->driver->is_gone(s->db) ? HF_OK : sql_connect(s, err);
}

enum hf_status sql_begin(struct sql_lease *s, int64_t *ret_now, struct hf_err *err)
{
    s->wakes.n = 0;
    enum hf_status status = sql_connected(s, err);
    if (status == HF_OK)
        status = s->db->driver->begin(s->db, err);
    return status == HF_OK && ret_now ? s->db->driver->now_ms(s->db, ret_now, err) : status;
}

enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err)
{
    if (status == HF_OK)
        status = s->db->driver->commit(s->db, err);
    if (status == HF_OK && s->wakes.n > 0)
        s->db->driver->wake(s->db, s->wakes.v, s->wakes.n);
    if (status != HF_OK && s->db)
        s->db->driver->rollback(s->db);
    return status;
}
