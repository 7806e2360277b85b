/* Refunds and disputes, also those that come by themselves a while later, and the books.  See
 * bank.h. */
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "sandbox/bank.h"
#include "sandbox/refuse.h"

const char *const refund_reasons[] = {"duplicate", "fraudulent", "requested_by_customer", NULL};

/* ---- refunds ---- */

static bool may_refund(const struct charge *c, int64_t amount, struct api_error *ret)
{
    char id[ID_TEXT_SIZE];
    (void)id_format(id, "ch_", &c->id);
    int64_t left = c->captured - c->refunded;
    if (c->decline || !c->is_captured)
        refuse(ret, 400, "invalid_request_error", "charge_not_refundable", NULL,
               "Charge %s cannot be refunded because it was not captured.", id);
    else if (c->dispute)
        refuse(ret, 400, "invalid_request_error", "charge_disputed", NULL,
               "Charge %s has been charged back; cannot issue a refund.", id);
    else if (left == 0)
        refuse(ret, 400, "invalid_request_error", "charge_already_refunded", NULL,
               "Charge %s has already been refunded.", id);
    else if (amount > left)
        refuse(ret, 400, "invalid_request_error", NULL, "amount",
               "Refund amount (%lld) is greater than unrefunded amount on charge (%lld)",
               (long long)amount, (long long)left);
    else
        return true;
    ret->charge = c;
    return false;
}

bool charge_refund(struct bank *b, struct charge *c, const struct refund_terms *terms,
                   struct refund **ret_refund, struct api_error *ret)
{
    const enum card_refunds course = c->method.card->refunds;
    if (!may_refund(c, terms->amount, ret))
        return false;
    struct refund *r = bank_add_refund(b);
    r->charge = c->id.key;
    r->previous = c->refund;
    r->amount = terms->amount ? terms->amount : c->captured - c->refunded;
    r->reason = terms->reason;
    metadata_copy(&r->metadata, terms->metadata);
    r->status = course == REFUNDS_LATER ? RE_PENDING : RE_SUCCEEDED;
    if (course != REFUNDS_AT_ONCE) {
        r->settles_at_ms = b->now_ms + b->later_ms;
        *vec_push(&b->unsettled_refunds) = r->id.key;
    }
    c->refund = r->id.key;
    c->refunded += r->amount;
    bank_mark_charge(b, c);
    bank_emit(b, EVENT_REFUND_CREATED, r->id.key);
    bank_emit(b, EVENT_CHARGE_REFUNDED, c->id.key);
    *ret_refund = r;
    return true;
}

static void settle_refund(struct bank *b, struct refund *r)
{
    struct charge *c = bank_charge(b, r->charge);
    bool failed = c->method.card->refunds == REFUNDS_FAIL_LATER;
    r->status = failed ? RE_FAILED : RE_SUCCEEDED;
    r->settles_at_ms = 0;
    if (failed)
        c->refunded -= r->amount;
    bank_mark_refund(b, r);
    bank_mark_charge(b, c);
    if (failed)
        bank_emit(b, EVENT_REFUND_FAILED, r->id.key);
    bank_emit(b, EVENT_REFUND_UPDATED, r->id.key);
    bank_emit(b, EVENT_CHARGE_REFUND_UPDATED, r->id.key);
}

/* ---- disputes ---- */

static void dispute_charge(struct bank *b, struct charge *c)
{
    c->dispute_at_ms = 0;
    bank_mark_charge(b, c);
    if (!c->is_captured || c->refunded == c->captured)
        return;
    struct dispute *d = bank_add_dispute(b);
    d->charge = c->id.key;
    d->amount = c->captured - c->refunded;
    c->dispute = d->id.key;
    bank_emit(b, EVENT_DISPUTE_CREATED, d->id.key);
}

/* Drops element i, which is cheap since the order does not matter. */
#define vec_drop(vec, i) ((vec)->v[i] = (vec)->v[--(vec)->n])

/* Each of these does what is due and returns when its next object is. */
static int64_t settle_intents(struct bank *b)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < b->processing_intents.n;) {
        struct intent *intent = bank_intent(b, b->processing_intents.v[i]);
        if (intent->settles_at_ms > b->now_ms) {
            next = intent->settles_at_ms < next ? intent->settles_at_ms : next;
            i++;
            continue;
        }
        intent_process(b, intent);
        vec_drop(&b->processing_intents, i);
    }
    return next;
}

