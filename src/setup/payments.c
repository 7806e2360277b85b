/* See payments.h. */
#include "setup/payments.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/random.h"
#include "checkout/checkout.h"
#include "checkout/notify.h"
#include "http/listen.h"
#include "sandbox/sandbox.h"

#define RATE_DEFAULT 20 /* calls to Stripe per second, of all servers */
#define RATE_MAX 10000
#define ALL_NOTICES ((2u << NOTICE_WAITLIST_ENDED) - 2)
#define KEY_BYTES 12

/* ---- what the shop is told ---- */

static bool read_notices(const char *list, unsigned *ret, struct hf_err *err)
{
    *ret = ALL_NOTICES & ~(1u << NOTICE_HOLD_EXPIRED);
    if (!list)
        return true;
    *ret = 0;
    while (*list) {
        size_t len = strcspn(list, ",");
        bool found = len == 3 && strncmp(list, "all", 3) == 0;
        if (found)
            *ret = ALL_NOTICES;
        for (enum notice n = NOTICE_BOOKING_CONFIRMED; n <= NOTICE_WAITLIST_ENDED; n++)
            if (strlen(notice_text(n)) == len && strncmp(list, notice_text(n), len) == 0) {
                *ret |= 1u << n;
                found = true;
            }
        if (!found) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "--notify-events does not know %.*s",
                             len < 60 ? (int)len : 60, list);
            return false;
        }
        list += len + (list[len] == ',');
    }
    return true;
}

static bool read_notify(struct payments *p, const struct payment_options *o,
                        const struct settings *settings, struct checkout_config *config,
                        struct hf_err *err)
{
    const char *secret = settings_get(settings, "HOLDFAST_NOTIFY_SECRET");
    struct hf_err why = {0};
    if (!o->notify)
        return true;
    if (!notify_check_url(o->notify, &why)) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "--notify: %.200s", why.msg);
        return false;
    }
    if (!secret) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "--notify needs HOLDFAST_NOTIFY_SECRET, which signs what is sent");
        return false;
    }
    if (!signature_read_standard_secrets(secret, &config->notify_secrets, &why)) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "HOLDFAST_NOTIFY_SECRET: %.200s", why.msg);
        return false;
    }
    config->notify_url = o->notify;
    return read_notices(o->notify_events, &p->notices, err);
}

/* ---- the sandbox of this process ---- */

/* A key of the sandbox: `prefix` and random digits, or NULL if the file has none. */
static bool read_sandbox_keys(struct payments *p, const char *path)
{
    char text[256];
    size_t len = 0;
    struct hf_err ignored = {0};
    if (!private_file_read(path, text, sizeof text - 1, &len, &ignored))
        return false;
    text[len] = '\0';
    return sscanf(text, "%63s %63s %63s", p->secret_key, p->publishable_key, p->webhook_secret) ==
           3;
}

static enum hf_status write_sandbox_keys(const struct payments *p, const char *path,
                                         struct hf_err *err)
{
    char text[256];
    int len = snprintf(text, sizeof text, "%s %s %s\n", p->secret_key, p->publishable_key,
                       p->webhook_secret);
    return private_file_write(path, text, (size_t)len, err) ? HF_OK : HF_INTERNAL;
}

/* The keys outlive the process, as the intents that were made with them do. */
static enum hf_status make_sandbox_keys(struct payments *p, const char *data, struct hf_err *err)
{
    char path[PATH_MAX], digits[2 * KEY_BYTES + 1];
    uint8_t bytes[KEY_BYTES];
    struct random random;
    (void)snprintf(path, sizeof path, "%s/sandbox.keys", data);
    if (read_sandbox_keys(p, path))
        return HF_OK;
    random_init_system(&random);
    random_bytes(&random, bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, digits);
    (void)snprintf(p->secret_key, sizeof p->secret_key, "sk_test_%s", digits);
    random_bytes(&random, bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, digits);
    (void)snprintf(p->publishable_key, sizeof p->publishable_key, "pk_test_%s", digits);
    random_bytes(&random, bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, digits);
    (void)snprintf(p->webhook_secret, sizeof p->webhook_secret, "whsec_%s", digits);
    return write_sandbox_keys(p, path, err);
}

/* The sandbox listens beside the server, on a free port unless the options name one. */
static enum hf_status open_sandbox(struct payments *p, const struct payment_options *o,
                                   const char *address, bool is_loopback, struct hf_err *err)
{
    char where[LISTEN_TEXT_SIZE], text[LISTEN_TEXT_SIZE];
    struct listen_address at;
    size_t host_len = (size_t)(strrchr(address, ':') - address);
    struct hf_err why = {0};
    (void)snprintf(where, sizeof where, "%.*s:0", (int)host_len, address);
    if (!is_loopback && !o->sandbox_public)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--payments sandbox is for loopback addresses; elsewhere it needs "
                          "--sandbox-public, which lets anybody pay with test cards");
    if (!listen_parse(o->sandbox_listen ? o->sandbox_listen : where, &at, &why) ||
        !listen_open(&at, &p->sandbox_fd, &why))
        return hf_err_set(err, HF_INVALID_REQUEST, "the sandbox: %.200s", why.msg);
    listen_text(p->sandbox_fd, text);
    (void)snprintf(p->sandbox_url, sizeof p->sandbox_url, "http://%s", text);
    return HF_OK;
}

