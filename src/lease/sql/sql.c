/* The SQL driver: leases in a database, over src/db, for SQLite and PostgreSQL alike.  A lease is
 * one row and a place in the queue is one row; clock and sequence are the database's.  Most of what
 * differs between databases is behind db_options.shared.
 *
 * Every call that writes is one transaction for all its requests, and excludes other transactions
 * on their names: what it reads of those names holds until it commits.  Only the sweep excludes
 * nobody, and deletes only rows that ended long ago.  Rules are in state.c.  A handle
 * belongs to one thread at a time.  On a server it borrows one of a few connections for each call,
 * and one further connection serves all that wait (family.h); on a file it has a connection of its
 * own.  A connection that has failed, or whose file was replaced, is replaced before the next call
 * does anything: a new database does not know the old one's leases, and so reports them as lost.
 *
 * Where the exchange with the server is what a lease costs, an uncontended name is taken, renewed
 * and released by one statement each (one_statement.h); if that does nothing, a transaction
 * follows.
 *
 * Turns.  A release calls and wakes the first waiter, and a grant the next one if there is room
 * beside it: one each time, however many wait (turn.h).  All waiters look by themselves now and
 * then, too (wait.c). */
#include <stdlib.h>
#include <string.h>

#include "lease/sql/contention.h"
#include "lease/sql/link.h"
#include "lease/sql/one_statement.h"
#include "lease/sql/sql.h"
#include "lease/sql/sweep.h"
#include "lease/sql/turn.h"

/* ---- handles ---- */

void sql_close(struct lease *l)
{
    struct sql_lease *s = sql_of(l);
    sql_link_free(s->link);
    family_unref(s->family);
    free(s);
}

/* Takes over a reference to the family. */
static struct sql_lease *handle_new(struct sql_family *family)
{
    struct sql_lease *s = hf_alloc(sizeof *s);
    s->family = family;
    s->lease.wake_fd = -1;
    return s;
}

static enum hf_result connect_or_close(struct sql_lease *s, struct lease **ret,
                                       struct hf_fault *fault)
{
    struct hf_err err = {0};
    enum hf_status status = sql_enter(s, SQL_TO_TAKE, &err);
    sql_leave(s);
    if (status == HF_OK)
        *ret = &s->lease;
    else
        sql_close(&s->lease);
    return sql_result(status, &err, fault);
}

static enum hf_result open_with(const char *url, const struct lease_options *options,
                                bool has_server, struct lease **ret, struct hf_fault *fault)
{
    const struct db_options own = {
        .clock = options->clock, .timeout_ms = options->timeout_ms, .shared = true};
    return connect_or_close(handle_new(family_new(url, &own, has_server)), ret, fault);
}

enum hf_result sql_open(const char *url, const struct lease_options *options, struct lease **ret,
                        struct hf_fault *fault)
{
    return open_with(url, options, true, ret, fault);
}

enum hf_result sql_open_file(const char *url, const struct lease_options *options,
                             struct lease **ret, struct hf_fault *fault)
{
    return open_with(url, options, false, ret, fault);
}

/* Handles to a server share its connections, so a new one need not connect. */
enum hf_result sql_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    struct sql_lease *s = handle_new(family_ref(sql_of(l)->family));
    if (!s->family->has_server)
        return connect_or_close(s, ret, fault);
    *ret = &s->lease;
    return HF_DONE;
}

/* ---- acquire ---- */

/* Deletes the name's rows that have ended. */
static enum hf_status delete_ended(struct sql_lease *s, const struct lease_request *r, int64_t now,
                                   struct hf_err *err)
{
    if (s->link->state.expired) {
        const struct db_value args[] = {sql_key(r), db_int(now)};
        enum hf_status status = sql_exec(s, LS_DROP_EXPIRED, args, NULL, err);
        if (status != HF_OK)
            return status;
    }
    if (!s->link->state.silent)
        return HF_OK;
    const struct db_value args[] = {sql_key(r), db_int(now - WAITER_SILENT_MS)};
    return sql_exec(s, LS_DROP_SILENT, args, NULL, err);
}

