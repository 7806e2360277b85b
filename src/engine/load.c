/* The threads beside the worker: the loader brings events into memory on first use, the readers
 * answer what the view cannot.  Each has a connection of its own and never writes.  An event is
 * built here and installed by the worker, which owns the view; until then nobody can have changed
 * it through this server, and what others changed the worker catches up on. */
#include <stdlib.h>

#include "engine/internal.h"

static void on_seat(void *ctx, uint32_t index, enum seat_status status, int64_t hold)
{
    event_load_seat(ctx, index, status, hold);
}

static void on_area(void *ctx, uint32_t index, int64_t held, int64_t booked)
{
    event_load_area(ctx, index, held, booked);
}

static void on_hold(void *ctx, const struct hold_row *row) { event_load_hold(ctx, row); }

static enum hf_status load_state(struct ledger *l, struct event *e, struct hf_err *err)
{
    int64_t key = e->def->id.key;
    enum hf_status status = ledger_event_state(l, key, &e->status_draft, on_area, e, err);
    if (status == HF_OK)
        status = ledger_seats_read(l, key, 0, UINT32_MAX, on_seat, e, err);
    return status == HF_OK ? ledger_holds_active(l, key, on_hold, e, err) : status;
}

/* *ret_event NULL: no such event.  One transaction, so it is the picture of one moment. */
static enum hf_status load_event(struct ledger *l, int64_t key, struct event **ret_event,
                                 struct hf_err *err)
{
    struct event_def *def;
    struct clock_row clock;
    struct event *e = NULL;
    enum hf_status status = ledger_begin(l, err);
    if (status != HF_OK)
        return status;
    status = ledger_event_read(l, key, &def, &clock, err);
    if (status == HF_OK && def) {
        e = event_new(def, &clock);
        status = load_state(l, e, err);
    }
    ledger_rollback(l);
    if (status != HF_OK) {
        event_free(e);
        return status;
    }
    *ret_event = e;
    return HF_OK;
}

enum hf_status load_again(struct ledger *l, struct view *view, struct event *e, struct hf_err *err)
{
    struct clock_row clock = {.event = e->def->id.key};
    int64_t now;
    e->stale = true;
    view_forget(view, e);
    enum hf_status status = ledger_lock(l, &clock, 1, &now, err);
    if (status == HF_OK)
        status = load_state(l, e, err);
    if (status == HF_OK) {
        view_reloaded(view, e, &clock);
        e->stale = false;
    }
    return status;
}

static enum hf_status load_one(struct engine *e, int64_t key, struct event **ret_event,
                               struct hf_err *err)
{
    *ret_event = engine_event(e, key);
    if (*ret_event)
        return HF_OK;
    return load_event(e->loader, key, ret_event, err);
}

static void load_list(struct engine *e, struct command *c)
{
    int64_t keys[EVENTS_LIST_MAX + 1];
    size_t n;
    struct event_list *list = c->list;
    c->status = ledger_events_list(e->loader, list->before, list->limit + 1, keys, &n, &c->err);
    if (c->status != HF_OK)
        return;
    list->more = n > list->limit;
    list->n = 0;
    for (size_t i = 0; i < n && i < list->limit && c->status == HF_OK; i++) {
        struct event *event;
        c->status = load_one(e, keys[i], &event, &c->err);
        if (c->status == HF_OK && event)
            list->events[list->n++] = event;
    }
}

void *loader_main(void *arg)
{
    struct engine *e = arg;
    struct command *c;
    size_t n;
    while ((n = lane_take(&e->load, &c, 1, INT32_MAX)) != LANE_CLOSED) {
        if (!n)
            continue;
        if (c->kind == CMD_EVENT_LIST) {
            load_list(e, c);
        } else {
            c->status = load_one(e, c->event_key, &c->event, &c->err);
            if (c->status == HF_OK && !c->event)
                c->status = HF_NO_SUCH_EVENT;
        }
        /* Its worker installs what was loaded and finishes the command. */
        int64_t owner = c->kind == CMD_EVENT_LOAD ? c->event_key : 0;
        hf_check(lane_pass(&engine_worker(e, owner)->work, c));
    }
    return NULL;
}

void load_in_background(struct engine *e, int64_t event)
{
    struct command *c = hf_alloc(sizeof *c);
    c->kind = CMD_EVENT_LOAD;
    c->internal = true;
    c->event_key = event;
    if (lane_put(&e->load, c) != HF_OK)
        free(c);
}

/* ---- readers ---- */

static void read_hold(struct engine *e, struct ledger *l, struct command *c)
{
    c->status = ledger_holds_read(l, &c->id.key, 1, &c->hold, &c->err);
    if (c->status != HF_OK)
        return;
    c->now = engine_now_ms(e);
    if (!c->hold.id.key || !id_secret_equal(c->hold.id.secret, c->id.secret)) {
        c->status = HF_NO_SUCH_HOLD;
        return;
    }
    /* Dead at its expiry, swept or not (I4). */
    if (c->hold.status == HOLD_ACTIVE && c->hold.expires_at <= c->now)
        c->hold.status = HOLD_EXPIRED;
}

static void read_booking(struct engine *e, struct ledger *l, struct command *c)
{
    c->status = ledger_booking_read(l, c->id.key, &c->booking, &c->err);
    c->now = engine_now_ms(e);
    if (c->status == HF_OK &&
        (!c->booking.id.key || !id_secret_equal(c->booking.id.secret, c->id.secret)))
        c->status = HF_NO_SUCH_BOOKING;
}

