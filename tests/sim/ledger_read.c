/* What connections read from the simulated ledger: committed rows, under locks or without. */
#include <stdlib.h>
#include <string.h>

#include "sim/tables.h"

static enum hf_status no_such_row(struct hf_err *err, const char *table)
{
    return hf_err_set(err, HF_INTERNAL, "a row of %s is missing", table);
}

/* ---- the batch ---- */

static void read_since(const struct sim_ledger *sim, struct batch_read *r, size_t index,
                       int64_t seq, int64_t fence)
{
    int64_t event = r->clocks.v[index].event;
    const struct sim_event *e = sim_event(sim, event);
    if (event == 0 || !e)
        return; /* the catalogue has no log */
    for (size_t i = 0; i < e->log.n; i++)
        if (e->log.v[i].seq > seq && e->log.v[i].seq <= seq + LEDGER_SINCE_MAX)
            *vec_push(&r->since.audit) = e->log.v[i];
    for (size_t i = 0; i < e->holds.n; i++) {
        const struct hold_row *row = &e->holds.v[i].row;
        if (row->id.key > HOLD_KEY(event, fence) &&
            row->id.key <= HOLD_KEY(event, fence + LEDGER_SINCE_MAX) &&
            (row->status == HOLD_ACTIVE || row->status == HOLD_CONFIRMED))
            *vec_push(&r->since.holds) = sim_hold_copy(row);
    }
    for (size_t i = 0; i < e->waits.n; i++)
        if (e->waits.v[i].id.key > HOLD_KEY(event, fence) && wait_is_live(e->waits.v[i].status))
            *vec_push(&r->since.waits) = sim_wait_copy(&e->waits.v[i]);
}

static int audit_order(const void *a, const void *b)
{
    const struct audit_row *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
                                : (x->seq > y->seq) - (x->seq < y->seq);
}

static int wait_order(const void *a, const void *b)
{
    const struct wait_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

static int hold_order(const void *a, const void *b)
{
    const struct hold_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

/* Workers ask for events in any order when they follow. */
static void order_since(struct log_since *since)
{
    if (since->audit.n)
        qsort(since->audit.v, since->audit.n, sizeof *since->audit.v, audit_order);
    if (since->holds.n)
        qsort(since->holds.v, since->holds.n, sizeof *since->holds.v, hold_order);
    if (since->waits.n)
        qsort(since->waits.v, since->waits.n, sizeof *since->waits.v, wait_order);
}

enum hf_status ledger_batch_read(struct ledger *l, struct batch_read *r, struct hf_err *err)
{
    VEC(struct clock_row) known = {0}; /* the seqs and fences that the view has */
    enum hf_status status = sim_enter(l, SIM_BATCH_READ, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < r->clocks.n; i++)
        *vec_push(&known) = r->clocks.v[i];
    status = sim_lock(l, r->clocks.v, r->clocks.n, &r->now, err);
    for (size_t i = 0; status == HF_OK && l->sim->has_others && i < known.n; i++)
        read_since(l->sim, r, i, known.v[i].seq, known.v[i].fence);
    order_since(&r->since);
    if (status == HF_OK)
        sim_wanted_read(l->sim, r);
    vec_close(&known);
    return status;
}

enum hf_status ledger_follow(struct ledger *l, struct batch_read *r, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < r->clocks.n; i++)
        read_since(l->sim, r, i, r->clocks.v[i].seq, r->clocks.v[i].fence);
    order_since(&r->since);
    return status;
}

enum hf_status ledger_since_read(struct ledger *l, const int64_t *keys, size_t n,
                                 struct log_since *since, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < n; i++) {
        const struct sim_hold *hold = sim_hold(l->sim, keys[i]);
        if (hold)
            *vec_push(&since->holds) = sim_hold_copy(&hold->row);
    }
    order_since(since);
    return status;
}

/* ---- rows by key ---- */

enum hf_status ledger_clocks_read(struct ledger *l, struct clock_row *rows, size_t n,
                                  struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < n; i++) {
        const struct sim_event *e = sim_event(l->sim, rows[i].event);
        if (!e)
            return no_such_row(err, "event_clock");
        rows[i] = e->clock;
    }
    return status;
}

enum hf_status ledger_keys_read(struct ledger *l, const uint8_t *const *hashes, size_t n,
                                int64_t now, struct key_row *rows, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < n; i++) {
        const struct key_row *row = sim_key(l->sim, hashes[i]);
        bool found = row && row->created_at > now - KEY_KEPT_MS;
        rows[i] = found ? sim_key_copy(row) : (struct key_row){0};
    }
    return status;
}