/* Writes one row.  The transaction excludes all others on the name, so any other number of rows is
 * an error. */
static enum hf_status write_one(struct sql_lease *s, enum lease_sql_statement which,
                                const struct db_value *args, struct hf_err *err)
{
    struct db_stmt *stmt = s->link->stmts[which];
    return stmt->driver->expect_many(stmt, "a lease or a place was there already, or was not", args,
                                     1, err);
}

/* The time from which a new lease counts: see LEASE_CLOCK_BACK_MAX_MS. */
static int64_t not_before(const struct sql_lease *s, int64_t now)
{
    const int64_t times[] = {s->link->last_grant, s->link->state.last_write};
    int64_t latest = now;
    for (int i = 0; i < 2; i++)
        if (times[i] > latest && times[i] - now < LEASE_CLOCK_BACK_MAX_MS)
            latest = times[i];
    return latest;
}

/* See the comment about fences in statements.h. */
static int64_t next_fence(struct sql_lease *s, int64_t now)
{
    if (!s->link->db->driver->network)
        return s->link->db->driver->sharing.number(s->link->db);
    return now * 1000 + 999 > s->link->last_fence ? now * 1000 + 999 : s->link->last_fence + 1;
}

static enum hf_status grant(struct sql_lease *s, const struct lease_request *r,
                            const struct standing *st, int64_t now, struct lease_verdict *verdict,
                            struct hf_err *err)
{
    enum hf_mode mode = st->place ? st->place->mode : r->mode;
    unsigned slot = mode == HF_EXCLUSIVE ? name_state_free_slot(&s->link->state) : 0;
    int64_t fence = next_fence(s, now), from = not_before(s, now);
    const struct db_value args[] = {sql_key(r),
                                    sql_owner(r),
                                    db_int(fence),
                                    db_int(mode),
                                    db_int(r->slots),
                                    db_int(r->priority),
                                    db_int(from + r->ttl_ms),
                                    db_text(r->label, r->label_len),
                                    db_int(slot),
                                    db_int(from),
                                    db_int(from),
                                    db_int(now)};
    *verdict = (struct lease_verdict){
        .result = HF_DONE, .fence = fence, .remaining_ms = r->ttl_ms, .slot = slot};
    const struct db_value note[] = {sql_key(r), db_int(fence), db_int(from)};
    enum hf_status status;
    if ((status = write_one(s, LS_GRANT, args, err)) != HF_OK ||
        (status = write_one(s, LS_NOTE_FENCE, note, err)) != HF_OK)
        return status;
    if (!st->place)
        return turn_take_back(s, args, err);
    status = turn_call_next(s, args, st->place, r->slots, err);
    return status == HF_OK ? write_one(s, LS_LEAVE, args, err) : status;
}

static enum hf_status enqueue(struct sql_lease *s, const struct lease_request *r, int64_t now,
                              struct hf_err *err)
{
    int64_t ticket = s->link->db->driver->sharing.number(s->link->db);
    const struct db_value args[] = {sql_key(r),
                                    db_int(-(int64_t)r->priority),
                                    db_int(ticket),
                                    sql_owner(r),
                                    db_int(r->mode),
                                    db_int(r->slots),
                                    db_int(now),
                                    db_text(r->label, r->label_len),
                                    db_int(s->family->topic)};
    return write_one(s, LS_ENQUEUE, args, err);
}

/* The waiter has asked: its place is kept, and it counts again if it was passed over. */
static enum hf_status write_asked(struct sql_lease *s, const struct lease_request *r,
                                  const struct claim_row *place, int64_t now, struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(s->family->topic)};
    if (place->since)
        return sql_exec(s, LS_ASKED, args, NULL, err);
    return turn_is_seen_due(s, place, now) ? sql_exec(s, LS_SEEN, args, NULL, err) : HF_OK;
}

