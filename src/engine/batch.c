/* A batch on its way, in straight-line code on its worker's thread:
 *     claim -> lock and read -> catch up -> decide -> write -> commit -> publish -> reply -> settle
 *
 * Load makes batches larger, so one commit serves hundreds of buyers.  A batch that frees seats
 * settles before it replies, so that no gate refuses what was just given back.  Keeps I7: nothing
 * is shown or answered before the commit, and everything is taken back when it fails. */
#include "engine/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/crash.h"
#include "base/log.h"
#include "base/wait.h"
#include "engine/batch_gate.h"
#include "engine/engine_internal.h"
#include "engine/follow.h"
#include "engine/load.h"
#include "rules/decide.h"
#include "view/view_waits.h"

/* The most other due holds that a batch with commands ends; see EXPIRE_MAX. */
#define EXPIRE_MAX_BUSY 16
#define WAITS_AT_ONCE 16 /* waiting lists that a batch looks at beside those of its commands */
#define CONFLICT_TRIES 5 /* of a batch that met other servers' transactions */
/* A batch asks the ledger first, unless worker.assume_after batches in a row found its events as
 * the view had them, and the ledger's clock was read within the last ASSUME_TIME_US. */
#define ASSUME_AFTER_MAX 256
#define ASSUME_TIME_US 20000000
#define ASSUME_DRIFT 1000 /* both clocks run at the same rate, within a part in so many */
#define RESOLVE_TRIES 100 /* to find out about a lost COMMIT: 5 s in all */
#define RESOLVE_PAUSE_US 50000
#define LOG_EVERY_US 1000000 /* that the ledger fails */

static int64_t monotonic_us(const struct engine *e) { return clock_monotonic_us(e->config.clock); }

static int64_t boot_ms(const struct engine *e) { return clock_boot_us(e->config.clock) / 1000; }

/* How a try at a batch ended.  HF_OK: it is committed.  HF_SURPRISE: err.msg is the table
 * whose row count was not the expected one. */
struct batch_outcome {
    enum hf_status status;
    struct hf_err err;
};

/* ---- steps ---- */

static size_t expire_max(size_t n_commands) { return n_commands ? EXPIRE_MAX_BUSY : EXPIRE_MAX; }

/* Chooses every event that the batch may touch: those of its commands, of holds that are due, and of
 * waiting lists that are to be looked at. */
static void choose_events(struct worker *w, struct command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (commands[i]->event)
            decision_add_event(&w->decision, commands[i]->event);
    size_t n_due = view_due(w->view, engine_now_ms(w->engine), w->due, expire_max(n));
    for (size_t i = 0; i < n_due; i++)
        decision_add_event(&w->decision, w->due[i]->event);
    struct event *lists[WAITS_AT_ONCE];
    size_t n_lists = view_waits_due(w->view, engine_now_ms(w->engine), lists, WAITS_AT_ONCE);
    for (size_t i = 0; i < n_lists; i++)
        decision_add_event(&w->decision, lists[i]);
}

/* Asks for what the view does not know of a command: the answer stored under its key, the rows of
 * the holds it names, the bookings that were made of them. */
static void choose_rows(struct worker *w, struct command *c, size_t index)
{
    struct batch_read *r = &w->read;
    key_row_close(&w->stored[index]);
    if (engine_key_maybe(w->engine, &c->key))
        *vec_push(&r->keys) = (struct key_wanted){c->key.hash, &w->stored[index]};
    struct hold_wanted wanted[HOLDS_PER_BOOKING_MAX];
    size_t n = command_wants(c, wanted);
    for (size_t i = 0; i < n; i++)
        *vec_push(&r->holds) = wanted[i];
    struct wait_change *wait = command_wants_wait(c);
    if (wait)
        *vec_push(&r->waits) = (struct wait_wanted){wait->id.key, &wait->wait};
    if (c->kind == CMD_PAYMENT_UPDATE && *c->update->event.id) {
        c->update->event_known = false;
        *vec_push(&r->webhooks) =
            (struct webhook_wanted){c->update->event.id, &c->update->event_known};
    }
}

/* Asks for everything the batch reads: the events' clocks, and what the commands need. */
static void choose_reads(struct worker *w, struct command *const *commands, size_t n)
{
    struct batch_read *r = &w->read;
    bool catalogue = false;
    batch_read_clear(r);
    for (size_t i = 0; i < n; i++) {
        catalogue |= commands[i]->kind == CMD_EVENT_CREATE;
        choose_rows(w, commands[i], i);
    }
    if (catalogue)
        vec_push(&r->clocks); /* event 0 */
    for (size_t i = 0; i < w->decision.events.n; i++)
        *vec_push(&r->clocks) = w->decision.events.v[i]->clock;
}

