/* The tables of a bank: finding, adding and marking objects, and recording events.  See bank.h. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "sandbox/bank.h"
#include "sandbox/render.h"

const char *const intent_status_names[PI_STATUSES] = {"requires_payment_method",
                                                      "requires_confirmation",
                                                      "requires_action",
                                                      "processing",
                                                      "requires_capture",
                                                      "canceled",
                                                      "succeeded"};
const char *const refund_state_names[RE_STATES] = {"pending", "succeeded", "failed"};
const char *const event_type_names[EVENT_TYPES] = {
    "payment_intent.created",
    "payment_intent.requires_action",
    "payment_intent.processing",
    "payment_intent.payment_failed",
    "payment_intent.amount_capturable_updated",
    "payment_intent.succeeded",
    "payment_intent.canceled",
    "charge.succeeded",
    "charge.failed",
    "charge.captured",
    "charge.refunded",
    "charge.refund.updated",
    "refund.created",
    "refund.updated",
    "refund.failed",
    "charge.dispute.created",
};

void bank_init(struct bank *b)
{
    *b = (struct bank){0};
    random_init_system(&b->random);
}

static void event_free(struct stripe_event *e)
{
    if (e)
        free(e->body);
    free(e);
}

void bank_close(struct bank *b)
{
    for (size_t i = 0; i < b->intents.n; i++) {
        struct intent *intent = b->intents.v[i];
        free(intent->description);
        free(intent->receipt_email);
        free(intent->return_url);
        metadata_close(&intent->metadata);
        free(intent);
    }
    for (size_t i = 0; i < b->charges.n; i++)
        free(b->charges.v[i]);
    for (size_t i = 0; i < b->refunds.n; i++) {
        metadata_close(&b->refunds.v[i]->metadata);
        free(b->refunds.v[i]);
    }
    for (size_t i = 0; i < b->disputes.n; i++)
        free(b->disputes.v[i]);
    for (size_t i = 0; i < b->events.n; i++)
        event_free(b->events.v[i]);
    vec_close(&b->intents);
    vec_close(&b->charges);
    vec_close(&b->refunds);
    vec_close(&b->disputes);
    vec_close(&b->events);
    vec_close(&b->processing_intents);
    vec_close(&b->unsettled_refunds);
    vec_close(&b->undisputed_charges);
    vec_close(&b->changed.intents);
    vec_close(&b->changed.charges);
    vec_close(&b->changed.refunds);
    vec_close(&b->changed.disputes);
    vec_close(&b->changed.events);
}

/* ---- finding ---- */

#define ELEMENT(table, number)                                                                     \
    (hf_check((number) > 0 && (size_t)(number) <= (table)->n), (table)->v[(number)-1])

struct intent *bank_intent(const struct bank *b, int64_t number)
{
    return ELEMENT(&b->intents, number);
}
struct charge *bank_charge(const struct bank *b, int64_t number)
{
    return ELEMENT(&b->charges, number);
}
struct refund *bank_refund(const struct bank *b, int64_t number)
{
    return ELEMENT(&b->refunds, number);
}
struct dispute *bank_dispute(const struct bank *b, int64_t number)
{
    return ELEMENT(&b->disputes, number);
}

struct stripe_event *bank_event(const struct bank *b, int64_t number)
{
    if (number < 1 || number > b->n_events || number <= b->n_events - EVENTS_MAX)
        return NULL;
    size_t at = (size_t)(number - 1) % EVENTS_MAX;
    struct stripe_event *e = at < b->events.n ? b->events.v[at] : NULL;
    return e && e->id.key == number ? e : NULL;
}

int64_t charge_account(const struct bank *b, const struct charge *c)
{
    return bank_intent(b, c->intent)->account;
}

int64_t refund_account(const struct bank *b, const struct refund *r)
{
    return charge_account(b, bank_charge(b, r->charge));
}

/* Reads an id of this kind whose number is at most `n`. */
static bool read_id(const char *text, const char *prefix, size_t n, struct id *ret)
{
    return id_parse(text, strlen(text), prefix, ret) && ret->key >= 1 && (size_t)ret->key <= n;
}

struct intent *bank_find_intent(const struct bank *b, int64_t account, const char *text)
{
    struct id id;
    if (!read_id(text, "pi_", b->intents.n, &id))
        return NULL;
    struct intent *i = bank_intent(b, id.key);
    return id_secret_equal(i->id.secret, id.secret) && i->account == account ? i : NULL;
}

struct charge *bank_find_charge(const struct bank *b, int64_t account, const char *text)
{
    struct id id;
    if (!read_id(text, "ch_", b->charges.n, &id))
        return NULL;
    struct charge *c = bank_charge(b, id.key);
    return id_secret_equal(c->id.secret, id.secret) && charge_account(b, c) == account ? c : NULL;
}

