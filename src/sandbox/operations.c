/* The operations that change something: each reads its parameters, refuses what Stripe would
 * refuse, and has bank.h do the rest.  On the bank's thread. */
#include "sandbox/operations.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "sandbox/refuse.h"
#include "sandbox/render.h"

/* Parameters that several operations take. */
#define CARD_PARAMETERS                                                                            \
    "payment_method", "payment_method_data[type]", "payment_method_data[card][*]",                 \
        "payment_method_data[billing_details][*]",                                                 \
        "payment_method_data[billing_details][address][*]", "payment_method_data[allow_redisplay]"

/* ---- parameters ---- */

bool order_int(const struct order *o, const char *name, int64_t *ret_value, struct api_error *ret)
{
    const char *text = form_get(&o->form, name);
    if (!text || form_parse_int(text, ret_value))
        return true;
    refuse_parameter(ret, "parameter_invalid_integer", name, "Invalid integer: %.60s", text);
    return false;
}

bool order_expand(const struct order *o, struct expand *ret_expand, struct api_error *ret)
{
    struct expand e = {0};
    for (size_t i = 0; (i = form_find(&o->form, "expand[]", i)) < o->form.entries.n; i++) {
        const char *value = form_value(&o->form, i), *path = value;
        path += strncmp(path, "data.", 5) == 0 ? 5 : 0;
        if (strncmp(path, "latest_charge", 13) == 0)
            e.latest_charge = true;
        if (strcmp(path, "latest_charge.refunds") == 0 || strcmp(path, "refunds") == 0)
            e.refunds = true;
        else if (strcmp(path, "payment_method") == 0)
            e.payment_method = true;
        else if (strcmp(path, "payment_intent") == 0)
            e.payment_intent = true;
        else if (strcmp(path, "charge") == 0)
            e.charge = true;
        else if (strcmp(path, "latest_charge") != 0) {
            refuse_parameter(ret, NULL, "expand", "This property cannot be expanded (%.60s).",
                             value);
            return false;
        }
    }
    *ret_expand = e;
    return true;
}

/* `name` must have at most `max` characters; absent or empty it is NULL. */
static bool read_text(const struct order *o, const char *name, size_t max, const char **ret_text,
                      struct api_error *ret)
{
    const char *text = form_get(&o->form, name);
    if (text && utf8_chars(text, strlen(text)) > max) {
        refuse_parameter(ret, "parameter_invalid_string", name,
                         "Invalid %s: must be at most %zu characters", name, max);
        return false;
    }
    *ret_text = text && *text ? text : NULL;
    return true;
}

/* A place of the shop: a page, or a scheme of its app, and nothing that a browser would read from
 * the buyer's own disk, or run. */
static bool is_shop_url(const char *url)
{
    static const char *const refused[] = {"file", "javascript", "vbscript",  "data",
                                          "blob", "about",      "filesystem"};
    size_t len = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    bool is_page = strncasecmp(url, "http:", 5) == 0 || strncasecmp(url, "https:", 6) == 0;
    if (!isalpha((unsigned char)*url) || strncmp(url + len, "://", 3) != 0)
        return false;
    if (is_page && (!url[len + 3] || strchr("/?#", url[len + 3]))) /* no host */
        return false;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strlen(refused[i]) == len && strncasecmp(url, refused[i], len) == 0)
            return false;
    return true;
}

/* An address that a browser can be sent to.  It becomes part of a header, so it is plain ASCII. */
static bool read_url(const struct order *o, const char *name, const char **ret_url,
                     struct api_error *ret)
{
    const char *url = NULL;
    if (!read_text(o, name, URL_MAX, &url, ret))
        return false;
    const char *p = url ? url : "";
    while (*p > ' ' && *p < 0x7f)
        p++;
    if (url && (*p || !is_shop_url(url))) {
        refuse_parameter(ret, "url_invalid", name, "Not a valid URL");
        return false;
    }
    *ret_url = url;
    return true;
}

