/* The worker: takes what is queued as one batch and walks it through
 *     lock -> read -> decide -> write -> commit -> publish -> reply
 * in straight-line code.  Load makes batches larger, so one fsync serves hundreds of buyers.  Owns
 * the writing connection and the worker's side of the view.  Keeps I7: nothing is shown or answered
 * before the commit, and everything is taken back when it fails. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "engine/internal.h"

static int64_t monotonic_us(const struct engine *e) { return clock_monotonic_us(e->config.clock); }

/* How one try at a batch ended. */
struct outcome {
    enum hf_status status; /* HF_OK: committed */
    const char *surprise;  /* the table whose row count was wrong */
    struct hf_err err;
};

/* ---- steps of a batch ---- */

static size_t expire_max(size_t n_commands) { return n_commands ? EXPIRE_MAX_BUSY : EXPIRE_MAX; }

/* Lock every event the batch may touch: those of its commands and of the holds falling due. */
static size_t choose_events(struct worker *w, struct command *const *commands, size_t n)
{
    struct engine *e = w->engine;
    for (size_t i = 0; i < n; i++)
        if (commands[i]->event)
            decide_add_event(&w->decision, commands[i]->event);
    size_t n_due = view_due(e->view, engine_now_ms(e), w->due, expire_max(n));
    for (size_t i = 0; i < n_due; i++)
        decide_add_event(&w->decision, w->due[i]->event);
    return n_due;
}

static int64_t boot_ms(const struct engine *e) { return clock_boot_us(e->config.clock) / 1000; }

/* The ledger read its clock at some moment since `before_ms`.  The offset that other threads use
 * moves only as far as that forces it: this thread, or the machine, may have slept in between. */
static void note_time(struct engine *e, int64_t now, int64_t before_ms)
{
    int64_t offset = atomic_load_explicit(&e->now_offset_ms, memory_order_relaxed);
    int64_t least = now - boot_ms(e), most = now - before_ms;
    offset = offset < least ? least : offset > most ? most : offset;
    atomic_store_explicit(&e->now_offset_ms, offset, memory_order_relaxed);
}

static enum hf_status lock_events(struct worker *w, bool catalogue, struct hf_err *err)
{
    struct decision *d = &w->decision;
    int64_t before_ms = boot_ms(w->engine);
    VEC(struct clock_row) rows = {0};
    if (catalogue)
        vec_push(&rows); /* event 0 */
    for (size_t i = 0; i < d->events.n; i++)
        vec_push(&rows)->event = d->events.v[i]->def->id.key;
    enum hf_status status = ledger_lock(w->ledger, rows.v, rows.n, &d->now, err);
    for (size_t i = 0; status == HF_OK && i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        hf_check(i + catalogue < rows.n);
        const struct clock_row *row = &rows.v[i + catalogue];
        if (row->seq != e->clock.seq || row->fence != e->clock.fence)
            e->stale = true; /* somebody else wrote: the view must be read again */
        e->clock = e->draft = *row;
    }
    vec_close(&rows);
    if (status == HF_OK)
        note_time(w->engine, d->now, before_ms);
    return status;
}

/* Events found to differ from the ledger are loaded anew before anything is decided on them. */
static enum hf_status refresh_stale(struct worker *w, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < w->decision.events.n && status == HF_OK; i++)
        if (w->decision.events.v[i]->stale)
            status = load_again(w->ledger, w->engine->view, w->decision.events.v[i], err);
    return status;
}

static bool names_hold(const struct command *c)
{
    return c->kind == CMD_HOLD_RENEW || c->kind == CMD_HOLD_RELEASE || c->kind == CMD_HOLD_EVICT ||
           c->kind == CMD_HOLD_CONFIRM;
}

/* What the view does not know: stored keys, the rows of named holds, bookings made earlier. */
static enum hf_status read_rows(struct worker *w, struct command *const *commands, size_t n,
                                struct hf_err *err)
{
    enum hf_status status = HF_OK;
    for (size_t i = 0; i < n; i++)
        key_row_close(&w->stored[i]);
    for (size_t i = 0; i < n && status == HF_OK; i++) {
        struct command *c = commands[i];
        if (c->has_key && key_filter_maybe(&w->engine->filter, c->key_hash)) {
            const uint8_t *hash = c->key_hash;
            status = ledger_keys_read(w->ledger, &hash, 1, w->decision.now, &w->stored[i], err);
        }
        if (status != HF_OK || !names_hold(c))
            continue;
        hold_row_close(&c->hold);
        status = ledger_holds_read(w->ledger, &c->id.key, 1, &c->hold, err);
        if (status == HF_OK && c->kind == CMD_HOLD_CONFIRM && c->hold.status == HOLD_CONFIRMED) {
            booking_row_close(&c->booking);
            status = ledger_booking_read(w->ledger, c->id.key, &c->booking, err);
        }
    }
    return status;
}

