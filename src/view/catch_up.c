/* Folds what other servers wrote into the view row by row, then shows it in one step, as a batch of
 * our own is shown (I11, I13).  On the worker's thread. */
#include "view/catch_up.h"

#include <stdlib.h>

#include "view/free_seats.h"
#include "view/publish.h"
#include "view/view_waits.h"

/* What to show when all rows are folded.  Seats and areas that changed are marked by `pending`, so
 * that each is listed once. */
struct touched_seat {
    uint32_t index;
    int64_t head; /* the seq of the last row about it */
};
struct touched {
    VEC(struct touched_seat) seats; /* `pending` is 1 + the index in this list */
    VEC(uint32_t) areas;
    VEC(uint32_t) renewed; /* seats whose hold lasts longer; a seat may be listed twice */
    bool event;            /* the event's status or terms changed */
    /* The hold whose places the rows being folded change, and the places that it has so far.  What
     * goes out stays in the lists until the last row, since what comes in again, as another ticket
     * type, keeps its place: so they get the order that decide_change gives them. */
    struct hold *changing;
    VEC(uint32_t) hold_seats;
    VEC(uint32_t) seats_out;           /* those of hold_seats that it has no longer */
    VEC(struct area_claim) hold_areas; /* quantity 0: it has none of the area any longer */
};

/* ---- holds that get other places ---- */

static void begin_change(struct touched *t, struct hold *h)
{
    t->changing = h;
    vec_clear(&t->hold_seats);
    vec_clear(&t->seats_out);
    vec_clear(&t->hold_areas);
    for (uint32_t i = 0; i < h->n_seats; i++)
        *vec_push(&t->hold_seats) = h->seats[i];
    for (uint32_t i = 0; i < h->n_areas; i++)
        *vec_push(&t->hold_areas) = h->areas[i];
}

/* Returns the index of the number in the list; `n`: it is not there. */
static size_t index_of(const uint32_t *list, size_t n, uint32_t number)
{
    size_t at = 0;
    while (at < n && list[at] != number)
        at++;
    return at;
}

/* Takes what has gone out off the lists. */
static void drop_out(struct touched *t)
{
    size_t n_seats = 0, n_areas = 0;
    for (size_t i = 0; i < t->hold_seats.n; i++) {
        uint32_t seat = t->hold_seats.v[i];
        if (index_of(t->seats_out.v, t->seats_out.n, seat) == t->seats_out.n)
            t->hold_seats.v[n_seats++] = seat;
    }
    for (size_t i = 0; i < t->hold_areas.n; i++)
        if (t->hold_areas.v[i].quantity)
            t->hold_areas.v[n_areas++] = t->hold_areas.v[i];
    t->hold_seats.n = n_seats;
    t->hold_areas.n = n_areas;
}

/* Puts the changed hold into the view, once its last row has been folded. */
static void end_change(struct view *v, struct touched *t)
{
    struct hold *before = t->changing;
    if (!before)
        return;
    drop_out(t);
    struct hold *after = hold_with_places(before, t->hold_seats.v, (uint32_t)t->hold_seats.n,
                                          t->hold_areas.v, (uint32_t)t->hold_areas.n);
    view_hold_replace(v, before, after);
    free(before);
    t->changing = NULL;
}

static void change_seat_of(struct touched *t, uint32_t seat, bool has_it)
{
    bool is_listed = index_of(t->hold_seats.v, t->hold_seats.n, seat) < t->hold_seats.n;
    size_t out = index_of(t->seats_out.v, t->seats_out.n, seat);
    bool is_out = out < t->seats_out.n;
    if (has_it && !is_listed)
        *vec_push(&t->hold_seats) = seat;
    else if (has_it && is_out)
        t->seats_out.v[out] = t->seats_out.v[--t->seats_out.n];
    else if (!has_it && is_listed && !is_out)
        *vec_push(&t->seats_out) = seat;
}

static void change_area_of(struct touched *t, uint32_t area, int64_t more)
{
    size_t at = 0;
    while (at < t->hold_areas.n && t->hold_areas.v[at].area != area)
        at++;
    if (at == t->hold_areas.n)
        vec_push(&t->hold_areas)->area = area;
    t->hold_areas.v[at].quantity = (uint32_t)(t->hold_areas.v[at].quantity + more);
}

