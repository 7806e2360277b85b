/* The settings of the payment provider, and what is known about it without asking: see stripe.h. */
#include <string.h>
#include <strings.h>

#include "base/backoff.h"
#include "checkout/stripe.h"

/* ---- keys ---- */

enum mode { MODE_NONE, MODE_TEST, MODE_LIVE };

/* The mode of a key: "sk_test_..." has the kind "sk".  MODE_NONE: the text is no such key. */
static enum mode mode_of(const char *key, const char *kind)
{
    size_t kind_len = strlen(kind);
    if (!key || strlen(key) > STRIPE_KEY_LEN_MAX || strncmp(key, kind, kind_len) != 0)
        return MODE_NONE;
    const char *rest = key + kind_len;
    enum mode mode = strncmp(rest, "_test_", 6) == 0   ? MODE_TEST
                     : strncmp(rest, "_live_", 6) == 0 ? MODE_LIVE
                                                       : MODE_NONE;
    if (mode == MODE_NONE || !rest[6] ||
        rest[6 + strspn(rest + 6, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_")])
        return MODE_NONE;
    return mode;
}

static enum mode mode_of_secret(const char *key)
{
    enum mode mode = mode_of(key, "sk");
    return mode != MODE_NONE ? mode : mode_of(key, "rk");
}

bool stripe_is_live(const struct stripe_config *config)
{
    return mode_of_secret(config->secret_key) == MODE_LIVE;
}

static bool refuse(struct hf_err *err, const char *why)
{
    (void)hf_err_set(err, HF_INVALID_REQUEST, "%s", why);
    return false;
}

bool stripe_check_config(const struct stripe_config *config, struct hf_err *err)
{
    const char *api = config->api ? config->api : STRIPE_API;
    enum mode mode = mode_of_secret(config->secret_key);
    enum mode publishable_mode = mode_of(config->publishable_key, "pk");
    struct http_origin origin;
    if (mode == MODE_NONE)
        return refuse(err, "Stripe's secret key must begin with sk_test_, sk_live_, rk_test_ or "
                           "rk_live_, followed by letters and digits");
    if (publishable_mode == MODE_NONE)
        return refuse(err, "Stripe's publishable key must begin with pk_test_ or pk_live_, "
                           "followed by letters and digits");
    if (mode != publishable_mode)
        return refuse(err, "one of Stripe's two keys is for test mode and the other is live; use "
                           "two keys of one mode");
    if (!http_origin_parse(api, &origin) || !origin.is_bare)
        return refuse(err, "the URL of Stripe's API must be https://HOST or https://HOST:PORT, "
                           "without a path or a final slash");
    if (mode == MODE_LIVE && strcmp(api, STRIPE_API) != 0)
        return refuse(err, "live keys are only sent to " STRIPE_API
                           "; use test keys with any other server");
    if (!origin.is_tls && !origin.is_loopback)
        return refuse(err, "keys are sent without TLS only to this machine; use an https:// URL "
                           "for the payment provider");
    return true;
}

/* ---- amounts ---- */

int64_t stripe_minimum(const char *currency)
{
    static const struct {
        char currency[4];
        int64_t amount;
    } minimums[] = {
        {"aed", 200},  {"aud", 50},  {"bgn", 100},  {"brl", 50},  {"cad", 50},   {"chf", 50},
        {"czk", 1500}, {"dkk", 250}, {"eur", 50},   {"gbp", 30},  {"hkd", 400},  {"huf", 17500},
        {"inr", 50},   {"jpy", 50},  {"mxn", 1000}, {"myr", 200}, {"nok", 300},  {"nzd", 50},
        {"pln", 200},  {"ron", 200}, {"sek", 300},  {"sgd", 50},  {"thb", 1000}, {"usd", 50},
    };
    for (size_t i = 0; i < sizeof minimums / sizeof *minimums; i++)
        if (strcasecmp(currency, minimums[i].currency) == 0)
            return minimums[i].amount;
    return 0;
}

/* ---- waiting ---- */

#define BACKOFF_MIN_MS 500
/* A booking is decided within 30 s of its hold's end once the provider answers.  The last failure
 * may have to be waited for twice: its answer is replayed before the job gets a new key. */
#define BACKOFF_MAX_MS 12000

int64_t stripe_backoff_ms(uint32_t attempts, int64_t retry_after_ms, struct random *random)
{
    int64_t limit_ms = backoff_pause(BACKOFF_MIN_MS, BACKOFF_MAX_MS, attempts ? attempts : 1);
    int64_t delay_ms =
        BACKOFF_MIN_MS + (int64_t)random_below(random, (uint64_t)(limit_ms - BACKOFF_MIN_MS + 1));
    return delay_ms > retry_after_ms ? delay_ms : retry_after_ms;
}
