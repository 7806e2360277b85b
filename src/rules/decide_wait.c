/* The waiting list: who comes next.  See decide.h, and model/waitlist.h for the life of an entry.
 * On the worker's thread.
 *
 * The order.  Among the first entries of all queues, the one with the smallest rank whose wish fits
 * gets a hold, and so on until none fits.  An entry whose wish does not fit is passed over by those
 * whose does.  So a large group may wait for long; to keep seats free for it would let one stranger
 * idle every return.
 *
 * When.  Before each command of the event is judged, after each judgement that has ended due holds
 * on the way, and at the end of the batch.  So nobody else gets a place that somebody waits for, and
 * nobody sees it free.
 *
 * Bounds.  A batch makes at most WAIT_TURNS_MAX offers and ends.  While more may fit, claims on the
 * event wait for the next batch, which follows at once.
 *
 * Which places are tried is known by waitlist.h: what was freed opens the queues that it can serve.
 * A turn costs one search for best available, or one look at an area. */
#include <stdlib.h>
#include <string.h>

#include "base/client_number.h"
#include "rules/best.h"
#include "rules/decide_internal.h"
#include "view/view_waits.h"

/* ---- does it fit? ---- */

bool decide_wish_fits(const struct event *e, const struct wait_wish *wish, uint32_t *seats)
{
    uint32_t available;
    if (wish->area >= 0)
        return decide_area_free(e, (uint32_t)wish->area, 0) >= wish->quantity;
    const char *tier = wish->tier >= 0 ? e->def->sections.v[wish->tier].tier : NULL;
    const struct best_want want = {.quantity = wish->quantity,
                                   .section = wish->section,
                                   .tier = tier,
                                   .tier_len = tier ? strlen(tier) : 0,
                                   .category = wish->category,
                                   .accessible = wish->accessible,
                                   .adjacent = wish->adjacent,
                                   .avoids_orphans = e->terms->lone_seats == LONE_SEATS_REFUSE};
    return best_find(e, &want, seats, &available);
}

/* Does the event offer what becomes free? */
static bool offers_now(const struct event *e, int64_t now)
{
    const struct event_terms *t = e->terms;
    int64_t end = event_terms_sales_end(t);
    return e->status_draft == EVENT_OPEN && t->offer_ttl_ms && !t->wait_paused &&
           now >= t->sales_open_at && (!end || now < end);
}

/* Why nobody waits any more; WAIT_REASON_NONE: they do. */
static enum wait_reason why_all_end(const struct event *e, int64_t now)
{
    int64_t end = event_terms_sales_end(e->terms);
    if (e->status_draft == EVENT_CANCELLED || e->status_draft == EVENT_ARCHIVED)
        return WAIT_REASON_CANCELLED;
    if (!e->terms->offer_ttl_ms)
        return WAIT_REASON_OFF;
    return end && now >= end ? WAIT_REASON_SALES_ENDED : WAIT_REASON_NONE;
}

/* ---- ends ---- */

static void end_wait(struct decision *d, struct event *e, struct wait_entry *x,
                     enum wait_reason reason)
{
    static const enum audit_cause causes[WAIT_REASONS] = {
        [WAIT_REASON_UNTIL] = CAUSE_EXPIRE,         [WAIT_REASON_UNREAD] = CAUSE_EXPIRE,
        [WAIT_REASON_OWNER_LIMIT] = CAUSE_WAITLIST, [WAIT_REASON_TOO_MANY] = CAUSE_WAITLIST,
        [WAIT_REASON_SALES_ENDED] = CAUSE_CLOSE,    [WAIT_REASON_CANCELLED] = CAUSE_CANCEL,
        [WAIT_REASON_OFF] = CAUSE_CHANGE,           [WAIT_REASON_EVICTED] = CAUSE_EVICT,
        [WAIT_REASON_ERASED] = CAUSE_RELEASE};
    const struct wait_transition ended = {
        .to = WAIT_ENDED, .cause = causes[reason], .reason = reason};
    change_wait(d, e, x, &ended);
    decide_notify(d, e, NOTICE_WAITLIST_ENDED, x->key, 0, 0);
}

/* The same, for the server's own reasons. */
static void end_by_itself(struct decision *d, struct event *e, struct wait_entry *x,
                          enum wait_reason reason)
{
    const char *actor = d->actor;
    bool is_timer = reason == WAIT_REASON_UNTIL || reason == WAIT_REASON_UNREAD;
    d->actor = is_timer ? ACTOR_TIMER : ACTOR_SERVER;
    end_wait(d, e, x, reason);
    d->actor = actor;
    d->wait_turns++;
}

