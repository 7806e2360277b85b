/* What the files of the etcd driver share.  etcd.c has the table and says how it locks. */
#ifndef HF_LEASE_ETCD_ETCD_H
#define HF_LEASE_ETCD_ETCD_H

#include "etcd/client.h"
#include "lease/etcd/crowd.h"
#include "lease/etcd/wire.h"
#include "net/http_pool.h"

/* How many requests for a name an answer shows, the oldest first. */
#define LINE_MAX 32

/* Whom the request that waits on this handle waits for, as of `revision`. */
struct etcd_place {
    int64_t lease;  /* of the request; 0: none waits */
    int64_t create; /* the revision that created its key */
    int64_t revision;
    int64_t noted_us; /* boot time */
    size_t position;
    bool has_blocker;
    struct etcd_entry blocker;
};

/* When the request that waits on this handle last asked whether the waiter before it is silent.
 * Callers wait for short times again and again, so this outlives a wait. */
struct vigil {
    int64_t lease;   /* of the request; 0: none */
    int64_t kept_us; /* boot time; when it asked, or began to wait */
};

/* Since when it has been the turn of the first waiter of a name, as far as this handle saw it. */
struct turn {
    uint64_t name;     /* a hash; 0: none is seen */
    int64_t create;    /* of the waiter */
    int64_t first_us;  /* boot time; when it was first seen, */
    int64_t latest_us; /* and when it was last seen */
};

/* The watch on the key that a waiter waits for, a request whose answer does not end. */
struct etcd_watch {
    struct http_exchange exchange; /* the first member */
    int64_t lease;                 /* of the request that waits; 0: no watch is running */
    bool has_fired;                /* the key is gone, or the watch has failed */
    bool has_failed;
    bool is_created;  /* etcd has told that it watches */
    size_t at;        /* the endpoint */
    int64_t begun_us; /* boot time */
    struct buf body, url, token;
    struct buf text; /* the beginning of a message */
    struct http_header header[1];
};

struct etcd {
    struct lease lease;
    struct etcd_client client;
    const struct clock *clock;
    struct etcd_place place;
    struct vigil vigil;
    struct turn turn;
    struct etcd_watch watch;
    int64_t called;  /* the lease of a request whose turn wait() has seen; 0: none */
    int64_t look_us; /* how long the last transaction took */
    uint64_t busy;   /* the hash of a name that a request without a place found taken; 0: none */
};
static inline struct etcd *etcd_of(struct lease *l) { return (struct etcd *)(void *)l; }
static inline const char *etcd_prefix(const struct etcd *e)
{
    return e->client.shared->address.prefix;
}
static inline struct crowd *etcd_crowd(const struct etcd *e) { return e->client.shared->extra; }
static inline int64_t etcd_now_us(const struct etcd *e) { return clock_boot_us(e->clock); }

/* ---- leases.c: etcd's leases ---- */

/* *ret_exists: there is one of this number already, which may end at any moment. */
HF_MUST_USE enum hf_result etcd_grant(struct etcd *e, int64_t id, int64_t ttl_ms, bool *ret_exists,
                                      struct hf_fault *fault);
/* The gateway may begin to answer before it has read a request, and then reads no more of it than
 * the 512 bytes of its first look.  That many leases fit into them. */
#define KEEP_ALIVE_MAX 16
/* *ret_ttl_ms: the TTL of each lease, which begins anew; 0: there is no such lease.  One exchange,
 * and no write: the member that answers may be a leader that was stopped and does not know that it
 * was replaced.  *ret_term is the term that it knows. */
HF_MUST_USE enum hf_result etcd_keep_alive(struct etcd *e, const int64_t *ids, size_t n,
                                           int64_t *ret_ttl_ms, int64_t *ret_term,
                                           struct hf_fault *fault);
/* *ret_found: there was one. */
HF_MUST_USE enum hf_result etcd_revoke(struct etcd *e, int64_t id, bool *ret_found,
                                       struct hf_fault *fault);
