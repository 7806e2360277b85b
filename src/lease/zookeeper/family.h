/* What the handles of one open share: sessions with ZooKeeper, and the leases and places that live
 * in them.
 *
 * A lease ends with its session, so a session's timeout is its leases' TTL: there is one session
 * for each TTL that is in use, and another beside one that is stuck (is_stuck).  Each has a thread,
 * the keeper (keeper.c), which
 *   - opens and closes it, since the client library looks up names and may block;
 *   - sends a transaction every now and then, so that it is known how long the session lives at
 *     least (below);
 *   - ends leases that were not renewed and places that were neither asked for nor waited on, since
 *     the session goes on for the others.
 *
 * How long a session lives.  The leader ends a session when it has not heard of it for the timeout,
 * rounded up to its tick.  It hears of the sessions of a follower when that answers its ping, every
 * half tick, and not by the transactions that the follower passes on.  Reads are answered by the
 * follower alone, which may have lost the leader, so only answered transactions count.
 *   Z1  Two answered transactions prove that the session lives until t + timeout, where t is when
 *       the first was sent, if the second was sent ZK_PROOF_US or a quarter of the timeout after
 *       the answer to the first.  In between the follower has told the leader of the first, and the
 *       second shows that the session had not ended before that.  A session whose connection moved
 *       to another server meanwhile, or which has a new leader, was heard of because of that.
 *       Half a tick is at most a quarter of the timeout, unless minSessionTimeout was set to less
 *       than its default, and a tick is hardly ever more than two seconds.  A leader that serves
 *       the client itself hears of each transaction at once, but the client cannot know.
 *   Z2  A new session lives for the timeout from when the client began to connect.
 *   Z3  The deadline that callers see is a tick earlier, for a ping that is late; the tick is not
 *       known, and taken to be a tenth of the timeout, but at most two seconds.
 *
 * One mutex guards everything here.  It is never held during an exchange. */
#ifndef HF_LEASE_ZOOKEEPER_FAMILY_H
#define HF_LEASE_ZOOKEEPER_FAMILY_H

#include <pthread.h>

#include "lease/lease.h"
#include "lease/zookeeper/address.h"
#include "lease/zookeeper/call.h"
#include "lease/zookeeper/queue.h"

#define ZK_SESSIONS_MAX 8
/* The TTL of the session that open makes. */
#define ZK_TTL_DEFAULT_MS 30000
/* A session without leases and places is closed after this time. */
#define ZK_SESSION_IDLE_US INT64_C(60000000)
/* When the leader has heard of a session from a follower (Z1). */
#define ZK_PROOF_US INT64_C(1200000)
#define ZK_BUCKETS 256
#define ZK_REASON_SIZE 160
/* A queue of more places than these is long: its requests do not all read its nodes themselves, but
 * rely on what another one of this process has just seen.  A thousand waiters that each read a
 * thousand names, again and again, would keep the server busy. */
#define ZK_LONG 16

enum zk_state {
    ZK_CONNECTING, /* not connected yet, or not at the moment */
    ZK_CONNECTED,
    ZK_ENDED, /* expired, or refused; a new session has to be made */
};

struct zk_session {
    struct zk_family *family;
    int64_t ttl_ms; /* what was asked for */
    pthread_cond_t changed;

    /* under family->mutex */
    enum zk_state state;
    zhandle_t *zh;       /* NULL until the keeper has opened it */
    int64_t timeout_ms;  /* as negotiated; 0: it was never connected */
    unsigned generation; /* counts the handles that it has had; watches end with them */
    unsigned uses;       /* calls that use `zh` */
    unsigned awaiting;   /* calls that wait for a connection */
    unsigned n_entries;
    int64_t proved_us; /* the session lives for a timeout from here on (Z1) */
    /* The answered transaction that the next one may prove to have been heard of: when it was sent,
     * and when it was answered; 0: there is none. */
    int64_t first_sent_us, first_answered_us;
    int64_t used_us;             /* when it was last in use */
    int64_t armed_us;            /* until when the keeper sleeps */
    bool stop;                   /* the keeper ends the session */
    bool is_known;               /* the handle knows the credentials; for the library's thread */
    bool is_refused;             /* the server does not accept the credentials */
    int64_t retry_us;            /* no heartbeat is sent before */
    int64_t lost_us;             /* since when it is not connected */
    int64_t probed_us;           /* when the servers were last asked why; 0: not yet */
    bool is_hopeless;            /* no server would have given it a session when they were asked */
    bool is_stuck;               /* servers serve, but the library does not connect; new leases and
                                    reads get another session, those that it has stay with it */
    char reason[ZK_REASON_SIZE]; /* why it is not connected; "": not known */
};