enum hf_status ledger_holds_read(struct ledger *l, const int64_t *keys, size_t n,
                                 struct hold_row *rows, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < n; i++) {
        const struct sim_hold *hold = sim_hold(l->sim, keys[i]);
        rows[i] = hold ? sim_hold_read(l->sim, hold) : (struct hold_row){0};
    }
    return status;
}

enum hf_status ledger_holds_visit(struct ledger *l, const int64_t *keys, size_t n,
                                  void (*hold)(void *ctx, size_t i, const struct hold_row *row),
                                  void *ctx, struct hf_err *err)
{
    static const struct hold_row none;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < n; i++) {
        const struct sim_hold *found = sim_hold(l->sim, keys[i]);
        hold(ctx, i, found ? &found->row : &none);
    }
    return status;
}

enum hf_status ledger_booking_read(struct ledger *l, int64_t key, struct booking_row *row,
                                   struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_hold *hold = sim_hold(l->sim, key);
    *row = hold && hold->booking.id.key ? sim_booking_read(l->sim, &hold->booking)
                                        : (struct booking_row){0};
    return HF_OK;
}

/* ---- an event ---- */

enum hf_status ledger_event_read(struct ledger *l, int64_t event, struct event_def **ret_def,
                                 struct clock_row *ret_clock, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, event);
    *ret_def = e && e->def ? sim_def_copy(e->def) : NULL;
    if (*ret_def)
        *ret_clock = e->clock;
    return HF_OK;
}

enum hf_status ledger_seats_read(struct ledger *l, int64_t event, uint32_t first, uint32_t last,
                                 void (*seat)(void *ctx, uint32_t index,
                                              const struct seat_row *row),
                                 void *ctx, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, event);
    for (uint32_t i = first; e && i < e->def->n_seats && i <= last; i++)
        if (e->seats[i].status != SEAT_AVAILABLE)
            seat(ctx, i,
                 &(struct seat_row){e->seats[i].status, e->seats[i].hold, e->seats[i].channel});
    return HF_OK;
}

enum hf_status ledger_heads_read(struct ledger *l, int64_t event, uint32_t n_seats,
                                 void (*head)(void *ctx, uint32_t seat, int64_t seq), void *ctx,
                                 int64_t *ret_seq, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, event);
    for (uint32_t i = 0; i < n_seats; i++)
        if (e->seats[i].head)
            head(ctx, i, e->seats[i].head);
    for (size_t i = 0; i < e->log.n; i++) {
        const struct audit_row *row = &e->log.v[i];
        if (row->object == AUDIT_SEAT && row->seq > e->heads_seqs[row->item / HEADS_CHUNK])
            head(ctx, (uint32_t)row->item, row->seq);
    }
    *ret_seq = INT64_MAX;
    for (uint32_t i = 0; i * HEADS_CHUNK < n_seats; i++)
        *ret_seq = e->heads_seqs[i] < *ret_seq ? e->heads_seqs[i] : *ret_seq;
    return HF_OK;
}

enum hf_status ledger_event_state(struct ledger *l, int64_t event, enum event_status *ret_status,
                                  void (*area)(void *ctx, uint32_t index,
                                               const struct area_row *row),
                                  void *ctx, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, event);
    if (!e)
        return no_such_row(err, "events");
    *ret_status = e->def->status;
    for (uint32_t i = 0; i < e->def->areas.n; i++)
        area(ctx, i, &(struct area_row){e->areas[i].held, e->areas[i].booked, &e->areas[i].blocks});
    return HF_OK;
}

enum hf_status ledger_terms_read(struct ledger *l, int64_t event, struct event_terms *ret,
                                 struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    event_terms_copy(&sim_event(l->sim, event)->def->terms, ret);
    return HF_OK;
}

enum hf_status ledger_owners_booked(struct ledger *l, int64_t event,
                                    void (*owner)(void *ctx, const char *owner, size_t len,
                                                  uint32_t places),
                                    void *ctx, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    const struct sim_event *e = sim_event(l->sim, event);
    for (size_t i = 0; status == HF_OK && i < e->holds.n; i++) {
        const struct hold_row *row = &e->holds.v[i].row;
        if (row->owner && sim_is_booked(l->sim, &e->holds.v[i]))
            owner(ctx, row->owner, row->owner_len,
                  places_count(row->n_seats, row->areas, row->n_areas));
    }
    return status;
}

