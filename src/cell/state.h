/* The state of the lock service: sessions, names, holders, waiters.  It is a pure function of the
 * commands applied so far: it knows no clock, no randomness, no thread and no journal.  Its owner
 * is the thread of its node (node.h); other threads never see it.
 *
 *   sessions   by key; each lists its acquisitions, and the owners of those that have ended
 *   names      a tree: "payments/eu/settle" is below "payments/eu".  A name is there while somebody
 *              holds or awaits it, or something below it, and for a while afterwards
 *   line       the waiters of one name.  Those that were overtaken CELL_OVERTAKEN_MAX times go
 *              first, by arrival; the others follow by priority, then by arrival.  The order is one
 *              for all names, so "earlier" has a meaning between a name and its ancestors and
 *              descendants, too
 *   grant      A request is granted whole or waits, holding nothing.  It is blocked by every
 *              conflicting holder, and every earlier conflicting waiter, of the name itself, of an
 *              ancestor and of a descendant.  A waiter that was passed over blocks nobody
 *   fence      one counter for all names
 *
 * Invariants, which tests/unit/test_cell_state.c tries; cell_state_check verifies S1 to S3:
 *   S1 No two holders conflict (command.h has the table), and no name has more exclusive holders
 *      than its slots.
 *   S2 No waiter could be granted: after every command, whatever can be granted has been.
 *   S3 Fences of grants only grow, and the fence of every holder is at most `fence`.
 *   S4 The waits-for graph of agents has no cycle that consists of waiters that asked to wait.
 *
 * Costs: a command costs O(depth) plus what it grants; a line is searched from its end when a
 * waiter joins; the cycle search visits what can be reached from the new waiter. */
#ifndef HF_CELL_STATE_H
#define HF_CELL_STATE_H

#include "base/buf.h"
#include "base/status.h"
#include "cell/command.h"

#define CELL_DIGEST_SIZE 32

struct cell_name;
struct cell_session;
struct cell_state;

/* One session's claim on one name: held, awaited, or delayed (its session was lost, and the name
 * stays blocked for its delay_ms).  Fields are read-only for everybody but the state. */
struct cell_acquisition {
    struct cell_name *name;
    struct cell_session *session; /* NULL: delayed */
    struct cell_owner owner;
    enum cell_mode mode;
    enum { CELL_WAITING, CELL_HELD, CELL_DELAYED } stage;
    bool passed_over; /* a waiter that did not take its grant */
    bool cached;
    uint32_t slots, slot;
    uint32_t delay_ms;
    int32_t priority;
    uint32_t overtaken;
    int64_t arrival;                      /* the number of its arrival in the line, among all */
    int64_t fence;                        /* of a holder, or of a delayed one */
    char *agent;                          /* "": the whole session is one agent */
    char *label;                          /* "": that of the session, if it has one */
    struct cell_acquisition *prev, *next; /* in the line, or among the holders */
    struct cell_acquisition *session_prev, *session_next; /* of its session, oldest first */
    /* For the node, not part of the state: zero when the acquisition is made or restored. */
    struct {
        int64_t since_us; /* when it was granted, or came, on this server's clock; 0: not known */
        int64_t asked_us; /* when this server was first asked for it; 0: not yet */
        bool is_counted;  /* an answer has granted it */
        void *waiter;     /* the request that waits for it */
        void *deadline;   /* the node's entry of deadlines */
    } local;
};

struct cell_session {
    struct id id;
    uint32_t ttl_ms;
    int64_t account;
    char *label; /* "": none */
    struct cell_acquisition *first, *last;
    size_t n_acquisitions;
    /* For the node, as above. */
    struct {
        int64_t deadline_us;
        void *deadline;
    } local;
};

/* What a command has changed, for those who follow: streams, waiting requests, the node's
 * deadlines.  In the order in which it happened.  The acquisition is valid until the next command
 * is applied, also if it has just ended. */
enum cell_effect_kind {
    CELL_EFFECT_OPENED,    /* a session */
    CELL_EFFECT_CLOSED,    /* a session; its acquisitions' effects come before */
    CELL_EFFECT_QUEUED,    /* an acquisition waits */
    CELL_EFFECT_GRANTED,   /* at once, or after waiting */
    CELL_EFFECT_RELEASED,  /* a holder gave it up, or the master withdrew an unreceived grant */
    CELL_EFFECT_LOST,      /* a holder's session expired, or the lock was broken */
    CELL_EFFECT_CANCELLED, /* a waiter gave up its place, or lost it with its session */
    CELL_EFFECT_DELAYED,   /* follows LOST: the name stays blocked */
    CELL_EFFECT_UNDELAYED,
    CELL_EFFECT_VALUE,  /* the value of the name changed, also to none */
    CELL_EFFECT_WANTED, /* somebody waits for what this acquisition's session caches */
};
struct cell_effect {
    enum cell_effect_kind kind;
    bool withdrawn;                       /* of RELEASED: back in the line */
    struct cell_name *name;               /* NULL of OPENED and CLOSED */
    struct cell_acquisition *acquisition; /* NULL of OPENED, CLOSED and VALUE */
    struct cell_session *session;         /* of the acquisition; NULL: delayed */
    int64_t fence;
};

