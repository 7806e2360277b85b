/* See address.h. */
#include "etcd/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "net/url_parts.h"

#define PORT_DEFAULT 2379

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return fault_set(fault, HF_BAD_REQUEST, "the etcd URL: %s", what);
}

static enum hf_result parse_login(const char *text, size_t len, struct etcd_address *a,
                                  struct hf_fault *fault)
{
    const char *colon = memchr(text, ':', len);
    if (!colon)
        return bad(fault, "before @ comes user:password");
    size_t user_len = (size_t)(colon - text);
    a->user = url_decoded(text, user_len);
    a->password = url_decoded(colon + 1, len - user_len - 1);
    if (!a->user || !a->password)
        return bad(fault, "a % in user or password is not followed by two hex digits");
    if (!*a->user || !*a->password)
        return bad(fault, "the user or the password is empty");
    return HF_DONE;
}

static enum hf_result parse_endpoint(const char *text, size_t len, bool is_tls,
                                     struct etcd_address *a, struct hf_fault *fault)
{
    char *origin;
    const char *wrong = url_origin(text, len, PORT_DEFAULT, is_tls, &origin);
    if (wrong)
        return bad(fault, wrong);
    if (a->n_endpoints == ETCD_ENDPOINTS_MAX) {
        free(origin);
        return bad(fault, "there are more than 16 hosts");
    }
    a->endpoints[a->n_endpoints++] = origin;
    return HF_DONE;
}

static enum hf_result parse_parameter(const char *text, size_t len, bool is_tls,
                                      struct etcd_address *a, struct hf_fault *fault)
{
    const struct {
        const char *name;
        char **value;
        bool for_tls;
    } known[] = {{"cacert", &a->ca_file, true},
                 {"cert", &a->cert_file, true},
                 {"key", &a->key_file, true},
                 {"prefix", &a->prefix, false}};
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (name_len != strlen(known[i].name) || memcmp(text, known[i].name, name_len) != 0)
            continue;
        if (known[i].for_tls && !is_tls)
            return bad(fault, "cacert, cert and key are for etcds://");
        if (*known[i].value)
            return bad(fault, "a parameter is given twice");
        *known[i].value = url_decoded(equals + 1, len - name_len - 1);
        if (!*known[i].value || !**known[i].value)
            return bad(fault, "a parameter is empty, or has a % without two hex digits");
        return HF_DONE;
    }
    return bad(fault, "the parameters are cacert=FILE, cert=FILE, key=FILE and prefix=TEXT");
}

/* Cuts `text` at every `separator` and hands the parts on. */
static enum hf_result parse_each(const char *text, const char *end, char separator, bool is_tls,
                                 enum hf_result (*parse)(const char *, size_t, bool,
                                                         struct etcd_address *, struct hf_fault *),
                                 struct etcd_address *a, struct hf_fault *fault)
{
    for (;;) {
        const char *next = memchr(text, separator, (size_t)(end - text));
        enum hf_result result = parse(text, (size_t)((next ? next : end) - text), is_tls, a, fault);
        if (result != HF_DONE || !next)
            return result;
        text = next + 1;
    }
}

static enum hf_result parse(const char *rest, bool is_tls, const char *prefix,
                            struct etcd_address *a, struct hf_fault *fault)
{
    const char *query = strchrnul(rest, '?'), *end = rest + strlen(rest);
    const char *at = memrchr(rest, '@', (size_t)(query - rest));
    enum hf_result result = HF_DONE;
    if (at) {
        result = parse_login(rest, (size_t)(at - rest), a, fault);
        rest = at + 1;
    }
    if (result == HF_DONE)
        result = parse_each(rest, query, ',', is_tls, parse_endpoint, a, fault);
    if (result == HF_DONE && *query)
        result = parse_each(query + 1, end, '&', is_tls, parse_parameter, a, fault);
    if (result != HF_DONE)
        return result;
    if (!a->cert_file != !a->key_file)
        return bad(fault, "cert and key go together");
    if (!a->prefix)
        a->prefix = hf_strndup(prefix, strlen(prefix));
    if (strlen(a->prefix) > ETCD_PREFIX_MAX)
        return bad(fault, "the prefix has more than 128 bytes");
    return HF_DONE;
}

enum hf_result etcd_address_parse(const char *url, const char *prefix, struct etcd_address *ret,
                                  struct hf_fault *fault)
{
    struct etcd_address a = {0};
    enum hf_result result;
    if (strncmp(url, "etcd://", 7) == 0)
        result = parse(url + 7, false, prefix, &a, fault);
    else if (strncmp(url, "etcds://", 8) == 0)
        result = parse(url + 8, true, prefix, &a, fault);
    else
        result = bad(fault, "it begins with neither etcd:// nor etcds://");
    if (result == HF_DONE)
        *ret = a;
    else
        etcd_address_close(&a);
    return result;
}

void etcd_address_close(struct etcd_address *a)
{
    if (a->password)
        explicit_bzero(a->password, strlen(a->password));
    for (size_t i = 0; i < a->n_endpoints; i++)
        free(a->endpoints[i]);
    free(a->user);
    free(a->password);
    free(a->ca_file);
    free(a->cert_file);
    free(a->key_file);
    free(a->prefix);
    *a = (struct etcd_address){0};
}