static enum hf_status prepare_sandbox(struct payments *p, const struct payment_options *o,
                                      const char *data, const char *address, bool is_loopback,
                                      struct checkout_config *config, struct hf_err *err)
{
    struct hf_err why = {0};
    enum hf_status status = open_sandbox(p, o, address, is_loopback, err);
    if (status == HF_OK)
        status = make_sandbox_keys(p, data, err);
    if (status != HF_OK)
        return status;
    if (!signature_read_stripe_secrets(p->webhook_secret, &config->webhook_secrets, &why))
        return hf_err_set(err, HF_INTERNAL, "%.200s", why.msg);
    bool is_any = strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
    /* The server's certificate need not name the address that the sandbox would use. */
    if (!o->has_tls)
        (void)snprintf(p->webhook_url, sizeof p->webhook_url, "http://%s%s/v1/webhooks/stripe",
                       is_any ? "127.0.0.1" : "", is_any ? strrchr(address, ':') : address);
    (void)snprintf(p->data, sizeof p->data, "%.4000s/sandbox.db", data);
    config->provider = "sandbox";
    config->stripe = (struct stripe_config){
        .api = p->sandbox_url, .secret_key = p->secret_key, .publishable_key = p->publishable_key};
    config->public_api = o->public_url ? o->public_url : p->sandbox_url;
    return HF_OK;
}

/* ---- Stripe ---- */

static enum hf_status prepare_stripe(const struct payment_options *o,
                                     const struct settings *settings,
                                     struct checkout_config *config, struct hf_err *err)
{
    const char *secret = settings_get(settings, "STRIPE_WEBHOOK_SECRET");
    struct hf_err why = {0};
    config->provider = "stripe";
    config->stripe =
        (struct stripe_config){.api = o->stripe_api,
                               .secret_key = settings_get(settings, "STRIPE_SECRET_KEY"),
                               .publishable_key = settings_get(settings, "STRIPE_PUBLISHABLE_KEY")};
    if (!config->stripe.secret_key || !config->stripe.publishable_key)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--payments stripe needs STRIPE_SECRET_KEY and STRIPE_PUBLISHABLE_KEY");
    if (secret && !signature_read_stripe_secrets(secret, &config->webhook_secrets, &why))
        return hf_err_set(err, HF_INVALID_REQUEST, "STRIPE_WEBHOOK_SECRET: %.200s", why.msg);
    if (!secret)
        log_write(LOG_WARN, "without STRIPE_WEBHOOK_SECRET payments are only polled", NULL);
    /* With another API than Stripe's own, such as `holdfast sandbox`, cards go there. */
    if (o->stripe_api && strcmp(o->stripe_api, STRIPE_API) != 0)
        config->public_api = o->public_url ? o->public_url : o->stripe_api;
    config->rate = RATE_DEFAULT;
    return HF_OK;
}

/* ---- life ---- */

static enum hf_status read_rate(const char *text, int64_t *ret, struct hf_err *err)
{
    char *end;
    errno = 0;
    long n = text ? strtol(text, &end, 10) : 0;
    if (!text)
        return HF_OK;
    if (errno || end == text || *end || n < 0 || n > RATE_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--payments-rate is a number of calls per second, 0 for no limit");
    *ret = n;
    return HF_OK;
}

static enum hf_status read_capture(const char *text, bool *ret_by_hand, struct hf_err *err)
{
    *ret_by_hand = text && strcmp(text, "manual") == 0;
    if (text && !*ret_by_hand && strcmp(text, "automatic") != 0)
        return hf_err_set(err, HF_INVALID_REQUEST, "--capture is automatic or manual, not %.60s",
                          text);
    return HF_OK;
}

enum hf_status payments_prepare(struct payments *p, const struct payment_options *o,
                                const struct settings *settings, const char *data,
                                const char *address, bool is_loopback, const struct clock *clock,
                                struct metrics *metrics, struct hf_err *err)
{
    struct checkout_config config = {
        .clock = clock, .metrics = metrics, .render_notice = api_render_notice};
    const char *provider = o->provider ? o->provider : is_loopback ? "sandbox" : "off";
    enum hf_status status = HF_OK;
    p->sandbox_fd = -1;
    p->clock = clock;
    if (strcmp(provider, "sandbox") == 0)
        status = prepare_sandbox(p, o, data, address, is_loopback, &config, err);
    else if (strcmp(provider, "stripe") == 0)
        status = prepare_stripe(o, settings, &config, err);
    else if (strcmp(provider, "off") != 0)
        status = hf_err_set(err, HF_INVALID_REQUEST,
                            "--payments is sandbox, stripe or off, not %.60s", provider);
    if (status != HF_OK || (status = read_rate(o->rate, &config.rate, err)) != HF_OK ||
        (status = read_capture(o->capture, &config.captures_by_hand, err)) != HF_OK)
        return status;
    if (!read_notify(p, o, settings, &config, err))
        return HF_INVALID_REQUEST;
    status = checkout_new(&config, &p->checkout, err);
    explicit_bzero(&config, sizeof config);
    if (status == HF_OK)
        api_set_payments(checkout_settings(p->checkout));
    return status;
}

enum hf_status payments_start(struct payments *p, struct hf_err *err)
{
    if (p->sandbox_fd < 0)
        return HF_OK;
    const struct sandbox_config config = {
        .listen_fd = p->sandbox_fd,
        .data = p->data,
        .secret_key = p->secret_key,
        .publishable_key = p->publishable_key,
        .webhook = *p->webhook_url ? p->webhook_url : NULL,
        .webhook_secret = p->webhook_secret,
        .clock = p->clock,
    };
    p->sandbox_fd = -1;
    return sandbox_start(&config, &p->sandbox, err);
}

void payments_stop(struct payments *p)
{
    sandbox_stop(p->sandbox);
    checkout_free(p->checkout);
}

const char *payments_text(const struct payments *p)
{
    const char *provider = checkout_settings(p->checkout)->provider;
    return provider ? provider : "off";
}
