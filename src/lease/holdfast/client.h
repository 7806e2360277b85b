/* The client's side of a session with the lock service, without threads, sockets, JSON and a clock:
 * it is told what its callers want and what was answered, and says what is to be sent.  The driver
 * (holdfast.c) or a simulator does the rest.  Every call is made under one mutex, by any thread.
 *
 *   client_acquire, client_release   a caller wants a lease, or gives it back
 *   client_next                  what the session itself has to send: keep-alives, releases of what
 *                                nobody wants any more, that a cached lock is in use
 *   client_answer                how a message was answered, or that it was not
 *   client_event                 what the session's stream tells
 *
 *   lease   what one caller has: (name, owner), with a time to live
 *   claim   one acquisition at the service: (name, the claim's own owner).  A lease has one claim.
 *           Several shared leases of one name have the same claim if locks are cached
 *
 *            client_acquire            granted                    released, expired, not wanted
 *   (none) ------------> ASKED -------------> HELD ------------------------> ENDING --> (none)
 *                          |   not granted     ^
 *                          +--> WAITING -------+   the session is gone: all leases are lost at once
 *
 * Rules
 *   C1  The service keeps a session for its TTL from when it received a keep-alive, so the session
 *       lives at least until `sent + TTL`, where `sent` was read before the last answered open or
 *       keep-alive went out.  Nothing else moves that moment: an answer that comes late proves no
 *       more than one that comes in time.
 *       A session that was not proved to live by then is given up, even if it may live on: its
 *       leases are lost, and keep-alives whose answers are lost must not keep them from others.
 *   C2  A lease is held until client_lease_end_us, which is at most that moment.  Callers that rely
 *       on it stop client_margin_us earlier: src/lock subtracts this margin from what the driver
 *       returns, and client_lease_is_held subtracts it itself (I15).
 *   C3  Answers to the messages of one claim are judged in the order in which the messages were
 *       made; an older answer than the last one that was judged changes nothing.
 *   C4  After a lost answer the request is repeated with the same owner, so it finds its grant or
 *       its place.  An owner that has ended is not used again: a caller that asks for it anew gets
 *       a claim with another one.
 *   C5  A claim that no lease wants any more is released until the service has said so: also a
 *       grant that arrives for a caller that gave up.
 *   C6  A cached claim is granted locally only while it is held, not wanted and within the
 *       session's deadline.  Once wanted, it stays so: it is released when its last lease ends, and
 *       until then the service is told that it is in use.
 *   C7  The service looks for deadlocks among agents, and a claim that is being released is still
 *       its agent's there.  So a request that may wait is sent after the service has confirmed
 *       every release of its agent; a deadlock that is told while one is under way is not
 *       believed.
 *   C8  What is granted while a request waits is a turn: the service takes it back after claim_ms
 *       unless it is asked for again, and it is held once that is answered.  A client that stands
 *       still while its request waits thus keeps nobody waiting. */
#ifndef HF_LEASE_HOLDFAST_CLIENT_H
#define HF_LEASE_HOLDFAST_CLIENT_H

#include "base/random.h"
#include "lease/lease.h"

#define CLIENT_SESSION_SIZE 48 /* "ses_..." and a NUL */
#define CLIENT_AGENT_SIZE 33
#define CLIENT_WANTED_MAX 256 /* names that one keep-alive answer may list */

enum client_kind {
    CLIENT_OPEN,      /* POST /v1/sessions */
    CLIENT_KEEPALIVE, /* POST /v1/sessions/{s}/keepalive */
    CLIENT_CLOSE,     /* DELETE /v1/sessions/{s} */
    CLIENT_ACQUIRE,   /* POST /v1/locks/{name} */
    CLIENT_RELEASE,   /* POST /v1/locks/{name}/release */
};

