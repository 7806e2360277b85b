/* sqlite, postgres: leases in an SQL database, over src/db: a row a lease, a row a place in the
 * queue, the database's clock and its durable sequence.  The same source serves every database that
 * db.h opens; what differs between them is behind db_options.shared.
 *
 * Every call that writes is one transaction for all its requests, and a transaction is alone on
 * their names: what is read of them in it holds until it commits.  Only the sweep is not, and keeps
 * to rows that nobody can still take for living.  Judging is sql_state.c's.  A handle is a
 * connection and belongs to one thread at a time; only `url` and the options may be read by others
 * (another).  A connection that leads nowhere is replaced before the next call does anything: a new
 * database knows nothing of the old one's leases, and so says that they are lost.
 *
 * Where an exchange with the server is what a lease costs (db_driver.run_locked), a name that
 * nobody else is near is taken, renewed and given back by one statement each; whenever that does
 * nothing, what is to be done is found out as everywhere.
 *
 * Waking.  Who gives something up wakes the first in the queue, and who is granted wakes the one
 * behind if there is room beside: one each time, however many wait.  All look by themselves too. */
#include <stdlib.h>
#include <string.h>

#include "lease/sql_link.h"

#define TTL_MIN_MS 100
#define TTL_MAX_MS (INT64_C(7) * 86400000)
#define TIMEOUT_MS 2000
#define WAIT_MAX_MS 3600000
/* A place is asked for again after this: often enough to survive three lost chances, and seldom
 * enough that waiting costs the disk nothing. */
#define SEEN_EVERY_MS (WAITER_SILENT_MS / 4)
#define FAKE_MAX_MS 2
/* Rows of names that nobody asks for any more: looked for so often by each handle. */
#define SWEEP_EVERY_MS 60000
/* Dead for so long: longer than a transaction lasts that read them before. */
#define SWEEP_AFTER_MS 30000

extern const struct lease_driver lease_sqlite, lease_postgres;

static struct sql_lease *sql_of(struct lease *l) { return (struct sql_lease *)(void *)l; }

/* ---- handles ---- */

static void sql_close(struct lease *l)
{
    if (!l)
        return;
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
    s->lease.driver = lease_driver_for(url);
    s->url = hf_strndup(url, strlen(url));
    s->options = *options;
    enum hf_status status = sql_connect(s, &err);
    if (status != HF_OK) {
        sql_close(&s->lease);
        return sql_tell(status, &err, fault);
    }
    *ret = &s->lease;
    return HF_DONE;
}

static enum hf_result sql_open(const char *url, const struct lease_options *options,
                               struct lease **ret, struct hf_fault *fault)
{
    const struct db_options own = {
        .clock = options && options->clock ? options->clock : &clock_system,
        .timeout_ms = options && options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS,
        .shared = true,
    };
    return open_with(url, &own, ret, fault);
}

static enum hf_result sql_another(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    const struct sql_lease *s = sql_of(l);
    return open_with(s->url, &s->options, ret, fault);
}

/* Outside a transaction. */
static enum hf_status look(struct sql_lease *s, const struct db_value *name,
                           const struct claim_row *last, int64_t *ret_now, struct hf_err *err)
{
    enum hf_status status = sql_connected(s, err);
    *ret_now = 0;
    return status == HF_OK ? sql_state_read(s, name, last, ret_now, err) : status;
}

/* ---- acquire ---- */

static enum hf_status drop_dead(struct sql_lease *s, const struct lease_request *r, int64_t now,
                                struct hf_err *err)
{
    enum hf_status status = HF_OK;
    if (s->state.expired)
        status =
            sql_exec(s, LS_DROP_EXPIRED, (struct db_value[]){sql_key(r), db_int(now)}, NULL, err);
    if (status == HF_OK && s->state.silent)
        status =
            sql_exec(s, LS_DROP_SILENT,
                     (struct db_value[]){sql_key(r), db_int(now - WAITER_SILENT_MS)}, NULL, err);
    return status;
}

/* Another number of rows than one is a surprise: the transaction is alone on the name. */
static enum hf_status write_one(struct sql_lease *s, enum lease_sql_statement which,
                                const struct db_value *args, struct hf_err *err)
{
    struct db_stmt *stmt = s->stmts[which];
    return stmt->driver->expect_many(stmt, "a lease or a place was there already, or was not", args,
                                     1, err);
}

/* The first in the queue is to be woken when this transaction is done: asked for, and read. */
static enum hf_status head_ask(struct sql_lease *s, const struct db_value *name, struct hf_err *err)
{
    s->head[0] = *name;
    s->head[1] = db_int(WAITER_SILENT_MS);
    return db_query(s->stmts[LS_HEAD], s->head, err);
}