struct refund *bank_find_refund(const struct bank *b, int64_t account, const char *text)
{
    struct id id;
    if (!read_id(text, "re_", b->refunds.n, &id))
        return NULL;
    struct refund *r = bank_refund(b, id.key);
    return id_secret_equal(r->id.secret, id.secret) && refund_account(b, r) == account ? r : NULL;
}

struct dispute *bank_find_dispute(const struct bank *b, int64_t account, const char *text)
{
    struct id id;
    if (!read_id(text, "dp_", b->disputes.n, &id))
        return NULL;
    struct dispute *d = bank_dispute(b, id.key);
    return id_secret_equal(d->id.secret, id.secret) &&
                   charge_account(b, bank_charge(b, d->charge)) == account
               ? d
               : NULL;
}

struct stripe_event *bank_find_event(const struct bank *b, int64_t account, const char *text)
{
    struct id id;
    struct stripe_event *e =
        read_id(text, "evt_", (size_t)b->n_events, &id) ? bank_event(b, id.key) : NULL;
    return e && id_secret_equal(e->id.secret, id.secret) && e->account == account ? e : NULL;
}

/* ---- secrets ---- */

void intent_client_secret(const struct intent *i, char out[PI_SECRET_SIZE])
{
    char id[ID_TEXT_SIZE], secret[2 * ID_SECRET_SIZE + 1];
    (void)id_format(id, "pi_", &i->id);
    hex_format(i->secret, sizeof i->secret, secret);
    (void)snprintf(out, PI_SECRET_SIZE, "%s_secret_%s", id, secret);
}

bool intent_secret_matches(const struct intent *i, const char *client_secret)
{
    char secret[PI_SECRET_SIZE];
    intent_client_secret(i, secret);
    return strlen(client_secret) == strlen(secret) &&
           CRYPTO_memcmp(client_secret, secret, strlen(secret)) == 0;
}

void intent_action_url(const struct bank *b, const struct intent *i, struct buf *out)
{
    char id[ID_TEXT_SIZE], token[2 * ID_SECRET_SIZE + 1];
    (void)id_format(id, "pi_", &i->id);
    hex_format(i->action, sizeof i->action, token);
    buf_printf(out, "%s/sandbox/actions/%s/%s", b->base_url, id, token);
}

bool intent_action_matches(const struct intent *i, const char *token)
{
    char expected[2 * ID_SECRET_SIZE + 1];
    hex_format(i->action, sizeof i->action, expected);
    return strlen(token) == strlen(expected) &&
           CRYPTO_memcmp(token, expected, strlen(expected)) == 0;
}

/* ---- adding ---- */

static void new_id(struct bank *b, size_t number, struct id *ret)
{
    ret->key = (int64_t)number;
    random_bytes(&b->random, ret->secret, sizeof ret->secret);
}

bool bank_has_room(const struct bank *b)
{
    return b->intents.n < OBJECTS_MAX && b->charges.n < OBJECTS_MAX && b->refunds.n < OBJECTS_MAX &&
           b->disputes.n < OBJECTS_MAX;
}

struct intent *bank_add_intent(struct bank *b)
{
    struct intent *i = hf_alloc(sizeof *i);
    *vec_push(&b->intents) = i;
    new_id(b, b->intents.n, &i->id);
    random_bytes(&b->random, i->secret, sizeof i->secret);
    i->created_s = b->now_ms / 1000;
    bank_mark_intent(b, i);
    return i;
}

struct charge *bank_add_charge(struct bank *b)
{
    struct charge *c = hf_alloc(sizeof *c);
    *vec_push(&b->charges) = c;
    new_id(b, b->charges.n, &c->id);
    c->created_s = b->now_ms / 1000;
    bank_mark_charge(b, c);
    return c;
}

struct refund *bank_add_refund(struct bank *b)
{
    struct refund *r = hf_alloc(sizeof *r);
    *vec_push(&b->refunds) = r;
    new_id(b, b->refunds.n, &r->id);
    r->created_s = b->now_ms / 1000;
    bank_mark_refund(b, r);
    return r;
}

struct dispute *bank_add_dispute(struct bank *b)
{
    struct dispute *d = hf_alloc(sizeof *d);
    *vec_push(&b->disputes) = d;
    new_id(b, b->disputes.n, &d->id);
    d->created_s = b->now_ms / 1000;
    d->is_changed = true;
    *vec_push(&b->changed.disputes) = d->id.key;
    return d;
}

void bank_mark_intent(struct bank *b, struct intent *i)
{
    if (!i->is_changed)
        *vec_push(&b->changed.intents) = i->id.key;
    i->is_changed = true;
}

