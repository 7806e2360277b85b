/* See link.h. */
#include "lease/sql/link.h"

static const char *const statement_sql[LS_COUNT] = {
#define STATEMENT_SQL(name, sql) [LS_##name] = sql,
    LEASE_SQL_STATEMENTS(STATEMENT_SQL) LEASE_SQL_ONE_STATEMENTS(STATEMENT_SQL)
#undef STATEMENT_SQL
};

enum hf_result sql_result(enum hf_status status, const struct hf_err *err, struct hf_fault *fault)
{
    switch (status) {
    case HF_OK:
        return HF_DONE;
    case HF_INVALID_REQUEST:
        return fault_set(fault, HF_BAD_REQUEST, "%s", err->msg);
    case HF_LEDGER_UNAVAILABLE:
    case HF_LEDGER_CONFLICT: /* nothing was done */
        return fault_set(fault, HF_UNREACHABLE, "%s", err->msg);
    case HF_OUTCOME_UNKNOWN:
        return fault_set(fault, HF_UNKNOWN, "%s", err->msg);
    default:
        return fault_set(fault, HF_FAILED, "%s", err->msg);
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
    s->swept_at_ms = 0;
}

enum hf_status sql_connect(struct sql_lease *s, struct hf_err *err)
{
    sql_disconnect(s);
    enum hf_status status = db_open(s->url, &s->options, &s->db, err);
    hf_check(status != HF_OK || s->db);
    if (status == HF_OK)
        status = db_migrate_part(s->db, LEASE_SQL_PART, lease_sql_migrations,
                                 sizeof lease_sql_migrations / sizeof *lease_sql_migrations, err);
    int n = status == HF_OK && s->db->driver->run_locked ? LS_COUNT : LS_ONE_FIRST;
    for (int i = 0; i < n && status == HF_OK; i++)
        status = s->db->driver->prepare(s->db, statement_sql[i], &s->stmts[i], err);
    if (status != HF_OK)
        sql_disconnect(s);
    return status;
}

enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err)
{
    return s->db && !s->db->driver->is_gone(s->db) ? HF_OK : sql_connect(s, err);
}

enum hf_status sql_begin(struct sql_lease *s, const struct db_value *names, size_t n,
                         struct hf_err *err)
{
    s->wakes.n = 0;
    if (n > DB_NAMES_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST, "%zu leases at once, more than %d", n,
                          DB_NAMES_MAX);
    enum hf_status status = sql_connected(s, err);
    return status == HF_OK ? s->db->driver->begin_locked(s->db, names, n, err) : status;
}

void sql_wake(struct sql_lease *s)
{
    if (s->wakes.n > 0)
        s->db->driver->wake(s->db, s->wakes.v, s->wakes.n);
}

enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err)
{
    if (status == HF_OK)
        status = s->db->driver->commit(s->db, err);
    if (status == HF_OK)
        sql_wake(s);
    if (status != HF_OK && s->db)
        s->db->driver->rollback(s->db);
    return status;
}

enum hf_status sql_state_read(struct sql_lease *s, const struct db_value *name,
                              const struct claim_row *last, int64_t *now, struct hf_err *err)
{
    struct db_stmt *holders = s->stmts[LS_HOLDERS], *waiters = s->stmts[LS_WAITERS];
    const struct db_value args[] = {*name, db_int(last ? last->turn : INT64_MAX),
                                    db_int(last ? last->number : INT64_MAX)};
    enum hf_status status = db_query(waiters, args, err);
    if (status == HF_OK)
        status = db_query(holders, args, err);
    if (status == HF_OK && !*now)
        status = s->db->driver->now_ms(s->db, now, err);
    return status == HF_OK ? name_state_read(&s->state, holders, waiters, *now, err) : status;
}