static enum wait_reason due_reason(const struct wait_entry *x, int64_t now)
{
    return x->until && x->until <= now ? WAIT_REASON_UNTIL : WAIT_REASON_UNREAD;
}

void decide_wait_of_hold(struct decision *d, struct hold *h, enum audit_cause cause)
{
    struct event *e = h->event;
    struct wait_entry *x = waitlist_find(e->waitlist, h->wait);
    struct wait_transition t = {.to = WAIT_LEFT, .cause = cause, .hold = h->key};
    if (!x || x->status != WAIT_OFFERED)
        return;
    if (h->status == HOLD_CONFIRMED || cause == CAUSE_BOOK) {
        t.to = WAIT_ACCEPTED;
    } else if (h->status == HOLD_RELEASED && e->status_draft == EVENT_CANCELLED) {
        t.to = WAIT_ENDED;
        t.reason = WAIT_REASON_CANCELLED;
    } else if (h->status == HOLD_EXPIRED || cause == CAUSE_EVICT || cause == CAUSE_CANCEL) {
        t.to = WAIT_LAPSED;
    }
    change_wait(d, e, x, &t);
    if (t.to == WAIT_LAPSED)
        decide_notify(d, e, NOTICE_WAITLIST_LAPSED, x->key, 0, 0);
    else if (t.to == WAIT_ENDED)
        decide_notify(d, e, NOTICE_WAITLIST_ENDED, x->key, 0, 0);
}

/* ---- offers ---- */

/* The end of sales shortens an offer, so that others have their turn, too; but not below what a
 * buyer needs. */
static int64_t offer_ttl(const struct decision *d, const struct event *e)
{
    int64_t ttl_ms = e->terms->offer_ttl_ms, end = event_terms_sales_end(e->terms);
    int64_t share_ms = end ? (end - d->now) / 8 : ttl_ms;
    int64_t least_ms = min64(ttl_ms, OFFER_TTL_MS_SHORT);
    return min64(ttl_ms, share_ms > least_ms ? share_ms : least_ms);
}

/* The types that the entry names as runs; returns how many there are. */
static uint32_t type_runs(const struct wait_entry *x, struct type_run runs[TYPES_MAX])
{
    uint32_t n = 0;
    for (uint32_t type = 0; x->types && type < TYPES_MAX; type++)
        if (x->types->places[type])
            runs[n++] = (struct type_run){.n = x->types->places[type], .type = type};
    return n;
}

/* Gives the entry a hold.  `seats` are those that fit; they and the prices are stored with the
 * batch, so they are copied. */
static void offer(struct decision *d, struct event *e, struct wait_entry *x, const uint32_t *seats)
{
    const struct wait_wish *wish = &x->queue->wish;
    struct type_run types[TYPES_MAX];
    const char *actor = d->actor;
    struct hold_create op = {.types = types,
                             .n_types = type_runs(x, types),
                             .ttl_ms = offer_ttl(d, e),
                             .client = x->client,
                             .wait = x->key,
                             .owner_number = x->owner};
    struct area_claim *area = NULL;
    d->actor = ACTOR_SERVER;
    if (wish->area >= 0) {
        area = *vec_push(&d->offers) = hf_alloc(sizeof *area);
        *area = (struct area_claim){(uint32_t)wish->area, wish->quantity};
        op.areas = area;
        op.n_areas = 1;
    } else {
        op.seats = *vec_push(&d->offers) = hf_alloc(wish->quantity * sizeof *seats);
        memcpy(op.seats, seats, wish->quantity * sizeof *seats);
        op.n_seats = wish->quantity;
    }
    decide_grant(d, e, &op, CAUSE_WAITLIST);
    *vec_push(&d->offers) = op.prices;
    const struct wait_transition offered = {.to = WAIT_OFFERED,
                                            .cause = CAUSE_WAITLIST,
                                            .hold = op.hold.id.key,
                                            .until = op.hold.expires_at};
    change_wait(d, e, x, &offered);
    decide_notify(d, e, NOTICE_WAITLIST_OFFERED, x->key, 0, 0);
    d->actor = actor;
    d->wait_turns++;
}

/* The first entry of an open queue has its turn: it is offered a hold, or ends, or finds nothing,
 * which shuts the queue.  VERDICT_DEFERRED: what its owner has is not known before the next batch. */
