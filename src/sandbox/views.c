/* The operations that only read: single objects, and lists with Stripe's way of paging.  On the
 * bank's thread. */
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "sandbox/operations.h"
#include "sandbox/refuse.h"
#include "sandbox/render.h"

#define LIST_LIMIT_DEFAULT 10
#define LIST_LIMIT_MAX 100

/* ---- single objects ---- */

static bool retrieve(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    struct intent *i = order_intent(b, o, ret);
    if (!i || !order_expand(o, &expand, ret))
        return false;
    render_intent(o->out, b, i, &expand);
    return true;
}

static bool get_charge(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    const struct charge *c = bank_find_charge(b, o->account, o->segment);
    if (!c)
        refuse_missing(ret, "charge", o->segment, "id");
    if (!c || !order_expand(o, &expand, ret))
        return false;
    render_charge(o->out, b, c, &expand);
    return true;
}

static bool get_refund(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    const struct refund *r = bank_find_refund(b, o->account, o->segment);
    if (!r)
        refuse_missing(ret, "refund", o->segment, "id");
    if (!r || !order_expand(o, &expand, ret))
        return false;
    render_refund(o->out, b, r, &expand);
    return true;
}

static bool get_event(struct bank *b, struct order *o, struct api_error *ret)
{
    const struct stripe_event *e = bank_find_event(b, o->account, o->segment);
    if (e)
        buf_put(o->out, e->body, e->len);
    else
        refuse_missing(ret, "event", o->segment, "id");
    return e != NULL;
}

static bool get_dispute(struct bank *b, struct order *o, struct api_error *ret)
{
    const struct dispute *d = bank_find_dispute(b, o->account, o->segment);
    if (d)
        render_dispute(o->out, b, d);
    else
        refuse_missing(ret, "dispute", o->segment, "id");
    return d != NULL;
}

static bool balance(struct bank *b, struct order *o, struct api_error *ret)
{
    (void)b, (void)ret;
    buf_lit(o->out, "{\"object\":\"balance\",\"available\":[{\"amount\":0,\"currency\":\"usd\","
                    "\"source_types\":{\"card\":0}}],\"livemode\":false,\"pending\":[{\"amount\":0,"
                    "\"currency\":\"usd\",\"source_types\":{\"card\":0}}]}");
    return true;
}

/* ---- lists ---- */

/* One kind of object that can be listed. */
struct views_listing {
    const char *url, *name;
    int64_t (*count)(const struct bank *b); /* the largest number */
    bool (*fits)(const struct bank *b, const struct order *o, int64_t number);
    int64_t (*created_s)(const struct bank *b, int64_t number);
    int64_t (*find)(const struct bank *b, int64_t account, const char *id); /* 0: there is none */
    void (*render)(struct buf *out, const struct bank *b, int64_t number,
                   const struct expand *expand);
};

/* What the request asks for of a list. */
struct views_page {
    int64_t limit;
    int64_t after, before; /* numbers; 0: not given */
    int64_t from_s, to_s;  /* created within these, both included */
    struct expand expand;
};

static bool read_cursor(const struct bank *b, const struct order *o, const struct views_listing *l,
                        const char *name, int64_t *ret_number, struct api_error *ret)
{
    const char *id = form_get(&o->form, name);
    int64_t number = id ? l->find(b, o->account, id) : 0;
    if (id && !number)
        refuse_missing(ret, l->name, id, name);
    *ret_number = number;
    return !id || number;
}

static bool read_page(const struct bank *b, const struct order *o, const struct views_listing *l,
                      struct views_page *p, struct api_error *ret)
{
    int64_t above = -1, below = INT64_MAX, exactly = -1;
    *p = (struct views_page){.limit = LIST_LIMIT_DEFAULT, .from_s = 0, .to_s = INT64_MAX};
    if (!order_int(o, "limit", &p->limit, ret) || !order_int(o, "created[gte]", &p->from_s, ret) ||
        !order_int(o, "created[lte]", &p->to_s, ret) || !order_int(o, "created[gt]", &above, ret) ||
        !order_int(o, "created[lt]", &below, ret) || !order_int(o, "created", &exactly, ret) ||
        !order_expand(o, &p->expand, ret))
        return false;
    if (above + 1 > p->from_s)
        p->from_s = above + 1;
    if (below - 1 < p->to_s)
        p->to_s = below - 1;
    if (exactly >= 0)
        p->from_s = p->to_s = exactly;
    if (p->limit < 1 || p->limit > LIST_LIMIT_MAX) {
        refuse_parameter(ret, "parameter_invalid_integer", "limit",
                         "limit must be between 1 and %d.", LIST_LIMIT_MAX);
        return false;
    }
    if (form_get(&o->form, "starting_after") && form_get(&o->form, "ending_before")) {
        refuse_parameter(ret, NULL, "starting_after",
                         "You cannot give both starting_after and ending_before.");
        return false;
    }
    return read_cursor(b, o, l, "starting_after", &p->after, ret) &&
           read_cursor(b, o, l, "ending_before", &p->before, ret);
}

