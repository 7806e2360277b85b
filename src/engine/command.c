/* What every command has in common; see command.h.  No state; the owner's or the worker's thread.
 */
#include "engine/command.h"

#include <stdlib.h>

#include "rules/decide.h"
#include "view/snapshot.h"
#include "view/view.h"

void event_list_free(struct event_list *list)
{
    if (!list || atomic_fetch_sub(&list->n_others, 1) > 0)
        return;
    for (size_t i = 0; i < list->n; i++)
        event_def_free(list->events[i].def);
    free(list);
}

void hold_page_free(struct hold_page *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->holds && i < p->n; i++)
        hold_row_close(&p->holds[i]);
    free(p->holds);
    free(p);
}

void booking_page_free(struct booking_page *p)
{
    if (!p)
        return;
    for (size_t i = 0; p->bookings && i < p->n; i++)
        booking_row_close(&p->bookings[i]);
    free(p->bookings);
    money_close(&p->money);
    free(p);
}

void audit_page_free(struct audit_page *p)
{
    if (!p)
        return;
    free(p->entries);
    free(p);
}

void wait_page_free(struct wait_page *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        wait_row_close(&p->waits[i]);
    free(p);
}

struct wait_change *command_wants_wait(struct command *c)
{
    if (c->kind != CMD_WAIT_CHANGE)
        return NULL;
    wait_row_close(&c->wait_change.wait); /* of a batch that failed */
    return &c->wait_change;
}

struct named_hold *command_named_hold(struct command *c)
{
    switch (c->kind) {
    case CMD_HOLD_RENEW:
        return &c->renew.hold;
    case CMD_HOLD_RELEASE:
    case CMD_HOLD_EVICT:
        return &c->release.hold;
    case CMD_HOLD_CONFIRM:
        return &c->confirm.hold;
    case CMD_HOLD_CHANGE:
        return &c->change.hold;
    case CMD_BOOKING_CANCEL:
        return &c->cancel.hold;
    case CMD_BOOKING_CREATE:
        return &c->booking_create->hold;
    case CMD_BOOKING_REFUND:
        return &c->refund.hold;
    case CMD_PAYMENT_UPDATE:
        return &c->update->hold;
    default:
        return NULL;
    }
}

struct booking_row *command_wants_booking(struct command *c, struct money **ret_money)
{
    switch (c->kind) {
    case CMD_HOLD_CONFIRM:
        return &c->confirm.booking;
    case CMD_BOOKING_CANCEL:
        *ret_money = &c->cancel.money;
        return &c->cancel.booking;
    case CMD_BOOKING_CREATE:
        *ret_money = &c->booking_create->money;
        return &c->booking_create->booking;
    case CMD_BOOKING_REFUND:
        *ret_money = &c->refund.money;
        return &c->refund.booking;
    case CMD_PAYMENT_UPDATE:
        *ret_money = &c->update->money;
        return &c->update->booking;
    default:
        return NULL;
    }
}

/* Makes room for what is read of a hold, its booking and its money; each may be NULL. */
static struct hold_wanted want(int64_t hold, struct hold_row *row, struct booking_row *booking,
                               struct money *money)
{
    hold_row_close(row);
    if (booking)
        booking_row_close(booking);
    if (money)
        money_clear(money);
    return (struct hold_wanted){hold, row, booking, money};
}

size_t command_wants(struct command *c, struct hold_wanted ret[HOLDS_PER_BOOKING_MAX])
{
    struct named_hold *named = command_named_hold(c);
    struct money *money = NULL;
    size_t n = 0;
    if (c->kind == CMD_HOLD_CREATE && c->create.resumes)
        ret[n++] = want(c->create.resumes, &c->create.hold, NULL, NULL);
    if (!named)
        return n;
    struct booking_row *booking = command_wants_booking(c, &money);
    ret[n++] = want(named->id.key, &named->row, booking, money);
    for (size_t i = 0; c->kind == CMD_BOOKING_CREATE && i < c->booking_create->n_others; i++) {
        struct booked_hold *other = &c->booking_create->others[i];
        ret[n++] = want(other->hold.id.key, &other->hold.row, &other->booking, &other->money);
    }
    return n;
}

static void booking_create_free(struct booking_create *op)
{
    booking_row_close(&op->booking);
    money_close(&op->money);
    for (size_t i = 0; i < op->n_others; i++) {
        hold_row_close(&op->others[i].hold.row);
        booking_row_close(&op->others[i].booking);
        money_close(&op->others[i].money);
    }
    free(op->owned);
    free(op->merged);
    free(op);
}

