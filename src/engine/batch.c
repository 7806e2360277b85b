/* A batch on its way:
 *     claim -> lock and read -> catch up -> decide -> write -> commit -> publish -> settle -> reply
 * in straight-line code on its worker's thread.  Load makes batches larger, so one commit serves
 * hundreds of buyers.  Keeps I7: nothing is shown or answered before the commit, and everything is
 * taken back when it fails. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "engine/internal.h"

static int64_t monotonic_us(const struct engine *e) { return clock_monotonic_us(e->config.clock); }

static int64_t boot_ms(const struct engine *e) { return clock_boot_us(e->config.clock) / 1000; }

/* How one try at a batch ended: HF_OK, committed.  Of HF_LEDGER_SURPRISE err.msg is the table whose
 * row count was wrong. */
struct outcome {
    enum hf_status status;
    struct hf_err err;
};

/* ---- steps ---- */

static size_t expire_max(size_t n_commands) { return n_commands ? EXPIRE_MAX_BUSY : EXPIRE_MAX; }

/* Lock every event the batch may touch: those of its commands and of the holds falling due. */
static void choose_events(struct worker *w, struct command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (commands[i]->event)
            decide_add_event(&w->decision, commands[i]->event);
    size_t n_due = view_due(w->view, engine_now_ms(w->engine), w->due, expire_max(n));
    for (size_t i = 0; i < n_due; i++)
        decide_add_event(&w->decision, w->due[i]->event);
}

static bool names_hold(const struct command *c)
{
    return c->kind == CMD_HOLD_RENEW || c->kind == CMD_HOLD_RELEASE || c->kind == CMD_HOLD_EVICT ||
           c->kind == CMD_HOLD_CONFIRM;
}

/* What the view does not know of a command: an answer stored under its key, the row of the hold it
 * names, the booking that was made of it. */
static void choose_rows(struct worker *w, struct command *c, size_t index)
{
    struct batch_read *r = &w->read;
    key_row_close(&w->stored[index]);
    if (c->has_key && engine_key_maybe(w->engine, c))
        *vec_push(&r->keys) = (struct key_wanted){c->key_hash, &w->stored[index]};
    if (!names_hold(c))
        return;
    hold_row_close(&c->hold);
    booking_row_close(&c->booking);
    *vec_push(&r->holds) =
        (struct hold_wanted){c->id.key, &c->hold, c->kind == CMD_HOLD_CONFIRM ? &c->booking : NULL};
}

/* What is to be read: the events' clocks, and what the commands need. */
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

/* The ledger read its clock at some moment since `before_ms`.  The offset that other threads use
 * moves only as far as that forces it: this thread, or the machine, may have slept in between. */
static void note_time(struct engine *e, int64_t now, int64_t before_ms)
{
    int64_t offset = atomic_load_explicit(&e->now_offset_ms, memory_order_relaxed);
    int64_t least = now - boot_ms(e), most = now - before_ms;
    offset = offset < least ? least : offset > most ? most : offset;
    atomic_store_explicit(&e->now_offset_ms, offset, memory_order_relaxed);
}

/* The locked row of an event of the batch. */
static const struct clock_row *locked_row(const struct batch_read *r, const struct event *e)
{
    for (size_t i = 0; i < r->clocks.n; i++)
        if (r->clocks.v[i].event == e->def->id.key)
            return &r->clocks.v[i];
    hf_check(!"an event of the batch is not locked");
    return NULL;
}

/* Under the lock the view becomes the ledger's, by the rows that others wrote or, when those cannot
 * be had, by loading the event anew; only then is anything decided on it. */
static enum hf_status make_exact(struct worker *w, struct hf_err *err)
{
    struct decision *d = &w->decision;
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < d->events.n && status == HF_OK; i++) {
        struct event *e = d->events.v[i];
        const struct clock_row *row = locked_row(&w->read, e);
        bool moved = row->seq != e->clock.seq || row->fence != e->clock.fence;
        if (moved && !e->stale && w->engine->has_others)
            e->stale = !catch_up(w->view, e, &w->read.since);
        if (moved && (!w->engine->has_others || e->clock.seq != row->seq))
            e->stale = true;
        e->clock = e->draft = *row;
        if (e->stale)
            status = load_again(w->ledger, w->view, e, err);
    }
    return status;
}