static enum verdict take_turn(struct decision *d, struct event *e, struct wait_queue *q)
{
    struct wait_entry *x = wait_queue_first(q);
    uint32_t seats[HOLD_PLACES_MAX];
    struct shortage shortage;
    if (waitlist_entry_due(e, x) <= d->now) {
        end_by_itself(d, e, x, due_reason(x, d->now));
        return VERDICT_OK;
    }
    if (q->wish.quantity > e->terms->max_per_hold) {
        end_by_itself(d, e, x, WAIT_REASON_TOO_MANY);
        return VERDICT_OK;
    }
    if (!decide_wish_fits(e, &q->wish, seats)) {
        waitlist_shut(e->waitlist, q);
        return VERDICT_OK;
    }
    uint64_t expired = d->expired;
    enum verdict verdict = decide_check_limits(d, e, 0, x->owner, q->wish.quantity, &shortage);
    if (verdict == VERDICT_DEFERRED)
        return verdict;
    if (d->expired != expired) /* the owner's due holds: what they had may be somebody else's */
        return VERDICT_OK;
    if (verdict == VERDICT_OK)
        offer(d, e, x, seats);
    else
        end_by_itself(d, e, x, WAIT_REASON_OWNER_LIMIT);
    return VERDICT_OK;
}

enum verdict decide_settle(struct decision *d, struct event *e)
{
    struct waitlist *w = e->waitlist;
    struct wait_queue *q;
    enum verdict verdict = VERDICT_OK;
    uint32_t max = d->wait_turns_max ? d->wait_turns_max : WAIT_TURNS_MAX;
    if (!w || !waitlist_is_open(w) || !offers_now(e, d->now))
        return VERDICT_OK;
    while (verdict == VERDICT_OK) {
        waitlist_open_freed(e);
        if (!(q = waitlist_first_open(w)))
            return VERDICT_OK;
        verdict = d->wait_turns < max ? take_turn(d, e, q) : VERDICT_DEFERRED;
    }
    w->unsettled = true;
    return verdict;
}

bool decide_again(struct decision *d, struct event *e, enum verdict *verdict)
{
    uint32_t changes = d->wait_changes;
    if (decide_settle(d, e) == VERDICT_OK)
        return d->wait_changes != changes;
    *verdict = VERDICT_DEFERRED;
    return false;
}

/* ---- the end of a batch ---- */

/* Ends entries whose time has come, or all of them. */
static void end_some(struct decision *d, struct event *e, enum wait_reason reason_of_all)
{
    struct waitlist *w = e->waitlist;
    uint32_t max = d->wait_turns_max ? d->wait_turns_max : WAIT_TURNS_MAX;
    size_t room = d->wait_turns < max ? max - d->wait_turns : 0;
    struct wait_entry **list = hf_alloc((room + 1) * sizeof(struct wait_entry *));
    size_t n = reason_of_all ? waitlist_list_waiting(w, list, room + 1)
                             : waitlist_list_due(w, d->now, list, room + 1);
    for (size_t i = 0; i < n && i < room; i++)
        end_by_itself(d, e, list[i], reason_of_all ? reason_of_all : due_reason(list[i], d->now));
    w->unsettled |= n > room;
    free(list);
}

void decide_waits(struct decision *d)
{
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        if (!e->waitlist)
            continue;
        e->waitlist->looked_at = d->now;
        e->waitlist->unsettled = false;
        end_some(d, e, why_all_end(e, d->now));
        if (decide_settle(d, e) != VERDICT_OK)
            e->waitlist->unsettled = true;
    }
}

void decide_waits_look(struct view *v, struct event *e, int64_t now)
{
    struct waitlist *w = e->waitlist;
    struct wait_queue *q;
    uint32_t seats[HOLD_PLACES_MAX];
    if (!w || e->stale)
        return;
    waitlist_open_freed(e);
    w->unsettled = w->n_waiting && why_all_end(e, now);
    while (offers_now(e, now) && !w->unsettled && (q = waitlist_first_open(w)))
        if (waitlist_entry_due(e, wait_queue_first(q)) <= now ||
            q->wish.quantity > e->terms->max_per_hold || decide_wish_fits(e, &q->wish, seats))
            w->unsettled = true;
        else
            waitlist_shut(w, q);
    view_waits_schedule(v, e);
}

/* ---- joining ---- */

