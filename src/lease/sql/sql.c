/* The SQL driver: leases in a database, over src/db, for SQLite and PostgreSQL alike.  A lease is
 * one row and a place in the queue is one row; clock and sequence are the database's.  What differs
 * between databases is behind db_options.shared.
 *
 * Every call that writes is one transaction for all its requests, and excludes other transactions
 * on their names: what it reads of those names holds until it commits.  Only the sweep excludes
 * nobody, and deletes only rows that ended long ago.  Rules are in state.c.  A handle is a
 * connection and belongs to one thread at a time.  A connection that has failed, or whose file was
 * replaced, is replaced before the next call does anything: a new database does not know the old
 * one's leases, and so reports them as lost.
 *
 * Where the exchange with the server is what a lease costs, an uncontended name is taken, renewed
 * and released by one statement each (one_statement.h); if that does nothing, a transaction
 * follows.
 *
 * Waking.  A release wakes the first waiter, and a grant wakes the next one if there is room beside
 * it: one each time, however many wait.  All waiters look by themselves now and then, too. */
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "lease/sql/contention.h"
#include "lease/sql/link.h"
#include "lease/sql/one_statement.h"
#include "lease/sql/sql.h"

/* A waiter writes that it still waits this often: the place survives three lost chances, and
 * waiting costs the disk next to nothing. */
#define SEEN_EVERY_MS (WAITER_SILENT_MS / 4)
/* A test's clock moves without waking anybody: waiters look at it this often. */
#define FAKE_CLOCK_SLEEP_MS 2
/* Each handle deletes the rows of names that are not used any more this often, */
#define SWEEP_EVERY_MS 60000
/* if they ended longer ago than any transaction lasts that may have read them. */
#define SWEEP_AFTER_MS 30000
/* One grant in SWEEP_FENCES_EVERY deletes old entries from the next SWEEP_FENCES_SLICE entries of
 * lease_fences, in the order of names: a grant pays for four entries, however many there are. */
#define SWEEP_FENCES_EVERY 16
#define SWEEP_FENCES_SLICE 64

/* ---- handles ---- */

void sql_close(struct lease *l)
{
    struct sql_lease *s = sql_of(l);
    sql_disconnect(s);
    vec_close(&s->wakes);
    vec_close(&s->names);
    name_state_close(&s->state);
    free(s->url);
    free(s);
}

static enum hf_result open_with(const char *url, const struct db_options *options,
                                struct lease **ret, struct hf_fault *fault)
{
    struct hf_err err = {0};
    struct sql_lease *s = hf_alloc(sizeof *s);
    s->url = hf_strndup(url, strlen(url));
    s->options = *options;
    enum hf_status status = sql_connect(s, &err);
    if (status != HF_OK) {
        sql_close(&s->lease);
        return sql_result(status, &err, fault);
    }
    *ret = &s->lease;
    return HF_DONE;
}

enum hf_result sql_open(const char *url, const struct lease_options *options, struct lease **ret,
                        struct hf_fault *fault)
{
    const struct db_options own = {
        .clock = options->clock, .timeout_ms = options->timeout_ms, .shared = true};
    return open_with(url, &own, ret, fault);
}

enum hf_result sql_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    const struct sql_lease *s = sql_of(l);
    return open_with(s->url, &s->options, ret, fault);
}

/* ---- acquire ---- */

/* Deletes the name's rows that have ended. */
static enum hf_status delete_ended(struct sql_lease *s, const struct lease_request *r, int64_t now,
                                   struct hf_err *err)
{
    if (s->state.expired) {
        const struct db_value args[] = {sql_key(r), db_int(now)};
        enum hf_status status = sql_exec(s, LS_DROP_EXPIRED, args, NULL, err);
        if (status != HF_OK)
            return status;
    }
    if (!s->state.silent)
        return HF_OK;
    const struct db_value args[] = {sql_key(r), db_int(now - WAITER_SILENT_MS)};
    return sql_exec(s, LS_DROP_SILENT, args, NULL, err);
}

/* Writes one row.  The transaction excludes all others on the name, so any other number of rows is
 * an error. */
static enum hf_status write_one(struct sql_lease *s, enum lease_sql_statement which,
                                const struct db_value *args, struct hf_err *err)
{
    struct db_stmt *stmt = s->stmts[which];
    return stmt->driver->expect_many(stmt, "a lease or a place was there already, or was not", args,
                                     1, err);
}