/* A lease or a place of one owner, or what may be one after a lost answer. */
struct zk_entry {
    struct zk_entry *next; /* in its bucket */
    struct zk_session *session;
    unsigned users;   /* calls that use it */
    bool is_linked;   /* it is in the table */
    bool is_held;     /* it is a lease */
    bool is_ended;    /* its time is over; its nodes are being deleted */
    bool is_sure;     /* `is_held` and `place` are what ZooKeeper has, since all answers came */
    unsigned waiting; /* calls that wait for its turn */
    int64_t fence, ttl_ms;
    int64_t claimed_us; /* when the claim was sent */
    int64_t expires_us; /* of a lease */
    int64_t touched_us; /* of a place: when it was last asked for or waited on */
    /* The place before it whose turn it was when it looked, and since when. */
    char called[ZK_NODE_SIZE];
    int64_t called_us;
    bool has_passed;          /* it has removed a place whose turn was not claimed */
    bool is_first;            /* its place is the first of a long queue */
    bool may_claim;           /* its place is the first, and the lease that it awaited has ended */
    char place[ZK_NODE_SIZE]; /* "": none */
    enum hf_mode mode;
    uint8_t owner[LEASE_OWNER_SIZE];
    char owner_text[ZK_OWNER_LEN + 1];
    char path[ZK_LOCK_SIZE]; /* the lock's node */
    struct buf data;         /* "TTL_MS LABEL", which its nodes contain */
};

/* A handle that waits; its fd becomes readable when there is reason to look. */
struct zk_waiter {
    struct zk_waiter *next;
    uintptr_t id;  /* of its present watch */
    bool is_fired; /* the watched node has been deleted */
    int fd;
};

/* The first place of a lock's queue, as somebody in this process saw it. */
struct zk_head {
    uint64_t hash; /* of the lock's path */
    int32_t sequence;
    int64_t seen_us;
};

struct zk_family {
    struct zk_address address;
    const struct ACL_vector *acl; /* of the nodes that it creates */
    const struct clock *clock;
    int64_t timeout_ms;

    pthread_mutex_t mutex; /* guards everything below */
    unsigned refs;         /* handles and keepers */
    struct zk_session *sessions[ZK_SESSIONS_MAX];
    struct zk_entry *entries[ZK_BUCKETS];
    struct zk_waiter *waiters;
    uintptr_t last_watch;
    int64_t server_ahead_ms; /* of our wall clock */
    int64_t ttl_min_ms;      /* the shortest TTL that the server grants; 0: not known */
    /* Locks that had neither a lease nor a place when one of ours was given back. */
    uint64_t idle[ZK_BUCKETS]; /* hashes of their paths */
    struct zk_head heads[ZK_BUCKETS];
};

/* Takes ownership of `address`. */
struct zk_family *zk_family_new(struct zk_address address, const struct lease_options *options);
void zk_family_ref(struct zk_family *f);
/* The last handle ends all sessions, and with them all leases. */
void zk_family_close(struct zk_family *f);
/* Drops the reference of a keeper. */
void zk_family_unref(struct zk_family *f);

static inline int64_t zk_now_us(const struct zk_family *f) { return clock_boot_us(f->clock); }

/* ---- sessions ---- */

/* A connected session whose timeout is `ttl_ms`, or as near to that as the server and the limit of
 * sessions allow, but not longer; `ttl_ms` 0: any session, for requests that no lease depends on.
 * zk_session_put gives it back. */
HF_MUST_USE enum hf_result zk_session_get(struct zk_family *f, int64_t ttl_ms, int64_t until_us,
                                          struct zk_session **ret, struct hf_fault *fault);
/* The same for a session that an entry has; HF_LOST if it has ended.  Called with the mutex held.
 */
HF_MUST_USE enum hf_result zk_session_use(struct zk_session *s, int64_t until_us,
                                          struct hf_fault *fault);