static enum hf_status create_event(struct worker *w, struct command *c, struct hf_err *err)
{
    c->now = w->decision.now;
    random_bytes(&w->random, c->def->id.secret, ID_SECRET_SIZE);
    c->status = HF_CREATED;
    w->inserted_event = true;
    return ledger_event_insert(w->ledger, c->def, w->decision.now, err);
}

static bool succeeded(const struct command *c) { return hf_status_http(c->status) < 300; }

/* Decide each command in order; the deferred ones move to the next batch. */
static enum hf_status decide_all(struct worker *w, struct command **commands, size_t *n,
                                 struct hf_err *err)
{
    size_t kept = 0;
    enum hf_status status = HF_OK;
    w->n_deferred = 0;
    for (size_t i = 0; i < *n; i++) {
        struct command *c = commands[i];
        enum decided decided;
        if (c->kind == CMD_KEY_CHECK) {
            c->status = HF_NOT_FOUND;
            decided = decide_stored(&w->decision, c, &w->stored[i]);
        } else if (c->kind != CMD_EVENT_CREATE) {
            decided = decide_command(&w->decision, c, &w->stored[i]);
        } else {
            decided = decide_stored(&w->decision, c, &w->stored[i]);
            if (decided == UNDECIDED && status == HF_OK)
                status = create_event(w, c, err);
        }
        if (decided == DEFERRED) {
            w->deferred[w->n_deferred++] = c;
            continue;
        }
        commands[kept++] = c;
        if (status == HF_OK && c->has_key && !c->replayed && succeeded(c)) {
            c->body.len = 0;
            c->http_status = w->engine->config.render(c, &c->body);
            c->rendered = true;
            decide_keep_answer(&w->decision, c);
            key_filter_add(&w->engine->filter, c->key_hash, w->decision.now);
        }
    }
    *n = kept;
    return status;
}

static enum hf_status commit(struct worker *w, struct outcome *out)
{
    struct decision *d = &w->decision;
    if (!decide_has_effects(d) && !w->inserted_event) {
        ledger_rollback(w->ledger);
        return HF_OK;
    }
    decide_seal(d);
    enum hf_status status = ledger_write(w->ledger, &d->batch, &out->surprise, &out->err);
    if (status != HF_OK || out->surprise)
        return status;
    int64_t start_us = monotonic_us(w->engine);
    status = ledger_commit(w->ledger, &out->err);
    histogram_observe(w->engine->metrics.commit_seconds,
                      (uint64_t)(monotonic_us(w->engine) - start_us));
    return status;
}

static struct outcome try_batch(struct worker *w, struct command **commands, size_t *n)
{
    struct outcome out = {0};
    struct decision *d = &w->decision;
    bool catalogue = false;
    for (size_t i = 0; i < *n; i++)
        catalogue |= commands[i]->kind == CMD_EVENT_CREATE;
    decide_begin(d);
    w->inserted_event = false;
    w->n_deferred = 0;
    choose_events(w, commands, *n);
    out.status = ledger_begin(w->ledger, &out.err);
    if (out.status == HF_OK)
        out.status = lock_events(w, catalogue, &out.err);
    if (out.status == HF_OK)
        out.status = refresh_stale(w, &out.err);
    if (out.status == HF_OK)
        out.status = read_rows(w, commands, *n, &out.err);
    if (out.status == HF_OK) {
        /* again, since loading anew may have replaced the holds */
        size_t n_due = view_due(w->engine->view, d->now, w->due, expire_max(*n));
        for (size_t i = 0; i < n_due;)
            if (w->due[i]->event->in_batch)
                i++;
            else
                w->due[i] = w->due[--n_due];
        decide_expire(d, w->due, n_due);
        out.status = decide_all(w, commands, n, &out.err);
    }
    if (out.status == HF_OK)
        out.status = commit(w, &out);
    if (out.status != HF_OK || out.surprise)
        ledger_rollback(w->ledger);
    return out;
}

/* ---- answers ---- */

static void count_answer(struct engine *e, const struct command *c)
{
    struct engine_metrics *m = &e->metrics;
    if (c->replayed)
        return;
    switch (c->kind) {
    case CMD_HOLD_CREATE:
        counter_add(m->requests[succeeded(c)                 ? RESULT_GRANTED
                                : c->status == HF_SEAT_TAKEN ? RESULT_TAKEN
                                : c->status == HF_SOLD_OUT   ? RESULT_SOLD_OUT
                                                             : RESULT_ERROR],
                    1);
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

static void answer_all(struct worker *w, struct command *const *commands, size_t n)
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
        commands[i]->rendered = commands[i]->replayed = false;
        commands[i]->err = *err;
    }
    answer_all(w, commands, n);
}