/* Sends the question which waiter is first in the queue. */
static enum hf_status head_query(struct sql_lease *s, const struct db_value *name,
                                 struct hf_err *err)
{
    s->head[0] = *name;
    s->head[1] = db_int(WAITER_SILENT_MS);
    return db_query(s->stmts[LS_HEAD], s->head, err);
}

/* Reads the answer: that waiter is woken after the commit. */
static enum hf_status head_read(struct sql_lease *s, struct hf_err *err)
{
    enum db_step step;
    while ((step = db_step(s->stmts[LS_HEAD], err)) == DB_ROW)
        *vec_push(&s->wakes) = db_column_int(s->stmts[LS_HEAD], 0);
    return step == DB_FAILED ? err->code : HF_OK;
}

/* A waiter was granted: wakes the next one after the commit if it can be granted as well. */
static void wake_next(struct sql_lease *s, const struct claim_row *granted, unsigned slots)
{
    const struct claim_row *next = granted + 1;
    if (next == s->state.waiters.v + s->state.waiters.n || next->mode != granted->mode)
        return;
    if (granted->mode == HF_SHARED || s->state.holders.n + 1 < slots)
        *vec_push(&s->wakes) = next->number;
}

static enum hf_status grant(struct sql_lease *s, const struct lease_request *r,
                            const struct standing *st, int64_t now, struct lease_verdict *verdict,
                            struct hf_err *err)
{
    enum hf_mode mode = st->place ? st->place->mode : r->mode;
    int64_t fence = s->db->driver->number(s->db);
    const struct db_value args[] = {sql_key(r),
                                    sql_owner(r),
                                    db_int(fence),
                                    db_int(mode),
                                    db_int(r->slots),
                                    db_int(r->priority),
                                    db_int(now + r->ttl_ms),
                                    db_text(r->label, r->label_len)};
    *verdict = (struct lease_verdict){.result = HF_DONE, .fence = fence, .remaining_ms = r->ttl_ms};
    const struct db_value note[] = {sql_key(r), db_int(fence), db_int(now)};
    enum hf_status status;
    if ((status = write_one(s, LS_GRANT, args, err)) != HF_OK ||
        (status = write_one(s, LS_NOTE_FENCE, note, err)) != HF_OK || !st->place)
        return status;
    wake_next(s, st->place, r->slots);
    return write_one(s, LS_LEAVE, args, err);
}

static enum hf_status enqueue(struct sql_lease *s, const struct lease_request *r, int64_t now,
                              struct hf_err *err)
{
    int64_t ticket = s->db->driver->number(s->db);
    const struct db_value args[] = {sql_key(r),      db_int(-(int64_t)r->priority),
                                    db_int(ticket),  sql_owner(r),
                                    db_int(r->mode), db_int(r->slots),
                                    db_int(now),     db_text(r->label, r->label_len)};
    return write_one(s, LS_ENQUEUE, args, err);
}

/* Writes that the waiter still waits. */
static enum hf_status write_seen(struct sql_lease *s, const struct lease_request *r,
                                 struct hf_err *err)
{
    return sql_exec(s, LS_SEEN, (struct db_value[]){sql_key(r), sql_owner(r)}, NULL, err);
}

static bool is_seen_due(const struct claim_row *place, int64_t now)
{
    return place->until - now <= WAITER_SILENT_MS - SEEN_EVERY_MS;
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
    struct standing st = name_state_judge(&s->state, r);
    contention_update(s, r, &st);
    if (st.slots && st.slots != r->slots) {
        struct hf_fault fault;
        lease_slots_differ(r->slots, st.slots, &fault);
        return hf_err_set(err, HF_INVALID_REQUEST, "%s", fault.msg);
    }
    if (st.lease) {
        *verdict = (struct lease_verdict){
            .result = HF_DONE, .fence = st.lease->number, .remaining_ms = st.lease->until - now};
        return HF_OK;
    }
    if (st.free)
        return grant(s, r, &st, now, verdict, err);
    *verdict = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1};
    if (st.first_end != INT64_MAX)
        verdict->remaining_ms = st.first_end - now;
    if (st.place || r->queue)
        verdict->position = st.ahead + 1;
    if (!st.place && r->queue)
        return enqueue(s, r, now, err);
    return st.place && is_seen_due(st.place, now) ? write_seen(s, r, err) : HF_OK;
}

