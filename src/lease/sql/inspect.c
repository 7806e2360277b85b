/* Inspecting locks: holders and waiters of a name, and the names in use.  Runs on the handle's
 * thread. */
#include <stdlib.h>
#include <string.h>

#include "lease/sql/link.h"
#include "lease/sql/sql.h"

#define NAMES_AT_ONCE 256

static struct hf_holder *show(const struct claim_rows *rows, bool holders, int64_t now,
                              size_t *ret_n)
{
    VEC(struct hf_holder) all = {0};
    for (size_t i = 0; i < rows->n; i++) {
        struct hf_holder *h = vec_push(&all);
        lease_owner_text(rows->v[i].owner, h->owner);
        memcpy(h->label, rows->v[i].label, sizeof h->label);
        h->mode = rows->v[i].mode;
        h->priority = (int)-rows->v[i].turn;
        h->fence = holders ? rows->v[i].number : 0;
        h->remaining_ms = rows->v[i].until - now;
        h->slot = rows->v[i].slot;
        h->held_ms = -1;
        if (holders && rows->v[i].since)
            h->held_ms = rows->v[i].since < now ? now - rows->v[i].since : 0;
    }
    *ret_n = all.n;
    return all.v;
}

static enum hf_status last_fence_read(struct sql_lease *s, const struct db_value *name,
                                      int64_t *ret, struct hf_err *err)
{
    struct db_stmt *stmt = s->link->stmts[LS_LAST_FENCE];
    enum hf_status status = db_query(stmt, name, err);
    if (status != HF_OK)
        return status;
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW)
        *ret = db_column_int(stmt, 0);
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_result sql_inspect(struct lease *l, const char *key, size_t key_len,
                           struct lease_state *ret, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    int64_t now = 0;
    const struct db_value name = db_bytes(key, key_len);
    int64_t last_fence = 0;
    enum hf_status status = sql_enter(s, SQL_TO_TAKE, &err);
    if (status == HF_OK) {
        status = sql_begin(s, &name, 1, &err);
        if (status == HF_OK)
            status = sql_state_read(s, &name, NULL, &now, &err);
        if (status == HF_OK)
            status = last_fence_read(s, &name, &last_fence, &err);
        status = sql_end(s, status, &err);
    }
    if (status == HF_OK) {
        *ret = (struct lease_state){.last_fence = last_fence};
        ret->holders = show(&s->link->state.holders, true, now, &ret->n_holders);
        ret->waiters = show(&s->link->state.waiters, false, now, &ret->n_waiters);
    }
    sql_leave(s);
    if (status != HF_OK)
        return sql_result(status, &err, fault);
    for (size_t i = 0; i < ret->n_holders; i++) /* one of them may be held for days */
        if (ret->holders[i].fence > ret->last_fence)
            ret->last_fence = ret->holders[i].fence;
    return HF_DONE;
}

/* Writes the least byte string that is larger than all that begin with `prefix`.  No name contains
 * the byte 0xff, which is not UTF-8. */
static size_t beyond(const char *prefix, size_t len, char ret[LEASE_NAME_MAX + 1])
{
    memcpy(ret, prefix, len);
    while (len > 0 && (unsigned char)ret[len - 1] == 0xff)
        len--;
    if (len > 0)
        ret[len - 1] = (char)((unsigned char)ret[len - 1] + 1);
    else
        ret[len++] = (char)0xff;
    return len;
}

struct names {
    size_t n;
    char v[NAMES_AT_ONCE][LEASE_NAME_MAX + 1];
};

static enum hf_status names_read(struct sql_lease *s, const struct db_value args[6],
                                 struct names *names, struct hf_err *err)
{
    struct db_stmt *stmt = s->link->stmts[LS_NAMES];
    enum hf_status status = db_query(stmt, args, err);
    enum db_step step = DB_DONE;
    names->n = 0;
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW && names->n < NAMES_AT_ONCE) {
        size_t len;
        const void *data = db_column_data(stmt, 0, &len);
        len = len < LEASE_NAME_MAX ? len : LEASE_NAME_MAX;
        if (data)
            memcpy(names->v[names->n], data, len);
        names->v[names->n++][len] = '\0';
    }
    stmt->driver->finish(stmt);
    return step == DB_FAILED ? err->code : status;
}

/* Reads some names at a time and has no statement open while `each` runs: that may call the driver,
 * and may take as long as it likes. */
enum hf_result sql_list(struct lease *l, const char *prefix, size_t prefix_len,
                        lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    char last[LEASE_NAME_MAX + 1], after[LEASE_NAME_MAX + 1] = "";
    size_t last_len = beyond(prefix, prefix_len, last);
    struct names *names = hf_alloc(sizeof *names);
    enum hf_status status;
    bool more = true;
    do {
        int64_t now = 0;
        names->n = 0;
        status = sql_enter(s, SQL_TO_TAKE, &err);
        if (status == HF_OK)
            status = s->link->db->driver->now_ms(s->link->db, &now, &err);
        const struct db_value args[] = {db_bytes(prefix_len ? prefix : "", prefix_len),
                                        db_bytes(after, strlen(after)),
                                        db_bytes(last, last_len),
                                        db_int(now),
                                        db_int(now - WAITER_SILENT_MS),
                                        db_int(NAMES_AT_ONCE)};
        if (status == HF_OK)
            status = names_read(s, args, names, &err);
        sql_leave(s);
        for (size_t i = 0; i < names->n && status == HF_OK && more; i++)
            more = each(ctx, names->v[i]);
        if (names->n == NAMES_AT_ONCE)
            memcpy(after, names->v[NAMES_AT_ONCE - 1], sizeof after);
    } while (status == HF_OK && more && names->n == NAMES_AT_ONCE);
    free(names);
    return sql_result(status, &err, fault);
}
