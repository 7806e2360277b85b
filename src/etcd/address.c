/* See address.h. */
#include "etcd/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const struct url_form form = {
    .kind = "the etcd URL", .scheme = "etcd", .tls_scheme = "etcds", .port = 2379};

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return url_bad(&form, what, fault);
}

static enum hf_result parse(const struct url *u, struct etcd_address *a, struct hf_fault *fault)
{
    const struct url_parameter known[] = {{"prefix", &a->prefix, true},
                                          {"cacert", &a->ca_file, u->is_tls},
                                          {"cert", &a->cert_file, u->is_tls},
                                          {"key", &a->key_file, u->is_tls}};
    enum hf_result result = url_login(u, &a->user, &a->password, fault);
    if (result != HF_DONE)
        return result;
    if (u->login.text && !a->password)
        return bad(fault, "before @ comes user:password");
    if (u->login.text && (!a->user || !*a->password))
        return bad(fault, "the user or the password is empty");
    struct url_host hosts[URL_HOSTS_MAX];
    if ((result = url_hosts(u, hosts, &a->n_endpoints, fault)) != HF_DONE)
        return result;
    for (size_t i = 0; i < a->n_endpoints; i++)
        a->endpoints[i] = url_origin(&hosts[i], u->is_tls);
    return url_parameters(u, known, sizeof known / sizeof *known,
                          "the parameters are prefix=TEXT; cacert=FILE, cert=FILE and key=FILE are "
                          "for etcds://",
                          fault);
}

enum hf_result etcd_address_parse(const char *url, const char *prefix, struct etcd_address *ret,
                                  struct hf_fault *fault)
{
    struct etcd_address a = {0};
    struct url u;
    enum hf_result result = url_split(url, &form, &u, fault);
    if (result == HF_DONE)
        result = parse(&u, &a, fault);
    if (result == HF_DONE && !a.prefix)
        a.prefix = hf_strndup(prefix, strlen(prefix));
    if (result == HF_DONE && strlen(a.prefix) > ETCD_PREFIX_MAX)
        result = bad(fault, "the prefix has more than 128 bytes");
    if (result == HF_DONE)
        *ret = a;
    else
        etcd_address_close(&a);
    return result;
}

void etcd_address_close(struct etcd_address *a)
{
    for (size_t i = 0; i < a->n_endpoints; i++)
        free(a->endpoints[i]);
    free(a->user);
    url_free_secret(a->password);
    free(a->ca_file);
    free(a->cert_file);
    free(a->key_file);
    free(a->prefix);
    *a = (struct etcd_address){0};
}