/* A message to the service.  Whoever sends it keeps it until client_answer. */
struct client_message {
    enum client_kind kind;
    uint64_t number;                   /* grows with every message of a client */
    int64_t sent_us;                   /* boot time, read before it is sent */
    char session[CLIENT_SESSION_SIZE]; /* "" of CLIENT_OPEN */
    int64_t ttl_ms;                    /* CLIENT_OPEN */
    /* CLIENT_OPEN, and CLIENT_ACQUIRE of a caller, from which it is borrowed; NULL: none */
    const char *label;
    size_t label_len;
    /* CLIENT_ACQUIRE, CLIENT_RELEASE */
    uint64_t claim; /* which claim */
    char name[LEASE_NAME_MAX + 1];
    size_t name_len;
    uint8_t owner[LEASE_OWNER_SIZE];
    /* CLIENT_ACQUIRE */
    enum hf_mode mode;
    int priority;
    unsigned slots;
    bool queue;       /* keep a place; the sender decides how long to wait in this request */
    bool cache;       /* the client may keep the lock without using it */
    int64_t wait_ms;  /* 0: do not wait, and take no place */
    int64_t claim_ms; /* how long an unreceived grant is kept */
    char agent[CLIENT_AGENT_SIZE];
    const char *value; /* borrowed from the caller of client_acquire; NULL: none */
    size_t value_len;
};

enum client_result {
    CLIENT_DONE,      /* opened, alive, granted, released */
    CLIENT_TAKEN,     /* not granted */
    CLIENT_LOST,      /* the owner neither holds nor awaits it (410 lock_lost) */
    CLIENT_GONE,      /* the session is gone (410 session_expired, 404) */
    CLIENT_DEADLOCK,  /* to wait would close a cycle */
    CLIENT_REFUSED,   /* anything else that the service does not do: nothing was done */
    CLIENT_NOT_DONE,  /* no server could be reached, or do it now: nothing was done */
    CLIENT_NO_ANSWER, /* it may have been carried out, now or later */
    CLIENT_AGAIN,     /* only of client_answer: the caller asks again at once */
};

struct client_answer {
    enum client_result result;
    char session[CLIENT_SESSION_SIZE]; /* CLIENT_OPEN */
    int64_t ttl_ms;                    /* CLIENT_OPEN, CLIENT_KEEPALIVE: the session's TTL */
    int64_t fence;                     /* CLIENT_ACQUIRE, granted */
    unsigned slot;                     /* CLIENT_ACQUIRE, granted */
    bool is_unclaimed;                 /* CLIENT_ACQUIRE, granted: ask again to claim it (C8) */
    size_t position;                   /* CLIENT_ACQUIRE, taken; 0: no place */
    const char *const *wanted;         /* CLIENT_KEEPALIVE: names of cached claims */
    size_t n_wanted;
};

struct client_lease;
struct client_claim;
struct client;

struct client_config {
    int64_t ttl_ms;    /* of the session */
    const char *label; /* NULL: none; copied */
    bool cache;        /* shared locks are cached */
    struct random *random;
    /* Called when a lease that waits should ask again, and when a lease is lost. */
    void (*on_change)(void *context, struct client_lease *lease);
    void *context;
};

struct client *client_new(const struct client_config *config);
void client_free(struct client *c); /* sends nothing; accepts NULL */

/* By how much a deadline lies before the end of its session: max(50 ms, 1 % of the TTL). */
int64_t client_margin_us(int64_t ttl_ms);

/* ---- the session ---- */

bool client_is_open(const struct client *c);
/* The session lives at least until then (C1), if it is open; 0: it is not. */
int64_t client_end_us(const struct client *c);
const char *client_session(const struct client *c); /* "": none */
size_t client_n_claims(const struct client *c);
/* When a caller last asked for something. */
int64_t client_used_us(const struct client *c);

/* Makes a keep-alive unless one that was sent less than `max_age_us` ago is under way or has been
 * answered.  Returns false if none is to be sent. */
HF_MUST_USE bool client_keep_alive(struct client *c, int64_t now_us, int64_t max_age_us,
                                   struct client_message *ret);
/* Is a keep-alive under way that was sent at `since_us` or later? */
bool client_is_keeping(const struct client *c, int64_t since_us);
/* The next message that the session itself wants sent; false: none now. */
HF_MUST_USE bool client_next(struct client *c, int64_t now_us, struct client_message *ret);
/* When client_next has something to do although nothing happens; INT64_MAX: never. */
int64_t client_due_us(const struct client *c);
/* Makes the message that ends the session; false: there is none.  All leases are lost. */
HF_MUST_USE bool client_end_session(struct client *c, int64_t now_us, struct client_message *ret);

