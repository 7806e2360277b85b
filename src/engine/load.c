/* Loading events; see load.h.  The loader has a connection of its own and never writes.  Until an
 * event is installed no request of this server can have changed it, and what other servers changed
 * its worker catches up on. */
#include "engine/load.h"

#include <stdlib.h>

#include "engine/engine_internal.h"
#include "rules/decide.h"
#include "view/catch_up.h"
#include "view/view_waits.h"

static void on_seat(void *ctx, uint32_t index, const struct seat_row *row)
{
    event_load_seat(ctx, index, row->status, row->hold);
    event_load_channel(ctx, index, row->channel);
}

static void on_area(void *ctx, uint32_t index, const struct area_row *row)
{
    event_load_area(ctx, index, row->held, row->booked, row->blocks);
}

static void on_owner(void *ctx, const char *owner, size_t len, uint32_t places)
{
    event_load_owner(ctx, owner_hash(ctx, owner, len), places);
}

static void on_hold(void *ctx, const struct hold_row *row) { event_load_hold(ctx, row); }

static void on_wait(void *ctx, const struct wait_row *row) { event_load_wait(ctx, row); }

static void on_head(void *ctx, uint32_t index, int64_t seq) { event_load_head(ctx, index, seq); }

/* Stored heads are at most this many seqs behind, unless the ledger is of a version without them.
 */
static int64_t heads_lag_max(const struct event *e)
{
    return 2 * ((int64_t)e->def->n_seats / HEADS_CHUNK + 2) * HEADS_EVERY;
}

/* Payments that live holds wait for. */
struct loaded_payments {
    VEC(struct hold_payment) list;
};

static void on_pending(void *ctx, int64_t booking, int64_t payment)
{
    *vec_push(&((struct loaded_payments *)ctx)->list) = (struct hold_payment){booking, payment};
}

static int by_hold(const void *a, const void *b)
{
    const struct hold_payment *x = a, *y = b;
    return (x->hold > y->hold) - (x->hold < y->hold);
}

static enum hf_status load_payments(struct ledger *l, struct event *e, struct hf_err *err)
{
    struct loaded_payments payments = {0};
    enum hf_status status = ledger_bookings_pending(l, e->def->id.key, on_pending, &payments, err);
    if (payments.list.n > 1)
        qsort(payments.list.v, payments.list.n, sizeof *payments.list.v, by_hold);
    if (status == HF_OK)
        event_load_payments(e, payments.list.v, payments.list.n);
    vec_close(&payments.list);
    return status;
}

/* Most events have no waiting list, and never had one. */
static enum hf_status load_waits(struct ledger *l, struct event *e, struct hf_err *err)
{
    int64_t last = 0;
    enum hf_status status = ledger_waits_live(l, e->def->id.key, on_wait, e, &last, err);
    if (status == HF_OK && last)
        event_load_wait_number(e, last);
    return status;
}

/* Who holds a seat follows from the live holds. */
static enum hf_status load_state(struct ledger *l, struct event *e, int64_t seq, struct hf_err *err)
{
    int64_t key = e->def->id.key, heads_seq = 0;
    enum hf_status status;
    if ((status = ledger_event_state(l, key, &e->status_draft, on_area, e, err)) != HF_OK ||
        (status = ledger_seats_read(l, key, 0, UINT32_MAX, on_seat, e, err)) != HF_OK ||
        (status = ledger_heads_read(l, key, e->def->n_seats, on_head, e, &heads_seq, err)) != HF_OK)
        return status;
    e->heads_due = seq - heads_seq > heads_lag_max(e);
    if (e->terms->max_per_owner &&
        (status = ledger_owners_booked(l, key, on_owner, e, err)) != HF_OK)
        return status;
    if ((status = ledger_holds_active(l, key, on_hold, e, err)) != HF_OK ||
        (status = load_payments(l, e, err)) != HF_OK)
        return status;
    return load_waits(l, e, err);
}

enum hf_status load_event(struct ledger *l, int64_t key, struct event **ret_event,
                          struct hf_err *err)
{
    struct event_def *def;
    struct clock_row clock;
    struct event *e = NULL;
    enum hf_status status = ledger_event_read(l, key, &def, &clock, err);
    if (status == HF_OK && def) {
        e = event_new(def, &clock);
        status = load_state(l, e, clock.seq, err);
    }
    if (status != HF_OK) {
        event_free(e);
        return status;
    }
    *ret_event = e;
    return HF_OK;
}