/* Notes what the row gives to the changing hold or takes from it. */
static void change_of_hold(struct touched *t, const struct audit_row *row)
{
    if (!t->changing || row->cause != CAUSE_CHANGE || row->hold != t->changing->key)
        return;
    if (row->object == AUDIT_SEAT)
        change_seat_of(t, (uint32_t)row->item, row->to == SEAT_HELD);
    else
        change_area_of(t, (uint32_t)row->item,
                       row->to == SEAT_HELD ? row->quantity : -row->quantity);
}

/* ---- rows ---- */

static int hold_order(const void *key, const void *row)
{
    int64_t a = *(const int64_t *)key, b = ((const struct hold_row *)row)->id.key;
    return (a > b) - (a < b);
}

/* The hold as it was read with the rows; NULL if it was not. */
static const struct hold_row *hold_read(const struct log_since *since, int64_t key)
{
    if (!since->holds.n)
        return NULL;
    return bsearch(&key, since->holds.v, since->holds.n, sizeof *since->holds.v, hold_order);
}

/* Does the row book or free places that count for the owner of its hold? */
static bool counts_for_owner(const struct event *e, const struct audit_row *row)
{
    if (!e->terms->max_per_owner)
        return false;
    if (row->object == AUDIT_HOLD)
        return row->to == HOLD_CONFIRMED;
    return (row->object == AUDIT_SEAT || row->object == AUDIT_AREA) && row->from == SEAT_BOOKED;
}

/* A hold that passes to another status.  Places that become booked count for their owner; if the
 * owner is not known, the event has to be loaded again. */
static bool fold_ended(struct view *v, struct event *e, const struct audit_row *row, struct hold *h,
                       const struct log_since *since)
{
    const struct hold_row *read = h ? NULL : hold_read(since, row->hold);
    if (counts_for_owner(e, row) && h)
        view_owner_booked(v, e->def->id.key, h->owner,
                          places_count(h->n_seats, h->areas, h->n_areas));
    else if (counts_for_owner(e, row) && read)
        view_owner_booked(v, e->def->id.key, owner_hash(e, read->owner, read->owner_len),
                          places_count(read->n_seats, read->areas, read->n_areas));
    else if (counts_for_owner(e, row))
        return false;
    if (h)
        view_hold_remove(v, h);
    return true;
}

/* Places that are booked no longer do not count for their owner; likewise. */
static bool fold_freed(struct view *v, struct event *e, const struct audit_row *row,
                       const struct log_since *since)
{
    if (!counts_for_owner(e, row))
        return true;
    const struct hold_row *read = hold_read(since, row->hold);
    if (read)
        view_owner_booked(v, e->def->id.key, owner_hash(e, read->owner, read->owner_len),
                          row->object == AUDIT_SEAT ? -1 : -row->quantity);
    return read;
}

/* Live and confirmed holds come with the rows, as they are after the last of them; a hold that
 * ended otherwise does not, and later rows of the log free its places. */
static void fold_new(struct view *v, struct event *e, const struct audit_row *row,
                     const struct log_since *since)
{
    const struct hold_row *made = hold_read(since, row->hold);
    if (made && event_fits_hold(e, made))
        view_hold_add(v, e, made);
}

/* A hold that was read with the rows already has what rows up to its last_seq say. */
static bool fold_hold(struct view *v, struct event *e, const struct audit_row *row,
                      const struct log_since *since, struct touched *touched)
{
    struct hold *h = view_hold(v, row->hold);
    if (row->to != HOLD_ACTIVE)
        return fold_ended(v, e, row, h, since);
    if (!h) {
        fold_new(v, e, row, since);
    } else if (row->seq > h->last_seq) {
        h->expires_at = row->until;
        h->fence = row->fence;
        h->last_seq = row->seq;
        view_deadline_moved(v, h);
        if (row->cause == CAUSE_CHANGE)
            begin_change(touched, h);
    }
    for (uint32_t i = 0; h && i < h->n_seats; i++)
        *vec_push(&touched->renewed) = h->seats[i];
    return true;
}