/* After a COMMIT of unknown outcome: a later commit that succeeds proves that it never happened.
 * HF_LEDGER_UNAVAILABLE: it did not.  HF_OUTCOME_UNKNOWN: still not known after 5 s (I14). */
static enum hf_status settle(struct worker *w)
{
    struct hf_err err;
    for (int i = 0; i < SETTLE_TRIES; i++) {
        if (ledger_probe(w->ledger, &err) == HF_OK)
            return HF_LEDGER_UNAVAILABLE;
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_PAUSE_NS}, NULL);
    }
    return HF_OUTCOME_UNKNOWN;
}

/* Until then no hold runs out, so counts of what is left are exact. */
static void note_first_due(struct engine *e)
{
    const struct hold *first = view_first_due(e->view);
    atomic_store_explicit(&e->first_due_ms, first ? first->expires_at : INT64_MAX,
                          memory_order_relaxed);
}

static void after_commit(struct worker *w, size_t n)
{
    struct engine *e = w->engine;
    struct decision *d = &w->decision;
    decide_publish(d);
    counter_add(e->metrics.holds_expired, d->expired);
    gauge_set(e->metrics.holds_active, (int64_t)view_holds_len(e->view));
    note_first_due(e);
    if (n)
        histogram_observe(e->metrics.batch_commands, n);
    w->rows_since_checkpoint += d->batch.seats.n + d->batch.keys.n;
    if (w->rows_since_checkpoint > CHECKPOINT_EVERY_ROWS) {
        w->rows_since_checkpoint = 0;
        engine_wants_checkpoint(e);
    }
    if (decide_has_effects(d) || w->inserted_event)
        engine_set_ready(e, true, NULL);
}

static void run_batch(struct worker *w, struct command **commands, size_t n, bool again);

/* The ledger holds something else than the view believed.  Read the events again and judge each
 * command alone; when that surprises too, the surprise is the command's answer. */
static void after_surprise(struct worker *w, struct command **commands, size_t n, bool again,
                           const char *table)
{
    struct engine *e = w->engine;
    counter_add(e->metrics.surprises, 1);
    log_write(LOG_ERROR, "the ledger disagrees with the view", "table", table, "commands",
              LOG_INT(n), NULL);
    for (size_t i = 0; i < w->decision.events.n; i++)
        w->decision.events.v[i]->stale = true;
    if (again) {
        struct hf_err err = {0};
        bool sold = commands[0]->kind == CMD_HOLD_CONFIRM && strcmp(table, "sold_seats") == 0;
        answer_failure(w, commands, 1, sold ? HF_SEAT_SOLD : HF_INTERNAL, &err);
        return;
    }
    struct command **alone = hf_alloc((n + 1) * sizeof *alone);
    memcpy(alone, commands, n * sizeof *alone);
    for (size_t i = 0; i < n; i++)
        run_batch(w, &alone[i], 1, true);
    free(alone);
}

/* `again`: one command, alone after a surprise. */
static void run_batch(struct worker *w, struct command **commands, size_t n, bool again)
{
    size_t kept = n;
    struct outcome out = try_batch(w, commands, &kept);
    if (out.status == HF_OK && !out.surprise) {
        after_commit(w, kept);
        answer_all(w, commands, kept);
        return;
    }
    decide_undo(&w->decision);
    /* Those deferred by a batch that did not happen share its fate. */
    for (size_t i = 0; i < w->n_deferred; i++)
        commands[kept++] = w->deferred[i];
    w->n_deferred = 0;
    if (out.surprise) {
        after_surprise(w, commands, kept, again, out.surprise);
        return;
    }
    log_write(LOG_ERROR, "the batch was not stored", "why", out.err.msg, "commands", LOG_INT(kept),
              NULL);
    engine_set_ready(w->engine, false, out.err.msg);
    enum hf_status status = out.status == HF_OUTCOME_UNKNOWN ? settle(w) : out.status;
    answer_failure(w, commands, kept, status, &out.err);
}

/* ---- the thread ---- */

/* Events arrive from the loader; they enter the view here, then their commands are done. */
static void install(struct worker *w, struct command *c)
{
    if (c->kind == CMD_EVENT_LOAD && c->event)
        c->event = view_install(w->engine->view, c->event);
    for (size_t i = 0; c->kind == CMD_EVENT_LIST && i < c->list->n; i++)
        c->list->events[i] = view_install(w->engine->view, c->list->events[i]);
    gauge_set(w->engine->metrics.holds_active, (int64_t)view_holds_len(w->engine->view));
    note_first_due(w->engine);
    engine_finish(w->engine, c);
}

