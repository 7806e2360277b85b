/* See fair.h. */
#include "rules/fair.h"

#include <stdlib.h>

#include "base/hash.h"
#include "rules/decide_internal.h"

struct fair_queue {
    struct table_node node; /* in fair.queues, by wish */
    struct heap waiting;    /* its entries that wait, by rank */
    bool is_untried;        /* it is in fair.untried */
    struct wait_wish wish;
};

struct fair_entry {
    struct table_node node; /* in fair.entries, by key */
    struct heap_node turn;  /* in its queue while it waits */
    struct fair_queue *queue;
    int64_t key, rank; /* rank: of an entry of fair_entry */
    uint8_t status;    /* likewise, and where the replay begins */
    bool is_undone;    /* a row says what it was where the replay begins */
    bool is_moved;     /* a row has moved it to the front, so its rank before is not known */
    bool was_offered;
};

/* What the rows that fair_undo was given have told. */
struct fair_undone {
    bool event, pause;   /* a row was about the event's status, or about a pause */
    int64_t changed_seq; /* of the last row that changed terms */
    uint8_t *seats;      /* one bit per seat: a row was about it */
};

const char *unfair_text(enum unfair_kind kind)
{
    static const char *const texts[UNFAIR_KINDS] = {
        [UNFAIR_TAKEN] = "places were taken that fitted a waiting entry",
        [UNFAIR_ORDER] = "a hold was offered although an earlier entry fitted",
        [UNFAIR_IDLE] = "places were left free that fitted a waiting entry",
        [UNFAIR_TWICE] = "an entry was offered a hold a second time"};
    return texts[kind];
}

/* ---- life ---- */

static void begin_with(struct fair *f, struct event *e)
{
    *f = (struct fair){.event = e, .turns_max = WAIT_TURNS_MAX, .offers_at = INT64_MIN};
    f->moving_places = hf_alloc((e->def->areas.n + 1) * sizeof *f->moving_places);
}

void fair_init(struct fair *f, struct event_def *def)
{
    begin_with(f, event_new(def, &(struct clock_row){.event = def->id.key}));
}

void fair_load(struct fair *f, struct event *e)
{
    begin_with(f, e);
    f->undone = hf_alloc(sizeof *f->undone);
    f->undone->seats = hf_alloc(e->def->n_seats / 8 + 1);
    f->paused = e->terms->wait_paused;
}

static void drop_undone(struct fair *f)
{
    if (f->undone)
        free(f->undone->seats);
    free(f->undone);
    f->undone = NULL;
}

void fair_close(struct fair *f)
{
    for (struct table_node *q = table_first(&f->queues); q; q = table_after(&f->queues, q))
        heap_close(&((struct fair_queue *)q)->waiting);
    table_free_items(&f->queues);
    table_free_items(&f->entries);
    for (size_t i = 0; i < f->terms.n; i++)
        event_terms_close(&f->terms.v[i].terms);
    vec_close(&f->terms);
    vec_close(&f->untried);
    vec_close(&f->moving);
    free(f->moving_places);
    drop_undone(f);
    event_free(f->event);
    *f = (struct fair){0};
}

void fair_terms(struct fair *f, const struct event_terms *terms, int64_t seq)
{
    struct fair_terms *known = vec_push(&f->terms);
    known->seq = seq;
    event_terms_copy(terms, &known->terms);
}

/* ---- entries ---- */

static struct fair_entry *find_entry(const struct fair *f, int64_t key)
{
    struct table_node *x = table_chain(&f->entries, hash_int((uint64_t)key));
    while (x && ((struct fair_entry *)x)->key != key)
        x = x->next;
    return (struct fair_entry *)x;
}

static struct fair_queue *queue_of(struct fair *f, const struct wait_wish *wish)
{
    uint64_t hash = hash_keyed(wish, sizeof *wish);
    for (struct table_node *x = table_chain(&f->queues, hash); x; x = x->next)
        if (wait_wish_equal(&((struct fair_queue *)x)->wish, wish))
            return (struct fair_queue *)x;
    struct fair_queue *q = hf_alloc(sizeof *q);
    q->wish = *wish;
    table_add(&f->queues, &q->node, hash);
    return q;
}

/* Returns NULL if the wish is not sound, or the entry is known. */
static struct fair_entry *add_entry(struct fair *f, int64_t key, const struct wait_wish *wish)
{
    if (!event_def_has_wish(f->event->def, wish) || find_entry(f, key))
        return NULL;
    struct fair_entry *x = hf_alloc(sizeof *x);
    x->key = key;
    struct wait_wish untyped = wait_wish_untyped(wish);
    x->queue = queue_of(f, &untyped);
    table_add(&f->entries, &x->node, hash_int((uint64_t)key));
    return x;
}