typedef enum hf_status each_request(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                    struct lease_verdict *verdict, struct hf_err *err);

static enum hf_status in_one_transaction(struct sql_lease *s, each_request *each,
                                         const struct lease_request *requests, size_t n,
                                         struct lease_verdict *verdicts, struct hf_err *err)
{
    int64_t now = 0;
    vec_clear(&s->names);
    for (size_t i = 0; i < n; i++)
        *vec_push(&s->names) = sql_key(&requests[i]);
    enum hf_status status = sql_begin(s, s->names.v, n, err);
    for (size_t i = 0; i < n && status == HF_OK; i++)
        status = each(s, &requests[i], &now, &verdicts[i], err);
    return sql_end(s, status, err);
}

/* Serves a single request by one statement where the database has that. */
static enum hf_status try_one_statement(struct sql_lease *s, one_statement *call,
                                        const struct lease_request *requests, size_t n,
                                        struct lease_verdict *verdicts, bool *ret_done,
                                        struct hf_err *err)
{
    *ret_done = false;
    if (n != 1)
        return HF_OK;
    enum hf_status status = sql_connected(s, err);
    if (status != HF_OK || !s->db->driver->run_locked)
        return status;
    return call(s, requests, verdicts, ret_done, err);
}

/* Deletes old entries from the next slice of lease_fences.  The handle remembers where the slice
 * ends; behind the last entry it begins again with the first. */
static void sweep_fences(struct sql_lease *s, struct hf_err *err)
{
    static const char beyond[] = "\xff"; /* no name is UTF-8 and greater */
    const struct db_value after = db_bytes(s->fences_after, s->fences_after_len);
    const struct db_value where[] = {after, db_int(SWEEP_FENCES_SLICE - 1)};
    struct db_stmt *stmt = s->stmts[LS_FENCES_SLICE];
    char last[LEASE_NAME_MAX];
    size_t last_len = 0;
    if (db_query(stmt, where, err) != HF_OK)
        return;
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW) {
        size_t len;
        const void *name = db_column_data(stmt, 0, &len);
        last_len = len <= sizeof last ? len : 0;
        memcpy(last, name, last_len);
    }
    if (step == DB_FAILED)
        return;
    const struct db_value args[] = {
        after, last_len ? db_bytes(last, last_len) : db_bytes(beyond, sizeof beyond - 1),
        db_int(LEASE_FENCE_KEPT_MS)};
    (void)!sql_exec(s, LS_SWEEP_FENCES, args, NULL, err);
    memcpy(s->fences_after, last, last_len);
    s->fences_after_len = last_len;
}

/* Each statement is its own transaction and excludes nobody, so a handle that stops in the middle
 * blocks no name.  The call before has succeeded; if the sweep fails, the next call reports it. */
static void sweep(struct sql_lease *s, const struct lease_verdict *verdict)
{
    int64_t now_ms = clock_boot_us(s->options.clock) / 1000;
    struct hf_err err = {0};
    if (verdict->result == HF_DONE && verdict->fence % SWEEP_FENCES_EVERY == 0)
        sweep_fences(s, &err);
    if (s->swept_at_ms && now_ms - s->swept_at_ms < SWEEP_EVERY_MS)
        return;
    s->swept_at_ms = now_ms;
    const struct db_value expired = db_int(SWEEP_AFTER_MS),
                          silent = db_int(SWEEP_AFTER_MS + WAITER_SILENT_MS);
    if (sql_exec(s, LS_SWEEP_EXPIRED, &expired, NULL, &err) == HF_OK)
        (void)!sql_exec(s, LS_SWEEP_SILENT, &silent, NULL, &err);
}

/* write_seen in a transaction of its own. */
static enum hf_status keep_place(struct sql_lease *s, const struct lease_request *r,
                                 struct hf_err *err)
{
    const struct db_value key = sql_key(r);
    enum hf_status status = sql_begin(s, &key, 1, err);
    if (status == HF_OK)
        status = write_seen(s, r, err);
    return sql_end(s, status, err);
}

/* A waiter's place as AHEAD counts it. */
struct place_count {
    bool found;
    int64_t seen_at, now, ahead;
};