/* ---- leases ---- */

enum client_step {
    CLIENT_SEND,  /* *ret is to be sent, then client_answer */
    CLIENT_KNOWN, /* nothing has to be sent: the lease says how it stands */
    CLIENT_BUSY,  /* somebody opens the session; ask again when that is answered */
};
/* A caller asks for a lease, for the first time or again.  The lease is in *ret_lease. */
HF_MUST_USE enum client_step client_acquire(struct client *c, const struct lease_request *want,
                                            int64_t now_us, struct client_lease **ret_lease,
                                            struct client_message *ret);
/* NULL: there is none. */
struct client_lease *client_find(const struct client *c, const char *name, size_t name_len,
                                 const uint8_t owner[LEASE_OWNER_SIZE]);
/* The caller gives back a lease or a place.  CLIENT_KNOWN: it is gone, as *ret_result says:
 * CLIENT_DONE or CLIENT_LOST. */
HF_MUST_USE enum client_step client_release(struct client *c, struct client_lease *lease,
                                            int64_t now_us, struct client_message *ret,
                                            enum client_result *ret_result);
/* The caller renews: the lease lives as long as the session is known to live.  Returns false, and
 * forgets the lease, if it is lost or its time is over. */
HF_MUST_USE bool client_renew(struct client *c, struct client_lease *lease, int64_t now_us);

bool client_lease_is_waiting(const struct client_lease *lease);
/* Has the stream told its turn since it was last asked for? */
bool client_lease_is_its_turn(const struct client_lease *lease);
/* Granted, and not lost as far as is known; the time is another question. */
bool client_lease_is_granted(const struct client_lease *lease);
/* It is lost, and its caller has not noticed yet. */
bool client_lease_is_lost(const struct client_lease *lease);
/* The lease may end then; 0: it is not held. */
int64_t client_lease_end_us(const struct client_lease *lease);
/* Is it held, with the margin?  For callers that are not src/lock. */
bool client_lease_is_held(const struct client_lease *lease, int64_t now_us);
int64_t client_lease_fence(const struct client_lease *lease);
unsigned client_lease_slot(const struct client_lease *lease);
size_t client_lease_position(const struct client_lease *lease);
/* When its place was last asked for. */
int64_t client_lease_asked_us(const struct client_lease *lease);
/* For the driver: the struct service_waiter of the caller that waits for it; NULL: none. */
void client_lease_set_waiter(struct client_lease *lease, void *waiter);
void *client_lease_waiter(const struct client_lease *lease);

/* ---- what comes back ---- */

/* Judges the answer to a message and returns what it means for the caller that sent it.
 * CLIENT_AGAIN: the caller calls client_acquire again.  Leases may have been freed: find them
 * again. */
enum client_result client_answer(struct client *c, const struct client_message *m,
                                 const struct client_answer *a, int64_t now_us);

/* What the session's stream tells. */
enum client_event_kind {
    CLIENT_EVENT_GRANTED, /* a waiter's turn: it asks again */
    CLIENT_EVENT_LOST,
    CLIENT_EVENT_WANTED,
    CLIENT_EVENT_CONNECTED, /* the stream began, or began again: events may have been missed */
};
/* `name` and `owner` may be NULL where the event has none; `fence` 0: not told. */
void client_event(struct client *c, enum client_event_kind kind, const char *name, size_t name_len,
                  const uint8_t *owner, int64_t fence, int64_t now_us);
/* Every holder of this name was ended by an operator in this process. */
void client_broken(struct client *c, const char *name, size_t name_len);
/* Is there something that only the stream tells in time: cached claims, waiters, long leases? */
bool client_wants_stream(const struct client *c);

/* ---- looking ---- */

/* The lease whose claim has this owner at the service; NULL: none of ours. */
const struct client_lease *client_find_claim(const struct client *c, const char *name,
                                             size_t name_len,
                                             const uint8_t owner[LEASE_OWNER_SIZE]);
const uint8_t *client_lease_owner(const struct client_lease *lease);
const char *client_lease_name(const struct client_lease *lease, size_t *ret_len);

struct client_counts {
    uint64_t cache_hits, cache_misses;
};
struct client_counts client_counts(const struct client *c);

#endif
