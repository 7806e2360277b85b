/* The address of a Redis server, and the URLs that name one:
 *
 *   redis://[[user]:password@]host[:port][/db]
 *   rediss://...                                   the same over TLS
 *   redis+unix://[[user]:password@]/path           or redis+unix:PATH; unix: means the same
 *   redis+sentinel://[[user]:password@]host[:port][,host...]/NAME
 *   rediss+sentinel://...                          the same over TLS
 *
 * After ? come parameters, joined by &:
 *   db=N                                           the number of the database
 *   cacert=FILE, cert=FILE, key=FILE               TLS: whom to trust, and who we are
 *   sentinel_user=USER, sentinel_password=SECRET   what the sentinels want to know
 *   min_replicas=N, replicas_timeout=MS            see struct redis_address
 * In user, password, NAME and parameters %XX stands for a byte.  No state; any thread. */
#ifndef HF_REDIS_ADDRESS_H
#define HF_REDIS_ADDRESS_H

#include "net/url.h"

#define REDIS_REPLICAS_TIMEOUT_MS 500

struct redis_node {
    char *host;
    int port;
};

struct redis_address {
    char *host, *path;     /* exactly one of them is not NULL, unless there are sentinels */
    char *user, *password; /* may be NULL */
    int port, db;
    bool tls;
    char *cacert, *cert, *key; /* files for TLS; may be NULL */
    /* If there are sentinels, they know the address of the primary that is called `primary`. */
    struct redis_node sentinels[URL_HOSTS_MAX];
    size_t n_sentinels;
    char *primary, *sentinel_user, *sentinel_password;
    /* A grant counts once this many replicas have it; 0: at once. */
    int min_replicas;
    int64_t replicas_timeout_ms;
};

/* HF_BAD_REQUEST: the fault names the part of the URL that is wrong, but does not repeat it, since
 * it may contain a password. */
HF_MUST_USE enum hf_result redis_address_parse(const char *url, struct redis_address *ret,
                                               struct hf_fault *fault);
/* Parts of an address, for drivers whose URLs name several servers.  Returns false if the text is
 * no number of a database. */
bool redis_address_set_db(struct redis_address *a, const char *text, size_t len);
HF_MUST_USE enum hf_result redis_address_set_login(struct redis_address *a, const struct url *u,
                                                   struct hf_fault *fault);
void redis_address_copy(const struct redis_address *from, struct redis_address *ret);
/* Overwrites passwords before it frees them.  Accepts a zeroed address. */
void redis_address_close(struct redis_address *a);

#endif