/* *at is the time, or 0 for the first request of a transaction. */
static enum hf_status acquire_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                  struct lease_verdict *verdict, struct hf_err *err)
{
    const struct db_value key = sql_key(r);
    enum hf_status status = sql_state_read(s, &key, NULL, at, err);
    if (status != HF_OK)
        return status;
    int64_t now = *at;
    if ((status = delete_ended(s, r, now, err)) != HF_OK)
        return status;
    struct standing st = name_state_judge(&s->link->state, r);
    contention_update(s, r, &st);
    if (st.slots && st.slots != r->slots) {
        struct hf_fault fault;
        lease_slots_differ(r->slots, st.slots, &fault);
        return hf_err_set(err, HF_INVALID_REQUEST, "%s", fault.msg);
    }
    if (st.lease) {
        *verdict = (struct lease_verdict){.result = HF_DONE,
                                          .fence = st.lease->number,
                                          .remaining_ms = st.lease->until - now,
                                          .slot = st.lease->slot};
        return HF_OK;
    }
    if (st.free)
        return grant(s, r, &st, now, verdict, err);
    *verdict = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1};
    if (st.first_end != INT64_MAX)
        verdict->remaining_ms = st.first_end - now;
    if (st.place || r->queue)
        verdict->position = st.ahead + 1;
    if ((status = turn_call_first(s, &key, err)) != HF_OK)
        return status;
    if (!st.place && r->queue)
        return enqueue(s, r, now, err);
    return st.place ? write_asked(s, r, st.place, now, err) : HF_OK;
}

/* For a waiter far back in a long queue: only counts the waiters before it, without a transaction
 * that others would wait for.  *ret_done is false if the request has to be asked as usual. */
static enum hf_status acquire_from_behind(struct sql_lease *s, const struct lease_request *r,
                                          struct lease_verdict *verdict, bool *ret_done,
                                          struct hf_err *err)
{
    struct place_count place;
    enum hf_status status = contention_count(s, r, &place, err);
    if (status != HF_OK)
        return status;
    *ret_done = place.found && place.ahead >= (int64_t)r->slots;
    if (!*ret_done)
        return HF_OK;
    *verdict = (struct lease_verdict){
        .result = HF_TAKEN, .remaining_ms = -1, .position = (size_t)place.ahead + 1};
    return place.now - place.seen_at >= TURN_SEEN_EVERY_MS ? turn_keep_place(s, r, err) : HF_OK;
}

/* The ways that spare the database a transaction. */
static enum hf_status acquire_cheaply(struct sql_lease *s, const struct lease_request *r,
                                      struct lease_verdict *verdict, bool *ret_done,
                                      struct hf_err *err)
{
    *ret_done = false;
    if (r->queue && r->mode == HF_EXCLUSIVE && contention_is_long_queue(s, r))
        return acquire_from_behind(s, r, verdict, ret_done, err);
    if (contention_is_known(s, r))
        return HF_OK;
    return one_statement_try(s, one_statement_acquire, r, 1, verdict, ret_done, err);
}

enum hf_result sql_acquire(struct lease *l, const struct lease_request *r,
                           struct lease_verdict *verdict, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    bool done = false;
    if (contention_is_counted(s, r)) {
        *verdict = (struct lease_verdict){
            .result = HF_TAKEN, .remaining_ms = -1, .position = s->contended_ahead + 1};
        return HF_DONE;
    }
    enum hf_status status = sql_enter(s, SQL_TO_TAKE, &err);
    if (status == HF_OK)
        status = acquire_cheaply(s, r, verdict, &done, &err);
    if (status == HF_OK && !done)
        status = sql_in_one_transaction(s, acquire_one, r, 1, verdict, &err);
    if (status == HF_OK)
        sql_sweep(s, verdict);
    sql_leave(s);
    return sql_result(status, &err, fault);
}
