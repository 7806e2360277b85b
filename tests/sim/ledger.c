/* Connections, transactions, locks, time and faults of the simulated ledger; see ledger.h.  Reads
 * are in ledger_read.c, those about money in ledger_jobs.c; the tables are those of tables.h. */
#include "sim/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "sim/tables.h"

#define SCHEME "sim:"

static struct sim_ledger *all;

/* ---- the database ---- */

struct sim_ledger *sim_ledger_new(const char *name, const struct clock *clock, bool has_others)
{
    struct sim_ledger *sim = hf_alloc(sizeof *sim);
    sim->name = name;
    sim->clock = clock;
    sim->has_others = has_others;
    vec_push(&sim->events); /* the catalogue */
    sim->next = all;
    all = sim;
    return sim;
}

void sim_ledger_free(struct sim_ledger *sim)
{
    if (!sim)
        return;
    hf_check(!sim->connections);
    struct sim_ledger **link = &all;
    while (*link != sim)
        link = &(*link)->next;
    *link = sim->next;
    sim_tables_close(sim);
    free(sim);
}

/* ---- faults ---- */

void sim_ledger_fail(struct sim_ledger *sim, enum sim_call call, int n, enum sim_fault fault)
{
    sim->faults[call].calls_left = n;
    sim->faults[call].fault = fault;
}

void sim_ledger_heal(struct sim_ledger *sim) { memset(sim->faults, 0, sizeof sim->faults); }

void sim_ledger_hook(struct sim_ledger *sim, void (*hook)(void *ctx, enum sim_call call), void *ctx)
{
    sim->hook = hook;
    sim->hook_ctx = ctx;
}

static void run_hook(struct sim_ledger *sim, enum sim_call call)
{
    if (!sim->hook || sim->in_hook)
        return;
    sim->in_hook = true;
    sim->hook(sim->hook_ctx, call);
    sim->in_hook = false;
}

static enum hf_status stuck(struct hf_err *err)
{
    return hf_err_set(err, HF_STORE_UNAVAILABLE, "the connection is stuck");
}

enum hf_status sim_enter(struct ledger *l, enum sim_call call, struct hf_err *err)
{
    l->calls++;
    run_hook(l->sim, call);
    if (l->is_stuck)
        return stuck(err);
    int *left = &l->sim->faults[call].calls_left;
    if (*left == 0 || --*left > 0)
        return HF_OK;
    switch (l->sim->faults[call].fault) {
    case SIM_UNAVAILABLE:
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "a fault of the simulation");
    case SIM_CONFLICT:
        return hf_err_set(err, HF_CONFLICT, "a fault of the simulation");
    case SIM_LOST_STORED:
    case SIM_LOST_UNSTORED:
        hf_check(call == SIM_COMMIT);
        return hf_err_set(err, HF_OUTCOME_UNKNOWN, "a fault of the simulation");
    case SIM_STUCK:
        l->is_stuck = true;
        return stuck(err);
    }
    return HF_INTERNAL;
}

/* ---- connections ---- */

enum hf_status ledger_open(const char *url, const struct db_options *options, struct ledger **ret,
                           struct hf_err *err)
{
    (void)options; /* time is the database's own */
    struct sim_ledger *sim = all;
    bool is_ours = strncmp(url, SCHEME, strlen(SCHEME)) == 0;
    while (is_ours && sim && strcmp(sim->name, url + strlen(SCHEME)) != 0)
        sim = sim->next;
    if (!is_ours || !sim)
        return hf_err_set(err, HF_INVALID_REQUEST, "%.200s: no such simulated ledger", url);
    struct ledger *l = hf_alloc(sizeof *l);
    l->sim = sim;
    l->next = sim->connections;
    sim->connections = l;
    for (size_t i = 0; i < sim->events.n; i++)
        if (sim->events.v[i].clock.now > l->floor)
            l->floor = sim->events.v[i].clock.now;
    *ret = l;
    return HF_OK;
}

enum hf_status ledger_join(const char *url, const struct db_options *options, struct ledger **ret,
                           struct hf_err *err)
{
    return ledger_open(url, options, ret, err);
}

/* Ends the transaction: whatever is still staged is forgotten, and the locks are given back. */
static void end(struct ledger *l)
{
    sim_discard(l);
    for (size_t i = 0; i < l->sim->events.n; i++)
        if (l->sim->events.v[i].locked_by == l)
            l->sim->events.v[i].locked_by = NULL;
    l->in_transaction = false;
    l->assumed = NULL;
    l->unsent = NULL;
}

void ledger_close(struct ledger *l)
{
    if (!l)
        return;
    end(l);
    struct ledger **link = &l->sim->connections;
    while (*link != l)
        link = &(*link)->next;
    *link = l->next;
    sim_staged_close(l);
    free(l);
}

bool ledger_has_others(const struct ledger *l) { return l->sim->has_others; }
int64_t ledger_exchanges(const struct ledger *l) { return l->calls; }

/* ---- time ---- */

int64_t sim_wall_ms(const struct sim_ledger *sim) { return clock_wall_us(sim->clock) / 1000; }