/* One of `values` (up to NULL), which outlive everything; absent it is NULL. */
static bool read_choice(const struct order *o, const char *name, const char *const *values,
                        const char **ret_value, struct api_error *ret)
{
    const char *text = form_get(&o->form, name);
    const char *const *v = values;
    while (text && *v && strcmp(*v, text) != 0)
        v++;
    if (text && !*v) {
        refuse_parameter(ret, NULL, name, "Invalid %s: %.60s is not one of its values", name, text);
        return false;
    }
    *ret_value = text ? *v : NULL;
    return true;
}

static bool read_flag(const struct order *o, const char *name, bool *ret_flag,
                      struct api_error *ret)
{
    static const char *const values[] = {"true", "false", NULL};
    const char *value = NULL;
    if (!read_choice(o, name, values, &value, ret))
        return false;
    *ret_flag = value == values[0];
    return true;
}

static bool check_amount(int64_t amount, const char *currency, struct api_error *ret)
{
    if (amount < 1)
        refuse_parameter(ret, "parameter_invalid_integer", "amount",
                         "This value must be greater than or equal to 1.");
    else if (amount > AMOUNT_MAX)
        refuse_parameter(ret, "amount_too_large", "amount",
                         "Amount must be no more than %lld in the smallest unit of %s",
                         (long long)AMOUNT_MAX, currency);
    else if (amount < currency_minimum(currency))
        refuse_parameter(ret, "amount_too_small", "amount",
                         "Amount must be at least %lld in the smallest unit of %s",
                         (long long)currency_minimum(currency), currency);
    return !ret->status;
}

static bool refuse_absent(struct api_error *ret, const char *name)
{
    refuse_parameter(ret, "parameter_missing", name, "Missing required param: %s.", name);
    return false;
}

/* Reads currency, in any case, into `out`. */
static bool read_currency(const struct order *o, char out[CURRENCY_SIZE], struct api_error *ret)
{
    const char *text = form_get(&o->form, "currency");
    if (!text)
        return refuse_absent(ret, "currency");
    (void)snprintf(out, CURRENCY_SIZE, "%s", text);
    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (strlen(text) == CURRENCY_SIZE - 1 && currency_is_known(out))
        return true;
    refuse_parameter(ret, NULL, "currency", "Invalid currency: %.20s.", text);
    return false;
}

/* Applies metadata[...] to `m`; a bare `metadata=` empties it. */
static bool read_metadata(const struct order *o, struct metadata *m, struct api_error *ret)
{
    const struct form *f = &o->form;
    if (form_get(f, "metadata"))
        metadata_close(m);
    for (size_t i = 0; (i = form_find(f, "metadata[*]", i)) < f->entries.n; i++) {
        char key[FORM_NAME_MAX];
        const char *value = form_value(f, i);
        form_key(form_name(f, i), key);
        if (!*key || utf8_chars(key, strlen(key)) > METADATA_KEY_MAX ||
            utf8_chars(value, strlen(value)) > METADATA_VALUE_MAX) {
            refuse_parameter(ret, NULL, "metadata",
                             "Metadata keys can have up to %d characters, values up to %d.",
                             METADATA_KEY_MAX, METADATA_VALUE_MAX);
            return false;
        }
        metadata_set(m, key, value);
    }
    if (m->pairs.n <= METADATA_MAX)
        return true;
    refuse_parameter(ret, NULL, "metadata", "Metadata can have up to %d keys.", METADATA_MAX);
    return false;
}

static bool check_method_types(const struct order *o, struct api_error *ret)
{
    const struct form *f = &o->form;
    for (size_t i = 0; (i = form_find(f, "payment_method_types[]", i)) < f->entries.n; i++)
        if (strcmp(form_value(f, i), "card") != 0) {
            refuse_parameter(ret, "payment_intent_invalid_parameter", "payment_method_types",
                             "The payment method type \"%.40s\" is invalid: the sandbox knows "
                             "\"card\" only.",
                             form_value(f, i));
            return false;
        }
    return true;
}