void bank_mark_charge(struct bank *b, struct charge *c)
{
    if (!c->is_changed)
        *vec_push(&b->changed.charges) = c->id.key;
    c->is_changed = true;
}

void bank_mark_refund(struct bank *b, struct refund *r)
{
    if (!r->is_changed)
        *vec_push(&b->changed.refunds) = r->id.key;
    r->is_changed = true;
}

void bank_mark_event(struct bank *b, struct stripe_event *e)
{
    if (!e->is_changed)
        *vec_push(&b->changed.events) = e->id.key;
    e->is_changed = true;
}

void bank_clear_changed(struct bank *b)
{
    for (size_t i = 0; i < b->changed.intents.n; i++)
        bank_intent(b, b->changed.intents.v[i])->is_changed = false;
    for (size_t i = 0; i < b->changed.charges.n; i++)
        bank_charge(b, b->changed.charges.v[i])->is_changed = false;
    for (size_t i = 0; i < b->changed.refunds.n; i++)
        bank_refund(b, b->changed.refunds.v[i])->is_changed = false;
    for (size_t i = 0; i < b->changed.disputes.n; i++)
        bank_dispute(b, b->changed.disputes.v[i])->is_changed = false;
    for (size_t i = 0; i < b->changed.events.n; i++) {
        struct stripe_event *e = bank_event(b, b->changed.events.v[i]);
        if (e)
            e->is_changed = false;
    }
    vec_clear(&b->changed.intents);
    vec_clear(&b->changed.charges);
    vec_clear(&b->changed.refunds);
    vec_clear(&b->changed.disputes);
    vec_clear(&b->changed.events);
}

/* ---- events ---- */

void bank_restore_event(struct bank *b, struct stripe_event *e)
{
    size_t at = (size_t)(e->id.key - 1) % EVENTS_MAX;
    while (b->events.n <= at)
        *vec_push(&b->events) = NULL;
    event_free(b->events.v[at]);
    b->events.v[at] = e;
    b->n_events = e->id.key;
}

static int64_t subject_account(const struct bank *b, enum event_type type, int64_t number)
{
    if (type <= EVENT_INTENT_CANCELED)
        return bank_intent(b, number)->account;
    if (type <= EVENT_CHARGE_REFUNDED)
        return charge_account(b, bank_charge(b, number));
    if (type <= EVENT_REFUND_FAILED)
        return refund_account(b, bank_refund(b, number));
    return charge_account(b, bank_charge(b, bank_dispute(b, number)->charge));
}

void bank_emit(struct bank *b, enum event_type type, int64_t number)
{
    struct stripe_event *e = hf_alloc(sizeof *e);
    struct buf body = {0};
    new_id(b, (size_t)b->n_events + 1, &e->id);
    e->type = type;
    e->created_s = b->now_ms / 1000;
    e->account = subject_account(b, type, number);
    e->due_ms = b->has_webhook ? b->now_ms : 0;
    render_stripe_event(&body, b, e, number);
    e->body = body.data;
    e->len = body.len;
    bank_restore_event(b, e);
    bank_mark_event(b, e);
}

/* ---- metadata ---- */

const char *metadata_get(const struct metadata *m, const char *key)
{
    for (size_t i = 0; i < m->pairs.n; i++)
        if (strcmp(m->pairs.v[i].key, key) == 0)
            return m->pairs.v[i].value;
    return NULL;
}

/* An empty value removes the key, as Stripe does it. */
void metadata_set(struct metadata *m, const char *key, const char *value)
{
    size_t i = 0;
    while (i < m->pairs.n && strcmp(m->pairs.v[i].key, key) != 0)
        i++;
    if (i < m->pairs.n) {
        free(m->pairs.v[i].key);
        free(m->pairs.v[i].value);
    } else if (*value) {
        (void)vec_push(&m->pairs);
    } else {
        return;
    }
    if (*value) {
        m->pairs.v[i].key = hf_strndup(key, strlen(key));
        m->pairs.v[i].value = hf_strndup(value, strlen(value));
        return;
    }
    m->pairs.n--;
    memmove(&m->pairs.v[i], &m->pairs.v[i + 1], (m->pairs.n - i) * sizeof *m->pairs.v);
}

void metadata_copy(struct metadata *to, const struct metadata *from)
{
    for (size_t i = 0; i < from->pairs.n; i++)
        metadata_set(to, from->pairs.v[i].key, from->pairs.v[i].value);
}

void metadata_close(struct metadata *m)
{
    for (size_t i = 0; i < m->pairs.n; i++) {
        free(m->pairs.v[i].key);
        free(m->pairs.v[i].value);
    }
    vec_close(&m->pairs);
}
