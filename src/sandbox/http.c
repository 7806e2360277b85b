/* See http.h. */
#include "sandbox/http.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "http/address.h"
#include "http/host.h"
#include "http/request.h"
#include "http/route.h"
#include "http/server.h"
#include "sandbox/operations.h"
#include "sandbox/refuse.h"
#include "sandbox/render.h"

#define API_KEY_MAX 255

struct sandbox_call {
    struct request http; /* first: src/http knows the call as this */
    struct order order;
    struct buf headers;
};

static struct sandbox_call *call_of(struct request *r) { return (struct sandbox_call *)r; }
static struct sandbox_site *site_of(const struct request *r) { return server_context(r->server); }

static void release(struct request *r)
{
    struct sandbox_call *c = call_of(r);
    struct form form = c->order.form;
    struct buf location = c->order.location, policy = c->order.policy;
    form_close(&form);
    buf_close(&location);
    buf_close(&policy);
    buf_close(&c->headers);
    c->order = (struct order){0};
}

/* ---- answers ---- */

static void put_header(struct buf *out, const char *name, const char *value)
{
    buf_str(out, name);
    buf_lit(out, ": ");
    buf_str(out, value);
    buf_lit(out, "\r\n");
}

/* Does Stripe tell its clients whether to try again?  Of most answers it does not. */
static const char *should_retry(const struct order *o)
{
    if (o->status == 409 || o->status == 429)
        return "true";
    return o->is_replayed && o->status >= 500 ? "false" : NULL;
}

static void answer_order(struct request *r)
{
    struct sandbox_call *c = call_of(r);
    const struct order *o = &c->order;
    struct buf *headers = &c->headers;
    const char *retry = should_retry(o);
    headers->len = 0;
    put_header(headers, "Request-Id", r->id);
    put_header(headers, "Stripe-Version", *o->version ? o->version : API_VERSION);
    if (*o->key)
        put_header(headers, "Idempotency-Key", o->key);
    if (o->is_replayed) {
        put_header(headers, "Idempotent-Replayed", "true");
        put_header(headers, "Original-Request", o->original_request);
    }
    if (retry)
        put_header(headers, "Stripe-Should-Retry", retry);
    buf_char(headers, '\0');
    r->answer.headers.more = headers->data;
    r->answer.why = "the sandbox fails on purpose, or is full";
    r->answer.reset = o->resets;
    r->answer.headers.location = o->location.len ? o->location.data : NULL;
    r->answer.headers.policy = o->policy.len ? o->policy.data : NULL;
    answer_out(r, o->resets ? 500 : o->status, o->type ? o->type : type_json);
}

static void answer_refusal(struct request *r, const struct api_error *refusal)
{
    r->out.len = 0;
    render_error(&r->out, NULL, refusal);
    call_of(r)->order.status = refusal->status;
    answer_order(r);
}

/* What the transport refuses, in Stripe's format. */
static void refuse_in_stripes_way(struct request *r, const struct problem *problem,
                                  const char *detail)
{
    struct api_error refusal;
    bool is_ours = problem->status >= 500;
    const char *type = is_ours ? "api_error" : "invalid_request_error";
    if (problem == &problem_not_found)
        refuse(&refusal, 404, type, NULL, NULL, "Unrecognized request URL (%.8s).",
               r->method ? r->method : "");
    else
        refuse(&refusal, problem->status, type, NULL, NULL, "%.200s",
               detail ? detail : "The request was refused.");
    answer_refusal(r, &refusal);
}

/* ---- keys ---- */

/* Decodes "Basic KEY:", base64 of the key as user name and an empty password, into `out`. */
static bool read_basic(const char *value, size_t len, char out[API_KEY_MAX + 1])
{
    unsigned char decoded[3 * (API_KEY_MAX + 1)];
    unsigned char text[4 * (API_KEY_MAX + 1)];
    if (len == 0 || len >= sizeof text || len % 4 != 0)
        return false;
    memcpy(text, value, len);
    int n = EVP_DecodeBlock(decoded, text, (int)len);
    if (n < 0)
        return false;
    size_t key_len = 0;
    while (key_len < (size_t)n && decoded[key_len] != ':' && decoded[key_len] != '\0')
        key_len++;
    bool fits = key_len > 0 && key_len <= API_KEY_MAX;
    if (fits) {
        memcpy(out, decoded, key_len);
        out[key_len] = '\0';
    }
    OPENSSL_cleanse(decoded, sizeof decoded);
    OPENSSL_cleanse(text, sizeof text);
    return fits;
}

/* The API key of a request: from the header, or as a browser sends it in the form.  Returns false
 * if there is none. */
static bool read_key(const struct request *r, const struct form *f, char out[API_KEY_MAX + 1])
{
    const char *value = r->headers.authorization.data, *in_form = form_get(f, "key");
    size_t len = r->headers.authorization.len;
    if (value && len > 6 && strncasecmp(value, "Basic ", 6) == 0)
        return read_basic(value + 6, len - 6, out);
    if (value && len > 7 && strncasecmp(value, "Bearer ", 7) == 0) {
        value += 7;
        len -= 7;
    } else {
        value = in_form;
        len = in_form ? strlen(in_form) : 0;
    }
    if (len == 0 || len > API_KEY_MAX)
        return false;
    memcpy(out, value, len);
    out[len] = '\0';
    return true;
}