static enum hf_status place_count_read(struct sql_lease *s, const struct lease_request *r,
                                       struct place_count *ret, struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(WAITER_SILENT_MS)};
    enum hf_status status;
    if ((status = sql_connected(s, err)) != HF_OK ||
        (status = db_query(s->stmts[LS_AHEAD], args, err)) != HF_OK)
        return status;
    struct db_stmt *stmt = s->stmts[LS_AHEAD];
    enum db_step step = db_step(stmt, err);
    *ret = (struct place_count){.found = step == DB_ROW};
    if (ret->found) {
        ret->seen_at = db_column_int(stmt, 0);
        ret->now = db_column_int(stmt, 1);
        ret->ahead = db_column_int(stmt, 2);
    }
    stmt->driver->finish(stmt);
    return step == DB_FAILED ? err->code : HF_OK;
}

/* For a waiter far back in a long queue: only counts the waiters before it, without a transaction
 * that others would wait for.  *ret_done is false if the request has to be asked as usual. */
static enum hf_status acquire_from_behind(struct sql_lease *s, const struct lease_request *r,
                                          struct lease_verdict *verdict, bool *ret_done,
                                          struct hf_err *err)
{
    struct place_count place;
    enum hf_status status = place_count_read(s, r, &place, err);
    if (status != HF_OK)
        return status;
    if (place.found)
        s->contended_ahead = (size_t)place.ahead;
    *ret_done = place.found && place.ahead >= (int64_t)r->slots;
    if (!*ret_done)
        return HF_OK;
    *verdict = (struct lease_verdict){
        .result = HF_TAKEN, .remaining_ms = -1, .position = (size_t)place.ahead + 1};
    return place.now - place.seen_at >= SEEN_EVERY_MS ? keep_place(s, r, err) : HF_OK;
}

/* The ways that spare the database a transaction. */
static enum hf_status acquire_cheaply(struct sql_lease *s, const struct lease_request *requests,
                                      size_t n, struct lease_verdict *verdicts, bool *ret_done,
                                      struct hf_err *err)
{
    *ret_done = false;
    if (n != 1)
        return HF_OK;
    if (requests->queue && requests->mode == HF_EXCLUSIVE && contention_is_long_queue(s, requests))
        return acquire_from_behind(s, requests, verdicts, ret_done, err);
    if (contention_is_known(s, requests))
        return HF_OK;
    return try_one_statement(s, one_statement_acquire, requests, n, verdicts, ret_done, err);
}

enum hf_result sql_acquire(struct lease *l, const struct lease_request *requests, size_t n,
                           struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    bool done;
    enum hf_status status = acquire_cheaply(s, requests, n, verdicts, &done, &err);
    if (status == HF_OK && !done)
        status = in_one_transaction(s, acquire_one, requests, n, verdicts, &err);
    if (status == HF_OK && n)
        sweep(s, verdicts);
    return sql_result(status, &err, fault);
}

/* ---- renew, release, break ---- */

static enum hf_status renew_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                struct lease_verdict *verdict, struct hf_err *err)
{
    (void)at;
    struct db_stmt *stmt = s->stmts[LS_RENEW];
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(r->ttl_ms)};
    enum hf_status status = db_query(stmt, args, err);
    if (status != HF_OK)
        return status;
    *verdict = (struct lease_verdict){.result = HF_LOST};
    enum db_step step;
    while ((step = db_step(stmt, err)) == DB_ROW)
        *verdict = (struct lease_verdict){
            .result = HF_DONE, .fence = db_column_int(stmt, 0), .remaining_ms = r->ttl_ms};
    return step == DB_FAILED ? err->code : HF_OK;
}

/* The question which waiter to wake is sent first, and its answer read once it is known that
 * something was released: a server then answers both in one exchange.  (A RETURNING would make a
 * release on SQLite half as slow again.) */
static enum hf_status release_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                  struct lease_verdict *verdict, struct hf_err *err)
{
    (void)at;
    const struct db_value args[] = {sql_key(r), sql_owner(r)};
    int64_t n_released = 0;
    enum hf_status status;
    if ((status = head_query(s, args, err)) != HF_OK ||
        (status = sql_exec(s, LS_RELEASE, args, &n_released, err)) != HF_OK)
        return status;
    if (!n_released) {
        status = sql_exec(s, LS_LEAVE, args, &n_released, err);
        if (status == HF_OK && n_released)
            status = head_query(s, args, err); /* the first may have been this one */
        if (status != HF_OK)
            return status;
    }
    *verdict = (struct lease_verdict){.result = n_released ? HF_DONE : HF_LOST};
    return n_released ? head_read(s, err) : HF_OK;
}

