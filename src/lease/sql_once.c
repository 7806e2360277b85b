/* A lease that nobody else is near, in one exchange (db_driver.run_locked): one statement, alone on
 * its name, that does it or nothing.  Thread: that of the handle. */
#include <string.h>

#include "lease/sql_link.h"

#define LONG_LINE 16

bool sql_is_crowded(const struct sql_lease *s, const struct lease_request *r)
{
    return s->crowd_len == r->key_len && memcmp(s->crowd, r->key, r->key_len) == 0;
}

static void crowd_set(struct sql_lease *s, const struct lease_request *r)
{
    memcpy(s->crowd, r->key, r->key_len);
    s->crowd_len = r->key_len;
}

bool sql_is_long_line(const struct sql_lease *s, const struct lease_request *r)
{
    return sql_is_crowded(s, r) && s->crowd_ahead >= LONG_LINE;
}

void sql_crowd_look(struct sql_lease *s, const struct lease_request *r, const struct standing *st)
{
    if (st->ahead >= LONG_LINE)
        crowd_set(s, r);
    if (!sql_is_crowded(s, r))
        return;
    s->crowd_ahead = st->ahead;
    if (s->state.holders.n == 0 && s->state.waiters.n == (st->place ? 1 : 0))
        s->crowd_len = 0;
}

/* On the name that is the first argument: whether a row was answered, and its number. */
static enum hf_status ask(struct sql_lease *s, enum lease_sql_statement which,
                          const struct db_value *args, bool *ret_any, int64_t *ret,
                          struct hf_err *err)
{
    struct db_stmt *stmt = s->stmts[which];
    enum hf_status status = s->db->driver->run_locked(stmt, &args[0], args, err);
    if (status != HF_OK)
        return status;
    enum db_step step = db_step(stmt, err);
    *ret_any = step == DB_ROW;
    if (*ret_any)
        *ret = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_status sql_take(struct sql_lease *s, const struct lease_request *r,
                        struct lease_verdict *verdict, bool *ret_done, struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r),
                                    sql_owner(r),
                                    db_int(r->mode),
                                    db_int(r->slots),
                                    db_int(r->priority),
                                    db_int(r->ttl_ms),
                                    db_text(r->label, r->label_len)};
    *verdict = (struct lease_verdict){.result = HF_DONE, .remaining_ms = r->ttl_ms};
    enum hf_status status = ask(s, LS_TAKE, args, ret_done, &verdict->fence, err);
    if (status == HF_OK && !*ret_done)
        crowd_set(s, r);
    return status;
}

enum hf_status sql_give(struct sql_lease *s, const struct lease_request *r,
                        struct lease_verdict *verdict, bool *ret_done, struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(WAITER_SILENT_MS)};
    int64_t head = 0;
    enum hf_status status = ask(s, LS_GIVE, args, ret_done, &head, err);
    *verdict = (struct lease_verdict){.result = HF_DONE};
    s->wakes.n = 0;
    if (status == HF_OK && *ret_done && head)
        *vec_push(&s->wakes) = head;
    sql_wake(s);
    return status;
}

enum hf_status sql_keep(struct sql_lease *s, const struct lease_request *r,
                        struct lease_verdict *verdict, bool *ret_done, struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(r->ttl_ms)};
    bool ours = false;
    *verdict = (struct lease_verdict){.remaining_ms = r->ttl_ms};
    enum hf_status status = ask(s, LS_RENEW, args, &ours, &verdict->fence, err);
    if (!ours)
        *verdict = (struct lease_verdict){.result = HF_LOST};
    *ret_done = true;
    return status;
}