void worker_turn(struct worker *w, struct command **commands, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (commands[i]->kind == CMD_EVENT_LOAD || commands[i]->kind == CMD_EVENT_LIST)
            install(w, commands[i]);
        else
            commands[kept++] = commands[i];
    }
    const struct hold *first = view_first_due(w->engine->view);
    if (kept || (first && first->expires_at <= engine_now_ms(w->engine)))
        run_batch(w, commands, kept, false);
}

static void reload(struct worker *w, struct event *event)
{
    struct hf_err err;
    event->stale = true;
    if (ledger_begin(w->ledger, &err) != HF_OK)
        return;
    if (load_again(w->ledger, w->engine->view, event, &err) != HF_OK)
        log_write(LOG_WARN, "an event could not be read again", "why", err.msg, NULL);
    ledger_rollback(w->ledger);
}

/* The time goes into the ledger though nothing else does: should the wall clock be set back before
 * the next start, the ledger's must not follow it, or holds would get longer. */
void worker_note_time(struct worker *w)
{
    struct engine *e = w->engine;
    struct hf_err err;
    int64_t now = engine_now_ms(e);
    if (now <= w->noted_ms || !atomic_load_explicit(&e->ready, memory_order_relaxed))
        return;
    if (ledger_probe(w->ledger, &err) == HF_OK)
        w->noted_ms = now;
    else
        engine_set_ready(e, false, err.msg);
}

/* Expiry by the ledger's own index, for holds of events nobody has loaded, and for whatever the
 * heap may have missed.  A slice a call; again soon while there is more. */
static void sweep(struct worker *w)
{
    struct engine *e = w->engine;
    int64_t keys[SWEEP_SLICE];
    size_t n = 0, loads = 0;
    int64_t now = engine_now_ms(e), last = 0, pruned = 0;
    struct hf_err err;
    w->next_sweep_us = monotonic_us(e) + SWEEP_EVERY_US;
    worker_note_time(w);
    if (ledger_holds_due(w->ledger, now, SWEEP_SLICE, keys, &n, &err) != HF_OK ||
        ledger_keys_prune(w->ledger, now, PRUNE_SLICE, &pruned, &err) != HF_OK) {
        log_write(LOG_WARN, "sweep failed", "why", err.msg, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct event *event = view_event(e->view, HOLD_EVENT(keys[i]));
        if (!event && HOLD_EVENT(keys[i]) != last) {
            last = HOLD_EVENT(keys[i]);
            load_in_background(e, last);
            loads++;
        } else if (event && !view_hold(e->view, keys[i])) {
            counter_add(e->metrics.surprises, 1);
            reload(w, event); /* the heap will find it now */
        }
    }
    if (loads || pruned == PRUNE_SLICE)
        w->next_sweep_us = monotonic_us(e) + SWEEP_AGAIN_US;
}

static void probe(struct worker *w)
{
    struct hf_err err;
    w->next_probe_us = monotonic_us(w->engine) + PROBE_EVERY_US;
    if (ledger_probe(w->ledger, &err) == HF_OK)
        engine_set_ready(w->engine, true, NULL);
}

/* Sleep until the next hold falls due or the next chore, but never long: clocks get stepped. */
static int64_t sleep_us(struct worker *w)
{
    struct engine *e = w->engine;
    if (w->n_deferred)
        return 0;
    int64_t wait_us = IDLE_WAIT_US;
    const struct hold *first = view_first_due(e->view);
    if (first) {
        int64_t due_us = (first->expires_at - engine_now_ms(e)) * 1000;
        wait_us = due_us < wait_us ? due_us : wait_us;
    }
    if (!atomic_load_explicit(&e->ready, memory_order_relaxed) && wait_us <= 0)
        wait_us = PROBE_EVERY_US / 10; /* due holds cannot be expired now: do not spin */
    return wait_us > 0 ? wait_us : 0;
}

void *worker_main(void *arg)
{
    struct engine *e = arg;
    struct worker *w = &e->worker;
    for (;;) {
        int64_t wait_us = sleep_us(w);
        size_t held = w->n_deferred; /* deferred ones come first */
        memcpy(w->commands, w->deferred, held * sizeof *w->commands);
        size_t n = lane_take(&e->work, w->commands + held, e->config.batch_len_max - held, wait_us);
        if (n == LANE_CLOSED && !held)
            break;
        n = held + (n == LANE_CLOSED ? 0 : n);
        w->n_deferred = 0;
        gauge_set(e->metrics.queue_depth, (int64_t)lane_len(&e->work));
        worker_turn(w, w->commands, n);
        int64_t now_us = monotonic_us(e);
        if (now_us >= w->next_sweep_us)
            sweep(w);
        if (!atomic_load_explicit(&e->ready, memory_order_relaxed) && now_us >= w->next_probe_us)
            probe(w);
    }
    return NULL;
}