static enum hf_status head_wake(struct sql_lease *s, struct hf_err *err)
{
    enum db_step step;
    while ((step = db_step(s->stmts[LS_HEAD], err)) == DB_ROW)
        *vec_push(&s->wakes) = db_column_int(s->stmts[LS_HEAD], 0);
    return step == DB_FAILED ? err->code : HF_OK;
}

/* Granted from the queue: the one behind, if it can be granted beside. */
static void wake_behind(struct sql_lease *s, const struct claim_row *place, unsigned slots)
{
    const struct claim_row *behind = place + 1;
    if (behind == s->state.waiters.v + s->state.waiters.n || behind->mode != place->mode)
        return;
    if (place->mode == HF_SHARED || s->state.holders.n + 1 < slots)
        *vec_push(&s->wakes) = behind->number;
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
    enum hf_status status = write_one(s, LS_GRANT, args, err);
    if (status == HF_OK && st->place) {
        wake_behind(s, st->place, r->slots);
        status = write_one(s, LS_LEAVE, args, err);
    }
    *verdict = (struct lease_verdict){.result = HF_DONE, .fence = fence, .remaining_ms = r->ttl_ms};
    return status;
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

static enum hf_status seen(struct sql_lease *s, const struct lease_request *r, struct hf_err *err)
{
    return sql_exec(s, LS_SEEN, (struct db_value[]){sql_key(r), sql_owner(r)}, NULL, err);
}

static bool is_seen_long_ago(const struct claim_row *place, int64_t now)
{
    return place->until - now <= WAITER_SILENT_MS - SEEN_EVERY_MS;
}

/* *at is the time, or 0 before the first of a transaction. */
static enum hf_status acquire_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                  struct lease_verdict *verdict, struct hf_err *err)
{
    const struct db_value key = sql_key(r);
    enum hf_status status = sql_state_read(s, &key, NULL, at, err);
    int64_t now = *at;
    if (status == HF_OK)
        status = drop_dead(s, r, now, err);
    if (status != HF_OK)
        return status;
    struct standing st = name_state_judge(&s->state, r);
    sql_crowd_look(s, r, &st);
    if (st.slots && st.slots != r->slots)
        return hf_err_set(err, HF_INVALID_REQUEST, "%u slots asked for, but others say %u",
                          r->slots, st.slots);
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
    return st.place && is_seen_long_ago(st.place, now) ? seen(s, r, err) : HF_OK;
}

typedef enum hf_status in_one_exchange(struct sql_lease *s, const struct lease_request *r,
                                       struct lease_verdict *verdict, bool *ret_done,
                                       struct hf_err *err);

/* *ret_done false: nothing was done, and the way is the longer one. */
static enum hf_status shortly(struct sql_lease *s, in_one_exchange *call,
                              const struct lease_request *requests, size_t n,
                              struct lease_verdict *verdicts, bool *ret_done, struct hf_err *err)
{
    *ret_done = false;
    if (n != 1)
        return HF_OK;
    enum hf_status status = sql_connected(s, err);
    return status == HF_OK && s->db->driver->run_locked ? call(s, requests, verdicts, ret_done, err)
                                                        : status;
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

/* A transaction each, and of no name: who stops in the middle has nothing locked.  A failure is the
 * next call's to tell: what was asked for is done. */
static void sweep(struct sql_lease *s)
{
    int64_t now = clock_boot_us(s->options.clock) / 1000;
    struct hf_err err = {0};
    if (s->swept_at && now - s->swept_at < SWEEP_EVERY_MS)
        return;
    s->swept_at = now;
    const struct db_value expired = db_int(SWEEP_AFTER_MS),
                          silent = db_int(SWEEP_AFTER_MS + WAITER_SILENT_MS);
    if (sql_exec(s, LS_SWEEP_EXPIRED, &expired, NULL, &err) == HF_OK)
        (void)!sql_exec(s, LS_SWEEP_SILENT, &silent, NULL, &err);
}

static enum hf_status keep_place(struct sql_lease *s, const struct lease_request *r,
                                 struct hf_err *err)
{
    const struct db_value key = sql_key(r);
    enum hf_status status = sql_begin(s, &key, 1, err);
    if (status == HF_OK)
        status = seen(s, r, err);
    return sql_end(s, status, err);
}

/* Of a place behind more than can be served at once: its number, counted without a transaction that
 * everybody else would wait for, nor a look at those behind.  *ret_done false: ask as always. */
static enum hf_status stand_in_line(struct sql_lease *s, const struct lease_request *r,
                                    struct lease_verdict *verdict, bool *ret_done,
                                    struct hf_err *err)
{
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(WAITER_SILENT_MS)};
    int64_t seen_at = 0, now = 0, ahead = 0;
    enum db_step step = DB_DONE;
    enum hf_status status = sql_connected(s, err);
    if (status == HF_OK)
        status = db_query(s->stmts[LS_AHEAD], args, err);
    if (status == HF_OK && (step = db_step(s->stmts[LS_AHEAD], err)) == DB_ROW) {
        seen_at = db_column_int(s->stmts[LS_AHEAD], 0);
        now = db_column_int(s->stmts[LS_AHEAD], 1);
        ahead = db_column_int(s->stmts[LS_AHEAD], 2);
        s->crowd_ahead = (size_t)ahead;
    }
    if (status == HF_OK)
        s->stmts[LS_AHEAD]->driver->finish(s->stmts[LS_AHEAD]);
    if (status != HF_OK || step == DB_FAILED)
        return status != HF_OK ? status : err->code;
    *ret_done = step == DB_ROW && ahead >= (int64_t)r->slots;
    if (!*ret_done)
        return HF_OK;
    *verdict = (struct lease_verdict){
        .result = HF_TAKEN, .remaining_ms = -1, .position = (size_t)ahead + 1};
    return now - seen_at >= SEEN_EVERY_MS ? keep_place(s, r, err) : HF_OK;
}

