/* See state.h.  name_state_judge implements the rules of lease.h: waiters are served in order,
 * shared holders beside each other, exclusive ones up to the number of slots.  Runs on the handle's
 * thread. */
#include "lease/sql/state.h"

#include <string.h>

void name_state_close(struct name_state *s)
{
    vec_close(&s->holders);
    vec_close(&s->waiters);
}

static bool row_read(struct db_stmt *stmt, struct claim_row *row)
{
    size_t len;
    const void *data = db_column_data(stmt, 0, &len);
    if (!data || len != LEASE_OWNER_SIZE)
        return false;
    memcpy(row->owner, data, len);
    row->number = db_column_int(stmt, 1);
    row->mode = db_column_int(stmt, 2) == HF_SHARED ? HF_SHARED : HF_EXCLUSIVE;
    row->slots = (unsigned)db_column_int(stmt, 3);
    row->until = db_column_int(stmt, 4);
    row->turn = db_column_int(stmt, 5);
    data = db_column_data(stmt, 6, &len);
    if (len > LEASE_LABEL_MAX)
        return false;
    if (data)
        memcpy(row->label, data, len);
    return true;
}

/* Rows that have ended are left out; *ret_dead tells whether there were any. */
static enum hf_status read_all(struct db_stmt *stmt, int64_t extra_ms, int64_t now,
                               struct claim_rows *rows, bool *ret_dead, struct hf_err *err)
{
    rows->n = 0;
    *ret_dead = false;
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW) {
        struct claim_row *row = vec_push(rows);
        if (!row_read(stmt, row)) {
            stmt->driver->finish(stmt);
            return hf_err_set(err, HF_INTERNAL, "a lease in the database is damaged");
        }
        row->until += extra_ms;
        if (row->until <= now) {
            *ret_dead = true;
            rows->n--;
        }
    }
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_status name_state_read(struct name_state *s, struct db_stmt *holders,
                               struct db_stmt *waiters, int64_t now, struct hf_err *err)
{
    enum hf_status status = read_all(waiters, WAITER_SILENT_MS, now, &s->waiters, &s->silent, err);
    return status == HF_OK ? read_all(holders, 0, now, &s->holders, &s->expired, err) : status;
}

static bool is_owner(const struct claim_row *row, const struct lease_request *r)
{
    return memcmp(row->owner, r->owner, LEASE_OWNER_SIZE) == 0;
}

struct standing name_state_judge(const struct name_state *s, const struct lease_request *r)
{
    struct standing st = {.first_end = INT64_MAX};
    size_t held[2] = {0}, ahead[2] = {0}; /* by mode */
    for (size_t i = 0; i < s->holders.n; i++) {
        const struct claim_row *h = &s->holders.v[i];
        st.lease = is_owner(h, r) ? h : st.lease;
        st.slots = h->slots;
        st.first_end = h->until < st.first_end ? h->until : st.first_end;
        held[h->mode]++;
    }
    for (size_t i = 0; i < s->waiters.n && !st.place; i++) {
        st.slots = s->waiters.v[i].slots;
        if (is_owner(&s->waiters.v[i], r))
            st.place = &s->waiters.v[i];
    }
    st.next_end = st.first_end;
    for (size_t i = 0; i < s->waiters.n; i++) {
        const struct claim_row *w = &s->waiters.v[i];
        if (w == st.place || (!st.place && w->turn > -(int64_t)r->priority))
            break;
        ahead[w->mode]++;
        st.next_end = w->until < st.next_end ? w->until : st.next_end;
    }
    st.ahead = ahead[HF_SHARED] + ahead[HF_EXCLUSIVE];
    enum hf_mode mode = st.place ? st.place->mode : r->mode;
    st.free = held[HF_EXCLUSIVE] + ahead[HF_EXCLUSIVE] == 0;
    if (mode == HF_EXCLUSIVE)
        st.free = held[HF_SHARED] + ahead[HF_SHARED] == 0 &&
                  held[HF_EXCLUSIVE] + ahead[HF_EXCLUSIVE] < r->slots;
    return st;
}
