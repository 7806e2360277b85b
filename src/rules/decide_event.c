/* What sellers and admins do to an event: blocking places, opening, closing, cancelling and
 * archiving, other terms.  See decide.h.  On the worker's thread. */
#include <stdlib.h>
#include <string.h>

#include "rules/decide_internal.h"

/* ---- blocking ---- */

#define BATCH_SEATS_MANY 200000 /* changes of seats; beyond, blocks wait for the next batch */

/* Is the seat as wanted already? */
static bool is_done(const struct seat *seat, const struct seats_block *op, uint32_t channel)
{
    if (op->blocks)
        return seat->status == SEAT_BLOCKED && seat->channel == channel;
    return seat->status == SEAT_AVAILABLE;
}

/* Seats that are held or booked are in the way, and so are those of other channels when a channel
 * is to get its seats back. */
static enum verdict check_blocked_seats(const struct event *e, struct seats_block *op,
                                        uint32_t channel)
{
    struct shortage *s = &op->shortage;
    s->n_taken = 0;
    for (uint32_t i = 0; i < op->n_seats; i++) {
        const struct seat *seat = &e->seats[op->seats[i]];
        bool others =
            !op->blocks && op->channel && seat->status == SEAT_BLOCKED && seat->channel != channel;
        if (seat->status == SEAT_HELD || seat->status == SEAT_BOOKED || others)
            s->taken[s->n_taken++] = op->seats[i];
    }
    return s->n_taken ? VERDICT_SEAT_TAKEN : VERDICT_OK;
}

static enum verdict check_blocked_areas(struct decision *d, struct event *e, struct seats_block *op,
                                        uint32_t channel)
{
    if (op->blocks || channel) /* from the public, or from the channel */
        return decide_check_areas(d, e, op->areas, op->n_areas, op->blocks ? 0 : channel,
                                  &op->shortage);
    for (uint32_t i = 0; i < op->n_areas; i++) {
        op->shortage.short_area = op->areas[i].area;
        op->shortage.available = area_blocked_for(&e->areas[op->areas[i].area], 0);
        if (op->shortage.available < op->areas[i].quantity)
            return VERDICT_SOLD_OUT;
    }
    return VERDICT_OK;
}

/* Adds the channel to the event's terms; returns its number. */
static uint32_t add_channel(struct decision *d, struct event *e, const struct seats_block *op)
{
    struct event_terms terms;
    event_terms_copy(e->terms, &terms);
    *vec_push(&terms.channels) = hf_strndup(op->channel, op->channel_len);
    change_event(d, e, e->status_draft, CAUSE_CHANGE, event_terms_new(&terms));
    return (uint32_t)e->terms->channels.n;
}

enum verdict decide_block(struct decision *d, struct event *e, struct seats_block *op)
{
    uint32_t channel =
        op->channel ? event_terms_channel(e->terms, op->channel, op->channel_len) : 0;
    bool is_new = op->blocks && op->channel && !channel;
    if (op->channel && !channel)
        channel = NO_CHANNEL;
    if (is_new && e->terms->channels.n >= CHANNELS_MAX)
        return VERDICT_TOO_MANY_CHANNELS;
    if (d->batch.seats.n > BATCH_SEATS_MANY) /* which bounds the memory of a batch */
        return VERDICT_DEFERRED;
    enum verdict verdict;
    do {
        decide_expire_owners(d, e, op->seats, op->n_seats);
        verdict = check_blocked_seats(e, op, channel);
        if (verdict == VERDICT_OK)
            verdict = check_blocked_areas(d, e, op, channel);
    } while (decide_again(d, e, &verdict));
    if (verdict != VERDICT_OK)
        return verdict;
    if (is_new)
        channel = add_channel(d, e, op);
    struct transition change = {.to = op->blocks ? SEAT_BLOCKED : SEAT_AVAILABLE,
                                .cause = op->blocks ? CAUSE_BLOCK : CAUSE_UNBLOCK,
                                .channel = op->blocks ? channel : 0};
    for (uint32_t i = 0; i < op->n_seats; i++) {
        if (is_done(&e->seats[op->seats[i]], op, channel))
            continue;
        if (!change.fence) /* one fence for all places that change, like a hold's */
            change.fence = ++e->draft.fence;
        change_seats(d, e, &op->seats[i], 1, &change);
    }
    if (op->n_areas && !change.fence)
        change.fence = ++e->draft.fence;
    change.channel = channel;
    change_areas(d, e, op->areas, op->n_areas, op->blocks ? SEAT_AVAILABLE : SEAT_BLOCKED, &change);
    return VERDICT_OK;
}

/* ---- status and terms ---- */

/* Are places held or booked?  The cancelling of an event goes on until none are, and an event that
 * is archived before that would never be looked at again. */
static bool has_claims(struct event *e)
{
    struct event_counts counts;
    event_read_counts(e, &counts);
    return counts.held > 0 || counts.booked > 0;
}

enum verdict decide_status(struct decision *d, struct event *e, enum event_status to)
{
    static const enum audit_cause causes[] = {[EVENT_OPEN] = CAUSE_OPEN,
                                              [EVENT_CLOSED] = CAUSE_CLOSE,
                                              [EVENT_ARCHIVED] = CAUSE_ARCHIVE,
                                              [EVENT_CANCELLED] = CAUSE_CANCEL};
    if (e->status_draft == to)
        return VERDICT_OK;
    if (e->status_draft == EVENT_ARCHIVED)
        return VERDICT_EVENT_ARCHIVED;
    if (e->status_draft == EVENT_CANCELLED && (to != EVENT_ARCHIVED || has_claims(e)))
        return VERDICT_EVENT_CANCELLED;
    change_event(d, e, to, causes[to], NULL);
    return VERDICT_OK;
}

/* What owners have booked is counted only where it is limited, so the event is read again, under
 * the same lock, before the next decision if it is limited from now on. */
enum verdict decide_terms(struct decision *d, struct event *e, struct event_change *op)
{
    struct event_terms terms;
    event_terms_copy(e->terms, &terms);
    event_terms_change(&terms, op->given, &op->terms);
    for (size_t i = 0; i < op->prices.n; i++)
        terms.prices.v[op->prices.v[i].index] = op->prices.v[i].price;
    op->conflict = NULL;
    for (size_t i = 0; i < op->types.n; i++)
        if (!event_terms_put_type(&terms, &op->types.v[i]))
            op->conflict = TYPES_TOO_MANY;
    if (!op->conflict)
        op->conflict = event_terms_conflict(&terms);
    if (op->conflict) {
        event_terms_close(&terms);
        return VERDICT_INVALID_REQUEST;
    }
    bool limits_now = terms.max_per_owner && !e->terms->max_per_owner;
    event_terms_give(op->after); /* of a batch that was taken back */
    change_event(d, e, e->status_draft, CAUSE_CHANGE, event_terms_new(&terms));
    op->after = event_terms_share(e->terms);
    op->status = e->status_draft;
    e->stale |= limits_now;
    return VERDICT_OK;
}
