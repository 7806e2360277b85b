/* See turn.h. */
#include "lease/sql/turn.h"

#include <string.h>

enum hf_status turn_keep_place(struct sql_lease *s, const struct lease_request *r,
                               struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(s->family->topic)};
    enum hf_status status = sql_begin(s, args, 1, err);
    if (status == HF_OK)
        status = sql_exec(s, LS_SEEN, args, NULL, err);
    return sql_end(s, status, err);
}

enum hf_status turn_head_query(struct sql_lease *s, const struct db_value *name, struct hf_err *err)
{
    s->link->head[0] = *name;
    s->link->head[1] = db_int(WAITER_SILENT_MS);
    s->link->head[2] = db_int(WAITER_CLAIM_MS);
    return db_query(s->link->stmts[LS_HEAD], s->link->head, err);
}

void turn_wake(struct sql_lease *s, const struct claim_row *waiter)
{
    struct db_wake *wake = vec_push(&s->link->wakes);
    *wake = (struct db_wake){.number = waiter->number, .topic = waiter->topic};
    lease_owner_text(waiter->owner, wake->text);
}

enum hf_status turn_call(struct sql_lease *s, const struct db_value *name,
                         const struct claim_row *waiter, struct hf_err *err)
{
    const struct db_value args[] = {*name, db_bytes(waiter->owner, LEASE_OWNER_SIZE)};
    turn_wake(s, waiter);
    return sql_exec(s, LS_CALL, args, NULL, err);
}

void turn_row_read(struct db_stmt *stmt, struct claim_row *ret)
{
    size_t len;
    const void *owner = db_column_data(stmt, 1, &len);
    ret->number = db_column_int(stmt, 0);
    ret->topic = db_column_int(stmt, 2);
    if (owner)
        memcpy(ret->owner, owner, len < LEASE_OWNER_SIZE ? len : LEASE_OWNER_SIZE);
}

enum hf_status turn_head_read(struct sql_lease *s, const struct db_value *name, struct hf_err *err)
{
    struct db_stmt *stmt = s->link->stmts[LS_HEAD];
    struct claim_row head = {0};
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW)
        turn_row_read(stmt, &head);
    if (step == DB_FAILED)
        return err->code;
    return head.number ? turn_call(s, name, &head, err) : HF_OK;
}

enum hf_status turn_call_first(struct sql_lease *s, const struct db_value *name, struct hf_err *err)
{
    const struct claim_row *first = name_state_turn(&s->link->state);
    return first && !first->since ? turn_call(s, name, first, err) : HF_OK;
}

enum hf_status turn_call_next(struct sql_lease *s, const struct db_value *name,
                              const struct claim_row *granted, unsigned slots, struct hf_err *err)
{
    const struct claim_row *next = granted + 1,
                           *end = s->link->state.waiters.v + s->link->state.waiters.n;
    while (next < end && claim_is_passed_over(next, s->link->state.now))
        next++;
    if (next == end || next->mode != granted->mode ||
        (granted->mode == HF_EXCLUSIVE && s->link->state.holders.n + 1 >= slots))
        return HF_OK;
    return turn_call(s, name, next, err);
}

enum hf_status turn_take_back(struct sql_lease *s, const struct db_value *name, struct hf_err *err)
{
    const struct name_state *st = &s->link->state;
    const struct db_value args[] = {*name, db_int(st->now - WAITER_CLAIM_MS)};
    for (size_t i = 0; i < st->waiters.n; i++)
        if (st->waiters.v[i].since && !claim_is_passed_over(&st->waiters.v[i], st->now))
            return sql_exec(s, LS_UNCALL, args, NULL, err);
    return HF_OK;
}