void fair_wish(struct fair *f, int64_t entry, const struct wait_wish *wish)
{
    (void)add_entry(f, entry, wish);
}

void fair_entry(struct fair *f, const struct wait_row *row)
{
    struct fair_entry *x = add_entry(f, row->id.key, &row->wish);
    if (!x)
        return;
    x->status = (uint8_t)row->status;
    x->rank = row->rank;
}

/* By the fence that it drew, which is the order of the numbers, unless it was moved to the front. */
static int64_t rank_of(const struct fair_entry *x)
{
    return x->rank < 0 ? x->rank : HOLD_FIRST_FENCE(x->key);
}

static struct fair_entry *first_of(const struct fair_queue *q)
{
    const struct heap_node *first = heap_first(&q->waiting);
    return first ? heap_item(first, struct fair_entry, turn) : NULL;
}

static void try_again(struct fair *f, struct fair_queue *q)
{
    if (!q->is_untried && first_of(q))
        *vec_push(&f->untried) = q;
    q->is_untried |= first_of(q) != NULL;
}

/* The entry waits, with this rank. */
static void put_in(struct fair *f, struct fair_entry *x, int64_t rank)
{
    bool is_first = !first_of(x->queue);
    f->n_waiting += !x->turn.place;
    heap_set(&x->queue->waiting, &x->turn, rank);
    if (is_first)
        try_again(f, x->queue);
}

static void take_out(struct fair *f, struct fair_entry *x)
{
    f->n_waiting -= x->turn.place != 0;
    heap_remove(&x->queue->waiting, &x->turn);
}

/* The entry with the smallest rank whose wish fits what is free; NULL: none fits. */
static struct fair_entry *first_fitting(struct fair *f)
{
    struct fair_entry *first = NULL;
    uint32_t seats[HOLD_PLACES_MAX];
    size_t n = 0;
    if (f->frees)
        for (struct table_node *q = table_first(&f->queues); q; q = table_after(&f->queues, q))
            try_again(f, (struct fair_queue *)q);
    f->frees = false;
    for (size_t i = 0; i < f->untried.n; i++) {
        struct fair_queue *q = f->untried.v[i];
        struct fair_entry *x = first_of(q);
        q->is_untried = x && decide_wish_fits(f->event, &q->wish, seats);
        if (!q->is_untried)
            continue;
        f->untried.v[n++] = q;
        if (!first || x->turn.key < first->turn.key)
            first = x;
    }
    f->untried.n = n;
    return first;
}

/* ---- judgement ---- */

static const struct event_terms *known_terms(const struct fair *f)
{
    const struct fair_terms *last = f->n_terms ? &f->terms.v[f->n_terms - 1] : NULL;
    return last && last->seq >= f->changed_seq ? &last->terms : NULL;
}

/* Is it certain that the event offered what was free, at the time of the last row? */
static bool offers(const struct fair *f)
{
    const struct event_terms *t = known_terms(f);
    if (f->event->status_draft != EVENT_OPEN || f->paused)
        return false;
    if (!t)
        return f->offers_at == f->at;
    int64_t end = event_terms_sales_end(t);
    return t->offer_ttl_ms && f->at >= t->sales_open_at && (!end || f->at < end);
}

/* The entry that is to be offered what is free now; 0: none, or the row is not judged. */
static int64_t entry_passed(struct fair *f, int64_t seq)
{
    if (seq <= f->judged_after || f->is_partial || !f->n_waiting || !offers(f))
        return 0;
    f->judged++;
    const struct fair_entry *x = first_fitting(f);
    return x ? x->key : 0;
}

static void accuse(struct fair *f, const struct unfair *what)
{
    if (f->n < UNFAIR_LISTED)
        f->list[f->n] = *what;
    f->n++;
}

/* Free places are taken.  All rows of one claim have the same fence.  The first of them is judged,
 * since the claim takes from what is free and adds nothing; but a change of a hold may have given
 * places back before it, so that is judged by what was free before. */
static void judge_claim(struct fair *f, const struct audit_row *row)
{
    bool is_known = row->fence == f->fence;
    int64_t entry = is_known ? f->entry : 0;
    if (row->cause == CAUSE_WAITLIST)
        return;
    if (!is_known && row->cause != CAUSE_CHANGE)
        entry = entry_passed(f, row->seq);
    if (entry)
        accuse(f, &(struct unfair){
                      .kind = UNFAIR_TAKEN, .seq = row->seq, .entry = entry, .hold = row->hold});
    f->fence = row->fence;
    f->entry = 0;
}

/* ---- places ---- */

/* Forgets the seat among those that move; returns false if it is none of them. */
static bool has_moved(struct fair *f, uint32_t seat)
{
    for (size_t i = 0; i < f->moving.n; i++)
        if (f->moving.v[i] == seat) {
            f->moving.v[i] = f->moving.v[--f->moving.n];
            return true;
        }
    return false;
}

