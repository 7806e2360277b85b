/* The reconciler: a thread that compares, every reconcile_every_ms, what this server remembers with
 * the ledger, which is right.
 *   views   this server's own events, one slice of seats at a time, by their worker under the lock
 *   gate    by one server at a time, which holds an advisory lock of the ledger (reconcile_gate.c)
 *
 * Each repair is counted by kind.  A healthy system needs none but after the gate was lost.
 *
 * Between rounds the thread asks whether the gate answers, so that a lost one is used again and an
 * idle server notices that it is gone. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wait.h"
#include "engine/batch_gate.h"
#include "engine/load.h"
#include "engine/reconcile.h"
#include "engine/reconcile_internal.h"

#define EVERY_MS 30000
#define PING_EVERY_MS 500
#define SLICE_SEATS 4096 /* compared at once, under the event's lock */
#define SLICE_PAUSE_MS 10
#define LOCK_NUMBER 0x686f6c64 /* of the advisory lock */
#define GATE_CALL_MS 5000

void reconciler_repaired(struct reconciler *r, enum repair kind, size_t n)
{
    if (!n)
        return;
    counter_add(r->engine->metrics.repairs[kind], n);
    log_write(LOG_WARN, "reconciled", "what", repair_names[kind], "repairs", LOG_INT(n), NULL);
}

bool reconciler_pause(struct reconciler *r, int64_t ms)
{
    int64_t until_us = wait_now_us() + ms * 1000;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping && wait_cond_until(&r->wake, &r->lock, until_us))
        ;
    bool stopping = r->stopping;
    pthread_mutex_unlock(&r->lock);
    return stopping;
}

bool reconciler_is_stopping(struct reconciler *r) { return reconciler_pause(r, 0); }

/* ---- the view ---- */

struct slice {
    const struct view *view;
    const struct event *event;
    uint32_t next, last; /* seats before `next` have been compared */
    VEC(int64_t) holds;  /* of the held seats in between; a hold may be listed several times */
    bool same;           /* no difference so far */
};

/* Notes the hold of a held seat, once for neighbours of the same hold. */
static void note_hold(struct slice *s, int64_t hold)
{
    if (!s->holds.n || s->holds.v[s->holds.n - 1] != hold)
        *vec_push(&s->holds) = hold;
}

/* The ledger lists only the seats that have a row: those before `until` are available or held. */
static void compare_others(struct slice *s, uint32_t until)
{
    for (; s->next < until; s->next++) {
        const struct seat *seat = &s->event->seats[s->next];
        enum seat_status status = (enum seat_status)seat->status;
        int64_t hold = seat_hold(s->event, s->next);
        s->same &= seat_row_status(status, seat->channel) == SEAT_AVAILABLE && !seat->channel;
        if (status == SEAT_HELD)
            note_hold(s, hold);
    }
}

static void compare_seat(void *ctx, uint32_t index, const struct seat_row *row)
{
    struct slice *s = ctx;
    if (index > s->last || index < s->next)
        return;
    compare_others(s, index);
    const struct seat *seat = &s->event->seats[index];
    enum seat_status status = (enum seat_status)seat->status;
    int64_t hold = seat_hold(s->event, index);
    s->same &= seat_row_status(status, seat->channel) == row->status &&
               seat->channel == row->channel && (status == SEAT_BOOKED ? hold : 0) == row->hold;
    if (status == SEAT_HELD)
        note_hold(s, hold);
    s->next = index + 1;
}

/* The hold that the view gives a seat to must be live, and list the same seats. */
static void compare_hold(void *ctx, size_t i, const struct hold_row *row)
{
    struct slice *s = ctx;
    const struct hold *h = view_hold(s->view, s->holds.v[i]);
    s->same &= h && row->id.key == h->key && row->status == HOLD_ACTIVE && row->fence == h->fence &&
               row->expires_at == h->expires_at && row->channel == h->channel &&
               row->n_seats == h->n_seats &&
               memcmp(row->seats, h->seats, h->n_seats * sizeof *h->seats) == 0;
}

static bool same_blocks(const struct area_blocks *a, const struct area_blocks *b)
{
    return a->list.n == b->list.n &&
           (!a->list.n || memcmp(a->list.v, b->list.v, a->list.n * sizeof *a->list.v) == 0);
}