enum hf_status ledger_now(struct ledger *l, int64_t *ret_now, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    if (status != HF_OK)
        return status;
    int64_t now = sim_wall_ms(l->sim);
    l->floor = now > l->floor ? now : l->floor;
    *ret_now = l->floor;
    return HF_OK;
}

/* ---- transactions ---- */

enum hf_status ledger_begin(struct ledger *l, struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_BEGIN, err);
    if (status != HF_OK)
        return status;
    hf_check(!l->in_transaction);
    l->in_transaction = true;
    return HF_OK;
}

enum hf_status ledger_batch_assume(struct ledger *l, const struct batch_read *r, struct hf_err *err)
{
    (void)err; /* nothing is sent */
    hf_check(l->in_transaction && l->sim->has_others && !r->holds.n && !r->webhooks.n &&
             !r->waits.n);
    l->assumed = r;
    return HF_OK;
}

/* Does all that the transaction assumes hold? */
static bool holds(const struct sim_ledger *sim, const struct batch_read *r)
{
    int64_t now = sim_wall_ms(sim);
    bool is_true = now >= r->now && now <= r->now + LEDGER_ASSUME_LATE_MS;
    for (size_t i = 0; i < r->clocks.n; i++) {
        const struct clock_row *want = &r->clocks.v[i];
        const struct sim_event *e = sim_event(sim, want->event);
        is_true &= !e->locked_by && e->clock.seq == want->seq && e->clock.fence == want->fence &&
                   e->clock.now <= r->now;
    }
    for (size_t i = 0; i < r->keys.n; i++) {
        const struct key_row *row = sim_key(sim, r->keys.v[i].hash);
        is_true &= !row || row->created_at <= r->now - KEY_KEPT_MS;
    }
    return is_true;
}

static enum hf_status stage(struct ledger *l, const struct ledger_batch *b, struct hf_err *err);

/* Runs a transaction that asked for nothing first, up to its COMMIT. */
static enum hf_status run_unsent(struct ledger *l, struct hf_err *err)
{
    bool is_true = holds(l->sim, l->assumed);
    l->sim->assumed += is_true;
    l->sim->missed += !is_true;
    if (!is_true)
        return hf_err_set(err, HF_CONFLICT, "what was assumed");
    for (size_t i = 0; i < l->assumed->clocks.n; i++)
        sim_event(l->sim, l->assumed->clocks.v[i].event)->locked_by = l;
    return stage(l, l->unsent, err);
}

enum hf_status ledger_commit(struct ledger *l, struct hf_err *err)
{
    hf_check(l->in_transaction);
    enum hf_status status = sim_enter(l, SIM_COMMIT, err);
    l->was_stored = status == HF_OK || (status == HF_OUTCOME_UNKNOWN &&
                                        l->sim->faults[SIM_COMMIT].fault == SIM_LOST_STORED);
    if (l->was_stored && l->assumed) {
        struct hf_err why;
        enum hf_status run = run_unsent(l, &why);
        l->was_stored = run == HF_OK;
        if (run != HF_OK && status == HF_OK)
            return hf_err_set(err, run, "%s", why.msg);
    }
    if (l->was_stored)
        sim_apply(l);
    if (l->was_stored || status == HF_OUTCOME_UNKNOWN)
        end(l);
    return status;
}

void ledger_rollback(struct ledger *l)
{
    if (!l->is_stuck)
        end(l);
}

enum hf_status sim_lock(struct ledger *l, struct clock_row *rows, size_t n, int64_t *ret_now,
                        struct hf_err *err)
{
    int64_t now = sim_wall_ms(l->sim);
    hf_check(l->in_transaction);
    for (size_t i = 0; i < n; i++) {
        struct sim_event *e = sim_event(l->sim, rows[i].event);
        hf_check(i == 0 || rows[i - 1].event < rows[i].event);
        if (!e)
            return hf_err_set(err, HF_INTERNAL, "a clock row is missing");
        if (e->locked_by && e->locked_by != l)
            return hf_err_set(err, HF_CONFLICT, "another transaction has the lock");
        e->locked_by = l;
        rows[i] = e->clock;
        now = e->clock.now > now ? e->clock.now : now;
    }
    *ret_now = now;
    return HF_OK;
}

enum hf_status ledger_lock(struct ledger *l, struct clock_row *rows, size_t n, int64_t *ret_now,
                           struct hf_err *err)
{
    enum hf_status status = sim_enter(l, SIM_READ, err);
    return status == HF_OK ? sim_lock(l, rows, n, ret_now, err) : status;
}

/* Tells the truth that the connection remembers, under the locks that the real one takes. */
enum hf_status ledger_resolve(struct ledger *l, const struct ledger_batch *batch,
                              const struct clock_row *clocks, size_t n_clocks,
                              const struct event_def *created, bool assumed, bool *ret_happened,
                              struct hf_err *err)
{
    (void)batch;
    (void)created;
    VEC(struct clock_row) rows = {0};
    int64_t now;
    hf_check(!l->in_transaction);
    enum hf_status status = sim_enter(l, SIM_RESOLVE, err);
    if (status != HF_OK)
        return status;
    for (size_t i = 0; i < n_clocks; i++)
        *vec_push(&rows) = clocks[i];
    l->in_transaction = true;
    status = sim_lock(l, rows.v, rows.n, &now, err);
    for (size_t i = 0; i < n_clocks && status == HF_OK && !l->was_stored && assumed; i++) {
        sim_event(l->sim, clocks[i].event)->clock.fence++;
        sim_event(l->sim, clocks[i].event)->fences_skipped++;
    }
    end(l);
    vec_close(&rows);
    if (status == HF_OK)
        *ret_happened = l->was_stored;
    return status;
}

