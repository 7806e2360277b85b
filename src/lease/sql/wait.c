/* Waiting in the queue.  A waiter sleeps until it is woken, since it is its turn, until a lease or
 * a place before its own ends, and at most for a time that depends on its place: those next in the
 * queue look often, in case the first is dead; those far back only count the waiters before them,
 * now and then.  On a server the listener wakes the waiter (listener.h), on a file the database
 * does.  Runs on the handle's thread. */
#include "base/wait.h"
#include "lease/sql/contention.h"
#include "lease/sql/link.h"
#include "lease/sql/listener.h"
#include "lease/sql/sql.h"
#include "lease/sql/turn.h"

/* A test's clock moves without waking anybody: waiters look at it this often. */
#define FAKE_CLOCK_SLEEP_MS 2
#define NEAR_CHECK_MS 300
/* Those that are not near look this often, the later the more waiters stand before them: what a
 * lost wake-up costs at most. */
#define FAR_CHECK_MS 1000
#define FAR_CHECK_PER_PLACE_MS 2
#define FAR_CHECK_MAX_MS 3000

/* What a look has found. */
struct sql_view {
    bool must_ask; /* it is worth asking, or necessary */
    size_t ahead;
    int64_t ticket;
    int64_t sleep_ms; /* after which to look again */
};

struct waiting {
    struct sql_lease *s;
    const struct lease_request *r;
    bool has_listener;
    struct listener_sleeper sleeper;
    struct claim_row own; /* its place, as last seen; number 0: not seen yet */
};

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/* The longest sleep with so many waiters before this one. */
static int64_t check_ms(size_t ahead)
{
    int64_t far_ms = FAR_CHECK_MS + FAR_CHECK_PER_PLACE_MS * (int64_t)ahead;
    far_ms = at_most(far_ms, FAR_CHECK_MAX_MS);
    return waiter_look_us(ahead + 1, INT64_C(1000) * NEAR_CHECK_MS, 1000 * far_ms) / 1000;
}

/* How long to sleep at most although nothing is committed: until it is time to look again, to write
 * that we still wait, or, near the front, until a lease, a place or a turn before ours ends. */
static int64_t sleep_length_ms(const struct waiting *w, const struct standing *st, int64_t now)
{
    int64_t ms = check_ms(st->ahead);
    if (st->ahead < WAITER_NEAR && st->next_end != INT64_MAX)
        ms = at_most(ms, st->next_end - now);
    if (st->place && !w->has_listener)
        ms = at_most(ms, st->place->until - (WAITER_SILENT_MS - TURN_SEEN_EVERY_MS) - now);
    if (!clock_is_real(w->s->family->options.clock))
        ms = at_most(ms, FAKE_CLOCK_SLEEP_MS);
    return at_least(ms, 1);
}

/* Calls the waiter of the state that has its turn: a lease may have ended without a release. */
static enum hf_status call_first(struct sql_lease *s, const struct db_value *name,
                                 struct hf_err *err)
{
    enum hf_status status = sql_begin(s, name, 1, err);
    if (status == HF_OK)
        status = turn_call_first(s, name, err);
    return sql_end(s, status, err);
}

/* Reads how the waiter stands, outside a transaction: the holders, and the waiters up to its own
 * place.  Keeps the place, and calls the first in the queue if that has not been done. */
static enum hf_status look_closely(struct waiting *w, struct sql_view *ret, struct hf_err *err)
{
    struct sql_lease *s = w->s;
    const struct db_value key = sql_key(w->r);
    int64_t now = 0;
    enum hf_status status = sql_state_read(s, &key, w->own.number ? &w->own : NULL, &now, err);
    if (status != HF_OK)
        return status;
    struct standing st = name_state_judge(&s->link->state, w->r);
    contention_update(s, w->r, &st);
    /* Without a place, or passed over, it has to ask. */
    bool has_to = w->r->queue && (!st.place || st.place->since);
    *ret = (struct sql_view){.must_ask = st.lease || st.free || has_to,
                             .ahead = st.ahead,
                             .sleep_ms = sleep_length_ms(w, &st, now)};
    const struct claim_row *first = name_state_turn(&s->link->state);
    bool is_uncalled = first && !first->since && first != st.place && st.ahead < WAITER_NEAR;
    bool is_due = st.place && turn_is_seen_due(s, st.place, now);
    if (st.place) {
        w->own = *st.place;
        ret->ticket = st.place->number;
    }
    if (!ret->must_ask && is_uncalled && (status = call_first(s, &key, err)) != HF_OK)
        return status;
    return is_due ? turn_keep_place(s, w->r, err) : HF_OK;
}