static bool on_page(const struct bank *b, const struct order *o, const struct views_listing *l,
                    const struct views_page *p, int64_t number)
{
    if (!l->fits(b, o, number))
        return false;
    int64_t created_s = l->created_s(b, number);
    return created_s >= p->from_s && created_s <= p->to_s;
}

/* Collects up to limit + 1 numbers in the order in which they are found: downwards from the cursor,
 * or upwards if the page ends before an object. */
static size_t collect(const struct bank *b, const struct order *o, const struct views_listing *l,
                      const struct views_page *p, int64_t *ret_numbers)
{
    size_t n = 0, max = (size_t)p->limit + 1;
    int64_t last = l->count(b);
    if (p->before) {
        for (int64_t number = p->before + 1; number <= last && n < max; number++)
            if (on_page(b, o, l, p, number))
                ret_numbers[n++] = number;
        return n;
    }
    for (int64_t number = p->after ? p->after - 1 : last; number > 0 && n < max; number--)
        if (on_page(b, o, l, p, number))
            ret_numbers[n++] = number;
    return n;
}

static bool list(struct bank *b, struct order *o, const struct views_listing *l,
                 struct api_error *ret)
{
    struct views_page p;
    int64_t numbers[LIST_LIMIT_MAX + 1];
    if (!read_page(b, o, l, &p, ret))
        return false;
    size_t n = collect(b, o, l, &p, numbers);
    bool has_more = n > (size_t)p.limit;
    n -= has_more;
    buf_lit(o->out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n; i++) {
        json_put_name(o->out, NULL);
        l->render(o->out, b, numbers[p.before ? n - 1 - i : i], &p.expand);
    }
    buf_printf(o->out, "],\"has_more\":%s,\"url\":\"%s\"}", has_more ? "true" : "false", l->url);
    return true;
}

/* Is this object the one that parameter `name` names, or is there no such parameter? */
static bool is_named(const struct order *o, const char *name, const char *prefix,
                     const struct id *id)
{
    const char *wanted = form_get(&o->form, name);
    char text[ID_TEXT_SIZE];
    if (!wanted)
        return true;
    (void)id_format(text, prefix, id);
    return strcmp(text, wanted) == 0;
}

/* ---- intents ---- */

static int64_t count_intents(const struct bank *b) { return (int64_t)b->intents.n; }
static bool intent_fits(const struct bank *b, const struct order *o, int64_t number)
{
    return bank_intent(b, number)->account == o->account;
}
static int64_t intent_created(const struct bank *b, int64_t number)
{
    return bank_intent(b, number)->created_s;
}
static int64_t find_intent(const struct bank *b, int64_t account, const char *id)
{
    const struct intent *i = bank_find_intent(b, account, id);
    return i ? i->id.key : 0;
}
static void put_intent(struct buf *out, const struct bank *b, int64_t number,
                       const struct expand *expand)
{
    render_intent(out, b, bank_intent(b, number), expand);
}

static bool list_intents(struct bank *b, struct order *o, struct api_error *ret)
{
    static const struct views_listing listing = {
        "/v1/payment_intents", "payment_intent", count_intents, intent_fits,
        intent_created,        find_intent,      put_intent};
    return list(b, o, &listing, ret);
}

/* ---- charges ---- */

static int64_t count_charges(const struct bank *b) { return (int64_t)b->charges.n; }
static bool charge_fits(const struct bank *b, const struct order *o, int64_t number)
{
    const struct charge *c = bank_charge(b, number);
    return charge_account(b, c) == o->account &&
           is_named(o, "payment_intent", "pi_", &bank_intent(b, c->intent)->id);
}
static int64_t charge_created(const struct bank *b, int64_t number)
{
    return bank_charge(b, number)->created_s;
}
static int64_t find_charge(const struct bank *b, int64_t account, const char *id)
{
    const struct charge *c = bank_find_charge(b, account, id);
    return c ? c->id.key : 0;
}
static void put_charge(struct buf *out, const struct bank *b, int64_t number,
                       const struct expand *expand)
{
    render_charge(out, b, bank_charge(b, number), expand);
}

static bool list_charges(struct bank *b, struct order *o, struct api_error *ret)
{
    static const struct views_listing listing = {"/v1/charges", "charge",       count_charges,
                                                 charge_fits,   charge_created, find_charge,
                                                 put_charge};
    return list(b, o, &listing, ret);
}

/* ---- refunds ---- */

static int64_t count_refunds(const struct bank *b) { return (int64_t)b->refunds.n; }
static bool refund_fits(const struct bank *b, const struct order *o, int64_t number)
{
    const struct refund *r = bank_refund(b, number);
    const struct charge *c = bank_charge(b, r->charge);
    return charge_account(b, c) == o->account && is_named(o, "charge", "ch_", &c->id) &&
           is_named(o, "payment_intent", "pi_", &bank_intent(b, c->intent)->id);
}
static int64_t refund_created(const struct bank *b, int64_t number)
{
    return bank_refund(b, number)->created_s;
}
static int64_t find_refund(const struct bank *b, int64_t account, const char *id)
{
    const struct refund *r = bank_find_refund(b, account, id);
    return r ? r->id.key : 0;
}
static void put_refund(struct buf *out, const struct bank *b, int64_t number,
                       const struct expand *expand)
{
    render_refund(out, b, bank_refund(b, number), expand);
}