static bool fold_seat(struct event *e, const struct audit_row *row, struct touched *touched)
{
    if (row->item < 0 || row->item >= e->def->n_seats)
        return false;
    uint32_t index = (uint32_t)row->item;
    struct seat *seat = &e->seats[index];
    seat->status = (uint8_t)row->to;
    if (row->to == SEAT_AVAILABLE || row->to == SEAT_BLOCKED)
        seat->channel = row->to == SEAT_BLOCKED ? (uint8_t)row->channel : 0;
    seat_set_hold(e, index, row->to == SEAT_HELD || row->to == SEAT_BOOKED ? row->hold : 0);
    free_seats_changed(e, index);
    if (row->to == SEAT_AVAILABLE)
        waitlist_freed_seat(e, index);
    if (!seat->pending) {
        vec_push(&touched->seats)->index = index;
        hf_check(touched->seats.n <= SEAT_PENDING_MAX);
        seat->pending = touched->seats.n & SEAT_PENDING_MAX;
    }
    touched->seats.v[seat->pending - 1].head = row->seq;
    return true;
}

static bool fold_area(struct event *e, const struct audit_row *row, struct touched *touched)
{
    if (row->item < 0 || row->item >= (int64_t)e->def->areas.n)
        return false;
    struct area *area = &e->areas[row->item];
    area_pass(area, &(struct area_passage){row->quantity, (enum seat_status)row->from,
                                           (enum seat_status)row->to, row->channel});
    if (row->to == SEAT_AVAILABLE)
        waitlist_freed_area(e, (uint32_t)row->item);
    if (!area->pending) {
        area->pending = 1;
        *vec_push(&touched->areas) = (uint32_t)row->item;
    }
    return true;
}

/* A row about a booking or a payment is one of its hold's chain. */
static void fold_money(struct view *v, const struct audit_row *row)
{
    struct hold *h = view_hold(v, row->hold);
    if (h && row->object == AUDIT_BOOKING)
        h->payment = row->to == BOOKING_PENDING ? HOLD_KEY(row->event, row->fence) : 0;
    if (h && row->prev && row->seq > h->last_seq)
        h->last_seq = row->seq;
}

static int wait_order(const void *key, const void *row)
{
    int64_t a = *(const int64_t *)key, b = ((const struct wait_row *)row)->id.key;
    return (a > b) - (a < b);
}

/* An entry that was not read with the rows is not live any more; its number is taken all the same.
 */
static void fold_new_wait(struct event *e, const struct audit_row *row,
                          const struct log_since *since)
{
    int64_t key = HOLD_KEY(row->event, row->fence);
    event_load_wait_number(e, row->until);
    const struct wait_row *read = since->waits.n ? bsearch(&key, since->waits.v, since->waits.n,
                                                           sizeof *since->waits.v, wait_order)
                                                 : NULL;
    if (read)
        event_load_wait(e, read);
}

/* An entry that was read with the rows has what rows up to its last_seq say, but for what its hold,
 * which is in the view by now, has to know. */
static void fold_wait(struct view *v, struct event *e, const struct audit_row *row,
                      const struct log_since *since)
{
    int64_t key = HOLD_KEY(row->event, row->fence);
    struct hold *h = row->to == WAIT_OFFERED ? view_hold(v, row->hold) : NULL;
    if (h)
        h->wait = key;
    if (row->from == WAIT_NONE)
        fold_new_wait(e, row, since);
    struct wait_entry *x = waitlist_find(e->waitlist, key);
    if (!x || row->seq <= x->last_seq)
        return;
    struct wait_state to = {.status = (enum wait_status)row->to,
                            .rank = x->rank,
                            .read_at = x->read_at,
                            .hold = row->to == WAIT_OFFERED ? row->hold : 0,
                            .last_seq = row->seq};
    if (row->cause == CAUSE_CHANGE && row->to == WAIT_WAITING)
        to.rank = -row->seq;
    if (row->cause == CAUSE_RENEW)
        to.read_at = row->at;
    waitlist_set(e, x, &to);
    if (!wait_is_live(to.status))
        waitlist_remove(e, x);
}

static bool fold_row(struct view *v, struct event *e, const struct audit_row *row,
                     const struct log_since *since, struct touched *touched)
{
    if (row->object != AUDIT_SEAT && row->object != AUDIT_AREA)
        end_change(v, touched);
    switch (row->object) {
    case AUDIT_SEAT:
        change_of_hold(touched, row);
        return fold_seat(e, row, touched) && fold_freed(v, e, row, since);
    case AUDIT_AREA:
        change_of_hold(touched, row);
        return fold_area(e, row, touched) && fold_freed(v, e, row, since);
    case AUDIT_HOLD:
        return fold_hold(v, e, row, since, touched);
    case AUDIT_EVENT:
        e->status_draft = (enum event_status)row->to;
        touched->event = true;
        waitlist_freed_all(e);
        return true;
    case AUDIT_WAIT:
        fold_wait(v, e, row, since);
        return true;
    case AUDIT_BOOKING:
    case AUDIT_PAYMENT:
        fold_money(v, row);
        return true;
    default:
        return true;
    }
}

