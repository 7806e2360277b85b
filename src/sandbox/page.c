/* The page on which a buyer confirms a payment with the card's issuer, played by two buttons.  Its
 * address is a secret of the intent.  On the bank's thread, as operations of the sandbox's own. */
#include <string.h>

#include "sandbox/operations.h"
#include "sandbox/refuse.h"

static const char type_html[] = "text/html; charset=utf-8";
/* The page's style, and its SHA-256 in base64, so that the browser takes no other. */
#define STYLE                                                                                      \
    "body{font:16px system-ui,sans-serif;max-width:32rem;margin:4rem auto;padding:0 1rem}"         \
    "button{font:inherit;padding:.5rem 1rem;margin-right:1rem}"
#define STYLE_SHA256 "h+gtqVG/E5uVuR3wxq7Y2P80PAQBrZmOPw/0/noRDV8="

static void put_html(struct buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            buf_lit(out, "&amp;");
            break;
        case '<':
            buf_lit(out, "&lt;");
            break;
        case '>':
            buf_lit(out, "&gt;");
            break;
        case '"':
            buf_lit(out, "&quot;");
            break;
        default:
            buf_char(out, *text);
        }
    }
}

static void begin_page(struct buf *out)
{
    buf_lit(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                 "<meta name=\"viewport\" content=\"width=device-width\">"
                 "<title>Payment sandbox</title><style>" STYLE "</style></head><body>\n"
                 "<h1>Payment sandbox</h1>\n");
}

/* The scheme and host of an address, for Content-Security-Policy: a browser follows the redirect
 * after the form only to where form-action allows.  Nothing if the address could end the policy. */
static void put_origin(struct buf *out, const char *url)
{
    const char *colon = strchr(url, ':');
    size_t len = colon ? (size_t)(colon - url) + 1 : 0;
    if (colon && strncmp(colon, "://", 3) == 0 &&
        (strncmp(url, "http:", 5) == 0 || strncmp(url, "https:", 6) == 0))
        len += 2 + strcspn(colon + 3, "/?#");
    for (size_t i = 0; i < len; i++)
        if (url[i] <= ' ' || url[i] >= 0x7f || strchr(";,'\"", url[i]))
            return;
    buf_char(out, ' ');
    buf_put(out, url, len);
}

static void set_policy(struct order *o, const struct intent *i)
{
    o->policy.len = 0;
    buf_lit(&o->policy,
            "default-src 'none'; style-src 'sha256-" STYLE_SHA256 "'; frame-ancestors 'none'; "
            "base-uri 'none'; form-action 'self'");
    if (i && i->return_url)
        put_origin(&o->policy, i->return_url);
    buf_char(&o->policy, '\0');
    o->type = type_html;
}

/* The intent of the address, whatever its account: the address is the secret. */
static struct intent *find(const struct bank *b, const struct order *o)
{
    struct id id;
    if (!id_parse(o->segment, strlen(o->segment), "pi_", &id) || id.key < 1 ||
        (size_t)id.key > b->intents.n)
        return NULL;
    struct intent *i = bank_intent(b, id.key);
    return id_secret_equal(i->id.secret, id.secret) && intent_action_matches(i, o->segment2) ? i
                                                                                             : NULL;
}

static bool answer_over(struct order *o, int status, const struct intent *i, const char *sentence)
{
    o->status = status;
    set_policy(o, i);
    begin_page(o->out);
    buf_printf(o->out, "<p>%s</p>\n</body></html>\n", sentence);
    return true;
}

static bool page(struct bank *b, struct order *o, struct api_error *ret)
{
    (void)ret;
    const struct intent *i = find(b, o);
    if (!i)
        return answer_over(o, 404, NULL, "There is no such payment, or it has been tried again.");
    if (i->status != PI_REQUIRES_ACTION)
        return answer_over(o, 200, i, "Nothing is left to be done here.");
    set_policy(o, i);
    begin_page(o->out);
    buf_printf(o->out,
               "<p>A payment of <strong>%lld</strong> (smallest unit, %s) asks for your "
               "confirmation.</p>\n",
               (long long)i->amount, i->currency);
    if (i->description) {
        buf_lit(o->out, "<p>");
        put_html(o->out, i->description);
        buf_lit(o->out, "</p>\n");
    }
    buf_lit(o->out, "<form method=\"post\">"
                    "<button name=\"result\" value=\"complete\">Complete</button>"
                    "<button name=\"result\" value=\"fail\">Fail</button></form>\n"
                    "</body></html>\n");
    return true;
}

/* Leads the buyer back to the shop, as Stripe does it. */
static void redirect(struct order *o, const struct intent *i)
{
    struct buf parameters = {0};
    char id[ID_TEXT_SIZE], secret[PI_SECRET_SIZE];
    const char *url = i->return_url, *fragment = strchrnul(url, '#');
    (void)id_format(id, "pi_", &i->id);
    intent_client_secret(i, secret);
    form_encode(&parameters, "payment_intent", id);
    form_encode(&parameters, "payment_intent_client_secret", secret);
    form_encode(&parameters, "redirect_status",
                i->status == PI_SUCCEEDED || i->status == PI_REQUIRES_CAPTURE ? "succeeded"
                                                                              : "failed");
    o->location.len = 0;
    buf_put(&o->location, url, (size_t)(fragment - url));
    buf_char(&o->location, memchr(url, '?', (size_t)(fragment - url)) ? '&' : '?');
    buf_put(&o->location, parameters.data, parameters.len);
    buf_put(&o->location, fragment, strlen(fragment) + 1);
    buf_close(&parameters);
}

static bool act(struct bank *b, struct order *o, struct api_error *ret)
{
    const char *result = form_get(&o->form, "result");
    struct intent *i = find(b, o);
    bool completed = result && strcmp(result, "complete") == 0;
    if (!completed && (!result || strcmp(result, "fail") != 0)) {
        refuse_parameter(ret, NULL, "result", "result must be complete or fail.");
        return false;
    }
    if (!i)
        return answer_over(o, 404, NULL, "There is no such payment, or it has been tried again.");
    (void)intent_act(b, i, completed);
    if (!i->return_url)
        return answer_over(o, 200, i, "Thank you. You may close this page.");
    (void)answer_over(o, 303, i, "Thank you.");
    redirect(o, i);
    return true;
}

static const char *const no_parameters[] = {NULL};
static const char *const act_parameters[] = {"result", NULL};
const struct operation operation_action_page = {
    .name = "action_page", .parameters = no_parameters, .run = page, .is_own = true};
const struct operation operation_act = {
    .name = "act", .parameters = act_parameters, .run = act, .writes = true, .is_own = true};
