/* Calls to an etcd cluster over its JSON gateway (/v3/...), with failover and authentication.
 *
 * A call goes to the endpoint that answered last.  An endpoint that cannot be reached, or that has
 * no leader, is left for the next one, and the other clients of the open follow.  A write that may
 * have been carried out is not repeated (HF_UNKNOWN); a read is.  What certainly was not done, and
 * a read that has no answer, fails with HF_UNREACHABLE.
 *
 * A client belongs to one thread at a time.  Clients of one open share a struct etcd_shared: the
 * address and the token that stands for user and password, since etcd takes 50 ms and more to check
 * a password.  The pool of a client also runs the watches of its owner. */
#ifndef HF_ETCD_CLIENT_H
#define HF_ETCD_CLIENT_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "etcd/address.h"
#include "net/http_pool.h"

struct etcd_shared {
    struct etcd_address address;
    atomic_size_t refs;
    atomic_size_t at;      /* the endpoint to which a client changed last, */
    atomic_size_t n_moves; /* and how often one has done that */
    pthread_mutex_t mutex;
    char *token;       /* under `mutex`; NULL: none yet; "": the server wants none */
    uint64_t n_tokens; /* under `mutex`; the number of tokens so far */
    /* What the owner of the clients has in common; freed by `extra_free` with the last reference.
     */
    void *extra;
    void (*extra_free)(void *extra);
    /* The term of the leader, as the last transaction told it, to which a majority consents; 0:
     * none has.  A member that answers a keep-alive with an older one was replaced. */
    _Atomic int64_t term;
};
/* Takes ownership of `address` and `extra`; has one reference.  `extra_free` may be NULL. */
struct etcd_shared *etcd_shared_new(struct etcd_address address, void *extra,
                                    void (*extra_free)(void *extra));
void etcd_shared_free(struct etcd_shared *shared); /* drops a reference */

struct etcd_client {
    struct etcd_shared *shared;
    struct http_pool *pool;
    size_t at;          /* an index of address.endpoints */
    size_t n_moves;     /* as of when `at` was chosen */
    bool has_left;      /* an endpoint failed, and none has answered since */
    int64_t timeout_ms; /* of one call of the driver */
    int64_t until_us;   /* of the current one, by wait_now_us */
    bool explains;      /* asks why there was no answer */
    /* The last call was answered with the alarm NOSPACE.  The write that reaches the quota is done
     * and answered so, too; it is therefore HF_UNKNOWN, but nothing more will come of it. */
    bool is_full;
    struct buf body, url; /* of the next request */
    struct buf token;     /* with a NUL; empty: none */
    uint64_t n_token;     /* the number of `token` */
    struct http_response response;
};
/* Takes a reference to `shared`. */
void etcd_client_init(struct etcd_client *c, struct etcd_shared *shared, int64_t timeout_ms);
void etcd_client_close(struct etcd_client *c);

/* Begins a call of the driver: the exchanges that follow share its timeout; limit_ms: a shorter
 * one; 0: none. */
void etcd_begin(struct etcd_client *c, int64_t limit_ms);

enum etcd_kind { ETCD_READ, ETCD_WRITE };
/* What etcd says if it does not do what it was asked. */
enum etcd_answer { ETCD_OK, ETCD_NO_LEASE, ETCD_LEASE_EXISTS };

/* Empties c->body, for the caller to fill. */
struct buf *etcd_body(struct etcd_client *c);
/* Sends c->body to `path`.  HF_DONE: *ret_answer says how etcd answered, and *ret has the answer;
 * the caller frees it with json_decref.  A NULL `ret_answer` makes answers but ETCD_OK failures. */
HF_MUST_USE enum hf_result etcd_call(struct etcd_client *c, const char *path, enum etcd_kind kind,
                                     json_t **ret, enum etcd_answer *ret_answer,
                                     struct hf_fault *fault);
/* As etcd_call, for answers of several lines: the last answer's text is in c->response.body. */
HF_MUST_USE enum hf_result etcd_call_text(struct etcd_client *c, const char *path,
                                          enum etcd_kind kind, struct hf_fault *fault);
/* GET: the answer's text is in c->response.body. */
HF_MUST_USE enum hf_result etcd_get_text(struct etcd_client *c, const char *path,
                                         struct hf_fault *fault);
/* A whole number of the endpoint's /metrics; -1 if the endpoint does not tell it. */
int64_t etcd_metric(struct etcd_client *c, const char *name);
/* GET /version: is it an etcd that this driver knows? */
HF_MUST_USE enum hf_result etcd_check_version(struct etcd_client *c, char ret_version[32],
                                              struct hf_fault *fault);

/* The next call goes to another endpoint, if there is one. */
void etcd_leave(struct etcd_client *c);
/* The endpoint of the next request, without "http://", for messages. */
const char *etcd_endpoint(const struct etcd_client *c);
/* Fills in the URL and, if there is one, the header of the token.  They stay valid until the next
 * call. */
void etcd_request(struct etcd_client *c, const char *path, struct http_request *ret,
                  struct http_header ret_header[1]);

/* etcd writes 64-bit numbers as text and leaves out zeros. */
int64_t etcd_number(const json_t *object, const char *name);

#endif