static bool answer_intent(struct bank *b, struct order *o, const struct intent *i,
                          const struct expand *expand)
{
    render_intent(o->out, b, i, expand);
    return true;
}

/* ---- create ---- */

static bool read_terms(const struct order *o, struct intent_terms *t, char currency[CURRENCY_SIZE],
                       struct api_error *ret)
{
    static const char *const methods[] = {"automatic", "automatic_async", "manual", NULL};
    const char *capture = NULL;
    if (!form_get(&o->form, "amount"))
        return refuse_absent(ret, "amount");
    if (!order_int(o, "amount", &t->amount, ret) || !read_currency(o, currency, ret) ||
        !check_amount(t->amount, currency, ret) || !check_method_types(o, ret) ||
        !read_choice(o, "capture_method", methods, &capture, ret) ||
        !read_flag(o, "automatic_payment_methods[enabled]", &t->automatic_methods, ret) ||
        !read_text(o, "description", DESCRIPTION_MAX, &t->description, ret) ||
        !read_text(o, "receipt_email", EMAIL_MAX, &t->receipt_email, ret) ||
        !read_url(o, "return_url", &t->return_url, ret))
        return false;
    t->account = o->account;
    t->currency = currency;
    t->manual_capture = capture == methods[2];
    return true;
}

static bool create_with(struct bank *b, struct order *o, struct intent_terms *terms,
                        struct api_error *ret)
{
    struct expand expand;
    struct card_input card = {0};
    bool confirm = false;
    if (!read_flag(o, "confirm", &confirm, ret) || !order_expand(o, &expand, ret) ||
        !order_card(b, o, NULL, &card, ret))
        return false;
    if (confirm && !card.card)
        return refuse_absent(ret, "payment_method");
    struct intent *i = intent_create(b, terms);
    if (card.card)
        intent_set_method(b, i, card.card, card.exp_month, card.exp_year);
    if (confirm && !intent_confirm(b, i, ret))
        return false;
    return answer_intent(b, o, i, &expand);
}

static bool create(struct bank *b, struct order *o, struct api_error *ret)
{
    char currency[CURRENCY_SIZE];
    struct metadata metadata = {0};
    struct intent_terms terms = {.metadata = &metadata};
    bool created = read_terms(o, &terms, currency, ret) && read_metadata(o, &metadata, ret) &&
                   create_with(b, o, &terms, ret);
    metadata_close(&metadata);
    return created;
}

static const char *const create_parameters[] = {"amount",
                                                "currency",
                                                "payment_method_types[]",
                                                "automatic_payment_methods[enabled]",
                                                "automatic_payment_methods[allow_redirects]",
                                                "capture_method",
                                                "metadata[*]",
                                                "receipt_email",
                                                "description",
                                                "confirm",
                                                "return_url",
                                                "expand[]",
                                                CARD_PARAMETERS,
                                                NULL};
const struct operation operation_create = {
    .name = "create", .parameters = create_parameters, .run = create, .writes = true};

/* ---- one intent ---- */

struct intent *order_intent(struct bank *b, struct order *o, struct api_error *ret)
{
    struct intent *i = bank_find_intent(b, o->account, o->segment);
    const char *secret = form_get(&o->form, "client_secret");
    if (!i) {
        refuse_missing(ret, "payment_intent", o->segment, "intent");
        return NULL;
    }
    if (!o->is_publishable && !secret)
        return i;
    if (secret && intent_secret_matches(i, secret))
        return i;
    refuse_parameter(ret, NULL, "client_secret",
                     "The client_secret provided does not match the client_secret associated with "
                     "the PaymentIntent.");
    return NULL;
}

static void replace(char **text, const char *with)
{
    free(*text);
    *text = with ? hf_strndup(with, strlen(with)) : NULL;
}

/* The texts that confirm and update may change. */
struct new_texts {
    const char *description, *receipt_email, *return_url;
};

