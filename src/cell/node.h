/* One server of a cell, without its thread, its journal, its clock and its sockets: it is told what
 * has happened and says what it wants done next.  A thread (cell.h) or a simulator (tests/sim) does
 * it.
 *
 *   node_submit(request)        somebody asks for something
 *   node_next() -> call         the journal call that the node wants made now, one at a time
 *   node_done(call)             how it went; answers requests (pending_done)
 *   node_wait_until_us()        when node_next should be asked again if nothing happens before
 *
 * A node follows the journal (a standby), or leads (the master):
 *
 *                silence for timeout_ms,              claim stored
 *                or CELL_RESIGN read
 *   FOLLOWING ---------------------------> CLAIMING ---------------> CATCHING_UP
 *     ^    ^                                  |                           |
 *     |    +------------ deposed -------------+-------- deposed ----------+
 *     |                                                                   | all is read, and an
 *     |                                       deposed                     v entry of its own stored
 *     +---------------------------------------------------------------- LEADING
 *     |                                                                   | asked to resign
 *     |                        its last entry is stored, or deposed       v
 *     +--------------------------------------------------------------- RESIGNING
 *
 * The master: gather -> append -> apply -> answer.  What queued while the last entry was being
 * stored becomes the next one.
 *
 * Invariants; in brackets the parts of struct node (node_internal.h) that keep them:
 *   N1 Nothing is answered that the journal has not stored at the current epoch (I16).  [mandate,
 *      entry, requests]
 *   N2 A keep-alive and a linearizable read are answered after an append that was sent after they
 *      were received; an append that was in flight already proves nothing.  [entry.proofs]
 *   N3 An append whose answer was lost is repeated with the same bytes, id and index until it is
 *      stored, found or deposed.  If it was found, answers go out only after one further
 *      acknowledged append.  [entry, requests.found]
 *   N4 A session is ended only when its deadline, counted from the last answer to it, has passed
 *      while the node was awake and could append: after a change of master, and after standing
 *      still or failing to append for half the shortest TTL, every session has its full TTL again.
 *      [deadlines, seen_us, entry.begun_us]
 *   N5 A keep-alive is never refused because a queue is full.  [requests.n_keepalives] */
#ifndef HF_CELL_NODE_H
#define HF_CELL_NODE_H

#include "base/clock.h"
#include "base/pending.h"
#include "base/random.h"
#include "cell/entry.h"
#include "cell/journal.h"
#include "cell/state.h"

#define NODE_PLACE_MS 5000   /* a place in the line is kept this long between two requests */
#define NODE_CLAIM_MS 1000   /* a grant that nobody is there to receive is withdrawn after this */
#define NODE_CLAIM_MIN_MS 50 /* unless the request asked for less, but not below this */
#define NODE_WAIT_MAX_MS 60000
#define NODE_UNKNOWN_MS 5000 /* a request whose append is not resolved by then is CELL_UNKNOWN */

enum node_role { NODE_FOLLOWING, NODE_CLAIMING, NODE_CATCHING_UP, NODE_LEADING, NODE_RESIGNING };
extern const char *const node_role_names[];

struct node;

/* What somebody wants of the cell.  The caller zeroes it, fills in the first part and hands it
 * over; it gets it back by pending_done.  Texts of the command are borrowed until then. */
enum cell_request_kind {
    CELL_REQUEST_COMMAND,   /* `command`: OPEN, CLOSE, ACQUIRE, RELEASE, VALUE, BREAK */
    CELL_REQUEST_KEEPALIVE, /* of command.session */
    CELL_REQUEST_LOOK,      /* calls `look` with the state, linearizable unless `stale` */
    CELL_REQUEST_TRANSFER,  /* the master resigns in favour of another server */
};
struct cell_request {
    struct pending pending;
    enum cell_request_kind kind;
    struct cell_command command;
    int64_t wait_ms;  /* ACQUIRE: how long to wait for the grant */
    int64_t claim_ms; /* ACQUIRE: see NODE_CLAIM_MS; 0: that */
    /* ACQUIRE: the client asks again to claim what it is granted while it waits.  Until then the
     * grant is one that nobody has received, for its answer may be written to the socket of a
     * client that stands still. */
    bool claims;
    bool stale; /* LOOK: also on a standby */
    /* LOOK: called on the node's thread; may append to `out`, and may not keep what it sees. */
    void (*look)(struct cell_request *r, const struct node *n, const struct cell_state *s);
    void *context; /* for `look` */