void zk_session_put(struct zk_session *s);
/* A transaction that was sent at `sent_us` has been answered. */
void zk_session_answered(struct zk_session *s, int64_t sent_us);
/* How long after an answer a transaction has to be sent to prove it (Z1). */
int64_t zk_session_proof_us(const struct zk_session *s);
/* Sends a transaction, awaits it, and notes the answer. */
int zk_session_commit(struct zk_session *s, struct zk_call *call, int64_t until_us);
/* Commits a transaction that changes nothing.  When it has been answered, whatever was sent through
 * the session before has been carried out or never will be, and what is read from now on shows it:
 * the leader refuses a transaction that comes late from a server that the session has left, and a
 * server answers when it has caught up.  ZOK or why no answer came. */
int zk_session_settle(struct zk_session *s, int64_t until_us);
/* How much of `ttl_ms`, counted from `from_us`, is left and certain. */
int64_t zk_session_left_ms(const struct zk_session *s, int64_t from_us, int64_t ttl_ms);
/* Starts the keeper of a new session; called with the mutex held. */
struct zk_session *zk_session_start(struct zk_family *f, int64_t ttl_ms);

/* ---- entries; all of them are called with the mutex held ---- */

struct zk_entry *zk_entry_find(struct zk_family *f, const char *path,
                               const uint8_t owner[LEASE_OWNER_SIZE]);
struct zk_entry *zk_entry_new(struct zk_session *s, const char *path,
                              const struct lease_request *q);
/* It has neither a lease nor a place any more. */
void zk_entry_remove(struct zk_entry *e);
/* Drops a user and frees an entry that has been removed. */
void zk_entry_put(struct zk_entry *e);
/* Wakes the keeper if it would sleep past the entry's end. */
void zk_entry_arm(struct zk_entry *e);
/* When it ends unless it is renewed or asked for; INT64_MAX: not by time. */
int64_t zk_entry_due_us(const struct zk_entry *e);

/* Deletes whatever nodes the entry has, and removes it.  Called with the mutex held, which it
 * releases meanwhile; the caller is a user of the entry and of its session.  Returns ZOK, ZNONODE
 * if there was nothing, or why it failed. */
int zk_entry_end(struct zk_entry *e, int64_t until_us);

/* The same in two steps, so that many entries can be ended in one exchange.  The first is called
 * with the mutex held, the second without. */
struct zk_ending {
    struct zk_entry *e;
    struct zk_call *call;
    int64_t sent_us, fence;
    bool is_nothing, is_exclusive;
};
void zk_ending_send(struct zk_ending *ending, struct zk_entry *e);
int zk_ending_wait(struct zk_ending *ending, int64_t until_us);

/* ---- waiters; all of them are called with the mutex held ---- */

void zk_wake_all(struct zk_family *f);

/* ---- idle locks; called with the mutex held ---- */

void zk_idle_note(struct zk_family *f, const char *path, bool is_idle);
/* Returns whether it was noted, and forgets it. */
bool zk_idle_take(struct zk_family *f, const char *path);

/* ---- long queues; called without the mutex ---- */

/* Remembers the first place. */
void zk_head_note(struct zk_family *f, const char *path, const struct zk_list *list);
/* If others wait before this place in a long queue, as another request has just seen, returns at
 * most how many; otherwise 0. */
size_t zk_head_distance(struct zk_family *f, const char *path, const char *place);
static inline bool zk_is_long(const struct zk_list *list) { return list->waiters.n > ZK_LONG; }

/* ---- listing.c ---- */

/* Creates the root with all nodes above it, if it does not exist, and checks that it may be used.
 */
int zk_root_make(struct zk_session *s, int64_t until_us);
/* Reads the nodes of a lock. */
int zk_list_read(struct zk_session *s, const char *path, int64_t until_us, struct zk_list *ret);
/* PATH/NODE, or for a shared lease PATH/@l/NODE. */
void zk_node_path(const char *path, const struct zk_node *node, char ret[ZK_PATH_SIZE]);
/* Adds the operations that end a lease: of an exclusive one also that of @l. */
void zk_lease_delete(struct zk_call *call, const char *path, const char *node_path,
                     enum hf_mode mode, const char *fence, char latch[ZK_PATH_SIZE]);

#endif
