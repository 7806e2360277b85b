/* See past.h.  On the thread of the reader of long reads. */
#include "engine/past.h"

#include <stdlib.h>

#include "base/gzip.h"
#include "engine/engine_internal.h"
#include "view/past.h"

#define PAGE_ENTRIES 1000

struct past_work {
    struct past_map past;
    int64_t after, last; /* rows behind `after` and up to `last` are still to be read */
    bool redoes;         /* the moment is after what the view showed: the rows are added */
};

/* ---- one map ---- */

static bool take_back(void *ctx, const struct audit_row *row) { return past_map_undo(ctx, row); }
static bool add(void *ctx, const struct audit_row *row) { return past_map_redo(ctx, row); }

/* Finds out which rows of the log to read.  A moment after which rows have been pruned is refused,
 * as for a single seat; the present is always known. */
static enum verdict begin(struct past_work *w, struct ledger *l, struct command *c)
{
    int64_t event = c->event->def->id.key, later = 0;
    bool is_now = c->map_past.at >= c->now, is_known = true;
    if (is_now)
        c->map_past.at = c->now;
    past_map_begin(&w->past, c->event, c->map_past.at);
    enum hf_status status = ledger_log_later(l, event, c->map_past.at, &later, &c->err);
    if (status == HF_OK && !is_now)
        status = ledger_log_knows(l, event, c->map_past.at, &is_known, &c->err);
    if (status != HF_OK)
        return verdict_of(status);
    if (!is_known)
        return VERDICT_INVALID_REQUEST;
    int64_t shown = w->past.map.seq, then = later ? later - 1 : SEQ_MAX;
    w->redoes = then >= shown;
    w->after = w->redoes ? shown : then;
    w->last = w->redoes ? then : shown;
    if (!w->redoes)
        w->past.map.seq = then;
    return VERDICT_OK;
}

/* Reads the next page.  *ret_done is true after the last. */
static enum verdict read_page(struct past_work *w, struct ledger *l, struct command *c,
                              bool *ret_done)
{
    int64_t event = c->event->def->id.key, before = w->after;
    struct pruned pruned;
    enum hf_status status = ledger_log_page(l, event, &w->after, w->last, PAGE_ENTRIES,
                                            w->redoes ? add : take_back, &w->past, &c->err);
    bool is_missing = status == HF_OK && w->after == before && !w->redoes && w->after < w->last;
    *ret_done = status == HF_OK && (w->after == w->last || w->after == before);
    if (status != HF_INTERNAL && !is_missing)
        return verdict_of(status);
    /* Rows are missing: they may have been pruned since the first page was read. */
    if (ledger_pruned(l, event, &pruned, &c->err) == HF_OK && pruned.seq > w->after)
        return VERDICT_INVALID_REQUEST;
    return VERDICT_INTERNAL;
}

static void draw(struct engine *e, struct past_work *w, struct command *c)
{
    struct snapshot *s = snapshot_new(w->past.map.seq);
    e->config.texts.map(c->event, &w->past.map, &s->text);
    buf_trim(&s->text);
    if (c->map_past.packed)
        gzip_pack(&s->text, &s->packed);
    c->map_past.snapshot = s;
}

/* ---- the queue ---- */

void past_queue_put(struct past_queue *q, struct command *c)
{
    if (q->n == PAST_WAITING_MAX) {
        c->verdict = VERDICT_OVERLOADED;
        engine_finish(c);
        return;
    }
    c->next = NULL;
    *(q->end ? q->end : &q->first) = c;
    q->end = &c->next;
    q->n++;
}

static void finish_first(struct past_queue *q)
{
    struct command *c = q->first;
    q->first = c->next;
    q->end = q->first ? q->end : NULL;
    q->n--;
    if (q->work)
        past_map_close(&q->work->past);
    free(q->work);
    q->work = NULL;
    engine_finish(c);
}

void past_queue_turn(struct past_queue *q, struct engine *e, struct ledger *l)
{
    struct command *c = q->first;
    bool done = false;
    if (!c)
        return;
    c->verdict = VERDICT_OK;
    if (!q->work) {
        q->work = hf_alloc(sizeof *q->work);
        c->now = engine_now_ms(e);
        c->verdict = begin(q->work, l, c);
    }
    if (c->verdict == VERDICT_OK)
        c->verdict = read_page(q->work, l, c, &done);
    if (done && c->verdict == VERDICT_OK)
        draw(e, q->work, c);
    if (done || c->verdict != VERDICT_OK)
        finish_first(q);
}

void past_queue_close(struct past_queue *q)
{
    while (q->first) {
        q->first->verdict = VERDICT_DRAINING;
        finish_first(q);
    }
}
