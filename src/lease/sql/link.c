/* See link.h. */
#include "lease/sql/link.h"

#include <stdlib.h>

#include "lease/sql/listener.h"

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
    case HF_STORE_UNAVAILABLE:
    case HF_CONFLICT: /* nothing was done */
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
    return db_exec(s->link->stmts[which], args, ret_changes, err);
}

static void disconnect(struct sql_link *link)
{
    db_close(link->db);
    link->db = NULL;
    link->examine = NULL;
    link->swept_at_ms = 0;
}

void sql_link_free(struct sql_link *link)
{
    if (!link)
        return;
    disconnect(link);
    vec_close(&link->wakes);
    vec_close(&link->names);
    name_state_close(&link->state);
    free(link);
}

static enum hf_status prepare(struct sql_link *link, struct hf_err *err)
{
    const struct db_driver *driver = link->db->driver;
    enum hf_status status =
        db_migrate_part(link->db, LEASE_SQL_PART, lease_sql_migrations,
                        sizeof lease_sql_migrations / sizeof *lease_sql_migrations, err);
    int n = driver->network ? LS_COUNT : LS_ONE_FIRST;
    for (int i = 0; i < n && status == HF_OK; i++)
        status = driver->prepare(link->db, statement_sql[i], &link->stmts[i], err);
    return status;
}

enum hf_status sql_connected(struct sql_lease *s, struct hf_err *err)
{
    struct sql_link *link = s->link;
    if (link->db && !link->db->driver->sharing.is_gone(link->db))
        return HF_OK;
    disconnect(link);
    enum hf_status status = db_open(s->family->url, &s->family->options, &link->db, err);
    hf_check(status != HF_OK || link->db);
    if (status == HF_OK)
        status = prepare(link, err);
    if (status != HF_OK)
        disconnect(link);
    return status;
}

enum hf_status sql_enter(struct sql_lease *s, enum sql_purpose purpose, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    if (!s->link)
        status = family_borrow(s->family, purpose == SQL_TO_KEEP, s->lease.limit_ms, &s->link, err);
    s->purpose = purpose;
    if (status == HF_OK)
        status = sql_connected(s, err);
    if (status == HF_OK && s->link->db->driver->network)
        s->link->db->driver->network->limit_answers(s->link->db, s->lease.limit_ms);
    return status;
}

void sql_leave(struct sql_lease *s)
{
    if (s->link && s->family->has_server)
        family_give_back(s->family, s->purpose == SQL_TO_KEEP, &s->link);
}

enum hf_status sql_begin(struct sql_lease *s, const struct db_value *names, size_t n,
                         struct hf_err *err)
{
    s->link->wakes.n = 0;
    if (n > DB_NAMES_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST, "%zu leases at once, more than %d", n,
                          DB_NAMES_MAX);
    enum hf_status status = sql_connected(s, err);
    if (status == HF_OK)
        status = s->link->db->driver->sharing.begin_locked(s->link->db, names, n, err);
    s->link->in_transaction = status == HF_OK;
    return status;
}

void sql_wake(struct sql_lease *s)
{
    struct sql_link *link = s->link;
    size_t n = 0;
    for (size_t i = 0; i < link->wakes.n; i++) {
        if (link->wakes.v[i].topic && link->wakes.v[i].topic == s->family->topic)
            listener_wake(s->family, link->wakes.v[i].text);
        else
            link->wakes.v[n++] = link->wakes.v[i];
    }
    if (n > 0)
        link->db->driver->sharing.wake(link->db, link->wakes.v, n);
    link->wakes.n = 0;
}

enum hf_status sql_end(struct sql_lease *s, enum hf_status status, struct hf_err *err)
{
    s->link->in_transaction = false;
    if (status == HF_OK)
        status = s->link->db->driver->commit(s->link->db, err);
    if (status == HF_OK)
        sql_wake(s);
    if (status != HF_OK && s->link && s->link->db)
        s->link->db->driver->rollback(s->link->db);
    return status;
}

enum hf_status sql_in_one_transaction(struct sql_lease *s, sql_request *each,
                                      const struct lease_request *requests, size_t n,
                                      struct lease_verdict *verdicts, struct hf_err *err)
{
    int64_t now = 0;
    vec_clear(&s->link->names);
    for (size_t i = 0; i < n; i++)
        *vec_push(&s->link->names) = sql_key(&requests[i]);
    enum hf_status status = sql_begin(s, s->link->names.v, n, err);
    for (size_t i = 0; i < n && status == HF_OK; i++)
        status = each(s, &requests[i], &now, &verdicts[i], err);
    return sql_end(s, status, err);
}

static enum hf_status last_grant_read(struct sql_lease *s, struct hf_err *err)
{
    struct db_stmt *stmt = s->link->stmts[LS_LAST_GRANT];
    enum db_step step;
    s->link->last_fence = s->link->last_grant = 0;
    while ((step = db_step(stmt, err)) == DB_ROW) {
        int64_t fence = db_column_int(stmt, 0), granted_at = db_column_int(stmt, 1);
        s->link->last_fence = fence > s->link->last_fence ? fence : s->link->last_fence;
        s->link->last_grant = granted_at > s->link->last_grant ? granted_at : s->link->last_grant;
    }
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_status sql_state_read(struct sql_lease *s, const struct db_value *name,
                              const struct claim_row *last, int64_t *now, struct hf_err *err)
{
    struct db_stmt *holders = s->link->stmts[LS_HOLDERS], *waiters = s->link->stmts[LS_WAITERS];
    const struct db_value args[] = {*name, db_int(last ? last->turn : INT64_MAX),
                                    db_int(last ? last->number : INT64_MAX)};
    const struct db_value names[] = {*name, db_bytes("", 0)};
    bool reads_fence = s->link->in_transaction && s->link->db->driver->network;
    enum hf_status status = db_query(waiters, args, err);
    if (status == HF_OK)
        status = db_query(holders, args, err);
    if (status == HF_OK && reads_fence)
        status = db_query(s->link->stmts[LS_LAST_GRANT], names, err);
    if (status == HF_OK && !*now)
        status = s->link->db->driver->now_ms(s->link->db, now, err);
    if (status == HF_OK)
        status = name_state_read(&s->link->state, holders, waiters, *now, err);
    return status == HF_OK && reads_fence ? last_grant_read(s, err) : status;
}
