/* See address.h. */
#include "lease/holdfast/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/status.h"
#include "net/url_parts.h"

#define PORT_DEFAULT 8080
#define KEY_LEN_MAX 255
#define TTL_MIN_MS 1000
#define TTL_MAX_MS 86400000

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return fault_set(fault, HF_BAD_REQUEST, "the holdfast URL: %s", what);
}

static bool is_access_key(const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] >= 0x7f)
            return false;
    return len >= 1 && len <= KEY_LEN_MAX;
}

static enum hf_result parse_server(const char *text, size_t len, bool is_tls,
                                   struct holdfast_address *a, struct hf_fault *fault)
{
    char *origin;
    const char *wrong = url_origin(text, len, PORT_DEFAULT, is_tls, &origin);
    if (wrong)
        return bad(fault, wrong);
    if (a->n_servers == HOLDFAST_SERVERS_MAX) {
        free(origin);
        return bad(fault, "there are more than 16 hosts");
    }
    a->servers[a->n_servers++] = origin;
    return HF_DONE;
}

static enum hf_result use_parameter(const char *name, char *value, struct holdfast_address *a,
                                    struct hf_fault *fault)
{
    if (strcmp(name, "ttl") == 0) {
        a->ttl_ms = duration_parse_ms(value);
        if (a->ttl_ms < TTL_MIN_MS || a->ttl_ms > TTL_MAX_MS)
            return bad(fault, "ttl is a duration from 1s to 1d");
        return HF_DONE;
    }
    a->cache = strcmp(value, "shared") == 0;
    if (!a->cache && strcmp(value, "off") != 0)
        return bad(fault, "cache is shared or off");
    return HF_DONE;
}

static enum hf_result parse_parameter(const char *text, size_t len, bool is_tls,
                                      struct holdfast_address *a, struct hf_fault *fault)
{
    char *ttl = NULL, *cache = NULL;
    const struct {
        const char *name;
        char **value;
        bool for_tls;
    } known[] = {{"ttl", &ttl, false},
                 {"cache", &cache, false},
                 {"cacert", &a->ca_file, true},
                 {"cert", &a->cert_file, true},
                 {"key", &a->key_file, true}};
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (name_len != strlen(known[i].name) || memcmp(text, known[i].name, name_len) != 0)
            continue;
        if (known[i].for_tls && !is_tls)
            return bad(fault, "cacert, cert and key are for holdfasts://; the access key stands "
                              "before @, or better in HOLDFAST_KEY");
        if (*known[i].value)
            return bad(fault, "a parameter is given twice");
        char *value = url_decoded(equals + 1, len - name_len - 1);
        if (!value || !*value) {
            free(value);
            return bad(fault, "a parameter is empty, or has a % without two hex digits");
        }
        if (known[i].for_tls) {
            *known[i].value = value;
            return HF_DONE;
        }
        enum hf_result result = use_parameter(known[i].name, value, a, fault);
        free(value);
        return result;
    }
    return bad(fault, "the parameters are ttl=DURATION, cache=shared, cacert=FILE, cert=FILE and "
                      "key=FILE");
}

/* Cuts `text` at every `separator` and hands the parts on. */
static enum hf_result parse_each(const char *text, const char *end, char separator, bool is_tls,
                                 enum hf_result (*parse)(const char *, size_t, bool,
                                                         struct holdfast_address *,
                                                         struct hf_fault *),
                                 struct holdfast_address *a, struct hf_fault *fault)
{
    for (;;) {
        const char *next = memchr(text, separator, (size_t)(end - text));
        enum hf_result result = parse(text, (size_t)((next ? next : end) - text), is_tls, a, fault);
        if (result != HF_DONE || !next)
            return result;
        text = next + 1;
    }
}

/* The access key is that of the URL, or else that of the environment. */
static enum hf_result find_key(const char *text, size_t len, struct holdfast_address *a,
                               struct hf_fault *fault)
{
    const char *given = getenv("HOLDFAST_KEY");
    if (text)
        a->access_key = url_decoded(text, len);
    else if (given && *given)
        a->access_key = hf_strndup(given, strlen(given));
    else
        return HF_DONE;
    if (!a->access_key || !is_access_key(a->access_key))
        return bad(fault, "an access key has 1 to 255 printable ASCII characters; in a URL %XX "
                          "stands for a byte");
    return HF_DONE;
}

static enum hf_result parse(const char *rest, bool is_tls, struct holdfast_address *a,
                            struct hf_fault *fault)
{
    const char *query = strchrnul(rest, '?'), *end = rest + strlen(rest);
    const char *at = memrchr(rest, '@', (size_t)(query - rest));
    enum hf_result result = find_key(at ? rest : NULL, at ? (size_t)(at - rest) : 0, a, fault);
    if (at)
        rest = at + 1;
    if (result == HF_DONE)
        result = parse_each(rest, query, ',', is_tls, parse_server, a, fault);
    if (result == HF_DONE && *query)
        result = parse_each(query + 1, end, '&', is_tls, parse_parameter, a, fault);
    if (result == HF_DONE && !a->cert_file != !a->key_file)
        return bad(fault, "cert and key go together");
    return result;
}

enum hf_result holdfast_address_parse(const char *url, struct holdfast_address *ret,
                                      struct hf_fault *fault)
{
    struct holdfast_address a = {0};
    enum hf_result result;
    if (strncmp(url, "holdfast://", 11) == 0)
        result = parse(url + 11, false, &a, fault);
    else if (strncmp(url, "holdfasts://", 12) == 0)
        result = parse(url + 12, true, &a, fault);
    else
        result = bad(fault, "it begins with neither holdfast:// nor holdfasts://");
    if (result == HF_DONE)
        *ret = a;
    else
        holdfast_address_close(&a);
    return result;
}

void holdfast_address_close(struct holdfast_address *a)
{
    if (a->access_key)
        explicit_bzero(a->access_key, strlen(a->access_key));
    for (size_t i = 0; i < a->n_servers; i++)
        free(a->servers[i]);
    free(a->access_key);
    free(a->ca_file);
    free(a->cert_file);
    free(a->key_file);
    *a = (struct holdfast_address){0};
}