static bool refuse_key(struct api_error *ret, const char *code, const char *message)
{
    refuse(ret, 401, "invalid_request_error", code, NULL, "%s", message);
    return false;
}

static bool key_is(const uint8_t expected[DIGEST_SIZE], const uint8_t presented[DIGEST_SIZE])
{
    return CRYPTO_memcmp(expected, presented, DIGEST_SIZE) == 0;
}

/* Sets the account and the kind of key.  Accounts are told apart by a digest of their key's last
 * part, so that no key is kept. */
static bool identify(const struct sandbox_site *site, struct order *o, const char *key,
                     struct api_error *ret)
{
    static const char secret[] = "sk_test_", publishable[] = "pk_test_";
    const size_t len = sizeof secret - 1;
    uint8_t hash[DIGEST_SIZE];
    if (strncmp(key, "sk_live_", len) == 0 || strncmp(key, "pk_live_", len) == 0)
        return refuse_key(ret, NULL,
                          "This is the sandbox: it takes test keys only. Never send a live key "
                          "to it.");
    o->is_publishable = strncmp(key, publishable, len) == 0;
    bool is_test_key = o->is_publishable || strncmp(key, secret, len) == 0;
    digest((struct iovec[]){digest_part(key, strlen(key))}, 1, hash);
    if (!is_test_key || !key[len] ||
        (site->one_account &&
         !key_is(o->is_publishable ? site->publishable_key : site->secret_key, hash)))
        return refuse_key(ret, NULL, "Invalid API Key provided.");
    if (site->one_account)
        return true;
    digest((struct iovec[]){digest_part(key + len, strlen(key + len))}, 1, hash);
    memcpy(&o->account, hash, sizeof o->account);
    return true;
}

/* A page whose own name resolves to this machine is not: it asks for that name. */
static bool is_from_this_machine(const struct request *r)
{
    static const struct hosts loopback = {.loopback = true};
    const struct address *peer = request_peer(r);
    return peer && address_is_loopback(peer) && hosts_have(&loopback, r->headers.host);
}

/* The sandbox's own operations need no key: the page of an action has a secret in its address, and
 * faults and books are for programs on this machine.  No web page may reach those either. */
static bool authorize(const struct request *r, struct order *o, struct api_error *ret)
{
    char key[API_KEY_MAX + 1];
    if (o->operation->run_own && (r->headers.origin.data || !is_from_this_machine(r))) {
        refuse(ret, 403, "invalid_request_error", NULL, NULL,
               "This is for programs on the sandbox's own machine, and not for web pages.");
        return false;
    }
    if (o->operation->is_own)
        return true;
    if (!read_key(r, &o->form, key))
        return refuse_key(ret, NULL,
                          "You did not provide an API key. You need to provide your API key in "
                          "the Authorization header, using Bearer auth (e.g. 'Authorization: "
                          "Bearer YOUR_SECRET_KEY').");
    bool known = identify(site_of(r), o, key, ret);
    OPENSSL_cleanse(key, sizeof key);
    if (!known || !o->is_publishable)
        return known;
    if (o->operation->by_publishable && form_get(&o->form, "client_secret"))
        return true;
    return refuse_key(ret, "secret_key_required",
                      "This API call cannot be made with a publishable API key. Please use a "
                      "secret API key.");
}

/* ---- questions ---- */

static bool copy_segment(struct text from, char out[ORDER_SEGMENT_SIZE])
{
    if (from.len >= ORDER_SEGMENT_SIZE)
        return false;
    if (from.len)
        memcpy(out, from.data, from.len);
    out[from.len] = '\0';
    return true;
}

static bool read_headers(const struct request *r, struct order *o, struct api_error *ret)
{
    const char *version = request_header(r, "Stripe-Version");
    if (version &&
        (strlen(version) >= sizeof o->version ||
         strspn(version, "abcdefghijklmnopqrstuvwxyz0123456789.-;=_ ") < strlen(version))) {
        refuse_parameter(ret, NULL, NULL, "Invalid Stripe API version.");
        return false;
    }
    if (r->headers.key.len > ANSWER_KEY_MAX) {
        refuse_parameter(ret, NULL, NULL, "Idempotency keys have at most %d characters.",
                         ANSWER_KEY_MAX);
        return false;
    }
    if (!utf8_is_valid(r->headers.key.data ? r->headers.key.data : "", r->headers.key.len)) {
        refuse_parameter(ret, NULL, NULL, "Idempotency keys are UTF-8.");
        return false;
    }
    if (version)
        memcpy(o->version, version, strlen(version) + 1);
    if (r->headers.key.data)
        memcpy(o->key, r->headers.key.data, r->headers.key.len);
    o->key[r->headers.key.len] = '\0';
    memcpy(o->request_id, r->id, sizeof r->id);
    return true;
}