void command_close(struct command *c)
{
    struct named_hold *named = command_named_hold(c);
    if (named)
        hold_row_close(&named->row);
    buf_close(&c->key.answer);
    event_give(c->pinned);
    c->pinned = NULL;
    event_terms_give(c->terms);
    c->terms = NULL;
    switch (c->kind) {
    case CMD_EVENT_CREATE:
        event_def_free(c->event_create);
        break;
    case CMD_EVENT_LIST:
        event_list_free(c->event_list);
        break;
    case CMD_SEAT_GET:
        free(c->seat_get.past);
        break;
    case CMD_MAP_PAST:
        snapshot_unref(c->map_past.snapshot);
        break;
    case CMD_EVENT_HEAT:
        free(c->event_heat);
        break;
    case CMD_SNAPSHOT:
        snapshot_unref(c->snapshot.snapshot);
        break;
    case CMD_EVENT_CHANGE:
        event_terms_close(&c->event_change.terms);
        vec_close(&c->event_change.prices);
        for (size_t i = 0; i < c->event_change.types.n; i++)
            ticket_type_close(&c->event_change.types.v[i]);
        vec_close(&c->event_change.types);
        event_terms_give(c->event_change.after);
        break;
    case CMD_HOLD_CREATE:
        hold_row_close(&c->create.hold);
        free(c->create.prices);
        break;
    case CMD_HOLD_CHANGE:
        free(c->change.owned);
        break;
    case CMD_BOOKING_CANCEL:
        booking_row_close(&c->cancel.booking);
        money_close(&c->cancel.money);
        break;
    case CMD_BOOKING_CREATE:
        booking_create_free(c->booking_create);
        break;
    case CMD_BOOKING_REFUND:
        booking_row_close(&c->refund.booking);
        money_close(&c->refund.money);
        break;
    case CMD_PAYMENT_UPDATE:
        booking_row_close(&c->update->booking);
        money_close(&c->update->money);
        fact_close(&c->update->fact);
        free(c->update);
        break;
    case CMD_REFUND_LIST:
        free(c->refund_list);
        break;
    case CMD_NOTICE_LIST:
        free(c->notice_list);
        break;
    case CMD_BOOKING_LIST:
        booking_page_free(c->booking_list);
        break;
    case CMD_HOLD_GET:
        hold_row_close(&c->hold_get.row);
        break;
    case CMD_HOLD_LIST:
        hold_page_free(c->hold_list);
        break;
    case CMD_HOLD_CONFIRM:
        booking_row_close(&c->confirm.booking);
        break;
    case CMD_BOOKING_GET:
        booking_row_close(&c->booking_get.row);
        money_close(&c->booking_get.money);
        break;
    case CMD_AUDIT_LIST:
        audit_page_free(c->audit_list);
        break;
    case CMD_WAIT_CHANGE:
        wait_row_close(&c->wait_change.wait);
        break;
    case CMD_WAIT_GET:
        wait_row_close(&c->wait_get.row);
        break;
    case CMD_WAIT_LIST:
        wait_page_free(c->wait_list);
        break;
    default:
        break;
    }
}

/* Holds and bookings that end take nothing that somebody waits for.  So many that end at once are
 * decided at once, and one batch after another offers what they gave back. */
static bool only_gives_back(enum command_kind kind)
{
    return kind == CMD_HOLD_RELEASE || kind == CMD_HOLD_EVICT || kind == CMD_BOOKING_CANCEL;
}

static enum verdict decide(struct command *c, struct decision *d)
{
    if (c->event && c->event->waitlist && !only_gives_back(c->kind) &&
        decide_settle(d, c->event) != VERDICT_OK)
        return VERDICT_DEFERRED;
    switch (c->kind) {
    case CMD_HOLD_CREATE:
        return decide_create(d, c->event, &c->create);
    case CMD_HOLD_RENEW:
        return decide_renew(d, c->event, &c->renew);
    case CMD_HOLD_RELEASE:
    case CMD_HOLD_EVICT:
        return decide_release(d, &c->release);
    case CMD_HOLD_CONFIRM:
        return decide_confirm(d, c->event, &c->confirm);
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        return decide_block(d, c->event, &c->block);
    case CMD_HOLD_CHANGE:
        return decide_change(d, c->event, &c->change);
    case CMD_BOOKING_CANCEL:
        return decide_cancel(d, c->event, &c->cancel);
    case CMD_BOOKING_CREATE:
        return decide_book(d, c->event, c->booking_create);
    case CMD_BOOKING_REFUND:
        return decide_refund(d, c->event, &c->refund);
    case CMD_PAYMENT_UPDATE:
        return decide_payment(d, c->event, c->update);
    case CMD_EVENT_CANCEL:
        return decide_status(d, c->event, EVENT_CANCELLED);
    case CMD_EVENT_OPEN:
        return decide_status(d, c->event, EVENT_OPEN);
    case CMD_EVENT_CLOSE:
        return decide_status(d, c->event, EVENT_CLOSED);
    case CMD_EVENT_ARCHIVE:
        return decide_status(d, c->event, EVENT_ARCHIVED);
    case CMD_EVENT_CHANGE:
        return decide_terms(d, c->event, &c->event_change);
    case CMD_WAIT_JOIN:
        return decide_wait_join(d, c->event, &c->wait_join);
    case CMD_WAIT_CHANGE:
        return decide_wait_change(d, c->event, &c->wait_change);
    case CMD_WAIT_PAUSE:
    case CMD_WAIT_RESUME:
        return decide_wait_pause(d, c->event, c->kind == CMD_WAIT_PAUSE);
    case CMD_OWNER_ERASE: /* first its key is judged, and at the end its answer stored */
        c->owner_erase.judged = true;
        return c->owner_erase.done ? VERDICT_OK : VERDICT_DEFERRED;
    case CMD_EVENT_CREATE: /* the engine makes it */
        return VERDICT_UNDECIDED;
    case CMD_KEY_CHECK:
        return VERDICT_KEY_UNUSED;
    default:
        hf_check(!"a command that the worker does not decide");
        return VERDICT_INTERNAL;
    }
}

/* An answer may be rendered before the terms that this batch changes are shown. */
static void keep_terms(struct command *c)
{
    event_terms_give(c->terms); /* of a batch that was taken back */
    c->terms = c->event && c->event->terms->types.n ? event_terms_share(c->event->terms) : NULL;
}

bool command_decide(struct command *c, struct decision *d, const struct key_row *stored)
{
    c->now = d->now;
    d->actor = c->actor ? c->actor : ACTOR_SERVER;
    enum verdict verdict = decide_key(d, &c->key, stored);
    if (verdict == VERDICT_UNDECIDED)
        verdict = decide(c, d);
    if (verdict == VERDICT_DEFERRED)
        return false;
    keep_terms(c);
    c->verdict = verdict;
    return true;
}
