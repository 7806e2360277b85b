/* What readers do (see read.h): single holds, bookings, keys and payments; pages of holds, of
 * bookings, of money and of the log; a seat's past; the hottest seats; due jobs.  On a reader's
 * thread. */
#include "engine/read.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"
#include "engine/past.h"

/* Brings the row up to `now`.  What became of a hold that was booked with another one is what
 * became of that one.  A hold is dead at its expiry, swept or not (I4). */
static void judge_hold(struct hold_row *row, int64_t now)
{
    if (row->carrier.id.key) {
        row->status = row->carrier.status;
        row->expires_at = row->carrier.expires_at;
    }
    if (row->status == HOLD_ACTIVE && row->expires_at <= now)
        row->status = HOLD_EXPIRED;
}

/* The hold of this id, if the caller knows the id's secret. */
static enum verdict read_hold(struct ledger *l, struct named_hold *named, struct hf_err *err)
{
    enum hf_status status = ledger_holds_read(l, &named->id.key, 1, &named->row, err);
    if (status != HF_OK)
        return verdict_of(status);
    if (!named->row.id.key || !id_secret_equal(named->row.id.secret, named->id.secret))
        return VERDICT_NO_SUCH_HOLD;
    return VERDICT_OK;
}

/* Reads the event's terms if a row of these is newer than the view: another server may have added
 * the ticket types that its answer needs.  To be called after the rows were read. */
static enum hf_status read_newer_terms(struct ledger *l, struct command *c,
                                       const struct hold_row *rows, size_t n)
{
    int64_t seq = atomic_load_explicit(&c->event->shown.seq, memory_order_acquire);
    struct event_terms terms;
    bool is_newer = false;
    for (size_t i = 0; i < n && !is_newer; i++)
        is_newer = rows[i].last_seq > seq;
    if (!is_newer)
        return HF_OK;
    enum hf_status status = ledger_terms_read(l, c->event->def->id.key, &terms, &c->err);
    if (status == HF_OK && terms.types.n)
        c->terms = event_terms_new(&terms);
    else if (status == HF_OK)
        event_terms_close(&terms);
    return status;
}

static enum verdict read_one_hold(struct ledger *l, struct command *c)
{
    enum verdict verdict = read_hold(l, &c->hold_get, &c->err);
    return verdict == VERDICT_OK ? verdict_of(read_newer_terms(l, c, &c->hold_get.row, 1))
                                 : verdict;
}

static enum verdict read_booking(struct ledger *l, struct command *c)
{
    const struct id *id = &c->booking_get.id;
    struct booking_row *row = &c->booking_get.row;
    enum hf_status status =
        c->booking_get.is_internal
            ? ledger_booking_of_payment(l, id->key, c->booking_get.payment, row, &c->err)
            : ledger_booking_find(l, id, row, &c->err);
    if (status == HF_OK && !row->id.key)
        return VERDICT_NO_SUCH_BOOKING;
    if (status == HF_OK && row->payment)
        status = ledger_money_read(l, row->id.key, &c->booking_get.money, &c->err);
    return verdict_of(status);
}

static enum verdict read_refunds(struct ledger *l, struct refund_page *p, struct hf_err *err)
{
    enum hf_status status =
        ledger_refunds_list(l, p->before, p->status, p->limit + 1, p->entries, &p->n, err);
    p->more = p->n > p->limit;
    p->n = p->more ? p->limit : p->n;
    return verdict_of(status);
}

static enum verdict read_notices(struct ledger *l, struct notice_page *p, struct hf_err *err)
{
    enum hf_status status =
        ledger_notices_list(l, p->before, p->status, p->limit + 1, p->entries, &p->n, err);
    p->more = p->n > p->limit;
    p->n = p->more ? p->limit : p->n;
    return verdict_of(status);
}

static bool is_finished(const struct cancel_page *p, int64_t event)
{
    for (size_t i = 0; i < p->finished.n; i++)
        if (p->finished.v[i] == event)
            return true;
    return false;
}

/* Finds a cancelled event that still has bookings.  A cancelled event gets no new ones, so one that
 * has none is not looked at again. */