/* May the owner, and the address, have one more entry? */
static enum verdict check_room(const struct decision *d, const struct event *e,
                               struct wait_join *op)
{
    uint64_t network = client_number_network(op->client);
    const struct waitlist *w = e->waitlist;
    op->shortage.limit = e->terms->wait_per_owner;
    if (waitlist_of_owner(w, owner_hash(e, op->owner, op->owner_len)) >= op->shortage.limit)
        return VERDICT_ALREADY_WAITING;
    op->shortage.limit = d->client_places_max;
    if (!op->shortage.limit)
        return VERDICT_OK;
    bool is_full = waitlist_of_client(w, op->client) >= op->shortage.limit ||
                   waitlist_of_client(w, network) >= CLIENT_WIDE * op->shortage.limit;
    return is_full ? VERDICT_TOO_MANY_WAITS : VERDICT_OK;
}

/* Could there ever be enough? */
static bool is_possible(const struct event *e, const struct wait_wish *wish)
{
    return wish->quantity <=
           (wish->area >= 0 ? e->def->areas.v[wish->area].capacity : (int64_t)e->def->n_seats);
}

static enum verdict check_join(struct decision *d, struct event *e, struct wait_join *op)
{
    uint32_t seats[HOLD_PLACES_MAX];
    if (!e->terms->offer_ttl_ms)
        return VERDICT_WAITLIST_OFF;
    enum verdict verdict = decide_check_sales(d, e, &op->shortage);
    if (verdict != VERDICT_OK)
        return verdict;
    op->conflict = op->until && op->until <= d->now ? "until must be in the future" : NULL;
    if (!op->conflict && !is_possible(e, &op->wish))
        op->conflict = "there are fewer places than are wanted";
    if (op->conflict)
        return VERDICT_INVALID_REQUEST;
    if (op->wish.quantity > e->terms->max_per_hold) {
        op->shortage.limit = e->terms->max_per_hold;
        return VERDICT_TOO_MANY_SEATS;
    }
    if ((verdict = check_room(d, e, op)) != VERDICT_OK)
        return verdict;
    do {
        if (decide_wish_fits(e, &op->wish, seats))
            verdict = VERDICT_AVAILABLE;
        else
            verdict = decide_expire_event(d, e) ? VERDICT_UNDECIDED : VERDICT_OK;
    } while (decide_again(d, e, &verdict) || verdict == VERDICT_UNDECIDED);
    return verdict;
}

enum verdict decide_wait_join(struct decision *d, struct event *e, struct wait_join *op)
{
    const struct type_runs named = {op->types, op->n_types};
    enum verdict verdict = decide_types(e, &named, &op->shortage);
    if (verdict == VERDICT_OK)
        verdict = check_join(d, e, op);
    if (verdict != VERDICT_OK)
        return verdict;
    memset(op->wish.types, 0, sizeof op->wish.types);
    for (uint32_t i = 0; i < op->n_types; i++)
        op->wish.types[op->types[i].type] =
            (uint16_t)(op->wish.types[op->types[i].type] + op->types[i].n);
    int64_t fence = ++e->draft.fence, number = waitlist_get(e)->last_number + 1;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    op->wait = (struct wait_row){.id.key = HOLD_KEY(e->def->id.key, fence),
                                 .event = e->def->id.key,
                                 .number = number,
                                 .rank = number,
                                 .created_at = d->now,
                                 .read_at = d->now,
                                 .until = op->until,
                                 .client = op->client,
                                 .status = WAIT_WAITING,
                                 .owner = op->owner,
                                 .owner_len = op->owner_len,
                                 .metadata = op->metadata,
                                 .metadata_len = op->metadata_len,
                                 .wish = op->wish};
    random_bytes(d->random, op->wait.id.secret, ID_SECRET_SIZE);
    change_wait_new(d, e, &op->wait, owner_hash(e, op->owner, op->owner_len));
    return VERDICT_CREATED;
}

/* ---- what is asked about an entry ---- */

/* Finds the entry as it stands in this batch; *ret_entry is NULL if it is not live.  What changed in
 * this batch, or whose hold did, is asked about in the next. */