/* What is left of a lease in whole seconds, rounded down, and its TTL; -1 and 0: it is gone. */
HF_MUST_USE enum hf_result etcd_left(struct etcd *e, int64_t id, int64_t *ret_left_s,
                                     int64_t *ret_ttl_s, struct hf_fault *fault);

/* ---- txn.c: the transactions ---- */

/* Reads the line; `limit` 0: all of it. */
HF_MUST_USE enum hf_result etcd_txn_look(struct etcd *e, const struct subject *s, size_t limit,
                                         struct etcd_line *ret, struct hf_fault *fault);
/* Reads only the youngest entry before `create` that a request of this mode waits for. */
HF_MUST_USE enum hf_result etcd_txn_look_before(struct etcd *e, const struct subject *s,
                                                int64_t create, struct etcd_line *ret,
                                                struct hf_fault *fault);
/* Creates the key of a new request, claimed if the lock is free for it, else waiting if it queues.
 * ret->succeeded: it is claimed, with ret->revision as its fence.  Does nothing if there is such a
 * key. */
HF_MUST_USE enum hf_result etcd_txn_ask(struct etcd *e, const struct subject *s,
                                        const struct lease_request *r, struct etcd_line *ret,
                                        struct hf_fault *fault);
/* As etcd_txn_ask, for a request that queues where many wait: its key is created waiting, and of
 * the line only its length is told. */
HF_MUST_USE enum hf_result etcd_txn_join(struct etcd *e, const struct subject *s,
                                         const struct lease_request *r, struct etcd_line *ret,
                                         struct hf_fault *fault);
/* Claims the lock for a waiter whose key was created at revision `create`, if it is its turn.
 * ret->succeeded: it is claimed, with ret->revision as its fence. */
HF_MUST_USE enum hf_result etcd_txn_claim(struct etcd *e, const struct subject *s, int64_t create,
                                          const struct lease_request *r, struct etcd_line *ret,
                                          struct hf_fault *fault);
/* Deletes the keys of the first `n` entries if none of them has changed; if_unclaimed: and if
 * nobody has claimed the lock, since a line that is cut off may not show the holder. */
HF_MUST_USE enum hf_result etcd_txn_pass_over(struct etcd *e, const struct subject *s,
                                              const struct etcd_line *line, size_t n,
                                              bool if_unclaimed, struct hf_fault *fault);

/* ---- acquire.c ---- */

enum hf_result etcd_acquire(struct lease *l, const struct lease_request *r, struct lease_verdict *v,
                            struct hf_fault *fault);
/* Remembers the place of a request that has to wait. */
void etcd_place_note(struct etcd *e, const struct subject *s, const struct etcd_line *line);
/* The request does not wait any more. */
void etcd_place_forget(struct etcd *e, const struct subject *s);
/* Keeps the lease of a waiter alive, and with it those of other waiters of the process that are
 * due.  *ret_ttl_ms: its TTL; 0: it is gone. */
HF_MUST_USE enum hf_result etcd_place_refresh(struct etcd *e, int64_t lease, int64_t *ret_ttl_ms,
                                              struct hf_fault *fault);
/* Waiters that have not claimed their turn in time are passed over.  *ret_us: how long their turn
 * still lasts; 0: they are gone now; -1: it is nobody's turn. */
HF_MUST_USE enum hf_result etcd_turn_check(struct etcd *e, const struct subject *s,
                                           const struct etcd_line *line, int64_t *ret_us,
                                           struct hf_fault *fault);

/* ---- wait.c ---- */

enum hf_result etcd_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                         struct hf_fault *fault);
/* Ends the watch, and forgets what it has told. */
void etcd_watch_stop(struct etcd *e);
void etcd_watch_close(struct etcd *e);

/* ---- inspect.c, examine.c ---- */

enum hf_result etcd_inspect(struct lease *l, const char *key, size_t key_len,
                            struct lease_state *ret, struct hf_fault *fault);
enum hf_result etcd_list(struct lease *l, const char *prefix, size_t prefix_len,
                         lease_each_name *each, void *ctx, struct hf_fault *fault);
enum hf_result etcd_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault);
enum hf_result etcd_examine(struct lease *l, lease_each_finding *each, void *ctx,
                            struct hf_fault *fault);

#endif