static enum hf_status lock_and_read(struct worker *w, struct command *const *commands, size_t n,
                                    struct hf_err *err)
{
    struct engine *e = w->engine;
    int64_t before_ms = boot_ms(e), confirmed_ms = engine_now_ms(e);
    choose_reads(w, commands, n);
    enum hf_status status = ledger_begin(w->ledger, err);
    if (status == HF_OK)
        status = ledger_batch_read(w->ledger, &w->read, err);
    if (status != HF_OK)
        return status;
    w->decision.now = w->read.now;
    note_time(e, w->read.now, before_ms);
    atomic_store_explicit(&e->contact_ms, before_ms, memory_order_relaxed);
    status = make_exact(w, err);
    for (size_t i = 0; status == HF_OK && i < w->decision.events.n; i++)
        atomic_store_explicit(&w->decision.events.v[i]->confirmed_ms, confirmed_ms,
                              memory_order_relaxed);
    return status;
}

/* Where others write too, a batch may have waited for them to leave the event: whoever came for the
 * same events meanwhile comes along.  Those that do not fit wait for the next batch. */
static enum hf_status let_join(struct worker *w, struct command **commands, size_t *n,
                               struct hf_err *err)
{
    size_t room = w->engine->config.batch_len_max - *n - w->n_late, first = *n;
    if (!w->engine->has_others || *n == 0 || commands != w->commands) /* the last: one alone */
        return HF_OK;
    size_t taken = lane_take(&w->work, commands + *n, room, 0);
    taken = taken == LANE_CLOSED ? 0 : taken;
    for (size_t i = first; i < first + taken; i++) {
        struct command *c = commands[i];
        c->gate_refused = false;
        if (c->event && c->event->in_batch && c->kind != CMD_FOLLOW && c->kind != CMD_COMPARE &&
            c->kind != CMD_EVENT_LOAD)
            commands[(*n)++] = c;
        else
            w->late[w->n_late++] = c;
    }
    vec_clear(&w->read.keys);
    vec_clear(&w->read.holds);
    for (size_t i = first; i < *n; i++)
        choose_rows(w, commands[i], i);
    return w->read.keys.n || w->read.holds.n ? ledger_wanted_read(w->ledger, &w->read, err) : HF_OK;
}

static enum hf_status create_event(struct worker *w, struct command *c, struct hf_err *err)
{
    c->now = w->decision.now;
    random_bytes(&w->random, c->def->id.secret, ID_SECRET_SIZE);
    c->status = HF_CREATED;
    w->created = c->def;
    return ledger_event_insert(w->ledger, c->def, w->decision.now, err);
}

static bool succeeded(const struct command *c) { return hf_status_http(c->status) < 300; }

static enum decided decide_one(struct worker *w, struct command *c, const struct key_row *stored,
                               enum hf_status *status, struct hf_err *err)
{
    enum decided decided = DECIDED;
    switch (c->kind) {
    case CMD_KEY_CHECK:
        c->status = HF_NOT_FOUND;
        decided = decide_stored(&w->decision, c, stored);
        break;
    case CMD_EVENT_CREATE:
        decided = decide_stored(&w->decision, c, stored);
        if (decided == UNDECIDED && *status == HF_OK)
            *status = create_event(w, c, err);
        break;
    default:
        decided = decide_command(&w->decision, c, stored);
    }
    return decided == UNDECIDED ? DECIDED : decided;
}

/* Decide each command in order; the deferred ones move to the next batch. */
static enum hf_status decide_all(struct worker *w, struct command **commands, size_t *n,
                                 struct hf_err *err)
{
    size_t kept = 0;
    enum hf_status status = HF_OK;
    w->n_deferred = 0;
    for (size_t i = 0; i < *n; i++) {
        struct command *c = commands[i];
        if (decide_one(w, c, &w->stored[i], &status, err) == DEFERRED) {
            w->deferred[w->n_deferred++] = c;
            continue;
        }
        commands[kept++] = c;
        if (status == HF_OK && c->has_key && !c->replayed && succeeded(c)) {
            c->body.len = 0;
            c->http_status = w->engine->config.render(c, &c->body);
            c->rendered = true;
            decide_keep_answer(&w->decision, c);
            if (!w->engine->has_others)
                key_filter_add(&w->engine->filter, c->key_hash, w->decision.now);
        }
    }
    *n = kept;
    return status;
}