static enum verdict find_wait(struct decision *d, struct event *e, struct wait_change *op,
                              struct wait_entry **ret_entry)
{
    struct wait_entry *x = waitlist_find(e->waitlist, op->id.key);
    if (!op->wait.id.key || op->wait.event != e->def->id.key ||
        (!op->is_internal && !id_secret_equal(op->wait.id.secret, op->id.secret)))
        return VERDICT_NO_SUCH_WAIT;
    if (!x && wait_is_live(op->wait.status)) /* a damaged row, which the view did not load */
        return VERDICT_INTERNAL;
    if (x && x->pending)
        return VERDICT_DEFERRED;
    struct hold *h = x && x->hold ? view_hold(d->view, x->hold) : NULL;
    if (h && (h->pending || decide_is_unreadable(d, h->key)))
        return VERDICT_DEFERRED;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now) {
        decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
        return VERDICT_DEFERRED;
    }
    *ret_entry = x;
    return VERDICT_OK;
}

/* Takes the entry, or the hold that it is offered, out of the buyer's hands. */
static enum verdict take_away(struct decision *d, struct event *e, struct wait_entry *x,
                              const struct wait_change *op)
{
    static const struct wait_transition left = {.to = WAIT_LEFT, .cause = CAUSE_RELEASE};
    bool leaves = op->kind == WAIT_LEAVES;
    struct hold *h = x->hold ? view_hold(d->view, x->hold) : NULL;
    if (x->status == WAIT_OFFERED && !h)
        return VERDICT_INTERNAL;
    if (h)
        decide_end_hold(d, h, HOLD_RELEASED, leaves ? CAUSE_RELEASE : CAUSE_EVICT);
    else if (leaves)
        change_wait(d, e, x, &left);
    else
        end_wait(d, e, x, WAIT_REASON_EVICTED);
    return VERDICT_OK;
}

static enum verdict change_live(struct decision *d, struct event *e, struct wait_entry *x,
                                const struct wait_change *op)
{
    static const struct wait_transition first = {
        .to = WAIT_WAITING, .cause = CAUSE_CHANGE, .comes_first = true};
    static const struct wait_transition read = {
        .to = WAIT_WAITING, .cause = CAUSE_RENEW, .is_read = true};
    bool waits = x->status == WAIT_WAITING;
    switch (op->kind) {
    case WAIT_LEAVES:
    case WAIT_EVICTS:
        return take_away(d, e, x, op);
    case WAIT_COMES_FIRST:
        if (!waits)
            return VERDICT_NOT_WAITING;
        change_wait(d, e, x, &first);
        return VERDICT_OK;
    case WAIT_IS_READ:
        if (waits && d->now - x->read_at > e->terms->wait_alive_ms / 8)
            change_wait(d, e, x, &read);
        return VERDICT_OK;
    case WAIT_IS_ERASED:
        if (waits)
            end_wait(d, e, x, WAIT_REASON_ERASED);
        return VERDICT_OK;
    }
    return VERDICT_INTERNAL;
}

enum verdict decide_wait_change(struct decision *d, struct event *e, struct wait_change *op)
{
    struct wait_entry *x;
    enum verdict verdict = find_wait(d, e, op, &x);
    if (verdict != VERDICT_OK)
        return verdict;
    bool is_done = !x && ((op->kind == WAIT_LEAVES && op->wait.status == WAIT_LEFT) ||
                          op->kind == WAIT_IS_READ || op->kind == WAIT_IS_ERASED);
    if (is_done)
        return VERDICT_OK;
    if (!x)
        return VERDICT_NOT_WAITING;
    verdict = change_live(d, e, x, op);
    op->wait.status = (enum wait_status)x->status;
    op->wait.rank = x->rank;
    op->wait.read_at = x->read_at;
    op->wait.last_seq = x->last_seq;
    if (!wait_is_live(op->wait.status)) {
        op->wait.ended_at = d->now;
        op->wait.reason = op->wait.status != WAIT_ENDED ? WAIT_REASON_NONE
                          : op->kind == WAIT_IS_ERASED  ? WAIT_REASON_ERASED
                                                        : WAIT_REASON_EVICTED;
    }
    return verdict;
}

enum verdict decide_wait_pause(struct decision *d, struct event *e, bool pauses)
{
    struct event_terms terms;
    if (!e->terms->offer_ttl_ms)
        return VERDICT_WAITLIST_OFF;
    if (e->status_draft == EVENT_ARCHIVED)
        return VERDICT_EVENT_ARCHIVED;
    if (e->terms->wait_paused == pauses)
        return VERDICT_OK;
    event_terms_copy(e->terms, &terms);
    terms.wait_paused = pauses;
    change_event(d, e, e->status_draft, pauses ? CAUSE_PAUSE : CAUSE_RESUME,
                 event_terms_new(&terms));
    return VERDICT_OK;
}
