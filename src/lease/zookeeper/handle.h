/* A handle of the ZooKeeper driver, and what its files share.  A handle belongs to one thread at a
 * time; what it shares with others is in its family. */
#ifndef HF_LEASE_ZOOKEEPER_HANDLE_H
#define HF_LEASE_ZOOKEEPER_HANDLE_H

#include "lease/zookeeper/family.h"

struct zk_handle {
    struct lease lease;
    struct zk_family *family;
    struct zk_waiter waiter;
    char watched[ZK_PATH_SIZE];     /* the node of the present watch; "": none */
    char watched_for[ZK_NODE_SIZE]; /* the place of the waiter */
    unsigned watched_by;            /* the generation of the library's handle that has the watch */
    struct zk_node awaits;          /* that node */
    size_t before;       /* the number of places before the waiter's when it looked last */
    struct zk_list list; /* what was read last */
};

static inline struct zk_handle *zk_handle_of(struct lease *l)
{
    return (struct zk_handle *)(void *)l;
}

/* ROOT/NAME */
void zk_lock_path(const struct zk_family *f, const char *key, size_t key_len,
                  char ret[ZK_LOCK_SIZE]);
/* When a call that begins now has to end, by wait_now_us. */
int64_t zk_until_us(const struct zk_handle *h, size_t n);
/* Fills the fault for a result of the client library that is not an answer to the question.
 * `written`: a transaction was sent, so it is not known what has been done. */
enum hf_result zk_failure(const struct zk_family *f, int rc, bool written, struct hf_fault *fault);
/* A request ends with its connection, which the client library also gives up when the server has
 * been silent for two thirds of the session's timeout; that may be much less than a call may take.
 * Returns whether `rc` says so and there is time left: a call that has only read then asks again as
 * soon as the session has its next connection, or there is a new session. */
bool zk_may_ask_again(int rc, int64_t until_us);

/* wait.c: a handle hears of its watch from its beginning to its end. */
void zk_waiter_add(struct zk_handle *h);
void zk_waiter_remove(struct zk_handle *h);

/* acquire.c and wait.c */
enum hf_result zk_acquire(struct lease *l, const struct lease_request *q, struct lease_verdict *v,
                          struct hf_fault *fault);
enum hf_result zk_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                       struct hf_fault *fault);
/* Remembers whose turn it is, and returns when the request may pass that place by; INT64_MAX: not
 * by time.  Called with the mutex held. */
int64_t zk_note_turn(struct zk_entry *e, const struct zk_view *view);

/* inspect.c */
enum hf_result zk_inspect(struct lease *l, const char *key, size_t key_len, struct lease_state *ret,
                          struct hf_fault *fault);
enum hf_result zk_list_names(struct lease *l, const char *prefix, size_t prefix_len,
                             lease_each_name *each, void *ctx, struct hf_fault *fault);
enum hf_result zk_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault);

/* examine.c */
enum hf_result zk_examine(struct lease *l, lease_each_finding *each, void *ctx,
                          struct hf_fault *fault);

#endif