static bool read_texts(const struct order *o, struct new_texts *t, struct api_error *ret)
{
    return read_text(o, "description", DESCRIPTION_MAX, &t->description, ret) &&
           read_text(o, "receipt_email", EMAIL_MAX, &t->receipt_email, ret) &&
           read_url(o, "return_url", &t->return_url, ret);
}

static void apply_texts(const struct order *o, struct intent *i, const struct new_texts *t)
{
    if (form_get(&o->form, "description"))
        replace(&i->description, t->description);
    if (form_get(&o->form, "receipt_email"))
        replace(&i->receipt_email, t->receipt_email);
    if (form_get(&o->form, "return_url"))
        replace(&i->return_url, t->return_url);
}

static bool confirm(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    struct card_input card = {0};
    struct new_texts texts = {0};
    struct intent *i = order_intent(b, o, ret);
    if (!i || !order_expand(o, &expand, ret) || !read_texts(o, &texts, ret) ||
        !order_card(b, o, i, &card, ret))
        return false;
    if (i->status <= PI_REQUIRES_ACTION) { /* otherwise it is refused and stays as it is */
        apply_texts(o, i, &texts);
        if (card.card)
            intent_set_method(b, i, card.card, card.exp_month, card.exp_year);
    }
    return intent_confirm(b, i, ret) && answer_intent(b, o, i, &expand);
}

static const char *const confirm_parameters[] = {"key",
                                                 "client_secret",
                                                 "receipt_email",
                                                 "return_url",
                                                 "use_stripe_sdk",
                                                 "expand[]",
                                                 CARD_PARAMETERS,
                                                 NULL};
const struct operation operation_confirm = {.name = "confirm",
                                            .parameters = confirm_parameters,
                                            .run = confirm,
                                            .writes = true,
                                            .by_publishable = true};

/* The intent's metadata with the request's changes, in `m`. */
static bool new_metadata(const struct order *o, const struct intent *i, struct metadata *m,
                         struct api_error *ret)
{
    metadata_copy(m, &i->metadata);
    return read_metadata(o, m, ret);
}

static bool update_amount(const struct order *o, struct intent *i, int64_t *amount,
                          char currency[CURRENCY_SIZE], struct api_error *ret)
{
    bool has_currency = form_get(&o->form, "currency");
    (void)snprintf(currency, CURRENCY_SIZE, "%s", i->currency);
    *amount = i->amount;
    if (!order_int(o, "amount", amount, ret) || (has_currency && !read_currency(o, currency, ret)))
        return false;
    if (!form_get(&o->form, "amount") && !has_currency)
        return true;
    return check_amount(*amount, currency, ret) && intent_may_change(i, ret);
}

static bool update(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    struct new_texts texts = {0};
    struct metadata metadata = {0};
    char currency[CURRENCY_SIZE];
    int64_t amount;
    struct intent *i = order_intent(b, o, ret);
    bool ok = i && order_expand(o, &expand, ret) && read_texts(o, &texts, ret) &&
              new_metadata(o, i, &metadata, ret) && update_amount(o, i, &amount, currency, ret);
    if (ok) {
        apply_texts(o, i, &texts);
        metadata_close(&i->metadata);
        i->metadata = metadata;
        i->amount = amount;
        memcpy(i->currency, currency, sizeof i->currency);
        bank_mark_intent(b, i);
        return answer_intent(b, o, i, &expand);
    }
    metadata_close(&metadata);
    return false;
}

static const char *const update_parameters[] = {"amount",        "currency",    "metadata",
                                                "metadata[*]",   "description", "return_url",
                                                "receipt_email", "expand[]",    NULL};
const struct operation operation_update = {
    .name = "update", .parameters = update_parameters, .run = update, .writes = true};

