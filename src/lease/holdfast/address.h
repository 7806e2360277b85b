/* The addresses of a cell, and the URLs that name one:
 *
 *   holdfast[s]://[KEY@]host[:port][,host[:port]...][?name=value&...]
 *
 * holdfasts means TLS.  KEY is the access key; without one the environment's HOLDFAST_KEY is used,
 * as the other commands do.  Parameters: ttl (one session with this TTL for all locks), cache
 * (shared: shared locks are cached), cacert, cert and key (files in PEM, for holdfasts).  In KEY
 * and values %XX stands for a byte.  No state; any thread. */
#ifndef HF_LEASE_HOLDFAST_ADDRESS_H
#define HF_LEASE_HOLDFAST_ADDRESS_H

#include "net/url.h"

struct holdfast_address {
    size_t n_servers;             /* at least one */
    char *servers[URL_HOSTS_MAX]; /* "http://host:port" or "https://host:port" */
    char *access_key;             /* NULL: none */
    int64_t ttl_ms;               /* 0: as each lock asks */
    bool cache;
    char *ca_file, *cert_file, *key_file; /* may be NULL */
};

/* HF_BAD_REQUEST: the fault names the part of the URL that is wrong, but does not repeat it, since
 * it may contain a key. */
HF_MUST_USE enum hf_result holdfast_address_parse(const char *url, struct holdfast_address *ret,
                                                  struct hf_fault *fault);
/* Overwrites the key before it frees it.  Accepts a zeroed address. */
void holdfast_address_close(struct holdfast_address *a);

#endif