/* The ledger read its clock at some moment after `before_ms`.  The offset that other threads use
 * moves only as far as this forces it: the thread, or the machine, may have slept in between. */
static void note_time(struct engine *e, int64_t now, int64_t before_ms)
{
    int64_t offset = atomic_load_explicit(&e->now_offset_ms, memory_order_relaxed);
    int64_t least = now - boot_ms(e), most = now - before_ms;
    offset = offset < least ? least : offset > most ? most : offset;
    atomic_store_explicit(&e->now_offset_ms, offset, memory_order_relaxed);
}

/* The clock row of an event of the batch, which is locked. */
static const struct clock_row *locked_row(const struct batch_read *r, const struct event *e)
{
    for (size_t i = 0; i < r->clocks.n; i++)
        if (r->clocks.v[i].event == e->def->id.key)
            return &r->clocks.v[i];
    hf_check(!"an event of the batch is not locked");
    return NULL;
}

/* Makes the view equal to the ledger, under the lock: by folding the rows that other servers wrote
 * or, if those cannot be had, by loading the event anew.  Only then is anything decided on it. */
static enum hf_status make_exact(struct worker *w, struct hf_err *err)
{
    struct decision *d = &w->decision;
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        const struct clock_row *row = locked_row(&w->read, e);
        bool moved = row->seq != e->clock.seq || row->fence != e->clock.fence;
        e->unmoved = moved || e->stale ? 0 : e->unmoved + 1;
        if (moved && !e->stale && w->engine->has_others) {
            enum hf_status status = load_since(w, e, &w->read.since, err);
            if (status != HF_OK)
                return status;
        }
        if (moved && (!w->engine->has_others || e->clock.seq != row->seq))
            e->stale = true;
        e->clock = e->draft = *row;
        if (!e->stale)
            continue;
        enum hf_status status = load_again(w, e, err);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* The ledger was asked after `before_ms`, when its time was `now` or later: the view is exact. */
static void note_contact(struct worker *w, int64_t before_ms, int64_t now)
{
    atomic_store_explicit(&w->engine->contact_ms, before_ms, memory_order_relaxed);
    for (size_t i = 0; i < w->decision.events.n; i++)
        atomic_store_explicit(&w->decision.events.v[i]->sync.confirmed_ms, now,
                              memory_order_relaxed);
}

static enum hf_status lock_and_read(struct worker *w, struct command *const *commands, size_t n,
                                    struct hf_err *err)
{
    struct engine *e = w->engine;
    int64_t before_ms = boot_ms(e), confirmed_ms = engine_now_ms(e);
    choose_reads(w, commands, n);
    enum hf_status status = ledger_begin(w->ledger, err);
    if (status != HF_OK)
        return status;
    status = ledger_batch_read(w->ledger, &w->read, err);
    if (status != HF_OK)
        return status;
    w->decision.now = w->read.now;
    w->offset_read_us = clock_boot_us(e->config.clock);
    w->offset_us = w->read.now * 1000 - w->offset_read_us;
    note_time(e, w->read.now, before_ms);
    status = make_exact(w, err);
    if (status == HF_OK)
        note_contact(w, before_ms, confirmed_ms);
    return status;
}

/* ---- one exchange instead of two ---- */

/* Does the command need no rows of holds, bookings or money, but only the view, and perhaps the
 * answer under its key?  What an earlier try has read for it is forgotten. */
static bool needs_no_rows(struct command *c)
{
    struct hold_wanted wanted[HOLDS_PER_BOOKING_MAX];
    return c->event && c->kind != CMD_EVENT_CREATE && !command_wants(c, wanted) &&
           !command_wants_wait(c);
}

/* May the batch be decided on what the view has, without asking the ledger first?  If nobody else
 * has written to its events of late, the ledger would only say so.  Holds that are due by our clock
 * alone may not be due yet by the time that is assumed. */
static bool may_assume(struct worker *w, struct command *const *commands, size_t n)
{
    int64_t age_us = clock_boot_us(w->engine->config.clock) - w->offset_read_us;
    if (!w->engine->has_others || !n || age_us > ASSUME_TIME_US)
        return false;
    for (size_t i = 0; i < w->decision.events.n; i++)
        if (w->decision.events.v[i]->stale || w->decision.events.v[i]->unmoved < w->assume_after)
            return false;
    for (size_t i = 0; i < n; i++)
        if (!needs_no_rows(commands[i]))
            return false;
    return true;
}

/* Chooses what the commit will say that it assumes.  The batch is decided at a time that the
 * ledger's clock has reached already. */
static void assume(struct worker *w, struct command *const *commands, size_t n)
{
    struct decision *d = &w->decision;
    int64_t boot_us = clock_boot_us(w->engine->config.clock);
    choose_reads(w, commands, n);
    w->read.now = (boot_us + w->offset_us - (boot_us - w->offset_read_us) / ASSUME_DRIFT) / 1000;
    for (size_t i = 0; i < d->events.n; i++)
        if (d->events.v[i]->clock.now > w->read.now)
            w->read.now = d->events.v[i]->clock.now;
    d->now = w->read.now;
}

/* Begins the transaction of such a batch, once it is decided. */
static enum hf_status say_what_is_assumed(struct worker *w, struct hf_err *err)
{
    enum hf_status status = ledger_begin(w->ledger, err);
    return status == HF_OK ? ledger_batch_assume(w->ledger, &w->read, err) : status;
}

/* Lets some batches after this one ask the ledger first; the more, the more often this happens. */
static void assume_no_more(struct worker *w)
{
    for (size_t i = 0; i < w->decision.events.n; i++)
        w->decision.events.v[i]->unmoved = 0;
    if (w->assume_after < ASSUME_AFTER_MAX)
        w->assume_after *= 2;
}

/* ---- commands that come while a batch waits for its locks ---- */

/* May the command join a batch whose events are locked already?  What needs rows would cost another
 * exchange while the locks are held: it is the first in the next batch. */
static bool may_join(const struct worker *w, struct command *c)
{
    switch (c->kind) {
    case CMD_FOLLOW:
    case CMD_COMPARE:
    case CMD_EVENT_LOAD:
        return false;
    default:
        return needs_no_rows(c) && c->event->in_batch && !engine_key_maybe(w->engine, &c->key);
    }
}

/* Where other servers write too, a batch may have waited for them to leave the event: commands that
 * came for the same events meanwhile join it.  The others wait for the next batch. */
static void let_join(struct worker *w, struct command **commands, size_t *n)
{
    size_t room = w->engine->config.batch_len_max - *n - w->n_late, first = *n;
    bool is_single =
        commands != w->commands; /* a command that is judged by itself, see run_singly */
    if (!w->engine->has_others || *n == 0 || is_single)
        return;
    size_t taken = lane_take(&w->work, commands + *n, room, 0);
    taken = taken == LANE_CLOSED ? 0 : taken;
    for (size_t i = first; i < first + taken; i++) {
        struct command *c = commands[i];
        c->gate_refused = false;
        if (!may_join(w, c)) {
            w->late[w->n_late++] = c;
            continue;
        }
        key_row_close(&w->stored[*n]);
        commands[(*n)++] = c;
    }
}

/* ---- deciding and storing ---- */

static enum hf_status create_event(struct worker *w, struct command *c, struct hf_err *err)
{
    struct event_def *def = c->event_create;
    random_bytes(&w->random, def->id.secret, ID_SECRET_SIZE);
    c->verdict = VERDICT_CREATED;
    w->created = def;
    return ledger_event_insert(w->ledger, def, w->decision.now, w->decision.actor, err);
}

/* The hold that the answer is about; 0: none. */
static int64_t hold_of(struct command *c)
{
    const struct named_hold *named = command_named_hold(c);
    return named ? named->id.key : c->kind == CMD_HOLD_CREATE ? c->create.hold.id.key : 0;
}

/* Renders the answer of a successful command and stores it under the command's key (I8). */
static void keep_answer(struct worker *w, struct command *c)
{
    struct engine *e = w->engine;
    if (!c->key.present || c->key.replayed || !verdict_is_success(c->verdict))
        return;
    c->key.answer.len = 0;
    c->key.answer_code = e->config.texts.answer(c, &c->key.answer);
    c->key.rendered = true;
    decide_keep_answer(&w->decision, &c->key, hold_of(c));
    if (!e->has_others)
        key_filter_add(&e->filter, c->key.hash, w->decision.now);
}

/* Decides each command in order; those that must wait for the next batch move to w->deferred. */
static enum hf_status decide_all(struct worker *w, struct command **commands, size_t *n,
                                 struct hf_err *err)
{
    size_t kept = 0;
    enum hf_status status = HF_OK;
    w->n_deferred = 0;
    for (size_t i = 0; i < *n; i++) {
        struct command *c = commands[i];
        if (!command_decide(c, &w->decision, &w->stored[i])) {
            w->deferred[w->n_deferred++] = c;
            continue;
        }
        commands[kept++] = c; /* also after a failure, which all commands of the batch share */
        if (status != HF_OK)
            continue;
        if (c->verdict == VERDICT_UNDECIDED) /* an event that is to be made */
            status = create_event(w, c, err);
        if (status == HF_OK)
            keep_answer(w, c);
    }
    *n = kept;
    return status;
}

/* The crash points of a batch; see crash.h. */
#define CRASH_AT(d, when)                                                                          \
    do {                                                                                           \
        if ((d)->batch.payments_new.n)                                                             \
            CRASH_POINT(booking_##when);                                                           \
        if ((d)->batch.payments.n)                                                                 \
            CRASH_POINT(fact_##when);                                                              \
        if ((d)->batch.webhooks.n)                                                                 \
            CRASH_POINT(webhook_##when);                                                           \
        if ((d)->batch.refunds_new.n)                                                              \
            CRASH_POINT(refund_##when);                                                            \
        if ((d)->expired && (d)->batch.jobs_put.n)                                                 \
            CRASH_POINT(expiry_##when);                                                            \
    } while (0)

static enum hf_status commit(struct worker *w, struct hf_err *err)
{
    struct decision *d = &w->decision;
    bool effects = decision_has_effects(d) || w->created;
    if (!effects && w->assumed) /* without a commit nothing says whether the assumptions hold */
        return hf_err_set(err, HF_CONFLICT, "the batch changes nothing");
    if (!effects) {
        ledger_rollback(w->ledger);
        return HF_OK;
    }
    decision_seal(d);
    enum hf_status status = w->assumed ? say_what_is_assumed(w, err) : HF_OK;
    if (status == HF_OK)
        status = ledger_write(w->ledger, &d->batch, err);
    if (status != HF_OK)
        return status;
    CRASH_AT(d, before_commit);
    int64_t start_us = monotonic_us(w->engine);
    status = ledger_commit(w->ledger, err);
    histogram_observe(w->engine->metrics.commit_seconds,
                      (uint64_t)(monotonic_us(w->engine) - start_us));
    CRASH_AT(d, after_commit);
    return status;
}

/* Ends due holds of the batch's events beside those that its commands name.  They are looked for
 * again here, since catching up may have replaced the holds. */
static void expire_some(struct worker *w, size_t n_commands)
{
    struct decision *d = &w->decision;
    size_t n_due = view_due(w->view, d->now, w->due, expire_max(n_commands)), kept = 0;
    for (size_t i = 0; i < n_due; i++)
        if (w->due[i]->event->in_batch)
            w->due[kept++] = w->due[i];
    decide_expire(d, w->due, kept);
}

static enum hf_status try_steps(struct worker *w, struct command **commands, size_t *n,
                                struct hf_err *err)
{
    enum hf_status status = lock_and_read(w, commands, *n, err);
    if (status != HF_OK)
        return status;
    let_join(w, commands, n);
    expire_some(w, *n);
    status = decide_all(w, commands, n, err);
    if (status != HF_OK)
        return status;
    decide_waits(&w->decision);
    return commit(w, err);
}

/* The same in one exchange. */
static enum hf_status try_steps_assuming(struct worker *w, struct command **commands, size_t *n,
                                         struct hf_err *err)
{
    int64_t before_ms = boot_ms(w->engine), confirmed_ms = engine_now_ms(w->engine);
    assume(w, commands, *n);
    expire_some(w, *n);
    enum hf_status status = decide_all(w, commands, n, err);
    if (status == HF_OK) {
        decide_waits(&w->decision);
        status = commit(w, err);
    }
    if (status != HF_OK) {
        assume_no_more(w);
        return status;
    }
    note_contact(w, before_ms, confirmed_ms);
    w->assume_after = ASSUME_AFTER_MIN;
    return HF_OK;
}

static struct batch_outcome try_batch(struct worker *w, struct command **commands, size_t *n,
                                      bool is_first)
{
    struct batch_outcome out = {0};
    int64_t exchanges = ledger_exchanges(w->ledger);
    decision_begin(&w->decision);
    w->created = NULL;
    w->n_deferred = 0;
    choose_events(w, commands, *n);
    w->assumed = is_first && may_assume(w, commands, *n);
    out.status = (w->assumed ? try_steps_assuming : try_steps)(w, commands, n, &out.err);
    if (out.status != HF_OK)
        ledger_rollback(w->ledger);
    counter_add(w->engine->metrics.ledger_exchanges,
                (uint64_t)(ledger_exchanges(w->ledger) - exchanges));
    return out;
}

/* ---- answers ---- */

static void answer_failure(struct worker *w, struct command *const *commands, size_t n,
                           enum verdict verdict, const struct hf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct command *c = commands[i];
        c->verdict = verdict;
        c->key.rendered = c->key.replayed = c->gate_refused = false;
        c->err = *err;
    }
    worker_answer(w, commands, n);
}

/* Finds out what became of a COMMIT whose answer was lost.  HF_OK: it happened.
 * HF_STORE_UNAVAILABLE: it did not happen and never will.  HF_OUTCOME_UNKNOWN: that is still not
 * known after 5 s, or when the server stops (I14). */
static enum hf_status resolve(struct worker *w)
{
    struct hf_err err;
    int64_t until_us = wait_now_us() + (int64_t)RESOLVE_TRIES * RESOLVE_PAUSE_US;
    for (int i = 0; i < RESOLVE_TRIES && wait_now_us() < until_us; i++) {
        bool happened = false;
        if (engine_gave_up(w->engine))
            break;
        if (ledger_resolve(w->ledger, &w->decision.batch, w->read.clocks.v, w->read.clocks.n,
                           w->created, w->assumed, &happened, &err) == HF_OK)
            return happened ? HF_OK : HF_STORE_UNAVAILABLE;
        wait_sleep_us(RESOLVE_PAUSE_US);
    }
    return HF_OUTCOME_UNKNOWN;
}

/* Tells those who follow entries of waiting lists which have changed. */
static void tell_waits(struct worker *w)
{
    const struct engine_config *config = &w->engine->config;
    const struct ledger_batch *b = &w->decision.batch;
    VEC(struct wait_news) news = {0};
    for (size_t i = 0; config->waits_changed && i < b->waits.n; i++)
        *vec_push(&news) = (struct wait_news){.entry = b->waits.v[i].entry,
                                              .seq = b->waits.v[i].last_seq,
                                              .status = b->waits.v[i].to};
    if (news.n)
        config->waits_changed(config->waits_context, news.v, news.n);
    vec_close(&news);
}

static void publish(struct worker *w, size_t n)
{
    struct engine *e = w->engine;
    struct decision *d = &w->decision;
    bool effects = decision_has_effects(d) || w->created;
    bool made_jobs = d->batch.jobs_put.n || d->batch.jobs.n;
    decision_publish(d);
    if (made_jobs && e->config.jobs_made)
        e->config.jobs_made(e->config.jobs_context, d->batch.jobs_put.v, d->batch.jobs_put.n);
    for (size_t i = 0; e->has_others && i < d->batch.clocks.n; i++)
        follower_announce(e, view_event(w->view, d->batch.clocks.v[i].after.event));
    tell_waits(w);
    engine_metrics_waits(&e->metrics, d->batch.waits.v, d->batch.waits.n);
    counter_add(e->metrics.holds_expired, d->expired);
    worker_note_holds(w);
    if (n)
        histogram_observe(e->metrics.batch_commands, n);
    if (effects)
        worker_succeeded(w);
}

/* ---- the whole way ---- */

/* Takes the batch back.  Commands that it deferred share its fate; returns how many there are now.
 */
static size_t undo(struct worker *w, struct command **commands, size_t n)
{
    decision_undo(&w->decision);
    for (size_t i = 0; i < w->n_deferred; i++)
        commands[n++] = w->deferred[i];
    w->n_deferred = 0;
    return n;
}

/* A ledger that is away fails thousands of batches a second: the log hears of them once a second,
 * and of due holds that cannot be ended only once. */
static void log_failure(struct worker *w, size_t n_commands, const char *why)
{
    int64_t now_us = monotonic_us(w->engine);
    w->unlogged += n_commands;
    if (now_us < w->next_log_us || (!w->unlogged && w->failing))
        return;
    log_write(LOG_ERROR, "the batch was not stored", "why", why, "commands", LOG_INT(w->unlogged),
              NULL);
    w->next_log_us = now_us + LOG_EVERY_US;
    w->unlogged = 0;
}

/* Tries the batch until no other server's transaction is in the way, and finds out about a COMMIT
 * whose answer was lost.  *n is then how many commands are left; the others were deferred. */
static struct batch_outcome store(struct worker *w, struct command **commands, size_t *n)
{
    struct batch_outcome out = try_batch(w, commands, n, true);
    for (int i = w->assumed ? 0 : 1; out.status == HF_CONFLICT && i < CONFLICT_TRIES; i++) {
        counter_add(w->engine->metrics.conflicts, !w->assumed);
        *n = undo(w, commands, *n);
        out = try_batch(w, commands, n, false);
    }
    if (out.status == HF_OUTCOME_UNKNOWN) {
        worker_failed(w, out.err.msg);
        out.status = resolve(w);
    }
    return out;
}

static void finish_stored(struct worker *w, struct command **commands, size_t n)
{
    publish(w, n);
    if (batch_gate_prepare(w, true))
        batch_gate_settle(w, true);
    worker_answer(w, commands, n);
    batch_gate_settle(w, false);
}

/* Gives the claims back and takes the batch back; returns how many commands it has now. */
static size_t take_back(struct worker *w, struct command **commands, size_t n)
{
    batch_gate_prepare(w, false);
    batch_gate_settle(w, true);
    return undo(w, commands, n);
}

static void finish_failed(struct worker *w, struct command **commands, size_t n,
                          const struct batch_outcome *out)
{
    log_failure(w, n, out->err.msg);
    worker_failed(w, out->err.msg);
    answer_failure(w, commands, n, verdict_of(out->status), &out->err);
}

/* The ledger holds something else than the view believed.  The events are read again by the next
 * batch that names them. */
static void note_surprise(struct worker *w, size_t n, const char *table)
{
    counter_add(w->engine->metrics.surprises, 1);
    log_write(LOG_ERROR, "the ledger disagrees with the view", "table", table, "commands",
              LOG_INT(n), NULL);
    for (size_t i = 0; i < w->decision.events.n; i++)
        w->decision.events.v[i]->stale = true;
}

/* Runs one command as a batch of its own, after it was part of a batch that surprised.  If it
 * surprises again, that is its answer. */
static void run_singly(struct worker *w, struct command *command)
{
    size_t n = 1;
    struct batch_outcome out = store(w, &command, &n);
    if (out.status == HF_OK) {
        finish_stored(w, &command, n);
        return;
    }
    n = take_back(w, &command, n);
    if (out.status != HF_SURPRISE) {
        finish_failed(w, &command, n, &out);
        return;
    }
    note_surprise(w, n, out.err.msg);
    bool is_sold = (command->kind == CMD_HOLD_CONFIRM || command->kind == CMD_BOOKING_CREATE) &&
                   strcmp(out.err.msg, "sold_seats") == 0;
    answer_failure(w, &command, n, is_sold ? VERDICT_SEAT_SOLD : VERDICT_INTERNAL,
                   &(struct hf_err){0});
}

static void run(struct worker *w, struct command **commands, size_t n)
{
    struct batch_outcome out = store(w, commands, &n);
    if (out.status == HF_OK) {
        finish_stored(w, commands, n);
        return;
    }
    n = take_back(w, commands, n);
    if (out.status != HF_SURPRISE) {
        finish_failed(w, commands, n, &out);
        return;
    }
    note_surprise(w, n, out.err.msg);
    struct command **each = hf_alloc((n + 1) * sizeof(struct command *));
    size_t n_deferred = 0;
    memcpy(each, commands, n * sizeof(struct command *));
    for (size_t i = 0; i < n; i++) {
        run_singly(w, each[i]);
        if (w->n_deferred) /* its place in `each` is free by now */
            each[n_deferred++] = w->deferred[0];
        w->n_deferred = 0;
    }
    memcpy(w->deferred, each, n_deferred * sizeof(struct command *));
    w->n_deferred = n_deferred;
    free(each);
}

void batch_run(struct worker *w, struct command **commands, size_t n)
{
    batch_gate_claim(w, commands, &n);
    if (n || worker_due_ms(w) <= engine_now_ms(w->engine))
        run(w, commands, n);
}