enum hf_status ledger_holds_active(struct ledger *l, int64_t event,
                                   void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                   struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    const struct sim_event *e = sim_event(l->sim, event);
    for (size_t i = 0; status == HF_OK && e && i < e->holds.n; i++)
        if (e->holds.v[i].row.status == HOLD_ACTIVE)
            hold(ctx, &e->holds.v[i].row);
    return status;
}

enum hf_status ledger_holds_count(struct ledger *l, int64_t event, int64_t *ret_n,
                                  struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    const struct sim_event *e = sim_event(l->sim, event);
    int64_t n = 0;
    for (size_t i = 0; e && i < e->holds.n; i++)
        n += e->holds.v[i].row.status == HOLD_ACTIVE;
    if (status == HF_OK)
        *ret_n = n;
    return status;
}

/* ---- lists ---- */

enum hf_status ledger_holds_live(struct ledger *l, int64_t now,
                                 void (*hold)(void *ctx, const struct hold_row *row), void *ctx,
                                 struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t k = 0; status == HF_OK && k < l->sim->events.n; k++) {
        const struct sim_event *e = &l->sim->events.v[k];
        for (size_t i = 0; i < e->holds.n; i++)
            if (e->holds.v[i].row.status == HOLD_ACTIVE && e->holds.v[i].row.expires_at > now)
                hold(ctx, &e->holds.v[i].row);
    }
    return status;
}

enum hf_status ledger_holds_due(struct ledger *l, int64_t now, size_t limit, int64_t *ret_keys,
                                size_t *ret_n, struct hf_err *err)
{
    size_t n = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    for (size_t k = 0; k < l->sim->events.n; k++) {
        const struct sim_event *e = &l->sim->events.v[k];
        const struct hold_row *first = NULL;
        for (size_t i = 0; i < e->holds.n; i++) {
            const struct hold_row *row = &e->holds.v[i].row;
            bool is_due = row->status == HOLD_ACTIVE && row->expires_at <= now;
            if (is_due && (!first || row->expires_at < first->expires_at))
                first = row;
        }
        if (first && n < limit)
            ret_keys[n++] = first->id.key;
    }
    *ret_n = n;
    return HF_OK;
}

/* No simulated server lists events. */
enum hf_status ledger_events_list(struct ledger *l, const struct events_query *query,
                                  struct event_summary *ret, size_t *ret_n, struct hf_err *err)
{
    (void)l, (void)query, (void)ret, (void)ret_n;
    return hf_err_set(err, HF_INTERNAL, "the simulated ledger has no list of events");
}

enum hf_status ledger_event_count(struct ledger *l, int64_t event, struct event_counts *ret,
                                  struct hf_err *err)
{
    (void)l, (void)event, (void)ret;
    return hf_err_set(err, HF_INTERNAL, "the simulated ledger does not count events");
}

enum hf_status ledger_holds_list(struct ledger *l, const struct holds_query *query,
                                 int64_t *ret_keys, size_t *ret_n, struct hf_err *err)
{
    size_t n = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, query->event);
    for (size_t i = e ? e->holds.n : 0; i-- > 0 && n < query->limit;) {
        const struct hold_row *row = &e->holds.v[i].row;
        bool is_due = row->status == HOLD_ACTIVE && row->expires_at <= query->now;
        enum hold_status shown = is_due ? HOLD_EXPIRED : row->status;
        if ((!query->before || row->id.key < query->before) &&
            (query->status == HOLD_NONE || query->status == shown) &&
            (!query->owner || (row->owner && row->owner_len == query->owner_len &&
                               memcmp(row->owner, query->owner, query->owner_len) == 0)))
            ret_keys[n++] = row->id.key;
    }
    *ret_n = n;
    return HF_OK;
}

/* No test of this folder lists bookings. */
enum hf_status ledger_bookings_list(struct ledger *l, const struct bookings_query *query,
                                    struct booking_row *ret, size_t *ret_n, struct hf_err *err)
{
    (void)query, (void)ret;
    *ret_n = 0;
    return sim_enter(l, SIM_READ, err);
}

/* ---- the log ---- */

static struct audit_entry entry_of(const struct sim_ledger *sim, const struct audit_row *row)
{
    struct audit_entry entry = {.row = *row};
    const struct sim_hold *hold = row->hold ? sim_hold(sim, row->hold) : NULL;
    if (hold)
        memcpy(entry.hold_secret, hold->row.id.secret, ID_SECRET_SIZE);
    if (hold && row->booking)
        memcpy(entry.booking_secret, hold->booking.id.secret, ID_SECRET_SIZE);
    return entry;
}

static bool is_about_seat(const struct audit_row *row, int64_t seat)
{
    return row->object == AUDIT_SEAT && row->item == seat;
}

