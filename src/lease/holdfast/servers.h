/* The servers of a cell as its client knows them: those that the URL names, then those that the
 * cell announces (GET /v1/cell).  A server is a number, which never changes.
 *
 * src/etcd and src/redis have a failover of their own.  All three would share the step to the next
 * of a list and nothing else: here the list grows, and responses say where to go; etcd's endpoints
 * stay, and its clients follow one another; Redis's sentinels name the one server to ask.
 *
 * A client that uses TLS goes nowhere without it: servers of another scheme than the first one are
 * not added.  No lock and no I/O; the service's mutex guards it. */
#ifndef HF_LEASE_HOLDFAST_SERVERS_H
#define HF_LEASE_HOLDFAST_SERVERS_H

#include <jansson.h>

#include "net/http_client.h"

#define SERVERS_MAX 32
#define SERVERS_HOPS_MAX 3 /* redirections in a row */

struct server_list {
    char origins[SERVERS_MAX][HTTP_ORIGIN_SIZE];
    size_t n, n_configured; /* the configured ones come first */
    size_t at;              /* where requests go: the one that answered last, or the next one */
    int64_t learned_us;     /* when the cell last named its servers, by boot time */
};

/* Adds a server, unless it is known. */
void servers_add(struct server_list *s, const char *url, bool is_configured);
/* Adds the servers that an answer of GET /v1/cell names. */
void servers_learn(struct server_list *s, const json_t *cell, int64_t now_us);
/* The number of the server of this origin; s->n: it is not known. */
size_t servers_find(const struct server_list *s, const char *origin);
/* The number of the server that a redirection leads to; s->n: the response is no redirection, or
 * leads to a server that is not known. */
size_t servers_redirected(const struct server_list *s, const struct http_response *response);
/* The configured server that is asked after this one did not answer. */
size_t servers_after(const struct server_list *s, size_t at);

#endif
