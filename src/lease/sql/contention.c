/* See contention.h. */
#include "lease/sql/contention.h"

#include <string.h>

#include "base/wait.h"

#define LONG_QUEUE 16
/* A waiter cannot move faster than this, per place, without being woken before its turn. */
#define COUNT_GOOD_US INT64_C(10000)
#define COUNT_GOOD_MAX_US INT64_C(10000000)

bool contention_is_known(const struct sql_lease *s, const struct lease_request *r)
{
    return s->contended_len == r->key_len && memcmp(s->contended, r->key, r->key_len) == 0;
}

bool contention_is_long_queue(const struct sql_lease *s, const struct lease_request *r)
{
    return contention_is_known(s, r) && s->contended_ahead >= LONG_QUEUE;
}

void contention_set(struct sql_lease *s, const struct lease_request *r)
{
    memcpy(s->contended, r->key, r->key_len);
    s->contended_len = r->key_len;
}

void contention_update(struct sql_lease *s, const struct lease_request *r,
                       const struct standing *st)
{
    if (st->ahead >= LONG_QUEUE)
        contention_set(s, r);
    if (!contention_is_known(s, r))
        return;
    s->contended_ahead = st->ahead;
    if (s->link->state.holders.n == 0 && s->link->state.waiters.n == (st->place ? 1 : 0))
        s->contended_len = 0;
}

bool contention_is_counted(const struct sql_lease *s, const struct lease_request *r)
{
    return s->counted_until_us > wait_now_us() && contention_is_long_queue(s, r) &&
           s->contended_ahead >= r->slots && r->queue &&
           memcmp(s->counted_owner, r->owner, LEASE_OWNER_SIZE) == 0;
}

static void note_count(struct sql_lease *s, const struct lease_request *r, int64_t ahead)
{
    int64_t good_us = ahead * COUNT_GOOD_US;
    s->contended_ahead = (size_t)ahead;
    if (!s->family->has_server)
        return;
    memcpy(s->counted_owner, r->owner, LEASE_OWNER_SIZE);
    s->counted_until_us =
        wait_now_us() + (good_us < COUNT_GOOD_MAX_US ? good_us : COUNT_GOOD_MAX_US);
}

void contention_forget_count(struct sql_lease *s) { s->counted_until_us = 0; }

enum hf_status contention_count(struct sql_lease *s, const struct lease_request *r,
                                struct place_count *ret, struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(WAITER_SILENT_MS),
                                    db_int(WAITER_CLAIM_MS)};
    enum hf_status status;
    if ((status = sql_connected(s, err)) != HF_OK ||
        (status = db_query(s->link->stmts[LS_AHEAD], args, err)) != HF_OK)
        return status;
    struct db_stmt *stmt = s->link->stmts[LS_AHEAD];
    enum db_step step = db_step(stmt, err);
    *ret = (struct place_count){.found = step == DB_ROW};
    if (ret->found) {
        ret->seen_at = db_column_int(stmt, 0);
        ret->now = db_column_int(stmt, 1);
        ret->ahead = db_column_int(stmt, 2);
    }
    stmt->driver->finish(stmt);
    if (ret->found)
        note_count(s, r, ret->ahead);
    return step == DB_FAILED ? err->code : HF_OK;
}