/* The same in a transaction of its own. */
static enum hf_status load_alone(struct ledger *l, int64_t key, struct event **ret_event,
                                 struct hf_err *err)
{
    enum hf_status status = ledger_begin(l, err);
    if (status != HF_OK)
        return status;
    status = load_event(l, key, ret_event, err);
    ledger_rollback(l);
    return status;
}

static enum hf_status load_terms(struct ledger *l, struct event *e, struct hf_err *err)
{
    struct event_terms terms;
    enum hf_status status = ledger_terms_read(l, e->def->id.key, &terms, err);
    if (status == HF_OK)
        event_set_terms(e, event_terms_new(&terms));
    return status;
}

static enum hf_status load_wanted(struct ledger *l, const struct event *e, struct log_since *since,
                                  struct hf_err *err)
{
    struct hold_keys wanted = {0};
    enum hf_status status = HF_OK;
    catch_up_wants(e, since, &wanted);
    if (wanted.list.n)
        status = ledger_since_read(l, wanted.list.v, wanted.list.n, since, err);
    vec_close(&wanted.list);
    return status;
}

/* Tells those who follow entries of waiting lists what other servers have changed. */
static void tell_waits(const struct worker *w, const struct event *e, const struct log_since *since,
                       int64_t after)
{
    const struct engine_config *config = &w->engine->config;
    VEC(struct wait_news) news = {0};
    for (size_t i = 0; config->waits_changed && i < since->audit.n; i++) {
        const struct audit_row *row = &since->audit.v[i];
        if (row->object == AUDIT_WAIT && row->event == e->def->id.key && row->seq > after)
            *vec_push(&news) = (struct wait_news){.entry = HOLD_KEY(row->event, row->fence),
                                                  .seq = row->seq,
                                                  .status = (enum wait_status)row->to};
    }
    if (news.n)
        config->waits_changed(config->waits_context, news.v, news.n);
    vec_close(&news);
}

enum hf_status load_since(struct worker *w, struct event *e, struct log_since *since,
                          struct hf_err *err)
{
    struct ledger *l = w->ledger;
    struct view *view = w->view;
    bool limits_before = e->terms->max_per_owner > 0;
    uint32_t unmoved = e->unmoved;
    int64_t seq = e->clock.seq;
    e->unmoved = 0;
    enum hf_status status = load_wanted(l, e, since, err);
    if (status == HF_OK && catch_up_changes_terms(e, since)) /* last: the view has them then */
        status = load_terms(l, e, err);
    if (status != HF_OK)
        return status;
    bool limits_now = e->terms->max_per_owner > 0; /* what owners have booked is not counted yet */
    e->stale |= (limits_now && !limits_before) || !catch_up(view, e, since);
    if (!e->stale && e->clock.seq == seq) /* there was nothing to catch up */
        e->unmoved = unmoved;
    decide_waits_look(view, e, engine_now_ms(w->engine));
    tell_waits(w, e, since, seq);
    return HF_OK;
}

/* The view has skipped rows of the log, and what they say of entries is not known. */
static void tell_skipped(const struct worker *w, const struct event *e)
{
    const struct engine_config *config = &w->engine->config;
    const struct wait_news any = {.entry = HOLD_KEY(e->def->id.key, 0)};
    if (config->waits_changed)
        config->waits_changed(config->waits_context, &any, 1);
}

enum hf_status load_again(struct worker *w, struct event *e, struct hf_err *err)
{
    struct ledger *l = w->ledger;
    struct view *view = w->view;
    struct clock_row clock = {.event = e->def->id.key};
    int64_t now, shown = atomic_load_explicit(&e->shown.seq, memory_order_relaxed);
    e->stale = true;
    e->unmoved = 0;
    view_forget(view, e);
    enum hf_status status = ledger_lock(l, &clock, 1, &now, err);
    if (status == HF_OK)
        status = load_terms(l, e, err);
    if (status != HF_OK)
        return status;
    status = load_state(l, e, clock.seq, err);
    if (status != HF_OK)
        return status;
    view_reloaded(view, e, &clock);
    e->stale = false;
    if (clock.seq != shown)
        tell_skipped(w, e);
    return HF_OK;
}

/* ---- lists ---- */

/* What was counted of events that are not loaded.  An event's counts change only with its seq, so
 * they are good until then. */