static void replay_seat(struct fair *f, const struct audit_row *row)
{
    if (row->item < 0 || row->item >= f->event->def->n_seats)
        return;
    uint32_t seat = (uint32_t)row->item;
    if (row->cause == CAUSE_BOOK && row->to == SEAT_AVAILABLE) {
        *vec_push(&f->moving) = seat;
        return;
    }
    if (row->cause == CAUSE_CHANGE && row->to == SEAT_HELD && has_moved(f, seat))
        return;
    if (row->from == SEAT_AVAILABLE)
        judge_claim(f, row);
    event_load_seat(f->event, seat, (enum seat_status)row->to, 0);
    f->frees |= row->to == SEAT_AVAILABLE;
}

static void replay_area(struct fair *f, const struct audit_row *row)
{
    if (row->item < 0 || row->item >= (int64_t)f->event->def->areas.n)
        return;
    int64_t *moving = &f->moving_places[row->item];
    struct area_passage p = {.quantity = row->quantity,
                             .from = (enum seat_status)row->from,
                             .to = (enum seat_status)row->to,
                             .channel = row->channel};
    if (row->cause == CAUSE_BOOK && p.to == SEAT_AVAILABLE) {
        *moving += p.quantity;
        return;
    }
    if (row->cause == CAUSE_CHANGE && p.from == SEAT_AVAILABLE && p.to == SEAT_HELD) {
        int64_t moved = min64(p.quantity, *moving);
        *moving -= moved;
        p.quantity -= moved;
    }
    if (p.from == SEAT_AVAILABLE && p.quantity)
        judge_claim(f, row);
    area_pass(&f->event->areas[row->item], &p);
    f->frees |= p.to == SEAT_AVAILABLE;
}

/* What no hold has taken over is free. */
static void free_moving(struct fair *f)
{
    f->frees |= f->moving.n > 0;
    for (size_t i = 0; i < f->moving.n; i++)
        event_load_seat(f->event, f->moving.v[i], SEAT_AVAILABLE, 0);
    vec_clear(&f->moving);
    for (size_t i = 0; i < f->event->def->areas.n; i++) {
        const struct area_passage p = {
            .quantity = f->moving_places[i], .from = SEAT_HELD, .to = SEAT_AVAILABLE};
        area_pass(&f->event->areas[i], &p);
        f->frees |= p.quantity > 0;
        f->moving_places[i] = 0;
    }
}

/* ---- beginning within the log ---- */

/* A place, an entry and the event were what their first row behind the beginning says they had been
 * before, or else what they are now. */
void fair_undo(struct fair *f, const struct audit_row *row)
{
    struct fair_undone *u = f->undone;
    struct fair_entry *x = NULL;
    if (row->object == AUDIT_SEAT && row->item >= 0 && row->item < f->event->def->n_seats) {
        uint8_t *byte = &u->seats[row->item / 8], bit = (uint8_t)(1 << row->item % 8);
        if (!(*byte & bit))
            event_load_seat(f->event, (uint32_t)row->item, (enum seat_status)row->from, 0);
        *byte |= bit;
    } else if (row->object == AUDIT_AREA && row->item >= 0 &&
               row->item < (int64_t)f->event->def->areas.n) {
        area_pass(&f->event->areas[row->item],
                  &(struct area_passage){row->quantity, (enum seat_status)row->to,
                                         (enum seat_status)row->from, row->channel});
    } else if (row->object == AUDIT_EVENT) {
        if (!u->event)
            f->event->status_draft = (enum event_status)row->from;
        if (!u->pause && (row->cause == CAUSE_PAUSE || row->cause == CAUSE_RESUME))
            f->paused = row->cause == CAUSE_RESUME;
        u->event = true;
        u->pause |= row->cause == CAUSE_PAUSE || row->cause == CAUSE_RESUME;
        u->changed_seq = row->cause == CAUSE_CHANGE ? row->seq : u->changed_seq;
    } else if (row->object == AUDIT_WAIT && (x = find_entry(f, HOLD_KEY(row->event, row->fence)))) {
        if (!x->is_undone)
            x->status = (uint8_t)row->from;
        x->is_undone = true;
        x->is_moved |= row->cause == CAUSE_CHANGE && row->to == WAIT_WAITING;
    }
}

/* An entry whose rank is not known is not looked at: it is as one without a wish. */
static void place_entry(struct fair *f, struct fair_entry *x)
{
    x->was_offered = x->status != WAIT_NONE && x->status != WAIT_WAITING;
    if (x->is_moved)
        x->rank = 0;
    if (x->status == WAIT_WAITING && !x->is_moved)
        put_in(f, x, rank_of(x));
}

