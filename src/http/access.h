/* Who may do what.  Bearer keys give a scope; a route names, per method, the lowest scope that may
 * use it (routes.h).  Read once at start, constant from then on, shared by all HTTP threads.
 *
 *   no keys configured     everybody is an admin, and only loopback is served: the demo
 *   no key presented       public, and a buyer unless --public-holds is off
 *   a key of ours          its scope
 *   anything else          401, on public routes too: a client with a wrong key should hear of it
 *
 * Only digests of keys are kept.  Nothing here is logged but the scope's name. */
#ifndef HF_HTTP_ACCESS_H
#define HF_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/status.h"
#include "http/address.h"
#include "http/listen.h"

#define ACCESS_KEYS_MAX 32

/* Each may do all that those before it may. */
enum scope {
    SCOPE_UNSET,
    SCOPE_PUBLIC, /* look, and act on a hold or booking whose id one knows */
    SCOPE_BUYER,  /* and make holds: everybody, unless --public-holds is off */
    SCOPE_SELLER,
    SCOPE_ADMIN,
};

struct access_key {
    enum scope scope;
    uint8_t digest[DIGEST_SIZE]; /* SHA-256 */
};

struct access {
    struct access_key keys[ACCESS_KEYS_MAX];
    size_t n_keys; /* 0: everything is open */
    bool no_public_holds;
    uint32_t public_places_max; /* for engine_config; 0: callers without a key need no counting */
    struct networks trusted;    /* proxies whose X-Forwarded-For counts */
};

/* Of one request. */
struct caller {
    enum scope scope;
    const struct access_key *key; /* NULL: none */
    bool refused;                 /* presented something that is no key of ours */
};

/* A key as an operator gave it; `where` names its source in messages, which never show the key. */
HF_MUST_USE bool access_add_key(struct access *a, enum scope scope, const char *key, size_t len,
                                const char *where, struct hf_err *err);
/* A key a line; blank lines and those beginning with # are skipped.  Refuses a file that others may
 * read, and one without a key. */
HF_MUST_USE bool access_add_file(struct access *a, enum scope scope, const char *path,
                                 struct hf_err *err);

/* Off loopback there must be an admin key.  For every address the program listens on. */
HF_MUST_USE bool access_may_listen(const struct access *a, const struct listen_address *at,
                                   struct hf_err *err);

/* `authorization`: the header's value, NULL where there was none; `n_headers`: how many there were.
 * Every configured key is compared, in constant time, whichever fits. */
struct caller access_identify(const struct access *a, const char *authorization, size_t len,
                              unsigned n_headers);
/* HF_OK, HF_UNAUTHORIZED or HF_FORBIDDEN. */
enum hf_status access_judge(const struct caller *caller, enum scope needed);

/* "open", "public", "seller", "admin". */
const char *access_scope_name(const struct access *a, const struct caller *caller);

struct request;
/* Before the body is read: sets r->caller, and where the route needs more, r->step to the refusal.
 * True: may go on. */
bool access_check(struct request *r);
/* For command.client: 0 where no limit applies. */
uint64_t access_client(const struct request *r);

#endif
