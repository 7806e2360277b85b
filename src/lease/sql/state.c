/* See state.h.  name_state_judge implements the rules of lease.h: waiters are served in order,
 * shared holders beside each other, exclusive ones up to the number of slots.  Runs on the handle's
 * thread. */
#include "lease/sql/state.h"

#include <stdlib.h>
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
    row->since = db_column_int(stmt, 7);
    row->slot = (unsigned)db_column_int(stmt, 8);
    row->topic = db_column_int(stmt, 9);
    data = db_column_data(stmt, 6, &len);
    if (len > LEASE_LABEL_MAX)
        return false;
    if (data)
        memcpy(row->label, data, len);
    return true;
}

/* Rows that have ended are left out; *ret_dead tells whether there were any. */
static enum hf_status read_all(struct name_state *s, struct db_stmt *stmt, int64_t extra_ms,
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
        if (rows == &s->holders && db_column_int(stmt, 9) > s->last_write)
            s->last_write = db_column_int(stmt, 9);
        if (row->until <= s->now) {
            *ret_dead = true;
            rows->n--;
        }
    }
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_status name_state_read(struct name_state *s, struct db_stmt *holders,
                               struct db_stmt *waiters, int64_t now, struct hf_err *err)
{
    s->now = now;
    s->last_write = 0;
    enum hf_status status = read_all(s, waiters, WAITER_SILENT_MS, &s->waiters, &s->silent, err);
    return status == HF_OK ? read_all(s, holders, 0, &s->holders, &s->expired, err) : status;
}

static bool is_owner(const struct claim_row *row, const struct lease_request *r)
{
    return memcmp(row->owner, r->owner, LEASE_OWNER_SIZE) == 0;
}

bool claim_is_passed_over(const struct claim_row *waiter, int64_t now)
{
    int64_t ago_ms = now - waiter->since; /* far below 0: the clock was set back */
    return waiter->since && (ago_ms >= WAITER_CLAIM_MS || ago_ms < -WAITER_CLAIM_MS);
}

/* Holders, or waiters that are served before, by mode. */
struct mode_count {
    size_t n[2];
};

static bool has_room(enum hf_mode mode, unsigned slots, const struct mode_count *held,
                     const struct mode_count *ahead)
{
    size_t shared = held->n[HF_SHARED] + ahead->n[HF_SHARED];
    size_t exclusive = held->n[HF_EXCLUSIVE] + ahead->n[HF_EXCLUSIVE];
    return mode == HF_SHARED ? exclusive == 0 : shared == 0 && exclusive < slots;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* Counts the waiters that are served before the request. */
static struct mode_count count_ahead(const struct name_state *s, const struct lease_request *r,
                                     struct standing *st)
{
    struct mode_count ahead = {0};
    for (size_t i = 0; i < s->waiters.n; i++) {
        const struct claim_row *w = &s->waiters.v[i];
        if (w == st->place || (!st->place && w->turn > -(int64_t)r->priority))
            break;
        if (claim_is_passed_over(w, s->now))
            continue;
        ahead.n[w->mode]++;
        st->next_end = earlier(st->next_end, w->until);
        if (w->since)
            st->next_end = earlier(st->next_end, w->since + WAITER_CLAIM_MS);
    }
    st->ahead = ahead.n[HF_SHARED] + ahead.n[HF_EXCLUSIVE];
    return ahead;
}

struct standing name_state_judge(const struct name_state *s, const struct lease_request *r)
{
    struct standing st = {.first_end = INT64_MAX};
    struct mode_count held = {0};
    for (size_t i = 0; i < s->holders.n; i++) {
        const struct claim_row *h = &s->holders.v[i];
        st.lease = is_owner(h, r) ? h : st.lease;
        st.slots = h->slots;
        st.first_end = earlier(st.first_end, h->until);
        held.n[h->mode]++;
    }
    for (size_t i = 0; i < s->waiters.n && !st.place; i++) {
        st.slots = s->waiters.v[i].slots;
        if (is_owner(&s->waiters.v[i], r))
            st.place = &s->waiters.v[i];
    }
    st.next_end = st.first_end;
    struct mode_count ahead = count_ahead(s, r, &st);
    st.free = (!r->queue && s->holders.n == 0) || /* a turn is not a lease */
              has_room(st.place ? st.place->mode : r->mode, r->slots, &held, &ahead);
    return st;
}

const struct claim_row *name_state_turn(const struct name_state *s)
{
    static const struct mode_count none;
    struct mode_count held = {0};
    for (size_t i = 0; i < s->holders.n; i++)
        held.n[s->holders.v[i].mode]++;
    for (size_t i = 0; i < s->waiters.n; i++) {
        const struct claim_row *w = &s->waiters.v[i];
        if (!claim_is_passed_over(w, s->now))
            return has_room(w->mode, w->slots, &held, &none) ? w : NULL;
    }
    return NULL;
}

unsigned name_state_free_slot(const struct name_state *s)
{
    size_t n = s->holders.n;
    if (n == 0)
        return 0;
    bool *used = hf_alloc(n * sizeof *used);
    for (size_t i = 0; i < n; i++)
        if (s->holders.v[i].mode == HF_EXCLUSIVE && s->holders.v[i].slot < n)
            used[s->holders.v[i].slot] = true;
    unsigned slot = 0;
    while (slot < n && used[slot])
        slot++;
    free(used);
    return slot;
}