/* The real ledger follows the chain from its head: it must be the last row that the view knew. */
static void check_chain(const struct sim_event *e, const struct seat_chain *chain)
{
    int64_t head = 0;
    for (size_t i = 0; i < e->log.n && e->log.v[i].seq <= chain->seq; i++)
        if (is_about_seat(&e->log.v[i], chain->seat))
            head = e->log.v[i].seq;
    hf_check(head == chain->head);
}

enum hf_status ledger_audit_read(struct ledger *l, const struct audit_query *query,
                                 struct audit_entry *ret, size_t *ret_n, struct hf_err *err)
{
    size_t n = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, query->event);
    if (e && query->seat)
        check_chain(e, query->seat);
    for (size_t i = 0; e && i < e->log.n && n < query->limit; i++) {
        const struct audit_row *row = &e->log.v[i];
        if (row->seq > query->after && (!query->seat || is_about_seat(row, query->seat->seat)) &&
            (!query->hold || row->hold == query->hold))
            ret[n++] = entry_of(l->sim, row);
    }
    *ret_n = n;
    return HF_OK;
}

enum hf_status ledger_audit_seat(struct ledger *l, const struct seat_chain *chain, int64_t at,
                                 size_t limit, struct audit_entry *ret, size_t *ret_n,
                                 struct hf_err *err)
{
    size_t n = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, chain->event);
    if (e)
        check_chain(e, chain);
    for (size_t i = e ? e->log.n : 0; i-- > 0 && n < limit;)
        if (is_about_seat(&e->log.v[i], chain->seat) && e->log.v[i].at <= at)
            ret[n++] = entry_of(l->sim, &e->log.v[i]);
    *ret_n = n;
    return HF_OK;
}

enum hf_status ledger_audit_until(struct ledger *l, int64_t hold, int64_t at, int64_t *ret_until,
                                  struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, HOLD_EVENT(hold));
    *ret_until = 0;
    for (size_t i = 0; e && i < e->log.n; i++)
        if (e->log.v[i].object == AUDIT_HOLD && e->log.v[i].hold == hold && e->log.v[i].at <= at)
            *ret_until = e->log.v[i].until;
    return HF_OK;
}

/* Nothing is pruned here. */
enum hf_status ledger_log_knows(struct ledger *l, int64_t event, int64_t at, bool *ret,
                                struct hf_err *err)
{
    (void)event, (void)at;
    *ret = true;
    return sim_enter(l, SIM_READ, err);
}

enum hf_status ledger_log_later(struct ledger *l, int64_t event, int64_t at, int64_t *ret_seq,
                                struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, event);
    *ret_seq = 0;
    for (size_t i = 0; e && i < e->log.n && !*ret_seq; i++)
        *ret_seq = e->log.v[i].at <= at ? 0 : e->log.v[i].seq;
    return HF_OK;
}

enum hf_status ledger_log_page(struct ledger *l, int64_t event, int64_t *after, int64_t last,
                               int64_t entries, bool (*row)(void *ctx, const struct audit_row *row),
                               void *ctx, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    const struct sim_event *e = sim_event(l->sim, event);
    for (size_t i = 0; e && i < e->log.n && entries > 0; i++) {
        if (e->log.v[i].seq <= *after || e->log.v[i].seq > last)
            continue;
        *after = e->log.v[i].seq;
        hf_check(row(ctx, &e->log.v[i]));
        entries--;
    }
    return HF_OK;
}

/* ---- idempotency keys ---- */

enum hf_status ledger_keys_each(struct ledger *l, int64_t now,
                                void (*key)(void *ctx, const uint8_t *hash), void *ctx,
                                struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    for (size_t i = 0; status == HF_OK && i < l->sim->keys.n; i++)
        if (l->sim->keys.v[i].created_at > now - KEY_KEPT_MS)
            key(ctx, l->sim->keys.v[i].hash);
    return status;
}

enum hf_status ledger_keys_prune(struct ledger *l, int64_t now, size_t limit, int64_t *ret_pruned,
                                 struct hf_err *err)
{
    size_t kept = 0, pruned = 0;
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < l->sim->keys.n; i++) {
        struct key_row *row = &l->sim->keys.v[i];
        if (row->created_at <= now - KEY_KEPT_MS && pruned < limit) {
            key_row_close(row);
            pruned++;
        } else {
            l->sim->keys.v[kept++] = *row;
        }
    }
    l->sim->keys.n = kept;
    *ret_pruned = (int64_t)pruned;
    return HF_OK;
}