void page_free(struct page *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->holds && i < p->n; i++)
        hold_row_close(&p->holds[i]);
    free(p->holds);
    free(p->audit);
    free(p);
}

/* Keys first, then their rows: in one transaction, so that a page of one status has no other. */
static enum hf_status read_holds_page(struct ledger *l, const struct holds_query *query,
                                      struct page *p, struct hf_err *err)
{
    int64_t keys[HOLDS_LIST_MAX + 1];
    size_t n = 0, limit = query->limit - 1; /* one more, to know whether there is */
    enum hf_status status = ledger_begin(l, err);
    if (status == HF_OK)
        status = ledger_holds_list(l, query, keys, &n, err);
    if (status == HF_OK) {
        p->more = n > limit;
        p->n = p->more ? limit : n;
        p->holds = hf_alloc((p->n + 1) * sizeof *p->holds);
        status = ledger_holds_read(l, keys, p->n, p->holds, err);
    }
    ledger_rollback(l);
    return status;
}

static void read_holds(struct engine *e, struct ledger *l, struct command *c)
{
    struct page *p = c->page;
    c->now = engine_now_ms(e);
    const struct holds_query query = {.event = c->event->def->id.key,
                                      .before = p->before,
                                      .status = p->status,
                                      .now = c->now,
                                      .limit = p->limit + 1};
    c->status = read_holds_page(l, &query, p, &c->err);
    for (size_t i = 0; i < p->n && c->status == HF_OK; i++)
        if (p->holds[i].status == HOLD_ACTIVE && p->holds[i].expires_at <= c->now)
            p->holds[i].status = HOLD_EXPIRED;
}

static void read_audit(struct engine *e, struct ledger *l, struct command *c)
{
    struct page *p = c->page;
    c->now = engine_now_ms(e);
    if (p->hold) {
        read_hold(e, l, c); /* whoever asks by a hold's id has to know all of it */
        if (c->status != HF_OK)
            return;
    }
    const struct audit_query query = {.event = c->event->def->id.key,
                                      .after = p->after,
                                      .seat = p->seat,
                                      .hold = p->hold,
                                      .limit = p->limit + 1};
    p->audit = hf_alloc(query.limit * sizeof *p->audit);
    c->status = ledger_audit_read(l, &query, p->audit, &p->n, &c->err);
    if (c->status != HF_OK)
        return;
    p->more = p->n > p->limit;
    p->n = p->more ? p->limit : p->n;
}

/* A hold that was over at that moment was over, though the row that says so came later (I4). */
static void judge_past(struct ledger *l, struct command *c)
{
    struct seat_past *past = c->past;
    int64_t until = 0;
    past->status = SEAT_AVAILABLE;
    if (past->n == 0)
        return;
    const struct audit_row *last = &past->history[0].row;
    past->status = (enum seat_status)last->to;
    past->fence = last->fence;
    if (past->status == SEAT_AVAILABLE)
        return;
    past->hold = last->hold;
    past->until = last->until;
    if (past->status != SEAT_HELD)
        return;
    if (past->at == c->now) { /* now: the hold itself says it, and the log need not be searched */
        struct hold_row row;
        c->status = ledger_holds_read(l, &last->hold, 1, &row, &c->err);
        until = c->status == HF_OK ? row.expires_at : 0;
        hold_row_close(&row);
    } else {
        c->status = ledger_audit_until(l, last->hold, past->at, &until, &c->err);
    }
    past->until = until ? until : last->until;
    if (past->until <= past->at) {
        past->status = SEAT_AVAILABLE;
        past->hold = past->until = 0;
    }
}

static void read_seat(struct engine *e, struct ledger *l, struct command *c)
{
    struct seat_past *past = c->past;
    c->now = engine_now_ms(e);
    past->at = c->at && c->at < c->now ? c->at : c->now;
    c->status = ledger_audit_seat(l, c->event->def->id.key, c->seats[0], past->at,
                                  SEAT_HISTORY_MAX + 1, past->history, &past->n, &c->err);
    if (c->status != HF_OK)
        return;
    past->more = past->n > SEAT_HISTORY_MAX;
    judge_past(l, c);
    past->n = past->more ? SEAT_HISTORY_MAX : past->n;
}

static void read_one(struct engine *e, struct ledger *l, struct command *c)
{
    switch (c->kind) {
    case CMD_HOLD_GET:
        read_hold(e, l, c);
        break;
    case CMD_HOLD_LIST:
        read_holds(e, l, c);
        break;
    case CMD_AUDIT_LIST:
        read_audit(e, l, c);
        break;
    case CMD_SEAT_GET:
        read_seat(e, l, c);
        break;
    default:
        read_booking(e, l, c);
        break;
    }
}

void *reader_main(void *arg)
{
    struct engine *e = arg;
    struct command *c;
    size_t n;
    struct lane *lane = &e->read;
    struct ledger *l = NULL;
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < READERS && !l; i++) { /* take one that no other reader took */
        l = e->readers[i];
        e->readers[i] = NULL;
        if (i == READERS - 1)
            lane = &e->search;
    }
    pthread_mutex_unlock(&e->lock);
    while ((n = lane_take(lane, &c, 1, INT32_MAX)) != LANE_CLOSED) {
        if (!n)
            continue;
        read_one(e, l, c);
        engine_finish(e, c);
    }
    ledger_close(l);
    return NULL;
}