void fair_begin(struct fair *f, int64_t seq)
{
    for (struct table_node *x = table_first(&f->entries); x; x = table_after(&f->entries, x))
        place_entry(f, (struct fair_entry *)x);
    fair_terms(f, f->event->terms, f->undone->changed_seq ? f->undone->changed_seq : seq);
    f->seq = seq;
    f->is_partial = seq > 0;
    f->frees = true;
    drop_undone(f);
}

/* ---- rows ---- */

static void replay_event(struct fair *f, const struct audit_row *row)
{
    f->event->status_draft = (enum event_status)row->to;
    f->offers_at = INT64_MIN;
    if (row->cause == CAUSE_PAUSE || row->cause == CAUSE_RESUME)
        f->paused = row->cause == CAUSE_PAUSE;
    if (row->cause != CAUSE_CHANGE && row->cause != CAUSE_RESTORE)
        return;
    f->has_terms = true;
    f->may_be_off = true;
    f->is_off = false;
    f->changed_seq = row->cause == CAUSE_CHANGE ? row->seq : f->changed_seq;
}

/* The first row of a transition of a hold; those of its places follow. */
static void replay_hold(struct fair *f, const struct audit_row *row)
{
    if (row->cause == CAUSE_HOLD && !f->may_be_off)
        f->offers_at = row->at; /* sales are open */
    if (row->cause == CAUSE_WAITLIST) {
        f->offers_at = row->at;
        f->may_be_off = f->is_off = false;
        f->offered = row->hold;
    }
    if (row->cause == CAUSE_WAITLIST || row->cause == CAUSE_CHANGE) {
        f->fence = row->fence;
        f->entry = entry_passed(f, row->seq);
    }
}

static void replay_offer(struct fair *f, const struct audit_row *row, struct fair_entry *x)
{
    struct unfair what = {.seq = row->seq, .entry = f->entry, .hold = row->hold, .other = x->key};
    f->turns++;
    if (row->hold == f->offered && f->entry && f->entry != x->key && x->turn.place) {
        what.kind = UNFAIR_ORDER;
        accuse(f, &what);
    }
    if (x->was_offered && row->seq > f->judged_after) {
        what.kind = UNFAIR_TWICE;
        what.entry = x->key;
        what.other = 0;
        accuse(f, &what);
    }
    x->was_offered = true;
    f->entry = 0;
    take_out(f, x);
}

static void replay_wait(struct fair *f, const struct audit_row *row)
{
    struct fair_entry *x = find_entry(f, HOLD_KEY(row->event, row->fence));
    bool is_turn = row->from == WAIT_WAITING && row->to == WAIT_ENDED &&
                   row->cause != CAUSE_EVICT && row->cause != CAUSE_RELEASE;
    f->turns += is_turn;
    f->is_off |= is_turn && row->cause == CAUSE_CHANGE;
    if (!x)
        return;
    if (row->to == WAIT_OFFERED)
        replay_offer(f, row, x);
    else if (row->to != WAIT_WAITING)
        take_out(f, x);
    else if (row->cause == CAUSE_CHANGE)
        put_in(f, x, -row->seq);
    else if (!x->turn.place)
        put_in(f, x, rank_of(x));
}

static void end_commit(struct fair *f, int64_t next_at)
{
    bool is_cut = f->turns >= f->turns_max;
    free_moving(f);
    bool is_judged = !is_cut && !f->has_terms && next_at - f->at > f->idle_ms;
    int64_t entry = is_judged ? entry_passed(f, f->seq) : 0;
    if (entry && entry != f->idle)
        accuse(f, &(struct unfair){.kind = UNFAIR_IDLE, .seq = f->seq, .entry = entry});
    if (is_judged)
        f->idle = entry;
    if (!is_cut)
        f->may_be_off = f->is_off;
    f->turns = 0;
    f->has_terms = f->is_partial = false;
}

/* Goes on to the terms that the event had after the last row. */
static void reach_terms(struct fair *f)
{
    while (f->n_terms < f->terms.n && f->terms.v[f->n_terms].seq <= f->seq)
        f->n_terms++;
}

void fair_row(struct fair *f, const struct audit_row *row)
{
    reach_terms(f);
    if (f->at && row->at != f->at)
        end_commit(f, row->at);
    f->at = row->at;
    switch (row->object) {
    case AUDIT_SEAT:
        replay_seat(f, row);
        break;
    case AUDIT_AREA:
        replay_area(f, row);
        break;
    case AUDIT_HOLD:
        replay_hold(f, row);
        break;
    case AUDIT_EVENT:
        replay_event(f, row);
        break;
    case AUDIT_WAIT:
        replay_wait(f, row);
        break;
    case AUDIT_BOOKING:
    case AUDIT_PAYMENT:
        break;
    }
    f->seq = row->seq;
}

void fair_end(struct fair *f, int64_t now)
{
    reach_terms(f);
    if (f->at)
        end_commit(f, now);
}
