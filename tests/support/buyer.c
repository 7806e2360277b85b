/* See buyer.h. */
#include "support/buyer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/catch_up.h"

#define BATCHES_MAX 4 /* until a command is decided */

/* ---- the other server ---- */

/* The paper ledger as the other server reads it. */
static struct paper paper_of_twin(const struct shop *s, struct paper_event *room)
{
    struct paper twin = s->paper;
    *room = s->paper.events.v[0];
    room->event = s->twin;
    twin.view = s->view;
    twin.events.v = room;
    twin.events.n = 1;
    return twin;
}

static int hold_order(const void *a, const void *b)
{
    const struct hold_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

static void add_wanted(struct shop *s, struct log_since *since)
{
    struct hold_keys wanted = {0};
    catch_up_wants(s->twin, since, &wanted);
    for (size_t i = 0; i < wanted.list.n; i++)
        *vec_push(&since->holds) = *paper_hold(&s->paper, wanted.list.v[i]);
    if (since->holds.n > 1)
        qsort(since->holds.v, since->holds.n, sizeof *since->holds.v, hold_order);
    vec_close(&wanted.list);
}

/* The other server reads what is new, and shows what this one shows.  Only other terms make it read
 * the whole event again. */
static void follow(struct shop *s)
{
    struct paper *p = &s->paper;
    const struct sim_event *stored = sim_event(&p->ledger, 1);
    struct log_since since = {0};
    struct paper_event room;
    struct paper twin = paper_of_twin(s, &room);
    struct buf ours = {0}, theirs = {0};
    for (; s->n_seen < p->audit.n; s->n_seen++)
        *vec_push(&since.audit) = p->audit.v[s->n_seen];
    for (size_t i = 0; i < stored->holds.n; i++) {
        const struct hold_row *row = &stored->holds.v[i].row;
        if (HOLD_FIRST_FENCE(row->id.key) > s->twin->clock.fence &&
            (row->status == HOLD_ACTIVE || row->status == HOLD_CONFIRMED))
            *vec_push(&since.holds) = *row;
    }
    add_wanted(s, &since);
    if (catch_up_changes_terms(s->twin, &since))
        paper_reload(&twin, s->twin);
    else
        assert_true(catch_up(s->view, s->twin, &since));
    s->twin->clock = s->twin->draft = stored->clock;
    paper_dump(p, &ours);
    paper_dump(&twin, &theirs);
    assert_string_equal(ours.data, theirs.data);
    buf_close(&ours);
    buf_close(&theirs);
    vec_close(&since.audit);
    vec_close(&since.holds);
}

/* ---- the shop ---- */

void shop_init(struct shop *s, struct event_def *def)
{
    *s = (struct shop){0};
    paper_init(&s->paper, 14);
    s->paper.decision->notices = ~0u;
    s->event = paper_event(&s->paper, def);
    s->view = view_new();
    s->twin =
        view_install(s->view, event_new(sim_def_copy(def), &sim_event(&s->paper.ledger, 1)->clock));
}

void shop_close(struct shop *s)
{
    view_free(s->view);
    paper_close(&s->paper);
}

void shop_pass_ms(struct shop *s, int64_t ms) { s->paper.now += ms; }

/* A batch that fails leaves no trace. */
static void rehearse(struct shop *s, struct ask *a)
{
    struct buf before = {0}, after = {0};
    paper_dump(&s->paper, &before);
    paper_begin(&s->paper);
    (void)paper_decide(&s->paper, a);
    paper_fail(&s->paper);
    paper_dump(&s->paper, &after);
    assert_string_equal(before.data, after.data);
    buf_close(&before);
    buf_close(&after);
}

enum verdict shop_run(struct shop *s, struct ask *a)
{
    enum decided decided = DEFERRED;
    for (int i = 0; i < BATCHES_MAX && decided == DEFERRED; i++) {
        rehearse(s, a);
        paper_begin(&s->paper);
        decided = paper_decide(&s->paper, a);
        paper_commit(&s->paper);
        paper_check(&s->paper);
        follow(s);
    }
    assert_int_equal(decided, DECIDED);
    return a->c.verdict;
}

enum verdict shop_do(struct shop *s, struct ask *a)
{
    enum verdict verdict = shop_run(s, a);
    ask_close(a);
    return verdict;
}

/* ---- buyers ---- */

void buyer_hold(struct buyer *b, struct shop *s, uint32_t first, uint32_t n)
{
    struct ask a;
    uint32_t seats[SEATS_INLINE];
    for (uint32_t i = 0; i < n; i++)
        seats[i] = first + i;
    ask_create_n(&a, s->event, seats, n);
    assert_int_equal(shop_run(s, &a), VERDICT_CREATED);
    *b = (struct buyer){.shop = s,
                        .hold = a.c.create.hold.id,
                        .fence = a.c.create.hold.fence,
                        .amount = a.c.create.hold.amount};
    ask_close(&a);
}

static enum verdict book(struct buyer *b, bool by_hand)
{
    struct ask a;
    ask_book(&a, b->shop->event, &b->hold);
    a.c.booking_create->captures_by_hand = by_hand;
    enum verdict verdict = shop_run(b->shop, &a);
    if (verdict_is_success(verdict)) {
        b->booking = a.c.booking_create->booking.id;
        b->payment = a.c.booking_create->payment.id;
    }
    ask_close(&a);
    return verdict;
}

enum verdict buyer_book(struct buyer *b) { return book(b, false); }
enum verdict buyer_book_by_hand(struct buyer *b) { return book(b, true); }

enum verdict buyer_told(struct buyer *b, const struct news *news)
{
    struct ask a;
    ask_update(&a, b->shop->event, &b->payment);
    a.c.update->fact = news->fact;
    a.c.update->report = news->report;
    memset(&a.c.update->fact.refunds, 0, sizeof a.c.update->fact.refunds);
    for (size_t i = 0; i < news->fact.refunds.n; i++)
        *vec_push(&a.c.update->fact.refunds) = news->fact.refunds.v[i];
    if (!*a.c.update->fact.currency)
        memcpy(a.c.update->fact.currency, b->shop->event->def->currency, 4);
    if (news->webhook)
        snprintf(a.c.update->event.id, sizeof a.c.update->event.id, "%s", news->webhook);
    enum verdict verdict = shop_run(b->shop, &a);
    b->alarmed = a.c.update->alarms;
    ask_close(&a);
    return verdict;
}

enum verdict buyer_told_state(struct buyer *b, enum intent_state state)
{
    return buyer_told(b, &(struct news){.fact = {.is_current = true, .state = state}});
}

enum verdict buyer_told_captured(struct buyer *b, int64_t received)
{
    return buyer_told(b, &(struct news){.fact = {.is_current = true,
                                                 .state = INTENT_CAPTURED,
                                                 .amount = received,
                                                 .received = received}});
}

enum verdict buyer_told_refund(struct buyer *b, const char *id, int64_t refund, int64_t amount,
                               enum refund_status status)
{
    struct refund_fact f = {.amount = amount, .refund = refund, .status = status};
    struct news news = {0};
    snprintf(f.id, sizeof f.id, "%s", id);
    *vec_push(&news.fact.refunds) = f;
    enum verdict verdict = buyer_told(b, &news);
    fact_close(&news.fact);
    return verdict;
}

enum verdict buyer_reported(struct buyer *b, const struct job_row *job, enum job_result result)
{
    return buyer_told(b, &(struct news){.report = {.job = job->job,
                                                   .kind = job->kind,
                                                   .result = result,
                                                   .leased_until = job->leased_until}});
}

enum verdict buyer_cancelled(struct buyer *b)
{
    struct ask a;
    ask_cancel(&a, b->shop->event, &b->booking);
    return shop_do(b->shop, &a);
}

enum verdict buyer_refunded(struct buyer *b, int64_t amount)
{
    struct ask a;
    ask_refund(&a, b->shop->event, &b->booking, amount);
    return shop_do(b->shop, &a);
}

/* ---- how things stand ---- */

const struct hold_row *buyer_hold_row(const struct buyer *b)
{
    return paper_hold(&b->shop->paper, b->hold.key);
}

enum hold_status buyer_hold_status(const struct buyer *b) { return buyer_hold_row(b)->status; }

/* The booking may have been replaced by another of the same hold: then it has failed. */
enum booking_status buyer_booking(const struct buyer *b)
{
    const struct booking_row *row = paper_booking(&b->shop->paper, b->hold.key);
    if (!row)
        return BOOKING_NONE;
    return id_secret_equal(row->id.secret, b->booking.secret) ? row->status : BOOKING_FAILED;
}

const struct payment_row *buyer_payment(const struct buyer *b)
{
    const struct sim_ledger *l = &b->shop->paper.ledger;
    for (size_t i = 0; i < l->payments.n; i++)
        if (l->payments.v[i].id.key == b->payment.key &&
            id_secret_equal(l->payments.v[i].id.secret, b->payment.secret))
            return &l->payments.v[i];
    return NULL;
}

const struct job_row *buyer_job(const struct buyer *b)
{
    return paper_job(&b->shop->paper, buyer_payment(b)->payment);
}

const struct refund_row *buyer_refund(const struct buyer *b)
{
    const struct sim_ledger *p = &b->shop->paper.ledger;
    const struct refund_row *newest = NULL;
    for (size_t i = 0; i < p->refunds.n; i++)
        if (p->refunds.v[i].payment == buyer_payment(b)->payment && p->refunds.v[i].is_ours &&
            (!newest || p->refunds.v[i].refund > newest->refund))
            newest = &p->refunds.v[i];
    return newest;
}

size_t buyer_refunds(const struct buyer *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->shop->paper.ledger.refunds.n; i++)
        n += b->shop->paper.ledger.refunds.v[i].payment == buyer_payment(b)->payment;
    return n;
}