static bool list_refunds(struct bank *b, struct order *o, struct api_error *ret)
{
    static const struct views_listing listing = {"/v1/refunds", "refund",       count_refunds,
                                                 refund_fits,   refund_created, find_refund,
                                                 put_refund};
    return list(b, o, &listing, ret);
}

/* ---- disputes ---- */

static int64_t count_disputes(const struct bank *b) { return (int64_t)b->disputes.n; }
static bool dispute_fits(const struct bank *b, const struct order *o, int64_t number)
{
    return charge_fits(b, o, bank_dispute(b, number)->charge) &&
           is_named(o, "charge", "ch_", &bank_charge(b, bank_dispute(b, number)->charge)->id);
}
static int64_t dispute_created(const struct bank *b, int64_t number)
{
    return bank_dispute(b, number)->created_s;
}
static int64_t find_dispute(const struct bank *b, int64_t account, const char *id)
{
    const struct dispute *d = bank_find_dispute(b, account, id);
    return d ? d->id.key : 0;
}
static void put_dispute(struct buf *out, const struct bank *b, int64_t number,
                        const struct expand *expand)
{
    (void)expand;
    render_dispute(out, b, bank_dispute(b, number));
}

static bool list_disputes(struct bank *b, struct order *o, struct api_error *ret)
{
    static const struct views_listing listing = {"/v1/disputes", "dispute",       count_disputes,
                                                 dispute_fits,   dispute_created, find_dispute,
                                                 put_dispute};
    return list(b, o, &listing, ret);
}

/* ---- events ---- */

static int64_t count_events(const struct bank *b) { return b->n_events; }
static bool event_fits(const struct bank *b, const struct order *o, int64_t number)
{
    const struct stripe_event *e = bank_event(b, number);
    const struct form *f = &o->form;
    const char *type = form_get(f, "type");
    if (!e || e->account != o->account)
        return false;
    if (type)
        return strcmp(type, event_type_names[e->type]) == 0;
    size_t i = form_find(f, "types[]", 0);
    if (i == f->entries.n)
        return true;
    for (; i < f->entries.n; i = form_find(f, "types[]", i + 1))
        if (strcmp(form_value(f, i), event_type_names[e->type]) == 0)
            return true;
    return false;
}
static int64_t event_created(const struct bank *b, int64_t number)
{
    return bank_event(b, number)->created_s;
}
static int64_t find_event(const struct bank *b, int64_t account, const char *id)
{
    const struct stripe_event *e = bank_find_event(b, account, id);
    return e ? e->id.key : 0;
}
static void put_event(struct buf *out, const struct bank *b, int64_t number,
                      const struct expand *expand)
{
    (void)expand;
    buf_put(out, bank_event(b, number)->body, bank_event(b, number)->len);
}

static bool list_events(struct bank *b, struct order *o, struct api_error *ret)
{
    static const struct views_listing listing = {
        "/v1/events", "event", count_events, event_fits, event_created, find_event, put_event};
    return list(b, o, &listing, ret);
}

/* ---- the table ---- */

#define PAGE_PARAMETERS                                                                            \
    "limit", "starting_after", "ending_before", "created", "created[gte]", "created[gt]",          \
        "created[lte]", "created[lt]", "expand[]"

static const char *const retrieve_parameters[] = {"key", "client_secret", "expand[]", NULL};
static const char *const get_parameters[] = {"expand[]", NULL};
static const char *const list_parameters[] = {PAGE_PARAMETERS, NULL};
static const char *const by_intent[] = {"payment_intent", PAGE_PARAMETERS, NULL};
static const char *const by_charge[] = {"payment_intent", "charge", PAGE_PARAMETERS, NULL};
static const char *const by_type[] = {"type", "types[]", PAGE_PARAMETERS, NULL};

const struct operation operation_retrieve = {
    .name = "retrieve", .parameters = retrieve_parameters, .run = retrieve, .by_publishable = true};
const struct operation operation_list = {
    .name = "list", .parameters = list_parameters, .run = list_intents};
const struct operation operation_get_charge = {
    .name = "get_charge", .parameters = get_parameters, .run = get_charge};
const struct operation operation_list_charges = {
    .name = "list_charges", .parameters = by_intent, .run = list_charges};
const struct operation operation_get_refund = {
    .name = "get_refund", .parameters = get_parameters, .run = get_refund};
const struct operation operation_list_refunds = {
    .name = "list_refunds", .parameters = by_charge, .run = list_refunds};
const struct operation operation_get_dispute = {
    .name = "get_dispute", .parameters = get_parameters, .run = get_dispute};
const struct operation operation_list_disputes = {
    .name = "list_disputes", .parameters = by_charge, .run = list_disputes};
const struct operation operation_get_event = {
    .name = "get_event", .parameters = get_parameters, .run = get_event};
const struct operation operation_list_events = {
    .name = "list_events", .parameters = by_type, .run = list_events};
const struct operation operation_balance = {
    .name = "balance", .parameters = get_parameters, .run = balance};
