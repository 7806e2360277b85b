/* See paid_sale.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fixtures.h"
#include "support/paid_sale.h"

void sale_ask(struct client *client, struct call *call, enum verdict want)
{
    enum verdict verdict = client_ask(client, call);
    if (verdict != want)
        fail_msg("verdict %d instead of %d: %s", verdict, want, call->c.err.msg);
}

struct event *sale_event(struct client *client)
{
    struct call call;
    call_event_create(&call, 2, 20);
    sale_ask(client, &call, VERDICT_CREATED);
    int64_t key = call.c.event_create->id.key;
    call_close(&call);
    call_event_load(&call, key);
    sale_ask(client, &call, VERDICT_OK);
    return call.c.event;
}

struct sale sale_hold(struct client *client, struct event *event, uint32_t seat)
{
    struct sale s = {.client = client, .event = event};
    struct call call;
    call_hold(&call, event, seat, 1, SALE_TTL_MS);
    call.c.create.owner = SALE_OWNER;
    call.c.create.owner_len = strlen(SALE_OWNER);
    sale_ask(client, &call, VERDICT_CREATED);
    s.hold = *command_hold(&call.c);
    call_close(&call);
    return s;
}

static void book(struct sale *s, const struct sale *other, bool by_hand)
{
    struct call call = {.c.kind = CMD_BOOKING_CREATE, .c.event = s->event};
    struct booking_create *op = call.c.booking_create = hf_alloc(sizeof *op);
    op->hold.id = s->hold.id;
    if (other)
        op->others[op->n_others++].hold.id = other->hold.id;
    op->email = SALE_EMAIL;
    op->email_len = strlen(SALE_EMAIL);
    op->captures_by_hand = by_hand;
    sale_ask(s->client, &call, VERDICT_CREATED);
    assert_int_equal(op->hold.id.key, s->hold.id.key);
    s->booking = op->booking.id;
    s->payment = op->payment.id;
    s->number = op->payment.payment;
    call_close(&call);
}

void sale_book(struct sale *s, bool by_hand) { book(s, NULL, by_hand); }
void sale_book_with(struct sale *s, const struct sale *other) { book(s, other, false); }

struct call sale_update(const struct sale *s)
{
    struct call call = {.c.kind = CMD_PAYMENT_UPDATE, .c.event = s->event};
    struct payment_update *op = call.c.update = hf_alloc(sizeof *op);
    op->hold.id.key = s->payment.key;
    op->has_payment = true;
    op->payment = s->payment;
    op->fact.is_current = true;
    snprintf(op->fact.intent, sizeof op->fact.intent, "pi_%lld", (long long)s->number);
    return call;
}

int64_t sale_tell(const struct sale *s, struct call *call)
{
    int64_t owed = 0;
    sale_ask(s->client, call, VERDICT_OK);
    const struct money *money = &call->c.update->money;
    for (size_t i = 0; i < money->refunds.n; i++)
        if (money->refunds.v[i].status == REFUND_OWED)
            owed = money->refunds.v[i].refund;
    call_close(call);
    return owed;
}

int64_t sale_fact(const struct sale *s, enum intent_state state, int64_t received)
{
    struct call call = sale_update(s);
    call.c.update->fact.state = state;
    call.c.update->fact.received = received;
    return sale_tell(s, &call);
}

int64_t sale_job_done(const struct sale *s, enum job_kind kind, enum intent_state state,
                      bool capture_refused)
{
    struct call call = sale_update(s);
    call.c.update->fact.state = state;
    call.c.update->fact.capture_refused = capture_refused;
    call.c.update->report =
        (struct job_report){.job = s->number, .kind = kind, .result = JOB_RESULT_DONE};
    return sale_tell(s, &call);
}

int64_t sale_refunded(const struct sale *s, int64_t refund, int64_t amount,
                      enum refund_status status)
{
    static int n;
    struct call call = sale_update(s);
    struct refund_fact *f = vec_push(&call.c.update->fact.refunds);
    *f = (struct refund_fact){.amount = amount, .refund = refund, .status = status};
    snprintf(f->id, sizeof f->id, "re_%d", ++n);
    return sale_tell(s, &call);
}

int64_t sale_refund(const struct sale *s, int64_t amount)
{
    struct call call = {.c.kind = CMD_BOOKING_REFUND, .c.event = s->event};
    call.c.refund.id = s->booking;
    call.c.refund.hold.id.key = s->booking.key;
    call.c.refund.amount = amount;
    sale_ask(s->client, &call, VERDICT_OK);
    const struct money *money = &call.c.refund.money;
    int64_t number = money->refunds.v[money->refunds.n - 1].refund;
    call_close(&call);
    return number;
}

void sale_cancel(const struct sale *s)
{
    struct call call = {.c.kind = CMD_BOOKING_CANCEL, .c.event = s->event};
    call.c.cancel.id = s->booking;
    call.c.cancel.hold.id.key = s->booking.key;
    sale_ask(s->client, &call, VERDICT_OK);
    call_close(&call);
}

void sale_confirm(const struct sale *s)
{
    struct call call;
    call_on_hold(&call, CMD_HOLD_CONFIRM, s->event, &s->hold.id);
    call.c.confirm.fence = s->hold.fence;
    sale_ask(s->client, &call, VERDICT_CREATED);
    call_close(&call);
}

void sale_on_event(struct client *client, struct event *event, enum command_kind kind)
{
    struct call call = {.c.kind = kind, .c.event = event};
    sale_ask(client, &call, VERDICT_OK);
    call_close(&call);
}

struct sale sale_pending(struct client *client, struct event *event, uint32_t seat, bool by_hand)
{
    struct sale s = sale_hold(client, event, seat);
    sale_book(&s, by_hand);
    sale_job_done(&s, JOB_CREATE, INTENT_REQUIRES_PAYMENT, false);
    return s;
}

struct sale sale_paid(struct client *client, struct event *event, uint32_t seat)
{
    struct sale s = sale_pending(client, event, seat, false);
    sale_fact(&s, INTENT_CAPTURED, SALE_PRICE);
    return s;
}

struct sale sale_capturing(struct client *client, struct event *event, uint32_t seat)
{
    struct sale s = sale_pending(client, event, seat, true);
    sale_fact(&s, INTENT_AUTHORIZED, 0);
    return s;
}