    /* out */
    struct cell_verdict verdict;
    struct buf out;
    /* CELL_NO_MASTER: where the master is, never this server; "": not known */
    char master_url[CELL_URL_MAX + 1];
    uint32_t ttl_ms;   /* KEEPALIVE, OPEN */
    bool is_unclaimed; /* ACQUIRE, granted: it counts when the client asks again */
    /* ACQUIRE, granted: this answer grants the lock.  An answer that has to be claimed does not,
     * nor does one that repeats a grant. */
    bool is_grant;
    int64_t earlier_us; /* of such an answer: from the first request for the lock to this one */
    /* KEEPALIVE: names that the session caches and others wait for; see struct cell_person. */
    VEC(struct cell_person) wanted;

    /* the node's own */
    struct cell_request *next, *prev;
    void *list;                           /* that it is in */
    struct cell_acquisition *acquisition; /* that it waits for */
    int64_t received_us, until_us;
    bool gone;

    /* the cell's own (cell.c, cell_inbox.c) */
    struct pending reply; /* the caller's; `pending` is the cell's while the node has the request */
    _Atomic int stage;    /* enum stage of cell_inbox.c */
    struct cell_request *gone_next, *gone_prev;
    int64_t submitted_us;
};
void cell_request_close(struct cell_request *r); /* frees what the answer has; accepts zeroed */

struct node_config {
    const struct clock *clock;
    struct random *random;
    const char *url;    /* as other servers and clients reach this one */
    int64_t timeout_ms; /* --cell-timeout: silence of the master after which a standby claims */
    bool shared;        /* the journal may have other servers */
    size_t queue_max;   /* requests that wait to be gathered */
    int64_t snapshot_entries; /* a snapshot after so many entries; 0: 8192 */
    /* Called with every effect of an applied entry, in order, as long as the node leads or follows:
     * for streams.  `index` is that of the entry.  May be NULL. */
    void (*on_effect)(void *context, int64_t index, const struct cell_effect *e);
    /* Called when the role changes, or the state was replaced by a snapshot: streams end. */
    void (*on_change)(void *context, enum node_role role);
    void *context;
};

struct node *node_new(const struct node_config *config);
/* Every request must have been answered (node_stop). */
void node_free(struct node *n);

/* Tells a new node that its journal could not be opened yet.  A node that is not told takes the
 * journal to answer until a call fails. */
void node_begins_without_journal(struct node *n, const char *why);

/* Takes a request over.  It may be answered within the call. */
void node_submit(struct node *n, struct cell_request *r);
/* The client of a waiting request has gone: nobody will receive the answer.  The request is
 * answered soon. */
void node_gone(struct node *n, struct cell_request *r);

/* The next call to make; NULL: none now.  The call belongs to the node, and stays as it is until
 * node_done.  At most one is under way. */
struct journal_call *node_next(struct node *n);
void node_done(struct node *n, struct journal_call *call);
/* When node_next may have something to do though nothing was submitted, by clock_boot_us. */
int64_t node_wait_until_us(const struct node *n);

/* From now on the node resigns if it leads, claims nothing, and refuses new requests. */
void node_retire(struct node *n);
bool node_is_retired(const struct node *n); /* it has resigned, or did not lead */
/* Answers every request that is still there, with CELL_STOPPING, or CELL_UNKNOWN if its entry is
 * under way. */
void node_stop(struct node *n);

/* ---- for looks, status and metrics, on the node's thread ---- */

/* What a node has counted since it began. */
struct node_counts {
    uint64_t n_entries, n_commands; /* that this server appended */
    /* As the master: sessions that it ended; requests for a lock that had to wait in line; those of
     * them that ended without a grant that was received; grants that were lost, by expiry or by a
     * break. */
    uint64_t n_expired, n_queued, n_timed_out, n_lost;
};

struct node_status {
    enum node_role role;
    int64_t epoch, index;                 /* of the state */
    size_t n_sessions, n_held, n_waiting; /* of the state */
    int64_t last;                         /* the journal's last entry, as far as known */
    char master_url[CELL_URL_MAX + 1];    /* "": none is known */
    const struct journal_server *servers; /* those that reported lately */
    size_t n_servers;
    struct node_counts counts;
    /* How long ago the last append that the journal acknowledged was sent: until then this server
     * was the master, whatever it believes.  -1: it does not lead. */
    int64_t appended_ms;
    bool journal_answers;
    char why[256]; /* if it does not */
};
void node_status(const struct node *n, struct node_status *ret);

#endif