/* For a waiter far back in a long queue.  *ret_done is false if it has to look closely. */
static enum hf_status look_from_behind(struct waiting *w, struct sql_view *ret, bool *ret_done,
                                       struct hf_err *err)
{
    struct place_count place;
    *ret_done = false;
    if (!w->has_listener || w->r->mode != HF_EXCLUSIVE || !contention_is_long_queue(w->s, w->r))
        return HF_OK;
    enum hf_status status = contention_count(w->s, w->r, &place, err);
    if (status != HF_OK || !place.found || place.ahead < (int64_t)w->r->slots + WAITER_NEAR)
        return status;
    *ret_done = true;
    *ret = (struct sql_view){.ahead = (size_t)place.ahead,
                             .ticket = w->own.number,
                             .sleep_ms = check_ms((size_t)place.ahead)};
    return HF_OK;
}

static enum hf_status look(struct waiting *w, struct sql_view *ret, struct hf_err *err)
{
    bool done = false;
    if (w->has_listener && contention_is_counted(w->s, w->r)) {
        *ret = (struct sql_view){.ahead = w->s->contended_ahead,
                                 .sleep_ms = check_ms(w->s->contended_ahead)};
        return HF_OK;
    }
    enum hf_status status = sql_enter(w->s, SQL_TO_TAKE, err);
    if (status == HF_OK)
        status = look_from_behind(w, ret, &done, err);
    if (status == HF_OK && !done)
        status = look_closely(w, ret, err);
    sql_leave(w->s);
    return status;
}

static enum hf_status sleep_until_woken(struct waiting *w, const struct sql_view *v,
                                        int64_t timeout_ms, struct hf_err *err)
{
    struct sql_lease *s = w->s;
    timeout_ms = at_most(timeout_ms, v->sleep_ms);
    if (!w->has_listener)
        return s->link->db->driver->file->await(s->link->db, v->ticket, s->lease.wake_fd,
                                                timeout_ms, err);
    if (listener_sleep(s->family, &w->sleeper, s->lease.wake_fd, timeout_ms))
        contention_forget_count(s);
    return HF_OK;
}

/* Writes nothing but, now and then, that it still waits.  When its turn has come it returns, and
 * the acquire that follows does the writing. */
static enum hf_status wait_for_turn(struct waiting *w, int64_t timeout_ms, struct hf_err *err)
{
    int64_t until_us = wait_now_us() + timeout_ms * 1000;
    for (;;) {
        struct sql_view v = {0};
        enum hf_status status = look(w, &v, err);
        int64_t left_ms = (until_us - wait_now_us()) / 1000;
        if (status != HF_OK || v.must_ask || left_ms <= 0 || lease_is_woken(&w->s->lease))
            return status;
        status = sleep_until_woken(w, &v, left_ms, err);
        if (status != HF_OK || lease_is_woken(&w->s->lease))
            return status;
    }
}

enum hf_result sql_wait(struct lease *l, const struct lease_request *r, int64_t timeout_ms,
                        struct hf_fault *fault)
{
    struct waiting w = {.s = sql_of(l), .r = r};
    struct hf_err err = {0};
    enum hf_status status = HF_OK;
    if (w.s->family->has_server) {
        status = listener_join(w.s->family, &w.sleeper, r, l->wake_fd, &err);
        w.has_listener = status == HF_OK;
    }
    if (status == HF_OK)
        status = wait_for_turn(&w, timeout_ms, &err);
    if (w.has_listener)
        listener_leave(w.s->family, &w.sleeper);
    return sql_result(status, &err, fault);
}