static enum hf_status commit(struct worker *w, struct hf_err *err)
{
    struct decision *d = &w->decision;
    if (!decide_has_effects(d) && !w->created) {
        ledger_rollback(w->ledger);
        return HF_OK;
    }
    decide_seal(d);
    enum hf_status status = ledger_write(w->ledger, &d->batch, err);
    if (status != HF_OK)
        return status;
    int64_t start_us = monotonic_us(w->engine);
    status = ledger_commit(w->ledger, err);
    histogram_observe(w->engine->metrics.commit_seconds,
                      (uint64_t)(monotonic_us(w->engine) - start_us));
    return status;
}

static struct outcome try_batch(struct worker *w, struct command **commands, size_t *n)
{
    struct outcome out = {0};
    struct decision *d = &w->decision;
    int64_t exchanges = ledger_exchanges(w->ledger);
    decide_begin(d);
    w->created = NULL;
    w->n_deferred = 0;
    choose_events(w, commands, *n);
    out.status = lock_and_read(w, commands, *n, &out.err);
    if (out.status == HF_OK)
        out.status = let_join(w, commands, n, &out.err);
    if (out.status == HF_OK) {
        /* again, since catching up may have replaced the holds */
        size_t n_due = view_due(w->view, d->now, w->due, expire_max(*n));
        for (size_t i = 0; i < n_due;)
            if (w->due[i]->event->in_batch)
                i++;
            else
                w->due[i] = w->due[--n_due];
        decide_expire(d, w->due, n_due);
        out.status = decide_all(w, commands, n, &out.err);
    }
    if (out.status == HF_OK)
        out.status = commit(w, &out.err);
    if (out.status != HF_OK)
        ledger_rollback(w->ledger);
    counter_add(w->engine->metrics.ledger_exchanges,
                (uint64_t)(ledger_exchanges(w->ledger) - exchanges));
    return out;
}

/* ---- answers ---- */

static enum result result_of(const struct command *c)
{
    return succeeded(c)                 ? RESULT_GRANTED
           : c->status == HF_SEAT_TAKEN ? RESULT_TAKEN
           : c->status == HF_SOLD_OUT   ? RESULT_SOLD_OUT
                                        : RESULT_ERROR;
}

static void count_answer(struct engine *e, const struct command *c)
{
    struct engine_metrics *m = &e->metrics;
    if (c->replayed)
        return;
    switch (c->kind) {
    case CMD_HOLD_CREATE:
        if (c->gate_refused)
            counter_add(
                c->status == HF_SEAT_TAKEN ? m->requests_gate_taken : m->requests_gate_sold_out, 1);
        else
            counter_add(m->requests[result_of(c)], 1);
        histogram_observe(m->hold_seconds, (uint64_t)(monotonic_us(e) - c->submitted_us));
        break;
    case CMD_HOLD_RENEW:
        counter_add(succeeded(c) ? m->renewals_ok : m->renewals_refused, 1);
        break;
    case CMD_HOLD_CONFIRM:
        if (c->status == HF_CREATED)
            counter_add(m->bookings_confirmed, 1);
        else if (c->status == HF_SEAT_SOLD)
            counter_add(m->sale_conflicts, 1);
        break;
    default:
        break;
    }
}

void batch_answer(struct worker *w, struct command *const *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        count_answer(w->engine, commands[i]);
        engine_finish(w->engine, commands[i]);
    }
}

static void answer_failure(struct worker *w, struct command *const *commands, size_t n,
                           enum hf_status status, const struct hf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        commands[i]->status = status;
        commands[i]->rendered = commands[i]->replayed = commands[i]->gate_refused = false;
        commands[i]->err = *err;
    }
    batch_answer(w, commands, n);
}

/* After a COMMIT of unknown outcome: find out.  HF_OK: it happened.  HF_LEDGER_UNAVAILABLE: it did
 * not and never will.  HF_OUTCOME_UNKNOWN: still not known after 5 s, or at the end (I14). */
static enum hf_status settle(struct worker *w)
{
    struct hf_err err;
    int64_t until_us = clock_monotonic_us(&clock_system) + SETTLE_TRIES * (SETTLE_PAUSE_NS / 1000);
    for (int i = 0; i < SETTLE_TRIES && clock_monotonic_us(&clock_system) < until_us; i++) {
        bool happened = false;
        if (engine_gave_up(w->engine))
            break;
        if (ledger_resolve(w->ledger, &w->decision.batch, w->read.clocks.v, w->read.clocks.n,
                           w->created, &happened, &err) == HF_OK)
            return happened ? HF_OK : HF_LEDGER_UNAVAILABLE;
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_PAUSE_NS}, NULL);
    }
    return HF_OUTCOME_UNKNOWN;
}