static int64_t settle_refunds(struct bank *b)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < b->unsettled_refunds.n;) {
        struct refund *r = bank_refund(b, b->unsettled_refunds.v[i]);
        if (r->settles_at_ms > b->now_ms) {
            next = r->settles_at_ms < next ? r->settles_at_ms : next;
            i++;
            continue;
        }
        settle_refund(b, r);
        vec_drop(&b->unsettled_refunds, i);
    }
    return next;
}

static int64_t settle_charges(struct bank *b)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < b->undisputed_charges.n;) {
        struct charge *c = bank_charge(b, b->undisputed_charges.v[i]);
        if (c->dispute_at_ms > b->now_ms) {
            next = c->dispute_at_ms < next ? c->dispute_at_ms : next;
            i++;
            continue;
        }
        if (c->dispute_at_ms)
            dispute_charge(b, c);
        vec_drop(&b->undisputed_charges, i);
    }
    return next;
}

int64_t bank_settle(struct bank *b)
{
    const int64_t due[] = {settle_intents(b), settle_refunds(b), settle_charges(b)};
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++)
        next = due[i] < next ? due[i] : next;
    return next;
}

/* ---- books ---- */

struct sums {
    const char *currency;
    int64_t captured, refunded, disputed;
    int64_t by_status[PI_STATUSES];
};

/* The money of one intent: captured, and of that refunded and disputed. */
static void intent_money(const struct bank *b, const struct intent *i, struct sums *ret)
{
    for (int64_t n = i->charge; n; n = bank_charge(b, n)->previous) {
        const struct charge *c = bank_charge(b, n);
        ret->captured += c->captured;
        ret->refunded += c->refunded;
        if (c->dispute)
            ret->disputed += bank_dispute(b, c->dispute)->amount;
    }
}

static void put_payment(const struct bank *b, const struct intent *i, struct buf *out)
{
    const char *payment = metadata_get(&i->metadata, PAYMENT_KEY);
    struct sums sums = {0};
    intent_money(b, i, &sums);
    json_open(out, NULL, '{');
    json_put_text(out, PAYMENT_KEY, payment);
    json_put_id(out, "intent", "pi_", &i->id);
    json_put_text(out, "status", intent_status_names[i->status]);
    json_put_text(out, "currency", i->currency);
    json_put_int(out, "amount", i->amount);
    json_put_int(out, "captured", sums.captured);
    json_put_int(out, "refunded", sums.refunded);
    json_put_int(out, "disputed", sums.disputed);
    buf_char(out, '}');
}

static struct sums *sums_of(struct sums *all, size_t *n, const char *currency)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(all[i].currency, currency) == 0)
            return &all[i];
    all[*n].currency = currency;
    return &all[(*n)++];
}

static void put_sums(const struct sums *s, struct buf *out)
{
    int64_t open = 0;
    for (int status = 0; status < PI_STATUSES; status++)
        open += status == PI_CANCELED || status == PI_SUCCEEDED ? 0 : s->by_status[status];
    json_open(out, s->currency, '{');
    json_put_int(out, "captured", s->captured);
    json_put_int(out, "refunded", s->refunded);
    json_put_int(out, "disputed", s->disputed);
    json_put_int(out, "succeeded", s->by_status[PI_SUCCEEDED]);
    json_put_int(out, "canceled", s->by_status[PI_CANCELED]);
    json_put_int(out, "requires_capture", s->by_status[PI_REQUIRES_CAPTURE]);
    json_put_int(out, "open", open);
    buf_char(out, '}');
}

#define CURRENCIES_MAX 160 /* more than cards.c knows */

void bank_books(const struct bank *b, struct buf *out)
{
    struct sums all[CURRENCIES_MAX] = {0};
    size_t n = 0;
    buf_lit(out, "{\"payments\":[");
    for (size_t i = 0; i < b->intents.n; i++) {
        const struct intent *intent = b->intents.v[i];
        struct sums *sums = sums_of(all, &n, intent->currency);
        sums->by_status[intent->status]++;
        intent_money(b, intent, sums);
        put_payment(b, intent, out);
    }
    buf_lit(out, "],\"currencies\":{");
    for (size_t i = 0; i < n; i++)
        put_sums(&all[i], out);
    buf_lit(out, "}}");
}