static bool capture(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    struct intent *i = order_intent(b, o, ret);
    int64_t amount = i ? i->capturable : 0;
    if (!i || !order_expand(o, &expand, ret) || !order_int(o, "amount_to_capture", &amount, ret))
        return false;
    if (i->status == PI_REQUIRES_CAPTURE && amount < 1) {
        refuse_parameter(ret, "parameter_invalid_integer", "amount_to_capture",
                         "This value must be greater than or equal to 1.");
        return false;
    }
    return intent_capture(b, i, amount, ret) && answer_intent(b, o, i, &expand);
}

static const char *const capture_parameters[] = {"amount_to_capture", "expand[]", NULL};
const struct operation operation_capture = {
    .name = "capture", .parameters = capture_parameters, .run = capture, .writes = true};

static bool cancel(struct bank *b, struct order *o, struct api_error *ret)
{
    struct expand expand;
    const char *reason = NULL;
    struct intent *i = order_intent(b, o, ret);
    return i && order_expand(o, &expand, ret) &&
           read_choice(o, "cancellation_reason", cancellation_reasons, &reason, ret) &&
           intent_cancel(b, i, reason, ret) && answer_intent(b, o, i, &expand);
}

static const char *const cancel_parameters[] = {"cancellation_reason", "expand[]", NULL};
const struct operation operation_cancel = {
    .name = "cancel", .parameters = cancel_parameters, .run = cancel, .writes = true};

/* ---- refunds ---- */

/* The charge that is to be refunded: `charge`, or that of `payment_intent`. */
static struct charge *find_refundable(struct bank *b, const struct order *o, struct api_error *ret)
{
    const char *charge = form_get(&o->form, "charge");
    const char *intent = form_get(&o->form, "payment_intent");
    if (!charge && !intent) {
        refuse_parameter(ret, "parameter_missing", "payment_intent",
                         "One of the following params should be provided for this request: "
                         "payment_intent or charge.");
        return NULL;
    }
    struct charge *c = charge ? bank_find_charge(b, o->account, charge) : NULL;
    if (charge && !c) {
        refuse_missing(ret, "charge", charge, "charge");
        return NULL;
    }
    struct intent *i = intent ? bank_find_intent(b, o->account, intent) : NULL;
    if (intent && !i) {
        refuse_missing(ret, "payment_intent", intent, "payment_intent");
        return NULL;
    }
    if (c)
        return c;
    if (i->charge && !bank_charge(b, i->charge)->decline)
        return bank_charge(b, i->charge);
    refuse(ret, 400, "invalid_request_error", "payment_intent_unexpected_state", "payment_intent",
           "This PaymentIntent (%.60s) does not have a successful charge to refund.", intent);
    return NULL;
}

static bool refund_with(struct bank *b, struct order *o, struct refund_terms *terms,
                        struct api_error *ret)
{
    struct expand expand;
    struct refund *r = NULL;
    if (!order_int(o, "amount", &terms->amount, ret) || !order_expand(o, &expand, ret) ||
        !read_choice(o, "reason", refund_reasons, &terms->reason, ret))
        return false;
    if (form_get(&o->form, "amount") && terms->amount < 1) {
        refuse_parameter(ret, "parameter_invalid_integer", "amount",
                         "This value must be greater than or equal to 1.");
        return false;
    }
    struct charge *c = find_refundable(b, o, ret);
    if (!c || !charge_refund(b, c, terms, &r, ret))
        return false;
    render_refund(o->out, b, r, &expand);
    return true;
}

static bool refund(struct bank *b, struct order *o, struct api_error *ret)
{
    struct metadata metadata = {0};
    struct refund_terms terms = {.metadata = &metadata};
    bool refunded = read_metadata(o, &metadata, ret) && refund_with(b, o, &terms, ret);
    metadata_close(&metadata);
    return refunded;
}

static const char *const refund_parameters[] = {"charge",      "payment_intent", "amount", "reason",
                                                "metadata[*]", "expand[]",       NULL};
const struct operation operation_refund = {
    .name = "refund", .parameters = refund_parameters, .run = refund, .writes = true};
