/* The addresses of an etcd cluster, and the URLs that name one:
 *
 *   etcd[s]://[user:password@]host[:port][,host[:port]...][?name=value&...]
 *
 * etcds means TLS.  The parameters are cacert, cert and key (files in PEM, for etcds) and prefix
 * (what all of our keys begin with).  In user, password and values %XX stands for a byte.  No
 * state; any thread. */
#ifndef HF_ETCD_ADDRESS_H
#define HF_ETCD_ADDRESS_H

#include "net/url.h"

#define ETCD_PREFIX_MAX 128

struct etcd_address {
    size_t n_endpoints;                   /* at least one */
    char *endpoints[URL_HOSTS_MAX];       /* "http://host:port" or "https://host:port" */
    char *user, *password;                /* both or none */
    char *ca_file, *cert_file, *key_file; /* may be NULL */
    char *prefix;                         /* at most ETCD_PREFIX_MAX bytes */
};

/* A URL without a prefix has the `prefix` that is given.  HF_BAD_REQUEST: the fault names the part
 * of the URL that is wrong, but does not repeat it, since it may contain a password. */
HF_MUST_USE enum hf_result etcd_address_parse(const char *url, const char *prefix,
                                              struct etcd_address *ret, struct hf_fault *fault);
/* Overwrites the password before it frees it.  Accepts a zeroed address. */
void etcd_address_close(struct etcd_address *a);

#endif
