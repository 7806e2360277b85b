/* The server, for the parts of the transport.  Constant from server_start on, but for the atomics.
 */
#ifndef HF_HTTP_SERVER_INTERNAL_H
#define HF_HTTP_SERVER_INTERNAL_H

#include "http/bodies.h"
#include "http/guesses.h"
#include "http/loop.h"
#include "http/traffic.h"

struct server {
    struct server_config config;
    struct loop *loops;
    unsigned n_loops;
    struct listener listeners[LISTENERS_MAX];
    size_t connections_max;
    struct quotas *quotas;
    struct guesses guesses;

    atomic_bool leaving;   /* see server_leave */
    atomic_bool closing;   /* the listening sockets are to be closed */
    atomic_bool draining;  /* new requests are answered with 503, and streams end */
    atomic_bool listening; /* the listening sockets are open */
    atomic_bool stopping;
    atomic_size_t n_connections; /* that have been accepted */
    atomic_size_t n_fresh;       /* of them, those that have not asked for anything yet */
    atomic_size_t n_places;      /* and those that have a place; see admission.h */
    atomic_size_t n_guests;      /* and those that are guests */
    atomic_size_t n_streams;
    atomic_size_t n_blocked;     /* answers that their clients do not take */
    struct unsent_budget unsent; /* what those may cost */
    struct bodies bodies;        /* that several of those share */
    atomic_size_t block_bytes;   /* see block.h */
    atomic_size_t body_bytes;    /* of bodies that are not counted with their block */
    _Atomic int large;           /* requests that may take much memory */

    struct traffic traffic;
};

/* A server without threads, whose loops the caller runs: for server_start and for tests. */
struct server *server_new(const struct server_config *config, struct hf_err *err);
/* Its threads have ended, or it never had any. */
void server_free(struct server *s);

#endif