static enum hf_result sql_acquire(struct lease *l, const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    bool done = false;
    enum hf_status status = HF_OK;
    enum hf_result result = lease_check(&l->driver->info, requests, n, fault);
    if (result != HF_DONE)
        return result;
    if (n == 1 && requests->queue && requests->mode == HF_EXCLUSIVE &&
        sql_is_long_line(s, requests))
        status = stand_in_line(s, requests, verdicts, &done, &err);
    else if (n == 1 && !sql_is_crowded(s, requests))
        status = shortly(s, sql_take, requests, n, verdicts, &done, &err);
    if (status == HF_OK && !done)
        status = in_one_transaction(s, acquire_one, requests, n, verdicts, &err);
    if (status == HF_OK && n)
        sweep(s);
    return sql_tell(status, &err, fault);
}

/* ---- renew, release, break ---- */

static enum hf_status renew_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                struct lease_verdict *verdict, struct hf_err *err)
{
    (void)at;
    struct db_stmt *stmt = s->stmts[LS_RENEW];
    const struct db_value args[] = {sql_key(r), sql_owner(r), db_int(r->ttl_ms)};
    enum hf_status status = db_query(stmt, args, err);
    enum db_step step = DB_DONE;
    *verdict = (struct lease_verdict){.result = HF_LOST};
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        *verdict = (struct lease_verdict){
            .result = HF_DONE, .fence = db_column_int(stmt, 0), .remaining_ms = r->ttl_ms};
    return step == DB_FAILED ? err->code : status;
}

/* Whom to wake is asked for first, and read once it is known that something was given up: a server
 * in a network answers both at once.  (A RETURNING costs SQLite half as much again as the release.)
 */
static enum hf_status release_one(struct sql_lease *s, const struct lease_request *r, int64_t *at,
                                  struct lease_verdict *verdict, struct hf_err *err)
{
    (void)at;
    const struct db_value args[] = {sql_key(r), sql_owner(r)};
    int64_t gone = 0;
    enum hf_status status = head_ask(s, args, err);
    if (status == HF_OK)
        status = sql_exec(s, LS_RELEASE, args, &gone, err);
    if (status == HF_OK && !gone) {
        status = sql_exec(s, LS_LEAVE, args, &gone, err);
        if (status == HF_OK && gone)
            status = head_ask(s, args, err);
    }
    *verdict = (struct lease_verdict){.result = gone ? HF_DONE : HF_LOST};
    return status == HF_OK && gone ? head_wake(s, err) : status;
}

static enum hf_result short_or_long(struct sql_lease *s, in_one_exchange *call, each_request *each,
                                    const struct lease_request *requests, size_t n,
                                    struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct hf_err err = {0};
    bool done;
    enum hf_status status = shortly(s, call, requests, n, verdicts, &done, &err);
    if (status == HF_OK && !done)
        status = in_one_transaction(s, each, requests, n, verdicts, &err);
    return sql_tell(status, &err, fault);
}

static enum hf_result sql_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                struct lease_verdict *verdicts, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        result = lease_check_key(&l->driver->info, requests[i].key, requests[i].key_len, fault);
        if (result == HF_DONE)
            result = lease_check_ttl(&l->driver->info, requests[i].ttl_ms, fault);
    }
    return result == HF_DONE
               ? short_or_long(sql_of(l), sql_keep, renew_one, requests, n, verdicts, fault)
               : result;
}