static enum verdict read_cancels(struct ledger *l, struct cancel_page *p, struct hf_err *err)
{
    int64_t events[CANCELLED_EVENTS_MAX], before = p->before;
    size_t n = CANCELLED_EVENTS_MAX;
    enum hf_status status = HF_OK;
    p->n = 0;
    while (status == HF_OK && !p->n && n == CANCELLED_EVENTS_MAX) {
        status = ledger_events_cancelled(l, before, events, &n, err);
        for (size_t i = 0; status == HF_OK && !p->n && i < n; i++) {
            p->event = before = events[i];
            if (is_finished(p, events[i]))
                continue;
            status =
                ledger_bookings_live(l, events[i], 0, CANCEL_LIST_MAX, p->bookings, &p->n, err);
            if (status == HF_OK && !p->n)
                *vec_push(&p->finished) = events[i];
        }
    }
    if (!p->n)
        p->event = 0;
    return verdict_of(status);
}

/* The answer that is stored under the key. */
static enum verdict read_key(struct ledger *l, struct command *c)
{
    const uint8_t *hash = c->key.hash;
    struct key_row row = {0};
    enum hf_status status = ledger_keys_read(l, &hash, 1, c->now, &row, &c->err);
    enum verdict verdict = status != HF_OK ? verdict_of(status)
                           : row.found     ? VERDICT_OK
                                           : VERDICT_KEY_UNUSED;
    if (row.found) {
        c->key.answer_code = row.answer_code;
        buf_put(&c->key.answer, row.answer, row.answer_len);
    }
    key_row_close(&row);
    return verdict;
}

/* Takes due jobs; see ledger_jobs_take. */
static enum verdict take_jobs(struct ledger *l, struct command *c)
{
    c->jobs_take.query.now = c->now;
    enum hf_status status =
        ledger_jobs_take(l, &c->jobs_take.query, c->jobs_take.rows, &c->jobs_take.n, &c->err);
    if (status == HF_OK && c->jobs_take.wants_counts)
        status = ledger_jobs_count(l, c->jobs_take.counts, &c->err);
    return verdict_of(status);
}

/* Reads the keys first and then their rows, in one transaction, so that every hold of a
 * page has the status that was asked for. */
