/* Access control.  A bearer key gives a scope; a route names, per method, the lowest scope that may
 * use it (route.h).  All HTTP threads share the keys, which the main thread may replace at any
 * time; whether there are any is decided at start.
 *
 *   no keys are configured     every caller is an admin, and only loopback is served: the demo
 *   no key is presented        public, and a buyer unless --public-holds is off
 *   a configured key           its scope
 *   anything else              401, on public routes too, so that a wrong key is noticed; many of
 *                              them from one address are slowed down: guesses.h
 *
 * Only digests of keys are kept, and logs show nothing but the name of a key and its scope. */
#ifndef HF_HTTP_ACCESS_H
#define HF_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/lock.h"
#include "base/status.h"
#include "http/address.h"
#include "http/listen.h"
#include "http/problem.h"
#include "http/quota.h"

#define ACCESS_KEYS_MAX 32
#define ACCESS_WHERE_SIZE 160
#define ACCESS_NAME_SIZE 33

/* Each scope may do whatever those before it may. */
enum scope {
    SCOPE_UNSET,
    SCOPE_PUBLIC, /* reads, and acts on things whose secret ids the caller knows */
    SCOPE_BUYER,  /* also creates such things; callers without a key may be denied this */
    SCOPE_SELLER,
    SCOPE_ADMIN,
};

struct access_key {
    enum scope scope;
    char name[ACCESS_NAME_SIZE]; /* for the operator; several keys may have the same */
    uint8_t digest[DIGEST_SIZE]; /* SHA-256 */
};

/* Zeroed, it is open to everybody. */
struct access {
    struct lock lock; /* of keys and n_keys */
    struct access_key keys[ACCESS_KEYS_MAX];
    size_t n_keys;
    char short_key[ACCESS_WHERE_SIZE]; /* where a key is that can be guessed; empty: nowhere */
    bool is_exposed;                   /* other machines reach the server; see access_may_listen */
    bool has_keys;         /* false: everything is open.  Constant once threads have started */
    bool no_public_buyers; /* a caller without a key has SCOPE_PUBLIC, else SCOPE_BUYER */
    bool counts_clients;   /* callers without a key are told apart by address; see access_client */
    struct networks trusted; /* proxies whose X-Forwarded-For is believed */
};

/* The sender of one request. */
struct caller {
    enum scope scope;
    bool has_key;                    /* its key was among those configured when the request came */
    bool refused;                    /* presented something that is not a configured key */
    uint8_t digest[DIGEST_SIZE];     /* of its key */
    char key_name[ACCESS_NAME_SIZE]; /* empty: it has no key */
};

/* Adds a key as the operator gave it, named after its scope.  `where` names its source in messages,
 * which never show the key itself. */
HF_MUST_USE bool access_add_key(struct access *a, enum scope scope, const char *key, size_t len,
                                const char *where, struct hf_err *err);
/* Adds the keys of a file, one per line: either a key alone, which is named after its scope, or a
 * name of up to 32 letters, digits, dots, underscores and hyphens, a space and a key of at least 16
 * characters.  Blank lines and lines beginning with # are skipped.  Refuses a file that other users
 * may read (private_file.h), and one without a key. */
HF_MUST_USE bool access_add_file(struct access *a, enum scope scope, const char *path,
                                 struct hf_err *err);

/* Replaces the keys by those of `from`, while HTTP threads may use them: each request is judged
 * either by the old keys or by the new.  Refuses to open a server that has keys, and to close one
 * that was started open, since limits of callers without a key are decided at start; and keys that
 * can be guessed where other machines reach the server. */
HF_MUST_USE bool access_replace_keys(struct access *a, const struct access *from,
                                     struct hf_err *err);

/* Outside loopback there must be an admin key, and every key must have at least 16 characters.
 * Asked for every address the program listens on, before any thread starts. */
HF_MUST_USE bool access_may_listen(struct access *a, const struct listen_address *at,
                                   struct hf_err *err);

/* Identifies the caller of a request.  `authorization` is the header's value, or NULL if there is
 * none; `n_headers` is how many there are.  Every configured key is compared, each in constant
 * time. */
struct caller access_identify(struct access *a, const char *authorization, size_t len,
                              unsigned n_headers);
/* NULL if the caller has the scope, else &problem_unauthorized or &problem_forbidden. */
const struct problem *access_judge(const struct caller *caller, enum scope needed);

/* "open", "public", "seller", "admin". */
const char *access_scope_name(const struct access *a, const struct caller *caller);

struct request;
/* Sets r->caller, before the body is read.  Returns false if the route needs a higher scope;
 * r->step is then the refusal. */
bool access_check(struct request *r);
/* For what only some requests of a route need: returns false if the caller's scope is lower, and
 * has answered then with 401 or 403 and `detail`. */
bool access_require(struct request *r, enum scope needed, const char *detail);
/* The address of the client, behind trusted proxies if there are any.  Returns false if its family
 * is not known. */
bool access_address(const struct request *r, struct address *ret);
/* Has the caller no key, on a server that has some?  Limits per address are for strangers. */
bool access_is_stranger(const struct request *r);
/* Has the caller a key of this scope, or of a higher one?  A server without keys gives everybody
 * every scope, and nobody a key. */
bool access_has_key(const struct request *r, enum scope scope);
/* Spends one of what a stranger's address may do in a minute (quota.h).  Returns false if it came
 * too soon; *ret_wait_us says when the next may come.  Always true for other callers. */
bool access_spend(const struct request *r, enum quota_rate rate, int64_t *ret_wait_us);
void access_unspend(const struct request *r, enum quota_rate rate); /* nothing came of it */
/* A hash of the caller's address, for limits per client; 0 if callers are not counted, or this one
 * has a key. */
uint64_t access_client(const struct request *r);

#endif