static enum hf_result by_statement_or_transaction(struct sql_lease *s, one_statement *call,
                                                  each_request *each,
                                                  const struct lease_request *requests, size_t n,
                                                  struct lease_verdict *verdicts,
                                                  struct hf_fault *fault)
{
    struct hf_err err = {0};
    bool done;
    enum hf_status status = try_one_statement(s, call, requests, n, verdicts, &done, &err);
    if (status == HF_OK && !done)
        status = in_one_transaction(s, each, requests, n, verdicts, &err);
    return sql_result(status, &err, fault);
}

enum hf_result sql_renew(struct lease *l, const struct lease_request *requests, size_t n,
                         struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return by_statement_or_transaction(sql_of(l), one_statement_renew, renew_one, requests, n,
                                       verdicts, fault);
}

enum hf_result sql_release(struct lease *l, const struct lease_request *requests, size_t n,
                           struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return by_statement_or_transaction(sql_of(l), one_statement_release, release_one, requests, n,
                                       verdicts, fault);
}

static enum hf_status break_one(struct sql_lease *s, const struct db_value *name,
                                struct hf_err *err)
{
    enum hf_status status;
    if ((status = sql_exec(s, LS_BREAK, name, NULL, err)) != HF_OK ||
        (status = head_query(s, name, err)) != HF_OK)
        return status;
    return head_read(s, err);
}

enum hf_result sql_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    const struct db_value name = db_bytes(key, key_len);
    enum hf_status status = sql_begin(s, &name, 1, &err);
    if (status == HF_OK)
        status = break_one(s, &name, &err);
    return sql_result(sql_end(s, status, &err), &err, fault);
}

/* ---- waiting ---- */

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* How long to sleep at most although nothing is committed: until a lease or a place before ours
 * ends, or until it is time to write that we still wait. */
static int64_t sleep_length_ms(const struct sql_lease *s, const struct standing *st, int64_t now)
{
    int64_t ms = st->next_end == INT64_MAX ? LEASE_WAIT_MAX_MS : st->next_end - now;
    if (st->place)
        ms = at_most(ms, st->place->until - (WAITER_SILENT_MS - SEEN_EVERY_MS) - now);
    if (!clock_is_real(s->options.clock))
        ms = at_most(ms, FAKE_CLOCK_SLEEP_MS);
    return at_least(ms, 1);
}

/* Reads how the waiter stands, outside a transaction: the holders, and the waiters up to `last`
 * (NULL: all).  Keeps its place. */
static enum hf_status look_and_keep(struct sql_lease *s, const struct lease_request *r,
                                    const struct claim_row *last, struct standing *ret,
                                    int64_t *ret_now, struct hf_err *err)
{
    const struct db_value key = sql_key(r);
    enum hf_status status;
    *ret_now = 0;
    if ((status = sql_connected(s, err)) != HF_OK ||
        (status = sql_state_read(s, &key, last, ret_now, err)) != HF_OK)
        return status;
    *ret = name_state_judge(&s->state, r);
    return ret->place && is_seen_due(ret->place, *ret_now) ? keep_place(s, r, err) : HF_OK;
}

/* Reads only the waiters before its own, and writes nothing but, now and then, that it still waits.
 * When its turn has come it returns, and the acquire that follows does the writing. */
enum hf_result sql_wait(struct lease *l, const struct lease_request *r, int64_t timeout_ms,
                        struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    int64_t began_us = wait_now_us(), now;
    struct claim_row own, *last = NULL;
    for (;;) {
        struct standing st;
        enum hf_status status = look_and_keep(s, r, last, &st, &now, &err);
        if (status != HF_OK)
            return sql_result(status, &err, fault);
        int64_t left_ms = timeout_ms - (wait_now_us() - began_us) / 1000;
        bool has_lost_place = !st.place && r->queue;
        if (st.lease || st.free || has_lost_place || left_ms <= 0 || lease_is_woken(l))
            return HF_DONE;
        if (st.place) {
            own = *st.place;
            last = &own;
        }
        status = s->db->driver->await(s->db, st.place ? own.number : 0, l->wake_fd,
                                      at_most(sleep_length_ms(s, &st, now), left_ms), &err);
        if (status != HF_OK)
            return sql_result(status, &err, fault);
        if (lease_is_woken(l))
            return HF_DONE;
    }
}