static enum hf_status read_holds_page(struct ledger *l, const struct holds_query *query,
                                      struct hold_page *p, struct hf_err *err)
{
    int64_t keys[HOLDS_LIST_MAX + 1];
    size_t n = 0, limit = query->limit - 1; /* the query asks for one more than the page shows */
    enum hf_status status = ledger_begin(l, err);
    if (status != HF_OK)
        return status;
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

static enum verdict read_holds(struct ledger *l, struct command *c)
{
    struct hold_page *p = c->hold_list;
    const struct holds_query query = {.event = c->event->def->id.key,
                                      .before = p->before,
                                      .status = p->status,
                                      .now = c->now,
                                      .owner = p->owner,
                                      .owner_len = p->owner ? strlen(p->owner) : 0,
                                      .limit = p->limit + 1};
    enum hf_status status = read_holds_page(l, &query, p, &c->err);
    if (status == HF_OK)
        status = read_newer_terms(l, c, p->holds, p->n);
    if (status != HF_OK)
        return verdict_of(status);
    for (size_t i = 0; i < p->n; i++)
        judge_hold(&p->holds[i], c->now);
    return VERDICT_OK;
}

static enum verdict read_bookings(struct ledger *l, struct booking_page *p, struct hf_err *err)
{
    struct bookings_query query = p->query;
    query.limit++;
    p->bookings = hf_alloc(query.limit * sizeof *p->bookings);
    enum hf_status status = ledger_bookings_list(l, &query, p->bookings, &p->n, err);
    if (status != HF_OK)
        return verdict_of(status);
    p->more = p->n > p->query.limit;
    if (p->more)
        booking_row_close(&p->bookings[--p->n]);
    for (size_t i = 0; status == HF_OK && i < p->n; i++)
        if (p->bookings[i].payment)
            status = ledger_money_read(l, p->bookings[i].id.key, &p->money, err);
    return verdict_of(status);
}

static struct seat_chain chain_of(struct event *e, uint32_t seat)
{
    struct seat_chain chain = {.event = e->def->id.key, .seat = seat};
    chain.head = event_seat_head(e, seat, &chain.seq);
    return chain;
}

static enum verdict read_audit(struct ledger *l, struct event *e, struct audit_page *p,
                               struct hf_err *err)
{
    if (p->hold.key) { /* the caller has to know the whole id of the hold */
        struct named_hold named = {.id = p->hold};
        enum verdict verdict = read_hold(l, &named, err);
        hold_row_close(&named.row);
        if (verdict != VERDICT_OK)
            return verdict;
    }
    struct seat_chain chain;
    if (p->seat >= 0)
        chain = chain_of(e, (uint32_t)p->seat);
    const struct audit_query query = {.event = e->def->id.key,
                                      .after = p->after,
                                      .seat = p->seat >= 0 ? &chain : NULL,
                                      .hold = p->hold.key,
                                      .limit = p->limit + 1};
    p->entries = hf_alloc(query.limit * sizeof *p->entries);
    struct pruned pruned;
    enum hf_status status = ledger_audit_read(l, &query, p->entries, &p->n, err);
    if (status == HF_OK)
        status = ledger_pruned(l, query.event, &pruned, err);
    if (status != HF_OK)
        return verdict_of(status);
    p->pruned_seq = pruned.seq;
    p->more = p->n > p->limit;
    p->n = p->more ? p->limit : p->n;
    return VERDICT_OK;
}

/* ---- a seat's past ---- */

/* When the hold was to expire, as was known at `past->at`. */
static enum hf_status read_until(struct ledger *l, const struct seat_past *past, bool is_now,
                                 int64_t *ret_until, struct hf_err *err)
{
    if (!is_now)
        return ledger_audit_until(l, past->hold, past->at, ret_until, err);
    struct hold_row row = {0}; /* the hold itself says it, and the log need not be searched */
    enum hf_status status = ledger_holds_read(l, &past->hold, 1, &row, err);
    if (status == HF_OK)
        *ret_until = row.expires_at;
    hold_row_close(&row);
    return status;
}

static void on_seat_row(void *ctx, uint32_t index, const struct seat_row *row)
{
    struct seat_past *past = ctx;
    (void)index;
    past->status = row->status;
    past->hold = row->hold;
}

/* The log has no row about the seat up to that time: it was available, also if holds have been
 * pruned that had it.  If the log has been pruned as a whole, the seat's own row says how it stands
 * now, and nothing says how it stood before. */
static enum verdict judge_unlogged(struct ledger *l, int64_t event, uint32_t seat,
                                   const struct pruned *pruned, struct seat_past *past, bool is_now,
                                   struct hf_err *err)
{
    past->status = SEAT_AVAILABLE;
    if (!pruned->log_seq)
        return VERDICT_OK;
    if (!is_now)
        return VERDICT_INVALID_REQUEST;
    return verdict_of(ledger_seats_read(l, event, seat, seat, on_seat_row, past, err));
}

/* Fills in the state from the newest row of the history.  A hold that was due at that moment had
 * expired, though the row that says so came later (I4). */
static enum hf_status judge_past(struct ledger *l, struct seat_past *past, bool is_now,
                                 struct hf_err *err)
{
    const struct audit_row *last = &past->history[0].row;
    past->status = (enum seat_status)last->to;
    past->fence = last->fence;
    if (past->status == SEAT_AVAILABLE)
        return HF_OK;
    past->hold = last->hold;
    past->until = last->until;
    if (past->status != SEAT_HELD)
        return HF_OK;
    int64_t until = 0;
    enum hf_status status = read_until(l, past, is_now, &until, err);
    if (status != HF_OK)
        return status;
    past->until = until ? until : last->until;
    if (past->until <= past->at) {
        past->status = SEAT_AVAILABLE;
        past->hold = past->until = 0;
    }
    return HF_OK;
}

static enum verdict read_seat(struct ledger *l, struct event *e, uint32_t seat,
                              struct seat_past *past, int64_t now, struct hf_err *err)
{
    bool is_now = !past->at || past->at >= now;
    if (is_now)
        past->at = now;
    const struct seat_chain chain = chain_of(e, seat);
    struct pruned pruned;
    bool is_known = true;
    enum hf_status status =
        ledger_audit_seat(l, &chain, past->at, SEAT_HISTORY_MAX + 1, past->history, &past->n, err);
    if (status == HF_OK)
        status = ledger_pruned(l, chain.event, &pruned, err);
    if (status == HF_OK && !is_now)
        status = ledger_log_knows(l, chain.event, past->at, &is_known, err);
    if (status != HF_OK)
        return verdict_of(status);
    if (!is_known)
        return VERDICT_INVALID_REQUEST;
    past->more = past->n > SEAT_HISTORY_MAX;
    past->pruned = !past->more && pruned.seq;
    if (past->n == 0)
        return judge_unlogged(l, chain.event, seat, &pruned, past, is_now, err);
    status = judge_past(l, past, is_now, err);
    past->n = past->more ? SEAT_HISTORY_MAX : past->n;
    return verdict_of(status);
}

static enum verdict read_heat(const struct engine *e, const struct event *event,
                              struct heat_list *list)
{
    list->since = event->heat.since ? event->heat.since : e->started_ms;
    list->n =
        heat_hottest(&event->heat, event->def->n_seats, list->limit, list->seats, &list->total);
    return VERDICT_OK;
}

/* ---- the threads ---- */

static enum verdict read_wait(struct ledger *l, struct command *c)
{
    struct wait_row *row = &c->wait_get.row;
    const struct id *id = &c->wait_get.id;
    enum hf_status status = ledger_wait_read(l, id->key, row, &c->wait_get.ahead, &c->err);
    if (status != HF_OK)
        return verdict_of(status);
    bool is_known =
        row->id.key && (c->wait_get.is_internal || id_secret_equal(row->id.secret, id->secret));
    return is_known ? VERDICT_OK : VERDICT_NO_SUCH_WAIT;
}

static enum verdict read_waits(struct ledger *l, struct wait_page *p, struct hf_err *err)
{
    struct waits_query query = p->query;
    query.limit++;
    enum hf_status status = ledger_waits_list(l, &query, p->waits, &p->n, err);
    p->more = p->n > p->query.limit;
    if (p->more)
        wait_row_close(&p->waits[--p->n]);
    return verdict_of(status);
}

static enum verdict read_one(const struct engine *e, struct ledger *l, struct command *c)
{
    switch (c->kind) {
    case CMD_HOLD_GET:
        return read_one_hold(l, c);
    case CMD_BOOKING_GET:
        return read_booking(l, c);
    case CMD_KEY_GET:
        return read_key(l, c);
    case CMD_PAYMENT_FIND:
        return verdict_of(
            ledger_payment_find(l, c->payment_find.intent, &c->payment_find.payment, &c->err));
    case CMD_JOBS_TAKE:
        return take_jobs(l, c);
    case CMD_REFUND_LIST:
        return read_refunds(l, c->refund_list, &c->err);
    case CMD_NOTICE_LIST:
        return read_notices(l, c->notice_list, &c->err);
    case CMD_WAIT_GET:
        return read_wait(l, c);
    case CMD_WAIT_LIST:
        return read_waits(l, c->wait_list, &c->err);
    case CMD_CANCEL_LIST:
        return read_cancels(l, c->cancel_list, &c->err);
    case CMD_EVENT_PROGRESS:
        return verdict_of(ledger_cancel_progress(l, c->event_key, &c->progress, &c->err));
    case CMD_EVENT_REVENUE:
        return verdict_of(ledger_revenue(l, c->event_key, &c->revenue, &c->err));
    case CMD_HOLD_LIST:
        return read_holds(l, c);
    case CMD_BOOKING_LIST:
        return read_bookings(l, c->booking_list, &c->err);
    case CMD_AUDIT_LIST:
        return read_audit(l, c->event, c->audit_list, &c->err);
    case CMD_SEAT_GET:
        return read_seat(l, c->event, c->seat_get.seat, c->seat_get.past, c->now, &c->err);
    case CMD_EVENT_HEAT:
        return read_heat(e, c->event, c->event_heat);
    default:
        hf_check(!"a command that no reader carries out");
        return VERDICT_INTERNAL;
    }
}

/* Takes a connection that no other reader has; the last of them serves the lane of long reads. */
static struct ledger *take_connection(struct engine *e, struct lane **ret_lane)
{
    struct ledger *l = NULL;
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i <= JOBS_READER && !l; i++) {
        l = e->readers[i];
        e->readers[i] = NULL;
        *ret_lane = i == JOBS_READER ? &e->jobs : i == READERS - 1 ? &e->search : &e->read;
    }
    pthread_mutex_unlock(&e->lock);
    return l;
}

static void carry_out(const struct engine *e, struct ledger *l, struct command *c)
{
    c->now = engine_now_ms(e);
    c->verdict = read_one(e, l, c);
    if (c->kind == CMD_HOLD_GET) {
        c->now = engine_now_ms(e); /* after the read, so that nothing dead is called alive */
        judge_hold(&c->hold_get.row, c->now);
    }
    engine_finish(c);
}

void *reader_main(void *arg)
{
    struct engine *e = arg;
    struct lane *lane = NULL;
    struct ledger *l = take_connection(e, &lane);
    struct past_queue past = {0};
    struct command *c;
    size_t n;
    while ((n = lane_take(lane, &c, 1, past.first ? 0 : INT32_MAX)) != LANE_CLOSED) {
        if (n && c->kind == CMD_MAP_PAST)
            past_queue_put(&past, c);
        else if (n)
            carry_out(e, l, c);
        past_queue_turn(&past, e, l);
    }
    past_queue_close(&past);
    ledger_close(l);
    return NULL;
}
