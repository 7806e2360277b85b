/* See address.h. */
#include "lease/holdfast/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/status.h"

#define KEY_LEN_MAX 255
#define TTL_MIN_MS 1000
#define TTL_MAX_MS 86400000

static const struct url_form form = {
    .kind = "the holdfast URL", .scheme = "holdfast", .tls_scheme = "holdfasts", .port = 8080};

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return url_bad(&form, what, fault);
}

static bool is_access_key(const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] >= 0x7f)
            return false;
    return len >= 1 && len <= KEY_LEN_MAX;
}

static enum hf_result parse_parameters(const struct url *u, struct holdfast_address *a,
                                       struct hf_fault *fault)
{
    char *ttl = NULL, *cache = NULL;
    const struct url_parameter known[] = {{"ttl", &ttl, true},
                                          {"cache", &cache, true},
                                          {"cacert", &a->ca_file, u->is_tls},
                                          {"cert", &a->cert_file, u->is_tls},
                                          {"key", &a->key_file, u->is_tls}};
    enum hf_result result =
        url_parameters(u, known, sizeof known / sizeof *known,
                       "the parameters are ttl=DURATION and cache=shared; cacert=FILE, cert=FILE "
                       "and key=FILE are for holdfasts://; the access key stands before @, or "
                       "better in HOLDFAST_KEY",
                       fault);
    a->ttl_ms = ttl ? duration_parse_ms(ttl) : 0;
    a->cache = cache && strcmp(cache, "shared") == 0;
    if (result == HF_DONE && ttl && (a->ttl_ms < TTL_MIN_MS || a->ttl_ms > TTL_MAX_MS))
        result = bad(fault, "ttl is a duration from 1s to 1d");
    if (result == HF_DONE && cache && !a->cache && strcmp(cache, "off") != 0)
        result = bad(fault, "cache is shared or off");
    free(ttl);
    free(cache);
    return result;
}

/* The access key is that of the URL, or else that of the environment. */
static enum hf_result find_key(const struct url *u, struct holdfast_address *a,
                               struct hf_fault *fault)
{
    const char *given = getenv("HOLDFAST_KEY");
    if (u->login.text)
        a->access_key = url_decoded(u->login);
    else if (given && *given)
        a->access_key = hf_strndup(given, strlen(given));
    else
        return HF_DONE;
    if (!a->access_key || !is_access_key(a->access_key))
        return bad(fault, "an access key has 1 to 255 printable ASCII characters; in a URL %XX "
                          "stands for a byte");
    return HF_DONE;
}

enum hf_result holdfast_address_parse(const char *url, struct holdfast_address *ret,
                                      struct hf_fault *fault)
{
    struct holdfast_address a = {0};
    struct url_host hosts[URL_HOSTS_MAX];
    struct url u;
    enum hf_result result = url_split(url, &form, &u, fault);
    if (result != HF_DONE)
        return result;
    if ((result = find_key(&u, &a, fault)) == HF_DONE &&
        (result = url_hosts(&u, hosts, &a.n_servers, fault)) == HF_DONE) {
        for (size_t i = 0; i < a.n_servers; i++)
            a.servers[i] = url_origin(&hosts[i], u.is_tls);
        result = parse_parameters(&u, &a, fault);
    }
    if (result == HF_DONE)
        *ret = a;
    else
        holdfast_address_close(&a);
    return result;
}

void holdfast_address_close(struct holdfast_address *a)
{
    for (size_t i = 0; i < a->n_servers; i++)
        free(a->servers[i]);
    url_free_secret(a->access_key);
    free(a->ca_file);
    free(a->cert_file);
    free(a->key_file);
    *a = (struct holdfast_address){0};
}