static void compare_area(void *ctx, uint32_t index, const struct area_row *row)
{
    struct slice *s = ctx;
    const struct area *area = &s->event->areas[index];
    s->same &= index < s->event->def->areas.n && area->held == row->held &&
               area->booked == row->booked && same_blocks(&area->blocks, row->blocks);
}

static enum hf_status compare_seats(struct ledger *l, struct slice *s, uint32_t end,
                                    struct hf_err *err)
{
    int64_t key = s->event->def->id.key;
    enum hf_status status = ledger_seats_read(l, key, s->next, s->last, compare_seat, s, err);
    if (status != HF_OK)
        return status;
    compare_others(s, end);
    return ledger_holds_visit(l, s->holds.v, s->holds.n, compare_hold, s, err);
}

/* What belongs to no slice: status, areas, and that the ledger has no live hold beside those of the
 * view. */
static enum hf_status compare_event_state(struct ledger *l, struct slice *s, struct hf_err *err)
{
    const struct event *e = s->event;
    enum event_status open = e->status_draft;
    int64_t n_holds = 0;
    enum hf_status status = ledger_event_state(l, e->def->id.key, &open, compare_area, s, err);
    if (status == HF_OK)
        status = ledger_holds_count(l, e->def->id.key, &n_holds, err);
    s->same &= open == e->status_draft && n_holds == e->n_holds;
    return status;
}

/* Compares one slice with the ledger; the event is locked, and the view has caught up. */
static enum hf_status compare_slice(struct worker *w, struct event *e, uint32_t first,
                                    bool *ret_same, struct hf_err *err)
{
    uint32_t n = e->def->n_seats, end = n - first > SLICE_SEATS ? first + SLICE_SEATS : n;
    struct slice s = {
        .view = w->view, .event = e, .next = first, .last = end ? end - 1 : 0, .same = true};
    enum hf_status status = HF_OK;
    if (end > first)
        status = compare_seats(w->ledger, &s, end, err);
    if (status == HF_OK && first == 0)
        status = compare_event_state(w->ledger, &s, err);
    *ret_same = s.same;
    vec_close(&s.holds);
    return status;
}

static enum hf_status compare(struct worker *w, struct command *c, struct hf_err *err)
{
    struct event *e = c->event;
    bool same = true;
    batch_read_clear(&w->read);
    *vec_push(&w->read.clocks) = e->clock;
    enum hf_status status = ledger_batch_read(w->ledger, &w->read, err);
    if (status != HF_OK)
        return status;
    if (!e->stale)
        status = load_since(w, e, &w->read.since, err);
    if (status != HF_OK)
        return status;
    if (e->stale || e->clock.seq != w->read.clocks.v[0].seq)
        return HF_OK; /* the next batch loads the event again */
    status = compare_slice(w, e, c->compare.first, &same, err);
    if (status != HF_OK || same)
        return status;
    c->compare.repaired = true;
    return load_again(w, e, err);
}

void reconcile_compare(struct worker *w, struct command *c)
{
    enum hf_status status = ledger_begin(w->ledger, &c->err);
    if (status == HF_OK) {
        status = compare(w, c, &c->err);
        ledger_rollback(w->ledger);
    }
    c->verdict = verdict_of(status);
    worker_note_holds(w);
}