static enum hf_result sql_release(struct lease *l, const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    for (size_t i = 0; i < n && result == HF_DONE; i++)
        result = lease_check_key(&l->driver->info, requests[i].key, requests[i].key_len, fault);
    return result == HF_DONE
               ? short_or_long(sql_of(l), sql_give, release_one, requests, n, verdicts, fault)
               : result;
}

static enum hf_result sql_break(struct lease *l, const char *key, size_t key_len,
                                struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    enum hf_result result = lease_check_key(&l->driver->info, key, key_len, fault);
    if (result != HF_DONE)
        return result;
    const struct db_value name = db_bytes(key, key_len);
    enum hf_status status = sql_begin(s, &name, 1, &err);
    if (status == HF_OK)
        status = sql_exec(s, LS_BREAK, &name, NULL, &err);
    if (status == HF_OK)
        status = head_ask(s, &name, &err);
    if (status == HF_OK)
        status = head_wake(s, &err);
    return sql_tell(sql_end(s, status, &err), &err, fault);
}

/* ---- waiting ---- */

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* How long to sleep before looking again even if nobody commits anything: no later than the end of
 * a lease or of a place before ours, nor than our own place is to be asked for. */
static int64_t nap_ms(const struct sql_lease *s, const struct standing *st, int64_t now)
{
    int64_t nap = st->next_end == INT64_MAX ? WAIT_MAX_MS : st->next_end - now;
    if (st->place)
        nap = at_most(nap, st->place->until - (WAITER_SILENT_MS - SEEN_EVERY_MS) - now);
    if (s->options.clock != &clock_system)
        nap = at_most(nap, FAKE_MAX_MS);
    return at_least(nap, 1);
}

/* Reads those ahead of it only, and writes nothing but the place that is asked for now
 * and then: whoever sees that it is its turn returns, and its acquire is the one that writes. */
static enum hf_result sql_wait(struct lease *l, const struct lease_request *r, int64_t timeout_ms,
                               struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    enum hf_result result = lease_check_key(&l->driver->info, r->key, r->key_len, fault);
    if (result != HF_DONE)
        return result;
    const struct db_value key = sql_key(r);
    int64_t began = clock_monotonic_us(&clock_system) / 1000, now;
    timeout_ms = at_most(at_least(timeout_ms, 0), WAIT_MAX_MS);
    struct claim_row own, *place = NULL;
    for (;;) {
        struct standing st = {0};
        enum hf_status status = look(s, &key, place, &now, &err);
        if (status == HF_OK)
            st = name_state_judge(&s->state, r);
        if (status == HF_OK && st.place && is_seen_long_ago(st.place, now))
            status = keep_place(s, r, &err);
        int64_t waited = clock_monotonic_us(&clock_system) / 1000 - began;
        bool placeless = !st.place && r->queue;
        if (status != HF_OK || st.lease || st.free || placeless || waited >= timeout_ms)
            return sql_tell(status, &err, fault);
        if (st.place) {
            own = *st.place;
            place = &own;
        }
        status = s->db->driver->await(s->db, st.place ? own.number : 0,
                                      at_most(nap_ms(s, &st, now), timeout_ms - waited), &err);
        if (status != HF_OK)
            return sql_tell(status, &err, fault);
    }
}

#define SQL_CALLS                                                                                  \
    .open = sql_open, .close = sql_close, .another = sql_another, .acquire = sql_acquire,          \
    .renew = sql_renew, .release = sql_release, .wait = sql_wait, .inspect = sql_inspect,          \
    .list = sql_list, .break_ = sql_break

const struct lease_driver lease_sqlite = {
    .info = {.name = "sqlite",
             .url = "sqlite:PATH",
             .fence = HF_FENCE_DURABLE,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = TTL_MIN_MS,
             .ttl_max_ms = TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl =
                 "the machine's boot-time clock, one for all who use the file, to the millisecond",
             .survives = "the end of any process; of the machine: fences never repeat, the last "
                         "leases, whose holders ended with it, may be forgotten; a file removed: "
                         "its leases are lost, fences go on from the wall clock in microseconds.  "
                         "Not a file put back from a copy, nor a network file system"},
    .schemes = (const char *const[]){"sqlite:", NULL},
    SQL_CALLS,
};

const struct lease_driver lease_postgres = {
    .info = {.name = "postgres",
             .url = "postgres://[USER[:PASSWORD]@]HOST[:PORT][,HOST...]/DATABASE",
             .fence = HF_FENCE_DURABLE,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = TTL_MIN_MS,
             .ttl_max_ms = TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "the server's wall clock, to the millisecond",
             .survives = "all that a commit survives there: the end of any process, of the server "
                         "and of its machine; a standby that takes over, if commits wait for it "
                         "(synchronous_standby_names)"},
    .schemes = (const char *const[]){"postgres:", "postgresql:", NULL},
    SQL_CALLS,
};