enum hf_status ledger_probe(struct ledger *l, int64_t room_bytes, struct hf_err *err)
{
    (void)room_bytes;
    enum hf_status status = sim_enter(l, SIM_PROBE, err);
    if (status != HF_OK)
        return status;
    struct sim_event *catalogue = sim_event(l->sim, 0);
    int64_t now = sim_wall_ms(l->sim);
    if (catalogue->locked_by)
        return hf_err_set(err, HF_CONFLICT, "another transaction has the lock");
    catalogue->clock.now = now > catalogue->clock.now ? now : catalogue->clock.now + 1;
    return HF_OK;
}

/* ---- writes ---- */

/* An INSERT of a key that another transaction has inserted waits for the end of that one. */
static bool must_wait_for_key(const struct ledger *l, const struct ledger_batch *b)
{
    for (const struct ledger *other = l->sim->connections; other; other = other->next)
        for (size_t i = 0; other != l && i < other->staged.keys.n; i++)
            for (size_t k = 0; k < b->keys.n; k++)
                if (memcmp(other->staged.keys.v[i].hash, b->keys.v[k].hash, KEY_HASH_SIZE) == 0)
                    return true;
    return false;
}

static enum hf_status stage(struct ledger *l, const struct ledger_batch *b, struct hf_err *err)
{
    if (must_wait_for_key(l, b))
        return hf_err_set(err, HF_CONFLICT, "another transaction inserts the key");
    if (sim_money_must_wait(l, b))
        return hf_err_set(err, HF_CONFLICT, "another transaction has the rows");
    const char *table = sim_write(l, b);
    return table ? hf_err_set(err, HF_SURPRISE, "%s", table) : HF_OK;
}

enum hf_status ledger_write(struct ledger *l, const struct ledger_batch *b, struct hf_err *err)
{
    hf_check(l->in_transaction && !l->staged.clocks.n && !l->staged.keys.n); /* once */
    enum hf_status status = sim_enter(l, SIM_WRITE, err);
    if (status != HF_OK || !l->assumed)
        return status == HF_OK ? stage(l, b, err) : status;
    l->unsent = b;
    return HF_OK;
}

enum hf_status ledger_event_insert(struct ledger *l, struct event_def *def, int64_t now,
                                   const char *actor, struct hf_err *err)
{
    hf_check(actor_is_valid(actor, strlen(actor)));
    enum hf_status status = sim_enter(l, SIM_WRITE, err);
    if (status != HF_OK)
        return status;
    hf_check(sim_event(l->sim, 0)->locked_by == l);
    def->id.key = (int64_t)(l->sim->events.n + l->staged_events.n);
    def->created_at = now;
    def->status = EVENT_OPEN;
    *vec_push(&l->staged_events) = sim_def_copy(def);
    return HF_OK;
}

/* ---- what an engine without threads never needs ---- */

enum hf_status ledger_warnings(struct ledger *l, struct buf *ret_lines, struct hf_err *err)
{
    (void)l, (void)ret_lines, (void)err;
    return HF_OK;
}

enum hf_status ledger_maintain(struct ledger *l, struct db_log *ret, struct hf_err *err)
{
    (void)l, (void)ret, (void)err;
    return HF_OK;
}

int64_t ledger_log_bytes(const struct ledger *l)
{
    (void)l;
    return 0;
}

enum hf_status ledger_sizes(struct ledger *l, struct key_census *census, struct ledger_sizes *ret,
                            struct hf_err *err)
{
    (void)l, (void)census, (void)ret, (void)err;
    return HF_OK;
}

static enum hf_status not_simulated(struct hf_err *err)
{
    return hf_err_set(err, HF_INTERNAL, "not simulated");
}

enum hf_status ledger_notify(struct ledger *l, const char *topic, const char *text,
                             struct hf_err *err)
{
    (void)l, (void)topic, (void)text;
    return not_simulated(err);
}

enum hf_status ledger_listen(struct ledger *l, const char *topic, int wake_fd, int64_t timeout_ms,
                             struct buf *ret_lines, struct hf_err *err)
{
    (void)l, (void)topic, (void)wake_fd, (void)timeout_ms, (void)ret_lines;
    return not_simulated(err);
}

enum hf_status ledger_try_lock(struct ledger *l, int64_t number, bool *ret_locked,
                               struct hf_err *err)
{
    (void)l, (void)number, (void)ret_locked;
    return not_simulated(err);
}

enum hf_status ledger_unlock_all(struct ledger *l, struct hf_err *err)
{
    (void)l;
    return not_simulated(err);
}