struct cell_state *cell_state_new(void);
void cell_state_free(struct cell_state *s); /* accepts NULL */

/* Applies one command.  Its outcome is in *ret, which the caller has zeroed or used before; NULL:
 * nobody wants to know.  Effects are appended to cell_state_effects(). */
void cell_state_apply(struct cell_state *s, const struct cell_command *c, struct cell_verdict *ret);
/* The effects since the last cell_state_clear_effects, which also frees what has ended. */
const struct cell_effect *cell_state_effects(const struct cell_state *s, size_t *ret_n);
void cell_state_clear_effects(struct cell_state *s);

/* ---- looking ---- */

int64_t cell_state_epoch(const struct cell_state *s); /* of the last CELL_MASTER; 0: none */
/* The last command was a CELL_RESIGN, so the journal may be claimed at once. */
bool cell_state_is_resigned(const struct cell_state *s);
/* The remaining TTLs of that CELL_RESIGN; -1: the session has none. */
int64_t cell_state_remaining_ms(const struct cell_state *s, int64_t session);
size_t cell_state_n_sessions(const struct cell_state *s);
size_t cell_state_n_names(const struct cell_state *s); /* held or awaited */
size_t cell_state_n_held(const struct cell_state *s);
size_t cell_state_n_waiting(const struct cell_state *s);
/* The shortest TTL of all sessions; 0: there is none. */
uint32_t cell_state_shortest_ttl_ms(const struct cell_state *s);

struct cell_session *cell_session_find(const struct cell_state *s, int64_t key);
/* The session with the smallest key that is larger than `after`; NULL: there is none. */
struct cell_session *cell_session_next(const struct cell_state *s, int64_t after);
struct cell_acquisition *cell_acquisition_find(const struct cell_state *s, int64_t session,
                                               const char *name, size_t name_len,
                                               const struct cell_owner *owner);

/* NULL: nothing is known of the name. */
struct cell_name *cell_name_find(const struct cell_state *s, const char *name, size_t len);
/* The first name after `after` ("": from the first) in the order of bytes that begins with `prefix`
 * and is held or awaited itself.  NULL: there is none. */
struct cell_name *cell_name_next(const struct cell_state *s, const char *after, size_t after_len,
                                 const char *prefix, size_t prefix_len);
const char *cell_name_text(const struct cell_name *n, size_t *ret_len);
/* Adds the name and the label of an acquisition to the people that a verdict names, unless it names
 * CELL_PEOPLE_MAX of them already. */
void cell_verdict_add_person(struct cell_verdict *v, const struct cell_acquisition *a);
/* The value, and its length; NULL: none. */
const char *cell_name_value(const struct cell_name *n, size_t *ret_len);
int64_t cell_name_last_fence(const struct cell_name *n); /* 0: none is remembered */
/* Holders and delayed ones, oldest first, by ->next. */
struct cell_acquisition *cell_name_holders(const struct cell_name *n);
/* Waiters: appends them to `ret` in the order in which they will be served; those that were passed
 * over come last. */
typedef VEC(struct cell_acquisition *) cell_acquisitions;
void cell_name_waiters(const struct cell_name *n, cell_acquisitions *ret);
size_t cell_name_n_waiters(const struct cell_name *n);
/* The place of a waiter in its line: 1 is the next.  Waiters that were passed over do not count;
 * such a waiter is told the place that it would have. */
uint32_t cell_acquisition_position(const struct cell_acquisition *a);
/* What people know it by: its own label, or its session's; "": neither. */
const char *cell_acquisition_label(const struct cell_acquisition *a);
/* Appends what a waiter waits for: conflicting holders and earlier conflicting waiters. */
void cell_acquisition_blockers(const struct cell_state *s, const struct cell_acquisition *a,
                               cell_acquisitions *ret);
/* Does a waiter, which was not passed over, wait for this cached holder? */
bool cell_acquisition_is_wanted(const struct cell_state *s, const struct cell_acquisition *a);

/* ---- snapshots ---- */

/* Appends the whole state.  The same state always gives the same bytes, whatever path led to it. */
void cell_state_save(const struct cell_state *s, struct buf *out);
/* NULL: the bytes are no snapshot of this version; err says why.  Accepts any bytes. */
struct cell_state *cell_state_restore(const void *data, size_t len, struct hf_err *err);
/* SHA-256 of what cell_state_save writes. */
void cell_state_digest(const struct cell_state *s, uint8_t ret[CELL_DIGEST_SIZE]);

/* Verifies S1 to S3, and that all lists and counts agree; aborts otherwise.  O(n). For tests. */
void cell_state_check(const struct cell_state *s);

#endif