static int64_t seat_until(const struct view *v, const struct event *e, uint32_t index)
{
    bool is_held = e->seats[index].status == SEAT_HELD;
    const struct hold *h = is_held ? view_hold(v, seat_hold(e, index)) : NULL;
    return h ? h->expires_at : 0;
}

/* A seat that changed and changed back is told to streams, too: a reader may have seen at another
 * server what was in between (I13). */
static void show(struct view *v, struct event *e, const struct touched *touched,
                 const struct clock_row *clock)
{
    publish_begin(e);
    for (size_t i = 0; i < touched->seats.n; i++) {
        uint32_t index = touched->seats.v[i].index;
        publish_seat(e, index, seat_until(v, e, index), clock->seq);
        seat_set_head(&e->seats[index], touched->seats.v[i].head);
    }
    for (size_t i = 0; i < touched->renewed.n; i++)
        publish_seat(e, touched->renewed.v[i], seat_until(v, e, touched->renewed.v[i]), 0);
    for (size_t i = 0; i < touched->areas.n; i++)
        publish_area(e, touched->areas.v[i], clock->seq);
    if (touched->event)
        publish_terms(e, clock->seq);
    publish_end(e, clock);
}

/* The index of the first row of this event; rows are ordered by event and seq. */
static size_t first_row(const struct log_since *since, int64_t event)
{
    size_t low = 0, high = since->audit.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (since->audit.v[mid].event < event)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool catch_up_changes_terms(const struct event *e, const struct log_since *since)
{
    int64_t key = e->def->id.key;
    for (size_t i = first_row(since, key); i < since->audit.n; i++) {
        const struct audit_row *row = &since->audit.v[i];
        if (row->event != key)
            break;
        bool has_terms =
            row->cause == CAUSE_CHANGE || row->cause == CAUSE_PAUSE || row->cause == CAUSE_RESUME;
        if (row->seq > e->clock.seq && row->object == AUDIT_EVENT && has_terms)
            return true;
    }
    return false;
}

/* A live hold that is sold is in the view or among the new ones. */
void catch_up_wants(const struct event *e, const struct log_since *since, struct hold_keys *ret)
{
    int64_t key = e->def->id.key, last = 0;
    for (size_t i = first_row(since, key); i < since->audit.n; i++) {
        const struct audit_row *row = &since->audit.v[i];
        if (row->event != key)
            break;
        if (row->seq <= e->clock.seq || row->hold == last || !counts_for_owner(e, row) ||
            (row->object == AUDIT_HOLD && row->from == HOLD_ACTIVE) || hold_read(since, row->hold))
            continue;
        *vec_push(&ret->list) = last = row->hold;
    }
}

bool catch_up(struct view *v, struct event *e, const struct log_since *since)
{
    struct touched touched = {0};
    struct clock_row clock = e->clock;
    int64_t key = e->def->id.key;
    bool whole = true;
    for (size_t i = first_row(since, key); whole && i < since->audit.n; i++) {
        const struct audit_row *row = &since->audit.v[i];
        if (row->event != key)
            break;
        if (row->seq <= clock.seq)
            continue;
        whole = row->seq == clock.seq + 1 && fold_row(v, e, row, since, &touched);
        clock.seq = row->seq;
        clock.fence = row->fence > clock.fence ? row->fence : clock.fence;
        clock.now = row->at > clock.now ? row->at : clock.now;
    }
    end_change(v, &touched);
    if (whole && clock.seq != e->clock.seq)
        show(v, e, &touched, &clock);
    if (e->waitlist)
        e->waitlist->unsettled = true;
    view_waits_schedule(v, e);
    for (size_t i = 0; i < touched.seats.n; i++)
        e->seats[touched.seats.v[i].index].pending = 0;
    for (size_t i = 0; i < touched.areas.n; i++)
        e->areas[touched.areas.v[i]].pending = 0;
    vec_close(&touched.seats);
    vec_close(&touched.areas);
    vec_close(&touched.renewed);
    vec_close(&touched.hold_seats);
    vec_close(&touched.seats_out);
    vec_close(&touched.hold_areas);
    return whole;
}