static bool read_parameters(const struct request *r, struct order *o, struct api_error *ret)
{
    struct hf_err err = {0};
    bool ok = true;
    for (unsigned i = 0; ok && i < r->n_parameters; i++)
        ok = form_add(&o->form, r->parameters[i].name, r->parameters[i].value, &err);
    if (ok && o->operation == &operation_set_faults) {
        o->body = r->body.data ? r->body.data : "";
        o->body_len = r->body.len;
    } else if (ok && r->body.len) {
        ok = form_parse(&o->form, r->body.data, r->body.len, &err);
    }
    if (!ok)
        refuse_parameter(ret, NULL, NULL, "%s", err.msg);
    return ok;
}

static void submit(struct request *r, const struct operation *operation)
{
    struct order *o = &call_of(r)->order;
    struct api_error refusal = {0};
    o->operation = operation;
    o->out = &r->out;
    if (!copy_segment(r->segment, o->segment) || !copy_segment(r->segment2, o->segment2)) {
        refuse(&refusal, 404, "invalid_request_error", "resource_missing", "id",
               "No such object: its id is too long.");
        answer_refusal(r, &refusal);
        return;
    }
    if (!read_headers(r, o, &refusal) || !read_parameters(r, o, &refusal) ||
        !authorize(r, o, &refusal)) {
        answer_refusal(r, &refusal);
        return;
    }
    request_wait(r, &o->pending, answer_order);
    if (bank_worker_submit(site_of(r)->worker, o))
        return;
    refuse(&refusal, 503, "api_error", NULL, NULL, "The sandbox is too busy, or about to stop.");
    o->status = refusal.status;
    render_error(&r->out, NULL, &refusal);
    pending_done(&o->pending);
}

/* ---- routes ---- */

#define HANDLER(name)                                                                              \
    static void handle_##name(struct request *r) { submit(r, &operation_##name); }
HANDLER(create)
HANDLER(list)
HANDLER(retrieve)
HANDLER(update)
HANDLER(confirm)
HANDLER(capture)
HANDLER(cancel)
HANDLER(refund)
HANDLER(get_refund)
HANDLER(list_refunds)
HANDLER(get_charge)
HANDLER(list_charges)
HANDLER(get_event)
HANDLER(list_events)
HANDLER(get_dispute)
HANDLER(list_disputes)
HANDLER(balance)
HANDLER(action_page)
HANDLER(act)
HANDLER(books)
HANDLER(faults)
HANDLER(set_faults)

#define GET_ROUTE(pattern, getter)                                                                 \
    {                                                                                              \
        .path = (pattern), .allow = "GET, HEAD", .get = (getter), .get_scope = SCOPE_PUBLIC,       \
        .any_query = true, .no_store = true                                                        \
    }
#define POST_ROUTE(pattern, poster)                                                                \
    {                                                                                              \
        .path = (pattern), .allow = "POST", .post = (poster), .post_scope = SCOPE_PUBLIC,          \
        .any_query = true, .no_store = true                                                        \
    }
#define BOTH_ROUTE(pattern, getter, poster)                                                        \
    {                                                                                              \
        .path = (pattern), .allow = "GET, HEAD, POST", .get = (getter), .post = (poster),          \
        .get_scope = SCOPE_PUBLIC, .post_scope = SCOPE_PUBLIC, .any_query = true, .no_store = true \
    }

static const struct route routes[] = {
    BOTH_ROUTE("/v1/payment_intents", handle_list, handle_create),
    BOTH_ROUTE("/v1/payment_intents/*", handle_retrieve, handle_update),
    POST_ROUTE("/v1/payment_intents/*/confirm", handle_confirm),
    POST_ROUTE("/v1/payment_intents/*/capture", handle_capture),
    POST_ROUTE("/v1/payment_intents/*/cancel", handle_cancel),
    BOTH_ROUTE("/v1/refunds", handle_list_refunds, handle_refund),
    GET_ROUTE("/v1/refunds/*", handle_get_refund),
    GET_ROUTE("/v1/charges", handle_list_charges),
    GET_ROUTE("/v1/charges/*", handle_get_charge),
    GET_ROUTE("/v1/events", handle_list_events),
    GET_ROUTE("/v1/events/*", handle_get_event),
    GET_ROUTE("/v1/disputes", handle_list_disputes),
    GET_ROUTE("/v1/disputes/*", handle_get_dispute),
    GET_ROUTE("/v1/balance", handle_balance),
    BOTH_ROUTE("/sandbox/actions/*/*", handle_action_page, handle_act),
    GET_ROUTE("/sandbox/books", handle_books),
    BOTH_ROUTE("/sandbox/faults", handle_faults, handle_set_faults),
    {.path = NULL},
};

void sandbox_app_init(struct http_app *app, struct sandbox_site *site)
{
    *app = (struct http_app){.request_size = sizeof(struct sandbox_call),
                             .routes = routes,
                             .release = release,
                             .refuse = refuse_in_stripes_way,
                             .context = site};
}