/* On the worker's thread: the command has been carried out. */
static void on_compared(struct pending *pending)
{
    struct reconciler *r = pending->waiter;
    pthread_mutex_lock(&r->lock);
    r->compared = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

/* Compares the event slice by slice.  Returns false if the reconciler is to stop. */
static bool compare_event(struct reconciler *r, struct event *e)
{
    struct command *c = hf_alloc(sizeof *c);
    uint32_t first = 0;
    bool go_on = true;
    do {
        *c = (struct command){.kind = CMD_COMPARE,
                              .event = e,
                              .pending = {.done = on_compared, .waiter = r},
                              .compare.first = first};
        pthread_mutex_lock(&r->lock);
        r->compared = false;
        pthread_mutex_unlock(&r->lock);
        if (!lane_pass(&engine_worker(r->engine, e->def->id.key)->work, c))
            break;
        pthread_mutex_lock(&r->lock);
        while (!r->compared)
            pthread_cond_wait(&r->wake, &r->lock);
        pthread_mutex_unlock(&r->lock);
        if (c->compare.repaired) {
            reconciler_repaired(r, REPAIR_VIEW, 1);
            break; /* the whole event was read again */
        }
        first += SLICE_SEATS;
        go_on = !reconciler_pause(r, SLICE_PAUSE_MS);
    } while (go_on && c->verdict == VERDICT_OK && first < e->def->n_seats);
    free(c);
    return go_on;
}

static void compare_views(struct reconciler *r)
{
    struct loaded loaded = {0};
    engine_list_loaded(r->engine, &loaded);
    for (size_t i = 0; i < loaded.events.n; i++)
        if (!compare_event(r, loaded.events.v[i]))
            break;
    loaded_close(&loaded);
}

/* ---- the thread ---- */

static void ping_gate(struct reconciler *r)
{
    struct hf_fault fault = {0};
    struct engine *e = r->engine;
    if (!r->gate)
        return;
    bool answers = gate_ping(r->gate, &fault) == HF_DONE;
    if (!answers && atomic_load(&e->gate_up))
        engine_gate_failed(e, &fault);
    else if (answers && !atomic_exchange(&e->gate_up, true))
        log_write(LOG_INFO, "the gate answers again", NULL);
}

/* Compares the gate, unless another server is doing so.  The lock is given back after each round,
 * so that another server goes on should this one stop or lose the gate. */
static void reconcile_gate_if_free(struct reconciler *r)
{
    struct hf_err err = {0};
    bool locked = false;
    if (!r->gate || !atomic_load(&r->engine->gate_up) ||
        ledger_try_lock(r->ledger, LOCK_NUMBER, &locked, &err) != HF_OK || !locked)
        return;
    reconcile_gate(r);
    if (ledger_unlock_all(r->ledger, &err) != HF_OK)
        log_write(LOG_WARN, "the reconciler's lock was not given back", "why", err.msg, NULL);
}

static void *reconciler_main(void *arg)
{
    struct reconciler *r = arg;
    struct engine *e = r->engine;
    int64_t every_ms = e->config.reconcile_every_ms ? e->config.reconcile_every_ms : EVERY_MS;
    int64_t left_ms = every_ms;
    while (!reconciler_pause(r, left_ms < PING_EVERY_MS ? left_ms : PING_EVERY_MS)) {
        left_ms -= left_ms < PING_EVERY_MS ? left_ms : PING_EVERY_MS;
        ping_gate(r);
        if (left_ms > 0)
            continue;
        left_ms = every_ms;
        compare_views(r);
        reconcile_gate_if_free(r);
    }
    return NULL;
}

enum hf_status reconciler_start(struct engine *e, struct hf_err *err)
{
    struct reconciler *r = hf_alloc(sizeof *r);
    struct db_options options = engine_db_options(e);
    struct hf_fault fault = {0};
    e->reconciler = r; /* reconciler_free closes what is open, should this fail */
    r->engine = e;
    pthread_mutex_init(&r->lock, NULL);
    wait_cond_init(&r->wake);
    enum hf_status status = ledger_join(e->config.ledger_url, &options, &r->ledger, err);
    if (status != HF_OK)
        return status;
    if (e->config.gate_url &&
        gate_open(e->config.gate_url, e->config.clock, GATE_CALL_MS, &r->gate, &fault) != HF_DONE)
        return hf_err_set(err, HF_INVALID_REQUEST, "the gate: %s", fault.msg);
    if (pthread_create(&r->thread, NULL, reconciler_main, r) != 0)
        return hf_err_set(err, HF_INTERNAL, "cannot start a thread");
    r->running = true;
    return HF_OK;
}

void reconciler_ask_to_stop(struct engine *e)
{
    struct reconciler *r = e->reconciler;
    if (!r || !r->running)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

void reconciler_stop(struct engine *e)
{
    struct reconciler *r = e->reconciler;
    if (!r || !r->running)
        return;
    reconciler_ask_to_stop(e);
    pthread_join(r->thread, NULL);
    r->running = false;
}

void reconciler_free(struct engine *e)
{
    struct reconciler *r = e->reconciler;
    if (!r)
        return;
    ledger_close(r->ledger);
    gate_close(r->gate);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    free(r);
    e->reconciler = NULL;
}