static void publish(struct worker *w, size_t n)
{
    struct engine *e = w->engine;
    struct decision *d = &w->decision;
    bool effects = decide_has_effects(d) || w->created;
    decide_publish(d);
    for (size_t i = 0; e->has_others && i < d->batch.clocks.n; i++)
        follower_announce(e, view_event(w->view, d->batch.clocks.v[i].after.event));
    counter_add(e->metrics.holds_expired, d->expired);
    worker_note_holds(w);
    if (n)
        histogram_observe(e->metrics.batch_commands, n);
    w->rows_since_checkpoint += d->batch.seats.n + d->batch.keys.n;
    if (w->rows_since_checkpoint > CHECKPOINT_EVERY_ROWS) {
        w->rows_since_checkpoint = 0;
        engine_wants_checkpoint(e);
    }
    if (effects)
        worker_succeeded(w);
}

/* ---- the whole way ---- */

static void run(struct worker *w, struct command **commands, size_t n, bool alone);

/* The ledger holds something else than the view believed.  Read the events again and judge each
 * command alone; when that surprises too, the surprise is the command's answer. */
static void after_surprise(struct worker *w, struct command **commands, size_t n, bool alone,
                           const char *table)
{
    struct engine *e = w->engine;
    counter_add(e->metrics.surprises, 1);
    log_write(LOG_ERROR, "the ledger disagrees with the view", "table", table, "commands",
              LOG_INT(n), NULL);
    for (size_t i = 0; i < w->decision.events.n; i++)
        w->decision.events.v[i]->stale = true;
    if (alone) {
        struct hf_err err = {0};
        bool sold = commands[0]->kind == CMD_HOLD_CONFIRM && strcmp(table, "sold_seats") == 0;
        answer_failure(w, commands, 1, sold ? HF_SEAT_SOLD : HF_INTERNAL, &err);
        return;
    }
    struct command **each = hf_alloc((n + 1) * sizeof *each);
    memcpy(each, commands, n * sizeof *each);
    for (size_t i = 0; i < n; i++)
        run(w, &each[i], 1, true);
    free(each);
}

/* Take the batch back; those it deferred share its fate. */
static size_t undo(struct worker *w, struct command **commands, size_t n)
{
    decide_undo(&w->decision);
    for (size_t i = 0; i < w->n_deferred; i++)
        commands[n++] = w->deferred[i];
    w->n_deferred = 0;
    return n;
}

/* A ledger that is away fails thousands of batches a second: the log hears of them now and then,
 * and of due holds that cannot be ended, once. */
static void say_failure(struct worker *w, size_t n_commands, const char *why)
{
    int64_t now_us = monotonic_us(w->engine);
    w->unsaid += n_commands;
    if (now_us < w->next_say_us || (!w->unsaid && w->failing))
        return;
    log_write(LOG_ERROR, "the batch was not stored", "why", why, "commands", LOG_INT(w->unsaid),
              NULL);
    w->next_say_us = now_us + SAY_EVERY_US;
    w->unsaid = 0;
}

/* `alone`: one command, after a surprise. */
static void run(struct worker *w, struct command **commands, size_t n, bool alone)
{
    size_t kept = n;
    struct outcome out = try_batch(w, commands, &kept);
    for (int i = 1; out.status == HF_LEDGER_CONFLICT && i < CONFLICT_TRIES; i++) {
        counter_add(w->engine->metrics.conflicts, 1);
        kept = undo(w, commands, kept);
        out = try_batch(w, commands, &kept);
    }
    enum hf_status status = out.status;
    if (status == HF_OUTCOME_UNKNOWN) {
        worker_failed(w, out.err.msg);
        status = settle(w);
    }
    if (status == HF_OK) {
        publish(w, kept);
        if (batch_settle_prepare(w, true))
            batch_settle(w);
        batch_answer(w, commands, kept);
        batch_settle(w);
        return;
    }
    batch_settle_prepare(w, false);
    batch_settle(w);
    kept = undo(w, commands, kept);
    if (status == HF_LEDGER_SURPRISE) {
        after_surprise(w, commands, kept, alone, out.err.msg);
        return;
    }
    say_failure(w, kept, out.err.msg);
    worker_failed(w, out.err.msg);
    answer_failure(w, commands, kept, status, &out.err);
}

void batch_run(struct worker *w, struct command **commands, size_t n)
{
    batch_claim(w, commands, &n);
    const struct hold *first = view_first_due(w->view);
    if (n || (first && first->expires_at <= engine_now_ms(w->engine)))
        run(w, commands, n, false);
}