#define COUNTED_MAX 1024
#define COMMANDS_AT_ONCE 256 /* that the loader takes out of its queue */
struct counted {
    struct {
        int64_t event;
        struct event_counts counts;
    } slots[COUNTED_MAX]; /* by event % COUNTED_MAX; the last one stays */
};

static enum hf_status count_unloaded(struct ledger *l, struct counted *counted,
                                     struct event_summary *s, struct hf_err *err)
{
    int64_t key = s->def->id.key;
    size_t i = (size_t)key % COUNTED_MAX;
    if (counted->slots[i].event != key || counted->slots[i].counts.seq != s->counts.seq) {
        enum hf_status status = ledger_event_count(l, key, &s->counts, err);
        if (status != HF_OK)
            return status;
        counted->slots[i].event = key;
        counted->slots[i].counts = s->counts;
    }
    s->counts = counted->slots[i].counts;
    return HF_OK;
}

/* Lists events without loading them.  The view counts those that are loaded. */
static enum hf_status list_events(struct engine *e, struct counted *counted,
                                  struct event_list *list, struct hf_err *err)
{
    size_t n = 0;
    struct events_query query = list->query;
    query.now = engine_now_ms(e);
    query.limit++;
    enum hf_status status = ledger_begin(e->loader, err);
    if (status != HF_OK)
        return status;
    status = ledger_events_list(e->loader, &query, list->events, &n, err);
    list->more = n > list->query.limit;
    if (list->more)
        event_def_free(list->events[--n].def);
    list->n = n;
    for (size_t i = 0; status == HF_OK && i < n; i++) {
        struct event_summary *s = &list->events[i];
        struct event *event = engine_event_peek(e, s->def->id.key);
        if (event)
            event_read_counts(event, &s->counts);
        else
            status = count_unloaded(e->loader, counted, s, err);
        event_give(event);
    }
    ledger_rollback(e->loader);
    return status;
}

/* ---- the thread ---- */

/* Loads the event that the command asks for and passes it to the worker that installs it. */
static void load_for(struct engine *e, struct command *c)
{
    struct worker *w = engine_worker(e, c->event_key);
    uint32_t departures = registry_departures(view_registry(w->view), c->event_key);
    c->verdict = VERDICT_OK;
    c->event = c->pinned = engine_event_take(e, c->event_key);
    if (!c->event)
        c->verdict = verdict_of(load_alone(e->loader, c->event_key, &c->event, &c->err));
    if (c->verdict == VERDICT_OK && !c->event)
        c->verdict = VERDICT_NO_SUCH_EVENT;
    if (c->event && !c->pinned)
        c->event->registered.departures = departures;
    hf_check(lane_pass(&w->work, c));
}

static bool is_same_page(const struct command *c, const struct event_list *page)
{
    return c && c->kind == CMD_EVENT_LIST && c->event_list->query.last == page->query.last &&
           c->event_list->query.limit == page->query.limit &&
           c->event_list->query.upcoming == page->query.upcoming;
}

/* Reads the page that the first of `n` commands asks for.  Those of the others that ask for the
 * same one came before it was read, so they get it, too; their places in the array become NULL.
 * Many readers of one page thus cost little more than one. */
static void list_for(struct engine *e, struct counted *counted, struct command **commands, size_t n)
{
    struct command *first = commands[0], *others = NULL;
    struct event_list *page = first->event_list;
    first->verdict = verdict_of(list_events(e, counted, page, &first->err));
    for (size_t i = 1; i < n; i++) {
        struct command *c = commands[i];
        if (!is_same_page(c, page))
            continue;
        event_list_free(c->event_list);
        c->event_list = page;
        atomic_fetch_add(&page->n_others, 1);
        c->verdict = first->verdict;
        c->err = first->err;
        c->next = others;
        others = c;
        commands[i] = NULL;
    }
    engine_finish(first);
    while (others) {
        struct command *c = others;
        others = c->next;
        engine_finish(c);
    }
}

void *loader_main(void *arg)
{
    struct engine *e = arg;
    struct counted *counted = hf_alloc(sizeof *counted);
    struct command *commands[COMMANDS_AT_ONCE];
    size_t n;
    while ((n = lane_take(&e->load, commands, COMMANDS_AT_ONCE, INT32_MAX)) != LANE_CLOSED) {
        for (size_t i = 0; i < n; i++) {
            if (commands[i] && commands[i]->kind == CMD_EVENT_LOAD)
                load_for(e, commands[i]);
            else if (commands[i])
                list_for(e, counted, commands + i, n - i);
        }
    }
    free(counted);
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
