/* Cancelled events: their bookings are cancelled a page at a time, each by a command of its own, as
 * a seller would do it.  The refunds that this owes are jobs, and keep the budget's pace.  Nothing
 * is remembered here: whatever is left is found again after a restart.  On the payment thread. */
#include <stdlib.h>

#include "checkout/checkout_internal.h"

#define LOOK_EVERY_US 2000000
#define RETRY_AFTER_US 1000000

static const char reason[] = "the event was cancelled";

static void cancelled(struct errand *errand)
{
    struct checkout *c = errand->checkout;
    struct cancelling *k = &c->cancelling;
    if (errand->command.verdict != VERDICT_OK) {
        k->next_us = checkout_now_us(c) + RETRY_AFTER_US;
        k->page.before = k->page.event; /* older events do not wait for this one */
    }
    command_close(&errand->command);
    k->n_lent--;
}

static void cancel_page(struct checkout *c, struct event *event)
{
    struct cancelling *k = &c->cancelling;
    if (!k->errands)
        k->errands = hf_alloc(CANCEL_LIST_MAX * sizeof *k->errands);
    k->next_us = checkout_now_us(c); /* there may be more */
    k->n_lent = k->page.n;
    for (size_t i = 0; i < k->page.n; i++) {
        struct errand *errand = &k->errands[i];
        *errand = (struct errand){.checkout = c};
        errand->command = (struct command){
            .kind = CMD_BOOKING_CANCEL, .event = event, .pinned = event_share(event)};
        errand->command.cancel = (struct booking_cancel){.hold.id.key = k->page.bookings[i].key,
                                                         .id = k->page.bookings[i],
                                                         .reason = reason,
                                                         .reason_len = sizeof reason - 1};
        errand_submit(errand, cancelled);
    }
}

static void event_loaded(struct errand *errand)
{
    struct checkout *c = errand->checkout;
    c->cancelling.is_listing = false;
    if (errand->command.verdict == VERDICT_OK && errand->command.event)
        cancel_page(c, errand->command.event);
    command_close(&errand->command);
}

static void listed(struct errand *errand)
{
    struct checkout *c = errand->checkout;
    struct cancelling *k = &c->cancelling;
    if (errand->command.verdict != VERDICT_OK || !k->page.n) {
        k->is_listing = false;
        k->page.before = INT64_MAX;
        return;
    }
    struct event *event = engine_event_take(c->engine, k->page.event);
    errand->command = (struct command){.kind = CMD_EVENT_LOAD,
                                       .event_key = k->page.event,
                                       .event = event,
                                       .pinned = event,
                                       .verdict = VERDICT_OK};
    if (event)
        event_loaded(errand);
    else
        errand_submit(errand, event_loaded);
}

void cancelling_turn(struct checkout *c)
{
    struct cancelling *k = &c->cancelling;
    int64_t now_us = checkout_now_us(c);
    if (k->is_listing || k->n_lent || now_us < k->next_us)
        return;
    k->next_us = now_us + LOOK_EVERY_US;
    k->is_listing = true;
    if (!k->page.before)
        k->page.before = INT64_MAX;
    k->list.checkout = c;
    k->list.command = (struct command){.kind = CMD_CANCEL_LIST};
    k->list.command.cancel_list = &k->page;
    errand_submit(&k->list, listed);
}
